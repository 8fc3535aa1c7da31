//! What sets kernel parameters at the next boot, and what changes them meanwhile: the files of sysctl, tuned, bpftune.

use std::collections::BTreeSet;

use super::{About, FactText, Gatherer};

/// Directories of files, as sysctl.d(5) has them: a file in an earlier one hides a file of the same name in a later.
const DIRECTORIES: &[&str] =
    &["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"];
/// Read by `sysctl --system`, and by systemd where a link in a directory above leads to it.
const LAST: &str = "etc/sysctl.conf";
/// Is there where systemd has started the host.
const SYSTEMD: &str = "run/systemd/system";
/// Where tuned keeps profiles.
const PROFILES: &[&str] = &["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];
/// Programs that change a host's settings while it runs.
const PROGRAMS: &[&str] = &["tuned", "bpftune", "irqbalance"];
/// Parameters whose value now is told beside that of a file.
const PARAMETERS: usize = 256;
/// Profiles include others.
const INCLUDED: usize = 8;
const PROCESSES: usize = 100_000;

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    let mut files = vec![LAST.to_owned()];
    for directory in DIRECTORIES {
        // On most systems /lib is a link to /usr/lib.
        let same = facts.root.join(directory).canonicalize().ok();
        if *directory == "lib/sysctl.d" && same == facts.root.join("usr/lib/sysctl.d").canonicalize().ok() {
            continue;
        }
        let names = facts.entries(directory);
        files
            .extend(names.into_iter().filter(|name| name.ends_with(".conf")).map(|name| format!("{directory}/{name}")));
    }
    let mut names = BTreeSet::new();
    for file in &files {
        let text = facts.read(file);
        names.extend(text.iter().flat_map(|text| text.lines()).filter_map(parameter));
        facts.put(file.clone(), text);
    }
    for name in names.into_iter().take(PARAMETERS) {
        facts.file_once(&format!("proc/sys/{name}"));
    }
    let systemd = std::fs::metadata(facts.root.join(SYSTEMD)).map(|_| String::new());
    facts.put(SYSTEMD, systemd);
    tuned(facts);
    programs(facts);
}

/// The path below `/proc/sys` of a parameter of the network or of memory that a line sets.
fn parameter(line: &str) -> Option<String> {
    let name = line.trim().trim_start_matches('-').split('=').next()?.trim().replace('.', "/");
    let plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['*', '?', '[', '#', ';']);
    let is_name = name.split('/').all(plain);
    (is_name && (name.starts_with("net/core/") || name.starts_with("net/ipv4/tcp_") || name.starts_with("vm/")))
        .then_some(name)
}

/// The profile in force, and those that it includes.
fn tuned(facts: &mut Gatherer) {
    facts.file("etc/tuned/active_profile");
    facts.file("etc/tuned/tuned-main.conf");
    let active = facts.read("etc/tuned/active_profile").unwrap_or_default();
    let mut wanted: Vec<String> = active.split_whitespace().map(str::to_owned).collect();
    let mut at = 0;
    while at < wanted.len().min(INCLUDED) {
        let name = wanted[at].clone();
        at += 1;
        if name.contains('/') || name.starts_with('.') {
            continue;
        }
        let places = PROFILES.iter().map(|place| format!("{place}/{name}/tuned.conf"));
        let found = places.filter_map(|place| facts.read(&place).ok()).next();
        let Some(text) = found else { continue };
        let included = text.lines().find_map(|line| line.trim().strip_prefix("include=")).unwrap_or_default();
        wanted.extend(included.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()));
        facts.put(format!("tuned/{at}/{name}"), FactText::Found(text));
    }
}

fn programs(facts: &mut Gatherer) {
    let mut found: Vec<Option<String>> = vec![None; PROGRAMS.len()];
    let listed = std::fs::read_dir(facts.root.join("proc"));
    let Ok(listed) = listed else {
        return PROGRAMS.iter().for_each(|name| {
            facts.put(format!("process/{name}"), FactText::Failed("nobody tells which programs run".to_owned()));
        });
    };
    for entry in listed.flatten().take(PROCESSES) {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let command = facts.read(&format!("proc/{number}/comm")).unwrap_or_default();
        if let Some(at) = PROGRAMS.iter().position(|name| *name == command.trim()) {
            found[at] = Some(number.to_string());
        }
    }
    for (name, number) in PROGRAMS.iter().zip(found) {
        facts.put(format!("process/{name}"), number.map_or(FactText::Absent, FactText::Found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::put;

    #[test]
    fn files_of_sysctl_their_parameters_profiles_and_programs_are_told() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        put(
            root,
            "etc/sysctl.d/10-net.conf",
            "# net.core.x = 1\n-net.ipv4.tcp_rmem = 1 2 3\nnet.ipv4.conf.*.rp_filter=1\n",
        );
        put(root, "usr/lib/sysctl.d/50-vm.conf", "vm/dirty_bytes=5\nkernel.core_pattern=|x\nnet.core.../x=1\n");
        put(root, "etc/sysctl.d/README", "net.core.y=1\n");
        put(root, "proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456\n");
        put(root, "proc/sys/vm/dirty_bytes", "0\n");
        put(root, "proc/17/comm", "bpftune\n");
        std::fs::create_dir_all(root.join("run/systemd/system")).unwrap();
        put(root, "etc/tuned/active_profile", "network-throughput\n");
        put(root, "usr/lib/tuned/profiles/network-throughput/tuned.conf", "[main]\ninclude=throughput\n");
        put(root, "usr/lib/tuned/throughput/tuned.conf", "[sysctl]\nvm.dirty_ratio=40\n");
        let mut facts = Gatherer::at(root);
        facts.file("proc/sys/vm/dirty_bytes");
        gather(&mut facts, About::default());
        let names: Vec<&str> = facts.texts.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["etc/sysctl.d/10-net.conf", "usr/lib/sysctl.d/50-vm.conf", "etc/sysctl.conf", "tuned/2/throughput"]
        {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        let asked: Vec<&&str> = names.iter().filter(|name| name.starts_with("proc/sys/")).collect();
        assert_eq!(asked, [&"proc/sys/vm/dirty_bytes", &"proc/sys/net/ipv4/tcp_rmem"]);
        let text = |name: &str| facts.texts.iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(text("process/bpftune"), FactText::Found("17".into()));
        assert_eq!((text("process/tuned"), text("etc/sysctl.conf")), (FactText::Absent, FactText::Absent));
        assert_eq!(text("run/systemd/system"), FactText::Found(String::new()));
    }
}
