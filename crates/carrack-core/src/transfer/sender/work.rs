//! What a sender's streams do, and how that went.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::offered::Compared;
use super::streams::{Carried, Retired};
use super::{BlockJob, Bundle, Job, Next, Sender, SenderAction, SenderPhase, SentItem};
use crate::digest::BlockDigest;
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::transfer::Unit;
use crate::wire::peer::PeerMessage;

impl Sender {
    /// A stream is there and wants work.
    pub fn handle_stream(&mut self, _now: Instant, stream: StreamId) {
        self.streams.add(stream);
    }

    /// The streams are within one process: none of them is ever cut off for being slow.
    pub fn handle_within_process(&mut self, _now: Instant) {
        self.streams.keep_all();
    }

    /// Has so many streams end in good order, the last one never: they are given nothing more, and told [`Next::End`]
    /// when all that they carried has landed; [`parked`](crate::tuning::Tuning::parked) later, unless
    /// they are woken. Until then they are watched: what is lost with them goes down others, as from any stream.
    /// Says how many.
    pub fn retire(&mut self, count: usize) -> usize {
        if self.has_ended() { 0 } else { self.streams.retire(count) }
    }

    /// Has so many streams go on that were asked to end and are still connected. Says how many.
    pub fn wake(&mut self, count: usize) -> usize {
        if self.has_ended() { 0 } else { self.streams.wake(count) }
    }

    /// Whether a stream has been asked to end: it is not to be replaced.
    pub fn is_retiring(&self, stream: StreamId) -> bool {
        self.streams.is_retiring(stream)
    }

    /// The thread of a stream has ended, and nothing more is asked about it.
    pub fn forget_stream(&mut self, stream: StreamId) {
        self.streams.remove(stream);
    }

    /// What a stream is to do next.
    pub fn next_job(&mut self, now: Instant, stream: StreamId) -> Next {
        while !self.has_ended() && self.streams.is_alive(stream) {
            if self.streams.is_retiring(stream) {
                match self.streams.retired(now, stream) {
                    Retired::Carries => return Next::Wait(None),
                    Retired::Parked(until) => return Next::Wait(Some(until)),
                    Retired::Ended => {}
                }
                // Those that were to stay may all have been lost meanwhile.
                self.advance(now);
                return Next::End;
            }
            if let Some(job) = self.next_of_any(now, stream) {
                return Next::Job(job);
            }
            if !self.cut_off_straggler(now, stream) {
                return Next::Wait(self.idle_until(stream));
            }
        }
        Next::End
    }

    /// Even streams take blocks before bundles: a large file is what the end of a transfer waits for. Odd ones take
    /// bundles first, so that small files, which cost the storage at both ends more than the network, are made while
    /// large ones are on their way. Held blocks are compared by odd streams first and by even ones last, so that
    /// neither the source's disk nor the network is idle while there is work for both.
    fn next_of_any(&mut self, now: Instant, stream: StreamId) -> Option<Job> {
        let block = |sender: &mut Self| sender.next_block(now, stream).map(Job::Block);
        let bundle = |sender: &mut Self| sender.next_bundle(now, stream).map(Job::Bundle);
        if stream.0 % 2 == 1 {
            return self.next_check(now, stream).or_else(|| bundle(self)).or_else(|| block(self));
        }
        block(self).or_else(|| bundle(self)).or_else(|| self.next_check(now, stream))
    }

    fn next_check(&mut self, now: Instant, stream: StreamId) -> Option<Job> {
        for index in 0..self.sendable.len() {
            let id = self.sendable[index];
            let Some(item) = self.items.get_mut(&id) else {
                continue;
            };
            let Some(job) = item.take_check(id) else {
                continue;
            };
            let unit = Unit::Check(id, job.offset);
            self.streams.take(stream, Carried { unit, since: now, sent: false, landed: false, once: false });
            if item.is_all_taken() {
                self.sendable.remove(index);
            }
            return Some(Job::Check(job));
        }
        None
    }

    fn next_bundle(&mut self, now: Instant, stream: StreamId) -> Option<Arc<Bundle>> {
        if self.bundles.filling_until().is_some_and(|until| now >= until) {
            self.close_filling();
        }
        let (bundle, landed) = self.bundles.take()?;
        let unit = Unit::Bundle(bundle.id);
        self.streams.take(stream, Carried { unit, since: now, sent: false, landed, once: false });
        Some(bundle)
    }

