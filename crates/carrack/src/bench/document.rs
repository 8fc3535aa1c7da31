//! A measurement as JSON, and back: the form in which it is kept and printed.
//!
//! Within a version keys may be added; nothing is taken away, and nothing changes its meaning.
//!
//! A document may come from anybody. What is read of it is fit to be shown: no text drives a terminal, and no number
//! makes a sum overflow.

use std::time::{Duration, UNIX_EPOCH};

use carrack_core::path::drives_terminal;
use carrack_measure::histogram::Histogram;
use carrack_measure::network::{Interval, Route, RouteHop, StreamInterval};
use carrack_measure::result::{Curve, Measurement, Row, Warning};
use carrack_measure::series::Series;
use serde_json::{Map, Value, json};

use crate::output::format;

/// The version of kept results.
const VERSION: u64 = 1;

/// A measurement as one object.
pub fn to_json(measured: &Measurement) -> Value {
    let started = UNIX_EPOCH + Duration::from_secs(u64::try_from(measured.started).unwrap_or(0));
    json!({
        "v": VERSION,
        "kind": measured.kind,
        "carrack": env!("CARGO_PKG_VERSION"),
        "target": measured.target,
        "started": format::rfc3339(started),
        "started_seconds": measured.started,
        "elapsed_seconds": measured.elapsed.as_secs_f64(),
        "settings": object(&measured.settings),
        "facts": object(&measured.facts),
        "warnings": measured.warnings.iter().map(|warning| json!({ "word": warning.word, "text": warning.text })).collect::<Vec<_>>(),
        "rows": measured.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// A row as one object.
pub fn row(row: &Row) -> Value {
    let mut object = row_in_short(row);
    if let Some(series) = &row.series {
        object["series"] = json!({ "slot_seconds": series.slot().as_secs_f64(), "bytes": series.amounts() });
    }
    if !row.curves.is_empty() {
        let curve = |curve: &Curve| json!({ "name": curve.name, "unit": curve.unit, "points": curve.points });
        object["curves"] = json!(row.curves.iter().map(curve).collect::<Vec<_>>());
    }
    if !row.intervals.is_empty() {
        object["intervals"] = intervals(&row.intervals);
    }
    if let (Some(latency), Value::Object(of_row)) = (&row.latency, &mut object["latency"]) {
        let bins: Vec<[u64; 2]> = latency.bins().map(|(nanos, count)| [nanos, count]).collect();
        of_row.insert("bins".to_owned(), json!(bins));
    }
    object
}

/// A row without its series and its bins: what fits on a line.
pub fn row_in_short(row: &Row) -> Value {
    let values: Map<String, Value> = row.values.iter().map(|(name, value)| (name.clone(), number(*value))).collect();
    let mut object = json!({
        "name": row.name,
        "conditions": self::object(&row.conditions),
        "values": values,
        "labels": row.labels,
    });
    if let Some(found) = &row.route {
        object["route"] = route(found);
    }
    if let Some(error) = &row.error {
        object["error"] = json!(error);
    }
    if let Some(latency) = &row.latency {
        object["latency"] = json!({
            "count": latency.count(),
            "min_ns": nanos(latency.min()),
            "mean_ns": nanos(latency.mean()),
            "p50_ns": nanos(latency.quantile(0.5)),
            "p95_ns": nanos(latency.quantile(0.95)),
            "p99_ns": nanos(latency.quantile(0.99)),
            "max_ns": nanos(latency.max()),
        });
    }
    object
}

/// Whole numbers without a fraction, as they were counted.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn object(pairs: &[(String, String)]) -> Value {
    Value::Object(pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
}

/// A measurement from its object.
///
/// # Errors
/// What is missing, of another kind, or contradicts itself.
pub fn from_json(value: &Value) -> Result<Measurement, String> {
    match value["v"].as_u64() {
        Some(VERSION) => {}
        Some(other) => return Err(format!("it is of version {other}, which this program does not know")),
        None => return Err("it has no version".to_owned()),
    }
    let warning = |value: &Value| Some(Warning { word: text(&value["word"])?, text: text(&value["text"])? });
    Ok(Measurement {
        kind: text(&value["kind"]).ok_or("it has no kind")?,
        target: text(&value["target"]).unwrap_or_default(),
        started: value["started_seconds"].as_i64().ok_or("it has no time")?,
        elapsed: seconds(&value["elapsed_seconds"]),
        settings: pairs(&value["settings"]),
        facts: pairs(&value["facts"]),
        warnings: list(&value["warnings"]).iter().filter_map(warning).collect(),
        rows: list(&value["rows"]).iter().map(row_from).collect::<Result<_, _>>()?,
    })
}

/// A row from its object.
///
/// # Errors
/// What is missing, or contradicts itself.
pub fn row_from(value: &Value) -> Result<Row, String> {
    let numbers = value["values"].as_object().into_iter().flatten();
    Ok(Row {
        name: text(&value["name"]).ok_or("one of its rows has no name")?,
        conditions: pairs(&value["conditions"]),
        values: numbers.filter_map(|(name, value)| Some((printable(name), value.as_f64()?))).collect(),
        labels: list(&value["labels"]).iter().filter_map(text).collect(),
        series: series_from(&value["series"]),
        latency: latency_from(&value["latency"])?,
        intervals: intervals_from(&value["intervals"]),
        route: route_from(&value["route"]),
        curves: list(&value["curves"]).iter().filter_map(curve_from).collect(),
        error: text(&value["error"]),
    })
}

fn route(route: &Route) -> Value {
    let hop = |hop: &RouteHop| json!({ "address": hop.address, "rtt_us": hop.rtt_us });
    json!({
        "hops": route.hops.iter().map(hop).collect::<Vec<_>>(),
        "reached": route.reached,
        "is_mtu_proved": route.is_mtu_proved,
        "drops_large_packets": route.drops_large_packets,
        "why": route.why,
    })
}

fn route_from(value: &Value) -> Option<Route> {
    let hop = |hop: &Value| RouteHop { address: text(&hop["address"]), rtt_us: hop["rtt_us"].as_f64() };
    let is = |name: &str| value[name].as_bool().unwrap_or(false);
    Some(Route {
        hops: value["hops"].as_array()?.iter().map(hop).collect(),
        reached: is("reached"),
        is_mtu_proved: is("is_mtu_proved"),
        drops_large_packets: is("drops_large_packets"),
        why: text(&value["why"]).unwrap_or_default(),
    })
}

/// The fields of each connection as a list, whose names stand once: there may be many.
fn intervals(all: &[Interval]) -> Value {
    let each = all.iter().map(|interval| {
        json!({
            "start_seconds": interval.start_seconds,
            "seconds": interval.seconds,
            "is_warm_up": interval.is_warm_up,
            "streams": interval.streams.iter().map(StreamInterval::values).collect::<Vec<_>>(),
        })
    });
    json!({ "columns": StreamInterval::NAMES, "each": each.collect::<Vec<_>>() })
}

fn intervals_from(value: &Value) -> Vec<Interval> {
    let stream = |values: &Value| StreamInterval::from_values(list(values).iter().map(|one| one.as_u64().unwrap_or(0)));
    let each = list(&value["each"]).iter().map(|interval| Interval {
        start_seconds: interval["start_seconds"].as_f64().unwrap_or(0.0),
        seconds: interval["seconds"].as_f64().unwrap_or(0.0),
        is_warm_up: interval["is_warm_up"].as_bool().unwrap_or(false),
        streams: list(&interval["streams"]).iter().map(stream).collect(),
    });
    each.collect()
}

fn curve_from(value: &Value) -> Option<Curve> {
    let point = |point: &Value| Some((point[0].as_f64()?, point[1].as_f64()?));
    let points = list(&value["points"]).iter().filter_map(point).collect();
    Some(Curve { name: text(&value["name"])?, unit: text(&value["unit"])?, points })
}

fn series_from(value: &Value) -> Option<Series> {
    let amounts = value["bytes"].as_array()?.iter().map(|amount| amount.as_f64().unwrap_or(0.0)).collect();
    Some(Series::new(seconds(&value["slot_seconds"]), amounts))
}

fn latency_from(value: &Value) -> Result<Option<Histogram>, String> {
    let bin = |bin: &Value| Some((bin[0].as_u64()?, bin[1].as_u64()?));
    let time = |name: &str| Duration::from_nanos(value[name].as_u64().unwrap_or(0));
    let Some(bins) = value["bins"].as_array() else { return Ok(None) };
    let made = Histogram::of_bins(bins.iter().filter_map(bin), time("min_ns"), time("max_ns"), time("mean_ns"));
    made.map(Some).ok_or_else(|| "the shortest time of one of its rows is longer than the longest".to_owned())
}

fn seconds(value: &Value) -> Duration {
    Duration::try_from_secs_f64(value.as_f64().unwrap_or(0.0)).unwrap_or_default()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(printable)
}

/// Text without what drives a terminal or hides in it. What this program has written comes back as it was.
fn printable(text: &str) -> String {
    text.chars().map(|character| if drives_terminal(character) { '\u{fffd}' } else { character }).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    let fields = value.as_object().into_iter().flatten();
    fields.filter_map(|(name, value)| Some((printable(name), text(value)?))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use carrack_measure::result::{label, value};

    /// A measurement with one row of each kind.
    pub fn sample() -> Measurement {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let conditions = |mode: &str, record: u64, depth: u64| {
            vec![
                pair("depth", &depth.to_string()),
                pair("mode", mode),
                pair("record_bytes", &record.to_string()),
                pair("threads", "1"),
            ]
        };
        let mut latency = Histogram::default();
        for micros in [3, 50, 51, 900, 20_000] {
            latency.record(Duration::from_micros(micros));
        }
        let row = |name: &str, conditions: Vec<(String, String)>, rate: f64, labels: &[&str]| Row {
            name: name.to_owned(),
            conditions,
            values: vec![
                (value::BYTES.to_owned(), 5e9),
                (value::BYTES_PER_SECOND.to_owned(), rate),
                (value::OPERATIONS.to_owned(), 5.0),
                (value::OPERATIONS_PER_SECOND.to_owned(), rate / 1e6),
                (value::PROCESSORS.to_owned(), 0.5),
                (value::SECONDS.to_owned(), 5e9 / rate),
            ],
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            series: Some(Series::new(Duration::from_millis(10), vec![1e7; 50])),
            latency: Some(latency.clone()),
            ..Row::default()
        };
        let file_row = |name: &str, order: &str| {
            let mut row = row(name, vec![pair("order", order), pair("threads", "1")], 2e9, &[]);
            row.values.retain(|(name, _)| name != value::BYTES && name != value::BYTES_PER_SECOND);
            row.series = None;
            row
        };
        Measurement {
            kind: "disk".to_owned(),
            target: "/data".to_owned(),
            started: 1_790_000_000,
            elapsed: Duration::from_secs(31),
            settings: vec![pair("size_bytes", "5000000000")],
            facts: vec![pair("host", "dtn1"), pair("kernel", "6.18.1"), pair("mount.kind", "xfs")],
            warnings: vec![Warning { word: "small".to_owned(), text: "the files are small".to_owned() }],
            rows: vec![
                row("write", conditions("cached", 1 << 20, 1), 4.8e9, &[label::CACHED]),
                row("write", conditions("fdatasync", 1 << 20, 1), 4.2e9, &[]),
                row("rewrite", conditions("fdatasync", 1 << 20, 1), 1.1e9, &[label::UNSTEADY]),
                row("read", conditions("cached", 1 << 20, 1), 3.5e9, &[]),
                row("random-read", conditions("direct", 4096, 16), 1.6e7, &[]),
                file_row("file-create", "sequential"),
                file_row("file-stat", "sequential"),
                file_row("file-delete", "sequential"),
                file_row("file-create", "random"),
            ],
        }
    }

    #[test]
    fn document_comes_back_from_json() {
        let sample = sample();
        let text = to_json(&sample).to_string();
        let back = from_json(&serde_json::from_str(&text).expect("JSON")).expect("a measurement");
        assert_eq!(back, sample);
    }

    #[test]
    fn document_that_is_none_is_refused() {
        for text in ["{}", "[]", r#"{"v":2,"kind":"disk","started_seconds":1}"#, r#"{"v":1,"started_seconds":1}"#] {
            assert!(from_json(&serde_json::from_str(text).expect("JSON")).is_err(), "{text}");
        }
        let later = r#"{"v":1,"kind":"net","started_seconds":1,"rows":[{"name":"x","new":5}],"more":true}"#;
        let measured =
            from_json(&serde_json::from_str(later).expect("JSON")).expect("keys that are not known are passed over");
        assert_eq!((measured.kind.as_str(), measured.rows.len()), ("net", 1));
    }
}
