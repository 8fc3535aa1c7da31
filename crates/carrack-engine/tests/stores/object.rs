//! An object store as others have it: objects that are put whole or in parts, no rename, no directories, no times, no
//! links, no writing in the middle. This file and one registration make it a source and a destination.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use carrack_core::attributes::Attributes;
use carrack_core::digest::{BlockDigest, FileDigests, block_count, block_length};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::fingerprint::Fingerprint;
use carrack_core::report::ItemKind;
use carrack_core::request::{Digests, Durability, Existing};
use carrack_core::selection::Selected;
use carrack_core::transfer::ScannedItem;
use carrack_engine::stores::properties::{BlockBytes, Properties, WriteOptions, Writes};
use carrack_engine::stores::read::{Found, OpenOptions, Reader, Source, There, Walk};
use carrack_engine::stores::store::{Facts, Store, Wanted};
use carrack_engine::stores::write::{
    Closing, Destination, EarlierItem, Entry, NewFile, Opening, Part, SmallFile, Stored, UnkeptSoFar, block_digest,
    compare,
};

/// The whole service. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Objects(Arc<Mutex<Bucket>>);

/// Parts of an upload by their numbers, and what was computed over each, once that was told.
type Parts = BTreeMap<u64, (Vec<u8>, Option<(Digests, BlockDigest)>)>;

#[derive(Debug, Default)]
pub struct Bucket {
    pub objects: BTreeMap<Vec<u8>, Object>,
    /// Uploads that are not complete, by copy and key.
    pub uploads: BTreeMap<(u64, Vec<u8>), Parts>,
    /// Copies that have not come to their end, by the key of their marker: a small object each.
    copies: BTreeMap<[u8; 8], u64>,
    etags: u64,
}

/// Content and metadata.
#[derive(Clone, Debug)]
pub struct Object {
    pub content: Arc<Vec<u8>>,
    etag: u64,
    /// Which copy put it, from what, and what was verified.
    copied: (u64, Option<Fingerprint>, FileDigests),
}

const PART_BYTES: BlockBytes = BlockBytes { smallest: 64 << 10, largest: 1 << 30 };
const KEPT: fn() -> Attributes = || Attributes { mode: 0o644, ..Attributes::default() };

fn refuse<T>(code: ErrorCode, side: Side, why: &str) -> Result<T, Failure> {
    Err(Failure::new(code, side, why))
}

fn key(top: &[u8], path: &[u8]) -> Vec<u8> {
    [top, path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&b'/')
}

fn below<'a>(top: &[u8], full: &'a [u8]) -> Option<&'a [u8]> {
    if top.is_empty() { Some(full) } else { full.strip_prefix(top)?.strip_prefix(b"/") }
}

fn trimmed(path: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(path).trim_matches('/').as_bytes().to_vec()
}

impl Objects {
    pub fn lock(&self) -> MutexGuard<'_, Bucket> {
        self.0.lock().unwrap()
    }

    fn session(&self, path: &[u8], options: Option<WriteOptions>, copy: u64) -> Session {
        let (closing, unkept) = (Closing::default(), Arc::default());
        Session { store: self.clone(), top: trimmed(path), is_prefix: true, options, copy, closing, unkept }
    }
}

impl Store for Objects {
    fn properties(&self) -> Properties {
        let (keeps, atomic_publish, sync, resumes) = (true, true, true, true);
        let (writes, block_bytes) = (Writes::Blocks, Some(PART_BYTES));
        Properties { keeps, writes, atomic_publish, sync, resumes, block_bytes, ..Properties::NOTHING }
    }

    fn look(&self, path: &[u8]) -> Result<Option<Facts>, Failure> {
        let (path, bucket) = (trimmed(path), self.lock());
        if let Some(object) = bucket.objects.get(&path) {
            return Ok(Some(Facts { kind: ItemKind::File, size: object.content.len() as u64 }));
        }
        let is_prefix = bucket.objects.keys().any(|full| below(&path, full).is_some());
        Ok(is_prefix.then_some(Facts { kind: ItemKind::Directory, size: 0 }))
    }

