//! Noise of simulated transfers.

/// Numbers that look like chance, the same for the same seed.
pub struct Noise {
    state: u64,
}

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// About normal, with mean 0 and variance 1; within -6 and 6.
    pub fn next(&mut self) -> f64 {
        let mut sum = 0.0;
        for _ in 0..12 {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            sum += (self.state >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum - 6.0
    }
}
