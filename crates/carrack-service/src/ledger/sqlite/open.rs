//! Opens the ledger, if it is fit for use, and closes it.
//!
//! Beside the file `ledger.db` are SQLite's log, `ledger.db-wal`, and, while a service has the ledger open,
//! `ledger.db-open`. Where that file is there and the log is not, commits are lost, and the ledger is refused.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::{Failing, OpenError, OpenErrorKind};
use super::{OPEN_TIMEOUT, file_system, migrations};
use crate::clock::Moment;

/// Where the journals of tasks are, beside the ledger.
pub const TASKS: &str = "tasks";

/// The connection that writes, to a ledger that was checked and whose schema is up to date.
pub fn writer(path: &Path, now: Moment) -> Result<Connection, OpenError> {
    let failing = Failing(path);
    let unfit = file_system::unfit(directory(path)).map_err(|error| failing.system("statfs", &error))?;
    if let Some(name) = unfit {
        let why = format!("its file system is {name}, where locks and shared memory do not keep it whole");
        return Err(failing.because(OpenErrorKind::NetworkFileSystem, why));
    }
    refuse_lost(path)?;
    // SQLite gives its log the mode of this file.
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| failing.system("open", &error))?;
    let prepare = || {
        let mut connection = connect(path)?;
        migrations::missing(&connection, migrations::ALL)?;
        whole(&connection)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        migrations::carry_out(&mut connection, migrations::ALL, now, || {})?;
        Ok(connection)
    };
    let connection = prepare().map_err(|error: migrations::SchemaError| failing.because(error.kind, error.why))?;
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(|error| failing.sqlite(&error))?;
    if mode != "wal" {
        return Err(failing.because(OpenErrorKind::System, format!("it keeps no log: its journal mode is {mode}")));
    }
    sync_directory(path).map_err(|error| failing.system("fsync its directory", &error))?;
    Ok(connection)
}

/// A connection that writes without waiting for the disk. The log is still synced before it goes into the file.
pub fn light_writer(path: &Path) -> Result<Connection, OpenError> {
    let open = || {
        let connection = connect(path)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "synchronous", "normal")?;
        Ok(connection)
    };
    open().map_err(|error: rusqlite::Error| Failing(path).sqlite(&error))
}

/// A connection that reads a ledger which is there.
pub fn reader(path: &Path) -> Result<Connection, OpenError> {
    let open = || {
        let connection = connect(path)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    open().map_err(|error: rusqlite::Error| Failing(path).sqlite(&error))
}

/// A connection to a file that is there.
pub fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(OPEN_TIMEOUT)?;
    // The log goes by `close` alone: one that is missing otherwise is lost.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Looks whether SQLite finds the file whole.
fn whole(connection: &Connection) -> Result<(), migrations::SchemaError> {
    let mut statement = connection.prepare("PRAGMA quick_check(1)")?;
    let said: String = statement.query_row((), |row| row.get(0))?;
    if said == "ok" { Ok(()) } else { Err(migrations::SchemaError { kind: OpenErrorKind::Damaged, why: said }) }
}

/// Refuses to make a ledger anew where one is missed, and to open one whose log is missed.
pub fn refuse_lost(path: &Path) -> Result<(), OpenError> {
    let failing = Failing(path);
    let is_new = fs::metadata(path).map_or(true, |found| found.len() == 0);
    let was_open = beside(path, "-open").exists();
    let has_log = beside(path, "-wal").exists();
    let has_tasks = fs::read_dir(directory(path).join(TASKS)).is_ok_and(|mut entries| entries.next().is_some());
    if is_new && (has_log || was_open || has_tasks) {
        return Err(failing.because(OpenErrorKind::Gone, "the file is gone, though its tasks are here"));
    }
    if was_open && !has_log {
        let why = "its log (-wal) is gone: what was acknowledged last may be lost";
        return Err(failing.because(OpenErrorKind::LogLost, why));
    }
    Ok(())
}

/// Notes that a service has the ledger open: from now on its log is missed if it goes.
pub fn mark_in_use(path: &Path) -> Result<(), OpenError> {
    let mark = || {
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(beside(path, "-open"))?;
        sync_directory(path)
    };
    mark().map_err(|error| Failing(path).system("note that it is open", &error))
}

/// Takes the log into the file; then nothing is missed if the log goes. Where that fails the log stays, and is needed.
pub fn close(path: &Path, connection: &Connection) {
    let busy: rusqlite::Result<i64> = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0));
    if matches!(busy, Ok(0)) && fs::remove_file(beside(path, "-open")).is_ok() {
        // If this fails the note may come back, with the log that is still there.
        let _ = sync_directory(path);
    }
}

/// The file with this behind its name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes names in the ledger's directory durable.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

/// Where the ledger is.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
