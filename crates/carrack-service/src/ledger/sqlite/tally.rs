//! Figures over time in SQLite: counted.

use rusqlite::{Transaction, params};

use super::{Done, integer};
use crate::clock::Moment;
use crate::ledger::tally::{Sums, Tally};

/// Adds what a change of a task adds.
pub fn add(transaction: &Transaction<'_>, tally: &Tally) -> Done<()> {
    let Tally { minute, owner, source, destination, sums, failures } = tally;
    if *sums != Sums::default() {
        transaction.execute(
            "INSERT INTO tally VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
                bytes = bytes + excluded.bytes, busy = busy + excluded.busy,
                succeeded = succeeded + excluded.succeeded, partial = partial + excluded.partial,
                failed = failed + excluded.failed, cancelled = cancelled + excluded.cancelled",
            params![
                minute.0,
                owner,
                source,
                destination,
                integer(sums.bytes),
                integer(sums.busy),
                integer(sums.succeeded),
                integer(sums.partial),
                integer(sums.failed),
                integer(sums.cancelled)
            ],
        )?;
    }
    for (code, side) in failures {
        let sql = "INSERT INTO tally_failure VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1";
        transaction.execute(sql, params![minute.0, owner, code, side])?;
    }
    Ok(())
}

/// Removes what was counted before a moment.
pub fn forget(transaction: &Transaction<'_>, before: Moment) -> Done<()> {
    transaction.execute("DELETE FROM tally WHERE minute < ?", [before.0])?;
    transaction.execute("DELETE FROM tally_failure WHERE minute < ?", [before.0])?;
    Ok(())
}
