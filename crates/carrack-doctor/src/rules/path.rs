//! The path between two hosts: whether it is there, what passes it, and what it loses.

use std::time::Duration;

use carrack_core::path::display_bytes;
use carrack_core::report::PathTrace;

use super::causes::cause;
use super::{Check, Limit, Rule, Threshold, Told, View};
use crate::facts::HostFacts;
use crate::finding::EvidenceClass::{EsnetTable, Kernel, Ours};
use crate::known::{Known, Unknown};
use crate::parameter::Parameter;
use crate::situation::{HostSide, Situation, Way};
use crate::units;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "path.reached",
        threshold: Threshold::plain("the other host answers"),
        reason: "nothing moves otherwise; what ssh, TLS or the network says of it names the cause",
        source: "ssh(1), RFC 8446",
        class: Kernel,
        check: Check::Path(reached),
    },
    Rule {
        id: "path.route",
        threshold: Threshold::plain("this host has a route to the other"),
        reason: "a packet without a route is refused before it leaves",
        source: "Performance killer 5 of UltraLight, 2005",
        class: Kernel,
        check: Check::Host(route),
    },
    Rule {
        id: "path.firewall",
        threshold: Threshold::plain("a data connection can be made"),
        reason: "without one all data goes through the control connection, as one stream",
        source: "docs/hosts.md",
        class: Ours,
        check: Check::Path(firewall),
    },
    Rule {
        id: "path.mtu",
        threshold: Threshold::plain(
            "the path takes what TCP agrees on: the smaller of both hosts' sizes, or what a router names",
        ),
        reason: "larger packets than the path takes vanish where no router says so",
        source: "fasterdata.es.net, MTU issues",
        class: EsnetTable,
        check: Check::Path(mtu),
    },
    Rule {
        id: "path.black-hole",
        threshold: Threshold::plain(
            "packets of the size that a host sends arrive, or a router says that they are too large",
        ),
        reason: "a stream begins, and stops for good at its first full packet",
        source: "RFC 2923",
        class: Kernel,
        check: Check::Path(black_hole),
    },
    Rule {
        id: "path.loss",
        threshold: Threshold::of(
            "no more than one of {} packets sent again from a round trip of {} on, one of {} below; measured below the rate that \
             fills the path",
            &[Limit::Count(FAR_LOSS), Limit::Time(FAR), Limit::Count(NEAR_LOSS)],
        ),
        reason: "cubic needs seconds to come back from a loss on a far path",
        source: "fasterdata.es.net, packet loss",
        class: EsnetTable,
        check: Check::Path(loss),
    },
    Rule {
        id: "path.symmetry",
        threshold: Threshold::plain("as many routers there as back"),
        reason: "two ways mean two sets of faults; it is no fault by itself",
        source: "Performance killer 7 of UltraLight, 2005",
        class: Ours,
        check: Check::Path(symmetry),
    },
];

fn reached(situation: &Situation) -> Known<Vec<Told>> {
    match (&situation.unreached, &situation.far) {
        (Some((why, hint)), _) => {
            let told = Told::failure(format!("{why}{}", behind(situation)));
            Ok(vec![match (cause(why), hint) {
                (Some((cause, fix)), _) => told.costs(format!("nothing moves: {cause}")).advice(fix),
                (None, Some(hint)) => told.advice(hint.clone()),
                (None, None) => told.advice("mend what it says; `carrack doctor` on that host shows its own side"),
            }])
        }
        (None, Some(far)) => Ok(vec![Told::ok(format!("{} answers", far.name))]),
        (None, None) => Ok(Vec::new()),
    }
}

/// How far packets get of a host that was not reached, where somebody looked.
fn behind(situation: &Situation) -> String {
    let Some(trace) = &situation.path.there.trace else { return String::new() };
    let name = |hop: &carrack_core::report::Hop| hop.address.map(|address| address.to_string());
    match trace.hops.iter().rev().find_map(name) {
        _ if trace.drops_large_packets => String::new(),
        _ if trace.reached => "; the host itself answers probes, so something lets this port not pass".to_owned(),
        Some(last) => format!("; nobody answers behind {last}, hop {}", trace.hops.len()),
        None => "; nobody on the way answers".to_owned(),
    }
}

fn route(view: &View<'_>) -> Known<Vec<Told>> {
    let Some((to, why)) = view.facts.missing_route() else {
        let Ok(route) = view.facts.route() else { return Ok(Vec::new()) };
        let via = route.via.map(|via| format!(" via {via}")).unwrap_or_default();
        return Ok(vec![Told::ok(format!("{} is reached{via} by {}", route.to, route.device))]);
    };
    let told = Told::failure(format!("no route to {to}: {}", display_bytes(why.as_bytes())));
    // A router that others are reached through is not known to reach this one, so it is named as an example only.
    let line = format!("{} route add {to} via ROUTER", super::ip(to));
    Ok(vec![
        told.costs("nothing can be sent there")
            .command(format!("{line}   # and in the network's configuration, for the next boot")),
    ])
}

