//! The answer to one request, as the thread that carries it out gives it.

use carrack_engine::sync::{lock, unpoisoned};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_engine::Stop;
use serde::Serialize;

use super::{FromWorker, Tell, frame, told};
use crate::model::FileFailure;

/// Where all answers of a worker go.
#[derive(Clone)]
pub struct Output(Arc<Mutex<UnixStream>>);

impl Output {
    pub fn new(stream: UnixStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    fn write(&self, id: u64, tell: Tell, body: &[u8]) -> io::Result<()> {
        let mut stream = lock(&self.0);
        frame::write(&mut *stream, &FromWorker { id, tell }, body)
    }
}

/// Parts that a request may send before any was taken.
const PARTS_AT_FIRST: u64 = 16;
/// How often a request that waits looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// How many more parts of one answer the service takes.
pub struct Credit {
    parts: Mutex<u64>,
    grown: Condvar,
}

impl Default for Credit {
    fn default() -> Self {
        Self { parts: Mutex::new(PARTS_AT_FIRST), grown: Condvar::new() }
    }
}

impl Credit {
    /// So many more.
    pub fn add(&self, more: u64) {
        let mut parts = lock(&self.parts);
        *parts = parts.saturating_add(more);
        drop(parts);
        self.grown.notify_all();
    }

    /// Waits until there is one, and takes it.
    fn take(&self, stop: &Stop) -> Result<(), Failure> {
        let mut parts = lock(&self.parts);
        while *parts == 0 {
            stop.check()?;
            parts = unpoisoned(self.grown.wait_timeout(parts, LOOK)).0;
        }
        *parts -= 1;
        Ok(())
    }
}

/// Answers one request. A reply that is dropped before its end, as by a panic, says that the request has failed.
pub struct Reply {
    id: u64,
    output: Output,
    credit: Arc<Credit>,
    ended: bool,
}

impl Reply {
    pub fn new(id: u64, output: Output) -> Self {
        Self { id, output, credit: Arc::default(), ended: false }
    }

    /// How many more parts of the answer the service takes.
    pub fn credit(&self) -> Arc<Credit> {
        Arc::clone(&self.credit)
    }

    /// Sends a part of an answer of bytes, once the service takes one: whoever reads slowly holds up nobody else.
    ///
    /// # Errors
    /// If nobody takes it any more.
    pub fn hand_over(&mut self, body: &[u8], stop: &Stop) -> Result<(), Failure> {
        self.credit.take(stop)?;
        self.output.write(self.id, Tell::Part, body).map_err(|error| gone(&error))
    }

    /// Tells a part of the answer; more follows.
    ///
    /// # Errors
    /// If nobody takes answers any more.
    pub fn part(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.output.write(self.id, Tell::Part, body).map_err(|error| gone(&error))
    }

    /// Tells a document as a part of the answer; more follows.
    ///
    /// # Errors
    /// As [`Self::part`].
    pub fn document(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        self.part(&encoded(document)?)
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// If nobody takes answers any more.
    pub fn done(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.ended = true;
        self.output.write(self.id, Tell::Done, body).map_err(|error| gone(&error))
    }

    /// Ends the answer with a document.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn done_with(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        self.done(&encoded(document)?)
    }

    /// Ends the answer with a failure. Nothing is told where the answer has ended already.
    pub fn fail(mut self, failure: FileFailure) {
        if !self.ended {
            self.ended = true;
            // Where nobody takes it, nobody waits for it.
            let _ = self.output.write(self.id, Tell::Failed { failure }, b"");
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.ended {
            let failure = Failure::new(ErrorCode::Internal, Side::Command, "the request ended without an answer");
            let failure = told::failure(&failure);
            let _ = self.output.write(self.id, Tell::Failed { failure }, b"");
        }
    }
}

/// A document as an answer has it.
///
/// # Errors
/// None that any of ours has.
pub fn encoded(document: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(document).map_err(|error| Failure::new(ErrorCode::Internal, Side::Command, error.to_string()))
}

fn gone(error: &io::Error) -> Failure {
    Failure::new(ErrorCode::ConnectionLost, Side::Command, format!("the service takes no answer: {error}"))
}
