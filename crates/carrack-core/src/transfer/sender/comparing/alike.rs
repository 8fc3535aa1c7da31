//! Files of the source that have one size and one time: samples do not tell which of them the receiver has.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::report::ItemKind;
use crate::transfer::ScannedItem;

/// Sizes and times that several files of the source have. Known once all names have been told.
#[derive(Debug, Default)]
pub(super) struct AlikeSources {
    /// Digests of size and time, and of device and inode, of each file; until all names have been told.
    seen: Vec<(u64, u64)>,
    /// Digests of the sizes and times that several files have, in order.
    several: Vec<u64>,
    /// There were too many files for all to be noted.
    is_short: bool,
}

impl AlikeSources {
    /// Files that are noted, of 16 bytes each. Beyond, no samples are told.
    const FILES: usize = 1 << 24;

    /// A name is told.
    pub fn note(&mut self, item: &ScannedItem) {
        let Some(key) = key_of(item) else { return };
        if self.seen.len() >= Self::FILES {
            self.is_short = true;
            return;
        }
        // One without a number is a file of its own.
        let own = self.seen.len() as u64;
        self.seen.push((key, item.file.map_or(own, |file| digest_of(&file))));
    }

    /// All names have been told.
    pub fn close(&mut self) {
        let mut seen = std::mem::take(&mut self.seen);
        seen.sort_unstable();
        // Names of one file hold the same.
        seen.dedup();
        let alike = seen.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        self.several = alike.map(|pair| pair[0].0).collect();
    }

    /// Whether no other file of the source has the size and the time of this one. A time in whole seconds may be that
    /// of many.
    pub fn tells_apart(&self, item: &ScannedItem) -> bool {
        !self.is_short && key_of(item).is_some_and(|key| self.several.binary_search(&key).is_err())
    }
}

/// The digest of size and time, where samples are worth anything.
fn key_of(item: &ScannedItem) -> Option<u64> {
    let size = item.size.filter(|size| item.kind == ItemKind::File && *size > 0)?;
    let time = item.attributes.mtime.filter(|time| time.nanos != 0)?;
    Some(digest_of(&(size, time)))
}

/// The same in each process; it is told to nobody.
fn digest_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
