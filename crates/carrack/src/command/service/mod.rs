//! `carrack service`: who may use a service, its ledger, its configuration, its faults.

mod config;
mod faults;
mod state;
mod status;
mod token;
mod user;

use clap::Command;

use super::reach::JSON;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::managed::service;

const EXAMPLES: &str = "\
Examples:
  carrack service user add ada --password         the password is asked for
  carrack service user add bob --account bob      bob's account of this host is bob
  carrack service token create --label backup --verbs tasks,read,write --endpoint lab --endpoint archive
  carrack service status
  carrack service backup ledger.backup
  carrack service config show --origin";

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("service")
        .about("Managed transfers: status, users, tokens, backup, configuration and faults of a service")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(JSON.arg().global(true))
        .args(service::args())
        .subcommands([status::command(), user::command(), token::command(), config::command(), faults::command()])
        .subcommands(state::commands())
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((what, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("service needs another word: see carrack service --help"));
    };
    match what {
        "status" => status::run(&flags),
        "user" => user::run(&flags),
        "token" => token::run(&flags),
        "config" => config::run(&flags),
        "faults" => faults::run(&flags),
        what => state::run(what, &flags),
    }
}
