//! What the kernel has noticed of failing hardware.

use super::{Check, Limit, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::Kernel;
use crate::known::{Known, Unknown};
use carrack_core::path::display_bytes;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "hardware.log",
        threshold: Threshold::of(
            "no lost writes and no errors of the directory's devices, memory, links or the kernel within {}",
            &[Limit::Hours(COUNTS_HOURS)],
        ),
        reason: "a write that the kernel has lost is in no file, whatever was told to the program",
        source: "kernel, buffer.c and page-writeback.c",
        class: Kernel,
        check: Check::Host(log),
    },
    Rule {
        id: "hardware.memory",
        threshold: Threshold::plain("no errors in memory"),
        reason: "what memory has changed is sent, and its digest is right",
        source: "kernel, EDAC",
        class: Kernel,
        check: Check::Host(memory),
    },
];

/// Hours for which a line of the kernel's log counts. Older ones are a note.
const COUNTS_HOURS: u64 = 24;
/// Lines with one of these are about the storage that they name; all others are about the whole host.
const OF_STORAGE: &[&str] = &[
    "I/O error",
    "page write",
    "medium error",
    "Remounting filesystem",
    "not responding",
    "BTRFS error",
    "EXT4-fs error",
    "Shutting down filesystem",
    "Disk failure on",
];
/// Lines with one of these are about the interface that they name.
const OF_INTERFACES: &[&str] = &["Link is Down", "NETDEV WATCHDOG"];
/// A file system or an array that has lost something.
const BROKEN: &[&str] = &["Shutting down filesystem", "Disk failure on", "EXT4-fs error", "corrupt "];

fn log(view: &View<'_>) -> Known<Vec<Told>> {
    let text = match view.facts.if_any("kernel-log")? {
        None => return Err(Unknown::because("this host has no /dev/kmsg: a container")),
        Some(text) => text,
    };
    let ages = view.facts.text("kernel-log-ages").unwrap_or_default();
    // Hosts of an older Carrack tell no ages: their lines cannot count.
    let mut ages = ages.lines().map(|age| age.parse::<u64>().ok());
    let lines = text.lines().map(|line| (line, ages.next().flatten()));
    let (counting, noted): (Vec<_>, Vec<_>) = lines
        .partition(|(line, age)| age.is_some_and(|age| age <= COUNTS_HOURS * 3600) && concerns_directory(view, line));
    let Some(&(last, _)) = counting.last() else {
        let Some(&(last, age)) = noted.last() else { return Ok(vec![Told::ok("none")]) };
        let age = age.map_or_else(|| "at a time unknown".to_owned(), |age| format!("{} h ago", age.div_ceil(3600)));
        let count = noted.len();
        let value =
            format!("none; {count} older, or of other devices, the last {age}: {}", display_bytes(last.as_bytes()));
        return Ok(vec![Told::ok(value)]);
    };
    let lost = counting.iter().filter(|(line, _)| line.contains("lost ") && line.contains("page write")).count();
    let value = format!("{} such lines, the last: {}", counting.len(), display_bytes(last.as_bytes()));
    let broken = counting.iter().any(|(line, _)| BROKEN.iter().any(|words| line.contains(words)));
    let told = if lost == 0 && broken {
        Told::failure(value).costs("what is read there may be damaged, or not to be read at all")
    } else if lost > 0 {
        Told::failure(value).costs(format!("{lost} writes were lost: files may hold something else than was written"))
    } else {
        Told::warning(value).costs("slow calls, or calls that fail")
    };
    Ok(vec![told.command("dmesg --level=emerg,alert,crit,err   # then look at the disk: smartctl -a")])
}

/// Whether a line is about the copy: about a device below its directory, its server, its interface, or the whole host.
fn concerns_directory(view: &View<'_>, line: &str) -> bool {
    let names = |name: &str| {
        let is_of_name = |one: char| one.is_ascii_alphanumeric() || "._-:".contains(one);
        let mut words = line.split(|one: char| !is_of_name(one)).map(|word| word.trim_end_matches([':', '.']));
        // `md/raid1:md0:` names md0.
        words.any(|word| word == name || word.rsplit_once(':').is_some_and(|(_, last)| last == name))
    };
    if OF_INTERFACES.iter().any(|words| line.contains(words)) {
        return view.facts.carriers().is_ok_and(|carriers| carriers.into_iter().any(names));
    }
    if !OF_STORAGE.iter().any(|words| line.contains(words)) {
        return true;
    }
    let device = view.facts.devices().is_ok_and(|devices| devices.iter().any(|device| names(device.name)));
    let server = view.facts.mount().ok().and_then(|mount| mount.source.split_once(":/").map(|(server, _)| server));
    device || server.is_some_and(names)
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
