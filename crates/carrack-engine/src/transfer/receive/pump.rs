//! Carrying out what the receiver decides, and how a receiving end is left.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;
use std::time::{Duration, Instant};

use carrack_core::attributes::Attributes;
use carrack_core::ids::ItemId;
use carrack_core::report::{DestinationCounts, ErrorCode, Failure, Faults, FileDigests, Side, Unfinished};
use carrack_core::request::Verify;
use carrack_core::timeline::Work;
use carrack_core::transfer::receiver::{Opened, Receiver, ReceiverAction};
use carrack_core::wire::control::{Ended, Tell};
use carrack_core::wire::peer::Offer;

use super::super::driver::Pump;
use super::commit::Commit;
use super::comparing::ReceivedQuestion;
use super::referring::MadeItems;
use super::slow::{Checkpoint, Look, Workers};
use super::sweep::Sweep;
use super::{ReceiveRun, new_file};
use crate::error::failure;
use crate::panics::contain;
use crate::storage::properties::WriteOptions;
use crate::storage::write::Opening;
use crate::sync::lock;

/// What the receiving end's pump keeps from one round to the next.
struct ReceivePump<'a> {
    run: &'a Arc<ReceiveRun>,
    workers: &'a Workers,
    /// Offers that wait for a descriptor.
    offers: VecDeque<Offer>,
    /// Commits that the thread of the commits has no room for yet.
    behind: VecDeque<Commit>,
}

impl ReceivePump<'_> {
    /// Has something committed in its turn. Waits when many files wait for that: what is written must not run ahead of
    /// what is synced without bound. Behind the deletion nothing waits: the deletion asks questions that only the pump
    /// sends, and of directories there may be any number.
    fn commit_later(&mut self, commit: Commit) {
        self.run.commits_waiting.fetch_add(1, Ordering::Relaxed);
        if self.behind.is_empty() && !matches!(commit, Commit::Directories(_) | Commit::Sync) {
            // The other side leaves only after this one.
            let _ = self.workers.commits.send(commit);
            return;
        }
        self.behind.push_back(commit);
        self.hand_in();
    }

    /// Hands in what there is room for.
    fn hand_in(&mut self) {
        while let Some(commit) = self.behind.pop_front() {
            if let Err(TrySendError::Full(commit)) = self.workers.commits.try_send(commit) {
                return self.behind.push_front(commit);
            }
        }
    }
}

impl Pump<Receiver> for ReceivePump<'_> {
    fn prepare(&mut self) {
        // Each time round, because any action may have closed a part file and made room.
        self.run.open_waiting(&mut self.offers);
        self.hand_in();
        self.run.take_made().into_iter().for_each(|made| self.commit_later(Commit::Referred(made)));
        self.run.tell_stalled();
        let patience = self.run.driver.tuning.progress_interval;
        self.run.changes.iter().for_each(|changes| changes.tell_due(patience));
    }

    fn rest(&self) -> Duration {
        self.run.driver.tuning.stages_interval
    }

    fn carry_out(&mut self, action: ReceiverAction) {
        if let Some(commit) = self.run.carry_out(action, &mut self.offers, self.workers) {
            self.commit_later(commit);
        }
    }
}

impl ReceiveRun {
    /// Pumps, cleans up, and tells the command how the transfer ended.
    pub(super) fn pump(self: &Arc<Self>, workers: Workers) {
        let mut pump = ReceivePump { run: self, workers: &workers, offers: VecDeque::new(), behind: VecDeque::new() };
        let outcome = self.driver.pump_to_the_end(&mut pump);
        let is_told = Cell::new(false);
        let ended = contain(Side::Destination, "the end of the transfer", || self.end(&outcome, workers, &is_told));
        if let (Err(why), false) = (ended, is_told.get()) {
            self.tell_ended(Err(why));
        }
    }

