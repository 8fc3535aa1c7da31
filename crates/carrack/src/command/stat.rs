//! `carrack stat`: what a name stands for.

use clap::Command;

use super::entry;
use super::place::Session;
use super::reach::with_reach;
use crate::cli::flag::Place;
use crate::cli::flags::Flags;
use crate::error::CommandError;

const LOCATIONS: Place = Place::several("locations", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("stat")
        .about("Show kind, size, mode and modification time of a name")
        .arg(LOCATIONS.arg().required(true));
    with_reach(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let locations = flags.locations(&LOCATIONS)?;
    let mut session = Session::new("stat", flags)?;
    session.each(&locations, |session, files, path| {
        let found = files.stat(path)?;
        if let Some(failure) = found.error {
            return Err(failure);
        }
        if session.json {
            session.json("entry", entry::fields(path, &found));
        } else {
            // An empty line between two.
            if session.done > 0 {
                session.line(b"");
            }
            entry::block(path, &found).iter().for_each(|line| session.line(line.as_bytes()));
        }
        session.done += 1;
        Ok(())
    })?;
    session.finish()
}
