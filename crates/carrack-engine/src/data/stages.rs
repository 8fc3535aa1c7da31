//! Where the time of the streams' threads goes.
//!
//! Waiting is what a call took beyond the processor time that the thread used in it: a write to a socket that only copies does not
//! wait for the network.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrack_core::pace::limit::StageTimes;

/// What a stream's thread may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Reading or writing files.
    Storage,
    /// The connection.
    Network,
    /// The rate that was asked for.
    Pacing,
}

/// The times of all streams of one end, in nanoseconds.
#[derive(Debug, Default)]
pub struct Stages {
    busy: AtomicU64,
    storage: AtomicU64,
    network: AtomicU64,
    pacing: AtomicU64,
    /// Calls of [`Stages::wait_briefly`].
    brief: AtomicU64,
}

/// Of so many brief calls one is measured.
const SAMPLED: u64 = 16;

impl Stages {
    /// As [`Stages::wait`], for calls of which there are very many and that rarely wait: asking for the time would take a tenth of theirs. One
    /// in sixteen stands for all.
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
        let start = Instant::now();
        let result = call();
        add(&self.busy, start.elapsed());
        result
    }

    /// So far.
    pub fn times(&self) -> StageTimes {
        let read = |stage: &AtomicU64| Duration::from_nanos(stage.load(Ordering::Relaxed));
        StageTimes {
            busy: read(&self.busy),
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
    fn working_is_not_waiting() {
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
}
