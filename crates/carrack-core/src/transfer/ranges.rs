//! A set of numbers, kept as disjoint ranges: which blocks of a file have landed.

use std::collections::BTreeMap;

/// Disjoint, non-adjacent half-open ranges in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    by_start: BTreeMap<u64, u64>,
    count: u64,
}

impl Ranges {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one number; false when it was there.
    pub fn insert(&mut self, number: u64) -> bool {
        if self.contains(number) {
            return false;
        }
        self.count += 1;
        let mut start = number;
        let mut end = number + 1;
        if let Some((&before, &before_end)) = self.by_start.range(..number).next_back()
            && before_end == number
        {
            start = before;
        }
        if let Some(after_end) = self.by_start.remove(&end) {
            end = after_end;
        }
        self.by_start.insert(start, end);
        true
    }

    /// Takes one number out; false when it was not there.
    pub fn remove(&mut self, number: u64) -> bool {
        let Some((&start, &end)) = self.by_start.range(..=number).next_back().filter(|(_, end)| number < **end) else {
            return false;
        };
        self.count -= 1;
        self.by_start.remove(&start);
        if start < number {
            self.by_start.insert(start, number);
        }
        if number + 1 < end {
            self.by_start.insert(number + 1, end);
        }
        true
    }

    /// The first number from `from` on that is not in the set.
    pub fn first_missing(&self, from: u64) -> u64 {
        let around = self.by_start.range(..=from).next_back();
        around.map_or(from, |(_, &end)| end.max(from))
    }

    /// Whether a number is in the set.
    pub fn contains(&self, number: u64) -> bool {
        self.by_start.range(..=number).next_back().is_some_and(|(_, &end)| number < end)
    }

    /// How many numbers.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many separate ranges: what the memory in use is proportional to.
    pub fn pieces(&self) -> usize {
        self.by_start.len()
    }

    /// Whether all of `0..end` is in the set, and nothing else.
    pub fn is_all_of(&self, end: u64) -> bool {
        self.count == end && (end == 0 || self.by_start.get(&0) == Some(&end))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_a_set(numbers in proptest::collection::vec((0u64..64, 0..3), 0..200)) {
            let mut model = BTreeSet::new();
            let mut ranges = Ranges::new();
            for (number, what) in numbers {
                match what {
                    0 => prop_assert_eq!(ranges.remove(number), model.remove(&number)),
                    _ => prop_assert_eq!(ranges.insert(number), model.insert(number)),
                }
                prop_assert_eq!(ranges.count(), model.len() as u64);
                for probe in 0..64 {
                    prop_assert_eq!(ranges.contains(probe), model.contains(&probe));
                    let missing = (probe..).find(|number| !model.contains(number));
                    prop_assert_eq!(Some(ranges.first_missing(probe)), missing);
                }
                let mut pieces = 0;
                for &number in &model {
                    pieces += usize::from(number == 0 || !model.contains(&(number - 1)));
                }
                prop_assert_eq!(ranges.pieces(), pieces);
                for end in 0..66 {
                    let all = model.len() as u64 == end && (0..end).all(|number| model.contains(&number));
                    prop_assert_eq!(ranges.is_all_of(end), all);
                }
            }
        }
    }
}
