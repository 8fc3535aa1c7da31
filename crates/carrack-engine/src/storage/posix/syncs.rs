//! What syncs have said of a session's destination, and what has got its name since the last good one.
//!
//! A system tells once that a sync failed: asked again, it says that all is well, and what was lost stays lost. So the
//! first failure is remembered here to the end of the session, which is not durable then.

use std::collections::BTreeMap;
use std::sync::Mutex;

use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Side, Unsynced};

use crate::error::failure;
use crate::sync::lock;

/// Called when a sync of names, or of a whole file system, has failed.
pub type Doubt = Box<dyn Fn() + Send + Sync>;

/// The syncs of a session.
#[derive(Default)]
pub struct Syncs {
    state: Mutex<SyncState>,
    /// Told of a failed sync: the marker must not claim what is in doubt.
    doubt: Option<Doubt>,
}

#[derive(Default)]
struct SyncState {
    failed: Option<Failure>,
    /// By file system, names of which no sync has said yet that they are on stable storage.
    unsynced: BTreeMap<u64, Unsynced>,
    /// Bytes of their paths, with what protobuf says of lengths.
    path_bytes: usize,
    /// Number of their paths.
    path_count: usize,
}

impl SyncState {
    fn named(&mut self, device: u64, path: &[u8]) {
        let unsynced = self.unsynced.entry(device).or_default();
        unsynced.count += 1;
        let bytes = self.path_bytes + path.len() + 4;
        if bytes <= limits::UNSYNCED_PATHS_BYTES && self.path_count < limits::UNSYNCED_PATHS {
            (self.path_bytes, self.path_count) = (bytes, self.path_count + 1);
            unsynced.paths.push(path.to_vec());
        }
    }

    /// Names on these file systems, so many of them, are on stable storage.
    fn synced(&mut self, marks: &BTreeMap<u64, (u64, usize)>) {
        for (device, (count, paths)) in marks {
            let Some(unsynced) = self.unsynced.get_mut(device) else { continue };
            unsynced.count -= count;
            self.path_count -= paths;
            self.path_bytes -= unsynced.paths.drain(..paths).map(|path| path.len() + 4).sum::<usize>();
        }
    }
}

impl Syncs {
    /// Of a session that keeps a marker, or of one that keeps none.
    pub fn new(doubt: Option<Doubt>) -> Self {
        Self { doubt, ..Self::default() }
    }

    /// A sync of names, or of a whole file system, has failed.
    pub fn failed(&self, why: &Failure) {
        lock(&self.state).failed.get_or_insert_with(|| why.clone());
        self.doubt.iter().for_each(|doubt| doubt());
    }

    /// A sync of one file has failed. Storage that is full lost what it could not take, and nothing else. The marker
    /// goes on to claim other items: an error of one file's content says nothing of them.
    pub fn file_failed(&self, why: &Failure) {
        if !matches!(why.code, ErrorCode::NoSpace | ErrorCode::QuotaExceeded | ErrorCode::FileTooLarge) {
            lock(&self.state).failed.get_or_insert_with(|| why.clone());
        }
    }

    /// An item has its name on a file system, which was not synced by itself.
    pub fn named(&self, device: u64, path: &[u8]) {
        lock(&self.state).named(device, path);
    }

    /// Syncs one file system, or all of them, with the names that are there up to now. After a sync that failed a good
    /// one proves nothing.
    ///
    /// # Errors
    /// Those of the sync.
    pub fn sync(&self, device: Option<u64>, sync: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let marks: BTreeMap<_, _> = {
            let state = lock(&self.state);
            let of = state.unsynced.iter().filter(|(one, _)| device.is_none_or(|device| device == **one));
            of.map(|(device, unsynced)| (*device, (unsynced.count, unsynced.paths.len()))).collect()
        };
        let synced = sync();
        if let Err(why) = &synced {
            self.failed(why);
        }
        let mut state = lock(&self.state);
        if state.failed.is_none() {
            state.synced(&marks);
        }
        synced
    }

    /// Whether every sync was good.
    ///
    /// # Errors
    /// What the first said that was not.
    pub fn check(&self) -> Result<(), Failure> {
        let state = lock(&self.state);
        let Some(first) = &state.failed else { return Ok(()) };
        let lost = match state.unsynced.values().map(|unsynced| unsynced.count).sum::<u64>() {
            0 => "all that has its name was synced before".to_owned(),
            1 => "1 item that had got its name since the last good sync may be gone, or not whole".to_owned(),
            count => {
                format!("{count} items that had got their names since the last good sync may be gone, or not whole")
            }
        };
        let why = format!("a sync failed, and what it lost no later one brings back: {lost}");
        // Storage that did not answer in time, or lacked memory, has lost data all the same: nothing passes by itself.
        let code = if first.code.may_pass() { ErrorCode::InputOutput } else { first.code };
        Err(failure(code, Side::Destination, why).caused_by(first.clone()))
    }

