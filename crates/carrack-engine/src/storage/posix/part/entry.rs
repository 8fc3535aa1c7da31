//! A small file or link that is whole and waits for its name, and the rules by which a name is given.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use carrack_core::attributes::{KeptAttributes, OtherAttributes, Time};
use carrack_core::path::{join, split_name};
use carrack_core::plan::compare::is_one_time;
use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, Reason, Side};
use carrack_core::request::{Durability, Existing};
use carrack_core::transfer::Fingerprint;
use carrack_core::transfer::marker::{Published, PublishedItem, published_key};
use carrack_core::unicode::fold_case;
use carrack_sys::dir::{Dir, Kind, Links};
use carrack_sys::{dir, file};

use super::{Shared, verify_stored};
use crate::error::{failure, io_failure};
use crate::storage::giving::MODE_MASK;
use crate::storage::posix::descriptors::patiently;
use crate::storage::posix::directories::{Names, OpenDir, is_stale, twin};
use crate::storage::posix::kinds::special_of;
use crate::storage::posix::names::PartName;
use crate::storage::posix::refusal::why_refused;
use crate::storage::posix::times::time_of;
use crate::storage::posix::unkept::ToKeep;
use crate::storage::write::NewFile;
use crate::sync::lock;

/// The name that something written will get.
pub struct PartEntry {
    pub(in crate::storage::posix) shared: Arc<Shared>,
    pub(in crate::storage::posix) parent: Vec<u8>,
    pub(in crate::storage::posix) part: PartName,
    pub(in crate::storage::posix) name: Vec<u8>,
    pub(in crate::storage::posix) source: EntrySource,
    /// What it is at the destination, once it is whole, and what only its extended attributes show.
    pub(in crate::storage::posix) stored: Mutex<Option<(dir::Stat, OtherAttributes)>>,
    /// What the receiver computed over what it wrote.
    pub(in crate::storage::posix) digests: FileDigests,
    /// A small file is to be read back before it gets its name.
    pub(in crate::storage::posix) read_back: bool,
    /// Its group has to be synced before it gets its name: it was not synced by itself.
    pub(in crate::storage::posix) awaits_sync: bool,
    /// What is to become of an item that stands there when it gets its name.
    pub(in crate::storage::posix) existing: Existing,
    /// It has its name already, and is written over where it stands.
    pub(in crate::storage::posix) in_place: bool,
    /// It is a further name of the file that has this one.
    pub(in crate::storage::posix) first_name: Option<Vec<u8>>,
}

/// What the source of an item is.
#[derive(Clone)]
pub(in crate::storage::posix) struct EntrySource {
    pub kind: ItemKind,
    pub size: u64,
    pub mtime: Option<Time>,
    /// Permission bits, where they are to be set and are known.
    pub mode: Option<u32>,
    /// Attributes of further kinds.
    pub others: OtherAttributes,
    /// What a later session knows it by.
    pub fingerprint: Option<Fingerprint>,
}

impl EntrySource {
    /// Of a large file of so many bytes.
    pub fn of_large(file: &NewFile<'_>, size: u64) -> Self {
        Self {
            kind: ItemKind::File,
            size,
            mtime: file.attributes.mtime,
            mode: Some(file.attributes.mode & MODE_MASK),
            others: file.attributes.others.clone(),
            fingerprint: file.fingerprint,
        }
    }
}

impl PartEntry {
    /// Whether its group has to be synced before it may get its name.
    pub fn awaits_sync(&self) -> bool {
        self.awaits_sync
    }

    /// The directory, below the destination, where it gets its name.
    pub fn directory(&self) -> &[u8] {
        &self.parent
    }

    fn path(&self) -> Vec<u8> {
        join(&self.parent, &self.name)
    }

    /// Looks at what has been written: what it will be known by.
    pub(in crate::storage::posix) fn look(&self, stat: dir::Stat, listed: OtherAttributes) {
        *lock(&self.stored) = Some((stat, listed));
    }

    /// Reads back what storage holds of a small file, past the cache, and compares. A link holds nothing to compare.
    ///
    /// # Errors
    /// With [`ErrorCode::DigestMismatch`] when storage gives back something else.
    pub fn verify(&self) -> Result<(), Failure> {
        if !self.read_back {
            return Ok(());
        }
        let open = |directory: &OpenDir| patiently(|| directory.dir.open_read(&self.part.name, Links::Refuse));
        let stored = self.shared.directories.within(&self.parent, "open to read back", open)?;
        if self.source.others.access_time().is_some() {
            file::keep_access_time(&stored);
        }
        verify_stored(&stored, self.source.size, self.digests)
    }

    /// Gives it its name; `false` when what has come to stand there is to be kept.
    ///
    /// # Errors
    /// Those of the system, something that is not replaced, and a name that is another item's of this copy. Without its
    /// name the part is removed.
    pub fn publish(&self) -> Result<bool, Failure> {
        self.publish_as(self.digests)
    }

