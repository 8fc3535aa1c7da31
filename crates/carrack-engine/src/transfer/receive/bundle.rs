//! Writing the items of a bundle under hidden names.

use std::sync::atomic::Ordering;
use std::time::Instant;

use carrack_core::attributes::{AttributeKind, Attributes, Time};
use carrack_core::digest::BlockDigest;
use carrack_core::ids::BundleId;
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, Side, UnkeptAttributes};
use carrack_core::request::Verify;
use carrack_core::special::SpecialFile;
use carrack_core::timeline::Work;
use carrack_core::transfer::Fingerprint;
use carrack_core::transfer::receiver::BlockStart;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::frame::{
    self, ENTRY_HEADER_BYTES, EntryHeader, EntryKind, FINGERPRINT_BYTES, TRAILER_BYTES, Trailer,
};
use carrack_core::wire::linked::LinkedNames;
use carrack_core::wire::patch;
use carrack_core::wire::peer::{AskedItem, ItemResult};

use super::stream::{ReceiveStream, StreamError};
use super::{ReceiveRun, Staged};
use crate::data::hasher::BlockHasher;
use crate::error::failure;
use crate::storage::write::{Begun, SmallFile, Stored};
use crate::sync::lock;

impl ReceiveStream<'_> {
    pub(super) fn bundle(&mut self, bundle: BundleId, entries: u32) -> Result<(), StreamError> {
        let begin = self.begin(|machine| Ok(machine.begin_bundle(self.number, bundle)))?;
        let mut staged = Staged::default();
        let mut bytes = 0;
        let result =
            (0..entries).try_for_each(|index| self.entry(index, begin == BlockStart::Write, &mut bytes, &mut staged));
        if begin != BlockStart::Write {
            return result;
        }
        if let Err(error) = result {
            // The stream broke in the midst of it: the whole bundle comes again, under the same hidden names.
            staged.entries.iter().for_each(|(_, entry)| entry.remove());
            return Err(error);
        }
        self.run.write_waiting(&mut staged);
        // Before the machine hears of it: its order to commit may come at once.
        lock(&self.run.staged).insert(bundle, staged);
        let wanted = self.run.driver.tell(|machine| machine.handle_bundle(Instant::now(), self.number, bundle, bytes));
        if !wanted && let Some(staged) = lock(&self.run.staged).remove(&bundle) {
            staged.entries.iter().for_each(|(_, entry)| entry.remove());
        }
        Ok(())
    }

    pub(super) fn entry(
        &mut self,
        index: u32,
        keep: bool,
        bytes: &mut u64,
        staged: &mut Staged,
    ) -> Result<(), StreamError> {
        let mut header = [0; ENTRY_HEADER_BYTES];
        self.input.peek(&mut header)?;
        let entry = EntryHeader::decode(&header)?;
        *bytes += if matches!(entry.kind, EntryKind::File | EntryKind::HardLink) { entry.size.into() } else { 0 };
        staged.attribute_bytes += u64::from(entry.attribute_bytes);
        check_bundle(*bytes + staged.attribute_bytes)?;
        let told_bytes = if entry.kind.is_told_whole() { entry.size as usize } else { 0 };
        let fingerprint_bytes = if entry.fingerprinted { FINGERPRINT_BYTES } else { 0 };
        let (attribute_bytes, path_bytes) = (usize::from(entry.attribute_bytes), usize::from(entry.path_bytes));
        let mut named = vec![0; fingerprint_bytes + attribute_bytes + path_bytes + told_bytes];
        self.input.meta_after(&header, &mut named)?;
        let (fingerprint, named) = named.split_at(fingerprint_bytes);
        let (block, named) = named.split_at(attribute_bytes);
        let (path, told) = named.split_at(path_bytes);
        // Checked before it reaches any call: a name such as `..` or one that begins with a slash would lead out.
        frame::check_entry_path(path)?;
        self.run.expected.check(path)?;
        let others = self.run.owners.told(block, &mut self.last_others)?;
        let attributes = Attributes { mode: entry.mode, mtime: self.run.time_to_set(Some(entry.mtime)), others };
        let fingerprint = fingerprint.try_into().ok();
        let digests = FileDigests::default();
        let small = SmallFile { path, attributes, fingerprint, digests, read_back: false };
        let stages = &self.run.driver.stages;
        let written = match entry.kind {
            EntryKind::File => {
                return match entry.patched {
                    true => self.patched_file(index, &entry, small, keep, (bytes, staged)),
                    false => self.small_file(index, &entry, small, keep, staged),
                };
            }
            EntryKind::Directory => {
                // Counted also where it is not made: the attributes come for each that was sent.
                self.run.directories_unset.fetch_add(1, Ordering::Relaxed);
                match keep && self.run.properties.directories {
                    true if self.run.leaves_absent(path) => Ok(Stored::Kept),
                    true => self.run.make_directory(path, entry.mtime).map(|()| Stored::Done),
                    false => Ok(Stored::Done),
                }
            }
            EntryKind::Symlink | EntryKind::HardLink | EntryKind::Special => {
                if entry.kind == EntryKind::HardLink && !self.run.driver.options.kept.hard_links {
                    return Err(ProtocolError::violation("the sender sent a hard link, and none are kept").into());
                }
                let told = ItemContent::of(entry.kind, told)?;
                if let ItemContent::Names(linked) = &told {
                    linked.names.iter().try_for_each(|name| self.run.expected.check(name))?;
                }
                if !keep {
                    return Ok(());
                }
                self.run.note_change(index, &entry, &small, &told, staged);
                if self.run.waits(staged) {
                    staged.waiting.push(WaitingItem::new(index, &small, told));
                    return Ok(());
                }
                stages.wait_briefly(Work::Create, || self.run.write_told(&small, &told))
            }
        };
        self.run.note_written(index, written, staged);
        Ok(())
    }

    /// Content of more than a slice is written as it comes, and removed again if it is not what it should be: a file of
    /// a bundle may have megabytes, and there may be a thousand streams.
    pub(super) fn small_file(
        &mut self,
        index: u32,
        entry: &EntryHeader,
        small: SmallFile<'_>,
        keep: bool,
        staged: &mut Staged,
    ) -> Result<(), StreamError> {
        let (run, size) = (self.run, entry.size);
        if keep {
            run.note_change(index, entry, &small, &ItemContent::Bytes(Vec::new()), staged);
        }
        // Of a store that keeps nothing no byte is handed over.
        let keeps = keep && run.properties.keeps;
        let mut begun = Ok(Begun::AtOnce);
        if keeps && size as usize > self.input.slice_bytes() {
            let begin = || run.destination.begin_small(&small, &run.writing, u64::from(size));
            begun = run.driver.stages.wait_briefly(Work::Create, begin);
        }
        let in_memory = keeps && matches!(begun, Ok(Begun::AtOnce));
        let mut hasher = BlockHasher::new(run.driver.options.digests, 0);
        let content = &mut self.scratch;
        content.clear();
        let is_measured = patch::chunk_bytes(size.into()).is_some();
        let mut receive = || {
            self.input.payload(u64::from(size), &mut |slice| {
                if keep {
                    run.driver.stages.work(Work::Hash, slice.len(), || hasher.update(slice));
                }
                if let Ok(Begun::Growing(growing)) = &mut begun {
                    run.driver.stages.wait(Work::Write, || growing.write(slice));
                } else if in_memory {
                    content.extend_from_slice(slice);
                }
                Ok::<(), StreamError>(())
            })
        };
        match is_measured {
            true => run.taking_over.arriving.measure(size.into(), receive)?,
            false => receive()?,
        }
        let mut trailer = [0; TRAILER_BYTES];
        self.input.meta(&mut trailer)?;
        let trailer = Trailer::decode(&trailer, run.driver.options.digests)?;
        if !keep {
            return Ok(());
        }
        // The sender could not read it, says why by itself, and may send it once more.
        if !trailer.whole {
            staged.exceptions.push((index, ItemResult::Dropped));
            return Ok(());
        }
        let ours = hasher.finish(true);
        if self.run.driver.options.digests.main.is_some() && ours.main != trailer.digest.main {
            staged.exceptions.push((index, ItemResult::Mismatch));
            return Ok(());
        }
        let content = &mut self.scratch;
        run.take_small(index, small, ours, begun, content, staged);
        Ok(())
    }
}

