//! One direction of a link: what becomes of each packet, and when it leaves. Pure: time is an argument, in nanoseconds.
//!
//! A packet meets, in this order: where each flow has a rate of its own, the queue of its flow; the queue before the
//! link (what does not fit is dropped), the link (one packet after the other, at its rate), what happens on the way,
//! the delay. Whatever happens, happens to single packets as they are on the wire.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use carrack_core::chance::Chance;

use super::flows::Flows;
use super::packet::{PACKET_BYTES_MAX, Shape};
use super::ring::Ring;

/// What Ethernet has around each packet: preamble, header, checksum, gap.
const WIRE_OVERHEAD_BYTES: usize = 38;
/// The queue before a link is at least as long, whatever its bandwidth-delay product.
const QUEUE_BYTES_MIN: u64 = 256 << 10;
/// On the way at most, where the rate has no limit: 20 Gbit/s for 25 ms.
const UNDERWAY_BYTES: u64 = 64 << 20;
/// Beside the bandwidth-delay product and the queue: acknowledgements use more memory than wire,
/// and the writer may be late.
const UNDERWAY_SPARE_BYTES: u64 = 16 << 20;

/// What a direction is like; any of it may be changed while it is used.
#[derive(Default)]
pub struct Knobs {
    delay_ns: AtomicU64,
    rate: AtomicU64,
    flow_rate: AtomicU64,
    queue_bytes: AtomicU64,
    largest: AtomicU64,
    /// Probabilities, as the bits of a double.
    loss: AtomicU64,
    corruption: AtomicU64,
    doubling: AtomicU64,
    disorder: AtomicU64,
    late_ns: AtomicU64,
    /// An outage that has not begun.
    outage_ns: AtomicU64,
    strips_options: AtomicBool,
    segment_most: AtomicU64,
}

impl Knobs {
    /// How long a packet is on the way.
    pub fn delay(&self, by: Duration) {
        self.delay_ns.store(by.as_nanos() as u64, Ordering::Relaxed);
    }

    /// At most so many bits per second; `None`: as many as the machine can.
    pub fn rate(&self, bits_per_second: Option<u64>) {
        self.rate.store(bits_per_second.unwrap_or(0), Ordering::Relaxed);
    }

    /// At most so many bits per second for each connection; `None`: as many as the link has.
    pub fn flow_rate(&self, bits_per_second: Option<u64>) {
        self.flow_rate.store(bits_per_second.unwrap_or(0), Ordering::Relaxed);
    }

    /// How much may wait before the link, if its rate has a limit; `None`: what the link carries in the time that a
    /// packet takes there and back, at least 256 KiB.
    pub fn queue(&self, bytes: Option<u64>) {
        self.queue_bytes.store(bytes.unwrap_or(0), Ordering::Relaxed);
    }

    /// Packets of more bytes than this, their IP header included, vanish, and nobody is told.
    pub fn largest(&self, bytes: Option<u64>) {
        self.largest.store(bytes.unwrap_or(0), Ordering::Relaxed);
    }

