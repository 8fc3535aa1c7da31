//! What happened to a copy, from the lines of its file, in words.

use carrack_core::pace::limit::Stage;
use carrack_core::pace::streams::Reason;
use carrack_core::path::display_bytes;
use carrack_core::report::StreamsFrom;
use serde_json::{Map, Value};

use super::read::{Recording, Told};
use crate::output::format;
use crate::output::plot::Mark;
use crate::output::plot::axis::Unit;

/// Marks in a picture, at most: more cannot be told apart.
const MARKS: usize = 60;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// In seconds.
    pub at: f64,
    /// Two or three words.
    pub label: String,
    /// A sentence more, or nothing.
    pub detail: String,
    /// Something went wrong.
    pub is_bad: bool,
    /// Worth a mark in a picture.
    pub is_marked: bool,
    /// The rate fell.
    pub is_fall: bool,
    /// The number of data streams from now on, if it tells.
    pub streams: Option<u64>,
}

/// All that happened, in its order. All text is printable.
pub fn all(recording: &Recording) -> Vec<Happening> {
    let mut all: Vec<Happening> = recording.events.iter().filter_map(happening).collect();
    all.sort_by(|one, other| one.at.total_cmp(&other.at));
    all
}

/// What is marked in pictures. Where it is too much, what went wrong goes before, and the first before the last.
pub fn marks(happenings: &[Happening]) -> Vec<Mark> {
    let marked = || happenings.iter().filter(|one| one.is_marked);
    let mark = |one: &Happening| Mark { at: one.at, label: one.label.clone(), is_bad: one.is_bad };
    match marked().count() {
        count if count <= MARKS => marked().map(mark).collect(),
        _ => marked().filter(|one| one.is_bad).take(MARKS).map(mark).collect(),
    }
}

fn happening(told: &Told) -> Option<Happening> {
    let fields = &told.fields;
    let mut one = Happening {
        at: told.at_us as f64 / 1e6,
        label: String::new(),
        detail: String::new(),
        is_bad: false,
        is_marked: true,
        is_fall: false,
        streams: None,
    };
    match &told.kind[..] {
        "ends" => {
            let session = whole(fields, "session").unwrap_or(0);
            one.label = if session == 0 { "begins".into() } else { format!("session {}", session + 1) };
            one.detail = "both ends are there".into();
            one.is_marked = session > 0;
        }
        "link" => {
            one.streams = whole(fields, "streams");
            one.label = "connected".into();
            let streams = format::counted(one.streams.unwrap_or(0), "stream", "streams");
            let from = fields.get("streams_from").and_then(Value::as_str).unwrap_or_default();
            let from = StreamsFrom::parse(from).map_or(String::new(), |known| format!(", {}", known.meaning()));
            one.detail = format!("{}, {}, {streams}{from}", text(fields, "kind"), text(fields, "address"));
            one.is_marked = false;
        }
        "streams" => streams(fields, &mut one),
        "stream-ended" => match fields.get("error").and_then(Value::as_object) {
            Some(error) => {
                one.label = "stream lost".into();
                one.detail = text(error, "message");
                one.is_bad = true;
            }
            None => one.label = "stream ended".into(),
        },
        "session-lost" => {
            one.label = "session lost".into();
            let error = fields.get("error").and_then(Value::as_object);
            one.detail = error.map(|error| text(error, "message")).unwrap_or_default();
            one.is_bad = true;
        }
        "rate-fell" => rate_fell(fields, &mut one),
        // The others stand in a table of their own: in a picture they would hide each other.
        "step" => {
            one.label = match &text(fields, "step")[..] {
                "write" => "first bytes written".into(),
                "publish" => "first file there".into(),
                _ => return None,
            }
        }
        "note" => {
            one.label = "note".into();
            one.detail = text(fields, "message");
            one.is_marked = false;
        }
        "program" => {
            one.label = "program sent".into();
            one.detail = format!("to {}", text(fields, "host"));
            one.is_marked = false;
        }
        "error" => {
            one.label = "error".into();
            one.detail = text(fields, "message");
            one.is_bad = true;
        }
        // Where everything goes is in the first line, and what a later version tells is not known here.
        _ => return None,
    }
    Some(one)
}

fn streams(fields: &Map<String, Value>, one: &mut Happening) {
    one.streams = whole(fields, "streams");
    let (before, now) = (whole(fields, "before").unwrap_or(0), one.streams.unwrap_or(0));
    one.label = format::counted(now, "stream", "streams");
    let reason = fields.get("reason").and_then(Value::as_str).unwrap_or_default();
    let reason = Reason::parse(reason).map_or_else(|_| printable(reason), |known| known.to_string());
    one.detail = format!("until now {before}: {reason}");
}

fn rate_fell(fields: &Map<String, Value>, one: &mut Happening) {
    let rate = |name: &str| Unit::BytesPerSecond.shown(whole(fields, name).unwrap_or(0) as f64);
    // It is told when it is known, and was so many seconds before.
    let over = fields.get("over_seconds").and_then(Value::as_f64).filter(|over| *over > 0.0).unwrap_or(0.0);
    one.at = (one.at - over).max(0.0);
    one.label = format!("rate fell to {}", rate("bytes_per_second"));
    one.detail = format!("from {}", rate("before"));
    (one.is_bad, one.is_fall) = (true, true);
    if let Some(stage) = fields.get("limited_by").and_then(Value::as_object).map(|limit| text(limit, "stage")) {
        let stage = Stage::parse(&stage).map_or(stage, |known| known.meaning().to_owned());
        one.detail += &format!(", limited by {stage}");
    }
}

/// A text, printable; empty if there is none.
pub fn text(fields: &Map<String, Value>, name: &str) -> String {
    printable(fields.get(name).and_then(Value::as_str).unwrap_or_default())
}

/// What came from outside, so that it can neither drive a terminal nor hide.
pub fn printable(text: &str) -> String {
    display_bytes(text.as_bytes()).to_string()
}

fn whole(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    fields.get(name).and_then(Value::as_u64)
}
