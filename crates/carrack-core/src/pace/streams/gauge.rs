//! Measures what a number of streams brings, and how even that is.

use std::time::Duration;

use super::probe::Probe;
use super::sample::{Processors, Sample};

/// At the beginning windows still grow: nothing is measured.
const SETTLING: Duration = Duration::from_secs(2);
/// After a change the first part of a probe is not counted.
const IGNORED: Duration = Duration::from_secs(1);
/// The part of a probe that is.
const COUNTED: Duration = Duration::from_secs(2);
/// How long the first probe of a number takes.
pub(super) const TIME: Duration = IGNORED.saturating_add(COUNTED);
/// Weight of the newest sample in how uneven the rate is.
const WEIGHT_UNEVEN: f64 = 0.05;
/// Of values that are spread normally, the mean difference of two by the standard deviation: 2 / √π.
const DIFFERENCE: f64 = 1.128;

/// Makes probes of samples.
#[derive(Clone, Debug)]
pub(super) struct Gauge {
    processors: Processors,
    /// Files up to this size travel in bundles.
    bundled_file_bytes_max: u64,
    /// Where the probe began that is under way.
    begun: Option<Sample>,
    /// Nothing is measured before; counted from when all streams are there.
    ignored: Duration,
    /// Since when all streams are there.
    complete: Option<Duration>,
    /// The newest sample.
    last: Option<Sample>,
    /// The rate from the sample before to the newest, in bytes a second.
    rate: f64,
    /// See [`Gauge::uneven`].
    uneven: f64,
}

impl Gauge {
    /// Before the first sample.
    pub fn new(processors: Processors, bundled_file_bytes_max: u64) -> Self {
        Self {
            processors,
            bundled_file_bytes_max,
            begun: None,
            ignored: SETTLING,
            complete: None,
            last: None,
            rate: 0.0,
            uneven: 0.0,
        }
    }

    /// Another number of streams is wanted.
    pub fn handle_change(&mut self) {
        (self.begun, self.complete, self.last, self.ignored) = (None, None, None, IGNORED);
    }

    /// Goes on with the probe of so many streams; its result when it has come to its end.
    pub fn handle_sample(&mut self, sample: Sample, streams: u16) -> Option<Probe> {
        if sample.alive != streams {
            (self.begun, self.complete, self.last) = (None, None, None);
            // Those that come next need a moment as well.
            self.ignored = self.ignored.max(IGNORED);
            return None;
        }
        let complete = *self.complete.get_or_insert(sample.at);
        if sample.at < complete + self.ignored {
            return None;
        }
        self.compare_with_last(&sample);
        let begun = *self.begun.get_or_insert(sample);
        if sample.at.saturating_sub(begun.at) < COUNTED {
            return None;
        }
        // The next begins where this ends, unless something changes.
        self.begun = Some(sample);
        let bytes = sample.delivered.saturating_sub(begun.delivered);
        let items = sample.items.saturating_sub(begun.items);
        if bytes == 0 || bytes < items.saturating_mul(self.bundled_file_bytes_max) {
            return None;
        }
        Some(Probe::between(&begun, &sample, self.processors))
    }

    fn compare_with_last(&mut self, sample: &Sample) {
        let Some(last) = self.last.replace(*sample) else { return };
        let time = sample.at.saturating_sub(last.at).as_secs_f64();
        // An end may say anything of its clock.
        if time <= 0.0 {
            return;
        }
        let rate = sample.delivered.saturating_sub(last.delivered) as f64 / time;
        let before = std::mem::replace(&mut self.rate, rate);
        if before > 0.0 {
            // A probe is the mean of several samples.
            let samples = (COUNTED.as_secs_f64() / time).max(1.0);
            let uneven = (rate - before).abs() / rate.midpoint(before) / DIFFERENCE / samples.sqrt();
            self.uneven += (uneven - self.uneven) * if self.uneven == 0.0 { 1.0 } else { WEIGHT_UNEVEN };
        }
    }

    /// How far a probe's rate is from the mean, as a part of it: its standard deviation.
    pub fn uneven(&self) -> f64 {
        self.uneven
    }
}
