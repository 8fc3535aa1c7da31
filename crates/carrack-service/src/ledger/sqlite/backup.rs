//! Backups of the ledger, and what a restore makes of one.
//!
//! A backup is one file, a ledger as it was at one moment; it is made while a service runs. It has neither the journals
//! of tasks nor the key that seals the tokens of endpoints (`seal.key`): without the key the backup gives no access to
//! any endpoint, and with another key each endpoint's token must be given anew.
//!
//! A restore replaces the ledger while no service runs. The one that was there is kept beside it. Between the backup
//! and now anything may have happened that the ledger does not know, so:
//! - numbers of attempts and of events jump, and what an older worker writes is refused;
//! - open tasks that move or delete wait for somebody to confirm them, and timers that submit such tasks are paused;
//! - sessions end. Tokens that were revoked since the backup are valid again.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use serde::Serialize;

use super::error::{Failing, OpenError, OpenErrorKind};
use super::migrations::{self, SchemaError};
use super::open::{self, beside, directory};
use super::{Fault, OPEN_TIMEOUT, count, events, integer, tasks};
use crate::clock::Moment;
use crate::ledger::rules;
use crate::ledger::tally::Before;
use crate::model::NewTask;

/// Held by whoever serves from the state directory, or replaces its ledger.
const SERVICE_LOCK: &str = "service.lock";
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// Where it is.
    pub path: PathBuf,
    /// When it was made.
    pub made: Moment,
    /// Its size.
    pub bytes: u64,
    /// Tasks in it.
    pub tasks: u64,
}

/// A restore that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// When the backup was made; none where the file is a mere copy of a ledger.
    pub made: Option<Moment>,
    /// Where the ledger is that was replaced.
    pub replaced: Option<PathBuf>,
    /// Tasks in the ledger now.
    pub tasks: u64,
    /// Open tasks that move or delete, and wait to be confirmed.
    pub to_confirm: Vec<String>,
    /// Timers whose tasks move or delete, and that are paused.
    pub paused_timers: Vec<String>,
    /// Sessions that ended.
    pub sessions_ended: u64,
    /// Tokens that are valid, among them those revoked since the backup.
    pub tokens: u64,
}

/// Why no backup was made or restored.
#[derive(Debug)]
pub enum BackupError {
    /// The ledger, or the backup, cannot be used.
    Ledger(OpenError),
    /// A service runs on this state directory.
    InUse(PathBuf),
    /// There is a file where the backup should go.
    Exists(PathBuf),
    /// A call on this path failed.
    System(PathBuf, &'static str, io::Error),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger(error) => error.fmt(f),
            Self::InUse(path) => write!(f, "a service runs on the state directory {}", path.display()),
            Self::Exists(path) => write!(f, "{} exists", path.display()),
            Self::System(path, call, error) => write!(f, "{}: {call}: {error}", path.display()),
        }
    }
}

impl std::error::Error for BackupError {}

impl BackupError {
    /// What somebody can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Ledger(error) => error.kind.hint(),
            Self::InUse(_) => "end the service first",
            Self::Exists(_) => "choose another name for the backup",
            Self::System(..) => "look at the path and its directory",
        }
    }
}

impl From<OpenError> for BackupError {
    fn from(error: OpenError) -> Self {
        Self::Ledger(error)
    }
}

/// Makes a call on a path.
fn system<T>(path: &Path, call: &'static str, result: io::Result<T>) -> Result<T, BackupError> {
    result.map_err(|error| BackupError::System(path.to_owned(), call, error))
}

/// Says what is wrong with a ledger.
fn unusable(path: &Path, error: SchemaError) -> BackupError {
    BackupError::Ledger(Failing(path).because(error.kind, error.why))
}

/// Makes a backup of the ledger as a new file, also while a service has it open.
///
/// # Errors
/// [`BackupError::Exists`]; the ledger cannot be read; the file cannot be written.
pub fn backup(ledger: &Path, to: &Path, now: Moment) -> Result<BackupReport, BackupError> {
    open::refuse_lost(ledger)?;
    if to.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    // SQLite writes it beside the ledger, where locks work; where the backup goes they may not.
    let draft = beside(ledger, "-backup");
    let made = copy_database(ledger, &draft, now).and_then(|tasks| {
        let arriving = beside(to, ".partial");
        let bytes = copy_file(&draft, &arriving)?;
        system(to, "rename to its name", fs::rename(&arriving, to))?;
        system(to, "fsync its directory", open::sync_directory(to))?;
        Ok(BackupReport { path: to.to_owned(), made: now, bytes, tasks })
    });
    remove(&draft)?;
    made
}

