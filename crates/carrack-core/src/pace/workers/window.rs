//! The calls of one stretch of time.

use std::time::Duration;

use super::MetadataCall;

/// The shortest window.
const SHORTEST: Duration = Duration::from_millis(50);
/// Calls that a median is made of.
const CALLS: usize = 32;
/// The same where much is to be learned from it.
const CALLS_FEW: usize = 16;
/// A window is over after this, if it has [`CALLS_LEAST`].
const LONGEST: Duration = Duration::from_secs(1);
/// See [`LONGEST`].
const CALLS_LEAST: usize = 4;
/// Times that are kept: more do not move a median.
const KEPT: usize = 512;
/// All workers were in use in this part of the calls: more of them would have been, too.
const USED: f64 = 0.25;

/// Calls that ended, and how long each took.
#[derive(Clone, Debug, Default)]
pub(super) struct CallWindow {
    /// Calls that began earlier do not count.
    from: Duration,
    /// When the first ended.
    since: Option<Duration>,
    /// In nanoseconds.
    took: Vec<u64>,
    calls: usize,
    /// Calls beside which all other workers were busy.
    used: usize,
}

impl CallWindow {
    /// Begins anew: what began before says nothing of it.
    pub fn restart(&mut self, now: Duration) {
        self.took.clear();
        (self.from, self.since, self.calls, self.used) = (now, None, 0, 0);
    }

    /// Takes a call of one of so many workers.
    pub fn add(&mut self, call: MetadataCall, workers: u16) {
        if call.began < self.from {
            return;
        }
        self.since.get_or_insert(call.began);
        self.calls += 1;
        self.used += usize::from(call.alongside >= workers);
        if self.took.len() < KEPT {
            let took = call.ended.saturating_sub(call.began);
            self.took.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Calls that count so far.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Whether it says enough; of a `few` calls where the next number will be very different.
    pub fn is_full(&self, now: Duration, workers: u16, few: bool) -> bool {
        let Some(since) = self.since else { return false };
        let time = now.saturating_sub(since);
        let enough = if few { CALLS_FEW } else { CALLS }.max(2 * usize::from(workers));
        (time >= SHORTEST && self.calls >= enough) || (time >= LONGEST && self.calls >= CALLS_LEAST)
    }

    /// Whether more workers would have had something to do.
    pub fn was_used(&self) -> bool {
        self.used as f64 >= self.calls as f64 * USED
    }

    /// The time of the call in the middle; zero without any.
    pub fn median(&mut self) -> Duration {
        if self.took.is_empty() {
            return Duration::ZERO;
        }
        let middle = self.took.len() / 2;
        Duration::from_nanos(*self.took.select_nth_unstable(middle).1)
    }
}
