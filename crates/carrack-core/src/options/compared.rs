//! The options of what is sent at all: what exists, and what is the same.

use super::{Definition, Flag, FormGroup, Takes, WINDOW_SECONDS_MAX, WordFlag, choices};
use crate::request::{Compare, Existing};

/// What happens to names that exist at the destination.
pub const EXISTING: Definition = Definition {
    name: "existing",
    group: FormGroup::What,
    flag: Flag::Switches(&[
        WordFlag {
            word: Existing::Keep.name(),
            name: "no-clobber",
            letter: None,
            alias: Some("ignore-existing"),
            help: "Keep what exists at the destination",
        },
        WordFlag {
            word: Existing::Only.name(),
            name: "existing",
            letter: None,
            alias: Some("ignore-non-existing"),
            help: "Replace what exists at the destination; create nothing",
        },
        WordFlag {
            word: Existing::Older.name(),
            name: "update",
            letter: Some('u'),
            alias: None,
            help: "Leave what is newer at the destination, and what is the same",
        },
    ]),
    title: "Files that exist",
    help: "What happens to files that exist at the destination.",
    kind: Takes::Words(choices::<Existing>),
    default: Some(Existing::Replace.name()),
    examples: &[],
};

/// What makes two files the same.
pub const COMPARE: Definition = Definition {
    name: "compare",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "compare",
        value_name: "BY",
        help: "Skip a file that is the same in this [default: none; of sync: size,mtime]",
    },
    title: "Skip what is the same",
    help: "What has to be the same at both sides, so that a file is not sent.",
    kind: Takes::Words(choices::<Compare>),
    default: Some(Compare::Nothing.name()),
    examples: &[],
};

/// Modification times that are not kept.
pub const NO_TIMES: Definition = Definition {
    name: "no_times",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "no-times",
        letter: None,
        help: "Do not set modification times at the destination. A comparison by time then sends everything each time: \
               compare by size or content",
    },
    title: "Do not keep times",
    help: "Modification times are not set at the destination. A comparison by time then sends everything each time: \
           compare by size or checksum, or keep what is newer.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// How far two modification times of one file may be apart.
pub const MODIFY_WINDOW: Definition = Definition {
    name: "modify_window",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "modify-window",
        value_name: "SECONDS",
        help: "Times of one file may differ by so much and still count as the same [default: 0]",
    },
    title: "Modification times may differ by",
    help: "Seconds by which modification times may differ and still count as one.",
    kind: Takes::Number { min: 0, max: WINDOW_SECONDS_MAX as u64, words: &[] },
    default: Some("0"),
    examples: &["2"],
};
