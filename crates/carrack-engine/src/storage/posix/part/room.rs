//! The room that a part file takes: reserved before its blocks come, or shared with another file.

use std::fs::File;

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_sys::dir::{Dir, stat_file};
use carrack_sys::file;

use super::PartFile;
use crate::error::{failure, io_failure};

impl PartFile {
    /// Makes it as long as it is to be. Room for what is not `filled` from elsewhere, from the beginning on, is
    /// reserved where that pays.
    ///
    /// # Errors
    /// Those of the system; [`ErrorCode::NoSpace`].
    pub fn reserve(&self, filled: u64) -> Result<(), Failure> {
        let (size, shared) = (self.entry.source.size, &self.entry.shared);
        // A directory that cannot be opened once more, for want of descriptors, tells nothing of its room.
        if !self.keeps_holes
            && let Ok(directory) = shared.directories.get(&self.entry.parent)
        {
            check_space(&directory.dir, size)?;
        }
        let reserves = !self.keeps_holes && size > filled;
        // In memory it would take time before the first byte, and there is no order on a disk to win, only the time of
        // the processors for large files.
        let in_memory = self.turns.are_taken();
        if reserves && in_memory && filled == 0 && size > shared.tuning.small_file_bytes {
            self.turns.reserve(size);
        }
        let is_reserved =
            if reserves && !in_memory { file::preallocate_range(&self.file, filled, size - filled) } else { Ok(false) };
        let prepared = is_reserved.and_then(|reserved| if reserved { Ok(()) } else { self.file.set_len(size) });
        prepared.map_err(|error| io_failure(Side::Destination, format!("reserve {size} bytes"), &error))
    }

    /// Has it share all blocks of `source`, at one moment; `false` where the file systems cannot do that, or the source
    /// is not as long as it was. Then room is [reserved](Self::reserve).
    ///
    /// # Errors
    /// Those of [`Self::reserve`].
    pub fn share(&self, source: Option<&File>) -> Result<bool, Failure> {
        let _entered = self.entry.shared.watch.enter("share blocks", &self.path);
        if let Some(source) = source {
            let shared = file::share_blocks(source, &self.file).and_then(|()| stat_file(&self.file));
            if shared.is_ok_and(|stat| stat.size == self.entry.source.size) {
                self.cache.bypassed();
                return Ok(true);
            }
            // Some may have come.
            self.file.set_len(0).map_err(Self::fail("reserve"))?;
        }
        self.reserve(0).map(|()| false)
    }
}

/// Whether there is room for so many bytes.
///
/// # Errors
/// [`ErrorCode::NoSpace`].
pub(in crate::storage::posix) fn check_space(dir: &Dir, size: u64) -> Result<(), Failure> {
    // A file system that cannot say how much is free gets the benefit of the doubt: writing will tell.
    let Ok(space) = dir.free_space() else {
        return Ok(());
    };
    if space.bytes_available >= size {
        return Ok(());
    }
    let message = format!(
        "the file needs {size} bytes and the file system has {} left: {} too few",
        space.bytes_available,
        size - space.bytes_available
    );
    Err(failure(ErrorCode::NoSpace, Side::Destination, message))
}
