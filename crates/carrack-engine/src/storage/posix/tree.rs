//! Files below a directory: where items go, what an earlier session left of them, and making all of it durable.
//!
//! How a receiving end uses it: [`Tree::new`] with a [`MarkerRequest`] finds what earlier sessions of the same copy
//! left, and [`Tree::known_count`] says whether anything is worth asking about. A large file is opened by
//! [`Tree::open_part`]; its blocks are written by [`PartFile::write`], and made to count by [`PartFile::checkpoint`]
//! every now and then; then [`PartFile::finish`], [`PartFile::publish`]. Small ones go through [`Tree::write_small`] or
//! [`Tree::write_link`], in groups: [`Tree::sync_group`], [`PartEntry::publish`] of each, [`Tree::written_down`]. When
//! all have their names, [`Tree::apply_directories`] and [`Tree::sync_all`]. At the end every part file that is still
//! open gets [`PartFile::leave`], and then [`Tree::finish`] says whether all is done.

mod further_names;
mod growing;
mod in_place;
mod known;
mod referred;
mod resume;
mod special;
mod standing;
mod taking_over;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use carrack_core::attributes::{Attributes, KeptAttributes, OtherAttributes, Time};
use carrack_core::backup::Backup;
use carrack_core::digest::BlockDigest;
use carrack_core::path::split_name;
use carrack_core::report::{DestinationCounts, ErrorCode, Failure, FileDigests, ItemKind, Side, Unfinished, Unsynced};
use carrack_core::request::{Durability, Existing};
use carrack_core::transfer::marker;
use carrack_core::tuning::Tuning;
use carrack_sys::dir::{Dir, Kind, Stat};
use carrack_sys::file;

use super::descriptors::patiently;
use super::directories::{AskShown, Clean, Directories, OpenDir};
use super::giving::Getting;
use super::identity::Ground;
use super::marker::Journal;
use super::names::{FileSystemTraits, PartName, PartNames, check_is_no_marker, check_names_change, new_tag};
use super::own_directories::let_owner_write;
use super::part::{
    EntrySource, OverTally, PartClaims, PartEntry, PartFile, Shared, Touched, check_twin, may_replace, stat_entry,
};
use super::past_cache::WriteBehind;
use super::refusal::why_not_made;
use super::replaced::Replaced;
use super::stale::Stale;
use super::syncs::{Doubt, Syncs};
use super::times::{time_of, times_to_set};
use super::turns::Turns;
use super::unkept::UnkeptTally;
use super::watch::Watch;
use crate::error::failure;
use crate::storage::giving::{Giving, MODE_MASK};
use crate::storage::properties::{MarkerRequest, WriteOptions};
use crate::storage::write::{Closing, NewDirectory, NewFile, SmallFile, UnkeptSoFar};
use crate::sync::lock;
pub use further_names::FurtherName;
pub use growing::GrowingFile;
pub use known::Standing;
pub use standing::{content_of, read_bounded, standing_item};

/// Files below a directory.
pub struct Tree {
    pub(super) shared: Arc<Shared>,
    names: Arc<PartNames>,
    /// Numbers of part files where no marker counts them.
    next_part: AtomicU64,
    /// What the path that was asked for leads to.
    look: Option<Look>,
    /// Files with several names keep their attributes: they may be those of other directories.
    keeps_shared: bool,
    /// What the directory itself keeps of its own.
    pub(super) top: Option<Attributes>,
}

type Look = Box<dyn Fn() -> io::Result<Stat> + Send + Sync>;

/// What opening a part file came to.
pub enum OpenedPart {
    /// The name stays as it is, as was asked for.
    Keep,
    /// A new one, with nothing in it.
    Fresh(PartFile),
    /// One that has blocks already.
    Resumed {
        /// The part file.
        part: PartFile,
        /// Blocks that are there, by index, and what they were when they were written.
        held: Vec<(u64, BlockDigest)>,
        /// Indexes of blocks that may be there: [`PartFile::rehash`] tells, in its own time.
        doubtful: Vec<u64>,
        /// Indexes of blocks that what stands at the name has, too: see [`PartFile::take_over`].
        standing: Range<u64>,
    },
    /// An earlier session has published it, and its source has not changed since. It may have to be read before it is
    /// believed: [`Standing::needs_reading`].
    Present(Standing),
}

