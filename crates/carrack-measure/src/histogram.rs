//! Times of single operations, counted in buckets that grow with the time: below 1 % of error from nanoseconds to
//! seconds in 15 KiB, whatever the number of operations.
//!
//! The buckets are those of fio (`stat.h`), so that what fio's tools read can be written exactly, and histograms of
//! several workers, hosts or programs can be added up.

use std::time::Duration;

/// Each power of two is divided into this many buckets, as a power of two.
const BITS: u32 = 6;
const PER_GROUP: usize = 1 << BITS;
/// Powers of two: the last bucket stands for 17.1 s and longer.
const GROUPS: usize = 29;
const BUCKETS: usize = PER_GROUP * GROUPS;

/// A histogram of durations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum_nanos: u128,
    min_nanos: u64,
    max_nanos: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], count: 0, sum_nanos: 0, min_nanos: u64::MAX, max_nanos: 0 }
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.count += 1;
        self.sum_nanos += u128::from(nanos);
        self.min_nanos = self.min_nanos.min(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
    }

    /// Adds all that another one has counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.sum_nanos += other.sum_nanos;
        self.min_nanos = self.min_nanos.min(other.min_nanos);
        self.max_nanos = self.max_nanos.max(other.max_nanos);
    }

    /// How many durations it has counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest, exactly; zero if there is none.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.count == 0 { 0 } else { self.min_nanos })
    }

    /// The longest, exactly.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max_nanos)
    }

    /// The mean; zero if there is none.
    pub fn mean(&self) -> Duration {
        let mean = self.sum_nanos.checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The duration that this share of all does not exceed, from 0 to 1; the middle of its bucket, and never beyond the
    /// longest or the shortest. Zero if there is none.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        if wanted >= self.count {
            return self.max();
        }
        if wanted == 1 {
            return self.min();
        }
        let mut seen = 0u64;
        for (index, count) in self.counts.iter().enumerate() {
            seen = count.saturating_add(seen);
            if seen >= wanted {
                return Duration::from_nanos(middle(index).clamp(self.min_nanos, self.max_nanos));
            }
        }
        Duration::ZERO
    }

    /// The buckets that are not empty: the nanoseconds that each stands for, and its count. As in fio's `bins`.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| (middle(index), *count))
    }

    /// Makes a histogram of what [`Self::bins`] gave, and of the extremes and the mean, which bins do not tell. `None`
    /// if the shortest is longer than the longest. The numbers may come from a file: counts that are too large for a
    /// histogram end at the largest number that there is.
    pub fn of_bins(
        bins: impl IntoIterator<Item = (u64, u64)>,
        min: Duration,
        max: Duration,
        mean: Duration,
    ) -> Option<Self> {
        let mut made = Self::default();
        for (nanos, count) in bins {
            let sum = &mut made.counts[bucket(nanos)];
            *sum = sum.saturating_add(count);
            made.count = made.count.saturating_add(count);
        }
        if made.count > 0 {
            if min > max {
                return None;
            }
            let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            (made.min_nanos, made.max_nanos) = (nanos(min), nanos(max));
            made.sum_nanos = u128::from(nanos(mean)) * u128::from(made.count);
        }
        Some(made)
    }
}

/// The bucket of a duration.
fn bucket(nanos: u64) -> usize {
    let top = nanos.checked_ilog2().unwrap_or(0);
    if top <= BITS {
        return nanos as usize;
    }
    let lost = top - BITS;
    let within = (nanos >> lost) as usize & (PER_GROUP - 1);
    (((lost as usize + 1) << BITS) + within).min(BUCKETS - 1)
}

/// The nanoseconds that a bucket stands for: its middle.
fn middle(bucket: usize) -> u64 {
    if bucket < 2 * PER_GROUP {
        return bucket as u64;
    }
    let lost = (bucket >> BITS) as u32 - 1;
    let width = 1u64 << lost;
    (1u64 << (lost + BITS)) + (bucket & (PER_GROUP - 1)) as u64 * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_fio() {
        // From fio's own tables: FIO_IO_U_PLAT_BITS 6, FIO_IO_U_PLAT_GROUP_NR 29.
        for (nanos, expected) in [(0, 0), (127, 127), (128, 128), (129, 128), (130, 129), (255, 191), (256, 192)] {
            assert_eq!(bucket(nanos), expected, "{nanos}");
        }
        // The longest that fio's converter can find.
        assert_eq!(middle(BUCKETS - 1), 17_112_760_320);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for index in 0..BUCKETS {
            assert_eq!(bucket(middle(index)), index);
        }
    }

    #[test]
    fn quantiles_are_within_one_percent_and_extremes_exact() {
        let mut histogram = Histogram::default();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        for (share, micros) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            let found = histogram.quantile(share).as_secs_f64() * 1e6;
            assert!((found / micros - 1.0).abs() < 0.01, "{share}: {found}");
        }
        assert_eq!((histogram.min(), histogram.max()), (Duration::from_micros(1), Duration::from_millis(1)));
        assert_eq!(histogram.quantile(1.0), Duration::from_millis(1));
        assert_eq!(histogram.quantile(0.0), Duration::from_micros(1));
        assert_eq!(histogram.mean(), Duration::from_nanos(500_500));
        assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);
    }

    #[test]
    fn merged_histograms_are_one_of_all() {
        let (mut one, mut other, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for nanos in 0..5000u64 {
            let time = Duration::from_nanos(nanos * nanos);
            if nanos % 3 == 0 { &mut one } else { &mut other }.record(time);
            both.record(time);
        }
        one.merge(&other);
        assert_eq!(one, both);
        let again = Histogram::of_bins(both.bins(), both.min(), both.max(), both.mean()).unwrap();
        assert_eq!((again.count(), again.quantile(0.99)), (both.count(), both.quantile(0.99)));
        assert_eq!(again.bins().collect::<Vec<_>>(), both.bins().collect::<Vec<_>>());
    }

    #[test]
    fn bins_from_a_file_neither_overflow_nor_contradict_their_extremes() {
        let nanos = Duration::from_nanos;
        assert_eq!(Histogram::of_bins([(100, 5)], nanos(5), nanos(0), nanos(0)), None);
        assert_eq!(Histogram::of_bins([], nanos(5), nanos(0), nanos(0)), Some(Histogram::default()));
        let most = [(100, u64::MAX), (100, u64::MAX), (1 << 40, u64::MAX)];
        let full = Histogram::of_bins(most, nanos(1), nanos(u64::MAX), Duration::MAX).unwrap();
        assert_eq!((full.count(), full.max(), full.mean()), (u64::MAX, nanos(u64::MAX), nanos(u64::MAX)));
        for share in [0.0, 0.5, 0.99, 1.0] {
            assert!(full.quantile(share) >= full.min() && full.quantile(share) <= full.max(), "{share}");
        }
    }
}
