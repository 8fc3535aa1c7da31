//! What measuring storage needs beyond ordinary reads and writes: files opened past the cache or synced with each
//! write, what the page cache holds of a file, hints about the order of access, and a file mapped into memory.

use std::fs::File;
use std::io;

use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags};

use crate::dir::Dir;
use crate::retry;

/// How reads and writes of an open file reach storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoMode {
    /// Through the page cache.
    Buffered,
    /// Through the page cache, and each write waits until its data is on storage (`O_DSYNC`).
    Dsync,
    /// Past the page cache (`O_DIRECT`): offsets, lengths and memory must be aligned to the device's blocks.
    Direct,
}

/// Opens a file of a directory for reading and writing, and creates it where it is missing. Never through a link.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the file system has no direct access; else what opening says.
pub fn open(directory: &Dir, name: &[u8], access: IoMode) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | access_flags(access)?;
    let opened = retry(|| rustix::fs::openat(directory.as_fd(), name, flags, Mode::RUSR | Mode::WUSR));
    match opened {
        // open(2): the file system has no O_DIRECT.
        Err(rustix::io::Errno::INVAL) if access == IoMode::Direct => Err(io::ErrorKind::Unsupported.into()),
        other => Ok(other?.into()),
    }
}

#[cfg(target_os = "linux")]
fn access_flags(access: IoMode) -> io::Result<OFlags> {
    Ok(match access {
        IoMode::Buffered => OFlags::empty(),
        IoMode::Dsync => OFlags::DSYNC,
        IoMode::Direct => OFlags::DIRECT,
    })
}

#[cfg(not(target_os = "linux"))]
fn access_flags(access: IoMode) -> io::Result<OFlags> {
    match access {
        IoMode::Buffered => Ok(OFlags::empty()),
        IoMode::Dsync => Ok(OFlags::SYNC),
        IoMode::Direct => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// The order in which a file will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One byte after the other: the system reads further ahead.
    Sequential,
    /// In no order: the system does not read ahead.
    Random,
}

/// Tells the system in which order the whole file will be read. It may ignore this.
pub fn expect_order(file: &File, order: Order) {
    #[cfg(target_os = "linux")]
    {
        let advice = match order {
            Order::Sequential => rustix::fs::Advice::Sequential,
            Order::Random => rustix::fs::Advice::Random,
        };
        // A hint: where it is not taken, reads are as right as before.
        let _ = rustix::fs::fadvise(file, 0, None, advice);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, order);
}

/// Wakes the calling thread from sleeps as exactly as the system can, instead of some 50 µs late.
pub fn wake_exactly() {
    #[cfg(target_os = "linux")]
    {
        // 0 would be the default again.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    }
}

/// What the page cache holds of a part of a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// In memory: reading it needs no storage.
    pub bytes: u64,
    /// Of these, not yet on storage; `None` where the system does not say.
    pub unwritten: Option<u64>,
}

/// Asks what the page cache holds of `len` bytes from `offset` (`cachestat(2)`, Linux 6.5; else `mincore(2)`). It
/// knows nothing of caches that a file system has of its own (ZFS), nor of those behind it (a server, a controller).
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the system cannot tell, else what it says.
pub fn cached(file: &File, offset: u64, len: u64) -> io::Result<Cached> {
    if len == 0 {
        return Ok(Cached { bytes: 0, unwritten: Some(0) });
    }
    match system::cachestat(file, offset, len) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => system::mincore(file, offset, len),
        other => other,
    }
}

/// Where a part of a file lies in pages: first byte, and bytes up to the end of the last page.
fn whole_pages(offset: u64, len: u64, page: u64) -> (u64, u64) {
    let start = offset / page * page;
    (start, (offset.saturating_add(len) - start).div_ceil(page) * page)
}

/// A whole file mapped into memory, shared: writes reach the file.
///
/// The file must keep its length while this lives: touching a page that it no longer has, or for which no room is left,
/// ends the process with SIGBUS. So this is for files that nobody else knows and that have all their space already. A
/// file that is too short from the beginning is refused.
#[derive(Debug)]
pub struct Mapping(system::MappedMemory);

