//! The verbs of a file manager, and the look at paths that precedes a copy, as an agent carries them out.

mod listing_rules;
mod reading;
mod remove;
mod stored;
mod survey;

pub use reading::read;
pub use stored::check_files;
pub use survey::{SurveyChoice, survey};

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

use carrack_core::attributes::{AttributesTold, KeptAttributes, OtherAttributes};
use carrack_core::filter::Filters;
use carrack_core::limits;
use carrack_core::path::{display_bytes, join};
use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, ItemReport, Outcome, Reason, Side};
use carrack_core::request::Digests;
use carrack_core::transfer::ScannedItem;
use carrack_core::tuning::{SLICE_BYTES, Tuning};
use carrack_core::wire::control::{
    Collect, Entry, FileSystemKey, List, MakeDirectory, PathFacts, PlaceKey, Remove, Rename, Sum, Tell,
};
use carrack_core::wire::failure_bytes;
use carrack_sys::dir::{Dir, Kind, Links, Mounts, Stat, file_system};

use self::listing_rules::{ListingRules, takes_alone};
use super::begin::open_roots;
use crate::data::hasher::BlockHasher;
use crate::error::{failure, io_failure, system_failure};
use crate::storage;
use crate::storage::collect::{Collected, Rules};
use crate::storage::identity::{file_system_key, place_key};
use crate::storage::overlap::Overlaps;
use crate::storage::place::Place;
use crate::storage::posix::extended::Holder;
use crate::storage::posix::kinds::kind_of;
use crate::storage::posix::telling::Telling;
use crate::storage::read::{OpenOptions, Source, Walk};
use crate::storage::refusal::why_refused;
use crate::storage::source::{PosixSource, RootKind};
use crate::storage::times::time_of;
use crate::sync::Latch;

/// The failure of a call on `path`, on the side that is read.
fn named(path: &[u8], what: &'static str, error: &io::Error) -> Failure {
    io_failure(Side::Source, what, error).at_path(path)
}

/// What paths are. One that cannot be looked at has its failure in its place: the command decides what that means.
pub fn inspect(place: &Place, paths: &[Vec<u8>]) -> Tell {
    if let Place::Stored(_, store) = place {
        let facts = paths.iter().map(|path| match store.look(path) {
            Ok(found) => PathFacts {
                kind: found.as_ref().map(|facts| facts.kind),
                size: found.map_or(0, |facts| facts.size),
                resolved: path.clone(),
                ..PathFacts::default()
            },
            Err(why) => PathFacts { failure: Some(why), ..PathFacts::default() },
        });
        return Tell::Inspected(facts.collect());
    }
    let mounts = Mounts::now();
    let facts = paths.iter().map(|path| match place.look(path) {
        Ok((Some(stat), resolved)) => {
            let (kind, lies) = (Some(kind_of(stat.kind)), lies(place, path, stat.kind, &mounts));
            let (lies_in, holds) = lies.unwrap_or_default();
            let (size, device, inode) = (stat.size, stat.device, stat.inode);
            let top = (stat.kind == Kind::Dir).then(|| place.dir(path).ok()?.is_mount_top().ok()).flatten();
            let (is_mount_top, file_system) = (top.unwrap_or(false), file_system_of(place, path, stat.kind));
            PathFacts { kind, size, device, inode, resolved, failure: None, lies_in, holds, is_mount_top, file_system }
        }
        // Nothing is there, and no failure: a destination is made.
        Ok((None, resolved)) => {
            let link = place.parent(path).and_then(|(parent, name)| parent.stat_at(&name)).ok();
            let (device, inode) = link.map_or((0, 0), |link| (link.device, link.inode));
            let file_system = file_system_of(place, path, Kind::File);
            PathFacts { resolved, device, inode, file_system, ..PathFacts::default() }
        }
        Err(error) => PathFacts { failure: Some(named(path, "stat", &error)), ..PathFacts::default() },
    });
    Tell::Inspected(facts.collect())
}

/// By which the file system of a directory is known; of anything else, that of the directory that it is in.
fn file_system_of(place: &Place, path: &[u8], kind: Kind) -> Option<FileSystemKey> {
    let directory = if kind == Kind::Dir { place.dir(path).ok()? } else { place.parent(path).ok()?.0 };
    file_system(&directory).ok().map(|found| file_system_key(&found))
}

