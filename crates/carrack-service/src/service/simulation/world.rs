//! What the service does not own: the clock, the nodes, and the workers, which outlive it.

use carrack_core::location::Location;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::{Clock, Moment};
use crate::journal::{AttemptEnd, EndKind, Item, PairEnd, Record, Sample};
use crate::model::{EventKind, Fence, ItemState, Progress, TaskFailure};
use crate::service::workers::{StartFault, Workers};
use crate::supervise::{Told, What};
use crate::worker::history::{History, Rest};
use crate::worker::{EndOrder, Order, PairOrder};
use carrack_core::report::ItemKind;

/// As the supervisor has them.
const STOP_GRACE: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(60);

/// A clock that a script sets.
#[derive(Debug, Default)]
pub struct SimClock {
    wall: AtomicI64,
    steady: AtomicU64,
}

impl SimClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { wall: AtomicI64::new(1_800_000_000_000_000), steady: AtomicU64::new(0) })
    }

    pub fn pass(&self, time: Duration) {
        let micros = time.as_micros() as u64;
        self.steady.fetch_add(micros, Ordering::Relaxed);
        self.wall.fetch_add(micros as i64, Ordering::Relaxed);
    }

    pub fn step(&self, seconds: i64) {
        self.wall.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Moment {
        Moment(self.wall.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.steady.load(Ordering::Relaxed))
    }
}

/// What a task has to do: known to the world by the path of its source, `/ITEMS/BAD/POISON/NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub items: u64,
    /// The first so many fail, whatever is tried.
    pub bad: u64,
    /// Every worker dies before its first item.
    pub poison: bool,
}

impl Work {
    pub fn path(&self) -> String {
        format!("/{}/{}/{}", self.items, self.bad, u8::from(self.poison))
    }

    /// By the path of a source.
    pub fn at(path: &str) -> Self {
        let numbers: Vec<u64> = path.split('/').filter_map(|part| part.parse().ok()).collect();
        match numbers[..] {
            [items, bad, poison] => Self { items, bad, poison: poison > 0 },
            _ => Self::default(),
        }
    }
}

/// A pair of an order: what is done, from which host to which.
#[derive(Clone, Debug)]
struct SimPair {
    work: Work,
    source: String,
    destination: String,
    place: Vec<u8>,
}

impl SimPair {
    fn of(pair: &PairOrder) -> Self {
        let host = |end: &EndOrder| match &end.location {
            Location::Node { node, path } => (node.host.clone(), Work::at(&String::from_utf8_lossy(path))),
            _ => ("here".to_owned(), Work::default()),
        };
        let (source, work) = host(&pair.source);
        let destination = pair.destination.as_ref().map_or_else(|| source.clone(), |end| host(end).0);
        Self { work, source, destination, place: pair.place() }
    }
}

/// Where an item of a task is: host, task, pair and number.
pub type Place = (String, String, u32, u64);

/// A worker.
#[derive(Debug)]
pub struct Process {
    pub fence: Fence,
    pairs: Vec<SimPair>,
    /// What it has read in the journal.
    history: History,
    /// The pair that it is at, and what is left to be done of it.
    at: usize,
    todo: Option<VecDeque<u64>>,
    /// Items of each pair that failed.
    failed: BTreeMap<usize, u64>,
    reached: bool,
    deadline: Option<Duration>,
    /// It was told to end.
    term: bool,
    /// It hangs, or somebody has stopped it.
    pub frozen: bool,
    ended: bool,
    moved: bool,
}

/// What is left of a task on disk, and its worker.
#[derive(Debug, Default)]
pub struct TaskWorld {
    journal: Vec<(Fence, Record)>,
    /// Items that were brought to their destination, by the last attempt's count.
    pub done: u64,
    pub process: Option<Process>,
    /// A worker has reached its hosts.
    pub reached: bool,
    /// The highest fence that ever began.
    last_fence: Fence,
}

/// Nodes and workers.
#[derive(Debug, Default)]
pub struct World {
    pub tasks: BTreeMap<String, TaskWorld>,
    /// All items that are anywhere, with the host that they came from.
    pub files: BTreeMap<Place, String>,
    /// Nodes that are away.
    pub away: BTreeSet<String>,
    /// Nodes that refuse the token that they are shown.
    pub refusing: BTreeSet<String>,
    /// The state directory takes nothing.
    pub full: bool,
    pub attempts: u64,
    events: u64,
}

