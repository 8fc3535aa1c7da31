//! The journal of a task: a file to which its workers append, one after the other, and which the service only reads.
//! What became of each item, what happened, how it went, how each attempt ended.

mod record;

pub use record::{AttemptEnd, EndKind, Item, Record, Sample};
