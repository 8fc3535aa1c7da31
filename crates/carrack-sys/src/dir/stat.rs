//! What the file system says about one file, in the program's own types.

use super::Dir;
use crate::retry;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, Timespec};
use rustix::io::Errno;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link, itself rather than what it points to.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix-domain socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// Something this program has no name for.
    Unknown,
}

impl From<FileType> for Kind {
    fn from(found: FileType) -> Kind {
        match found {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Dir,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::BlockDevice => Kind::BlockDevice,
            FileType::CharacterDevice => Kind::CharDevice,
            FileType::Unknown => Kind::Unknown,
        }
    }
}

/// A moment, as file systems keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime {
    /// Seconds since 1970-01-01 UTC; negative before.
    pub seconds: i64,
    /// Nanoseconds within the second, below 1,000,000,000, always counted forward.
    pub nanos: u32,
}

/// Times that an item is to have; those that are `None` stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemTimes {
    /// When its content last changed.
    pub modified: Option<FileTime>,
    /// When it was last read.
    pub accessed: Option<FileTime>,
}

/// The modification time alone.
impl From<FileTime> for ItemTimes {
    fn from(modified: FileTime) -> Self {
        Self { modified: Some(modified), accessed: None }
    }
}

impl ItemTimes {
    pub(crate) fn raw(self) -> io::Result<rustix::fs::Timestamps> {
        let one = |time: Option<FileTime>| match time {
            None => Ok(Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT }),
            // Above the range sit the magic values UTIME_NOW and UTIME_OMIT: a peer's number must never
            // be taken for one of them.
            Some(time) if time.nanos >= 1_000_000_000 => Err(Errno::INVAL),
            Some(time) => Ok(Timespec { tv_sec: time.seconds, tv_nsec: time.nanos.into() }),
        };
        Ok(rustix::fs::Timestamps { last_access: one(self.accessed)?, last_modification: one(self.modified)? })
    }
}

/// The parts of `struct stat` that a copy needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stat {
    /// Whether it is a file, a directory, a link or something else.
    pub kind: Kind,
    /// Length in bytes.
    pub size: u64,
    /// Permission bits with setuid, setgid and sticky: at most `0o7777`.
    pub mode: u32,
    /// When the content was last read, as far as the file system writes that down.
    pub atime: FileTime,
    /// When the content last changed.
    pub mtime: FileTime,
    /// When content or metadata last changed.
    pub ctime: FileTime,
    /// When it was made; `None` where the file system, or the system, does not say.
    pub born: Option<FileTime>,
    /// The file system it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// The user who owns it.
    pub uid: u32,
    /// The group that it belongs to.
    pub gid: u32,
    /// Space taken, in units of 512 bytes.
    pub blocks_512: u64,
    /// Of a device, the number of its driver, and its own among those of that driver.
    pub numbers: (u32, u32),
    /// It cannot be changed, only grows, or is not to be dumped (`chattr +i`, `+a`, `+d`), where the system says so.
    pub is_flagged: bool,
}

impl Stat {
    // The fields' C types differ by architecture and system, so a cast needless here is needed there.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn new(raw: &rustix::fs::Stat) -> Stat {
        let time = |seconds: i64, nanos: u64| FileTime { seconds, nanos: u32::try_from(nanos).unwrap_or(0) };
        Stat {
            kind: FileType::from_raw_mode(raw.st_mode).into(),
            size: u64::try_from(raw.st_size).unwrap_or(0),
            mode: raw.st_mode as u32 & 0o7777,
            atime: time(raw.st_atime as i64, raw.st_atime_nsec as u64),
            mtime: time(raw.st_mtime as i64, raw.st_mtime_nsec as u64),
            ctime: time(raw.st_ctime as i64, raw.st_ctime_nsec as u64),
            born: None,
            device: raw.st_dev as u64,
            inode: raw.st_ino as u64,
            links: raw.st_nlink as u64,
            uid: raw.st_uid,
            gid: raw.st_gid,
            blocks_512: raw.st_blocks as u64,
            numbers: (rustix::fs::major(raw.st_rdev as _), rustix::fs::minor(raw.st_rdev as _)),
            is_flagged: false,
        }
    }

    #[cfg(target_os = "linux")]
    fn of_statx(raw: &rustix::fs::Statx) -> Stat {
        use rustix::fs::StatxAttributes;
        let time = |time: rustix::fs::StatxTimestamp| FileTime { seconds: time.tv_sec, nanos: time.tv_nsec };
        let flags = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND | StatxAttributes::NODUMP;
        let has_born = rustix::fs::StatxFlags::from_bits_retain(raw.stx_mask).contains(rustix::fs::StatxFlags::BTIME);
        Stat {
            kind: FileType::from_raw_mode(raw.stx_mode.into()).into(),
            size: raw.stx_size,
            mode: u32::from(raw.stx_mode) & 0o7777,
            atime: time(raw.stx_atime),
            mtime: time(raw.stx_mtime),
            ctime: time(raw.stx_ctime),
            born: has_born.then(|| time(raw.stx_btime)),
            device: rustix::fs::makedev(raw.stx_dev_major, raw.stx_dev_minor),
            inode: raw.stx_ino,
            links: raw.stx_nlink.into(),
            uid: raw.stx_uid,
            gid: raw.stx_gid,
            blocks_512: raw.stx_blocks,
            numbers: (raw.stx_rdev_major, raw.stx_rdev_minor),
            is_flagged: raw.stx_attributes.intersects(flags),
        }
    }
}

