//! Threads that do one operation after the other and time each. Queue depth is the number of threads on one file: one
//! operation of each is under way.

use carrack_sys::sync::{lock, unpoisoned};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::histogram::Histogram;
use crate::series::Series;
use crate::usage::{Mark, Usage};

/// Waiting for a moment ends in a loop from here on: a sleep ends too late by about as much.
const SPIN: Duration = Duration::from_micros(60);

/// Does the operation at a place of the order; answers with its bytes.
pub type Operate<'a> = Box<dyn FnMut(u64) -> io::Result<u64> + 'a>;

/// What the workers shall do.
pub struct Job<'a> {
    /// Files; each has its own operations.
    pub files: usize,
    /// Workers on each file.
    pub depth: usize,
    /// Operations on each file.
    pub operations: u64,
    /// Operations that a worker takes at a time. More than one only where their order does not matter: the workers on a
    /// file wait for each other where they count operations, and of small ones that shows.
    pub claim: u64,
    /// No operation begins later than this.
    pub limit: Option<Duration>,
    /// Operations a second in all, however long each takes; else the next begins when the last has ended.
    pub rate: Option<f64>,
    /// Makes what a worker (its file, its number among all) does.
    pub make: &'a (dyn Fn(usize, usize) -> Operate<'a> + Sync),
    /// Done once for each file, when all its operations have ended: its time counts.
    pub finish: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
    /// Asked again and again: whether to end at once.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// What the workers did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Bytes of all.
    pub bytes: u64,
    /// Operations of all.
    pub operations: u64,
    /// Operations on the file that has had the fewest: that many, from the first in the order. Those count that a
    /// worker had taken and did not come to.
    pub operations_least: u64,
    /// From the start to the end of the last worker, its finish included.
    pub elapsed: Duration,
    /// From the start to the end of the last operation.
    pub operated: Duration,
    /// When the first worker had nothing left to do, and the bytes of all at that moment.
    pub first_done: (Duration, u64),
    /// Time of each operation; at a given rate, from the moment when it was due.
    pub latency: Histogram,
    /// Bytes over time.
    pub series: Series,
    /// Processor time.
    pub usage: Usage,
    /// Whether it was stopped.
    pub stopped: bool,
    /// At a given rate: by how much the last operation began too late.
    pub behind: Duration,
}

/// A counter with a cache line of its own, and the one that is fetched with it: workers on several processors count
/// without waiting for each other.
#[derive(Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// What all workers share.
struct Shared<'s, 'a> {
    job: &'s Job<'a>,
    start_line: StartLine,
    start: OnceLock<Instant>,
    /// Next operation of each file.
    next: Vec<Apart>,
    /// Next arrival.
    arrivals: AtomicU64,
    /// Workers of each file that are not done.
    working: Vec<AtomicU64>,
    /// Bytes of each worker.
    progress: Vec<Apart>,
    stopped: AtomicBool,
    first_done: OnceLock<(Duration, u64)>,
    error: Mutex<Option<io::Error>>,
}

/// Where workers wait until all of them are there, or one could not be made.
struct StartLine {
    workers: usize,
    state: Mutex<Start>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// So many workers are there.
    Waits(usize),
    /// All of them are.
    Runs,
    /// It comes to nothing.
    Fails,
}

impl StartLine {
    fn new(workers: usize) -> Self {
        Self { workers, state: Mutex::new(Start::Waits(0)), changed: Condvar::new() }
    }

    /// Waits for the others; whether to run.
    fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        if let Start::Waits(before) = *state {
            let all = before + 1 >= self.workers;
            *state = if all { Start::Runs } else { Start::Waits(before + 1) };
            if all {
                self.changed.notify_all();
            }
        }
        let waits = |state: &mut Start| matches!(state, Start::Waits(_));
        *unpoisoned(self.changed.wait_while(state, waits)) == Start::Runs
    }

    /// Sends home all who wait, and all who come later.
    fn fail(&self) {
        *lock(&self.state) = Start::Fails;
        self.changed.notify_all();
    }
}

/// What one worker did.
#[derive(Default)]
struct Own {
    bytes: u64,
    operations: u64,
    operated: Duration,
    ended: Duration,
    latency: Histogram,
    series: Series,
    behind: Duration,
}

/// Runs a job to its end.
///
/// # Errors
/// The first error of an operation, or of making a thread; the others end then, too.
pub fn run(job: &Job<'_>) -> io::Result<Done> {
    run_with(job, &|_| Builder::new())
}

