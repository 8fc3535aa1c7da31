//! What the service does not own: the clock, the nodes, and the workers, which outlive it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::{Clock, Moment};
use crate::journal::{AttemptEnd, EndKind, Record, Sample};
use crate::model::{EventKind, Fence, Progress, TaskFailure};
use crate::service::workers::{StartFault, Workers};
use crate::supervise::{Told, What};
use crate::worker::{EndOrder, Order};

/// As the supervisor has them.
const STOP_GRACE: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(60);

/// Choices from a seed: SplitMix64.
#[derive(Clone, Debug)]
pub struct Chance(pub u64);

impl Chance {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }
}

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

    fn of(order: &Order) -> (Self, BTreeSet<String>) {
        let mut nodes = BTreeSet::new();
        let mut work = Self::default();
        for end in order.pairs.iter().flat_map(|pair| [Some(&pair.source), pair.destination.as_ref()]).flatten() {
            if let EndOrder::Node { host, path, .. } = end {
                nodes.insert(host.clone());
                let numbers: Vec<u64> = path.split('/').filter_map(|part| part.parse().ok()).collect();
                if let [items, bad, poison] = numbers[..] {
                    work = Self { items, bad, poison: poison > 0 };
                }
            }
        }
        (work, nodes)
    }
}

/// A worker.
#[derive(Debug)]
pub struct Process {
    pub fence: Fence,
    work: Work,
    nodes: BTreeSet<String>,
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
    /// Items that are at their destination.
    pub done: u64,
    pub failed: u64,
    pub process: Option<Process>,
    /// The highest fence that ever began.
    last_fence: Fence,
}

/// Nodes and workers.
#[derive(Debug, Default)]
pub struct World {
    pub tasks: BTreeMap<String, TaskWorld>,
    /// Nodes that are away.
    pub away: BTreeSet<String>,
    /// The state directory takes nothing.
    pub full: bool,
    pub attempts: u64,
    events: u64,
}

impl World {
    /// Every worker gets one step further.
    pub fn work(&mut self, now: Moment) {
        let away = self.away.clone();
        let events = &mut self.events;
        for task in self.tasks.values_mut() {
            let mut process = task.process.take();
            if let Some(running) = process.as_mut().filter(|process| !process.frozen) {
                *events += 1;
                let lives = task.step(running, &away, now, *events);
                if !lives {
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

impl TaskWorld {
    /// One step of a worker; whether it lives on.
    fn step(&mut self, process: &mut Process, away: &BTreeSet<String>, now: Moment, event: u64) -> bool {
        let fence = process.fence;
        if process.ended {
            return false;
        }
        if self.last_fence < fence {
            // An attempt tries again what failed.
            (self.last_fence, self.failed) = (fence, 0);
            let record = Record::Began { fence, time: now, process: 1, program: "sim".to_owned() };
            self.journal.push((fence, record));
            return true;
        }
        if process.work.poison {
            return false;
        }
        if process.term {
            self.end(process, EndKind::Stopped, None, now);
            return true;
        }
        if let Some(node) = process.nodes.intersection(away).next() {
            let why = format!("{node} does not answer");
            let failure = TaskFailure {
                code: "connect-failed".to_owned(),
                side: "link".to_owned(),
                why,
                retryable: true,
                hints: vec![],
            };
            self.end(process, EndKind::Failed, Some(failure), now);
            return true;
        }
        if self.failed < process.work.bad {
            self.failed += 1;
        } else if self.done + self.failed < process.work.items {
            self.done += 1;
            process.moved = true;
            let (kind, text) = (EventKind::Note, format!("note {event}"));
            self.journal.push((fence, Record::Event { time: now, kind, text, detail: "{}".to_owned() }));
        } else {
            self.end(process, EndKind::Done, None, now);
            return true;
        }
        let progress = self.progress(&process.work);
        let sample = Sample { time: now, progress, streams: 1, source: None, destination: None };
        self.journal.push((fence, Record::Sample(sample)));
        true
    }

    fn progress(&self, work: &Work) -> Progress {
        Progress {
            items_total: work.items,
            items_done: self.done,
            items_failed: self.failed,
            bytes_moved: self.done * 1000,
            scan_complete: true,
            ..Progress::default()
        }
    }

    fn end(&mut self, process: &mut Process, kind: EndKind, failure: Option<TaskFailure>, now: Moment) {
        process.ended = true;
        let (progress, got_somewhere) = (self.progress(&process.work), process.moved);
        let end = AttemptEnd { time: now, kind, progress, failure, got_somewhere };
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
    world.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
        let (work, nodes) = Work::of(order);
        let fence = order.fence;
        task.process = Some(Process { fence, work, nodes, term: false, frozen: false, ended: false, moved: false });
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

    fn forget(&mut self, task: &str) {
        lock(&self.world).tasks.remove(task);
    }
}
