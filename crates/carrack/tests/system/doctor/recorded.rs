//! What hosts said is recorded, and examined elsewhere: the faults that strangers planted and the hosts that nothing is
//! wrong with, from recorded facts to the exit code.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Found;
use super::network::{ASK, Far};
use crate::support::Sandbox;
use carrack_faults::link::Setup;

#[path = "../../../../carrack-doctor/tests/support/planted.rs"]
#[allow(dead_code)]
mod table;

use table::{FAULTS, HEALTHY, HealthyHost, NamedText};

/// Writes what a host says: its fixture, with texts in place of some of it or beside it.
fn write(of: &HealthyHost, more: &[NamedText], to: &Path) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../carrack-doctor/tests/fixtures");
    copy(&fixtures.join(of.fixture), to);
    for (name, text) in of.texts.iter().copied().flatten().chain(more) {
        let file = to.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        // What was there, or was not, is replaced.
        let plain = name.strip_suffix(".absent").unwrap_or(name);
        for suffix in ["", ".absent", ".denied", ".failed"] {
            let _ = fs::remove_file(to.join(format!("{plain}{suffix}")));
        }
        fs::write(file, text).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() { copy(&entry.path(), &to) } else { drop(fs::copy(entry.path(), to)) }
    }
}

/// What the program finds of twins, one of which says this as well, with a way between them on which nothing is lost.
fn examined(sandbox: &Sandbox, of: &HealthyHost, side: &str, more: &[NamedText]) -> Found {
    let directory = sandbox.path("said");
    let _ = fs::remove_dir_all(&directory);
    for own in ["near", "far"] {
        write(of, if own == side { more } else { &[] }, &directory.join(own));
    }
    let trace = json!({ "hops": [], "reached": true, "mtu_bytes": 1400, "is_mtu_proved": true });
    let way = json!({ "connection": { "made": true }, "trace": trace, "resent": [0, 30_000] });
    let path = json!({ "path": { "round_trip_us": of.round_trip_us, "there": way, "back": way } });
    fs::write(directory.join("path.json"), path.to_string()).unwrap();
    Found::of(sandbox.run(["doctor", "--read", "said", "--json"]))
}

/// Side, rule, subject, severity of all that is to be mended.
fn bad(found: &Found) -> Vec<[String; 4]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.bad().map(|one| ["side", "rule", "subject", "severity"].map(|name| text(&one[name]))).collect()
}

#[test]
fn planted_fault_is_named_from_what_was_recorded() {
    let sandbox = Sandbox::in_memory();
    let mut wrong = Vec::new();
    for fault in FAULTS.iter().copied().flatten() {
        let found = examined(&sandbox, fault.on, fault.side, fault.texts);
        let expected = [fault.side, fault.rule, fault.subject, fault.severity].map(str::to_owned);
        let line = found.bad().find(|one| one["rule"] == fault.rule).map(|one| one["fix"]["line"].to_string());
        let code = if fault.severity == "failure" { 3 } else { 1 };
        // Quotes of a line have a backslash here.
        let mends = fault.mends.replace('"', "\\\"");
        if bad(&found) != [expected] || found.code != code || !line.is_some_and(|line| line.contains(&mends)) {
            wrong.push(format!("{}: {:?}, exit {}", fault.name, bad(&found), found.code));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn healthy_host_has_nothing_to_mend_in_what_was_recorded() {
    let sandbox = Sandbox::in_memory();
    for healthy in HEALTHY {
        let found = examined(&sandbox, healthy, "near", &[]);
        assert_eq!((bad(&found), found.code), (Vec::new(), 0), "{}", healthy.name);
    }
}

#[test]
fn recorded_hosts_and_path_are_examined_again_with_the_same_result() {
    let Some(far) = Far::new(&Setup::default(), |_| {}) else { return };
    let first = far.doctor(&[ASK, "--record=there"]);
    let again =
        |arguments: &[&str]| Found::of(far.sandbox.run([&["doctor", "--read=there", "--json"], arguments].concat()));
    let told = |found: &Found| {
        let without_time = |one: &Value| {
            let mut one = one.clone();
            one["time"] = Value::Null;
            one
        };
        found.findings.iter().map(without_time).collect::<Vec<_>>()
    };
    assert_eq!((told(&again(&[])), again(&[]).code), (told(&first), first.code));
    // What somebody wants of the path is asked anew.
    assert_ne!(told(&again(&["--rate=40GB", "--rtt=300ms"])), told(&first));
    let sandbox = &far.sandbox;
    sandbox.run(["doctor", "--read=nowhere"]).failed_with(11, &["cannot read what was recorded in"]);
    sandbox.run(["doctor", "--read=there", "host:"]).failed_with(2, &["cannot be used with"]);
    sandbox.run(["doctor", "--read=there", "--fix"]).failed_with(2, &["cannot be used with"]);
}
