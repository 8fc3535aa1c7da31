//! Endpoints in SQLite.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{Done, count, document, events, health, integer, limit, parsed};
use crate::clock::Moment;
use crate::ledger::{EndpointRow, LedgerError, NewEvent, Page, rules};
use crate::model::Endpoint;

const SELECT: &str = "SELECT name, document, version, sealed_token FROM endpoint";

pub fn add(transaction: &Transaction<'_>, row: &EndpointRow, event: &NewEvent) -> Done<()> {
    let added = transaction.execute(
        "INSERT INTO endpoint (name, document, sealed_token, version) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        params![row.endpoint.name, document(&row.endpoint)?, row.sealed_token, integer(row.endpoint.version)],
    )?;
    if added == 0 {
        return Err(LedgerError::Taken.into());
    }
    events::insert(transaction, std::slice::from_ref(event), row.endpoint.added)
}

pub fn find(connection: &Connection, name: &str) -> Done<EndpointRow> {
    let found = connection.query_row(&format!("{SELECT} WHERE name = ?"), [name], read).optional()?;
    endpoint_row(found.ok_or(LedgerError::Missing)?)
}

pub fn list(connection: &Connection, page: &Page) -> Done<Vec<Endpoint>> {
    let mut statement = connection.prepare(&format!("{SELECT} WHERE name > ? ORDER BY name LIMIT ?"))?;
    let after = page.after.as_deref().unwrap_or("");
    let rows = statement.query_map(params![after, limit(page.limit)], read)?;
    rows.map(|row| Ok(endpoint_row(row?)?.endpoint)).collect()
}

pub fn change(transaction: &Transaction<'_>, row: &EndpointRow, event: &NewEvent, now: Moment) -> Done<Endpoint> {
    let EndpointRow { endpoint: known, sealed_token } = find(transaction, &row.endpoint.name)?;
    let before = known.version;
    if before != row.endpoint.version {
        return Err(LedgerError::Conflict(format!("endpoint {} has changed meanwhile", row.endpoint.name)).into());
    }
    rules::endpoint_may_change(&known, &row.endpoint, &open_tasks(transaction, &known.name)?)?;
    let has_token = row.sealed_token.is_some();
    let endpoint = Endpoint { version: before + 1, has_token, ..row.endpoint.clone() };
    transaction.execute(
        "UPDATE endpoint SET document = ?, sealed_token = ?, version = ? WHERE name = ?",
        params![document(&endpoint)?, row.sealed_token, integer(endpoint.version), endpoint.name],
    )?;
    if rules::endpoint_begins_anew((&known, &sealed_token), (&endpoint, &row.sealed_token)) {
        health::forget(transaction, &endpoint.name)?;
    }
    events::insert(transaction, std::slice::from_ref(event), now)?;
    Ok(endpoint)
}

/// Open tasks that use an endpoint.
fn open_tasks(transaction: &Transaction<'_>, name: &str) -> Done<Vec<String>> {
    let mut statement = transaction.prepare(
        "SELECT task.id FROM task_endpoint JOIN task ON task.seq = task_endpoint.task
         WHERE task_endpoint.endpoint = ? AND task.ended IS NULL ORDER BY task.seq",
    )?;
    let rows = statement.query_map([name], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub fn remove(transaction: &Transaction<'_>, name: &str, event: &NewEvent, now: Moment) -> Done<()> {
    let by_task = "SELECT task.id FROM task_endpoint JOIN task ON task.seq = task_endpoint.task
        WHERE task_endpoint.endpoint = ? AND task.ended IS NULL LIMIT 1";
    let by_timer = "SELECT timer.id FROM timer_endpoint JOIN timer ON timer.seq = timer_endpoint.timer
        WHERE timer_endpoint.endpoint = ? AND timer.state <> 'ended' LIMIT 1";
    for (what, sql) in [("task", by_task), ("timer", by_timer)] {
        let user: Option<String> = transaction.query_row(sql, [name], |row| row.get(0)).optional()?;
        if let Some(id) = user {
            return Err(LedgerError::Conflict(format!("endpoint {name} is used by {what} {id}")).into());
        }
    }
    if transaction.execute("DELETE FROM endpoint WHERE name = ?", [name])? == 0 {
        return Err(LedgerError::Missing.into());
    }
    health::forget(transaction, name)?;
    events::insert(transaction, std::slice::from_ref(event), now)
}

/// An endpoint as its columns have it.
struct Columns {
    name: String,
    document: String,
    version: i64,
    sealed_token: Option<Vec<u8>>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok(Columns { name: row.get(0)?, document: row.get(1)?, version: row.get(2)?, sealed_token: row.get(3)? })
}

fn endpoint_row(columns: Columns) -> Done<EndpointRow> {
    let mut endpoint: Endpoint = parsed(&columns.document, &format!("endpoint {}", columns.name))?;
    endpoint.version = count(columns.version);
    endpoint.has_token = columns.sealed_token.is_some();
    Ok(EndpointRow { endpoint, sealed_token: columns.sealed_token })
}
