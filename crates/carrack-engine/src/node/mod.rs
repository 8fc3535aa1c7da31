//! A node: one directory of this host, or a store, served on one TCP port to whoever shows its token.
//!
//! Control connections, data connections and those of other [`Door`]s come to the same port (`port`) and are told apart
//! by ALPN (or, in the clear, by their first bytes). After a client has proved who it is, a control connection is an
//! agent like any other, whose paths lead below the root and nowhere else.

mod door;
mod port;
mod secrets;
mod told;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Instant;

use carrack_core::grant::GrantKey;
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::tuning::Tuning;
use carrack_core::words;
use carrack_sys::dir::{Dir, Stat};
use carrack_sys::threads;

use self::door::Arrival;
pub use self::door::{Door, FirstSaid, Guest, HandedOver, Visitor};
use self::port::Port;
use self::secrets::{load_key, load_token};
pub use self::told::{NodeLog, SessionEnd, SessionWork};
pub use crate::agent::RevokedGrants;
use crate::agent::{self, Agent, DataPort, Environment, NodeToken};
use crate::context::check_tuning;
use crate::data::hello::{self, Wire};
use crate::data::measurements::PathTests;
use crate::data::sessions::NodeSessions;
use crate::error::{failure, io_failure, system_failure};
use crate::net::bind::bind_address;
use crate::net::dial_rule::DialRule;
pub use crate::net::dial_rule::Network;
use crate::net::mux::MuxWriter;
use crate::net::opening::{OpenedConnection, ProtocolOpening};
use crate::net::socket::Socket;
use crate::net::tls::{ALPN_CONTROL, Key};
use crate::net::tls_duplex::DuplexThread;
use crate::stop::{Stop, StopReason};
use crate::storage::place::Place;
use crate::storage::properties::Writes;
use crate::storage::store::Store;
use crate::sync::lock;

/// What a node serves, and to whom.
#[derive(Debug)]
pub struct NodeConfig {
    /// What its paths begin at, and cannot leave.
    pub root: NodeRoot,
    /// Where it listens; port 0 for any that is free.
    pub listen: SocketAddr,
    /// A socket that listens already, in place of one at `listen`: whoever started the program has opened it.
    pub listener: Option<TcpListener>,
    /// Who may come.
    pub access: Access,
    /// Nothing may be changed.
    pub read_only: bool,
    /// Owners, groups and special bits of sources are given to what is written, where a client asks for that.
    pub allows_ownership: bool,
    /// Who may measure the path to it.
    pub measure: Measure,
    /// Networks that it may dial whatever else holds.
    pub dial_to: Vec<Network>,
    /// Where its key is kept; made if it is not there.
    pub key_file: PathBuf,
    /// Ends it, as [`NodeHandle::stop`] does.
    pub stop: Stop,
    /// Grants of its token that are not taken any more.
    pub revoked: RevokedGrants,
    /// Opens grants of any directory of this host, whose paths begin at `/`, for whoever runs beside the node and has
    /// the key. A node that lets anybody in takes none.
    pub host_grants: Option<GrantKey>,
    /// Other protocols on its port.
    pub doors: Vec<Door>,
    /// Is told of every session.
    pub log: NodeLog,
    /// The knobs of its sessions.
    pub tuning: Tuning,
}

/// What a node serves.
#[derive(Clone, Debug)]
pub enum NodeRoot {
    /// A directory.
    Directory(PathBuf),
    /// A store beside the file systems of this host, which takes bytes in any order. Whoever comes shows the node's own
    /// token: grants are for paths of directories.
    Store {
        /// What messages call it.
        name: String,
        /// The store.
        store: Arc<dyn Store>,
    },
}

words! {
    /// Who may measure the path to a node, with bytes that are made up, or dropped, there.
    #[derive(Default)]
    pub enum Measure {
        #[default]
        0 Token "token" "whoever shows the token; nobody, if the node has none"
        1 Anyone "anyone" "whoever is let in"
        2 Nobody "nobody" "no client"
    }
}

