//! The options of directories at the destination that may have a file already.

use super::{Definition, Flag, FormGroup, Takes};
use crate::limits;

const CHARACTERS_MAX: u64 = limits::REFERENCES as u64 * (limits::PATH_BYTES as u64 + 1);

/// Directories whose files get hard links at the destination.
pub const LINK_DEST: Definition = Definition {
    name: "link_dest",
    group: FormGroup::What,
    flag: Flag::Several {
        name: "link-dest",
        value_name: "DIR",
        help: "Where DIR, relative to DST, has a file that is the same, make a hard link to that; several times: the first \
               that has it. DIR's files never change: one with other permissions or times is copied there",
    },
    title: "Link what is the same in",
    help: "Directories at the destination, relative to it, one a line. A file that one of them has gets a hard link to \
           that; one with other permissions or times is copied there.",
    kind: Takes::Lines { characters_max: CHARACTERS_MAX },
    default: None,
    examples: &["../monday", "../monday\n../sunday"],
};

/// Directories whose files are copied at the destination.
pub const COPY_DEST: Definition = Definition {
    name: "copy_dest",
    group: FormGroup::What,
    flag: Flag::Several {
        name: "copy-dest",
        value_name: "DIR",
        help: "Where DIR, relative to DST, has a file that is the same, copy that at the destination and send nothing",
    },
    title: "Copy what is the same in",
    help: "Directories at the destination, relative to it, one a line. A file that one of them has is copied from there, \
           and not sent.",
    kind: Takes::Lines { characters_max: CHARACTERS_MAX },
    default: None,
    examples: &["../monday", "/snapshots/first"],
};

/// Directories whose files are not copied at all.
pub const COMPARE_DEST: Definition = Definition {
    name: "compare_dest",
    group: FormGroup::What,
    flag: Flag::Several {
        name: "compare-dest",
        value_name: "DIR",
        help: "Where DIR, relative to DST, has a file that is the same, and DST has none, make nothing: DST gets what DIR \
               lacks",
    },
    title: "Leave out what is the same in",
    help: "Directories at the destination, relative to it, one a line. A file that one of them has, and the destination \
           has not, is not copied.",
    kind: Takes::Lines { characters_max: CHARACTERS_MAX },
    default: None,
    examples: &["../full"],
};
