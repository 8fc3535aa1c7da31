//! The state directory: one service at a time, nobody else's business.

use std::fmt;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A service that was killed while it began a worker holds the directory until that worker runs its own program.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two attempts to take it.
const PAUSE: Duration = Duration::from_millis(10);

/// Where a service keeps everything. While this is there, no other service opens the same directory.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    _lock: File,
}

/// Why the state directory cannot be used.
#[derive(Debug)]
pub enum DirectoryError {
    /// Another service holds it.
    InUse(PathBuf),
    /// The system said no.
    System(PathBuf, io::Error),
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(f, "another service uses the state directory {}", path.display()),
            Self::System(path, error) => write!(f, "state directory: {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for DirectoryError {}

impl Directory {
    /// Makes the directory where it is missing, and takes it. It is for the account of the service alone; a socket for
    /// others stands elsewhere.
    ///
    /// # Errors
    /// Where another service holds it, or the system refuses.
    pub fn open(path: &Path) -> Result<Self, DirectoryError> {
        let system = |path: &Path| {
            let path = path.to_owned();
            move |error| DirectoryError::System(path, error)
        };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(system(path))?;
        let path = path.canonicalize().map_err(system(path))?;
        let tasks = path.join("tasks");
        DirBuilder::new().recursive(true).mode(0o700).create(&tasks).map_err(system(&tasks))?;
        let mode = std::fs::metadata(&tasks).map_err(system(&tasks))?.permissions().mode();
        if mode & 0o077 != 0 {
            let why =
                io::Error::other("others may read it: the journals of tasks are in it; take that away by chmod 700");
            return Err(DirectoryError::System(tasks, why));
        }
        let lock_path = path.join("service.lock");
        let mut open = File::options();
        let lock =
            open.create(true).truncate(false).write(true).mode(0o600).open(&lock_path).map_err(system(&lock_path))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path, _lock: lock }),
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(DirectoryError::InUse(path)),
                Err(TryLockError::Error(error)) => return Err(DirectoryError::System(lock_path, error)),
            }
        }
    }

    /// The directory itself, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The database.
    pub fn ledger(&self) -> PathBuf {
        self.path.join("ledger.db")
    }

    /// A directory for each task, with its journal.
    pub fn tasks(&self) -> PathBuf {
        self.path.join("tasks")
    }

    /// A directory for each upload, with its blocks.
    pub fn uploads(&self) -> PathBuf {
        self.path.join("uploads")
    }

    /// A file for each kind of measurement of each endpoint.
    pub fn bench(&self) -> PathBuf {
        self.path.join("bench")
    }

    /// The key that seals tokens of endpoints.
    pub fn seal_key(&self) -> PathBuf {
        self.path.join("seal.key")
    }

    /// The key that signs receipts.
    pub fn receipt_key(&self) -> PathBuf {
        self.path.join("receipt.key")
    }

    /// The number of the last event that was told to others.
    pub fn notified(&self) -> PathBuf {
        self.path.join("notified")
    }

    /// The Unix socket of the API.
    pub fn socket(&self) -> PathBuf {
        self.path.join("service.sock")
    }

    /// Has the socket's usual place lead to where it is now: clients look there. Whatever a service before has left
    /// there goes.
    ///
    /// # Errors
    /// The system's.
    pub fn link_socket(&self, moved: &Path) -> io::Result<()> {
        let (usual, moved) = (self.socket(), std::path::absolute(moved)?);
        if moved == usual {
            return Ok(());
        }
        match std::fs::remove_file(&usual) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => std::os::unix::fs::symlink(moved, usual),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_directory_has_one_service_at_a_time_and_nobody_else_reads_it() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("a/b");
        let directory = Directory::open(&path).unwrap();
        assert!(matches!(Directory::open(&path), Err(DirectoryError::InUse(_))));
        // Whoever comes while it is given up waits for it.
        let (begun, has_begun) = std::sync::mpsc::channel();
        let next = std::thread::spawn({
            let path = path.clone();
            move || {
                begun.send(()).unwrap();
                Directory::open(&path)
            }
        });
        has_begun.recv().unwrap();
        std::thread::park_timeout(20 * PAUSE);
        drop(directory);
        let directory = next.join().unwrap().unwrap();
        for file in [directory.path().to_owned(), directory.tasks(), directory.path().join("service.lock")] {
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0, "{}", file.display());
        }
        let tasks = directory.tasks();
        drop(directory);
        std::fs::set_permissions(&tasks, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Directory::open(&path).unwrap_err().to_string().contains("chmod 700"));
    }
}