impl Tree {
    /// Below this directory, which is itself the copy of one if `is_copied`: then its owner may write to it. Without a
    /// request, or where no marker can be kept, nothing can be resumed later.
    ///
    /// # Errors
    /// When the directory cannot be looked at.
    pub fn new(
        root: Dir,
        is_copied: bool,
        request: Option<MarkerRequest>,
        durability: Durability,
        tuning: &Arc<Tuning>,
    ) -> io::Result<Self> {
        // Before there is a marker in it.
        let had = if is_copied { let_owner_write(&root)? } else { None };
        check_names_change(&root, request.as_ref().map(|request| request.key)).inspect_err(|_| {
            let _ = had.map(|(mode, _)| root.set_own_mode(mode));
        })?;
        // Where a group's sync would prove nothing, files and names are synced one by one.
        let alone = durability == Durability::Group && !root.syncs_as_one();
        let durability = if alone { Durability::Each } else { durability };
        let journal = request.and_then(|request| Journal::open(&root, &request, durability, tuning)).map(Arc::new);
        let tag = journal.as_ref().map_or_else(new_tag, |journal| Ok(journal.tag()))?;
        let tree = Self::with(
            root,
            journal,
            tag,
            (durability, Arc::clone(tuning)),
            Box::new(move |dir| FileSystemTraits::ask(dir, tag)),
        )?;
        tree.shared.directories.root_had(had);
        Ok(tree)
    }

    /// Below this directory, where nothing is written.
    ///
    /// # Errors
    /// When the directory cannot be looked at.
    pub fn planned(root: Dir, tuning: &Arc<Tuning>) -> io::Result<Self> {
        // Whether names are one is found out by making some.
        Self::with(root, None, new_tag()?, (Durability::None, Arc::clone(tuning)), Box::new(|_| None))
    }

    fn with(
        root: Dir,
        journal: Option<Arc<Journal>>,
        tag: marker::Tag,
        (durability, tuning): (Durability, Arc<Tuning>),
        ask: AskShown,
    ) -> io::Result<Self> {
        let stale = journal.as_deref().and_then(Stale::of);
        let clean = stale.map(|stale| -> Clean { Box::new(move |directory| stale.remove_from(directory)) });
        let doubt = journal.clone().map(|journal| -> Doubt { Box::new(move || journal.doubt()) });
        let syncs = Syncs::new(doubt);
        let directories = Directories::new(root, durability == Durability::Each, (ask, clean), syncs)?;
        let names = Arc::new(PartNames::new(tag));
        Ok(Self {
            shared: Arc::new(Shared {
                directories,
                journal,
                durability,
                sync_each: AtomicBool::new(false),
                tuning,
                watch: Watch::default(),
                unkept: UnkeptTally::default(),
                published: Mutex::default(),
                in_memory: AtomicU64::new(0),
                replaced_same: AtomicU64::new(0),
                in_place: OverTally::default(),
                window_ns: AtomicU64::new(0),
                backup: OnceLock::new(),
                names: Arc::clone(&names),
                giving: OnceLock::new(),
                replaced: Replaced::default(),
                closing: Closing::default(),
            }),
            names,
            next_part: AtomicU64::new(1),
            look: None,
            keeps_shared: false,
            top: None,
        })
    }

    /// The same, with a way to look what its path leads to at the end: a destination that was renamed away has been
    /// written to, and is not what was asked for.
    #[must_use]
    pub fn found_by(self, look: impl Fn() -> io::Result<Stat> + Send + Sync + 'static) -> Self {
        Self { look: Some(Box::new(look)), ..self }
    }

