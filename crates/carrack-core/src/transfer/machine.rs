//! The contract of both machines, as whoever drives them has to keep it.

use std::time::Instant;

use crate::failure::{Failure, Side};
use crate::wire::ProtocolError;
use crate::wire::peer::PeerMessage;

/// One half of a transfer: it decides everything, and does nothing by itself.
///
/// | methods | kind | when they are called |
/// |---|---|---|
/// | `handle_*(now, …)` | inputs: what has happened outside | as soon as it has happened |
/// | `next_job(now, …)`, `begin_*(…)` | what a stream asks | it has nothing to do; something begins to arrive |
/// | [`poll_action`](Self::poll_action) | output: what is to be done | after each input, until it is `None` |
/// | [`handle_time`](Self::handle_time) | the clock | before each round of `poll_action` |
/// | [`next_deadline`](Self::next_deadline) | the timer: the next round at the latest | after each round |
/// | [`fail`](Self::fail) | the end, brought about | at any time |
/// | [`outcome`](Self::outcome) | the end, asked for | after each round |
/// | all others | the state, as it is now | at any time: they change nothing |
///
/// Every input has the time as its first argument, needed or not, so that a driver does not have to know which input
/// depends on it. Several threads may tell of inputs: a time before the last one is taken for the last one. Inputs
/// after the outcome is known change nothing, and their actions are at most those that clean up.
///
/// Streams have deadlines of their own: a sender names them in [`Next::Wait`](super::sender::Next::Wait), and the
/// stream asks again then, and after every input.
///
/// Nothing blocks and nothing calls back. A machine does not look at a clock, and no payload comes near it.
pub trait Machine: Send + 'static {
    /// What has to be done outside.
    type Action;

    /// The end of the transfer that this half decides for.
    const SIDE: Side;

    /// The peer says something.
    ///
    /// # Errors
    /// When no peer may say that now. The driver fails the machine for it.
    fn handle_message(&mut self, now: Instant, message: PeerMessage) -> Result<(), ProtocolError>;

    /// It is `now`, and nothing else has happened.
    fn handle_time(&mut self, now: Instant);

    /// Ends the transfer for a reason of this side, and tells the peer.
    fn fail(&mut self, failure: Failure);

    /// What has to be done outside; `None` when nothing.
    fn poll_action(&mut self) -> Option<Self::Action>;

    /// When [`Self::handle_time`] is to be called though nothing has happened.
    fn next_deadline(&self) -> Option<Instant>;

    /// Whether everything has ended, and how.
    fn outcome(&self) -> Option<Result<(), Failure>>;
}
