//! The value of a flag: from the command line, else from `CARRACK_<FLAG>`, and which of the two to blame.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use carrack_core::location::Location;
use carrack_core::options::{Definition, Flag};
use clap::ArgMatches;
use clap::parser::MatchesError;

use super::flag::{Positional, Switch, Value, text_of};
use super::location::{parse_location, parse_named};
use crate::error::CommandError;

/// Asked for a variable; `None` if it is not set. A function, so that tests need not change the process's own.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variable of a flag.
pub fn variable(name: &str) -> String {
    format!("CARRACK_{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// The flags of one verb, as they were given.
#[derive(Clone, Copy)]
pub struct Flags<'a> {
    matches: &'a ArgMatches,
    environment: Environment<'a>,
}

/// A value, and where it was given.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    /// `--streams` or `CARRACK_STREAMS`.
    pub origin: String,
    /// The value as it was typed.
    pub value: Vec<u8>,
}

impl<'a> Flags<'a> {
    /// The flags in `matches`, with `environment` behind them.
    pub fn new(matches: &'a ArgMatches, environment: Environment<'a>) -> Self {
        Self { matches, environment }
    }

    /// The verb below this one, and its flags.
    pub fn subcommand(&self) -> Option<(&'a str, Self)> {
        let (name, matches) = self.matches.subcommand()?;
        Some((name, Self { matches, ..*self }))
    }

    /// Whether a flag without a value was given.
    pub fn has(&self, flag: &Switch) -> bool {
        self.is_on(flag.name)
    }

    /// The same of a flag that the verb may lack: then it was not given.
    pub fn has_if_known(&self, flag: &Switch) -> bool {
        matches!(self.matches.try_get_one::<bool>(flag.name), Ok(Some(true)))
    }

    fn is_on(&self, name: &str) -> bool {
        self.typed::<bool>(name).next() == Some(&true)
    }

    /// Whether the verb has a flag.
    pub fn knows(&self, name: &str) -> bool {
        self.matches.try_contains_id(name).is_ok()
    }

    /// What was given for an option that copies have: `true` for a flag without a value, its word for that of a word.
    pub fn option(&self, option: &Definition) -> Option<Given> {
        let given = |name: &str, value: &str| Given { origin: format!("--{name}"), value: value.into() };
        match option.flag {
            Flag::Value { name, .. } => self.value(name),
            Flag::Several { name, .. } => self.lines(name),
            // Whoever takes such a flag reads all of its values.
            Flag::Lines { .. } => None,
            Flag::Switch { name, .. } => self.is_on(name).then(|| given(name, "true")),
            // clap has refused more than one of them.
            Flag::Switches(flags) => {
                flags.iter().find(|flag| self.is_on(flag.name)).map(|flag| given(flag.name, flag.word))
            }
        }
    }

    /// All values of a flag, each as a line. One that is two lines itself is none.
    fn lines(&self, name: &str) -> Option<Given> {
        let one =
            |value: &OsString| value.as_bytes().iter().map(|&byte| if byte == b'\n' { 0 } else { byte }).collect();
        let typed: Vec<Vec<u8>> = self.typed::<OsString>(name).map(one).collect();
        let given = (!typed.is_empty()).then(|| Given { origin: format!("--{name}"), value: typed.join(&b'\n') });
        given.or_else(|| self.set(name))
    }

    /// How often a counted flag was given.
    pub fn count(&self, flag: &Switch) -> u8 {
        self.typed::<u8>(flag.name).next().copied().unwrap_or(0)
    }

    /// The bytes of a value. An empty variable counts as not set, as is usual for the environment.
    pub fn given<T>(&self, flag: &Value<T>) -> Option<Given> {
        self.value(flag.name)
    }

    fn value(&self, name: &str) -> Option<Given> {
        self.typed::<OsString>(name).next().map(|value| Given::by_flag(name, value)).or_else(|| self.set(name))
    }

    /// A value.
    ///
    /// # Errors
    /// A usage error that names the flag or the variable.
    pub fn get<T>(&self, flag: &Value<T>) -> Result<Option<T>, CommandError> {
        self.given(flag).map(|given| given.read(flag)).transpose()
    }

