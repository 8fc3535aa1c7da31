//! What the API counts of itself, as Prometheus' text form has it.

use carrack_engine::sync::lock;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use crate::model::FaultStatistics;

/// Upper bounds of the histogram's buckets, in seconds.
const BUCKETS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// What is counted.
#[derive(Default)]
pub(super) struct Metrics {
    counts: Mutex<Counts>,
}

/// Faults of the last day, as metrics tell them, and when they were counted, by the steady clock.
#[derive(Default)]
pub(super) struct FaultsKnown(pub Mutex<Option<(Duration, FaultStatistics)>>);

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
        count(&mut lock(&self.counts));
    }

    /// A rule has refused something.
    pub fn refused(&self, rule: &'static str) {
        self.with(|counts| *counts.refusals.entry(rule).or_default() += 1);
    }

    /// A login was tried.
    pub fn login(&self, outcome: &'static str) {
        self.with(|counts| *counts.logins.entry(outcome).or_default() += 1);
    }

    /// A request was answered, after so long.
    pub fn answered(&self, method: &str, route: &str, status: u16, time: Duration) {
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

    /// Writes all of it.
    pub fn write(&self, text: &mut String) {
        let counts = lock(&self.counts);
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

/// The lines before a metric's values.
pub(super) fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing into a string cannot fail.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// One value.
pub(super) fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = writeln!(text, "{name}{labels} {value}");
}
