//! What the service answers, in words for a person. Every text may come from somebody else: what could drive a terminal
//! is made harmless.

mod faults;
mod identity;
mod item;
mod task;
mod timer;

mod endpoint;

use std::time::SystemTime;

use carrack_service::clock::Moment;
pub use endpoint::{ENDPOINT_HEADINGS, endpoint_lines, endpoint_row};
pub use faults::fault_lines;
pub use identity::{TOKEN_HEADINGS, USER_HEADINGS, token_row, user_row, whoami_line};
pub use item::{event_line, item_line};
#[cfg(test)]
pub use task::tests::task as task_of_tests;
pub use task::{
    TASK_HEADINGS, acted_line, leftover_lines, plan_lines, progress_line, removed_lines, start_words, takes,
    task_lines, task_row,
};
pub use timer::{TIMER_HEADINGS, timer_lines, timer_row};

use crate::output::{format, human};

/// To the second: `2026-11-23T08:00:00Z`.
pub fn time(moment: Moment) -> String {
    format::rfc3339_seconds(moment.0.div_euclid(1_000_000))
}

/// The same, or a dash.
fn maybe_time(moment: Option<Moment>) -> String {
    moment.map_or_else(|| "-".to_owned(), time)
}

/// For the field `time` of a JSON object.
pub fn system_time(moment: Moment) -> SystemTime {
    let micros = std::time::Duration::from_micros(moment.0.unsigned_abs());
    match moment.0 {
        0.. => SystemTime::UNIX_EPOCH + micros,
        _ => SystemTime::UNIX_EPOCH - micros,
    }
}

/// Not longer than `most` characters; what is left out is told by dots.
fn shortened(text: &str, most: usize) -> String {
    let text = human::safe(text);
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}
