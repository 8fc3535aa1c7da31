//! Writing objects: a small file is put whole, a large one grows as an upload, of which each block is a part.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrack_core::attributes::Attributes;
use carrack_core::digest::{BlockDigest, FileDigests, block_count};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::report::{ItemKind, Unfinished};
use carrack_core::request::{Digests, Durability, Existing};
use carrack_core::transfer::Fingerprint;
use carrack_core::transfer::marker::{Left, PartRecord, Published, PublishedItem, Record, TAKEN_BACK, published_key};

use super::journal::ObjectJournal;
use super::{Bucket, Overwrite, Put, Upload, Version, below, kept, properties};
use crate::error::failure;
use crate::storage::properties::{Properties, WriteOptions};
use crate::storage::store::Wanted;
use crate::storage::write::{
    Closing, Destination, EarlierItem, Entry, NewDirectory, NewFile, Opening, Part, SmallFile, Stored, UnkeptSoFar,
    block_digest, compare_pieces,
};
use crate::sync::lock;

/// A session that puts objects below a key.
pub(super) struct ObjectDestination(Arc<ObjectSession>);

struct ObjectSession {
    bucket: Arc<dyn Bucket>,
    top: Vec<u8>,
    durability: Durability,
    journal: Option<ObjectJournal>,
    closing: Closing,
    unkept: Mutex<UnkeptSoFar>,
}

/// What is to become an object, but for its content.
struct New {
    session: Arc<ObjectSession>,
    path: Vec<u8>,
    attributes: Attributes,
    source: Option<Fingerprint>,
    existing: Existing,
}

impl ObjectSession {
    fn key(&self, path: &[u8]) -> Vec<u8> {
        below(&self.top, path)
    }

    /// Whether what is there stays: there are no times to compare.
    fn keeps(&self, path: &[u8], existing: Existing) -> Result<bool, Failure> {
        Ok(match existing {
            Existing::Replace => false,
            Existing::Keep | Existing::Older => self.bucket.head(&self.key(path))?.is_some(),
            Existing::Only => self.bucket.head(&self.key(path))?.is_none(),
        })
    }

    fn known_by(&self, path: &[u8], source: Fingerprint, stored: Version) -> [u8; 16] {
        published_key(&PublishedItem { kind: ItemKind::File, path, source, stored })
    }
}

impl New {
    /// Puts it by `put`, and notes what it has become; `false` when what is there stays.
    fn publish(
        &self,
        digests: FileDigests,
        put: impl FnOnce(&[u8], Overwrite) -> Result<Put, Failure>,
    ) -> Result<bool, Failure> {
        let session = &self.session;
        session.closing.check_open()?;
        if session.keeps(&self.path, self.existing)? {
            return Ok(false);
        }
        let over = match self.existing {
            Existing::Replace | Existing::Only => Overwrite::Anything,
            Existing::Keep | Existing::Older => Overwrite::Nothing,
        };
        let Put::There(version) = put(&session.key(&self.path), over)? else { return Ok(false) };
        lock(&session.unkept).note(&self.path, &self.attributes, &kept());
        if let (Some(journal), Some(source), Some(_)) = (&session.journal, self.source, digests.main()) {
            journal.note_published(Published { key: session.known_by(&self.path, source, version), digests });
        }
        Ok(true)
    }
}

impl ObjectDestination {
    pub fn open(bucket: &Arc<dyn Bucket>, top: &[u8], wanted: &Wanted<'_>) -> Result<Self, Failure> {
        let durability = wanted.options.durability;
        let journal = wanted.marker.map(|request| ObjectJournal::open(bucket, top, request, durability)).transpose()?;
        let (bucket, top) = (Arc::clone(bucket), top.to_vec());
        let (closing, unkept) = (Closing::default(), Mutex::default());
        Ok(Self(Arc::new(ObjectSession { bucket, top, durability, journal, closing, unkept })))
    }

    fn new_object(
        &self,
        path: &[u8],
        attributes: &Attributes,
        source: Option<Fingerprint>,
        options: &WriteOptions,
    ) -> New {
        let (session, attributes) = (Arc::clone(&self.0), attributes.clone());
        New { session, path: path.to_vec(), attributes, source, existing: options.existing }
    }

