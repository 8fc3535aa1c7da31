//! A bound on the rate of each flow: before the link, every connection has a queue of its own, as behind a shaper that
//! is fair or that sells by the connection. Pure, like [`super::line`], which lets in what is released here.

use std::collections::{BTreeMap, HashMap};

use super::packet::Shape;

/// A flow may keep what it carries in so long, and at least [`QUEUE_BYTES_MIN`].
const QUEUE_NS: u64 = 50_000_000;
/// A few super-packets: with less TCP sees nothing but loss.
const QUEUE_BYTES_MIN: u64 = 256 << 10;

/// What all flows of a direction hold.
#[derive(Default)]
pub struct Flows {
    /// Of each flow, when all that it was given will have passed.
    free: HashMap<u32, u64>,
    /// By when they are released, and a number, because two may be released at once.
    held: BTreeMap<(u64, u64), Vec<u8>>,
    count: u64,
}

impl Flows {
    /// Takes a packet at so many bits per second of its flow, and says how many of its segments found no place.
    pub fn hold(&mut self, packet: &[u8], shape: &Shape, rate: u64, now: u64) -> usize {
        let takes = |bytes: u64| (bytes as f64 * 8e9 / rate as f64) as u64;
        let free = self.free.entry(shape.flow(packet)).or_default();
        let begin = now.max(*free);
        let room = QUEUE_NS.max(takes(QUEUE_BYTES_MIN)).saturating_sub(begin - now);
        let fitting = shape.segments.min((room / takes(shape.wire_bytes(0) as u64).max(1)) as usize);
        if fitting > 0 {
            let mut cut = vec![0; shape.run_bytes(0, fitting)];
            shape.cut(packet, 0, fitting, &mut cut);
            *free = begin + takes((0..fitting).map(|segment| shape.wire_bytes(segment) as u64).sum());
            // Released when its last byte has passed.
            self.held.insert((*free, self.count), cut);
            self.count += 1;
        }
        shape.segments - fitting
    }

    /// When the next is released.
    pub fn due(&self) -> Option<u64> {
        self.held.first_key_value().map(|((due, _), _)| *due)
    }

    /// The next, if its time has come.
    pub fn release(&mut self, now: u64) -> Option<Vec<u8>> {
        self.held.first_entry().filter(|entry| entry.key().0 <= now).map(|entry| entry.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::tcp;
    use super::*;

    const MS: u64 = 1_000_000;

    fn shape_of(packet: &[u8]) -> Shape {
        Shape::of(packet).expect("a packet")
    }

    fn released(flows: &mut Flows, now: u64) -> Vec<usize> {
        std::iter::from_fn(|| flows.release(now)).map(|packet| packet.len()).collect()
    }

    #[test]
    fn flows_have_their_own_rates() {
        let mut flows = Flows::default();
        let mut packet = tcp(&[1; 950], None, false);
        let bytes = shape_of(&packet).wire_bytes(0) as u64;
        let shape = shape_of(&packet);
        // A byte per microsecond.
        for port in 0..3 {
            packet[10 + 20] = port;
            for _ in 0..4 {
                assert_eq!(flows.hold(&packet, &shape, 8_000_000, 0), 0);
            }
        }
        assert_eq!(flows.due(), Some(bytes * 1000));
        assert_eq!(released(&mut flows, bytes * 1000 - 1).len(), 0);
        assert_eq!(released(&mut flows, bytes * 1000).len(), 3);
        assert_eq!(released(&mut flows, bytes * 4000).len(), 9);
        assert_eq!(flows.due(), None);
    }

    #[test]
    fn flow_drops_what_it_cannot_hold() {
        let mut flows = Flows::default();
        let packet = tcp(&[1; 48_000], Some(960), false);
        let shape = shape_of(&packet);
        let dropped: usize = (0..10).map(|_| flows.hold(&packet, &shape, 8_000_000, 0)).sum();
        // 500 segments of 1000 bytes, of which 262 fit.
        assert!((230..=245).contains(&dropped), "{dropped}");
        let left: usize = released(&mut flows, 1000 * MS).iter().map(|bytes| (bytes - 50) / 960).sum();
        assert_eq!(left + dropped, 500);
    }
}
