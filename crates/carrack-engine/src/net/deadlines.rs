//! One deadline for a whole handshake, however its bytes trickle.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use carrack_sys::threads;

use super::socket::Socket;
use crate::sync::{lock, wait, wait_timeout};

/// Cuts off connections that take too long to say who they are: one thread, one deadline for each from accept on,
/// whatever the peer trickles. The thread ends with this value.
pub struct Deadlines(Arc<DeadlinesShared>);

#[derive(Default)]
struct DeadlinesShared {
    state: Mutex<DeadlinesState>,
    changed: Condvar,
}

#[derive(Default)]
struct DeadlinesState {
    pending: HashMap<u64, (Instant, Arc<Socket>)>,
    next: u64,
    over: bool,
}

impl DeadlinesState {
    /// Cuts off what is late, and tells when the next will be. A late one is forgotten: it is cut off for good.
    fn cut_off(&mut self, now: Instant) -> Option<Instant> {
        self.pending.retain(|_, (deadline, socket)| {
            let is_late = now >= *deadline;
            if is_late {
                socket.abort();
            }
            !is_late
        });
        self.pending.values().map(|(deadline, _)| *deadline).min()
    }
}

impl Deadlines {
    /// Starts the thread that watches the deadlines.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> io::Result<Arc<Self>> {
        let watched = Arc::<DeadlinesShared>::default();
        let deadlines = Self(Arc::clone(&watched));
        let watch = move || {
            let mut state = lock(&watched.state);
            while !state.over {
                let now = Instant::now();
                state = match state.cut_off(now) {
                    Some(next) => wait_timeout(&watched.changed, state, next - now),
                    None => wait(&watched.changed, state),
                };
            }
        };
        threads::start("the deadlines of handshakes", watch)?;
        Ok(Arc::new(deadlines))
    }

    /// Cuts a socket off after so long, unless the ticket is dropped before.
    pub fn watch(self: &Arc<Self>, socket: &Arc<Socket>, limit: Duration) -> Ticket {
        let mut state = lock(&self.0.state);
        let number = state.next;
        state.next += 1;
        state.pending.insert(number, (Instant::now() + limit, Arc::clone(socket)));
        drop(state);
        self.0.changed.notify_all();
        Ticket { deadlines: Arc::clone(self), number }
    }

    /// Runs `work` on a socket that is cut off at the deadline.
    pub fn guard<T>(self: &Arc<Self>, socket: &Arc<Socket>, limit: Duration, work: impl FnOnce() -> T) -> T {
        let _ticket = self.watch(socket, limit);
        work()
    }
}

impl Drop for Deadlines {
    fn drop(&mut self) {
        lock(&self.0.state).over = true;
        self.0.changed.notify_all();
    }
}

/// A socket's place among those that are watched; given back by a panic, too, or the socket would stay open.
pub struct Ticket {
    deadlines: Arc<Deadlines>,
    number: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.deadlines.0.state).pending.remove(&self.number);
    }
}

/// Runs a handshake, and cuts the socket off at the deadline: a timeout of each read would be for ever where one
/// byte comes after the other.
///
/// # Errors
/// Those of the handshake; `TimedOut` after the deadline; when the system gives no thread to watch it.
pub fn within<T>(socket: &Arc<Socket>, deadline: Instant, handshake: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // Made once; where there was no thread for it, the next handshake asks again.
    static WATCH: Mutex<Option<Arc<Deadlines>>> = Mutex::new(None);
    let watch = {
        let mut watch = lock(&WATCH);
        match &*watch {
            Some(deadlines) => Arc::clone(deadlines),
            None => Arc::clone(watch.insert(Deadlines::start()?)),
        }
    };
    let left = deadline.saturating_duration_since(Instant::now());
    let result = watch.guard(socket, left, handshake);
    // What was done just then may have been cut off already.
    if Instant::now() >= deadline {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long"));
    }
    result
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn deadlines_cut_off_the_late_one_and_no_other() {
        let deadlines = Deadlines::start().unwrap();
        let pair = || UnixStream::pair().map(|(near, far)| (Arc::new(Socket::Unix(near)), far)).unwrap();
        let ((patient, mut far), (late, mut cut)) = (pair(), pair());
        let _patient = deadlines.watch(&patient, Duration::from_secs(3600));
        // It is due before the one that is waited for already.
        let _late = deadlines.watch(&late, Duration::from_millis(20));
        cut.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(cut.read(&mut [0]).unwrap(), 0);
        far.set_nonblocking(true).unwrap();
        assert_eq!(far.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
