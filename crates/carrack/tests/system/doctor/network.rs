//! What is wrong with interfaces, TCP and the path.

use std::time::Duration;

use carrack_faults::link::{self, Host, Link, Setup};
use carrack_faults::netns::{self, Namespace};

use super::{Found, doctor, tune};
use crate::support::Sandbox;
use crate::support::netns::name;
use crate::support::node::Node;

/// The near and the far address of a cable.
const CABLE: [&str; 2] = ["10.0.7.1", "10.0.7.2"];
/// The same of IP version 6.
pub(super) const CABLE_V6: [&str; 2] = ["fd00:7::1", "fd00:7::2"];
/// Nothing is sent over the path but questions.
pub(super) const ASK: &str = "--no-measure";

/// Two hosts with a cable of 10 Gb/s between them, and a node on the far one.
pub(super) struct Pair {
    // In the order in which they have to go.
    pub node: Node,
    pub near: Namespace,
    pub far: Namespace,
    pub sandbox: Sandbox,
}

/// A cable between two hosts, with large packets and these addresses.
pub(super) fn plug(near: &Namespace, far: &Namespace, addresses: [&str; 2]) {
    let [own, others] = [near.name(), far.name()];
    netns::ip(&["link", "add", "cable", "netns", own, "type", "veth", "peer", "name", "cable", "netns", others])
        .unwrap();
    for (host, address) in [near, far].into_iter().zip(addresses) {
        let (length, more) = if address.contains(':') { (64, &["nodad"][..]) } else { (24, &[][..]) };
        host.ip(&[&["addr", "add", &format!("{address}/{length}"), "dev", "cable"], more].concat()).unwrap();
        host.ip(&["link", "set", "cable", "mtu", "9000", "up"]).unwrap();
    }
}

impl Pair {
    /// `None`, and why is printed, where such things cannot be made.
    fn new() -> Option<Self> {
        Self::with(CABLE)
    }

    /// With these addresses, and no others.
    pub fn with(addresses: [&str; 2]) -> Option<Self> {
        if !netns::can_make() {
            return None;
        }
        let here = name();
        let [near, far] = ["near", "far"].map(|side| Namespace::new(&format!("{here}-{side}")).unwrap());
        plug(&near, &far, addresses);
        tune(&near);
        tune(&far);
        let sandbox = Sandbox::new();
        let node = Node::on(&far.prefix(), &sandbox, "root", &bracketed(addresses[1]));
        Some(Self { node, near, far, sandbox })
    }

    pub fn doctor(&self, more: &[&str]) -> Found {
        let (at, token) = (self.node.at(""), self.node.token());
        doctor(&self.near, &self.sandbox, &[&[at.as_str(), token.as_str()], more].concat())
    }
}

/// An address as it stands before a port.
pub(super) fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

#[test]
fn doctor_finds_nothing_on_a_pair_that_is_as_it_should_be() {
    let Some(pair) = Pair::new() else { return };
    let found = pair.doctor(&[]);
    let loss = |found: &Found| found.rules().iter().any(|(_, rule)| rule == "path.loss");
    // Two programs at full rate on few processors may lose a packet: that one is there, then.
    if !loss(&found) {
        found.is_healthy();
    }
    let known = |rule: &str| found.findings.iter().any(|one| one["rule"] == rule && one["severity"] == "ok");
    for rule in [
        "path.reached",
        "path.route",
        "path.firewall",
        "path.mtu",
        "path.black-hole",
        "path.symmetry",
        "middlebox.options",
        "middlebox.segment",
        "tcp.receive-buffer",
        "interface.mtu",
    ] {
        assert!(known(rule), "{rule} is not known: {}", found.text);
    }
}

