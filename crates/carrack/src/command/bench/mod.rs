//! `carrack bench`: measures, keeps what it measured, and shows and compares what was kept. One file per sub-verb.

mod cpu;
mod disk;
mod far_peers;
mod kept;
mod ladder;
mod load;
mod net;
mod peers;
pub mod peers_part;
mod shown;

use clap::Command;

use super::Verb as SubVerb;
use super::reach::{JSON, QUIET};
use crate::cli::flags::Flags;
use crate::error::CommandError;

const SUB_VERBS: &[SubVerb] = &[
    SubVerb { name: "disk", command: disk::command, run: disk::run },
    SubVerb { name: "cpu", command: cpu::command, run: cpu::run },
    SubVerb { name: "net", command: net::command, run: net::run },
    SubVerb { name: "ladder", command: ladder::command, run: ladder::run },
    SubVerb { name: "peers", command: peers::command, run: peers::run },
    SubVerb { name: "load", command: load::command, run: load::run },
    SubVerb { name: "list", command: kept::list_command, run: kept::list },
    SubVerb { name: "show", command: kept::show_command, run: kept::show },
    SubVerb { name: "diff", command: kept::diff_command, run: kept::diff },
];

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("bench")
        .about("Measure this host, the path to others and servers under load, and compare results")
        .after_help("Results are kept in $XDG_STATE_HOME/carrack/bench, or in ~/.local/state/carrack/bench.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args([JSON.arg().global(true), QUIET.arg().global(true)])
        .subcommands(SUB_VERBS.iter().map(|verb| (verb.command)()))
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((name, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("bench needs disk, cpu, net, ladder, peers, load, list, show or diff"));
    };
    match SUB_VERBS.iter().find(|verb| verb.name == name) {
        Some(verb) => (verb.run)(&flags).map_err(CommandError::of_measurement),
        None => Err(CommandError::usage(format!("bench has no {name}"))),
    }
}
