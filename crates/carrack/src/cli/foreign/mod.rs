//! Flags of other programs that people type from habit, and those of programs by whose names Carrack can be called:
//! what becomes of each, in one table for each place where they are typed.

#[cfg(feature = "terminal")]
mod bbcp;
mod copying;
mod globus;
#[cfg(feature = "terminal")]
mod globus_url_copy;
mod help_letter;
mod misread;
pub mod patterns;
mod rclone;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction};

use crate::error::CommandError;
#[cfg(feature = "terminal")]
pub use bbcp::BBCP_FLAGS;
use copying::COPYING_FLAGS;
pub use globus::FOREIGN_TASK_FLAGS;
#[cfg(feature = "terminal")]
pub use globus_url_copy::GLOBUS_URL_COPY_FLAGS;
pub use help_letter::parsed_as_meant;
use rclone::RCLONE_FLAGS;

/// Flags for copying.
pub const FOREIGN_FLAGS: &[ForeignFlag] = &{
    let mut all = [COPYING_FLAGS[0]; COPYING_FLAGS.len() + RCLONE_FLAGS.len()];
    let mut at = 0;
    while at < all.len() {
        let of_rclone = at >= COPYING_FLAGS.len();
        all[at] = if of_rclone { RCLONE_FLAGS[at - COPYING_FLAGS.len()] } else { COPYING_FLAGS[at] };
        at += 1;
    }
    all
};

