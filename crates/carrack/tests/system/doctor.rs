//! `carrack doctor`: a pair of hosts as it should be, then one thing planted after the other. Each is named with the
//! line that mends it, and nothing is named that was not there: all facts are read from the kernels of both hosts.

mod approach;
mod fix;
mod hosts;
mod ipv6;
mod network;
mod recorded;

use std::collections::BTreeSet;
use std::process::Command;

use carrack_faults::netns::{self, Namespace};
use serde_json::Value;

use crate::support::running::InTime;
use crate::support::{Ran, Sandbox, ran};

/// What all namespaces of a machine have in common is what it was before, for all tests.
const OF_THE_MACHINE: [&str; 4] = ["interface.softnet", "tcp.memory", "tcp.asked-buffers", "host.open-files"];
/// Namespaces have a network each, and all else in common.
const SUBJECTS_OF_THE_MACHINE: [&str; 7] =
    ["storage.", "processor.", "memory.", "session.", "clock.", "settings.", "hardware."];

/// What doctor has found.
struct Found {
    findings: Vec<Value>,
    code: i32,
    text: String,
}

impl Found {
    fn of(ran: Ran) -> Self {
        let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let findings: Vec<Value> = lines.filter(|line| line["type"] == "finding").collect();
        assert!(!findings.is_empty(), "{}{}", ran.stdout, ran.stderr);
        Self { findings, code: ran.code, text: format!("{}{}", ran.stdout, ran.stderr) }
    }

    fn bad(&self) -> impl Iterator<Item = &Value> {
        let is_bad = |one: &&Value| one["severity"] == "warning" || one["severity"] == "failure";
        self.findings.iter().filter(is_bad)
    }

    /// What is to be mended: side and rule.
    fn rules(&self) -> BTreeSet<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or("path").to_owned();
        self.bad_of_own().map(|one| (text(&one["side"]), text(&one["rule"]))).collect()
    }

    /// What is to be mended, without what the machine was before the test.
    fn bad_of_own(&self) -> impl Iterator<Item = &Value> {
        self.bad().filter(|one| {
            let rule = one["rule"].as_str().unwrap();
            !OF_THE_MACHINE.contains(&rule) && !SUBJECTS_OF_THE_MACHINE.iter().any(|subject| rule.starts_with(subject))
        })
    }

    /// The exit code that the hosts of the test alone would have. The program's own is that of all findings.
    #[track_caller]
    fn code_of_own(&self) -> i32 {
        let code = |one: &Value| if one["severity"] == "failure" { 3 } else { 1 };
        assert_eq!(self.code, self.bad().map(code).max().unwrap_or(0), "{}", self.text);
        self.bad_of_own().map(code).max().unwrap_or(0)
    }

    /// The finding of a rule on a side, which must be bad.
    #[track_caller]
    fn get(&self, side: &str, rule: &str) -> &Value {
        let found = self.bad().find(|one| one["rule"] == rule && (one["side"] == side || side == "path"));
        found.unwrap_or_else(|| panic!("no {rule} at {side}: {}", self.text))
    }

    /// The line that mends it.
    #[track_caller]
    fn fix(&self, side: &str, rule: &str) -> &str {
        self.get(side, rule)["fix"]["line"].as_str().unwrap_or_else(|| panic!("no fix: {}", self.text))
    }

    /// Nothing is to be mended, as far as these hosts can do something about it.
    #[track_caller]
    fn is_healthy(&self) {
        assert_eq!(self.rules(), BTreeSet::new(), "{}", self.text);
    }

    /// Exactly these are new.
    #[track_caller]
    fn has_only(&self, expected: &[(&str, &str)]) {
        let expected = expected.iter().map(|(side, rule)| ((*side).to_owned(), (*rule).to_owned())).collect();
        assert_eq!(self.rules(), expected, "{}", self.text);
    }
}

/// Runs doctor on the near host.
fn doctor(near: &Namespace, sandbox: &Sandbox, arguments: &[&str]) -> Found {
    doctor_by(&near.prefix(), sandbox, arguments)
}

/// The same, started by what stands before it.
fn doctor_by(prefix: &[String], sandbox: &Sandbox, arguments: &[&str]) -> Found {
    let mut command: Command = sandbox.carrack();
    command.args(["doctor", "--json"]).args(arguments);
    Found::of(ran(netns::after(prefix, &command).output_in_time().unwrap()))
}

/// As a host of ESnet's would be set up for these tests' paths.
fn tune(host: &Namespace) {
    for (name, value) in [
        ("ipv4/tcp_mtu_probing", "1"),
        ("ipv4/tcp_no_metrics_save", "1"),
        ("ipv4/tcp_rmem", "4096 131072 134217728"),
        ("ipv4/tcp_wmem", "4096 65536 134217728"),
    ] {
        host.set(name, value).unwrap();
    }
    // These belong to one host alone where the kernel is new; elsewhere they are not there.
    for name in ["core/rmem_max", "core/wmem_max"] {
        let _ = host.set(name, "134217728");
    }
}
