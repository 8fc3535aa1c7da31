//! Several streams write one large file in memory: they take turns, and reserve its space piece by piece just before
//! the pieces are written.
//!
//! A file system that locks the file for each write lets the others burn processor time until their turn comes; a lock
//! of our own lets them sleep. Measured, that pays in memory alone: on ext4 and Btrfs it changes nothing, and XFS is
//! slower with it.
//!
//! In tmpfs reserving takes the pages one by one, some 0.2 s per GB. At the beginning that would be time before the
//! first byte is asked for. In pieces it goes on while bytes travel, and takes pages for less of the processors' time
//! than writing to new ones does, as long as nobody else writes meanwhile.

use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use carrack_sys::file;

use crate::sync::lock;

/// Reserved at once: some milliseconds, for which other writers of the file wait.
const PIECE_BYTES: u64 = 16 << 20;

/// Who may write to a file now, and how far it is reserved.
pub(super) struct Turns {
    are_taken: bool,
    /// How much of the file is reserved by and by.
    size: AtomicU64,
    /// Everything below is reserved, or will not be. Held by who writes.
    reserved: Mutex<u64>,
}

impl Turns {
    /// Of a file of which nothing is to be reserved. Turns are taken for a file in memory.
    pub fn new(in_memory: bool) -> Self {
        Self { are_taken: in_memory, size: AtomicU64::new(0), reserved: Mutex::default() }
    }

    /// So many bytes, of which nothing is reserved yet, are to be, where turns are taken.
    pub fn reserve(&self, size: u64) {
        self.size.store(size, Ordering::Relaxed);
    }

    /// Whether turns are taken: the file lies in memory.
    pub fn are_taken(&self) -> bool {
        self.are_taken
    }

    /// Has `write` write up to `end`: where turns are taken, when it is its turn and space is reserved up to there.
    ///
    /// # Errors
    /// Those of `write`, and of the system: that space is missing.
    pub fn write<T>(&self, file: &File, end: u64, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if !self.are_taken {
            return write();
        }
        let (mut reserved, size) = (lock(&self.reserved), self.size.load(Ordering::Relaxed));
        let until = end.div_ceil(PIECE_BYTES).saturating_mul(PIECE_BYTES).min(size);
        if until > *reserved {
            let is_reserved = file::preallocate_range(file, *reserved, until - *reserved)?;
            *reserved = if is_reserved { until } else { size };
        }
        write()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    /// What is written in any order is reserved up to there, in pieces, and never beyond the file's end.
    #[test]
    fn turns_reserve_what_is_written_and_no_more_than_its_piece() {
        let directory = tempfile::tempdir().unwrap();
        let size = 3 * PIECE_BYTES + 5;
        let file = File::create(directory.path().join("part")).unwrap();
        file.set_len(size).unwrap();
        let turns = Turns::new(true);
        turns.reserve(size);
        let reserved = |end| {
            turns.write(&file, end, || Ok(())).unwrap();
            (file.metadata().unwrap().blocks() * 512, file.metadata().unwrap().len())
        };
        let close_to = |bytes: u64, found: u64| found >= bytes && found < bytes + (1 << 20);
        let (first, _) = reserved(1);
        assert!(close_to(PIECE_BYTES, first), "{first}");
        assert_eq!(reserved(PIECE_BYTES).0, first);
        let (third, _) = reserved(2 * PIECE_BYTES + 1);
        assert!(close_to(3 * PIECE_BYTES, third), "{third}");
        let (all, length) = reserved(u64::MAX);
        assert!(close_to(size, all), "{all}");
        assert_eq!(length, size);
    }

    #[test]
    fn turns_reserve_nothing_where_nothing_is_to_be() {
        let file = tempfile::tempfile().unwrap();
        Turns::new(true).write(&file, 1 << 30, || Ok(())).unwrap();
        assert_eq!(file.metadata().unwrap().blocks(), 0);
    }

    /// One at a time in memory; elsewhere all at once, as far as the file system lets them.
    #[test]
    fn turns_are_taken_one_after_the_other_in_memory() {
        const WRITERS: u32 = 4;
        let file = tempfile::tempfile().unwrap();
        for in_memory in [true, false] {
            let turns = Turns::new(in_memory);
            let (writing, most) = (AtomicU32::new(0), AtomicU32::new(0));
            let write = || {
                most.fetch_max(writing.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Those who may write now wait for each other; nobody comes where one may.
                let patience = std::time::Instant::now() + Duration::from_millis(if in_memory { 20 } else { 10_000 });
                while most.load(Ordering::SeqCst) < WRITERS && std::time::Instant::now() < patience {
                    std::thread::yield_now();
                }
                writing.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            };
            std::thread::scope(|scope| {
                for _ in 0..WRITERS {
                    scope.spawn(|| turns.write(&file, 1, write).unwrap());
                }
            });
            assert_eq!(most.into_inner(), if in_memory { 1 } else { WRITERS });
        }
    }
}
