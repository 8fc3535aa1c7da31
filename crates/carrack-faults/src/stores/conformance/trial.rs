//! What the rules have in common: sessions, files, and looking at what there is.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrack_core::attributes::{Attributes, Time};
use carrack_core::digest::{BlockDigest, FileDigests, FileTree, block_count, block_length};
use carrack_core::failure::Failure;
use carrack_core::limits;
use carrack_core::request::Digests;
use carrack_core::transfer::{Fingerprint, ScannedItem};
use carrack_core::tuning::Tuning;

use super::{Broken, Fixture, Verdict, ensure};
use carrack_engine::stores::properties::{MarkerRequest, Properties, WriteOptions, Writes};
use carrack_engine::stores::read::{Found, OpenOptions, Reader, Source, Walk};
use carrack_engine::stores::store::{Store, Wanted};
use carrack_engine::stores::write::{Destination, NewFile, Opening, Part, SmallFile, Stored, block_digest};

/// The directory that the rules write to.
pub const TOP: &[u8] = b"top";
/// What the sessions of the rules have in common.
const KEY: [u8; limits::MARKER_KEY_BYTES] = [6; limits::MARKER_KEY_BYTES];
/// Whole seconds, and even: what keeps times at all, keeps this.
pub const MTIME: Time = Time::new(1_600_000_000, 0);
pub const MODE: u32 = 0o640;

/// A store that is tried.
pub struct Trial<'a> {
    pub place: &'a dyn Fixture,
    pub store: Arc<dyn Store>,
    pub properties: Properties,
    /// Bytes of a block.
    pub block: u32,
}

impl<'a> Trial<'a> {
    pub fn new(place: &'a dyn Fixture) -> Self {
        let store = place.store();
        let properties = store.properties();
        let block = properties.block_bytes.and_then(|bytes| bytes.nearest(limits::BLOCK_BYTES_MIN));
        let block = block.unwrap_or(limits::BLOCK_BYTES_MIN);
        Self { place, store, properties, block }
    }

    pub fn options(&self) -> WriteOptions {
        WriteOptions::in_blocks(self.block)
    }

    pub fn session(&self) -> Result<Box<dyn Destination>, Broken> {
        self.session_with(self.options())
    }

    pub fn session_with(&self, options: WriteOptions) -> Result<Box<dyn Destination>, Broken> {
        let marker = Some(MarkerRequest { key: KEY, anew: false, made_top: false, partial: false });
        let tuning = &Arc::default();
        let wanted = Wanted {
            path: TOP,
            is_copied: false,
            marker,
            options,
            backup: None,
            keeps_links: false,
            keeps_shared: false,
            tuning,
        };
        Ok(self.store.destination(&wanted)?)
    }

    /// Content of a file that holds no zeros, another for each seed.
    pub fn content(&self, seed: u8, length: usize) -> Vec<u8> {
        (0..length).map(|place| (place as u8 ^ (place >> 8) as u8 ^ seed) | 1).collect()
    }

    /// The digest of block `index` of a file.
    pub fn digest(&self, content: &[u8], index: u64, wanted: Digests) -> BlockDigest {
        let start = index * u64::from(self.block);
        let length = block_length(index, content.len() as u64, self.block);
        let whole = block_count(content.len() as u64, self.block) == 1;
        block_digest(&content[start as usize..(start + length) as usize], start, whole, wanted)
    }

    /// The digests of a file that travels in blocks.
    pub fn digests(&self, content: &[u8]) -> FileDigests {
        let size = content.len() as u64;
        let mut tree = FileTree::new(self.block, Digests::BLAKE3);
        for index in 0..block_count(size, self.block) {
            let length = block_length(index, size, self.block);
            tree.insert(index, length, self.digest(content, index, Digests::BLAKE3));
        }
        tree.finish(size).unwrap_or_default()
    }

    /// Has a small file wait for its name.
    pub fn small(&self, to: &dyn Destination, path: &str, content: &[u8]) -> Result<Stored, Broken> {
        Ok(to.write_small(&small_file(path, content), &self.options(), content)?)
    }

    /// Syncs and names what waits.
    pub fn publish(to: &dyn Destination, stored: &Stored) -> Result<bool, Broken> {
        let entry = match stored {
            Stored::Hidden(entry) => entry,
            Stored::Done => return Ok(true),
            Stored::Kept | Stored::Same | Stored::Unlinked => return Ok(false),
        };
        if entry.awaits_sync() {
            to.sync_group()?;
        }
        entry.verify()?;
        let published = entry.publish()?;
        to.written_down();
        Ok(published)
    }

    pub fn put_small(&self, to: &dyn Destination, path: &str, content: &[u8]) -> Verdict {
        let stored = self.small(to, path, content)?;
        ensure(Self::publish(to, &stored)?, || format!("{path} was kept"))
    }

