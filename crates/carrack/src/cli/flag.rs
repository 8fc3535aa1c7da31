//! What a flag is: a constant with its name, its help and, where it takes a value, what reads that value.
//!
//! A verb's file defines its flags, puts each into its clap command by `arg`, and reads each from
//! [`Flags`](super::flags::Flags) by the same constant. So a misspelt flag does not compile, and one that the verb's
//! command lacks panics in debug builds.
//!
//! clap sees values as uninterpreted bytes: a value may also come from `CARRACK_<FLAG>`, and both ways have to be
//! parsed by the same code and blamed by the right name.

use std::ffi::{OsStr, OsString};

use carrack_core::options::Definition;
use carrack_core::words::{Word, meanings, parse_among};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, ArgAction, Command};

/// A flag without a value.
pub struct Switch {
    /// Its long name, without dashes.
    pub name: &'static str,
    letter: Option<char>,
    help: &'static str,
}

impl Switch {
    /// The flag of an option of a copy.
    pub const fn option(definition: &Definition) -> Self {
        let flag = &definition.flag;
        Self { name: flag.name(), letter: flag.letter(), help: flag.help() }
    }

    /// A flag with a long name alone.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, letter: None, help }
    }

    /// A flag with a letter as well.
    pub const fn short(letter: char, name: &'static str, help: &'static str) -> Self {
        Self { name, letter: Some(letter), help }
    }

    /// The flag as clap knows it.
    pub fn arg(&self) -> Arg {
        with_letter(Arg::new(self.name).long(self.name).help(self.help).action(ArgAction::SetTrue), self.letter)
    }
}

/// A flag with a value; `CARRACK_<FLAG>` may give it instead.
pub struct Value<T: 'static> {
    /// Its long name, without dashes.
    pub name: &'static str,
    letter: Option<char>,
    value_name: &'static str,
    help: &'static str,
    read: Read<T>,
}

/// What makes a value of text, or of bytes.
enum Read<T: 'static> {
    Text(fn(&str) -> Result<T, String>),
    Bytes(fn(Vec<u8>) -> T),
    /// One of a few words, which stand in the help text before its own.
    Word {
        among: &'static [T],
        parse: fn(&str, &[T]) -> Result<T, String>,
        meant: fn(&T) -> (&'static str, &'static str),
    },
}

impl<T> Value<T> {
    /// A flag whose value is parsed from text. A parser says what is wrong, not where.
    pub const fn new(
        name: &'static str,
        value_name: &'static str,
        parse: fn(&str) -> Result<T, String>,
        help: &'static str,
    ) -> Self {
        Self { name, letter: None, value_name, help, read: Read::Text(parse) }
    }

    /// The same flag with a letter as well.
    #[must_use]
    pub const fn letter(mut self, letter: char) -> Self {
        self.letter = Some(letter);
        self
    }

    /// The flag as clap knows it. A value that starts with a dash is written `--flag=-value`.
    pub fn arg(&self) -> Arg {
        let arg = Arg::new(self.name).long(self.name).value_name(self.value_name);
        let arg = match &self.read {
            Read::Text(_) | Read::Bytes(_) => arg.help(self.help).value_parser(clap::value_parser!(OsString)),
            Read::Word { among, meant, .. } => with_words(arg, among.iter().map(*meant), self.help),
        };
        with_letter(arg, self.letter)
    }

    /// Makes the value.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&self, value: Vec<u8>) -> Result<T, String> {
        match &self.read {
            Read::Text(parse) => parse(&text_of(value)?),
            Read::Word { among, parse, .. } => parse(&text_of(value)?, among),
            Read::Bytes(make) => Ok(make(value)),
        }
    }
}

#[cfg(feature = "terminal")]
impl<V: carrack_core::options::OptionValue> Value<V> {
    /// The flag of an option of a copy.
    pub const fn option(definition: &Definition) -> Self {
        let flag = &definition.flag;
        Self::new(flag.name(), flag.value_name(), V::parse, flag.help())
    }
}

impl Value<Vec<u8>> {
    /// A flag whose value is a path: any bytes.
    pub const fn path(name: &'static str, value_name: &'static str, help: &'static str) -> Self {
        Self { name, letter: None, value_name, help, read: Read::Bytes(|bytes| bytes) }
    }
}

impl<W: Word> Value<W> {
    /// A flag whose value is one of a few words. Its help text begins with their meanings; shells complete them.
    pub const fn word(name: &'static str, value_name: &'static str, among: &'static [W], help: &'static str) -> Self {
        Self {
            name,
            letter: None,
            value_name,
            help,
            read: Read::Word { among, parse: parse_among, meant: |word| (word.name(), word.meaning()) },
        }
    }
}

#[cfg(feature = "terminal")]
impl<W: Word> Value<W> {
    /// The flag of an option of a copy that is one of a few words.
    pub const fn words(definition: &Definition) -> Self {
        Self::word(definition.flag.name(), definition.flag.value_name(), W::ALL, definition.flag.help())
    }
}

/// The text of a value.
///
/// # Errors
/// What is wrong with it.
pub fn text_of(value: Vec<u8>) -> Result<String, String> {
    String::from_utf8(value).map_err(|_| "the value is not UTF-8".to_owned())
}

/// A flag whose value is one of a few words, each with its meaning: they stand before its help, and shells complete
/// them.
pub fn with_words(arg: Arg, words: impl Iterator<Item = (&'static str, &'static str)>, help: &str) -> Arg {
    let words: Vec<_> = words.collect();
    let named = words.iter().map(|(word, meaning)| PossibleValue::new(*word).help(*meaning)).collect();
    arg.help(format!("{}\n{help}", meanings(&words))).value_parser(Named(named)).hide_possible_values(true)
}

fn with_letter(arg: Arg, letter: Option<char>) -> Arg {
    match letter {
        Some(letter) => arg.short(letter),
        None => arg,
    }
}

/// Takes any bytes, and can name the words that will be good.
#[derive(Clone)]
struct Named(Vec<PossibleValue>);

impl TypedValueParser for Named {
    type Value = OsString;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().cloned()))
    }
}

/// An argument without dashes: one location, or several.
pub struct Positional {
    /// What clap knows it by.
    pub name: &'static str,
    value_name: &'static str,
    several: bool,
}

impl Positional {
    /// Exactly one: a second is refused, not taken instead of the first.
    pub const fn one(name: &'static str, value_name: &'static str) -> Self {
        Self { name, value_name, several: false }
    }

    /// One or more.
    pub const fn several(name: &'static str, value_name: &'static str) -> Self {
        Self { name, value_name, several: true }
    }

    /// The argument as clap knows it; not required.
    pub fn arg(&self) -> Arg {
        let arg = Arg::new(self.name).value_name(self.value_name).value_parser(clap::value_parser!(OsString));
        if self.several { arg.num_args(1..).action(ArgAction::Append) } else { arg }
    }
}
