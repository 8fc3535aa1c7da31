//! Where the time of the streams' threads goes.
//!
//! Waiting is what a call took beyond the processor time that the thread used in it: a write to a socket that only
//! copies does not wait for the network.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::sync::lock;
use carrack_core::pace::limit::StageTimes;

/// What a stream's thread may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Reading or writing files.
    Storage,
    /// Sending or receiving on the connection.
    Network,
    /// The rate that was asked for.
    Pacing,
}

/// The times of all streams of one end, in nanoseconds.
#[derive(Debug, Default)]
pub struct Stages {
    busy: Mutex<Busy>,
    storage: AtomicU64,
    network: AtomicU64,
    pacing: AtomicU64,
    /// Calls of [`Stages::wait_briefly`].
    brief: AtomicU64,
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

/// Of so many brief calls one is measured.
const SAMPLED: u64 = 16;

impl Stages {
    /// As [`Stages::wait`], for calls of which there are very many and that rarely wait: asking for the time would take
    /// a tenth of theirs. One in sixteen stands for all.
    pub fn wait_briefly<T>(&self, on: Waits, call: impl FnOnce() -> T) -> T {
        if !self.brief.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLED) {
            return call();
        }
        self.measure(on, SAMPLED as u32, call)
    }

    /// Does something that the thread may have to wait for.
    pub fn wait<T>(&self, on: Waits, call: impl FnOnce() -> T) -> T {
        self.measure(on, 1, call)
    }

    fn measure<T>(&self, on: Waits, weight: u32, call: impl FnOnce() -> T) -> T {
        let (start, used) = (Instant::now(), carrack_sys::host::thread_cpu_time());
        let result = call();
        let used = carrack_sys::host::thread_cpu_time().saturating_sub(used);
        let stage = match on {
            Waits::Storage => &self.storage,
            Waits::Network => &self.network,
            Waits::Pacing => &self.pacing,
        };
        add(stage, start.elapsed().saturating_sub(used) * weight);
        result
    }

    /// Carries one unit.
    pub fn carry<T>(&self, call: impl FnOnce() -> T) -> T {
        let _carrying = Carrying::begin(&self.busy);
        call()
    }

    /// The times measured so far.
    pub fn times(&self) -> StageTimes {
        let read = |stage: &AtomicU64| Duration::from_nanos(stage.load(Ordering::Relaxed));
        let mut busy = lock(&self.busy);
        busy.count(Instant::now());
        StageTimes {
            busy: busy.time,
            storage: read(&self.storage),
            network: read(&self.network),
            pacing: read(&self.pacing),
        }
    }
}

fn add(stage: &AtomicU64, time: Duration) {
    stage.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_tell_working_from_waiting() {
        let stages = Stages::default();
        let (hear, said) = std::sync::mpsc::channel::<()>();
        stages.carry(|| {
            stages.wait(Waits::Storage, || {
                let start = carrack_sys::host::thread_cpu_time();
                while carrack_sys::host::thread_cpu_time() - start < Duration::from_millis(50) {
                    std::hint::black_box(0);
                }
            });
            // Nobody says anything: this only waits.
            stages.wait(Waits::Network, || said.recv_timeout(Duration::from_millis(50)).is_err())
        });
        drop(hear);
        let times = stages.times();
        assert!(times.network >= Duration::from_millis(45), "{times:?}");
        assert!(times.busy >= times.network + Duration::from_millis(50), "{times:?}");
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
