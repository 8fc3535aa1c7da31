//! Several sources of one copy that lead to the same name. The first source's item gets the name; one of a later source
//! is a failed item before a byte of it goes. Two directories become one.
//!
//! Nothing is kept for each name: whether an earlier source has something under a name is looked up there,
//! below its open directory.

use std::collections::HashMap;
use std::io;

use carrack_core::attributes::Attributes;
use carrack_core::path::{display_bytes, join};
use carrack_core::report::{ErrorCode, Failure, ItemKind, Reason, Side};
use carrack_core::selection::{Selected, Selection, place};

use super::read::{Found, Root, There};
use crate::error::{failure, io_failure};

/// Sources of one copy, and which of them may lead to the same names.
pub struct Overlaps<'a> {
    roots: &'a [Root],
    /// Numbers of those whose content goes straight into the destination.
    contents: Vec<usize>,
    /// The others by their names there, each with the first of its name.
    named: HashMap<&'a [u8], usize>,
    /// The only items that are copied; everything if there is none.
    selection: Option<&'a Selection>,
}

impl<'a> Overlaps<'a> {
    /// Among these, in the order in which they are copied. Items outside the `selection` do not count.
    pub fn new(roots: &'a [Root], selection: Option<&'a Selection>) -> Self {
        let mut overlaps = Self { roots, contents: Vec::new(), named: HashMap::new(), selection };
        for (number, root) in roots.iter().enumerate() {
            if root.target.is_empty() {
                overlaps.contents.push(number);
            } else {
                overlaps.named.entry(&root.target).or_insert(number);
            }
        }
        overlaps
    }

    /// What a walk has found, unless an earlier source has something else under the same name: then why it is not
    /// copied. A directory that is there in both has the permissions and times of the first.
    pub fn check(&self, found: Found) -> Found {
        let Found::Item(mut item) = found else { return found };
        match self.first(item.root as usize, &item.path, item.kind) {
            Ok(None) => {}
            Ok(Some(first)) => item.attributes = first,
            Err(why) => return Found::Failure(item, why),
        }
        Found::Item(item)
    }

    /// Why an item of the last source is not copied, if an earlier one has something else under the same name. Of a
    /// source that is a file the path says nothing.
    pub fn refuses_of_last(&self, path: &[u8], kind: ItemKind) -> Option<Failure> {
        let last = self.roots.len().checked_sub(1)?;
        let path = if self.roots[last].source.is_directory() { path } else { b"" };
        self.first(last, path, kind).err()
    }

    /// The directory of the first source that has one where this item goes, which is a directory then as well; `None`
    /// where no earlier source has anything.
    ///
    /// # Errors
    /// With [`ErrorCode::AlreadyExists`] where an earlier source has something and the two cannot become one,
    /// and those of the system.
    pub fn first(&self, number: usize, path: &[u8], kind: ItemKind) -> Result<Option<Attributes>, Failure> {
        // Names differ unless a directory's content is among the sources.
        let may = number > 0 && !self.contents.is_empty() && kind != ItemKind::Special;
        let Some(root) = self.roots.get(number).filter(|_| may) else { return Ok(None) };
        let target = place(&root.target, path);
        let top = target.split(|&byte| byte == b'/').next().unwrap_or_default();
        let named = self.named.get(top).copied().filter(|_| !target.is_empty());
        let mut earlier: Vec<usize> = self.contents.iter().copied().chain(named).filter(|&one| one < number).collect();
        earlier.sort_unstable();
        for one in earlier {
            let first = &self.roots[one];
            let below = target.strip_prefix(&first.target[..]).unwrap_or_default();
            let below = below.strip_prefix(b"/").unwrap_or(below);
            match self.look(first, below) {
                Ok(There::Nothing) => {}
                Ok(There::Directory(attributes)) if kind == ItemKind::Directory => return Ok(Some(attributes)),
                Ok(There::Directory(_) | There::Other(_)) => {
                    return Err(conflict((root, path), (first, below), &target));
                }
                Err(error) => {
                    let what = format!("look whether {} is there as well", typed(first, below));
                    return Err(io_failure(Side::Source, what, &error));
                }
            }
        }
        Ok(None)
    }

