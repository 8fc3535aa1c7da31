//! Living within the limit of open files: how much may be kept open, and waiting when there is
//! nothing left for a moment.

use std::io;
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_sys::errno::{EMFILE, ENFILE};

/// How long to wait for a descriptor: what holds one here is written, read or published meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(2);
/// Descriptors that connections and the threads at work take in a process with two ends and a few streams.
const TAKEN: u64 = 48;

/// Part files that this process may keep open at once. A source may be open for each in the same process, and the scan
/// and small files need some as well.
pub fn open_parts_max() -> usize {
    parts_within(carrack_sys::host::raise_open_files_limit())
}

/// Directories of a destination that this process may keep open at once.
pub fn open_directories_max() -> usize {
    directories_within(carrack_sys::host::raise_open_files_limit())
}

fn parts_within(limit: u64) -> usize {
    (limit.saturating_sub(TAKEN) / 4).clamp(1, limits::OPEN_ITEMS as u64) as usize
}

fn directories_within(limit: u64) -> usize {
    (limit / 16).clamp(2, 128) as usize
}

/// Opens something, and waits a while when the process or the system has no descriptor left.
///
/// # Errors
/// Those of `open`.
pub fn patiently<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match open() {
            Err(error) if has_run_out(&error) && Instant::now() < deadline => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
}

fn has_run_out(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_that_are_few_are_shared_out_and_many_are_not_used_up() {
        for (limit, parts, directories) in
            [(0, 1, 2), (64, 4, 4), (256, 52, 16), (1024, 64, 64), (4096, 64, 128), (u64::MAX, 64, 128)]
        {
            assert_eq!((parts_within(limit), directories_within(limit)), (parts, directories), "{limit}");
        }
    }

    #[test]
    fn descriptors_are_waited_for_only_when_short() {
        let mut attempts = 0;
        let mut open = |errors: usize, error: i32| {
            attempts = 0;
            patiently(|| {
                attempts += 1;
                if attempts > errors { Ok(attempts) } else { Err(io::Error::from_raw_os_error(error)) }
            })
        };
        assert_eq!(open(3, EMFILE).unwrap(), 4);
        assert_eq!(open(3, ENFILE).unwrap(), 4);
        let refused = open(3, carrack_sys::errno::ENOENT).unwrap_err();
        assert_eq!((refused.kind(), attempts), (io::ErrorKind::NotFound, 1));
    }
}
