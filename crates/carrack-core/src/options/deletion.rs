//! The options of what is left out, and of what is deleted at the destination.

use super::{Definition, Flag, FormGroup, Takes, WordFlag, choices};
use crate::filter::SourceLinks;
use crate::limits;
use crate::request::Renames;

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

/// The least size of a file that is taken.
pub const MIN_SIZE: Definition = Definition {
    name: "min_size",
    group: FormGroup::What,
    flag: Flag::Value { name: "min-size", value_name: "SIZE", help: "Leave out files smaller than SIZE, like 1M" },
    title: "Only files of at least",
    help: "Files smaller than this are left out. The destination keeps those that it has.",
    kind: Takes::Bytes { min: 0, max: u64::MAX },
    default: None,
    examples: &["1", "1000000"],
};

/// The greatest size of a file that is taken.
pub const MAX_SIZE: Definition = Definition {
    name: "max_size",
    group: FormGroup::What,
    flag: Flag::Value { name: "max-size", value_name: "SIZE", help: "Leave out files larger than SIZE, like 100G" },
    title: "Only files of at most",
    help: "Files larger than this are left out. The destination keeps those that it has.",
    kind: Takes::Bytes { min: 0, max: u64::MAX },
    default: None,
    examples: &["0", "1000000000"],
};

/// How long a file that is taken has not been changed.
pub const MIN_AGE: Definition = Definition {
    name: "min_age",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "min-age",
        value_name: "TIME",
        help: "Leave out files that were changed less than TIME ago, like 30d or 1h30m",
    },
    title: "Only files unchanged for",
    help: "Files that were changed less than this ago are left out: 30d, 12h. The destination keeps those that it has.",
    kind: Takes::Text { characters_max: 32 },
    default: None,
    examples: &["30d", "12h"],
};

/// How long ago a file that is taken was changed.
pub const MAX_AGE: Definition = Definition {
    name: "max_age",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "max-age",
        value_name: "TIME",
        help: "Leave out files that were last changed more than TIME ago, like 2w",
    },
    title: "Only files changed within",
    help: "Files that were last changed more than this ago are left out: 2w, 36h. The destination keeps those that it has.",
    kind: Takes::Text { characters_max: 32 },
    default: None,
    examples: &["2w", "36h"],
};

/// Whether other file systems are entered.
pub const ONE_FILE_SYSTEM: Definition = Definition {
    name: "one_file_system",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "one-file-system",
        letter: Some('x'),
        help: "Take directories where another file system is mounted without what is in them",
    },
    title: "Stay on one file system",
    help: "Directories where another file system is mounted are copied without what is in them.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Whether sources have to be mounted.
pub const REQUIRE_MOUNT: Definition = Definition {
    name: "require_mount",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "require-mount",
        letter: None,
        help: "Copy and delete nothing unless a file system is mounted at each SRC; DST may be any directory",
    },
    title: "Only what is mounted",
    help: "Nothing is copied or deleted unless a file system is mounted at each source. The destination may be any directory.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// What becomes of symbolic links.
pub const LINKS: Definition = Definition {
    name: "links",
    group: FormGroup::What,
    flag: Flag::Switches(&[
        WordFlag {
            word: SourceLinks::Follow.name(),
            name: "copy-links",
            letter: Some('L'),
            alias: None,
            help: "Copy what symbolic links lead to in their place, files and directories",
        },
        WordFlag {
            word: SourceLinks::FollowDirectories.name(),
            name: "copy-dirlinks",
            letter: Some('k'),
            alias: None,
            help: "Copy the directories that links lead to in their place; other links stay links",
        },
        WordFlag {
            word: SourceLinks::FollowUnsafe.name(),
            name: "copy-unsafe-links",
            letter: None,
            alias: None,
            help: "The same for links that lead out of what is copied, to files and directories",
        },
        WordFlag {
            word: SourceLinks::Safe.name(),
            name: "safe-links",
            letter: None,
            alias: None,
            help: "Leave out links that lead out of what is copied: absolute ones, and by .. above its top",
        },
    ]),
    title: "Symbolic links",
    help: "What becomes of symbolic links. None is followed out of an endpoint's root.",
    kind: Takes::Words(choices::<SourceLinks>),
    default: Some(SourceLinks::Keep.name()),
    examples: &[],
};

