//! Whether a file is still the one that was found.

use std::fs::File;
use std::io;

use carrack_sys::dir::{Dir, Links, Stat, stat_file};

use super::descriptors::patiently;

/// Opens a file that was found, unless it is another one by now. What else may stand there is not waited for.
///
/// # Errors
/// That, and those of the system.
pub fn open_found(directory: &Dir, name: &[u8], found: &Stat) -> io::Result<File> {
    let opened = patiently(|| directory.open_read(name, Links::Refuse))?;
    if is_one(&stat_file(&opened)?, found) { Ok(opened) } else { Err(changed()) }
}

/// Whether a file is the one that was found, and says the same of itself.
pub fn is_one(now: &Stat, found: &Stat) -> bool {
    let known_by = |stat: &Stat| (stat.kind, stat.device, stat.inode, stat.size, stat.mtime, stat.mode);
    known_by(now) == known_by(found)
}

/// The error of a file that is another one by now.
pub fn changed() -> io::Error {
    io::Error::other("the file in the reference directory has changed")
}
