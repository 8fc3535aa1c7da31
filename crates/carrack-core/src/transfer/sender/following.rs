//! Files that are followed: copied on as they grow, until they have rested for long enough.
//!
//! A followed file is offered without a size. Its blocks are those of any other file, so several streams carry them and
//! what is lost goes again; but a block is sent only once there is more of the file behind it, for whether it is the
//! whole file has to be known before. No stream waits for a file to grow: whoever looks at it says how much there is,
//! and in the end that this is all.

use std::time::Instant;

use super::{Sender, SenderAction};
use crate::attributes::Time;
use crate::failure::Failure;
use crate::ids::ItemId;
use crate::limits;
use crate::report::{ItemKind, Outcome};
use crate::transfer::ScannedItem;

impl Sender {
    /// A followed file has so many bytes by now.
    pub fn handle_grown(&mut self, _now: Instant, id: ItemId, size: u64) {
        let Some(item) = self.active(id) else { return };
        let Some(there) = item.there else { return };
        let told = there.max(item.scanned.size.unwrap_or(0));
        item.there = Some(there.max(size));
        self.progress.bytes_found += size.saturating_sub(told);
    }

    /// A followed file is whole: its size, and when it was written to last.
    pub fn handle_followed(&mut self, now: Instant, id: ItemId, size: u64, modified: Option<Time>) {
        self.handle_grown(now, id, size);
        let Some(item) = self.active(id).filter(|item| item.there.is_some()) else { return };
        item.end_at(size);
        item.modified = modified;
        if item.is_all_taken() {
            self.sendable.retain(|&other| other != id);
        }
    }

    /// A followed file cannot be followed any further.
    pub fn handle_follow_failed(&mut self, _now: Instant, id: ItemId, why: Failure) {
        self.abandon(id, why);
    }

    /// Whether a file is still being followed.
    pub fn is_followed(&self, id: ItemId) -> bool {
        self.items.get(&id).is_some_and(|item| item.there.is_some() && item.abandoned.is_none())
    }

    /// The receiver takes an offered item: if it is followed, somebody has to look at it now and then.
    pub(super) fn follow(&mut self, id: ItemId) {
        if self.is_followed(id) {
            self.actions.push_back(SenderAction::Follow(id));
        }
    }

    /// The next to be offered, and how often it has been before. Followed ones leave room for others: they may never
    /// end.
    pub(super) fn next_offer(&mut self) -> Option<(ScannedItem, u32)> {
        let followed = self.items.values().filter(|item| item.scanned.followed).count();
        let is_full = followed >= limits::FOLLOWED_ITEMS;
        let index = self.offers_waiting.iter().position(|(scanned, _)| !(is_full && scanned.followed))?;
        self.offers_waiting.remove(index)
    }

    /// A file that has changed while it was read may go on growing: it is followed from then on, where any is.
    pub(super) fn followed_from_now(&self, found: ScannedItem) -> ScannedItem {
        let followed = self.config.options.follows() && found.kind == ItemKind::File && found.size.is_some();
        let sparse = found.sparse && !followed;
        ScannedItem { followed, sparse, ..found }
    }

    /// Counts a file that grew while it was followed.
    pub(super) fn count_followed(&mut self, scanned: &ScannedItem, size: Option<u64>, outcome: &Outcome) {
        let grew = scanned.followed && size > scanned.size;
        self.totals.counts.files_followed += u64::from(grew && *outcome == Outcome::Published);
    }
}
