//! What the streams bring: who may write which block or bundle, and what has landed.

use std::time::Instant;

use super::incoming::{ItemState, WrittenBlock};
use super::{ArrivedBlock, BlockStart, Receiver, ReceiverAction, ReceiverPhase};
use crate::digest::BlockDigest;
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::limits;
use crate::transfer::Unit;
use crate::transfer::machine::Machine;
use crate::wire::ProtocolError;
use crate::wire::frame::Trailer;
use crate::wire::peer::{ItemResult, PeerMessage};

impl Receiver {
    /// A stream is there.
    pub fn handle_stream(&mut self, now: Instant, stream: StreamId) {
        self.note_time(now);
        self.streams.insert(stream, None);
        if self.lost.contains(&stream) {
            self.actions.push_back(ReceiverAction::CloseStream(stream));
        }
    }

    /// Whether the sender has given a stream up: it sends what that carried by another.
    pub fn is_given_up(&self, stream: StreamId) -> bool {
        self.lost.contains(&stream)
    }

    pub(super) fn handle_stream_lost(&mut self, stream: StreamId) {
        if self.lost.insert(stream) && self.streams.contains_key(&stream) {
            self.actions.push_back(ReceiverAction::CloseStream(stream));
        }
    }

    /// A stream has ended or failed; what it was bringing has not landed. Said by the stream
    /// itself, when it writes no more.
    pub fn handle_stream_closed(&mut self, now: Instant, stream: StreamId) {
        self.note_time(now);
        self.streams.remove(&stream);
    }

    /// Lets a stream write a unit unless another is writing it. The sender has given one of the two up, and says which:
    /// its word may come later than the data.
    pub(super) fn begin(&mut self, stream: StreamId, unit: Unit) -> BlockStart {
        let mut others = self.streams.iter().filter(|(other, current)| **other != stream && **current == Some(unit));
        match others.next() {
            Some(_) if self.lost.contains(&stream) => BlockStart::Discard,
            Some((&other, _)) => BlockStart::WaitFor(other),
            None => {
                self.streams.insert(stream, Some(unit));
                BlockStart::Write
            }
        }
    }

    /// Whether a block may come as a patch: the sender knows its chunks.
    ///
    /// # Errors
    /// When it does not: else it could find out what a file holds.
    pub fn check_patch(&self, id: ItemId, offset: u64) -> Result<(), ProtocolError> {
        let told = self.items.get(&id).is_none_or(|item| item.has_told_chunks(offset));
        let wrong = || ProtocolError::violation("the sender sent a patch, and nobody told of any chunks");
        told.then_some(()).ok_or_else(wrong)
    }

    /// A block begins on a stream.
    ///
    /// # Errors
    /// When no sender may send that block now.
    pub fn begin_block(
        &mut self,
        stream: StreamId,
        id: ItemId,
        offset: u64,
        length: u32,
        whole: bool,
    ) -> Result<BlockStart, ProtocolError> {
        if id > self.last_offer {
            return Err(ProtocolError::violation(format!(
                "the sender sent a block of item {id}, which it has not offered"
            )));
        }
        if self.waiting.iter().any(|offer| offer.item == id) {
            return Err(ProtocolError::violation(format!(
                "the sender sent a block of item {id} before its offer was accepted"
            )));
        }
        let Some(item) = self.items.get(&id).filter(|_| !self.has_ended()) else {
            // It ended while the block was under way.
            return Ok(BlockStart::Discard);
        };
        item.check_block(id, offset, length, whole)?;
        if item.has_landed(offset) || item.state == ItemState::Publishing {
            return Ok(BlockStart::Discard);
        }
        let begin = self.begin(stream, Unit::Block(id, offset));
        if let Some(item) = self.items.get_mut(&id).filter(|_| begin == BlockStart::Write) {
            item.begin(offset, whole);
        }
        Ok(begin)
    }

    /// A block has been written by a stream that was told [`BlockStart::Write`].
    pub fn handle_block(
        &mut self,
        now: Instant,
        stream: StreamId,
        block: ArrivedBlock,
        ours: BlockDigest,
        trailer: &Trailer,
    ) {
        let ArrivedBlock { item: id, offset, length } = block;
        self.note_time(now);
        self.release(stream);
        let Some(item) = self.items.get_mut(&id) else {
            return;
        };
        if !trailer.whole || matches!(self.phase, ReceiverPhase::Finished | ReceiverPhase::Failed(_)) {
            // The sender could not read it, and abandons the item.
            return;
        }
        if self.options.digests.main.is_some() && ours.main != trailer.digest.main {
            return self.send(PeerMessage::SendAgain { item: id, offset });
        }
        if !item.is_same_again(offset, ours) {
            let message = format!("the block at {offset} came again as another: its source has changed");
            let changed = Failure::new(ErrorCode::SourceChanged, Side::Source, message);
            return self.lose(id, changed);
        }
        let index = item.land(offset, length, ours);
        self.bytes_landed += u64::from(length);
        self.landed_blocks.push((id, offset));
        self.save_later(id, [(index, WrittenBlock { length, digest: ours })]);
        self.publish_if_whole(id);
    }

    /// The stream writes nothing any more.
    pub(super) fn release(&mut self, stream: StreamId) {
        if let Some(current) = self.streams.get_mut(&stream) {
            *current = None;
        }
    }

    /// A block could not be written: the item has failed here.
    pub fn handle_write_failed(&mut self, now: Instant, stream: StreamId, id: ItemId, failure: Failure) {
        self.note_time(now);
        self.release(stream);
        if !self.has_ended() && self.items.get(&id).is_some_and(|item| item.state == ItemState::Open) {
            self.drop_open(id, ItemResult::Failed(failure));
        }
    }

    /// A bundle begins on a stream: whether its items are to be written, or read and dropped.
    pub fn begin_bundle(&mut self, stream: StreamId, bundle: BundleId) -> BlockStart {
        if self.phase != ReceiverPhase::Receiving || self.bundles_landed.contains(&bundle) {
            return BlockStart::Discard;
        }
        self.begin(stream, Unit::Bundle(bundle))
    }

    /// All items of a bundle have been written under hidden names, or have failed. False when the bundle came too late:
    /// then its part files are to be removed.
    #[must_use]
    pub fn handle_bundle(&mut self, now: Instant, stream: StreamId, bundle: BundleId, bytes: u64) -> bool {
        self.note_time(now);
        self.release(stream);
        if self.phase != ReceiverPhase::Receiving || self.bundles_landed.contains(&bundle) {
            return false;
        }
        if self.bundles_to_commit >= limits::UNACKNOWLEDGED_BUNDLES {
            let message = "the sender has sent more bundles than the protocol allows at once";
            self.fail(Failure::new(ErrorCode::ProtocolViolation, Side::Source, message));
            return false;
        }
        self.bundles_landed.insert(bundle);
        while self.bundles_landed.len() > Self::BUNDLES_REMEMBERED {
            self.bundles_landed.pop_first();
        }
        self.bundles_to_commit += 1;
        self.bytes_landed += bytes;
        self.landed_bundles.push(bundle);
        self.actions.push_back(ReceiverAction::Commit(bundle));
        true
    }
}
