//! A tree of empty files that stand nowhere, for the benchmark. `carrack-invented --help` says how.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use carrack_faults::invented::InventedTree;
use clap::{Arg, value_parser};

fn main() -> ExitCode {
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("N").help(help).value_parser(value_parser!(u64)).default_value("0")
    };
    let matches = clap::Command::new("carrack-invented")
        .about("Mounts a tree of empty files that are made up when somebody looks")
        .after_help("Says \"mounted\" once it is there, and stays until its standard input is closed. Needs root.")
        .arg(Arg::new("at").value_name("AT").required(true).value_parser(value_parser!(PathBuf)))
        .arg(number("files", "So many files"))
        .arg(number("refused", "Every N-th cannot be opened"))
        .get_matches();
    let count = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or(0);
    let at = matches.get_one::<PathBuf>("at").cloned().unwrap_or_default();
    match InventedTree::mount(&at, count("files"), count("refused")) {
        Ok(_tree) => {
            println!("mounted");
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("carrack-invented: {error}");
            ExitCode::FAILURE
        }
    }
}
