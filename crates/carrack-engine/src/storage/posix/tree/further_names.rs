//! Further names of files that this copy has written: hard links, made under hidden names first.

use std::io;

use carrack_core::attributes::Time;
use carrack_core::path::{join, split_name};
use carrack_core::plan::compare::is_one_time;
use carrack_core::report::{Failure, ItemKind};
use carrack_core::request::Existing;
use carrack_sys::dir::{Kind, Stat};

use super::Tree;
use crate::storage::giving::MODE_MASK;
use crate::storage::posix::directories::OpenDir;
use crate::storage::posix::directories::twin;
use crate::storage::posix::kinds::kind_of;
use crate::storage::posix::names::PartNames;
use crate::storage::posix::part::{EntrySource, PartEntry, stat_entry};
use crate::storage::posix::times::time_of;
use crate::storage::write::SmallFile;

/// What became of a further name.
pub enum FurtherName {
    /// It is one already.
    Same,
    /// What is at it is kept, as was asked for.
    Kept,
    /// No link can be made of any of the names that its file has.
    Unlinked,
    /// It waits under a hidden name.
    Hidden(Box<PartEntry>),
}

impl Tree {
    /// Makes a further name of a file, whose names these are, under a hidden one.
    ///
    /// # Errors
    /// Those of the file system, but for those that say that no link can be made.
    pub fn write_hard_link(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        (names, size): (&[Vec<u8>], Option<u64>),
    ) -> Result<FurtherName, Failure> {
        let (parent, name) = split_name(small.path);
        let there = self.shared.directories.within(parent, "stat", |directory| stat_entry(&directory.dir, name))?;
        let found: Vec<_> = names.iter().filter_map(|name| Some((name, self.named(name)?))).collect();
        let is_one = |stat: &Stat| there.is_some_and(|there| file_of(&there) == file_of(stat));
        if found.iter().any(|(_, stat)| is_one(stat)) {
            let file = there
                .map(|there| file_of(&there))
                .filter(|_| self.shared.directories.get(parent).is_ok_and(|open| open.folds()));
            if file.is_some_and(|file| !self.claim(small.path, file)) {
                return Err(twin(small.path, &names[0]));
            }
            return Ok(FurtherName::Same);
        }
        if !self.may_write(small.path, (None, small.attributes.mtime), existing)? {
            return Ok(FurtherName::Kept);
        }
        // Somebody may have put something else in their place.
        let is_it = |stat: &Stat| is_as_told(stat, size, small.attributes.mtime);
        for (of, stat) in found.into_iter().filter(|(_, stat)| is_it(stat)) {
            if let Some(entry) = self.link_to(small, existing, of, &stat)? {
                return Ok(FurtherName::Hidden(Box::new(entry)));
            }
        }
        Ok(FurtherName::Unlinked)
    }

    /// What stands at a name of which a further one is to be made.
    fn named(&self, path: &[u8]) -> Option<Stat> {
        let (parent, name) = split_name(path);
        let directory = self.shared.directories.find(parent)?;
        stat_entry(&directory.dir, name).ok().flatten().filter(|stat| stat.kind != Kind::Dir)
    }

    fn link_to(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        of: &[u8],
        found: &Stat,
    ) -> Result<Option<PartEntry>, Failure> {
        let (parent, name) = split_name(small.path);
        let part = self.names.small(parent, name, self.folds(parent)?);
        let (of_parent, of_name) = split_name(of);
        let Some(from) = self.shared.directories.find(of_parent) else { return Ok(None) };
        let make = |directory: &OpenDir| {
            let linked =
                PartNames::make(&directory.dir, &part, |hidden| from.dir.link(of_name, &directory.dir, hidden));
            if let Err(error) = linked {
                return if is_no_link(&error) { Ok(None) } else { Err(error) };
            }
            let looked = directory.dir.stat_at(&part.name).map(|stat| {
                // By the name something else may have been linked.
                (file_of(&stat) == file_of(found)).then_some(stat)
            });
            if !matches!(looked, Ok(Some(_))) {
                let _ = directory.dir.unlink(&part.name);
            }
            looked
        };
        let Some(stat) = self.shared.directories.within(parent, "make a hard link", make)? else { return Ok(None) };
        // It has what it has, and is to have nothing else.
        let (kind, mtime) = (kind_of(stat.kind), Some(time_of(stat.mtime)));
        let mode = (kind == ItemKind::File).then_some(stat.mode & MODE_MASK);
        let source = EntrySource {
            kind,
            size: stat.size,
            mtime,
            mode,
            others: Default::default(),
            fingerprint: small.fingerprint,
        };
        let entry = self.entry(small.path, part, source, existing);
        entry.look(stat, Default::default());
        let first_name = Some(join(of_parent, of_name));
        Ok(Some(PartEntry { awaits_sync: false, first_name, digests: small.digests, ..entry }))
    }
}

fn file_of(stat: &Stat) -> (u64, u64) {
    (stat.device, stat.inode)
}

/// Whether something is what was told of a file: its bytes, and its time as far as file systems keep it. Of links and
/// of what holds nothing nothing is told.
fn is_as_told(stat: &Stat, size: Option<u64>, mtime: Option<Time>) -> bool {
    let is_near = |mtime| is_one_time(Some(time_of(stat.mtime)), Some(mtime), COARSEST_NS);
    match size {
        Some(size) => stat.kind == Kind::File && stat.size == size && mtime.is_none_or(is_near),
        None => stat.kind != Kind::File || stat.size == 0,
    }
}

/// How far a time may be from what it was set to.
const COARSEST_NS: u64 = 2_000_000_000;

/// Whether an error says that no link can be made of this file here: another file system, one without hard links, one
/// that has as many as it can have, or one that only its owner may give names; or that it is gone.
fn is_no_link(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, NotFound, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | NotFound | PermissionDenied | TooManyLinks | Unsupported)
}
