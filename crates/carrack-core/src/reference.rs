//! Directories at the destination that may have a file of the source already: what is the same there need not be sent.

use crate::limits;
use crate::path::display_bytes;
use crate::words::{quoted, words};

words! {
    /// What becomes of a file that a reference directory has.
    pub enum ReferenceUse {
        0 Link "link" "the destination gets a hard link to it"
        1 Copy "copy" "the destination gets a copy of it"
        2 Compare "compare" "the destination gets nothing"
    }
}

/// Reference directories, and what they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceDirectories {
    used: ReferenceUse,
    paths: Vec<Vec<u8>>,
}

impl ReferenceDirectories {
    /// These paths, which count in their order: 1 to [`limits::REFERENCES`]. One that does not begin with a slash is
    /// relative to the destination.
    ///
    /// # Errors
    /// The sentence that refuses them.
    pub fn new(used: ReferenceUse, paths: Vec<Vec<u8>>) -> Result<Self, String> {
        let most = limits::REFERENCES;
        if paths.is_empty() || paths.len() > most {
            return Err(format!("{} directories are named: name 1 to {most}", paths.len()));
        }
        let is_wrong = |path: &&Vec<u8>| path.is_empty() || path.len() > limits::PATH_BYTES || path.contains(&0);
        match paths.iter().find(is_wrong) {
            Some(path) => Err(format!("{} is no path of a directory", quoted(&display_bytes(path).to_string()))),
            None => Ok(Self { used, paths }),
        }
    }

    /// What becomes of a file that one of them has.
    pub fn used(&self) -> ReferenceUse {
        self.used
    }

    /// Their paths as typed.
    pub fn paths(&self) -> &[Vec<u8>] {
        &self.paths
    }
}

/// Where a path that was typed leads below a root, by its words alone: from the root if it begins with a slash, else
/// from `destination`, a path below that root. Without a slash at either end; empty for the root itself. `None` where
/// it leads out of the root.
pub fn below_root(destination: &[u8], typed: &[u8]) -> Option<Vec<u8>> {
    let base: &[u8] = if typed.starts_with(b"/") { b"" } else { destination };
    let mut names: Vec<&[u8]> = Vec::new();
    for name in base.split(|&byte| byte == b'/').chain(typed.split(|&byte| byte == b'/')) {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_directories_are_bounded() {
        let make = |paths: Vec<Vec<u8>>| ReferenceDirectories::new(ReferenceUse::Link, paths);
        let some = |count| vec![b"../monday".to_vec(); count];
        assert_eq!(make(some(limits::REFERENCES)).unwrap().paths().len(), limits::REFERENCES);
        for wrong in [vec![], some(limits::REFERENCES + 1), vec![Vec::new()], vec![b"a\0b".to_vec()]] {
            assert!(make(wrong).is_err());
        }
        assert!(make(vec![vec![b'x'; limits::PATH_BYTES + 1]]).is_err());
    }

    #[test]
    fn paths_below_a_root_do_not_leave_it() {
        let below = |destination: &str, typed: &str| {
            below_root(destination.as_bytes(), typed.as_bytes()).map(|path| String::from_utf8(path).unwrap())
        };
        let some = |path: &str| Some(path.to_owned());
        assert_eq!(below("/backup/tuesday", "../monday"), some("backup/monday"));
        assert_eq!(below("backup//tuesday/.", "./../monday/"), some("backup/monday"));
        assert_eq!(below("backup/tuesday", "/monday"), some("monday"));
        assert_eq!(below("tuesday", "old"), some("tuesday/old"));
        assert_eq!(below("tuesday", ".."), some(""));
        for out in ["../..", "../../etc", "/..", "/../etc", "a/../../../x"] {
            assert_eq!(below("tuesday", out), None, "{out}");
        }
    }
}
