//! Calls to a file system's metadata, of one kind, made by as many threads at once as `pace::workers` finds worth it.
//!
//! Where the calls are short, which is so on every local file system, nothing is added to them but a counter: one call
//! in sixteen is measured. On a host with many processors a few threads share a long list of them, since one would hold
//! all the others up. Where they are slow, each needs a permit, and who has a list of them may have others help.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use carrack_core::pace::workers::{MetadataCall, WorkerControl};
use carrack_core::tuning::Tuning;
use carrack_sys::threads;

use crate::sync::{lock, wait_timeout};

/// The first calls are measured each by itself: they may be all there are.
const MEASURED_FIRST: u64 = 64;
/// Then, where calls are short, one in so many.
const SAMPLED: u64 = 16;
/// Whoever has waited for so long for a permit goes on without: a call that hangs holds up its own file alone.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often who waits tells the controller the time.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Short calls that are worth starting threads for: together they take some fifty times as long as starting one.
const SHORT_LIST: usize = 512;

/// The calls of one kind of one transfer.
#[derive(Debug)]
pub struct MetadataWorkers {
    /// Threads that share a long list of short calls.
    short: usize,
    state: Mutex<WorkerState>,
    /// A permit has become free, or there are more.
    freed: Condvar,
    /// Whether permits are needed; and how many there are.
    governs: AtomicBool,
    permits: AtomicUsize,
    /// Calls so far.
    calls: AtomicU64,
    /// Who has lists of calls made, at this moment.
    lists: AtomicUsize,
    start: Instant,
}

#[derive(Debug)]
struct WorkerState {
    control: WorkerControl,
    under_way: u16,
    callers: u16,
}

/// A thread that makes such calls by itself, until this is dropped.
#[derive(Debug)]
pub struct Caller<'a>(&'a MetadataWorkers);

/// One call that is made, and its time.
#[derive(Debug)]
pub struct MeasuredCall {
    is_measured: bool,
    rested: Duration,
    span: Option<(Instant, Instant)>,
}

impl MeasuredCall {
    /// Makes the call. What is done before and after it is no part of its time.
    pub fn measure<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T {
        if !self.is_measured {
            return call(self);
        }
        let began = Instant::now();
        let result = call(self);
        let ended = Instant::now();
        self.span = Some((began + self.rested.min(ended - began), ended));
        result
    }

    /// The call let so much time pass by itself.
    pub fn rested(&mut self, time: Duration) {
        self.rested += time;
    }
}

impl MetadataWorkers {
    /// Before the first call. So many threads share a long list of short ones.
    pub fn new(tuning: &Tuning, short: usize) -> Self {
        let workers = Self {
            short,
            state: Mutex::new(WorkerState { control: WorkerControl::new(tuning), under_way: 0, callers: 0 }),
            freed: Condvar::new(),
            governs: AtomicBool::new(false),
            permits: AtomicUsize::new(1),
            calls: AtomicU64::new(0),
            lists: AtomicUsize::new(0),
            start: Instant::now(),
        };
        workers.tell(&lock(&workers.state));
        workers
    }