#[test]
fn doctor_names_settings_of_tcp_that_are_planted() {
    let Some(pair) = Pair::new() else { return };
    pair.doctor(&[ASK]).is_healthy();
    let cases = [
        (
            "ipv4/tcp_congestion_control",
            "reno",
            "tcp.congestion-control",
            "sysctl -w net.ipv4.tcp_congestion_control=bbr",
        ),
        ("ipv4/tcp_window_scaling", "0", "tcp.window-scaling", "sysctl -w net.ipv4.tcp_window_scaling=1"),
        ("ipv4/tcp_sack", "0", "tcp.sack", "sysctl -w net.ipv4.tcp_sack=1"),
        ("ipv4/tcp_timestamps", "0", "tcp.timestamps", "sysctl -w net.ipv4.tcp_timestamps=1"),
        ("ipv4/tcp_mtu_probing", "0", "tcp.mtu-probing", "sysctl -w net.ipv4.tcp_mtu_probing=1"),
    ];
    for (parameter, value, rule, line) in cases {
        for (side, host) in [("near", &pair.near), ("far", &pair.far)] {
            let path = format!("/proc/sys/net/{parameter}");
            let before = host.inside(|| std::fs::read_to_string(&path).unwrap()).unwrap();
            host.set(parameter, value).unwrap();
            let found = pair.doctor(&[ASK]);
            found.has_only(&[(side, rule)]);
            // Which ones there are depends on the kernel.
            let expected = if rule == "tcp.congestion-control" { &line[..line.len() - 3] } else { line };
            assert!(found.fix(side, rule).starts_with(expected), "{}", found.text);
            host.set(parameter, before.trim()).unwrap();
        }
    }
    pair.doctor(&[ASK]).is_healthy();
}

#[test]
fn doctor_names_a_mismatch_of_packet_sizes() {
    let Some(pair) = Pair::new() else { return };
    pair.far.ip(&["link", "set", "cable", "mtu", "1500"]).unwrap();
    let found = pair.doctor(&[ASK]);
    found.has_only(&[("far", "path.mtu"), ("far", "interface.mtu")]);
    assert!(found.fix("far", "path.mtu").starts_with("ip link set cable mtu 9000"), "{}", found.text);
    assert!(found.fix("far", "interface.mtu").starts_with("ip link set cable mtu 9000"), "{}", found.text);
    assert_eq!(found.code_of_own(), 1);
}

#[test]
fn doctor_names_a_missing_route() {
    let Some(mut pair) = Pair::new() else { return };
    const ELSEWHERE: &str = "10.0.8.2";
    pair.far.ip(&["addr", "add", &format!("{ELSEWHERE}/32"), "dev", "lo"]).unwrap();
    pair.near.ip(&["route", "add", ELSEWHERE, "via", CABLE[1]]).unwrap();
    pair.node = Node::on(&pair.far.prefix(), &pair.sandbox, "other", ELSEWHERE);
    pair.doctor(&[ASK]).is_healthy();
    pair.near.ip(&["route", "del", ELSEWHERE]).unwrap();
    let found = pair.doctor(&[ASK]);
    found.has_only(&[("path", "path.reached"), ("near", "path.route")]);
    assert!(found.fix("near", "path.route").starts_with(&format!("ip route add {ELSEWHERE} via ")), "{}", found.text);
    assert_eq!(found.code, 3);
}

/// Two hosts and a long way between them, with a node on the far one.
pub(super) struct Far {
    pub node: Node,
    pub link: Link,
    pub sandbox: Sandbox,
}

impl Far {
    pub fn new(setup: &Setup, knobs: impl Fn(&link::Knobs)) -> Option<Self> {
        Self::at(link::ADDRESSES[1], setup, knobs)
    }

    /// Reached at this address of the far host.
    pub fn at(address: &str, setup: &Setup, knobs: impl Fn(&link::Knobs)) -> Option<Self> {
        if !netns::can_make() {
            return None;
        }
        let link = Link::new(&name(), setup, knobs).unwrap();
        for host in [Host::Near, Host::Far] {
            link.host(host).set("ipv4/tcp_mtu_probing", "1").unwrap();
        }
        let sandbox = Sandbox::new();
        let node = Node::on(&link.host(Host::Far).prefix(), &sandbox, "root", &bracketed(address));
        Some(Self { node, link, sandbox })
    }

    pub fn doctor(&self, more: &[&str]) -> Found {
        let (at, token) = (self.node.at(""), self.node.token());
        doctor(self.link.host(Host::Near), &self.sandbox, &[&[at.as_str(), token.as_str()], more].concat())
    }

    /// Has the path drop packets above 1,400 bytes without a word: doctor finds that at both ends, and did not before.
    pub fn dig_black_hole(&self) -> Found {
        let holes = |found: &Found| found.rules().into_iter().filter(|(_, rule)| rule == "path.black-hole").count();
        assert_eq!(holes(&self.doctor(&[])), 0);
        self.link.both(|knobs| knobs.largest(Some(1400)));
        let found = self.doctor(&[]);
        assert_eq!(holes(&found), 2, "{}", found.text);
        found
    }
}

