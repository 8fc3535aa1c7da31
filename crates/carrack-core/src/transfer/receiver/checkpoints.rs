//! What has landed is brought to stable storage and written down, now and then: what a crash does not cost.
//!
//! An item has one checkpoint under way at a time, and is not published while it has one. A sync that failed is never
//! tried again on the same data: the system tells of lost pages once. So everything that was written to that part file
//! is void, and the item comes again.

use std::time::Instant;

use super::incoming::{ItemState, WrittenBlock};
use super::{Receiver, ReceiverAction};
use crate::digest::BlockDigest;
use crate::failure::Failure;
use crate::ids::ItemId;
use crate::limits;
use crate::request::Verify;
use crate::transfer::machine::Machine;
use crate::wire::peer::PeerMessage;

impl Receiver {
    /// Threads that tell of something may be late: time does not go back.
    pub(super) fn note_time(&mut self, now: Instant) {
        self.now = self.now.max(Some(now));
    }

    pub(super) fn next_checkpoint(&self) -> Option<Instant> {
        self.checkpoint_at.filter(|_| self.unsaved_bytes > 0 && !self.has_ended())
    }

    /// What has landed of items that are still open and has not been checkpointed, nor is about to be: for a last
    /// checkpoint when the transfer has failed.
    pub fn unsaved(&self) -> Vec<(ItemId, Vec<(u64, BlockDigest)>)> {
        let open = self.items.iter().filter(|(_, item)| item.state == ItemState::Open && !item.unsaved.is_empty());
        let blocks = |blocks: &std::collections::BTreeMap<u64, WrittenBlock>| {
            blocks.iter().map(|(&index, block)| (index, block.digest)).collect()
        };
        open.map(|(&id, item)| (id, blocks(&item.unsaved))).collect()
    }

    fn reads_back(&self) -> bool {
        self.options.verify == Verify::Disk
    }

    /// These blocks of an item have landed.
    pub(super) fn save_later(&mut self, id: ItemId, blocks: impl IntoIterator<Item = (u64, WrittenBlock)>) {
        let reads_back = self.reads_back();
        let Some(item) = self.items.get_mut(&id).filter(|item| reads_back || item.has_size()) else {
            return;
        };
        if !self.checkpoints {
            return;
        }
        for (index, block) in blocks {
            if reads_back || item.unsaved.len() < limits::BLOCKS_TO_CHECKPOINT {
                item.unsaved.insert(index, block);
                self.unsaved_bytes += u64::from(block.length);
            }
        }
        if self.next_deadline().is_none() {
            self.checkpoint_at = self.now.map(|now| now + self.tuning.marker_interval);
        }
        if self.unsaved_bytes >= self.tuning.marker_bytes {
            self.checkpoint_all();
        }
    }

    pub(super) fn checkpoint_all(&mut self) {
        let ids: Vec<ItemId> = self.items.keys().copied().collect();
        ids.into_iter().for_each(|id| self.checkpoint(id));
        self.checkpoint_at = self.now.map(|now| now + self.tuning.marker_interval);
    }

    pub(super) fn checkpoint(&mut self, id: ItemId) {
        let Some(item) = self.items.get_mut(&id).filter(|item| item.state == ItemState::Open) else {
            return;
        };
        if item.saving.is_some() || item.unsaved.is_empty() {
            return;
        }
        let rest = item.unsaved.keys().nth(limits::BLOCKS_TO_CHECKPOINT).copied();
        let rest = rest.map_or_else(Default::default, |index| item.unsaved.split_off(&index));
        self.unsaved_bytes -= item.unsaved_bytes();
        let saving = std::mem::replace(&mut item.unsaved, rest);
        let blocks = saving.iter().map(|(&index, block)| (index, block.digest)).collect();
        item.saving = Some(saving);
        self.actions.push_back(ReceiverAction::Checkpoint { item: id, blocks });
    }

    /// The answer to [`ReceiverAction::Checkpoint`]: indexes of blocks that storage gave back otherwise than they were
    /// written; or why nothing that was written to the part file can be relied on any more.
    pub fn handle_checkpointed(&mut self, now: Instant, id: ItemId, result: Result<Vec<u64>, Failure>) {
        self.note_time(now);
        let Some(mut saving) = self.items.get_mut(&id).and_then(|item| item.saving.take()) else {
            return;
        };
        match result {
            // Nor may a last checkpoint rely on it.
            Err(_) if self.has_ended() => {
                self.items.remove(&id);
                self.actions.push_back(ReceiverAction::Discard(id));
            }
            Ok(_) if self.has_ended() => {}
            Err(failure) => self.lose(id, failure),
            Ok(rotten) => {
                for index in rotten {
                    if let Some(block) = saving.remove(&index) {
                        self.take_back(id, index, block);
                    }
                }
                self.publish_if_whole(id);
            }
        }
    }

    /// Storage has lost a block.
    fn take_back(&mut self, id: ItemId, index: u64, block: WrittenBlock) {
        // The sender must have heard that it landed before it hears that it is lost.
        self.tell_landed();
        let Some(item) = self.items.get_mut(&id) else {
            return;
        };
        item.take_back(index, block);
        let offset = item.offset(index);
        self.bytes_landed -= u64::from(block.length);
        self.blocks_rotten += 1;
        self.send(PeerMessage::SendAgain { item: id, offset });
    }
}
