//! How much file systems hold. One that is silent is asked once, whoever wants to know it, and nobody waits for long.

use carrack_engine::sync::{lock, unpoisoned};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use carrack_engine::threads;

use crate::model::StorageStatus;
use carrack_core::location::decode_path;

/// A file system that does not answer by then is told so; others do not wait for it.
const STORAGE_PATIENCE: Duration = Duration::from_secs(2);

/// What is being found out.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What file systems have been asked, by root, and have not answered. Nobody asks a second time meanwhile.
    asked: Arc<Mutex<BTreeMap<PathBuf, Arc<Question>>>>,
}

/// How much a file system holds.
#[derive(Clone, Copy, Debug)]
struct Space {
    bytes_total: u64,
    bytes_free: u64,
    files_total: u64,
    files_free: u64,
}

impl Space {
    fn of(root: &Path) -> Result<Self, String> {
        let told = rustix::fs::statvfs(root).map_err(|error| std::io::Error::from(error).to_string())?;
        Ok(Self {
            bytes_total: told.f_blocks.saturating_mul(told.f_frsize),
            bytes_free: told.f_bavail.saturating_mul(told.f_frsize),
            files_total: told.f_files,
            files_free: told.f_favail,
        })
    }
}

/// What a file system is asked. All who ask it meanwhile get the one answer.
#[derive(Debug)]
struct Question {
    until: Instant,
    answer: Mutex<Option<Result<Space, String>>>,
    answered: Condvar,
}

impl Question {
    fn of(root: PathBuf, asked: &Arc<Mutex<BTreeMap<PathBuf, Arc<Self>>>>) -> Arc<Self> {
        let mut open = lock(asked);
        if let Some(question) = open.get(&root) {
            return Arc::clone(question);
        }
        let until = Instant::now() + STORAGE_PATIENCE;
        let question = Arc::new(Self { until, answer: Mutex::default(), answered: Condvar::new() });
        let (own, asked, path) = (Arc::clone(&question), Arc::clone(asked), root.clone());
        let ask = move || {
            let told = Space::of(&path);
            lock(&asked).remove(&path);
            own.tell(told);
        };
        match threads::start_named("storage", ask) {
            Ok(_) => _ = open.insert(root, Arc::clone(&question)),
            Err(error) => question.tell(Err(format!("it cannot be asked: {error}"))),
        }
        question
    }

    fn tell(&self, told: Result<Space, String>) {
        *lock(&self.answer) = Some(told);
        self.answered.notify_all();
    }

    fn wait(&self) -> Result<Space, String> {
        let left = self.until.saturating_duration_since(Instant::now());
        let waited = self.answered.wait_timeout_while(lock(&self.answer), left, |answer| answer.is_none());
        let (answer, _) = unpoisoned(waited);
        answer.clone().unwrap_or_else(|| Err("its file system does not answer".to_owned()))
    }
}

impl Found {
    /// How much the file system of each root holds, all asked at once. Roots are told as endpoints have them.
    pub fn storage(&self, roots: Vec<(String, String)>) -> Vec<StorageStatus> {
        let ask = |(endpoint, root): (String, String)| {
            let question = decode_path(root.as_bytes());
            let question = question.map(|root| Question::of(PathBuf::from(OsString::from_vec(root)), &self.asked));
            (endpoint, root, question)
        };
        let asked: Vec<_> = roots.into_iter().map(ask).collect();
        let status = |(endpoint, root, question): (String, String, Result<Arc<Question>, String>)| match question
            .and_then(|question| question.wait())
        {
            Ok(space) => StorageStatus {
                bytes_total: Some(space.bytes_total),
                bytes_free: Some(space.bytes_free),
                files_total: Some(space.files_total),
                files_free: Some(space.files_free),
                failure: None,
                endpoint,
                root,
            },
            Err(why) => StorageStatus { failure: Some(why), ..StorageStatus::of(endpoint, root) },
        };
        asked.into_iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn who_asks_what_is_being_asked_gets_the_same_answer() {
        let asked = Arc::<Mutex<BTreeMap<PathBuf, Arc<Question>>>>::default();
        let question = Arc::new(Question {
            until: Instant::now() + Duration::from_secs(600),
            answer: Mutex::default(),
            answered: Condvar::new(),
        });
        lock(&asked).insert(PathBuf::from("/"), Arc::clone(&question));
        let second = Question::of(PathBuf::from("/"), &asked);
        assert!(Arc::ptr_eq(&question, &second), "it is not asked twice");
        let waiting = std::thread::spawn(move || second.wait());
        question.tell(Space::of(Path::new("/")));
        assert!(waiting.join().unwrap().is_ok_and(|space| space.bytes_total > 0));
    }

    #[test]
    fn file_system_that_is_silent_for_too_long_is_said_so_at_once() {
        let question = Question { until: Instant::now(), answer: Mutex::default(), answered: Condvar::new() };
        assert_eq!(question.wait().unwrap_err(), "its file system does not answer");
        question.tell(Err("gone".to_owned()));
        assert_eq!(question.wait().unwrap_err(), "gone");
    }

    #[test]
    fn storage_of_a_root_whose_name_is_no_text_is_found() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(std::ffi::OsStr::from_bytes(b"100% \xff"))).unwrap();
        let roots = ["100%25 %FF", "100%", "missing"]
            .map(|name| (name.to_owned(), format!("{}/{name}", directory.path().display())));
        let found = Found::default().storage(roots.to_vec());
        let failed: Vec<_> = found.iter().map(|one| one.failure.is_some()).collect();
        assert_eq!(failed, [false, true, true], "{found:?}");
        assert!(found[0].bytes_total > Some(0), "{found:?}");
    }
}