impl Mapping {
    /// Maps `len` bytes of a file that is open for reading and writing.
    ///
    /// # Errors
    /// What the system says, [`io::ErrorKind::InvalidInput`] for no bytes or more than memory has addresses, and
    /// [`io::ErrorKind::UnexpectedEof`] for more bytes than the file has.
    pub fn new(file: &File, len: u64) -> io::Result<Self> {
        if file.metadata()?.len() < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bytes = usize::try_from(len).ok().filter(|&bytes| bytes > 0 && isize::try_from(bytes).is_ok());
        system::MappedMemory::new(file, 0, bytes.ok_or(io::ErrorKind::InvalidInput)?, true).map(Self)
    }

    /// Copies bytes out.
    ///
    /// # Panics
    /// If they are not all inside.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        self.0.read(self.inside(offset, out.len()), out);
    }

    /// Copies bytes in.
    ///
    /// # Panics
    /// If they do not all fit inside.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        self.0.write(self.inside(offset, bytes.len()), bytes);
    }

    fn inside(&self, offset: u64, len: usize) -> usize {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        assert!(start.checked_add(len).is_some_and(|end| end <= self.0.len()), "outside of the mapping");
        start
    }
}

#[allow(unsafe_code)]
mod system {
    use super::{Cached, whole_pages};
    use rustix::fd::AsRawFd;
    use std::fs::File;
    use std::io;

    /// Memory that the system has mapped for us.
    #[derive(Debug)]
    pub struct MappedMemory {
        start: *mut u8,
        len: usize,
    }

    // SAFETY: the memory belongs to the process, not to a thread, and is reached by copying alone.
    unsafe impl Send for MappedMemory {}
    // SAFETY: as above. Two threads that write one place, or read what another writes, get one or the other's bytes:
    // the copies are made by the C library, and no reference to the memory exists.
    unsafe impl Sync for MappedMemory {}

