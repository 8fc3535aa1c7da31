//! A terminal, by both of its sides. What nobody reads stays in the system's buffer until that is full.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A new terminal: the side that a person would sit at, and the one for a program.
///
/// # Errors
/// Those of the system calls, where there are no terminals to be had.
pub fn open() -> io::Result<(File, File)> {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&person)?;
    unlockpt(&person)?;
    let name = ptsname(&person, Vec::new())?;
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    // The test has no controlling terminal to lose: a process that has one keeps it.
    let program = File::options().read(true).write(true).open(path)?;
    Ok((File::from(person), program))
}

/// Whether a terminal shows what is typed.
///
/// # Errors
/// Those of the system call.
pub fn shows_typing(person: &File) -> io::Result<bool> {
    Ok(rustix::termios::tcgetattr(person)?.local_modes.contains(rustix::termios::LocalModes::ECHO))
}
