//! FIFOs, sockets and devices.

use std::io;

use carrack_core::attributes::OtherAttributes;
use carrack_core::path::split_name;
use carrack_core::report::{Failure, ItemKind, Side};
use carrack_core::request::Existing;
use carrack_core::special::SpecialFile;
use carrack_sys::dir::{Links, Stat, stat_file};

use super::Tree;
use crate::error::io_failure;
use crate::storage::giving::MODE_MASK;
use crate::storage::posix::directories::OpenDir;
use crate::storage::posix::extended::Holder;
use crate::storage::posix::giving::{Beginning, Getting, GettingState, facts_of};
use crate::storage::posix::kinds::{special_of, system_kind};
use crate::storage::posix::names::PartNames;
use crate::storage::posix::part::{EntrySource, PartEntry, stat_entry};
use crate::storage::posix::times::times_to_set;
use crate::storage::posix::unkept::if_it_can;
use crate::storage::write::SmallFile;

impl Tree {
    /// Makes something special under a hidden name, with its attributes; `None` when what is there is to be kept.
    ///
    /// # Errors
    /// Those of the file system, as where this user may make no device. Nothing is left behind.
    pub fn write_special(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        special: SpecialFile,
    ) -> Result<Option<PartEntry>, Failure> {
        if !self.may_write(small.path, (None, small.attributes.mtime), existing)? {
            return Ok(None);
        }
        let (parent, name) = split_name(small.path);
        let part = self.names.small(parent, name, self.folds(parent)?);
        let giving = self.shared.giving();
        let others = &small.attributes.others;
        let (stat, listed) =
            self.shared.directories.within(parent, "make the FIFO, socket or device", |directory| {
                let numbers = (special.major, special.minor);
                PartNames::make(&directory.dir, &part, |name| match giving.fakes() {
                    true => directory.dir.create_new(name).map(|_| ()),
                    false => directory.dir.make_special(name, system_kind(special), numbers),
                })?;
                let give = || {
                    if giving.fakes() {
                        return self.fake_special(directory, &part.name, small, special);
                    }
                    let held = directory.dir.hold(&part.name)?;
                    let stat = held.stat()?;
                    if special_of(&stat) != Some(special) {
                        return Err(io::Error::other("something else has come to stand in its place"));
                    }
                    giving.give_new(Getting::Special(&held), small.attributes.mode, others, Beginning::New)?;
                    let times = times_to_set(small.attributes.mtime, others);
                    times.map_or(Ok(true), |times| if_it_can(directory.dir.set_times(&part.name, times)))?;
                    Ok((held.stat()?, giving.listed_of(Holder::Held(&held), others)))
                };
                give().inspect_err(|_| drop(directory.dir.unlink(&part.name)))
            })?;
        let (mtime, mode) = (small.attributes.mtime, Some(small.attributes.mode & MODE_MASK));
        let source =
            EntrySource { kind: ItemKind::Special, size: 0, mtime, mode, others: others.clone(), fingerprint: None };
        let entry = self.entry(small.path, part, source, existing);
        entry.look(stat, listed);
        Ok(Some(entry))
    }

    /// Has an empty file stand for something special.
    fn fake_special(
        &self,
        directory: &OpenDir,
        name: &[u8],
        small: &SmallFile<'_>,
        special: SpecialFile,
    ) -> io::Result<(Stat, OtherAttributes)> {
        let (giving, others) = (self.shared.giving(), &small.attributes.others);
        let file = directory.dir.open_read(name, Links::Refuse)?;
        let (getting, holder) = (Getting::File(&file), Holder::File(&file));
        let plain = facts_of(&stat_file(&file)?);
        if !giving.write_down(getting, &plain, Some(special))? {
            // An empty file that stands for nothing would be taken for one.
            let why = "the file system keeps no extended attributes, in which what it is would be written down";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        giving.give_faked(getting, small.attributes.mode, others, GettingState::Fresh)?;
        if let Some(times) = times_to_set(small.attributes.mtime, others) {
            if_it_can(directory.dir.set_times(name, times))?;
        }
        Ok((giving.shown(stat_file(&file)?, holder), giving.listed_of(holder, others)))
    }

    /// Whether this stands at a path.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn is_special(&self, path: &[u8], special: SpecialFile) -> Result<bool, Failure> {
        let (parent, name) = split_name(path);
        let Some(directory) = self.shared.directories.find(parent) else { return Ok(false) };
        let there = stat_entry(&directory.dir, name)
            .map_err(|error: io::Error| io_failure(Side::Destination, "stat", &error).at_path(path))?;
        let shown = |stat| self.shared.giving().shown(stat, Holder::Entry(&directory.dir, name));
        Ok(there.map(shown).and_then(|stat| special_of(&stat)) == Some(special))
    }
}
