//! The thread that reads an end's words, and hands them to whom they are meant for.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::Tell;
use carrack_core::wire::mux::Channel;
use carrack_sys::threads;

use super::backlog::Backlog;
use super::inbox::{EndId, InboxSender, Incoming, weight};
use crate::error::{describe, failure, system_failure};
use crate::net::mux::{MuxWriter, ReadError};
use crate::panics::contain;
use crate::sync::{Latch, lock};

/// What the thread is given that reads an end's words: who takes them, how many may wait, and the knobs.
pub(super) struct Hearing {
    words: InboxSender,
    pub backlog: Arc<Backlog>,
    /// Set when all that it said has been handed on.
    pub heard_out: Arc<Latch>,
    tuning: Arc<Tuning>,
}

impl Hearing {
    pub fn new(words: InboxSender, tuning: &Arc<Tuning>) -> Self {
        Self { words, backlog: Arc::default(), heard_out: Arc::default(), tuning: Arc::clone(tuning) }
    }
}

/// Where what an end says to the other is sent.
pub(super) type Forward = Arc<Mutex<Option<Across>>>;

/// The other end, for the thread that reads an end.
#[derive(Clone)]
pub(super) struct Across {
    pub name: String,
    pub writer: MuxWriter,
    pub heard_out: Arc<Latch>,
}

/// How long the last words of an end whose connection takes nothing more may take to be read.
pub(super) const HEARD_OUT: Duration = Duration::from_secs(1);

/// Starts the thread that reads what an end says, until its connection ends. Where there can be none, the connection
/// is closed.
///
/// # Errors
/// When the system gives no thread.
pub(super) fn spawn_reader(
    id: EndId,
    name: String,
    writer: &MuxWriter,
    input: impl Read + Send + 'static,
    forward: &Forward,
    hearing: Hearing,
) -> Result<(), Failure> {
    let connection = writer.clone();
    let (writer, forward) = (writer.clone(), Arc::clone(forward));
    let Hearing { words, backlog, heard_out, tuning } = hearing;
    let read = move || {
        let mut whose = name;
        let read = &mut |channel, payload: Vec<u8>| {
            if channel != Channel::CONTROL {
                let other = lock(&forward).clone();
                let Some(other) = other else { return Ok(()) };
                return other.writer.send(channel, &payload).map_err(|error| {
                    // It may have said why it takes nothing more.
                    other.heard_out.wait(HEARD_OUT);
                    whose = other.name;
                    error.into()
                });
            }
            let (request, tell) = Tell::decode(&payload)?;
            let permit = backlog.hold(weight(&tell, payload.len()));
            let said = (Incoming { end: id, request, tell: Ok(tell) }, Some(permit));
            words.sender.send(said).map_err(|_| io::ErrorKind::BrokenPipe.into())
        };
        let ended = contain(Side::Command, "reading a control connection", || writer.read_all(input, read));
        let lost = |code, why: String| failure(code, Side::Link, why).at_end(&*whose);
        let why = match ended {
            Err(why) => why,
            Ok(_) if writer.went_silent() => {
                lost(ErrorCode::Silence, format!("nothing was heard for {} s", tuning.silence.as_secs()))
            }
            Ok(Err(ReadError::Protocol(error))) => lost(error.code, error.what),
            Ok(Err(ReadError::Connection(error))) if error.kind() == io::ErrorKind::InvalidData => {
                lost(ErrorCode::ProtocolViolation, describe(&error))
            }
            Ok(Err(ReadError::Connection(error))) => {
                lost(ErrorCode::ConnectionLost, format!("the control connection was lost: {}", describe(&error)))
            }
            Ok(Ok(())) => lost(ErrorCode::ConnectionLost, "the control connection was closed".into()),
        };
        let _ = words.send(Incoming { end: id, request: 0, tell: Err(why) });
        heard_out.set();
    };
    threads::start("reading what an end says", read).map(drop).map_err(|error| {
        connection.close();
        system_failure(Side::Command, &error)
    })
}
