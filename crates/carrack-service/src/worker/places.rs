//! Paths of a task's ends, as they are looked at and deleted beside a copy.

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::path::{bare, join};
use carrack_engine::Context;
use carrack_engine::files::Files;

use super::ends::OpenEnd;

/// Connects to an end, to look at its files.
///
/// # Errors
/// If it cannot be reached.
pub fn open(end: &OpenEnd, context: &Context) -> Result<Files, Failure> {
    let context = Context { local: end.place.clone(), ..context.clone() };
    Files::open(&end.location, &end.options, &context, &|_| {})
}

/// The path of an end.
///
/// # Errors
/// If it has none, as a stream.
pub fn path_of(end: &OpenEnd) -> Result<&[u8], Failure> {
    let none = || Failure::new(ErrorCode::Usage, Side::Source, "has no path, so nothing is kept or deleted there");
    end.location.path().ok_or_else(none)
}

/// Joins to a path that may be empty, which is where one begins.
pub fn below(directory: &[u8], path: &[u8]) -> Vec<u8> {
    match directory {
        b"" => path.to_vec(),
        _ => join(directory, path),
    }
}

/// Whether the content of a directory was copied, not the directory: the engine's rule of names.
pub fn is_contents(path: &[u8]) -> bool {
    let name = bare(path).rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    path.ends_with(b"/") || matches!(name, b"" | b"." | b".." | b"~")
}

/// Where an item was copied from. Of a source without a slash at its end, the item's first name is the source's own, or
/// that which it was given at the destination.
pub fn source_path(location: &Location, item: &[u8]) -> Vec<u8> {
    let path = location.path().unwrap_or_default();
    if is_contents(path) {
        return below(bare(path), item);
    }
    match item.iter().position(|&byte| byte == b'/') {
        Some(slash) => join(path, &item[slash + 1..]),
        None => path.to_vec(),
    }
}
