//! Walking a source: what there is, streamed, in bounded memory.
//!
//! A directory is read in batches, each sorted by inode so that a disk reads its inodes in order. Names of subdirectories wait on a
//! stack; nothing else is held. Symbolic links are never followed; a directory that stands below itself, by a bind mount or by a
//! broken file system, is not entered again.

use std::io;

use carrack_core::attributes::Attributes;
use carrack_core::limits;
use carrack_core::path::join;
use carrack_core::report::{ErrorCode, Failure, ItemKind, Reason, Side};
use carrack_core::selection::{Selected, Selection, place};
use carrack_core::transfer::{Fingerprint, ScannedItem};
use carrack_sys::dir::{Dir, Entry, Kind, Links, Stat};
use carrack_sys::host::clock_seconds;

use super::descriptors::patiently;
use super::identity::{Ground, Grounds, of_synthetic};
use super::names::is_own;
use super::source::{RootKind, SourceRoot};
use super::times::time_of;
use crate::error::{failure, io_failure};

/// What a walk finds.
pub enum Found {
    /// An item, and of a directory whether it will be entered next.
    Item(ScannedItem),
    /// Something that could not be looked at: its place (kind and size are not known) and why.
    Failure(ScannedItem, Failure),
    /// A marker or part file of Carrack's own: left out.
    Own,
}

/// Where a walk takes attributes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// As this system has them, which on NFS, SMB and FUSE may be seconds old.
    Cached,
    /// From whoever stores them, which over a network takes a question for each item: where they say what need not be sent.
    Stored,
}

impl Freshness {
    fn stat(self, directory: &Dir, name: &[u8], links: Links) -> io::Result<Stat> {
        match self {
            Self::Cached => directory.stat(name, links),
            Self::Stored => directory.stat_uncached(name, links),
        }
    }
}

/// Walks one source and hands everything that is selected, and the directories above it, to `each`, until that says to stop (`false`).
pub fn walk(
    number: u32,
    root: &SourceRoot,
    selection: Option<&Selection>,
    attributes: Freshness,
    each: &mut dyn FnMut(Found) -> bool,
) {
    let covers = covered(selection, &root.target, b"");
    let is_directory = matches!(root.kind, RootKind::Directory(_));
    if covers == Selected::No || (covers == Selected::Above && !is_directory) {
        return;
    }
    let item = |path: &[u8], kind, size, fingerprint| ScannedItem {
        root: number,
        path: path.to_vec(),
        kind,
        size,
        attributes: Attributes { mode: 0o644, mtime: None },
        sparse: false,
        changed: None,
        file: None,
        fingerprint,
    };
    match &root.kind {
        RootKind::Directory(directory) => {
            let (target, grounds) = (&root.target[..], &root.grounds);
            Walk { number, root: directory, target, grounds, selection, attributes, each }.run();
        }
        RootKind::Entry(parent, name, links) => {
            let now = clock_seconds();
            let found = match attributes.stat(parent, name, *links) {
                Ok(stat) => Found::Item(scanned(number, Vec::new(), &stat, ground_of(root, parent), now)),
                Err(error) => Found::Failure(item(b"", ItemKind::File, None, None), stat_failure(&error)),
            };
            each(found);
        }
        RootKind::Stdin(_) => {
            each(Found::Item(item(b"", ItemKind::File, None, None)));
        }
        RootKind::Zero(size) => {
            each(Found::Item(item(b"", ItemKind::File, Some(*size), Some(of_synthetic("zero", *size)))));
        }
        RootKind::Random(size) => {
            each(Found::Item(item(b"", ItemKind::File, Some(*size), Some(of_synthetic("random", *size)))));
        }
        #[cfg(test)]
        RootKind::Panics(size) => {
            assert!(*size > 0, "a source that panics was listed");
            each(Found::Item(item(b"", ItemKind::File, Some(*size), None)));
        }
    }
}

/// The file system of a directory that holds a source; nothing is said of one that cannot be asked.
fn ground_of(root: &SourceRoot, directory: &Dir) -> Option<Ground> {
    directory.stat_self().ok().map(|stat| root.grounds.of(stat.device, directory))
}

