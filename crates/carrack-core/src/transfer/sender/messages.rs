//! What the receiver says to a sender.

use std::time::Instant;

use super::ends::mismatch;
use super::offered::Offered;
use super::{Sender, SenderAction, SenderPhase, again};
use crate::digest::{BlockDigest, FileDigests, is_main_of};
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::ItemId;
use crate::limits;
use crate::report::{ItemKind, ItemReport, Outcome};
use crate::transfer::Unit;
use crate::wire::ProtocolError;
use crate::wire::peer::{Answer, ItemResult};

impl Sender {
    /// What has ended may still be named by a message that was late; what never was may not.
    pub(super) fn check_known(&self, number: u64) -> Result<(), ProtocolError> {
        let known = (1..self.next_number).contains(&number);
        known.then_some(()).ok_or_else(|| {
            ProtocolError::violation(format!("the receiver named number {number}, which was never sent"))
        })
    }

    pub(super) fn handle_answer(&mut self, id: ItemId, answer: Answer) -> Result<(), ProtocolError> {
        let item = self.items.get_mut(&id).filter(|item| !item.accepted);
        let item =
            item.ok_or_else(|| ProtocolError::violation("the receiver answered an offer that was not waiting for it"))?;
        match answer {
            Answer::Accept => {
                item.accepted = true;
                if item.abandoned.is_none() {
                    self.sendable.push_back(id);
                }
                self.follow(id);
            }
            Answer::Shared => {
                let fits = self.config.options.shares && item.held_open() == 0;
                let Some(size) = item.size.filter(|_| fits) else {
                    return Err(ProtocolError::violation(format!("the receiver shares item {id}, which it cannot")));
                };
                (item.accepted, item.shared) = (true, true);
                self.progress.bytes_done += size;
                if item.is_to_be_checked() {
                    self.actions.push_back(SenderAction::CheckSource(id));
                }
            }
            Answer::Keep => self.end_offered(id, Outcome::Kept),
            Answer::Present(digests) => {
                let wanted = self.config.options.digests;
                let digests = digests.covering(wanted).filter(|_| item.held_open() == 0);
                let (Some(digests), Some(size)) = (digests, item.size) else {
                    return Err(ProtocolError::violation(format!("the receiver has item {id}, which it cannot")));
                };
                item.digests = digests;
                self.count_resumed(size);
                self.end_offered(id, Outcome::Published);
            }
            Answer::Refuse(failure) => self.end_offered(id, Outcome::Failed(failure)),
        }
        Ok(())
    }

    pub(super) fn handle_landed(&mut self, now: Instant, id: ItemId, offset: u64) -> Result<(), ProtocolError> {
        let Some(item) = self.items.get_mut(&id) else {
            return self.check_known(id.0);
        };
        if !item.was_taken(offset) {
            return Err(ProtocolError::violation("the receiver has got a block that was not sent"));
        }
        let (bytes, found) = item.land(offset).unwrap_or_default();
        self.progress.bytes_done += bytes;
        found.count(&mut self.totals.counts);
        self.streams.landed(now, Unit::Block(id, offset));
        Ok(())
    }

    pub(super) fn handle_held(
        &mut self,
        id: ItemId,
        first: u64,
        digests: &[BlockDigest],
        taken_over: bool,
        chunks: &[u32],
    ) -> Result<(), ProtocolError> {
        let open: usize = self.items.values().map(Offered::held_open).sum();
        let few = open + digests.len() <= limits::HELD_BLOCKS_OPEN;
        let kept: usize = self.items.values().map(Offered::chunks_kept).sum();
        let room = limits::HELD_CHUNKS.saturating_sub(kept);
        let wanted = self.config.options.digests;
        let compared = wanted.main.is_some() && digests.iter().all(|digest| is_main_of(&digest.main, wanted));
        let item = self.items.get_mut(&id).filter(|_| few && compared);
        let fits = item.is_some_and(|item| {
            item.hold(first, digests, taken_over) && item.keep_chunks(first, digests.len(), chunks, room)
        });
        fits.then_some(()).ok_or_else(|| {
            ProtocolError::violation(format!("the receiver holds blocks of item {id} that it cannot hold"))
        })
    }