/// How old an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatSource {
    /// As the system has it. NFS, SMB and FUSE keep what they were told for seconds.
    Cached,
    /// As whoever stores it says now. On local file systems there is no difference.
    Stored,
}

/// `statx(2)`, Linux 4.11.
#[cfg(target_os = "linux")]
pub(super) fn statx(
    at: BorrowedFd<'_>,
    name: &[u8],
    flags: AtFlags,
    mask: rustix::fs::StatxFlags,
) -> Result<rustix::fs::Statx, Errno> {
    if crate::PORTABLE { Err(Errno::NOSYS) } else { retry(|| rustix::fs::statx(at, name, flags, mask)) }
}

/// Looks at one name, or with [`AtFlags::EMPTY_PATH`] and none at what is open.
#[cfg(target_os = "linux")]
pub(super) fn stat_at(at: BorrowedFd<'_>, name: &[u8], flags: AtFlags, freshness: StatSource) -> io::Result<Stat> {
    use rustix::fs::StatxFlags;
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    // As the older calls: looking at a place does not mount it.
    let flags = flags | AtFlags::NO_AUTOMOUNT;
    // The older calls know no such flag.
    let sync = if freshness == StatSource::Stored { AtFlags::STATX_FORCE_SYNC } else { AtFlags::empty() };
    match statx(at, name, flags | sync, mask) {
        Ok(raw) => Ok(Stat::of_statx(&raw)),
        // Linux before 4.11, and containers that do not let it through.
        Err(Errno::NOSYS | Errno::PERM) => stat_at_without_born(at, name, flags),
        Err(error) => Err(error.into()),
    }
}

/// See the other.
#[cfg(not(target_os = "linux"))]
pub(super) fn stat_at(at: BorrowedFd<'_>, name: &[u8], flags: AtFlags, _: StatSource) -> io::Result<Stat> {
    stat_at_without_born(at, name, flags)
}

fn stat_at_without_born(at: BorrowedFd<'_>, name: &[u8], flags: AtFlags) -> io::Result<Stat> {
    let raw =
        if name.is_empty() { retry(|| rustix::fs::fstat(at))? } else { retry(|| rustix::fs::statat(at, name, flags))? };
    Ok(Stat::new(&raw))
}

impl Dir {
    /// Whether a mounted file system begins here. Of what lies above, nothing else is told.
    ///
    /// # Errors
    /// Those of the system.
    pub fn is_mount_top(&self) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{StatxAttributes, StatxFlags};
            let found = statx(self.as_fd(), b"", AtFlags::EMPTY_PATH, StatxFlags::TYPE);
            if let Ok(found) = found.as_ref()
                && found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
            {
                return Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
            }
        }
        // Before Linux 5.8. A bind mount of the same file system does not show.
        let (own, above) = (self.stat_self()?, stat_at(self.as_fd(), b"..", AtFlags::empty(), StatSource::Cached)?);
        Ok(own.device != above.device || own.inode == above.inode)
    }
}

/// Looks at a path the user named, in the whole file system: for roots, not for what is below one.
pub fn stat_path(path: &Path, follow: bool) -> io::Result<Stat> {
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    stat_at(rustix::fs::CWD, path.as_os_str().as_bytes(), flags, StatSource::Cached)
}

/// Looks at what is open.
pub fn stat_file(file: impl AsFd) -> io::Result<Stat> {
    stat_open(file.as_fd(), StatSource::Cached)
}

/// Looks at what is open, past what this system remembers of it: NFS, SMB and FUSE ask whoever stores it.
pub fn stat_file_uncached(file: impl AsFd) -> io::Result<Stat> {
    stat_open(file.as_fd(), StatSource::Stored)
}

pub(super) fn stat_open(open: BorrowedFd<'_>, freshness: StatSource) -> io::Result<Stat> {
    #[cfg(target_os = "linux")]
    let flags = AtFlags::EMPTY_PATH;
    #[cfg(not(target_os = "linux"))]
    let flags = AtFlags::empty();
    stat_at(open, b"", flags, freshness)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn stat_and_statx_say_the_same_but_for_the_birth() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), "content").unwrap();
        std::os::unix::fs::symlink("f", directory.path().join("l")).unwrap();
        let open = std::fs::File::open(directory.path()).unwrap();
        for name in [&b"f"[..], b"l", b""] {
            let flags = if name.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::SYMLINK_NOFOLLOW };
            let old = stat_at_without_born(open.as_fd(), name, flags).unwrap();
            for freshness in [StatSource::Cached, StatSource::Stored] {
                let new = stat_at(open.as_fd(), name, flags, freshness).unwrap();
                assert_eq!(Stat { born: None, ..new }, old);
            }
        }
        let missing = stat_at(open.as_fd(), b"missing", AtFlags::SYMLINK_NOFOLLOW, StatSource::Cached).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(stat_path(Path::new(""), true).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
