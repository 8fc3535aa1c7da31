//! Numbers that look like chance and are the same each time: SplitMix64 (Steele, Lea and Flood, *Fast splittable
//! pseudorandom number generators*, 2014). For content to measure with, for order, and for faults that a seed chooses;
//! nothing secret is made of them.

/// What the state grows by from one number to the next.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number that looks random, another one for each state.
#[inline]
pub fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// Choices from a seed.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The same seed makes the same choices.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number of 64 bits, each as likely.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }

    /// From 0.0 to 1.0, which it never is: 53 bits, as many as a double holds.
    pub fn part(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with a probability from 0.0 to 1.0.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.part() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation for seed 1234567.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut chance = Chance::new(1_234_567);
        let found: Vec<u64> = (0..3).map(|_| chance.number()).collect();
        assert_eq!(found, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn seed_repeats_and_probabilities_are_kept() {
        let draw = |seed| (0..8).map(|_| Chance::new(seed).number()).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut chance = Chance::new(3);
        assert!((0..1000).all(|_| !chance.happens(0.0) && chance.happens(1.0) && chance.below(7) < 7));
        assert_eq!(chance.below(0), 0);
        let count = (0..10_000).filter(|_| chance.happens(0.25)).count();
        assert!((2200..2800).contains(&count), "{count}");
    }
}
