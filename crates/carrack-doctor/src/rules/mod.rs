//! The rules: what each compares, why, and where that is from. A subject is one file here, with its table.

mod arrays;
mod causes;
mod clock;
mod detour;
mod hardware;
mod hosts;
mod interface;
mod memory;
mod middlebox;
mod path;
mod processor;
mod session;
mod settings;
mod sshd;
mod storage;
mod tcp;
mod threshold;

use std::time::Duration;

use crate::facts::HostFacts;
use crate::finding::{EvidenceClass, Finding, Fix, Severity};
use crate::known::Known;
use crate::parameter::Parameter;
use crate::situation::{HostSide, Situation, Way};

pub use self::threshold::{Limit, Threshold};

/// Bits a second of an interface from which on a host has to be tuned,
const FAST: u64 = 10_000_000_000;
/// and from which on it needs all that there is.
const FASTEST: u64 = 100_000_000_000;

/// The largest number that most parameters of the kernel take.
const NUMBER_MAX: i64 = 2_147_483_647;

/// All tables, in the order in which equally bad findings are told.
pub const ALL: &[&[Rule]] = &[
    path::RULES,
    tcp::RULES,
    interface::RULES,
    middlebox::RULES,
    storage::RULES,
    arrays::RULES,
    processor::RULES,
    memory::RULES,
    session::RULES,
    sshd::RULES,
    hosts::RULES,
    clock::RULES,
    settings::RULES,
    hardware::RULES,
];

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, for ever: `tcp.receive-buffer`.
    pub id: &'static str,
    /// What should be.
    pub threshold: Threshold,
    /// Why.
    pub reason: &'static str,
    /// Where that is from.
    pub source: &'static str,
    /// What that rests on.
    pub class: EvidenceClass,
    /// How it is found out.
    pub(crate) check: Check,
}

/// How a rule looks.
#[derive(Debug)]
pub(crate) enum Check {
    /// At each host by itself.
    Host(fn(&View<'_>) -> Known<Vec<Told>>),
    /// At each host, of the interface that carries the data and of all that it is put together from.
    Carrier(fn(&View<'_>) -> Known<Vec<Told>>),
    /// At the path between two.
    Path(fn(&Situation) -> Known<Vec<Told>>),
}

/// One host, and what is around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// Everything.
    pub situation: &'a Situation,
    /// The host that is looked at.
    pub facts: HostFacts<'a>,
    /// The other host, if it says something.
    pub other: Option<HostFacts<'a>>,
}

impl View<'_> {
    /// The direction in which this host sends.
    pub fn sending(&self) -> &Way {
        self.situation.path.from(self.facts.side)
    }

    /// Whether what a counter since the start of the host has met comes once in this time, or more often, in the mean.
    /// Of a host that does not tell when it started, anything counts.
    pub fn is_often(&self, count: u64, every: Duration) -> bool {
        let uptime = self.facts.uptime().unwrap_or(Duration::ZERO);
        count > 0 && count as f64 * every.as_secs_f64() >= uptime.as_secs_f64()
    }
}

/// What a rule has to say: a finding without what the rule's table says already.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    severity: Severity,
    value: String,
    subject: String,
    threshold: Option<String>,
    cost: String,
    fix: Option<Fix>,
    side: Option<HostSide>,
}

impl Told {
    /// A finding of this severity.
    pub fn new(severity: Severity, value: impl Into<String>) -> Self {
        let (subject, cost) = (String::new(), String::new());
        Self { severity, value: value.into(), subject, threshold: None, cost, fix: None, side: None }
    }

    /// As it should be.
    pub fn ok(value: impl Into<String>) -> Self {
        Self::new(Severity::Ok, value)
    }

    /// It costs speed.
    pub fn warning(value: impl Into<String>) -> Self {
        Self::new(Severity::Warning, value)
    }

    /// Data does not move, or not at a useful rate.
    pub fn failure(value: impl Into<String>) -> Self {
        Self::new(Severity::Failure, value)
    }

