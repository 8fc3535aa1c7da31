//! One offered file at the sender: which of its blocks have been taken, read and landed, and which the receiver holds
//! from an earlier attempt.
//!
//! A held block is *open* until it has been compared: then it has landed (and is confirmed), or is sent like any other.

use std::collections::{BTreeMap, BTreeSet};

use super::BlockJob;
use crate::attributes::Time;
use crate::digest::{BlockDigest, FileDigests, FileTree, block_count, block_length};
use crate::failure::Failure;
use crate::ids::ItemId;
use crate::limits;
use crate::report::Counts;
use crate::request::Digests;
use crate::transfer::ranges::Ranges;
use crate::transfer::{BLOCKS_AHEAD, ScannedItem};
use crate::wire::control::TransferOptions;
use crate::wire::patch;

#[derive(Debug)]
pub(super) struct Offered {
    pub scanned: ScannedItem,
    /// How often it has been offered before.
    pub attempt: u32,
    pub accepted: bool,
    /// Given up by this side: only the receiver's word is missing.
    pub abandoned: Option<Failure>,
    /// Known from the start, or since the source ended.
    pub size: Option<u64>,
    /// While it is followed: bytes that it is known to have.
    pub there: Option<u64>,
    /// When it was written to last, of a file that was followed.
    pub modified: Option<Time>,
    /// Before this, blocks have been taken, or are held.
    next_block: u64,
    /// Blocks to send again, or that turned out not to be held.
    again: BTreeSet<u64>,
    /// Held blocks to be compared, and what the receiver says that they are.
    held: BTreeMap<u64, BlockDigest>,
    /// The same, being compared by a stream.
    checking: BTreeMap<u64, BlockDigest>,
    landed: Ranges,
    hashed: Ranges,
    /// Blocks that the receiver held, or holds, from what stands at the name.
    of_standing: Ranges,
    /// Landed because an earlier attempt had brought them.
    resumed: Ranges,
    /// Landed because what stands at the name has them.
    taken_over: Ranges,
    /// Chunks of what the receiver holds of blocks, until these have landed.
    chunks: BTreeMap<u64, Box<[u32]>>,
    /// Of blocks that were sent as patches, the bytes that the receiver had.
    patched: BTreeMap<u64, u64>,
    tree: FileTree,
    block_bytes: u32,
    wanted: Digests,
    /// Blocks that arrived altered and have not landed since, and how often.
    altered: BTreeMap<u64, u32>,
    /// Blocks that landed and that storage gave back otherwise, and how often.
    rotten: BTreeMap<u64, u32>,
    /// A stream is reading the next block of a source without a size.
    reading: bool,
    /// The receiver's file shares its blocks with the source: nothing is read.
    pub shared: bool,
    /// The source's check has been asked for, or is over.
    checked: bool,
    /// The receiver has been told what the file must be.
    pub completed: bool,
    pub digests: FileDigests,
}

/// Bytes that were not sent, because the receiver has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundBytes {
    /// From an earlier attempt.
    pub left: u64,
    /// From what stands at the name.
    pub taken_over: u64,
}

impl FoundBytes {
    /// Counts them.
    pub fn count(self, counts: &mut Counts) {
        counts.bytes_resumed += self.left;
        counts.bytes_taken_over += self.taken_over;
    }

    /// They are sent after all.
    pub fn uncount(self, counts: &mut Counts) {
        counts.bytes_resumed -= self.left;
        counts.bytes_taken_over -= self.taken_over;
    }
}

/// What came of comparing a held block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// It has landed; its bytes.
    Same(FoundBytes),
    /// It has to be sent.
    Different,
    /// It was not to be compared any more.
    Unasked,
}

