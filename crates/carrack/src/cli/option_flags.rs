//! The flags of the options that copies and tasks have: each follows from its definition.

use carrack_core::options::{
    AskedOptions, BACKUP_DIR, COMPARE_DEST, COPY_DEST, Definition, Flag, FormGroup, LINK_DEST, OF_A_COMPARISON,
    OF_A_COPY, OF_FILES, RATE_LIMIT, Takes, WordFlag,
};
use carrack_core::request::{HardLinks, KeptXattrs, Renames};
use clap::{Arg, ArgAction};

use super::flag::{Switch, with_words};
use super::flags::Flags;
use crate::error::CommandError;
use crate::output::say;

/// Stands for the flags of what else is kept.
const ARCHIVE: Switch = Switch::short(
    'a',
    "archive",
    "Keep owners, groups, set-user-id, set-group-id and sticky bits, hard links, devices, FIFOs, sockets, ACLs and \
     extended attributes of users: -ogpHDA --user-xattrs. Directories, links, permissions and times are kept without it",
);

/// Stands for the flags of files that hold nothing.
const SPECIAL_FILES: Switch = Switch::short(
    'D',
    "devices-and-specials",
    "Make devices, FIFOs and sockets at the destination: --devices --specials",
);

/// The flags of the options of a copy that stand in a group, in the order of their definitions.
pub fn args(group: FormGroup) -> impl Iterator<Item = Arg> {
    let several = [&ARCHIVE, &SPECIAL_FILES].into_iter().filter(move |_| group == FormGroup::What).map(Switch::arg);
    several.chain(OF_A_COPY.iter().filter(move |option| option.group == group).flat_map(args_of))
}

/// The flags that choose files, for verbs that copy nothing.
pub fn of_files() -> impl Iterator<Item = Arg> {
    OF_FILES.iter().flat_map(args_of)
}

/// The flags of what is compared, for a verb that copies nothing.
pub fn of_comparison() -> impl Iterator<Item = Arg> {
    let compared = |arg: Arg| match COMPARED.iter().find(|(name, _)| arg.get_id() == name) {
        Some((_, help)) => arg.help(*help),
        None => arg,
    };
    [ARCHIVE.arg()].into_iter().chain(OF_A_COMPARISON.iter().flat_map(args_of)).map(compared)
}

/// What such a verb says of flags that a copy has for what it keeps.
const COMPARED: &[(&str, &str)] = &[
    ("archive", "Compare all of these: -ogpHA --user-xattrs"),
    ("owner", "Compare owners, by name where both sides tell one"),
    ("group", "Compare groups, by name where both sides tell one"),
    ("perms", "Compare permission bits, set-user-id, set-group-id and sticky bits"),
    ("acls", "Compare POSIX access control lists (ACLs)"),
    ("xattrs", "Compare extended attributes of users (user.NAME), and capabilities of programs"),
    ("user-xattrs", "Compare extended attributes of users (user.NAME) alone"),
    ("trusted", "Compare extended attributes that only root reads (trusted.NAME)"),
    ("selinux", "Compare the labels of SELinux (security.selinux)"),
    ("hard-links", "Compare which names are of one file (hard links)"),
    ("no-hard-links", "Do not compare hard links"),
    ("numeric-ids", "Compare owners and groups by their numbers"),
    ("copy-links", "Compare what symbolic links lead to in their place, files and directories"),
    ("copy-dirlinks", "Compare the directories that links lead to in their place; other links stay links"),
    ("copy-unsafe-links", "Compare what links lead to in their place where they lead out of the tree"),
    ("safe-links", "Leave out links that lead out of the tree"),
];

/// The flags of what is deleted.
pub fn deletion() -> impl Iterator<Item = Arg> {
    let alias = |arg: Arg| match arg.get_long() {
        Some("delete") => arg.visible_aliases(["delete-after", "delete-delay"]),
        Some("detect-renames") => {
            arg.num_args(0..=1).require_equals(true).default_missing_value(Renames::Content.name())
        }
        Some("delete-before") => arg.visible_aliases(["delete-during", "del"]),
        _ => arg,
    };
    args(FormGroup::Deletion).map(alias)
}

fn args_of(option: &'static Definition) -> Vec<Arg> {
    match option.flag {
        // See `cli::filters`.
        Flag::Lines { .. } => Vec::new(),
        Flag::Several { name, value_name, help } => {
            let arg = Arg::new(name).long(name).value_name(value_name).help(help);
            let others = [&LINK_DEST, &COPY_DEST, &COMPARE_DEST].map(|other| other.flag.name());
            let others = others.into_iter().filter(|other| *other != name);
            let arg = arg.action(ArgAction::Append).value_parser(clap::value_parser!(std::ffi::OsString));
            vec![arg.conflicts_with_all(others)]
        }
        Flag::Switch { .. } => vec![Switch::option(option).arg()],
        Flag::Switches(flags) => flags.iter().map(|flag| word_arg(flag, flags)).collect(),
        Flag::Value { name, value_name, help } => {
            let arg = Arg::new(name).long(name).value_name(value_name);
            vec![match option.kind {
                Takes::Words(choices) => {
                    with_words(arg, choices().iter().map(|choice| (choice.word, choice.meaning)), help)
                }
                _ => arg.help(help).value_parser(clap::value_parser!(std::ffi::OsString)),
            }]
        }
    }
}

