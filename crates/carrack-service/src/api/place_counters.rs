//! What is counted by places: sums of the minutes since the first scrape. How many pairs have values of their own is
//! bounded; the rest is added up.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::clock::Moment;
use crate::ledger::tally::OverviewRows;

/// Pairs of places, endpoints and timers that have values of their own.
pub(super) const PLACES_MOST: usize = 200;
/// What stands for all the others.
const OTHERS: &str = "others";

/// What was counted since the first scrape.
#[derive(Default)]
pub(super) struct PlaceMetrics {
    pub(super) sums: Mutex<PlaceSums>,
}

/// Whole minutes, added up.
#[derive(Clone, Default)]
pub(super) struct PlaceSums {
    /// The minutes before this one are in the sums; none: nothing was asked yet.
    pub(super) until: Option<Moment>,
    /// Bytes, by source and destination.
    pub(super) bytes: BTreeMap<(String, String), u64>,
    /// Tasks that ended, by source, destination and state.
    pub(super) ended: BTreeMap<(String, String, &'static str), u64>,
    /// Failures, by side and code.
    pub(super) failures: BTreeMap<(String, String), u64>,
}

impl PlaceSums {
    /// Adds what happened in a time.
    pub(super) fn add(&mut self, rows: &OverviewRows) {
        for pair in &rows.pairs {
            let key = (pair.source.clone(), pair.destination.clone());
            let key = if self.bytes.contains_key(&key) || self.bytes.len() < PLACES_MOST {
                key
            } else {
                (OTHERS.to_owned(), OTHERS.to_owned())
            };
            *self.bytes.entry(key.clone()).or_default() += pair.bytes;
            let states = [
                ("SUCCEEDED", pair.succeeded),
                ("PARTIAL", pair.partial),
                ("FAILED", pair.failed),
                ("CANCELLED", pair.cancelled),
            ];
            for (state, tasks) in states {
                *self.ended.entry((key.0.clone(), key.1.clone(), state)).or_default() += tasks;
            }
        }
        for failure in &rows.failures {
            // Codes and sides are words of the program's own.
            *self.failures.entry((failure.side.clone(), failure.code.clone())).or_default() += failure.count;
        }
    }
}

/// Labels with their values in quotes.
pub(super) fn labels(pairs: &[(&str, &str)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let one = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
    pairs.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PairFigures;

    #[test]
    fn pairs_beyond_the_bound_are_added_up_and_no_value_is_lost() {
        let pair = |number: usize| PairFigures {
            source: format!("@s{number}"),
            destination: "@d".into(),
            bytes: 1,
            failed: 1,
            ..PairFigures::default()
        };
        let rows = OverviewRows { pairs: (0..PLACES_MOST + 50).map(pair).collect(), ..OverviewRows::default() };
        let mut sums = PlaceSums::default();
        sums.add(&rows);
        sums.add(&rows);
        assert_eq!(sums.bytes.len(), PLACES_MOST + 1);
        assert_eq!(sums.bytes.values().sum::<u64>(), 2 * (PLACES_MOST as u64 + 50));
        assert_eq!(sums.bytes[&("@s0".to_owned(), "@d".to_owned())], 2);
        assert_eq!(sums.bytes[&(OTHERS.to_owned(), OTHERS.to_owned())], 100);
        let failed: u64 =
            sums.ended.iter().filter(|((_, _, state), _)| *state == "FAILED").map(|(_, tasks)| tasks).sum();
        assert_eq!(failed, 2 * (PLACES_MOST as u64 + 50));
    }

    #[test]
    fn label_that_a_user_chose_cannot_end_its_quotes() {
        assert_eq!(labels(&[("label", "a\"b\\c\nd"), ("timer", "t")]), "label=\"a\\\"b\\\\c\\nd\",timer=\"t\"");
    }
}
