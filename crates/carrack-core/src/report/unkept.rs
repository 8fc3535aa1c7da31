//! What a destination did not keep, counted and named.

use std::collections::BTreeMap;

use crate::attributes::AttributeKind;
use crate::limits;

/// Directories that have other permissions than those of their sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnkeptDirectories {
    /// So many.
    pub count: u64,
    /// Their paths below the destination, the first of them; empty for that itself. At most
    /// [`limits::UNKEPT_DIRECTORIES`], and [`limits::UNKEPT_DIRECTORIES_BYTES`] together.
    pub paths: Vec<Vec<u8>>,
}

impl UnkeptDirectories {
    /// Counts one more, and names it as long as there is room.
    pub fn note(&mut self, path: &[u8]) {
        self.count += 1;
        let bytes: usize = if self.paths.len() < limits::UNKEPT_DIRECTORIES {
            self.paths.iter().map(Vec::len).sum()
        } else {
            limits::UNKEPT_DIRECTORIES_BYTES
        };
        if bytes + path.len() < limits::UNKEPT_DIRECTORIES_BYTES {
            self.paths.push(path.to_vec());
        }
    }
}

/// Attributes beside permissions and times that the destination did not keep: of kinds that are never kept, that it
/// does not know, or that cannot be kept there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnkeptAttributes {
    /// Of so many items.
    pub count: u64,
    /// The first of them, relative to the destination directory; empty for that itself.
    pub path: Vec<u8>,
    /// How many items did not keep each kind; the first [`limits::ATTRIBUTES`] kinds that were met. 0 where the end is
    /// of a version that does not count each.
    pub kinds: BTreeMap<AttributeKind, u64>,
}

impl UnkeptAttributes {
    /// Counts an item of which attributes of these kinds were not kept; nothing where there are none.
    pub fn note(
        so_far: &mut Option<Self>,
        path: impl FnOnce() -> Vec<u8>,
        kinds: impl IntoIterator<Item = AttributeKind>,
    ) {
        let mut kinds = kinds.into_iter().peekable();
        if kinds.peek().is_none() {
            return;
        }
        let unkept = so_far.get_or_insert_with(|| Self { path: path(), ..Self::default() });
        unkept.count += 1;
        kinds.for_each(|kind| unkept.add_kind(kind, 1));
    }

    /// Adds what another end tells.
    pub fn add(&mut self, told: Self) {
        self.count = self.count.saturating_add(told.count);
        told.kinds.into_iter().for_each(|(kind, items)| self.add_kind(kind, items));
    }

    fn add_kind(&mut self, kind: AttributeKind, items: u64) {
        if self.kinds.len() < limits::ATTRIBUTES || self.kinds.contains_key(&kind) {
            let sum = self.kinds.entry(kind).or_default();
            *sum = sum.saturating_add(items);
        }
    }
}
