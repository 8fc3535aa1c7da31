//! A walk through what only the destination has. What is in a directory is listed before it, so that the directory is
//! empty when its turn comes.
//!
//! A path may have more levels than a thread's stack has room for: the directories on the way are kept in a list.

use std::collections::HashSet;
use std::vec;

use carrack_core::filter::Scope;
use carrack_core::limits;
use carrack_core::path::split_name;
use carrack_core::plan::compare::State;
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};

use super::list::DeletionList;
use super::{OnlyThere, Renaming, SweepOrder, enter, short_digest};
use crate::error::failure;
use crate::storage::write::Destination;

/// What is left at the place of an item that is deleted. The greatest of a directory's items is the directory's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LeftInPlace {
    Nothing,
    /// An old file under another name, if the item is not renamed.
    Unsure,
    Something,
}

/// A directory that is being looked through.
struct OpenLevel {
    /// Bytes of its path.
    length: usize,
    size: u64,
    /// Those that have not been looked at.
    names: vec::IntoIter<Vec<u8>>,
    left: LeftInPlace,
}

/// Looks at what only the destination has.
pub(super) struct Finding<'a> {
    pub may: &'a SweepOrder,
    pub destination: &'a dyn Destination,
    pub scope: Scope<'a>,
    /// The file system that it has to be on, as far as that is known.
    pub device: Option<u64>,
    pub list: &'a mut DeletionList,
    pub found: &'a mut OnlyThere,
    pub unsure: &'a mut UnsureDirectories,
    pub renaming: Option<&'a Renaming>,
}

impl Finding<'_> {
    /// Puts what stands at a path on the list, what is in it before it.
    pub fn all_at(&mut self, top: &[u8]) -> Result<(), Failure> {
        let (mut path, mut levels) = (top.to_vec(), Vec::new());
        let mut left = self.one(&path, &mut levels)?;
        while let Some(level) = levels.last_mut() {
            level.left = level.left.max(left);
            path.truncate(level.length);
            left = match level.names.next() {
                Some(name) => {
                    path.push(b'/');
                    path.extend_from_slice(&name);
                    self.one(&path, &mut levels)?
                }
                None => {
                    let (size, left) = (level.size, level.left);
                    levels.pop();
                    self.leave(&path, size, left)?;
                    left
                }
            };
        }
        Ok(())
    }

    /// Puts an item on the list. A directory is entered, and put there when it is left.
    fn one(&mut self, path: &[u8], levels: &mut Vec<OpenLevel>) -> Result<LeftInPlace, Failure> {
        let standing = self.destination.standing(&[path], None).pop().transpose()?.flatten();
        // Somebody else was quicker.
        let Some(there) = standing else { return Ok(LeftInPlace::Nothing) };
        let (state, device) = (there.state, there.device());
        let is_directory = state.kind == ItemKind::Directory;
        // In a directory that is deleted itself, some rules do not hold.
        let is_below = !levels.is_empty();
        if device != self.device || self.may.protects(path) || !self.scope.takes(path, is_directory, is_below) {
            return Ok(LeftInPlace::Something);
        }
        if is_directory {
            // The source is asked about each path: a longer one fits into no message.
            if path.len() >= limits::PATH_BYTES - limits::NAME_BYTES {
                return Err(too_deep(levels.first().map_or(path, |top| &path[..top.length])));
            }
            levels.push(self.enter(path, state.size)?);
            return Ok(LeftInPlace::Nothing);
        }
        self.list.push(self.destination, path, state.kind, state.size)?;
        self.found.add(state.size);
        if let (ItemKind::File, Some(renaming)) = (state.kind, self.renaming) {
            renaming.note(path, state.size, state.mtime);
        }
        // The directory above the topmost item stays anyway.
        Ok(if is_below { self.left_of(path, state) } else { LeftInPlace::Something })
    }

    fn enter(&mut self, path: &[u8], size: u64) -> Result<OpenLevel, Failure> {
        let mut names = Vec::new();
        // Where something of Carrack's own stays, its directory does.
        let are_all = self.destination.list(path, &mut |name| {
            names.push(name.to_vec());
            true
        })?;
        enter(self.destination, &mut self.scope, path)?;
        let left = if are_all { LeftInPlace::Nothing } else { LeftInPlace::Something };
        Ok(OpenLevel { length: path.len(), size, names: names.into_iter(), left })
    }

    /// What is left of what is no directory.
    fn left_of(&mut self, path: &[u8], state: State) -> LeftInPlace {
        if !self.may.keeps_beside() {
            return LeftInPlace::Nothing;
        }
        let may_be_renamed = self.renaming.is_some() && state.kind == ItemKind::File && state.size > 0;
        if may_be_renamed && self.unsure.add_file(path) { LeftInPlace::Unsure } else { LeftInPlace::Something }
    }

    fn leave(&mut self, path: &[u8], size: u64, left: LeftInPlace) -> Result<(), Failure> {
        if left == LeftInPlace::Something {
            return Ok(());
        }
        self.list.push(self.destination, path, ItemKind::Directory, size)?;
        self.found.add(size);
        if left == LeftInPlace::Unsure {
            self.unsure.directories.insert(short_digest(path));
        }
        Ok(())
    }
}

fn too_deep(top: &[u8]) -> Failure {
    let why = format!("has directories deeper than {} bytes of path", limits::PATH_BYTES);
    failure(ErrorCode::NameTooLong, Side::Destination, why).at_path(top)
}

/// Directories on the list that go only if each of some files in them has been renamed: any other of these files is
/// kept there under another name.
#[derive(Default)]
pub(super) struct UnsureDirectories {
    /// Digests of their paths.
    directories: HashSet<u64>,
    files: Vec<Box<[u8]>>,
    /// Of the paths in `files`.
    bytes: usize,
}

impl UnsureDirectories {
    /// `false` if there are too many: their directories stay.
    fn add_file(&mut self, path: &[u8]) -> bool {
        let has_room =
            self.files.len() < limits::RENAMED_FILES && self.bytes + path.len() <= limits::RENAMED_PATH_BYTES;
        if has_room {
            self.bytes += path.len();
            self.files.push(path.into());
        }
        has_room
    }

    /// Digests of the paths of those that stay.
    pub fn that_stay(&self, renaming: &Renaming) -> HashSet<u64> {
        let mut stay = HashSet::new();
        for path in self.files.iter().filter(|path| renaming.renamed_at(path).is_none()) {
            let mut above = split_name(path).0;
            // A directory that is not on the list is in none that is.
            while self.directories.contains(&short_digest(above)) && stay.insert(short_digest(above)) {
                above = split_name(above).0;
            }
        }
        stay
    }
}