    fn source(&self, path: &[u8]) -> Result<Box<dyn Source>, Failure> {
        let Some(facts) = self.look(path)? else { return refuse(ErrorCode::NotFound, Side::Source, "no such key") };
        Ok(Box::new(Session { is_prefix: facts.kind == ItemKind::Directory, ..self.session(path, None, 0) }))
    }

    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure> {
        let mut bucket = self.lock();
        bucket.etags += 1;
        let copy = match wanted.marker {
            Some(marker) if marker.anew => bucket.etags,
            Some(marker) => bucket.copies.get(&marker.key).copied().unwrap_or(bucket.etags),
            None => bucket.etags,
        };
        wanted.marker.map(|marker| bucket.copies.insert(marker.key, copy));
        Ok(Box::new(self.session(wanted.path, Some(wanted.options), copy)))
    }
}

/// What is below a prefix, or one object, read or written.
#[derive(Clone)]
struct Session {
    store: Objects,
    top: Vec<u8>,
    is_prefix: bool,
    options: Option<WriteOptions>,
    copy: u64,
    closing: Closing,
    unkept: Arc<Mutex<UnkeptSoFar>>,
}

fn etag(object: &Object) -> Fingerprint {
    u128::from(object.etag).to_le_bytes()
}

fn scanned(item: ScannedItem, object: &Object) -> ScannedItem {
    let (size, fingerprint) = (Some(object.content.len() as u64), Some(etag(object)));
    ScannedItem { size, fingerprint, attributes: KEPT(), ..item }
}

impl Session {
    fn get(&self, path: &[u8]) -> Result<Object, Failure> {
        let found = self.store.lock().objects.get(&key(&self.top, path)).cloned();
        found.map_or_else(|| refuse(ErrorCode::SourceVanished, Side::Source, "is no more"), Ok)
    }
}

impl Source for Session {
    fn is_directory(&self) -> bool {
        self.is_prefix
    }

    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool) {
        let objects = self.store.lock().objects.clone();
        for (full, object) in &objects {
            let path = if *full == self.top { Some(&b""[..]) } else { below(&self.top, full) };
            let Some(path) = path.filter(|path| self.is_prefix || path.is_empty()) else { continue };
            let is_wanted = walk.covers_without_directories(path) == Selected::Wanted;
            if is_wanted && !each(Found::Item(scanned(walk.item(path, ItemKind::File), object))) {
                return;
            }
        }
    }

    fn look_again(&self, item: &ScannedItem) -> Result<ScannedItem, Failure> {
        Ok(scanned(item.clone(), &self.get(&item.path)?))
    }

    fn find(&self, path: &[u8]) -> io::Result<There> {
        let ends = (0..path.len()).filter(|&end| path[end] == b'/').chain([path.len()]);
        let object = ends.map(|end| &path[..end]).find(|above| self.get(above).is_ok());
        let facts = self.store.look(&key(&self.top, path)).unwrap_or_default();
        Ok(match (object, facts) {
            (Some(above), _) => There::Other(above.to_vec()),
            (None, Some(_)) => There::Directory(KEPT()),
            (None, None) => There::Nothing,
        })
    }

    fn open(&self, item: &ScannedItem, _options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure> {
        Ok(Box::new(Got(self.clone(), item.path.clone(), self.get(&item.path)?)))
    }
}

/// An object as it was when it was opened.
struct Got(Session, Vec<u8>, Object);

impl Reader for Got {
    fn size(&self) -> Option<u64> {
        Some(self.2.content.len() as u64)
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        Some(etag(&self.2))
    }

    fn check_listed(&self, item: &ScannedItem) -> Result<(), Failure> {
        let is_same = item.fingerprint.is_none_or(|listed| listed == etag(&self.2));
        if is_same { Ok(()) } else { refuse(ErrorCode::SourceChanged, Side::Source, "was put again") }
    }

    fn check_unchanged(&self) -> Result<(), Failure> {
        let is_same = self.0.get(&self.1).is_ok_and(|now| now.etag == self.2.etag);
        if is_same { Ok(()) } else { refuse(ErrorCode::SourceChanged, Side::Source, "was put again") }
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        let bytes = self.2.content.get(offset as usize..offset as usize + out.len());
        let Some(bytes) = bytes else { return refuse(ErrorCode::SourceChanged, Side::Source, "ends before") };
        out.copy_from_slice(bytes);
        Ok(())
    }
}

