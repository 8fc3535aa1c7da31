//! One end's servant: does what the command asks, on files and connections of its own host. The same code at the far side of an ssh
//! session, in a node, and in the command's own process.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use carrack_core::path::check_relative;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::selection::Selection;
use carrack_core::wire::bounds::{Expected, check_ask};
use carrack_core::wire::control::{
    Ask, Begin, Connected, Counted, Dial, Dialed, FromAgent, Hello, Listen, Listening, Paths, ReceiveRole, Role,
    SessionKey, Tell, ToAgent, TransferOptions, Tunnel, Welcome,
};
use carrack_core::wire::mux::{Channel, HEADER_BYTES, decode_header};
use carrack_core::wire::{PROTOCOL_VERSION, PROTOCOL_VERSION_MIN, ProtocolError, VERSION_RESUME};
use carrack_core::{limits, tuning};
use carrack_sys::dir::{Kind, stat_file};
use carrack_sys::file::clear_nonblock;
use carrack_sys::standard::Patient;

use crate::control::ssh;
use crate::data::listen::DataListener;
use crate::data::sessions::NodeSessions;
use crate::data::stream::Connection;
use crate::data::{dial, hello};
use crate::error::{describe, failure, io_failure, protocol_failure};
use crate::host::host_id;
use crate::net::connect::Allow;
use crate::net::dial_rule;
use crate::net::mux::MuxWriter;
use crate::net::socket::Socket;
use crate::panics::contain;
use crate::storage::destination::{Destination, Tree};
use crate::storage::identity::machine;
use crate::storage::marker::MarkerRequest;
use crate::storage::pipe::FifoWriter;
use crate::storage::place::Place;
use crate::storage::source::SourceRoot;
use crate::transfer::receive::ReceiveRun;
use crate::transfer::send::SendRun;
use crate::transfer::{Running, Voice};
use crate::verbs;

/// The number of the data connection inside a tunnel: a direct one of the same session, made after all, has another.
const TUNNEL_NUMBER: u16 = 512;

/// What an agent may do, and with what.
pub struct Environment {
    /// Where paths lead.
    pub place: Place,
    /// Nothing may be changed.
    pub read_only: bool,
    /// Standard streams and synthetic sources are this process's: only in the command itself.
    pub own_process: bool,
    /// BLAKE3 of the bearer token that a client must show; `None` where the connection itself is proof.
    pub token: Option<blake3::Hash>,
    /// No more sessions can be taken: the greeting is answered by that.
    pub busy: bool,
    /// How data connections are accepted.
    pub data: DataPort,
    /// The address that the control connection reached.
    pub local_address: String,
    /// The address that it came from.
    pub peer_address: String,
}

/// How data connections are accepted.
pub enum DataPort {
    /// On a port opened for the session.
    Own,
    /// On a node's one port.
    Shared(Arc<NodeSessions>),
}

/// Runs the far side of an ssh session on standard input and output, until the session ends.
///
/// # Errors
/// When the connection breaks the protocol.
pub fn run_stdio(nonce: &str) -> Result<(), Failure> {
    ssh::announce(&mut io::stdout(), nonce).map_err(|error| io_failure(Side::Link, "announce the agent", &error))?;
    // SSH_CONNECTION: client address, client port, server address, server port; of the connection really used.
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let words: Vec<&str> = connection.split_ascii_whitespace().collect();
    let word = |place: usize| words.get(place).map(|word| (*word).to_string()).unwrap_or_default();
    let environment = Environment {
        place: Place::Anywhere { tilde: true },
        read_only: false,
        own_process: false,
        token: None,
        busy: false,
        data: DataPort::Own,
        local_address: word(2),
        peer_address: word(0),
    };
    // Called when all work here has ended, or when the other side has been silent for so long that nobody is there any more. A thread
    // that waits in read could not be woken then: what is unfinished is removed, and the process ends.
    let served: Arc<OnceLock<Weak<Agent>>> = Arc::default();
    let ended = Arc::clone(&served);
    let abort = move || {
        if let Some(agent) = ended.get().and_then(Weak::upgrade) {
            agent.end_work("the other side has been silent for too long");
        }
        std::process::exit(0);
    };
    let agent = Agent::new(MuxWriter::new(Box::new(io::stdout()), Box::new(abort)), environment);
    let _ = served.set(Arc::downgrade(&agent));
    let mut input = io::stdin();
    agent.greet(&mut input)?;
    agent.writer.keep_alive();
    agent.run(input);
    Ok(())
}

