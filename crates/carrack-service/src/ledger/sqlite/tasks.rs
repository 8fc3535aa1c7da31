//! Tasks in SQLite: loaded, changed by the rules of every ledger, and stored.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, params_from_iter};

use super::{Done, audit, count, document, events, health, identity, integer, limit, tally, visits};
use crate::clock::Moment;
use crate::ledger::tally::{Before, Tally};
use crate::ledger::{
    LedgerError, NewEvent, Page, Retention, Submission, Submitted, TaskChange, TaskFilter, TaskGuard, TaskWindow, rules,
};
use crate::model::{NewTask, Task, TaskSort, TaskState};

pub const COLUMNS: &str =
    "id, owner, request, label, deadline, priority, state, pause_wanted, cancel_wanted, blocked, fence,
    futile_attempts, progress, failure, submitted, started, ended, version,
    estimate";

/// A task as it was read.
pub struct Found {
    pub task: Task,
    /// The document that it was submitted with; `task.request` has what changed since.
    submitted: String,
    /// Why some of it could not be read.
    pub unreadable: Option<String>,
}

pub fn submit(transaction: &Transaction<'_>, submission: &Submission, now: Moment) -> Done<Submitted> {
    let Submission { id, owner, submission_id, request, endpoints, .. } = submission;
    if let Some(submission_id) = submission_id {
        let sql = format!("SELECT {COLUMNS} FROM task WHERE owner = ? AND submission_id = ?");
        if let Some(found) = transaction.query_row(&sql, [owner, submission_id], whole).optional()? {
            let submitted = serde_json::from_str(&found.submitted).unwrap_or_default();
            return Ok(rules::repeated(found.task, &submitted, submission)?);
        }
    }
    let task = rules::accepted(submission, now);
    let added = transaction.execute(
        "INSERT INTO task (id, owner, submission_id, request, kind, label, label_folded, deadline, priority, timer,
            state, pause_wanted, cancel_wanted, blocked, fence, futile_attempts, progress, failure, submitted, started,
            ended, version, estimate)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, FALSE, FALSE, NULL, ?, 0, ?, NULL, ?, NULL, NULL, ?, ?)
         ON CONFLICT DO NOTHING",
        params![
            id,
            owner,
            submission_id,
            document(request)?,
            request.kind.name(),
            request.label,
            request.label.as_deref().map(rules::folded),
            request.deadline.map(|time| time.0),
            request.priority,
            request.timer,
            task.state.name(),
            integer(task.fence),
            document(&task.progress)?,
            now.0,
            integer(task.version),
            task.estimate.as_ref().map(document).transpose()?
        ],
    )?;
    if added == 0 {
        return Err(LedgerError::Taken.into());
    }
    let seq = transaction.last_insert_rowid();
    for endpoint in endpoints {
        let sql = "INSERT INTO task_endpoint (endpoint, task) VALUES (?, ?) ON CONFLICT DO NOTHING";
        transaction.execute(sql, params![endpoint, seq])?;
    }
    let event = rules::submitted_event(submission);
    tell(transaction, Before::ACCEPTED, &task, std::slice::from_ref(&event), now)?;
    Ok(Submitted { task, duplicate: false })
}

pub fn find(connection: &Connection, id: &str) -> Done<Found> {
    let sql = format!("SELECT {COLUMNS} FROM task WHERE id = ?");
    Ok(connection.query_row(&sql, [id], |row| read(row, false)).optional()?.ok_or(LedgerError::Missing)?)
}

