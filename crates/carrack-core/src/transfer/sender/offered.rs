//! One offered file at the sender: which of its blocks have been taken, read and landed.

use std::collections::{BTreeMap, BTreeSet};

use super::BlockJob;
use crate::digest::{BlockDigest, FileTree, block_count, block_length};
use crate::limits;
use crate::report::{Failure, FileDigests};
use crate::transfer::ranges::Ranges;
use crate::transfer::{BLOCKS_AHEAD, ScannedItem};
use crate::wire::control::TransferOptions;

#[derive(Debug)]
pub(super) struct Offered {
    pub scanned: ScannedItem,
    pub accepted: bool,
    /// Given up by this side: only the receiver's word is missing.
    pub abandoned: Option<Failure>,
    /// Known from the start, or since the source ended.
    pub size: Option<u64>,
    /// The first block that has never been taken.
    next_block: u64,
    /// Blocks to send again.
    again: BTreeSet<u64>,
    landed: Ranges,
    hashed: Ranges,
    tree: FileTree,
    block_bytes: u32,
    /// Blocks that arrived altered and have not landed since, and how often.
    altered: BTreeMap<u64, u32>,
    /// A stream is reading the next block of a source without a size.
    reading: bool,
    /// The source's check has been asked for, or is over.
    checking: bool,
    /// The receiver has been told what the file must be.
    pub completed: bool,
    pub digests: FileDigests,
}

impl Offered {
    pub fn new(scanned: ScannedItem, options: &TransferOptions) -> Self {
        Self {
            accepted: false,
            abandoned: None,
            size: scanned.size,
            scanned,
            next_block: 0,
            again: BTreeSet::new(),
            landed: Ranges::new(),
            hashed: Ranges::new(),
            tree: FileTree::new(options.block_bytes, options.digests),
            block_bytes: options.block_bytes,
            altered: BTreeMap::new(),
            reading: false,
            checking: false,
            completed: false,
            digests: FileDigests::default(),
        }
    }

    /// What was read cannot be read again.
    pub fn once(&self) -> bool {
        self.scanned.size.is_none()
    }

    pub fn index(&self, offset: u64) -> u64 {
        offset / u64::from(self.block_bytes)
    }

    /// Whether a stream has taken the block that starts here.
    pub fn was_taken(&self, offset: u64) -> bool {
        offset.is_multiple_of(u64::from(self.block_bytes)) && self.index(offset) < self.next_block
    }

    /// The next block to send, and whether the receiver has it already: then it is only read again.
    pub fn take_block(&mut self, number: u64) -> Option<(BlockJob, bool)> {
        let index = match self.again.pop_first() {
            Some(index) => index,
            None if self.may_go_on() => {
                self.next_block += 1;
                self.next_block - 1
            }
            None => return None,
        };
        self.reading = self.size.is_none();
        let block_bytes = u64::from(self.block_bytes);
        let length = self.size.map_or(block_bytes, |size| block_length(index, size, self.block_bytes));
        let job = BlockJob {
            item: number,
            offset: index * block_bytes,
            // At most `block_bytes`, which is a `u32`.
            length: length as u32,
            whole: self.size.is_some_and(|size| block_count(size, self.block_bytes) == 1),
            unsized_source: self.size.is_none(),
            sparse: self.scanned.sparse,
        };
        Some((job, self.landed.contains(index)))
    }

    fn may_go_on(&self) -> bool {
        let all_taken = self.size.is_some_and(|size| self.next_block >= block_count(size, self.block_bytes));
        let ahead = self.next_block - self.landed.count();
        !all_taken && !self.reading && ahead < BLOCKS_AHEAD
    }

    /// No block will have to be taken, unless one that is under way is lost.
    pub fn is_all_taken(&self) -> bool {
        let blocks = self.size.map(|size| block_count(size, self.block_bytes));
        self.again.is_empty() && blocks.is_some_and(|blocks| self.next_block >= blocks)
    }

    /// Every block has been read, and every one is at the receiver.
    pub fn is_all_landed(&self) -> bool {
        let blocks = self.size.map(|size| block_count(size, self.block_bytes));
        blocks.is_some_and(|blocks| self.hashed.is_all_of(blocks) && self.landed.is_all_of(blocks))
    }

    /// A block of a source without a size was read; what is wrong with what came, if anything.
    pub fn read(&mut self, offset: u64, length: u32, end: bool) -> Option<&'static str> {
        self.reading = false;
        if end && length == 0 && offset > 0 {
            return Some("the source's end was found after its last block had been sent");
        }
        if !end && length != self.block_bytes {
            return Some("the source gave a short block and did not end");
        }
        if end {
            self.size = Some(offset + u64::from(length));
        }
        None
    }

    pub fn hash(&mut self, offset: u64, length: u32, digest: BlockDigest) {
        let index = self.index(offset);
        self.hashed.insert(index);
        self.tree.insert(index, u64::from(length), digest);
    }

    /// A block is at the receiver; its bytes when that is news.
    pub fn land(&mut self, offset: u64) -> Option<u64> {
        let index = self.index(offset);
        if !self.landed.insert(index) {
            return None;
        }
        self.altered.remove(&index);
        if self.hashed.contains(index) {
            self.again.remove(&index);
        }
        // Of a source without a size all blocks but the last are full, and of the last the size is known before it is sent.
        Some(block_length(index, self.size.unwrap_or(u64::MAX), self.block_bytes))
    }

    pub fn has_landed(&self, offset: u64) -> bool {
        self.landed.contains(self.index(offset))
    }

    /// A block arrived altered; false when that was once too often.
    pub fn count_altered(&mut self, offset: u64) -> bool {
        let index = self.index(offset);
        let times = self.altered.entry(index).or_default();
        *times += 1;
        *times < limits::SENDS_PER_BLOCK
    }

    /// The stream that carried the block was lost, or the block arrived altered: whether it has to be read again.
    pub fn requeue(&mut self, offset: u64) -> bool {
        let index = self.index(offset);
        let needed = !(self.landed.contains(index) && self.hashed.contains(index));
        needed && self.again.insert(index)
    }

    /// Whether every block has been read and the source is to be checked now. True once.
    pub fn is_to_be_checked(&mut self) -> bool {
        let blocks = self.size.map(|size| block_count(size, self.block_bytes));
        let now =
            !self.checking && self.abandoned.is_none() && blocks.is_some_and(|blocks| self.hashed.is_all_of(blocks));
        self.checking |= now;
        now
    }

    /// The file's size and digests, once every block has been read.
    pub fn finish(&self) -> Option<(u64, FileDigests)> {
        let size = self.size?;
        Some((size, self.tree.finish(size)?))
    }
}
