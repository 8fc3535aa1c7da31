//! The ledger in SQLite: one file, with a write-ahead log beside it. One connection writes, a few read. A commit is on
//! the disk before it is acknowledged (`synchronous=FULL`).
//!
//! What SQLite cannot bear is refused when the ledger is opened ([`OpenErrorKind`]): network file systems, damaged
//! files, a log that is lost, a schema of a newer program. Nothing of that is mended or made anew by itself.

mod audit;
pub mod backup;
pub mod check;
mod endpoints;
mod error;
mod events;
mod file_system;
mod health;
mod identity;
mod migrations;
mod open;
mod overview;
mod tally;
mod tasks;
mod timers;
mod visits;

use carrack_engine::sync::{lock, unpoisoned};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

use carrack_core::grant::GrantId;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, ffi};

use super::audit::{AuditFilter, NewAuditLine};
use super::health::HealthRow;
use super::tally::{OverviewQuery, OverviewRows};
use super::{
    Answer, EndpointRow, EventFilter, Ledger, LedgerError, NewEvent, Page, Retention, Submission, Submitted,
    TaskChange, TaskFilter, TaskGuard, TaskWindow, UseTaken, UserChange, UserRow, VisitedTasks, VisitsMost, rules,
};
use crate::clock::Moment;
use crate::model::{
    AuditLine, Ceilings, Endpoint, EndpointTest, Event, Task, TaskState, Timer, TokenRow, TokenUse, User,
};
pub use error::{OpenError, OpenErrorKind};

/// Connections that read at the same time.
const READERS: usize = 4;
/// How long a connection waits for another program that holds the file, while the ledger is opened or copied.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for a call, whose caller waits.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// More than one page of the ledger: as much has to fit where there is room for a change.
const ROOM_BYTES: usize = 64 << 10;
/// Reads a row of each table that calls need: who asks, what there is, what has happened.
const READ_BY_CALLS: [&str; 5] = [
    "SELECT * FROM task ORDER BY seq DESC LIMIT 1",
    "SELECT * FROM endpoint LIMIT 1",
    "SELECT * FROM user LIMIT 1",
    "SELECT * FROM token ORDER BY seq DESC LIMIT 1",
    "SELECT * FROM event ORDER BY id DESC LIMIT 1",
];
/// For so long the answer of a probe that wrote is not asked again.
const PROBE_KEPT: Duration = Duration::from_secs(1);

/// The ledger in a file.
#[derive(Debug)]
pub struct SqliteLedger {
    path: PathBuf,
    writers: Mutex<Writers>,
    readers: Vec<Mutex<Connection>>,
    /// Which reader is waited for where none is idle.
    turn: AtomicUsize,
    probed: Mutex<Option<Instant>>,
    /// What SQLite has said of damage. Damage does not mend itself while the ledger is open.
    damage: OnceLock<String>,
}

/// The connections that write; one at a time.
#[derive(Debug)]
struct Writers {
    /// Each commit is on the disk before it is acknowledged.
    durable: Connection,
    /// For progress, of which journals have the truth: a commit is lost if power fails before the next durable one.
    light: Connection,
    /// When another program was last found to hold the ledger for too long.
    held: Option<Instant>,
}

/// Why a statement was not done: the rule that it breaks, or what SQLite says.
#[derive(Debug)]
enum Fault {
    Ledger(LedgerError),
    Sqlite(rusqlite::Error),
}

