//! A task as a verb prints it.

use std::time::SystemTime;

use carrack_service::model::{Event, Task};
use serde::Serialize;
use serde_json::Value;

use crate::managed::show;
use crate::output::json as objects;
use crate::output::lines::Lines;

/// A document of the service as an object of this type.
pub fn object(kind: &str, document: &impl Serialize) -> Value {
    objects::object(kind, SystemTime::now(), serde_json::to_value(document).unwrap_or_default())
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
        let document = serde_json::to_value(event).unwrap_or_default();
        out.json(&objects::object("task-event", show::system_time(event.time), document));
    } else {
        out.line(show::event_line(event).as_bytes());
    }
}
