//! What a report says in words: the verdict, the figures and the facts. All text is printable.

use std::time::Duration;

use serde_json::{Map, Value};

use super::happened::{printable, text};
use super::view::{EndView, Verdict, View};
use crate::output::format;
use crate::output::plot::axis::Unit;

/// What was copied, and to where.
pub fn title(view: &View<'_>) -> String {
    let asked = asked(view);
    let sources = asked.get("sources").and_then(Value::as_array);
    let sources: Vec<String> = sources.into_iter().flatten().filter_map(Value::as_str).map(printable).collect();
    let what = match &sources[..] {
        [] => "something".to_owned(),
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} and {}", format::counted(more.len() as u64, "more", "more")),
    };
    match text(asked, "destination") {
        destination if destination.is_empty() => format!("Copy of {what}"),
        destination => format!("Copy of {what} to {destination}"),
    }
}

/// When it began, and what became of it.
pub fn when(view: &View<'_>) -> String {
    let began = text(&view.recording.header, "time");
    let began = began.split_once('.').map_or(&began[..], |(seconds, _)| seconds).replace('T', " ");
    let time = format::duration(seconds(view.end));
    match (ended(view), began.is_empty()) {
        (ended, true) => format!("{ended} after {time}"),
        (ended, false) => format!("Began {began} UTC, {ended} after {time}"),
    }
}

