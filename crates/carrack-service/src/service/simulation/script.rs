//! What happens, chosen from a seed, and what must be true after each step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::faulty::{Faults, Faulty};
use super::world::{SharedWorld, SimClock, SimWorkers, Work, lock};
use crate::clock::{Clock, Moment};
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{
    EndpointRow, EventFilter, Ledger, LedgerError, NewEvent, Page, Submission, TaskChange, TaskFilter, TaskGuard,
    UserRow, endpoints_of,
};
use crate::model::{
    Endpoint, EndpointDefaults, EndpointLimits, EndpointLocation, EventKind, NewTask, Pair, Role, Task, TaskState, User,
};
use crate::service::{Dispatcher, NoSeal, Parts, Settings};
use carrack_core::chance::Chance;

const USERS: [&str; 3] = ["ann", "bob", "cid"];
const NODES: [&str; 4] = ["n0", "n1", "n2", "n3"];
/// Transfers at once of the last node.
const LIMIT: usize = 2;

/// What a run came to.
#[derive(Debug, Default)]
pub struct Summary {
    pub ends: BTreeMap<&'static str, u64>,
    pub crashes: u64,
    pub attempts: u64,
    /// Tasks that said SUCCEEDED and were compared.
    pub judged: u64,
    /// Locations of endpoints, deadlines, files and tokens that were changed.
    pub changes: u64,
}

/// What is known of a task from outside.
#[derive(Debug, Default)]
struct Expected {
    works: Vec<Work>,
    cancelled: bool,
    paused: bool,
    kills: u64,
    ended: Option<TaskState>,
}

/// A submission that somebody has made or tried to make.
struct Tried {
    id: String,
    request: NewTask,
    owner: String,
    task: Option<String>,
}

/// A world, a service in it, and what happens to them.
pub struct Script {
    pub chance: Chance,
    pub clock: Arc<SimClock>,
    pub world: SharedWorld,
    pub ledger: Arc<MemoryLedger>,
    pub faults: Arc<Faults>,
    pub dispatcher: Option<Dispatcher>,
    pub settings: Settings,
    tried: Vec<Tried>,
    tasks: BTreeMap<String, Expected>,
    /// The latest that the clock on the wall has shown.
    latest: Moment,
    crashes: u64,
    judged: u64,
    changes: u64,
    ids: u64,
}

impl Script {
    /// A service that has just been started, with users and endpoints.
    pub fn new(seed: u64) -> Self {
        let (clock, ledger) = (SimClock::new(), Arc::new(MemoryLedger::new()));
        let now = clock.now();
        for name in USERS {
            let user = User { name: name.to_owned(), role: Role::User, account: None, enabled: true, added: now };
            ledger.add_user(&UserRow { user, password: None }).unwrap();
        }
        for (n, name) in NODES.into_iter().enumerate() {
            let transfers = (n == NODES.len() - 1).then_some(LIMIT as u32);
            ledger.add_endpoint(&endpoint(name, transfers, now), &endpoint_event(name)).unwrap();
        }
        let mut settings = Settings::default();
        settings.rules.workers = 6;
        let mut script = Self {
            chance: Chance::new(seed),
            latest: now,
            clock,
            world: SharedWorld::default(),
            ledger,
            faults: Arc::default(),
            dispatcher: None,
            settings,
            tried: Vec::new(),
            tasks: BTreeMap::new(),
            crashes: 0,
            judged: 0,
            changes: 0,
            ids: 0,
        };
        script.start_service();
        script
    }