    /// It cannot be known.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(Severity::Unknown, why)
    }

    /// What it is about.
    pub fn about(self, subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..self }
    }

    /// What it should be here, where the rule's own words are not enough.
    pub fn should_be(self, threshold: impl Into<String>) -> Self {
        Self { threshold: Some(threshold.into()), ..self }
    }

    /// What it costs.
    pub fn costs(self, cost: impl Into<String>) -> Self {
        Self { cost: cost.into(), ..self }
    }

    /// A kernel parameter mends it.
    pub fn sysctl(self, parameter: Parameter, value: impl Into<String>) -> Self {
        self.fix(Fix::Sysctl { name: parameter.name().to_owned(), value: value.into() })
    }

    /// A command mends it.
    pub fn command(self, line: impl Into<String>) -> Self {
        self.fix(Fix::Command(line.into()))
    }

    /// A person has to mend it.
    pub fn advice(self, line: impl Into<String>) -> Self {
        self.fix(Fix::Advice(line.into()))
    }

    /// What mends it is for this host.
    pub fn at(self, side: HostSide) -> Self {
        Self { side: Some(side), ..self }
    }

    fn fix(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }
}

impl Rule {
    /// What this rule finds; of each host, where it is about hosts.
    pub fn find(&self, situation: &Situation) -> Vec<Finding> {
        let told = |side: Option<HostSide>, told: Known<Vec<Told>>| {
            let told = told.unwrap_or_else(|why| vec![Told::unknown(why.0)]);
            told.into_iter().map(|told| self.finding(side, told)).collect::<Vec<_>>()
        };
        match self.check {
            Check::Path(check) => told(None, check(situation)),
            Check::Host(check) => each_host(situation, |view| told(Some(view.facts.side), check(view))),
            Check::Carrier(check) => {
                each_host(situation, |view| told(Some(view.facts.side), of_each_carrier(check, view)))
            }
        }
    }

    fn finding(&self, side: Option<HostSide>, told: Told) -> Finding {
        Finding {
            rule: self.id,
            side: told.side.or(side),
            subject: told.subject,
            severity: told.severity,
            value: told.value,
            threshold: told.threshold.unwrap_or_else(|| self.threshold.to_string()),
            cost: told.cost,
            fix: told.fix,
            source: self.source,
            class: self.class,
        }
    }
}

/// What is found at each host that says something.
fn each_host(situation: &Situation, check: impl Fn(&View<'_>) -> Vec<Finding>) -> Vec<Finding> {
    let facts = |side| situation.host(side).and_then(|host| HostFacts::of(side, host).ok());
    let views = HostSide::ALL.iter().filter_map(|&side| {
        let view = View { situation, facts: facts(side)?, other: facts(side.other()) };
        Some(check(&view))
    });
    views.flatten().collect()
}

/// What is to be mended of any of them; if nothing is, what the topmost says that knows something.
fn of_each_carrier(check: fn(&View<'_>) -> Known<Vec<Told>>, view: &View<'_>) -> Known<Vec<Told>> {
    let names = view.facts.carriers()?;
    let mut all: Vec<Known<Vec<Told>>> =
        names.into_iter().map(|name| check(&View { facts: view.facts.on(name), ..*view })).collect();
    if all.len() == 1 {
        return all.remove(0);
    }
    let said = all.iter().flatten().flatten();
    let bad: Vec<Told> = said.filter(|told| told.severity >= Severity::Warning).cloned().collect();
    if !bad.is_empty() {
        return Ok(bad);
    }
    let knows =
        |told: &Known<Vec<Told>>| told.as_ref().is_ok_and(|told| told.iter().any(|told| told.severity == Severity::Ok));
    let at = all.iter().position(knows).unwrap_or(0);
    all.swap_remove(at)
}

/// The command that changes routes to such an address.
fn ip(address: &str) -> &'static str {
    if address.contains(':') { "ip -6" } else { "ip" }
}
