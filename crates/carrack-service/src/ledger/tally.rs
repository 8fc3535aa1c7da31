//! What tasks have moved and how they ended, minute by minute: counted along with each change of a task, so that what
//! happened over weeks is told without reading every task again. Pure, and the same for every ledger.

use std::collections::BTreeMap;

use super::{NewEvent, endpoint_of};
use crate::clock::Moment;
use crate::model::{EventKind, FailureFigures, PairFigures, Progress, Task, TaskLocation, TaskState};

/// What is counted is counted by minutes.
pub const MINUTE: i64 = 60_000_000;
/// Rows of an answer that has pairs, causes or tasks in it.
pub const PAIRS_MOST: usize = 400;
const CAUSES_MOST: usize = 50;
/// Tasks that moved slowly, and tasks that do not get on, of an answer.
pub const TASKS_MOST: usize = 10;
/// A task that moved fewer bytes was over before it could be fast.
pub const SLOW_BYTES_LEAST: u64 = 1 << 20;
/// A task that has moved nothing for so long after it began does not get on.
pub const STUCK_AFTER: i64 = 2 * MINUTE;
/// Attempts in a row that got nowhere, of a task that does not get on.
pub const STUCK_ATTEMPTS: u32 = 3;

/// Over which time, and of whom, figures are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverviewQuery {
    /// Whose curves and causes; none: everybody's.
    pub curves_of: Option<String>,
    /// Whose pairs and tasks; none: everybody's.
    pub rows_of: Option<String>,
    /// When the first step begins.
    pub from: Moment,
    /// How long each step is, in minutes.
    pub step_minutes: u32,
    /// How many steps there are.
    pub steps: usize,
    /// What time it is.
    pub now: Moment,
}

impl OverviewQuery {
    /// The length of a step in microseconds.
    pub fn step(&self) -> i64 {
        i64::from(self.step_minutes.max(1)) * MINUTE
    }

    /// When the last step ends.
    pub fn to(&self) -> Moment {
        Moment(self.from.0.saturating_add(self.step().saturating_mul(i64::try_from(self.steps).unwrap_or(i64::MAX))))
    }
}

/// Figures, as a ledger tells them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverviewRows {
    /// Bytes by step.
    pub moved: Vec<u64>,
    /// Tasks that waited for their first attempt at the end of each step.
    pub waiting: Vec<u64>,
    /// Tasks that had begun and not ended at the end of each step.
    pub running: Vec<u64>,
    /// The most bytes first.
    pub pairs: Vec<PairFigures>,
    /// The most frequent first.
    pub failures: Vec<FailureFigures>,
    /// The slowest first.
    pub slowest: Vec<Task>,
    /// The oldest first.
    pub stuck: Vec<Task>,
}

/// How far a task was before a change.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    bytes: u64,
    busy: u64,
    has_ended: bool,
}

impl Before {
    /// Before this task is changed.
    pub fn of(task: &Task) -> Self {
        let Progress { bytes_moved, .. } = task.progress;
        Self { bytes: bytes_moved, busy: busy(&task.progress), has_ended: task.state.has_ended() }
    }
}

/// Microseconds in which a worker moved bytes.
fn busy(progress: &Progress) -> u64 {
    let seconds = progress.bytes_moved as f64 / progress.rates.all;
    // A float becomes the nearest integer there is, and zero where it is no number.
    if seconds.is_finite() { (seconds * 1e6) as u64 } else { 0 }
}

/// What one change of a task adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// In which minute.
    pub minute: Moment,
    /// Whose.
    pub owner: String,
    /// From where.
    pub source: String,
    /// To where.
    pub destination: String,
    /// What was counted.
    pub sums: Sums,
    /// Causes of failures: codes and sides.
    pub failures: Vec<(String, String)>,
}

/// Counts between two places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Bytes that came to the destination.
    pub bytes: u64,
    /// Microseconds in which workers moved them.
    pub busy: u64,
    /// Tasks that ended SUCCEEDED.
    pub succeeded: u64,
    /// Tasks that ended PARTIAL.
    pub partial: u64,
    /// Tasks that ended FAILED.
    pub failed: u64,
    /// Tasks that ended CANCELLED.
    pub cancelled: u64,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.busy = self.busy.saturating_add(other.busy);
        self.succeeded += other.succeeded;
        self.partial += other.partial;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
    }

    /// As they are told.
    pub fn figures(self, source: String, destination: String) -> PairFigures {
        let Self { bytes, busy, succeeded, partial, failed, cancelled } = self;
        let tried = succeeded + partial + failed;
        PairFigures {
            source,
            destination,
            bytes,
            rate: (busy > 0).then(|| bytes as f64 / (busy as f64 / 1e6)),
            succeeded,
            partial,
            failed,
            cancelled,
            success: (tried > 0).then(|| succeeded as f64 / tried as f64),
        }
    }
}