    pub(super) fn handle_send_again(&mut self, id: ItemId, offset: u64) -> Result<(), ProtocolError> {
        let item = self.items.get_mut(&id).filter(|item| item.may_be_lost(offset));
        let item = item
            .ok_or_else(|| ProtocolError::violation("the receiver asked again for a block that was not under way"))?;
        if item.abandoned.is_some() {
            return Ok(());
        }
        let (goes_again, why) = if item.has_landed(offset) {
            let (bytes, found, goes_again) = item.take_back(offset);
            self.progress.bytes_done -= bytes;
            found.uncount(&mut self.totals.counts);
            self.totals.faults.blocks_rotten += 1;
            (goes_again, "was given back otherwise than it was written")
        } else {
            self.totals.faults.digest_mismatches += 1;
            (item.count_altered(offset), "arrived altered")
        };
        let goes_again = goes_again && !item.is_single_use();
        let unit = Unit::Block(id, offset);
        self.streams.forget(|other| other == unit);
        if goes_again {
            self.requeue(unit);
        } else {
            let message = format!("the block at offset {offset} {why}, and cannot be sent again");
            self.abandon(id, Failure::new(ErrorCode::DigestMismatch, Side::Link, message));
        }
        Ok(())
    }

    pub(super) fn handle_done(&mut self, id: ItemId, result: ItemResult) -> Result<(), ProtocolError> {
        let item = self.items.get(&id);
        let item = item.ok_or_else(|| ProtocolError::violation("the receiver ended an item that was not under way"))?;
        if result != ItemResult::Published {
            self.ended_otherwise += 1;
            self.finish_told = false;
        }
        let outcome = match (result, &item.abandoned) {
            (ItemResult::Published, _) if item.completed => Outcome::Published,
            (ItemResult::Published, _) => {
                return Err(ProtocolError::violation("the receiver published a file that was not complete"));
            }
            (_, Some(failure)) => {
                let failure = failure.clone();
                match again::may_pass(&failure) {
                    true => self.renew_offered(id, failure),
                    false => self.end_offered(id, Outcome::Failed(failure)),
                }
                return Ok(());
            }
            (_, None) if !item.accepted => {
                return Err(ProtocolError::violation("the receiver ended an item that it had not answered for"));
            }
            (ItemResult::Kept, None) => Outcome::Kept,
            (ItemResult::Same, None) => Outcome::Same,
            (ItemResult::Failed(failure), None) => Outcome::Failed(failure),
            (ItemResult::Again(failure), None) => {
                self.renew_offered(id, failure);
                return Ok(());
            }
            (ItemResult::Mismatch | ItemResult::Dropped, None) => Outcome::Failed(mismatch()),
        };
        self.end_offered(id, outcome);
        Ok(())
    }

    pub(super) fn handle_finished(&mut self, durable: bool) -> Result<(), ProtocolError> {
        if self.phase != SenderPhase::Finishing {
            return Err(ProtocolError::violation("the receiver finished before the sender"));
        }
        self.totals.durable = durable;
        self.phase = SenderPhase::Finished;
        if self.config.options.removes_sources && durable {
            self.phase = SenderPhase::Removing;
            self.actions.push_back(SenderAction::RemoveSources);
        }
        Ok(())
    }

    pub(super) fn handle_directories_failed(&mut self, failures: Vec<(Vec<u8>, Failure)>) -> Result<(), ProtocolError> {
        let left = self.directories_told.checked_sub(failures.len() as u64);
        self.directories_told = left
            .ok_or_else(|| ProtocolError::violation("more directories failed at the receiver than it was told of"))?;
        for (path, failure) in failures {
            self.totals.counts.files_failed += 1;
            let (kind, outcome) = (ItemKind::Directory, Outcome::Failed(failure));
            let report = ItemReport { path, kind, size: 0, digests: FileDigests::default(), judgment: None, outcome };
            self.report(report);
        }
        Ok(())
    }
}
