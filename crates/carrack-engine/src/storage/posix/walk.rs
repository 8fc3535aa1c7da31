//! Walking a source: what there is, streamed, in bounded memory.
//!
//! A directory is read in batches, each sorted by inode so that a disk reads its inodes in order, or by names where a
//! tree is compared. Names of subdirectories wait on a stack; nothing else is held. Symbolic links are followed only
//! where that was asked for; a directory that stands below itself, by a link, a bind mount or a broken file system, is
//! not entered again. Where only some paths are wanted, directories above them are not listed: their names are looked
//! at.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::Arc;

use carrack_core::attributes::{Attributes, AttributesTold, OtherAttributes};
use carrack_core::filter::{FilterSide, Scope, SourceLinks};
use carrack_core::growing::GrowingLock;
use carrack_core::limits;
use carrack_core::path::{above, join, split_name};
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_core::selection::{Selected, place};
use carrack_core::transfer::{Fingerprint, ScannedItem};
use carrack_core::tuning::Tuning;
use carrack_sys::dir::{Dir, DirEntry, Kind, Links, Stat};
use carrack_sys::host::clock_seconds;

use super::clashes::{Clashes, clash};
use super::entering::{Trail, enter_source, hides};
use super::extended::Holder;
use super::identity::Ground;
use super::kinds::{kind_of, special_of};
use super::links::{SeenEntry, Unseen, leads_round};
use super::listed::ListedAhead;
use super::locked::is_locked;
use super::names::is_own;
use super::source::{PosixSource, RootKind, stat_failure};
use super::times::time_of;
use crate::error::{code_of, failure, io_failure};
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
/// Directories that are open and listed before their turn has come: each takes two descriptors.
const DIRECTORIES_AHEAD: usize = 16;

impl Source for PosixSource {
    fn is_directory(&self) -> bool {
        matches!(self.kind, RootKind::Directory(_))
    }

    fn tell_attributes(&mut self, told: AttributesTold) {
        // Before anything is asked nobody else has it.
        Arc::get_mut(&mut self.telling).into_iter().for_each(|telling| telling.tell_attributes(told));
    }

    fn follow(&mut self, links: SourceLinks, target: &[u8]) {
        self.links.begin(links, target);
    }

