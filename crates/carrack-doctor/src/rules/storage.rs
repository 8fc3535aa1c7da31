//! The storage of the directory concerned: room, mount options, what lies below it, and its rate against the network's.

use carrack_core::evidence::EvidenceText;
use carrack_core::words::shell_word;

use super::{Check, Limit, Rule, Threshold, Told, View, tcp};
use crate::finding::EvidenceClass::{EsnetTable, Kernel, OneOperator, Ours};
use crate::known::{Known, Unknown};
use crate::units;

const FASTERDATA: &str = "fasterdata.es.net, DTN tuning";
const MOUNT_PAGE: &str = "mount(8), ext4(5)";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "storage.room",
        threshold: Threshold::of("at least {} of the file system is free", &[Limit::Percent(FREE)]),
        reason: "file systems that are nearly full write into the gaps, and then not at all",
        source: "zfsprops(7), ext4(5)",
        class: Kernel,
        check: Check::Host(room),
    },
    Rule {
        id: "storage.inodes",
        threshold: Threshold::of("at least {} of the inodes are free", &[Limit::Percent(FREE)]),
        reason: "each file needs one, and their number is fixed when the file system is made",
        source: "mke2fs(8)",
        class: Kernel,
        check: Check::Host(inodes),
    },
    Rule {
        id: "storage.kind",
        threshold: Threshold::plain("a file system on disks of this host, or a remote one that is known to be fast"),
        reason: "NFS, FUSE and overlays have limits of their own, which no setting of this host lifts",
        source: "kernel, filesystems",
        class: Kernel,
        check: Check::Host(kind),
    },
    Rule {
        id: "storage.barriers",
        threshold: Threshold::plain("no nobarrier, no data=writeback"),
        reason: "what was synced can be lost with the power, or a file can hold what another had",
        source: MOUNT_PAGE,
        class: Kernel,
        check: Check::Host(barriers),
    },
    Rule {
        id: "storage.soft-mount",
        threshold: Threshold::plain("NFS mounted hard"),
        reason: "a soft mount gives up after a while, and what was written before may be lost without a word",
        source: "nfs(5)",
        class: Kernel,
        check: Check::Host(soft_mount),
    },
    Rule {
        id: "storage.atime",
        threshold: Threshold::plain("noatime, or relatime"),
        reason: "with strictatime every read is a write as well",
        source: MOUNT_PAGE,
        class: Kernel,
        check: Check::Host(atime),
    },
    Rule {
        id: "storage.scheduler",
        threshold: Threshold::plain("none on NVMe, mq-deadline on disks that turn and are no virtual ones"),
        reason: "a fast disk loses time in a queue of the kernel; a turning one loses it by seeking",
        source: FASTERDATA,
        class: EsnetTable,
        check: Check::Host(scheduler),
    },
    Rule {
        id: "storage.read-ahead",
        threshold: Threshold::of("{} on arrays and on disks that turn", &[Limit::Bytes(READ_AHEAD)]),
        reason: "one reader keeps only as many members busy as read-ahead covers",
        source: FASTERDATA,
        class: OneOperator,
        check: Check::Host(read_ahead),
    },
    Rule {
        id: "storage.numa",
        threshold: Threshold::plain("the disks and the network card at one node of memory"),
        reason: "otherwise every byte crosses the link between two sockets",
        source: FASTERDATA,
        class: EsnetTable,
        check: Check::Host(numa),
    },
    Rule {
        id: "storage.write-rate",
        threshold: Threshold::plain("no less than the network brings"),
        reason: "a copy is as fast as its slowest part",
        source: "ESnet, 10-second write test",
        class: Ours,
        check: Check::Host(|view| rate(view, "write")),
    },
    Rule {
        id: "storage.read-rate",
        threshold: Threshold::plain("no less than the network takes"),
        reason: "a copy is as fast as its slowest part",
        source: "ESnet, 10-second read test",
        class: Ours,
        check: Check::Host(|view| rate(view, "read")),
    },
];

/// Of a hundred: what should be free, and what is next to nothing.
const FREE: u64 = 10;
const FREE_LEAST: u64 = 1;
/// Bytes that are read ahead.
const READ_AHEAD: u64 = 4 << 20;

/// Whether a directory was named; without one nothing is said of storage.
pub(super) fn is_asked(view: &View<'_>) -> bool {
    let evidence = view.facts.evidence();
    evidence.get("directory/path").is_some() || evidence.get("directory").is_some()
}

