//! What has changed a little, sent as a patch: what the destination has is told by a short digest of each of its
//! chunks, and those that differ are sent. A patch makes a small file, or a block of a large one.
//!
//! A digest of 32 bits (CRC-32C) may be that of another chunk. Nothing rests on it: the file, or the block, is verified
//! as ever, and comes again whole if it is not what it should be.

use std::ops::Range;

use crc32c::{crc32c, crc32c_append};

use super::ProtocolError;
use crate::digest::BlockDigest;
use crate::limits;

/// Files of fewer bytes are sent whole: that costs no more than to tell of their chunks.
const FILE_BYTES_MIN: u64 = 16 << 10;
/// Bytes of the smallest chunk.
const CHUNK_BYTES_MIN: u32 = 1 << 10;
/// Bytes of the last chunk of a file, if it is told: a digest of four bytes is those bytes.
const REST_BYTES_MIN: usize = 64;
/// Bytes of a patch before its map: those of what it makes, and of a chunk.
const PATCH_HEADER_BYTES: usize = 8;
/// Bytes of the smallest chunk of a block.
const BLOCK_CHUNK_BYTES_MIN: u64 = 4 << 10;
/// A block has at least so many chunks, or none.
const BLOCK_CHUNKS_MIN: u64 = 2;

/// Bytes of a chunk of a file of so many bytes; `None` where it is not sent as a patch.
///
/// A power of two, so that a file has at most [`limits::FILE_CHUNKS`].
pub fn chunk_bytes(size: u64) -> Option<u32> {
    let enough = size.div_ceil(limits::FILE_CHUNKS as u64).next_power_of_two();
    let bytes = u32::try_from(enough).ok()?.max(CHUNK_BYTES_MIN);
    (FILE_BYTES_MIN..=limits::PATCHED_BYTES).contains(&size).then_some(bytes)
}

/// Bytes of a chunk of the blocks of a large file; `None` where they are sent whole.
///
/// A power of two, at least the square root of the file's size: one chunk in a file that has changed then costs about
/// as much as to tell of all of them.
pub fn block_chunk_bytes(size: u64, block_bytes: u32) -> Option<u32> {
    let root = size.saturating_sub(1).isqrt() + 1;
    let bytes = root.next_power_of_two().max(BLOCK_CHUNK_BYTES_MIN);
    (bytes * BLOCK_CHUNKS_MIN <= u64::from(block_bytes)).then_some(bytes as u32)
}

/// How many chunks of a block of `length` bytes are told: a short rest is not.
pub fn told_chunks(length: u64, chunk_bytes: u32) -> usize {
    let (whole, rest) = (length / u64::from(chunk_bytes), length % u64::from(chunk_bytes));
    // At most those of the largest block.
    whole as usize + usize::from(rest >= REST_BYTES_MIN as u64)
}

/// Digests of chunks as they travel.
pub(super) fn chunks_to_bytes(chunks: &[u32]) -> Vec<u8> {
    chunks.iter().copied().flat_map(u32::to_be_bytes).collect()
}

/// Digests of chunks. How many there may be the caller knows.
pub(super) fn chunks_from_bytes(bytes: &[u8]) -> Result<Vec<u32>, ProtocolError> {
    let (told, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(ProtocolError::violation("the peer told of a part of a chunk"));
    }
    Ok(told.iter().map(|chunk| u32::from_be_bytes(*chunk)).collect())
}

/// A block of a large file that the destination has copied from what stands at the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenBlock {
    /// Its index within the file.
    pub index: u64,
    /// That of its bytes as they are now in the new file.
    pub digest: BlockDigest,
    /// Digests of its chunks; none where blocks are sent whole.
    pub chunks: Vec<u32>,
}

/// Digests the chunks of a block as it is read.
#[derive(Debug)]
pub struct ChunkHasher {
    /// Bytes of a chunk; 0 where blocks are sent whole.
    bytes: usize,
    chunks: Vec<u32>,
    /// Of the chunk that has begun: its digest so far, and how many bytes are missing.
    current: u32,
    missing: usize,
}

impl ChunkHasher {
    /// For a block of a file of `size` bytes that has blocks of `block_bytes`.
    pub fn new(size: u64, block_bytes: u32) -> Self {
        let bytes = block_chunk_bytes(size, block_bytes).map_or(0, |bytes| bytes as usize);
        Self { bytes, chunks: Vec::new(), current: 0, missing: bytes }
    }