/// Who may come to a node.
#[derive(Debug)]
pub enum Access {
    /// Whoever shows what this file holds.
    TokenFile(PathBuf),
    /// Anybody is let in.
    Anonymous,
    /// Whoever shows a token that the node makes and keeps in this file, if it is not there yet.
    Generated(PathBuf),
}

/// A node that serves. It ends when the handle is dropped.
#[derive(Debug)]
pub struct NodeHandle {
    address: SocketAddr,
    fingerprint: [u8; 32],
    token_file: Option<PathBuf>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl NodeHandle {
    /// The address that the node listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// SHA-256 of its public key: what clients pin.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// Where its token is; `None` where anybody may come.
    pub fn token_file(&self) -> Option<&Path> {
        self.token_file.as_deref()
    }

    /// Has it take no more connections, and end those that it has. Returns at once.
    pub fn stop(&self) {
        self.stop.request(StopReason::Cancel);
    }

    /// Whether it has stopped by itself, or was stopped.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the node has stopped: its port is closed, and no session writes any more.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been told already.
            let _ = thread.join();
        }
    }
}

impl Drop for NodeHandle {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What is served, opened.
enum ServedRoot {
    Directory { path: PathBuf, open: Mutex<Arc<Dir>> },
    Store(String, Arc<dyn Store>),
}

impl ServedRoot {
    fn open(root: NodeRoot) -> Result<Self, Failure> {
        match root {
            NodeRoot::Directory(path) => {
                let shown = carrack_core::path::display_bytes(path.as_os_str().as_encoded_bytes());
                let open = Dir::open_ambient(&path)
                    .map_err(|error| io_failure(Side::Command, format!("root {shown}"), &error))?;
                // As long as it is sure what a relative one means.
                let path = std::path::absolute(&path).unwrap_or(path);
                Ok(Self::Directory { path, open: Mutex::new(Arc::new(open)) })
            }
            // How many streams carry a copy is decided where nobody knows the store.
            NodeRoot::Store { store, .. } if store.properties().writes == Writes::InOrder => {
                let message = "a store that takes each file from its beginning to its end cannot be served by a node";
                Err(failure(ErrorCode::Unsupported, Side::Command, message))
            }
            NodeRoot::Store { name, store } => Ok(Self::Store(name, store)),
        }
    }

