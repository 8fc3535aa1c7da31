//! Whether a rate had settled: tested by the slope over a window, not assumed.

/// Slots of a series that a judgement needs.
const LEAST: usize = 10;
/// The most that the rate may rise or fall over the window, as a share of its mean.
const SLOPE_MAX: f64 = 0.1;

/// What the series of a measurement says of its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steadiness {
    /// Over the window the rate neither rose nor fell by more than a tenth.
    Steady {
        /// The mean rate in the window.
        rate: f64,
    },
    /// It still rose or fell.
    Unsteady {
        /// The mean rate in the window.
        rate: f64,
        /// By how much it changed over the window, as a share of its mean; negative if it fell.
        change: f64,
    },
    /// It ended too early to tell.
    Short,
}

/// Judges the amounts of equal slots of time, `slot_seconds` long each. The window is the second half: what a cache
/// took at first lies before it. The last slot, which is not whole, must be left out by the caller.
pub fn judge(slots: &[f64], slot_seconds: f64) -> Steadiness {
    let window = &slots[slots.len() / 2..];
    if window.len() < LEAST {
        return Steadiness::Short;
    }
    let count = window.len() as f64;
    let mean = window.iter().sum::<f64>() / count;
    if mean <= 0.0 {
        return Steadiness::Short;
    }
    // Least squares: the slope of amount by slot.
    let middle = (count - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (index, amount) in window.iter().enumerate() {
        let from_middle = index as f64 - middle;
        above += from_middle * (amount - mean);
        below += from_middle * from_middle;
    }
    let change = above / below * (count - 1.0) / mean;
    let rate = mean / slot_seconds;
    if change.abs() <= SLOPE_MAX { Steadiness::Steady { rate } } else { Steadiness::Unsteady { rate, change } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steadiness_is_judged_by_the_second_half() {
        let flat = vec![10.0; 40];
        assert_eq!(judge(&flat, 0.1), Steadiness::Steady { rate: 100.0 });
        // A write cache that is full after a third: the rest is the disk's.
        let cache: Vec<f64> = (0..60).map(|slot| if slot < 20 { 500.0 } else { 50.0 }).collect();
        assert_eq!(judge(&cache, 1.0), Steadiness::Steady { rate: 50.0 });
        // It is full at the end only.
        let late: Vec<f64> = (0..60).map(|slot| if slot < 45 { 500.0 } else { 50.0 }).collect();
        assert!(matches!(judge(&late, 1.0), Steadiness::Unsteady { change, .. } if change < -0.5));
        let rising: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(matches!(judge(&rising, 1.0), Steadiness::Unsteady { change, .. } if change > 0.3));
        // Noise is no slope.
        let noisy: Vec<f64> = (0..200).map(|slot| if slot % 2 == 0 { 8.0 } else { 12.0 }).collect();
        assert!(matches!(judge(&noisy, 1.0), Steadiness::Steady { .. }));
    }

    #[test]
    fn too_little_to_tell_is_said() {
        assert_eq!(judge(&[], 1.0), Steadiness::Short);
        assert_eq!(judge(&[5.0; 18], 1.0), Steadiness::Short);
        assert_eq!(judge(&[0.0; 40], 1.0), Steadiness::Short);
    }
}
