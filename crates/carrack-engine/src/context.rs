//! What work is done with: handed in by whoever starts it, and found nowhere else.

use std::sync::Arc;

use carrack_core::tuning::Tuning;

use crate::control::known_nodes::ListAtStart;
use crate::standard::Standard;
use crate::stop::Stop;

/// What the copies and file verbs of one owner have in common. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Ends everything that was started with this context.
    pub stop: Stop,
    /// What `-` stands for.
    pub standard: Standard,
    /// The user's list of known nodes.
    pub known_nodes: ListAtStart,
    /// Knobs, for what is done in this process.
    pub tuning: Arc<Tuning>,
}
