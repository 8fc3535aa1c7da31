//! A host and a path that are made up, and what is decided between them.

use std::time::Duration;

use super::*;

const SLICE: u64 = 256 << 10;

/// A host and a path, and what a stream over it has sent so far. Its clock is a count of seconds.
struct Path {
    /// Bytes a second that the path takes, and that the thread reads, digests and encrypts.
    path: f64,
    thread: f64,
    /// Bytes a second that it compresses, and what is left of each byte.
    packer: f64,
    shrinks: f64,
    now: f64,
    /// Bytes that wait in the socket; it takes no more than `room`.
    queued: f64,
    room: f64,
    plain: u64,
    packed: u64,
    tried: u64,
}

impl Path {
    fn new(path: f64, packer: f64, shrinks: f64) -> Self {
        let room = (1 << 20) as f64;
        Self { path, thread: 1e9, packer, shrinks, now: 0.0, queued: 0.0, room, plain: 0, packed: 0, tried: 0 }
    }

    fn pass(&mut self, seconds: f64) {
        self.now += seconds;
        self.queued = (self.queued - seconds * self.path).max(0.0);
    }

    fn send(&mut self, packing: &mut Packing, pieces: usize) {
        for _ in 0..pieces {
            self.pass(SLICE as f64 / self.thread);
            let began = self.now;
            let tries = packing.tries(SLICE as usize);
            let compressing = tries.then(|| Duration::from_secs_f64(SLICE as f64 / self.packer));
            self.pass(compressing.unwrap_or_default().as_secs_f64());
            let small = (SLICE as f64 * self.shrinks) as u64;
            let packs = tries && Packing::has_shrunk(SLICE as usize, small as usize);
            let travelled = if packs { small } else { SLICE };
            self.queued += travelled as f64;
            let waited = ((self.queued - self.room) / self.path).max(0.0);
            self.pass(waited);
            self.plain += SLICE;
            self.packed += if packs { SLICE } else { 0 };
            self.tried += u64::from(tries);
            packing.handle_sent(&SentPiece {
                plain: SLICE,
                travelled,
                compressing,
                waited: Duration::from_secs_f64(waited),
                elapsed: Duration::from_secs_f64(self.now - began),
            });
        }
    }

    /// The part of all bytes that travelled compressed.
    fn share(&self) -> f64 {
        self.packed as f64 / self.plain as f64
    }
}

const MB: f64 = 1e6;

#[test]
fn packing_compresses_everything_over_a_slow_path() {
    let (mut path, mut packing) = (Path::new(2.5 * MB, 400.0 * MB, 0.25), Packing::new());
    path.send(&mut packing, 2000);
    assert!(path.share() > 0.99, "{}", path.share());
    assert_eq!(packing.effort(), Effort::Thorough);
}

#[test]
fn packing_leaves_a_quick_path_alone() {
    let (mut path, mut packing) = (Path::new(3000.0 * MB, 400.0 * MB, 0.25), Packing::new());
    path.send(&mut packing, 10_000);
    assert!(path.share() < 0.01, "{}", path.share());
}

/// The path is slower than the processor, and quicker than what comes out of it compressed: nobody waits for the path,
/// and only trying the other way shows that it would be worse.
#[test]
fn packing_compresses_where_the_path_is_a_little_slower_than_the_processor() {
    let (mut path, mut packing) = (Path::new(125.0 * MB, 400.0 * MB, 0.25), Packing::new());
    path.send(&mut packing, 10_000);
    assert!(path.share() > 0.9, "{}", path.share());
    let plain = path.plain as f64 / (125.0 * MB);
    assert!(path.now < plain / 2.0, "{} of {plain} s", path.now);
}

/// Compressing is quicker than the path by less than the work around it takes: it would only burn time.
#[test]
fn packing_that_gains_nothing_is_left() {
    let (mut path, mut packing) = (Path::new(390.0 * MB, 400.0 * MB, 0.25), Packing::new());
    path.send(&mut packing, 10_000);
    assert!(path.share() < 0.1, "{}", path.share());
}

#[test]
fn packing_follows_a_path_that_changes() {
    let (mut path, mut packing) = (Path::new(2000.0 * MB, 400.0 * MB, 0.25), Packing::new());
    path.send(&mut packing, 2000);
    assert!(path.share() < 0.05, "{}", path.share());
    path.path = 5.0 * MB;
    (path.plain, path.packed) = (0, 0);
    path.send(&mut packing, 2000);
    assert!(path.share() > 0.9, "{}", path.share());
    path.path = 2000.0 * MB;
    (path.plain, path.packed) = (0, 0);
    path.send(&mut packing, 20_000);
    assert!(path.share() < 0.1, "{}", path.share());
}

#[test]
fn what_does_not_shrink_is_tried_more_and_more_rarely() {
    let (mut path, mut packing) = (Path::new(2.5 * MB, 400.0 * MB, 0.999), Packing::new());
    path.send(&mut packing, 1000);
    assert_eq!(path.packed, 0);
    assert!(path.tried < 30, "{}", path.tried);
    // Of another file nothing is known, and one that shrinks is compressed from its first piece on.
    let tried = path.tried;
    packing.begin_content();
    path.shrinks = 0.3;
    path.send(&mut packing, 100);
    assert_eq!(path.tried - tried, 100);
    assert!(path.packed == 100 * SLICE);
}

#[test]
fn pieces_that_save_little_travel_as_they_are() {
    assert!(Packing::has_shrunk(1000, 950));
    assert!(!Packing::has_shrunk(1000, 951));
    assert!(!Packing::has_shrunk(0, 1) && !Packing::has_shrunk(10, 10));
    assert!(!Packing::new().tries(Packing::LEAST_BYTES - 1));
}
