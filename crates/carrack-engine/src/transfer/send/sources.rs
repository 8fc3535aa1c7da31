//! Opening sources, reading them for comparison, and the rate limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::digest::{BlockDigest, FileTree, block_count, block_length};
use carrack_core::growing::GrowingSources;
use carrack_core::ids::{ItemId, StreamId};
use carrack_core::report::{ErrorCode, Failure, FileDigests, Side};
use carrack_core::timeline::Work;
use carrack_core::transfer::ScannedItem;
use carrack_core::transfer::machine::Machine;
use carrack_core::transfer::sender::BlockJob;
use carrack_core::tuning::SLICE_BYTES;

use super::super::{OpensSources, content_readers};
use super::SendRun;
use crate::data::content::{content_digest, sample_digest};
use crate::data::hasher::BlockHasher;
use crate::error::failure;
use crate::storage::read::{OpenOptions, Reader, Reading, Root};
use crate::sync::lock;

impl OpensSources for SendRun {
    fn open_source(&self, item: ItemId) -> Option<Arc<dyn Reader>> {
        let scanned = self.driver.lock().scanned(item).cloned()?;
        let opened = self.open_and(&scanned, &mut |time| !self.driver.over.wait(time)).ok()?;
        opened.check_listed(&scanned).ok()?;
        // Its sender looks at the same open file afterwards, whether it has changed.
        Some(Arc::clone(lock(&self.sources).entry(item).or_insert_with(|| Arc::from(opened))))
    }
}

impl SendRun {
    pub(super) fn source_of(&self, item: ItemId, stream: StreamId) -> Result<Arc<dyn Reader>, Failure> {
        if let Some(source) = lock(&self.sources).get(&item) {
            return Ok(Arc::clone(source));
        }
        // Opened without any lock: on a file system that hangs only this stream waits.
        let scanned = self.driver.lock().scanned(item).cloned();
        let scanned = scanned.ok_or_else(|| failure(ErrorCode::Internal, Side::Source, "the item has ended"))?;
        let opened = self.driver.stages.wait(Work::Find, || self.open(&scanned, stream, &mut |_| {}))?;
        // What is opened must be what was listed: the receiver was told its size and its times.
        opened.check_listed(&scanned)?;
        let mut sources = lock(&self.sources);
        // Another stream may have been quicker: all must read the same open file.
        Ok(Arc::clone(sources.entry(item).or_insert_with(|| Arc::from(opened))))
    }

    /// Opens a source, which may have to `rest`.
    pub(super) fn open_and(
        &self,
        item: &ScannedItem,
        rest: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Box<dyn Reader>, Failure> {
        let mut options = OpenOptions { tuning: &self.driver.tuning, may_grow: self.may_grow(item), rest };
        self.root(item)?.source.open(item, &mut options)
    }

    /// Whether a source may be longer by now than it was when it was listed.
    fn may_grow(&self, item: &ScannedItem) -> bool {
        self.driver.options.growing == GrowingSources::Snapshot || item.followed
    }

    /// Opens a source. `rested` is told of time that is let pass.
    pub(super) fn open(
        &self,
        item: &ScannedItem,
        stream: StreamId,
        rested: &mut dyn FnMut(Duration),
    ) -> Result<Box<dyn Reader>, Failure> {
        let mut rest = |time| {
            rested(time);
            self.rest(stream, time)
        };
        let opened = self.open_and(item, &mut rest)?;
        // A file that may grow is never refused for its size, so nothing else would notice another one under its name.
        // Of one that has further names, those would become links to another file.
        if self.may_grow(item) || item.names > 1 {
            opened.check_listed(item)?;
        }
        Ok(opened)
    }

    /// Lets so much time pass, for a source that a stream waits for; false when the transfer has ended.
    pub(super) fn rest(&self, stream: StreamId, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut machine = self.driver.lock();
        // The machine is told, so that the stream is not taken for one that is late.
        machine.handle_source_rests(Instant::now(), stream, until);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || machine.outcome().is_some() {
                return machine.outcome().is_none();
            }
            machine = self.driver.wait_timeout(machine, left);
        }
    }

    pub(super) fn root(&self, item: &ScannedItem) -> Result<&Root, Failure> {
        self.roots
            .get(item.root as usize)
            .ok_or_else(|| failure(ErrorCode::Internal, Side::Source, "an item without a source"))
    }

