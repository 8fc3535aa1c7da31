//! A row that cannot be read never hides the others, and is never tried for ever.

use carrack_core::options::{RateBound, Streams};
use carrack_core::request::{Digests, Verify};

use super::*;
use crate::ledger::rules;
use crate::model::{EventKind, Overlap, TaskOptions, TimerSchedule, TimerState};

fn with_three_tasks() -> Place {
    let place = Place::new();
    let ledger = place.open();
    for id in ["t1", "t2", "t3"] {
        ledger.submit(&submission(id), Moment(3)).unwrap();
    }
    place
}

fn note() -> NewEvent {
    rules::submitted_event(&submission("t2"))
}

#[test]
fn unreadable_request_fails_its_task_alone() {
    for column in [r#"request = '{"pairs": 7}'"#, "request = ''", "state = 'DREAMING'", "blocked = '{}'"] {
        let place = with_three_tasks();
        place.alter(&format!("UPDATE task SET {column} WHERE id = 't2'"));
        let ledger = place.open();
        let listed = ledger.tasks(&TaskFilter::default(), &Page { after: None, limit: 10 }).unwrap();
        assert_eq!(listed.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["t3", "t2", "t1"], "{column}");
        assert!(ledger.claim("t2", Moment(4), &note()).is_err(), "{column}");
        // Nobody counts it among the failed tasks.
        assert_eq!(ledger.count_tasks().is_err(), column.starts_with("state"), "{column}");
        let open: Vec<_> = ledger.open_tasks().unwrap().into_iter().map(|(task, _)| task.id).collect();
        assert_eq!(open, ["t1", "t3"], "{column}");
        let failed = ledger.task("t2").unwrap();
        assert_eq!(failed.state, TaskState::Failed, "{column}");
        assert!(failed.ended.is_some() && failed.failure.is_some_and(|failure| !failure.retryable), "{column}");
        let events = ledger.events(&EventFilter { task: Some("t2".to_owned()), ..EventFilter::default() }, 10).unwrap();
        assert_eq!(events.iter().filter(|event| event.kind == EventKind::Ended).count(), 1, "{column}");
        // Once.
        ledger.open_tasks().unwrap();
        let (last, _) = ledger.event_range().unwrap();
        assert_eq!(last, events.last().unwrap().id, "{column}");
    }
}

/// Options that an earlier version took and that mean nothing: the task is refused with the sentence of its option, and
/// shows what else it says.
#[test]
fn unreadable_options_are_told_and_hide_nothing_else() {
    for (options, sentence) in [
        (r#"{"digest": "blake3,xxh128"}"#, "not computed together"),
        (r#"{"digest": ""}"#, r#""" is not a digest"#),
        (r#"{"digest": "md5"}"#, r#""md5" is not a digest"#),
        (r#"{"digest": "blake3,none"}"#, "or none alone"),
        (r#"{"streams": 0}"#, "use 1 to 256"),
    ] {
        let place = with_three_tasks();
        place.alter(&format!(
            "UPDATE task SET request = json_set(request, '$.options', json('{options}')) WHERE id = 't2'"
        ));
        let ledger = place.open();
        let open: Vec<_> = ledger.open_tasks().unwrap().into_iter().map(|(task, _)| task.id).collect();
        assert_eq!(open, ["t1", "t3"], "{options}");
        let failed = ledger.task("t2").unwrap();
        let why = failed.failure.unwrap().why;
        assert!(failed.state == TaskState::Failed && why.contains(sentence), "{options}: {why}");
        assert_eq!(failed.request.pairs, submission("t2").request.pairs, "{options}");
    }
    // What means something is read as it was written, in whatever order.
    let place = with_three_tasks();
    let options = r#"{"digest": "crc32c,blake3,adler32", "verify": "disk", "streams": 3, "rate_limit": 7}"#;
    place
        .alter(&format!("UPDATE task SET request = json_set(request, '$.options', json('{options}')) WHERE id = 't2'"));
    let read = place.open().task("t2").unwrap().request.options;
    let digest = Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 };
    assert_eq!((read.digest, read.verify), (Some(digest), Some(Verify::Disk)));
    assert_eq!((read.streams, read.rate_limit), (Some(Streams::Fixed(3)), Some(RateBound::new(7))));
    let again: TaskOptions = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
    assert_eq!(again, read);
}

#[test]
fn unreadable_progress_is_that_of_a_task_that_begins() {
    let place = with_three_tasks();
    place.alter("UPDATE task SET progress = '{\"rates\": {\"now\": null}}' WHERE id = 't2'");
    let ledger = place.open();
    assert_eq!(ledger.open_tasks().unwrap().len(), 3);
    assert_eq!(ledger.task("t2").unwrap().progress, crate::model::Progress::default());
}

#[test]
fn unreadable_event_is_told_as_a_note() {
    let place = with_three_tasks();
    place.alter("UPDATE event SET kind = 'shared', detail = '{' WHERE task = 't2'");
    let events = place.open().events(&EventFilter::default(), 10).unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Submitted, EventKind::Note, EventKind::Submitted]);
}

#[test]
fn unreadable_timer_is_paused_and_the_others_run() {
    let place = Place::new();
    let timer = |id: &str| Timer {
        id: id.to_owned(),
        owner: "ada".to_owned(),
        label: None,
        schedule: TimerSchedule { every_seconds: Some(60), overlap: Overlap::Skip, ..TimerSchedule::default() },
        task: submission(id).request,
        state: TimerState::Waiting,
        next_run: Some(Moment(9)),
        runs: 0,
        last_task: None,
        made: Moment(0),
        version: 1,
    };
    let ledger = place.open();
    ledger.add_timer(&timer("a"), &note()).unwrap();
    ledger.add_timer(&timer("b"), &note()).unwrap();
    place.alter("UPDATE timer SET schedule = '{\"moon\": \"full\"}' WHERE id = 'a'");
    assert_eq!(ledger.due_timers(Moment(9), 10).unwrap(), [timer("b")]);
    assert!(ledger.timer("a").is_err());
    // It stands in nobody's way any more.
    assert_eq!(ledger.due_timers(Moment(9), 1).unwrap(), [timer("b")]);
    let told = ledger.events(&EventFilter::default(), 10).unwrap();
    assert_eq!(told.iter().filter(|event| event.subject.as_deref() == Some("a")).count(), 1);
}

/// A scope that cannot be read must not become none, which allows all.
#[test]
fn unreadable_scope_lets_nobody_in() {
    let place = Place::new();
    let ledger = place.open();
    let user =
        User { name: "ada".to_owned(), role: crate::model::Role::User, account: None, enabled: true, added: Moment(0) };
    ledger.add_user(&UserRow { user, password: None }).unwrap();
    let token = TokenRow {
        id: "t".to_owned(),
        user: "ada".to_owned(),
        label: String::new(),
        scope: Some(crate::model::Scope::default()),
        made: Moment(0),
        expires: None,
        used: None,
        is_session: false,
    };
    ledger.add_token(&token, &[0; 32]).unwrap();
    for scope in ["''", "'null'", "'{\"verbs\": [\"all\"]}'"] {
        place.alter(&format!("UPDATE token SET scope = {scope}"));
        assert!(matches!(ledger.token("t"), Err(LedgerError::Broken(_))), "{scope}");
    }
}