/// What a worker meets in a step.
struct Around<'a> {
    id: &'a str,
    files: &'a mut BTreeMap<Place, String>,
    away: &'a BTreeSet<String>,
    refusing: &'a BTreeSet<String>,
    now: Moment,
    steady: Duration,
    event: u64,
}

impl World {
    /// Every worker gets one step further.
    pub fn work(&mut self, now: Moment, steady: Duration) {
        let Self { tasks, files, away, refusing, events, .. } = self;
        for (id, task) in tasks {
            let mut process = task.process.take();
            if let Some(running) = process.as_mut().filter(|process| !process.frozen) {
                *events += 1;
                let (files, away, refusing) = (&mut *files, &*away, &*refusing);
                let around = Around { id, files, away, refusing, now, steady, event: *events };
                if !task.step(running, around) {
                    process = None;
                }
            }
            task.process = process;
        }
    }

    /// A worker dies without a word.
    pub fn kill(&mut self, id: &str) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.process = None;
        }
    }

    pub fn running(&self) -> Vec<String> {
        self.tasks.iter().filter(|(_, task)| task.process.is_some()).map(|(id, _)| id.clone()).collect()
    }
}

fn failure(code: &str, why: &str, retryable: bool) -> Option<TaskFailure> {
    let (code, side, why) = (code.to_owned(), "link".to_owned(), why.to_owned());
    Some(TaskFailure { code, side, endpoint: None, why, retryable, hints: vec![] })
}

impl TaskWorld {
    /// One step of a worker; whether it lives on.
    fn step(&mut self, process: &mut Process, around: Around<'_>) -> bool {
        let (fence, now) = (process.fence, around.now);
        if process.ended {
            return false;
        }
        if self.last_fence < fence {
            self.last_fence = fence;
            process.history = History::of(self.journal.iter().map(|(_, record)| record.clone()));
            process.reached = process.history.reached;
            let record = Record::Began { fence, time: now, process: 1, program: "sim".to_owned() };
            self.journal.push((fence, record));
            return true;
        }
        if process.pairs.iter().any(|pair| pair.work.poison) {
            return false;
        }
        if process.term {
            self.end(process, &around, EndKind::Stopped, None);
            return true;
        }
        if process.deadline.is_some_and(|deadline| deadline <= around.steady) {
            self.end(process, &around, EndKind::Failed, failure("deadline-passed", "too late", false));
            return true;
        }
        let Some(pair) = process.pairs.get(process.at).cloned() else {
            self.end(process, &around, EndKind::Done, None);
            return true;
        };
        let ends = [&pair.source, &pair.destination];
        if let Some(node) = ends.into_iter().find(|host| around.away.contains(*host)) {
            let why = format!("{node} does not answer");
            self.end(process, &around, EndKind::Failed, failure("connect-failed", &why, true));
            return true;
        }
        if ends.into_iter().any(|host| around.refusing.contains(host)) {
            // Only what was taken before may be taken again.
            let why = failure("authentication-failed", "the token is refused", process.reached);
            self.end(process, &around, EndKind::Failed, why);
            return true;
        }
        if !std::mem::replace(&mut process.reached, true) {
            self.journal.push((fence, Record::Reached));
            self.reached = true;
        }
        self.work(process, &pair, around);
        true
    }

