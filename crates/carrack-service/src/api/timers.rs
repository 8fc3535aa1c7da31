//! Routes of timers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use carrack_core::options::check_label;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::caller::Known;
use super::extract::{Body, PathOf, QueryOf, etag, if_match, limit, paged};
use super::problem::{ApiError, Done};
use crate::clock::Moment;
use crate::identity::{Action, Caller, Object, Verdict, may, places};
use crate::ledger::{LedgerError, NewEvent, Page};
use crate::model::{EventKind, Listed, NewTimer, Problem, Timer, TimerState, TimerUpdate, Verb, new_id};
use crate::schedule::timer::put_off;

/// How often a change is tried again where the loop has changed the timer meanwhile.
const TRIES: u32 = 5;

/// Which timers are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Of this user; others than oneself for admins alone.
    owner: Option<String>,
    /// Rows of a page, 1 to 1000; 100 where it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

fn decide(caller: &Caller, timer: &Timer, verb: Verb) -> crate::identity::Decision {
    let places = if caller.is_scoped() { places(&timer.task) } else { Vec::new() };
    may(caller, &Action { verb, object: Object::Row { owner: &timer.owner, places: &places } })
}

/// A timer that the caller may see, or change.
fn timer_of(api: &Api, caller: &Caller, id: &str, verb: Verb) -> Done<Timer> {
    // First what does not depend on the timer: whether there is one must not show in the answer.
    api.check(caller, verb, Object::Nothing)?;
    let timer = api.ledger.timer(id)?;
    let places = if caller.is_scoped() { places(&timer.task) } else { Vec::new() };
    api.check(caller, verb, Object::Row { owner: &timer.owner, places: &places })?;
    Ok(timer)
}

fn event(caller: &Caller, timer: &Timer, kind: EventKind, text: &str) -> NewEvent {
    NewEvent {
        kind,
        owner: timer.owner.clone(),
        task: None,
        subject: Some(timer.id.clone()),
        text: text.to_owned(),
        detail: serde_json::json!({ "by": caller.user, "next_run": timer.next_run }),
    }
}

/// Lists timers, the latest first.
#[utoipa::path(
    get, path = "/timers", tag = "timers", params(ListQuery),
    responses(
        (status = 200, description = "One page.", body = Listed<Timer>),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(query): QueryOf<ListQuery>,
) -> Done<Json<Listed<Timer>>> {
    let limit = limit(query.limit)?;
    let listed = api.run(move |api| {
        let caller = &known.caller;
        api.check(caller, Verb::View, Object::Nothing)?;
        let owner = match query.owner {
            owner if caller.is_admin() => owner,
            Some(owner) if owner != caller.user => return Ok(Listed { items: Vec::new(), next: None }),
            _ => Some(caller.user.clone()),
        };
        let rows = api.ledger.timers(owner.as_deref(), &Page { after: query.cursor, limit: limit + 1 })?;
        let mut listed = paged(rows, limit, |timer| timer.id.clone());
        listed.items.retain(|timer| decide(caller, timer, Verb::View).verdict == Verdict::Allowed);
        Ok(listed)
    });
    listed.await.map(Json)
}

