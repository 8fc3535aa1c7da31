//! What has changed a little comes as a patch: small files, of which what stands at their names is told by its chunks,
//! and blocks of large ones, whose chunks are told when they are taken over.

use std::time::Instant;

use carrack_core::ids::ItemId;
use carrack_core::limits;
use carrack_core::report::ItemKind;
use carrack_core::timeline::Work;
use carrack_core::transfer::receiver::ArrivedBlock;
use carrack_core::tuning::SLICE_BYTES;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::frame::{EntryHeader, TRAILER_BYTES, Trailer};
use carrack_core::wire::patch::{self, Patch};
use carrack_core::wire::peer::{AskedIndex, AskedItem, ItemResult};

use super::bundle::{ItemContent, check_bundle};
use super::changes::short_digest;
use super::stream::{ReceiveStream, StreamError};
use super::{ReceiveRun, Staged};
use crate::data::hasher::BlockHasher;
use crate::storage::write::{Begun, SmallFile, StandingItem};
use crate::sync::lock;

impl ReceiveRun {
    /// Whether a small file is made of what stands there and of what differs, where that is quicker than to send all.
    pub(super) fn may_be_patched(&self, item: &AskedItem, there: &StandingItem) -> bool {
        let is_file = item.kind == ItemKind::File && there.state.kind == ItemKind::File && there.state.size > 0;
        let is_small = patch::chunk_bytes(item.size).is_some();
        is_file && is_small && self.driver.options.patches() && self.taking_over.pays()
    }

    /// Has the chunks of what stands at the name of a small file read, by whoever reads its contents.
    pub(super) fn chunk_later(&self, asked: AskedIndex, item: &AskedItem) {
        lock(&self.contents.chunked).insert(asked, (item.path.clone(), item.size));
    }

    /// Tells the chunks of what stands at the name of a small file; none where it cannot be read, and is sent whole.
    pub(super) fn read_chunks(&self, asked: AskedIndex) {
        let Some((path, size)) = lock(&self.contents.chunked).remove(&asked) else { return };
        // One byte more shows whether that is all.
        let read = || self.destination.first_bytes(&path, size + 1);
        let standing = self.taking_over.copying.measure(size, read).ok().flatten().unwrap_or_default();
        let chunks = patch::digests(&standing, size);
        if !chunks.is_empty() {
            lock(&self.contents.told).insert(short_digest(&path));
        }
        self.driver.tell(|machine| machine.handle_content_compared(Instant::now(), asked, false, chunks));
    }
}

impl ReceiveStream<'_> {
    /// A block that is made of what is there already and what differs. If it has become another, it comes again whole.
    pub(super) fn patched_block(
        &mut self,
        item: ItemId,
        offset: u64,
        length: u32,
        whole: bool,
    ) -> Result<(), StreamError> {
        let options = &self.run.driver.options;
        self.run.driver.lock().check_patch(item, offset)?;
        let trailer = self.read_patch(length)?;
        let patch = Patch::decode(&self.scratch, options.block_bytes.into())?;
        let mut write = self.begin_block(ArrivedBlock { item, offset, length: patch.size }, whole)?;
        let mut hasher = BlockHasher::new(options.digests, offset);
        let stages = &self.run.driver.stages;
        if let Some(part) = write.part.clone() {
            // What it has not is taken for zeros, and has another digest; so has what cannot be read.
            let mut standing = vec![0; patch.size as usize];
            let _ = stages.wait(Work::Write, || part.read(offset, &mut standing));
            let content = patch.apply(&standing).unwrap_or(standing);
            let slices = content.chunks(SLICE_BYTES);
            slices.for_each(|slice| stages.work(Work::Hash, slice.len(), || hasher.update(slice)));
            for range in patch.changed() {
                let (at, slice) = (offset + range.start as u64, &content[range]);
                write.written = write.written.and_then(|()| stages.wait(Work::Write, || part.write(at, slice)));
            }
        }
        self.end_block(write, hasher, &trailer);
        Ok(())
    }

    /// Reads a patch into `scratch`, and the trailer behind it.
    fn read_patch(&mut self, length: u32) -> Result<Trailer, StreamError> {
        self.scratch.clear();
        let sent = &mut self.scratch;
        self.input.payload(u64::from(length), &mut |slice| {
            sent.extend_from_slice(slice);
            Ok::<(), StreamError>(())
        })?;
        let mut trailer = [0; TRAILER_BYTES];
        self.input.meta(&mut trailer)?;
        Ok(Trailer::decode(&trailer, self.run.driver.options.digests)?)
    }

    /// A file of a bundle that is made of what stands at its name and what differs. If that has become another
    /// meanwhile, the file comes again whole.
    pub(super) fn patched_file(
        &mut self,
        index: u32,
        entry: &EntryHeader,
        small: SmallFile<'_>,
        keep: bool,
        (bytes, staged): (&mut u64, &mut Staged),
    ) -> Result<(), StreamError> {
        let run = self.run;
        let options = &run.driver.options;
        if !options.patches() || !lock(&run.contents.told).contains(&short_digest(small.path)) {
            return Err(ProtocolError::violation("the sender sent a patch, and nobody told of any chunks").into());
        }
        let trailer = self.read_patch(entry.size)?;
        let patch = Patch::decode(&self.scratch, limits::PATCHED_BYTES)?;
        *bytes += u64::from(patch.size.saturating_sub(entry.size));
        check_bundle(*bytes + staged.attribute_bytes)?;
        if !keep {
            return Ok(());
        }
        run.note_change(
            index,
            &EntryHeader { size: patch.size, ..*entry },
            &small,
            &ItemContent::Bytes(Vec::new()),
            staged,
        );
        let read = || run.destination.first_bytes(small.path, patch.size.into());
        let standing = run.driver.stages.wait_briefly(Work::Begin, read).ok().flatten();
        let Some(mut content) = standing.and_then(|standing| patch.apply(&standing)) else {
            staged.exceptions.push((index, ItemResult::Dropped));
            return Ok(());
        };
        let mut hasher = BlockHasher::new(options.digests, 0);
        run.driver.stages.work(Work::Hash, content.len(), || hasher.update(&content));
        let ours = hasher.finish(true);
        if !trailer.whole || ours.main != trailer.digest.main {
            staged.exceptions.push((index, ItemResult::Dropped));
            return Ok(());
        }
        run.take_small(index, small, ours, Ok(Begun::AtOnce), &mut content, staged);
        Ok(())
    }
}
