//! How many tasks waited and ran is told by what was counted: also of the time before that, and after a restore.

use super::*;
use crate::ledger::rules;
use crate::ledger::sqlite::backup::{backup, restore};
use crate::ledger::tally::MINUTE;

const FIRST: i64 = 10 * MINUTE;

fn at(minute: i64) -> Moment {
    Moment(FIRST + minute * MINUTE)
}

/// Steps of a minute from the first one on, at whose ends the counts are told.
fn queue(ledger: &SqliteLedger) -> (Vec<u64>, Vec<u64>) {
    let (from, now) = (at(0), at(4));
    let query = OverviewQuery { curves_of: None, rows_of: None, from, step_minutes: 1, steps: 5, now };
    let rows = ledger.overview(&query).unwrap();
    (rows.waiting, rows.running)
}

/// What was counted, in all, and what there is.
fn counted(place: &Place) -> [(i64, i64); 2] {
    let connection = Connection::open(place.path()).unwrap();
    let two = |sql: &str| connection.query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    [
        two("SELECT coalesce(sum(waiting), 0), coalesce(sum(running), 0) FROM tally_queue"),
        two("SELECT count(*) FILTER (WHERE state IN ('QUEUED', 'STAGING', 'PAUSED')),
            count(*) FILTER (WHERE state IN ('ACTIVE', 'CANCELLING')) FROM task"),
    ]
}

#[test]
fn queue_is_counted_by_all_that_changes_a_task() {
    let place = Place::new();
    let ledger = place.open();
    let event = |id: &str| rules::submitted_event(&submission(id));
    for id in ["waits", "runs", "runs, to pause", "fails", "again", "is no task"] {
        ledger.submit(&submission(id), at(0)).unwrap();
    }
    let any = TaskGuard::default();
    for id in ["runs", "runs, to pause", "fails", "again"] {
        ledger.claim(id, at(1), &event(id)).unwrap();
    }
    let to = |state: TaskState| TaskChange { state: Some(state), ..TaskChange::default() };
    let pause = TaskChange { pause_wanted: Some(true), ..TaskChange::default() };
    ledger.change_task("runs, to pause", &any, &pause, &[], at(1)).unwrap();
    for id in ["fails", "again"] {
        ledger.change_task(id, &any, &to(TaskState::Failed), &[], at(2)).unwrap();
    }
    ledger.reopen("again", at(3), None, &event("again")).unwrap();
    assert_eq!(queue(&ledger), (vec![6, 2, 2, 3, 3], vec![0, 4, 2, 2, 2]));
    // One that cannot be read fails by itself.
    place.alter("UPDATE task SET blocked = '{}' WHERE id = 'is no task'");
    ledger.open_tasks().unwrap();
    let copy = place.path().with_file_name("copy.db");
    backup(&place.path(), &copy, at(4)).unwrap();
    drop(ledger);
    assert_eq!(counted(&place), [(2, 2); 2]);
    // No attempt goes on after a restore.
    restore(&place.path(), &copy, at(4)).unwrap();
    assert_eq!(counted(&place), [(4, 0); 2]);
    assert_eq!(queue(&place.open()).1, [0, 4, 2, 2, 0]);
}
