//! Rules on accepting tasks and on listing them.

use carrack_core::options::AskedOptions;
use std::collections::BTreeMap;
use std::thread;

use carrack_core::options::Streams;

use super::{
    ANY, Rule, accept, all_events, at, begin, behind, end, estimate, first, ids, listed, request, rules, submission,
};
use crate::ledger::{Ledger, LedgerError, Submission, TaskChange, TaskFilter};
use crate::model::{
    Blocked, BlockedCause, EventKind, NewTask, Notice, Progress, Task, TaskFailure, TaskKind, TaskOptions, TaskState,
};

pub const RULES: &[Rule] = rules! {
    submission_is_kept_as_it_was_made
    submission_makes_one_event
    submission_repeated_is_the_task_it_made
    submission_repeated_after_changes_is_the_task_it_made
    submission_repeated_with_another_request_conflicts
    submission_identifier_is_of_one_owner
    submission_with_an_identifier_in_use_is_refused
    submission_ten_times_at_once_is_one_task
    task_that_is_not_there_is_missing
    tasks_are_listed_by_each_filter
    tasks_are_paged_without_gaps_while_others_come
    tasks_are_listed_by_acceptance_where_the_clock_steps_back
    tasks_are_not_listed_behind_a_row_of_another_owner
    tasks_are_counted_by_owner_and_state
    open_tasks_are_told_with_their_endpoints
};

fn with_all() -> NewTask {
    NewTask {
        kind: TaskKind::Move,
        options: TaskOptions(AskedOptions {
            streams: Some(Streams::Fixed(7)),
            only: Some(vec!["a/b".to_owned()]),
            ..AskedOptions::default()
        }),
        label: Some("Run 4: \"ψ\" 'x' %_".to_owned()),
        deadline: Some(at(500)),
        priority: Some(9),
        skip_source_errors: true,
        fail_on_quota_errors: true,
        expect_digests: BTreeMap::from([("a\u{1f980}".to_owned(), "00ff".to_owned())]),
        notify: vec![Notice::Failed],
        timer: Some("timer-1".to_owned()),
        ..request()
    }
}

fn again(id: &str) -> Submission {
    Submission { submission_id: Some("once".to_owned()), ..submission(id) }
}

fn submission_is_kept_as_it_was_made(ledger: &dyn Ledger) {
    let made = Submission { request: with_all(), estimate: Some(estimate()), ..submission("t1") };
    let submitted = ledger.submit(&made, at(3)).unwrap();
    let expected = Task {
        id: "t1".to_owned(),
        owner: "ada".to_owned(),
        request: with_all(),
        state: TaskState::Queued,
        pause_wanted: false,
        cancel_wanted: false,
        blocked: None,
        position: None,
        expected_start: None,
        in_flight: Vec::new(),
        fence: 0,
        futile_attempts: 0,
        progress: Progress::default(),
        estimate: Some(estimate()),
        failure: None,
        submitted: at(3),
        started: None,
        ended: None,
        version: submitted.task.version,
    };
    assert_eq!((&submitted.task, submitted.duplicate), (&expected, false));
    assert_eq!(ledger.task("t1").unwrap(), expected);
}

fn submission_makes_one_event(ledger: &dyn Ledger) {
    ledger.submit(&again("t1"), at(3)).unwrap();
    ledger.submit(&again("t2"), at(4)).unwrap();
    let events = all_events(ledger);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((events[0].kind, events[0].time), (EventKind::Submitted, at(3)));
    assert_eq!((events[0].task.as_deref(), events[0].owner.as_str()), (Some("t1"), "ada"));
}

fn submission_repeated_is_the_task_it_made(ledger: &dyn Ledger) {
    let made = ledger.submit(&again("t1"), at(0)).unwrap();
    for number in 2..12 {
        let repeated = ledger.submit(&again(&format!("t{number}")), at(number)).unwrap();
        assert!(repeated.duplicate);
        assert_eq!(repeated.task, made.task);
    }
    assert_eq!(listed(ledger, &TaskFilter::default()), ["t1"]);
}

