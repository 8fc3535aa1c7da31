//! The options of what is left out, and of what is deleted at the destination.

use super::{Definition, Flag, FormGroup, Takes};
use crate::limits;

/// What is left out.
pub const FILTERS: Definition = Definition {
    name: "filters",
    group: FormGroup::What,
    flag: Flag::Lines { name: "filter" },
    title: "Leave out",
    help: "Rules that leave names out, one a line, as rsync has them: - *.tmp, + */, protect keep/, dir-merge .rules. The \
           first that matches decides.",
    kind: Takes::Lines { characters_max: limits::FILTER_BYTES as u64 },
    default: None,
    examples: &["- *.tmp", "+ /run*/\n- /*\nprotect keep/"],
};

/// Whether what only the destination has is deleted.
pub const DELETE: Definition = Definition {
    name: "delete",
    group: FormGroup::Deletion,
    flag: Flag::Switch {
        name: "delete",
        help: "When all has been copied, delete what only the destination has; nothing, if anything failed",
    },
    title: "Delete what only the destination has",
    help: "When all has been copied, delete what only the destination has; nothing, if anything failed. Files that are \
           the same in size and time are then skipped, unless another comparison is chosen.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Whether what is left out is deleted.
pub const DELETE_EXCLUDED: Definition = Definition {
    name: "delete_excluded",
    group: FormGroup::Deletion,
    flag: Flag::Switch {
        name: "delete-excluded",
        help: "Delete what only the destination has, and what is left out, too",
    },
    title: "Delete what is left out, too",
    help: "Delete also what the rules leave out, unless one protects it.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// How many items may be deleted.
pub const MAX_DELETE: Definition = Definition {
    name: "max_delete",
    group: FormGroup::Deletion,
    flag: Flag::Value {
        name: "max-delete",
        value_name: "N",
        help: "Delete nothing if more than N items would be deleted; N,partial deletes N of them",
    },
    title: "At most",
    help: "Delete nothing if more items than this would be deleted. With ,partial behind the number, so many of them are \
           deleted.",
    kind: Takes::Text { characters_max: 32 },
    default: None,
    examples: &["1000", "0", "500,partial"],
};

/// Whether an empty source empties the destination.
pub const ALLOW_EMPTY: Definition = Definition {
    name: "allow_empty",
    group: FormGroup::Deletion,
    flag: Flag::Switch { name: "allow-empty", help: "Let a source with nothing in it empty the destination" },
    title: "Allow an empty source",
    help: "Let a source with nothing in it empty the destination.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Whether an error keeps everything from being deleted.
pub const IGNORE_ERRORS: Definition = Definition {
    name: "ignore_errors",
    group: FormGroup::Deletion,
    flag: Flag::Switch {
        name: "ignore-errors",
        help: "Delete even if something failed, but nothing in directories that could not be listed",
    },
    title: "Delete in spite of errors",
    help: "Delete even if something failed, but nothing in directories that could not be listed.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};
