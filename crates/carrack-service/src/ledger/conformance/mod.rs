//! The suite that every ledger passes. Each rule gets a ledger with nothing in it; what is broken is told by the name
//! of its rule.

mod alike;
mod attempts;
mod crowd;
mod events;
mod figures;
mod health;
mod identity;
mod liars;
mod places;
mod submissions;
mod timers;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;

use super::{EventFilter, Ledger, NewEvent, Page, Submission, TaskFilter, TaskGuard};
use crate::clock::Moment;
use crate::model::{Estimate, Event, EventKind, NewTask, Pair, Task, TaskState};

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// How it is broken.
    pub why: String,
}

type Rule = (&'static str, fn(&dyn Ledger));

/// Names the rules of a file.
macro_rules! rules {
    ($($rule:ident)+) => { &[$((stringify!($rule), $rule)),+] };
}
use rules;

const RULES: &[&[Rule]] = &[
    submissions::RULES,
    attempts::RULES,
    events::RULES,
    places::RULES,
    identity::RULES,
    timers::RULES,
    crowd::RULES,
    figures::RULES,
    health::RULES,
];

/// Tries a ledger by every rule, each with one of its own, and tells which are broken.
pub fn check(make: &dyn Fn() -> Box<dyn Ledger>) -> Vec<Finding> {
    check_those(make, &|_| true)
}

/// Tries a ledger by some rules.
fn check_those(make: &dyn Fn() -> Box<dyn Ledger>, is_meant: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let broken = |(rule, hold): &Rule| {
        let ledger = make();
        let panic = catch_unwind(AssertUnwindSafe(|| hold(&*ledger))).err()?;
        let why = panic.downcast_ref::<String>().cloned();
        let why = why.or_else(|| panic.downcast_ref::<&str>().map(|why| (*why).to_owned()));
        Some(Finding { rule, why: why.unwrap_or_default() })
    };
    let rules = RULES.iter().flat_map(|rules| rules.iter()).filter(|(rule, _)| is_meant(rule));
    rules.filter_map(broken).collect()
}

/// A moment of the suite's time.
fn at(second: i64) -> Moment {
    Moment(1_700_000_000_000_000 + second * 1_000_000)
}

/// All that a guard can leave open.
const ANY: TaskGuard = TaskGuard { states: Vec::new(), version: None, fence: None };

fn first(limit: usize) -> Page {
    Page { after: None, limit }
}

fn behind(id: &str, limit: usize) -> Page {
    Page { after: Some(id.to_owned()), limit }
}

/// A copy between two endpoints.
fn request() -> NewTask {
    let pair = Pair { source: "@here:/a".to_owned(), destination: Some("@there:/b".to_owned()) };
    NewTask { pairs: vec![pair], ..NewTask::default() }
}

fn submission(id: &str) -> Submission {
    Submission {
        id: id.to_owned(),
        owner: "ada".to_owned(),
        submission_id: None,
        request: request(),
        endpoints: vec!["here".to_owned(), "there".to_owned()],
        estimate: None,
    }
}

/// What somebody was told to expect.
fn estimate() -> Estimate {
    Estimate {
        made: at(2),
        bytes: Some(1 << 40),
        items: Some(7),
        earliest_start: Some(at(3)),
        latest_start: Some(at(30)),
        seconds_least: Some(10),
        seconds_most: Some(30),
        why: "by the last 3 tasks".to_owned(),
        took_seconds: None,
    }
}

/// Accepts a task with this identifier.
fn accept(ledger: &dyn Ledger, id: &str) -> Task {
    ledger.submit(&submission(id), at(0)).unwrap().task
}

/// Accepts a task and begins its first attempt.
fn begin(ledger: &dyn Ledger, id: &str) -> Task {
    accept(ledger, id);
    ledger.claim(id, at(1), &note(id, "begins")).unwrap()
}

/// Has a task end so.
fn end(ledger: &dyn Ledger, id: &str, state: TaskState, now: Moment) -> Task {
    let change = super::TaskChange { state: Some(state), ..super::TaskChange::default() };
    ledger.change_task(id, &ANY, &change, &[], now).unwrap()
}

fn note(task: &str, text: &str) -> NewEvent {
    NewEvent {
        kind: EventKind::Note,
        owner: "ada".to_owned(),
        task: Some(task.to_owned()),
        subject: None,
        text: text.to_owned(),
        detail: json!({ "why": text }),
    }
}

/// Every event there is.
fn all_events(ledger: &dyn Ledger) -> Vec<Event> {
    ledger.events(&EventFilter::default(), usize::MAX).unwrap()
}

fn ids(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

/// The identifiers of the tasks that pass, the latest first.
fn listed(ledger: &dyn Ledger, filter: &TaskFilter) -> Vec<String> {
    ledger.tasks(filter, &first(1000)).unwrap().into_iter().map(|task| task.id).collect()
}