/// Copies a ledger as it is at this moment, and returns how many tasks it has.
fn copy_database(from: &Path, to: &Path, now: Moment) -> Result<u64, BackupError> {
    remove(to)?;
    remove(&beside(to, "-journal"))?;
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    drop(system(to, "create", new)?);
    let source = open::reader(from)?;
    let copy = || -> Result<u64, SchemaError> {
        migrations::missing(&source, migrations::ALL)?;
        let mut target = open::connect(to)?;
        let began = Instant::now();
        let copying = Backup::new(&source, &mut target)?;
        // All pages in one step: whoever writes meanwhile goes on, and this is the state of one moment.
        while copying.step(-1)? != StepResult::Done {
            if began.elapsed() > OPEN_TIMEOUT {
                let why = "another program holds it".to_owned();
                return Err(SchemaError { kind: OpenErrorKind::Held, why });
            }
            thread::sleep(BUSY_PAUSE);
        }
        drop(copying);
        // One file, without a log beside it.
        target.pragma_update(None, "journal_mode", "delete")?;
        target.execute(
            "INSERT OR REPLACE INTO backup (one, made, program) VALUES (1, ?, ?)",
            params![now.0, env!("CARGO_PKG_VERSION")],
        )?;
        check_whole(&target)?;
        Ok(count(target.query_row("SELECT count(*) FROM task", (), |row| row.get(0))?))
    };
    copy().map_err(|error| unusable(from, error))
}

/// Looks at every page, index and key.
fn check_whole(connection: &Connection) -> Result<(), SchemaError> {
    let found = super::check::damage(connection)?;
    let damaged = |why| Err(SchemaError { kind: OpenErrorKind::Damaged, why });
    found.into_iter().next().map_or(Ok(()), damaged)
}

/// Copies a file durably to a new one that its owner alone reads.
fn copy_file(from: &Path, to: &Path) -> Result<u64, BackupError> {
    remove(to)?;
    let mut source = system(from, "open", File::open(from))?;
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let mut target = system(to, "create", new)?;
    let bytes = system(to, "write", io::copy(&mut source, &mut target))?;
    system(to, "fsync", target.sync_all())?;
    Ok(bytes)
}

fn remove(path: &Path) -> Result<(), BackupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
    .map_err(|error| BackupError::System(path.to_owned(), "remove", error))
}

/// Replaces the ledger by a backup. The ledger's directory has to be there; no service may run on it.
///
/// # Errors
/// [`BackupError::InUse`]; the backup is damaged, or of a newer program; a call fails. The ledger is then what it was,
/// or, where it was being replaced, it is refused until a restore succeeds.
pub fn restore(ledger: &Path, from: &Path, now: Moment) -> Result<RestoreReport, BackupError> {
    restore_by_steps(ledger, from, now, &mut || {})
}

/// Restores; `step` is called before each change of a name.
pub(super) fn restore_by_steps(
    ledger: &Path,
    from: &Path,
    now: Moment,
    step: &mut dyn FnMut(),
) -> Result<RestoreReport, BackupError> {
    let _lock = lock_directory(ledger)?;
    let draft = beside(ledger, "-restoring");
    remove(&beside(&draft, "-journal"))?;
    copy_file(from, &draft)?;
    let mut report = prepare(&draft, now).map_err(|error| match error {
        // Whoever restores knows the backup by its own name.
        BackupError::Ledger(error) => BackupError::Ledger(OpenError { path: from.to_owned(), ..error }),
        other => other,
    })?;
    system(&draft, "fsync", File::open(&draft).and_then(|file| file.sync_all()))?;
    step();
    report.replaced = keep_replaced(ledger, now, step)?;
    // From here until the new ledger has its name, the old one is refused: its log is missed.
    for suffix in ["-wal", "-shm"] {
        step();
        remove(&beside(ledger, suffix))?;
    }
    step();
    system(ledger, "rename to its name", fs::rename(&draft, ledger))?;
    system(ledger, "fsync its directory", open::sync_directory(ledger))?;
    step();
    remove(&beside(ledger, "-open"))?;
    system(ledger, "fsync its directory", open::sync_directory(ledger))?;
    Ok(report)
}

/// Keeps any service away for as long as the file lives.
fn lock_directory(ledger: &Path) -> Result<File, BackupError> {
    let path = directory(ledger).join(SERVICE_LOCK);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = system(&path, "open", file)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BackupError::InUse(directory(ledger).to_owned())),
        Err(TryLockError::Error(error)) => Err(BackupError::System(path, "lock", error)),
    }
}