    /// For a new session.
    fn place(&self) -> Place {
        match self {
            Self::Directory { path, open } => Place::Beneath(directory_now(path, open)),
            Self::Store(name, store) => Place::Stored(name.clone(), Arc::clone(store)),
        }
    }
}

/// The directory that is served: another one that stands at its path meanwhile, because it was made anew or something
/// was mounted there, takes its place. Sessions under way keep theirs.
fn directory_now(path: &Path, open: &Mutex<Arc<Dir>>) -> Arc<Dir> {
    let mut open = lock(open);
    let identity = |stat: Stat| (stat.device, stat.inode);
    let there = Dir::open_ambient(path).and_then(|there| Ok((identity(there.stat_self()?), there)));
    if let Ok((identity_there, there)) = there
        && open.stat_self().map(identity).ok() != Some(identity_there)
    {
        *open = Arc::new(there);
    }
    Arc::clone(&open)
}

/// A node's state. Its doors share it.
pub struct Node {
    root: ServedRoot,
    read_only: bool,
    allows_ownership: bool,
    token: Option<Arc<NodeToken>>,
    sessions: Arc<NodeSessions>,
    controls: AtomicUsize,
    tuning: Arc<Tuning>,
    log: NodeLog,
    /// The agents at work, to be ended with the node; none once it has ended.
    agents: Mutex<Option<Vec<Weak<Agent>>>>,
}

impl Node {
    /// Listens, and serves in threads of its own.
    ///
    /// # Errors
    /// When the root, the key, the token or the port cannot be had, a door's clients could not be told from others, or
    /// a knob is out of its bounds.
    pub fn start(config: NodeConfig) -> Result<NodeHandle, Failure> {
        let lacks = |error: &io::Error| system_failure(Side::Command, error);
        let fail = |what: String, error: &io::Error| io_failure(Side::Command, what, error);
        let shown = |path: &Path| carrack_core::path::display_bytes(path.as_os_str().as_encoded_bytes()).to_string();
        check_tuning(&config.tuning)?;
        let root = ServedRoot::open(config.root)?;
        let key =
            load_key(&config.key_file).map_err(|error| fail(format!("key {}", shown(&config.key_file)), &error))?;
        let (token, token_file) = load_token(config.access)?;
        let listener = match config.listener {
            Some(listener) => listener.set_nonblocking(true).map(|()| listener),
            None => listen(config.listen),
        };
        let listener = listener.map_err(|error| {
            let failure = fail(format!("listen on {}", config.listen), &error);
            if error.kind() == io::ErrorKind::AddrInUse { failure.for_reason(Reason::PortInUse) } else { failure }
        })?;
        let address = listener.local_addr().map_err(|error| fail("listen".into(), &error))?;
        let only_who_asks = config.read_only || token.is_none();
        let mut sessions = NodeSessions::new(address.port(), key.pin);
        let may_measure = match config.measure {
            Measure::Token => token.is_some(),
            Measure::Anyone => true,
            Measure::Nobody => false,
        };
        sessions.measurements = Arc::new(PathTests::new(may_measure));
        sessions.dials = DialRule { listens: address, only_who_asks, told: config.dial_to };
        let token = token.map(|token| NodeToken::new(&token, config.revoked));
        let token = match (token, config.host_grants) {
            (Some(token), Some(key)) => {
                let top = Dir::open_ambient(Path::new("/")).map_err(|error| fail("open /".into(), &error))?;
                Some(token.with_host(key, Arc::new(top)))
            }
            (token, _) => token,
        };
        let node = Arc::new(Self {
            root,
            read_only: config.read_only,
            allows_ownership: config.allows_ownership,
            token: token.map(Arc::new),
            sessions: Arc::new(sessions),
            controls: AtomicUsize::new(0),
            tuning: Arc::new(config.tuning),
            log: config.log,
            agents: Mutex::new(Some(Vec::new())),
        });
        let mut doors = node.own_doors(&key).map_err(|error| fail("doors".into(), &error))?;
        doors.extend(config.doors);
        if let Some(why) = ProtocolOpening::confusion(&doors.iter().map(|door| &door.opening).collect::<Vec<_>>()) {
            return Err(failure(ErrorCode::Usage, Side::Command, format!("a door's clients could not be told: {why}")));
        }
        let stop = config.stop.child();
        let stopped = stop.clone();
        let port = Port::new(doors, config.tuning.authenticate_timeout).map_err(|error| lacks(&error))?;
        let serve = move || {
            port.serve(&listener, &stopped);
            drop(listener);
            node.end();
            port.close();
        };
        let thread = Some(threads::start("a node", serve).map_err(|error| lacks(&error))?);
        Ok(NodeHandle { address, fingerprint: key.pin, token_file, stop, thread })
    }

    /// The doors of control and data connections.
    fn own_doors(self: &Arc<Self>, key: &Key) -> io::Result<Vec<Door>> {
        let node = Arc::clone(self);
        let control = Door::own(ProtocolOpening::with_key(key, &[ALPN_CONTROL])?, move |arrival| node.control(arrival));
        let data = hello::openings(key)?.map(|opening| {
            let node = Arc::clone(self);
            Door::own(opening, move |arrival| node.data(arrival))
        });
        Ok(std::iter::once(control).chain(data).collect())
    }

    fn data(&self, arrival: Arrival) -> io::Result<()> {
        let wire = Wire::accepted(arrival.socket, &arrival.opening, arrival.opened)?;
        let (connection, id) = hello::answer(wire, &|id| self.sessions.key(id))?;
        drop(arrival.stranger);
        if let Some(arrived) = self.sessions.taker(&id) {
            arrived(connection);
        }
        Ok(())
    }

