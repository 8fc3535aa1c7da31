//! Why a journal cannot be read or written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a journal cannot be read or written.
#[derive(Debug)]
pub enum JournalError {
    /// A call failed.
    Call {
        /// What was being done: `open`, `write`.
        call: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Records stand behind bytes that are none.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the bytes begin that are no record.
        offset: u64,
    },
    /// The file is of another program, or of another version of this one.
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

impl JournalError {
    pub(super) fn call(call: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Call { call, path, source }
    }

    /// Whether the file system, or the quota of its owner, has no room.
    pub fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Call { source, .. } if full.contains(&source.kind()))
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { call, path, source } => write!(f, "{}: {call}: {source}", path.display()),
            Self::Damaged { path, offset } => write!(f, "{}: the record at {offset} is damaged", path.display()),
            Self::Foreign { path } => {
                write!(f, "{}: is no journal, or one of another version of this program", path.display())
            }
        }
    }
}

impl std::error::Error for JournalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Call { source, .. } = self { Some(source) } else { None }
    }
}
