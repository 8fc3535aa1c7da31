//! Writing to a store in memory.

mod entry;
mod growing;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrack_core::attributes::{Attributes, CopyFacts, OtherAttributes, Time};
use carrack_core::digest::{BlockDigest, FileDigests, block_count, block_length};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::split_name;
use carrack_core::plan::compare::State as ItemState;
use carrack_core::report::ItemKind;
use carrack_core::request::{Digests, Durability, Existing};
use carrack_core::wire::patch::{ChunkHasher, TakenBlock};

use self::entry::MemoryEntry;
use self::growing::MemoryGrowing;
use super::{Key, Memory, Publication, State, StoredItem, UnfinishedFile, below};
use carrack_engine::stores::properties::{MarkerRequest, Properties, WriteOptions};
use carrack_engine::stores::workers::MetadataWorkers;
use carrack_engine::stores::write::{
    Begun, Closing, Destination, EarlierItem, NewDirectory, NewFile, Opening, Part, SmallFile, StandingItem, Stored,
    UnkeptSoFar, block_digest, compare,
};
use carrack_engine::sync::lock;

/// A session that writes.
pub(super) struct MemoryDestination(Arc<MemorySession>);

struct MemorySession {
    store: Memory,
    top: Vec<u8>,
    key: Option<Key>,
    durability: Durability,
    unkept: Mutex<UnkeptSoFar>,
    closing: Closing,
    /// Whether the contents of entries have been synced that wait for it.
    unsynced: Mutex<Vec<Arc<AtomicBool>>>,
}

/// What is to be published, but for its content.
#[derive(Clone)]
struct Hidden {
    session: Arc<MemorySession>,
    path: Vec<u8>,
    kind: ItemKind,
    attributes: Attributes,
    source: Option<super::Fingerprint>,
    existing: Existing,
    /// It has been published or removed.
    is_over: Arc<AtomicBool>,
}

impl MemorySession {
    fn full(&self, path: &[u8]) -> Vec<u8> {
        below(&self.top, path)
    }

    /// Attributes as they are kept; and what is not, is noted.
    fn keep(&self, path: &[u8], wanted: &Attributes) -> Attributes {
        let mut kept = wanted.clone();
        kept.mode &= 0o777;
        kept.mtime = wanted.mtime.map(|time| self.store.kept_time(time));
        // Attributes of other kinds are not known here.
        kept.others = OtherAttributes::default();
        lock(&self.unkept).note(path, wanted, &kept);
        kept
    }

    /// Whether an item may take the place of what stands at its name: `false` when that is to be kept.
    fn may_replace(
        &self,
        state: &State,
        path: &[u8],
        mtime: Option<Time>,
        existing: Existing,
    ) -> Result<bool, Failure> {
        let there = state.nodes.get(&self.full(path));
        if there.is_some_and(|node| node.kind == ItemKind::Directory) {
            return Err(
                Failure::new(ErrorCode::IsADirectory, Side::Destination, "a directory stands there").at_path(path)
            );
        }
        Ok(match (existing, there) {
            (Existing::Keep, Some(_)) | (Existing::Only, None) => false,
            (Existing::Older, Some(node)) => mtime.is_none_or(|mtime| Some(mtime) >= node.attributes.mtime),
            _ => true,
        })
    }

    fn hide(self: &Arc<Self>, state: &mut State, new: &SmallFile<'_>, kind: ItemKind, existing: Existing) -> Hidden {
        state.hidden += 1;
        Hidden {
            session: Arc::clone(self),
            path: new.path.to_vec(),
            kind,
            attributes: new.attributes.clone(),
            source: new.fingerprint,
            existing,
            is_over: Arc::default(),
        }
    }
}

impl Hidden {
    /// Whether this is the first end of it.
    fn end(&self, state: &mut State) -> bool {
        let is_first = !self.is_over.swap(true, Ordering::Relaxed);
        state.hidden = state.hidden.saturating_sub(u64::from(is_first));
        is_first
    }

