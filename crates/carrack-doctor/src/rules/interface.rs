//! Interfaces: which one carries the data, how it is set up, and what it has lost.

use std::time::Duration;

use super::{Check, FAST, Limit, Rule, Threshold, Told, View};
use crate::facts::{Interface, Interrupt, ProcessorList};
use crate::finding::EvidenceClass::{EsnetTable, Kernel, OneOperator, Ours};
use crate::known::Known;
use crate::parameter::Parameter;
use crate::rules::tcp::{FAR, STREAMS, round_trip};
use crate::units;

const ESNET_SCRIPT: &str = "ESnet, fasterdata-tuning";
const OSG_SCRIPT: &str = "Open Science Grid, networking scripts";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "interface.slower",
        threshold: Threshold::plain("data goes by the fastest interface whose network has both hosts"),
        reason: "a host often has a name for its management port, and another one for its fast card",
        source: "Performance killer 1 of UltraLight, 2005",
        class: OneOperator,
        check: Check::Host(super::detour::slower),
    },
    Rule {
        id: "interface.duplex",
        threshold: Threshold::plain("full"),
        reason: "a port that has agreed on half duplex loses packets whenever both sides send",
        source: "fasterdata.es.net",
        class: Kernel,
        check: Check::Carrier(duplex),
    },
    Rule {
        id: "interface.mtu",
        threshold: Threshold::of(
            "{} bytes or more, {} as a rule, at {} and more, if the whole path has it",
            &[Limit::Count(MTU_LEAST), Limit::Count(MTU), Limit::Bits(FAST)],
        ),
        reason: "each packet costs both hosts the same, however much it holds",
        source: ESNET_SCRIPT,
        class: EsnetTable,
        check: Check::Host(mtu),
    },
    Rule {
        id: "interface.errors",
        threshold: Threshold::of("fewer than one of {} packets damaged, or missed", &[Limit::Count(PACKETS)]),
        reason: "damage is a cable, a plug or a transceiver; missed packets are a host that was too slow",
        source: "fasterdata.es.net",
        class: Kernel,
        check: Check::Carrier(errors),
    },
    Rule {
        id: "interface.slot",
        threshold: Threshold::of(
            "the slot runs as fast and as wide as the card can, or carries {} what the card's link does",
            &[Limit::Times(SLOT)],
        ),
        reason: "a 100 Gb/s card needs 16 lanes of PCIe 3",
        source: "kernel, ABI/sysfs-bus-pci",
        class: Kernel,
        check: Check::Carrier(slot),
    },
    Rule {
        id: "interface.numa",
        threshold: Threshold::plain("known"),
        reason: "a process on another socket than its card reaches it over the link between both",
        source: ESNET_SCRIPT,
        class: EsnetTable,
        check: Check::Carrier(numa),
    },
    Rule {
        id: "interface.channels",
        threshold: Threshold::of("more than one queue at {} and more", &[Limit::Bits(FAST)]),
        reason: "each queue is served by one processor: with one queue one processor handles all packets",
        source: "kernel, networking/scaling",
        class: Kernel,
        check: Check::Carrier(channels),
    },
    Rule {
        id: "interface.interrupts",
        threshold: Threshold::plain("the queues' interrupts come to several processors of the card's node"),
        reason: "a processor that serves all queues is full before the card is; one of another node reaches each packet over \
                 the link between both",
        source: "kernel, core-api/irq/irq-affinity",
        class: Kernel,
        check: Check::Carrier(interrupts),
    },
    Rule {
        id: "interface.rings",
        threshold: Threshold::of("the largest that the card has, at {} and more", &[Limit::Bits(FAST)]),
        reason: "a burst that does not fit into the ring is lost",
        source: ESNET_SCRIPT,
        class: EsnetTable,
        check: Check::Carrier(rings),
    },
    Rule {
        id: "interface.offloads",
        threshold: Threshold::of("checksums, segmentation (tso, gso) and gro on at {} and more", &[Limit::Bits(FAST)]),
        reason: "without them the processor handles each packet by itself",
        source: OSG_SCRIPT,
        class: EsnetTable,
        check: Check::Carrier(offloads),
    },
    Rule {
        id: "interface.lro",
        threshold: Threshold::plain("off"),
        reason: "large receive offload joins packets in a way that cannot be undone; gro does the same well",
        source: OSG_SCRIPT,
        class: EsnetTable,
        check: Check::Carrier(lro),
    },
    Rule {
        id: "interface.pause",
        threshold: Threshold::of(
            "both directions or none, and fewer than one pause frame within {} in the mean that comes in",
            &[Limit::Time(PAUSED)],
        ),
        reason: "a pause frame stops all that the card sends, for everybody",
        source: ESNET_SCRIPT,
        class: EsnetTable,
        check: Check::Carrier(pause),
    },
    Rule {
        id: "interface.queue-length",
        threshold: Threshold::of("{} at {} and more", &[Limit::Count(QUEUE), Limit::Bits(FAST)]),
        reason: "a burst that does not fit into the queue is dropped in this host",
        source: ESNET_SCRIPT,
        class: EsnetTable,
        check: Check::Carrier(queue_length),
    },
    Rule {
        id: "interface.qdisc",
        threshold: Threshold::of("fq at {} and more on far paths", &[Limit::Bits(FAST)]),
        reason: "fq spreads what a stream sends; fq_codel cannot. TCP can spread it by itself, at a price in processor time",
        source: "fasterdata.es.net, packet pacing; others say pfifo_fast",
        class: EsnetTable,
        check: Check::Host(qdisc),
    },
    Rule {
        id: "interface.bond",
        threshold: Threshold::plain("xmit_hash_policy layer3+4, and all links up"),
        reason: "by addresses alone all streams between two hosts take one of the links",
        source: "kernel, networking/bonding",
        class: Kernel,
        check: Check::Carrier(bond),
    },
    Rule {
        id: "interface.softnet",
        threshold: Threshold::of(
            "fewer than one of {} packets dropped before TCP saw them, and no more than one of {} rounds out of time",
            &[Limit::Count(PACKETS), Limit::Count(ROUNDS)],
        ),
        reason: "a queue that is full drops what the card has received already",
        source: "kernel, networking/scaling",
        class: Kernel,
        check: Check::Host(softnet),
    },
    Rule {
        id: "interface.stacked",
        threshold: Threshold::plain("known"),
        reason: "tagging and tunnels turn offloads off on some cards: measured at up to 30 %",
        source: OSG_SCRIPT,
        class: Ours,
        check: Check::Host(stacked),
    },
];

