//! What was measured, in one form for every kind of measurement: so that any result can be kept, shown again and
//! compared with another.

use std::time::Duration;

use crate::histogram::Histogram;
use crate::network::{Interval, Route};
use crate::series::Series;

/// One run of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// What was measured: `disk`, `cpu`, …
    pub kind: String,
    /// Where: a directory, a host.
    pub target: String,
    /// When it began: seconds since 1970.
    pub started: i64,
    /// How long it took.
    pub elapsed: Duration,
    /// How it was asked for: name and value.
    pub settings: Vec<(String, String)>,
    /// The host as it was: name and value, in an order that people like to read.
    pub facts: Vec<(String, String)>,
    /// What a reader must know before believing a number.
    pub warnings: Vec<Warning>,
    /// The numbers.
    pub rows: Vec<Row>,
}

/// A doubt about the whole measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The kind of doubt, for programs.
    pub word: String,
    /// A sentence for people.
    pub text: String,
}

/// One thing measured under one set of conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// What was done: `write`, `random-read`, `blake3`, …
    pub name: String,
    /// Under which conditions: name and value. Rows of two measurements with the same name and conditions are
    /// compared with each other.
    pub conditions: Vec<(String, String)>,
    /// Numbers by name. Names end with their unit (`seconds`, `bytes_per_second`); shares are from 0 to 1.
    pub values: Vec<(String, f64)>,
    /// How far the row may be trusted: words of [`label`].
    pub labels: Vec<String>,
    /// Bytes over time.
    pub series: Option<Series>,
    /// Times of single operations.
    pub latency: Option<Histogram>,
    /// How each connection went, second by second; empty where none was watched.
    pub intervals: Vec<Interval>,
    /// The way that packets take; `None` for a row that is about something else.
    pub route: Option<Route>,
    /// Values over time beside the bytes.
    pub curves: Vec<Curve>,
    /// Why it has no numbers, or only those of a part of its time.
    pub error: Option<String>,
}

/// A value over time: how many clients were at work, how busy a host was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// What it is.
    pub name: String,
    /// What its values are: `count`, `share` (from 0 to 1), `processors` or `bytes_per_second`.
    pub unit: String,
    /// Seconds since the start, and the value, in the order of time.
    pub points: Vec<(f64, f64)>,
}

impl Row {
    /// A condition by its name.
    pub fn condition(&self, name: &str) -> Option<&str> {
        self.conditions.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A number by its name.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Whether the row bears a label.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|own| own == label)
    }

    /// Adds a number, unless it is none.
    pub fn put(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.values.push((name.to_owned(), value));
        }
    }
}

/// Names of numbers that several kinds of measurement have.
pub mod value {
    /// Bytes moved.
    pub const BYTES: &str = "bytes";
    /// Operations done.
    pub const OPERATIONS: &str = "operations";
    /// From the first operation to the end, a sync at the end included.
    pub const SECONDS: &str = "seconds";
    /// Bytes through seconds: the whole, to the moment when the last worker was done.
    pub const BYTES_PER_SECOND: &str = "bytes_per_second";
    /// Operations through seconds.
    pub const OPERATIONS_PER_SECOND: &str = "operations_per_second";
    /// When the first of several workers was done.
    pub const FIRST_DONE_SECONDS: &str = "first_done_seconds";
    /// The rate of all workers together up to that moment.
    pub const FIRST_DONE_BYTES_PER_SECOND: &str = "first_done_bytes_per_second";
    /// The part of the seconds that the sync at the end took.
    pub const SYNC_SECONDS: &str = "sync_seconds";
    /// The mean rate in the second half, where it was tested to be steady or not.
    pub const SETTLED_BYTES_PER_SECOND: &str = "settled_bytes_per_second";
    /// By which share of its mean the rate changed over the second half.
    pub const CHANGE: &str = "change";
    /// Processors that the process kept busy.
    pub const PROCESSORS: &str = "processors";
    /// Share of time in which the busiest processor of the host was busy.
    pub const BUSIEST_PROCESSOR: &str = "busiest_processor";
    /// Operations that were due each second.
    pub const ARRIVALS_PER_SECOND: &str = "arrivals_per_second";
    /// Share of what was read that lay in the page cache before.
    pub const CACHED: &str = "cached";
    /// Share of what was written that had not reached storage at the end.
    pub const UNWRITTEN: &str = "unwritten";
}

/// Labels of rows.
pub mod label {
    /// The bytes came from the page cache, or stayed there: nothing is said about the storage.
    pub const CACHED: &str = "cached";
    /// Some of them.
    pub const PARTLY_CACHED: &str = "partly-cached";
    /// Nobody tells whether the bytes were in a cache: the file system has one of its own, or the system cannot be
    /// asked.
    pub const CACHE_UNKNOWN: &str = "cache-unknown";
    /// The file system lies in memory.
    pub const MEMORY: &str = "memory";
    /// Not all that was written had reached the storage when it counted.
    pub const NOT_SYNCED: &str = "not-synced";
    /// The rate still rose or fell.
    pub const UNSTEADY: &str = "unsteady";
    /// It ended too early to tell whether the rate had settled.
    pub const SHORT: &str = "short";
    /// Requests arrived faster than they were served: the time that they waited grows with the length of the run.
    pub const OVERLOADED: &str = "overloaded";
    /// A processor was busy all the time: what was measured may be faster than the row says.
    pub const PROCESSOR: &str = "processor-busy";
    /// Other programs had a part of the processors.
    pub const SHARED: &str = "shared";
    /// The receiver threw the bytes away before they were in its memory.
    pub const DISCARDED: &str = "discarded";
    /// It ended before its time was over.
    pub const INCOMPLETE: &str = "incomplete";
    /// The bytes went through the control connection.
    pub const TUNNEL: &str = "tunnel";
    /// Every label, with its meaning.
    pub const ALL: [(&str, &str); 13] = [
        (CACHED, "from or in the page cache: says nothing about the storage"),
        (PARTLY_CACHED, "in part from or in the page cache"),
        (CACHE_UNKNOWN, "nobody tells whether the bytes were in a cache"),
        (MEMORY, "this file system lies in memory"),
        (NOT_SYNCED, "not all of it had reached the storage when it counted"),
        (UNSTEADY, "in the second half the rate still changed by more than a tenth"),
        (SHORT, "too short to tell whether the rate had settled"),
        (PROCESSOR, "a processor was busy all the time: without that it may be faster"),
        (SHARED, "other programs had a part of the processors"),
        (OVERLOADED, "requests arrived faster than the storage served them"),
        (DISCARDED, "thrown away uncopied by the receiver, as no application does"),
        (INCOMPLETE, "it ended early: the numbers are of the time up to there"),
        (TUNNEL, "no data connection could be made: through the control connection"),
    ];
}
