//! Files that are written over where they stand: the one exception to *whole or old*. Until such a file is whole, its
//! modification time is 0, and the marker names it; both are on stable storage before the first byte.

use std::fs::File;
use std::io;
use std::time::Instant;

use carrack_core::attributes::Attributes;
use carrack_core::path::split_name;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::{Durability, Existing, InPlace};
use carrack_core::transfer::marker::PartRecord;
use carrack_sys::dir::{Dir, Kind, Stat, set_owner, stat_file};
use carrack_sys::{file, host};

use super::resume::{PART_LOCK_PATIENCE, lock_within};
use super::taking_over::standing_blocks;
use super::{OpenedPart, Tree};
use crate::error::{failure, io_failure};
use crate::storage::posix::descriptors::patiently;
use crate::storage::posix::extended::Holder;
use crate::storage::posix::giving::facts_of;
use crate::storage::posix::names::PartName;
use crate::storage::posix::part::{MIXTURE, PartEntry, PartFile, Touched, WrittenOver, check_space, stat_entry};
use crate::storage::posix::unkept::if_it_can;
use crate::storage::properties::WriteOptions;
use crate::storage::write::NewFile;
use crate::sync::lock;

impl Tree {
    /// The file that stands at the name of an offered one, to be written over, and the blocks that it has; `None` where
    /// the offered one is to replace it, or nothing stands there.
    ///
    /// # Errors
    /// Why it cannot be written over; nothing has happened to it.
    pub(super) fn open_in_place(
        &self,
        offer: &NewFile<'_>,
        options: &WriteOptions,
    ) -> Result<Option<OpenedPart>, Failure> {
        let (Some(size), true) = (offer.size, options.in_place != InPlace::Never) else { return Ok(None) };
        // A mixture is older than its source by its time alone, once nothing else names it.
        let is_older = offer.attributes.mtime.is_none_or(|mtime| mtime.seconds > MIXTURE.seconds);
        if size <= self.shared.tuning.bundled_file_bytes_max || !is_older {
            return Ok(None);
        }
        let Some((file, had)) = self.open_to_write_over(offer.path)? else { return Ok(None) };
        let Some(had) = had else { return self.begin_in_place(file, None, (offer, size), options) };
        // It was read-only, and is again, unless it is written over.
        let again = file.try_clone().inspect_err(|_| drop(file::set_mode(&file, had)));
        let again = again.map_err(|error| failed(&error))?;
        let begun = self.begin_in_place(file, Some(had), (offer, size), options);
        if !matches!(begun, Ok(Some(_))) {
            let _ = file::set_mode(&again, had);
        }
        begun
    }

