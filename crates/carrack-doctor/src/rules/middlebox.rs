//! What stands between two hosts and changes what they say: the first packet as it was sent beside the same as it came.

use super::{Check, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::{EsnetTable, Kernel};
use crate::known::{Known, Unknown};
use crate::rules::tcp::round_trip;
use crate::units;

const SOURCE: &str = "fasterdata.es.net, firewalls; RFC 7323";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "middlebox.options",
        threshold: Threshold::plain(
            "window scaling, selective acknowledgements and timestamps arrive as they were sent",
        ),
        reason: "a firewall that takes them out limits every stream, whatever the hosts are set to",
        source: SOURCE,
        class: EsnetTable,
        check: Check::Host(options),
    },
    Rule {
        id: "middlebox.segment",
        threshold: Threshold::plain("the largest segment arrives as it was announced"),
        reason: "a tunnel or a router on the way lowers it: packets are smaller than both hosts could send",
        source: "RFC 4821, RFC 9293",
        class: Kernel,
        check: Check::Host(segment),
    },
];

/// Of the host that dialled.
fn options(view: &View<'_>) -> Known<Vec<Told>> {
    let Some(other) = view.other else { return Ok(Vec::new()) };
    let came = other.accepted_syn()?;
    let agreed = view.facts.dialled()?;
    let sends = |file: &str| Ok(view.facts.network_number(file)? != 0);
    let answers = |file: &str| Ok(other.network_number(file)? != 0);
    let rows = [
        ("window scaling", "ipv4/tcp_window_scaling", came.scale.is_some(), agreed.scaling),
        ("selective acknowledgements", "ipv4/tcp_sack", came.sack, agreed.sack),
        ("timestamps", "ipv4/tcp_timestamps", came.timestamps, agreed.timestamps),
    ];
    let (mut lost, mut scaling) = (Vec::new(), false);
    for (name, file, arrived, is_agreed) in rows {
        // What a host does not say cannot be lost; that it does not is another finding.
        if !sends(file)? {
            continue;
        }
        if !arrived {
            lost.push(format!("{name} (taken out of the request)"));
        } else if !is_agreed && answers(file)? {
            lost.push(format!("{name} (taken out of the answer)"));
        } else {
            continue;
        }
        scaling |= name == "window scaling";
    }
    if lost.is_empty() {
        return Ok(vec![Told::ok("they arrive as they were sent")]);
    }
    let value = format!("changed on the way: {}", lost.join(", "));
    let told = if scaling { Told::failure(value) } else { Told::warning(value) };
    let told = match round_trip(view).filter(|_| scaling) {
        Some(time) => {
            let rate = units::rate(65_535.0 / time.as_secs_f64().max(1e-6));
            told.costs(format!("one stream is limited to {rate} at {}", units::time(time)))
        }
        None => told.costs("each loss costs more round trips"),
    };
    Ok(vec![told.advice(
        "a firewall or middlebox is in the path: move the host in front of it, with access lists instead (Science DMZ)",
    )])
}

fn segment(view: &View<'_>) -> Known<Vec<Told>> {
    let Some(other) = view.other else { return Ok(Vec::new()) };
    let came = other.accepted_syn()?.mss.ok_or_else(|| Unknown::because("the first packet names no segment"))?;
    let sent = view.facts.dialled()?.advertised_mss;
    // What is announced is rounded down by options of the route.
    if u64::from(came) >= sent || sent == 0 {
        return Ok(vec![Told::ok(format!("{came} bytes"))]);
    }
    let told = Told::warning(format!("{sent} bytes were announced, and {came} arrived"));
    let told = told.costs(format!("{:.1} times as many packets", sent as f64 / f64::from(came).max(1.0)));
    Ok(vec![told.advice("a tunnel, a VPN or a router on the way makes packets smaller: find it with the way above, or lower the MTU of both hosts to what it takes")])
}
