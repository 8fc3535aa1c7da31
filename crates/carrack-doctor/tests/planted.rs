//! Faults that strangers planted on hosts, each alone on a host that nothing is wrong with: each is named, at the host
//! that has it, with the line that mends it, and nothing else is. And twenty such hosts, of which nothing is said.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/planted.rs"]
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use carrack_core::evidence::EvidenceText;
use carrack_core::report::PathTrace;
use carrack_doctor::{Finding, Host, HostSide, Path, Severity, Situation, Way, diagnose};

use table::{FAULTS, HEALTHY, HealthyHost, NamedText, PlantedFault};

/// A host of the tables, with more texts.
fn host(of: &HealthyHost, more: &[NamedText]) -> Host {
    let mut host = support::host(of.fixture);
    let evidence = host.evidence.as_mut().unwrap();
    for (name, text) in of.texts.iter().copied().flatten().chain(more) {
        match name.strip_suffix(".absent") {
            Some(name) => evidence.put(name, EvidenceText::Absent),
            None => evidence.put(name, EvidenceText::Found((*text).to_owned())),
        }
    }
    assert!(!evidence.is_cut(), "{} says too much", of.name);
    host
}

/// A way on which nothing is lost, refused or too small.
fn clean_way(round_trip: Duration) -> Path {
    let trace = PathTrace { mtu_bytes: Some(1400), reached: true, is_mtu_proved: true, ..PathTrace::default() };
    let way = Way { connection: Some(Ok(())), trace: Some(trace), resent: Some((0, 30_000)), ..Way::default() };
    Path { round_trip: Some(round_trip), there: way.clone(), back: way }
}

/// What is found where two such hosts have a clean way between them.
fn of_pair(near: Host, far: Host, round_trip_us: u64) -> Vec<Finding> {
    let path = clean_way(Duration::from_micros(round_trip_us));
    diagnose(&Situation { far: Some(far), path, ..Situation::of(near) })
}

/// The same of twins, of which one has these texts as well.
fn of_twins(of: &HealthyHost, side: HostSide, more: &[NamedText]) -> Vec<Finding> {
    let (own, twin) = (host(of, more), host(of, &[]));
    match side {
        HostSide::Near => of_pair(own, twin, of.round_trip_us),
        HostSide::Far => of_pair(twin, own, of.round_trip_us),
    }
}

fn is_bad(finding: &&Finding) -> bool {
    finding.severity >= Severity::Warning
}

/// In words: where, which rule, how bad, about what, what was found.
fn told(finding: &Finding) -> String {
    let side = finding.side.map_or("path", |side| side.name());
    let Finding { rule, severity, subject, value, .. } = finding;
    format!("{side} {rule} {} [{subject}] {value}", severity.name())
}

fn line(finding: &Finding) -> String {
    finding.fix.as_ref().map(|fix| fix.line()).unwrap_or_default()
}

/// What is wrong with what is found where the fault is planted at this side.
fn misses(fault: &PlantedFault, side: HostSide, found: &[Finding]) -> Vec<String> {
    let mut wrong = Vec::new();
    let bad: Vec<&Finding> = found.iter().filter(is_bad).collect();
    let is_it = |one: &Finding| one.rule == fault.rule && one.side == Some(side);
    let others = bad.iter().filter(|one| !is_it(one));
    wrong.extend(others.map(|one| format!("also finds {}", told(one))));
    match bad.iter().filter(|one| is_it(one)).collect::<Vec<_>>()[..] {
        [] => wrong.push("is not found".to_owned()),
        [one] if one.severity.name() != fault.severity || one.subject != fault.subject => {
            wrong.push(format!("is told as {}", told(one)));
        }
        [one] if !line(one).contains(fault.mends) => wrong.push(format!("is mended by {:?}", line(one))),
        [_] => {}
        ref several => wrong.push(format!("is told {} times", several.len())),
    }
    wrong
}

