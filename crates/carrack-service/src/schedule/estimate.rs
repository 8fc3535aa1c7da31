//! How long a task takes, by how long earlier tasks of the same link took: a time for each task, a time for each byte
//! and a time for each file, none of them negative, that fit the earlier tasks best. How far those lay from the fit
//! makes the range.

use std::time::Duration;

/// Earlier tasks without which nothing is said.
pub const RUNS_LEAST: usize = 3;
/// The longest time of a range, as a multiple of its shortest.
const WIDEST: f64 = 3.0;
/// Sizes beyond so many times the largest one that was seen are extrapolated.
const FAR: f64 = 4.0;
/// A fit with fewer terms is taken where its error is greater by this factor at most.
const ALIKE: f64 = 1.05;
const TERMS: usize = 3;
/// Which of the terms task, bytes and files a fit has: those that say most of larger tasks first.
const FITS: [[bool; TERMS]; 7] = [
    [false, true, false],
    [false, true, true],
    [true, true, false],
    [true, true, true],
    [false, false, true],
    [true, false, true],
    [true, false, false],
];

/// What a task moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of files' contents.
    pub bytes: u64,
    /// Files, links and directories.
    pub items: u64,
}

/// A task that has ended with success.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub took: Duration,
    pub size: Size,
}

/// How long something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// At least, as a rule.
    pub least: Duration,
    /// At most, as a rule.
    pub most: Duration,
}

/// How long a task of this size takes, by earlier ones. `None`: there are too few of them.
pub(super) fn estimate(runs: &[Run], size: Size) -> Option<Range> {
    if runs.len() < RUNS_LEAST {
        return None;
    }
    let seconds = |run: &Run| run.took.as_secs_f64().max(1e-3);
    let mut fit = best(&runs.iter().map(|run| (terms(run.size), seconds(run))).collect::<Vec<_>>())?;
    let mut ratios: Vec<f64> = runs.iter().map(|run| seconds(run) / at(fit, terms(run.size)).max(1e-3)).collect();
    ratios.sort_by(f64::total_cmp);
    // A term that earlier tasks were too small to show: the fastest of them is the slowest that it can be.
    for (term, fitted) in fit.iter_mut().enumerate().skip(1) {
        let seen = runs.iter().map(|run| terms(run.size)[term]).fold(0.0, f64::max);
        if *fitted <= 0.0 && seen > 0.0 && terms(size)[term] > FAR * seen {
            let each = runs.iter().filter(|run| terms(run.size)[term] > 0.0);
            *fitted = each.map(|run| seconds(run) / terms(run.size)[term]).fold(f64::INFINITY, f64::min);
        }
    }
    // The fewer there were, the less their spread says.
    let narrowest = (1.6 + 6.0 / runs.len() as f64).min(WIDEST);
    let (low, high) = (quantile(&ratios, 0.0), quantile(&ratios, 1.0));
    let (middle, width) = ((low * high).sqrt(), (high / low).clamp(narrowest, WIDEST));
    let time = at(fit, terms(size)) * middle;
    let span = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    Some(Range { least: span(time / width.sqrt()), most: span(time * width.sqrt()) })
}

fn terms(size: Size) -> [f64; TERMS] {
    [1.0, size.bytes as f64, size.items as f64]
}

fn at(fit: [f64; TERMS], terms: [f64; TERMS]) -> f64 {
    fit.iter().zip(terms).map(|(each, count)| each * count).sum()
}

/// The value below which this part of the values lies.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    // The place is one of the slice: the part is less than one.
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

/// The times that fit best: by the least squares of relative errors.
fn best(runs: &[([f64; TERMS], f64)]) -> Option<[f64; TERMS]> {
    let error = |fit: [f64; TERMS]| runs.iter().map(|(terms, took)| (at(fit, *terms) / took - 1.0).powi(2)).sum();
    let fits: Vec<([f64; TERMS], f64)> =
        FITS.iter().filter_map(|used| solve(runs, *used)).map(|fit| (fit, error(fit))).collect();
    let least = fits.iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
    fits.into_iter().find(|(_, error)| *error <= least * ALIKE + 1e-9).map(|(fit, _)| fit)
}

