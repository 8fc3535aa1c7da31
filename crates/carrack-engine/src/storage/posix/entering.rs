//! Entering a directory: rules in its own files hold from here on, and none is entered that it stands in itself.

use std::fs::File;
use std::io;

use carrack_core::filter::{FilterSide, Scope};
use carrack_core::limits;
use carrack_core::path::{above, display_bytes, join};
use carrack_core::selection::place;
use carrack_sys::dir::{Dir, Kind, Links, Stat};

use super::descriptors::patiently;
use super::source::PosixSource;
use super::tree::read_bounded;
use crate::error::describe;
use crate::storage::read::Walk;

/// The rules of a directory's own files hold from here on; `path` is that of the directory in the transfer.
///
/// # Errors
/// When such a file cannot be read, or has what is no rule.
pub fn enter(scope: &mut Scope<'_>, directory: &Dir, path: &[u8]) -> io::Result<()> {
    enter_by(scope, path, &|name| patiently(|| directory.open_read(name, Links::Refuse)))
}

/// The same of a directory of a source, `path` below its `top`, whose links may be followed.
///
/// # Errors
/// As [`enter`].
pub fn enter_source(
    source: &PosixSource,
    scope: &mut Scope<'_>,
    (top, directory, path): (&Dir, &Dir, &[u8]),
    place: &[u8],
) -> io::Result<()> {
    match source.links.follows() {
        true => enter_by(scope, place, &|name| source.links.open_read(top, &join(path, name))),
        false => enter(scope, directory, place),
    }
}

fn enter_by(scope: &mut Scope<'_>, path: &[u8], open: &dyn Fn(&[u8]) -> io::Result<File>) -> io::Result<()> {
    let read = &mut |name: &[u8]| match open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened
            .and_then(|file| read_bounded(&file, limits::FILTER_BYTES))
            .map(Some)
            .map_err(|error| format!("the rules in {} cannot be read: {}", display_bytes(name), describe(&error))),
    };
    scope.enter(path, read).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Whether a rule leaves a path out, or a directory above it; those in files of the directories count, too.
///
/// # Errors
/// As [`enter`].
pub fn hides(source: &PosixSource, top: &Dir, walk: &Walk<'_>, path: &[u8], kind: Kind) -> io::Result<bool> {
    let Some(filters) = walk.filters.filter(|filters| filters.are_per_directory()) else {
        return Ok(walk.hides(path, kind == Kind::Dir));
    };
    let mut scope = filters.scope(FilterSide::Source);
    enter_source(source, &mut scope, (top, top, b""), walk.target)?;
    for above in above(path) {
        let place = place(walk.target, above);
        if !scope.takes(&place, true, false) {
            return Ok(true);
        }
        let directory = source.links.open_dir(top, above)?;
        enter_source(source, &mut scope, (top, &directory, above), &place)?;
    }
    Ok(!scope.takes(&place(walk.target, path), kind == Kind::Dir, false))
}

/// The directories on the way down to the one that is being read. Those that wait must be taken depth first.
#[derive(Default)]
pub struct Trail(Vec<(u64, u64)>);

impl Trail {
    /// Enters a directory, `path` below the top, and says what it is.
    ///
    /// # Errors
    /// When it is one of those above it, and those of the system.
    pub fn enter(&mut self, path: &[u8], directory: &Dir) -> io::Result<Stat> {
        let stat = directory.stat_self()?;
        let depth = if path.is_empty() { 0 } else { 1 + path.iter().filter(|&&byte| byte == b'/').count() };
        self.0.truncate(depth);
        let identity = (stat.device, stat.inode);
        if self.0.contains(&identity) {
            let what = "it is one of the directories that it stands in, by a link, a bind mount or a fault of the file \
                        system: not entered";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        self.0.push(identity);
        Ok(stat)
    }

    /// Whether something is one of the directories on the way, or the one that is being read.
    pub fn holds(&self, stat: &Stat) -> bool {
        stat.kind == Kind::Dir && self.0.contains(&(stat.device, stat.inode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_entered_again_beside_itself_and_not_below() {
        let place = tempfile::tempdir().unwrap();
        let top = Dir::open_ambient(place.path()).unwrap();
        let other = top.make_dir_all(b"other", Links::Refuse).unwrap();
        let mut trail = Trail::default();
        trail.enter(b"", &top).unwrap();
        trail.enter(b"a", &other).unwrap();
        for below in [&top, &other] {
            assert_eq!(trail.enter(b"a/b", below).unwrap_err().kind(), io::ErrorKind::Unsupported);
        }
        // The same one under another name is no cycle.
        trail.enter(b"c", &other).unwrap();
        assert!(trail.enter(b"c/d", &other).is_err() && trail.enter(b"e", &top).is_err());
    }
}
