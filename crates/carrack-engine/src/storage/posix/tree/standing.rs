//! What stands at names below a directory: to be compared, to be given attributes, to be listed and deleted.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use carrack_core::attributes::{Attributes, Lacks, OtherAttributes};
use carrack_core::path::split_name;
use carrack_core::plan::compare::State;
use carrack_core::report::{Failure, ItemKind, Side};
use carrack_core::unicode::fold_case;
use carrack_sys::dir::{Dir, Kind, Links, Stat, stat_file};
use carrack_sys::file;

use super::Tree;
use crate::data::content::content_digest;
use crate::error::io_failure;
use crate::storage::descriptors::patiently;
use crate::storage::giving::MODE_MASK;
use crate::storage::posix::directories::OpenDir;
use crate::storage::posix::extended::Holder;
use crate::storage::posix::giving::{Getting, facts_of};
use crate::storage::posix::kinds::kind_of;
use crate::storage::posix::names::is_own;
use crate::storage::posix::own_directories::writable;
use crate::storage::posix::part::stat_entry;
use crate::storage::posix::refusal::why_refused;
use crate::storage::posix::times::{time_of, times_to_set};
use crate::storage::posix::unkept::{ToKeep, if_it_can};
use crate::storage::workers::MetadataWorkers;
use crate::storage::write::StandingItem;
use crate::sync::lock;

/// A directory that is opened when the first of its names is looked at; `None` where it is not there.
type LateDir = OnceLock<Option<Arc<OpenDir>>>;

/// What stands somewhere, as it is compared.
pub fn standing_item(stat: &Stat) -> StandingItem {
    let size = if stat.kind == Kind::File { stat.size } else { 0 };
    let state = State { kind: kind_of(stat.kind), size, mtime: Some(time_of(stat.mtime)) };
    let is_shared = stat.kind == Kind::File && stat.links > 1;
    StandingItem {
        state,
        facts: facts_of(stat),
        file: Some((stat.device, stat.inode)),
        folds: false,
        is_shared,
        is_mixture: false,
        lacks: Lacks::default(),
    }
}

impl Tree {
    /// What stands at each of these paths.
    pub fn standing(
        &self,
        paths: &[&[u8]],
        workers: Option<&MetadataWorkers>,
    ) -> Vec<Result<Option<StandingItem>, Failure>> {
        let fail = |path: &[u8], error: io::Error| io_failure(Side::Destination, "stat", &error).at_path(path);
        // Questions come by directory: each is opened once.
        let mut directories: Vec<(&[u8], LateDir)> = Vec::new();
        let mut looks = Vec::with_capacity(paths.len());
        for path in paths {
            let (parent, name) = split_name(path);
            if directories.last().is_none_or(|(last, _)| *last != parent) {
                directories.push((parent, LateDir::new()));
            }
            looks.push((directories.len() - 1, *path, name));
        }
        let look = |(directory, path, name): &(usize, &[u8], &[u8])| {
            if name.is_empty() {
                let top = &self.shared.directories.root.dir;
                let stat = top.stat_self().map(|stat| self.shared.giving().shown(stat, Holder::Directory(top)));
                return stat.map(|stat| Some(standing_item(&stat))).map_err(|error| fail(path, error));
            }
            let Some((parent, late)) = directories.get(*directory) else { return Ok(None) };
            let Some(open) = late.get_or_init(|| self.shared.directories.find(parent)) else { return Ok(None) };
            let stat = stat_entry(&open.dir, name).map_err(|error| fail(path, error))?;
            let stat = stat.map(|stat| self.shared.giving().shown(stat, Holder::Entry(&open.dir, name)));
            let (folds, is_mixture) = (open.folds(), self.is_mixture(path));
            Ok(stat.as_ref().map(|stat| StandingItem { folds, is_mixture, ..standing_item(stat) }))
        };
        match workers {
            Some(workers) => workers.look(&looks, look),
            None => looks.iter().map(look).collect(),
        }
    }

