//! What the ledger keeps and what it is asked, row by row.

use std::collections::BTreeSet;
use std::fmt;

use carrack_core::location::Location;

use crate::clock::Moment;
use crate::model::{
    Blocked, EndVisit, Endpoint, Estimate, EventKind, Fence, NewTask, Progress, Role, Task, TaskFailure, TaskSort,
    TaskState, User,
};

/// Why the ledger did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerError {
    /// There is no such row.
    Missing,
    /// The row has changed meanwhile, or is in a state that does not allow it: in words.
    Conflict(String),
    /// The name or the identifier is taken by something else.
    Taken,
    /// What is written is not allowed by an attempt or a service with an older number.
    Fenced,
    /// Storage is full: nothing new is taken, what runs goes on.
    Full(String),
    /// Another program holds storage at present: the same may be done a little later.
    Held(String),
    /// Storage does not do what it should: in words, with the path.
    Broken(String),
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it does not exist"),
            Self::Taken => f.write_str("the name is taken"),
            Self::Fenced => f.write_str("a later attempt has taken over"),
            Self::Conflict(why) | Self::Full(why) | Self::Held(why) | Self::Broken(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LedgerError {}

/// What the ledger answers.
pub type Answer<T> = Result<T, LedgerError>;

/// A task to be accepted.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The task's identifier, made by the caller.
    pub id: String,
    /// Whoever submits it.
    pub owner: String,
    /// By what a repetition is known, of one owner; the same one with another request is a conflict.
    pub submission_id: Option<String>,
    /// What is asked for.
    pub request: NewTask,
    /// Names of the endpoints that it uses, each once.
    pub endpoints: Vec<String>,
    /// What whoever submits it was told to expect.
    pub estimate: Option<Estimate>,
}

/// How a submission was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Submitted {
    /// The task.
    pub task: Task,
    /// It was there already.
    pub duplicate: bool,
}

/// Which tasks are meant. What is left out does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Of this owner.
    pub owner: Option<String>,
    /// In one of these states.
    pub states: Vec<TaskState>,
    /// Whose label contains this, in whatever case.
    pub label: Option<String>,
    /// That uses this endpoint.
    pub endpoint: Option<String>,
    /// Whose first pair comes from this endpoint.
    pub source: Option<String>,
    /// Whose first pair goes to this endpoint.
    pub destination: Option<String>,
    /// Submitted at this moment or later.
    pub since: Option<Moment>,
    /// Submitted before this moment.
    pub before: Option<Moment>,
    /// Of this timer.
    pub timer: Option<String>,
    /// Whose label, identifier or a path of which contains this, in whatever case.
    pub text: Option<String>,
    /// That failed with this error code, or wait for this cause, as the ledger keeps it.
    pub cause: Option<String>,
}

/// Which rows of a sorted list of tasks are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskWindow {
    /// By what they are sorted.
    pub sort: TaskSort,
    /// The greatest first.
    pub descending: bool,
    /// The place of the first row, from 0.
    pub offset: u64,
    /// At most so many rows.
    pub limit: usize,
}

/// Part of a list: the row that came last first, whatever the clock did since; endpoints by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Go on behind the row with this identifier; [`LedgerError::Missing`] where there is none of the owner who is
    /// asked for, but for endpoints.
    pub after: Option<String>,
    /// At most so many rows.
    pub limit: usize,
}

/// What changes about a task; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskChange {
    /// Where it stands from now on. Leaving QUEUED clears what blocked it; an end sets `ended`.
    pub state: Option<TaskState>,
    /// Whether it is to wait.
    pub pause_wanted: Option<bool>,
    /// Whether it is to end.
    pub cancel_wanted: Option<bool>,
    /// Why it waits; `Some(None)`: nothing blocks it.
    pub blocked: Option<Option<Blocked>>,
    /// What it has done.
    pub progress: Option<Progress>,
    /// What is expected of it.
    pub estimate: Option<Estimate>,
    /// Why it failed; `Some(None)`: it did not.
    pub failure: Option<Option<TaskFailure>>,
    /// Attempts in a row that got nowhere.
    pub futile_attempts: Option<u32>,
    /// What its owner calls it; `Some(None)`: nothing.
    pub label: Option<Option<String>>,
    /// When it fails; `Some(None)`: never.
    pub deadline: Option<Option<Moment>>,
    /// 0 to 9.
    pub priority: Option<u8>,
    /// Where an attempt was at work, and what failed there: taken in with what earlier attempts have told.
    pub visits: Vec<EndVisit>,
}

