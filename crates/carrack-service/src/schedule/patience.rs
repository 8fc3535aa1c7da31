//! When an attempt that got nowhere is followed by the next.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Pauses between attempts. Each is twice as long as the one before, up to a maximum, and longer by up to a quarter, so
/// that tasks which failed together do not come back together. With the defaults, a task whose endpoint is dead for an
/// hour makes 18 attempts at most. No number of attempts over a lost network fails a task: its deadline or its owner
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The first pause. Also after an attempt that got somewhere.
    pub first: Duration,
    /// The longest pause, before jitter.
    pub longest: Duration,
    /// Consecutive workers of a task that may die without a word and without progress. Then the task fails: its request
    /// kills workers.
    pub deaths: u32,
}

impl Default for Patience {
    fn default() -> Self {
        // Five seconds: a service that restarts is back. Five minutes: a link that comes back is not idle for longer.
        Self { first: Duration::from_secs(5), longest: Duration::from_secs(300), deaths: 10 }
    }
}

impl Patience {
    /// The pause before the next attempt after `futile` consecutive attempts without progress. The same `name` (a task
    /// or a link) has the same jitter after the same number of attempts.
    pub fn pause(&self, futile: u32, name: &str) -> Duration {
        let doublings = futile.saturating_sub(1).min(31);
        let pause = self.first.saturating_mul(1 << doublings).min(self.longest);
        let mut hasher = DefaultHasher::new();
        (name, futile).hash(&mut hasher);
        let jitter = pause / 4 * u32::try_from(hasher.finish() % 1024).unwrap_or(0) / 1024;
        pause + jitter
    }

    /// No pause is longer than this. A time of a next attempt that is further away was written by a clock that has been
    /// set back since.
    pub fn longest_with_jitter(&self) -> Duration {
        self.longest + self.longest / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_jitter_adds_a_quarter_at_most() {
        let patience = Patience::default();
        for name in ["a", "b", "0192-0001", "0192-0002"] {
            for futile in 0..200u32 {
                let plain = Duration::from_secs((5u64 << futile.saturating_sub(1).min(20)).min(300));
                let pause = patience.pause(futile, name);
                assert!(pause >= plain && pause < plain + plain / 4, "{name} {futile}: {pause:?}");
                assert!(pause <= patience.longest_with_jitter());
            }
        }
        assert_ne!(patience.pause(5, "a"), patience.pause(5, "b"));
        assert_eq!(patience.pause(5, "a"), patience.pause(5, "a"));
    }

    #[test]
    fn endpoint_dead_for_an_hour_costs_a_task_twenty_attempts_at_most() {
        let patience = Patience::default();
        for name in (0..1000).map(|n| format!("task {n}")) {
            let (mut now, mut attempts) = (Duration::ZERO, 0);
            while now < Duration::from_secs(3600) {
                attempts += 1;
                // An attempt that is refused at once takes no time: the worst case.
                now += patience.pause(attempts, &name);
            }
            assert!((10..=20).contains(&attempts), "{name}: {attempts}");
        }
    }
}