/// Bytes of a large packet, and the smallest that counts as one: tunnels and clouds take some.
const MTU: u64 = 9000;
const MTU_LEAST: u64 = 8000;
/// What a slot should carry of the link's rate: packets of PCIe have 128 bytes of data at least, and 24 of their own.
const SLOT: f64 = 1.25;
/// Packets that wait for the card.
const QUEUE: u64 = 10_000;
/// Of so many packets one may be lost in this host: fewer cost nothing.
const PACKETS: u64 = 1_000_000;
/// A neighbour that pauses a card so often cannot keep up.
const PAUSED: Duration = Duration::from_secs(60);
/// Rounds of the kernel's receiver, of which one may run out of time.
const ROUNDS: u64 = 1000;
/// Packets of one round.
const BUDGET: i64 = 600;
const SPREAD: &str = "let more processors serve the card: interface.channels and interface.interrupts tell how";
/// A backlog for interfaces from this rate on, and for slower ones.
const BACKLOGS: (u64, [i64; 2]) = (40_000_000_000, [250_000, 30_000]);

/// The interface that carries data, and its speed if that is known.
fn fast<'a>(view: &View<'a>) -> Known<(Interface<'a>, u64)> {
    let carrier = view.facts.carrier()?;
    Ok((carrier, carrier.speed()?))
}

fn duplex(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    match carrier.text("duplex")? {
        "half" => {
            let told =
                Told::failure("half").about(carrier.name).costs("a few percent of the packets are lost under load");
            Ok(vec![told.command(format!("ethtool -s {} autoneg on   # and on the switch's port, too", carrier.name))])
        }
        "full" => Ok(vec![Told::ok("full").about(carrier.name)]),
        _ => Ok(vec![Told::unknown(format!("{} tells no duplex", carrier.name))]),
    }
}

fn mtu(view: &View<'_>) -> Known<Vec<Told>> {
    let (carrier, speed) = fast(view)?;
    let mtu = carrier.mtu()?;
    if mtu >= MTU_LEAST || speed < FAST {
        return Ok(vec![Told::ok(format!("{mtu} bytes")).about(carrier.name)]);
    }
    let told = Told::warning(format!("{mtu} bytes at {}", units::bits(speed as f64))).about(carrier.name);
    let told = told.costs(format!("{:.0} times as many packets as with {MTU} bytes", MTU as f64 / mtu.max(1) as f64));
    Ok(vec![
        told.command(format!("ip link set {} mtu {MTU}   # on every host and switch of that network", carrier.name)),
    ])
}

