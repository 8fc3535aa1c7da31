//! The threads of an end's data streams, and the processor time that they get: a stream's own thread may be the limit
//! while other processors are idle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrack_core::ids::StreamId;
use carrack_core::timeline::ThreadTime;
use carrack_sys::measure::{ThreadFacts, thread, thread_number};

use crate::sync::lock;

/// The threads that are at work, by the number of their stream.
#[derive(Debug, Default)]
pub struct Crew {
    state: Mutex<CrewState>,
}

#[derive(Debug, Default)]
struct CrewState {
    threads: HashMap<StreamId, u32>,
    /// What those have used that have ended.
    gone: ThreadTime,
}

/// A thread that is counted, until this is dropped.
pub struct Counted {
    crew: Arc<Crew>,
    stream: StreamId,
}

impl Crew {
    /// Counts the calling thread from now on: it does the work of this stream.
    pub fn enter(self: &Arc<Self>, stream: StreamId) -> Counted {
        lock(&self.state).threads.insert(stream, thread_number());
        Counted { crew: Arc::clone(self), stream }
    }

    /// What each thread has used that is at work, and all together, those included that have ended.
    pub fn times(&self) -> (HashMap<StreamId, ThreadTime>, ThreadTime) {
        let state = lock(&self.state);
        let time = |(stream, number): (&StreamId, &u32)| Some((*stream, time_of(thread(*number)?)));
        let each: HashMap<StreamId, ThreadTime> = state.threads.iter().filter_map(time).collect();
        let sum = each.values().fold(state.gone, |sum, time| sum.plus(time));
        (each, sum)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // In the thread itself: it is still there.
        let used = thread(thread_number()).map(time_of).unwrap_or_default();
        let mut state = lock(&self.crew.state);
        state.threads.remove(&self.stream);
        state.gone = state.gone.plus(&used);
    }
}

fn time_of(facts: ThreadFacts) -> ThreadTime {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    ThreadTime { cpu_us: micros(facts.cpu), starved_us: micros(facts.starved) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crew_counts_threads_while_they_work_and_when_they_have_gone() {
        let crew: Arc<Crew> = Arc::default();
        let (let_go, wait) = std::sync::mpsc::channel::<()>();
        let (ready, worked) = std::sync::mpsc::channel::<()>();
        let counted = Arc::clone(&crew);
        let worker = std::thread::spawn(move || {
            let _counted = counted.enter(StreamId(7));
            let start = carrack_sys::host::thread_cpu_time();
            while carrack_sys::host::thread_cpu_time() - start < Duration::from_millis(30) {
                std::hint::black_box(0);
            }
            ready.send(()).unwrap();
            let _ = wait.recv();
        });
        worked.recv().unwrap();
        let (each, sum) = crew.times();
        drop(let_go);
        worker.join().unwrap();
        let (after, gone) = crew.times();
        assert!(after.is_empty());
        // Where the kernel does not count, there is nothing to be seen.
        if thread(thread_number()).is_some() {
            assert!(each[&StreamId(7)].cpu_us >= 29_000 && sum.cpu_us >= each[&StreamId(7)].cpu_us, "{each:?}");
            assert!(gone.cpu_us >= sum.cpu_us, "{gone:?}");
        }
    }
}
