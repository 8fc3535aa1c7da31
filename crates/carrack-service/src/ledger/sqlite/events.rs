//! Events in SQLite.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};

use super::{Done, count, document, integer, limit};
use crate::clock::Moment;
use crate::ledger::{EventFilter, NewEvent};
use crate::model::{Event, EventKind};

pub fn insert(transaction: &Transaction<'_>, events: &[NewEvent], now: Moment) -> Done<()> {
    for event in events {
        transaction.execute(
            "INSERT INTO event (time, kind, owner, task, subject, text, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![
                now.0,
                event.kind.name(),
                event.owner,
                event.task,
                event.subject,
                event.text,
                document(&event.detail)?
            ],
        )?;
    }
    Ok(())
}

pub fn list(connection: &Connection, filter: &EventFilter, rows: usize) -> Done<Vec<Event>> {
    let mut sql = "SELECT id, time, kind, owner, task, subject, text, detail FROM event WHERE id > ?".to_owned();
    let mut values = vec![Value::Integer(integer(filter.since))];
    if let Some(task) = &filter.task {
        sql.push_str(" AND task = ?");
        values.push(Value::Text(task.clone()));
    }
    if let Some(owner) = &filter.owner {
        // The sign keeps SQLite from the index of owners where that of tasks is narrower.
        sql.push_str(if filter.task.is_some() { " AND +owner = ?" } else { " AND owner = ?" });
        values.push(Value::Text(owner.clone()));
    }
    sql.push_str(" ORDER BY id LIMIT ?");
    values.push(Value::Integer(limit(rows)));
    let mut statement = connection.prepare(&sql)?;
    let events = statement.query_map(params_from_iter(values), read)?;
    Ok(events.collect::<Result<_, _>>()?)
}

/// An event that this program does not know is told as a note: one row never hides those behind it.
fn read(row: &Row<'_>) -> rusqlite::Result<Event> {
    let kind: String = row.get(2)?;
    let detail: String = row.get(7)?;
    Ok(Event {
        id: count(row.get(0)?),
        time: Moment(row.get(1)?),
        kind: EventKind::parse(&kind).unwrap_or(EventKind::Note),
        owner: row.get(3)?,
        task: row.get(4)?,
        subject: row.get(5)?,
        text: row.get(6)?,
        detail: serde_json::from_str(&detail).unwrap_or_default(),
    })
}

/// The number of the last event ever, and of the oldest that is kept: that of the next one where there is none.
pub fn range(connection: &Connection) -> Done<(u64, u64)> {
    let last = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0)";
    let last: i64 = connection.query_row(last, (), |row| row.get(0))?;
    let oldest: Option<i64> = connection.query_row("SELECT min(id) FROM event", (), |row| row.get(0))?;
    Ok((count(last), count(oldest.unwrap_or(last + 1))))
}
