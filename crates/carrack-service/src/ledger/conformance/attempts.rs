//! Rules on attempts, guards and states.

use std::thread;

use super::{ANY, Rule, accept, all_events, at, begin, end, estimate, note, rules};
use crate::ledger::{Ledger, LedgerError, TaskChange, TaskGuard};
use crate::model::{
    Blocked, BlockedCause, CheckTally, Estimate, Planned, Progress, Rates, Task, TaskFailure, TaskPlan, TaskState,
};

pub const RULES: &[Rule] = rules! {
    claim_begins_an_attempt
    claim_is_refused_where_no_attempt_may_begin
    claim_by_many_at_once_is_one_attempt
    claim_after_each_attempt_has_a_greater_fence
    change_sets_what_it_names_and_nothing_else
    change_takes_away_what_it_names
    change_of_an_older_attempt_is_fenced
    change_of_an_attempt_to_come_conflicts
    change_needs_its_states_and_its_version
    change_that_ends_a_task_puts_what_it_took_beside_the_estimate
    change_refused_leaves_nothing
    change_of_a_missing_task_is_missing
    change_never_begins_an_attempt
    change_of_state_clears_what_blocked
    change_needs_confirmation_after_a_restore
    state_that_has_ended_never_changes
    state_that_has_ended_takes_a_label
    reopen_has_what_ended_wait_again
    reopen_takes_another_deadline_and_needs_one_where_it_has_passed
    reopen_is_refused_in_other_states
};

fn blocked(cause: BlockedCause) -> Blocked {
    Blocked {
        cause,
        why: "the last attempt failed".to_owned(),
        since: at(5),
        next_try: Some(at(35)),
        hint: Some("look at the node".to_owned()),
    }
}

fn failure() -> TaskFailure {
    TaskFailure {
        code: "silence".to_owned(),
        side: "link".to_owned(),
        endpoint: None,
        why: "nothing was heard for 30 s".to_owned(),
        retryable: true,
        hints: vec!["wait".to_owned()],
    }
}

fn progress() -> Progress {
    Progress {
        items_remembered: 2,
        items_total: u64::MAX,
        items_done: 1,
        items_skipped: 2,
        items_failed: 3,
        scan_complete: true,
        bytes_total: 1 << 62,
        bytes_moved: 4,
        bytes_verified: 5,
        bytes_skipped: 6,
        bytes_resent: 7,
        items_lost: 11,
        bytes_lost: 12,
        items_deleted: 13,
        bytes_deleted: 14,
        faults: 8,
        rates: Rates { now: 1.5, five_minutes: 0.1, all: 1e12 },
        eta_seconds: Some(9),
        limited_by: Some("the disk of the destination".to_owned()),
        unkept: [("owner".to_owned(), 10), ("700".to_owned(), 1)].into(),
        plan: Some(TaskPlan { to_delete: Planned { items: 15, bytes: 16 }, ..TaskPlan::default() }),
        source_file_system: Some("17".to_owned()),
        check: Some(CheckTally { same: 18, timeless: 19, ..CheckTally::default() }),
    }
}

fn only(state: TaskState) -> TaskChange {
    TaskChange { state: Some(state), ..TaskChange::default() }
}

fn change(ledger: &dyn Ledger, change: &TaskChange) -> Task {
    ledger.change_task("t1", &ANY, change, &[], at(50)).unwrap()
}

fn refused(ledger: &dyn Ledger, guard: &TaskGuard, change: &TaskChange) -> LedgerError {
    let (task, events) = (ledger.task("t1").unwrap(), all_events(ledger));
    let error = ledger.change_task("t1", guard, change, &[note("t1", "never")], at(60)).unwrap_err();
    assert_eq!(ledger.task("t1").unwrap(), task);
    assert_eq!(all_events(ledger), events);
    error
}

fn is_conflict(error: &LedgerError) -> bool {
    matches!(error, LedgerError::Conflict(why) if why.contains("t1"))
}

