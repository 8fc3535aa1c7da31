//! What is wrong with a host, or with a pair of hosts, for moving data; what that costs; and what mends it.
//!
//! Hosts give evidence ([`carrack_core::evidence`]): texts of the kernel, of files and of tools. [`facts`] makes typed
//! values of it, of which each is known or says why it is not. [`rules`] are pure functions from a [`Situation`] to
//! [`Finding`]s. Where a rule cannot know, its finding is *unknown*, never a guess.
//!
//! To add a subject: a file in `facts/`, a file in `rules/`, and its table in [`rules::ALL`]. docs/doctor.md has a row
//! for each rule, which a test compares.

pub mod facts;
mod finding;
mod known;
mod parameter;
pub mod rules;
mod situation;
mod units;

pub use finding::{EvidenceClass, Finding, Fix, Severity, sort};
pub use known::{Known, Unknown};
pub use parameter::Parameter;
pub use situation::{Host, HostSide, Path, Situation, Way, Wish};

/// Everything that the rules find, worst first.
pub fn diagnose(situation: &Situation) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        rules::ALL.iter().flat_map(|table| *table).flat_map(|rule| rule.find(situation)).collect();
    sort(&mut findings);
    findings
}
