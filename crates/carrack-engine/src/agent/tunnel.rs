//! Tunnels: data streams that go through the control connection, where no other way is open.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use carrack_core::ids::StreamId;
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::wire::control::{Dialed, SessionKey, Tell, Tunnel};
use carrack_core::wire::mux::Channel;
use carrack_sys::threads;

use super::Agent;
use crate::data::hello;
use crate::error::{failure, io_failure, system_failure};
use crate::net::socket::Socket;
use crate::panics::contain;

/// The number of the data connection inside a tunnel: a direct one of the same session, made after all, has another.
const TUNNEL_NUMBER: StreamId = StreamId(512);

impl Agent {
    /// Makes a data stream of a channel of the control connection.
    pub(super) fn start_tunnel(self: &Arc<Self>, request: u64, tunnel: Tunnel) -> Option<Result<Tell, Failure>> {
        let Tunnel { session, channel, dials } = tunnel;
        let (stream, pump) = match self.open_tunnel(channel.0) {
            Ok(opened) => opened,
            Err(refusal) => return Some(Err(refusal)),
        };
        // Two threads: the greeting inside the tunnel needs its bytes carried while it goes on.
        let agent = Arc::clone(self);
        let pumping = threads::start("a tunnel", move || agent.pump_tunnel(channel, pump));
        let agent = Arc::clone(self);
        let greet = move || {
            let greeted = contain(Side::Link, "opening a tunnel", || agent.greet_tunnel(stream, &session, dials));
            agent.reply(request, greeted.unwrap_or_else(Err));
        };
        // Without the second, the first ends, too: the stream that it carries has been dropped.
        let started = pumping.and_then(|_| threads::start("opening a tunnel", greet));
        started.err().map(|error| Err(system_failure(Side::Link, &error)))
    }

    /// The stream's end, and the one that is pumped to and from the connection.
    fn open_tunnel(&self, channel: u16) -> Result<(UnixStream, UnixStream), Failure> {
        let mut state = self.lock();
        let refused = |what| Err(failure(ErrorCode::ProtocolViolation, Side::Link, what));
        // A channel is never used twice in a session: late frames of the first stream would land in the second.
        if state.tunnels.contains_key(&channel) {
            return refused(format!("the peer asked for tunnel channel {channel} twice"));
        }
        if state.tunnels.len() >= limits::TUNNELS {
            return refused(format!("the peer asked for more tunnels than the {} of a session", limits::TUNNELS));
        }
        let opened = (|| {
            let (stream, pump) = UnixStream::pair()?;
            // The thread that reads the connection writes here: a stream that takes nothing for so long
            // must not keep it for ever.
            pump.set_write_timeout(Some(self.environment.tuning.silence))?;
            state.tunnels.insert(channel, pump.try_clone()?);
            Ok((stream, pump))
        })();
        opened.map_err(|error: io::Error| io_failure(Side::Link, "tunnel", &error))
    }

    /// The data connection's own greeting, inside the tunnel: it proves the session and gives the stream its number.
    fn greet_tunnel(&self, stream: UnixStream, session: &SessionKey, dials: bool) -> Result<Tell, Failure> {
        let socket = Arc::new(Socket::Unix(stream));
        let met = if dials {
            hello::dial_clear(socket, session, TUNNEL_NUMBER)
        } else {
            // In the clear inside: the control connections that carry it are encrypted already. The key is made only
            // because accepting wants one, and is never shown.
            crate::net::tls::Key::generate()
                .and_then(|key| hello::accept(socket, &key, &|id| (*id == session.id).then(|| session.clone())))
                .map(|met| met.0)
        };
        self.handle_connection(met.map_err(|error| io_failure(Side::Link, "tunnel", &error))?);
        Ok(Tell::Dialed(Dialed::default()))
    }

    /// Carries what the stream writes to the control connection, until either of them ends.
    fn pump_tunnel(&self, channel: Channel, mut from: UnixStream) {
        let mut buffer = vec![0; 256 << 10];
        while let Ok(read) = from.read(&mut buffer) {
            if read == 0 || self.writer.send(channel, &buffer[..read]).is_err() {
                return;
            }
        }
    }
}