    fn walks_in_order(&self) -> bool {
        true
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
                let (is_named, ahead) = (false, HashMap::new());
                Walking { walk, root: directory, source: self, scope, device, is_named, each, ahead }.run();
            }
            RootKind::Entry(parent, name, links) => {
                let now = clock_seconds();
                let found = match walk.freshness.stat(parent, name, *links) {
                    Ok(stat) => {
                        let stat = self.shown_alone(parent, name, *links, stat);
                        let others = self.others_alone(parent, name, *links, &stat);
                        let looked = LookedAt { now, stat, others, followed: None };
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

    fn is_locked(&self, item: &ScannedItem, lock: GrowingLock) -> io::Result<bool> {
        is_locked(self, item, lock)
    }

    fn find(&self, path: &[u8]) -> io::Result<There> {
        let RootKind::Directory(top) = &self.kind else { return Ok(There::Other(Vec::new())) };
        match self.links.at(top, path) {
            Ok(seen) => Ok(there(path, &seen.stat)),
            // It is a failed item.
            Err(Unseen::Link(_)) => Ok(There::Nothing),
            // Of a directory that may not be searched nothing is copied.
            Err(Unseen::Entry(error)) => match code_of(&error) {
                ErrorCode::NotFound | ErrorCode::PermissionDenied => Ok(There::Nothing),
                ErrorCode::NotADirectory | ErrorCode::SymlinkRefused => there_above(self, top, path),
                ErrorCode::OutsideRoot if self.links.follows() => there_above(self, top, path),
                _ => Err(error),
            },
        }
    }

    fn has(&self, walk: &Walk<'_>, path: &[u8]) -> bool {
        let RootKind::Directory(top) = &self.kind else { return path.is_empty() };
        let kind = match self.links.at(top, path) {
            Ok(seen) => seen.stat.kind,
            // Its name is there, whatever it leads to.
            Err(Unseen::Link(_)) => Kind::Symlink,
            Err(Unseen::Entry(error)) => {
                let code = code_of(&error);
                return !matches!(code, ErrorCode::NotFound | ErrorCode::NotADirectory | ErrorCode::SymlinkRefused);
            }
        };
        // Rules that cannot be read may take it.
        !is_own(split_name(path).1, kind) && !hides(self, top, walk, path, kind).unwrap_or(false)
    }

    fn link_target(&self, path: &[u8]) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
        link_target(self, path)
    }

    fn removes(&self) -> bool {
        true
    }

    fn remove(&self, item: &ScannedItem) -> Result<(), Failure> {
        self.remove_copied(item)
    }

    fn scratch(&self) -> Result<File, Failure> {
        self.unnamed_file()
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
fn there_above(source: &PosixSource, top: &Dir, path: &[u8]) -> io::Result<There> {
    for above in above(path) {
        match source.links.at(top, above).map(|seen| there(above, &seen.stat)) {
            Ok(There::Directory(_)) => {}
            Ok(other) => return Ok(other),
            Err(Unseen::Link(_)) => return Ok(There::Nothing),
            Err(Unseen::Entry(error)) => return Err(error),
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
            let looking = Looking { freshness: Freshness::Cached, workers: None };
            root.links.open_dir(top, parent).map_err(Unseen::Entry).and_then(|directory| {
                let at = SourceDir { top, directory: &directory, path: parent };
                Ok((look_at(root, looking, at, name)?, ground_of(root, &directory)))
            })
        }
        RootKind::Entry(parent, name, links) => parent.stat(name, *links).map_err(Unseen::Entry).map(|stat| {
            let stat = root.shown_alone(parent, name, *links, stat);
            let others = root.others_alone(parent, name, *links, &stat);
            (LookedAt { now, stat, others, followed: None }, ground_of(root, parent))
        }),
    };
    let (looked, ground) = looked.map_err(|unseen| match unseen {
        Unseen::Link(why) => why,
        Unseen::Entry(error) if error.kind() == io::ErrorKind::NotFound => {
            failure(ErrorCode::SourceVanished, Side::Source, "vanished while it was read")
        }
        Unseen::Entry(error) => io_failure(Side::Source, "stat", &error),
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
    /// What it has beside content, permissions and times.
    others: OtherAttributes,
    /// It is what a link leads to, which is on this file system.
    followed: Option<Ground>,
}

/// An open directory of a source.
#[derive(Clone, Copy)]
struct SourceDir<'a> {
    /// The source's own directory.
    top: &'a Dir,
    directory: &'a Dir,
    /// Of the directory, below the source's.
    path: &'a [u8],
}

/// What else an entry of a directory has; its extended attributes are not listed where only whoever sends it
/// does so.
fn others_of(
    source: &PosixSource,
    freshness: Freshness,
    seen: &SeenEntry,
    at: SourceDir<'_>,
    name: &[u8],
) -> OtherAttributes {
    let (stat, telling) = (&seen.stat, &source.telling);
    // What may be there from an earlier session is never opened: the receiver is asked by what the walk has found.
    let is_opened = freshness == Freshness::Cached && stat.size <= LISTED_ABOVE && !telling.lists_all();
    match (&seen.reached, kind_of(stat.kind)) {
        // It is never opened.
        (Some(_), ItemKind::Special) => telling.of_unreadable(stat),
        (_, ItemKind::Symlink) => telling.of_stat(stat),
        (_, ItemKind::File) if is_opened => telling.of_stat(stat),
        (None, _) => telling.of(stat, Holder::Entry(at.directory, name)),
        (Some(_), _) => source.links.reached_attributes(at.top, &join(at.path, name), stat, telling),
    }
}

/// As an item of a transfer.
fn scanned(root: u32, path: Vec<u8>, looked: LookedAt, ground: Option<Ground>) -> ScannedItem {
    let LookedAt { now, stat, others, followed } = looked;
    let kind = kind_of(stat.kind);
    let size = (kind == ItemKind::File).then_some(stat.size);
    // Rounding to blocks and compression allocate less too; only a file with a good part missing is
    // worth asking for its holes.
    let sparse = kind == ItemKind::File && stat.blocks_512.saturating_mul(512) < stat.size - stat.size / 8;
    let attributes = Attributes { others, ..Attributes::new(stat.mode, time_of(stat.mtime)) };
    let file = Some((stat.device, stat.inode));
    let lasts = matches!(kind, ItemKind::File | ItemKind::Symlink);
    let fingerprint = followed.or(ground).filter(|_| lasts).and_then(|ground| ground.fingerprint(&stat, now));
    let (names, special) = (if kind == ItemKind::Directory { 1 } else { stat.links }, special_of(&stat));
    let known = ScannedItem { special, size, attributes, sparse, file, ..ScannedItem::new(root, path, kind) };
    ScannedItem { names, fingerprint, changed: Some(time_of(stat.ctime)), ..known }
}

fn look_at(source: &PosixSource, walk: Looking<'_>, at: SourceDir<'_>, name: &[u8]) -> Result<LookedAt, Unseen> {
    let now = clock_seconds();
    let see = || source.links.entry(at.top, (at.directory, at.path), name, walk.freshness);
    let looked = |mut seen: SeenEntry| {
        seen.stat = match &seen.reached {
            None => source.telling.shown(seen.stat, Holder::Entry(at.directory, name)),
            Some(_) => source.links.reached_shown(at.top, &join(at.path, name), seen.stat, &source.telling),
        };
        let others = others_of(source, walk.freshness, &seen, at, name);
        let followed = seen.reached.map(|open| source.grounds.of(seen.stat.device, &open));
        LookedAt { now, stat: seen.stat, others, followed }
    };
    match walk.workers {
        None => see().map(looked),
        Some(workers) => workers.call(|job| job.measure(|_| see()).map(looked)),
    }
}

/// How a walk looks at entries.
#[derive(Clone, Copy)]
struct Looking<'a> {
    freshness: Freshness,
    workers: Option<&'a MetadataWorkers>,
}

struct Walking<'a> {
    walk: &'a Walk<'a>,
    root: &'a Dir,
    source: &'a PosixSource,
    /// The rules as they hold in the directory that is being read.
    scope: Option<Scope<'a>>,
    /// The only file system that is entered; any where there is none.
    device: Option<u64>,
    /// The names of the directory that is being read are those that are wanted: it is not listed.
    is_named: bool,
    each: &'a mut dyn FnMut(Found) -> bool,
    /// Directories whose turn comes soon.
    ahead: HashMap<Vec<u8>, ListedAhead>,
}

impl Walking<'_> {
    fn run(&mut self) {
        // As with rsync: where only some of its paths are wanted, the destination does not become like the source.
        let is_wanted = !self.walk.target.is_empty() || self.names(b"").is_none();
        if let Some(stat) = self.root.stat_self().ok().filter(|_| is_wanted) {
            let stat = self.source.telling.shown(stat, Holder::Directory(self.root));
            let others = self.source.telling.of(&stat, Holder::Directory(self.root));
            let looked = LookedAt { now: 0, stat, others, followed: None };
            if !(self.each)(Found::Item(scanned(self.walk.number, Vec::new(), looked, None))) {
                return;
            }
        }
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        let mut trail = Trail::default();
        while let Some(path) = waiting.pop() {
            let complete = match self.directory(&path, &mut waiting, &mut trail) {
                Ok(true) => !self.is_named,
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

    /// The names in a directory that lead to what is wanted, if it is not wanted itself.
    fn names(&self, path: &[u8]) -> Option<Vec<DirEntry>> {
        let (selection, place) = (self.walk.selection?, place(self.walk.target, path));
        let entry = |name: &[u8]| DirEntry { name: name.to_vec(), inode: 0, kind: None };
        let is_above = selection.covers(&place) == Selected::Above;
        is_above.then(|| selection.names_below(&place).into_iter().map(entry).collect())
    }

    fn directory(&mut self, path: &[u8], waiting: &mut Vec<Vec<u8>>, trail: &mut Trail) -> io::Result<bool> {
        let others = waiting.len();
        let goes_on = self.entries(path, waiting, trail);
        if self.walk.in_order {
            // The last that waits comes first.
            waiting[others..].reverse();
        }
        goes_on
    }

    fn entries(&mut self, path: &[u8], waiting: &mut Vec<Vec<u8>>, trail: &mut Trail) -> io::Result<bool> {
        let (top, names) = (self.root, self.names(path));
        self.is_named = names.is_some();
        let ListedAhead { directory, entries } = match &names {
            None => self.listed(path, waiting)?,
            Some(_) => ListedAhead { directory: self.source.links.pass_dir(top, path)?, entries: None },
        };
        let at = SourceDir { top, directory: &directory, path };
        let ground = self.source.grounds.of(trail.enter(path, &directory)?.device, &directory);
        if let Some(scope) = &mut self.scope {
            enter_source(self.source, scope, (top, &directory, path), &place(self.walk.target, path))?;
        }
        if let Some(names) = names {
            return Ok(self.batch((at, ground), names, &Clashes::default(), waiting, trail));
        }
        let clashes = self.clashes(&directory, path)?;
        let Some(mut entries) = entries else { return Ok(true) };
        while let Some(batch) = entries.next_batch(&directory)? {
            if !self.batch((at, ground), batch, &clashes, waiting, trail) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A directory, and the first of its entries. Where that is slow, those that come next are listed at the same time.
    fn listed(&mut self, path: &[u8], waiting: &[Vec<u8>]) -> io::Result<ListedAhead> {
        if let Some(listed) = self.ahead.remove(path) {
            return Ok(listed);
        }
        // Of a deep tree those that come next are others by now.
        let near: HashSet<&[u8]> = waiting.iter().rev().take(DIRECTORIES_AHEAD).map(Vec::as_slice).collect();
        self.ahead.retain(|path, _| near.contains(&path[..]));
        let (source, root, in_order) = (self.source, self.root, self.walk.in_order);
        let list = |path: &&[u8]| ListedAhead::open(source, root, path, in_order);
        let Some(workers) = self.walk.workers.filter(|workers| workers.are_several()) else { return list(&path) };
        let next = waiting.iter().rev().map(Vec::as_slice).filter(|path| !self.ahead.contains_key(*path));
        let mut paths = vec![path];
        paths.extend(next.take(DIRECTORIES_AHEAD.saturating_sub(self.ahead.len())));
        let mut listed = workers.each(&paths, list).into_iter();
        let first = listed.next().unwrap_or_else(|| list(&path));
        // What failed is tried once more when its turn has come.
        let ahead = paths.iter().skip(1).zip(listed).filter_map(|(path, listed)| Some((path.to_vec(), listed.ok()?)));
        self.ahead.extend(ahead);
        first
    }

    /// Names of the directory that was entered which would become one at the destination.
    fn clashes(&self, directory: &Dir, path: &[u8]) -> io::Result<Clashes> {
        if !self.walk.folds_case {
            return Ok(Clashes::default());
        }
        Clashes::find(directory, &|entry| {
            let kind = entry.kind.unwrap_or(Kind::File);
            let place = || join(self.walk.target, &join(path, &entry.name));
            let is_selected = self.walk.selection.is_none_or(|all| all.covers(&place()) != Selected::No);
            is_selected && !is_own(&entry.name, kind) && self.takes(path, &entry.name, kind)
        })
    }

    fn batch(
        &mut self,
        (at, ground): (SourceDir<'_>, Ground),
        mut batch: Vec<DirEntry>,
        clashes: &Clashes,
        waiting: &mut Vec<Vec<u8>>,
        trail: &Trail,
    ) -> bool {
        batch.retain(|entry| self.kind_of(entry).is_none_or(|kind| self.takes(at.path, &entry.name, kind)));
        let shares = self.walk.workers.is_some_and(|workers| workers.shares_short(LOOKED_AT_BRIEFLY));
        for some in batch.chunks(if shares { LOOKED_AT_BRIEFLY } else { LOOKED_AT_ONCE }) {
            let mut looked = self.look_ahead(at, some).into_iter();
            for entry in some {
                let looked = looked.next().flatten();
                let goes_on = match clashes.other(&entry.name) {
                    Some(other) => {
                        let kind = if entry.kind == Some(Kind::Dir) { ItemKind::Directory } else { ItemKind::File };
                        self.fail(&join(at.path, &entry.name), kind, clash(&join(at.path, other)))
                    }
                    None => self.entry((at, ground), entry, looked, waiting, trail),
                };
                if !goes_on {
                    return false;
                }
            }
        }
        true
    }

    /// What an entry is, if its directory says so: a link may be what it leads to.
    fn kind_of(&self, entry: &DirEntry) -> Option<Kind> {
        entry.kind.filter(|kind| *kind != Kind::Symlink || !self.source.links.follows())
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
    fn look_ahead(&self, at: SourceDir<'_>, entries: &[DirEntry]) -> Vec<Option<Result<LookedAt, Unseen>>> {
        let Some(workers) = self.walk.workers else { return Vec::new() };
        let shares = workers.shares_short(entries.len());
        if !shares && !workers.are_several() {
            return Vec::new();
        }
        let wanted = |entry: &DirEntry| {
            let place = || join(self.walk.target, &join(at.path, &entry.name));
            self.walk.selection.is_none_or(|selection| selection.covers(&place()) != Selected::No)
        };
        let wanted: Vec<Option<&[u8]>> = entries.iter().map(|entry| wanted(entry).then_some(&entry.name[..])).collect();
        let (source, looking) = (self.source, self.looking());
        let look = |name: &Option<&[u8]>| name.map(|name| look_at(source, looking, at, name));
        if shares { workers.each_short(&wanted, look) } else { workers.each(&wanted, look) }
    }

    fn entry(
        &mut self,
        (at, ground): (SourceDir<'_>, Ground),
        entry: &DirEntry,
        looked: Option<Result<LookedAt, Unseen>>,
        waiting: &mut Vec<Vec<u8>>,
        trail: &Trail,
    ) -> bool {
        let (path, full) = (at.path, join(at.path, &entry.name));
        let selection = self.walk.selection;
        if selection.is_some_and(|selection| selection.covers(&join(self.walk.target, &full)) == Selected::No) {
            return true;
        }
        // Below a target, which is a name, it must still be a path.
        if full.len() >= limits::PATH_BYTES - limits::NAME_BYTES {
            let message = format!("is deeper than {} bytes of path: not entered", limits::PATH_BYTES);
            return self.fail(path, ItemKind::Directory, failure(ErrorCode::NameTooLong, Side::Source, message));
        }
        let is_known = self.kind_of(entry).is_some();
        let takes = |kind| is_known || self.takes(path, &entry.name, kind);
        match looked.unwrap_or_else(|| look_at(self.source, self.looking(), at, &entry.name)) {
            Ok(looked) if is_own(&entry.name, looked.stat.kind) => {
                self.walk.covers(&full);
                (self.each)(Found::Own)
            }
            // Only now it is known what it is.
            Ok(looked) if !takes(looked.stat.kind) => true,
            Ok(looked) if looked.followed.is_some() && trail.holds(&looked.stat) => {
                self.walk.covers(&full);
                self.fail(&full, ItemKind::Symlink, leads_round())
            }
            Ok(looked) => {
                let item = scanned(self.walk.number, full, looked, Some(ground));
                self.found(item, waiting)
            }
            // Nobody has said that it is there; whoever asked for it is told at the end.
            Err(Unseen::Entry(error)) if self.is_named && error.kind() == io::ErrorKind::NotFound => true,
            // As with rsync: what is left out, whatever it leads to, is no failure.
            Err(_) if !takes(Kind::File) || !takes(Kind::Dir) => true,
            Err(unseen) => {
                self.walk.covers(&full);
                let why = match unseen {
                    Unseen::Entry(error) => stat_failure(&error),
                    Unseen::Link(why) => why,
                };
                self.fail(&full, ItemKind::File, why)
            }
        }
    }

    fn found(&mut self, item: ScannedItem, waiting: &mut Vec<Vec<u8>>) -> bool {
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
    let directory = root.links.open_dir(top, parent);
    let read = |directory: Dir| {
        let now = clock_seconds();
        let before = directory.stat_uncached(name, Links::Refuse)?;
        let target = match before.kind {
            // One that is written down: rsync makes files of links.
            Kind::File => root.faked_target(&directory, name, &before)?,
            _ => directory.read_link(name)?,
        };
        let same = Stat { atime: before.atime, ..directory.stat_uncached(name, Links::Refuse)? } == before;
        let ground = ground_of(root, &directory).filter(|_| same);
        Ok((target, ground.and_then(|ground| ground.fingerprint(&before, now))))
    };
    let (target, fingerprint) = directory.and_then(read).map_err(|error| stat_failure(&error))?;
    if target.len() > limits::LINK_TARGET_BYTES {
        return Err(failure(ErrorCode::NameTooLong, Side::Source, "its target is too long"));
    }
    Ok((target, fingerprint))
}