    fn publish(&self, content: Vec<u8>, is_synced: bool, digests: FileDigests) -> Result<bool, Failure> {
        let session = &self.session;
        let mut state = session.store.lock();
        if !self.end(&mut state) {
            return Err(Failure::new(ErrorCode::Internal, Side::Destination, "a name is given twice"));
        }
        session.closing.check_open()?;
        if !session.may_replace(&state, &self.path, self.attributes.mtime, self.existing)? {
            return Ok(false);
        }
        let attributes = session.keep(&self.path, &self.attributes);
        let published = session.key.zip(self.source).map(|(key, source)| Publication {
            key,
            source,
            digests,
            version: 0,
            is_written_down: false,
        });
        let node =
            StoredItem { kind: self.kind, content: Arc::new(content), is_synced, attributes, version: 0, published };
        state.put(&session.full(&self.path), node)?;
        if session.durability == Durability::Each {
            state.durable = state.nodes.clone();
        }
        Ok(true)
    }

    fn remove(&self) {
        self.end(&mut self.session.store.lock());
    }
}

impl MemoryDestination {
    pub fn new(store: Memory, top: Vec<u8>, marker: Option<MarkerRequest>, options: WriteOptions) -> Self {
        let key = marker.map(|marker| marker.key);
        if let Some(marker) = marker.filter(|marker| marker.anew) {
            store.lock().forget(marker.key);
        }
        Self(Arc::new(MemorySession {
            store,
            top,
            key,
            durability: options.durability,
            unkept: Mutex::default(),
            closing: Closing::default(),
            unsynced: Mutex::default(),
        }))
    }

    /// An entry that waits for its name.
    fn waiting(&self, hidden: Hidden, small: &SmallFile<'_>, content: Vec<u8>) -> Stored {
        let is_synced = Arc::new(AtomicBool::new(self.0.durability == Durability::Each));
        if self.0.durability == Durability::Group {
            lock(&self.0.unsynced).push(Arc::clone(&is_synced));
        }
        let (digests, read_back) = (small.digests, small.read_back);
        Stored::Hidden(Box::new(MemoryEntry { hidden, content, is_synced, digests, read_back }))
    }
}

impl State {
    /// Of a session's key nothing is known any more.
    fn forget(&mut self, key: Key) {
        self.left.retain(|(of, _), _| *of != key);
        let published = self.nodes.values_mut().map(|node| &mut node.published);
        published
            .filter(|published| published.as_ref().is_some_and(|one| one.key == key))
            .for_each(|published| *published = None);
    }
}

fn item_state(node: &StoredItem) -> ItemState {
    let size = if node.kind == ItemKind::File { node.content.len() as u64 } else { 0 };
    ItemState { kind: node.kind, size, mtime: node.attributes.mtime }
}

impl Destination for MemoryDestination {
    fn properties(&self) -> Properties {
        Properties { resumes: self.0.key.is_some(), ..self.0.store.properties }
    }

    fn known_count(&self, wanted: Digests) -> u64 {
        let Some(key) = self.0.key.filter(|_| wanted.main.is_some()) else { return 0 };
        let state = self.0.store.lock();
        let is_known = |one: &Publication| one.key == key && one.is_written_down;
        state.nodes.values().filter_map(|node| node.published.as_ref()).filter(|one| is_known(one)).count() as u64
    }

