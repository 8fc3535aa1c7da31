//! Putting a file's digests together from those of its blocks.
//!
//! BLAKE3 is a binary tree over 1 KiB chunks. A block that is aligned to its own power-of-two size is a whole
//! subtree, so its chaining value can be computed alone, in any order, on any thread, and the values merge into
//! exactly what `b3sum` prints for the file. Adler-32 and CRC-32C combine too, by arithmetic on the lengths. The
//! bytes themselves never come here.
//!
//! XXH3-128 does not combine. A block's is seeded with its offset, so that content at another place has another digest,
//! and the first block's is what `xxh128sum` prints. In the place of the file's digest stands the sum of the blocks',
//! modulo 2^128: both ends compare it to know that they mean the same blocks, and nobody is shown it.

use std::collections::BTreeMap;

use blake3::hazmat::{self, Mode};

use crate::request::{Digests, MainDigest};

/// The digests of one block, or of a whole small file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockDigest {
    /// The digest that the block is verified by, zeros where none is asked for. Of BLAKE3 the block's chaining value;
    /// the file's root hash when the file has only this block. Of XXH3-128 its 16 bytes, and then zeros.
    pub main: [u8; 32],
    /// Adler-32 of the block. 1 (that of no bytes) when not asked for.
    pub adler32: u32,
    /// CRC-32C of the block. 0 when not asked for.
    pub crc32c: u32,
}

impl BlockDigest {
    /// Bytes of it in messages and markers: the main digest, Adler-32, CRC-32C.
    pub const BYTES: usize = 32 + 4 + 4;

    /// As the digests of a whole file of one block.
    pub fn as_file(&self, wanted: Digests) -> FileDigests {
        let is = |kind| wanted.main == Some(kind);
        FileDigests {
            blake3: is(MainDigest::Blake3).then_some(self.main),
            xxh128: is(MainDigest::Xxh128).then(|| xxh128(&self.main)),
            adler32: wanted.adler32.then_some(self.adler32),
            crc32c: wanted.crc32c.then_some(self.crc32c),
        }
    }
}

/// Digests of a whole file, those that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileDigests {
    /// What `b3sum` prints.
    pub blake3: Option<[u8; 32]>,
    /// In a report what `xxh128sum` prints, and not told of copied files; within a transfer the sum of the
    /// blocks' (see this module).
    pub xxh128: Option<[u8; 16]>,
    /// Adler-32.
    pub adler32: Option<u32>,
    /// CRC-32C.
    pub crc32c: Option<u32>,
}

impl FileDigests {
    /// Those that are wanted; `None` when one of them is missing.
    pub fn covering(&self, wanted: Digests) -> Option<Self> {
        let only = Self {
            blake3: self.blake3.filter(|_| wanted.main == Some(MainDigest::Blake3)),
            xxh128: self.xxh128.filter(|_| wanted.main == Some(MainDigest::Xxh128)),
            adler32: self.adler32.filter(|_| wanted.adler32),
            crc32c: self.crc32c.filter(|_| wanted.crc32c),
        };
        (only.kinds() == wanted).then_some(only)
    }

    /// Which these are. Of BLAKE3 and XXH3-128 there is never more than one.
    pub fn kinds(&self) -> Digests {
        let blake3 = self.blake3.map(|_| MainDigest::Blake3);
        Digests {
            main: blake3.or(self.xxh128.map(|_| MainDigest::Xxh128)),
            adler32: self.adler32.is_some(),
            crc32c: self.crc32c.is_some(),
        }
    }

    /// As those of a file of one block.
    pub fn as_block(&self) -> BlockDigest {
        BlockDigest {
            main: self.blake3.or(self.xxh128.map(from_xxh128)).unwrap_or_default(),
            adler32: self.adler32.unwrap_or_default(),
            crc32c: self.crc32c.unwrap_or_default(),
        }
    }

    /// The digest that the file is verified by.
    pub fn main(&self) -> Option<[u8; 32]> {
        self.kinds().main.map(|_| self.as_block().main)
    }
}

/// Bytes of an XXH3-128.
pub const XXH128_BYTES: usize = 16;

/// An XXH3-128, in the byte order in which it is printed, as [`BlockDigest::main`].
pub fn from_xxh128(digest: [u8; XXH128_BYTES]) -> [u8; 32] {
    let mut main = [0; 32];
    main[..XXH128_BYTES].copy_from_slice(&digest);
    main
}

fn xxh128(main: &[u8; 32]) -> [u8; XXH128_BYTES] {
    let mut digest = [0; XXH128_BYTES];
    digest.copy_from_slice(&main[..XXH128_BYTES]);
    digest
}

