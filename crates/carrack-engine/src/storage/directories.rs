//! The directories of a destination: made and opened one below the other, no link followed on the way, and a bounded number of
//! them kept open.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carrack_core::path::{display_bytes, split_name};
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_sys::dir::{Dir, Links};
use carrack_sys::errno::ESTALE;

use super::descriptors::{open_directories_max, patiently};
use crate::error::{failure, io_failure};

/// By device and inode, the name that something of this session was given.
pub type Names = HashMap<(u64, u64), Vec<u8>>;

/// A directory, kept open.
pub struct OpenDir {
    /// The directory.
    pub dir: Dir,
    /// Of its file system.
    pub device: u64,
    /// Made by this transfer: nothing can stand in the way there.
    pub fresh: bool,
}

/// A directory and those below it. Whoever needs one asks for it by its path each time: held by what waits to be published, open
/// directories would have no bound.
pub struct Directories {
    /// The topmost one.
    pub root: Arc<OpenDir>,
    open: Mutex<HashMap<Vec<u8>, Arc<OpenDir>>>,
    open_max: usize,
    /// The name of a new directory is synced before anything gets a name in it.
    sync_names: bool,
    /// Where two names may be one: the directories of this session, and the names that they were made or found by.
    twins: Option<Mutex<Names>>,
}

impl Directories {
    /// Below this one.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn new(root: Dir, sync_names: bool, names_fold: bool) -> io::Result<Self> {
        let device = root.stat_self()?.device;
        let root = Arc::new(OpenDir { dir: root, device, fresh: false });
        let twins = names_fold.then(Mutex::default);
        Ok(Self { root, open: Mutex::default(), open_max: open_directories_max(), sync_names, twins })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Arc<OpenDir>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something in a directory; once more, with the directory opened anew, when the server of the file system has forgotten the
    /// handle.
    ///
    /// # Errors
    /// As [`Directories::get`]; those of what is done, named by `what`.
    pub fn within<T>(
        &self,
        path: &[u8],
        what: &str,
        mut work: impl FnMut(&OpenDir) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let directory = self.get(path)?;
        let done = match work(&directory) {
            Err(error) if is_stale(&error) && !path.is_empty() => {
                self.lock().clear();
                work(&*self.get(path)?)
            }
            other => other,
        };
        done.map_err(|error| io_failure(Side::Destination, what, &error))
    }

    /// A directory below the root, if it is there.
    pub fn find(&self, path: &[u8]) -> Option<Arc<OpenDir>> {
        if path.is_empty() {
            return Some(Arc::clone(&self.root));
        }
        if let Some(found) = self.lock().get(path) {
            return Some(Arc::clone(found));
        }
        let dir = patiently(|| self.root.dir.open_dir(path, Links::Refuse)).ok()?;
        let device = dir.stat_self().ok()?.device;
        Some(Arc::new(OpenDir { dir, device, fresh: false }))
    }

    /// A directory below the root, made if it is not there.
    ///
    /// # Errors
    /// When something else stands there, and those of the file system.
    pub fn get(&self, path: &[u8]) -> Result<Arc<OpenDir>, Failure> {
        if path.is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        let mut open = self.lock();
        // From the nearest directory that is open already, downwards.
        let mut known = path;
        let mut current = loop {
            if let Some(found) = open.get(known) {
                break Arc::clone(found);
            }
            known = split_name(known).0;
            if known.is_empty() {
                break Arc::clone(&self.root);
            }
        };
        let mut done = known.len();
        while done < path.len() {
            let start = if done == 0 { 0 } else { done + 1 };
            let end = path[start..].iter().position(|&byte| byte == b'/').map_or(path.len(), |place| start + place);
            let at = || display_bytes(&path[..end]);
            let next = patiently(|| enter(&current.dir, &path[start..end]))
                .and_then(
                    |next| if next.fresh && self.sync_names { current.dir.sync().map(|()| next) } else { Ok(next) },
                )
                .map_err(|error| io_failure(Side::Destination, format!("directory {}", at()), &error))?;
            self.check_twin(&next, &path[..end])?;
            if open.len() >= self.open_max {
                open.clear();
            }
            current = Arc::new(next);
            open.insert(path[..end].to_vec(), Arc::clone(&current));
            done = end;
        }
        Ok(current)
    }

    /// Two directories of one copy must not become one.
    fn check_twin(&self, found: &OpenDir, path: &[u8]) -> Result<(), Failure> {
        let Some(twins) = &self.twins else { return Ok(()) };
        let stat =
            found.dir.stat_self().map_err(|error| io_failure(Side::Destination, "stat the directory", &error))?;
        let mut twins = twins.lock().unwrap_or_else(PoisonError::into_inner);
        let first = twins.entry((stat.device, stat.inode)).or_insert_with(|| path.to_vec());
        if first == path { Ok(()) } else { Err(twin(path, first)) }
    }
}

/// Two names of one copy are one name at the destination.
pub fn twin(path: &[u8], first: &[u8]) -> Failure {
    let message = format!(
        "{} is at the destination the same name as {}, which this copy has put there: rename one, or copy to a file system that tells \
         them apart",
        display_bytes(path),
        display_bytes(first)
    );
    failure(ErrorCode::AlreadyExists, Side::Destination, message)
}

/// A handle that the server of a network file system no longer knows.
pub fn is_stale(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ESTALE)
}

/// Opens an entry as a directory, or makes it one.
fn enter(parent: &Dir, name: &[u8]) -> io::Result<OpenDir> {
    let fresh = match parent.make_dir(name, 0o700) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    let dir = parent.open_dir(name, Links::Refuse)?;
    let device = dir.stat_self()?.device;
    Ok(OpenDir { dir, device, fresh })
}
