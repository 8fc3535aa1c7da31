//! What is known of the health of endpoints, in SQLite.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::{Done, count, document};
use crate::clock::Moment;
use crate::ledger::LedgerError;
use crate::ledger::health::{Fault, HealthRow, Sign, of_test};
use crate::model::EndpointTest;

/// Takes in what a change of a task shows of an endpoint. One that is gone meanwhile has no health.
pub fn add(transaction: &Transaction<'_>, endpoint: &str, sign: &Sign, now: Moment) -> Done<()> {
    let Sign { contact, success, fault } = sign;
    if *contact || *success {
        transaction.execute(
            "INSERT INTO endpoint_health (endpoint, contact, success)
             SELECT name, ?2, ?3 FROM endpoint WHERE name = ?1
             ON CONFLICT DO UPDATE SET contact = excluded.contact, success = coalesce(excluded.success, success)",
            params![endpoint, now.0, success.then_some(now.0)],
        )?;
    }
    if let Some(Fault { time, unreached, code, why, task }) = fault {
        let (task, owner) = task.as_ref().map(|(task, owner)| (task, owner)).unzip();
        transaction.execute(
            "INSERT INTO endpoint_health
                (endpoint, fault_time, fault_unreached, fault_code, fault_why, fault_task, fault_owner)
             SELECT name, ?2, ?3, ?4, ?5, ?6, ?7 FROM endpoint WHERE name = ?1
             ON CONFLICT DO UPDATE SET fault_time = excluded.fault_time, fault_unreached = excluded.fault_unreached,
                fault_code = excluded.fault_code, fault_why = excluded.fault_why, fault_task = excluded.fault_task,
                fault_owner = excluded.fault_owner",
            params![endpoint, time.0, unreached, code, why, task, owner],
        )?;
    }
    Ok(())
}

/// Keeps what a test has found.
pub fn note_test(transaction: &Transaction<'_>, endpoint: &str, test: &EndpointTest, now: Moment) -> Done<()> {
    let is_there = "SELECT 1 FROM endpoint WHERE name = ?";
    if transaction.query_row(is_there, [endpoint], |_| Ok(())).optional()?.is_none() {
        return Err(LedgerError::Missing.into());
    }
    add(transaction, endpoint, &of_test(test, now), now)?;
    transaction.execute(
        "INSERT INTO endpoint_health (endpoint, test_time, test) VALUES (?, ?, ?)
         ON CONFLICT DO UPDATE SET test_time = excluded.test_time, test = excluded.test",
        params![endpoint, now.0, document(test)?],
    )?;
    Ok(())
}

/// Forgets an endpoint that is gone, or is another one now.
pub fn forget(transaction: &Transaction<'_>, endpoint: &str) -> Done<()> {
    transaction.execute("DELETE FROM endpoint_health WHERE endpoint = ?", [endpoint])?;
    Ok(())
}

/// What is known of one endpoint, or of all; with the open tasks of an owner, or of all.
pub fn list(connection: &Connection, endpoint: Option<&str>, owner: Option<&str>) -> Done<BTreeMap<String, HealthRow>> {
    let mut statement = connection.prepare("SELECT * FROM endpoint_health WHERE ?1 IS NULL OR endpoint = ?1")?;
    let rows = statement.query_map([endpoint], read)?;
    let mut health: BTreeMap<String, HealthRow> = rows.collect::<Result<_, _>>()?;
    // All endpoints by the open tasks, one of them by its own tasks: each has its index.
    let sql = match endpoint {
        None => {
            "SELECT endpoint, count(*) FROM task JOIN task_endpoint ON task = seq
             WHERE ended IS NULL AND (?2 IS NULL OR owner = ?2) AND ?1 IS NULL GROUP BY endpoint"
        }
        Some(_) => {
            "SELECT endpoint, count(*) FROM task_endpoint JOIN task ON task = seq
             WHERE endpoint = ?1 AND ended IS NULL AND (?2 IS NULL OR owner = ?2) GROUP BY endpoint"
        }
    };
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params![endpoint, owner])?;
    while let Some(row) = rows.next()? {
        health.entry(row.get(0)?).or_default().open = count(row.get(1)?);
    }
    Ok(health)
}

fn read(row: &Row<'_>) -> rusqlite::Result<(String, HealthRow)> {
    let moment = |column: &str| row.get::<_, Option<i64>>(column).map(|time| time.map(Moment));
    let text = |column: &str| row.get::<_, Option<String>>(column);
    let task = text("fault_task")?.zip(text("fault_owner")?);
    let fault = match moment("fault_time")? {
        Some(time) => Some(Fault {
            time,
            unreached: row.get::<_, Option<bool>>("fault_unreached")?.unwrap_or(false),
            code: text("fault_code")?.unwrap_or_default(),
            why: text("fault_why")?.unwrap_or_default(),
            task,
        }),
        None => None,
    };
    // A test that a later program wrote, and that this one cannot read, is none.
    let test = text("test")?.and_then(|test| serde_json::from_str(&test).ok());
    let row_of = HealthRow {
        contact: moment("contact")?,
        success: moment("success")?,
        fault,
        test: moment("test_time")?.zip(test),
        open: 0,
    };
    Ok((row.get("endpoint")?, row_of))
}
