//! A directory held open, and everything a copy does below it.
//!
//! Two kinds of argument. `rel` is a path below the directory, of any length: `.` and empty components mean nothing (so
//! `""` is the directory itself, and a trailing `/` is ignored), `..` and a leading `/` are refused. `name` is one
//! component. Both are raw bytes, and a NUL byte is refused; every refusal is [`io::ErrorKind::InvalidInput`].
//!
//! Invariants: no method leaves the directory, whatever links are in the tree and whoever changes it meanwhile, but one
//! that is told [`Links::Anywhere`]; methods that take a `name` never follow a link.

mod beneath;
mod entries;
mod file_system;
mod held;
mod mounts;
mod name;
mod owner;
mod passed;
mod stat;
#[cfg(test)]
mod tests;
mod xattrs;

pub use entries::{DirEntry, Entries};
pub use file_system::{ChangeTimes, FileSystem, file_system};
pub use held::HeldEntry;
pub use mounts::{Mounts, PlaceWithin};
pub use owner::set_owner;
pub use passed::PassedWays;
pub use stat::{FileTime, ItemTimes, Kind, Stat, stat_file, stat_file_uncached, stat_path};
use stat::{StatSource, stat_open};
pub use xattrs::{extended_attribute, extended_attributes, remove_extended_attribute, set_extended_attribute};

use crate::{PORTABLE, retry};
use beneath::PASS;
use name::{components, single};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// What to do with symbolic links met on the way, the last component included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// A link is an error (`ELOOP`).
    Refuse,
    /// A link is followed if it stays beneath the directory; one that leads out, or is absolute, is an error (`EXDEV`).
    Beneath,
    /// A link is followed wherever it leads, as the system does for its user. Only for looking and reading, and only
    /// for who may read everything that this process may.
    Anywhere,
}

/// Room left on a file system, for this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this user may still write.
    pub bytes_available: u64,
    /// Files; `u64::MAX` where the file system makes them as needed.
    pub inodes_available: u64,
}

/// For reading, without ever waiting for a writer of a FIFO.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const READ_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An attribute (`chattr`) that keeps a file or a directory from being changed, by its owner and by root, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Nothing of it changes (`+i`).
    Immutable,
    /// It is added to, and nothing of it goes (`+a`).
    AppendOnly,
}

/// An open directory: the root of a transfer, or a directory below one.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Calls that open and look.
impl Dir {
    /// Opens a directory the user named, anywhere, following links: the one way in from a path.
    pub fn open_ambient(path: &Path) -> io::Result<Dir> {
        let fd = retry(|| rustix::fs::open(path, READ_DIR, Mode::empty()))?;
        Ok(Dir { fd })
    }

    /// A second handle on the same directory.
    pub fn try_clone(&self) -> io::Result<Dir> {
        let fd = self.fd.try_clone()?;
        Ok(Dir { fd })
    }

    /// Opens a directory below this one; `""` opens this one afresh.
    pub fn open_dir(&self, rel: &[u8], links: Links) -> io::Result<Dir> {
        self.open_parts(&components(rel)?, links)
    }

    fn open_parts(&self, parts: &[&[u8]], links: Links) -> io::Result<Dir> {
        Ok(Dir { fd: beneath::open(self.as_fd(), parts, links, READ_DIR)? })
    }

    /// Opens a directory below this one to look at what is in it by name: whoever may pass through it may. No listing.
    pub fn pass_dir(&self, rel: &[u8], links: Links) -> io::Result<Dir> {
        Ok(Dir { fd: beneath::open(self.as_fd(), &components(rel)?, links, PASS)? })
    }

    /// Opens what a path leads to only to look at it: it is neither read nor written, and need not be readable. A link
    /// in the last component is followed, too; under [`Links::Refuse`] it is an error.
    pub fn reach(&self, rel: &[u8], links: Links) -> io::Result<OwnedFd> {
        beneath::open(self.as_fd(), &components(rel)?, links, beneath::LOOK)
    }

    /// Opens anything for reading, without ever waiting for a writer of a FIFO. The caller looks
    /// with [`stat_file`] whether it got a regular file, and then may call
    /// [`crate::file::clear_nonblock`].
    pub fn open_read(&self, rel: &[u8], links: Links) -> io::Result<File> {
        let fd = beneath::open(self.as_fd(), &components(rel)?, links, READ)?;
        Ok(fd.into())
    }

    /// Creates a file that did not exist, readable by its owner alone, for reading and writing.
    pub fn create_new(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        self.open_name(name, flags, mode)
    }

