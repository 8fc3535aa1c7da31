//! Why a receipt cannot be made, read or believed.

use std::fmt;
use std::io;

use carrack_core::failure::Failure;

/// Why a receipt cannot be made, read or believed.
#[derive(Debug)]
pub enum ReceiptError {
    /// The system's answer to reading or writing it.
    Io(io::Error),
    /// It has not the form of a receipt; at which line, counted from 1, and what is wrong there.
    Form {
        /// Counted from 1.
        line: u64,
        /// One sentence, without its end.
        why: String,
    },
    /// It has the form of a receipt, and is not what was signed.
    Altered(String),
    /// Its key or its signature is of no use.
    Signature(String),
    /// What it is made of, or compared with, cannot be read.
    Unread(Failure),
}

impl ReceiptError {
    pub(crate) fn form(line: u64, why: impl Into<String>) -> Self {
        Self::Form { line, why: why.into() }
    }
}

impl fmt::Display for ReceiptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Form { line, why } => write!(f, "line {line}: {why}"),
            Self::Altered(why) | Self::Signature(why) => f.write_str(why),
            Self::Unread(why) => write!(f, "{}", why.why),
        }
    }
}

impl std::error::Error for ReceiptError {}

impl From<io::Error> for ReceiptError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Failure> for ReceiptError {
    fn from(why: Failure) -> Self {
        Self::Unread(why)
    }
}
