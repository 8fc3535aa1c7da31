//! The options of a copy, each defined once: its name, its flag, its words or bounds, its default and its help.
//!
//! The command line's flags, the fields of a task, the table that the service offers to forms, and the order of a
//! worker follow from the definitions here. A value has one parser from text, so each way in refuses the same values
//! with the same sentence. With the feature `serde` the types are read from JSON by that parser.

mod asked;
mod attributes;
mod compared;
mod deletion;
mod growing;
mod in_place;
#[cfg(feature = "serde")]
pub mod json;
mod references;
mod task;
mod values;

pub use asked::AskedOptions;
pub use attributes::{
    ACCESS_TIMES, ACLS, CHMOD, CHOWN, DEVICES, FAKE_SUPER, FROM_FAKE_SUPER, GROUP, GROUPMAP, HARD_LINKS, NUMERIC_IDS,
    OWNER, SELINUX, SPECIAL_BITS, SPECIALS, TOP_ATTRIBUTES, TRUSTED, USERMAP, XATTRS,
};
pub use compared::{COMPARE, EXISTING, MODIFY_WINDOW, NO_TIMES};
pub use deletion::{
    ALLOW_EMPTY, BACKUP, BACKUP_DIR, BACKUP_SUFFIX, DELETE, DELETE_BEFORE, DELETE_EXCLUDED, DETECT_RENAMES, FILTERS,
    IGNORE_ERRORS, LINKS, MAX_AGE, MAX_DELETE, MAX_SIZE, MIN_AGE, MIN_SIZE, ONE_FILE_SYSTEM, REQUIRE_MOUNT,
};
pub use growing::{GROWING, GROWING_IDLE, GROWING_LOCK};
pub use in_place::{APPEND, INPLACE};
pub use references::{COMPARE_DEST, COPY_DEST, LINK_DEST};
pub use task::{FAIL_ON_QUOTA_ERRORS, LABEL, PRIORITY, RECEIPT, SKIP_SOURCE_ERRORS};
pub use values::{
    Age, BackupDirectory, BackupSuffix, BlockSize, DeleteLimit, DirectoryLines, FileSize, FilterLines, ModeChanges,
    NewOwner, OptionValue, RateBound, Streams, WINDOW_SECONDS_MAX, WindowSeconds, check_label, parse_priority,
};

use crate::limits::{self, BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};
use crate::request::{CongestionControl, Delta, Durability, Encrypt, Verify};
use crate::words::Word;

/// One option of a copy or of a task.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Name of its field in a document.
    pub name: &'static str,
    /// Where forms have it.
    pub group: FormGroup,
    /// How it is typed at the command line.
    pub flag: Flag,
    /// Title in a form.
    pub title: &'static str,
    /// What it does, in sentences, for a form.
    pub help: &'static str,
    /// The values that it takes.
    pub kind: Takes,
    /// Its default, as text; `None` if the path, the sources or a host decide.
    pub default: Option<&'static str>,
    /// Values that it takes, for help and tests, where its kind does not list them all.
    pub examples: &'static [&'static str],
}

/// Options that stand together in a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormGroup {
    /// Of any task.
    Task,
    /// What is copied.
    What,
    /// What is deleted at the destination.
    Deletion,
    /// How it is copied.
    How,
    /// What becomes of faults.
    Faults,
}

impl FormGroup {
    /// All of them, in the order of a form.
    pub const ALL: [Self; 5] = [Self::Task, Self::What, Self::Deletion, Self::How, Self::Faults];

    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Task => "Task",
            Self::What => "What is copied",
            Self::Deletion => "What is deleted",
            Self::How => "How it is copied",
            Self::Faults => "Faults",
        }
    }
}