    /// All values of a flag that may be given several times; each may be a list with commas, as the variable's is.
    ///
    /// # Errors
    /// As [`Flags::get`].
    pub fn all<T>(&self, flag: &Value<T>) -> Result<Vec<T>, CommandError> {
        let mut given: Vec<Given> =
            self.typed::<OsString>(flag.name).map(|value| Given::by_flag(flag.name, value)).collect();
        if given.is_empty() {
            given.extend(self.set(flag.name));
        }
        given.iter().flat_map(|given| given.split(b',')).map(|given| given.read(flag)).collect()
    }

    /// The values of several flags that may be given again and again, in the order in which they were typed, each with
    /// the name of its flag; those of the environment last.
    pub fn in_order(&self, names: &[&'static str]) -> Vec<(&'static str, Given)> {
        let mut typed = Vec::new();
        for name in names {
            let places = self.matches.indices_of(name).into_iter().flatten();
            let values = self.typed::<OsString>(name).map(|value| Given::by_flag(name, value));
            typed.extend(places.zip(values).map(|(place, given)| (place, *name, given)));
        }
        typed.sort_by_key(|(place, ..)| *place);
        let mut given: Vec<_> = typed.into_iter().map(|(_, name, given)| (name, given)).collect();
        for name in names {
            if given.iter().all(|(typed, _)| typed != name) {
                given.extend(self.set(name).map(|set| (*name, set)));
            }
        }
        given
    }

    /// The words of an argument without dashes, as typed and in order.
    pub fn words(&self, positional: &Positional) -> impl Iterator<Item = &'a OsString> {
        self.typed::<OsString>(positional.name)
    }

    /// The locations of an argument without dashes, in order.
    ///
    /// # Errors
    /// A usage error that shows the first bad one.
    pub fn locations(&self, positional: &Positional) -> Result<Vec<Location>, CommandError> {
        self.words(positional).map(|text| parse_location(text.as_bytes()).map_err(CommandError::usage)).collect()
    }

    /// The same where a path of a service's endpoint may stand, too.
    ///
    /// # Errors
    /// As [`Self::locations`].
    pub fn named(&self, positional: &Positional) -> Result<Vec<Location>, CommandError> {
        self.words(positional).map(|text| parse_named(text.as_bytes()).map_err(CommandError::usage)).collect()
    }

    /// The one location of an argument without dashes.
    ///
    /// # Errors
    /// As [`Self::locations`].
    #[cfg(feature = "terminal")]
    pub fn location(&self, positional: &Positional) -> Result<Location, CommandError> {
        self.locations(positional)?.pop().ok_or_else(|| CommandError::usage(format!("{} is missing", positional.name)))
    }

    /// Where a flag was given: `--listen` or `CARRACK_LISTEN`.
    #[cfg(feature = "service")]
    pub fn origin(&self, name: &str) -> Option<String> {
        let by_flag = match self.matches.try_get_raw(name) {
            Ok(Some(_)) => self.matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine),
            _ => false,
        };
        if by_flag { Some(format!("--{name}")) } else { self.set(name).map(|given| given.origin) }
    }

    /// What was given for a flag, as text; `true` for one without a value.
    #[cfg(feature = "service")]
    pub fn text(&self, name: &str) -> Option<String> {
        if let Ok(Some(true)) = self.matches.try_get_one::<bool>(name) {
            return Some("true".to_owned());
        }
        let typed = self.matches.try_get_many::<OsString>(name).ok().flatten();
        let typed = typed.map(|values| values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(","));
        typed.or_else(|| self.set(name).map(|given| String::from_utf8_lossy(&given.value).into_owned()))
    }

    /// A value that clap has parsed.
    pub fn typed_one<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Option<&'a T> {
        self.typed(name).next()
    }

    /// What was typed for a flag or an argument, in order.
    fn typed<T: Clone + Send + Sync + 'static>(&self, name: &str) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let typed = self.matches.try_get_many::<T>(name);
        // A verb asks for a flag that it has not put into its command: as good as not given,
        // and a fault of this program.
        debug_assert!(!matches!(typed, Err(MatchesError::UnknownArgument { .. })), "the verb has no flag {name:?}");
        debug_assert!(!matches!(typed, Err(MatchesError::Downcast { .. })), "the flag {name:?} is of another kind");
        typed.ok().flatten().into_iter().flatten()
    }

    fn set(&self, name: &str) -> Option<Given> {
        let origin = variable(name);
        let value = (self.environment)(&origin).filter(|value| !value.is_empty())?;
        Some(Given { origin, value: value.into_vec() })
    }
}

