//! What all data connections of one end have carried so far, as TCP counts it: finer than blocks that land, and with
//! what was lost on the way. Connections come and go; the sums only grow.

use carrack_core::ids::StreamId;
use carrack_core::timeline::{TcpCounts, TcpState};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

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

/// TCP's counters of a connection, for a sample.
fn counts(facts: &TcpFacts) -> TcpCounts {
    TcpCounts {
        delivered: facts.acknowledged,
        received: facts.received,
        segments: facts.segments_out.into(),
        retransmits: facts.retransmits,
        busy_us: micros(facts.busy),
        rwnd_limited_us: micros(facts.rwnd_limited),
        sndbuf_limited_us: micros(facts.sndbuf_limited),
        timeouts: facts.timeouts.into(),
        timeouts_us: micros(facts.timeouts_time),
        out_of_order: facts.out_of_order.into(),
    }
}

/// How a connection stands, for a sample; what waits to be read is not known here.
pub fn state(facts: &TcpFacts) -> TcpState {
    let bytes = |segments: u32| u64::from(segments) * u64::from(facts.segment_bytes);
    TcpState {
        rtt_us: micros(facts.rtt),
        min_rtt_us: micros(facts.min_rtt),
        cwnd_bytes: bytes(facts.congestion_window),
        window_bytes: facts.send_window.into(),
        in_flight_bytes: bytes(facts.unacknowledged),
        unsent_bytes: facts.unsent_bytes.into(),
        unread_bytes: 0,
        delivery_rate: facts.delivery_rate,
        rtt_var_us: micros(facts.rtt_var),
        path_mtu_bytes: facts.path_mtu.into(),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Adds up what connections carry.
#[derive(Debug, Default)]
pub struct TrafficCount {
    /// Of connections that have gone.
    gone: Mutex<TcpCounts>,
    /// Segments of each that is there.
    segments: Mutex<HashMap<StreamId, Widened>>,
}

/// A counter of the system that has 32 bits and begins again, in 64.
#[derive(Clone, Copy, Debug, Default)]
struct Widened(u64);

impl Widened {
    /// Takes what the system has counted, modulo 2^32. What is older than the last is passed over: two threads may look
    /// at once.
    fn handle(&mut self, counted: u32) -> u64 {
        let more = counted.wrapping_sub(self.0 as u32);
        if more < 1 << 31 {
            self.0 += u64::from(more);
        }
        self.0
    }
}

impl TrafficCount {
    /// Takes a connection out of the table, and keeps its counts.
    pub fn leave(&self, sockets: &mut HashMap<StreamId, Arc<Socket>>, number: StreamId) {
        if let Some(facts) = sockets.remove(&number).and_then(|socket| facts(&socket)) {
            let counts = self.widened(number, &facts);
            let mut gone = lock(&self.gone);
            *gone = gone.plus(&counts);
        }
        lock(&self.segments).remove(&number);
    }

    /// What they carry, so far. Nothing for connections that are not TCP.
    pub fn so_far(&self, sockets: &Mutex<HashMap<StreamId, Arc<Socket>>>) -> Traffic {
        let TcpCounts { delivered, segments, retransmits, .. } = self.counts(sockets);
        Traffic { delivered, segments, repeated: retransmits }
    }

    /// All counters, so far. Nothing for connections that are not TCP.
    pub fn counts(&self, sockets: &Mutex<HashMap<StreamId, Arc<Socket>>>) -> TcpCounts {
        // The table is held: no connection leaves between the two sums.
        let sockets = lock(sockets);
        let gone = *lock(&self.gone);
        let each = sockets.iter().filter_map(|(number, socket)| Some((number, facts(socket)?)));
        each.fold(gone, |sum, (number, facts)| sum.plus(&self.widened(*number, &facts)))
    }

    /// The counters of one connection that is in the table, which is held.
    fn widened(&self, number: StreamId, facts: &TcpFacts) -> TcpCounts {
        let segments = lock(&self.segments).entry(number).or_default().handle(facts.segments_out);
        TcpCounts { segments, ..counts(facts) }
    }

    /// The counters of one connection, which may have left the table.
    pub fn counts_of(&self, number: StreamId, facts: &TcpFacts) -> TcpCounts {
        let known = lock(&self.segments).get_mut(&number).map(|known| known.handle(facts.segments_out));
        let counts = counts(facts);
        TcpCounts { segments: known.unwrap_or(counts.segments), ..counts }
    }
}

fn facts(socket: &Socket) -> Option<TcpFacts> {
    if let Socket::Tcp(tcp) = socket { tcp_facts(tcp).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    #[test]
    fn segments_go_on_counting_where_the_counter_of_the_system_begins_again() {
        let mut segments = Widened::default();
        let counted = [5, 1 << 30, 5 << 29, u32::MAX - 9, u32::MAX - 12, 3];
        let wrapped = (1 << 32) + 3;
        assert_eq!(
            counted.map(|counted| segments.handle(counted)),
            [5, 1 << 30, 5 << 29, (1 << 32) - 10, (1 << 32) - 10, wrapped]
        );
    }

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
