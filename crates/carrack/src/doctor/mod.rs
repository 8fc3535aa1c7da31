//! Examining hosts: what they say of themselves, what the path between them carries now, and what the rules find.

pub mod change;
#[cfg(feature = "service")]
pub mod endpoint;
pub mod fix;
mod gain;
mod measured;
pub mod objects;
pub mod page;
mod path;
pub mod terminal;

use carrack_core::evidence::Evidence;
use carrack_core::failure::Failure;
use carrack_core::location::Location;
use carrack_core::report::Event;
use carrack_core::request::EndOptions;
use carrack_doctor::{Finding, Host, HostSide, Severity, Situation, Way, Wish, diagnose};
use carrack_engine::Context;
use carrack_engine::examine::{self, Examined, ExaminedPath, ExaminedPlace, HostEvidence};

use crate::exit;
use crate::output::hints;

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
    /// What the hosts have said, by their sides: `near`, `far`.
    pub evidence: Vec<(&'static str, Evidence)>,
}

impl Diagnosis {
    /// What the rules find.
    pub fn of(situation: &Situation) -> Self {
        let hosts = [Some(&situation.near), situation.far.as_ref()].map(|host| host.map(|host| host.name.clone()));
        let said = |(side, host): (HostSide, &Host)| Some((side.name(), host.evidence.clone().ok()?));
        let evidence = situation.sides().filter_map(said).collect();
        Self { hosts, findings: diagnose(situation), evidence }
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

/// Examines, and judges nothing. `observer` hears of what happens meanwhile.
///
/// # Errors
/// When the first host cannot be asked, or the work is to stop.
pub fn examine(
    request: &DoctorRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
) -> Result<Situation, Failure> {
    let place = |(location, options): &'_ (Location, EndOptions)| (location.clone(), options.clone());
    let (location, options) = place(&request.near);
    let near = ExaminedPlace { location: &location, options: &options };
    let mut situation = match &request.far {
        None => Situation { wish: request.wish, ..Situation::of(host(examine::host(near, context, observer)?)) },
        Some(far) => {
            let (location, options) = place(far);
            let examined =
                examine::pair(near, ExaminedPlace { location: &location, options: &options }, context, observer)?;
            let mut situation = situation(examined, request.wish);
            if request.measures && situation.far.is_some() {
                path::measure(request, context, observer, &mut situation)?;
            }
            situation
        }
    };
    if request.measures_host {
        measured::measure(request, context, observer, &mut situation)?;
    }
    Ok(situation)
}

fn situation(examined: Examined, wish: Wish) -> Situation {
    let (far, unreached) = match examined.far {
        Ok(far) => (Some(host(far)), None),
        Err(why) => (None, Some((why.message(), hints::of(&why).map(str::to_owned)))),
    };
    let round_trip = |path: &Option<Result<ExaminedPath, Failure>>| {
        path.as_ref().and_then(|path| path.as_ref().ok()).map(|path| path.round_trip).filter(|time| !time.is_zero())
    };
    let way = |path: &Option<Result<ExaminedPath, Failure>>| Way {
        connection: path.as_ref().map(|path| path.as_ref().map(|_| ()).map_err(Failure::message)),
        ..Way::default()
    };
    let path = carrack_doctor::Path {
        round_trip: round_trip(&examined.there).or_else(|| round_trip(&examined.back)),
        there: way(&examined.there),
        back: way(&examined.back),
    };
    Situation { near: host(examined.near), far, unreached, path, wish }
}

fn host(said: HostEvidence) -> Host {
    Host { name: said.name, evidence: said.evidence.map_err(|why| why.message()) }
}
