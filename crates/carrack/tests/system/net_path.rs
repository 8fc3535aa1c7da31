//! The way that `bench net` tells: over a router between two hosts, network namespaces of the test's own.

use carrack_faults::link::{ADDRESSES, Host, Link, Setup};
use carrack_faults::netns::{self, Namespace};
use serde_json::Value;

use crate::support::Sandbox;
use crate::support::netns::name;
use crate::support::node::Node;
use crate::support::running::InTime;

/// Two hosts and the router between them; gone when dropped.
struct Routed {
    near: Namespace,
    router: Namespace,
    far: Namespace,
}

/// Addresses of a host and of the router's device towards it, in both versions of IP.
const NEAR: [[&str; 2]; 2] = [["10.1.0.2", "10.1.0.1"], ["fd01::2", "fd01::1"]];
const FAR: [[&str; 2]; 2] = [["10.2.0.2", "10.2.0.1"], ["fd02::2", "fd02::1"]];

impl Routed {
    /// `None`, and why is printed, where such things cannot be made. Packets on the cable to each host have `near` and
    /// `far` bytes at most.
    fn new(near: u32, far: u32) -> Option<Self> {
        if !netns::can_make() {
            return None;
        }
        let here = name();
        let make = |side: &str| Namespace::new(&format!("{here}-{side}")).unwrap();
        let routed = Self { near: make("near"), router: make("router"), far: make("far") };
        for parameter in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            routed.router.set(parameter, "1").unwrap();
        }
        for (host, device, addresses, mtu) in [(&routed.near, "tonear", NEAR, near), (&routed.far, "tofar", FAR, far)] {
            routed.join(host, device, addresses, mtu);
        }
        Some(routed)
    }

    fn join(&self, host: &Namespace, device: &str, addresses: [[&str; 2]; 2], mtu: u32) {
        let [own, routers] = [host.name(), self.router.name()];
        netns::ip(&["link", "add", "cable", "netns", own, "type", "veth", "peer", "name", device, "netns", routers])
            .unwrap();
        for (end, device, at) in [(host, "cable", 0), (&self.router, device, 1)] {
            end.ip(&["link", "set", device, "addrgenmode", "none"]).unwrap();
            end.ip(&["link", "set", device, "mtu", &mtu.to_string(), "up"]).unwrap();
            end.ip(&["addr", "add", &format!("{}/24", addresses[0][at]), "dev", device]).unwrap();
            // Whoever looks for a neighbour for others asks from an address of the link.
            for address in [addresses[1][at], &format!("fe80::{}", at + 1)] {
                end.ip(&["addr", "add", &format!("{address}/64"), "dev", device, "nodad"]).unwrap();
            }
        }
        for [_, router] in addresses {
            // TCP's own packets are small enough for any of these ways.
            host.ip(&["route", "add", "default", "via", router, "advmss", "1200"]).unwrap();
        }
    }
}

fn hops(row: &Value) -> Vec<Option<&str>> {
    row["route"]["hops"].as_array().unwrap().iter().map(|hop| hop["address"].as_str()).collect()
}

#[test]
fn net_tells_the_way_and_the_largest_packet_both_ways() {
    let Some(routed) = Routed::new(1500, 1400) else { return };
    for version in [0, 1] {
        let [there, back] = measured(&routed.near, &routed.far, FAR[version][0]);
        assert_eq!(hops(&there), [Some(NEAR[version][1]), Some(FAR[version][0])]);
        assert_eq!(hops(&back), [Some(FAR[version][1]), Some(NEAR[version][0])]);
        for row in [&there, &back] {
            // There the router says it, back the far host's own device.
            assert_eq!((&row["values"]["mtu_bytes"], &row["values"]["hops"]), (&1400.into(), &2.into()), "{row}");
            let route = &row["route"];
            assert_eq!(
                (&route["reached"], &route["is_mtu_proved"], &route["why"]),
                (&true.into(), &true.into(), &"".into())
            );
            assert_eq!(route["drops_large_packets"], false, "{row}");
            assert!(route["hops"][1]["rtt_us"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
}

/// What the near host measures of the path to a node on the far one: the rows of the way there and back.
fn measured(near: &Namespace, far: &Namespace, address: &str) -> [Value; 2] {
    let sandbox = Sandbox::new();
    let bracketed = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let node = Node::on(&far.prefix(), &sandbox, "root", &bracketed);
    let mut command = sandbox.carrack();
    command.args(["bench", "net", &node.at(""), &node.token(), "--json", "--no-keep", "--only-path"]);
    let output = near.on(&command).output_in_time().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(lines.iter().filter(|line| line["type"] == "row").count(), 2, "nothing else is measured: {told}");
    ["path there", "path back"].map(|name| {
        lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("no {name}: {told}")).clone()
    })
}

#[test]
fn net_says_where_large_packets_vanish() {
    if !netns::can_make() {
        return;
    }
    let setup = Setup { mtu: 1500, ..Setup::default() };
    let link = Link::new(&name(), &setup, |knobs| knobs.largest(Some(1400))).unwrap();
    for host in [Host::Near, Host::Far] {
        // TCP's own packets are small enough.
        let route = ["route", "replace", "10.200.0.0/30", "dev", "link0", "proto", "kernel", "scope", "link"];
        link.host(host).ip(&[&route[..], &["src", ADDRESSES[host as usize], "advmss", "1200"]].concat()).unwrap();
    }
    for row in measured(link.host(Host::Near), link.host(Host::Far), ADDRESSES[1]) {
        assert_eq!((&row["values"]["mtu_bytes"], &row["values"]["hops"]), (&1400.into(), &1.into()), "{row}");
        let route = &row["route"];
        assert_eq!((&route["drops_large_packets"], &route["is_mtu_proved"]), (&true.into(), &true.into()), "{row}");
    }
}

#[test]
fn net_says_where_nobody_answers() {
    let Some(routed) = Routed::new(1500, 1500) else { return };
    // A firewall of the silent kind before the far host.
    routed.far.ip(&["rule", "add", "pref", "100", "lookup", "local"]).unwrap();
    routed.far.ip(&["rule", "del", "pref", "0"]).unwrap();
    routed.far.ip(&["rule", "add", "pref", "10", "iif", "cable", "ipproto", "udp", "blackhole"]).unwrap();
    let [there, back] = measured(&routed.near, &routed.far, FAR[0][0]);
    assert_eq!(hops(&there), [Some(NEAR[0][1])]);
    let route = &there["route"];
    assert_eq!((&route["reached"], &route["is_mtu_proved"]), (&false.into(), &false.into()), "{there}");
    assert_eq!(route["why"], "nobody behind hop 1 answers probes");
    assert_eq!((hops(&back), &back["route"]["reached"]), (vec![Some(FAR[0][1]), Some(NEAR[0][0])], &true.into()));
}