fn word_arg(flag: &WordFlag, flags: &'static [WordFlag]) -> Arg {
    let others = flags.iter().map(|other| other.name).filter(|other| *other != flag.name);
    let switch = match flag.letter {
        Some(letter) => Switch::short(letter, flag.name, flag.help),
        None => Switch::new(flag.name, flag.help),
    };
    let arg = switch.arg().conflicts_with_all(others);
    if let Some(alias) = flag.alias { arg.visible_alias(alias) } else { arg }
}

/// The options of a copy as the flags say them; but the paths of a list.
///
/// # Errors
/// A usage error that names the flag or the variable; digests that leave nothing to verify by.
pub fn asked(flags: &Flags) -> Result<AskedOptions, CommandError> {
    // No plain copy deletes anything.
    let has = |option: &&Definition| option.group != FormGroup::Deletion || flags.knows(option.flag.name());
    let mut asked = read(flags, OF_A_COPY.iter().filter(has))?;
    keep_all(flags, &mut asked);
    if flags.has(&ARCHIVE) || flags.has(&SPECIAL_FILES) {
        (asked.devices, asked.specials) = (true, true);
    }
    asked.digests().map_err(refused_digests)?;
    asked.references().map_err(CommandError::usage)?;
    asked.renames().map_err(CommandError::usage)?;
    asked.accounts().map_err(CommandError::usage)?;
    let is_more = asked.max_delete.is_some() || asked.allow_empty || asked.ignore_errors;
    if (is_more || asked.detect_renames.is_some()) && !asked.deletes() {
        say("note: --max-delete, --allow-empty, --ignore-errors and --detect-renames mean nothing without --delete");
    }
    Ok(asked)
}

/// What is compared, and which files, of a verb that copies nothing.
///
/// # Errors
/// As [`asked`].
pub fn asked_comparison(flags: &Flags) -> Result<AskedOptions, CommandError> {
    let mut asked = read(flags, OF_A_COMPARISON.iter().chain(OF_FILES))?;
    keep_all(flags, &mut asked);
    Ok(asked)
}

/// Asks for all attributes if the flag for that was given.
fn keep_all(flags: &Flags, asked: &mut AskedOptions) {
    if flags.has(&ARCHIVE) {
        (asked.owner, asked.group, asked.special_bits, asked.acls) = (true, true, true, true);
        asked.hard_links.get_or_insert(HardLinks::Keep);
        asked.xattrs.get_or_insert(KeptXattrs::User);
    }
}

/// Which files were asked for, of a verb that copies nothing.
///
/// # Errors
/// As [`asked`].
pub fn asked_files(flags: &Flags) -> Result<AskedOptions, CommandError> {
    read(flags, OF_FILES.iter())
}

fn read<'a>(flags: &Flags, options: impl Iterator<Item = &'a Definition>) -> Result<AskedOptions, CommandError> {
    let mut asked = AskedOptions::default();
    for option in options {
        if let Some(given) = flags.option(option) {
            given.check(|text| {
                check_unit(option, text)?;
                check_place(option, text)?;
                asked.set(option, text)
            })?;
        }
    }
    Ok(asked)
}

/// A rate of a bare number would be a thousand times what rsync makes of it; rclone's have words and times.
fn check_unit(option: &Definition, text: &str) -> Result<(), String> {
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte != b'0');
    match option.name == RATE_LIMIT.name {
        true if is_bare => Err(format!("{text} has no unit: write {text}K, which rsync takes it for, or {text}B")),
        true if text == "off" => Err("write 0 for no limit".to_owned()),
        true if text.contains([':', ',']) => Err(format!("{text}: one rate holds, for both ways and at all times")),
        _ => Ok(()),
    }
}

/// rclone has these directories on another host, and here one of that name would be made.
fn check_place(option: &Definition, text: &str) -> Result<(), String> {
    let is_one = [BACKUP_DIR, LINK_DEST, COPY_DEST, COMPARE_DEST].iter().any(|of| of.name == option.name);
    let place = text.split('\n').filter(|_| is_one).find(|line| {
        let host = line.split_once(':').filter(|(host, _)| !host.is_empty() && !host.contains('/'));
        // 12:30 is a time of day.
        let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
        host.is_some_and(|(host, path)| !(is_digit(host.bytes().last()) && is_digit(path.bytes().next())))
    });
    let where_it_is = if option.name == BACKUP_DIR.name { "below" } else { "relative to" };
    place
        .map_or(Ok(()), |place| Err(format!("{place} looks like a path on a host: name a directory {where_it_is} DST")))
}

/// The usage error of digests that leave nothing to verify by.
pub fn refused_digests(why: &'static str) -> CommandError {
    CommandError::usage(format!("--{why}")).hint("add --verify none if nothing shall be verified")
}

/// Those that other verbs have, too.
#[cfg(feature = "terminal")]
pub mod typed {
    use carrack_core::options::{self, Streams};
    use carrack_core::request::{CongestionControl, Digests, Encrypt};

    use crate::cli::flag::Value;

    pub const DIGEST: Value<Digests> = Value::option(&options::DIGEST);
    pub const STREAMS: Value<Streams> = Value::option(&options::STREAMS);
    pub const CONGESTION: Value<CongestionControl> = Value::option(&options::CONGESTION);
    pub const ENCRYPT: Value<Encrypt> = Value::words(&options::ENCRYPT);
}
