//! A worker: a process that carries out one attempt of one task. It gets its order on standard input, holds the task's
//! lock, moves the bytes with the engine, and tells everything by the task's journal.
//!
//! It outlives the service: it is a session of its own, and what it needs it has from the start. SIGTERM ends it in
//! good order, with a mark that the next attempt goes on from. A worker with an older number than the journal has seen
//! ends before it touches anything.
//!
//! Three other kinds of workers end with the service: [`files`] serves files to the API, [`mod@bench`] measures this
//! host, and [`paths`] the path between two endpoints.

mod attempt;
pub mod bench;
mod called;
mod checking;
pub(crate) mod confirmed;
mod copying;
pub(crate) mod ends;
mod failures;
pub mod files;
pub(crate) mod history;
pub(crate) mod in_flight;
pub(crate) mod limit;
pub mod lock;
pub(crate) mod look;
pub(crate) mod markers;
mod order;
mod pass;
pub mod paths;
mod places;
mod planning;
mod receipts;
mod removal;
mod run;
mod teller;
mod visits;
mod yields;

pub use crate::model::Secret;
pub use order::{Credentials, EndOrder, EndpointRoot, Order, PairOrder};
pub use run::{Means, run};
use yields::{give_up_rights, go_first};
