//! Rules on events, and on what is forgotten.

use serde_json::json;

use super::{Rule, accept, all_events, at, begin, end, listed, note, rules, submission};
use crate::ledger::{EventFilter, Ledger, LedgerError, NewEvent, Retention, Submission, TaskFilter};
use crate::model::{Event, EventKind, TaskState};

pub const RULES: &[Rule] = rules! {
    events_are_kept_as_they_were_told
    events_are_told_in_order_from_where_one_stopped
    events_are_told_by_owner_and_task
    events_have_numbers_that_never_come_again
    forget_takes_tasks_that_ended_and_their_events
    forget_takes_so_many_at_a_time
    forget_leaves_a_task_that_was_reopened
    forgotten_tasks_are_told_until_their_directories_are_gone
    probe_answers
};

fn texts(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.text.as_str()).collect()
}

fn since(since: u64) -> EventFilter {
    EventFilter { since, ..EventFilter::default() }
}

fn events_are_kept_as_they_were_told(ledger: &dyn Ledger) {
    let detail = json!({ "streams": 8, "why": ["a", null, { "b": 1.5 }] });
    for kind in EventKind::ALL {
        let event = NewEvent {
            kind: *kind,
            owner: "ada".to_owned(),
            task: None,
            subject: Some("tiger \u{1f42f}".to_owned()),
            text: "it's 100% \"so\"".to_owned(),
            detail: detail.clone(),
        };
        ledger.record(&[event], at(5)).unwrap();
    }
    let events = all_events(ledger);
    assert_eq!(events.len(), EventKind::ALL.len());
    for (event, kind) in events.iter().zip(EventKind::ALL) {
        assert_eq!((event.kind, event.time, &event.detail), (*kind, at(5), &detail));
        assert_eq!((event.task.as_deref(), event.subject.as_deref()), (None, Some("tiger \u{1f42f}")));
        assert_eq!((event.owner.as_str(), event.text.as_str()), ("ada", "it's 100% \"so\""));
    }
}

fn events_are_told_in_order_from_where_one_stopped(ledger: &dyn Ledger) {
    assert_eq!(ledger.event_range().unwrap(), (0, 1));
    ledger.record(&[note("t1", "a"), note("t1", "b")], at(9)).unwrap();
    // The clock steps back; the order stays.
    ledger.record(&[note("t1", "c"), note("t1", "d")], at(1)).unwrap();
    ledger.record(&[], at(1)).unwrap();
    let all = all_events(ledger);
    assert_eq!(texts(&all), ["a", "b", "c", "d"]);
    assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id));
    let seen = ledger.events(&since(0), 3).unwrap();
    assert_eq!(texts(&seen), ["a", "b", "c"]);
    assert_eq!(ledger.events(&since(seen[2].id), 3).unwrap(), all[3..]);
    assert_eq!(ledger.events(&since(all[3].id), 3).unwrap(), []);
    assert_eq!(ledger.event_range().unwrap(), (all[3].id, all[0].id));
}

fn events_are_told_by_owner_and_task(ledger: &dyn Ledger) {
    let of = |owner: &str, task: &str| NewEvent { owner: owner.to_owned(), ..note(task, &format!("{owner} {task}")) };
    ledger.record(&[of("ada", "t1"), of("bob", "t2"), of("bob", "t1"), of("ada", "t2")], at(1)).unwrap();
    let told = |owner: Option<&str>, task: Option<&str>, since: u64| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let filter = EventFilter { since, owner: text(owner), task: text(task) };
        let events = ledger.events(&filter, 10).unwrap();
        events.into_iter().map(|event| event.text).collect::<Vec<_>>()
    };
    let first = all_events(ledger)[0].id;
    assert_eq!(told(Some("ada"), None, 0), ["ada t1", "ada t2"]);
    assert_eq!(told(Some("ada"), None, first), ["ada t2"]);
    assert_eq!(told(None, Some("t1"), 0), ["ada t1", "bob t1"]);
    assert_eq!(told(Some("bob"), Some("t1"), 0), ["bob t1"]);
    assert_eq!(told(Some("eve"), Some("t1"), 0), [""; 0]);
}

fn retention(tasks: i64, events: i64, limit: usize) -> Retention {
    Retention { tasks_ended_before: at(tasks), events_before: at(events), limit }
}

