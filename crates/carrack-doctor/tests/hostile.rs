//! Hosts that say numbers which no host has: a rule may be wrong about them, and no rule may panic.

#![allow(clippy::unwrap_used)]

mod support;

use std::ops::Range;
use std::time::Duration;

use carrack_core::evidence::{Evidence, EvidenceText};
use carrack_doctor::{Finding, Host, Path, Severity, Situation, diagnose};

use support::host;

const FIXTURES: [&str; 12] = [
    "bond",
    "container",
    "dtn-100g",
    "dtn-bond4",
    "dtn-vlan",
    "fiona-zfs",
    "half-duplex",
    "irq-one-processor",
    "irq-other-node",
    "laptop",
    "lro-one-queue",
    "vm",
];
/// The largest numbers of 64 bits with and without a sign, nothing, less than nothing, and the largest in hexadecimal.
const HOSTILE: [&str; 6] =
    ["18446744073709551615", "9223372036854775807", "0", "-1", "-9223372036854775808", "ffffffffffffffff"];
/// Numbers that are replaced in one text: what a rule reads of a table stands in its first lines.
const NUMBERS_MOST: usize = 24;
/// What a host says only where somebody has measured, where it has a firewall, or where something went wrong.
const MORE: &[(&str, &str)] = &[
    ("proc/sys/net/netfilter/nf_conntrack_count", "250000"),
    ("proc/sys/net/netfilter/nf_conntrack_max", "262144"),
    ("proc/sys/net/ipv4/tcp_mem", "188007 250677 376014"),
    ("proc/net/sockstat", "sockets: used 300\nTCP: inuse 20 orphan 0 tw 4 alloc 30 mem 249000\n"),
    ("proc/net/softnet_stat", "0000272d 00000003 00000900 00000000\n0000034d 00000001 00000001 00000000\n"),
    ("proc/sys/net/core/netdev_max_backlog", "1000"),
    ("measured/storage/write", "1480000000"),
    ("measured/storage/read", "3530000000"),
    ("measured/processor/blake3+aes-128-gcm", "1000000000"),
];

/// A fixture that has all that a rule may ask for.
fn talkative(fixture: &str) -> Evidence {
    let mut evidence = host(fixture).evidence.unwrap();
    for (name, text) in MORE {
        if evidence.found(name).is_none() {
            evidence.put(name, EvidenceText::Found((*text).to_owned()));
        }
    }
    evidence
}

/// What the rules find where both hosts say this.
fn findings(evidence: Evidence) -> Vec<Finding> {
    let both = Host { name: "both".to_owned(), evidence: Ok(evidence) };
    let mut path = Path { round_trip: Some(Duration::from_millis(50)), ..Path::default() };
    (path.there.rate, path.there.resent) = (Some((1e9, 8)), Some((3, 100_000)));
    diagnose(&Situation { far: Some(both.clone()), path, ..Situation::of(both) })
}

/// Where the numbers of a text stand.
fn numbers(text: &str) -> Vec<Range<usize>> {
    let words = text.split(|one: char| !one.is_ascii_alphanumeric());
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let place = |word: &str| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        start..start + word.len()
    };
    words.filter(is_number).map(place).take(NUMBERS_MOST).collect()
}

fn replaced(text: &str, places: &[Range<usize>], number: &str) -> String {
    let mut text = text.to_owned();
    places.iter().rev().for_each(|place| text.replace_range(place.clone(), number));
    text
}

#[test]
fn number_of_any_size_anywhere_in_what_a_host_says_panics_no_rule() {
    for fixture in FIXTURES {
        let evidence = talkative(fixture);
        let texts: Vec<(&str, &str)> =
            evidence.iter().filter_map(|(name, _)| Some((name, evidence.found(name)?))).collect();
        for hostile in HOSTILE {
            let mut all = evidence.clone();
            for (name, text) in &texts {
                let places = numbers(text);
                let put = |places: &[Range<usize>]| {
                    let mut changed = evidence.clone();
                    changed.put(name, EvidenceText::Found(replaced(text, places, hostile)));
                    assert!(!findings(changed).is_empty(), "{fixture}: {name} with {hostile}");
                };
                places.iter().for_each(|place| put(std::slice::from_ref(place)));
                put(&places);
                all.put(name, EvidenceText::Found(replaced(text, &places, hostile)));
            }
            assert!(!findings(all).is_empty(), "{fixture} with {hostile} everywhere");
        }
    }
}

#[test]
fn connection_table_is_told_as_full_where_it_has_a_limit_and_made_no_larger_than_it_can_be() {
    let of = |count: &str, most: &str| {
        let mut evidence = Evidence::default();
        for (name, text) in [("count", count), ("max", most)] {
            let name = format!("proc/sys/net/netfilter/nf_conntrack_{name}");
            evidence.put(&name, EvidenceText::Found(text.to_owned()));
        }
        let found = findings(evidence).into_iter().find(|one| one.rule == "tcp.connection-table").unwrap();
        (found.severity, found.fix.map(|fix| fix.line()).unwrap_or_default())
    };
    let set = |number: u32| format!("sysctl -w net.netfilter.nf_conntrack_max={number}");
    assert_eq!(of("200", "1000"), (Severity::Ok, String::new()));
    assert_eq!(of("900", "1000"), (Severity::Warning, set(2000)));
    assert_eq!(of("2000000000", "2000000000"), (Severity::Failure, set(2_147_483_647)));
    assert_eq!(of("9223372036854775807", "9223372036854775807"), (Severity::Failure, set(2_147_483_647)));
    assert_eq!(of("5", "0"), (Severity::Ok, String::new()));
}
