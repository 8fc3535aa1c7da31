//! Files of a file system as a store: the contract's calls, carried out by [`Tree`] and [`PosixSource`].
//!
//! The order of calls that a crash can interrupt anywhere is [`Tree`]'s and [`PartFile`]'s; nothing is decided here.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::attributes::{Attributes, Lacks, OtherAttributes, Time};
use carrack_core::backup::Backup;
use carrack_core::digest::{BlockDigest, FileDigests};
use carrack_core::failure::{Failure, Side};
use carrack_core::report::{DestinationCounts, ItemKind, Unfinished, Unsynced};
use carrack_core::request::{Digests, Durability, Existing};
use carrack_core::special::SpecialFile;
use carrack_core::wire::patch::TakenBlock;
use carrack_sys::bulk::Pipe;
use carrack_sys::dir::Dir;

use super::kept_links::KeptLinks;
use super::kinds::kind_of;
use super::marker::made_top;
use super::part::{PartEntry, PartFile};
use super::place::Place;
use super::settle::SourceClocks;
use super::source::PosixSource;
use super::top::{self, CLOSED};
use super::tree::{FurtherName, GrowingFile, OpenedPart, Tree};
use super::unkept::ToKeep;
use crate::error::system_failure;
use crate::storage::null::Null;
use crate::storage::properties::{MarkerRequest, Properties, WriteOptions};
use crate::storage::read::Source;
use crate::storage::store::{Facts, Store, Wanted};
use crate::storage::workers::MetadataWorkers;
use crate::storage::write::{
    Begun, Destination, EarlierItem, Entry, Growing, NewDirectory, NewFile, Opening, Part, Referred, SmallFile,
    StandingItem, Stored, UnkeptSoFar,
};

/// Files of the file systems of this host.
#[derive(Clone)]
pub struct Posix {
    place: Place,
    clocks: Arc<SourceClocks>,
}

impl Posix {
    /// Those that paths of this place lead to.
    pub fn new(place: Place) -> Self {
        Self { place, clocks: Arc::default() }
    }
}

impl fmt::Debug for Posix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Posix")
    }
}

/// The store that paths of a place are in.
pub fn store_of(place: &Place) -> Arc<dyn Store> {
    match place {
        Place::Stored(_, store) => Arc::clone(store),
        files => Arc::new(Posix::new(files.clone())),
    }
}

impl Store for Posix {
    fn properties(&self) -> Properties {
        Properties::FILES
    }

    fn look(&self, path: &[u8]) -> Result<Option<Facts>, Failure> {
        let (stat, _) = self.place.look(path).map_err(|error| system_failure(Side::Source, &error).at_path(path))?;
        Ok(stat.map(|stat| Facts { kind: kind_of(stat.kind), size: stat.size }))
    }

    fn source(&self, path: &[u8]) -> Result<Box<dyn Source>, Failure> {
        let source = PosixSource::open(&self.place, path)?;
        Ok(Box::new(PosixSource { clocks: Arc::clone(&self.clocks), ..source }))
    }

    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure> {
        let Wanted { path, is_copied, marker, options, backup, keeps_links, keeps_shared, tuning } = wanted;
        let named = |error: io::Error| system_failure(Side::Destination, &error).at_path(*path);
        let durability = options.durability;
        if options.plan_only {
            return match self.place.dir(path) {
                // Everything is new there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Box::new(Null { takes: false })),
                opened => {
                    let directory = opened.map_err(named)?;
                    let through = keeps_links.then(|| directory.try_clone()).transpose().map_err(named)?;
                    let made = marker.is_some_and(|request| made_top(&directory, &request));
                    let top = top_of(&directory, *is_copied && !made, options).map_err(named)?;
                    let tree =
                        Tree::planned(directory, tuning).map_err(named)?.giving(options.kept, options.fakes).below(top);
                    Ok(writing_through(tree, through, *backup))
                }
            };
        }
        let mode = if *is_copied { CLOSED } else { 0o777 };
        let made = self.place.make_top(path, durability != Durability::None, mode);
        let (directory, is_new) = made.map_err(named)?;
        let top = top_of(&directory, *is_copied && !is_new, options).map_err(named)?;
        let marker = marker.map(|request| MarkerRequest { made_top: is_new && *is_copied, ..request });
        let through = keeps_links.then(|| directory.try_clone()).transpose().map_err(named)?;
        let tree = Tree::new(directory, *is_copied, marker, durability, tuning).map_err(named)?;
        let (place, path) = (self.place.clone(), path.to_vec());
        let tree = tree.with_window(options.window_ns).keeping(backup.cloned()).keeping_shared(*keeps_shared);
        let top = top.filter(|_| !tree.made_top());
        let tree = tree.giving(options.kept, options.fakes).below(top);
        Ok(writing_through(tree.found_by(move || place.stat(&path)), through, *backup))
    }
}

