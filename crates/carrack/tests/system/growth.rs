//! The number of data connections while a copy runs: more where they are faster, fewer where they are not,
//! and none of it is a loss.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use carrack_core::pace::initial_streams;
use carrack_core::pace::streams::Reason;
use carrack_core::tuning::Tuning;
use carrack_faults::fuse::{Call, FaultFs, Features, Load};
use carrack_faults::link::{ADDRESSES, Host, Link, Setup};
use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, netns, same_tree, tree, wait_until};

const MIB: usize = 1 << 20;
/// Of a connection, and of the whole link: the test waits for probes of seconds, and this is what they cost.
const EACH: u64 = 8_000_000;
const ALL: u64 = 16_000_000;

/// The local ports of a host's connections that are open and lead to a port.
fn connections(link: &Link, from: Host, address: &str) -> BTreeSet<String> {
    // An established one.
    connections_in(link, from, address, "01")
}

/// The same in this state.
fn connections_in(link: &Link, from: Host, address: &str, state: &str) -> BTreeSet<String> {
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let table = link.host(from).inside(|| std::fs::read_to_string("/proc/thread-self/net/tcp")).unwrap().unwrap();
    // Number, local address, remote address, state.
    let leads_there = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[3] == state && words[2].ends_with(&format!(":{port:04X}"))
    };
    table.lines().skip(1).filter(leads_there).map(|line| line.split_whitespace().nth(1).unwrap().to_owned()).collect()
}

/// Each change of the number of streams: before and after.
fn changes(ran: &Ran) -> Vec<(u64, u64)> {
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let changes = events.filter(|event| event["type"] == "streams");
    changes.map(|event| (event["before"].as_u64().unwrap(), event["streams"].as_u64().unwrap())).collect()
}

/// A link that gives each connection little.
fn slow_for_each() -> Link {
    Link::new(&netns::name(), &Setup::default(), |knobs| knobs.flow_rate(Some(EACH))).unwrap()
}

/// A file of `mib` MiB in `tree`, a node at the far end of a link that gives each connection little, and the command
/// that copies the one to the other with these flags besides.
fn file_to_node(sandbox: &Sandbox, mib: usize, flags: &[&str]) -> (Link, Node, Command) {
    sandbox.write("tree/file", tree::bytes(mib * MIB, 1));
    let link = slow_for_each();
    let node = Node::on(&link.host(Host::Far).prefix(), sandbox, "root", ADDRESSES[1]);
    let mut command = sandbox.carrack();
    command.args(flags).args(["-v", "--json", "--log-file=log", &node.token(), "tree/", &node.at("there")]);
    let command = link.host(Host::Near).on(&command);
    (link, node, command)
}

/// How often a copy that logs to `log` has changed the number of streams for this reason.
fn told(sandbox: &Sandbox, what: Reason) -> usize {
    std::fs::read_to_string(sandbox.path("log")).unwrap_or_default().matches(what.meaning()).count()
}

#[test]
fn streams_come_where_each_is_slow_and_go_where_the_link_is() {
    if !carrack_faults::netns::can_make() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    let (link, node, mut command) = file_to_node(&sandbox, 640, &[]);
    let mut running = Running::start(&mut command);
    // With the control connection.
    let first = usize::from(initial_streams(&Tuning::DEFAULT, Duration::ZERO, "", carrack_sys::host::cpu_count())) + 1;
    let mut ever = BTreeSet::new();
    let mut open = || {
        let open = connections(&link, Host::Near, &node.address);
        ever.extend(open.iter().cloned());
        (open.len(), ever.len())
    };
    wait_until("there are more streams than at first", || open().0 > first || !running.is_running());
    // As many as there are fill it.
    link.both(|knobs| knobs.rate(Some(ALL)));
    link.both(|knobs| knobs.flow_rate(None));
    wait_until("more are tried, and not kept, and tried again", || {
        open();
        (told(&sandbox, Reason::Back) > 0 && told(&sandbox, Reason::TryMore) > 1) || !running.is_running()
    });
    // Those that were not kept stay connected for a minute, and are used again.
    let (now, ever) = open();
    assert_eq!(now, ever, "a connection has ended, and another was made");
    assert!(running.is_running(), "the copy was over before anything was found out");
    link.both(|knobs| knobs.rate(None));
    wait_until("the copy ends", || !running.is_running());
    let ran = running.end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/there"));
    assert_streams_came_and_went(&ran);
}

