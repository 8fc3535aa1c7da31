//! What rows about large files and rows about small ones have in common.

use std::time::Duration;

use crate::result::{Row, label, value};
use crate::steady::{Steadiness, judge};
use crate::workers::Done;

/// From this share of time on a processor counts as busy all the time.
const BUSY: f64 = 0.95;
/// A shorter row has too few ticks to tell.
const BUSY_LEAST: Duration = Duration::from_millis(500);
/// At a given rate: who begins later than this has too much to do.
const BEHIND: Duration = Duration::from_millis(100);

/// What every row has.
pub fn row_of(name: &str, conditions: Vec<(String, String)>, done: &Done) -> Row {
    let mut row = Row { name: name.to_owned(), conditions, ..Row::default() };
    let seconds = done.elapsed.as_secs_f64();
    if done.bytes > 0 {
        row.put(value::BYTES, done.bytes as f64);
    }
    row.put(value::OPERATIONS, done.operations as f64);
    row.put(value::SECONDS, seconds);
    row.put(value::OPERATIONS_PER_SECOND, done.operations as f64 / seconds);
    row.series = Some(done.series.clone());
    row.latency = Some(done.latency.clone());
    row
}

/// Labels that say how far the rate of a row can be trusted.
pub fn rate_labels(row: &mut Row, done: &Done) {
    let slot = done.series.slot().as_secs_f64();
    match judge(done.series.whole_slots(done.operated), slot) {
        Steadiness::Steady { rate } => row.put(value::SETTLED_BYTES_PER_SECOND, rate),
        Steadiness::Unsteady { rate, change } => {
            row.put(value::SETTLED_BYTES_PER_SECOND, rate);
            row.put(value::CHANGE, change);
            row.labels.push(label::UNSTEADY.to_owned());
        }
        Steadiness::Short => row.labels.push(label::SHORT.to_owned()),
    }
    row.put(value::PROCESSORS, done.usage.process);
    if let Some(busiest) = done.usage.busiest {
        row.put(value::BUSIEST_PROCESSOR, busiest);
        if busiest >= BUSY && done.elapsed >= BUSY_LEAST {
            row.labels.push(label::PROCESSOR.to_owned());
        }
    }
    if done.behind >= BEHIND {
        row.labels.push(label::OVERLOADED.to_owned());
    }
}
