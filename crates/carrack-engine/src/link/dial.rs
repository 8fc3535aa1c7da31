//! Making data connections: to the first of several addresses that answers, within one deadline.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use carrack_core::tuning;
use carrack_core::wire::control::SessionKey;
use socket2::{Domain, Socket as RawSocket, Type};

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

/// Connects to one of `addresses` (`host:port`) and proves to belong to the session; with segments of at most `segment` bytes, if that
/// is not 0. An address that does not answer is raced by
/// the next after a quarter of a second. `connected` is told the round trip as soon as one has answered.
///
/// # Errors
/// The last address's.
pub fn dial(
    addresses: &[String],
    key: &SessionKey,
    pin: [u8; 32],
    number: u16,
    segment: u32,
    timeout: Duration,
    connected: &dyn Fn(Duration),
) -> io::Result<Dialed> {
    let deadline = Instant::now() + timeout;
    let (socket, address) = connect_any_with(addresses, segment, deadline)?;
    if let Ok(facts) = carrack_sys::socket::tcp_facts(&socket) {
        connected(facts.rtt);
    }
    let socket = Arc::new(Socket::Tcp(socket));
    // Before the first words: held back until the one before is acknowledged, each would cost a round trip.
    tune(&socket);
    socket.set_timeout(Some(deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(10))))?;
    let (connection, cipher) = hello::dial(Arc::clone(&socket), key, pin, number)?;
    socket.set_timeout(None)?;
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
        // Unacknowledged data for this long means that nobody is there, whatever TCP's own patience. The side that only reads has sent
        // nothing that could be acknowledged: it asks.
        let _ = carrack_sys::socket::set_user_timeout(tcp, tuning::STREAM_SILENCE);
        let _ = carrack_sys::socket::set_keep_alive(tcp, tuning::HEARTBEAT);
    }
}

/// Segments of a control connection, in bytes: what goes through every tunnel in use. A path that loses larger packets without a word
/// would hold it up for ever, and it carries little; so it is not left to be found out, as with data connections.
const CONTROL_SEGMENT_BYTES: u32 = 1200;

/// What a connection attempt comes to.
type Connected = io::Result<(TcpStream, SocketAddr)>;
/// One way to try.
type Attempt = Box<dyn FnOnce() -> Connected + Send>;

/// Makes a control connection to the first of `host:port` addresses that answers before the deadline. A name is looked up only when its turn comes: a name
/// server that does not answer must not hold up an address that needs none.
///
/// # Errors
/// The last address's; `TimedOut` when none has answered.
pub fn connect_any(addresses: &[String], deadline: Instant) -> Connected {
    connect_any_with(addresses, CONTROL_SEGMENT_BYTES, deadline)
}

fn connect_any_with(addresses: &[String], segment: u32, deadline: Instant) -> Connected {
    let attempts = addresses.iter().cloned().map(|address| -> Attempt {
        Box::new(move || {
            let mut found: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
            found.dedup();
            let connect = move |address| {
                let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
                if segment == 0 {
                    return Ok((TcpStream::connect_timeout(&address, left)?, address));
                }
                let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, None)?;
                // A system that cannot bound them only does not help against such a path.
                let _ = carrack_sys::socket::set_largest_segment(&socket, segment);
                socket.connect_timeout(&address.into(), left)?;
                Ok((socket.into(), address))
            };
            race(found.into_iter().map(|address| -> Attempt { Box::new(move || connect(address)) }), deadline)
        })
    });
    race(attempts, deadline)
}

/// Starts one attempt after the other, each with a quarter of a second's advantage over the next (RFC 8305), and takes the first that
/// works. The others end by themselves.
fn race(attempts: impl Iterator<Item = Attempt>, deadline: Instant) -> Connected {
    let mut attempts = attempts.peekable();
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address to connect to");
    let (sender, results) = mpsc::channel();
    let mut waiting = 0;
    loop {
        if let Some(attempt) = attempts.next() {
            let sender = sender.clone();
            waiting += 1;
            std::thread::spawn(move || sender.send(attempt()));
        }
        if waiting == 0 {
            return Err(last);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let is_last = attempts.peek().is_none();
        match results.recv_timeout(if is_last { left } else { left.min(Duration::from_millis(250)) }) {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => {
                last = error;
                waiting -= 1;
            }
            Err(_) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody answers there"));
            }
            Err(_) => {}
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
