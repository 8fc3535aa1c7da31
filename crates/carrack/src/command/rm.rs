//! `carrack rm`.

use carrack_core::path::{display_bytes, join};
use carrack_core::report::ErrorCode;
use carrack_engine::files::ListEntry;
use clap::Command;

use super::named::{self, Needs};
use super::place::VerbRun;
use super::reach::with_endpoints;
use crate::cli::flag::{Positional, Switch};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::output::format::counted;
use carrack_core::location::Location;

const RECURSIVE: Switch = Switch::short('r', "recursive", "Remove directories and their contents");
const FORCE: Switch = Switch::short('f', "force", "Ignore files that do not exist");
const LOCATIONS: Positional = Positional::several("locations", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("rm")
        .about("Remove files, and with -r directories")
        .args([RECURSIVE.arg(), FORCE.arg()])
        .arg(LOCATIONS.arg().required(true));
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let places = flags.named(&LOCATIONS)?;
    let (recursive, force) = (flags.has(&RECURSIVE), flags.has(&FORCE));
    for path in places.iter().filter_map(Location::path) {
        // All of them are looked at before the first is touched.
        if is_too_much(path) {
            let path = display_bytes(path).to_string();
            return Err(CommandError::usage(format!("rm does not remove {path:?}: name what is in it")));
        }
    }
    let mut run = VerbRun::new("rm", flags)?;
    let places = named::open(flags, places.into_iter().map(|named| (named, Needs::DELETE)))?;
    run.each(&places, |run, files, place| {
        let (path, shown) = (place.path(), place.shown());
        let mut stuck = |found: ListEntry| {
            let name = if found.path == b"." { shown.to_vec() } else { join(shown, &found.path) };
            if let Some(failure) = found.error {
                run.fail(&name, failure);
            }
        };
        match files.remove(path, recursive, &mut stuck) {
            Ok(removed) => {
                run.done = run.done.saturating_add(removed);
                run.tell(|| format!("removed: {} ({})", place.name(), counted(removed, "item", "items")));
            }
            Err(failure) if force && failure.code == ErrorCode::NotFound => {}
            Err(failure) => return Err(failure),
        }
        Ok(())
    })?;
    run.finish()
}

/// A root, a login directory, or something that no name stands for. A slip must not cost everything.
fn is_too_much(path: &[u8]) -> bool {
    let last = path.split(|&byte| byte == b'/').rfind(|name| !name.is_empty());
    // At the far side of ssh a `~` alone is the login directory.
    let home = path.strip_prefix(b"~").is_some_and(|rest| rest.iter().all(|&byte| byte == b'/'));
    home || matches!(last, None | Some(b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rm_refuses_some_paths() {
        for path in ["", "/", "//", ".", "..", "a/..", "a/.", "../", "/.", "~", "~/"] {
            assert!(is_too_much(path.as_bytes()), "{path}");
        }
        for path in ["a", "a/", "/a", "...", "./a", "../a", "a/..b", "~/a", "a/~", "~/~", "~a"] {
            assert!(!is_too_much(path.as_bytes()), "{path}");
        }
    }
}
