//! What the ledger keeps of each endpoint's health, and what a change of a task shows of it. Pure, and the same for
//! every ledger.

use std::collections::{BTreeMap, BTreeSet};

use carrack_core::failure::{Blame, ErrorCode};

use super::rows::{NewEvent, endpoint_of, endpoints_of};
use super::tally::Before;
use crate::clock::Moment;
use crate::model::{EndpointTest, EventKind, Task, TaskFailure, TaskState};

/// What failed at an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub time: Moment,
    /// Whether it was not reached, or let nobody in.
    pub unreached: bool,
    /// What kind.
    pub code: String,
    /// In words.
    pub why: String,
    /// The task, and whose it is; none: a test has found it.
    pub task: Option<(String, String)>,
}

/// What is kept of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthRow {
    /// When it was last reached.
    pub contact: Option<Moment>,
    /// When something last succeeded there.
    pub success: Option<Moment>,
    /// What last failed there.
    pub fault: Option<Fault>,
    /// The last test, and when it was.
    pub test: Option<(Moment, EndpointTest)>,
    /// Open tasks that use it, of those that were asked for.
    pub open: u64,
}

/// What is new of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sign {
    /// It was reached.
    pub contact: bool,
    /// Something succeeded there.
    pub success: bool,
    /// Something failed there.
    pub fault: Option<Fault>,
}

impl HealthRow {
    /// Takes in what is new.
    pub fn add(&mut self, sign: Sign, now: Moment) {
        if sign.contact || sign.success {
            self.contact = Some(now);
        }
        if sign.success {
            self.success = Some(now);
        }
        if sign.fault.is_some() {
            self.fault = sign.fault;
        }
    }
}

/// What is kept in memory.
#[derive(Debug, Default)]
pub struct Healths(BTreeMap<String, HealthRow>);

impl Healths {
    /// Takes in what is new.
    pub fn add(&mut self, signs: BTreeMap<String, Sign>, now: Moment) {
        for (endpoint, sign) in signs {
            self.0.entry(endpoint).or_default().add(sign, now);
        }
    }

    /// Keeps what a test has found.
    pub fn note_test(&mut self, endpoint: &str, test: &EndpointTest, now: Moment) {
        let row = self.0.entry(endpoint.to_owned()).or_default();
        row.add(of_test(test, now), now);
        row.test = Some((now, test.clone()));
    }

    /// Forgets an endpoint that is gone, or is another one now.
    pub fn remove(&mut self, endpoint: &str) {
        self.0.remove(endpoint);
    }

    /// What is known of one endpoint, or of all; `open` has the endpoints of each open task.
    pub fn list<'a>(
        &self,
        endpoint: Option<&str>,
        open: impl Iterator<Item = &'a String>,
    ) -> BTreeMap<String, HealthRow> {
        let is_meant = |name: &str| endpoint.is_none_or(|wanted| wanted == name);
        let known = self.0.iter().filter(|(name, _)| is_meant(name));
        let mut health: BTreeMap<String, HealthRow> = known.map(|(name, row)| (name.clone(), row.clone())).collect();
        for name in open.filter(|name| is_meant(name)) {
            health.entry(name.clone()).or_default().open += 1;
        }
        health
    }
}

/// What a test has shown of its endpoint.
pub fn of_test(test: &EndpointTest, now: Moment) -> Sign {
    let reached = test.checks.iter().any(|check| check.ok == Some(true));
    let bad = test.checks.iter().find(|check| check.ok == Some(false));
    let fault = (!test.ok).then(|| Fault {
        time: now,
        unreached: !reached,
        code: "test".to_owned(),
        why: bad.map_or_else(String::new, |check| format!("{}: {}", check.name, check.told)),
        task: None,
    });
    Sign { contact: reached, success: test.ok, fault }
}

/// What a change of a task shows of its endpoints, by their names.
pub fn of_change(before: &Before, after: &Task, events: &[NewEvent], now: Moment) -> BTreeMap<String, Sign> {
    let mut signs: BTreeMap<String, Sign> = BTreeMap::new();
    let names = endpoints_of(&after.request);
    if before.has_got_on(after) && is_one_route(after) {
        for name in &names {
            signs.entry(name.clone()).or_default().contact = true;
        }
    }
    if before.state != Some(TaskState::Succeeded) && after.state == TaskState::Succeeded {
        for name in &names {
            signs.entry(name.clone()).or_default().success = true;
        }
    }
    for failure in events.iter().filter_map(failure) {
        let Some(name) = failure.endpoint.clone().filter(|name| names.contains(name)) else { continue };
        let sign = signs.entry(name).or_default();
        let fault = |unreached| Fault {
            time: now,
            unreached,
            code: failure.code.clone(),
            why: failure.why.clone(),
            task: Some((after.id.clone(), after.owner.clone())),
        };
        match meaning(&failure.code) {
            Meaning::Unreached => sign.fault = Some(fault(!sign.contact)),
            Meaning::Faulty => *sign = Sign { contact: true, fault: Some(fault(false)), ..sign.clone() },
            Meaning::Reached => sign.contact = true,
            Meaning::Nothing => {}
        }
    }
    signs
}