    /// Makes the part files that there are descriptors for. The rest waits until one of those that are open is
    /// published or discarded: the sender sends no block before its offer is answered.
    pub(super) fn open_waiting(self: &Arc<Self>, offers: &mut VecDeque<Offer>) {
        offers.extend(lock(&self.disbelieved).0.drain(..));
        while lock(&self.parts).len() < self.parts_max
            && let Some(offer) = offers.pop_front()
        {
            // Read back once and found to be something else: believed again, it would be read back for ever.
            let believe = !lock(&self.disbelieved).1.contains(&offer.item);
            self.changes.iter().for_each(|changes| changes.offered(&*self.destination, &offer));
            let shares = self.sharing.is_tried() && offer.size.is_some();
            let opened = self.begin_file(&offer, believe, shares);
            let ran_out = matches!(&opened, Err(failure) if failure.code == ErrorCode::ResourceLimit);
            // Others may have taken the descriptors. While a part file is open, one will be free; with none open,
            // waiting would never end, and the item fails.
            if ran_out && !lock(&self.parts).is_empty() {
                return offers.push_front(offer);
            }
            let told = match opened {
                Ok(Opening::Resumed { part, held, doubtful, standing }) => {
                    self.take_up(&offer, part, held, (doubtful, standing));
                    continue;
                }
                Ok(Opening::Fresh(part)) if shares => {
                    self.share(&offer, part);
                    continue;
                }
                Ok(Opening::Fresh(part)) => {
                    lock(&self.parts).insert(offer.item, part);
                    Opened::Ready
                }
                Ok(Opening::MayBePresent) => {
                    self.look_at_published(offer);
                    continue;
                }
                Ok(Opening::Present(digests)) => Opened::Present(digests),
                Ok(Opening::Keep) => Opened::Keep,
                Err(failure) => Opened::Refused(failure),
            };
            if told != Opened::Ready {
                self.offer_ended(offer.item, None);
            }
            self.driver.tell(|machine| machine.handle_opened(Instant::now(), offer.item, told));
        }
    }

    fn begin_file(&self, offer: &Offer, believe: bool, shares: bool) -> Result<Opening, Failure> {
        let attributes = Attributes { mtime: self.time_to_set(offer.attributes.mtime), ..offer.attributes.clone() };
        let file = new_file(offer, attributes, &self.properties);
        let writing = WriteOptions { takes_over: self.taking_over.pays(), shares, ..self.writing };
        self.driver.stages.aside(Work::Begin, || self.destination.begin(&file, &writing, believe))
    }

    /// A large file has got its name, or has ended otherwise.
    pub(super) fn offer_ended(&self, item: ItemId, published: Option<(u64, FileDigests)>) {
        self.changes.iter().for_each(|changes| changes.offered_ended(item, published));
    }

    /// Does what the receiver has decided, or says what is to be committed.
    fn carry_out(&self, action: ReceiverAction, offers: &mut VecDeque<Offer>, workers: &Workers) -> Option<Commit> {
        match action {
            ReceiverAction::Send(message) => {
                // A control connection that is gone ends the whole session; its reader notices. What cannot be said
                // at all would be waited for.
                if let Err(error) = (self.driver.voice.peer)(&message)
                    && error.kind() == io::ErrorKind::InvalidInput
                {
                    self.driver.cancel(failure(ErrorCode::Internal, Side::Destination, error.to_string()));
                }
            }
            ReceiverAction::Open(mut offer) => {
                offer.attributes.others = self.owners.here(offer.attributes.others);
                offers.push_back(offer);
            }
            ReceiverAction::Discard(item) => {
                self.offer_ended(item, None);
                // Its name goes here; streams that still write to it write to a file without one.
                if let Some(part) = lock(&self.parts).remove(&item) {
                    part.remove();
                }
            }
            ReceiverAction::CloseStream(number) => self.driver.abort(number),
            // The other sides leave only after this one.
            ReceiverAction::Checkpoint { item, blocks } => {
                let _ = workers.checkpoints.send(Checkpoint { item, blocks });
            }
            ReceiverAction::Look { bundle, items } => {
                let _ = workers.looks.send(Look { bundle, items });
            }
            ReceiverAction::Compare { number, question } => {
                let _ = workers.questions.send(ReceivedQuestion { number, question });
            }
            ReceiverAction::CompareContent { asked, digest } => self.content_told(asked, digest),
            ReceiverAction::Delete { failed } => return Some(Commit::Delete { failed }),
            ReceiverAction::Publish { item, digests, size, modified } => {
                let modified = self.time_to_set(modified);
                return Some(Commit::Publish { item, digests, size, modified });
            }
            ReceiverAction::Commit(bundle) => return Some(Commit::Bundle(bundle)),
            ReceiverAction::ApplyDirectories(list) => return Some(Commit::Directories(list)),
            ReceiverAction::Sync => return Some(Commit::Sync),
        }
        None
    }

