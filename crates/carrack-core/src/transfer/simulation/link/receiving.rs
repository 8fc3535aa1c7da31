//! The receiving end of a simulation's data streams: a thread for each, as the engine has them.

use std::time::Duration;

use super::{Content, Frame, Receiving};
use crate::digest::BlockDigest;
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::report::ItemKind;
use crate::transfer::machine::Machine;
use crate::transfer::receiver::ArrivedBlock;
use crate::transfer::receiver::BlockStart;
use crate::transfer::simulation::disk::Entry;
use crate::transfer::simulation::plan::Mutant;
use crate::transfer::simulation::source::digest_of;
use crate::transfer::simulation::store::TORN;
use crate::transfer::simulation::world::{Event, World};
use crate::wire::frame::Trailer;
use crate::wire::peer::ItemResult;

impl World {
    /// The receiver's thread goes on as far as it can.
    pub fn step_receiver(&mut self, stream: StreamId) {
        loop {
            let state = self.stream(stream);
            let over = state.receiving == Receiving::Over;
            let finishing = matches!(state.receiving, Receiving::Finishing { .. });
            if over || finishing {
                return;
            }
            let front = state.frames.front().map(|frame| (frame.begin, frame.end));
            let cut = state.ended && front.is_none_or(|(_, end)| end.is_none());
            if state.shut || cut {
                return self.close(stream);
            }
            match (state.receiving, front) {
                (Receiving::Idle | Receiving::WaitingFor(_), Some((begin, _))) if begin <= self.clock => {
                    if !self.begin(stream) {
                        return;
                    }
                }
                (Receiving::Taking { write }, Some((_, Some(end)))) if end <= self.clock => {
                    let delay = self.disk_delay();
                    let state = self.stream(stream);
                    state.receiving = Receiving::Finishing { write };
                    state.finishing_token += 1;
                    let token = state.finishing_token;
                    return self.after(delay, Event::Written(stream, token));
                }
                _ => return,
            }
        }
    }

    pub(super) fn close(&mut self, stream: StreamId) {
        let state = self.stream(stream);
        state.receiving = Receiving::Over;
        let (was_broken, latency) = (std::mem::replace(&mut state.broken, true), self.plan.latency);
        self.disk.end(stream);
        self.receiver.handle_stream_closed(self.now(), stream);
        if !was_broken {
            self.after(latency, Event::Noticed(stream));
        }
        for other in self.stream_ids() {
            if self.stream(other).receiving == Receiving::WaitingFor(stream) {
                self.after(Duration::ZERO, Event::Receiver(other));
            }
        }
    }

    /// A frame begins; false when it has to wait.
    pub(super) fn begin(&mut self, stream: StreamId) -> bool {
        let Some(Frame { content, .. }) = self.stream(stream).frames.front() else {
            return false;
        };
        let begin = match *content {
            Content::Bundle { id, .. } => self.receiver.begin_bundle(stream, id),
            Content::Block { item, offset, length, whole, hole, .. } => {
                let begin = self.receiver.begin_block(stream, item, offset, length, whole);
                let begin = begin.expect("the sender keeps to the protocol");
                if begin == BlockStart::Write {
                    self.disk.begin(stream, item, offset);
                    self.begin_in_store(item, offset, hole);
                }
                begin
            }
        };
        self.verdict.discarded += u64::from(begin == BlockStart::Discard);
        self.stream(stream).receiving = match begin {
            BlockStart::Write => Receiving::Taking { write: true },
            BlockStart::Discard => Receiving::Taking { write: false },
            BlockStart::WaitFor(other) => {
                self.verdict.waits += 1;
                Receiving::WaitingFor(other)
            }
        };
        !matches!(begin, BlockStart::WaitFor(_))
    }

    pub(super) fn begin_in_store(&mut self, item: ItemId, offset: u64, hole: bool) {
        let index = offset / u64::from(self.plan.options.block_bytes);
        let part = &self.disk.parts[&item];
        let number = self.source.find(&part.path);
        assert!(!self.held_right.contains(&(number, index)), "block {index} of {number} was held, and comes again");
        let file = part.file;
        self.store.begin(file, index, self.plan.mutant != Some(Mutant::ClaimKept));
        if !self.is_hole_there(item, index, hole) {
            // From here on it is neither what it was nor what it will be.
            self.store.write(file, index, TORN);
        }
    }

    /// A hole need not be written where nothing has been since this session made the file.
    pub(super) fn is_hole_there(&self, item: ItemId, index: u64, hole: bool) -> bool {
        let part = &self.disk.parts[&item];
        let untouched = part.fresh && !self.store.is_written(part.file, index);
        hole && (untouched || self.plan.mutant == Some(Mutant::HoleNotWritten))
    }

