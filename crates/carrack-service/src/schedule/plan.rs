//! The decision: which tasks start, which give way, why the others wait.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::json;

use super::forecast;
use super::order::{Turns, Waiting};
use super::{History, Shares};
use crate::clock::Moment;
use crate::model::BlockedCause;

/// From where to where, by the endpoints' names or, where a task names none, by the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// `@NAME`, or a host.
    pub source: String,
    /// `@NAME`, or a host; the source again for a task that deletes.
    pub destination: String,
}

impl Link {
    /// From here to there.
    pub fn new(source: &str, destination: &str) -> Self {
        Self { source: source.to_owned(), destination: destination.to_owned() }
    }

    /// Names of the endpoints at its ends, without `@`.
    pub fn endpoints(&self) -> impl Iterator<Item = &str> {
        let destination = (self.destination != self.source).then_some(&self.destination);
        [Some(&self.source), destination].into_iter().flatten().filter_map(|end| end.strip_prefix('@'))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.source, self.destination)
    }
}

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
        /// In words, one line.
        why: String,
        /// Numbers and reasons.
        detail: serde_json::Value,
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

/// What follows from a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What is to be done now, in this order.
    pub decisions: Vec<Decision>,
    /// The tasks that wait, in order.
    pub queue: Vec<Place>,
    /// When a plan may look different though nothing else has happened.
    pub look_again: Option<Duration>,
}

/// Decides. The same view gives the same plan.
pub fn plan(view: &View<'_>) -> Plan {
    let mut room = Room::of(view);
    let waiting = |entry: &Entry| matches!(entry.stands, Stands::Waiting { .. });
    let mut turns = turns(view, &room, view.tasks.iter().filter(|entry| waiting(entry)));
    let mut plan = Plan::default();
    let mut blocked = Vec::new();
    loop {
        let mut obstacle = None;
        let next = turns.next(|entry, running| {
            obstacle = room.obstacle(entry, running);
            obstacle.is_none()
        });
        let Some(entry) = next else { break };
        match obstacle {
            Some(obstacle) => blocked.push((entry, obstacle)),
            None => {
                plan.decisions.push(Decision::Start { task: entry.id.clone(), detail: room.detail(entry) });
                room.take(entry);
            }
        }
    }
    room.give_way(&blocked, &mut plan.decisions);
    queue(view, &room, blocked, &mut plan);
    plan.look_again = plan.queue.iter().filter_map(|place| place.next_try).min();
    let settles = room.running.iter().filter_map(|entry| match entry.stands {
        Stands::Running { ran, leaves: false, .. } => {
            [view.rules.settled, view.rules.quantum].into_iter().filter_map(|age| age.checked_sub(ran)).min()
        }
        _ => None,
    });
    if !plan.queue.is_empty() {
        plan.look_again = plan.look_again.into_iter().chain(settles.filter(|wait| !wait.is_zero())).min();
    }
    plan
}

fn turns<'a>(view: &View<'a>, room: &Room<'a>, tasks: impl Iterator<Item = &'a Entry>) -> Turns<'a, &'a Entry> {
    let waiting = |entry: &'a Entry| {
        let Entry { id, owner, priority, submitted, .. } = entry;
        (Waiting { id, owner, priority: *priority, submitted: *submitted }, entry)
    };
    Turns::new(tasks.map(waiting), &room.owners, |owner| view.shares.used(owner))
}

/// Places for all that wait: first those that wait for room alone, then those whose time has to come.
fn queue(view: &View<'_>, room: &Room<'_>, blocked: Vec<(&Entry, Obstacle)>, plan: &mut Plan) {
    let (timed, untimed): (Vec<_>, Vec<_>) = blocked.into_iter().partition(|(_, obstacle)| obstacle.next_try.is_some());
    let obstacles: BTreeMap<&str, Obstacle> =
        untimed.iter().map(|(entry, obstacle)| (entry.id.as_str(), obstacle.clone())).collect();
    let mut turns = turns(view, room, untimed.iter().map(|(entry, _)| *entry));
    let mut ordered = Vec::new();
    while let Some(entry) = turns.next(|_, _| true) {
        ordered.push(entry);
    }
    let starts = forecast::starts(view, &room.running, &ordered);
    for (n, (entry, starts_in)) in ordered.into_iter().zip(starts).enumerate() {
        let Some(obstacle) = obstacles.get(entry.id.as_str()) else { continue };
        let (cause, why) = match (obstacle.cause, n) {
            (BlockedCause::WorkerLimit, 1..) => {
                (BlockedCause::Turn, format!("{n} tasks are before it; {}", obstacle.why))
            }
            (cause, _) => (cause, obstacle.why.clone()),
        };
        let position = Some(n as u64 + 1);
        plan.queue.push(Place { task: entry.id.clone(), position, starts_in, cause, why, next_try: None });
    }
    for (entry, Obstacle { cause, why, next_try, .. }) in timed {
        plan.queue.push(Place { task: entry.id.clone(), position: None, starts_in: next_try, cause, why, next_try });
    }
}

