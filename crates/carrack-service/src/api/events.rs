//! Events: as a list behind an identifier, or as a stream of server-sent events that goes on. Both give the same rows.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tokio::time::Instant;
use utoipa::IntoParams;

use super::Api;
use super::caller::Known;
use super::extract::{PathOf, QueryOf, limit};
use super::problem::{ApiError, Done};
use super::stream::{Pieces, channel};
use crate::identity::{Caller, Object};
use crate::ledger::EventFilter;
use crate::model::{Event, Listed, Problem, Scope, Verb};

/// Rows that are read and sent at once.
const BATCH: usize = 500;
/// A sign of life, for proxies and readers.
const ALIVE: Duration = Duration::from_secs(15);
/// How often it is looked whether the reader is still let in, and for events that nobody has told of.
const LOOK: Duration = Duration::from_secs(2);

/// Which events are meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Those behind this one; 0, and what is left out: from the oldest that is kept. `latest`: only those to come,
    /// behind the number that `next`, or the stream's first `id`, tells. `Last-Event-ID` goes before it.
    #[param(value_type = Option<String>)]
    since: Option<Since>,
    /// Of this task.
    task: Option<String>,
    /// Rows of a page, 1 to 1000; 100 where it is left out. Without meaning for a stream.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before; the same as `since`.
    cursor: Option<u64>,
}

/// Behind which event a list or a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// The one with this number.
    Event(u64),
    /// The last one that there is.
    Latest,
}

impl<'de> Deserialize<'de> for Since {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "latest" => Ok(Self::Latest),
            text => {
                text.parse().map(Self::Event).map_err(|_| D::Error::custom("since: the number of an event, or latest"))
            }
        }
    }
}

/// Lists events of the caller (of everybody, for admins), the earliest first; with `Accept: text/event-stream` as a
/// stream that goes on, each with its `id`, so that `Last-Event-ID` goes on behind the last one that was read.
#[utoipa::path(
    get, path = "/events", tag = "events",
    params(EventsQuery, ("Last-Event-ID" = Option<u64>, Header, description = "The last event that was read.")),
    responses(
        (status = 200, description = "One page, or a stream.", content((Listed<Event> = "application/json"),
            (String = "text/event-stream"))),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(query): QueryOf<EventsQuery>,
    headers: HeaderMap,
) -> Done<Response> {
    events(api, known, query, &headers).await
}

/// Lists events of a task, as `/events` does.
#[utoipa::path(
    get, path = "/tasks/{id}/events", tag = "events",
    params(("id" = String, Path, description = "The task."), EventsQuery),
    responses(
        (status = 200, description = "One page, or a stream.", content((Listed<Event> = "application/json"),
            (String = "text/event-stream"))),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_of_task(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<EventsQuery>,
    headers: HeaderMap,
) -> Done<Response> {
    if query.task.as_ref().is_some_and(|task| *task != id) {
        return Err(ApiError::malformed("task: the path names another one"));
    }
    events(api, known, EventsQuery { task: Some(id), ..query }, &headers).await
}

async fn events(api: Arc<Api>, known: Known, query: EventsQuery, headers: &HeaderMap) -> Done<Response> {
    let limit = limit(query.limit)?;
    let last = match headers.get("last-event-id").map(|value| value.to_str().ok().and_then(|text| text.parse().ok())) {
        Some(None) => return Err(ApiError::malformed("Last-Event-ID is the number of an event")),
        Some(last) => last,
        None => None,
    };
    let since = last.or(query.cursor).map(Since::Event).or(query.since).unwrap_or(Since::Event(0));
    let (caller, task) = (Arc::clone(&known.caller), query.task.clone());
    let filter = api.run(move |api| filter(api, &caller, task, since)).await?;
    let latest = (since == Since::Latest).then_some(filter.since);
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accept.contains("text/event-stream") {
        let listed = api.run(move |api| {
            let mut rows = api.ledger.events(&filter, limit + 1)?;
            let has_more = rows.len() > limit;
            rows.truncate(limit);
            let next = rows.last().filter(|_| has_more).map(|event| event.id).or(latest.filter(|_| rows.is_empty()));
            let next = next.map(|id| id.to_string());
            Ok(Listed { items: rows, next })
        });
        return listed.await.map(|listed| Json(listed).into_response());
    }
    let place = api.stream(&known, 1)?;
    let (pieces, body) = channel();
    tokio::spawn(async move {
        let _place = place;
        // So that the reader knows at once that the stream stands, and where.
        let stands = latest.map_or_else(String::new, |id| format!("id: {id}\n"));
        if pieces.send(format!(": carrack\n{stands}\n")).await {
            follow(&api, &known.caller, filter, &pieces).await;
        }
    });
    // Proxies must not collect what is to be seen at once.
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((headers, body).into_response())
}

fn filter(api: &Api, caller: &Caller, task: Option<String>, since: Since) -> Done<EventFilter> {
    let owner = (!caller.is_admin()).then(|| caller.user.clone());
    match &task {
        Some(task) => drop(api.task_of(caller, task, Verb::View)?),
        None => {
            api.check(caller, Verb::View, Object::Nothing)?;
            // An event that is of no task names no place: a token for one place reads events of its tasks.
            if caller.scope.as_ref().is_some_and(Scope::is_placed) {
                let rule = "scope-one-endpoint";
                let error = ApiError::forbidden(rule).hint("name a task: /tasks/ID/events");
                return Err(api.refused(caller, Verb::View, rule, error));
            }
        }
    }
    let since = match since {
        Since::Event(id) => id,
        Since::Latest => api.ledger.event_range()?.0,
    };
    Ok(EventFilter { since, owner, task })
}

/// Sends events until nobody reads any more, the reader is not let in any more, or the service ends.
async fn follow(api: &Arc<Api>, caller: &Arc<Caller>, mut filter: EventFilter, pieces: &Pieces) {
    let mut changed = api.changed.subscribe();
    let mut stopping = api.stopping.subscribe();
    let (mut looked, mut told) = (Instant::now(), Instant::now());
    loop {
        changed.mark_unchanged();
        let wanted = filter.clone();
        let Ok(rows) = api.run(move |api| Ok(api.ledger.events(&wanted, BATCH)?)).await else { return };
        let (count, mut text) = (rows.len(), String::new());
        for event in rows {
            filter.since = event.id;
            if let Ok(data) = serde_json::to_string(&event) {
                text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", event.id, event.kind.name()));
            }
        }
        if text.is_empty() && told.elapsed() >= ALIVE {
            text.push_str(": alive\n\n");
        }
        if !text.is_empty() {
            told = Instant::now();
            if !pieces.send(text).await {
                return;
            }
        }
        if *stopping.borrow() {
            return;
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if !api.is_still_known(caller).await {
                return;
            }
        }
        if count < BATCH {
            tokio::select! {
                () = pieces.closed() => return,
                _ = stopping.changed() => {}
                _ = changed.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}
