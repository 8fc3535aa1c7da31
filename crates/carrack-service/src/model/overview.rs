//! What the service has done over a time, in figures.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Task, TaskState};
use crate::clock::Moment;

/// What happened over a time, in steps of equal length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// When the first step begins.
    pub from: Moment,
    /// When the last step ends; now, where it is under way.
    pub to: Moment,
    /// Seconds of each step.
    pub step_seconds: u64,
    /// Bytes that came to their destinations, by step.
    pub moved: Vec<u64>,
    /// Tasks that waited at the end of each step: queued, staged or paused.
    pub waiting: Vec<u64>,
    /// Tasks that ran at the end of each step: active, or being cancelled.
    pub running: Vec<u64>,
    /// Bytes a second of the tasks that are active at present.
    pub rate: f64,
    /// Tasks that ended in this time, by state.
    pub ended: Vec<StateCount>,
    /// Tasks at present, by state.
    pub states: Vec<StateCount>,
    /// Pairs of places between which something was moved or ended, the most bytes first. A task with several pairs
    /// counts for its first one.
    pub pairs: Vec<PairFigures>,
    /// Failures of attempts and tasks by their cause, the most frequent first.
    pub failures: Vec<FailureFigures>,
    /// Tasks that moved slowly, the slowest first.
    pub slowest: Vec<Task>,
    /// Tasks that do not get on, the oldest first.
    pub stuck: Vec<Task>,
}

/// How many tasks are in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateCount {
    /// The state.
    pub state: TaskState,
    /// So many.
    pub tasks: u64,
}

/// What became of tasks between two places.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PairFigures {
    /// The endpoint, as `@NAME`, or what stands for it.
    pub source: String,
    /// The same of the destination; empty for tasks that delete.
    pub destination: String,
    /// Bytes that came to the destination.
    pub bytes: u64,
    /// Bytes a second while workers moved them; none: nothing was moved.
    pub rate: Option<f64>,
    /// Tasks that ended SUCCEEDED.
    pub succeeded: u64,
    /// Tasks that ended PARTIAL.
    pub partial: u64,
    /// Tasks that ended FAILED.
    pub failed: u64,
    /// Tasks that ended CANCELLED.
    pub cancelled: u64,
    /// Of the tasks that ended and were not cancelled, the part that succeeded, 0 to 1; none: there are none.
    pub success: Option<f64>,
}

/// How often something failed for the same cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureFigures {
    /// What kind, from the table of error codes.
    pub code: String,
    /// Where.
    pub side: String,
    /// How often in all.
    pub count: u64,
    /// How often in each step.
    pub steps: Vec<u64>,
}

/// Something that somebody did, or was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLine {
    /// Grows by each line.
    pub id: u64,
    /// When.
    pub time: Moment,
    /// Who: the user's name; of a login that was refused, the name that was tried; empty: nobody is known.
    pub user: String,
    /// By what they were known: `socket`, `token`, `session`; empty: by nothing.
    pub via: String,
    /// The token or the session.
    pub token: Option<String>,
    /// The address that it came from; none: a process of the service's host, by the socket.
    pub from: Option<String>,
    /// The method and the route.
    pub action: String,
    /// What it was about: an identifier or a name.
    pub object: Option<String>,
    /// The status of the answer: below 400, it was done.
    pub status: u16,
}

/// Some rows of a long list, by their place in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Windowed<T> {
    /// The rows.
    pub items: Vec<T>,
    /// The place of the first of them, from 0.
    pub offset: u64,
    /// How many rows there are in all.
    pub total: u64,
    /// Whether `total` is final: a list that is long is counted bit by bit; ask again.
    pub complete: bool,
}
