//! Timers that are due: each run and its task are one change of the ledger.

use std::collections::BTreeSet;

use carrack_core::options::DeleteLimit;
use carrack_core::tuning::TIMER_DELETE_SHARE;
use serde_json::json;

use super::board::{Board, Times};
use crate::clock::Moment;
use crate::ledger::{Answer, Ledger, LedgerError, NewEvent, Submission, endpoints_of};
use crate::model::{EventKind, NewTask, RunGuard, TaskState, Timer, TimerState};
use crate::schedule::timer::{Step, step, submission_id};

/// Timers that are looked at in one turn, beside those that wait.
const TIMERS_AT_ONCE: usize = 100;

/// Runs what is due.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Due timers that wait for their last task. They must not keep others from being looked at.
    waiting: BTreeSet<String>,
}

impl Timers {
    /// Looks at the timers that are due. Whether anything was written.
    pub fn run(
        &mut self,
        ledger: &dyn Ledger,
        board: &Board,
        times: Times,
        ids: &mut dyn FnMut() -> String,
    ) -> Answer<bool> {
        let due = ledger.due_timers(times.wall, TIMERS_AT_ONCE + self.waiting.len())?;
        let (mut wrote, mut waiting) = (false, BTreeSet::new());
        for timer in due {
            let is_open = timer.last_task.as_ref().is_some_and(|task| board.tasks.contains_key(task));
            if let Some(why) = ended_token(ledger, &timer, times.wall)? {
                wrote |= end(ledger, &timer, &why, times)?;
                continue;
            }
            let changed = match step(&timer, times.wall, is_open) {
                Ok(Step::Run { timer: mut next, due, missed }) => {
                    next.task.guard = guard(ledger, &timer)?;
                    run(ledger, &timer, next, due, missed, times, ids())
                }
                Ok(Step::Skip { timer: next, due }) => skip(ledger, &next, due, times),
                Ok(Step::Wait) => {
                    waiting.insert(timer.id);
                    continue;
                }
                Ok(Step::NotDue) => continue,
                Err(error) => {
                    wrote |= end(ledger, &timer, &error, times)?;
                    continue;
                }
            };
            match changed {
                Ok(_) => wrote = true,
                // Somebody has changed or removed it meanwhile: the next turn sees it as it is then.
                Err(LedgerError::Conflict(_) | LedgerError::Missing) => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting = waiting;
        Ok(wrote)
    }
}

/// Why the token that a timer was made with opens nothing any more.
fn ended_token(ledger: &dyn Ledger, timer: &Timer, now: Moment) -> Answer<Option<String>> {
    let Some(token) = &timer.task.token else { return Ok(None) };
    match ledger.token(token) {
        Ok((row, _, _)) if row.expires.is_some_and(|expires| expires <= now) => {
            Ok(Some("the token that it was made with has expired".to_owned()))
        }
        Ok(_) => Ok(None),
        Err(LedgerError::Missing) => Ok(Some("the token that it was made with was revoked".to_owned())),
        Err(error) => Err(error),
    }
}

/// Ends a timer. Whether it was written: somebody may have changed or removed it meanwhile.
fn end(ledger: &dyn Ledger, timer: &Timer, why: &dyn std::fmt::Display, times: Times) -> Answer<bool> {
    let ended = Timer { state: TimerState::Ended, next_run: None, ..timer.clone() };
    let event = event(timer, EventKind::TimerEnded, None, format!("no more runs come: {why}"), json!({}));
    match ledger.change_timer(&ended, None, &event, times.wall) {
        Ok(_) => Ok(true),
        Err(LedgerError::Conflict(_) | LedgerError::Missing) => Ok(false),
        Err(error) => Err(error),
    }
}

fn run(
    ledger: &dyn Ledger,
    timer: &Timer,
    next: Timer,
    due: Moment,
    missed: u64,
    times: Times,
    id: String,
) -> Answer<Option<crate::ledger::Submitted>> {
    let mut request = NewTask { timer: Some(timer.id.clone()), deadline: deadline(timer, due), ..next.task.clone() };
    if request.guard.is_some() {
        request.options.max_delete.get_or_insert(DeleteLimit::Share(TIMER_DELETE_SHARE));
    }
    let submission = Submission {
        id: id.clone(),
        owner: timer.owner.clone(),
        submission_id: Some(submission_id(&timer.id, next.runs)),
        endpoints: endpoints_of(&request),
        request,
        // Its first worker counts what there is to move.
        estimate: None,
    };
    let next = Timer { last_task: Some(id.clone()), ..next };
    let text = match missed {
        0 => format!("run {} submitted task {id}", next.runs),
        _ => {
            format!("run {} submitted task {id}, in place of {missed} more that were due and could not run", next.runs)
        }
    };
    let late = times.wall.since(due).as_secs();
    let detail = json!({
        "run": next.runs, "due": due, "late_seconds": late, "missed": missed, "next_run": next.next_run,
        "state": next.state.name(),
    });
    let event = event(timer, EventKind::TimerRan, Some(id), text, detail);
    ledger.change_timer(&next, Some(&submission), &event, times.wall)
}

/// What the next run is held to, where runs delete: what the last one that succeeded has found.
fn guard(ledger: &dyn Ledger, timer: &Timer) -> Answer<Option<RunGuard>> {
    if !timer.task.deletes_at_destination() {
        return Ok(None);
    }
    let kept = timer.task.guard.clone().unwrap_or_default();
    let last = match &timer.last_task {
        Some(task) => ledger.task(task),
        None => Err(LedgerError::Missing),
    };
    match last {
        Ok(task) if task.state == TaskState::Succeeded => {
            let file_system = task.progress.source_file_system.or(kept.file_system);
            Ok(Some(RunGuard { file_system, items: Some(task.progress.items_total) }))
        }
        Ok(_) | Err(LedgerError::Missing) => Ok(Some(kept)),
        Err(error) => Err(error),
    }
}

/// A deadline in a timer's task is that of its first run; each run's is as long after its own due time.
fn deadline(timer: &Timer, due: Moment) -> Option<Moment> {
    let first = timer.schedule.start.unwrap_or(timer.made);
    timer.task.deadline.map(|deadline| due.after(deadline.since(first)))
}

fn skip(ledger: &dyn Ledger, next: &Timer, due: Moment, times: Times) -> Answer<Option<crate::ledger::Submitted>> {
    let last = next.last_task.clone().unwrap_or_default();
    let text = format!("the run of {due} is left out: task {last} of the run before has not ended");
    let detail = json!({ "due": due, "last_task": last, "next_run": next.next_run, "state": next.state.name() });
    ledger.change_timer(next, None, &event(next, EventKind::TimerSkipped, None, text, detail), times.wall)
}

fn event(timer: &Timer, kind: EventKind, task: Option<String>, text: String, detail: serde_json::Value) -> NewEvent {
    NewEvent { kind, owner: timer.owner.clone(), task, subject: Some(timer.id.clone()), text, detail }
}
