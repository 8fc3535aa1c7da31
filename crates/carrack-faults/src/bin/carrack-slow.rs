//! A directory seen through a slow file system, for the benchmark and for trying things out. `carrack-slow --help` says
//! how.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use carrack_faults::fuse::{Call, FaultFs, Features};
use clap::{Arg, value_parser};

fn cli() -> clap::Command {
    let delay = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("MS").help(help).value_parser(value_parser!(f64)).default_value("0")
    };
    clap::Command::new("carrack-slow")
        .about("Mounts a directory at another, with calls that take longer")
        .after_help("Says \"mounted\" once it is there, and stays until its standard input is closed. Needs root.")
        .arg(Arg::new("backing").value_name("DIR").required(true).value_parser(value_parser!(PathBuf)))
        .arg(Arg::new("at").value_name("AT").required(true).value_parser(value_parser!(PathBuf)))
        .arg(delay("read", "Each read takes so much longer"))
        .arg(delay("write", "Each write"))
        .arg(delay("sync", "Each fsync"))
        .arg(delay("metadata", "Each call that opens, makes, renames, lists or looks at something"))
}

fn main() -> ExitCode {
    let matches = cli().get_matches();
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned().unwrap_or_default();
    let delay = |name: &str| {
        let millis = matches.get_one::<f64>(name).copied().unwrap_or(0.0);
        Duration::from_secs_f64((millis / 1000.0).clamp(0.0, 3600.0))
    };
    let mounted =
        match FaultFs::mount(&path("backing"), &path("at"), Features { uncached: true, ..Features::default() }) {
            Ok(mounted) => mounted,
            Err(error) => {
                eprintln!("carrack-slow: {error}");
                return ExitCode::FAILURE;
            }
        };
    mounted.slow_call(Call::Read, delay("read"));
    mounted.slow_call(Call::Write, delay("write"));
    mounted.slow_call(Call::Sync, delay("sync"));
    for call in [Call::Open, Call::Create, Call::Rename, Call::Unlink, Call::List, Call::Look, Call::Change] {
        mounted.slow_call(call, delay("metadata"));
    }
    println!("mounted");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}
