//! Processors: their governor, what a core hashes and seals, the kernel that runs on them.

use super::{Check, FAST, Limit, Rule, Threshold, Told, View, tcp};
use crate::finding::EvidenceClass::{EsnetTable, Kernel, Ours};
use crate::known::{Known, Unknown};
use crate::units;
use carrack_core::path::display_bytes;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "processor.governor",
        threshold: Threshold::of("performance, at {} and more", &[Limit::Bits(FAST)]),
        reason: "processors that slow down between packets are slow when the next one comes",
        source: "fasterdata.es.net, CPU governor",
        class: EsnetTable,
        check: Check::Host(governor),
    },
    Rule {
        id: "processor.aes",
        threshold: Threshold::plain("the processor has instructions for AES"),
        reason: "without them a core encrypts at a fraction of the rate",
        source: "kernel, /proc/cpuinfo",
        class: Kernel,
        check: Check::Host(aes),
    },
    Rule {
        id: "processor.seal-rate",
        threshold: Threshold::of(
            "all streams together hash and seal {} what the network carries",
            &[Limit::Times(MARGIN)],
        ),
        reason: "a sender makes a digest of each block, and encrypts it, on the core of its stream",
        source: "carrack bench cpu",
        class: Ours,
        check: Check::Host(seal_rate),
    },
];

fn governor(view: &View<'_>) -> Known<Vec<Told>> {
    let Some(_) = view.facts.if_any("processor/governors")? else {
        return Err(Unknown::because(
            "the system does not tell how it governs its processors: a virtual machine cannot",
        ));
    };
    let governors = view.facts.governors()?;
    let other: Vec<String> =
        governors.iter().filter(|(name, _)| *name != "performance").map(|(name, n)| format!("{name} on {n}")).collect();
    if other.is_empty() {
        return Ok(vec![Told::ok("performance")]);
    }
    let value = display_bytes(other.join(", ").as_bytes()).to_string();
    // A slow processor fills such a card, too. Where no speed is told, it may be a fast one.
    if view.facts.carrier().and_then(|carrier| carrier.speed()).is_ok_and(|speed| speed < FAST) {
        return Ok(vec![Told::ok(format!("{value}, which is enough for the card"))]);
    }
    let told = Told::warning(value);
    Ok(vec![
        told.costs("latency after each pause, and single streams below what a core can do")
            .command("cpupower frequency-set -g performance   # or: tuned-adm profile network-throughput"),
    ])
}

fn aes(view: &View<'_>) -> Known<Vec<Told>> {
    if view.facts.has_flag("aes")? {
        let vector = view.facts.has_flag("vaes")?;
        return Ok(vec![Told::ok(if vector { "aes, vaes" } else { "aes" })]);
    }
    let told =
        Told::warning("none").costs("ChaCha20-Poly1305 is used in its place, which takes more of a core for each byte");
    Ok(vec![
        told.advice("a virtual machine may be given them by its host; else use --encrypt none where that is allowed"),
    ])
}

/// Work of a sender for each block.
const WORK: &str = "blake3+aes-128-gcm";
const MARGIN: f64 = 1.3;

fn seal_rate(view: &View<'_>) -> Known<Vec<Told>> {
    let (one, wanted) = (view.facts.work_rate(WORK)?, tcp::wanted_rate(view)?);
    let processors = view.facts.processors()?.max(1);
    let streams = u64::from(view.situation.wish.streams.unwrap_or(tcp::STREAMS)).min(processors);
    let all = one * streams as f64;
    let value = format!("{} on one core, {} on {streams}", units::rate(one), units::rate(all));
    if all >= wanted * MARGIN {
        return Ok(vec![Told::ok(value)]);
    }
    let cost = format!("copies are limited to about {} of {}", units::rate(all), units::rate(wanted));
    let told = Told::warning(value).costs(cost);
    let told = told.should_be(format!("{} on {streams} cores", units::rate(wanted * MARGIN)));
    Ok(vec![
        told.advice(
            "use --digest xxh128, or --encrypt none where the network is trusted; or more streams on more cores",
        ),
    ])
}