/// The fit with these terms alone. `None`: the runs do not tell them apart, or one would be negative.
fn solve(runs: &[([f64; TERMS], f64)], used: [bool; TERMS]) -> Option<[f64; TERMS]> {
    let of = |terms: &[f64; TERMS], took: f64, term: usize| terms[term] / took;
    let scale: Vec<f64> = (0..TERMS)
        .map(|term| runs.iter().map(|(terms, took)| of(terms, *took, term).powi(2)).sum::<f64>().sqrt())
        .collect();
    let chosen: Vec<usize> = (0..TERMS).filter(|term| used[*term]).collect();
    if chosen.iter().any(|term| scale[*term] <= 0.0) {
        return None;
    }
    let scaled = |terms: &[f64; TERMS], took: f64, term: usize| of(terms, took, term) / scale[term];
    // The normal equations, with their right side as the last column.
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(chosen.len());
    for row in &chosen {
        let product = |column: &usize| {
            runs.iter().map(|(terms, took)| scaled(terms, *took, *row) * scaled(terms, *took, *column)).sum()
        };
        let right: f64 = runs.iter().map(|(terms, took)| scaled(terms, *took, *row)).sum();
        rows.push(chosen.iter().map(product).chain([right]).collect());
    }
    let count = chosen.len();
    for pivot in 0..count {
        let line = rows[pivot].clone();
        if line[pivot].abs() < 1e-9 {
            return None;
        }
        for (place, row) in rows.iter_mut().enumerate() {
            if place != pivot {
                let factor = row[pivot] / line[pivot];
                row.iter_mut().zip(&line).for_each(|(value, by)| *value -= factor * by);
            }
        }
    }
    let mut fit = [0.0; TERMS];
    for (place, term) in chosen.into_iter().enumerate() {
        fit[term] = rows[place][count] / rows[place][place] / scale[term];
    }
    fit.iter().all(|each| each.is_finite() && *each >= 0.0).then_some(fit)
}

#[cfg(test)]
mod tests {
    use carrack_core::chance::Chance;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn run(seconds: f64, bytes: u64, items: u64) -> Run {
        Run { took: Duration::from_secs_f64(seconds), size: Size { bytes, items } }
    }

    #[test]
    fn range_holds_for_tasks_of_ten_sizes() {
        for seed in 1..=60 {
            let mut noise = Chance::new(seed);
            let rate = 20e6 + 500e6 * noise.part();
            let (each, start) = (0.0002 + 0.004 * noise.part(), 0.2 + 3.0 * noise.part());
            let mut runs = Vec::new();
            let (mut held, mut told) = (0, 0);
            for number in 0..100 {
                let power = (number * 7) % 10;
                let size = Size { bytes: MIB << (2 * power), items: [1, 10_000, 40, 100_000, 3][number % 5] };
                let true_time = start + size.bytes as f64 / rate + size.items as f64 * each;
                // Between two thirds and one and a half times as long.
                let took = true_time * 1.5f64.powf(2.0 * noise.part() - 1.0);
                if let Some(range) = estimate(&runs, size) {
                    assert!(range.most.as_secs_f64() <= range.least.as_secs_f64() * 3.001, "seed {seed}: {range:?}");
                    told += 1;
                    held += i32::from(range.least.as_secs_f64() <= took && took <= range.most.as_secs_f64());
                } else {
                    assert!(runs.len() < RUNS_LEAST, "seed {seed}: nothing is said after {} tasks", runs.len());
                }
                runs.push(Run { took: Duration::from_secs_f64(took), size });
                let first = runs.len().saturating_sub(super::super::history::REMEMBERED);
                runs.drain(..first);
            }
            println!("seed {seed}: {held} of {told} held");
            assert!(held * 100 >= told * 80, "seed {seed}: {held} of {told} held");
        }
    }

    #[test]
    fn large_tasks_take_long_whatever_the_earlier_ones_took() {
        // Tasks that only cost their start, then 15 TiB and a million files.
        let runs: Vec<Run> = (0..20).map(|number| run(0.3, 1000 + number, 1)).collect();
        let range = estimate(&runs, Size { bytes: 15 << 40, items: 1 }).unwrap();
        assert!(range.least > Duration::from_secs(3600), "{range:?}");
        let range = estimate(&runs, Size { bytes: 1000, items: 1_000_000 }).unwrap();
        assert!(range.least > Duration::from_secs(3600), "{range:?}");
        // A rate that is known: 100 MiB/s.
        let runs: Vec<Run> = (1..6).map(|number| run(number as f64, number * 100 * MIB, 1)).collect();
        let range = estimate(&runs, Size { bytes: 1000 * 100 * MIB, items: 1 }).unwrap();
        assert!(range.least < Duration::from_secs(1000) && Duration::from_secs(1000) < range.most, "{range:?}");
        assert!(range.least > Duration::from_secs(500), "{range:?}");
    }

    #[test]
    fn nothing_is_said_after_two_tasks() {
        let runs = [run(1.0, MIB, 1), run(2.0, MIB * 2, 1)];
        assert_eq!(estimate(&runs, Size { bytes: MIB, items: 1 }), None);
        assert!(estimate(&[runs[0], runs[1], runs[0]], Size::default()).is_some());
    }
}