    /// A new life of the service.
    pub fn start_service(&mut self) {
        let dead = Arc::new(AtomicBool::new(false));
        self.faults = Arc::new(Faults { dead: dead.clone(), ..Faults::default() });
        let ledger = Arc::new(Faulty { inner: self.ledger.clone(), faults: self.faults.clone() });
        let workers = Box::new(SimWorkers::new(self.world.clone(), self.clock.clone(), dead));
        self.ids += 1;
        let (life, mut count) = (self.ids, 0);
        let ids = Box::new(move || {
            count += 1;
            format!("timer-task-{life}-{count}")
        });
        let parts = Parts {
            ledger,
            workers,
            clock: self.clock.clone(),
            seal: Arc::new(NoSeal),
            receipt_key: crate::model::Secret::new("none"),
            tasks: "/nowhere".into(),
            ids,
            changed: Arc::new(|| {}),
        };
        self.dispatcher = Some(Dispatcher::new(parts, self.settings.clone()));
    }

    /// The service is killed. Its workers are not.
    pub fn kill_service(&mut self) {
        self.faults.dead.store(true, Ordering::Relaxed);
        self.crashes += u64::from(self.dispatcher.take().is_some());
    }

    pub fn turn(&mut self) {
        if let Some(dispatcher) = &mut self.dispatcher {
            // What the ledger refuses is tried again by the next turn.
            let _ = dispatcher.turn();
        }
        if self.faults.dead.load(Ordering::Relaxed) {
            self.kill_service();
        }
    }

    /// One second: everything gets on.
    pub fn second(&mut self) {
        self.pass(Duration::from_secs(1));
        lock(&self.world).work(self.clock.now(), self.clock.elapsed());
        self.turn();
    }

    fn pass(&mut self, time: Duration) {
        self.clock.pass(time);
        self.latest = self.latest.max(self.clock.now());
    }

    /// So many steps, then everything is mended, and every task has to come to its end.
    pub fn run(mut self, steps: u64) -> Summary {
        for _ in 0..steps {
            self.step();
            self.check();
        }
        self.mend();
        self.finish()
    }

    fn step(&mut self) {
        match self.chance.below(100) {
            0..12 => self.submit(),
            12..15 => self.submit_again(),
            15..19 => self.want(|change| change.cancel_wanted = Some(true), EventKind::Cancelling),
            19..23 => self.want(|change| change.pause_wanted = Some(true), EventKind::Paused),
            23..28 => self.want(|change| change.pause_wanted = Some(false), EventKind::Resumed),
            28..30 => self.retry(),
            30..33 => self.kill_service(),
            33..36 => self.break_ledger(),
            36 => self.toggle_full(),
            37..40 => self.kill_worker(),
            40..43 => self.freeze_worker(),
            43..46 => self.toggle_node(),
            46 => self.step_clock(),
            47 => {
                let mut world = lock(&self.world);
                world.full = !world.full;
            }
            53..57 => self.move_endpoint(),
            57..61 => self.change_deadline(),
            61..66 => self.lose_file(),
            66..68 => self.toggle_token(),
            48..53 => {
                let seconds = self.chance.below(120);
                self.pass(Duration::from_secs(seconds));
            }
            _ => {}
        }
        if self.dispatcher.is_none() && self.chance.below(3) == 0 {
            self.start_service();
        }
        if self.chance.below(4) > 0 {
            self.second();
        } else {
            self.turn();
        }
    }

    /// The API of the service, if it is there.
    fn api(&self) -> Option<Faulty> {
        let there = self.dispatcher.is_some();
        there.then(|| Faulty { inner: self.ledger.clone(), faults: self.faults.clone() })
    }

    fn submit(&mut self) {
        let pairs = (0..1 + self.chance.below(2)).map(|_| self.any_pair()).collect();
        let seconds = 30 + self.chance.below(3000);
        let deadline = (self.chance.below(8) == 0).then(|| self.clock.now().after(Duration::from_secs(seconds)));
        let request = NewTask { pairs, deadline, priority: Some(self.chance.below(10) as u8), ..NewTask::default() };
        let owner = USERS[self.chance.below(3) as usize].to_owned();
        self.tried.push(Tried { id: format!("submission {}", self.tried.len()), request, owner, task: None });
        self.try_submission(self.tried.len() - 1);
    }