impl ReceiveRun {
    /// A small file has come whole: it is written, or waits to be written with others.
    pub(super) fn take_small(
        &self,
        index: u32,
        mut small: SmallFile<'_>,
        ours: BlockDigest,
        begun: Result<Begun, Failure>,
        content: &mut Vec<u8>,
        staged: &mut Staged,
    ) {
        let (run, keeps) = (self, self.properties.keeps);
        small.digests = ours.as_file(run.driver.options.digests);
        staged.changes.entry(index).and_modify(|change| change.digests = small.digests);
        small.read_back = run.driver.options.verify == Verify::Disk;
        if matches!(begun, Ok(Begun::AtOnce)) && keeps && run.waits(staged) {
            staged.waiting.push(WaitingItem::new(index, &small, ItemContent::Bytes(std::mem::take(content))));
            return;
        }
        let written = begun.and_then(|begun| match begun {
            Begun::Kept => Ok(Stored::Kept),
            Begun::Growing(growing) => run.driver.stages.wait_briefly(Work::Create, || growing.finish(&small)),
            Begun::AtOnce if !keeps => Ok(Stored::Done),
            Begun::AtOnce => run.driver.stages.wait_briefly(Work::Create, || run.write_small(&small, content)),
        });
        run.note_written(index, written, staged);
    }
}

