//! Data connections to a node that are made, and secured, before it is settled what they are for.
//!
//! Over a long path connecting and TLS take a round trip each. Where the data connections go is known as soon as the
//! control connection is there; so they are made while the two ends greet each other and agree. What proves that a
//! connection belongs to a session is said once that session is known to the node.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use carrack_core::request::Encrypt;
use carrack_sys::threads;

use super::hello::{self, Wire};
use crate::net::connect::{Allow, connect_allowed, tune};
use crate::net::deadlines::within;
use crate::net::socket::Socket;
use crate::sync::{lock, wait_timeout};

/// A node hangs up on a connection that does not say what it is for. One that is older than this is not used.
const FRESH: Duration = Duration::from_secs(3);

/// Where data connections go, from where, and how they are secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedWay {
    /// The address of this host that they leave from, if one is given.
    pub local: Option<IpAddr>,
    /// The node's.
    pub address: SocketAddr,
    /// SHA-256 of the key that it must show.
    pub pin: [u8; 32],
    /// Whether they are encrypted.
    pub encrypt: Encrypt,
}

/// The connections of one session.
#[derive(Debug)]
pub struct Prepared {
    way: PreparedWay,
    state: Mutex<PreparedState>,
    changed: Condvar,
}

#[derive(Default)]
struct PreparedState {
    under_way: usize,
    made: Vec<PreparedConnection>,
    taken: usize,
    /// How many are wanted in all, once that is known.
    most: Option<usize>,
}

impl std::fmt::Debug for PreparedState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} under way, {} made", self.under_way, self.made.len())
    }
}

/// One that is there.
pub struct PreparedConnection {
    /// Connected.
    pub socket: Arc<Socket>,
    /// Secured; nothing has been said over it.
    pub wire: Wire,
    /// The node's.
    pub address: SocketAddr,
    began: Instant,
}

impl Prepared {
    /// Begins to make so many connections, each of which may take so long. A host that has too few threads makes fewer.
    pub fn start(way: PreparedWay, count: u16, timeout: Duration) -> Arc<Self> {
        let prepared = Arc::new(Self { way, state: Mutex::default(), changed: Condvar::new() });
        for _ in 0..count {
            lock(&prepared.state).under_way += 1;
            let own = Arc::clone(&prepared);
            let make = move || {
                let made = own.make(timeout);
                let mut state = lock(&own.state);
                state.under_way -= 1;
                // What fails here fails again for whoever is asked to connect, and is told then.
                if state.most.is_none_or(|most| state.taken + state.made.len() < most) {
                    state.made.extend(made);
                }
                own.changed.notify_all();
            };
            if threads::start("making a data connection ahead", make).is_err() {
                lock(&prepared.state).under_way -= 1;
                break;
            }
        }
        prepared
    }

    fn make(&self, timeout: Duration) -> io::Result<PreparedConnection> {
        let (began, way) = (Instant::now(), &self.way);
        let (addresses, allow): (_, Allow) = ([way.address.to_string()], Arc::new(|_| Ok(())));
        let (socket, _) = connect_allowed(way.local, &addresses, 0, began + timeout, &allow)?;
        let socket = Arc::new(Socket::Tcp(socket));
        tune(&socket);
        let secure = || hello::secure(Arc::clone(&socket), way.encrypt, way.pin);
        let wire = within(&socket, began + timeout, secure)?;
        Ok(PreparedConnection { socket, wire, address: way.address, began })
    }

