//! What is to be examined, and what was found.

use carrack_core::location::Location;
use carrack_core::request::EndOptions;
use carrack_doctor::{Finding, Severity, Situation, Wish, diagnose};

use crate::exit;

/// What to examine.
pub struct DoctorRequest {
    /// The first host.
    pub near: (Location, EndOptions),
    /// The second, if the path between two is examined.
    pub far: Option<(Location, EndOptions)>,
    /// What the user wants of the path.
    pub wish: Wish,
    /// Whether the path is measured: some seconds in which it is full.
    pub measures: bool,
    /// Whether this host's storage and processors are measured.
    pub measures_host: bool,
}

/// What was found.
pub struct Diagnosis {
    /// The hosts, as messages call them.
    pub hosts: [Option<String>; 2],
    /// The findings, worst first.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// What the rules find.
    pub fn of(situation: &Situation) -> Self {
        let hosts = [Some(&situation.near), situation.far.as_ref()].map(|host| host.map(|host| host.name.clone()));
        Self { hosts, findings: diagnose(situation) }
    }

    /// How many findings are of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// 0 if there is nothing to mend, 1 for warnings, 3 for failures.
    pub fn exit_code(&self) -> u8 {
        match (self.count(Severity::Failure), self.count(Severity::Warning)) {
            (0, 0) => exit::DONE,
            (0, _) => exit::WARNINGS,
            (_, _) => exit::FAILURES,
        }
    }
}
