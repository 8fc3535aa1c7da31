//! `carrack mkdir`.

use clap::Command;

use super::place::VerbRun;
use super::reach::with_reach;
use crate::cli::flag::{Positional, Switch};
use crate::cli::flags::Flags;
use crate::error::CommandError;

const PARENTS: Switch = Switch::short('p', "parents", "Make missing parents too; accept directories that exist");
const LOCATIONS: Positional = Positional::several("locations", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("mkdir").about("Make directories").arg(PARENTS.arg()).arg(LOCATIONS.arg().required(true));
    with_reach(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let locations = flags.locations(&LOCATIONS)?;
    let parents = flags.has(&PARENTS);
    let mut run = VerbRun::new("mkdir", flags)?;
    run.each(&locations, |run, files, path| {
        files.make_dir(path, parents)?;
        run.done += 1;
        Ok(())
    })?;
    run.finish()
}