/// What a directory lies in, and what it holds: see [`PathFacts`]. `None` where the system does not tell.
fn lies(place: &Place, path: &[u8], kind: Kind, mounts: &Mounts) -> Option<(Vec<PlaceKey>, Vec<PlaceKey>)> {
    if kind != Kind::Dir {
        return None;
    }
    let (own, below) = mounts.place_of(&place.dir(path).ok()?).ok()?;
    let key = |path: &[u8]| place_key(&own.file_system, path);
    let mut lies_in = own.above().filter_map(key).collect::<Vec<_>>();
    // The nearest ones matter most.
    lies_in.drain(..lies_in.len().saturating_sub(limits::PLACES_TOLD));
    let below = below.iter().map(|mount| place_key(&mount.file_system, &mount.path));
    let holds = [key(&own.path)].into_iter().chain(below).flatten().take(limits::PLACES_TOLD);
    Some((lies_in, holds.collect()))
}

/// Collects entries into pages and sends each when it is full.
struct Pages<'a> {
    page: Vec<Entry>,
    bytes: usize,
    count: u64,
    /// Sources of a copy, of which the last is listed.
    overlaps: Overlaps<'a>,
    send: &'a mut dyn FnMut(Vec<Entry>) -> Result<(), Failure>,
}

impl Pages<'_> {
    fn push(&mut self, mut entry: Entry) -> Result<(), Failure> {
        // A failure that the entry has already says more than that another source has the same name.
        if entry.failure.is_none()
            && let Some(kind) = entry.kind
        {
            entry.failure = self.overlaps.refuses_of_last(&entry.path, kind);
        }
        let words = entry.failure.as_ref().map_or(0, failure_bytes);
        // A page is one message and has to fit into one: names and failures may be long, so entries alone do not say
        // how large it becomes.
        self.bytes += entry.path.len() + entry.link_target.len() + entry.attributes.encoded_bytes() + words + 32;
        self.count += 1;
        self.page.push(entry);
        if self.page.len() >= limits::PAGE_ENTRIES || self.bytes >= limits::PAGE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.bytes = 0;
        let page = std::mem::take(&mut self.page);
        if page.is_empty() { Ok(()) } else { (self.send)(page) }
    }
}

/// What a listing says of an entry beside what it is.
#[derive(Clone, Copy)]
struct Details<'a> {
    usage: bool,
    telling: Option<&'a Telling>,
}

impl Details<'_> {
    /// Attributes of an entry of a directory, and how many names it has.
    fn of(self, stat: &Stat, holder: Holder<'_>) -> (u32, OtherAttributes) {
        let Some(telling) = self.telling else { return Default::default() };
        let is_link = stat.kind == Kind::Symlink;
        let found = if is_link { telling.of_stat(stat) } else { telling.of(stat, holder) };
        (u32::try_from(stat.links).unwrap_or(u32::MAX), found.with_names_alone())
    }
}

/// Tells owners and groups, and all else an item has; to who may not see all files no names of users, and no lists.
fn telling_all(sees_all: bool) -> Telling {
    let owners = KeptAttributes { owner: true, group: true, ..KeptAttributes::NONE };
    let kept = if sees_all { KeptAttributes::ALL } else { owners };
    let mut telling = Telling::default();
    let (at_once, hides_names, faked) = (true, !sees_all, false);
    telling.tell_attributes(AttributesTold { kept, names: sees_all, at_once, hides_names, faked });
    telling
}

