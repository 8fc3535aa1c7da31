//! The host as it was when something was measured: what explains why next month's numbers are others.

use std::path::Path;

use carrack_core::path::display_bytes;

use crate::residency;

/// Settings of TCP that decide how fast one connection can be.
const TCP: [&str; 9] = [
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/default_qdisc",
    "net/ipv4/tcp_mtu_probing",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/core/netdev_max_backlog",
];

/// Settings of memory that decide when written pages reach the disk.
const MEMORY: [&str; 5] =
    ["vm/dirty_ratio", "vm/dirty_bytes", "vm/dirty_background_ratio", "vm/dirty_background_bytes", "vm/swappiness"];

/// Settings of a disk's queue.
const QUEUE: [&str; 8] = [
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "rotational",
    "write_cache",
    "max_sectors_kb",
    "logical_block_size",
    "nomerges",
];

/// A list of facts: names and values, printable, unknown ones left out.
#[derive(Clone, Debug, Default)]
pub struct Facts(pub Vec<(String, String)>);

impl Facts {
    fn put(&mut self, name: impl Into<String>, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            let value = value.as_ref().split_whitespace().collect::<Vec<_>>().join(" ");
            if !value.is_empty() {
                self.0.push((name.into(), display_bytes(value.as_bytes()).to_string()));
            }
        }
    }

    fn put_file(&mut self, name: impl Into<String>, path: impl AsRef<Path>) {
        self.put(name, std::fs::read_to_string(path).ok());
    }
}

/// Facts of every measurement: system, processors, memory, TCP.
pub fn host() -> Facts {
    let mut facts = Facts::default();
    facts.put_file("host", "/proc/sys/kernel/hostname");
    facts.put_file("kernel", "/proc/sys/kernel/osrelease");
    facts.put("system", os_name());
    processors(&mut facts);
    facts.put("memory_bytes", Some(residency::memory_bytes().to_string()));
    facts.put("transparent_hugepage", chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")));
    facts.put("load", read("/proc/loadavg").split(' ').next());
    for name in MEMORY {
        facts.put_file(name.replace('/', "."), format!("/proc/sys/{name}"));
    }
    for name in TCP {
        facts.put_file(name.replace('/', "."), format!("/proc/sys/{name}"));
    }
    facts
}

fn processors(facts: &mut Facts) {
    let info = read("/proc/cpuinfo");
    let field = |wanted: &str| {
        info.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == wanted).map(|(_, v)| v))
    };
    facts.put("processor", field("model name"));
    facts.put("processors", Some(carrack_sys::host::cpu_count().to_string()));
    let cpufreq = "/sys/devices/system/cpu/cpu0/cpufreq";
    facts.put_file("governor", format!("{cpufreq}/scaling_governor"));
    facts.put_file("max_khz", format!("{cpufreq}/scaling_max_freq"));
    facts.put_file("no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo");
    facts.put_file("boost", "/sys/devices/system/cpu/cpufreq/boost");
    facts.put_file("smt", "/sys/devices/system/cpu/smt/active");
    let virtual_machine = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    facts.put("virtual_machine", virtual_machine.then_some("yes"));
    facts.put("aes", Some(if carrack_sys::host::has_aes() { "yes" } else { "no" }));
}

fn os_name() -> Option<String> {
    let release = read("/etc/os-release");
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// `MAJOR:MINOR` of its device.
    pub device: String,
    /// Where it is mounted.
    pub point: String,
    /// Its kind: `ext4`, `xfs`, `zfs`, …
    pub kind: String,
    /// What is mounted: a device, a pool, a server's directory.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: String,
}

/// The mount that a directory lies on: of the same device, the last one whose point is above the directory's real
/// path.
pub fn mount_of(directory: &Path) -> Option<Mount> {
    let real = directory.canonicalize().ok()?;
    let mounts = read("/proc/self/mountinfo");
    let all = mounts.lines().filter_map(parse_mount);
    // A later mount on the same point hides an earlier one.
    all.filter(|mount| real.starts_with(&mount.point)).max_by_key(|mount| mount.point.len())
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.split(' ');
    let (kind, source) = (right.next()?, right.next()?);
    let own = left.get(5)?;
    let options = right.next().map_or((*own).to_owned(), |more| format!("{own};{more}"));
    Some(Mount {
        device: (*left.get(2)?).to_owned(),
        point: unescape(left.get(4)?),
        kind: kind.to_owned(),
        source: unescape(source),
        options,
    })
}

/// The kernel writes space, tab, line feed and backslash as `\040` and so on.
fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    for (code, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        plain = plain.replace(code, character);
    }
    plain
}

/// Facts of the storage that a directory lies on.
pub fn storage(directory: &Path) -> Facts {
    let mut facts = Facts::default();
    let Some(mount) = mount_of(directory) else { return facts };
    facts.put("mount.kind", Some(&mount.kind));
    facts.put("mount.source", Some(&mount.source));
    facts.put("mount.point", Some(&mount.point));
    facts.put("mount.options", Some(&mount.options));
    let mut device = format!("/sys/dev/block/{}", mount.device);
    if !Path::new(&device).exists() {
        // btrfs has a number of its own.
        device = format!("/sys/class/block/{}", mount.source.rsplit('/').next().unwrap_or_default());
    }
    // A partition has the queue of its disk.
    let disk = if Path::new(&device).join("queue").exists() { device } else { format!("{device}/..") };
    for name in QUEUE {
        let text = read(format!("{disk}/queue/{name}"));
        facts.put(format!("disk.{name}"), Some(chosen(&text).unwrap_or(&text)));
    }
    facts.put_file("disk.model", format!("{disk}/device/model"));
    facts.put_file("disk.sectors", format!("{disk}/size"));
    facts.put_file("disk.loop_file", format!("{disk}/loop/backing_file"));
    facts.put_file("disk.loop_direct", format!("{disk}/loop/dio"));
    facts.put_file("disk.raid", format!("{disk}/md/level"));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_the_kernel_writes_them() {
        let line = r"36 35 98:0 /mnt1 /my\040disk rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
        let expected = Mount {
            device: "98:0".into(),
            point: "/my disk".into(),
            kind: "ext3".into(),
            source: "/dev/root".into(),
            options: "rw,noatime;rw,errors=continue".into(),
        };
        assert_eq!(parse_mount(line), Some(expected));
        assert_eq!(parse_mount("36 35 98:0 / / rw"), None);
        assert!(mount_of(Path::new("/proc/self")).is_some_and(|mount| mount.kind == "proc"));
    }

    #[test]
    fn facts_are_printable_and_named_once() {
        let mut all = host().0;
        all.extend(storage(Path::new("/")).0);
        let mut names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
        assert!(names.iter().any(|name| *name == "kernel") && names.iter().any(|name| *name == "mount.kind"));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|(_, value)| !value.is_empty() && !value.contains('\n')));
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
    }
}
