//! The marker: the receiver's journal of a run, as bytes. What is written when, and what is believed of it, is told in
//! `docs/internals/marker.md`; files, locks and syncs are the engine's.
//!
//! A header, then records. Each record ends with a checksum that goes on from the one before it, so that a
//! record counts only behind all of those that were written before it. Replay ends at the first record that is
//! cut short or altered, and believes nothing behind it. Whatever bytes it is given, it never panics and keeps
//! no more than `limits.rs` says.

mod replay;

pub use self::replay::{Claim, Left, Replay, Replayed, replay};
use crate::digest::{BlockDigest, FileDigests, is_main_of};
use crate::fingerprint::Fingerprint;
use crate::limits;
use crate::limits::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};
use crate::path::check_relative;
use crate::report::ItemKind;
use crate::request::{Digests, Durability, MainDigest};

/// The version of the format that is written, and the only one that is read.
pub const FORMAT: u32 = 1;
/// Magic, version, tag, checksum.
pub const HEADER_BYTES: usize = 8 + 4 + TAG_BYTES + 4;
/// Hexadecimal digits that tell the part files of one marker from all others.
pub const TAG_BYTES: usize = 8;
/// A record before its payload: kind and length.
const RECORD_HEAD_BYTES: usize = 5;
const CRC_BYTES: usize = 4;
const MAGIC: [u8; 8] = *b"\x89CARRACK";
/// What builds from before format 1 began with. Nothing in one is believed: it is written over.
const MAGIC_BEFORE: [u8; 8] = *b"\x89carrack";
const PUBLISHED_BYTES: usize = 16 + 1 + BlockDigest::BYTES;
/// Items in one record of what was published.
const PUBLISHED_PER_RECORD: usize = 4096;

/// The digest by which a claim is taken back: no block has it.
pub const TAKEN_BACK: [u8; 32] = [0; 32];

/// Whether a file that begins so may be a marker, of any version and cut short anywhere; an empty one may.
pub fn may_be_marker(start: &[u8]) -> bool {
    [MAGIC, MAGIC_BEFORE].iter().any(|magic| start.iter().zip(magic).all(|(found, magic)| found == magic))
}

/// Tells the part files of one marker from all others.
pub type Tag = [u8; TAG_BYTES];

/// One record of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A session begins: what follows is its.
    Session(SessionRecord),
    /// A part file has been made.
    Part(PartRecord),
    /// Blocks of a part file have reached stable storage.
    Blocks {
        /// The part's number.
        part: u64,
        /// Index of the first block.
        first: u64,
        /// Of the blocks from there on, one after the other; at most [`limits::HELD_BLOCKS`].
        digests: Vec<BlockDigest>,
    },
    /// Items have got their names.
    Published(Vec<Published>),
    /// A part file is no more: published, or removed.
    Dropped {
        /// The part's number.
        part: u64,
    },
    /// A session has ended in good order and has left a part file. Claims that follow take this back.
    Left {
        /// The part's number.
        part: u64,
        /// The file as it was left.
        identity: Fingerprint,
    },
    /// A sync of names or of a whole file system has failed. Names that were published before may be gone, so none of
    /// them is believed.
    Doubted,
    /// The copy has made the directory that the marker is in: it gets the attributes of its source.
    MadeTop,
}

/// One session of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Which boot of the receiving host it ran in; zeros where the host does not tell.
    pub boot: [u8; 16],
    /// What was synced.
    pub durability: Durability,
}

/// A part file, and the source that it is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRecord {
    /// Counting up within the marker.
    pub number: u64,
    /// The item, relative to the destination.
    pub path: Vec<u8>,
    /// Name of the part file, in the item's directory.
    pub part_name: Vec<u8>,
    /// Bytes of the source.
    pub size: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// What the digests of its blocks hold.
    pub digests: Digests,
}

/// An item that got its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// See [`published_key`].
    pub key: [u8; 16],
    /// What the receiver computed over what it wrote.
    pub digests: FileDigests,
}

/// What an item was, and the very file that it became.
#[derive(Clone, Copy, Debug)]
pub struct PublishedItem<'a> {
    /// File or link.
    pub kind: ItemKind,
    /// Relative to the destination.
    pub path: &'a [u8],
    /// Of the source.
    pub source: Fingerprint,
    /// Of the file that bears the name at the destination.
    pub stored: Fingerprint,
}

