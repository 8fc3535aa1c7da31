//! The timeline of a copy: what both ends measured once a second, on one axis, and what happened when.
//!
//! An end takes a [`Sample`] a second. Its counters are cumulative, so a sample that is lost loses nothing but its
//! moment. The command places each on its own axis by what it knows of the end's clock ([`ClockOffset`]), and keeps
//! both ends in bounded memory, however long the copy takes ([`Series`]).

mod absence;
mod clock;
mod counters;
mod path;
mod sample;
mod series;
mod start;
mod stretch;
mod verdict;

pub use absence::{away_us, with_absence};
pub use clock::ClockOffset;
pub use counters::{
    DeviceCounts, InterfaceCounts, Pressure, ProcessorState, ProcessorTime, StageTime, TcpCounts, TcpState, ThreadTime,
    Throttled,
};
pub use sample::{DeviceSample, InterfaceSample, Queue, QueueFill, Sample, StageTimes, StreamSample, Work};
pub use series::{Point, Series};
pub use start::{Start, StartStep, StepTaken, StepTime};
pub use stretch::{Fact, Stretch};
pub use verdict::{Verdict, verdict};

use crate::failure::Side;
use crate::limits;

/// Both ends of a copy on one axis: microseconds since the copy began, by the clock of the command.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    source: Series,
    destination: Series,
    marks: Vec<Mark>,
    marks_left_out: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Since the copy began, in microseconds.
    pub at_us: u64,
    /// What.
    pub what: Happened,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// A session began: both ends are there, and so many data streams were made.
    Session {
        /// Data streams to begin with.
        streams: u16,
    },
    /// Another number of data streams is tried, or taken back.
    Streams {
        /// Until now.
        before: u16,
        /// From now on.
        streams: u16,
    },
    /// A data stream was lost; what it carried goes on another.
    StreamLost,
    /// A data stream has ended as it was asked to.
    StreamRetired,
    /// The connection to an end, or the whole link, was lost.
    SessionLost,
    /// A step of a session's start was taken.
    Step {
        /// Whose.
        side: Side,
        /// Which.
        step: StartStep,
    },
    /// The rate fell.
    RateFell {
        /// Bytes a second from now on.
        rate: u64,
        /// Bytes a second until now.
        usual: u64,
    },
}

impl Timeline {
    /// The samples of an end. Of other sides there are none.
    pub fn series(&self, side: Side) -> Option<&Series> {
        match side {
            Side::Source => Some(&self.source),
            Side::Destination => Some(&self.destination),
            _ => None,
        }
    }

    /// Takes a sample of an end; those of other sides are passed over.
    pub fn push(&mut self, side: Side, point: Point) {
        match side {
            Side::Source => self.source.push(point),
            Side::Destination => self.destination.push(point),
            _ => {}
        }
    }

    /// What happened, in the order of its moments.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// How much more happened than was kept.
    pub fn marks_left_out(&self) -> u64 {
        self.marks_left_out
    }

    /// Marks what happened. Beyond [`limits::TIMELINE_MARKS`] the oldest of the second half makes way, so that both how
    /// it began and how it went lately stay to be seen.
    pub fn mark(&mut self, at_us: u64, what: Happened) {
        if self.marks.len() >= limits::TIMELINE_MARKS {
            self.marks.remove(limits::TIMELINE_MARKS / 2);
            self.marks_left_out += 1;
        }
        // A fall of the rate is known some time after it.
        let place = self.marks.partition_point(|mark| mark.at_us <= at_us);
        self.marks.insert(place, Mark { at_us, what });
    }

    /// Memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let ends = self.source.memory_bytes() + self.destination.memory_bytes();
        ends + self.marks.capacity() * size_of::<Mark>() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_bounded_and_the_first_and_the_last_stay() {
        let mut timeline = Timeline::default();
        for at_us in 0..100_000 {
            timeline.mark(at_us, Happened::StreamLost);
        }
        let marks = timeline.marks();
        assert_eq!(marks.len(), limits::TIMELINE_MARKS);
        assert_eq!((marks[0].at_us, marks[marks.len() - 1].at_us), (0, 99_999));
        assert_eq!(timeline.marks_left_out(), 100_000 - limits::TIMELINE_MARKS as u64);
    }

    /// Both ends for a week, with all the streams that there may be.
    #[test]
    fn timeline_of_a_week_takes_less_than_eight_mebibytes() {
        let mut timeline = Timeline::default();
        let streams: Vec<StreamSample> =
            (0..limits::STREAMS).map(|number| StreamSample { number, ..StreamSample::default() }).collect();
        for second in 0..7 * 86_400_u64 {
            let sample = Sample { bytes: second, streams: streams.clone(), ..Sample::default() };
            let point = Point { at_us: second * 1_000_000, error_us: 0, sample };
            timeline.push(Side::Source, point.clone());
            timeline.push(Side::Destination, point);
            timeline.mark(second, Happened::StreamLost);
        }
        let bytes = timeline.memory_bytes();
        assert!(bytes < 8 << 20, "{bytes}");
        for side in [Side::Source, Side::Destination] {
            let last = timeline.series(side).and_then(|series| series.points().last());
            assert_eq!(last.map(|point| point.sample.bytes), Some(7 * 86_400 - 1));
        }
        assert!(timeline.series(Side::Link).is_none());
    }
}
