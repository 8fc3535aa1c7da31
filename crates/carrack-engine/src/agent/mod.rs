//! One end's servant: does what the command asks, on files and connections of its own host. The same code at the far
//! side of an ssh session, in a node, and in the command's own process.

mod begin;
mod bounded;
mod dial;
mod evidence;
mod grants;
mod greeting;
mod measured;
mod reading;
mod session;
mod ssh;
mod trace;
mod tunnel;
mod verbs;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::IpAddr;
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak, mpsc};
use std::time::{Duration, Instant};

use carrack_core::grant::{Ceiling, Right};
use carrack_core::ids::StreamId;
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::tuning::Tuning;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::control::{Ask, Tell};
use carrack_core::wire::mux::Channel;
use carrack_sys::threads;

use self::begin::Chosen;
use self::bounded::BoundedTest;
use self::grants::GrantInForce;
use self::session::SessionTally;
use crate::data::listen::DataListener;
use crate::data::measurements::ENDS_IN;
use crate::data::prepared::Prepared;
use crate::data::sessions::NodeSessions;
use crate::data::stream::Connection;
use crate::error::{failure, io_failure, protocol_failure, system_failure};
use crate::net::connect::open_window;
use crate::net::mux::{MuxWriter, ReadError};
use crate::net::socket::Socket;
use crate::panics::contain;
use crate::standard::Standard;
use crate::storage::place::Place;
use crate::sync::Latch;
use crate::sync::lock;
use crate::transfer::{Running, SourcesHere};
pub use grants::{NodeToken, RevokedGrants};
pub use greeting::{greet, refuse};
pub use session::SessionWork;
pub use ssh::FarSide;

/// How long the request under way may take to be answered, and the client to take the reason, once a session is ended.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// What an agent may do, and with what.
pub struct Environment {
    /// Where paths lead.
    pub place: Place,
    /// Nothing may be changed.
    pub read_only: bool,
    /// Owners, groups and special bits of sources are given to items also where paths do not lead anywhere.
    pub gives_ownership: bool,
    /// What `-` stands for, in the process that carries the copy out; `None` anywhere else, where there are no
    /// synthetic sources either.
    pub own: Option<Standard>,
    /// Where the receiver finds the sender, in a copy within one process.
    pub sources: Option<SourcesHere>,
    /// The bearer token that a client must show, or a grant made with it; `None` where the connection itself is proof.
    pub token: Option<Arc<NodeToken>>,
    /// The grant that it has shown; `None` where it may do everything.
    pub grant: Option<Arc<GrantInForce>>,
    /// No more sessions can be taken: the greeting is answered by that.
    pub busy: bool,
    /// How data connections are accepted.
    pub data: DataPort,
    /// The address that the control connection reached. In the process of the command: the one that it
    /// was told to use, or none.
    pub local_address: String,
    /// The address that it came from.
    pub peer_address: String,
    /// The knobs of its transfers.
    pub tuning: Arc<Tuning>,
    /// When the agent began: the zero of its clock.
    pub began: Instant,
}

