//! How often tasks fail at which places, and where faults come in bursts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::word_enum;
use crate::clock::Moment;

word_enum! {
    /// What kind of place faults are counted by.
    #[derive(PartialOrd, Ord)]
    pub enum PlaceKind {
        Host "host" "a host, with all that is on it"
        Disk "disk" "a file system of a host"
        Path "path" "a directory of a host, with all that is below it"
        Link "link" "the way between two hosts"
    }
}

/// A place that faults are counted by. Users who are no admins know hosts by their endpoints: `@lab`, paths below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct FaultPlace {
    /// What it is.
    pub kind: PlaceKind,
    /// The host; `this host` is the service's own.
    pub host: String,
    /// The number by which the file system of a `disk` is known, as the host tells it: 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// The directory of a `path`; of a `disk`, the directory that is common to all that tasks did there. Bytes that are
    /// no text, and `%` itself, as `%HH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The other host of a `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

/// How many tasks failed so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultCode {
    /// What kind, from the table of error codes.
    pub code: String,
    /// Tasks in which it came, once or often.
    pub tasks: u64,
}

/// How often tasks failed at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultFigures {
    /// The place.
    pub place: FaultPlace,
    /// Tasks that were at work there.
    pub tasks: u64,
    /// Of these, tasks with a fault there.
    pub faulty: u64,
}

/// A place where tasks fail far more often than elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FaultBurst {
    /// The place.
    pub place: FaultPlace,
    /// Other places at which exactly the same tasks were at work: it may as well be one of these.
    pub alike: Vec<FaultPlace>,
    /// Endpoints by which tasks came there.
    pub endpoints: Vec<String>,
    /// The end of the first task with a fault there, within the time that stands out.
    pub from: Moment,
    /// The end of the last one.
    pub to: Moment,
    /// Tasks that were at work there, within the time that stands out.
    pub tasks: u64,
    /// Of these, tasks with a fault there.
    pub faulty: u64,
    /// Tasks of that time that were not at work there.
    pub tasks_elsewhere: u64,
    /// Of these, tasks with a fault anywhere.
    pub faulty_elsewhere: u64,
    /// What failed, the most frequent first.
    pub codes: Vec<FaultCode>,
    /// How likely chance alone names any place so, where all places are alike: at most one in a thousand.
    pub chance: f64,
    /// Some of the tasks with a fault there, the latest first.
    pub examples: Vec<String>,
}

/// Faults of tasks by the places at which they came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FaultStatistics {
    /// Tasks count whose last attempt ended at this moment or later
    pub from: Moment,
    /// and before this one.
    pub to: Moment,
    /// Tasks that were counted.
    pub tasks: u64,
    /// Of these, tasks with a fault anywhere. A fault is what failed at a place, repaired or not; that something is not
    /// there, or not allowed, is none.
    pub faulty: u64,
    /// Whether all tasks of that time were counted, at all of their places; of more than 100000 tasks, or of more than
    /// memory is kept for, only the latest are.
    pub complete: bool,
    /// How many times a place was compared with the rest: the more, the rarer must be what is named.
    pub comparisons: u64,
    /// What failed, the most frequent first.
    pub codes: Vec<FaultCode>,
    /// Places where tasks fail far more often than elsewhere, the clearest first.
    pub bursts: Vec<FaultBurst>,
    /// Places with faults, whether they stand out or not: the most tasks with faults first, 50 at most.
    pub places: Vec<FaultFigures>,
}
