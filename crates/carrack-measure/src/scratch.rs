//! The directory in which a measurement writes: hidden, locked by its process, and gone afterwards.
//!
//! Whoever holds the lock of such a directory owns it. A process that was killed holds no lock: the next measurement in
//! the same place takes it and removes what was left.
//!
//! Some network file systems keep locks on each host alone (Lustre with `localflock`, NFS with `local_lock`), so that a
//! lock that can be taken says nothing about another host. The file of the lock names the boot of its host: what is of
//! another one is removed when nothing in it has changed for a day.

use std::fs::File;
use std::io;
use std::path::Path;

use carrack_core::path::display_bytes;
use carrack_sys::dir::{Dir, Links, stat_file};
use carrack_sys::file::{read_full_at, write_all_at};
use carrack_sys::gauge::{self, IoMode};
use carrack_sys::host;

const PREFIX: &[u8] = b".carrack-bench-";
const LOCK: &[u8] = b"lock";
/// Names of data files, and of directories of small files, begin so.
const DATA: &str = "data-";
const FILES: &str = "files-";
/// A directory of another host in which nothing has changed for so long is nobody's any more.
const FOREIGN_AGE_SECONDS: i64 = 24 * 3600;

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
        Self::create_with(parent, own)
    }

    fn create_with(parent: &Path, own: fn(&Dir) -> io::Result<Option<File>>) -> io::Result<Self> {
        let parent = Dir::open_ambient(parent)?;
        for _ in 0..16 {
            let mut random = [0; 8];
            carrack_sys::host::random_bytes(&mut random)?;
            let name = format!("{:016x}", u64::from_le_bytes(random));
            let name = [PREFIX, name.as_bytes()].concat();
            parent.make_dir(&name, 0o700)?;
            let directory = parent.open_dir(&name, Links::Refuse)?;
            // Another measurement that begins may sweep the directory before it is locked: then this is tried anew.
            match own(&directory) {
                Ok(Some(lock)) => return Ok(Self { parent, name, directory, _lock: lock }),
                Ok(None) => {}
                Err(error) => {
                    // What cannot be removed now, the next measurement here removes.
                    let _ = directory.unlink(LOCK);
                    let _ = parent.remove_dir(&name);
                    return Err(error);
                }
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
fn own(directory: &Dir) -> io::Result<Option<File>> {
    let Some(lock) = unless_gone(gauge::open(directory, LOCK, IoMode::Buffered))? else { return Ok(None) };
    // A file system without locks (some network file systems): the directory is ours all the same, and nobody sweeps
    // it, since nobody can take its lock.
    if !carrack_sys::file::try_lock(&lock).unwrap_or(true) {
        return Ok(None);
    }
    write_all_at(&lock, boot().as_bytes(), 0)?;
    let open = stat_file(&lock)?;
    let Some(named) = unless_gone(directory.stat_at(LOCK))? else { return Ok(None) };
    Ok(((open.device, open.inode) == (named.device, named.inode)).then_some(lock))
}

fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Names this boot of this host, in the file of a lock.
fn boot() -> String {
    host::boot_id().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Whether another host may be at work in a directory whose lock is free here.
fn is_of_another(directory: &Dir, lock: &File) -> io::Result<bool> {
    let own = boot();
    let mut owner = vec![0; own.len()];
    let read = read_full_at(lock, &mut owner, 0)?;
    // Without an owner it was killed before it had one.
    let is_named = read == owner.len() && owner.iter().all(u8::is_ascii_hexdigit);
    if !is_named || owner == own.as_bytes() {
        return Ok(false);
    }
    let mut newest = directory.stat_self()?.mtime.seconds;
    for name in names(directory)? {
        newest = newest.max(directory.stat_at(&name)?.mtime.seconds);
    }
    Ok(host::clock_seconds().saturating_sub(newest) < FOREIGN_AGE_SECONDS)
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
        let is_free = matches!(carrack_sys::file::try_lock(&lock), Ok(true));
        if is_free
            && matches!(is_of_another(&directory, &lock), Ok(false))
            && remove(&parent, &name, &directory).is_ok()
        {
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
    fn sweep_leaves_what_another_host_wrote_within_a_day() {
        let place = tempfile::tempdir().unwrap();
        let other = place.path().join(".carrack-bench-0123456789abcdef");
        std::fs::create_dir_all(other.join("files-0")).unwrap();
        std::fs::write(other.join("data-0"), "theirs").unwrap();
        std::fs::write(other.join("lock"), boot().replace(|_: char| true, "f")).unwrap();
        let touch = |name: &str, seconds: i64| {
            let file = File::open(other.join(name)).unwrap();
            let age = std::time::Duration::from_secs(u64::try_from(seconds).unwrap());
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        };
        // Its lock is free here, as where each host has locks of its own. What changes is in use.
        for in_use in ["", "lock", "data-0", "files-0"] {
            ["", "lock", "data-0", "files-0"].iter().for_each(|name| touch(name, FOREIGN_AGE_SECONDS + 60));
            touch(in_use, FOREIGN_AGE_SECONDS - 60);
            assert!(sweep(place.path()).unwrap().is_empty(), "{in_use}");
        }
        touch("files-0", FOREIGN_AGE_SECONDS + 60);
        assert_eq!(sweep(place.path()).unwrap(), [".carrack-bench-0123456789abcdef"]);
        assert_eq!(left(place.path()), 0);
        // What is made here names this boot.
        let own = Scratch::create(place.path()).unwrap();
        assert_eq!(std::fs::read_to_string(place.path().join(own.name()).join("lock")).unwrap(), boot());
    }

    #[test]
    fn lock_that_cannot_be_made_is_the_error_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let refused = |_: &Dir| Err(io::ErrorKind::StorageFull.into());
        let error = Scratch::create_with(place.path(), refused).unwrap_err();
        assert_eq!((error.kind(), left(place.path())), (io::ErrorKind::StorageFull, 0));
        // What another one swept before it had a lock is made anew, so many times.
        let swept = |_: &Dir| Ok(None);
        let error = Scratch::create_with(place.path(), swept).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        // The lock cannot be opened in a directory that is a file's name: what the system says is what is told.
        let directory = Dir::open_ambient(place.path()).unwrap();
        directory.make_dir(LOCK, 0o700).unwrap();
        assert!(own(&directory).is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists));
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