impl Session {
    /// Whether what is there is to be kept. There are no times to compare.
    fn keeps(&self, path: &[u8], existing: Existing) -> bool {
        match (existing, self.get(path).is_ok()) {
            (Existing::Replace, _) => false,
            (Existing::Keep | Existing::Older, is_there) => is_there,
            (Existing::Only, is_there) => !is_there,
        }
    }

    /// Puts an object, in one step: `false` where one is there, or is not, against what was asked for.
    fn put(&self, new: &New, content: Vec<u8>, digests: FileDigests) -> Result<bool, Failure> {
        self.closing.check_open()?;
        if self.keeps(&new.path, new.options.existing) {
            return Ok(false);
        }
        self.unkept.lock().unwrap().note(&new.path, &new.attributes, &KEPT());
        let mut bucket = self.store.lock();
        bucket.etags += 1;
        let (content, etag) = (Arc::new(content), bucket.etags);
        let object = Object { content, etag, copied: (self.copy, new.source, digests) };
        bucket.objects.insert(key(&self.top, &new.path), object);
        Ok(true)
    }

    fn upload(&self, path: &[u8]) -> (u64, Vec<u8>) {
        (self.copy, key(&self.top, path))
    }
}

/// What is to become an object.
struct New {
    session: Session,
    path: Vec<u8>,
    attributes: Attributes,
    source: Option<Fingerprint>,
    options: WriteOptions,
    size: Option<u64>,
}

impl Destination for Session {
    fn properties(&self) -> Properties {
        self.store.properties()
    }

    fn known_count(&self, wanted: Digests) -> u64 {
        let is_known = |object: &&Object| object.copied.0 == self.copy && wanted.main.is_some();
        self.store.lock().objects.values().filter(is_known).count() as u64
    }

    fn known(&self, item: &EarlierItem<'_>, options: &WriteOptions, _stop: &dyn Fn() -> bool) -> Option<FileDigests> {
        let (copy, source, digests) = self.get(item.path).ok()?.copied;
        let is_same = copy == self.copy && source == item.fingerprint && item.kind == ItemKind::File;
        source.filter(|_| is_same).and(digests.covering(options.digests))
    }

    fn begin(&self, file: &NewFile<'_>, options: &WriteOptions, believe: bool) -> Result<Opening, Failure> {
        let NewFile { path, size, attributes, fingerprint, .. } = file;
        let (mode, mtime, others) = (None, None, &attributes.others);
        let (kind, fingerprint, block_bytes) = (ItemKind::File, *fingerprint, None);
        let earlier = EarlierItem { path, kind, fingerprint, mode, mtime, others, block_bytes };
        if let Some(digests) = self.known(&earlier, options, &|| false).filter(|_| believe) {
            return Ok(Opening::Present(digests));
        }
        if self.keeps(path, options.existing) {
            return Ok(Opening::Keep);
        }
        let mut bucket = self.store.lock();
        let parts = bucket.uploads.entry(self.upload(path)).or_default();
        let length = |index| size.map(|size| block_length(index, size, options.block_bytes));
        parts.retain(|&index, (part, proof)| {
            proof.is_some_and(|(kinds, _)| kinds == options.digests) && length(index) == Some(part.len() as u64)
        });
        let held: Vec<_> = parts.iter().filter_map(|(index, (_, proof))| Some((*index, (*proof)?.1))).collect();
        let (session, attributes) = (self.clone(), attributes.clone());
        let new = New { session, path: path.to_vec(), attributes, source: fingerprint, options: *options, size: *size };
        let part = Arc::new(Upload { new, blocks: Mutex::default() });
        Ok(if held.is_empty() { Opening::Fresh(part) } else { Opening::Resumed { part, held, doubtful: Vec::new() } })
    }

    fn write_small(&self, small: &SmallFile<'_>, options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure> {
        if self.keeps(small.path, options.existing) {
            return Ok(Stored::Kept);
        }
        let (session, path, attributes) = (self.clone(), small.path.to_vec(), small.attributes.clone());
        let new = New { session, path, attributes, source: small.fingerprint, options: *options, size: None };
        let expected = small.digests;
        Ok(Stored::Hidden(Box::new(Small { new, content: content.to_vec(), expected, read_back: small.read_back })))
    }

