//! Figures over time in SQLite: told.

use std::collections::BTreeMap;

use rusqlite::{Connection, named_params};

use super::tasks::{self, COLUMNS};
use super::{Done, count, integer, limit};
use crate::ledger::tally::{
    OverviewQuery, OverviewRows, PAIRS_MOST, Queue, SLOW_BYTES_LEAST, STUCK_AFTER, STUCK_ATTEMPTS, Shift, Sums,
    TASKS_MOST, failures, minute_of, sorted,
};
use crate::model::{Task, TaskState};

/// Figures over a time.
pub fn overview(connection: &Connection, query: &OverviewQuery) -> Done<OverviewRows> {
    let (waiting, running) = queue(connection, query)?;
    Ok(OverviewRows {
        moved: moved(connection, query)?,
        waiting,
        running,
        rate: rate(connection, query)?,
        sums: sums(connection, query)?,
        pairs: pairs(connection, query)?,
        failures: causes(connection, query)?,
        slowest: slowest(connection, query)?,
        stuck: stuck(connection, query)?,
    })
}

/// The place of a step; one that there is not, where it is negative.
fn place(step: i64) -> usize {
    usize::try_from(step).unwrap_or(usize::MAX)
}

const THEN: &str = "minute >= :from AND minute < :to AND (:owner IS NULL OR owner = :owner)";

fn moved(connection: &Connection, query: &OverviewQuery) -> Done<Vec<u64>> {
    let sql = format!("SELECT (minute - :from) / :step AS step, sum(bytes) FROM tally WHERE {THEN} GROUP BY step");
    let mut statement = connection.prepare(&sql)?;
    let values = named_params! {
        ":from": query.from.0, ":to": query.to().0, ":owner": query.curves_of, ":step": query.step()
    };
    let mut rows = statement.query(values)?;
    let mut moved = vec![0; query.steps];
    while let Some(row) = rows.next()? {
        if let Some(bytes) = moved.get_mut(place(row.get(0)?)) {
            *bytes = count(row.get(1)?);
        }
    }
    Ok(moved)
}

/// Over all pairs.
fn sums(connection: &Connection, query: &OverviewQuery) -> Done<Sums> {
    let sql = format!(
        "SELECT total(bytes), total(busy), total(succeeded), total(partial), total(failed), total(cancelled)
         FROM tally WHERE {THEN}"
    );
    let values = named_params! { ":from": query.from.0, ":to": query.to().0, ":owner": query.curves_of };
    let sums = connection.query_row(&sql, values, |row| {
        // A float becomes the nearest integer there is.
        let at = |column: usize| row.get::<_, f64>(column).map(|sum| sum as u64);
        let (bytes, busy, succeeded, partial, failed, cancelled) = (at(0)?, at(1)?, at(2)?, at(3)?, at(4)?, at(5)?);
        Ok(Sums { bytes, busy, succeeded, partial, failed, cancelled })
    });
    Ok(sums?)
}

fn rate(connection: &Connection, query: &OverviewQuery) -> Done<f64> {
    let sql = format!(
        "SELECT total({}) FROM task WHERE ended IS NULL AND state = 'ACTIVE' AND (?1 IS NULL OR owner = ?1)",
        number("rates.now")
    );
    Ok(connection.query_row(&sql, [&query.curves_of], |row| row.get(0))?)
}

fn pairs(connection: &Connection, query: &OverviewQuery) -> Done<Vec<crate::model::PairFigures>> {
    let sql = format!(
        "SELECT source, destination, sum(bytes) AS bytes, sum(busy), sum(succeeded), sum(partial), sum(failed),
            sum(cancelled) FROM tally WHERE {THEN} GROUP BY source, destination
         ORDER BY bytes DESC, source, destination LIMIT :most"
    );
    let mut statement = connection.prepare(&sql)?;
    let values = named_params! {
        ":from": query.from.0, ":to": query.to().0, ":owner": query.rows_of, ":most": limit(PAIRS_MOST)
    };
    let rows = statement.query_map(values, |row| {
        let at = |column: usize| row.get(column).map(count);
        let (bytes, busy, succeeded, partial, failed, cancelled) = (at(2)?, at(3)?, at(4)?, at(5)?, at(6)?, at(7)?);
        let sums = Sums { bytes, busy, succeeded, partial, failed, cancelled };
        Ok(sums.figures(row.get(0)?, row.get(1)?))
    })?;
    Ok(sorted(rows.collect::<Result<_, _>>()?))
}

