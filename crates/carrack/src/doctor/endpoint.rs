//! What is told of an endpoint's host when the endpoint is tested: its space, its clock, the data connections between
//! the service and it, and the worst of what the rules find.

use carrack_core::location::Location;
use carrack_core::request::EndOptions;
use carrack_doctor::{Finding, HostSide, Severity, Situation, Wish};
use carrack_engine::Context;
use carrack_service::model::EndpointCheck;

use super::diagnosis::{Diagnosis, DoctorRequest};
use super::examine::examine;
use crate::output::hints;

/// Findings that are told beside those that are always told.
const MOST: usize = 6;
/// Rules that are always told, and what they are called.
const ALWAYS: [(&str, &str); 3] = [("storage.room", "space"), ("storage.inodes", "inodes"), ("clock.offset", "clock")];

/// Examines the host of an endpoint at this location. Nothing is measured: it takes a few seconds.
pub fn checks(location: &Location, options: &EndOptions, context: &Context) -> Vec<EndpointCheck> {
    let end = (location.clone(), options.clone());
    let is_here = matches!(location, Location::Local(_));
    let (near, far) = if is_here {
        (end, None)
    } else {
        (
            (Location::Local(b".".to_vec()), EndOptions { reach: options.reach.clone(), ..EndOptions::default() }),
            Some(end),
        )
    };
    let request = DoctorRequest { near, far, wish: Wish::default(), measures: false, measures_host: false };
    match examine(&request, context, &|_| {}) {
        Ok(situation) => of(&situation),
        Err(failure) => {
            let fix = hints::of(&failure).map(str::to_owned);
            vec![EndpointCheck { name: "host".to_owned(), ok: None, told: failure.message(), fix }]
        }
    }
}

/// What is told of a situation: the endpoint's host is the far one, or the only one.
fn of(situation: &Situation) -> Vec<EndpointCheck> {
    let side = if situation.is_alone() { HostSide::Near } else { HostSide::Far };
    let diagnosis = Diagnosis::of(situation);
    let mut checks = Vec::new();
    for (rule, name) in ALWAYS {
        let findings = diagnosis.findings.iter().filter(|finding| finding.rule == rule && finding.side == Some(side));
        checks.extend(findings.map(|finding| check(name.to_owned(), finding)));
    }
    checks.extend(connections(situation));
    let others = diagnosis.findings.iter().filter(|finding| {
        let is_told = ALWAYS.iter().any(|(rule, _)| *rule == finding.rule) || finding.rule == "path.firewall";
        let is_of_endpoint = finding.side.is_none_or(|of| of == side);
        finding.severity >= Severity::Warning && is_of_endpoint && !is_told
    });
    // What is wrong with the host is told beside the test. The endpoint itself was listed, written and read.
    let beside = |finding: &Finding| EndpointCheck { ok: None, ..check(format!("doctor {}", finding.rule), finding) };
    checks.extend(others.take(MOST).map(beside));
    checks
}

fn check(name: String, finding: &Finding) -> EndpointCheck {
    let ok = match finding.severity {
        Severity::Ok => Some(true),
        Severity::Failure => Some(false),
        Severity::Unknown | Severity::Warning => None,
    };
    let told = match (finding.subject.is_empty(), finding.cost.is_empty()) {
        (true, true) => finding.value.clone(),
        (true, false) => format!("{}; {}", finding.value, finding.cost),
        (false, true) => format!("{}: {}", finding.subject, finding.value),
        (false, false) => format!("{}: {}; {}", finding.subject, finding.value, finding.cost),
    };
    EndpointCheck { name, ok, told, fix: finding.fix.as_ref().map(carrack_doctor::Fix::line) }
}

