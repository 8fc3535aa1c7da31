//! `-z`: what shrinks travels compressed over a slow path, and arrives as it was, whatever happens on the way.
//!
//! A rate limit counts as a slow path, whatever else the host does meanwhile.

use std::fs;
use std::process::Stdio;

use carrack_faults::proxy::{Flip, Way};

use crate::support::counted::CountedNode;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::sshd::Sshd;
use crate::support::{Ran, Sandbox, same_tree, tree, wait_until};

const MIB: usize = 1 << 20;

fn scene() -> CountedNode {
    CountedNode::start(&["-z"])
}

impl CountedNode {
    #[track_caller]
    fn check_all(&self) {
        same_tree(&self.sandbox.path("tree"), &self.sandbox.path("root/to"));
        let left: Vec<_> = self.sandbox.parts("root/to");
        assert!(left.is_empty(), "{left:?}");
    }

    fn anew(&self) {
        fs::remove_dir_all(self.sandbox.path("root/to")).unwrap();
    }
}

/// Lines of a table: they shrink to less than half.
fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let hex: String = tree::bytes(bytes.div_ceil(2), seed).iter().map(|byte| format!("{byte:02x}")).collect();
    hex.into_bytes()[..bytes].to_vec()
}

fn count(ran: &Ran, name: &str) -> u64 {
    ran.summary()[name].as_u64().unwrap()
}

#[test]
fn text_travels_compressed_and_arrives_as_it_was() {
    let scene = scene();
    for number in 0..200 {
        scene.sandbox.write(format!("tree/small/{number}"), text(5000, number));
    }
    scene.sandbox.write("tree/large", text(3 * MIB + 17, 1));
    scene.sandbox.write("tree/zeros", vec![0; 2 * MIB]);
    scene.sandbox.write("tree/empty", "");
    let plain = (200 * 5000 + 5 * MIB + 17) as u64;
    let ways: [&[&str]; 6] = [
        &[],
        &["--encrypt=none"],
        &["--digest=xxh128", "--streams=7", "--verify=disk"],
        &["--encrypt=none", "--verify=none", "--digest=none"],
        &["--verify=source", "--block=64K"],
        &["--link=tunnel"],
    ];
    for more in ways {
        let (ran, sent) = scene.copy(&[more, &["--bwlimit=2M"]].concat());
        let (from, to) = (count(&ran, "bytes_compressed"), count(&ran, "bytes_compressed_to"));
        assert_eq!(ran.summary()["compress"], "yes", "{more:?}");
        assert_eq!(count(&ran, "bytes"), plain, "{more:?}");
        assert!(from > plain * 9 / 10 && to < from * 2 / 3, "{more:?}: {from} to {to} of {plain}");
        assert!(sent < plain * 2 / 3, "{more:?}: {sent} of {plain}");
        assert!(sent > to, "{more:?}: what is said to have travelled: {sent}, {to}");
        scene.check_all();
        scene.anew();
    }
}

/// Nobody asked: nothing is compressed, whatever the path.
#[test]
fn nothing_is_compressed_unasked() {
    let scene = scene();
    scene.sandbox.write("tree/large", text(2 * MIB, 1));
    let words: Vec<String> = scene.words(&["--bwlimit=4M"]).into_iter().filter(|word| word != "-z").collect();
    let before = scene.proxy.carried().up;
    let ran = scene.sandbox.ok(words);
    assert!(scene.proxy.carried().up - before > 2 * MIB as u64);
    assert_eq!((&ran.summary()["compress"], count(&ran, "bytes_compressed")), (&serde_json::Value::Null, 0));
    // Nor between directories of one host, which nothing lies between.
    let ran = scene.sandbox.ok(["copy", "--json", "-z", "tree/", "here"]);
    assert_eq!((ran.summary()["compress"].as_str(), count(&ran, "bytes_compressed")), (Some("local"), 0));
}

/// Without any limit but a relay that is slow: the rate is measured.
#[test]
fn slow_path_is_found_out() {
    let scene = scene();
    scene.sandbox.write("tree/large", text(16 * MIB, 1));
    scene.proxy.rate(Some(3_000_000));
    let (ran, sent) = scene.copy(&["--streams=2"]);
    let from = count(&ran, "bytes_compressed");
    assert!(from > 8 * MIB as u64, "{from}: {}", ran.stdout);
    assert!(sent < 13 * MIB as u64, "{sent}");
    scene.check_all();
}

#[test]
fn random_data_travels_as_it_is() {
    let scene = scene();
    scene.sandbox.write("tree/noise", tree::bytes(6 * MIB, 1));
    let (ran, sent) = scene.copy(&["--bwlimit=8M"]);
    assert_eq!(count(&ran, "bytes_compressed"), 0);
    assert!(count(&ran, "bytes_not_shrunk") > 5 * MIB as u64, "{}", ran.stdout);
    assert!(sent < 6 * MIB as u64 + 100_000, "{sent}");
    scene.check_all();
    scene.anew();
    let said = scene.sandbox.ok(scene.words(&["--bwlimit=8M"]).into_iter().filter(|word| word != "--json"));
    assert!(said.stderr.contains("compressed: nothing: 6.0 MiB did not shrink"), "{}", said.stderr);
}