/// An item of a bundle that has come whole, and that is written with others.
pub(super) struct WaitingItem {
    index: u32,
    path: Vec<u8>,
    attributes: Attributes,
    fingerprint: Option<Fingerprint>,
    digests: FileDigests,
    read_back: bool,
    content: ItemContent,
}

/// What there is to write of it.
pub(super) enum ItemContent {
    /// Of a file.
    Bytes(Vec<u8>),
    /// What a link says.
    Target(Vec<u8>),
    /// Names that the file has already.
    Names(LinkedNames),
    /// What it is, of something special.
    Special(SpecialFile),
}

impl ItemContent {
    /// What follows the path of an entry that has nothing else.
    fn of(kind: EntryKind, told: &[u8]) -> Result<Self, ProtocolError> {
        let nothing = || ProtocolError::violation("the sender sent something special that is nothing");
        Ok(match kind {
            EntryKind::HardLink => Self::Names(LinkedNames::decode(told)?),
            EntryKind::Special => Self::Special(SpecialFile::decode(told).ok_or_else(nothing)?),
            EntryKind::Symlink | EntryKind::File | EntryKind::Directory => Self::Target(told.to_vec()),
        })
    }
}

impl WaitingItem {
    fn new(index: u32, small: &SmallFile<'_>, content: ItemContent) -> Self {
        let SmallFile { path, attributes, fingerprint, digests, read_back } = small;
        let (fingerprint, digests, read_back) = (*fingerprint, *digests, *read_back);
        Self { index, path: path.to_vec(), attributes: attributes.clone(), fingerprint, digests, read_back, content }
    }

    fn as_small(&self) -> SmallFile<'_> {
        SmallFile {
            path: &self.path,
            attributes: self.attributes.clone(),
            fingerprint: self.fingerprint,
            digests: self.digests,
            read_back: self.read_back,
        }
    }
}

pub(super) fn check_bundle(bytes: u64) -> Result<(), ProtocolError> {
    let message = "the sender sent a bundle of more bytes than the protocol allows";
    if bytes > limits::BUNDLE_BYTES { Err(ProtocolError::violation(message)) } else { Ok(()) }
}

/// The time of a larger file is that of its bytes.
const MEASURED_BYTES: usize = 64 << 10;

impl ReceiveRun {
    /// Looks at what an item of a bundle will change, before anything of it is written.
    pub(super) fn note_change(
        &self,
        index: u32,
        entry: &EntryHeader,
        small: &SmallFile<'_>,
        content: &ItemContent,
        staged: &mut Staged,
    ) {
        let Some(changes) = &self.changes else { return };
        let (kind, size, leads_to) = match content {
            ItemContent::Bytes(_) => (ItemKind::File, entry.size.into(), Vec::new()),
            ItemContent::Target(target) => (ItemKind::Symlink, 0, target.clone()),
            ItemContent::Special(special) => (ItemKind::Special, 0, special.encode().to_vec()),
            ItemContent::Names(linked) => (ItemKind::File, 0, linked.names[0].clone()),
        };
        let (mtime, hard_link) = (Some(entry.mtime), None);
        let others = small.attributes.others.clone();
        let item =
            AskedItem { path: small.path.to_vec(), kind, size, mtime, mode: entry.mode, others, leads_to, hard_link };
        let change = match content {
            ItemContent::Names(linked) => changes.of_further_name(&*self.destination, &item, linked),
            _ => changes.of_written(&*self.destination, &item),
        };
        staged.changes.insert(index, change);
    }