    /// An upload with nothing in it.
    fn upload(&self, new: New, size: Option<u64>, options: &WriteOptions) -> Result<ObjectPart, Failure> {
        let name = self.0.bucket.begin_upload(&self.0.key(&new.path))?;
        let part = ObjectPart::new(new, name, size, *options);
        part.write_down().inspect_err(|_| part.remove())?;
        Ok(part)
    }

    /// Goes on with the upload that an earlier session left, if that is in the same blocks of a file of this size.
    ///
    /// # Errors
    /// When nobody can say what is there of it: it stays for the next time.
    fn take_up(
        &self,
        new: New,
        file: &NewFile<'_>,
        options: &WriteOptions,
    ) -> Result<ControlFlow<Opening, New>, Failure> {
        let Some((journal, left)) =
            self.0.journal.as_ref().and_then(|journal| Some((journal, journal.take_left(file.path)?)))
        else {
            return Ok(ControlFlow::Continue(new));
        };
        let Left { part: PartRecord { number, part_name, size, block_bytes, digests, .. }, .. } = &left;
        let fits = file.size == Some(*size) && *block_bytes == options.block_bytes && options.digests.main.is_some();
        let part = ObjectPart::new(new, part_name.clone(), file.size, *options);
        part.number.store(*number, Ordering::Relaxed);
        let there = match self.0.bucket.parts(part.upload()) {
            // It may be told another time. Who may never know begins anew.
            Err(why) if fits && why.code.may_pass() => {
                journal.put_back(left);
                return Err(why);
            }
            there => there.unwrap_or_default(),
        };
        let (is_same, mut claims) = (*digests == options.digests, left.claims());
        claims.retain(|claim| there.contains_key(&claim.index));
        let versions = claims.iter().filter_map(|claim| Some((claim.index, *there.get(&claim.index)?))).collect();
        // A call that hung in a session before the one that wrote the claim may have put its part since.
        let is_proven = is_same && left.identity == Some(identity(&versions));
        *lock(&part.parts) = there;
        // Digests of other kinds are made anew, under another number.
        if !fits || claims.is_empty() || (!is_same && part.write_down().is_err()) {
            part.remove();
            return Ok(ControlFlow::Continue(part.into_new()));
        }
        let (mut held, mut doubtful) = (Vec::new(), Vec::new());
        part.has_claims.store(is_same, Ordering::Relaxed);
        if is_proven {
            *lock(&part.claimed) = versions;
            held = claims.iter().map(|claim| (claim.index, claim.digest)).collect();
        } else {
            doubtful = claims.iter().map(|claim| claim.index).collect();
        }
        Ok(ControlFlow::Break(Opening::Resumed { part: Arc::new(part), held, doubtful, standing: 0..0 }))
    }
}

impl Destination for ObjectDestination {
    fn properties(&self) -> Properties {
        Properties { resumes: self.0.journal.is_some(), ..properties(&*self.0.bucket) }
    }

    fn known_count(&self, wanted: Digests) -> u64 {
        self.0.journal.as_ref().filter(|_| wanted.main.is_some()).map_or(0, ObjectJournal::known_count)
    }

    fn known(&self, item: &EarlierItem<'_>, options: &WriteOptions, _stop: &dyn Fn() -> bool) -> Option<FileDigests> {
        let (journal, source) =
            self.0.journal.as_ref().zip(item.fingerprint).filter(|_| item.kind == ItemKind::File)?;
        if journal.known_count() == 0 {
            return None;
        }
        let stored = self.0.bucket.head(&self.0.key(item.path)).ok()??;
        let found = journal.known(&self.0.known_by(item.path, source, stored.version), options.digests)?;
        let wanted =
            Attributes { mode: item.mode.unwrap_or(kept().mode), mtime: item.mtime, others: item.others.clone() };
        lock(&self.0.unkept).note(item.path, &wanted, &kept());
        Some(found)
    }

