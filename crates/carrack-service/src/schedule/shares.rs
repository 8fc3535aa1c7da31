//! How much worker time each owner has used lately.

use std::collections::BTreeMap;
use std::time::Duration;

/// After this time half of what was used counts.
const HALF_LIFE: Duration = Duration::from_secs(3600);

/// Worker time by owner, fading. In memory only: after a restart of the service all owners begin alike.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    seconds: BTreeMap<String, f64>,
    at: Duration,
}

impl Shares {
    /// Counts the time since the last call for each owner who has run workers in it, as many as are said.
    pub fn advance<'a>(&mut self, now: Duration, running: impl IntoIterator<Item = (&'a str, u32)>) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = now;
        let fade = 0.5f64.powf(passed / HALF_LIFE.as_secs_f64());
        self.seconds.values_mut().for_each(|seconds| *seconds *= fade);
        for (owner, workers) in running {
            *self.seconds.entry(owner.to_owned()).or_default() += passed * f64::from(workers);
        }
        self.seconds.retain(|_, seconds| *seconds > 0.5);
    }

    /// Worker time that an owner has used lately.
    pub fn used(&self, owner: &str) -> Duration {
        Duration::from_secs_f64(self.seconds.get(owner).copied().unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_by_worker_and_half_of_it_after_an_hour() {
        let mut shares = Shares::default();
        shares.advance(Duration::from_secs(10), []);
        shares.advance(Duration::from_secs(110), [("ann", 2), ("bob", 1)]);
        assert_eq!(shares.used("ann"), Duration::from_secs(200));
        assert_eq!(shares.used("bob"), Duration::from_secs(100));
        shares.advance(Duration::from_secs(3710), []);
        assert!((shares.used("ann").as_secs_f64() - 100.0).abs() < 0.01, "{:?}", shares.used("ann"));
        assert_eq!(shares.used("eve"), Duration::ZERO);
    }
}
