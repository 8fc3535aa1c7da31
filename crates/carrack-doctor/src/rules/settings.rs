//! What the next boot brings, and what changes settings meanwhile.

use super::{Check, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::{Kernel, OneOperator};
use crate::known::Known;
use carrack_core::path::display_bytes;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "settings.next-boot",
        threshold: Threshold::plain("each parameter of the network and of memory is now what the last file says"),
        reason: "the files are read in the order of their names, and the last one wins: what was set by hand is gone",
        source: "sysctl.d(5)",
        class: Kernel,
        check: Check::Host(next_boot),
    },
    Rule {
        id: "settings.tuned",
        threshold: Threshold::plain("no profile that sets what a file of sysctl.d sets otherwise"),
        reason: "tuned sets its profile's values after the files, each time it starts",
        source: "tuned.conf(5); network-throughput allows 16 MiB where others say 512 MiB",
        class: Kernel,
        check: Check::Host(tuned),
    },
    Rule {
        id: "settings.bpftune",
        threshold: Threshold::plain("known"),
        reason: "bpftune raises and lowers buffers by itself; it leaves alone what an administrator sets meanwhile",
        source: "oracle/bpftune",
        class: OneOperator,
        check: Check::Host(bpftune),
    },
];

fn shown(text: &str) -> String {
    display_bytes(text.as_bytes()).to_string()
}

fn concerns(name: &str) -> bool {
    name.starts_with("net.core.") || name.starts_with("net.ipv4.tcp_") || name.starts_with("vm.")
}

fn next_boot(view: &View<'_>) -> Known<Vec<Told>> {
    // Absent or there, the files were looked for.
    view.facts.if_any("etc/sysctl.conf")?;
    let mut all = Vec::new();
    for (name, boot) in view.facts.at_boot().into_iter().filter(|(name, _)| concerns(name)) {
        let Ok(now) = view.facts.parameter(&name) else { continue };
        let last = shown(&boot.file);
        let overruled = match &boot.overruled[..] {
            [] => String::new(),
            files => format!("; {} says otherwise and is overruled", shown(&files.join(", "))),
        };
        let value = format!(
            "{} now, {} at the next boot: {last} has the last word{overruled}",
            shown(&now),
            shown(&boot.value)
        );
        if now == boot.value {
            all.push(Told::ok(format!("{}, also at the next boot ({last})", shown(&now))).about(shown(&name)));
            continue;
        }
        let told =
            Told::warning(value).about(shown(&name)).costs("another value after the next boot than was measured now");
        all.push(told.advice(format!("change the line in {last}, or make the file go by: sysctl --system")));
    }
    if all.is_empty() {
        all.push(Told::ok("no file sets any"));
    }
    Ok(all)
}

fn tuned(view: &View<'_>) -> Known<Vec<Told>> {
    let Some(process) = view.facts.if_any("process/tuned")? else { return Ok(vec![Told::ok("tuned does not run")]) };
    let profile = view.facts.text("etc/tuned/active_profile").map(shown).unwrap_or_else(|_| "unknown".to_owned());
    let files = view.facts.at_boot();
    // By default tuned lets the files of sysctl.d have the last word, as soon as it has set its own.
    let reapplies = view.facts.text("etc/tuned/tuned-main.conf").is_ok_and(|text| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("reapply_sysctl"));
        line.is_none_or(|line| matches!(line.trim_start_matches([' ', '=']).trim(), "1" | "true" | "yes"))
    });
    let mut all = Vec::new();
    for (name, value, profile) in view.facts.tuned().into_iter().filter(|(name, ..)| concerns(name)) {
        let Some(file) = files.get(&name).filter(|file| file.value != value) else { continue };
        let (told, wins) = (
            format!("profile {} says {}", shown(profile), shown(&value)),
            if reapplies { &file.file } else { "tuned" },
        );
        let told =
            Told::warning(format!("{told}, {} says {}: {} wins", shown(&file.file), shown(&file.value), shown(wins)));
        let told = told.about(shown(&name)).costs("a value that depends on which of both was started last");
        all.push(told.advice("set it in one place: in a profile of your own, or in sysctl.d with reapply_sysctl = 1"));
    }
    if all.is_empty() {
        all.push(Told::ok(format!("profile {profile}, process {}", shown(process))));
    }
    Ok(all)
}

fn bpftune(view: &View<'_>) -> Known<Vec<Told>> {
    Ok(vec![match view.facts.if_any("process/bpftune")? {
        None => Told::ok("bpftune does not run"),
        Some(process) => Told::unknown(format!(
            "bpftune runs (process {}): buffers and congestion control may be others soon, and it stops once they are set",
            shown(process)
        )),
    }])
}
