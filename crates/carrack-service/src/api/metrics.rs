//! Metrics in Prometheus' text form. No user, no path, no endpoint is a label: their number is bounded by what the
//! program itself has words for.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::Api;
use super::admit::Known;
use super::problem::Done;
use crate::identity::Object;
use crate::model::{TaskState, Verb};

/// Upper bounds of the histogram's buckets, in seconds.
const BUCKETS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// What is counted.
#[derive(Default)]
pub(super) struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// By method, route and status.
    requests: BTreeMap<(String, String, u16), u64>,
    buckets: [u64; BUCKETS.len()],
    seconds: f64,
    answered: u64,
    /// By rule.
    refusals: BTreeMap<&'static str, u64>,
    /// By outcome.
    logins: BTreeMap<&'static str, u64>,
}

impl Metrics {
    fn with(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A rule has refused something.
    pub fn refused(&self, rule: &'static str) {
        self.with(|counts| *counts.refusals.entry(rule).or_default() += 1);
    }

    /// A login was tried.
    pub fn login(&self, outcome: &'static str) {
        self.with(|counts| *counts.logins.entry(outcome).or_default() += 1);
    }

    fn answered(&self, method: &str, route: &str, status: u16, time: Duration) {
        self.with(|counts| {
            *counts.requests.entry((method.to_owned(), route.to_owned(), status)).or_default() += 1;
            let seconds = time.as_secs_f64();
            counts.seconds += seconds;
            counts.answered += 1;
            if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound) {
                counts.buckets[bucket] += 1;
            }
        });
    }

    fn write(&self, text: &mut String) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        head(text, "carrack_http_requests_total", "counter", "Requests that were answered.");
        for ((method, route, status), count) in &counts.requests {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            line(text, "carrack_http_requests_total", &labels, *count);
        }
        head(text, "carrack_http_request_seconds", "histogram", "Time until the head of an answer.");
        let mut below = 0;
        for (bound, count) in BUCKETS.iter().zip(counts.buckets) {
            below += count;
            line(text, "carrack_http_request_seconds_bucket", &format!("le=\"{bound}\""), below);
        }
        line(text, "carrack_http_request_seconds_bucket", "le=\"+Inf\"", counts.answered);
        line(text, "carrack_http_request_seconds_sum", "", counts.seconds);
        line(text, "carrack_http_request_seconds_count", "", counts.answered);
        head(text, "carrack_refusals_total", "counter", "Actions that a rule has refused.");
        for (rule, count) in &counts.refusals {
            line(text, "carrack_refusals_total", &format!("rule=\"{rule}\""), *count);
        }
        head(text, "carrack_logins_total", "counter", "Logins by their outcome.");
        for (outcome, count) in &counts.logins {
            line(text, "carrack_logins_total", &format!("outcome=\"{outcome}\""), *count);
        }
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing into a string cannot fail.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = writeln!(text, "{name}{labels} {value}");
}

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
        api.metrics.write(&mut text);
        Ok(text)
    });
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, text.await?).into_response())
}
