//! Choices from a seed.

/// SplitMix64: small, and good enough to choose faults with.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The same seed makes the same choices.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number of 64 bits, each as likely.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }

    /// True with a probability from 0.0 to 1.0.
    pub fn happens(&mut self, probability: f64) -> bool {
        // 53 bits: what a double holds.
        ((self.number() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_repeats_and_probabilities_are_kept() {
        let draw = |seed| (0..8).map(|_| Chance::new(seed).number()).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut chance = Chance::new(3);
        assert!((0..1000).all(|_| !chance.happens(0.0) && chance.happens(1.0) && chance.below(7) < 7));
        let count = (0..10_000).filter(|_| chance.happens(0.25)).count();
        assert!((2200..2800).contains(&count), "{count}");
    }
}
