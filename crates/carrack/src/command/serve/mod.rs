//! `carrack serve`: a node, and beside it the service of managed transfers with its API, on one port. Says where it
//! listens, under which key, and the commands that reach it.

mod announce;
#[cfg(feature = "service")]
mod whole;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use carrack_core::grant::GrantKey;
use carrack_core::tuning::Tuning;
use carrack_engine::Stop;
use carrack_engine::node::{
    Access, Door, Measure, Network, Node, NodeConfig, NodeHandle, NodeLog, NodeRoot, RevokedGrants,
};
use clap::{ArgAction, Command};

use self::announce::Announcement;
#[cfg(feature = "service")]
pub use self::announce::host_name;
#[cfg(feature = "service")]
pub use self::whole::{KEYS, check_values, read_settings_at};
use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::ports::parse_listen;
use crate::cli::settings::Settings;
use crate::directories::state_directory;
use crate::error::CommandError;
use carrack_core::location::DEFAULT_PORT;

const ROOT: Value<Vec<u8>> = Value::path(
    "root",
    "DIR",
    "Directory to serve; nothing outside it can be reached [default: files, in the state directory of the service; \
     required with --node-only]",
);
const LISTEN: Value<SocketAddr> =
    Value::new("listen", "ADDR:PORT", parse_listen, "Address to listen on [default: [::]:7420]");
const TOKEN_FILE: Value<Vec<u8>> = Value::path(
    "token-file",
    "FILE",
    "File with the bearer token that clients must show [default: ~/.local/state/carrack/node.token, made if it does \
     not exist]",
);
pub const ANONYMOUS: Switch =
    Switch::new("anonymous", "Accept clients without a token: anyone who can reach the port can read and write");
const READ_ONLY: Switch = Switch::new("read-only", "Refuse every write");
const ALLOW_OWNERSHIP: Switch = Switch::new(
    "allow-ownership",
    "Let clients give owners, groups, set-user-id and set-group-id bits to what they write (-a, -o, -g, -p). Whoever may \
     write may then make programs that run as anybody",
);
const MEASURE: Value<Measure> = Value::word(
    "measure",
    "WHO",
    Measure::ALL,
    "Clients that may measure the path to this node (carrack bench net, ladder); one at a time [default: token]",
);
const DIAL_TO: Value<Network> = Value::new(
    "dial-to",
    "CIDR",
    Network::parse,
    "Network, like 10.20.0.0/16, that the node may always connect to for data; without it, the node does not connect \
     to loopback, link-local or its own addresses, and with --anonymous or --read-only only to the host that asks \
     [repeatable]",
);
const KEY_FILE: Value<Vec<u8>> = Value::path(
    "key-file",
    "FILE",
    "File with the node's private key [default: ~/.local/state/carrack/node.key, made if it does not exist]",
);
const NODE_ONLY: Switch = Switch::new("node-only", "Serve the directory alone: no managed transfers, no API");
const JSON: Switch = Switch::new("json", "Print the start-up lines as JSON");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("serve")
        .version(super::tree::version())
        .about("Serve a directory of this host as a node, and managed transfers, on one port")
        .after_help(
            "It prints the commands to copy from and to here, and serves until Ctrl-C stops it. Where XDG_STATE_HOME is set, \
             it stands for ~/.local/state. Transfers of the service are processes of their own: they go on when it ends.",
        )
        .args([ROOT.arg(), LISTEN.arg()])
        .arg(TOKEN_FILE.arg().conflicts_with(ANONYMOUS.name))
        .args([ANONYMOUS.arg(), READ_ONLY.arg(), ALLOW_OWNERSHIP.arg(), MEASURE.arg()])
        .arg(DIAL_TO.arg().action(ArgAction::Append))
        .args([KEY_FILE.arg(), JSON.arg(), NODE_ONLY.arg()]);
    #[cfg(feature = "service")]
    let verb = whole::with_flags(verb);
    verb
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    carrack_sys::host::give_memory_back();
    #[cfg(feature = "service")]
    return whole::run(flags);
    #[cfg(not(feature = "service"))]
    {
        let settings = Settings::of_flags(flags);
        let (node, facts) = start_node(&settings, Beside::nothing(super::context::stop()))?;
        announce::announce(&facts, settings.has(&ANONYMOUS), settings.has(&JSON));
        node.wait();
        Ok(crate::exit::DONE)
    }
}

