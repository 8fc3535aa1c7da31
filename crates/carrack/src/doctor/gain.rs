//! What a fix has brought: rates before and after it, twice each, and the noise between the two of a pair.

use serde_json::{Value, json};

/// Two measurements before and two after, of one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// What was measured: `there`, `back`, `storage`.
    pub what: &'static str,
    /// Bytes a second.
    pub before: [f64; 2],
    /// Bytes a second.
    pub after: [f64; 2],
}

/// Two runs that happen to agree do not prove that there is no noise.
const NOISE_LEAST: f64 = 0.05;

impl Gain {
    /// Of pairs that were measured; `None` if one of them is missing.
    pub fn of(what: &'static str, before: [Option<f64>; 2], after: [Option<f64>; 2]) -> Option<Self> {
        let pair = |[a, b]: [Option<f64>; 2]| Some([a?, b?]).filter(|pair| pair.iter().all(|rate| *rate > 0.0));
        Some(Self { what, before: pair(before)?, after: pair(after)? })
    }

    /// The mean before, and after.
    pub fn means(&self) -> (f64, f64) {
        let mean = |[a, b]: [f64; 2]| (a + b) / 2.0;
        (mean(self.before), mean(self.after))
    }

    /// The share by which the rate has risen.
    pub fn share(&self) -> f64 {
        let (before, after) = self.means();
        after / before - 1.0
    }

    /// How far two measurements of the same differ, as a share.
    pub fn noise(&self) -> f64 {
        let spread = |[a, b]: [f64; 2]| (a - b).abs() / ((a + b) / 2.0);
        spread(self.before).max(spread(self.after)).max(NOISE_LEAST)
    }

    /// Whether nobody can tell that anything has changed for the better.
    pub fn is_noise(&self) -> bool {
        self.share() <= self.noise()
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "what": self.what,
            "before_bytes_per_second": self.before.map(f64::round),
            "after_bytes_per_second": self.after.map(f64::round),
            "share": self.share(),
            "noise": self.noise(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gain_counts_only_beyond_the_noise() {
        let gain = |before, after| Gain::of("there", before, after).unwrap();
        let doubled = gain([Some(100.0), Some(104.0)], [Some(200.0), Some(210.0)]);
        assert!(!doubled.is_noise() && doubled.share() > 1.0 && doubled.noise() < 0.06, "{doubled:?}");
        assert!(gain([Some(100.0), Some(100.0)], [Some(104.0), Some(104.0)]).is_noise());
        assert!(gain([Some(100.0), Some(160.0)], [Some(170.0), Some(170.0)]).is_noise());
        assert!(gain([Some(100.0), Some(100.0)], [Some(50.0), Some(50.0)]).is_noise());
        assert_eq!(Gain::of("back", [Some(1.0), None], [Some(1.0), Some(1.0)]), None);
        assert_eq!(Gain::of("back", [Some(0.0), Some(1.0)], [Some(1.0), Some(1.0)]), None);
    }
}
