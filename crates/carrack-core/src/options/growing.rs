//! The options of sources that grow while they are copied.

use super::{Definition, Flag, FormGroup, Takes, choices};
use crate::growing::GrowingSources;

/// What becomes of a source that grows while it is copied.
pub const GROWING: Definition = Definition {
    name: "growing",
    group: FormGroup::Faults,
    flag: Flag::Value {
        name: "growing",
        value_name: "HOW",
        help: "What becomes of a file that grows while it is copied [default: refuse]",
    },
    title: "Growing files",
    help: "What becomes of a file that grows while it is copied.",
    kind: Takes::Words(choices::<GrowingSources>),
    default: Some(GrowingSources::Refuse.name()),
    examples: &[],
};

/// A lock file that says until when a file is followed.
pub const GROWING_LOCK: Definition = Definition {
    name: "growing_lock",
    group: FormGroup::Faults,
    flag: Flag::Value {
        name: "growing-lock",
        value_name: "NAME",
        help: "A followed file is whole when the lock file NAME beside it goes; * in NAME is the name of the file",
    },
    title: "Lock files of growing files",
    help: "A followed file is whole when the file with this name beside it goes; * in it is the name of the file.",
    kind: Takes::Text { characters_max: 63 },
    default: None,
    examples: &["run.lock", ".*.lock"],
};

/// When a file that is followed counts as whole.
pub const GROWING_IDLE: Definition = Definition {
    name: "growing_idle",
    group: FormGroup::Faults,
    flag: Flag::Value {
        name: "growing-idle",
        value_name: "TIME",
        help: "A followed file is whole when it has not grown for so long: 100ms to 1d [default: 5s]",
    },
    title: "Growing files are whole after",
    help: "A followed file is whole when it has not grown for so long: 100ms to 1d.",
    kind: Takes::Text { characters_max: 64 },
    default: Some("5s"),
    examples: &["250ms", "2m"],
};