/// Gives the ledger that goes a second name, with its log.
fn keep_replaced(ledger: &Path, now: Moment, step: &mut dyn FnMut()) -> Result<Option<PathBuf>, BackupError> {
    if fs::metadata(ledger).map_or(true, |found| found.len() == 0) {
        return Ok(None);
    }
    // Where it is whole, its log goes into it; where it is not, both are kept as they are.
    if let Ok(connection) = open::connect(ledger) {
        let _: rusqlite::Result<i64> = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0));
    }
    let mut names = (0..).map(|number| beside(ledger, &format!(".replaced-{}-{number}", now.0)));
    let is_free = |kept: &PathBuf| ["", "-wal"].iter().all(|suffix| beside(kept, suffix).symlink_metadata().is_err());
    let Some(kept) = names.find(is_free) else { return Ok(None) };
    for suffix in ["-wal", ""] {
        step();
        let (from, to) = (beside(ledger, suffix), beside(&kept, suffix));
        match fs::hard_link(&from, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && suffix == "-wal" => {}
            linked => system(&to, "link", linked)?,
        }
    }
    system(ledger, "fsync its directory", open::sync_directory(ledger))?;
    Ok(Some(kept))
}

/// Makes a ledger of a copy of a backup.
fn prepare(draft: &Path, now: Moment) -> Result<RestoreReport, BackupError> {
    let prepare = || -> Result<RestoreReport, SchemaError> {
        let mut connection = open::connect(draft)?;
        if migrations::missing(&connection, migrations::ALL)? == migrations::ALL.len() {
            return Err(SchemaError { kind: OpenErrorKind::OtherFile, why: "it is empty".to_owned() });
        }
        connection.pragma_update(None, "journal_mode", "delete")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        check_whole(&connection)?;
        migrations::carry_out(&mut connection, migrations::ALL, now, || {})?;
        Ok(adapt(&mut connection, now)?)
    };
    prepare().map_err(|error| unusable(draft, error))
}

/// Takes into account that time has passed since the backup.
fn adapt(connection: &mut Connection, now: Moment) -> Result<RestoreReport, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let made: Option<i64> = transaction.query_row("SELECT made FROM backup", (), |row| row.get(0)).optional()?;
    transaction.execute("DELETE FROM backup", ())?;
    transaction.execute(
        "INSERT INTO sqlite_sequence (name, seq) SELECT 'event', 0
         WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'event')",
        (),
    )?;
    let step = integer(rules::RESTORE_STEP);
    transaction.execute("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'event'", [step])?;
    let ended = "UPDATE task SET fence = fence + ?1, version = version + ?1 WHERE ended IS NOT NULL";
    transaction.execute(ended, [step])?;
    let mut to_confirm = Vec::new();
    for (id, _) in two_texts(&transaction, "SELECT id, kind FROM task WHERE ended IS NULL ORDER BY seq")? {
        let mut task = tasks::find(&transaction, &id)?.task;
        let deletes = task.request.deletes();
        let before = Before::of(&task);
        rules::restored(&mut task, deletes, now);
        tasks::put(&transaction, before, &task, &[rules::restored_event(&task)], now)?;
        if deletes {
            to_confirm.push(id);
        }
    }
    let mut paused_timers = Vec::new();
    for (id, task) in two_texts(&transaction, "SELECT id, task FROM timer WHERE state = 'waiting' ORDER BY seq")? {
        // What cannot be read may delete.
        if serde_json::from_str::<NewTask>(&task).map_or(true, |task| task.deletes()) {
            let sql = "UPDATE timer SET state = 'paused', next_run = NULL, version = version + ? WHERE id = ?
                RETURNING owner";
            let owner = transaction.query_row(sql, params![step, id], |row| row.get(0))?;
            events::insert(&transaction, &[rules::timer_restored_event(&id, owner)], now)?;
            paused_timers.push(id);
        }
    }
    let sessions_ended = transaction.execute("DELETE FROM token WHERE is_session = 1", ())?;
    let counted = |sql: &str| -> rusqlite::Result<u64> { Ok(count(transaction.query_row(sql, (), |row| row.get(0))?)) };
    let report = RestoreReport {
        made: made.map(Moment),
        replaced: None,
        tasks: counted("SELECT count(*) FROM task")?,
        to_confirm,
        paused_timers,
        sessions_ended: u64::try_from(sessions_ended).unwrap_or(u64::MAX),
        tokens: counted("SELECT count(*) FROM token")?,
    };
    transaction.commit()?;
    Ok(report)
}

fn two_texts(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
