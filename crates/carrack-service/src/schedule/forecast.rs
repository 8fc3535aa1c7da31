//! When tasks begin that wait, and one that comes next: what runs ends when it says, what follows takes as long as its
//! link did before, and each takes a worker and a place at each endpoint and link with a limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::link::Link;
use super::view::{Entry, Free, NextStart, Stands, View, endpoints};

/// Times at which places become free; [`NEVER`] where that cannot be told.
type Places = BinaryHeap<Reverse<Duration>>;

const NEVER: Duration = Duration::MAX;

/// For each of the tasks that wait, in their order, the time until it begins.
pub(super) fn starts(view: &View<'_>, running: &[&Entry], waiting: &[&Entry]) -> Vec<Option<Duration>> {
    let ends = |entry: &Entry| match entry.stands {
        Stands::Running { leaves: true, .. } => Duration::ZERO,
        Stands::Running { remaining, .. } => remaining.unwrap_or(NEVER),
        // It is about to start.
        _ => usual_time(view, entry).unwrap_or(NEVER),
    };
    let mut taken = Taken::new(view, running, waiting, view.rules.workers, ends);
    let begins = waiting.iter().map(|entry| taken.take(entry, |entry| usual_time(view, entry).unwrap_or(NEVER)));
    begins.map(|begins| (begins < NEVER).then_some(begins)).collect()
}

/// When a task can begin that comes next: before all that wait at the earliest, behind all of them at the latest.
pub(super) fn next_start(view: &View<'_>, running: &[&Entry], waiting: &[&Entry]) -> NextStart {
    if view.rules.maintenance.is_some() {
        let never = Free { worker: NEVER, ..Free::default() };
        return NextStart { earliest: never.clone(), latest: never };
    }
    // Of the workers, some are kept for owners who run nothing.
    let workers = view.rules.workers;
    let mut earliest = Taken::new(view, running, waiting, workers, soonest).free();
    let mut behind = Taken::new(view, running, waiting, workers.saturating_sub(view.rules.reserve()), last);
    for entry in waiting {
        behind.take(entry, last);
    }
    let mut latest = behind.free();
    for (name, state) in view.endpoints {
        if let Some(closed) = state.drained.as_ref().map(|_| NEVER).or(state.closed_for) {
            for free in [&mut earliest, &mut latest] {
                let opens = free.endpoints.entry(name.clone()).or_default();
                *opens = closed.max(*opens);
            }
        }
    }
    // A link that carries nothing is tried again, and may go on to carry nothing.
    for (link, (next_try, _)) in view.sick {
        earliest.links.insert(link.clone(), *next_try);
        latest.links.insert(link.clone(), NEVER);
    }
    NextStart { earliest, latest }
}

/// The shortest time until a task ends, counted from its begin where it waits.
fn soonest(entry: &Entry) -> Duration {
    let least = entry.takes.map(|range| range.least).unwrap_or_default();
    match entry.stands {
        Stands::Running { leaves: true, .. } => Duration::ZERO,
        Stands::Running { ran, remaining, .. } => least.saturating_sub(ran).min(remaining.unwrap_or(NEVER)),
        _ => least,
    }
}

/// The longest time until a task ends, counted from its begin where it waits.
fn last(entry: &Entry) -> Duration {
    let most = entry.takes.map_or(NEVER, |range| range.most);
    match entry.stands {
        Stands::Running { leaves: true, .. } => Duration::ZERO,
        // It takes longer than was expected.
        Stands::Running { ran, remaining, .. } if ran >= most => {
            remaining.filter(|left| !left.is_zero()).unwrap_or(NEVER)
        }
        Stands::Running { ran, remaining, .. } => match most {
            NEVER => remaining.unwrap_or(NEVER),
            most => most.saturating_sub(ran).max(remaining.unwrap_or_default()),
        },
        _ => most,
    }
}

/// Workers and places that tasks take, one after the other.
struct Taken<'a> {
    workers: Places,
    endpoints: BTreeMap<&'a str, Places>,
    links: BTreeMap<&'a Link, Places>,
}

impl<'a> Taken<'a> {
    /// What is taken by what runs, which ends so.
    fn new(
        view: &View<'a>,
        running: &[&'a Entry],
        waiting: &[&'a Entry],
        workers: u32,
        ends: impl Fn(&Entry) -> Duration,
    ) -> Self {
        let limit = |name: &str| view.endpoints.get(name).and_then(|state| state.transfers);
        let limited = view.endpoints.iter().filter(|(_, state)| state.transfers.is_some());
        let links = running.iter().chain(waiting).flat_map(|entry| &entry.links);
        let mut taken = Self {
            workers: Places::new(),
            endpoints: limited.map(|(name, _)| (name.as_str(), Places::new())).collect(),
            links: links.map(|link| (link, Places::new())).collect(),
        };
        for entry in running {
            taken.give(entry, ends(entry));
        }
        fill(&mut taken.workers, workers);
        for (name, places) in &mut taken.endpoints {
            fill(places, limit(name).unwrap_or(0));
        }
        for places in taken.links.values_mut() {
            fill(places, view.rules.per_link);
        }
        taken
    }

    /// The time until a task begins, which then runs for so long.
    fn take(&mut self, entry: &Entry, runs: impl Fn(&Entry) -> Duration) -> Duration {
        let first = |places: &mut Places| places.pop().map_or(NEVER, |Reverse(free)| free);
        let mut begins = first(&mut self.workers);
        for endpoint in endpoints(entry) {
            begins = self.endpoints.get_mut(endpoint).map(first).unwrap_or_default().max(begins);
        }
        for link in &entry.links {
            begins = self.links.get_mut(link).map(first).unwrap_or_default().max(begins);
        }
        self.give(entry, begins.saturating_add(runs(entry)));
        begins
    }

    /// Its places become free at this time.
    fn give(&mut self, entry: &Entry, ends: Duration) {
        self.workers.push(Reverse(ends));
        for endpoint in endpoints(entry) {
            if let Some(places) = self.endpoints.get_mut(endpoint) {
                places.push(Reverse(ends));
            }
        }
        for link in &entry.links {
            if let Some(places) = self.links.get_mut(link) {
                places.push(Reverse(ends));
            }
        }
    }

    /// When the first place of each kind is free.
    fn free(self) -> Free {
        let first = |places: &Places| places.peek().map_or(NEVER, |Reverse(free)| *free);
        Free {
            worker: first(&self.workers),
            endpoints: self.endpoints.iter().map(|(name, places)| ((*name).to_owned(), first(places))).collect(),
            links: self.links.iter().map(|(link, places)| ((*link).clone(), first(places))).collect(),
        }
    }
}

/// Adds places that are free now, up to so many in all. Where more are held, the first that become free stay empty.
fn fill(places: &mut Places, count: u32) {
    while places.len() > count as usize {
        places.pop();
    }
    for _ in places.len()..count as usize {
        places.push(Reverse(Duration::ZERO));
    }
}

/// How long a task takes: all its links, one after the other.
fn usual_time(view: &View<'_>, entry: &Entry) -> Option<Duration> {
    entry.links.iter().map(|link| view.history.usual_time(link)).sum()
}