/// Bits are flipped within compressed pieces: what no longer unpacks ends its stream, and what unpacks to something
/// else is noticed by its digest.
#[test]
fn altered_pieces_are_sent_again() {
    for (encrypt, digest) in [("none", "blake3"), ("tls", "blake3"), ("none", "xxh128")] {
        let scene = scene();
        scene.sandbox.write("tree/large", text(24 * MIB, 1));
        // Far enough in that the control connection never comes to it. The path is slow, whatever else the host does.
        scene.proxy.flip(Way::Up, Flip::Every(1 << 20), 5);
        let (ran, _) = scene.copy(&["--encrypt", encrypt, "--digest", digest, "--bwlimit=6M", "--streams=2"]);
        assert_eq!(scene.proxy.made().flips, 5);
        let faults = &ran.summary()["faults"];
        let (altered, blocks) = (&faults["streams_altered"], &faults["digest_mismatches"]);
        assert!(altered.as_u64().unwrap() + blocks.as_u64().unwrap() > 0, "{encrypt} {digest}: {faults}");
        assert_eq!(faults["sessions_lost"], 0, "{encrypt} {digest}: {faults}");
        assert!(count(&ran, "bytes_compressed") > 20 * MIB as u64, "{}", ran.stdout);
        scene.check_all();
    }
}

/// A copy that is cut off is taken up, and one that loses its streams goes on: resuming knows nothing of pieces.
#[test]
fn compressed_copy_that_is_cut_off_is_taken_up() {
    let scene = scene();
    scene.sandbox.write("tree/large", text(24 * MIB, 1));
    for end in ["TERM", "KILL"] {
        let before = scene.proxy.carried().up;
        let mut copying = Running::start(scene.sandbox.carrack().args(scene.words(&["--bwlimit=3M"])));
        wait_until("half of it was sent", || {
            scene.proxy.carried().up - before > 6 * MIB as u64 || !copying.is_running()
        });
        assert!(copying.is_running(), "{}", copying.end().stderr);
        signal(copying.id(), end);
        copying.end();
        let (ran, _) = scene.copy(&["--bwlimit=20M"]);
        assert!(count(&ran, "bytes_resumed") > 2 * MIB as u64, "{end}: {}", ran.stdout);
        scene.check_all();
        scene.anew();
    }
    scene.proxy.reset_after(Some(5 * MIB as u64));
    let running = Running::start(scene.sandbox.carrack().args(scene.words(&["--bwlimit=10M", "--streams=2"])));
    wait_until("connections were reset", || scene.proxy.made().resets > 0);
    scene.proxy.reset_after(None);
    let ran = running.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    scene.check_all();
}

/// A file with holes, one that has changed in part, what is deleted, and a dry run.
#[test]
fn sync_compresses_as_a_copy_does() {
    let scene = scene();
    let mut content = text(4 * MIB, 1);
    scene.sandbox.write("tree/d/large", &content);
    let holes = fs::File::create(scene.sandbox.path("tree/holes")).unwrap();
    holes.set_len(8 * MIB as u64).unwrap();
    let words = |more: &[&str]| {
        let words = scene.words(&[&["--delete", "--bwlimit=4M"], more].concat());
        [&["sync".to_owned()], &words[1..]].concat()
    };
    let first = scene.sandbox.ok(words(&[]));
    assert!(count(&first, "bytes_compressed") > 3 * MIB as u64, "{}", first.stdout);
    scene.check_all();
    content[MIB] ^= 1;
    scene.sandbox.write("tree/d/large", &content);
    fs::remove_file(scene.sandbox.path("tree/holes")).unwrap();
    let planned = scene.sandbox.ok(words(&["-n", "--itemize-changes"]));
    assert_eq!(count(&planned, "bytes_compressed"), 0);
    let second = scene.sandbox.ok(words(&[]));
    assert!(count(&second, "bytes_taken_over") > 2 * MIB as u64, "{}", second.stdout);
    let from = count(&second, "bytes_compressed");
    assert!((1..2 * MIB as u64).contains(&from), "only what differs: {from}");
    scene.check_all();
}

#[test]
fn pipes_and_ssh_and_third_parties_compress_too() {
    let sandbox = Sandbox::in_memory();
    sandbox.write("tree/large", text(3 * MIB, 1));
    let far = Sshd::start(&sandbox);
    let at = |name: &str| format!("far:{}", sandbox.path(name).display());
    let compressed = |ran: &Ran| assert!(count(ran, "bytes_compressed") > 2 * MIB as u64, "{}", ran.stdout);
    compressed(&sandbox.ok(["--json", "-z", "--bwlimit=2M", &far.rsh, "tree/", &at("there")]));
    same_tree(&sandbox.path("tree"), &sandbox.path("there"));
    compressed(&sandbox.ok(["--json", "-z", "--bwlimit=2M", &far.rsh, &at("there/"), "back"]));
    same_tree(&sandbox.path("tree"), &sandbox.path("back"));
    // From a pipe, whose length nobody knows, and to one.
    let piped = fs::File::open(sandbox.path("tree/large")).unwrap();
    let mut command = sandbox.carrack();
    command.args(["copy", "--json", "-z", "--bwlimit=2M", &far.rsh, "-", &at("piped")]).stdin(Stdio::from(piped));
    let ran = Running::start(&mut command).end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    compressed(&ran);
    assert!(fs::read(sandbox.path("piped")).unwrap() == fs::read(sandbox.path("tree/large")).unwrap());
    // Between two nodes: both are asked whether they can.
    let nodes = ["one", "two"].map(|root| Node::start(&sandbox, root, &["--dial-to=127.0.0.0/8"]));
    sandbox.write("one/large", text(3 * MIB, 1));
    let words = ["copy", "--json", "-z", "--bwlimit=2M", &nodes[0].at("large"), &nodes[1].at("large")];
    let tokens = [nodes[0].token_as("source"), nodes[1].token_as("destination")];
    let ran = sandbox.ok(words.iter().map(ToString::to_string).chain(tokens));
    compressed(&ran);
    assert!(fs::read(sandbox.path("two/large")).unwrap() == fs::read(sandbox.path("one/large")).unwrap());
}
