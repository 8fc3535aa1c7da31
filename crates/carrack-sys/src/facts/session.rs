//! What the session that asks may have: its control groups, and the limits of a service of ours on this host.

use std::process::Command;

use super::programs::run;
use super::{About, FactText, Gatherer};

/// Files of a group, by the controller that has them in version 1; version 2 has all in one directory.
const FILES: &[(&str, &[&str])] = &[
    ("memory", &["memory.max", "memory.high", "memory.current", "memory.limit_in_bytes", "memory.usage_in_bytes"]),
    ("cpu", &["cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"]),
    ("pids", &["pids.max", "pids.current"]),
];
/// Groups around a process are nested a few deep.
const DEPTH: usize = 16;
/// Where units of systemd lie.
const UNITS: &[&str] = &["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];
/// The unit of a node, as docs/node.md names it.
const UNIT: &str = "carrack.service";
const PROPERTIES: &str = "LimitNOFILE,LimitNPROC,MemoryMax,MemoryHigh,CPUQuotaPerSecUSec,TasksMax,ActiveState";

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    facts.file("proc/self/cgroup");
    let groups = facts.read("proc/self/cgroup").unwrap_or_default();
    for (controller, files) in FILES {
        for directory in directories(facts, &groups, controller) {
            for file in *files {
                // Of two versions only one has it; the group at the top has no limits.
                let name = format!("{directory}/{file}");
                if let Ok(text) = facts.read(&name) {
                    facts.put(name, FactText::Found(text));
                }
            }
        }
    }
    let has_unit = UNITS.iter().any(|place| facts.root.join(place).join(UNIT).exists());
    if has_unit && facts.is_host() {
        let told = run(Command::new("systemctl").args(["show", UNIT, "-p", PROPERTIES]));
        facts.put("command/systemctl show", told);
    }
}

/// The group of this process under a controller, and those around it, as directories that are there.
fn directories(facts: &Gatherer, groups: &str, controller: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let roots: &[&str] = match controllers {
            "" => &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
            _ if controllers.split(',').any(|name| name == controller) => &["sys/fs/cgroup"],
            _ => continue,
        };
        let sub = if controllers.is_empty() { String::new() } else { format!("/{controller}") };
        for root in roots {
            // Seen from inside a container the path may lead nowhere, and what is mounted is the group itself.
            let root = format!("{root}{sub}");
            let own = path.trim_end_matches('/');
            let is_there = |group: &str| facts.root.join(format!("{root}{group}")).is_dir();
            let mut around = Some(if is_there(own) { own } else { "" });
            while let Some(group) = around.filter(|group| found.len() < DEPTH && is_there(group)) {
                found.push(format!("{root}{group}"));
                around = group.rsplit_once('/').map(|(outer, _)| outer);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::put;

    #[test]
    fn limits_of_own_and_outer_groups_are_told_in_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        put(root, "proc/self/cgroup", "4:memory:/outer/own\n1:cpu,cpuacct:/\n0::/user.slice/session-3.scope\n");
        put(root, "sys/fs/cgroup/memory/outer/own/memory.limit_in_bytes", "1000\n");
        put(root, "sys/fs/cgroup/memory/outer/memory.limit_in_bytes", "500\n");
        put(root, "sys/fs/cgroup/user.slice/session-3.scope/pids.max", "max\n");
        put(root, "sys/fs/cgroup/user.slice/pids.max", "4096\n");
        let mut facts = Gatherer::at(root);
        gather(&mut facts, About::default());
        let told =
            |name: &str| facts.texts.iter().any(|(known, text)| known == name && matches!(text, FactText::Found(_)));
        for name in [
            "sys/fs/cgroup/memory/outer/own/memory.limit_in_bytes",
            "sys/fs/cgroup/memory/outer/memory.limit_in_bytes",
            "sys/fs/cgroup/user.slice/session-3.scope/pids.max",
            "sys/fs/cgroup/user.slice/pids.max",
        ] {
            assert!(told(name), "{name}: {:?}", facts.texts);
        }
        // In a container the path of the whole system leads nowhere.
        put(root, "proc/self/cgroup", "0::/docker/abc\n");
        put(root, "sys/fs/cgroup/cpu.max", "200000 100000\n");
        let mut facts = Gatherer::at(root);
        gather(&mut facts, About::default());
        let text = facts.texts.iter().find(|(name, _)| name == "sys/fs/cgroup/cpu.max");
        assert_eq!(text.map(|(_, text)| text.clone()), Some(FactText::Found("200000 100000\n".into())));
    }
}
