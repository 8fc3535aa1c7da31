//! One deadline for a whole handshake, however its bytes trickle.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::socket::Socket;

/// Cuts off connections that take too long to say who they are: one thread, one deadline for each from accept on, whatever
/// the peer trickles.
pub struct Deadlines {
    pending: Mutex<HashMap<u64, (Instant, Arc<Socket>)>>,
    next: AtomicUsize,
    stopped: AtomicBool,
}

impl Deadlines {
    /// Starts watching.
    pub fn start() -> Arc<Self> {
        let watch = Arc::new(Self {
            pending: Mutex::new(HashMap::new()),
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let watched = Arc::downgrade(&watch);
        std::thread::spawn(move || {
            while let Some(watch) = watched.upgrade().filter(|watch| !watch.stopped.load(Ordering::Relaxed)) {
                let now = Instant::now();
                for (deadline, socket) in watch.lock().values() {
                    if now >= *deadline {
                        socket.abort();
                    }
                }
                drop(watch);
                std::thread::park_timeout(Duration::from_millis(250));
            }
        });
        watch
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Instant, Arc<Socket>)>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts a socket off after so long, unless the ticket is dropped before.
    pub fn watch(self: &Arc<Self>, socket: &Arc<Socket>, limit: Duration) -> Ticket {
        let ticket = Ticket { deadlines: Arc::clone(self), number: self.next.fetch_add(1, Ordering::Relaxed) as u64 };
        self.lock().insert(ticket.number, (Instant::now() + limit, Arc::clone(socket)));
        ticket
    }

    /// Runs `work` on a socket that is cut off at the deadline.
    pub fn guard<T>(self: &Arc<Self>, socket: &Arc<Socket>, limit: Duration, work: impl FnOnce() -> T) -> T {
        let _ticket = self.watch(socket, limit);
        work()
    }
}

/// A socket's place among those that are watched; given back by a panic, too, or the socket would stay open.
pub struct Ticket {
    deadlines: Arc<Deadlines>,
    number: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.deadlines.lock().remove(&self.number);
    }
}

/// Runs a handshake, and cuts the socket off at the deadline: a timeout of each read would be for ever where one byte comes after the other.
///
/// # Errors
/// Those of the handshake; `TimedOut` after the deadline.
pub fn within<T>(socket: &Arc<Socket>, deadline: Instant, handshake: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    static WATCH: LazyLock<Arc<Deadlines>> = LazyLock::new(Deadlines::start);
    let left = deadline.saturating_duration_since(Instant::now());
    let result = WATCH.guard(socket, left, handshake);
    // What was done just then may have been cut off already.
    if Instant::now() >= deadline {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long"));
    }
    result
}
