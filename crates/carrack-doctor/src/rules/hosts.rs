//! What a session finds on a host: commands, limits, the IOMMU.

use std::time::Duration;

use super::{Check, FAST, FASTEST, Limit, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::{EsnetTable, OneOperator, Ours};
use crate::known::{Known, Unknown};
use crate::situation::{Host, HostSide, Situation};
use crate::units;
use carrack_core::path::display_bytes;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "host.evidence",
        threshold: Threshold::plain("the host says what it is made of"),
        reason: "what a host does not say nobody else can know",
        source: "docs/doctor.md",
        class: Ours,
        check: Check::Path(evidence),
    },
    Rule {
        id: "host.commands",
        threshold: Threshold::plain("a login shell finds ip, tc, ss, ethtool and sysctl where they are installed"),
        reason: "the commands that mend a host lie where only an administrator's shell looks",
        source: "Performance killer 6 of UltraLight, 2005",
        class: OneOperator,
        check: Check::Host(commands),
    },
    Rule {
        id: "host.open-files",
        threshold: Threshold::of("{} open files for a session", &[Limit::Count(OPEN_FILES)]),
        reason: "a copy opens up to 600: 256 connections, 64 files at each end, 128 directories, and more; a crowd has many copies",
        source: "systemd.exec(5)",
        class: Ours,
        check: Check::Host(open_files),
    },
    Rule {
        id: "host.names",
        threshold: Threshold::of(
            "the other host's name is looked up within {}, where the ssh server asks for it (UseDNS)",
            &[Limit::Time(NAMED)],
        ),
        reason: "a name server that does not answer makes each login wait there; by its default OpenSSH does not ask",
        source: "sshd_config(5), resolv.conf(5)",
        class: Ours,
        check: Check::Host(names),
    },
    Rule {
        id: "host.kernel",
        threshold: Threshold::of(
            "Linux {} or later at {} and more",
            &[Limit::Release(KERNEL.0, KERNEL.1), Limit::Bits(FAST)],
        ),
        reason: "6.8 moved 30 % more than 5.15 in a laboratory, and 38 % more over far paths",
        source: "INDIS workshop, 2024",
        class: OneOperator,
        check: Check::Host(kernel),
    },
    Rule {
        id: "host.iommu",
        threshold: Threshold::of("off, or iommu=pt, at {}", &[Limit::Bits(FASTEST)]),
        reason: "each packet's memory is mapped and unmapped otherwise",
        source: "Open Science Grid, networking scripts",
        class: EsnetTable,
        check: Check::Host(iommu),
    },
];

fn evidence(situation: &Situation) -> Known<Vec<Told>> {
    let said = |(side, host): (HostSide, &Host)| match &host.evidence {
        Err(why) => Told::unknown(why.clone()).at(side),
        Ok(evidence) if evidence.is_cut() => Told::unknown("it says so much that a part was left out").at(side),
        Ok(evidence) => Told::ok(format!("{} texts", evidence.iter().count())).at(side),
    };
    Ok(situation.sides().map(said).collect())
}

fn commands(view: &View<'_>) -> Known<Vec<Told>> {
    // Only where the shell could be asked is a command that it did not name one that it does not find.
    let path = view.facts.text("login-path")?;
    let evidence = view.facts.evidence();
    let found = |name: &str| evidence.found(&format!("login-command/{name}")).is_some();
    let hidden: Vec<(&str, &str)> = evidence
        .below("beside-path/")
        .filter(|(name, _)| !found(name))
        .filter_map(|(name, _)| Some((name, evidence.found(&format!("beside-path/{name}"))?)))
        .collect();
    let Some((_, first)) = hidden.first() else { return Ok(vec![Told::ok("found")]) };
    let names: Vec<&str> = hidden.iter().map(|(name, _)| *name).collect();
    let directory = first.rsplit_once('/').map_or("/usr/sbin", |(directory, _)| directory);
    let path = display_bytes(path.as_bytes());
    let told = Told::warning(format!("a login shell does not find {}: its PATH is {path}", names.join(", ")));
    let told = told.costs("a line that mends a host fails with \"command not found\"");
    Ok(vec![told.command(format!("echo 'PATH=$PATH:{}' >> ~/.profile", display_bytes(directory.as_bytes())))])
}

