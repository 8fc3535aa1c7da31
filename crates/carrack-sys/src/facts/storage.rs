//! The storage under the directory that is asked about: its mount, its room, the block devices below it, and what ZFS
//! and Lustre say of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::programs::run;
use super::{About, FactText, Gatherer};

/// Of each block device.
const DEVICE: &[&str] = &[
    "size",
    "queue/scheduler",
    "queue/read_ahead_kb",
    "queue/rotational",
    "queue/optimal_io_size",
    "queue/write_cache",
    "device/model",
    "md/level",
    "md/array_state",
    "md/degraded",
    "md/raid_disks",
    "md/sync_action",
    "md/sync_completed",
    "md/mismatch_cnt",
];
/// Of a ZFS file system.
const DATASET: &str = "recordsize,checksum,atime,relatime,compression,sync,dedup,primarycache";
/// Of a pool.
const POOL: &str = "health,ashift,capacity,fragmentation,free,size";
/// Bytes of the list of mounts: a host of containers has thousands.
const MOUNTS_BYTES: u64 = 4 << 20;
/// Devices below one directory that are looked at.
const DEVICES: usize = 64;
/// Where systems keep what only administrators are thought to need.
const ADMINISTRATORS: [&str; 3] = ["", "/usr/sbin/", "/sbin/"];

/// No file system may take longer to say what it has: one whose server is gone never does.
const TIME: Duration = Duration::from_secs(10);

pub(super) fn gather(facts: &mut Gatherer, about: About<'_>) {
    let directory = about.directory.map(Path::to_owned);
    gather_within(facts, TIME, directory, look);
}

/// What `look` gathers, in a thread that is left where it is if it does not end in time.
fn gather_within(
    facts: &mut Gatherer,
    time: Duration,
    directory: Option<PathBuf>,
    look: fn(&mut Gatherer, Option<&Path>),
) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (mut own, named) = (Gatherer::at(&facts.root), directory.clone());
    let work = move || {
        look(&mut own, named.as_deref());
        // Whoever waited may have left.
        let _ = sender.send(own.texts);
    };
    let started = crate::threads::start("what the storage says", work).map(drop);
    match (started.map(|()| receiver.recv_timeout(time)), directory) {
        (Ok(Ok(texts)), _) => facts.texts.extend(texts),
        (Ok(Err(_)), Some(directory)) => {
            // No question to the file system itself: the path of the open directory, and the list of mounts.
            let real = std::fs::read_link(&directory).unwrap_or(directory);
            mount(facts, &real);
            facts.put("directory/path", FactText::Found(real.to_string_lossy().into_owned()));
            let why = format!("it did not answer within {} s", time.as_secs());
            facts.put("directory/statvfs", FactText::Failed(why));
        }
        (Ok(Err(_)), None) => {}
        (Err(error), _) => facts.put("directory/path", error),
    }
}

fn look(facts: &mut Gatherer, directory: Option<&Path>) {
    facts.file("proc/mdstat");
    let Some(directory) = directory else { return };
    room(facts, directory);
    // The path of an open directory leads through its handle.
    let real = match directory.canonicalize() {
        Ok(real) => real,
        Err(error) => return facts.put("directory/path", error),
    };
    facts.put("directory/path", FactText::Found(real.to_string_lossy().into_owned()));
    let Some(mount) = mount(facts, &real) else { return };
    devices(facts, &mount);
    if facts.is_host() {
        ask_programs(facts, &mount, &real);
    }
}

/// Tells the mount of a path.
fn mount(facts: &mut Gatherer, path: &Path) -> Option<Mount> {
    let line =
        facts.read_up_to("proc/self/mountinfo", MOUNTS_BYTES).map(|text| mount_of(path, &text).unwrap_or_default());
    let mount = line.as_deref().ok().and_then(Mount::parse);
    facts.put("directory/mount", line);
    mount
}

fn room(facts: &mut Gatherer, directory: &Path) {
    let told = rustix::fs::statvfs(directory).map(|told| {
        format!(
            "block-size {}\nblocks {}\navailable {}\nfiles {}\nfiles-available {}\n",
            told.f_frsize, told.f_blocks, told.f_bavail, told.f_files, told.f_favail
        )
    });
    facts.put("directory/statvfs", told.map_err(std::io::Error::from));
}

/// What is needed here of a line of `/proc/self/mountinfo`.
struct Mount {
    point: PathBuf,
    /// `MAJOR:MINOR`; file systems without a device of their own have a number that leads nowhere.
    device: String,
    kind: String,
    source: String,
}