    /// From the next packet on, everything is lost for so long.
    pub fn fail(&self, for_time: Duration) {
        self.outage_ns.store(for_time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Loses packets with this probability.
    pub fn lose(&self, probability: f64) {
        self.loss.store(probability.to_bits(), Ordering::Relaxed);
    }

    /// Flips a bit of a packet's payload with this probability, where no checksum of TCP shows it.
    pub fn corrupt(&self, probability: f64) {
        self.corruption.store(probability.to_bits(), Ordering::Relaxed);
    }

    /// Delivers packets twice with this probability.
    pub fn double(&self, probability: f64) {
        self.doubling.store(probability.to_bits(), Ordering::Relaxed);
    }

    /// Delivers packets so much later with this probability, so that those behind overtake them.
    pub fn reorder(&self, probability: f64, later_by: Duration) {
        self.late_ns.store(later_by.as_nanos() as u64, Ordering::Relaxed);
        self.disorder.store(probability.to_bits(), Ordering::Relaxed);
    }

    /// Takes window scaling, selective acknowledgements and timestamps out of the first packet of each connection, as
    /// some firewalls do.
    pub fn strip_options(&self, strips: bool) {
        self.strips_options.store(strips, Ordering::Relaxed);
    }

    /// See [`Knobs::strip_options`].
    pub(super) fn strips_options(&self) -> bool {
        self.strips_options.load(Ordering::Relaxed)
    }

    /// Lowers the largest segment that the first packet of each connection announces, as some tunnels do.
    pub fn lower_segment(&self, most: Option<u16>) {
        self.segment_most.store(most.unwrap_or(0).into(), Ordering::Relaxed);
    }

    /// See [`Knobs::lower_segment`].
    pub(super) fn segment_most(&self) -> Option<u16> {
        u16::try_from(self.segment_most.load(Ordering::Relaxed)).ok().filter(|most| *most > 0)
    }

    /// The moment until which everything is lost, if an outage begins.
    fn outage(&self, now: u64) -> Option<u64> {
        let waiting = self.outage_ns.load(Ordering::Relaxed) > 0;
        waiting.then(|| now + self.outage_ns.swap(0, Ordering::Relaxed))
    }

    fn now(&self) -> Now {
        let number = |knob: &AtomicU64| knob.load(Ordering::Relaxed);
        let probability = |knob: &AtomicU64| f64::from_bits(number(knob));
        let (delay_ns, rate) = (number(&self.delay_ns), number(&self.rate));
        let queue_bytes = match number(&self.queue_bytes) {
            0 => bytes_in(2 * delay_ns, rate).max(QUEUE_BYTES_MIN),
            bytes => bytes,
        };
        Now {
            delay_ns,
            rate,
            queue_bytes,
            largest: if number(&self.largest) == 0 { usize::MAX } else { number(&self.largest) as usize },
            loss: probability(&self.loss),
            corruption: probability(&self.corruption),
            doubling: probability(&self.doubling),
            disorder: probability(&self.disorder),
            late_ns: number(&self.late_ns),
        }
    }
}

/// What a link of this rate carries in a time.
fn bytes_in(nanoseconds: u64, bits_per_second: u64) -> u64 {
    (nanoseconds as f64 * bits_per_second as f64 / 8e9) as u64
}

/// The knobs at one moment.
struct Now {
    delay_ns: u64,
    rate: u64,
    queue_bytes: u64,
    largest: usize,
    loss: f64,
    corruption: f64,
    doubling: f64,
    disorder: f64,
    late_ns: u64,
}

/// What has become of packets so far, each counted as on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Taken from the host that sends.
    pub packets: u64,
    /// Bytes that used the link, IP headers included, also of what was lost behind it.
    pub bytes: u64,
    /// Dropped by the queue, which was full.
    pub dropped: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Vanished because they were too large.
    pub vanished: u64,
    /// With a bit flipped.
    pub corrupted: u64,
    /// Packets that were delivered twice.
    pub doubled: u64,
    /// Packets that were delivered late.
    pub late: u64,
    /// Dropped because they had no place in memory, or the device did not take them. Not a fault that
    /// was asked for: should be 0.
    pub failed: u64,
    /// The longest that a packet left after its time, which shows how well the machine kept up.
    pub latest: Duration,
}

/// What happens to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Vanishes,
    Lost,
    Doubled,
    Late,
}

/// A direction with what is under way on it.
pub struct Line {
    chance: Chance,
    /// When all that the link was given will have crossed.
    free: u64,
    /// Until then everything is lost.
    dead_until: u64,
    flows: Flows,
    ring: Ring,
    /// Those that others overtake; few.
    late: VecDeque<(u64, Vec<u8>)>,
    counts: Counts,
}