fn submission_repeated_after_changes_is_the_task_it_made(ledger: &dyn Ledger) {
    ledger.submit(&again("t1"), at(0)).unwrap();
    let change = TaskChange {
        label: Some(Some("renamed".to_owned())),
        deadline: Some(Some(at(9))),
        priority: Some(1),
        ..TaskChange::default()
    };
    let changed = ledger.change_task("t1", &super::ANY, &change, &[], at(1)).unwrap();
    end(ledger, "t1", TaskState::Cancelled, at(2));
    let repeated = ledger.submit(&again("t2"), at(3)).unwrap();
    assert!(repeated.duplicate);
    assert_eq!((repeated.task.id.as_str(), repeated.task.state), ("t1", TaskState::Cancelled));
    assert_eq!(repeated.task.request, changed.request);
}

fn submission_repeated_with_another_request_conflicts(ledger: &dyn Ledger) {
    ledger.submit(&again("t1"), at(0)).unwrap();
    let events = all_events(ledger);
    for request in [NewTask { label: Some("l".to_owned()), ..request() }, NewTask { pairs: Vec::new(), ..request() }] {
        let refused = ledger.submit(&Submission { request, ..again("t2") }, at(1));
        assert!(matches!(&refused, Err(LedgerError::Conflict(why)) if why.contains("t1")), "{refused:?}");
    }
    assert_eq!(listed(ledger, &TaskFilter::default()), ["t1"]);
    assert_eq!(all_events(ledger), events);
}

fn submission_identifier_is_of_one_owner(ledger: &dyn Ledger) {
    ledger.submit(&again("t1"), at(0)).unwrap();
    let other = Submission { owner: "bob".to_owned(), ..again("t2") };
    assert!(!ledger.submit(&other, at(1)).unwrap().duplicate);
    assert_eq!(listed(ledger, &TaskFilter::default()), ["t2", "t1"]);
}

fn submission_with_an_identifier_in_use_is_refused(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    let other = Submission { owner: "bob".to_owned(), ..again("t1") };
    assert_eq!(ledger.submit(&other, at(1)), Err(LedgerError::Taken));
    assert_eq!(ledger.submit(&submission("t1"), at(1)), Err(LedgerError::Taken));
    assert_eq!(ledger.task("t1").unwrap().owner, "ada");
    assert_eq!(all_events(ledger).len(), 1);
}

