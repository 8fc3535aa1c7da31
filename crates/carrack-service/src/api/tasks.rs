//! Routes of tasks.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use carrack_core::options::check_label;
use serde::Deserialize;
use utoipa::IntoParams;

use super::caller::Known;
use super::extract::{Body, MaybeBody, PathOf, QueryOf, etag, if_match, limit, paged};
use super::problem::{ApiError, Done};
use super::submit::submission_id;
use super::{Api, TaskSize};
use crate::clock::Moment;
use crate::identity::{Caller, Object, places};
use crate::ledger::{LedgerError, NewEvent, Page, TaskChange, TaskFilter, TaskGuard, TaskWindow};
use crate::model::{
    DryRun, EventKind, Listed, NewTask, Problem, Progress, Task, TaskClone, TaskCount, TaskInFlight, TaskRetry,
    TaskSort, TaskState, TaskUpdate, Verb, Windowed,
};

/// How a task is submitted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SubmitQuery {
    /// By what a repetition of the same submission is known, instead of the header `Idempotency-Key`.
    #[param(min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    submission_id: Option<String>,
    /// Check it and tell what may be expected; keep nothing.
    dry_run: Option<bool>,
    /// Bytes that the task would move, as `POST /endpoints/{name}/files/du` counts them. Without them the time that it
    /// takes is told once its first worker has counted the sources.
    bytes: Option<u64>,
    /// With `bytes`: files, links and directories; 1 where it is left out.
    items: Option<u64>,
}

