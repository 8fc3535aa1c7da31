//! Flags of other programs that people type from habit, and those of programs by whose names Carrack can be called:
//! what becomes of each, in one table for each place where they are typed.

#[cfg(feature = "terminal")]
mod bbcp;
mod copying;
#[cfg(feature = "terminal")]
mod globus_url_copy;
mod misread;

use std::ffi::OsString;

use carrack_core::duration::parse_duration;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction};

use crate::error::CommandError;
#[cfg(feature = "terminal")]
pub use bbcp::BBCP_FLAGS;
pub use copying::{FOREIGN_FLAGS, FOREIGN_TASK_FLAGS};
#[cfg(feature = "terminal")]
pub use globus_url_copy::GLOBUS_URL_COPY_FLAGS;

/// What Carrack does with a flag of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignEffect {
    /// Carrack always does what it asks for: it is taken in silence.
    Always,
    /// It is taken, and does what these words of ours do; they are empty where ours need none.
    Taken(&'static str),
    /// It is refused, and these words of ours do the same, or what comes nearest to it.
    Ours(&'static str),
    /// It is refused: nothing does that.
    Refused,
    /// A flag of ours has this name and does what the reason says; these words of ours do what theirs does.
    Different(&'static str),
}

/// A flag of another program.
#[derive(Clone, Copy, Debug)]
pub struct ForeignFlag {
    /// Its spellings, with their dashes.
    pub names: &'static [&'static str],
    /// Which programs have it.
    pub whose: &'static str,
    /// What follows it on a line of its own program.
    #[cfg_attr(
        not(feature = "terminal"),
        allow(dead_code, reason = "old names are for people, and the slim build has none")
    )]
    pub follows: Follows,
    /// What becomes of it.
    pub effect: ForeignEffect,
    /// Why, as the end of a sentence.
    pub why: &'static str,
}

/// What follows a flag on the line of the program that has it.
#[cfg_attr(
    not(feature = "terminal"),
    allow(dead_code, reason = "old names are for people, and the slim build has none")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Nothing that is its own.
    Nothing,
    /// A word, whatever it is.
    Word,
    /// A word of this kind, where there is one.
    #[cfg_attr(not(feature = "terminal"), allow(dead_code, reason = "only lines of other programs have such flags"))]
    Perhaps(WordKind),
}

/// The words that a flag takes which can do without one.
#[cfg_attr(not(feature = "terminal"), allow(dead_code, reason = "only lines of other programs have such flags"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// All that begin with no dash.
    NoFlag,
    /// Numbers.
    Number,
    /// Of these letters alone.
    Letters(&'static str),
    /// Settings such as `i=5`, and the path of a lock file.
    Settings,
}

impl ForeignFlag {
    /// The same flag, behind which a word follows.
    #[cfg_attr(
        not(feature = "terminal"),
        allow(dead_code, reason = "old names are for people, and the slim build has none")
    )]
    const fn word(mut self) -> Self {
        self.follows = Follows::Word;
        self
    }

    /// The same flag, behind which a word of a kind may follow.
    #[cfg(feature = "terminal")]
    const fn perhaps(mut self, kind: WordKind) -> Self {
        self.follows = Follows::Perhaps(kind);
        self
    }
}

const fn always(names: &'static [&'static str], whose: &'static str, why: &'static str) -> ForeignFlag {
    ForeignFlag { names, whose, follows: Follows::Nothing, effect: ForeignEffect::Always, why }
}

const fn ours(
    names: &'static [&'static str],
    whose: &'static str,
    why: &'static str,
    ours: &'static str,
) -> ForeignFlag {
    ForeignFlag { names, whose, follows: Follows::Nothing, effect: ForeignEffect::Ours(ours), why }
}

const fn taken_as(
    names: &'static [&'static str],
    whose: &'static str,
    why: &'static str,
    ours: &'static str,
) -> ForeignFlag {
    ForeignFlag { names, whose, follows: Follows::Nothing, effect: ForeignEffect::Taken(ours), why }
}