fn submission_ten_times_at_once_is_one_task(ledger: &dyn Ledger) {
    let answers: Vec<_> = thread::scope(|scope| {
        let submit = |number: i64| move || ledger.submit(&again(&format!("t{number}")), at(number)).unwrap();
        let threads: Vec<_> = (0..10).map(|number| scope.spawn(submit(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| !answer.duplicate).count(), 1);
    let tasks = ledger.tasks(&TaskFilter::default(), &first(100)).unwrap();
    assert_eq!(tasks.len(), 1);
    assert!(answers.iter().all(|answer| answer.task == tasks[0]));
}

fn task_that_is_not_there_is_missing(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    for id in ["", "t", "t11", "T1", "t1' OR '1'='1", "%"] {
        assert_eq!(ledger.task(id), Err(LedgerError::Missing), "{id}");
    }
}

fn tasks_are_listed_by_each_filter(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    let second = NewTask { label: Some("Beam ÄB 100%_x".to_owned()), timer: Some("clock".to_owned()), ..request() };
    let second = Submission { request: second, endpoints: vec!["there".to_owned()], ..submission("t2") };
    ledger.submit(&second, at(10)).unwrap();
    ledger.submit(&Submission { owner: "bob".to_owned(), endpoints: Vec::new(), ..submission("t3") }, at(20)).unwrap();
    end(ledger, "t3", TaskState::Cancelled, at(21));
    let failure = |code: &str| TaskFailure {
        code: code.to_owned(),
        side: "source".to_owned(),
        endpoint: None,
        why: "no-space".to_owned(),
        retryable: false,
        hints: Vec::new(),
    };
    for (id, code, cause) in [("t1", "no-space", BlockedCause::Retry), ("t2", "not-found", BlockedCause::Turn)] {
        let blocked = Blocked { cause, why: "no-space".to_owned(), since: at(22), next_try: None, hint: None };
        let change =
            TaskChange { failure: Some(Some(failure(code))), blocked: Some(Some(blocked)), ..TaskChange::default() };
        ledger.change_task(id, &ANY, &change, &[], at(22)).unwrap();
    }
    let all = TaskFilter::default();
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (all.clone(), vec!["t3", "t2", "t1"]),
        (TaskFilter { owner: text("ada"), ..all.clone() }, vec!["t2", "t1"]),
        (TaskFilter { owner: text("eve"), ..all.clone() }, vec![]),
        (TaskFilter { states: vec![TaskState::Queued], ..all.clone() }, vec!["t2", "t1"]),
        (TaskFilter { states: vec![TaskState::Cancelled, TaskState::Queued], ..all.clone() }, vec!["t3", "t2", "t1"]),
        (TaskFilter { states: vec![TaskState::Active], ..all.clone() }, vec![]),
        (TaskFilter { label: text("äb 100%_"), ..all.clone() }, vec!["t2"]),
        (TaskFilter { label: text("BEAM"), ..all.clone() }, vec!["t2"]),
        (TaskFilter { label: text("b_am"), ..all.clone() }, vec![]),
        (TaskFilter { endpoint: text("here"), ..all.clone() }, vec!["t1"]),
        (TaskFilter { endpoint: text("there"), ..all.clone() }, vec!["t2", "t1"]),
        (TaskFilter { source: text("here"), ..all.clone() }, vec!["t3", "t2", "t1"]),
        (TaskFilter { source: text("her"), ..all.clone() }, vec![]),
        (TaskFilter { source: text("there"), ..all.clone() }, vec![]),
        (TaskFilter { destination: text("there"), ..all.clone() }, vec!["t3", "t2", "t1"]),
        (TaskFilter { source: text("here"), destination: text("here"), ..all.clone() }, vec![]),
        (TaskFilter { since: Some(at(10)), ..all.clone() }, vec!["t3", "t2"]),
        (TaskFilter { before: Some(at(10)), ..all.clone() }, vec!["t1"]),
        (TaskFilter { since: Some(at(5)), before: Some(at(20)), ..all.clone() }, vec!["t2"]),
        (TaskFilter { timer: text("clock"), ..all.clone() }, vec!["t2"]),
        (TaskFilter { cause: text("no-space"), ..all.clone() }, vec!["t1"]),
        (TaskFilter { cause: text("turn"), ..all.clone() }, vec!["t2"]),
        (TaskFilter { cause: text("space"), ..all.clone() }, vec![]),
        (TaskFilter { owner: text("bob"), endpoint: text("there"), ..all.clone() }, vec![]),
    ] {
        assert_eq!(listed(ledger, &filter), expected, "{filter:?}");
        let one = ledger.tasks(&filter, &first(1)).unwrap();
        assert_eq!(ids(&one), expected[..expected.len().min(1)], "{filter:?}");
    }
}

fn tasks_are_paged_without_gaps_while_others_come(ledger: &dyn Ledger) {
    for number in 0..25 {
        ledger.submit(&submission(&format!("t{number}")), at(number)).unwrap();
    }
    let mut seen = Vec::new();
    let mut page = first(4);
    loop {
        let tasks = ledger.tasks(&TaskFilter::default(), &page).unwrap();
        let Some(last) = tasks.last() else { break };
        page = behind(&last.id, 4);
        seen.extend(tasks.iter().map(|task| task.id.clone()));
        assert!(seen.len() <= 25, "pages overlap: {seen:?}");
        // What comes meanwhile is before the first page; what changes keeps its place.
        accept(ledger, &format!("new{}", seen.len()));
        let priority = TaskChange { priority: Some(1), ..TaskChange::default() };
        ledger.change_task("t3", &super::ANY, &priority, &[], at(99)).unwrap();
    }
    let expected: Vec<String> = (0..25).rev().map(|number| format!("t{number}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(ledger.tasks(&TaskFilter::default(), &behind("nobody", 4)), Err(LedgerError::Missing));
}

fn tasks_are_listed_by_acceptance_where_the_clock_steps_back(ledger: &dyn Ledger) {
    for (id, second) in [("t1", 100), ("t2", 50), ("t3", 75)] {
        ledger.submit(&submission(id), at(second)).unwrap();
    }
    assert_eq!(listed(ledger, &TaskFilter::default()), ["t3", "t2", "t1"]);
    let behind = ledger.tasks(&TaskFilter::default(), &behind("t2", 5)).unwrap();
    assert_eq!(ids(&behind), ["t1"]);
}

fn tasks_are_not_listed_behind_a_row_of_another_owner(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    ledger.submit(&Submission { owner: "bob".to_owned(), ..submission("b1") }, at(0)).unwrap();
    accept(ledger, "t2");
    let of_ada = TaskFilter { owner: Some("ada".to_owned()), ..TaskFilter::default() };
    for id in ["b1", "none"] {
        assert_eq!(ledger.tasks(&of_ada, &behind(id, 9)).unwrap_err(), LedgerError::Missing, "{id}");
    }
    assert_eq!(ids(&ledger.tasks(&of_ada, &behind("t2", 9)).unwrap()), ["t1"]);
    assert_eq!(ids(&ledger.tasks(&TaskFilter::default(), &behind("b1", 9)).unwrap()), ["t1"]);
}

fn tasks_are_counted_by_owner_and_state(ledger: &dyn Ledger) {
    assert_eq!(ledger.count_tasks().unwrap(), []);
    begin(ledger, "t1");
    accept(ledger, "t2");
    accept(ledger, "t3");
    ledger.submit(&Submission { owner: "bob".to_owned(), ..submission("t4") }, at(0)).unwrap();
    let mut counts = ledger.count_tasks().unwrap();
    counts.sort_by_key(|(owner, state, _)| (owner.clone(), state.name()));
    let of = |owner: &str, state, count| (owner.to_owned(), state, count);
    let expected = [of("ada", TaskState::Active, 1), of("ada", TaskState::Queued, 2), of("bob", TaskState::Queued, 1)];
    assert_eq!(counts, expected);
}

fn open_tasks_are_told_with_their_endpoints(ledger: &dyn Ledger) {
    begin(ledger, "t1");
    accept(ledger, "t2");
    end(ledger, "t2", TaskState::Failed, at(2));
    let twice = ["b", "a", "b"].map(str::to_owned).to_vec();
    ledger.submit(&Submission { endpoints: twice, ..submission("t3") }, at(3)).unwrap();
    ledger.submit(&Submission { endpoints: Vec::new(), ..submission("t4") }, at(3)).unwrap();
    end(ledger, "t4", TaskState::Paused, at(4));
    let open = ledger.open_tasks().unwrap();
    let told: Vec<_> = open.iter().map(|(task, endpoints)| (task.id.as_str(), endpoints.join(","))).collect();
    assert_eq!(told, [("t1", "here,there".to_owned()), ("t3", "a,b".to_owned()), ("t4", String::new())]);
    for (task, _) in open {
        assert_eq!(ledger.task(&task.id).unwrap(), task);
    }
    ledger.reopen("t2", at(5), None, &super::note("t2", "again")).unwrap();
    let open = ledger.open_tasks().unwrap();
    assert_eq!(open.iter().map(|(task, _)| task.id.as_str()).collect::<Vec<_>>(), ["t1", "t2", "t3", "t4"]);
}
