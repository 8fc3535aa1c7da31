//! Markers of sessions that are no more, as others find them: to remove them, to name what they tell of, to collect
//! what is left over.

use std::fs::File;
use std::io;

use carrack_core::limits;
use carrack_core::path::split_name;
use carrack_core::transfer::marker::{PartRecord, Replayed, Tag};
use carrack_sys::dir::{Dir, Links, Stat};
use carrack_sys::file;

use super::super::names::{marker_name, tag_of};
use super::super::own_directories::remove_unseen;
use super::super::times::time_of;
use super::{MARKERS, Taken, remove_parts, replay, take};
use crate::storage::write::TIME_OF_MIXTURE;

/// Takes the lock of a marker that is there and that nobody holds. To be given back by [`file::unlock`]: a program that
/// is being started holds what this process has open for a moment longer.
pub fn hold(root: &Dir, name: &[u8]) -> Option<File> {
    match take(root, name, false) {
        Ok(Taken::Ours(file, _)) => Some(file),
        _ => None,
    }
}

/// Part files that the markers of a key tell of, of those that nobody holds.
pub fn left_of(root: &Dir, key: [u8; limits::MARKER_KEY_BYTES]) -> Vec<PartRecord> {
    let left = (1..=MARKERS).filter_map(|number| {
        let held = hold(root, &marker_name(key, number))?;
        let found = replay(&held).ok().flatten();
        let _ = file::unlock(&held);
        let found = found?;
        let parts = found.parts.into_values().map(|left| left.part);
        Some(parts.filter(move |part| tag_of(&part.part_name) == Some(found.tag)))
    });
    left.flatten().collect()
}

/// Whether a record is that of a file that is written in place.
pub(super) fn is_in_place(part: &PartRecord) -> bool {
    part.part_name == split_name(&part.path).1
}

/// The files that a marker names as being written in place, as far as they are there.
pub(super) fn mixtures_of(root: &Dir, found: &Replayed) -> Vec<PartRecord> {
    let parts = found.parts.values().map(|left| &left.part);
    parts.filter(|part| is_in_place(part) && root.stat(&part.path, Links::Refuse).is_ok()).cloned().collect()
}

/// Removes a marker that nobody holds, with the part files that it tells of; its tag, where it has one. The files that
/// it names as being written in place go to `adopt`; without that such a marker stays.
pub(super) fn forget(root: &Dir, name: &[u8], adopt: Option<&mut Vec<PartRecord>>) -> Option<Tag> {
    let file = hold(root, name)?;
    let found = replay(&file).ok().flatten();
    if let Some(found) = &found {
        let mixtures = mixtures_of(root, found);
        // What this session has made whole meanwhile has a time again.
        let is_left = |part: &PartRecord| {
            root.stat(&part.path, Links::Refuse).is_ok_and(|stat| time_of(stat.mtime) == TIME_OF_MIXTURE)
        };
        match adopt {
            Some(adopt) => adopt.extend(mixtures),
            None if mixtures.iter().any(is_left) => {
                let _ = file::unlock(&file);
                return None;
            }
            None => {}
        }
        remove_parts(root, found.tag, found.parts.values().map(|left| &left.part));
    }
    let _ = remove_unseen(root, name);
    found.map(|found| found.tag)
}

/// A marker that nobody holds, for whoever collects what is left over; held until this is dropped.
pub struct Abandoned {
    file: File,
    /// What is known of the file.
    pub stat: Stat,
    /// Of its part files; `None` where the marker cannot be read.
    pub tag: Option<Tag>,
}

/// What became of looking at a marker.
pub enum Looked {
    /// Nobody holds it.
    Abandoned(Abandoned),
    /// A session is under way.
    Live(Option<Tag>),
    /// It is not a marker that may be touched.
    Foreign,
}

/// Looks whether a marker is held.
///
/// # Errors
/// Those of the system.
pub fn look(dir: &Dir, name: &[u8]) -> io::Result<Looked> {
    Ok(match take(dir, name, false)? {
        Taken::Ours(file, stat) => {
            let tag = replay(&file)?.map(|found| found.tag);
            Looked::Abandoned(Abandoned { file, stat, tag })
        }
        Taken::Held => {
            Looked::Live(dir.open_read(name, Links::Refuse).and_then(|file| replay(&file))?.map(|found| found.tag))
        }
        Taken::Unusable => Looked::Foreign,
    })
}

impl Abandoned {
    /// Removes the marker from its directory, still locked.
    ///
    /// # Errors
    /// Those of the system; `NotFound` where the name is another file's by now.
    pub fn remove(self, dir: &Dir, name: &[u8]) -> io::Result<()> {
        let now = dir.stat_at(name)?;
        if (now.device, now.inode) != (self.stat.device, self.stat.inode) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let removed = dir.unlink(name);
        drop(self.file);
        removed
    }
}
