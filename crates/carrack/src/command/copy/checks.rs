//! What of the flags and locations of a copy may not go together.

use carrack_core::growing::GrowingSources;
use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::request::{CopyOptions, Durability, InPlace, Verify};

use crate::error::CommandError;
use crate::output::OutputOptions;

/// What is not a source is deleted only where it is sure what the source is: all of one directory.
pub fn check_deletion(sources: &[Location], options: &CopyOptions) -> Result<(), CommandError> {
    if options.delete.is_none() {
        return Ok(());
    }
    if sources.len() != 1 {
        return Err(CommandError::usage("--delete needs one source: what stands beside several would be deleted")
            .hint("name their directory, with a slash at its end"));
    }
    if options.keep_directory_links {
        return Err(CommandError::usage(
            "--delete cannot be used together with --keep-dirlinks: a directory that only a link leads to would be deleted",
        ));
    }
    if options.only.is_some() {
        return Err(CommandError::usage(
            "--delete cannot be used together with --files-from or --relative: what they name is not all there is",
        ));
    }
    Ok(())
}

/// What was copied is deleted at its source only where it is kept at the destination.
pub fn check_removal(sources: &[Location], destination: &Location, options: &CopyOptions) -> Result<(), CommandError> {
    if !options.remove_sources {
        return Ok(());
    }
    let refuse = |why: &str| Err(CommandError::usage(format!("--remove-source-files needs {why}")));
    if destination.path().is_none() || sources.iter().any(|source| source.path().is_none()) {
        return refuse("a path at either side: nothing else is kept, or can be deleted");
    }
    if options.verify == Verify::None || options.digest.main.is_none() {
        return refuse("what was copied to be verified");
    }
    if options.durability == Durability::None {
        return refuse("what was copied to be on stable storage");
    }
    if options.delete.is_some() {
        return refuse("to be the only deletion: what was moved would be taken for what only the destination has");
    }
    if options.references.is_some() {
        return refuse("all that is copied to be at DST: not with --link-dest, --copy-dest or --compare-dest");
    }
    if options.growing == GrowingSources::Follow {
        return refuse("sources at rest: what is deleted must be what was listed, not with --growing follow");
    }
    if options.in_place != InPlace::Never {
        return refuse("what is copied to be whole or not there: not with --inplace or --append");
    }
    if options.filters.links.follows() {
        return refuse("links to be copied as links: what they lead to is not below the source");
    }
    Ok(())
}

/// What can be a source, and what a destination.
pub fn check_places(sources: &[Location], destination: &Location) -> Result<(), CommandError> {
    if sources.len() > limits::SOURCES {
        return Err(CommandError::usage(format!("more than {} sources: name their directory", limits::SOURCES)));
    }
    if sources.contains(&Location::Null) {
        return Err(CommandError::usage("null: is a sink, not a source; for a source use zero:SIZE"));
    }
    if sources.iter().filter(|source| **source == Location::Stdio).count() > 1 {
        return Err(CommandError::usage("standard input can be only one of the sources"));
    }
    match destination {
        Location::Zero(_) | Location::Random(_) => {
            Err(CommandError::usage(format!("{destination} is a source, not a destination; for a sink use null:")))
        }
        Location::Stdio if sources.len() > 1 => Err(CommandError::usage("only one source can go to standard output")),
        _ => Ok(()),
    }
}

/// Standard output carries one thing.
pub fn check_standard_output(destination: &Location, output: &OutputOptions) -> Result<(), CommandError> {
    let users = [
        (*destination == Location::Stdio, "the data (destination -)"),
        (output.json, "--json"),
        (output.manifest.as_deref() == Some(b"-"), "--manifest -"),
        (output.lines.is_some() && !output.json, "the lines of -i or --out-format"),
    ];
    let mut users = users.iter().filter(|user| user.0).map(|user| user.1);
    match (users.next(), users.next()) {
        (Some(first), Some(second)) => {
            Err(CommandError::usage(format!("{first} and {second} would both be written to standard output")))
        }
        _ => Ok(()),
    }
}
