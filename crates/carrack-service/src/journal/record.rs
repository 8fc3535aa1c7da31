//! What stands in a journal.

use crate::clock::Moment;
use crate::model::{CheckTally, EndVisit, EventKind, Fence, ItemState, Progress, TaskFailure};

/// One thing that a worker tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// An attempt begins. Items that an earlier one told as failed are tried again; those that it told as done stay.
    Began {
        /// Its number.
        fence: Fence,
        /// When.
        time: Moment,
        /// The worker's process.
        process: u32,
        /// The program's version.
        program: String,
    },
    /// What became of an item.
    Item(Item),
    /// How far it is, once a second at most.
    Sample(Sample),
    /// Something that happened, for people.
    Event {
        /// When.
        time: Moment,
        /// What.
        kind: EventKind,
        /// In words, one line.
        text: String,
        /// Numbers and reasons, as JSON.
        detail: String,
    },
    /// A pass over one pair of the task begins, or begins anew: what it has told as failed is tried again.
    PassBegan {
        /// The pair of the task, from 0.
        pair: u32,
        /// What identifies where the pair leads from and to; empty in journals of earlier versions.
        place: Vec<u8>,
    },
    /// The hosts of some pair have been reached.
    Reached,
    /// A pass over one pair of the task has come to its end.
    PairEnded(PairEnd),
    /// The attempt has ended.
    Ended(AttemptEnd),
    /// How far a check of a pair has come: the next attempt goes on behind it.
    Checked(CheckMark),
    /// Where the attempt was at work at one end of a pair, and what failed there: told before its end.
    Visited(EndVisit),
}

/// How far a check has come.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CheckMark {
    /// The pair of the task, from 0.
    #[prost(uint32, tag = "1")]
    pub pair: u32,
    /// The last path that was compared; empty: none.
    #[prost(bytes = "vec", tag = "2")]
    pub after: Vec<u8>,
    /// What was found until then.
    #[prost(message, required, tag = "3")]
    pub tally: CheckTally,
    /// Items that could not be read until then.
    #[prost(uint64, tag = "4")]
    pub failed: u64,
}

/// A pass over a pair has come to its end: each of its items has been told. The next pass is over those that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct PairEnd {
    /// The pair of the task, from 0.
    pub pair: u32,
    /// Of a task that moves: the pass has deleted sources. Else it has copied, or deleted what the task is to delete.
    pub of_sources: bool,
    /// The pass has copied nothing: it has compared what was done before, and its failed items are those that are not
    /// there any more.
    pub of_look: bool,
    /// When.
    pub time: Moment,
    /// What all passes over this pair have done; `items_failed` are those of this pass.
    pub progress: Progress,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The pair of the task that it is of, from 0.
    pub pair: u32,
    /// Relative to the destination (to the source, where a task deletes). Any bytes but NUL.
    pub path: Vec<u8>,
    /// `file`, `directory`, `symlink` or `special`.
    pub kind: carrack_core::report::ItemKind,
    /// What became of it.
    pub state: ItemState,
    /// Bytes of content.
    pub size: u64,
    /// BLAKE3 of the file, as the receiver computed it.
    pub digest: Option<[u8; 32]>,
    /// Why it failed or was skipped.
    pub failure: Option<TaskFailure>,
}

/// How far an attempt is. Counts are of the whole task so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub time: Moment,
    /// What is done.
    pub progress: Progress,
    /// Data connections at work.
    pub streams: u32,
    /// Counters of the source, where it tells them.
    pub source: Option<EndCounts>,
    /// Counters of the destination, where it tells them.
    pub destination: Option<EndCounts>,
}

/// What an end of a copy has counted since the copy began: the next copy of the same task counts from 0.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct EndCounts {
    /// Processor time of the end's process, in microseconds.
    #[prost(uint64, tag = "1")]
    pub processor_us: u64,
    /// Time in which its threads waited for storage, summed over them, in microseconds.
    #[prost(uint64, tag = "2")]
    pub storage_wait_us: u64,
    /// TCP segments that its host has sent again.
    #[prost(uint64, tag = "3")]
    pub retransmits: u64,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEnd {
    /// When.
    pub time: Moment,
    /// How.
    pub kind: EndKind,
    /// What the whole task has done so far.
    pub progress: Progress,
    /// Why it did not do all.
    pub failure: Option<TaskFailure>,
    /// Whether it got further than where it began.
    pub got_somewhere: bool,
    /// The deadline of the task has ended it. Somebody may have set another since.
    pub late: bool,
}

crate::model::word_enum! {
    /// How an attempt ended.
    pub enum EndKind {
        Done "done" "every item has its end; some may have failed for good"
        Stopped "stopped" "it was told to end, and left what the next attempt goes on from"
        Failed "failed" "it failed; another attempt may help, or not, as the failure says"
        Held "held" "a guard keeps it from going on, as the failure says, until somebody has it go on"
    }
}
