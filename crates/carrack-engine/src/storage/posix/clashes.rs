//! Names of one directory that would become one at a destination where upper and lower case are one. They are found
//! before anything of the directory is copied, and neither of two is.
//!
//! Memory has a bound: of a directory with more names the first are compared with each other. What is missed here, the
//! destination finds when it is about to give the second name.

use std::collections::{HashMap, HashSet};
use std::io;

use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::path::display_bytes;
use carrack_core::unicode::fold_case;
use carrack_sys::dir::{Dir, DirEntry};

use super::descriptors::patiently;
use crate::error::failure;

/// Names of a directory that are compared, and names that clash.
const NAMES_MAX: usize = 1 << 20;
const CLASHES_MAX: usize = 10_000;

/// Names that clash, by a digest of what they are without regard to case: two of each.
#[derive(Default)]
pub struct Clashes(HashMap<u64, Vec<Vec<u8>>>);

impl Clashes {
    /// Among the entries of a directory that are `taken`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn find(directory: &Dir, taken: &dyn Fn(&DirEntry) -> bool) -> io::Result<Self> {
        let (mut seen, mut clashes) = (HashSet::new(), HashMap::new());
        each_name(directory, taken, &mut |name| {
            let key = key(name);
            if seen.len() < NAMES_MAX && !seen.insert(key) && clashes.len() < CLASHES_MAX {
                clashes.insert(key, Vec::new());
            }
        })?;
        drop(seen);
        if !clashes.is_empty() {
            each_name(directory, taken, &mut |name| {
                if let Some(names) = clashes.get_mut(&key(name)).filter(|names| names.len() < 2) {
                    names.push(name.to_vec());
                }
            })?;
        }
        Ok(Self(clashes))
    }

    /// Another name that would be one with this.
    pub fn other(&self, name: &[u8]) -> Option<&[u8]> {
        if self.0.is_empty() {
            return None;
        }
        let folded = fold_case(name);
        let names = self.0.get(&key(name))?.iter();
        names.map(Vec::as_slice).find(|other| *other != name && fold_case(other) == folded)
    }
}

fn each_name(directory: &Dir, taken: &dyn Fn(&DirEntry) -> bool, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut entries = patiently(|| directory.entries())?;
    let mut batch = Vec::new();
    while entries.next_batch(&mut batch)? {
        batch.drain(..).filter(|entry| taken(entry)).for_each(|entry| each(&entry.name));
    }
    Ok(())
}

fn key(name: &[u8]) -> u64 {
    let digest = blake3::hash(&fold_case(name));
    let (first, _) = digest.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    u64::from_le_bytes(*first)
}

/// Why neither of two is copied.
pub fn clash(other: &[u8]) -> Failure {
    let message = format!("would be at the destination the same name as {}: neither is copied", display_bytes(other));
    failure(ErrorCode::AlreadyExists, Side::Destination, message).for_reason(Reason::TwinNames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_by_case_alone_clash_and_others_do_not() {
        let place = tempfile::tempdir().unwrap();
        for name in ["a", "A", "b", "straße", "STRASSE", "Ünder", "ünder", "ÜNDER", "left-out", "LEFT-OUT"] {
            std::fs::write(place.path().join(name), "").unwrap();
        }
        let directory = Dir::open_ambient(place.path()).unwrap();
        let found = Clashes::find(&directory, &|entry| entry.name != b"LEFT-OUT").unwrap();
        assert_eq!((found.other(b"a"), found.other(b"A")), (Some(&b"A"[..]), Some(&b"a"[..])));
        for name in ["Ünder", "ünder", "ÜNDER"] {
            let other = found.other(name.as_bytes()).unwrap();
            assert!(other != name.as_bytes() && fold_case(other) == "ünder".as_bytes());
        }
        for name in ["b", "straße", "STRASSE", "left-out"] {
            assert_eq!(found.other(name.as_bytes()), None, "{name}");
        }
    }
}