impl Line {
    /// Empty, with memory for what these knobs can bring about.
    pub fn new(knobs: &Knobs, seed: u64) -> Self {
        let now = knobs.now();
        let underway = match now.rate {
            0 => UNDERWAY_BYTES,
            rate => bytes_in(now.delay_ns, rate) + now.queue_bytes,
        };
        Self {
            chance: Chance::new(seed),
            free: 0,
            dead_until: 0,
            flows: Flows::default(),
            ring: Ring::new((underway + underway / 4 + UNDERWAY_SPARE_BYTES) as usize),
            late: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Where the next packet is to be read to; `None` if there is no place for it.
    pub fn room(&mut self) -> Option<&mut [u8]> {
        self.ring.room(PACKET_BYTES_MAX)
    }

    /// A packet could not be taken in, or not be delivered.
    pub fn failed(&mut self) {
        self.counts.failed += 1;
    }

    /// A packet was read to the room: it waits for its turn in its flow, or goes on at once.
    pub fn accept(&mut self, knobs: &Knobs, len: usize, now: u64, spare: &mut Vec<u8>) {
        let rate = knobs.flow_rate.load(Ordering::Relaxed);
        if rate == 0 {
            return self.go_on(knobs, len, now, spare);
        }
        let packet = self.ring.room(PACKET_BYTES_MAX).and_then(|room| room.get(..len));
        if let Some((packet, shape)) = packet.and_then(|packet| Some((packet, Shape::of(packet)?))) {
            let dropped = self.flows.hold(packet, &shape, rate, now) as u64;
            (self.counts.packets, self.counts.dropped) = (self.counts.packets + dropped, self.counts.dropped + dropped);
        }
    }

    /// Lets those go on whose flows have released them.
    pub fn release(&mut self, knobs: &Knobs, now: u64, spare: &mut Vec<u8>) {
        while let Some(packet) = self.flows.release(now) {
            match self.ring.room(PACKET_BYTES_MAX) {
                Some(room) => {
                    room[..packet.len()].copy_from_slice(&packet);
                    self.go_on(knobs, packet.len(), now, spare);
                }
                None => self.failed(),
            }
        }
    }

    /// Decides what becomes of a packet in the room. `spare` is memory that the caller lends.
    fn go_on(&mut self, knobs: &Knobs, len: usize, now: u64, spare: &mut Vec<u8>) {
        self.dead_until = knobs.outage(now).unwrap_or(self.dead_until);
        let mut knobs = knobs.now();
        if now < self.dead_until {
            knobs.loss = 1.0;
        }
        let Some(packet) = self.ring.room(PACKET_BYTES_MAX).and_then(|room| room.get_mut(..len)) else {
            return self.failed();
        };
        let Some(shape) = Shape::of(packet) else {
            // Not IP: nobody waits for it.
            return;
        };
        self.counts.packets += shape.segments as u64;
        let fitting = fitting(&knobs, &shape, self.free.saturating_sub(now));
        self.counts.dropped += (shape.segments - fitting) as u64;
        for segment in 0..fitting {
            if let Some(payload) = shape.alterable(segment).filter(|_| self.chance.happens(knobs.corruption)) {
                let at = payload.start + self.chance.below(payload.len() as u64) as usize;
                packet[at] ^= 1 << self.chance.below(8);
                self.counts.corrupted += 1;
            }
        }
        let (fault, fate) = fate(&mut self.chance, &knobs, &shape, 0, fitting);
        if fault == shape.segments {
            // The usual way: it stays where it was read to.
            let due = self.cross(&knobs, &shape, 0, fitting, now);
            self.ring.push(len, due);
            return;
        }
        spare.clear();
        spare.extend_from_slice(packet);
        self.send_in_runs(&knobs, &shape, spare, (fault, fate), fitting, now);
    }

    /// Sends what arrives of a packet, given the first segment that something happens to.
    fn send_in_runs(
        &mut self,
        knobs: &Now,
        shape: &Shape,
        packet: &[u8],
        mut fault: (usize, Fate),
        end: usize,
        now: u64,
    ) {
        let mut first = 0;
        while fault.0 < end {
            let (at, fate) = fault;
            // A doubled one goes with those before it, and once more by itself.
            self.send(knobs, shape, packet, (first, at + usize::from(fate == Fate::Doubled)), now);
            match fate {
                Fate::Vanishes => self.counts.vanished += 1,
                Fate::Lost => self.counts.lost += 1,
                Fate::Doubled => {
                    self.counts.doubled += 1;
                    self.send(knobs, shape, packet, (at, at + 1), now);
                }
                Fate::Late => {
                    self.counts.late += 1;
                    let due = self.cross(knobs, shape, at, at + 1, now) + knobs.late_ns;
                    let mut alone = vec![0; shape.run_bytes(at, at + 1)];
                    shape.cut(packet, at, at + 1, &mut alone);
                    self.late.push_back((due, alone));
                }
            }
            if matches!(fate, Fate::Vanishes | Fate::Lost) {
                // It was lost behind the link, which it has used.
                self.cross(knobs, shape, at, at + 1, now);
            }
            first = at + 1;
            fault = self::fate(&mut self.chance, knobs, shape, first, end);
        }
        self.send(knobs, shape, packet, (first, end), now);
    }

    /// A run of segments uses the link; when it will be at the other end.
    fn cross(&mut self, knobs: &Now, shape: &Shape, from: usize, to: usize, now: u64) -> u64 {
        let bytes: usize = (from..to).map(|segment| shape.wire_bytes(segment)).sum();
        self.counts.bytes += bytes as u64;
        self.free = self.free.max(now);
        if knobs.rate > 0 {
            let on_wire = bytes + (to - from) * WIRE_OVERHEAD_BYTES;
            self.free += (on_wire as f64 * 8e9 / knobs.rate as f64) as u64;
        }
        self.free + knobs.delay_ns
    }

    /// A run of segments crosses and arrives, as one packet.
    fn send(&mut self, knobs: &Now, shape: &Shape, packet: &[u8], (from, to): (usize, usize), now: u64) {
        if from == to {
            return;
        }
        let due = self.cross(knobs, shape, from, to, now);
        let len = shape.run_bytes(from, to);
        match self.ring.room(len) {
            Some(room) => {
                shape.cut(packet, from, to, room);
                self.ring.push(len, due);
            }
            None => self.counts.failed += (to - from) as u64,
        }
    }

    /// When something is next to be done: a packet to be released, or delivered.
    pub fn due(&self) -> Option<u64> {
        self.delivery().into_iter().chain(self.flows.due()).min()
    }

    /// When the next packet is to be delivered.
    fn delivery(&self) -> Option<u64> {
        let late = self.late.front().map(|(due, _)| *due);
        self.ring.due().into_iter().chain(late).min()
    }

    /// Delivers the next packet, if its time has come; false if there is none.
    pub fn deliver(&mut self, now: u64, write: impl FnOnce(&[u8]) -> bool) -> bool {
        let Some(due) = self.delivery().filter(|due| *due <= now) else { return false };
        self.counts.latest = self.counts.latest.max(Duration::from_nanos(now - due));
        let taken = if self.ring.due() == Some(due) {
            let taken = self.ring.first().is_none_or(write);
            self.ring.pop();
            taken
        } else {
            self.late.pop_front().is_none_or(|(_, packet)| write(&packet))
        };
        if !taken {
            self.failed();
        }
        true
    }
}

/// The first segment of a run that something happens to, and what; the end of the run if there is none.
fn fate(chance: &mut Chance, knobs: &Now, shape: &Shape, from: usize, to: usize) -> (usize, Fate) {
    for segment in from..to {
        if shape.wire_bytes(segment) > knobs.largest {
            return (segment, Fate::Vanishes);
        }
        for (probability, fate) in
            [(knobs.loss, Fate::Lost), (knobs.disorder, Fate::Late), (knobs.doubling, Fate::Doubled)]
        {
            if chance.happens(probability) {
                return (segment, fate);
            }
        }
    }
    (to, Fate::Lost)
}

/// How many segments of a packet find place in the queue, when the link is busy for so long with those before.
fn fitting(knobs: &Now, shape: &Shape, busy_ns: u64) -> usize {
    if knobs.rate == 0 {
        return shape.segments;
    }
    let room = knobs.queue_bytes.saturating_sub(bytes_in(busy_ns, knobs.rate));
    let each = (shape.wire_bytes(0) + WIRE_OVERHEAD_BYTES) as u64;
    shape.segments.min((room / each) as usize)
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::tcp;
    use super::*;

    const MS: u64 = 1_000_000;
    const GBIT: u64 = 1_000_000_000;

    struct Rig {
        knobs: Knobs,
        line: Line,
    }

    impl Rig {
        fn new(prepare: impl FnOnce(&Knobs)) -> Self {
            let knobs = Knobs::default();
            prepare(&knobs);
            let line = Line::new(&knobs, 1);
            Self { knobs, line }
        }

        fn give(&mut self, packet: &[u8], now: u64) {
            self.line.room().expect("there is room")[..packet.len()].copy_from_slice(packet);
            self.line.accept(&self.knobs, packet.len(), now, &mut Vec::new());
        }

        /// All that comes out until a moment: when, and how large.
        fn take(&mut self, until: u64) -> Vec<(u64, Vec<u8>)> {
            let mut out = Vec::new();
            while let Some(due) = self.line.due().filter(|due| *due <= until) {
                let before = due.checked_sub(1);
                assert!(before.is_none_or(|before| !self.line.deliver(before, |_| panic!("too early"))));
                assert!(self.line.deliver(due, |packet| {
                    out.push((due, packet.to_vec()));
                    true
                }));
            }
            assert!(!self.line.deliver(until, |_| panic!("nothing is due")));
            out
        }
    }

    #[test]
    fn packet_takes_the_delay_and_its_time_on_the_link() {
        let mut rig = Rig::new(|knobs| {
            knobs.delay(Duration::from_millis(25));
            knobs.rate(Some(GBIT));
        });
        // 960 bytes of payload, 40 of headers, 38 of Ethernet: 8.304 us each.
        let packet = tcp(&[1; 1920], Some(960), false);
        rig.give(&packet, 0);
        rig.give(&packet, 0);
        rig.give(&packet, MS);
        let due: Vec<u64> = rig.take(100 * MS).into_iter().map(|(due, _)| due).collect();
        assert_eq!(due, [25 * MS + 16_608, 25 * MS + 33_216, 26 * MS + 16_608]);
        assert_eq!((rig.line.counts().packets, rig.line.counts().bytes), (6, 6000));
    }

    #[test]
    fn queue_that_is_full_takes_a_part() {
        let mut rig = Rig::new(|knobs| {
            knobs.rate(Some(8_000_000));
            knobs.queue(Some(5000));
        });
        let packet = tcp(&[1; 9600], Some(960), false);
        rig.give(&packet, 0);
        assert_eq!(rig.line.counts().dropped, 6, "4 of 1038 bytes fit into 5000");
        rig.give(&packet, 0);
        assert_eq!(rig.line.counts().dropped, 16);
        // A byte per microsecond: in 3 ms the link has taken three of the four.
        rig.give(&packet, 3 * MS);
        assert_eq!(rig.line.counts().dropped, 23);
        let payload =
            |packets: Vec<(u64, Vec<u8>)>| packets.iter().map(|(_, packet)| packet.len() - 50).collect::<Vec<_>>();
        assert_eq!(payload(rig.take(20 * MS)), [3840, 2880]);
        assert_eq!(bytes_in(50 * MS, GBIT), 6_250_000);
    }

    #[test]
    fn large_packets_vanish_and_small_ones_do_not() {
        let mut rig = Rig::new(|knobs| knobs.largest(Some(1500)));
        rig.give(&tcp(&[1; 8960], None, false), 0);
        rig.give(&tcp(&[1; 17_000], Some(8960), false), 0);
        rig.give(&tcp(&[1; 10_000], Some(8960), false), 0);
        rig.give(&tcp(&[1; 1460], None, false), 0);
        // The end of the third packet is small.
        assert_eq!(rig.take(0).iter().map(|(_, packet)| packet.len()).collect::<Vec<_>>(), [50 + 1040, 50 + 1460]);
        assert_eq!(rig.line.counts().vanished, 4);
        rig.knobs.largest(None);
        rig.give(&tcp(&[1; 8960], None, false), 0);
        assert_eq!(rig.take(0).len(), 1);
    }

    /// Every segment bears its number: what arrives, how often and when, agrees with the counts, and
    /// with what was asked for.
    #[test]
    fn faults_are_as_many_as_asked_for_and_are_counted() {
        const SEGMENTS: usize = 40_000;
        let mut rig = Rig::new(|knobs| {
            knobs.lose(0.02);
            knobs.double(0.01);
            knobs.reorder(0.05, Duration::from_millis(1));
        });
        let mut arrived = vec![0; SEGMENTS];
        let (mut last, mut overtaken) = (0, 0);
        for packet in 0..SEGMENTS / 20 {
            let payload: Vec<u8> = (0..20).flat_map(|index| ((packet * 20 + index) as u64).to_be_bytes()).collect();
            rig.give(&tcp(&payload, Some(8), packet % 2 == 0), packet as u64 * 1000);
            for (_, out) in rig.take(if packet + 1 < SEGMENTS / 20 { packet as u64 * 1000 } else { 100 * MS }) {
                let headers = if out[10] >> 4 == 6 { 70 } else { 50 };
                for number in out[headers..].chunks(8) {
                    let number = u64::from_be_bytes(number.try_into().expect("8 bytes")) as usize;
                    arrived[number] += 1;
                    overtaken += usize::from(number < last);
                    last = last.max(number);
                }
            }
        }
        let counts = rig.line.counts();
        let times = |times| arrived.iter().filter(|count| **count == times).count() as u64;
        assert_eq!((times(0), times(2)), (counts.lost, counts.doubled));
        assert!((600..1000).contains(&counts.lost) && (250..550).contains(&counts.doubled), "{counts:?}");
        assert!((1600..2400).contains(&counts.late) && overtaken as u64 >= counts.late * 9 / 10, "{counts:?}");
        assert_eq!(counts.failed, 0);
    }

    #[test]
    fn bit_flip_changes_one_bit_and_no_header() {
        let mut rig = Rig::new(|knobs| knobs.corrupt(0.25));
        let packet = tcp(&[0; 8000], Some(1000), false);
        for _ in 0..1000 {
            rig.give(&packet, 0);
        }
        let out = rig.take(0);
        let flipped: u32 = out.iter().flat_map(|(_, packet)| &packet[50..]).map(|byte| byte.count_ones()).sum();
        assert!(out.iter().all(|(_, out)| out[..50] == packet[..50]));
        assert_eq!(u64::from(flipped), rig.line.counts().corrupted);
        assert!((1700..2300).contains(&flipped), "{flipped}");
    }

    #[test]
    fn outage_begins_with_a_packet_and_ends_by_itself() {
        let mut rig = Rig::new(|knobs| knobs.fail(Duration::from_millis(3)));
        for time in [10, 12, 13, 14] {
            rig.give(&tcp(&[1; 100], None, false), time * MS);
        }
        assert_eq!(rig.take(20 * MS).iter().map(|(due, _)| due / MS).collect::<Vec<_>>(), [13, 14]);
        assert_eq!(rig.line.counts().lost, 2);
    }

    #[test]
    fn seed_repeats() {
        let run = || {
            let mut rig = Rig::new(|knobs| knobs.lose(0.5));
            (0..64).for_each(|_| rig.give(&tcp(&[1; 100], None, false), 0));
            (rig.line.counts(), rig.take(0).len())
        };
        assert_eq!(run(), run());
    }
}
