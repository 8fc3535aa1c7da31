//! The reading half of the contract of a store: what is there, and its bytes. See [`super::store`] for the rules of all
//! methods.

use std::fs::File;
use std::io;
use std::time::Duration;

use carrack_core::attributes::{Attributes, AttributesTold, Time};
use carrack_core::backup::Backup;
use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::filter::{FilterSide, Filters, SourceLinks, leads_out};
use carrack_core::growing::GrowingLock;
use carrack_core::path::{above, join, split_name, within};
use carrack_core::report::ItemKind;
use carrack_core::selection::{Selected, Selection, place};
use carrack_core::transfer::{Fingerprint, ScannedItem};
use carrack_core::tuning::Tuning;

use crate::error::failure;
use crate::storage::workers::MetadataWorkers;

/// One source of a transfer, opened: where its items come from and where they go.
pub struct Root {
    /// The source that is read.
    pub source: Box<dyn Source>,
    /// Where it goes, relative to the destination; empty for the destination itself.
    pub target: Vec<u8>,
    /// For messages: the path as typed.
    pub typed: Vec<u8>,
}

impl Root {
    fn chosen<'a>(&'a self, number: u32, chosen: &WalkChoice<'a>) -> Walk<'a> {
        let WalkChoice { selection, filters, freshness, workers, folds_case, in_order, .. } = *chosen;
        Walk { number, target: &self.target, selection, filters, freshness, workers, folds_case, in_order }
    }

    /// What a link says that is copied.
    ///
    /// # Errors
    /// Those of reading it; one that leads out by now is not copied, where such are left out.
    pub fn link_target(&self, path: &[u8], links: SourceLinks) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
        let found = self.source.link_target(path)?;
        if links == SourceLinks::Safe && leads_out(&place(&self.target, path), &found.0) {
            return Err(failure(ErrorCode::SourceChanged, Side::Source, "leads out of what is copied by now"));
        }
        Ok(found)
    }

    /// Whether it has by now what goes to this path of the destination, and no rule leaves it out.
    pub fn has(&self, path: &[u8], chosen: &WalkChoice<'_>) -> bool {
        within(path, &self.target).is_some_and(|path| self.source.has(&self.chosen(0, chosen), path))
    }

    /// Walks it as source `number`, and hands everything that is selected, and the directories above it, to `each`,
    /// until that says to stop (`false`).
    pub fn walk(&self, number: u32, chosen: &WalkChoice<'_>, each: &mut dyn FnMut(Found) -> bool) {
        let walk = self.chosen(number, chosen);
        let filters = walk.filters;
        let covers = walk.covers(b"");
        let is_wanted = covers == Selected::Wanted || (covers == Selected::Above && self.source.is_directory());
        if !is_wanted || walk.hides(b"", self.source.is_directory()) {
            return;
        }
        if filters.is_none() && chosen.backup.is_none() {
            return self.source.walk(&walk, each);
        }
        let leads_out = |path: &[u8]| {
            let said = self.source.link_target(path);
            said.is_ok_and(|(said, _)| leads_out(&place(&self.target, path), &said))
        };
        let takes = |item: &ScannedItem| match (filters, item.kind) {
            (Some(filters), ItemKind::File) => filters.files.take(item.size, item.attributes.mtime),
            (Some(filters), ItemKind::Symlink) => Some(filters.links != SourceLinks::Safe || !leads_out(&item.path)),
            _ => Some(true),
        };
        let is_kept_name = |item: &ScannedItem| {
            let is_directory = item.kind == ItemKind::Directory;
            chosen.backup.is_some_and(|backup| backup.holds(&place(self.target.as_slice(), &item.path), is_directory))
        };
        let hides =
            |item: &ScannedItem| !self.source.filters() && walk.hides(&item.path, item.kind == ItemKind::Directory);
        self.source.walk(&walk, &mut |found| match found {
            Found::Item(item) if hides(&item) => true,
            Found::Failure(item, _) if hides(&item) => true,
            Found::Item(item) => each(match (takes(&item), is_kept_name(&item)) {
                (Some(true), false) => Found::Item(item),
                (Some(false), _) => Found::LeftOut(item),
                (Some(true), true) => {
                    let why = "old files are kept under such names at the destination: keep them in a directory of another \
                               name, or with another suffix";
                    Found::Failure(item, failure(ErrorCode::Unsupported, Side::Source, why))
                }
                (None, _) => {
                    let why = "nobody knows its size or its age, by which files are to be left out";
                    Found::Failure(item, failure(ErrorCode::Unsupported, Side::Source, why))
                }
            }),
            found => each(found),
        });
    }
}