    /// What a source has under a path, as far as it is copied.
    fn look(&self, root: &Root, below: &[u8]) -> io::Result<There> {
        Ok(match root.source.find(below)? {
            There::Other(at) if !self.is_copied(&place(&root.target, &at)) => There::Nothing,
            found => found,
        })
    }

    /// Whether a file or link that goes to this path is copied.
    fn is_copied(&self, target: &[u8]) -> bool {
        self.selection.is_none_or(|selection| selection.covers(target) == Selected::Wanted)
    }
}

fn typed(root: &Root, path: &[u8]) -> String {
    let top = root.typed.strip_suffix(b"/").filter(|top| !top.is_empty()).unwrap_or(&root.typed);
    let whole = if path.is_empty() { top.to_vec() } else { join(top, path) };
    display_bytes(&whole).to_string()
}

fn conflict(second: (&Root, &[u8]), first: (&Root, &[u8]), target: &[u8]) -> Failure {
    let (second, first) = (typed(second.0, second.1), typed(first.0, first.1));
    let message = format!(
        "{second} and {first} would both become {}, and only the first source's is copied",
        display_bytes(target)
    );
    failure(ErrorCode::AlreadyExists, Side::Source, message).for_reason(Reason::SameNames)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use carrack_sys::dir::Dir;

    use carrack_sys::dir::Links;

    use super::*;
    use crate::storage::posix::source::{PosixSource, RootKind};
    use crate::storage::read::WalkChoice;

    fn contents(place: &Path, name: &str) -> Root {
        let kind = RootKind::Directory(Arc::new(Dir::open_ambient(&place.join(name)).unwrap()));
        Root { source: Box::new(PosixSource::from(kind)), target: Vec::new(), typed: format!("{name}/").into_bytes() }
    }

    fn named(place: &Path, path: &str, target: &str) -> Root {
        let whole = place.join(path);
        let kind = if whole.is_dir() {
            RootKind::Directory(Arc::new(Dir::open_ambient(&whole).unwrap()))
        } else {
            let (parent, name) = (whole.parent().unwrap(), whole.file_name().unwrap().as_encoded_bytes());
            RootKind::Entry(Arc::new(Dir::open_ambient(parent).unwrap()), name.to_vec(), Links::Refuse)
        };
        Root {
            source: Box::new(PosixSource::from(kind)),
            target: target.as_bytes().to_vec(),
            typed: path.as_bytes().to_vec(),
        }
    }

    /// What of the sources is refused, as `number of the source`, `path below it`, `typed path of the first`.
    fn refused(roots: &[Root]) -> Vec<(u32, String, String)> {
        refused_of(roots, None)
    }

    fn refused_of(roots: &[Root], selection: Option<&Selection>) -> Vec<(u32, String, String)> {
        let overlaps = Overlaps::new(roots, selection);
        let mut refused = Vec::new();
        for (number, root) in roots.iter().enumerate() {
            root.walk(number as u32, &WalkChoice { selection, ..WalkChoice::all() }, &mut |found| {
                if let Found::Failure(item, why) = overlaps.check(found) {
                    assert_eq!(why.code, ErrorCode::AlreadyExists, "{why:?}");
                    let first = why.message().split(' ').nth(2).unwrap().to_string();
                    refused.push((item.root, String::from_utf8(item.path).unwrap(), first));
                }
                true
            });
        }
        refused.sort();
        refused
    }

    #[test]
    fn later_source_gives_way_wherever_an_earlier_one_has_something() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for file in ["a/x", "a/d/f", "a/only", "a/t/u", "b/x", "b/d/f", "b/d/g", "b/only/f", "b/t", "c/d", "c/n"] {
            let path = place.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        std::os::unix::fs::symlink("a", place.join("c/t")).unwrap();
        let expected = |rows: &[(u32, &str, &str)]| -> Vec<(u32, String, String)> {
            rows.iter().map(|(root, path, first)| (*root, (*path).into(), (*first).into())).collect()
        };
        let roots = [contents(place, "a"), contents(place, "b")];
        let rows =
            [(1, "d/f", "a/d/f"), (1, "only", "a/only"), (1, "only/f", "a/only/f"), (1, "t", "a/t"), (1, "x", "a/x")];
        assert_eq!(refused(&roots), expected(&rows));
        let roots =
            [contents(place, "a"), named(place, "b/x", "x"), named(place, "b/d", "d"), named(place, "b/d/g", "g")];
        assert_eq!(refused(&roots), expected(&[(1, "", "a/x"), (2, "f", "a/d/f")]));
        let roots = [named(place, "b/d", "d"), named(place, "b/x", "t"), contents(place, "a"), contents(place, "c")];
        let rows = [(2, "d/f", "b/d/f"), (2, "t", "b/x"), (2, "t/u", "b/x/u"), (3, "d", "b/d"), (3, "t", "b/x")];
        assert_eq!(refused(&roots), expected(&rows));
        // A link to a directory is no directory.
        let roots = [contents(place, "c"), contents(place, "a")];
        let rows = [(1, "d", "c/d"), (1, "d/f", "c/d/f"), (1, "t", "c/t"), (1, "t/u", "c/t/u")];
        assert_eq!(refused(&roots), expected(&rows));
        assert_eq!(refused(&[named(place, "a", "a"), named(place, "b", "b")]), expected(&[]));
    }

    /// What is not copied of an earlier source is in nobody's way: a file above a selected path, or a FIFO.
    #[test]
    fn overlaps_count_only_what_is_copied() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for file in ["a/d", "a/e/f", "b/d/f", "b/d/g/h", "b/e", "b/l/f", "b/p/f", "d/n"] {
            let path = place.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        std::os::unix::fs::symlink("e", place.join("a/l")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(place.join("a/p")).status().unwrap().success());
        let roots = [contents(place, "a"), contents(place, "b")];
        let of = |paths: &[&str]| {
            let mut selection = Selection::default();
            paths.iter().for_each(|path| selection.add(path.as_bytes().to_vec()));
            let found = refused_of(&roots, Some(&selection));
            found.into_iter().map(|(_, path, _)| path).collect::<Vec<_>>()
        };
        let all = ["d", "d/f", "d/g", "d/g/h", "e", "l", "l/f"];
        assert_eq!(refused(&roots).into_iter().map(|(_, path, _)| path).collect::<Vec<_>>(), all);
        for (selected, conflicts) in [
            (&["d/f"][..], &[][..]),
            (&["d/f", "d/g/h"], &[]),
            (&["l/f", "p/f"], &[]),
            (&["e/f"], &[]),
            (&["d"], &all[..4]),
            (&["e", "l"], &all[4..]),
            (&["d", "d/f"], &all[..4]),
        ] {
            assert_eq!(of(selected), conflicts, "{selected:?}");
        }
        let named = [named(place, "a/d", "d"), contents(place, "b")];
        let mut selection = Selection::default();
        selection.add(b"d/f".to_vec());
        assert_eq!(refused_of(&named, Some(&selection)), []);
        assert_eq!(refused(&named).len(), 4);
    }

    #[test]
    fn directory_of_two_sources_has_the_attributes_of_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for (name, mode) in [("a/d", 0o750), ("b/d", 0o700), ("b/e", 0o711)] {
            let path = place.join(name);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        }
        let roots = [contents(place, "a"), contents(place, "b")];
        let overlaps = Overlaps::new(&roots, None);
        let mut modes = Vec::new();
        roots[1].walk(1, &WalkChoice::all(), &mut |found| {
            if let Found::Item(item) = overlaps.check(found) {
                modes.push((item.path, item.attributes.mode));
            }
            true
        });
        modes.sort();
        assert_eq!(modes[1..], [(b"d".to_vec(), 0o750), (b"e".to_vec(), 0o711)]);
    }
}