    /// Opens a file that is there for reading and writing, never through a link. What else may stand there the caller
    /// looks at with [`stat_file`]; a FIFO is not waited for.
    pub fn open_existing(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
        self.open_name(name, flags, Mode::empty())
    }

    /// Opens what is there for writing, without creating or truncating: devices and FIFOs. Never
    /// waits: a FIFO without a reader is `ENXIO`, and writing to it does not wait either until
    /// [`crate::file::clear_nonblock`].
    pub fn open_write(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
        self.open_name(name, flags, Mode::empty())
    }

    fn open_name(&self, name: &[u8], flags: OFlags, mode: Mode) -> io::Result<File> {
        let (name, flags) = (single(name)?, flags | OFlags::CLOEXEC);
        let fd = retry(|| rustix::fs::openat(&self.fd, name, flags, mode))?;
        Ok(fd.into())
    }

    /// Looks at something below. A link in the last component is followed under [`Links::Beneath`] and
    /// [`Links::Anywhere`]; under [`Links::Refuse`] it is described itself.
    pub fn stat(&self, rel: &[u8], links: Links) -> io::Result<Stat> {
        self.stat_with(rel, links, StatSource::Cached)
    }

    /// As [`Dir::stat`], past what this system remembers: NFS, SMB and FUSE ask whoever stores it.
    pub fn stat_uncached(&self, rel: &[u8], links: Links) -> io::Result<Stat> {
        self.stat_with(rel, links, StatSource::Stored)
    }

    fn stat_with(&self, rel: &[u8], links: Links, freshness: StatSource) -> io::Result<Stat> {
        let parts = components(rel)?;
        let Some((last, parents)) = parts.split_last() else {
            return stat::stat_open(self.as_fd(), freshness);
        };
        let look = |at| stat::stat_at(at, last, AtFlags::SYMLINK_NOFOLLOW, freshness);
        let found = if parents.is_empty() {
            look(self.as_fd())?
        } else {
            let parent = beneath::open(self.as_fd(), parents, links, PASS)?;
            look(parent.as_fd())?
        };
        if found.kind == Kind::Symlink && links != Links::Refuse {
            let target = beneath::open(self.as_fd(), &parts, links, beneath::LOOK)?;
            return stat::stat_open(target.as_fd(), freshness);
        }
        Ok(found)
    }

    /// What a path leads to, links that stay beneath the directory followed (`None` where nothing is), and the path to
    /// it without a link, empty for the directory itself. Of something that is not there it is the path of what there
    /// is of the way, and the rest.
    pub fn look(&self, rel: &[u8]) -> io::Result<(Option<Stat>, Vec<u8>)> {
        let (found, names) = beneath::look(self.as_fd(), &components(rel)?)?;
        Ok((found, names.join(&b'/')))
    }

    /// Looks at one entry, never through a link.
    pub fn stat_at(&self, name: &[u8]) -> io::Result<Stat> {
        stat_entry(self.as_fd(), single(name)?)
    }

    /// Looks at the directory itself.
    pub fn stat_self(&self) -> io::Result<Stat> {
        stat_file(self)
    }

    /// Where a link points, byte for byte.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        let target = rustix::fs::readlinkat(&self.fd, single(name)?, Vec::new())?;
        Ok(target.into_bytes())
    }

    /// Starts reading the names in this directory, from the first, independent of other readers.
    pub fn entries(&self) -> io::Result<Entries> {
        // A duplicate would share the read position; opening "." again does not.
        let fd = self.open_parts(&[], Links::Refuse)?.fd;
        Entries::new(fd)
    }
}

fn stat_entry(at: BorrowedFd<'_>, name: &[u8]) -> io::Result<Stat> {
    stat::stat_at(at, name, AtFlags::SYMLINK_NOFOLLOW, StatSource::Cached)
}

/// Calls that make, rename, remove and set.
impl Dir {
    /// Makes one directory; the process's umask applies to `mode`.
    pub fn make_dir(&self, name: &[u8], mode: u32) -> io::Result<()> {
        let (name, mode) = (single(name)?, mode_bits(mode));
        Ok(retry(|| rustix::fs::mkdirat(&self.fd, name, mode))?)
    }

    /// Opens a directory below, making what is missing on the way with mode 0700: the modes meant
    /// are set last, or a read-only directory could not be filled. Nothing is created through a
    /// link that dangles.
    pub fn make_dir_all(&self, rel: &[u8], links: Links) -> io::Result<Dir> {
        let parts = components(rel)?;
        match self.open_parts(&parts, links) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let mut here = self.open_parts(&[], links)?;
        for (index, part) in parts.iter().enumerate() {
            here = match here.open_or_make(part, links) {
                // A link that leaves `here` may still be beneath the root.
                Err(error) if links == Links::Beneath && is(&error, Errno::XDEV) => {
                    self.open_parts(&parts[..=index], links)?
                }
                other => other?,
            };
        }
        Ok(here)
    }

