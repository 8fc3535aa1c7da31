//! Large files pass the page cache by. What is written once and read once would push out what others work with, and a system that
//! lets dirty pages pile up stops all who write when they reach its limit.
//!
//! Direct I/O would do the same, with aligned buffers and queues of our own; measured, the kernel's way costs no more
//! (docs/performance.md).

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use carrack_core::tuning::PAST_CACHE_FILE_BYTES;
use carrack_sys::{bulk, file};

/// How one file is written.
pub struct WriteBehind {
    large: bool,
    /// The kernel lets go of what has been written by itself; else that is asked for once it is synced.
    by_itself: AtomicBool,
}

impl WriteBehind {
    /// A file that will have so many bytes.
    pub fn new(size: u64) -> Self {
        let large = size >= PAST_CACHE_FILE_BYTES;
        Self { large, by_itself: AtomicBool::new(large) }
    }

    /// Writes bytes, all of them.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.by_itself.load(Ordering::Relaxed) {
            match bulk::write_past_cache(file, bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    self.by_itself.store(false, Ordering::Relaxed);
                }
                other => return other,
            }
        }
        file::write_all_at(file, bytes, offset)
    }

    /// Bytes have reached the cache in another way than by [`WriteBehind::write`].
    pub fn bypassed(&self) {
        self.by_itself.store(false, Ordering::Relaxed);
    }

    /// A range is written whole: storage may begin with it, so that a sync later finds little to do.
    pub fn written(&self, file: &File, offset: u64, length: u64) {
        if self.asks() {
            // It only saves time.
            let _ = bulk::start_writing_back(file, offset, length);
        }
    }

    /// A range (to the end, if `length` is 0) has been synced, and nobody here will read it again.
    pub fn synced(&self, file: &File, offset: u64, length: u64) {
        if self.asks() {
            let _ = file::drop_cache(file, offset, length);
        }
    }

    fn asks(&self) -> bool {
        self.large && !self.by_itself.load(Ordering::Relaxed)
    }
}

/// How one file is read: a little ahead of the streams, and let go behind them.
pub struct ReadAhead {
    size: u64,
    /// Up to here storage has been asked for it.
    fetched: AtomicU64,
}

impl ReadAhead {
    /// A file of so many bytes.
    pub fn new(size: u64) -> Self {
        Self { size, fetched: AtomicU64::new(0) }
    }

    /// A block is about to be read. True if it is to be let go afterwards: what others have in the cache stays there.
    pub fn begin(&self, file: &File, offset: u64, length: u64) -> bool {
        if self.size < PAST_CACHE_FILE_BYTES {
            return false;
        }
        if offset >= self.fetched.load(Ordering::Relaxed) {
            let cached = bulk::read_if_cached(file, &mut [0], offset);
            if !matches!(cached, Ok(None)) {
                return false;
            }
        }
        // The next one, too: whoever reads it finds it there.
        let end = (offset + 2 * length).min(self.size);
        let start = self.fetched.fetch_max(end, Ordering::Relaxed).max(offset);
        if start < end {
            // Without it storage is read when it is waited for.
            let _ = bulk::fetch(file, start, end - start);
        }
        true
    }

    /// The block that [`ReadAhead::begin`] said so of has been read.
    pub fn end(&self, file: &File, offset: u64, length: u64) {
        let _ = file::drop_cache(file, offset, length);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LARGE: u64 = PAST_CACHE_FILE_BYTES;

    /// Whether a page of the file is in the cache; `None` where that cannot be asked.
    fn is_cached(file: &File, offset: u64) -> Option<bool> {
        bulk::read_if_cached(file, &mut [0], offset).ok().map(|read| read.is_some())
    }

    fn temporary(directory: &Path) -> File {
        tempfile::tempfile_in(directory).unwrap()
    }

    /// The target directory, which is on a disk where a temporary one may be in memory.
    fn on_disk() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
    }

    #[test]
    fn both_ways_of_writing_write_the_same() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        for (size, bypassed) in [(LARGE, false), (LARGE, true), (1, false)] {
            for directory in [std::env::temp_dir(), on_disk(), "/dev/shm".into()] {
                if !directory.exists() {
                    continue;
                }
                let (file, cache) = (temporary(&directory), WriteBehind::new(size));
                if bypassed {
                    cache.bypassed();
                }
                cache.write(&file, &bytes, 5).unwrap();
                cache.written(&file, 5, bytes.len() as u64);
                file::sync_data(&file).unwrap();
                cache.synced(&file, 5, bytes.len() as u64);
                let mut back = vec![0; bytes.len()];
                assert_eq!(file::read_full_at(&file, &mut back, 5).unwrap(), bytes.len());
                assert!(back == bytes, "{size} {bypassed} {directory:?}");
            }
        }
    }

    #[test]
    fn what_was_not_cached_is_let_go_and_what_was_stays() {
        let file = temporary(&on_disk());
        file.set_len(LARGE).unwrap();
        let block = vec![3; 1 << 20];
        for number in 0..4 {
            file::write_all_at(&file, &block, number << 20).unwrap();
        }
        file::sync_data(&file).unwrap();
        file::drop_cache(&file, 0, 0).unwrap();
        // Somebody works with the third.
        let mut page = [0; 4096];
        file::read_full_at(&file, &mut page, 2 << 20).unwrap();
        // Asking may make the system read what was asked for, so nothing is asked twice.
        if is_cached(&file, 3 << 20) != Some(false) || is_cached(&file, 2 << 20) != Some(true) {
            return; // this file system does not tell, or keeps what it likes
        }
        let ahead = ReadAhead::new(LARGE);
        assert!(!ahead.begin(&file, 2 << 20, 4096), "it is somebody's");
        assert!(ahead.begin(&file, 0, 1 << 19));
        let mut half = vec![0; 1 << 19];
        assert_eq!(file::read_full_at(&file, &mut half, 0).unwrap(), half.len());
        ahead.end(&file, 0, 1 << 19);
        assert_eq!(is_cached(&file, 4096), Some(false));
        assert_eq!(is_cached(&file, 2 << 20), Some(true));
        // What was fetched ahead is ours, cached or not.
        assert!(ahead.begin(&file, 1 << 19, 1 << 19));
        assert!(!ReadAhead::new(1 << 20).begin(&file, 0, 4096), "a small file is left to the system");
    }
}