/// The first exchange: versions, and the token where one is wanted.
///
/// # Errors
/// When the connection ends, breaks the protocol, or does not show the token; the peer has been told.
pub fn greet(input: &mut impl Read, writer: &MuxWriter, environment: &Environment) -> Result<(), Failure> {
    let (request, hello) = read_hello(input).map_err(|error| io_failure(Side::Link, "first message", &error))?;
    let answer = check_hello(&hello, environment);
    let tell = match &answer {
        Ok(version) => Tell::Welcome(Welcome {
            version: *version,
            program: env!("CARGO_PKG_VERSION").into(),
            host_id: host_id(),
            machine: machine_told(environment),
            processors: u32::try_from(carrack_sys::host::cpu_count()).unwrap_or(1),
            local_address: environment.local_address.clone(),
            peer_address: environment.peer_address.clone(),
            clock_seconds: carrack_sys::host::clock_seconds(),
            congestion: carrack_sys::host::default_congestion_control(),
        }),
        Err(failure) => Tell::Failed(failure.clone().into()),
    };
    let message = FromAgent { request, tell: Some(tell) };
    writer.send(Channel::CONTROL, &message.to_bytes()).map_err(|error| io_failure(Side::Link, "welcome", &error))?;
    answer.map(|_| ())
}

/// A node is known by its key, and need not say more of its host to whoever asks.
fn machine_told(environment: &Environment) -> Vec<u8> {
    match environment.data {
        DataPort::Own => machine().to_vec(),
        DataPort::Shared(_) => Vec::new(),
    }
}

fn read_hello(input: &mut impl Read) -> io::Result<(u64, Hello)> {
    // Before the peer is known its first message may be a token's length, not a megabyte.
    const FIRST_BYTES_MAX: usize = 16 << 10;
    let bad = |error: ProtocolError| io::Error::new(io::ErrorKind::InvalidData, error);
    loop {
        let mut header = [0; HEADER_BYTES];
        input.read_exact(&mut header)?;
        let (channel, length) = decode_header(header).map_err(bad)?;
        if length > FIRST_BYTES_MAX || channel != Channel::CONTROL {
            return Err(bad(ProtocolError::violation(format!(
                "the peer's first message has {length} bytes on channel {}",
                channel.0
            ))));
        }
        let mut payload = vec![0; length];
        input.read_exact(&mut payload)?;
        if length == 0 {
            continue;
        }
        return match ToAgent::from_bytes(&payload).map_err(bad)? {
            (request, Ask::Hello(hello)) => Ok((request, hello)),
            _ => Err(bad(ProtocolError::violation("the peer's first message is not a greeting"))),
        };
    }
}

fn check_hello(hello: &Hello, environment: &Environment) -> Result<u32, Failure> {
    if let Some(token) = environment.token
        && blake3::hash(hello.token.as_bytes()) != token
    {
        let what = if hello.token.is_empty() { "no token was shown" } else { "the token is not this node's" };
        let message =
            format!("{what}: name the file with the node's token by --token-file, or keep it by `carrack token add`");
        return Err(failure(ErrorCode::AuthenticationFailed, Side::Link, message));
    }
    if environment.busy {
        let message =
            format!("serves {} sessions already, which is as many as it takes; try again later", limits::SESSIONS);
        return Err(failure(ErrorCode::Busy, Side::Link, message));
    }
    if hello.oldest > PROTOCOL_VERSION || hello.newest < PROTOCOL_VERSION_MIN {
        let message = format!(
            "the command (carrack {}) speaks protocol {} to {}, this side (carrack {}) {PROTOCOL_VERSION_MIN} to {PROTOCOL_VERSION}: update the older one",
            carrack_core::wire::peer_text(&hello.program),
            hello.oldest,
            hello.newest,
            env!("CARGO_PKG_VERSION")
        );
        return Err(failure(ErrorCode::VersionMismatch, Side::Link, message));
    }
    Ok(PROTOCOL_VERSION.min(hello.newest))
}

/// Serves a greeted connection until it ends. Everything that runs is ended then, and what is unfinished removed.
pub fn serve(input: impl Read + Send + 'static, writer: MuxWriter, environment: Environment) {
    Agent::new(writer, environment).run(input);
}

