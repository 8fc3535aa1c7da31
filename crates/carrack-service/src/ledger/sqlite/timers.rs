//! Timers in SQLite.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{Done, Fault, count, document, events, integer, limit, parsed, tasks};
use crate::clock::Moment;
use crate::ledger::{LedgerError, NewEvent, Page, Submission, Submitted, endpoints_of, rules};
use crate::model::{Timer, TimerState};

const SELECT: &str =
    "SELECT id, owner, label, schedule, task, state, next_run, runs, last_task, made, version FROM timer";

pub fn add(transaction: &Transaction<'_>, timer: &Timer, event: &NewEvent) -> Done<()> {
    let added = transaction.execute(
        "INSERT INTO timer (id, owner, label, schedule, task, state, next_run, runs, last_task, made, version)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        params![
            timer.id,
            timer.owner,
            timer.label,
            document(&timer.schedule)?,
            document(&timer.task)?,
            timer.state.name(),
            timer.next_run.map(|time| time.0),
            integer(timer.runs),
            timer.last_task,
            timer.made.0,
            integer(timer.version)
        ],
    )?;
    if added == 0 {
        return Err(LedgerError::Taken.into());
    }
    store_endpoints(transaction, timer)?;
    events::insert(transaction, std::slice::from_ref(event), timer.made)
}

pub fn find(connection: &Connection, id: &str) -> Done<Timer> {
    let found = connection.query_row(&format!("{SELECT} WHERE id = ?"), [id], read).optional()?;
    timer(found.ok_or(LedgerError::Missing)?)
}

pub fn list(connection: &Connection, owner: Option<&str>, page: &Page) -> Done<Vec<Timer>> {
    let after = match &page.after {
        None => i64::MAX,
        Some(after) => {
            let seq = "SELECT seq FROM timer WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)";
            connection
                .query_row(seq, params![after, owner], |row| row.get(0))
                .optional()?
                .ok_or(LedgerError::Missing)?
        }
    };
    let of_owner = if owner.is_some() { "owner = ?1" } else { "?1 IS NULL" };
    let sql = format!("{SELECT} WHERE {of_owner} AND seq < ?2 ORDER BY seq DESC LIMIT ?3");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params![owner, after, limit(page.limit)], read)?;
    rows.map(|columns| timer(columns?)).collect()
}

/// Timers that are due; and those that cannot be read, with why.
type Due = (Vec<Timer>, Vec<(String, String)>);

pub fn due(connection: &Connection, now: Moment, rows: usize) -> Done<Due> {
    let sql = format!("{SELECT} WHERE state = 'waiting' AND next_run <= ? ORDER BY next_run, seq LIMIT ?");
    let mut statement = connection.prepare(&sql)?;
    let (mut due, mut unreadable) = (Vec::new(), Vec::new());
    for columns in statement.query_map(params![now.0, limit(rows)], read)? {
        let columns = columns?;
        let id = columns.id.clone();
        match timer(columns) {
            Ok(timer) => due.push(timer),
            Err(Fault::Ledger(error)) => unreadable.push((id, error.to_string())),
            Err(error) => return Err(error),
        }
    }
    Ok((due, unreadable))
}

/// Pauses a timer that cannot be read, so that it does not stand before those that can.
pub fn pause_unreadable(transaction: &Transaction<'_>, id: &str, why: &str, now: Moment) -> Done<()> {
    let sql = "UPDATE timer SET state = 'paused', next_run = NULL, version = version + 1
        WHERE id = ? AND state = 'waiting' RETURNING owner";
    let owner: Option<String> = transaction.query_row(sql, [id], |row| row.get(0)).optional()?;
    let Some(owner) = owner else { return Ok(()) };
    events::insert(transaction, &[rules::timer_paused_event(id, owner, why)], now)
}

pub fn change(
    transaction: &Transaction<'_>,
    timer: &Timer,
    submission: Option<&Submission>,
    event: &NewEvent,
    now: Moment,
) -> Done<Option<Submitted>> {
    let sql = "SELECT version FROM timer WHERE id = ?";
    let version: Option<i64> = transaction.query_row(sql, [&timer.id], |row| row.get(0)).optional()?;
    if count(version.ok_or(LedgerError::Missing)?) != timer.version {
        return Err(LedgerError::Conflict(format!("timer {} has changed meanwhile", timer.id)).into());
    }
    let submitted = submission.map(|submission| tasks::submit(transaction, submission, now)).transpose()?;
    let last_task = submitted.as_ref().map(|submitted| &submitted.task.id).or(timer.last_task.as_ref());
    transaction.execute(
        "UPDATE timer SET label = ?, schedule = ?, task = ?, state = ?, next_run = ?, runs = ?, last_task = ?,
            version = ? WHERE id = ?",
        params![
            timer.label,
            document(&timer.schedule)?,
            document(&timer.task)?,
            timer.state.name(),
            timer.next_run.map(|time| time.0),
            integer(timer.runs),
            last_task,
            integer(timer.version + 1),
            timer.id
        ],
    )?;
    store_endpoints(transaction, timer)?;
    events::insert(transaction, std::slice::from_ref(event), now)?;
    Ok(submitted)
}

pub fn remove(transaction: &Transaction<'_>, id: &str, event: &NewEvent, now: Moment) -> Done<()> {
    if transaction.execute("DELETE FROM timer WHERE id = ?", [id])? == 0 {
        return Err(LedgerError::Missing.into());
    }
    events::insert(transaction, std::slice::from_ref(event), now)
}

/// Notes which endpoints the timer's tasks will use.
fn store_endpoints(transaction: &Transaction<'_>, timer: &Timer) -> Done<()> {
    let seq: i64 = transaction.query_row("SELECT seq FROM timer WHERE id = ?", [&timer.id], |row| row.get(0))?;
    transaction.execute("DELETE FROM timer_endpoint WHERE timer = ?", [seq])?;
    for endpoint in endpoints_of(&timer.task) {
        transaction.execute("INSERT INTO timer_endpoint (endpoint, timer) VALUES (?, ?)", params![endpoint, seq])?;
    }
    Ok(())
}

/// A timer as the columns have it.
struct Columns {
    id: String,
    owner: String,
    label: Option<String>,
    schedule: String,
    task: String,
    state: String,
    next_run: Option<i64>,
    runs: i64,
    last_task: Option<String>,
    made: i64,
    version: i64,
}

fn read(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok(Columns {
        id: row.get(0)?,
        owner: row.get(1)?,
        label: row.get(2)?,
        schedule: row.get(3)?,
        task: row.get(4)?,
        state: row.get(5)?,
        next_run: row.get(6)?,
        runs: row.get(7)?,
        last_task: row.get(8)?,
        made: row.get(9)?,
        version: row.get(10)?,
    })
}

fn timer(columns: Columns) -> Done<Timer> {
    let what = format!("timer {}", columns.id);
    let state = TimerState::parse(&columns.state)
        .map_err(|why| LedgerError::Broken(format!("{what} cannot be read in the ledger: {why}")))?;
    Ok(Timer {
        schedule: parsed(&columns.schedule, &what)?,
        task: parsed(&columns.task, &what)?,
        state,
        next_run: columns.next_run.map(Moment),
        runs: count(columns.runs),
        made: Moment(columns.made),
        version: count(columns.version),
        id: columns.id,
        owner: columns.owner,
        label: columns.label,
        last_task: columns.last_task,
    })
}
