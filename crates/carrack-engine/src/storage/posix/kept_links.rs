//! Links at a destination that lead to directories, kept and written through: rsync's `-K`.
//!
//! Each path is turned into the one that it means before the store below sees it: a link on the way is replaced by what
//! it says, as long as that lies below the destination. The store itself follows no link as ever: one that is exchanged
//! meanwhile leads nowhere.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use carrack_core::attributes::{Attributes, Lacks, OtherAttributes};
use carrack_core::backup::Backup;
use carrack_core::digest::FileDigests;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::{above, display_bytes, join, split_name, within};
use carrack_core::report::{DestinationCounts, ItemKind, Unfinished, Unsynced};
use carrack_core::request::Digests;
use carrack_core::special::SpecialFile;
use carrack_sys::dir::{Dir, Kind, Links};

use super::directories::{exchanged, key};
use crate::error::{failure, io_failure};
use crate::storage::properties::{Properties, WriteOptions};
use crate::storage::workers::MetadataWorkers;
use crate::storage::write::{
    Begun, Destination, EarlierItem, NewDirectory, NewFile, Opening, Referred, SmallFile, StandingItem, Stored,
    UnkeptSoFar,
};
use crate::sync::lock;

/// Directories whose meaning is remembered in full.
const REMEMBERED: usize = 4096;
/// Links that lead to each other, as the kernel counts them.
const LINKS_IN_A_ROW: usize = 40;

/// A destination whose links to directories are kept.
pub struct KeptLinks<D> {
    inner: D,
    top: Dir,
    backup: Option<Backup>,
    meanings: Mutex<Meanings>,
}

#[derive(Default)]
struct Meanings {
    /// What a directory's path means. Looked up again where it was forgotten.
    found: HashMap<Vec<u8>, Vec<u8>>,
    /// The same by digests of both, of all of them: what a path means stays what it was.
    all: HashMap<[u8; 16], [u8; 16]>,
    /// By digest of what is meant: the digest of the path that means it.
    owners: HashMap<[u8; 16], [u8; 16]>,
    /// Directories that links lead to, each with its name at the source.
    led_to: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl<D: Destination> KeptLinks<D> {
    /// Below `top`, where `inner` writes, and keeps what it replaces.
    pub fn new(inner: D, top: Dir, backup: Option<Backup>) -> Self {
        Self { inner, top, backup, meanings: Mutex::default() }
    }

    /// What the path of a directory means.
    fn directory(&self, path: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut meant = Vec::new();
        for path in above(path).chain((!path.is_empty()).then_some(path)) {
            if let Some(found) = lock(&self.meanings).found.get(path) {
                meant.clone_from(found);
                continue;
            }
            let name = split_name(path).1;
            let plain = join(&meant, name);
            meant = self.led_to(&meant, name).map_err(|why| why.at_path(path))?;
            let is_led = meant != plain;
            if is_led && self.backup.as_ref().is_some_and(|backup| backup.holds(&meant, true)) {
                return Err(leads_astray("leads to where old files are kept").at_path(path));
            }
            lock(&self.meanings).remember(path, &meant, is_led)?;
        }
        Ok(meant)
    }

    /// Where a name in a directory leads: to itself, where it is no link.
    fn led_to(&self, directory: &[u8], name: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut at = directory.to_vec();
        let mut waiting = vec![name.to_vec()];
        let mut links = 0;
        while let Some(name) = waiting.pop() {
            match &name[..] {
                b"" | b"." => continue,
                b".." if at.is_empty() => return Err(leads_astray("leads out of the destination")),
                b".." => {
                    at = split_name(&at).0.to_vec();
                    continue;
                }
                _ => {}
            }
            let next = join(&at, &name);
            let kind = match self.top.stat(&next, Links::Refuse) {
                Ok(stat) => Some(stat.kind),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                // Whether it may be entered is found when it is.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && links == 0 => None,
                Err(error) => return Err(io_failure(Side::Destination, "stat", &error)),
            };
            match kind {
                Some(Kind::Symlink) => {
                    links += 1;
                    let says = self.says(&at, &name)?;
                    if says.starts_with(b"/") {
                        return Err(leads_astray(&format!("leads to {}, from the root", display_bytes(&says))));
                    }
                    if links > LINKS_IN_A_ROW {
                        return Err(leads_astray("leads in a circle"));
                    }
                    waiting.extend(says.rsplit(|&byte| byte == b'/').map(<[u8]>::to_vec));
                }
                // What is no link is the store's to make, or to refuse.
                _ if links == 0 => at = next,
                Some(Kind::Dir) => at = next,
                _ => return Err(leads_astray(&format!("leads to {}, where no directory is", display_bytes(&next)))),
            }
        }
        Ok(at)
    }

    fn says(&self, directory: &[u8], name: &[u8]) -> Result<Vec<u8>, Failure> {
        let fail = |error: io::Error| io_failure(Side::Destination, "read the link", &error);
        if directory.is_empty() {
            return self.top.read_link(name).map_err(fail);
        }
        self.top.pass_dir(directory, Links::Refuse).and_then(|directory| directory.read_link(name)).map_err(fail)
    }

    /// What the path of an item means: its own name is not followed.
    fn item(&self, path: &[u8]) -> Result<Vec<u8>, Failure> {
        let (parent, name) = split_name(path);
        Ok(if name.is_empty() { Vec::new() } else { join(&self.directory(parent)?, name) })
    }

    /// The source's path of what is at a path of the store.
    fn at_source(&self, path: &[u8]) -> Vec<u8> {
        let meanings = lock(&self.meanings);
        let mut at = Some(path);
        while let Some(directory) = at {
            match (meanings.led_to.get(directory), within(path, directory)) {
                (Some(name), Some(b"")) => return name.clone(),
                (Some(name), Some(rest)) => return join(name, rest),
                _ => at = (!directory.is_empty()).then(|| split_name(directory).0),
            }
        }
        path.to_vec()
    }
}

impl Meanings {
    /// Two directories of the source must not become one, and none may become another while the copy runs.
    fn remember(&mut self, path: &[u8], meant: &[u8], is_led: bool) -> Result<(), Failure> {
        if *self.all.entry(key(path)).or_insert_with(|| key(meant)) != key(meant) {
            return Err(exchanged(path));
        }
        if meant.is_empty() || *self.owners.entry(key(meant)).or_insert_with(|| key(path)) != key(path) {
            let shown = if meant.is_empty() { ".".into() } else { display_bytes(meant).to_string() };
            let why = format!("means {shown} at the destination, where another directory of the source goes already");
            return Err(failure(ErrorCode::AlreadyExists, Side::Destination, why).at_path(path));
        }
        if is_led {
            self.led_to.insert(meant.to_vec(), path.to_vec());
        }
        if self.found.len() >= REMEMBERED {
            self.found.clear();
        }
        self.found.insert(path.to_vec(), meant.to_vec());
        Ok(())
    }
}

fn leads_astray(how: &str) -> Failure {
    let why =
        format!("is a symbolic link that {how}: only links to directories below the destination are written through");
    failure(ErrorCode::Unsupported, Side::Destination, why)
}

impl<D: Destination> Destination for KeptLinks<D> {
    fn properties(&self) -> Properties {
        self.inner.properties()
    }

