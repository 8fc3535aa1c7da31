//! What a call takes where none waits for another.

use std::collections::VecDeque;
use std::time::Duration;

/// Medians that the percentile is made of.
const KEPT: usize = 100;

/// Medians of windows, and what the last look has shown.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenMedians {
    look: Option<Duration>,
    medians: VecDeque<Duration>,
}

impl SeenMedians {
    /// After a look: what was seen before it does not count any more.
    pub fn of_look(median: Duration) -> Self {
        Self { look: Some(median), medians: VecDeque::from([median]) }
    }

    /// Takes the median of a window.
    pub fn add(&mut self, median: Duration) {
        if self.medians.len() == KEPT {
            self.medians.pop_front();
        }
        self.medians.push_back(median);
    }

    /// The newest median.
    pub fn last(&self) -> Option<Duration> {
        self.medians.back().copied()
    }

    /// The tenth percentile of the medians, or what the look has shown where that is less; never zero.
    pub fn alone(&self) -> Duration {
        let mut sorted: Vec<Duration> = self.medians.iter().copied().collect();
        sorted.sort_unstable();
        let tenth = sorted.get(sorted.len() / 10).copied();
        let least = [tenth, self.look].into_iter().flatten().min();
        least.unwrap_or_default().max(Duration::from_nanos(1))
    }
}
