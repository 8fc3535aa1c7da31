//! Amounts over time in equal slots: a bounded number of them, each twice as long as before where there are too many.

use std::time::Duration;

/// The length of a slot at first.
const SLOT: Duration = Duration::from_millis(10);
/// More slots than this are made half as many.
const SLOTS_MAX: usize = 1024;

/// Amounts (bytes, operations) by the time when they were done.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    slot: Duration,
    amounts: Vec<f64>,
}

impl Default for Series {
    fn default() -> Self {
        Self { slot: SLOT, amounts: Vec::new() }
    }
}

impl Series {
    /// Makes a series of amounts that were kept, with slots of this length.
    pub fn new(slot: Duration, amounts: Vec<f64>) -> Self {
        Self { slot: slot.max(Duration::from_nanos(1)), amounts }
    }

    /// The length of a slot.
    pub fn slot(&self) -> Duration {
        self.slot
    }

    /// The amount of each slot.
    pub fn amounts(&self) -> &[f64] {
        &self.amounts
    }

    /// Adds an amount that was done this long after the start.
    pub fn add(&mut self, at: Duration, amount: f64) {
        let mut index = self.index(at);
        while index >= SLOTS_MAX {
            self.halve();
            index = self.index(at);
        }
        if self.amounts.len() <= index {
            self.amounts.resize(index + 1, 0.0);
        }
        self.amounts[index] += amount;
    }

    /// Adds another series that began at the same moment.
    pub fn merge(&mut self, other: &Self) {
        for (index, amount) in other.amounts.iter().enumerate() {
            // The middle of a slot lies in one slot of any other length.
            self.add(other.slot * index as u32 + other.slot / 2, *amount);
        }
    }

    /// The slots that lie before `end` as a whole.
    pub fn whole_slots(&self, end: Duration) -> &[f64] {
        &self.amounts[..self.index(end).min(self.amounts.len())]
    }

    /// Whole stretches of about a second each that lie before `end`: how many seconds, and the amount.
    pub fn by_second(&self, end: Duration) -> Vec<(f64, f64)> {
        let each = (1.0 / self.slot.as_secs_f64()).ceil().max(1.0) as usize;
        let span = self.slot.as_secs_f64() * each as f64;
        self.whole_slots(end).chunks_exact(each).map(|slots| (span, slots.iter().sum())).collect()
    }

    /// Rates a second over slots of about a second each: a percentile from 0 to 1, none for less than two of them.
    pub fn rate_percentile(&self, end: Duration, share: f64) -> Option<f64> {
        let mut rates: Vec<f64> = self.by_second(end).iter().map(|(seconds, amount)| amount / seconds).collect();
        rates.sort_by(f64::total_cmp);
        let last = rates.len().checked_sub(1).filter(|last| *last > 0)?;
        rates.get((last as f64 * share).round() as usize).copied()
    }

    fn index(&self, at: Duration) -> usize {
        usize::try_from(at.as_nanos() / self.slot.as_nanos()).unwrap_or(usize::MAX)
    }

    fn halve(&mut self) {
        self.amounts = self.amounts.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.slot *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_is_bounded_and_loses_no_amount() {
        let mut series = Series::default();
        for milli in 0..200_000 {
            series.add(Duration::from_millis(milli), 1.0);
        }
        assert!(series.amounts().len() <= SLOTS_MAX && series.amounts().len() > SLOTS_MAX / 4);
        assert_eq!(series.amounts().iter().sum::<f64>(), 200_000.0);
        let per_slot = series.slot().as_secs_f64() * 1000.0;
        assert!(series.whole_slots(Duration::from_secs(200)).iter().all(|amount| *amount == per_slot));
    }

    #[test]
    fn series_of_workers_add_up() {
        let (mut long, mut short) = (Series::default(), Series::default());
        (0..60_000).for_each(|milli| long.add(Duration::from_millis(milli), 1.0));
        (0..1_000).for_each(|milli| short.add(Duration::from_millis(milli), 2.0));
        let (mut one, mut other) = (long.clone(), short.clone());
        one.merge(&short);
        other.merge(&long);
        assert_eq!(one, other);
        assert_eq!(one.amounts().iter().sum::<f64>(), 62_000.0);
        assert_eq!(one.rate_percentile(Duration::from_secs(60), 0.5).map(f64::round), Some(1000.0));
        assert_eq!(short.rate_percentile(Duration::from_secs(1), 0.5), None);
    }
}
