//! What the ledger keeps of each endpoint's health, and what a change of a task shows of it. Pure, and the same for
//! every ledger.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::{NewEvent, endpoint_of, endpoints_of};
use super::tally::Before;
use crate::clock::Moment;
use crate::model::{EndpointTest, EventKind, FaultMeaning, Task, TaskFailure, TaskState};

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
        match FaultMeaning::of(&failure.code) {
            FaultMeaning::Unreached => sign.fault = Some(fault(!sign.contact)),
            FaultMeaning::Faulty => *sign = Sign { contact: true, fault: Some(fault(false)), ..sign.clone() },
            FaultMeaning::Reached => sign.contact = true,
            FaultMeaning::Nothing => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EndpointCheck;

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
