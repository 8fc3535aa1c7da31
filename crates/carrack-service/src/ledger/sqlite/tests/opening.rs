//! What is refused when a ledger is opened, and what is there when it is opened again.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::thread;

use super::*;
use crate::ledger::sqlite::open::beside;

/// With some pages, so that there is something to damage.
fn filled(place: &Place) {
    let ledger = place.open();
    for number in 0..200 {
        ledger.submit(&submission(&format!("t{number}")), Moment(number)).unwrap();
    }
}

#[test]
fn ledger_opened_again_has_what_it_had() {
    let place = Place::new();
    let task = place.open().submit(&submission("t1"), Moment(7)).unwrap().task;
    let ledger = place.open();
    assert_eq!(ledger.task("t1").unwrap(), task);
    assert_eq!(ledger.events(&EventFilter::default(), 10).unwrap().len(), 1);
}

#[test]
fn ledger_keeps_its_log_and_syncs_each_commit() {
    let place = Place::new();
    let ledger = place.open();
    let value = |name: &str| -> String {
        let writers = lock(&ledger.writers);
        writers
            .durable
            .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            .map(shown)
            .unwrap()
    };
    fn shown(value: rusqlite::types::Value) -> String {
        match value {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        }
    }
    assert_eq!(value("journal_mode"), "wal");
    assert_eq!(value("synchronous"), "2", "FULL");
    assert_eq!(value("foreign_keys"), "1");
    assert_eq!(value("busy_timeout"), BUSY_TIMEOUT.as_millis().to_string());
}

/// Fifty workers that tell how far they are each second would keep the disk busy with nothing else.
#[test]
fn ledger_waits_for_the_disk_but_for_progress() {
    let place = Place::new();
    let ledger = place.open();
    ledger.submit(&submission("t1"), Moment(0)).unwrap();
    let written = || {
        let writers = lock(&ledger.writers);
        (writers.durable.total_changes(), writers.light.total_changes())
    };
    let synchronous: u32 =
        lock(&ledger.writers).light.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert_eq!(synchronous, 1, "NORMAL");
    let (durable, light) = written();
    let progress = TaskChange { progress: Some(crate::model::Progress::default()), ..TaskChange::default() };
    ledger.change_task("t1", &TaskGuard::default(), &progress, &[], Moment(1)).unwrap();
    assert_eq!(written(), (durable, light + 1));
    let and_more = [
        (TaskChange { futile_attempts: Some(1), ..progress.clone() }, vec![]),
        (progress, vec![rules::submitted_event(&submission("t1"))]),
    ];
    for (change, events) in and_more {
        ledger.change_task("t1", &TaskGuard::default(), &change, &events, Moment(1)).unwrap();
    }
    assert_eq!(written(), (durable + 3, light + 1));
}

#[test]
fn ledger_is_readable_by_its_owner_alone() {
    let place = Place::new();
    let _ledger = place.open();
    for suffix in ["", "-wal", "-shm", "-open"] {
        let mode = fs::metadata(beside(&place.path(), suffix)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix:?}");
    }
}

/// Page 2 is the first table's.
#[test]
fn ledger_with_a_flipped_page_fails_loudly_and_stays() {
    let place = Place::new();
    filled(&place);
    let before = fs::read(place.path()).unwrap();
    for page in [1, 2, 5] {
        let mut page_bytes = before[4096 * (page - 1)..4096 * page].to_vec();
        page_bytes.iter_mut().for_each(|byte| *byte = !*byte);
        let file = fs::OpenOptions::new().write(true).open(place.path()).unwrap();
        file.write_all_at(&page_bytes, 4096 * (page as u64 - 1)).unwrap();
        let damaged = fs::read(place.path()).unwrap();
        assert_eq!(place.refused(), OpenErrorKind::Damaged, "page {page}");
        assert!(fs::read(place.path()).unwrap() == damaged, "page {page}: something was mended or made anew");
        fs::write(place.path(), &before).unwrap();
    }
    assert_eq!(place.open().count_tasks().unwrap(), [("ada".to_owned(), TaskState::Queued, 200)]);
}

#[test]
fn ledger_cut_short_fails_loudly() {
    let place = Place::new();
    filled(&place);
    let length = fs::metadata(place.path()).unwrap().len();
    for length in [length - 4096, 4096 + 100, 100] {
        fs::OpenOptions::new().write(true).open(place.path()).unwrap().set_len(length).unwrap();
        assert_eq!(place.refused(), OpenErrorKind::Damaged, "{length}");
    }
}

