//! The ledger: what the service must never lose. Tasks, endpoints, users, tokens, timers and events; items of tasks are
//! in their journals. One trait, so that another database can stand behind it, and `conformance` is the suite that it
//! passes.
//!
//! Each method is one transaction: what it says is durable once it returns, and nothing of it is there if it fails.
//! Methods block; async code calls them where blocking is allowed.

pub mod audit;
#[cfg(test)]
mod conformance;
pub mod health;
pub mod memory;
pub mod rules;
pub mod sqlite;
pub mod tally;

use std::collections::BTreeMap;
use std::fmt;

use carrack_core::grant::GrantId;

use self::audit::{AuditFilter, NewAuditLine};
use self::health::HealthRow;
use self::tally::{OverviewQuery, OverviewRows};
use crate::clock::Moment;
use crate::model::{
    AuditLine, Blocked, Ceilings, Endpoint, EndpointTest, Estimate, Event, EventKind, Fence, NewTask, Progress, Task,
    TaskFailure, TaskSort, TaskState, Timer, TokenRow, TokenUse, User,
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
            Self::Missing => f.write_str("there is no such thing"),
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

/// The answer to [`Ledger::count_use`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseTaken {
    /// It was taken.
    Taken,
    /// This ceiling is in the way, in words; nothing was taken.
    Over(String),
    /// This task of the token is under way; nothing was taken.
    Running(String),
}

