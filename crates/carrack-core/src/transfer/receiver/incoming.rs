//! One offered file at the receiver: which of its blocks have landed, and what it must be.

use crate::digest::{BlockDigest, FileTree, block_count, block_length};
use crate::report::FileDigests;
use crate::transfer::BLOCKS_AHEAD;
use crate::transfer::ranges::Ranges;
use crate::wire::ProtocolError;
use crate::wire::control::TransferOptions;

#[derive(Debug)]
pub(super) struct Incoming {
    pub state: State,
    block_bytes: u32,
    /// From the offer; of a source without a size known when it is complete.
    size: Option<u64>,
    landed: Ranges,
    tree: FileTree,
    /// A block came that was said to be the whole file.
    whole: bool,
    /// One more than the highest block that has begun.
    begun: u64,
    complete: Option<(u64, Option<[u8; 32]>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    /// The sender gave it up while its part file was being made.
    Dropped,
    Open,
    Publishing,
}

impl Incoming {
    pub fn new(size: Option<u64>, options: &TransferOptions) -> Self {
        Self {
            state: State::Opening,
            block_bytes: options.block_bytes,
            size,
            landed: Ranges::new(),
            tree: FileTree::new(options.block_bytes, options.digests),
            whole: false,
            begun: 0,
            complete: None,
        }
    }

    /// Whether a block may be part of this file.
    pub fn check_block(&self, number: u64, offset: u64, length: u32, whole: bool) -> Result<(), ProtocolError> {
        let wrong = |what: &str| {
            Err(ProtocolError::violation(format!("the sender sent the block at {offset} of item {number} {what}")))
        };
        if matches!(self.state, State::Opening | State::Dropped) {
            return wrong("before the offer was accepted");
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
        if index >= self.landed.count() + BLOCKS_AHEAD {
            return wrong("far ahead of its turn");
        }
        Ok(())
    }

    fn index(&self, offset: u64) -> u64 {
        offset / u64::from(self.block_bytes)
    }

    pub fn has_landed(&self, offset: u64) -> bool {
        self.landed.contains(self.index(offset))
    }

    /// A block that has been checked begins.
    pub fn begin(&mut self, offset: u64, whole: bool) {
        self.whole |= whole;
        self.begun = self.begun.max(self.index(offset) + 1);
    }

    /// A block has been written, and is what was sent.
    pub fn land(&mut self, offset: u64, length: u32, digest: BlockDigest) {
        let index = self.index(offset);
        assert!(self.landed.insert(index), "a block is written once");
        self.tree.insert(index, u64::from(length), digest);
    }

    /// The sender says what the file must be; false when it cannot be that.
    pub fn complete(&mut self, size: u64, blake3: Option<[u8; 32]>) -> bool {
        let blocks = block_count(size, self.block_bytes);
        let sized = self.size.is_some_and(|known| known == size);
        // Every block has been sent, so at most the last `BLOCKS_AHEAD` have not begun.
        let ended = self.size.is_none() && self.begun <= blocks && (!self.whole || blocks == 1);
        let fits = (sized || ended) && self.complete.is_none() && matches!(self.state, State::Open);
        if fits {
            self.size = Some(size);
            self.complete = Some((size, blake3));
        }
        fits
    }

    /// Once every block has landed and the sender has said what the file must be: the size, and the digests when they agree.
    pub fn finish(&self) -> Option<(u64, Option<FileDigests>)> {
        let (size, theirs) = self.complete.filter(|_| self.state == State::Open)?;
        if !self.landed.is_all_of(block_count(size, self.block_bytes)) {
            return None;
        }
        Some((size, self.tree.finish(size).filter(|digests| digests.blake3 == theirs)))
    }
}
