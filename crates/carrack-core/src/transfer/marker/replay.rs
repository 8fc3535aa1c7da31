//! Reading a marker again: which of its records count, and what they claim.

use std::collections::BTreeMap;

use super::{
    CRC_BYTES, Chain, HEADER_BYTES, PartRecord, Published, RECORD_HEAD_BYTES, Record, SessionRecord, TAG_BYTES,
    TAKEN_BACK, Tag, decode,
};
use crate::digest::{BlockDigest, FileDigests, block_count, is_main_of};
use crate::fingerprint::Fingerprint;
use crate::limits;
use crate::request::{Digests, Durability};

/// What an item that was published is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownItem {
    key: [u8; 16],
    digest: BlockDigest,
    digests: Digests,
}

/// Blocks of a part, as one record claimed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    first: u64,
    sure: bool,
    pub(super) digests: Vec<BlockDigest>,
}

/// A part file that an earlier session left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// As it was written down.
    pub part: PartRecord,
    /// The part file as the last session left it; `None` where that had no time to say so, or said more after it.
    pub identity: Option<Fingerprint>,
    pub(super) runs: Vec<Run>,
}

/// A block that an earlier session claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Index of the block within its file.
    pub index: u64,
    /// Digest of the block.
    pub digest: BlockDigest,
    /// Written in this boot of the host: what a sync, or only the cache, has taken is there. Else it
    /// has to be looked at again.
    pub sure: bool,
}

impl Left {
    /// Whether anything is claimed.
    pub fn has_claims(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The blocks claimed, by index; of several claims of one the last, and none where that takes the claim back.
    pub fn claims(&self) -> Vec<Claim> {
        let all = self.runs.iter().flat_map(|run| {
            let indexes = run.first..;
            indexes.zip(&run.digests).map(|(index, digest)| Claim { index, digest: *digest, sure: run.sure })
        });
        // Reversed and stably sorted: the last claim of a block comes first, and stays.
        let mut claims: Vec<Claim> = all.collect();
        claims.reverse();
        claims.sort_by_key(|claim| claim.index);
        claims.dedup_by_key(|claim| claim.index);
        claims.retain(|claim| claim.digest.main != TAKEN_BACK);
        claims
    }
}

/// Reads a marker piece by piece.
#[derive(Clone, Debug)]
pub struct Replay {
    boot: [u8; 16],
    tag: Option<Tag>,
    chain: Chain,
    bytes: u64,
    damaged: bool,
    sessions: usize,
    session: Option<SessionRecord>,
    parts: BTreeMap<u64, Left>,
    blocks: usize,
    known: Vec<KnownItem>,
    last_part: u64,
    made_top: bool,
}

impl Replay {
    /// For a host in this boot; zeros where it does not tell, which is never the same boot again.
    pub fn new(boot: [u8; 16]) -> Self {
        Self {
            boot,
            tag: None,
            chain: Chain(0),
            bytes: 0,
            damaged: false,
            sessions: 0,
            session: None,
            parts: BTreeMap::new(),
            blocks: 0,
            known: Vec::new(),
            last_part: 0,
            made_top: false,
        }
    }

    /// Takes the next bytes and tells how many were read; the rest belongs before those that follow. `None` when
    /// nothing more counts: what has been read was damaged.
    pub fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes;
        if self.damaged {
            return None;
        }
        if self.tag.is_none() {
            let Some((header, behind)) = rest.split_at_checked(HEADER_BYTES) else { return Some(0) };
            self.read_header(header)?;
            rest = behind;
        }
        while let Some((head, behind)) = rest.split_at_checked(RECORD_HEAD_BYTES) {
            let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
            if length > limits::MARKER_RECORD_BYTES {
                self.damaged = true;
                break;
            }
            let Some((payload, behind)) = behind.split_at_checked(length) else { break };
            let Some((crc, behind)) = behind.split_at_checked(CRC_BYTES) else { break };
            let sum = crc32c::crc32c_append(self.chain.0, &rest[..RECORD_HEAD_BYTES + length]);
            let record = if sum.to_le_bytes() == crc { decode(head[0], payload) } else { None };
            if !record.is_some_and(|record| self.take(record)) {
                self.damaged = true;
                break;
            }
            self.chain = Chain(sum);
            self.bytes += (rest.len() - behind.len()) as u64;
            rest = behind;
        }
        Some(bytes.len() - rest.len())
    }

