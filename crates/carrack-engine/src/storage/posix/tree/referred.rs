//! Files that get their names from a reference directory: as hard links, or copied here. What stands there is never
//! changed.

use std::fs::File;
use std::io;
use std::sync::Arc;

use carrack_core::path::split_name;
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_core::request::Verify;
use carrack_core::transfer::Fingerprint;
use carrack_sys::dir::{Links, Stat, stat_file};
use carrack_sys::file;

use super::Tree;
use super::known::read_digests;
use crate::error::{failure, io_failure};
use crate::storage::descriptors::patiently;
use crate::storage::giving::MODE_MASK;
use crate::storage::posix::extended::Holder;
use crate::storage::posix::found::{changed, is_one, open_found};
use crate::storage::posix::names::PartNames;
use crate::storage::posix::part::{EntrySource, PartEntry};
use crate::storage::posix::times::time_of;
use crate::storage::properties::WriteOptions;
use crate::storage::write::{Referred, SmallFile};

/// Bytes that are copied before it is looked whether anybody still wants them.
const COPIED_AT_ONCE: u64 = 64 << 20;

impl Tree {
    /// Makes a file under a hidden name: a hard link to the one that was found, or a copy of it. `None` when what is
    /// there is to be kept.
    ///
    /// # Errors
    /// Those of the file system, among them that no such link can be made; that the file is another one by now, or was
    /// not copied whole. Nothing is left behind.
    pub fn write_referred(
        &self,
        referred: &Referred<'_>,
        options: &WriteOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<PartEntry>, Failure> {
        if referred.as_link {
            self.link_referred(referred, options)
        } else {
            self.copy_referred(referred, options, stop)
        }
    }

    fn link_referred(&self, referred: &Referred<'_>, options: &WriteOptions) -> Result<Option<PartEntry>, Failure> {
        if !self.may_write(referred.path, (None, referred.attributes.mtime), options.existing)? {
            return Ok(None);
        }
        let (parent, name) = split_name(referred.path);
        let part = self.names.small(parent, name, self.folds(parent)?);
        let from = (referred.directory, split_name(referred.found_at).1);
        let stat = self.shared.directories.within(parent, "link to the reference directory's file", |directory| {
            PartNames::make(&directory.dir, &part, |hidden| from.0.link(from.1, &directory.dir, hidden))?;
            let linked = directory.dir.stat_at(&part.name).and_then(|stat| {
                // By the name something else may have been linked, as where the two were exchanged.
                if !is_one(&stat, referred.found) {
                    return Err(changed());
                }
                if self.shared.syncs_now(directory.file_system.device, false) {
                    // Whoever wrote it may not have.
                    file::sync_data(&patiently(|| directory.dir.open_read(&part.name, Links::Refuse))?)?;
                }
                Ok(stat)
            });
            linked.inspect_err(|_| drop(directory.dir.unlink(&part.name)))
        })?;
        // It has what it has, and is to have nothing else.
        let giving = self.shared.giving();
        let found = self.shared.directories.find(parent);
        let name = part.name.clone();
        let holder = found.as_ref().map(|parent| Holder::Entry(&parent.dir, &name));
        let stat = holder.map_or(stat, |holder| giving.shown(stat, holder));
        let (mtime, mode) = (Some(time_of(stat.mtime)), Some(stat.mode & MODE_MASK));
        let others = referred.attributes.others.clone();
        let fingerprint: Option<Fingerprint> = None;
        let source = EntrySource { kind: ItemKind::File, size: stat.size, mtime, mode, others, fingerprint };
        let entry = self.entry(referred.path, part, source, options.existing);
        let listed = holder.map(|holder| giving.listed_of(holder, &entry.source.others));
        entry.look(stat, listed.unwrap_or_default());
        Ok(Some(PartEntry { awaits_sync: false, ..entry }))
    }

    fn copy_referred(
        &self,
        referred: &Referred<'_>,
        options: &WriteOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<PartEntry>, Failure> {
        let fail = |error: io::Error| io_failure(Side::Destination, "copy from the reference directory", &error);
        let name = split_name(referred.found_at).1;
        let from = open_found(referred.directory, name, referred.found).map_err(fail)?;
        let small = SmallFile {
            path: referred.path,
            attributes: referred.attributes.clone(),
            fingerprint: None,
            digests: Default::default(),
            read_back: options.verify == Verify::Disk,
        };
        let size = referred.found.size;
        let Some(growing) = self.begin_growing(&small, options.existing, (size, None))? else { return Ok(None) };
        let Some((to, _)) = &growing.made else { return Ok(None) };
        let _entered = self.shared.watch.enter("copy", &Arc::from(referred.path));
        copy(&from, to, referred.found, stop).map_err(fail)?;
        let mut digests = Default::default();
        if options.verify != Verify::None && options.digests.main.is_some() {
            let ended = || failure(ErrorCode::Interrupted, Side::Destination, "the copy has ended");
            let digest = |file: &File| read_digests(file, size, options.digests, None, stop).ok_or_else(ended);
            digests = digest(to)?;
            if digest(&from)? != digests {
                let why = "what was copied from the reference directory is not what it has";
                return Err(failure(ErrorCode::DigestMismatch, Side::Destination, why));
            }
        }
        let now = stat_file(&from).map_err(fail)?;
        if !is_one(&now, referred.found) {
            return Err(fail(changed()));
        }
        growing.finish(&SmallFile { digests, ..small }).map(Some)
    }
}

/// Copies a file's bytes, holes left out; by sharing what is stored where the file system can.
fn copy(from: &File, to: &File, found: &Stat, stop: &dyn Fn() -> bool) -> io::Result<()> {
    let size = found.size;
    to.set_len(size)?;
    let is_sparse = found.blocks_512.saturating_mul(512) < size;
    let copy = if is_sparse { file::copy_but_zeros } else { file::copy_range };
    let mut at = 0;
    while at < size {
        if stop() {
            return Err(io::Error::other("the copy has ended"));
        }
        match file::next_data(from, at) {
            Ok(None) => break,
            Ok(Some(data)) if data > at => {
                at = data.min(size);
                continue;
            }
            // Where nobody tells of holes, everything is data.
            _ => {}
        }
        let length = COPIED_AT_ONCE.min(size - at);
        copy(from, to, at, length)?;
        at += length;
    }
    Ok(())
}