/// Makes a timer. What it submits is checked now, and again at each run.
#[utoipa::path(
    post, path = "/timers", tag = "timers", request_body = NewTimer,
    responses(
        (status = 201, description = "The timer.", body = Timer),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add(State(api): State<Arc<Api>>, known: Known, Body(new): Body<NewTimer>) -> Done<Response> {
    let added = api.run(move |api| {
        let caller = &*known.caller;
        if let Some(label) = &new.label {
            check_label(label).map_err(|why| ApiError::malformed(format!("label: {why}")))?;
        }
        if new.task.deadline.is_some() {
            return Err(ApiError::malformed("a task that is submitted again and again has no one deadline"));
        }
        api.check_task(caller, &new.task)?;
        let now = api.now();
        let first = api.backend.first_run(&new.schedule, now);
        let first = first.map_err(|why| ApiError::malformed(format!("schedule: {why}")))?;
        let mut timer = Timer {
            id: new_id(),
            owner: caller.user.clone(),
            label: new.label,
            schedule: new.schedule,
            task: Api::stamped(caller, new.task),
            state: TimerState::Waiting,
            next_run: Some(first),
            runs: 0,
            last_task: None,
            made: now,
            version: 1,
        };
        timer.next_run = timer.next_run.map(|first| put_off(&timer, first));
        tracing::info!(target: "carrack::audit", user = %caller.user, timer = %timer.id, "timer made");
        known.noted.about(&timer.id);
        api.ledger.add_timer(&timer, &event(caller, &timer, EventKind::TimerMade, "a timer was made"))?;
        api.wrote();
        Ok(api.ledger.timer(&timer.id)?)
    });
    let timer = added.await?;
    Ok((StatusCode::CREATED, etag(timer.version), Json(timer)).into_response())
}

/// Shows a timer.
#[utoipa::path(
    get, path = "/timers/{id}", tag = "timers", params(("id" = String, Path, description = "The timer.")),
    responses(
        (status = 200, description = "The timer; `ETag` is its version.", body = Timer),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(State(api): State<Arc<Api>>, known: Known, PathOf(id): PathOf<String>) -> Done<Response> {
    let timer = api.run(move |api| timer_of(api, &known.caller, &id, Verb::View)).await?;
    Ok((etag(timer.version), Json(timer)).into_response())
}

/// Changes a timer: its label, its schedule, what it submits. What it has submitted goes on as it was. The next run
/// comes by the new schedule; a paused timer stays so.
#[utoipa::path(
    patch, path = "/timers/{id}", tag = "timers", params(("id" = String, Path, description = "The timer."),
        ("If-Match" = Option<String>, Header, description = "Change only this version.")),
    request_body = TimerUpdate,
    responses(
        (status = 200, description = "The timer as it is now.", body = Timer),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn update(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    Body(update): Body<TimerUpdate>,
) -> Done<Response> {
    let version = if_match(&headers)?;
    let changed = api.run(move |api| {
        let caller = &*known.caller;
        for _ in 0..TRIES {
            let timer = timer_of(api, caller, &id, Verb::Tasks)?;
            if version.is_some_and(|version| version != timer.version) {
                return Err(ApiError::version_differs(timer.version));
            }
            let timer = updated(api, caller, timer, update.clone())?;
            let event = event(caller, &timer, EventKind::Updated, "a timer was changed");
            match api.ledger.change_timer(&timer, None, &event, api.now()) {
                Ok(_) => {
                    tracing::info!(target: "carrack::audit", user = %caller.user, timer = %timer.id, "timer changed");
                    api.wrote();
                    return Ok(api.ledger.timer(&id)?);
                }
                // It has run meanwhile.
                Err(LedgerError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApiError::conflict("the timer changes all the time"))
    });
    let timer = changed.await?;
    Ok((etag(timer.version), Json(timer)).into_response())
}

/// A timer with what somebody wants of it.
fn updated(api: &Api, caller: &Caller, mut timer: Timer, update: TimerUpdate) -> Done<Timer> {
    if let Some(label) = update.label {
        label.as_deref().map_or(Ok(()), check_label).map_err(|why| ApiError::malformed(format!("label: {why}")))?;
        timer.label = label;
    }
    if let Some(task) = update.task {
        if task.deadline.is_some() {
            return Err(ApiError::malformed("a task that is submitted again and again has no one deadline"));
        }
        api.check_task(caller, &task)?;
        timer.task = Api::stamped(caller, task);
    }
    if let Some(schedule) = update.schedule {
        let now = api.now();
        if schedule.runs.is_some_and(|most| most <= timer.runs) {
            return Err(ApiError::malformed(format!("schedule: there were {} runs already", timer.runs)));
        }
        // The schedule as a whole is judged as that of a new timer.
        let first = api.backend.first_run(&schedule, now);
        let first = first.map_err(|why| ApiError::malformed(format!("schedule: {why}")))?;
        timer.schedule = schedule;
        let next = match timer.runs {
            // What begins at once is not put off.
            0 => Some(if first == now { first } else { put_off(&timer, first) }),
            _ => next_run(api, &timer, now)?,
        };
        let Some(next) = next else {
            return Err(ApiError::malformed("schedule: by it no more runs come: pause or remove the timer"));
        };
        if timer.state == TimerState::Ended {
            timer.state = TimerState::Waiting;
        }
        timer.next_run = (timer.state == TimerState::Waiting).then_some(next);
    }
    Ok(timer)
}

fn next_run(api: &Api, timer: &Timer, now: Moment) -> Done<Option<Moment>> {
    api.backend.next_run(timer, now).map_err(|why| ApiError::malformed(format!("schedule: {why}")))
}

async fn change(api: Arc<Api>, known: Known, id: String, pause: bool) -> Done<Response> {
    let changed = api.run(move |api| {
        let caller = &*known.caller;
        for _ in 0..TRIES {
            let mut timer = timer_of(api, caller, &id, Verb::Tasks)?;
            let text = match (timer.state, pause) {
                (TimerState::Ended, _) => return Err(ApiError::conflict("no more runs of this timer come")),
                (TimerState::Waiting, false) | (TimerState::Paused, true) => return Ok(timer),
                (TimerState::Waiting, true) => {
                    timer.state = TimerState::Paused;
                    timer.next_run = None;
                    "a timer was paused"
                }
                (TimerState::Paused, false) => {
                    api.check_task(caller, &super::tasks::bare(&timer.task))?;
                    let next = api.backend.next_run(&timer, api.now()).map_err(ApiError::conflict)?;
                    let Some(next) = next else { return Err(ApiError::conflict("no more runs of this timer come")) };
                    timer.state = TimerState::Waiting;
                    timer.next_run = Some(next);
                    "a timer goes on"
                }
            };
            let event = event(caller, &timer, EventKind::Updated, text);
            match api.ledger.change_timer(&timer, None, &event, api.now()) {
                Ok(_) => {
                    api.wrote();
                    return Ok(api.ledger.timer(&id)?);
                }
                // It has run meanwhile.
                Err(LedgerError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApiError::conflict("the timer changes all the time"))
    });
    let timer = changed.await?;
    Ok((etag(timer.version), Json(timer)).into_response())
}

/// Pauses a timer: no runs come until it is resumed, and those that would have come meanwhile are left out.
#[utoipa::path(
    post, path = "/timers/{id}/pause", tag = "timers", params(("id" = String, Path, description = "The timer.")),
    responses(
        (status = 200, description = "The timer as it is now.", body = Timer),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pause(State(api): State<Arc<Api>>, known: Known, PathOf(id): PathOf<String>) -> Done<Response> {
    change(api, known, id, true).await
}

/// Has a paused timer go on with its next run.
#[utoipa::path(
    post, path = "/timers/{id}/resume", tag = "timers", params(("id" = String, Path, description = "The timer.")),
    responses(
        (status = 200, description = "The timer as it is now.", body = Timer),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume(State(api): State<Arc<Api>>, known: Known, PathOf(id): PathOf<String>) -> Done<Response> {
    change(api, known, id, false).await
}

/// Has a timer run now, beside its schedule: its run comes as one that is due, and counts. The next one comes by the
/// schedule, also one that is put off and waits. What happens where the task of the run before has not ended is as
/// `overlap` says.
#[utoipa::path(
    post, path = "/timers/{id}/run", tag = "timers", params(("id" = String, Path, description = "The timer.")),
    responses(
        (status = 200, description = "The timer as it is now: its next run is due.", body = Timer),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn run(State(api): State<Arc<Api>>, known: Known, PathOf(id): PathOf<String>) -> Done<Response> {
    let due = api.run(move |api| {
        let caller = &*known.caller;
        for _ in 0..TRIES {
            let mut timer = timer_of(api, caller, &id, Verb::Tasks)?;
            match timer.state {
                TimerState::Waiting => {}
                TimerState::Paused => {
                    return Err(ApiError::conflict("the timer is paused: resume it, and have it run"));
                }
                TimerState::Ended => return Err(ApiError::conflict("no more runs of this timer come")),
            }
            api.check_task(caller, &super::tasks::bare(&timer.task))?;
            timer.next_run = Some(api.now());
            let event = event(caller, &timer, EventKind::Updated, "a timer was told to run now");
            match api.ledger.change_timer(&timer, None, &event, api.now()) {
                Ok(_) => {
                    tracing::info!(target: "carrack::audit", user = %caller.user, timer = %timer.id, "timer runs now");
                    api.wrote();
                    return Ok(api.ledger.timer(&id)?);
                }
                // It has run meanwhile.
                Err(LedgerError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApiError::conflict("the timer changes all the time"))
    });
    let timer = due.await?;
    Ok((etag(timer.version), Json(timer)).into_response())
}

/// Removes a timer. Its tasks stay.
#[utoipa::path(
    delete, path = "/timers/{id}", tag = "timers", params(("id" = String, Path, description = "The timer.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn remove(State(api): State<Arc<Api>>, known: Known, PathOf(id): PathOf<String>) -> Done<StatusCode> {
    let removed = api.run(move |api| {
        let timer = timer_of(api, &known.caller, &id, Verb::Tasks)?;
        let event = event(&known.caller, &timer, EventKind::TimerEnded, "a timer was removed");
        api.ledger.remove_timer(&id, &event, api.now())?;
        api.wrote();
        Ok(StatusCode::NO_CONTENT)
    });
    removed.await
}