    fn open_or_make(&self, name: &[u8], links: Links) -> io::Result<Dir> {
        match self.open_parts(&[name], links) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        match self.make_dir(name, 0o700) {
            // Somebody else made it first, or it is a dangling link: opening tells which.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        self.open_parts(&[name], links)
    }

    /// Renames an entry, replacing what bears the new name.
    pub fn rename(&self, from: &[u8], to_dir: &Dir, to: &[u8]) -> io::Result<()> {
        let (from, to) = (single(from)?, single(to)?);
        Ok(rustix::fs::renameat(&self.fd, from, &to_dir.fd, to)?)
    }

    /// Renames an entry to a name that must not exist ([`io::ErrorKind::AlreadyExists`] if it
    /// does), as one step. Where the system cannot (NFS, old kernels) a hard link takes the new
    /// name first, which serves files but not directories.
    pub fn rename_noreplace(&self, from: &[u8], to_dir: &Dir, to: &[u8]) -> io::Result<()> {
        match self.rename_if_free(from, to_dir, to) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.rename_by_link(from, to_dir, to),
            other => other,
        }
    }

    /// As [`Dir::rename_noreplace`], by the one call alone: [`io::ErrorKind::Unsupported`] where the
    /// system has none for it.
    pub fn rename_if_free(&self, from: &[u8], to_dir: &Dir, to: &[u8]) -> io::Result<()> {
        let (from, to) = (single(from)?, single(to)?);
        self.rename_with(from, to_dir, to, RenameFlags::NOREPLACE)
    }

    /// Exchanges two names, as one step ([`io::ErrorKind::Unsupported`] where the system cannot).
    pub fn exchange(&self, one: &[u8], other: &[u8]) -> io::Result<()> {
        let (one, other) = (single(one)?, single(other)?);
        self.rename_with(one, self, other, RenameFlags::EXCHANGE)
    }

    fn rename_with(&self, from: &[u8], to_dir: &Dir, to: &[u8], flags: RenameFlags) -> io::Result<()> {
        let unsupported = || Err(io::ErrorKind::Unsupported.into());
        if !has_renameat2() {
            return unsupported();
        }
        match rustix::fs::renameat_with(&self.fd, from, &to_dir.fd, to, flags) {
            // EINVAL is a file system without the flag (renameat2(2)).
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => unsupported(),
            other => Ok(other?),
        }
    }

    /// `link(2)` refuses to replace, everywhere and atomically. A crash in between leaves the file
    /// under both names, whole.
    fn rename_by_link(&self, from: &[u8], to_dir: &Dir, to: &[u8]) -> io::Result<()> {
        self.link(from, to_dir, to)?;
        self.unlink(from)
    }

    /// Gives an entry that is no directory a second name, which must not exist: one that is a link keeps its target.
    pub fn link(&self, from: &[u8], to_dir: &Dir, to: &[u8]) -> io::Result<()> {
        let (from, to) = (single(from)?, single(to)?);
        Ok(rustix::fs::linkat(&self.fd, from, &to_dir.fd, to, AtFlags::empty())?)
    }