/// More streams were tried, and some were given up, and nothing was lost by it.
#[track_caller]
fn assert_streams_came_and_went(ran: &Ran) {
    let (changes, summary) = (changes(ran), ran.summary());
    assert!(changes.iter().any(|(before, now)| now > before), "{}", ran.stdout);
    assert!(changes.iter().any(|(before, now)| now < before), "{}", ran.stdout);
    assert_eq!(summary["link"]["streams"], changes.last().unwrap().1);
    // A stream may be found slow at the end, after all that the link has been through; none was lost.
    for fault in ["streams_lost", "resent_after_loss"] {
        assert_eq!(summary["faults"][fault], 0, "{summary}");
    }
}

/// Waits until a copy, which logs to `log`, has more streams than at first, and has parked some that were of no use:
/// the link then gives all of them no more than they have.
fn wait_until_parked(link: &Link, sandbox: &Sandbox, running: &mut Running) {
    wait_until("more streams are tried", || told(sandbox, Reason::TryMore) > 0 || !running.is_running());
    link.both(|knobs| knobs.rate(Some(ALL)));
    link.both(|knobs| knobs.flow_rate(None));
    wait_until("some are given up", || told(sandbox, Reason::Back) > 0 || !running.is_running());
    assert!(running.is_running(), "the copy was over before anything was found out");
}

/// The number of streams is found by the two nodes and told to a command that has no part in the data; files of many
/// sizes are synced one by one meanwhile.
#[test]
fn streams_come_and_go_between_two_nodes_while_each_file_is_synced() {
    if !carrack_faults::netns::can_make() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    for number in 0..20 {
        sandbox.write(format!("from/tree/large{number}"), tree::bytes(24 * MIB, number));
    }
    for number in 0..200 {
        sandbox.write(format!("from/tree/small{number}"), tree::bytes(10_000, 100 + number));
    }
    let link = slow_for_each();
    let from = Node::on(&link.host(Host::Near).prefix(), &sandbox, "from", ADDRESSES[0]);
    let to = Node::on(&link.host(Host::Far).prefix(), &sandbox, "to", ADDRESSES[1]);
    let mut command = sandbox.carrack();
    command.args(["-v", "--json", "--log-file=log", "--durable=each", &from.token_as("source")]);
    command.args([&to.token_as("destination"), &from.at("tree/"), &to.at("there")]);
    let mut running = Running::start(&mut link.host(Host::Near).on(&command));
    wait_until_parked(&link, &sandbox, &mut running);
    link.both(|knobs| knobs.rate(None));
    let ran = running.end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    same_tree(&sandbox.path("from/tree"), &sandbox.path("to/there"));
    assert_streams_came_and_went(&ran);
    assert_eq!((&ran.summary()["durable"], &ran.summary()["link"]["kind"]), (&true.into(), &"direct".into()));
}

/// A polite copy is stopped while some of its streams are parked, and begun again.
#[test]
fn polite_copy_with_parked_streams_is_stopped_and_goes_on() {
    if !carrack_faults::netns::can_make() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    let (link, node, mut command) = file_to_node(&sandbox, 640, &["--polite"]);
    let mut running = Running::start(&mut command);
    wait_until_parked(&link, &sandbox, &mut running);
    signal(running.id(), "TERM");
    assert_eq!(running.end().code, 75);
    let of_copy = || connections(&link, Host::Near, &node.address).len();
    wait_until("no connection stays, parked or not", || of_copy() == 0);
    link.both(|knobs| knobs.rate(None));
    let ran = Running::start(&mut command).end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/there"));
    let summary = ran.summary();
    assert!(summary["bytes_resumed"].as_u64() > Some(0), "{summary}");
    assert_eq!(summary["faults"]["streams_lost"], 0, "{summary}");
}

