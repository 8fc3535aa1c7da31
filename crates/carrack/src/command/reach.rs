//! Flags of every verb that reaches other hosts: how they are reached, which token their node is shown, and how the
//! verb says what happened.

use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use carrack_core::credential::Credential;
use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::request::{Push, Reach, are_one_node};
use clap::{Arg, Command};

use crate::agents;
use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::words::split_words;
use crate::error::CommandError;
#[cfg(feature = "service")]
use crate::managed::service::SERVICE;
use crate::tokens;
use carrack_core::duration::parse_timeout;

/// The command that reaches other hosts.
pub const RSH: Value<Vec<String>> =
    Value::new("rsh", "COMMAND", split_words, "Use this in place of ssh, for example 'ssh -p 2222' [default: ssh]")
        .letter('e');
/// Where the program is at the other host.
pub const REMOTE_PATH: Value<String> =
    Value::new("remote-path", "PATH", parse_remote_path, "Path of the remote carrack, if it is not on the PATH there");
/// Installs nothing there.
pub const NO_PUSH: Switch = Switch::new("no-push", "Never install carrack on a host that lacks it");
/// How long a connection may take.
pub const CONNECT_TIMEOUT: Value<Duration> = Value::new(
    "connect-timeout",
    "TIME",
    parse_timeout,
    "Limit from starting ssh, or connecting to a node, to its first answer; typing a password counts [default: 60s]",
);
/// Where connections come from.
pub const BIND: Value<IpAddr> = Value::new(
    "bind",
    "ADDR",
    parse_bind,
    "Local IP address that connections to nodes and data connections use [default: the system's choice]",
);
/// The token of the node, where there is one node.
pub const TOKEN_FILE: Value<Vec<u8>> = Value::path(
    "token-file",
    "FILE",
    "File with the bearer token for the node; only you may be able to read it [default: the one kept by `carrack \
     token add`, else the token in the variable BEARER_TOKEN, in the file that the variable BEARER_TOKEN_FILE names, \
     in $XDG_RUNTIME_DIR/bt_uUID or /tmp/bt_uUID, where UID is your user's number]",
);
/// Turns off everything on standard error except errors.
pub const QUIET: Switch = Switch::short('q', "quiet", "Print only errors");
/// Writes output for programs.
pub const JSON: Switch = Switch::new("json", "Print one JSON object a line on standard output");

/// Tells more.
pub const VERBOSE: Switch =
    Switch::short('v', "verbose", "Tell also how hosts are reached, and each thing that is done");

/// Adds the flags of a file verb.
pub fn with_reach(verb: Command) -> Command {
    let has_own = verb.get_arguments().any(|arg| arg.get_id() == VERBOSE.name);
    let verb = if has_own { verb } else { verb.arg(VERBOSE.arg().help_heading("Output")) };
    verb.args(args()).args([QUIET, JSON].map(|flag| flag.arg().help_heading("Output")))
}

/// Adds the flags of a file verb that takes paths of a service's endpoints, too.
pub fn with_endpoints(verb: Command) -> Command {
    with_reach(with_service(verb))
}

/// Adds the flag that names the service whose endpoints are meant.
#[cfg(feature = "service")]
pub fn with_service(verb: Command) -> Command {
    verb.arg(SERVICE.arg().help_heading("Hosts").help(
        "The service whose endpoints @NAME are: https://HOST[:PORT][#sha256:FINGERPRINT], or the path of its socket \
         [default: the one of this host, else that of the last carrack login]",
    ))
}

/// In this build there is none.
#[cfg(not(feature = "service"))]
pub fn with_service(verb: Command) -> Command {
    verb
}

/// Flags that say how hosts are reached.
pub fn args() -> [Arg; 6] {
    [
        RSH.arg(),
        REMOTE_PATH.arg(),
        NO_PUSH.arg(),
        CONNECT_TIMEOUT.arg().alias("contimeout"),
        BIND.arg(),
        TOKEN_FILE.arg(),
    ]
    .map(|arg| arg.help_heading("Hosts"))
}

/// How hosts are reached.
///
/// # Errors
/// A usage error in the flags.
pub fn reach(flags: &Flags) -> Result<Reach, CommandError> {
    let default = Reach::default();
    Ok(Reach {
        rsh: flags.get(&RSH)?.unwrap_or(default.rsh),
        remote_path: flags.get(&REMOTE_PATH)?,
        push: if flags.has(&NO_PUSH) { Push::Never } else { agents::push() },
        local_address: flags.get(&BIND)?,
        connect_timeout: flags.get(&CONNECT_TIMEOUT)?.unwrap_or(default.connect_timeout),
        ..default
    })
}

/// What the nodes are shown that a verb goes to.
///
/// # Errors
/// One token for several nodes.
pub fn credential(flags: &Flags, locations: &[Location]) -> Result<Credential, CommandError> {
    let nodes = || locations.iter().filter_map(Location::node);
    match flags.given(&TOKEN_FILE) {
        Some(given) if !are_one_node(nodes()) => Err(CommandError::usage(format!(
            "{} names one token, and the locations are on several nodes: each would learn the token of the others",
            given.origin
        ))
        .hint("name one node at a time, or keep each node's token once: carrack token add HOST:PORT <FILE")),
        Some(given) => Ok(Credential::File(given.value)),
        None => Ok(tokens::search(!are_one_node(nodes()))),
    }
}

/// The address must be one of this host. That is checked here: later, it would look like a network that does not
/// work, and be tried again.
fn parse_bind(text: &str) -> Result<IpAddr, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address: IpAddr =
        bare.parse().map_err(|_| format!("{text:?} is not an address: use a numeric one, like 10.0.0.7"))?;
    if address.is_unspecified() {
        return Err(format!("{address} stands for all addresses: name one"));
    }
    match UdpSocket::bind((address, 0)) {
        Ok(_) => Ok(address),
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
            Err(format!("{address} is not an address of this host"))
        }
        Err(error) => Err(format!("{address} cannot be used on this host: {error}")),
    }
}

fn parse_remote_path(text: &str) -> Result<String, String> {
    let shown = display_bytes(text.as_bytes());
    match text.chars().next() {
        None => Err("the path is empty".to_owned()),
        Some('-') => Err(format!("{shown} starts with a dash")),
        _ if text.contains(char::is_control) => Err(format!("{shown} contains a control character")),
        _ => Ok(text.to_owned()),
    }
}