    fn any_pair(&mut self) -> Pair {
        let work = Work { items: 1 + self.chance.below(20), bad: 0, poison: self.chance.below(60) == 0 };
        let bad = if self.chance.below(4) == 0 { self.chance.below(work.items + 1) } else { 0 };
        let work = Work { bad, ..work };
        let node = |chance: &mut Chance| NODES[chance.below(4) as usize];
        let (source, destination) = (node(&mut self.chance), node(&mut self.chance));
        Pair { source: format!("@{source}:{}", work.path()), destination: Some(format!("@{destination}:/to")) }
    }

    fn submit_again(&mut self) {
        if !self.tried.is_empty() {
            let which = self.chance.below(self.tried.len() as u64) as usize;
            self.try_submission(which);
        }
    }

    fn try_submission(&mut self, which: usize) {
        let Some(api) = self.api() else { return };
        let (tried, now) = (&mut self.tried[which], self.clock.now());
        self.ids += 1;
        let mut submission = Submission {
            id: format!("task-{:06}", self.ids),
            owner: tried.owner.clone(),
            submission_id: Some(tried.id.clone()),
            endpoints: endpoints_of(&tried.request),
            request: tried.request.clone(),
            estimate: None,
        };
        if let Ok(submitted) = api.submit(&submission, now) {
            let task = submitted.task.id;
            assert_eq!(submitted.duplicate, task != submission.id);
            // A submission is one task, whenever it is answered.
            assert_eq!(tried.task.get_or_insert(task.clone()), &task);
            let works = tried.request.pairs.iter().map(|pair| Work::at(&pair.source)).collect();
            let expected = Expected { works, ..Expected::default() };
            self.tasks.entry(task).or_insert(expected);
            submission.request.label = Some("another".to_owned());
            let other = api.submit(&submission, now);
            assert!(
                matches!(other, Err(LedgerError::Conflict(_) | LedgerError::Broken(_) | LedgerError::Full(_))),
                "{other:?}"
            );
        }
    }

    fn any_task(&mut self) -> Option<String> {
        let which = self.chance.below(self.tasks.len() as u64) as usize;
        self.tasks.keys().nth(which).cloned()
    }

    /// Somebody asks for something; what is not acknowledged may have been done all the same.
    fn want(&mut self, set: impl Fn(&mut TaskChange), kind: EventKind) {
        let (Some(id), Some(api)) = (self.any_task(), self.api()) else { return };
        let mut change = TaskChange::default();
        set(&mut change);
        let owner = self.ledger.task(&id).unwrap().owner;
        let event = NewEvent {
            kind,
            owner,
            task: Some(id.clone()),
            subject: None,
            text: String::new(),
            detail: serde_json::json!({}),
        };
        let answer = api.change_task(&id, &TaskGuard::default(), &change, &[event], self.clock.now());
        if !matches!(answer, Err(LedgerError::Conflict(_))) {
            let Some(expected) = self.tasks.get_mut(&id) else { return };
            expected.cancelled |= change.cancel_wanted == Some(true);
            expected.paused |= change.pause_wanted == Some(true);
        }
    }

    fn retry(&mut self) {
        let (Some(id), Some(api)) = (self.any_task(), self.api()) else { return };
        let owner = self.ledger.task(&id).unwrap().owner;
        let event = NewEvent {
            kind: EventKind::Resumed,
            owner,
            task: Some(id.clone()),
            subject: None,
            text: String::new(),
            detail: serde_json::json!({}),
        };
        let before = self.ledger.task(&id).unwrap();
        let deadline = (self.chance.below(2) == 0).then_some(None);
        let _ = api.reopen(&id, self.clock.now(), deadline, &event);
        if self.ledger.task(&id).unwrap().state != before.state {
            let expected = self.tasks.get_mut(&id).unwrap();
            let Expected { works, .. } = std::mem::take(expected);
            *expected = Expected { works, ..Expected::default() };
        }
    }

