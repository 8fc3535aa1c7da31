//! `--relative`: the path of a source is made at the destination, too, as rsync does it. What is copied is the
//! directory in which the paths begin, and of it only what the paths name; so the directories on the way get the
//! permissions and times that they have there.

use carrack_core::location::Location;
use carrack_core::path::{check_relative, display_bytes, within};

use crate::cli::flag::Switch;
use crate::error::CommandError;

pub const RELATIVE: Switch = Switch::short(
    'R',
    "relative",
    "Make the path of each SRC below DST, too: a/b/c becomes DST/a/b/c, and a/./b/c becomes DST/b/c",
);

/// Says in a path where the part begins that is made at the destination.
const MARK: &[u8] = b"/./";

/// Sources, as what is copied of the one directory in which their paths begin.
#[derive(Debug, PartialEq, Eq)]
pub struct RelativeSources {
    /// What is in the directory.
    pub base: Location,
    /// Of that only these paths; everything where there are none.
    pub only: Option<Vec<Vec<u8>>>,
}

impl RelativeSources {
    /// Those that were typed.
    ///
    /// # Errors
    /// A usage error that names the first that has no such path, or begins elsewhere than the one before.
    pub fn of(typed: &[Location]) -> Result<Self, CommandError> {
        let mut all = typed.iter().map(|location| split(location).map(|(base, path)| (location, base, path)));
        let Some(first) = all.next() else { return Err(CommandError::usage("--relative needs a source")) };
        let (first, base, path) = first?;
        let mut paths = vec![path];
        for one in all {
            let (location, other, path) = one?;
            if other != base {
                let why = format!("{first} and {location} begin in two directories, and --relative takes one");
                return Err(CommandError::usage(why).hint("mark by /./ where both begin, or copy one after the other"));
            }
            paths.push(path);
        }
        let names_all = paths.iter().any(Vec::is_empty);
        Ok(Self { base, only: (!names_all).then_some(paths) })
    }

    /// Of these paths at the destination, if there are any, those that the sources name; else all that they name.
    ///
    /// # Errors
    /// A usage error that shows the first path that no source names.
    pub fn only(self, listed: Option<Vec<Vec<u8>>>) -> Result<Option<Vec<Vec<u8>>>, CommandError> {
        let (Some(listed), Some(named)) = (&listed, &self.only) else { return Ok(self.only.or(listed)) };
        let mut both = Vec::new();
        for path in listed {
            let before = both.len();
            for source in named {
                match (within(path, source), within(source, path)) {
                    (Some(_), _) => both.push(path.clone()),
                    (None, Some(_)) => both.push(source.clone()),
                    (None, None) => {}
                }
            }
            if both.len() == before {
                let shown = display_bytes(path);
                let why = format!("{shown}: was selected, and is not among what would be copied");
                return Err(CommandError::usage(why).hint("the paths of --files-from are relative to the destination"));
            }
        }
        Ok(Some(both))
    }
}

/// Sources are chosen of one directory above them: what asks about the sources themselves would ask about that.
///
/// # Errors
/// The sentence that refuses it.
pub fn check_asked_of_sources(require_mount: bool, one_file_system: bool) -> Result<(), CommandError> {
    let other = if require_mount { "--require-mount" } else { "--one-file-system" };
    match require_mount || one_file_system {
        true => Err(CommandError::usage(format!("--relative and {other} cannot be used together"))),
        false => Ok(()),
    }
}

