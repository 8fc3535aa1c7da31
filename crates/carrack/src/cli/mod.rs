//! The parsers that turn text into types, and what a flag is. Nothing past the verbs reads text from a user.

pub mod bare;
#[cfg(feature = "service")]
pub mod config_file;
pub mod environment;
pub mod files_from;
pub mod filters;
pub mod flag;
pub mod flags;
pub mod foreign;
#[cfg(feature = "terminal")]
pub mod hosts;
pub mod location;
#[cfg(feature = "service")]
pub mod moment;
#[cfg(feature = "terminal")]
pub mod near;
pub mod option_flags;
pub mod ports;
pub mod relative;
pub mod settings;
pub mod size;
#[cfg(feature = "service")]
pub mod task_files;
pub mod words;
