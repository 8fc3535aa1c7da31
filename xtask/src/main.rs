//! Chores of the house: `cargo xtask <chore>`.
//!
//! Each check returns findings, printed as `path:line: what`; any finding makes the exit code 1.
//! A chore that cannot be carried out at all says why on stderr and exits with 2.

mod agents;
mod deny;
mod documents;
mod faults;
mod floors;
mod instructions;
mod layers;
mod mans;
mod metadata;
mod mutants;
mod names;
mod packages;
mod release;
mod runs;
mod source;
mod tidy;

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask <chore>

  layers             which crate and which module may use which
  tidy               lengths of files, width of documents, headers, banned words; tests, files and messages named in docs
  packages           how many third-party packages each build of the program links; licences, bans, sources
  agents [--plain]   build the slim program for other hosts into target/agents; --plain: against this host's C library
  man DIR            write the manual pages into DIR
  completions DIR    write the shells' completions into DIR
  release            build program and packages into target/packages, by `make release`

  instructions       what the hot loop takes for each KiB, counted by valgrind, beside what it took

long runs of tests, for a night or before a release:

  sim [--seeds N] [--first K]   the simulation of both machines, so many seeds from K on
  sweep NAME                    kill, power, race and others: killed at every call; power cut 100 times; names swapped for a minute
  soak --minutes M              a node under copies, kills, resets and a full disk: does it grow?
  crowd [--clients N] [--rounds R]   commands all at once at a slow node: all must end well (300 and 10)
  portable [WORDS ...]          all tests (those whose name has WORDS), by the calls that every other system has, too
  mutants [WORDS ...]           safeguards taken out one by one (those whose name or test has WORDS): a test must fail";

/// One thing to mend. Ordered by place, so that a report reads top-down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let root = root();
    let findings = match args[..] {
        ["layers"] => layers::check(&root),
        ["tidy"] => tidy::check(&root),
        ["packages"] => packages::check(&root),
        ["instructions"] => instructions::check(&root),
        ["agents", ref options @ ..] => agents::build(&root, options).map(|()| Vec::new()),
        ["man", dir] => mans::pages(dir).map(|()| Vec::new()),
        ["completions", dir] => mans::completions(dir).map(|()| Vec::new()),
        ["release"] => release::build(&root).map(|()| Vec::new()),
        ["sim", ref options @ ..] => runs::simulate(&root, options).map(|()| Vec::new()),
        ["sweep", name] => runs::sweep(&root, name).map(|()| Vec::new()),
        ["soak", "--minutes", minutes] => runs::soak(&root, minutes).map(|()| Vec::new()),
        ["crowd", ref options @ ..] => runs::crowd(&root, options).map(|()| Vec::new()),
        ["portable", ref words @ ..] => runs::portable(&root, words).map(|()| Vec::new()),
        ["mutants", ref words @ ..] => mutants::check(&root, words),
        ["help" | "-h" | "--help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match findings {
        Ok(findings) => report(args[0], findings),
        Err(why) => {
            eprintln!("xtask {}: {why}", args[0]);
            ExitCode::from(2)
        }
    }
}

fn report(chore: &str, mut findings: Vec<Finding>) -> ExitCode {
    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("xtask {chore}: {} to mend", findings.len());
    ExitCode::FAILURE
}

/// The workspace's root. Cargo says at run time where this package is; the path known when this
/// was built serves a binary started by hand.
fn root() -> PathBuf {
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&package).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The cargo that runs this program, so that a chore uses the same toolchain.
fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
}

/// Runs `command` and returns what it printed; a failure carries what it said on stderr.
fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|e| format!("cannot run {command:?}: {e}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{command:?}: {}\n{}", done.status, said.trim_end()));
    }
    String::from_utf8(done.stdout).map_err(|e| format!("{command:?}: output is not UTF-8: {e}"))
}
