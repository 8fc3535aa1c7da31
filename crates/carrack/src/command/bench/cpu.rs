//! `carrack bench cpu`: what the processors of this host allow a copy.

use std::time::Duration;

use carrack_measure::cpu::measure;
use carrack_measure::error::Error;
use clap::Command;

use super::shown::{BenchOutput, refused, with_plain_output};
use crate::cli::flag::Value;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use carrack_core::duration::parse_timeout;

const TIME: Value<Duration> = Value::new("time", "TIME", parse_timeout, "Time for each row [default: 300ms]");
const TIME_DEFAULT: Duration = Duration::from_millis(300);

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("cpu")
        .about("Measure digests, ciphers and memory, on one core and on all")
        .after_help(
            "A copy that is verified and encrypted does blake3+aes-128-gcm on each side; with --digest xxh128 it does\n\
             xxh128+aes-128-gcm. A core that does nothing else moves that many bytes a second, and no more.",
        )
        .arg(TIME.arg());
    with_plain_output(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let time = flags.get(&TIME)?.unwrap_or(TIME_DEFAULT);
    let mut shown = BenchOutput::of_measuring(flags)?;
    let stop = || carrack_sys::signal::stop_requested().is_some();
    let measured = measure(time, &stop, &mut |row| shown.row(row));
    let measured = measured.map_err(|error| match error {
        // No flag makes it need less.
        Error::Memory { .. } => CommandError::usage(error.to_string()),
        error => refused(error),
    });
    shown.finish(&measured?)
}