    fn make_directory(&self, path: &[u8], mtime: Time) -> Result<(), Failure> {
        self.changes.iter().for_each(|changes| changes.note_directory(&*self.destination, path));
        self.driver.stages.wait_briefly(Work::Create, || self.destination.make_directory(path))?;
        self.changes.iter().for_each(|changes| changes.directory_made(path, Some(mtime)));
        Ok(())
    }

    fn write_small(&self, small: &SmallFile<'_>, content: &[u8]) -> Result<Stored, Failure> {
        let write = || self.destination.write_small(small, &self.writing, content);
        let is_measured = content.len() <= MEASURED_BYTES;
        self.creating.call(|job| if is_measured { job.measure(|_| write()) } else { write() })
    }

    /// Counts an item of a kind that the store does not have.
    pub(super) fn leave_out(&self, path: &[u8], kind: AttributeKind) {
        UnkeptAttributes::note(&mut lock(&self.left_out), || path.to_vec(), [kind]);
    }

    /// Writes an item by what is told of it.
    fn write_told(&self, small: &SmallFile<'_>, content: &ItemContent) -> Result<Stored, Failure> {
        let Self { destination, writing, properties, .. } = self;
        let leave_out = |kind| {
            self.leave_out(small.path, kind);
            Ok(Stored::Kept)
        };
        match content {
            ItemContent::Bytes(content) => self.write_small(small, content),
            ItemContent::Target(_) if properties.keeps && !properties.links => leave_out(AttributeKind::SYMBOLIC_LINK),
            ItemContent::Target(target) => self.creating.call(|_| destination.write_link(small, writing, target)),
            ItemContent::Special(special) => {
                let special = *special;
                if properties.keeps && !self.giving.kept().has_special(Some(special)) {
                    return leave_out(AttributeKind::SPECIAL_FILE);
                }
                self.creating.call(|_| destination.write_special(small, writing, special))
            }
            ItemContent::Names(linked) => {
                let small = SmallFile { attributes: small.attributes.clone(), digests: linked.digests, ..*small };
                let write = || destination.write_hard_link(&small, writing, (&linked.names, linked.size));
                let stored = self.creating.call(|_| write())?;
                // Of what a reference directory has there may be no name.
                let stands = || {
                    let names: Vec<&[u8]> = linked.names.iter().map(Vec::as_slice).collect();
                    destination.standing(&names, None).into_iter().any(|there| matches!(there, Ok(Some(_))))
                };
                if matches!(stored, Stored::Unlinked) && stands() {
                    self.leave_out(small.path, AttributeKind::HARD_LINK);
                }
                Ok(stored)
            }
        }
    }

    /// Whether the next item of a bundle is written with others. Where calls are found to be slow in its midst, those
    /// that still come are.
    fn waits(&self, staged: &Staged) -> bool {
        !staged.waiting.is_empty() || self.creating.are_several()
    }

    /// Writes what waits of a bundle, by several threads.
    fn write_waiting(&self, staged: &mut Staged) {
        let waiting = std::mem::take(&mut staged.waiting);
        let write = |one: &WaitingItem| self.write_told(&one.as_small(), &one.content);
        if waiting.is_empty() {
            return;
        }
        let written = self.driver.stages.wait(Work::Create, || self.creating.each(&waiting, write));
        waiting.iter().zip(written).for_each(|(one, written)| self.note_written(one.index, written, staged));
    }

    /// Notes what became of an item, where there is something left to do or to say.
    fn note_written(&self, index: u32, written: Result<Stored, Failure>, staged: &mut Staged) {
        match written {
            Ok(Stored::Hidden(entry)) => staged.entries.push((index, entry)),
            Ok(Stored::Done) => {}
            Ok(Stored::Same) => staged.exceptions.push((index, ItemResult::Same)),
            Ok(Stored::Kept) => staged.exceptions.push((index, ItemResult::Kept)),
            // It comes by itself.
            Ok(Stored::Unlinked) => {
                let why = failure(ErrorCode::Unsupported, Side::Destination, "no hard link can be made of it");
                staged.exceptions.push((index, ItemResult::Again(why)));
            }
            Err(why) => staged.exceptions.push((index, ItemResult::Failed(why))),
        }
    }
}
