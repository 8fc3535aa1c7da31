//! How fast, over how many streams, and what holds it back: controllers over (now, sample).

pub mod limit;
pub mod packing;
pub mod streams;
pub mod workers;

use std::time::{Duration, Instant};

use crate::limits;
use crate::tuning::Tuning;

/// Streams to begin with, from the path's round trip, the sending host's congestion control (empty if it is not known)
/// and the number of processors of the smaller host.
pub fn initial_streams(tuning: &Tuning, round_trip: Duration, congestion: &str, processors: usize) -> u16 {
    if round_trip >= tuning.far_rtt {
        return if congestion.starts_with("bbr") { tuning.streams_far_bbr } else { tuning.streams_far };
    }
    // Near, a stream is limited by one core on each side: as many as cores, within reason.
    u16::try_from(processors).unwrap_or(limits::STREAMS).clamp(tuning.streams_near, tuning.streams_near_max)
}

/// The unit of sending for sources of these sizes, in bytes; `None` for one that is not a file of known size. The same
/// sources get the same again: what an interrupted copy has left is taken up block by block.
pub fn block_bytes(tuning: &Tuning, sizes: impl IntoIterator<Item = Option<u64>>) -> u32 {
    let largest = sizes.into_iter().try_fold(0, |largest, size| Some(size?.max(largest)));
    match largest {
        Some(size) if size <= tuning.small_file_bytes => tuning.small_block_bytes,
        Some(size) if size <= tuning.short_file_bytes => tuning.short_block_bytes,
        _ => tuning.block_bytes,
    }
}

/// A token bucket shared by all streams: a bound on the payload rate (`--bwlimit`).
#[derive(Debug)]
pub struct RateLimit {
    bytes_per_second: u64,
    /// The moment until which everything granted so far has been paid for.
    paid_until: Option<Instant>,
}

impl RateLimit {
    /// Unused allowance is kept for this long: smooth over a scheduler's tick, no burst after a pause.
    const BURST: Duration = Duration::from_millis(50);

    /// A limit of so many bytes a second; 0 is taken as 1.
    pub fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), paid_until: None }
    }

    /// Grants `bytes` and says how long to wait before sending them.
    pub fn reserve(&mut self, now: Instant, bytes: u64) -> Duration {
        let earliest = now.checked_sub(Self::BURST).unwrap_or(now);
        let start = self.paid_until.map_or(now, |paid| paid.max(earliest));
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        self.paid_until = Some(start + cost);
        start.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_follow_the_path() {
        let near = Duration::from_micros(100);
        for (processors, streams) in [(1, 2), (4, 4), (128, 8)] {
            assert_eq!(initial_streams(&Tuning::DEFAULT, near, "bbr", processors), streams);
            assert_eq!(initial_streams(&Tuning::DEFAULT, near, "cubic", processors), streams);
        }
        let far = Duration::from_millis(50);
        for (congestion, streams) in [("cubic", 32), ("reno", 32), ("", 32), ("bbr", 8), ("bbr3", 8)] {
            assert_eq!(initial_streams(&Tuning::DEFAULT, far, congestion, 2), streams);
        }
    }

    #[test]
    fn blocks_are_small_where_all_is_known_to_be_short() {
        assert_eq!(block_bytes(&Tuning::DEFAULT, [Some(5), Some(1 << 30)]), 256 << 10);
        assert_eq!(block_bytes(&Tuning::DEFAULT, [Some((1 << 30) + 1), Some(5)]), 1 << 20);
        assert_eq!(block_bytes(&Tuning::DEFAULT, [Some(5), Some(256 << 30)]), 1 << 20);
        assert_eq!(block_bytes(&Tuning::DEFAULT, [Some(5), Some((256 << 30) + 1)]), 4 << 20);
        assert_eq!(block_bytes(&Tuning::DEFAULT, [Some(5), None]), 4 << 20);
    }

    #[test]
    fn limit_holds_over_a_second_and_after_a_pause() {
        let mut limit = RateLimit::new(1_000_000);
        let start = Instant::now();
        let mut now = start;
        for _ in 0..100 {
            now += limit.reserve(now, 10_000);
        }
        let taken = now - start;
        assert!(taken >= Duration::from_millis(980) && taken <= Duration::from_millis(1000), "{taken:?}");
        // Ten seconds of silence buy a burst of 50 ms, not of 10 s.
        now += Duration::from_secs(10);
        let resumed = now;
        for _ in 0..10 {
            now += limit.reserve(now, 10_000);
        }
        assert!(now - resumed >= Duration::from_millis(35), "{:?}", now - resumed);
    }
}