fn events_have_numbers_that_never_come_again(ledger: &dyn Ledger) {
    ledger.record(&[note("t1", "a"), note("t1", "b")], at(1)).unwrap();
    let (last, _) = ledger.event_range().unwrap();
    ledger.forget(&retention(0, 100, 10)).unwrap();
    assert_eq!(all_events(ledger), []);
    assert_eq!(ledger.event_range().unwrap(), (last, last + 1));
    ledger.record(&[note("t1", "c")], at(2)).unwrap();
    assert!(all_events(ledger)[0].id > last);
}

fn forget_takes_tasks_that_ended_and_their_events(ledger: &dyn Ledger) {
    begin(ledger, "old");
    end(ledger, "old", TaskState::Succeeded, at(10));
    begin(ledger, "new");
    end(ledger, "new", TaskState::Succeeded, at(20));
    accept(ledger, "open");
    ledger.record(&[NewEvent { task: None, ..note("", "of none") }], at(30)).unwrap();
    assert_eq!(ledger.forget(&retention(20, -1000, 10)).unwrap(), ["old"]);
    assert_eq!(ledger.task("old"), Err(LedgerError::Missing));
    assert_eq!(listed(ledger, &TaskFilter::default()), ["open", "new"]);
    assert_eq!(listed(ledger, &TaskFilter { endpoint: Some("here".to_owned()), ..TaskFilter::default() }).len(), 2);
    let events = all_events(ledger);
    assert!(events.iter().all(|event| event.task.as_deref() != Some("old")));
    assert_eq!(events.len(), 4, "{events:?}");
    assert_eq!(ledger.forget(&retention(20, -1000, 10)).unwrap(), [""; 0]);
    // Events of open tasks grow old, too.
    assert_eq!(ledger.forget(&retention(0, 25, 10)).unwrap(), [""; 0]);
    assert_eq!(texts(&all_events(ledger)), ["of none"]);
    assert_eq!(ledger.open_tasks().unwrap().len(), 1);
}

fn forget_takes_so_many_at_a_time(ledger: &dyn Ledger) {
    for number in 0..5 {
        let id = format!("t{number}");
        accept(ledger, &id);
        // Those that ended first go first.
        end(ledger, &id, TaskState::Cancelled, at(10 - number));
    }
    assert_eq!(ledger.forget(&retention(100, -1000, 2)).unwrap(), ["t4", "t3"]);
    assert_eq!(ledger.forget(&retention(100, -1000, 2)).unwrap(), ["t2", "t1"]);
    assert_eq!(ledger.forget(&retention(100, -1000, 2)).unwrap(), ["t0"]);
}

fn forget_leaves_a_task_that_was_reopened(ledger: &dyn Ledger) {
    let once = Submission { submission_id: Some("once".to_owned()), ..submission("t1") };
    ledger.submit(&once, at(0)).unwrap();
    end(ledger, "t1", TaskState::Failed, at(1));
    ledger.reopen("t1", at(2), None, &note("t1", "again")).unwrap();
    assert_eq!(ledger.forget(&retention(100, -1000, 10)).unwrap(), [""; 0]);
    end(ledger, "t1", TaskState::Failed, at(3));
    assert_eq!(ledger.forget(&retention(100, -1000, 10)).unwrap(), ["t1"]);
    // With the task goes the memory of its submission.
    assert!(!ledger.submit(&once, at(4)).unwrap().duplicate);
}

fn forgotten_tasks_are_told_until_their_directories_are_gone(ledger: &dyn Ledger) {
    for (id, ended) in [("t2", 1), ("t1", 2), ("t3", 90)] {
        accept(ledger, id);
        end(ledger, id, TaskState::Cancelled, at(ended));
    }
    assert_eq!(ledger.forgotten().unwrap(), [""; 0]);
    assert_eq!(ledger.forget(&retention(50, -1000, 10)).unwrap(), ["t2", "t1"]);
    assert_eq!(ledger.forgotten().unwrap(), ["t1", "t2"]);
    ledger.directories_removed(&["t2".to_owned(), "never".to_owned()]).unwrap();
    assert_eq!(ledger.forgotten().unwrap(), ["t1"]);
    assert_eq!(ledger.forget(&retention(100, -1000, 10)).unwrap(), ["t3"]);
    assert_eq!(ledger.forgotten().unwrap(), ["t1", "t3"]);
    ledger.directories_removed(&["t1".to_owned(), "t3".to_owned()]).unwrap();
    assert_eq!(ledger.forgotten().unwrap(), [""; 0]);
}

fn probe_answers(ledger: &dyn Ledger) {
    assert_eq!(ledger.probe(), Ok(()));
    assert_eq!(ledger.probe(), Ok(()));
    assert_eq!(all_events(ledger), []);
}
