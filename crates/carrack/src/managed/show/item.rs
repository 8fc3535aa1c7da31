//! Items of tasks, and events.

use carrack_service::model::{Event, TaskItem};

use super::time;
use crate::output::{format, human};

/// What became of an item.
pub fn item_line(item: &TaskItem) -> String {
    let mut line = format!("{:<7}  {:>15}  {}", item.state.name(), format::count(item.size), item.path);
    if !item.differs.is_empty() {
        line += &format!(" ({})", item.differs.join(", "));
    }
    if let Some(failure) = &item.failure {
        line += &format!(": {}: {}", failure.side, failure.why);
    }
    human::safe(&line)
}

/// What happened, one line.
pub fn event_line(event: &Event) -> String {
    let about = event.task.as_deref().or(event.subject.as_deref()).map(|id| format!(" {id}")).unwrap_or_default();
    human::safe(&format!("{} {}{about}: {}", time(event.time), event.kind.name(), event.text))
}

#[cfg(test)]
mod tests {
    use carrack_service::clock::Moment;
    use carrack_service::model::{EventKind, ItemState, TaskFailure};

    use super::*;

    #[test]
    fn items_and_events_are_one_line_each() {
        let failure = TaskFailure {
            code: "permission-denied".into(),
            side: "source".into(),
            endpoint: None,
            why: "open: Permission denied, \"no\"".into(),
            retryable: false,
            hints: Vec::new(),
        };
        let item = TaskItem {
            pair: 0,
            path: "=a\nb".into(),
            kind: "file".into(),
            state: ItemState::Failed,
            size: 12_345,
            digest: None,
            failure: Some(failure),
            differs: Vec::new(),
        };
        assert_eq!(item_line(&item), "failed            12,345  =a\\x0ab: source: open: Permission denied, \"no\"");
        let event = Event {
            id: 7,
            time: Moment(1_795_420_800_500_000),
            kind: EventKind::Started,
            owner: "me".into(),
            task: Some("0193".into()),
            subject: None,
            text: "attempt 1".into(),
            detail: serde_json::json!({}),
        };
        assert_eq!(event_line(&event), "2026-11-23T08:00:00Z started 0193: attempt 1");
    }
}
