//! Rules on the health of endpoints: by the endpoint that a failure is of, by what was moved, and by tests.

use serde_json::json;

use super::places::{event, row};
use super::{ANY, Rule, accept, at, begin, end, note, rules, submission};
use crate::ledger::health::{Fault, HealthRow};
use crate::ledger::{Ledger, LedgerError, NewEvent, Submission, TaskChange};
use crate::model::{EndpointCheck, EndpointTest, EventKind, Pair, Progress, TaskState};

pub const RULES: &[Rule] = rules! {
    endpoint_health_is_told_by_the_endpoint_of_failures
    endpoint_health_is_told_by_what_was_moved
    endpoint_health_has_the_last_test_and_begins_anew
    endpoint_health_counts_open_tasks_by_owner
};

fn endpoints(ledger: &dyn Ledger) {
    for name in ["here", "there", "third"] {
        ledger.add_endpoint(&row(name, 0), &event("added")).unwrap();
    }
}

/// What is known of an endpoint, but for its open tasks.
fn health(ledger: &dyn Ledger, name: &str) -> HealthRow {
    let row = ledger.health(Some(name), None).unwrap().remove(name).unwrap_or_default();
    assert_eq!(ledger.health(None, None).unwrap().remove(name).unwrap_or_default(), row, "{name}");
    HealthRow { open: 0, ..row }
}

pub fn fails(task: &str, code: &str, endpoint: Option<&str>) -> NewEvent {
    let failure = json!({
        "code": code, "side": "link", "endpoint": endpoint, "why": "for a reason", "retryable": "yes",
    });
    NewEvent { kind: EventKind::Fault, detail: json!({ "failure": failure }), ..note(task, "it failed") }
}

fn attempt_fails(ledger: &dyn Ledger, code: &str, endpoint: Option<&str>, second: i64) {
    let queued = TaskChange { state: Some(TaskState::Queued), ..TaskChange::default() };
    ledger.change_task("t1", &ANY, &queued, &[fails("t1", code, endpoint)], at(second)).unwrap();
    ledger.claim("t1", at(second), &note("t1", "again")).unwrap();
}

fn fault(code: &str, unreached: bool, second: i64) -> Option<Fault> {
    let (code, why) = (code.to_owned(), "for a reason".to_owned());
    Some(Fault { time: at(second), unreached, code, why, task: Some(("t1".to_owned(), "ada".to_owned())) })
}

fn endpoint_health_is_told_by_the_endpoint_of_failures(ledger: &dyn Ledger) {
    endpoints(ledger);
    begin(ledger, "t1");
    attempt_fails(ledger, "connect-failed", Some("there"), 10);
    assert_eq!(health(ledger, "there"), HealthRow { fault: fault("connect-failed", true, 10), ..HealthRow::default() });
    assert_eq!(health(ledger, "here"), HealthRow::default(), "the other end has done nothing");
    // A session that is lost ends no attempt, and says as much of the endpoint.
    let lost = fails("t1", "silence", Some("third"));
    let lost = NewEvent { detail: json!({ "lost": lost.detail["failure"] }), ..lost };
    ledger.change_task("t1", &ANY, &TaskChange::default(), &[lost], at(15)).unwrap();
    assert_eq!(health(ledger, "third"), HealthRow::default(), "the task does not use it");
    let lost = fails("t1", "silence", Some("there"));
    let lost = NewEvent { detail: json!({ "lost": lost.detail["failure"] }), ..lost };
    ledger.change_task("t1", &ANY, &TaskChange::default(), &[lost], at(15)).unwrap();
    assert_eq!(health(ledger, "there").fault, fault("silence", true, 15));
    // What is not there was looked for: the endpoint was reached, and is well.
    attempt_fails(ledger, "not-found", Some("here"), 20);
    assert_eq!(health(ledger, "here"), HealthRow { contact: Some(at(20)), ..HealthRow::default() });
    attempt_fails(ledger, "no-space", Some("there"), 30);
    let full = HealthRow { contact: Some(at(30)), fault: fault("no-space", false, 30), ..HealthRow::default() };
    assert_eq!(health(ledger, "there"), full);
    // Of no endpoint, of one that the task does not use, of one that is not there.
    for endpoint in [None, Some("third"), Some("nowhere")] {
        attempt_fails(ledger, "connect-failed", endpoint, 40);
    }
    assert_eq!((health(ledger, "there"), health(ledger, "third")), (full, HealthRow::default()));
    assert!(!ledger.health(None, None).unwrap().contains_key("nowhere"));
}

