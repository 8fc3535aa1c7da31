//! A timer: submits a task again and again.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{NewTask, word_enum};
use crate::clock::Moment;

word_enum! {
    /// What happens where the task of the run before has not ended.
    #[derive(Default)]
    pub enum Overlap {
        #[default]
        Skip "skip" "the run is left out, and told as an event"
        Wait "wait" "the run comes once the task has ended; several that are due become one"
        Start "start" "the run comes at its time"
    }
}

word_enum! {
    /// Where a timer stands.
    pub enum TimerState {
        Waiting "waiting" "its next run has a time"
        Paused "paused" "somebody has paused it"
        Ended "ended" "no more runs come"
    }
}

/// When a timer runs: `every` or `cron`, not both; with neither, once at `start`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimerSchedule {
    /// The first run, or the earliest for `cron`; at once where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Moment>,
    /// Seconds from one run's due time to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<u64>,
    /// Five fields, as crontab has them, in `zone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// A name of the IANA database of time zones for `cron`; UTC where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// No run is due after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// Runs in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// Each run comes up to this many seconds after it is due, at a time of its own: timers with one schedule do not
    /// begin at once. Less than the time from one run to the next, at most a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_seconds: Option<u64>,
    /// What happens where the task of the run before has not ended.
    pub overlap: Overlap,
}

/// A timer as the service knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timer {
    /// Identifier.
    pub id: String,
    /// The user whose tasks it submits.
    pub owner: String,
    /// What its owner calls it.
    pub label: Option<String>,
    /// When it runs.
    pub schedule: TimerSchedule,
    /// What it submits.
    pub task: NewTask,
    /// Where it stands.
    pub state: TimerState,
    /// When it is due next.
    pub next_run: Option<Moment>,
    /// Runs so far; the number of a run is part of the submission id of its task, so none comes twice.
    pub runs: u64,
    /// The task of the last run.
    pub last_task: Option<String>,
    /// When it was made.
    pub made: Moment,
    /// Grows with every change: the entity tag.
    pub version: u64,
}