/// [`run`] with threads as `builder` makes them; it is given the worker's number.
#[expect(clippy::disallowed_methods, reason = "a test gives threads that cannot be made; that is an error here, too")]
fn run_with(job: &Job<'_>, builder: &dyn Fn(usize) -> Builder) -> io::Result<Done> {
    let workers = job.files * job.depth;
    let shared = Shared {
        job,
        start_line: StartLine::new(workers),
        start: OnceLock::new(),
        next: (0..job.files).map(|_| Apart::default()).collect(),
        arrivals: AtomicU64::new(0),
        working: (0..job.files).map(|_| AtomicU64::new(job.depth as u64)).collect(),
        progress: (0..workers).map(|_| Apart::default()).collect(),
        stopped: AtomicBool::new(false),
        first_done: OnceLock::new(),
        error: Mutex::new(None),
    };
    let mark = Mark::now();
    let own: Vec<Own> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for worker in 0..workers {
            let shared = &shared;
            match builder(worker).spawn_scoped(scope, move || work(shared, worker)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let why = format!("thread {} of {workers} could not be started: {error}", worker + 1);
                    shared.fail(io::Error::new(error.kind(), why));
                    shared.start_line.fail();
                    break;
                }
            }
        }
        // A worker panics only if this crate has a fault: it goes on here.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let usage = mark.usage();
    if let Some(error) = unpoisoned(shared.error.into_inner()) {
        return Err(error);
    }
    let mut done = Done {
        usage,
        stopped: shared.stopped.load(Ordering::Relaxed),
        first_done: shared.first_done.get().copied().unwrap_or_default(),
        operations_least: shared
            .next
            .iter()
            .map(|next| next.0.load(Ordering::Relaxed).min(job.operations))
            .min()
            .unwrap_or(0),
        ..Done::default()
    };
    for own in &own {
        done.bytes += own.bytes;
        done.operations += own.operations;
        done.elapsed = done.elapsed.max(own.ended);
        done.operated = done.operated.max(own.operated);
        done.behind = done.behind.max(own.behind);
        done.latency.merge(&own.latency);
        done.series.merge(&own.series);
    }
    Ok(done)
}

fn work(shared: &Shared<'_, '_>, worker: usize) -> Own {
    let job = shared.job;
    let file = worker / job.depth;
    let mut operate = (job.make)(file, worker);
    if job.rate.is_some() {
        carrack_sys::gauge::wake_exactly();
    }
    if !shared.start_line.wait() {
        return Own::default();
    }
    let start = *shared.start.get_or_init(Instant::now);
    let mut own = Own::default();
    let mut ended = operate_all(shared, worker, start, &mut operate, &mut own);
    // Memory is given back, and a mapping undone, outside of what is timed.
    let done = start.elapsed();
    shared.first_done.get_or_init(|| {
        let bytes = shared.progress.iter().map(|bytes| bytes.0.load(Ordering::Relaxed)).sum();
        (done, bytes)
    });
    if shared.working[file].fetch_sub(1, Ordering::AcqRel) == 1 && ended.is_ok() {
        ended = (job.finish)(file);
    }
    own.ended = start.elapsed();
    if let Err(error) = ended {
        shared.fail(error);
    }
    own
}

impl Shared<'_, '_> {
    /// Keeps the first error, and ends all workers.
    fn fail(&self, error: io::Error) {
        lock(&self.error).get_or_insert(error);
        self.stopped.store(true, Ordering::Relaxed);
    }
}

fn operate_all(
    shared: &Shared<'_, '_>,
    worker: usize,
    start: Instant,
    operate: &mut Operate<'_>,
    own: &mut Own,
) -> io::Result<()> {
    let job = shared.job;
    let file = worker / job.depth;
    let mut now = start;
    let mut claimed = 0..0;
    loop {
        if shared.stopped.load(Ordering::Relaxed) || (job.stop)() {
            shared.stopped.store(true, Ordering::Relaxed);
            return Ok(());
        }
        if job.limit.is_some_and(|limit| now.duration_since(start) >= limit) {
            return Ok(());
        }
        let mut begin = now;
        if let Some(rate) = job.rate {
            let arrival = shared.arrivals.fetch_add(1, Ordering::Relaxed);
            begin = start + Duration::from_secs_f64(arrival as f64 / rate);
            if job.limit.is_some_and(|limit| begin.duration_since(start) >= limit) {
                return Ok(());
            }
            wait_until(begin, shared);
        }
        if claimed.is_empty() {
            let first = shared.next[file].0.fetch_add(job.claim, Ordering::Relaxed);
            claimed = first..first.saturating_add(job.claim).min(job.operations);
        }
        let Some(at) = claimed.next() else { return Ok(()) };
        if job.rate.is_some() {
            own.behind = begin.elapsed();
        }
        let bytes = operate(at)?;
        now = Instant::now();
        own.latency.record(now.saturating_duration_since(begin));
        own.operated = now.duration_since(start);
        own.series.add(own.operated, bytes as f64);
        own.bytes += bytes;
        own.operations += 1;
        shared.progress[worker].0.store(own.bytes, Ordering::Relaxed);
    }
}