/// Where the path of a source begins, and the part that is made at the destination.
fn split(location: &Location) -> Result<(Location, Vec<u8>), CommandError> {
    let refused = |why: String| Err(CommandError::usage(format!("{location}: {why}")));
    let Some(typed) = location.path() else { return refused("has no path that could be made by --relative".into()) };
    let mark = typed.windows(MARK.len()).position(|three| three == MARK);
    let (base, path): (&[u8], &[u8]) = match (mark, typed) {
        (Some(0), _) => (b"/", &typed[MARK.len()..]),
        (Some(at), _) => (&typed[..at], &typed[at + MARK.len()..]),
        (None, [b'/', rest @ ..]) => (b"/", rest),
        (None, b"~") => (b"~", b""),
        (None, [b'~', b'/', rest @ ..]) => (b"~", rest),
        // What begins nowhere begins where its host or store begins.
        (None, b"") => (b"", b""),
        (None, path) if matches!(location, Location::Store { .. }) => (b"", path),
        (None, path) => (b".", path),
    };
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) {
        return refused("--relative makes no path with .. in it: mark by /./ where it begins behind that".into());
    }
    let path = parts.join(&b'/');
    match check_relative(&path) {
        Err(why) if !path.is_empty() => refused(why.to_string()),
        _ => Ok((location.with_path(base.to_vec()).contents(), path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(typed: &[&str]) -> Result<RelativeSources, CommandError> {
        let location = |text: &&str| Location::parse_typed(text.as_bytes()).unwrap();
        RelativeSources::of(&typed.iter().map(location).collect::<Vec<_>>())
    }

    fn bytes(paths: &[&str]) -> Vec<Vec<u8>> {
        paths.iter().map(|path| path.as_bytes().to_vec()).collect()
    }

    #[test]
    fn paths_begin_where_rsync_begins_them() {
        for (typed, base, only) in [
            (&["a/b/c"][..], "./", Some(&["a/b/c"][..])),
            (&["a/b/", "./c"], "./", Some(&["a/b", "c"])),
            (&["/a/b", "/c//d/."], "/", Some(&["a/b", "c/d"])),
            (&["/a/./b/c"], "/a/", Some(&["b/c"])),
            (&["/./a"], "/", Some(&["a"])),
            (&["a/././b", "a/./c/./d"], "a/", Some(&["b", "c/d"])),
            (&["../x/./a"], "../x/", Some(&["a"])),
            (&["a/./", "a/./b"], "a/", None),
            (&["."], "./", None),
            (&["host:a/b", "host:c"], "host:./", Some(&["a/b", "c"])),
            (&["host:~/a/b"], "host:~/", Some(&["a/b"])),
            (&["@lab:/a/b", "@lab:/c"], "@lab:/", Some(&["a/b", "c"])),
            (&["carrack://node/a/./b"], "carrack://node/a/", Some(&["b"])),
        ] {
            let found = sources(typed).unwrap_or_else(|why| panic!("{typed:?}: {why:?}"));
            assert_eq!(found.base, Location::parse_typed(base.as_bytes()).unwrap(), "{typed:?}");
            assert_eq!(found.only, only.map(bytes), "{typed:?}");
        }
    }

    #[test]
    fn paths_that_cannot_be_made_are_refused() {
        for (typed, why) in [
            (&["a/../b"][..], ".."),
            (&["a/./.."], ".."),
            (&["a", "/b"], "two directories"),
            (&["a/./b", "a/c"], "two directories"),
            (&["host:a", "other:a"], "two directories"),
            (&["-"], "no path"),
            (&["zero:1G"], "no path"),
        ] {
            let refused = sources(typed).expect_err(typed[0]).failure.why;
            assert!(refused.contains(why), "{typed:?}: {refused}");
        }
    }

    #[test]
    fn list_of_failures_narrows_what_the_sources_name() {
        let only = |listed: Option<&[&str]>| {
            let found = sources(&["a/b", "c"])?.only(listed.map(bytes));
            found.map(|paths| paths.unwrap_or_default())
        };
        assert_eq!(only(None).unwrap(), bytes(&["a/b", "c"]));
        assert_eq!(only(Some(&["a/b/x", "c"])).unwrap(), bytes(&["a/b/x", "c"]));
        // A directory above a source failed, with which the source did.
        assert_eq!(only(Some(&["a"])).unwrap(), bytes(&["a/b"]));
        assert!(only(Some(&["a/c"])).is_err());
        let all = sources(&["."]).unwrap().only(Some(bytes(&["x"])));
        assert_eq!(all.unwrap(), Some(bytes(&["x"])));
    }
}
