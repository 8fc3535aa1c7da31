//! Samples of one end over a whole copy, in bounded memory.

use super::sample::Sample;

/// Memory for the samples of one end, without what they tell of each stream, in bytes.
const SAMPLES_BYTES: usize = 1_200 << 10;
/// Memory for what the samples of one end tell of each stream, in bytes.
const STREAMS_BYTES: usize = 2_300 << 10;

/// A sample at its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Since the copy began, in microseconds.
    pub at_us: u64,
    /// What that may be wrong by, in microseconds.
    pub error_us: u64,
    /// What was there. Counters have all sessions of the copy together; only those of a single stream are of its
    /// session alone.
    pub sample: Sample,
}

impl Point {
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<Sample>() + self.sample.memory_bytes()
    }
}

/// Samples of one end in their order. When what they tell of each stream takes too much memory, only some keep it; when
/// the rest does, neighbours become one. Counters go on from one to the next, so nothing is lost but the moments in
/// between, and there is no gap.
#[derive(Clone, Debug, Default)]
pub struct Series {
    points: Vec<Point>,
    /// What two neighbours are apart at least, but the newest from the one before.
    apart_us: u64,
    /// The same of those that tell of each stream.
    streams_apart_us: u64,
    /// The last point but the newest that tells of each stream.
    told_us: Option<u64>,
    /// Beside the room of the points themselves.
    samples_bytes: usize,
    streams_bytes: usize,
}

impl Series {
    /// The samples, in their order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// What two samples are apart at least by now, in microseconds; 0 where all were kept.
    pub fn apart_us(&self) -> u64 {
        self.apart_us
    }

    /// Takes a sample. One that is not later than the last is passed over: clocks do not go backwards, and the next
    /// sample has everything that this one has.
    pub fn push(&mut self, mut point: Point) {
        if self.points.last().is_some_and(|last| point.at_us <= last.at_us) {
            return;
        }
        point.sample.shrink();
        self.add(point);
        while self.streams_bytes > STREAMS_BYTES && self.points.len() > 2 {
            self.streams_apart_us = self.wider(self.streams_apart_us, |point| !point.sample.streams.is_empty());
            self.thin();
        }
        while self.samples_bytes + self.room_bytes() > SAMPLES_BYTES && self.points.len() > 2 {
            self.apart_us = self.wider(self.apart_us, |_| true);
            self.thin();
        }
    }

