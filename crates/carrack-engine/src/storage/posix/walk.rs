//! Walking a source: what there is, streamed, in bounded memory.
//!
//! A directory is read in batches, each sorted by inode so that a disk reads its inodes in order. Names of
//! subdirectories wait on a stack; nothing else is held. Symbolic links are never followed; a directory that stands
//! below itself, by a bind mount or by a broken file system, is not entered again.

use std::io;

use carrack_core::attributes::{Attributes, OtherAttributes};
use carrack_core::filter::{FilterSide, Scope};
use carrack_core::limits;
use carrack_core::path::{above, display_bytes, join, split_name};
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_core::selection::{Selected, place};
use carrack_core::transfer::{Fingerprint, ScannedItem};
use carrack_core::tuning::Tuning;
use carrack_sys::dir::{Dir, DirEntry, Kind, Links, Stat};
use carrack_sys::host::clock_seconds;

use super::descriptors::patiently;
use super::identity::Ground;
use super::names::is_own;
use super::source::{PosixSource, RootKind};
use super::times::time_of;
use super::tree::read_bounded;
use crate::error::{code_of, describe, failure, io_failure};
use crate::storage::read::{Found, Freshness, OpenOptions, Reader, Source, There, Walk};
use crate::storage::workers::MetadataWorkers;

/// A file of more bytes is offered by what the walk has found, so the walk lists its extended attributes. Those of a
/// smaller one are listed when it is open to be read, which is many times quicker.
const LISTED_ABOVE: u64 = 64 << 10;
const _: () = assert!(LISTED_ABOVE <= Tuning::DEFAULT.bundled_file_bytes_max);
/// Entries that are looked at before the first of them is handed on, where several are looked at together: where a call
/// may take long, and where several threads share short ones.
const LOOKED_AT_ONCE: usize = 256;
const LOOKED_AT_BRIEFLY: usize = 2048;

impl Freshness {
    fn stat(self, directory: &Dir, name: &[u8], links: Links) -> io::Result<Stat> {
        match self {
            Self::Cached => directory.stat(name, links),
            Self::Stored => directory.stat_uncached(name, links),
        }
    }
}

impl Source for PosixSource {
    fn is_directory(&self) -> bool {
        matches!(self.kind, RootKind::Directory(_))
    }

    fn filters(&self) -> bool {
        true
    }

    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool) {
        match &self.kind {
            RootKind::Directory(directory) => {
                let scope = walk.filters.map(|filters| filters.scope(FilterSide::Source));
                let stays = walk.filters.is_some_and(|filters| filters.one_file_system);
                let device = stays.then(|| directory.stat_self().ok()).flatten().map(|stat| stat.device);
                Walking { walk, root: directory, source: self, scope, device, each }.run();
            }
            RootKind::Entry(parent, name, links) => {
                let now = clock_seconds();
                let found = match walk.freshness.stat(parent, name, *links) {
                    Ok(stat) => {
                        let looked = LookedAt { now, others: named_alone(self, parent, name, *links, &stat), stat };
                        Found::Item(scanned(walk.number, Vec::new(), looked, ground_of(self, parent)))
                    }
                    Err(error) => Found::Failure(walk.item(b"", ItemKind::File), stat_failure(&error)),
                };
                each(found);
            }
        }
    }

    fn look_again(&self, item: &ScannedItem) -> Result<ScannedItem, Failure> {
        look_again(self, item)
    }

    fn find(&self, path: &[u8]) -> io::Result<There> {
        let RootKind::Directory(top) = &self.kind else { return Ok(There::Other(Vec::new())) };
        let found = if path.is_empty() { top.stat_self() } else { top.stat(path, Links::Refuse) };
        match found {
            Ok(stat) => Ok(there(path, &stat)),
            // Of a directory that may not be searched nothing is copied.
            Err(error) => match code_of(&error) {
                ErrorCode::NotFound | ErrorCode::PermissionDenied => Ok(There::Nothing),
                ErrorCode::NotADirectory | ErrorCode::SymlinkRefused => there_above(top, path),
                _ => Err(error),
            },
        }
    }

    fn has(&self, walk: &Walk<'_>, path: &[u8]) -> bool {
        let RootKind::Directory(top) = &self.kind else { return path.is_empty() };
        let stat = match top.stat(path, Links::Refuse) {
            Ok(stat) => stat,
            Err(error) => {
                let code = code_of(&error);
                return !matches!(code, ErrorCode::NotFound | ErrorCode::NotADirectory | ErrorCode::SymlinkRefused);
            }
        };
        // Rules that cannot be read may take it.
        !is_own(split_name(path).1, stat.kind) && !hides(top, walk, path, stat.kind).unwrap_or(false)
    }

    fn link_target(&self, path: &[u8]) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
        link_target(self, path)
    }

    fn open(&self, item: &ScannedItem, options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure> {
        let opened = self.open_item(item, options.tuning)?;
        Ok(Box::new(if options.may_grow {
            opened.may_grow_from(item.size)
        } else {
            opened.settled(&self.clocks, options.rest)?
        }))
    }
}