/// Whether what is replaced or deleted is kept.
pub const BACKUP: Definition = Definition {
    name: "backup",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "backup",
        letter: Some('b'),
        help: "Keep each file that is replaced or deleted beside its place, as NAME~",
    },
    title: "Keep what is replaced",
    help: "Each file or link that is replaced or deleted at the destination stays beside its place, with ~ behind its name.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Where what is replaced or deleted is kept.
pub const BACKUP_DIR: Definition = Definition {
    name: "backup_dir",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "backup-dir",
        value_name: "DIR",
        help: "Keep each file that is replaced or deleted in DIR, a directory below DST",
    },
    title: "Keep it in",
    help: "A directory below the destination, where each file or link that is replaced or deleted is kept under the path \
           that it had.",
    kind: Takes::Text { characters_max: limits::PATH_BYTES as u64 },
    default: None,
    examples: &[".old", "before/2026-11-27"],
};

/// What is added to the names of what is kept.
pub const BACKUP_SUFFIX: Definition = Definition {
    name: "backup_suffix",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "suffix",
        value_name: "TEXT",
        help: "Behind the names of files that are kept [default: ~ beside their places, nothing in a directory of their own]",
    },
    title: "Behind its name",
    help: "What is added to the names of files that are kept. Left out, ~ beside their places, and nothing in a directory \
           of their own.",
    kind: Takes::Text { characters_max: limits::NAME_BYTES as u64 - 1 },
    default: None,
    examples: &[".old", "-before"],
};

/// Whether what only the destination has is deleted.
pub const DELETE: Definition = Definition {
    name: "delete",
    group: FormGroup::Deletion,
    flag: Flag::Switch {
        name: "delete",
        letter: None,
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
        letter: None,
        help: "Delete what only the destination has, and what is left out, too",
    },
    title: "Delete what is left out, too",
    help: "Delete also what the rules leave out, unless one protects it.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Whether what only the destination has is deleted before anything is sent.
pub const DELETE_BEFORE: Definition = Definition {
    name: "delete_before",
    group: FormGroup::Deletion,
    flag: Flag::Switch {
        name: "delete-before",
        letter: None,
        help: "Delete what only the destination has before anything is sent, where there is no room for both; an error \
               of listing still keeps all of it",
    },
    title: "Delete first",
    help: "Delete what only the destination has before anything is sent, where there is no room for both. What cannot be \
           sent later does not stop it.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// What only the destination has, and is a file that the source has renamed.
pub const DETECT_RENAMES: Definition = Definition {
    name: "detect_renames",
    group: FormGroup::Deletion,
    flag: Flag::Value {
        name: "detect-renames",
        value_name: "HOW",
        help: "Where something is deleted, rename at DST what SRC has renamed instead of sending it [default: never]",
    },
    title: "Renamed files",
    help: "Whether a file that only the destination has is renamed where the source has it under another name. Needs \
           deletion.",
    kind: Takes::Words(choices::<Renames>),
    default: Some(Renames::Never.name()),
    examples: &[],
};

/// How many items may be deleted, or which share of what the destination has.
pub const MAX_DELETE: Definition = Definition {
    name: "max_delete",
    group: FormGroup::Deletion,
    flag: Flag::Value {
        name: "max-delete",
        value_name: "N",
        help: "Delete nothing if more than N items would be deleted; N,partial deletes N of them; N% is a share of what DST \
               has",
    },
    title: "At most",
    help: "Delete nothing if more items than this would be deleted. With ,partial behind the number, so many of them are \
           deleted. With % behind it, it is a share of what the destination has.",
    kind: Takes::Text { characters_max: 32 },
    default: None,
    examples: &["1000", "0", "500,partial", "50%"],
};

/// Whether an empty source empties the destination.
pub const ALLOW_EMPTY: Definition = Definition {
    name: "allow_empty",
    group: FormGroup::Deletion,
    flag: Flag::Switch {
        name: "allow-empty",
        letter: None,
        help: "Let a source with nothing in it empty the destination",
    },
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
        letter: None,
        help: "Delete even if something failed, but nothing in directories that could not be listed",
    },
    title: "Delete in spite of errors",
    help: "Delete even if something failed, but nothing in directories that could not be listed.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};
