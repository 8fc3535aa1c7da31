//! Rules on many who use the ledger at once: none sees that others do.

use std::thread;

use super::{ANY, Rule, all_events, at, first, listed, note, rules, submission};
use crate::ledger::{Ledger, Submission, TaskChange, TaskFilter};
use crate::model::{Progress, TaskState};

pub const RULES: &[Rule] = rules! {
    fifty_writers_and_readers_never_see_each_other
    changes_at_once_are_all_counted
};

const WRITERS: usize = 50;

fn fifty_writers_and_readers_never_see_each_other(ledger: &dyn Ledger) {
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let owner = format!("user {writer}");
                for number in 0..2 {
                    let id = format!("{writer}-{number}");
                    let mine = Submission { owner: owner.clone(), ..submission(&id) };
                    assert!(!ledger.submit(&mine, at(0)).unwrap().duplicate);
                    ledger.claim(&id, at(1), &note(&id, "begins")).unwrap();
                    let progress = Progress { items_done: 7, ..Progress::default() };
                    let change = TaskChange { progress: Some(progress.clone()), ..TaskChange::default() };
                    let changed = ledger.change_task(&id, &ANY, &change, &[], at(2)).unwrap();
                    assert_eq!(ledger.task(&id).unwrap(), changed);
                    assert_eq!(changed.progress, progress);
                    super::end(ledger, &id, TaskState::Succeeded, at(3));
                }
                assert_eq!(listed(ledger, &TaskFilter { owner: Some(owner), ..TaskFilter::default() }).len(), 2);
            });
        }
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let tasks = ledger.tasks(&TaskFilter::default(), &first(100)).unwrap();
                    // Each is seen whole, at some moment.
                    for task in tasks {
                        assert_eq!(task.ended.is_some(), task.state.has_ended());
                        assert_eq!(task.fence > 0, task.started.is_some());
                    }
                    ledger.open_tasks().unwrap();
                    ledger.probe().unwrap();
                }
            });
        }
    });
    let counts = ledger.count_tasks().unwrap();
    assert_eq!(counts.len(), WRITERS);
    assert!(counts.iter().all(|(_, state, count)| (*state, *count) == (TaskState::Succeeded, 2)));
    let events = all_events(ledger);
    assert_eq!(events.len(), WRITERS * 4);
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id));
}

fn changes_at_once_are_all_counted(ledger: &dyn Ledger) {
    let before = super::begin(ledger, "t1").version;
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let change = TaskChange { priority: Some(5), ..TaskChange::default() };
                    ledger.change_task("t1", &ANY, &change, &[], at(2)).unwrap();
                }
            });
        }
    });
    assert_eq!(ledger.task("t1").unwrap().version, before + 100);
}
