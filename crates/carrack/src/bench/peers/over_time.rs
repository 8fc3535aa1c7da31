//! The rate of a run over time: what the network's interfaces of this host have carried, whoever moves the bytes.

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

/// Reads the counters of one host's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireCounters {
    /// Both ends are this host: its loopback carries all, and counts each byte as received alone.
    pub is_loopback: bool,
}

impl WireCounters {
    /// Bytes that the interfaces have received and sent since the host began; `None` where the kernel does not tell.
    pub fn bytes(self) -> Option<u64> {
        let said = std::fs::read_to_string("/proc/net/dev").ok()?;
        Some(self.counted(&said))
    }

    fn counted(self, said: &str) -> u64 {
        let of = |line: &str| {
            let (name, numbers) = line.split_once(':')?;
            let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
            let [received, _, _, _, _, _, _, _, sent, ..] = numbers[..] else { return None };
            match (self.is_loopback, name.trim() == LOOPBACK) {
                (true, true) => Some(received),
                // The larger direction is the data's; the other one carries what answers it.
                (false, false) => Some(received.max(sent)),
                _ => None,
            }
        };
        said.lines().filter_map(of).max().unwrap_or(0)
    }
}

/// What was carried over the time of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct OverTime {
    /// Bytes by when they were carried.
    pub series: Series,
    last: Option<u64>,
    /// From the start to the last reading.
    seconds: f64,
}

impl Default for OverTime {
    fn default() -> Self {
        // A slot for each reading.
        Self { series: Series::new(EVERY, Vec::new()), last: None, seconds: 0.0 }
    }
}

impl OverTime {
    /// Takes what the counters say so long after the start.
    pub fn add(&mut self, at: Duration, bytes: Option<u64>) {
        let Some(bytes) = bytes else { return };
        if let Some(last) = self.last.replace(bytes) {
            self.series.add(at.saturating_sub(EVERY / 2), bytes.saturating_sub(last) as f64);
        }
        self.seconds = at.as_secs_f64();
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
        let slot = self.series.slot().as_secs_f64();
        let each = (1.0 / slot).ceil().max(1.0) as usize;
        let span = slot * each as f64;
        let whole = self.series.amounts().chunks_exact(each);
        whole.map(|slots| (span, slots.iter().sum())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Inter-|   Receive\n face |bytes packets\n    lo: 700 1 0 0 0 0 0 0 700 1\n\
        eth0: 100 1 0 0 0 0 0 0 5000 1\n  eth1: 90 1 0 0 0 0 0 0 10 1\n  odd: x\n";

    #[test]
    fn interface_that_carries_most_counts_and_the_loopback_only_within_a_host() {
        let of = |is_loopback| WireCounters { is_loopback }.counted(SAID);
        assert_eq!((of(false), of(true)), (5000, 700));
        assert_eq!(WireCounters { is_loopback: false }.counted(""), 0);
    }

    #[test]
    fn peak_and_fall_are_those_of_whole_seconds() {
        let mut over = OverTime::default();
        let mut bytes = 1000;
        for quarter in 0..40_u64 {
            over.add(EVERY * quarter as u32, Some(bytes));
            bytes += if quarter < 20 { 25_000_000 } else { 5_000_000 };
        }
        let peak = over.peak().expect("ten seconds have one");
        assert!((99e6..=101e6).contains(&peak), "{peak}");
        let fall = over.fall().expect("it fell");
        assert!((4.0..=6.0).contains(&fall.at) && fall.after < 30e6, "{fall:?}");
        let mut short = OverTime::default();
        (0..8_u64).for_each(|quarter| short.add(EVERY * quarter as u32, Some(quarter * 1000)));
        assert_eq!((short.peak(), short.fall()), (None, None));
    }
}
