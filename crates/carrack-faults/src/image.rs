//! File systems in files: small, thrown away, and copied at any moment, which is what a power cut leaves.
//!
//! Mounted through loop devices: needs root, and `mkfs` of the kind.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ext4.
    Ext4,
    /// XFS, of at least 300 MiB.
    Xfs,
    /// Btrfs, of at least 110 MiB.
    Btrfs,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The least that its `mkfs` makes.
    pub fn smallest_mib(self) -> u64 {
        match self {
            Self::Ext4 => 16,
            Self::Xfs => 300,
            Self::Btrfs => 110,
        }
    }
}

/// A file system in a file, mounted; unmounted when dropped. The file goes with its directory.
pub struct Image {
    kind: Kind,
    file: PathBuf,
    at: PathBuf,
    mounted: bool,
}

/// What a file system in a file looked like at one instant.
#[derive(Clone, Debug)]
pub struct Snapshot {
    kind: Kind,
    file: PathBuf,
}

impl Image {
    /// Makes one of so many MiB as the file `NAME.img` below a directory, and mounts it at `NAME` beside it. `None`,
    /// and why is printed, where that cannot be done.
    pub fn new(directory: &Path, name: &str, kind: Kind, mib: u64) -> Option<Self> {
        Self::made(directory, name, kind, mib, &[])
    }

    /// The same of ext4, with small inodes, in which times have whole seconds.
    pub fn of_whole_seconds(directory: &Path, name: &str, mib: u64) -> Option<Self> {
        Self::made(directory, name, Kind::Ext4, mib, &["-I", "128"])
    }

    /// The same of XFS, whose times end in 2038.
    pub fn of_early_times(directory: &Path, name: &str) -> Option<Self> {
        Self::made(directory, name, Kind::Xfs, Kind::Xfs.smallest_mib(), &["-m", "bigtime=0"])
    }

    /// The same of ext4, in which single directories can be made to take upper and lower case for one (`chattr +F`).
    /// Not every kernel mounts it.
    pub fn of_folding_directories(directory: &Path, name: &str, mib: u64) -> Option<Self> {
        Self::made(directory, name, Kind::Ext4, mib, &["-O", "casefold"])
    }

    fn made(directory: &Path, name: &str, kind: Kind, mib: u64, more: &[&str]) -> Option<Self> {
        if !crate::can_mount("a file system in a file") {
            return None;
        }
        let file = directory.join(format!("{name}.img"));
        let at = directory.join(name);
        std::fs::create_dir_all(&at).unwrap();
        std::fs::File::create(&file).unwrap().set_len(mib << 20).unwrap();
        let quiet: &[&str] = match kind {
            // No blocks kept for root, and the tables written now: a thread that writes them
            // later would hold the unmount.
            Kind::Ext4 => &["-q", "-F", "-m0", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
            Kind::Xfs => &["-q", "-f", "-K"],
            Kind::Btrfs => &["-q", "-f", "-K", "--mixed"],
        };
        if let Err(why) = run(Command::new(format!("mkfs.{}", kind.name())).args(quiet).args(more).arg(&file)) {
            println!("skipped: {why}");
            return None;
        }
        match mount(kind, &file, &at, "loop") {
            Ok(()) => Some(Self { kind, file, at, mounted: true }),
            Err(why) => {
                println!("skipped: {} cannot be mounted here: {why}", kind.name());
                None
            }
        }
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Copies the file as it is now: what a disk would hold if the power were cut here. What only the machine's memory
    /// knew is missing, and everything that was synced is there. Copying takes time: whoever writes must stand still
    /// meanwhile, else a late part of the copy tells of what an early part does not have yet.
    pub fn snapshot(&self, file: &Path) -> Snapshot {
        // Sharing blocks where the file system below can, else holes stay holes.
        run(Command::new("cp").args(["--reflink=auto", "--sparse=always"]).arg(&self.file).arg(file)).unwrap();
        Snapshot { kind: self.kind, file: file.into() }
    }

    /// Has each write to its device be of one page. A loop device says of a longer one that all of it was written if
    /// its file took the beginning.
    pub fn write_single_pages(&self) {
        let mut find = Command::new("findmnt");
        let found = find.args(["-n", "-o", "SOURCE", "--mountpoint"]).arg(&self.at).output().unwrap();
        let device = String::from_utf8(found.stdout).unwrap();
        let name = device.trim().trim_start_matches("/dev/");
        std::fs::write(format!("/sys/block/{name}/queue/max_sectors_kb"), "4").unwrap();
    }

    /// Mounts it anew with options, such as `ro`.
    pub fn remount(&self, options: &str) {
        run(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.at)).unwrap();
    }

    /// Changes the inodes of an ext4 as no system call does, while it is not mounted: each is a path below the file
    /// system's root, a field and a value in the words of `debugfs`.
    pub fn set_inode_fields(&mut self, fields: &[(PathBuf, &str, String)]) {
        run(Command::new("sync").arg("-f").arg(&self.at)).unwrap();
        run(Command::new("umount").arg(&self.at)).unwrap();
        self.mounted = false;
        // Another mount namespace may keep the file system itself: a copy is nobody's yet.
        let copy = self.snapshot(&self.file.with_extension("offline.img"));
        copy.repair();
        let words = |(path, field, value): &(PathBuf, &str, String)| {
            format!("set_inode_field \"/{}\" {field} {value}\n", path.display())
        };
        let script = self.file.with_extension("debugfs");
        std::fs::write(&script, fields.iter().map(words).collect::<String>()).unwrap();
        run(Command::new("debugfs").args(["-w", "-f"]).arg(&script).arg(&copy.file)).unwrap();
        *self = copy.mount(&self.at).unwrap();
    }

    /// Bytes that a user may still write.
    pub fn free_bytes(&self) -> u64 {
        let all = rustix::fs::statvfs(&self.at).unwrap();
        all.f_bavail * all.f_frsize
    }
}

impl Snapshot {
    /// Mounts it at a directory, made if it is not there, after its kind's own repair: what a
    /// machine does as it comes back.
    pub fn open(&self, at: &Path) -> Image {
        self.try_open(at).unwrap()
    }

