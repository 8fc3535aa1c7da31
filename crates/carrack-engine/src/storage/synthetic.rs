//! Sources without files: zeros, and bytes that nothing on the way can compress.

use carrack_core::attributes::Attributes;
use carrack_core::chance::{STEP, mixed};
use carrack_core::failure::Failure;
use carrack_core::report::ItemKind;
use carrack_core::transfer::ScannedItem;

use super::posix::identity::of_synthetic;
use super::read::{Found, OpenOptions, Reader, Source, Walk};

/// Bytes that are made up as they are read: the same ones each time.
pub enum Synthetic {
    /// This many bytes of zeros.
    Zeros(u64),
    /// This many random bytes.
    Random(u64),
}

/// An item that is no file: it has no times, and permissions that a new file usually has.
pub(super) fn made_up(walk: &Walk<'_>) -> ScannedItem {
    ScannedItem { attributes: Attributes { mode: 0o644, ..Attributes::default() }, ..walk.item(b"", ItemKind::File) }
}

impl Source for Synthetic {
    fn walks_in_order(&self) -> bool {
        false
    }

    fn filters(&self) -> bool {
        false
    }

    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool) {
        let (name, size) = match self {
            Self::Zeros(size) => ("zero", *size),
            Self::Random(size) => ("random", *size),
        };
        let fingerprint = Some(of_synthetic(name, size));
        each(Found::Item(ScannedItem { size: Some(size), fingerprint, ..made_up(walk) }));
    }

    fn open(&self, _item: &ScannedItem, _options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure> {
        Ok(match self {
            Self::Zeros(_) => Box::new(Zeros),
            Self::Random(seed) => Box::new(Random(*seed)),
        })
    }
}

struct Zeros;

impl Reader for Zeros {
    fn is_zeros(&self) -> bool {
        true
    }

    fn read_at(&self, _offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        out.fill(0);
        Ok(())
    }
}

struct Random(u64);

impl Reader for Random {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        random_at(self.0, offset, out);
        Ok(())
    }
}

/// Fills `out` with what stands at `offset` of the endless random stream of `seed`: SplitMix64 of each eight bytes'
/// place, so that any block can be made alone, at several GB/s.
pub fn random_at(seed: u64, offset: u64, out: &mut [u8]) {
    let mut index = offset / 8;
    let mut skip = (offset % 8) as usize;
    let mut rest = out;
    if skip > 0 {
        let word = word(seed, index);
        let take = (8 - skip).min(rest.len());
        rest[..take].copy_from_slice(&word[skip..skip + take]);
        rest = &mut rest[take..];
        index += 1;
        skip = 0;
    }
    debug_assert_eq!(skip, 0);
    let mut words = rest.chunks_exact_mut(8);
    for chunk in &mut words {
        chunk.copy_from_slice(&word(seed, index));
        index += 1;
    }
    let tail = words.into_remainder();
    let last = word(seed, index);
    tail.copy_from_slice(&last[..tail.len()]);
}

fn word(seed: u64, index: u64) -> [u8; 8] {
    mixed(seed.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP))).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synthetic_part_is_the_same_as_in_the_whole() {
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
