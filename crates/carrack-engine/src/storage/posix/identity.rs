//! What tells one state of one file from all others: the fingerprint of a source, and the identity of what
//! stands at a destination.
//!
//! Both are digests of the machine, the file system, the inode, the times of birth and of the last change, size and
//! modification time. Only equality counts: whatever has been exchanged, mounted, put back or written since makes
//! another. What a file system does not show is not told here either: then there is no fingerprint, and what it would
//! have been for is compared by content or sent again.

use std::os::fd::AsFd;
use std::sync::{Mutex, OnceLock};

use crate::sync::lock;
use carrack_core::transfer::Fingerprint;
use carrack_core::tuning::CHANGE_TIME_GRAIN;
use carrack_sys::dir::{ChangeTimes, FileSystem, FileTime, Stat, file_system};
use carrack_sys::host;

/// A device, and the file system on it.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    device: u64,
    file_system: Option<FileSystem>,
}

/// The file systems that a session has met: asked once each, for over a network that takes a question.
#[derive(Default)]
pub struct Grounds(Mutex<Vec<Ground>>);

impl Grounds {
    /// That of something open, which is on this device.
    pub fn of(&self, device: u64, open: impl AsFd) -> Ground {
        let mut met = lock(&self.0);
        if let Some(found) = met.iter().find(|ground| ground.device == device) {
            return *found;
        }
        let ground = Ground::new(device, open);
        met.push(ground);
        ground
    }
}

impl Ground {
    /// The file system of something open, which is on this device.
    pub fn new(device: u64, open: impl AsFd) -> Self {
        Self { device, file_system: file_system(open).ok() }
    }

    /// All that it holds lies in memory: nothing can be read back past the cache.
    pub fn is_in_memory(&self) -> bool {
        self.file_system.is_some_and(|found| found.in_memory)
    }

    /// See [`FileSystem::plain`].
    pub fn is_plain(&self) -> bool {
        self.file_system.is_some_and(|found| found.plain)
    }

    /// See [`FileSystem::frees_at_once`].
    pub fn frees_at_once(&self) -> bool {
        self.file_system.is_some_and(|found| found.frees_at_once)
    }

    fn of_file(&self, stat: &Stat) -> Option<&FileSystem> {
        self.file_system.as_ref().filter(|_| self.device == stat.device)
    }

    /// What the source of an item is known by in a later session, looked at when its clock says `now`; `None`
    /// where nothing would tell that it has changed since: it changed just now, and might once more before its
    /// times tell the difference.
    pub fn fingerprint(&self, stat: &Stat, now: i64) -> Option<Fingerprint> {
        let found = self.of_file(stat)?;
        let grain = CHANGE_TIME_GRAIN.as_secs() as i64;
        let settled = stat.ctime.seconds < now.saturating_sub(grain);
        (settled && shows_changes(stat, found)).then(|| digest(stat, found))
    }

    /// What a file at a destination is.
    pub fn identity(&self, stat: &Stat) -> Option<Fingerprint> {
        self.of_file(stat).map(|found| digest(stat, found))
    }

    /// Whether a change of the file would show.
    pub fn shows_changes(&self, stat: &Stat) -> bool {
        self.of_file(stat).is_some_and(|found| shows_changes(stat, found))
    }

    /// Whether a file of this identity has the content that it had when it was looked at before. The clock of a file
    /// system that keeps whole seconds says too little right after a write.
    pub fn proves_content(&self, stat: &Stat) -> bool {
        stat.ctime.nanos != 0 && self.shows_changes(stat)
    }
}

fn shows_changes(stat: &Stat, found: &FileSystem) -> bool {
    match found.change_times {
        ChangeTimes::Kept => true,
        ChangeTimes::Layered => stat.born.is_some() || stat.ctime != stat.mtime,
        // Where the two differ there is a time of change.
        ChangeTimes::Unknown => stat.ctime != stat.mtime,
        ChangeTimes::Useless => false,
    }
}

