//! Reading, writing and describing one open file, always at a stated offset.
//!
//! The file's own position is never used, so any number of threads may share one descriptor.
//! Hints (`preallocate`, `drop_cache`) succeed where the system has nothing of the kind;
//! everything that touches data or metadata reports its error.

use crate::dir::{ItemTimes, mode_bits};
use crate::retry;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are looked at, and written, at once where a file system makes no holes.
const ZEROED_AT_ONCE: usize = 256 << 10;
const COPIED_AT_ONCE: usize = 256 << 10;

/// Opens a file that the user named, or that may have been put there for the user: never through a link in its last
/// name, never waiting for the writer of a FIFO. What it is the caller looks at.
pub fn open_unfollowed(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(retry(|| rustix::fs::open(path, flags, Mode::empty()))?.into())
}

/// Reads once at `offset`: 0 is the end of the file, fewer than asked is no error.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads until the buffer is full or the file ends; returns how many bytes it holds.
pub fn read_full_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_at(file, &mut buffer[filled..], advance(offset, filled)?)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Writes all of `bytes` at `offset`. A file that takes no more is [`io::ErrorKind::WriteZero`].
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write_at(&bytes[written..], advance(offset, written)?) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Copies a range of one file to the same place in another: inside the kernel, and by sharing what is stored, where the
/// file systems can do that. Less than all of it is an error, as where the source ends early.
#[cfg(target_os = "linux")]
pub fn copy_range(from: &File, to: &File, offset: u64, len: u64) -> io::Result<()> {
    let end = offset.checked_add(len).ok_or(Errno::OVERFLOW)?;
    let (mut read, mut written) = (offset, offset);
    while read < end {
        let want = usize::try_from(end - read).unwrap_or(usize::MAX);
        match retry(|| rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), want)) {
            Ok(0) if read > offset => return Err(io::ErrorKind::UnexpectedEof.into()),
            // What is copied in the kernel lies on one file system, which knows how. One that does not may say that
            // there is nothing.
            Ok(0) | Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                return copy_by_reading(from, to, (read, end), false);
            }
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Bytes are read and written.
#[cfg(not(target_os = "linux"))]
pub fn copy_range(from: &File, to: &File, offset: u64, len: u64) -> io::Result<()> {
    copy_by_reading(from, to, (offset, offset.checked_add(len).ok_or(Errno::OVERFLOW)?), false)
}

/// Has `to` share all blocks of `from`, as it is at one moment, until either is written to; what `to` held is gone. The
/// file system writes what it holds of `from` first.
///
/// # Errors
/// Where the file systems are two, or know no such thing.
#[cfg(target_os = "linux")]
pub fn share_blocks(from: &File, to: &File) -> io::Result<()> {
    Ok(retry(|| rustix::fs::ioctl_ficlone(to, from))?)
}

/// Nothing is shared.
#[cfg(not(target_os = "linux"))]
pub fn share_blocks(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// As [`copy_range`], but what is zeros in the source is not written.
pub fn copy_but_zeros(from: &File, to: &File, offset: u64, len: u64) -> io::Result<()> {
    copy_by_reading(from, to, (offset, offset.checked_add(len).ok_or(Errno::OVERFLOW)?), true)
}

fn copy_by_reading(from: &File, to: &File, (start, end): (u64, u64), but_zeros: bool) -> io::Result<()> {
    let mut slice = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX).min(COPIED_AT_ONCE)];
    let mut at = start;
    while at < end {
        let want = slice.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        if read_full_at(from, &mut slice[..want], at)? < want {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !but_zeros || slice[..want].iter().any(|&byte| byte != 0) {
            write_all_at(to, &slice[..want], at)?;
        }
        at += want as u64;
    }
    Ok(())
}

/// Offsets come from the peer: one near 2^64 is refused, never wrapped.
fn advance(offset: u64, by: usize) -> io::Result<u64> {
    let sum = offset.checked_add(by as u64);
    sum.ok_or_else(|| Errno::OVERFLOW.into())
}

/// Reserves space for `len` bytes and makes the file at least that long, so that a full disk is
/// found at the start. `false` where the file system cannot; no zeros are written in its stead.
#[cfg(target_os = "linux")]
pub fn preallocate(file: &File, len: u64) -> io::Result<bool> {
    preallocate_range(file, 0, len)
}