/// What an item is found by among those published.
pub fn published_key(item: &PublishedItem<'_>) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&item.kind.number().to_le_bytes());
    hasher.update(&item.source);
    hasher.update(&item.stored);
    // Last, because its length is not told.
    hasher.update(item.path);
    let mut key = [0; 16];
    hasher.finalize_xof().fill(&mut key);
    key
}

/// Where writing goes on: the checksum of all that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain(u32);

impl Chain {
    /// The start of a new marker, and the chain behind it.
    pub fn begin(tag: Tag) -> (Vec<u8>, Self) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&tag);
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        (bytes, Self(crc))
    }

    /// Appends one record, or several where there is more to say than one holds.
    pub fn append(&mut self, record: &Record, out: &mut Vec<u8>) {
        match record {
            Record::Published(items) => {
                for items in items.chunks(PUBLISHED_PER_RECORD) {
                    self.seal(out, KIND_PUBLISHED, |out| items.iter().for_each(|item| put_published(out, item)));
                }
            }
            Record::Blocks { part, first, digests } => {
                for (chunk, digests) in digests.chunks(limits::HELD_BLOCKS).enumerate() {
                    self.seal(out, KIND_BLOCKS, |out| {
                        out.extend_from_slice(&part.to_le_bytes());
                        out.extend_from_slice(&(first + (chunk * limits::HELD_BLOCKS) as u64).to_le_bytes());
                        digests.iter().for_each(|digest| put_digest(out, digest));
                    });
                }
            }
            Record::Session(session) => self.seal(out, KIND_SESSION, |out| {
                out.extend_from_slice(&session.boot);
                out.push(session.durability.number().to_le_bytes()[0]);
            }),
            Record::Part(part) => self.seal(out, KIND_PART, |out| put_part(out, part)),
            Record::Dropped { part } => {
                self.seal(out, KIND_DROPPED, |out| out.extend_from_slice(&part.to_le_bytes()));
            }
            Record::Left { part, identity } => self.seal(out, KIND_LEFT, |out| {
                out.extend_from_slice(&part.to_le_bytes());
                out.extend_from_slice(identity);
            }),
            Record::Doubted => self.seal(out, KIND_DOUBTED, |_| {}),
            Record::MadeTop => self.seal(out, KIND_MADE_TOP, |_| {}),
        }
    }

    /// Appends a record of any kind and payload, its checksum right: what only an error in this program, or a later
    /// format, would write. For tests of what replay makes of it.
    pub fn append_raw(&mut self, kind: u8, payload: &[u8], out: &mut Vec<u8>) {
        self.seal(out, kind, |out| out.extend_from_slice(payload));
    }

    fn seal(&mut self, out: &mut Vec<u8>, kind: u8, payload: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.push(kind);
        out.extend_from_slice(&[0; 4]);
        payload(out);
        let length = (out.len() - start - RECORD_HEAD_BYTES) as u32;
        out[start + 1..start + RECORD_HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
        self.0 = crc32c::crc32c_append(self.0, &out[start..]);
        out.extend_from_slice(&self.0.to_le_bytes());
    }
}

const KIND_SESSION: u8 = 1;
const KIND_PART: u8 = 2;
const KIND_BLOCKS: u8 = 3;
const KIND_PUBLISHED: u8 = 4;
const KIND_DROPPED: u8 = 5;
const KIND_LEFT: u8 = 6;
const KIND_DOUBTED: u8 = 7;
const KIND_MADE_TOP: u8 = 8;

fn put_digest(out: &mut Vec<u8>, digest: &BlockDigest) {
    out.extend_from_slice(&digest.main);
    out.extend_from_slice(&digest.adler32.to_le_bytes());
    out.extend_from_slice(&digest.crc32c.to_le_bytes());
}

fn put_published(out: &mut Vec<u8>, item: &Published) {
    out.extend_from_slice(&item.key);
    out.push(digest_bits(item.digests.kinds()));
    put_digest(out, &item.digests.as_block());
}

const BIT_BLAKE3: u8 = 1;
const BIT_XXH128: u8 = 8;