impl Offered {
    pub fn new(scanned: ScannedItem, attempt: u32, options: &TransferOptions) -> Self {
        Self {
            attempt,
            accepted: false,
            abandoned: None,
            size: scanned.size.filter(|_| !scanned.followed),
            there: scanned.followed.then_some(0),
            modified: None,
            scanned,
            next_block: 0,
            again: BTreeSet::new(),
            held: BTreeMap::new(),
            checking: BTreeMap::new(),
            landed: Ranges::new(),
            hashed: Ranges::new(),
            of_standing: Ranges::new(),
            resumed: Ranges::new(),
            taken_over: Ranges::new(),
            chunks: BTreeMap::new(),
            patched: BTreeMap::new(),
            tree: FileTree::new(options.block_bytes, options.digests),
            block_bytes: options.block_bytes,
            wanted: options.digests,
            altered: BTreeMap::new(),
            rotten: BTreeMap::new(),
            reading: false,
            shared: false,
            checked: false,
            completed: false,
            digests: FileDigests::default(),
        }
    }

    /// What was read cannot be read again.
    pub fn is_single_use(&self) -> bool {
        self.scanned.size.is_none()
    }

    pub fn index(&self, offset: u64) -> u64 {
        offset / u64::from(self.block_bytes)
    }

    fn blocks(&self) -> Option<u64> {
        self.size.map(|size| block_count(size, self.block_bytes))
    }

    /// Bytes of a block. Of a source without a size all blocks but the last are full, and of the last the size is
    /// known before it is sent.
    fn length(&self, index: u64) -> u64 {
        block_length(index, self.size.unwrap_or(u64::MAX), self.block_bytes)
    }

    /// The receiver holds these from an earlier attempt, or has taken them over; false when it cannot.
    pub fn hold(&mut self, first: u64, digests: &[BlockDigest], taken_over: bool) -> bool {
        let after_the_last = self.held.last_key_value().is_none_or(|(&last, _)| last < first);
        let within = self
            .blocks()
            .is_some_and(|blocks| first.checked_add(digests.len() as u64).is_some_and(|end| end <= blocks));
        let fits = !self.accepted && !self.is_single_use() && after_the_last && within;
        // What is given up is not compared.
        if fits && self.abandoned.is_none() {
            self.held.extend((first..).zip(digests.iter().copied()));
            for index in (first..).take(if taken_over { digests.len() } else { 0 }) {
                self.of_standing.insert(index);
            }
        }
        fits
    }

    /// The chunks of these blocks, one block after the other, as far as there is `room`; false when they are not those
    /// of such blocks. Without any, blocks are sent whole.
    pub fn keep_chunks(&mut self, first: u64, blocks: usize, mut told: &[u32], room: usize) -> bool {
        if told.is_empty() {
            return true;
        }
        let Some(bytes) = self.chunk_bytes() else { return false };
        let keeps = told.len() <= room && self.abandoned.is_none();
        for index in (first..).take(blocks) {
            let count = patch::told_chunks(self.length(index), bytes);
            let Some((chunks, rest)) = told.split_at_checked(count) else { return false };
            if keeps {
                self.chunks.insert(index, chunks.into());
            }
            told = rest;
        }
        told.is_empty()
    }

    fn chunk_bytes(&self) -> Option<u32> {
        patch::block_chunk_bytes(self.size?, self.block_bytes)
    }

    /// How many chunks are kept.
    pub fn chunks_kept(&self) -> usize {
        self.chunks.values().map(|chunks| chunks.len()).sum()
    }

    /// Bytes of a chunk, and the chunks that the receiver has of a block.
    pub fn chunks_of(&self, offset: u64) -> Option<(u32, Box<[u32]>)> {
        Some((self.chunk_bytes()?, self.chunks.get(&self.index(offset))?.clone()))
    }

    /// A block is sent as a patch: the receiver has so many bytes of it.
    pub fn patch(&mut self, offset: u64, there: u64) {
        self.patched.insert(self.index(offset), there);
    }

    /// Held blocks that have not been compared: what is kept of them is proportional to that.
    pub fn held_open(&self) -> usize {
        self.held.len() + self.checking.len()
    }

    /// Nothing of it will be compared any more.
    pub fn forget_held(&mut self) {
        self.held.clear();
        self.checking.clear();
        self.chunks.clear();
    }

    fn is_held(&self, index: u64) -> bool {
        self.held.contains_key(&index) || self.checking.contains_key(&index)
    }

