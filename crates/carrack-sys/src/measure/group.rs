//! Pressure stall information, and the control groups of this process.

use std::time::Duration;

use super::{field, read};

/// Time in which some tasks, or all of them, could not go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some waited for a processor.
    pub cpu_some: Duration,
    /// Some waited for a disk.
    pub io_some: Duration,
    /// All waited for a disk.
    pub io_full: Duration,
    /// Some waited for memory.
    pub memory_some: Duration,
    /// All waited for memory.
    pub memory_full: Duration,
}

/// How control groups held their processes back from the processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Periods in which a group had used its quota up.
    pub periods: u64,
    /// Time that it was held back.
    pub time: Duration,
}

/// Of the whole host; zeros where it does not say.
pub fn pressure() -> Pressure {
    pressure_of(|kind| read(&format!("/proc/pressure/{kind}")))
}

fn pressure_of(text: impl Fn(&str) -> Option<String>) -> Pressure {
    let [cpu, io, memory] = ["cpu", "io", "memory"].map(|kind| text(kind).unwrap_or_default());
    Pressure {
        cpu_some: stalled(&cpu, "some"),
        io_some: stalled(&io, "some"),
        io_full: stalled(&io, "full"),
        memory_some: stalled(&memory, "some"),
        memory_full: stalled(&memory, "full"),
    }
}

/// Lines such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, in microseconds.
fn stalled(text: &str, who: &str) -> Duration {
    let line = text.lines().find_map(|line| line.strip_prefix(who)?.strip_prefix(' '));
    let total = line.and_then(|line| line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total=")));
    Duration::from_micros(total.and_then(|total| total.parse().ok()).unwrap_or(0))
}

/// Where the control groups of this process tell of themselves. A process is moved rarely: it is looked for once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPaths {
    /// Of version 2, with its pressure.
    unified: Option<String>,
    /// Directories with a `cpu.stat`, the process's own group and those around it.
    processors: Vec<String>,
    /// Directories with a limit of memory, likewise.
    memory: Vec<String>,
}

/// Groups around a process that are asked: they are nested a few deep.
const DEPTH: usize = 16;

impl GroupPaths {
    /// Those of this process.
    pub fn find() -> Self {
        let exists = |path: &str| std::path::Path::new(path).is_dir();
        Self::parse(&read("/proc/self/cgroup").unwrap_or_default(), exists)
    }

    /// Lines of `number:controllers:path`; the one without controllers is version 2.
    fn parse(text: &str, exists: impl Fn(&str) -> bool) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
            let controls = |wanted: &str| controllers.split(',').any(|name| name == wanted);
            let roots: &[&str] = match controllers {
                "" => &["/sys/fs/cgroup/unified", "/sys/fs/cgroup"],
                _ if controls("cpu") => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
                _ if controls("memory") => &["/sys/fs/cgroup/memory"],
                _ => continue,
            };
            // The path is one of the whole system. Seen from inside a container it may lead nowhere, and what is
            // mounted is then the group itself.
            let path = path.trim_end_matches('/');
            let root = roots.iter().find(|root| exists(root));
            let Some(root) = root else { continue };
            let path = if exists(&format!("{root}{path}")) { path } else { "" };
            if controllers.is_empty() {
                found.unified = Some(format!("{root}{path}"));
            }
            for (list, wanted) in [(&mut found.processors, "cpu"), (&mut found.memory, "memory")] {
                let mut around = Some(path).filter(|_| controllers.is_empty() || controls(wanted));
                while let Some(group) = around.filter(|_| list.len() < DEPTH) {
                    list.push(format!("{root}{group}"));
                    around = group.rsplit_once('/').map(|(outer, _)| outer);
                }
            }
        }
        found
    }

    /// Bytes of memory that the process's own group and those around it allow; `None` where there is no limit.
    pub fn memory_limit(&self) -> Option<u64> {
        // Version 1 has a number without a limit, too: more than any host has.
        let limit = |group: &String| {
            ["memory.max", "memory.limit_in_bytes"].iter().find_map(|name| bytes(&read(&format!("{group}/{name}"))?))
        };
        self.memory.iter().filter_map(limit).min()
    }

    /// Of the process's own group; zeros where it does not say.
    pub fn pressure(&self) -> Pressure {
        let Some(group) = &self.unified else { return Pressure::default() };
        pressure_of(|kind| read(&format!("{group}/{kind}.pressure")))
    }

    /// Of the process's own group and those around it, summed; zeros where they do not say.
    pub fn throttled(&self) -> Throttled {
        let each = self.processors.iter().filter_map(|group| read(&format!("{group}/cpu.stat")));
        each.map(|text| throttled(&text)).fold(Throttled::default(), |sum, one| Throttled {
            periods: sum.periods.saturating_add(one.periods),
            time: sum.time.saturating_add(one.time),
        })
    }
}

