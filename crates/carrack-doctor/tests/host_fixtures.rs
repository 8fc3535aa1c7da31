//! The rules about storage, processors, sessions and settings on hosts that others have described, or that were
//! recorded.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/told.rs"]
mod told;

use std::time::Duration;

use carrack_core::evidence::EvidenceText;
use carrack_doctor::{Finding, Fix, Host, HostSide, Path, Severity, Situation, Wish, diagnose};

use support::host;
use told::{line, of, one, with};

#[test]
fn fiona_without_checksums_and_a_node_with_four_links_are_told_apart() {
    let near =
        with(host("fiona-zfs"), &[("measured/storage/write", "1480000000"), ("measured/storage/read", "3530000000")]);
    let found = diagnose(&Situation { far: Some(host("dtn-bond4")), ..Situation::of(near) });
    let (near, far) = (HostSide::Near, HostSide::Far);
    let checksum = one(&found, near, "zfs.checksum");
    assert_eq!((checksum.severity, checksum.subject.as_str()), (Severity::Failure, "bigdata"));
    assert!(line(checksum).starts_with("zfs set checksum=on bigdata"));
    let fine = [
        "zfs.record",
        "zfs.atime",
        "zfs.ashift",
        "storage.room",
        "storage.inodes",
        "storage.barriers",
        "storage.atime",
    ];
    for rule in fine {
        assert_eq!(one(&found, near, rule).severity, Severity::Ok, "{rule}");
    }
    assert_eq!(one(&found, near, "zfs.pool").value, "ONLINE: 2 x raidz1");
    // 40 Gb/s are 5 GB/s: what bonnie++ measured there is less, each way.
    let write = one(&found, near, "storage.write-rate");
    assert_eq!(
        (write.severity, write.cost.as_str()),
        (Severity::Warning, "copies write no more than 1.5 GB/s of the network's 5 GB/s")
    );
    assert_eq!(one(&found, near, "storage.read-rate").severity, Severity::Warning);
    // The bond hashes by ports, which is right; one stripe is what held its file system back.
    assert_eq!(one(&found, far, "interface.bond").severity, Severity::Ok);
    let stripes = one(&found, far, "lustre.stripes");
    assert_eq!((stripes.severity, stripes.value.as_str()), (Severity::Warning, "1 stripes"));
    assert!(line(stripes).starts_with("lfs setstripe -c 4 /global/cscratch1"));
    assert!(of(&found, far, "zfs.pool").is_empty() && of(&found, near, "lustre.stripes").is_empty());
    // What nobody printed is not known.
    for rule in ["processor.governor", "clock.synchronised", "hardware.log", "session.memory"] {
        assert_eq!(one(&found, near, rule).severity, Severity::Unknown, "{rule}");
    }
}

#[test]
fn virtual_machine_is_told_what_it_has_and_what_nobody_can_know() {
    let found = diagnose(&Situation::of(host("vm")));
    let near = HostSide::Near;
    let clock = one(&found, near, "clock.synchronised");
    assert_eq!((clock.severity, line(clock).starts_with("systemctl enable --now chronyd")), (Severity::Warning, true));
    let inodes = one(&found, near, "storage.inodes");
    assert_eq!((inodes.severity, inodes.subject.as_str()), (Severity::Ok, "/var/tmp"));
    // 15 GiB of 252.
    let room = one(&found, near, "storage.room");
    assert_eq!((room.severity, room.value.as_str()), (Severity::Warning, "15 GiB free of 252 GiB"));
    for (rule, value) in [
        ("storage.kind", "/dev/vda on ext4, mounted on /"),
        ("storage.atime", "a read is no write"),
        ("settings.next-boot", "no file sets any"),
        ("settings.tuned", "tuned does not run"),
        ("hardware.log", "none"),
    ] {
        let finding = one(&found, near, rule);
        assert_eq!((finding.severity, finding.value.as_str()), (Severity::Ok, value), "{rule}");
    }
    for rule in ["processor.governor", "storage.write-rate", "processor.seal-rate", "memory.dirty", "hardware.memory"] {
        assert_eq!(one(&found, near, rule).severity, Severity::Unknown, "{rule}");
    }
}

