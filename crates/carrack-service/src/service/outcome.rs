//! What follows from the end of an attempt. Pure.

use std::time::Duration;

use carrack_core::failure::{ErrorCode, Side};
use serde_json::json;

use super::attempt::{Attempt, event};
use crate::clock::Moment;
use crate::journal::{AttemptEnd, EndKind};
use crate::ledger::{NewEvent, TaskChange};
use crate::model::{
    Blocked, BlockedCause, CheckTally, DIFFERENCES, Estimate, EventKind, Progress, Task, TaskFailure, TaskKind,
    TaskPlan, TaskState,
};
use crate::schedule::Patience;

/// What becomes of a task, and what its links have shown.
#[derive(Debug)]
pub(super) struct Outcome {
    pub change: TaskChange,
    pub events: Vec<NewEvent>,
    /// The pause until the next attempt.
    pub retry_in: Option<Duration>,
    /// What the links have shown.
    pub link: LinkNews,
    /// Its worker died without a word, and had done nothing.
    pub died: bool,
}

/// What an attempt says about its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkNews {
    Carried,
    Futile,
    Nothing,
}

/// What an outcome depends on beside task and attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances<'a> {
    pub patience: &'a Patience,
    /// Consecutive workers of this task that died without progress, before this one.
    pub deaths: u32,
    pub deadline_passed: bool,
    pub now: Moment,
}

/// From the row as it is now, with what people want, and an attempt whose worker is gone.
pub(super) fn outcome(task: &Task, attempt: &Attempt, circumstances: Circumstances<'_>) -> Outcome {
    let builder = Builder { task, attempt, circumstances };
    match &attempt.end {
        Some(end) => builder.ended(end),
        None if !attempt.began && !attempt.started => builder.given_back("its worker did not begin"),
        None => builder.died(),
    }
}

#[derive(Clone, Copy)]
struct Builder<'a> {
    task: &'a Task,
    attempt: &'a Attempt,
    circumstances: Circumstances<'a>,
}

