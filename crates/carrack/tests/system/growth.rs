//! The number of data connections while a copy runs: more where they are faster, fewer where they are not,
//! and none of it is a loss.

use std::time::Duration;

use carrack_core::pace::initial_streams;
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

/// Connections of a host that are open and lead to a port.
fn connections(link: &Link, from: Host, address: &str) -> usize {
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let table = link.host(from).inside(|| std::fs::read_to_string("/proc/thread-self/net/tcp")).unwrap().unwrap();
    // Number, local address, remote address, state: 01 is an established one.
    let leads_there = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[3] == "01" && words[2].ends_with(&format!(":{port:04X}"))
    };
    table.lines().skip(1).filter(leads_there).count()
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
    sandbox.write("tree/file", tree::bytes(192 * MIB, 1));
    let slow = |knobs: &carrack_faults::link::Knobs| knobs.flow_rate(Some(EACH));
    let link = Link::new(&netns::name(), &Setup::default(), slow).unwrap();
    let node = Node::on(&link.host(Host::Far).prefix(), &sandbox, "root", ADDRESSES[1]);
    let mut command = sandbox.carrack();
    command.args(["--json", &node.token(), "tree/", &node.at("there")]);
    let mut running = Running::start(&mut link.host(Host::Near).on(&command));
    // With the control connection.
    let first = usize::from(initial_streams(&Tuning::DEFAULT, Duration::ZERO, "", carrack_sys::host::cpu_count())) + 1;
    let mut most = 0;
    let mut now = || {
        let now = connections(&link, Host::Near, &node.address);
        most = most.max(now);
        (now, most)
    };
    wait_until("there are more streams than at first", || now().0 > first || !running.is_running());
    // As many as there are fill it.
    link.both(|knobs| knobs.rate(Some(ALL)));
    link.both(|knobs| knobs.flow_rate(None));
    wait_until("there are fewer again", || now().0 < now().1 || !running.is_running());
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
