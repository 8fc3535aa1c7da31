//! `carrack fan`: one command on many hosts.

use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use carrack_core::location::SshHost;
use carrack_engine::{Stop, StopReason};
use clap::Command;

use super::context::stop;
use super::reach::{CONNECT_TIMEOUT, JSON, QUIET, RSH};
use crate::cli::flag::{Positional, Value};
use crate::cli::flags::Flags;
use crate::cli::hosts::parse_hosts;
use crate::error::CommandError;
use crate::exit;
use crate::fan::shown::FanOutput;
use crate::fan::{FanEnded, FanRequest, HostEnd, run as run_everywhere};
use carrack_core::duration::parse_timeout;

const HOSTS: Positional = Positional::several("hosts", "HOSTS");
const COMMAND: Positional = Positional::several("command", "COMMAND");
const AT_ONCE: Value<usize> =
    Value::new("at-once", "N", parse_at_once, "Hosts on which the command runs at a time [default: 32]");
const AT_ONCE_DEFAULT: usize = 32;
const AT_ONCE_MAX: usize = 1024;
const TIMEOUT: Value<Duration> =
    Value::new("timeout", "TIME", parse_timeout, "End the command on a host after TIME, like 90s [default: never]");
const OUTPUT: Value<Vec<u8>> =
    Value::path("output", "DIR", "Write what each host says to DIR/HOST.out and DIR/HOST.err, not to the terminal")
        .letter('o');
/// A pipe has room for it.
const COMMAND_BYTES_MAX: usize = 32 << 10;

const NOTES: &str = "\
HOSTS are names for ssh, separated by commas or spaces: 'c[080-101]' is c080, c081 and so on to c101, 'c[1,3-5]'
is c1, c3, c4 and c5, and 'me@c1' names the login. Quote brackets for your own shell.

The words of COMMAND, joined by spaces, are read by the login shell of each host, as with ssh. Its standard
input is empty. ssh asks for nothing (BatchMode); ssh-agent serves many hosts. When its time is over, when the
connection is lost, or when you press Ctrl-C, the command is ended on each host with all that it has started.

Exit codes: 0 if the command ended with 0 on every host, 10 if no host could be reached, 23 if anything else
went wrong on any host; the summary names each such host. 20 and 75 after a signal.";

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("fan")
        .about("Run a command on many hosts by ssh")
        .override_usage("carrack fan [OPTIONS] HOSTS... -- COMMAND...")
        .after_help(NOTES)
        .arg(HOSTS.arg().required(true).help("Hosts, as c[080-101]"))
        .arg(COMMAND.arg().required(true).last(true).help("What runs there"))
        .args([AT_ONCE.arg(), TIMEOUT.arg()])
        .args([RSH.arg(), CONNECT_TIMEOUT.arg()].map(|flag| flag.help_heading("Hosts")))
        .args([OUTPUT.arg(), QUIET.arg(), JSON.arg()].map(|flag| flag.help_heading("Output")))
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let request = request(flags)?;
    let output = FanOutput::open(flags.has(&JSON), flags.given(&OUTPUT).as_ref().map(|given| &*given.value))?;
    let (began, stop) = (Instant::now(), stop());
    let ends = run_everywhere(&request, &stop, &output);
    let code = exit_code(&ends, &stop);
    output.finish(&ends, began.elapsed().as_secs_f64(), code, flags.has(&QUIET))?;
    Ok(code)
}

fn request(flags: &Flags) -> Result<FanRequest, CommandError> {
    let words: Vec<&[u8]> = flags.words(&COMMAND).map(|word| word.as_bytes()).collect();
    let command = words.join(&b' ');
    if command.len() > COMMAND_BYTES_MAX || command.contains(&0) {
        let why = format!("the command has more than {COMMAND_BYTES_MAX} bytes");
        return Err(CommandError::usage(why).hint("copy a script to the hosts first, and run that"));
    }
    Ok(FanRequest {
        hosts: hosts(flags.words(&HOSTS).map(|word| word.to_string_lossy().into_owned()))?,
        command,
        rsh: flags.get(&RSH)?.unwrap_or_else(|| vec!["ssh".to_owned()]),
        at_once: flags.get(&AT_ONCE)?.unwrap_or(AT_ONCE_DEFAULT),
        timeout: flags.get(&TIMEOUT)?,
        connect_timeout: flags.get(&CONNECT_TIMEOUT)?.unwrap_or(carrack_core::tuning::CONNECT_TIMEOUT),
    })
}

/// All words of the line name one list of hosts.
fn hosts(words: impl Iterator<Item = String>) -> Result<Vec<SshHost>, CommandError> {
    parse_hosts(&words.collect::<Vec<_>>().join(" ")).map_err(CommandError::usage)
}

fn exit_code(ends: &[HostEnd], stop: &Stop) -> u8 {
    let is_unreached = |end: &HostEnd| matches!(end.ended, FanEnded::Unreachable(_));
    match stop.requested() {
        _ if ends.iter().all(|end| end.ended.is_good()) => exit::DONE,
        Some(StopReason::Terminate | StopReason::Hangup) => exit::TERMINATED,
        Some(_) => exit::INTERRUPTED,
        None if ends.iter().all(is_unreached) => exit::NETWORK,
        None => exit::PARTIAL,
    }
}

fn parse_at_once(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=AT_ONCE_MAX).contains(&number) => Ok(number),
        _ => Err(format!("{text:?} is not a number of hosts from 1 to {AT_ONCE_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(all: &[FanEnded]) -> Vec<HostEnd> {
        let host = SshHost { user: None, host: "a".to_owned() };
        all.iter().map(|ended| HostEnd { host: host.clone(), ended: ended.clone(), elapsed: Duration::ZERO }).collect()
    }

    #[test]
    fn exit_code_is_of_all_hosts() {
        let unreached = || FanEnded::Unreachable(String::new());
        let going = Stop::new();
        assert_eq!(exit_code(&ends(&[FanEnded::Code(0), FanEnded::Code(0)]), &going), exit::DONE);
        assert_eq!(exit_code(&ends(&[FanEnded::Code(0), FanEnded::Code(1)]), &going), exit::PARTIAL);
        assert_eq!(exit_code(&ends(&[unreached(), FanEnded::Code(0)]), &going), exit::PARTIAL);
        assert_eq!(exit_code(&ends(&[unreached(), unreached()]), &going), exit::NETWORK);
        let stopped = Stop::new();
        stopped.request(StopReason::Terminate);
        assert_eq!(exit_code(&ends(&[FanEnded::Stopped, FanEnded::NotStarted]), &stopped), exit::TERMINATED);
    }

    #[test]
    fn numbers_of_hosts_have_bounds() {
        assert_eq!((parse_at_once("1"), parse_at_once("1024")), (Ok(1), Ok(1024)));
        assert!(["0", "1025", "x", ""].iter().all(|text| parse_at_once(text).is_err()));
    }
}
