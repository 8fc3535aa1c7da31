//! An attempt under way, as all that works on it sees it.

use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::request::Reach;
use carrack_engine::{Context, StopReason};

use super::called::Called;
use super::history::History;
use super::order::Order;
use super::teller::{Teller, now};
use crate::model::TaskFailure;

/// One attempt under way.
pub struct Attempt<'a> {
    /// What is to be done.
    pub order: &'a Order,
    /// What the engine works with; its `stop` is the attempt's own.
    pub context: Context,
    /// What earlier attempts have told.
    pub history: History,
    /// Tells.
    pub teller: Teller,
    /// How hosts are reached.
    pub reach: Reach,
    /// When the attempt ends at the latest, and why.
    pub deadline: Option<(Instant, &'static str)>,
    /// Bytes at the destinations by passes that earlier attempts have not brought to their end, and that have not been
    /// found there again.
    pub open_bytes: u64,
    /// Hosts have been reached.
    pub reached: bool,
    /// What the ends of the pair under way are called.
    pub called: Called,
    /// What ends the whole attempt.
    pub fatal: Option<Failure>,
    /// The first failure of a pair that another attempt can help.
    pub passing: Option<TaskFailure>,
}

impl Attempt<'_> {
    /// Whether nothing more is begun.
    pub fn is_over(&self) -> bool {
        self.fatal.is_some() || self.context.stop.requested().is_some()
    }

    /// Ends the whole attempt.
    pub fn give_up(&mut self, why: Failure) {
        let why = self.called.name(why);
        self.fatal.get_or_insert(why);
        self.context.stop.request(StopReason::Cancel);
    }

    /// A failure of the pair under way, of an item with this path, as the journal has it.
    pub fn told(&self, failure: &Failure, path: &[u8]) -> TaskFailure {
        self.called.told(failure, path, self.reached)
    }

    /// Ends the attempt if its time is over.
    pub fn check_deadline(&mut self) {
        if let Some((_, why)) = self.deadline.filter(|(deadline, _)| Instant::now() >= *deadline) {
            self.give_up(Failure::new(ErrorCode::DeadlinePassed, Side::Command, why));
        }
    }

    /// How long the work may take.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|(deadline, _)| deadline.saturating_duration_since(Instant::now()))
    }
}

/// When an attempt that begins now ends at the latest, and why.
pub fn deadline(order: &Order) -> Option<(Instant, &'static str)> {
    let started = Instant::now();
    let wanted = order.deadline.map(|deadline| (deadline.since(now()), "the task's deadline has passed"));
    let allowed = order.ceilings.run_seconds.map(|seconds| {
        (Duration::from_secs(seconds), "the task has run for as long as the token that submitted it allows")
    });
    let first = [wanted, allowed].into_iter().flatten().min_by_key(|(left, _)| *left);
    first.and_then(|(left, why)| Some((started.checked_add(left)?, why)))
}