    /// The same, where modification times that differ by no more, in nanoseconds, are one time.
    #[must_use]
    pub fn with_window(self, window_ns: u64) -> Self {
        self.shared.window_ns.store(window_ns, Ordering::Relaxed);
        self
    }

    /// The same, where files with several names are not given other attributes.
    #[must_use]
    pub fn keeping_shared(self, keeps_shared: bool) -> Self {
        Self { keeps_shared, ..self }
    }

    /// The same, where items get these attributes of their sources.
    #[must_use]
    pub fn giving(self, kept: KeptAttributes, fakes: bool) -> Self {
        let _ = self.shared.giving.set(Giving::new(kept, fakes));
        self
    }

    /// The same, where what is replaced or deleted is kept.
    #[must_use]
    pub fn keeping(self, backup: Option<Backup>) -> Self {
        if let Some(backup) = backup {
            let _ = self.shared.backup.set(backup);
        }
        self
    }

    fn check_path(&self) -> Result<(), Failure> {
        let Some(look) = &self.look else { return Ok(()) };
        if self.shared.directories.is_root(&look()) {
            return Ok(());
        }
        let message = "the destination's path no longer leads to the directory that was written to: it was renamed or replaced while the \
                       copy ran, and what was copied is wherever that directory is now";
        Err(failure(ErrorCode::NotFound, Side::Destination, message))
    }

    /// Whether there is a marker, in which it is worth writing down what has been made durable.
    pub fn keeps_marker(&self) -> bool {
        self.shared.journal.is_some()
    }

    /// What a user should know of calls to the file system that have not returned: each once. To be
    /// asked every now and then.
    pub fn stalled(&self, now: Instant) -> Vec<String> {
        self.shared.watch.stalled(now, self.shared.tuning.stalled_after)
    }

    /// Whether an item may go to its name: `false` when what is there is to be kept.
    fn may_write(
        &self,
        path: &[u8],
        (size, mtime): (Option<u64>, Option<Time>),
        existing: Existing,
    ) -> Result<bool, Failure> {
        let (parent, name) = split_name(path);
        check_is_no_marker(name)?;
        let look = |directory: &OpenDir| {
            // In a directory that this session made nothing is in the way, but what it put there itself.
            let empty = directory.fresh && !directory.folds();
            if empty { Ok(None) } else { stat_entry(&directory.dir, name) }
        };
        let there = self.shared.directories.within(parent, "stat", look)?;
        if there.is_some() && self.folds(parent)? {
            check_twin(&lock(&self.shared.published), path, there)?;
        }
        let is_same =
            |stat: Stat| stat.kind == Kind::File && Some(stat.size) == size && Some(time_of(stat.mtime)) == mtime;
        if there.is_some_and(is_same) {
            self.shared.replaced_same.fetch_add(1, Ordering::Relaxed);
        }
        let rules = (self.existing_at(path, existing), self.shared.window_ns.load(Ordering::Relaxed));
        may_replace(there, mtime, rules, self.shared.giving().kept())
    }

    /// Whether two different names can be one in a directory.
    fn folds(&self, directory: &[u8]) -> Result<bool, Failure> {
        Ok(self.shared.directories.get(directory)?.folds())
    }

    /// What is known of the file system of a directory.
    fn ground(&self, directory: &[u8]) -> Option<Ground> {
        self.shared.directories.find(directory).map(|found| found.file_system.ground)
    }

    fn entry(&self, path: &[u8], part: PartName, source: EntrySource, existing: Existing) -> PartEntry {
        let (parent, name) = split_name(path);
        PartEntry {
            shared: Arc::clone(&self.shared),
            parent: parent.to_vec(),
            part,
            name: name.to_vec(),
            source,
            stored: Mutex::new(None),
            digests: FileDigests::default(),
            read_back: false,
            awaits_sync: !self.syncs_each(),
            existing: self.existing_at(path, existing),
            in_place: false,
            first_name: None,
        }
    }