/// An agent at work.
pub struct Agent {
    environment: Environment,
    writer: MuxWriter,
    /// Of the requests that wait.
    waiting_bytes: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// Data connections that came before the transfer began.
    waiting: Vec<Connection>,
    listener: Option<DataListener>,
    session: Option<[u8; 16]>,
    /// Where frames of tunnelled streams go.
    tunnels: HashMap<u16, UnixStream>,
    /// What is to be sent of the next transfer's sources.
    selection: Option<Selection>,
    /// Dials under way.
    dials: usize,
    /// Data connections, and the numbers that they have had.
    connections: Vec<Weak<Socket>>,
    numbers: HashSet<u16>,
    /// Why the connection is read no more, if it is more than its end: how the peer broke the protocol.
    broken: Option<Failure>,
    /// The connection has ended: nothing is to be started any more.
    left: bool,
}

impl State {
    /// Each connection is a thread and its buffers: a peer gets as many as were named as the most that a transfer has.
    fn count_connection(&mut self, connection: &Connection) -> Result<(), ProtocolError> {
        self.connections.retain(|socket| socket.strong_count() > 0);
        // Twice: of those that were lost and made again, this side may not know yet that they are dead.
        if self.connections.len() >= 2 * usize::from(limits::STREAMS) {
            let what = format!("the peer made more than {} data connections", 2 * limits::STREAMS);
            return Err(ProtocolError::violation(what));
        }
        if !self.numbers.insert(connection.number) {
            let what = format!("the peer made data connection {} twice", connection.number);
            return Err(ProtocolError::violation(what));
        }
        self.connections.push(Arc::downgrade(&connection.socket));
        Ok(())
    }
}

impl Agent {
    /// An agent that speaks over this connection.
    pub fn new(writer: MuxWriter, environment: Environment) -> Arc<Self> {
        Arc::new(Self { environment, writer, waiting_bytes: AtomicUsize::new(0), state: Mutex::default() })
    }

