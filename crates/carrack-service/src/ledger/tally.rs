//! What tasks have moved and how they ended, minute by minute: counted along with each change of a task, so that what
//! happened over weeks is told without reading every task again. Pure, and the same for every ledger.

use carrack_core::location::Location;
use std::collections::BTreeMap;

use super::rows::NewEvent;
use crate::clock::Moment;
use crate::model::{EventKind, FailureFigures, PairFigures, Progress, Task, TaskState, TokenUse};

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
    /// Tasks that waited at the end of each step: queued, staged or paused.
    pub waiting: Vec<u64>,
    /// Tasks that ran at the end of each step: active, or being cancelled.
    pub running: Vec<u64>,
    /// Bytes a second of the tasks that are active at present.
    pub rate: f64,
    /// What was moved, and how tasks ended, over the whole time.
    pub sums: Sums,
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
    /// None: it was not there.
    pub state: Option<TaskState>,
    items: u64,
    used: TokenUse,
}

impl Before {
    /// Before a task is accepted.
    pub const ACCEPTED: Self =
        Self { bytes: 0, busy: 0, state: None, items: 0, used: TokenUse { entries: 0, bytes: 0, deletions: 0 } };

    /// Before this task is changed.
    pub fn of(task: &Task) -> Self {
        let Progress { bytes_moved, .. } = task.progress;
        Self {
            bytes: bytes_moved,
            busy: busy(&task.progress),
            state: Some(task.state),
            items: items(&task.progress),
            used: task.used(),
        }
    }

    /// What the task has done since, and by which token, where that token has ceilings.
    pub fn used_since<'a>(&self, after: &'a Task) -> Option<(&'a str, TokenUse)> {
        let more = after.used().beyond(&self.used);
        after.counted_token().filter(|_| more != TokenUse::default()).map(|token| (token, more))
    }

    /// Whether the task has moved more by now.
    pub fn has_got_on(&self, after: &Task) -> bool {
        after.progress.bytes_moved > self.bytes || items(&after.progress) > self.items
    }
}

/// How many tasks wait and how many run, or by how many they became more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// QUEUED, STAGING and PAUSED.
    pub waiting: i64,
    /// ACTIVE and CANCELLING.
    pub running: i64,
}

impl Shift {
    /// One task in this state.
    pub fn of(state: TaskState) -> Self {
        match state {
            TaskState::Queued | TaskState::Staging | TaskState::Paused => Self { waiting: 1, running: 0 },
            TaskState::Active | TaskState::Cancelling => Self { waiting: 0, running: 1 },
            TaskState::Succeeded | TaskState::Partial | TaskState::Failed | TaskState::Cancelled => Self::default(),
        }
    }

    /// Adds another one so many times.
    pub fn add(&mut self, other: Self, times: i64) {
        self.waiting = self.waiting.saturating_add(other.waiting.saturating_mul(times));
        self.running = self.running.saturating_add(other.running.saturating_mul(times));
    }
}

/// Items that are at the destination.
fn items(progress: &Progress) -> u64 {
    progress.items_done.saturating_add(progress.items_skipped)
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
    /// By how many tasks more wait and run.
    pub shift: Shift,
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
        let mut shift = Shift::of(after.state);
        if let Some(state) = before.state {
            shift.add(Shift::of(state), -1);
        }
        if before.state.is_none_or(|state| !state.has_ended()) {
            match after.state {
                TaskState::Succeeded => sums.succeeded = 1,
                TaskState::Partial => sums.partial = 1,
                TaskState::Failed => sums.failed = 1,
                TaskState::Cancelled => sums.cancelled = 1,
                _ => {}
            }
        }
        let failures: Vec<_> = events.iter().filter_map(cause).collect();
        if sums == Sums::default() && shift == Shift::default() && failures.is_empty() {
            return None;
        }
        let pair = after.request.pairs.first();
        let minute = minute_of(now);
        let source = pair.map_or_else(String::new, |pair| place(&pair.source));
        let destination = pair.and_then(|pair| pair.destination.as_deref()).map_or_else(String::new, place);
        Some(Self { minute, owner: after.owner.clone(), source, destination, sums, shift, failures })
    }
}

/// When the minute of a moment begins.
pub fn minute_of(moment: Moment) -> Moment {
    Moment(moment.0.div_euclid(MINUTE) * MINUTE)
}

/// Why an attempt or a task failed.
fn cause(event: &NewEvent) -> Option<(String, String)> {
    let failure = matches!(event.kind, EventKind::Fault | EventKind::Ended).then(|| event.detail.get("failure"))??;
    let word = |name: &str| failure.get(name)?.as_str().map(str::to_owned);
    Some((word("code")?, word("side")?))
}

/// A place as figures name it.
fn place(location: &str) -> String {
    Location::parse_document(location).map(|location| location.place_name()).unwrap_or_default()
}

/// How many tasks wait and run at the end of each step, counted back from how many do at present.
#[derive(Debug)]
pub struct Queue {
    at_present: Shift,
    /// By the step in which they were written; the last one is for all steps that are not told of.
    shifts: Vec<Shift>,
}

impl Queue {
    /// Nothing has changed so far.
    pub fn new(query: &OverviewQuery, at_present: Shift) -> Self {
        Self { at_present, shifts: vec![Shift::default(); query.steps + 1] }
    }

    /// Counts what was written in a step.
    pub fn add(&mut self, step: usize, shift: Shift) {
        let last = self.shifts.len() - 1;
        self.shifts[step.min(last)].add(shift, 1);
    }