    fn known(&self, item: &EarlierItem<'_>, options: &WriteOptions, _stop: &dyn Fn() -> bool) -> Option<FileDigests> {
        let wanted = if item.kind == ItemKind::Symlink { Digests::NONE } else { options.digests };
        options.digests.main?;
        let state = self.0.store.lock();
        let node = state.nodes.get(&self.0.full(item.path)).filter(|node| node.kind == item.kind)?;
        let published = node.published.as_ref().filter(|one| one.is_written_down && one.version == node.version)?;
        if Some(published.key) != self.0.key || Some(published.source) != item.fingerprint {
            return None;
        }
        let none = wanted.main.is_none().then(FileDigests::default);
        let digests = none.or_else(|| published.digests.covering(wanted))?;
        // What it does not have of what it is to have is told in this session, too.
        let to_have = Attributes {
            mode: item.mode.unwrap_or(node.attributes.mode),
            mtime: item.mtime,
            others: item.others.clone(),
        };
        lock(&self.0.unkept).note(item.path, &to_have, &node.attributes);
        Some(digests)
    }

    fn begin(&self, file: &NewFile<'_>, options: &WriteOptions, believe: bool) -> Result<Opening, Failure> {
        let NewFile { path, size, attributes, fingerprint, .. } = file;
        if believe && let Some(digests) = self.known(&file.as_earlier(options), options, &|| false) {
            return Ok(Opening::Present(digests));
        }
        let mut state = self.0.store.lock();
        if !self.0.may_replace(&state, path, attributes.mtime, options.existing)? {
            return Ok(Opening::Keep);
        }
        let new = SmallFile {
            path,
            attributes: attributes.clone(),
            fingerprint: *fingerprint,
            digests: FileDigests::default(),
            read_back: false,
        };
        let hidden = self.0.hide(&mut state, &new, ItemKind::File, options.existing);
        let left = self.0.key.map(|key| (key, self.0.full(path)));
        let fits = |left: &UnfinishedFile| {
            Some(left.size) == *size && left.block_bytes == options.block_bytes && options.digests.main.is_some()
        };
        let found = left.as_ref().and_then(|name| state.left.remove(name)).filter(fits);
        let fresh = UnfinishedFile {
            size: size.unwrap_or(0),
            block_bytes: options.block_bytes,
            digests: options.digests,
            blocks: BTreeMap::new(),
        };
        let found = found.filter(|found| !found.blocks.is_empty());
        let node = state.nodes.get(&self.0.full(path)).filter(|node| node.kind == ItemKind::File);
        let takes_over = options.takes_over && options.digests.main.is_some() && size.is_some();
        let old = node.filter(|_| takes_over).map_or_else(Arc::default, |node| Arc::clone(&node.content));
        let blocks = block_count(size.unwrap_or(0), options.block_bytes);
        let end = |index: u64| {
            index * u64::from(options.block_bytes) + block_length(index, size.unwrap_or(0), options.block_bytes)
        };
        let standing = 0..(0..blocks).take_while(|&index| end(index) <= old.len() as u64).count() as u64;
        let Some(found) = found else {
            let left = left.filter(|_| size.is_some()).map(|name| (name, fresh));
            let content = vec![0; if standing.is_empty() { 0 } else { size.unwrap_or(0) as usize }];
            let part = Arc::new(MemoryPart { old, ..MemoryPart::new(hidden, left, content, *options) });
            if standing.is_empty() {
                return Ok(Opening::Fresh(part));
            }
            return Ok(Opening::Resumed { part, held: Vec::new(), doubtful: Vec::new(), standing });
        };
        let mut content = vec![0; found.size as usize];
        for (index, (bytes, _)) in &found.blocks {
            let start = (index * u64::from(found.block_bytes)) as usize;
            content[start..start + bytes.len()].copy_from_slice(bytes);
        }
        let claims: Vec<_> = found.blocks.iter().map(|(index, (_, digest))| (*index, *digest)).collect();
        let is_comparable = found.digests == options.digests;
        let (held, doubtful) = match is_comparable {
            true => (claims, Vec::new()),
            false => (Vec::new(), claims.into_iter().map(|(index, _)| index).collect()),
        };
        if let (Some(name), true) = (&left, is_comparable) {
            state.left.insert(name.clone(), found);
        }
        let part = MemoryPart::new(hidden, left.map(|name| (name, fresh)), content, *options);
        Ok(Opening::Resumed { part: Arc::new(MemoryPart { old, ..part }), held, doubtful, standing })
    }

