//! The ways to the last files that were opened, kept for the next ones, where the kernel resolves no path by itself.
//!
//! A walk opens and closes each directory on the way to each file, and most files lie beside the one before. So these
//! directories stay open, and each is looked at instead: while its name still leads to the very directory that is open,
//! to open something from there is what a walk would do. Whatever else is met (a link, a file that is not there) is
//! left to the walk, which says what is wrong.

use super::beneath::PASS;
use super::{stat_entry, stat_file};
use crate::retry;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Directories of one way that are kept open.
const STEPS_MAX: usize = 8;
/// Ways: threads that open at the same time are in different directories.
const WAYS: usize = 8;

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

/// Directories on ways from one root, each in the one before it.
#[derive(Debug, Default)]
pub(super) struct Passed([Mutex<Vec<PassedDirectory>>; WAYS]);

impl Passed {
    /// Opens what is at a path without a link; `None` where a walk has to find out more, or another thread is here.
    pub fn open(&self, root: BorrowedFd<'_>, parts: &[&[u8]], flags: OFlags) -> Option<OwnedFd> {
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