    fn control(self: &Arc<Self>, arrival: Arrival) -> io::Result<()> {
        let (OpenedConnection::Records(tls), Socket::Tcp(socket)) = (arrival.opened, arrival.socket.try_clone()?)
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let began = Instant::now();
        let mut environment = self.environment(&socket, began);
        let end = |refused: Option<Failure>, work| SessionEnd {
            peer: arrival.peer,
            has_shown_token: self.token.is_some() && refused.is_none(),
            refused,
            work,
            lasted: began.elapsed(),
        };
        let thread = if arrival.is_spare { Err(no_more_threads()) } else { DuplexThread::start() };
        let thread = match thread {
            Ok(thread) => thread,
            Err(error) => {
                let (wire, why) = (Wire::new(arrival.socket, Some(*tls)), system_failure(Side::Link, &error));
                let told = agent::refuse(wire, &environment, why)?;
                self.log.tell(&end(Some(told), SessionWork::default()));
                return Ok(());
            }
        };
        let (mut reader, out) = thread.split(socket, tls)?;
        let (leave, gone) = (out.end(), out.end());
        let writer = MuxWriter::new(Box::new(out), Box::new(move || leave.end()));
        let greeted = agent::greet(&mut reader, &writer, &environment).map_err(|refusal| {
            let why = io::Error::new(io::ErrorKind::PermissionDenied, refusal.message());
            self.log.tell(&end(Some(refusal), SessionWork::default()));
            // Until it has heard why, or has had the time to, it counts among those that have proved nothing.
            writer.close();
            gone.wait_gone();
            why
        })?;
        environment.restrict(greeted);
        // Who has not shown a token is no session, and takes nobody's place.
        let session = CountedSession::begin(self);
        drop(arrival.stranger);
        let agent = Agent::new(writer.clone(), environment);
        if self.remember(&agent) {
            agent.keep_alive_and_run(reader, &writer, &self.tuning);
        } else {
            agent.leave();
        }
        drop(session);
        self.log.tell(&end(None, agent.work()));
        Ok(())
    }

    /// What a client of this connection may do, before it has shown anything.
    fn environment(&self, socket: &TcpStream, began: Instant) -> Environment {
        let (local_address, peer_address) = agent::addresses(socket);
        Environment {
            place: self.root.place(),
            read_only: self.read_only,
            gives_ownership: self.allows_ownership,
            own: None,
            sources: None,
            token: self.token.clone(),
            grant: None,
            busy: self.controls.load(Ordering::Relaxed) >= limits::SESSIONS,
            data: DataPort::Shared(Arc::clone(&self.sessions)),
            local_address,
            peer_address,
            tuning: Arc::clone(&self.tuning),
            began,
        }
    }

    /// Whether the node still serves.
    fn remember(&self, agent: &Arc<Agent>) -> bool {
        let mut agents = lock(&self.agents);
        let Some(agents) = agents.as_mut() else { return false };
        agents.retain(|agent| agent.strong_count() > 0);
        agents.push(Arc::downgrade(agent));
        true
    }

    /// Ends all sessions. What is unfinished goes: a part file that nobody will finish must not stay.
    fn end(&self) {
        let agents = lock(&self.agents).take();
        agents.iter().flatten().filter_map(Weak::upgrade).for_each(|agent| agent.leave());
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = bind_address(address).or_else(|error| without_ipv6(address).map_or(Err(error), bind_address))?;
    listener.set_nonblocking(true)?;
    // See `DataListener::open`.
    let _ = carrack_sys::socket::keep_syn(&listener);
    Ok(listener)
}

/// A control session, counted while it exists.
struct CountedSession {
    node: Arc<Node>,
}

impl CountedSession {
    fn begin(node: &Arc<Node>) -> Self {
        node.controls.fetch_add(1, Ordering::Relaxed);
        Self { node: Arc::clone(node) }
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.node.controls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why the spare thread does not serve a session.
fn no_more_threads() -> io::Error {
    threads::NoThread::for_what("a client")
}

/// "Everywhere" on a host that has no IPv6.
fn without_ipv6(listen: SocketAddr) -> Option<SocketAddr> {
    (listen.ip() == Ipv6Addr::UNSPECIFIED).then(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, listen.port())))
}
