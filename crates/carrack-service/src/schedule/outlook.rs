//! What the scheduler expects, for whoever asks: places in the queue are in memory only, because they change with every
//! task that begins.

use carrack_engine::sync::unpoisoned;
use std::collections::HashMap;
use std::sync::RwLock;
use std::time::Duration;

use super::estimate::{RUNS_LEAST, Range, Size};
use super::history::History;
use super::link::Link;
use super::view::{NextStart, Place};
use crate::clock::Moment;
use crate::model::{Blocked, BlockedCause, Estimate, Task, TaskState};

/// What is known of the tasks that wait, as of the last plan. Shared with the API.
#[derive(Debug, Default)]
pub struct Outlook {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    places: HashMap<String, Waiting>,
    history: History,
    queued: u64,
    /// When a task that comes next can begin, counted from the last plan.
    next: NextStart,
    planned: Moment,
}

#[derive(Debug)]
struct Waiting {
    position: Option<u64>,
    expected_start: Option<Moment>,
    blocked: Blocked,
}

/// What a task may expect that is not submitted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promise {
    /// Tasks that wait at present.
    pub queued: u64,
    /// How long a task of this size takes. None: the size, or too many of its pairs, are not known.
    pub time: Option<Range>,
    /// Tasks that are known of the pair that is known least.
    pub known: usize,
    /// When it begins at the earliest. None: that cannot be told.
    pub earliest_start: Option<Moment>,
    /// When it begins at the latest, if no task that comes later goes before it. None: that cannot be told.
    pub latest_start: Option<Moment>,
    /// Bytes a second that tasks of the same pair moved.
    pub usual_rate: Option<f64>,
}

impl Promise {
    /// The promise as it is told and kept, for a task of this size.
    pub fn estimate(&self, size: Option<Size>, now: Moment) -> Estimate {
        let seconds = |time: Duration| time.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX);
        Estimate {
            made: now,
            bytes: size.map(|size| size.bytes),
            items: size.map(|size| size.items),
            earliest_start: self.earliest_start,
            latest_start: self.latest_start,
            seconds_least: self.time.map(|time| time.least.as_secs()),
            seconds_most: self.time.map(|time| seconds(time.most)),
            why: self.why(size),
            took_seconds: None,
        }
    }

    /// From what it is known, or why it is not.
    fn why(&self, size: Option<Size>) -> String {
        let waiting = match self.queued {
            0 => "no task waits at present".to_owned(),
            1 => "one task waits at present".to_owned(),
            count => format!("{count} tasks wait at present"),
        };
        let known = match self.known {
            0 => "no task between these endpoints has succeeded so far".to_owned(),
            1 => "one task between these endpoints has succeeded".to_owned(),
            count => format!("the last {count} tasks between these endpoints succeeded"),
        };
        match (self.time, size) {
            (Some(_), _) => format!("by the last {} tasks between these endpoints; {waiting}", self.known),
            (None, Some(_)) => format!("{known}: from {RUNS_LEAST} on the time can be told; {waiting}"),
            (None, None) => format!("{known}; how much there is to move was not said; {waiting}"),
        }
    }
}

impl Outlook {
    /// Puts its place, and why it waits, on a task that is QUEUED. What the ledger says (another attempt, a
    /// confirmation) goes before what the scheduler says.
    pub fn apply(&self, task: &mut Task) {
        if task.state != TaskState::Queued {
            return;
        }
        let inner = unpoisoned(self.inner.read());
        if let Some(place) = inner.places.get(&task.id) {
            task.position = place.position;
            task.expected_start = place.expected_start;
            if task.blocked.is_none() || place.blocked.cause != BlockedCause::Retry {
                task.blocked = Some(place.blocked.clone());
            }
        }
    }

    /// What a task of this size may expect, by what its links did before.
    pub fn promise(&self, links: &[Link], size: Option<Size>, now: Moment) -> Promise {
        let inner = unpoisoned(self.inner.read());
        let count = links.len().max(1) as u64;
        let time = size.filter(|_| !links.is_empty()).and_then(|Size { bytes, items }| {
            let share = Size { bytes: bytes / count, items: items.div_ceil(count) };
            links.iter().try_fold(Range::default(), |sum, link| {
                let Range { least, most } = inner.history.range(link, share)?;
                Some(Range { least: sum.least.saturating_add(least), most: sum.most.saturating_add(most) })
            })
        });
        let known = links.iter().map(|link| inner.history.known(link)).min().unwrap_or(0);
        let start = |wait: Duration| inner.planned.after(wait).max(now);
        let earliest_start = inner.next.earliest.begins(links).map(start);
        let latest_start = inner.next.latest.begins(links).map(start);
        let rates: Option<Vec<f64>> = links.iter().map(|link| inner.history.usual_rate(link)).collect();
        let usual_rate =
            rates.filter(|rates| !rates.is_empty()).map(|rates| rates.iter().sum::<f64>() / rates.len() as f64);
        Promise { queued: inner.queued, time, known, earliest_start, latest_start, usual_rate }
    }

    /// Takes over a plan. Since when a task waits for the same thing is kept. Tasks that wait for something else than
    /// before are returned, with what it is.
    pub fn update(&self, places: &[Place], next: NextStart, now: Moment) -> Vec<(String, Blocked)> {
        let mut changed = Vec::new();
        let mut inner = unpoisoned(self.inner.write());
        let mut before = std::mem::take(&mut inner.places);
        for place in places {
            let earlier = before.remove(&place.task).filter(|earlier| earlier.blocked.cause == place.cause);
            let blocked = Blocked {
                cause: place.cause,
                why: place.why.clone(),
                since: earlier.as_ref().map_or(now, |earlier| earlier.blocked.since),
                next_try: place.next_try.map(|wait| now.after(wait)),
                hint: hint(place.cause),
            };
            if earlier.is_none() {
                changed.push((place.task.clone(), blocked.clone()));
            }
            let expected_start = place.starts_in.map(|wait| now.after(wait));
            inner.places.insert(place.task.clone(), Waiting { position: place.position, expected_start, blocked });
        }
        inner.queued = places.len() as u64;
        (inner.next, inner.planned) = (next, now);
        changed
    }

    /// Takes over what links did.
    pub fn remember(&self, history: &History) {
        unpoisoned(self.inner.write()).history = history.clone();
    }
}

/// What somebody can do about it.
fn hint(cause: BlockedCause) -> Option<String> {
    let hint = match cause {
        BlockedCause::EndpointLimit => "whoever owns the endpoint can raise its limit of transfers",
        BlockedCause::PairLimit => "an admin can raise the limit of transfers between two endpoints",
        BlockedCause::WorkerLimit => {
            "an admin can raise the number of workers; a higher priority goes first among your own tasks"
        }
        BlockedCause::Guard => "look at the plan of the task, then resume or cancel it",
        BlockedCause::Confirm => "look at what the task would move or delete, then resume or cancel it",
        BlockedCause::Retry => "test the endpoints; cancel the task if they do not come back",
        BlockedCause::Timetable => "whoever owns the endpoint can change its timetable",
        BlockedCause::Drained => "whoever owns the endpoint ends that: carrack endpoint edit NAME --undrain",
        BlockedCause::Turn | BlockedCause::Maintenance => return None,
    };
    Some(hint.to_owned())
}
