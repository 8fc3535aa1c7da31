//! Why a measurement ended early.

use std::{fmt, io};

/// Why a measurement ended early.
#[derive(Debug)]
pub enum Error {
    /// It was asked to.
    Stopped,
    /// It would have filled the file system.
    NoRoom {
        /// Bytes that it would have written.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// It needs more than a quarter of the memory: the rest is for the cache, and for others.
    Memory {
        /// Bytes that all its threads need at a time.
        needed: u64,
        /// Bytes of memory.
        memory: u64,
    },
    /// What was asked for cannot be: a sentence.
    Impossible(String),
    /// A call failed.
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Adds what was being done to an error of the system.
    pub fn while_doing(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::System { what: what.into(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::NoRoom { needed, free } => {
                write!(
                    f,
                    "{needed} bytes would fill the file system: {free} are free, and a tenth of them is left free"
                )
            }
            Self::Memory { needed, memory } => {
                write!(f, "the threads would need {needed} bytes, more than a quarter of {memory} bytes of memory")
            }
            Self::Impossible(why) => f.write_str(why),
            Self::System { what, .. } => write!(f, "cannot {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