fn errors(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    let count =
        |name: &str| carrier.number(&format!("statistics/{name}")).map(|count| u64::try_from(count).unwrap_or(0));
    let packets = count("rx_packets")?;
    // The errors are all of them: damage is counted there, too.
    let damaged = count("rx_crc_errors")?.max(count("rx_errors")?);
    let missed = count("rx_missed_errors")?;
    let told = |count: u64, what: &str| format!("{count} of {packets} packets {what}");
    let (damage, miss) = (told(damaged, "came damaged"), told(missed, "were missed: the card had no room"));
    let cost = "each is a loss that slows a far stream down";
    let mut all = Vec::new();
    if are_many(damaged, packets) {
        let value = Told::warning(&damage).about(carrier.name).costs(cost);
        all.push(value.advice("change the cable, clean or change the transceiver, and look at the switch's port"));
    }
    if are_many(missed, packets) {
        let value = Told::warning(&miss).about(carrier.name).costs(cost);
        let number = |key: &str| carrier.driver_number("rings", key);
        all.push(match number("rx").and_then(|now| Ok((now, number("rx-max")?))) {
            Ok((now, most)) if now < most => value.command(format!("ethtool -G {} rx {most}", carrier.name)),
            Ok(_) => value.advice(SPREAD),
            Err(_) => value.advice(format!("raise the card's ring, which ethtool -g {} shows", carrier.name)),
        });
    }
    if all.is_empty() {
        let few = [(damaged, damage), (missed, miss)].into_iter().filter(|(count, _)| *count > 0);
        let few: Vec<String> = few.map(|(_, told)| told).collect();
        let value = if few.is_empty() { "none since it came up".to_owned() } else { few.join(", ") };
        all.push(Told::ok(value).about(carrier.name));
    }
    Ok(all)
}

/// Whether so many of these packets are too many.
fn are_many(count: u64, packets: u64) -> bool {
    count > 0 && u128::from(count) * u128::from(PACKETS) >= u128::from(packets)
}

fn slot(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    // Only what is in a slot has one.
    if carrier.if_any("device/current_link_speed")?.is_none() {
        return Ok(Vec::new());
    }
    let pair = |what: &str| {
        Ok((carrier.text(&format!("device/current_link_{what}"))?, carrier.text(&format!("device/max_link_{what}"))?))
    };
    let ((speed, most_speed), (width, most_width)) = (pair("speed")?, pair("width")?);
    let now = format!("{speed}, {width} lanes");
    if (speed, width) == (most_speed, most_width) {
        return Ok(vec![Told::ok(now).about(carrier.name)]);
    }
    // A new card in an older slot, and a slow one in any, have more than they need.
    let needs = carrier.speed().map(|speed| speed as f64 * SLOT);
    if lane_bits(speed, width).zip(needs.ok()).is_some_and(|(carries, needs)| carries >= needs) {
        let most = format!("the card could {most_speed}, {most_width} lanes, and needs less");
        return Ok(vec![Told::ok(format!("{now}; {most}")).about(carrier.name)]);
    }
    let told = Told::warning(now).about(carrier.name).should_be(format!("{most_speed}, {most_width} lanes"));
    let told = match (lane_bits(speed, width), lane_bits(most_speed, most_width)) {
        (Some(now), Some(most)) => {
            told.costs(format!("the slot carries {} instead of {}", units::bits(now), units::bits(most)))
        }
        _ => told,
    };
    Ok(vec![told.advice("put the card into a slot that has as many lanes, and look at the BIOS: lspci -vv shows both")])
}

/// `8.0 GT/s PCIe` and lanes, without the code's overhead.
fn lane_bits(speed: &str, width: &str) -> Option<f64> {
    let transfers: f64 = speed.split_whitespace().next()?.parse().ok()?;
    let code = if transfers > 5.0 { 128.0 / 130.0 } else { 0.8 };
    Some(transfers * 1e9 * code * width.parse::<f64>().ok()?)
}

