//! Sources without files: zeros, and bytes that nothing on the way can compress.

/// Fills `out` with what stands at `offset` of the endless random stream of `seed`: SplitMix64 of each eight bytes' place, so
/// that any block can be made alone, at several GB/s.
pub fn random_at(seed: u64, offset: u64, out: &mut [u8]) {
    let mut place = offset / 8;
    let mut skip = (offset % 8) as usize;
    let mut rest = out;
    if skip > 0 {
        let word = word(seed, place);
        let take = (8 - skip).min(rest.len());
        rest[..take].copy_from_slice(&word[skip..skip + take]);
        rest = &mut rest[take..];
        place += 1;
        skip = 0;
    }
    debug_assert_eq!(skip, 0);
    let mut words = rest.chunks_exact_mut(8);
    for chunk in &mut words {
        chunk.copy_from_slice(&word(seed, place));
        place += 1;
    }
    let tail = words.into_remainder();
    let last = word(seed, place);
    tail.copy_from_slice(&last[..tail.len()]);
}

fn word(seed: u64, place: u64) -> [u8; 8] {
    let mut z = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_the_same_as_in_the_whole() {
        let mut whole = vec![0; 1000];
        random_at(7, 0, &mut whole);
        for offset in [0usize, 1, 7, 8, 9, 500] {
            for length in [0usize, 1, 5, 8, 30, 400] {
                let mut part = vec![0; length];
                random_at(7, offset as u64, &mut part);
                assert_eq!(part, whole[offset..offset + length], "{offset}+{length}");
            }
        }
    }
}
