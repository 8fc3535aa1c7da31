//! Destinations over others: their parts, entries and growing files.

use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_core::attributes::Time;
use carrack_core::attributes::{Attributes, Lacks, OtherAttributes};
use carrack_core::digest::{BlockDigest, FileDigests};
use carrack_core::failure::Failure;
use carrack_core::report::{DestinationCounts, ItemKind, Unfinished, Unsynced};
use carrack_core::request::Digests;
use carrack_core::special::SpecialFile;
use carrack_core::wire::patch::TakenBlock;
use carrack_sys::bulk::Pipe;

use super::{Act, Call, Late, Shared};
use crate::storage::properties::{Properties, WriteOptions};
use crate::storage::workers::MetadataWorkers;
use crate::storage::write::{
    Begun, Destination, EarlierItem, Entry, Growing, NewDirectory, NewFile, Opening, Part, Referred, SmallFile,
    StandingItem, Stored, UnkeptSoFar,
};
use crate::sync::lock;

pub(super) struct OverDestination {
    pub(super) inner: Box<dyn Destination>,
    pub(super) hook: Shared,
    pub(super) late: Late,
}

impl OverDestination {
    fn part(&self, inner: Arc<dyn Part>) -> Arc<dyn Part> {
        Arc::new(OverPart { inner, hook: Arc::clone(&self.hook), late: Arc::clone(&self.late) })
    }

    fn stored(&self, stored: Stored) -> Stored {
        match stored {
            Stored::Hidden(inner) => Stored::Hidden(over_entry(inner, &self.hook, &self.late)),
            other => other,
        }
    }
}

fn over_entry(inner: Box<dyn Entry>, hook: &Shared, late: &Late) -> Box<dyn Entry> {
    let directory = inner.directory().to_vec();
    Box::new(OverEntry { directory, inner: Mutex::new(Some(inner)), hook: Arc::clone(hook), late: Arc::clone(late) })
}

fn bare<'a>(small: &SmallFile<'a>) -> SmallFile<'a> {
    let SmallFile { path, fingerprint, digests, read_back, .. } = *small;
    SmallFile { path, attributes: Attributes::default(), fingerprint, digests, read_back }
}

impl Destination for OverDestination {
    fn properties(&self) -> Properties {
        self.inner.properties()
    }

    fn known_count(&self, wanted: Digests) -> u64 {
        match self.hook.before(Call::KnownCount, 0) {
            Act::Go | Act::Fail(_) => self.inner.known_count(wanted),
            _ => 0,
        }
    }

    fn known(&self, item: &EarlierItem<'_>, options: &WriteOptions, stop: &dyn Fn() -> bool) -> Option<FileDigests> {
        match self.hook.before(Call::Known, 0) {
            Act::Go => self.inner.known(item, options, stop),
            Act::Fail(_) => None,
            _ => Some(FileDigests::default()),
        }
    }

    fn standing(
        &self,
        paths: &[&[u8]],
        workers: Option<&MetadataWorkers>,
    ) -> Vec<Result<Option<StandingItem>, Failure>> {
        match self.hook.before(Call::Standing, 0) {
            Act::Go => self.inner.standing(paths, workers),
            Act::Fail(why) => paths.iter().map(|_| Err(why.clone())).collect(),
            _ => paths.iter().map(|_| Ok(None)).collect(),
        }
    }

    fn standing_directory(&self, path: &[u8]) -> Result<Option<StandingItem>, Failure> {
        match self.hook.before(Call::Standing, 0) {
            Act::Go => self.inner.standing_directory(path),
            Act::Fail(why) => Err(why),
            _ => Ok(None),
        }
    }

    fn lacks(&self, path: &[u8], wanted: &OtherAttributes) -> Lacks {
        match self.hook.before(Call::Standing, 0) {
            Act::Go => self.inner.lacks(path, wanted),
            _ => Lacks::default(),
        }
    }

    fn first_bytes(&self, path: &[u8], most: u64) -> Result<Option<Vec<u8>>, Failure> {
        match self.hook.before(Call::FirstBytes, 0) {
            Act::Go => self.inner.first_bytes(path, most),
            Act::Fail(why) => Err(why),
            _ => Ok(None),
        }
    }

