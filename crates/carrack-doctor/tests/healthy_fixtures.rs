//! Hosts that are as they should be and look otherwise: what is not to be mended, and from where on it is.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/told.rs"]
mod told;

use carrack_core::evidence::EvidenceText;
use carrack_doctor::{Finding, HostSide, Severity, Situation, diagnose};

use support::host;
use told::{line, of, one, with};

/// Counters since the start of a host: what comes once in a year is nothing to mend.
#[test]
fn counters_since_the_start_count_by_how_often_they_grow() {
    const YEAR: &str = "31536000.00 1.00";
    let near = HostSide::Near;
    let card = |name: &str| format!("sys/class/net/eth0/statistics/{name}");
    let (packets, errors, crc, missed) =
        (card("rx_packets"), card("rx_errors"), card("rx_crc_errors"), card("rx_missed_errors"));
    let of = |texts: &[(&str, &str)], rule: &str| {
        let found = diagnose(&Situation::of(with(host("vm"), texts)));
        let one = one(&found, near, rule);
        (one.severity, one.value.clone(), line(one))
    };
    let errors = |count: &str, missed_count: &str, more: &[(&str, &str)]| {
        let texts = [(packets.as_str(), "1000000000000"), (&errors, count), (&crc, count), (&missed, missed_count)];
        of(&[&texts[..], more].concat(), "interface.errors")
    };
    // Damaged packets are among the errors: each is one.
    let (severity, value, _) = errors("1", "0", &[]);
    assert_eq!((severity, value.as_str()), (Severity::Ok, "1 of 1000000000000 packets came damaged"));
    assert_eq!(errors("1000000", "0", &[]).0, Severity::Warning);
    let rings = [("ethtool/eth0/rings", "rx 512\nrx-max 4096\ntx 512\ntx-max 4096\n")];
    assert_eq!(errors("0", "2000000", &rings).2, "ethtool -G eth0 rx 4096");
    let rings = [("ethtool/eth0/rings", "rx 4096\nrx-max 4096\ntx 512\ntx-max 4096\n")];
    assert!(!errors("0", "2000000", &rings).2.contains("ethtool -G"));
    let pauses = ("ethtool/eth0/pause", "autoneg 0\nrx 1\ntx 1\n");
    let memory = ("sys/devices/system/edac/mc/mc0/ue_count", "0");
    for (texts, often, rule) in [
        (
            [pauses, ("ethtool/eth0/counters", "rx_pause 1\n")],
            [pauses, ("ethtool/eth0/counters", "rx_pause 600000\n")],
            "interface.pause",
        ),
        (
            [memory, ("proc/net/netstat", "TcpExt: ListenOverflows\nTcpExt: 1\n")],
            [memory, ("proc/net/netstat", "TcpExt: ListenOverflows\nTcpExt: 9000\n")],
            "tcp.listen-queue",
        ),
        (
            [memory, ("sys/devices/system/edac/mc/mc0/ce_count", "1")],
            [memory, ("sys/devices/system/edac/mc/mc0/ce_count", "400")],
            "hardware.memory",
        ),
        (
            [memory, ("proc/net/softnet_stat", "e8d4a510 00000001 00000000 00000000\n")],
            [memory, ("proc/net/softnet_stat", "e8d4a510 00010000 00000000 00000000\n")],
            "interface.softnet",
        ),
    ] {
        let year = [("proc/uptime", YEAR)];
        let (severity, value, _) = of(&[&texts[..], &year[..]].concat(), rule);
        assert!(
            severity == Severity::Ok && value.contains(|one: char| one.is_ascii_digit() || rule.ends_with("pause")),
            "{rule}: {value}"
        );
        assert_eq!(of(&[&often[..], &year[..]].concat(), rule).0, Severity::Warning, "{rule}");
    }
}

#[test]
fn slow_names_matter_only_to_an_ssh_server_that_asks_for_them() {
    let slow = ("names/peer", "answered-us 5004000");
    for more in [("command/sshd -T", "port 22\nusedns no\n"), ("FROM", "a host whose sshd nobody may ask")] {
        let found = diagnose(&Situation::of(with(host("vm"), &[slow, more])));
        let names = one(&found, HostSide::Near, "host.names");
        assert!(names.severity == Severity::Ok && names.value.contains("after 5.0 s"), "{names:?}");
    }
}

#[test]
fn host_that_says_too_much_is_known_in_part() {
    let mut host = host("vm");
    let evidence = host.evidence.as_mut().unwrap();
    (0..9000).for_each(|number| evidence.put(&format!("link/veth{number}"), EvidenceText::Found("veth".to_owned())));
    let found = diagnose(&Situation::of(host));
    let said = one(&found, HostSide::Near, "host.evidence");
    assert!(said.severity == Severity::Unknown && said.value.contains("left out"), "{said:?}");
}

