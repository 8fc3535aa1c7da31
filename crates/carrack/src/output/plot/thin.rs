//! Fewer points that draw the same picture.

/// At most four points for each of so many columns: the first, the lowest, the highest and the last. A gap stays one.
pub fn thin(points: &[(f64, f64)], end: f64, columns: usize) -> Vec<(f64, f64)> {
    if points.len() <= columns.saturating_mul(2) || columns == 0 {
        return points.to_vec();
    }
    let column = |at: f64| ((at / end * columns as f64).max(0.0) as usize).min(columns - 1);
    let mut kept = Vec::new();
    let mut rest = points;
    while let Some(&(first, _)) = rest.first() {
        let here = rest.iter().take_while(|(at, _)| column(*at) == column(first)).count().max(1);
        let (group, further) = rest.split_at(here);
        rest = further;
        let finite = || group.iter().enumerate().filter(|(_, (_, value))| value.is_finite());
        let by_value = |one: &(usize, &(f64, f64)), other: &(usize, &(f64, f64))| one.1.1.total_cmp(&other.1.1);
        let mut chosen = vec![0, group.len() - 1];
        chosen.extend(finite().min_by(by_value).map(|(at, _)| at));
        chosen.extend(finite().max_by(by_value).map(|(at, _)| at));
        chosen.extend(group.iter().position(|(_, value)| !value.is_finite()));
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.iter().map(|&at| group[at]));
    }
    kept
}

/// The mean of values that hold for a while, in each of so many columns; none where nothing is known.
pub fn means(steps: &[(f64, f64, f64)], end: f64, columns: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0.0); columns];
    let width = end / columns as f64;
    for &(from, to, value) in steps.iter().filter(|(from, to, value)| value.is_finite() && to > from) {
        let first = ((from / width).max(0.0) as usize).min(columns.saturating_sub(1));
        for (at, sum) in sums.iter_mut().enumerate().skip(first) {
            let (left, right) = (at as f64 * width, (at + 1) as f64 * width);
            let shared = to.min(right) - from.max(left);
            if left >= to {
                break;
            }
            if shared > 0.0 {
                *sum = (sum.0 + value * shared, sum.1 + shared);
            }
        }
    }
    sums.into_iter().map(|(sum, time)| (time > 0.0).then(|| sum / time)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_line_keeps_its_peaks_its_gaps_and_its_ends() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), f64::from(at % 7))).collect();
        points[50_000].1 = 1000.0;
        points[50_001].1 = -5.0;
        points[70_000].1 = f64::NAN;
        let thinned = thin(&points, 100_000.0, 500);
        assert!(thinned.len() <= 2_501, "{}", thinned.len());
        assert_eq!((thinned[0], thinned[thinned.len() - 1]), (points[0], points[99_999]));
        assert!(thinned.contains(&points[50_000]) && thinned.contains(&points[50_001]));
        assert!(thinned.iter().any(|(_, value)| value.is_nan()));
        assert!(thinned.windows(2).all(|pair| pair[0].0 < pair[1].0), "in their order");
        assert_eq!(thin(&points[..10], 10.0, 500), points[..10]);
    }

    #[test]
    fn means_are_of_the_time_that_a_value_held() {
        let steps = [(0.0, 1.0, 10.0), (1.0, 3.0, 20.0), (6.0, 8.0, f64::NAN)];
        let means = means(&steps, 8.0, 4);
        assert_eq!(means, [Some(15.0), Some(20.0), None, None]);
    }
}
