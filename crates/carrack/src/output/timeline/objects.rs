//! A recording as objects: `carrack report --json`.

use serde_json::{Value, json};

use super::phases::{Phase, thousandths};
use super::view::{EndView, View};

/// The whole, for an object of the type `report`.
pub fn report(view: &View<'_>) -> Value {
    let verdict = view.verdict().map(|verdict| verdict.fields());
    let rates = view.rates();
    let rate = rates.map(|rates| {
        json!({
            "mean": rates.mean as u64,
            "median": rates.median as u64,
            "p5": rates.p5 as u64,
            "p95": rates.p95 as u64,
        })
    });
    let counts = view.source.over(0.0, f64::MAX).counts;
    json!({
        "asked": view.recording.header.get("asked").cloned().unwrap_or_else(|| json!({})),
        "seconds": thousandths(view.end),
        "samples": view.recording.samples,
        "is_whole": view.recording.summary.is_some(),
        "bytes": view.rated().over(0.0, f64::MAX).bytes,
        "bytes_per_second": rate,
        "limited_by": verdict.as_ref().map(|(limit, _)| limit),
        "runner_up": verdict.as_ref().and_then(|(_, runner_up)| runner_up.as_ref()),
        "segments": counts.segments,
        "retransmits": counts.retransmits,
        "source": end(&view.source),
        "destination": end(&view.destination),
    })
}

fn end(end: &EndView<'_>) -> Value {
    json!({ "name": end.fact("name"), "system": end.fact("system"), "told_samples": end.tells() })
}

/// A stretch of time, for an object of the type `phase`.
pub fn phase(phase: &Phase) -> Value {
    phase.fields()
}