fn there(path: &[u8], stat: &Stat) -> There {
    match stat.kind {
        Kind::Dir => There::Directory(Attributes::new(stat.mode, time_of(stat.mtime))),
        Kind::File | Kind::Symlink if !is_own(split_name(path).1, stat.kind) => There::Other(path.to_vec()),
        _ => There::Nothing,
    }
}

/// What stands in place of one of the directories above a path.
fn there_above(top: &Dir, path: &[u8]) -> io::Result<There> {
    for above in above(path) {
        match there(above, &top.stat(above, Links::Refuse)?) {
            There::Directory(_) => {}
            other => return Ok(other),
        }
    }
    // It has just become a directory. Nothing shows that this path is free.
    Ok(There::Other(path.to_vec()))
}

/// The file system of a directory that holds a source; nothing is said of one that cannot be asked.
fn ground_of(root: &PosixSource, directory: &Dir) -> Option<Ground> {
    directory.stat_self().ok().map(|stat| root.grounds.of(stat.device, directory))
}

/// What stands now where an item was found that changed while it was read.
///
/// # Errors
/// With [`ErrorCode::SourceVanished`] when nothing does, and [`ErrorCode::SourceChanged`] when it is
/// something of another kind.
pub fn look_again(root: &PosixSource, item: &ScannedItem) -> Result<ScannedItem, Failure> {
    let now = clock_seconds();
    let looked = match &root.kind {
        RootKind::Directory(top) => {
            let (parent, name) = split_name(&item.path);
            patiently(|| top.open_dir(parent, Links::Refuse)).and_then(|directory| {
                let stat = directory.stat_at(name)?;
                let others = others_of(root, Freshness::Cached, &stat, &directory, name);
                Ok((LookedAt { now, stat, others }, ground_of(root, &directory)))
            })
        }
        RootKind::Entry(parent, name, links) => parent.stat(name, *links).map(|stat| {
            let others = named_alone(root, parent, name, *links, &stat);
            (LookedAt { now, stat, others }, ground_of(root, parent))
        }),
    };
    let (looked, ground) = looked.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => failure(ErrorCode::SourceVanished, Side::Source, "vanished while it was read"),
        _ => io_failure(Side::Source, "stat", &error),
    })?;
    let found = scanned(item.root, item.path.clone(), looked, ground);
    if found.kind != item.kind {
        return Err(failure(ErrorCode::SourceChanged, Side::Source, "is something else than when it was listed"));
    }
    Ok(found)
}

/// What an entry is.
struct LookedAt {
    /// When it was looked at, in seconds.
    now: i64,
    stat: Stat,
    /// What it has that does not travel.
    others: OtherAttributes,
}

/// What an entry of a directory has that does not travel; its extended attributes are not listed where whoever sends it
/// does so.
fn others_of(source: &PosixSource, freshness: Freshness, stat: &Stat, directory: &Dir, name: &[u8]) -> OtherAttributes {
    // What may be there from an earlier session is never opened: the receiver is asked by what the walk has found.
    let is_opened = freshness == Freshness::Cached && stat.size <= LISTED_ABOVE;
    match stat.kind {
        Kind::Dir => source.uncarried.of_entry(stat, directory, name),
        Kind::File if !is_opened => source.uncarried.of_entry(stat, directory, name),
        _ => source.uncarried.of_stat(stat),
    }
}