    pub(super) fn publish_as(&self, digests: FileDigests) -> Result<bool, Failure> {
        let (stored, listed) = lock(&self.stored).clone().unzip();
        let named = self.rename(stored.as_ref());
        if !matches!(named, Ok(true)) {
            self.remove();
            return named;
        }
        if self.first_name.is_some() {
            // rename(2) of a name to another of the same file does nothing: somebody may have made that meanwhile.
            self.remove();
        }
        if let Some(stored) = &stored {
            let EntrySource { mode, mtime, others, .. } = &self.source;
            let wanted = ToKeep { mode: *mode, mtime: *mtime, others };
            self.shared.unkept.look(|| self.path(), &wanted, stored, &listed.unwrap_or_default());
        }
        self.shared.in_place.whole.fetch_add(self.in_place.into(), Ordering::Relaxed);
        self.shared.journal.iter().for_each(|journal| journal.is_whole(|| self.path()));
        if let Some(directory) = self.shared.directories.find(&self.parent) {
            self.shared.count_in_memory(self.source.kind, &directory.file_system.ground);
            self.write_down(directory, stored, digests);
        }
        let each = self.shared.durability == Durability::Each;
        let group = self.shared.durability == Durability::Group;
        let directories = &self.shared.directories;
        // Not being able to open a directory is no sync that has failed.
        let (alone, device, synced) = directories.within(&self.parent, "sync the directory", |directory| {
            let alone = each || (group && directory.file_system.syncs_alone());
            match if alone { directory.dir.sync() } else { Ok(()) } {
                Err(error) if is_stale(&error) => Err(error),
                synced => Ok((alone, directory.file_system.device, synced)),
            }
        })?;
        let failed = |error: io::Error| io_failure(Side::Destination, "sync the directory", &error);
        synced.map_err(failed).inspect_err(|why| directories.syncs.failed(why))?;
        if group && !alone {
            directories.syncs.named(device, &self.path());
        }
        Ok(true)
    }

    /// Has the marker tell of what has got its name: it need not be sent again for as long as its source and what
    /// stands there are what they are now.
    fn write_down(&self, directory: Arc<OpenDir>, written: Option<dir::Stat>, digests: FileDigests) {
        let EntrySource { kind, fingerprint, .. } = self.source;
        let (Some(journal), Some(source), Some(written)) = (&self.shared.journal, fingerprint, written) else { return };
        if kind == ItemKind::File && digests.main().is_none() {
            return;
        }
        // A further name moves the time of the last change of its file, which is known by its first name.
        let (path, directory) = match &self.first_name {
            None => (self.path(), Some(directory)),
            Some(first) => (first.clone(), self.shared.directories.find(split_name(first).0)),
        };
        // Looked at once more: a rename moves the time of the last change. Somebody may have put
        // something else there by now.
        let Some(directory) = directory else { return };
        let Ok(Some(stat)) = stat_entry(&directory.dir, split_name(&path).1) else { return };
        let known_by = |stat: &dir::Stat| (stat.device, stat.inode, stat.size, stat.mtime);
        if let Some(stored) =
            directory.file_system.ground.identity(&stat).filter(|_| known_by(&stat) == known_by(&written))
        {
            let item = PublishedItem { kind, path: &path, source, stored };
            journal.published(Published { key: published_key(&item), digests });
        }
    }

    /// What stands at the name is looked at again here: what was there when the copy of it began may
    /// have been a long time ago.
    fn rename(&self, stored: Option<&dir::Stat>) -> Result<bool, Failure> {
        let shared = &self.shared;
        shared.closing.check_open()?;
        // From looking at the name to having it: no other item of this copy may get it in between.
        let folds = shared.directories.get(&self.parent)?.folds();
        let mut published = folds.then(|| lock(&shared.published));
        if let Some(published) = &published {
            let there =
                shared.directories.within(&self.parent, "stat", |directory| stat_entry(&directory.dir, &self.name))?;
            check_twin(published, &self.path(), there)?;
        }
        if self.in_place {
            self.check_place(stored)?;
        }
        let is_named = self.in_place
            || shared.directories.within(&self.parent, RENAME, |directory| {
                rename_if_free(&directory.dir, &self.part.name, &self.name, self.existing)
            })?;
        if !is_named && !self.replace()? {
            return Ok(false);
        }
        if let (Some(published), Some(stored)) = (&mut published, stored) {
            published.insert((stored.device, stored.inode), self.path());
        }
        Ok(true)
    }

    /// Whether the name is still that of the file that was written over.
    fn check_place(&self, written: Option<&dir::Stat>) -> Result<(), Failure> {
        let directories = &self.shared.directories;
        let there = directories.within(&self.parent, "stat", |directory| stat_entry(&directory.dir, &self.name))?;
        let file = |stat: &dir::Stat| (stat.device, stat.inode);
        if there.as_ref().map(file) == written.map(file) {
            return Ok(());
        }
        let why = "somebody has put another file in its place while it was written";
        Err(failure(ErrorCode::InputOutput, Side::Destination, why))
    }

