//! Connecting to a node: its key checked against the list of known ones, a bearer token found where tools keep them.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use carrack_core::location::NodeAddress;
use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::Reach;

use super::dial::connect_any;
use super::refusals;
use super::tls::{ALPN_CONTROL, Tls};
use crate::data::socket::Socket;
use crate::error::{describe, failure};

/// A control connection to a node, before the first message.
pub struct NodeConnection {
    /// The socket.
    pub socket: TcpStream,
    /// Its TLS state.
    pub tls: Box<Tls>,
    /// The address that answered.
    pub address: SocketAddr,
    /// The key that the node showed.
    pub pin: [u8; 32],
    /// The bearer token to show it; empty for none.
    pub token: String,
}

/// Connects, and checks the node's key: against the pin typed, else against the list of known nodes, to which a node is added the
/// first time that it is met.
///
/// # Errors
/// When nobody answers, or somebody with another key.
pub fn connect(
    node: &NodeAddress,
    reach: &Reach,
    note: &Arc<dyn Fn(String) + Send + Sync>,
) -> Result<NodeConnection, Failure> {
    let host = if node.host.contains(':') { format!("[{}]", node.host) } else { node.host.clone() };
    let deadline = Instant::now() + reach.connect_timeout;
    let (socket, address) = connect_any(&[format!("{host}:{}", node.port)], deadline).map_err(|error| {
        let message = format!(
            "{node}: no connection: {}. Is `carrack serve` running there, and is the port open?",
            describe(&error)
        );
        let is_unknown = refusals::is_no_such_name(&describe(&error));
        failure(if is_unknown { ErrorCode::HostUnknown } else { ErrorCode::ConnectFailed }, Side::Link, message)
    })?;
    let socket = Socket::Tcp(socket);
    super::dial::tune(&socket);
    let lost = |error: io::Error| {
        failure(ErrorCode::ConnectFailed, Side::Link, format!("{node}: no TLS session: {}", describe(&error)))
    };
    socket
        .set_timeout(Some(
            deadline.saturating_duration_since(Instant::now()).max(std::time::Duration::from_millis(100)),
        ))
        .map_err(lost)?;
    let known = Known::load();
    let pin = node.pin.or_else(|| known.pin_of(node));
    let mut tls = Tls::client(None, &[ALPN_CONTROL]).map_err(lost)?;
    tls.handshake(&socket).map_err(lost)?;
    let shown =
        tls.peer_pin().ok_or_else(|| failure(ErrorCode::KeyMismatch, Side::Link, format!("{node}: showed no key")))?;
    match pin {
        Some(pin) if pin == shown => {}
        Some(pin) => return Err(mismatch(node, pin, shown, &known)),
        None => known.remember(node, shown, note),
    }
    socket.set_timeout(None).map_err(lost)?;
    let Socket::Tcp(socket) = socket else {
        return Err(failure(ErrorCode::Internal, Side::Link, "a node that is not on TCP"));
    };
    Ok(NodeConnection { socket, tls: Box::new(tls), address, pin: shown, token: find_token(reach)? })
}

fn mismatch(node: &NodeAddress, pinned: [u8; 32], shown: [u8; 32], known: &Known) -> Failure {
    let advice = if node.pin.is_some() {
        "the address names another key: check it with the node's administrator".to_string()
    } else {
        format!(
            "if the node was set up anew, remove its line from {} and connect again; if not, somebody is in between",
            known.path.display()
        )
    };
    let message =
        format!("{node}: shows the key sha256:{}, and sha256:{} is pinned for it: {advice}", hex(&shown), hex(&pinned));
    failure(ErrorCode::KeyMismatch, Side::Link, message)
}

/// As hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The list of known nodes: a line for each, its address and its key's fingerprint.
struct Known {
    path: PathBuf,
    text: String,
}

impl Known {
    fn load() -> Self {
        let path = config_directory().join("known_nodes");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Self { path, text }
    }