/// The data connections from the service to there and back. One of them is enough for a copy.
fn connections(situation: &Situation) -> Vec<EndpointCheck> {
    let ways = [
        ("data port there", "a data connection to there can be made", &situation.path.there.connection),
        (
            "data port here",
            "a data connection from there to the service's host can be made",
            &situation.path.back.connection,
        ),
    ];
    let works = ways.iter().any(|(.., tried)| matches!(tried, Some(Ok(()))));
    let told = |(name, good, tried): (&str, &str, &Option<Result<(), String>>)| {
        let (ok, told, fix) = match tried.as_ref()? {
            Ok(()) => (Some(true), good.to_owned(), None),
            Err(why) => {
                let cost = if works { "copies use the other way" } else { "all data goes through one stream" };
                let fix = "let TCP in on a range of ports there, and name it: --ports 50000-50100";
                ((!works).then_some(false), format!("{why}; {cost}"), Some(fix.to_owned()))
            }
        };
        Some(EndpointCheck { name: name.to_owned(), ok, told, fix })
    };
    ways.into_iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use carrack_core::evidence::{Evidence, EvidenceText};
    use carrack_doctor::{Host, Path, Way};

    use super::*;

    fn host(name: &str, texts: &[(&str, &str)]) -> Host {
        let mut evidence = Evidence::default();
        texts.iter().for_each(|(name, text)| evidence.put(name, EvidenceText::Found((*text).to_owned())));
        Host { name: name.to_owned(), evidence: Ok(evidence) }
    }

    fn way(connection: Result<(), &str>) -> Way {
        Way { connection: Some(connection.map_err(str::to_owned)), ..Way::default() }
    }

    fn find<'a>(checks: &'a [EndpointCheck], name: &str) -> &'a EndpointCheck {
        checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("{name}: {checks:?}"))
    }

    #[test]
    fn endpoint_test_shows_faults_of_the_host_beside_and_does_not_fail_by_them() {
        let lost = "Buffer I/O error on dev sdb1, logical block 7, lost async page write";
        let here = host(
            "here",
            &[
                ("directory/path", "/data"),
                ("directory/devices", "sdb1\nsdb"),
                ("kernel-log", lost),
                ("kernel-log-ages", "60"),
            ],
        );
        let checks = of(&Situation::of(here));
        let log = find(&checks, "doctor hardware.log");
        assert!(log.ok.is_none() && log.told.contains("sdb1") && log.fix.is_some(), "{log:?}");
        assert!(checks.iter().all(|check| check.ok != Some(false)), "{checks:?}");
    }

    #[test]
    fn endpoint_test_tells_space_clock_and_connections_of_its_host() {
        let far = host(
            "far",
            &[
                ("directory/path", "/data"),
                (
                    "directory/statvfs",
                    "block-size 4096\nblocks 1000000\navailable 5000\nfiles 1000\nfiles-available 900",
                ),
                ("clock/now", "90000000000"),
                ("clock/asked", "10000000000"),
                ("clock/answered", "11000000000"),
            ],
        );
        let path = Path { there: way(Err("timed out")), back: way(Ok(())), ..Path::default() };
        let situation = Situation { far: Some(far), path, ..Situation::of(host("near", &[])) };
        let checks = of(&situation);
        let space = find(&checks, "space");
        assert!(space.ok == Some(false) && space.fix.is_some() && space.told.contains("free of"), "{space:?}");
        assert_eq!(find(&checks, "inodes").ok, Some(true));
        let clock = find(&checks, "clock");
        assert!(clock.ok.is_none() && clock.told.contains("ahead") && clock.fix.is_some(), "{clock:?}");
        // One way is enough.
        let (there, back) = (find(&checks, "data port there"), find(&checks, "data port here"));
        assert!(there.ok.is_none() && there.told.contains("timed out") && there.fix.is_some(), "{there:?}");
        assert_eq!(back.ok, Some(true));
        let path = Path { there: way(Err("refused")), back: way(Err("refused")), ..Path::default() };
        let checks = of(&Situation { path, ..situation });
        assert_eq!([find(&checks, "data port there").ok, find(&checks, "data port here").ok], [Some(false); 2]);
        assert!(checks.iter().filter(|check| check.name.starts_with("doctor ")).count() <= MOST);
    }
}