impl Given {
    fn by_flag(name: &str, value: &OsString) -> Self {
        Self { origin: format!("--{name}"), value: value.as_bytes().to_vec() }
    }

    /// The value as its flag reads it.
    ///
    /// # Errors
    /// A usage error that names where the value was given.
    fn read<T>(self, flag: &Value<T>) -> Result<T, CommandError> {
        let Self { origin, value } = self;
        flag.read(value).map_err(|why| CommandError::usage(format!("{origin}: {why}")))
    }

    /// Has its text read.
    ///
    /// # Errors
    /// A usage error that names where the value was given.
    pub fn check<T>(self, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, CommandError> {
        let Self { origin, value } = self;
        text_of(value).and_then(|text| read(&text)).map_err(|why| CommandError::usage(format!("{origin}: {why}")))
    }

    fn split(&self, at: u8) -> impl Iterator<Item = Self> {
        self.value
            .split(move |byte| *byte == at)
            .map(|value| Self { origin: self.origin.clone(), value: value.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{ArgAction, Command};

    const QUICK: Switch = Switch::new("quick", "Quickly");
    const SIZES: Value<u8> =
        Value::new("sizes", "N", |text| text.parse().map_err(|_| format!("{text:?}: no")), "Sizes");
    const FILE: Value<Vec<u8>> = Value::path("file", "FILE", "A file");
    const PLACES: Positional = Positional::several("places", "PLACE");

    fn with<T>(line: &[&str], variables: &[(&str, &[u8])], asked: impl Fn(&Flags) -> T) -> T {
        let verb =
            Command::new("verb").args([QUICK.arg(), SIZES.arg().action(ArgAction::Append), FILE.arg(), PLACES.arg()]);
        let matches = verb.try_get_matches_from([&["verb"], line].concat()).expect("a good line");
        let variable = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some(OsString::from_vec(value.to_vec()))
        };
        asked(&Flags::new(&matches, &variable))
    }

    #[test]
    fn flags_outweigh_the_environment() {
        let environment: &[(&str, &[u8])] =
            &[("CARRACK_SIZES", b"1,2"), ("CARRACK_FILE", b"\xff"), ("CARRACK_QUICK", b"1")];
        with(&[], environment, |flags| {
            assert!(!flags.has(&QUICK), "a flag without a value is read from the command line alone");
            assert_eq!(flags.all(&SIZES), Ok(vec![1, 2]));
            assert_eq!(flags.get(&FILE), Ok(Some(b"\xff".to_vec())));
        });
        with(&["--sizes=3", "--sizes=4,5", "--quick", "--file=f", "a", "b"], environment, |flags| {
            assert!(flags.has(&QUICK));
            assert_eq!(flags.all(&SIZES), Ok(vec![3, 4, 5]));
            assert_eq!(flags.get(&FILE), Ok(Some(b"f".to_vec())));
            assert_eq!(flags.locations(&PLACES).map(|places| places.len()), Ok(2));
        });
        with(&[], &[("CARRACK_FILE", b"")], |flags| assert_eq!(flags.get(&FILE), Ok(None)));
    }

    #[test]
    fn values_are_refused_by_the_name_of_where_they_were_given() {
        let refused = |line: &[&str], variables: &[(&str, &[u8])]| {
            with(line, variables, |flags| flags.all(&SIZES).expect_err("refused").to_string())
        };
        assert_eq!(refused(&["--sizes=1,x"], &[]), "--sizes: \"x\": no");
        assert_eq!(refused(&[], &[("CARRACK_SIZES", b"x")]), "CARRACK_SIZES: \"x\": no");
        assert_eq!(refused(&[], &[("CARRACK_SIZES", b"\xff")]), "CARRACK_SIZES: the value is not UTF-8");
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the verb has no flag \"slow\"")]
    fn flags_that_the_verb_lacks_are_a_fault() {
        with(&[], &[], |flags| flags.has(&Switch::new("slow", "Slowly")));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "is of another kind")]
    fn flags_read_as_another_kind_are_a_fault() {
        with(&["--file=f"], &[], |flags| flags.has(&Switch::new("file", "A file")));
    }
}