/// What stands now where an item was found that changed while it was read.
///
/// # Errors
/// With [`ErrorCode::SourceVanished`] when nothing does, and [`ErrorCode::SourceChanged`] when it is something of another kind.
pub fn look_again(root: &SourceRoot, item: &ScannedItem) -> Result<ScannedItem, Failure> {
    let now = clock_seconds();
    let stat = match &root.kind {
        RootKind::Directory(top) => {
            let (parent, name) = carrack_core::path::split_name(&item.path);
            patiently(|| top.open_dir(parent, Links::Refuse))
                .and_then(|directory| Ok((directory.stat_at(name)?, ground_of(root, &directory))))
        }
        RootKind::Entry(parent, name, links) => parent.stat(name, *links).map(|stat| (stat, ground_of(root, parent))),
        RootKind::Stdin(_) | RootKind::Zero(_) | RootKind::Random(_) => return Ok(item.clone()),
        #[cfg(test)]
        RootKind::Panics(_) => return Ok(item.clone()),
    };
    let (stat, ground) = stat.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => failure(ErrorCode::SourceVanished, Side::Source, "vanished while it was copied"),
        _ => io_failure(Side::Source, "stat", &error),
    })?;
    let found = scanned(item.root, item.path.clone(), &stat, ground, now);
    if found.kind != item.kind {
        return Err(failure(ErrorCode::SourceChanged, Side::Source, "is something else than when it was listed"));
    }
    Ok(found)
}

/// How a path below a source's target stands to what is selected, if anything is; and it has been found.
fn covered(selection: Option<&Selection>, target: &[u8], path: &[u8]) -> Selected {
    let Some(selection) = selection else { return Selected::Wanted };
    let path = place(target, path);
    selection.found(&path);
    selection.covers(&path)
}

/// What was selected and not found below a source's target: its place and why. What lies below two is the first's.
pub fn missing<'a>(roots: &'a [SourceRoot], selection: &'a Selection) -> impl Iterator<Item = Found> + 'a {
    selection.missing().filter_map(|path| {
        let below = |target: &[u8]| match target {
            b"" => Some(path.to_vec()),
            target => match path.strip_prefix(target)? {
                b"" => Some(Vec::new()),
                rest => rest.strip_prefix(b"/").map(<[u8]>::to_vec),
            },
        };
        let (number, path) =
            roots.iter().enumerate().find_map(|(number, root)| Some((number, below(&root.target)?)))?;
        let item = ScannedItem {
            root: number as u32,
            path,
            kind: ItemKind::File,
            size: None,
            attributes: Attributes::default(),
            sparse: false,
            changed: None,
            file: None,
            fingerprint: None,
        };
        let why = "is not there, and was selected";
        let absent = failure(ErrorCode::NotFound, Side::Source, why).for_reason(Reason::SelectedAbsent);
        Some(Found::Failure(item, absent))
    })
}

/// As an item of a transfer, looked at when the clock said `now`.
fn scanned(root: u32, path: Vec<u8>, stat: &Stat, ground: Option<Ground>, now: i64) -> ScannedItem {
    let (kind, size) = match stat.kind {
        Kind::File => (ItemKind::File, Some(stat.size)),
        Kind::Dir => (ItemKind::Directory, None),
        Kind::Symlink => (ItemKind::Symlink, None),
        _ => (ItemKind::Special, None),
    };
    // Rounding to blocks and compression allocate less too; only a file with a good part missing is worth asking for its holes.
    let sparse = kind == ItemKind::File && stat.blocks_512.saturating_mul(512) < stat.size - stat.size / 8;
    let changed = Some(time_of(stat.ctime));
    let attributes = Attributes::new(stat.mode, time_of(stat.mtime));
    let file = Some((stat.device, stat.inode));
    let lasts = matches!(kind, ItemKind::File | ItemKind::Symlink);
    let fingerprint = ground.filter(|_| lasts).and_then(|ground| ground.fingerprint(stat, now));
    ScannedItem { root, path, kind, size, attributes, sparse, changed, file, fingerprint }
}

