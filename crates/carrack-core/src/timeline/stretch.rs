//! What a verdict is made of, and what a kernel says beside it.

use super::{Point, Sample};

/// What a kernel says of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// Share of the segments that was sent again.
    Resent(f64),
    /// Shortest round trip, in microseconds.
    RoundTripUs(u64),
    /// What the windows of all streams allowed in flight, in bytes.
    WindowBytes(u64),
    /// Share of their time that the streams' threads were ready and waited for a processor.
    Starved(f64),
}

impl Fact {
    /// For a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::Resent(share) => format!("{:.2} % of the segments sent again", share * 100.0),
            Self::RoundTripUs(us) => format!("{:.1} ms", *us as f64 / 1000.0),
            Self::WindowBytes(bytes) => format!("{} KiB in flight over all streams", bytes / 1024),
            Self::Starved(share) => {
                format!("their threads waited for a processor for {:.0} % of the time", share * 100.0)
            }
        }
    }
}

/// Samples of one end over a stretch of a copy, in their order; the first is where it begins.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// The state before the stretch; all zeros where that is the beginning of the copy.
    pub before: &'a Sample,
    /// The samples in it.
    pub points: &'a [Point],
}
