//! What is in a directory, batch by batch: as the file system has it, or in order, for a tree that is compared.

use std::collections::BTreeMap;
use std::io;

use carrack_sys::dir::{Dir, DirEntry, Entries};

use super::descriptors::patiently;
use super::source::PosixSource;

/// Names that are held to be put in order. A directory with more is read once for each so many.
#[cfg(not(test))]
const ORDERED_AT_ONCE: usize = 100_000;
#[cfg(test)]
const ORDERED_AT_ONCE: usize = 7;

/// A directory that was opened; where it is listed, what is in it.
pub struct ListedAhead {
    pub directory: Dir,
    pub entries: Option<ListedEntries>,
}

/// The entries of a directory that have not been taken.
pub enum ListedEntries {
    /// Those that come, the first of them read ahead.
    AsRead(Entries, Vec<DirEntry>, bool),
    /// Those behind a name, by their names; `None` where there are no more.
    InOrder(Option<Vec<u8>>),
}

impl ListedAhead {
    /// Opens a directory of a source.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(source: &PosixSource, top: &Dir, path: &[u8], in_order: bool) -> io::Result<Self> {
        let directory = source.links.open_dir(top, path)?;
        if in_order {
            return Ok(Self { directory, entries: Some(ListedEntries::InOrder(Some(Vec::new()))) });
        }
        let mut entries = patiently(|| directory.entries())?;
        let mut batch = Vec::new();
        let is_more = entries.next_batch(&mut batch)?;
        Ok(Self { directory, entries: Some(ListedEntries::AsRead(entries, batch, is_more)) })
    }
}

impl ListedEntries {
    /// The next of them; `None` at the end.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn next_batch(&mut self, directory: &Dir) -> io::Result<Option<Vec<DirEntry>>> {
        match self {
            Self::AsRead(_, _, false) => Ok(None),
            Self::AsRead(entries, ahead, is_more) => {
                let mut batch = std::mem::take(ahead);
                if batch.is_empty() {
                    *is_more = entries.next_batch(&mut batch)?;
                }
                batch.sort_unstable_by_key(|entry| entry.inode);
                Ok(is_more.then_some(batch))
            }
            Self::InOrder(None) => Ok(None),
            Self::InOrder(Some(last)) => {
                let (batch, is_more) = names_behind(directory, last)?;
                let last = batch.last().filter(|_| is_more).map(|entry| entry.name.clone());
                *self = Self::InOrder(last);
                Ok(Some(batch))
            }
        }
    }
}

/// The first names behind one, in order, and whether there are more. No name is empty.
fn names_behind(directory: &Dir, last: &[u8]) -> io::Result<(Vec<DirEntry>, bool)> {
    let mut entries = patiently(|| directory.entries())?;
    let (mut held, mut batch, mut is_more) = (BTreeMap::new(), Vec::new(), false);
    while entries.next_batch(&mut batch)? {
        for entry in batch.drain(..).filter(|entry| entry.name[..] > *last) {
            held.insert(entry.name.clone(), entry);
            if held.len() > ORDERED_AT_ONCE {
                held.pop_last();
                is_more = true;
            }
        }
    }
    Ok((held.into_values().collect(), is_more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_order_whatever_fits_at_once() {
        for count in [0, 1, ORDERED_AT_ONCE, ORDERED_AT_ONCE + 1, 3 * ORDERED_AT_ONCE, 3 * ORDERED_AT_ONCE + 2] {
            let top = tempfile::tempdir().unwrap();
            (0..count).for_each(|at| std::fs::write(top.path().join(format!("{at}")), "").unwrap());
            let directory = Dir::open_ambient(top.path()).unwrap();
            let mut entries = ListedEntries::InOrder(Some(Vec::new()));
            let mut found = Vec::new();
            while let Some(batch) = entries.next_batch(&directory).unwrap() {
                assert!(batch.len() <= ORDERED_AT_ONCE);
                found.extend(batch.into_iter().map(|entry| entry.name));
            }
            let mut expected: Vec<Vec<u8>> = (0..count).map(|at| at.to_string().into_bytes()).collect();
            expected.sort();
            assert_eq!(found, expected);
        }
    }
}
