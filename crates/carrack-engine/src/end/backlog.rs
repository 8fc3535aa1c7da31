//! What an end has said and the command has not taken yet. The thread that reads the end's connection waits while that
//! is too much: whoever reads the command's output may be slow, or stop for an hour, and memory must not grow with it.
//! The end then waits, too.

use std::sync::{Arc, Condvar, Mutex};

use crate::sync::{lock, wait};
use carrack_core::limits;

/// Of one end.
#[derive(Debug, Default)]
pub struct Backlog {
    held: Mutex<BacklogState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BacklogState {
    bytes: usize,
    /// Nobody is waited for any more.
    ended: bool,
}

/// Holds a number of bytes of the backlog until it is dropped.
#[derive(Debug)]
pub struct Permit {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Backlog {
    /// Waits until so many more may be held. What is too large by itself waits until nothing else is.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Permit {
        let mut held = lock(&self.held);
        while !held.ended && held.bytes > 0 && held.bytes.saturating_add(bytes) > limits::UNHEARD_BYTES {
            held = wait(&self.changed, held);
        }
        held.bytes = held.bytes.saturating_add(bytes);
        Permit { backlog: Arc::clone(self), bytes }
    }

    /// The end is no longer listened to: what it still says is let through, so that it can come to its own end.
    pub fn end(&self) {
        lock(&self.held).ended = true;
        self.changed.notify_all();
    }
}

impl Permit {
    /// How many bytes it permits.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = lock(&self.backlog.held);
        held.bytes = held.bytes.saturating_sub(self.bytes);
        drop(held);
        self.backlog.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn backlog_that_is_not_taken_stays_within_its_bound() {
        let backlog = Arc::new(Backlog::default());
        let (sender, said) = mpsc::channel();
        let reader = Arc::clone(&backlog);
        let thread = std::thread::spawn(move || {
            for number in 0..100 {
                sender.send((number, reader.hold(limits::UNHEARD_BYTES / 4))).unwrap();
            }
        });
        for expected in 0..50 {
            let (number, permit) = said.recv().unwrap();
            assert_eq!(number, expected);
            assert!(backlog.held.lock().unwrap().bytes <= limits::UNHEARD_BYTES);
            drop(permit);
        }
        // Nobody takes any more, and nobody waits.
        backlog.end();
        thread.join().unwrap();
        drop(said);
        assert_eq!(backlog.held.lock().unwrap().bytes, 0);
        let large = backlog.hold(2 * limits::UNHEARD_BYTES);
        assert_eq!(large.bytes, 2 * limits::UNHEARD_BYTES);
    }
}