impl Tally {
    /// What a change to `after` adds, with the events that were written along with it; none: nothing.
    pub fn of_change(before: Before, after: &Task, events: &[NewEvent], now: Moment) -> Option<Self> {
        let mut sums = Sums {
            bytes: after.progress.bytes_moved.saturating_sub(before.bytes),
            busy: busy(&after.progress).saturating_sub(before.busy),
            ..Sums::default()
        };
        if !before.has_ended {
            match after.state {
                TaskState::Succeeded => sums.succeeded = 1,
                TaskState::Partial => sums.partial = 1,
                TaskState::Failed => sums.failed = 1,
                TaskState::Cancelled => sums.cancelled = 1,
                _ => {}
            }
        }
        let failures: Vec<_> = events.iter().filter_map(cause).collect();
        if sums == Sums::default() && failures.is_empty() {
            return None;
        }
        let pair = after.request.pairs.first();
        let minute = Moment(now.0.div_euclid(MINUTE) * MINUTE);
        let source = pair.map_or_else(String::new, |pair| place(&pair.source));
        let destination = pair.and_then(|pair| pair.destination.as_deref()).map_or_else(String::new, place);
        Some(Self { minute, owner: after.owner.clone(), source, destination, sums, failures })
    }
}

/// Why an attempt or a task failed.
fn cause(event: &NewEvent) -> Option<(String, String)> {
    let failure = matches!(event.kind, EventKind::Fault | EventKind::Ended).then(|| event.detail.get("failure"))??;
    let word = |name: &str| failure.get(name)?.as_str().map(str::to_owned);
    Some((word("code")?, word("side")?))
}

/// A place as figures name it.
fn place(location: &str) -> String {
    if let Some(name) = endpoint_of(location) {
        return format!("@{name}");
    }
    match TaskLocation::parse(location) {
        Ok(TaskLocation::Node { host, .. } | TaskLocation::Ssh { host, .. }) => host,
        Ok(TaskLocation::Local { .. }) => "this host".to_owned(),
        Ok(TaskLocation::Synthetic { .. }) => "no storage".to_owned(),
        Ok(TaskLocation::Endpoint { .. }) | Err(_) => String::new(),
    }
}

/// How many tasks wait and run at the end of each step.
#[derive(Debug)]
pub struct Queue {
    from: i64,
    step: i64,
    /// By how much the counts change from the step before.
    waiting: Vec<i64>,
    running: Vec<i64>,
}

impl Queue {
    /// No task so far.
    pub fn new(query: &OverviewQuery) -> Self {
        let none = vec![0; query.steps + 1];
        Self { from: query.from.0, step: query.step(), waiting: none.clone(), running: none }
    }

    /// The first step at whose end it is `time` or later; that behind the last one where there is none.
    fn step_of(&self, time: Option<Moment>) -> usize {
        let last = self.waiting.len() - 1;
        let Some(time) = time else { return last };
        let ends = time.0.saturating_sub(self.from).saturating_add(self.step - 1).div_euclid(self.step) - 1;
        usize::try_from(ends.max(0)).unwrap_or(last).min(last)
    }

    /// Counts a task.
    pub fn add(&mut self, submitted: Moment, started: Option<Moment>, ended: Option<Moment>) {
        let (came, begins, ends) =
            (self.step_of(Some(submitted)), self.step_of(started.or(ended)), self.step_of(ended));
        self.waiting[came] += 1;
        self.waiting[begins.max(came)] -= 1;
        if started.is_some() {
            self.running[begins] += 1;
            self.running[ends.max(begins)] -= 1;
        }
    }

    /// The counts: of those that wait, and of those that run.
    pub fn counts(self) -> (Vec<u64>, Vec<u64>) {
        let count = |changes: Vec<i64>| {
            let steps = changes.len() - 1;
            let counts = changes.into_iter().take(steps).scan(0i64, |count, change| {
                *count += change;
                Some(u64::try_from(*count).unwrap_or(0))
            });
            counts.collect()
        };
        (count(self.waiting), count(self.running))
    }
}

/// Failures by cause and step become figures.
pub fn failures(counts: BTreeMap<(String, String), Vec<u64>>) -> Vec<FailureFigures> {
    let figures = counts.into_iter().map(|((code, side), steps)| {
        let count = steps.iter().sum();
        FailureFigures { code, side, count, steps }
    });
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by_key(|figures| std::cmp::Reverse(figures.count));
    figures.truncate(CAUSES_MOST);
    figures
}