    /// `had`: the permissions that it has again where nothing is written.
    fn begin_in_place(
        &self,
        file: File,
        had: Option<u32>,
        (offer, size): (&NewFile<'_>, u64),
        options: &WriteOptions,
    ) -> Result<Option<OpenedPart>, Failure> {
        let stat = stat_file(&file).map_err(|error| failed(&error))?;
        let was_mixture = self.is_mixture(offer.path);
        let is_shorter = stat.size < size || was_mixture;
        if stat.kind != Kind::File || options.in_place == InPlace::Append && !is_shorter {
            return Ok(None);
        }
        if self.has_other_names(&stat)? {
            return Ok(None);
        }
        if !self.lock_in_place(&file, &stat) {
            return Err(refused(Reason::WrittenByOther, "another program writes it in place"));
        }
        // It may have been written to until it was locked.
        let stat = stat_file(&file).map_err(|error| failed(&error))?;
        let (parent, name) = split_name(offer.path);
        check_space(&self.shared.directories.get(parent)?.dir, size.saturating_sub(stat.size))?;
        // Behind what is written on, everything is looked at, whatever is quicker.
        let compares = options.takes_over || options.in_place == InPlace::Append;
        let is_lost = lock(&self.shared.in_place.lost).contains(&(stat.device, stat.inode));
        let standing = if compares && !is_lost { standing_blocks(stat.size, size, options) } else { 0..0 };
        let name = PartName::taken_up(name.to_vec());
        let part = self.part_file(file, name, (offer, size), options, Touched::Any);
        let part = PartFile { entry: PartEntry { in_place: true, ..part.entry }, ..part };
        let before = Stat { mode: had.unwrap_or(stat.mode), ..stat };
        let over = self.begin_mixture(&part, before, &offer.attributes, options).map_err(|error| failed(&error))?;
        let part = PartFile { over: Some(over), ..part };
        if was_mixture || stat.mtime == MIXTURE {
            // Storage may not have what the cache has of it, if that is why it was left.
            file::drop_cache(&part.file, 0, 0).map_err(|error| failed(&error)).inspect_err(|_| part.remove())?;
        }
        if part.keeps_holes && stat.size < size {
            // Zeros at its end are not written.
            part.lengthen(size).inspect_err(|_| part.remove())?;
        }
        Ok(Some(OpenedPart::Resumed { part, held: Vec::new(), doubtful: Vec::new(), standing }))
    }

    /// Locks a file. One that is locked is waited for, longer where it is this copy's own: an earlier session may still
    /// be at it, as one does whose connection was lost in the midst of a sync, or a write of an attempt that was given
    /// up. All of a session's files together are waited for no longer than one may be.
    fn lock_in_place(&self, file: &File, stat: &Stat) -> bool {
        let tally = &self.shared.in_place;
        let is_ours = self.shared.journal.as_ref().is_some_and(|journal| journal.is_beside_another())
            || lock(&tally.late).contains(&(stat.device, stat.inode));
        let left = self.shared.tuning.other_end_patience.saturating_sub(*lock(&tally.waited));
        let patience = if is_ours { left.max(PART_LOCK_PATIENCE) } else { PART_LOCK_PATIENCE };
        let began = Instant::now();
        let is_locked = lock_within(file, patience);
        *lock(&tally.waited) += began.elapsed();
        is_locked
    }

    /// Whether a file has other names, which all come anew; where they do not, it is refused.
    fn has_other_names(&self, stat: &Stat) -> Result<bool, Failure> {
        match stat.links > 1 {
            true if self.shared.giving().kept().hard_links => Ok(true),
            true => Err(refused(Reason::OtherNames, "has other names, which would change with it")),
            false => Ok(false),
        }
    }

    /// What stands at a name, opened for writing, and the permissions that it had where they had to be changed for
    /// that; `None` where that is nothing, or a link.
    fn open_to_write_over(&self, path: &[u8]) -> Result<Option<(File, Option<u32>)>, Failure> {
        let (parent, name) = split_name(path);
        let Some(directory) = self.shared.directories.find(parent) else { return Ok(None) };
        let Some(there) = stat_entry(&directory.dir, name).map_err(|error| failed(&error))? else { return Ok(None) };
        if there.kind != Kind::File {
            return Ok(None);
        }
        match patiently(|| directory.dir.open_existing(name)) {
            Ok(file) => Ok(Some((file, None))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // What its other names show stays as it is.
                if self.has_other_names(&there)? {
                    return Ok(None);
                }
                let opened = open_read_only(&directory.dir, name, &there, error).map_err(|error| failed(&error))?;
                Ok(Some((opened, Some(there.mode))))
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// Has the marker name it, and takes its time away, before anything is written. Where that cannot be done it is
    /// what it was, and the marker does not name it.
    fn begin_mixture(
        &self,
        part: &PartFile,
        before: Stat,
        wanted: &Attributes,
        options: &WriteOptions,
    ) -> io::Result<WrittenOver> {
        let record = |number| PartRecord {
            number,
            path: part.path.to_vec(),
            part_name: part.entry.name.clone(),
            size: part.entry.source.size,
            block_bytes: options.block_bytes,
            digests: options.digests,
        };
        let number = self.shared.journal.as_ref().map(|journal| {
            let number = journal.next_part();
            journal.mixture(record(number));
            number
        });
        let over = WrittenOver::new(before, number);
        let mark = || {
            file::set_times(&part.file, MIXTURE)?;
            self.narrow(part, wanted)?;
            // All of the inode: a sync of data alone may leave the old time on the disk.
            if options.durability == Durability::None { Ok(()) } else { part.file.sync_all() }
        };
        if let Err(error) = mark() {
            over.restore(&part.file);
            if let (Some(journal), Some(number)) = (&self.shared.journal, number) {
                journal.untouched(&part.path, number);
            }
            return Err(error);
        }
        Ok(over)
    }

    /// What comes is for nobody who is not to read all of it: of an owner, a group or a list that the file is not to
    /// have in the end, it has none while it is written.
    fn narrow(&self, part: &PartFile, wanted: &Attributes) -> io::Result<()> {
        let (giving, holder) = (self.shared.giving(), Holder::File(&part.file));
        let stat = stat_file(&part.file)?;
        let now = facts_of(&giving.shown(stat, holder));
        let Attributes { mode, others, .. } = wanted;
        let facts = giving.wanted(*mode, others, &now, false);
        let has_lists = !giving.kept().acls || giving.lacks(holder, others).is_ok_and(|lacks| !lacks.acl);
        let has_all = (facts.owner, facts.group) == (now.owner, now.group) && has_lists;
        let open = if has_all { stat.mode & mode & 0o077 } else { 0 };
        // Nor may what comes run as its owner, or with its group.
        if stat.mode & 0o6077 != open {
            if_it_can(file::set_mode(&part.file, stat.mode & 0o1700 | open))?;
        }
        // The one who writes it, until it is given its owner.
        if facts.owner != now.owner && stat.uid != host::user_id() && !giving.fakes() {
            if_it_can(set_owner(&part.file, Some(host::user_id()), None))?;
        }
        Ok(())
    }

    /// Whether a file was being written in place when an earlier session ended, and has not been replaced since.
    pub(super) fn is_mixture(&self, path: &[u8]) -> bool {
        self.shared.journal.as_ref().is_some_and(|journal| journal.is_mixture(path))
    }

    /// What becomes of what stands there: a mixture does not stay, whatever else may.
    pub(super) fn existing_at(&self, path: &[u8], existing: Existing) -> Existing {
        if existing != Existing::Replace && self.is_mixture(path) { Existing::Replace } else { existing }
    }
}

/// One of this user's own that is read-only is not until it is whole: then it has the permissions of its source.
/// Meanwhile it is its owner's alone, whatever bears the name by now.
fn open_read_only(dir: &Dir, name: &[u8], there: &Stat, denied: io::Error) -> io::Result<File> {
    const OWNERS: u32 = 0o600;
    if there.uid != host::user_id() || there.mode & OWNERS == OWNERS {
        return Err(denied);
    }
    dir.set_mode(name, OWNERS)?;
    let file = patiently(|| dir.open_existing(name)).inspect_err(|_| drop(dir.set_mode(name, there.mode)))?;
    let now = stat_file(&file)?;
    if (now.device, now.inode) == (there.device, there.inode) { Ok(file) } else { Err(denied) }
}

fn refused(reason: Reason, why: &str) -> Failure {
    failure(ErrorCode::Unsupported, Side::Destination, why).for_reason(reason)
}

fn failed(error: &io::Error) -> Failure {
    io_failure(Side::Destination, "open to write in place", error)
}
