//! How threads share values, and wait for each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Locks a mutex. A thread that panicked while it held the lock does not take the value with it: its own work ends with
/// an error, and whatever stands behind a mutex here is right between any two statements.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// What a lock gives although a thread has panicked that held it: see [`lock`].
pub fn unpoisoned<T>(given: Result<T, PoisonError<T>>) -> T {
    given.unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `changed` is notified, or for no reason: whoever calls asks again.
pub fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    unpoisoned(changed.wait(guard))
}

/// As [`wait`], for at most this long.
pub fn wait_timeout<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>, most: Duration) -> MutexGuard<'a, T> {
    unpoisoned(changed.wait_timeout(guard, most)).0
}

/// Something that happens once, and that threads can wait for.
#[derive(Debug, Default)]
pub struct Latch {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Latch {
    /// It has happened: whoever waits goes on. Tells whether it had happened before.
    pub fn set(&self) -> bool {
        let before = std::mem::replace(&mut *lock(&self.set), true);
        self.changed.notify_all();
        before
    }

    /// Whether it has happened.
    pub fn is_set(&self) -> bool {
        *lock(&self.set)
    }

    /// Waits until it happens, for at most this long; whether it has.
    pub fn wait(&self, most: Duration) -> bool {
        // A time that no clock shows is never over.
        let end = Instant::now().checked_add(most);
        let mut set = lock(&self.set);
        while !*set {
            let left = end.map_or(most, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            set = wait_timeout(&self.changed, set, left);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn latch_wakes_who_waits_and_stays_set() {
        let latch = Arc::new(Latch::default());
        assert!(!latch.wait(Duration::from_millis(1)) && !latch.is_set());
        let waiting = Arc::clone(&latch);
        let waiter = std::thread::spawn(move || waiting.wait(Duration::MAX));
        assert!(!latch.set());
        assert!(waiter.join().unwrap());
        assert!(latch.set() && latch.is_set() && latch.wait(Duration::ZERO));
    }

    #[test]
    fn lock_outlives_a_panic_of_its_holder() {
        let shared = Arc::new(Mutex::new(1));
        let held = Arc::clone(&shared);
        let panicked = std::thread::spawn(move || {
            let mut value = lock(&held);
            *value = 2;
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert_eq!(*lock(&shared), 2);
    }
}