    /// The same of one that may be damaged beyond that.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub fn try_open(&self, at: &Path) -> Result<Image, String> {
        std::fs::create_dir_all(at).unwrap();
        self.repair();
        self.mount(at)
    }

    fn repair(&self) {
        if self.kind == Kind::Ext4 {
            // 1: errors were there and have been mended. The others replay their logs as they are mounted.
            let done = Command::new("e2fsck").args(["-fy"]).arg(&self.file).output().unwrap();
            assert!(done.status.code().is_some_and(|code| code <= 1), "{}", String::from_utf8_lossy(&done.stdout));
        }
    }

    fn mount(&self, at: &Path) -> Result<Image, String> {
        // The original may still be mounted: XFS would refuse a second one of the same name.
        let options = if self.kind == Kind::Xfs { "loop,nouuid" } else { "loop" };
        mount(self.kind, &self.file, at, options)?;
        Ok(Image { kind: self.kind, file: self.file.clone(), at: at.into(), mounted: true })
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if std::mem::take(&mut self.mounted) && run(Command::new("umount").arg(&self.at)).is_err() {
            let _ = run(Command::new("umount").arg("-l").arg(&self.at));
        }
    }
}

/// A file system in memory with few bytes and few inodes; unmounted when dropped.
pub struct Scarce(PathBuf);

impl Scarce {
    /// Mounts one at a directory, made if it is not there. `None`, and why is printed, where that cannot be done.
    pub fn new(at: &Path, bytes: u64, inodes: u64) -> Option<Self> {
        if !crate::can_mount("a file system in memory") {
            return None;
        }
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={bytes},nr_inodes={inodes}");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "carrack-faults"]).arg(at)).unwrap();
        Some(Self(at.into()))
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves room for so many bytes more than are there now.
    pub fn leave_room(&self, bytes: u64) {
        let all = rustix::fs::statvfs(&self.0).unwrap();
        let size = (all.f_blocks - all.f_bfree) * all.f_frsize + bytes;
        run(Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&self.0)).unwrap();
    }
}

impl Drop for Scarce {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg("-l").arg(&self.0));
    }
}

/// A directory of two layers; unmounted when dropped.
pub struct Overlay(PathBuf);

impl Overlay {
    /// Mounts one at a directory, made if it is not there: `lower` is what is below, and what is written goes to
    /// directories that are made in `upper`. Inode numbers are made of both layers', so that all files have one device.
    /// `None`, and why is printed, where that cannot be done.
    pub fn new(lower: &Path, upper: &Path, at: &Path) -> Option<Self> {
        if !crate::can_mount("an overlay") {
            return None;
        }
        let (data, work) = (upper.join("data"), upper.join("work"));
        for directory in [&data, &work, at] {
            std::fs::create_dir_all(directory).unwrap();
        }
        let [lower, data, work] = [lower, &data, &work].map(|path| path.display());
        let options = format!("lowerdir={lower},upperdir={data},workdir={work},xino=on");
        if let Err(why) = run(Command::new("mount").args(["-t", "overlay", "-o", &options, "carrack-faults"]).arg(at)) {
            println!("skipped: {why}");
            return None;
        }
        Some(Self(at.into()))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg("-l").arg(&self.0));
    }
}

fn mount(kind: Kind, file: &Path, at: &Path, options: &str) -> Result<(), String> {
    run(Command::new("mount").args(["-t", kind.name(), "-o", options]).arg(file).arg(at))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error: io::Error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_cut_keeps_what_was_synced() {
        let directory = tempfile::tempdir().unwrap();
        for kind in Kind::ALL {
            let name = kind.name();
            let Some(image) = Image::new(directory.path(), name, kind, kind.smallest_mib()) else { continue };
            let kept = image.path().join("kept");
            std::fs::write(&kept, vec![7; 100_000]).unwrap();
            std::fs::File::open(&kept).unwrap().sync_all().unwrap();
            std::fs::File::open(image.path()).unwrap().sync_all().unwrap();
            std::fs::write(image.path().join("lost"), vec![8; 100_000]).unwrap();
            let snapshot = image.snapshot(&directory.path().join("cut.img"));
            let after = snapshot.open(&directory.path().join(format!("after-{name}")));
            assert_eq!(std::fs::read(after.path().join("kept")).unwrap(), vec![7; 100_000], "{name}");
            assert_ne!(std::fs::read(after.path().join("lost")).unwrap_or_default(), vec![8; 100_000], "{name}");
            image.remount("ro");
            assert!(std::fs::write(image.path().join("more"), b"x").is_err(), "{name}");
            assert!(image.free_bytes() > 0);
        }
    }

    #[test]
    fn inodes_run_out() {
        let directory = tempfile::tempdir().unwrap();
        let Some(scarce) = Scarce::new(&directory.path().join("at"), 1 << 20, 10) else { return };
        let made = (0..20).filter(|index| std::fs::write(scarce.path().join(index.to_string()), b"").is_ok()).count();
        assert_eq!(made, 9);
    }
}
