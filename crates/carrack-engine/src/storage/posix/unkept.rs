//! What a copy does not keep. File systems refuse or round permissions and times: FAT and SMB know no permissions, ext4
//! no year 2500. What else an item has beside its content is set where that was asked for, and a copy may have it by
//! chance. All of it is looked at after the item was made, counted, and told at the end; it fails nothing.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use carrack_core::attributes::{AttributeKind, CopyFacts, OtherAttributes, Time};
use carrack_core::report::{self, UnkeptAttributes, UnkeptDirectories};
use carrack_sys::dir::{Kind, Stat};

use super::identity::Ground;
use super::times::time_of;
use crate::storage::giving::MODE_MASK;
use crate::storage::write::UnkeptSoFar;
use crate::sync::lock;

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
    /// Compares what was to be set with what is there; `listed` is what only extended attributes show.
    pub fn look(&self, path: impl Fn() -> Vec<u8>, wanted: &ToKeep<'_>, found: &Stat, listed: &OtherAttributes) {
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
            let accessed = others.access_time().filter(|accessed| *accessed != time_of(found.atime));
            let unkept = others.not_kept(&shown, listed).chain(accessed.map(|_| AttributeKind::ACCESS_TIME));
            UnkeptAttributes::note(&mut lock(&self.attributes), path, unkept);
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

/// What a file system is known to keep, so that not every file need be looked at.
#[derive(Debug)]
pub struct Keeps {
    /// It keeps permissions, and seconds that any format of it can hold.
    plain: bool,
    /// A file on it has kept a time to the nanosecond.
    nanoseconds: AtomicBool,
}

impl Keeps {
    /// Of a file system of which no file has been seen.
    pub fn new(ground: &Ground) -> Self {
        Self { plain: ground.is_plain(), nanoseconds: AtomicBool::new(false) }
    }

    /// Whether a file surely has the permissions and this modification time, once they have been set.
    pub fn surely(&self, mtime: Option<Time>) -> bool {
        // From 2038 on the older formats of ext4 and XFS stop.
        let fits = |mtime: Time| {
            (0..i64::from(i32::MAX)).contains(&mtime.seconds)
                && (mtime.nanos == 0 || self.nanoseconds.load(Ordering::Relaxed))
        };
        self.plain && mtime.is_none_or(fits)
    }

    /// A file was given this modification time, and is this now.
    pub fn seen(&self, mtime: Option<Time>, found: &Stat) {
        if mtime.is_some_and(|mtime| mtime.nanos != 0 && mtime == time_of(found.mtime)) {
            self.nanoseconds.store(true, Ordering::Relaxed);
        }
    }
}

/// A file system that refuses to set permissions or times does not keep them, which [`UnkeptTally::look`] then finds.
///
/// Says whether it was set.
///
/// # Errors
/// Any error that is not such a refusal.
pub fn if_it_can(set: io::Result<()>) -> io::Result<bool> {
    match set {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => Ok(false),
        other => other.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_to_set_is_no_error_and_is_told() {
        assert!(if_it_can(Ok(())).unwrap());
        for refused in [io::ErrorKind::PermissionDenied, io::ErrorKind::Unsupported] {
            assert!(!if_it_can(Err(refused.into())).unwrap());
        }
        assert!(if_it_can(Err(io::ErrorKind::StorageFull.into())).is_err());
    }

    #[test]
    fn file_need_not_be_looked_at_where_what_was_set_is_surely_kept() {
        let file = tempfile::tempfile().unwrap();
        let mut stat = carrack_sys::dir::stat_file(&file).unwrap();
        let keeps = |plain| Keeps { plain, nanoseconds: AtomicBool::new(false) };
        let time = |seconds, nanos| Some(Time::new(seconds, nanos));
        let (plain, other) = (keeps(true), keeps(false));
        assert!(plain.surely(None) && plain.surely(time(5, 0)) && !other.surely(None) && !other.surely(time(5, 0)));
        assert!(!plain.surely(time(-1, 0)) && !plain.surely(time(i64::from(i32::MAX), 0)));
        // To the nanosecond only once it has been seen.
        assert!(!plain.surely(time(5, 7)));
        stat.mtime = carrack_sys::dir::FileTime { seconds: 5, nanos: 0 };
        plain.seen(time(5, 7), &stat);
        plain.seen(time(5, 0), &stat);
        assert!(!plain.surely(time(5, 7)));
        stat.mtime.nanos = 7;
        plain.seen(time(5, 7), &stat);
        assert!(plain.surely(time(6, 8)));
    }
}