    /// Makes the part file of an offered file, or takes up the one that was left of it. What was left and does not fit
    /// is removed. Unless told to `believe`, what an earlier session published does not count.
    ///
    /// # Errors
    /// Why it cannot be written; nothing is left behind.
    pub fn open_part(&self, offer: &NewFile<'_>, options: &WriteOptions, believe: bool) -> Result<OpenedPart, Failure> {
        if let Some(fingerprint) = offer.fingerprint.filter(|_| believe && offer.size.is_some())
            && let Some(standing) = self.find_published(offer.path, ItemKind::File, fingerprint, options.digests)
            && let Some(standing) = self.serves(standing, offer, options)
        {
            return Ok(OpenedPart::Present(standing));
        }
        if !self.may_write(offer.path, (offer.size, offer.attributes.mtime), options.existing)? {
            return Ok(OpenedPart::Keep);
        }
        if let Some(opened) = self.open_in_place(offer, options)? {
            return Ok(opened);
        }
        if let Some(journal) = &self.shared.journal
            && let Some(left) = journal.take_left(offer.path)
        {
            match self.resume(journal, &left, offer, options) {
                Some(resumed) => return Ok(resumed),
                None => journal.remove_left(&left),
            }
        }
        let Some((file, standing)) = self.standing_file(offer, options) else {
            return self.make_part(offer, options, 0).map(OpenedPart::Fresh);
        };
        let options = &WriteOptions { shares: false, ..*options };
        let part = self.make_part(offer, options, standing.end * u64::from(options.block_bytes))?;
        let part = PartFile { standing: Mutex::new(Some(file)), ..part };
        Ok(OpenedPart::Resumed { part, held: Vec::new(), doubtful: Vec::new(), standing })
    }

    /// So many bytes are `filled` from what stands at the name, which may take no room of its own.
    fn make_part(&self, offer: &NewFile<'_>, options: &WriteOptions, filled: u64) -> Result<PartFile, Failure> {
        let (parent, name) = split_name(offer.path);
        let directories = &self.shared.directories;
        let own = || self.next_part.fetch_add(1, Ordering::Relaxed);
        let number = self.shared.journal.as_ref().map_or_else(own, |journal| journal.next_part());
        let part = self.names.numbered(name, number);
        let created = directories.within(parent, "create the part file", |directory| {
            PartNames::make(&directory.dir, &part, |name| directory.dir.create_new(name))
                .map_err(|error| why_not_made(&directory.dir, error))
        })?;
        // What the umask may have taken away a later session needs.
        let _ = file::set_mode(&created, 0o600);
        // Tells whoever collects leftovers that somebody is here; where there are no locks, its age has to tell.
        let _ = file::try_lock(&created);
        let size = offer.size.unwrap_or(0);
        let mut made = self.part_file(created, part, (offer, size), options, Touched::none());
        // What shares its blocks with another file needs no room of its own.
        if !options.shares
            && let Err(why) = made.reserve(filled)
        {
            made.remove();
            return Err(why);
        }
        // A source that ends when it ends cannot be taken up again.
        if let (Some(journal), Some(_)) = (&self.shared.journal, offer.size) {
            let written = journal.part(marker::PartRecord {
                number,
                path: offer.path.to_vec(),
                part_name: made.entry.part.name.clone(),
                size,
                block_bytes: options.block_bytes,
                digests: options.digests,
            });
            made.number = written.then_some(number);
        }
        Ok(made)
    }