fn digest_bits(digests: Digests) -> u8 {
    let main = match digests.main {
        Some(MainDigest::Blake3) => BIT_BLAKE3,
        Some(MainDigest::Xxh128) => BIT_XXH128,
        None => 0,
    };
    main | u8::from(digests.adler32) << 1 | u8::from(digests.crc32c) << 2
}

fn put_part(out: &mut Vec<u8>, part: &PartRecord) {
    out.extend_from_slice(&part.number.to_le_bytes());
    out.extend_from_slice(&part.size.to_le_bytes());
    out.extend_from_slice(&part.block_bytes.to_le_bytes());
    out.push(digest_bits(part.digests));
    // Neither is longer than a path may be, which fits.
    out.extend_from_slice(&(part.part_name.len() as u16).to_le_bytes());
    out.extend_from_slice(&part.part_name);
    out.extend_from_slice(&part.path);
}

/// A payload being read. Every method answers `None` when it is too short or says what cannot be.
struct Payload<'a>(&'a [u8]);

impl<'a> Payload<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn digests(&mut self) -> Option<Digests> {
        let bits = self.byte()?;
        let has = |bit: u8| bits & bit != 0;
        let main = match bits & !6 {
            0 => None,
            BIT_BLAKE3 => Some(MainDigest::Blake3),
            BIT_XXH128 => Some(MainDigest::Xxh128),
            _ => return None,
        };
        Some(Digests { main, adler32: has(2), crc32c: has(4) })
    }

    fn digest(&mut self) -> Option<BlockDigest> {
        Some(BlockDigest { main: self.array()?, adler32: self.u32()?, crc32c: self.u32()? })
    }

    fn at_end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

fn decode(kind: u8, payload: &[u8]) -> Option<Record> {
    let mut payload = Payload(payload);
    match kind {
        KIND_SESSION => {
            let boot = payload.array()?;
            let durability = Durability::from_number(payload.byte()?.into())?;
            payload.at_end(Record::Session(SessionRecord { boot, durability }))
        }
        KIND_PART => decode_part(payload).map(Record::Part),
        KIND_BLOCKS => {
            let (part, first) = (payload.u64()?, payload.u64()?);
            let count = payload.0.len() / BlockDigest::BYTES;
            let digests = (0..count).map(|_| payload.digest()).collect::<Option<_>>()?;
            payload.at_end(Record::Blocks { part, first, digests })
        }
        KIND_PUBLISHED => {
            let count = payload.0.len() / PUBLISHED_BYTES;
            let items = (0..count).map(|_| decode_published(&mut payload)).collect::<Option<_>>()?;
            payload.at_end(Record::Published(items))
        }
        KIND_DROPPED => {
            let part = payload.u64()?;
            payload.at_end(Record::Dropped { part })
        }
        KIND_LEFT => {
            let (part, identity) = (payload.u64()?, payload.array()?);
            payload.at_end(Record::Left { part, identity })
        }
        KIND_DOUBTED => payload.at_end(Record::Doubted),
        KIND_MADE_TOP => payload.at_end(Record::MadeTop),
        _ => None,
    }
}

fn decode_published(payload: &mut Payload<'_>) -> Option<Published> {
    let key = payload.array()?;
    let known = payload.digests()?;
    let digest = payload.digest().filter(|digest| is_main_of(&digest.main, known))?;
    Some(Published { key, digests: digest.as_file(known) })
}

fn decode_part(mut payload: Payload<'_>) -> Option<PartRecord> {
    let (number, size, block_bytes) = (payload.u64()?, payload.u64()?, payload.u32()?);
    let digests = payload.digests()?;
    let name_bytes = u16::from_le_bytes(payload.array()?);
    let part_name = payload.bytes(usize::from(name_bytes))?.to_vec();
    let path = payload.0.to_vec();
    let fits = block_bytes.is_power_of_two() && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes);
    let named = check_relative(&path).is_ok() && check_relative(&part_name).is_ok() && !part_name.contains(&b'/');
    let fits = fits && named && size <= limits::FILE_BYTES && number < u64::MAX;
    fits.then_some(PartRecord { number, path, part_name, size, block_bytes, digests })
}

#[cfg(test)]
mod tests;