/// What a session should have: a dozen copies at their largest. A node has the limit of its unit.
const OPEN_FILES: u64 = 8192;
/// With fewer a copy is held up: streams, files under way, and what the program itself has open.
const OPEN_FILES_LEAST: u64 = 1024;

fn open_files(view: &View<'_>) -> Known<Vec<Told>> {
    let limits = view.facts.text("proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let hard = line
        .and_then(|line| line.split_whitespace().nth(1))
        .ok_or_else(|| Unknown::because("the limits name no open files"))?;
    let Ok(hard) = hard.parse::<u64>() else { return Ok(vec![Told::ok(display_bytes(hard.as_bytes()).to_string())]) };
    if hard >= OPEN_FILES {
        return Ok(vec![Told::ok(hard.to_string())]);
    }
    // The program raises its own limit to the hard one.
    let told = if hard < OPEN_FILES_LEAST { Told::failure(hard.to_string()) } else { Told::warning(hard.to_string()) };
    let told = told.costs(format!("no more than {hard} streams and files at once, of all that a session has open"));
    Ok(vec![told.command(
        "echo '* hard nofile 1048576' > /etc/security/limits.d/90-nofile.conf   # for a service: LimitNOFILE=1048576",
    )])
}

/// Longer look-ups have asked a server that did not answer.
const NAMED: Duration = Duration::from_secs(1);

fn names(view: &View<'_>) -> Known<Vec<Told>> {
    // Nobody was named, or the host has no program that asks.
    if view.facts.evidence().get("names/peer").is_none() || view.facts.if_any("names/peer")?.is_none() {
        return Ok(Vec::new());
    }
    let took = Duration::from_micros(view.facts.line_number("names/peer", "answered-us")?);
    let value = format!("after {}", units::time(took));
    // Only root may ask the server, and by its default it does not ask either.
    let asks = view.facts.line("command/sshd -T", "usedns") == Ok("yes");
    if took < NAMED {
        return Ok(vec![Told::ok(value)]);
    }
    if !asks {
        return Ok(vec![Told::ok(format!("{value}, and nobody is known to ask"))]);
    }
    let told = Told::warning(value).costs("each login begins so much later");
    Ok(vec![told.advice("UseDNS no in sshd_config; or is each name server in /etc/resolv.conf there?")])
}

/// The release from which on a fast interface is used well.
const KERNEL: (u32, u32) = (6, 8);

fn kernel(view: &View<'_>) -> Known<Vec<Told>> {
    let release = view.facts.text("proc/sys/kernel/osrelease")?;
    let shown = display_bytes(release.as_bytes()).to_string();
    let mut numbers = release.split(|one: char| !one.is_ascii_digit()).map(|word| word.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else {
        return Err(Unknown::because(format!("the kernel is called {shown}")));
    };
    if (major, minor) >= KERNEL || view.facts.carrier()?.speed()? < FAST {
        return Ok(vec![Told::ok(shown)]);
    }
    Ok(vec![
        Told::warning(shown)
            .costs("up to a third of the rate")
            .advice("update the kernel, and measure before and after"),
    ])
}

fn iommu(view: &View<'_>) -> Known<Vec<Told>> {
    let carrier = view.facts.carrier()?;
    if carrier.speed()? < FASTEST {
        return Ok(Vec::new());
    }
    let line = view.facts.text("proc/cmdline")?;
    let units = view.facts.text("sys/class/iommu")?;
    let has = |word: &str| line.split_whitespace().any(|one| one == word);
    let passes = has("iommu=pt") || has("iommu=off") || has("intel_iommu=off") || has("amd_iommu=off");
    let identity = carrier.text("device/iommu_group/type").is_ok_and(|kind| kind == "identity");
    if units.is_empty() || passes || identity {
        return Ok(vec![Told::ok(if units.is_empty() { "off" } else { "packets pass it by" })]);
    }
    let told = Told::warning("on, and it maps the memory of each packet");
    Ok(vec![
        told.costs("several percent of a processor core for each 10 Gb/s")
            .advice("add iommu=pt to the kernel's command line by hand, and start the host again"),
    ])
}