/// How an option is typed at the command line. Names are without dashes.
#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// One flag with a value.
    Value {
        /// Name of the flag.
        name: &'static str,
        /// Stands for the value in help texts.
        value_name: &'static str,
        /// Help of the flag.
        help: &'static str,
    },
    /// One flag without a value.
    Switch {
        /// Name of the flag.
        name: &'static str,
        /// One letter for it.
        letter: Option<char>,
        /// Help of the flag.
        help: &'static str,
    },
    /// A flag with a value, given once for each line. Other flags may say the same of some lines.
    Lines {
        /// Name of the flag.
        name: &'static str,
    },
    /// A flag with a value, given once for each line of the option.
    Several {
        /// Name of the flag.
        name: &'static str,
        /// Stands for the value in help texts.
        value_name: &'static str,
        /// Help of the flag.
        help: &'static str,
    },
    /// A flag without a value for each word but the default one; at most one of them is given.
    Switches(&'static [WordFlag]),
}

/// The flag of one word of an option.
#[derive(Clone, Copy, Debug)]
pub struct WordFlag {
    /// The word.
    pub word: &'static str,
    /// Name of its flag.
    pub name: &'static str,
    /// One letter for it.
    pub letter: Option<char>,
    /// Another name for it.
    pub alias: Option<&'static str>,
    /// Help of the flag.
    pub help: &'static str,
}

impl Flag {
    /// Name of the one flag; empty if each word has its own.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Value { name, .. }
            | Self::Several { name, .. }
            | Self::Switch { name, .. }
            | Self::Lines { name } => name,
            Self::Switches(_) => "",
        }
    }

    /// One letter for the one flag, if it has one.
    pub const fn letter(&self) -> Option<char> {
        match self {
            Self::Switch { letter, .. } => *letter,
            Self::Value { .. } | Self::Several { .. } | Self::Lines { .. } | Self::Switches(_) => None,
        }
    }

    /// Name of the value in help texts; empty if the flag takes none.
    pub const fn value_name(&self) -> &'static str {
        match self {
            Self::Value { value_name, .. } | Self::Several { value_name, .. } => value_name,
            Self::Switch { .. } | Self::Lines { .. } | Self::Switches(_) => "",
        }
    }

    /// Help of the one flag; empty if each word has its own.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Value { help, .. } | Self::Several { help, .. } | Self::Switch { help, .. } => help,
            Self::Lines { .. } | Self::Switches(_) => "",
        }
    }
}

/// The values that an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// On or off.
    Switch,
    /// One of a few words.
    Words(fn() -> Vec<Choice>),
    /// A whole number within bounds, both included; or one of a few words.
    Number {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
        /// Words in the place of a number.
        words: &'static [&'static str],
    },
    /// A number of bytes within bounds, both included; at the command line with a unit.
    Bytes {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// Lines of text, of at most so many characters together.
    Lines {
        /// The greatest number of characters.
        characters_max: u64,
    },
    /// A text of at most so many characters.
    Text {
        /// The greatest number of characters.
        characters_max: u64,
    },
}

/// One word of an option, and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The word.
    pub word: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

fn choices<W: Word>() -> Vec<Choice> {
    W::ALL.iter().map(|word| Choice { word: word.name(), meaning: word.meaning() }).collect()
}

fn parse_switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("{}: use true or false", crate::words::quoted(text)))
}

/// How a file is proved before its name appears.
pub const VERIFY: Definition = Definition {
    name: "verify",
    group: FormGroup::What,
    flag: Flag::Value { name: "verify", value_name: "HOW", help: "[default: wire]" },
    title: "Verify",
    help: "How each file is proved before its name appears.",
    kind: Takes::Words(choices::<Verify>),
    default: Some(Verify::Wire.name()),
    examples: &[],
};

/// The digests that are computed while bytes move.
pub const DIGEST: Definition = Definition {
    name: "digest",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "digest",
        value_name: "LIST",
        help: "Digests to compute, separated by commas: blake3, or in its place xxh128 (cheaper; finds accidents, not \
               forgery; no digest of whole files), and adler32, crc32c; none needs a copy that verifies nothing [default: blake3]",
    },
    title: "Digests",
    help: "Digests to compute, separated by commas: blake3, or in its place xxh128 (cheaper; finds accidents, not \
           forgery; no digest of whole files), and adler32, crc32c. none computes nothing and needs a copy that \
           verifies nothing.",
    kind: Takes::Text { characters_max: 64 },
    default: Some("blake3"),
    examples: &["blake3", "xxh128", "adler32,crc32c", "blake3,crc32c"],
};

