//! A small file or link that is whole, and has not got its name yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use carrack_core::digest::FileDigests;
use carrack_core::failure::Failure;
use carrack_core::request::Durability;
use carrack_engine::stores::write::{Entry, compare};

use super::Hidden;

pub(super) struct MemoryEntry {
    pub hidden: Hidden,
    pub content: Vec<u8>,
    pub is_synced: Arc<AtomicBool>,
    pub digests: FileDigests,
    pub read_back: bool,
}

impl Entry for MemoryEntry {
    fn awaits_sync(&self) -> bool {
        self.hidden.session.durability == Durability::Group
    }

    fn verify(&self) -> Result<(), Failure> {
        if self.read_back { compare(&self.content, self.digests) } else { Ok(()) }
    }

    fn publish(&self) -> Result<bool, Failure> {
        self.hidden.publish(self.content.clone(), self.is_synced.load(Ordering::Relaxed), self.digests)
    }

    fn remove(&self) {
        self.hidden.remove();
    }
}
