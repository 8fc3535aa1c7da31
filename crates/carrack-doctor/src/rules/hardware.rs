//! What the kernel has noticed of failing hardware.

use std::time::Duration;

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
        threshold: Threshold::of(
            "fewer than one mended error of memory within {} in the mean, and none that was not mended",
            &[Limit::Time(MENDED)],
        ),
        reason: "what memory has changed is sent, and its digest is right",
        source: "kernel, EDAC",
        class: Kernel,
        check: Check::Host(memory),
    },
];

/// Hours for which a line of the kernel's log counts. Older ones are a note.
const COUNTS_HOURS: u64 = 24;
/// A module that mends an error so often will fail; one in a year is a ray from space.
const MENDED: Duration = Duration::from_secs(24 * 3600);
/// Seconds of a boot, in which links come and go.
const BOOT_SECONDS: u64 = 120;

/// What lines of the log may be about.
struct Subject {
    /// A line with one of these is about it; all is compared in small letters.
    words: &'static [&'static str],
    scope: Scope,
    cost: &'static str,
    fix: fn(Told) -> Told,
}

/// Which lines of a subject concern the copy.
enum Scope {
    /// Those that name a device below the directory, or its server.
    Storage,
    /// Those that name an interface that carries the data.
    Interface,
    /// All.
    Host,
}

/// The first that a line is about counts; the last has no words and is about all others.
const SUBJECTS: &[Subject] = &[
    Subject {
        words: &[
            "i/o error",
            "page write",
            "medium error",
            "remounting filesystem",
            "not responding",
            "btrfs error",
            "ext4-fs error",
            "shutting down filesystem",
            "disk failure on",
        ],
        scope: Scope::Storage,
        cost: "slow calls, or calls that fail",
        fix: |told| told.command("dmesg --level=emerg,alert,crit,err   # then look at the disk: smartctl -a"),
    },
    Subject {
        words: DOWN,
        scope: Scope::Interface,
        cost: "streams stand still until the link is back",
        fix: |told| told.advice("look at the cable, at the transceiver (ethtool -m) and at the switch's port"),
    },
    Subject {
        words: &["netdev watchdog"],
        scope: Scope::Interface,
        cost: "streams stand still while the card is set up anew",
        fix: |told| told.advice("update the card's driver and firmware: ethtool -i shows both"),
    },
    Subject {
        words: &["out of memory: kill"],
        scope: Scope::Host,
        cost: "the kernel ends programs, and may end a copy",
        fix: |told| told.advice("find out which programs need the memory: ps aux --sort=-rss"),
    },
    Subject {
        words: &["temperature above threshold"],
        scope: Scope::Host,
        cost: "processors slow down until they are cooler",
        fix: |told| told.advice("look at the fans, and at the air that comes in: sensors"),
    },
    Subject {
        words: &["aer:", "pcie bus error"],
        scope: Scope::Host,
        cost: "what a card could not hand over is handed over again, or lost",
        fix: |told| told.advice("seat the card anew, or try another slot: lspci -vv shows which one the address is"),
    },
    Subject {
        words: &["machine check", "hardware error", "uncorrected error"],
        scope: Scope::Host,
        cost: "memory or a processor that may change data",
        fix: |told| told.command("ras-mc-ctl --errors   # names the module or the processor: have it changed"),
    },
    Subject {
        words: &["table full", "table overflow"],
        scope: Scope::Host,
        cost: "packets of new connections are dropped",
        fix: |told| {
            told.advice("raise net.netfilter.nf_conntrack_max, or net.ipv4.neigh.default.gc_thresh3 for neighbours")
        },
    },
    Subject {
        words: &[],
        scope: Scope::Host,
        cost: "slow calls, or calls that fail",
        fix: |told| told.command("dmesg --level=emerg,alert,crit,err,warn   # what stands before and after the line"),
    },
];
/// A link that is gone, as drivers and bonding write it.
const DOWN: &[&str] = &["link is down", "link down", "link status definitely down"];
/// A file system or an array that has lost something.
const BROKEN: &[&str] = &["shutting down filesystem", "disk failure on", "ext4-fs error", "corrupt "];

