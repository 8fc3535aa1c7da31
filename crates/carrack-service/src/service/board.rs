//! The open tasks in memory, as the ledger has them. What others write is found by the ledger's events.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::attempt::{Attempt, ordinal};
use super::orders::links_of;
use crate::clock::Moment;
use crate::ledger::{Answer, EventFilter, Ledger, LedgerError};
use crate::model::{BlockedCause, Estimate, Event, EventKind, Fence, Task, TaskState};
use crate::schedule::{Entry, Link, Range, Stands};

/// Events that are read at once.
const EVENTS_AT_ONCE: usize = 1_000;

/// An open task.
#[derive(Debug)]
pub(super) struct Known {
    pub task: Task,
    pub links: Vec<Link>,
    /// When its next attempt may come, by the service's steady time.
    pub retry_at: Option<Duration>,
    /// When its deadline passes, by the service's steady time: a clock on the wall that jumps fails no task.
    pub deadline_at: Option<Duration>,
    /// Consecutive workers that died without progress.
    pub deaths: u32,
    pub attempt: Option<Attempt>,
}

/// Times of both clocks, taken together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The clock on the wall.
    pub wall: Moment,
    /// The service's steady time.
    pub steady: Duration,
}

impl Known {
    fn new(task: Task, times: Times, longest_pause: Duration) -> Self {
        let links = links_of(&task.request);
        let mut known = Self { links, retry_at: None, deadline_at: None, deaths: 0, attempt: None, task };
        known.set_times(times, longest_pause);
        known
    }

    fn set_times(&mut self, times: Times, longest_pause: Duration) {
        let blocked = self.task.blocked.as_ref().filter(|blocked| blocked.cause == BlockedCause::Retry);
        // No pause is longer than the longest: a time further away is of a clock that was set back since.
        let pause = blocked.and_then(|blocked| blocked.next_try).map(|next| next.since(times.wall).min(longest_pause));
        self.retry_at = pause.map(|pause| times.steady + pause);
        self.deadline_at = self.task.request.deadline.map(|deadline| times.steady + deadline.since(times.wall));
    }

    /// Takes over a row.
    pub fn update(&mut self, task: Task, times: Times, longest_pause: Duration) {
        let same_times = self.task.blocked == task.blocked && self.task.request.deadline == task.request.deadline;
        self.task = task;
        if !same_times {
            self.set_times(times, longest_pause);
        }
    }

    /// Whether its deadline has passed by both clocks.
    pub fn deadline_passed(&self, times: Times, grace: Duration) -> bool {
        let by_wall = self.task.request.deadline.is_some_and(|deadline| deadline.after(grace) <= times.wall);
        by_wall && self.deadline_at.is_some_and(|deadline| deadline + grace <= times.steady)
    }

    /// As the plan sees it; `None` where it is paused.
    pub fn entry(&self, times: Times, usual_time: Option<Duration>, usual_range: Option<Range>) -> Option<Entry> {
        let stands = match (self.task.state, &self.attempt) {
            (TaskState::Active | TaskState::Cancelling, attempt) => {
                let ran = attempt.as_ref().map_or(Duration::ZERO, |attempt| times.steady.saturating_sub(attempt.since));
                let told = self.task.progress.eta_seconds.map(Duration::from_secs);
                let remaining = told.or_else(|| usual_time.map(|usual| usual.saturating_sub(ran)));
                Stands::Running { ran, remaining, leaves: attempt.as_ref().is_some_and(|attempt| attempt.leaves) }
            }
            (TaskState::Queued, _) if self.needs_confirmation() => Stands::Held,
            (TaskState::Queued, _) => {
                let retry_in = self.retry_at.map_or(Duration::ZERO, |at| at.saturating_sub(times.steady));
                Stands::Waiting { retry_in }
            }
            _ => return None,
        };
        let Task { id, owner, submitted, request, .. } = &self.task;
        let (id, owner, submitted) = (id.clone(), owner.clone(), *submitted);
        let priority = request.priority.unwrap_or(4);
        let seconds = self.task.estimate.as_ref().and_then(Estimate::seconds);
        let estimated =
            seconds.map(|(least, most)| Range { least: Duration::from_secs(least), most: Duration::from_secs(most) });
        let takes = estimated.or(usual_range);
        let token = self.task.counted_token().map(str::to_owned);
        Some(Entry { id, owner, priority, submitted, links: self.links.clone(), token, takes, stands })
    }

    fn needs_confirmation(&self) -> bool {
        self.task.blocked.as_ref().is_some_and(|blocked| blocked.cause == BlockedCause::Confirm)
    }
}