    fn begin(&self, file: &NewFile<'_>, options: &WriteOptions, believe: bool) -> Result<Opening, Failure> {
        if believe && let Some(digests) = self.known(&file.as_earlier(options), options, &|| false) {
            return Ok(Opening::Present(digests));
        }
        if self.0.keeps(file.path, options.existing)? {
            return Ok(Opening::Keep);
        }
        let new = self.new_object(file.path, &file.attributes, file.fingerprint, options);
        match self.take_up(new, file, options)? {
            ControlFlow::Break(resumed) => Ok(resumed),
            ControlFlow::Continue(new) => Ok(Opening::Fresh(Arc::new(self.upload(new, file.size, options)?))),
        }
    }

    /// Held in memory until it is put; what is to be read back before is a part of an upload.
    fn write_small(&self, small: &SmallFile<'_>, options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure> {
        if self.0.keeps(small.path, options.existing)? {
            return Ok(Stored::Kept);
        }
        let (digests, size) = (small.digests, content.len() as u64);
        let new = self.new_object(small.path, &small.attributes, small.fingerprint, options);
        if !small.read_back {
            return Ok(Stored::Hidden(Box::new(Waiting { new, content: content.to_vec(), digests })));
        }
        let upload = self.upload(new, None, options)?;
        // Parts of the size that they are read back by.
        let mut blocks = (0..).zip(content.chunks(options.block_bytes as usize));
        let put = blocks.try_for_each(|(index, block)| upload.put_block(index, block));
        put.and_then(|()| upload.finish(size)).inspect_err(|_| upload.remove())?;
        Ok(Stored::Hidden(Box::new(Uploaded { upload, size, digests })))
    }

    fn written_down(&self) {
        self.0.journal.iter().for_each(ObjectJournal::flush);
    }

    /// They are not there, and so have nothing of what they should.
    fn apply_directories(&self, list: &[NewDirectory]) -> Vec<(Vec<u8>, Failure)> {
        let mut unkept = lock(&self.0.unkept);
        for NewDirectory { path, attributes } in list {
            unkept.note(path, attributes, &Attributes { mode: attributes.mode, ..Attributes::default() });
        }
        Vec::new()
    }

    /// What was put is durable.
    fn sync_all(&self) -> Result<bool, Failure> {
        Ok(self.0.durability != Durability::None)
    }

    fn close_in(&self, patience: Duration) {
        self.0.closing.close_in(patience);
    }

    fn unkept(&self) -> UnkeptSoFar {
        lock(&self.0.unkept).clone()
    }

    fn finish(&self, whole: bool) {
        let is_over = |journal: &&ObjectJournal| whole && journal.unfinished().count == 0;
        self.0.journal.iter().filter(is_over).for_each(ObjectJournal::remove_all);
    }

    fn unfinished(&self) -> Unfinished {
        self.0.journal.as_ref().map(ObjectJournal::unfinished).unwrap_or_default()
    }
}

/// A large file, which grows by blocks.
struct ObjectPart {
    new: New,
    key: Vec<u8>,
    /// Of the upload.
    name: Vec<u8>,
    size: Option<u64>,
    options: WriteOptions,
    /// Its number in the journal; 0 where it is not told of there.
    number: AtomicU64,
    /// The journal says of blocks what they are.
    has_claims: AtomicBool,
    /// Nothing of it may be relied on: what the journal says may not be so.
    is_void: AtomicBool,
    /// Blocks that are being written.
    blocks: Mutex<BTreeMap<u64, Vec<u8>>>,
    /// What each part is known by that has been put.
    parts: Mutex<BTreeMap<u64, Version>>,
    /// Blocks that the journal claims, and what the part of each was known by then. Held while the journal is written:
    /// each identity there is that of all claims before it.
    claimed: Mutex<BTreeMap<u64, Version>>,
    /// Bytes of the whole file, once that is there.
    whole: AtomicU64,
}

impl ObjectPart {
    fn new(new: New, name: Vec<u8>, size: Option<u64>, options: WriteOptions) -> Self {
        let key = new.session.key(&new.path);
        let (number, has_claims, is_void) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
        let (blocks, parts, claimed) = (Mutex::default(), Mutex::default(), Mutex::default());
        let whole = AtomicU64::new(0);
        Self { new, key, name, size, options, number, has_claims, is_void, blocks, parts, claimed, whole }
    }

    fn into_new(self) -> New {
        self.new
    }