/// Lists a directory, or describes what a path is, without what `filters` leave out; in pages, in the order of the file
/// system. `sees_all`: who asks was let in to all files.
pub fn list(
    place: &Place,
    list: &List,
    filters: &Filters,
    sees_all: bool,
    send: &mut dyn FnMut(Vec<Entry>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let roots = open_roots(place, &list.sources, None)?;
    let mut pages = Pages { page: Vec::new(), bytes: 0, count: 0, overlaps: Overlaps::new(&roots, None), send };
    if let Place::Stored(_, store) = place {
        stored::list(&**store, list, filters, &mut pages)?;
        pages.flush()?;
        return Ok(pages.count);
    }
    let stat = place.stat(&list.path).or_else(|error| match error.kind() {
        // A link to nowhere is something too.
        io::ErrorKind::NotFound => place.parent(&list.path).and_then(|(parent, name)| parent.stat_at(&name)),
        _ => Err(error),
    });
    let stat = stat.map_err(|error| named(&list.path, "stat", &error))?;
    let telling = list.details.then(|| telling_all(sees_all));
    let details = Details { usage: list.usage, telling: telling.as_ref() };
    // A listing of what is no directory is the thing itself, as `ls` has it.
    if list.itself || stat.kind != Kind::Dir {
        let itself = describe_itself(place, &list.path, stat, details);
        if takes_alone(filters, &itself) {
            pages.push(itself)?;
        }
        pages.flush()?;
        return Ok(pages.count);
    }
    let top = place.dir(&list.path).map_err(|error| named(&list.path, "open", &error))?;
    // Paths that wait, not open directories: a tree may be deeper than there are descriptors.
    let mut waiting = vec![Vec::new()];
    let mut taken = ListingRules::new(filters, &top);
    while let Some(path) = waiting.pop() {
        let below = list.recursive.then_some(&mut waiting);
        let listed = list_one(&top, &path, details, below, &mut taken, &mut pages);
        match listed {
            Ok(()) => {}
            Err(Listing::Gone(failure)) => return Err(failure),
            // Nothing at all could be listed. Below, a directory that cannot be read is an entry with its failure, and
            // the others are listed: one without rights must not hide the rest of a tree.
            Err(Listing::Unreadable(error)) if path.is_empty() => {
                return Err(named(&list.path, "list", &error));
            }
            Err(Listing::Unreadable(error)) => {
                let failure = Some(io_failure(Side::Source, "list", &error));
                pages.push(Entry { path, kind: Some(ItemKind::Directory), failure, ..Entry::default() })?;
            }
        }
    }
    pages.flush()?;
    Ok(pages.count)
}

/// Why the listing of one directory ended early.
enum Listing {
    /// Nobody takes the pages any more.
    Gone(Failure),
    /// The directory cannot be read.
    Unreadable(io::Error),
}

impl From<io::Error> for Listing {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Lists one directory; those in it join `waiting`, if it is to go on below.
fn list_one(
    top: &Dir,
    path: &[u8],
    details: Details<'_>,
    mut waiting: Option<&mut Vec<Vec<u8>>>,
    taken: &mut ListingRules<'_>,
    pages: &mut Pages<'_>,
) -> Result<(), Listing> {
    let directory = top.open_dir(path, Links::Refuse)?;
    taken.enter(path, &directory)?;
    let mut entries = directory.entries()?;
    let mut batch = Vec::new();
    // Entries are sent as they are read: a directory with millions of them needs the memory of a page.
    while entries.next_batch(&mut batch)? {
        for found in batch.drain(..) {
            let full = join(path, &found.name);
            if found.kind.is_some_and(|kind| !taken.takes(&full, kind)) {
                continue;
            }
            let entry = match directory.stat_at(&found.name) {
                // Only now it is known what it is.
                Ok(stat) if found.kind.is_none() && !taken.takes(&full, stat.kind) => continue,
                Ok(stat) if !taken.takes_as_it_is(&stat) => continue,
                Ok(stat) => {
                    if let Some(waiting) = waiting.as_mut().filter(|_| taken.enters(&stat)) {
                        waiting.push(full.clone());
                    }
                    let link_target = if stat.kind == Kind::Symlink {
                        directory.read_link(&found.name).unwrap_or_default()
                    } else {
                        Vec::new()
                    };
                    let more = details.of(&stat, Holder::Entry(&directory, &found.name));
                    entry(full, &stat, link_target, details.usage, more)
                }
                // Removed meanwhile, or not to be looked at: the name is listed all the same, with the reason.
                Err(error) => {
                    Entry { path: full, failure: Some(io_failure(Side::Source, "stat", &error)), ..Entry::default() }
                }
            };
            pages.push(entry).map_err(Listing::Gone)?;
        }
    }
    Ok(())
}

/// What a listing says of one thing.
fn entry(
    path: Vec<u8>,
    stat: &Stat,
    link_target: Vec<u8>,
    usage: bool,
    (names, attributes): (u32, OtherAttributes),
) -> Entry {
    Entry {
        allocated: usage.then(|| stat.blocks_512.saturating_mul(512)),
        twin: twin(stat).filter(|_| usage),
        path,
        kind: Some(kind_of(stat.kind)),
        size: stat.size,
        mode: stat.mode,
        mtime: time_of(stat.mtime),
        link_target,
        names,
        attributes,
        ..Entry::default()
    }
}

/// Of a file with several names, what all of them have. A digest: that two files have the same is as good as excluded,
/// and what a host calls its devices stays there.
fn twin(stat: &Stat) -> Option<NonZeroU64> {
    if stat.links < 2 || stat.kind == Kind::Dir {
        return None;
    }
    let identity = [stat.device.to_le_bytes(), stat.inode.to_le_bytes()].concat();
    let digest = blake3::hash(&identity);
    let bytes = std::array::from_fn(|index| digest.as_bytes()[index]);
    NonZeroU64::new(u64::from_le_bytes(bytes))
}

/// The path itself, a link not followed.
fn describe_itself(place: &Place, path: &[u8], followed: Stat, details: Details<'_>) -> Entry {
    // What has no name in a parent, as `/`, is described by what it leads to.
    let Ok((parent, name)) = place.parent(path) else {
        let opened = place.dir(path).ok();
        let more = opened.map(|directory| details.of(&followed, Holder::Directory(&directory)));
        return entry(path.to_vec(), &followed, Vec::new(), details.usage, more.unwrap_or_default());
    };
    let stat = parent.stat_at(&name).unwrap_or(followed);
    let link_target = if stat.kind == Kind::Symlink { parent.read_link(&name).unwrap_or_default() } else { Vec::new() };
    let more = details.of(&stat, Holder::Entry(&parent, &name));
    entry(name, &stat, link_target, details.usage, more)
}

/// Makes a directory, and those above it where that was asked for; then one that exists is no
/// error, as with `mkdir -p`.
pub fn make_directory(place: &Place, make: &MakeDirectory) -> Result<(), Failure> {
    let path = &make.path;
    let made = if make.parents {
        place.make_dirs(path, false).map(|_| ())
    } else {
        place.parent(path).and_then(|(parent, name)| parent.make_dir(&name, 0o777))
    };
    made.map_err(|error| io_failure(Side::Destination, "make the directory", &error).at_path(&path[..]))
}

/// Renames; onto an existing directory, into it, as `mv` does, unless the name has to be free. `replaces` is asked
/// before something else goes by that.
pub fn rename(place: &Place, rename: &Rename, replaces: MayDelete<'_>) -> Result<(), Failure> {
    let named =
        |failure: Failure| failure.during(format!("rename to {}", display_bytes(&rename.to))).at_path(&rename.from[..]);
    let fail = |error: io::Error| named(system_failure(Side::Destination, &error));
    let (from_dir, from_name) = place.parent(&rename.from).map_err(fail)?;
    // Followed: a link to a directory is one here, as it is for `mv`.
    let into = !rename.no_replace && place.stat(&rename.to).is_ok_and(|stat| stat.kind == Kind::Dir);
    let to = if into { join(&rename.to, &from_name) } else { rename.to.clone() };
    let (to_dir, to_name) = place.parent(&to).map_err(fail)?;
    // Before the rename: afterwards nothing tells that it did nothing.
    match names_of_one(&from_dir, &from_name, &to_dir, &to_name).map_err(fail)? {
        TwoNames::Same => {
            return Err(named(failure(ErrorCode::SameFile, Side::Destination, "both are the same file")));
        }
        // rename(2) does nothing to two hard links of one file, and reports success: `mv` that leaves both is no move.
        TwoNames::Links if rename.no_replace => return Err(named(taken())),
        TwoNames::Links => {
            replaces().map_err(named)?;
            return from_dir.unlink(&from_name).map_err(fail);
        }
        TwoNames::Others => {}
    }
    // In one step: what comes to stand there meanwhile is not replaced unasked.
    let renamed = match from_dir.rename_noreplace(&from_name, &to_dir, &to_name) {
        Err(error) if rename.no_replace => match error.kind() {
            io::ErrorKind::AlreadyExists => return Err(named(taken())),
            // The file system has no such step for this: what has the name is looked at right before.
            io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => match to_dir.stat_at(&to_name) {
                Ok(_) => return Err(named(taken())),
                Err(absent) if absent.kind() == io::ErrorKind::NotFound => {
                    from_dir.rename(&from_name, &to_dir, &to_name)
                }
                Err(unseen) => Err(unseen),
            },
            _ => Err(error),
        },
        Err(error) if error.kind() != io::ErrorKind::CrossesDevices => {
            replaces().map_err(named)?;
            from_dir.rename(&from_name, &to_dir, &to_name)
        }
        renamed => renamed,
    };
    renamed.map_err(|error| match error.kind() {
        // It would have to copy and remove, which is not what a rename promises; a copy is another verb.
        io::ErrorKind::CrossesDevices => {
            let why = "they are on different file systems";
            named(failure(ErrorCode::Unsupported, Side::Destination, why).for_reason(Reason::OtherFileSystem))
        }
        // rename(2) has no other use for it with names that are good.
        io::ErrorKind::InvalidInput if error.raw_os_error().is_some() => {
            let why = "a directory cannot be moved into itself";
            named(failure(ErrorCode::SameFile, Side::Destination, why))
        }
        _ => fail(why_refused(&to_dir, &to_name, why_refused(&from_dir, &from_name, error))),
    })
}

fn taken() -> Failure {
    failure(ErrorCode::AlreadyExists, Side::Destination, "something has that name")
}

/// What two names are to each other.
enum TwoNames {
    /// One and the same.
    Same,
    /// Two hard links of one file.
    Links,
    /// Names of two things, or one name that is spelled in two ways, which a rename changes.
    Others,
}

/// Tells what two names are to each other, by what they lead to and by what their directories list.
fn names_of_one(from_dir: &Dir, from: &[u8], to_dir: &Dir, to: &[u8]) -> io::Result<TwoNames> {
    let identity = |stat: &Stat| (stat.device, stat.inode);
    let stat = from_dir.stat_at(from)?;
    // Device and inode say whether it is one thing; on one thing a rename may mean three things.
    if !to_dir.stat_at(to).is_ok_and(|there| identity(&there) == identity(&stat)) {
        return Ok(TwoNames::Others);
    }
    if identity(&from_dir.stat_self()?) == identity(&to_dir.stat_self()?) {
        return match from == to {
            true => Ok(TwoNames::Same),
            // Where upper and lower case are one, both names may find the one entry that there is.
            false => Ok(if has_entry(from_dir, from)? && has_entry(to_dir, to)? {
                TwoNames::Links
            } else {
                TwoNames::Others
            }),
        };
    }
    // Two directories list one thing. A directory has no hard links: it is one name that two paths lead to.
    Ok(if stat.kind != Kind::Dir && stat.links > 1 { TwoNames::Links } else { TwoNames::Others })
}

/// Whether a directory lists a name spelled so.
fn has_entry(directory: &Dir, name: &[u8]) -> io::Result<bool> {
    let mut entries = directory.entries()?;
    let mut batch = Vec::new();
    while entries.next_batch(&mut batch)? {
        if batch.drain(..).any(|entry| entry.name == name) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Is asked before each entry that goes.
pub type MayDelete<'a> = &'a dyn Fn() -> Result<(), Failure>;

/// See [`remove::remove`]; what cannot be removed is told in pages.
pub fn remove(
    place: &Place,
    remove: &Remove,
    may_delete: MayDelete<'_>,
    send: &mut dyn FnMut(Vec<Entry>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut pages = Pages { page: Vec::new(), bytes: 0, count: 0, overlaps: Overlaps::new(&[], None), send };
    let removed = remove::remove(place, remove, may_delete, &mut |path, failure| {
        pages.push(Entry { path, failure: Some(failure), ..Entry::default() })
    })?;
    pages.flush().map(|()| removed)
}

/// Collects what transfers have left below a directory, and tells how much it was.
pub fn collect(
    place: &Place,
    collect: &Collect,
    send: &mut dyn FnMut(Vec<Entry>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let fail = |error: io::Error| io_failure(Side::Destination, "open", &error).at_path(&collect.path[..]);
    let top = place.dir(&collect.path).map_err(fail)?;
    let mut pages = Pages { page: Vec::new(), bytes: 0, count: 0, overlaps: Overlaps::new(&[], None), send };
    let rules = Rules {
        older_seconds: collect.older.as_secs(),
        now: carrack_sys::host::clock_seconds(),
        dry_run: collect.dry_run,
        only: collect.marker,
    };
    let mut removed = 0;
    // Each leftover is told as it goes, also one that could not be removed: it stops none of the others.
    storage::collect::collect(&top, rules, &mut |found: Collected| {
        removed += u64::from(found.result.is_ok());
        let failure = found.result.err().map(|error| io_failure(Side::Destination, "collect", &error));
        pages.push(Entry {
            path: found.path,
            kind: Some(kind_of(found.stat.kind)),
            // What it takes, not what it would have become.
            size: found.stat.blocks_512.saturating_mul(512),
            mode: found.stat.mode,
            mtime: time_of(found.stat.mtime),
            failure,
            ..Entry::default()
        })
    })?;
    pages.flush().map(|()| removed)
}

/// What [`sum`] works with.
pub struct Summing<'a> {
    /// The knobs.
    pub tuning: &'a Tuning,
    /// Set when nobody waits for digests any more: then it ends with a failure, within a file.
    pub unread: &'a Latch,
}

/// Digests of a file, or of every file below a directory.
pub fn sum(
    place: &Place,
    sum: &Sum,
    filters: &Filters,
    work: &Summing<'_>,
    send: &mut dyn FnMut(Vec<ItemReport>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    if let Place::Stored(_, store) = place {
        return stored::sum(&**store, sum, filters, work, send);
    }
    let stat = place.stat(&sum.path).map_err(|error| named(&sum.path, "stat", &error))?;
    let mut count = 0;
    if stat.kind != Kind::Dir {
        // Links named on the command line are followed, as far as the place allows.
        // Opened as a copy's source is, so that a digest has the same checks: a file that changes meanwhile has none.
        let name = sum.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        if !takes_alone(filters, &entry(name.to_vec(), &stat, Vec::new(), false, Default::default())) {
            return Ok(0);
        }
        let root = PosixSource::open(place, &sum.path)?;
        let result = digest(&root, &Walk::plain(0).item(b"", ItemKind::File), sum.digests, work);
        send(vec![summed(name.to_vec(), result)])?;
        return Ok(1);
    }
    stored::check_may_be_directory(sum)?;
    let top = place.dir(&sum.path).map_err(|error| named(&sum.path, "open", &error))?;
    let root = PosixSource::from(RootKind::Directory(Arc::new(top)));
    let listing = List { path: sum.path.clone(), recursive: true, ..List::default() };
    list(place, &listing, filters, false, &mut |page| {
        for entry in page {
            let result = match entry.failure {
                Some(failure) => Err(failure),
                None if entry.kind == Some(ItemKind::File) => {
                    digest(&root, &Walk::plain(0).item(&entry.path, ItemKind::File), sum.digests, work)
                }
                None => continue,
            };
            // One by one: digests of a large file take long, and the user is to see each when it is there.
            count += 1;
            send(vec![summed(entry.path, result)])?;
        }
        Ok(())
    })?;
    Ok(count)
}

fn summed(path: Vec<u8>, result: Result<(u64, FileDigests), Failure>) -> ItemReport {
    let (size, digests, outcome) = match result {
        Ok((size, digests)) => (size, digests, Outcome::Published),
        Err(failure) => (0, FileDigests::default(), Outcome::Failed(failure)),
    };
    ItemReport { path, kind: ItemKind::File, size, digests, judgment: None, outcome }
}

/// Digests an item of a source, which must be the same at the end as at the beginning.
fn digest(
    root: &dyn Source,
    item: &ScannedItem,
    digests: Digests,
    work: &Summing<'_>,
) -> Result<(u64, FileDigests), Failure> {
    // A file that has only just changed is waited for, as in a copy. No other work of this thread is held up by it.
    let mut rest = |time| !work.unread.wait(time);
    let source = root.open(item, &mut OpenOptions { tuning: work.tuning, may_grow: false, rest: &mut rest })?;
    let mut hasher = BlockHasher::new(digests, 0);
    let mut slice = vec![0; SLICE_BYTES];
    let mut offset = 0;
    loop {
        if work.unread.is_set() {
            return Err(failure(ErrorCode::ConnectionLost, Side::Link, "the control connection has ended"));
        }
        let (length, _) = source.read_next(offset, &mut slice, &|| work.unread.is_set())?;
        // Only at the end, when all has been read: a change before that shows here.
        if length == 0 {
            source.check_unchanged()?;
            return Ok((offset, hasher.finish(true).as_file(digests)));
        }
        hasher.update(&slice[..length]);
        offset += length as u64;
    }
}
