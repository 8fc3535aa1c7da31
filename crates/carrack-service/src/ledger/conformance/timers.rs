//! Rules on timers: a run and its task are one.

use std::thread;

use serde_json::json;

use super::{Rule, all_events, at, behind, end, first, listed, request, rules, submission};
use crate::ledger::{Ledger, LedgerError, NewEvent, Retention, Submission, TaskFilter};
use crate::model::{EventKind, NewTask, Overlap, TaskState, Timer, TimerSchedule, TimerState};

pub const RULES: &[Rule] = rules! {
    timer_is_kept_as_it_was_made
    timer_with_an_identifier_in_use_is_refused
    timer_that_is_not_there_is_missing
    timers_are_paged_the_latest_first
    timers_that_are_due_come_by_their_time
    timer_changes_with_the_task_of_its_run
    timer_run_by_two_at_once_is_one_task
    timer_run_that_is_refused_leaves_the_timer
    timer_removed_leaves_its_tasks
    last_task_of_a_timer_is_not_forgotten
};

/// A timer that is due at second 10.
pub fn timer(id: &str) -> Timer {
    Timer {
        id: id.to_owned(),
        owner: "ada".to_owned(),
        label: Some("each night".to_owned()),
        schedule: TimerSchedule {
            start: Some(at(10)),
            every_seconds: Some(86_400),
            cron: None,
            zone: Some("Europe/Berlin".to_owned()),
            until: Some(at(1_000_000)),
            runs: Some(9),
            jitter_seconds: Some(60),
            overlap: Overlap::Wait,
        },
        task: NewTask { timer: Some(id.to_owned()), ..request() },
        state: TimerState::Waiting,
        next_run: Some(at(10)),
        runs: 0,
        last_task: None,
        made: at(1),
        version: 1,
    }
}

fn event(text: &str) -> NewEvent {
    NewEvent {
        kind: EventKind::TimerRan,
        owner: "ada".to_owned(),
        task: None,
        subject: Some("t".to_owned()),
        text: text.to_owned(),
        detail: json!({}),
    }
}

/// The timer after its next run, and the submission of it.
fn run(timer: &Timer, task: &str) -> (Timer, Submission) {
    let runs = timer.runs + 1;
    let after = Timer { runs, next_run: Some(at(86_410)), ..timer.clone() };
    let submission_id = Some(format!("{} {runs}", timer.id));
    (after, Submission { submission_id, request: timer.task.clone(), ..submission(task) })
}

fn timer_is_kept_as_it_was_made(ledger: &dyn Ledger) {
    let cron = TimerSchedule { cron: Some("0 3 * * 1-5".to_owned()), ..TimerSchedule::default() };
    let plain = Timer { label: None, schedule: cron, next_run: None, state: TimerState::Paused, ..timer("plain") };
    for made in [timer("full"), plain] {
        ledger.add_timer(&made, &event("made")).unwrap();
        assert_eq!(ledger.timer(&made.id).unwrap(), made);
    }
    let events = all_events(ledger);
    assert_eq!(events.len(), 2);
    assert_eq!((events[0].text.as_str(), events[0].time), ("made", at(1)));
}

fn timer_with_an_identifier_in_use_is_refused(ledger: &dyn Ledger) {
    ledger.add_timer(&timer("t"), &event("made")).unwrap();
    let other = Timer { owner: "bob".to_owned(), ..timer("t") };
    assert_eq!(ledger.add_timer(&other, &event("never")), Err(LedgerError::Taken));
    assert_eq!(ledger.timer("t").unwrap().owner, "ada");
    assert_eq!(all_events(ledger).len(), 1);
}

fn timer_that_is_not_there_is_missing(ledger: &dyn Ledger) {
    let (after, submission) = run(&timer("t"), "task");
    assert_eq!(ledger.timer("t"), Err(LedgerError::Missing));
    assert_eq!(ledger.change_timer(&after, Some(&submission), &event("never"), at(10)), Err(LedgerError::Missing));
    assert_eq!(ledger.remove_timer("t", &event("never"), at(10)), Err(LedgerError::Missing));
    assert_eq!(all_events(ledger), []);
    assert_eq!(listed(ledger, &TaskFilter::default()), [""; 0]);
}

fn timers_are_paged_the_latest_first(ledger: &dyn Ledger) {
    for (number, owner) in ["ada", "bob", "ada", "ada"].into_iter().enumerate() {
        let timer = Timer { owner: owner.to_owned(), ..timer(&format!("t{number}")) };
        ledger.add_timer(&timer, &event("made")).unwrap();
    }
    let ids = |owner, page| {
        let timers = ledger.timers(owner, &page).unwrap();
        timers.into_iter().map(|timer| timer.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, first(10)), ["t3", "t2", "t1", "t0"]);
    assert_eq!(ids(None, first(2)), ["t3", "t2"]);
    assert_eq!(ids(None, behind("t2", 10)), ["t1", "t0"]);
    assert_eq!(ids(Some("ada"), behind("t3", 10)), ["t2", "t0"]);
    assert_eq!(ids(Some("eve"), first(10)), [""; 0]);
    assert_eq!(ledger.timers(None, &behind("nobody", 1)), Err(LedgerError::Missing));
}