/// Waits for a moment, or until the workers shall stop.
fn wait_until(moment: Instant, shared: &Shared<'_, '_>) {
    /// Slept at most at a time, so that a request to stop is heard.
    const NAP: Duration = Duration::from_millis(50);
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() || shared.stopped.load(Ordering::Relaxed) || (shared.job.stop)() {
            return;
        }
        match left.checked_sub(SPIN) {
            Some(nap) if !nap.is_zero() => std::thread::sleep(nap.min(NAP)),
            _ => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn job<'a>(
        make: &'a (dyn Fn(usize, usize) -> Operate<'a> + Sync),
        finish: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Job<'a> {
        Job { files: 2, depth: 3, operations: 100, claim: 1, limit: None, rate: None, make, finish, stop }
    }

    #[test]
    fn workers_do_each_operation_once_and_finish_each_file_once() {
        [1, 16, 1000].into_iter().for_each(do_each_once);
    }

    fn do_each_once(claim: u64) {
        let seen: Vec<Mutex<Vec<u64>>> = (0..2).map(|_| Mutex::new(Vec::new())).collect();
        let finished: Vec<AtomicUsize> = (0..2).map(|_| AtomicUsize::new(0)).collect();
        let make = |file: usize, _: usize| -> Operate<'_> {
            let seen = &seen;
            Box::new(move |at| {
                seen[file].lock().unwrap().push(at);
                Ok(10)
            })
        };
        let finish = |file: usize| {
            assert_eq!(seen[file].lock().unwrap().len(), 100, "all operations come first");
            finished[file].fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        // Also where the last claim is not a whole one.
        let done = run(&Job { claim, ..job(&make, &finish, &|| false) }).unwrap();
        assert_eq!((done.bytes, done.operations, done.latency.count()), (2000, 200, 200));
        assert_eq!((done.operations_least, done.stopped), (100, false));
        assert_eq!(done.series.amounts().iter().sum::<f64>(), 2000.0);
        assert!(done.first_done.0 <= done.elapsed && done.first_done.1 <= 2000);
        for file in 0..2 {
            let mut seen = seen[file].lock().unwrap();
            seen.sort_unstable();
            assert_eq!(*seen, (0..100).collect::<Vec<_>>());
            assert_eq!(finished[file].load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    fn error_of_one_worker_ends_all() {
        let make = |_: usize, _: usize| -> Operate<'_> {
            Box::new(|at| if at == 50 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(1) })
        };
        let error = run(&job(&make, &|_| Ok(()), &|| false)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let make = |_: usize, _: usize| -> Operate<'_> { Box::new(|_| Ok(1)) };
        let error = run(&job(&make, &|_| Err(io::ErrorKind::Other.into()), &|| false)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Other);
    }

    #[test]
    fn thread_that_cannot_be_made_is_an_error_and_nobody_waits_for_it() {
        let operated = AtomicUsize::new(0);
        let make = |_: usize, _: usize| -> Operate<'_> {
            let operated = &operated;
            Box::new(move |_| {
                operated.fetch_add(1, Ordering::Relaxed);
                Ok(1)
            })
        };
        // No address space has room for such a stack: the system refuses the thread.
        let builder = |refused: usize| {
            move |worker: usize| {
                if worker == refused { Builder::new().stack_size(1 << 60) } else { Builder::new() }
            }
        };
        for refused in [0, 3, 5] {
            let error = run_with(&job(&make, &|_| Ok(()), &|| false), &builder(refused)).unwrap_err();
            let expected = format!("thread {} of 6 could not be started", refused + 1);
            assert!(error.to_string().contains(&expected), "{error}");
        }
        assert_eq!(operated.load(Ordering::Relaxed), 0, "nothing begins before all are there");
    }

    #[test]
    fn stop_ends_operations_without_end() {
        let count = AtomicUsize::new(0);
        let make = |_: usize, _: usize| -> Operate<'_> {
            let count = &count;
            Box::new(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(1)
            })
        };
        let stop = || count.load(Ordering::Relaxed) > 1000;
        let finish = |_: usize| Ok(());
        let job = Job { operations: u64::MAX, ..job(&make, &finish, &stop) };
        assert!(run(&job).unwrap().stopped);
    }

    #[test]
    fn latency_at_a_rate_counts_from_when_each_was_due() {
        // Every operation takes 2 ms, and one is due each millisecond, for one worker: the n-th waits n ms.
        let make = |_: usize, _: usize| -> Operate<'_> {
            Box::new(|_| {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_millis(2) {}
                Ok(1)
            })
        };
        let finish = |_: usize| Ok(());
        let job = Job { files: 1, depth: 1, operations: 50, rate: Some(1000.0), ..job(&make, &finish, &|| false) };
        let done = run(&job).unwrap();
        assert!(done.latency.max() >= Duration::from_millis(50), "{:?}", done.latency.max());
        assert!(done.behind >= Duration::from_millis(48));
    }
}
