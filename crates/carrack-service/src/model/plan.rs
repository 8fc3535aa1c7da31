//! What a copy would do, counted before it does it; and what a run of a timer is held to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Files and links, or items, of a plan.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Planned {
    /// How many.
    #[prost(uint64, tag = "1")]
    pub items: u64,
    /// Bytes of the files among them.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
}

impl Planned {
    /// Counts one more.
    pub fn add(&mut self, bytes: u64) {
        *self += Self { items: 1, bytes };
    }
}

impl std::ops::AddAssign for Planned {
    fn add_assign(&mut self, more: Self) {
        self.items = self.items.saturating_add(more.items);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// What a task would do, as far as it has not been done. Of a task that is no preview, only what it would delete and
/// did not.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TaskPlan {
    /// Files and links that the destination does not have: they would be copied.
    #[prost(message, required, tag = "1")]
    pub new: Planned,
    /// Those that it has otherwise: they would be replaced.
    #[prost(message, required, tag = "2")]
    pub changed: Planned,
    /// Those that are the same, as far as is compared: they would not be sent.
    #[prost(message, required, tag = "3")]
    pub same: Planned,
    /// Those that would be left as they are: they exist, are newer, or are not to be made.
    #[prost(message, required, tag = "4")]
    pub left: Planned,
    /// Files, links and directories that only the destination has, and that would be deleted.
    #[prost(message, required, tag = "5")]
    pub to_delete: Planned,
    /// What keeps them from being deleted, in words. None: nothing would.
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

impl TaskPlan {
    /// Adds that of another pair.
    pub fn add(&mut self, more: Self) {
        self.new += more.new;
        self.changed += more.changed;
        self.same += more.same;
        self.left += more.left;
        self.to_delete += more.to_delete;
        self.held_by = self.held_by.take().or(more.held_by);
    }
}

/// What the last run of a timer that succeeded has found. The next one deletes nothing where it finds something else,
/// until somebody has looked at its plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunGuard {
    /// By which the file system is known that the source stands on: only equality counts. None: nobody has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// Files, links and directories of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
}
