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
#[cfg(test)]
pub mod memory;
mod rows;
pub mod rules;
pub mod sqlite;
pub mod tally;

use std::collections::BTreeMap;

use carrack_core::grant::GrantId;

use self::audit::{AuditFilter, NewAuditLine};
use self::health::HealthRow;
pub use self::rows::{
    Answer, EndpointRow, EventFilter, LedgerError, NewEvent, Page, Retention, Submission, Submitted, TaskChange,
    TaskFilter, TaskGuard, TaskVisits, TaskWindow, UseTaken, UserChange, UserRow, VisitedTasks, VisitsMost,
    endpoint_of, endpoints_of,
};
use self::tally::{OverviewQuery, OverviewRows};
use crate::clock::Moment;
use crate::model::{
    AuditLine, Ceilings, Endpoint, EndpointTest, Event, Task, TaskState, Timer, TokenRow, TokenUse, User,
};

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

    /// Where tasks were at work since a moment, the latest first; of an owner, or of all.
    fn visits(&self, owner: Option<&str>, since: Moment, most: VisitsMost) -> Answer<VisitedTasks>;

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

    /// Changes a user: what the change does not name stays as it is. Where they are disabled, or their password or role
    /// changes, their sessions end. The user as they are now, and the identifiers of those sessions.
    ///
    /// # Errors
    /// [`LedgerError::Missing`]; [`LedgerError::Taken`] where the account is another user's; [`LedgerError::Conflict`]
    /// where the password is another one than the change says.
    fn change_user(&self, name: &str, change: &UserChange) -> Answer<(UserRow, Vec<String>)>;

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

    /// Removes all sessions of a user; their identifiers.
    fn remove_sessions(&self, user: &str) -> Answer<Vec<String>>;

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

    /// Forgets what is old, but for the last task of each timer: the next run is held to what it has found. The
    /// identifiers of the tasks that went, whose directories can go too.
    fn forget(&self, retention: &Retention) -> Answer<Vec<String>>;

    /// Tasks that [`Ledger::forget`] took, and of which [`Ledger::directories_removed`] has not heard yet.
    fn forgotten(&self) -> Answer<Vec<String>>;

    /// The directories of these forgotten tasks are gone.
    fn directories_removed(&self, tasks: &[String]) -> Answer<()>;

    /// Whether anything can be written at present: asked before a health check answers.
    fn probe(&self) -> Answer<()>;
}