    /// Takes the place of what stands at the name, where that was asked for.
    fn replace(&self) -> Result<bool, Failure> {
        let shared = &self.shared;
        let directories = &shared.directories;
        let there = directories.within(&self.parent, "stat", |directory| stat_entry(&directory.dir, &self.name))?;
        let rules = (self.existing, shared.window_ns.load(Ordering::Relaxed));
        if !may_replace(there, self.source.mtime, rules, shared.giving().kept())? {
            return Ok(false);
        }
        let kept = if there.is_some() { shared.keep(&self.path())? } else { None };
        let mut held = None;
        let renamed = directories.within(&self.parent, RENAME, |directory| {
            held = shared.replaced.hold(&directory.file_system.ground, &directory.dir, &self.name, there);
            rename_over(&directory.dir, &self.part.name, &self.name)
                .map_err(|error| why_refused(&directory.dir, &self.name, error))
        });
        held.into_iter().for_each(|held| shared.replaced.close(held));
        if let (Err(_), Some(kept), Some(directory)) = (&renamed, kept, directories.find(&self.parent)) {
            kept.put_back(&directory.dir, &self.name);
        }
        match renamed {
            Err(refused) if refused.code == ErrorCode::AlreadyExists => {
                let why = "the file system cannot replace a file by renaming another, so the old one stays as it is";
                let refused = failure(ErrorCode::Unsupported, Side::Destination, why).during(RENAME);
                Err(refused.for_reason(Reason::InTheWay))
            }
            other => other.map(|()| true),
        }
    }

    /// Removes what was written.
    pub fn remove(&self) {
        if self.in_place {
            return;
        }
        // It may be gone already; there is nothing else to do about it.
        let _ = self.shared.directories.find(&self.parent).map(|directory| directory.dir.unlink(&self.part.name));
    }
}

/// Whether what stands at a name was put there under another one by this copy.
pub(in crate::storage::posix) fn check_twin(
    published: &Names,
    path: &[u8],
    there: Option<dir::Stat>,
) -> Result<(), Failure> {
    let Some(there) = there else { return Ok(()) };
    // A second hard link is a name of its own; a short form of a name is none.
    let is_ascii = |first: &[u8]| first.is_ascii() && path.is_ascii();
    let is_link = |first: &[u8]| there.links > 1 && is_ascii(first) && fold_case(first) != fold_case(path);
    let first = published.get(&(there.device, there.inode)).filter(|first| *first != path && !is_link(first));
    first.map_or(Ok(()), |first| Err(twin(path, first)))
}

/// An entry, if there is one.
pub(in crate::storage::posix) fn stat_entry(dir: &Dir, name: &[u8]) -> io::Result<Option<dir::Stat>> {
    match dir.stat_at(name) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

const RENAME: &str = "rename to its name";

/// Whether an item may take the place of what stands at its name: `false` when that is to be kept.
///
/// # Errors
/// What is there is nothing that is replaced.
pub(in crate::storage::posix) fn may_replace(
    there: Option<dir::Stat>,
    mtime: Option<Time>,
    (existing, window_ns): (Existing, u64),
    kept: KeptAttributes,
) -> Result<bool, Failure> {
    match there.map(|stat| stat.kind) {
        Some(Kind::Dir) => {
            let refused = failure(ErrorCode::IsADirectory, Side::Destination, "a directory stands there");
            return Err(refused.for_reason(Reason::InTheWay));
        }
        Some(Kind::File | Kind::Symlink) | None => {}
        // Where they are copied, they are replaced like all else.
        Some(_) if kept.has_special(there.and_then(|stat| special_of(&stat))) => {}
        Some(_) => {
            return Err(failure(
                ErrorCode::SpecialFile,
                Side::Destination,
                "a FIFO, socket or device stands there, and is not replaced",
            ));
        }
    }
    Ok(match (existing, there) {
        (Existing::Keep, Some(_)) | (Existing::Only, None) => false,
        (Existing::Older, Some(stat)) => {
            let there = Some(time_of(stat.mtime));
            mtime.is_none() || there <= mtime || is_one_time(there, mtime, window_ns)
        }
        _ => true,
    })
}

/// Renames to a name that nothing bears, in one step; `false` when something bears it, when nothing may come to be
/// where nothing is, or where the system has no such step.
fn rename_if_free(dir: &Dir, part: &[u8], name: &[u8], existing: Existing) -> io::Result<bool> {
    let renamed = match existing {
        Existing::Only => return Ok(false),
        // Whatever stands there is replaced but for what never is: a link first would only cost time.
        Existing::Replace => dir.rename_if_free(part, dir, name),
        Existing::Keep | Existing::Older => dir.rename_noreplace(part, dir, name),
    };
    match renamed {
        Ok(()) => Ok(true),
        // The last is what file systems without hard links answer, and those that refuse this very file a second name.
        Err(error) => match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => Ok(false),
            _ => Err(error),
        },
    }
}

/// Renames over what is there. Where the file system refuses that, the two are exchanged in one step, and the old one
/// goes; if it cannot do that either, nothing has happened: in no moment is the name without a whole file.
fn rename_over(dir: &Dir, part: &[u8], name: &[u8]) -> io::Result<()> {
    match dir.rename(part, dir, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.exchange(part, name).is_ok() => {
            // What the old file is called now is collected later, if it cannot be removed.
            let _ = dir.unlink(part);
            Ok(())
        }
        other => other,
    }
}
