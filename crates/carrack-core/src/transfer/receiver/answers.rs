//! How the sender is told: in which order, and as much as fits into a message.

use std::time::Instant;

use super::{Receiver, ReceiverAction};
use crate::failure::Failure;
use crate::ids::ItemId;
use crate::limits;
use crate::wire::peer::{ItemResult, PeerMessage};
use crate::wire::{failure_bytes, peer_text};

impl Receiver {
    pub(super) fn send(&mut self, message: PeerMessage) {
        let is_last =
            matches!(message, PeerMessage::Done { .. } | PeerMessage::BundleDone { .. } | PeerMessage::Finished { .. });
        // What landed of it is told before, or nobody would count it any more.
        if is_last {
            self.tell_landed();
        }
        self.actions.push_back(ReceiverAction::Send(message));
    }

    pub(super) fn send_done(&mut self, item: ItemId, result: ItemResult) {
        if result != ItemResult::Published {
            self.ended_otherwise += 1;
            self.finishes_once_published = false;
        }
        self.send(PeerMessage::Done { item, result });
    }

    /// When what has landed and has not been told is to be told.
    pub(super) fn landed_due(&self) -> Option<Instant> {
        let waits = !self.landed_blocks.is_empty() || !self.landed_bundles.is_empty();
        self.landed_at.filter(|_| waits && !self.has_ended())
    }

    /// Tells all that has landed, before something else is told.
    pub(super) fn tell_landed(&mut self) {
        while let Some(landed) = self.landed() {
            self.actions.push_back(ReceiverAction::Send(landed));
        }
    }

    /// What has landed and has not been told, as much as one message holds.
    pub(super) fn landed(&mut self) -> Option<PeerMessage> {
        let blocks = first_of(&mut self.landed_blocks, limits::LANDED_TOLD);
        let bundles = first_of(&mut self.landed_bundles, limits::LANDED_TOLD);
        if blocks.is_empty() && bundles.is_empty() {
            return None;
        }
        // Where more waits than one message holds, the next one follows at once.
        if self.landed_blocks.is_empty() && self.landed_bundles.is_empty() {
            self.landed_at = self.now.map(|now| now + self.tuning.landed_interval);
        }
        Some(PeerMessage::Landed { blocks, bundles })
    }
}

/// Texts of a bundle's failures in its answer, in bytes. The rest of a message is for their numbers and codes.
const BUNDLE_TEXT_BYTES: usize = limits::MESSAGE_BYTES / 2;
/// Of each failure: its code, side, and the lengths of its texts.
const FAILURE_NUMBERS_BYTES: usize = 16;

/// Shortens a bundle's failures until they fit into one message: a bundle has one answer. None is
/// shorter than its fair share.
pub(super) fn shorten_failures(exceptions: &mut [(u32, ItemResult)]) {
    let failures = exceptions.iter_mut().filter_map(|(_, result)| match result {
        ItemResult::Failed(failure) | ItemResult::Again(failure) => Some(failure),
        _ => None,
    });
    // As they will be encoded: that can make a text longer.
    let weighed = failures.map(|failure| (failure_bytes(failure).saturating_sub(FAILURE_NUMBERS_BYTES), failure));
    let mut weighed: Vec<(usize, &mut Failure)> = weighed.collect();
    weighed.sort_unstable_by_key(|(bytes, _)| *bytes);
    let mut room = BUNDLE_TEXT_BYTES;
    let mut left = weighed.len();
    for (bytes, failure) in weighed {
        let share = room / left;
        if bytes > share {
            *failure = Failure { why: peer_text(&failure.message()), ..failure.flat(0) }.flat(share);
        }
        room = room.saturating_sub(bytes.min(share));
        left -= 1;
    }
}

/// Takes so many at most from the front.
fn first_of<T>(waiting: &mut Vec<T>, most: usize) -> Vec<T> {
    let rest = waiting.split_off(most.min(waiting.len()));
    std::mem::replace(waiting, rest)
}