#[test]
fn container_without_sys_has_unknowns_and_no_guesses() {
    let found = diagnose(&Situation::of(host("container")));
    let mend: Vec<&str> = found.iter().filter(|one| one.severity >= Severity::Warning).map(|one| one.rule).collect();
    // What /proc and calls say: the room, the clock.
    assert!(
        mend.iter().all(|rule| ["storage.room", "clock.synchronised", "tcp.listen-queue"].contains(rule)),
        "{mend:?}"
    );
    for rule in ["processor.governor", "interface.mtu", "interface.slot", "storage.numa", "hardware.memory"] {
        assert_eq!(one(&found, HostSide::Near, rule).severity, Severity::Unknown, "{rule}");
    }
}

const ZFS: (&str, &str) = ("directory/mount", "36 27 0:50 / /data rw,noatime shared:1 - zfs tank/data rw,xattr");

/// Texts of the evidence, the rule that they break, how badly, and a part of the line that mends it.
type Planted = (&'static [(&'static str, &'static str)], &'static str, Severity, &'static str);

/// Each plants one thing into the virtual machine, which has nothing of the kind.
const PLANTED: &[Planted] = &[
    (
        &[("directory/mount", "36 27 0:50 / /data rw shared:1 - ext4 server:/x rw,data=writeback")],
        "storage.barriers",
        Severity::Warning,
        "remove data=writeback",
    ),
    (
        &[("directory/mount", "36 27 0:50 / /data rw shared:1 - ext4 server:/x rw,data=writeback")],
        "storage.atime",
        Severity::Warning,
        "mount -o remount,noatime /data",
    ),
    (
        &[("directory/mount", "36 27 0:50 / /data rw,noatime shared:1 - nfs4 server:/x rw,vers=4.2,soft,proto=tcp")],
        "storage.soft-mount",
        Severity::Failure,
        "replace soft by hard",
    ),
    (
        &[("directory/mount", "36 27 0:50 / /data rw,noatime shared:1 - nfs4 server:/x rw,vers=4.2,soft,proto=tcp")],
        "storage.kind",
        Severity::Warning,
        "carrack bench disk",
    ),
    (
        &[("directory/mount", "36 27 0:50 / /data rw,relatime shared:1 - fuse.sshfs server:/x rw")],
        "storage.kind",
        Severity::Warning,
        "carrack bench disk",
    ),
    (
        &[("directory/mount", "36 27 0:50 / /data rw,noatime shared:1 - xfs server:/x rw,nobarrier")],
        "storage.barriers",
        Severity::Failure,
        "mount -o remount,barrier /data",
    ),
    (
        &[("directory/statvfs", "block-size 4096\nblocks 1000\navailable 500\nfiles 1000\nfiles-available 5\n")],
        "storage.inodes",
        Severity::Failure,
        "remove small files",
    ),
    (
        &[
            ("sys/class/block/vda/queue/scheduler", "none mq-deadline [bfq]"),
            ("sys/class/block/vda/queue/rotational", "0"),
        ],
        "storage.scheduler",
        Severity::Warning,
        "echo none > /sys/block/vda/queue/scheduler",
    ),
    (
        &[("sys/class/block/vda/md/level", "raid6"), ("sys/class/block/vda/queue/read_ahead_kb", "128")],
        "storage.read-ahead",
        Severity::Warning,
        "blockdev --setra 8192 /dev/vda",
    ),
    (
        &[
            ("sys/class/block/vda/md/level", "raid6"),
            ("sys/class/block/vda/md/degraded", "1"),
            ("sys/class/block/vda/md/sync_action", "idle"),
        ],
        "raid.state",
        Severity::Failure,
        "mdadm --manage /dev/vda --add",
    ),
    (
        &[
            ("sys/class/block/vda/md/level", "raid1"),
            ("sys/class/block/vda/md/degraded", "0"),
            ("sys/class/block/vda/md/sync_action", "resync"),
        ],
        "raid.state",
        Severity::Warning,
        "wait until /proc/mdstat",
    ),
    (
        &[(ZFS.0, ZFS.1), ("command/zfs get", "sync\tdisabled\ndedup\toff\nprimarycache\tall\n")],
        "zfs.sync",
        Severity::Failure,
        "zfs set sync=standard tank/data",
    ),
    (
        &[(ZFS.0, ZFS.1), ("command/zfs get", "sync\tstandard\ndedup\ton\nprimarycache\tall\n")],
        "zfs.dedup",
        Severity::Warning,
        "zfs set dedup=off tank/data",
    ),
    (
        &[(ZFS.0, ZFS.1), ("command/zfs get", "sync\tstandard\ndedup\toff\nprimarycache\tnone\n")],
        "zfs.cache",
        Severity::Warning,
        "zfs set primarycache=all tank/data",
    ),
    (
        &[
            (ZFS.0, ZFS.1),
            ("command/zfs get", "sync\tstandard\ndedup\toff\nprimarycache\tall\n"),
            ("proc/meminfo", "MemTotal:  100000000 kB\nMemAvailable:   50000000 kB\n"),
            (
                "proc/spl/kstat/zfs/arcstats",
                "13 1 0x01 123 33456 8 9\nname type data\nc_max                           4    1073741824\n",
            ),
        ],
        "zfs.cache",
        Severity::Warning,
        "zfs_arc_max",
    ),
    (
        &[("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\nSwapTotal: 1000 kB\nSwapFree: 50 kB\n")],
        "memory.swap",
        Severity::Warning,
        "swapoff -a",
    ),
    (
        &[
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
            ("sys/kernel/mm/transparent_hugepage/defrag", "[always] defer defer+madvise madvise never"),
        ],
        "memory.huge-pages",
        Severity::Warning,
        "transparent_hugepage/defrag",
    ),
    (
        &[("proc/sys/net/netfilter/nf_conntrack_count", "65536"), ("proc/sys/net/netfilter/nf_conntrack_max", "65536")],
        "tcp.connection-table",
        Severity::Failure,
        "sysctl -w net.netfilter.nf_conntrack_max=131072",
    ),
    (
        &[("proc/sys/net/ipv4/tcp_moderate_rcvbuf", "0"), ("proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456")],
        "tcp.window-growth",
        Severity::Warning,
        "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1",
    ),
    (
        &[("names/peer", "answered-us 5004000"), ("command/sshd -T", "port 22\nusedns yes\n")],
        "host.names",
        Severity::Warning,
        "UseDNS no",
    ),
    (
        &[("processor/governors", "powersave 4")],
        "processor.governor",
        Severity::Warning,
        "cpupower frequency-set -g performance",
    ),
    (
        &[("proc/self/limits", "Max processes             100                  100                  processes")],
        "session.processes",
        Severity::Failure,
        "/etc/security/limits.d/90-nproc.conf",
    ),
    (&[("sys/fs/cgroup/memory.max", "1073741824")], "session.memory", Severity::Warning, "raise MemoryMax"),
    (&[("sys/fs/cgroup/cpu.max", "50000 100000")], "session.processor-quota", Severity::Warning, "remove CPUQuota"),
    (
        &[(
            "command/systemctl show",
            "LimitNOFILE=1024\nMemoryMax=infinity\nCPUQuotaPerSecUSec=infinity\nTasksMax=15000\n",
        )],
        "session.unit",
        Severity::Warning,
        "systemctl edit carrack.service",
    ),
    (
        &[
            ("measured/storage/write", "100000000"),
            ("proc/sys/vm/dirty_ratio", "20"),
            ("proc/meminfo", "MemTotal: 64 kB\nMemAvailable:   60000000 kB\n"),
        ],
        "memory.dirty",
        Severity::Warning,
        "sysctl -w vm.dirty_bytes=199229440",
    ),
    (
        &[("proc/meminfo", "MemTotal:  1000000 kB\nMemAvailable:   50000 kB\n")],
        "memory.available",
        Severity::Warning,
        "ps aux",
    ),
    (
        &[("etc/sysctl.d/10-x.conf", "net.ipv4.tcp_sack=1\n"), ("usr/lib/sysctl.d/99-y.conf", "net.ipv4.tcp_sack=0\n")],
        "settings.next-boot",
        Severity::Warning,
        "change the line in /usr/lib/sysctl.d/99-y.conf",
    ),
    (
        &[
            ("process/tuned", "812"),
            ("etc/tuned/active_profile", "network-throughput"),
            ("tuned/1/network-throughput", "[sysctl]\nnet.ipv4.tcp_rmem=\"4096 131072 16777216\"\n"),
            ("etc/sysctl.d/90-dtn.conf", "net.ipv4.tcp_rmem = 4096 131072 536870912\n"),
        ],
        "settings.tuned",
        Severity::Warning,
        "set it in one place",
    ),
    (&[("process/bpftune", "99")], "settings.bpftune", Severity::Unknown, ""),
    (
        &[
            ("kernel-log", "Buffer I/O error on dev vda, logical block 7, lost async page write"),
            ("kernel-log-ages", "86000"),
        ],
        "hardware.log",
        Severity::Failure,
        "dmesg --level",
    ),
    (
        &[("sys/devices/system/edac/mc/mc0/ce_count", "3"), ("sys/devices/system/edac/mc/mc0/ue_count", "0")],
        "hardware.memory",
        Severity::Warning,
        "have the module changed",
    ),
    (
        &[("clock/now", "8000000000"), ("clock/asked", "1000000000"), ("clock/answered", "2000000000")],
        "clock.offset",
        Severity::Warning,
        "chronyd",
    ),
];

#[test]
fn planted_host_faults_are_named_each_with_its_line() {
    let before = diagnose(&Situation::of(host("vm")));
    for (texts, rule, severity, words) in PLANTED {
        let was = before.iter().any(|one| one.rule == *rule && one.severity == *severity);
        assert!(!was || *rule == "hardware.memory", "{rule} was there before");
        let found = diagnose(&Situation::of(with(host("vm"), texts)));
        let named: Vec<&Finding> = found.iter().filter(|one| one.rule == *rule && one.severity == *severity).collect();
        assert!(named.iter().any(|one| line(one).contains(words)), "{rule}: {named:#?}");
    }
}

#[test]
fn kernel_log_counts_for_a_day_and_for_the_devices_of_the_directory() {
    let lost = |device: &str| format!("Buffer I/O error on dev {device}, logical block 7, lost async page write");
    let severity = |lines: &[String], ages: &str, more: &[(&str, &str)]| {
        let log = lines.join("\n");
        let texts = [&[("kernel-log", log.as_str()), ("kernel-log-ages", ages)], more].concat();
        let found = diagnose(&Situation::of(with(host("vm"), &texts)));
        let found = one(&found, HostSide::Near, "hardware.log");
        (found.severity, found.value.clone())
    };
    assert_eq!(severity(&[lost("vda")], "60", &[]).0, Severity::Failure);
    // Another device, one whose name begins alike, and one of yesterday are a note.
    for (device, age) in [("loop7", "60"), ("vda1", "60"), ("vd", "60"), ("vda", "86401"), ("vda", "")] {
        let (found, value) = severity(&[lost(device)], age, &[]);
        assert_eq!(found, Severity::Ok, "{device} {age}");
        assert!(
            value.starts_with("none; 1 older, of a boot, or of other devices") && value.contains(device),
            "{value}"
        );
    }
    // The last line does not hide one before it, and only those that count are counted.
    let (found, value) = severity(&[lost("vda"), lost("loop7")], "60\n1", &[]);
    assert!(found == Severity::Failure && value.starts_with("1 such lines") && value.contains("vda"), "{value}");
    // What is about no storage is about the whole host.
    let memory = "mce: [Hardware Error]: Machine check events logged".to_owned();
    assert_eq!(severity(&[memory], "60", &[]).0, Severity::Warning);
    let silent = |server: &str| format!("nfs: server {server} not responding, still trying");
    let mount = [("directory/mount", "30 22 0:47 / /data rw - nfs4 files.lab:/export rw")];
    assert_eq!(severity(&[silent("files.lab")], "60", &mount).0, Severity::Warning);
    assert_eq!(severity(&[silent("other.lab")], "60", &mount).0, Severity::Ok);
}

/// Lines as kernels write them, each of one thing that goes wrong, and a word of what mends it.
#[test]
fn lines_of_the_kernel_s_log_are_told_by_what_they_are_about() {
    let of = |line: &str, age: &str| {
        let texts = [("kernel-log", line), ("kernel-log-ages", age), ("proc/uptime", "7200.50 9000.00")];
        let found = diagnose(&Situation::of(with(host("vm"), &texts)));
        let found = one(&found, HostSide::Near, "hardware.log");
        (found.severity, found.fix.as_ref().map(|fix| fix.line()).unwrap_or_default())
    };
    use Severity::{Failure, Ok, Warning};
    for (line, severity, mends) in [
        ("nf_conntrack: nf_conntrack: table full, dropping packet", Warning, "nf_conntrack_max"),
        ("neighbour: arp_cache: neighbor table overflow!", Warning, "gc_thresh3"),
        ("BTRFS error (device vda): bdev /dev/vda errs: wr 0, rd 0, flush 0, corrupt 7, gen 0", Failure, "smartctl"),
        ("BTRFS error (device sdz): bdev /dev/sdz errs: wr 0, rd 0, flush 0, corrupt 7, gen 0", Ok, ""),
        ("EXT4-fs error (device vda): ext4_lookup:1855: inode #2: comm ls: deleted inode", Failure, "smartctl"),
        ("XFS (vda): Corruption of in-memory data detected.  Shutting down filesystem", Failure, "smartctl"),
        ("md/raid1:vda: Disk failure on sdb, disabling device.", Failure, "smartctl"),
        ("md/raid1:md7: Disk failure on sdy, disabling device.", Ok, ""),
        ("Out of memory: Killed process 4242 (globus-gridftp-) total-vm:1kB", Warning, "ps aux"),
        ("Memory cgroup out of memory: Killed process 4242 (rsync) total-vm:1kB", Warning, "ps aux"),
        ("pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0", Warning, "lspci"),
        ("mlx5_core 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer", Warning, "lspci"),
        ("INFO: task nfsd:812 blocked for more than 120 seconds.", Warning, "dmesg"),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s!", Warning, "dmesg"),
        ("CPU3: Core temperature above threshold, cpu clock throttled (total events = 9)", Warning, "fans"),
        ("mce: [Hardware Error]: Machine check events logged", Warning, "ras-mc-ctl"),
        ("NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out", Warning, "firmware"),
        ("e1000e 0000:00:03.0 eth0: NIC Link is Down", Warning, "cable"),
        ("tg3 0000:02:00.0 eth0: Link is down", Warning, "cable"),
        ("mlx5_core 0000:3b:00.0 eth0: Link down", Warning, "cable"),
        ("bond0: (slave eth0): link status definitely down, disabling slave", Warning, "cable"),
        ("e1000e 0000:00:03.0 eth9: NIC Link is Down", Ok, ""),
    ] {
        let (found, line_found) = of(line, "60");
        assert_eq!(found, severity, "{line}");
        assert!(line_found.contains(mends), "{line}: {line_found}");
    }
    // Every driver takes a link down once while it sets it up.
    assert_eq!(of("r8169 0000:03:00.0 eth0: Link is Down", "7190").0, Ok);
    assert_eq!(of("r8169 0000:03:00.0 eth0: Link is Down", "7000").0, Warning);
    assert_eq!(of("CPU3: Core temperature above threshold, cpu clock throttled", "7190").0, Warning);
}

/// Each thing that goes wrong has a line of its own.
#[test]
fn kernel_log_is_told_once_for_each_thing_that_goes_wrong() {
    let log = "Buffer I/O error on dev vda, logical block 7, lost async page write\n\
               Out of memory: Killed process 4242 (rsync) total-vm:1kB\n\
               Out of memory: Killed process 4243 (rsync) total-vm:1kB";
    let found = diagnose(&Situation::of(with(host("vm"), &[("kernel-log", log), ("kernel-log-ages", "9\n8\n7")])));
    let told: Vec<(Severity, &str)> = of(&found, HostSide::Near, "hardware.log")
        .into_iter()
        .map(|one| (one.severity, one.value.split(',').next().unwrap_or_default()))
        .collect();
    assert_eq!(told, [(Severity::Failure, "1 such lines"), (Severity::Warning, "2 such lines")]);
}

#[test]
fn file_system_that_does_not_answer_is_a_failure() {
    let silent = EvidenceText::Failed("it did not answer within 10 s".to_owned());
    for name in ["directory/statvfs", "directory"] {
        let mount = ("directory/mount", "30 22 0:47 / /data rw - nfs4 files.lab:/export rw");
        let mut host = with(host("vm"), &[("directory/path", "/data"), mount]);
        host.evidence.as_mut().unwrap().put(name, silent.clone());
        let found = diagnose(&Situation::of(host));
        let room = one(&found, HostSide::Near, "storage.room");
        assert_eq!(room.severity, Severity::Failure, "{room:?}");
        assert!(room.value.contains("does not answer") && !line(room).is_empty(), "{room:?}");
    }
}

/// What is set by one fix is not set again by the next: counters since the start of the host do not go back.
#[test]
fn second_fix_sets_nothing() {
    const PRESSED: &[(&str, &str)] = &[
        ("proc/sys/net/ipv4/tcp_mem", "188007 250677 376014"),
        ("proc/net/sockstat", "sockets: used 300\nTCP: inuse 20 orphan 0 tw 4 alloc 30 mem 2000\n"),
        ("proc/net/netstat", "TcpExt: TCPMemoryPressures ListenOverflows\nTcpExt: 3 7\n"),
        ("proc/net/softnet_stat", "0000272d 00000003 00000900 00000000\n0000034d 00000001 00000001 00000000\n"),
        ("proc/sys/net/core/netdev_max_backlog", "1000"),
        ("proc/sys/net/core/netdev_budget", "300"),
        ("proc/sys/net/core/rmem_max", "212992"),
        ("proc/sys/net/core/wmem_max", "212992"),
        ("proc/meminfo", "MemTotal:       32000000 kB\nMemAvailable:   30000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"),
    ];
    let settings = |host: &Host| -> Vec<(String, String)> {
        let path = Path { round_trip: Some(Duration::from_millis(50)), ..Path::default() };
        let found = diagnose(&Situation { path, ..Situation::of(host.clone()) });
        let fixes = found.into_iter().filter_map(|one| one.fix);
        fixes.filter_map(|fix| if let Fix::Sysctl { name, value } = fix { Some((name, value)) } else { None }).collect()
    };
    for fixture in ["dtn-100g", "bond", "laptop", "vm", "lro-one-queue", "half-duplex"] {
        let mut host = with(host(fixture), PRESSED);
        let first = settings(&host);
        assert!(first.iter().any(|(name, value)| name == "net.ipv4.tcp_mem" && value == "1000000 1333332 2000000"));
        assert!(first.iter().any(|(name, value)| name == "net.core.netdev_budget" && value == "600"), "{first:?}");
        for (name, value) in &first {
            let file = format!("proc/sys/{}", name.replace('.', "/"));
            host = with(host, &[(file.as_str(), value.as_str())]);
        }
        // A discipline is that of interfaces that are made from now on, and is set only if that is asked for.
        let again = settings(&host).into_iter().filter(|(name, _)| name != "net.core.default_qdisc");
        assert_eq!(again.collect::<Vec<_>>(), [], "{fixture}");
    }
    // What somebody has raised further is not lowered.
    let raised = [("proc/sys/net/core/netdev_budget", "1200"), ("proc/sys/net/core/netdev_max_backlog", "300000")];
    let host = with(with(host("vm"), PRESSED), &raised);
    assert!(settings(&host).iter().all(|(name, _)| name == "net.ipv4.tcp_mem"), "{:?}", settings(&host));
}

#[test]
fn processor_is_compared_with_what_the_network_carries() {
    let texts = [("measured/processor/blake3+aes-128-gcm", "1000000000"), ("sys/devices/system/cpu/online", "0-1")];
    let wish = Wish { rate: Some(5e9), ..Wish::default() };
    let found = diagnose(&Situation { wish, ..Situation::of(with(host("vm"), &texts)) });
    let seal = one(&found, HostSide::Near, "processor.seal-rate");
    assert_eq!(
        (seal.severity, seal.cost.as_str()),
        (Severity::Warning, "copies are limited to about 2 GB/s of 5 GB/s")
    );
    let wish = Wish { rate: Some(1.25e9), ..Wish::default() };
    let found = diagnose(&Situation { wish, ..Situation::of(with(host("vm"), &texts)) });
    assert_eq!(one(&found, HostSide::Near, "processor.seal-rate").severity, Severity::Ok);
}