/// What a destination that is the copy of a directory keeps of its own.
fn top_of(top: &Dir, keeps: bool, options: &WriteOptions) -> io::Result<Option<Attributes>> {
    let keeps = keeps && !options.top_attributes;
    keeps.then(|| top::kept_by(top, options.kept, options.fakes)).transpose()
}

/// Through the links below `top` that lead to directories, where there is one.
fn writing_through(tree: Tree, top: Option<Dir>, backup: Option<&Backup>) -> Box<dyn Destination> {
    match top {
        Some(top) => Box::new(KeptLinks::new(tree, top, backup.cloned())),
        None => Box::new(tree),
    }
}

impl Destination for Tree {
    fn properties(&self) -> Properties {
        Properties { resumes: self.keeps_marker(), ..Properties::FILES }
    }

    fn known_count(&self, wanted: Digests) -> u64 {
        Tree::known_count(self, wanted)
    }

    fn known(&self, item: &EarlierItem<'_>, options: &WriteOptions, stop: &dyn Fn() -> bool) -> Option<FileDigests> {
        Tree::known(self, item, options, stop)
    }

    fn standing(
        &self,
        paths: &[&[u8]],
        workers: Option<&MetadataWorkers>,
    ) -> Vec<Result<Option<StandingItem>, Failure>> {
        Tree::standing(self, paths, workers)
    }

    fn lacks(&self, path: &[u8], wanted: &OtherAttributes) -> Lacks {
        Tree::lacks(self, path, wanted)
    }

    fn kept_by_top(&self) -> Option<&Attributes> {
        Tree::kept_by_top(self)
    }

    fn first_bytes(&self, path: &[u8], most: u64) -> Result<Option<Vec<u8>>, Failure> {
        Tree::first_bytes(self, path, most)
    }