impl Environment {
    /// What the agent's clock says, in microseconds.
    fn clock_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// How data connections are accepted.
pub enum DataPort {
    /// On a port opened for the session: on this address alone, if there is one, and what is
    /// dialled is dialled from there.
    Own(Option<IpAddr>),
    /// On a node's one port.
    Shared(Arc<NodeSessions>),
}

/// An agent at work.
pub struct Agent {
    environment: Environment,
    writer: MuxWriter,
    record: Arc<SessionTally>,
    /// Of the requests that wait.
    waiting_bytes: AtomicUsize,
    state: Mutex<AgentState>,
    /// The connection has ended: nothing is to be started any more. Set while the state is locked.
    left: Latch,
    /// Nothing more comes over the connection: nobody waits for the answer that is being made.
    unread: Latch,
    /// Why this side ends the session. The request under way is the last.
    ending: OnceLock<Failure>,
}

#[derive(Default)]
struct AgentState {
    running: Option<Running>,
    /// What bounds the transfer, if it is a measurement of the path to the node.
    measurement: Option<BoundedTest>,
    /// The way to the other end has been asked for.
    is_traced: bool,
    /// Data connections that came before the transfer began.
    waiting: Vec<Connection>,
    /// What the other end said before it, in the order in which it came.
    early: VecDeque<Vec<u8>>,
    early_bytes: usize,
    listener: Option<DataListener>,
    session: Option<[u8; 16]>,
    /// Where frames of tunnelled streams go.
    tunnels: HashMap<u16, Arc<UnixStream>>,
    /// What is to be sent of the next transfer's sources, and what it must be.
    chosen: Chosen,
    /// Dials under way.
    dials: usize,
    /// Connections that may be taken instead of dialling.
    prepared: Option<Arc<Prepared>>,
    /// Data connections, and the numbers that they have had.
    connections: Vec<Weak<Socket>>,
    numbers: HashSet<StreamId>,
    /// Where requests wait for their turn, for as long as the connection is read.
    requests: Option<mpsc::SyncSender<Vec<u8>>>,
    /// Why the connection is read no more, if it is more than its end: how the peer broke the protocol.
    broken: Option<Failure>,
}

impl AgentState {
    /// The other end may be quicker: what it says waits for the transfer that is being begun.
    fn keep_early(&mut self, payload: Vec<u8>) -> Result<(), ReadError> {
        self.early_bytes += payload.len();
        if self.early_bytes > limits::REQUEST_BYTES_WAITING || self.early.len() >= 2 * limits::OFFERED_ITEMS {
            let what = "the peer's other end said more than may wait for a transfer that has not begun";
            return Err(ProtocolError::violation(what).into());
        }
        self.early.push_back(payload);
        Ok(())
    }

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
        Arc::new(Self {
            environment,
            writer,
            record: Arc::default(),
            waiting_bytes: AtomicUsize::new(0),
            state: Mutex::default(),
            left: Latch::default(),
            unread: Latch::default(),
            ending: OnceLock::new(),
        })
    }

    /// See [`greet`].
    ///
    /// # Errors
    /// As [`greet`].
    pub fn greet(&self, input: &mut impl io::Read) -> Result<(), Failure> {
        greet(input, &self.writer, &self.environment).map(|_| ())
    }

    /// What it has done so far.
    pub fn work(&self) -> SessionWork {
        self.record.so_far()
    }

    /// The directory that its paths begin at and cannot leave, if there is one: device and inode.
    pub fn root(&self) -> Option<(u64, u64)> {
        self.environment.place.root()
    }

