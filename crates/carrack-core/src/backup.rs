//! What is replaced or deleted at the destination, and kept under another name.

use crate::limits;
use crate::path::{above, check_relative, display_bytes, join, split_name, within};
use crate::words::quoted;

/// Where what is replaced or deleted is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// A directory below the destination, in which everything has the path that it had; without one, it stays beside
    /// its place.
    directory: Option<Vec<u8>>,
    /// Stands at the end of its name.
    suffix: Vec<u8>,
}

impl Backup {
    /// What is added to a name, where nothing else was asked for and it stays beside its place.
    pub const SUFFIX: &'static [u8] = b"~";

    /// In this directory, or beside its place; with this suffix, or the usual one.
    ///
    /// # Errors
    /// The sentence that refuses either.
    pub fn new(directory: Option<Vec<u8>>, suffix: Option<Vec<u8>>) -> Result<Self, String> {
        let shown = |bytes: &[u8]| quoted(&display_bytes(bytes).to_string());
        if let Some(directory) = &directory {
            let refused = |why| format!("{}: {why}: name a directory below the destination", shown(directory));
            check_relative(directory).map_err(|why| refused(why.to_string()))?;
        }
        let usual = if directory.is_some() { b"" } else { Self::SUFFIX };
        let suffix = suffix.unwrap_or_else(|| usual.to_vec());
        let is_part_of_a_name =
            suffix.len() < limits::NAME_BYTES && !suffix.iter().any(|byte| matches!(byte, b'/' | ..b' '));
        if !is_part_of_a_name || (suffix.is_empty() && directory.is_none()) {
            return Err(format!("{} is no end of a name: use ~ or .old", shown(&suffix)));
        }
        Ok(Self { directory, suffix })
    }

    /// The directory, if there is one; and the suffix.
    pub fn parts(&self) -> (Option<&[u8]>, &[u8]) {
        (self.directory.as_deref(), &self.suffix)
    }

    /// Where it is kept, by the path that it had.
    pub fn path(&self, path: &[u8]) -> Vec<u8> {
        let (parent, name) = split_name(path);
        let name = [name, &self.suffix].concat();
        match &self.directory {
            Some(directory) if parent.is_empty() => join(directory, &name),
            Some(directory) => join(&join(directory, parent), &name),
            None => join(parent, &name),
        }
    }

    /// Where it is kept if something else is there already that has to stay.
    pub fn path_beside(&self, kept: &[u8]) -> Vec<u8> {
        [kept, if self.suffix.is_empty() { Self::SUFFIX } else { &self.suffix }].concat()
    }

    /// Whether an old file may be kept at a path. No item of a source goes there.
    pub fn holds(&self, path: &[u8], is_directory: bool) -> bool {
        match &self.directory {
            Some(directory) => within(path, directory).is_some(),
            None => !is_directory && split_name(path).1.ends_with(&self.suffix),
        }
    }

    /// Whether a path is not deleted, because this run or another one may keep something there. Each run may have a
    /// directory of its own, below one for all.
    pub fn protects(&self, path: &[u8]) -> bool {
        match &self.directory {
            Some(directory) => {
                let first = above(directory).next().unwrap_or(directory);
                within(path, first).is_some()
            }
            None => split_name(path).1.ends_with(&self.suffix),
        }
    }

    /// What is kept stays in the directory where it was.
    pub fn is_beside(&self) -> bool {
        self.directory.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_beside_its_place_or_in_a_directory() {
        let beside = Backup::new(None, None).unwrap();
        assert_eq!((beside.path(b"a"), beside.path(b"d/a")), (b"a~".to_vec(), b"d/a~".to_vec()));
        assert!(beside.holds(b"d/a~", false) && !beside.holds(b"a", false) && beside.is_beside());
        // No directory is kept, and none that is called so goes.
        assert!(!beside.holds(b"d~", true) && beside.protects(b"d~"));
        let within = Backup::new(Some(b"old/x".to_vec()), None).unwrap();
        assert_eq!((within.path(b"a"), within.path(b"d/a")), (b"old/x/a".to_vec(), b"old/x/d/a".to_vec()));
        assert!(within.holds(b"old/x", true) && within.holds(b"old/x/d", false) && !within.holds(b"old", true));
        assert!(within.protects(b"old") && within.protects(b"old/before") && !within.protects(b"older"));
        let both = Backup::new(Some(b"old".to_vec()), Some(b".1".to_vec())).unwrap();
        assert_eq!(both.path(b"d/a"), b"old/d/a.1");
        assert_eq!(
            (both.path_beside(b"old/a.1"), within.path_beside(b"old/x/a")),
            (b"old/a.1.1".to_vec(), b"old/x/a~".to_vec())
        );
    }

    #[test]
    fn places_that_are_none_are_refused() {
        for directory in ["/abs", "../up", "a/../b", "", "a//b", "."] {
            assert!(Backup::new(Some(directory.as_bytes().to_vec()), None).is_err(), "{directory:?}");
        }
        for suffix in [&b""[..], b"/", b"a/b", b"\0", &[b'x'; 255]] {
            assert!(Backup::new(None, Some(suffix.to_vec())).is_err(), "{suffix:?}");
        }
    }
}
