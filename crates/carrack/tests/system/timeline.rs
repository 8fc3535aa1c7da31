//! `--timeline`: what both ends of a copy measure is kept in a file, also of a copy that is killed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::faults::under;
use crate::support::json_schema::Schema;
use crate::support::node::Node;
use crate::support::running::Running;
use crate::support::{Sandbox, wait_until};

/// Every whole line, each as the schema says.
fn lines(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(sandbox.path(name)).unwrap();
    let schema = Schema::published();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let lines: Vec<Value> = whole.map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        schema.check(line).unwrap_or_else(|why| panic!("{why}"));
    }
    lines
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[test]
fn timeline_has_both_ends_from_the_beginning_to_the_end() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let address = format!("carrack://{}/there{}", node.address, node.fingerprint);
    const BYTES: u64 = 24 << 20;
    let ran = sandbox.ok([
        "--json",
        "--timeline=t.jsonl",
        "--streams=2",
        "--bwlimit=8M",
        &format!("random:{BYTES}"),
        &address,
        &node.token(),
    ]);
    let lines = lines(&sandbox, "t.jsonl");
    assert!(lines[0]["type"] == "timeline" && lines[0]["asked"]["rate_limit"].is_u64(), "{}", lines[0]);
    assert_eq!(lines.last().unwrap(), &with_moment(&ran.summary(), lines.last().unwrap()));
    let ends = of_type(&lines, "ends");
    assert!(ends.len() == 1 && ends[0]["source"]["protocol"] == 1, "{ends:?}");
    // The node has been shown its token.
    let system = |side: &str| ends[0][side]["system"].as_str().unwrap();
    assert!(!system("source").is_empty() && system("source") == system("destination"), "{ends:?}");
    assert!(of_type(&lines, "progress").is_empty() && of_type(&lines, "link").len() == 1);
    let mut sides: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for sample in of_type(&lines, "sample") {
        sides.entry(sample["side"].as_str().unwrap()).or_default().push(sample);
    }
    for (side, samples) in &sides {
        // One a second, of three; and the last.
        assert!(samples.len() >= 3, "{side}: {} samples", samples.len());
        let grows = |name: &str| samples.is_sorted_by_key(|sample| sample[name].as_u64().unwrap());
        assert!(grows("at_us") && grows("bytes") && grows("carried_us"), "{side}");
        let last = samples.last().unwrap();
        assert_eq!(last["bytes"].as_u64(), Some(BYTES), "{side}");
        // Asked on one host: the clocks are placed to a small part of a second.
        assert!(last["error_us"].as_u64().is_some_and(|error| error < 500_000), "{last}");
        assert!(samples.iter().any(|sample| sample["streams"].as_array().is_some_and(|all| all.len() == 2)), "{side}");
        assert!(last["processor"]["process_us"].as_u64().is_some_and(|time| time > 0), "{last}");
    }
    let stage = |side: &str, stage: &str| sides[side].last().unwrap()["stages"][stage]["waited_us"].as_u64();
    assert!(stage("source", "pace").is_some_and(|time| time > 1_000_000), "{:?}", sides["source"].last());
    assert!(stage("destination", "receive").is_some_and(|time| time > 1_000_000), "{:?}", sides["destination"].last());
    let delivered = sides["source"].last().unwrap()["tcp"]["delivered"].as_u64().unwrap();
    assert!(delivered >= BYTES, "{delivered}");
    // On standard output the same, without each stream by itself.
    let printed: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let printed = of_type(&printed, "sample");
    assert_eq!(printed.len(), sides.values().map(Vec::len).sum::<usize>());
    assert!(printed.iter().all(|sample| sample.get("streams").is_none()));
}

/// The line with the moment and the time of another: the file has them of when it was written.
fn with_moment(line: &Value, of: &Value) -> Value {
    let mut line = line.clone();
    for name in ["at_us", "time"] {
        line[name] = of[name].clone();
    }
    line
}

