//! A long way between two hosts, with what can happen to packets on it: loss, disorder, altered bytes, sizes that do
//! not get through, an outage.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use carrack_faults::link::{ADDRESSES, Counts, Host, Knobs, Link, Setup};
use serde_json::Value;

use crate::support::node::Node;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, netns, program, same_tree, tree, wait_until};

const MIB: usize = 1 << 20;

/// A node on the far host, and a tree to send there from the near one, with a file of some size.
struct Scene {
    // In the order in which they have to go.
    node: Node,
    link: Link,
    sandbox: Sandbox,
}

impl Scene {
    /// `None`, and why is printed, where such things cannot be made.
    fn new(setup: &Setup, file_bytes: usize, prepare: impl Fn(&Knobs)) -> Option<Self> {
        if !carrack_faults::netns::can_make() {
            return None;
        }
        let sandbox = Sandbox::in_memory();
        sandbox.write("tree/file", tree::bytes(file_bytes, 1));
        let link = Link::new(&netns::name(), setup, prepare).unwrap();
        let node = Node::on(&link.host(Host::Far).prefix(), &sandbox, "root", ADDRESSES[1]);
        Some(Self { node, link, sandbox })
    }

    /// Starts a copy of the tree to the node.
    fn start(&self, flags: &[&str]) -> Running {
        let mut command = self.sandbox.carrack();
        command.args(["--json", &self.node.token()]).args(flags).args(["tree/", &self.node.at("there")]);
        Running::start(&mut self.link.host(Host::Near).on(&command))
    }

    /// Waits for the end of a copy, which must have gone well; its report.
    #[track_caller]
    fn end(&self, mut running: Running) -> Ran {
        wait_until("the copy ends", || !running.is_running());
        let ran = running.end();
        println!("there {:?}\nback {:?}", self.link.counts(Host::Near), self.link.counts(Host::Far));
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        same_tree(&self.sandbox.path("tree"), &self.sandbox.path("root/there"));
        ran
    }

    fn copy(&self, flags: &[&str]) -> Ran {
        self.end(self.start(flags))
    }

    /// What happened to packets, both ways together.
    fn happened(&self, count: impl Fn(&Counts) -> u64) -> u64 {
        count(&self.link.counts(Host::Near)) + count(&self.link.counts(Host::Far))
    }
}

fn long_way(knobs: &Knobs) {
    knobs.delay(Duration::from_millis(10));
    knobs.rate(Some(400_000_000));
}

/// A path so far away that its streams, held back by loss, stay below its rate by much. No packet waits in a queue
/// then, and what a busy machine adds to a round trip is small beside it.
#[test]
fn loss_costs_time_and_the_report_names_it() {
    let setup = Setup { mtu: 1500, ..Setup::default() };
    let lossy = |knobs: &Knobs| {
        knobs.delay(Duration::from_millis(50));
        knobs.rate(Some(400_000_000));
        knobs.lose(1e-2);
    };
    // A link whose packets were late by a part of the round trip had a queue after all: on a busy machine, again.
    const LATE: Duration = Duration::from_millis(20);
    for attempts_left in (0..6).rev() {
        let Some(scene) = Scene::new(&setup, 6 * MIB, lossy) else { return };
        let summary = scene.copy(&["--streams=2", "--block=256K"]).summary();
        assert!(scene.happened(|counts| counts.lost) > 0);
        if attempts_left == 0 || [Host::Near, Host::Far].iter().all(|host| scene.link.counts(*host).latest < LATE) {
            assert_eq!(summary["limited_by"]["stage"], "loss", "{summary}");
            break;
        }
    }
}

#[test]
fn packets_in_disorder_and_twice() {
    let disorderly = |knobs: &Knobs| {
        long_way(knobs);
        knobs.reorder(0.05, Duration::from_millis(1));
        knobs.double(0.01);
    };
    let Some(scene) = Scene::new(&Setup::default(), 24 * MIB, disorderly) else { return };
    for flags in [["--encrypt=tls"], ["--encrypt=none"]] {
        scene.copy(&flags);
    }
    assert!(scene.happened(|counts| counts.late) > 20 && scene.happened(|counts| counts.doubled) > 10);
}

/// A copy on which bits of the data are flipped. What goes again stays in proportion to that, by
/// what each fault may cost.
fn altered(encrypt: &str) -> Option<Value> {
    const BYTES: usize = 48 * MIB;
    const BLOCK_BYTES: u64 = 256 << 10;
    const BUFFER_BYTES: u64 = MIB as u64;
    let setup = Setup { tcp_buffer_bytes: Some(BUFFER_BYTES), ..Setup::default() };
    let scene = Scene::new(&setup, BYTES, long_way)?;
    scene.link.from(Host::Near).corrupt(2e-3);
    let summary = scene.copy(&[&format!("--encrypt={encrypt}"), "--block=256K", "--streams=4"]).summary();
    let fault = |name: &str| summary["faults"][name].as_u64().unwrap();
    let (flips, sent) = (scene.link.counts(Host::Near).corrupted, scene.link.counts(Host::Near).bytes);
    let [mismatches, altered, streams, sessions] =
        ["digest_mismatches", "streams_altered", "streams_lost", "sessions_lost"].map(fault);
    let noticed = mismatches + altered + sessions;
    assert!(flips > 0 && (1..=flips).contains(&noticed), "{flips} flips: {summary}");
    // A stream takes with it what lies in the buffers of both ends, and the block that it was in.
    let again = mismatches * BLOCK_BYTES + streams * (2 * BUFFER_BYTES + BLOCK_BYTES) + sessions * BYTES as u64;
    // Headers, and what TCP repeats.
    let usual = BYTES as u64 * 11 / 10;
    assert!(sent <= usual + again, "{sent} bytes were sent, {flips} flips: {summary}");
    Some(summary)
}