#[test]
fn doctor_names_small_windows_with_what_they_cost_on_this_path() {
    let delay = |knobs: &link::Knobs| knobs.delay(Duration::from_millis(20));
    let Some(far) = Far::new(&Setup::default(), delay) else { return };
    far.doctor(&[ASK, "--rate=75MB"]).is_healthy();
    let cases = [
        (
            Host::Far,
            "far",
            "ipv4/tcp_rmem",
            "4096 131072 1048576",
            "tcp.receive-buffer",
            "sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'",
        ),
        (
            Host::Near,
            "near",
            "ipv4/tcp_wmem",
            "4096 65536 1048576",
            "tcp.send-buffer",
            "sysctl -w net.ipv4.tcp_wmem='4096 65536 8388608'",
        ),
    ];
    for (host, side, parameter, value, rule, line) in cases {
        far.link.host(host).set(parameter, value).unwrap();
        let found = far.doctor(&[ASK, "--rate=75MB"]);
        found.has_only(&[(side, rule)]);
        assert_eq!(found.fix(side, rule), line);
        let cost = found.get(side, rule)["cost"].as_str().unwrap();
        // The round trip is 40 ms, and more while others keep the processors busy.
        assert!(cost.starts_with("one stream is limited to ") && cost.contains(" MB/s at "), "{cost}");
        far.link.host(host).set(parameter, "4096 131072 134217728").unwrap();
    }
    // More streams share what the path holds.
    far.link.host(Host::Far).set("ipv4/tcp_rmem", "4096 131072 2097152").unwrap();
    let severity = |streams: &str| {
        let found = far.doctor(&[ASK, "--rate=75MB", streams]);
        found.get("far", "tcp.receive-buffer")["severity"].as_str().unwrap().to_owned()
    };
    assert_eq!((severity("--streams=1"), severity("--streams=16")), ("failure".to_owned(), "warning".to_owned()));
}

/// An interface of both hosts upon the cable between them: the cable itself is of the kind that leads to containers.
pub(super) fn add_fast(hosts: [&Namespace; 2], addresses: [&str; 2]) {
    for (host, address) in hosts.into_iter().zip(addresses) {
        host.ip(&["link", "add", "link", "cable", "name", "fast", "type", "macvlan", "mode", "bridge"]).unwrap();
        let more = if address.contains(':') { &["nodad"][..] } else { &[] };
        host.ip(&[&["addr", "add", address, "dev", "fast"], more].concat()).unwrap();
        host.ip(&["link", "set", "fast", "up"]).unwrap();
    }
}

#[test]
fn doctor_names_the_slower_of_two_interfaces() {
    let Some(far) = Far::new(&Setup::default(), |_| {}) else { return };
    let [near, other] = [Host::Near, Host::Far].map(|host| far.link.host(host));
    plug(near, other, CABLE);
    add_fast([near, other], ["10.0.9.1/24", "10.0.9.2/24"]);
    far.doctor(&[ASK]).is_healthy();
    for host in [near, other] {
        host.inside(|| carrack_sys::tun::set_speed("link0", 1000)).unwrap().unwrap();
    }
    let found = far.doctor(&[ASK]);
    found.has_only(&[("near", "interface.slower"), ("far", "interface.slower")]);
    let told = found.get("near", "interface.slower");
    assert_eq!(told["value"], "data to 10.200.0.2 goes by link0 (1 Gb/s), and fast (10 Gb/s) is up");
    assert!(
        found.fix("near", "interface.slower").starts_with("ip route replace 10.200.0.2 via 10.0.9.2 dev fast"),
        "{}",
        found.text
    );
}

#[test]
fn doctor_names_a_black_hole() {
    let setup = Setup { mtu: 9000, ..Setup::default() };
    let Some(far) = Far::new(&setup, |_| {}) else { return };
    for host in [Host::Near, Host::Far] {
        // TCP's own packets are small enough for any of these ways: the black hole is for what comes later.
        let route = ["route", "replace", "10.200.0.0/30", "dev", "link0", "proto", "kernel", "scope", "link"];
        let source = link::ADDRESSES[host as usize];
        far.link.host(host).ip(&[&route[..], &["src", source, "advmss", "1200"]].concat()).unwrap();
    }
    let found = far.dig_black_hole();
    for side in ["near", "far"] {
        assert_eq!(found.fix(side, "path.black-hole"), "sysctl -w net.ipv4.tcp_mtu_probing=1");
    }
    assert_eq!(found.code, 3);
}