fn room(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    if let Some(told) = silence(view) {
        return Ok(vec![told]);
    }
    let (directory, room) = (view.facts.directory()?, view.facts.room()?);
    if room.bytes == 0 {
        return Err(Unknown::because(format!("the file system of {directory} tells no size")));
    }
    let share = room.bytes_available as f64 / room.bytes as f64;
    let value = format!("{} free of {}", units::bytes(room.bytes_available as f64), units::bytes(room.bytes as f64));
    let told = match share {
        share if share >= FREE as f64 / 100.0 => return Ok(vec![Told::ok(value).about(directory)]),
        share if share < FREE_LEAST as f64 / 100.0 => Told::failure(value).costs("the next copy ends when it is full"),
        _ => Told::warning(value).costs("new files lie in pieces, and the next large copy ends when it is full"),
    };
    Ok(vec![told.about(directory).advice("remove what is not needed, or use another file system")])
}

/// That the file system does not answer, if that is so.
fn silence(view: &View<'_>) -> Option<Told> {
    let is_silent = |name: &str| match view.facts.evidence().get(name) {
        Some(EvidenceText::Failed(why)) => why.contains("did not answer"),
        _ => false,
    };
    if !is_silent("directory") && !is_silent("directory/statvfs") {
        return None;
    }
    let mount = view.facts.mount().ok();
    let source = mount.map(|mount| format!(": {} on {}", mount.source, mount.kind)).unwrap_or_default();
    let told = Told::failure(format!("the file system does not answer{source}"));
    let told =
        told.about(view.facts.directory().unwrap_or_default()).costs("each call there waits, and so does a copy");
    Some(told.advice("is its server there, and the way to it? It goes on when the server is back; else umount -f"))
}

fn inodes(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    let (directory, room) = (view.facts.directory()?, view.facts.room()?);
    if room.files == 0 {
        return Ok(vec![Told::ok("made as they are needed").about(directory)]);
    }
    let share = room.files_available as f64 / room.files as f64;
    let value = format!("{} of {} inodes free", room.files_available, room.files);
    let told = match share {
        share if share >= FREE as f64 / 100.0 => return Ok(vec![Told::ok(value).about(directory)]),
        share if share < FREE_LEAST as f64 / 100.0 => Told::failure(value),
        _ => Told::warning(value),
    };
    let told = told.about(directory).costs(format!("no more than {} files can be added", room.files_available));
    Ok(vec![told.advice("remove small files, or make the file system anew with more inodes")])
}

fn kind(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    let mount = view.facts.mount()?;
    let told = format!("{} on {}, mounted on {}", mount.source, mount.kind, mount.point);
    let cost = match mount.kind {
        "nfs" | "nfs4" => "each file costs round trips to its server, and its network carries the data a second time",
        "overlay" => "a file of a lower layer is copied whole when it is first written to",
        "tmpfs" | "ramfs" => "what lies there is gone at the next boot, and takes memory",
        kind if kind.starts_with("fuse") => "each call passes through a program",
        _ => return Ok(vec![Told::ok(told).about(mount.point)]),
    };
    let is_fast = ["read", "write"].into_iter().all(|direction| keeps_up(view, direction) == Ok(true));
    if is_fast && !matches!(mount.kind, "tmpfs" | "ramfs") {
        return Ok(vec![Told::ok(format!("{told}, measured to be as fast as the network")).about(mount.point)]);
    }
    let told = Told::warning(told).about(mount.point).costs(cost);
    Ok(vec![told.advice("copy to the host that has the disks, or measure with: carrack bench disk")])
}

fn barriers(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    let mount = view.facts.mount()?;
    let risky = ["nobarrier", "barrier=0", "data=writeback", "nointegrity"];
    let found: Vec<&str> = risky.into_iter().filter(|option| mount.has(option)).collect();
    if found.is_empty() {
        return Ok(vec![Told::ok("none of these options").about(mount.point)]);
    }
    let value = format!("mounted with {}", found.join(","));
    let told = if found == ["data=writeback"] { Told::warning(value) } else { Told::failure(value) };
    let told =
        told.about(mount.point).costs("files that were synced can be lost, or hold old data, when the power fails");
    Ok(vec![match found[..] {
        ["data=writeback"] => told.advice("remove data=writeback from /etc/fstab, and mount it again"),
        _ => told.command(format!("mount -o remount,barrier {}   # and in /etc/fstab", shell_word(mount.point))),
    }])
}

fn soft_mount(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    let mount = view.facts.mount()?;
    if !mount.kind.starts_with("nfs") {
        return Ok(Vec::new());
    }
    if !mount.has("soft") && !mount.has("softerr") && !mount.has("softreval") {
        return Ok(vec![Told::ok("hard").about(mount.point)]);
    }
    let told = Told::failure(format!("{} is mounted soft", mount.source)).about(mount.point);
    let told = told.costs("a server that is slow for a minute makes writes fail, or lose what was written");
    Ok(vec![told.advice("replace soft by hard in /etc/fstab, and mount it again")])
}

