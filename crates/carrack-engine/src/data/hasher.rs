//! The digests of one block while its bytes pass by.

use blake3::hazmat::HasherExt;
use carrack_core::digest::{BlockDigest, from_xxh128};
use carrack_core::request::{Digests, MainDigest};
use twox_hash::XxHash3_128;

/// Digests slices of one block, or of a small file, in order.
pub struct BlockHasher {
    main: Option<Main>,
    adler32: Option<simd_adler32::Adler32>,
    crc32c: Option<u32>,
}

// The larger one is held in place: a small file has a hasher of its own, and need not allocate two kilobytes for it.
#[allow(clippy::large_enum_variant)]
enum Main {
    Blake3(blake3::Hasher),
    Xxh128(XxHash3_128),
}

impl BlockHasher {
    /// For a block that starts at `offset` in its file (0 for a whole file), a multiple of the block size.
    pub fn new(wanted: Digests, offset: u64) -> Self {
        let main = wanted.main.map(|main| match main {
            MainDigest::Blake3 => {
                let mut hasher = blake3::Hasher::new();
                if offset > 0 {
                    hasher.set_input_offset(offset);
                }
                Main::Blake3(hasher)
            }
            MainDigest::Xxh128 => Main::Xxh128(XxHash3_128::with_seed(offset)),
        });
        Self { main, adler32: wanted.adler32.then(simd_adler32::Adler32::new), crc32c: wanted.crc32c.then_some(0) }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.main {
            Some(Main::Blake3(hasher)) => {
                hasher.update(bytes);
            }
            Some(Main::Xxh128(hasher)) => hasher.write(bytes),
            None => {}
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
        let main = match self.main {
            Some(Main::Blake3(hasher)) if whole => *hasher.finalize().as_bytes(),
            Some(Main::Blake3(hasher)) => hasher.finalize_non_root(),
            Some(Main::Xxh128(hasher)) => from_xxh128(hasher.finish_128().to_be_bytes()),
            None => [0; 32],
        };
        BlockDigest { main, adler32: self.adler32.map_or(1, |sum| sum.finish()), crc32c: self.crc32c.unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIME32: u64 = 2_654_435_761;
    const PRIME64: u64 = 11_400_714_785_074_694_797;

    fn digest(wanted: Digests, offset: u64, slices: &[&[u8]]) -> BlockDigest {
        let mut hasher = BlockHasher::new(wanted, offset);
        slices.iter().for_each(|slice| hasher.update(slice));
        hasher.finish(offset == 0)
    }

    /// Length, seed, and both halves, of the buffer that `xxhsum` checks itself with.
    const XXH128: &[(usize, u64, u64, u64)] = &[
        (0, 0, 0x99aa_06d3_0147_98d8, 0x6001_c324_468d_497f),
        (0, PRIME32, 0x9222_0ae5_5e14_ab50, 0x5444_f786_9c67_1ab0),
        (1, 0, 0xa6cd_5e93_9200_0f6a, 0xc44b_dff4_074e_ecdb),
        (6, PRIME32, 0x5a86_5b53_89ab_d2b1, 0x269d_8f70_be98_856e),
        (12, 0, 0x6e3e_fd8f_c780_2b18, 0x061a_1927_13f6_9ad9),
        (24, PRIME32, 0x3162_0267_14a6_a243, 0xd730_4c54_ebad_40a9),
        (48, 0, 0xa002_ac4e_5478_227e, 0xf942_219a_ed80_f67b),
        (81, PRIME32, 0x2724_ec7a_dc75_0fb6, 0x703f_bb3d_7a5f_755c),
        (222, 0, 0x337e_0964_1b94_8717, 0xf1ae_bd59_7cec_6b3a),
        (403, PRIME64, 0xbed3_1197_1e0b_e8f2, 0x6259_f6ec_fd64_43fd),
        (512, 0, 0x18d2_d110_dcc9_bca1, 0x617e_4959_9013_cb6b),
        (2048, PRIME32, 0x7fb0_3f7e_7186_c3ea, 0x230d_43f3_0206_260b),
        (2240, 0, 0xccb1_34fb_fa7c_e49d, 0x6e73_a905_39cf_2948),
        (2367, 0, 0xe89c_0f6f_f369_b427, 0xcb37_aeb9_e5d3_61ed),
        (2367, PRIME32, 0xd23a_ae4b_76c3_1ecb, 0x6f53_60ae_69c2_f406),
    ];

    #[test]
    fn xxh128_is_what_was_published_in_whatever_slices() {
        let mut state = PRIME32;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            let byte = (state >> 56) as u8;
            state = state.wrapping_mul(PRIME64);
            byte
        })
        .take(2367)
        .collect();
        for &(length, seed, high, low) in XXH128 {
            let expected = from_xxh128((u128::from(high) << 64 | u128::from(low)).to_be_bytes());
            let bytes = &bytes[..length];
            for cut in [0, 1, length / 3, length] {
                let (first, second) = bytes.split_at(cut.min(length));
                let found = digest(Digests::XXH128, seed, &[first, second]);
                assert_eq!(
                    found,
                    BlockDigest { main: expected, adler32: 1, crc32c: 0 },
                    "{length} bytes, cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn digest_depends_on_the_place_of_the_bytes() {
        for wanted in [Digests::BLAKE3, Digests::XXH128] {
            let of = |offset| digest(wanted, offset, &[b"the same bytes"]).main;
            assert_ne!(of(1 << 20), of(2 << 20), "{wanted:?}");
            assert_ne!(of(0), of(1 << 20), "{wanted:?}");
        }
        assert_eq!(digest(Digests::NONE, 5 << 20, &[b"x"]).main, [0; 32]);
    }
}
