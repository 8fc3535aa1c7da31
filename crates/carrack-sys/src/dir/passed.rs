//! The ways to the last files that were opened, kept for the next ones, where the kernel resolves no path by itself.
//!
//! A walk opens and closes each directory on the way to each file, and most files lie beside the one before. So these
//! directories stay open, and each is looked at instead: while its name still leads to the very directory that is open,
//! to open something from there is what a walk would do. Whatever else is met (a link, a file that is not there) is
//! left to the walk, which says what is wrong.

use super::beneath::PASS;
use super::{Dir, Links, READ, components, stat_entry, stat_file};
use crate::retry;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// Directories of one way that are kept open.
const STEPS_MAX: usize = 8;
/// Ways: threads that open at the same time are in different directories.
const WAYS: usize = 8;
/// Directories that this process may keep open so; beyond, a walk closes each again.
static KEPT_MAX: LazyLock<usize> =
    LazyLock::new(|| kept_within(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)));
/// How many it does.
static KEPT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Which way the thread takes.
    static WAY: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % WAYS
    };
}

/// A directory on the way.
#[derive(Debug)]
struct PassedDirectory {
    name: Vec<u8>,
    fd: OwnedFd,
    /// Device and inode. The inode is nobody else's while it is open.
    place: (u64, u64),
}

impl Drop for PassedDirectory {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// With few descriptors, files and connections come first.
fn kept_within(limit: u64) -> usize {
    (limit / 16).min(256) as usize
}

/// A place among those that are kept; `None` if there is none left.
fn reserve() -> Option<()> {
    let more = |kept| (kept < *KEPT_MAX).then_some(kept + 1);
    KEPT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| ())
}

/// Ways that were walked from one directory, for whoever reads many files below it. They are closed with it.
#[derive(Debug, Default)]
pub struct PassedWays([Mutex<Vec<PassedDirectory>>; WAYS]);

impl PassedWays {
    /// As [`Dir::open_read`], below the one directory that these ways begin at.
    pub fn open_read(&self, root: &Dir, rel: &[u8], links: Links) -> io::Result<File> {
        let walks = !super::beneath::kernel_resolves();
        let passed = if walks { self.open(root.as_fd(), &components(rel)?, READ) } else { None };
        passed.map_or_else(|| root.open_read(rel, links), |fd| Ok(fd.into()))
    }

    /// Opens what is at a path without a link; `None` where a walk has to find out more, or another thread is here.
    pub(super) fn open(&self, root: BorrowedFd<'_>, parts: &[&[u8]], flags: OFlags) -> Option<OwnedFd> {
        let (last, parents) = parts.split_last().filter(|(_, parents)| parents.len() <= STEPS_MAX)?;
        let mut steps = self.0[WAY.with(|way| *way)].try_lock().ok()?;
        for (index, name) in parents.iter().enumerate() {
            let at = reached(root, &steps[..index]);
            let is_there = |step: &PassedDirectory| step.name == *name && place(at, name) == Some(step.place);
            if steps.get(index).is_some_and(is_there) {
                continue;
            }
            let fd = retry(|| rustix::fs::openat(at, *name, PASS | OFlags::NOFOLLOW, Mode::empty())).ok()?;
            let stat = stat_file(&fd).ok()?;
            steps.truncate(index);
            reserve()?;
            steps.push(PassedDirectory { name: name.to_vec(), fd, place: (stat.device, stat.inode) });
        }
        let at = reached(root, &steps[..parents.len()]);
        retry(|| rustix::fs::openat(at, *last, flags | OFlags::NOFOLLOW, Mode::empty())).ok()
    }
}

fn reached<'a>(root: BorrowedFd<'a>, steps: &'a [PassedDirectory]) -> BorrowedFd<'a> {
    steps.last().map_or(root, |step| step.fd.as_fd())
}

fn place(at: BorrowedFd<'_>, name: &[u8]) -> Option<(u64, u64)> {
    stat_entry(at, name).ok().map(|stat| (stat.device, stat.inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_leave_descriptors_for_files() {
        assert_eq!([0, 64, 1024, 4096, 1 << 20].map(kept_within), [0, 4, 64, 256, 256]);
    }
}