fn claim_begins_an_attempt(ledger: &dyn Ledger) {
    let before = accept(ledger, "t1");
    change(ledger, &TaskChange { blocked: Some(Some(blocked(BlockedCause::Turn))), ..TaskChange::default() });
    let claimed = ledger.claim("t1", at(7), &note("t1", "begins")).unwrap();
    let expected = Task {
        state: TaskState::Active,
        fence: 1,
        started: Some(at(7)),
        version: claimed.version,
        blocked: None,
        ..before.clone()
    };
    assert_eq!(claimed, expected);
    assert!(claimed.version > before.version);
    assert_eq!(ledger.task("t1").unwrap(), expected);
    let last = all_events(ledger).pop().unwrap();
    assert_eq!((last.text.as_str(), last.time, last.detail), ("begins", at(7), serde_json::json!({ "why": "begins" })));
}

fn claim_is_refused_where_no_attempt_may_begin(ledger: &dyn Ledger) {
    let refused = |when: &str| {
        let (task, events) = (ledger.task("t1").unwrap(), all_events(ledger));
        let error = ledger.claim("t1", at(9), &note("t1", "never")).unwrap_err();
        assert!(is_conflict(&error), "{when}: {error:?}");
        assert_eq!(ledger.task("t1").unwrap(), task, "{when}");
        assert_eq!(all_events(ledger), events, "{when}");
    };
    accept(ledger, "t1");
    change(ledger, &TaskChange { pause_wanted: Some(true), ..TaskChange::default() });
    refused("a pause is wanted");
    change(ledger, &TaskChange { pause_wanted: Some(false), cancel_wanted: Some(true), ..TaskChange::default() });
    refused("its end is wanted");
    let confirm = Some(Some(blocked(BlockedCause::Confirm)));
    change(ledger, &TaskChange { cancel_wanted: Some(false), blocked: confirm, ..TaskChange::default() });
    refused("it must be confirmed");
    change(ledger, &TaskChange { blocked: Some(None), ..TaskChange::default() });
    ledger.claim("t1", at(10), &note("t1", "begins")).unwrap();
    for state in [TaskState::Cancelling, TaskState::Paused, TaskState::Succeeded] {
        refused("it is not queued");
        change(ledger, &only(state));
    }
    refused("it has ended");
    assert_eq!(ledger.claim("t2", at(9), &note("t2", "never")), Err(LedgerError::Missing));
}