fn log(view: &View<'_>) -> Known<Vec<Told>> {
    let text = match view.facts.if_any("kernel-log")? {
        None => return Err(Unknown::because("this host has no /dev/kmsg: a container")),
        Some(text) => text,
    };
    let ages = view.facts.text("kernel-log-ages").unwrap_or_default();
    // Hosts of an older Carrack tell no ages: their lines cannot count.
    let mut ages = ages.lines().map(|age| age.parse::<u64>().ok());
    let lines = text.lines().map(|line| (line, ages.next().flatten()));
    let (counting, noted): (Vec<_>, Vec<_>) = lines.partition(|(line, age)| {
        let subject = &SUBJECTS[subject_of(line)];
        age.is_some_and(|age| age <= COUNTS_HOURS * 3600)
            && concerns_copy(view, &subject.scope, line)
            && !is_of_boot(view, line, *age)
    });
    let told: Vec<Told> = SUBJECTS
        .iter()
        .enumerate()
        .filter_map(|(number, subject)| {
            let lines = counting.iter().map(|(line, _)| *line).filter(|line| subject_of(line) == number);
            subject.told(&lines.collect::<Vec<_>>())
        })
        .collect();
    if !told.is_empty() {
        return Ok(told);
    }
    let Some(&(last, age)) = noted.last() else { return Ok(vec![Told::ok("none")]) };
    let age = age.map_or_else(|| "at a time unknown".to_owned(), |age| format!("{} h ago", age.div_ceil(3600)));
    let count = noted.len();
    let value = format!(
        "none; {count} older, of a boot, or of other devices, the last {age}: {}",
        display_bytes(last.as_bytes())
    );
    Ok(vec![Told::ok(value)])
}

fn has(line: &str, words: &[&str]) -> bool {
    let line = line.to_ascii_lowercase();
    words.iter().any(|word| line.contains(word))
}

fn subject_of(line: &str) -> usize {
    SUBJECTS.iter().position(|subject| has(line, subject.words)).unwrap_or(SUBJECTS.len() - 1)
}

/// Whether a link went down while the host started, as it does when a driver sets it up.
fn is_of_boot(view: &View<'_>, line: &str, age: Option<u64>) -> bool {
    let uptime = view.facts.uptime().ok().map(|time| time.as_secs());
    has(line, DOWN) && uptime.zip(age).is_some_and(|(uptime, age)| uptime.saturating_sub(age) <= BOOT_SECONDS)
}

impl Subject {
    /// What lines about it mean; nothing if there are none.
    fn told(&self, lines: &[&str]) -> Option<Told> {
        let value = format!("{} such lines, the last: {}", lines.len(), display_bytes(lines.last()?.as_bytes()));
        let lost = lines.iter().filter(|line| has(line, &["lost "]) && has(line, &["page write"])).count();
        let told = if lost > 0 {
            let cost = format!("{lost} writes were lost: files may hold something else than was written");
            Told::failure(value).costs(cost)
        } else if lines.iter().any(|line| has(line, BROKEN)) {
            Told::failure(value).costs("what is read there may be damaged, or not to be read at all")
        } else {
            Told::warning(value).costs(self.cost)
        };
        Some((self.fix)(told))
    }
}

/// Whether a line is about the copy: about a device below its directory, its server, its interface, or the whole host.
fn concerns_copy(view: &View<'_>, scope: &Scope, line: &str) -> bool {
    let names = |name: &str| {
        let is_of_name = |one: char| one.is_ascii_alphanumeric() || "._-:".contains(one);
        let mut words = line.split(|one: char| !is_of_name(one)).map(|word| word.trim_end_matches([':', '.']));
        // `md/raid1:md0:` names md0.
        words.any(|word| word == name || word.rsplit_once(':').is_some_and(|(_, last)| last == name))
    };
    match scope {
        Scope::Host => true,
        Scope::Interface => view.facts.carriers().is_ok_and(|carriers| carriers.into_iter().any(names)),
        Scope::Storage => {
            let device = view.facts.devices().is_ok_and(|devices| devices.iter().any(|device| names(device.name)));
            let mount = view.facts.mount().ok();
            let server = mount.and_then(|mount| mount.source.split_once(":/").map(|(server, _)| server));
            device || server.is_some_and(names)
        }
    }
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
            (mended, 0) if !view.is_often(u64::try_from(mended).unwrap_or(u64::MAX), MENDED) => Told::ok(value),
            (_, 0) => Told::warning(value).costs("a module that will fail").advice("have the module changed"),
            (_, _) => {
                Told::failure(value).costs("data that was changed in memory").advice("have the module changed at once")
            }
        };
        all.push(told.about(name));
    }
    Ok(all)
}
