//! A far host that ssh does not get to: what the near host finds of the way there, and how soon. And a far way that
//! nothing is wrong with, full as doctor makes it.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use carrack_faults::link::{self, Host, Link, Setup};
use carrack_faults::netns;

use super::network::Far;
use super::{Found, doctor};
use crate::support::Sandbox;
use crate::support::netns::name;
use crate::support::node::Node;

/// An ssh that hangs, and whose configuration leads to this server.
fn hanging_ssh(sandbox: &Sandbox, address: &str, port: u16) -> String {
    let script =
        format!("#!/bin/sh\n[ \"$1\" = -G ] && exec printf 'hostname {address}\\nport {port}\\n'\nexec sleep 600\n");
    let file = sandbox.write("ssh", script);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("--rsh={}", file.display())
}

fn ask(link: &Link, sandbox: &Sandbox, rsh: &str) -> Found {
    doctor(link.host(Host::Near), sandbox, &["far:", rsh])
}

#[test]
#[ignore = "a dead host is waited for 8 s: cargo test -p carrack --test system behind_ssh -- --ignored"]
fn doctor_names_a_dead_host_behind_ssh() {
    if !netns::can_make() {
        return;
    }
    let (link, sandbox) = (Link::new(&name(), &Setup::default(), |_| {}).unwrap(), Sandbox::new());
    // Nobody has the other address of this network.
    let rsh = hanging_ssh(&sandbox, "10.200.1.1", 22);
    link.host(Host::Near).ip(&["route", "replace", "10.200.1.1/32", "dev", "link0"]).unwrap();
    let found = ask(&link, &sandbox, &rsh);
    let reached = found.get("path", "path.reached");
    let value = reached["value"].as_str().unwrap();
    assert!(value.contains("10.200.1.1, port 22, timed out") && value.contains("nobody"), "{}", found.text);
    assert!(reached["cost"].as_str().unwrap().contains("the host is down"), "{}", found.text);
    assert!(!found.fix("path", "path.reached").is_empty(), "{}", found.text);
    assert_eq!(found.code, 3);
}

#[test]
#[ignore = "ssh has 15 s to get through: cargo test -p carrack --test system behind_ssh -- --ignored"]
fn doctor_names_a_black_hole_behind_ssh() {
    if !netns::can_make() {
        return;
    }
    let setup = Setup { mtu: 9000, ..Setup::default() };
    let (link, sandbox) = (Link::new(&name(), &setup, |knobs| knobs.largest(Some(1400))).unwrap(), Sandbox::new());
    // Somebody who listens, as an ssh server does.
    let node = Node::on(&link.host(Host::Far).prefix(), &sandbox, "root", link::ADDRESSES[1]);
    let port = node.address.rsplit(':').next().unwrap().parse().unwrap();
    let rsh = hanging_ssh(&sandbox, link::ADDRESSES[1], port);
    let found = ask(&link, &sandbox, &rsh);
    let hole = found.get("near", "path.black-hole");
    assert!(hole["value"].as_str().unwrap().contains("1400 bytes arrive"), "{}", found.text);
    assert_eq!(found.fix("near", "path.black-hole"), "sysctl -w net.ipv4.tcp_mtu_probing=1");
    assert!(found.get("path", "path.reached")["value"].as_str().unwrap().contains("large packets vanish"));
}

/// Doctor at a way of this round trip and rate that is as it should be: the queue before the narrowest place is full
/// while it is measured, and packets are lost there.
fn clean_path(round_trip: Duration, bits: u64) -> Option<Found> {
    let setup =
        Setup { congestion_control: Some("cubic".to_owned()), tcp_buffer_bytes: Some(64 << 20), ..Setup::default() };
    let knobs = |knobs: &link::Knobs| {
        knobs.delay(round_trip / 2);
        knobs.rate(Some(bits));
    };
    let far = Far::new(&setup, knobs)?;
    let found = far.doctor(&[&format!("--rate={}MB", bits / 8_000_000)]);
    assert!(found.text.contains("path.loss"), "{} {:?}", found.text, far.link.counts(Host::Near));
    Some(found)
}

#[test]
fn doctor_does_not_take_its_own_queue_for_loss() {
    let Some(found) = clean_path(Duration::from_millis(40), 300_000_000) else { return };
    let lossy: Vec<_> = found.bad().filter(|one| one["rule"] == "path.loss").collect();
    assert!(lossy.is_empty(), "{lossy:#?}");
}

#[test]
#[ignore = "minutes: cargo test -p carrack --test system clean_paths -- --ignored"]
fn clean_paths_of_5_to_300_ms_have_nothing_to_mend() {
    for milliseconds in [5, 10, 20, 40, 80, 150, 300] {
        for bits in [100_000_000, 300_000_000] {
            let Some(found) = clean_path(Duration::from_millis(milliseconds), bits) else { return };
            let bad: Vec<_> = found.bad().filter(|one| one["side"] == "path").collect();
            assert!(bad.is_empty(), "{milliseconds} ms, {bits} bit/s: {bad:#?}");
        }
    }
}
