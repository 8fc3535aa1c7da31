//! The best mean rate of the last minute: fewer streams must not be slower.

use std::collections::VecDeque;
use std::time::Duration;

/// How long a mean counts.
const KEPT: Duration = Duration::from_secs(60);
/// More means than a minute has probes.
const MEANS: usize = 30;

/// Mean rates of the last minute.
#[derive(Clone, Debug, Default)]
pub(super) struct Anchor {
    /// When each was measured, and bytes a second.
    means: VecDeque<(Duration, f64)>,
}

impl Anchor {
    /// Takes a mean rate.
    pub fn add(&mut self, now: Duration, rate: f64) {
        self.means.retain(|(at, _)| now <= at.saturating_add(KEPT));
        if self.means.len() == MEANS {
            self.means.pop_front();
        }
        self.means.push_back((now, rate));
    }

    /// The best of the last minute, in bytes a second; 0 if there is none.
    pub fn best(&self, now: Duration) -> f64 {
        let recent = self.means.iter().filter(|(at, _)| now <= at.saturating_add(KEPT));
        recent.map(|(_, rate)| *rate).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchor_is_the_best_mean_of_a_minute() {
        let seconds = Duration::from_secs;
        let mut anchor = Anchor::default();
        assert_eq!(anchor.best(seconds(0)), 0.0);
        anchor.add(seconds(0), 5.0);
        anchor.add(seconds(30), 3.0);
        assert_eq!((anchor.best(seconds(60)), anchor.best(seconds(61)), anchor.best(seconds(91))), (5.0, 3.0, 0.0));
        // However many come, and whatever their times, it stays small.
        (0..1000).for_each(|mean| anchor.add(seconds(1000 - mean), 1.0));
        assert!(anchor.means.len() <= MEANS);
    }
}
