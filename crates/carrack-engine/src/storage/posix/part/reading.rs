//! What is read of a part file: blocks that an earlier session has left, that are taken over from what stands at the
//! name, or that are read back; and what of a block is there before a patch is applied to it.

use carrack_core::digest::{BlockDigest, block_count, block_length};
use carrack_core::report::Failure;
use carrack_core::request::Durability;
use carrack_core::tuning::SLICE_BYTES;
use carrack_core::wire::patch::{ChunkHasher, TakenBlock};
use carrack_sys::{dir, file};

use super::{PartFile, ends_early};
use crate::data::hasher::BlockHasher;
use crate::sync::lock;

impl PartFile {
    /// Digests blocks that may be there from an earlier session, and has the marker claim those that can be read. It
    /// reads all of them: for a thread of its own.
    pub fn rehash(&self, doubtful: &[u64]) -> Vec<(u64, BlockDigest)> {
        let found: Vec<_> =
            doubtful.iter().filter_map(|&index| self.stored(index, false).ok().map(|digest| (index, digest))).collect();
        // Read from the cache or from storage: synced before it is claimed.
        if self.entry.shared.durability == Durability::None || self.sync().is_ok() {
            self.claim(&found);
            return found;
        }
        Vec::new()
    }

    /// Copies blocks from what stands at the name, within the file system where that can be done, and digests what has
    /// come to be here; those that cannot be copied are left out. Nothing of it is claimed: it may not be what is
    /// wanted.
    pub fn take_over(&self, indexes: &[u64]) -> Vec<TakenBlock> {
        if self.entry.in_place {
            // It is here already.
            return indexes.iter().filter_map(|&index| self.taken(index)).collect();
        }
        let standing = lock(&self.standing).clone();
        let Some(standing) = standing else { return Vec::new() };
        let take = |&index: &u64| {
            let (start, length) = self.place_of(index);
            // Of the last block that it has it may have a part.
            let there = dir::stat_file(&standing).ok()?.size;
            let length = length.min(there.checked_sub(start)?);
            let next = file::next_data(&standing, start);
            let is_hole = next.is_ok_and(|data| data.is_none_or(|data| data >= start + length));
            let _entered = self.entry.shared.watch.enter("copy", &self.path);
            if (is_hole || self.keeps_holes) && self.touched.has(index) {
                file::zero(&self.file, start, length).ok()?;
            }
            if !is_hole {
                self.touched.note(index);
                self.cache.bypassed();
                let copy = if self.keeps_holes { file::copy_but_zeros } else { file::copy_range };
                copy(&standing, &self.file, start, length).ok()?;
                self.written(start, length);
                // Nobody reads it again.
                let _ = file::drop_cache(&standing, start, length);
            }
            self.taken(index)
        };
        indexes.iter().filter_map(take).collect()
    }

    fn taken(&self, index: u64) -> Option<TakenBlock> {
        let size = self.entry.source.size;
        let mut chunks = ChunkHasher::new(size, self.block_bytes);
        let whole = block_count(size, self.block_bytes) == 1;
        let digest = self.stored_of((index, size), whole, false, true, |slice| chunks.update(slice)).ok()?;
        Some(TakenBlock { index, digest, chunks: chunks.finish() })
    }

    /// Reads from `offset` on what is here now; how many bytes, fewer than `slice` has only at the end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, offset: u64, slice: &mut [u8]) -> Result<usize, Failure> {
        let _entered = self.entry.shared.watch.enter("read", &self.path);
        file::read_full_at(&self.file, slice, offset).map_err(Self::fail("read back"))
    }

    /// Nothing more is taken over: on a network file system, what is open when it is replaced stays under another name.
    pub fn end_taking_over(&self) {
        lock(&self.standing).take();
    }

    /// Where a block begins, and its bytes.
    pub(super) fn place_of(&self, index: u64) -> (u64, u64) {
        (index * u64::from(self.block_bytes), block_length(index, self.entry.source.size, self.block_bytes))
    }

    /// Whether storage has a block with this digest.
    pub(super) fn is_stored(&self, index: u64, digest: BlockDigest) -> Result<bool, Failure> {
        if self.has_size {
            return Ok(self.stored(index, true)? == digest);
        }
        // All blocks but the last are full, and of the first only the sender knows whether it is the last.
        let size = dir::stat_file(&self.file).map_err(Self::fail("read back"))?.size;
        let found = |whole| self.stored_of((index, size), whole, true, false, |_| ());
        let has_some = index * u64::from(self.block_bytes) < size;
        Ok(has_some && found(false)? == digest || index == 0 && found(true)? == digest)
    }

    /// The digest of a block as it is stored.
    fn stored(&self, index: u64, past_cache: bool) -> Result<BlockDigest, Failure> {
        let size = self.entry.source.size;
        self.stored_of((index, size), block_count(size, self.block_bytes) == 1, past_cache, false, |_| ())
    }

    /// The same, of a file of this size; `whole`: the block is all of it. If the file ends before the block, and
    /// `may_end`, there are zeros. `seen` sees what is read.
    fn stored_of(
        &self,
        (index, size): (u64, u64),
        whole: bool,
        past_cache: bool,
        may_end: bool,
        mut seen: impl FnMut(&[u8]),
    ) -> Result<BlockDigest, Failure> {
        let _entered = self.entry.shared.watch.enter("read", &self.path);
        let (start, length) = (index * u64::from(self.block_bytes), block_length(index, size, self.block_bytes));
        let fail = Self::fail("read back");
        if past_cache {
            file::drop_cache(&self.file, start, length).map_err(&fail)?;
        }
        let mut hasher = BlockHasher::new(self.wanted, start);
        let mut slice = vec![0; SLICE_BYTES.min(length as usize)];
        let mut done = 0;
        while done < length {
            let want = (length - done).min(SLICE_BYTES as u64) as usize;
            let read = file::read_full_at(&self.file, &mut slice[..want], start + done).map_err(&fail)?;
            if read < want && !may_end {
                return Err(ends_early(start + done + read as u64));
            }
            slice[read..want].fill(0);
            hasher.update(&slice[..want]);
            seen(&slice[..want]);
            done += want as u64;
        }
        Ok(hasher.finish(whole))
    }
}
