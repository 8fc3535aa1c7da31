//! Further names of files that this copy has written: hard links, made under hidden names first.

use std::io;

use carrack_core::path::{join, split_name};
use carrack_core::report::{Failure, ItemKind};
use carrack_core::request::Existing;
use carrack_sys::dir::{Kind, Stat};

use super::Tree;
use crate::storage::giving::MODE_MASK;
use crate::storage::posix::directories::OpenDir;
use crate::storage::posix::found::changed;
use crate::storage::posix::kinds::kind_of;
use crate::storage::posix::names::PartNames;
use crate::storage::posix::part::{EntrySource, PartEntry, check_twin, stat_entry};
use crate::storage::posix::times::time_of;
use crate::storage::write::SmallFile;
use crate::sync::lock;

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
        names: &[Vec<u8>],
    ) -> Result<FurtherName, Failure> {
        let (parent, name) = split_name(small.path);
        let there = self.shared.directories.within(parent, "stat", |directory| stat_entry(&directory.dir, name))?;
        let found: Vec<_> = names.iter().filter_map(|name| Some((name, self.named(name)?))).collect();
        let is_one = |stat: &Stat| there.is_some_and(|there| file_of(&there) == file_of(stat));
        if found.iter().any(|(_, stat)| is_one(stat)) {
            if self.folds(parent)? {
                check_twin(&lock(&self.shared.published), small.path, there)?;
            }
            return Ok(FurtherName::Same);
        }
        if !self.may_write(small.path, (None, small.attributes.mtime), existing)? {
            return Ok(FurtherName::Kept);
        }
        for (of, stat) in found {
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
            let looked = directory.dir.stat_at(&part.name).and_then(|stat| {
                // By the name something else may have been linked.
                if file_of(&stat) == file_of(found) { Ok(Some(stat)) } else { Err(changed()) }
            });
            looked.inspect_err(|_| drop(directory.dir.unlink(&part.name)))
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

/// Whether an error says that no link can be made of this file here: another file system, one without hard links, one
/// that has as many as it can have, or one that only its owner may give names; or that it is gone.
fn is_no_link(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, NotFound, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | NotFound | PermissionDenied | TooManyLinks | Unsupported)
}