    /// See [`greet`].
    ///
    /// # Errors
    /// As [`greet`].
    pub fn greet(&self, input: &mut impl Read) -> Result<(), Failure> {
        greet(input, &self.writer, &self.environment)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what comes until the connection ends.
    pub fn run(self: &Arc<Self>, input: impl Read + Send + 'static) {
        let dials = if self.environment.own_process { limits::OWN_DIALS } else { 0 };
        let (requests, work) = mpsc::sync_channel(limits::REQUESTS_WAITING + dials);
        let reader = Arc::clone(self);
        std::thread::spawn(move || {
            let read = contain(Side::Link, "reading the control connection", || {
                reader.writer.read_all(input, &mut |channel, payload| reader.take_frame(channel, payload, &requests))
            });
            let violation = |error: io::Error| {
                error.downcast::<ProtocolError>().ok().map(|error| protocol_failure(Side::Link, &error))
            };
            reader.lock().broken = match read {
                Ok(ended) => ended.err().and_then(violation),
                Err(why) => Some(why),
            };
            // Only now do the requests end.
            drop(requests);
        });
        let broken = loop {
            let Ok(payload) = work.recv() else { break self.lock().broken.take() };
            self.waiting_bytes.fetch_sub(payload.len(), Ordering::Relaxed);
            match ToAgent::from_bytes(&payload) {
                Ok((_, Ask::Bye(_))) => break None,
                Ok((request, ask)) => {
                    let answer =
                        || self.answer(request, ask).into_iter().for_each(|answer| self.reply(request, answer));
                    if let Err(why) = contain(Side::Link, "a request", answer) {
                        self.reply(request, Err(why.clone()));
                        // What it has left half done is not built upon.
                        break Some(why);
                    }
                }
                Err(error) => break Some(protocol_failure(Side::Link, &error)),
            }
        };
        if let Some(why) = broken {
            self.reply(0, Err(why));
        }
        self.leave();
    }

    /// Called by the thread that reads the connection: it must not wait for the connection.
    fn take_frame(&self, channel: Channel, payload: Vec<u8>, requests: &mpsc::SyncSender<Vec<u8>>) -> io::Result<()> {
        match channel {
            Channel::CONTROL => {
                let too_many = || {
                    let (count, bytes) = (limits::REQUESTS_WAITING, limits::REQUEST_BYTES_WAITING);
                    let what = format!("the peer sent more requests than the {count}, of {bytes} bytes, that may wait");
                    io::Error::new(io::ErrorKind::InvalidData, ProtocolError::violation(what))
                };
                let waiting = self.waiting_bytes.fetch_add(payload.len(), Ordering::Relaxed);
                if waiting > 0 && waiting + payload.len() > limits::REQUEST_BYTES_WAITING {
                    return Err(too_many());
                }
                requests.try_send(payload).map_err(|refused| match refused {
                    mpsc::TrySendError::Full(_) => too_many(),
                    mpsc::TrySendError::Disconnected(_) => io::ErrorKind::BrokenPipe.into(),
                })
            }
            Channel::PEER => {
                let running = self.lock().running.clone();
                if let Some(running) = running {
                    running.handle_peer(&payload);
                }
                Ok(())
            }
            Channel(number) => {
                let tunnel = self.lock().tunnels.get(&number).map(UnixStream::try_clone);
                if let Some(Ok(mut tunnel)) = tunnel
                    && tunnel.write_all(&payload).is_err()
                {
                    // A stream that has ended takes no more, nor one that has lost a part; the transfer knows by itself.
                    let _ = tunnel.shutdown(Shutdown::Both);
                }
                Ok(())
            }
        }
    }

    fn reply(&self, request: u64, answer: Result<Tell, Failure>) {
        let tell = answer.unwrap_or_else(|failure| Tell::Failed(failure.into()));
        let mut bytes = FromAgent { request, tell: Some(tell) }.to_bytes();
        if bytes.len() > limits::MESSAGE_BYTES {
            let what =
                format!("the answer has {} bytes, more than a message may have: ask for less at once", bytes.len());
            let refusal = failure(ErrorCode::ResourceLimit, Side::Link, what);
            bytes = FromAgent { request, tell: Some(Tell::Failed(refusal.into())) }.to_bytes();
        }
        // A connection that is gone takes no answer.
        let _ = self.writer.send(Channel::CONTROL, &bytes);
    }

    /// Ends what runs, and the connection.
    pub fn leave(&self) {
        // Whatever becomes of the work, a connection that nobody reads any more is not kept alive.
        let _ = contain(Side::Link, "the end of a session", || self.end_work("the control connection has ended"));
        self.writer.close();
    }

    /// Ends what runs, and removes what is unfinished.
    fn end_work(&self, why: &str) {
        let (running, listener, tunnels) = {
            let mut state = self.lock();
            if let (DataPort::Shared(sessions), Some(session)) = (&self.environment.data, state.session.take()) {
                sessions.remove(&session);
            }
            state.waiting.clear();
            state.left = true;
            (state.running.take(), state.listener.take(), std::mem::take(&mut state.tunnels))
        };
        drop(listener);
        for tunnel in tunnels.values() {
            let _ = tunnel.shutdown(Shutdown::Both);
        }
        if let Some(running) = running {
            running.cancel(failure(ErrorCode::ConnectionLost, Side::Link, why));
            running.join();
        }
    }

    /// `None` when the answer comes later.
    fn answer(self: &Arc<Self>, request: u64, ask: Ask) -> Option<Result<Tell, Failure>> {
        let place = &self.environment.place;
        let done = |count| Tell::Done(Counted { count });
        if let Err(error) = check_ask(&ask) {
            return Some(Err(protocol_failure(Side::Link, &error)));
        }
        Some(match ask {
            Ask::Hello(_) => Err(failure(ErrorCode::ProtocolViolation, Side::Link, "the peer greeted twice")),
            Ask::Inspect(paths) => Ok(verbs::inspect(place, &paths)),
            Ask::Listen(listen) => self.listen(&listen),
            Ask::Dial(dial) => return self.start_dialing(request, dial),
            Ask::Tunnel(tunnel) => return self.start_tunnel(request, &tunnel),
            Ask::Begin(begin) => self.begin(begin).map(done),
            Ask::Cancel(_) => {
                let running = self.lock().running.clone();
                if let Some(running) = running {
                    running.cancel(failure(ErrorCode::Interrupted, Side::Command, "the command was stopped"));
                }
                Ok(done(0))
            }
            Ask::List(list) => verbs::list(place, &list, &mut |page| self.page(request, Tell::Page(page))).map(done),
            Ask::Sum(sum) => verbs::sum(place, &sum, &mut |sums| self.page(request, Tell::Sums(sums))).map(done),
            Ask::MakeDirectory(make) => {
                self.may_change().and_then(|()| verbs::make_directory(place, &make)).map(|()| done(1))
            }
            Ask::Rename(rename) => self.may_change().and_then(|()| verbs::rename(place, &rename)).map(|()| done(1)),
            Ask::Remove(remove) => {
                let removed = self
                    .may_change()
                    .and_then(|()| verbs::remove(place, &remove, &mut |page| self.page(request, Tell::Page(page))));
                removed.map(done)
            }
            Ask::Select(paths) => self.select(paths).map(done),
            Ask::Collect(collect) => {
                let collected = self
                    .may_change()
                    .and_then(|()| verbs::collect(place, &collect, &mut |page| self.page(request, Tell::Page(page))));
                collected.map(done)
            }
            Ask::Retire(retire) => {
                Ok(done(self.lock().running.clone().map_or(0, |running| running.retire(retire.count))))
            }
            Ask::Bye(_) => return None,
        })
    }

    /// Sends a part of an answer, and waits while the connection is full.
    fn page(&self, request: u64, tell: Tell) -> Result<(), Failure> {
        let sent = self.writer.send(Channel::CONTROL, &FromAgent { request, tell: Some(tell) }.to_bytes());
        sent.map_err(|error| io_failure(Side::Link, "answer", &error))
    }

    fn may_change(&self) -> Result<(), Failure> {
        if self.environment.read_only {
            return Err(failure(
                ErrorCode::NodeReadOnly,
                Side::Destination,
                "the node serves for reading only (--read-only)",
            ));
        }
        Ok(())
    }

    /// A data connection has proved to belong here.
    pub fn arrived(&self, connection: Connection) {
        let (running, refused) = {
            let mut state = self.lock();
            if state.left {
                return;
            }
            let refused = state.count_connection(&connection).err();
            match (&state.running, refused) {
                (Some(running), refused) => (running.clone(), refused),
                // Before a transfer has begun there is nothing to end: it is closed.
                (None, Some(_)) => return,
                (None, None) => return state.waiting.push(connection),
            }
        };
        match refused {
            Some(error) => running.cancel(protocol_failure(Side::Link, &error)),
            None => running.add_stream(connection),
        }
    }

    fn listen(self: &Arc<Self>, listen: &Listen) -> Result<Tell, Failure> {
        let session =
            SessionKey::from_message(listen.session.as_ref()).map_err(|error| protocol_failure(Side::Link, &error))?;
        let agent = Arc::downgrade(self);
        let arrived = move |connection| {
            if let Some(agent) = agent.upgrade() {
                agent.arrived(connection);
            }
        };
        let port = |number: u32| u16::try_from(number).ok().filter(|&number| number > 0);
        let (port, pin) = match &self.environment.data {
            DataPort::Shared(sessions) => {
                let id = session.id;
                if !sessions.insert(session, Arc::new(arrived)) {
                    let what = "the peer asked to listen for a session that has its listener already";
                    return Err(failure(ErrorCode::ProtocolViolation, Side::Link, what));
                }
                if let Some(before) = self.lock().session.replace(id) {
                    sessions.remove(&before);
                }
                (sessions.port, sessions.pin)
            }
            DataPort::Own => {
                let ports = port(listen.port_low).zip(port(listen.port_high));
                let opened = DataListener::open(ports, session, arrived).map_err(|error| {
                    let range =
                        ports.map_or_else(|| "any port".to_string(), |(low, high)| format!("ports {low}-{high}"));
                    io_failure(Side::Link, format!("listen for data connections on {range}"), &error)
                })?;
                let found = (opened.port, opened.pin);
                self.lock().listener = Some(opened);
                found
            }
        };
        Ok(Tell::Listening(Listening { port: u32::from(port), pin: pin.to_vec() }))
    }

    /// Dials on a thread of its own: other requests go on meanwhile.
    fn start_dialing(self: &Arc<Self>, request: u64, ask: Dial) -> Option<Result<Tell, Failure>> {
        let checked = SessionKey::from_message(ask.session.as_ref()).and_then(|session| {
            let pin: [u8; 32] =
                ask.pin.as_slice().try_into().map_err(|_| ProtocolError::violation("a pin of the wrong length"))?;
            let last = ask
                .first
                .checked_add(ask.count)
                .filter(|&last| last <= 1 << u16::BITS && ask.count <= u32::from(limits::STREAMS));
            let last =
                last.ok_or_else(|| ProtocolError::violation(format!("{} data connections were asked for", ask.count)))?;
            Ok((session, pin, last))
        });
        let (session, pin, last) = match checked {
            Ok(checked) => checked,
            Err(error) => return Some(Err(protocol_failure(Side::Link, &error))),
        };
        {
            let mut state = self.lock();
            let most = if self.environment.own_process { limits::OWN_DIALS } else { limits::DIALS };
            if state.dials >= most {
                let what = format!("the peer asked for more than {most} dials at once");
                return Some(Err(failure(ErrorCode::ProtocolViolation, Side::Link, what)));
            }
            state.dials += 1;
        }
        let agent = Arc::clone(self);
        std::thread::spawn(move || {
            let dialed = contain(Side::Link, "making data connections", || {
                let mut answer = Err(failure(ErrorCode::ConnectFailed, Side::Link, "no data connection was asked for"));
                for number in ask.first..last {
                    answer = agent.dial_one(request, &ask, &session, pin, number as u16);
                    if answer.is_err() || agent.lock().left {
                        break;
                    }
                }
                answer
            });
            agent.lock().dials -= 1;
            agent.reply(request, dialed.unwrap_or_else(Err));
        });
        None
    }

    fn dial_one(
        &self,
        request: u64,
        ask: &Dial,
        session: &SessionKey,
        pin: [u8; 32],
        number: u16,
    ) -> Result<Tell, Failure> {
        let timeout = Duration::from_millis(u64::from(ask.timeout_ms.clamp(1, 120_000)));
        let deadline = Instant::now() + timeout;
        // What a node dials its client has chosen: it is told nothing of what is there but that it is the copy's other end.
        let rule = match &self.environment.data {
            DataPort::Own => None,
            DataPort::Shared(sessions) => Some(Arc::clone(sessions)),
        };
        let (is_node, asks) = (rule.is_some(), self.environment.peer_address.parse().ok());
        let allow: Allow = Arc::new(move |address| {
            let checked = rule.as_ref().map_or(Ok(()), |sessions| sessions.dials.check(address, asks));
            checked.map_err(|refused| io::Error::new(io::ErrorKind::PermissionDenied, refused))
        });
        let connected = |round_trip: Duration| {
            if ask.tell_connected && !is_node {
                let round_trip_us = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
                self.reply(request, Ok(Tell::Connected(Connected { round_trip_us })));
            }
        };
        let addresses = (&ask.addresses[..], &allow);
        let dialed =
            dial::dial_where(addresses, session, pin, number, ask.segment, timeout, &connected).map_err(|error| {
                let tried = if ask.addresses.is_empty() { "no address".into() } else { ask.addresses.join(", ") };
                let refused = error.get_ref().is_some_and(|inner| inner.is::<dial_rule::Refused>());
                let why = if is_node && !refused {
                    self.wait_until(deadline);
                    "nobody who belongs to this copy answers there".into()
                } else {
                    describe(&error)
                };
                failure(ErrorCode::ConnectFailed, Side::Link, format!("data connection to {tried}: {why}"))
            })?;
        let round_trip_us = u64::try_from(dialed.round_trip.as_micros()).unwrap_or(u64::MAX);
        let told = Dialed { address: dialed.address.to_string(), cipher: dialed.cipher, round_trip_us };
        self.arrived(dialed.connection);
        Ok(Tell::Dialed(told))
    }

    /// Waits, unless the session ends.
    fn wait_until(&self, moment: Instant) {
        while Instant::now() < moment && !self.lock().left {
            std::thread::park_timeout(moment.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
    }

    /// Makes a data stream of a channel of the control connection.
    fn start_tunnel(self: &Arc<Self>, request: u64, tunnel: &Tunnel) -> Option<Result<Tell, Failure>> {
        let session = match SessionKey::from_message(tunnel.session.as_ref()) {
            Ok(session) => session,
            Err(error) => return Some(Err(protocol_failure(Side::Link, &error))),
        };
        let channel = u16::try_from(tunnel.channel).ok().filter(|&channel| channel >= Channel::FIRST_TUNNEL.0);
        let Some(channel) = channel else {
            return Some(Err(failure(
                ErrorCode::ProtocolViolation,
                Side::Link,
                format!("the peer asked for channel {} as a tunnel", tunnel.channel),
            )));
        };
        let (stream, pump) = match self.open_tunnel(channel) {
            Ok(opened) => opened,
            Err(refusal) => return Some(Err(refusal)),
        };
        let agent = Arc::clone(self);
        std::thread::spawn(move || agent.pump_tunnel(Channel(channel), pump));
        let (agent, dials) = (Arc::clone(self), tunnel.dial);
        std::thread::spawn(move || {
            let greeted = contain(Side::Link, "opening a tunnel", || agent.greet_tunnel(stream, &session, dials));
            agent.reply(request, greeted.unwrap_or_else(Err));
        });
        None
    }

    /// The stream's end, and the one that is pumped to and from the connection.
    fn open_tunnel(&self, channel: u16) -> Result<(UnixStream, UnixStream), Failure> {
        let mut state = self.lock();
        let refused = |what| Err(failure(ErrorCode::ProtocolViolation, Side::Link, what));
        if state.tunnels.contains_key(&channel) {
            return refused(format!("the peer asked for tunnel channel {channel} twice"));
        }
        if state.tunnels.len() >= limits::TUNNELS {
            return refused(format!("the peer asked for more tunnels than the {} of a session", limits::TUNNELS));
        }
        let opened = (|| {
            let (stream, pump) = UnixStream::pair()?;
            // The thread that reads the connection writes here: a stream that takes nothing for so long must not keep it for ever.
            pump.set_write_timeout(Some(tuning::SILENCE))?;
            state.tunnels.insert(channel, pump.try_clone()?);
            Ok((stream, pump))
        })();
        opened.map_err(|error: io::Error| io_failure(Side::Link, "tunnel", &error))
    }

    fn greet_tunnel(&self, stream: UnixStream, session: &SessionKey, dials: bool) -> Result<Tell, Failure> {
        let socket = Arc::new(Socket::Unix(stream));
        let met = if dials {
            hello::dial_inside(socket, session, TUNNEL_NUMBER)
        } else {
            // In the clear inside: the control connections that carry it are encrypted. The key is never shown.
            crate::net::tls::Key::generate()
                .and_then(|key| hello::accept(socket, &key, &|id| (*id == session.id).then(|| session.clone())))
                .map(|met| met.0)
        };
        self.arrived(met.map_err(|error| io_failure(Side::Link, "tunnel", &error))?);
        Ok(Tell::Dialed(Dialed::default()))
    }

    fn pump_tunnel(&self, channel: Channel, mut from: UnixStream) {
        let mut buffer = vec![0; 256 << 10];
        while let Ok(read) = from.read(&mut buffer) {
            if read == 0 || self.writer.send(channel, &buffer[..read]).is_err() {
                return;
            }
        }
    }

    /// Adds to what the next transfer sends, and counts all of it.
    fn select(&self, paths: Paths) -> Result<u64, Failure> {
        let mut state = self.lock();
        let selection = state.selection.get_or_insert_default();
        for path in paths.paths {
            if let Err(error) = check_relative(&path) {
                return Err(protocol_failure(Side::Link, &ProtocolError::path(&path, error)));
            }
            selection.add(path);
            let (count, bytes) = selection.size();
            if count > limits::SELECTED_PATHS || bytes > limits::SELECTED_BYTES {
                let what =
                    format!("more than {} paths, or {} bytes of them", limits::SELECTED_PATHS, limits::SELECTED_BYTES);
                return Err(failure(ErrorCode::ProtocolViolation, Side::Link, format!("the peer selected {what}")));
            }
        }
        Ok(selection.size().0 as u64)
    }

    /// Starts a transfer; of a receiving one, how many items it knows from earlier sessions.
    fn begin(self: &Arc<Self>, begin: Begin) -> Result<u64, Failure> {
        let options =
            begin.options.as_ref().ok_or_else(|| ProtocolError::violation("the peer began a transfer without options"));
        let options =
            options.and_then(TransferOptions::from_message).map_err(|error| protocol_failure(Side::Link, &error))?;
        if self.lock().running.is_some() {
            return Err(failure(
                ErrorCode::ProtocolViolation,
                Side::Link,
                "the peer began a second transfer in one session",
            ));
        }
        let voice = self.voice();
        let mut known = 0;
        let running = match begin.role {
            Some(Role::Send(role)) => {
                if role.sources.len() > limits::SOURCES
                    || role.sources.iter().any(|source| source.synthetic != 0 && !self.environment.own_process)
                {
                    return Err(failure(
                        ErrorCode::ProtocolViolation,
                        Side::Link,
                        "the peer asked for sources that it may not ask for",
                    ));
                }
                let roots = role
                    .sources
                    .iter()
                    .map(|source| SourceRoot::open(&self.environment.place, source))
                    .collect::<Result<Vec<_>, _>>()?;
                let selection = self.lock().selection.take();
                Running::Send(SendRun::start(options, roots, selection, role.known, voice))
            }
            Some(Role::Receive(role)) => {
                self.may_change()?;
                let destination = self.destination(&role, &options)?;
                if let Destination::Tree(tree) = &destination {
                    known = tree.known_count(options.digests);
                }
                Running::Receive(ReceiveRun::start(options, destination, Expected::new(role.targets), voice))
            }
            None => {
                return Err(failure(
                    ErrorCode::ProtocolViolation,
                    Side::Link,
                    "the peer began a transfer without a role",
                ));
            }
        };
        let waiting = {
            let mut state = self.lock();
            state.running = Some(running.clone());
            std::mem::take(&mut state.waiting)
        };
        running.started();
        for connection in waiting {
            running.add_stream(connection);
        }
        Ok(known)
    }

    fn voice(self: &Arc<Self>) -> Voice {
        let (peer, command) = (self.writer.clone(), self.writer.clone());
        Voice {
            peer: Arc::new(move |message| peer.send(Channel::PEER, &message.encode())),
            command: Arc::new(move |tell| {
                let _ = command.send(Channel::CONTROL, &FromAgent { request: 0, tell: Some(tell) }.to_bytes());
            }),
        }
    }

    fn destination(self: &Arc<Self>, role: &ReceiveRole, options: &TransferOptions) -> Result<Destination, Failure> {
        let (path, sink) = (&role.directory[..], role.sink);
        let named = |error: &io::Error| io_failure(Side::Destination, carrack_core::path::display_bytes(path), error);
        match (sink, self.environment.own_process) {
            (0, _) => {
                let durably = options.durability != carrack_core::request::Durability::None;
                let directory = self.environment.place.make_dirs(path, durably).map_err(|error| named(&error))?;
                let request = marker_request(role, options)?;
                let tree = Tree::new(directory, role.targets.is_empty(), request, options.durability)
                    .map_err(|error| named(&error))?;
                let (place, path) = (self.environment.place.clone(), path.to_vec());
                Ok(Destination::Tree(tree.found_by(move || place.stat(&path))))
            }
            // Not the library's standard output: that keeps a last line to itself, and swallows the error when it cannot be written.
            (1, true) => {
                let out = carrack_sys::standard::output();
                let out = out.map_err(|error| io_failure(Side::Destination, "standard output", &error))?;
                let agent = Arc::downgrade(self);
                let is_over = move || agent.upgrade().is_none_or(|agent| agent.lock().left);
                Ok(Destination::sequential(Box::new(Patient::new(out, is_over))))
            }
            (2, _) => Ok(Destination::Null),
            (3, _) => {
                let (parent, name) = self.environment.place.parent(path).map_err(|error| named(&error))?;
                if parent.stat_at(&name).map_err(|error| named(&error))?.kind == Kind::Fifo {
                    let agent = Arc::downgrade(self);
                    let is_over = move || agent.upgrade().is_none_or(|agent| agent.lock().left);
                    let fifo = FifoWriter::new(parent, name, Box::new(is_over));
                    return Ok(Destination::sequential(Box::new(fifo)));
                }
                let file = parent.open_write(&name).map_err(|error| named(&error))?;
                if stat_file(&file).map_err(|error| named(&error))?.kind == Kind::File {
                    let what = format!(
                        "{}: is a regular file: only devices and FIFOs are written in place",
                        carrack_core::path::display_bytes(path)
                    );
                    return Err(failure(ErrorCode::Unsupported, Side::Destination, what));
                }
                clear_nonblock(&file).map_err(|error| named(&error))?;
                Ok(Destination::sequential(Box::new(file)))
            }
            _ => Err(failure(
                ErrorCode::ProtocolViolation,
                Side::Link,
                format!("the peer asked for a destination of unknown kind {sink}"),
            )),
        }
    }
}

/// What a receiver's marker is found by, where it is to have one.
fn marker_request(role: &ReceiveRole, options: &TransferOptions) -> Result<Option<MarkerRequest>, Failure> {
    if role.marker.is_empty() || options.version < VERSION_RESUME {
        return Ok(None);
    }
    let key = role.marker.as_slice().try_into().map_err(|_| {
        let what = format!("the peer sent a marker's key of {} bytes", role.marker.len());
        protocol_failure(Side::Link, &ProtocolError::violation(what))
    })?;
    Ok(Some(MarkerRequest { key, anew: role.anew }))
}

/// Where a client's connection came from and went to, for a node's agent.
pub fn addresses(socket: &std::net::TcpStream) -> (String, String) {
    let plain = |address: io::Result<SocketAddr>| {
        address.map(|address| address.ip().to_canonical().to_string()).unwrap_or_default()
    };
    (plain(socket.local_addr()), plain(socket.peer_addr()))
}

#[cfg(test)]
mod tests;
