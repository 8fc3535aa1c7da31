//! Files of the source that have one size and one time: samples do not tell which of them the receiver has.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::limits;
use crate::report::ItemKind;
use crate::transfer::ScannedItem;

/// Sizes and times that several files of the source have. Known once all names have been told.
#[derive(Debug, Default)]
pub(super) struct AlikeSources {
    /// By the digest of size and time: that of device and inode, or [`SEVERAL`].
    files: BTreeMap<u64, u64>,
    /// There were too many files for all to be noted.
    is_short: bool,
}

/// There is more than one.
const SEVERAL: u64 = u64::MAX;

impl AlikeSources {
    /// A name is told.
    pub fn note(&mut self, item: &ScannedItem) {
        let Some(key) = key_of(item) else { return };
        // Names of one file hold the same; one without a number is a file of its own.
        let own = item.file.map_or(SEVERAL - 1, |file| digest_of(&file));
        let is_full = self.files.len() >= limits::NOTED_SOURCES;
        match self.files.get_mut(&key) {
            Some(other) if item.file.is_some() && *other == own => {}
            Some(other) => *other = SEVERAL,
            None if is_full => self.is_short = true,
            None => _ = self.files.insert(key, own),
        }
    }

    /// Whether no other file of the source has the size and the time of this one. A time in whole seconds may be that
    /// of many.
    pub fn tells_apart(&self, item: &ScannedItem) -> bool {
        let alone = |key: u64| self.files.get(&key).is_none_or(|own| *own != SEVERAL);
        !self.is_short && key_of(item).is_some_and(alone)
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
