//! What a copy does not keep. File systems refuse or round permissions and times: FAT and SMB know no permissions, ext4
//! no year 2500. Owners, groups and whatever else an item has beside its content are never set; a copy may have them by
//! chance. All of it is looked at after the item was made, counted, and told at the end; it fails nothing.

use std::io;
use std::sync::Mutex;

use carrack_core::attributes::{CopyFacts, OtherAttributes, Time};
use carrack_core::report::{self, UnkeptAttributes, UnkeptDirectories};
use carrack_sys::dir::{Kind, Stat};

use super::times::time_of;
use crate::storage::write::UnkeptSoFar;
use crate::sync::lock;

/// Set-user-id, set-group-id and sticky bits are not a peer's to give, nor to take.
pub const MODE_MASK: u32 = 0o777;

/// What an item is to have.
pub struct ToKeep<'a> {
    /// Permission bits, where they are known and there are any.
    pub mode: Option<u32>,
    /// Modification time, where there is one.
    pub mtime: Option<Time>,
    /// Attributes of further kinds.
    pub others: &'a OtherAttributes,
}

/// What was not kept in one session, and an example of each kind.
#[derive(Default)]
pub struct UnkeptTally {
    permissions: Mutex<Option<report::Unkept<u32>>>,
    directories: Mutex<UnkeptDirectories>,
    times: Mutex<Option<report::Unkept<Time>>>,
    attributes: Mutex<Option<UnkeptAttributes>>,
}

fn note<T>(so_far: &Mutex<Option<report::Unkept<T>>>, path: Vec<u8>, wanted: T, kept: T) {
    lock(so_far).get_or_insert(report::Unkept { count: 0, path, wanted, kept }).count += 1;
}

impl UnkeptTally {
    /// Compares what was set with what is there. Attributes of further kinds are never set.
    pub fn look(&self, path: impl Fn() -> Vec<u8>, wanted: &ToKeep<'_>, found: &Stat) {
        let ToKeep { mode, mtime, others } = *wanted;
        let kept = time_of(found.mtime);
        if let Some(mode) = mode.filter(|mode| mode & MODE_MASK != found.mode & MODE_MASK) {
            note(&self.permissions, path(), mode & MODE_MASK, found.mode & MODE_MASK);
            if found.kind == Kind::Dir {
                lock(&self.directories).note(&path());
            }
        }
        if let Some(mtime) = mtime.filter(|mtime| *mtime != kept) {
            note(&self.times, path(), mtime, kept);
        }
        if !others.is_empty() {
            let shown = CopyFacts { owner: found.uid, group: found.gid, mode: found.mode };
            UnkeptAttributes::note(&mut lock(&self.attributes), path, others.not_kept(&shown));
        }
    }

    /// What has not been kept so far.
    pub fn so_far(&self) -> UnkeptSoFar {
        UnkeptSoFar {
            permissions: lock(&self.permissions).clone(),
            directories: lock(&self.directories).clone(),
            times: lock(&self.times).clone(),
            attributes: lock(&self.attributes).clone(),
        }
    }
}

/// A file system that refuses to set permissions or times does not keep them, which [`UnkeptTally::look`] then finds.
///
/// # Errors
/// Any error that is not such a refusal.
pub fn if_it_can(set: io::Result<()>) -> io::Result<()> {
    match set {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}
