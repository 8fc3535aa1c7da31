//! The receiver's own view of the modelled destination in one session, and what may never happen there.

use std::collections::{BTreeMap, BTreeSet};

use super::source::whole_blake3;
use super::store::Store;
use crate::attributes::Time;
use crate::digest::block_count;
use crate::ids::{BundleId, ItemId, StreamId};
use crate::limits;
use crate::transfer::Fingerprint;
use crate::wire::peer::Offer;

#[derive(Debug, Default)]
pub struct Disk {
    pub opening: BTreeSet<ItemId>,
    pub parts: BTreeMap<ItemId, DiskPart>,
    /// Bundles written under hidden names.
    pub bundles: BTreeMap<BundleId, Vec<Entry>>,
    /// How often each name was published.
    pub published: BTreeMap<Vec<u8>, u32>,
    pub directories: BTreeSet<Vec<u8>>,
    /// Item and offset of every block that has landed.
    landed: BTreeSet<(ItemId, u64)>,
    writing: BTreeMap<StreamId, (ItemId, u64)>,
}

#[derive(Debug)]
pub struct DiskPart {
    pub path: Vec<u8>,
    /// In the store.
    pub file: u64,
    pub mtime: Option<Time>,
    pub fingerprint: Option<Fingerprint>,
    /// Made by this session: nobody else has written to it.
    pub fresh: bool,
    pub publishing: bool,
    pub checkpointing: bool,
}

/// An entry of a bundle as it arrived.
#[derive(Clone, Debug)]
pub struct Entry {
    pub item: usize,
    pub path: Vec<u8>,
    pub size: u64,
    pub mtime: Option<Time>,
    pub fingerprint: Option<Fingerprint>,
    /// `None` when the source could not be read.
    pub content: Option<u64>,
    /// It could not be read because it was being changed.
    pub changing: bool,
    pub altered: bool,
    /// Sent as a patch of what stood there.
    pub patched: bool,
}

impl DiskPart {
    pub fn new(file: u64, offer: &Offer, fresh: bool) -> Self {
        let (mtime, fingerprint) = (offer.attributes.mtime, offer.fingerprint);
        Self { path: offer.path.clone(), file, mtime, fingerprint, fresh, publishing: false, checkpointing: false }
    }
}

impl Disk {
    /// A stream begins to write a block.
    pub fn begin(&mut self, stream: StreamId, item: ItemId, offset: u64) {
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

    pub fn end(&mut self, stream: StreamId) {
        self.writing.remove(&stream);
    }

    pub fn land(&mut self, item: ItemId, offset: u64) {
        assert!(self.landed.insert((item, offset)), "block {offset} of item {item} lands twice");
    }

    /// Storage has lost a block.
    pub fn take_back(&mut self, item: ItemId, offset: u64) {
        self.landed.remove(&(item, offset));
    }

    /// Bytes as they stand in a part file, digested.
    pub fn read_back(&self, store: &Store, item: ItemId, size: u64, block_bytes: u32) -> Option<[u8; 32]> {
        let file = self.parts[&item].file;
        let blocks: Option<Vec<u64>> =
            (0..block_count(size, block_bytes)).map(|index| store.read(file, index)).collect();
        Some(whole_blake3(&blocks?, size, block_bytes))
    }

    pub fn check_bounds(&self) {
        assert!(self.opening.len() + self.parts.len() <= limits::OPEN_ITEMS, "more part files than allowed");
        assert!(self.bundles.len() <= limits::UNACKNOWLEDGED_BUNDLES, "more bundles than allowed");
    }
}
