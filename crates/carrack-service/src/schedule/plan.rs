//! The decision: which tasks start, which give way, why the others wait.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use super::forecast;
use super::link::Link;
use super::order::{Turns, Waiting};
use super::view::{Decision, Entry, Place, Plan, Stands, View, endpoints};
use crate::model::BlockedCause;

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

/// Places for all that wait: first those that wait for room alone, then those whose time has to come, and those whose
/// endpoint is drained: nobody knows when.
fn queue(view: &View<'_>, room: &Room<'_>, blocked: Vec<(&Entry, Obstacle)>, plan: &mut Plan) {
    let is_apart = |obstacle: &Obstacle| obstacle.next_try.is_some() || obstacle.cause == BlockedCause::Drained;
    let (timed, untimed): (Vec<_>, Vec<_>) = blocked.into_iter().partition(|(_, obstacle)| is_apart(obstacle));
    let obstacles: BTreeMap<&str, Obstacle> =
        untimed.iter().map(|(entry, obstacle)| (entry.id.as_str(), obstacle.clone())).collect();
    let mut turns = turns(view, room, untimed.iter().map(|(entry, _)| *entry));
    let mut ordered = Vec::new();
    while let Some(entry) = turns.next(|_, _| true) {
        ordered.push(entry);
    }
    let starts = forecast::starts(view, &room.running, &ordered);
    plan.next = forecast::next_start(view, &room.running, &ordered);
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
    tokens: BTreeSet<&'a str>,
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
            tokens: BTreeSet::new(),
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
        self.tokens.extend(entry.token.as_deref());
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
        // First what no time ends.
        let drained = endpoints(entry).into_iter().find_map(|endpoint| Some((endpoint, self.drained(endpoint)?)));
        if let Some((endpoint, why)) = drained {
            let (cause, why) = (BlockedCause::Drained, format!("endpoint {endpoint} takes no new transfers: {why}"));
            return Some(Obstacle { cause, why, next_try: None, taken: Taken::Nothing });
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

    fn drained(&self, endpoint: &str) -> Option<&str> {
        self.view.endpoints.get(endpoint)?.drained.as_deref()
    }

    fn no_room(&self, entry: &Entry, running: u32) -> Option<Obstacle> {
        let full = |cause, why, taken| Some(Obstacle { cause, why, next_try: None, taken });
        if entry.token.as_deref().is_some_and(|token| self.tokens.contains(token)) {
            let why =
                "another task of its token runs, and the token's ceilings are for all of them together".to_owned();
            return full(BlockedCause::Turn, why, Taken::Nothing);
        }
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
                let why = format!("{} has {held} of what another user waits for and has none of", holder.owner);
                let detail = json!({
                    "held_by_owner": held, "waits_for": obstacle.why,
                    "owner_used_seconds": self.view.shares.used(&holder.owner).as_secs(),
                });
                let used = self.view.shares.used(owner).as_secs();
                let for_whom = format!("task {} of {owner}, who has used {used} s", entry.id);
                decisions.push(Decision::GiveWay { task: holder.id.clone(), why, detail, for_whom });
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
        // What would not begin again is brought to its end.
        let is_drained = |holder: &Entry| endpoints(holder).iter().any(|endpoint| self.drained(endpoint).is_some());
        let stays = |holder: &&&Entry| !leaving.contains(holder.id.as_str()) && !is_drained(holder);
        let staying = || holders.iter().filter(stays);
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

fn holds(entry: &Entry, taken: &Taken) -> bool {
    match taken {
        Taken::Worker => true,
        Taken::Endpoint(name) => endpoints(entry).contains(name.as_str()),
        Taken::Link(link) => entry.links.contains(link),
        Taken::Nothing => false,
    }
}