/// What a file has that does not travel, of a source that is one file; its name may be a path through links.
fn named_alone(source: &PosixSource, parent: &Dir, name: &[u8], links: Links, stat: &Stat) -> OtherAttributes {
    let opened = (stat.kind == Kind::File).then(|| parent.open_read(name, links).ok()).flatten();
    opened.map_or_else(|| source.uncarried.of_stat(stat), |file| source.uncarried.of_file(stat, &file))
}

/// As an item of a transfer.
fn scanned(root: u32, path: Vec<u8>, looked: LookedAt, ground: Option<Ground>) -> ScannedItem {
    let LookedAt { now, stat, others } = looked;
    let (kind, size) = match stat.kind {
        Kind::File => (ItemKind::File, Some(stat.size)),
        Kind::Dir => (ItemKind::Directory, None),
        Kind::Symlink => (ItemKind::Symlink, None),
        _ => (ItemKind::Special, None),
    };
    // Rounding to blocks and compression allocate less too; only a file with a good part missing is
    // worth asking for its holes.
    let sparse = kind == ItemKind::File && stat.blocks_512.saturating_mul(512) < stat.size - stat.size / 8;
    let changed = Some(time_of(stat.ctime));
    let attributes = Attributes { others, ..Attributes::new(stat.mode, time_of(stat.mtime)) };
    let file = Some((stat.device, stat.inode));
    let lasts = matches!(kind, ItemKind::File | ItemKind::Symlink);
    let fingerprint = ground.filter(|_| lasts).and_then(|ground| ground.fingerprint(&stat, now));
    let leads_to = Vec::new();
    ScannedItem { root, path, kind, size, attributes, sparse, changed, file, fingerprint, judgment: None, leads_to }
}

fn stat_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => {
            failure(ErrorCode::SourceVanished, Side::Source, "vanished while its directory was listed")
        }
        _ => io_failure(Side::Source, "stat", error),
    }
}

fn look_at(source: &PosixSource, walk: Looking<'_>, directory: &Dir, name: &[u8]) -> io::Result<LookedAt> {
    let now = clock_seconds();
    let stat = || walk.freshness.stat(directory, name, Links::Refuse);
    let others = |stat| LookedAt { now, others: others_of(source, walk.freshness, &stat, directory, name), stat };
    match walk.workers {
        None => stat().map(others),
        Some(workers) => workers.call(|job| job.measure(|_| stat()).map(others)),
    }
}

/// How a walk looks at entries.
#[derive(Clone, Copy)]
struct Looking<'a> {
    freshness: Freshness,
    workers: Option<&'a MetadataWorkers>,
}

/// The rules of a directory's own files hold from here on; `path` is that of the directory in the transfer.
fn enter(scope: &mut Scope<'_>, directory: &Dir, path: &[u8]) -> io::Result<()> {
    let read = &mut |name: &[u8]| match patiently(|| directory.open_read(name, Links::Refuse)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened
            .and_then(|file| read_bounded(&file, limits::FILTER_BYTES))
            .map(Some)
            .map_err(|error| format!("the rules in {} cannot be read: {}", display_bytes(name), describe(&error))),
    };
    scope.enter(path, read).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Whether a rule leaves a path out, or a directory above it; those in files of the directories count, too.
fn hides(top: &Dir, walk: &Walk<'_>, path: &[u8], kind: Kind) -> io::Result<bool> {
    let Some(filters) = walk.filters.filter(|filters| filters.are_per_directory()) else {
        return Ok(walk.hides(path, kind == Kind::Dir));
    };
    let mut scope = filters.scope(FilterSide::Source);
    enter(&mut scope, top, walk.target)?;
    for directory in above(path) {
        let place = place(walk.target, directory);
        if !scope.takes(&place, true, false) {
            return Ok(true);
        }
        enter(&mut scope, &patiently(|| top.open_dir(directory, Links::Refuse))?, &place)?;
    }
    Ok(!scope.takes(&place(walk.target, path), kind == Kind::Dir, false))
}

struct Walking<'a> {
    walk: &'a Walk<'a>,
    root: &'a Dir,
    source: &'a PosixSource,
    /// The rules as they hold in the directory that is being read.
    scope: Option<Scope<'a>>,
    /// The only file system that is entered; any where there is none.
    device: Option<u64>,
    each: &'a mut dyn FnMut(Found) -> bool,
}