/// Disks by name, each with what it tells: scheduler, whether it turns, KiB read ahead; the mounted one is the first.
fn disks(disks: &[(&str, Option<[&str; 3]>)]) -> Vec<Finding> {
    let names: Vec<&str> = disks.iter().map(|(name, _)| *name).collect();
    let mut host = with(host("vm"), &[("directory/devices", &names.join("\n"))]);
    let evidence = host.evidence.as_mut().unwrap();
    for (name, told) in disks {
        for (number, file) in ["scheduler", "rotational", "read_ahead_kb"].iter().enumerate() {
            let text = told.map_or(EvidenceText::Absent, |told| EvidenceText::Found(told[number].to_owned()));
            evidence.put(&format!("sys/class/block/{name}/queue/{file}"), text);
        }
    }
    diagnose(&Situation::of(host))
}

#[test]
fn virtual_disks_turn_not_and_a_partition_reads_ahead_as_its_disk_does() {
    let near = HostSide::Near;
    for disk in ["vda", "xvda"] {
        let found = disks(&[(disk, Some(["[none] mq-deadline", "1", "128"]))]);
        assert_eq!(one(&found, near, "storage.scheduler").severity, Severity::Ok, "{disk}");
        assert_eq!(of(&found, near, "storage.read-ahead").len(), 0, "{disk}");
    }
    let found = disks(&[("sda1", None), ("sda", Some(["[none] mq-deadline", "1", "128"]))]);
    assert_eq!(one(&found, near, "storage.scheduler").severity, Severity::Warning);
    let ahead = one(&found, near, "storage.read-ahead");
    assert_eq!((ahead.severity, line(ahead).as_str()), (Severity::Warning, "blockdev --setra 8192 /dev/sda"));
    let found = disks(&[("sda1", None), ("sda", Some(["[mq-deadline] none", "1", "4096"]))]);
    assert_eq!(one(&found, near, "storage.read-ahead").severity, Severity::Ok);
}

#[test]
fn file_system_of_another_host_that_was_measured_to_be_fast_is_as_it_should_be() {
    let of = |kind: &str, read: &str, write: &str| {
        let mount = format!("30 22 0:47 / /data rw,noatime shared:9 - {kind} files.lab:/data rw,hard");
        let texts = [
            ("directory/mount", mount.as_str()),
            ("sys/class/net/eth0/speed", "1000"),
            ("measured/storage/read", read),
            ("measured/storage/write", write),
        ];
        let found = diagnose(&Situation::of(with(host("vm"), &texts)));
        one(&found, HostSide::Near, "storage.kind").severity
    };
    for kind in ["nfs4", "fuse.sshfs"] {
        assert_eq!(of(kind, "125000000", "125000000"), Severity::Ok, "{kind}");
        assert_eq!(of(kind, "125000000", "90000000"), Severity::Warning, "{kind}");
        assert_eq!(of(kind, "90000000", "125000000"), Severity::Warning, "{kind}");
    }
    // However fast it is, what lies there is gone at the next boot.
    assert_eq!(of("tmpfs", "9000000000", "9000000000"), Severity::Warning);
}

#[test]
fn slot_that_carries_more_than_the_card_s_link_is_as_it_should_be() {
    let of = |now: [&str; 2], most: [&str; 2], speed: &str| {
        let place = |file: &str| format!("sys/class/net/eth0/device/{file}");
        let texts = [
            (place("current_link_speed"), now[0]),
            (place("current_link_width"), now[1]),
            (place("max_link_speed"), most[0]),
            (place("max_link_width"), most[1]),
            ("sys/class/net/eth0/speed".to_owned(), speed),
        ];
        let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let found = diagnose(&Situation::of(with(host("vm"), &texts)));
        let slot = one(&found, HostSide::Near, "interface.slot");
        (slot.severity, slot.value.clone())
    };
    let (third, fourth) = ("8.0 GT/s PCIe", "16.0 GT/s PCIe");
    // A card of the fourth generation in a slot of the third: 126 Gb/s.
    let (severity, value) = of([third, "16"], [fourth, "16"], "100000");
    assert_eq!(severity, Severity::Ok);
    assert_eq!(value, "8.0 GT/s PCIe, 16 lanes; the card could 16.0 GT/s PCIe, 16 lanes, and needs less");
    assert_eq!(of([third, "8"], [fourth, "8"], "40000").0, Severity::Ok);
    assert_eq!(of([third, "8"], [third, "16"], "100000").0, Severity::Warning);
    // 7.9 Gb/s.
    assert_eq!(of([third, "1"], [third, "8"], "10000").0, Severity::Warning);
    assert_eq!(of([third, "1"], [third, "8"], "1000").0, Severity::Ok);
    // What the link carries is not known.
    assert_eq!(of([third, "8"], [third, "16"], "-1").0, Severity::Warning);
}

#[test]
fn processors_that_save_power_matter_to_a_fast_card_alone() {
    let of = |speed: &str| {
        let texts = [("processor/governors", "performance 2\nschedutil 6"), ("sys/class/net/eth0/speed", speed)];
        let found = diagnose(&Situation::of(with(host("vm"), &texts)));
        let governor = one(&found, HostSide::Near, "processor.governor");
        (governor.severity, governor.value.clone())
    };
    assert_eq!(of("1000"), (Severity::Ok, "schedutil on 6, which is enough for the card".to_owned()));
    assert_eq!(of("10000"), (Severity::Warning, "schedutil on 6".to_owned()));
    // A card that tells no speed may be a fast one.
    assert_eq!(of("-1").0, Severity::Warning);
}
