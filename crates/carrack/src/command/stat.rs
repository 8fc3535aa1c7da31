//! `carrack stat`: what a name stands for.

use clap::Command;

use super::entry;
use super::named::{self, Needs};
use super::place::VerbRun;
use super::reach::with_endpoints;
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;

const LOCATIONS: Positional = Positional::several("locations", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("stat")
        .about("Show kind, size, mode, time, owner and attributes of a name")
        .arg(LOCATIONS.arg().required(true));
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let places = named::places(flags, &LOCATIONS, Needs::READ)?;
    let mut run = VerbRun::new("stat", flags)?;
    run.each(&places, |run, files, place| {
        let (found, path) = (files.stat(place.path())?, place.shown());
        if let Some(failure) = found.error {
            return Err(failure);
        }
        if run.json {
            run.json("entry", entry::fields(path, &found));
        } else {
            // An empty line between two.
            if run.done > 0 {
                run.line(b"");
            }
            entry::block(path, &found).iter().for_each(|line| run.line(line.as_bytes()));
        }
        run.done += 1;
        Ok(())
    })?;
    run.finish()
}
