//! The ledger in SQLite passes the suite, and keeps what it acknowledged.

use super::*;
use crate::ledger::conformance;

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
