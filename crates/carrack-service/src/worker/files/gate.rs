//! A bound on what a worker does at once: each conversation with an endpoint holds what it has under way in memory.

use carrack_engine::sync::{lock, unpoisoned};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_engine::Stop;

/// How often it is looked whether whoever waits is still to go on.
const LOOK: Duration = Duration::from_millis(50);

/// Lets so many through at once; others wait for their turn.
pub struct Gate {
    most: usize,
    inside: Mutex<usize>,
    left: Condvar,
}

/// The right to be inside, until it is dropped.
pub struct Turn<'a>(&'a Gate);

impl Gate {
    /// One for so many.
    pub fn new(most: usize) -> Self {
        Self { most, inside: Mutex::default(), left: Condvar::new() }
    }

    /// Waits until there is room.
    ///
    /// # Errors
    /// That it was stopped.
    pub fn enter(&self, stop: &Stop) -> Result<Turn<'_>, Failure> {
        let mut inside = lock(&self.inside);
        while *inside >= self.most {
            stop.check()?;
            inside = unpoisoned(self.left.wait_timeout(inside, LOOK)).0;
        }
        *inside += 1;
        Ok(Turn(self))
    }

    /// Enters, if there is room now.
    ///
    /// # Errors
    /// [`ErrorCode::Busy`], with what there is too much of.
    pub fn try_enter(&self, what: &str) -> Result<Turn<'_>, Failure> {
        let mut inside = lock(&self.inside);
        if *inside >= self.most {
            let why = format!("{inside} {what} are under way, as many as one caller may have at an endpoint");
            return Err(Failure::new(ErrorCode::Busy, Side::Command, why));
        }
        *inside += 1;
        Ok(Turn(self))
    }

    /// Waits until somebody leaves, or for a moment.
    pub fn wait(&self) {
        let inside = lock(&self.inside);
        drop(self.left.wait_timeout(inside, LOOK));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.inside) -= 1;
        self.0.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use carrack_engine::StopReason;

    use super::*;

    #[test]
    fn gate_lets_so_many_through_at_once_and_forgets_who_was_stopped() {
        let (gate, stop) = (Gate::new(2), Stop::default());
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _turn = gate.enter(&stop).unwrap();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
        let turns = [gate.enter(&stop).unwrap(), gate.enter(&stop).unwrap()];
        let waits = Stop::default();
        waits.request(StopReason::Cancel);
        assert!(gate.enter(&waits).is_err());
        let refused = gate.try_enter("archives").err().map(|why| (why.code, why.message()));
        let why = "2 archives are under way, as many as one caller may have at an endpoint".to_owned();
        assert_eq!(refused, Some((ErrorCode::Busy, why)));
        drop(turns);
        assert!(gate.enter(&waits).is_ok());
    }
}