/// Why a task cannot start.
#[derive(Clone, Debug)]
struct Obstacle {
    cause: BlockedCause,
    why: String,
    next_try: Option<Duration>,
    /// What is taken.
    taken: Taken,
}

/// What a task that runs holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    Worker,
    Endpoint(String),
    Link(Link),
    Nothing,
}

/// What is taken at present.
struct Room<'a> {
    view: View<'a>,
    running: Vec<&'a Entry>,
    workers: u32,
    owners: BTreeMap<&'a str, u32>,
    endpoints: BTreeMap<&'a str, u32>,
    links: BTreeMap<&'a Link, u32>,
}

impl<'a> Room<'a> {
    fn of(view: &View<'a>) -> Self {
        let mut room = Self {
            view: *view,
            running: Vec::new(),
            workers: 0,
            owners: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            links: BTreeMap::new(),
        };
        for entry in view.tasks.iter().filter(|entry| matches!(entry.stands, Stands::Running { .. })) {
            room.take(entry);
        }
        room
    }

    fn take(&mut self, entry: &'a Entry) {
        self.running.push(entry);
        self.workers += 1;
        *self.owners.entry(&entry.owner).or_default() += 1;
        for endpoint in endpoints(entry) {
            *self.endpoints.entry(endpoint).or_default() += 1;
        }
        for link in &entry.links {
            *self.links.entry(link).or_default() += 1;
        }
    }

    fn detail(&self, entry: &Entry) -> serde_json::Value {
        let used = self.view.shares.used(&entry.owner).as_secs();
        let running = self.owners.get(entry.owner.as_str()).copied().unwrap_or(0);
        json!({
            "workers": self.workers, "workers_allowed": self.view.rules.workers, "owner_runs": running,
            "owner_used_seconds": used, "priority": entry.priority,
        })
    }

    /// What keeps a task of an owner who runs so many from starting.
    fn obstacle(&self, entry: &Entry, running: u32) -> Option<Obstacle> {
        if let Some(why) = &self.view.rules.maintenance {
            let (cause, why) = (BlockedCause::Maintenance, why.clone());
            return Some(Obstacle { cause, why, next_try: None, taken: Taken::Nothing });
        }
        self.not_yet(entry).or_else(|| self.no_room(entry, running))
    }

    fn not_yet(&self, entry: &Entry) -> Option<Obstacle> {
        let timed =
            |cause, why, next_try| Some(Obstacle { cause, why, next_try: Some(next_try), taken: Taken::Nothing });
        if let Stands::Waiting { retry_in } = entry.stands
            && !retry_in.is_zero()
        {
            return timed(BlockedCause::Retry, "the last attempt failed".to_owned(), retry_in);
        }
        for endpoint in endpoints(entry) {
            if let Some(closed) = self.view.endpoints.get(endpoint).and_then(|state| state.closed_for) {
                let why = format!("the timetable of endpoint {endpoint} lets no transfer begin at this hour");
                return timed(BlockedCause::Timetable, why, closed);
            }
        }
        for link in &entry.links {
            if let Some(&(next_try, futile)) = self.view.sick.get(link) {
                let why = format!("the last {futile} attempts from {link} got nowhere; one task at a time tries it");
                match self.links.contains_key(link) {
                    true => return timed(BlockedCause::Retry, why, next_try.max(Duration::from_secs(1))),
                    false if !next_try.is_zero() => return timed(BlockedCause::Retry, why, next_try),
                    false => {}
                }
            }
        }
        None
    }