/// Pairs, the most bytes first.
pub fn sorted(mut pairs: Vec<PairFigures>) -> Vec<PairFigures> {
    pairs.sort_by(|one, other| {
        let key = |pair: &PairFigures| (std::cmp::Reverse(pair.bytes), pair.source.clone(), pair.destination.clone());
        key(one).cmp(&key(other))
    });
    pairs.truncate(PAIRS_MOST);
    pairs
}

/// Whether a task may be one of the slowest between two moments.
pub fn may_be_slow(task: &Task, query: &OverviewQuery) -> bool {
    let is_then = match task.ended {
        None => task.state == TaskState::Active,
        Some(ended) => ended >= query.from && ended < query.to(),
    };
    is_then && task.progress.bytes_moved >= SLOW_BYTES_LEAST && task.progress.rates.all > 0.0
}

/// Whether a task does not get on.
pub fn is_stuck(task: &Task, now: Moment) -> bool {
    let began_long_ago = task.started.is_some_and(|started| started.0 <= now.0.saturating_sub(STUCK_AFTER));
    match task.state {
        TaskState::Active => began_long_ago && task.progress.rates.now <= 0.0,
        TaskState::Queued => task.futile_attempts >= STUCK_ATTEMPTS,
        _ => false,
    }
}

/// Counts in memory.
#[derive(Debug, Default)]
pub struct Tallies {
    /// By minute, owner, source and destination.
    sums: BTreeMap<(Moment, String, String, String), Sums>,
    /// By minute, owner, code and side.
    failures: BTreeMap<(Moment, String, String, String), u64>,
}

impl Tallies {
    /// Adds what a change adds.
    pub fn add(&mut self, tally: Tally) {
        let Tally { minute, owner, source, destination, sums, failures } = tally;
        for (code, side) in failures {
            *self.failures.entry((minute, owner.clone(), code, side)).or_default() += 1;
        }
        if sums != Sums::default() {
            self.sums.entry((minute, owner, source, destination)).or_default().add(sums);
        }
    }

    /// Removes what was counted before a moment.
    pub fn forget(&mut self, before: Moment) {
        self.sums.retain(|(minute, ..), _| *minute >= before);
        self.failures.retain(|(minute, ..), _| *minute >= before);
    }

    /// Bytes, pairs and causes; of tasks nothing.
    pub fn rows(&self, query: &OverviewQuery) -> OverviewRows {
        let mut rows = OverviewRows { moved: vec![0; query.steps], ..OverviewRows::default() };
        let step = |minute: Moment| usize::try_from((minute.0 - query.from.0).div_euclid(query.step())).ok();
        let is_of = |wanted: &Option<String>, owner: &String| wanted.as_ref().is_none_or(|wanted| wanted == owner);
        let mut pairs: BTreeMap<(String, String), Sums> = BTreeMap::new();
        for ((minute, owner, source, destination), sums) in &self.sums {
            let Some(step) = step(*minute).filter(|step| *step < query.steps) else { continue };
            if is_of(&query.curves_of, owner) {
                rows.moved[step] += sums.bytes;
            }
            if is_of(&query.rows_of, owner) {
                pairs.entry((source.clone(), destination.clone())).or_default().add(*sums);
            }
        }
        let mut causes: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
        for ((minute, owner, code, side), count) in &self.failures {
            let Some(step) = step(*minute).filter(|step| *step < query.steps) else { continue };
            if is_of(&query.curves_of, owner) {
                causes.entry((code.clone(), side.clone())).or_insert_with(|| vec![0; query.steps])[step] += count;
            }
        }
        rows.pairs = sorted(pairs.into_iter().map(|((from, to), sums)| sums.figures(from, to)).collect());
        rows.failures = failures(causes);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_counts_tasks_at_the_end_of_each_step() {
        let at = |minute: i64| Moment(minute * MINUTE);
        let query =
            OverviewQuery { curves_of: None, rows_of: None, from: at(10), step_minutes: 5, steps: 4, now: at(30) };
        // Steps end at 15, 20, 25 and 30.
        for (task, waiting, running) in [
            ((at(0), None, None), [1, 1, 1, 1], [0; 4]),
            ((at(0), Some(at(2)), Some(at(9))), [0; 4], [0; 4]),
            ((at(12), Some(at(16)), Some(at(26))), [1, 0, 0, 0], [0, 1, 1, 0]),
            ((at(15), Some(at(15)), None), [0; 4], [1, 1, 1, 1]),
            ((at(11), Some(at(12)), Some(at(13))), [0; 4], [0; 4]),
            ((at(21), None, Some(at(28))), [0, 0, 1, 0], [0; 4]),
            ((at(40), None, None), [0; 4], [0; 4]),
        ] {
            let mut queue = Queue::new(&query);
            queue.add(task.0, task.1, task.2);
            assert_eq!(queue.counts(), (waiting.to_vec(), running.to_vec()), "{task:?}");
        }
    }
}