/// What of sources is walked, and how.
#[derive(Clone, Copy)]
pub struct WalkChoice<'a> {
    /// The only items that are wanted; everything if there is none.
    pub selection: Option<&'a Selection>,
    /// What is left out.
    pub filters: Option<&'a Filters>,
    /// Where the destination keeps what it replaces, nothing goes.
    pub backup: Option<&'a Backup>,
    /// How old attributes may be.
    pub freshness: Freshness,
    /// Who looks at files, where that is slow; without them, the thread that walks.
    pub workers: Option<&'a MetadataWorkers>,
    /// Upper and lower case are one where it goes.
    pub folds_case: bool,
    /// Items come in the order of a comparison, where the source can tell them so.
    pub in_order: bool,
}

impl WalkChoice<'_> {
    /// Everything.
    pub fn all() -> Self {
        Self {
            selection: None,
            filters: None,
            backup: None,
            freshness: Freshness::Cached,
            workers: None,
            folds_case: false,
            in_order: false,
        }
    }
}

/// How a source is walked.
pub struct Walk<'a> {
    /// The number that its items bear.
    pub number: u32,
    /// Where the source goes, relative to the destination: a selection has paths of that.
    pub target: &'a [u8],
    /// The only items that are wanted; everything if there is none.
    pub selection: Option<&'a Selection>,
    /// What is left out.
    pub filters: Option<&'a Filters>,
    /// How old attributes may be.
    pub freshness: Freshness,
    /// Who looks at files, where that is slow; without them, the thread that walks.
    pub workers: Option<&'a MetadataWorkers>,
    /// Upper and lower case are one where it goes: of names in one directory that would become one, each is a failure.
    /// A source may leave that to the destination, which lets the second not replace the first.
    pub folds_case: bool,
    /// Items come in [the order of a comparison](carrack_core::plan::check::listing_order). Asked of a source that
    /// [says so](Source::walks_in_order) alone.
    pub in_order: bool,
}

impl Walk<'static> {
    /// Of everything, of a source that is the only one.
    pub fn plain(number: u32) -> Self {
        Self {
            number,
            target: b"",
            selection: None,
            filters: None,
            freshness: Freshness::Cached,
            workers: None,
            folds_case: false,
            in_order: false,
        }
    }
}

impl Walk<'_> {
    /// How a path of the source stands to what is selected, if anything is; and it has been found.
    pub fn covers(&self, path: &[u8]) -> Selected {
        let Some(selection) = self.selection else { return Selected::Wanted };
        let path = place(self.target, path);
        selection.found(&path);
        selection.covers(&path)
    }

    /// Whether a rule leaves a path of the source out, or a directory above it. Rules in files of the directories are
    /// not known here.
    pub fn hides(&self, path: &[u8], is_directory: bool) -> bool {
        let Some(filters) = self.filters else { return false };
        let (scope, path) = (filters.scope(FilterSide::Source), place(self.target, path));
        let hides_above = above(&path).any(|directory| !scope.takes(directory, true, false));
        hides_above || (!path.is_empty() && !scope.takes(&path, is_directory, false))
    }

    /// The same, of a store without directories: those above the path have been found, too.
    pub fn covers_without_directories(&self, path: &[u8]) -> Selected {
        for directory in above(path) {
            self.covers(directory);
        }
        self.covers(path)
    }

    /// An item of which nothing is known but its path and kind.
    pub fn item(&self, path: &[u8], kind: ItemKind) -> ScannedItem {
        ScannedItem::new(self.number, path.to_vec(), kind)
    }
}

/// What was selected and not found below a source's target: its place and why. What lies below two is the first's.
pub fn missing<'a>(roots: &'a [Root], selection: &'a Selection) -> impl Iterator<Item = Found> + 'a {
    selection.missing().filter_map(|path| {
        let (number, path) =
            roots.iter().enumerate().find_map(|(number, root)| Some((number, within(path, &root.target)?)))?;
        let item = Walk::plain(number as u32).item(path, ItemKind::File);
        let absent = failure(ErrorCode::NotFound, Side::Source, "is not there, and was selected");
        Some(Found::Failure(item, absent.for_reason(Reason::SelectedAbsent)))
    })
}

