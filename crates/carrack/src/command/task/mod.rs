//! `carrack task`: managed transfers, submitted to a service, watched and steered.

mod act;
mod list;
mod select;
mod submission;
mod submit;
pub mod told;
mod wait;

use carrack_service::client::segment;
use clap::Command;

use super::reach::JSON;
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::managed::identifier::{Identified, identifier};
use crate::managed::service::{self, Service};
pub use submission::{LABEL, args as submission_args, is_task_given, new_task};

/// The task, or several.
pub const TASKS: Positional = Positional::several("task", "TASK");
/// The one task.
pub const TASK: Positional = Positional::one("task", "TASK");

const EXAMPLES: &str = "\
Examples:
  carrack task submit @lab:/run42 @archive:/2026/ --label run42
  carrack task submit --batch pairs.txt --deadline 12h --wait
  carrack task list --state ACTIVE,QUEUED
  carrack task wait TASK --timeout 2h && echo done
  carrack task retry --cause no-space --deadline 12h

A task goes on when this command, the terminal and the service end. States: QUEUED,
ACTIVE, PAUSED, CANCELLING; and at its end SUCCEEDED, PARTIAL (some items failed, or a check has found differences), FAILED,
CANCELLED.";

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("task")
        .about("Managed transfers: submit, preview, list, watch, pause, cancel")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(JSON.arg().global(true))
        .args(service::args())
        .subcommands([submit::command(), submit::preview_command()])
        .subcommands(list::commands())
        .subcommands(wait::commands())
        .subcommands(act::commands())
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("task needs another word: see carrack task --help"));
    };
    match action {
        "submit" => submit::run(&flags),
        "preview" => submit::preview(&flags),
        "list" => list::list(&flags),
        "show" => list::show(&flags),
        "items" => list::items(&flags),
        "events" => list::events(&flags),
        "receipt" => list::receipt(&flags),
        "wait" => wait::wait(&flags),
        "watch" => wait::watch(&flags),
        "update" => act::update(&flags),
        other => act::act(other, &flags),
    }
}

/// The path of a task, or of something below it.
fn path_of(task: &str, below: &str) -> String {
    format!("/tasks/{}{below}", segment(task))
}

/// The tasks that were named.
fn tasks(service: &Service, flags: &Flags, positional: &Positional) -> Result<Vec<String>, CommandError> {
    flags.words(positional).map(|word| identifier(service, Identified::Task, word)).collect()
}

/// The one task that was named.
fn task(service: &Service, flags: &Flags) -> Result<String, CommandError> {
    tasks(service, flags, &TASK)?.pop().ok_or_else(|| CommandError::usage("the task is missing"))
}
