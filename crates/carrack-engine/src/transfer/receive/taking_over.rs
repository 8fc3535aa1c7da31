//! Whether of a large file that has changed what stands at its name is taken over, and only what differs is
//! sent; by whom, and how much at once.

use std::ops::Range;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::request::Delta;

use crate::sync::{lock, wait_timeout};

/// Files that are taken over at the same time: more would only take the disk from each other.
const AT_ONCE: usize = 2;
/// How often who waits looks whether all is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// What is taken for the rate at which files are copied and digested, in bytes a second, before it has been measured.
const ASSUMED_RATE: f64 = 400e6;
/// A rate counts once so much has been measured: less may be the start of a connection, or lie in buffers.
const MEASURED: Throughput = Throughput { bytes: 16 << 20, time: Duration::from_millis(500) };
/// Both sides read and digest the file, one after the other.
const SIDES: f64 = 2.0;

/// Bytes, and how long anybody was at work on them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Throughput {
    bytes: u64,
    time: Duration,
}

impl Throughput {
    fn is_measured(&self) -> bool {
        self.bytes >= MEASURED.bytes || self.time >= MEASURED.time
    }

    /// Bytes a second.
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

/// Measures what several threads do at the same time.
#[derive(Default)]
pub(super) struct RateMeter(Mutex<Metered>);

#[derive(Default)]
struct Metered {
    throughput: Throughput,
    at_work: usize,
    until: Option<Instant>,
}

impl Metered {
    fn count(&mut self, now: Instant) {
        let since = self.until.replace(now).unwrap_or(now);
        if self.at_work > 0 {
            self.throughput.time += now.saturating_duration_since(since);
        }
    }
}

impl RateMeter {
    /// Does something to so many bytes.
    pub fn measure<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        self.change(|metered| metered.at_work += 1);
        let result = work();
        self.change(|metered| {
            metered.at_work -= 1;
            metered.throughput.bytes += bytes;
        });
        result
    }

    fn change(&self, change: impl FnOnce(&mut Metered)) {
        let mut metered = lock(&self.0);
        metered.count(Instant::now());
        change(&mut metered);
    }

    fn throughput(&self) -> Throughput {
        let mut metered = lock(&self.0);
        metered.count(Instant::now());
        metered.throughput
    }
}

/// Decides about each file, by what has been measured so far.
pub(super) struct TakingOver {
    delta: Delta,
    /// Blocks that arrive, and what is taken over.
    pub arriving: RateMeter,
    pub copying: RateMeter,
    room: Mutex<Room>,
    freed: Condvar,
}

/// What may still be taken on.
struct Room {
    files: usize,
    /// What is told of each block is kept until the sender has answered.
    blocks: u64,
}

impl TakingOver {
    pub fn new(delta: Delta) -> Self {
        let room = Mutex::new(Room { files: AT_ONCE, blocks: limits::HELD_BLOCKS_OPEN as u64 });
        Self { delta, arriving: RateMeter::default(), copying: RateMeter::default(), room, freed: Condvar::new() }
    }

    /// Whether it is quicker than to send all of a file. Before anything has been sent, nobody knows: then it is tried.
    pub fn pays(&self) -> bool {
        match self.delta {
            Delta::Always => true,
            Delta::Never => false,
            Delta::Auto => pays(&self.arriving.throughput(), &self.copying.throughput()),
        }
    }

    /// Waits for its turn to take over blocks, and says how many of them may be; `None` when it is over before.
    pub fn turn(&self, mut blocks: Range<u64>, is_over: impl Fn() -> bool) -> Option<Turn<'_>> {
        let mut room = lock(&self.room);
        while room.files == 0 {
            if is_over() {
                return None;
            }
            room = wait_timeout(&self.freed, room, LOOK_INTERVAL);
        }
        blocks.end = blocks.end.min(blocks.start + room.blocks);
        room.files -= 1;
        room.blocks -= blocks.end - blocks.start;
        Some(Turn { taking: self, blocks })
    }
}

/// A file that is being taken over.
pub(super) struct Turn<'a> {
    taking: &'a TakingOver,
    pub blocks: Range<u64>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut room = lock(&self.taking.room);
        room.files += 1;
        room.blocks += self.blocks.end - self.blocks.start;
        self.taking.freed.notify_one();
    }
}

fn pays(arrived: &Throughput, copied: &Throughput) -> bool {
    let copied_rate = if copied.is_measured() { copied.rate() } else { ASSUMED_RATE };
    !arrived.is_measured() || arrived.rate() * SIDES < copied_rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throughput(bytes: u64, seconds: f64) -> Throughput {
        Throughput { bytes, time: Duration::from_secs_f64(seconds) }
    }

    #[test]
    fn what_stands_is_taken_over_where_that_is_quicker_than_sending() {
        let nothing = throughput(0, 0.0);
        assert!(pays(&nothing, &nothing), "nobody knows");
        assert!(pays(&throughput(1 << 20, 0.001), &nothing), "too little to know");
        // 20 Mbit/s, 1 Gbit/s and 10 Gbit/s beside a quick disk, and one of 100 MB/s.
        for (rate, quick, slow) in [(2.5e6, true, true), (125e6, true, false), (1.25e9, false, false)] {
            let sent = throughput(rate as u64 * 4, 4.0);
            assert_eq!(pays(&sent, &throughput(1 << 30, 1.0)), quick, "{rate}");
            assert_eq!(pays(&sent, &throughput(100 << 20, 1.0)), slow, "{rate}");
        }
        // Unmeasured, a disk is neither.
        assert!(pays(&throughput(125 << 20, 1.0), &nothing) && !pays(&throughput(1 << 30, 1.0), &nothing));
    }

    #[test]
    fn few_files_are_taken_over_at_once_and_few_blocks_of_all() {
        let taking = TakingOver::new(Delta::Always);
        let most = limits::HELD_BLOCKS_OPEN as u64;
        let one = taking.turn(0..most - 10, || false).unwrap();
        let two = taking.turn(5..100, || false).unwrap();
        assert_eq!((one.blocks.clone(), two.blocks.clone()), (0..most - 10, 5..15));
        assert!(taking.turn(0..1, || true).is_none());
        drop(one);
        assert_eq!(taking.turn(0..most, || false).unwrap().blocks, 0..most - 10);
    }

    #[test]
    fn time_is_that_in_which_anybody_is_at_work() {
        let meter = RateMeter::default();
        meter.measure(1, || meter.measure(2, || ()));
        let (before, start) = (meter.throughput(), Instant::now());
        while start.elapsed() < Duration::from_millis(2) {}
        assert_eq!(meter.throughput(), before, "nobody was at work");
        assert_eq!(before.bytes, 3);
        meter.measure(0, || assert!(meter.throughput().time > before.time || start.elapsed().is_zero()));
    }
}