fn ended(view: &View<'_>) -> &'static str {
    let failed = view.summary("files_failed").and_then(Value::as_u64).unwrap_or(0);
    match view.summary("error") {
        _ if view.recording.summary.is_none() => "last seen",
        Some(_) => "failed",
        None if failed > 0 => "ended with failed files",
        None => "ended",
    }
}

/// What a reader has to know before anything else: that the file is not whole, or that the copy failed.
pub fn warnings(view: &View<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if view.recording.summary.is_none() {
        let cut = if view.recording.is_cut { ", in the middle of a line" } else { "" };
        warnings.push(format!(
            "The file ends early{cut}: the copy was killed, or is still at work. What follows is what it has up to there."
        ));
    }
    if let Some(error) = view.summary("error").and_then(Value::as_object) {
        warnings.push(format!("The copy failed: {}.", text(error, "message").trim_end_matches('.')));
    }
    let failed = view.summary("files_failed").and_then(Value::as_u64).unwrap_or(0);
    if failed > 0 {
        warnings.push(format!("{} failed.", format::counted(failed, "file", "files")));
    }
    if view.recording.samples == 0 {
        warnings.push("The file has no sample: neither end has told what it measures.".into());
    }
    if view.recording.events_left_out > 0 {
        let count = format::counted(view.recording.events_left_out, "more event is", "more events are");
        warnings.push(format!("{count} in the file than are shown."));
    }
    warnings
}

/// What held it back, in a sentence or two.
pub fn verdict(verdict: Option<Verdict>) -> String {
    let Some(Verdict { limit: (stage, share), runner_up }) = verdict else {
        return "What held the copy back is not known: both ends have to tell what they measure.".into();
    };
    let share = Unit::Share.shown(share);
    let next = runner_up.map(|(stage, share)| format!(" Next: {} ({}).", stage.meaning(), Unit::Share.shown(share)));
    format!("Limited by {}: {share} of the streams' time.{}", stage.meaning(), next.unwrap_or_default())
}

/// The figures that matter most, each with what it is.
pub fn figures(view: &View<'_>) -> Vec<(&'static str, String)> {
    let mut figures = Vec::new();
    let bytes = view.rated().over(0.0, f64::MAX).bytes;
    if bytes > 0 {
        figures.push(("data carried", format::size(bytes)));
    }
    figures.push(("time", format::duration(seconds(view.end))));
    if let Some(rates) = view.rates() {
        let shown = |rate: f64| Unit::BytesPerSecond.shown(rate);
        figures.push(("rate, mean", shown(rates.mean)));
        figures.push(("median", shown(rates.median)));
        figures.push(("slowest 5 % below", shown(rates.p5)));
        figures.push(("fastest 5 % above", shown(rates.p95)));
    }
    if let Some(most) = most_streams(view) {
        figures.push(("streams, at most", format::count(most)));
    }
    let counts = view.source.over(0.0, f64::MAX).counts;
    if counts.segments > 0 {
        let share = counts.retransmits as f64 / counts.segments as f64;
        figures.push(("segments sent again", Unit::Share.shown(share)));
    }
    figures
}

fn most_streams(view: &View<'_>) -> Option<u64> {
    let ends = [&view.source, &view.destination];
    let told = ends.into_iter().flat_map(|end| end.steps.iter().map(|step| step.sample.streams.len() as u64)).max();
    let happened = view.happenings.iter().filter_map(|one| one.streams).max();
    told.filter(|most| *most > 0).max(happened)
}

/// What was asked for, what both ends are and what was used: names and values, in groups.
pub fn facts(view: &View<'_>) -> Vec<(String, Vec<(String, String)>)> {
    let mut groups = vec![end(&view.source), end(&view.destination)];
    let link = view.recording.events.iter().rfind(|told| told.kind == "link").map(|told| &told.fields);
    let link = link.or_else(|| view.summary("link").and_then(Value::as_object));
    if let Some(link) = link {
        let fields = [("kind", "kind"), ("address", "address"), ("cipher", "cipher"), ("streams at first", "streams")];
        groups.push(("link".into(), named(link, &fields)));
    }
    let options = [
        ("streams", "streams"),
        ("block size, bytes", "block_bytes"),
        ("rate limit, bytes a second", "rate_limit"),
        ("congestion control", "congestion"),
        ("encryption", "encrypt"),
        ("verification", "verify"),
        ("digest", "digest"),
        ("durability", "durability"),
        ("existing files", "existing"),
    ];
    groups.push(("asked for".into(), named(asked(view), &options)));
    let command = [("program", "program"), ("system", "system")];
    groups.push(("command".into(), named(&view.recording.header, &command)));
    if let Some(summary) = &view.recording.summary {
        let counts = [("files", "files"), ("failed", "files_failed"), ("kept", "files_kept"), ("bytes", "bytes")];
        let mut result = named(summary, &counts);
        result.extend(named(summary, &[("durable", "durable"), ("exit code", "exit_code")]));
        groups.push(("result".into(), result));
    }
    groups.retain(|(_, facts)| !facts.is_empty());
    groups
}

fn end(view: &EndView<'_>) -> (String, Vec<(String, String)>) {
    let fields = [
        ("host", "name"),
        ("program", "program"),
        ("protocol", "protocol"),
        ("system", "system"),
        ("processors", "processors"),
        ("congestion control", "congestion"),
    ];
    let mut facts = view.facts.map_or_else(Vec::new, |facts| named(facts, &fields));
    let mut seen: Vec<&str> = Vec::new();
    for device in view.steps.iter().flat_map(|step| &step.sample.devices) {
        if !seen.contains(&&device.name[..]) {
            seen.push(&device.name);
        }
    }
    if !seen.is_empty() {
        facts.push(("disks".into(), printable(&seen.join(", "))));
    }
    if let Some(interface) = view.steps.last().and_then(|step| step.sample.interface.as_ref()) {
        facts.push(("interface".into(), printable(&interface.name)));
    }
    (view.side.to_owned(), facts)
}

/// The fields of these keys that are there and say something.
fn named(fields: &Map<String, Value>, names: &[(&str, &str)]) -> Vec<(String, String)> {
    let shown = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Some(printable(text)),
        Value::Number(number) => Some(number.as_u64().map_or_else(|| number.to_string(), format::count)),
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
        _ => None,
    };
    let each = names.iter().filter_map(|(name, key)| Some(((*name).to_owned(), shown(fields.get(*key)?)?)));
    each.collect()
}

fn asked<'a>(view: &View<'a>) -> &'a Map<String, Value> {
    static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    view.recording.header.get("asked").and_then(Value::as_object).unwrap_or(&NOTHING)
}

fn seconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX)
}
