//! The digests of one block while its bytes pass by.

use blake3::hazmat::HasherExt;
use carrack_core::digest::BlockDigest;
use carrack_core::request::Digests;

/// Digests slices of one block, or of a small file, in order.
pub struct BlockHasher {
    blake3: Option<blake3::Hasher>,
    adler32: Option<simd_adler32::Adler32>,
    crc32c: Option<u32>,
}

impl BlockHasher {
    /// For a block that starts at `offset` in its file (0 for a whole file), a multiple of the block size.
    pub fn new(wanted: Digests, offset: u64) -> Self {
        let blake3 = wanted.blake3.then(|| {
            let mut hasher = blake3::Hasher::new();
            if offset > 0 {
                hasher.set_input_offset(offset);
            }
            hasher
        });
        Self { blake3, adler32: wanted.adler32.then(simd_adler32::Adler32::new), crc32c: wanted.crc32c.then_some(0) }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.blake3 {
            hasher.update(bytes);
        }
        if let Some(sum) = &mut self.adler32 {
            sum.write(bytes);
        }
        if let Some(sum) = &mut self.crc32c {
            *sum = crc32c::crc32c_append(*sum, bytes);
        }
    }

    /// The digests. `whole`: the block is its whole file.
    pub fn finish(self, whole: bool) -> BlockDigest {
        let blake3 =
            self.blake3.map(|hasher| if whole { *hasher.finalize().as_bytes() } else { hasher.finalize_non_root() });
        BlockDigest {
            blake3: blake3.unwrap_or_default(),
            adler32: self.adler32.map_or(1, |sum| sum.finish()),
            crc32c: self.crc32c.unwrap_or(0),
        }
    }
}
