//! Items that are sent again whole: what the receiver wrote of them was lost, or their source
//! changed while it was read.
//!
//! Their source is looked at anew first, so that what is offered is what is there. Each goes again at most
//! [`limits::ITEM_ATTEMPTS`] times.

use std::collections::BTreeMap;
use std::time::Instant;

use super::bundles::Filling;
use super::offered::Offered;
use super::{Sender, SenderAction};
use crate::digest::FileDigests;
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::ItemId;
use crate::limits;
use crate::report::{ItemKind, Outcome};
use crate::transfer::ScannedItem;

#[derive(Debug, Default)]
pub(super) struct Renewals {
    /// Sources being looked at.
    looking: usize,
    /// Small items that have been looked at, by how often they have been sent.
    small: BTreeMap<u32, Filling>,
}

impl Renewals {
    pub fn is_empty(&self) -> bool {
        self.looking == 0 && self.small.is_empty()
    }
}

/// Whether reading again may help: the source was there and was something else.
pub(super) fn may_pass(failure: &Failure) -> bool {
    failure.code == ErrorCode::SourceChanged
}

impl Sender {
    /// Whether an item that has been sent anew so often may be once more.
    pub(super) fn may_renew(&self, attempt: u32) -> bool {
        attempt < limits::ITEM_ATTEMPTS
    }

    pub(super) fn renew(&mut self, scanned: ScannedItem, attempt: u32) {
        self.renewals.looking += 1;
        self.totals.faults.items_again += 1;
        self.actions.push_back(SenderAction::Rescan { scanned, attempt: attempt + 1 });
    }

    /// Sends an offered item anew, or ends it when that cannot help.
    pub(super) fn renew_offered(&mut self, id: ItemId, failure: Failure) {
        // What was followed and is not what it was has been asked for to its last byte, and that may be gone.
        let ended = |scanned: &ScannedItem| scanned.followed && may_pass(&failure);
        let may = |item: &Offered| !item.is_single_use() && !ended(&item.scanned) && self.may_renew(item.attempt);
        let renewed = self.items.get(&id).is_some_and(may);
        if !renewed {
            return self.end_offered(id, Outcome::Failed(failure));
        }
        let Some(item) = self.take_out(id) else {
            return;
        };
        let (landed, found) = item.landed_bytes();
        self.progress.bytes_done -= landed;
        found.uncount(&mut self.totals.counts);
        self.renew(item.scanned, item.attempt);
        self.make_offers();
    }

    /// The answer to [`SenderAction::Rescan`]: what is there now in place of `before`.
    pub fn handle_rescanned(
        &mut self,
        now: Instant,
        before: &ScannedItem,
        attempt: u32,
        result: Result<ScannedItem, Failure>,
    ) {
        if self.has_ended() {
            return;
        }
        self.renewals.looking = self.renewals.looking.saturating_sub(1);
        match result {
            Ok(mut found) if found.kind == before.kind => {
                found.change_mode(self.config.options.mode_change);
                let found = self.followed_from_now(found);
                if let Some(found) = self.regroup(before, found) {
                    self.take_renewed(now, before, attempt, found);
                }
            }
            Ok(_) => {
                let message = "is something else than when it was listed".to_string();
                self.fail_renewed(before, Failure::new(ErrorCode::SourceChanged, Side::Source, message));
            }
            Err(failure) => self.fail_renewed(before, failure),
        }
        if self.renewals.looking == 0 {
            for (attempt, mut filling) in std::mem::take(&mut self.renewals.small) {
                self.queue_bundle(filling.take(), 0, attempt);
            }
        }
        self.advance(now);
    }

    fn take_renewed(&mut self, now: Instant, before: &ScannedItem, attempt: u32, found: ScannedItem) {
        if found.kind == ItemKind::File {
            // Nothing of it is counted as done at this moment.
            let others = self.progress.bytes_found.saturating_sub(before.size.unwrap_or(0));
            self.progress.bytes_found = others + found.size.unwrap_or(0);
        }
        if !self.is_bundled(&found) {
            self.offers_waiting.push_back((found, attempt));
            return self.make_offers();
        }
        let filling = self.renewals.small.entry(attempt).or_default();
        if filling.push(&self.config.tuning, now, found) {
            let full = filling.take();
            self.renewals.small.remove(&attempt);
            self.queue_bundle(full, 0, attempt);
        }
    }

    fn fail_renewed(&mut self, before: &ScannedItem, failure: Failure) {
        if before.kind == ItemKind::Directory {
            self.directories_failed.insert(self.target(before));
        }
        self.end_item(before, 0, FileDigests::default(), Outcome::Failed(failure));
    }
}
