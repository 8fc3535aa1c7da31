//! How items end: what was sent and what the receiver made of it, together.

use super::bundles::BundleOut;
use super::{Sender, SenderAction, SenderPhase, SentItem, again};
use crate::digest::FileDigests;
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::{BundleId, ItemId};
use crate::limits;
use crate::report::{ItemKind, ItemReport, Outcome};
use crate::request::Compare;
use crate::transfer::{ScannedItem, Unit};
use crate::wire::control::TransferOptions;
use crate::wire::peer::ItemResult;

impl Sender {
    pub(super) fn end_offered(&mut self, id: ItemId, outcome: Outcome) {
        let Some(item) = self.take_out(id) else {
            return;
        };
        if outcome != Outcome::Published {
            // Nothing of it was saved: no file was made of it.
            item.landed_bytes().1.uncount(&mut self.totals.counts);
        }
        if item.shared && outcome == Outcome::Published {
            self.totals.counts.files_shared += 1;
            self.totals.counts.bytes_shared += item.size.unwrap_or(0);
        }
        self.count_followed(&item.scanned, item.size, &outcome);
        self.end_item(&item.scanned, item.size.unwrap_or(0), item.digests, outcome);
        self.make_offers();
    }

    /// Ends a bundle once both are known: what was sent, and what the receiver made of it.
    pub(super) fn settle_bundle(&mut self, id: BundleId) {
        // A stream that is still reading it may be the one whose copy the receiver took.
        if self.streams.carries(Unit::Bundle(id)) {
            return;
        }
        let Some(out) = self.bundles.take_settled(id) else {
            return;
        };
        let BundleOut { bundle, sent: Some(sent), doubtful, done: Some(mut exceptions) } = out else {
            return;
        };
        let mut again = Vec::new();
        for (index, (item, sent)) in bundle.items.iter().zip(sent).enumerate() {
            // A bundle has at most `limits::BUNDLE_ITEMS` items.
            let result = exceptions.remove(&(index as u32)).unwrap_or(ItemResult::Published);
            self.totals.faults.digest_mismatches += u64::from(result == ItemResult::Mismatch);
            let outcome = match bundled_end(&sent.failure, result, doubtful.contains(&index)) {
                BundledEnd::Ended(outcome) => outcome,
                BundledEnd::Again if bundle.attempt + 1 < limits::SENDS_PER_BLOCK => {
                    // Whole: what stood there may have become another.
                    again.push(ScannedItem { chunks: None, ..item.clone() });
                    continue;
                }
                BundledEnd::Again => Outcome::Failed(mismatch()),
                // A fault of the store; else no link can be made.
                BundledEnd::Lost(why) if item.other_names.is_some() && why.code != ErrorCode::Unsupported => {
                    if bundle.attempt + 1 < limits::SENDS_PER_BLOCK {
                        again.push(item.clone());
                        continue;
                    }
                    Outcome::Failed(why)
                }
                BundledEnd::Lost(_) if item.other_names.is_some() => {
                    self.send_unlinked(item.clone());
                    continue;
                }
                BundledEnd::Unread(failure) if !again::may_pass(&failure) => Outcome::Failed(failure),
                BundledEnd::Unread(_) | BundledEnd::Lost(_) if self.may_renew(bundle.again) => {
                    self.renew(item.clone(), bundle.again);
                    continue;
                }
                BundledEnd::Unread(failure) | BundledEnd::Lost(failure) => Outcome::Failed(failure),
            };
            self.end_bundled(item, &sent, outcome);
        }
        if !again.is_empty() {
            self.queue_bundle(again, bundle.attempt + 1, bundle.again);
        }
    }

    pub(super) fn end_bundled(&mut self, item: &ScannedItem, sent: &SentItem, outcome: Outcome) {
        if let Some(names) = &item.other_names {
            return self.end_item(item, item.size.unwrap_or(0), names.digests, outcome);
        }
        let is_file = item.kind == ItemKind::File;
        let digests = if is_file { sent.digest.as_file(self.config.options.digests) } else { FileDigests::default() };
        if outcome == Outcome::Published && is_file {
            // What is sent may be longer than what was found: then that has been found.
            self.progress.bytes_found += sent.size.saturating_sub(item.size.unwrap_or(0));
            self.progress.bytes_done += sent.size;
            self.totals.counts.bytes_taken_over += sent.taken_over;
        }
        if !matches!(outcome, Outcome::Published | Outcome::Same) && item.kind == ItemKind::Directory {
            self.directories_failed.insert(self.target(item));
        }
        self.end_item(item, sent.size, digests, outcome);
    }

    /// Whether an item that ended so is to be deleted at its source: what was sent, and what was compared by its
    /// content.
    pub(super) fn removes(&self, item: &ScannedItem, outcome: &Outcome) -> bool {
        let TransferOptions { removes_sources, compare, .. } = self.config.options;
        let is_there = match (outcome, &item.other_names) {
            (Outcome::Published | Outcome::Same, Some(names)) => names.is_proven,
            (Outcome::Published, None) => true,
            // Of a link all that it says was compared.
            (Outcome::Same, None) => compare == Compare::Content || item.kind != ItemKind::File,
            _ => false,
        };
        removes_sources && is_there && item.kind != ItemKind::Directory
    }

