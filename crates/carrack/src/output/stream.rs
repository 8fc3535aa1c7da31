//! Standard output and error of the command. What they do not take is an error, as it is for `cat`; a reader that has
//! left ends the command without a word, as other tools are ended by `SIGPIPE`; and who does not read them holds nobody
//! up who was told to end, by a signal or by `--deadline`.

use carrack_sys::sync::lock;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::Instant;

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::tuning::READER_GRACE;
use carrack_sys::signal::{StopSignal, stop_requested};
use carrack_sys::standard::{self, Patient};

use crate::error::CommandError;

/// A file that may be a pipe which nobody reads.
pub type Out = Patient<fn() -> bool>;

/// When the command has to end, if there is such a time.
static DEADLINE: OnceLock<Instant> = OnceLock::new();
/// When it was first seen that it has to end.
static TOLD: OnceLock<Instant> = OnceLock::new();

/// From `deadline` on nobody is waited for.
pub fn end_by(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        // There is one for a process.
        let _ = DEADLINE.set(deadline);
    }
}

/// Whether readers have been waited for long enough: the command was told to end a while ago.
pub fn is_over() -> bool {
    let now = Instant::now();
    let told = stop_requested().is_some() || DEADLINE.get().is_some_and(|deadline| now >= *deadline);
    told && now.saturating_duration_since(*TOLD.get_or_init(|| now)) >= READER_GRACE
}

/// A file that is waited for as standard output is.
pub fn patient(file: File) -> Out {
    Patient::new(file, is_over)
}

/// Standard output.
///
/// # Errors
/// When it is closed.
pub fn output() -> io::Result<Out> {
    standard::output().map(patient)
}

/// Whether a person may be looking at standard output.
pub fn output_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Standard input.
///
/// # Errors
/// When it is closed.
pub fn input() -> io::Result<Out> {
    standard::input().map(patient)
}

/// Writes all of something to standard output.
///
/// # Errors
/// When it is not taken.
pub fn print(bytes: &[u8]) -> Result<(), CommandError> {
    output().and_then(|mut out| out.write_all(bytes)).map_err(|error| not_written(&error))
}

/// Why standard output ends a command.
pub fn not_written(error: &io::Error) -> CommandError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return CommandError::reader_gone(error);
    }
    if error.kind() != io::ErrorKind::TimedOut {
        return CommandError::file("cannot write to", b"standard output", error);
    }
    let (code, why) = match stop_requested() {
        Some(StopSignal::Interrupt) => (ErrorCode::Interrupted, "interrupted"),
        Some(StopSignal::Terminate) => (ErrorCode::Terminated, "terminated"),
        Some(StopSignal::Hangup) => (ErrorCode::Terminated, "the session that started this has ended"),
        None => (ErrorCode::DeadlinePassed, "the time given by --deadline is over"),
    };
    let message = format!("{why}, and nobody read all that was written to standard output");
    CommandError::from(Failure::new(code, Side::Command, message))
}

/// A line on standard error.
pub fn say_line(line: &str) {
    say(&format!("{line}\n"));
}

/// Writes to standard error. That it cannot be written is no error of its own: there is nobody left to tell, and the
/// exit code tells as much.
pub fn say(text: &str) {
    static ERROR: LazyLock<Mutex<Option<Out>>> = LazyLock::new(|| Mutex::new(standard::error().ok().map(patient)));
    let mut out = lock(&ERROR);
    let taken = out.as_mut().map_or(Ok(()), |out| out.write_all(text.as_bytes()));
    if taken.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
        // Nor is anybody waited for again.
        *out = None;
    }
}