pub fn list(connection: &Connection, filter: &TaskFilter, page: &Page) -> Done<Vec<Task>> {
    let mut query = Query::new(&format!("SELECT {COLUMNS} FROM task WHERE TRUE"));
    query.filter(filter)?;
    if let Some(after) = &page.after {
        let sql = "SELECT seq FROM task WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)";
        let seq: Option<i64> = connection.query_row(sql, params![after, filter.owner], |row| row.get(0)).optional()?;
        query.add(" AND seq < ?", Value::Integer(seq.ok_or(LedgerError::Missing)?));
    }
    query.add(" ORDER BY seq DESC LIMIT ?", Value::Integer(limit(page.limit)));
    let mut statement = connection.prepare(&query.sql)?;
    let rows = statement.query_map(params_from_iter(query.values), row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub fn window(connection: &Connection, filter: &TaskFilter, window: &TaskWindow) -> Done<(Vec<Task>, u64)> {
    let mut counted = Query::new("SELECT count(*) FROM task WHERE TRUE");
    counted.filter(filter)?;
    let total = connection.query_row(&counted.sql, params_from_iter(counted.values), |row| row.get(0)).map(count)?;
    let number = |of: &str| format!("CASE WHEN json_valid(progress) THEN json_extract(progress, '$.{of}') ELSE 0 END");
    let by = match window.sort {
        TaskSort::Created => "seq".to_owned(),
        TaskSort::State => {
            let states = TaskState::ALL.iter().enumerate();
            let order: String = states.map(|(place, state)| format!(" WHEN '{}' THEN {place}", state.name())).collect();
            format!("CASE state{order} END")
        }
        TaskSort::Bytes => number("bytes_moved"),
        TaskSort::Rate => number("rates.all"),
        TaskSort::Source => first("source"),
        TaskSort::Destination => first("destination"),
        TaskSort::Ended => "ended".to_owned(),
    };
    let way = if window.descending { "DESC" } else { "ASC" };
    let mut query = Query::new(&format!("SELECT {COLUMNS} FROM task WHERE TRUE"));
    query.filter(filter)?;
    query.add(&format!(" ORDER BY {by} {way}, seq DESC LIMIT ?"), Value::Integer(limit(window.limit)));
    query.add(" OFFSET ?", Value::Integer(integer(window.offset)));
    let mut statement = connection.prepare(&query.sql)?;
    let rows = statement.query_map(params_from_iter(query.values), row)?;
    Ok((rows.collect::<Result<_, _>>()?, total))
}

/// An end of the first pair of a task; empty: it has none.
fn first(end: &str) -> String {
    format!("CASE WHEN json_valid(request) THEN coalesce(json_extract(request, '$.pairs[0].{end}'), '') ELSE '' END")
}

/// Reads a task of a list.
pub fn row(row: &Row<'_>) -> rusqlite::Result<Task> {
    read(row, false).map(|found| found.task)
}

/// A query that grows by conditions.
struct Query {
    sql: String,
    values: Vec<Value>,
}

impl Query {
    fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), values: Vec::new() }
    }

    /// Adds the conditions of a filter.
    fn filter(&mut self, filter: &TaskFilter) -> Done<()> {
        let text = |text: &String| Value::Text(text.clone());
        if let Some(owner) = &filter.owner {
            self.add(" AND owner = ?", text(owner));
        }
        for (index, state) in filter.states.iter().enumerate() {
            self.add(if index == 0 { " AND state IN (?" } else { ", ?" }, Value::Text(state.name().to_owned()));
        }
        if !filter.states.is_empty() {
            self.sql.push(')');
        }
        if let Some(label) = &filter.label {
            self.add(" AND instr(label_folded, ?) > 0", Value::Text(rules::folded(label)));
        }
        if let Some(endpoint) = &filter.endpoint {
            self.add(" AND seq IN (SELECT task FROM task_endpoint WHERE endpoint = ?)", text(endpoint));
        }
        for (of, name) in [("source", &filter.source), ("destination", &filter.destination)] {
            if let Some(name) = name {
                let begin = format!("@{name}:");
                self.add(&format!(" AND substr({}, 1, ?)", first(of)), Value::Integer(integer(begin.len() as u64)));
                self.add(" = ?", Value::Text(begin));
            }
        }
        if let Some(since) = filter.since {
            self.add(" AND submitted >= ?", Value::Integer(since.0));
        }
        if let Some(before) = filter.before {
            self.add(" AND submitted < ?", Value::Integer(before.0));
        }
        if let Some(timer) = &filter.timer {
            self.add(" AND timer = ?", text(timer));
        }
        if let Some(cause) = &filter.cause {
            let is = |column: &str, of: &str| {
                format!("CASE WHEN json_valid({column}) THEN json_extract({column}, '$.{of}') = ? ELSE FALSE END")
            };
            self.add(&format!(" AND ({}", is("failure", "code")), text(cause));
            self.add(&format!(" OR {})", is("blocked", "cause")), text(cause));
        }
        filter.text.as_ref().map_or(Ok(()), |text| self.mentions(text))
    }

    /// Whose label, identifier or path contains a text. The document as a whole is looked through first: most have it
    /// nowhere.
    fn mentions(&mut self, text: &str) -> Done<()> {
        let lower = text.to_ascii_lowercase();
        let quoted = document(&lower)?;
        self.add(" AND (instr(label_folded, ?) > 0", Value::Text(rules::folded(text)));
        self.add(" OR instr(id, ?) > 0", Value::Text(lower.clone()));
        let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
        self.add(" OR CASE WHEN instr(lower(request), ?) > 0 AND json_valid(request) THEN", Value::Text(inner));
        let ends = ["source", "destination"].map(|end| format!("lower(coalesce(json_extract(value, '$.{end}'), ''))"));
        let pairs = "SELECT 1 FROM json_each(request, '$.pairs')";
        self.add(&format!(" EXISTS ({pairs} WHERE instr({}, ?) > 0", ends[0]), Value::Text(lower.clone()));
        self.add(&format!(" OR instr({}, ?) > 0) ELSE FALSE END)", ends[1]), Value::Text(lower));
        Ok(())
    }

    fn add(&mut self, condition: &str, value: Value) {
        self.sql.push_str(condition);
        self.values.push(value);
    }
}

