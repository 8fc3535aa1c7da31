//! What an earlier attempt has left: blocks in part files, and items under their names.

use std::collections::BTreeMap;
use std::time::Instant;

use super::incoming::IncomingItem;
use super::{Receiver, ReceiverAction};
use crate::digest::{BlockDigest, FileDigests};
use crate::ids::{BundleId, ItemId};
use crate::limits;
use crate::report::ItemKind;
use crate::request::Verify;
use crate::wire::ProtocolError;
use crate::wire::peer::{PeerMessage, QueryItem};

/// Bytes of digests and chunks of which one message tells, roughly.
const HELD_BYTES: usize = limits::HELD_BLOCKS * BlockDigest::BYTES;

/// Blocks one after the other, of which one message tells.
struct HeldRun {
    first: u64,
    taken_over: bool,
    digests: Vec<BlockDigest>,
    chunks: Vec<u32>,
}

impl HeldRun {
    /// Whether a block belongs to it. Of all of a message's blocks the chunks are told, or of none.
    fn goes_on(&self, index: u64, taken_over: bool, chunks: &[u32]) -> bool {
        let bytes = self.digests.len() * BlockDigest::BYTES + size_of_val(&*self.chunks) + size_of_val(chunks);
        let is_like = self.taken_over == taken_over && self.chunks.is_empty() == chunks.is_empty();
        is_like && self.first + self.digests.len() as u64 == index && bytes < HELD_BYTES
    }
}

impl Receiver {
    /// The part file of an item has blocks already: tells the sender of them. What cannot be compared is not told of,
    /// and comes like any other.
    pub(super) fn hold(&mut self, id: ItemId, blocks: Vec<(u64, BlockDigest)>) {
        let open: usize = self.items.values().map(IncomingItem::held_open).sum();
        let comparable = self.options.digests.main.is_some();
        let Some(item) = self.items.get_mut(&id).filter(|_| comparable) else {
            return;
        };
        let mut runs: Vec<HeldRun> = Vec::new();
        let mut chunks_of = item.take_chunks();
        let mut held = item.hold(blocks, limits::HELD_BLOCKS_OPEN.saturating_sub(open));
        // Of what lies in too many pieces, what nobody has sent yet is left out first.
        if pieces(&held, |index| item.is_taken_over(index)) > limits::HELD_MESSAGES {
            item.forget_taken_over();
            held.retain(|(index, _)| item.holds(*index));
        }
        for (index, digest) in held {
            let full = runs.len() == limits::HELD_MESSAGES;
            let (taken_over, chunks) = (item.is_taken_over(index), chunks_of.remove(&index).unwrap_or_default());
            if !chunks.is_empty() {
                item.tell_chunks(index);
            }
            match runs.last_mut() {
                Some(run) if run.goes_on(index, taken_over, &chunks) => {
                    run.digests.push(digest);
                    run.chunks.extend(chunks);
                }
                _ if full => {
                    item.hold_below(index);
                    break;
                }
                _ => runs.push(HeldRun { first: index, taken_over, digests: vec![digest], chunks }),
            }
        }
        for HeldRun { first, taken_over, digests, chunks } in runs {
            self.held_waiting += 1;
            self.send(PeerMessage::Held { item: id, first, digests, taken_over, chunks });
        }
    }

    pub(super) fn handle_confirm(&mut self, id: ItemId, first: u64, count: u64) -> Result<(), ProtocolError> {
        let wrong = || {
            ProtocolError::violation(format!(
                "the sender confirmed {count} blocks of item {id} from {first} on, which are not held"
            ))
        };
        let Some(item) = self.items.get_mut(&id) else {
            // It may have ended while this was under way.
            let waits = self.waiting.iter().any(|offer| offer.item == id);
            return if id > self.last_offer || waits { Err(wrong()) } else { Ok(()) };
        };
        let blocks = item.confirm(first, count).ok_or_else(wrong)?;
        self.bytes_landed += blocks.iter().map(|(_, block)| u64::from(block.length)).sum::<u64>();
        // What an earlier attempt left is in the marker already; whether storage still has it, only reading tells.
        let reads_back = self.options.verify == Verify::Disk;
        let unsaved = |index: u64| reads_back || self.items.get(&id).is_some_and(|item| item.is_taken_over(index));
        let unsaved: Vec<_> = blocks.into_iter().filter(|(index, _)| unsaved(*index)).collect();
        self.save_later(id, unsaved);
        self.publish_if_whole(id);
        Ok(())
    }

    pub(super) fn handle_query(&mut self, bundle: BundleId, items: Vec<QueryItem>) -> Result<(), ProtocolError> {
        let kinds: BTreeMap<u32, ItemKind> = items.iter().map(|item| (item.index, item.kind)).collect();
        let last = kinds.last_key_value().map_or(limits::BUNDLE_ITEMS, |(&index, _)| index);
        let fits = kinds.len() == items.len() && last < limits::BUNDLE_ITEMS;
        let few = self.looks.len() < limits::QUERIES && !self.looks.contains_key(&bundle);
        if !fits || !few {
            return Err(ProtocolError::violation(format!(
                "the sender asked question {bundle} twice, about too many items or none, or too many questions"
            )));
        }
        self.looks.insert(bundle, kinds);
        self.actions.push_back(ReceiverAction::Look { bundle, items });
        Ok(())
    }

    /// The answer to [`ReceiverAction::Look`]: index within the bundle, and digests, of those that are there. Without
    /// the digests that the options ask for, a file is sent again.
    pub fn handle_looked(&mut self, now: Instant, bundle: BundleId, known: Vec<(u32, FileDigests)>) {
        self.note_time(now);
        let Some(asked) = self.looks.remove(&bundle).filter(|_| !self.has_ended()) else {
            return;
        };
        let wanted = self.options.digests;
        let told = |(index, digests): (u32, FileDigests)| match asked.get(&index)? {
            ItemKind::File => digests.covering(wanted).map(|digests| (index, digests)),
            _ => Some((index, FileDigests::default())),
        };
        let items: BTreeMap<u32, FileDigests> = known.into_iter().filter_map(told).collect();
        self.send(PeerMessage::Known { bundle, items: items.into_iter().collect() });
    }
}

/// How many messages tell of these blocks.
fn pieces(held: &[(u64, BlockDigest)], is_taken_over: impl Fn(u64) -> bool) -> usize {
    let goes_on = |pair: &[(u64, BlockDigest)]| {
        let (before, after) = (pair[0].0, pair[1].0);
        before + 1 == after && is_taken_over(before) == is_taken_over(after)
    };
    let breaks = held.windows(2).filter(|pair| !goes_on(pair)).count();
    breaks + held.len().div_ceil(limits::HELD_BLOCKS)
}
