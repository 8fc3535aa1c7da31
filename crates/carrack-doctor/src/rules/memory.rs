//! Memory for written data that has not reached the disk.

use std::time::Duration;

use super::{Check, Limit, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::{Kernel, Ours};
use crate::known::Known;
use crate::parameter::Parameter;
use crate::units;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "memory.dirty",
        threshold: Threshold::of(
            "vm.dirty_bytes of no more than {} what the storage writes in {}",
            &[Limit::Times(SPARE), Limit::Time(SYNC)],
        ),
        reason: "a sync waits for all that was let into memory before it, and so does everybody who writes",
        source: "kernel, admin-guide/sysctl/vm; tuned's profiles say 40 % of memory, against it",
        class: Ours,
        check: Check::Host(dirty),
    },
    Rule {
        id: "memory.available",
        threshold: Threshold::of("at least {} of memory is available", &[Limit::Percent(AVAILABLE)]),
        reason: "sockets and files share what programs leave",
        source: "proc_meminfo(5)",
        class: Kernel,
        check: Check::Host(available),
    },
    Rule {
        id: "memory.swap",
        threshold: Threshold::of("less than {} of swap is in use", &[Limit::Percent(SWAPPED)]),
        reason: "a host whose swap is used up ends programs when memory runs out",
        source: "proc_meminfo(5)",
        class: Kernel,
        check: Check::Host(swap),
    },
    Rule {
        id: "memory.huge-pages",
        threshold: Threshold::plain("a page that is not at hand is not waited for: defrag of defer, madvise or never"),
        reason: "whoever asks for memory waits until the kernel has moved others' pages together",
        source: "kernel, admin-guide/mm/transhuge",
        class: Kernel,
        check: Check::Host(huge_pages),
    },
];

/// How long a sync may take.
const SYNC: Duration = Duration::from_secs(2);
/// What the storage writes varies by so much from one measurement to the next: nothing is said below it.
const SPARE: f64 = 1.25;
/// Less would keep a disk waiting.
const LEAST: u64 = 64 << 20;
/// Of a hundred: what programs should leave.
const AVAILABLE: u64 = 10;
/// Of a hundred: what may be in use of swap.
const SWAPPED: u64 = 90;

fn dirty(view: &View<'_>) -> Known<Vec<Told>> {
    if !super::storage::is_asked(view) {
        return Ok(Vec::new());
    }
    let limit = |bytes: &str, ratio: &str| {
        let own = view.facts.number(&format!("proc/sys/vm/{bytes}"))?;
        if own > 0 {
            return Ok(own as f64);
        }
        let percent = view.facts.number(&format!("proc/sys/vm/{ratio}"))?;
        Ok(view.facts.memory("MemAvailable")? as f64 * percent as f64 / 100.0)
    };
    let most = limit("dirty_bytes", "dirty_ratio")?;
    let rate = view.facts.storage_rate("write")?;
    let value = format!("{} may wait, which the storage writes in {}", units::bytes(most), seconds(most / rate));
    if most <= rate * SYNC.as_secs_f64() * SPARE || most <= LEAST as f64 {
        return Ok(vec![Told::ok(value)]);
    }
    let should = ((rate * SYNC.as_secs_f64()) as u64).max(LEAST) >> 20 << 20;
    let told = Told::warning(value).costs(format!("a sync waits for up to {}", seconds(most / rate)));
    Ok(vec![told.sysctl(Parameter::DirtyBytes, should.to_string())])
}

fn seconds(seconds: f64) -> String {
    units::time(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

fn available(view: &View<'_>) -> Known<Vec<Told>> {
    let (available, all) = (view.facts.memory("MemAvailable")?, view.facts.memory("MemTotal")?);
    let value = format!("{} of {}", units::bytes(available as f64), units::bytes(all as f64));
    if available as f64 >= all as f64 * AVAILABLE as f64 / 100.0 {
        return Ok(vec![Told::ok(value)]);
    }
    let told = Told::warning(value).costs("small windows, and reads that wait for the disk");
    Ok(vec![told.advice("find out which programs need it: ps aux --sort=-rss")])
}

fn swap(view: &View<'_>) -> Known<Vec<Told>> {
    let (free, all) = (view.facts.memory("SwapFree")?, view.facts.memory("SwapTotal")?);
    if all == 0 {
        return Ok(vec![Told::ok("none")]);
    }
    let used = all.saturating_sub(free);
    let value = format!("{} of {} in use", units::bytes(used as f64), units::bytes(all as f64));
    if (used as f64) < all as f64 * SWAPPED as f64 / 100.0 {
        return Ok(vec![Told::ok(value)]);
    }
    let told = Told::warning(value).costs("reads from swap between all others, and programs that are ended");
    Ok(vec![told.advice("find out which programs need it: ps aux --sort=-rss; then swapoff -a && swapon -a")])
}

fn huge_pages(view: &View<'_>) -> Known<Vec<Told>> {
    let chosen = |file: &str| {
        let text = view.facts.if_any(&format!("sys/kernel/mm/transparent_hugepage/{file}"))?;
        let chosen = text.and_then(|text| text.split_once('[')?.1.split_once(']')).map(|(chosen, _)| chosen);
        Ok(chosen)
    };
    let (Some(enabled), Some(defrag)) = (chosen("enabled")?, chosen("defrag")?) else {
        return Ok(vec![Told::ok("the kernel has none")]);
    };
    let value = format!("enabled {enabled}, defrag {defrag}");
    if enabled != "always" || defrag != "always" {
        return Ok(vec![Told::ok(value)]);
    }
    let told = Told::warning(value).costs("calls that take milliseconds while memory is in pieces");
    Ok(vec![told.command("echo madvise > /sys/kernel/mm/transparent_hugepage/defrag   # until the next boot")])
}