    /// An endpoint leads elsewhere, or back; the ledger says when it may not.
    fn move_endpoint(&mut self) {
        let Some(api) = self.api() else { return };
        let name = NODES[self.chance.below(4) as usize];
        let mut row = self.ledger.endpoint(name).unwrap();
        let EndpointLocation::Node { host, .. } = &mut row.endpoint.location else { return };
        *host = if host == name { format!("{name}-moved") } else { name.to_owned() };
        self.changes += u64::from(api.change_endpoint(&row, &endpoint_event(name), self.clock.now()).is_ok());
    }

    fn change_deadline(&mut self) {
        let (Some(id), Some(api)) = (self.any_task(), self.api()) else { return };
        let (seconds, any) = (20 + self.chance.below(3000), self.chance.below(3) > 0);
        let deadline = any.then(|| self.clock.now().after(Duration::from_secs(seconds)));
        let owner = self.ledger.task(&id).unwrap().owner;
        let (task, text, detail) = (Some(id.clone()), String::new(), serde_json::json!({}));
        let event = NewEvent { kind: EventKind::Updated, owner, task, subject: None, text, detail };
        let change = TaskChange { deadline: Some(deadline), ..TaskChange::default() };
        let changed = api.change_task(&id, &TaskGuard::default(), &change, &[event], self.clock.now());
        self.changes += u64::from(changed.is_ok());
    }

    /// Somebody deletes or alters an item of a task that nobody carries out.
    fn lose_file(&mut self) {
        let mut world = lock(&self.world);
        let count = world.files.len() as u64;
        let Some(place) = world.files.keys().nth(self.chance.below(count) as usize).cloned() else { return };
        let is_settled = self
            .ledger
            .task(&place.1)
            .is_ok_and(|task| !matches!(task.state, TaskState::Active | TaskState::Cancelling | TaskState::Succeeded));
        if !is_settled || world.tasks.get(&place.1).is_some_and(|task| task.process.is_some()) {
            return;
        }
        self.changes += 1;
        if self.chance.below(2) == 0 {
            world.files.remove(&place);
        } else {
            world.files.insert(place, "altered".to_owned());
        }
    }

    fn toggle_token(&mut self) {
        let node = NODES[self.chance.below(4) as usize].to_owned();
        let mut world = lock(&self.world);
        self.changes += 1;
        if !world.refusing.remove(&node) {
            world.refusing.insert(node);
        }
    }

    /// Compares a task with what is at the places that its endpoints name now: items that are there, and items in all.
    fn judge(&self, task: &Task) -> (u64, u64) {
        let world = lock(&self.world);
        let host = |location: &str| {
            let name = location.trim_start_matches('@').split(':').next().unwrap_or_default();
            match self.ledger.endpoint(name).unwrap().endpoint.location {
                EndpointLocation::Node { host, .. } => host,
                _ => String::new(),
            }
        };
        let (mut there, mut all) = (0, 0);
        for (number, pair) in (0u32..).zip(&task.request.pairs) {
            let (from, to) = (host(&pair.source), host(pair.destination.as_ref().unwrap()));
            for item in 0..Work::at(&pair.source).items {
                all += 1;
                there += u64::from(world.files.get(&(to.clone(), task.id.clone(), number, item)) == Some(&from));
            }
        }
        (there, all)
    }

    fn break_ledger(&mut self) {
        let (calls, is_done, kills) = (1 + self.chance.below(12), self.chance.below(2) == 0, self.chance.below(2) == 0);
        self.faults.is_done.store(is_done, Ordering::Relaxed);
        self.faults.kills.store(kills, Ordering::Relaxed);
        self.faults.calls_until_fault.store(calls as i64, Ordering::Relaxed);
    }

    fn toggle_full(&mut self) {
        self.faults.full.fetch_xor(true, Ordering::Relaxed);
    }