fn stat_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => {
            failure(ErrorCode::SourceVanished, Side::Source, "vanished while its directory was listed")
        }
        _ => io_failure(Side::Source, "stat", error),
    }
}

struct Walk<'a> {
    number: u32,
    root: &'a Dir,
    target: &'a [u8],
    grounds: &'a Grounds,
    selection: Option<&'a Selection>,
    attributes: Freshness,
    each: &'a mut dyn FnMut(Found) -> bool,
}

impl Walk<'_> {
    fn run(&mut self) {
        match self.root.stat_self() {
            Ok(stat) if !(self.each)(Found::Item(scanned(self.number, Vec::new(), &stat, None, 0))) => {
                return;
            }
            _ => {}
        }
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        let mut trail = Trail::default();
        while let Some(path) = waiting.pop() {
            match self.directory(&path, &mut waiting, &mut trail) {
                Ok(true) => {}
                Ok(false) => return,
                // What was read before the error has been told; that the rest was not is an error, never an end.
                Err(error) => {
                    if !self.fail(&path, ItemKind::Directory, listing_failure(&error)) {
                        return;
                    }
                }
            }
        }
    }

    fn fail(&mut self, path: &[u8], kind: ItemKind, why: Failure) -> bool {
        let item = ScannedItem {
            root: self.number,
            path: path.to_vec(),
            kind,
            size: None,
            attributes: Attributes::default(),
            sparse: false,
            changed: None,
            file: None,
            fingerprint: None,
        };
        (self.each)(Found::Failure(item, why))
    }

    fn directory(&mut self, path: &[u8], waiting: &mut Vec<Vec<u8>>, trail: &mut Trail) -> io::Result<bool> {
        let directory = patiently(|| self.root.open_dir(path, Links::Refuse))?;
        let ground = self.grounds.of(trail.enter(path, &directory)?.device, &directory);
        let mut entries = patiently(|| directory.entries())?;
        let mut batch = Vec::new();
        while entries.next_batch(&mut batch)? {
            batch.sort_unstable_by_key(|entry: &Entry| entry.inode);
            for entry in batch.drain(..) {
                if !self.entry((&directory, ground), path, &entry, waiting) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn entry(
        &mut self,
        (directory, ground): (&Dir, Ground),
        path: &[u8],
        entry: &Entry,
        waiting: &mut Vec<Vec<u8>>,
    ) -> bool {
        let full = join(path, &entry.name);
        if self.selection.as_ref().is_some_and(|selection| selection.covers(&join(self.target, &full)) == Selected::No)
        {
            return true;
        }
        // Below a target, which is a name, it must still be a path.
        if full.len() >= limits::PATH_BYTES - limits::NAME_BYTES {
            let message = format!("is deeper than {} bytes of path: not entered", limits::PATH_BYTES);
            return self.fail(path, ItemKind::Directory, failure(ErrorCode::NameTooLong, Side::Source, message));
        }
        let now = clock_seconds();
        match self.attributes.stat(directory, &entry.name, Links::Refuse) {
            Ok(stat) if is_own(&entry.name, stat.kind) => {
                covered(self.selection, self.target, &full);
                (self.each)(Found::Own)
            }
            Ok(stat) => {
                let item = scanned(self.number, full, &stat, Some(ground), now);
                let covers = covered(self.selection, self.target, &item.path);
                if covers != Selected::Wanted && item.kind != ItemKind::Directory {
                    return true;
                }
                if item.kind == ItemKind::Directory {
                    waiting.push(item.path.clone());
                }
                (self.each)(Found::Item(item))
            }
            Err(error) => {
                covered(self.selection, self.target, &full);
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
pub fn link_target(root: &SourceRoot, path: &[u8]) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
    let RootKind::Directory(top) = &root.kind else {
        return Err(failure(ErrorCode::Internal, Side::Source, "a link outside a directory"));
    };
    let (parent, name) = carrack_core::path::split_name(path);
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
    fn a_directory_is_entered_again_beside_itself_and_not_below() {
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
