//! `carrack mv`: a rename within one place. Between places it would be a copy and a removal, which nobody should get
//! without having asked for both.

use carrack_core::path::{bare, display_bytes, join, split_name};
use carrack_core::report::{ErrorCode, Failure, ItemKind};
use carrack_engine::files::Files;
use clap::Command;

use super::named::{self, Needs};
use super::place::VerbRun;
use super::reach::with_endpoints;
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;

const SOURCE: Positional = Positional::one("source", "SRC");
const DESTINATION: Positional = Positional::one("destination", "DST");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("mv")
        .about("Rename; both names must be in one place: here, one host, one node, or one endpoint")
        .args([SOURCE, DESTINATION].map(|place| place.arg().required(true)));
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let source = named::place(flags, &SOURCE, Needs::RENAME)?;
    let destination = named::place(flags, &DESTINATION, Needs::RENAME)?;
    let mut run = VerbRun::new("mv", flags)?;
    run.path_of(&source)?;
    let to = run.path_of(&destination)?.to_vec();
    if !source.is_beside(&destination) {
        return Err(CommandError::usage(format!(
            "mv renames within one place, and {} and {} are two",
            source.name(),
            destination.name()
        ))
        .hint("copy, then remove the source: carrack SRC DST && carrack rm SRC"));
    }
    run.each(&[source], |run, files, place| {
        let from = place.path();
        let shown = target(files, from, &to)?;
        // As it was typed: into a directory, the host finds the name itself.
        files.rename(from, &to)?;
        run.done += 1;
        run.tell(|| format!("renamed: {} -> {}", place.name(), display_bytes(&shown)));
        Ok(())
    })?;
    run.finish()
}

/// Into a directory that exists, under the old name; else exactly there.
fn target(files: &mut Files, from: &[u8], to: &[u8]) -> Result<Vec<u8>, Failure> {
    match files.stat(to) {
        Ok(found) if found.kind == ItemKind::Directory => Ok(into(to, from)),
        Ok(_) => Ok(to.to_vec()),
        Err(failure) if failure.code == ErrorCode::NotFound => Ok(to.to_vec()),
        Err(failure) => Err(failure),
    }
}

fn into(directory: &[u8], from: &[u8]) -> Vec<u8> {
    join(directory, split_name(bare(from)).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mv_into_a_directory() {
        let cases: &[(&[u8], &[u8], &[u8])] =
            &[(b"d", b"a", b"d/a"), (b"d/", b"x/a/", b"d/a"), (b"/", b"/x/y", b"/y"), (b"", b"a", b"a")];
        for (directory, from, to) in cases {
            assert_eq!(into(directory, from), *to);
        }
    }
}
