//! Faults of tasks by the places at which they come, and the places where they come in bursts. Pure.
//!
//! A task is one trial at each place at which it was at work: it has a fault there, or none, however many items failed.
//! So a task with a million bad items weighs as much as any other, and what is counted is as independent as tasks are.
//! A place is compared with all tasks of the same time that were not there, by Fisher's exact test (`tail`), over the
//! whole time and over its halves, quarters and so on, down to an hour (`scan`). Every comparison of a place with the
//! rest is counted, and the chance of a finding is multiplied by that number (Bonferroni): where all places are alike,
//! one look in a thousand names any. What is only up to twice as likely to fail as the rest is not named either.

mod places;
mod scan;
mod tail;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::places::{MetPlace, NumberedPlaces, places_of, places_of_task};
use self::scan::{FoundBurst, Scan, TaskTrial};
use crate::clock::Moment;
use crate::ledger::{TaskVisits, VisitedTasks, VisitsMost};
use crate::model::{FaultBurst, FaultCode, FaultFigures, FaultPlace, FaultStatistics, PlaceKind};

/// What is read of tasks that are counted; of more, the latest. An ordinary task has some 600 bytes.
pub const VISITS_MOST: VisitsMost = VisitsMost { tasks: 100_000, bytes: 64 << 20 };
/// What is kept of them.
const KEPT_MOST: KeptMost = KeptMost { place_bytes: 32 << 20, stays: 4_000_000 };
/// Places with faults that are told.
const PLACES_MOST: usize = 50;
/// Tasks that are named of each burst.
const EXAMPLES_MOST: usize = 5;
/// Places with the same tasks that are named.
const ALIKE_MOST: usize = 8;

/// What is kept of tasks that are counted.
#[derive(Clone, Copy, Debug)]
struct KeptMost {
    /// Bytes of directories, and as many of other places. Places that come when they are full are left out.
    place_bytes: usize,
    /// Places of tasks, each counted once for each task that was there. Of more, those of the latest tasks.
    stays: usize,
}

/// Tasks at their places.
struct CountedTasks<'a> {
    rows: Vec<&'a TaskVisits>,
    trials: Vec<TaskTrial>,
    places: Vec<MetPlace>,
    codes: BTreeMap<String, u64>,
    /// Nothing was left out.
    complete: bool,
}

impl<'a> CountedTasks<'a> {
    /// Of these tasks, the latest first.
    fn of(tasks: impl Iterator<Item = &'a TaskVisits>, most: KeptMost) -> Self {
        let (mut numbered, mut stays) = (NumberedPlaces::within(most.place_bytes), 0);
        let mut counted =
            Self { rows: Vec::new(), trials: Vec::new(), places: Vec::new(), codes: BTreeMap::new(), complete: true };
        for (row, task) in (0..).zip(tasks) {
            let met = places_of_task(&task.visits);
            stays += met.len();
            if stays > most.stays {
                counted.complete = false;
                break;
            }
            let mut trial = TaskTrial { row, time: task.time, places: Vec::new(), faulty: Vec::new() };
            let mut failed: BTreeSet<String> = BTreeSet::new();
            for (place, faults) in met {
                if let Some(number) = numbered.number(place) {
                    trial.places.push(number);
                    trial.faulty.extend((!faults.is_empty()).then_some(number));
                }
                failed.extend(faults);
            }
            failed.into_iter().for_each(|code| *counted.codes.entry(code).or_default() += 1);
            counted.rows.push(task);
            counted.trials.push(trial);
        }
        counted.complete &= numbered.has_all();
        counted.places = numbered.into_places();
        counted
    }
}

/// Counts the faults of tasks between two moments. `found` is at most [`VISITS_MOST`] of them.
pub fn statistics(found: &VisitedTasks, from: Moment, to: Moment) -> FaultStatistics {
    statistics_within(KEPT_MOST, found, from, to)
}

fn statistics_within(most: KeptMost, found: &VisitedTasks, from: Moment, to: Moment) -> FaultStatistics {
    let between = found.tasks.iter().filter(|task| task.time >= from && task.time < to);
    let CountedTasks { rows: counted, trials, places, codes, complete } = CountedTasks::of(between, most);
    if !complete {
        let (tasks, places) = (counted.len(), places.len());
        tracing::info!(target: "carrack::faults", tasks, places, "more tasks or places than are counted");
    }
    let ranks = places.iter().map(MetPlace::rank).collect();
    let faulty = trials.iter().filter(|trial| !trial.faulty.is_empty()).count();
    let figures = figures(&places, &trials, &counted);
    let mut scan = Scan::new(trials, ranks, (from, to));
    let teller = PlaceTeller { counted: &counted, places: &places };
    let bursts = std::iter::from_fn(|| scan.next_burst()).map(|found| teller.burst(&found)).collect();
    FaultStatistics {
        from,
        to,
        tasks: counted.len() as u64,
        faulty: faulty as u64,
        complete: complete && found.complete,
        comparisons: scan.comparisons(),
        codes: most_frequent(codes),
        bursts,
        places: figures,
    }
}

fn most_frequent(codes: BTreeMap<String, u64>) -> Vec<FaultCode> {
    let mut codes: Vec<_> = codes.into_iter().map(|(code, tasks)| FaultCode { code, tasks }).collect();
    codes.sort_by_key(|code| std::cmp::Reverse(code.tasks));
    codes
}

