//! Reading a directory as a stream: memory stays flat however many entries it holds.
//!
//! An error is returned as an error, never as an early end: a listing cut short would make a sync
//! delete what it did not see. The order is the file system's own.

use super::Kind;
#[cfg(target_os = "linux")]
use crate::retry;
use rustix::fd::OwnedFd;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;

/// Room for about 2,000 entries with names of ten bytes; the C library uses 32 KiB.
#[cfg(target_os = "linux")]
const BUFFER_BYTES: usize = 64 * 1024;

/// Entries in one batch where the C library keeps the buffer.
#[cfg(any(test, not(target_os = "linux")))]
const BATCH: usize = 2000;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, any bytes but NUL and `/`.
    pub name: Vec<u8>,
    /// Inode number: reading in this order spares a disk's head.
    pub inode: u64,
    /// What it is, where the file system says so without a `stat`.
    pub kind: Option<Kind>,
}

impl DirEntry {
    /// `None` for the two names that every directory has.
    fn new(name: &CStr, inode: u64, kind: FileType) -> Option<DirEntry> {
        let name = name.to_bytes();
        if name == b"." || name == b".." {
            return None;
        }
        let kind = (kind != FileType::Unknown).then(|| kind.into());
        let name = name.to_vec();
        Some(DirEntry { name, inode, kind })
    }
}

/// A directory being read, with a position of its own.
pub struct Entries {
    #[cfg(target_os = "linux")]
    reader: Getdents,
    #[cfg(not(target_os = "linux"))]
    reader: Portable,
}

impl Entries {
    /// Takes a descriptor that nothing else reads from, positioned at the start.
    pub(super) fn new(fd: OwnedFd) -> io::Result<Entries> {
        #[cfg(target_os = "linux")]
        let reader = Getdents::new(fd);
        #[cfg(not(target_os = "linux"))]
        let reader = Portable::new(fd)?;
        Ok(Entries { reader })
    }

    /// Appends the next entries to `out`, up to about 2,000; `false` when there are no more. A
    /// batch may be empty before the end. After an error `out` holds what was read before it.
    pub fn next_batch(&mut self, out: &mut Vec<DirEntry>) -> io::Result<bool> {
        Ok(self.reader.next_batch(out)?)
    }
}

/// `getdents64`, one call for each batch.
#[cfg(target_os = "linux")]
struct Getdents {
    fd: OwnedFd,
    buffer: Box<[std::mem::MaybeUninit<u8>]>,
}

#[cfg(target_os = "linux")]
impl Getdents {
    fn new(fd: OwnedFd) -> Getdents {
        let buffer = Box::new_uninit_slice(BUFFER_BYTES);
        Getdents { fd, buffer }
    }

    fn next_batch(&mut self, out: &mut Vec<DirEntry>) -> Result<bool, Errno> {
        let mut raw = rustix::fs::RawDir::new(&self.fd, &mut self.buffer);
        // Only the first call of `next` asks the kernel, so only it can be interrupted or end.
        let first = retry(|| match raw.next() {
            None => Ok(None),
            Some(Err(error)) => Err(error),
            Some(Ok(entry)) => Ok(Some(DirEntry::new(entry.file_name(), entry.ino(), entry.file_type()))),
        })?;
        let Some(first) = first else {
            return Ok(false);
        };
        out.extend(first);
        while !raw.is_buffer_empty() {
            if let Some(entry) = raw.next() {
                let entry = entry?;
                let (inode, kind) = (entry.ino(), entry.file_type());
                out.extend(DirEntry::new(entry.file_name(), inode, kind));
            }
        }
        Ok(true)
    }
}

/// `readdir`, for systems without a stable `getdents`.
#[cfg(any(test, not(target_os = "linux")))]
pub(super) struct Portable {
    dir: rustix::fs::Dir,
    failed: Option<Errno>,
}

#[cfg(any(test, not(target_os = "linux")))]
impl Portable {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Portable> {
        let dir = rustix::fs::Dir::new(fd)?;
        Ok(Portable { dir, failed: None })
    }

    pub(super) fn next_batch(&mut self, out: &mut Vec<DirEntry>) -> Result<bool, Errno> {
        // rustix answers "end" to whoever asks again after an error; we answer the error.
        if let Some(error) = self.failed {
            return Err(error);
        }
        for _ in 0..BATCH {
            match self.dir.read() {
                None => return Ok(false),
                Some(Err(error)) => {
                    self.failed = Some(error);
                    return Err(error);
                }
                Some(Ok(entry)) => {
                    let (inode, kind) = (entry.ino(), entry.file_type());
                    out.extend(DirEntry::new(entry.file_name(), inode, kind));
                }
            }
        }
        Ok(true)
    }
}