/// A number of bytes; none of `max`.
fn bytes(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Version 2 tells microseconds, version 1 nanoseconds.
fn throttled(text: &str) -> Throttled {
    let micros = field(text, "throttled_usec").map(Duration::from_micros);
    let time = micros.or_else(|| field(text, "throttled_time").map(Duration::from_nanos));
    Throttled { periods: field(text, "nr_throttled").unwrap_or(0), time: time.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_read() {
        let text =
            "some avg10=1.00 avg60=0.50 avg300=0.10 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let found = pressure_of(|kind| (kind != "memory").then(|| text.to_owned()));
        assert_eq!((found.cpu_some, found.io_full), (Duration::from_micros(123_456), Duration::from_micros(7)));
        assert_eq!(found.memory_some, Duration::ZERO);
        for wrong in ["", "some", "some total", "some total=x", "someone total=5"] {
            assert_eq!(stalled(wrong, "some"), Duration::ZERO, "{wrong:?}");
        }
    }

    #[test]
    fn groups_are_found_in_both_versions_and_in_containers() {
        let two = GroupPaths::parse("0::/user.slice/a.scope\n", |path| path.starts_with("/sys/fs/cgroup"));
        // Where version 2 is mounted beside version 1, it is preferred.
        assert_eq!(two.unified.as_deref(), Some("/sys/fs/cgroup/unified/user.slice/a.scope"));
        let whole = |path: &str| path.starts_with("/sys/fs/cgroup") && !path.contains("unified");
        let two = GroupPaths::parse("0::/user.slice/a.scope\n", whole);
        let around = ["/user.slice/a.scope", "/user.slice", ""].map(|group| format!("/sys/fs/cgroup{group}"));
        assert_eq!((two.unified.as_deref(), &two.processors[..]), (Some(&around[0][..]), &around[..]));
        let one = GroupPaths::parse("3:cpu,cpuacct:/docker/x\n2:cpuset:/\nnonsense\n", |path| {
            path == "/sys/fs/cgroup/cpu,cpuacct"
        });
        assert_eq!((one.unified, one.processors), (None, vec!["/sys/fs/cgroup/cpu,cpuacct".to_owned()]));
        assert_eq!((&two.memory[..], one.memory.len()), (&around[..], 0));
        let one = GroupPaths::parse("4:memory:/docker/x\n3:cpu,cpuacct:/\n", |path| !path.contains("unified"));
        let around = ["/docker/x", "/docker", ""].map(|group| format!("/sys/fs/cgroup/memory{group}"));
        assert_eq!((&one.memory[..], one.processors.len()), (&around[..], 1));
        assert_eq!(GroupPaths::parse("0::/\n", |_| false), GroupPaths::default());
        let deep = format!("0::{}\n", "/a".repeat(1000));
        assert_eq!(GroupPaths::parse(&deep, whole).processors.len(), DEPTH);
    }

    #[test]
    fn throttling_is_read_in_both_versions() {
        let two = throttled("usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1500\n");
        assert_eq!(two, Throttled { periods: 4, time: Duration::from_micros(1500) });
        let one = throttled("nr_periods 9\nnr_throttled 4\nthrottled_time 1500\n");
        assert_eq!(one, Throttled { periods: 4, time: Duration::from_nanos(1500) });
        assert_eq!(throttled(""), Throttled::default());
    }

    #[test]
    fn limits_of_memory_are_read() {
        for (text, expected) in [("4096\n", Some(4096)), ("max\n", None), ("", None), ("-1\n", None)] {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn groups_of_this_process_answer() {
        let groups = GroupPaths::find();
        assert!(groups.memory_limit().is_none_or(|limit| limit > 1 << 20));
        let (first, second) = (groups.throttled(), groups.throttled());
        assert!(second.periods >= first.periods && groups.pressure().io_some >= groups.pressure().io_full);
        assert!(pressure().io_some >= pressure().io_full);
    }
}
