//! Data connections of a session: listened for, and dialled.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::ids::StreamId;
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::wire::control::{Dial, Dialed, Listen, Listening, Tell};
use carrack_sys::threads;

use super::{Agent, DataPort};
use crate::data::dial;
use crate::data::listen::DataListener;
use crate::error::{code_of, describe, failure, io_failure, system_failure};
use crate::net::connect::Allow;
use crate::net::dial_rule;
use crate::panics::contain;

impl Agent {
    /// Accepts data connections of a session from now on, and answers where.
    pub(super) fn listen(self: &Arc<Self>, listen: Listen) -> Result<Tell, Failure> {
        let Listen { session, ports } = listen;
        // Weakly: the listener belongs to the agent, and would otherwise keep itself and its port for ever.
        let agent = Arc::downgrade(self);
        let arrived = move |connection| {
            if let Some(agent) = agent.upgrade() {
                agent.handle_connection(connection);
            }
        };
        let (port, pin) = match &self.environment.data {
            DataPort::Shared(sessions) => {
                let id = session.id;
                // A node has one port for all sessions, and the session's number says whose a connection is. With a
                // number that somebody else has taken, it would get another client's data.
                if !sessions.insert(session, Arc::new(arrived)) {
                    let what = "the peer asked to listen for a session that has its listener already";
                    return Err(failure(ErrorCode::ProtocolViolation, Side::Link, what));
                }
                // One session at a time: its command could otherwise fill the node's table.
                if let Some(before) = self.lock().session.replace(id) {
                    sessions.remove(&before);
                }
                (sessions.port, sessions.pin)
            }
            DataPort::Own(local) => {
                let ports = ports.map(|ports| (ports.low, ports.high));
                let opened =
                    DataListener::open(*local, ports, session, self.environment.tuning.authenticate_timeout, arrived)
                        .map_err(|error| {
                        let range =
                            ports.map_or_else(|| "any port".to_string(), |(low, high)| format!("ports {low}-{high}"));
                        io_failure(Side::Link, format!("listen for data connections on {range}"), &error)
                    })?;
                let found = (opened.port, opened.pin);
                self.lock().listener = Some(opened);
                found
            }
        };
        Ok(Tell::Listening(Listening { port, pin }))
    }

    /// Dials on a thread of its own: other requests go on meanwhile.
    pub(super) fn start_dialing(self: &Arc<Self>, request: u64, ask: Dial) -> Option<Result<Tell, Failure>> {
        {
            // A dial is a thread, and may wait for its timeout. In the process of the command the peer is the command
            // itself, which asks for all connections of a far path at once.
            let mut state = self.lock();
            let most = if self.environment.own.is_some() { limits::OWN_DIALS } else { limits::DIALS };
            if state.dials >= most {
                let what = format!("the peer asked for more than {most} dials at once");
                return Some(Err(failure(ErrorCode::ProtocolViolation, Side::Link, what)));
            }
            state.dials += 1;
        }
        let agent = Arc::clone(self);
        // Contained: a panic must still give the dial back, and answer, or the command would wait for it.
        let dial = move || {
            let dialed = contain(Side::Link, "making data connections", || {
                let mut answer = Err(failure(ErrorCode::ConnectFailed, Side::Link, "no data connection was asked for"));
                for number in (ask.first.0..=u16::MAX).take(ask.count.into()).map(StreamId) {
                    answer = agent.dial_one(request, &ask, number);
                    // The first that fails ends the request: the others would go the same way, each with a timeout of
                    // its own.
                    if answer.is_err() || agent.left.is_set() {
                        break;
                    }
                }
                answer
            });
            agent.lock().dials -= 1;
            agent.reply(request, dialed.unwrap_or_else(Err));
        };
        let started = threads::start("making data connections", dial);
        started.err().map(|error| {
            self.lock().dials -= 1;
            Err(system_failure(Side::Link, &error))
        })
    }

    /// Makes one data connection and hands it to the transfer.
    fn dial_one(&self, request: u64, ask: &Dial, number: StreamId) -> Result<Tell, Failure> {
        let deadline = Instant::now() + ask.timeout;
        // A node's client chooses what the node dials. It is told nothing of what is there except that it is the copy's
        // other end: whoever can reach a node could otherwise look through it at hosts that only the node reaches.
        let (local, rule) = match &self.environment.data {
            DataPort::Own(local) => (*local, None),
            DataPort::Shared(sessions) => (None, Some(Arc::clone(sessions))),
        };
        let (is_node, asks) = (rule.is_some(), self.environment.peer_address.parse().ok());
        // The rule is asked for each address that a name leads to, right before it is connected to: a name may lead
        // somewhere else each time that it is looked up.
        let allow: Allow = Arc::new(move |address| {
            let checked = rule.as_ref().map_or(Ok(()), |sessions| sessions.dials.check(address, asks));
            checked.map_err(|refused| io::Error::new(io::ErrorKind::PermissionDenied, refused))
        });
        let connected = |round_trip: Duration| {
            // That a port accepts connections is a fact about the node's network as well.
            if ask.tell_connected && !is_node {
                self.reply(request, Ok(Tell::Connected(round_trip)));
            }
        };
        let prepared = self.lock().prepared.clone();
        let ways = (local, &ask.addresses[..], &allow, prepared.as_deref());
        let dialed =
            dial::dial(ways, &ask.session, ask.pin, number, ask.segment, ask.timeout, &connected).map_err(|error| {
                let tried = if ask.addresses.is_empty() { "no address".into() } else { ask.addresses.join(", ") };
                if code_of(&error) == ErrorCode::ResourceLimit {
                    return io_failure(Side::Link, format!("data connection to {tried}"), &error);
                }
                let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<dial_rule::Refused>());
                let why = if is_node && refused.is_none() {
                    // The same text for every failure, and after the same time, unless the session ends: a port that
                    // refuses would answer sooner than one that is filtered.
                    self.left.wait(deadline.saturating_duration_since(Instant::now()));
                    "nobody who belongs to this copy answers there".into()
                } else {
                    describe(&error)
                };
                // That the rule forbids an address says nothing of what is there, and the user can do something about
                // it.
                let reason = refused.map(|refused| refused.reason());
                let failed = failure(ErrorCode::ConnectFailed, Side::Link, why);
                Failure { reason, ..failed.during(format!("data connection to {tried}")) }
            })?;
        let address = dialed.address.to_string();
        let told = Dialed { address, cipher: dialed.cipher, round_trip: dialed.round_trip };
        self.handle_connection(dialed.connection);
        Ok(Tell::Dialed(told))
    }
}
