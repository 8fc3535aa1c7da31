//! One copy that is made to be measured: its rate, second by second, and what it cost on both sides.

use std::time::{Duration, Instant};

use carrack_core::failure::{Failure, Side};
use carrack_core::report::{Event, LinkReport, PathTrace};
use carrack_core::request::CopyRequest;
use carrack_core::timeline::{Sample, StartStep};
use carrack_core::tuning::Tuning;
use carrack_engine::{Context, Copy};
use carrack_measure::usage::Mark;

/// Samples come so often. The first is as far from the beginning of the transfer.
pub const SAMPLE_INTERVAL: Duration = Tuning::DEFAULT.sample_interval;
/// So long an end has copied when it begins to count processors and devices.
pub const UNCOUNTED: Duration = Tuning::DEFAULT.unmeasured;
/// In less time processors are not counted: it would be chance.
const COUNTED_LEAST: Duration = UNCOUNTED;

/// What one end has told of itself.
#[derive(Clone, Debug, Default)]
pub struct EndSeen {
    /// When it began the transfer, on the axis of the copy in microseconds; `None` if it did not tell.
    pub begin_us: Option<u64>,
    /// The way from it to the other end, where that was asked for and found.
    pub path: Option<PathTrace>,
    /// Everything that it told, in order, with its place on the axis of the copy in microseconds.
    pub samples: Vec<(u64, Sample)>,
}

impl EndSeen {
    /// When it began the transfer, on the axis of the copy in microseconds, as it told or as the first sample says.
    pub fn began_us(&self) -> Option<u64> {
        let first = self.samples.first().map(|(at, _)| at.saturating_sub(micros(SAMPLE_INTERVAL)));
        self.begin_us.or(first)
    }

    /// Processors that its process kept busy; `None` if it told too little.
    pub fn processors(&self) -> Option<f64> {
        // One that did not tell when it began may have ended before its first sample was due.
        let begin = self.begin_us.or_else(|| self.began_us().filter(|_| self.samples.len() > 1))?;
        let (ended, last) = self.samples.last()?;
        let counted = ended.checked_sub(begin.saturating_add(micros(UNCOUNTED)))?;
        (counted >= micros(COUNTED_LEAST)).then(|| last.processor.process_us as f64 / counted as f64)
    }

    /// Bytes that the devices under its files have read; `None` if none is known.
    pub fn device_bytes_read(&self) -> Option<u64> {
        let (_, last) = self.samples.last()?;
        // What another host tells may be any number.
        let read = last.devices.iter().map(|device| device.counts.read_bytes);
        (!last.devices.is_empty()).then(|| read.fold(0, u64::saturating_add))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A copy that was measured.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// The zero of the copy's axis.
    pub start: Option<Instant>,
    /// When its data connections were there.
    pub linked: Option<Instant>,
    /// Bytes that came to their end.
    pub bytes: u64,
    /// From the link being made to the last publication.
    pub moving: Duration,
    /// Bytes that had landed so long after the first event, as progress was told.
    pub landed: Vec<(Duration, u64)>,
    /// How the data ran.
    pub link: Option<LinkReport>,
    /// Processors that this process kept busy, whichever ends were in it.
    pub here: f64,
    /// What the source's end told.
    pub source: EndSeen,
    /// What the destination's end told.
    pub destination: EndSeen,
    /// Files that were to be read back from storage and were not: it is memory.
    pub not_read_back: u64,
    /// Everything had reached stable storage; `None` where nothing is kept.
    pub durable: Option<bool>,
}

impl Moved {
    /// Bytes a second while it moved.
    pub fn rate(&self) -> f64 {
        let seconds = self.moving.as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 / seconds } else { 0.0 }
    }

    /// When bytes began to move, as the receiver told, or as they landed.
    pub fn began(&self) -> Option<Instant> {
        let landed = self.landed.iter().find(|(_, bytes)| *bytes > 0).map(|(at, _)| *at);
        let told = self.destination.began_us().map(Duration::from_micros);
        self.start?.checked_add(told.or(landed)?)
    }
}

/// Told what has been seen so far; whether that is enough.
pub type Enough<'a> = &'a mut dyn FnMut(&Moved) -> bool;

