//! The value of a flag: from the command line, else from `CARRACK_<FLAG>`, and which of the two to blame.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use carrack_core::location::Location;
use clap::ArgMatches;

use super::location::parse_location;
use crate::error::CommandError;

/// Asked for a variable; `None` if it is not set. A function, so that tests need not change the process's own.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variable of a flag.
pub fn variable(name: &str) -> String {
    format!("CARRACK_{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// The flags of one verb.
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
    /// As typed.
    pub value: Vec<u8>,
}

impl<'a> Flags<'a> {
    /// The flags in `matches`, with `environment` behind them.
    pub fn new(matches: &'a ArgMatches, environment: Environment<'a>) -> Self {
        Self { matches, environment }
    }

    /// Whether a flag without a value was given. A flag that the verb does not have was not.
    pub fn has(&self, name: &str) -> bool {
        matches!(self.matches.try_get_one::<bool>(name), Ok(Some(true)))
    }

    /// How often a counted flag was given.
    pub fn count(&self, name: &str) -> u8 {
        self.matches.try_get_one::<u8>(name).ok().flatten().copied().unwrap_or(0)
    }

    /// The bytes of a value. An empty variable counts as not set, as is usual for the environment.
    pub fn given(&self, name: &str) -> Option<Given> {
        if let Ok(Some(value)) = self.matches.try_get_one::<OsString>(name) {
            return Some(Given { origin: format!("--{name}"), value: value.as_bytes().to_vec() });
        }
        let variable = variable(name);
        let value = (self.environment)(&variable).filter(|value| !value.is_empty())?;
        Some(Given { origin: variable, value: value.into_vec() })
    }

    /// A path, as bytes.
    pub fn path(&self, name: &str) -> Option<Vec<u8>> {
        self.given(name).map(|given| given.value)
    }

    /// A value through its parser.
    ///
    /// # Errors
    /// A usage error that names the flag or the variable.
    pub fn parse<T>(
        &self,
        name: &str,
        parser: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, CommandError> {
        self.given(name).map(|given| given.parse(parser)).transpose()
    }

    /// All values of a flag that may be given several times, through their parser; each may be a list with commas, as the variable's is.
    ///
    /// # Errors
    /// As [`Flags::parse`].
    pub fn parse_all<T>(&self, name: &str, parser: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, CommandError> {
        let typed = self.matches.try_get_many::<OsString>(name).ok().flatten();
        let of_flag = |value: &OsString| Given { origin: format!("--{name}"), value: value.as_bytes().to_vec() };
        let given: Vec<Given> =
            typed.map_or_else(|| self.given(name).into_iter().collect(), |values| values.map(of_flag).collect());
        let lists = given.iter().map(|given| given.parse(|list| list.split(',').map(&parser).collect()));
        Ok(lists.collect::<Result<Vec<Vec<T>>, _>>()?.into_iter().flatten().collect())
    }

    /// The locations of a positional argument, in order.
    ///
    /// # Errors
    /// A usage error that shows the first bad one.
    pub fn locations(&self, name: &str) -> Result<Vec<Location>, CommandError> {
        let typed = self.matches.try_get_many::<OsString>(name).ok().flatten().unwrap_or_default();
        typed.map(|text| parse_location(text.as_bytes()).map_err(CommandError::usage)).collect()
    }

    /// The one location of a positional argument.
    ///
    /// # Errors
    /// As [`Self::locations`].
    pub fn location(&self, name: &str) -> Result<Location, CommandError> {
        self.locations(name)?.pop().ok_or_else(|| CommandError::usage(format!("{name} is missing")))
    }
}

impl Given {
    /// The value through a parser.
    ///
    /// # Errors
    /// A usage error that names where the value was given.
    pub fn parse<T>(&self, parser: impl FnOnce(&str) -> Result<T, String>) -> Result<T, CommandError> {
        let text = std::str::from_utf8(&self.value).map_err(|_| "the value is not UTF-8".to_owned());
        text.and_then(parser).map_err(|why| CommandError::usage(format!("{}: {why}", self.origin)))
    }
}