    /// Counts a thread that makes such calls by itself.
    pub fn enter(&self) -> Caller<'_> {
        let mut state = lock(&self.state);
        state.callers += 1;
        let callers = state.callers;
        state.control.handle_callers(callers);
        self.tell(&state);
        Caller(self)
    }

    /// The number that was found best, and calls a second with it.
    pub fn found(&self) -> Option<(u16, f64)> {
        lock(&self.state).control.found()
    }

    /// Whether a list of calls is better made by several threads.
    pub fn are_several(&self) -> bool {
        self.share() > 1
    }

    /// Whether so many calls are better made by several threads although each is short.
    pub fn shares_short(&self, calls: usize) -> bool {
        self.short > 1 && calls >= SHORT_LIST && !self.governs.load(Ordering::Relaxed)
    }

    /// Makes one call, once there is a permit for it where it needs one.
    pub fn call<T>(&self, call: impl FnOnce(&mut MeasuredCall) -> T) -> T {
        if !self.governs.load(Ordering::Relaxed) {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            let is_measured = number < MEASURED_FIRST || number.is_multiple_of(SAMPLED);
            let mut job = MeasuredCall { is_measured, rested: Duration::ZERO, span: None };
            let result = call(&mut job);
            if let Some(span) = job.span {
                self.count(lock(&self.state), span, 1);
            }
            return result;
        }
        let permit = self.permit();
        let mut job = MeasuredCall { is_measured: true, rested: Duration::ZERO, span: None };
        let result = call(&mut job);
        if let Some(span) = job.span {
            self.count(lock(&self.state), span, permit.alongside);
        }
        result
    }

    /// Works on each of a list, by as many threads as there may be, and hands out the results in its order. Where more
    /// may help while the list is worked on, more do. A panic of one goes on to the caller.
    pub fn each<T: Sync, R: Send>(&self, list: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        let _listed = Listed(&self.lists);
        spread(list, || self.share(), work)
    }

    /// Makes a call for each of a list, as many at once as is worth it, each measured.
    pub fn look<T: Sync, R: Send>(&self, list: &[T], look: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let one = |one: &T| self.call(|job| job.measure(|_| look(one)));
        if self.are_several() {
            self.each(list, one)
        } else if self.shares_short(list.len()) {
            self.each_short(list, one)
        } else {
            list.iter().map(one).collect()
        }
    }

    /// As [`Self::each`], by the threads that share short calls.
    pub fn each_short<T: Sync, R: Send>(&self, list: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        spread(list, || self.short, work)
    }

    /// Threads for one list: twice its part of those that there may be. Each call needs a permit, so no more calls are
    /// under way; and where one list ends or waits for something else, the others use its permits.
    fn share(&self) -> usize {
        if !self.governs.load(Ordering::Relaxed) {
            return 1;
        }
        let lists = self.lists.load(Ordering::Relaxed).max(1);
        let permits = self.permits.load(Ordering::Relaxed);
        permits.min(2 * permits.div_ceil(lists))
    }

    fn permit(&self) -> CallPermit<'_> {
        let asked = Instant::now();
        let mut state = lock(&self.state);
        while state.control.governs() && state.under_way >= state.control.workers() && asked.elapsed() < PATIENCE {
            state = wait_timeout(&self.freed, state, LOOK_INTERVAL);
            state.control.handle_time(self.start.elapsed());
            self.tell(&state);
        }
        state.under_way += 1;
        CallPermit { workers: self, alongside: state.under_way }
    }

    fn count(&self, mut state: MutexGuard<'_, WorkerState>, (began, ended): (Instant, Instant), alongside: u16) {
        let since = |at: Instant| at.saturating_duration_since(self.start);
        state.control.handle_call(MetadataCall { began: since(began), ended: since(ended), alongside });
        self.tell(&state);
    }

    /// Lets those know who do not ask under the lock.
    fn tell(&self, state: &WorkerState) {
        let (governs, permits) = (state.control.governs(), usize::from(state.control.workers()));
        let before = self.permits.swap(permits, Ordering::Relaxed);
        if self.governs.swap(governs, Ordering::Relaxed) != governs || permits > before {
            self.freed.notify_all();
        }
    }
}

/// Works on each of a list, by as many threads as `most` says at that moment, and hands out the results in its order.
fn spread<T: Sync, R: Send>(list: &[T], most: impl Fn() -> usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = list.iter().map(|_| Mutex::default()).collect();
    let do_one = |index: usize| {
        if let Some((one, result)) = list.get(index).zip(results.get(index)) {
            let done = work(one);
            *lock(result) = Some(done);
        }
    };
    spread_indices(list.len(), &most, &do_one);
    results.into_iter().filter_map(|result| lock(&result).take()).collect()
}

