//! A small file whose content comes piece by piece.

use std::io;
use std::sync::Arc;

use carrack_core::attributes::Attributes;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::Durability;
use carrack_sys::dir::stat_file;
use carrack_sys::file;

use crate::error::{failure, io_failure};
use crate::storage::posix::directories::DestinationFileSystem;
use crate::storage::posix::extended::Holder;
use crate::storage::posix::giving::{Beginning, Born};
use crate::storage::posix::part::{PartEntry, finish_attributes};
use crate::storage::write::SmallFile;

/// A small file that is written in pieces under its hidden name. It is removed if it is dropped before
/// [`GrowingFile::finish`].
pub struct GrowingFile {
    /// Until it is finished.
    pub(super) made: Option<(std::fs::File, PartEntry)>,
    pub(super) file_system: Arc<DestinationFileSystem>,
    /// What it had to begin with, where all new files of its directory have the same.
    pub(super) born: Option<Arc<Born>>,
    /// Two names may be one where it is.
    pub(super) folds: bool,
    pub(super) path: Arc<[u8]>,
    pub(super) end: u64,
    /// Why a write failed; what comes after it is not written.
    pub(super) failed: Option<io::Error>,
}

impl GrowingFile {
    /// Writes what comes next. An error is told by [`GrowingFile::finish`].
    pub fn write(&mut self, bytes: &[u8]) {
        let Some((file, entry)) = self.made.as_ref().filter(|_| self.failed.is_none() && !bytes.is_empty()) else {
            return;
        };
        let _entered = entry.shared.watch.enter("write", &self.path);
        self.failed = file::write_all_at(file, bytes, self.end).err();
        self.end += bytes.len() as u64;
    }

    /// What was written of a small file is all of it.
    ///
    /// # Errors
    /// Those of the file system, of the writes before as well; nothing is left behind.
    pub fn finish(mut self, small: &SmallFile<'_>) -> Result<PartEntry, Failure> {
        let Some((part_file, mut entry)) = self.made.take() else {
            return Err(failure(ErrorCode::Internal, Side::Destination, "a file was finished twice"));
        };
        let shared = Arc::clone(&entry.shared);
        let _entered = shared.watch.enter("write", &self.path);
        (entry.digests, entry.read_back) = (small.digests, small.read_back);
        let failed = self.failed.take();
        let written = (|| {
            failed.map_or(Ok(()), Err)?;
            let Attributes { mode, mtime, others } = &small.attributes;
            let beginning = self.born.as_deref().map_or(Beginning::New, Beginning::NewIn);
            let given = finish_attributes(shared.giving(), &part_file, (*mode, *mtime), others, beginning)?;
            // Asked once: which it is may change while others are being synced.
            let alone = shared.syncs_now(self.file_system.device, small.read_back);
            if alone {
                let failed = |error: &io::Error| io_failure(Side::Destination, "sync", error);
                let synced = file::sync_data(&part_file);
                synced.inspect_err(|error| shared.sync_of_file_failed(&failed(error)))?;
            }
            entry.awaits_sync = !alone && shared.durability == Durability::Group;
            if !given.mode_and_time || !self.is_known(&entry, given.others) {
                let stat = stat_file(&part_file)?;
                self.file_system.keeps.seen(small.attributes.mtime, &stat);
                let (giving, holder) = (shared.giving(), Holder::File(&part_file));
                entry.look(giving.shown(stat, holder), giving.listed_of(holder, others));
            }
            file::close(part_file)
        })();
        match written {
            Ok(()) => Ok(entry),
            Err(error) => {
                entry.remove();
                Err(io_failure(Side::Destination, "write", &error))
            }
        }
    }

    /// Whether nobody will ask what the file is: nothing tells of it later, and that it has kept what was set is sure.
    fn is_known(&self, entry: &PartEntry, has_others: bool) -> bool {
        let is_told = entry.source.fingerprint.is_some() || !has_others || self.folds;
        !is_told && self.file_system.keeps.surely(entry.source.mtime)
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        self.made.iter().for_each(|(_, entry)| entry.remove());
    }
}
