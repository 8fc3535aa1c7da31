//! Metrics in Prometheus' text form. No user and no path is a label. The number of values is bounded: by what the
//! program itself has words for, and of places and timers by a number (`place_metrics`).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::Api;
use super::caller::Known;
use super::counters::{head, line};
use super::problem::Done;
use crate::identity::Object;
use crate::model::{TaskState, Verb};

/// Counts requests by the route that they match.
pub(super) async fn count(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    // What a client makes up is no label.
    let method = match request.method().as_str() {
        method @ ("GET" | "HEAD" | "POST" | "PATCH" | "DELETE" | "PUT" | "OPTIONS") => method.to_owned(),
        _ => "other".to_owned(),
    };
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    api.metrics.answered(&method, &route, response.status().as_u16(), began.elapsed());
    response
}

/// Shows the metrics, for a token with the verb `metrics` of an admin.
pub(super) async fn show(State(api): State<Arc<Api>>, known: Known) -> Done<Response> {
    let text = api.run(move |api| {
        api.check(&known.caller, Verb::Metrics, Object::Service)?;
        let mut text = String::new();
        head(&mut text, "carrack_build_info", "gauge", "The program that runs.");
        line(&mut text, "carrack_build_info", concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1);
        let mut states: BTreeMap<&str, u64> = TaskState::ALL.iter().map(|state| (state.name(), 0)).collect();
        for (_, state, count) in api.ledger.count_tasks()? {
            *states.entry(state.name()).or_default() += count;
        }
        head(&mut text, "carrack_tasks", "gauge", "Tasks by their state.");
        for (state, count) in states {
            line(&mut text, "carrack_tasks", &format!("state=\"{state}\""), count);
        }
        let (mut moved, mut rate, mut faults) = (0, 0.0, 0);
        for (task, _) in api.ledger.open_tasks()? {
            moved += task.progress.bytes_moved;
            faults += task.progress.faults;
            if task.state == TaskState::Active {
                rate += task.progress.rates.now;
            }
        }
        head(
            &mut text,
            "carrack_open_tasks_bytes",
            "gauge",
            "Bytes at their destination of tasks that have not ended.",
        );
        line(&mut text, "carrack_open_tasks_bytes", "", moved);
        head(&mut text, "carrack_rate_bytes_per_second", "gauge", "What all tasks move at present.");
        line(&mut text, "carrack_rate_bytes_per_second", "", rate);
        head(&mut text, "carrack_open_tasks_faults", "gauge", "Recovered faults of tasks that have not ended.");
        line(&mut text, "carrack_open_tasks_faults", "", faults);
        head(&mut text, "carrack_file_workers", "gauge", "Processes that serve files to the API.");
        line(&mut text, "carrack_file_workers", "", api.files.count());
        let (last, _) = api.ledger.event_range()?;
        head(&mut text, "carrack_events_total", "counter", "Events that were written.");
        line(&mut text, "carrack_events_total", "", last);
        api.write_fault_metrics(&mut text)?;
        api.write_places(&known.caller, &mut text)?;
        api.metrics.write(&mut text);
        Ok(text)
    });
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, text.await?).into_response())
}