    /// The receiver's thread has written a frame.
    pub fn have_received(&mut self, stream: StreamId, token: u64) {
        let state = self.stream(stream);
        let Receiving::Finishing { write } = state.receiving else {
            return;
        };
        if state.finishing_token != token {
            return;
        }
        state.receiving = Receiving::Idle;
        let frame = state.frames.pop_front().expect("it was being written");
        match frame.content {
            _ if !write => {}
            Content::Bundle { id, entries } => self.bundle_written(stream, id, entries),
            Content::Block { item, offset, length, content, hole, .. } => {
                self.block_written(stream, item, offset, length, (content, hole))
            }
        }
        self.disk.end(stream);
        self.after(Duration::ZERO, Event::Receiver(stream));
    }

    pub(super) fn bundle_written(&mut self, stream: StreamId, id: BundleId, mut entries: Vec<Entry>) {
        for entry in &mut entries {
            let has_digest = self.source.items[entry.item].scanned.kind == ItemKind::File;
            entry.altered = has_digest && self.rng.chance(self.plan.corruption);
            self.verdict.corruptions += u64::from(entry.altered && entry.content.is_some());
        }
        let again = entries.iter().find(|entry| self.known.contains(&entry.path));
        assert!(again.is_none(), "{again:?} is known, and comes again");
        if self.receiver.handle_bundle(self.now(), stream, id, entries.iter().map(|entry| entry.size).sum()) {
            self.disk.bundles.insert(id, entries);
        }
    }

    pub(super) fn block_written(
        &mut self,
        stream: StreamId,
        item: ItemId,
        offset: u64,
        length: u32,
        came: (Option<u64>, bool),
    ) {
        let (content, hole) = came;
        if self.rng.chance(self.plan.write_failure) && self.rng.chance(300) {
            let failure = Failure::new(ErrorCode::NoSpace, Side::Destination, "full");
            self.forget_right(item);
            return self.receiver.handle_write_failed(self.now(), stream, item, failure);
        }
        let altered = self.rng.chance(self.plan.corruption) && !hole;
        let (index, swapped) = (offset / u64::from(self.plan.options.block_bytes), content.map(|content| content ^ 1));
        let misplaced = self.plan.mutant.filter(|_| self.rng.chance(100) && self.disk.parts.contains_key(&item));
        let arrived = if misplaced == Some(Mutant::SwappedOnTheWay) { swapped } else { content };
        let theirs = arrived.map_or(BlockDigest::default(), digest_of);
        let ours = if altered { digest_of(!0) } else { theirs };
        let trailer = Trailer { whole: arrived.is_some(), digest: theirs };
        self.receiver.handle_block(self.now(), stream, ArrivedBlock { item, offset, length }, ours, &trailer);
        let stopped = self.receiver.outcome().is_some();
        let Some(part) = self.disk.parts.get_mut(&item) else {
            return;
        };
        let (Some(arrived), false) = (arrived, stopped) else {
            return;
        };
        if altered {
            self.verdict.corruptions += 1;
            return;
        }
        let on_disk = if misplaced == Some(Mutant::SwappedOnDisk) { swapped } else { Some(arrived) };
        let file = part.file;
        let is_there = self.is_hole_there(item, index, hole);
        self.verdict.holes += u64::from(hole && !is_there);
        // A hole that is there already is not written, wherever it would have gone.
        self.verdict.misplaced += u64::from(misplaced.is_some() && !is_there);
        if let Some(content) = on_disk.filter(|_| !is_there) {
            self.store.write(file, index, content);
        }
        // It may have been refused for being another than before.
        if self.disk.parts.contains_key(&item) {
            self.disk.land(item, offset);
        }
    }

    /// What the receiver made of a bundle's entry before it had its name.
    pub fn entry_result(&mut self, entry: &Entry) -> ItemResult {
        let failure = Failure::new(ErrorCode::PermissionDenied, Side::Destination, "refused");
        match entry.content {
            None => ItemResult::Dropped,
            Some(_) if entry.altered => ItemResult::Mismatch,
            // What stood there has become another meanwhile.
            Some(_) if entry.patched && self.rng.chance(300) => {
                self.verdict.patched_in_vain += 1;
                ItemResult::Dropped
            }
            Some(_) if self.rng.chance(self.plan.commit_failure) => ItemResult::Failed(failure),
            Some(_) if self.rng.chance(self.plan.keep) => ItemResult::Kept,
            Some(_) => ItemResult::Published,
        }
    }
}
