//! What holds a copy back: both ends tell now and then where the time of their streams goes, and of
//! both together it is known.

use std::time::{Duration, Instant};

use carrack_core::pace::limit::{self, Limit, RateWatch, Stage, StageTimes, limit};
use carrack_core::report::RateFall;

use crate::end::EndId;

/// The times of both ends.
#[derive(Clone, Copy, Debug, Default)]
struct Both {
    source: StageTimes,
    destination: StageTimes,
}

impl Both {
    fn limit(&self) -> Option<Limit> {
        limit(&self.source, &self.destination)
    }

    fn plus(&self, other: &Self) -> Self {
        Self { source: self.source.plus(&other.source), destination: self.destination.plus(&other.destination) }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self { source: self.source.since(&earlier.source), destination: self.destination.since(&earlier.destination) }
    }
}

/// Watches where the time goes, over the whole copy and over the latest stretch of it.
#[derive(Debug)]
pub struct HeldBack {
    /// How long a stretch is.
    long: Duration,
    /// Of the sessions before.
    before: Both,
    /// Of this one, as told last.
    now: Both,
    /// When the latest stretch began: the times then, the bytes that had landed, the moment.
    stretch: (Both, u64, Instant),
    /// Which ends have told since.
    told: (bool, bool),
    watch: RateWatch,
    /// Bytes that land together.
    unit: u64,
    /// How long the reader of what the command says has been waited for: in the latest stretch, and before it.
    reader: (Duration, Duration),
}

/// A fall of the rate, for a person.
pub fn words(fall: &RateFall) -> String {
    let mb = |rate: f64| format!("{:.1}", rate / 1e6);
    let why = fall.limit.map(|limit| format!("; held back by {}", limit.words())).unwrap_or_default();
    let seconds = fall.over.as_secs_f64();
    format!(
        "slower than before: {} MB/s over the last {seconds:.0} s, after {} MB/s{why}",
        mb(fall.rate),
        mb(fall.usual)
    )
}

/// A rate is known from so many units on.
const UNITS: f64 = 4.0;

impl HeldBack {
    /// Nothing is known yet. A rate is measured for `long` before it is compared with the usual one.
    pub fn new(long: Duration, now: Instant) -> Self {
        Self {
            long,
            before: Both::default(),
            now: Both::default(),
            stretch: (Both::default(), 0, now),
            told: (false, false),
            watch: RateWatch::default(),
            unit: 0,
            reader: (Duration::ZERO, Duration::ZERO),
        }
    }

    /// Whoever reads what the command says has been waited for.
    pub fn read_in(&mut self, time: Duration) {
        self.reader.0 += time;
    }

    /// A session begins: its ends count from nothing, and what lands comes in units of so many
    /// bytes, a block of each stream.
    pub fn session(&mut self, unit: u64, now: Instant) {
        self.unit = unit;
        self.before = self.before.plus(&self.now);
        self.now = Both::default();
        // What was usual before says nothing of the first stretch after a pause.
        (self.stretch, self.told, self.watch) = ((Both::default(), 0, now), (false, false), RateWatch::default());
    }

    /// An end tells where its time has gone. How far the rate fell, if the copy has become much slower: told once
    /// both ends have spoken, over the stretch since they did so before.
    pub fn handle_stages(&mut self, end: EndId, times: StageTimes, bytes_done: u64, now: Instant) -> Option<RateFall> {
        match end {
            EndId::Source => (self.now.source, self.told.0) = (times, true),
            EndId::Destination => (self.now.destination, self.told.1) = (times, true),
        }
        let seconds = now.saturating_duration_since(self.stretch.2).as_secs_f64();
        // The last stretch of a copy is short, and its rate that of an end.
        if self.told != (true, true) || seconds < 0.8 * self.long.as_secs_f64() {
            return None;
        }
        let (times, bytes, _) = std::mem::replace(&mut self.stretch, (self.now, bytes_done, now));
        self.told = (false, false);
        let waited = limit::reader(self.reader.0, Duration::from_secs_f64(seconds));
        self.reader = (Duration::ZERO, self.reader.1 + self.reader.0);
        let rate = bytes_done.saturating_sub(bytes) as f64 / seconds;
        let usual = self.watch.fallen(rate)?;
        let limit = waited.or_else(|| self.now.since(&times).limit());
        let is_as_asked = limit.is_some_and(|limit| limit.stage == Stage::RateLimit);
        if is_as_asked || usual * seconds < UNITS * self.unit as f64 {
            return None;
        }
        Some(RateFall { rate, usual, over: Duration::from_secs_f64(seconds), limit })
    }