    fn next_block(&mut self, now: Instant, stream: StreamId) -> Option<BlockJob> {
        for index in 0..self.sendable.len() {
            let id = self.sendable[index];
            let Some(item) = self.items.get_mut(&id) else {
                continue;
            };
            let Some((job, landed)) = item.take_block(id) else {
                continue;
            };
            let unit = Unit::Block(id, job.offset);
            self.streams.take(stream, Carried { unit, since: now, sent: false, landed, once: item.is_single_use() });
            if item.is_all_taken() {
                self.sendable.remove(index);
            }
            return Some(job);
        }
        None
    }

    /// Near the end: when a stream has nothing to do while another holds something for far longer than usual, the other
    /// is cut off and what it holds goes back into the queue. Never the last one.
    fn cut_off_straggler(&mut self, now: Instant, idle: StreamId) -> bool {
        // While the scan goes on a stream may be idle for want of work, and its neighbour's
        // pace is nobody's problem yet.
        if self.phase == SenderPhase::Scanning {
            return false;
        }
        let late = self.streams.straggler(idle).filter(|(deadline, _)| now > *deadline);
        let Some((_, straggler)) = late else {
            return false;
        };
        self.totals.faults.stragglers += self.lose(straggler);
        self.streams.count_cut();
        self.actions.push_back(SenderAction::AbortStream(straggler));
        self.advance(now);
        true
    }

    /// When an idle stream should ask again, though nothing has happened.
    fn idle_until(&self, idle: StreamId) -> Option<Instant> {
        // As in `cut_off_straggler`: one that is late now is no reason to ask again before the scan has ended.
        let straggler = self.streams.straggler(idle).filter(|_| self.phase != SenderPhase::Scanning);
        let straggler = straggler.map(|(deadline, _)| deadline + Duration::from_millis(1));
        [straggler, self.bundles.filling_until()].into_iter().flatten().min()
    }

    /// A block of a source without a size has been read: `length` bytes, and whether the source ended there. Said
    /// before the block is sent, so that another stream can read on.
    ///
    /// Every block but the last is full. Whether a block is the last is known by looking at least one byte further
    /// before it is sent: only an empty source has an empty block.
    pub fn handle_read(&mut self, _now: Instant, id: ItemId, offset: u64, length: u32, end: bool) {
        let Some(item) = self.items.get_mut(&id).filter(|item| item.size.is_none() && item.is_single_use()) else {
            return;
        };
        if let Some(wrong) = item.read(offset, length, end) {
            let failure = Failure::new(ErrorCode::Internal, Side::Source, wrong);
            return self.abandon(id, failure);
        }
        if item.size.is_some() {
            self.sendable.retain(|&other| other != id);
        }
        self.progress.bytes_found += u64::from(length);
    }

    /// A stream has sent a block, or could not read it. May be said of a block that was read when the stream was lost.
    pub fn handle_block_sent(
        &mut self,
        _now: Instant,
        stream: StreamId,
        id: ItemId,
        offset: u64,
        result: Result<(u32, BlockDigest), Failure>,
    ) {
        if self.has_ended() {
            return;
        }
        let held = self.streams.sent(stream, Unit::Block(id, offset));
        match result {
            // What was read is what was read, even if the stream has been given up meanwhile and the
            // block is back in the queue.
            Ok((length, digest)) => {
                let Some(item) = self.items.get_mut(&id) else {
                    return;
                };
                item.hash(offset, length, digest);
                if item.is_to_be_checked() {
                    self.actions.push_back(SenderAction::CheckSource(id));
                }
            }
            // Another stream reads it, and will see for itself.
            Err(_) if !held => {}
            Err(failure) => self.abandon(id, failure),
        }
    }

    /// Bytes of a chunk, and the chunks that the receiver has of the block that starts here; `None` where it is to be
    /// sent whole.
    pub fn chunks_of(&self, id: ItemId, offset: u64) -> Option<(u32, Box<[u32]>)> {
        self.items.get(&id)?.chunks_of(offset)
    }

    /// A block is about to be sent as a patch: the receiver has so many bytes of it. Said before its first byte goes.
    pub fn handle_patched(&mut self, id: ItemId, offset: u64, there: u64) {
        if let Some(item) = self.items.get_mut(&id) {
            item.patch(offset, there);
        }
    }