/// A service that was killed has left its log: all commits of the last minutes may be there alone.
#[test]
fn ledger_whose_log_is_lost_fails_loudly() {
    let place = Place::new();
    std::mem::forget(place.open());
    let (log, hidden) = (beside(&place.path(), "-wal"), beside(&place.path(), "-hidden"));
    fs::rename(&log, &hidden).unwrap();
    assert_eq!(place.refused(), OpenErrorKind::LogLost);
    fs::rename(&hidden, &log).unwrap();
    drop(place.open());
    // Once it was closed in order the log holds nothing.
    assert_eq!(fs::metadata(&log).map_or(0, |found| found.len()), 0);
    let _ = fs::remove_file(&log);
    place.open();
}

#[test]
fn ledger_that_is_gone_is_not_made_anew_where_it_is_missed() {
    let place = Place::new();
    let tasks = place.path().with_file_name("tasks");
    fs::create_dir(&tasks).unwrap();
    drop(place.open());
    fs::remove_file(place.path()).unwrap();
    fs::create_dir(tasks.join("some-task")).unwrap();
    assert_eq!(place.refused(), OpenErrorKind::Gone);
    fs::write(place.path(), "").unwrap();
    assert_eq!(place.refused(), OpenErrorKind::Gone, "an empty file is none");
    assert_eq!(fs::metadata(place.path()).unwrap().len(), 0);
}

#[test]
fn ledger_of_a_newer_program_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.alter("INSERT INTO migration VALUES (99, 'shares', 'ff', 0, '9.9.9')");
    let error = place.try_open().unwrap_err();
    assert_eq!(error.kind, OpenErrorKind::NewerSchema);
    assert!(error.why.contains("step 99 (shares) of carrack 9.9.9"), "{error}");
}

#[test]
fn ledger_with_another_text_of_a_step_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.alter("UPDATE migration SET checksum = 'ff' WHERE number = 1");
    assert_eq!(place.refused(), OpenErrorKind::ChangedSchema);
}

#[test]
fn ledger_of_a_build_from_before_version_1_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.alter("PRAGMA application_id = 0x4361726b");
    let error = place.try_open().unwrap_err();
    assert_eq!(error.kind, OpenErrorKind::OtherFile);
    assert!(error.why.contains("from before version 1"), "{error}");
}

#[test]
fn ledger_that_is_another_file_is_refused() {
    let place = Place::new();
    place.alter("CREATE TABLE cookies (value TEXT)");
    assert_eq!(place.refused(), OpenErrorKind::OtherFile);
    fs::write(place.path(), "a text, longer than the header of a database: ".repeat(10)).unwrap();
    assert_eq!(place.refused(), OpenErrorKind::Damaged);
}

#[test]
fn ledger_without_its_directory_is_refused() {
    let place = Place::new();
    let path = place.path().join("missing/ledger.db");
    let error = SqliteLedger::open(&path, Moment(0)).unwrap_err();
    assert_eq!(error.kind, OpenErrorKind::System, "{error}");
}

#[test]
fn ledger_that_another_program_holds_is_waited_for() {
    let place = Place::new();
    let ledger = place.open();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Reading goes on meanwhile.
    assert_eq!(ledger.count_tasks(), Ok(Vec::new()));
    thread::scope(|scope| {
        let submit = scope.spawn(|| ledger.submit(&submission("t1"), Moment(0)));
        other.execute_batch("COMMIT").unwrap();
        assert!(!submit.join().unwrap().unwrap().duplicate);
    });
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    lock(&ledger.writers).durable.busy_timeout(Duration::from_millis(10)).unwrap();
    let refused = ledger.submit(&submission("t2"), Moment(0));
    assert!(matches!(&refused, Err(LedgerError::Held(why)) if why.contains("another program")), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    ledger.submit(&submission("t2"), Moment(0)).unwrap();
}

#[test]
fn ledger_made_read_only_says_so_and_is_read() {
    let place = Place::new();
    let ledger = place.open();
    ledger.submit(&submission("t1"), Moment(0)).unwrap();
    lock(&ledger.writers).durable.pragma_update(None, "query_only", true).unwrap();
    let refused = ledger.submit(&submission("t2"), Moment(0));
    assert!(matches!(&refused, Err(LedgerError::Broken(why)) if why.contains("read-only")), "{refused:?}");
    assert!(ledger.probe().is_err());
    assert_eq!(ledger.task("t1").unwrap().id, "t1");
}

#[test]
fn ledger_damaged_while_it_is_open_says_so() {
    let place = Place::new();
    filled(&place);
    let ledger = place.open();
    let length = usize::try_from(fs::metadata(place.path()).unwrap().len()).unwrap();
    fs::OpenOptions::new().write(true).open(place.path()).unwrap().write_all_at(&vec![0xee; length], 0).unwrap();
    let read = ledger.tasks(&TaskFilter::default(), &Page { after: None, limit: 1000 });
    assert!(matches!(&read, Err(LedgerError::Broken(why)) if why.contains("damaged")), "{read:?}");
}