    fn content(
        &self,
        path: &[u8],
        threads: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<[u8; 32]>, Failure> {
        Tree::content(self, path, threads, stop)
    }

    fn set_attributes(&self, path: &[u8], attributes: &Attributes, of: Option<(u64, u64)>) -> Result<bool, Failure> {
        Tree::set_attributes(self, path, attributes, of)
    }

    fn note_unkept(&self, path: &[u8], attributes: &Attributes) {
        Tree::note_unkept(self, path, attributes);
    }

    fn is_link_to(&self, path: &[u8], target: &[u8]) -> bool {
        Tree::is_link_to(self, path, target).unwrap_or(false)
    }

    fn list(&self, directory: &[u8], each: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, Failure> {
        Tree::list(self, directory, each)
    }

    fn folds_names(&self, directory: &[u8]) -> bool {
        Tree::folds_names(self, directory)
    }

    fn folds_case(&self) -> bool {
        Tree::folds_case(self)
    }

    fn claim(&self, path: &[u8], file: (u64, u64)) -> bool {
        Tree::claim(self, path, file)
    }

    fn delete(&self, path: &[u8], kind: ItemKind) -> Result<(), Failure> {
        Tree::delete(self, path, kind)
    }

    fn forget_name(&self, path: &[u8], file: (u64, u64)) -> Result<bool, Failure> {
        Tree::forget_name(self, path, file)
    }

    fn read_rules(&self, path: &[u8], most: usize) -> Result<Option<Vec<u8>>, Failure> {
        Tree::read_rules(self, path, most)
    }

    fn scratch(&self) -> Result<File, Failure> {
        Tree::scratch(self)
    }

    fn begin(&self, file: &NewFile<'_>, options: &WriteOptions, believe: bool) -> Result<Opening, Failure> {
        Ok(match self.open_part(file, options, believe)? {
            OpenedPart::Keep => Opening::Keep,
            OpenedPart::Fresh(part) => Opening::Fresh(Arc::new(part)),
            OpenedPart::Resumed { part, held, doubtful, standing } => {
                Opening::Resumed { part: Arc::new(part), held, doubtful, standing }
            }
            OpenedPart::Present(standing) if standing.needs_reading(options.verify) => Opening::MayBePresent,
            OpenedPart::Present(standing) => {
                let Attributes { mode, mtime, others } = &file.attributes;
                let wanted = ToKeep { mode: Some(*mode), mtime: *mtime, others };
                Opening::Present(self.believe(file.path, &standing, &wanted))
            }
        })
    }

    fn write_small(&self, small: &SmallFile<'_>, options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure> {
        Tree::write_small(self, small, options.existing, content).map(hidden)
    }

    fn begin_small(&self, small: &SmallFile<'_>, options: &WriteOptions, size: u64) -> Result<Begun, Failure> {
        let begun = Tree::begin_small(self, small, options.existing, size)?;
        Ok(begun.map_or(Begun::Kept, |growing| Begun::Growing(Box::new(growing))))
    }

    fn write_link(&self, small: &SmallFile<'_>, options: &WriteOptions, target: &[u8]) -> Result<Stored, Failure> {
        if options.compares && options.existing != Existing::Keep && Tree::is_link_to(self, small.path, target)? {
            self.set_attributes(small.path, &small.attributes, None)?;
            return Ok(Stored::Same);
        }
        // What a link says has no time: one is replaced whatever its age. And no directory is made for one.
        let existing = if options.existing == Existing::Older { Existing::Replace } else { options.existing };
        if existing == Existing::Only && !self.has_parent(small.path) {
            return Ok(Stored::Kept);
        }
        Tree::write_link(self, small, existing, target).map(hidden)
    }

    fn write_special(
        &self,
        small: &SmallFile<'_>,
        options: &WriteOptions,
        special: SpecialFile,
    ) -> Result<Stored, Failure> {
        if options.compares && options.existing != Existing::Keep && Tree::is_special(self, small.path, special)? {
            self.set_attributes(small.path, &small.attributes, None)?;
            return Ok(Stored::Same);
        }
        // As of a link, what it is has no time.
        let existing = if options.existing == Existing::Older { Existing::Replace } else { options.existing };
        if existing == Existing::Only && !self.has_parent(small.path) {
            return Ok(Stored::Kept);
        }
        Tree::write_special(self, small, existing, special).map(hidden)
    }

    fn write_hard_link(
        &self,
        small: &SmallFile<'_>,
        options: &WriteOptions,
        names: (&[Vec<u8>], Option<u64>),
    ) -> Result<Stored, Failure> {
        if options.existing == Existing::Only && !self.has_parent(small.path) {
            return Ok(Stored::Kept);
        }
        Ok(match Tree::write_hard_link(self, small, options.existing, names)? {
            FurtherName::Same => Stored::Same,
            FurtherName::Kept => Stored::Kept,
            FurtherName::Unlinked => Stored::Unlinked,
            FurtherName::Hidden(entry) => Stored::Hidden(entry),
        })
    }

    fn is_special(&self, path: &[u8], special: SpecialFile) -> bool {
        Tree::is_special(self, path, special).unwrap_or(false)
    }

    fn write_referred(
        &self,
        referred: &Referred<'_>,
        options: &WriteOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Stored, Failure> {
        Tree::write_referred(self, referred, options, stop).map(hidden)
    }

    fn make_directory(&self, path: &[u8]) -> Result<(), Failure> {
        Tree::make_directory(self, path)
    }

    fn sync_group(&self) -> Result<(), Failure> {
        Tree::sync_group(self)
    }

    fn written_down(&self) {
        Tree::written_down(self);
    }

    fn apply_directories(&self, list: &[NewDirectory]) -> Vec<(Vec<u8>, Failure)> {
        Tree::apply_directories(self, list)
    }

    fn sync_all(&self) -> Result<bool, Failure> {
        Tree::sync_all(self)
    }

    fn unfinished(&self) -> Unfinished {
        Self::unfinished(self)
    }

    fn unsynced(&self) -> Unsynced {
        Tree::unsynced(self)
    }

    fn stalled(&self, now: Instant) -> Vec<String> {
        Tree::stalled(self, now)
    }

    fn close_in(&self, patience: Duration) {
        Tree::close_in(self, patience);
    }

    fn unkept(&self) -> UnkeptSoFar {
        Tree::unkept(self)
    }

    fn counted(&self) -> DestinationCounts {
        Tree::counted(self)
    }

    fn files_in_memory(&self) -> u64 {
        Tree::files_in_memory(self)
    }

    fn finish(&self, whole: bool) {
        Tree::finish(self, whole);
    }
}

fn hidden(entry: Option<PartEntry>) -> Stored {
    entry.map_or(Stored::Kept, |entry| Stored::Hidden(Box::new(entry)))
}

impl Part for PartFile {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        PartFile::write(self, offset, bytes)
    }

    fn write_hole(&self, offset: u64, length: u64) -> Result<(), Failure> {
        PartFile::write_hole(self, offset, length)
    }

    fn end_block(&self, offset: u64, length: u64) -> Result<(), Failure> {
        self.written(offset, length);
        Ok(())
    }

    fn splices(&self) -> bool {
        true
    }

    fn write_from(&self, offset: u64, pipe: &mut Pipe) -> Result<(), Failure> {
        PartFile::write_from(self, offset, pipe)
    }

    fn checkpoint(&self, blocks: &[(u64, BlockDigest)], read_back: bool) -> Result<Vec<u64>, Failure> {
        PartFile::checkpoint(self, blocks, read_back)
    }

    fn unclaim(&self, index: u64) {
        PartFile::unclaim(self, index);
    }

    fn rehash(&self, doubtful: &[u64]) -> Vec<(u64, BlockDigest)> {
        PartFile::rehash(self, doubtful)
    }

    fn take_over(&self, standing: &[u64]) -> Vec<TakenBlock> {
        PartFile::take_over(self, standing)
    }

    fn read(&self, offset: u64, slice: &mut [u8]) -> Result<usize, Failure> {
        PartFile::read(self, offset, slice)
    }

    fn share(&self, source: Option<&File>) -> Result<bool, Failure> {
        PartFile::share(self, source)
    }

    fn end_taking_over(&self) {
        PartFile::end_taking_over(self);
    }

    fn set_modified(&self, at: Time) {
        PartFile::set_modified(self, at);
    }

    fn finish(&self, size: u64) -> Result<(), Failure> {
        PartFile::finish(self, size)
    }

    fn verify(&self, size: u64, expected: FileDigests) -> Result<(), Failure> {
        PartFile::verify(self, size, expected)
    }

    fn publish(&self, digests: FileDigests) -> Result<bool, Failure> {
        PartFile::publish(self, digests)
    }

    fn remove(&self) {
        PartFile::remove(self);
    }

    fn leave(&self) {
        PartFile::leave(self);
    }
}

impl Entry for PartEntry {
    fn awaits_sync(&self) -> bool {
        PartEntry::awaits_sync(self)
    }

    fn directory(&self) -> &[u8] {
        PartEntry::directory(self)
    }

    fn verify(&self) -> Result<(), Failure> {
        PartEntry::verify(self)
    }

    fn publish(&self) -> Result<bool, Failure> {
        PartEntry::publish(self)
    }

    fn remove(&self) {
        PartEntry::remove(self);
    }
}

impl Growing for GrowingFile {
    fn write(&mut self, bytes: &[u8]) {
        GrowingFile::write(self, bytes);
    }

    fn finish(self: Box<Self>, small: &SmallFile<'_>) -> Result<Stored, Failure> {
        GrowingFile::finish(*self, small).map(|entry| Stored::Hidden(Box::new(entry)))
    }
}