fn firewall(situation: &Situation) -> Known<Vec<Told>> {
    let (there, back) = (&situation.path.there.connection, &situation.path.back.connection);
    let name = |side| situation.host(side).map_or("the other host", |host| host.name.as_str()).to_owned();
    let refused = |side: HostSide, why: &str| {
        let told = if is_silent(why) { "something drops it on the way" } else { "something refuses it" };
        format!("no data connection to {}: {why} ({told})", name(side))
    };
    match (there, back) {
        (None, None) if situation.unreached.is_some() => {
            Err(Unknown::because("not checked: the other host was not reached"))
        }
        (None, None) => Ok(Vec::new()),
        (Some(Ok(())), _) => Ok(vec![Told::ok("it can be made")]),
        (Some(Err(why)), Some(Ok(()))) => {
            let told = Told::warning(refused(HostSide::Far, why)).at(HostSide::Far);
            let told = told.costs("the far host has to connect back, which takes 1.2 s at the beginning of each copy");
            Ok(vec![told.advice("let TCP in on a range of ports there, and name it: --ports 50000-50100")])
        }
        (Some(Err(why)), _) => {
            let told = Told::failure(refused(HostSide::Far, why)).at(HostSide::Far);
            let told = told.costs("all data goes through the control connection: one stream, and 6 s at the beginning");
            Ok(vec![told.advice("let TCP in on a range of ports there, and name it: --ports 50000-50100")])
        }
        (None, Some(_)) => Ok(Vec::new()),
    }
}

/// Whether nobody answered at all.
fn is_silent(why: &str) -> bool {
    ["timed out", "nobody", "in time"].iter().any(|word| why.contains(word))
}

/// The interface's packets, or the route's where it says less.
fn packet(facts: &HostFacts<'_>) -> Known<u64> {
    let mtu = facts.carrier()?.mtu()?;
    Ok(facts.route().ok().and_then(|route| route.mtu).map_or(mtu, |known| known.min(mtu)))
}

fn mtu(situation: &Situation) -> Known<Vec<Told>> {
    let Some(far) = &situation.far else { return Ok(Vec::new()) };
    let (near, far) = (HostFacts::of(HostSide::Near, &situation.near)?, HostFacts::of(HostSide::Far, far)?);
    let (here, there) = (near.carrier()?, far.carrier()?);
    let sizes = (here.mtu()?, there.mtu()?);
    let (most, least) = (sizes.0.max(sizes.1), sizes.0.min(sizes.1));
    let traces = [&situation.path.there, &situation.path.back].map(|way| way.trace.as_ref());
    let smallest = traces.iter().filter_map(|trace| trace.as_ref()?.mtu_bytes).min().map_or(least, u64::from);
    let vanishes = traces.iter().flatten().any(|trace| trace.drops_large_packets);
    let is_proved = |trace: &Option<&PathTrace>| trace.is_some_and(|trace| trace.is_mtu_proved);
    // Each side announces what it takes, and a router says what fits: TCP sends nothing larger.
    if !vanishes && (traces.iter().all(is_proved) || most == smallest && traces.iter().any(is_proved)) {
        return Ok(vec![Told::ok(match smallest.min(least) {
            agreed if agreed == most => format!("{most} bytes"),
            agreed => format!("TCP agrees on {agreed} bytes: the hosts send {} and {}", sizes.0, sizes.1),
        })]);
    }
    if most != least && (vanishes || traces.iter().all(Option::is_none)) {
        let (smaller, side) = if sizes.0 < sizes.1 { (here, HostSide::Near) } else { (there, HostSide::Far) };
        let told = Told::warning(format!("{} takes {least} bytes, and the other host sends {most}", smaller.name));
        let told = told.at(side).about(smaller.name).costs(match vanishes {
            true => "a stream stops at its first packet that is too large".to_owned(),
            false => format!("{:.0} times as many packets as with {most} bytes", most as f64 / least.max(1) as f64),
        });
        let line = format!("ip link set {} mtu {most}", smaller.name);
        return Ok(vec![told.command(format!("{line}   # if every switch and router between takes {most} bytes"))]);
    }
    if vanishes && smallest < least {
        let told = Told::warning(format!("both hosts send {least} bytes, and the path takes {smallest}"));
        let words =
            "let routers on the way take as much, or say what fits: firewalls must pass \"fragmentation needed\"";
        return Ok(vec![told.about(here.name).advice(format!("{words} and \"packet too big\" of ICMP"))]);
    }
    let sent =
        if most == least { format!("both hosts send {most}") } else { format!("the hosts send {least} and {most}") };
    Err(Unknown::because(format!("not checked: {sent} bytes, and nobody said what the path takes")))
}