impl From<LedgerError> for Fault {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

type Done<T> = Result<T, Fault>;

impl SqliteLedger {
    /// Opens the ledger, and makes it where there is none. Its directory has to be there.
    ///
    /// # Errors
    /// As [`OpenErrorKind`] lists them.
    pub fn open(path: &Path, now: Moment) -> Result<Self, OpenError> {
        let durable = open::writer(path, now)?;
        let light = open::light_writer(path)?;
        let readers = (0..READERS).map(|_| open::reader(path)).collect::<Result<Vec<_>, _>>()?;
        for connection in [&durable, &light].into_iter().chain(&readers) {
            connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| error::Failing(path).sqlite(&error))?;
        }
        let writers = Mutex::new(Writers { durable, light, held: None });
        let readers = readers.into_iter().map(Mutex::new).collect();
        open::mark_in_use(path)?;
        let (turn, probed, damage) = (AtomicUsize::new(0), Mutex::new(None), OnceLock::new());
        Ok(Self { path: path.to_owned(), writers, readers, turn, probed, damage })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Carries out a transaction that writes, alone. It is on the disk afterwards.
    fn write<T>(&self, body: impl FnOnce(&Transaction<'_>) -> Done<T>) -> Answer<T> {
        self.write_by(|writers| &mut writers.durable, body)
    }

    /// The same for what may be lost where power fails.
    fn write_lightly<T>(&self, body: impl FnOnce(&Transaction<'_>) -> Done<T>) -> Answer<T> {
        self.write_by(|writers| &mut writers.light, body)
    }

    /// Those that wait for the connection while it waits for another program are not made to wait once more each.
    fn write_by<T>(
        &self,
        which: impl FnOnce(&mut Writers) -> &mut Connection,
        body: impl FnOnce(&Transaction<'_>) -> Done<T>,
    ) -> Answer<T> {
        let asked = Instant::now();
        let mut writers = lock(&self.writers);
        if writers.held.is_some_and(|held| held > asked) {
            return Err(LedgerError::Held(held(&self.path)));
        }
        let done = transact(which(&mut writers), body).map_err(|fault| self.told(fault));
        writers.held = matches!(done, Err(LedgerError::Held(_))).then(Instant::now);
        done
    }

    /// Reads, all at one moment of the ledger.
    fn read<T>(&self, body: impl FnOnce(&Connection) -> Done<T>) -> Answer<T> {
        let reader = self.reader();
        let done = || {
            let transaction = reader.unchecked_transaction()?;
            let value = body(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        done().map_err(|fault| self.told(fault))
    }

    /// A connection that reads: one that is idle, or the next in turn.
    fn reader(&self) -> MutexGuard<'_, Connection> {
        let idle = self.readers.iter().find_map(|reader| match reader.try_lock() {
            Ok(reader) => Some(reader),
            Err(TryLockError::Poisoned(reader)) => Some(reader.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        idle.unwrap_or_else(|| lock(&self.readers[self.turn.fetch_add(1, Ordering::Relaxed) % self.readers.len()]))
    }

    fn told(&self, fault: Fault) -> LedgerError {
        match fault {
            Fault::Ledger(error) => error,
            Fault::Sqlite(error) => {
                let told = told(&self.path, &error);
                let code = error.sqlite_error_code();
                if matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
                    // The first one is as good as any.
                    let _ = self.damage.set(told.to_string());
                }
                told
            }
        }
    }
}

impl Drop for SqliteLedger {
    /// Takes the log into the file, and notes that nothing is lost where the log goes.
    fn drop(&mut self) {
        let writers = unpoisoned(self.writers.get_mut());
        open::close(&self.path, &writers.durable);
    }
}

fn transact<T>(connection: &mut Connection, body: impl FnOnce(&Transaction<'_>) -> Done<T>) -> Done<T> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = body(&transaction)?;
    transaction.commit()?;
    Ok(value)
}

/// Whether nothing can be written beside the ledger because a quota, or the file system, is used up.
fn lacks_quota(ledger: &Path) -> bool {
    let beside = ledger.with_extension("room");
    let written = std::fs::File::create(&beside).and_then(|file| {
        file.write_all_at(&[0; ROOM_BYTES], 0)?;
        file.sync_all()
    });
    // What cannot be removed is written over the next time.
    let _ = std::fs::remove_file(&beside);
    written.is_err_and(|error| matches!(error.kind(), io::ErrorKind::QuotaExceeded | io::ErrorKind::StorageFull))
}

/// What SQLite says, for whoever asked the ledger.
fn told(whole: &Path, error: &rusqlite::Error) -> LedgerError {
    let path = whole.display();
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return LedgerError::Broken(format!("the ledger {path} cannot be read: {error}"));
    };
    match failure.code {
        ErrorCode::DiskFull => LedgerError::Full(format!("the file system of the ledger {path} is full")),
        // The index of the log grows as the log does, and may be the first that finds no room.
        _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            LedgerError::Full(format!("the file system of the ledger {path} is full"))
        }
        // SQLite takes only one of the system's words for storage that is full, and a quota has another.
        ErrorCode::SystemIoFailure if lacks_quota(whole) => {
            LedgerError::Full(format!("the quota of the account is used up where the ledger {path} is"))
        }
        ErrorCode::ReadOnly => LedgerError::Broken(format!("the ledger {path} is on a file system that is read-only")),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => LedgerError::Held(held(whole)),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            LedgerError::Broken(format!("the ledger {path} is damaged: {error}; restore a backup"))
        }
        _ => LedgerError::Broken(format!("the ledger {path}: {error}")),
    }
}

fn held(path: &Path) -> String {
    format!("another program has held the ledger {} for more than {} seconds", path.display(), BUSY_TIMEOUT.as_secs())
}

/// A count as SQLite keeps it.
fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count as SQLite kept it.
fn count(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or(0)
}

/// How many rows are asked for.
fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// A document as its column has it.
fn document<T: serde::Serialize>(value: &T) -> Done<String> {
    serde_json::to_string(value)
        .map_err(|error| LedgerError::Broken(format!("a document cannot be written: {error}")).into())
}

/// Reads a document of a row that must be readable.
fn parsed<T: serde::de::DeserializeOwned>(text: &str, of: &str) -> Done<T> {
    serde_json::from_str(text)
        .map_err(|error| LedgerError::Broken(format!("{of} cannot be read in the ledger: {error}")).into())
}

impl Ledger for SqliteLedger {
    fn submit(&self, submission: &Submission, now: Moment) -> Answer<Submitted> {
        self.write(|transaction| tasks::submit(transaction, submission, now))
    }

    fn task(&self, id: &str) -> Answer<Task> {
        self.read(|connection| tasks::find(connection, id).map(|row| row.task))
    }

    fn tasks(&self, filter: &TaskFilter, page: &Page) -> Answer<Vec<Task>> {
        self.read(|connection| tasks::list(connection, filter, page))
    }

    fn task_window(&self, filter: &TaskFilter, window: &TaskWindow) -> Answer<(Vec<Task>, u64)> {
        self.read(|connection| tasks::window(connection, filter, window))
    }

    fn overview(&self, query: &OverviewQuery) -> Answer<OverviewRows> {
        self.read(|connection| overview::overview(connection, query))
    }

    fn note(&self, lines: &[NewAuditLine]) -> Answer<()> {
        self.write_lightly(|transaction| audit::insert(transaction, lines))
    }

    fn audit(&self, filter: &AuditFilter, limit: usize) -> Answer<Vec<AuditLine>> {
        self.read(|connection| audit::list(connection, filter, limit))
    }

    fn count_tasks(&self) -> Answer<Vec<(String, TaskState, u64)>> {
        self.read(tasks::count_by_state)
    }

    fn open_tasks(&self) -> Answer<Vec<(Task, Vec<String>)>> {
        let (open, unreadable) = self.read(tasks::open)?;
        for (id, why) in unreadable {
            self.write(|transaction| tasks::fail_unreadable(transaction, &id, &why))?;
        }
        Ok(open)
    }

    fn claim(&self, id: &str, now: Moment, event: &NewEvent) -> Answer<Task> {
        self.write(|transaction| tasks::claim(transaction, id, now, event))
    }

    fn change_task(
        &self,
        id: &str,
        guard: &TaskGuard,
        change: &TaskChange,
        events: &[NewEvent],
        now: Moment,
    ) -> Answer<Task> {
        let body = |transaction: &Transaction<'_>| tasks::change(transaction, id, guard, change, events, now);
        let only_progress = TaskChange { progress: change.progress.clone(), ..TaskChange::default() } == *change;
        if only_progress && events.is_empty() { self.write_lightly(body) } else { self.write(body) }
    }

    fn visits(&self, owner: Option<&str>, since: Moment, most: VisitsMost) -> Answer<VisitedTasks> {
        self.read(|connection| visits::list(connection, owner, since, most))
    }

    fn reopen(&self, id: &str, now: Moment, deadline: Option<Option<Moment>>, event: &NewEvent) -> Answer<Task> {
        self.write(|transaction| tasks::reopen(transaction, id, now, deadline, event))
    }

    fn record(&self, events: &[NewEvent], now: Moment) -> Answer<()> {
        self.write(|transaction| events::insert(transaction, events, now))
    }

    fn events(&self, filter: &EventFilter, limit: usize) -> Answer<Vec<Event>> {
        self.read(|connection| events::list(connection, filter, limit))
    }

    fn event_range(&self) -> Answer<(u64, u64)> {
        self.read(events::range)
    }

    fn add_endpoint(&self, row: &EndpointRow, event: &NewEvent) -> Answer<()> {
        self.write(|transaction| endpoints::add(transaction, row, event))
    }

    fn endpoint(&self, name: &str) -> Answer<EndpointRow> {
        self.read(|connection| endpoints::find(connection, name))
    }

    fn endpoints(&self, page: &Page) -> Answer<Vec<Endpoint>> {
        self.read(|connection| endpoints::list(connection, page))
    }

    fn change_endpoint(&self, row: &EndpointRow, event: &NewEvent, now: Moment) -> Answer<Endpoint> {
        self.write(|transaction| endpoints::change(transaction, row, event, now))
    }

    fn remove_endpoint(&self, name: &str, event: &NewEvent, now: Moment) -> Answer<()> {
        self.write(|transaction| endpoints::remove(transaction, name, event, now))
    }

    fn health(&self, endpoint: Option<&str>, owner: Option<&str>) -> Answer<BTreeMap<String, HealthRow>> {
        self.read(|connection| health::list(connection, endpoint, owner))
    }

    fn note_test(&self, endpoint: &str, test: &EndpointTest, now: Moment) -> Answer<()> {
        self.write(|transaction| health::note_test(transaction, endpoint, test, now))
    }

    fn add_user(&self, row: &UserRow) -> Answer<()> {
        self.write(|transaction| identity::add_user(transaction, row))
    }

    fn user(&self, name: &str) -> Answer<UserRow> {
        self.read(|connection| identity::user(connection, name))
    }

    fn user_of_account(&self, account: u32) -> Answer<Option<UserRow>> {
        self.read(|connection| identity::user_of_account(connection, account))
    }

    fn users(&self) -> Answer<Vec<User>> {
        self.read(identity::users)
    }

    fn change_user(&self, name: &str, change: &UserChange) -> Answer<(UserRow, Vec<String>)> {
        self.write(|transaction| identity::change_user(transaction, name, change))
    }

    fn add_token(&self, row: &TokenRow, digest: &[u8; 32]) -> Answer<()> {
        self.write(|transaction| identity::add_token(transaction, row, digest))
    }

    fn token(&self, id: &str) -> Answer<(TokenRow, [u8; 32], User)> {
        self.read(|connection| identity::token(connection, id))
    }

    fn tokens(&self, user: &str) -> Answer<Vec<TokenRow>> {
        self.read(|connection| identity::tokens(connection, user))
    }

    fn token_used(&self, id: &str, now: Moment) -> Answer<()> {
        let minute = rules::minute(now);
        if self.read(|connection| identity::is_noted(connection, id, minute))? {
            return Ok(());
        }
        self.write(|transaction| identity::note_use(transaction, id, minute))
    }

    fn token_use(&self, id: &str) -> Answer<TokenUse> {
        self.read(|connection| identity::token_use(connection, id))
    }

    fn count_use(&self, user: &str, id: &str, more: &TokenUse, most: &Ceilings) -> Answer<UseTaken> {
        self.write(|transaction| identity::count_use(transaction, (user, id), more, most))
    }

    fn remove_token(&self, id: &str) -> Answer<()> {
        self.write(|transaction| identity::remove_token(transaction, id))
    }

    fn remove_sessions(&self, user: &str) -> Answer<Vec<String>> {
        self.write(|transaction| identity::remove_sessions(transaction, user))
    }

    fn revoke_grants(&self, id: &GrantId, until: Moment, now: Moment) -> Answer<()> {
        self.write(|transaction| identity::revoke_grants(transaction, id, until, now))
    }

    fn restore_grants(&self, id: &GrantId) -> Answer<()> {
        self.write(|transaction| identity::restore_grants(transaction, id))
    }

    fn revoked_grants(&self, now: Moment) -> Answer<Vec<(GrantId, Moment)>> {
        self.read(|connection| identity::revoked_grants(connection, now))
    }

    fn add_timer(&self, timer: &Timer, event: &NewEvent) -> Answer<()> {
        self.write(|transaction| timers::add(transaction, timer, event))
    }

    fn timer(&self, id: &str) -> Answer<Timer> {
        self.read(|connection| timers::find(connection, id))
    }

    fn timers(&self, owner: Option<&str>, page: &Page) -> Answer<Vec<Timer>> {
        self.read(|connection| timers::list(connection, owner, page))
    }

    fn due_timers(&self, now: Moment, limit: usize) -> Answer<Vec<Timer>> {
        let (due, unreadable) = self.read(|connection| timers::due(connection, now, limit))?;
        for (id, why) in unreadable {
            self.write(|transaction| timers::pause_unreadable(transaction, &id, &why, now))?;
        }
        Ok(due)
    }

    fn change_timer(
        &self,
        timer: &Timer,
        submission: Option<&Submission>,
        event: &NewEvent,
        now: Moment,
    ) -> Answer<Option<Submitted>> {
        self.write(|transaction| timers::change(transaction, timer, submission, event, now))
    }

    fn remove_timer(&self, id: &str, event: &NewEvent, now: Moment) -> Answer<()> {
        self.write(|transaction| timers::remove(transaction, id, event, now))
    }

    fn forget(&self, retention: &Retention) -> Answer<Vec<String>> {
        self.write(|transaction| tasks::forget(transaction, retention))
    }

    fn forgotten(&self) -> Answer<Vec<String>> {
        self.read(tasks::forgotten)
    }

    fn directories_removed(&self, tasks: &[String]) -> Answer<()> {
        self.write(|transaction| tasks::directories_removed(transaction, tasks))
    }

    fn probe(&self) -> Answer<()> {
        if let Some(why) = self.damage.get() {
            return Err(LedgerError::Broken(why.clone()));
        }
        let mut probed = lock(&self.probed);
        if probed.is_some_and(|at| at.elapsed() < PROBE_KEPT) {
            return Ok(());
        }
        *probed = None;
        // What calls read, by each connection that they read with.
        for reader in &self.readers {
            READ_BY_CALLS
                .iter()
                .try_for_each(|query| lock(reader).prepare(query)?.exists(()).map(drop))
                .map_err(|error| self.told(error.into()))?;
        }
        self.write(|transaction| {
            transaction.execute("UPDATE probe SET count = count + 1", ())?;
            Ok(())
        })?;
        *probed = Some(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
