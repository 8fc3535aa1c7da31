//! The order in which the records of a file are visited: each exactly once.

use crate::data::mix;

/// Records that are passed over between two that are read: IOzone's stride.
const STRIDE: u64 = 17;

/// An order of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Forward,
    /// From the last to the first.
    Backward,
    /// Every 17th, then those beside them, until all were visited.
    Strided,
    /// In no order; another one for each seed.
    Random {
        /// Chooses the order.
        seed: u64,
    },
}

impl Order {
    /// The record that is visited at this place of the order, out of `count`; `at` is less than `count`.
    pub fn record(self, at: u64, count: u64) -> u64 {
        match self {
            Self::Forward => at,
            Self::Backward => count - 1 - at,
            Self::Strided => strided(at, count),
            Self::Random { seed } => shuffled(seed, at, count),
        }
    }
}

fn strided(at: u64, count: u64) -> u64 {
    let place = u128::from(at) * u128::from(STRIDE);
    let (rounds, place) = ((place / u128::from(count)) as u64, (place % u128::from(count)) as u64);
    // The stride is prime: unless it divides the count, a walk round the file comes to every record. Where it does,
    // each round begins one further.
    if count.is_multiple_of(STRIDE) { (place + rounds) % count } else { place }
}

/// A permutation of `0..count`: a Feistel network over the next power of four, walked until it leads back inside.
fn shuffled(seed: u64, at: u64, count: u64) -> u64 {
    let half = (64 - count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half) - 1;
    let mut place = at;
    loop {
        let (mut left, mut right) = (place >> half, place & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ (mix(right ^ seed.wrapping_add(round << 56)) & mask));
        }
        place = left << half | right;
        if place < count {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_visits_each_record_once() {
        let orders = [Order::Forward, Order::Backward, Order::Strided, Order::Random { seed: 7 }];
        for order in orders {
            for count in [1, 2, 3, 16, 17, 18, 34, 100, 289, 1000, 1024] {
                let mut seen: Vec<u64> = (0..count).map(|at| order.record(at, count)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>(), "{order:?} {count}");
            }
        }
    }

    #[test]
    fn orders_are_what_they_are_called() {
        assert_eq!((Order::Backward.record(0, 10), Order::Backward.record(9, 10)), (9, 0));
        assert_eq!([0, 1, 2].map(|at| Order::Strided.record(at, 30)), [0, 17, 4]);
        let random: Vec<u64> = (0..1000).map(|at| Order::Random { seed: 1 }.record(at, 1000)).collect();
        let neighbours = random.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
        assert!(neighbours < 20, "{neighbours}");
        let other: Vec<u64> = (0..1000).map(|at| Order::Random { seed: 2 }.record(at, 1000)).collect();
        assert_ne!(random, other);
    }
}
