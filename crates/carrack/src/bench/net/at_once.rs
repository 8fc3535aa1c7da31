//! Two transfers at once, one each way. A row of them counts only what came while both were under way, so neither ends
//! before both have been seen for long enough.

use carrack_sys::sync::lock;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::row;
use crate::bench::moved::Moved;

/// What the two know of each other: the first is the one that goes there.
#[derive(Default)]
pub struct AtOnce {
    ways: Mutex<[OneWay; 2]>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct OneWay {
    is_linked: bool,
    began: Option<Instant>,
    is_enough: bool,
    is_over: bool,
}

impl OneWay {
    /// How much later the other has begun.
    fn lag(&self, other: &Self) -> Option<Duration> {
        Some(other.began?.saturating_duration_since(self.began?))
    }
}

/// One of the two, which is over when this is dropped.
pub struct PairedWay<'a> {
    of: &'a AtOnce,
    back: bool,
}

impl AtOnce {
    /// One of the two. That which goes back begins once the other has its link: where ssh asks for passwords, it asks
    /// for one after the other.
    pub fn begin(&self, back: bool) -> PairedWay<'_> {
        let is_first_there = |ways: &mut [OneWay; 2]| !back || ways[0].is_linked || ways[0].is_over;
        let waited = self.changed.wait_while(self.lock(), |ways| !is_first_there(ways));
        drop(waited);
        PairedWay { of: self, back }
    }

    fn lock(&self) -> MutexGuard<'_, [OneWay; 2]> {
        lock(&self.ways)
    }
}

impl PairedWay<'_> {
    /// Told what has been seen of this one so far; whether it may end. Alone it measures nothing any more.
    pub fn is_enough(&self, moved: &Moved, warm_up: Duration, time: Duration) -> bool {
        let mut ways = self.of.lock();
        let (mut own, other) = self.both(&ways);
        own.is_linked |= moved.linked.is_some();
        own.began = own.began.or_else(|| moved.began());
        own.is_enough = match own.lag(&other) {
            Some(lag) => row::is_enough(moved, warm_up + lag, time),
            // One that never says that it has begun is not waited for.
            None => other.is_linked && row::is_overdue(moved, warm_up, time),
        };
        ways[usize::from(self.back)] = own;
        drop(ways);
        self.of.changed.notify_all();
        other.is_over || (own.is_enough && other.is_enough)
    }

    /// What of this one is left out at its beginning beside the warm-up: the other had not begun.
    pub fn lag(&self) -> Duration {
        let (own, other) = self.both(&self.of.lock());
        own.lag(&other).unwrap_or_default()
    }

    fn both(&self, ways: &[OneWay; 2]) -> (OneWay, OneWay) {
        (ways[usize::from(self.back)], ways[usize::from(!self.back)])
    }
}

impl Drop for PairedWay<'_> {
    fn drop(&mut self) {
        self.of.lock()[usize::from(self.back)].is_over = true;
        self.of.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::moved::EndSeen;
    use carrack_core::timeline::Sample;

    const SECOND: Duration = Duration::from_secs(1);

    /// A transfer that began so long after `start` and has told for some seconds.
    fn moved(start: Instant, begin: Duration, seconds: u64) -> Moved {
        let begin_us = begin.as_micros() as u64;
        let sample = |second| (begin_us + 1_000_000 * second, Sample { bytes: 1000 * second, ..Sample::default() });
        let end = EndSeen { begin_us: Some(begin_us), samples: (1..=seconds).map(sample).collect(), path: None };
        Moved { start: Some(start), source: end.clone(), destination: end, ..Moved::default() }
    }

    #[test]
    fn neither_way_ends_before_both_have_been_seen_for_as_long() {
        let (all, start) = (AtOnce::default(), Instant::now());
        let linked = Moved { linked: Some(start), ..Moved::default() };
        let there = all.begin(false);
        assert!(!there.is_enough(&linked, SECOND, SECOND));
        let back = all.begin(true);
        let seen_there = |seconds| there.is_enough(&moved(start, SECOND, seconds), SECOND, 2 * SECOND);
        let seen_back = |seconds| back.is_enough(&moved(start, 3 * SECOND, seconds), SECOND, 2 * SECOND);
        // Alone the first would have been enough after three seconds; the other began two seconds later.
        assert!(!seen_there(3) && !seen_there(4));
        assert!(!seen_back(1) && !seen_there(4), "nothing of it counts");
        assert_eq!((there.lag(), back.lag()), (2 * SECOND, Duration::ZERO));
        assert!(!seen_there(5), "the other has not been seen for as long");
        assert!(seen_back(3) && seen_there(5));
    }

    #[test]
    fn way_that_is_left_alone_ends() {
        let (all, start) = (AtOnce::default(), Instant::now());
        let there = all.begin(false);
        assert!(!there.is_enough(&moved(start, SECOND, 9), SECOND, SECOND));
        drop(there);
        // Also where the first failed before it had a link.
        let back = all.begin(true);
        assert!(back.is_enough(&moved(start, SECOND, 1), SECOND, SECOND));
    }

    #[test]
    fn second_way_begins_once_the_first_has_its_link() {
        let all = AtOnce::default();
        let there = all.begin(false);
        std::thread::scope(|scope| {
            let back = scope.spawn(|| drop(all.begin(true)));
            assert!(!there.is_enough(&Moved::default(), SECOND, SECOND));
            assert!(!all.lock()[1].is_over, "it waits");
            there.is_enough(&Moved { linked: Some(Instant::now()), ..Moved::default() }, SECOND, SECOND);
            back.join().unwrap();
        });
        assert!(all.lock()[1].is_over);
    }
}