    fn no_room(&self, entry: &Entry, running: u32) -> Option<Obstacle> {
        let full = |cause, why, taken| Some(Obstacle { cause, why, next_try: None, taken });
        for endpoint in endpoints(entry) {
            let carries = self.endpoints.get(endpoint).copied().unwrap_or(0);
            if let Some(limit) = self.view.endpoints.get(endpoint).and_then(|state| state.transfers)
                && carries >= limit
            {
                let why = format!("endpoint {endpoint} carries {carries} transfers, and may carry {limit}");
                return full(BlockedCause::EndpointLimit, why, Taken::Endpoint(endpoint.to_owned()));
            }
        }
        for link in &entry.links {
            let (carries, limit) = (self.links.get(link).copied().unwrap_or(0), self.view.rules.per_link);
            if carries >= limit {
                let why = format!("{carries} transfers go from {link}, and {limit} may");
                return full(BlockedCause::PairLimit, why, Taken::Link(link.clone()));
            }
        }
        let (workers, reserve) = (self.view.rules.workers, self.view.rules.reserve());
        if self.workers >= workers {
            let why = format!("{} workers run, and {workers} may", self.workers);
            return full(BlockedCause::WorkerLimit, why, Taken::Worker);
        }
        if running > 0 && self.workers + reserve >= workers {
            let why = format!(
                "{} of {workers} workers run, {running} of them for {}; the last {reserve} are kept for users who run nothing",
                self.workers, entry.owner
            );
            return full(BlockedCause::WorkerLimit, why, Taken::Nothing);
        }
        None
    }

    /// Has owners with more than their part give something to owners who run nothing.
    fn give_way(&self, blocked: &[(&Entry, Obstacle)], decisions: &mut Vec<Decision>) {
        let leaves = |entry: &Entry| matches!(entry.stands, Stands::Running { leaves: true, .. });
        let mut leaving: BTreeSet<&str> =
            self.running.iter().filter(|entry| leaves(entry)).map(|entry| entry.id.as_str()).collect();
        // Each task that leaves already makes room for one owner.
        let mut spoken_for: BTreeMap<&Taken, usize> = BTreeMap::new();
        let mut helped: BTreeSet<&str> = BTreeSet::new();
        for (entry, obstacle) in blocked {
            let owner = entry.owner.as_str();
            if obstacle.taken == Taken::Nothing || self.owners.contains_key(owner) || helped.contains(owner) {
                continue;
            }
            let holders: Vec<&Entry> =
                self.running.iter().copied().filter(|holder| holds(holder, &obstacle.taken)).collect();
            let on_the_way = holders.iter().filter(|holder| leaving.contains(holder.id.as_str())).count();
            let spoken = spoken_for.entry(&obstacle.taken).or_default();
            *spoken += 1;
            helped.insert(owner);
            if on_the_way >= *spoken {
                continue;
            }
            if let Some((holder, held)) = self.who_gives_way(owner, &holders, &leaving) {
                leaving.insert(&holder.id);
                let why = format!("{} has {held} of what {owner} waits for and has none of", holder.owner);
                let detail = json!({
                    "for_task": entry.id, "for_owner": owner, "held_by_owner": held, "waits_for": obstacle.why,
                    "owner_used_seconds": self.view.shares.used(&holder.owner).as_secs(),
                    "for_owner_used_seconds": self.view.shares.used(owner).as_secs(),
                });
                decisions.push(Decision::GiveWay { task: holder.id.clone(), why, detail });
            }
        }
    }

    /// Of the tasks that hold something, the one that ends for an owner who has none of it: the latest of the owner who
    /// has most. An owner's only one ends after its time is up, if they have used more.
    fn who_gives_way<'b>(
        &self,
        for_owner: &str,
        holders: &[&'b Entry],
        leaving: &BTreeSet<&str>,
    ) -> Option<(&'b Entry, usize)> {
        let staying = || holders.iter().filter(|holder| !leaving.contains(holder.id.as_str()));
        let mut held: BTreeMap<&str, usize> = BTreeMap::new();
        staying().for_each(|holder| *held.entry(holder.owner.as_str()).or_default() += 1);
        let candidates = staying().filter_map(|holder| {
            let Stands::Running { ran, .. } = holder.stands else { return None };
            let held = held.get(holder.owner.as_str()).copied().unwrap_or(0);
            let used_more = self.view.shares.used(&holder.owner) > self.view.shares.used(for_owner);
            let may = match held {
                1 => ran >= self.view.rules.quantum && used_more,
                _ => ran >= self.view.rules.settled,
            };
            may.then_some((holder, held, ran))
        });
        let best = candidates.max_by_key(|(holder, held, ran)| {
            (*held, self.view.shares.used(&holder.owner), std::cmp::Reverse((*ran, &holder.id)))
        });
        best.map(|(holder, held, _)| (*holder, held))
    }
}

/// Endpoints that a task uses, each once.
pub(super) fn endpoints(entry: &Entry) -> BTreeSet<&str> {
    entry.links.iter().flat_map(Link::endpoints).collect()
}

fn holds(entry: &Entry, taken: &Taken) -> bool {
    match taken {
        Taken::Worker => true,
        Taken::Endpoint(name) => endpoints(entry).contains(name.as_str()),
        Taken::Link(link) => entry.links.contains(link),
        Taken::Nothing => false,
    }
}
