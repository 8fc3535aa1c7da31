//! What all data connections of one end have carried so far, as TCP counts it: finer than blocks that land, and with
//! what was lost on the way. Connections come and go; the sums only grow.

use carrack_core::ids::StreamId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use carrack_sys::socket::{TcpFacts, tcp_facts};

use crate::net::socket::Socket;
use crate::sync::lock;

/// Sums over connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that the other host has acknowledged.
    pub delivered: u64,
    /// Segments sent, those sent again included.
    pub segments: u64,
    /// Segments sent again.
    pub repeated: u64,
}

impl Traffic {
    fn of(facts: &TcpFacts) -> Self {
        Self { delivered: facts.acknowledged, segments: facts.segments_out, repeated: facts.retransmits }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            delivered: self.delivered.saturating_add(other.delivered),
            segments: self.segments.saturating_add(other.segments),
            repeated: self.repeated.saturating_add(other.repeated),
        }
    }
}

/// Adds up what connections carry.
#[derive(Debug, Default)]
pub struct TrafficCount {
    /// Of connections that have gone.
    gone: Mutex<Traffic>,
}

impl TrafficCount {
    /// Takes a connection out of the table, and keeps its counts.
    pub fn leave(&self, sockets: &mut HashMap<StreamId, Arc<Socket>>, number: StreamId) {
        if let Some(facts) = sockets.remove(&number).and_then(|socket| facts(&socket)) {
            let mut gone = lock(&self.gone);
            *gone = gone.plus(Traffic::of(&facts));
        }
    }

    /// So far. Nothing for connections that are not TCP.
    pub fn so_far(&self, sockets: &Mutex<HashMap<StreamId, Arc<Socket>>>) -> Traffic {
        // The table is held: no connection leaves between the two sums.
        let sockets = lock(sockets);
        let gone = *lock(&self.gone);
        sockets.values().filter_map(|socket| facts(socket)).fold(gone, |sum, facts| sum.plus(Traffic::of(&facts)))
    }
}

fn facts(socket: &Socket) -> Option<TcpFacts> {
    if let Socket::Tcp(tcp) = socket { tcp_facts(tcp).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn traffic_of_streams_that_have_gone_still_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let count = TrafficCount::default();
        let sockets: Mutex<HashMap<StreamId, Arc<Socket>>> = Mutex::default();
        for number in 0..3 {
            let mut near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
            let (mut far, _) = listener.accept().expect("accepts");
            near.write_all(&[1; 1000]).expect("written");
            far.read_exact(&mut [0; 1000]).expect("read");
            sockets.lock().expect("no panic").insert(StreamId(number), Arc::new(Socket::Tcp(near)));
            // The acknowledgement may be a moment behind.
            let deadline = Instant::now() + Duration::from_secs(10);
            while count.so_far(&sockets).delivered < 1000 * (u64::from(number) + 1) {
                assert!(Instant::now() < deadline, "nothing was acknowledged");
                std::thread::yield_now();
            }
            if number < 2 {
                count.leave(&mut sockets.lock().expect("no panic"), StreamId(number));
            }
        }
        let sum = count.so_far(&sockets);
        assert!(sum.delivered >= 3000 && sum.segments >= 3, "{sum:?}");
        count.leave(&mut sockets.lock().expect("no panic"), StreamId(9));
        assert_eq!(count.so_far(&sockets), sum);
    }
}
