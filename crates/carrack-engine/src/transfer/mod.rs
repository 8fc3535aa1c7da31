//! One end of a running transfer: the core's machine, and the threads that carry its decisions out.
//!
//! Whoever tells the machine something holds its lock for that only, and wakes the others. One thread, the *pump*,
//! carries out its actions and talks to the peer; each stream has one; the sender's scan and the receiver's commits
//! have one each; where calls for metadata are slow, more threads help with them (`storage::workers`). The thread that
//! reads the control connection only hands messages in: it never waits for anything that needs the connection.

mod driver;
mod measure;
pub mod receive;
pub mod send;
mod sources_here;
mod spool;
#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use carrack_core::ids::StreamId;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::wire::control::{Tell, TransferOptions};
use carrack_core::wire::peer::PeerMessage;
use carrack_sys::host::cpu_count;

pub use self::measure::Measured;
pub use self::sources_here::{OpensSources, SourcesHere};
use crate::data::stream::Connection;
use crate::error::{describe, failure};
use crate::panics::contain;
use crate::storage::properties::WriteOptions;

/// Threads that read files at one end, to compare their content.
pub fn content_readers() -> usize {
    cpu_count().clamp(1, 8)
}

/// What a store is told of a transfer's options.
pub fn write_options(options: &TransferOptions) -> WriteOptions {
    let TransferOptions { block_bytes, digests, verify, existing, durability, in_place, .. } = *options;
    let TransferOptions { plan_only, window_ns, kept, top_attributes, fake_super: fakes, .. } = *options;
    let compares = options.rules().is_some();
    // The receiver decides about each file.
    let (takes_over, shares) = (false, false);
    WriteOptions {
        block_bytes,
        digests,
        verify,
        existing,
        durability,
        window_ns,
        compares,
        takes_over,
        in_place,
        shares,
        plan_only,
        kept,
        fakes,
        top_attributes,
    }
}

/// Sends a message to the peer.
type Say = dyn Fn(&PeerMessage) -> io::Result<()> + Send + Sync;

/// How a running transfer speaks to the outside.
#[derive(Clone)]
pub struct Voice {
    /// Sends a message to the other end.
    pub peer: Arc<Say>,
    /// Reports to the command.
    pub command: Arc<dyn Fn(Tell) + Send + Sync>,
    /// What it tells of beside the transfer itself.
    pub measured: Measured,
}

/// A transfer that runs at this end.
#[derive(Clone)]
pub enum Running {
    /// The sending end.
    Send(Arc<send::SendRun>),
    /// The receiving end.
    Receive(Arc<receive::ReceiveRun>),
}

impl Running {
    /// The peer said something.
    pub fn handle_peer(&self, bytes: &[u8]) {
        self.contain("a message of the peer", || match self {
            Self::Send(run) => run.driver.handle_peer(bytes, |_| Ok(())),
            Self::Receive(run) => run.driver.handle_peer(bytes, |message| run.check_expected(message)),
        });
    }

    /// Whoever hears the peer knows of it: what it says may be answered.
    pub fn started(&self) {
        if let Self::Send(run) = self {
            run.look_for_sources();
        }
    }

    /// A data connection has been made.
    pub fn add_stream(&self, connection: Connection) {
        self.contain("a new data connection", || match self {
            Self::Send(run) => run.add_stream(connection),
            Self::Receive(run) => run.add_stream(connection),
        });
    }

    /// Has so many data streams end in good order, and says how many do: none at the receiving
    /// end, which has no say in it.
    pub fn retire(&self, count: u32) -> u64 {
        match self {
            Self::Send(run) => run.retire(count),
            Self::Receive(_) => 0,
        }
    }

    /// Has so many data streams go on that were asked to end, and says how many do.
    pub fn wake(&self, count: u32) -> u64 {
        match self {
            Self::Send(run) => run.wake(count),
            Self::Receive(_) => 0,
        }
    }

    /// Answers what a receiving end has asked, and says how many answers it waited for.
    pub fn may_delete(&self, may: bool) -> u64 {
        match self {
            Self::Send(_) => 0,
            Self::Receive(run) => run.may_delete(may),
        }
    }

    /// The addresses of a data connection, this host's and the other's; `None` where there is none that has any.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        match self {
            Self::Send(run) => run.driver.addresses(),
            Self::Receive(run) => run.driver.addresses(),
        }
    }

    /// Whoever calls serves others, too: a panic ends the transfer, not the thread.
    fn contain(&self, what: &str, work: impl FnOnce()) {
        let side = if matches!(self, Self::Send(_)) { Side::Source } else { Side::Destination };
        if let Err(why) = contain(side, what, work) {
            self.cancel(why);
        }
    }

    /// Ends the transfer early and removes what is unfinished.
    pub fn cancel(&self, why: Failure) {
        match self {
            Self::Send(run) => run.driver.cancel(why),
            Self::Receive(run) => run.driver.cancel(why),
        }
    }

    /// Waits until the transfer has ended, for at most this long; whether it has. Some of its threads may still be
    /// about to leave.
    pub fn wait_over(&self, most: Duration) -> bool {
        match self {
            Self::Send(run) => run.driver.over.wait(most),
            Self::Receive(run) => run.driver.over.wait(most),
        }
    }

    /// Bytes that its data connections have sent, as far as they are acknowledged, and received.
    pub fn traffic(&self) -> (u64, u64) {
        let counts = match self {
            Self::Send(run) => run.driver.traffic.counts(&run.driver.sockets),
            Self::Receive(run) => run.driver.traffic.counts(&run.driver.sockets),
        };
        (counts.delivered, counts.received)
    }

    /// Cuts off data connections that are still there.
    pub fn cut_off(&self) {
        match self {
            Self::Send(run) => run.driver.abort_all(),
            Self::Receive(run) => run.driver.abort_all(),
        }
    }

    /// Cuts off data connections that are still there, and waits until every thread has left.
    pub fn join(&self) {
        match self {
            Self::Send(run) => run.driver.join(),
            Self::Receive(run) => run.driver.join(),
        }
    }
}

/// A data connection that failed.
fn stream_failure(number: StreamId, error: &io::Error) -> Failure {
    let (code, what) = match error.kind() {
        io::ErrorKind::InvalidData => {
            (ErrorCode::ProtocolViolation, "was altered on the way, or the peer broke the protocol")
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => (ErrorCode::Silence, "went silent"),
        _ => (ErrorCode::ConnectionLost, "was lost"),
    };
    failure(code, Side::Link, format!("data connection {number} {what}: {}", describe(error)))
}
