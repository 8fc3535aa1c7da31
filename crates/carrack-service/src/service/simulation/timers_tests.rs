//! Timers over crashes of the service and faults of the ledger: no run twice, none lost.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use carrack_core::options::DeleteLimit;
use serde_json::json;

use super::script::Script;
use super::world::Work;
use crate::clock::Clock;
use crate::ledger::{EventFilter, Ledger, NewEvent, Page, TaskFilter};
use crate::model::{EventKind, NewTask, Overlap, Pair, RunGuard, TaskState, Timer, TimerSchedule, TimerState};

fn add(script: &Script, id: &str, schedule: TimerSchedule) {
    let now = script.clock.now();
    let source = format!("@n0:{}", Work { items: 2, ..Work::default() }.path());
    let pair = Pair { source, destination: Some("@n1:/to".to_owned()) };
    let task = NewTask { pairs: vec![pair], ..NewTask::default() };
    let (id, owner, state) = (id.to_owned(), "ann".to_owned(), TimerState::Waiting);
    let next_run = Some(crate::schedule::timer::check(&schedule, now).unwrap());
    let timer = Timer {
        id,
        owner,
        label: None,
        schedule,
        task,
        state,
        next_run,
        runs: 0,
        last_task: None,
        made: now,
        version: 1,
    };
    let (kind, owner, subject) = (EventKind::TimerMade, "ann".to_owned(), Some(timer.id.clone()));
    let event = NewEvent { kind, owner, task: None, subject, text: String::new(), detail: json!({}) };
    script.ledger.add_timer(&timer, &event).unwrap();
}

fn every(seconds: u64) -> TimerSchedule {
    TimerSchedule { every_seconds: Some(seconds), overlap: Overlap::Start, ..TimerSchedule::default() }
}

/// Tasks of each timer.
fn tasks(script: &Script) -> BTreeMap<String, u64> {
    let mut tasks = BTreeMap::new();
    for task in script.ledger.tasks(&TaskFilter::default(), &Page { after: None, limit: 100_000 }).unwrap() {
        *tasks.entry(task.request.timer.unwrap()).or_default() += 1;
    }
    tasks
}

#[test]
fn timer_runs_once_each_time_whoever_is_killed() {
    for seed in 0..20 {
        let mut script = Script::new(seed);
        for n in 0..5 {
            add(&script, &format!("timer {n}"), every(20 + n));
        }
        let began = script.clock.elapsed();
        for _ in 0..400 {
            match script.chance.below(20) {
                0 => script.kill_service(),
                1..5 => {
                    let calls = 1 + script.chance.below(8) as i64;
                    script.faults.is_done.store(script.chance.below(2) == 0, Ordering::Relaxed);
                    script.faults.kills.store(script.chance.below(2) == 0, Ordering::Relaxed);
                    script.faults.calls_until_fault.store(calls, Ordering::Relaxed);
                }
                _ => {}
            }
            if script.dispatcher.is_none() && script.chance.below(3) == 0 {
                script.start_service();
            }
            script.second();
        }
        script.mend();
        script.turn();
        let (passed, tasks) = ((script.clock.elapsed() - began).as_secs(), tasks(&script));
        for n in 0..5 {
            let id = format!("timer {n}");
            let timer = script.ledger.timer(&id).unwrap();
            assert_eq!(Some(&timer.runs), tasks.get(&id), "seed {seed}: {timer:?}");
            // Runs that were missed together are one; each due time is in exactly one run.
            assert_eq!(timer.runs + missed(&script, &id), passed / (20 + n) + 1, "seed {seed}: {timer:?}");
        }
    }
}

fn missed(script: &Script, timer: &str) -> u64 {
    let events = script.ledger.events(&EventFilter::default(), 100_000).unwrap();
    let of_timer =
        events.iter().filter(|event| event.kind == EventKind::TimerRan && event.subject.as_deref() == Some(timer));
    of_timer.filter_map(|event| event.detail["missed"].as_u64()).sum()
}

#[test]
fn timer_missed_while_the_service_was_stopped_runs_once_and_says_so() {
    let mut script = Script::new(1);
    add(&script, "hourly", every(3600));
    script.second();
    script.kill_service();
    script.clock.pass(Duration::from_secs(3 * 3600 + 60));
    script.start_service();
    script.second();
    script.second();
    assert_eq!((tasks(&script)["hourly"], missed(&script, "hourly")), (2, 2));
}

#[test]
fn timer_that_cannot_be_read_ends_once() {
    let mut script = Script::new(1);
    add(&script, "t", every(60));
    let timer = script.ledger.timer("t").unwrap();
    let schedule = TimerSchedule { cron: Some("not five".to_owned()), ..TimerSchedule::default() };
    let (kind, owner, subject) = (EventKind::Updated, "ann".to_owned(), Some("t".to_owned()));
    let event = NewEvent { kind, owner, task: None, subject, text: String::new(), detail: json!({}) };
    script.ledger.change_timer(&Timer { schedule, ..timer }, None, &event, script.clock.now()).unwrap();
    for _ in 0..5 {
        script.second();
    }
    assert_eq!(script.ledger.timer("t").unwrap().state, TimerState::Ended);
    let events = script.ledger.events(&EventFilter::default(), 1000).unwrap();
    assert_eq!(events.iter().filter(|event| event.kind == EventKind::TimerEnded).count(), 1);
}

#[test]
fn timer_whose_token_was_revoked_runs_no_more_and_says_why() {
    let mut script = Script::new(3);
    add(&script, "nightly", every(20));
    let mut timer = script.ledger.timer("nightly").unwrap();
    timer.task.token = Some("revoked".to_owned());
    let (kind, owner) = (EventKind::Updated, "ann".to_owned());
    let event = NewEvent { kind, owner, task: None, subject: None, text: String::new(), detail: json!({}) };
    script.ledger.change_timer(&timer, None, &event, script.clock.now()).unwrap();
    for _ in 0..5 {
        script.second();
    }
    let timer = script.ledger.timer("nightly").unwrap();
    assert_eq!((timer.state, timer.runs, tasks(&script).len()), (TimerState::Ended, 0, 0));
    let events = script.ledger.events(&EventFilter::default(), 1000).unwrap();
    assert!(events.iter().any(|event| event.text.contains("made with was revoked")), "{events:?}");
}

#[test]
fn timer_that_deletes_holds_each_run_to_what_the_last_one_that_succeeded_found() {
    let mut script = Script::new(4);
    add(&script, "nightly", every(20));
    let mut timer = script.ledger.timer("nightly").unwrap();
    timer.task.options.delete = true;
    let (kind, owner) = (EventKind::Updated, "ann".to_owned());
    let event = NewEvent { kind, owner, task: None, subject: None, text: String::new(), detail: json!({}) };
    script.ledger.change_timer(&timer, None, &event, script.clock.now()).unwrap();
    for _ in 0..50 {
        script.second();
    }
    let mut runs = script.ledger.tasks(&TaskFilter::default(), &Page { after: None, limit: 100 }).unwrap();
    runs.reverse();
    let [first, second, ..] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((first.state, &first.request.guard), (TaskState::Succeeded, &Some(RunGuard::default())));
    assert_eq!(first.request.options.max_delete, Some(DeleteLimit::Share(50)));
    let found = RunGuard { file_system: None, items: Some(first.progress.items_total) };
    assert_eq!(second.request.guard, Some(found));
    assert_eq!(script.ledger.timer("nightly").unwrap().task.options.max_delete, None, "what its owner has said");
}
