//! What `carrack serve` was told: by a flag, else by the environment, else by `carrack.toml`.

#[cfg(feature = "service")]
use super::config_file::ConfigFile;
use super::flag::{Switch, Value};
use super::flags::Flags;
use crate::error::CommandError;

/// Flags, with the configuration file behind them.
pub struct Settings<'a> {
    flags: &'a Flags<'a>,
    #[cfg(feature = "service")]
    file: Option<ConfigFile>,
}

impl<'a> Settings<'a> {
    /// The flags alone.
    #[cfg(not(feature = "service"))]
    pub fn of_flags(flags: &'a Flags<'a>) -> Self {
        Self { flags }
    }

    /// The flags, and behind them a file.
    #[cfg(feature = "service")]
    pub fn with_file(flags: &'a Flags<'a>, file: Option<ConfigFile>) -> Self {
        Self { flags, file }
    }

    /// A value.
    ///
    /// # Errors
    /// A usage error that names the flag, the variable, or the file and its key.
    pub fn get<T>(&self, flag: &Value<T>) -> Result<Option<T>, CommandError> {
        if let Some(value) = self.flags.get(flag)? {
            return Ok(Some(value));
        }
        #[cfg(feature = "service")]
        if let Some(file) = &self.file {
            return file.get(flag);
        }
        Ok(None)
    }

    /// All values of a flag that may be given several times.
    ///
    /// # Errors
    /// As [`Settings::get`].
    pub fn all<T>(&self, flag: &Value<T>) -> Result<Vec<T>, CommandError> {
        let given = self.flags.all(flag)?;
        #[cfg(feature = "service")]
        if let Some(file) = self.file.as_ref().filter(|_| given.is_empty()) {
            return file.all(flag);
        }
        Ok(given)
    }

    /// Whether a flag without a value was given, or is true in the file.
    pub fn has(&self, flag: &Switch) -> bool {
        #[cfg(feature = "service")]
        let in_file = self.file.as_ref().is_some_and(|file| file.has(flag));
        #[cfg(not(feature = "service"))]
        let in_file = false;
        self.flags.has(flag) || in_file
    }

    /// Where a value comes from: the flag, the variable or the file's key; none: it is the default.
    #[cfg(feature = "service")]
    pub fn origin(&self, name: &'static str) -> Option<String> {
        self.flags.origin(name).or_else(|| self.file.as_ref().and_then(|file| file.origin(name)))
    }

    /// A value as it was written, wherever it was.
    #[cfg(feature = "service")]
    pub fn text(&self, name: &'static str) -> Option<String> {
        self.flags.text(name).or_else(|| self.file.as_ref().and_then(|file| file.text(name)))
    }
}
