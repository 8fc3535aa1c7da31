//! Making data connections: to the first of several addresses that answers, within one deadline.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use carrack_core::wire::control::SessionKey;

use super::hello;
use crate::data::socket::Socket;
use crate::data::stream::Connection;

/// A data connection made.
pub struct Dialed {
    /// The connection.
    pub connection: Connection,
    /// The address that answered.
    pub address: SocketAddr,
    /// The cipher suite; empty in the clear.
    pub cipher: String,
    /// TCP's own measure of the path.
    pub round_trip: Duration,
}

/// Connects to one of `addresses` (`host:port`) and proves to belong to the session. An address that does not answer is raced by
/// the next after a quarter of a second.
///
/// # Errors
/// The last address's.
pub fn dial(
    addresses: &[String],
    key: &SessionKey,
    pin: [u8; 32],
    number: u16,
    timeout: Duration,
) -> io::Result<Dialed> {
    let deadline = Instant::now() + timeout;
    let (socket, address) = connect_any(addresses, deadline)?;
    let socket = Arc::new(Socket::Tcp(socket));
    socket.set_timeout(Some(deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(10))))?;
    let (connection, cipher) = hello::dial(Arc::clone(&socket), key, pin, number)?;
    socket.set_timeout(None)?;
    tune(&socket);
    // The least of the few samples so far: a busy listener makes the others long, not the path.
    let facts = carrack_sys::socket::tcp_facts(&*socket);
    let round_trip =
        facts.map(|facts| if facts.min_rtt.is_zero() { facts.rtt } else { facts.min_rtt }).unwrap_or_default();
    Ok(Dialed { connection, address, cipher, round_trip })
}

/// What every data socket gets. Failures cost speed, not correctness.
pub fn tune(socket: &Socket) {
    if let Socket::Tcp(tcp) = socket {
        let _ = tcp.set_nodelay(true);
        // Unacknowledged data for this long means that nobody is there, whatever TCP's own patience.
        let _ = carrack_sys::socket::set_user_timeout(tcp, carrack_core::tuning::SILENCE);
    }
}

/// Connects to the first of `host:port` addresses that answers before the deadline.
///
/// # Errors
/// The last address's; `TimedOut` when none has answered.
pub fn connect_any(addresses: &[String], deadline: Instant) -> io::Result<(TcpStream, SocketAddr)> {
    let mut candidates = Vec::new();
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address to connect to");
    for address in addresses {
        match address.to_socket_addrs() {
            Ok(found) => candidates.extend(found.filter(|found| !candidates.contains(found)).collect::<Vec<_>>()),
            Err(error) => last = error,
        }
    }
    let (sender, results) = mpsc::channel();
    let mut waiting = 0;
    let mut candidates = candidates.into_iter().peekable();
    loop {
        if let Some(address) = candidates.next() {
            let sender = sender.clone();
            waiting += 1;
            std::thread::spawn(move || {
                let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
                let _ = sender.send((TcpStream::connect_timeout(&address, left), address));
            });
        }
        if waiting == 0 {
            return Err(last);
        }
        // Happy eyeballs: a quarter of a second's advantage for the better address.
        let patience = if candidates.peek().is_some() {
            Duration::from_millis(250)
        } else {
            deadline.saturating_duration_since(Instant::now())
        };
        match results.recv_timeout(patience) {
            Ok((Ok(socket), address)) => return Ok((socket, address)),
            Ok((Err(error), _)) => {
                last = error;
                waiting -= 1;
            }
            Err(_) if candidates.peek().is_none() => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody answers there"));
            }
            Err(_) => {}
        }
        if waiting == 0 && candidates.peek().is_none() {
            return Err(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_address_does_not_hide_a_live_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let live = listener.local_addr().unwrap();
        // A port that was free a moment ago refuses at once.
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let (_, address) = connect_any(&[dead.to_string(), live.to_string()], deadline).unwrap();
        assert_eq!(address, live);
        let error = connect_any(&[dead.to_string()], deadline).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(connect_any(&[], deadline).is_err());
        assert!(connect_any(&["no.such.host.invalid:1".into()], deadline).is_err());
    }
}