    /// Whether the receiver may ask for the block that starts here once more.
    pub fn may_be_lost(&self, offset: u64) -> bool {
        offset.is_multiple_of(u64::from(self.block_bytes)) && (self.was_taken(offset) || self.has_landed(offset))
    }

    /// Whether a stream has taken the block that starts here, to send it.
    pub fn was_taken(&self, offset: u64) -> bool {
        let index = self.index(offset);
        offset.is_multiple_of(u64::from(self.block_bytes)) && index < self.next_block && !self.is_held(index)
    }

    /// Goes past what need not be sent as far as is known.
    fn pass_held(&mut self) {
        loop {
            let past = self.landed.first_missing(self.next_block);
            self.next_block = past;
            if !self.is_held(past) {
                return;
            }
            self.next_block += 1;
        }
    }

    /// The next block to send, and whether the receiver has it already: then it is only read again.
    pub fn take_block(&mut self, id: ItemId) -> Option<(BlockJob, bool)> {
        let index = match self.again.pop_first() {
            Some(index) => index,
            None if self.may_go_on() => {
                self.next_block += 1;
                self.next_block - 1
            }
            None => return None,
        };
        self.reading = self.size.is_none() && self.is_single_use();
        Some((self.job(id, index), self.landed.contains(index)))
    }

    fn job(&self, id: ItemId, index: u64) -> BlockJob {
        BlockJob {
            item: id,
            offset: index * u64::from(self.block_bytes),
            // At most `block_bytes`, which is a `u32`.
            length: self.length(index) as u32,
            whole: self.blocks() == Some(1),
            unsized_source: self.size.is_none() && self.is_single_use(),
            sparse: self.scanned.sparse,
            patched: self.chunks.contains_key(&index),
        }
    }

    fn may_go_on(&mut self) -> bool {
        self.pass_held();
        let all_taken = self.blocks().is_some_and(|blocks| self.next_block >= blocks);
        let ahead = self.next_block.saturating_sub(self.landed.count() + self.held_open() as u64);
        // Whether a block is all of the file is known once there is something behind it.
        let end = (self.next_block + 1).saturating_mul(self.block_bytes.into());
        let is_there = self.there.is_none_or(|bytes| bytes > end);
        !all_taken && !self.reading && is_there && ahead < BLOCKS_AHEAD
    }

    /// The next held block to compare.
    pub fn take_check(&mut self, id: ItemId) -> Option<BlockJob> {
        let (index, digest) = self.held.pop_first()?;
        self.checking.insert(index, digest);
        Some(self.job(id, index))
    }

    /// The stream that was comparing a block is lost.
    pub fn requeue_check(&mut self, offset: u64) {
        let index = self.index(offset);
        self.held.extend(self.checking.remove(&index).map(|digest| (index, digest)));
    }

    /// A held block has been read.
    pub fn compare(&mut self, offset: u64, digest: BlockDigest) -> Compared {
        let index = self.index(offset);
        let Some(claim) = self.checking.remove(&index).or_else(|| self.held.remove(&index)) else {
            return Compared::Unasked;
        };
        // It was read, whatever the receiver holds; but what is sent is read again, and that is what counts.
        if claim.as_file(self.wanted) != digest.as_file(self.wanted) {
            if index < self.next_block {
                self.again.insert(index);
            }
            return Compared::Different;
        }
        self.hash(offset, self.length(index) as u32, digest);
        self.landed.insert(index);
        self.chunks.remove(&index);
        let bytes = self.length(index);
        if self.of_standing.contains(index) {
            self.taken_over.insert(index);
            return Compared::Same(FoundBytes { left: 0, taken_over: bytes });
        }
        self.resumed.insert(index);
        Compared::Same(FoundBytes { left: bytes, taken_over: 0 })
    }

