//! The BLAKE3 of a whole file, by several threads where it is large.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use carrack_core::digest::{FileTree, block_count, block_length};
use carrack_core::failure::Failure;
use carrack_core::request::Digests;
use carrack_core::tuning::SLICE_BYTES;
use carrack_sys::threads;

use super::hasher::BlockHasher;
use crate::sync::lock;

/// Bytes that one thread reads in one piece.
const BLOCK_BYTES: u32 = 1 << 20;
/// A smaller file is read by one thread: others have others to read.
const SHARED_ABOVE: u64 = 64 << 20;

/// Fills a slice with what a file has from an offset on.
///
/// # Errors
/// When it cannot be read.
pub type ReadAt<'a> = dyn Fn(u64, &mut [u8]) -> Result<(), Failure> + Sync + 'a;

/// Bytes of a sample.
const SAMPLE_BYTES: u64 = 16 << 10;

/// The BLAKE3 of samples of a file of `size` bytes: of its beginning, its middle and its end. It is that of no file.
///
/// # Errors
/// The first of `read`.
pub fn sample_digest(size: u64, read: &ReadAt<'_>) -> Result<[u8; 32], Failure> {
    let mut hasher = blake3::Hasher::new_derive_key("carrack samples of a file");
    hasher.update(&size.to_le_bytes());
    let length = SAMPLE_BYTES.min(size);
    let mut sample = vec![0; length as usize];
    for at in [0, (size - length) / 2, size - length] {
        read(at, &mut sample)?;
        hasher.update(&sample);
    }
    Ok(*hasher.finalize().as_bytes())
}

/// Digests a file of `size` bytes, which `read` gives from an offset on; `None` when `stop` says that nobody wants to
/// know any more. `threads` at most read it at once.
///
/// # Errors
/// The first of `read`.
pub fn content_digest(
    size: u64,
    threads: usize,
    read: &ReadAt<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<[u8; 32]>, Failure> {
    let blocks = block_count(size, BLOCK_BYTES);
    let (next, failed) = (AtomicU64::new(0), Mutex::new(None));
    let tree = Mutex::new(FileTree::new(BLOCK_BYTES, Digests::BLAKE3));
    let work = || {
        let mut slice = vec![0; SLICE_BYTES.min(usize::try_from(size).unwrap_or(SLICE_BYTES))];
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= blocks || stop() || lock(&failed).is_some() {
                return;
            }
            let (start, length) = (index * u64::from(BLOCK_BYTES), block_length(index, size, BLOCK_BYTES));
            let mut hasher = BlockHasher::new(Digests::BLAKE3, start);
            let mut done = 0;
            while done < length {
                let want = (length - done).min(SLICE_BYTES as u64) as usize;
                if let Err(why) = read(start + done, &mut slice[..want]) {
                    lock(&failed).get_or_insert(why);
                    return;
                }
                hasher.update(&slice[..want]);
                done += want as u64;
            }
            lock(&tree).insert(index, length, hasher.finish(blocks == 1));
        }
    };
    std::thread::scope(|scope| {
        let helpers = if size < SHARED_ABOVE { 0 } else { threads.saturating_sub(1) };
        for _ in 0..helpers {
            // A host that has no thread left has fewer.
            if threads::start_scoped(scope, "reading to compare", work).is_err() {
                break;
            }
        }
        work();
    });
    match lock(&failed).take() {
        Some(why) => Err(why),
        None => Ok(lock(&tree).finish(size).and_then(|digests| digests.blake3)),
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::failure::{ErrorCode, Side};

    use super::*;

    #[test]
    fn digest_of_content_is_blake3_however_many_threads_read_it() {
        for size in [0, 1, 1000, BLOCK_BYTES as usize, SHARED_ABOVE as usize + 12_345] {
            let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let read = |offset: u64, out: &mut [u8]| {
                out.copy_from_slice(&content[offset as usize..][..out.len()]);
                Ok(())
            };
            for threads in [1, 3] {
                let digest = content_digest(size as u64, threads, &read, &|| false).unwrap();
                assert_eq!(digest, Some(*blake3::hash(&content).as_bytes()), "{size} by {threads}");
            }
        }
        let fails = |_: u64, _: &mut [u8]| Err(Failure::new(ErrorCode::InputOutput, Side::Source, "read"));
        assert!(content_digest(SHARED_ABOVE, 3, &fails, &|| false).is_err());
        assert_eq!(content_digest(SHARED_ABOVE, 3, &|_, _| Ok(()), &|| true), Ok(None));
    }
}
