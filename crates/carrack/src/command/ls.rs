//! `carrack ls`: a directory as it is read, never held whole.

use carrack_engine::files::ListEntry;
use clap::Command;

use super::entry;
use super::named::{self, Needs};
use super::place::VerbRun;
use super::reach::with_endpoints;
use crate::cli::filters;
use crate::cli::flag::{Positional, Switch};
use crate::cli::flags::Flags;
use crate::error::CommandError;

const RECURSIVE: Switch = Switch::short('R', "recursive", "List subdirectories too; paths are relative to LOCATION");
const LONG: Switch = Switch::short(
    'l',
    "long",
    "Show mode (+: it has an ACL; @: extended attributes), names, owner, group, size in bytes, modification time (UTC), name, target of a link",
);
const LOCATION: Positional = Positional::one("location", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("ls")
        .about("List a directory, or one file")
        .args([RECURSIVE.arg(), LONG.arg()])
        .args(filters::of_listing())
        .arg(LOCATION.arg().required(true));
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let place = named::place(flags, &LOCATION, Needs::READ)?;
    let (recursive, long) = (flags.has(&RECURSIVE), flags.has(&LONG));
    let mut run = VerbRun::new("ls", flags)?.without(filters::of_verb(flags)?);
    run.each(&[place], |run, files, place| {
        let mut each = |mut listed: ListEntry| {
            if let Some(failure) = listed.error.take() {
                return run.fail(&listed.path, failure);
            }
            run.done += 1;
            if run.json {
                run.json("entry", entry::fields(&listed.path, &listed));
            } else if long {
                run.line(entry::long(&listed).as_bytes());
            } else {
                run.line(entry::short(&listed).as_bytes());
            }
        };
        match long {
            true => files.list_detailed(place.path(), recursive, &mut each),
            false => files.list(place.path(), recursive, &mut each),
        }
    })?;
    run.finish()
}
