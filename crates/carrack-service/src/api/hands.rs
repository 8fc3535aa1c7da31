//! Threads for what blocks: the ledger, a digest, a file system. There is at least one for as long as the API is at
//! work, and others where it is busy and the system gives them. Without more, work waits for its turn. (The pool of
//! tokio panics where it gets no thread, and work that waits behind its own threads waits for ever.)

use carrack_engine::sync::{lock, unpoisoned};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use carrack_engine::threads;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Threads at most.
const THREADS: usize = 64;
/// A thread beyond the first that has had nothing to do for so long ends.
const IDLE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// The pool. Dropped, it ends once its work is done.
#[derive(Default)]
pub(super) struct Hands(Arc<HandsShared>);

#[derive(Default)]
struct HandsShared {
    state: Mutex<HandsState>,
    changed: Condvar,
}

#[derive(Default)]
struct HandsState {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
    over: bool,
}

/// What became of the work.
pub(super) enum Undone {
    /// It has panicked, which its own message tells.
    Panicked,
    /// The system gives no thread for it.
    NoThread(io::Error),
}

impl Hands {
    /// Makes sure that there is a thread.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn start(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.threads == 0 { self.0.add_thread(&mut state) } else { Ok(()) }
    }

    /// Has a thread do this soon, whether or not anybody waits for it. It may use the runtime that the caller is in.
    ///
    /// # Errors
    /// When there is no thread at all.
    pub fn give(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let runtime = Handle::try_current().ok();
        let work = move || {
            let _entered = runtime.as_ref().map(Handle::enter);
            work();
        };
        let mut state = self.0.lock();
        if state.idle <= state.waiting.len() && state.threads < THREADS {
            let added = self.0.add_thread(&mut state);
            if state.threads == 0 {
                return added;
            }
        }
        state.waiting.push_back(Box::new(work));
        drop(state);
        self.0.changed.notify_one();
        Ok(())
    }

    /// Has a thread do this, and waits for its result.
    ///
    /// # Errors
    /// Every [`Undone`].
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Undone> {
        let (tell, told) = oneshot::channel();
        // Whoever waits may have gone.
        self.give(move || drop(tell.send(work()))).map_err(Undone::NoThread)?;
        told.await.map_err(|_| Undone::Panicked)
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

impl HandsShared {
    fn lock(&self) -> MutexGuard<'_, HandsState> {
        lock(&self.state)
    }

    fn add_thread(self: &Arc<Self>, state: &mut HandsState) -> io::Result<()> {
        let shared = Arc::clone(self);
        threads::start_named("api-work", move || shared.work())?;
        state.threads += 1;
        Ok(())
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                drop(state);
                // Its own message tells of a panic; whoever waits finds that nothing came of it.
                let _ = catch_unwind(AssertUnwindSafe(work));
                state = self.lock();
                continue;
            }
            if state.over {
                break;
            }
            state.idle += 1;
            let waited = self.changed.wait_timeout_while(state, IDLE, |state| state.waiting.is_empty() && !state.over);
            let (woken, timeout) = unpoisoned(waited);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.threads > 1 {
                break;
            }
        }
        state.threads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn hands_do_all_that_waits_survive_a_panic_and_end() {
        let hands = Hands::default();
        hands.start().unwrap();
        assert_eq!(hands.0.lock().threads, 1);
        let (tell, told) = mpsc::channel();
        let (let_go, held) = mpsc::channel::<()>();
        // More at once than one thread could do: each waits for the one behind it.
        hands.give(move || assert!(held.recv().is_err())).unwrap();
        hands.give(move || drop(let_go)).unwrap();
        hands.give(|| panic!("a test")).unwrap();
        for number in 0..500 {
            let tell = tell.clone();
            hands.give(move || tell.send(number).unwrap()).unwrap();
        }
        drop(tell);
        assert_eq!(told.iter().sum::<i32>(), 499 * 500 / 2);
        assert!(hands.0.lock().threads <= THREADS);
        let shared = Arc::clone(&hands.0);
        drop(hands);
        while shared.lock().threads > 0 {
            std::thread::yield_now();
        }
    }
}