    /// The block goes on.
    pub fn update(&mut self, mut slice: &[u8]) {
        while self.bytes > 0 && !slice.is_empty() {
            let (here, rest) = slice.split_at(slice.len().min(self.missing));
            self.current = crc32c_append(self.current, here);
            self.missing -= here.len();
            slice = rest;
            if self.missing == 0 {
                self.end_chunk();
            }
        }
    }

    fn end_chunk(&mut self) {
        self.chunks.push(std::mem::take(&mut self.current));
        self.missing = self.bytes;
    }

    /// What is told of it.
    pub fn finish(mut self) -> Vec<u32> {
        if self.bytes - self.missing >= REST_BYTES_MIN {
            self.end_chunk();
        }
        self.chunks
    }
}

/// The digest of each chunk of what the destination has, as far as a file of `size` bytes may have it, too. `standing`
/// is all of it, or more than that. A chunk that `size` cuts off is not told, nor a short rest: who asked for many
/// sizes would know each byte.
pub fn digests(standing: &[u8], size: u64) -> Vec<u32> {
    let Some(bytes) = chunk_bytes(size).map(|bytes| bytes as usize) else { return Vec::new() };
    let most = usize::try_from(size).unwrap_or(usize::MAX);
    let whole = if standing.len() > most { most / bytes * bytes } else { standing.len() };
    let is_told = |chunk: &&[u8]| chunk.len() >= REST_BYTES_MIN;
    standing[..whole].chunks(bytes).take_while(is_told).map(crc32c).collect()
}

/// What makes `content` of a file that has chunks of such digests, by chunks of a file that had `size` bytes when it
/// was compared; and how many bytes the destination has. `None` where it has none, or too few to be worth it.
pub fn patch(content: &[u8], size: u64, standing: &[u32]) -> Option<(Vec<u8>, u64)> {
    let is_small = content.len() as u64 <= limits::PATCHED_BYTES;
    of_chunks(content, chunk_bytes(size).filter(|_| is_small)?, standing)
}

/// The same, of `content` that has chunks of `bytes`.
pub fn of_chunks(content: &[u8], bytes: u32, standing: &[u32]) -> Option<(Vec<u8>, u64)> {
    let length = u32::try_from(content.len()).ok().filter(|_| !standing.is_empty())?;
    let chunks = content.chunks(bytes as usize);
    let mut map = vec![0u8; chunks.len().div_ceil(8)];
    let mut differing = Vec::new();
    for (index, chunk) in chunks.enumerate() {
        if standing.get(index) != Some(&crc32c(chunk)) {
            map[index / 8] |= 1 << (index % 8);
            differing.extend_from_slice(chunk);
        }
    }
    let there = (content.len() - differing.len()) as u64;
    let mut patch = Vec::with_capacity(PATCH_HEADER_BYTES + map.len() + differing.len());
    patch.extend_from_slice(&length.to_be_bytes());
    patch.extend_from_slice(&bytes.to_be_bytes());
    patch.extend_from_slice(&map);
    patch.extend_from_slice(&differing);
    (patch.len() < content.len()).then_some((patch, there))
}

/// A patch as it has come.
#[derive(Clone, Copy, Debug)]
pub struct Patch<'a> {
    /// Bytes of what it makes.
    pub size: u32,
    chunk_bytes: u32,
    map: &'a [u8],
    differing: &'a [u8],
}

