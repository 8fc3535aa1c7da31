//! A task as a verb prints it.

use std::time::SystemTime;

use carrack_service::model::{Event, Task};
use serde::Serialize;
use serde_json::Value;

use crate::managed::show;
use crate::output::json as objects;
use crate::output::lines::Lines;

/// An object of this type with the fields that the API of the service has: `jq .id` works.
pub fn object(kind: &str, document: &impl Serialize) -> Value {
    at(SystemTime::now(), kind, document)
}

fn at(time: SystemTime, kind: &str, document: &impl Serialize) -> Value {
    // What the API answers can be written.
    objects::object(kind, time, serde_json::to_value(document).unwrap_or_default())
}

/// A task in full.
pub fn task(out: &mut Lines, json: bool, task: &Task) {
    if json {
        out.json(&object("task", task));
    } else {
        show::task_lines(task).iter().for_each(|line| out.line(line.as_bytes()));
    }
}

/// An event; its object has the time at which it happened.
pub fn event(out: &mut Lines, json: bool, event: &Event) {
    if json {
        out.json(&at(show::system_time(event.time), "task-event", event));
    } else {
        out.line(show::event_line(event).as_bytes());
    }
}
