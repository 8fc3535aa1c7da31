//! Examining hosts: what they say of themselves, what the path between them carries now, and what the rules find.

pub mod change;
mod diagnosis;
#[cfg(feature = "service")]
pub mod endpoint;
mod examine;
pub mod fix;
mod gain;
mod measured;
pub mod objects;
pub mod page;
mod path;
pub mod recorded;
pub mod terminal;

pub use diagnosis::{Diagnosis, DoctorRequest};
pub use examine::examine;
