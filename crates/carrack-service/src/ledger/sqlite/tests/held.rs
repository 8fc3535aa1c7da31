//! A ledger that another program holds, or has damaged, while the service has it open.

use std::os::unix::fs::FileExt as _;

use super::*;

#[test]
fn ledger_that_another_program_holds_is_told_as_held_and_goes_on_afterwards() {
    let place = Place::new();
    let ledger = place.open();
    ledger.submit(&submission("t1"), Moment(0)).unwrap();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = || ledger.submit(&submission("t2"), Moment(0)).map(|_| ());
    // Those that wait behind the first one are told with it.
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|_| scope.spawn(write)).collect();
        for writer in writers {
            let told = writer.join().unwrap();
            assert!(matches!(&told, Err(LedgerError::Held(why)) if why.contains("ledger.db")), "{told:?}");
        }
    });
    assert!(matches!(ledger.probe(), Err(LedgerError::Held(_))));
    // Readers need not wait.
    assert_eq!(ledger.task("t1").unwrap().id, "t1");
    other.execute_batch("ROLLBACK").unwrap();
    write().unwrap();
    assert_eq!(ledger.probe(), Ok(()));
}

/// Puts zeros over the first page of a table or an index, as a failing disk would.
fn damage(place: &Place, name: &str) {
    let connection = Connection::open(place.path()).unwrap();
    let root: u64 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?", [name], |row| row.get::<_, i64>(0))
        .map(|root| u64::try_from(root).unwrap())
        .unwrap();
    let size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    let size = usize::try_from(size).unwrap();
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(connection);
    let file = std::fs::File::options().write(true).open(place.path()).unwrap();
    file.write_all_at(&vec![0; size], (root - 1) * size as u64).unwrap();
}

#[test]
fn probe_fails_where_what_calls_read_is_damaged() {
    for table in ["task", "endpoint", "user", "token", "event"] {
        let place = Place::new();
        place.open().submit(&submission("t1"), Moment(0)).unwrap();
        let ledger = place.open();
        damage(&place, table);
        let probed = ledger.probe();
        assert!(matches!(&probed, Err(LedgerError::Broken(why)) if why.contains("damaged")), "{table}: {probed:?}");
    }
}

#[test]
fn probe_fails_once_a_call_has_met_damage() {
    let place = Place::new();
    place.open().submit(&submission("t1"), Moment(0)).unwrap();
    let ledger = place.open();
    damage(&place, "sqlite_autoindex_task_1");
    assert_eq!(ledger.probe(), Ok(()), "the probe does not read all of the ledger");
    assert!(matches!(ledger.task("t1"), Err(LedgerError::Broken(_))));
    assert!(matches!(ledger.probe(), Err(LedgerError::Broken(_))));
}

#[test]
fn task_does_not_end_before_it_was_submitted() {
    let place = Place::new();
    let ledger = place.open();
    ledger.submit(&submission("t1"), Moment(100)).unwrap();
    let change = TaskChange { state: Some(TaskState::Cancelled), ..TaskChange::default() };
    // The clock was set back meanwhile.
    let task = ledger.change_task("t1", &TaskGuard::default(), &change, &[], Moment(50)).unwrap();
    assert_eq!((task.submitted, task.ended), (Moment(100), Some(Moment(100))));
}