    fn bucket(&self) -> &dyn Bucket {
        &*self.new.session.bucket
    }

    fn upload(&self) -> Upload<'_> {
        Upload { key: &self.key, name: &self.name }
    }

    fn index(&self, offset: u64) -> u64 {
        offset / u64::from(self.options.block_bytes)
    }

    /// The journal, and the number by which it knows this.
    fn written_down(&self) -> Option<(&ObjectJournal, u64)> {
        let number = self.number.load(Ordering::Relaxed);
        self.new.session.journal.as_ref().filter(|_| number > 0).map(|journal| (journal, number))
    }

    /// Has the journal tell of it, in the place of what that says already. A source that ends when it ends cannot be
    /// taken up again.
    fn write_down(&self) -> Result<(), Failure> {
        let Some((journal, size)) = self.new.session.journal.as_ref().zip(self.size) else { return Ok(()) };
        self.drop_number();
        let number = journal.begin(PartRecord {
            number: 0,
            path: self.new.path.clone(),
            part_name: self.name.clone(),
            size,
            block_bytes: self.options.block_bytes,
            digests: self.options.digests,
        })?;
        self.number.store(number, Ordering::Relaxed);
        Ok(())
    }

    /// The journal tells of it no more. Where that fails, a later session finds an upload that is not there.
    fn drop_number(&self) {
        if let Some((journal, part)) = self.written_down() {
            let _ = journal.write(&[Record::Dropped { part }]);
            self.number.store(0, Ordering::Relaxed);
        }
    }

    fn put_block(&self, index: u64, content: &[u8]) -> Result<(), Failure> {
        if self.is_void.load(Ordering::Relaxed) {
            let message = "the journal could not be written: what it says of this file may not be so";
            return Err(failure(ErrorCode::InputOutput, Side::Destination, message));
        }
        let version = self.bucket().put_part(self.upload(), index, content)?;
        lock(&self.parts).insert(index, version);
        Ok(())
    }

    /// Has the journal claim these blocks, or take back what it claims; and say by what all parts are known that it
    /// claims then. `false` where it does not tell of this upload.
    fn claim(&self, blocks: &[(u64, BlockDigest)]) -> Result<bool, Failure> {
        let Some((journal, part)) = self.written_down() else { return Ok(false) };
        let mut claimed = lock(&self.claimed);
        let mut records = Vec::new();
        for &(first, digest) in blocks {
            let version = lock(&self.parts).get(&first).copied().filter(|_| digest.main != TAKEN_BACK);
            match version {
                Some(version) => claimed.insert(first, version),
                None => claimed.remove(&first),
            };
            records.push(Record::Blocks { part, first, digests: vec![digest] });
        }
        // Each of those takes back what was said before of the whole.
        records.push(Record::Left { part, identity: identity(&claimed) });
        journal.write(&records).map(|()| true)
    }

    /// A block as it is stored, and what it is.
    fn stored(&self, index: u64) -> Result<BlockDigest, Failure> {
        let content = self.bucket().get_part(self.upload(), index)?;
        let is_whole = self.size.is_some_and(|size| block_count(size, self.options.block_bytes) == 1);
        let offset = index * u64::from(self.options.block_bytes);
        Ok(block_digest(&content, offset, is_whole, self.options.digests))
    }

    /// What the parts of the whole file are known by.
    fn all_parts(&self) -> Result<Vec<Version>, Failure> {
        let parts = lock(&self.parts);
        let missing = || failure(ErrorCode::Internal, Side::Destination, "a block has not been put");
        let count = self.count(self.whole.load(Ordering::Relaxed));
        (0..count).map(|number| parts.get(&number).copied().ok_or_else(missing)).collect()
    }

    /// How many parts a file of so many bytes has. An empty one is no upload.
    fn count(&self, size: u64) -> u64 {
        size.div_ceil(u64::from(self.options.block_bytes))
    }
}