fn digest(stat: &Stat, found: &FileSystem) -> Fingerprint {
    // Fields of fixed length: no two files give the same bytes.
    let mut bytes = [0; 32 + 4 * 8 + 3 * 13];
    let mut end = 0;
    let mut put = |part: &[u8]| {
        bytes[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    };
    put(&machine());
    put(&found.id.to_le_bytes());
    // A device's number may be another after a reboot.
    let is_stored = matches!(found.change_times, ChangeTimes::Kept | ChangeTimes::Layered);
    let knows_itself = found.id != 0 && is_stored;
    put(&(if knows_itself { 0 } else { stat.device }).to_le_bytes());
    put(&stat.inode.to_le_bytes());
    put(&stat.size.to_le_bytes());
    for time in [stat.born, Some(stat.ctime), Some(stat.mtime)] {
        let FileTime { seconds, nanos } = time.unwrap_or(FileTime { seconds: 0, nanos: 0 });
        put(&[u8::from(time.is_some())]);
        put(&seconds.to_le_bytes());
        put(&nanos.to_le_bytes());
    }
    short(blake3::hash(&bytes).as_bytes())
}

/// What is always the same, and can be made again anywhere, is known by its description.
pub fn of_synthetic(what: &str, size: u64) -> Fingerprint {
    short(
        blake3::Hasher::new_derive_key("carrack synthetic source")
            .update(what.as_bytes())
            .update(&size.to_le_bytes())
            .finalize()
            .as_bytes(),
    )
}

fn short(digest: &[u8; 32]) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    fingerprint.copy_from_slice(&digest[..size_of::<Fingerprint>()]);
    fingerprint
}

/// A directory of a file system of this running system, whichever path leads to it, in any container and mount
/// namespace. A digest, since where the directory lies is nobody else's business. `None` where the system does not say
/// which boot it is.
pub fn place_key(file_system: &[u8], path: &[u8]) -> Option<Fingerprint> {
    let boot = host::boot_id();
    let mut hasher = blake3::Hasher::new_derive_key("carrack place within a file system");
    hasher.update(&boot).update(&(file_system.len() as u64).to_le_bytes()).update(file_system).update(path);
    (boot != [0; 16]).then(|| short(hasher.finalize().as_bytes()))
}

/// A file system, over reboots as far as it knows itself, and by whichever host it is mounted. One that does not know
/// itself, as behind NFS, is known by its kind alone.
pub fn file_system_key(found: &FileSystem) -> Fingerprint {
    let mut hasher = blake3::Hasher::new_derive_key("carrack file system");
    hasher.update(&found.kind.to_le_bytes()).update(&found.id.to_le_bytes());
    short(hasher.finalize().as_bytes())
}

