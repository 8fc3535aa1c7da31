//! A small file that has changed, sent as a patch: what the destination has is told by a short digest of each of its
//! chunks, and those that differ are sent.
//!
//! A digest of 32 bits (CRC-32C) may be that of another chunk. Nothing rests on it: the whole file is verified as ever,
//! and comes again whole if it is not what it should be.

use crc32c::crc32c;

use super::ProtocolError;
use crate::limits;

/// Files of fewer bytes are sent whole: that costs no more than to tell of their chunks.
const FILE_BYTES_MIN: u64 = 16 << 10;
/// Bytes of the smallest chunk.
const CHUNK_BYTES_MIN: u32 = 1 << 10;
/// Bytes of the last chunk of a file, if it is told: a digest of four bytes is those bytes.
const REST_BYTES_MIN: usize = 64;
/// Bytes of a patch before its map: the file's size, and a chunk's.
const PATCH_HEADER_BYTES: usize = 8;

/// Bytes of a chunk of a file of so many bytes; `None` where it is not sent as a patch.
///
/// A power of two, so that a file has at most [`limits::FILE_CHUNKS`].
pub fn chunk_bytes(size: u64) -> Option<u32> {
    let enough = size.div_ceil(limits::FILE_CHUNKS as u64).next_power_of_two();
    let bytes = u32::try_from(enough).ok()?.max(CHUNK_BYTES_MIN);
    (FILE_BYTES_MIN..=limits::PATCHED_BYTES).contains(&size).then_some(bytes)
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
    let bytes = chunk_bytes(size).filter(|_| !standing.is_empty())?;
    let length = u32::try_from(content.len()).ok().filter(|length| u64::from(*length) <= limits::PATCHED_BYTES)?;
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
    /// Bytes of the file that it makes.
    pub size: u32,
    chunk_bytes: u32,
    map: &'a [u8],
    differing: &'a [u8],
}

impl<'a> Patch<'a> {
    /// From bytes.
    ///
    /// # Errors
    /// When no sender sends such a patch.
    pub fn decode(patch: &'a [u8]) -> Result<Self, ProtocolError> {
        let garbled = || ProtocolError::violation("the sender sent a patch that makes no file");
        let (header, rest) = patch.split_first_chunk::<PATCH_HEADER_BYTES>().ok_or_else(garbled)?;
        let [size, chunk_bytes] = [0, 4].map(|at| u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte])));
        let is_chunk = chunk_bytes.is_power_of_two() && chunk_bytes >= CHUNK_BYTES_MIN;
        if !is_chunk || u64::from(size) > limits::PATCHED_BYTES {
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

    /// The file; `None` where what stands there has become too short.
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
        assert_eq!(Patch::decode(&sent).unwrap().apply(&old), Some(new));
        assert!(patch(&content(145_000, 5), 145_000, &told).is_none(), "nothing is the same");
        assert!(patch(&old, 145_000, &[]).is_none(), "nothing was told");
        // Of more than the size asks for only whole chunks are told, of less the end as well, unless it is short.
        let told = |standing: usize, size| digests(&old[..standing], size).len();
        assert_eq!([told(20_001, 20_000), told(20_000, 20_000), told(20_000, 30_000)], [19, 20, 20]);
        assert_eq!([told(20_480 + 63, 30_000), told(20_480 + 64, 30_000)], [20, 21]);
    }

    proptest! {
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
                let patch = Patch::decode(&sent).unwrap();
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
            if let Ok(patch) = Patch::decode(&patch)
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
            assert!(Patch::decode(&good[..end]).is_err(), "{end}");
        }
        let changed = |at: usize, byte: u8| {
            let mut bad = good.clone();
            bad[at] = byte;
            Patch::decode(&bad).is_err()
        };
        // A size beyond every bundle, chunks of no power of two and of next to nothing, a bit behind the last chunk.
        assert!(changed(0, 0xff) && changed(6, 3) && changed(6, 0) && changed(10, 0xf0));
        assert!(Patch::decode(&[good.clone(), vec![0]].concat()).is_err(), "something behind it");
    }
}
