//! Reading from a store in memory.

use std::cmp::Ordering;
use std::io;
use std::sync::Arc;

use carrack_core::attributes::{Attributes, Time};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::{above, within};
use carrack_core::report::ItemKind;
use carrack_core::selection::Selected;
use carrack_core::transfer::{Fingerprint, ScannedItem};

use super::{Memory, State, StoredItem, below, plain_directory};
use carrack_engine::stores::read::{Found, OpenOptions, Reader, Source, There, Walk};

/// A path of the store.
pub(super) struct MemorySource {
    pub store: Memory,
    pub top: Vec<u8>,
    pub is_directory: bool,
}

/// The time of a change.
fn moment(version: u64) -> Time {
    Time::new(i64::try_from(version).unwrap_or(i64::MAX), 0)
}

fn known_by(version: u64) -> Fingerprint {
    let mut fingerprint = [0; 16];
    fingerprint[..8].copy_from_slice(&version.to_le_bytes());
    fingerprint
}

fn vanished() -> Failure {
    Failure::new(ErrorCode::SourceVanished, Side::Source, "vanished after it was listed")
}

fn changed() -> Failure {
    Failure::new(ErrorCode::SourceChanged, Side::Source, "changed after it was listed")
}

impl MemorySource {
    fn node<'a>(&self, state: &'a State, path: &[u8]) -> Option<&'a StoredItem> {
        state.nodes.get(&below(&self.top, path))
    }

    fn scanned(walk: &Walk<'_>, path: &[u8], node: &StoredItem) -> ScannedItem {
        let is_file = node.kind == ItemKind::File;
        ScannedItem {
            size: is_file.then(|| node.size()),
            attributes: node.attributes.clone(),
            changed: Some(moment(node.version)),
            fingerprint: (node.kind != ItemKind::Directory).then(|| known_by(node.version)),
            ..walk.item(path, node.kind)
        }
    }

    /// The part of a path below the top.
    fn path_below<'a>(&self, full: &'a [u8]) -> Option<&'a [u8]> {
        within(full, &self.top)
    }
}

impl Source for MemorySource {
    fn walks_in_order(&self) -> bool {
        false
    }

    fn filters(&self) -> bool {
        false
    }

    fn is_directory(&self) -> bool {
        self.is_directory
    }

    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool) {
        let mut found = Vec::new();
        let state = self.store.lock();
        if self.top.is_empty() {
            found.push(ScannedItem { attributes: plain_directory(), ..walk.item(b"", ItemKind::Directory) });
        }
        for (full, node) in &state.nodes {
            let Some(path) = self.path_below(full) else { continue };
            let covers = walk.covers(path);
            if covers == Selected::Wanted || (covers == Selected::Above && node.kind == ItemKind::Directory) {
                found.push(Self::scanned(walk, path, node));
            }
        }
        drop(state);
        let _ = found.into_iter().all(|item| each(Found::Item(item)));
    }

    fn look_again(&self, item: &ScannedItem) -> Result<ScannedItem, Failure> {
        let walk = Walk::plain(item.root);
        let state = self.store.lock();
        let node = self.node(&state, &item.path).ok_or_else(vanished)?;
        if node.kind == item.kind { Ok(Self::scanned(&walk, &item.path, node)) } else { Err(changed()) }
    }

    fn find(&self, path: &[u8]) -> io::Result<There> {
        let state = self.store.lock();
        for above in above(path).chain([path]) {
            match self.node(&state, above) {
                Some(node) if node.kind != ItemKind::Directory => return Ok(There::Other(above.to_vec())),
                Some(node) if above == path => return Ok(There::Directory(node.attributes.clone())),
                Some(_) => {}
                None if above.is_empty() => return Ok(There::Directory(plain_directory())),
                None => return Ok(There::Nothing),
            }
        }
        Ok(There::Nothing)
    }

    fn link_target(&self, path: &[u8]) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
        let state = self.store.lock();
        let node = self.node(&state, path).ok_or_else(vanished)?;
        if node.kind != ItemKind::Symlink {
            return Err(Failure::new(ErrorCode::Internal, Side::Source, "a link outside a directory"));
        }
        Ok((node.content.to_vec(), Some(known_by(node.version))))
    }

    fn removes(&self) -> bool {
        true
    }

    fn remove(&self, item: &ScannedItem) -> Result<(), Failure> {
        let mut state = self.store.lock();
        let is_it = |node: &StoredItem| item.fingerprint == Some(known_by(node.version));
        match self.node(&state, &item.path).map(is_it) {
            Some(true) => drop(state.nodes.remove(&below(&self.top, &item.path))),
            Some(false) => return Err(changed()),
            None => {}
        }
        Ok(())
    }

    fn open(&self, item: &ScannedItem, options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure> {
        let state = self.store.lock();
        let node = self.node(&state, &item.path).ok_or_else(vanished)?;
        if node.kind != ItemKind::File {
            return Err(changed());
        }
        let (store, path) = (self.store.clone(), below(&self.top, &item.path));
        Ok(Box::new(MemoryReader { store, path, node: node.clone(), may_grow: options.may_grow }))
    }
}

struct MemoryReader {
    store: Memory,
    path: Vec<u8>,
    /// As it was when it was opened.
    node: StoredItem,
    may_grow: bool,
}

impl Reader for MemoryReader {
    fn size(&self) -> Option<u64> {
        Some(self.node.size())
    }

    fn attributes(&self, item: &ScannedItem) -> Attributes {
        let mtime = if self.may_grow { item.attributes.mtime } else { self.node.attributes.mtime };
        Attributes { mtime, ..self.node.attributes.clone() }
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        Some(known_by(self.node.version))
    }

    fn check_listed(&self, item: &ScannedItem) -> Result<(), Failure> {
        let Some(size) = item.size else { return Ok(()) };
        let is_same = if self.may_grow {
            self.node.size() >= size
        } else {
            item.changed.is_none_or(|changed| changed == moment(self.node.version)) && self.node.size() == size
        };
        if is_same { Ok(()) } else { Err(changed()) }
    }

    fn check_unchanged(&self) -> Result<(), Failure> {
        let state = self.store.lock();
        let is_same = state.nodes.get(&self.path).is_some_and(|now| match self.may_grow {
            true => now.size().cmp(&self.node.size()) != Ordering::Less,
            false => now.version == self.node.version && Arc::ptr_eq(&now.content, &self.node.content),
        });
        if is_same { Ok(()) } else { Err(changed()) }
    }

    /// Both hints are wanted, so that a test may see that they are told. Nothing is done about them.
    fn will_read(&self, _offset: u64, _length: u64) -> bool {
        true
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.node.content.get(start..start.saturating_add(out.len())).ok_or_else(changed)?;
        out.copy_from_slice(bytes);
        Ok(())
    }
}
