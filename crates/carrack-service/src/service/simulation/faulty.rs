//! A ledger that fails: at a chosen call, before or after it was done, for good (the service was killed there) or once;
//! or because it is full.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use carrack_core::grant::GrantId;

use crate::clock::Moment;
use crate::ledger::audit::{AuditFilter, NewAuditLine};
use crate::ledger::health::HealthRow;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::tally::{OverviewQuery, OverviewRows};
use crate::ledger::{
    Answer, EndpointRow, EventFilter, Ledger, LedgerError, NewEvent, Page, Retention, Submission, Submitted,
    TaskChange, TaskFilter, TaskGuard, TaskWindow, UseTaken, UserChange, UserRow, VisitedTasks, VisitsMost,
};
use crate::model::{
    AuditLine, Ceilings, Endpoint, EndpointTest, Event, Task, TaskState, Timer, TokenRow, TokenUse, User,
};

/// What goes wrong. Shared with the script.
#[derive(Debug, Default)]
pub struct Faults {
    /// Calls until one fails; less than one: none does.
    pub calls_until_fault: AtomicI64,
    /// The call that fails is done all the same, and only its answer is lost.
    pub is_done: AtomicBool,
    /// Every call after it fails, too: the service was killed.
    pub kills: AtomicBool,
    /// Nothing can be written.
    pub full: AtomicBool,
    /// The service was killed.
    pub dead: Arc<AtomicBool>,
}

/// The ledger as one life of the service sees it.
pub struct Faulty {
    pub inner: Arc<MemoryLedger>,
    pub faults: Arc<Faults>,
}

impl Faulty {
    fn call<T>(&self, writes: bool, call: impl FnOnce(&MemoryLedger) -> Answer<T>) -> Answer<T> {
        let broken = || Err(LedgerError::Broken("simulated".to_owned()));
        if self.faults.dead.load(Ordering::Relaxed) {
            return broken();
        }
        if writes && self.faults.full.load(Ordering::Relaxed) {
            return Err(LedgerError::Full("simulated".to_owned()));
        }
        if self.faults.calls_until_fault.fetch_sub(1, Ordering::Relaxed) == 1 {
            if self.faults.is_done.load(Ordering::Relaxed) {
                let _ = call(&self.inner);
            }
            self.faults.dead.fetch_or(self.faults.kills.load(Ordering::Relaxed), Ordering::Relaxed);
            return broken();
        }
        call(&self.inner)
    }
}

/// Hands each method on, by way of the faults.
macro_rules! hand_on {
    ($($kind:literal fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        impl Ledger for Faulty {
            $(fn $name(&self, $($argument: $type),*) -> Answer<$answer> {
                self.call($kind == "writes", |ledger| ledger.$name($($argument),*))
            })+
        }
    };
}

hand_on! {
    "writes" fn submit(submission: &Submission, now: Moment) -> Submitted;
    "reads" fn task(id: &str) -> Task;
    "reads" fn tasks(filter: &TaskFilter, page: &Page) -> Vec<Task>;
    "reads" fn task_window(filter: &TaskFilter, window: &TaskWindow) -> (Vec<Task>, u64);
    "reads" fn overview(query: &OverviewQuery) -> OverviewRows;
    "writes" fn note(lines: &[NewAuditLine]) -> ();
    "reads" fn audit(filter: &AuditFilter, limit: usize) -> Vec<AuditLine>;
    "reads" fn count_tasks() -> Vec<(String, TaskState, u64)>;
    "reads" fn open_tasks() -> Vec<(Task, Vec<String>)>;
    "writes" fn claim(id: &str, now: Moment, event: &NewEvent) -> Task;
    "writes" fn change_task(id: &str, guard: &TaskGuard, change: &TaskChange, events: &[NewEvent], now: Moment) -> Task;
    "reads" fn visits(owner: Option<&str>, since: Moment, most: VisitsMost) -> VisitedTasks;
    "writes" fn reopen(id: &str, now: Moment, deadline: Option<Option<Moment>>, event: &NewEvent) -> Task;
    "writes" fn record(events: &[NewEvent], now: Moment) -> ();
    "reads" fn events(filter: &EventFilter, limit: usize) -> Vec<Event>;
    "reads" fn event_range() -> (u64, u64);
    "writes" fn add_endpoint(row: &EndpointRow, event: &NewEvent) -> ();
    "reads" fn endpoint(name: &str) -> EndpointRow;
    "reads" fn endpoints(page: &Page) -> Vec<Endpoint>;
    "reads" fn health(endpoint: Option<&str>, owner: Option<&str>) -> BTreeMap<String, HealthRow>;
    "writes" fn note_test(endpoint: &str, test: &EndpointTest, now: Moment) -> ();
    "writes" fn change_endpoint(row: &EndpointRow, event: &NewEvent, now: Moment) -> Endpoint;
    "writes" fn remove_endpoint(name: &str, event: &NewEvent, now: Moment) -> ();
    "writes" fn add_user(row: &UserRow) -> ();
    "reads" fn user(name: &str) -> UserRow;
    "reads" fn user_of_account(account: u32) -> Option<UserRow>;
    "reads" fn users() -> Vec<User>;
    "writes" fn change_user(name: &str, change: &UserChange) -> (UserRow, Vec<String>);
    "writes" fn add_token(row: &TokenRow, digest: &[u8; 32]) -> ();
    "reads" fn token(id: &str) -> (TokenRow, [u8; 32], User);
    "reads" fn tokens(user: &str) -> Vec<TokenRow>;
    "writes" fn token_used(id: &str, now: Moment) -> ();
    "reads" fn token_use(id: &str) -> TokenUse;
    "writes" fn count_use(user: &str, id: &str, more: &TokenUse, most: &Ceilings) -> UseTaken;
    "writes" fn remove_token(id: &str) -> ();
    "writes" fn remove_sessions(user: &str) -> Vec<String>;
    "writes" fn revoke_grants(id: &GrantId, until: Moment, now: Moment) -> ();
    "writes" fn restore_grants(id: &GrantId) -> ();
    "reads" fn revoked_grants(now: Moment) -> Vec<(GrantId, Moment)>;
    "writes" fn add_timer(timer: &Timer, event: &NewEvent) -> ();
    "reads" fn timer(id: &str) -> Timer;
    "reads" fn timers(owner: Option<&str>, page: &Page) -> Vec<Timer>;
    "reads" fn due_timers(now: Moment, limit: usize) -> Vec<Timer>;
    "writes" fn change_timer(timer: &Timer, submission: Option<&Submission>, event: &NewEvent, now: Moment) -> Option<Submitted>;
    "writes" fn remove_timer(id: &str, event: &NewEvent, now: Moment) -> ();
    "writes" fn forget(retention: &Retention) -> Vec<String>;
    "reads" fn forgotten() -> Vec<String>;
    "writes" fn directories_removed(tasks: &[String]) -> ();
    "reads" fn probe() -> ();
}
