//! What people want of tasks: pause, resume, cancel, deadlines.

use std::time::Duration;

use serde_json::json;

use super::attempt::event;
use super::board::{Known, Times};
use super::dispatcher::{Dispatcher, Turned};
use super::outcome::deadline_failure;
use crate::ledger::{Answer, LedgerError, TaskChange, TaskGuard};
use crate::model::{EventKind, TaskFailure, TaskState};

/// A worker knows its deadline. One that goes on for so long is told to end.
const DEADLINE_GRACE: Duration = Duration::from_secs(30);

impl Dispatcher {
    /// Pause, resume, cancel, deadlines.
    pub(super) fn carry_out_wishes(&mut self, times: Times, turned: &mut Turned) -> Answer<()> {
        let wishes: Vec<(String, Option<Wish>, bool)> = self
            .board
            .tasks
            .iter()
            .map(|(id, known)| (id, wish(known, times), has_to_stop(known, times)))
            .filter(|(_, wish, stops)| wish.is_some() || *stops)
            .map(|(id, wish, stops)| (id.clone(), wish, stops))
            .collect();
        let mut done = Ok(());
        for (id, wish, stops) in wishes {
            if stops {
                self.stop(&id);
            }
            if let Some((state, kind, failure)) = wish {
                done = done.and(self.move_to(&id, state, kind, failure, times, turned));
            }
        }
        done
    }

    /// Tells workers of deadlines that were changed since they know them. What cannot be told is told by the next turn.
    pub(super) fn tell_deadlines(&mut self) {
        for (id, known) in &mut self.board.tasks {
            let (wanted, Some(attempt)) = (known.task.request.deadline, &mut known.attempt) else { continue };
            if attempt.start_at.is_some() || attempt.gone.is_some() || attempt.deadline == Some(wanted) {
                continue;
            }
            match self.workers.tell_deadline(id, wanted) {
                Ok(()) => attempt.deadline = Some(wanted),
                Err(why) => tracing::warn!(task = id, why, "a worker cannot be told of its task's deadline"),
            }
        }
    }

    /// Moves a task from where it stands to another state, if it is still as it was read.
    pub(super) fn move_to(
        &mut self,
        id: &str,
        state: TaskState,
        kind: EventKind,
        failure: Option<TaskFailure>,
        times: Times,
        turned: &mut Turned,
    ) -> Answer<()> {
        let Some(Known { task, .. }) = self.board.tasks.get(id) else { return Ok(()) };
        let guard = TaskGuard { states: vec![task.state], version: Some(task.version), fence: None };
        let text = failure
            .as_ref()
            .map_or_else(|| state.name().to_owned(), |failure| format!("{}: {}", state.name(), failure.why));
        let detail = json!({ "state": state.name(), "failure": failure, "notify": task.request.notify });
        let events = [event(task, kind, text, detail)];
        let change = TaskChange { state: Some(state), failure: failure.map(Some), ..TaskChange::default() };
        match self.ledger.change_task(id, &guard, &change, &events, times.wall) {
            Ok(task) => {
                turned.wrote = true;
                if task.state.has_ended() {
                    tracing::info!(target: "carrack::audit", task = id, owner = task.owner, state = state.name(), "task ended");
                    self.board.tasks.remove(id);
                } else if let Some(known) = self.board.tasks.get_mut(id) {
                    known.update(task, times, self.settings.patience.longest_with_jitter());
                }
                Ok(())
            }
            Err(LedgerError::Conflict(_) | LedgerError::Fenced | LedgerError::Missing) => self.look_again(id, times),
            Err(error) => Err(error),
        }
    }
}

/// Where a task goes because of what people want, and why.
type Wish = (TaskState, EventKind, Option<TaskFailure>);

fn wish(known: &Known, times: Times) -> Option<Wish> {
    let task = &known.task;
    match task.state {
        TaskState::Active if task.cancel_wanted => Some((TaskState::Cancelling, EventKind::Cancelling, None)),
        TaskState::Active | TaskState::Cancelling => None,
        _ if task.cancel_wanted => Some((TaskState::Cancelled, EventKind::Ended, None)),
        _ if known.deadline_passed(times, Duration::ZERO) => {
            Some((TaskState::Failed, EventKind::Ended, Some(deadline_failure(task))))
        }
        TaskState::Queued if task.pause_wanted => Some((TaskState::Paused, EventKind::Paused, None)),
        TaskState::Paused if !task.pause_wanted => Some((TaskState::Queued, EventKind::Resumed, None)),
        _ => None,
    }
}

/// Whether its worker has to be told to end.
fn has_to_stop(known: &Known, times: Times) -> bool {
    let wants_end = known.task.cancel_wanted || known.task.pause_wanted || known.deadline_passed(times, DEADLINE_GRACE);
    wants_end && known.attempt.as_ref().is_some_and(|attempt| !attempt.leaves)
}