/// Each connection is slow, and twice as many would be twice as fast; but the rate is the one that was asked for.
#[test]
fn streams_stay_as_they_are_while_the_rate_is_the_one_that_was_asked_for() {
    if !carrack_faults::netns::can_make() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    let (_link, _node, mut command) = file_to_node(&sandbox, 10, &["--bwlimit=1M"]);
    let ran = Running::start(&mut command).end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/there"));
    assert_eq!(changes(&ran), [], "{}", ran.stdout);
    assert_eq!(ran.summary()["limited_by"]["stage"], "rate-limit", "{}", ran.stdout);
}

/// Where the control connection has shown that a node is far, no data connection waits for another: the first words of
/// all are on their way before one of them is made.
#[test]
fn connections_to_a_far_node_are_made_at_once() {
    if !carrack_faults::netns::can_make() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    sandbox.write("tree/file", tree::bytes(8 * MIB, 1));
    let far = |knobs: &carrack_faults::link::Knobs| knobs.delay(Duration::from_millis(300));
    let link = Link::new(&netns::name(), &Setup::default(), far).unwrap();
    let node = Node::on(&link.host(Host::Far).prefix(), &sandbox, "root", ADDRESSES[1]);
    let mut command = sandbox.carrack();
    command.args([&node.token(), "--encrypt=none", "tree/", &node.at("there")]);
    let mut running = Running::start(&mut link.host(Host::Near).on(&command));
    let (mut at_once, mut open) = (0, 0);
    wait_until("a data connection is made", || {
        // Asked for (02), and made (01). The order matters: what is made meanwhile is not counted as asked for.
        let asked = connections_in(&link, Host::Near, &node.address, "02").len();
        open = connections_in(&link, Host::Near, &node.address, "01").len();
        if open == 1 {
            at_once = at_once.max(asked);
        }
        open > 1 || !running.is_running()
    });
    let ran = running.end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let few = usize::from(Tuning::DEFAULT.streams_far_bbr);
    assert!(at_once >= few, "{at_once} were asked for before one was made");
    same_tree(&sandbox.path("tree"), &sandbox.path("root/there"));
}

/// Within a host, too, where a store is slow for one and quick for many. When more are tried depends on what else this
/// host does: none are while all its processors are busy. So there is plenty to copy, and the store is slow until then.
#[test]
fn copy_within_a_host_gets_more_streams_where_its_storage_waits() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    let sandbox = Sandbox::in_memory();
    for name in ["backing", "at"] {
        std::fs::create_dir(sandbox.path(name)).unwrap();
    }
    let features = Features { many_at_once: true, uncached: true, ..Features::default() };
    let slow = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("at"), features).unwrap();
    let content = tree::bytes(6 * MIB, 1);
    for number in 0..150 {
        sandbox.write(format!("backing/tree/f{number}"), &content);
    }
    slow.load(Load { calls: vec![Call::Read, Call::Write], each: Duration::from_millis(32), knee: 256 });
    let mut command = sandbox.carrack();
    command.args(["copy", "-v", "--json", "--log-file=log", "--durable=none", "at/tree/", "at/to"]);
    let mut running = Running::start(&mut command);
    wait_until("more streams are tried", || told(&sandbox, Reason::TryMore) > 0 || !running.is_running());
    slow.load(Load { calls: Vec::new(), each: Duration::ZERO, knee: 1 });
    let ran = running.end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    same_tree(&sandbox.path("backing/tree"), &sandbox.path("backing/to"));
    let (two, changed) = (u64::from(Tuning::DEFAULT.streams_near), changes(&ran));
    assert!(changed.first().is_some_and(|&(before, after)| before >= two && after > before), "{}", ran.stdout);
}
