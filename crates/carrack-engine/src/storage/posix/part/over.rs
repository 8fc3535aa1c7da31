//! A file that is written over where it stands: what it was before the first byte, and who still writes to it. A stream
//! that is in the midst of a block when its attempt is given up must not write into what the next attempt makes of it.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use carrack_sys::dir::Stat;
use carrack_sys::{dir, file};

use super::MIXTURE;
use crate::storage::posix::unkept::if_it_can;
use crate::sync::lock;

/// What is known of all such files of a session.
#[derive(Default)]
pub(in crate::storage::posix) struct OverTally {
    /// Those that have been written over, and are whole.
    pub whole: AtomicU64,
    /// Those of which a sync has failed, by device and inode: what the cache has of them is no proof of what storage
    /// has.
    pub lost: Mutex<HashSet<(u64, u64)>>,
    /// Those of which an attempt was given up while a thread was in a write.
    pub late: Mutex<HashSet<(u64, u64)>>,
    /// How long locked ones have been waited for.
    pub waited: Mutex<Duration>,
}

/// What one attempt knows of the file.
pub(in crate::storage::posix) struct WrittenOver {
    /// How it stood before.
    before: Stat,
    /// The number of its record in the marker.
    pub number: Option<u64>,
    writing: Mutex<Writing>,
}

#[derive(Default)]
struct Writing {
    /// Threads that are in a write.
    threads: usize,
    /// Something of it may be another than it was.
    has_begun: bool,
    /// The attempt is over.
    has_ended: bool,
}

/// A thread that writes to the file. While there is one the file stays locked.
pub(in crate::storage::posix) struct WritingOver<'a> {
    over: &'a WrittenOver,
    file: &'a File,
}

impl WrittenOver {
    /// Of a file that stood so, and that nobody has written to yet.
    pub fn new(before: Stat, number: Option<u64>) -> Self {
        Self { before, number, writing: Mutex::default() }
    }

    /// A thread is about to write to it.
    ///
    /// # Errors
    /// When the attempt is over.
    pub fn enter<'a>(&'a self, file: &'a File) -> io::Result<WritingOver<'a>> {
        let mut writing = lock(&self.writing);
        if writing.has_ended {
            return Err(io::Error::other("this attempt to write it in place has been given up"));
        }
        writing.has_begun = true;
        writing.threads += 1;
        Ok(WritingOver { over: self, file })
    }

    /// The attempt is over: nobody begins to write any more, and the last one who does unlocks the file. Says, the
    /// first time, whether the file is what it was.
    pub fn end(&self, file: &File, tally: &OverTally) -> bool {
        let mut writing = lock(&self.writing);
        if writing.has_ended {
            return false;
        }
        if !writing.has_begun {
            self.restore(file);
        }
        writing.has_ended = true;
        match writing.threads {
            0 => Self::close(file, writing.has_begun),
            _ => _ = lock(&tally.late).insert((self.before.device, self.before.inode)),
        }
        !writing.has_begun
    }

    /// It is what it was, and shows it: unless another program has written to it meanwhile.
    pub fn restore(&self, file: &File) {
        let Stat { uid, gid, mode, mtime, size, .. } = self.before;
        let Ok(now) = dir::stat_file(file) else { return };
        if (now.mtime, now.size) != (MIXTURE, size) {
            return;
        }
        if (now.uid, now.gid) != (uid, gid) {
            let _ = if_it_can(dir::set_owner(file, Some(uid), Some(gid)));
        }
        let _ = if_it_can(file::set_mode(file, mode & 0o7777));
        let _ = if_it_can(file::set_times(file, mtime));
    }

    /// A sync of it has failed.
    pub fn is_lost(&self, tally: &OverTally) {
        lock(&tally.lost).insert((self.before.device, self.before.inode));
    }

    fn close(file: &File, has_begun: bool) {
        if has_begun {
            let _ = file::set_times(file, MIXTURE);
        }
        // Whoever writes it next needs the lock, and this may stay open for a moment longer.
        let _ = file::unlock(file);
    }
}

impl Drop for WritingOver<'_> {
    fn drop(&mut self) {
        let mut writing = lock(&self.over.writing);
        writing.threads -= 1;
        if writing.has_ended && writing.threads == 0 {
            WrittenOver::close(self.file, true);
        }
    }
}
