//! The rate of a run over time: what the network's interfaces of this host have carried, whoever moves the bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use carrack_core::pace::limit::{StepDown, step_down};
use carrack_measure::series::Series;

/// How often the kernel's counters are read.
pub const EVERY: Duration = Duration::from_millis(250);
/// A shorter run has no peak: its beginning and its end are most of it.
const LEAST: Duration = Duration::from_secs(3);
/// A fall has so many seconds before it.
const BEFORE_SECONDS: f64 = 3.0;
const LOOPBACK: &str = "lo";

/// What each interface of this host has carried since the host began, by its name: received, and sent.
pub type WireCounters = BTreeMap<String, [u64; 2]>;

/// Reads them; none where the kernel does not tell.
pub fn counters() -> WireCounters {
    parse(&std::fs::read_to_string("/proc/net/dev").unwrap_or_default())
}

fn parse(said: &str) -> WireCounters {
    let of = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [received, _, _, _, _, _, _, _, sent, ..] = numbers[..] else { return None };
        Some((name.trim().to_owned(), [received, sent]))
    };
    said.lines().filter_map(of).collect()
}

/// What was carried over the time of a run, by interface and direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    all: BTreeMap<(String, usize), Series>,
    last: WireCounters,
    /// From the start to the last reading.
    seconds: f64,
}

impl OverTime {
    /// Takes what the counters say so long after the start. The loopback carries data only where both ends are here.
    pub fn add(&mut self, at: Duration, now: WireCounters, within_host: bool) {
        for (name, now) in now.iter().filter(|(name, _)| within_host || *name != LOOPBACK) {
            let Some(last) = self.last.get(name) else { continue };
            for way in [0, 1] {
                let series = self.all.entry((name.clone(), way)).or_insert_with(|| Series::new(EVERY, Vec::new()));
                series.add(at.saturating_sub(EVERY / 2), now[way].saturating_sub(last[way]) as f64);
            }
        }
        self.last = now;
        self.seconds = at.as_secs_f64();
    }

    /// The interface and direction that carried most: that is the data, and what answers it goes the other way.
    pub fn series(&self) -> Option<&Series> {
        let sum = |series: &Series| series.amounts().iter().sum::<f64>();
        let most = self.all.values().max_by(|one, other| sum(one).total_cmp(&sum(other)));
        most.filter(|series| sum(series) > 0.0)
    }

    /// Bytes a second in the fastest second.
    pub fn peak(&self) -> Option<f64> {
        let seconds = self.by_second();
        (self.seconds >= LEAST.as_secs_f64())
            .then(|| seconds.iter().map(|(seconds, bytes)| bytes / seconds).fold(0.0, f64::max))
            .filter(|peak| *peak > 0.0)
    }

    /// The moment at which it became slow for good.
    pub fn fall(&self) -> Option<StepDown> {
        step_down(&self.by_second(), BEFORE_SECONDS)
    }

    fn by_second(&self) -> Vec<(f64, f64)> {
        self.series().map(|series| series.by_second(Duration::MAX)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Inter-|   Receive\n face |bytes packets\n    lo: 700 1 0 0 0 0 0 0 700 1\n\
        eth0: 100 1 0 0 0 0 0 0 5000 1\n  eth1: 90 1 0 0 0 0 0 0 10 1\n  odd: x\n";

    #[test]
    fn counters_are_those_of_each_interface() {
        let all = parse(SAID);
        assert_eq!((all["lo"], all["eth0"], all.len()), ([700, 700], [100, 5000], 3));
        assert_eq!(parse(""), WireCounters::new());
    }

    /// A card whose counters are as `before`, and then so much more each quarter of a second.
    fn over(cards: &[(&str, [u64; 2], [u64; 2])], quarters: u64, within_host: bool) -> OverTime {
        let mut over = OverTime::default();
        for quarter in 0..quarters {
            let of = |(name, before, more): &(&str, [u64; 2], [u64; 2])| {
                ((*name).to_owned(), [0, 1].map(|way| before[way] + more[way] * quarter))
            };
            over.add(EVERY * quarter as u32, cards.iter().map(of).collect(), within_host);
        }
        over
    }

    #[test]
    fn what_a_run_has_carried_counts_and_not_what_was_carried_before() {
        // The card of the management has carried more since the host began; the data's has received more than sent.
        let cards =
            [("mgmt0", [9_000_000_000_000, 5], [500, 500]), ("data0", [4_000_000_000_000, 7], [40_000, 250_000_000])];
        let peak = over(&cards, 24, false).peak().expect("six seconds have one");
        assert!((0.99e9..=1.01e9).contains(&peak), "{peak}");
        let lo = [("lo", [0, 0], [1_000_000, 1_000_000])];
        assert_eq!(over(&lo, 24, false).peak(), None);
        assert!(over(&lo, 24, true).peak().is_some_and(|peak| (3.9e6..=4.1e6).contains(&peak)));
    }

    #[test]
    fn peak_and_fall_are_those_of_whole_seconds() {
        let mut over_all = OverTime::default();
        let mut bytes = 1000;
        for quarter in 0..40_u64 {
            over_all.add(EVERY * quarter as u32, WireCounters::from([("eth0".to_owned(), [0, bytes])]), false);
            bytes += if quarter < 20 { 25_000_000 } else { 5_000_000 };
        }
        let peak = over_all.peak().expect("ten seconds have one");
        assert!((99e6..=101e6).contains(&peak), "{peak}");
        let fall = over_all.fall().expect("it fell");
        assert!((4.0..=6.0).contains(&fall.at) && fall.after < 30e6, "{fall:?}");
        let short = over(&[("eth0", [0, 0], [0, 1000])], 8, false);
        assert_eq!((short.peak(), short.fall()), (None, None));
    }
}