    /// Something that was copied stays at the source: why, as an item that failed.
    pub fn handle_source_kept(&mut self, item: &ScannedItem, why: Failure) {
        if self.phase == SenderPhase::Removing {
            self.end_item(item, 0, FileDigests::default(), Outcome::Failed(why));
        }
    }

    /// The answer to [`SenderAction::RemoveSources`]: how many were deleted.
    pub fn handle_sources_removed(&mut self, removed: u64) {
        if self.phase == SenderPhase::Removing {
            self.totals.counts.sources_removed = removed;
            self.phase = SenderPhase::Finished;
        }
    }

    pub(super) fn end_item(&mut self, item: &ScannedItem, size: u64, digests: FileDigests, outcome: Outcome) {
        let target = self.target(item);
        self.end_name(item, digests, &outcome);
        if self.removes(item, &outcome) {
            self.actions.push_back(SenderAction::Copied(Box::new(item.clone())));
        }
        match &outcome {
            Outcome::Published => match item.kind {
                // Its attributes are still to come, and may fail.
                ItemKind::Directory => return self.totals.counts.add(item.kind, size),
                ItemKind::Symlink | ItemKind::File | ItemKind::Special => {
                    self.count_made(item, size);
                    self.progress.files_done += 1;
                }
            },
            Outcome::Planned => self.count_made(item, size),
            Outcome::Same => {
                self.totals.counts.files_same += 1;
                // Nothing of it is left to be done.
                self.progress.files_done += 1;
                let bytes = if item.other_names.is_some() { 0 } else { size };
                self.totals.counts.bytes_same += bytes;
                self.progress.bytes_done += bytes;
            }
            // The receiver tells of these.
            Outcome::Deleted | Outcome::ToDelete => {}
            Outcome::Kept => self.totals.counts.files_kept += 1,
            Outcome::Failed(failure) => {
                self.totals.counts.files_failed += 1;
                self.totals.counts.files_vanished += u64::from(failure.code == ErrorCode::SourceVanished);
            }
        }
        let is_told = !matches!(outcome, Outcome::Published | Outcome::Same | Outcome::Planned);
        if self.config.options.item_events || is_told {
            // The sum of its blocks' is no digest of the file.
            let digests = FileDigests { xxh128: None, ..digests };
            let report = ItemReport { path: target, kind: item.kind, size, digests, judgment: item.judgment, outcome };
            self.report(report);
        }
    }
}

impl Sender {
    pub(super) fn report(&mut self, report: ItemReport) {
        self.report_bytes += bytes_of(&report);
        self.actions.push_back(SenderAction::Report(Box::new(report)));
    }

    /// Counts what is at the destination. A further name of a file has no bytes of its own.
    fn count_made(&mut self, item: &ScannedItem, size: u64) {
        let counts = &mut self.totals.counts;
        match item.other_names {
            Some(_) => counts.hard_links += 1,
            None => counts.add(item.kind, size),
        }
    }
}

/// What became of an item of a bundle.
enum BundledEnd {
    Ended(Outcome),
    /// What was read goes again.
    Again,
    /// The source could not be read.
    Unread(Failure),
    /// What the receiver had written is lost.
    Lost(Failure),
}

fn bundled_end(unread: &Option<Failure>, result: ItemResult, doubtful: bool) -> BundledEnd {
    match (result, unread.clone()) {
        (ItemResult::Kept, _) => BundledEnd::Ended(Outcome::Kept),
        (ItemResult::Same, _) => BundledEnd::Ended(Outcome::Same),
        (ItemResult::Failed(failure), None) => BundledEnd::Ended(Outcome::Failed(failure)),
        (ItemResult::Failed(_) | ItemResult::Again(_), Some(failure)) => BundledEnd::Unread(failure),
        (ItemResult::Again(failure), None) => BundledEnd::Lost(failure),
        _ if doubtful => BundledEnd::Again,
        (_, Some(failure)) => BundledEnd::Unread(failure),
        (ItemResult::Published, None) => BundledEnd::Ended(Outcome::Published),
        (ItemResult::Mismatch | ItemResult::Dropped, None) => BundledEnd::Again,
    }
}

/// What a report takes in memory, roughly.
pub(super) fn bytes_of(report: &ItemReport) -> usize {
    let words = if let Outcome::Failed(failure) = &report.outcome { failure.held_bytes() } else { 0 };
    size_of::<ItemReport>() + report.path.len() + words
}

pub(super) fn mismatch() -> Failure {
    let message = "what was written is not what was read; the file was not given its name";
    Failure::new(ErrorCode::DigestMismatch, Side::Link, message)
}