impl Mount {
    /// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(2);
        let (device, point) = (left.next()?, left.nth(1)?);
        let mut right = right.split(' ');
        let (kind, source) = (right.next()?, right.next()?);
        let (kind, source) = (kind.to_owned(), unescaped(source));
        Some(Self { point: unescaped(point).into(), device: device.to_owned(), kind, source })
    }
}

/// The line of the mount that a path lies on. A later mount on the same point hides an earlier one.
fn mount_of(path: &Path, mounts: &str) -> Option<String> {
    let above = mounts.lines().filter_map(|line| Some((line, Mount::parse(line)?.point)));
    let above = above.filter(|(_, point)| path.starts_with(point));
    above.max_by_key(|(_, point)| point.components().count()).map(|(line, _)| line.to_owned())
}

/// White space in names is written as three octal digits.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| first == b'\\').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The device that is mounted, and all that it is put together from: whole disks below partitions, members below
/// arrays. Each has its files; their names stand in `directory/devices`, the mounted one first.
fn devices(facts: &mut Gatherer, mount: &Mount) {
    let by_number = std::fs::read_link(facts.root.join(format!("sys/dev/block/{}", mount.device))).ok();
    let by_name = || mount.source.strip_prefix("/dev/").map(PathBuf::from);
    let first = by_number.or_else(by_name).and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let mut names: Vec<String> = first.filter(|name| is_device(facts, name)).into_iter().collect();
    let mut at = 0;
    while at < names.len() {
        let below = below(facts, &names[at]);
        for name in below {
            if names.len() < DEVICES && !names.contains(&name) {
                names.push(name);
            }
        }
        at += 1;
    }
    for name in &names {
        let place = format!("sys/class/block/{name}");
        facts.files(&place, DEVICE);
        let node = numa_node(facts, &place);
        facts.put(format!("block/{name}/numa-node"), node);
    }
    facts.put("directory/devices", FactText::Found(names.join("\n")));
}

fn is_device(facts: &Gatherer, name: &str) -> bool {
    facts.root.join(format!("sys/class/block/{name}")).exists()
}

fn below(facts: &Gatherer, name: &str) -> Vec<String> {
    let place = format!("sys/class/block/{name}");
    let mut names = facts.entries(&format!("{place}/slaves"));
    if facts.root.join(format!("{place}/partition")).exists() {
        // A partition's directory lies in that of its disk.
        let disk = facts.root.join(&place).canonicalize().ok();
        let disk = disk.and_then(|path| Some(path.parent()?.file_name()?.to_str()?.to_owned()));
        names.extend(disk.filter(|disk| is_device(facts, disk)));
    }
    names
}

/// The controller that a disk hangs on knows its node.
fn numa_node(facts: &Gatherer, place: &str) -> FactText {
    let Ok(real) = facts.root.join(place).canonicalize() else { return FactText::Absent };
    let top = facts.root.canonicalize().unwrap_or_default();
    let above = real.ancestors().take_while(|path| path.starts_with(&top)).map(|path| path.join("numa_node"));
    match above.into_iter().find(|file| file.is_file()) {
        Some(file) => std::fs::read_to_string(file).into(),
        None => FactText::Absent,
    }
}

fn ask_programs(facts: &mut Gatherer, mount: &Mount, directory: &Path) {
    match mount.kind.as_str() {
        "zfs" => {
            facts.file("proc/spl/kstat/zfs/arcstats");
            let pool = mount.source.split('/').next().unwrap_or_default();
            let get = ["get", "-H", "-p", "-o", "property,value"];
            ask(facts, "command/zfs get", "zfs", &[&get[..], &[DATASET, &mount.source]].concat());
            ask(facts, "command/zpool get", "zpool", &[&get[..], &[POOL, pool]].concat());
            ask(facts, "command/zpool status", "zpool", &["status", pool]);
        }
        "lustre" => {
            let path = directory.to_string_lossy();
            ask(facts, "command/lfs getstripe", "lfs", &["getstripe", "-d", &path]);
        }
        _ => {}
    }
}

