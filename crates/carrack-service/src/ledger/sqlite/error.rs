//! Why a ledger is not opened.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

/// Why a ledger is not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// What kind of reason.
    pub kind: OpenErrorKind,
    /// The file.
    pub path: PathBuf,
    /// In words, without the path.
    pub why: String,
}

/// What kind of reason keeps a ledger from being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenErrorKind {
    /// It is on a file system that is shared over a network.
    NetworkFileSystem,
    /// It is damaged.
    Damaged,
    /// It has no file, though there are tasks of it.
    Gone,
    /// Its log is gone, and with it what was acknowledged last.
    LogLost,
    /// A newer program has changed its schema.
    NewerSchema,
    /// Its schema is of another program with the same steps.
    ChangedSchema,
    /// The file is something else.
    OtherFile,
    /// It cannot be written to.
    ReadOnly,
    /// The file system is full.
    Full,
    /// Another program holds it.
    Held,
    /// The system refuses something else.
    System,
}

impl OpenErrorKind {
    /// From what SQLite says.
    pub(super) fn of(error: &rusqlite::Error) -> Self {
        let rusqlite::Error::SqliteFailure(failure, _) = error else { return Self::Damaged };
        match failure.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Damaged,
            ErrorCode::ReadOnly => Self::ReadOnly,
            ErrorCode::DiskFull => Self::Full,
            _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => Self::Full,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Held,
            _ => Self::System,
        }
    }

    /// What somebody can do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NetworkFileSystem => "put the state directory on a disk of this host",
            Self::Damaged | Self::Gone => "restore a backup that is whole",
            Self::LogLost => {
                "restore a backup; if another program has opened the ledger since the service ended, nothing is lost: \
                 remove the file whose name ends in -open"
            }
            Self::NewerSchema => "use the newer program, or restore a backup from before it",
            Self::ChangedSchema => "use the program that made it",
            Self::OtherFile => "choose another state directory, or move the file away",
            Self::ReadOnly => "make the state directory writable for the service's account",
            Self::Full => "make room on the file system of the state directory",
            Self::Held => "end the other program",
            Self::System => "look at the file and its directory",
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the ledger {} cannot be opened: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for OpenError {}

/// Makes errors of one ledger.
pub struct Failing<'a>(pub &'a Path);

impl Failing<'_> {
    pub fn because(&self, kind: OpenErrorKind, why: impl Into<String>) -> OpenError {
        OpenError { kind, path: self.0.to_owned(), why: why.into() }
    }

    pub fn sqlite(&self, error: &rusqlite::Error) -> OpenError {
        self.because(OpenErrorKind::of(error), error.to_string())
    }

    pub fn system(&self, call: &str, error: &io::Error) -> OpenError {
        let kind = match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => OpenErrorKind::ReadOnly,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenErrorKind::Full,
            _ => OpenErrorKind::System,
        };
        self.because(kind, format!("{call}: {error}"))
    }
}