/// Where a walk takes attributes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// As this system has them, which on NFS, SMB and FUSE may be seconds old.
    Cached,
    /// From whoever stores them, which over a network takes a question for each item: where they say what need not be
    /// sent.
    Stored,
}

/// What a walk finds.
pub enum Found {
    /// An item to be copied.
    Item(ScannedItem),
    /// Something that could not be looked at: its place (kind and size are not known) and why.
    Failure(ScannedItem, Failure),
    /// A file that is left out by its size or age, or a link by where it leads. The source has its name.
    LeftOut(ScannedItem),
    /// A marker or part file of Carrack's own: left out.
    Own,
    /// Everything in a directory has been told: its items, failures, and what is left out. In a directory of which a
    /// source does not say so, a sync deletes nothing.
    Listed {
        /// Which of the sources.
        root: u32,
        /// Relative to the source; empty for itself.
        path: Vec<u8>,
        /// That is all that it has.
        complete: bool,
    },
}

/// What a source has under a path.
pub enum There {
    /// Nothing that is copied.
    Nothing,
    /// A directory, which has these attributes.
    Directory(Attributes),
    /// A file or a link: at this path, which is the one that was asked for or one of the directories above it.
    Other(Vec<u8>),
}

impl There {
    /// What an item that a walk has found says of what is under a path; `None` where it says nothing. Where directories
    /// are no items, a path that others are below is one.
    fn of(path: &[u8], item: &ScannedItem) -> Option<Self> {
        let is_below = |path: &[u8], top: &[u8]| within(path, top).is_some();
        match item.kind {
            ItemKind::Special => None,
            ItemKind::Directory if item.path == path => Some(Self::Directory(item.attributes.clone())),
            ItemKind::File | ItemKind::Symlink if is_below(path, &item.path) => Some(Self::Other(item.path.clone())),
            _ => is_below(&item.path, path).then(|| Self::Directory(Attributes::default())),
        }
    }
}

/// A place that items are read from.
pub trait Source: Send + Sync {
    /// Whether it is a directory, and its items have paths; else it is one item, and its path is empty.
    fn is_directory(&self) -> bool {
        false
    }

    /// Owners, groups and further attributes are told so from now on, told before anything else is asked. A source that
    /// has none does not tell any.
    fn tell_attributes(&mut self, _told: AttributesTold) {}

    /// What becomes of its links from now on, told before anything else is asked; `target` is where it goes, relative
    /// to the destination. What a followed link leads to is an item under the link's path, and all other methods find
    /// it there. No link is followed out of what the source's opener may read, whoever exchanges links meanwhile. One
    /// that leads there, to nothing, or to a directory that it stands in is a failure of that item, and its name counts
    /// as there. Whoever walks leaves out what [`SourceLinks::Safe`] leaves out. A source without such a method has no
    /// links, or copies each as one.
    fn follow(&mut self, _links: SourceLinks, _target: &[u8]) {}

    /// Whether it can be walked in order; else who walks puts its items in order.
    fn walks_in_order(&self) -> bool;

    /// Whether [`Source::walk`] leaves out what rules leave out, also those of files in its directories; else who walks
    /// does, and knows none of these.
    fn filters(&self) -> bool;

