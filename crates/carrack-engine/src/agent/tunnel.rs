//! Tunnels: data streams that go through the control connection, where no other way is open.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// How often it is looked whether a stream that takes nothing is still waited for.
const LOOK: Duration = Duration::from_secs(1);

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
            // The thread that reads the connection writes here, and looks now and then whether it still should.
            pump.set_write_timeout(Some(LOOK))?;
            state.tunnels.insert(channel, Arc::new(pump.try_clone()?));
            Ok((stream, pump))
        })();
        opened.map_err(|error: io::Error| io_failure(Side::Link, "tunnel", &error))
    }

    /// The data connection's own greeting, inside the tunnel: it proves the session and gives the stream its number.
    fn greet_tunnel(&self, stream: UnixStream, session: &SessionKey, dials: bool) -> Result<Tell, Failure> {
        let socket = Arc::new(Socket::Unix(stream));
        let met = if dials {
            hello::dial_clear(socket, session, StreamId::TUNNEL)
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

    /// Hands a stream what has come for it. A transfer may pause for as long as it likes: its disk stands still, its
    /// reader waits.
    pub(super) fn hand_on(&self, tunnel: &UnixStream, payload: &[u8]) {
        let (start, mut left) = (Instant::now(), payload);
        while !left.is_empty() {
            match (&*tunnel).write(left) {
                Ok(written) if written > 0 => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.is_waited_for(start.elapsed()) => {}
                // A stream that has ended takes no more, and one that has lost a part is of no use.
                _ => {
                    let _ = tunnel.shutdown(Shutdown::Both);
                    return;
                }
            }
        }
    }

    /// Whether a stream that takes nothing may still be waited for: without a transfer only for a while, and only as
    /// long as somebody is there at the other end of the connection.
    pub(super) fn is_waited_for(&self, waited: Duration) -> bool {
        let is_running = self.lock().running.is_some();
        let is_ending = self.left.is_set() || self.ending.get().is_some() || self.writer.is_broken();
        !is_ending && (is_running || waited < self.environment.tuning.silence)
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
