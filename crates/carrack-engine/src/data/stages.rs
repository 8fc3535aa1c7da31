//! Where the time of an end's threads goes.
//!
//! Waiting is what a call took beyond the processor time that the thread used in it: a write to a socket that only
//! copies does not wait for the network.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use carrack_core::pace::limit::StageTimes;
use carrack_core::timeline::{Sample, StageTime, StartStep, Work};

use crate::sync::lock;

/// The times of one end, in nanoseconds.
#[derive(Debug, Default)]
pub struct Stages {
    busy: Mutex<Busy>,
    /// What the threads of the streams waited for storage, for the connection, and for the rate.
    storage: AtomicU64,
    network: AtomicU64,
    pacing: AtomicU64,
    /// Of each stage, whichever thread worked in it.
    works: [WorkTime; Work::ALL.len()],
    /// Content that the streams have carried, in bytes.
    bytes: AtomicU64,
    /// When the steps of the start were taken.
    steps: [OnceLock<Instant>; StartStep::ALL.len()],
}

#[derive(Debug, Default)]
struct WorkTime {
    worked: AtomicU64,
    waited: AtomicU64,
    calls: AtomicU64,
    /// When the calls began that are under way, of a thread beside the streams: one may last longer than everything
    /// else did.
    underway: Mutex<Vec<Instant>>,
}

impl WorkTime {
    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call of which there may be very many. For how many calls its time stands; `None` where it is not
    /// measured. The first ones are measured each by itself: they may be all there are.
    fn count_briefly(&self) -> Option<u32> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0..SAMPLED => Some(1),
            calls if calls.is_multiple_of(SAMPLED) => Some(SAMPLED as u32),
            _ => None,
        }
    }

    /// Counts a call from its beginning on: until it has ended it counts as waiting.
    fn measure_from_now<T>(&self, call: impl FnOnce() -> T) -> T {
        self.count();
        let lap = Lap::begin();
        lock(&self.underway).push(lap.start);
        // Also when the call panics.
        let _ended = Underway { time: self, lap };
        call()
    }

    fn read(&self) -> StageTime {
        // Nobody sees a call both under way and ended, nor neither.
        let underway = lock(&self.underway);
        let now = Instant::now();
        let waiting: Duration = underway.iter().map(|start| now.saturating_duration_since(*start)).sum();
        let micros = |time: &AtomicU64| time.load(Ordering::Relaxed) / 1000;
        let waiting = u64::try_from(waiting.as_micros()).unwrap_or(u64::MAX);
        let calls = self.calls.load(Ordering::Relaxed);
        StageTime { worked_us: micros(&self.worked), waited_us: micros(&self.waited).saturating_add(waiting), calls }
    }
}

/// A call that is under way.
struct Underway<'a> {
    time: &'a WorkTime,
    lap: Lap,
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let mut underway = lock(&self.time.underway);
        if let Some(place) = underway.iter().position(|start| *start == self.lap.start) {
            underway.swap_remove(place);
        }
        let (worked, waited) = self.lap.end();
        add(&self.time.worked, worked);
        add(&self.time.waited, waited);
    }
}

/// How long streams have carried something, those included that still do: over a slow path one block takes longer
/// than it may take to tell.
#[derive(Debug, Default)]
struct Busy {
    carrying: u32,
    /// Until the last change of that number.
    until: Option<Instant>,
    time: Duration,
}

impl Busy {
    /// Counts up to this moment.
    fn count(&mut self, now: Instant) {
        let since = self.until.replace(now).unwrap_or(now);
        self.time += now.saturating_duration_since(since) * self.carrying;
    }
}

/// A unit that is being carried.
struct Carrying<'a>(&'a Mutex<Busy>);

impl<'a> Carrying<'a> {
    fn begin(busy: &'a Mutex<Busy>) -> Self {
        let mut counted = lock(busy);
        counted.count(Instant::now());
        counted.carrying += 1;
        Self(busy)
    }
}

impl Drop for Carrying<'_> {
    fn drop(&mut self) {
        let mut counted = lock(self.0);
        counted.count(Instant::now());
        counted.carrying -= 1;
    }
}

/// The beginning of something that is measured.
pub struct Lap {
    start: Instant,
    used: Duration,
}