    /// Finds everything that is selected, streamed and in bounded memory: a directory before what is in it, each item
    /// once. An item that cannot be looked at is a failure of that item and ends nothing; `each` ends the walk by
    /// saying `false`. Whatever is left out must be told: as a failure, or as [`Found::Own`]. May be repeated, and may
    /// then find something else.
    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool);

    /// What stands now where an item was found that changed while it was read. May be repeated. Unless the source has
    /// a way of its own, it is walked: a source of many items should have one.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceVanished`] when nothing does, and [`ErrorCode::SourceChanged`] when it is something of
    /// another kind.
    fn look_again(&self, item: &ScannedItem) -> Result<ScannedItem, Failure> {
        let mut now = Err(failure(ErrorCode::SourceVanished, Side::Source, "vanished after it was listed"));
        let walk = Walk { freshness: Freshness::Stored, ..Walk::plain(item.root) };
        self.walk(&walk, &mut |found| {
            match found {
                Found::Item(found) if found.path == item.path => now = Ok(found),
                Found::Failure(found, why) if found.path == item.path => now = Err(why),
                _ => return true,
            }
            false
        });
        let is_same = |now: &ScannedItem| now.kind == item.kind;
        if now.as_ref().is_ok_and(|now| !is_same(now)) {
            return Err(failure(ErrorCode::SourceChanged, Side::Source, "is of another kind than when it was listed"));
        }
        now
    }

    /// Whether the lock file of an item stands beside it. May be repeated. As [`Source::look_again`], it walks unless
    /// the source has a way of its own.
    ///
    /// # Errors
    /// When it cannot be told.
    fn is_locked(&self, item: &ScannedItem, lock: GrowingLock) -> io::Result<bool> {
        let (parent, name) = split_name(&item.path);
        Ok(!name.is_empty() && !matches!(self.find(&join(parent, &lock.of(name)))?, There::Nothing))
    }

    /// What there is under a path. May be repeated. As [`Source::look_again`], it walks unless the source has a way of
    /// its own.
    ///
    /// # Errors
    /// When it cannot be told.
    fn find(&self, path: &[u8]) -> io::Result<There> {
        let mut there = Ok(There::Nothing);
        self.walk(&Walk::plain(0), &mut |found| {
            let now = match found {
                Found::Item(item) => There::of(path, &item).map(Ok),
                Found::Failure(item, why) if item.path == path => Some(Err(io::Error::other(why.message()))),
                Found::Failure(..) | Found::LeftOut(_) | Found::Own | Found::Listed { .. } => None,
            };
            match now {
                Some(now) => there = now,
                None => return true,
            }
            false
        });
        there
    }

    /// Whether there is something at a path that a walk would find now. What cannot be looked at may be there. May be
    /// repeated. As [`Source::find`], it walks unless the source has a way of its own.
    fn has(&self, walk: &Walk<'_>, path: &[u8]) -> bool {
        let (is_there, is_directory) = match self.find(path) {
            Ok(There::Nothing) => (false, false),
            Ok(There::Directory(_)) => (true, true),
            Ok(There::Other(other)) => (other == path, false),
            Err(_) => (true, false),
        };
        is_there && !walk.hides(path, is_directory)
    }

    /// What a link says, and what the link is known by that says it: one that is exchanged has another. A source
    /// without links leaves it out. May be repeated.
    ///
    /// # Errors
    /// Those of reading it.
    fn link_target(&self, _path: &[u8]) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
        Err(no_link())
    }

    /// Whether [`Source::remove`] deletes anything.
    fn removes(&self) -> bool {
        false
    }

    /// Deletes a file or link that a walk has found and that has been copied, if it still is what the walk found. May
    /// be repeated: what is not there is deleted.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when it is not; else why it stays.
    fn remove(&self, _item: &ScannedItem) -> Result<(), Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Source, "the store deletes nothing that has been copied"))
    }

    /// A file without a name, for a list that is too long to keep in memory.
    ///
    /// # Errors
    /// Those of the store; that it has none.
    fn scratch(&self) -> Result<File, Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Source, "the store has no room for a list"))
    }

    /// Opens an item for reading. Whatever was there when it was opened is what is read: another file that takes its
    /// name later is not. May be repeated.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceVanished`] when it is no more, and [`ErrorCode::SourceChanged`] when it is nothing to be
    /// read, or never rests.
    fn open(&self, item: &ScannedItem, options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure>;
}

/// How an item is opened.
pub struct OpenOptions<'a> {
    /// The knobs of the copy.
    pub tuning: &'a Tuning,
    /// It may grow from now on, and may have grown since it was listed: what was there then is what is copied.
    pub may_grow: bool,
    /// Lets so much time pass, for a source whose changes could not be seen yet, and says whether to go on.
    pub rest: &'a mut dyn FnMut(Duration) -> bool,
}

/// What an open item is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrownState {
    /// Bytes that it has.
    pub size: u64,
    /// When its content was written to last.
    pub modified: Time,
}

/// An item, opened for reading. Several threads may read different blocks at once.
pub trait Reader: Send + Sync {
    /// Bytes that it had when it was opened; `None` where there is nothing to ask, and the same bytes come again or
    /// never (made-up bytes, a pipe).
    fn size(&self) -> Option<u64> {
        None
    }

    /// Attributes as they are to be at the destination: those that it had when it was opened.
    fn attributes(&self, item: &ScannedItem) -> Attributes {
        item.attributes.clone()
    }