    fn any_worker(&mut self) -> Option<String> {
        let running = lock(&self.world).running();
        let which = self.chance.below(running.len() as u64) as usize;
        running.get(which).cloned()
    }

    fn kill_worker(&mut self) {
        if let Some(id) = self.any_worker() {
            lock(&self.world).kill(&id);
            if let Some(expected) = self.tasks.get_mut(&id) {
                expected.kills += 1;
            }
        }
    }

    /// Stops a worker as SIGSTOP does, or lets it go on.
    fn freeze_worker(&mut self) {
        if let Some(id) = self.any_worker()
            && let Some(process) = lock(&self.world).tasks.get_mut(&id).and_then(|task| task.process.as_mut())
        {
            process.frozen = !process.frozen;
            if let Some(expected) = self.tasks.get_mut(&id) {
                expected.kills += 1;
            }
        }
    }

    fn toggle_node(&mut self) {
        let node = NODES[self.chance.below(4) as usize].to_owned();
        let mut world = lock(&self.world);
        if !world.away.remove(&node) {
            world.away.insert(node);
        }
    }

    fn step_clock(&mut self) {
        let hours = self.chance.below(49) as i64 - 24;
        self.clock.step(hours * 3600);
        self.latest = self.latest.max(self.clock.now());
    }

    /// What must be true after every step.
    fn check(&mut self) {
        let mut at_limit = 0;
        let mut all = std::mem::take(&mut self.tasks);
        for (id, expected) in &mut all {
            let task = self.ledger.task(id).unwrap_or_else(|error| panic!("{id} was acknowledged: {error}"));
            let world = lock(&self.world);
            let seen = world.tasks.get(id);
            if let Some(process) = seen.and_then(|seen| seen.process.as_ref()) {
                assert_eq!(process.fence, task.fence, "{id} has a worker of another attempt");
                let is_running = matches!(task.state, TaskState::Active | TaskState::Cancelling);
                assert!(is_running, "{id} has a worker and is {}", task.state.name());
                at_limit += usize::from(task.request.pairs.iter().any(|pair| {
                    pair.source.starts_with("@n3:")
                        || pair.destination.as_ref().is_some_and(|end| end.starts_with("@n3:"))
                }));
            }
            let reached = seen.is_some_and(|seen| seen.reached);
            drop(world);
            if let Some(state) = expected.ended {
                assert_eq!(task.state, state, "{id} had ended");
                continue;
            }
            expected.ended = task.state.has_ended().then_some(task.state);
            let bad: u64 = expected.works.iter().map(|work| work.bad).sum();
            let (there, items) = if task.state.has_ended() { self.judge(&task) } else { (0, 0) };
            self.judged += u64::from(task.state == TaskState::Succeeded);
            let is_right = match task.state {
                TaskState::Succeeded => there == items && bad == 0,
                TaskState::Partial => there == items - bad && there > 0 && bad > 0,
                TaskState::Failed => may_have_failed(&task, expected, reached, self.latest),
                TaskState::Cancelled | TaskState::Cancelling => expected.cancelled,
                TaskState::Paused => expected.paused,
                TaskState::Queued | TaskState::Active => true,
                TaskState::Staging => false,
            };
            let state = task.state.name();
            assert!(is_right, "{id} is {state} with {there} of {items} items: {task:#?} {expected:#?}");
        }
        self.tasks = all;
        assert!(at_limit <= LIMIT, "{at_limit} transfers at an endpoint that carries {LIMIT}");
    }

    /// Everything works from now on.
    pub fn mend(&mut self) {
        self.kill_service();
        let mut world = lock(&self.world);
        world.away.clear();
        world.refusing.clear();
        world.full = false;
        for task in world.tasks.values_mut() {
            if let Some(process) = &mut task.process {
                process.frozen = false;
            }
        }
        drop(world);
        self.start_service();
    }

