//! What runs next, and when. Pure: the time, the tasks and what is known of the endpoints are arguments, and decisions
//! come out with their numbers and reasons. Nothing here reads a clock, a file or the ledger.
//!
//! [`plan`] decides which tasks start and which give way. Owners share the workers: whoever runs the fewest tasks goes
//! first, then whoever has used the least worker time lately; of one owner's tasks the higher priority goes first, then
//! the older one. A quarter of the workers is kept for owners who run nothing, and where that is not enough, an owner
//! with several tasks gives one back: its worker is ended and goes on later in the block where it stood. So a small
//! task never waits for a giant of somebody else.
//!
//! [`Patience`] decides when an attempt that got nowhere is followed by the next, [`Health`] that a link which carries
//! nothing is tried by one task at a time. [`timer`] decides when a timer runs.

mod cron;
mod estimate;
mod forecast;
mod health;
mod history;
mod link;
mod order;
mod outlook;
mod patience;
mod plan;
mod shares;
pub mod timer;
mod timetable;
mod view;

#[cfg(test)]
mod fairness_tests;
#[cfg(test)]
mod plan_tests;

pub use estimate::{RUNS_LEAST, Range, Size};
pub use health::Health;
pub use history::History;
pub use link::Link;
pub use outlook::{Outlook, Promise};
pub use patience::Patience;
pub use plan::plan;
pub use shares::Shares;
pub use timetable::{RateNow, TimetableError, rate_now};
pub use view::{Decision, EndpointState, Entry, Free, NextStart, Place, Plan, Rules, Stands, View};
