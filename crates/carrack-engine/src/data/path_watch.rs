//! Notices connections whose path takes small packets and loses large ones: the handshake went
//! through, and nothing after it.
//!
//! A router that drops a packet that is too large for its next link, and whose word of that is dropped by a firewall,
//! makes a connection hang for ever. TCP only helps itself where `net.ipv4.tcp_mtu_probing` is on.

use carrack_core::ids::StreamId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_sys::socket::TcpFacts;

use crate::net::socket::Socket;
use crate::sync::lock;

/// How often connections are looked at.
const INTERVAL: Duration = Duration::from_millis(500);
/// Nothing acknowledged for so long on a new connection. Several of TCP's own repeats, and time left to try smaller
/// packets twice before a person gives up.
const PATIENCE: Duration = Duration::from_secs(6);
/// A connection that has had so many bytes acknowledged since it was first looked at takes large packets.
const PROVEN_BYTES: u64 = 16 << 10;

/// What is known of the paths of a sender's connections.
#[derive(Default)]
pub struct PathWatch {
    looked: Option<Instant>,
    seen: HashMap<StreamId, PathSeen>,
}

#[derive(Clone, Copy)]
struct PathSeen {
    /// Acknowledged, and sent again, when it was first looked at.
    first: TcpFacts,
    /// Acknowledged when that last changed, and when that was.
    acknowledged: u64,
    since: Instant,
}

impl PathSeen {
    fn new(facts: TcpFacts, now: Instant) -> Self {
        Self { first: facts, acknowledged: facts.acknowledged, since: now }
    }

    /// Whether it is stuck.
    fn look(&mut self, facts: TcpFacts, now: Instant) -> bool {
        // A reader that takes its time acknowledges what it gets, or leaves nothing under way.
        if facts.acknowledged != self.acknowledged || facts.unacknowledged == 0 {
            (self.acknowledged, self.since) = (facts.acknowledged, now);
        }
        let repeated = facts.retransmits > self.first.retransmits + 1;
        !self.is_proven() && repeated && now.saturating_duration_since(self.since) >= PATIENCE
    }

    fn is_proven(&self) -> bool {
        self.acknowledged.saturating_sub(self.first.acknowledged) >= PROVEN_BYTES
    }
}

impl PathWatch {
    /// The connections that are stuck; with them those on which nothing large has ever got through. They have the same
    /// path, and each would hold up what it is given next for as long again.
    pub fn look(&mut self, now: Instant, sockets: &Mutex<HashMap<StreamId, Arc<Socket>>>) -> Vec<StreamId> {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < INTERVAL) {
            return Vec::new();
        }
        self.looked = Some(now);
        let sockets = lock(sockets);
        self.seen.retain(|number, _| sockets.contains_key(number));
        let mut is_any_stuck = false;
        for (number, socket) in sockets.iter() {
            let Socket::Tcp(tcp) = &**socket else { continue };
            let Ok(facts) = carrack_sys::socket::tcp_facts(tcp) else { continue };
            let seen = self.seen.entry(*number).or_insert_with(|| PathSeen::new(facts, now));
            if seen.look(facts, now) {
                is_any_stuck = true;
                *seen = PathSeen::new(facts, now);
            }
        }
        if is_any_stuck { self.unproven() } else { Vec::new() }
    }

    fn unproven(&self) -> Vec<StreamId> {
        self.seen.iter().filter(|(_, seen)| !seen.is_proven()).map(|(number, _)| *number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(acknowledged: u64, unacknowledged: u32, retransmits: u64) -> TcpFacts {
        TcpFacts { acknowledged, unacknowledged, retransmits, ..TcpFacts::default() }
    }

    /// What is seen each second.
    fn stuck_after(seconds: impl IntoIterator<Item = TcpFacts>) -> Option<usize> {
        let now = Instant::now();
        let mut seen = PathSeen::new(facts(3000, 0, 0), now);
        seconds
            .into_iter()
            .enumerate()
            .position(|(second, facts)| seen.look(facts, now + Duration::from_secs(second as u64)))
    }

    #[test]
    fn path_with_a_handshake_and_then_nothing_is_stuck() {
        assert_eq!(stuck_after((0..20).map(|second| facts(3000, 10, second))), Some(6));
        assert_eq!(stuck_after((0..20).map(|second| facts(3090, 10, second))), Some(6), "a small packet went through");
    }

    #[test]
    fn path_that_has_carried_nothing_yet_is_not_spared() {
        let now = Instant::now();
        let mut watch = PathWatch::default();
        for (number, acknowledged) in [(0, 3000), (1, 90_000), (2, 3000)] {
            let mut seen = PathSeen::new(facts(3000, 0, 0), now);
            assert!(!seen.look(facts(acknowledged, 0, 0), now));
            watch.seen.insert(StreamId(number), seen);
        }
        let mut suspects = watch.unproven();
        suspects.sort_unstable();
        assert_eq!(suspects, [StreamId(0), StreamId(2)]);
    }

    #[test]
    fn path_with_a_slow_reader_slow_packets_or_a_late_fault_is_not_stuck() {
        assert_eq!(stuck_after((0..60).map(|_| facts(3000, 0, 0))), None, "its window is closed");
        assert_eq!(stuck_after((0..60).map(|second| facts(3000 + 200 * second, 10, second))), None, "it trickles");
        assert_eq!(stuck_after((0..60).map(|second| facts(90_000, 10, second))), None, "it has worked before");
        assert_eq!(stuck_after((0..60).map(|_| facts(3000, 10, 0))), None, "a long way, and nothing lost");
    }
}