    fn read_header(&mut self, header: &[u8]) -> Option<()> {
        let tag: Tag = header[12..12 + TAG_BYTES].try_into().ok()?;
        let (expected, chain) = Chain::begin(tag);
        let is_tag = tag.iter().all(|&byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if header != expected || !is_tag {
            self.damaged = true;
            return None;
        }
        (self.tag, self.chain, self.bytes) = (Some(tag), chain, HEADER_BYTES as u64);
        Some(())
    }

    /// Whether the record can be what was written.
    fn take(&mut self, record: Record) -> bool {
        match (record, self.session) {
            (Record::Session(session), _) => {
                self.session = Some(session);
                self.sessions += 1;
                return self.sessions <= limits::MARKER_SESSIONS;
            }
            (_, None) => return false,
            (Record::Part(part), Some(_)) => {
                // One that was taken up with another digest has had its number for longer than its record.
                let is_new = part.number > 0 && !self.parts.contains_key(&part.number);
                if !is_new || self.parts.len() >= limits::MARKER_PARTS {
                    return false;
                }
                self.last_part = self.last_part.max(part.number);
                let left = Left { part, identity: None, runs: Vec::new() };
                self.parts.insert(left.part.number, left);
            }
            (Record::Blocks { part, first, digests }, Some(session)) => {
                // One that was dropped has nothing more to claim.
                let Some(left) = self.parts.get_mut(&part) else { return part <= self.last_part };
                let count = block_count(left.part.size, left.part.block_bytes);
                let end = first.checked_add(digests.len() as u64);
                let fits = digests.iter().all(|digest| is_main_of(&digest.main, left.part.digests));
                if !fits || digests.is_empty() || end.is_none_or(|end| end > count) {
                    return false;
                }
                left.identity = None;
                // More than is kept is sent again.
                self.blocks += digests.len();
                if self.blocks <= limits::MARKER_BLOCKS {
                    let sure = session.boot == self.boot && self.boot != [0; 16];
                    left.runs.push(Run { first, sure, digests });
                }
            }
            (Record::Published(items), Some(session)) => {
                let sure = session.boot == self.boot && self.boot != [0; 16];
                if sure || session.durability != Durability::None {
                    let room = limits::KNOWN_ITEMS.saturating_sub(self.known.len());
                    self.known.extend(items.iter().take(room).map(KnownItem::new));
                }
            }
            (Record::Dropped { part }, Some(_)) => {
                if let Some(left) = self.parts.remove(&part) {
                    self.blocks -= left.runs.iter().map(|run| run.digests.len()).sum::<usize>().min(self.blocks);
                }
            }
            (Record::Left { part, identity }, Some(_)) => match self.parts.get_mut(&part) {
                Some(left) => left.identity = Some(identity),
                None => return part <= self.last_part,
            },
            (Record::MadeTop, Some(_)) => self.made_top = true,
            (Record::Doubted, Some(_)) => self.known.clear(),
        }
        true
    }

    /// What counts of it, once all has been read, `rest` bytes of which were not. `None` when not even the header does.
    pub fn finish(mut self, rest: usize) -> Option<Replayed> {
        // Of several with one key the last, as in `Left::claims`.
        self.known.reverse();
        self.known.sort_by_key(|known| known.key);
        self.known.dedup_by_key(|known| known.key);
        self.known.shrink_to_fit();
        Some(Replayed {
            tag: self.tag?,
            chain: self.chain,
            bytes: self.bytes,
            damaged: self.damaged || rest > 0,
            parts: self.parts,
            last_part: self.last_part,
            made_top: self.made_top,
            known: self.known,
        })
    }
}

impl KnownItem {
    fn new(item: &Published) -> Self {
        Self { key: item.key, digest: item.digests.as_block(), digests: item.digests.kinds() }
    }
}

/// What a marker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The tag that its part files have in their names.
    pub tag: Tag,
    /// Where writing goes on,
    pub chain: Chain,
    /// and at which byte: what is behind does not count.
    pub bytes: u64,
    /// Something was behind: claims may have been lost.
    pub damaged: bool,
    /// Part files, by their numbers.
    pub parts: BTreeMap<u64, Left>,
    /// The highest number that a part file has had.
    pub last_part: u64,
    /// The copy has made the directory that the marker is in.
    pub made_top: bool,
    pub(super) known: Vec<KnownItem>,
}

impl Replayed {
    /// How many items are known to have been published.
    pub fn known_count(&self) -> u64 {
        self.known.len() as u64
    }

    /// What was written of an item with this key, if it has all the digests wanted.
    pub fn known(&self, key: &[u8; 16], wanted: Digests) -> Option<FileDigests> {
        let index = self.known.binary_search_by_key(key, |known| known.key).ok()?;
        let known = &self.known[index];
        known.digest.as_file(known.digests).covering(wanted)
    }
}

/// Replays bytes that are all there.
pub fn replay(bytes: &[u8], boot: [u8; 16]) -> Option<Replayed> {
    let mut replay = Replay::new(boot);
    let read = replay.read(bytes).unwrap_or(0);
    replay.finish(bytes.len() - read)
}