/// Whether a peer's, or a marker's, main digest can be one of this kind.
pub fn is_main_of(main: &[u8; 32], wanted: Digests) -> bool {
    wanted.main != Some(MainDigest::Xxh128) || *main == from_xxh128(xxh128(main))
}

/// Blocks of a file; an empty file has one, of no bytes.
pub fn block_count(size: u64, block_bytes: u32) -> u64 {
    size.div_ceil(u64::from(block_bytes)).max(1)
}

/// Bytes of the block of this index.
pub fn block_length(index: u64, size: u64, block_bytes: u32) -> u64 {
    let start = index * u64::from(block_bytes);
    size.saturating_sub(start).min(u64::from(block_bytes))
}

/// Digests of a file whose blocks become known in any order, merged as far as they can be at any time.
///
/// Memory follows the gaps, not the file: neighbouring subtrees merge as soon as both are there. A subtree that
/// starts the file is never merged early, because BLAKE3 finishes the root differently and only the end of the
/// file tells what the root is.
#[derive(Clone, Debug)]
pub struct FileTree {
    block_bytes: u32,
    wanted: Digests,
    /// Complete subtrees by their first block.
    pieces: BTreeMap<u64, Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    blocks: u64,
    bytes: u64,
    digest: BlockDigest,
}

impl FileTree {
    /// For a file cut into blocks of `block_bytes`, a power of two of at least 1024.
    pub fn new(block_bytes: u32, wanted: Digests) -> Self {
        Self { block_bytes, wanted, pieces: BTreeMap::new() }
    }

    /// Takes the digest of one block of `bytes` bytes. A block that is known already is left as it was.
    pub fn insert(&mut self, index: u64, bytes: u64, digest: BlockDigest) {
        let known = self.pieces.range(..=index).next_back();
        if known.is_some_and(|(&first, piece)| index < first + piece.blocks) {
            return;
        }
        let mut first = index;
        let mut piece = Piece { blocks: 1, bytes, digest };
        while let Some((left, right)) = self.buddies(first, piece) {
            let (Some(a), Some(b)) =
                (self.pieces.remove(&left).or(Some(piece)), self.pieces.remove(&right).or(Some(piece)))
            else {
                break;
            };
            first = left;
            piece = Piece { blocks: a.blocks * 2, bytes: a.bytes + b.bytes, digest: self.join(&a, &b) };
        }
        self.pieces.insert(first, piece);
    }

    /// The two halves of the subtree that this piece would be a half of, when the other is there and both are full.
    fn buddies(&self, first: u64, piece: Piece) -> Option<(u64, u64)> {
        let left = first & !(piece.blocks * 2 - 1);
        let right = left + piece.blocks;
        let other = self.pieces.get(if first == left { &right } else { &left })?;
        let full = piece.blocks * u64::from(self.block_bytes);
        (left != 0 && other.blocks == piece.blocks && piece.bytes == full && other.bytes == full)
            .then_some((left, right))
    }

    fn join(&self, left: &Piece, right: &Piece) -> BlockDigest {
        let mut digest = self.join_sums(left, right);
        if self.wanted.main == Some(MainDigest::Blake3) {
            digest.main = hazmat::merge_subtrees_non_root(&left.digest.main, &right.digest.main, Mode::Hash);
        }
        digest
    }

    fn join_sums(&self, left: &Piece, right: &Piece) -> BlockDigest {
        let (a, b) = (&left.digest, &right.digest);
        let add = || u128::from_be_bytes(xxh128(&a.main)).wrapping_add(u128::from_be_bytes(xxh128(&b.main)));
        BlockDigest {
            main: match self.wanted.main {
                Some(MainDigest::Xxh128) => from_xxh128(add().to_be_bytes()),
                _ => [0; 32],
            },
            adler32: if self.wanted.adler32 { adler32_combine(a.adler32, b.adler32, right.bytes) } else { 1 },
            crc32c: if self.wanted.crc32c {
                crc32c::crc32c_combine(a.crc32c, b.crc32c, right.bytes as usize)
            } else {
                0
            },
        }
    }

    /// How many subtrees wait for a neighbour: what the memory in use is proportional to.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The digests of the whole file; `None` when blocks are missing.
    pub fn finish(&self, size: u64) -> Option<FileDigests> {
        if let Some(only) = self.pieces.get(&0).filter(|piece| piece.bytes == size) {
            return Some(only.digest.as_file(self.wanted));
        }
        let left_bytes = hazmat::left_subtree_len(size.max(1025));
        let left = self.subtree(0, left_bytes)?;
        let right = self.subtree(left_bytes, size.checked_sub(left_bytes)?)?;
        let mut digest = self.join_sums(&left, &right);
        if self.wanted.main == Some(MainDigest::Blake3) {
            digest.main = *hazmat::merge_subtrees_root(&left.digest.main, &right.digest.main, Mode::Hash).as_bytes();
        }
        Some(digest.as_file(self.wanted))
    }