    fn known_count(&self, wanted: Digests) -> u64 {
        self.inner.known_count(wanted)
    }

    fn known(&self, item: &EarlierItem<'_>, options: &WriteOptions, stop: &dyn Fn() -> bool) -> Option<FileDigests> {
        let path = self.item(item.path).ok()?;
        self.inner.known(&EarlierItem { path: &path, ..item.clone() }, options, stop)
    }

    fn standing(
        &self,
        paths: &[&[u8]],
        workers: Option<&MetadataWorkers>,
    ) -> Vec<Result<Option<StandingItem>, Failure>> {
        let meant: Vec<_> = paths.iter().map(|path| self.item(path)).collect();
        let found: Vec<&[u8]> = meant.iter().flatten().map(Vec::as_slice).collect();
        let mut found = self.inner.standing(&found, workers).into_iter();
        let answer = |meant: Result<Vec<u8>, Failure>| meant.and_then(|_| found.next().unwrap_or(Ok(None)));
        meant.into_iter().map(answer).collect()
    }

    fn standing_directory(&self, path: &[u8]) -> Result<Option<StandingItem>, Failure> {
        self.inner.standing_directory(&self.directory(path)?)
    }

    fn lacks(&self, path: &[u8], wanted: &OtherAttributes) -> Lacks {
        self.item(path).map_or(Lacks::default(), |path| self.inner.lacks(&path, wanted))
    }

    fn first_bytes(&self, path: &[u8], most: u64) -> Result<Option<Vec<u8>>, Failure> {
        self.inner.first_bytes(&self.item(path)?, most)
    }