/// No clock is asked for in so short a time: the greetings place both ends.
#[test]
fn timeline_of_a_short_copy_has_both_ends() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let address = format!("carrack://{}/there{}", node.address, node.fingerprint);
    sandbox.write("a", "x");
    sandbox.ok(["--timeline=t.jsonl", "a", &address, &node.token()]);
    let lines = lines(&sandbox, "t.jsonl");
    for side in ["source", "destination"] {
        let samples = of_type(&lines, "sample");
        let last = samples.iter().rfind(|sample| sample["side"] == side).expect(side);
        assert_eq!(last["bytes"].as_u64(), Some(1), "{last}");
        let number = |name: &str| last[name].as_u64().unwrap();
        assert!(number("error_us") < number("at_us"), "{last}");
    }
}

#[test]
fn node_without_a_token_does_not_say_what_it_runs_on() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &["--anonymous"]);
    let address = format!("carrack://{}/there{}", node.address, node.fingerprint);
    sandbox.ok(["--timeline=t.jsonl", "random:1M", &address]);
    let lines = lines(&sandbox, "t.jsonl");
    let ends = of_type(&lines, "ends");
    assert_eq!(ends[0]["destination"]["system"], "", "{ends:?}");
    assert_ne!(ends[0]["source"]["system"], "", "{ends:?}");
}

#[test]
fn timeline_of_a_killed_copy_can_be_read() {
    let sandbox = Sandbox::in_memory();
    let mut copy = sandbox.carrack();
    copy.args(["--timeline=t.jsonl", "--bwlimit=1M", "zero:1G", "there"]);
    let copy = Running::start(&mut copy);
    let samples =
        || std::fs::read_to_string(sandbox.path("t.jsonl")).map_or(0, |text| text.matches("\"sample\"").count());
    wait_until("samples of both ends", || samples() >= 3);
    crate::support::process::signal(copy.id(), "KILL");
    copy.end();
    let lines = lines(&sandbox, "t.jsonl");
    assert!(of_type(&lines, "sample").len() >= 3 && of_type(&lines, "summary").is_empty());
    assert!(of_type(&lines, "sample").iter().any(|sample| sample["bytes"].as_u64() > Some(0)));
}

/// Its disk fills while the copy runs: the copy is whole all the same, the command says so at its end, and what was
/// written can be read.
#[test]
fn timeline_whose_disk_fills_costs_no_byte_of_the_copy() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let address = format!("carrack://{}/there{}", node.address, node.fingerprint);
    // Only the timeline is written by the command itself.
    let full = ["prlimit", "--fsize=5000", "--"];
    let token = node.token();
    let arguments = ["--timeline=t.jsonl", "--streams=2", "--bwlimit=8M", "random:24M", &address, &token];
    under(&sandbox, &full, &arguments).failed_with(11, &["cannot write the timeline", "t.jsonl", "File too large"]);
    assert_eq!(std::fs::metadata(sandbox.path("root/there")).unwrap().len(), 24 << 20);
    assert!(std::fs::metadata(sandbox.path("t.jsonl")).unwrap().len() <= 5000);
    assert!(!of_type(&lines(&sandbox, "t.jsonl"), "ends").is_empty());
    if cfg!(feature = "terminal") {
        let report = sandbox.ok(["report", "t.jsonl"]);
        assert!(report.stdout.contains("The file ends early"), "{}", report.stdout);
    }
}

#[test]
fn timeline_that_cannot_be_written_is_told_before_anything_moves() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "x");
    sandbox.run(["--timeline=no/such/t", "a", "b"]).failed_with(11, &["cannot write the timeline", "no/such/t"]);
    sandbox.run(["--timeline=-", "a", "b"]).failed_with(2, &["--timeline needs a file"]);
    sandbox.run(["--timeline=/dev/full", "a", "b"]).failed_with(11, &["cannot write the timeline"]);
    assert!(!sandbox.path("b").exists());
}