    /// BLAKE3's rule: the left half is the largest power of two of chunks that leaves something for the right one.
    fn subtree(&self, start: u64, bytes: u64) -> Option<Piece> {
        let piece = self.pieces.get(&(start / u64::from(self.block_bytes)));
        if let Some(piece) = piece.filter(|piece| piece.bytes == bytes) {
            return Some(*piece);
        }
        if bytes <= u64::from(self.block_bytes) {
            return None;
        }
        let left_bytes = hazmat::left_subtree_len(bytes);
        let left = self.subtree(start, left_bytes)?;
        let right = self.subtree(start + left_bytes, bytes - left_bytes)?;
        Some(Piece { blocks: left.blocks + right.blocks, bytes, digest: self.join(&left, &right) })
    }
}

/// Adler-32 of two runs of bytes from that of each and the second's length (RFC 1950: two sums modulo 65521).
pub fn adler32_combine(first: u32, second: u32, second_bytes: u64) -> u32 {
    const BASE: u64 = 65521;
    let (a1, b1) = (u64::from(first & 0xffff), u64::from(first >> 16));
    let (a2, b2) = (u64::from(second & 0xffff), u64::from(second >> 16));
    // The second run started its sums at a = 1, b = 0; really it starts at a1, b1.
    let a = (a1 + a2 + BASE - 1) % BASE;
    let b = (b1 + b2 + (second_bytes % BASE) * (a1 + BASE - 1)) % BASE;
    ((b << 16) | a) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: Digests = Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 };

    fn bytes(length: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    fn naive_adler32(data: &[u8]) -> u32 {
        let (mut a, mut b) = (1u32, 0u32);
        for &byte in data {
            a = (a + u32::from(byte)) % 65521;
            b = (b + a) % 65521;
        }
        (b << 16) | a
    }

    fn digest_block(data: &[u8], index: usize, block_bytes: usize) -> BlockDigest {
        use blake3::hazmat::HasherExt;
        let start = index * block_bytes;
        let block = &data[start..data.len().min(start + block_bytes)];
        let mut hasher = blake3::Hasher::new();
        let blake3 = if data.len() <= block_bytes {
            *hasher.update(block).finalize().as_bytes()
        } else {
            hasher.set_input_offset(start as u64).update(block).finalize_non_root()
        };
        BlockDigest { main: blake3, adler32: naive_adler32(block), crc32c: crc32c::crc32c(block) }
    }

    fn check(size: usize, block_bytes: usize) {
        let data = bytes(size, size as u64 + 7);
        let count = block_count(size as u64, block_bytes as u32) as usize;
        // Three orders: the order must not matter, nor a block told twice.
        for order in [0, 1, 2] {
            let mut indices: Vec<usize> = (0..count).collect();
            match order {
                1 => indices.reverse(),
                2 => indices.sort_by_key(|index| (index * 7919) % (count + 1)),
                _ => {}
            }
            let mut tree = FileTree::new(block_bytes as u32, ALL);
            for &index in indices.iter().chain(&indices) {
                let digest = digest_block(&data, index, block_bytes);
                tree.insert(index as u64, block_length(index as u64, size as u64, block_bytes as u32), digest);
            }
            check_whole(&tree, &data, block_bytes);
        }
    }

    fn check_whole(tree: &FileTree, data: &[u8], block_bytes: usize) {
        let size = data.len();
        let merged = tree.finish(size as u64).expect("every block is there");
        let count = block_count(size as u64, block_bytes as u32);
        assert!(tree.pieces() as u64 <= 3 + 2 * u64::from(count.ilog2()), "{} pieces of {count} blocks", tree.pieces());
        assert_eq!(merged.blake3, Some(*blake3::hash(data).as_bytes()), "{size} by {block_bytes}");
        assert_eq!(merged.adler32, Some(naive_adler32(data)), "{size} by {block_bytes}");
        assert_eq!(merged.crc32c, Some(crc32c::crc32c(data)), "{size} by {block_bytes}");
    }

    #[test]
    fn digest_merges_at_every_edge() {
        for block in [1024, 4096, 65536] {
            for blocks in [0, 1, 2, 3, 4, 5, 7, 8, 9] {
                for extra in [-1i64, 0, 1, 1023, 1025] {
                    if let Ok(size) = usize::try_from(blocks * block + extra) {
                        check(size, block as usize);
                    }
                }
            }
        }
    }

    #[test]
    fn swapped_doubled_or_lost_block_is_found() {
        let data = bytes(5 * 4096 + 17, 3);
        let root = Some(*blake3::hash(&data).as_bytes());
        let tree_of = |blocks: [usize; 6]| {
            let mut tree = FileTree::new(4096, ALL);
            for (index, &block) in blocks.iter().enumerate() {
                tree.insert(
                    index as u64,
                    block_length(index as u64, data.len() as u64, 4096),
                    digest_block(&data, block, 4096),
                );
            }
            tree.finish(data.len() as u64).map(|digests| digests.blake3)
        };
        assert_eq!(tree_of([0, 1, 2, 3, 4, 5]), Some(root));
        assert_ne!(tree_of([0, 3, 2, 1, 4, 5]), Some(root));
        assert_ne!(tree_of([0, 1, 1, 3, 4, 5]), Some(root));
        let mut tree = FileTree::new(4096, ALL);
        for index in [0, 1, 2, 4, 5] {
            tree.insert(index, block_length(index, data.len() as u64, 4096), digest_block(&data, index as usize, 4096));
        }
        assert_eq!(tree.finish(data.len() as u64), None);
    }

    #[test]
    fn terabyte_in_order_needs_no_memory() {
        let mut tree = FileTree::new(4 << 20, ALL);
        for index in 0..(1 << 18) {
            tree.insert(index, 4 << 20, BlockDigest { main: [index as u8; 32], adler32: 1, crc32c: 0 });
            assert!(tree.pieces() <= 40);
        }
        assert!(tree.finish(1 << 40).is_some());
    }

    #[test]
    fn xxh128_of_blocks_are_added_up_in_any_order() {
        const BLOCK: u64 = 4096;
        let wanted = Digests { crc32c: true, ..Digests::XXH128 };
        let block = |index: u64| {
            let digest = blake3::hash(&index.to_be_bytes());
            from_xxh128(xxh128(digest.as_bytes()))
        };
        let of = |count: u64, order: &dyn Fn(u64) -> u64, content: &dyn Fn(u64) -> u64| {
            let mut tree = FileTree::new(BLOCK as u32, wanted);
            for index in (0..count).map(order) {
                tree.insert(index, BLOCK, BlockDigest { main: block(content(index)), ..BlockDigest::default() });
            }
            tree.finish(count * BLOCK).expect("every block is there")
        };
        for count in 1..40 {
            let add = |sum: u128, index| sum.wrapping_add(u128::from_be_bytes(xxh128(&block(index))));
            let sum = (0..count).fold(0, add).to_be_bytes();
            for order in [&|index| index, &(|index| count - 1 - index) as &dyn Fn(u64) -> u64] {
                let found = of(count, order, &|index| index);
                assert_eq!((found.xxh128, found.blake3), (Some(sum), None), "{count}");
                assert_eq!(found.main(), Some(from_xxh128(sum)));
            }
            assert_ne!(
                of(count, &|index| index, &|_| 0).xxh128.filter(|_| count > 1),
                Some(sum),
                "one block many times"
            );
        }
        let mut short = FileTree::new(BLOCK as u32, wanted);
        short.insert(0, BLOCK, BlockDigest::default());
        assert_eq!(short.finish(2 * BLOCK), None);
    }

    #[test]
    fn digest_is_covered_by_its_own_kind_only() {
        let digest = BlockDigest { main: from_xxh128([3; 16]), ..BlockDigest::default() };
        for (has, wanted) in [(Digests::XXH128, Digests::BLAKE3), (Digests::BLAKE3, Digests::XXH128)] {
            assert_eq!(digest.as_file(has).covering(wanted), None);
            assert_eq!(digest.as_file(has).covering(has), Some(digest.as_file(has)));
            assert_eq!(digest.as_file(has).covering(Digests::NONE), Some(FileDigests::default()));
            assert_eq!(digest.as_file(has).as_block(), digest);
        }
    }

    proptest! {
        #[test]
        fn digest_merges_whatever_the_size(size in 0usize..60_000, power in 10u32..17) {
            check(size, 1 << power);
        }

        #[test]
        fn adler_combines(first in proptest::collection::vec(any::<u8>(), 0..5000), second in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let whole = [first.clone(), second.clone()].concat();
            let combined = adler32_combine(naive_adler32(&first), naive_adler32(&second), second.len() as u64);
            prop_assert_eq!(combined, naive_adler32(&whole));
        }
    }
}
