//! What this host's storage and processors can do, as the service measures it for an endpoint.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::word_enum;
use crate::clock::Moment;

word_enum! {
    /// What is measured.
    pub enum BenchKind {
        Disk "disk" "the storage: writes and reads with several block sizes and depths"
        Cpu "cpu" "the processors: what one core and all of them hash and encrypt"
        Ladder "ladder" "copies from memory to memory, up to disk to disk"
    }
}

word_enum! {
    /// How far measuring is.
    pub enum BenchState {
        Idle "idle" "nothing was measured since the service started"
        Running "running" "it runs"
        Finished "finished" "all of it is measured"
        Failed "failed" "a part of it failed: `failures` says why"
    }
}

/// How far measuring is, and the results that are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchStatus {
    /// The endpoint.
    pub endpoint: String,
    /// How far the last run is.
    pub state: BenchState,
    /// What is measured now.
    pub measuring: Option<BenchKind>,
    /// When the last run began.
    pub started: Option<Moment>,
    /// What failed in the last run.
    pub failures: Vec<BenchFailure>,
    /// The last result of each kind, kept until the endpoint is removed or is somewhere else.
    pub results: Vec<BenchResult>,
}

/// Why something was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BenchFailure {
    /// What was to be measured.
    pub kind: BenchKind,
    /// Why it was not.
    pub why: String,
    /// What to try.
    pub hint: Option<String>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchResult {
    /// What.
    pub kind: BenchKind,
    /// When it ended.
    pub time: Moment,
    /// The version of the program that measured.
    pub program: String,
    /// How long it took.
    pub elapsed_seconds: f64,
    /// Of a ladder: where the most is lost.
    pub verdict: Option<String>,
    /// Doubts about all rows.
    pub notes: Vec<String>,
    /// The numbers, as `carrack bench --json` prints them.
    pub rows: Vec<BenchRow>,
}

/// One thing measured under one set of conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchRow {
    /// What was done: `write`, `blake3`, `disk->null`.
    pub name: String,
    /// Under which conditions, such as `record_bytes` and `depth`.
    pub conditions: BTreeMap<String, String>,
    /// Numbers; each name ends with its unit.
    pub values: BTreeMap<String, f64>,
    /// How far the row may be trusted: docs/measure.md has the meaning of each word.
    pub labels: Vec<String>,
    /// Why it has no numbers, or only a part of them.
    pub error: Option<String>,
}
