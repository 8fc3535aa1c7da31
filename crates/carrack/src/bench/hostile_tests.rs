//! Documents that somebody else has written: whatever is in them, they are refused, or shown without a panic and
//! without a character that drives a terminal.

use carrack_core::path::drives_terminal;
use carrack_measure::result::Measurement;
use serde_json::{Value, json};

use super::document::tests::sample;
use super::table::Table;
use super::{bonnie, csv, diff, document, fio, html, iperf3, ladder, table};

/// Clears the screen, sets a title, turns the direction of text, and ends the line.
const HOSTILE: &str = "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2028}\r\n\0\u{7f}<script>";

/// Everything that is shown of a result, by every form.
fn shown(measured: &Measurement) -> Vec<String> {
    let mut table = Table::default();
    let mut lines = table::headline(measured);
    lines.extend(measured.rows.iter().flat_map(|row| table.row(row)));
    lines.extend(table.rest());
    lines.extend(table.legend());
    lines.extend(ladder::verdict(measured));
    lines.push(crate::output::format::rfc3339_seconds(measured.started));
    lines.push(crate::output::format::duration(measured.elapsed));
    lines.extend(measured.rows.iter().map(csv::row));
    lines.push(bonnie::line(measured));
    lines.push(fio::document(measured).to_string());
    lines.extend(iperf3::documents(measured).iter().map(Value::to_string));
    lines.push(document::to_json(measured).to_string());
    for (old, new) in [(measured, &sample()), (&sample(), measured)] {
        lines.extend(diff::lines(&diff::changes(old, new)));
    }
    lines.push(html::page(measured).replace('\n', ""));
    lines
}

#[track_caller]
fn drives_nothing(measured: &Measurement) {
    for line in shown(measured) {
        assert!(!line.chars().any(drives_terminal), "{line:?}");
        assert!(!line.contains("<script>") || !line.contains("<html"), "{line:?}");
    }
}

/// A result with rows of every shape.
fn document() -> Value {
    let mut document = document::to_json(&sample());
    let rows = document["rows"].as_array_mut().expect("rows");
    for which in ["one", "all"] {
        rows.push(json!({ "name": "blake3", "conditions": { "processors": which },
            "values": { "bytes": 1, "bytes_per_second": 1e9 }, "labels": ["shared"] }));
    }
    for (name, sink) in [("zero->null", "null"), ("disk->null", "null"), ("disk->disk", "disk")] {
        rows.push(json!({ "name": name, "conditions": { "sink": sink, "link": "direct" },
            "values": { "bytes": 1, "bytes_per_second": 1e9, "loss": 0.5 }, "labels": ["memory"] }));
    }
    let interval = json!({ "start_seconds": 0.0, "seconds": 1.0, "is_warm_up": false,
        "streams": [[0, 1, 2, 3, 4, 5, 6, 7], [1, 1, 2, 3, 4, 5, 6, 7]] });
    for at_once in ["no", "yes"] {
        rows.push(json!({ "name": "there", "labels": ["discarded"], "error": "interrupted",
            "conditions": { "connections": "2", "mode": "clear", "at_once": at_once },
            "values": { "bytes": 1, "bytes_per_second": 1e9, "seconds": 1, "retransmits": 1, "rtt_us": 5 },
            "intervals": { "columns": [], "each": [interval, interval] } }));
    }
    rows.push(json!({ "name": "path there", "conditions": {}, "values": { "mtu_bytes": 1500 }, "labels": [],
        "route": { "hops": [{ "address": "10.0.0.1", "rtt_us": 3.5 }], "reached": true, "is_mtu_proved": true,
            "drops_large_packets": false, "why": "unknown" } }));
    document
}

/// Calls `change` with each value of a document that holds no other, in order.
fn leaves(value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| leaves(value, change)),
        Value::Object(fields) => fields.values_mut().for_each(|value| leaves(value, change)),
        leaf => change(leaf),
    }
}

/// Gives every key a name that drives a terminal, beside the one that it has.
fn with_hostile_keys(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(with_hostile_keys),
        Value::Object(fields) => {
            fields.values_mut().for_each(with_hostile_keys);
            let more: Vec<(String, Value)> =
                fields.iter().map(|(name, value)| (format!("{name}{HOSTILE}"), value.clone())).collect();
            fields.extend(more);
        }
        _ => {}
    }
}

#[test]
fn no_text_of_a_document_drives_a_terminal() {
    let mut hostile = document();
    let (kind, rows) = (hostile["kind"].clone(), hostile["rows"].as_array().map(Vec::len));
    leaves(&mut hostile, &mut |leaf| {
        if leaf.is_string() {
            *leaf = json!(format!("{}{HOSTILE}", leaf.as_str().unwrap_or_default()));
        }
    });
    with_hostile_keys(&mut hostile);
    for kind in [json!(HOSTILE), kind, json!("ladder")] {
        hostile["kind"] = kind;
        let measured = document::from_json(&hostile).expect("its kinds are right");
        assert!(Some(measured.rows.len()) == rows && measured.target.starts_with("/data"));
        drives_nothing(&measured);
    }
}

#[test]
fn histograms_that_contradict_themselves_are_refused_and_full_ones_are_shown() {
    let of = |latency: Value| {
        json!({ "v": 1, "kind": "disk", "started_seconds": 1, "rows": [{ "name": "random-read",
            "values": { "operations_per_second": 5 }, "latency": latency }] })
    };
    let no_longest = of(json!({ "bins": [[100, 5], [200, 5]], "min_ns": 5 }));
    assert!(document::from_json(&no_longest).is_err_and(|why| why.contains("shortest")));
    let most = u64::MAX;
    let full = of(json!({ "bins": [[1, most], [1, most], [most, most]], "max_ns": most, "mean_ns": most }));
    drives_nothing(&document::from_json(&full).expect("a result"));
}

/// Every leaf becomes every other kind of value, one at a time, and then many at once.
#[test]
fn any_document_is_refused_or_shown() {
    let values = [
        Value::Null,
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(HOSTILE),
        json!("18446744073709551615"),
        json!([[0, u64::MAX], [u64::MAX, u64::MAX]]),
        json!({ "name": HOSTILE }),
    ];
    let document = document();
    let mut count = 0;
    leaves(&mut document.clone(), &mut |_| count += 1);
    let mut state = 7_u64;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut read = 0;
    // By turns one leaf alone, and one in forty on average.
    for round in 0..400 {
        let (mut altered, mut at) = (document.clone(), 0);
        let alone = next(count);
        leaves(&mut altered, &mut |leaf| {
            let is_chosen = if round % 2 == 0 { at == alone } else { next(40) == 0 };
            if is_chosen {
                *leaf = values[next(values.len())].clone();
            }
            at += 1;
        });
        if let Ok(measured) = document::from_json(&altered) {
            drives_nothing(&measured);
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}
