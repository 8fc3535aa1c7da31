//! Small files that have changed: what stands at their names is told by its chunks, and of each a patch comes.

use std::time::Instant;

use carrack_core::report::ItemKind;
use carrack_core::timeline::Work;
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
        self.scratch.clear();
        let sent = &mut self.scratch;
        self.input.payload(u64::from(entry.size), &mut |slice| {
            sent.extend_from_slice(slice);
            Ok::<(), StreamError>(())
        })?;
        let mut trailer = [0; TRAILER_BYTES];
        self.input.meta(&mut trailer)?;
        let trailer = Trailer::decode(&trailer, options.digests)?;
        let patch = Patch::decode(&self.scratch)?;
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
