//! What syncs have said of a session's destination, and what has got its name since the last good one.
//!
//! A system tells once that a sync failed: asked again, it says that all is well, and what was lost stays lost. So the
//! first failure is remembered here to the end of the session, which is not durable then.

use std::sync::Mutex;

use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Side, Unsynced};

use crate::error::failure;
use crate::sync::lock;

/// The syncs of a session.
#[derive(Default)]
pub struct Syncs(Mutex<SyncState>);

#[derive(Default)]
struct SyncState {
    failed: Option<Failure>,
    /// What has got its name, and of which no sync has said yet that it is on stable storage.
    unsynced: Unsynced,
    /// Bytes of their paths, with what protobuf says of lengths.
    path_bytes: usize,
}

impl SyncState {
    fn named(&mut self, path: &[u8]) {
        self.unsynced.count += 1;
        let bytes = self.path_bytes + path.len() + 4;
        if bytes <= limits::UNSYNCED_PATHS_BYTES {
            self.path_bytes = bytes;
            self.unsynced.paths.push(path.to_vec());
        }
    }

    fn take(&mut self) -> Unsynced {
        self.path_bytes = 0;
        std::mem::take(&mut self.unsynced)
    }
}

impl Syncs {
    /// A sync of names, or of a whole file system, has failed.
    pub fn failed(&self, why: &Failure) {
        lock(&self.0).failed.get_or_insert_with(|| why.clone());
    }

    /// A sync of one file has failed. Storage that is full lost what it could not take, and nothing else.
    pub fn file_failed(&self, why: &Failure) {
        if !matches!(why.code, ErrorCode::NoSpace | ErrorCode::QuotaExceeded | ErrorCode::FileTooLarge) {
            self.failed(why);
        }
    }

    /// An item has got its name, which was not synced by itself.
    pub fn named(&self, path: &[u8]) {
        lock(&self.0).named(path);
    }

    /// Syncs all that has got its name up to now. After one that failed a good one proves nothing.
    ///
    /// # Errors
    /// Those of the sync.
    pub fn all(&self, sync: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let before = lock(&self.0).take();
        let synced = sync();
        if let Err(why) = &synced {
            self.failed(why);
        }
        let mut state = lock(&self.0);
        if state.failed.is_some() {
            let since = state.take();
            before.paths.iter().chain(&since.paths).for_each(|path| state.named(path));
            state.unsynced.count = before.count + since.count;
        }
        synced
    }

    /// Whether every sync was good.
    ///
    /// # Errors
    /// What the first said that was not.
    pub fn check(&self) -> Result<(), Failure> {
        let state = lock(&self.0);
        let Some(first) = &state.failed else { return Ok(()) };
        let lost = match state.unsynced.count {
            0 => "all that has its name was synced before".to_owned(),
            1 => "1 item that had got its name since the last good sync may be gone, or not whole".to_owned(),
            count => {
                format!("{count} items that had got their names since the last good sync may be gone, or not whole")
            }
        };
        let why = format!("a sync failed, and what it lost no later one brings back: {lost}");
        Err(failure(first.code, Side::Destination, why).caused_by(first.clone()))
    }

    /// What may be gone; nothing as long as every sync was good.
    pub fn unsynced(&self) -> Unsynced {
        let state = lock(&self.0);
        state.failed.as_ref().map_or_else(Unsynced::default, |_| state.unsynced.clone())
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
        syncs.named(b"first");
        syncs.all(|| Ok(())).unwrap();
        syncs.named(b"second");
        assert_eq!((syncs.check(), syncs.unsynced()), (Ok(()), Unsynced::default()));
        let failing = syncs.all(|| {
            syncs.named(b"third");
            Err(lost(ErrorCode::ReadOnlyFileSystem))
        });
        assert!(failing.is_err());
        let why = syncs.check().unwrap_err();
        assert_eq!(why.code, ErrorCode::ReadOnlyFileSystem);
        assert!(why.to_string().contains("2 items"), "{why}");
        assert_eq!(syncs.unsynced(), Unsynced { count: 2, paths: vec![b"second".to_vec(), b"third".to_vec()] });
        syncs.all(|| Ok(())).unwrap();
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
        (0..100).for_each(|_| syncs.named(&path));
        syncs.failed(&lost(ErrorCode::InputOutput));
        let unsynced = syncs.unsynced();
        assert_eq!(unsynced.count, 100);
        assert!((60..=66).contains(&unsynced.paths.len()), "{}", unsynced.paths.len());
    }
}
