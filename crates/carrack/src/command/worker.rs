//! `carrack worker`: what the service starts for each attempt of a task, with `--files` to serve files, with `--bench`
//! to measure this host, and with `--path` to measure the path between two endpoints.

mod path;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;

use carrack_core::request::Reach;
use carrack_service::model::BenchKind;
use carrack_service::worker::bench::{BenchOrder, end_with, read_order};
use carrack_service::worker::paths::PathOrder;
use carrack_service::worker::{Means, files, run as work};
use clap::Command;

use crate::cli::flag::Switch;
use crate::cli::flags::Flags;
use crate::command::context::context;
use crate::error::CommandError;
use crate::exit;

const BENCH: Switch = Switch::new("bench", "Measure what a line of standard input orders, as long as that stays open");
const PATH: Switch =
    Switch::new("path", "Measure the path that a line of standard input orders, as long as that stays open");
const FILES: Switch = Switch::new("files", "Serve files: standard input is a socket for requests and answers");

/// What clap knows of it. Not for people, and free to change with the service.
pub fn command() -> Command {
    let about = "Carry out the attempt of a task that standard input orders, serve files, or measure";
    Command::new("worker").hide(true).about(about).args([FILES.arg(), BENCH.arg(), PATH.arg()])
}

/// Runs the verb: an order on standard input, the task's lock as standard output. `run_line` runs a command line.
pub fn run(flags: &Flags, run_line: fn(Vec<OsString>) -> u8) -> Result<u8, CommandError> {
    let reach = Reach { push: crate::agents::push(), ..Reach::default() };
    if flags.has(&BENCH) {
        return measure(run_line);
    }
    if flags.has(&PATH) {
        return measure_path(&reach);
    }
    if flags.has(&FILES) {
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input = input.map_err(|error| CommandError::usage(format!("standard input: {error}")))?;
        return Ok(files::run(files::Means { context: context(), reach, stream: UnixStream::from(input) }));
    }
    let output = io::stdout();
    Ok(work(Means { context: context(), reach, input: &mut io::stdin(), output: output.as_fd() }))
}

/// What every measurement of the service gets: rows as JSON, and a result that the service keeps, not the account.
const SHOWN: [&str; 2] = ["--json", "--no-keep"];
/// Storage: a file of 64 MiB, written and read with each block size and depth, for a second each.
const DISK: [&str; 12] = [
    "--size",
    "64M",
    "--op",
    "write,read",
    "--mode",
    "fdatasync",
    "--record",
    "64K,256K,1M,4M",
    "--depth",
    "1,4,16",
    "--time",
    "1s",
];
const CPU: [&str; 2] = ["--time", "200ms"];
const LADDER: [&str; 2] = ["--size", "64M"];

/// Runs `carrack bench` as it is ordered. SIGTERM, and the end of the input, end it in good order.
fn measure(run_line: fn(Vec<OsString>) -> u8) -> Result<u8, CommandError> {
    let refused = |error: io::Error| CommandError::usage(format!("standard input: {error}"));
    let mut input = io::BufReader::new(io::stdin());
    let order: BenchOrder = read_order(&mut input).map_err(refused)?;
    end_with(input).map_err(refused)?;
    Ok(run_line(line(&order)))
}

/// Measures a path as it is ordered, and prints what was found in a line of JSON. It ends as [`measure`] does.
fn measure_path(reach: &Reach) -> Result<u8, CommandError> {
    let refused = |what: &'static str| move |error: io::Error| CommandError::usage(format!("{what}: {error}"));
    let mut input = io::BufReader::new(io::stdin());
    let order = PathOrder::receive(&mut input).map_err(refused("standard input"))?;
    end_with(input).map_err(refused("standard input"))?;
    let told = path::carry_out(&order, reach, &context());
    let line = serde_json::to_string(&told).map_err(|error| refused("standard output")(error.into()))?;
    writeln!(io::stdout(), "{line}").map_err(refused("standard output"))?;
    Ok(exit::DONE)
}

/// The line of the command, the program's name first.
fn line(order: &BenchOrder) -> Vec<OsString> {
    let root = || OsString::from_vec(order.root.clone());
    let (chosen, places): (&[&str], _) = match order.kind {
        BenchKind::Disk => (&DISK, vec![root()]),
        BenchKind::Cpu => (&CPU, Vec::new()),
        BenchKind::Ladder => (&LADDER, vec![root(), root()]),
    };
    let verb = ["carrack", "bench", order.kind.name()];
    verb.iter().chain(&SHOWN).chain(chosen).map(OsString::from).chain(places).collect()
}