impl<'a> Patch<'a> {
    /// From bytes. It makes at most `most` bytes.
    ///
    /// # Errors
    /// When no sender sends such a patch.
    pub fn decode(patch: &'a [u8], most: u64) -> Result<Self, ProtocolError> {
        let garbled = || ProtocolError::violation("the sender sent a patch that makes nothing");
        let (header, rest) = patch.split_first_chunk::<PATCH_HEADER_BYTES>().ok_or_else(garbled)?;
        let [size, chunk_bytes] = [0, 4].map(|at| u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte])));
        let is_chunk = chunk_bytes.is_power_of_two() && chunk_bytes >= CHUNK_BYTES_MIN;
        if !is_chunk || u64::from(size) > most {
            return Err(garbled());
        }
        let chunks = size.div_ceil(chunk_bytes) as usize;
        let (map, differing) = rest.split_at_checked(chunks.div_ceil(8)).ok_or_else(garbled)?;
        let patch = Self { size, chunk_bytes, map, differing };
        let differ: usize = patch.lengths().filter(|(_, _, differs)| *differs).map(|(_, length, _)| length).sum();
        let is_behind = (chunks..map.len() * 8).any(|index| patch.differs(index));
        if differ != differing.len() || is_behind { Err(garbled()) } else { Ok(patch) }
    }

    fn differs(&self, index: usize) -> bool {
        self.map[index / 8] & 1 << (index % 8) != 0
    }

    /// Of each chunk where it starts, how long it is, and whether it differs.
    fn lengths(self) -> impl Iterator<Item = (usize, usize, bool)> + 'a {
        let (size, bytes) = (self.size as usize, self.chunk_bytes as usize);
        let starts = (0..size).step_by(bytes).enumerate();
        starts.map(move |(index, start)| (start, bytes.min(size - start), self.differs(index)))
    }

    /// Where what comes lies in what it makes: ranges of bytes, in order, none beside another.
    pub fn changed(self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (start, length, _) in self.lengths().filter(|(_, _, differs)| *differs) {
            match ranges.last_mut().filter(|last| last.end == start) {
                Some(last) => last.end += length,
                None => ranges.push(start..start + length),
            }
        }
        ranges
    }

    /// What it makes; `None` where what stands there has become too short.
    pub fn apply(self, standing: &[u8]) -> Option<Vec<u8>> {
        let mut content = Vec::with_capacity(self.size as usize);
        let mut differing = self.differing;
        for (start, length, differs) in self.lengths() {
            let chunk = if differs {
                let (chunk, rest) = differing.split_at_checked(length)?;
                differing = rest;
                chunk
            } else {
                standing.get(start..start + length)?
            };
            content.extend_from_slice(chunk);
        }
        Some(content)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(bytes: usize, seed: u64) -> Vec<u8> {
        let mut content = vec![0; bytes];
        blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut content);
        content
    }

    #[test]
    fn file_has_few_chunks_of_one_size() {
        assert_eq!(chunk_bytes(FILE_BYTES_MIN - 1), None);
        assert_eq!(chunk_bytes(limits::PATCHED_BYTES + 1), None);
        for (size, bytes) in [(FILE_BYTES_MIN, 1024), (145_000, 1024), (256 << 10, 1024), ((256 << 10) + 1, 2048)] {
            assert_eq!(chunk_bytes(size), Some(bytes), "{size}");
        }
        for size in (FILE_BYTES_MIN..=limits::PATCHED_BYTES).step_by(7777) {
            let bytes = u64::from(chunk_bytes(size).unwrap());
            assert!(size.div_ceil(bytes) <= limits::FILE_CHUNKS as u64, "{size}");
        }
    }

    #[test]
    fn little_is_sent_of_what_has_changed_a_little() {
        let old = content(145_000, 3);
        let mut new = old.clone();
        new[70_000] ^= 1;
        let told = digests(&old, new.len() as u64);
        assert_eq!(told.len(), 142);
        let (sent, there) = patch(&new, new.len() as u64, &told).unwrap();
        assert_eq!((sent.len(), there), (8 + 18 + 1024, 145_000 - 1024));
        assert_eq!(Patch::decode(&sent, limits::PATCHED_BYTES).unwrap().apply(&old), Some(new));
        assert!(patch(&content(145_000, 5), 145_000, &told).is_none(), "nothing is the same");
        assert!(patch(&old, 145_000, &[]).is_none(), "nothing was told");
        // Of more than the size asks for only whole chunks are told, of less the end as well, unless it is short.
        let told = |standing: usize, size| digests(&old[..standing], size).len();
        assert_eq!([told(20_001, 20_000), told(20_000, 20_000), told(20_000, 30_000)], [19, 20, 20]);
        assert_eq!([told(20_480 + 63, 30_000), told(20_480 + 64, 30_000)], [20, 21]);
    }

    #[test]
    fn part_of_a_chunk_is_no_chunk() {
        assert_eq!(chunks_from_bytes(&chunks_to_bytes(&[1, u32::MAX])), Ok(vec![1, u32::MAX]));
        assert!(chunks_from_bytes(&[0; 5]).is_err());
    }

    #[test]
    fn blocks_have_chunks_by_the_size_of_the_file() {
        for (size, block, bytes) in [
            (10_000_000, 1 << 20, Some(4096)),
            (1 << 24, 1 << 20, Some(4096)),
            ((1 << 24) + 1, 1 << 20, Some(8192)),
            (1 << 32, 1 << 20, Some(65_536)),
            (1 << 36, 1 << 20, Some(262_144)),
            (1 << 38, 1 << 20, Some(524_288)),
            ((1 << 38) + 1, 1 << 20, None),
            ((1 << 38) + 1, 4 << 20, Some(1 << 20)),
            (50_000, 8 << 10, Some(4096)),
            (50_000, 4 << 10, None),
            (u64::MAX, u32::MAX, None),
        ] {
            assert_eq!(block_chunk_bytes(size, block), bytes, "{size} {block}");
        }
    }

    proptest! {
        #[test]
        fn block_is_digested_in_whatever_pieces_it_is_read(length in 0usize..40_000, piece in 1usize..9000) {
            let block = content(length, 4);
            let mut hasher = ChunkHasher::new(50_000, 64 << 10);
            block.chunks(piece).for_each(|piece| hasher.update(piece));
            let chunks = hasher.finish();
            prop_assert_eq!(chunks.len(), told_chunks(length as u64, 4096));
            let wanted = block.chunks(4096).filter(|chunk| chunk.len() >= REST_BYTES_MIN).map(crc32c);
            prop_assert_eq!(chunks, wanted.collect::<Vec<_>>());
        }

        #[test]
        fn patched_file_is_the_new_one(
            old in 0usize..80_000, new in 0usize..80_000, asked in 0u64..80_000, changed in prop::collection::vec(0usize..80_000, 0..5),
        ) {
            let old = content(old, 9);
            let mut to = content(new, 9);
            changed.iter().for_each(|at| if let Some(byte) = to.get_mut(*at) { *byte ^= 0x55 });
            let told = digests(&old, asked);
            prop_assert!(told.len() <= limits::FILE_CHUNKS);
            if let Some((sent, there)) = patch(&to, asked, &told) {
                prop_assert!(sent.len() < to.len() && there <= to.len() as u64);
                let patch = Patch::decode(&sent, limits::PATCHED_BYTES).unwrap();
                // Where nothing comes there is what stands there.
                let mut made = old.clone();
                made.resize(to.len(), 0);
                patch.changed().into_iter().for_each(|range| made[range.clone()].copy_from_slice(&to[range]));
                prop_assert_eq!(&made, &to);
                prop_assert_eq!(patch.apply(&old), Some(to));
                // What has become shorter meanwhile lacks something, or something that was sent.
                if let Some(made) = patch.apply(&old[..old.len() / 2]) {
                    prop_assert_eq!(made.len(), new);
                }
            }
        }

        #[test]
        fn whatever_comes_makes_a_file_of_its_size_or_none(patch in prop::collection::vec(any::<u8>(), 0..200), size in 0u32..3000, old in 0usize..4000) {
            let mut patch = patch;
            if patch.len() >= 8 {
                patch[..4].copy_from_slice(&size.to_be_bytes());
                patch[4..8].copy_from_slice(&1024u32.to_be_bytes());
            }
            if let Ok(patch) = Patch::decode(&patch, limits::PATCHED_BYTES)
                && let Some(made) = patch.apply(&content(old, 1))
            {
                prop_assert_eq!(made.len(), size as usize);
            }
        }
    }

    #[test]
    fn patch_that_no_sender_sends_is_refused() {
        let old = content(20_000, 3);
        let mut new = old.clone();
        new[5000] ^= 1;
        let (good, _) = patch(&new, 20_000, &digests(&old, 20_000)).unwrap();
        for end in 0..good.len() {
            assert!(Patch::decode(&good[..end], limits::PATCHED_BYTES).is_err(), "{end}");
        }
        let changed = |at: usize, byte: u8| {
            let mut bad = good.clone();
            bad[at] = byte;
            Patch::decode(&bad, limits::PATCHED_BYTES).is_err()
        };
        // A size beyond every bundle, chunks of no power of two and of next to nothing, a bit behind the last chunk.
        assert!(changed(0, 0xff) && changed(6, 3) && changed(6, 0) && changed(10, 0xf0));
        assert!(
            Patch::decode(&[good.clone(), vec![0]].concat(), limits::PATCHED_BYTES).is_err(),
            "something behind it"
        );
    }
}
