//! What a person is told to try comes from what an error is, never from what it says: errors of real commands,
//! with all words taken away.

#[path = "../../src/output/hints.rs"]
mod table;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::words::Word;
use serde_json::Value;

use crate::faults::Mounted;
use crate::golden::{Stage, with_node};
use crate::support::{Ran, Sandbox, golden, is_root, program, tree};

/// What `--json` tells of a failure, without a word of text, place or call: code, side and reason are left,
/// its own and its source's.
fn blanked(told: &Value) -> Failure {
    fn word<W: Word>(name: &Value) -> Option<W> {
        let word = W::ALL.iter().find(|word| name == word.name()).copied();
        assert!(word.is_some() || name.is_null(), "no such word: {name}");
        word
    }
    let code = *ErrorCode::ALL.iter().find(|code| told["code"] == code.name()).unwrap();
    let (side, reason) = (word::<Side>(&told["side"]).unwrap(), word(&told["reason"]));
    let source = told.get("source").map(|source| Box::new(blanked(source)));
    Failure { reason, source, ..Failure::new(code, side, "") }
}

/// Every failure of which a command tells in JSON.
fn failures(ran: &Ran) -> Vec<Value> {
    let mut found = Vec::new();
    for line in ran.stdout.lines().filter(|line| line.starts_with('{')) {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["type"].as_str().unwrap() {
            "error" => found.push(line),
            // It is tried again without a person.
            "session-lost" => {}
            _ => {
                found.extend(line.get("error").filter(|error| !error.is_null()).cloned());
                found.extend(line["failures"].as_array().cloned().unwrap_or_default());
            }
        }
    }
    found
}

/// All that the table can say.
fn every_hint() -> BTreeSet<&'static str> {
    let codes = ErrorCode::ALL.iter().filter_map(|code| table::of_code(*code));
    codes.chain(Reason::ALL.iter().filter_map(|reason| table::of_reason(*reason))).collect()
}

/// The same command, as a person sees it and as a program does. Adds what the hints came from, in
/// words of code and reason.
#[track_caller]
fn check(plain: &Ran, json: &Ran, met: &mut BTreeSet<&'static str>) {
    let failures = failures(json);
    let mut expected = BTreeSet::new();
    for told in &failures {
        let failure = blanked(told);
        let hint = table::of(&failure);
        // A usage error has hints of its own, made where it was typed.
        if hint.is_some() || failure.code != ErrorCode::Usage {
            assert_eq!(told["hints"][0].as_str(), hint, "{told}");
        }
        if let Some(hint) = hint {
            assert!(plain.stderr.contains(hint), "{hint:?} is missing from: {}", plain.stderr);
            expected.insert(hint);
            let mut innermost = &failure;
            while let (None, Some(source)) = (innermost.reason, &innermost.source) {
                innermost = source;
            }
            met.insert(innermost.reason.map_or(failure.code.name(), Reason::name));
        }
    }
    if !failures.is_empty() {
        let every = every_hint();
        let shown = plain.stderr.lines().filter_map(|line| every.iter().copied().find(|hint| line.ends_with(hint)));
        assert!(
            shown.clone().all(|hint| expected.contains(hint)),
            "{:?} beside {expected:?}",
            shown.collect::<Vec<_>>()
        );
    }
}

/// Every command of a transcript, on one stage as it is, on the other with `--json`.
fn check_transcript(name: &str, plain: &Stage, json: &Stage, met: &mut BTreeSet<&'static str>) {
    fs::remove_file(json.sandbox.path("bin/carrack")).unwrap();
    json.script("carrack", &format!("exec '{}' \"$@\" --json", program().display()));
    let recorded = fs::read_to_string(golden::directory().join(name)).unwrap();
    for command in recorded.lines().filter_map(|line| line.strip_prefix("$ ")) {
        // What a pipe makes of the words is no matter here.
        let command = command.split(" 2>&1 | ").next().unwrap();
        check(&plain.run(command), &json.run(command), met);
    }
}

fn met_in_all(met: &BTreeSet<&str>, wanted: &[&str]) {
    let missing: Vec<_> = wanted.iter().filter(|word| !met.contains(**word)).collect();
    assert!(missing.is_empty(), "{missing:?} were not met, {met:?} were");
}

#[test]
fn hints_of_file_errors_come_from_code_and_reason() {
    let mut met = BTreeSet::new();
    check_transcript("messages/files.txt", &Stage::new(), &Stage::new(), &mut met);
    met_in_all(&met, &["same-names", "selected-absent", "selected-unplanned", "directory-to-remove", "no-space"]);
}

#[test]
fn hints_of_node_errors_come_from_code_and_reason() {
    let prepare = || {
        let mut stage = Stage::new();
        let node = with_node(&mut stage, "NODE", "root", &[]);
        let open = with_node(&mut stage, "READ_ONLY", "open", &["--anonymous", "--read-only"]);
        stage.variable("TOKEN", node.token_file.display().to_string());
        stage.sandbox.write("root/f", "content\n");
        symlink("/etc/passwd", stage.sandbox.path("root/out")).unwrap();
        (stage, [node, open])
    };
    let ((plain, _nodes), (json, _others)) = (prepare(), prepare());
    let mut met = BTreeSet::new();
    check_transcript("messages/node.txt", &plain, &json, &mut met);
    let wanted =
        ["token-missing", "token-wrong", "typed-key-wrong", "node-unreached", "link-not-allowed", "congestion-refused"];
    met_in_all(&met, &wanted);
}

#[test]
fn hints_of_ssh_errors_come_from_code_and_reason() {
    let prepare = || {
        let stage = Stage::new();
        stage.ssh_scripts();
        stage
    };
    let mut met = BTreeSet::new();
    check_transcript("messages/ssh.txt", &prepare(), &prepare(), &mut met);
    let wanted =
        ["ssh-host-unknown", "agent-ended", "agent-silent", "agent-not-sent", "bad-remote-path", "deadline-passed"];
    met_in_all(&met, &wanted);
}

#[test]
fn hints_of_a_source_that_grows_and_a_disk_that_is_full_come_from_code_and_reason() {
    let sandbox = Sandbox::new();
    let both = |arguments: &[&str]| (sandbox.run(arguments), sandbox.run(arguments.iter().chain(&["--json"])));
    let mut met = BTreeSet::new();
    let log = sandbox.write("log", tree::bytes(2 << 20, 1));
    let ended = AtomicBool::new(false);
    let (plain, json) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = OpenOptions::new().append(true).open(&log).unwrap();
            while !ended.load(Ordering::Relaxed) {
                log.write_all(b"one more line\n").unwrap();
                std::thread::yield_now();
            }
        });
        let ran = both(&["log", "copy", "--bwlimit=4M"]);
        ended.store(true, Ordering::Relaxed);
        ran
    });
    check(&plain, &json, &mut met);
    assert!(met.contains("source-busy") || met.contains("source-grew"), "{met:?}: {}", json.stdout);
    if is_root() {
        let disk = Mounted::new(sandbox.path("disk"), "1m");
        sandbox.write("large", tree::bytes(3 << 20, 2));
        let (plain, json) = both(&["large", "disk/"]);
        check(&plain, &json, &mut met);
        met_in_all(&met, &["no-space"]);
        drop(disk);
    }
}
