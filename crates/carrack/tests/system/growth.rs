//! The number of data connections while a copy runs: more where they are faster, fewer where they are not,
//! and none of it is a loss.

use std::collections::BTreeSet;
use std::time::Duration;

use carrack_core::pace::initial_streams;
use carrack_core::pace::streams::Reason;
use carrack_core::tuning::Tuning;
use carrack_faults::link::{ADDRESSES, Host, Link, Setup};
use serde_json::Value;

use crate::support::node::Node;
use crate::support::running::Running;
use crate::support::{Sandbox, netns, same_tree, tree, wait_until};

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

fn changes(events: &[Value]) -> Vec<(u64, u64)> {
    let changes = events.iter().filter(|event| event["type"] == "streams");
    changes.map(|event| (event["before"].as_u64().unwrap(), event["streams"].as_u64().unwrap())).collect()
}

#[test]
fn streams_come_where_each_is_slow_and_go_where_the_link_is() {
    if !carrack_faults::netns::can_make() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    sandbox.write("tree/file", tree::bytes(640 * MIB, 1));
    let slow = |knobs: &carrack_faults::link::Knobs| knobs.flow_rate(Some(EACH));
    let link = Link::new(&netns::name(), &Setup::default(), slow).unwrap();
    let node = Node::on(&link.host(Host::Far).prefix(), &sandbox, "root", ADDRESSES[1]);
    let mut command = sandbox.carrack();
    command.args(["-v", "--json", "--log-file", "log", &node.token(), "tree/", &node.at("there")]);
    let mut running = Running::start(&mut link.host(Host::Near).on(&command));
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
    let told = |what: Reason| {
        let log = std::fs::read_to_string(sandbox.path("log")).unwrap_or_default();
        log.matches(what.meaning()).count()
    };
    wait_until("more are tried, and not kept, and tried again", || {
        open();
        (told(Reason::Back) > 0 && told(Reason::TryMore) > 1) || !running.is_running()
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
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (changes, summary) = (changes(&events), ran.summary());
    assert!(changes.iter().any(|(before, now)| now > before), "{}", ran.stdout);
    assert!(changes.iter().any(|(before, now)| now < before), "{}", ran.stdout);
    assert_eq!(summary["link"]["streams"], changes.last().unwrap().1);
    // A stream may be found slow at the end, after all that the link has been through; none was lost.
    for fault in ["streams_lost", "resent_after_loss"] {
        assert_eq!(summary["faults"][fault], 0, "{summary}");
    }
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
