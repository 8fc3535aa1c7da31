//! A whole request: bring up an end for the sources and one for the destination, settle where everything goes, connect
//! the two, let them work, and report. The bytes go straight between the ends; the command watches.

mod asking;
pub mod attempts;
mod begin;
mod beside;
pub mod connect;
mod dry_run;
mod ends;
mod events;
mod fit;
mod ground;
mod handle;
mod held_back;
mod here;
mod known;
mod measured;
mod open;
mod resolve;
mod run;
mod session;
mod streams;
mod tune;
mod watch;

use carrack_core::report::{Failure, ItemReport, Report};
use carrack_core::request::CopyRequest;
use carrack_core::wire::control::SessionKey;
use carrack_core::wire::expected::Expected;

use crate::context::Context;
use crate::end::{EndId, Inbox, Note};
use crate::stop::Until;
use asking::Asking;
use attempts::Attempts;
use events::Events;
pub use handle::{Copy, Handle};
use held_back::HeldBack;
use known::Known;
use measured::Measured;
use resolve::Plan;
use tune::Tune;

/// The state of one run of a copy, over all its attempts.
struct Copying<'a> {
    request: &'a CopyRequest,
    context: &'a Context,
    events: &'a Events,
    note: Note,
    inbox: Inbox,
    report: &'a mut Report,
    /// What the first session settled: the second finds other things at the destination, but was asked for the same.
    plan: Option<Plan>,
    /// The session's.
    key: SessionKey,
    attempts: Attempts,
    /// When the run is given up.
    until: Until,
    /// Sessions before this one.
    session: u32,
    /// What has been used up, so that there can be no other session.
    used_up: Option<&'static str>,
    /// The destination may have deleted something since the sender began, and has not told how much.
    is_deleting: bool,
    /// Nobody will know how much it deleted before its connection was lost.
    untold_deletion: bool,
    /// Why the last session was lost.
    last: Option<Failure>,
    /// The most items and bytes that any session had at the destination.
    most_landed: (u64, u64),
    /// Of the session, items whose names may be gone because a sync failed.
    unsynced: Vec<ItemReport>,
    /// Number of all such items, also of those that are not named.
    unsynced_count: u64,
    held_back: HeldBack,
    measured: Measured,
    /// Finds out how many streams are best, where that is not settled.
    tune: Option<Tune>,
    /// What is known of that number: from earlier copies, once the first session has a plan, and from this run.
    known: Option<Known>,
    /// Which items the source may tell of.
    expected: Expected,
    /// Of the session, what the user is asked.
    asking: Asking,
    /// Ends that were asked for the way to the other and have not answered, with the numbers of the requests.
    traces: Vec<(EndId, u64)>,
    /// When the rate fell last, if it was told.
    fell_at: Option<std::time::Instant>,
}