const fn different(
    names: &'static [&'static str],
    whose: &'static str,
    why: &'static str,
    ours: &'static str,
) -> ForeignFlag {
    ForeignFlag { names, whose, follows: Follows::Nothing, effect: ForeignEffect::Different(ours), why }
}

const fn refused(names: &'static [&'static str], whose: &'static str, why: &'static str) -> ForeignFlag {
    ForeignFlag { names, whose, follows: Follows::Nothing, effect: ForeignEffect::Refused, why }
}

/// Where flags of others are typed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TypedAt {
    Copy,
    Task,
}

impl TypedAt {
    /// By the verb of a command line; `None` at all others.
    fn of(arguments: &[OsString]) -> Option<Self> {
        let word = |at: usize| arguments.get(at).and_then(|word| word.to_str());
        match (word(1), word(2)) {
            (Some("copy" | "cp" | "sync"), _) => Some(Self::Copy),
            (Some("task"), Some("submit" | "preview")) | (Some("timer"), Some("create")) => Some(Self::Task),
            _ => None,
        }
    }

    fn table(self) -> &'static [ForeignFlag] {
        match self {
            Self::Copy => FOREIGN_FLAGS,
            Self::Task => FOREIGN_TASK_FLAGS,
        }
    }
}

/// The flags of a table that are taken in silence, as clap knows them.
pub fn taken(table: &[ForeignFlag]) -> Vec<Arg> {
    let rows = table.iter().filter(|row| row.effect == ForeignEffect::Always);
    let arg = |row: &ForeignFlag| {
        let mut arg = Arg::new(row.names[0]).hide(true).action(ArgAction::Count);
        for name in row.names {
            arg = match name.strip_prefix("--") {
                Some(long) if arg.get_long().is_none() => arg.long(long),
                Some(long) => arg.alias(long),
                None => arg.short(name.chars().nth(1)),
            };
        }
        arg.help(row.why)
    };
    rows.map(arg).collect()
}

/// What is said of a command line that has one of these flags in the place of ours. `parsed` is what clap says of it;
/// `arguments` are those of the line, the program's name and the verb included.
pub fn explain<T>(parsed: &Result<T, clap::Error>, arguments: &[OsString]) -> Option<CommandError> {
    let place = TypedAt::of(arguments)?;
    // A time that is not joined to its flag would be a source.
    let apart = arguments.windows(2).find_map(|pair| {
        let time = pair[1].to_str().filter(|time| pair[0] == "--stats" && parse_duration(time).is_ok())?;
        Some(CommandError::usage(format!("--stats: the time is joined to it: --stats={time}")))
    });
    let before_paths = arguments.split(|argument| argument == "--").next().unwrap_or_default();
    let misread = || before_paths.windows(2).find_map(|pair| misread::value_of_theirs(&pair[0], &pair[1]));
    // Tasks have none of these letters.
    let misread = apart.or_else(|| (place == TypedAt::Copy).then(misread).flatten());
    if misread.is_some() {
        return misread;
    }
    let row_of = |typed: &str| row_of(place.table(), typed);
    let words = arguments.iter().filter_map(|argument| argument.to_str()).take_while(|argument| *argument != "--");
    // clap takes `-sync` for letters of flags, some of which we have: what was typed says more.
    let mut long_words =
        words.filter(|word| word.len() > "-x".len() && word.starts_with('-') && !word.starts_with("--"));
    let word = long_words.find_map(|word| row_of(word).or_else(|| row_of_globus_url_copy(place, word)));
    let (name, row) = match (word, parsed) {
        (Some(word), _) => word,
        (None, Err(refusal)) if refusal.kind() == ErrorKind::UnknownArgument => {
            let Some(ContextValue::String(unknown)) = refusal.get(ContextKind::InvalidArg) else { return None };
            row_of(unknown).or_else(|| row_of_bbcp(place, unknown)).or_else(|| row_of_copying(place, unknown))?
        }
        (None, _) => return None,
    };
    // What a copy does is not what a task does.
    if row_of_copying(place, name).is_some() {
        return Some(CommandError::usage(format!(
            "{name} is a flag of {}, and tasks have none of this name",
            row.whose
        )));
    }
    let error = CommandError::usage(format!("{name} is a flag of {}: here, {}", row.whose, row.why));
    Some(match row.effect {
        ForeignEffect::Ours(ours) => error.hint(ours),
        // The row is of a line of that program's own.
        ForeignEffect::Taken(ours) if matches!(row.whose, GLOBUS_URL_COPY | BBCP) => {
            let error = if ours.is_empty() { error } else { error.hint(ours) };
            error.hint("carrack names DIR makes a link of that name, which takes its lines")
        }
        ForeignEffect::Different(ours) if !ours.is_empty() => error.hint(ours),
        ForeignEffect::Always | ForeignEffect::Taken(_) | ForeignEffect::Refused | ForeignEffect::Different(_) => error,
    })
}