    /// What held the streams back over the whole copy.
    pub fn overall(&self) -> Option<Limit> {
        self.before.plus(&self.now).limit()
    }

    /// Whether it was rather the reader of what the command says that was waited for, of so much time.
    pub fn reader(&self, of: Duration) -> Option<Limit> {
        limit::reader(self.reader.0 + self.reader.1, of)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use carrack_core::tuning::Tuning;

    use super::*;

    fn times(busy: u64, storage: u64, network: u64) -> StageTimes {
        let seconds = Duration::from_secs;
        StageTimes { busy: seconds(busy), storage: seconds(storage), network: seconds(network), pacing: Duration::ZERO }
    }

    /// The network is as it was, then the destination's disk becomes slow: the fall is told with the stage that caused
    /// it, while over the whole copy the network held it back.
    #[test]
    fn rate_that_falls_is_told_with_its_cause() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut held = HeldBack::new(Tuning::DEFAULT.stretch, start);
        assert_eq!(held.handle_stages(EndId::Source, times(20, 1, 18), 2_000_000_000, after(10)), None);
        assert_eq!(held.handle_stages(EndId::Destination, times(20, 1, 18), 2_000_000_000, after(10)), None);
        assert_eq!(held.handle_stages(EndId::Source, times(40, 2, 36), 4_000_000_000, after(20)), None);
        assert_eq!(held.handle_stages(EndId::Destination, times(40, 2, 36), 4_000_000_000, after(20)), None);
        assert_eq!(held.handle_stages(EndId::Destination, times(60, 19, 37), 5_000_000_000, after(30)), None);
        let fall = held.handle_stages(EndId::Source, times(60, 3, 54), 5_000_000_000, after(30)).expect("half as fast");
        let note = words(&fall);
        assert!(note.contains("100.0 MB/s") && note.contains("after 200.0 MB/s"), "{note}");
        assert!(note.contains("the destination's storage (85 %"), "{note}");
        assert_eq!(held.overall().map(|limit| limit.stage), Some(Stage::Network));
    }

    /// Of the four blocks that are under way over a slow path three may land in one stretch, and none in the next; and
    /// what is as slow as was asked for is no fault.
    #[test]
    fn rate_that_is_uneven_or_as_asked_has_not_fallen() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let paced = StageTimes { pacing: Duration::from_secs(9), ..times(10, 0, 0) };
        for (unit, stage) in [(1 << 20, times(10, 0, 9)), (1, paced)] {
            let mut held = HeldBack::new(Tuning::DEFAULT.stretch, start);
            held.session(unit, start);
            let stretches = [750_000, 1_500_000, 1_500_000, 1_500_000];
            for (at, bytes) in (1..).zip(stretches) {
                let so_far = (0..at).fold(StageTimes::default(), |sum, _| sum.plus(&stage));
                for end in [EndId::Source, EndId::Destination] {
                    assert_eq!(held.handle_stages(end, so_far, bytes, after(10 * at)), None, "{unit}");
                }
            }
        }
    }

    /// Whoever does not read is the cause, whatever the streams did meanwhile.
    #[test]
    fn reader_that_was_waited_for_is_the_cause() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut held = HeldBack::new(Tuning::DEFAULT.stretch, start);
        for (at, bytes) in [(10, 2_000_000_000), (20, 4_000_000_000)] {
            held.handle_stages(EndId::Source, times(at, 1, 0), bytes, after(at));
            assert_eq!(held.handle_stages(EndId::Destination, times(at, at, 0), bytes, after(at)), None);
        }
        held.read_in(Duration::from_secs(9));
        held.handle_stages(EndId::Source, times(21, 1, 0), 4_100_000_000, after(30));
        let fall =
            held.handle_stages(EndId::Destination, times(21, 21, 0), 4_100_000_000, after(30)).expect("much slower");
        let note = words(&fall);
        assert!(note.contains("held back by whoever reads the output (90 % of the time)"), "{note}");
        assert_eq!(held.reader(Duration::from_secs(30)), None);
        assert_eq!(held.reader(Duration::from_secs(12)).map(|limit| limit.stage), Some(Stage::Reader));
    }

    #[test]
    fn sessions_add_up() {
        let start = Instant::now();
        let mut held = HeldBack::new(Tuning::DEFAULT.stretch, start);
        held.handle_stages(EndId::Source, times(10, 9, 0), 1, start);
        held.handle_stages(EndId::Destination, times(10, 0, 9), 1, start);
        held.session(1, start);
        assert_eq!(held.overall().map(|limit| limit.stage), Some(Stage::SourceStorage));
    }
}
