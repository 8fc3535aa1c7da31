//! Making data connections. Looking names up, connecting and shaking hands have one deadline together, whatever
//! the other side trickles.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::ids::StreamId;
use carrack_core::wire::control::SessionKey;

use super::hello;
use super::prepared::{Prepared, PreparedConnection};
use super::stream::Connection;
use crate::net::connect::{Allow, connect_allowed, least_round_trip, tune};
use crate::net::deadlines::within;
use crate::net::socket::Socket;

/// A data connection made.
pub struct DialedConnection {
    /// The data connection, greeted and proved.
    pub connection: Connection,
    /// The address that answered.
    pub address: SocketAddr,
    /// The cipher suite; empty in the clear.
    pub cipher: String,
    /// TCP's own measure of the path.
    pub round_trip: Duration,
}

/// Connects to one of `addresses` (`host:port`) and proves to belong to the session: from an address of this host, if
/// one is given, to those addresses only that are allowed (asked once a name has been looked up), and with segments of
/// at most `segment` bytes, if that is not 0. An address that does not answer is raced by the next after a quarter of a
/// second. One that is `prepared` and leads there is taken instead. `connected` is told the round trip as soon as one
/// has answered.
///
/// # Errors
/// The last address's; and why an address is not allowed.
pub fn dial(
    (local, addresses, allow, prepared): (Option<IpAddr>, &[String], &Allow, Option<&Prepared>),
    key: &SessionKey,
    pin: [u8; 32],
    number: StreamId,
    segment: u32,
    timeout: Duration,
    connected: &dyn Fn(Duration),
) -> io::Result<DialedConnection> {
    let deadline = Instant::now() + timeout;
    let take = |prepared: &Prepared| prepared.take(local, addresses, pin, key.encrypt, deadline);
    if let Some(PreparedConnection { socket, wire, address, .. }) = prepared.filter(|_| segment == 0).and_then(take) {
        let round_trip = least_round_trip(&*socket);
        connected(round_trip);
        let (connection, cipher) = within(&socket, deadline, || hello::prove(wire, key, number))?;
        return Ok(DialedConnection { connection, address, cipher, round_trip });
    }
    let (socket, address) = connect_allowed(local, addresses, segment, deadline, allow)?;
    if let Ok(facts) = carrack_sys::socket::tcp_facts(&socket) {
        connected(facts.rtt);
    }
    let socket = Arc::new(Socket::Tcp(socket));
    // Before the first words: held back until the one before is acknowledged, each would cost a round trip.
    tune(&socket);
    let (connection, cipher) = within(&socket, deadline, || hello::dial(Arc::clone(&socket), key, pin, number))?;
    let round_trip = least_round_trip(&*socket);
    Ok(DialedConnection { connection, address, cipher, round_trip })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte after the other, each well before a read would be given up: the whole is given up all the same.
    #[test]
    fn listener_that_trickles_does_not_hold_a_dial() {
        use std::io::Write;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let trickle = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut socket, _) = listener.accept().unwrap();
                // The beginning of a TLS record of 16 KiB.
                let start = socket.write_all(&[0x16, 3, 3, 0x40, 0]);
                let mut sent = 0;
                while start.is_ok() && socket.write_all(&[2]).is_ok() {
                    sent += 1;
                    assert!(sent < 1000, "it is listened to for ever");
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        for encrypt in [carrack_core::request::Encrypt::Tls, carrack_core::request::Encrypt::None] {
            let key = SessionKey { id: [1; 16], secret: [2; 32], encrypt };
            let timeout = Duration::from_millis(300);
            let anywhere: Allow = Arc::new(|_| Ok(()));
            let dialed =
                dial((None, &[address.to_string()], &anywhere, None), &key, [0; 32], StreamId(0), 0, timeout, &|_| {});
            assert_eq!(dialed.err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut), "{encrypt:?}");
        }
        trickle.join().unwrap();
    }
}
