//! Why a request about files is not answered.

use std::fmt;

use crate::model::FileFailure;

/// Why a request about files is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesError {
    /// The caller, or all callers together, use as many workers as they may.
    Busy,
    /// The service ends.
    Stopping,
    /// The worker could not be started, or has ended before it answered: in words.
    Lost(String),
    /// It has taken as long as the caller's token allows one request.
    OverTime,
    /// The worker could not do it.
    Failed(FileFailure),
}

impl fmt::Display for FilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("as many requests about files are under way as there may be"),
            Self::Stopping => f.write_str("the service ends"),
            Self::Lost(why) => write!(f, "the process that serves the files has ended: {why}"),
            Self::OverTime => f.write_str("the request has taken as long as the token allows (scope-ceiling)"),
            Self::Failed(failure) => f.write_str(&failure.message),
        }
    }
}

impl std::error::Error for FilesError {}