impl Part for ObjectPart {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let mut blocks = lock(&self.blocks);
        let block = blocks.entry(self.index(offset)).or_default();
        // Whatever comes again begins where it did.
        block.truncate((offset % u64::from(self.options.block_bytes)) as usize);
        block.extend_from_slice(bytes);
        Ok(())
    }

    fn end_block(&self, offset: u64, length: u64) -> Result<(), Failure> {
        let block = lock(&self.blocks).remove(&self.index(offset)).unwrap_or_default();
        if block.len() as u64 != length {
            return Err(failure(ErrorCode::Internal, Side::Destination, "a block has ended before all of it came"));
        }
        if length == 0 { Ok(()) } else { self.put_block(self.index(offset), &block) }
    }

    fn checkpoint(&self, blocks: &[(u64, BlockDigest)], read_back: bool) -> Result<Vec<u64>, Failure> {
        let (mut lost, mut good) = (Vec::new(), Vec::new());
        for &(index, digest) in blocks {
            if read_back && self.stored(index)? != digest {
                lost.push(index);
            } else {
                good.push((index, digest));
            }
        }
        if !good.is_empty() && self.claim(&good)? {
            self.has_claims.store(true, Ordering::Relaxed);
        }
        Ok(lost)
    }

    fn unclaim(&self, index: u64) {
        if self.claim(&[(index, BlockDigest { main: TAKEN_BACK, ..BlockDigest::default() })]).is_err() {
            self.is_void.store(true, Ordering::Relaxed);
        }
    }

    fn rehash(&self, doubtful: &[u64]) -> Vec<(u64, BlockDigest)> {
        let read = doubtful.iter().filter_map(|&index| Some((index, self.stored(index).ok()?)));
        let mut found = read.collect::<Vec<_>>();
        // What was read is what the object will be made of, or it counts for nothing.
        let there = self.bucket().parts(self.upload()).unwrap_or_default();
        let adopted = lock(&self.parts).clone();
        found.retain(|(index, _)| there.contains_key(index) && there.get(index) == adopted.get(index));
        let _ = self.checkpoint(&found, false);
        found
    }

    fn finish(&self, size: u64) -> Result<(), Failure> {
        self.whole.store(size, Ordering::Relaxed);
        Ok(())
    }

    fn verify(&self, size: u64, expected: FileDigests) -> Result<(), Failure> {
        let parts = (0..self.count(size)).map(|number| self.bucket().get_part(self.upload(), number));
        compare_pieces(parts, expected)
    }

    fn publish(&self, digests: FileDigests) -> Result<bool, Failure> {
        let published = self.new.publish(digests, |key, over| match &self.all_parts()?[..] {
            [] => self.bucket().put(key, b"", over),
            parts => self.bucket().complete(self.upload(), parts, over),
        });
        // It is gone when it is complete; else nobody takes it up.
        self.remove();
        published
    }

    fn remove(&self) {
        self.drop_number();
        // Where it stays, whoever cleans the bucket of old uploads removes it.
        let _ = self.bucket().abort(self.upload());
    }

    fn leave(&self) {
        let is_useful = self.has_claims.load(Ordering::Relaxed) && !self.is_void.load(Ordering::Relaxed);
        if !is_useful {
            self.remove();
        }
    }
}

/// What the parts of an upload are known by together, of which each is told by its number and version.
fn identity(parts: &BTreeMap<u64, Version>) -> Fingerprint {
    let mut hasher = blake3::Hasher::new_derive_key("carrack parts of an upload");
    for (number, version) in parts {
        hasher.update(&number.to_le_bytes());
        hasher.update(version);
    }
    let mut identity = Fingerprint::default();
    hasher.finalize_xof().fill(&mut identity);
    identity
}

/// A small file that is not put yet.
struct Waiting {
    new: New,
    content: Vec<u8>,
    digests: FileDigests,
}

impl Entry for Waiting {
    fn publish(&self) -> Result<bool, Failure> {
        self.new.publish(self.digests, |key, over| self.new.session.bucket.put(key, &self.content, over))
    }

    fn remove(&self) {}
}

/// A small file that is to be read back before it has its name.
struct Uploaded {
    upload: ObjectPart,
    size: u64,
    digests: FileDigests,
}

impl Entry for Uploaded {
    fn verify(&self) -> Result<(), Failure> {
        self.upload.verify(self.size, self.digests)
    }

    fn publish(&self) -> Result<bool, Failure> {
        self.upload.publish(self.digests)
    }

    fn remove(&self) {
        self.upload.remove();
    }
}