    /// Removes a name that is not a directory.
    pub fn unlink(&self, name: &[u8]) -> io::Result<()> {
        let name = single(name)?;
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &[u8]) -> io::Result<()> {
        let name = single(name)?;
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes a link holding `target`, which is text and may be anything but empty.
    pub fn symlink(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.fd, single(name)?)?)
    }

    /// Sets times of an entry, of a link itself if it is one.
    pub fn set_times(&self, name: &[u8], times: impl Into<ItemTimes>) -> io::Result<()> {
        let (name, times) = (single(name)?, times.into().raw()?);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(retry(|| rustix::fs::utimensat(&self.fd, name, &times, flags))?)
    }

    /// Sets the permissions of an entry (the low 12 bits of `mode`). On a link it is an error.
    pub fn set_mode(&self, name: &[u8], mode: u32) -> io::Result<()> {
        let (name, mode) = (single(name)?, mode_bits(mode));
        let set = if PORTABLE { Err(Errno::NOSYS) } else { chmod_nofollow(self.as_fd(), name, mode) };
        match set {
            Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => self.set_mode_by_open(name, mode),
            other => Ok(other?),
        }
    }

    /// Before Linux 6.6 no call changes a mode without following: open the file itself first. What may not be read is
    /// opened as a place alone, where the system has that.
    fn set_mode_by_open(&self, name: &[u8], mode: Mode) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.open_name(name, flags, Mode::empty()) {
            Ok(file) => Ok(retry(|| rustix::fs::fchmod(&file, mode))?),
            #[cfg(target_os = "linux")]
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.set_mode_by_place(name, mode),
            Err(error) => Err(error),
        }
    }

    /// By `/proc`, whose entry of an open place leads to that place itself, whatever its name has become.
    #[cfg(target_os = "linux")]
    fn set_mode_by_place(&self, name: &[u8], mode: Mode) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let place = self.open_name(name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        if stat_open(place.as_fd(), StatSource::Cached)?.kind == Kind::Symlink {
            return Err(Errno::LOOP.into());
        }
        Ok(retry(|| rustix::fs::chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), mode))?)
    }

    /// Waits until all that was written to this file system is on its disks: one call for a batch
    /// of small files. Linux reports failed writes here since 5.8.
    pub fn sync_filesystem(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        match retry(|| rustix::fs::syncfs(&self.fd)) {
            Err(Errno::NOSYS | Errno::INVAL | Errno::PERM) => {}
            other => return Ok(other?),
        }
        self.sync()
    }

    /// Whether the file system takes no writes: it was mounted so, or it has met an error and given up.
    pub fn is_read_only(&self) -> io::Result<bool> {
        Ok(retry(|| rustix::fs::fstatvfs(&self.fd))?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
    }

    /// Whether names can be added to it and nothing else (`chattr +a`); `false` where the file system does not tell.
    pub fn is_append_only(&self) -> bool {
        self.lock() == Some(Lock::AppendOnly)
    }

    /// Which attribute keeps it from being changed; `None` where it has none, or the file system does not tell.
    pub fn lock(&self) -> Option<Lock> {
        self.lock_at(b"")
    }

    /// Which attribute keeps an entry of it from being changed, a link not followed.
    pub fn lock_of(&self, name: &[u8]) -> Option<Lock> {
        self.lock_at(single(name).ok()?)
    }

    #[cfg(target_os = "linux")]
    fn lock_at(&self, name: &[u8]) -> Option<Lock> {
        use rustix::fs::{StatxAttributes, StatxFlags};
        let how = if name.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::SYMLINK_NOFOLLOW };
        let (immutable, append_only) = match stat::statx(self.as_fd(), name, how, StatxFlags::TYPE) {
            Ok(found) => {
                let has = |attribute| found.stx_attributes.contains(attribute);
                (has(StatxAttributes::IMMUTABLE), has(StatxAttributes::APPEND))
            }
            Err(Errno::NOSYS | Errno::PERM) => self.lock_by_flags(name)?,
            Err(_) => return None,
        };
        if immutable { Some(Lock::Immutable) } else { append_only.then_some(Lock::AppendOnly) }
    }

    /// The same before Linux 4.11: what is there is opened, if that has no effect.
    #[cfg(target_os = "linux")]
    fn lock_by_flags(&self, name: &[u8]) -> Option<(bool, bool)> {
        use rustix::fs::IFlags;
        let flags = if name.is_empty() {
            retry(|| rustix::fs::ioctl_getflags(&self.fd))
        } else {
            let kind = stat_entry(self.as_fd(), name).ok()?.kind;
            let opens = matches!(kind, Kind::File | Kind::Dir);
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
            let file = opens.then(|| self.open_name(name, flags, Mode::empty()).ok()).flatten()?;
            retry(|| rustix::fs::ioctl_getflags(&file))
        };
        let flags = flags.ok()?;
        Some((flags.contains(IFlags::IMMUTABLE), flags.contains(IFlags::APPEND)))
    }

    /// Not known.
    #[cfg(not(target_os = "linux"))]
    fn lock_at(&self, _name: &[u8]) -> Option<Lock> {
        None
    }

    /// Whether [`Dir::sync_filesystem`] reaches the disks. FUSE and SMB send what was written on to whoever stores it
    /// and, unlike at an `fsync`, do not ask for more (Linux 6.12); other systems have no such call.
    pub fn syncs_as_one(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            retry(|| rustix::fs::fstatfs(&self.fd)).is_ok_and(|found| !is_fuse_or_smb(&found))
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Whether what is here keeps its inode's number for as long as it exists. FUSE and SMB may give another one to
    /// what nobody has had open for a while; so may overlayfs to directories, if its layers lie on several file
    /// systems, which this does not tell.
    pub fn keeps_inodes(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            retry(|| rustix::fs::fstatfs(&self.fd)).is_ok_and(|found| !is_fuse_or_smb(&found))
        }
        #[cfg(not(target_os = "linux"))]
        true
    }

    /// Whether upper and lower case, and the forms of a letter, are one in this directory, where the
    /// file system decides that for each directory and says so (`chattr +F` on ext4, f2fs, tmpfs). A
    /// directory made in it is as it is.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the file system says nothing of its directories, and those of the system.
    pub fn folds_names(&self) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        {
            /// `FS_CASEFOLD_FL`, for which rustix has no name.
            const CASEFOLD: u32 = 0x4000_0000;
            match retry(|| rustix::fs::ioctl_getflags(&self.fd)) {
                Ok(flags) => Ok(flags.bits() & CASEFOLD != 0),
                // The last two are answers of a container that lets no such call through.
                Err(Errno::NOTTY | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::PERM | Errno::ACCESS) => {
                    Err(io::ErrorKind::Unsupported.into())
                }
                Err(error) => Err(error.into()),
            }
        }
        #[cfg(not(target_os = "linux"))]
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets the permissions of the directory itself (the low 12 bits of `mode`).
    pub fn set_own_mode(&self, mode: u32) -> io::Result<()> {
        let mode = mode_bits(mode);
        Ok(retry(|| rustix::fs::fchmod(&self.fd, mode))?)
    }

    /// Sets the modification time of the directory itself, and leaves the access time alone.
    pub fn set_own_times(&self, mtime: FileTime) -> io::Result<()> {
        let times = ItemTimes::from(mtime).raw()?;
        Ok(retry(|| rustix::fs::futimens(&self.fd, &times))?)
    }

    /// Waits until the names in this directory are on disk.
    pub fn sync(&self) -> io::Result<()> {
        match retry(|| rustix::fs::fsync(&self.fd)) {
            // Some network and FUSE file systems have no fsync for directories: nothing to wait for.
            Err(Errno::INVAL) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Room left on the file system this directory is on.
    pub fn free_space(&self) -> io::Result<Space> {
        let found = retry(|| rustix::fs::fstatvfs(&self.fd))?;
        // btrfs and many network file systems count no inodes and report a total of zero.
        let counted = found.f_files > 0;
        Ok(Space {
            bytes_available: found.f_bavail.saturating_mul(found.f_frsize),
            inodes_available: if counted { found.f_favail } else { u64::MAX },
        })
    }
}

#[cfg(target_os = "linux")]
fn is_fuse_or_smb(found: &rustix::fs::StatFs) -> bool {
    const FUSE: u32 = 0x6573_5546;
    const CIFS: u32 = 0xff53_4d42;
    const SMB2: u32 = 0xfe53_4d42;
    // Magic numbers have 32 bits, in a field that is wider on most machines, and signed.
    [FUSE, CIFS, SMB2].contains(&(found.f_type as u32))
}

/// Whether this system has `renameat2` (Linux 3.15) and lets it through. Asked once, of a name that nothing has: a
/// later EPERM is about the directory's permissions. Older sandboxes answer EPERM to whatever they do not know.
fn has_renameat2() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        let nothing = || rustix::fs::renameat_with(rustix::fs::CWD, "", rustix::fs::CWD, "", RenameFlags::NOREPLACE);
        !PORTABLE && !matches!(nothing(), Err(Errno::NOSYS | Errno::PERM))
    })
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

pub(crate) fn mode_bits(mode: u32) -> Mode {
    // The type of the raw mode is narrower outside Linux; twelve bits fit in either.
    Mode::from_raw_mode((mode & 0o7777) as rustix::fs::RawMode)
}

/// `fchmodat2(2)`, Linux 6.6. Neither libc nor rustix wraps it; its number is the same on these
/// architectures.
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
#[allow(unsafe_code)]
fn chmod_nofollow(at: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    const FCHMODAT2: libc::c_long = 452;
    let name = std::ffi::CString::new(name).map_err(|_| Errno::INVAL)?;
    let (raw, flags) = (at.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: the descriptor is borrowed and the name NUL-terminated for the whole call, which
    // writes to no memory; each argument is passed in the register width the kernel reads.
    let done = unsafe { libc::syscall(FCHMODAT2, raw, name.as_ptr(), mode.bits(), flags) };
    if done == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
fn chmod_nofollow(_: BorrowedFd<'_>, _: &[u8], _: Mode) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}