impl Builder<'_> {
    fn ended(self, end: &AttemptEnd) -> Outcome {
        let mut outcome = match (end.kind, &end.failure) {
            (EndKind::Done, failure) => self.done(&end.progress, failure.as_ref()),
            (EndKind::Held, failure) => self.held(failure.as_ref()),
            (EndKind::Stopped, _) => self.given_back("its worker was told to end"),
            // Somebody has set another deadline than the one that has ended it.
            (EndKind::Failed, _) if end.late && !self.deadline_is_over() => self.given_back("its deadline was changed"),
            (EndKind::Failed, Some(failure)) if failure.retryable => self.retry(failure, end.got_somewhere),
            (EndKind::Failed, failure) => {
                let unknown = || failure_of(ErrorCode::Internal, "the worker failed and did not say why".to_owned());
                self.end(TaskState::Failed, Some(failure.clone().unwrap_or_else(unknown)))
            }
        };
        outcome.change.progress = Some(end.progress.clone());
        if end.got_somewhere {
            outcome.link = LinkNews::Carried;
            outcome.change.futile_attempts = Some(0);
        }
        outcome
    }

    /// By the clock on the wall, which is the worker's.
    fn deadline_is_over(self) -> bool {
        self.task.request.deadline.is_some_and(|deadline| deadline <= self.circumstances.now)
    }

    fn done(self, progress: &Progress, failure: Option<&TaskFailure>) -> Outcome {
        if progress.items_failed == 0 {
            return match progress.check {
                Some(check) if check.differences() > 0 => {
                    self.end(TaskState::Partial, Some(differing(self.task, &check)))
                }
                None if self.task.request.kind == TaskKind::Check => {
                    let why = failure_of(ErrorCode::Other, "nothing was compared".to_owned());
                    self.end(TaskState::Failed, Some(why))
                }
                _ => self.end(TaskState::Succeeded, None),
            };
        }
        let is_planned = |plan: &TaskPlan| plan.new.items + plan.changed.items + plan.same.items > 0;
        let planned = self.task.request.preview && progress.plan.as_ref().is_some_and(is_planned);
        let is_partial = progress.items_done + progress.items_skipped > 0 || planned;
        let state = if is_partial { TaskState::Partial } else { TaskState::Failed };
        let count = || {
            let why = format!("{} of {} items failed", progress.items_failed, progress.items_total);
            TaskFailure { hints: vec!["look at the failed items".to_owned()], ..failure_of(ErrorCode::Other, why) }
        };
        self.end(state, Some(failure.cloned().unwrap_or_else(count)))
    }

    fn end(self, state: TaskState, failure: Option<TaskFailure>) -> Outcome {
        let text = match &failure {
            Some(failure) => format!("{}: {}", state.name(), failure.why),
            None => state.name().to_owned(),
        };
        let took_seconds = self.task.started.map(|started| self.circumstances.now.since(started).as_secs_f64());
        let estimate = self.task.estimate.clone().map(|estimate| Estimate { took_seconds, ..estimate });
        let detail = json!({
            "state": state.name(), "failure": failure, "attempts": self.task.fence,
            "notify": self.task.request.notify, "estimate": estimate,
        });
        let change = TaskChange { state: Some(state), failure: Some(failure), ..TaskChange::default() };
        let events = vec![event(self.task, EventKind::Ended, text, detail)];
        Outcome { change, events, retry_in: None, link: LinkNews::Nothing, died: false }
    }

    /// What people want, where the task has not done all: `None` where it goes on.
    fn wanted(self) -> Option<Outcome> {
        if self.task.cancel_wanted {
            return Some(self.end(TaskState::Cancelled, None));
        }
        if self.circumstances.deadline_passed {
            return Some(self.end(TaskState::Failed, Some(deadline_failure(self.task))));
        }
        self.task.pause_wanted.then(|| {
            let change = TaskChange { state: Some(TaskState::Paused), ..TaskChange::default() };
            let events = vec![event(self.task, EventKind::Paused, "paused".to_owned(), json!({}))];
            Outcome { change, events, retry_in: None, link: LinkNews::Nothing, died: false }
        })
    }

    /// Paused by a guard, until somebody has looked at what it would delete.
    fn held(self, failure: Option<&TaskFailure>) -> Outcome {
        if let Some(outcome) = self.wanted()
            && outcome.change.state != Some(TaskState::Paused)
        {
            return outcome;
        }
        let why = failure.map_or_else(|| "a guard keeps it from going on".to_owned(), |failure| failure.why.clone());
        let text = format!("paused by a guard: {why}");
        let hint = "look at its plan: carrack task items TASK --state to-delete; carrack task resume TASK does it once, \
                    carrack task cancel TASK does not";
        let blocked = Blocked {
            cause: BlockedCause::Guard,
            why,
            since: self.circumstances.now,
            next_try: None,
            hint: Some(hint.to_owned()),
        };
        let detail = json!({ "failure": failure, "blocked": blocked });
        let change = TaskChange {
            state: Some(TaskState::Paused),
            pause_wanted: Some(true),
            blocked: Some(Some(blocked)),
            ..TaskChange::default()
        };
        let events = vec![event(self.task, EventKind::Paused, text, detail)];
        Outcome { change, events, retry_in: None, link: LinkNews::Nothing, died: false }
    }

    /// Back to the queue without any fault of the task.
    fn given_back(self, why: &str) -> Outcome {
        self.wanted().unwrap_or_else(|| {
            let change = TaskChange { state: Some(TaskState::Queued), ..TaskChange::default() };
            let detail = json!({ "attempt": self.task.fence });
            let text = format!("waits for its next attempt: {why}");
            let events = vec![event(self.task, EventKind::Queued, text, detail)];
            Outcome { change, events, retry_in: None, link: LinkNews::Nothing, died: false }
        })
    }

    fn retry(self, failure: &TaskFailure, got_somewhere: bool) -> Outcome {
        let futile = if got_somewhere { 0 } else { self.task.futile_attempts.saturating_add(1) };
        // What fails at the service's own side says nothing of the link.
        let link = match got_somewhere {
            true => LinkNews::Carried,
            false if failure.side == Side::Command.name() => LinkNews::Nothing,
            false => LinkNews::Futile,
        };
        if let Some(wanted) = self.wanted() {
            return Outcome { link, ..wanted };
        }
        let pause = self.circumstances.patience.pause(futile, &self.task.id);
        let (since, next_try) = (self.circumstances.now, self.circumstances.now.after(pause));
        let blocked = Blocked {
            cause: BlockedCause::Retry,
            why: format!("{}: {}", failure.side, failure.why),
            since,
            next_try: Some(next_try),
            hint: failure.hints.first().cloned().or_else(|| hint(failure)),
        };
        let text =
            format!("attempt {} failed, the next comes in {} s: {}", self.task.fence, pause.as_secs(), failure.why);
        let detail = json!({
            "failure": failure, "futile_attempts": futile, "pause_seconds": pause.as_secs_f64(), "next_try": next_try,
            "got_somewhere": got_somewhere,
        });
        let change = TaskChange {
            state: Some(TaskState::Queued),
            blocked: Some(Some(blocked)),
            futile_attempts: Some(futile),
            ..TaskChange::default()
        };
        let events = vec![event(self.task, EventKind::Fault, text, detail)];
        Outcome { change, events, retry_in: Some(pause), link, died: false }
    }

    fn died(self) -> Outcome {
        let got_somewhere = self.attempt.got_somewhere(self.task);
        let how = self.attempt.gone.clone().flatten().unwrap_or_else(|| "its process was ended".to_owned());
        let mut failure = failure_of(ErrorCode::Internal, format!("the worker died: {how}"));
        failure.retryable = true;
        let deaths = self.circumstances.deaths + 1;
        if !got_somewhere && deaths >= self.circumstances.patience.deaths && !self.task.cancel_wanted {
            let why = format!("{deaths} workers in a row died without progress; the last: {how}");
            let hints = vec!["look into the task's log; submit a part of it".to_owned()];
            return self.end(TaskState::Failed, Some(TaskFailure { hints, ..failure_of(ErrorCode::Internal, why) }));
        }
        let mut outcome = self.retry(&failure, got_somewhere);
        outcome.died = !got_somewhere;
        outcome.change.progress = self.attempt.sample.as_ref().map(|sample| sample.progress.clone());
        outcome
    }
}

