//! A directory seen through a slow file system, for the benchmark and for trying things out. `carrack-slow --help` says
//! how.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use carrack_faults::fuse::{Call, FaultFs, Features};
use clap::{Arg, value_parser};

/// Calls that find and make things: `--metadata` delays all of them.
const METADATA: [Call; 7] =
    [Call::Open, Call::Create, Call::Rename, Call::Unlink, Call::List, Call::Look, Call::Change];

/// The kinds of calls that may be delayed, as options and as lines of standard input.
const KINDS: [(&str, &[Call], &str); 8] = [
    ("read", &[Call::Read], "Each read takes so much longer"),
    ("write", &[Call::Write], "Each write"),
    ("sync", &[Call::Sync], "Each fsync"),
    ("metadata", &METADATA, "Each call that opens, makes, renames, lists or looks at something"),
    ("open", &[Call::Open], "Each call that opens a file"),
    ("create", &[Call::Create], "Each call that makes something"),
    ("rename", &[Call::Rename], "Each call that renames something"),
    ("list", &[Call::List], "Each call that lists a directory"),
];

fn cli() -> clap::Command {
    let delay = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("MS").help(help).value_parser(value_parser!(f64))
    };
    clap::Command::new("carrack-slow")
        .about("Mounts a directory at another, with calls that take longer")
        .after_help(
            "Says \"mounted\" once it is there, and stays until its standard input is closed; each line there, such as \
             \"write 20\", changes a delay. Needs root.",
        )
        .arg(Arg::new("backing").value_name("DIR").required(true).value_parser(value_parser!(PathBuf)))
        .arg(Arg::new("at").value_name("AT").required(true).value_parser(value_parser!(PathBuf)))
        .args(KINDS.map(|(name, _, help)| delay(name, help)))
}

/// Delays the calls of a kind by so many milliseconds.
fn slow(mounted: &FaultFs, kind: &str, millis: f64) {
    let calls = KINDS.iter().find(|(name, ..)| *name == kind).map_or(&[][..], |(_, calls, _)| calls);
    let by = Duration::from_secs_f64((millis / 1000.0).clamp(0.0, 3600.0));
    calls.iter().for_each(|call| mounted.slow_call(*call, by));
}

fn main() -> ExitCode {
    let matches = cli().get_matches();
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned().unwrap_or_default();
    let mounted =
        match FaultFs::mount(&path("backing"), &path("at"), Features { uncached: true, ..Features::default() }) {
            Ok(mounted) => mounted,
            Err(error) => {
                eprintln!("carrack-slow: {error}");
                return ExitCode::FAILURE;
            }
        };
    for (kind, ..) in KINDS {
        matches.get_one::<f64>(kind).into_iter().for_each(|millis| slow(&mounted, kind, *millis));
    }
    println!("mounted");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.split_once(' ').and_then(|(kind, millis)| Some((kind, millis.trim().parse().ok()?))) {
            Some((kind, millis)) => slow(&mounted, kind, millis),
            None => eprintln!("carrack-slow: not understood: {line}"),
        }
    }
    ExitCode::SUCCESS
}