fn endpoint_health_is_told_by_what_was_moved(ledger: &dyn Ledger) {
    endpoints(ledger);
    begin(ledger, "t1");
    let moves = |id: &str, bytes: u64, second: i64| {
        let progress = Some(Progress { bytes_moved: bytes, ..Progress::default() });
        let change = TaskChange { progress, ..TaskChange::default() };
        ledger.change_task(id, &ANY, &change, &[], at(second)).unwrap();
    };
    moves("t1", 5, 10);
    moves("t1", 5, 20);
    for name in ["here", "there"] {
        assert_eq!(health(ledger, name), HealthRow { contact: Some(at(10)), ..HealthRow::default() }, "{name}");
    }
    end(ledger, "t1", TaskState::Succeeded, at(30));
    let good = HealthRow { contact: Some(at(30)), success: Some(at(30)), ..HealthRow::default() };
    assert_eq!([health(ledger, "here"), health(ledger, "there")], [good.clone(), good.clone()]);
    // Whose bytes they are is not known of a task with several ways, until all is done.
    let mut several = submission("t2");
    several.request.pairs.push(Pair { source: "@third:/a".to_owned(), destination: Some("@there:/c".to_owned()) });
    ledger.submit(&several, at(31)).unwrap();
    ledger.claim("t2", at(31), &note("t2", "begins")).unwrap();
    moves("t2", 5, 40);
    assert_eq!([health(ledger, "there"), health(ledger, "third")], [good, HealthRow::default()]);
    end(ledger, "t2", TaskState::Succeeded, at(50));
    assert_eq!(health(ledger, "third").success, Some(at(50)));
    accept(ledger, "t3");
    end(ledger, "t3", TaskState::Cancelled, at(60));
    assert_eq!(health(ledger, "here").success, Some(at(50)), "what is cancelled shows nothing");
}

fn endpoint_health_has_the_last_test_and_begins_anew(ledger: &dyn Ledger) {
    endpoints(ledger);
    let test = |ok: bool| {
        let check = |name: &str, ok| EndpointCheck { name: name.into(), ok, told: "told".into(), fix: None };
        EndpointTest { ok, checks: vec![check("root", Some(true)), check("write", Some(ok))] }
    };
    ledger.note_test("here", &test(false), at(10)).unwrap();
    let found = health(ledger, "here");
    assert_eq!((found.contact, found.success, &found.test), (Some(at(10)), None, &Some((at(10), test(false)))));
    assert_eq!(
        found.fault.map(|fault| (fault.code, fault.why, fault.task)),
        Some(("test".into(), "write: told".into(), None))
    );
    ledger.note_test("here", &test(true), at(20)).unwrap();
    let found = health(ledger, "here");
    assert_eq!((found.success, found.test.clone()), (Some(at(20)), Some((at(20), test(true)))));
    assert_eq!(ledger.note_test("nowhere", &test(true), at(20)), Err(LedgerError::Missing));
    // What it is called and who may use it says nothing of how it does; where it is does.
    let mut change = ledger.endpoint("here").unwrap();
    change.endpoint.description = "another text".to_owned();
    ledger.change_endpoint(&change, &event("changed"), at(30)).unwrap();
    assert_eq!(health(ledger, "here"), found);
    let mut change = ledger.endpoint("here").unwrap();
    change.endpoint.location = row("here", 1).endpoint.location;
    ledger.change_endpoint(&change, &event("changed"), at(31)).unwrap();
    assert_eq!(health(ledger, "here"), HealthRow::default());
    ledger.note_test("here", &test(true), at(40)).unwrap();
    let mut change = ledger.endpoint("here").unwrap();
    change.sealed_token = Some(vec![1]);
    ledger.change_endpoint(&change, &event("changed"), at(41)).unwrap();
    assert_eq!(health(ledger, "here"), HealthRow::default());
    ledger.note_test("here", &test(true), at(50)).unwrap();
    ledger.remove_endpoint("here", &event("removed"), at(51)).unwrap();
    assert_eq!(health(ledger, "here"), HealthRow::default());
}

fn endpoint_health_counts_open_tasks_by_owner(ledger: &dyn Ledger) {
    endpoints(ledger);
    for id in ["t1", "t2", "t3"] {
        accept(ledger, id);
    }
    let of_bob = Submission { owner: "bob".to_owned(), endpoints: vec!["here".to_owned()], ..submission("t4") };
    ledger.submit(&of_bob, at(0)).unwrap();
    end(ledger, "t3", TaskState::Cancelled, at(1));
    let open = |endpoint: Option<&str>, owner: Option<&str>| -> Vec<(String, u64)> {
        ledger.health(endpoint, owner).unwrap().into_iter().map(|(name, row)| (name, row.open)).collect()
    };
    let counts =
        |counts: &[(&str, u64)]| counts.iter().map(|(name, open)| (name.to_string(), *open)).collect::<Vec<_>>();
    assert_eq!(open(None, None), counts(&[("here", 3), ("there", 2)]));
    assert_eq!(open(None, Some("bob")), counts(&[("here", 1)]));
    assert_eq!(open(Some("here"), Some("ada")), counts(&[("here", 2)]));
    assert_eq!(open(Some("third"), None), []);
}
