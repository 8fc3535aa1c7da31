//! `carrack mkdir`.

use super::place::Session;
use crate::cli::flags::Flags;
use crate::error::CommandError;

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let locations = flags.locations("locations")?;
    let parents = flags.has("parents");
    let mut session = Session::new("mkdir", flags)?;
    session.each(&locations, |session, files, path| {
        files.make_dir(path, parents)?;
        session.done += 1;
        Ok(())
    })?;
    session.finish()
}