/// What Carrack does with a flag of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignEffect {
    /// Carrack always does what it asks for: it is taken in silence.
    Always,
    /// The same, unless one of these flags of ours asks for the contrary: then it is refused.
    Unless(&'static [&'static str]),
    /// A letter that is taken in silence before other letters. Alone, or the last of them, it is refused: in another
    /// program a word follows it. These words of ours say what to type.
    Amid(&'static str),
    /// It is taken, and does what these words of ours do; they are empty where ours need none.
    Taken(&'static str),
    /// It is refused, and these words of ours do the same, or what comes nearest to it.
    Ours(&'static str),
    /// It is refused: nothing does that, and it is left out.
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

    /// The flags of ours without which it is taken in silence, if it is.
    const fn taken_without(&self) -> Option<&'static [&'static str]> {
        match self.effect {
            ForeignEffect::Always | ForeignEffect::Amid(_) => Some(&[]),
            ForeignEffect::Unless(contrary) => Some(contrary),
            _ => None,
        }
    }

    /// Whether it is taken before other letters alone.
    const fn is_amid(&self) -> bool {
        matches!(self.effect, ForeignEffect::Amid(_))
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

const fn unless(
    names: &'static [&'static str],
    whose: &'static str,
    why: &'static str,
    contrary: &'static [&'static str],
) -> ForeignFlag {
    ForeignFlag { names, whose, follows: Follows::Nothing, effect: ForeignEffect::Unless(contrary), why }
}

const fn amid(
    names: &'static [&'static str],
    whose: &'static str,
    why: &'static str,
    ours: &'static str,
) -> ForeignFlag {
    ForeignFlag { names, whose, follows: Follows::Nothing, effect: ForeignEffect::Amid(ours), why }
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

    /// How many words the verb has.
    const fn words(self) -> usize {
        match self {
            Self::Copy => 1,
            Self::Task => 2,
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
    let arg = |(row, contrary): (&ForeignFlag, &'static [&'static str])| {
        let mut arg = Arg::new(row.names[0]).hide(true).action(ArgAction::Count).conflicts_with_all(contrary);
        for name in row.names {
            arg = match name.strip_prefix("--") {
                Some(long) if arg.get_long().is_none() => arg.long(long),
                Some(long) => arg.alias(long),
                None => arg.short(name.chars().nth(1)),
            };
        }
        arg.help(row.why)
    };
    table.iter().filter_map(|row| row.taken_without().map(|contrary| (row, contrary))).map(arg).collect()
}

/// What is typed for a flag that nothing does.
pub const LEAVE_IT_OUT: &str = "leave it out";

/// What is said of a command line that has one of these flags in the place of ours. `parsed` is what clap says of it;
/// `arguments` are those of the line, the program's name and the verb included.
pub fn explain<T>(parsed: &Result<T, clap::Error>, arguments: &[OsString]) -> Option<CommandError> {
    let place = TypedAt::of(arguments)?;
    let before_paths = arguments.split(|argument| argument == "--").next().unwrap_or_default();
    // Tasks have none of these flags.
    let misread = (place == TypedAt::Copy).then(|| misread::value_of_theirs(before_paths)).flatten();
    if misread.is_some() {
        return misread;
    }
    let row_of = |typed: &str| row_of(place.table(), typed);
    let words = || before_paths.iter().filter_map(|argument| argument.to_str());
    // clap takes `-sync` for letters of flags, some of which we have: what was typed says more.
    let is_long = |word: &&str| word.len() > "-x".len() && word.starts_with('-') && !word.starts_with("--");
    let word = words().filter(is_long).find_map(|word| row_of(word).or_else(|| row_of_globus_url_copy(place, word)));
    let word = word.or_else(|| words().find_map(|word| row_of(&last_letter(word)?)).filter(|(_, row)| row.is_amid()));
    let (name, row) = match (word, parsed) {
        (Some(word), _) => word,
        (None, Err(refusal)) => match refusal.kind() {
            // One that takes no value here, and was given one.
            ErrorKind::UnknownArgument | ErrorKind::TooManyValues => {
                let unknown = text_of(refusal, ContextKind::InvalidArg)?;
                row_of(unknown).or_else(|| row_of_bbcp(place, unknown)).or_else(|| row_of_copying(place, unknown))?
            }
            ErrorKind::ArgumentConflict => return contrary(place, refusal),
            _ => return None,
        },
        (None, _) => return None,
    };
    // What a copy does is not what a task does.
    if row_of_copying(place, name).is_some() {
        let why = format!("{name} is a flag of {}, and tasks have none of this name", row.whose);
        return Some(CommandError::usage(why).hint(LEAVE_IT_OUT));
    }
    let error = CommandError::usage(format!("{name} is a flag of {}: here, {}", row.whose, row.why));
    let error = match row.effect {
        ForeignEffect::Ours(ours)
        | ForeignEffect::Amid(ours)
        | ForeignEffect::Taken(ours)
        | ForeignEffect::Different(ours)
            if !ours.is_empty() =>
        {
            error.hint(ours)
        }
        _ => error.hint(LEAVE_IT_OUT),
    };
    // The row is of a line of that program's own.
    Some(match (row.effect, row.whose) {
        (ForeignEffect::Always | ForeignEffect::Taken(_), GLOBUS_URL_COPY | BBCP) => {
            error.hint("carrack names DIR makes a link of that name, which takes its lines")
        }
        _ => error,
    })
}

fn text_of(refusal: &clap::Error, kind: ContextKind) -> Option<&str> {
    let text = match refusal.get(kind)? {
        ContextValue::String(text) => text,
        ContextValue::Strings(texts) => texts.first()?,
        _ => return None,
    };
    // Flags that are counted have these behind their names.
    Some(text.trim_end_matches("..."))
}

/// What is said of a flag of theirs that one of ours contradicts.
fn contrary(place: TypedAt, refusal: &clap::Error) -> Option<CommandError> {
    let two = [text_of(refusal, ContextKind::InvalidArg)?, text_of(refusal, ContextKind::PriorArg)?];
    let is_theirs = |typed: &&str| {
        row_of(place.table(), typed).is_some_and(|(_, row)| matches!(row.effect, ForeignEffect::Unless(_)))
    };
    two.iter().find(|typed| is_theirs(typed))?;
    let error = CommandError::usage(format!("{} and {} contradict each other", two[0], two[1]));
    Some(match two.contains(&"--archive") {
        true => error.hint("leave -a out, and name what is to be kept: -o -g -p -D -H -A --user-xattrs"),
        false => error.hint("leave one of them out"),
    })
}

/// The last letter of several behind one dash, as a flag: nothing where another of them takes what follows it.
fn last_letter(word: &str) -> Option<String> {
    let letters = word.strip_prefix('-')?;
    let are_flags = letters.bytes().all(|letter| letter.is_ascii_alphanumeric() && !matches!(letter, b'e' | b'f'));
    letters.chars().last().filter(|_| are_flags).map(|last| format!("-{last}"))
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

/// A word of globus-url-copy, where Carrack copies. Shorter ones are letters of ours, too: `-vb`, `-rp`; but no letter
/// stands there twice.
#[cfg(feature = "terminal")]
fn row_of_globus_url_copy(place: TypedAt, typed: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    row_of(GLOBUS_URL_COPY_FLAGS, typed).filter(|(name, _)| place == TypedAt::Copy && is_a_word(name))
}

#[cfg(feature = "terminal")]
fn is_a_word(name: &str) -> bool {
    let letters = name.as_bytes();
    letters.len() > "-xx".len() || (letters.len() == "-xx".len() && letters[1] == letters[2])
}

/// The slim program knows none.
#[cfg(not(feature = "terminal"))]
fn row_of_globus_url_copy(_: TypedAt, _: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    None
}

/// clap's tip would have a flag that it does not know copied as a file. Whoever means a file is told how it is typed.
/// Nor is a flag a tip that has no effect.
pub fn tell_no_file(refusal: &mut clap::Error) {
    let has_effect = |typed: &str| {
        let mut rows = [FOREIGN_FLAGS, FOREIGN_TASK_FLAGS].into_iter().filter_map(|table| row_of(table, typed));
        rows.all(|(_, row)| row.taken_without().is_none())
    };
    if text_of(refusal, ContextKind::SuggestedArg).is_some_and(|similar| !has_effect(similar)) {
        refusal.remove(ContextKind::SuggestedArg);
    }
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
mod tests;
