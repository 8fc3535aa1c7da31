//! Audit lines in SQLite.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};

use super::{Done, count, integer, limit};
use crate::clock::Moment;
use crate::ledger::Retention;
use crate::ledger::audit::{AUDIT_LINES_MOST, AuditFilter, NewAuditLine, STRANGERS_LINES_MOST};
use crate::model::AuditLine;

pub fn insert(transaction: &Transaction<'_>, lines: &[NewAuditLine]) -> Done<()> {
    let sql = "INSERT INTO audit (time, user, via, token, origin, action, object, status)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let mut statement = transaction.prepare(sql)?;
    for NewAuditLine { time, user, via, token, from, action, object, status } in lines {
        statement.execute(params![time.0, user, via, token, from, action, object, status])?;
    }
    Ok(())
}

pub fn list(connection: &Connection, filter: &AuditFilter, rows: usize) -> Done<Vec<AuditLine>> {
    let mut sql = "SELECT id, time, user, via, token, origin, action, object, status FROM audit WHERE TRUE".to_owned();
    let mut values = Vec::new();
    let mut add = |condition: &str, value: Value| {
        sql.push_str(condition);
        values.push(value);
    };
    if let Some(text) = &filter.text {
        let text = text.to_ascii_lowercase();
        for (index, column) in ["user", "action", "object", "origin", "token"].into_iter().enumerate() {
            let or = if index == 0 { " AND (" } else { " OR " };
            add(&format!("{or}instr(lower(coalesce({column}, '')), ?) > 0"), Value::Text(text.clone()));
        }
        sql.push(')');
    }
    let mut add = |condition: &str, value: Option<i64>| {
        if let Some(value) = value {
            sql.push_str(condition);
            values.push(Value::Integer(value));
        }
    };
    add(" AND time >= ?", filter.from.map(|time| time.0));
    add(" AND time < ?", filter.to.map(|time| time.0));
    add(" AND id < ?", filter.before.map(integer));
    add(" ORDER BY id DESC LIMIT ?", Some(limit(rows)));
    let mut statement = connection.prepare(&sql)?;
    let lines = statement.query_map(params_from_iter(values), read)?;
    Ok(lines.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<AuditLine> {
    Ok(AuditLine {
        id: count(row.get(0)?),
        time: Moment(row.get(1)?),
        user: row.get(2)?,
        via: row.get(3)?,
        token: row.get(4)?,
        from: row.get(5)?,
        action: row.get(6)?,
        object: row.get(7)?,
        status: row.get(8)?,
    })
}

/// Lines of refusals of whom nobody knows, and all others; each with its index.
const STRANGERS: [&str; 2] = ["audit_strangers", "via = '' AND status >= 400"];
const OTHERS: [&str; 2] = ["audit_others", "NOT (via = '' AND status >= 400)"];

/// Removes what is old, and what is more than is kept.
pub fn forget(transaction: &Transaction<'_>, retention: &Retention) -> Done<()> {
    transaction.execute(
        "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE time < ? ORDER BY time, id LIMIT ?)",
        params![retention.events_before.0, limit(retention.limit)],
    )?;
    for ([index, which], most) in [(STRANGERS, STRANGERS_LINES_MOST), (OTHERS, AUDIT_LINES_MOST)] {
        let sql = format!(
            "DELETE FROM audit INDEXED BY {index} WHERE {which} AND id <=
             (SELECT id FROM audit INDEXED BY {index} WHERE {which} ORDER BY id DESC LIMIT 1 OFFSET ?)"
        );
        transaction.execute(&sql, [limit(most)])?;
    }
    Ok(())
}