pub fn count_by_state(connection: &Connection) -> Done<Vec<(String, TaskState, u64)>> {
    let mut statement = connection.prepare("SELECT owner, state, count(*) FROM task GROUP BY owner, state")?;
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get::<_, String>(1)?, count(row.get(2)?))))?;
    let counted = |row: rusqlite::Result<(String, String, u64)>| -> Done<_> {
        let (owner, state, count) = row?;
        // Nobody is told of failed tasks where nobody knows what became of them.
        let state = TaskState::parse(&state)
            .map_err(|_| LedgerError::Broken(format!("tasks of {owner} have a state that is none: {state:?}")))?;
        Ok((owner, state, count))
    };
    rows.map(counted).collect()
}

/// Tasks that have not ended, with their endpoints; and those that cannot be read, with why.
type Open = (Vec<(Task, Vec<String>)>, Vec<(String, String)>);

pub fn open(connection: &Connection) -> Done<Open> {
    let sql = format!(
        "SELECT {COLUMNS}, (SELECT json_group_array(endpoint ORDER BY endpoint) FROM task_endpoint WHERE task = seq)
         FROM task WHERE ended IS NULL ORDER BY seq"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map((), |row| Ok((read(row, false)?, row.get::<_, String>(19)?)))?;
    let (mut open, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        let (found, endpoints) = row?;
        match (found.unreadable, serde_json::from_str(&endpoints)) {
            (None, Ok(endpoints)) => open.push((found.task, endpoints)),
            (None, Err(error)) => unreadable.push((found.task.id, format!("endpoints: {error}"))),
            (Some(why), _) => unreadable.push((found.task.id, why)),
        }
    }
    Ok((open, unreadable))
}

/// What cannot be read of tasks, with their identifiers.
pub fn unreadable(connection: &Connection) -> Done<Vec<String>> {
    let mut statement = connection.prepare(&format!("SELECT {COLUMNS} FROM task ORDER BY seq"))?;
    let rows = statement.query_map((), |row| {
        let Found { task, unreadable, .. } = read(row, false)?;
        Ok(unreadable.map(|why| format!("task {} cannot be read in the ledger: {why}", task.id)))
    })?;
    Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
}

/// Ends a task that cannot be read, so that nothing tries it for ever.
pub fn fail_unreadable(transaction: &Transaction<'_>, id: &str, why: &str) -> Done<()> {
    let mut task = find(transaction, id)?.task;
    if task.state.has_ended() && task.ended.is_some() {
        return Ok(());
    }
    let now = task.submitted.max(task.started.unwrap_or_default());
    let before = Before::of(&task);
    rules::fail_unreadable(&mut task, why, now);
    let event = rules::unreadable_event(&task, why);
    put(transaction, before, &task, &[event], now)
}

pub fn claim(transaction: &Transaction<'_>, id: &str, now: Moment, event: &NewEvent) -> Done<Task> {
    let found = find(transaction, id)?;
    if let Some(why) = found.unreadable {
        return Err(LedgerError::Conflict(format!("task {id} cannot be read in the ledger: {why}")).into());
    }
    let mut task = found.task;
    let before = Before::of(&task);
    rules::claim(&mut task, now)?;
    put(transaction, before, &task, std::slice::from_ref(event), now)?;
    Ok(task)
}

pub fn change(
    transaction: &Transaction<'_>,
    id: &str,
    guard: &TaskGuard,
    change: &TaskChange,
    events: &[NewEvent],
    now: Moment,
) -> Done<Task> {
    let mut task = find(transaction, id)?.task;
    let before = Before::of(&task);
    rules::change(&mut task, guard, change, now)?;
    put(transaction, before, &task, events, now)?;
    visits::add(transaction, id, &change.visits, now)?;
    Ok(task)
}

pub fn reopen(
    transaction: &Transaction<'_>,
    id: &str,
    now: Moment,
    deadline: Option<Option<Moment>>,
    event: &NewEvent,
) -> Done<Task> {
    let mut task = find(transaction, id)?.task;
    let before = Before::of(&task);
    rules::reopen(&mut task, now, deadline)?;
    put(transaction, before, &task, std::slice::from_ref(event), now)?;
    Ok(task)
}

/// Forgets tasks that ended long ago, with their events, and old events.
pub fn forget(transaction: &Transaction<'_>, retention: &Retention) -> Done<Vec<String>> {
    let ended = "SELECT seq, id FROM task WHERE ended < ?
        AND id NOT IN (SELECT last_task FROM timer WHERE last_task IS NOT NULL) ORDER BY ended, seq LIMIT ?";
    let mut statement = transaction.prepare(ended)?;
    let rows = statement.query_map(params![retention.tasks_ended_before.0, limit(retention.limit)], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let rows: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
    for (seq, id) in &rows {
        transaction.execute("DELETE FROM event WHERE task = ?", [id])?;
        transaction.execute("DELETE FROM task WHERE seq = ?", [seq])?;
        transaction.execute("INSERT INTO forgotten (task) VALUES (?) ON CONFLICT DO NOTHING", [id])?;
    }
    transaction.execute(
        "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE time < ? ORDER BY time, id LIMIT ?)",
        params![retention.events_before.0, limit(retention.limit)],
    )?;
    tally::forget(transaction, retention.events_before)?;
    audit::forget(transaction, retention)?;
    Ok(rows.into_iter().map(|(_, id)| id).collect())
}

/// Tasks that were forgotten, and whose directories may still be there.
pub fn forgotten(connection: &Connection) -> Done<Vec<String>> {
    let mut statement = connection.prepare("SELECT task FROM forgotten ORDER BY task")?;
    let rows = statement.query_map((), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// They are not.
pub fn directories_removed(transaction: &Transaction<'_>, tasks: &[String]) -> Done<()> {
    for task in tasks {
        transaction.execute("DELETE FROM forgotten WHERE task = ?", [task])?;
    }
    Ok(())
}

/// Writes a task that has changed, with the events of the change, and counts it.
pub fn put(transaction: &Transaction<'_>, before: Before, task: &Task, events: &[NewEvent], now: Moment) -> Done<()> {
    store(transaction, task)?;
    tell(transaction, before, task, events, now)
}

/// Writes the events of a change, counts it, and notes what it shows of endpoints.
fn tell(transaction: &Transaction<'_>, before: Before, task: &Task, events: &[NewEvent], now: Moment) -> Done<()> {
    events::insert(transaction, events, now)?;
    for (endpoint, sign) in crate::ledger::health::of_change(&before, task, events, now) {
        health::add(transaction, &endpoint, &sign, now)?;
    }
    if let Some((token, more)) = before.used_since(task) {
        identity::add_use(transaction, token, &more)?;
    }
    Tally::of_change(before, task, events, now).map_or(Ok(()), |tally| tally::add(transaction, &tally))
}

/// Writes what may change about a task.
fn store(transaction: &Transaction<'_>, task: &Task) -> Done<()> {
    let blocked = task.blocked.as_ref().map(document).transpose()?;
    let failure = task.failure.as_ref().map(document).transpose()?;
    transaction.execute(
        "UPDATE task SET label = ?, label_folded = ?, deadline = ?, priority = ?, state = ?, pause_wanted = ?,
            cancel_wanted = ?, blocked = ?, fence = ?, futile_attempts = ?, progress = ?, failure = ?, started = ?,
            ended = ?, version = ?, estimate = ? WHERE id = ?",
        params![
            task.request.label,
            task.request.label.as_deref().map(rules::folded),
            task.request.deadline.map(|time| time.0),
            task.request.priority,
            task.state.name(),
            task.pause_wanted,
            task.cancel_wanted,
            blocked,
            integer(task.fence),
            task.futile_attempts,
            document(&task.progress)?,
            failure,
            task.started.map(|time| time.0),
            task.ended.map(|time| time.0),
            integer(task.version),
            task.estimate.as_ref().map(document).transpose()?,
            task.id
        ],
    )?;
    Ok(())
}

/// A request whose options cannot be read: what else it says is shown all the same. An earlier version took options
/// that mean nothing.
fn without_options(submitted: &str) -> NewTask {
    let mut document: serde_json::Value = serde_json::from_str(submitted).unwrap_or_default();
    if let Some(fields) = document.as_object_mut() {
        fields.remove("options");
    }
    serde_json::from_value(document).unwrap_or_default()
}

/// Reads a task with the document that it was submitted with.
fn whole(row: &Row<'_>) -> rusqlite::Result<Found> {
    read(row, true)
}

/// Reads a task. What cannot be read of it is left out and told: one row never hides the others.
fn read(row: &Row<'_>, with_submitted: bool) -> rusqlite::Result<Found> {
    let text = |column: usize| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null()?);
    let mut unreadable = None;
    let submitted = text(2)?.unwrap_or_default();
    let mut request: NewTask = serde_json::from_str(submitted).unwrap_or_else(|error| {
        unreadable = Some(format!("request: {error}"));
        without_options(submitted)
    });
    let moment = |time: Option<i64>| time.map(Moment);
    request.label = row.get(3)?;
    request.deadline = moment(row.get(4)?);
    request.priority = row.get(5)?;
    let state = TaskState::parse(text(6)?.unwrap_or_default()).unwrap_or_else(|error| {
        unreadable = Some(format!("state: {error}"));
        TaskState::Failed
    });
    let blocked = text(9)?.map(serde_json::from_str).transpose().unwrap_or_else(|error| {
        unreadable = Some(format!("what it waits for: {error}"));
        None
    });
    let mut task = Task {
        id: row.get(0)?,
        owner: row.get(1)?,
        request,
        state,
        pause_wanted: row.get(7)?,
        cancel_wanted: row.get(8)?,
        blocked,
        position: None,
        expected_start: None,
        in_flight: Vec::new(),
        fence: count(row.get(10)?),
        futile_attempts: row.get(11)?,
        // The next sample of the worker replaces it.
        progress: text(12)?.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        // An estimate that cannot be read is as good as none.
        estimate: text(18)?.and_then(|text| serde_json::from_str(text).ok()),
        failure: text(13)?.and_then(|text| serde_json::from_str(text).ok()),
        submitted: Moment(row.get(14)?),
        started: moment(row.get(15)?),
        ended: moment(row.get(16)?),
        version: count(row.get(17)?),
    };
    if let Some(why) = &unreadable {
        task.failure.get_or_insert_with(|| rules::unreadable(why));
    }
    let submitted = if with_submitted { submitted.to_owned() } else { String::new() };
    Ok(Found { task, submitted, unreadable })
}