/// The same for `len` bytes from `offset` on.
#[cfg(target_os = "linux")]
pub fn preallocate_range(file: &File, offset: u64, len: u64) -> io::Result<bool> {
    if len == 0 {
        return Ok(true);
    }
    let flags = rustix::fs::FallocateFlags::empty();
    match retry(|| rustix::fs::fallocate(file, flags, offset, len)) {
        Ok(()) => Ok(true),
        // The last two are what devices and FIFOs answer.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NODEV | Errno::SPIPE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes a range below the file's end read as zeros: by a hole where the file system can make one, else by writing
/// zeros over whatever is not zero. The file keeps its length.
pub fn zero(file: &File, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 || punch_hole(file, offset, len)? { Ok(()) } else { write_zeros(file, offset, len) }
}

/// `false` where the file system makes no holes.
#[cfg(target_os = "linux")]
fn punch_hole(file: &File, offset: u64, len: u64) -> io::Result<bool> {
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    match retry(|| rustix::fs::fallocate(file, flags, offset, len)) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NODEV | Errno::SPIPE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Zeros are written.
#[cfg(not(target_os = "linux"))]
fn punch_hole(_: &File, _: u64, _: u64) -> io::Result<bool> {
    Ok(false)
}

/// Writes zeros where something else is read: a hole stays one.
fn write_zeros(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let mut slice = vec![0; usize::try_from(len).unwrap_or(usize::MAX).min(ZEROED_AT_ONCE)];
    let mut done = 0;
    while done < len {
        let want = slice.len().min(usize::try_from(len - done).unwrap_or(usize::MAX));
        let at = offset.checked_add(done).ok_or(Errno::OVERFLOW)?;
        let read = read_full_at(file, &mut slice[..want], at)?;
        if read < want || slice[..want].iter().any(|&byte| byte != 0) {
            slice.fill(0);
            write_all_at(file, &slice[..want], at)?;
        }
        done += want as u64;
    }
    Ok(())
}

/// Without `fallocate` space is found as it is written.
#[cfg(not(target_os = "linux"))]
pub fn preallocate(_: &File, _: u64) -> io::Result<bool> {
    Ok(false)
}

/// Without `fallocate` space is found as it is written.
#[cfg(not(target_os = "linux"))]
pub fn preallocate_range(_: &File, _: u64, _: u64) -> io::Result<bool> {
    Ok(false)
}

/// Waits until the file's content, and what is needed to read it back, is on disk. After an error
/// the data must be taken as lost: Linux reports it once and forgets which pages failed.
pub fn sync_data(file: &File) -> io::Result<()> {
    // macOS's fsync leaves data in the drive's cache; the standard library asks for F_FULLFSYNC.
    file.sync_data()
}

/// Takes the file's lock, which no other open file has at the same time, without waiting; `false` if another has it. It
/// is held until the file is closed, by whatever end of the process, and binds only those who ask for it too.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match retry(|| rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Gives the lock back while the file is still open.
pub fn unlock(file: &File) -> io::Result<()> {
    Ok(retry(|| rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock))?)
}

/// Who has a file open for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Nobody on this host: no write is under way, and nobody has it mapped for writing.
    None,
    /// Somebody, in whatever way: writes may be under way, also those that were only handed to the kernel.
    Some,
    /// The system does not tell: the file is another user's, or the file system knows no leases.
    Unknown,
}

/// Whether anybody has a file open for writing that is open here for reading alone. A read lease is asked for, which
/// the kernel grants if nobody has, and given back at once. Who opens the file for writing in between waits that long.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn writers(file: &File) -> Writers {
    use std::os::fd::AsRawFd;
    let ask = |command, argument: libc::c_int| {
        // SAFETY: the descriptor is open, and these commands take a number.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // Who opens it meanwhile has the holder of the lease told by a signal. SIGIO would end the process; SIGURG is
    // ignored where nobody handles it.
    if ask(F_SETSIG, libc::SIGURG).is_err() {
        return Writers::Unknown;
    }
    match ask(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => {
            // It cannot fail for whoever holds one; closing the file would give it back as well.
            let _ = ask(libc::F_SETLEASE, libc::F_UNLCK);
            Writers::None
        }
        // NFS and SMB say the same where the server has granted no delegation, whoever has the file open.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && !is_remote(file) => Writers::Some,
        Err(_) => Writers::Unknown,
    }
}

/// Whether a server, and not this kernel, decides about leases: NFS, SMB (of the kernel's two clients), Ceph, AFS, 9P.
#[cfg(target_os = "linux")]
fn is_remote(file: &File) -> bool {
    const REMOTE: [u32; 7] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x517b, 0x00c3_6400, 0x5346_414f, 0x0102_1997];
    // The kernel's word is 32 bits wide; rustix has it as wide as the system does.
    retry(|| rustix::fs::fstatfs(file)).is_ok_and(|found| REMOTE.contains(&(found.f_type as u32)))
}

/// Which signal tells what happens to a descriptor; the C library hides it behind a feature.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

