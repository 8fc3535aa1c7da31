//! Threads that drive connections: each has a runtime of its own. (The runtime of tokio that makes threads itself
//! panics where the system gives none.)

use carrack_engine::sync::{lock, unpoisoned};
use std::future::Future;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use carrack_engine::threads;
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// How long tasks have to end that were told to.
const ENDS_IN: Duration = Duration::from_secs(1);

/// The threads, at least one.
pub(super) struct Drivers {
    handles: Vec<Handle>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    stop: watch::Sender<bool>,
    next: AtomicUsize,
}

impl Drivers {
    /// Starts so many, or as many as the system gives.
    ///
    /// # Errors
    /// When it gives none.
    pub fn start(count: usize) -> io::Result<Self> {
        let (stop, next) = (watch::Sender::new(false), AtomicUsize::new(0));
        let mut drivers = Self { handles: Vec::new(), threads: Mutex::default(), stop, next };
        for _ in 0..count {
            match drivers.add() {
                Err(error) if drivers.handles.is_empty() => return Err(error),
                Err(_) => break,
                Ok(()) => {}
            }
        }
        Ok(drivers)
    }

    fn add(&mut self) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let mut stopped = self.stop.subscribe();
        let drive = move || {
            // Without a sender, nobody is served any more either.
            let _ = runtime.block_on(stopped.wait_for(|stopped| *stopped)).map(drop);
            runtime.shutdown_timeout(ENDS_IN);
        };
        let thread = threads::start_named("api", drive)?;
        unpoisoned(self.threads.get_mut()).push(thread);
        self.handles.push(handle);
        Ok(())
    }

    /// The one that drives the next connection.
    pub fn next(&self) -> &Handle {
        &self.handles[self.next.fetch_add(1, Ordering::Relaxed) % self.handles.len()]
    }

    /// Waits in the calling thread.
    pub fn wait_for<T>(&self, what: impl Future<Output = T>) -> T {
        self.next().block_on(what)
    }

    /// Ends all that is driven.
    pub fn end(&self) {
        self.stop.send_replace(true);
        let threads = std::mem::take(&mut *lock(&self.threads));
        // A panic of a task is contained in its task.
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}
