//! How many threads of a transfer may still touch its files.

use crate::sync::{lock, unpoisoned};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Counts threads that are at work.
#[derive(Default)]
pub(super) struct AtWork {
    count: Mutex<usize>,
    left: Condvar,
}

/// One thread that is counted, until this is dropped.
pub(super) struct Worker(Arc<AtWork>);

impl AtWork {
    /// Counts one more: to be called before its thread starts.
    pub fn enter(self: &Arc<Self>) -> Worker {
        *self.lock() += 1;
        Worker(Arc::clone(self))
    }

    /// Waits until none is left, but no longer than this. Tells whether none is left.
    pub fn all_left(&self, patience: Duration) -> bool {
        let waited = self.left.wait_timeout_while(self.lock(), patience, |count| *count > 0);
        *unpoisoned(waited).0 == 0
    }

    /// Waits until none is left.
    pub fn wait_for_all(&self) {
        drop(self.left.wait_while(self.lock(), |count| *count > 0));
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        lock(&self.count)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.left.notify_all();
    }
}
