//! Which events are told, and the document of one.

use serde_json::{Value, json};

use crate::model::{BlockedCause, Event, EventKind, Notice, Task, TaskState};

/// Pairs of a task that its document has; how many there are is told beside them.
const PAIRS_MOST: usize = 100;

/// Whether an event may be one to be told, whatever its task says.
pub fn may_be_told(event: &Event) -> bool {
    matches!(event.kind, EventKind::Ended | EventKind::TimerSkipped | EventKind::TimerEnded) || is_held(event)
}

/// Whether an event is told: an end that its task names; of a task that names none, one of `ends`. Where failures are,
/// so are tasks that a guard holds, and left-out and last runs of timers.
pub fn is_told(event: &Event, task: Option<&Task>, ends: &[Notice]) -> bool {
    let is_wanted = |task: &Task, end| match task.request.notify.is_empty() {
        true => ends.contains(&end) && !task.request.preview,
        false => task.request.notify.contains(&end),
    };
    match event.kind {
        EventKind::Ended => task.is_some_and(|task| end_of(state(event, task)).is_some_and(|end| is_wanted(task, end))),
        EventKind::Paused if is_held(event) => task.is_some_and(|task| is_wanted(task, Notice::Failed)),
        EventKind::TimerSkipped | EventKind::TimerEnded => ends.contains(&Notice::Failed),
        _ => false,
    }
}

/// Whether a guard has paused a task: it waits until somebody looks.
fn is_held(event: &Event) -> bool {
    let cause = event.detail.pointer("/blocked/cause").and_then(Value::as_str);
    event.kind == EventKind::Paused && cause == Some(BlockedCause::Guard.name())
}

/// How the task ended. Its row may tell of a later attempt: somebody had it tried again before its end was dealt with.
fn state(event: &Event, task: &Task) -> TaskState {
    let told = event.detail.get("state").and_then(Value::as_str);
    told.and_then(|state| TaskState::parse(state).ok()).unwrap_or(task.state)
}

fn end_of(state: TaskState) -> Option<Notice> {
    match state {
        TaskState::Succeeded => Some(Notice::Succeeded),
        TaskState::Failed => Some(Notice::Failed),
        TaskState::Partial => Some(Notice::Partial),
        TaskState::Cancelled => Some(Notice::Cancelled),
        _ => None,
    }
}

/// The document: the event, and its task as the API shows it, without what may be long.
pub fn notice_document(event: &Event, task: Option<&Task>) -> Vec<u8> {
    let mut document = json!({ "v": 1, "type": "notice", "event": event });
    if let Some(task) = task {
        let pairs = task.request.pairs.len();
        let mut told = serde_json::to_value(task).unwrap_or_default();
        if let Some(Value::Array(pairs)) = told.pointer_mut("/request/pairs") {
            pairs.truncate(PAIRS_MOST);
        }
        for place in ["/request", "/request/options"] {
            let Some(Value::Object(fields)) = told.pointer_mut(place) else { continue };
            for long in ["only", "filters", "expect_digests"] {
                fields.remove(long);
            }
        }
        document["task"] = told;
        document["pairs"] = pairs.into();
    }
    let mut text = document.to_string().into_bytes();
    text.push(b'\n');
    text
}