    fn pin_of(&self, node: &NodeAddress) -> Option<[u8; 32]> {
        let name = node.to_string();
        self.text.lines().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            (words.next() == Some(&name))
                .then(|| words.next())?
                .and_then(|word| parse_fingerprint(word.strip_prefix("sha256:")?))
        })
    }

    fn remember(&self, node: &NodeAddress, pin: [u8; 32], note: &Arc<dyn Fn(String) + Send + Sync>) {
        let kept = (|| {
            if let Some(directory) = self.path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
            file.write_all(format!("{node} sha256:{}\n", hex(&pin)).as_bytes())
        })();
        match kept {
            Ok(()) => note(format!(
                "{node}: first meeting; its key sha256:{} is now pinned in {}",
                hex(&pin),
                self.path.display()
            )),
            Err(error) => note(format!(
                "{node}: its key sha256:{} could not be pinned in {}: {}",
                hex(&pin),
                self.path.display(),
                describe(&error)
            )),
        }
    }
}

fn parse_fingerprint(text: &str) -> Option<[u8; 32]> {
    let bytes: Option<Vec<u8>> = (0..text.len())
        .step_by(2)
        .map(|at| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    bytes?.try_into().ok()
}

/// `$XDG_CONFIG_HOME/carrack` or `~/.config/carrack`.
pub fn config_directory() -> PathBuf {
    base_directory("XDG_CONFIG_HOME", ".config")
}

/// `$XDG_STATE_HOME/carrack` or `~/.local/state/carrack`.
pub fn state_directory() -> PathBuf {
    base_directory("XDG_STATE_HOME", ".local/state")
}

fn base_directory(variable: &str, below_home: &str) -> PathBuf {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from).join(below_home);
    set.unwrap_or_else(home).join("carrack")
}

/// A bearer token, in the order that all tools of the field use: the file named, `BEARER_TOKEN`, `BEARER_TOKEN_FILE`,
/// `$XDG_RUNTIME_DIR/bt_u<uid>`, `/tmp/bt_u<uid>`.
fn find_token(reach: &Reach) -> Result<String, Failure> {
    use std::os::unix::ffi::OsStrExt;
    if let Some(path) = &reach.token_file {
        return read_token(Path::new(std::ffi::OsStr::from_bytes(path)));
    }
    if let Ok(token) = std::env::var("BEARER_TOKEN") {
        return Ok(token.trim().to_string());
    }
    if let Some(path) = std::env::var_os("BEARER_TOKEN_FILE") {
        return read_token(Path::new(&path));
    }
    let name = format!("bt_u{}", carrack_sys::host::user_id());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(|directory| PathBuf::from(directory).join(&name));
    for path in runtime.into_iter().chain([Path::new("/tmp").join(&name)]) {
        if path.exists() {
            return read_token(&path);
        }
    }
    Ok(String::new())
}

/// Reads a token that nobody else can read.
///
/// # Errors
/// When others can, or it is not theirs to give.
pub fn read_token(path: &Path) -> Result<String, Failure> {
    let refuse = |why: String| {
        failure(
            ErrorCode::AuthenticationFailed,
            Side::Command,
            format!("token file {}: {why}", display_bytes(path.as_os_str().as_encoded_bytes())),
        )
    };
    let mut file = std::fs::File::open(path).map_err(|error| refuse(describe(&error)))?;
    let facts = file.metadata().map_err(|error| refuse(describe(&error)))?;
    if facts.mode() & 0o077 != 0 {
        return Err(refuse(format!(
            "others can read or write it (mode {:o}): chmod 600 it, and change the token",
            facts.mode() & 0o777
        )));
    }
    let user = carrack_sys::host::user_id();
    if facts.uid() != user && facts.uid() != 0 {
        return Err(refuse(format!("it belongs to user {}, not to you", facts.uid())));
    }
    let mut text = String::new();
    let read = io::Read::read_to_string(&mut io::Read::take(&mut file, 64 << 10), &mut text);
    read.map_err(|error| refuse(describe(&error)))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(refuse("it is empty".into()));
    }
    Ok(token.to_string())
}