fn causes(connection: &Connection, query: &OverviewQuery) -> Done<Vec<crate::model::FailureFigures>> {
    let sql = format!(
        "SELECT code, side, (minute - :from) / :step AS step, sum(count) FROM tally_failure WHERE {THEN}
         GROUP BY code, side, step"
    );
    let mut statement = connection.prepare(&sql)?;
    let values = named_params! {
        ":from": query.from.0, ":to": query.to().0, ":owner": query.curves_of, ":step": query.step()
    };
    let mut rows = statement.query(values)?;
    let mut causes: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let steps = causes.entry((row.get(0)?, row.get(1)?)).or_insert_with(|| vec![0; query.steps]);
        if let Some(step) = steps.get_mut(place(row.get(2)?)) {
            *step = count(row.get(3)?);
        }
    }
    Ok(failures(causes))
}

/// How many tasks waited and ran. What was written has happened, also where the clock was set back since.
fn queue(connection: &Connection, query: &OverviewQuery) -> Done<(Vec<u64>, Vec<u64>)> {
    let mut at_present = Shift::default();
    let sql = "SELECT state, count(*) FROM task WHERE ended IS NULL AND (?1 IS NULL OR owner = ?1) GROUP BY state";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([&query.curves_of])?;
    while let Some(row) = rows.next()? {
        if let Ok(state) = TaskState::parse(&row.get::<_, String>(0)?) {
            at_present.add(Shift::of(state), row.get(1)?);
        }
    }
    let mut queue = Queue::new(query, at_present);
    let sql = "SELECT (min(minute, :now) - :from) / :step AS step, sum(waiting), sum(running) FROM tally_queue
         WHERE minute >= :from AND (:owner IS NULL OR owner = :owner) GROUP BY step";
    let mut statement = connection.prepare(sql)?;
    let values = named_params! {
        ":from": query.from.0, ":now": minute_of(query.now).0, ":owner": query.curves_of, ":step": query.step()
    };
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        queue.add(place(row.get(0)?), Shift { waiting: row.get(1)?, running: row.get(2)? });
    }
    Ok(queue.counts())
}

/// A number of what a task has done; one that cannot be read is zero.
fn number(of: &str) -> String {
    format!("(CASE WHEN json_valid(progress) THEN json_extract(progress, '$.{of}') ELSE 0 END)")
}

fn slowest(connection: &Connection, query: &OverviewQuery) -> Done<Vec<Task>> {
    let (bytes, rate) = (number("bytes_moved"), number("rates.all"));
    let sql = format!(
        "SELECT {COLUMNS} FROM task
         WHERE ((ended IS NULL AND state = 'ACTIVE') OR (ended IS NOT NULL AND ended >= :from AND ended < :to))
            AND (:owner IS NULL OR owner = :owner) AND {bytes} >= :least AND {rate} > 0
         ORDER BY {rate}, seq LIMIT :most"
    );
    let mut statement = connection.prepare(&sql)?;
    let values = named_params! {
        ":from": query.from.0, ":to": query.to().0, ":owner": query.rows_of, ":least": integer(SLOW_BYTES_LEAST),
        ":most": limit(TASKS_MOST)
    };
    let rows = statement.query_map(values, tasks::row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn stuck(connection: &Connection, query: &OverviewQuery) -> Done<Vec<Task>> {
    let rate = number("rates.now");
    let sql = format!(
        "SELECT {COLUMNS} FROM task
         WHERE ended IS NULL AND (:owner IS NULL OR owner = :owner)
            AND ((state = 'ACTIVE' AND started <= :began AND {rate} <= 0)
                OR (state = 'QUEUED' AND futile_attempts >= :attempts))
         ORDER BY seq LIMIT :most"
    );
    let mut statement = connection.prepare(&sql)?;
    let values = named_params! {
        ":owner": query.rows_of, ":began": query.now.0.saturating_sub(STUCK_AFTER), ":attempts": STUCK_ATTEMPTS,
        ":most": limit(TASKS_MOST)
    };
    let rows = statement.query_map(values, tasks::row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}
