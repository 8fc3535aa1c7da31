//! Rules on endpoints.

use carrack_core::request::Verify;
use serde_json::json;

use super::{Rule, accept, all_events, at, behind, end, first, rules, timers::timer};
use crate::ledger::{EndpointRow, Ledger, LedgerError, NewEvent};
use crate::model::{
    Endpoint, EndpointDefaults, EndpointLimits, EndpointLocation, EventKind, RateWindow, TaskState, Timer, TimerState,
};

pub const RULES: &[Rule] = rules! {
    endpoint_is_kept_as_it_was_added
    endpoint_with_a_name_in_use_is_refused
    endpoint_that_is_not_there_is_missing
    endpoint_changes_only_at_its_version
    endpoint_keeps_its_location_while_open_tasks_use_it
    endpoint_shows_whether_it_has_a_token
    endpoints_are_paged_by_name
    endpoint_in_use_is_not_removed
    endpoint_is_removed_once
};

fn location(number: usize) -> EndpointLocation {
    match number % 3 {
        0 => EndpointLocation::Local { root: "/srv/data".to_owned() },
        1 => EndpointLocation::Node {
            host: "2001:db8::1".to_owned(),
            port: 5555,
            fingerprint: Some("00ff".to_owned()),
            path: "/in \u{fc}".to_owned(),
        },
        _ => EndpointLocation::Ssh { user: None, host: "lab".to_owned(), path: "data".to_owned() },
    }
}

pub fn row(name: &str, number: usize) -> EndpointRow {
    let window = RateWindow { from: "22:00".to_owned(), until: "06:00".to_owned(), rate: 1 << 40 };
    let limits = EndpointLimits {
        transfers: Some(3),
        streams: Some(8),
        rate: None,
        timetable: vec![window],
        drained: Some("new disks".to_owned()),
    };
    EndpointRow {
        endpoint: Endpoint {
            name: name.to_owned(),
            owner: "ada".to_owned(),
            location: location(number),
            read_only: true,
            uploads: number == 1,
            ownership: number == 2,
            limits,
            defaults: EndpointDefaults { verify: Some(Verify::Disk), encrypt: None },
            description: "the beamline's buffer".to_owned(),
            users: vec!["bob".to_owned(), "*".to_owned()],
            has_token: number == 1,
            added: at(2),
            version: 1,
            health: None,
        },
        sealed_token: (number == 1).then(|| vec![0, 255, 7]),
    }
}

pub fn event(text: &str) -> NewEvent {
    NewEvent {
        kind: EventKind::EndpointChanged,
        owner: "ada".to_owned(),
        task: None,
        subject: Some("here".to_owned()),
        text: text.to_owned(),
        detail: json!({}),
    }
}

fn last_event(ledger: &dyn Ledger) -> (String, i64) {
    let event = all_events(ledger).pop().unwrap();
    (event.text, event.time.0)
}

fn kept(ledger: &dyn Ledger, name: &str) -> (Endpoint, Option<Vec<u8>>) {
    let row = ledger.endpoint(name).unwrap();
    (row.endpoint, row.sealed_token)
}

fn endpoint_is_kept_as_it_was_added(ledger: &dyn Ledger) {
    for number in 0..3 {
        let name = format!("e{number}");
        let added = row(&name, number);
        ledger.add_endpoint(&added, &event("added")).unwrap();
        assert_eq!(kept(ledger, &name), (added.endpoint, added.sealed_token));
        assert_eq!(last_event(ledger), ("added".to_owned(), at(2).0));
    }
}

fn endpoint_with_a_name_in_use_is_refused(ledger: &dyn Ledger) {
    ledger.add_endpoint(&row("here", 0), &event("added")).unwrap();
    assert_eq!(ledger.add_endpoint(&row("here", 1), &event("never")), Err(LedgerError::Taken));
    assert_eq!(kept(ledger, "here").0, row("here", 0).endpoint);
    assert_eq!(all_events(ledger).len(), 1);
    // Names that differ by case are two.
    ledger.add_endpoint(&row("Here", 1), &event("added")).unwrap();
}

fn endpoint_that_is_not_there_is_missing(ledger: &dyn Ledger) {
    assert!(matches!(ledger.endpoint("here"), Err(LedgerError::Missing)));
    assert_eq!(ledger.change_endpoint(&row("here", 0), &event("never"), at(3)), Err(LedgerError::Missing));
    assert_eq!(ledger.remove_endpoint("here", &event("never"), at(3)), Err(LedgerError::Missing));
    assert_eq!(all_events(ledger), []);
}

fn endpoint_changes_only_at_its_version(ledger: &dyn Ledger) {
    ledger.add_endpoint(&row("here", 0), &event("added")).unwrap();
    let mut change = row("here", 2);
    change.endpoint.owner = "bob".to_owned();
    let changed = ledger.change_endpoint(&change, &event("changed"), at(3)).unwrap();
    assert_eq!(changed, Endpoint { version: 2, ..change.endpoint.clone() });
    assert_eq!(kept(ledger, "here"), (changed.clone(), None));
    assert_eq!(last_event(ledger), ("changed".to_owned(), at(3).0));
    let refused = ledger.change_endpoint(&row("here", 0), &event("never"), at(4));
    assert!(matches!(refused, Err(LedgerError::Conflict(_))), "{refused:?}");
    assert_eq!(kept(ledger, "here"), (changed, None));
    assert_eq!(all_events(ledger).len(), 2);
}