    /// What a later session knows it by, as it was when it was opened; `None` where nothing would tell that it has
    /// changed since.
    fn fingerprint(&self) -> Option<Fingerprint> {
        None
    }

    /// What this state of it is known by from now on: whoever opens it again and finds the same has the same content.
    /// Unlike a fingerprint it is there right after a change, too: it is opened when a further change would show.
    /// `None` where nothing would tell.
    fn state(&self) -> Option<Fingerprint> {
        self.fingerprint()
    }

    /// Whether it is still what was listed: by what it is known by, unless the source knows more. May be repeated.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when not.
    fn check_listed(&self, item: &ScannedItem) -> Result<(), Failure> {
        let both = item.fingerprint.zip(self.fingerprint());
        let changed = || failure(ErrorCode::SourceChanged, Side::Source, "changed after it was listed");
        both.is_none_or(|(listed, opened)| listed == opened).then_some(()).ok_or_else(changed)
    }

    /// Whether it is still what it was when it was opened: then all that was read since is of one and the same content.
    /// May be repeated.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when not.
    fn check_unchanged(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// What it is by now, past any cache. Only of what is opened so that [it may grow](OpenOptions::may_grow). May be
    /// repeated.
    ///
    /// # Errors
    /// Those of looking; that items of this source do not grow.
    fn look(&self) -> Result<GrownState, Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Source, "items of this store do not grow"))
    }

    /// The file itself, where the kernel may send it without this process: the fast path of copies without digests.
    fn file(&self) -> Option<&File> {
        None
    }

    /// Whether all of it is zeros, so that nothing has to be read.
    fn is_zeros(&self) -> bool {
        false
    }

    /// Whether a range is all hole. `false` is always true enough: it is read then.
    fn is_hole(&self, _offset: u64, _length: u64) -> bool {
        false
    }

    /// A range is about to be read. Where this says `true`, [`Reader::was_read`] is told when it has been. Both are
    /// hints: they save time or memory, and change nothing of what is read, before or after, in this range or another.
    fn will_read(&self, _offset: u64, _length: u64) -> bool {
        false
    }

    /// The range has been read and is not wanted any more. Read again all the same, it is what it was.
    fn was_read(&self, _offset: u64, _length: u64) {}

    /// Reads exactly `out.len()` bytes at `offset`. May be repeated, in any order.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when it ends before.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure>;

    /// Appends all of a small item to `out`, and tells how much it was. May be repeated.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when there is more than `most`.
    fn read_whole(&self, out: &mut Vec<u8>, most: usize) -> Result<usize, Failure> {
        let size = self.size().map_or(most, |size| usize::try_from(size).unwrap_or(usize::MAX));
        if size > most {
            return Err(grew_to(size as u64));
        }
        let start = out.len();
        out.resize(start + size, 0);
        self.read_at(0, &mut out[start..])?;
        Ok(size)
    }

    /// Reads the next bytes of an item without a size, which are at `offset`, up to `out.len()`; tells how many, and
    /// whether it ended. One thread at a time, from the beginning on. Waits for whoever writes them, until `is_over`.
    /// May not be repeated.
    ///
    /// # Errors
    /// Those of reading.
    fn read_next(&self, offset: u64, out: &mut [u8], _is_over: &dyn Fn() -> bool) -> Result<(usize, bool), Failure> {
        let left = self.size().unwrap_or(0).saturating_sub(offset);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        self.read_at(offset, &mut out[..length])?;
        Ok((length, length as u64 == left))
    }
}

/// Of a source that has no links.
pub(crate) fn no_link() -> Failure {
    failure(ErrorCode::Internal, Side::Source, "a link outside a directory")
}

/// A small file that has become too large to be read at once.
pub(crate) fn grew_to(size: u64) -> Failure {
    let message = format!("grew to {size} bytes after it was listed");
    failure(ErrorCode::SourceChanged, Side::Source, message)
}

/// A range that is being read: when this is dropped, it has been.
pub struct Reading<'a> {
    reader: Option<&'a dyn Reader>,
    offset: u64,
    length: u64,
}

impl<'a> Reading<'a> {
    /// A range of an item is about to be read.
    pub fn begin(reader: &'a dyn Reader, offset: u64, length: u64) -> Self {
        Self { reader: reader.will_read(offset, length).then_some(reader), offset, length }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if let Some(reader) = self.reader {
            reader.was_read(self.offset, self.length);
        }
    }
}
