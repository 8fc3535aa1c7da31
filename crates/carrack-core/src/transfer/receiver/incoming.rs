//! One offered file at the receiver: which of its blocks have landed, which are held from an earlier
//! attempt, and what it must be.

use std::collections::BTreeMap;

use crate::attributes::Time;
use crate::digest::{BlockDigest, FileDigests, FileTree, block_count, block_length};
use crate::ids::ItemId;
use crate::transfer::BLOCKS_AHEAD;
use crate::transfer::ranges::Ranges;
use crate::wire::ProtocolError;
use crate::wire::control::TransferOptions;
use crate::wire::patch::TakenBlock;

#[derive(Debug)]
pub(super) struct IncomingItem {
    pub state: ItemState,
    block_bytes: u32,
    /// From the offer; of a source without a size known when it is complete.
    size: Option<u64>,
    landed: Ranges,
    /// Bytes of what has landed.
    pub bytes: u64,
    /// There already, told to the sender, and neither confirmed nor sent yet.
    held: BTreeMap<u64, BlockDigest>,
    /// Of what is held, or was: blocks from what stands at the name.
    taken_over: Ranges,
    /// Chunks of these blocks, until they are told;
    chunks: BTreeMap<u64, Vec<u32>>,
    /// and blocks of which they have been told.
    chunks_told: Ranges,
    /// The most blocks that have ever been landed or held.
    reached: u64,
    tree: FileTree,
    /// A block came that was said to be the whole file.
    whole: bool,
    /// The part file shares its blocks with the source: there are no digests.
    pub shared: bool,
    /// One more than the highest block that has begun.
    begun: u64,
    complete: Option<(u64, Option<[u8; 32]>)>,
    /// Its modification time, where that is another than was offered.
    pub modified: Option<Time>,
    /// Landed, and not checkpointed.
    pub unsaved: BTreeMap<u64, WrittenBlock>,
    /// Blocks of the checkpoint under way.
    pub saving: Option<BTreeMap<u64, WrittenBlock>>,
    /// Blocks that storage gave back otherwise than they were written, and what they were.
    rotten: BTreeMap<u64, BlockDigest>,
}

/// A block in the part file.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenBlock {
    pub length: u32,
    pub digest: BlockDigest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemState {
    Opening,
    /// The sender gave it up while its part file was being made.
    Dropped,
    Open,
    Publishing,
}

impl IncomingItem {
    pub fn new(size: Option<u64>, options: &TransferOptions) -> Self {
        Self {
            state: ItemState::Opening,
            block_bytes: options.block_bytes,
            size,
            landed: Ranges::new(),
            bytes: 0,
            held: BTreeMap::new(),
            taken_over: Ranges::new(),
            chunks: BTreeMap::new(),
            chunks_told: Ranges::new(),
            reached: 0,
            tree: FileTree::new(options.block_bytes, options.digests),
            whole: false,
            shared: false,
            begun: 0,
            complete: None,
            modified: None,
            unsaved: BTreeMap::new(),
            saving: None,
            rotten: BTreeMap::new(),
        }
    }

    /// All of it is there, as the source has it; its bytes.
    pub fn share(&mut self) -> u64 {
        self.shared = true;
        self.bytes = self.size.unwrap_or(0);
        self.bytes
    }

    /// Whether a block may be part of this file.
    pub fn check_block(&self, id: ItemId, offset: u64, length: u32, whole: bool) -> Result<(), ProtocolError> {
        let wrong = |what: &str| {
            Err(ProtocolError::violation(format!("the sender sent the block at {offset} of item {id} {what}")))
        };
        if matches!(self.state, ItemState::Opening | ItemState::Dropped) {
            return wrong("before the offer was accepted");
        }
        if self.shared {
            return wrong("of which everything is there");
        }
        if !offset.is_multiple_of(u64::from(self.block_bytes)) {
            return wrong("which is not where a block starts");
        }
        let index = self.index(offset);
        let fits = match self.size {
            Some(size) => {
                let blocks = block_count(size, self.block_bytes);
                index < blocks
                    && u64::from(length) == block_length(index, size, self.block_bytes)
                    && whole == (blocks == 1)
            }
            // An empty block is an empty file, and the whole of a file has nothing after it.
            None => length <= self.block_bytes && (index == 0 || !whole && !self.whole) && (length > 0 || whole),
        };
        if !fits {
            return wrong("with a length or place that the file's size does not allow");
        }
        // Blocks that are taken back do not count against the sender, who may not know of it yet.
        if index >= self.reached + BLOCKS_AHEAD {
            return wrong("far ahead of its turn");
        }
        Ok(())
    }

    fn index(&self, offset: u64) -> u64 {
        offset / u64::from(self.block_bytes)
    }

    pub fn offset(&self, index: u64) -> u64 {
        index * u64::from(self.block_bytes)
    }

    /// Bytes of a block of a file whose size is known.
    fn length(&self, index: u64) -> u64 {
        block_length(index, self.size.unwrap_or(u64::MAX), self.block_bytes)
    }

    pub fn has_size(&self) -> bool {
        self.size.is_some()
    }

    pub fn has_landed(&self, offset: u64) -> bool {
        self.landed.contains(self.index(offset))
    }

    /// Takes those of the blocks from an earlier attempt that this file can have, in order.
    pub fn hold(&mut self, blocks: Vec<(u64, BlockDigest)>, most: usize) -> Vec<(u64, BlockDigest)> {
        let count = self.size.map_or(0, |size| block_count(size, self.block_bytes));
        self.held = blocks.into_iter().filter(|&(index, _)| index < count).collect();
        while self.held.len() > most {
            self.held.pop_last();
        }
        self.note_reached();
        self.held.iter().map(|(&index, &digest)| (index, digest)).collect()
    }