    /// Waits for the end of all tasks that are not paused, and checks them and their events.
    fn finish(mut self) -> Summary {
        let seconds = 4 * 3600;
        for second in 0..=seconds {
            self.second();
            self.check();
            let rest = |task: &Task| task.state.has_ended() || task.state == TaskState::Paused && task.pause_wanted;
            let waiting: Vec<Task> =
                self.tasks.keys().map(|id| self.ledger.task(id).unwrap()).filter(|task| !rest(task)).collect();
            if waiting.is_empty() {
                break;
            }
            assert!(second < seconds, "after {seconds} s some tasks have not ended: {waiting:#?}");
        }
        let mut summary = Summary { crashes: self.crashes, attempts: lock(&self.world).attempts, ..Summary::default() };
        (summary.judged, summary.changes) = (self.judged, self.changes);
        for id in self.tasks.keys() {
            *summary.ends.entry(self.ledger.task(id).unwrap().state.name()).or_default() += 1;
        }
        self.check_notes();
        let all = self.ledger.tasks(&TaskFilter::default(), &Page { after: None, limit: 100_000 }).unwrap();
        // A submission whose answer was lost is there or not; if it is, it is one task.
        let mut submissions: Vec<&str> = self.tried.iter().filter_map(|tried| tried.task.as_deref()).collect();
        submissions.sort_unstable();
        submissions.dedup();
        assert!(all.len() >= submissions.len() && all.len() <= self.tried.len());
        summary
    }

    /// Whatever workers told is an event once, whoever was killed in between.
    fn check_notes(&self) {
        let mut notes: BTreeMap<String, u64> = BTreeMap::new();
        let mut filter = EventFilter::default();
        loop {
            let events = self.ledger.events(&filter, 10_000).unwrap();
            let Some(last) = events.last() else { break };
            filter.since = last.id;
            for event in events.into_iter().filter(|event| event.kind == EventKind::Note) {
                *notes.entry(event.text).or_default() += 1;
            }
        }
        let told: BTreeMap<String, u64> =
            lock(&self.world).tasks.values().flat_map(|task| task.notes()).map(|note| (note, 1)).collect();
        let differ: Vec<_> = notes.iter().filter(|note| !told.contains_key(note.0) || *note.1 != 1).collect();
        let lost: Vec<_> = told.keys().filter(|note| !notes.contains_key(*note)).collect();
        assert!(differ.is_empty() && lost.is_empty(), "written {differ:?}, lost {lost:?}");
    }
}

fn may_have_failed(task: &Task, expected: &Expected, reached: bool, latest: Moment) -> bool {
    let code = task.failure.as_ref().map_or("", |failure| failure.code.as_str());
    match code {
        "deadline-passed" => task.request.deadline.is_some_and(|deadline| deadline <= latest),
        "authentication-failed" => !reached,
        "internal" => expected.works.iter().any(|work| work.poison) || expected.kills >= 10,
        _ => expected.works.iter().all(|work| work.bad == work.items),
    }
}

fn endpoint(name: &str, transfers: Option<u32>, added: Moment) -> EndpointRow {
    let location = EndpointLocation::Node { host: name.to_owned(), port: 1, fingerprint: None, path: "/".to_owned() };
    let endpoint = Endpoint {
        name: name.to_owned(),
        owner: USERS[0].to_owned(),
        location,
        read_only: false,
        uploads: false,
        ownership: false,
        limits: EndpointLimits { transfers, ..EndpointLimits::default() },
        defaults: EndpointDefaults::default(),
        description: String::new(),
        users: vec!["*".to_owned()],
        has_token: false,
        added,
        version: 1,
        health: None,
    };
    EndpointRow { endpoint, sealed_token: None }
}

fn endpoint_event(name: &str) -> NewEvent {
    let (kind, owner, subject) = (EventKind::EndpointChanged, USERS[0].to_owned(), Some(name.to_owned()));
    NewEvent { kind, owner, task: None, subject, text: "added".to_owned(), detail: serde_json::json!({}) }
}