/// What a node is given by what runs beside it.
struct Beside {
    /// Its root where none is named.
    root: Option<PathBuf>,
    /// A socket that listens already.
    listener: Option<TcpListener>,
    doors: Vec<Door>,
    /// Grants that are not taken any more.
    revoked: RevokedGrants,
    /// What opens grants of other directories of this host.
    host_grants: Option<GrantKey>,
    log: NodeLog,
    stop: Stop,
}

impl Beside {
    /// Nothing runs beside it.
    fn nothing(stop: Stop) -> Self {
        Self {
            root: None,
            listener: None,
            doors: Vec::new(),
            revoked: RevokedGrants::default(),
            host_grants: None,
            log: NodeLog::none(),
            stop,
        }
    }
}

fn path_of(settings: &Settings, flag: &Value<Vec<u8>>) -> Result<Option<PathBuf>, CommandError> {
    Ok(settings.get(flag)?.map(|bytes| PathBuf::from(OsString::from_vec(bytes))))
}

/// Starts the node that was asked for.
fn start_node(settings: &Settings, beside: Beside) -> Result<(NodeHandle, Announcement), CommandError> {
    let root = path_of(settings, &ROOT)?
        .or(beside.root)
        .ok_or_else(|| CommandError::usage("serve needs --root DIR: what is not below it cannot be reached"))?;
    let listen = settings.get(&LISTEN)?;
    let read_only = settings.has(&READ_ONLY);
    let config = NodeConfig {
        root: NodeRoot::Directory(root.clone()),
        listen: listen.unwrap_or(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), DEFAULT_PORT)),
        listener: beside.listener,
        access: match path_of(settings, &TOKEN_FILE)? {
            // A flag outweighs the environment, where the token file may come from.
            _ if settings.has(&ANONYMOUS) => Access::Anonymous,
            Some(file) => Access::TokenFile(file),
            None => Access::Generated(state_directory().join("node.token")),
        },
        read_only,
        allows_ownership: allows_ownership(settings)?,
        measure: settings.get(&MEASURE)?.unwrap_or_default(),
        dial_to: settings.all(&DIAL_TO)?,
        key_file: path_of(settings, &KEY_FILE)?.unwrap_or_else(|| state_directory().join("node.key")),
        stop: beside.stop,
        revoked: beside.revoked,
        host_grants: beside.host_grants,
        doors: beside.doors,
        log: beside.log,
        tuning: Tuning::DEFAULT,
    };
    let node = Node::start(config)?;
    let facts = Announcement {
        address: node.address(),
        fingerprint: node.fingerprint(),
        token_file: node.token_file().map(Path::to_path_buf),
        root,
        read_only,
        service: None,
    };
    Ok((node, facts))
}

/// Whether clients may give owners.
///
/// # Errors
/// A usage error where anybody could, or where this user cannot.
fn allows_ownership(settings: &Settings) -> Result<bool, CommandError> {
    let allows = settings.has(&ALLOW_OWNERSHIP);
    if allows && settings.has(&ANONYMOUS) {
        return Err(CommandError::usage(
            "--allow-ownership and --anonymous would let anybody make programs that run as root",
        ));
    }
    if allows && carrack_sys::host::user_id() != 0 {
        return Err(CommandError::usage("--allow-ownership needs root: nobody else can give owners"));
    }
    Ok(allows)
}

/// Reads every value of the node.
#[cfg(feature = "service")]
fn check_node_values(settings: &Settings) -> Result<(), CommandError> {
    settings.get(&LISTEN)?;
    settings.get(&MEASURE)?;
    settings.all(&DIAL_TO)?;
    Ok(())
}