/// The names that rows of lines of these programs have.
const GLOBUS_URL_COPY: &str = "globus-url-copy";
const BBCP: &str = "bbcp";

/// What a copy says of a flag that a task lacks.
fn row_of_copying(place: TypedAt, typed: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    let is_lacking = |name: &&str| FOREIGN_TASK_FLAGS.iter().all(|row| !row.names.contains(name));
    row_of(FOREIGN_FLAGS, typed).filter(|(name, _)| place == TypedAt::Task && is_lacking(name))
}

/// A flag of bbcp, where Carrack copies and has none of this name.
#[cfg(feature = "terminal")]
fn row_of_bbcp(place: TypedAt, typed: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    row_of(BBCP_FLAGS, typed).filter(|_| place == TypedAt::Copy)
}

/// The slim program knows none.
#[cfg(not(feature = "terminal"))]
fn row_of_bbcp(_: TypedAt, _: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    None
}

/// A word of globus-url-copy, where Carrack copies. Shorter ones are letters of ours, too: `-vb`, `-rp`.
#[cfg(feature = "terminal")]
fn row_of_globus_url_copy(place: TypedAt, typed: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    let is_copy = place == TypedAt::Copy;
    row_of(GLOBUS_URL_COPY_FLAGS, typed).filter(|(name, _)| is_copy && name.len() >= "-rst".len())
}

/// The slim program knows none.
#[cfg(not(feature = "terminal"))]
fn row_of_globus_url_copy(_: TypedAt, _: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    None
}

