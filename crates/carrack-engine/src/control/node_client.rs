//! Connecting to a node: its key checked against the address or the list of known ones, and the token that
//! this node alone is shown.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::credential::Shown;
use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::location::NodeAddress;
use carrack_core::request::EndOptions;

use super::known_nodes::{ExpectedKey, KnownKeys, changed, mismatch};
use super::refusals;
use super::token;
use crate::error::{code_of, describe, failure, io_failure};
use crate::net::connect::{OtherFamily, connect_any, least_round_trip, tune};
use crate::net::deadlines::within;
use crate::net::socket::Socket;
use crate::net::tls::{ALPN_CONTROL, Tls};

/// A control connection to a node, before the first message.
pub struct NodeConnection {
    /// The connected socket.
    pub socket: TcpStream,
    /// Its TLS state.
    pub tls: Box<Tls>,
    /// The address that answered.
    pub address: SocketAddr,
    /// The key that the node showed.
    pub pin: [u8; 32],
    /// What it is shown.
    pub shown: Shown,
    /// How far it is, as TCP has seen it; zero where that is not known.
    pub round_trip: Duration,
    /// When TCP had connected, and when the key was shown.
    pub connected: (Instant, Instant),
}

/// Connects, and checks the node's key: against the pin typed, else against the known ones, to which a node's is added
/// the first time that it is met. `options` are of this node and no other.
///
/// # Errors
/// When nobody answers, or somebody with another key; before anything is sent when the list of known nodes or the
/// token's file is not what it has to be.
pub fn connect(
    node: &NodeAddress,
    options: &EndOptions,
    keys: &dyn KnownKeys,
    note: &Arc<dyn Fn(String) + Send + Sync>,
) -> Result<NodeConnection, Failure> {
    // A key that was typed outweighs the known ones, which then need not be readable.
    let typed = ExpectedKey { pin: node.pin, was_pinned: true };
    let expected = if node.pin.is_some() { typed } else { keys.expected(node)? };
    let shown = token::choose(node, &options.credential, expected.was_pinned)?;
    let deadline = options.reach.connect_deadline(Instant::now());
    let named = |failure: Failure| failure.at_end(node.to_string());
    let host = match options.reach.node_address {
        Some(address) => address.to_string(),
        None => node.host.clone(),
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let addresses = [format!("{host}:{}", node.port)];
    let (socket, address) = connect_any(options.reach.local_address, &addresses, deadline).map_err(|error| {
        if error.get_ref().is_some_and(|inner| inner.is::<OtherFamily>()) {
            return named(failure(ErrorCode::Usage, Side::Command, error.to_string()));
        }
        if code_of(&error) == ErrorCode::ResourceLimit {
            return named(io_failure(Side::Command, "connect", &error));
        }
        let is_unknown = refusals::is_no_such_name(&describe(&error));
        let code = if is_unknown { ErrorCode::HostUnknown } else { ErrorCode::ConnectFailed };
        // Whether anything runs there is no question where nobody knows where that is.
        if is_unknown {
            return named(failure(code, Side::Link, format!("no host of this name is known: {}", describe(&error))));
        }
        let why = format!("no connection: {}", describe(&error));
        named(failure(code, Side::Link, why).for_reason(Reason::NodeUnreached))
    })?;
    let reached = Instant::now();
    let (socket, tls) = shake_hands(socket, deadline).map_err(|error| {
        if code_of(&error) == ErrorCode::ResourceLimit {
            return named(io_failure(Side::Command, "the handshake of TLS", &error));
        }
        // Said by TLS, not by the system. No other attempt mends that.
        let is_impostor = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
        let code = if is_impostor { ErrorCode::KeyMismatch } else { ErrorCode::ConnectFailed };
        named(failure(code, Side::Link, format!("no TLS session: {}", describe(&error))))
    })?;
    let connected = (reached, Instant::now());
    let keyless = || named(failure(ErrorCode::KeyMismatch, Side::Link, "showed no key"));
    let pin = tls.peer_pin().ok_or_else(keyless)?;
    match expected.pin {
        Some(expected) if expected == pin => {}
        Some(expected) if node.pin.is_some() => {
            return Err(mismatch(node, expected, pin, "").for_reason(Reason::TypedKeyWrong));
        }
        Some(expected) => return Err(changed(keys, node, expected, pin)),
        None => keys.remember(node, pin)?.into_iter().for_each(|told| note(told)),
    }
    let round_trip = least_round_trip(&socket);
    Ok(NodeConnection { socket, tls, address, pin, shown, round_trip, connected })
}

fn shake_hands(socket: TcpStream, deadline: Instant) -> io::Result<(TcpStream, Box<Tls>)> {
    let shared = Arc::new(Socket::Tcp(socket.try_clone()?));
    tune(&shared);
    let mut tls = Tls::client(None, &[ALPN_CONTROL])?;
    within(&shared, deadline, || tls.handshake(&*shared))?;
    Ok((socket, Box::new(tls)))
}
