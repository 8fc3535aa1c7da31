//! `carrack ls`: a directory as it is read, never held whole.

use super::entry;
use super::place::Session;
use crate::cli::flags::Flags;
use crate::error::CommandError;

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let location = flags.location("location")?;
    let (recursive, long) = (flags.has("recursive"), flags.has("long"));
    let mut session = Session::new("ls", flags)?;
    session.each(&[location], |session, files, path| {
        files.list(path, recursive, &mut |mut listed| {
            if let Some(failure) = listed.error.take() {
                return session.fail(&listed.path, failure);
            }
            session.done += 1;
            if session.json {
                session.json("entry", entry::fields(&listed.path, &listed));
            } else if long {
                session.line(entry::long(&listed).as_bytes());
            } else {
                session.line(entry::short(&listed).as_bytes());
            }
        })
    })?;
    session.finish()
}