/// clap's tip would have a flag that it does not know copied as a file. Whoever means a file is told how it is typed.
pub fn tell_no_file(refusal: &mut clap::Error) {
    if refusal.remove(ContextKind::Suggested).is_some()
        && let Some(ContextValue::String(unknown)) = refusal.get(ContextKind::InvalidArg)
    {
        let tip = format!("a path that begins with a dash is typed ./{unknown}");
        refusal.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

fn row_of(table: &'static [ForeignFlag], typed: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    let bare = typed.split_once('=').map_or(typed, |(name, _)| name);
    table.iter().find_map(|row| {
        let name = row.names.iter().find(|name| **name == typed || **name == bare)?;
        Some((*name, row))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::command::whole_tree;

    /// The verbs that have foreign flags, and whose they are.
    const VERBS: [(&[&str], &[ForeignFlag]); 2] =
        [(&["copy"], FOREIGN_FLAGS), (&["task", "submit"], FOREIGN_TASK_FLAGS)];

    fn refusal(verb: &[&str], words: &[&str]) -> Result<(), CommandError> {
        let line: Vec<OsString> = ["carrack"].iter().chain(verb).chain(words).map(OsString::from).collect();
        let parsed = whole_tree().try_get_matches_from(&line);
        match (explain(&parsed, &line), parsed) {
            (Some(error), _) => Err(error),
            (None, Ok(_)) => Ok(()),
            (None, Err(refusal)) => panic!("{words:?}: {refusal}"),
        }
    }

    /// The verb's own flags.
    fn flags_of(verb: &[&str]) -> Vec<Arg> {
        let (mut tree, mut flags) = (whole_tree(), Vec::new());
        for word in verb {
            tree = tree.find_subcommand(word).unwrap().clone();
            // What holds for all below stands above.
            flags.extend(tree.get_arguments().cloned());
        }
        flags
    }

    #[test]
    fn each_flag_is_taken_or_answered_by_its_row() {
        for (verb, table) in VERBS {
            let (mut seen, own) = (BTreeSet::new(), flags_of(verb));
            for (row, name) in table.iter().flat_map(|row| row.names.iter().map(move |name| (row, *name))) {
                assert!(seen.insert(name), "{name} stands twice");
                if let ForeignEffect::Different(_) = row.effect {
                    let is_it = |flag: &&Arg| {
                        flag.get_long() == name.strip_prefix("--") || flag.get_short() == name.chars().nth(1)
                    };
                    assert!(own.iter().any(|flag| is_it(&flag) && !flag.is_hide_set()) || name == "-h", "{name}");
                    continue;
                }
                if let ForeignEffect::Taken(_) = row.effect {
                    let flag = own.iter().find(|flag| flag.get_long() == name.strip_prefix("--"));
                    assert!(flag.is_some_and(Arg::is_hide_set), "{name}");
                    continue;
                }
                match (refusal(verb, &[name, "a", "b"]), row.effect) {
                    (Ok(()), ForeignEffect::Always) => {}
                    (Err(error), ForeignEffect::Ours(_) | ForeignEffect::Refused) => {
                        assert!(error.failure.why.contains(row.why) && error.failure.why.starts_with(name), "{name}");
                    }
                    (answer, effect) => panic!("{name}: {effect:?}, and {answer:?}"),
                }
            }
        }
    }

    fn check_all_are_answered(flags: &str) {
        for flag in flags.lines() {
            let words = match flag.split_once('=') {
                Some((flag, "")) => vec![flag, "1"],
                Some((flag, given)) => vec![flag, given],
                None => vec![flag],
            };
            for verb in ["copy", "sync"] {
                let words = [&["carrack", verb][..], &words, &["a", "b"]].concat();
                let line: Vec<OsString> = words.iter().map(OsString::from).collect();
                let parsed = whole_tree().try_get_matches_from(&line);
                let is_unknown = parsed.as_ref().is_err_and(|why| why.kind() == ErrorKind::UnknownArgument);
                assert!(!is_unknown || explain(&parsed, &line).is_some(), "{verb} {flag}");
            }
        }
    }

    /// Each flag that rsync 3.5 helps with is ours, is taken, or is refused by its row.
    #[test]
    fn each_flag_of_rsync_is_answered() {
        check_all_are_answered(include_str!("../../../tests/golden/rsync-3.5-flags.txt"));
    }

    /// Each flag of scp of OpenSSH 9.2 is ours, is taken, or is answered by its row; and what follows it there is never
    /// a source.
    #[test]
    fn each_flag_of_scp_is_answered() {
        let flags = include_str!("../../../tests/golden/scp-9.2-flags.txt");
        check_all_are_answered(flags);
        for (flag, value) in flags.lines().filter_map(|line| line.split_once('=')) {
            let error = refusal(&["copy"], &[flag, value, "a", "b"]).expect_err("a flag of scp");
            assert!(!error.hints.is_empty(), "{flag}: {error}");
        }
    }

    /// Each flag of bbcp has a row where Carrack copies, or means the same there.
    #[cfg(feature = "terminal")]
    #[test]
    fn each_flag_of_bbcp_is_answered_where_carrack_copies() {
        let own = flags_of(&["copy"]);
        let same = |name: &str| {
            matches!(name, "-p" | "-r" | "-v" | "-h" | "--help")
                || own.iter().any(|arg| arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long)))
        };
        for name in BBCP_FLAGS.iter().flat_map(|row| row.names).filter(|name| !same(name)) {
            if row_of(FOREIGN_FLAGS, name).is_some() {
                continue;
            }
            let error = refusal(&["copy"], &[name, "a", "b"]).expect_err(name);
            assert!(error.failure.why.starts_with(&format!("{name} is a flag of bbcp: here, ")), "{error}");
        }
    }

    /// Each flag of `globus transfer` is one of a task, is taken, or is answered by its row.
    #[cfg(feature = "service")]
    #[test]
    fn each_flag_of_globus_is_answered_where_a_task_is_submitted() {
        for flag in include_str!("../../../tests/golden/globus-transfer-flags.txt").lines() {
            let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
            let value = value.map(|value| if value.is_empty() { "1" } else { value });
            let line = ["carrack", "task", "submit", name].into_iter().chain(value).chain(["@a:/x", "@b:/y"]);
            let line: Vec<OsString> = line.map(OsString::from).collect();
            let parsed = whole_tree().try_get_matches_from(&line);
            let is_unknown = parsed.as_ref().is_err_and(|why| why.kind() == ErrorKind::UnknownArgument);
            assert!(!is_unknown || explain(&parsed, &line).is_some(), "{flag}");
        }
        let told = refusal(&["task", "submit"], &["--sparse", "@a:/x", "@b:/y"]).expect_err("no flag of tasks");
        assert_eq!(told.failure.why, "--sparse is a flag of rsync, and tasks have none of this name");
    }

    /// Each flag that rclone 1.60 has for all its verbs is ours, is taken, or is answered by its row.
    #[test]
    fn each_flag_of_rclone_is_answered() {
        check_all_are_answered(include_str!("../../../tests/golden/rclone-1.60-flags.txt"));
    }

    #[cfg(feature = "terminal")]
    #[test]
    fn words_of_globus_url_copy_are_answered_where_carrack_copies() {
        for row in GLOBUS_URL_COPY_FLAGS {
            for name in row.names.iter().filter(|name| name.len() >= 4) {
                let error = refusal(&["copy"], &[name, "a", "b"]).expect_err("a flag of globus-url-copy");
                assert!(error.failure.why.starts_with(name), "{name}: {}", error.failure.why);
                assert!(error.failure.why.contains("globus-url-copy"), "{name}: {}", error.failure.why);
            }
        }
    }

    #[test]
    fn words_of_ours_are_words_that_we_have() {
        for (verb, table) in VERBS {
            let known = |own: &[Arg], word: &str| match word.strip_prefix("--") {
                // A value may be joined to it.
                Some(long) => own.iter().any(|arg| arg.get_long() == long.split('=').next()),
                None => own.iter().any(|arg| arg.get_short() == word.chars().nth(1)),
            };
            for row in table {
                let (ForeignEffect::Ours(ours) | ForeignEffect::Taken(ours) | ForeignEffect::Different(ours)) =
                    row.effect
                else {
                    continue;
                };
                // Another verb may be what does it.
                let other = ours.strip_prefix("carrack ").unwrap_or_default();
                let is_verb = |word: &&str| !word.starts_with('-') && !word.starts_with(char::is_uppercase);
                let other: Vec<&str> = other.split(' ').take_while(is_verb).collect();
                let own = flags_of(if ours.starts_with("carrack ") { &other } else { verb });
                // What is quoted is for ssh, or a rule.
                let plain = ours.split('\'').step_by(2).flat_map(|part| part.split([' ', ',']));
                for word in plain.filter(|word| word.starts_with('-') && word.len() > 1) {
                    assert!(known(&own, word), "{ours}");
                }
            }
        }
    }

    #[test]
    fn values_and_words_with_one_dash_are_found() {
        for (words, name) in [
            (&["--temp-dir=../x", "a", "b"][..], "--temp-dir"),
            (&["-dbg", "a", "b"], "-dbg"),
            (&["-avN", "a", "b"], "-N"),
            (&["-a", "--delete", "a", "b"], "--delete"),
            (&["-r", "-tcp-bs=4M", "a", "b"], "-tcp-bs"),
            (
                &["-i", "/home/u/.ssh/key", "a", "host:b"],
                "-i prints what changes, and /home/u/.ssh/key would be copied",
            ),
            (&["-i", "id_ed25519", "a", "host:b"], "-i prints what changes"),
            (&["--stats", "5s", "a", "b"], "--stats: the time is joined to it: --stats=5s"),
        ] {
            let error = refusal(&["copy"], words).expect_err("a foreign flag");
            assert!(error.failure.why.starts_with(name), "{words:?}: {}", error.failure.why);
        }
    }
}