    /// Memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.room_bytes() + self.samples_bytes + self.streams_bytes
    }

    fn room_bytes(&self) -> usize {
        self.points.capacity() * size_of::<Point>()
    }

    /// Twice as far apart as those are by now that count.
    fn wider(&self, apart_us: u64, counts: impl Fn(&Point) -> bool) -> u64 {
        let span = |points: &[Point]| Some(points.last()?.at_us - points.first()?.at_us);
        let count = self.points.iter().filter(|point| counts(point)).count() as u64;
        let now = span(&self.points).unwrap_or(0) / count.max(1);
        apart_us.max(now).max(1).saturating_mul(2)
    }

    /// Puts all that is there in again, by the present distances.
    fn thin(&mut self) {
        let points = std::mem::take(&mut self.points);
        (self.samples_bytes, self.streams_bytes, self.told_us) = (0, 0, None);
        points.into_iter().for_each(|point| self.add(point));
        self.points.shrink_to_fit();
    }

    fn add(&mut self, mut point: Point) {
        match &mut self.points[..] {
            // The newest is as close as it happens to be; it makes way for the next.
            [.., before, last] if last.at_us - before.at_us < self.apart_us => {
                point.sample = point.sample.merged(&last.sample);
                let last = self.points.pop();
                last.iter().for_each(|last| self.count_out(last));
            }
            [.., last] if !last.sample.streams.is_empty() => {
                let is_close = |told: u64| last.at_us - told < self.streams_apart_us;
                if self.told_us.is_some_and(is_close) {
                    self.streams_bytes -= last.sample.streams_bytes();
                    last.sample.streams = Vec::new();
                } else {
                    self.told_us = Some(last.at_us);
                }
            }
            _ => {}
        }
        let all = point.memory_bytes() - size_of::<Point>();
        self.samples_bytes += all - point.sample.streams_bytes();
        self.streams_bytes += point.sample.streams_bytes();
        if self.points.len() == self.points.capacity() {
            // Less than twice as much: what is not used counts, too.
            self.points.reserve_exact(self.points.len() / 8 + 16);
        }
        self.points.push(point);
    }

    fn count_out(&mut self, point: &Point) {
        let all = point.memory_bytes() - size_of::<Point>();
        self.samples_bytes -= all - point.sample.streams_bytes();
        self.streams_bytes -= point.sample.streams_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{DeviceSample, Queue, QueueFill, StreamSample};

    fn sample(second: u64, streams: u16) -> Sample {
        let mut sample = Sample { at_us: second * 1_000_000, bytes: second * 1000, ..Sample::default() };
        sample.streams = (0..streams).map(|number| StreamSample { number, ..StreamSample::default() }).collect();
        sample.queues = vec![QueueFill { queue: Queue::Commits, used: second % 100, size: 256 }; 3];
        sample.devices = vec![DeviceSample { name: "nvme0n1".into(), ..DeviceSample::default() }; 4];
        // Of three samples one says how long the round trip was, once very long.
        sample.state.rtt_us = if second == 77_777 { 5_000_000 } else { second % 3 };
        sample
    }

    fn point(second: u64, streams: u16) -> Point {
        Point { at_us: second * 1_000_000, error_us: 0, sample: sample(second, streams) }
    }

    /// A week at one a second: memory is bounded, the points are evenly apart,
    /// and the counters are those of their moments.
    #[test]
    fn week_of_samples_fits_into_memory_without_a_gap() {
        const WEEK: u64 = 7 * 86_400;
        for streams in [0, 32] {
            let mut series = Series::default();
            let mut most = 0;
            for second in 0..=WEEK {
                series.push(point(second, streams));
                most = most.max(series.memory_bytes());
            }
            assert!(most < 7 << 19, "{most} bytes for one end of {streams} streams");
            let points = series.points();
            assert!(points.len() > 400, "{} points", points.len());
            assert_eq!((points[0].at_us, points[points.len() - 1].at_us), (0, WEEK * 1_000_000));
            let widest = points.windows(2).map(|pair| pair[1].at_us - pair[0].at_us).max().unwrap();
            assert!(widest <= 2 * series.apart_us().max(500_000), "{widest} µs, {} are usual", series.apart_us());
            assert!(points.iter().all(|point| point.sample.bytes == point.at_us / 1000), "a counter of another moment");
            assert!(points.iter().any(|point| point.sample.state.rtt_us == 5_000_000), "a peak was lost");
            let told: Vec<&Point> = points.iter().filter(|point| !point.sample.streams.is_empty()).collect();
            assert!(streams == 0 || told.len() > 25, "{} of {} points tell of streams", told.len(), points.len());
            assert!(streams == 0 || told.last().unwrap().at_us == WEEK * 1_000_000);
            // What was counted is what is there.
            let counted: usize = points.iter().map(|point| point.memory_bytes() - size_of::<Point>()).sum();
            assert_eq!(series.samples_bytes + series.streams_bytes, counted);
        }
    }

    #[test]
    fn short_copy_keeps_every_sample() {
        let mut series = Series::default();
        (0..300).for_each(|second| series.push(point(second, 32)));
        assert_eq!((series.points().len(), series.apart_us()), (300, 0));
        assert!(series.points().iter().all(|point| point.sample.streams.len() == 32));
    }

    #[test]
    fn clock_that_goes_backwards_or_leaps_costs_nothing() {
        let mut series = Series::default();
        for at_us in [5, 5, 3, u64::MAX, 7, u64::MAX, 0] {
            series.push(Point { at_us, ..Point::default() });
        }
        assert_eq!(series.points().len(), 2);
        let mut series = Series::default();
        (0..100_000).for_each(|at_us| series.push(Point { at_us, ..Point::default() }));
        series.push(Point { at_us: u64::MAX, ..Point::default() });
        (0..9).for_each(|_| series.push(Point { at_us: u64::MAX, ..Point::default() }));
        assert!(series.memory_bytes() < 2 << 20);
        assert_eq!(series.points().last().map(|point| point.at_us), Some(u64::MAX));
    }
}