    /// What a file or a directory that stands there lacks of what is given and only its extended attributes show.
    pub fn lacks(&self, path: &[u8], wanted: &OtherAttributes) -> Lacks {
        let giving = self.shared.giving();
        let (parent, name) = split_name(path);
        if !giving.kept().are_listed() {
            return Lacks::default();
        }
        if name.is_empty() {
            let top = Holder::Directory(&self.shared.directories.root.dir);
            return giving.lacks(top, wanted).unwrap_or_default();
        }
        let found = self.shared.directories.find(parent);
        // What cannot be read is left as it is.
        found.and_then(|parent| giving.lacks(Holder::Entry(&parent.dir, name), wanted).ok()).unwrap_or_default()
    }

    /// The first bytes of a file that stands there, at most so many.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn first_bytes(&self, path: &[u8], most: u64) -> Result<Option<Vec<u8>>, Failure> {
        let fail = |error: io::Error| io_failure(Side::Destination, "read to compare", &error).at_path(path);
        let Some(opened) = self.open_standing(path).map_err(fail)? else { return Ok(None) };
        let mut content = Vec::new();
        (&opened).take(most).read_to_end(&mut content).map_err(fail)?;
        Ok(Some(content))
    }

    /// The BLAKE3 of a file that stands there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn content(
        &self,
        path: &[u8],
        threads: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<[u8; 32]>, Failure> {
        let fail = |error: io::Error| io_failure(Side::Destination, "read to compare", &error).at_path(path);
        let Some(opened) = self.open_standing(path).map_err(fail)? else { return Ok(None) };
        content_of(&opened, threads, stop, &fail)
    }

    /// Gives what stands there permissions, a time, and what else is kept; whether anything has changed. `of` is the
    /// file that was compared.
    ///
    /// # Errors
    /// Those of the system, but for a refusal, which is told as what was not kept; when another file stands there.
    pub fn set_attributes(
        &self,
        path: &[u8],
        attributes: &Attributes,
        of: Option<(u64, u64)>,
    ) -> Result<bool, Failure> {
        let (parent, name) = split_name(path);
        let Attributes { mode, mtime, others } = attributes;
        let giving = self.shared.giving();
        let set = |directory: &OpenDir| {
            let shown = |stat| giving.shown(stat, Holder::Entry(&directory.dir, name));
            let real = directory.dir.stat_at(name)?;
            let before = shown(real);
            if self.keeps_shared && before.kind == Kind::File && before.links > 1 {
                return Err(io::Error::other("the file has further names, of which nothing may change"));
            }
            let had = before.mode & 0o7777;
            let mut listed = (OtherAttributes::default(), OtherAttributes::default());
            match real.kind {
                Kind::Symlink => giving.give(Getting::Link(&directory.dir, name), *mode, others, had)?,
                Kind::File if giving.gives() => {
                    // By a handle: nobody's file becomes another's by having been put in its place.
                    let file = patiently(|| directory.dir.open_read(name, Links::Refuse))?;
                    let found = stat_file(&file)?;
                    let is_it = of.is_none_or(|of| of == (found.device, found.inode));
                    if found.kind != Kind::File || !is_it {
                        return Err(io::Error::other("another file has come to stand there"));
                    }
                    listed.0 = giving.listed(Holder::File(&file));
                    giving.give(Getting::File(&file), *mode, others, had)?;
                    listed.1 = giving.listed(Holder::File(&file));
                }
                Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharDevice => {
                    let held = directory.dir.hold(name)?;
                    if held.stat()?.kind != before.kind {
                        return Err(io::Error::other("something else has come to stand there"));
                    }
                    giving.give(Getting::Special(&held), *mode, others, had)?;
                }
                _ => {
                    let mode = giving.mode(*mode, others, &facts_of(&before));
                    if mode != had {
                        if_it_can(directory.dir.set_mode(name, mode))?;
                    }
                }
            }
            let mtime = mtime.filter(|mtime| *mtime != time_of(before.mtime));
            if let Some(times) = times_to_set(mtime, others) {
                if_it_can(directory.dir.set_times(name, times))?;
            }
            Ok((before, shown(directory.dir.stat_at(name)?), listed))
        };
        let (before, after, listed) = self.shared.directories.within(parent, "set permissions and times", set)?;
        let mode = (after.kind != Kind::Symlink).then_some(mode & MODE_MASK);
        self.shared.unkept.look(|| path.to_vec(), &ToKeep { mode, mtime: *mtime, others }, &after, &listed.1);
        let has_changed = (facts_of(&before), before.mtime) != (facts_of(&after), after.mtime);
        Ok(has_changed || listed.0 != listed.1)
    }

    /// Whether a link stands there that says this.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_link_to(&self, path: &[u8], target: &[u8]) -> Result<bool, Failure> {
        let (parent, name) = split_name(path);
        let Some(directory) = self.shared.directories.find(parent) else { return Ok(false) };
        let read = || match stat_entry(&directory.dir, name)? {
            Some(stat) if stat.kind == Kind::Symlink => Ok(directory.dir.read_link(name)? == target),
            _ => Ok(false),
        };
        read().map_err(|error: io::Error| io_failure(Side::Destination, "read the link", &error).at_path(path))
    }

    /// Whether the directory that a path is in is there.
    pub fn has_parent(&self, path: &[u8]) -> bool {
        self.shared.directories.find(split_name(path).0).is_some()
    }

    /// A file, to be read; `None` where there is none.
    pub(super) fn open_standing(&self, path: &[u8]) -> io::Result<Option<File>> {
        match patiently(|| self.shared.directories.root.dir.open_read(path, Links::Refuse)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn open_below(&self, path: &[u8]) -> io::Result<Dir> {
        let root = &self.shared.directories.root.dir;
        if path.is_empty() { root.try_clone() } else { patiently(|| root.open_dir(path, Links::Refuse)) }
    }

    /// Names in a directory, but those of Carrack's own; whether there are none of those.
    ///
    /// # Errors
    /// When not all of them can be told.
    pub fn list(&self, directory: &[u8], each: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, Failure> {
        let fail = |error: io::Error| io_failure(Side::Destination, "list", &error).at_path(directory);
        let opened = match self.open_below(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            opened => opened.map_err(fail)?,
        };
        let mut entries = opened.entries().map_err(fail)?;
        let (mut batch, mut are_all) = (Vec::new(), true);
        while entries.next_batch(&mut batch).map_err(fail)? {
            for entry in batch.drain(..) {
                // What has such a name and may be a file of Carrack's own stays.
                if is_own(&entry.name, entry.kind.unwrap_or(Kind::File)) {
                    are_all = false;
                } else if !each(&entry.name) {
                    return Ok(false);
                }
            }
        }
        Ok(are_all)
    }

    /// Whether two different names may be one in a directory. One that is yet to be made is like the one it is made in.
    pub fn folds_names(&self, mut directory: &[u8]) -> bool {
        loop {
            match self.shared.directories.find(directory) {
                Some(open) => return open.folds(),
                // The top is always found.
                None => directory = split_name(directory).0,
            }
        }
    }

    /// Whether upper and lower case are surely one at the top.
    pub fn folds_case(&self) -> bool {
        self.shared.directories.root.folds_case()
    }

    /// Whether a file that stands at a path is no other name's of this copy; from now on it is this one's. A second
    /// hard link is a name of its own.
    pub fn claim(&self, path: &[u8], file: (u64, u64)) -> bool {
        let first = lock(&self.shared.published).entry(file).or_insert_with(|| path.to_vec()).clone();
        let is_one = fold_case(&first) == fold_case(path);
        if is_one || (first.is_ascii() && path.is_ascii()) {
            return first == path || !is_one;
        }
        // Two forms of a letter are one unless their directories list both.
        let is_listed = |path: &[u8]| {
            let ((parent, name), mut is_listed) = (split_name(path), false);
            let told = self.list(parent, &mut |other| {
                is_listed = other == name;
                !is_listed
            });
            told.is_ok() && is_listed
        };
        is_listed(&first) && is_listed(path)
    }

    /// Deletes a file or a link, or a directory with nothing in it.
    ///
    /// # Errors
    /// Why it stays.
    pub fn delete(&self, path: &[u8], kind: ItemKind) -> Result<(), Failure> {
        let (parent, name) = split_name(path);
        if kind != ItemKind::Directory && self.shared.keeps() {
            return match self.open_below(parent) {
                Ok(directory) => self.shared.keep_deleted(path, &directory).map_err(|why| why.at_path(path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(io_failure(Side::Destination, "delete", &error).at_path(path)),
            };
        }
        let gone = self.open_below(parent).and_then(|directory| match kind {
            ItemKind::Directory => writable(&directory, || directory.remove_dir(name)),
            _ => {
                let gone = writable(&directory, || directory.unlink(name));
                gone.map_err(|error| why_refused(&directory, name, error))
            }
        });
        match gone {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_failure(Side::Destination, "delete", &error).at_path(path))
            }
            _ => Ok(()),
        }
    }

    /// Takes away one name of a file that has another, if it is this one (device and inode); `false` if another one
    /// stands there, or nothing.
    ///
    /// # Errors
    /// Why it stays.
    pub fn forget_name(&self, path: &[u8], file: (u64, u64)) -> Result<bool, Failure> {
        let (parent, name) = split_name(path);
        let fail = |error: io::Error| io_failure(Side::Destination, "rename", &error).at_path(path);
        let directory = match self.open_below(parent) {
            // The name went with its directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(fail)?,
        };
        let is_it = stat_entry(&directory, name).map_err(fail)?.is_some_and(|it| (it.device, it.inode) == file);
        if is_it {
            let gone = writable(&directory, || directory.unlink(name));
            gone.map_err(|error| fail(why_refused(&directory, name, error)))?;
        }
        Ok(is_it)
    }

    /// The content of a small file that may be there.
    ///
    /// # Errors
    /// When it cannot be read, or is longer.
    pub fn read_rules(&self, path: &[u8], most: usize) -> Result<Option<Vec<u8>>, Failure> {
        let fail = |error: io::Error| io_failure(Side::Destination, "read the rules", &error).at_path(path);
        let opened = self.open_standing(path).map_err(fail)?;
        opened.map(|opened| read_bounded(&opened, most)).transpose().map_err(fail)
    }

    /// A file without a name.
    ///
    /// # Errors
    /// Those of the system.
    pub fn scratch(&self) -> Result<File, Failure> {
        let root = &self.shared.directories.root.dir;
        let name = self.names.numbered(b"deletions", self.next_part.fetch_add(1, Ordering::Relaxed));
        let made = root.create_new(&name.name).and_then(|file| root.unlink(&name.name).map(|()| file));
        made.map_err(|error| io_failure(Side::Destination, "make room for the list of what is deleted", &error))
    }
}

/// The BLAKE3 of an open file; `None` once told to stop.
///
/// # Errors
/// When it cannot be read, as `fail` tells it.
pub fn content_of(
    opened: &File,
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    fail: &(dyn Fn(io::Error) -> Failure + Sync),
) -> Result<Option<[u8; 32]>, Failure> {
    let size = stat_file(opened).map_err(fail)?.size;
    let read = |offset: u64, out: &mut [u8]| match file::read_full_at(opened, out, offset) {
        Ok(read) if read == out.len() => Ok(()),
        Ok(_) => Err(fail(io::ErrorKind::UnexpectedEof.into())),
        Err(error) => Err(fail(error)),
    };
    content_digest(size, threads, &read, stop)
}

/// All of a file, which must not be longer.
///
/// # Errors
/// Those of reading it; that it is longer.
pub fn read_bounded(file: &File, most: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut content)?;
    if content.len() > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
    }
    Ok(content)
}