    pub fn new_file<'b>(&self, path: &'b str, content: &[u8]) -> NewFile<'b> {
        NewFile {
            path: path.as_bytes(),
            size: Some(content.len() as u64),
            attributes: Attributes::new(MODE, MTIME),
            sparse: false,
            fingerprint: Some(fingerprint(content)),
        }
    }

    pub fn fresh(&self, to: &dyn Destination, file: &NewFile<'_>) -> Result<Arc<dyn Part>, Broken> {
        match to.begin(file, &self.options(), true)? {
            Opening::Fresh(part) => Ok(part),
            Opening::Keep => Err(Broken("what is not there is kept".into())),
            Opening::Resumed { .. } => Err(Broken("what nobody left is resumed".into())),
            Opening::Present(_) | Opening::MayBePresent => Err(Broken("what nobody published is present".into())),
        }
    }

    /// Writes blocks, in two pieces each.
    pub fn write_blocks(&self, part: &dyn Part, content: &[u8], blocks: &[u64]) -> Verdict {
        for &index in blocks {
            let start = index * u64::from(self.block);
            let length = block_length(index, content.len() as u64, self.block);
            let bytes = &content[start as usize..(start + length) as usize];
            let half = bytes.len() / 2;
            part.write(start, &bytes[..half])?;
            part.write(start + half as u64, &bytes[half..])?;
            part.end_block(start, length)?;
        }
        Ok(())
    }

    /// The order in which blocks are written: backwards, where that may be.
    pub fn order(&self, content: &[u8]) -> Vec<u64> {
        let mut order: Vec<u64> = (0..block_count(content.len() as u64, self.block)).collect();
        if self.properties.writes != Writes::InOrder {
            order.reverse();
        }
        order
    }

    pub fn put_large(&self, to: &dyn Destination, path: &str, content: &[u8]) -> Verdict {
        let part = self.fresh(to, &self.new_file(path, content))?;
        self.write_blocks(&*part, content, &self.order(content))?;
        self.name(to, &*part, content)
    }

    /// Finishes and names a file that is whole.
    pub fn name(&self, to: &dyn Destination, part: &dyn Part, content: &[u8]) -> Verdict {
        part.finish(content.len() as u64)?;
        part.verify(content.len() as u64, self.digests(content))?;
        let published = part.publish(self.digests(content))?;
        to.written_down();
        ensure(published, || "what nobody else has written is kept".into())
    }

    /// What is opened below the directory that the rules write to; empty for that itself.
    pub fn source(&self, path: &str) -> Result<Box<dyn Source>, Broken> {
        let full = if path.is_empty() { TOP.to_vec() } else { carrack_core::path::join(TOP, path.as_bytes()) };
        Ok(self.store.source(&full)?)
    }

    /// What a walk finds, by path, in the order in which it was found.
    pub fn listed(source: &dyn Source) -> Result<Vec<ScannedItem>, Broken> {
        let mut items = Vec::new();
        let mut failed = None;
        source.walk(&Walk::plain(0), &mut |found| {
            match found {
                Found::Item(item) => items.push(item),
                Found::Failure(item, why) => failed = Some((item, why)),
                Found::LeftOut(_) | Found::Own | Found::Listed { .. } => {}
            }
            failed.is_none()
        });
        match failed {
            Some((item, why)) => Err(Broken(format!("a walk fails at {:?}: {why}", lossy(&item.path)))),
            None => Ok(items),
        }
    }

    pub fn by_path(source: &dyn Source) -> Result<BTreeMap<Vec<u8>, ScannedItem>, Broken> {
        Ok(Self::listed(source)?.into_iter().map(|item| (item.path.clone(), item)).collect())
    }

    pub fn item(source: &dyn Source, path: &str) -> Result<ScannedItem, Broken> {
        let found = Self::by_path(source)?.remove(path.as_bytes());
        found.ok_or_else(|| Broken(format!("a walk does not find {path:?}")))
    }

    pub fn open(source: &dyn Source, item: &ScannedItem) -> Result<Box<dyn Reader>, Broken> {
        Ok(Self::opened(source, item)?)
    }

    pub fn opened(source: &dyn Source, item: &ScannedItem) -> Result<Box<dyn Reader>, Failure> {
        Self::opened_with(source, item, &Tuning::DEFAULT)
    }

    pub fn opened_with(source: &dyn Source, item: &ScannedItem, tuning: &Tuning) -> Result<Box<dyn Reader>, Failure> {
        let mut rest = |time| {
            std::thread::sleep(time);
            true
        };
        source.open(item, &mut OpenOptions { tuning, may_grow: false, rest: &mut rest })
    }

    /// What a file has in it now; `None` where there is none.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Broken> {
        if self.store.look(TOP)?.is_none() && !self.properties.directories {
            return Ok(None);
        }
        let source = self.source("")?;
        let Some(item) = Self::by_path(&*source)?.remove(path.as_bytes()) else { return Ok(None) };
        let reader = Self::open(&*source, &item)?;
        let size = reader.size().ok_or_else(|| Broken(format!("{path} has no size")))?;
        let mut content = vec![0; size as usize];
        reader.read_at(0, &mut content)?;
        reader.check_unchanged()?;
        Ok(Some(content))
    }

    pub fn expect_no_item(&self, path: &str) -> Verdict {
        let found = Self::by_path(&*self.source("")?)?.remove(path.as_bytes());
        ensure(found.is_none(), || format!("{path} shows before it is published"))
    }

    pub fn expect(&self, path: &str, content: Option<&[u8]>) -> Verdict {
        let found = self.read(path)?;
        let words =
            |content: Option<&[u8]>| content.map_or("nothing".to_owned(), |content| format!("{} bytes", content.len()));
        ensure(found.as_deref() == content, || {
            format!("{path} should be {} and is {}, or has others", words(content), words(found.as_deref()))
        })
    }

    /// Nothing is there but what has its name.
    pub fn expect_nothing_left(&self) -> Verdict {
        let left = self.place.leftovers().unwrap_or(0);
        ensure(left == 0, || format!("{left} things are left behind"))
    }
}

pub fn small_file<'a>(path: &'a str, content: &[u8]) -> SmallFile<'a> {
    let digests = FileDigests { blake3: Some(*blake3::hash(content).as_bytes()), ..FileDigests::default() };
    SmallFile {
        path: path.as_bytes(),
        attributes: Attributes::new(MODE, MTIME),
        fingerprint: Some(fingerprint(content)),
        digests,
        read_back: false,
    }
}

/// What a source with this content may be known by.
pub fn fingerprint(content: &[u8]) -> Fingerprint {
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&blake3::hash(content).as_bytes()[..16]);
    fingerprint
}

pub fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
