//! All file workers of a service: who has which, and when they end.

use carrack_engine::sync::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use super::FilesError;
use super::link::{Conversation, Link};
use super::process::Start;
use crate::clock::{Clock, Moment};
use crate::model::Verb;
use crate::worker::files::{Ask, FilesOrder};

/// Workers of one user.
const WORKERS_OF_ONE: usize = 4;
/// Workers in all.
const WORKERS_MAX: usize = 32;
/// Requests that one worker carries out at once.
const REQUESTS_AT_ONCE: usize = 32;
/// A worker that nobody has used for so long ends.
const IDLE: Duration = Duration::from_secs(60);
/// A worker of another user makes room once nobody has used it for so long.
const YIELDS_AFTER: Duration = Duration::from_secs(10);
/// How long a worker is lent to others. What it was given to show at its endpoint holds twice as long, so that what is
/// begun last has time to end.
pub const LENT: Duration = Duration::from_secs(43_200);
/// How often it is looked for workers that are to end.
const LOOK: Duration = Duration::from_millis(500);

/// Whose worker it is, and for what. Two requests with the same key may share a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The user.
    pub user: String,
    /// The token or the session by which they are known.
    pub token: Option<String>,
    /// When that ends.
    pub expires: Option<Moment>,
    /// How long one request may take.
    pub run_time: Option<Duration>,
    /// What they may do.
    pub rights: Vec<Verb>,
    /// Where: a path below the endpoint's root.
    pub within: String,
    /// The endpoint.
    pub endpoint: String,
    /// Whose the endpoint is.
    pub owner: String,
    /// When the endpoint was added, and which version of it this is.
    pub version: (Moment, u64),
}

/// All file workers.
pub struct Pool {
    start: Box<dyn Start>,
    clock: Arc<dyn Clock>,
    workers: Mutex<Vec<Arc<Worker>>>,
    /// Somebody looks for workers that are to end.
    is_swept: AtomicBool,
    is_stopped: AtomicBool,
}

struct Worker {
    key: Key,
    link: Arc<Link>,
    lent_until: Moment,
    usage: Mutex<Usage>,
}

struct Usage {
    /// Leases that are held, requests among them.
    leases: usize,
    requests: usize,
    /// Something of somebody is kept in it.
    kept: usize,
    /// When one was given back last.
    last: Instant,
}

impl Worker {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        lock(&self.usage)
    }

    /// Since when nobody uses it; none: somebody does.
    fn unused(&self) -> Option<Instant> {
        let usage = self.usage();
        (usage.leases == 0).then_some(usage.last)
    }

    /// Whether it is of no use to anybody.
    fn is_idle(&self) -> bool {
        self.unused().is_some_and(|since| since.elapsed() >= IDLE) && self.usage().kept == 0
    }
}

/// The right to send requests to a worker. As long as it is held the worker does not end for want of use.
pub struct Lease {
    worker: Arc<Worker>,
    /// It stands for one request.
    is_request: bool,
}

impl Lease {
    fn of(worker: &Arc<Worker>) -> Self {
        worker.usage().leases += 1;
        Self { worker: Arc::clone(worker), is_request: false }
    }

    /// Sends a request, and gives its answer. Requests of one lease run at once.
    ///
    /// # Errors
    /// [`FilesError::Busy`], and [`FilesError::Lost`] where the worker has ended.
    pub fn ask(&self, ask: Ask, body: &[u8]) -> Result<Conversation, FilesError> {
        let mut usage = self.worker.usage();
        if usage.requests >= REQUESTS_AT_ONCE {
            return Err(FilesError::Busy);
        }
        usage.requests += 1;
        usage.leases += 1;
        drop(usage);
        let lease = Self { worker: Arc::clone(&self.worker), is_request: true };
        let until = self.worker.key.run_time.and_then(|time| Instant::now().checked_add(time));
        self.worker.link.ask(ask, body, until, Box::new(lease))
    }

    /// Keeps the worker, as long as others do not need its place more.
    pub(super) fn keep(&self) -> Kept {
        self.worker.usage().kept += 1;
        Kept(Arc::clone(&self.worker))
    }

    /// Whose worker it is, and for what.
    pub fn key(&self) -> &Key {
        &self.worker.key
    }

    /// Whether the worker takes requests.
    pub fn is_alive(&self) -> bool {
        self.worker.link.is_alive()
    }
}

/// A worker that has something of somebody. It does not end for want of use, but makes room for another.
pub(super) struct Kept(Arc<Worker>);

impl Kept {
    /// The right to send requests to it.
    pub fn lease(&self) -> Lease {
        Lease::of(&self.0)
    }