/// What was found when the ledger was read.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Attempts that the ledger knows and the board did not: of an earlier service.
    pub adopted: Vec<(String, Fence)>,
    /// Tasks that others have ended or removed while they had a worker.
    pub orphaned: Vec<String>,
    /// Endpoints have changed.
    pub endpoints: bool,
    /// Something has changed that a plan depends on.
    pub changed: bool,
}

/// The open tasks.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub tasks: BTreeMap<String, Known>,
    /// The last event that was read.
    cursor: u64,
}

impl Board {
    /// Reads all open tasks.
    pub fn load(&mut self, ledger: &dyn Ledger, times: Times, longest_pause: Duration) -> Answer<News> {
        // Asked first: what comes between is read twice, and nothing is missed.
        let (last, _) = ledger.event_range()?;
        let open = ledger.open_tasks()?;
        let mut news = News { endpoints: true, changed: true, ..News::default() };
        let there: BTreeSet<&str> = open.iter().map(|(task, _)| task.id.as_str()).collect();
        let gone: Vec<String> = self.tasks.keys().filter(|id| !there.contains(id.as_str())).cloned().collect();
        gone.iter().for_each(|id| self.remove(id, &mut news));
        for (task, _) in open {
            self.take(task, ledger, times, longest_pause, &mut news)?;
        }
        self.cursor = last;
        Ok(news)
    }

    /// Reads what has changed since.
    pub fn follow(&mut self, ledger: &dyn Ledger, times: Times, longest_pause: Duration) -> Answer<News> {
        let (mut news, mut changed) = (News::default(), BTreeSet::new());
        loop {
            let filter = EventFilter { since: self.cursor, ..EventFilter::default() };
            let events = ledger.events(&filter, EVENTS_AT_ONCE)?;
            for Event { id, kind, task, .. } in &events {
                news.endpoints |= *kind == EventKind::EndpointChanged;
                // What the dispatcher itself writes all the time changes no row that it does not know.
                if !matches!(kind, EventKind::Progress | EventKind::Note | EventKind::Decision) {
                    changed.extend(task.clone());
                }
                self.cursor = *id;
            }
            if events.len() < EVENTS_AT_ONCE {
                break;
            }
        }
        news.changed = news.endpoints || !changed.is_empty();
        for id in changed {
            self.refresh(&id, ledger, times, longest_pause, &mut news)?;
        }
        Ok(news)
    }

    /// Reads one task again.
    pub fn refresh(
        &mut self,
        id: &str,
        ledger: &dyn Ledger,
        times: Times,
        longest_pause: Duration,
        news: &mut News,
    ) -> Answer<()> {
        match ledger.task(id) {
            Ok(task) => self.take(task, ledger, times, longest_pause, news),
            Err(LedgerError::Missing) => {
                self.remove(id, news);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Others have ended or removed it.
    fn remove(&mut self, id: &str, news: &mut News) {
        if self.tasks.remove(id).is_some_and(|known| known.attempt.is_some()) {
            news.orphaned.push(id.to_owned());
        }
    }

    fn take(
        &mut self,
        task: Task,
        ledger: &dyn Ledger,
        times: Times,
        longest_pause: Duration,
        news: &mut News,
    ) -> Answer<()> {
        if task.state.has_ended() {
            self.remove(&task.id, news);
            return Ok(());
        }
        let is_running = matches!(task.state, TaskState::Active | TaskState::Cancelling);
        let known = match self.tasks.get_mut(&task.id) {
            // A row that was read before another one was written.
            Some(known) if known.task.version > task.version => return Ok(()),
            Some(known) => {
                known.update(task, times, longest_pause);
                known
            }
            None => {
                let known = Known::new(task, times, longest_pause);
                self.tasks.entry(known.task.id.clone()).or_insert(known)
            }
        };
        let fence = known.task.fence;
        if !is_running {
            if known.attempt.take().is_some() {
                news.orphaned.push(known.task.id.clone());
            }
        } else if known.attempt.as_ref().is_none_or(|attempt| attempt.fence < fence) {
            let events = events_of_attempt(ledger, &known.task.id, fence)?;
            known.attempt = Some(Attempt::new(&known.task, times.steady, events));
            news.adopted.push((known.task.id.clone(), fence));
        }
        Ok(())
    }
}

/// How many events of an attempt's journal the ledger has.
pub(super) fn events_of_attempt(ledger: &dyn Ledger, task: &str, fence: Fence) -> Answer<u64> {
    let mut filter = EventFilter { task: Some(task.to_owned()), ..EventFilter::default() };
    let mut known = 0;
    loop {
        let events = ledger.events(&filter, EVENTS_AT_ONCE)?;
        known = events.iter().filter_map(|event| ordinal(&event.detail, fence)).fold(known, u64::max);
        match events.last() {
            Some(last) if events.len() == EVENTS_AT_ONCE => filter.since = last.id,
            _ => return Ok(known),
        }
    }
}
