//! What is replaced or deleted, and kept under another name.
//!
//! At no moment is the only copy of an old file without a name, and what was kept before goes only in the step in which
//! the next one takes its name.

use std::io;
use std::sync::Arc;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::split_name;
use carrack_core::request::Durability;
use carrack_sys::dir::{Dir, Kind};

use super::directories::OpenDir;
use super::names::PartNames;
use super::own_directories::writable;
use super::part::{Shared, stat_entry};
use crate::error::{failure, io_failure};

const KEEP: &str = "keep the old file";
/// Names that are tried where what has the first is to stay.
const NAMES: usize = 8;

/// Where an old file is kept.
pub(super) struct KeptAt {
    directory: Arc<OpenDir>,
    /// Relative to the destination.
    path: Vec<u8>,
    /// It has lost its first name: the file system gives no second one.
    is_moved: bool,
}

impl KeptAt {
    fn name(&self) -> &[u8] {
        split_name(&self.path).1
    }

    /// Nothing has taken its place: if it has lost its name, it gets that back.
    pub fn put_back(&self, directory: &Dir, name: &[u8]) {
        if self.is_moved {
            // It stays where it is kept if not.
            let _ = self.directory.dir.rename_noreplace(self.name(), directory, name);
        }
    }
}

impl Shared {
    /// Whether what is replaced or deleted is kept.
    pub fn keeps(&self) -> bool {
        self.backup.get().is_some()
    }

    /// Gives what stands at a path, and is about to be replaced, its second name; none where it is not to be kept.
    ///
    /// # Errors
    /// Why it cannot be kept: then nothing has been replaced.
    pub fn keep(&self, path: &[u8]) -> Result<Option<KeptAt>, Failure> {
        let Some(mut kept) = self.place_for(path)? else { return Ok(None) };
        let (parent, name) = split_name(path);
        let from = self.directories.get(parent)?;
        let to = &kept.directory;
        let hidden = self.names.small(split_name(&kept.path).0, kept.name(), to.folds());
        let link = |hidden: &[u8]| from.dir.link(name, &to.dir, hidden);
        let named = match PartNames::make(&to.dir, &hidden, link) {
            Ok(()) => {
                let renamed = to.dir.rename(&hidden.name, &to.dir, kept.name());
                // Of two names of one file a rename takes none away.
                let _ = to.dir.unlink(&hidden.name);
                renamed
            }
            Err(error) if is_without_links(&error) => {
                kept.is_moved = true;
                check_no_directory(&from.dir, name)
                    .and_then(|()| from.dir.rename(name, &kept.directory.dir, kept.name()))
            }
            Err(error) => Err(error),
        };
        named.map_err(|error| why_not_kept(&error))?;
        self.sync_kept(&kept)?;
        Ok(Some(kept))
    }

    /// Keeps a file or link of a directory that is deleted. What is not there is deleted.
    ///
    /// # Errors
    /// Why it stays.
    pub fn keep_deleted(&self, path: &[u8], directory: &Dir) -> Result<(), Failure> {
        let name = split_name(path).1;
        match check_no_directory(directory, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            checked => checked.map_err(|error| why_not_kept(&error))?,
        }
        let Some(kept) = self.place_for(path)? else { return Ok(()) };
        let moved = writable(directory, || directory.rename(name, &kept.directory.dir, kept.name()));
        moved.map_err(|error| why_not_kept(&error))?;
        self.sync_kept(&kept)
    }

    /// Where what stands at a path is to be kept. An earlier session of this copy may have kept something there
    /// already, and what stands at the path may be what took its place: then both stay.
    fn place_for(&self, path: &[u8]) -> Result<Option<KeptAt>, Failure> {
        let Some(backup) = self.backup.get() else { return Ok(None) };
        let stays = self.journal.as_ref().is_none_or(|journal| journal.may_go_on());
        // Whatever else it leaves, the next session finds that this one has kept something.
        self.journal.iter().for_each(|journal| journal.keep());
        let mut kept = backup.path(path);
        for _ in 0..NAMES {
            let (kept_in, name) = split_name(&kept);
            let directory = self.directories.get(kept_in)?;
            let there = self.directories.within(kept_in, KEEP, |to| stat_entry(&to.dir, name))?;
            match there.map(|there| there.kind) {
                Some(Kind::Dir) => {
                    let why = "a directory stands where the old file is to be kept";
                    return Err(failure(ErrorCode::IsADirectory, Side::Destination, why));
                }
                Some(_) if stays => kept = backup.path_beside(&kept),
                _ => return Ok(Some(KeptAt { directory, path: kept, is_moved: false })),
            }
        }
        let why = "too many old files of this name are kept: nothing was replaced";
        Err(failure(ErrorCode::AlreadyExists, Side::Destination, why))
    }

    /// What is to be durable at once is so before anything takes its place.
    fn sync_kept(&self, kept: &KeptAt) -> Result<(), Failure> {
        let alone = self.durability == Durability::Group && kept.directory.file_system.syncs_alone();
        if self.durability != Durability::Each && !alone {
            return Ok(());
        }
        self.directories.sync_names(&kept.directory.dir)
    }
}

/// A directory gets no second name, and is not moved in the place of a file.
fn check_no_directory(directory: &Dir, name: &[u8]) -> io::Result<()> {
    match directory.stat_at(name)?.kind {
        Kind::Dir => Err(io::ErrorKind::IsADirectory.into()),
        _ => Ok(()),
    }
}

fn why_not_kept(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::CrossesDevices => {
            let why = "the directory where old files are to be kept is on another file system";
            failure(ErrorCode::Unsupported, Side::Destination, why)
        }
        _ => io_failure(Side::Destination, KEEP, error),
    }
}

/// Where there are no hard links, or none of this file.
fn is_without_links(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), PermissionDenied | TooManyLinks | Unsupported)
}