fn numa(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    if carrier.if_any("device/numa_node")?.is_none() {
        return Ok(Vec::new());
    }
    let nodes = view.facts.text("sys/devices/system/node/online")?;
    let node = carrier.number("device/numa_node")?;
    let told = match (nodes, node) {
        ("0", _) | (_, ..0) => Told::ok("the host has one node, or does not say which is the card's"),
        (nodes, node) => {
            Told::ok(format!("the card is on node {node} of {nodes}: measure with numactl which one is better"))
        }
    };
    Ok(vec![told.about(carrier.name)])
}

fn channels(view: &View<'_>) -> Known<Vec<Told>> {
    let (carrier, speed) = fast(view)?;
    let number = |key: &str| carrier.driver_number("channels", key);
    let Ok((now, most)) = number("combined").and_then(|now| Ok((now, number("max-combined")?))) else {
        return Ok(Vec::new());
    };
    // Drivers with queues of one direction each count them elsewhere.
    if now > 1 || most <= 1 || speed < FAST {
        return Ok(vec![Told::ok(format!("{now} of {most}")).about(carrier.name)]);
    }
    let told = Told::warning(format!("{now} of {most}")).about(carrier.name);
    let told = told.costs("no more than what one processor can handle");
    Ok(vec![told.command(format!("ethtool -L {} combined {most}", carrier.name))])
}

fn interrupts(view: &View<'_>) -> Known<Vec<Told>> {
    let (carrier, speed) = fast(view)?;
    let all = carrier.interrupts()?;
    let most = all.iter().map(|one| one.count).max().unwrap_or(0);
    // The card's own events come seldom, and so do those of queues that carry nothing.
    let queues: Vec<&Interrupt> = all.iter().filter(|one| one.count > 0 && one.count >= most / 100).collect();
    let Some(first) = queues.first() else { return Ok(Vec::new()) };
    let online = view.facts.text("sys/devices/system/cpu/online").ok().and_then(ProcessorList::parse);
    let nodes = view.facts.text("sys/devices/system/node/online").unwrap_or("0");
    let node = carrier.number("device/numa_node").ok().filter(|node| *node >= 0 && nodes != "0");
    let near = node.and_then(|_| ProcessorList::parse(carrier.text("device/local_cpulist").ok()?));
    let only = first.processors.only().filter(|_| queues.iter().all(|one| one.processors == first.processors));
    let is_far = near.as_ref().is_some_and(|near| queues.iter().all(|one| !one.processors.meets(near)));
    let fit = near.or(online).filter(|fit| fit.count() > 1);
    let told = match (only.filter(|_| queues.len() > 1), is_far, &fit) {
        (Some(only), _, Some(_)) => {
            let told = Told::warning(format!("those of {} queues all come to processor {only}", queues.len()));
            told.costs("no more than what one processor can handle")
        }
        (_, true, Some(_)) => {
            let node = node.unwrap_or_default();
            let told =
                Told::warning(format!("those of {} queues come to no processor of the card's node", queues.len()));
            told.should_be(format!("processors of node {node}")).costs("each packet crosses the link between the nodes")
        }
        _ => return Ok(vec![Told::ok(format!("those of {} queues", queues.len())).about(carrier.name)]),
    };
    if speed < FAST {
        return Ok(vec![Told::ok("as they are: the card is slow enough for one processor").about(carrier.name)]);
    }
    let (from, to) = fit.map_or((0, 0), |fit| fit.longest());
    let numbers: Vec<String> = queues.iter().map(|one| one.number.to_string()).collect();
    let line = format!(
        "n={from}; for irq in {}; do echo $n > /proc/irq/$irq/smp_affinity_list; n=$((n < {to} ? n + 1 : {from})); done",
        numbers.join(" ")
    );
    let line = format!("{line}   # until the next boot; irqbalance moves them again where it runs");
    Ok(vec![told.about(carrier.name).command(line)])
}

fn rings(view: &View<'_>) -> Known<Vec<Told>> {
    let (carrier, speed) = fast(view)?;
    let number = |key: &str| carrier.driver_number("rings", key);
    // A virtual device has none.
    let Ok((rx, most_rx)) = number("rx").and_then(|now| Ok((now, number("rx-max")?))) else { return Ok(Vec::new()) };
    let (tx, most_tx) = (number("tx")?, number("tx-max")?);
    let now = format!("receive {rx} of {most_rx}, send {tx} of {most_tx}");
    if (rx >= most_rx && tx >= most_tx) || speed < FAST {
        return Ok(vec![Told::ok(now).about(carrier.name)]);
    }
    let told = Told::warning(now).about(carrier.name);
    let told = told.costs(format!(
        "{rx} packets of a burst fit: {:.2} ms at full rate",
        rx as f64 * 12_000.0 / speed as f64 * 1e3
    ));
    Ok(vec![told.command(format!("ethtool -G {} rx {most_rx} tx {most_tx}", carrier.name))])
}

