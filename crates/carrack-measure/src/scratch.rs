//! The directory in which a measurement writes: hidden, locked by its process, and gone afterwards.
//!
//! Whoever holds the lock of such a directory owns it. A process that was killed holds no lock: the next measurement in
//! the same place takes it and removes what was left.

use std::fs::File;
use std::io;
use std::path::Path;

use carrack_core::path::display_bytes;
use carrack_sys::dir::{Dir, Links, stat_file};
use carrack_sys::gauge::{self, IoMode};

const PREFIX: &[u8] = b".carrack-bench-";
const LOCK: &[u8] = b"lock";
/// Names of data files, and of directories of small files, begin so.
const DATA: &str = "data-";
const FILES: &str = "files-";

/// A directory of this process's own.
#[derive(Debug)]
pub struct Scratch {
    parent: Dir,
    name: Vec<u8>,
    directory: Dir,
    /// Held until the directory is gone.
    _lock: File,
}

impl Scratch {
    /// Makes one in a directory.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::AlreadyExists`] if others took it away again and again.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let parent = Dir::open_ambient(parent)?;
        for _ in 0..16 {
            let mut random = [0; 8];
            carrack_sys::host::random_bytes(&mut random)?;
            let name = format!("{:016x}", u64::from_le_bytes(random));
            let name = [PREFIX, name.as_bytes()].concat();
            parent.make_dir(&name, 0o700)?;
            let directory = parent.open_dir(&name, Links::Refuse)?;
            // Another measurement that begins may sweep the directory before it is locked: then this is tried anew.
            if let Some(lock) = own(&directory) {
                return Ok(Self { parent, name, directory, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The directory.
    pub fn directory(&self) -> &Dir {
        &self.directory
    }

    /// Its name in the directory it was made in, printable.
    pub fn name(&self) -> String {
        display_bytes(&self.name).to_string()
    }

    /// The name of a data file.
    pub fn data_name(number: usize) -> Vec<u8> {
        format!("{DATA}{number}").into_bytes()
    }

    /// The name of a directory of small files.
    pub fn files_name(number: usize) -> Vec<u8> {
        format!("{FILES}{number}").into_bytes()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now, the next measurement here removes.
        let _ = remove(&self.parent, &self.name, &self.directory);
    }
}

/// Takes the lock of a directory. `None` if another process has it, or has just removed it.
fn own(directory: &Dir) -> Option<File> {
    let lock = gauge::open(directory, LOCK, IoMode::Buffered).ok()?;
    // A file system without locks (some network file systems): the directory is ours all the same, and nobody sweeps
    // it, since nobody can take its lock.
    if !carrack_sys::file::try_lock(&lock).unwrap_or(true) {
        return None;
    }
    let (open, named) = (stat_file(&lock).ok()?, directory.stat_at(LOCK).ok()?);
    ((open.device, open.inode) == (named.device, named.inode)).then_some(lock)
}

/// Removes what measurements that were killed have left in a directory, and answers with their names.
///
/// # Errors
/// If the directory cannot be read. What belongs to others, or is in use, is left.
pub fn sweep(parent: &Path) -> io::Result<Vec<String>> {
    let parent = Dir::open_ambient(parent)?;
    let mut removed = Vec::new();
    for name in names(&parent)?.into_iter().filter(|name| is_ours(name)) {
        let Ok(directory) = parent.open_dir(&name, Links::Refuse) else { continue };
        let Ok(lock) = gauge::open(&directory, LOCK, IoMode::Buffered) else { continue };
        if matches!(carrack_sys::file::try_lock(&lock), Ok(true)) && remove(&parent, &name, &directory).is_ok() {
            removed.push(display_bytes(&name).to_string());
        }
    }
    Ok(removed)
}

fn is_ours(name: &[u8]) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Removes a directory with everything that a measurement makes in it, the lock last. Other names are left, and so is
/// then the directory.
fn remove(parent: &Dir, name: &[u8], directory: &Dir) -> io::Result<()> {
    for inside in names(directory)? {
        if inside.starts_with(DATA.as_bytes()) {
            directory.unlink(&inside)?;
        } else if inside.starts_with(FILES.as_bytes()) {
            empty(&directory.open_dir(&inside, Links::Refuse)?)?;
            directory.remove_dir(&inside)?;
        }
    }
    directory.unlink(LOCK)?;
    parent.remove_dir(name)
}

/// Removes the files of a directory, not its directories.
pub(crate) fn empty(directory: &Dir) -> io::Result<()> {
    names(directory)?.iter().try_for_each(|name| directory.unlink(name))
}

fn names(directory: &Dir) -> io::Result<Vec<Vec<u8>>> {
    let mut entries = directory.entries()?;
    let mut batch = Vec::new();
    let mut names = Vec::new();
    loop {
        let more = entries.next_batch(&mut batch)?;
        names.extend(batch.drain(..).map(|entry| entry.name));
        if !more {
            return Ok(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    fn fill(scratch: &Scratch) {
        gauge::open(scratch.directory(), &Scratch::data_name(0), IoMode::Buffered).unwrap();
        scratch.directory().make_dir(&Scratch::files_name(0), 0o700).unwrap();
        let files = scratch.directory().open_dir(&Scratch::files_name(0), Links::Refuse).unwrap();
        gauge::open(&files, b"f1", IoMode::Buffered).unwrap();
    }

    #[test]
    fn scratch_is_gone_afterwards() {
        let place = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(place.path()).unwrap();
        fill(&scratch);
        assert_eq!(left(place.path()), 1);
        drop(scratch);
        assert_eq!(left(place.path()), 0);
    }

    #[test]
    fn sweep_removes_what_a_killed_process_left_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let used = Scratch::create(place.path()).unwrap();
        fill(&used);
        // As after SIGKILL: everything is there, and the lock is free.
        let killed = place.path().join(".carrack-bench-0123456789abcdef");
        std::fs::create_dir_all(killed.join("files-3")).unwrap();
        for name in ["lock", "data-0", "data-1", "files-3/f9"] {
            std::fs::write(killed.join(name), name).unwrap();
        }
        // Killed before it had a lock.
        std::fs::create_dir(place.path().join(".carrack-bench-0000000000000000")).unwrap();
        std::fs::create_dir(place.path().join(".carrack-bench-mine")).unwrap();
        std::fs::write(place.path().join("data-0"), "mine").unwrap();
        let mut swept = sweep(place.path()).unwrap();
        swept.sort();
        assert_eq!(swept, [".carrack-bench-0000000000000000", ".carrack-bench-0123456789abcdef"]);
        assert_eq!(left(place.path()), 3);
        assert!(place.path().join(used.name()).join("data-0").exists());
    }

    #[test]
    fn sweep_leaves_a_directory_with_names_that_it_does_not_know() {
        let place = tempfile::tempdir().unwrap();
        let strange = place.path().join(".carrack-bench-0123456789abcdef");
        std::fs::create_dir(&strange).unwrap();
        std::fs::write(strange.join("thesis.tex"), "mine").unwrap();
        assert!(sweep(place.path()).unwrap().is_empty());
        assert!(strange.join("thesis.tex").exists());
    }

    #[test]
    fn sweep_follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        std::fs::write(other.path().join("data-0"), "mine").unwrap();
        let link = place.path().join(".carrack-bench-0123456789abcdef");
        std::os::unix::fs::symlink(other.path(), &link).unwrap();
        assert!(sweep(place.path()).unwrap().is_empty());
        assert!(other.path().join("data-0").exists());
    }
}