    /// The counts: of those that wait, and of those that run.
    pub fn counts(mut self) -> (Vec<u64>, Vec<u64>) {
        let mut now = self.at_present;
        // At the end of a step, nothing of the next one had come.
        for later in self.shifts.iter_mut().rev() {
            let then = now;
            now.add(*later, -1);
            *later = then;
        }
        self.shifts.pop();
        let count = |tasks: i64| u64::try_from(tasks).unwrap_or(0);
        self.shifts.iter().map(|shift| (count(shift.waiting), count(shift.running))).unzip()
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
    /// By minute and owner.
    queue: BTreeMap<(Moment, String), Shift>,
    /// By minute, owner, code and side.
    failures: BTreeMap<(Moment, String, String, String), u64>,
}

impl Tallies {
    /// Adds what a change adds.
    pub fn add(&mut self, tally: Tally) {
        let Tally { minute, owner, source, destination, sums, shift, failures } = tally;
        if shift != Shift::default() {
            self.queue.entry((minute, owner.clone())).or_default().add(shift, 1);
        }
        for (code, side) in failures {
            *self.failures.entry((minute, owner.clone(), code, side)).or_default() += 1;
        }
        if sums != Sums::default() {
            self.sums.entry((minute, owner, source, destination)).or_default().add(sums);
        }
    }

    /// Removes what was counted before a moment. How many tasks waited and ran then stays known.
    pub fn forget(&mut self, before: Moment) {
        self.sums.retain(|(minute, ..), _| *minute >= before);
        self.failures.retain(|(minute, ..), _| *minute >= before);
        let edge = minute_of(before);
        let kept = self.queue.split_off(&(edge, String::new()));
        for ((_, owner), shift) in std::mem::replace(&mut self.queue, kept) {
            self.queue.entry((edge, owner)).or_default().add(shift, 1);
        }
    }

    /// Bytes, the queue, pairs and causes, where so many tasks wait and run at present; of tasks nothing.
    pub fn rows(&self, query: &OverviewQuery, at_present: Shift) -> OverviewRows {
        let mut rows = OverviewRows { moved: vec![0; query.steps], ..OverviewRows::default() };
        let step = |minute: Moment| usize::try_from((minute.0 - query.from.0).div_euclid(query.step())).ok();
        let mut queue = Queue::new(query, at_present);
        let is_of = |wanted: &Option<String>, owner: &String| wanted.as_ref().is_none_or(|wanted| wanted == owner);
        for ((minute, owner), shift) in &self.queue {
            // What was written has happened, also where the clock was set back since.
            if let Some(step) = step((*minute).min(minute_of(query.now))).filter(|_| is_of(&query.curves_of, owner)) {
                queue.add(step, *shift);
            }
        }
        (rows.waiting, rows.running) = queue.counts();
        let mut pairs: BTreeMap<(String, String), Sums> = BTreeMap::new();
        for ((minute, owner, source, destination), sums) in &self.sums {
            let Some(step) = step(*minute).filter(|step| *step < query.steps) else { continue };
            if is_of(&query.curves_of, owner) {
                rows.moved[step] += sums.bytes;
                rows.sums.add(*sums);
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
    fn queue_is_counted_back_from_the_present() {
        let at = |minute: i64| Moment(minute * MINUTE);
        let query =
            OverviewQuery { curves_of: None, rows_of: None, from: at(10), step_minutes: 5, steps: 4, now: at(30) };
        let (comes, begins) = (Shift { waiting: 1, running: 0 }, Shift { waiting: -1, running: 1 });
        let (waits, goes) = (Shift { waiting: 1, running: -1 }, Shift { waiting: 0, running: -1 });
        for (at_present, shifts, waiting, running) in [
            (Shift { waiting: 2, running: 1 }, vec![], [2; 4], [1; 4]),
            // Steps are from 10, 15, 20 and 25 on. One task comes, begins, is paused, goes on, and ends.
            (
                Shift::default(),
                vec![(0, comes), (1, begins), (2, waits), (3, begins), (3, goes)],
                [1, 0, 1, 0],
                [0, 1, 0, 0],
            ),
            // It began before that time and ended after it.
            (Shift::default(), vec![(4, goes)], [0; 4], [1; 4]),
            // Never fewer than none, whatever was lost.
            (Shift::default(), vec![(3, comes)], [0; 4], [0; 4]),
        ] {
            let mut queue = Queue::new(&query, at_present);
            shifts.iter().for_each(|(step, shift)| queue.add(*step, *shift));
            assert_eq!(queue.counts(), (waiting.to_vec(), running.to_vec()), "{shifts:?}");
        }
    }

    #[test]
    fn queue_is_right_where_the_clock_was_set_back_and_where_minutes_were_forgotten() {
        let at = |minute: i64| Moment(minute * MINUTE);
        let query =
            OverviewQuery { curves_of: None, rows_of: None, from: at(10), step_minutes: 1, steps: 4, now: at(13) };
        let mut tallies = Tallies::default();
        let comes = Shift { waiting: 1, running: 0 };
        for minute in [3, 11, 50] {
            let (owner, place) = ("ada".to_owned(), String::new());
            let (source, destination) = (place.clone(), place);
            let (sums, failures) = (Sums::default(), Vec::new());
            tallies.add(Tally { minute: at(minute), owner, source, destination, sums, shift: comes, failures });
        }
        let three = Shift { waiting: 3, running: 0 };
        assert_eq!(tallies.rows(&query, three).waiting, [1, 2, 2, 3]);
        tallies.forget(Moment(at(12).0 + 1));
        assert_eq!(tallies.rows(&query, three).waiting, [0, 0, 2, 3]);
    }
}