fn black_hole(situation: &Situation) -> Known<Vec<Told>> {
    let mut told = Vec::new();
    for side in [HostSide::Near, HostSide::Far] {
        let way = situation.path.from(side);
        let Some(trace) = &way.trace else { continue };
        if !trace.drops_large_packets {
            continue;
        }
        let facts = situation.host(side).and_then(|host| HostFacts::of(side, host).ok());
        let sent =
            facts.and_then(|facts| packet(&facts).ok()).map_or(String::new(), |sent| format!(" of {sent} bytes"));
        let device = facts.and_then(|facts| Some(facts.carrier().ok()?.name.to_owned())).unwrap_or_default();
        let passes = trace.mtu_bytes.map_or("smaller ones".to_owned(), |bytes| format!("{bytes} bytes"));
        let value = format!("packets{sent} vanish without a word, {passes} arrive");
        let is_v6 = facts.and_then(|facts| facts.route().ok()).is_some_and(|route| route.to.contains(':'));
        let cost = match is_v6 {
            // Without that word no host learns of it: routers of version 6 divide no packet.
            true => "a stream stops at its first full packet; a firewall drops ICMPv6 \"packet too big\"",
            false => "a stream stops at its first full packet",
        };
        let value = Told::failure(value).at(side).about(device).costs(cost);
        told.push(value.sysctl(Parameter::MtuProbing, "1"));
    }
    // Who answers no probe has perhaps not got any.
    let is_known = |way: &Way| way.trace.as_ref().is_some_and(|trace| trace.reached || trace.is_mtu_proved);
    let is_traced = [&situation.path.there, &situation.path.back].into_iter().any(is_known);
    match (told.is_empty(), is_traced) {
        (true, false) if situation.far.is_none() => Ok(Vec::new()),
        (true, false) => Err(Unknown::because("nobody looked for the largest packet")),
        (true, true) => Ok(vec![Told::ok("nothing vanishes")]),
        (false, _) => Ok(told),
    }
}

/// From this round trip on a loss costs time.
const FAR: Duration = Duration::from_millis(20);
/// Of so many packets one may be lost on such a path,
const FAR_LOSS: u64 = 22_000;
/// and on a shorter one.
const NEAR_LOSS: u64 = 1000;

fn loss(situation: &Situation) -> Known<Vec<Told>> {
    let mut told = Vec::new();
    let round_trip = situation.path.round_trip;
    let is_far = round_trip.is_some_and(|time| time >= FAR);
    let most = 1.0 / if is_far { FAR_LOSS } else { NEAR_LOSS } as f64;
    for side in [HostSide::Near, HostSide::Far] {
        let way = situation.path.from(side);
        let Some((resent, segments)) = way.resent.filter(|(_, segments)| *segments > 0) else {
            if let Some((resent, segments)) = way.resent_when_full.filter(|(resent, _)| *resent > 0) {
                let value = format!("{resent} of {segments} packets were sent again while the path was full, which");
                told.push(Told::unknown(format!("{value} says nothing of the path")).at(side));
            }
            continue;
        };
        let share = resent as f64 / segments as f64;
        // In some seconds a few packets are sent again by chance, or by a host that was busy: three deviations of what
        // may be, and three packets.
        let expected = most * segments as f64;
        if (resent as f64) <= expected + 3.0 * expected.sqrt() + 3.0 {
            let value = format!("{resent} of {segments} packets sent again");
            // The streams fill a queue at the narrowest place, and what overflows there is no fault of the path.
            let full = way.resent_when_full.filter(|(resent, all)| *all > 0 && *resent as f64 > most * *all as f64);
            told.push(Told::ok(value + &full.map(when_full).unwrap_or_default()).at(side));
            continue;
        }
        let value = format!("{} of what this host sends is sent again", units::share(share));
        let value = if is_far && share > 1.0 / NEAR_LOSS as f64 { Told::failure(value) } else { Told::warning(value) };
        let value = match round_trip {
            // Mathis and others, 1997: what a stream without a better congestion control reaches.
            Some(time) => {
                let rate = 1448.0 / time.as_secs_f64().max(1e-6) * 1.22 / share.sqrt();
                value.costs(format!("a Reno stream reaches about {}, cubic somewhat more", units::rate(rate)))
            }
            None => value,
        };
        told.push(
            value.at(side).advice(
                "show it to the network's people with this report; until then bbr loses least: --congestion bbr",
            ),
        );
    }
    match told.is_empty() {
        true if situation.far.is_some() => Err(Unknown::because("the path was not measured")),
        _ => Ok(told),
    }
}

fn when_full((resent, segments): (u64, u64)) -> String {
    let share = units::share(resent as f64 / segments as f64);
    format!("; {share} while the path was full: its own queue overflowed")
}

fn symmetry(situation: &Situation) -> Known<Vec<Told>> {
    if situation.far.is_none() {
        return Ok(Vec::new());
    }
    let hops = |side| {
        let trace = situation.path.from(side).trace.as_ref();
        let trace =
            trace.filter(|trace| trace.reached).ok_or_else(|| Unknown::because("the way is not known both ways"));
        trace.map(|trace| trace.hops.len())
    };
    let (there, back) = (hops(HostSide::Near)?, hops(HostSide::Far)?);
    Ok(vec![Told::ok(format!("{there} steps there, {back} back"))])
}