    /// Size of an offered item that has been read to its end, for the one who reads it a second time;
    /// and whether it has holes.
    pub fn was_read(&self, id: ItemId) -> Option<(u64, bool)> {
        let item = self.items.get(&id)?;
        item.finish().map(|(size, _)| (size, item.scanned.sparse))
    }

    /// A stream waits until this moment for a source that has just changed. It is not slow.
    pub fn handle_source_rests(&mut self, _now: Instant, stream: StreamId, until: Instant) {
        self.streams.rest(stream, until);
    }

    /// A stream has read a block that the receiver holds, as [`Job::Check`] asked. May be said
    /// after the stream was lost.
    pub fn handle_block_checked(
        &mut self,
        _now: Instant,
        stream: StreamId,
        id: ItemId,
        offset: u64,
        result: Result<BlockDigest, Failure>,
    ) {
        if self.has_ended() {
            return;
        }
        let carried = self.streams.checked(stream, Unit::Check(id, offset));
        let digest = match result {
            Ok(digest) => digest,
            // Another stream reads it, and will see for itself.
            Err(_) if !carried => return,
            Err(failure) => return self.abandon(id, failure),
        };
        let Some(item) = self.active(id) else {
            return;
        };
        match item.compare(offset, digest) {
            Compared::Same(found) => {
                let index = item.index(offset);
                let to_be_checked = item.is_to_be_checked();
                self.progress.bytes_done += found.left + found.taken_over;
                found.count(&mut self.totals.counts);
                self.confirm(id, index);
                if to_be_checked {
                    self.actions.push_back(SenderAction::CheckSource(id));
                }
            }
            Compared::Different => self.make_sendable(id),
            Compared::Unasked => {}
        }
    }

    fn confirm(&mut self, id: ItemId, index: u64) {
        match self.confirms.back_mut() {
            Some((item, first, count)) if *item == id && *first + *count == index => *count += 1,
            _ => self.confirms.push_back((id, index, 1)),
        }
    }

    fn make_sendable(&mut self, id: ItemId) {
        if !self.sendable.contains(&id) {
            self.sendable.push_front(id);
        }
    }

    /// A stream has sent a bundle. To be said whenever all of it was handed to the stream, even if that has been lost
    /// meanwhile: the receiver may have it.
    pub fn handle_bundle_sent(&mut self, now: Instant, bundle: BundleId, sent: Vec<SentItem>) {
        if self.has_ended() {
            return;
        }
        self.streams.sent_by_any(Unit::Bundle(bundle));
        self.bundles.record_sent(bundle, sent);
        self.settle_bundle(bundle);
        self.advance(now);
    }

    /// A stream has failed. Where it was the last one, others are waited for.
    pub fn handle_stream_lost(&mut self, now: Instant, stream: StreamId) {
        if self.has_ended() || !self.streams.is_alive(stream) {
            return;
        }
        self.totals.faults.resent_after_loss += self.lose(stream);
        self.totals.faults.streams_lost += 1;
        self.advance(now);
    }

    /// Takes a stream out and puts what it carried back into the queue. How much has not landed.
    fn lose(&mut self, stream: StreamId) -> u64 {
        let carried = self.streams.lose(stream);
        if matches!(self.phase, SenderPhase::Scanning | SenderPhase::Draining) {
            // Before anything of it goes down another stream: the receiver must know which of
            // two copies is the old one.
            self.actions.push_back(SenderAction::Send(PeerMessage::StreamLost { stream }));
        }
        for carried in &carried {
            self.requeue(carried.unit);
        }
        let sends = |carried: &&Carried| !carried.landed && !matches!(carried.unit, Unit::Check(..));
        carried.iter().filter(sends).count() as u64
    }

    pub(super) fn requeue(&mut self, unit: Unit) {
        match unit {
            Unit::Block(id, offset) => {
                let Some(item) = self.items.get_mut(&id) else {
                    return;
                };
                if item.is_single_use() {
                    let message = "the data connection was lost, and this source cannot be read again".to_string();
                    self.abandon(id, Failure::new(ErrorCode::ConnectionLost, Side::Link, message));
                } else if item.requeue(offset) {
                    self.make_sendable(id);
                }
            }
            Unit::Check(id, offset) => {
                if let Some(item) = self.items.get_mut(&id) {
                    item.requeue_check(offset);
                    self.make_sendable(id);
                }
            }
            Unit::Bundle(id) => {
                self.bundles.requeue(id);
                self.settle_bundle(id);
            }
        }
    }
}