    /// These blocks are from what stands at the name: their digests.
    pub fn take_over(&mut self, blocks: Vec<TakenBlock>) -> Vec<(u64, BlockDigest)> {
        let take = |block: TakenBlock| {
            self.taken_over.insert(block.index);
            self.chunks.insert(block.index, block.chunks);
            (block.index, block.digest)
        };
        blocks.into_iter().map(take).collect()
    }

    /// The chunks of what is taken over, to be told.
    pub fn take_chunks(&mut self) -> BTreeMap<u64, Vec<u32>> {
        std::mem::take(&mut self.chunks)
    }

    /// The chunks of a block are told: it may come as a patch.
    pub fn tell_chunks(&mut self, index: u64) {
        self.chunks_told.insert(index);
    }

    /// Whether the sender has been told chunks of the block that starts here.
    pub fn has_told_chunks(&self, offset: u64) -> bool {
        self.chunks_told.contains(self.index(offset))
    }

    /// What is from what stands at the name is not held.
    pub fn forget_taken_over(&mut self) {
        let taken_over = std::mem::take(&mut self.taken_over);
        self.held.retain(|index, _| !taken_over.contains(*index));
    }

    /// Whether a block is held.
    pub fn holds(&self, index: u64) -> bool {
        self.held.contains_key(&index)
    }

    /// Whether a block is from what stands at the name: no marker knows of it.
    pub fn is_taken_over(&self, index: u64) -> bool {
        self.taken_over.contains(index)
    }

    /// Of the blocks that are held, those of this number and above are not told of.
    pub fn hold_below(&mut self, index: u64) {
        self.held.split_off(&index);
    }

    pub fn held_open(&self) -> usize {
        self.held.len()
    }

    /// The sender has the same in its source: the blocks by index; `None` when it names one that is not held.
    pub fn confirm(&mut self, first: u64, count: u64) -> Option<Vec<(u64, WrittenBlock)>> {
        if self.state != ItemState::Open || count > self.held.len() as u64 {
            return None;
        }
        let end = first.checked_add(count).filter(|&end| end > first)?;
        let named = || first..end;
        if !named().all(|index| self.held.contains_key(&index)) {
            return None;
        }
        let mut blocks = Vec::new();
        for index in named() {
            let digest = self.held.remove(&index)?;
            // At most `block_bytes`, which is a `u32`.
            let length = self.length(index) as u32;
            self.land(self.offset(index), length, digest);
            blocks.push((index, WrittenBlock { length, digest }));
        }
        Some(blocks)
    }

    /// A block that has been checked begins.
    pub fn begin(&mut self, offset: u64, whole: bool) {
        self.whole |= whole;
        let index = self.index(offset);
        self.held.remove(&index);
        self.begun = self.begun.max(index + 1);
    }

    /// Whether this is the block that was here before storage lost it; true of one that never was here.
    pub fn is_same_again(&mut self, offset: u64, digest: BlockDigest) -> bool {
        let index = self.index(offset);
        self.rotten.remove(&index).is_none_or(|before| before == digest)
    }

    /// A block has been written, and is what was sent. Its index.
    pub fn land(&mut self, offset: u64, length: u32, digest: BlockDigest) -> u64 {
        let index = self.index(offset);
        assert!(self.landed.insert(index), "a block is written once");
        self.bytes += u64::from(length);
        self.tree.insert(index, u64::from(length), digest);
        self.note_reached();
        index
    }

    fn note_reached(&mut self) {
        self.reached = self.reached.max(self.landed.count() + self.held.len() as u64);
    }

    /// Storage gave a block back otherwise than it was written: it has not landed.
    pub fn take_back(&mut self, index: u64, block: WrittenBlock) {
        assert!(self.landed.remove(index), "only what has landed is read back");
        self.bytes -= u64::from(block.length);
        self.rotten.insert(index, block.digest);
    }

    /// Bytes of what has landed and is not being checkpointed.
    pub fn unsaved_bytes(&self) -> u64 {
        self.unsaved.values().map(|block| u64::from(block.length)).sum()
    }

    /// The sender says what the file must be; false when it cannot be that.
    pub fn complete(&mut self, size: u64, digest: Option<[u8; 32]>) -> bool {
        let blocks = block_count(size, self.block_bytes);
        let sized = self.size.is_some_and(|known| known == size);
        // Every block has been sent, so at most the last `BLOCKS_AHEAD` have not begun.
        let ended = self.size.is_none() && self.begun <= blocks && (!self.whole || blocks == 1);
        let fits = (sized || ended) && self.complete.is_none() && matches!(self.state, ItemState::Open);
        if fits {
            self.size = Some(size);
            self.complete = Some((size, digest));
        }
        fits
    }

    /// Once every block has landed and the sender has said what the file must be: the size, and the
    /// digests when they agree.
    pub fn finish(&self) -> Option<(u64, Option<FileDigests>)> {
        let (size, theirs) = self.complete.filter(|_| self.state == ItemState::Open)?;
        if self.shared {
            return Some((size, Some(FileDigests::default())));
        }
        if !self.landed.is_all_of(block_count(size, self.block_bytes)) {
            return None;
        }
        Some((size, self.tree.finish(size).filter(|digests| digests.main() == theirs)))
    }
}