fn timers_that_are_due_come_by_their_time(ledger: &dyn Ledger) {
    let waiting = |id: &str, second: Option<i64>| Timer { next_run: second.map(at), ..timer(id) };
    let paused = Timer { state: TimerState::Paused, ..waiting("paused", Some(1)) };
    let ended = Timer { state: TimerState::Ended, ..waiting("ended", Some(1)) };
    for timer in [waiting("c", Some(30)), waiting("a", Some(10)), waiting("none", None), paused, ended] {
        ledger.add_timer(&timer, &event("made")).unwrap();
    }
    ledger.add_timer(&waiting("b", Some(20)), &event("made")).unwrap();
    let due = |second, limit| {
        let timers = ledger.due_timers(at(second), limit).unwrap();
        timers.into_iter().map(|timer| timer.id).collect::<Vec<_>>()
    };
    assert_eq!(due(9, 10), [""; 0]);
    assert_eq!(due(10, 10), ["a"]);
    assert_eq!(due(99, 10), ["a", "b", "c"]);
    assert_eq!(due(99, 2), ["a", "b"]);
}

fn timer_changes_with_the_task_of_its_run(ledger: &dyn Ledger) {
    let before = timer("t");
    ledger.add_timer(&before, &event("made")).unwrap();
    let (after, submission) = run(&before, "task-1");
    let submitted = ledger.change_timer(&after, Some(&submission), &event("ran"), at(11)).unwrap().unwrap();
    assert_eq!((submitted.task.id.as_str(), submitted.duplicate), ("task-1", false));
    assert_eq!(ledger.task("task-1").unwrap(), submitted.task);
    let expected = Timer { version: 2, last_task: Some("task-1".to_owned()), ..after };
    assert_eq!(ledger.timer("t").unwrap(), expected);
    assert_eq!(ledger.due_timers(at(11), 10).unwrap(), []);
    assert_eq!(listed(ledger, &TaskFilter { timer: Some("t".to_owned()), ..TaskFilter::default() }), ["task-1"]);
    // A change without a run.
    let paused = Timer { state: TimerState::Paused, label: None, task: request(), ..expected };
    assert_eq!(ledger.change_timer(&paused, None, &event("paused"), at(12)), Ok(None));
    assert_eq!(ledger.timer("t").unwrap(), Timer { version: 3, ..paused });
    let events = all_events(ledger);
    let texts: Vec<_> = events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(texts, ["made", "accepted", "ran", "paused"]);
}

fn timer_run_by_two_at_once_is_one_task(ledger: &dyn Ledger) {
    let before = timer("t");
    ledger.add_timer(&before, &event("made")).unwrap();
    let answers: Vec<_> = thread::scope(|scope| {
        let start = |number: usize| {
            let (after, submission) = run(&before, &format!("task-{number}"));
            move || ledger.change_timer(&after, Some(&submission), &event("ran"), at(11))
        };
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(start(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Some(_)) | Err(LedgerError::Conflict(_)))));
    assert_eq!(listed(ledger, &TaskFilter::default()).len(), 1);
    assert_eq!(ledger.timer("t").unwrap().runs, 1);
}

fn timer_run_that_is_refused_leaves_the_timer(ledger: &dyn Ledger) {
    let before = timer("t");
    ledger.add_timer(&before, &event("made")).unwrap();
    super::accept(ledger, "taken");
    let events = all_events(ledger);
    let (after, submission) = run(&before, "taken");
    assert_eq!(ledger.change_timer(&after, Some(&submission), &event("never"), at(11)), Err(LedgerError::Taken));
    assert_eq!(ledger.timer("t").unwrap(), before);
    assert_eq!(all_events(ledger), events);
    let (after, submission) = run(&before, "task-1");
    let stale = Timer { version: 7, ..after };
    let refused = ledger.change_timer(&stale, Some(&submission), &event("never"), at(11));
    assert!(matches!(refused, Err(LedgerError::Conflict(_))), "{refused:?}");
    assert_eq!(ledger.task("task-1"), Err(LedgerError::Missing));
    assert_eq!(ledger.due_timers(at(11), 10).unwrap(), [before]);
    assert_eq!(all_events(ledger), events);
}

fn timer_removed_leaves_its_tasks(ledger: &dyn Ledger) {
    ledger.add_timer(&timer("t"), &event("made")).unwrap();
    let (after, submission) = run(&timer("t"), "task-1");
    ledger.change_timer(&after, Some(&submission), &event("ran"), at(11)).unwrap();
    ledger.remove_timer("t", &event("removed"), at(12)).unwrap();
    assert_eq!(ledger.timer("t"), Err(LedgerError::Missing));
    assert_eq!(ledger.remove_timer("t", &event("never"), at(12)), Err(LedgerError::Missing));
    assert_eq!(ledger.task("task-1").unwrap().request.timer.as_deref(), Some("t"));
    assert_eq!(all_events(ledger).pop().unwrap().text, "removed");
}

/// What it has found guards the next run, however late that comes.
fn last_task_of_a_timer_is_not_forgotten(ledger: &dyn Ledger) {
    ledger.add_timer(&timer("t"), &event("made")).unwrap();
    for task in ["first", "second"] {
        let (after, submission) = run(&ledger.timer("t").unwrap(), task);
        ledger.change_timer(&after, Some(&submission), &event("ran"), at(20)).unwrap();
        end(ledger, task, TaskState::Succeeded, at(30));
    }
    let forget = |limit| {
        let retention = Retention { tasks_ended_before: at(1000), events_before: at(-1000), limit };
        ledger.forget(&retention).unwrap()
    };
    assert_eq!((forget(1), forget(9)), (vec!["first".to_owned()], Vec::new()));
    assert_eq!(ledger.task("second").unwrap().state, TaskState::Succeeded);
    let (after, submission) = run(&ledger.timer("t").unwrap(), "third");
    ledger.change_timer(&after, Some(&submission), &event("ran"), at(40)).unwrap();
    assert_eq!(forget(9), ["second"]);
    end(ledger, "third", TaskState::Failed, at(50));
    assert_eq!(forget(9), [""; 0]);
    ledger.remove_timer("t", &event("removed"), at(60)).unwrap();
    assert_eq!(forget(9), ["third"]);
}
