//! Long runs of tests that `make test` runs briefly: more seeds, every point of a sweep, minutes instead of
//! seconds. Each is an ordinary test told by its environment how far to go, built in release where that matters;
//! what it prints is shown.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::cargo;

/// The sweeps: a name, which system tests they are, and what tells those to go all the way.
const SWEEPS: &[(&str, &str, (&str, &str))] = &[
    ("kill", "crash::kill_sweep", ("CARRACK_SWEEP", "all")),
    ("power", "crash::power_cuts", ("CARRACK_SWEEP", "100")),
    ("direct", "direct::", ("CARRACK_DIRECT_ROUNDS", "10")),
    ("failing", "failing::", ("CARRACK_SWEEP", "24")),
    ("options", "service::crossed::", ("CARRACK_CROSSED", "all")),
    ("judge", "service::judge::", ("CARRACK_JUDGE", "300")),
    ("race", "disk::directory_swapped", ("CARRACK_RACE_SECONDS", "60")),
    ("confined", "service::confined::", ("CARRACK_RACE_SECONDS", "60")),
    ("rights", "service::rights::", ("CARRACK_RIGHTS_SECONDS", "5")),
    ("sync-race", "sync::races::", ("CARRACK_RACE_SECONDS", "60")),
    ("delta-kill", "crash::changed::", ("CARRACK_SWEEP", "all")),
    ("sync-kill", "crash::syncs::", ("CARRACK_SWEEP", "100")),
    ("sync", "sync::oracle::", ("CARRACK_SWEEP", "5000")),
];

/// `sim [--seeds N] [--first K]`: so many single transfers, and so many rows of sessions.
pub fn simulate(root: &Path, options: &[&str]) -> Result<(), String> {
    let mut command = cargo();
    command.args("test --release --locked -p carrack-core simulation::simulation_of_every_ -- --nocapture".split(' '));
    for pair in options.chunks(2) {
        match *pair {
            ["--seeds", count] => {
                command.env("CARRACK_SIM_SEEDS", number(count)?).env("CARRACK_SIM_ROWS", number(count)?)
            }
            ["--first", first] => command.env("CARRACK_SIM_FIRST", number(first)?),
            _ => return Err(format!("{} is not understood", pair.join(" "))),
        };
    }
    run(root, &mut command)
}

/// `sweep NAME`.
pub fn sweep(root: &Path, name: &str) -> Result<(), String> {
    let found = SWEEPS.iter().find(|(known, _, _)| *known == name);
    let (_, tests, (variable, value)) = found.ok_or_else(|| {
        let known: Vec<&str> = SWEEPS.iter().map(|(name, _, _)| *name).collect();
        format!("no sweep {name}; there are {}", known.join(", "))
    })?;
    let mut command = system();
    // One who has less time, or more, says so.
    if std::env::var_os(variable).is_none() {
        command.env(variable, value);
    }
    run(root, command.args([tests, "--", "--nocapture"]))
}

/// `soak --minutes M`.
pub fn soak(root: &Path, minutes: &str) -> Result<(), String> {
    let is_time = minutes.parse::<f64>().is_ok_and(|minutes| minutes > 0.0);
    let minutes = if is_time { minutes } else { return Err(format!("{minutes} is no number of minutes")) };
    let mut command = system();
    command.args("network::soak -- --ignored --nocapture".split(' ')).env("CARRACK_SOAK_MINUTES", minutes);
    run(root, &mut command)
}

/// `crowd [--clients N] [--rounds R]`.
pub fn crowd(root: &Path, options: &[&str]) -> Result<(), String> {
    let mut command = system();
    command.args("network::crowd -- --ignored --nocapture".split(' '));
    for pair in options.chunks(2) {
        match *pair {
            ["--clients", count] => command.env("CARRACK_CROWD_CLIENTS", number(count)?),
            ["--rounds", count] => command.env("CARRACK_CROWD_ROUNDS", number(count)?),
            _ => return Err(format!("{} is not understood", pair.join(" "))),
        };
    }
    run(root, &mut command)
}

/// `portable [WORDS ...]`: all tests, or those whose names have one of the words, with the ways of every other system.
pub fn portable(root: &Path, words: &[&str]) -> Result<(), String> {
    let mut command = cargo();
    command.args("test --workspace --exclude carrack-face --exclude xtask --locked --no-fail-fast --".split(' '));
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg carrack_portable"));
    // What is built otherwise is not built again for it.
    command.env("CARGO_TARGET_DIR", root.join("target/portable"));
    if std::env::var_os("CARRACK_AGENTS").is_none() {
        command.env("CARRACK_AGENTS", root.join("target/agents"));
    }
    run(root, command.args(words))
}

fn system() -> Command {
    let mut command = cargo();
    command.args("test --locked -p carrack --test system".split(' '));
    command
}

fn number(text: &str) -> Result<&str, String> {
    text.parse::<u64>().map(|_| text).map_err(|_| format!("{text} is no number"))
}

/// Runs with the output shown as it comes.
fn run(root: &Path, command: &mut Command) -> Result<(), String> {
    let command = command.current_dir(root).stdin(Stdio::null());
    let status = command.status().map_err(|e| format!("cannot run {command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