    /// What has been put is durable.
    fn sync_all(&self) -> Result<bool, Failure> {
        Ok(self.options.is_some_and(|options| options.durability != Durability::None))
    }

    fn close_in(&self, patience: Duration) {
        self.closing.close_in(patience);
    }

    fn unkept(&self) -> UnkeptSoFar {
        self.unkept.lock().unwrap().clone()
    }

    fn finish(&self, whole: bool) {
        if whole {
            self.store.lock().copies.retain(|_, copy| *copy != self.copy);
        }
    }
}

/// Grows by parts: a block is put whole when all of it is there.
struct Upload {
    new: New,
    blocks: Mutex<BTreeMap<u64, Vec<u8>>>,
}

impl Upload {
    fn index(&self, offset: u64) -> u64 {
        offset / u64::from(self.new.options.block_bytes)
    }

    fn with<T>(&self, with: impl FnOnce(&mut Parts) -> T) -> T {
        with(self.new.session.store.lock().uploads.entry(self.new.session.upload(&self.new.path)).or_default())
    }
}

impl Part for Upload {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let mut blocks = self.blocks.lock().unwrap();
        let block = blocks.entry(self.index(offset)).or_default();
        block.truncate((offset % u64::from(self.new.options.block_bytes)) as usize);
        block.extend_from_slice(bytes);
        Ok(())
    }

    fn end_block(&self, offset: u64, length: u64) -> Result<(), Failure> {
        let block = self.blocks.lock().unwrap().remove(&self.index(offset)).unwrap_or_default();
        if block.len() as u64 != length {
            return refuse(ErrorCode::Internal, Side::Destination, "a part is not whole");
        }
        self.with(|parts| parts.insert(self.index(offset), (block, None)));
        Ok(())
    }

    fn checkpoint(&self, blocks: &[(u64, BlockDigest)], read_back: bool) -> Result<Vec<u64>, Failure> {
        let (wanted, bytes) = (self.new.options.digests, self.new.options.block_bytes);
        let whole = self.new.size.is_some_and(|size| block_count(size, bytes) == 1);
        let mut lost = Vec::new();
        self.with(|parts| {
            for &(index, digest) in blocks {
                let same = |part: &[u8]| block_digest(part, index * u64::from(bytes), whole, wanted) == digest;
                match parts.get_mut(&index).filter(|(part, _)| !read_back || same(part)) {
                    Some((_, proof)) => *proof = Some((wanted, digest)),
                    None => lost.push(index),
                }
            }
        });
        Ok(lost)
    }

    fn unclaim(&self, index: u64) {
        self.with(|parts| parts.remove(&index));
    }

    fn verify(&self, _size: u64, expected: FileDigests) -> Result<(), Failure> {
        compare(&self.with(|parts| parts.values().flat_map(|(part, _)| part.clone()).collect::<Vec<_>>()), expected)
    }

    /// Completes the upload. Parts but the last have a smallest size.
    fn publish(&self, digests: FileDigests) -> Result<bool, Failure> {
        let parts = self.with(std::mem::take);
        self.remove();
        let is_whole = parts.keys().copied().eq(0..parts.len() as u64);
        if !is_whole || parts.values().rev().skip(1).any(|(part, _)| part.len() < PART_BYTES.smallest as usize) {
            return refuse(ErrorCode::Internal, Side::Destination, "a part is missing or too small");
        }
        let content = parts.into_values().flat_map(|(part, _)| part).collect();
        self.new.session.put(&self.new, content, digests)
    }

    fn remove(&self) {
        self.new.session.store.lock().uploads.remove(&self.new.session.upload(&self.new.path));
    }

    /// Parts with digests are taken up again.
    fn leave(&self) {
        if self.with(|parts| parts.values().all(|(_, proof)| proof.is_none())) {
            self.remove();
        }
    }
}

struct Small {
    new: New,
    content: Vec<u8>,
    expected: FileDigests,
    read_back: bool,
}

impl Entry for Small {
    fn verify(&self) -> Result<(), Failure> {
        if self.read_back { compare(&self.content, self.expected) } else { Ok(()) }
    }

    fn publish(&self) -> Result<bool, Failure> {
        self.new.session.put(&self.new, self.content.clone(), self.expected)
    }

    fn remove(&self) {}
}
