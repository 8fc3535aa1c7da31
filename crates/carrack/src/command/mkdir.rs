//! `carrack mkdir`.

use clap::Command;

use super::named::{self, Needs};
use super::place::VerbRun;
use super::reach::with_endpoints;
use crate::cli::flag::{Positional, Switch};
use crate::cli::flags::Flags;
use crate::error::CommandError;

const PARENTS: Switch = Switch::short('p', "parents", "Make missing parents too; accept directories that exist");
const LOCATIONS: Positional = Positional::several("locations", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("mkdir").about("Make directories").arg(PARENTS.arg()).arg(LOCATIONS.arg().required(true));
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let places = named::places(flags, &LOCATIONS, Needs::WRITE)?;
    let parents = flags.has(&PARENTS);
    let mut run = VerbRun::new("mkdir", flags)?;
    run.each(&places, |run, files, place| {
        files.make_dir(place.path(), parents)?;
        run.done += 1;
        run.tell(|| format!("made: {}", place.name()));
        Ok(())
    })?;
    run.finish()
}