    impl MappedMemory {
        pub fn new(file: &File, offset: u64, len: usize, writable: bool) -> io::Result<Self> {
            let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
            let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
            // SAFETY: a new mapping at a place that the system chooses touches no memory that is in use; the
            // descriptor is borrowed for the call.
            let start = unsafe {
                libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, file.as_raw_fd(), offset)
            };
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { start: start.cast(), len })
        }

        pub fn len(&self) -> usize {
            self.len
        }

        pub fn read(&self, start: usize, out: &mut [u8]) {
            // SAFETY: the caller has checked that the range is inside; `out` is memory of its own, so they do not
            // overlap. The C library copies, so that no reference to shared memory is made.
            unsafe { libc::memcpy(out.as_mut_ptr().cast(), self.start.add(start).cast(), out.len()) };
        }

        pub fn write(&self, start: usize, bytes: &[u8]) {
            // SAFETY: as in `read`, the other way round; the mapping is writable (`super::Mapping::new`).
            unsafe { libc::memcpy(self.start.add(start).cast(), bytes.as_ptr().cast(), bytes.len()) };
        }
    }

    impl Drop for MappedMemory {
        fn drop(&mut self) {
            // SAFETY: exactly what `new` mapped, and nobody uses it any more.
            unsafe { libc::munmap(self.start.cast(), self.len) };
        }
    }

    fn page_bytes() -> u64 {
        // SAFETY: the call takes a number and touches no memory of ours.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        u64::try_from(bytes).ok().filter(|&bytes| bytes > 0).unwrap_or(4096)
    }

    #[cfg(target_os = "linux")]
    pub fn cachestat(file: &File, offset: u64, len: u64) -> io::Result<Cached> {
        /// Not yet in libc; the same number everywhere.
        const CACHESTAT: libc::c_long = 451;
        let range = [offset, len];
        // Pages cached, dirty, being written, evicted, evicted of late.
        let mut pages = [0u64; 5];
        // SAFETY: the descriptor is borrowed for the call, which reads two numbers and writes five, to memory that
        // is ours.
        let done = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), pages.as_mut_ptr(), 0) };
        if done != 0 {
            let error = io::Error::last_os_error();
            let unknown = [libc::ENOSYS, libc::EPERM, libc::EOPNOTSUPP];
            let unsupported = error.raw_os_error().is_some_and(|number| unknown.contains(&number));
            return Err(if unsupported { io::ErrorKind::Unsupported.into() } else { error });
        }
        let bytes = |pages: u64| pages.saturating_mul(page_bytes()).min(len);
        Ok(Cached { bytes: bytes(pages[0]), unwritten: Some(bytes(pages[1].saturating_add(pages[2]))) })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn cachestat(_: &File, _: u64, _: u64) -> io::Result<Cached> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn mincore(file: &File, offset: u64, len: u64) -> io::Result<Cached> {
        /// Mapped at a time.
        const WINDOW: u64 = 1 << 30;
        let (mut at, mut left) = whole_pages(offset, len, page_bytes());
        let mut pages = 0;
        while left > 0 {
            let window = left.min(WINDOW);
            let bytes = usize::try_from(window).map_err(|_| io::ErrorKind::InvalidInput)?;
            let mapping = MappedMemory::new(file, at, bytes, false)?;
            let mut residence = vec![0u8; usize::try_from(window.div_ceil(page_bytes())).unwrap_or(0)];
            // SAFETY: the range is a mapping of ours, and the vector has a byte for each of its pages.
            let done = unsafe { libc::mincore(mapping.start.cast(), mapping.len, residence.as_mut_ptr().cast()) };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
            pages += residence.iter().filter(|page| **page & 1 != 0).count() as u64;
            at += window;
            left -= window;
        }
        Ok(Cached { bytes: pages.saturating_mul(page_bytes()).min(len), unwritten: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;

    fn scratch() -> (tempfile::TempDir, Dir) {
        let directory = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient(directory.path()).unwrap();
        (directory, dir)
    }

    #[test]
    fn cachestat_and_mincore_agree_on_what_was_just_written() {
        let (_directory, dir) = scratch();
        let mut file = open(&dir, b"f", IoMode::Buffered).unwrap();
        file.write_all(&[7; 100_000]).unwrap();
        let asked = cached(&file, 0, 100_000).unwrap();
        assert_eq!(asked.bytes, 100_000);
        assert_eq!(system::mincore(&file, 0, 100_000).unwrap().bytes, 100_000);
        assert_eq!(system::mincore(&file, 5000, 10).unwrap().bytes, 10);
        assert_eq!(cached(&file, 0, 0).unwrap(), Cached { bytes: 0, unwritten: Some(0) });
    }

    #[test]
    fn cache_is_empty_after_it_was_dropped() {
        // On a disk: what lies in memory cannot be dropped.
        let (_directory, dir) = scratch();
        if crate::dir::file_system(&dir).unwrap().in_memory {
            return;
        }
        let mut file = open(&dir, b"f", IoMode::Buffered).unwrap();
        file.write_all(&[7; 1 << 20]).unwrap();
        crate::file::sync_data(&file).unwrap();
        crate::file::drop_cache(&file, 0, 0).unwrap();
        assert_eq!(system::mincore(&file, 0, 1 << 20).unwrap().bytes, 0);
        assert_eq!(cached(&file, 0, 1 << 20).unwrap().bytes, 0);
    }

    #[test]
    fn ranges_are_widened_to_pages() {
        for (offset, len, expected) in [(0, 1, (0, 4096)), (4095, 2, (0, 8192)), (4096, 4096, (4096, 4096))] {
            assert_eq!(whole_pages(offset, len, 4096), expected);
        }
    }

    #[test]
    fn mapping_and_file_are_one() {
        let (_directory, dir) = scratch();
        let mut file = open(&dir, b"f", IoMode::Buffered).unwrap();
        file.write_all(b"0123456789").unwrap();
        let mapping = Mapping::new(&file, 10).unwrap();
        mapping.write(3, b"abc");
        let mut read = [0; 10];
        mapping.read(0, &mut read);
        assert_eq!(&read, b"012abc6789");
        crate::file::read_full_at(&file, &mut read, 0).unwrap();
        assert_eq!(&read, b"012abc6789");
        assert!(std::panic::catch_unwind(|| mapping.read(8, &mut [0; 3])).is_err());
        assert!(Mapping::new(&file, 0).is_err());
        // The system would map it, and end the process at the first touch of a page behind the last byte.
        assert_eq!(Mapping::new(&file, 11).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(Mapping::new(&file, 1 << 20).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn direct_access_is_there_or_said_not_to_be() {
        let (_directory, dir) = scratch();
        for access in [IoMode::Dsync, IoMode::Direct] {
            match open(&dir, b"f", access) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
            }
        }
        // procfs has no direct access.
        let proc = Dir::open_ambient(Path::new("/proc/self"));
        if let Ok(proc) = proc {
            let direct = open(&proc, b"comm", IoMode::Direct);
            assert_eq!(direct.unwrap_err().kind(), io::ErrorKind::Unsupported);
        }
    }
}
