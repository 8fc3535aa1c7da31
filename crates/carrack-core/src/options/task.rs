//! What only tasks have, and no copy of the command.

use super::{Definition, Flag, FormGroup, Takes};
use crate::limits::{LABEL_CHARACTERS_MAX, PRIORITY_MAX};

/// The owner's name of a task.
pub const LABEL: Definition = Definition {
    name: "label",
    group: FormGroup::Task,
    flag: Flag::Value { name: "label", value_name: "TEXT", help: "What you call it" },
    title: "Label",
    help: "What you call the task.",
    kind: Takes::Text { characters_max: LABEL_CHARACTERS_MAX as u64 },
    default: None,
    examples: &["nightly", "läuft – 走る"],
};

/// The place of a task among those of its owner.
pub const PRIORITY: Definition = Definition {
    name: "priority",
    group: FormGroup::Task,
    flag: Flag::Value {
        name: "priority",
        value_name: "0-9",
        help: "Of your own tasks, higher ones go first [default: 4]",
    },
    title: "Priority",
    help: "Of your own tasks, those with a higher number go first.",
    kind: Takes::Number { min: 0, max: PRIORITY_MAX as u64, words: &[] },
    default: Some("4"),
    examples: &["7"],
};