fn offloads(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    // A virtual device hands packets on as they are.
    if !carrier.is_hardware() {
        return Ok(Vec::new());
    }
    let speed = carrier.speed()?;
    let mut off = Vec::new();
    for (key, option) in
        [("rx-checksum", "rx"), ("tx-checksum", "tx"), ("sg", "sg"), ("tso", "tso"), ("gso", "gso"), ("gro", "gro")]
    {
        if carrier.driver_number("offloads", key)? == 0 {
            off.push(option);
        }
    }
    if off.is_empty() || speed < FAST {
        let word = if off.is_empty() { "on".to_owned() } else { format!("off: {}", off.join(", ")) };
        return Ok(vec![Told::ok(word).about(carrier.name)]);
    }
    let line = off.iter().map(|option| format!(" {option} on")).collect::<String>();
    let told = Told::warning(format!("off: {}", off.join(", "))).about(carrier.name);
    let told = told.costs("several times the processor time for each byte");
    Ok(vec![told.command(format!("ethtool -K {}{line}", carrier.name))])
}

fn lro(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    if carrier.driver_number("offloads", "lro")? == 0 {
        return Ok(vec![Told::ok("off").about(carrier.name)]);
    }
    Ok(vec![Told::warning("on").about(carrier.name).command(format!("ethtool -K {} lro off", carrier.name))])
}

fn pause(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    let number = |key: &str| carrier.driver_number("pause", key);
    let Ok((rx, tx)) = number("rx").and_then(|rx| Ok((rx, number("tx")?))) else { return Ok(Vec::new()) };
    let mut told = Vec::new();
    if rx != tx {
        let value = Told::warning(format!("receive {}, send {}", word(rx), word(tx))).about(carrier.name);
        told.push(value.command(format!("ethtool -A {} rx on tx on   # as the switch's port has it", carrier.name)));
    }
    let counters = carrier.driver_counters().unwrap_or_default();
    let paused = counters
        .iter()
        .find(|(name, _)| name.contains("pause") && name.starts_with("rx") && !name.contains("duration"));
    if let Some((name, count)) = paused.filter(|(_, count)| view.is_often(*count, PAUSED)) {
        let value = Told::warning(format!("{count} pause frames came in ({name})")).about(carrier.name);
        told.push(
            value.costs("the card stops sending while it lasts").advice("find out which host or switch cannot keep up"),
        );
    }
    if told.is_empty() {
        told.push(Told::ok(format!("receive {}, send {}", word(rx), word(tx))).about(carrier.name));
    }
    Ok(told)
}

fn word(on: u64) -> &'static str {
    if on == 0 { "off" } else { "on" }
}

fn queue_length(view: &View<'_>) -> Known<Vec<Told>> {
    let (carrier, speed) = fast(view)?;
    let length = carrier.number("tx_queue_len")?;
    // It matters where packets wait, which they do not in a virtual device without a queue.
    if !carrier.is_hardware() || length >= QUEUE as i64 || speed < FAST {
        return Ok(vec![Told::ok(length.to_string()).about(carrier.name)]);
    }
    let told = Told::warning(length.to_string()).about(carrier.name);
    Ok(vec![told.command(format!("ip link set {} txqueuelen {QUEUE}", carrier.name))])
}

fn qdisc(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    let all = carrier.disciplines()?;
    let kinds: Vec<&str> = all.iter().map(|(kind, _)| *kind).collect();
    let shown = kinds.iter().fold(Vec::new(), |mut shown: Vec<&str>, kind| {
        if !shown.contains(kind) {
            shown.push(kind);
        }
        shown
    });
    let shown = shown.join(", ");
    let is_far = round_trip(view).is_none_or(|time| time >= FAR);
    let speed = carrier.speed().unwrap_or(0);
    // A virtual device has none, and hands packets on at once.
    let is_fine = kinds.iter().all(|kind| matches!(*kind, "fq" | "mq" | "noqueue"));
    if is_fine || !is_far || speed < FAST || !carrier.is_hardware() {
        return Ok(vec![Told::ok(shown).about(carrier.name)]);
    }
    let told = Told::warning(shown).about(carrier.name).costs("bursts that a slower port on the way may drop");
    Ok(vec![told.sysctl(Parameter::Discipline, "fq")])
}