/// Why a check that is done has not SUCCEEDED.
fn differing(task: &Task, check: &CheckTally) -> TaskFailure {
    TaskFailure {
        code: DIFFERENCES.to_owned(),
        hints: vec![format!("carrack task items {} names what differs; carrack task retry checks again", task.id)],
        ..failure_of(ErrorCode::Other, check.words())
    }
}

/// What somebody can do about a failure that another attempt may not meet any more.
fn hint(failure: &TaskFailure) -> Option<String> {
    let is_at_an_end = failure.side != Side::Command.name();
    (is_at_an_end && failure.code == ErrorCode::AuthenticationFailed.name()).then(|| {
        let hint = "give the endpoint the node's present token: carrack endpoint edit NAME --token-file FILE";
        hint.to_owned()
    })
}

/// Why a task fails whose deadline has passed.
pub(super) fn deadline_failure(task: &Task) -> TaskFailure {
    let deadline = task.request.deadline.map_or_else(String::new, |deadline| format!(" ({deadline})"));
    let why = format!("its deadline has passed{deadline}");
    TaskFailure {
        hints: vec!["retry it with a later deadline".to_owned()],
        ..failure_of(ErrorCode::DeadlinePassed, why)
    }
}

/// A failure of the service's own that no other attempt mends.
pub(super) fn failure_of(code: ErrorCode, why: String) -> TaskFailure {
    let (code, side) = (code.name().to_owned(), Side::Command.name().to_owned());
    TaskFailure { code, side, endpoint: None, why, retryable: false, hints: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::memory::MemoryLedger;
    use crate::ledger::{Ledger, Submission};
    use crate::model::{NewTask, TaskKind};

    fn state_of(kind: TaskKind, progress: Progress) -> (TaskState, Option<String>) {
        let request = NewTask { kind, ..NewTask::default() };
        let (id, owner, endpoints) = ("1".to_owned(), "ann".to_owned(), Vec::new());
        let submission = Submission { id, owner, submission_id: None, request, endpoints, estimate: None };
        let task = MemoryLedger::new().submit(&submission, Moment(0)).unwrap().task;
        let mut attempt = Attempt::new(&task, Duration::ZERO, 0);
        let (time, kind) = (Moment(0), EndKind::Done);
        attempt.end = Some(AttemptEnd { time, kind, progress, failure: None, got_somewhere: true, late: false });
        let patience = Patience::default();
        let circumstances = Circumstances { patience: &patience, deaths: 0, deadline_passed: false, now: Moment(0) };
        let change = outcome(&task, &attempt, circumstances).change;
        (change.state.unwrap(), change.failure.flatten().map(|failure| failure.why))
    }

    #[test]
    fn check_is_at_a_good_end_only_if_something_was_compared() {
        let found = |different| Some(CheckTally { same: 1, different, ..CheckTally::default() });
        let progress = |check| Progress { check, items_skipped: 1, ..Progress::default() };
        let why = |why: &str| Some(why.to_owned());
        let of = |check| state_of(TaskKind::Check, progress(check));
        assert_eq!(of(None), (TaskState::Failed, why("nothing was compared")));
        assert_eq!(of(found(0)), (TaskState::Succeeded, None));
        assert_eq!(of(found(2)), (TaskState::Partial, why("2 different")));
        assert_eq!(state_of(TaskKind::Copy, progress(None)), (TaskState::Succeeded, None));
    }
}
