//! How a session begins: its steps on one axis, each with what it took.

use crate::failure::Side;
use crate::words::words;

/// Below this a round trip is not what a step costs: everything else takes longer, in microseconds.
const FAR_US: u64 = 1000;

words! {
    /// A step of a session's start. From `begin` on they are those of an end.
    pub enum StartStep {
        1 Connect "connect" "TCP has connected to the node"
        2 Secure "secure" "the node has shown its key"
        3 Login "login" "ssh has logged in, and the agent runs"
        4 Greet "greet" "the end has answered the greeting"
        5 Resolve "resolve" "it is known what is where, and where it goes"
        6 Dial "dial" "the first data connection is asked for"
        7 Link "link" "the first data connection is made"
        8 Begin "begin" "the end has begun the transfer"
        9 List "list" "the first files are listed"
        10 Item "item" "the first large file is about to be made"
        11 Reserve "reserve" "the first large file is made, and its room reserved"
        12 Stream "stream" "the first data stream is there"
        13 Unit "unit" "the first block or bundle is taken by a stream, or comes on one"
        14 Byte "byte" "the first content is handed to a connection, or has come"
        15 Write "write" "the first content is written"
        16 Publish "publish" "the first file has its name"
    }
}

impl StartStep {
    /// Whether an end tells of it. The command knows the others by itself.
    pub fn is_of_an_end(self) -> bool {
        self.number() >= Self::Begin.number()
    }
}

/// A step as an end tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTime {
    /// Which.
    pub step: StartStep,
    /// By the end's own clock, in microseconds since its agent began.
    pub at_us: u64,
}

/// A step at its place on the axis of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTaken {
    /// Whose: an end's, the link's, or the command's.
    pub side: Side,
    /// Which.
    pub step: StartStep,
    /// Since the copy began, in microseconds.
    pub at_us: u64,
    /// What that may be wrong by, in microseconds.
    pub error_us: u64,
    /// Since the step before it, whosever that was, or since the session began, in microseconds.
    pub took_us: u64,
    /// A round trip between the ends, in microseconds; 0 where it is not known, or too short to be what a step costs.
    pub round_trip_us: u64,
}

impl StepTaken {
    /// How many round trips it took, in tenths of one; nothing where a round trip costs nothing.
    pub fn round_trips(&self) -> Option<f64> {
        (self.round_trip_us > 0).then(|| (self.took_us as f64 / self.round_trip_us as f64 * 10.0).round() / 10.0)
    }
}

/// The steps of one session, until they are told.
///
/// Ends tell theirs with their first sample. Until both have, nothing is told, so that the steps come in their order
/// and each is counted from the one before it.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Each step of each side counts once.
    seen: Vec<(Side, StartStep)>,
    waiting: Vec<StepTaken>,
    /// When the step before was taken, or the session began.
    last_us: u64,
    round_trip_us: u64,
    heard_source: bool,
    heard_destination: bool,
}

impl Start {
    /// Of a session that begins at this moment of the axis.
    pub fn new(at_us: u64) -> Self {
        Self { last_us: at_us, ..Self::default() }
    }

    /// How far the ends are apart.
    pub fn handle_round_trip(&mut self, us: u64) {
        self.round_trip_us = if us < FAR_US { 0 } else { us };
    }

    /// A step was taken. The first of its kind at a side counts.
    pub fn handle_step(&mut self, side: Side, step: StartStep, at_us: u64, error_us: u64) {
        if !self.seen.contains(&(side, step)) {
            self.seen.push((side, step));
            self.waiting.push(StepTaken { side, step, at_us, error_us, took_us: 0, round_trip_us: 0 });
        }
    }

    /// An end has told its first steps, or tells none.
    pub fn handle_end(&mut self, side: Side) {
        match side {
            Side::Source => self.heard_source = true,
            Side::Destination => self.heard_destination = true,
            _ => {}
        }
    }

    /// The steps that are not told yet, in their order; none before both ends have told theirs, unless the session is
    /// `over`.
    pub fn take(&mut self, over: bool) -> Vec<StepTaken> {
        let both = self.heard_source && self.heard_destination;
        if !over && !both {
            return Vec::new();
        }
        let mut steps = std::mem::take(&mut self.waiting);
        steps.sort_by_key(|taken| taken.at_us);
        for taken in &mut steps {
            // One that comes late may have been earlier than what is told already.
            taken.took_us = taken.at_us.saturating_sub(self.last_us);
            taken.round_trip_us = self.round_trip_us;
            self.last_us = self.last_us.max(taken.at_us);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_in_their_order_and_counted_from_the_one_before() {
        let mut start = Start::new(1_000_000);
        start.handle_step(Side::Destination, StartStep::Connect, 1_080_000, 0);
        start.handle_step(Side::Link, StartStep::Link, 1_480_000, 0);
        start.handle_round_trip(80_000);
        start.handle_step(Side::Source, StartStep::List, 1_490_000, 9);
        start.handle_end(Side::Source);
        assert_eq!(start.take(false), [], "the destination has told nothing");
        start.handle_step(Side::Destination, StartStep::Begin, 1_400_000, 40);
        start.handle_step(Side::Destination, StartStep::Begin, 1_450_000, 40);
        start.handle_end(Side::Destination);
        let told = start.take(false);
        let steps: Vec<_> = told.iter().map(|taken| (taken.side, taken.step, taken.took_us)).collect();
        let expected = [
            (Side::Destination, StartStep::Connect, 80_000),
            (Side::Destination, StartStep::Begin, 320_000),
            (Side::Link, StartStep::Link, 80_000),
            (Side::Source, StartStep::List, 10_000),
        ];
        assert_eq!(steps, expected);
        let trips: Vec<_> = told.iter().map(StepTaken::round_trips).collect();
        assert_eq!(trips, [Some(1.0), Some(4.0), Some(1.0), Some(0.1)]);
        // Later ones go on from there, and none is told twice.
        start.handle_step(Side::Source, StartStep::List, 1_600_000, 0);
        start.handle_step(Side::Destination, StartStep::Publish, 2_000_000, 0);
        start.handle_step(Side::Source, StartStep::Unit, 1_485_000, 0);
        let took: Vec<_> = start.take(false).iter().map(|taken| (taken.step, taken.took_us)).collect();
        assert_eq!(took, [(StartStep::Unit, 0), (StartStep::Publish, 510_000)]);
        assert_eq!(start.take(true), []);
    }

    #[test]
    fn steps_of_a_session_that_is_over_are_told_whoever_is_missing() {
        let mut start = Start::new(0);
        start.handle_round_trip(FAR_US - 1);
        start.handle_step(Side::Source, StartStep::Greet, 500, 0);
        assert_eq!(start.take(false), []);
        let told = start.take(true);
        assert_eq!((told.len(), told[0].round_trips()), (1, None), "a near path's round trip costs nothing");
    }

    #[test]
    fn steps_of_ends_are_those_from_begin_on() {
        let of_ends: Vec<StartStep> = StartStep::ALL.iter().copied().filter(|step| step.is_of_an_end()).collect();
        assert_eq!((of_ends.len(), of_ends[0]), (9, StartStep::Begin));
        assert!(!StartStep::Link.is_of_an_end());
    }
}
