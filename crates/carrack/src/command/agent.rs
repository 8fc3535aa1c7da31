//! `carrack agent`: what a command starts on the far side of an ssh connection.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use carrack_core::wire::PROTOCOL_VERSION;
use carrack_engine::{Context, FarSide, Place};
use clap::{Arg, Command};

use crate::cli::flag::Switch;
use crate::cli::flags::Flags;
#[cfg(feature = "terminal")]
use crate::command::bench::peers_part;
use crate::command::context::context;
use crate::crowd::far;
use crate::error::CommandError;
use crate::exit;

const HELLO: &str = "hello";
const SPEAKS: &str = "speaks";
const IN: &str = "in";
const PART: &str = "part";
/// What a process at the far side may be instead of an agent.
const LOAD: &str = "load";
/// The same of a program that measures: what is sent to hosts without one does not.
#[cfg(feature = "terminal")]
const PEERS: &str = "peers";
#[cfg(feature = "terminal")]
const PARTS: [&str; 2] = [LOAD, PEERS];
#[cfg(not(feature = "terminal"))]
const PARTS: [&str; 1] = [LOAD];
const SYNC: Switch = Switch::new("sync", "Sync the program's own file before answering");
const ONCE: Switch = Switch::new("once", "Remove the program's own file, and its directory");

/// What clap knows of it. Its flags are not for people, and free to change with the protocol.
pub fn command() -> Command {
    let flags = [
        Arg::new(HELLO).long(HELLO).value_name("NONCE").required_unless_present(SPEAKS),
        Arg::new(SPEAKS).long(SPEAKS).value_name("N").value_parser(clap::value_parser!(u32)),
        Arg::new(IN).long(IN).value_name("DIR").value_parser(clap::value_parser!(PathBuf)),
        Arg::new(PART).long(PART).value_name("WORD").value_parser(PARTS),
        SYNC.arg(),
        ONCE.arg(),
    ];
    let agent = Command::new("agent").args(flags.map(|flag| flag.hide(true)));
    with_actions(agent)
}

/// What people do with it.
#[cfg(feature = "slim-inside")]
fn with_actions(agent: Command) -> Command {
    super::agents::with_actions(agent)
}

/// Nothing.
#[cfg(not(feature = "slim-inside"))]
fn with_actions(agent: Command) -> Command {
    agent.hide(true).about("Speak the protocol on standard input and output")
}

/// Runs the verb: the protocol on standard input and output, or only whether it is spoken. Who says so repeats the
/// nonce: an empty file that a shell takes for a program does not.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    #[cfg(feature = "slim-inside")]
    if let Some((action, flags)) = flags.subcommand() {
        return super::agents::run(action, &flags);
    }
    let nonce = flags.typed_one::<String>(HELLO).map(String::as_str).unwrap_or_default();
    if let Some(version) = flags.typed_one::<u32>(SPEAKS) {
        if *version != PROTOCOL_VERSION {
            return Ok(exit::OTHER);
        }
        if flags.has(&SYNC) {
            own_file("sync the program", |path| match File::open(path)?.sync_all() {
                // A file system that has nothing to wait for.
                Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
                    Ok(())
                }
                synced => synced,
            })?;
        }
        let said = writeln!(io::stdout(), "{nonce}");
        return Ok(if said.is_ok() { exit::DONE } else { exit::OTHER });
    }
    check_nonce(nonce)?;
    if flags.has(&ONCE) {
        // It runs on without its name. What cannot be removed costs room, and nothing else.
        let _ = own_file("remove the program", |path| {
            std::fs::remove_file(path)?;
            path.parent().map_or(Ok(()), std::fs::remove_dir)
        });
    }
    if let Some(directory) = flags.typed_one::<PathBuf>(IN) {
        // Relative paths are below it: anywhere else they would be others.
        std::env::set_current_dir(directory)
            .map_err(|error| CommandError::file("go to", directory.as_os_str().as_encoded_bytes(), &error))?;
    }
    if let Some(part) = flags.typed_one::<String>(PART) {
        let run = run_of(part);
        let broken = |error: io::Error| CommandError::file("write to", b"standard output", &error);
        run(nonce, &context()).map_err(broken)?;
        return Ok(exit::DONE);
    }
    far_side(nonce).run()?;
    Ok(exit::DONE)
}

/// What carries out a part.
fn run_of(part: &str) -> fn(&str, &Context) -> io::Result<()> {
    #[cfg(feature = "terminal")]
    if part == PEERS {
        return peers_part::run;
    }
    debug_assert_eq!(part, LOAD, "there is no other");
    far::run
}

/// What ssh and its login shell have given this process.
fn far_side(nonce: &str) -> FarSide {
    // SSH_CONNECTION: client address, client port, server address, server port; of the connection really used.
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let words: Vec<&str> = connection.split_ascii_whitespace().collect();
    let word = |index: usize| words.get(index).map(|word| (*word).to_string()).unwrap_or_default();
    FarSide {
        nonce: nonce.to_owned(),
        input: Box::new(io::stdin()),
        output: Box::new(io::stdout()),
        place: Place::Anywhere { home: std::env::var_os("HOME").map(PathBuf::from) },
        local_address: word(2),
        peer_address: word(0),
        abandoned: Box::new(|| carrack_sys::host::exit_at_once(0)),
    }
}

/// Does something with the file of this program.
fn own_file(what: &str, action: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), CommandError> {
    let path = std::env::current_exe().unwrap_or_default();
    action(&path).map_err(|error| CommandError::file(what, path.as_os_str().as_encoded_bytes(), &error))
}

/// The nonce is echoed in the agent's first line: it must not be able to end that line.
fn check_nonce(nonce: &str) -> Result<(), CommandError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/=".contains(&byte);
    if nonce.is_empty() || nonce.len() > 128 || !nonce.bytes().all(plain) {
        return Err(CommandError::usage("--hello takes 1 to 128 letters and digits"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces() {
        assert!(check_nonce("0123456789abcdefXYZ-_").is_ok());
        for nonce in ["", "a b", "a\nb", "ä", &"x".repeat(129)] {
            assert!(check_nonce(nonce).is_err(), "{nonce:?}");
        }
    }

    #[test]
    fn speaks_only_what_is_spoken() {
        for (version, code) in [(PROTOCOL_VERSION, exit::DONE), (PROTOCOL_VERSION + 1, exit::OTHER), (0, exit::OTHER)] {
            let matches = crate::command::whole_tree()
                .try_get_matches_from(["carrack", "agent", "--speaks", &version.to_string()])
                .expect("a good line");
            let (_, matches) = matches.subcommand().expect("agent");
            assert_eq!(run(&Flags::new(matches, &|_| None)), Ok(code));
        }
    }
}
