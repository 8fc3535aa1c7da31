//! The same act on many tasks: those that a filter names, page by page, with what became of each.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::Api;
use super::caller::Known;
use super::extract::{Body, limit};
use super::problem::{ApiError, Done};
use super::tasks::{Wish, narrow, sees};
use crate::identity::{Caller, Object};
use crate::ledger::{Page, TaskFilter};
use crate::model::{ActedTask, BlockedCause, Problem, Task, TaskAct, TaskActed, TaskActs, TaskState, Verb};

/// Does the same to all tasks that a filter names: of a page of them at a time, the latest first. Each is told with
/// what became of it; one that cannot be acted on keeps no other from it. Where the answer has a `next`, the same
/// request with it as `cursor` goes on.
#[utoipa::path(
    post, path = "/tasks/acts", tag = "tasks", request_body = TaskActs,
    responses(
        (status = 200, description = "What became of each; with `dry_run`, which tasks they would be.", body = TaskActed),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn acts(
    State(api): State<Arc<Api>>,
    known: Known,
    Body(acts): Body<TaskActs>,
) -> Done<Json<TaskActed>> {
    if acts.act != TaskAct::Retry && (acts.deadline.is_some() || acts.recheck) {
        return Err(ApiError::malformed("deadline and recheck: only with retry"));
    }
    let limit = limit(acts.limit)?;
    let acted = api.run(move |api| {
        let caller = &*known.caller;
        api.check(caller, Verb::Tasks, Object::Nothing)?;
        let (tasks, next) = selected(api, caller, &acts, limit)?;
        let mut acted = TaskActed { tasks: tasks.len() as u64, done: 0, items: Vec::new(), next };
        for task in tasks {
            acted.items.push(if acts.dry_run { ActedTask::of(&task, None) } else { one(api, caller, &task, &acts)? });
        }
        acted.done = acted.items.iter().filter(|task| !acts.dry_run && task.why.is_none()).count() as u64;
        if acted.done > 0 {
            api.wrote();
        }
        Ok(Json(acted))
    });
    acted.await
}

/// One page of the tasks that are meant, and where the next one begins.
fn selected(api: &Api, caller: &Caller, acts: &TaskActs, limit: usize) -> Done<(Vec<Task>, Option<String>)> {
    let filter = acts.filter.clone();
    let mut filter = TaskFilter {
        owner: filter.owner,
        states: filter.state,
        label: filter.label,
        endpoint: filter.endpoint,
        source: filter.source,
        destination: filter.destination,
        since: filter.since,
        before: filter.before,
        timer: filter.timer,
        text: filter.q.filter(|text| !text.is_empty()),
        cause: filter.cause,
    };
    if filter == TaskFilter::default() && !acts.filter.all {
        return Err(ApiError::malformed("filter: it names no task; `all` stands for all of yours"));
    }
    if filter.states.is_empty() {
        filter.states = acts.act.states().to_vec();
    }
    match filter.owner.as_deref() {
        // An admin, too, means their own where they do not say whose.
        None => filter.owner = Some(caller.user.clone()),
        Some("*") if caller.is_admin() => filter.owner = None,
        Some("*") => filter.owner = Some(caller.user.clone()),
        Some(_) => {}
    }
    if !narrow(caller, &mut filter) {
        return Ok((Vec::new(), None));
    }
    let mut tasks = api.ledger.tasks(&filter, &Page { after: acts.cursor.clone(), limit: limit + 1 })?;
    let has_more = tasks.len() > limit;
    tasks.truncate(limit);
    let next = tasks.last().filter(|_| has_more).map(|task| task.id.clone());
    tasks.retain(|task| sees(caller, task));
    Ok((tasks, next))
}

/// # Errors
/// Those that end all of it: the service's own.
fn one(api: &Api, caller: &Caller, task: &Task, acts: &TaskActs) -> Done<ActedTask> {
    if acts.act == TaskAct::Resume && task.is_held() && acts.filter.cause.as_deref() != Some(BlockedCause::Guard.name())
    {
        // Whoever resumes many has not looked at the plan of each.
        let why = ApiError::conflict(format!("task {} waits until somebody has looked at its plan", task.id));
        return Ok(ActedTask::of(
            task,
            Some(why.hint("resume it by its identifier, or with the cause guard").problem()),
        ));
    }
    let wish = match acts.act {
        TaskAct::Pause => Wish::Pause,
        TaskAct::Resume => Wish::Resume,
        TaskAct::Retry => Wish::Retry { deadline: acts.deadline, recheck: acts.recheck },
        TaskAct::Cancel => Wish::Cancel,
    };
    match api.wish(caller, &task.id, wish) {
        Ok(task) => Ok(ActedTask::of(&task, None)),
        Err(error) if error.is_of_service() => Err(error),
        Err(error) => Ok(ActedTask::of(task, Some(error.problem()))),
    }
}

impl TaskAct {
    /// The states that it means where none is named.
    fn states(self) -> &'static [TaskState] {
        match self {
            Self::Pause => &[TaskState::Queued, TaskState::Active],
            Self::Resume => &[TaskState::Paused],
            Self::Retry => &[TaskState::Partial, TaskState::Failed],
            Self::Cancel => &[TaskState::Queued, TaskState::Staging, TaskState::Active, TaskState::Paused],
        }
    }
}
