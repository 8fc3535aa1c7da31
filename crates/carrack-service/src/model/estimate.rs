//! What is expected of a task, kept with it, beside what it took in the end.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::Moment;

/// What was expected of a task, and what it took. It is made once, and stays as it was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Estimate {
    /// When it was made: with the submission, or once the task's first worker had counted the sources.
    pub made: Moment,
    /// Bytes of files' contents to move, by which it was made. None: they were not counted.
    pub bytes: Option<u64>,
    /// Files, links and directories to move, by which it was made. None: they were not counted.
    pub items: Option<u64>,
    /// When the task begins at the earliest. None: that cannot be told.
    pub earliest_start: Option<Moment>,
    /// When the task begins at the latest, if no task that comes later goes before it. None: that cannot be told.
    pub latest_start: Option<Moment>,
    /// Seconds from begin to end at least, as a rule. None: that is not known.
    pub seconds_least: Option<u64>,
    /// Seconds from begin to end at most, as a rule: three times the least and three, or less. None: that is not
    /// known.
    pub seconds_most: Option<u64>,
    /// From what that is known, or why it is not.
    pub why: String,
    /// Seconds from the task's begin to its end. None: it has not begun, or not ended.
    pub took_seconds: Option<f64>,
}

impl Estimate {
    /// How long the task takes, at least and at most. `None`: that is not known.
    pub fn seconds(&self) -> Option<(u64, u64)> {
        self.seconds_least.zip(self.seconds_most)
    }

    /// Whether the task took as long as was expected. `None`: that was not known, or it has not ended.
    pub fn was_kept(&self) -> Option<bool> {
        let ((least, most), took) = self.seconds().zip(self.took_seconds)?;
        Some(least as f64 <= took && took <= most as f64)
    }
}