    /// No block will have to be taken, to be sent or compared, unless one that is under way is lost.
    pub fn is_all_taken(&mut self) -> bool {
        self.pass_held();
        let all = self.blocks().is_some_and(|blocks| self.next_block >= blocks);
        all && self.again.is_empty() && self.held.is_empty()
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

    /// It was followed, and this is all.
    pub fn end_at(&mut self, size: u64) {
        (self.size, self.there) = (Some(size), None);
    }

    pub fn hash(&mut self, offset: u64, length: u32, digest: BlockDigest) {
        let index = self.index(offset);
        self.hashed.insert(index);
        self.tree.insert(index, u64::from(length), digest);
    }

    /// A block is at the receiver; its bytes when that is news, and those of them that the receiver had.
    pub fn land(&mut self, offset: u64) -> Option<(u64, FoundBytes)> {
        let index = self.index(offset);
        if !self.landed.insert(index) {
            return None;
        }
        self.altered.remove(&index);
        self.chunks.remove(&index);
        if self.hashed.contains(index) {
            self.again.remove(&index);
        }
        let taken_over = self.patched.get(&index).copied().unwrap_or(0);
        Some((self.length(index), FoundBytes { left: 0, taken_over }))
    }

    /// Storage gave a block back otherwise than it was written: it has not landed. Its bytes, those of them that the
    /// receiver had, and whether it may go again.
    pub fn take_back(&mut self, offset: u64) -> (u64, FoundBytes, bool) {
        let index = self.index(offset);
        let bytes = if self.landed.remove(index) { self.length(index) } else { 0 };
        let found = FoundBytes {
            left: if self.resumed.remove(index) { bytes } else { 0 },
            taken_over: if self.taken_over.remove(index) { bytes } else { self.patched.remove(&index).unwrap_or(0) },
        };
        let times = self.rotten.entry(index).or_default();
        *times += 1;
        (bytes, found, *times < limits::SENDS_PER_BLOCK)
    }

    /// Bytes that have landed, and those of them that the receiver had.
    pub fn landed_bytes(&self) -> (u64, FoundBytes) {
        if self.shared {
            return (self.size.unwrap_or(0), FoundBytes::default());
        }
        let bytes = |blocks: &Ranges| {
            let last = self.blocks().filter(|&count| count > 0 && blocks.contains(count - 1)).map(|count| count - 1);
            let full = blocks.count() - u64::from(last.is_some());
            full * u64::from(self.block_bytes) + last.map_or(0, |last| self.length(last))
        };
        let landed = self.patched.iter().filter(|(index, _)| self.landed.contains(**index));
        let taken_over = bytes(&self.taken_over) + landed.map(|(_, there)| there).sum::<u64>();
        (bytes(&self.landed), FoundBytes { left: bytes(&self.resumed), taken_over })
    }

    /// Whether anything of it is at the receiver, or on its way there.
    pub fn has_begun(&self) -> bool {
        self.accepted && (self.shared || self.next_block > 0 || self.landed.count() > 0)
    }

    pub fn has_landed(&self, offset: u64) -> bool {
        self.landed.contains(self.index(offset))
    }

    /// A block arrived altered, and goes again whole; false when that was once too often.
    pub fn count_altered(&mut self, offset: u64) -> bool {
        let index = self.index(offset);
        self.chunks.remove(&index);
        self.patched.remove(&index);
        let times = self.altered.entry(index).or_default();
        *times += 1;
        *times < limits::SENDS_PER_BLOCK
    }

    /// The stream that carried the block was lost, or the block arrived altered: whether it has to be read again.
    pub fn requeue(&mut self, offset: u64) -> bool {
        let index = self.index(offset);
        let needed = !(self.landed.contains(index) && self.hashed.contains(index));
        // What has never been taken is taken in its turn.
        needed && (index >= self.next_block || self.again.insert(index))
    }

    /// Whether every block has been read and the source is to be checked now. True once.
    pub fn is_to_be_checked(&mut self) -> bool {
        let all_read = self.shared || self.blocks().is_some_and(|blocks| self.hashed.is_all_of(blocks));
        let now = !self.checked && self.abandoned.is_none() && all_read;
        self.checked |= now;
        now
    }

    /// The file's size and digests, once every block has been read.
    pub fn finish(&self) -> Option<(u64, FileDigests)> {
        let size = self.size?;
        let digests = if self.shared { Some(FileDigests::default()) } else { self.tree.finish(size) };
        Some((size, digests?))
    }
}
