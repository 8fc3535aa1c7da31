//! Space for a file in memory, reserved piece by piece just before the pieces are written.
//!
//! In tmpfs reserving takes the pages one by one, some 0.2 s per GB. At the beginning that would be time before the
//! first byte is asked for. In pieces it goes on while bytes travel, and takes pages for less of the processors' time
//! than writing to new ones does.

use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use carrack_sys::file;

use crate::sync::lock;

/// Reserved at once: some milliseconds, for which other writers of the file wait.
const PIECE_BYTES: u64 = 16 << 20;

/// How far a file is reserved.
pub(super) struct Reserve {
    size: u64,
    /// Everything below is reserved, or will not be.
    until: AtomicU64,
    reserving: Mutex<()>,
}

impl Reserve {
    /// Of a file of so many bytes, of which nothing is reserved.
    pub fn new(size: u64) -> Self {
        Self { size, until: AtomicU64::new(0), reserving: Mutex::default() }
    }

    /// Nothing is to be reserved.
    pub fn none() -> Self {
        Self::new(0)
    }

    /// Reserves what is missing up to `end`, and the rest of the last piece.
    ///
    /// # Errors
    /// Those of the system: that space is missing.
    pub fn cover(&self, file: &File, end: u64) -> io::Result<()> {
        if end.min(self.size) <= self.until.load(Ordering::Acquire) {
            return Ok(());
        }
        let _reserving = lock(&self.reserving);
        let from = self.until.load(Ordering::Acquire);
        let until = end.div_ceil(PIECE_BYTES).saturating_mul(PIECE_BYTES).min(self.size);
        if until <= from {
            return Ok(());
        }
        let reserved = file::preallocate_range(file, from, until - from)?;
        self.until.store(if reserved { until } else { self.size }, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// What is written in any order is reserved up to there, in pieces, and never beyond the file's end.
    #[test]
    fn reserve_covers_what_is_written_and_no_more_than_its_piece() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create(directory.path().join("part")).unwrap();
        let size = 3 * PIECE_BYTES + 5;
        file.set_len(size).unwrap();
        let reserve = Reserve::new(size);
        let reserved = |end| {
            reserve.cover(&file, end).unwrap();
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
    fn reserve_of_nothing_reserves_nothing() {
        let file = tempfile::tempfile().unwrap();
        Reserve::none().cover(&file, 1 << 30).unwrap();
        assert_eq!(file.metadata().unwrap().blocks(), 0);
    }
}
