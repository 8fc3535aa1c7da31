//! The way from this end to the other, for whoever measures the path between them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::report::{ErrorCode, Failure, PathTrace, Side};
use carrack_core::wire::control::Tell;
use carrack_sys::threads;

use super::{Agent, DataPort};
use crate::error::{failure, system_failure};
use crate::net::route;
use crate::panics::contain;

/// Data connections may still be on their way.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

impl Agent {
    /// Finds the way, and answers when it has; the transfer goes on meanwhile. Nobody names an address: it is that of a
    /// data connection, whose other side has proved who it is. At a node only measurements have it.
    pub(super) fn start_tracing(self: &Arc<Self>, request: u64) -> Option<Result<Tell, Failure>> {
        let is_measured = {
            let state = self.lock();
            let is_node = matches!(self.environment.data, DataPort::Shared(_));
            state.running.is_some() && (!is_node || state.measurement.is_some()) && !state.is_traced
        };
        if !is_measured {
            let why = "the way of packets is told once, while a path is measured";
            return Some(Err(failure(ErrorCode::ProtocolViolation, Side::Link, why)));
        }
        self.lock().is_traced = true;
        let agent = Arc::clone(self);
        let trace = move || {
            let found = contain(Side::Link, "looking for the way", || agent.trace());
            agent.reply(request, found.map(|path| Tell::Traced(Box::new(path))));
        };
        let started = threads::start("looking for the way", trace);
        started.err().map(|error| Err(system_failure(Side::Link, &error)))
    }

    fn trace(&self) -> PathTrace {
        let end = Instant::now() + PATIENCE;
        loop {
            let running = self.lock().running.clone();
            if let Some((here, there)) = running.and_then(|running| running.addresses()) {
                return route::trace(here, there, &self.left);
            }
            if self.left.wait(LOOK) || Instant::now() >= end {
                let why = "the data goes over no connection of its own".to_owned();
                return PathTrace { why, ..PathTrace::default() };
            }
        }
    }
}
