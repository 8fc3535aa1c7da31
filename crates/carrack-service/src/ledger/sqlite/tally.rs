//! Figures over time in SQLite: counted.

use rusqlite::{Transaction, params};

use super::{Done, integer};
use crate::clock::Moment;
use crate::ledger::tally::{Shift, Sums, Tally, minute_of};

/// Adds what a change of a task adds.
pub fn add(transaction: &Transaction<'_>, tally: &Tally) -> Done<()> {
    let Tally { minute, owner, source, destination, sums, shift, failures } = tally;
    if *shift != Shift::default() {
        transaction.execute(
            "INSERT INTO tally_queue VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET
                waiting = waiting + excluded.waiting, running = running + excluded.running",
            params![minute.0, owner, shift.waiting, shift.running],
        )?;
    }
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

/// Removes what was counted before a moment. How many tasks waited and ran then stays known.
pub fn forget(transaction: &Transaction<'_>, before: Moment) -> Done<()> {
    transaction.execute("DELETE FROM tally WHERE minute < ?", [before.0])?;
    transaction.execute("DELETE FROM tally_failure WHERE minute < ?", [before.0])?;
    let edge = minute_of(before).0;
    transaction.execute(
        "INSERT INTO tally_queue SELECT ?1, owner, sum(waiting), sum(running) FROM tally_queue WHERE minute < ?1
            GROUP BY owner
         ON CONFLICT DO UPDATE SET waiting = waiting + excluded.waiting, running = running + excluded.running",
        [edge],
    )?;
    transaction.execute("DELETE FROM tally_queue WHERE minute < ?", [edge])?;
    Ok(())
}