fn spread_indices(count: usize, most: &dyn Fn() -> usize, do_one: &(dyn Fn(usize) + Sync)) {
    let parts = &ListParts::new(count);
    // Helpers that have taken nothing yet: whoever is at work needs no more of the list.
    let waiting = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (mut own, mut helpers, mut may_spawn) = (parts.begin(0), 0, true);
        while let Some(index) = parts.take(&mut own) {
            while may_spawn && helpers + 1 < most() && waiting.load(Ordering::Relaxed) < parts.left() {
                helpers += 1;
                waiting.fetch_add(1, Ordering::Relaxed);
                let mut place = parts.begin(helpers);
                let help = move || {
                    waiting.fetch_sub(1, Ordering::Relaxed);
                    while let Some(index) = parts.take(&mut place) {
                        do_one(index);
                    }
                };
                // A host that has no thread left has fewer helpers.
                may_spawn = threads::start_scoped(scope, "calls for metadata", help).is_ok();
            }
            do_one(index);
        }
    });
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.callers -= 1;
        let callers = state.callers;
        state.control.handle_callers(callers);
    }
}

/// The most parts of a list.
const PARTS_MOST: usize = 64;

/// A list that several threads work on. Each begins in a part of its own, far from the others': neighbours are often in
/// one directory, where the kernel makes names one after the other. Who is through with its part goes on to the next.
struct ListParts {
    /// The next index in each part. A power of two of them.
    next: Vec<AtomicUsize>,
    /// Indices that nobody has taken.
    left: AtomicUsize,
    length: usize,
}

/// Where a thread is in the list.
struct ListPlace {
    part: usize,
    /// Parts that are behind it.
    passed: usize,
}

impl ListParts {
    fn new(length: usize) -> Self {
        let parts = 1 << length.clamp(1, PARTS_MOST).ilog2();
        let next = (0..parts).map(|part| AtomicUsize::new(part * length / parts)).collect();
        Self { next, left: AtomicUsize::new(length), length }
    }

    /// Where this thread begins: in the middle of the widest gap between those before it.
    fn begin(&self, thread: usize) -> ListPlace {
        let bits = self.next.len().ilog2();
        let reversed = if bits == 0 { 0 } else { thread.reverse_bits() >> (usize::BITS - bits) };
        ListPlace { part: reversed, passed: 0 }
    }

    fn take(&self, place: &mut ListPlace) -> Option<usize> {
        let parts = self.next.len();
        while place.passed < parts {
            let end = (place.part + 1) * self.length / parts;
            let index = self.next.get(place.part)?.fetch_add(1, Ordering::Relaxed);
            if index < end {
                self.left.fetch_sub(1, Ordering::Relaxed);
                return Some(index);
            }
            (place.part, place.passed) = ((place.part + 1) % parts, place.passed + 1);
        }
        None
    }

    fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}