    /// Gets one item further.
    fn work(&mut self, process: &mut Process, pair: &SimPair, around: Around<'_>) {
        let (fence, number, now) = (process.fence, process.at as u32, around.now);
        let place = |item: u64| (pair.destination.clone(), around.id.to_owned(), number, item);
        let Some(todo) = &mut process.todo else {
            let failed = process.history.pairs.get(&number).map(|pair| pair.failed.clone()).unwrap_or_default();
            let failed: BTreeSet<u64> =
                failed.iter().filter_map(|path| std::str::from_utf8(path).ok()?.parse().ok()).collect();
            let is_there = |item: &u64| around.files.get(&place(*item)) == Some(&pair.source);
            let is_left = |item: &u64| failed.contains(item) || !is_there(item);
            let all = 0..pair.work.items;
            let todo: VecDeque<u64> = match process.history.rest(number, &pair.place) {
                Rest::Anew => all.collect(),
                // A copy that goes on knows by its marker what it has brought there.
                Rest::Whole | Rest::Failed | Rest::Look => all.filter(is_left).collect(),
            };
            process.failed.insert(process.at, 0);
            if !todo.is_empty() {
                self.journal.push((fence, Record::PassBegan { pair: number, place: pair.place.clone() }));
            }
            process.todo = (!todo.is_empty()).then_some(todo);
            process.at += usize::from(process.todo.is_none());
            return;
        };
        let Some(item) = todo.pop_front() else { return };
        let is_last = todo.is_empty();
        let is_bad = item < pair.work.bad;
        let state = if is_bad { ItemState::Failed } else { ItemState::Done };
        let (path, kind, size) = (item.to_string().into_bytes(), ItemKind::File, 1000);
        let told = Item { pair: number, path, kind, state, size, digest: None, failure: None };
        self.journal.push((fence, Record::Item(told)));
        if is_bad {
            *process.failed.entry(process.at).or_default() += 1;
        } else {
            around.files.insert(place(item), pair.source.clone());
            process.moved = true;
            let (kind, text) = (EventKind::Note, format!("note {}", around.event));
            self.journal.push((fence, Record::Event { time: now, kind, text, detail: "{}".to_owned() }));
        }
        let progress = self.progress(process, &around);
        self.done = progress.items_done;
        if is_last {
            let (of_sources, of_look) = (false, false);
            let end = PairEnd { pair: number, of_sources, of_look, time: now, progress: progress.clone() };
            self.journal.push((fence, Record::PairEnded(end)));
            (process.at, process.todo) = (process.at + 1, None);
        }
        let sample = Sample { time: now, progress, streams: 1, source: None, destination: None };
        self.journal.push((fence, Record::Sample(sample)));
    }

    fn progress(&self, process: &Process, around: &Around<'_>) -> Progress {
        let there = |(number, pair): (usize, &SimPair)| {
            let place = |item| (pair.destination.clone(), around.id.to_owned(), number as u32, item);
            let there = around.files.range(place(0)..place(pair.work.items));
            there.filter(|(_, source)| **source == pair.source).count() as u64
        };
        let items_done = process.pairs.iter().enumerate().map(there).sum();
        let items_total: u64 = process.pairs.iter().map(|pair| pair.work.items).sum();
        Progress {
            items_total,
            items_done,
            items_failed: process.failed.values().sum(),
            bytes_total: items_total * 1000,
            bytes_moved: items_done * 1000,
            scan_complete: true,
            ..Progress::default()
        }
    }

    fn end(&mut self, process: &mut Process, around: &Around<'_>, kind: EndKind, failure: Option<TaskFailure>) {
        process.ended = true;
        let (progress, got_somewhere, time) = (self.progress(process, around), process.moved, around.now);
        let late = failure.as_ref().is_some_and(|failure| failure.code == "deadline-passed");
        let end = AttemptEnd { time, kind, progress, failure, got_somewhere, late };
        self.journal.push((process.fence, Record::Ended(end)));
    }

    /// Notes of the journal so far.
    pub fn notes(&self) -> Vec<String> {
        let note = |(_, record): &(Fence, Record)| match record {
            Record::Event { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.journal.iter().filter_map(note).collect()
    }
}

/// The world, shared by the script and the workers' side of whichever service runs.
pub type SharedWorld = Arc<Mutex<World>>;

pub fn lock(world: &SharedWorld) -> MutexGuard<'_, World> {
    carrack_engine::sync::lock(world)
}

/// A worker that this service follows.
struct Followed {
    fence: Fence,
    read: usize,
    heard: Duration,
    stopping: Option<Duration>,
}

/// The supervisor of one life of the service. It is gone with it; the world stays.
pub struct SimWorkers {
    world: SharedWorld,
    clock: Arc<SimClock>,
    followed: BTreeMap<String, Followed>,
    /// Nothing happens any more: the service was killed.
    dead: Arc<std::sync::atomic::AtomicBool>,
}

impl SimWorkers {
    pub fn new(world: SharedWorld, clock: Arc<SimClock>, dead: Arc<std::sync::atomic::AtomicBool>) -> Self {
        Self { world, clock, followed: BTreeMap::new(), dead }
    }

    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// As a worker takes a deadline: from here on by a clock that does not jump.
    fn steady_of(&self, deadline: Option<Moment>) -> Option<Duration> {
        deadline.map(|deadline| self.clock.elapsed() + deadline.since(self.clock.now()))
    }