fn endpoint_shows_whether_it_has_a_token(ledger: &dyn Ledger) {
    ledger.add_endpoint(&row("here", 0), &event("added")).unwrap();
    let mut change = row("here", 0);
    change.sealed_token = Some(vec![1, 2]);
    assert!(ledger.change_endpoint(&change, &event("token"), at(3)).unwrap().has_token);
    let mut change = ledger.endpoint("here").unwrap();
    assert_eq!((change.endpoint.has_token, &change.sealed_token), (true, &Some(vec![1, 2])));
    change.sealed_token = None;
    assert!(!ledger.change_endpoint(&change, &event("no token"), at(3)).unwrap().has_token);
    assert!(!ledger.endpoints(&first(1)).unwrap()[0].has_token);
}

fn endpoints_are_paged_by_name(ledger: &dyn Ledger) {
    let names = ["B", "a", "a-b", "a.b", "b", "c_1"];
    for name in ["c_1", "a", "b", "a.b", "B", "a-b"] {
        ledger.add_endpoint(&row(name, 0), &event("added")).unwrap();
    }
    let names_of = |endpoints: Vec<Endpoint>| endpoints.into_iter().map(|endpoint| endpoint.name).collect::<Vec<_>>();
    assert_eq!(names_of(ledger.endpoints(&first(10)).unwrap()), names);
    assert_eq!(names_of(ledger.endpoints(&first(2)).unwrap()), names[..2]);
    assert_eq!(names_of(ledger.endpoints(&behind("a", 3)).unwrap()), names[2..5]);
    // One that was removed meanwhile still has its place.
    assert_eq!(names_of(ledger.endpoints(&behind("a-z", 3)).unwrap()), names[3..]);
    assert_eq!(ledger.endpoints(&behind("c_1", 3)).unwrap(), []);
}

fn endpoint_in_use_is_not_removed(ledger: &dyn Ledger) {
    ledger.add_endpoint(&row("here", 0), &event("added")).unwrap();
    let used_by = |id: &str| {
        let refused = ledger.remove_endpoint("here", &event("never"), at(4));
        assert!(matches!(&refused, Err(LedgerError::Conflict(why)) if why.contains(id)), "{refused:?}");
        assert!(ledger.endpoint("here").is_ok());
    };
    accept(ledger, "task-1");
    used_by("task-1");
    end(ledger, "task-1", TaskState::Failed, at(5));
    ledger.add_timer(&timer("timer-1"), &event("made")).unwrap();
    used_by("timer-1");
    let ended = Timer { state: TimerState::Ended, next_run: None, ..ledger.timer("timer-1").unwrap() };
    ledger.change_timer(&ended, None, &event("ended"), at(6)).unwrap();
    ledger.remove_endpoint("here", &event("removed"), at(7)).unwrap();
    assert_eq!(last_event(ledger), ("removed".to_owned(), at(7).0));
}

fn endpoint_keeps_its_location_while_open_tasks_use_it(ledger: &dyn Ledger) {
    ledger.add_endpoint(&row("here", 1), &event("added")).unwrap();
    let now = || ledger.endpoint("here").unwrap();
    let moved = || {
        let mut row = now();
        row.endpoint.location = location(2);
        row
    };
    accept(ledger, "task-1");
    accept(ledger, "task-2");
    let before = now();
    let refused = ledger.change_endpoint(&moved(), &event("never"), at(4));
    assert!(
        matches!(&refused, Err(LedgerError::Conflict(why)) if why.contains("task-1") && why.contains("another one")),
        "{refused:?}"
    );
    assert!(now() == before);
    // All else may change, its token too.
    let mut other = now();
    (other.endpoint.description, other.sealed_token) = ("moved soon".to_owned(), Some(vec![1]));
    ledger.change_endpoint(&other, &event("described"), at(5)).unwrap();
    end(ledger, "task-1", TaskState::Failed, at(6));
    assert!(ledger.change_endpoint(&moved(), &event("never"), at(7)).is_err());
    end(ledger, "task-2", TaskState::Partial, at(8));
    assert_eq!(ledger.change_endpoint(&moved(), &event("moved"), at(9)).unwrap().location, location(2));
    assert_eq!(last_event(ledger), ("moved".to_owned(), at(9).0));
}

fn endpoint_is_removed_once(ledger: &dyn Ledger) {
    ledger.add_endpoint(&row("here", 1), &event("added")).unwrap();
    ledger.remove_endpoint("here", &event("removed"), at(4)).unwrap();
    assert_eq!(ledger.remove_endpoint("here", &event("never"), at(4)), Err(LedgerError::Missing));
    ledger.add_endpoint(&row("here", 0), &event("added")).unwrap();
    assert_eq!(kept(ledger, "here"), (row("here", 0).endpoint, None));
}
