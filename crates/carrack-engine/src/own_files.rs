//! The user's own files: how a secret is read, how a file is written whole. What is a copy's source or
//! destination is `storage`'s.

#![expect(clippy::disallowed_methods, reason = "files of the user's own, by the path that the user gave them")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use carrack_sys::dir::Dir;
use data_encoding::HEXLOWER;

use crate::error::describe;

/// Why a secret was not read.
#[derive(Debug)]
pub enum Unread {
    /// Nothing is there.
    Absent,
    /// It may be somebody else's: a link, no regular file, another user's.
    Foreign(String),
    /// It is the user's own, and of no use.
    Unfit(String),
}

/// Reads a file that only its owner may read, and that is the user's own (or root's): never through a link, never
/// waiting for a FIFO. `more` looks at what else it has to be.
///
/// # Errors
/// When it is not there, is anything else, or is longer than `bytes_max`.
pub fn read_secret(
    path: &Path,
    bytes_max: usize,
    more: impl FnOnce(&std::fs::Metadata) -> Option<String>,
) -> Result<Vec<u8>, Unread> {
    let unfit = |error: io::Error| Unread::Unfit(describe(&error));
    let file: File = carrack_sys::file::open_unfollowed(path).map_err(|error| match error.raw_os_error() {
        Some(carrack_sys::errno::ENOENT) => Unread::Absent,
        Some(carrack_sys::errno::ELOOP) => Unread::Foreign(
            "it is a symbolic link, and whoever made it chose where it leads: name the file itself".into(),
        ),
        Some(carrack_sys::errno::EACCES) => Unread::Foreign(describe(&error)),
        _ => unfit(error),
    })?;
    let facts = file.metadata().map_err(unfit)?;
    if !facts.is_file() {
        return Err(Unread::Foreign("it is no regular file".into()));
    }
    let user = carrack_sys::host::user_id();
    if facts.uid() != user && facts.uid() != 0 {
        return Err(Unread::Foreign(format!("it belongs to user {}, not to you", facts.uid())));
    }
    if let Some(why) = more(&facts) {
        return Err(Unread::Foreign(why));
    }
    if facts.mode() & 0o077 != 0 {
        let mode = facts.mode() & 0o777;
        return Err(Unread::Unfit(format!(
            "others can read or write it (mode {mode:o}): chmod 600 it, and change the token"
        )));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(unfit)?;
    if bytes.len() > bytes_max {
        return Err(Unread::Unfit(format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Writes a file that nobody else can read, and the directories above it. Whoever reads it sees the old or the new one,
/// whole, also after a crash.
///
/// # Errors
/// Those of the system calls; the old file is untouched then.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, bytes, Dir::rename)
}

/// The same where nothing is there. Whoever looks at the name sees nothing or all of it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where something is there, also where another program has made it meanwhile; those
/// of the system calls.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, bytes, Dir::rename_noreplace)
}

fn write_with(
    path: &Path,
    bytes: &[u8],
    rename: impl FnOnce(&Dir, &[u8], &Dir, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let above = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_private_directory(above)?;
    let directory = Dir::open_ambient(above)?;
    let mut random = [0; 6];
    carrack_sys::host::random_bytes(&mut random)?;
    // Short, so that it fits wherever the name itself does.
    let new = format!(".new-{}", HEXLOWER.encode(&random)).into_bytes();
    let written = directory.create_new(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        rename(&directory, &new, &directory, name.as_bytes())
    });
    if written.is_err() {
        let _ = directory.unlink(&new);
    }
    written.and_then(|()| directory.sync())
}

/// Makes a directory that nobody else can look into, and those above it.
///
/// # Errors
/// Those of the system calls.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Keeps other commands from writing a file at the same time; held until it is dropped. `None` where nothing can be
/// locked, and where others have held the lock for so long.
pub fn lock_beside(path: &Path, patience: Duration) -> Option<File> {
    let directory = path.parent()?;
    make_private_directory(directory).ok()?;
    let held = File::open(directory).ok()?;
    let until = Instant::now() + patience;
    while !carrack_sys::file::try_lock(&held).ok()? {
        if Instant::now() >= until {
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    Some(held)
}