    /// The part file of a large file of so many bytes, opened. The marker has no number of it yet, and claims nothing.
    fn part_file(
        &self,
        file: File,
        name: PartName,
        (offer, size): (&NewFile<'_>, u64),
        options: &WriteOptions,
        touched: Touched,
    ) -> PartFile {
        PartFile {
            file,
            entry: self.entry(offer.path, name, EntrySource::of_large(offer, size), options.existing),
            number: None,
            mode: offer.attributes.mode,
            path: Arc::from(offer.path),
            block_bytes: options.block_bytes,
            has_size: offer.size.is_some(),
            keeps_holes: offer.sparse,
            wanted: options.digests,
            claims: PartClaims::default(),
            void: AtomicBool::new(false),
            cache: WriteBehind::new(&self.shared.tuning, size),
            touched,
            turns: Turns::new(self.ground(split_name(offer.path).0).is_some_and(|ground| ground.is_in_memory())),
            standing: Mutex::default(),
            modified: OnceLock::new(),
            over: None,
        }
    }

    /// Writes a small file under a hidden name; `None` when what is there is to be kept.
    ///
    /// # Errors
    /// Those of the file system; nothing is left behind.
    pub fn write_small(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        content: &[u8],
    ) -> Result<Option<PartEntry>, Failure> {
        let Some(mut growing) = self.begin_small(small, existing, content.len() as u64)? else { return Ok(None) };
        growing.write(content);
        growing.finish(small).map(Some)
    }

    /// Makes a small file under a hidden name, to be written in pieces; `None` when what is there is to be kept.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn begin_small(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        size: u64,
    ) -> Result<Option<GrowingFile>, Failure> {
        self.begin_growing(small, existing, (size, Some(size)))
    }

    /// The same; a file of the size that is told and of the same time is sent although it is there.
    fn begin_growing(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        (size, told): (u64, Option<u64>),
    ) -> Result<Option<GrowingFile>, Failure> {
        if !self.may_write(small.path, (told, small.attributes.mtime), existing)? {
            return Ok(None);
        }
        let path = Arc::from(small.path);
        let _entered = self.shared.watch.enter("write", &path);
        let (parent, name) = split_name(small.path);
        let folds = self.folds(parent)?;
        let part = self.names.small(parent, name, folds);
        let (part_file, file_system, born) = self.shared.directories.within(parent, "create the part file", |at| {
            let make = |name: &[u8]| patiently(|| at.dir.create_new(name));
            let file = PartNames::make(&at.dir, &part, make).map_err(|error| why_not_made(&at.dir, error))?;
            Ok((file, Arc::clone(&at.file_system), at.born.clone()))
        })?;
        let mode = Some(small.attributes.mode & MODE_MASK);
        let (mtime, others) = (small.attributes.mtime, small.attributes.others.clone());
        let source = EntrySource { kind: ItemKind::File, size, mtime, mode, others, fingerprint: small.fingerprint };
        let made = Some((part_file, self.entry(small.path, part, source, existing)));
        Ok(Some(GrowingFile { made, file_system, born, folds, path, end: 0, failed: None }))
    }

