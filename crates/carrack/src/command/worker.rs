//! `carrack worker`: what the service starts for each attempt of a task, and with `--files` to serve files.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use carrack_core::request::{Push, Reach};
use carrack_service::worker::{Means, files, run as work};
use clap::Command;

use crate::cli::flag::Switch;
use crate::cli::flags::Flags;
use crate::command::context::context;
use crate::error::CommandError;

const FILES: Switch = Switch::new("files", "Serve files: standard input is a socket for requests and answers");

/// What clap knows of it. Not for people, and free to change with the service.
pub fn command() -> Command {
    let about = "Carry out the attempt of a task that standard input orders, or serve files";
    Command::new("worker").hide(true).about(about).arg(FILES.arg())
}

/// Runs the verb: an order on standard input, the task's lock as standard output.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let push = crate::slim::push(Push::Itself(carrack_sys::host::own_program));
    let reach = Reach { push, ..Reach::default() };
    if flags.has(&FILES) {
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input = input.map_err(|error| CommandError::usage(format!("standard input: {error}")))?;
        return Ok(files::run(files::Means { context: context(), reach, stream: UnixStream::from(input) }));
    }
    let output = io::stdout();
    Ok(work(Means { context: context(), reach, input: &mut io::stdin(), output: output.as_fd() }))
}
