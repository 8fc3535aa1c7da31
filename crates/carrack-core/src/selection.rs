//! A choice among what the sources of a copy name (`--files-from`): paths relative to the destination, each
//! with all that is below it.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::path::{above, join};

/// Where a path below a source goes, relative to the destination; the empty path is the source itself.
pub fn place(target: &[u8], path: &[u8]) -> Vec<u8> {
    if path.is_empty() { target.to_vec() } else { join(target, path) }
}

/// How a path stands to a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// It is wanted: selected itself, or below something that is.
    Wanted,
    /// Something below it may be wanted.
    Above,
    /// Neither the path nor anything below it is wanted.
    No,
}

/// Selected paths, and which of them have been found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    paths: BTreeMap<Vec<u8>, Cell<bool>>,
    bytes: usize,
}

impl Selection {
    /// Adds a path, which is checked already.
    pub fn add(&mut self, path: Vec<u8>) {
        self.bytes += path.len();
        self.paths.insert(path, Cell::new(false));
    }

    /// How many paths, and how many bytes of them have been added.
    pub fn size(&self) -> (usize, usize) {
        (self.paths.len(), self.bytes)
    }

    /// The paths, in order.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.keys().map(Vec::as_slice)
    }

    /// How a path stands to it; the empty path is above all.
    pub fn covers(&self, path: &[u8]) -> Selected {
        if above(path).chain([path]).any(|path| self.paths.contains_key(path)) {
            return Selected::Wanted;
        }
        let mut below = path.to_vec();
        if !below.is_empty() {
            below.push(b'/');
        }
        let next = self.paths.range(below.clone()..).next();
        if next.is_some_and(|(next, _)| next.starts_with(&below)) { Selected::Above } else { Selected::No }
    }

    /// The names in a directory (empty: the top) that lead to selected paths, in order.
    pub fn names_below(&self, directory: &[u8]) -> Vec<&[u8]> {
        let top = if directory.is_empty() { Vec::new() } else { [directory, b"/"].concat() };
        let below = self.paths.range(top.clone()..).map(|(path, _)| path.as_slice());
        let rest = below.map_while(|path| path.strip_prefix(&top[..]));
        let mut names: Vec<&[u8]> = rest.filter_map(|rest| rest.split(|&byte| byte == b'/').next()).collect();
        // `a.b` stands between `a` and `a/b`.
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Something is there under this path.
    pub fn found(&self, path: &[u8]) {
        if let Some(found) = self.paths.get(path) {
            found.set(true);
        }
    }

    /// Selected paths under which nothing was found.
    pub fn missing(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().filter(|(_, found)| !found.get()).map(|(path, _)| path.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(paths: &[&str]) -> Selection {
        let mut selection = Selection::default();
        paths.iter().for_each(|path| selection.add(path.as_bytes().to_vec()));
        selection
    }

    #[test]
    fn selection_has_what_is_wanted_and_what_leads_there() {
        let selection = selection(&["a/b", "a/b.c", "d", "e/f/g"]);
        for path in ["a/b", "a/b/x", "a/b/x/y", "a/b.c", "d", "d/x", "e/f/g"] {
            assert_eq!(selection.covers(path.as_bytes()), Selected::Wanted, "{path}");
        }
        for path in ["", "a", "e", "e/f"] {
            assert_eq!(selection.covers(path.as_bytes()), Selected::Above, "{path}");
        }
        for path in ["a/c", "a/bb", "a/b.", "b", "dd", "e/f/h", "e/g", "z", "f"] {
            assert_eq!(selection.covers(path.as_bytes()), Selected::No, "{path}");
        }
        assert_eq!(Selection::default().covers(b""), Selected::No);
    }

    #[test]
    fn selection_knows_the_names_that_lead_to_what_is_wanted() {
        let selection = selection(&["a", "a.b/c", "a/b", "a/b.c/d", "a/c", "d/e/f"]);
        let names = |directory: &str| selection.names_below(directory.as_bytes());
        assert_eq!(names(""), [&b"a"[..], b"a.b", b"d"]);
        assert_eq!(names("a"), [&b"b"[..], b"b.c", b"c"]);
        assert_eq!(names("d"), [b"e"]);
        assert!(names("a/c").is_empty() && names("e").is_empty() && names("d/e/f").is_empty());
    }

    #[test]
    fn places() {
        for (target, path, expected) in [("t", "", "t"), ("t", "a/b", "t/a/b"), ("", "a", "a"), ("", "", "")] {
            assert_eq!(place(target.as_bytes(), path.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn selection_knows_what_was_not_found() {
        let selection = selection(&["a", "b/c"]);
        selection.found(b"a");
        selection.found(b"b");
        assert_eq!(selection.missing().collect::<Vec<_>>(), [b"b/c"]);
        assert_eq!(selection.size(), (2, 4));
    }
}