/// All that is wrong at once.
#[track_caller]
fn is_empty(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn planted_fault_is_named_at_its_host_with_its_line_and_nothing_else_is() {
    let mut wrong = Vec::new();
    for fault in FAULTS.iter().copied().flatten() {
        let name = fault.name;
        let own = HostSide::ALL.iter().copied().find(|side| side.name() == fault.side);
        let Some(own) = own else {
            wrong.push(format!("{name}: there is no side {:?}", fault.side));
            continue;
        };
        let before = of_twins(fault.on, own, &[]);
        let before = before.iter().filter(is_bad).map(|one| format!("{name}: before it is planted: {}", told(one)));
        wrong.extend(before);
        // What is found of a host does not depend on which of two it is.
        for side in [own, own.other()] {
            let found = of_twins(fault.on, side, fault.texts);
            let misses = misses(fault, side, &found);
            wrong.extend(misses.into_iter().map(|what| format!("{name}, planted {}: {what}", side.name())));
        }
        let alone = diagnose(&Situation::of(host(fault.on, fault.texts)));
        let is_told =
            |one: &Finding| one.rule == fault.rule && line(one).contains(fault.mends.split('=').next().unwrap());
        if !alone.iter().filter(is_bad).any(is_told) {
            wrong.push(format!("{name}: is not found where no other host is named"));
        }
    }
    is_empty(&wrong);
}

#[test]
fn healthy_host_has_nothing_to_mend() {
    let mut wrong = Vec::new();
    let mut names = BTreeSet::new();
    for healthy in HEALTHY {
        assert!(names.insert(healthy.name), "{} is there twice", healthy.name);
        let alone = diagnose(&Situation::of(host(healthy, &[])));
        let pair = of_twins(healthy, HostSide::Near, &[]);
        for (where_, found) in [("alone", &alone), ("with its twin", &pair)] {
            wrong.extend(found.iter().filter(is_bad).map(|one| format!("{}, {where_}: {}", healthy.name, told(one))));
            // A host of which nothing is known has nothing to mend either.
            let knows = |rule: &str| found.iter().any(|one| one.rule == rule && one.severity == Severity::Ok);
            let unknown = healthy.known.iter().filter(|rule| !knows(rule));
            wrong.extend(unknown.map(|rule| format!("{}, {where_}: {rule} does not know it", healthy.name)));
        }
    }
    assert_eq!(HEALTHY.len(), 20);
    is_empty(&wrong);
}

/// A loss is that of the host whose packets are sent again.
#[test]
fn loss_of_one_way_is_that_of_the_host_that_sends() {
    let of = |there: u64, back: u64| {
        let mut path = clean_way(Duration::from_millis(40));
        (path.there.resent, path.back.resent) = (Some((there, 30_000)), Some((back, 30_000)));
        let (near, far) = (host(&table::hosts::DTN_10G, &[]), host(&table::hosts::DTN_10G, &[]));
        let found = diagnose(&Situation { far: Some(far), path, ..Situation::of(near) });
        let lossy = found.iter().filter(is_bad).map(|one| (one.rule, one.side, line(one).contains("bbr")));
        lossy.collect::<Vec<_>>()
    };
    let at = |side: HostSide| ("path.loss", Some(side), true);
    assert_eq!(of(0, 0), []);
    assert_eq!(of(150, 0), [at(HostSide::Near)]);
    assert_eq!(of(0, 150), [at(HostSide::Far)]);
    assert_eq!(of(150, 150), [at(HostSide::Near), at(HostSide::Far)]);
}

/// Headers of IP and TCP of a first packet, as it came to a listener: this largest segment, and all other options.
fn first_packet(segment: u16) -> String {
    let ip = "4500003c1c4640004006b1e6ac10000aac10000b";
    let tcp = "c5e4005036a1c8d700000000a002faf0fe300000";
    format!("{ip}{tcp}0204{segment:04x}0402080a0a1b2c3d0000000001030307")
}

#[test]
fn segment_that_is_lowered_on_the_way_is_named_at_the_host_that_announced_it() {
    let connection = "congestion cubic\ntimestamps 1\nsack 1\nscaling 1\nadvertised-mss 8960\n";
    let of = |there: u16, back: u16| {
        let said = |came: &str| {
            let texts =
                [("connection/1/tcp", connection), ("connection/2/tcp", connection), ("connection/2/syn", came)];
            let mut host = host(&table::hosts::DTN_10G, &[]);
            let evidence = host.evidence.as_mut().unwrap();
            texts.iter().for_each(|(name, text)| evidence.put(name, EvidenceText::Found((*text).to_owned())));
            host
        };
        // What the near host has sent is what has come to the far one.
        let (near, far) = (said(&first_packet(back)), said(&first_packet(there)));
        let found = of_pair(near, far, 40_000);
        let bad = found.iter().filter(is_bad).map(|one| (one.rule, one.side, one.value.clone(), line(one)));
        bad.collect::<Vec<_>>()
    };
    assert_eq!(of(8960, 8960), []);
    for (there, back, side) in [(536, 8960, HostSide::Near), (8960, 536, HostSide::Far)] {
        let found = of(there, back);
        let [(rule, at, value, line)] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((*rule, *at), ("middlebox.segment", Some(side)));
        assert_eq!(value, "8960 bytes were announced, and 536 arrived");
        assert!(line.contains("a tunnel, a VPN or a router on the way"), "{line}");
    }
}

/// A row of the document's table: number, rule, side.
fn rows(document: &str) -> Vec<(u8, String, String, String)> {
    let row = |line: &str| {
        let cells: Vec<&str> =
            line.strip_prefix('|')?.trim_end().strip_suffix('|')?.split('|').map(str::trim).collect();
        let [number, _, rule, side, shown] = cells[..] else { return None };
        Some((number.parse().ok()?, rule.trim_matches('`').to_owned(), side.to_owned(), shown.to_owned()))
    };
    let (_, section) = document.split_once("## Faults that strangers planted").expect("the document has the section");
    section.split("\n## ").next().unwrap().lines().filter_map(row).collect()
}

/// The table of all that strangers planted says of each fault here what is shown here.
#[test]
fn document_has_every_planted_fault() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/testing.md");
    let rows = rows(&std::fs::read_to_string(file).unwrap());
    let numbers: Vec<u8> = rows.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=45).collect::<Vec<u8>>());
    let shown = "`doctor planted::planted_fault_is_named_at_its_host_with_its_line_and_nothing_else_is`";
    let mut wrong = Vec::new();
    for (number, rule, side, by) in &rows {
        let planted = FAULTS.iter().copied().flatten().filter(|fault| fault.number == Some(*number));
        let planted: Vec<&PlantedFault> = planted.collect();
        if planted.is_empty() == by.contains(shown) {
            wrong.push(format!("{number}: {} such faults, and it is shown by {by}", planted.len()));
        }
        let sides: BTreeSet<&str> = planted.iter().map(|fault| fault.side).collect();
        let sides = sides.into_iter().rev().collect::<Vec<_>>().join(", ");
        if !planted.is_empty() && (planted.iter().any(|fault| fault.rule != *rule) || sides != *side) {
            wrong.push(format!("{number}: it is no {rule} of the {side} side"));
        }
    }
    is_empty(&wrong);
}