/// This machine, over reboots and in any mount namespace. Derived: the system's own number is nobody else's business.
pub fn machine() -> [u8; 32] {
    static MACHINE: OnceLock<[u8; 32]> = OnceLock::new();
    *MACHINE.get_or_init(|| {
        let mut hasher = blake3::Hasher::new_derive_key("carrack machine identity");
        *hasher.update(host::machine_id().as_bytes()).finalize().as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use carrack_sys::dir::Kind;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn stat() -> Stat {
        let time = |seconds, nanos| FileTime { seconds, nanos };
        Stat {
            kind: Kind::File,
            size: 5,
            mode: 0o644,
            atime: time(500, 6),
            mtime: time(500, 7),
            ctime: time(600, 8),
            born: Some(time(400, 9)),
            device: 3,
            inode: 11,
            links: 1,
            uid: 0,
            gid: 0,
            blocks_512: 8,
            numbers: (0, 0),
            is_flagged: false,
        }
    }

    fn ground(change_times: ChangeTimes, id: u64) -> Ground {
        Ground {
            device: 3,
            file_system: Some(FileSystem {
                id,
                kind: 0,
                change_times,
                in_memory: false,
                plain: false,
                frees_at_once: false,
            }),
        }
    }

    #[test]
    fn file_system_is_known_by_its_kind_and_its_number_alone() {
        let found = ground(ChangeTimes::Kept, 77).file_system.unwrap();
        let key = file_system_key(&found);
        assert_eq!(key, file_system_key(&FileSystem { change_times: ChangeTimes::Unknown, plain: true, ..found }));
        for other in [FileSystem { id: 78, ..found }, FileSystem { kind: 1, ..found }] {
            assert_ne!(key, file_system_key(&other), "{other:?}");
        }
    }

    #[test]
    fn fingerprint_is_another_for_each_thing_that_tells_files_apart() {
        let kept = ground(ChangeTimes::Kept, 77);
        let of = |change: &dyn Fn(&mut Stat)| {
            let mut stat = stat();
            change(&mut stat);
            kept.fingerprint(&stat, NOW).unwrap()
        };
        let first = of(&|_| {});
        assert_eq!(first, of(&|stat| (stat.mode, stat.uid, stat.links) = (0o600, 1, 2)), "those move the change time");
        let others = [
            of(&|stat| stat.size = 6),
            of(&|stat| stat.inode = 12),
            of(&|stat| stat.mtime.nanos = 8),
            of(&|stat| stat.ctime.nanos = 7),
            of(&|stat| stat.born = None),
            of(&|stat| stat.born = Some(FileTime { seconds: 400, nanos: 10 })),
            ground(ChangeTimes::Kept, 78).fingerprint(&stat(), NOW).unwrap(),
        ];
        for (index, other) in others.iter().enumerate() {
            assert!(*other != first && !others[..index].contains(other), "{index}");
        }
    }

    #[test]
    fn fingerprint_is_not_given_where_a_change_might_not_show() {
        let at = |seconds| Stat { ctime: FileTime { seconds, nanos: 1 }, ..stat() };
        let kept = ground(ChangeTimes::Kept, 77);
        for (changed, given) in [(NOW - 3, true), (NOW - 2, false), (NOW, false), (NOW + 9, false), (i64::MAX, false)] {
            assert_eq!(kept.fingerprint(&at(changed), NOW).is_some(), given, "{changed}");
        }
        assert_eq!(kept.fingerprint(&stat(), i64::MIN), None);
        assert_eq!(ground(ChangeTimes::Useless, 77).fingerprint(&stat(), NOW), None);
        let unknown = ground(ChangeTimes::Unknown, 77);
        assert!(unknown.fingerprint(&stat(), NOW).is_some());
        assert_eq!(unknown.fingerprint(&Stat { ctime: stat().mtime, ..stat() }, NOW), None);
        // Of an overlay, a file that lies on squashfs shows neither time.
        let layered = ground(ChangeTimes::Layered, 77);
        let read_only = Stat { born: None, ctime: stat().mtime, ..stat() };
        assert_eq!(layered.fingerprint(&read_only, NOW), None);
        assert!(layered.fingerprint(&Stat { born: stat().born, ..read_only }, NOW).is_some());
        assert!(layered.fingerprint(&Stat { ctime: stat().ctime, ..read_only }, NOW).is_some());
        let elsewhere = Stat { device: 4, ..stat() };
        assert_eq!((kept.fingerprint(&elsewhere, NOW), kept.identity(&elsewhere)), (None, None));
        let whole_seconds = Stat { ctime: FileTime { seconds: 600, nanos: 0 }, ..stat() };
        assert!(
            kept.proves_content(&stat()) && !kept.proves_content(&whole_seconds) && !kept.proves_content(&elsewhere)
        );
        assert!(!ground(ChangeTimes::Useless, 77).proves_content(&stat()));
    }

    /// A number that is given out at each mount tells nothing after a reboot.
    #[test]
    fn fingerprint_leaves_the_device_out_where_the_file_system_knows_itself() {
        let on = |device: u64, id: u64| {
            let ground = Ground { device, ..ground(ChangeTimes::Kept, id) };
            ground.fingerprint(&Stat { device, ..stat() }, NOW).unwrap()
        };
        assert_eq!(on(3, 77), on(4, 77));
        assert_ne!(on(3, 0), on(4, 0));
    }
}