/// Upper bound of the rate.
pub const RATE_LIMIT: Definition = Definition {
    name: "rate_limit",
    group: FormGroup::How,
    flag: Flag::Value { name: "bwlimit", value_name: "RATE", help: "Limit in bytes a second, like 100MB; 0: no limit" },
    title: "Rate limit",
    help: "Limit in bytes a second. 0: no limit.",
    kind: Takes::Bytes { min: 0, max: u64::MAX },
    default: None,
    examples: &["1000000"],
};

/// The number of data connections.
pub const STREAMS: Definition = Definition {
    name: "streams",
    group: FormGroup::How,
    flag: Flag::Value { name: "streams", value_name: "N|auto", help: "Data connections [default: auto]" },
    title: "Data connections",
    help: "Data connections of each transfer. Left out, the number is tuned while the copy runs.",
    kind: Takes::Number { min: 1, max: limits::STREAMS as u64, words: &[Streams::AUTO] },
    default: None,
    examples: &["3"],
};

/// Fewer data connections on a shared path.
pub const POLITE: Definition = Definition {
    name: "polite",
    group: FormGroup::How,
    flag: Flag::Switch {
        name: "polite",
        letter: None,
        help: "Use fewer data connections where others use the path: each must raise the rate by 5 %, not by 1 %",
    },
    title: "Polite",
    help: "Use fewer data connections where others use the path: each must raise the rate by 5 %, not by 1 %.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// The unit of sending and repair.
pub const BLOCK_BYTES: Definition = Definition {
    name: "block_bytes",
    group: FormGroup::How,
    flag: Flag::Value {
        name: "block",
        value_name: "SIZE",
        help: "Unit of sending and repair: a power of two from 64K to 64M [default: 256K for files up to 1G, 1M up to \
               256G, else 4M; 1M at most where files are compared]",
    },
    title: "Block size",
    help: "Unit of sending and repair: a power of two. Left out, 256 KiB for files up to 1 GiB, 1 MiB up to 256 GiB, \
           else 4 MiB; 1 MiB at most where files are compared.",
    kind: Takes::Bytes { min: BLOCK_BYTES_MIN as u64, max: BLOCK_BYTES_MAX as u64 },
    default: None,
    examples: &["131072"],
};

/// The congestion control of the sending host.
pub const CONGESTION: Definition = Definition {
    name: "congestion",
    group: FormGroup::How,
    flag: Flag::Value {
        name: "congestion",
        value_name: "NAME",
        help: "Congestion control of the sending host's TCP, like cubic or bbr [default: that host's]",
    },
    title: "Congestion control",
    help: "Congestion control of the sending host's TCP, like cubic or bbr. Left out, that host's own.",
    kind: Takes::Text { characters_max: CongestionControl::BYTES_MAX as u64 },
    default: None,
    examples: &["cubic", "reno"],
};

/// Secrecy of the data connections.
pub const ENCRYPT: Definition = Definition {
    name: "encrypt",
    group: FormGroup::How,
    flag: Flag::Value { name: "encrypt", value_name: "HOW", help: "[default: tls]" },
    title: "Encryption",
    help: "Whether data connections keep secrets.",
    kind: Takes::Words(choices::<Encrypt>),
    default: Some(Encrypt::Tls.name()),
    examples: &[],
};

/// What reaches stable storage, and when.
pub const DURABLE: Definition = Definition {
    name: "durable",
    group: FormGroup::How,
    flag: Flag::Value { name: "durable", value_name: "HOW", help: "[default: group]" },
    title: "Durability",
    help: "What reaches stable storage before it counts as there.",
    kind: Takes::Words(choices::<Durability>),
    default: Some(Durability::Group.name()),
    examples: &[],
};

/// What is sent of a file that has changed.
pub const DELTA: Definition = Definition {
    name: "delta",
    group: FormGroup::How,
    flag: Flag::Value {
        name: "delta",
        value_name: "WHEN",
        help: "Counts for changed files of more than 1 MiB; in a sync, of 16 KiB or more [default: auto]",
    },
    title: "Changed files",
    help: "What is sent of a file that the destination has in another state: of more than 1 MiB, or, where files are \
           compared, of 16 KiB or more.",
    kind: Takes::Words(choices::<Delta>),
    default: Some(Delta::Auto.name()),
    examples: &[],
};

/// What travels, made smaller.
pub const COMPRESS: Definition = Definition {
    name: "compress",
    group: FormGroup::How,
    flag: Flag::Switch {
        name: "compress",
        letter: Some('z'),
        help: "Compress what shrinks, while the path is slower than the processors",
    },
    title: "Compression",
    help: "Compress what shrinks, while the path is slower than the processors.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// The options of a copy: flags of `copy`, and fields of the `options` of a task.
pub const OF_A_COPY: &[Definition] = &[
    EXISTING,
    COMPARE,
    MODIFY_WINDOW,
    NO_TIMES,
    OWNER,
    GROUP,
    SPECIAL_BITS,
    ACLS,
    XATTRS,
    TRUSTED,
    SELINUX,
    HARD_LINKS,
    DEVICES,
    SPECIALS,
    ACCESS_TIMES,
    CHMOD,
    CHOWN,
    USERMAP,
    GROUPMAP,
    NUMERIC_IDS,
    FAKE_SUPER,
    FROM_FAKE_SUPER,
    TOP_ATTRIBUTES,
    FILTERS,
    MIN_SIZE,
    MAX_SIZE,
    MIN_AGE,
    MAX_AGE,
    ONE_FILE_SYSTEM,
    REQUIRE_MOUNT,
    LINKS,
    BACKUP,
    BACKUP_DIR,
    BACKUP_SUFFIX,
    LINK_DEST,
    COPY_DEST,
    COMPARE_DEST,
    DELETE,
    DELETE_EXCLUDED,
    MAX_DELETE,
    ALLOW_EMPTY,
    IGNORE_ERRORS,
    DELETE_BEFORE,
    DETECT_RENAMES,
    VERIFY,
    DIGEST,
    STREAMS,
    POLITE,
    BLOCK_BYTES,
    CONGESTION,
    RATE_LIMIT,
    ENCRYPT,
    DURABLE,
    DELTA,
    INPLACE,
    APPEND,
    COMPRESS,
    GROWING,
    GROWING_IDLE,
    GROWING_LOCK,
];

/// Those of them that choose files: verbs that list or count have them, too.
pub const OF_FILES: &[Definition] = &[MIN_SIZE, MAX_SIZE, MIN_AGE, MAX_AGE, ONE_FILE_SYSTEM];

/// Those that a comparison of two trees has, beside these.
pub const OF_A_COMPARISON: &[Definition] =
    &[LINKS, MODIFY_WINDOW, OWNER, GROUP, SPECIAL_BITS, ACLS, XATTRS, TRUSTED, SELINUX, HARD_LINKS, NUMERIC_IDS];

/// The options of a task beside those of a copy.
pub const OF_A_TASK: &[Definition] = &[LABEL, PRIORITY, RECEIPT, SKIP_SOURCE_ERRORS, FAIL_ON_QUOTA_ERRORS];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growing::GrowingIdle;

    /// The canonical form of a text that an option takes; the sentence that refuses the text.
    fn canonical(option: &Definition, text: &str) -> Result<String, String> {
        match option.name {
            name if name == LABEL.name => check_label(text).map(|()| text.to_owned()),
            name if name == PRIORITY.name => parse_priority(text).map(|priority| priority.to_string()),
            _ if matches!(option.kind, Takes::Switch) => parse_switch(text).map(|is_on| is_on.to_string()),
            _ => {
                let mut asked = AskedOptions::default();
                asked.set(option, text)?;
                Ok(asked.text(option).expect("it was asked for"))
            }
        }
    }

    fn all() -> impl Iterator<Item = &'static Definition> {
        OF_A_COPY.iter().chain(OF_A_TASK)
    }

    #[test]
    fn options_take_their_defaults_examples_words_and_bounds() {
        for option in all() {
            let mut good: Vec<String> = option.default.iter().chain(option.examples).map(ToString::to_string).collect();
            match option.kind {
                Takes::Switch => good.extend(["true", "false"].map(str::to_owned)),
                Takes::Words(choices) => good.extend(choices().iter().map(|choice| choice.word.to_owned())),
                Takes::Number { min, max, words } => {
                    good.extend([min, max].map(|bound| bound.to_string()));
                    good.extend(words.iter().map(ToString::to_string));
                }
                Takes::Bytes { min, max } => good.extend([min, max].map(|bound| bound.to_string())),
                Takes::Text { .. } | Takes::Lines { .. } => {
                    assert!(!option.examples.is_empty(), "{} shows no example", option.name)
                }
            }
            for text in good {
                // The canonical form parses back to itself.
                let once = canonical(option, &text);
                assert_eq!(once.clone().and_then(|text| canonical(option, &text)), once);
                assert!(once.is_ok(), "{}: {text:?} is refused", option.name);
            }
            for text in ["", " ", "no such value\n", "ＮＯＮＥ\u{202e}\0", &"x".repeat(100_000)] {
                let refused = canonical(option, text);
                assert!(refused.is_err() || text == " ", "{}: {text:.20?} is taken", option.name);
                assert!(
                    refused.is_ok() || refused.is_err_and(|why| why.len() < 400),
                    "{}: a long refusal",
                    option.name
                );
            }
        }
    }

    #[test]
    fn options_have_names_of_their_own() {
        let names: Vec<&str> = all().map(|option| option.name).collect();
        let mut flags = Vec::new();
        for option in all() {
            match option.flag {
                Flag::Switches(switches) => {
                    let Takes::Words(choices) = option.kind else { panic!("{} has no words", option.name) };
                    let words = choices();
                    assert!(switches.iter().all(|flag| words.iter().any(|choice| choice.word == flag.word)));
                    let default = usize::from(option.default.is_some());
                    assert_eq!(switches.len() + default, words.len(), "{}", option.name);
                    flags.extend(switches.iter().map(|flag| flag.name));
                }
                flag => flags.push(flag.name()),
            }
        }
        for names in [names, flags] {
            let once: std::collections::BTreeSet<&str> = names.iter().copied().collect();
            assert!(once.len() == names.len() && !once.contains(""), "{names:?}");
        }
    }

    #[test]
    fn options_default_to_what_a_copy_does_by_default() {
        let default = crate::request::CopyOptions::default();
        assert_eq!(EXISTING.default, Some(default.existing.name()));
        assert_eq!(COMPARE.default, Some(default.compare.name()));
        assert_eq!(VERIFY.default, Some(default.verify.name()));
        assert_eq!(ENCRYPT.default, Some(default.encrypt.name()));
        assert_eq!(DELTA.default, Some(default.delta.name()));
        assert_eq!(GROWING.default, Some(default.growing.name()));
        assert_eq!(GROWING_IDLE.default.map(GrowingIdle::parse).unwrap().unwrap().time(), default.growing_idle);
        // What says of its files that they are verified reads them.
        assert_eq!(default.reflink, crate::request::Reflink::Never);
        assert_eq!(DURABLE.default, Some(default.durability.name()));
        assert_eq!(DIGEST.default.map(str::to_owned), Some(default.digest.text()));
    }
}
