//! One copy that is made to be measured: its rate, second by second, and what it cost on both sides.

use std::time::{Duration, Instant};

use carrack_core::failure::{Failure, Side};
use carrack_core::report::{Event, LinkReport, PathTrace};
use carrack_core::request::CopyRequest;
use carrack_core::timeline::Sample;
use carrack_engine::{Context, Copy};
use carrack_measure::usage::Mark;

/// What one end has told of itself.
#[derive(Clone, Debug, Default)]
pub struct EndSeen {
    /// The way from it to the other end, where that was asked for and found.
    pub path: Option<PathTrace>,
    /// Everything that it told, in order, with its place on the axis of the copy in microseconds.
    pub samples: Vec<(u64, Sample)>,
}

impl EndSeen {
    /// Processors that its process kept busy; `None` if it told too little.
    pub fn processors(&self) -> Option<f64> {
        let ((began, first), (ended, last)) = self.samples.first().zip(self.samples.last())?;
        let elapsed = ended.checked_sub(*began).filter(|elapsed| *elapsed > 0)?;
        Some(last.processor.since(&first.processor).process_us as f64 / elapsed as f64)
    }

    /// Bytes that the devices under its files have read; `None` if none is known.
    pub fn device_bytes_read(&self) -> Option<u64> {
        let (_, last) = self.samples.last()?;
        // What another host tells may be any number.
        let read = last.devices.iter().map(|device| device.counts.read_bytes);
        (!last.devices.is_empty()).then(|| read.fold(0, u64::saturating_add))
    }
}

/// A copy that was measured.
#[derive(Clone, Debug, Default)]
pub struct Moved {
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
    let mut moved = Moved::default();
    let (began, mark) = (Instant::now(), Mark::now());
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
            Event::Path { side, path } => {
                let end = if side == Side::Source { &mut moved.source } else { &mut moved.destination };
                end.path = Some(path);
            }
            Event::Linked(link) => moved.link = Some(link),
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
    moved.not_read_back = report.files_not_read_back;
    moved.durable = report.durable;
    moved.link = report.link.or(moved.link);
    let failed = report.failures.into_iter().next().map(|item| item.failure);
    (moved, report.error.or(failed).filter(|_| !was_enough))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::timeline::{DeviceCounts, DeviceSample};

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
