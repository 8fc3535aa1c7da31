//! The rules on hosts that others have described: directories of evidence, each of which says where it is from.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use carrack_core::evidence::{Evidence, EvidenceText};
use carrack_core::report::PathTrace;
use carrack_doctor::{Finding, Host, HostSide, Path, Severity, Situation, diagnose};

use support::host;

fn pair(near: &str, far: &str, round_trip_ms: u64) -> Vec<Finding> {
    let path = Path { round_trip: Some(Duration::from_millis(round_trip_ms)), ..Path::default() };
    diagnose(&Situation { far: Some(host(far)), path, ..Situation::of(host(near)) })
}

/// The findings to mend on one side: rule, severity, and the line that mends it.
fn to_mend(findings: &[Finding], side: HostSide) -> Vec<(&str, Severity, String)> {
    let bad = findings.iter().filter(|finding| finding.side == Some(side) && finding.severity >= Severity::Warning);
    bad.map(|one| (one.rule, one.severity, one.fix.as_ref().map(|fix| fix.line()).unwrap_or_default())).collect()
}

#[test]
fn dtn_of_100g_is_told_what_holds_it_back() {
    let found = pair("dtn-100g", "dtn-100g", 50);
    let told = to_mend(&found, HostSide::Near);
    let line = |rule: &str| {
        let lines: Vec<&str> = told.iter().filter(|(one, ..)| *one == rule).map(|(.., line)| line.as_str()).collect();
        assert!(!lines.is_empty(), "{rule} is not in {told:#?}");
        lines.join("\n")
    };
    // 100 Gb/s at 50 ms are 625 MB under way, twice that of buffer.
    assert_eq!(line("tcp.receive-buffer"), "sysctl -w net.ipv4.tcp_rmem='4096 131072 2147483647'");
    assert_eq!(line("tcp.send-buffer"), "sysctl -w net.ipv4.tcp_wmem='4096 65536 1073741824'");
    assert_eq!(line("tcp.mtu-probing"), "sysctl -w net.ipv4.tcp_mtu_probing=1");
    assert_eq!(line("tcp.optmem"), "sysctl -w net.core.optmem_max=1048576");
    assert_eq!(line("interface.rings"), "ethtool -G ens6f0 rx 8192 tx 8192");
    assert_eq!(line("interface.queue-length"), "ip link set ens6f0 txqueuelen 10000");
    assert_eq!(line("interface.qdisc"), "sysctl -w net.core.default_qdisc=fq");
    assert_eq!(line("interface.softnet"), "sysctl -w net.core.netdev_max_backlog=250000");
    assert!(line("interface.slot").contains("lanes") && line("host.iommu").contains("iommu=pt"));
    assert!(line("interface.pause").contains("keep up") && line("tcp.listen-queue").contains("backlog"));
    let slot = found.iter().find(|finding| finding.rule == "interface.slot").unwrap();
    assert_eq!(
        (slot.value.as_str(), slot.cost.as_str()),
        ("8.0 GT/s PCIe, 8 lanes", "the slot carries 63 Gb/s instead of 126 Gb/s")
    );
    // What is as it should be is not told as anything else.
    for fine in [
        "interface.mtu",
        "interface.offloads",
        "interface.lro",
        "interface.duplex",
        "interface.slower",
        "host.open-files",
        "tcp.congestion-control",
        "tcp.sack",
    ] {
        assert!(told.iter().all(|(rule, ..)| *rule != fine), "{fine}: {told:#?}");
    }
}

#[test]
fn card_with_large_receive_offload_and_one_queue_is_told_both_lines() {
    let found = diagnose(&Situation::of(host("lro-one-queue")));
    let of = |rule: &str| {
        let one = found.iter().find(|finding| finding.rule == rule).unwrap_or_else(|| panic!("no {rule}"));
        (one.severity, one.value.as_str(), one.fix.as_ref().map(|fix| fix.line()).unwrap_or_default())
    };
    assert_eq!(of("interface.lro"), (Severity::Warning, "on", "ethtool -K eth0 lro off".to_owned()));
    let line = "ethtool -L eth0 combined 16".to_owned();
    assert_eq!(of("interface.channels"), (Severity::Warning, "1 of 16", line));
    for fine in ["interface.offloads", "interface.duplex", "interface.mtu"] {
        assert_eq!(of(fine).0, Severity::Ok, "{fine}");
    }
}