/// Submits a task. The same submission id again gives the same task.
#[utoipa::path(
    post, path = "/tasks", tag = "tasks", params(SubmitQuery, ("Idempotency-Key" = Option<String>, Header,
        description = "By what a repetition of the same submission is known.")),
    request_body = NewTask,
    responses(
        (status = 201, description = "It was accepted.", body = Task),
        (status = 200, description = "It was there already, or was only tried (`dry_run`): then a `DryRun`.", body = Task),
        (status = "default", description = "It was not accepted.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(query): QueryOf<SubmitQuery>,
    headers: HeaderMap,
    Body(request): Body<NewTask>,
) -> Done<Response> {
    let id = submission_id(&headers, query.submission_id)?;
    let size = query.bytes.map(|bytes| TaskSize { bytes, items: query.items.unwrap_or(1) });
    if query.dry_run == Some(true) {
        let tried = api.run(move |api| {
            api.check_task(&known.caller, &request)?;
            let estimate = api.backend.estimate(&request, size, api.now());
            Ok(DryRun::of(estimate))
        });
        return tried.await.map(|tried| Json(tried).into_response());
    }
    let noted = known.noted.clone();
    let submitted = api.run(move |api| api.accept(&known.caller, request, id, size)).await?;
    noted.about(&submitted.task.id);
    let version = etag(submitted.task.version);
    if submitted.duplicate {
        let replay = [("idempotent-replay", HeaderValue::from_static("true"))];
        return Ok((StatusCode::OK, version, replay, Json(submitted.task)).into_response());
    }
    Ok((StatusCode::CREATED, version, Json(submitted.task)).into_response())
}

/// Which tasks are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// States, separated by commas, in any case.
    state: Option<String>,
    /// Whose label contains this, in any case.
    label: Option<String>,
    /// That use this endpoint.
    endpoint: Option<String>,
    /// Whose first pair comes from this endpoint.
    source: Option<String>,
    /// Whose first pair goes to this endpoint.
    destination: Option<String>,
    /// Submitted at this moment or later.
    since: Option<Moment>,
    /// Submitted before this moment.
    before: Option<Moment>,
    /// Of this user; others than oneself for admins alone.
    owner: Option<String>,
    /// Of this timer.
    timer: Option<String>,
    /// That failed with this error code, or wait for this cause.
    cause: Option<String>,
    /// Whose label, identifier or a path of which contains this, in any case.
    q: Option<String>,
    /// With `offset`: `created`, `state`, `bytes`, `rate`, `source`, `destination` or `ended`, with `-` before it for
    /// the greatest first; `-created` where it is left out.
    sort: Option<String>,
    /// Rows from this place in the sorted list on, with the number of all rows: a `Windowed` in place of a page.
    offset: Option<u64>,
    /// Rows of a page, 1 to 1000; 100 where it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

fn states(text: &str) -> Done<Vec<TaskState>> {
    let parse = |word: &str| TaskState::parse(&word.trim().to_ascii_uppercase());
    text.split(',').map(parse).collect::<Result<_, _>>().map_err(|why| ApiError::malformed(format!("state: {why}")))
}

/// Lists tasks, the latest first.
#[utoipa::path(
    get, path = "/tasks", tag = "tasks", params(ListQuery),
    responses(
        (status = 200, description = "One page; with `offset`, a `Windowed`.", body = Listed<Task>),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(query): QueryOf<ListQuery>,
) -> Done<Response> {
    let limit = limit(query.limit)?;
    let states = query.state.as_deref().map(states).transpose()?.unwrap_or_default();
    let window = window(&query, limit)?;
    let page = Page { after: query.cursor, limit: limit + 1 };
    let mut filter = TaskFilter {
        owner: query.owner,
        states,
        label: query.label,
        endpoint: query.endpoint,
        source: query.source,
        destination: query.destination,
        since: query.since,
        before: query.before,
        timer: query.timer,
        text: query.q.filter(|text| !text.is_empty()),
        cause: query.cause,
    };
    let listed = api.run(move |api| {
        let caller = &known.caller;
        api.check(caller, Verb::View, Object::Nothing)?;
        let is_empty = !narrow(caller, &mut filter);
        if let Some(window) = window {
            // How many rows there are would tell of those that lie outside of the token's path.
            api.check(caller, Verb::View, Object::Figures { of_all: false })?;
            let (items, total) =
                if is_empty { Default::default() } else { api.ledger.task_window(&filter, &window)? };
            let mut windowed = Windowed { items, offset: window.offset, total, complete: true };
            windowed.items.iter_mut().for_each(|task| api.backend.complete(task));
            return Ok(Json(windowed).into_response());
        }
        if is_empty {
            return Ok(Json(Listed::<Task> { items: Vec::new(), next: None }).into_response());
        }
        let mut listed = paged(api.ledger.tasks(&filter, &page)?, limit, |task| task.id.clone());
        listed.items.retain(|task| sees(caller, task));
        listed.items.iter_mut().for_each(|task| api.backend.complete(task));
        Ok(Json(listed).into_response())
    });
    listed.await
}

/// The window that a query asks for; none: it asks for a page.
fn window(query: &ListQuery, limit: usize) -> Done<Option<TaskWindow>> {
    let Some(offset) = query.offset else {
        return match query.sort {
            Some(_) => Err(ApiError::malformed("sort: with offset; pages come by the time of submission")),
            None => Ok(None),
        };
    };
    if query.cursor.is_some() {
        return Err(ApiError::malformed("offset: not together with cursor"));
    }
    let text = query.sort.as_deref().unwrap_or("-created");
    let (descending, word) = text.strip_prefix('-').map_or((false, text), |word| (true, word));
    let sort = TaskSort::parse(word).map_err(|why| ApiError::malformed(format!("sort: {why}")))?;
    Ok(Some(TaskWindow { sort, descending, offset, limit }))
}

/// Leaves of a filter what the caller may see; whether there can be anything.
pub(super) fn narrow(caller: &Caller, filter: &mut TaskFilter) -> bool {
    match &filter.owner {
        _ if caller.is_admin() => {}
        // There are no tasks of others, as far as the caller can tell.
        Some(owner) if *owner != caller.user => return false,
        _ => filter.owner = Some(caller.user.clone()),
    }
    let Some(scope) = caller.scope.as_ref().filter(|scope| scope.is_placed()) else { return true };
    match (&filter.endpoint, &scope.endpoints[..]) {
        (Some(endpoint), _) => return scope.has_endpoint(endpoint),
        (None, [only]) => filter.endpoint = Some(only.clone()),
        // Of each row it is looked at by itself whether it is within.
        (None, _) => {}
    }
    true
}

/// Whether a row of a list is shown: without a line in the log for each that is not.
pub(super) fn sees(caller: &Caller, task: &Task) -> bool {
    use crate::identity::{Action, Verdict, may};
    let places = if caller.is_scoped() { places(&task.request) } else { Vec::new() };
    let object = Object::Row { owner: &task.owner, places: &places };
    may(caller, &Action { verb: Verb::View, object }).verdict == Verdict::Allowed
}

impl Api {
    /// A task that the caller may see, or change.
    pub(super) fn task_of(&self, caller: &Caller, id: &str, verb: Verb) -> Done<Task> {
        // First what does not depend on the task: whether there is one must not show in the answer.
        self.check(caller, verb, Object::Nothing)?;
        let task = self.ledger.task(id)?;
        let places = if caller.is_scoped() { places(&task.request) } else { Vec::new() };
        self.check(caller, verb, Object::Row { owner: &task.owner, places: &places })?;
        Ok(task)
    }

    fn task_event(caller: &Caller, task: &Task, kind: EventKind, text: impl Into<String>) -> NewEvent {
        NewEvent {
            kind,
            owner: task.owner.clone(),
            task: Some(task.id.clone()),
            subject: None,
            text: text.into(),
            detail: serde_json::json!({ "by": caller.user, "via": caller.via }),
        }
    }

    /// Asks for the end of a task. What waits ends at once; a worker is told by the loop.
    pub(super) fn cancel_task(&self, caller: &Caller, task: &Task, why: &str) -> Result<Task, LedgerError> {
        let waits = TaskGuard { states: vec![TaskState::Queued, TaskState::Paused], ..TaskGuard::default() };
        let ended =
            TaskChange { state: Some(TaskState::Cancelled), cancel_wanted: Some(true), ..TaskChange::default() };
        let mut event = Self::task_event(caller, task, EventKind::Ended, why);
        event.detail["state"] = TaskState::Cancelled.name().into();
        match self.ledger.change_task(&task.id, &waits, &ended, &[event], self.now()) {
            Err(LedgerError::Conflict(_)) => {}
            other => return other,
        }
        let open = [TaskState::Queued, TaskState::Paused, TaskState::Active, TaskState::Cancelling, TaskState::Staging];
        let wanted = TaskChange { cancel_wanted: Some(true), ..TaskChange::default() };
        let guard = TaskGuard { states: open.to_vec(), ..TaskGuard::default() };
        let event = Self::task_event(caller, task, EventKind::Cancelling, why);
        self.ledger.change_task(&task.id, &guard, &wanted, &[event], self.now())
    }

    fn answer(&self, mut task: Task) -> Response {
        self.backend.complete(&mut task);
        task.in_flight = self.backend.in_flight(&task);
        (etag(task.version), Json(task)).into_response()
    }
}

/// Shows a task.
#[utoipa::path(
    get, path = "/tasks/{id}", tag = "tasks", params(("id" = String, Path, description = "The task.")),
    responses(
        (status = 200, description = "The task; `ETag` is its version.", body = Task),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(State(api): State<Arc<Api>>, known: Known, PathOf(id): PathOf<String>) -> Done<Response> {
    api.run(move |api| api.task_of(&known.caller, &id, Verb::View).map(|task| api.answer(task))).await
}

/// Shows the files in flight of a task: large ones that arrive now. Asked every other second, it costs less than the
/// whole task.
#[utoipa::path(
    get, path = "/tasks/{id}/in-flight", tag = "tasks", params(("id" = String, Path, description = "The task.")),
    responses(
        (status = 200, description = "The files; none where the task does not run.", body = TaskInFlight),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn in_flight(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
) -> Done<Json<TaskInFlight>> {
    let files = api.run(move |api| {
        let task = api.task_of(&known.caller, &id, Verb::View)?;
        Ok(TaskInFlight { files: api.backend.in_flight(&task) })
    });
    Ok(Json(files.await?))
}

/// Changes label, deadline or priority of a task that has not ended.
#[utoipa::path(
    patch, path = "/tasks/{id}", tag = "tasks", params(("id" = String, Path, description = "The task."),
        ("If-Match" = Option<String>, Header, description = "Change only this version.")),
    request_body = TaskUpdate,
    responses(
        (status = 200, description = "The task as it is now.", body = Task),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn update(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    Body(update): Body<TaskUpdate>,
) -> Done<Response> {
    let version = if_match(&headers)?;
    if let Some(Some(label)) = &update.label {
        check_label(label).map_err(|why| ApiError::malformed(format!("label: {why}")))?;
    }
    let changed = api.run(move |api| {
        let task = api.task_of(&known.caller, &id, Verb::Tasks)?;
        if update.deadline.flatten().is_some_and(|deadline| deadline <= api.now()) {
            return Err(ApiError::malformed("the deadline is over already"));
        }
        if task.state.has_ended() {
            return Err(ApiError::conflict("the task has ended"));
        }
        let change = TaskChange {
            label: update.label,
            deadline: update.deadline,
            priority: update.priority,
            ..TaskChange::default()
        };
        let event = Api::task_event(&known.caller, &task, EventKind::Updated, "label, deadline or priority changed");
        let guard = TaskGuard { version, ..TaskGuard::default() };
        let task = changed(api, &id, version, api.ledger.change_task(&id, &guard, &change, &[event], api.now()))?;
        api.wrote();
        Ok(api.answer(task))
    });
    changed.await
}

/// A change, or why it is not: another version is told from a state that does not allow it.
fn changed(api: &Api, id: &str, version: Option<u64>, change: Result<Task, LedgerError>) -> Done<Task> {
    if let (Err(LedgerError::Conflict(_)), Some(version)) = (&change, version) {
        let now = api.ledger.task(id)?.version;
        if now != version {
            return Err(ApiError::version_differs(now));
        }
    }
    Ok(change?)
}

/// What is asked for by a change of a task.
#[derive(Clone, Copy)]
pub(super) enum Wish {
    Pause,
    Resume,
    Retry { deadline: Option<Option<Moment>>, recheck: bool },
    Cancel,
}

impl Api {
    /// Does what somebody asks of a task. Whoever calls it says that something was written.
    pub(super) fn wish(&self, caller: &Caller, id: &str, wish: Wish) -> Done<Task> {
        let task = self.task_of(caller, id, Verb::Tasks)?;
        let event = |kind, text: &str| Self::task_event(caller, &task, kind, text);
        let open = |states: &[TaskState]| TaskGuard { states: states.to_vec(), ..TaskGuard::default() };
        let task = match wish {
            Wish::Pause if (task.pause_wanted && !task.state.has_ended()) || task.state == TaskState::Paused => task,
            Wish::Pause => {
                let change = TaskChange { pause_wanted: Some(true), ..TaskChange::default() };
                let guard = open(&[TaskState::Queued, TaskState::Active]);
                let event = event(EventKind::Paused, "somebody asked for the task to wait");
                self.ledger.change_task(id, &guard, &change, &[event], self.now())?
            }
            Wish::Resume => {
                if task.is_held() {
                    // Whoever confirms a deletion orders it.
                    self.check_task(caller, &bare(&task.request))?;
                    self.backend.confirm(&task).map_err(ApiError::internal)?;
                }
                // Whatever else kept it waiting, somebody wants it to go on now.
                let blocked = (task.state == TaskState::Queued).then_some(None);
                let change = TaskChange { pause_wanted: Some(false), blocked, ..TaskChange::default() };
                let guard = open(&[TaskState::Queued, TaskState::Active, TaskState::Paused]);
                let event = event(EventKind::Resumed, "somebody asked for the task to go on");
                self.ledger.change_task(id, &guard, &change, &[event], self.now())?
            }
            Wish::Retry { deadline, recheck } => self.retry_task(caller, &task, deadline, recheck)?,
            Wish::Cancel if task.cancel_wanted && !task.state.has_ended() => task,
            Wish::Cancel => self.cancel_task(caller, &task, "somebody asked for the end of the task")?,
        };
        Ok(task)
    }

    fn retry_task(&self, caller: &Caller, task: &Task, deadline: Option<Option<Moment>>, recheck: bool) -> Done<Task> {
        self.check_task(caller, &NewTask { deadline: deadline.flatten(), ..bare(&task.request) })?;
        if deadline.is_none() {
            check_passed(task, self.now(), "carrack task retry")?;
        }
        if recheck && !task.state.has_ended() {
            return Err(ApiError::conflict(format!("task {} is {}: it has not ended", task.id, task.state.name())));
        }
        if recheck {
            self.backend.recheck(&task.id).map_err(ApiError::internal)?;
        }
        let event = Self::task_event(caller, task, EventKind::Queued, "what failed is tried again");
        Ok(self.ledger.reopen(&task.id, self.now(), deadline, &event)?)
    }
}

/// Refuses what would fail at once.
fn check_passed(task: &Task, now: Moment, command: &str) -> Done<()> {
    let Some(deadline) = task.request.deadline.filter(|deadline| *deadline <= now) else { return Ok(()) };
    let hint = format!("give it another: {command} {} --deadline 12h; or none: --no-deadline", task.id);
    Err(ApiError::conflict(format!("the deadline of task {} has passed ({deadline})", task.id)).hint(hint))
}

async fn act(api: Arc<Api>, known: Known, id: String, wish: Wish) -> Done<Response> {
    let done = api.run(move |api| {
        let task = api.wish(&known.caller, &id, wish)?;
        api.wrote();
        Ok(api.answer(task))
    });
    done.await
}

/// A request as its owner wrote it, without what the service has set, and without a deadline.
pub(super) fn bare(request: &NewTask) -> NewTask {
    NewTask { timer: None, guard: None, token: None, ceilings: Default::default(), deadline: None, ..request.clone() }
}

macro_rules! action {
    ($(#[$doc:meta])* $name:ident $path:literal $wish:ident) => {
        $(#[$doc])*
        #[utoipa::path(
            post, path = $path, tag = "tasks", params(("id" = String, Path, description = "The task.")),
            responses(
                (status = 200, description = "The task as it is now.", body = Task),
                (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
            )
        )]
        pub(super) async fn $name(
            State(api): State<Arc<Api>>,
            known: Known,
            PathOf(id): PathOf<String>,
        ) -> Done<Response> {
            act(api, known, id, Wish::$wish).await
        }
    };
}

action! {
    /// Has a task wait until somebody resumes it. Its worker ends at a point from which it can go on.
    pause "/tasks/{id}/pause" Pause
}
action! {
    /// Has a paused task go on; one that waits for another attempt, or for a confirmation, goes on at once. One that a
    /// guard has paused does what its plan shows, and is paused again where there would be more.
    resume "/tasks/{id}/resume" Resume
}
/// Tries again what failed of a task that has ended without success. What counts as done is compared with what is at
/// the destination; what is gone or has changed is copied again.
#[utoipa::path(
    post, path = "/tasks/{id}/retry", tag = "tasks", params(("id" = String, Path, description = "The task.")),
    request_body = Option<TaskRetry>,
    responses(
        (status = 200, description = "The task as it is now.", body = Task),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn retry(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    MaybeBody(TaskRetry { deadline, recheck }): MaybeBody<TaskRetry>,
) -> Done<Response> {
    act(api, known, id, Wish::Retry { deadline, recheck }).await
}
action! {
    /// Ends a task. What is done stays.
    cancel "/tasks/{id}/cancel" Cancel
}

/// Cancels all tasks of the caller that have not ended.
#[utoipa::path(
    post, path = "/tasks/cancel", tag = "tasks",
    responses(
        (status = 200, description = "How many there were.", body = TaskCount),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel_all(State(api): State<Arc<Api>>, known: Known) -> Done<Json<TaskCount>> {
    let cancelled = api.run(move |api| {
        let caller = &*known.caller;
        api.check(caller, Verb::Tasks, Object::Nothing)?;
        let mut count = TaskCount { tasks: 0 };
        for (task, _) in api.ledger.open_tasks()? {
            if task.owner == caller.user && !task.cancel_wanted && sees(caller, &task) {
                match api.cancel_task(caller, &task, "somebody asked for the end of all their tasks") {
                    Ok(_) => count.tasks += 1,
                    // It has ended meanwhile.
                    Err(LedgerError::Conflict(_) | LedgerError::Missing) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        api.wrote();
        Ok(count)
    });
    cancelled.await.map(Json)
}

/// Submits a task once more, as a new one. It has the deadline of the first, unless another is given; with `run`, what
/// a preview has planned is done.
#[utoipa::path(
    post, path = "/tasks/{id}/clone", tag = "tasks", params(("id" = String, Path, description = "The task.")),
    request_body = Option<TaskClone>,
    responses(
        (status = 201, description = "The new task.", body = Task),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn clone(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    MaybeBody(TaskClone { deadline, run }): MaybeBody<TaskClone>,
) -> Done<Response> {
    let submitted = api.run(move |api| {
        let task = api.task_of(&known.caller, &id, Verb::View)?;
        if task.is_held() {
            let hint = format!("do what its plan shows: carrack task resume {id}; or: carrack task cancel {id}");
            return Err(ApiError::conflict(format!("task {id} waits for somebody to look at its plan")).hint(hint));
        }
        if deadline.is_none() {
            check_passed(&task, api.now(), "carrack task clone")?;
        }
        let deadline = deadline.unwrap_or(task.request.deadline);
        // It moves as much as the first, unless the sources have changed.
        let Progress { bytes_total: bytes, items_total: items, scan_complete, .. } = task.progress;
        let size = scan_complete.then_some(TaskSize { bytes, items });
        let preview = task.request.preview && !run;
        api.accept(&known.caller, NewTask { deadline, preview, ..bare(&task.request) }, None, size)
    });
    let task = submitted.await?.task;
    Ok((StatusCode::CREATED, etag(task.version), Json(task)).into_response())
}