fn claim_by_many_at_once_is_one_attempt(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    let claims: Vec<_> = thread::scope(|scope| {
        let claim = || ledger.claim("t1", at(1), &note("t1", "begins"));
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1);
    assert!(claims.iter().all(|claim| claim.as_ref().map_or_else(is_conflict, |task| task.fence == 1)));
    assert_eq!(ledger.task("t1").unwrap().fence, 1);
    assert_eq!(all_events(ledger).len(), 2);
}

fn claim_after_each_attempt_has_a_greater_fence(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    for fence in 1..=5 {
        let second = i64::try_from(fence).unwrap();
        let task = ledger.claim("t1", at(second), &note("t1", "begins")).unwrap();
        assert_eq!((task.fence, task.started), (fence, Some(at(1))));
        change(ledger, &only(TaskState::Queued));
    }
}

fn change_sets_what_it_names_and_nothing_else(ledger: &dyn Ledger) {
    let mut expected = begin(ledger, "t1");
    let none = TaskChange::default;
    type Set = fn(&mut Task);
    let changes: [(TaskChange, Set); 10] = [
        (TaskChange { pause_wanted: Some(true), ..none() }, |task| task.pause_wanted = true),
        (TaskChange { cancel_wanted: Some(true), ..none() }, |task| task.cancel_wanted = true),
        (TaskChange { progress: Some(progress()), ..none() }, |task| task.progress = progress()),
        (TaskChange { failure: Some(Some(failure())), ..none() }, |task| task.failure = Some(failure())),
        (TaskChange { futile_attempts: Some(3), ..none() }, |task| task.futile_attempts = 3),
        (TaskChange { label: Some(Some("l".to_owned())), ..none() }, |task| task.request.label = Some("l".to_owned())),
        (TaskChange { deadline: Some(Some(at(99))), ..none() }, |task| task.request.deadline = Some(at(99))),
        (TaskChange { priority: Some(8), ..none() }, |task| task.request.priority = Some(8)),
        (only(TaskState::Queued), |task| task.state = TaskState::Queued),
        (TaskChange { blocked: Some(Some(blocked(BlockedCause::Retry))), ..none() }, |task| {
            task.blocked = Some(blocked(BlockedCause::Retry));
        }),
    ];
    for (number, (change, set)) in changes.into_iter().enumerate() {
        let text = format!("change {number}");
        let changed = ledger.change_task("t1", &ANY, &change, &[note("t1", &text)], at(50)).unwrap();
        set(&mut expected);
        assert!(changed.version > expected.version, "{change:?}");
        expected.version = changed.version;
        assert_eq!(changed, expected, "{change:?}");
        assert_eq!(ledger.task("t1").unwrap(), expected, "{change:?}");
        let last = all_events(ledger).pop().unwrap();
        assert_eq!((last.text, last.time), (text, at(50)));
    }
}

fn change_takes_away_what_it_names(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    let set = TaskChange {
        blocked: Some(Some(blocked(BlockedCause::Retry))),
        failure: Some(Some(failure())),
        label: Some(Some("l".to_owned())),
        deadline: Some(Some(at(99))),
        ..TaskChange::default()
    };
    change(ledger, &set);
    let unset = TaskChange {
        blocked: Some(None),
        failure: Some(None),
        label: Some(None),
        deadline: Some(None),
        ..TaskChange::default()
    };
    let task = change(ledger, &unset);
    assert_eq!((&task.blocked, &task.failure), (&None, &None));
    assert_eq!((&task.request.label, task.request.deadline), (&None, None));
    assert_eq!(ledger.task("t1").unwrap(), task);
}

fn change_of_an_older_attempt_is_fenced(ledger: &dyn Ledger) {
    begin(ledger, "t1");
    let by = |fence| TaskGuard { fence: Some(fence), ..ANY };
    ledger.change_task("t1", &by(1), &only(TaskState::Queued), &[], at(2)).unwrap();
    ledger.claim("t1", at(3), &note("t1", "again")).unwrap();
    // A worker that was stopped and goes on after another one has begun.
    for change in [only(TaskState::Succeeded), TaskChange { progress: Some(progress()), ..TaskChange::default() }] {
        assert_eq!(refused(ledger, &by(1), &change), LedgerError::Fenced);
        assert_eq!(refused(ledger, &by(0), &change), LedgerError::Fenced);
    }
    assert_eq!(
        ledger.change_task("t1", &by(2), &only(TaskState::Succeeded), &[], at(4)).unwrap().state,
        TaskState::Succeeded
    );
    assert_eq!(refused(ledger, &by(1), &only(TaskState::Failed)), LedgerError::Fenced);
}

fn change_of_an_attempt_to_come_conflicts(ledger: &dyn Ledger) {
    begin(ledger, "t1");
    let guard = TaskGuard { fence: Some(2), ..ANY };
    assert!(is_conflict(&refused(ledger, &guard, &only(TaskState::Succeeded))));
}

fn change_needs_its_states_and_its_version(ledger: &dyn Ledger) {
    let task = begin(ledger, "t1");
    let label = TaskChange { label: Some(Some("l".to_owned())), ..TaskChange::default() };
    let in_states = |states: &[TaskState]| TaskGuard { states: states.to_vec(), ..ANY };
    let version = |version| TaskGuard { version: Some(version), ..ANY };
    assert!(is_conflict(&refused(ledger, &in_states(&[TaskState::Queued, TaskState::Paused]), &label)));
    assert!(is_conflict(&refused(ledger, &version(task.version - 1), &label)));
    assert!(is_conflict(&refused(ledger, &version(task.version + 1), &label)));
    let both = TaskGuard { version: Some(task.version), ..in_states(&[TaskState::Queued, TaskState::Active]) };
    ledger.change_task("t1", &both, &label, &[], at(2)).unwrap();
    // What the first of two has changed, the second does not overwrite.
    assert!(is_conflict(&refused(ledger, &both, &label)));
}

fn change_that_ends_a_task_puts_what_it_took_beside_the_estimate(ledger: &dyn Ledger) {
    begin(ledger, "t1");
    let kept = change(ledger, &TaskChange { estimate: Some(estimate()), ..TaskChange::default() });
    assert_eq!(kept.estimate, Some(estimate()));
    let took = |took_seconds| Some(Estimate { took_seconds, ..estimate() });
    assert_eq!(change(ledger, &only(TaskState::Failed)).estimate, took(Some(49.0)));
    assert_eq!(ledger.task("t1").unwrap().estimate, took(Some(49.0)));
    // The next attempt takes longer than the first.
    let again = ledger.reopen("t1", at(51), None, &note("t1", "again")).unwrap();
    assert_eq!(again.estimate, took(None));
    ledger.claim("t1", at(52), &note("t1", "begins")).unwrap();
    let end = TaskChange { state: Some(TaskState::Succeeded), ..TaskChange::default() };
    let ended = ledger.change_task("t1", &ANY, &end, &[], at(61)).unwrap();
    assert_eq!((ended.estimate, ledger.task("t1").unwrap().started), (took(Some(60.0)), Some(at(1))));
}

fn change_refused_leaves_nothing(ledger: &dyn Ledger) {
    begin(ledger, "t1");
    let all = TaskChange {
        pause_wanted: Some(true),
        progress: Some(progress()),
        label: Some(Some("l".to_owned())),
        ..only(TaskState::Succeeded)
    };
    refused(ledger, &TaskGuard { fence: Some(0), ..ANY }, &all);
    refused(ledger, &TaskGuard { states: vec![TaskState::Queued], ..ANY }, &all);
    refused(ledger, &TaskGuard { version: Some(77), ..ANY }, &all);
}

fn change_of_a_missing_task_is_missing(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    let change = ledger.change_task("t2", &ANY, &only(TaskState::Paused), &[note("t2", "never")], at(2));
    assert_eq!(change, Err(LedgerError::Missing));
    assert_eq!(ledger.reopen("t2", at(2), None, &note("t2", "never")), Err(LedgerError::Missing));
    assert_eq!(all_events(ledger).len(), 1);
}

fn change_never_begins_an_attempt(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    assert!(is_conflict(&refused(ledger, &ANY, &only(TaskState::Active))));
    ledger.claim("t1", at(1), &note("t1", "begins")).unwrap();
    assert_eq!(change(ledger, &only(TaskState::Active)).state, TaskState::Active);
    change(ledger, &only(TaskState::Cancelling));
    assert!(is_conflict(&refused(ledger, &ANY, &only(TaskState::Active))));
}

fn change_of_state_clears_what_blocked(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    let block = TaskChange { blocked: Some(Some(blocked(BlockedCause::EndpointLimit))), ..TaskChange::default() };
    change(ledger, &block);
    assert_eq!(change(ledger, &only(TaskState::Paused)).blocked, None);
    let both = TaskChange { blocked: Some(Some(blocked(BlockedCause::Retry))), ..only(TaskState::Queued) };
    assert_eq!(change(ledger, &both).blocked, Some(blocked(BlockedCause::Retry)));
    let ended = change(ledger, &only(TaskState::Cancelled));
    assert_eq!((ended.blocked, ended.ended), (None, Some(at(50))));
}

fn change_needs_confirmation_after_a_restore(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    let confirm = blocked(BlockedCause::Confirm);
    change(ledger, &TaskChange { blocked: Some(Some(confirm.clone())), ..TaskChange::default() });
    let turn = TaskChange { blocked: Some(Some(blocked(BlockedCause::Turn))), ..TaskChange::default() };
    assert!(is_conflict(&refused(ledger, &ANY, &turn)));
    // A pause and its end are no confirmation.
    assert_eq!(change(ledger, &only(TaskState::Paused)).blocked, Some(confirm.clone()));
    assert_eq!(change(ledger, &only(TaskState::Queued)).blocked, Some(confirm));
    assert_eq!(change(ledger, &TaskChange { blocked: Some(None), ..TaskChange::default() }).blocked, None);
    ledger.claim("t1", at(51), &note("t1", "begins")).unwrap();
}

fn state_that_has_ended_never_changes(ledger: &dyn Ledger) {
    let ends = [TaskState::Succeeded, TaskState::Partial, TaskState::Failed, TaskState::Cancelled];
    for (number, state) in ends.into_iter().enumerate() {
        let id = format!("t1{number}");
        begin(ledger, &id);
        let task = end(ledger, &id, state, at(8));
        assert_eq!((task.state, task.ended), (state, Some(at(8))));
        let none = TaskChange::default;
        let changes = TaskState::ALL.iter().map(|state| only(*state)).chain([
            TaskChange { progress: Some(progress()), ..none() },
            TaskChange { cancel_wanted: Some(true), ..none() },
            TaskChange { pause_wanted: Some(true), ..none() },
            TaskChange { failure: Some(None), ..none() },
            TaskChange { blocked: Some(None), ..none() },
            TaskChange { deadline: Some(None), ..none() },
            TaskChange { priority: Some(1), ..none() },
        ]);
        for change in changes {
            let error = ledger.change_task(&id, &ANY, &change, &[note(&id, "never")], at(9)).unwrap_err();
            assert!(is_conflict(&error), "{state:?} {change:?}: {error:?}");
        }
        assert_eq!(ledger.task(&id).unwrap(), task);
        assert!(ledger.claim(&id, at(9), &note(&id, "never")).is_err_and(|error| is_conflict(&error)));
    }
    assert!(all_events(ledger).iter().all(|event| event.text != "never"));
}

fn state_that_has_ended_takes_a_label(ledger: &dyn Ledger) {
    begin(ledger, "t1");
    let task = end(ledger, "t1", TaskState::Partial, at(8));
    let label = TaskChange { label: Some(Some("for the paper".to_owned())), ..TaskChange::default() };
    let labelled = change(ledger, &label);
    assert_eq!(labelled.request.label.as_deref(), Some("for the paper"));
    assert_eq!((labelled.state, labelled.ended), (task.state, task.ended));
}

fn reopen_has_what_ended_wait_again(ledger: &dyn Ledger) {
    for (number, state) in [TaskState::Partial, TaskState::Failed, TaskState::Cancelled].into_iter().enumerate() {
        let id = format!("t{number}");
        begin(ledger, &id);
        let change = TaskChange {
            pause_wanted: Some(true),
            cancel_wanted: Some(true),
            failure: Some(Some(failure())),
            futile_attempts: Some(4),
            progress: Some(progress()),
            ..only(state)
        };
        let ended = ledger.change_task(&id, &ANY, &change, &[], at(8)).unwrap();
        let again = ledger.reopen(&id, at(9), None, &note(&id, "again")).unwrap();
        assert!(again.version > ended.version);
        let expected = Task {
            state: TaskState::Queued,
            pause_wanted: false,
            cancel_wanted: false,
            failure: None,
            futile_attempts: 0,
            ended: None,
            version: again.version,
            ..ended
        };
        assert_eq!(again, expected);
        assert_eq!(ledger.task(&id).unwrap(), expected);
        let last = all_events(ledger).pop().unwrap();
        assert_eq!((last.text.as_str(), last.time), ("again", at(9)));
        assert_eq!(ledger.claim(&id, at(10), &note(&id, "begins")).unwrap().fence, 2);
    }
}

fn reopen_takes_another_deadline_and_needs_one_where_it_has_passed(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    change(ledger, &TaskChange { deadline: Some(Some(at(60))), ..TaskChange::default() });
    end(ledger, "t1", TaskState::Failed, at(61));
    let again = |deadline| ledger.reopen("t1", at(62), deadline, &note("t1", "again"));
    for passed in [None, Some(Some(at(62)))] {
        let (task, events) = (ledger.task("t1").unwrap(), all_events(ledger));
        let error = again(passed).unwrap_err();
        assert!(is_conflict(&error) && error.to_string().contains("deadline"), "{error:?}");
        assert_eq!((ledger.task("t1").unwrap(), all_events(ledger)), (task, events));
    }
    let deadline = |task: Task| (task.state, task.request.deadline);
    assert_eq!(deadline(again(Some(Some(at(63)))).unwrap()), (TaskState::Queued, Some(at(63))));
    assert_eq!(deadline(ledger.task("t1").unwrap()), (TaskState::Queued, Some(at(63))));
    end(ledger, "t1", TaskState::Partial, at(70));
    assert_eq!(deadline(again(Some(None)).unwrap()), (TaskState::Queued, None));
}

fn reopen_is_refused_in_other_states(ledger: &dyn Ledger) {
    let refused = || {
        let (task, events) = (ledger.task("t1").unwrap(), all_events(ledger));
        let error = ledger.reopen("t1", at(9), None, &note("t1", "never")).unwrap_err();
        assert!(is_conflict(&error), "{error:?}");
        assert_eq!((ledger.task("t1").unwrap(), all_events(ledger)), (task, events));
    };
    accept(ledger, "t1");
    refused();
    ledger.claim("t1", at(1), &note("t1", "begins")).unwrap();
    for state in [TaskState::Cancelling, TaskState::Paused, TaskState::Succeeded] {
        refused();
        change(ledger, &only(state));
    }
    refused();
}