    fn follow(&mut self, task: &str, fence: Fence) {
        let heard = self.clock.elapsed();
        self.followed.insert(task.to_owned(), Followed { fence, read: 0, heard, stopping: None });
    }
}

impl Workers for SimWorkers {
    fn start(&mut self, order: &Order) -> Result<(), StartFault> {
        if self.is_dead() {
            return Err(StartFault::Failed("the service is dead".to_owned()));
        }
        let mut world = lock(&self.world);
        if world.full {
            return Err(StartFault::Failed("no space left on device".to_owned()));
        }
        world.attempts += 1;
        let task = world.tasks.entry(order.task.clone()).or_default();
        if task.process.is_some() {
            task.process = None;
            return Err(StartFault::StillHeld);
        }
        assert!(
            order.fence > task.last_fence,
            "attempt {} of {} comes after {}",
            order.fence,
            order.task,
            task.last_fence
        );
        let fence = order.fence;
        task.process = Some(Process {
            fence,
            pairs: order.pairs.iter().map(SimPair::of).collect(),
            history: History::default(),
            at: 0,
            todo: None,
            failed: BTreeMap::new(),
            reached: false,
            deadline: self.steady_of(order.deadline),
            term: false,
            frozen: false,
            ended: false,
            moved: false,
        });
        drop(world);
        self.follow(&order.task, fence);
        Ok(())
    }

    fn adopt(&mut self, task: &str, fence: Fence) {
        self.follow(task, fence);
    }

    fn stop(&mut self, task: &str) {
        let now = self.clock.elapsed();
        if self.is_dead() {
            return;
        }
        if let Some(followed) = self.followed.get_mut(task) {
            followed.stopping.get_or_insert(now);
            if let Some(process) = lock(&self.world).tasks.get_mut(task).and_then(|task| task.process.as_mut()) {
                process.term = true;
            }
        }
    }

    fn tell_deadline(&mut self, task: &str, deadline: Option<Moment>) -> Result<(), String> {
        if self.is_dead() {
            return Err("the service is dead".to_owned());
        }
        let deadline = self.steady_of(deadline);
        let mut world = lock(&self.world);
        if let Some(process) = world.tasks.get_mut(task).and_then(|task| task.process.as_mut()) {
            process.deadline = deadline;
        }
        Ok(())
    }

    fn poll(&mut self) -> Vec<Told> {
        let (now, mut told) = (self.clock.elapsed(), Vec::new());
        if self.is_dead() {
            return told;
        }
        let mut world = lock(&self.world);
        self.followed.retain(|id, followed| {
            let fence = followed.fence;
            let mut tell = |what| told.push(Told { task: id.clone(), fence, what });
            let Some(task) = world.tasks.get_mut(id) else {
                tell(What::Gone { told_its_end: false, why: None });
                return false;
            };
            let mut ended = false;
            for (of, record) in &task.journal[followed.read..] {
                if *of == fence {
                    followed.heard = now;
                    ended |= matches!(record, Record::Ended(_));
                    tell(What::Record(record.clone()));
                }
            }
            followed.read = task.journal.len();
            if task.process.is_none() {
                tell(What::Gone { told_its_end: ended, why: None });
                return false;
            }
            let overdue = followed.stopping.is_some_and(|since| now.saturating_sub(since) > STOP_GRACE);
            if overdue || now.saturating_sub(followed.heard) > SILENCE {
                task.process = None;
            }
            true
        });
        told
    }

    fn forget(&mut self, task: &str) -> bool {
        let is_alive = !self.is_dead();
        if is_alive {
            lock(&self.world).tasks.remove(task);
        }
        is_alive
    }
}