    /// Hands one out for a dial to these addresses, and waits for it if it is under way; `None` where none leads there,
    /// or none is left.
    pub fn take(
        &self,
        local: Option<IpAddr>,
        addresses: &[String],
        pin: [u8; 32],
        encrypt: Encrypt,
        deadline: Instant,
    ) -> Option<PreparedConnection> {
        let [address] = addresses else { return None };
        let wanted = PreparedWay { local, address: address.parse().ok()?, pin, encrypt };
        if wanted != self.way {
            return None;
        }
        let mut state = lock(&self.state);
        loop {
            if let Some(made) = state.made.pop() {
                // A node that has too many who say nothing hangs up on some.
                let is_open = carrack_sys::socket::tcp_facts(&*made.socket).is_ok_and(|facts| facts.is_open);
                if is_open && made.began.elapsed() < FRESH {
                    state.taken += 1;
                    return Some(made);
                }
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.under_way == 0 || left.is_zero() {
                return None;
            }
            state = wait_timeout(&self.changed, state, left);
        }
    }

    /// So many are wanted in all, with those that have been taken: the others are closed, also those that still come.
    pub fn limit(&self, wanted: u16) {
        let mut state = lock(&self.state);
        state.most = Some(wanted.into());
        let keep = usize::from(wanted).saturating_sub(state.taken);
        let keep = keep.min(state.made.len());
        let spare = state.made.split_off(keep);
        drop(state);
        drop(spare);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(20);

    /// As many as are prepared, connected.
    fn prepare(count: u16) -> (Arc<Prepared>, Vec<TcpStream>, PreparedWay) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let way = PreparedWay { local: None, address, pin: [3; 32], encrypt: Encrypt::None };
        let prepared = Prepared::start(way.clone(), count, TIMEOUT);
        let far = (0..count).map(|_| listener.accept().unwrap().0).collect();
        (prepared, far, way)
    }

    fn take(prepared: &Prepared, way: &PreparedWay) -> Option<PreparedConnection> {
        let deadline = Instant::now() + TIMEOUT;
        prepared.take(way.local, &[way.address.to_string()], way.pin, way.encrypt, deadline)
    }

    #[test]
    fn prepared_connection_is_taken_by_a_dial_that_leads_there() {
        let (prepared, far, way) = prepare(2);
        let elsewhere = SocketAddr::new(way.address.ip(), 1);
        for other in [
            PreparedWay { pin: [4; 32], ..way.clone() },
            PreparedWay { encrypt: Encrypt::Tls, ..way.clone() },
            PreparedWay { address: elsewhere, ..way.clone() },
            PreparedWay { local: Some(way.address.ip()), ..way.clone() },
        ] {
            assert!(take(&prepared, &other).is_none(), "{other:?}");
        }
        let taken = [take(&prepared, &way).unwrap(), take(&prepared, &way).unwrap()];
        let Socket::Tcp(first) = &*taken[0].socket else { panic!() };
        assert!(far.iter().any(|far| far.peer_addr().unwrap() == first.local_addr().unwrap()));
        // None is under way: nobody waits for a third.
        assert!(take(&prepared, &way).is_none());
    }

    #[test]
    fn prepared_connections_that_nobody_wants_are_closed() {
        let (prepared, far, way) = prepare(3);
        let _taken = take(&prepared, &way).unwrap();
        prepared.limit(2);
        let _second = take(&prepared, &way).unwrap();
        assert!(take(&prepared, &way).is_none());
        let closed = |mut far: &TcpStream| {
            far.set_nonblocking(true).unwrap();
            matches!(far.read(&mut [0]), Ok(0))
        };
        while far.iter().filter(|far| closed(far)).count() != 1 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn prepared_connection_that_the_node_has_closed_is_not_taken() {
        let (prepared, mut far, way) = prepare(2);
        let kept = far.pop().unwrap();
        let closed = far.pop().unwrap().peer_addr().unwrap();
        let is_open = |made: &PreparedConnection| carrack_sys::socket::tcp_facts(&*made.socket).unwrap().is_open;
        while lock(&prepared.state).made.len() < 2 || lock(&prepared.state).made.iter().all(is_open) {
            std::thread::yield_now();
        }
        let taken = take(&prepared, &way).unwrap();
        let Socket::Tcp(taken) = &*taken.socket else { panic!() };
        assert_ne!(taken.local_addr().unwrap(), closed);
        assert!(take(&prepared, &way).is_none());
        drop(kept);
    }

    #[test]
    fn prepared_connection_to_nobody_is_not_waited_for() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let way = PreparedWay { local: None, address, pin: [3; 32], encrypt: Encrypt::None };
        let prepared = Prepared::start(way.clone(), 2, TIMEOUT);
        assert!(take(&prepared, &way).is_none());
    }
}
