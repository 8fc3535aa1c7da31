//! Where tasks were at work, in SQLite.

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::{Done, document, limit};
use crate::clock::Moment;
use crate::ledger::{TaskVisits, VisitedTasks, VisitsMost};
use crate::model::{EndVisit, merge_visits};

/// Takes in what an attempt of a task has told.
pub fn add(transaction: &Transaction<'_>, task: &str, visits: &[EndVisit], now: Moment) -> Done<()> {
    if visits.is_empty() {
        return Ok(());
    }
    let sql = "SELECT document FROM visit JOIN task ON task = seq WHERE id = ?";
    let known: Option<String> = transaction.query_row(sql, [task], |row| row.get(0)).optional()?;
    let mut all: Vec<EndVisit> = known.map_or_else(Vec::new, |known| read(&known));
    merge_visits(&mut all, visits);
    transaction.execute(
        "INSERT INTO visit SELECT seq, ?2, ?3 FROM task WHERE id = ?1
         ON CONFLICT DO UPDATE SET time = excluded.time, document = excluded.document",
        params![task, now.0, document(&all)?],
    )?;
    Ok(())
}

/// Those since a moment, the latest first.
pub fn list(connection: &Connection, owner: Option<&str>, since: Moment, most: VisitsMost) -> Done<VisitedTasks> {
    let sql = "SELECT id, time, document FROM visit JOIN task ON task = seq
        WHERE time >= ?1 AND (?2 IS NULL OR owner = ?2) ORDER BY time DESC, seq DESC LIMIT ?3";
    let mut statement = connection.prepare(sql)?;
    // One more than is wanted says whether there are more.
    let rows = limit(most.tasks.saturating_add(1));
    let found = statement.query_map(params![since.0, owner, rows], |row| {
        let document = row.get_ref(2)?.as_str()?;
        Ok((document.len(), TaskVisits { task: row.get(0)?, time: Moment(row.get(1)?), visits: read(document) }))
    })?;
    Ok(VisitedTasks::within(most, found)?)
}

/// What a later program wrote, and this one cannot read, is nothing.
fn read(text: &str) -> Vec<EndVisit> {
    serde_json::from_str(text).unwrap_or_default()
}