impl Walking<'_> {
    fn run(&mut self) {
        if let Ok(stat) = self.root.stat_self() {
            let looked = LookedAt { now: 0, others: self.source.uncarried.of_directory(&stat, self.root), stat };
            if !(self.each)(Found::Item(scanned(self.walk.number, Vec::new(), looked, None))) {
                return;
            }
        }
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        let mut trail = Trail::default();
        while let Some(path) = waiting.pop() {
            let complete = match self.directory(&path, &mut waiting, &mut trail) {
                Ok(true) => true,
                Ok(false) => return,
                // What was read before the error has been told; that the rest was not is an error, never an end.
                Err(error) => {
                    if !self.fail(&path, ItemKind::Directory, listing_failure(&error)) {
                        return;
                    }
                    false
                }
            };
            if !(self.each)(Found::Listed { root: self.walk.number, path, complete }) {
                return;
            }
        }
    }

    fn fail(&mut self, path: &[u8], kind: ItemKind, why: Failure) -> bool {
        let item = self.walk.item(path, kind);
        (self.each)(Found::Failure(item, why))
    }

    fn directory(&mut self, path: &[u8], waiting: &mut Vec<Vec<u8>>, trail: &mut Trail) -> io::Result<bool> {
        let directory = patiently(|| self.root.open_dir(path, Links::Refuse))?;
        let ground = self.source.grounds.of(trail.enter(path, &directory)?.device, &directory);
        if let Some(scope) = &mut self.scope {
            enter(scope, &directory, &place(self.walk.target, path))?;
        }
        let mut entries = patiently(|| directory.entries())?;
        let mut batch = Vec::new();
        while entries.next_batch(&mut batch)? {
            batch.retain(|entry: &DirEntry| entry.kind.is_none_or(|kind| self.takes(path, &entry.name, kind)));
            batch.sort_unstable_by_key(|entry: &DirEntry| entry.inode);
            let shares = self.walk.workers.is_some_and(|workers| workers.shares_short(LOOKED_AT_BRIEFLY));
            for some in batch.chunks(if shares { LOOKED_AT_BRIEFLY } else { LOOKED_AT_ONCE }) {
                let mut looked = self.look_ahead(&directory, path, some).into_iter();
                for entry in some {
                    if !self.entry((&directory, ground), path, entry, looked.next().flatten(), waiting) {
                        return Ok(false);
                    }
                }
            }
            batch.clear();
        }
        Ok(true)
    }

    /// Whether the rules take an entry of the directory that was entered.
    fn takes(&self, path: &[u8], name: &[u8], kind: Kind) -> bool {
        let Some(scope) = &self.scope else { return true };
        scope.takes(&place(self.walk.target, &join(path, name)), kind == Kind::Dir, false)
    }

    fn looking(&self) -> Looking<'_> {
        Looking { freshness: self.walk.freshness, workers: self.walk.workers }
    }

    /// Looks at entries that are wanted, several at once, where that is worth it; else at none.
    fn look_ahead(&self, directory: &Dir, path: &[u8], entries: &[DirEntry]) -> Vec<Option<io::Result<LookedAt>>> {
        let Some(workers) = self.walk.workers else { return Vec::new() };
        let shares = workers.shares_short(entries.len());
        if !shares && !workers.are_several() {
            return Vec::new();
        }
        let wanted = |entry: &DirEntry| {
            let place = || join(self.walk.target, &join(path, &entry.name));
            self.walk.selection.is_none_or(|selection| selection.covers(&place()) != Selected::No)
        };
        let wanted: Vec<Option<&[u8]>> = entries.iter().map(|entry| wanted(entry).then_some(&entry.name[..])).collect();
        let (source, looking) = (self.source, self.looking());
        let look = |name: &Option<&[u8]>| name.map(|name| look_at(source, looking, directory, name));
        if shares { workers.each_short(&wanted, look) } else { workers.each(&wanted, look) }
    }

    fn entry(
        &mut self,
        (directory, ground): (&Dir, Ground),
        path: &[u8],
        entry: &DirEntry,
        looked: Option<io::Result<LookedAt>>,
        waiting: &mut Vec<Vec<u8>>,
    ) -> bool {
        let full = join(path, &entry.name);
        let selection = self.walk.selection;
        if selection.is_some_and(|selection| selection.covers(&join(self.walk.target, &full)) == Selected::No) {
            return true;
        }
        // Below a target, which is a name, it must still be a path.
        if full.len() >= limits::PATH_BYTES - limits::NAME_BYTES {
            let message = format!("is deeper than {} bytes of path: not entered", limits::PATH_BYTES);
            return self.fail(path, ItemKind::Directory, failure(ErrorCode::NameTooLong, Side::Source, message));
        }
        match looked.unwrap_or_else(|| look_at(self.source, self.looking(), directory, &entry.name)) {
            Ok(looked) if is_own(&entry.name, looked.stat.kind) => {
                self.walk.covers(&full);
                (self.each)(Found::Own)
            }
            // Only now it is known what it is.
            Ok(looked) if entry.kind.is_none() && !self.takes(path, &entry.name, looked.stat.kind) => true,
            Ok(looked) => {
                let item = scanned(self.walk.number, full, looked, Some(ground));
                let covers = self.walk.covers(&item.path);
                if covers != Selected::Wanted && item.kind != ItemKind::Directory {
                    return true;
                }
                let is_entered = |device: u64| self.device.is_none_or(|only| only == device);
                if item.kind == ItemKind::Directory && item.file.is_some_and(|(device, _)| is_entered(device)) {
                    waiting.push(item.path.clone());
                }
                (self.each)(Found::Item(item))
            }
            Err(error) => {
                self.walk.covers(&full);
                self.fail(&full, ItemKind::File, stat_failure(&error))
            }
        }
    }
}