#[test]
fn altered_packets_that_tcp_lets_through_are_sent_again_under_tls() {
    let Some(summary) = altered("tls") else { return };
    assert_eq!(summary["faults"]["digest_mismatches"], 0, "no altered record is opened: {summary}");
}

#[test]
fn altered_packets_that_tcp_lets_through_are_sent_again_in_the_clear() {
    let Some(summary) = altered("none") else { return };
    assert_ne!(summary["faults"]["digest_mismatches"], 0, "{summary}");
}

/// Packets that a path of the usual size would not take vanish, though both hosts may send them, and
/// do not try smaller ones.
fn black_hole(file_bytes: usize) -> Option<Scene> {
    let narrow = |knobs: &Knobs| {
        long_way(knobs);
        knobs.largest(Some(1500));
    };
    let scene = Scene::new(&Setup::default(), file_bytes, narrow)?;
    for host in [Host::Near, Host::Far] {
        scene.link.host(host).set("ipv4/tcp_mtu_probing", "0").unwrap();
    }
    Some(scene)
}

#[test]
fn large_packets_that_vanish_are_noticed_and_made_smaller() {
    let Some(scene) = black_hole(4 * MIB) else { return };
    let ran = scene.copy(&[]);
    assert!(ran.stdout.contains("black hole") && ran.stdout.contains("tcp_mtu_probing"), "{}", ran.stdout);
    assert!(scene.happened(|counts| counts.vanished) > 0);
}

#[test]
fn large_packets_that_vanish_leave_the_two_ends_understanding_each_other() {
    let Some(scene) = black_hole(1000) else { return };
    // Offered one by one, and so many that what is said of them fills packets; nothing but holes,
    // so that the data does not.
    for number in 0..100 {
        let name = format!("tree/{number}-with-a-name-that-takes-its-place-in-every-message-about-it");
        File::create(scene.sandbox.path(name)).unwrap().set_len(2 << 20).unwrap();
    }
    let ran = scene.copy(&["--streams=1"]);
    assert_eq!(ran.summary()["faults"]["sessions_lost"], 0, "{}", ran.stdout);
}

#[test]
fn outage_in_the_midst_is_outlived() {
    let Some(scene) = Scene::new(&Setup::default(), 48 * MIB, long_way) else { return };
    let running = scene.start(&["--bwlimit=24MB"]);
    wait_until("the copy is in its midst", || scene.link.counts(Host::Near).bytes > 8 << 20);
    scene.link.both(|knobs| knobs.fail(Duration::from_secs(3)));
    scene.end(running);
    assert!(scene.happened(|counts| counts.lost) > 0);
}

/// A remote shell that is no ssh says nothing of addresses: the host that was typed is connected to, and where that is
/// not wanted, it connects back to the address that packets to it have.
#[test]
fn remote_shell_that_is_no_ssh_leads_to_the_host_that_was_typed() {
    if !carrack_faults::netns::can_make() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    sandbox.write("tree/file", tree::bytes(MIB, 1));
    let link = Link::new(&netns::name(), &Setup::default(), |_| {}).unwrap();
    let (program, words) = (program(), link.host(Host::Far).prefix().join(" "));
    let here = program.parent().unwrap();
    let line = format!("#!/bin/sh\nPATH={}:$PATH\nexec {words} sh -c \"$2\"\n", here.display());
    let script = sandbox.write("no-shell", line);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let rsh = format!("--rsh={}", script.display());
    for (kind, address) in [("direct", ADDRESSES[1]), ("reverse", ADDRESSES[0])] {
        let there = format!("{}:{}", ADDRESSES[1], sandbox.path(kind).display());
        let mut command = sandbox.carrack();
        command.args(["--json", &rsh, "--link", kind, "tree/", &there]);
        let mut running = Running::start(&mut link.host(Host::Near).on(&command));
        wait_until("the copy ends", || !running.is_running());
        let ran = running.end();
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let told = ran.summary()["link"].clone();
        let host = told["address"].as_str().unwrap().rsplit_once(':').unwrap().0.to_owned();
        assert_eq!((told["kind"].as_str(), &*host), (Some(kind), address));
        same_tree(&sandbox.path("tree"), &sandbox.path(kind));
    }
}
