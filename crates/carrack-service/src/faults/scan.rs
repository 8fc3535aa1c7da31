//! Looks for places and times at which tasks fail far more often than elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::tail::{Factorials, FaultTable};
use crate::clock::Moment;

/// Where all places are alike, so many looks name any place.
const FALSE_ALARMS: f64 = 0.001;
/// What is up to so many times as likely to fail as the rest, in odds, is not far from it.
const FAR: f64 = 2.0;
/// No shorter time is looked at, in microseconds.
const SHORTEST: i64 = 3_600_000_000;
/// Bursts that are named; where there are more, the clearest.
const BURSTS_MOST: usize = 50;

/// A task at its places.
#[derive(Clone, Debug)]
pub struct TaskTrial {
    /// Whose.
    pub row: u32,
    /// When it ended.
    pub time: Moment,
    /// Numbers of the places at which it was at work, each once.
    pub places: Vec<u32>,
    /// Those of them at which it had a fault.
    pub faulty: Vec<u32>,
}

/// A place where tasks fail far more often than elsewhere.
#[derive(Debug)]
pub struct FoundBurst {
    /// The place.
    pub place: u32,
    /// Places with the same tasks.
    pub alike: Vec<u32>,
    /// Tasks there and elsewhere, within the time that stands out.
    pub table: FaultTable,
    /// The logarithm of the chance that chance alone names any place so.
    pub ln_chance: f64,
    /// Tasks there, within that time.
    pub rows: Vec<u32>,
    /// Those of them with a fault there.
    pub faulty: Vec<u32>,
}

/// A scan of tasks.
pub struct Scan {
    /// By time; those that a finding explains are gone.
    trials: Vec<TaskTrial>,
    ranks: Vec<usize>,
    period: (Moment, Moment),
    factorials: Factorials,
    comparisons: u64,
    found: usize,
}

/// PlaceCounts of one place in one time.
#[derive(Clone, Copy, Default)]
struct PlaceCounts {
    tasks: usize,
    faulty: usize,
    /// Tasks there with a fault anywhere.
    faulty_anywhere: usize,
}

/// A place in a time.
#[derive(Clone)]
struct PlaceInTime {
    place: u32,
    range: Range<usize>,
    table: FaultTable,
    ln_tail: f64,
}

impl Scan {
    /// Of tasks within a period.
    pub fn new(mut trials: Vec<TaskTrial>, ranks: Vec<usize>, period: (Moment, Moment)) -> Self {
        trials.sort_by_key(|trial| trial.time);
        let factorials = Factorials::up_to(trials.len());
        let mut scan = Self { trials, ranks, period, factorials, comparisons: 0, found: 0 };
        scan.comparisons = scan.count_comparisons();
        // What has no fault is compared, and never named.
        let with_faults: BTreeSet<u32> = scan.trials.iter().flat_map(|trial| &trial.faulty).copied().collect();
        scan.trials.iter_mut().for_each(|trial| trial.places.retain(|place| with_faults.contains(place)));
        scan
    }

    /// How many times a place is compared with the rest.
    pub fn comparisons(&self) -> u64 {
        self.comparisons
    }

    /// The next burst, the clearest first. What it explains does not count any more.
    pub fn next_burst(&mut self) -> Option<FoundBurst> {
        if self.found == BURSTS_MOST {
            return None;
        }
        let clearest = self.clearest()?;
        let PlaceInTime { place, range, table, ln_tail } = self.narrowed(clearest);
        let inside = &self.trials[range.clone()];
        let there: Vec<&TaskTrial> = inside.iter().filter(|trial| trial.places.contains(&place)).collect();
        let counts = self.counts(range.clone());
        let mut alike: Vec<u32> =
            counts.iter().filter(|(_, found)| found.tasks == table.tasks).map(|(place, _)| *place).collect();
        alike.retain(|other| *other != place && there.iter().all(|trial| trial.places.contains(other)));
        alike.sort_by_key(|place| std::cmp::Reverse(self.ranks[*place as usize]));
        let found = FoundBurst {
            place,
            alike,
            table,
            ln_chance: ln_tail + self.ln_comparisons(),
            rows: there.iter().map(|trial| trial.row).collect(),
            faulty: there.iter().filter(|trial| trial.faulty.contains(&place)).map(|trial| trial.row).collect(),
        };
        self.trials.retain(|trial| !trial.places.contains(&place));
        self.found += 1;
        Some(found)
    }

    fn ln_comparisons(&self) -> f64 {
        (self.comparisons.max(1) as f64).ln()
    }

    fn count_comparisons(&self) -> u64 {
        let mut last_seen = vec![usize::MAX; self.ranks.len()];
        let mut count = 0;
        for (number, range) in self.times().into_iter().enumerate() {
            for place in self.trials[range].iter().flat_map(|trial| &trial.places) {
                if last_seen[*place as usize] != number {
                    last_seen[*place as usize] = number;
                    count += 1;
                }
            }
        }
        count
    }

