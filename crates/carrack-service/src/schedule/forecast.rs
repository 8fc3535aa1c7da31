//! When tasks that wait are expected to begin: what runs ends when it says, what follows takes as long as its link did
//! before, and each takes a worker and a place at each endpoint with a limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::view::{Entry, Stands, View, endpoints};

/// Times at which places become free; [`NEVER`] where that cannot be told.
type Places = BinaryHeap<Reverse<Duration>>;

const NEVER: Duration = Duration::MAX;

/// For each of the tasks that wait, in their order, the time until it begins.
pub(super) fn starts(view: &View<'_>, running: &[&Entry], waiting: &[&Entry]) -> Vec<Option<Duration>> {
    let mut workers = Places::new();
    let mut limited: BTreeMap<&str, Places> = BTreeMap::new();
    for (name, state) in view.endpoints {
        if state.transfers.is_some() {
            limited.insert(name, Places::new());
        }
    }
    for entry in running {
        let ends = match entry.stands {
            Stands::Running { leaves: true, .. } => Duration::ZERO,
            Stands::Running { remaining, .. } => remaining.unwrap_or(NEVER),
            // It is about to start.
            _ => usual_time(view, entry).unwrap_or(NEVER),
        };
        workers.push(Reverse(ends));
        for endpoint in endpoints(entry) {
            limited.entry(endpoint).and_modify(|places| places.push(Reverse(ends)));
        }
    }
    fill(&mut workers, view.rules.workers);
    for (name, places) in &mut limited {
        fill(places, view.endpoints.get(*name).and_then(|state| state.transfers).unwrap_or(0));
    }
    let mut starts = Vec::with_capacity(waiting.len());
    for entry in waiting {
        let mut begins = workers.pop().map_or(NEVER, |Reverse(free)| free);
        for endpoint in endpoints(entry) {
            if let Some(places) = limited.get_mut(endpoint) {
                begins = begins.max(places.pop().map_or(NEVER, |Reverse(free)| free));
            }
        }
        let ends = usual_time(view, entry).and_then(|time| begins.checked_add(time)).unwrap_or(NEVER);
        workers.push(Reverse(ends));
        for endpoint in endpoints(entry) {
            limited.entry(endpoint).and_modify(|places| places.push(Reverse(ends)));
        }
        starts.push((begins < NEVER).then_some(begins));
    }
    starts
}

/// Adds places that are free now, up to so many in all.
fn fill(places: &mut Places, count: u32) {
    for _ in places.len()..count as usize {
        places.push(Reverse(Duration::ZERO));
    }
}

/// How long a task takes: all its links, one after the other.
fn usual_time(view: &View<'_>, entry: &Entry) -> Option<Duration> {
    entry.links.iter().map(|link| view.history.usual_time(link)).sum()
}