    /// Whether the worker takes requests.
    pub fn is_alive(&self) -> bool {
        self.0.link.is_alive()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        usage.kept -= 1;
        usage.last = Instant::now();
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        Self::of(&self.worker)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut usage = self.worker.usage();
        usage.leases -= 1;
        usage.requests -= usize::from(self.is_request);
        usage.last = Instant::now();
    }
}

impl Pool {
    /// A pool without workers.
    pub fn new(start: Box<dyn Start>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            start,
            clock,
            workers: Mutex::default(),
            is_swept: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        })
    }

    fn workers(&self) -> MutexGuard<'_, Vec<Arc<Worker>>> {
        lock(&self.workers)
    }

    /// Lends the worker with this key. Where there is none it is started, with the order that `order` makes. It blocks
    /// while a process starts, and is called within a runtime.
    ///
    /// # Errors
    /// [`FilesError::Busy`] where there are too many workers; [`FilesError::Lost`] where none can be started; those of
    /// `order`.
    pub fn lease<E: From<FilesError>>(
        self: &Arc<Self>,
        key: &Key,
        order: impl FnOnce() -> Result<FilesOrder, E>,
    ) -> Result<Lease, E> {
        if let Some(worker) = self.find(&self.workers(), key) {
            return Ok(worker);
        }
        // The order may take a while: others find their workers meanwhile.
        let order = order()?;
        let mut workers = self.workers();
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(FilesError::Stopping.into());
        }
        if let Some(worker) = self.find(&workers, key) {
            return Ok(worker);
        }
        workers.retain(|worker| worker.link.is_alive());
        make_room(&mut workers, &key.user)?;
        let started = self.start.start().and_then(|started| Link::open(started, &order));
        let link = started.map_err(|error| FilesError::Lost(error.to_string()))?;
        let usage = Mutex::new(Usage { leases: 0, requests: 0, kept: 0, last: Instant::now() });
        let worker = Arc::new(Worker { key: key.clone(), link, lent_until: self.clock.now().after(LENT), usage });
        workers.push(Arc::clone(&worker));
        let lease = Lease::of(&worker);
        drop(workers);
        if !self.is_swept.swap(true, Ordering::Relaxed) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        Ok(lease)
    }

    fn find(&self, workers: &[Arc<Worker>], key: &Key) -> Option<Lease> {
        let now = self.clock.now();
        let may_be_lent =
            |worker: &&Arc<Worker>| worker.key == *key && worker.lent_until > now && worker.link.is_alive();
        workers.iter().find(may_be_lent).map(Lease::of)
    }

    /// Ends workers at once: a right that they stand on has ended.
    pub fn end_where(&self, why: &str, which: impl Fn(&Key) -> bool) {
        self.workers().retain(|worker| {
            let is_ended = which(&worker.key);
            if is_ended {
                worker.link.end(why);
            }
            !is_ended
        });
    }

    /// Ends all workers, and starts none any more.
    pub fn stop(&self) {
        let workers = self.workers();
        self.is_stopped.store(true, Ordering::Relaxed);
        drop(workers);
        self.end_where("the service ends", |_| true);
    }

    /// How many workers there are.
    pub fn count(&self) -> usize {
        self.workers().iter().filter(|worker| worker.link.is_alive()).count()
    }

    fn end_old(&self) {
        let now = self.clock.now();
        self.workers().retain(|worker| {
            let is_over = worker.key.expires.is_some_and(|expires| expires <= now);
            // What is kept in it stays for as long as its grant holds.
            let until = if worker.usage().kept == 0 { worker.lent_until } else { worker.lent_until.after(LENT) };
            let is_idle = worker.is_idle() || until <= now && worker.unused().is_some();
            if is_over || is_idle {
                worker.link.end(if is_over { "the caller's token has expired" } else { "nobody has used it" });
            }
            worker.link.is_alive()
        });
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends a worker that nobody uses, where there are too many: the one that was not used for longest.
fn make_room(workers: &mut Vec<Arc<Worker>>, user: &str) -> Result<(), FilesError> {
    let of_user = workers.iter().filter(|worker| worker.key.user == user).count();
    let is_one_too_many = of_user >= WORKERS_OF_ONE;
    if !is_one_too_many && workers.len() < WORKERS_MAX {
        return Ok(());
    }
    let own = |worker: &Arc<Worker>| worker.key.user == user;
    let unused = workers.iter().enumerate().filter_map(|(place, worker)| {
        let since = worker.unused()?;
        let may_go = own(worker) || (!is_one_too_many && since.elapsed() >= YIELDS_AFTER);
        may_go.then_some((since, place))
    });
    let (_, place) = unused.min().ok_or(FilesError::Busy)?;
    workers.swap_remove(place).link.end("another worker has taken its place");
    Ok(())
}

async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.end_old();
    }
}
