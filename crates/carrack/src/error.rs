//! What ends a command before, or instead of, a report: a cause, what to try, and the exit code.

use carrack_core::report::{ErrorCode, Failure, Side};

use crate::exit;

/// Why a command ended. [`crate::output::human`] makes its text, which is printable: whatever came from outside went
/// through `display_bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// What went wrong and where.
    pub failure: Failure,
    /// What to try, a sentence each.
    pub hints: Vec<String>,
    /// Whoever reads standard output has closed it. Nobody is told: other tools are ended by `SIGPIPE` then.
    reader_gone: bool,
    /// It ended a measurement, which has nothing half done that could be gone on with.
    of_measurement: bool,
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
        Self { failure, hints: Vec::new(), reader_gone: false, of_measurement: false }
    }

    /// Whoever reads standard output has closed it.
    pub fn reader_gone(error: &std::io::Error) -> Self {
        Self { reader_gone: true, ..Self::file("cannot write to", b"standard output", error) }
    }

    /// Whether there is anything to say of it.
    pub fn is_silent(&self) -> bool {
        self.reader_gone
    }

    /// The same, of a measurement.
    #[cfg(feature = "terminal")]
    pub fn of_measurement(self) -> Self {
        Self { of_measurement: true, ..self }
    }

    /// Whether it ended a measurement.
    pub fn is_of_measurement(&self) -> bool {
        self.of_measurement
    }

    /// The same with one more thing to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The number that the process ends with.
    pub fn exit_code(&self) -> u8 {
        if self.reader_gone { exit::READER_GONE } else { exit::of_code(self.failure.code) }
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        Self { failure, hints: Vec::new(), reader_gone: false, of_measurement: false }
    }
}

impl std::error::Error for CommandError {}
