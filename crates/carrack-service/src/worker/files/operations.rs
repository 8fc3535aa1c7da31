//! Requests that do one thing: make a directory, rename, describe.

use carrack_core::failure::{Blame, ErrorCode, Failure, Side};
use carrack_core::report::ItemKind;
use carrack_engine::Stop;
use carrack_engine::files::{Files, ListEntry};

use super::end::End;
use super::told;
use crate::identity::ScopePath;
use crate::model::{FileEntry, Verb};

/// Makes a directory.
///
/// # Errors
/// Those of the endpoint.
pub fn make_directory(end: &End, stop: &Stop, path: &str, parents: bool) -> Result<(), Failure> {
    let path = end.path(path, Verb::Write)?;
    end.with_files(stop, |files| files.make_dir(&path, parents))
}

/// Renames. What has the new name is looked at first: a directory there would take the thing into itself. What comes to
/// have it after that look is not replaced unasked.
///
/// # Errors
/// [`ErrorCode::AlreadyExists`], and those of the endpoint.
pub fn rename(end: &End, stop: &Stop, from: &str, to: &str, replace: bool) -> Result<(), Failure> {
    let (from, shown) = (end.path(from, Verb::Write)?, to);
    let to = end.path(to, Verb::Write)?;
    if replace {
        end.path(shown, Verb::Delete)?;
    }
    end.with_files(stop, |files| {
        let taken = |why: &str| Err(Failure::new(ErrorCode::AlreadyExists, Side::Destination, why).at_path(&to[..]));
        match there(files, &to)? {
            Some(entry) if entry.kind == ItemKind::Directory => return taken("a directory has that name"),
            Some(_) if !replace => return taken("something has that name"),
            _ => {}
        }
        if replace { files.rename(&from, &to) } else { files.rename_to_free(&from, &to) }
    })
}

/// What has a name, if anything has it.
///
/// # Errors
/// Where the endpoint cannot tell.
pub fn there(files: &mut Files, path: &[u8]) -> Result<Option<ListEntry>, Failure> {
    match files.stat(path) {
        Ok(entry) => Ok(Some(entry)),
        Err(failure) if failure.code == ErrorCode::NotFound => Ok(None),
        // The rename will say what is wrong with it.
        Err(failure) if failure.code.blame() == Blame::File => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Describes what a path is.
///
/// # Errors
/// Those of the endpoint.
pub fn properties(end: &End, stop: &Stop, path: &str) -> Result<FileEntry, Failure> {
    let at = end.path(path, Verb::Read)?;
    let found = end.with_files(stop, |files| files.stat(&at))?;
    // The name is the request's: a root has none of its own.
    let name = ScopePath::parse(path).map(|path| path.bytes()).unwrap_or_default();
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
    Ok(told::entry(&name, &found))
}
