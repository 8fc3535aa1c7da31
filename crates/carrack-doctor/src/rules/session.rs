//! What the session on a host may have: processes, memory, processor time. Its open files are a rule of `hosts`.

use super::{Check, Limit, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::{Kernel, Ours};
use crate::known::{Known, Unknown};
use crate::units;
use carrack_core::path::display_bytes;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "session.processes",
        threshold: Threshold::of("{} processes and threads, or no limit", &[Limit::Count(PROCESSES)]),
        reason: "each stream is a thread, and the user's other sessions count as well",
        source: "getrlimit(2), kernel admin-guide/cgroup-v2",
        class: Kernel,
        check: Check::Host(processes),
    },
    Rule {
        id: "session.memory",
        threshold: Threshold::of("{}, or no limit", &[Limit::Bytes(MEMORY)]),
        reason: "buffers of sockets and dirty pages of a session count, too; what is beyond is killed",
        source: "kernel, admin-guide/cgroup-v2",
        class: Ours,
        check: Check::Host(memory),
    },
    Rule {
        id: "session.processor-quota",
        threshold: Threshold::plain("none"),
        reason: "a group that has used its quota stands still until the next period, with all its streams",
        source: "kernel, admin-guide/cgroup-v2",
        class: Kernel,
        check: Check::Host(quota),
    },
    Rule {
        id: "session.unit",
        threshold: Threshold::of(
            "LimitNOFILE of {}, TasksMax of {}, no MemoryMax and no CPUQuota",
            &[Limit::Count(FILES), Limit::Count(PROCESSES)],
        ),
        reason: "a node started by systemd has the limits of its unit, not those of a login",
        source: "systemd.exec(5), systemd.resource-control(5)",
        class: Kernel,
        check: Check::Host(unit),
    },
];

const PROCESSES: u64 = 4096;
/// Streams of two copies, and what a session has beside them.
const PROCESSES_LEAST: u64 = 256;

/// Bytes of memory for a session, and what holds up any copy.
const MEMORY: u64 = 4 << 30;
const MEMORY_LEAST: u64 = 256 << 20;
/// Open files of a node.
const FILES: u64 = 65_536;

fn processes(view: &View<'_>) -> Known<Vec<Told>> {
    let (soft, _) = view.facts.session_limit("Max processes")?;
    let group = view.facts.group_limit(&["pids.max"])?;
    let limit = match (soft, group) {
        (Some(soft), Some((group, name))) if group < soft => (group, format!("/{name}/pids.max")),
        (Some(soft), _) => (soft, "ulimit -u".to_owned()),
        (None, Some((group, name))) => (group, format!("/{name}/pids.max")),
        (None, None) => return Ok(vec![Told::ok("no limit")]),
    };
    let value = format!("{} ({})", limit.0, display_bytes(limit.1.as_bytes()));
    if limit.0 >= PROCESSES {
        return Ok(vec![Told::ok(value)]);
    }
    let told = if limit.0 < PROCESSES_LEAST { Told::failure(value) } else { Told::warning(value) };
    let told = told.costs("streams that cannot be started, and \"Resource temporarily unavailable\"");
    Ok(vec![match limit.1.as_str() {
        "ulimit -u" => told.command("echo '* hard nproc 65536' > /etc/security/limits.d/90-nproc.conf"),
        _ => told.advice("raise TasksMax of the unit or slice that this session is in"),
    }])
}

fn memory(view: &View<'_>) -> Known<Vec<Told>> {
    let limit = view.facts.group_limit(&["memory.max", "memory.high", "memory.limit_in_bytes"])?;
    let Some((bytes, group)) = limit else { return Ok(vec![Told::ok("no limit")]) };
    let value = format!("{} ({})", units::bytes(bytes as f64), display_bytes(format!("/{group}").as_bytes()));
    if bytes >= MEMORY {
        return Ok(vec![Told::ok(value)]);
    }
    let told = if bytes < MEMORY_LEAST { Told::failure(value) } else { Told::warning(value) };
    let told = told.costs("large windows on many streams end in a kill, or in writes that wait for the disk");
    Ok(vec![told.advice("raise MemoryMax of the unit, or the memory of the container")])
}

fn quota(view: &View<'_>) -> Known<Vec<Told>> {
    // Without a look at the groups nobody can say that there is no quota.
    view.facts.text("proc/self/cgroup")?;
    let unified = view.facts.groups("cpu.max").into_iter().filter_map(|(group, text)| {
        let (quota, period) = text.split_once(' ')?;
        Some((quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?, group))
    });
    let old = view.facts.groups("cpu.cfs_quota_us").into_iter().filter_map(|(group, quota)| {
        let periods = view.facts.groups("cpu.cfs_period_us");
        let (_, period) = periods.into_iter().find(|(known, _)| *known == group)?;
        Some((quota.parse::<f64>().ok().filter(|quota| *quota > 0.0)? / period.parse::<f64>().ok()?, group))
    });
    let least = unified.chain(old).filter(|(cores, _)| cores.is_finite()).min_by(|a, b| a.0.total_cmp(&b.0));
    let Some((cores, group)) = least else { return Ok(vec![Told::ok("none")]) };
    let value = format!("{cores:.1} processors ({})", display_bytes(format!("/{group}").as_bytes()));
    if view.facts.processors().is_ok_and(|all| cores >= all as f64) {
        return Ok(vec![Told::ok(value)]);
    }
    let told =
        Told::warning(value).costs("streams stand still for up to 100 ms at a time, as if the path had lost packets");
    Ok(vec![told.advice("remove CPUQuota of the unit, or the processor limit of the container")])
}

fn unit(view: &View<'_>) -> Known<Vec<Told>> {
    // Nobody asks systemd where there is no such unit.
    let Some(text) =
        view.facts.evidence().get("command/systemctl show").map(|_| view.facts.text("command/systemctl show"))
    else {
        return Ok(Vec::new());
    };
    let text = text?;
    let value = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.ok_or_else(|| Unknown::because(format!("systemctl tells no {name}")))
    };
    let mut all = Vec::new();
    let told = |name: &str, value: &str, cost: &str| {
        let value = format!("{name} is {}", display_bytes(value.as_bytes()));
        Told::warning(value).about("carrack.service").costs(cost)
    };
    let files = value("LimitNOFILE")?;
    if files.parse::<u64>().is_ok_and(|files| files < FILES) {
        let told = told("LimitNOFILE", files, "no more streams and files at once than that");
        all.push(told.advice("systemctl edit carrack.service, and there: [Service] LimitNOFILE=1048576"));
    }
    for (name, none, cost) in [
        ("MemoryMax", "infinity", "a node that needs more is killed, with all its copies"),
        ("CPUQuotaPerSecUSec", "infinity", "streams stand still for up to 100 ms at a time"),
    ] {
        let own = value(name)?;
        if own != none {
            let property = if name == "MemoryMax" { "MemoryMax=infinity" } else { "CPUQuota=" };
            all.push(told(name, own, cost).command(format!("systemctl set-property carrack.service {property}")));
        }
    }
    let tasks = value("TasksMax")?;
    if tasks.parse::<u64>().is_ok_and(|tasks| tasks < PROCESSES) {
        let told = told("TasksMax", tasks, "streams that cannot be started");
        all.push(told.command("systemctl set-property carrack.service TasksMax=16384"));
    }
    if all.is_empty() {
        all.push(Told::ok("no limit that holds a node back").about("carrack.service"));
    }
    Ok(all)
}