/// Under which condition a task is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGuard {
    /// Only in one of these states; none: in any.
    pub states: Vec<TaskState>,
    /// Only with this entity tag.
    pub version: Option<u64>,
    /// Only by the attempt with this number: [`LedgerError::Fenced`] for an older one.
    pub fence: Option<Fence>,
}

/// Where a task was at work.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskVisits {
    /// Its identifier.
    pub task: String,
    /// When its last attempt that told of any ended.
    pub time: Moment,
    /// The ends of its pairs.
    pub visits: Vec<EndVisit>,
}

/// How much is read of where tasks were at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitsMost {
    /// Tasks.
    pub tasks: usize,
    /// Bytes of the documents of what they have visited.
    pub bytes: usize,
}

/// Where tasks were at work.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitedTasks {
    /// The latest first.
    pub tasks: Vec<TaskVisits>,
    /// Whether these are all; of more than may be read, the latest are.
    pub complete: bool,
}

impl VisitedTasks {
    /// Takes tasks, the latest first and each with the bytes of its document, as far as they may be read.
    ///
    /// # Errors
    /// Those of the tasks.
    pub fn within<E>(most: VisitsMost, tasks: impl Iterator<Item = Result<(usize, TaskVisits), E>>) -> Result<Self, E> {
        let (mut found, mut left) = (Self { tasks: Vec::new(), complete: true }, most.bytes);
        for task in tasks {
            let (bytes, task) = task?;
            if found.tasks.len() == most.tasks || bytes > left {
                found.complete = false;
                break;
            }
            left -= bytes;
            found.tasks.push(task);
        }
        Ok(found)
    }
}

/// An event to be written along with a change.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// What happened.
    pub kind: EventKind,
    /// Whose.
    pub owner: String,
    /// The task concerned.
    pub task: Option<String>,
    /// Endpoint, timer or other object concerned.
    pub subject: Option<String>,
    /// In words, one line.
    pub text: String,
    /// Numbers and reasons.
    pub detail: serde_json::Value,
}

/// Which events are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Later than the one with this number.
    pub since: u64,
    /// Of this owner.
    pub owner: Option<String>,
    /// Of this task.
    pub task: Option<String>,
}

/// An endpoint with what no document shows.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointRow {
    /// What everybody may see.
    pub endpoint: Endpoint,
    /// Its node's token, sealed by the service's key.
    pub sealed_token: Option<Vec<u8>>,
}

/// A user with what no document shows.
#[derive(Clone, PartialEq, Eq)]
pub struct UserRow {
    /// What everybody may see.
    pub user: User,
    /// The password's hash, in PHC's form; none: no password lets anybody in.
    pub password: Option<String>,
}

/// A change of a user. What is left out stays as it is.
#[derive(Clone, Default)]
pub struct UserChange {
    /// Another role.
    pub role: Option<Role>,
    /// Another account of the host, or none.
    pub account: Option<Option<u32>>,
    /// Whether they are let in.
    pub enabled: Option<bool>,
    /// Another password's hash, or none.
    pub password: Option<Option<String>>,
    /// Only where the password's hash is still this one.
    pub password_was: Option<Option<String>>,
}

/// What is kept for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Tasks that ended before this go, with their events.
    pub tasks_ended_before: Moment,
    /// Events, lines of the audit and figures before this go.
    pub events_before: Moment,
    /// At most so many rows go at a time.
    pub limit: usize,
}

/// The answer to [`super::Ledger::count_use`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseTaken {
    /// It was taken.
    Taken,
    /// This ceiling is in the way, in words; nothing was taken.
    Over(String),
    /// This task of the token is under way; nothing was taken.
    Running(String),
}

/// The endpoint of a location of a task, `NAME` of `@NAME:/path`; none for any other location.
pub fn endpoint_of(location: &str) -> Option<String> {
    match Location::parse_document(location) {
        Ok(Location::Endpoint { name, .. }) => Some(name),
        _ => None,
    }
}

/// The endpoints that a request names, each once, by name.
pub fn endpoints_of(request: &NewTask) -> Vec<String> {
    let locations = request.pairs.iter().flat_map(|pair| [Some(&pair.source), pair.destination.as_ref()]).flatten();
    let names: BTreeSet<String> = locations.filter_map(|location| endpoint_of(location)).collect();
    names.into_iter().collect()
}
