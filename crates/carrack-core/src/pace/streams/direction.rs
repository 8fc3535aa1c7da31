//! When more streams, or fewer, are tried: pauses that grow with trials that were not kept.

/// Probes between two trials.
pub(super) const HELD: u32 = 4;

/// When more, or fewer, are tried next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Direction {
    /// Probes since the last trial.
    pub waited: u32,
    /// Trials in a row that were not kept.
    pub fruitless: u32,
}

impl Direction {
    /// Whether it is time for a trial; the pause between two is at most so many probes.
    pub fn is_due(self, most: u32) -> bool {
        self.waited >= HELD.saturating_mul(1 << self.fruitless.min(16)).min(most)
    }

    /// A trial was not kept.
    pub fn fail(&mut self) {
        *self = Self { waited: 0, fruitless: self.fruitless.saturating_add(1) };
    }

    /// A trial cannot be made now: it has to wait for its pause again.
    pub fn delay(&mut self) {
        self.waited = 0;
    }
}
