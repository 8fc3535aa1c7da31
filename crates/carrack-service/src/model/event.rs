//! Events: what happened, in order, for whoever follows.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::word_enum;
use crate::clock::Moment;

word_enum! {
    /// What happened.
    pub enum EventKind {
        Submitted "submitted" "a task was accepted"
        Queued "queued" "a task waits; the detail says why"
        Started "started" "a worker began an attempt"
        Progress "progress" "how far a task is"
        Note "note" "what the worker told: a session lost, another number of streams, a rate that fell"
        Fault "fault" "an attempt failed; another one follows"
        Paused "paused" "a task was paused"
        Resumed "resumed" "a task was resumed"
        Cancelling "cancelling" "the end of a task was asked for"
        Updated "updated" "label, deadline or priority changed"
        Ended "ended" "a task ended; the detail has its state"
        TimerMade "timer-made" "a timer was made"
        TimerRan "timer-ran" "a timer submitted a task"
        TimerSkipped "timer-skipped" "a run was left out"
        TimerEnded "timer-ended" "no more runs come"
        EndpointChanged "endpoint-changed" "an endpoint was added, changed, measured or removed"
        Decision "decision" "what the scheduler decided, with its numbers"
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Grows by each event; for going on where one stopped (`since`, `Last-Event-ID`).
    pub id: u64,
    /// When.
    pub time: Moment,
    /// What.
    pub kind: EventKind,
    /// Whose.
    pub owner: String,
    /// The task concerned.
    pub task: Option<String>,
    /// Endpoint, timer or other object concerned.
    pub subject: Option<String>,
    /// In words, one line.
    pub text: String,
    /// Numbers and reasons.
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
}