    /// Leaves nothing behind but what has its name and what the next session can use, and tells the command how the
    /// transfer ended: `is_told` then.
    ///
    /// Small files have the same hidden name in every session that owns the marker. A thread of this session that
    /// writes or removes one after the marker is free would destroy that of the next session. So the marker stays
    /// locked until the last of them has left. If storage holds one for long, the command is told earlier: its next
    /// session uses another marker.
    pub(super) fn end(&self, outcome: &Result<(), Failure>, workers: Workers, is_told: &Cell<bool>) {
        if outcome.is_err() {
            self.driver.abort_all();
            // What is about to get its name still may, for a while, and nothing after that: a call that hangs may
            // return long after the next session has given a newer file that name.
            self.destination.close_in(self.driver.tuning.leave_patience);
        }
        self.driver.wake();
        // What they have begun is done before the marker is left.
        workers.finish();
        if outcome.is_err()
            && self.properties.atomic_publish
            && !self.at_work.all_left(self.driver.tuning.leave_patience)
        {
            self.tell_ended(outcome.clone());
            is_told.set(true);
            self.at_work.wait_for_all();
        }
        // The transfer was ended early: what nobody will commit goes.
        self.take_made().into_iter().for_each(MadeItems::remove);
        for (_, staged) in lock(&self.staged).drain() {
            staged.entries.iter().for_each(|(_, entry)| entry.remove());
        }
        self.leave_parts(outcome);
        if !is_told.get() {
            self.tell_ended(outcome.clone());
            is_told.set(true);
        }
    }

    /// The last word to the command.
    pub(super) fn tell_ended(&self, outcome: Result<(), Failure>) {
        let blocks_rotten = self.driver.lock().blocks_rotten();
        let mut unkept = self.destination.unkept();
        if let Some(left_out) = lock(&self.left_out).take() {
            match &mut unkept.attributes {
                Some(told) => told.add(left_out),
                None => unkept.attributes = Some(left_out),
            }
        }
        // What lies in memory was not read back from storage, and the report must not say that it was.
        let in_memory = if self.driver.options.verify == Verify::Disk { self.destination.files_in_memory() } else { 0 };
        let swept = self.sweep.as_ref().map(Sweep::ended).unwrap_or_default();
        let DestinationCounts { files_replaced_same, files_in_place, .. } = self.destination.counted();
        self.changes.iter().for_each(|changes| changes.close());
        (self.driver.voice.command)(Tell::Ended(Box::new(Ended {
            faults: Faults {
                blocks_rotten,
                streams_altered: self.streams_altered.load(Ordering::Relaxed),
                ..Faults::default()
            },
            at_destination: self.counted_as_referred(DestinationCounts {
                // Where files are compared, one that is sent has differed.
                files_replaced_same: if self.driver.options.rules().is_some() { 0 } else { files_replaced_same },
                parts_reread: self.reread.0.load(Ordering::Relaxed),
                bytes_reread: self.reread.1.load(Ordering::Relaxed),
                files_not_read_back: in_memory,
                items_deleted: swept.deleted.items,
                bytes_deleted: swept.deleted.bytes,
                items_only_there: swept.stays.items,
                bytes_only_there: swept.stays.bytes,
                attributes_set: self.attributes_set.load(Ordering::Relaxed),
                files_in_place,
                ..DestinationCounts::default()
            }),
            undeleted: swept.why,
            unsynced: self.destination.unsynced(),
            unfinished: if outcome.is_ok() { self.destination.unfinished() } else { Unfinished::default() },
            failure: outcome.err(),
            unkept_permissions: unkept.permissions,
            unkept_directories: unkept.directories,
            unkept_times: unkept.times,
            unkept_attributes: unkept.attributes,
            ..Ended::default()
        })));
    }
}