    /// The name of the store that its paths are in, if they are in no file system.
    pub fn store_name(&self) -> Option<&str> {
        if let Place::Stored(name, _) = &self.environment.place { Some(name) } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, AgentState> {
        lock(&self.state)
    }

    /// As [`Self::run`], over a connection that is kept alive meanwhile by its writer.
    pub fn keep_alive_and_run(
        self: &Arc<Self>,
        input: impl io::Read + Send + 'static,
        writer: &MuxWriter,
        tuning: &Tuning,
    ) {
        match writer.keep_alive(tuning) {
            Ok(()) => self.run(input),
            Err(error) => self.leave_for_lack(&error),
        }
    }

    /// Tells the peer that the host lacks something, and ends the session.
    fn leave_for_lack(&self, error: &io::Error) {
        self.reply(0, Err(system_failure(Side::Link, error)));
        self.leave();
    }

    /// Does what comes until the connection ends.
    pub fn run(self: &Arc<Self>, input: impl io::Read + Send + 'static) {
        let dials = if self.environment.own.is_some() { limits::OWN_DIALS } else { 0 };
        let (requests, work) = mpsc::sync_channel(limits::REQUESTS_WAITING + dials);
        self.lock().requests = Some(requests.clone());
        if let Some(grant) = &self.environment.grant
            && let Err(error) = grant.watch(self)
        {
            return self.leave_for_lack(&error);
        }
        let reader = Arc::clone(self);
        let read = move || {
            let read = contain(Side::Link, "reading the control connection", || {
                reader.writer.read_all(input, &mut |channel, payload| reader.take_frame(channel, payload, &requests))
            });
            let mut state = reader.lock();
            state.broken = match read {
                Ok(Err(ReadError::Protocol(error))) => Some(protocol_failure(Side::Link, &error)),
                Ok(Ok(()) | Err(ReadError::Connection(_))) => None,
                Err(why) => Some(why),
            };
            reader.unread.set();
            // Only now do the requests end.
            state.requests = None;
            drop(requests);
        };
        if let Err(error) = threads::start("reading the control connection", read) {
            return self.leave_for_lack(&error);
        }
        if let Some(why) = self.answer_all(&work) {
            self.reply(0, Err(why));
        }
        self.leave();
    }

    /// Carries out requests, one after the other, until no more come or the session is to end; and why it is, if the
    /// peer is to be told.
    fn answer_all(self: &Arc<Self>, work: &mpsc::Receiver<Vec<u8>>) -> Option<Failure> {
        loop {
            let Ok(payload) = work.recv() else { return self.lock().broken.take() };
            if let Some(why) = self.ending.get() {
                self.end_transfer(why);
                return Some(why.clone());
            }
            self.waiting_bytes.fetch_sub(payload.len(), Ordering::Relaxed);
            match Ask::decode(&payload) {
                Ok((_, Ok(Ask::Bye))) => return None,
                Ok((request, ask)) => {
                    let answer =
                        || self.answer(request, ask).into_iter().for_each(|answer| self.reply(request, answer));
                    if let Err(why) = contain(Side::Link, "a request", answer) {
                        self.reply(request, Err(why.clone()));
                        // What it has left half done is not built upon.
                        return Some(why);
                    }
                }
                Err(error) => return Some(protocol_failure(Side::Link, &error)),
            }
        }
    }

    /// Called by the thread that reads the connection: it must not wait for the connection.
    fn take_frame(
        &self,
        channel: Channel,
        payload: Vec<u8>,
        requests: &mpsc::SyncSender<Vec<u8>>,
    ) -> Result<(), ReadError> {
        match channel {
            Channel::CONTROL => {
                let too_many = || {
                    let (count, bytes) = (limits::REQUESTS_WAITING, limits::REQUEST_BYTES_WAITING);
                    let what = format!("the peer sent more requests than the {count}, of {bytes} bytes, that may wait");
                    ReadError::from(ProtocolError::violation(what))
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
                let running = {
                    let mut state = self.lock();
                    if state.running.is_none() {
                        return state.keep_early(payload);
                    }
                    state.running.clone()
                };
                running.iter().for_each(|running| running.handle_peer(&payload));
                Ok(())
            }
            Channel(number) => {
                let tunnel = self.lock().tunnels.get(&number).cloned();
                tunnel.iter().for_each(|tunnel| self.hand_on(tunnel, &payload));
                Ok(())
            }
        }
    }

    fn reply(&self, request: u64, answer: Result<Tell, Failure>) {
        if let Err(failure) = &answer {
            self.record.failed(failure);
        }
        let mut bytes = answer.unwrap_or_else(Tell::Failed).encode(request);
        if bytes.len() > limits::MESSAGE_BYTES {
            let what = format!("the answer has {} bytes, more than a message may have", bytes.len());
            let refusal = failure(ErrorCode::ResourceLimit, Side::Link, what).for_reason(Reason::AnswerTooLong);
            bytes = Tell::Failed(refusal).encode(request);
        }
        // A connection that is gone takes no answer.
        let _ = self.writer.send(Channel::CONTROL, &bytes);
    }

    /// Ends the session, and tells the client why: the request under way is answered first.
    fn end_session(self: &Arc<Self>, why: Failure) {
        // The answer is made no longer than it has to be.
        let why = self.ending.get_or_init(|| why);
        self.unread.set();
        self.end_transfer(why);
        // An empty request is none: it wakes who waits for the next. Where no more fit, one that waits does.
        let requests = self.lock().requests.clone();
        let _ = requests.map(|requests| requests.try_send(Vec::new()));
        if self.left.wait(LAST_ANSWER) {
            return;
        }
        // What is being done hangs, or the client reads nothing, which must not hold up this thread, too.
        let (agent, why) = (Arc::clone(self), why.clone());
        let told = Arc::new(Latch::default());
        let told_by = Arc::clone(&told);
        let tell = move || {
            agent.reply(0, Err(why));
            told_by.set();
        };
        if threads::start("the last answer", tell).is_ok() {
            told.wait(LAST_ANSWER);
        }
        self.leave();
    }

    /// Ends the transfer that runs, and gives both ends the time to hear why before their connections go.
    fn end_transfer(&self, why: &Failure) {
        let running = self.lock().running.clone();
        if let Some(running) = running {
            running.cancel(why.clone());
            if !running.wait_over(ENDS_IN) {
                running.cut_off();
            }
        }
    }

    /// Ends what runs, and the connection.
    pub fn leave(&self) {
        // Whatever becomes of the work, a connection that nobody reads any more is not kept alive.
        let _ = contain(Side::Link, "the end of a session", || self.end_work("the control connection has ended"));
        self.writer.close();
    }

    /// Ends what runs, and removes what is unfinished.
    fn end_work(&self, why: &str) {
        let (running, listener, tunnels, measurement) = {
            let mut state = self.lock();
            if let (DataPort::Shared(sessions), Some(session)) = (&self.environment.data, state.session.take()) {
                sessions.remove(&session);
            }
            state.waiting.clear();
            self.left.set();
            let tunnels = std::mem::take(&mut state.tunnels);
            (state.running.take(), state.listener.take(), tunnels, state.measurement.take())
        };
        drop(listener);
        for tunnel in tunnels.values() {
            let _ = tunnel.shutdown(Shutdown::Both);
        }
        if let Some(running) = running {
            running.cancel(failure(ErrorCode::ConnectionLost, Side::Link, why));
            running.join();
            self.record.carried(running.traffic());
        }
        // The client's next session may measure at once.
        measurement.into_iter().for_each(BoundedTest::join);
    }

    /// `None` when the answer comes later.
    fn answer(self: &Arc<Self>, request: u64, ask: Result<Ask, ProtocolError>) -> Option<Result<Tell, Failure>> {
        let place = &self.environment.place;
        let done = Tell::Done;
        let ask = match ask {
            Ok(ask) => ask,
            Err(error) => return Some(Err(protocol_failure(Side::Link, &error))),
        };
        self.record.asked(&ask);
        if let Some(grant) = &self.environment.grant
            && let Err(refused) = grant.check_ask(&ask)
        {
            return Some(Err(refused));
        }
        Some(match ask {
            Ask::Hello(_) => Err(failure(ErrorCode::ProtocolViolation, Side::Link, "the peer greeted twice")),
            Ask::Inspect(paths) => Ok(verbs::inspect(place, &paths)),
            Ask::Listen(listen) => self.listen(listen),
            Ask::Dial(dial) => return self.start_dialing(request, dial),
            Ask::Tunnel(tunnel) => return self.start_tunnel(request, tunnel),
            Ask::Begin(begin) => self.begin(request, begin).map(done),
            Ask::Cancel => {
                let running = self.lock().running.clone();
                if let Some(running) = running {
                    running.cancel(failure(ErrorCode::Interrupted, Side::Command, "the command was stopped"));
                }
                Ok(done(0))
            }
            Ask::List(list) => self.list(request, &list).map(done),
            Ask::Sum(sum) => self.sum(request, &sum).map(done),
            Ask::Read(read) => self.read(request, &read).map(done),
            Ask::MakeDirectory(make) => self
                .may_change("make a directory", &make.path)
                .and_then(|()| verbs::make_directory(place, &make))
                .map(|()| done(1)),
            Ask::Rename(rename) => {
                let replaces = || self.may_delete();
                self.may_change("rename", &rename.from)
                    .and_then(|()| verbs::rename(place, &rename, &replaces))
                    .map(|()| done(1))
            }
            Ask::Remove(remove) => {
                let removed = self.may_change("remove", &remove.path).and_then(|()| {
                    let send = &mut |page| self.page(request, Tell::Page(page));
                    verbs::remove(place, &remove, &|| self.may_delete(), send)
                });
                removed.map(done)
            }
            Ask::Select(paths) => self.select(paths).map(done),
            Ask::Expect(expected) => self.expect(expected).map(done),
            Ask::Filter(filter) => self.filter(filter).map(done),
            Ask::Refer(references) => Ok(done(self.refer(references))),
            Ask::Accounts(accounts) => {
                self.map_accounts(accounts);
                Ok(done(0))
            }
            Ask::Collect(collect) => {
                let collected = self
                    .may_change("collect leftovers", &collect.path)
                    .and_then(|()| verbs::collect(place, &collect, &mut |page| self.page(request, Tell::Page(page))));
                collected.map(done)
            }
            Ask::Clock => Ok(Tell::Clock(self.environment.clock_us())),
            Ask::Trace => return self.start_tracing(request),
            Ask::Evidence(about) => self.tell_evidence(request, &about),
            Ask::Retire(count) => Ok(done(self.lock().running.clone().map_or(0, |running| running.retire(count)))),
            Ask::Wake(count) => Ok(done(self.lock().running.clone().map_or(0, |running| running.wake(count)))),
            Ask::MayDelete(may) => Ok(done(self.lock().running.clone().map_or(0, |running| running.may_delete(may)))),
            Ask::Bye => return None,
        })
    }

    /// Sends a part of an answer, and waits while the connection is full.
    fn page(&self, request: u64, tell: Tell) -> Result<(), Failure> {
        if let Some(why) = self.ending.get() {
            return Err(why.clone());
        }
        let sent = self.writer.send(Channel::CONTROL, &tell.encode(request));
        sent.map_err(|error| io_failure(Side::Link, "answer", &error))
    }

    /// Whether a verb may change something here: a node may serve for reading only, and a store is changed by copies
    /// alone.
    fn may_change(&self, verb: &str, path: &[u8]) -> Result<(), Failure> {
        self.may_write()?;
        verbs::check_files(&self.environment.place, verb, path)
    }

    /// Asked before each entry goes.
    fn may_delete(&self) -> Result<(), Failure> {
        let Some(grant) = &self.environment.grant else { return Ok(()) };
        grant.check_right(Right::Delete)?;
        // A session that is being ended does not wait for the end of what it does.
        grant.check_in_force()?;
        grant.take(Ceiling::Deletions, 1)
    }

    fn may_write(&self) -> Result<(), Failure> {
        if self.environment.read_only {
            return Err(failure(ErrorCode::NodeReadOnly, Side::Destination, "the node serves for reading only"));
        }
        Ok(())
    }

    /// Connections that its command has made ahead: a dial that leads where one does takes it.
    pub fn prepare(&self, prepared: Arc<Prepared>) {
        self.lock().prepared = Some(prepared);
    }

    /// A data connection has proved to belong here.
    pub fn handle_connection(&self, connection: Connection) {
        open_window(&connection.socket);
        let (running, refused) = {
            let mut state = self.lock();
            if self.left.is_set() {
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