/// A path on which loss costs much: 100 Mbit/s and 30 ms there and back, CUBIC, and windows that fill it.
pub(super) fn thin_and_long() -> (Setup, impl Fn(&link::Knobs)) {
    let setup =
        Setup { congestion_control: Some("cubic".to_owned()), tcp_buffer_bytes: Some(1 << 20), ..Setup::default() };
    let knobs = |knobs: &link::Knobs| {
        knobs.delay(Duration::from_millis(15));
        knobs.rate(Some(100_000_000));
        knobs.queue(Some(16 << 20));
    };
    (setup, knobs)
}

#[test]
fn doctor_names_loss_on_a_far_path() {
    let (setup, knobs) = thin_and_long();
    let Some(far) = Far::new(&setup, knobs) else { return };
    let wish = ["--rate=5MB", "--streams=2"];
    // Where processors are busy with other tests, a packet may be late enough to be sent again.
    let lost = |found: &Found, side: &str| {
        let told = found.findings.iter().find(|one| one["rule"] == "path.loss" && one["side"] == side);
        told.map(|told| told["severity"].clone()).unwrap_or_default()
    };
    let before = far.doctor(&wish);
    let others = before.rules().into_iter().filter(|(_, rule)| rule != "path.loss");
    assert_eq!((others.count(), lost(&before, "near") == "failure"), (0, false), "{}", before.text);
    // What is lost on the way back is the far host's, whose packets are sent again.
    for (from, side, other) in [(Host::Near, "near", "far"), (Host::Far, "far", "near")] {
        far.link.from(from).lose(0.02);
        let found = far.doctor(&wish);
        let told = found.get(side, "path.loss");
        assert_eq!(
            (lost(&found, side) == "failure", lost(&found, other) == "failure"),
            (true, false),
            "{}",
            found.text
        );
        assert!(told["cost"].as_str().unwrap().contains("Reno"), "{}", found.text);
        assert!(found.fix(side, "path.loss").contains("bbr"), "{}", found.text);
        far.link.from(from).lose(0.0);
    }
}

#[test]
fn doctor_names_a_segment_that_is_lowered_on_the_way() {
    let Some(far) = Far::new(&Setup::default(), |_| {}) else { return };
    far.doctor(&[ASK]).is_healthy();
    for (from, side) in [(Host::Near, "near"), (Host::Far, "far")] {
        far.link.from(from).lower_segment(Some(536));
        let found = far.doctor(&[ASK]);
        found.has_only(&[(side, "middlebox.segment")]);
        let value = found.get(side, "middlebox.segment")["value"].as_str().unwrap();
        assert!(value.ends_with("bytes were announced, and 536 arrived"), "{value}");
        assert!(found.fix(side, "middlebox.segment").contains("lower the MTU"), "{}", found.text);
        far.link.from(from).lower_segment(None);
    }
}

#[test]
fn doctor_names_a_middlebox_that_alters_the_first_packet() {
    let delay = |knobs: &link::Knobs| knobs.delay(Duration::from_millis(20));
    let Some(far) = Far::new(&Setup::default(), delay) else { return };
    let wish = [ASK, "--rate=75MB"];
    far.doctor(&wish).is_healthy();
    // It changes the near host's requests, and its answers to the far host's.
    far.link.from(Host::Near).strip_options(true);
    let found = far.doctor(&wish);
    found.has_only(&[("near", "middlebox.options"), ("far", "middlebox.options")]);
    let told = found.get("near", "middlebox.options");
    let value = told["value"].as_str().unwrap();
    for option in ["window scaling", "selective acknowledgements", "timestamps"] {
        assert!(value.contains(&format!("{option} (taken out of the request)")), "{value}");
    }
    assert!(told["cost"].as_str().unwrap().starts_with("one stream is limited to 1."), "{}", found.text);
    assert!(found.fix("near", "middlebox.options").contains("Science DMZ"));
    assert!(found.get("far", "middlebox.options")["value"].as_str().unwrap().contains("taken out of the answer"));
    far.link.from(Host::Near).strip_options(false);
    far.link.from(Host::Far).strip_options(true);
    let found = far.doctor(&wish);
    found.has_only(&[("near", "middlebox.options"), ("far", "middlebox.options")]);
    assert!(found.get("near", "middlebox.options")["value"].as_str().unwrap().contains("taken out of the answer"));
    far.link.from(Host::Far).strip_options(false);
    far.doctor(&wish).is_healthy();
}
