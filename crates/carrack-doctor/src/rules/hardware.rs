//! What the kernel has noticed of failing hardware.

use super::{Check, Rule, Told, View};
use crate::finding::EvidenceClass::Kernel;
use crate::known::{Known, Unknown};
use carrack_core::path::display_bytes;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "hardware.log",
        threshold: "no lost writes, no errors of disks, memory or links since the start",
        reason: "a write that the kernel has lost is in no file, whatever was told to the program",
        source: "kernel, buffer.c and page-writeback.c",
        class: Kernel,
        check: Check::Host(log),
    },
    Rule {
        id: "hardware.memory",
        threshold: "no errors in memory",
        reason: "what memory has changed is sent, and its digest is right",
        source: "kernel, EDAC",
        class: Kernel,
        check: Check::Host(memory),
    },
];

fn log(view: &View<'_>) -> Known<Vec<Told>> {
    let text = match view.facts.if_any("kernel-log")? {
        None => return Err(Unknown::because("this host has no /dev/kmsg: a container")),
        Some(text) => text,
    };
    let Some(last) = text.lines().last() else { return Ok(vec![Told::ok("none")]) };
    let lost = text.lines().filter(|line| line.contains("lost ") && line.contains("page write")).count();
    let count = text.lines().count();
    let value = format!("{count} such lines, the last: {}", display_bytes(last.as_bytes()));
    let told = if lost > 0 {
        Told::failure(value).costs(format!("{lost} writes were lost: files may hold something else than was written"))
    } else {
        Told::warning(value).costs("slow calls, or calls that fail")
    };
    Ok(vec![told.command("dmesg --level=emerg,alert,crit,err   # then look at the disk: smartctl -a")])
}

fn memory(view: &View<'_>) -> Known<Vec<Told>> {
    let controllers = view.facts.evidence().entries("sys/devices/system/edac/mc/");
    let controllers: Vec<&str> = controllers.into_iter().filter(|name| name.starts_with("mc")).collect();
    if controllers.is_empty() {
        return Err(Unknown::because("the kernel counts no errors in memory here"));
    }
    let mut all = Vec::new();
    for name in controllers {
        let count = |kind: &str| view.facts.number(&format!("sys/devices/system/edac/mc/{name}/{kind}_count"));
        let (mended, lost) = (count("ce")?, count("ue")?);
        let value = format!("{mended} mended, {lost} not");
        let told = match (mended, lost) {
            (0, 0) => Told::ok(value),
            (_, 0) => Told::warning(value).costs("a module that will fail").advice("have the module changed"),
            (_, _) => {
                Told::failure(value).costs("data that was changed in memory").advice("have the module changed at once")
            }
        };
        all.push(told.about(name));
    }
    Ok(all)
}
