//! Files of a file system: where paths lead, what is there, how it is read and written, what survives a crash of it.

mod backup;
pub mod collect;
pub mod descriptors;
mod directories;
pub mod identity;
pub mod kinds;
mod links;
pub mod marker;
pub(crate) mod names;
pub mod part;
pub mod past_cache;
pub mod place;
pub mod refusal;
mod replaced;
pub mod settle;
pub mod source;
mod stale;
pub mod store;
mod syncs;
pub mod times;
pub mod tree;
mod turns;
mod uncarried;
mod unkept;
pub mod walk;
pub mod watch;