/// The directories on the way down to the one that is being read. Those that wait must be taken depth first.
#[derive(Default)]
pub struct Trail(Vec<(u64, u64)>);

impl Trail {
    /// Enters a directory, `path` below the top, and says what it is.
    ///
    /// # Errors
    /// When it is one of those above it, and those of the system.
    pub fn enter(&mut self, path: &[u8], directory: &Dir) -> io::Result<Stat> {
        let stat = directory.stat_self()?;
        let depth = if path.is_empty() { 0 } else { 1 + path.iter().filter(|&&byte| byte == b'/').count() };
        self.0.truncate(depth);
        let identity = (stat.device, stat.inode);
        if self.0.contains(&identity) {
            let what = "it is one of the directories that it stands in, by a bind mount or a fault of the file system: not entered";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        self.0.push(identity);
        Ok(stat)
    }
}

fn listing_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => failure(ErrorCode::SourceVanished, Side::Source, "vanished before it was listed"),
        _ => io_failure(Side::Source, "list", error),
    }
}

/// Reads a link's target, and says what the link is known by that has it: one that is exchanged has another.
///
/// # Errors
/// Those of the system.
pub fn link_target(root: &PosixSource, path: &[u8]) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
    let RootKind::Directory(top) = &root.kind else {
        return Err(failure(ErrorCode::Internal, Side::Source, "a link outside a directory"));
    };
    let (parent, name) = split_name(path);
    let directory = patiently(|| top.open_dir(parent, Links::Refuse));
    let read = |directory: Dir| {
        let now = clock_seconds();
        let before = directory.stat_uncached(name, Links::Refuse)?;
        let target = directory.read_link(name)?;
        let same = directory.stat_uncached(name, Links::Refuse)? == before;
        let ground = ground_of(root, &directory).filter(|_| same);
        Ok((target, ground.and_then(|ground| ground.fingerprint(&before, now))))
    };
    let (target, fingerprint) = directory.and_then(read).map_err(|error| stat_failure(&error))?;
    if target.len() > limits::LINK_TARGET_BYTES {
        return Err(failure(ErrorCode::NameTooLong, Side::Source, "its target is too long"));
    }
    Ok((target, fingerprint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_entered_again_beside_itself_and_not_below() {
        let place = tempfile::tempdir().unwrap();
        let top = Dir::open_ambient(place.path()).unwrap();
        let other = top.make_dir_all(b"other", Links::Refuse).unwrap();
        let mut trail = Trail::default();
        trail.enter(b"", &top).unwrap();
        trail.enter(b"a", &other).unwrap();
        for below in [&top, &other] {
            assert_eq!(trail.enter(b"a/b", below).unwrap_err().kind(), io::ErrorKind::Unsupported);
        }
        // The same one under another name is no cycle.
        trail.enter(b"c", &other).unwrap();
        assert!(trail.enter(b"c/d", &other).is_err() && trail.enter(b"e", &top).is_err());
    }
}
