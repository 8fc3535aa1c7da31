//! What the controller is told, and what it answers.

use std::fmt;
use std::time::Duration;

use crate::pace::limit::StageTimes;
use crate::words::words;

/// Processors of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// Of the sending host.
    pub source: usize,
    /// Of the receiving host.
    pub destination: usize,
}

impl Processors {
    /// Of the smaller host.
    pub fn fewest(self) -> usize {
        self.source.min(self.destination)
    }
}

/// How a transfer stands, as its sender has measured it; `at` and all counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When, by the sender's clock.
    pub at: Duration,
    /// Bytes that the receiving host has acknowledged.
    pub delivered: u64,
    /// Segments sent, those sent again included.
    pub segments: u64,
    /// Segments sent again.
    pub repeated: u64,
    /// Streams that carry data.
    pub alive: u16,
    /// Items that have ended.
    pub items: u64,
    /// Bytes that have not landed yet; `None` while the scan may find more.
    pub left: Option<u64>,
    /// Where the sender's time has gone.
    pub source: StageTimes,
    /// Where the receiver's time has gone.
    pub destination: StageTimes,
}

/// What an earlier transfer between the same hosts has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptStart {
    /// Bytes a second that it had with the number that this transfer begins with.
    pub rate: f64,
    /// The number that this transfer would have begun with if nothing were known.
    pub guess: u16,
}

/// Another number of streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The number of streams from now on.
    pub streams: u16,
    /// The number of streams until now.
    pub before: u16,
    /// Bytes a second that those brought.
    pub rate: f64,
    /// Of their segments, the share that was sent again.
    pub loss: f64,
    /// Why the number of streams changes.
    pub reason: Reason,
}

words! {
    /// Why the number of streams changes.
    pub enum Reason {
        TryMore "try-more" "to see whether more are faster"
        TryFewer "try-fewer" "to see whether fewer are as fast"
        Back "back" "those that were tried were not worth it"
        Loss "loss" "packets are lost, to see whether there are too many"
        /// With half as many the same was lost, and less came.
        LossOfPath "loss-of-path" "it is the path that loses packets"
        NotMade "not-made" "more could not be made"
        PathChanged "path-changed" "the rate is far below the one that was kept for this pair"
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meaning())
    }
}
