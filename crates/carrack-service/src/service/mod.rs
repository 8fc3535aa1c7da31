//! The service itself: one thread that holds ledger, schedule and workers together.
//!
//! The [`Dispatcher`] takes turns. In each it reads what others have written into the ledger, follows the workers'
//! journals, writes what became of them, carries out what people want (pause, resume, cancel, deadlines), runs timers,
//! and starts what the schedule says. It does nothing else: no step waits for a worker, and whatever a turn could not
//! write is written by the next. So the service may be killed between any two steps; the next one finds the workers by
//! their locks, reads their journals, and goes on.
//!
//! What is acknowledged is in the ledger before anything follows from it: a claim before its worker, an end before the
//! next attempt. The number of the attempt, the fence, guards every change that a worker's word makes.

mod attempt;
mod board;
mod directory;
mod dispatcher;
mod orders;
mod outcome;
mod running;
mod settle;
mod timers;
mod wishes;
mod workers;

#[cfg(test)]
pub(crate) mod simulation;

pub use directory::{Directory, DirectoryError};
pub use dispatcher::{Dispatcher, Parts, Settings};
use orders::moved;
pub use orders::{NoSeal, Unseal, links_of};
pub use running::{Handle, Health, Service, Waker};
pub use workers::{StartFault, Workers};
