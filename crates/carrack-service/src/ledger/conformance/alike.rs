//! Two ledgers are alike: whatever is asked of them, in whatever order, both answer the same.

use proptest::prelude::*;

use super::health::fails;
use super::places::{event, row};
use super::{ANY, all_events, at, estimate, first, note, submission};
use crate::clock::Moment;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::sqlite::SqliteLedger;
use crate::ledger::tally::OverviewQuery;
use crate::ledger::{
    Answer, Ledger, LedgerError, Retention, Submission, TaskChange, TaskFilter, TaskGuard, TaskWindow,
};
use crate::model::{Progress, Rates, TaskSort, TaskState};

/// One call. Tasks are few, so that calls meet.
#[derive(Clone, Debug)]
enum Call {
    Submit { task: u8, submission: Option<u8>, label: bool },
    Claim { task: u8 },
    Change { task: u8, fence: Option<u64>, version: Option<u64>, state: Option<TaskState>, wants: (bool, bool) },
    Reopen { task: u8 },
    Record { task: u8 },
    List { state: Option<TaskState>, limit: usize },
    Forget { before: i64, limit: usize },
}

fn name(task: u8) -> String {
    format!("t{task}")
}

fn state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(vec![
        TaskState::Queued,
        TaskState::Active,
        TaskState::Paused,
        TaskState::Cancelling,
        TaskState::Succeeded,
        TaskState::Partial,
        TaskState::Failed,
        TaskState::Cancelled,
    ])
}

fn call() -> impl Strategy<Value = Call> {
    let task = 0..5u8;
    prop_oneof![
        (task.clone(), prop::option::of(0..3u8), any::<bool>()).prop_map(|(task, submission, label)| Call::Submit {
            task,
            submission,
            label
        }),
        task.clone().prop_map(|task| Call::Claim { task }),
        (
            task.clone(),
            prop::option::of(0..4u64),
            prop::option::of(0..8u64),
            prop::option::of(state()),
            any::<(bool, bool)>()
        )
            .prop_map(|(task, fence, version, state, wants)| Call::Change {
                task,
                fence,
                version,
                state,
                wants
            }),
        task.clone().prop_map(|task| Call::Reopen { task }),
        task.prop_map(|task| Call::Record { task }),
        (prop::option::of(state()), 0..4usize).prop_map(|(state, limit)| Call::List { state, limit }),
        (0..60i64, 0..4usize).prop_map(|(before, limit)| Call::Forget { before, limit }),
    ]
}

/// An answer as text; of a refusal only its kind, which alone is promised.
fn said<T: std::fmt::Debug>(answer: Answer<T>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(LedgerError::Conflict(_)) => "conflict".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

fn carry_out(ledger: &dyn Ledger, call: &Call, now: Moment) -> String {
    match call {
        Call::Submit { task, submission: id, label } => {
            let mut submitted = Submission { submission_id: id.map(|id| format!("s{id}")), ..submission(&name(*task)) };
            submitted.request.label = label.then(|| "night".to_owned());
            submitted.estimate = label.then(estimate);
            said(ledger.submit(&submitted, now))
        }
        Call::Claim { task } => said(ledger.claim(&name(*task), now, &note(&name(*task), "begins"))),
        Call::Change { task, fence, version, state, wants } => {
            let guard = TaskGuard { fence: *fence, version: *version, ..ANY };
            let change = TaskChange {
                state: *state,
                pause_wanted: wants.0.then_some(wants.1),
                cancel_wanted: wants.1.then_some(wants.0),
                progress: wants.0.then(|| Progress {
                    bytes_moved: u64::from(*task + 1) << 20,
                    rates: Rates { all: f64::from(*task) * 1e6, ..Rates::default() },
                    ..Progress::default()
                }),
                ..TaskChange::default()
            };
            let code = ["connect-failed", "no-space", "not-found"][usize::from(*task % 3)];
            let event = if wants.1 { fails(&name(*task), code, Some("here")) } else { note(&name(*task), "changed") };
            said(ledger.change_task(&name(*task), &guard, &change, &[event], now))
        }
        Call::Reopen { task } => said(ledger.reopen(&name(*task), now, None, &note(&name(*task), "again"))),
        Call::Record { task } => said(ledger.record(&[note(&name(*task), "told")], now)),
        Call::List { state, limit } => {
            let filter = TaskFilter { states: state.iter().copied().collect(), ..TaskFilter::default() };
            let window = |(sort, descending)| {
                let window = TaskWindow { sort, descending, offset: u64::from(*limit == 3), limit: *limit };
                said(ledger.task_window(&filter, &window))
            };
            let windows = TaskSort::ALL.iter().flat_map(|sort| [(*sort, true), (*sort, false)]).map(window);
            let query = OverviewQuery {
                curves_of: None,
                rows_of: (*limit == 2).then(|| "ada".to_owned()),
                from: at(0),
                step_minutes: 1,
                steps: 2,
                now,
            };
            let all: Vec<String> =
                windows.chain([said(ledger.tasks(&filter, &first(*limit))), said(ledger.overview(&query))]).collect();
            all.join("\n")
        }
        Call::Forget { before, limit } => {
            let retention = Retention { tasks_ended_before: at(*before), events_before: at(*before), limit: *limit };
            said(ledger.forget(&retention))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn sqlite_and_memory_answer_alike(calls in prop::collection::vec(call(), 1..60)) {
        let directory = tempfile::tempdir().unwrap();
        let sqlite = SqliteLedger::open(&directory.path().join("ledger.db"), at(0)).unwrap();
        let memory = MemoryLedger::new();
        for ledger in [&sqlite as &dyn Ledger, &memory] {
            ledger.add_endpoint(&row("here", 0), &event("added")).unwrap();
        }
        for (second, call) in (0..).zip(&calls) {
            let answers = [carry_out(&sqlite, call, at(second)), carry_out(&memory, call, at(second))];
            prop_assert_eq!(&answers[0], &answers[1], "{:?} as call {}", call, second);
            prop_assert_eq!(said(sqlite.count_tasks()), said(memory.count_tasks()));
            prop_assert_eq!(said(sqlite.open_tasks()), said(memory.open_tasks()));
            prop_assert_eq!(said(sqlite.health(None, None)), said(memory.health(None, None)));
        }
        prop_assert_eq!(all_events(&sqlite), all_events(&memory));
        prop_assert_eq!(said(sqlite.event_range()), said(memory.event_range()));
    }
}
