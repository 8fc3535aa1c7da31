//! Lets go of an end's connection once nothing is to be waited for any more. A peer that takes nothing, and says often
//! enough that it is there, would otherwise hold whoever writes to it for ever: the command that says good-bye, or the
//! thread that carries one end's words to the other.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use carrack_sys::threads;

use crate::net::mux::MuxWriter;
use crate::stop::Until;
use crate::sync::{lock, wait_timeout};

/// How often it asks whether the command was told to end: a signal wakes nobody.
const ASK_INTERVAL: Duration = Duration::from_millis(100);

/// Of one end; ends with this value.
pub(super) struct Watchdog(Arc<WatchdogShared>);

#[derive(Default)]
struct WatchdogShared {
    state: Mutex<WatchdogState>,
    changed: Condvar,
}

#[derive(Default)]
struct WatchdogState {
    /// The connection is ended at this moment, whatever the command was told.
    leave_at: Option<Instant>,
    over: bool,
}

impl Watchdog {
    /// Over this connection, for work that is waited for until then, and `grace` longer.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(writer: MuxWriter, until: Until, grace: Duration) -> io::Result<Self> {
        let watched = Arc::<WatchdogShared>::default();
        let watchdog = Self(Arc::clone(&watched));
        let watch = move || {
            if watched.is_to_leave(&until, grace) {
                writer.close();
            }
        };
        threads::start("the watch over an end", watch)?;
        Ok(watchdog)
    }

    /// Ends the connection at this moment, if it is still there: what is written from now on are last words.
    /// An earlier moment stays.
    pub fn leave_at(&self, moment: Instant) {
        let mut state = self.0.lock();
        state.leave_at = Some(state.leave_at.map_or(moment, |earlier| earlier.min(moment)));
        drop(state);
        self.0.changed.notify_all();
    }
}

impl WatchdogShared {
    fn lock(&self) -> MutexGuard<'_, WatchdogState> {
        lock(&self.state)
    }

    /// Waits until the connection has to be ended; false when it is over by itself.
    fn is_to_leave(&self, until: &Until, grace: Duration) -> bool {
        let mut told_at = None;
        let mut state = self.lock();
        while !state.over {
            let now = Instant::now();
            if told_at.is_none() && until.check().is_err() {
                told_at = Some(now + grace);
            }
            if [told_at, state.leave_at].into_iter().flatten().any(|moment| now >= moment) {
                return true;
            }
            state = wait_timeout(&self.changed, state, ASK_INTERVAL);
        }
        false
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}
