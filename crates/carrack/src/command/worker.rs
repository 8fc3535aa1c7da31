//! `carrack worker`: what the service starts for each attempt of a task.

use std::io;
use std::os::fd::AsFd;

use carrack_core::request::{Push, Reach};
use carrack_service::worker::{Means, run as work};
use clap::Command;

use crate::cli::flags::Flags;
use crate::command::context::context;
use crate::error::CommandError;

/// What clap knows of it. Not for people, and free to change with the service.
pub fn command() -> Command {
    Command::new("worker").hide(true).about("Carry out the attempt of a task that standard input orders")
}

/// Runs the verb: an order on standard input, the task's lock as standard output.
pub fn run(_: &Flags) -> Result<u8, CommandError> {
    let push = crate::slim::push(Push::Itself(carrack_sys::host::own_program));
    let reach = Reach { push, ..Reach::default() };
    let output = io::stdout();
    Ok(work(Means { context: context(), reach, input: &mut io::stdin(), output: output.as_fd() }))
}
