//! The schema: numbered steps, each one transaction, each kept with a checksum of its text. A program that finds steps
//! that it does not know refuses the ledger, and so does one whose steps have another text.
//!
//! Steps, once released, are never changed: from then on a change of the schema is a new step.

use data_encoding::HEXLOWER;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::{Batch, Connection, TransactionBehavior, params};

use super::Fault;
use super::error::OpenErrorKind;
use crate::clock::Moment;

/// Tells SQLite's `file` and us that a file is a ledger: "Carr".
pub const APPLICATION_ID: i32 = 0x4361_7272;
/// The same of builds from before the first step, whose steps had the same numbers: "Cark".
const APPLICATION_ID_BEFORE: i32 = 0x4361_726b;

/// A step of the schema.
pub struct Migration {
    pub number: u32,
    pub name: &'static str,
    pub sql: &'static str,
}

impl Migration {
    fn checksum(&self) -> String {
        HEXLOWER.encode(blake3::hash(self.sql.as_bytes()).as_bytes())
    }
}

/// All steps, in order.
pub const ALL: &[Migration] = &[
    Migration { number: 1, name: "first", sql: include_str!("../migrations/0001_first.sql") },
    Migration { number: 2, name: "forgotten", sql: include_str!("../migrations/0002_forgotten.sql") },
];

/// Why a schema was not brought up to date.
#[derive(Debug)]
pub struct SchemaError {
    pub kind: OpenErrorKind,
    pub why: String,
}

impl From<rusqlite::Error> for SchemaError {
    fn from(error: rusqlite::Error) -> Self {
        Self { kind: OpenErrorKind::of(&error), why: error.to_string() }
    }
}

impl From<Fault> for SchemaError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Sqlite(error) => error.into(),
            Fault::Ledger(error) => Self { kind: OpenErrorKind::Damaged, why: error.to_string() },
        }
    }
}

/// Looks whether the schema is one of this program, without changing it: how many steps are missing.
///
/// # Errors
/// [`OpenErrorKind::OtherFile`], [`OpenErrorKind::NewerSchema`], [`OpenErrorKind::ChangedSchema`].
pub fn missing(connection: &Connection, migrations: &[Migration]) -> Result<usize, SchemaError> {
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, (), |row| row.get(0))?;
    let id: i32 = connection.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    if tables == 0 && id == 0 {
        return Ok(migrations.len());
    }
    if id != APPLICATION_ID {
        let why = match id {
            APPLICATION_ID_BEFORE => "it is a ledger of a build from before version 1",
            _ => "it is a database of another program",
        };
        return Err(SchemaError { kind: OpenErrorKind::OtherFile, why: why.to_owned() });
    }
    let mut statement = connection.prepare("SELECT number, name, checksum, program FROM migration ORDER BY number")?;
    let mut rows = statement.query(())?;
    let mut known = migrations.iter();
    while let Some(row) = rows.next()? {
        let (number, name): (u32, String) = (row.get(0)?, row.get(1)?);
        let (checksum, program): (String, String) = (row.get(2)?, row.get(3)?);
        let Some(migration) = known.next() else {
            let why =
                format!("its schema has step {number} ({name}) of carrack {program}, which is newer than this one");
            return Err(SchemaError { kind: OpenErrorKind::NewerSchema, why });
        };
        if migration.number != number || migration.checksum() != checksum {
            let why = format!(
                "step {number} ({name}) of its schema, from carrack {program}, is not the one that this program has"
            );
            return Err(SchemaError { kind: OpenErrorKind::ChangedSchema, why });
        }
    }
    Ok(known.len())
}

/// Carries out the steps that are missing, each in a transaction of its own. `step` is called before each statement and
/// before each commit.
///
/// # Errors
/// Those of [`missing`], and of SQLite.
pub fn carry_out(
    connection: &mut Connection,
    migrations: &[Migration],
    now: Moment,
    mut step: impl FnMut(),
) -> Result<(), SchemaError> {
    let missing = missing(connection, migrations)?;
    for migration in &migrations[migrations.len() - missing..] {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if migration.number == 1 {
            transaction.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
            transaction.execute_batch(
                "CREATE TABLE migration (
                    number INTEGER PRIMARY KEY,
                    name TEXT NOT NULL,
                    checksum TEXT NOT NULL,
                    applied INTEGER NOT NULL,
                    program TEXT NOT NULL
                ) STRICT",
            )?;
        }
        let mut batch = Batch::new(&transaction, migration.sql);
        while let Some(mut statement) = batch.next()? {
            step();
            statement.raw_execute()?;
        }
        transaction.execute(
            "INSERT INTO migration (number, name, checksum, applied, program) VALUES (?, ?, ?, ?, ?)",
            params![migration.number, migration.name, migration.checksum(), now.0, env!("CARGO_PKG_VERSION")],
        )?;
        step();
        transaction.commit()?;
    }
    Ok(())
}
