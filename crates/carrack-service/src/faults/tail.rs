//! How likely it is that chance puts so many faults at one place: Fisher's exact test.
//!
//! Of a number of tasks, some were at a place, and some have a fault. If a fault came to every task with the same
//! chance, how many of the tasks at the place have one would follow the hypergeometric distribution. With odds that are
//! greater at the place it follows Fisher's noncentral one. Both are computed exactly, in logarithms.

/// Tasks at a place and elsewhere, and how many of them have a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultTable {
    /// At the place.
    pub tasks: usize,
    /// Of these, with a fault there.
    pub faulty: usize,
    /// Elsewhere.
    pub tasks_elsewhere: usize,
    /// Of these, with a fault anywhere.
    pub faulty_elsewhere: usize,
}

/// Logarithms of factorials, from that of 0 on.
#[derive(Debug)]
pub struct Factorials(Vec<f64>);

impl Factorials {
    /// Up to that of a number.
    pub fn up_to(most: usize) -> Self {
        let sums = (1..=most).scan(0.0, |sum, number| {
            *sum += (number as f64).ln();
            Some(*sum)
        });
        Self(std::iter::once(0.0).chain(sums).collect())
    }

    fn ln_choose(&self, of: usize, some: usize) -> f64 {
        self.0[of] - self.0[some] - self.0[of - some]
    }

    /// The logarithm of the chance that at least so many faults are at the place, where the odds of a fault are
    /// `odds_ratio` times those elsewhere.
    pub fn ln_tail(&self, table: FaultTable, odds_ratio: f64) -> f64 {
        let FaultTable { tasks, faulty, tasks_elsewhere, faulty_elsewhere } = table;
        let marked = faulty + faulty_elsewhere;
        let (least, most) = (marked.saturating_sub(tasks_elsewhere), tasks.min(marked));
        let ln_odds = odds_ratio.ln();
        let ln_weight = |there: usize| {
            let ways = self.ln_choose(tasks, there) + self.ln_choose(tasks_elsewhere, marked - there);
            ways + there as f64 * ln_odds
        };
        let tail = ln_sum((faulty..=most).map(ln_weight));
        let rest = ln_sum((least..faulty).map(ln_weight));
        // Of two logarithms the greater one is taken out, so that nothing overflows.
        let all = ln_sum([tail, rest].into_iter());
        (tail - all).min(0.0)
    }
}

/// The logarithm of a sum, from those of its terms.
fn ln_sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY { most } else { most + terms.map(|term| (term - most).exp()).sum::<f64>().ln() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(tasks: usize, faulty: usize, tasks_elsewhere: usize, faulty_elsewhere: usize, odds_ratio: f64) -> f64 {
        let table = FaultTable { tasks, faulty, tasks_elsewhere, faulty_elsewhere };
        Factorials::up_to(tasks + tasks_elsewhere).ln_tail(table, odds_ratio).exp()
    }

    #[test]
    fn tail_is_that_of_the_exact_test() {
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        // Fisher's tea: all four cups right of eight is one way of 70; three or four are 17 of 70.
        near(tail(4, 4, 4, 0, 1.0), 1.0 / 70.0);
        near(tail(4, 3, 4, 1, 1.0), 17.0 / 70.0);
        near(tail(4, 0, 4, 4, 1.0), 1.0);
        // Twice the odds: the ways of 0 to 4 weigh 1, 2, 4, 8 and 16 times as much.
        near(tail(4, 4, 4, 0, 2.0), 16.0 / f64::from(1 + 16 * 2 + 36 * 4 + 16 * 8 + 16));
        near(tail(10, 0, 90, 0, 1.0), 1.0);
        // One task in a hundred, and it is the one at the place.
        near(tail(1, 1, 99, 0, 1.0), 0.01);
    }

    #[test]
    fn tail_of_many_is_a_number() {
        let table = FaultTable { tasks: 500, faulty: 400, tasks_elsewhere: 99_500, faulty_elsewhere: 900 };
        let factorials = Factorials::up_to(100_000);
        let (alike, twice) = (factorials.ln_tail(table, 1.0), factorials.ln_tail(table, 2.0));
        assert!(alike.is_finite() && alike < -1000.0, "{alike}");
        assert!(twice > alike && twice < -700.0, "{twice}");
    }
}
