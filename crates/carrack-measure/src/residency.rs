//! Whether bytes came from memory: asked of the kernel, not guessed from their rate.

use std::fs::File;

use carrack_sys::dir::Dir;
use carrack_sys::gauge;
use carrack_sys::measure::GroupPaths;

use crate::result::label;

/// From this share on, bytes count as cached as a whole; a page or two at the edges is nothing.
const MOSTLY: f64 = 0.9;
/// From this share on, they count as cached in part.
const SOME: f64 = 0.05;

/// What a file system keeps in memory, and who can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The page cache, which can be asked.
    Pages,
    /// All of it: tmpfs.
    Everything,
    /// A cache of its own, which nobody can ask (ZFS).
    Own,
}

impl Cache {
    /// What the file system of a directory keeps; `kind` is its name in the list of mounts.
    pub fn of(directory: &Dir, kind: &str) -> Self {
        if carrack_sys::dir::file_system(directory).is_ok_and(|found| found.in_memory) {
            return Self::Everything;
        }
        if kind == "zfs" { Self::Own } else { Self::Pages }
    }
}

/// The share of a file's first `len` bytes that lies in the page cache, from 0 to 1; `None` where nobody can tell.
pub fn cached_share(file: &File, len: u64) -> Option<f64> {
    share(gauge::cached(file, 0, len).ok()?.bytes, len)
}

/// The share of a file's first `len` bytes that has not reached storage.
pub fn unwritten_share(file: &File, len: u64) -> Option<f64> {
    share(gauge::cached(file, 0, len).ok()?.unwritten?, len)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The label of a row that moved bytes of which this share was cached: read from the cache, or written into it and
/// no further. `direct` is access past the page cache.
pub fn label(cache: Cache, share: Option<f64>, direct: bool) -> Option<&'static str> {
    match (cache, share) {
        (Cache::Everything, _) => Some(label::MEMORY),
        (_, _) if direct => None,
        (Cache::Own, _) | (Cache::Pages, None) => Some(label::CACHE_UNKNOWN),
        (Cache::Pages, Some(share)) if share >= MOSTLY => Some(label::CACHED),
        (Cache::Pages, Some(share)) if share >= SOME => Some(label::PARTLY_CACHED),
        (Cache::Pages, Some(_)) => None,
    }
}

/// The threads of a measurement use no more than this part of memory.
pub const MEMORY_PART: u64 = 4;

/// Memory that a cache may use: the host's, or what the control group allows where that is less.
pub fn memory_bytes() -> u64 {
    let host = total_of(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default()).unwrap_or(u64::MAX);
    host.min(GroupPaths::find().memory_limit().unwrap_or(u64::MAX))
}

fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_bytes_are_labelled() {
        use Cache::{Everything, Own, Pages};
        for (cache, share, direct, expected) in [
            (Pages, Some(0.0), false, None),
            (Pages, Some(0.04), false, None),
            (Pages, Some(0.3), false, Some(label::PARTLY_CACHED)),
            (Pages, Some(1.0), false, Some(label::CACHED)),
            (Pages, Some(1.0), true, None),
            (Pages, None, false, Some(label::CACHE_UNKNOWN)),
            (Own, Some(0.0), false, Some(label::CACHE_UNKNOWN)),
            (Own, Some(0.0), true, None),
            (Everything, Some(0.0), true, Some(label::MEMORY)),
        ] {
            assert_eq!(super::label(cache, share, direct), expected, "{cache:?} {share:?} {direct}");
        }
    }

    #[test]
    fn memory_is_read_from_what_the_kernel_says() {
        assert_eq!(total_of("MemFree: 5 kB\nMemTotal:       16 kB\n"), Some(16384));
        assert_eq!(total_of("MemFree: 5 kB\n"), None);
        assert!(memory_bytes() > 1 << 20);
    }
}