    fn content(
        &self,
        path: &[u8],
        threads: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<[u8; 32]>, Failure> {
        self.inner.content(&self.item(path)?, threads, stop)
    }

    fn set_attributes(&self, path: &[u8], attributes: &Attributes, of: Option<(u64, u64)>) -> Result<bool, Failure> {
        self.inner.set_attributes(&self.item(path)?, attributes, of)
    }

    fn note_unkept(&self, path: &[u8], attributes: &Attributes) {
        if let Ok(path) = self.item(path) {
            self.inner.note_unkept(&path, attributes);
        }
    }

    fn is_link_to(&self, path: &[u8], target: &[u8]) -> bool {
        self.item(path).is_ok_and(|path| self.inner.is_link_to(&path, target))
    }

    fn list(&self, directory: &[u8], each: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, Failure> {
        self.inner.list(&self.directory(directory)?, each)
    }

    fn folds_names(&self, directory: &[u8]) -> bool {
        self.directory(directory).is_ok_and(|directory| self.inner.folds_names(&directory))
    }

    fn folds_case(&self) -> bool {
        self.inner.folds_case()
    }

    fn claim(&self, path: &[u8], file: (u64, u64)) -> bool {
        self.item(path).is_ok_and(|path| self.inner.claim(&path, file))
    }

    fn delete(&self, path: &[u8], kind: ItemKind) -> Result<(), Failure> {
        self.inner.delete(&self.item(path)?, kind)
    }

    fn forget_name(&self, path: &[u8], file: (u64, u64)) -> Result<bool, Failure> {
        self.inner.forget_name(&self.item(path)?, file)
    }

    fn read_rules(&self, path: &[u8], most: usize) -> Result<Option<Vec<u8>>, Failure> {
        self.inner.read_rules(&self.item(path)?, most)
    }

    fn scratch(&self) -> Result<File, Failure> {
        self.inner.scratch()
    }

    fn begin(&self, file: &NewFile<'_>, options: &WriteOptions, believe: bool) -> Result<Opening, Failure> {
        let path = self.item(file.path)?;
        self.inner.begin(&NewFile { path: &path, ..file.clone() }, options, believe)
    }

    fn write_small(&self, small: &SmallFile<'_>, options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure> {
        let path = self.item(small.path)?;
        self.inner.write_small(&at(small, &path), options, content)
    }

    fn begin_small(&self, small: &SmallFile<'_>, options: &WriteOptions, size: u64) -> Result<Begun, Failure> {
        let path = self.item(small.path)?;
        self.inner.begin_small(&at(small, &path), options, size)
    }

    fn write_link(&self, small: &SmallFile<'_>, options: &WriteOptions, target: &[u8]) -> Result<Stored, Failure> {
        let path = self.item(small.path)?;
        self.inner.write_link(&at(small, &path), options, target)
    }

    fn write_special(
        &self,
        small: &SmallFile<'_>,
        options: &WriteOptions,
        special: SpecialFile,
    ) -> Result<Stored, Failure> {
        let path = self.item(small.path)?;
        self.inner.write_special(&at(small, &path), options, special)
    }

    fn write_hard_link(
        &self,
        small: &SmallFile<'_>,
        options: &WriteOptions,
        names: (&[Vec<u8>], Option<u64>),
    ) -> Result<Stored, Failure> {
        let path = self.item(small.path)?;
        let meant = names.0.iter().map(|name| self.item(name)).collect::<Result<Vec<_>, _>>()?;
        self.inner.write_hard_link(&at(small, &path), options, (&meant, names.1))
    }

    fn is_special(&self, path: &[u8], special: SpecialFile) -> bool {
        self.item(path).is_ok_and(|path| self.inner.is_special(&path, special))
    }

    fn write_referred(
        &self,
        referred: &Referred<'_>,
        options: &WriteOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Stored, Failure> {
        let (path, attributes) = (&self.item(referred.path)?[..], referred.attributes.clone());
        self.inner.write_referred(&Referred { path, attributes, ..*referred }, options, stop)
    }

    fn make_directory(&self, path: &[u8]) -> Result<(), Failure> {
        self.inner.make_directory(&self.directory(path)?)
    }

    fn sync_group(&self) -> Result<(), Failure> {
        self.inner.sync_group()
    }

    fn written_down(&self) {
        self.inner.written_down();
    }

    fn apply_directories(&self, list: &[NewDirectory]) -> Vec<(Vec<u8>, Failure)> {
        let (mut meant, mut failed) = (Vec::new(), Vec::new());
        for one in list {
            match self.directory(&one.path) {
                Ok(path) => meant.push(NewDirectory { path, ..one.clone() }),
                Err(why) => failed.push((one.path.clone(), why)),
            }
        }
        let below = self.inner.apply_directories(&meant).into_iter();
        failed.into_iter().chain(below.map(|(path, why)| (self.at_source(&path), why))).collect()
    }

    fn kept_by_top(&self) -> Option<&Attributes> {
        self.inner.kept_by_top()
    }

    fn sync_all(&self) -> Result<bool, Failure> {
        self.inner.sync_all()
    }

    fn unsynced(&self) -> Unsynced {
        let Unsynced { count, paths } = self.inner.unsynced();
        Unsynced { count, paths: paths.iter().map(|path| self.at_source(path)).collect() }
    }

    fn unfinished(&self) -> Unfinished {
        self.inner.unfinished()
    }

    fn stalled(&self, now: Instant) -> Vec<String> {
        self.inner.stalled(now)
    }

    fn close_in(&self, patience: Duration) {
        self.inner.close_in(patience);
    }

    fn unkept(&self) -> UnkeptSoFar {
        let mut unkept = self.inner.unkept();
        unkept.permissions.iter_mut().for_each(|unkept| unkept.path = self.at_source(&unkept.path));
        unkept.times.iter_mut().for_each(|unkept| unkept.path = self.at_source(&unkept.path));
        unkept
    }

    fn counted(&self) -> DestinationCounts {
        self.inner.counted()
    }

    fn files_in_memory(&self) -> u64 {
        self.inner.files_in_memory()
    }

    fn finish(&self, whole: bool) {
        self.inner.finish(whole);
    }
}

fn at<'a>(small: &SmallFile<'_>, path: &'a [u8]) -> SmallFile<'a> {
    let SmallFile { fingerprint, digests, read_back, .. } = *small;
    SmallFile { path, attributes: small.attributes.clone(), fingerprint, digests, read_back }
}