#[test]
fn interrupts_that_all_come_to_one_processor_or_to_the_other_node_are_named() {
    let of = |fixture: &str| {
        let found = diagnose(&Situation::of(host(fixture)));
        let one = found.into_iter().find(|finding| finding.rule == "interface.interrupts").expect("it is told");
        let line = one.fix.as_ref().map(|fix| fix.line()).unwrap_or_default();
        (one.severity, one.value, line.split("   #").next().unwrap_or_default().to_owned())
    };
    let (severity, value, line) = of("irq-one-processor");
    assert_eq!((severity, value.as_str()), (Severity::Warning, "those of 4 queues all come to processor 0"));
    let spread = "do echo $n > /proc/irq/$irq/smp_affinity_list; n=$((n < ";
    assert_eq!(line, format!("n=0; for irq in 32 33 34 35; {spread}7 ? n + 1 : 0)); done"));
    let (severity, value, line) = of("irq-other-node");
    assert_eq!(
        (severity, value.as_str()),
        (Severity::Warning, "those of 3 queues come to no processor of the card's node")
    );
    assert_eq!(line, format!("n=0; for irq in 151 152 153; {spread}47 ? n + 1 : 0)); done"));
    // Spread over the card's node, or of a slow card, they are as they should be.
    let said = |speed: &str, processors: [&str; 2]| {
        let lines = format!("9 80000 {} a\n8 1000 {} b\n", processors[0], processors[1]);
        let place = |file: &str| format!("sys/class/net/eth0/{file}");
        let mut evidence = Evidence::default();
        for (name, text) in [
            ("interrupts/eth0".to_owned(), lines.as_str()),
            (place("speed"), speed),
            (place("operstate"), "up"),
            (place("carrier"), "1"),
            (place("type"), "1"),
            (place("device/numa_node"), "1"),
            (place("device/local_cpulist"), "4-7"),
            ("sys/devices/system/node/online".to_owned(), "0-1"),
            ("sys/devices/system/cpu/online".to_owned(), "0-7"),
        ] {
            evidence.put(&name, EvidenceText::Found(text.to_owned()));
        }
        let found = diagnose(&Situation::of(Host { name: "a host".to_owned(), evidence: Ok(evidence) }));
        found.into_iter().find(|finding| finding.rule == "interface.interrupts").expect("it is told").severity
    };
    assert_eq!((said("25000", ["5", "5"]), said("25000", ["0-3", "2"])), (Severity::Warning, Severity::Warning));
    assert_eq!((said("25000", ["5", "6"]), said("25000", ["3", "4"])), (Severity::Ok, Severity::Ok));
    assert_eq!((said("1000", ["5", "5"]), said("1000", ["0", "1"])), (Severity::Ok, Severity::Ok));
}

#[test]
fn port_that_agreed_on_half_duplex_is_a_failure() {
    let found = diagnose(&Situation::of(host("half-duplex")));
    let one = found.iter().find(|finding| finding.rule == "interface.duplex").unwrap();
    assert_eq!((one.severity, one.value.as_str()), (Severity::Failure, "half"));
    let line = one.fix.as_ref().unwrap().line();
    assert_eq!(line, "ethtool -s eth1 autoneg on   # and on the switch's port, too");
    // What would matter at 10 Gb/s does not at 100 Mb/s.
    for quiet in ["interface.mtu", "interface.offloads", "interface.lro"] {
        assert!(found.iter().all(|one| one.rule != quiet || one.severity < Severity::Warning), "{quiet}");
    }
}

#[test]
fn laptop_has_unknowns_where_nobody_can_know() {
    let found = diagnose(&Situation::of(host("laptop")));
    let of =
        |rule: &str| found.iter().filter(|finding| finding.rule == rule).map(|one| one.severity).collect::<Vec<_>>();
    // A wireless card tells no speed, and so nobody knows what its windows should be.
    for rule in ["tcp.receive-buffer", "tcp.send-buffer", "interface.mtu", "interface.duplex", "interface.offloads"] {
        assert_eq!(of(rule), [Severity::Unknown], "{rule}");
    }
    let told = to_mend(&found, HostSide::Near);
    let rules: Vec<&str> = told.iter().map(|(rule, ..)| *rule).collect();
    assert_eq!(rules, ["host.commands"], "{told:#?}");
    assert_eq!(told[0].2, "echo 'PATH=$PATH:/usr/sbin' >> ~/.profile");
    // With a path and a rate it is known.
    let path = Path { round_trip: Some(Duration::from_millis(100)), ..Path::default() };
    let wish = carrack_doctor::Wish { rate: Some(125e6), ..carrack_doctor::Wish::default() };
    let found = diagnose(&Situation { path, wish, ..Situation::of(host("laptop")) });
    let receive = found.iter().find(|finding| finding.rule == "tcp.receive-buffer").unwrap();
    assert_eq!(receive.severity, Severity::Warning);
    assert_eq!(receive.cost, "one stream is limited to 31 MB/s at 100 ms; 8 streams are not");
}

