//! A command to which the kernel refuses all that came after Linux 3.10, for the benchmark and for trying things out.
//! `carrack-refused --help` says how.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use carrack_faults::refused::{CALLS, FLAGS, of_nothing, within};
use clap::{Arg, ArgAction};

fn cli() -> clap::Command {
    clap::Command::new("carrack-refused")
        .about("Runs a command to which each call that came after Linux 3.10 fails with ENOSYS, and each flag with EOPNOTSUPP")
        .after_help("It holds for all that the command starts. clone3 stays: the C library of an older host does not call it.")
        .arg(
            Arg::new("nothing")
                .long("nothing")
                .help("Refuse nothing: what looking at each call costs by itself")
                .action(ArgAction::SetTrue),
        )
        .arg(Arg::new("command").value_name("COMMAND").num_args(1..).trailing_var_arg(true).required(true))
}

fn main() -> ExitCode {
    let matches = cli().get_matches();
    let words: Vec<&String> = matches.get_many("command").into_iter().flatten().collect();
    let (mut flags, mut calls) = (FLAGS.to_vec(), CALLS.to_vec());
    if matches.get_flag("nothing") {
        (flags, calls) = (of_nothing(&flags), of_nothing(&calls));
    }
    let error = within(&flags, libc::EOPNOTSUPP, || {
        within(&calls, libc::ENOSYS, || Command::new(words[0]).args(&words[1..]).exec())
    });
    eprintln!("carrack-refused: {}: {error}", words[0]);
    ExitCode::FAILURE
}
