//! Looks a ledger over: pages, indexes, keys, rows, and whether the journals of its tasks are there. Changes nothing,
//! and may look on while a service runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::Serialize;

use super::error::{OpenError, OpenErrorKind};
use super::open::{self, TASKS, directory};
use super::{Fault, count, endpoints, identity, migrations, tasks, timers, told};
use crate::ledger::LedgerError;

/// The journal of a task, in its directory.
const JOURNAL: &str = "journal";
/// So much damage is listed.
const DAMAGE_MAX: usize = 20;

/// What a look at a ledger has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The file.
    pub path: PathBuf,
    /// Its size, without its log.
    pub bytes: u64,
    /// Tasks in it.
    pub tasks: u64,
    /// Of these, tasks that have not ended.
    pub open_tasks: u64,
    /// Events in it.
    pub events: u64,
    /// What is wrong; nothing where all is well.
    pub findings: Vec<CheckFinding>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckFinding {
    /// What kind: `damage`, `schema`, `unreadable`, `journal-missing` or `task-unknown`.
    pub kind: &'static str,
    /// In words, with the row or the path.
    pub why: String,
    /// What to try.
    pub hint: &'static str,
}

/// Looks over the ledger, and the journals in the directory `tasks` beside it.
///
/// # Errors
/// Where it cannot be opened at all.
pub fn check(ledger: &Path) -> Result<CheckReport, OpenError> {
    open::refuse_lost(ledger)?;
    let connection = open::reader(ledger)?;
    let mut report = CheckReport {
        path: ledger.to_owned(),
        bytes: fs::metadata(ledger).map_or(0, |found| found.len()),
        tasks: 0,
        open_tasks: 0,
        events: 0,
        findings: Vec::new(),
    };
    let looked = connection.execute_batch("BEGIN").map_err(Fault::from).and_then(|()| look(&connection, &mut report));
    if let Err(fault) = looked {
        let why = match fault {
            Fault::Sqlite(error) => told(ledger, &error),
            Fault::Ledger(error) => error,
        };
        report.findings.push(CheckFinding {
            kind: "damage",
            why: why.to_string(),
            hint: OpenErrorKind::Damaged.hint(),
        });
    }
    Ok(report)
}

fn look(connection: &Connection, report: &mut CheckReport) -> Result<(), Fault> {
    let missing = migrations::missing(connection, migrations::ALL);
    let is_current = matches!(missing, Ok(0));
    match missing {
        Ok(0) => {}
        Ok(steps) => {
            let why = format!("{steps} steps of the schema are missing");
            report.findings.push(CheckFinding { kind: "schema", why, hint: "start the service once" });
        }
        Err(error) => {
            report.findings.push(CheckFinding { kind: "schema", why: error.why, hint: error.kind.hint() });
            return Ok(());
        }
    }
    for why in damage(connection)? {
        report.findings.push(CheckFinding { kind: "damage", why, hint: OpenErrorKind::Damaged.hint() });
    }
    let counted = |sql: &str| -> rusqlite::Result<u64> { Ok(count(connection.query_row(sql, (), |row| row.get(0))?)) };
    report.tasks = counted("SELECT count(*) FROM task")?;
    report.open_tasks = counted("SELECT count(*) FROM task WHERE ended IS NULL")?;
    report.events = counted("SELECT count(*) FROM event")?;
    for why in unreadable(connection)? {
        let hint = "use the program that wrote it, or remove it and make it again";
        report.findings.push(CheckFinding { kind: "unreadable", why, hint });
    }
    let directory = directory(&report.path).join(TASKS);
    // The service removes their directories. An older ledger tells none.
    let forgotten = if is_current { tasks::forgotten(connection)? } else { Vec::new() };
    journals(connection, &directory, forgotten, &mut report.findings)
}

/// What SQLite finds wrong with pages, indexes and keys.
pub(super) fn damage(connection: &Connection) -> Result<Vec<String>, Fault> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({DAMAGE_MAX})"))?;
    let said: Vec<String> = statement.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut damage: Vec<String> = said.into_iter().filter(|said| said != "ok").collect();
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()?.filter(|_| damage.len() < DAMAGE_MAX) {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        damage.push(format!("a row of table {table} names a row of {parent} that is not there"));
    }
    Ok(damage)
}

/// Rows whose documents cannot be read.
fn unreadable(connection: &Connection) -> Result<Vec<String>, Fault> {
    let mut found = tasks::unreadable(connection)?;
    let mut note = |result: Result<(), Fault>| match result {
        Err(Fault::Ledger(LedgerError::Broken(why))) => {
            found.push(why);
            Ok(())
        }
        // A row that names one which is not there: told as damage.
        Err(Fault::Ledger(LedgerError::Missing)) => Ok(()),
        other => other,
    };
    for name in texts(connection, "SELECT name FROM endpoint ORDER BY name")? {
        note(endpoints::find(connection, &name).map(drop))?;
    }
    for name in texts(connection, "SELECT name FROM user ORDER BY name")? {
        note(identity::user(connection, &name).map(drop))?;
    }
    for id in texts(connection, "SELECT id FROM token ORDER BY seq")? {
        note(identity::token(connection, &id).map(drop))?;
    }
    for id in texts(connection, "SELECT id FROM timer ORDER BY seq")? {
        note(timers::find(connection, &id).map(drop))?;
    }
    Ok(found)
}

/// Journals that are missed, and directories of tasks that the ledger does not know.
fn journals(
    connection: &Connection,
    directory: &Path,
    forgotten: Vec<String>,
    findings: &mut Vec<CheckFinding>,
) -> Result<(), Fault> {
    for id in texts(connection, "SELECT id FROM task WHERE started IS NOT NULL ORDER BY seq")? {
        let journal = directory.join(&id).join(JOURNAL);
        if !journal.exists() {
            findings.push(CheckFinding {
                kind: "journal-missing",
                why: format!("task {id} has begun, and its journal {} is gone", journal.display()),
                hint: "its items cannot be listed; if it is open, its next attempt looks at the destination",
            });
        }
    }
    let known: BTreeSet<String> = texts(connection, "SELECT id FROM task")?.into_iter().chain(forgotten).collect();
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    let mut strange: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    strange.retain(|path| path.file_name().and_then(|name| name.to_str()).is_none_or(|name| !known.contains(name)));
    strange.sort_unstable();
    for path in strange {
        findings.push(CheckFinding {
            kind: "task-unknown",
            why: format!("{} is of a task that the ledger does not know", path.display()),
            hint: "after a restore: a task submitted since the backup; read its journal, then remove it",
        });
    }
    Ok(())
}

fn texts(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map((), |row| row.get(0))?.collect()
}