/// Whether all pairs are between the same endpoints: what such a task has moved was moved between these.
fn is_one_route(task: &Task) -> bool {
    let route = |pair: &crate::model::Pair| (endpoint_of(&pair.source), pair.destination.as_deref().map(endpoint_of));
    task.request.pairs.iter().map(route).collect::<BTreeSet<_>>().len() == 1
}

/// Why an attempt or a task failed, or lost a session.
fn failure(event: &NewEvent) -> Option<TaskFailure> {
    let is_told = matches!(event.kind, EventKind::Fault | EventKind::Ended);
    let told = is_told.then(|| event.detail.get("failure").or_else(|| event.detail.get("lost")))??;
    serde_json::from_value(told.clone()).ok()
}

/// What a failure at an endpoint's own side says of the endpoint.
enum Meaning {
    /// It was not reached, or let nobody in.
    Unreached,
    /// It was reached, and does not do what it should.
    Faulty,
    /// It was reached, and is well: what was asked for is not there, or not allowed.
    Reached,
    Nothing,
}

fn meaning(code: &str) -> Meaning {
    let Some(code) = ErrorCode::ALL.iter().find(|known| known.name() == code) else { return Meaning::Nothing };
    match (code, code.blame()) {
        (ErrorCode::NodeReadOnly | ErrorCode::OutsideRoot, _) => Meaning::Reached,
        (ErrorCode::Busy, _) | (ErrorCode::ProtocolViolation | ErrorCode::BadPath, _) => Meaning::Faulty,
        (
            ErrorCode::InputOutput
            | ErrorCode::NoSpace
            | ErrorCode::QuotaExceeded
            | ErrorCode::ReadOnlyFileSystem
            | ErrorCode::DigestMismatch
            | ErrorCode::ResourceLimit,
            _,
        ) => Meaning::Faulty,
        (_, Blame::Network | Blame::Authorization | Blame::Peer) => Meaning::Unreached,
        (_, Blame::File) => Meaning::Reached,
        (_, Blame::User | Blame::Carrack) => Meaning::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EndpointCheck;

    #[test]
    fn failures_of_files_say_that_an_endpoint_was_reached_and_those_of_its_host_that_it_was_not() {
        let count =
            |which: fn(&Meaning) -> bool| ErrorCode::ALL.iter().filter(|code| which(&meaning(code.name()))).count();
        for (code, unreached, faulty, reached) in [
            (ErrorCode::ConnectFailed, true, false, false),
            (ErrorCode::AuthenticationFailed, true, false, false),
            (ErrorCode::KeyMismatch, true, false, false),
            (ErrorCode::Silence, true, false, false),
            (ErrorCode::VersionMismatch, true, false, false),
            (ErrorCode::Busy, false, true, false),
            (ErrorCode::NoSpace, false, true, false),
            (ErrorCode::InputOutput, false, true, false),
            (ErrorCode::NotFound, false, false, true),
            (ErrorCode::PermissionDenied, false, false, true),
            (ErrorCode::OutsideRoot, false, false, true),
            (ErrorCode::DeadlinePassed, false, false, false),
            (ErrorCode::Internal, false, false, false),
        ] {
            let meaning = meaning(code.name());
            let told = (
                matches!(meaning, Meaning::Unreached),
                matches!(meaning, Meaning::Faulty),
                matches!(meaning, Meaning::Reached),
            );
            assert_eq!(told, (unreached, faulty, reached), "{}", code.name());
        }
        // A code of a newer program says nothing.
        assert!(matches!(meaning("on-the-moon"), Meaning::Nothing));
        assert!(count(|meaning| matches!(meaning, Meaning::Unreached)) > 8);
    }

    #[test]
    fn test_of_an_endpoint_that_reaches_nothing_finds_it_down() {
        let check = |ok| EndpointCheck { name: "root".into(), ok, told: "told".into(), fix: None };
        for (checks, contact, success, unreached) in [
            (vec![Some(true), None], true, true, None),
            (vec![Some(true), Some(false)], true, false, Some(false)),
            (vec![Some(false)], false, false, Some(true)),
        ] {
            let ok = !checks.contains(&Some(false));
            let test = EndpointTest { ok, checks: checks.into_iter().map(check).collect() };
            let sign = of_test(&test, Moment(7));
            assert_eq!((sign.contact, sign.success), (contact, success), "{test:?}");
            assert_eq!(sign.fault.map(|fault| fault.unreached), unreached, "{test:?}");
        }
    }
}
