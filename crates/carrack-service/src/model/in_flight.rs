//! The files in flight of a task, as the API shows them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The files in flight of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskInFlight {
    /// The files: eight at most. An older program at the source tells of none.
    pub files: Vec<InFlight>,
}

/// A file that has begun to arrive and has no name yet. Small files, which travel many at once, are never shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InFlight {
    /// The pair of the task that it is of, from 0.
    pub pair: u32,
    /// Relative to the destination. Bytes that are no UTF-8 are written `\xHH`, a backslash `\\`.
    pub path: String,
    /// Bytes of content; none: the source has no size, or still grows.
    pub size: Option<u64>,
    /// Bytes at the destination.
    pub bytes: u64,
}
