//! What is wrong with a path of IP version 6, on hosts that have no other addresses, and the lines that mend it there.

use carrack_faults::link::{self, Host, Setup};

use super::network::{ASK, CABLE_V6, Far, Pair, add_fast, bracketed, plug, thin_and_long};
use super::{doctor, tune};
use crate::support::Sandbox;
use crate::support::netns::Hosts;
use crate::support::node::Node;
use crate::support::sshd::{Setup as SshSetup, Sshd};

/// A long way whose hosts have no addresses of version 4.
fn far(setup: &Setup, knobs: impl Fn(&link::Knobs)) -> Option<Far> {
    let far = Far::at(link::ADDRESSES_V6[1], setup, knobs)?;
    for host in [Host::Near, Host::Far] {
        far.link.host(host).ip(&["-4", "addr", "flush", "dev", "link0"]).unwrap();
    }
    Some(far)
}

#[test]
fn doctor_names_a_mismatch_of_packet_sizes_over_ipv6() {
    let Some(pair) = Pair::with(CABLE_V6) else { return };
    pair.doctor(&[ASK]).is_healthy();
    pair.far.ip(&["link", "set", "cable", "mtu", "1500"]).unwrap();
    let found = pair.doctor(&[ASK]);
    found.has_only(&[("far", "path.mtu"), ("far", "interface.mtu")]);
    assert!(found.fix("far", "path.mtu").starts_with("ip link set cable mtu 9000"), "{}", found.text);
    assert!(found.fix("far", "interface.mtu").starts_with("ip link set cable mtu 9000"), "{}", found.text);
}

#[test]
fn doctor_names_a_missing_route_over_ipv6() {
    let Some(mut pair) = Pair::with(CABLE_V6) else { return };
    const ELSEWHERE: &str = "fd00:8::2";
    pair.far.ip(&["addr", "add", &format!("{ELSEWHERE}/128"), "dev", "lo", "nodad"]).unwrap();
    pair.near.ip(&["-6", "route", "add", ELSEWHERE, "via", CABLE_V6[1]]).unwrap();
    pair.node = Node::on(&pair.far.prefix(), &pair.sandbox, "other", &bracketed(ELSEWHERE));
    pair.doctor(&[ASK]).is_healthy();
    pair.near.ip(&["-6", "route", "del", ELSEWHERE]).unwrap();
    let found = pair.doctor(&[ASK]);
    found.has_only(&[("path", "path.reached"), ("near", "path.route")]);
    let line = format!("ip -6 route add {ELSEWHERE} via ");
    assert!(found.fix("near", "path.route").starts_with(&line), "{}", found.text);
}

#[test]
fn doctor_names_the_slower_of_two_interfaces_over_ipv6() {
    let Some(far) = far(&Setup::default(), |_| {}) else { return };
    let [near, other] = [Host::Near, Host::Far].map(|host| far.link.host(host));
    plug(near, other, CABLE_V6);
    add_fast([near, other], ["fd00:9::1/64", "fd00:9::2/64"]);
    far.doctor(&[ASK]).is_healthy();
    for host in [near, other] {
        host.inside(|| carrack_sys::tun::set_speed("link0", 1000)).unwrap().unwrap();
    }
    let found = far.doctor(&[ASK]);
    found.has_only(&[("near", "interface.slower"), ("far", "interface.slower")]);
    let line = format!("ip -6 route replace {} via fd00:9::2 dev fast", link::ADDRESSES_V6[1]);
    assert!(found.fix("near", "interface.slower").starts_with(&line), "{}", found.text);
}

/// A packet that is too large is dropped, and the word of it (ICMPv6 "packet too big") does not arrive.
#[test]
fn doctor_names_a_black_hole_over_ipv6() {
    let Some(far) = far(&Setup { mtu: 9000, ..Setup::default() }, |_| {}) else { return };
    for host in [Host::Near, Host::Far] {
        // TCP's own packets are small enough for any of these ways: the black hole is for what comes later.
        let route = ["-6", "route", "replace", "fd77::/126", "dev", "link0", "proto", "kernel", "metric", "256"];
        far.link.host(host).ip(&[&route[..], &["advmss", "1200"]].concat()).unwrap();
    }
    let found = far.dig_black_hole();
    for side in ["near", "far"] {
        let cost = found.get(side, "path.black-hole")["cost"].as_str().unwrap();
        assert!(cost.contains("ICMPv6"), "{cost}");
        // The parameter is that of TCP over both versions.
        assert_eq!(found.fix(side, "path.black-hole"), "sysctl -w net.ipv4.tcp_mtu_probing=1");
    }
    assert_eq!(found.code, 3);
}

#[test]
fn doctor_names_loss_over_ipv6() {
    let (setup, knobs) = thin_and_long();
    let Some(far) = far(&setup, knobs) else { return };
    far.link.from(Host::Near).lose(0.02);
    let found = far.doctor(&["--rate=5MB", "--streams=2"]);
    assert_eq!(found.get("near", "path.loss")["severity"], "failure", "{}", found.text);
    assert!(found.fix("near", "path.loss").contains("bbr"), "{}", found.text);
}

#[test]
fn doctor_reaches_a_host_by_ssh_over_ipv6() {
    let Some(hosts) = Hosts::new() else { return };
    use crate::support::netns::Host::{Far, Near};
    for (host, address) in [Near, Far].into_iter().zip(CABLE_V6) {
        tune(hosts.host(host));
        let host = hosts.host(host);
        host.ip(&["-4", "addr", "flush", "dev", "cable"]).unwrap();
        host.ip(&["link", "set", "cable", "mtu", "9000"]).unwrap();
        host.ip(&["addr", "add", &format!("{address}/64"), "dev", "cable", "nodad"]).unwrap();
    }
    let sandbox = Sandbox::new();
    let prefix = hosts.prefix(Far);
    let sshd = Sshd::with(&sandbox, &SshSetup { addresses: &CABLE_V6[1..], prefix: &prefix, ..SshSetup::default() });
    let ask = || doctor(hosts.host(Near), &sandbox, &[&sshd.rsh, ASK, "far:"]);
    let found = ask();
    found.is_healthy();
    let route = found.findings.iter().find(|one| one["rule"] == "path.route" && one["side"] == "near").unwrap();
    assert_eq!(route["value"], format!("{} is reached by cable", CABLE_V6[1]));
    hosts.host(Near).ip(&["link", "set", "cable", "mtu", "1500"]).unwrap();
    let found = ask();
    found.has_only(&[("near", "path.mtu"), ("near", "interface.mtu")]);
}