/// Places with faults. Of a directory and one below it with as many faults, only the latter is told.
fn figures(places: &[MetPlace], trials: &[TaskTrial], counted: &[&TaskVisits]) -> Vec<FaultFigures> {
    let mut counts = vec![(0u64, 0u64); places.len()];
    for trial in trials {
        trial.places.iter().for_each(|place| counts[*place as usize].0 += 1);
        trial.faulty.iter().for_each(|place| counts[*place as usize].1 += 1);
    }
    let by_place: BTreeMap<&MetPlace, u64> = places.iter().zip(counts.iter().map(|(_, faulty)| *faulty)).collect();
    let is_told_below = |place: &MetPlace, faulty: u64| {
        let MetPlace::Path(host, path) = place else { return false };
        let below = [path, &b"/"[..]].concat();
        let is_below =
            |next: &MetPlace| matches!(next, MetPlace::Path(of, next) if of == host && next.starts_with(&below));
        let from = MetPlace::Path(host.clone(), below.clone());
        let behind = by_place.range::<MetPlace, _>(&from..).take_while(|(next, _)| is_below(next));
        behind.into_iter().any(|(_, count)| *count == faulty)
    };
    let told = places.iter().zip(&counts).filter(|(place, (_, faulty))| *faulty > 0 && !is_told_below(place, *faulty));
    let mut told: Vec<(&MetPlace, u64, u64)> = told.map(|(place, (tasks, faulty))| (place, *tasks, *faulty)).collect();
    told.sort_by_key(|(place, tasks, faulty)| (std::cmp::Reverse(*faulty), *tasks, std::cmp::Reverse(place.rank())));
    told.truncate(PLACES_MOST);
    let rows: Vec<u32> = (0..).take(counted.len()).collect();
    let teller = PlaceTeller { counted, places };
    told.into_iter()
        .map(|(place, tasks, faulty)| FaultFigures { place: teller.told(place, &rows), tasks, faulty })
        .collect()
}

/// Tells places in words that people know.
struct PlaceTeller<'a> {
    counted: &'a [&'a TaskVisits],
    places: &'a [MetPlace],
}

impl PlaceTeller<'_> {
    /// A place; of a disk also the directory that is common to all that these tasks did there.
    fn told(&self, place: &MetPlace, rows: &[u32]) -> FaultPlace {
        let told = place.told();
        if told.kind != PlaceKind::Disk {
            return told;
        }
        let visits = rows.iter().flat_map(|row| &self.counted[*row as usize].visits);
        let on_it = visits.filter(|visit| visit.host == told.host && visit.disk == told.disk);
        let common = on_it.map(|visit| &visit.directory[..]).reduce(common_directory);
        FaultPlace { path: common.filter(|path| !path.is_empty()).map(carrack_core::location::encode_path), ..told }
    }

    fn burst(&self, found: &FoundBurst) -> FaultBurst {
        let place = &self.places[found.place as usize];
        let mut codes: BTreeMap<String, u64> = BTreeMap::new();
        let mut endpoints: BTreeSet<String> = BTreeSet::new();
        for row in &found.faulty {
            for (at, failed) in places_of_task(&self.counted[*row as usize].visits) {
                if at == *place {
                    failed.into_iter().for_each(|code| *codes.entry(code).or_default() += 1);
                }
            }
            for visit in &self.counted[*row as usize].visits {
                let is_there = match place {
                    MetPlace::Link(one, other) => visit.host == *one || visit.host == *other,
                    place => places_of(visit).iter().any(|(at, _)| at == place),
                };
                endpoints.extend(visit.endpoint.clone().filter(|_| is_there));
            }
        }
        let times = || found.faulty.iter().map(|row| self.counted[*row as usize].time);
        let mut latest: Vec<u32> = found.faulty.clone();
        latest.sort_by_key(|row| std::cmp::Reverse(self.counted[*row as usize].time));
        let alike = found.alike.iter().take(ALIKE_MOST).map(|place| &self.places[*place as usize]);
        FaultBurst {
            place: self.told(place, &found.rows),
            alike: alike.map(|place| self.told(place, &found.rows)).collect(),
            endpoints: endpoints.into_iter().collect(),
            from: times().min().unwrap_or_default(),
            to: times().max().unwrap_or_default(),
            tasks: found.table.tasks as u64,
            faulty: found.table.faulty as u64,
            tasks_elsewhere: found.table.tasks_elsewhere as u64,
            faulty_elsewhere: found.table.faulty_elsewhere as u64,
            codes: most_frequent(codes),
            chance: found.ln_chance.exp(),
            examples: latest.iter().take(EXAMPLES_MOST).map(|row| self.counted[*row as usize].task.clone()).collect(),
        }
    }
}

/// The directory that two are in.
fn common_directory<'a>(one: &'a [u8], other: &'a [u8]) -> &'a [u8] {
    let mut path = one;
    while !(other.starts_with(path) && (other.len() == path.len() || other[path.len()..].starts_with(b"/"))) {
        let shorter = crate::model::parent(path);
        if shorter.is_empty() {
            return if one.starts_with(b"/") { b"/" } else { b"" };
        }
        path = shorter;
    }
    path
}
