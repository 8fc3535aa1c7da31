//! A task's lock: who carries it out. A worker holds it from its birth to its end, so whoever finds it free knows that
//! nobody moves the task's bytes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::model::Fence;

const NAME: &str = "lock";

/// A held lock. It is free once every handle of it is closed, also by the end of a process.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Who holds a lock, as they have written into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The worker's process.
    pub process: u32,
    /// When it began, in the kernel's ticks since the host started: a later process with this number began later.
    began: u64,
    /// Its attempt.
    pub fence: Fence,
}

fn path_of(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

fn open(directory: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path_of(directory))
}

impl Lock {
    /// Takes the lock; `None` while somebody else holds it.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub fn take(directory: &Path) -> io::Result<Option<Self>> {
        let file = open(directory)?;
        Ok(try_lock(file.as_fd())?.then_some(Self { file }))
    }

    /// The lock that this process was born with, as its standard output.
    ///
    /// # Errors
    /// As [`Lock::take`].
    pub fn inherited(directory: &Path, output: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let Ok(there) = std::fs::metadata(path_of(directory)) else { return Ok(None) };
        let file = File::from(output.try_clone_to_owned()?);
        let own = file.metadata()?;
        if (own.dev(), own.ino()) != (there.dev(), there.ino()) {
            return Ok(None);
        }
        Ok(try_lock(file.as_fd())?.then_some(Self { file }))
    }

    /// Another handle of the same lock, for a worker to be born with.
    ///
    /// # Errors
    /// If no handle is left.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        self.file.try_clone().map(OwnedFd::from)
    }

    /// Writes down who holds it, so that somebody else can end them.
    ///
    /// # Errors
    /// Those of writing.
    pub fn sign(&self, process: u32, fence: Fence) -> io::Result<()> {
        let text = format!("{process} {} {fence}\n", began(process).unwrap_or(0));
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }
}

fn try_lock(file: BorrowedFd<'_>) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// When a process began, in ticks of the kernel since the host started: field 22 of `/proc/PID/stat`, counted behind
/// the name in parentheses, which may hold anything.
fn began(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind) = text.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Whether anybody holds a task's lock.
///
/// # Errors
/// If the file cannot be opened or locked. A lock that was never made is free.
pub fn is_held(directory: &Path) -> io::Result<bool> {
    match File::open(path_of(directory)) {
        // A shared lock keeps a worker out for no longer than this call takes, and two who ask do not see each other.
        Ok(file) => match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Who has signed a task's lock last; they may have ended since.
pub fn holder(directory: &Path) -> Option<Holder> {
    let text = std::fs::read_to_string(path_of(directory)).ok()?;
    let mut words = text.split_ascii_whitespace();
    let process = words.next()?.parse().ok()?;
    Some(Holder { process, began: words.next()?.parse().ok()?, fence: words.next()?.parse().ok()? })
}

impl Holder {
    /// Sends a signal to the process that signed, and to no later one with its number. Whether it was there.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(process) = i32::try_from(self.process).ok().and_then(Pid::from_raw) else { return false };
        // The handle is taken first: what it names does not change between the two looks. Linux before 5.3 has none,
        // and older sandboxes let nobody have one: a process that takes the number within these microseconds is not
        // told apart there.
        let handle = match pidfd_open(process, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(Errno::NOSYS | Errno::PERM) => None,
            Err(_) => return false,
        };
        if began(self.process) != Some(self.began) {
            return false;
        }
        match handle.map(|handle| pidfd_send_signal(handle, signal)) {
            None | Some(Err(Errno::NOSYS | Errno::PERM)) => kill_process(process, signal).is_ok(),
            Some(sent) => sent.is_ok(),
        }
    }
}