fn atime(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    let mount = view.facts.mount()?;
    // The kernel shows neither for strictatime. A remote server keeps times by itself, and so does ZFS, by a property.
    if mount.has("noatime") || mount.has("relatime") || mount.has("ro") || mount.is_remote() || mount.kind == "zfs" {
        return Ok(vec![Told::ok("a read is no write").about(mount.point)]);
    }
    let told =
        Told::warning("every read notes its time").about(mount.point).costs("a write for each file that is read");
    Ok(vec![told.command(format!("mount -o remount,noatime {}   # and in /etc/fstab", shell_word(mount.point)))])
}

fn scheduler(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for disk in view.facts.devices()?.into_iter().filter(|device| device.is_disk()) {
        let (scheduler, rotating) = (disk.scheduler()?, disk.is_rotating()?);
        let good: &[&str] = match rotating {
            _ if disk.name.starts_with("nvme") => &["none"],
            true => &["mq-deadline", "deadline", "bfq"],
            // Behind a virtual disk or a controller somebody else may sort.
            false => &["none", "noop", "mq-deadline", "deadline", "kyber"],
        };
        if good.contains(&scheduler) {
            all.push(Told::ok(scheduler).about(disk.name));
            continue;
        }
        let told = Told::warning(scheduler).about(disk.name).should_be(good[0]);
        let cost = if rotating { "time in seeking when several files are read at once" } else { "time in a queue" };
        all.push(told.costs(cost).command(format!("echo {} > /sys/block/{}/queue/scheduler", good[0], disk.name)));
    }
    Ok(all)
}

fn read_ahead(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    let devices = view.facts.devices()?;
    let is_slow = devices.iter().any(|device| device.is_array() || device.is_rotating() == Ok(true));
    if !is_slow {
        return Ok(Vec::new());
    }
    // What is mounted reads ahead for all that lies below; a partition as its disk does.
    let mut first = None;
    for device in devices {
        if let Some(bytes) = device.read_ahead()? {
            first = Some((device, bytes));
            break;
        }
    }
    let Some((first, bytes)) = first else { return Ok(Vec::new()) };
    let value = format!("{} KiB", bytes / 1024);
    if bytes >= READ_AHEAD {
        return Ok(vec![Told::ok(value).about(first.name)]);
    }
    let told = Told::warning(value).about(first.name).costs("one reader does not keep all members busy");
    Ok(vec![told.command(format!("blockdev --setra {} /dev/{}", READ_AHEAD / 512, first.name))])
}

fn numa(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    if view.facts.text("sys/devices/system/node/online")? == "0" {
        return Ok(vec![Told::ok("there is one node")]);
    }
    let carrier = view.facts.carrier()?;
    let card = carrier.number("device/numa_node")?;
    let mut all = Vec::new();
    for disk in view.facts.devices()?.into_iter().filter(|device| device.is_disk()) {
        let node = disk.numa_node()?;
        if node < 0 || card < 0 {
            return Err(Unknown::because(format!(
                "the system does not tell the nodes of {} and {}",
                disk.name, carrier.name
            )));
        }
        let value = format!("{} is at node {node}, {} at node {card}", disk.name, carrier.name);
        let told = if node == card { Told::ok(value) } else { Told::warning(value) };
        let told = told.about(disk.name);
        all.push(if node == card {
            told
        } else {
            let told = told.costs("some of the rate that sockets have between them; sources disagree on how much");
            told.command("numactl --cpunodebind=0 carrack ...   # measure with each node, and keep the faster")
        });
    }
    Ok(all)
}

/// Whether the storage was measured to be no slower than the network.
fn keeps_up(view: &View<'_>, direction: &str) -> Known<bool> {
    Ok(view.facts.storage_rate(direction)? >= tcp::wanted_rate(view)?)
}

fn rate(view: &View<'_>, direction: &str) -> Known<Vec<Told>> {
    if !is_asked(view) {
        return Ok(Vec::new());
    }
    let directory = view.facts.directory()?;
    let measured = view.facts.storage_rate(direction)?;
    let wanted = tcp::wanted_rate(view)?;
    let value =
        format!("{} at a time through one file; the network carries {}", units::rate(measured), units::rate(wanted));
    if keeps_up(view, direction)? {
        return Ok(vec![Told::ok(value).about(directory)]);
    }
    let cost =
        format!("copies {direction} no more than {} of the network's {}", units::rate(measured), units::rate(wanted));
    let told = Told::warning(value).about(directory).costs(cost);
    Ok(vec![told.command(format!("carrack bench disk {}", shell_word(directory)))])
}