/// There are no leases.
#[cfg(not(target_os = "linux"))]
pub fn writers(_: &File) -> Writers {
    Writers::Unknown
}

/// Closes the file and tells what closing says. Some file systems (NFS, quotas, FUSE) write only then, and have no
/// other moment to tell that there was no room.
#[allow(unsafe_code)]
pub fn close(file: File) -> io::Result<()> {
    use std::os::fd::IntoRawFd;
    // SAFETY: the descriptor was owned by `file`, which no longer closes it.
    if unsafe { libc::close(file.into_raw_fd()) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Linux has closed it all the same; there is nothing left to try again.
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

/// What closing would say, of a file that others still use: a second descriptor of it is closed, which makes those file
/// systems write what they hold back.
pub fn flush(file: &File) -> io::Result<()> {
    close(file.try_clone()?)
}

/// Sets the permission bits (the low 12 of `mode`).
pub fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    let mode = mode_bits(mode);
    Ok(retry(|| rustix::fs::fchmod(file, mode))?)
}

/// Sets times.
pub fn set_times(file: &File, times: impl Into<ItemTimes>) -> io::Result<()> {
    let times = times.into().raw()?;
    Ok(retry(|| rustix::fs::futimens(file, &times))?)
}

/// Tells the kernel that a range (to the end, if `len` is 0) will not be read again. Pages not yet
/// on disk stay.
pub fn drop_cache(file: &File, offset: u64, len: u64) -> io::Result<()> {
    advise(file, offset, len, Advice::DropCache)
}

pub(crate) enum Advice {
    DropCache,
    Fetch,
}

#[cfg(target_os = "linux")]
pub(crate) fn advise(file: &File, offset: u64, len: u64, advice: Advice) -> io::Result<()> {
    let advice = match advice {
        Advice::DropCache => rustix::fs::Advice::DontNeed,
        Advice::Fetch => rustix::fs::Advice::WillNeed,
    };
    let len = std::num::NonZeroU64::new(len);
    match rustix::fs::fadvise(file, offset, len, advice) {
        // A pipe has no cache to advise on.
        Err(Errno::SPIPE | Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn advise(_: &File, _: u64, _: u64, _: Advice) -> io::Result<()> {
    Ok(())
}

/// The first offset at or after `offset` that holds data; `None` if only a hole is left. Where
/// holes are unknown everything is data. What lies between is zeros as far as the file system
/// knows: on some, dirty pages have been reported as holes (openzfs/zfs#15526).
pub fn next_data(file: &File, offset: u64) -> io::Result<Option<u64>> {
    match retry(|| rustix::fs::seek(file, SeekFrom::Data(offset))) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::SPIPE) => Ok(Some(offset)),
        Err(error) => Err(error.into()),
    }
}

/// Makes reads and writes answer `WouldBlock` instead of waiting, for whoever has this open description.
pub fn set_nonblock(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | OFlags::NONBLOCK)?)
}

/// Makes reads wait again, after an open that must not.
pub fn clear_nonblock(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK)?)
}