    /// Makes a symbolic link under a hidden name; `None` when what is there is to be kept.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_link(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        target: &[u8],
    ) -> Result<Option<PartEntry>, Failure> {
        if !self.may_write(small.path, (None, small.attributes.mtime), existing)? {
            return Ok(None);
        }
        let (parent, name) = split_name(small.path);
        let part = self.names.small(parent, name, self.folds(parent)?);
        let stat = self.shared.directories.within(parent, "make the link", |directory| {
            PartNames::make(&directory.dir, &part, |name| directory.dir.symlink(target, name))?;
            // A link's own time is a nicety that some file systems do not have.
            let times = times_to_set(small.attributes.mtime, &small.attributes.others);
            let _ = times.map(|times| directory.dir.set_times(&part.name, times));
            let given =
                self.shared.giving().give_owners(Getting::Link(&directory.dir, &part.name), &small.attributes.others);
            given.inspect_err(|_| drop(directory.dir.unlink(&part.name)))?;
            directory.dir.stat_at(&part.name)
        })?;
        let (mtime, mode, others) = (small.attributes.mtime, None, small.attributes.others.clone());
        let source =
            EntrySource { kind: ItemKind::Symlink, size: 0, mtime, mode, others, fingerprint: small.fingerprint };
        let entry = self.entry(small.path, part, source, existing);
        entry.look(stat, OtherAttributes::default());
        Ok(Some(entry))
    }

    /// Makes a directory, or finds it.
    ///
    /// # Errors
    /// When something else stands there.
    pub fn make_directory(&self, path: &[u8]) -> Result<(), Failure> {
        self.shared.directories.get(path).map(|_| ())
    }

    /// Brings what small files of a group hold to stable storage, before they get their names; but of those that
    /// are synced by themselves.
    ///
    /// # Errors
    /// The system's: then nothing that was written since the last time may be relied on, and asking
    /// again would prove nothing.
    pub fn sync_group(&self) -> Result<(), Failure> {
        if self.shared.durability == Durability::None {
            return Ok(());
        }
        let start = Instant::now();
        let _entered = self.shared.watch.enter("sync", &Arc::from(&b""[..]));
        self.shared.directories.sync_root()?;
        if start.elapsed() > self.shared.tuning.sync_all_patience {
            self.shared.sync_each.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Brings everything that has its name to stable storage, on every file system that was written to, and tells
    /// whether that was done: with [`Durability::None`] it is not.
    ///
    /// # Errors
    /// As [`Tree::sync_group`]; and when the destination is no longer where it was.
    pub fn sync_all(&self) -> Result<bool, Failure> {
        self.check_path()?;
        if self.shared.durability == Durability::None {
            return Ok(false);
        }
        let _entered = self.shared.watch.enter("sync", &Arc::from(&b""[..]));
        self.shared.directories.sync_file_systems()
    }

    /// What may be gone because a sync has failed.
    pub fn unsynced(&self) -> Unsynced {
        self.shared.directories.syncs.unsynced()
    }

    /// Unfinished files of an earlier session that this one did not ask for.
    pub fn unfinished(&self) -> Unfinished {
        self.shared.journal.as_ref().map(|journal| journal.unfinished()).unwrap_or_default()
    }

    /// Whether what is written from now on needs no sync of its group: each is synced by itself, or none is to be.
    fn syncs_each(&self) -> bool {
        self.shared.durability != Durability::Group || self.shared.sync_each.load(Ordering::Relaxed)
    }

    /// Files that have got their names, or kept them, where nothing can be read back past the cache.
    pub fn files_in_memory(&self) -> u64 {
        self.shared.in_memory.load(Ordering::Relaxed)
    }

    /// What was counted of what was written.
    pub fn counted(&self) -> DestinationCounts {
        let files_in_place = self.shared.in_place.whole.load(Ordering::Relaxed);
        let files_replaced_same = self.shared.replaced_same.load(Ordering::Relaxed);
        DestinationCounts { files_replaced_same, files_in_place, ..DestinationCounts::default() }
    }

    /// To be called when a group has got its names: the marker then tells of them.
    pub fn written_down(&self) {
        if let Some(journal) = &self.shared.journal {
            journal.written_down();
        }
    }

    /// The session has failed. What is about to get its name still may for so long, and nothing after that: a sync that
    /// hangs may return when the next session has long given a newer file that name.
    pub fn close_in(&self, patience: Duration) {
        self.shared.closing.close_in(patience);
    }

    /// The end of the session, when every part file has been published, removed or left, and nobody writes or removes
    /// any more. `whole`: nothing is left to do, and nothing stays but what has its name.
    pub fn finish(&self, whole: bool) {
        if let Some(journal) = &self.shared.journal {
            journal.finish(whole);
        }
        self.shared.directories.close_up();
        self.shared.replaced.finish();
    }

    /// What file systems have not kept so far: permissions, and times.
    pub fn unkept(&self) -> UnkeptSoFar {
        self.shared.unkept.so_far()
    }

    /// Sets permissions and times, in this order, and tells what failed.
    pub fn apply_directories(&self, list: &[NewDirectory]) -> Vec<(Vec<u8>, Failure)> {
        let Shared { directories, unkept, .. } = &*self.shared;
        let giving = self.shared.giving();
        let set = |one: &NewDirectory| directories.set_attributes(one, giving, unkept).err();
        list.iter().filter_map(|one| Some((one.path.clone(), set(one)?))).collect()
    }
}

#[cfg(test)]
mod tests;
