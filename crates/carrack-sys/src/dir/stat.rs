//! What the file system says about one file, in the program's own types.

use crate::retry;
use rustix::fd::AsFd;
use rustix::fs::{FileType, Timespec};
use rustix::io::Errno;
use std::io;
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
pub struct Time {
    /// Seconds since 1970-01-01 UTC; negative before.
    pub seconds: i64,
    /// Nanoseconds within the second, below 1,000,000,000, always counted forward.
    pub nanos: u32,
}

/// The pair (access time, modification time) that changes only the latter.
pub(crate) fn only_mtime(mtime: Time) -> io::Result<rustix::fs::Timestamps> {
    // Above the range sit the magic values UTIME_NOW and UTIME_OMIT: a peer's number must never
    // be taken for one of them.
    if mtime.nanos >= 1_000_000_000 {
        return Err(Errno::INVAL.into());
    }
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let set = Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanos.into() };
    Ok(rustix::fs::Timestamps { last_access: omit, last_modification: set })
}

/// The parts of `struct stat` that a copy needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Length in bytes.
    pub size: u64,
    /// Permission bits with setuid, setgid and sticky: at most `0o7777`.
    pub mode: u32,
    /// When the content last changed.
    pub mtime: Time,
    /// When content or metadata last changed.
    pub ctime: Time,
    /// The file system it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Space taken, in units of 512 bytes.
    pub blocks_512: u64,
}

impl Stat {
    // The fields' C types differ by architecture and system, so a cast needless here is needed there.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn new(raw: &rustix::fs::Stat) -> Stat {
        let time = |seconds: i64, nanos: u64| Time { seconds, nanos: u32::try_from(nanos).unwrap_or(0) };
        Stat {
            kind: FileType::from_raw_mode(raw.st_mode).into(),
            size: u64::try_from(raw.st_size).unwrap_or(0),
            mode: raw.st_mode as u32 & 0o7777,
            mtime: time(raw.st_mtime as i64, raw.st_mtime_nsec as u64),
            ctime: time(raw.st_ctime as i64, raw.st_ctime_nsec as u64),
            device: raw.st_dev as u64,
            inode: raw.st_ino as u64,
            links: raw.st_nlink as u64,
            uid: raw.st_uid,
            gid: raw.st_gid,
            blocks_512: raw.st_blocks as u64,
        }
    }
}

/// Looks at a path the user named, in the whole file system: for roots, not for what is below one.
pub fn stat_path(path: &Path, follow: bool) -> io::Result<Stat> {
    let raw = if follow { retry(|| rustix::fs::stat(path))? } else { retry(|| rustix::fs::lstat(path))? };
    Ok(Stat::new(&raw))
}

/// Looks at what is open.
pub fn stat_file(file: impl AsFd) -> io::Result<Stat> {
    let raw = retry(|| rustix::fs::fstat(file.as_fd()))?;
    Ok(Stat::new(&raw))
}