struct Listed<'a>(&'a AtomicUsize);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that is under way.
struct CallPermit<'a> {
    workers: &'a MetadataWorkers,
    alongside: u16,
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        lock(&self.workers.state).under_way -= 1;
        self.workers.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn fixed(workers: u16) -> MetadataWorkers {
        MetadataWorkers::new(&Tuning { metadata_workers: workers, ..Tuning::default() }, 1)
    }

    #[test]
    fn list_is_worked_on_by_as_many_as_there_may_be_and_keeps_its_order() {
        for workers in [1, 3, 8] {
            let all = fixed(workers);
            let (under_way, most) = (AtomicU32::new(0), AtomicU32::new(0));
            let list: Vec<u32> = (0..100).collect();
            let doubled = all.each(&list, |number| {
                all.call(|job| {
                    job.measure(|_| {
                        most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(1));
                        under_way.fetch_sub(1, Ordering::SeqCst);
                        number * 2
                    })
                })
            });
            assert_eq!(doubled, list.iter().map(|number| number * 2).collect::<Vec<_>>());
            assert_eq!(most.load(Ordering::SeqCst), u32::from(workers));
        }
        assert!(fixed(8).are_several() && !fixed(1).are_several());
        assert!(!MetadataWorkers::new(&Tuning::default(), 1).are_several());
    }

    /// A list that began with one thread gets more as soon as its calls are known to be slow.
    #[test]
    fn list_gets_help_while_it_is_worked_on() {
        let all = MetadataWorkers::new(&Tuning::default(), 1);
        let _caller = all.enter();
        let (under_way, most) = (AtomicU32::new(0), AtomicU32::new(0));
        all.each(&[(); 400], |()| {
            all.call(|job| {
                job.measure(|_| {
                    most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(2));
                    under_way.fetch_sub(1, Ordering::SeqCst);
                });
            });
        });
        assert!(most.load(Ordering::SeqCst) > 1);
    }

    /// Threads for calls that are short begin where there is a long list, and where there are processors for them.
    /// Where calls are slow, permits decide.
    #[test]
    fn long_list_of_short_calls_is_shared() {
        let all = MetadataWorkers::new(&Tuning::default(), 3);
        assert!(all.shares_short(SHORT_LIST) && !all.shares_short(SHORT_LIST - 1));
        assert!(!MetadataWorkers::new(&Tuning::default(), 1).shares_short(SHORT_LIST));
        let slow = MetadataWorkers::new(&Tuning { metadata_workers: 8, ..Tuning::default() }, 3);
        assert!(!slow.shares_short(SHORT_LIST));
        // None ends before three have begun, however soon the first of them begins.
        for _ in 0..200 {
            let meeting = std::sync::Barrier::new(3);
            let numbers = all.each_short(&[1, 2, 3], |number| {
                meeting.wait();
                *number
            });
            assert_eq!(numbers, [1, 2, 3]);
        }
    }

    #[test]
    fn list_parts_hand_out_each_index_once() {
        for length in [0, 1, 2, 3, 63, 64, 65, 1000] {
            let parts = ListParts::new(length);
            let taken = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for thread in 0..5 {
                    let (parts, taken) = (&parts, &taken);
                    scope.spawn(move || {
                        let mut place = parts.begin(thread);
                        while let Some(index) = parts.take(&mut place) {
                            lock(taken).push(index);
                        }
                    });
                }
            });
            let mut taken = taken.into_inner().unwrap();
            taken.sort_unstable();
            assert_eq!(taken, (0..length).collect::<Vec<_>>());
            assert_eq!(parts.left(), 0);
        }
    }

    /// Four threads begin in four quarters.
    #[test]
    fn list_parts_begin_far_from_each_other() {
        let parts = ListParts::new(256);
        let first = |thread| parts.take(&mut parts.begin(thread));
        assert_eq!([0, 1, 2, 3].map(first), [Some(0), Some(128), Some(64), Some(192)]);
    }

    #[test]
    fn permits_hold_back_threads_that_are_too_many() {
        let all = fixed(2);
        let (under_way, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _caller = all.enter();
                    for _ in 0..10 {
                        all.call(|_| {
                            most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            std::thread::sleep(Duration::from_millis(1));
                            under_way.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }

    /// A call that hangs does not hold up the others for ever.
    #[test]
    fn permit_that_does_not_come_back_is_not_waited_for() {
        let all = fixed(1);
        let (let_go, wait) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let all = &all;
            let (hangs, hung) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                all.call(|_| {
                    hangs.send(()).unwrap();
                    let _ = wait.recv();
                });
            });
            hung.recv().unwrap();
            all.call(|_| ());
            drop(let_go);
        });
    }

    /// Slow calls get workers, short ones do not.
    #[test]
    fn slow_calls_get_workers() {
        let list = [(); 64];
        let run = |time: Duration| {
            let all = MetadataWorkers::new(&Tuning::default(), 1);
            let caller = all.enter();
            for _ in 0..20 {
                all.each(&list, |()| all.call(|job| job.measure(|_| std::thread::sleep(time))));
            }
            drop(caller);
            all
        };
        assert!(run(Duration::from_millis(2)).are_several());
        let short = MetadataWorkers::new(&Tuning::default(), 1);
        for _ in 0..100_000 {
            short.call(|job| job.measure(|_| std::hint::black_box(0)));
        }
        assert!(!short.governs.load(Ordering::Relaxed));
    }

    #[test]
    fn time_that_a_call_rests_is_not_its_own() {
        let mut job = MeasuredCall { is_measured: true, rested: Duration::ZERO, span: None };
        job.measure(|job| {
            std::thread::sleep(Duration::from_millis(20));
            job.rested(Duration::from_millis(20));
        });
        let (began, ended) = job.span.unwrap();
        assert!(ended - began < Duration::from_millis(15), "{:?}", ended - began);
    }
}
