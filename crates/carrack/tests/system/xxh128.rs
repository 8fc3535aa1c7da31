//! `--digest xxh128`: copies that are verified by it, what is said of them, and runs that go on with it or without it.

use std::fs;
use std::process::Command;

use carrack_faults::proxy::Proxy;
use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
use crate::support::{Sandbox, same_tree, tool, tree, wait_until};

const MIB: usize = 1 << 20;
const XXH128: &str = "--digest=xxh128";

/// Small files, one of one block, and one of several.
fn sources(sandbox: &Sandbox) {
    tree::mixed(&sandbox.path("tree"));
    sandbox.write("tree/block", tree::bytes(MIB, 1));
    sandbox.write("tree/blocks", tree::bytes(9 * MIB + 5, 2));
}

fn items(stdout: &str) -> Vec<Value> {
    let objects = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    objects.filter(|object| object["type"] == "item").collect()
}

#[test]
fn xxh128_verifies_what_arrives_and_the_report_says_no_more_than_is_so() {
    let sandbox = Sandbox::new();
    sources(&sandbox);
    let node = Node::start(&sandbox, "root", &[]);
    let (token, there) = (node.token(), node.at("there"));
    let forgeable = "whoever is on the path could alter content";
    let cases = [
        (vec!["here"], "here", false),
        (vec!["here", "--verify=disk"], "here", false),
        (vec![&there, &token], "root/there", false),
        (vec![&there, &token, "--verify=disk", "--streams=7", "--block=64K"], "root/there", false),
        (vec![&there, &token, "--encrypt=none"], "root/there", true),
        (vec![&there, &token, "--encrypt=none", "--link=tunnel"], "root/there", false),
    ];
    for (more, to, in_the_clear) in cases {
        let words = [&["tree/", XXH128][..], &more].concat();
        let told = sandbox.ok([&words[..], &["--json"]].concat());
        same_tree(&sandbox.path("tree"), &sandbox.path(to));
        let summary = told.summary();
        assert_eq!((summary["digest"].as_str(), summary["exit_code"].as_u64()), (Some("xxh128"), Some(0)), "{summary}");
        assert_eq!(told.stdout.contains(forgeable), in_the_clear, "{words:?}: {}", told.stdout);
        let items = items(&told.stdout);
        assert!(items.len() > 5, "{}", told.stdout);
        for item in items {
            assert!(item.get("xxh128").is_none() && item.get("blake3").is_none(), "{item}");
        }
        fs::remove_dir_all(sandbox.path(to)).unwrap();
        let said = sandbox.ok(words.clone()).stderr;
        assert!(said.contains("verified: xxh128 of each block") && said.contains("not forgery"), "{said}");
        assert_eq!(said.contains("content not"), in_the_clear, "{words:?}: {said}");
        assert_eq!(said.contains(forgeable), in_the_clear, "{words:?}: {said}");
        fs::remove_dir_all(sandbox.path(to)).unwrap();
    }
}

/// A mode that leaves content open to forgery has to be asked for by its name, and is told before the first byte.
#[test]
fn clear_content_is_authenticated_unless_no_digest_was_asked_for() {
    let sandbox = Sandbox::new();
    sources(&sandbox);
    let node = Node::start(&sandbox, "root", &[]);
    let (token, there) = (node.token(), node.at("there"));
    for (flags, digest, is_told) in [
        (&["--verify=none"][..], Some("blake3"), false),
        (&["--verify=none", "--digest=none"], None, true),
        (&["--verify=none", XXH128], Some("xxh128"), true),
    ] {
        let words = [&["tree/", &there, &token, "--json", "--encrypt=none"][..], flags].concat();
        let ran = sandbox.ok(words);
        assert_eq!(ran.summary()["digest"].as_str(), digest, "{flags:?}");
        let place = |what: &str| ran.stdout.lines().position(|line| line.contains(what));
        let note = place("could alter content");
        assert_eq!(note.is_some(), is_told, "{flags:?}: {}", ran.stdout);
        assert!(note.is_none_or(|note| Some(note) < place(r#""type":"link""#)), "{flags:?}: {}", ran.stdout);
        same_tree(&sandbox.path("tree"), &sandbox.path("root/there"));
        fs::remove_dir_all(sandbox.path("root/there")).unwrap();
    }
}

#[test]
fn sums_are_what_xxh128sum_checks() {
    let sandbox = Sandbox::new();
    sources(&sandbox);
    let node = Node::start(&sandbox, "tree", &[]);
    let sums = |location: &str, more: &[&str]| {
        let words = [&["sum", "--digest=xxh128", location][..], more].concat();
        sandbox.ok(words).stdout
    };
    let names = ["tree/block", "tree/blocks"];
    let list: String = names.iter().map(|name| sums(name, &[])).collect();
    fs::write(sandbox.path("sums"), &list).unwrap();
    tool(Command::new("xxh128sum").args(["--check", "--quiet", "sums"]).current_dir(sandbox.path("")));
    let digest = |line: &str| line.split_once("  ").unwrap().0.to_string();
    assert_eq!(digest(&sums(&node.at("blocks"), &[&node.token()])), digest(&sums("tree/blocks", &[])));
    let json: Value = serde_json::from_str(sums("tree/block", &["--json"]).lines().next().unwrap()).unwrap();
    assert_eq!(json["xxh128"].as_str(), Some(&*digest(&list)));
    sandbox.run(["sum", "--digest=xxh128,blake3", "tree/block"]).failed_with(2, &["blake3 and xxh128"]);
}

/// Killed in its midst, and begun again: by which digest is the user's to say each time.
#[test]
fn resumed_run_goes_on_with_the_same_digest_and_with_another() {
    for (first, then) in [("xxh128", "xxh128"), ("xxh128", "blake3"), ("blake3", "xxh128")] {
        let sandbox = Sandbox::new();
        sandbox.write("tree/large", tree::bytes(24 * MIB + 7, 3));
        sandbox.write("tree/small", "small");
        let node = Node::start(&sandbox, "root", &[]);
        let proxy = Proxy::start(node.address.parse().unwrap());
        let to = node.at("to").replace(&node.address, &proxy.address().to_string());
        let command = |digest: &str, more: &[&str]| {
            let mut command = sandbox.carrack();
            command.args(["--json", "--verify=disk", &format!("--digest={digest}"), &node.token(), "tree/", &to]);
            command.args(more);
            command
        };
        let mut running = Running::start(&mut command(first, &["--bwlimit=8MB"]));
        let claimed = || {
            let parts = sandbox.marked("root").into_iter().flat_map(|marker| marker.parts.into_values());
            parts.map(|left| left.claims().len()).sum::<usize>()
        };
        wait_until("some of it is claimed", || claimed() > 1 || !running.is_running());
        assert!(running.is_running(), "it was done before it was to be killed");
        signal(running.id(), "KILL");
        running.end();
        let told = crate::support::ran(command(then, &[]).output_in_time().unwrap());
        assert_eq!(told.code, 0, "{first} {then}: {}", told.stderr);
        let summary = told.summary();
        assert_eq!(summary["digest"], then);
        assert!(summary["bytes_resumed"].as_u64() > Some(4 << 20), "{first} {then}: {summary}");
        same_tree(&sandbox.path("tree"), &sandbox.path("root/to"));
        assert_eq!(sandbox.parts("root"), Vec::<std::path::PathBuf>::new());
    }
}
