//! What a task has left at its destinations: unfinished files, of a task that did not get to its end.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Unfinished files of a task, which a retry goes on from; or those that were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskLeftovers {
    /// How many files they are.
    pub files: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// The first thousand of them.
    pub items: Vec<TaskLeftover>,
    /// Destinations that could not be looked at.
    pub unknown: Vec<UnknownLeftovers>,
}

/// An unfinished file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskLeftover {
    /// The destination, as the task was submitted with it.
    pub destination: String,
    /// The path below the endpoint's root that it would get, or of the file that was removed; of a destination at no
    /// endpoint, below that destination. What is no UTF-8, control characters and `%` stand as `%HH`.
    pub path: String,
    /// Bytes that it takes.
    pub bytes: u64,
}

/// A destination that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnknownLeftovers {
    /// As the task was submitted with it.
    pub destination: String,
    /// Why, in words.
    pub why: String,
}

impl TaskLeftovers {
    /// Items that are named; all are counted.
    pub const NAMED_MAX: usize = 1000;

    /// Counts one more.
    pub fn add(&mut self, item: TaskLeftover) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(item.bytes);
        if self.items.len() < Self::NAMED_MAX {
            self.items.push(item);
        }
    }

    /// Adds what was found elsewhere.
    pub fn append(&mut self, other: Self) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.items.extend(other.items);
        self.items.truncate(Self::NAMED_MAX);
        self.unknown.extend(other.unknown);
    }
}