    fn standing(
        &self,
        paths: &[&[u8]],
        _workers: Option<&MetadataWorkers>,
    ) -> Vec<Result<Option<StandingItem>, Failure>> {
        let state = self.0.store.lock();
        let standing = |node: &StoredItem| StandingItem {
            is_mixture: false,
            lacks: Default::default(),
            state: item_state(node),
            facts: CopyFacts { owner: 0, group: 0, mode: node.attributes.mode },
            file: None,
            folds: false,
            is_shared: false,
        };
        paths.iter().map(|path| Ok(state.nodes.get(&self.0.full(path)).map(standing))).collect()
    }

    fn first_bytes(&self, path: &[u8], most: u64) -> Result<Option<Vec<u8>>, Failure> {
        let state = self.0.store.lock();
        let node = state.nodes.get(&self.0.full(path)).filter(|node| node.kind == ItemKind::File);
        Ok(node.map(|node| node.content[..node.content.len().min(most as usize)].to_vec()))
    }

    fn content(
        &self,
        path: &[u8],
        _threads: usize,
        _stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<[u8; 32]>, Failure> {
        let state = self.0.store.lock();
        let node = state.nodes.get(&self.0.full(path)).filter(|node| node.kind == ItemKind::File);
        Ok(node.and_then(|node| block_digest(&node.content, 0, true, Digests::BLAKE3).as_file(Digests::BLAKE3).blake3))
    }

    fn set_attributes(&self, path: &[u8], attributes: &Attributes, _of: Option<(u64, u64)>) -> Result<bool, Failure> {
        let mut state = self.0.store.lock();
        let kept = self.0.keep(path, attributes);
        let node = state.nodes.get_mut(&self.0.full(path));
        let absent = || Failure::new(ErrorCode::NotFound, Side::Destination, "is not there").at_path(path);
        node.map(|node| std::mem::replace(&mut node.attributes, kept.clone()) != kept).ok_or_else(absent)
    }

    fn list(&self, directory: &[u8], each: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, Failure> {
        let top = self.0.full(directory);
        let names: Vec<Vec<u8>> = {
            let state = self.0.store.lock();
            let inside = state.nodes.keys().map(|path| split_name(path)).filter(|(parent, _)| *parent == top);
            inside.map(|(_, name)| name.to_vec()).collect()
        };
        Ok(names.iter().all(|name| each(name)))
    }

    fn delete(&self, path: &[u8], kind: ItemKind) -> Result<(), Failure> {
        let full = self.0.full(path);
        let mut state = self.0.store.lock();
        let is_full = state.nodes.keys().any(|other| split_name(other).0 == full);
        if kind == ItemKind::Directory && is_full {
            return Err(Failure::new(ErrorCode::NotEmpty, Side::Destination, "is not empty").at_path(path));
        }
        state.nodes.remove(&full);
        Ok(())
    }

    fn write_small(&self, small: &SmallFile<'_>, options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure> {
        let mut state = self.0.store.lock();
        if !self.0.may_replace(&state, small.path, small.attributes.mtime, options.existing)? {
            return Ok(Stored::Kept);
        }
        let hidden = self.0.hide(&mut state, small, ItemKind::File, options.existing);
        drop(state);
        Ok(self.waiting(hidden, small, content.to_vec()))
    }

    fn begin_small(&self, small: &SmallFile<'_>, options: &WriteOptions, _size: u64) -> Result<Begun, Failure> {
        let mut state = self.0.store.lock();
        if !self.0.may_replace(&state, small.path, small.attributes.mtime, options.existing)? {
            return Ok(Begun::Kept);
        }
        let hidden = self.0.hide(&mut state, small, ItemKind::File, options.existing);
        let destination = Self(Arc::clone(&self.0));
        Ok(Begun::Growing(Box::new(MemoryGrowing { destination, hidden: Some(hidden), content: Vec::new() })))
    }

    fn write_link(&self, small: &SmallFile<'_>, options: &WriteOptions, target: &[u8]) -> Result<Stored, Failure> {
        let mut state = self.0.store.lock();
        let there = state.nodes.get(&self.0.full(small.path));
        if options.compares && there.is_some_and(|node| node.kind == ItemKind::Symlink && **node.content == *target) {
            return Ok(Stored::Same);
        }
        if !self.0.may_replace(&state, small.path, small.attributes.mtime, options.existing)? {
            return Ok(Stored::Kept);
        }
        let attributes = Attributes { mode: 0o777, ..small.attributes.clone() };
        let small = SmallFile { path: small.path, attributes, read_back: false, ..*small };
        let hidden = self.0.hide(&mut state, &small, ItemKind::Symlink, options.existing);
        drop(state);
        Ok(self.waiting(hidden, &small, target.to_vec()))
    }

    fn make_directory(&self, path: &[u8]) -> Result<(), Failure> {
        self.0.store.lock().make_directory(&self.0.full(path))
    }

    fn sync_group(&self) -> Result<(), Failure> {
        lock(&self.0.unsynced).drain(..).for_each(|is_synced| is_synced.store(true, Ordering::Relaxed));
        Ok(())
    }

    fn written_down(&self) {
        let mut state = self.0.store.lock();
        let published = state.nodes.values_mut().filter_map(|node| node.published.as_mut());
        published.filter(|one| Some(one.key) == self.0.key).for_each(|one| one.is_written_down = true);
    }

    fn apply_directories(&self, list: &[NewDirectory]) -> Vec<(Vec<u8>, Failure)> {
        let mut state = self.0.store.lock();
        let mut failed = Vec::new();
        for NewDirectory { path, attributes } in list {
            let full = self.0.full(path);
            let kept = self.0.keep(path, attributes);
            match state.nodes.get_mut(&full) {
                Some(node) if node.kind == ItemKind::Directory => node.attributes = kept,
                // The store's own root has none.
                _ if full.is_empty() => {}
                _ => {
                    failed.push((path.clone(), Failure::new(ErrorCode::NotFound, Side::Destination, "is no directory")))
                }
            }
        }
        failed
    }

    fn sync_all(&self) -> Result<bool, Failure> {
        if self.0.durability == Durability::None {
            return Ok(false);
        }
        let mut state = self.0.store.lock();
        state.nodes.values_mut().for_each(|node| node.is_synced = true);
        state.durable = state.nodes.clone();
        Ok(true)
    }

    fn close_in(&self, patience: Duration) {
        self.0.closing.close_in(patience);
    }

    fn unkept(&self) -> UnkeptSoFar {
        lock(&self.0.unkept).clone()
    }

    fn finish(&self, whole: bool) {
        if let (true, Some(key)) = (whole, self.0.key) {
            self.0.store.lock().forget(key);
        }
    }
}

struct MemoryPart {
    hidden: Hidden,
    /// What a later session finds: under which name, and what it starts as.
    left: Option<((Key, Vec<u8>), UnfinishedFile)>,
    content: Mutex<Vec<u8>>,
    options: WriteOptions,
    is_synced: AtomicBool,
    /// What stands at the name, where something of it is to be taken over.
    old: Arc<Vec<u8>>,
}

impl MemoryPart {
    fn new(
        hidden: Hidden,
        left: Option<((Key, Vec<u8>), UnfinishedFile)>,
        content: Vec<u8>,
        options: WriteOptions,
    ) -> Self {
        Self {
            hidden,
            left,
            content: Mutex::new(content),
            options,
            is_synced: AtomicBool::new(false),
            old: Arc::default(),
        }
    }

    fn range(&self, index: u64, size: u64) -> std::ops::Range<usize> {
        let start = index * u64::from(self.options.block_bytes);
        let length = block_length(index, size, self.options.block_bytes);
        start as usize..(start + length) as usize
    }

    /// A block as it is stored.
    fn stored(&self, index: u64) -> Option<(Vec<u8>, BlockDigest)> {
        let content = lock(&self.content);
        let size = self.left.as_ref().map_or(content.len() as u64, |(_, left)| left.size);
        let range = self.range(index, size);
        let bytes = content.get(range.clone())?.to_vec();
        let whole = block_count(size, self.options.block_bytes) == 1;
        let digest = block_digest(&bytes, range.start as u64, whole, self.options.digests);
        Some((bytes, digest))
    }

    fn forget(&self) {
        if let Some((name, _)) = &self.left {
            self.hidden.session.store.lock().left.remove(name);
        }
    }
}

impl Part for MemoryPart {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let mut content = lock(&self.content);
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn checkpoint(&self, blocks: &[(u64, BlockDigest)], read_back: bool) -> Result<Vec<u64>, Failure> {
        let mut lost = Vec::new();
        for (index, digest) in blocks {
            let Some((bytes, _)) = self.stored(*index).filter(|(_, found)| !read_back || found == digest) else {
                lost.push(*index);
                continue;
            };
            if let Some((name, fresh)) = &self.left {
                let mut state = self.hidden.session.store.lock();
                let left = state.left.entry(name.clone()).or_insert_with(|| fresh.clone());
                left.blocks.insert(*index, (bytes, *digest));
            }
        }
        Ok(lost)
    }

    fn unclaim(&self, index: u64) {
        if let Some((name, _)) = &self.left
            && let Some(left) = self.hidden.session.store.lock().left.get_mut(name)
        {
            left.blocks.remove(&index);
        }
    }

    fn take_over(&self, standing: &[u64]) -> Vec<TakenBlock> {
        let take = |&index: &u64| {
            let range = self.range(index, lock(&self.content).len() as u64);
            lock(&self.content)[range.clone()].copy_from_slice(self.old.get(range.clone())?);
            let mut chunks = ChunkHasher::new(lock(&self.content).len() as u64, self.options.block_bytes);
            chunks.update(&lock(&self.content)[range]);
            self.stored(index).map(|(_, digest)| TakenBlock { index, digest, chunks: chunks.finish() })
        };
        standing.iter().filter_map(take).collect()
    }

    fn read(&self, offset: u64, slice: &mut [u8]) -> Result<usize, Failure> {
        let content = lock(&self.content);
        let there = content.get(offset as usize..).unwrap_or_default();
        let read = there.len().min(slice.len());
        slice[..read].copy_from_slice(&there[..read]);
        Ok(read)
    }

    fn rehash(&self, doubtful: &[u64]) -> Vec<(u64, BlockDigest)> {
        let found: Vec<_> = doubtful.iter().filter_map(|&index| Some((index, self.stored(index)?.1))).collect();
        let _ = self.checkpoint(&found, false);
        found
    }

    fn finish(&self, size: u64) -> Result<(), Failure> {
        lock(&self.content).resize(size as usize, 0);
        self.is_synced.store(self.options.durability != Durability::None, Ordering::Relaxed);
        Ok(())
    }

    fn verify(&self, _size: u64, expected: FileDigests) -> Result<(), Failure> {
        compare(&lock(&self.content), expected)
    }

    fn publish(&self, digests: FileDigests) -> Result<bool, Failure> {
        let content = std::mem::take(&mut *lock(&self.content));
        let published = self.hidden.publish(content, self.is_synced.load(Ordering::Relaxed), digests);
        self.forget();
        published
    }

    fn remove(&self) {
        self.hidden.remove();
        self.forget();
    }

    /// Blocks that were made durable are there for the next session already.
    fn leave(&self) {
        self.hidden.remove();
    }
}