/// What the service must never lose.
pub trait Ledger: Send + Sync + 'static {
    /// Accepts a task, QUEUED, with its event. The same submission again is answered with the task that it made.
    ///
    /// # Errors
    /// [`LedgerError::Conflict`] where the submission's id came with another request before.
    fn submit(&self, submission: &Submission, now: Moment) -> Answer<Submitted>;

    /// One task.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn task(&self, id: &str) -> Answer<Task>;

    /// Tasks, the latest first.
    fn tasks(&self, filter: &TaskFilter, page: &Page) -> Answer<Vec<Task>>;

    /// Some rows of a sorted list of tasks, and how many there are in all.
    fn task_window(&self, filter: &TaskFilter, window: &TaskWindow) -> Answer<(Vec<Task>, u64)>;

    /// What tasks have moved over a time, how they ended, which do not get on.
    fn overview(&self, query: &OverviewQuery) -> Answer<OverviewRows>;

    /// Keeps lines of the audit. They may be lost where power fails.
    fn note(&self, lines: &[NewAuditLine]) -> Answer<()>;

    /// Lines of the audit, the latest first.
    fn audit(&self, filter: &AuditFilter, limit: usize) -> Answer<Vec<AuditLine>>;

    /// How many tasks there are of each state, by owner.
    fn count_tasks(&self) -> Answer<Vec<(String, TaskState, u64)>>;

    /// All tasks that have not ended, with the names of their endpoints, the oldest first: what is scheduled.
    fn open_tasks(&self) -> Answer<Vec<(Task, Vec<String>)>>;

    /// Begins an attempt of a QUEUED task: its fence grows by one, its state becomes ACTIVE. Two callers never both
    /// succeed.
    ///
    /// # Errors
    /// [`LedgerError::Conflict`] where it is not QUEUED any more, or where a pause or its end is wanted.
    fn claim(&self, id: &str, now: Moment, event: &NewEvent) -> Answer<Task>;

    /// Changes a task, and writes the events with it. States that have ended never change, but by
    /// [`Ledger::reopen`]; what its owner calls it may. Progress that comes alone may be lost where power fails: the
    /// task's journal has it.
    ///
    /// # Errors
    /// [`LedgerError::Conflict`] or [`LedgerError::Fenced`] where the guard does not hold.
    fn change_task(
        &self,
        id: &str,
        guard: &TaskGuard,
        change: &TaskChange,
        events: &[NewEvent],
        now: Moment,
    ) -> Answer<Task>;

    /// Has a PARTIAL, FAILED or CANCELLED task wait for another attempt: what failed is tried again. With `deadline` it
    /// has another one, or none.
    ///
    /// # Errors
    /// [`LedgerError::Conflict`] in any other state, and where the deadline has passed.
    fn reopen(&self, id: &str, now: Moment, deadline: Option<Option<Moment>>, event: &NewEvent) -> Answer<Task>;

    /// Writes events that belong to no change.
    fn record(&self, events: &[NewEvent], now: Moment) -> Answer<()>;

    /// Events in order, the earliest first.
    fn events(&self, filter: &EventFilter, limit: usize) -> Answer<Vec<Event>>;

    /// The number of the last event, and the oldest that is still kept.
    fn event_range(&self) -> Answer<(u64, u64)>;

    /// Adds an endpoint.
    ///
    /// # Errors
    /// [`LedgerError::Taken`].
    fn add_endpoint(&self, row: &EndpointRow, event: &NewEvent) -> Answer<()>;

    /// One endpoint, with its sealed token.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn endpoint(&self, name: &str) -> Answer<EndpointRow>;

    /// Endpoints by name.
    fn endpoints(&self, page: &Page) -> Answer<Vec<Endpoint>>;

    /// Replaces what is known of an endpoint whose version is `row.endpoint.version`, which grows by one.
    ///
    /// # Errors
    /// [`LedgerError::Missing`]; [`LedgerError::Conflict`] where the version is another, and where open tasks use it
    /// and its location is to be another.
    fn change_endpoint(&self, row: &EndpointRow, event: &NewEvent, now: Moment) -> Answer<Endpoint>;

    /// Removes an endpoint that no open task and no timer uses.
    ///
    /// # Errors
    /// [`LedgerError::Missing`]; [`LedgerError::Conflict`] that names what uses it.
    fn remove_endpoint(&self, name: &str, event: &NewEvent, now: Moment) -> Answer<()>;

    /// How endpoints do, by their names: one of them, or all; with the open tasks of an owner, or of all. What nobody
    /// has used is left out. Changes of tasks tell it, and tests; a new place or another token begins anew.
    fn health(&self, endpoint: Option<&str>, owner: Option<&str>) -> Answer<BTreeMap<String, HealthRow>>;

    /// Keeps what a test of an endpoint has found, in place of what the one before has.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn note_test(&self, endpoint: &str, test: &EndpointTest, now: Moment) -> Answer<()>;

    /// Adds a user.
    ///
    /// # Errors
    /// [`LedgerError::Taken`], also where the account is another user's.
    fn add_user(&self, row: &UserRow) -> Answer<()>;

    /// One user.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn user(&self, name: &str) -> Answer<UserRow>;

    /// The user who is this account of the host.
    fn user_of_account(&self, account: u32) -> Answer<Option<UserRow>>;

    /// All users by name.
    fn users(&self) -> Answer<Vec<User>>;

    /// Replaces what is known of a user. Where they are disabled, or their password or role changes, their
    /// sessions end.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn change_user(&self, row: &UserRow) -> Answer<()>;

    /// Keeps a token, by the SHA-256 of its secret.
    ///
    /// # Errors
    /// [`LedgerError::Missing`] where its user is.
    fn add_token(&self, row: &TokenRow, digest: &[u8; 32]) -> Answer<()>;

    /// The token with this identifier, its digest, and its user. Whether it has expired is the caller's to see.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn token(&self, id: &str) -> Answer<(TokenRow, [u8; 32], User)>;

    /// A user's tokens, the latest first.
    fn tokens(&self, user: &str) -> Answer<Vec<TokenRow>>;

    /// Notes that a token was shown.
    fn token_used(&self, id: &str, now: Moment) -> Answer<()>;

    /// What has been done by a token with ceilings so far: by its tasks, of which the ledger counts what they have
    /// done, and by what [`Ledger::count_use`] has taken.
    fn token_use(&self, id: &str) -> Answer<TokenUse>;

    /// Takes more by a token of this user, if all together stays within the ceilings. Of what has a ceiling nothing is
    /// taken while a task of the token is under way: that may take all that is left.
    fn count_use(&self, user: &str, id: &str, more: &TokenUse, most: &Ceilings) -> Answer<UseTaken>;

    /// Removes a token, and what is known of its use.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn remove_token(&self, id: &str) -> Answer<()>;

    /// Removes all sessions of a user; how many they were.
    fn remove_sessions(&self, user: &str) -> Answer<u64>;

    /// Keeps that grants with this number are not taken before `until`, by when the last of them has expired. What is
    /// over at `now` is forgotten.
    fn revoke_grants(&self, id: &GrantId, until: Moment, now: Moment) -> Answer<()>;

    /// Takes that back.
    fn restore_grants(&self, id: &GrantId) -> Answer<()>;

    /// Grants that are not taken at `now`, and until when.
    fn revoked_grants(&self, now: Moment) -> Answer<Vec<(GrantId, Moment)>>;

    /// Adds a timer.
    fn add_timer(&self, timer: &Timer, event: &NewEvent) -> Answer<()>;

    /// One timer.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn timer(&self, id: &str) -> Answer<Timer>;

    /// Timers, the latest first; of one owner or of all.
    fn timers(&self, owner: Option<&str>, page: &Page) -> Answer<Vec<Timer>>;

    /// Waiting timers that are due at `now` or before, the earliest first.
    fn due_timers(&self, now: Moment, limit: usize) -> Answer<Vec<Timer>>;

    /// Replaces a timer whose version is `timer.version`, which grows by one; with `submission`, its task is
    /// accepted in the same transaction, so that no run is lost and none comes twice.
    ///
    /// # Errors
    /// [`LedgerError::Conflict`] where the version is another.
    fn change_timer(
        &self,
        timer: &Timer,
        submission: Option<&Submission>,
        event: &NewEvent,
        now: Moment,
    ) -> Answer<Option<Submitted>>;

    /// Removes a timer. Its tasks stay.
    ///
    /// # Errors
    /// [`LedgerError::Missing`].
    fn remove_timer(&self, id: &str, event: &NewEvent, now: Moment) -> Answer<()>;

    /// Forgets what is old. The identifiers of the tasks that went, whose journals can go too.
    fn forget(&self, retention: &Retention) -> Answer<Vec<String>>;

    /// Whether anything can be written at present: asked before a health check answers.
    fn probe(&self) -> Answer<()>;
}

/// The endpoint of a location of a task, `NAME` of `@NAME:/path`; `None` for any other location.
pub fn endpoint_of(location: &str) -> Option<&str> {
    let (name, _) = location.strip_prefix('@')?.split_once(':')?;
    (!name.is_empty()).then_some(name)
}

/// The endpoints that a request names, each once, by name.
pub fn endpoints_of(request: &NewTask) -> Vec<String> {
    let locations = request.pairs.iter().flat_map(|pair| [Some(&pair.source), pair.destination.as_ref()]).flatten();
    let names: std::collections::BTreeSet<&str> = locations.filter_map(|location| endpoint_of(location)).collect();
    names.into_iter().map(str::to_owned).collect()
}
