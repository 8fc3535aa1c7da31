//! The modelled destination: part files, names, and what may never happen to either.

use std::collections::{BTreeMap, BTreeSet};

use super::source::whole_blake3;
use crate::digest::block_count;
use crate::limits;

#[derive(Debug, Default)]
pub struct Disk {
    pub opening: BTreeSet<u64>,
    pub parts: BTreeMap<u64, Part>,
    /// Bundles written under hidden names.
    pub bundles: BTreeMap<u64, Vec<Entry>>,
    pub names: BTreeMap<Vec<u8>, Name>,
    pub directories: BTreeSet<Vec<u8>>,
    /// Item and offset of every block that has landed.
    landed: BTreeSet<(u64, u64)>,
    writing: BTreeMap<u16, (u64, u64)>,
}

#[derive(Debug)]
pub struct Part {
    pub path: Vec<u8>,
    /// Content of each block.
    pub blocks: BTreeMap<u64, u64>,
    pub publishing: bool,
}

/// An entry of a bundle as it arrived.
#[derive(Clone, Debug)]
pub struct Entry {
    pub item: usize,
    pub path: Vec<u8>,
    pub size: u64,
    /// `None` when the source could not be read.
    pub content: Option<u64>,
    pub altered: bool,
}

/// What stands under a name.
#[derive(Clone, Debug, Default)]
pub struct Name {
    pub blake3: [u8; 32],
    pub times: u32,
}

impl Disk {
    /// A stream begins to write a block.
    pub fn begin(&mut self, stream: u16, item: u64, offset: u64) {
        assert!(
            !self.landed.contains(&(item, offset)),
            "block {offset} of item {item} has landed and is written again"
        );
        let other = self.writing.iter().find(|(other, unit)| **other != stream && **unit == (item, offset));
        assert_eq!(other, None, "block {offset} of item {item} is written by two streams at once");
        assert!(
            self.parts.get(&item).is_some_and(|part| !part.publishing),
            "item {item} is written while it is not open"
        );
        self.writing.insert(stream, (item, offset));
    }

    pub fn end(&mut self, stream: u16) {
        self.writing.remove(&stream);
    }

    pub fn land(&mut self, item: u64, offset: u64) {
        assert!(self.landed.insert((item, offset)), "block {offset} of item {item} lands twice");
    }

    /// Bytes as they stand in a part file, digested.
    pub fn read_back(&self, item: u64, size: u64, block_bytes: u32) -> Option<[u8; 32]> {
        let part = &self.parts[&item];
        let blocks: Option<Vec<u64>> =
            (0..block_count(size, block_bytes)).map(|index| part.blocks.get(&index).copied()).collect();
        Some(whole_blake3(&blocks?, size, block_bytes))
    }

    pub fn publish(&mut self, path: Vec<u8>, blake3: [u8; 32]) {
        let name = self.names.entry(path).or_default();
        *name = Name { blake3, times: name.times + 1 };
    }

    pub fn check_bounds(&self) {
        assert!(self.opening.len() + self.parts.len() <= limits::OPEN_ITEMS, "more part files than allowed");
        assert!(self.bundles.len() <= limits::UNACKNOWLEDGED_BUNDLES, "more bundles than allowed");
    }
}