fn bond(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    let Ok(mode) = carrier.text("bonding/mode") else { return Ok(Vec::new()) };
    let (policy, members) = (carrier.text("bonding/xmit_hash_policy"), carrier.text("bonding/slaves")?);
    let down: Vec<&str> =
        members.split_whitespace().filter(|name| view.facts.interface(name).number("carrier") == Ok(0)).collect();
    let members = members.split_whitespace().count();
    if !down.is_empty() {
        let told = Told::warning(format!("{} of {members} links are down: {}", down.len(), down.join(", ")));
        let told = told.about(carrier.name).costs("the others carry all of it");
        return Ok(vec![told.advice("look at the cables, and at the switch's ports: cat /proc/net/bonding/BOND")]);
    }
    let mode = mode.split_whitespace().next().unwrap_or_default();
    let streams = view.situation.wish.streams.unwrap_or(STREAMS);
    let by_hash = matches!(mode, "802.3ad" | "balance-xor");
    let policy = policy.map(|text| text.split_whitespace().next().unwrap_or_default()).unwrap_or_default();
    let value = format!("{mode}, {policy}, {members} links");
    let one = carrier.speed().map(|speed| speed as f64 / 8.0 / members.max(1) as f64);
    let one = one.map(units::rate).unwrap_or_else(|_| "one link's rate".to_owned());
    if by_hash && !matches!(policy, "layer3+4" | "encap3+4") && members > 1 {
        let told = Told::warning(value).about(carrier.name);
        let told = told.costs(format!("all streams to one host together are limited to {one}"));
        return Ok(vec![told.command(format!("ip link set {} type bond xmit_hash_policy layer3+4", carrier.name))]);
    }
    if members > 1 && usize::from(streams) < members {
        let told = Told::warning(value).about(carrier.name).should_be(format!("at least {members} streams"));
        return Ok(vec![
            told.costs(format!("a stream takes one link: {one}")).advice(format!("give --streams {members} or more")),
        ]);
    }
    Ok(vec![Told::ok(format!("{value}: a stream is limited to {one}")).about(carrier.name)])
}

fn softnet(view: &View<'_>) -> Known<Vec<Told>> {
    let (packets, dropped, squeezed) = view.facts.softnet()?;
    let mut told = Vec::new();
    let backlog = view.facts.network_number("core/netdev_max_backlog").unwrap_or(1000);
    if are_many(dropped, packets) {
        let (from, [faster, slower]) = BACKLOGS;
        let is_faster = view.facts.carrier().and_then(|carrier| carrier.speed()).is_ok_and(|speed| speed >= from);
        let wanted = if is_faster { faster } else { slower };
        let value = Told::warning(format!("{dropped} of {packets} packets were dropped, the queue holds {backlog}"));
        let value = value.costs("each is a loss that slows a far stream down");
        told.push(match backlog < wanted {
            true => value.sysctl(Parameter::Backlog, wanted.to_string()),
            false => value.advice(SPREAD),
        });
    }
    if squeezed as f64 > packets as f64 / ROUNDS as f64 {
        let value = Told::warning(format!("{squeezed} rounds ended before the queue was empty, of {packets} packets"));
        // It is counted since the start: a budget that was raised since is left as it is.
        told.push(match view.facts.network_number("core/netdev_budget") {
            Ok(now) if now >= BUDGET => value.advice(SPREAD),
            Ok(_) | Err(_) => value.sysctl(Parameter::Budget, BUDGET.to_string()),
        });
    }
    if told.is_empty() {
        let few = if dropped > 0 { dropped.to_string() } else { "none".to_owned() };
        told.push(Told::ok(format!("{few} of {packets}")));
    }
    Ok(told)
}

fn stacked(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    match carrier.kind()? {
        kind @ ("vlan" | "vxlan" | "gre" | "geneve" | "wireguard" | "tun") => Ok(vec![
            Told::ok(format!("{} is a {kind}: look at the offloads of what is below it", carrier.name))
                .about(carrier.name),
        ]),
        _ => Ok(Vec::new()),
    }
}
