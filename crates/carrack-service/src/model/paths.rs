//! What the path between two endpoints carries, as the service measures it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{BenchState, TaskFailure};
use crate::clock::Moment;

/// How far measuring the path between two endpoints is, and the last result that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PathStatus {
    /// The endpoint where bytes that go there come from.
    pub from: String,
    /// The endpoint where bytes that come back come from.
    pub to: String,
    /// How far the last run is.
    pub state: BenchState,
    /// When the last run began.
    pub started: Option<Moment>,
    /// Why the last run has no result, or only a part of one.
    pub failure: Option<TaskFailure>,
    /// The last result, kept until one of the endpoints is removed or is somewhere else.
    pub result: Option<PathResult>,
}

/// What was measured of a path, from memory to memory: no file is read or written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PathResult {
    /// When it ended.
    pub time: Moment,
    /// The version of the program that measured.
    pub program: String,
    /// How long it took.
    pub elapsed_seconds: f64,
    /// Bytes a second that the limits of the endpoints allow a transfer, and so this one; none: not limited.
    pub rate_limit: Option<u64>,
    /// From `from` to `to`.
    pub there: PathWay,
    /// From `to` to `from`.
    pub back: PathWay,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One direction of a path. A number that is not known is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct PathWay {
    /// The rate, encrypted and verified as a copy is, as the receiver has counted it.
    pub bytes_per_second: Option<f64>,
    /// Data connections, as many as a copy chooses.
    pub streams: Option<u32>,
    /// The shortest round trip that TCP has seen, in microseconds.
    pub round_trip_us: Option<f64>,
    /// The longest mean round trip meanwhile, in microseconds: what queues on the way add.
    pub round_trip_longest_us: Option<f64>,
    /// Segments that the sender has sent again.
    pub retransmits: Option<u64>,
    /// Their share of all segments, from 0 to 1.
    pub resent_share: Option<f64>,
    /// Steps that are known of the way: routers, and the host at its end.
    pub hops: Option<u32>,
    /// The largest packet that gets there whole, in bytes.
    pub packet_bytes: Option<u32>,
    /// How far the numbers may be trusted: docs/measure.md has the meaning of each word.
    pub labels: Vec<String>,
    /// Why there are no numbers, or only those of a part of the time.
    pub error: Option<String>,
}

impl PathResult {
    /// The same as seen from the other end.
    #[must_use]
    pub fn turned(self) -> Self {
        Self { there: self.back, back: self.there, ..self }
    }
}