impl Lap {
    /// Now, in this thread.
    pub fn begin() -> Self {
        Self { start: Instant::now(), used: carrack_sys::host::thread_cpu_time() }
    }

    /// The same, right after another lap of this thread within one unit: what was done since needed nothing but the
    /// processor, so its clock, which is a system call, need not be asked.
    fn next() -> Self {
        let start = Instant::now();
        let since = |(ended, used): (Instant, Duration)| (start.saturating_duration_since(ended), used);
        match LAST.get().map(since) {
            Some((worked, used)) if worked < CHAINED => Self { start, used: used + worked },
            _ => Self { start, used: carrack_sys::host::thread_cpu_time() },
        }
    }

    /// Processor time used since, and the rest of the time that has passed.
    fn end(&self) -> (Duration, Duration) {
        let (now, so_far) = (Instant::now(), carrack_sys::host::thread_cpu_time());
        LAST.set(Some((now, so_far)));
        ASKED.set(Some(so_far));
        let used = so_far.saturating_sub(self.used);
        (used, now.saturating_duration_since(self.start).saturating_sub(used))
    }
}

thread_local! {
    /// When this thread's last lap of the unit ended, and the processor time that the thread had used.
    static LAST: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    /// The processor time that this thread had used when its clock was last asked.
    static ASKED: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Processor time that this thread has used since its clock was last asked; nothing where it never was.
fn used_since_asked() -> Duration {
    let so_far = carrack_sys::host::thread_cpu_time();
    ASKED.replace(Some(so_far)).map_or(Duration::ZERO, |before| so_far.saturating_sub(before))
}

/// Beyond, a thread may have done something else than to work on a slice.
const CHAINED: Duration = Duration::from_millis(1);

/// A call of those that are brief as a rule and that took so long has waited: asking the processor's clock is little
/// beside it.
const LONG: Duration = CHAINED;

/// Of so many brief calls one is measured, once so many have been.
const SAMPLED: u64 = 16;
/// Work on so many bytes takes much longer than asking for the time.
const LARGE_BYTES: usize = 64 << 10;

impl Stages {
    /// As [`Stages::wait`], for calls of which there are very many and that rarely wait: asking for the time would take
    /// a tenth of theirs. One in sixteen stands for all; those that took long stand each for itself.
    pub fn wait_briefly<T>(&self, work: Work, call: impl FnOnce() -> T) -> T {
        self.measure_briefly(work, true, call)
    }

    /// Does something in the thread of a stream that it may have to wait for.
    pub fn wait<T>(&self, work: Work, call: impl FnOnce() -> T) -> T {
        self.wait_told(work, call).0
    }

    /// As [`Stages::wait`]; also says how long it was waited for.
    pub fn wait_told<T>(&self, work: Work, call: impl FnOnce() -> T) -> (T, Duration) {
        self.time(work).count();
        self.measure(work, 1, true, call)
    }

    /// As [`Stages::wait`], for others who do two things by turns: the time is parted as they say that they took.
    pub fn wait_parted<T>(&self, works: [Work; 2], took: impl Fn() -> [u64; 2], call: impl FnOnce() -> T) -> T {
        works.iter().for_each(|work| self.time(*work).count());
        let lap = Lap::next();
        let result = call();
        let (worked, waited) = lap.end();
        let took = took();
        let all = took.iter().fold(0_u64, |sum, one| sum.saturating_add(*one));
        let first = if all == 0 { 1.0 } else { took[0] as f64 / all as f64 };
        for (work, share) in works.into_iter().zip([first, 1.0 - first]) {
            self.add(work, (worked.mul_f64(share), waited.mul_f64(share)), true);
        }
        result
    }

    /// As [`Stages::wait_briefly`], in a thread beside the streams.
    pub fn aside_briefly<T>(&self, work: Work, call: impl FnOnce() -> T) -> T {
        self.measure_briefly(work, false, call)
    }

    /// Does something in a thread beside the streams. It counts while it lasts, and not only at its end.
    pub fn aside<T>(&self, work: Work, call: impl FnOnce() -> T) -> T {
        self.begins(work);
        let result = self.time(work).measure_from_now(call);
        self.has_ended(work);
        result
    }

    /// Counts what was done since `lap` in a thread beside the streams.
    pub fn count_aside(&self, work: Work, lap: &Lap) {
        let (worked, waited) = lap.end();
        self.has_ended(work);
        let time = self.time(work);
        time.count();
        add(&time.worked, worked);
        add(&time.waited, waited);
    }

    /// Does something to so many bytes that needs nothing but a processor. Of little, one in sixteen stands for all.
    pub fn work<T>(&self, work: Work, bytes: usize, call: impl FnOnce() -> T) -> T {
        let time = self.time(work);
        let Some(weight) = time.count_briefly().or((bytes >= LARGE_BYTES).then_some(1)) else { return call() };
        let weight = if bytes >= LARGE_BYTES { 1 } else { weight };
        let start = Instant::now();
        let result = call();
        add(&time.worked, start.elapsed() * weight);
        result
    }

    fn measure_briefly<T>(&self, work: Work, in_stream: bool, call: impl FnOnce() -> T) -> T {
        if let Some(weight) = self.time(work).count_briefly() {
            return self.measure(work, weight, in_stream, call).0;
        }
        let start = Instant::now();
        let result = call();
        let took = start.elapsed();
        if took >= LONG {
            let used = used_since_asked().min(took);
            self.add(work, (used, took - used), in_stream);
        }
        result
    }

    fn measure<T>(&self, work: Work, weight: u32, in_stream: bool, call: impl FnOnce() -> T) -> (T, Duration) {
        self.begins(work);
        let lap = if weight == 1 { Lap::next() } else { Lap::begin() };
        let result = call();
        let (worked, waited) = lap.end();
        self.has_ended(work);
        // One that took long stands for itself: of those each is counted.
        let weight = if worked + waited >= LONG { 1 } else { weight };
        let (worked, waited) = (worked * weight, waited * weight);
        self.add(work, (worked, waited), in_stream);
        (result, waited)
    }

    fn add(&self, work: Work, (worked, waited): (Duration, Duration), in_stream: bool) {
        let time = self.time(work);
        add(&time.worked, worked);
        add(&time.waited, waited);
        if let Some(total) = self.waited_for(work).filter(|_| in_stream) {
            add(total, waited);
        }
    }

    fn time(&self, work: Work) -> &WorkTime {
        &self.works[work.number() as usize - 1]
    }

    fn waited_for(&self, work: Work) -> Option<&AtomicU64> {
        match work {
            Work::Find | Work::Read | Work::Create | Work::Write => Some(&self.storage),
            Work::Send | Work::Receive => Some(&self.network),
            Work::Pace => Some(&self.pacing),
            _ => None,
        }
    }

    /// A step of the start is taken, if this is the first time.
    pub fn step(&self, step: StartStep) {
        self.steps[step.number() as usize - 1].get_or_init(Instant::now);
    }

    /// The steps of the start that were taken, and when.
    pub fn steps(&self) -> impl Iterator<Item = (StartStep, Instant)> + '_ {
        StartStep::ALL.iter().zip(&self.steps).filter_map(|(step, at)| Some((*step, *at.get()?)))
    }

    /// A call of a stage begins: of some stages the first beginning is a step of the start.
    fn begins(&self, work: Work) {
        if work == Work::Begin {
            self.step(StartStep::Item);
        }
    }

    /// A call of a stage has ended: of some stages the first end is a step of the start.
    fn has_ended(&self, work: Work) {
        match work {
            Work::List => self.step(StartStep::List),
            Work::Begin => self.step(StartStep::Reserve),
            Work::Create | Work::Write => self.step(StartStep::Write),
            Work::Publish => self.step(StartStep::Publish),
            _ => {}
        }
    }

    /// Carries one unit.
    pub fn carry<T>(&self, call: impl FnOnce() -> T) -> T {
        self.step(StartStep::Unit);
        let _carrying = Carrying::begin(&self.busy);
        // Before a unit its thread waits for one.
        LAST.set(None);
        let result = call();
        LAST.set(None);
        result
    }

    /// So many bytes of content have been handed to the connection, or taken from it.
    pub fn carried(&self, bytes: usize) {
        self.step(StartStep::Byte);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The times measured so far.
    pub fn times(&self) -> StageTimes {
        let read = |stage: &AtomicU64| Duration::from_nanos(stage.load(Ordering::Relaxed));
        StageTimes {
            busy: self.busy(),
            storage: read(&self.storage),
            network: read(&self.network),
            pacing: read(&self.pacing),
        }
    }

    /// All that was measured so far, for a sample.
    pub fn fill(&self, sample: &mut Sample) {
        sample.bytes = self.bytes.load(Ordering::Relaxed);
        sample.carried_us = u64::try_from(self.busy().as_micros()).unwrap_or(u64::MAX);
        Work::ALL.iter().for_each(|work| sample.stages.set(*work, self.time(*work).read()));
    }

    fn busy(&self) -> Duration {
        let mut busy = lock(&self.busy);
        busy.count(Instant::now());
        busy.time
    }
}

fn add(stage: &AtomicU64, time: Duration) {
    stage.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burn(time: Duration) {
        let start = carrack_sys::host::thread_cpu_time();
        while carrack_sys::host::thread_cpu_time() - start < time {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn stages_tell_working_from_waiting() {
        let stages = Stages::default();
        let (hear, said) = std::sync::mpsc::channel::<()>();
        stages.carry(|| {
            stages.wait(Work::Read, || burn(Duration::from_millis(50)));
            // Nobody says anything: this only waits.
            stages.wait(Work::Send, || said.recv_timeout(Duration::from_millis(50)).is_err())
        });
        drop(hear);
        let times = stages.times();
        assert!(times.network >= Duration::from_millis(45), "{times:?}");
        assert!(times.busy >= times.network + Duration::from_millis(50), "{times:?}");
        let mut sample = Sample::default();
        stages.fill(&mut sample);
        let (read, send) = (sample.stages.of(Work::Read), sample.stages.of(Work::Send));
        assert!(read.worked_us >= 50_000 && read.calls == 1, "{read:?}");
        assert!(send.waited_us >= 45_000 && send.worked_us < 40_000, "{send:?}");
        assert!(sample.carried_us >= 100_000);
    }

    /// Slices are read, hashed and sent in turn: each stage has its own time, though the processor's clock is asked
    /// once for two.
    #[test]
    fn stages_of_one_unit_that_follow_each_other_are_told_apart() {
        let stages = Stages::default();
        let (hear, said) = std::sync::mpsc::channel::<()>();
        let brief = Duration::from_micros(500);
        stages.carry(|| {
            for _ in 0..40 {
                stages.wait(Work::Read, || burn(brief));
                stages.work(Work::Hash, LARGE_BYTES, || burn(brief));
                stages.wait(Work::Send, || said.recv_timeout(brief).is_err());
            }
        });
        drop(hear);
        let mut sample = Sample::default();
        stages.fill(&mut sample);
        let of = |work| sample.stages.of(work);
        assert!(of(Work::Read).worked_us >= 15_000, "{:?}", of(Work::Read));
        assert!(of(Work::Send).waited_us >= 15_000, "{:?}", of(Work::Send));
        assert!(of(Work::Send).worked_us < of(Work::Send).waited_us, "{:?}", of(Work::Send));
    }

    /// What others than streams wait for does not hold the streams back by itself.
    #[test]
    fn stages_beside_the_streams_are_counted_apart() {
        let stages = Stages::default();
        let rest = || std::thread::sleep(Duration::from_millis(20));
        stages.aside(Work::Create, rest);
        let lap = Lap::begin();
        rest();
        stages.count_aside(Work::List, &lap);
        assert_eq!(stages.times().storage, Duration::ZERO);
        let mut sample = Sample::default();
        stages.fill(&mut sample);
        for work in [Work::Create, Work::List] {
            assert!(sample.stages.of(work).waited_us >= 15_000, "{:?}", sample.stages.of(work));
        }
    }

    /// The last sync of a copy may take longer than everything before it: it is told while it lasts, once.
    #[test]
    fn stage_beside_the_streams_counts_while_it_lasts() {
        let stages = Stages::default();
        let rest = || std::thread::sleep(Duration::from_millis(20));
        let syncs = || {
            let mut sample = Sample::default();
            stages.fill(&mut sample);
            sample.stages.of(Work::Sync)
        };
        let during = stages.aside(Work::Sync, || {
            rest();
            let during = syncs();
            rest();
            during
        });
        let after = syncs();
        assert!(during.waited_us >= 20_000 && during.calls == 1, "{during:?}");
        assert!(after.waited_us + after.worked_us >= 40_000 && after.calls == 1, "{after:?}");
        assert!(after.waited_us + after.worked_us >= during.waited_us + during.worked_us, "{during:?} {after:?}");
        assert_eq!(syncs(), after, "what has ended grows no more");
    }

    /// One of sixteen stands for all, of each stage by itself: two stages that take turns are both measured.
    #[test]
    fn brief_work_is_sampled_stage_by_stage() {
        let stages = Stages::default();
        let time = Duration::from_micros(200);
        for _ in 0..320 {
            stages.work(Work::Hash, 1000, || burn(time));
            stages.wait_briefly(Work::Create, || burn(time));
        }
        let mut sample = Sample::default();
        stages.fill(&mut sample);
        for work in [Work::Hash, Work::Create] {
            let StageTime { worked_us, calls, .. } = sample.stages.of(work);
            assert_eq!(calls, 320);
            // Calls that were interrupted for long stand for themselves.
            assert!(worked_us >= 45_000, "{worked_us} µs of {work:?}");
        }
    }

    /// A disk that is held to so many reads a second lets a batch of them pass and the next one wait: which of them is
    /// sampled must not matter.
    #[test]
    fn brief_calls_that_wait_long_are_all_counted() {
        let stages = Stages::default();
        let (hear, said) = std::sync::mpsc::channel::<()>();
        let long = Duration::from_millis(5);
        stages.carry(|| {
            for number in 0..320 {
                let waits = number % 16 == 9;
                stages.wait_briefly(Work::Read, || waits && said.recv_timeout(long).is_ok());
            }
        });
        drop(hear);
        let mut sample = Sample::default();
        stages.fill(&mut sample);
        let StageTime { waited_us, worked_us, calls } = sample.stages.of(Work::Read);
        assert_eq!(calls, 320);
        assert!(waited_us >= 95_000, "{waited_us} µs waited, {worked_us} worked");
        assert!(stages.times().storage >= Duration::from_millis(95));
    }

    /// A single call that took long is not taken for sixteen.
    #[test]
    fn first_brief_calls_stand_for_themselves() {
        let stages = Stages::default();
        let time = Duration::from_millis(20);
        let start = Instant::now();
        stages.wait_briefly(Work::Publish, || burn(time));
        stages.work(Work::Hash, 1000, || burn(time));
        let most = start.elapsed().as_micros() as u64;
        let mut sample = Sample::default();
        stages.fill(&mut sample);
        for work in [Work::Publish, Work::Hash] {
            let StageTime { worked_us, waited_us, calls } = sample.stages.of(work);
            assert_eq!(calls, 1);
            assert!(worked_us + waited_us <= most, "{worked_us} + {waited_us} µs of {work:?} in {most}");
        }
    }

    #[test]
    fn first_calls_are_steps_of_the_start() {
        let stages = Stages::default();
        let before = Instant::now();
        assert_eq!(stages.steps().count(), 0);
        let rest = || std::thread::sleep(Duration::from_millis(5));
        stages.aside(Work::Begin, rest);
        stages.carry(|| stages.wait(Work::Read, || ()));
        stages.carried(1);
        stages.wait(Work::Write, rest);
        let first: Vec<(StartStep, Instant)> = stages.steps().collect();
        let steps: Vec<StartStep> = first.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [StartStep::Item, StartStep::Reserve, StartStep::Unit, StartStep::Byte, StartStep::Write]);
        assert!(first[0].1 >= before && first.is_sorted_by_key(|(_, at)| *at));
        assert!(first[1].1 - first[0].1 >= Duration::from_millis(5), "{first:?}");
        stages.aside_briefly(Work::Publish, || ());
        stages.wait(Work::Write, rest);
        assert_eq!(stages.steps().count(), 6);
        assert!(first.iter().all(|step| stages.steps().any(|now| now == *step)), "the first time counts");
    }

    #[test]
    fn stages_count_what_is_still_carried() {
        let stages = Stages::default();
        stages.carry(|| {
            stages.carry(|| std::thread::sleep(Duration::from_millis(20)));
            let (first, second) = (stages.times().busy, stages.times().busy);
            assert!(first >= Duration::from_millis(40) && second >= first, "{first:?} {second:?}");
        });
        let after = stages.times().busy;
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(stages.times().busy, after);
    }
}
