//! Large files pass the page cache by. What is written once and read once would push out what others work with, and a
//! system that lets dirty pages pile up stops all who write when they reach its limit.
//!
//! Direct I/O would do the same, with aligned buffers and queues of our own; measured, the kernel's way costs no more
//! (docs/internals/performance.md).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::lock;
use carrack_core::limits;
use carrack_core::tuning::Tuning;
use carrack_sys::{bulk, file};

/// How one file is written.
pub struct WriteBehind {
    large: bool,
    /// The kernel lets go of what has been written by itself; else that is asked for once it is synced.
    by_itself: AtomicBool,
}

impl WriteBehind {
    /// A file that will have so many bytes.
    pub fn new(tuning: &Tuning, size: u64) -> Self {
        let large = size >= tuning.past_cache_file_bytes;
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

/// How one file is read: storage is kept busy ahead of the streams, and the cache lets go behind them.
pub struct ReadAhead {
    way: Way,
}

enum Way {
    /// As the system does it.
    Small,
    /// Nothing of it was in the cache when it was opened, and the system reads far ahead by itself: with large pages,
    /// which cost less than those that it reads on request.
    Systems(Mutex<ReadSoFar>),
    /// Storage is asked for what will be wanted, and what others have in the cache stays there.
    Own {
        size: u64,
        /// How far ahead of its reader storage is asked.
        ahead: u64,
        /// Up to here storage has been asked for it.
        fetched: AtomicU64,
    },
}

impl ReadAhead {
    /// For what is no file, or a small one.
    pub const NONE: Self = Self { way: Way::Small };

    /// For a file of so many bytes, of which nothing has been read.
    pub fn new(tuning: &Tuning, file: &File, size: u64) -> Self {
        if size < tuning.past_cache_file_bytes {
            return Self::NONE;
        }
        let far = || bulk::read_ahead_bytes(file).is_some_and(|bytes| bytes >= tuning.system_read_ahead_bytes);
        // Counting the pages of a large file takes long where they are small: most that are cached have the first one.
        let none_of = |bytes| bulk::cached_pages(file, bytes).is_ok_and(|pages| pages == 0);
        let is_cold = none_of(1) && none_of(size);
        Self { way: if is_cold && far() { Way::Systems(Mutex::default()) } else { Way::own(tuning, size) } }
    }

    /// A block is about to be read. True if it is to be let go afterwards: what others have in the cache stays there.
    pub fn begin(&self, file: &File, offset: u64, length: u64) -> bool {
        match &self.way {
            Way::Small => false,
            Way::Systems(_) => true,
            Way::Own { size, ahead, fetched } => {
                let end = (offset + length + length.max(*ahead)).min(*size);
                fetch(file, offset..end, fetched)
            }
        }
    }

    /// The block that [`ReadAhead::begin`] said so of has been read.
    pub fn end(&self, file: &File, offset: u64, length: u64) {
        let block = offset..offset + length;
        let range = match &self.way {
            Way::Systems(read) => lock(read).add(block),
            Way::Small | Way::Own { .. } => block,
        };
        let _ = file::drop_cache(file, range.start, range.end - range.start);
    }
}

/// What has been read of a file, but for what is far behind: ranges that do not touch, by where they begin.
#[derive(Default)]
struct ReadSoFar {
    ranges: BTreeMap<u64, u64>,
}

impl ReadSoFar {
    /// The cache lets go of whole large pages only, and one may belong to several blocks.
    const LARGE_PAGE_BYTES: u64 = 4 << 20;
    /// More than streams can leave between them.
    const RANGES: usize = 2 * limits::STREAMS as usize;

    /// A block has been read: the range that is to be let go with it, because what is around it had been read before.
    fn add(&mut self, block: Range<u64>) -> Range<u64> {
        let (mut start, mut end) = (block.start, block.end);
        if let Some((&before, &until)) = self.ranges.range(..=start).next_back()
            && until >= start
        {
            (start, end) = (before, end.max(until));
        }
        if let Some(until) = self.ranges.remove(&end) {
            end = until;
        }
        self.ranges.insert(start, end);
        if self.ranges.len() > Self::RANGES {
            self.ranges.pop_first();
        }
        let (first, last) = (block.start.saturating_sub(Self::LARGE_PAGE_BYTES), block.end + Self::LARGE_PAGE_BYTES);
        start.max(first)..end.min(last)
    }
}

impl Way {
    fn own(tuning: &Tuning, size: u64) -> Self {
        Self::Own { size, ahead: tuning.read_ahead_bytes, fetched: AtomicU64::new(0) }
    }
}

/// Asks storage for a range, if it does not begin in the cache; says whether that was so.
fn fetch(file: &File, Range { start: offset, end }: Range<u64>, fetched: &AtomicU64) -> bool {
    if offset >= fetched.load(Ordering::Relaxed) {
        let cached = bulk::read_if_cached(file, &mut [0], offset);
        if !matches!(cached, Ok(None)) {
            return false;
        }
    }
    // Whoever reads the next ones finds them there.
    let start = fetched.fetch_max(end, Ordering::Relaxed).max(offset);
    if start < end {
        // Without it storage is read when it is waited for.
        let _ = bulk::fetch(file, start, end - start);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LARGE: u64 = 8 << 20;
    const TUNING: Tuning = Tuning { past_cache_file_bytes: LARGE, ..Tuning::DEFAULT };

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
    fn writing_past_the_cache_and_through_it_write_the_same() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        for (size, bypassed) in [(LARGE, false), (LARGE, true), (1, false)] {
            for directory in [std::env::temp_dir(), on_disk(), "/dev/shm".into()] {
                if !directory.exists() {
                    continue;
                }
                let (file, cache) = (temporary(&directory), WriteBehind::new(&TUNING, size));
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
    fn cache_lets_go_what_was_not_there_before_and_keeps_the_rest() {
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
        let ahead = ReadAhead { way: Way::own(&TUNING, LARGE) };
        assert!(!ahead.begin(&file, 2 << 20, 4096), "it is somebody's");
        assert!(ahead.begin(&file, 0, 1 << 19));
        let mut half = vec![0; 1 << 19];
        assert_eq!(file::read_full_at(&file, &mut half, 0).unwrap(), half.len());
        ahead.end(&file, 0, 1 << 19);
        assert_eq!(is_cached(&file, 4096), Some(false));
        assert_eq!(is_cached(&file, 2 << 20), Some(true));
        // What was fetched ahead is ours, cached or not.
        assert!(ahead.begin(&file, 1 << 19, 1 << 19));
    }

    #[test]
    fn cached_file_is_left_there_and_a_small_one_to_the_system() {
        let file = temporary(&on_disk());
        file::write_all_at(&file, &vec![3; LARGE as usize], 0).unwrap();
        assert!(!ReadAhead::new(&TUNING, &file, LARGE - 1).begin(&file, 0, 4096), "small");
        let cached = ReadAhead::new(&TUNING, &file, LARGE);
        assert!(matches!(cached.way, Way::Own { .. }));
        if is_cached(&file, 0) == Some(true) {
            assert!(!cached.begin(&file, 0, 4096), "it is somebody's");
        }
    }

    #[test]
    fn read_ahead_goes_from_the_cache_with_its_block_and_nothing_else() {
        const MIB: u64 = 1 << 20;
        let mut read = ReadSoFar::default();
        let mut add = |block: u64| {
            let range = read.add(block * MIB..(block + 1) * MIB);
            (range.start / MIB, range.end / MIB)
        };
        assert_eq!(add(12), (12, 13));
        assert_eq!(add(11), (11, 13), "12 began with the end of a page of 11");
        assert_eq!(add(9), (9, 10), "10 is still to be read");
        assert_eq!(add(10), (9, 13));
        assert_eq!(add(13), (9, 14));
        assert_eq!(add(14), (10, 15), "no page is so large");
        assert_eq!(add(12), (9, 15), "again, over another stream");
        assert!((100..2000).all(|block| add(2 * block) == (2 * block, 2 * block + 1)));
        assert_eq!(read.ranges.len(), ReadSoFar::RANGES);
    }

    #[test]
    fn cold_file_is_let_go_from_the_cache_whole() {
        let file = temporary(&on_disk());
        file::write_all_at(&file, &vec![3; LARGE as usize], 0).unwrap();
        file::sync_data(&file).unwrap();
        file::drop_cache(&file, 0, 0).unwrap();
        if !bulk::cached_pages(&file, LARGE).is_ok_and(|pages| pages == 0) {
            return; // this system does not tell, or keeps what it likes
        }
        let (ahead, mut block) = (ReadAhead::new(&TUNING, &file, LARGE), vec![0; 1 << 20]);
        for offset in (0..LARGE).step_by(block.len()) {
            assert!(ahead.begin(&file, offset, 1 << 20));
            assert_eq!(file::read_full_at(&file, &mut block, offset).unwrap(), block.len());
            assert!(block.iter().all(|byte| *byte == 3));
            ahead.end(&file, offset, 1 << 20);
        }
        assert_eq!(bulk::cached_pages(&file, LARGE).unwrap(), 0);
    }
}
