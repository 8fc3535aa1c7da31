//! A request to stop, handed to all work that it may end. Nothing is woken: loops that can wait long wait
//! in portions and ask here.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use carrack_core::failure::{ErrorCode, Failure, Side};

use crate::error::failure;

/// Why work is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The user interrupted the program.
    Interrupt,
    /// The system wants the program to end in good order.
    Terminate,
    /// The owner of the work wants no more of it.
    Cancel,
    /// The session that the program was started from has ended.
    Hangup,
}

impl StopReason {
    const ALL: [Self; 4] = [Self::Interrupt, Self::Terminate, Self::Cancel, Self::Hangup];

    /// Never 0: that stands for no reason.
    fn number(self) -> u8 {
        self as u8 + 1
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.number() == number)
    }
}

/// A request to stop. Clones are one request; a child stops with its parent, and alone.
#[derive(Clone, Default)]
pub struct Stop(Arc<Request>);

#[derive(Default)]
struct Request {
    /// A [`StopReason`]'s number; 0 while nobody wants it.
    reason: AtomicU8,
    above: Above,
}

/// Who else may want it.
#[derive(Default)]
enum Above {
    #[default]
    Nobody,
    Parent(Stop),
    Asked(Box<dyn Fn() -> Option<StopReason> + Send + Sync>),
}

impl Stop {
    /// Nobody wants anything to stop.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops also once `asked` gives a reason: a program's signals, say. It is asked many times a
    /// second, and by many threads.
    pub fn watching(asked: impl Fn() -> Option<StopReason> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Request { reason: AtomicU8::new(0), above: Above::Asked(Box::new(asked)) }))
    }

    /// A request for a part of the work.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Request { reason: AtomicU8::new(0), above: Above::Parent(self.clone()) }))
    }

    /// Wants this work, and its parts, to stop. The first reason stays.
    pub fn request(&self, reason: StopReason) {
        let _ = self.0.reason.compare_exchange(0, reason.number(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Why the work is to stop, if it is.
    pub fn requested(&self) -> Option<StopReason> {
        StopReason::from_number(self.0.reason.load(Ordering::Relaxed)).or_else(|| match &self.0.above {
            Above::Nobody => None,
            Above::Parent(parent) => parent.requested(),
            Above::Asked(asked) => asked(),
        })
    }

    /// Whether the work may go on.
    ///
    /// # Errors
    /// When it may not: [`ErrorCode::Interrupted`] or [`ErrorCode::Terminated`].
    pub fn check(&self) -> Result<(), Failure> {
        let Some(reason) = self.requested() else { return Ok(()) };
        let (code, what) = match reason {
            StopReason::Interrupt => (ErrorCode::Interrupted, "interrupted"),
            StopReason::Terminate => (ErrorCode::Terminated, "terminated"),
            StopReason::Cancel => (ErrorCode::Interrupted, "cancelled"),
            StopReason::Hangup => (ErrorCode::Terminated, "the session that started this has ended"),
        };
        Err(failure(code, Side::Command, what))
    }
}

/// How long anything is waited for: until a request to stop, or a moment at which the work is given up.
#[derive(Clone, Debug, Default)]
pub struct Until {
    stop: Stop,
    end: Option<Instant>,
}

impl Until {
    /// Until `stop`, and no longer than until `end`, if there is one.
    pub fn new(stop: Stop, end: Option<Instant>) -> Self {
        Self { stop, end }
    }

    /// Whether the work may go on.
    ///
    /// # Errors
    /// When it may not: those of [`Stop::check`], and [`ErrorCode::DeadlinePassed`].
    pub fn check(&self) -> Result<(), Failure> {
        self.stop.check()?;
        match self.end {
            Some(end) if Instant::now() >= end => {
                Err(failure(ErrorCode::DeadlinePassed, Side::Command, "ran out of time"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stop").field(&self.requested()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn child_stops_with_its_parent_and_alone() {
        let parent = Stop::new();
        let (one, other) = (parent.child(), parent.child());
        one.request(StopReason::Cancel);
        assert_eq!([&parent, &one, &other].map(Stop::requested), [None, Some(StopReason::Cancel), None]);
        assert!(other.check().is_ok());
        parent.clone().request(StopReason::Terminate);
        // The first reason stays.
        assert_eq!(one.requested(), Some(StopReason::Cancel));
        assert_eq!(other.check().map_err(|why| why.code), Err(ErrorCode::Terminated));
    }

    #[test]
    fn stop_that_watches_asks_each_time() {
        let said = Arc::new(Mutex::new(None));
        let asked = Arc::clone(&said);
        let stop = Stop::watching(move || *asked.lock().unwrap()).child();
        assert_eq!(stop.requested(), None);
        *said.lock().unwrap() = Some(StopReason::Interrupt);
        assert_eq!(stop.requested(), Some(StopReason::Interrupt));
    }
}
