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