fn ask(facts: &mut Gatherer, name: &str, program: &str, arguments: &[&str]) {
    let mut told = FactText::Absent;
    for place in ADMINISTRATORS {
        told = run(Command::new(format!("{place}{program}")).args(arguments)).into();
        if told != FactText::Absent {
            break;
        }
    }
    facts.put(name, told);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::put;

    const MOUNTS: &str = "22 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw\n\
        30 22 8:17 / /data rw,noatime - xfs /dev/sdb1 rw\n\
        31 22 9:127 / /data/with\\040space rw - ext4 /dev/md127 rw,data=writeback\n";

    #[test]
    fn mount_is_the_nearest_one_above_a_path() {
        let point = |path: &str| Mount::parse(&mount_of(Path::new(path), MOUNTS).unwrap()).unwrap();
        assert_eq!(point("/home/me").source, "/dev/sda2");
        assert_eq!(point("/data/x").device, "8:17");
        assert_eq!(point("/data/with space/x").source, "/dev/md127");
        assert_eq!(point("/database").source, "/dev/sda2");
        assert!(mount_of(Path::new("/x"), "not a mount\n").is_none());
    }

    #[test]
    fn mount_at_the_end_of_a_long_list_is_found() {
        let root = tempfile::tempdir().unwrap();
        let others: String = (0..2000)
            .map(|number| format!("{number} 22 0:47 / /run/containers/{number}/rootfs rw - overlay overlay rw\n"))
            .collect();
        let mounts = format!("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n{others}30 22 8:17 / /data rw - xfs /dev/sdb1 rw\n");
        assert!(mounts.len() > 64 << 10);
        put(root.path(), "proc/self/mountinfo", &mounts);
        let found = mount(&mut Gatherer::at(root.path()), Path::new("/data/x")).unwrap();
        assert_eq!((found.kind.as_str(), found.source.as_str()), ("xfs", "/dev/sdb1"));
    }

    #[test]
    fn file_system_that_does_not_answer_is_told_with_its_mount() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "proc/self/mountinfo", "31 22 0:47 / /data rw - nfs4 files.lab:/export rw\n");
        let mut facts = Gatherer::at(root.path());
        let hangs = |_: &mut Gatherer, _: Option<&Path>| loop {
            std::thread::park();
        };
        gather_within(&mut facts, Duration::ZERO, Some("/data/x".into()), hangs);
        let texts: std::collections::BTreeMap<_, _> = facts.texts.into_iter().collect();
        assert!(matches!(&texts["directory/statvfs"], FactText::Failed(why) if why.contains("did not answer")));
        assert!(matches!(&texts["directory/mount"], FactText::Found(line) if line.contains("files.lab:/export")));
        assert_eq!(texts["directory/path"], FactText::Found("/data/x".to_owned()));
    }

    #[test]
    fn devices_below_a_mount_are_followed_to_the_disks_and_their_controller() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let (disk, array) = ("sys/devices/pci0000:00/0000:3b:00.0/host0/block/sdb", "sys/devices/virtual/block/md127");
        put(root, "sys/devices/pci0000:00/0000:3b:00.0/numa_node", "1\n");
        put(root, &format!("{disk}/queue/scheduler"), "[mq-deadline] none\n");
        put(root, &format!("{disk}/sdb1/partition"), "1\n");
        put(root, &format!("{array}/md/degraded"), "1\n");
        put(root, &format!("{array}/slaves/sdb1"), "");
        let link = |from: &str, to: &str| {
            std::fs::create_dir_all(root.join(from).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(root.join(to), root.join(from)).unwrap();
        };
        link("sys/dev/block/9:127", array);
        link("sys/class/block/md127", array);
        link("sys/class/block/sdb1", &format!("{disk}/sdb1"));
        link("sys/class/block/sdb", disk);
        let data = root.canonicalize().unwrap().join("data");
        std::fs::create_dir(&data).unwrap();
        let mounts = format!("31 22 9:127 / {} rw,noatime - ext4 /dev/md127 rw,data=writeback\n", data.display());
        put(root, "proc/self/mountinfo", &mounts);
        let mut facts = Gatherer::at(root);
        gather(&mut facts, About { peer: None, directory: Some(&data) });
        let found = |name: &str| match facts.texts.iter().find(|(known, _)| known == name) {
            Some((_, FactText::Found(text))) => text.trim().to_owned(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found("directory/devices"), "md127\nsdb1\nsdb");
        assert_eq!(found("sys/class/block/md127/md/degraded"), "1");
        assert_eq!(found("sys/class/block/sdb/queue/scheduler"), "[mq-deadline] none");
        assert_eq!(found("block/sdb/numa-node"), "1");
        assert!(found("directory/mount").ends_with("data=writeback"));
        assert!(found("directory/statvfs").starts_with("block-size "));
    }
}
