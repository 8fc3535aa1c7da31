//! Values over time in bounded memory: where there are too many, every second one goes.

/// More points than this are made half as many.
const POINTS_MAX: usize = 2048;

/// Points in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Thin {
    points: Vec<(f64, f64)>,
    /// Points that come sooner after the last are passed over, in seconds.
    gap: f64,
}

impl Thin {
    /// Points at least so far apart, in seconds.
    pub fn new(gap: f64) -> Self {
        Self { points: Vec::new(), gap }
    }

    /// Adds a value, unless one was there a moment ago.
    pub fn add(&mut self, at: f64, value: f64) {
        if self.points.last().is_some_and(|(last, _)| at - last < self.gap) || !at.is_finite() || !value.is_finite() {
            return;
        }
        self.points.push((at, value));
        if self.points.len() > POINTS_MAX {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.gap *= 2.0;
        }
    }

    /// Adds the last value, however soon it comes.
    pub fn end(&mut self, at: f64, value: f64) {
        if at.is_finite() && value.is_finite() && self.points.last().is_none_or(|(last, _)| at > *last) {
            self.points.push((at, value));
        }
    }

    /// The points.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The mean and the largest value; none where there is no point.
    pub fn mean_and_most(&self) -> Option<(f64, f64)> {
        let sum: f64 = self.points.iter().map(|(_, value)| value).sum();
        let most = self.points.iter().map(|(_, value)| *value).reduce(f64::max)?;
        Some((sum / self.points.len() as f64, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_bounded_and_reach_from_the_first_to_the_last() {
        let mut thin = Thin::new(1.0);
        (0..1_000_000).for_each(|second| thin.add(f64::from(second), 2.0));
        let points = thin.points();
        assert!(points.len() <= POINTS_MAX && points.len() > POINTS_MAX / 4, "{}", points.len());
        assert!(points[0].0 < 1.0 && points[points.len() - 1].0 > 990_000.0);
        assert_eq!(thin.mean_and_most(), Some((2.0, 2.0)));
        let mut few = Thin::new(0.5);
        [(0.0, 1.0), (0.2, 9.0), (0.6, 3.0), (0.7, f64::NAN)].into_iter().for_each(|(at, value)| few.add(at, value));
        few.end(0.7, 4.0);
        few.end(0.7, 5.0);
        assert_eq!(few.points(), [(0.0, 1.0), (0.6, 3.0), (0.7, 4.0)]);
        assert_eq!(Thin::default().mean_and_most(), None);
    }
}
