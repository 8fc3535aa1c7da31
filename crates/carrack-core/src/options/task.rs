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

/// Sources that a task may miss.
pub const SKIP_SOURCE_ERRORS: Definition = Definition {
    name: "skip_source_errors",
    group: FormGroup::Faults,
    flag: Flag::Switch {
        name: "skip-source-errors",
        letter: None,
        help: "Skip sources that are missing or may not be read; the task can still succeed",
    },
    title: "Skip unreadable sources",
    help: "Skip sources that are missing or may not be read; the task can still succeed.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// The receipts of a task.
pub const RECEIPT: Definition = Definition {
    name: "receipt",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "receipt",
        letter: None,
        help: "Leave a signed receipt of each pair: what became of each item, with digest and attributes",
    },
    title: "Signed receipt",
    help: "Leave a signed account of each item, with its digest and attributes.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// The end of a task at a full quota.
pub const FAIL_ON_QUOTA_ERRORS: Definition = Definition {
    name: "fail_on_quota_errors",
    group: FormGroup::Faults,
    flag: Flag::Switch {
        name: "fail-on-quota-errors",
        letter: None,
        help: "End at the first item that a quota refuses",
    },
    title: "End at a full quota",
    help: "End at the first item that a quota refuses.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};
