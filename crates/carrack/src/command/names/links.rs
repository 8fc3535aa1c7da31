//! `carrack names DIR`: links by whose names old scripts find the program.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, Side};
use clap::Command;

use super::CalledAs;
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::stream;

const DIRECTORY: Positional = Positional::one("directory", "DIR");

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("names")
        .about("Make links in DIR, by whose names old scripts find carrack: bbcp and globus-url-copy")
        .after_help(
            "Called by such a name, carrack takes that program's lines; docs/old-names.md has all flags.\n\
             A file that is there already, and is no link to a carrack, is left alone: nothing is made then.",
        )
        .arg(DIRECTORY.arg().required(true).help("A directory on the PATH of the scripts"))
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let path = match flags.locations(&DIRECTORY)?.pop() {
        Some(Location::Local(path)) => path,
        Some(other) => {
            return Err(CommandError::usage(format!("names makes links in a directory here, not in {other}")));
        }
        None => return Err(CommandError::usage("names needs a directory")),
    };
    let directory = Path::new(OsStr::from_bytes(&path));
    let program =
        std::env::current_exe().map_err(|error| CommandError::file("cannot find", b"this program", &error))?;
    let target = target(directory, &program);
    // All are looked at before one is made.
    let links = CalledAs::ALL.iter().map(|name| directory.join(name.name()));
    let links = links.map(|link| is_free(&link, &program).map(|()| link)).collect::<Result<Vec<PathBuf>, _>>()?;
    for link in links {
        make(&link, &target).map_err(|error| CommandError::file("cannot make", link.as_os_str().as_bytes(), &error))?;
        let [shown, led] =
            [link.as_os_str(), target.as_os_str()].map(|path| display_bytes(path.as_bytes()).to_string());
        stream::print(format!("{shown} -> {led}\n").as_bytes())?;
    }
    Ok(exit::DONE)
}

/// What the links say: the bare name beside the program, so that both can be moved together; else its whole path.
fn target(directory: &Path, program: &Path) -> OsString {
    let is_beside = match (directory.canonicalize(), program.parent()) {
        (Ok(directory), Some(parent)) => directory == parent,
        _ => false,
    };
    let name = program.file_name().filter(|_| is_beside);
    name.unwrap_or(program.as_os_str()).to_owned()
}

/// Whether a link may be made there.
///
/// # Errors
/// Something is there that is none of ours.
fn is_free(link: &Path, program: &Path) -> Result<(), CommandError> {
    let shown = display_bytes(link.as_os_str().as_bytes()).to_string();
    match std::fs::symlink_metadata(link) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(CommandError::file("cannot look at", link.as_os_str().as_bytes(), &error)),
        Ok(found) if found.is_symlink() && leads_to_carrack(link, program) => Ok(()),
        Ok(_) => {
            let why = format!("{shown} is there, and is no link to a carrack: it is left alone, and no link was made");
            Err(CommandError::from(Failure::new(ErrorCode::AlreadyExists, Side::Command, why))
                .hint("name another directory, or remove it if nobody needs it"))
        }
    }
}

/// Whether a link is one of ours: to this program, or to a carrack that is no longer there.
fn leads_to_carrack(link: &Path, program: &Path) -> bool {
    let names_it = std::fs::read_link(link).is_ok_and(|target| target.file_name() == Some(OsStr::new("carrack")));
    names_it || link.canonicalize().is_ok_and(|found| found == program)
}

/// Makes a link. One of ours is replaced at once; anything else that came meanwhile stays.
fn make(link: &Path, target: &OsStr) -> io::Result<()> {
    match symlink(target, link) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made,
    }
    if !std::fs::symlink_metadata(link)?.is_symlink() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let name = link.file_name().unwrap_or_default();
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    let new = link.with_file_name(hidden);
    symlink(target, &new)?;
    std::fs::rename(&new, link).inspect_err(|_| drop(std::fs::remove_file(&new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_beside_the_program_bears_its_bare_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = directory.path().canonicalize().expect("a path");
        assert_eq!(target(&real, &real.join("carrack")), "carrack");
        assert_eq!(target(&real, Path::new("/usr/bin/carrack")), "/usr/bin/carrack");
    }

    #[test]
    fn only_links_to_a_carrack_are_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let (link, program) = (directory.path().join("bbcp"), Path::new("/usr/bin/carrack"));
        assert_eq!(is_free(&link, program), Ok(()));
        for (there, free) in [("carrack", true), ("/opt/old/carrack", true), ("/usr/bin/bbcp-17", false)] {
            symlink(there, &link).expect("a link");
            assert_eq!(is_free(&link, program).is_ok(), free, "{there}");
            std::fs::remove_file(&link).expect("removed");
        }
        std::fs::write(&link, "#!/bin/sh").expect("a file");
        assert!(is_free(&link, program).is_err_and(|error| error.failure.code == ErrorCode::AlreadyExists));
        assert!(make(&link, OsStr::new("carrack")).is_err());
        assert_eq!(std::fs::read(&link).expect("the file"), b"#!/bin/sh");
    }

    #[test]
    fn link_is_made_and_made_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("bbcp");
        for target in ["/a/carrack", "/b/carrack"] {
            make(&link, OsStr::new(target)).expect("a link");
            assert_eq!(std::fs::read_link(&link).expect("a link"), Path::new(target));
        }
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1);
    }
}