/// Has reads leave the access time alone from now on, where the file is this user's and the system has that.
pub fn keep_access_time(file: &File) {
    #[cfg(target_os = "linux")]
    if let Ok(flags) = rustix::fs::fcntl_getfl(file) {
        let _ = rustix::fs::fcntl_setfl(file, flags | OFlags::NOATIME);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::{FileTime, stat_file};

    #[test]
    fn bytes_come_back_from_where_they_went() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, b"tail", 100_000).unwrap();
        write_all_at(&file, b"", u64::MAX).unwrap();
        let mut buffer = [1; 8];
        assert_eq!(read_full_at(&file, &mut buffer, 99_998).unwrap(), 6);
        assert_eq!(&buffer[..6], b"\0\0tail");
        assert_eq!(read_at(&file, &mut buffer, 100_004).unwrap(), 0);
        assert!(write_all_at(&file, b"x", u64::MAX).is_err());
        // What the system would refuse first on most machines.
        assert_eq!(advance(u64::MAX - 1, 1).unwrap(), u64::MAX);
        assert!(advance(u64::MAX, 1).is_err());
    }

    #[test]
    fn full_device_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write_all_at(&full, b"x", 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(!preallocate(&full, 10).unwrap());
    }

    #[test]
    fn preallocation_lengthens_and_never_shortens() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, &[7; 9], 0).unwrap();
        if preallocate(&file, 8192).unwrap() {
            assert_eq!(stat_file(&file).unwrap().size, 8192);
            assert!(preallocate(&file, 10).unwrap());
            assert_eq!(stat_file(&file).unwrap().size, 8192);
        }
    }

    #[test]
    fn holes_are_found_or_reported_as_data() {
        let file = tempfile::tempfile().unwrap();
        let mib = 1 << 20;
        write_all_at(&file, b"x", mib).unwrap();
        file.set_len(3 * mib).unwrap();
        let first = next_data(&file, 0).unwrap().unwrap();
        assert!(first <= mib);
        assert_eq!(next_data(&file, mib).unwrap(), Some(mib));
        // A file system without holes answers 2 MiB here.
        let after = next_data(&file, 2 * mib).unwrap();
        assert!(after.is_none() || after == Some(2 * mib));
        assert_eq!(next_data(&file, 4 * mib).unwrap(), None);
        let (pipe, _write) = rustix::pipe::pipe().unwrap();
        assert_eq!(next_data(&pipe.into(), 5).unwrap(), Some(5));
    }

    #[test]
    fn zero_leaves_zeros_whatever_was_there() {
        let whole = vec![7; 3 * ZEROED_AT_ONCE + 1000];
        let (start, len) = (1000, whole.len() as u64 - 1500);
        let mut expected = whole.clone();
        expected[1000..whole.len() - 500].fill(0);
        for way in [zero, write_zeros] {
            let file = tempfile::tempfile().unwrap();
            write_all_at(&file, &whole, 0).unwrap();
            way(&file, start, len).unwrap();
            let mut found = vec![1; whole.len() + 1];
            assert_eq!(read_full_at(&file, &mut found, 0).unwrap(), whole.len());
            assert_eq!(found[..whole.len()], expected);
            assert!(way(&file, u64::MAX - 1, 10).is_err());
        }
        // What is a hole already stays one where zeros would be written.
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 << 20).unwrap();
        write_zeros(&file, 0, 4 << 20).unwrap();
        assert_eq!(stat_file(&file).unwrap().blocks_512, 0);
    }

    #[test]
    fn times_and_modes_are_kept() {
        let file = tempfile::tempfile().unwrap();
        let old = FileTime { seconds: -5, nanos: 999_999_999 };
        set_times(&file, old).unwrap();
        set_mode(&file, 0o100_640).unwrap();
        let stat = stat_file(&file).unwrap();
        assert_eq!((stat.mtime, stat.mode), (old, 0o640));
        // UTIME_NOW and UTIME_OMIT are out of range, not commands.
        let magic = FileTime { seconds: 0, nanos: (1 << 30) - 1 };
        assert!(set_times(&file, magic).is_err());
        sync_data(&file).unwrap();
    }

    #[test]
    fn lock_is_held_by_one_open_file_until_it_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let open = || File::options().create(true).append(true).open(directory.path().join("f")).unwrap();
        let (one, two) = (open(), open());
        assert!(try_lock(&one).unwrap());
        assert!(try_lock(&one).unwrap());
        assert!(!try_lock(&two).unwrap());
        close(one).unwrap();
        assert!(try_lock(&two).unwrap());
        unlock(&two).unwrap();
        assert!(try_lock(&open()).unwrap());
    }

    /// Opened for writing by this very process, mapped for writing, or by nobody.
    #[test]
    #[cfg(target_os = "linux")]
    fn writers_are_seen_as_long_as_they_have_the_file_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, b"there").unwrap();
        let reading = File::open(&path).unwrap();
        if writers(&reading) == Writers::Unknown {
            return println!("skipped: this file system knows no leases");
        }
        for _ in 0..3 {
            assert_eq!(writers(&reading), Writers::None);
            let other_reader = File::open(&path).unwrap();
            assert_eq!(writers(&other_reader), Writers::None);
            let writing = File::options().write(true).open(&path).unwrap();
            assert_eq!(writers(&reading), Writers::Some);
            drop(writing);
        }
        // Asking leaves nothing behind that a writer would wait for.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        rustix::fs::open(&path, flags, Mode::empty()).unwrap();
        let (pipe, _write) = rustix::pipe::pipe().unwrap();
        assert_eq!(writers(&pipe.into()), Writers::Unknown);
    }

    #[test]
    fn closing_ends_one_descriptor_only() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, b"there", 0).unwrap();
        flush(&file).unwrap();
        let second = file.try_clone().unwrap();
        close(file).unwrap();
        let mut buffer = [0; 5];
        assert_eq!(read_full_at(&second, &mut buffer, 0).unwrap(), 5);
        assert_eq!(&buffer, b"there");
    }

    #[test]
    fn hints_do_no_harm() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, &[3; 4096], 0).unwrap();
        sync_data(&file).unwrap();
        drop_cache(&file, 0, 0).unwrap();
        let (pipe, _write) = rustix::pipe::pipe().unwrap();
        drop_cache(&pipe.into(), 0, 0).unwrap();
    }
}