    fn content(
        &self,
        path: &[u8],
        threads: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<[u8; 32]>, Failure> {
        match self.hook.before(Call::Content, 0) {
            Act::Go => self.inner.content(path, threads, stop),
            Act::Fail(why) => Err(why),
            _ => Ok(None),
        }
    }

    fn set_attributes(&self, path: &[u8], attributes: &Attributes, of: Option<(u64, u64)>) -> Result<bool, Failure> {
        match self.hook.before(Call::SetAttributes, 0) {
            Act::Go => self.inner.set_attributes(path, attributes, of),
            Act::Fail(why) => Err(why),
            _ => Ok(true),
        }
    }

    fn note_unkept(&self, path: &[u8], attributes: &Attributes) {
        self.inner.note_unkept(path, attributes);
    }

    fn is_link_to(&self, path: &[u8], target: &[u8]) -> bool {
        self.inner.is_link_to(path, target)
    }

    fn list(&self, directory: &[u8], each: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, Failure> {
        match self.hook.before(Call::List, 0) {
            Act::Go => self.inner.list(directory, each),
            Act::Fail(why) => Err(why),
            _ => Ok(true),
        }
    }

    fn folds_names(&self, directory: &[u8]) -> bool {
        self.inner.folds_names(directory)
    }

    fn folds_case(&self) -> bool {
        self.inner.folds_case()
    }

    fn claim(&self, path: &[u8], file: (u64, u64)) -> bool {
        self.inner.claim(path, file)
    }

    fn delete(&self, path: &[u8], kind: ItemKind) -> Result<(), Failure> {
        match self.hook.before(Call::Delete, 0) {
            Act::Go => self.inner.delete(path, kind),
            Act::Fail(why) => Err(why),
            _ => Ok(()),
        }
    }

    fn forget_name(&self, path: &[u8], file: (u64, u64)) -> Result<bool, Failure> {
        match self.hook.before(Call::Delete, 0) {
            Act::Go => self.inner.forget_name(path, file),
            Act::Fail(why) => Err(why),
            _ => Ok(true),
        }
    }

    fn read_rules(&self, path: &[u8], most: usize) -> Result<Option<Vec<u8>>, Failure> {
        self.inner.read_rules(path, most)
    }

    fn scratch(&self) -> Result<File, Failure> {
        self.inner.scratch()
    }

    fn begin(&self, file: &NewFile<'_>, options: &WriteOptions, believe: bool) -> Result<Opening, Failure> {
        let opened = match self.hook.before(Call::Begin, 0) {
            Act::Go => self.inner.begin(file, options, believe)?,
            Act::Fail(why) => return Err(why),
            Act::Bare => {
                let file = NewFile { attributes: Attributes::default(), ..file.clone() };
                self.inner.begin(&file, options, believe)?
            }
            _ => return Ok(Opening::Present(FileDigests::default())),
        };
        Ok(match opened {
            Opening::Fresh(part) => Opening::Fresh(self.part(part)),
            Opening::Resumed { part, held, doubtful, standing } => {
                Opening::Resumed { part: self.part(part), held, doubtful, standing }
            }
            other => other,
        })
    }

    fn write_small(&self, small: &SmallFile<'_>, options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure> {
        let stored = match self.hook.before(Call::WriteSmall, content.len() as u64) {
            Act::Go => self.inner.write_small(small, options, content),
            Act::Fail(why) => Err(why),
            Act::Half => self.inner.write_small(small, options, &content[..content.len() / 2]),
            Act::Bare => self.inner.write_small(&bare(small), options, content),
            _ => Ok(Stored::Done),
        };
        stored.map(|stored| self.stored(stored))
    }

    fn begin_small(&self, small: &SmallFile<'_>, options: &WriteOptions, size: u64) -> Result<Begun, Failure> {
        match self.hook.before(Call::BeginSmall, 0) {
            Act::Go => Ok(match self.inner.begin_small(small, options, size)? {
                Begun::Growing(inner) => {
                    let (hook, late) = (Arc::clone(&self.hook), Arc::clone(&self.late));
                    Begun::Growing(Box::new(OverGrowing { inner, hook, late }))
                }
                other => other,
            }),
            Act::Fail(why) => Err(why),
            _ => Ok(Begun::Kept),
        }
    }

    fn write_link(&self, small: &SmallFile<'_>, options: &WriteOptions, target: &[u8]) -> Result<Stored, Failure> {
        let stored = match self.hook.before(Call::WriteLink, 0) {
            Act::Go => self.inner.write_link(small, options, target),
            Act::Fail(why) => Err(why),
            _ => Ok(Stored::Done),
        };
        stored.map(|stored| self.stored(stored))
    }

    fn write_special(
        &self,
        small: &SmallFile<'_>,
        options: &WriteOptions,
        special: SpecialFile,
    ) -> Result<Stored, Failure> {
        let stored = match self.hook.before(Call::WriteLink, 0) {
            Act::Go => self.inner.write_special(small, options, special),
            Act::Fail(why) => Err(why),
            _ => Ok(Stored::Done),
        };
        stored.map(|stored| self.stored(stored))
    }

    fn write_hard_link(
        &self,
        small: &SmallFile<'_>,
        options: &WriteOptions,
        names: (&[Vec<u8>], Option<u64>),
    ) -> Result<Stored, Failure> {
        let stored = match self.hook.before(Call::WriteLink, 0) {
            Act::Go => self.inner.write_hard_link(small, options, names),
            Act::Fail(why) => Err(why),
            _ => Ok(Stored::Done),
        };
        stored.map(|stored| self.stored(stored))
    }

    fn is_special(&self, path: &[u8], special: SpecialFile) -> bool {
        self.inner.is_special(path, special)
    }

    /// A link makes an entry, and moves no byte.
    fn write_referred(
        &self,
        referred: &Referred<'_>,
        options: &WriteOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Stored, Failure> {
        let bytes = if referred.as_link { 0 } else { referred.found.size };
        let stored = match self.hook.before(Call::WriteSmall, bytes) {
            Act::Go => self.inner.write_referred(referred, options, stop),
            Act::Fail(why) => Err(why),
            _ => Ok(Stored::Done),
        };
        stored.map(|stored| self.stored(stored))
    }

    fn kept_by_top(&self) -> Option<&Attributes> {
        self.inner.kept_by_top()
    }

    fn make_directory(&self, path: &[u8]) -> Result<(), Failure> {
        match self.hook.before(Call::MakeDirectory, 0) {
            Act::Go => self.inner.make_directory(path),
            Act::Fail(why) => Err(why),
            _ => Ok(()),
        }
    }

    fn sync_group(&self) -> Result<(), Failure> {
        match self.hook.before(Call::SyncGroup, 0) {
            Act::Go => self.inner.sync_group(),
            Act::Fail(why) => Err(why),
            _ => Ok(()),
        }
    }

    fn written_down(&self) {
        if let Act::Go | Act::Fail(_) = self.hook.before(Call::WrittenDown, 0) {
            self.inner.written_down();
        }
    }

    fn apply_directories(&self, list: &[NewDirectory]) -> Vec<(Vec<u8>, Failure)> {
        match self.hook.before(Call::ApplyDirectories, 0) {
            Act::Go => self.inner.apply_directories(list),
            Act::Fail(why) => list.iter().map(|one| (one.path.clone(), why.clone())).collect(),
            Act::Half => self.inner.apply_directories(&list[..list.len() / 2]),
            _ => Vec::new(),
        }
    }

    fn sync_all(&self) -> Result<bool, Failure> {
        match self.hook.before(Call::SyncAll, 0) {
            Act::Go => self.inner.sync_all(),
            Act::Fail(why) => Err(why),
            _ => Ok(true),
        }
    }

    fn stalled(&self, now: Instant) -> Vec<String> {
        self.inner.stalled(now)
    }

    fn close_in(&self, patience: Duration) {
        if let Act::Go | Act::Fail(_) = self.hook.before(Call::CloseIn, 0) {
            self.inner.close_in(patience);
        }
    }

    fn unkept(&self) -> UnkeptSoFar {
        match self.hook.before(Call::Unkept, 0) {
            Act::Go | Act::Fail(_) => self.inner.unkept(),
            _ => UnkeptSoFar::default(),
        }
    }

    fn unsynced(&self) -> Unsynced {
        self.inner.unsynced()
    }

    fn unfinished(&self) -> Unfinished {
        self.inner.unfinished()
    }

    fn counted(&self) -> DestinationCounts {
        self.inner.counted()
    }

    fn files_in_memory(&self) -> u64 {
        self.inner.files_in_memory()
    }

    fn finish(&self, whole: bool) {
        let late = std::mem::take(&mut *lock(&self.late));
        late.into_iter().for_each(|publish| publish());
        if let Act::Go | Act::Fail(_) = self.hook.before(Call::EndSession, 0) {
            self.inner.finish(whole);
        }
    }
}

struct OverPart {
    inner: Arc<dyn Part>,
    hook: Shared,
    late: Late,
}

impl OverPart {
    fn try_to(&self, call: Call, bytes: u64, go: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        match self.hook.before(call, bytes) {
            Act::Go => go(),
            Act::Fail(why) => Err(why),
            _ => Ok(()),
        }
    }
}

impl Part for OverPart {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        match self.hook.before(Call::Write, bytes.len() as u64) {
            Act::Go => self.inner.write(offset, bytes),
            Act::Fail(why) => Err(why),
            Act::Half => self.inner.write(offset, &bytes[..bytes.len() / 2]),
            _ => Ok(()),
        }
    }

    fn write_hole(&self, offset: u64, length: u64) -> Result<(), Failure> {
        self.try_to(Call::WriteHole, 0, || self.inner.write_hole(offset, length))
    }

    fn end_block(&self, offset: u64, length: u64) -> Result<(), Failure> {
        self.try_to(Call::EndBlock, 0, || self.inner.end_block(offset, length))
    }

    /// Never: all content passes through this process, where it is counted.
    fn splices(&self) -> bool {
        false
    }

    fn write_from(&self, offset: u64, pipe: &mut Pipe) -> Result<(), Failure> {
        self.inner.write_from(offset, pipe)
    }

    fn checkpoint(&self, blocks: &[(u64, BlockDigest)], read_back: bool) -> Result<Vec<u64>, Failure> {
        match self.hook.before(Call::Checkpoint, 0) {
            Act::Go => self.inner.checkpoint(blocks, read_back),
            Act::Fail(why) => Err(why),
            _ => Ok(Vec::new()),
        }
    }

    fn unclaim(&self, index: u64) {
        if let Act::Go | Act::Fail(_) = self.hook.before(Call::Unclaim, 0) {
            self.inner.unclaim(index);
        }
    }

    fn rehash(&self, doubtful: &[u64]) -> Vec<(u64, BlockDigest)> {
        match self.hook.before(Call::Rehash, 0) {
            Act::Go | Act::Fail(_) => self.inner.rehash(doubtful),
            _ => doubtful.iter().map(|&index| (index, BlockDigest::default())).collect(),
        }
    }

    fn take_over(&self, standing: &[u64]) -> Vec<TakenBlock> {
        let wrong = |&index: &u64| TakenBlock { index, digest: BlockDigest::default(), chunks: Vec::new() };
        match self.hook.before(Call::TakeOver, 0) {
            Act::Go => self.inner.take_over(standing),
            Act::Fail(_) => Vec::new(),
            _ => standing.iter().map(wrong).collect(),
        }
    }

    fn read(&self, offset: u64, slice: &mut [u8]) -> Result<usize, Failure> {
        match self.hook.before(Call::ReadPart, slice.len() as u64) {
            Act::Go => self.inner.read(offset, slice),
            Act::Fail(failure) => Err(failure),
            _ => {
                slice.fill(0xa5);
                Ok(slice.len())
            }
        }
    }

    fn share(&self, source: Option<&File>) -> Result<bool, Failure> {
        match self.hook.before(Call::Share, 0) {
            Act::Go => self.inner.share(source),
            Act::Fail(why) => Err(why),
            // It says that it has, and has not.
            _ => Ok(true),
        }
    }

    fn end_taking_over(&self) {
        self.inner.end_taking_over();
    }

    fn set_modified(&self, at: Time) {
        self.inner.set_modified(at);
    }

    fn finish(&self, size: u64) -> Result<(), Failure> {
        self.try_to(Call::Finish, 0, || self.inner.finish(size))
    }

    fn verify(&self, size: u64, expected: FileDigests) -> Result<(), Failure> {
        self.try_to(Call::Verify, 0, || self.inner.verify(size, expected))
    }

    fn publish(&self, digests: FileDigests) -> Result<bool, Failure> {
        match self.hook.before(Call::Publish, 0) {
            Act::Go => self.inner.publish(digests),
            Act::Fail(why) => Err(why),
            Act::Late => {
                let inner = Arc::clone(&self.inner);
                let publish = Box::new(move || drop(inner.publish(digests)));
                lock(&self.late).push(publish);
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn remove(&self) {
        if let Act::Go | Act::Fail(_) = self.hook.before(Call::Remove, 0) {
            self.inner.remove();
        }
    }

    fn leave(&self) {
        if let Act::Go | Act::Fail(_) = self.hook.before(Call::Leave, 0) {
            self.inner.leave();
        }
    }
}

struct OverEntry {
    directory: Vec<u8>,
    /// Until it gets its name late.
    inner: Mutex<Option<Box<dyn Entry>>>,
    hook: Shared,
    late: Late,
}

impl OverEntry {
    fn with<T>(&self, what: impl FnOnce(&dyn Entry) -> T, gone: T) -> T {
        lock(&self.inner).as_deref().map_or(gone, what)
    }
}

impl Entry for OverEntry {
    fn directory(&self) -> &[u8] {
        &self.directory
    }

    fn awaits_sync(&self) -> bool {
        match self.hook.before(Call::AwaitsSync, 0) {
            Act::Go | Act::Fail(_) => self.with(|entry| entry.awaits_sync(), false),
            _ => false,
        }
    }

    fn verify(&self) -> Result<(), Failure> {
        match self.hook.before(Call::VerifyEntry, 0) {
            Act::Go => self.with(|entry| entry.verify(), Ok(())),
            Act::Fail(why) => Err(why),
            _ => Ok(()),
        }
    }

    fn publish(&self) -> Result<bool, Failure> {
        match self.hook.before(Call::PublishEntry, 0) {
            Act::Go => self.with(|entry| entry.publish(), Ok(false)),
            Act::Fail(why) => Err(why),
            Act::Late => {
                if let Some(inner) = lock(&self.inner).take() {
                    let publish = Box::new(move || drop(inner.publish()));
                    lock(&self.late).push(publish);
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn remove(&self) {
        if let Act::Go | Act::Fail(_) = self.hook.before(Call::RemoveEntry, 0) {
            self.with(|entry| entry.remove(), ());
        }
    }
}

struct OverGrowing {
    inner: Box<dyn Growing>,
    hook: Shared,
    late: Late,
}

impl Growing for OverGrowing {
    fn write(&mut self, bytes: &[u8]) {
        match self.hook.before(Call::WriteGrowing, bytes.len() as u64) {
            Act::Go | Act::Fail(_) => self.inner.write(bytes),
            Act::Half => self.inner.write(&bytes[..bytes.len() / 2]),
            _ => {}
        }
    }

    fn finish(self: Box<Self>, small: &SmallFile<'_>) -> Result<Stored, Failure> {
        let Self { inner, hook, late } = *self;
        let stored = match hook.before(Call::FinishGrowing, 0) {
            Act::Go => inner.finish(small)?,
            Act::Fail(why) => return Err(why),
            Act::Bare => inner.finish(&bare(small))?,
            _ => Stored::Done,
        };
        Ok(match stored {
            Stored::Hidden(inner) => Stored::Hidden(over_entry(inner, &hook, &late)),
            other => other,
        })
    }
}
