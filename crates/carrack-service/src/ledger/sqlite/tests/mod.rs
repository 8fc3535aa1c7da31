//! The ledger in SQLite passes the suite, and keeps what it acknowledged.

mod audit;
mod backup;
mod full;
mod held;
mod killed;
mod opening;
mod queue;
mod size;
mod unreadable;

use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::*;
use crate::ledger::conformance;
use crate::model::{NewTask, Pair};

/// Names the part of a test that a process of its own plays.
const PART: &str = "CARRACK_TEST_PART";
/// The ledger that it plays with.
const LEDGER: &str = "CARRACK_TEST_LEDGER";

#[test]
fn sqlite_ledger_passes_the_suite() {
    let directory = tempfile::tempdir().unwrap();
    let number = AtomicUsize::new(0);
    let make = || -> Box<dyn Ledger> {
        let name = format!("ledger-{}.db", number.fetch_add(1, Ordering::Relaxed));
        Box::new(SqliteLedger::open(&directory.path().join(name), Moment(0)).unwrap())
    };
    assert_eq!(conformance::check(&make), []);
}

/// A directory for a ledger.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("ledger.db")
    }

    fn open(&self) -> SqliteLedger {
        self.try_open().unwrap()
    }

    fn try_open(&self) -> Result<SqliteLedger, OpenError> {
        SqliteLedger::open(&self.path(), Moment(5))
    }

    /// Why the ledger is not opened.
    #[track_caller]
    fn refused(&self) -> OpenErrorKind {
        let error = self.try_open().unwrap_err();
        assert!(error.to_string().contains(&self.path().display().to_string()), "{error}");
        assert!(!error.kind.hint().is_empty());
        error.kind
    }

    /// Changes the file behind the ledger's back.
    fn alter(&self, sql: &str) {
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

fn submission(id: &str) -> Submission {
    let pair = Pair { source: "@here:/a".to_owned(), destination: Some("@there:/b".to_owned()) };
    Submission {
        id: id.to_owned(),
        owner: "ada".to_owned(),
        submission_id: Some(format!("submission of {id}")),
        request: NewTask { pairs: vec![pair], ..NewTask::default() },
        endpoints: vec!["here".to_owned(), "there".to_owned()],
        estimate: None,
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A process of this test's program that plays a part; see [`plays_a_part`].
fn player(program: &str, part: &str, ledger: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "ledger::sqlite::tests::plays_a_part", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(PART, part).env(LEDGER, ledger).stdin(Stdio::null());
    command
}

fn own_program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

#[test]
#[ignore = "other tests start it as a process of its own"]
fn plays_a_part() {
    let (Ok(part), Ok(ledger)) = (std::env::var(PART), std::env::var(LEDGER)) else { return };
    let ledger = PathBuf::from(ledger);
    match part.split_once(' ').unwrap_or((&part, "")) {
        ("submit", from) => killed::submit_for_ever(&ledger, from.parse().unwrap()),
        ("migrate", step) => killed::migrate_until(&ledger, step.parse().unwrap()),
        ("fill", _) => full::fill(&ledger),
        ("quota", _) => full::meet_quota(&ledger),
        ("read-only", _) => full::open_read_only(&ledger),
        ("restore", step) => backup::restore_until(&ledger, step.parse().unwrap()),
        _ => panic!("no part is called {part}"),
    }
}
