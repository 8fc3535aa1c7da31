//! Faults that strangers planted on hosts, as far as recorded facts show them, and hosts that nothing is wrong with.
//! Plain data that needs nothing but the standard library. What reads it decides how: the rules alone, or the program.

#[path = "planted/hosts.rs"]
pub mod hosts;
#[path = "planted/network.rs"]
mod network;
#[path = "planted/services.rs"]
mod services;
#[path = "planted/storage.rs"]
mod storage;

pub use hosts::HEALTHY;

/// A text of a host: its name as in the directories of fixtures, and its content.
pub type NamedText = (&'static str, &'static str);

/// A host that nothing is wrong with.
#[derive(Debug)]
pub struct HealthyHost {
    /// In plain English.
    pub name: &'static str,
    /// Its directory in `tests/fixtures`.
    pub fixture: &'static str,
    /// Texts in the place of those of the fixture, or beside them; later ones replace earlier ones.
    pub texts: &'static [&'static [NamedText]],
    /// Rules that know it to be right: what this host is about, and its fixture alone would not show.
    pub known: &'static [&'static str],
    /// The round trip that it is set up for, in microseconds.
    pub round_trip_us: u64,
}

/// A fault of a host.
#[derive(Debug)]
pub struct PlantedFault {
    /// Its number in docs/internals/testing.md; `None` of what strangers did not plant.
    pub number: Option<u8>,
    /// In plain English.
    pub name: &'static str,
    /// The host that it is planted on.
    pub on: &'static HealthyHost,
    /// Texts that are replaced or added.
    pub texts: &'static [NamedText],
    /// Which of two hosts has it, as `--json` names it.
    pub side: &'static str,
    /// The rule that names it, and no other.
    pub rule: &'static str,
    /// What it is about, where the rule tells that.
    pub subject: &'static str,
    /// How bad it is, as `--json` names it.
    pub severity: &'static str,
    /// A part of the line or of the advice that mends it.
    pub mends: &'static str,
}

pub const NEAR: &str = "near";
pub const FAR: &str = "far";
pub const WARNING: &str = "warning";
pub const FAILURE: &str = "failure";

/// Every fault, by subject.
pub const FAULTS: &[&[PlantedFault]] = &[network::FAULTS, storage::FAULTS, services::FAULTS];
