//! The options of files that are written over where they stand.

use super::{Definition, Flag, FormGroup, Takes};

/// Files are written over where they stand.
pub const INPLACE: Definition = Definition {
    name: "inplace",
    group: FormGroup::How,
    flag: Flag::Switch {
        name: "inplace",
        letter: None,
        help: "Write over files of more than 1 MiB where they stand. Until one is finished, its name holds a mixture",
    },
    title: "Write in place",
    help: "Write over files of more than 1 MiB where they stand. Until one is finished, its name holds a mixture.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Files that are shorter than their sources are written on where they stand.
pub const APPEND: Definition = Definition {
    name: "append",
    group: FormGroup::How,
    flag: Flag::Switch {
        name: "append",
        letter: None,
        help: "Write on files of more than 1 MiB, where they stand, that are shorter than at the source. What they have \
               is compared, and sent again where it differs",
    },
    title: "Write on in place",
    help: "Write on files of more than 1 MiB, where they stand, that are shorter than at the source. What they have is \
           compared, and sent again where it differs.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};