#[test]
fn bond_that_hashes_by_addresses_carries_one_link() {
    let found = pair("laptop", "bond", 20);
    let told = to_mend(&found, HostSide::Far);
    let bond = told.iter().find(|(rule, ..)| *rule == "interface.bond").unwrap_or_else(|| panic!("{told:#?}"));
    assert_eq!(bond.2, "ip link set bond0 type bond xmit_hash_policy layer3+4");
    let bond = found.iter().find(|finding| finding.rule == "interface.bond").unwrap();
    assert_eq!(bond.cost, "all streams to one host together are limited to 1.2 GB/s");
}

/// A transfer node whose data goes over a VLAN: what is wrong is below it, in the bond and in its links.
#[test]
fn what_is_below_a_vlan_is_looked_at_too() {
    let found = pair("laptop", "dtn-vlan", 20);
    let told = to_mend(&found, HostSide::Far);
    let of = |rule: &str| {
        let of = found.iter().filter(|one| one.rule == rule && one.side == Some(HostSide::Far));
        of.filter(|one| one.severity >= Severity::Warning).map(|one| one.subject.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("interface.bond"), ["bond0"], "{told:#?}");
    assert_eq!((of("interface.duplex"), of("interface.errors")), (vec!["eth5"], vec!["eth6"]), "{told:#?}");
    assert_eq!(of("interface.slot"), ["eth7"], "{told:#?}");
    let lines: Vec<&str> = told.iter().map(|(.., line)| line.as_str()).collect();
    assert!(lines.contains(&"ip link set bond0 type bond xmit_hash_policy layer3+4"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("ethtool -s eth5 autoneg on")), "{lines:#?}");
    // What is as it should be on all of them is told once.
    let mtu = found.iter().filter(|one| one.rule == "interface.mtu" && one.side == Some(HostSide::Far));
    assert_eq!(mtu.count(), 1);
}

/// Streams that fill a path lose what overflows in its queue: that is no fault of the path.
#[test]
fn loss_in_a_queue_that_the_measurement_fills_is_no_loss_of_the_path() {
    let of = |resent, when_full| {
        let mut path = Path { round_trip: Some(Duration::from_millis(40)), ..Path::default() };
        (path.there.resent, path.there.resent_when_full) = (resent, when_full);
        let found = diagnose(&Situation { far: Some(host("bond")), path, ..Situation::of(host("laptop")) });
        let loss = found.into_iter().find(|one| one.rule == "path.loss" && one.side == Some(HostSide::Near)).unwrap();
        (loss.severity, loss.value)
    };
    let (severity, value) = of(Some((0, 30_000)), Some((1_000, 160_000)));
    assert!(severity == Severity::Ok && value.contains("its own queue overflowed"), "{value}");
    // What is lost also where the queues are empty is the path's.
    assert_eq!(of(Some((150, 30_000)), Some((1_000, 160_000))).0, Severity::Failure);
    assert_eq!(of(None, Some((1_000, 160_000))).0, Severity::Unknown);
}

/// A far host that ssh does not reach: the way there was looked at from here.
#[test]
fn host_that_was_not_reached_is_told_with_the_way_to_it() {
    let of = |why: &str, trace: carrack_core::report::PathTrace| {
        let mut path = Path::default();
        path.there.trace = Some(trace);
        let unreached = Some((why.to_owned(), None));
        diagnose(&Situation { unreached, path, ..Situation::of(host("laptop")) })
    };
    let find = |found: &[Finding], rule: &str| found.iter().find(|one| one.rule == rule).cloned().expect("it is told");
    let hop = carrack_core::report::Hop { address: Some("10.1.1.1".parse().unwrap()), round_trip: None };
    let trace = carrack_core::report::PathTrace { hops: vec![hop], ..Default::default() };
    let dead = of("far: a connection to 10.2.2.2, port 22, timed out after 8 s", trace);
    let reached = find(&dead, "path.reached");
    assert!(reached.severity == Severity::Failure && reached.value.contains("nobody answers behind 10.1.1.1, hop 1"));
    assert!(reached.cost.contains("a firewall drops packets without a word, or the host is down"), "{reached:?}");
    assert_eq!(find(&dead, "path.firewall").severity, Severity::Unknown);
    let trace = carrack_core::report::PathTrace {
        reached: true,
        drops_large_packets: true,
        mtu_bytes: Some(1400),
        ..Default::default()
    };
    let hole = of("far: ssh connects, and gets no further", trace);
    let hole = find(&hole, "path.black-hole");
    assert!(hole.severity == Severity::Failure && hole.side == Some(HostSide::Near), "{hole:?}");
    assert!(hole.value.contains("1400 bytes arrive"), "{hole:?}");
}

#[test]
fn largest_packet_is_not_known_where_nobody_looked() {
    let found = pair("bond", "bond", 20);
    let mtu = found.iter().find(|one| one.rule == "path.mtu").unwrap();
    assert!(mtu.severity == Severity::Unknown && mtu.value.contains("not checked"), "{mtu:?}");
}

/// A host whose interfaces are told by name, kind, speed in Mb/s and addresses; its route leads out by the first.
fn with_interfaces(to: &str, interfaces: &[(&str, &str, &str, &str)]) -> Host {
    let mut evidence = Evidence::default();
    let mut put = |name: String, text: &str| evidence.put(&name, EvidenceText::Found(text.to_owned()));
    put(format!("route/{to}"), &format!("{to} dev {} via 192.0.2.1", interfaces[0].0));
    for (name, kind, speed, addresses) in interfaces {
        for (file, text) in [("speed", *speed), ("operstate", "up"), ("carrier", "1"), ("type", "1")] {
            put(format!("sys/class/net/{name}/{file}"), text);
        }
        if *kind == "ether" {
            put(format!("sys/class/net/{name}/device/driver"), "mlx5_core");
        }
        put(format!("link/{name}"), kind);
        put(format!("address/{name}"), addresses);
    }
    Host { name: "a host".to_owned(), evidence: Ok(evidence) }
}

/// Links to containers, tunnels and networks of a storage may be faster than the uplink, and lead nowhere.
#[test]
fn interface_is_slower_than_another_only_where_both_hosts_are_in_its_network() {
    let of = |interfaces: &[(&str, &str, &str, &str)], others: &[(&str, &str, &str, &str)]| {
        let near = with_interfaces("198.51.100.7", interfaces);
        let far = with_interfaces("192.0.2.5", others);
        let found = diagnose(&Situation { far: Some(far), ..Situation::of(near) });
        let one = found.into_iter().find(|one| one.rule == "interface.slower" && one.side == Some(HostSide::Near));
        let one = one.unwrap();
        (one.severity, one.fix.map(|fix| fix.line()).unwrap_or_default(), one.value)
    };
    let bond = ("bond0", "bond", "1000", "192.0.2.5/24\nfe80::1/64");
    let far = ("eth0", "ether", "10000", "198.51.100.7/24");
    for other in [
        ("veth12ab", "veth", "10000", "fe80::42/64"),
        ("veth12ab", "veth", "10000", "198.51.100.9/24"),
        ("tun0", "tun", "10000", "198.51.100.9/24"),
        ("eth2", "ether", "25000", "fe80::42/64"),
        ("eth2", "ether", "25000", "169.254.3.4/16"),
        ("ib0", "ether", "100000", "10.9.0.5/16"),
    ] {
        let (severity, line, value) = of(&[bond, other], &[far]);
        assert!(severity == Severity::Ok && line.is_empty(), "{other:?}: {value}");
    }
    // Data within a tunnel is as fast as nobody knows.
    assert_eq!(
        of(&[("tun0", "tun", "10", "10.8.0.2/24"), ("eth0", "ether", "1000", "192.0.2.5/24")], &[far]).0,
        Severity::Unknown
    );
    let (severity, line, _) = of(
        &[bond, ("ens6", "ether", "100000", "10.9.0.5/16"), ("ens7", "ether", "25000", "10.7.0.5/16")],
        &[far, ("ens7", "ether", "25000", "10.7.0.7/16")],
    );
    assert_eq!(severity, Severity::Warning);
    assert_eq!(line, "ip route replace 198.51.100.7 via 10.7.0.7 dev ens7   # or name the other host by 10.7.0.7");
}

/// Hosts of 9000 and of 1500 bytes, or two of 9000 behind a router that takes 1500: TCP sends what fits.
#[test]
fn packet_sizes_that_differ_are_a_fault_only_where_packets_vanish() {
    let sending = |mtu: &str| {
        let mut host = host("bond");
        host.evidence.as_mut().unwrap().put("sys/class/net/bond0/mtu", EvidenceText::Found(mtu.to_owned()));
        host
    };
    let proved = |bytes: u32| {
        Some(PathTrace { reached: true, mtu_bytes: Some(bytes), is_mtu_proved: true, ..PathTrace::default() })
    };
    let dropping = |bytes: u32| proved(bytes).map(|trace| PathTrace { drops_large_packets: true, ..trace });
    let silent = |bytes: u32| Some(PathTrace { mtu_bytes: Some(bytes), ..PathTrace::default() });
    let of = |sizes: [&str; 2], there: Option<PathTrace>, back: Option<PathTrace>| {
        let mut path = Path::default();
        (path.there.trace, path.back.trace) = (there, back);
        let [near, far] = sizes.map(sending);
        let found = diagnose(&Situation { far: Some(far), path, ..Situation::of(near) });
        let mtu = found.into_iter().find(|one| one.rule == "path.mtu").unwrap();
        let line = mtu.fix.as_ref().map(|fix| fix.line()).unwrap_or_default();
        (mtu.severity, mtu.side, mtu.value, line)
    };
    for sizes in [["9000", "1500"], ["1500", "9000"], ["9000", "9000"]] {
        let (severity, _, value, line) = of(sizes, proved(1500), proved(1500));
        assert!(severity == Severity::Ok && value.starts_with("TCP agrees on 1500") && line.is_empty(), "{value}");
    }
    assert_eq!(of(["9000", "9000"], proved(9000), None).2, "9000 bytes");
    // Where nobody looked, or large packets vanish, it is the smaller host that is raised.
    for (there, back) in [(None, None), (dropping(1500), proved(1500))] {
        let (severity, side, value, line) = of(["9000", "1500"], there, back);
        assert_eq!((severity, side), (Severity::Warning, Some(HostSide::Far)), "{value}");
        assert!(line.starts_with("ip link set bond0 mtu 9000 "), "{line}");
    }
    let (severity, _, value, line) = of(["9000", "9000"], dropping(1500), proved(9000));
    assert!(
        severity == Severity::Warning && value.contains("takes 1500") && !line.contains("ip link"),
        "{value} {line}"
    );
    assert_eq!(of(["9000", "1500"], silent(9000), silent(1500)).0, Severity::Unknown);
}

#[test]
fn virtual_machine_is_judged_by_what_it_tells_and_by_nothing_else() {
    let found = diagnose(&Situation::of(host("vm")));
    let told = to_mend(&found, HostSide::Near);
    let rules: Vec<&str> = told.iter().map(|(rule, ..)| *rule).collect();
    // Its disk and its clock, of which its network is no part.
    assert_eq!(rules, ["storage.room", "clock.synchronised"], "{told:#?}");
    let unknown: Vec<&Finding> = found.iter().filter(|finding| finding.severity == Severity::Unknown).collect();
    assert!(unknown.iter().any(|one| one.rule == "tcp.receive-buffer" && one.value == "eth0 tells no speed"));
    // Without a second host nothing is said of a path.
    let of_paths = ["path.", "middlebox.", "interface.slower"];
    assert!(found.iter().all(|one| of_paths.iter().all(|start| !one.rule.starts_with(start))), "{found:#?}");
}

#[test]
fn container_without_sys_leaves_its_interfaces_unknown() {
    let found = diagnose(&Situation::of(host("container")));
    let of = |rule: &str| found.iter().find(|finding| finding.rule == rule).unwrap_or_else(|| panic!("no {rule}"));
    for rule in ["interface.mtu", "interface.duplex", "interface.errors", "tcp.receive-buffer"] {
        let one = of(rule);
        assert_eq!(
            (one.severity, one.value.as_str()),
            (Severity::Unknown, "this host shows no interfaces (/sys/class/net)")
        );
    }
    // What does not need them is known all the same.
    for rule in ["tcp.sack", "tcp.congestion-control", "host.kernel", "tcp.memory"] {
        assert_eq!(of(rule).severity, Severity::Ok, "{:?}", of(rule));
    }
}

#[test]
fn loss_is_told_from_chance_by_how_many_packets_were_sent() {
    let severity = |resent: u64, segments: u64| {
        let mut path = Path { round_trip: Some(Duration::from_millis(50)), ..Path::default() };
        path.there.resent = Some((resent, segments));
        let found = diagnose(&Situation { far: Some(host("bond")), path, ..Situation::of(host("laptop")) });
        let loss = found.iter().find(|one| one.rule == "path.loss" && one.side == Some(HostSide::Near)).unwrap();
        loss.severity
    };
    // One of 4000 is more than one of 22000, and says nothing.
    assert_eq!(
        (severity(0, 4000), severity(1, 4000), severity(4, 100_000)),
        (Severity::Ok, Severity::Ok, Severity::Ok)
    );
    assert_eq!((severity(40, 100_000), severity(400, 100_000)), (Severity::Warning, Severity::Failure));
}