    /// The whole period, its halves, quarters and so on, and as long ones that begin in the middle of these: each with
    /// other tasks in it.
    fn times(&self) -> Vec<Range<usize>> {
        let (from, to) = (self.period.0.0, self.period.1.0);
        let mut times: BTreeSet<(usize, usize)> = BTreeSet::from([(0, self.trials.len())]);
        let mut length = to.saturating_sub(from) / 2;
        while length >= SHORTEST {
            let mut begin = from;
            while begin < to {
                let at = |time: i64| self.trials.partition_point(|trial| trial.time.0 < time);
                times.insert((at(begin), at(begin.saturating_add(length))));
                begin += length / 2;
            }
            length /= 2;
        }
        times.into_iter().filter(|(from, to)| to > from).map(|(from, to)| from..to).collect()
    }

    fn counts(&self, range: Range<usize>) -> BTreeMap<u32, PlaceCounts> {
        let mut counts: BTreeMap<u32, PlaceCounts> = BTreeMap::new();
        for trial in &self.trials[range] {
            for place in &trial.places {
                let count = counts.entry(*place).or_default();
                count.tasks += 1;
                count.faulty_anywhere += usize::from(!trial.faulty.is_empty());
            }
            for place in &trial.faulty {
                counts.entry(*place).or_default().faulty += 1;
            }
        }
        counts
    }

    /// The candidate that chance explains least, if it is clear enough.
    fn clearest(&self) -> Option<PlaceInTime> {
        let mut best: Option<PlaceInTime> = None;
        for range in self.times() {
            let inside = &self.trials[range.clone()];
            let faulty = inside.iter().filter(|trial| !trial.faulty.is_empty()).count();
            if faulty < 2 {
                continue;
            }
            for (place, counts) in self.counts(range.clone()) {
                let table = FaultTable {
                    tasks: counts.tasks,
                    faulty: counts.faulty,
                    tasks_elsewhere: inside.len() - counts.tasks,
                    faulty_elsewhere: faulty - counts.faulty_anywhere,
                };
                if !is_more(table) {
                    continue;
                }
                let ln_tail = self.factorials.ln_tail(table, 1.0);
                let is_better = best.as_ref().is_none_or(|best| {
                    let outranks = self.ranks[place as usize] > self.ranks[best.place as usize];
                    ln_tail < best.ln_tail || (ln_tail <= best.ln_tail && outranks)
                });
                if is_better && self.is_clear(table) {
                    best = Some(PlaceInTime { place, range: range.clone(), table, ln_tail });
                }
            }
        }
        best
    }

    /// Whether chance does not explain it, nor a place that is only up to [`FAR`] times as likely to fail.
    fn is_clear(&self, table: FaultTable) -> bool {
        is_more(table) && self.factorials.ln_tail(table, FAR) + self.ln_comparisons() < FALSE_ALARMS.ln()
    }

    /// A place that stands out only by a part of it is left for that part.
    fn narrowed(&self, mut candidate: PlaceInTime) -> PlaceInTime {
        loop {
            let whole = &candidate;
            let there: Vec<&TaskTrial> =
                self.trials[whole.range.clone()].iter().filter(|trial| trial.places.contains(&whole.place)).collect();
            let mut parts: BTreeMap<u32, PlaceCounts> = BTreeMap::new();
            for trial in &there {
                for place in &trial.places {
                    let count = parts.entry(*place).or_default();
                    count.tasks += 1;
                    count.faulty_anywhere += usize::from(trial.faulty.contains(&whole.place));
                    count.faulty += usize::from(trial.faulty.contains(place));
                }
            }
            let all = self.counts(whole.range.clone());
            let inside = &self.trials[whole.range.clone()];
            let faulty = inside.iter().filter(|trial| !trial.faulty.is_empty()).count();
            let clear = parts.into_iter().filter_map(|(place, part)| {
                let in_all = all.get(&place)?;
                // Only what lies within the place.
                if in_all.tasks != part.tasks || part.tasks == there.len() {
                    return None;
                }
                let within = FaultTable {
                    tasks: part.tasks,
                    faulty: part.faulty,
                    tasks_elsewhere: there.len() - part.tasks,
                    faulty_elsewhere: whole.table.faulty.saturating_sub(part.faulty_anywhere),
                };
                let table = FaultTable {
                    tasks: part.tasks,
                    faulty: part.faulty,
                    tasks_elsewhere: inside.len() - part.tasks,
                    faulty_elsewhere: faulty - in_all.faulty_anywhere,
                };
                let is_part = self.is_clear(within) && self.is_clear(table);
                is_part.then(|| {
                    let ln_tail = self.factorials.ln_tail(table, 1.0);
                    (
                        self.factorials.ln_tail(within, 1.0),
                        PlaceInTime { place, table, ln_tail, range: whole.range.clone() },
                    )
                })
            });
            let clearest = clear.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, candidate)| candidate);
            match clearest {
                Some(part) => candidate = part,
                None => return candidate,
            }
        }
    }
}

/// Whether tasks fail more often at the place than elsewhere, and there is an elsewhere.
fn is_more(table: FaultTable) -> bool {
    let FaultTable { tasks, faulty, tasks_elsewhere, faulty_elsewhere } = table;
    tasks_elsewhere > 0 && faulty > 1 && faulty * tasks_elsewhere > faulty_elsewhere * tasks
}
