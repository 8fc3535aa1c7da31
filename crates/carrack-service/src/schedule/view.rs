//! What a plan is made from, and what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::estimate::Range;
use super::history::History;
use super::link::Link;
use super::shares::Shares;
use crate::clock::Moment;
use crate::model::BlockedCause;

/// What the service allows itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Workers at once.
    pub workers: u32,
    /// Tasks at once of each pair of endpoints.
    pub per_link: u32,
    /// After so long an owner's only task gives way to an owner who has used less and has none.
    pub quantum: Duration,
    /// A worker is left alone for so long before it may be told to give way.
    pub settled: Duration,
    /// Why no work is taken on at present.
    pub maintenance: Option<String>,
}

impl Default for Rules {
    fn default() -> Self {
        // A copy fills its link alone; 16 at once are for small tasks beside large ones.
        let (quantum, settled) = (Duration::from_secs(600), Duration::from_secs(2));
        Self { workers: 16, per_link: 8, quantum, settled, maintenance: None }
    }
}

impl Rules {
    /// Workers that only owners who run nothing may take.
    pub fn reserve(&self) -> u32 {
        match self.workers {
            0 | 1 => 0,
            workers => (workers / 4).max(1),
        }
    }
}

/// Where a task stands, as far as the plan is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It may start after so long, by the service's steady time; zero: now.
    Waiting {
        /// Time until its next attempt.
        retry_in: Duration,
    },
    /// It waits for a person, whatever is free.
    Held,
    /// It has a worker.
    Running {
        /// For so long.
        ran: Duration,
        /// Time until its end, where that can be told.
        remaining: Option<Duration>,
        /// It was told to end already.
        leaves: bool,
    },
}

/// An open task as the plan sees it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Identifier.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// 0 to 9; higher ones go first.
    pub priority: u8,
    /// When it was submitted.
    pub submitted: Moment,
    /// What it uses, each once.
    pub links: Vec<Link>,
    /// The token whose ceilings count what it does: tasks of one run one after the other, each within what those before
    /// it have left.
    pub token: Option<String>,
    /// How long it takes from begin to end. None: that is not known.
    pub takes: Option<Range>,
    /// Where it stands.
    pub stands: Stands,
}

/// What an endpoint allows now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointState {
    /// Transfers at once.
    pub transfers: Option<u32>,
    /// Its timetable lets no transfer begin for so long.
    pub closed_for: Option<Duration>,
    /// Why none begins there until somebody says otherwise.
    pub drained: Option<String>,
}

/// All that a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What the service allows itself.
    pub rules: &'a Rules,
    /// Tasks that have not ended and are not paused.
    pub tasks: &'a [Entry],
    /// What the endpoints allow, by name.
    pub endpoints: &'a BTreeMap<String, EndpointState>,
    /// Links that carry nothing: time until the next try, and attempts that failed.
    pub sick: &'a BTreeMap<Link, (Duration, u32)>,
    /// Worker time used lately, by owner.
    pub shares: &'a Shares,
    /// What links did before.
    pub history: &'a History,
}

/// What is to be done, with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// A worker begins.
    Start {
        /// The task.
        task: String,
        /// Numbers and reasons.
        detail: serde_json::Value,
    },
    /// A worker ends, and its task waits again.
    GiveWay {
        /// The task.
        task: String,
        /// In words, one line, for the task's owner.
        why: String,
        /// Numbers and reasons, for the same.
        detail: serde_json::Value,
        /// For whom, with the numbers: for the log alone. The task is another user's.
        for_whom: String,
    },
}

/// Where a task that waits stands in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The task.
    pub task: String,
    /// From 1, among those that wait for nothing but room. None: its own time has to come first.
    pub position: Option<u64>,
    /// Time until it begins, where that can be told.
    pub starts_in: Option<Duration>,
    /// What it waits for.
    pub cause: BlockedCause,
    /// In words.
    pub why: String,
    /// Time until it is looked at again, where that is set.
    pub next_try: Option<Duration>,
}

/// When a task that is submitted next can begin, by what it uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NextStart {
    /// If it goes before all that wait, and what runs ends soon.
    pub earliest: Free,
    /// If all that wait go before it, and take long.
    pub latest: Free,
}

/// Time until places become free; `Duration::MAX` where that cannot be told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Free {
    /// Until a worker is free.
    pub worker: Duration,
    /// Until endpoints that are not free now carry one transfer more, by their names.
    pub endpoints: BTreeMap<String, Duration>,
    /// Until links that are not free now carry one transfer more.
    pub links: BTreeMap<Link, Duration>,
}

impl Free {
    /// Time until a task on these links can begin. `None`: that cannot be told.
    pub fn begins(&self, links: &[Link]) -> Option<Duration> {
        let endpoints = links.iter().flat_map(Link::endpoints).filter_map(|name| self.endpoints.get(name));
        let places = endpoints.chain(links.iter().filter_map(|link| self.links.get(link)));
        let begins = places.fold(self.worker, |latest, free| latest.max(*free));
        (begins < Duration::MAX).then_some(begins)
    }
}

/// What follows from a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What is to be done now, in this order.
    pub decisions: Vec<Decision>,
    /// The tasks that wait, in order.
    pub queue: Vec<Place>,
    /// When a task that is submitted next can begin.
    pub next: NextStart,
    /// When a plan may look different though nothing else has happened.
    pub look_again: Option<Duration>,
}

/// Endpoints that a task uses, each once.
pub(super) fn endpoints(entry: &Entry) -> BTreeSet<&str> {
    entry.links.iter().flat_map(Link::endpoints).collect()
}