    /// What may be gone; nothing as long as every sync was good.
    pub fn unsynced(&self) -> Unsynced {
        let state = lock(&self.state);
        let mut all = Unsynced::default();
        if state.failed.is_some() {
            for one in state.unsynced.values() {
                all.count += one.count;
                all.paths.extend_from_slice(&one.paths);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(code: ErrorCode) -> Failure {
        failure(code, Side::Destination, "lost")
    }

    /// A system that tells once of an error, and then that all is well.
    #[test]
    fn syncs_that_failed_once_are_not_good_again() {
        let syncs = Syncs::default();
        syncs.named(1, b"first");
        syncs.sync(None, || Ok(())).unwrap();
        syncs.named(1, b"second");
        assert_eq!((syncs.check(), syncs.unsynced()), (Ok(()), Unsynced::default()));
        let failing = syncs.sync(None, || {
            syncs.named(1, b"third");
            Err(lost(ErrorCode::ReadOnlyFileSystem))
        });
        assert!(failing.is_err());
        let why = syncs.check().unwrap_err();
        assert_eq!(why.code, ErrorCode::ReadOnlyFileSystem);
        assert!(why.to_string().contains("2 items"), "{why}");
        assert_eq!(syncs.unsynced(), Unsynced { count: 2, paths: vec![b"second".to_vec(), b"third".to_vec()] });
        syncs.sync(None, || Ok(())).unwrap();
        assert_eq!(syncs.check().unwrap_err().code, ErrorCode::ReadOnlyFileSystem);
        assert_eq!(syncs.unsynced().count, 2);
    }

    #[test]
    fn syncs_of_one_file_fail_the_session_unless_storage_is_full() {
        let syncs = Syncs::default();
        for code in [ErrorCode::NoSpace, ErrorCode::QuotaExceeded, ErrorCode::FileTooLarge] {
            syncs.file_failed(&lost(code));
            assert_eq!(syncs.check(), Ok(()));
        }
        syncs.file_failed(&lost(ErrorCode::InputOutput));
        assert_eq!(syncs.check().unwrap_err().code, ErrorCode::InputOutput);
    }

    #[test]
    fn unsynced_names_are_bounded_and_counted() {
        let syncs = Syncs::default();
        let path = vec![b'a'; 4000];
        (0..100).for_each(|_| syncs.named(1, &path));
        syncs.failed(&lost(ErrorCode::InputOutput));
        let unsynced = syncs.unsynced();
        assert_eq!(unsynced.count, 100);
        assert!((60..=66).contains(&unsynced.paths.len()), "{}", unsynced.paths.len());
    }

    /// A good sync of one file system says nothing of another, nor of what got its name while it went on.
    #[test]
    fn syncs_of_one_file_system_leave_the_names_of_another_in_doubt() {
        let syncs = Syncs::default();
        syncs.named(1, b"root");
        syncs.named(2, b"mounted/below");
        let during = || {
            syncs.named(1, b"later");
            Ok(())
        };
        syncs.sync(Some(1), during).unwrap();
        syncs.sync(None, || Err(lost(ErrorCode::InputOutput))).unwrap_err();
        let unsynced = syncs.unsynced();
        assert_eq!(unsynced, Unsynced { count: 2, paths: vec![b"later".to_vec(), b"mounted/below".to_vec()] });
    }

    /// A run must not try again by itself, and end well, because storage was silent for a while.
    #[test]
    fn syncs_that_failed_in_passing_fail_for_good() {
        for code in [ErrorCode::Silence, ErrorCode::ResourceLimit, ErrorCode::ConnectionLost] {
            let syncs = Syncs::default();
            syncs.failed(&lost(code));
            assert_eq!(syncs.check().unwrap_err().code, ErrorCode::InputOutput);
        }
    }

    #[test]
    fn unsynced_names_that_are_short_are_bounded_in_number() {
        let syncs = Syncs::default();
        (0..limits::UNSYNCED_PATHS + 10).for_each(|number| syncs.named(1, format!("s3/{number:04}").as_bytes()));
        syncs.failed(&lost(ErrorCode::InputOutput));
        let unsynced = syncs.unsynced();
        assert_eq!(
            (unsynced.paths.len(), unsynced.count),
            (limits::UNSYNCED_PATHS, limits::UNSYNCED_PATHS as u64 + 10)
        );
    }
}