    /// Waits until so many bytes may be sent, or the transfer has ended.
    pub(super) fn pace(&self, bytes: usize) {
        if let Some(limit) = &self.limit {
            let mut wait = lock(limit).reserve(Instant::now(), bytes as u64);
            // In parts: at a low rate a slice waits for longer than what holds the streams back may remain unknown.
            while !wait.is_zero() {
                let part = wait.min(self.driver.tuning.stages_interval);
                if self.driver.stages.wait(Work::Pace, || self.driver.over.wait(part)) {
                    return;
                }
                wait -= part;
            }
        }
    }

    /// Reads sources once more that have been sent, until the transfer has ended.
    pub(super) fn read_once_more(&self) {
        let mut slice = vec![0; SLICE_BYTES];
        while let Some(item) = self.driver.next_of(&self.again) {
            let was_read = self.driver.lock().was_read(item);
            // The same open file that was sent: another file under its name would prove nothing.
            let source = lock(&self.sources).get(&item).cloned();
            let result = source.zip(was_read).map_or(Ok(None), |(source, was_read)| {
                let second = self.second_reading(&*source, was_read, &mut slice);
                // The times tell more of what has happened, if they tell.
                source.check_unchanged().and(second)
            });
            self.driver.tell(|machine| machine.handle_source_checked(Instant::now(), item, result));
        }
    }

    /// Reads files that the destination has in the same size, until the transfer has ended.
    pub(super) fn read_contents(&self) {
        while let Some((asked, item, samples)) = self.driver.next_of(&self.contents) {
            let read = self.content_of(&item, samples);
            if let Some(read) = read.transpose() {
                self.driver.tell(|machine| machine.handle_content_read(Instant::now(), asked, read));
            }
        }
    }

    /// The BLAKE3 of a source or of its samples, as it is now; `None` when the transfer has ended meanwhile.
    fn content_of(&self, item: &ScannedItem, samples: bool) -> Result<Option<[u8; 32]>, Failure> {
        let over = || self.driver.is_over();
        // What has grown meanwhile is not the same, whatever it had before.
        let item = &ScannedItem { followed: false, ..item.clone() };
        let source = self.open_and(item, &mut |time| !self.driver.over.wait(time))?;
        source.check_listed(item)?;
        let read = |offset: u64, out: &mut [u8]| {
            let _reading = Reading::begin(&*source, offset, out.len() as u64);
            source.read_at(offset, out)
        };
        let size = item.size.unwrap_or(0);
        let digest = match samples {
            true => Some(sample_digest(size, &read)?),
            false => content_digest(size, content_readers(), &read, &over)?,
        };
        source.check_unchanged()?;
        Ok(digest)
    }

    /// The digests of a source that is read a second time; `None` where it cannot be, and when the
    /// transfer has ended meanwhile.
    pub(super) fn second_reading(
        &self,
        source: &dyn Reader,
        (size, sparse): (u64, bool),
        slice: &mut [u8],
    ) -> Result<Option<FileDigests>, Failure> {
        // A pipe gives its bytes once.
        if source.size().is_none() {
            return Ok(None);
        }
        let block_bytes = self.driver.options.block_bytes;
        let mut tree = FileTree::new(block_bytes, self.driver.options.digests);
        let blocks = block_count(size, block_bytes);
        for index in 0..blocks {
            let (offset, length) = (index * u64::from(block_bytes), block_length(index, size, block_bytes));
            let job = BlockJob {
                item: ItemId(0),
                offset,
                length: length as u32,
                whole: blocks == 1,
                unsized_source: false,
                sparse,
                patched: false,
            };
            // In the blocks in which it was sent: the digest is made of theirs, and XXH3-128 of a block depends on its
            // place.
            tree.insert(index, length, self.digest(source, job, slice)?);
            // After each block: a second reading may take as long as the copy, and a cancelled one must not hold up the
            // end.
            if self.driver.is_over() {
                return Ok(None);
            }
        }
        Ok(tree.finish(size))
    }

    /// Reads a block and sends nothing.
    pub(super) fn digest(&self, source: &dyn Reader, job: BlockJob, slice: &mut [u8]) -> Result<BlockDigest, Failure> {
        let hole = job.sparse && source.is_hole(job.offset, u64::from(job.length));
        let _reading = (!hole).then(|| Reading::begin(source, job.offset, job.length.into()));
        let mut hasher = BlockHasher::new(self.driver.options.digests, job.offset);
        let mut read = 0;
        while read < job.length as usize {
            let most = slice.len().min(job.length as usize - read);
            let slice = &mut slice[..most];
            // A hole reads as zeros: its digest is that of the zeros which the receiver has there.
            if hole {
                slice.fill(0);
            } else {
                source.read_at(job.offset + read as u64, slice)?;
            }
            hasher.update(slice);
            read += slice.len();
        }
        Ok(hasher.finish(job.whole))
    }
}
