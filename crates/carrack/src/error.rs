//! What ends a command before, or instead of, a report: a cause, what to try, and the exit code.

use std::fmt;

use carrack_core::report::{ErrorCode, Failure, Side};

use crate::exit;

/// Why a command ended. Its text is printable: whatever came from outside went through `display_bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// What went wrong and where.
    pub failure: Failure,
    /// What to try, a sentence each.
    pub hints: Vec<String>,
}

impl CommandError {
    /// The command cannot be carried out as given.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::here(ErrorCode::Usage, message)
    }

    /// A file that the command itself reads or writes (a manifest, a log), with what the system said.
    pub fn file(what: &str, path: &[u8], error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorCode::NotFound,
            std::io::ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
            std::io::ErrorKind::StorageFull => ErrorCode::NoSpace,
            _ => ErrorCode::InputOutput,
        };
        let path = carrack_core::path::display_bytes(path);
        Self::here(code, format!("{what} {path}: {error}"))
    }

    fn here(code: ErrorCode, message: impl Into<String>) -> Self {
        let failure = Failure::new(code, Side::Command, message);
        Self { failure, hints: Vec::new() }
    }

    /// The same with one more thing to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The number that the process ends with.
    pub fn exit_code(&self) -> u8 {
        exit::of_code(self.failure.code)
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        Self { failure, hints: Vec::new() }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::output::human::failure(&self.failure))
    }
}

impl std::error::Error for CommandError {}