/// Makes a copy and watches it to its end. `note` takes what a person should know.
///
/// # Errors
/// What ended the copy early, or failed in it.
pub fn watch(request: CopyRequest, context: &Context, note: &mut dyn FnMut(&str)) -> Result<Moved, Failure> {
    let (moved, failure) = watch_until(request, context, note, &mut |_| false);
    failure.map_or(Ok(moved), Err)
}

/// Makes a copy and watches it until that is `enough`. What was seen is there in any case, and with it what ended the
/// copy early, or failed in it; not that it was enough.
pub fn watch_until(
    request: CopyRequest,
    context: &Context,
    note: &mut dyn FnMut(&str),
    enough: Enough<'_>,
) -> (Moved, Option<Failure>) {
    let (began, mark) = (Instant::now(), Mark::now());
    let mut moved = Moved { start: Some(began), ..Moved::default() };
    let mut copy = Copy::start(request, context);
    let mut was_enough = false;
    while let Some(event) = copy.next_event() {
        match event {
            Event::Progress(progress) => {
                moved.landed.push((began.elapsed(), progress.bytes_done));
            }
            Event::Sample(sample) => {
                let end = if sample.side == Side::Source { &mut moved.source } else { &mut moved.destination };
                end.samples.push((sample.point.at_us, sample.point.sample));
            }
            Event::Step { taken, .. } if taken.step == StartStep::Begin => match taken.side {
                Side::Source => moved.source.begin_us = Some(taken.at_us),
                _ => moved.destination.begin_us = Some(taken.at_us),
            },
            Event::Path { side, path } => {
                let end = if side == Side::Source { &mut moved.source } else { &mut moved.destination };
                end.path = Some(path);
            }
            Event::Linked(link) => {
                moved.link = Some(link);
                moved.linked = Some(Instant::now());
            }
            Event::Note(text) => note(&text),
            _ => {}
        }
        if !was_enough && enough(&moved) {
            was_enough = true;
            copy.cancel();
        }
    }
    let report = copy.wait();
    moved.here = mark.usage().process;
    moved.moving = report.moving;
    moved.bytes = report.counts.bytes;
    moved.not_read_back = report.at_destination.files_not_read_back;
    moved.durable = report.durable;
    moved.link = report.link.or(moved.link);
    let failed = report.failures.into_iter().next().map(|item| item.failure);
    (moved, report.error.or(failed).filter(|_| !was_enough))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::timeline::{DeviceCounts, DeviceSample, ProcessorTime};

    fn sample(at: u64, process_us: u64) -> (u64, Sample) {
        (at, Sample { processor: ProcessorTime { process_us, ..ProcessorTime::default() }, ..Sample::default() })
    }

    #[test]
    fn processors_are_those_of_the_whole_copy() {
        let seen = |begin_us, samples| EndSeen { begin_us, samples, ..EndSeen::default() };
        let percent = |end: EndSeen| end.processors().map(|used| (used * 100.0).round());
        // It is counted from a tenth of a second on.
        assert_eq!(percent(seen(Some(200_000), vec![sample(800_000, 250_000)])), Some(50.0), "it ends within a second");
        let busy_first = vec![sample(1_200_000, 900_000), sample(2_100_000, 900_000)];
        assert_eq!(percent(seen(Some(200_000), busy_first.clone())), Some(50.0), "the first second counts, too");
        assert_eq!(percent(seen(None, busy_first)), Some(50.0), "an end that does not tell when it began");
        assert_eq!(percent(seen(None, vec![sample(800_000, 250_000)])), None, "nobody knows over which time");
        assert_eq!(percent(seen(Some(0), vec![sample(90_000, 0)])), None, "nothing was counted");
        assert_eq!(percent(EndSeen::default()), None);
    }

    #[test]
    fn devices_of_another_host_may_tell_any_number() {
        let device = |read_bytes: u64| DeviceSample {
            counts: DeviceCounts { read_bytes, ..DeviceCounts::default() },
            ..DeviceSample::default()
        };
        let seen = |devices: Vec<DeviceSample>| EndSeen {
            samples: vec![(1, Sample { devices, ..Sample::default() })],
            ..EndSeen::default()
        };
        assert_eq!(seen(vec![device(2), device(3)]).device_bytes_read(), Some(5));
        assert_eq!(seen(vec![device(u64::MAX), device(3)]).device_bytes_read(), Some(u64::MAX));
        assert_eq!((seen(Vec::new()).device_bytes_read(), EndSeen::default().device_bytes_read()), (None, None));
    }
}
