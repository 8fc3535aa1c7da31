//! What was acknowledged is there, once, whenever the process is killed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};

use rustix::process::{Signal, getpid, kill_process};

use super::*;
use crate::ledger::sqlite::migrations::{self, Migration};

/// Accepts one task after the other, and tells each that was accepted.
pub fn submit_for_ever(ledger: &Path, from: usize) {
    let ledger = SqliteLedger::open(ledger, Moment(0)).unwrap();
    let mut out = std::io::stdout();
    for number in from.. {
        let submission = submission(&format!("t{number}"));
        ledger.submit(&submission, Moment(0)).unwrap();
        writeln!(out, "accepted {number}").unwrap();
        out.flush().unwrap();
        ledger.claim(&submission.id, Moment(1), &rules::submitted_event(&submission)).unwrap();
        writeln!(out, "begun {number}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn killed_around_commits_keeps_what_was_acknowledged_once() {
    let place = Place::new();
    let mut next = 0;
    let (mut accepted, mut begun) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..20 {
        let mut command = player(&own_program(), &format!("submit {next}"), &place.path());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut left = 3 + round * 3 % 17;
        for line in lines {
            let line = line.unwrap();
            // What stood in the pipe when it was killed was acknowledged, too.
            if let Some(number) = line.split("accepted ").nth(1) {
                let number: usize = number.parse().unwrap();
                accepted.insert(number);
                next = number + 1;
            } else if let Some(number) = line.split("begun ").nth(1) {
                begun.insert(number.parse::<usize>().unwrap());
            } else {
                continue;
            }
            left -= 1;
            if left == 0 {
                process.kill().unwrap();
            }
        }
        assert!(!process.wait().unwrap().success());
        next += 1;
        let ledger = place.open();
        for number in &accepted {
            let task = ledger.task(&format!("t{number}")).unwrap();
            assert!(task.fence <= 1 && (!begun.contains(number) || task.fence == 1), "round {round}: {task:?}");
        }
    }
    assert!(accepted.len() >= 20, "{}", accepted.len());
    let ledger = place.open();
    for number in accepted {
        for again in 0..10 {
            let repeated = Submission { id: format!("again {again}"), ..submission(&format!("t{number}")) };
            let repeated = ledger.submit(&repeated, Moment(9)).unwrap();
            assert_eq!((repeated.task.id, repeated.duplicate), (format!("t{number}"), true));
        }
    }
}

/// Steps like those that will come.
const LATER: &[Migration] = &[
    Migration {
        number: 1_000,
        name: "shares",
        sql: "CREATE TABLE share (path TEXT PRIMARY KEY) STRICT;
              ALTER TABLE task ADD COLUMN share TEXT;
              UPDATE task SET share = 'of ' || id;",
    },
    Migration {
        number: 1_001,
        name: "shares are never null",
        sql: "INSERT INTO share SELECT share FROM task;
              DROP INDEX event_time;
              CREATE INDEX share_path ON share (path);",
    },
];

fn with_later() -> Vec<Migration> {
    let copy = |step: &Migration| Migration { number: step.number, name: step.name, sql: step.sql };
    migrations::ALL.iter().chain(LATER).map(copy).collect()
}

/// Brings the schema up to date, and kills itself before a statement.
pub fn migrate_until(ledger: &Path, last: u32) {
    let mut connection = Connection::open(ledger).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    let mut steps = 0;
    let step = || {
        if steps == last {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        steps += 1;
    };
    migrations::carry_out(&mut connection, &with_later(), Moment(0), step).unwrap();
}

/// The schema, the steps that were carried out, and the shares.
fn state(connection: &Connection) -> Vec<String> {
    let sql = "SELECT name || coalesce(sql, '') FROM sqlite_schema
        UNION ALL SELECT number || checksum FROM migration UNION ALL SELECT path FROM share";
    let mut statement = connection.prepare(sql).unwrap();
    let rows: Vec<String> = statement.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let whole: String = connection.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    rows
}

fn migrated(path: &Path) -> Vec<String> {
    let mut connection = Connection::open(path).unwrap();
    migrations::carry_out(&mut connection, &with_later(), Moment(0), || {}).unwrap();
    state(&connection)
}

/// Kills a process before each statement, and returns how often; what is left each time is brought up to date.
fn killed_at_each_statement(make: impl Fn(&Place), expected: &[String]) -> u32 {
    for step in 0.. {
        let place = Place::new();
        make(&place);
        let done = player(&own_program(), &format!("migrate {step}"), &place.path()).output().unwrap();
        assert_eq!(migrated(&place.path()), expected, "killed before statement {step}");
        if done.status.success() {
            return step;
        }
        assert!(step < 100, "{done:?}");
    }
    0
}

#[test]
fn killed_while_the_schema_is_made_is_made_whole() {
    let place = Place::new();
    let expected = migrated(&place.path());
    let statements = killed_at_each_statement(|_| {}, &expected);
    assert!(statements > 20, "{statements}");
}

#[test]
fn killed_while_the_schema_is_brought_up_to_date_keeps_all() {
    let with_tasks = |place: &Place| {
        let ledger = place.open();
        ["t1", "t2"].iter().for_each(|id| drop(ledger.submit(&submission(id), Moment(0)).unwrap()));
    };
    let place = Place::new();
    with_tasks(&place);
    let expected = migrated(&place.path());
    assert!(expected.iter().any(|row| row == "of t2"), "{expected:?}");
    assert_eq!(killed_at_each_statement(with_tasks, &expected), 8);
}

#[test]
fn killed_while_it_is_open_is_opened_again() {
    let place = Place::new();
    for number in 0..3 {
        let ledger = place.open();
        ledger.submit(&submission(&format!("t{number}")), Moment(0)).unwrap();
        std::mem::forget(ledger);
    }
    assert_eq!(place.open().count_tasks().unwrap(), [("ada".to_owned(), TaskState::Queued, 3)]);
}
