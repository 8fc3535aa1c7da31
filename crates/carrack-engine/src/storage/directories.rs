//! The directories of a destination: made and opened one below the other, no link followed on the way, and a bounded number of
//! them kept open.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use carrack_core::path::{display_bytes, split_name};
use carrack_core::report::{Failure, Side};
use carrack_sys::dir::{Dir, Links};

use super::descriptors::{open_directories_max, patiently};
use crate::error::io_failure;

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
}

impl Directories {
    /// Below this one.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn new(root: Dir) -> io::Result<Self> {
        let device = root.stat_self()?.device;
        let root = Arc::new(OpenDir { dir: root, device, fresh: false });
        Ok(Self { root, open: Mutex::default(), open_max: open_directories_max() })
    }

    /// A directory below the root, made if it is not there.
    ///
    /// # Errors
    /// When something else stands there, and those of the file system.
    pub fn get(&self, path: &[u8]) -> Result<Arc<OpenDir>, Failure> {
        if path.is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
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
                .map_err(|error| io_failure(Side::Destination, format!("directory {}", at()), &error))?;
            if open.len() >= self.open_max {
                open.clear();
            }
            current = Arc::new(next);
            open.insert(path[..end].to_vec(), Arc::clone(&current));
            done = end;
        }
        Ok(current)
    }
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
