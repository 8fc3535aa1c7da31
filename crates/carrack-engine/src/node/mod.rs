//! A node: one directory of this host, served on one TCP port to whoever shows its token.
//!
//! Control and data connections come to the same port and are told apart by ALPN (or, for data in the clear, by their first bytes).
//! Each has one deadline from accept to having proved who it is, whatever it trickles, and there is a bound on how many may
//! be unproved at once ([`crate::net::unproved`]). After that a control connection is an agent like any other, whose paths
//! lead below the root and nowhere else.

#![expect(clippy::disallowed_methods, reason = "the node's own files, by their paths")]

use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::{limits, tuning};
use carrack_sys::dir::{Dir, Stat};
use data_encoding::HEXLOWER;

use crate::agent::{self, Agent, DataPort, Environment};
use crate::control::token::read_token;
use crate::data::hello::{self, Accepted};
use crate::data::sessions::NodeSessions;
use crate::data::stream::Connection;
use crate::error::{failure, io_failure};
use crate::net::bind::bind_address;
use crate::net::connect::tune;
use crate::net::deadlines::Deadlines;
use crate::net::dial_rule::{DialRule, Network};
use crate::net::mux::MuxWriter;
use crate::net::socket::Socket;
use crate::net::tls::{Key, Tls};
use crate::net::tls_duplex;
use crate::net::unproved::{self, Unproved};
use crate::stop::Stop;
use crate::storage::place::Place;

/// What a node serves, and to whom.
pub struct ServeOptions {
    /// The directory.
    pub root: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who may come.
    pub access: Access,
    /// Nothing may be changed.
    pub read_only: bool,
    /// Networks that it may dial whatever else holds.
    pub dial_to: Vec<Network>,
    /// Where its key is kept; made if it is not there.
    pub key_file: PathBuf,
    /// Ends it.
    pub stop: Stop,
    /// Called once, when connections are accepted.
    pub ready: Box<dyn FnOnce(&NodeFacts) + Send>,
}

/// Who may come to a node.
pub enum Access {
    /// Whoever shows what this file holds.
    TokenFile(PathBuf),
    /// Anybody.
    Anonymous,
    /// Whoever shows what this file holds, which the node makes if it is not there.
    Generated(PathBuf),
}

/// What a node's users have to know.
pub struct NodeFacts {
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of its public key.
    pub fingerprint: [u8; 32],
    /// Where its token is.
    pub token_file: Option<PathBuf>,
    /// What it serves.
    pub root: PathBuf,
}

/// The directory that is served.
struct Root {
    path: PathBuf,
    open: Mutex<Arc<Dir>>,
}

impl Root {
    /// For a new session: another directory that stands at its path meanwhile, because it was made anew or something was mounted there,
    /// takes its place. Sessions under way keep theirs.
    fn now(&self) -> Arc<Dir> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = |stat: Stat| (stat.device, stat.inode);
        let there = Dir::open_ambient(&self.path).and_then(|there| Ok((identity(there.stat_self()?), there)));
        if let Ok((identity_there, there)) = there
            && open.stat_self().map(identity).ok() != Some(identity_there)
        {
            *open = Arc::new(there);
        }
        Arc::clone(&open)
    }
}

struct Node {
    root: Root,
    read_only: bool,
    token: Option<blake3::Hash>,
    key: Key,
    sessions: Arc<NodeSessions>,
    deadlines: Arc<Deadlines>,
    unproved: Arc<Unproved>,
    controls: AtomicUsize,
    /// The agents at work, to be ended with the node.
    agents: Mutex<Vec<Weak<Agent>>>,
}

/// Serves until it is told to stop.
///
/// # Errors
/// When the root, the key, the token or the port cannot be had.
pub fn serve(options: ServeOptions) -> Result<(), Failure> {
    let fail = |what: String, error: &io::Error| io_failure(Side::Command, what, error);
    let shown = |path: &Path| carrack_core::path::display_bytes(path.as_os_str().as_encoded_bytes()).to_string();
    let root =
        Dir::open_ambient(&options.root).map_err(|error| fail(format!("root {}", shown(&options.root)), &error))?;
    let key = load_key(&options.key_file).map_err(|error| fail(format!("key {}", shown(&options.key_file)), &error))?;
    let (token, token_file) = load_token(options.access)?;
    let listener = bind_address(options.listen)
        .or_else(|error| without_ipv6(options.listen).map_or(Err(error), bind_address))
        .map_err(|error| fail(format!("listen on {}", options.listen), &error))?;
    let address = listener.local_addr().map_err(|error| fail("listen".into(), &error))?;
    let only_who_asks = options.read_only || token.is_none();
    let mut sessions = NodeSessions::new(address.port(), key.pin);
    sessions.dials = DialRule { listens: address, only_who_asks, told: options.dial_to };
    listener.set_nonblocking(true).map_err(|error| fail("listen".into(), &error))?;
    // As long as it is sure what a relative one means.
    let root_path = std::path::absolute(&options.root).unwrap_or_else(|_| options.root.clone());
    (options.ready)(&NodeFacts { address, fingerprint: key.pin, token_file, root: options.root });
    let node = Arc::new(Node {
        root: Root { path: root_path, open: Mutex::new(Arc::new(root)) },
        read_only: options.read_only,
        token,
        sessions: Arc::new(sessions),
        key,
        deadlines: Deadlines::start(),
        unproved: Arc::default(),
        controls: AtomicUsize::new(0),
        agents: Mutex::default(),
    });
    while options.stop.requested().is_none() {
        // Waits shorter than a person notices, so that a signal ends it.
        let _ = carrack_sys::socket::wait(&listener, true, false, Some(Duration::from_millis(200)));
        node.accept_all(&listener);
    }
    // What is unfinished goes: a part file that nobody will finish must not stay.
    let agents = std::mem::take(&mut *node.agents.lock().unwrap_or_else(PoisonError::into_inner));
    agents.iter().filter_map(Weak::upgrade).for_each(|agent| agent.leave());
    Ok(())
}

impl Node {
    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let (socket, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Out of descriptors, or gone already: whoever is served now gives some back.
                Err(_) => return std::thread::park_timeout(Duration::from_millis(20)),
            };
            let Ok(control) = socket.try_clone() else {
                continue;
            };
            let socket = Arc::new(Socket::Tcp(socket));
            let place = self.unproved.admit(peer.ip(), &socket);
            let node = Arc::clone(self);
            // Where no more threads are to be had the connection is closed, and the node goes on.
            let _ = std::thread::Builder::new().spawn(move || {
                // Whoever does not prove to belong here learns nothing but that the connection ends.
                let _ = node.meet(control, socket, place);
            });
        }
    }

    fn meet(self: &Arc<Self>, control: TcpStream, socket: Arc<Socket>, place: unproved::Place) -> io::Result<()> {
        control.set_nonblocking(false)?;
        tune(&socket);
        let met = self.deadlines.guard(&socket, tuning::AUTHENTICATE_TIMEOUT, || {
            match hello::accept_any(Arc::clone(&socket), &self.key)? {
                Accepted::Data(wire) => {
                    let (connection, id) = hello::answer(wire, &|id| self.sessions.key(id))?;
                    Ok(Met::Data(Box::new(connection), id))
                }
                Accepted::Control(_, tls) => self.greet(control, tls),
            }
        });
        drop(place);
        match met? {
            Met::Data(connection, id) => {
                if let Some(arrived) = self.sessions.arrived(&id) {
                    arrived(*connection);
                }
            }
            Met::Control(reader, writer, environment, session) => {
                writer.keep_alive();
                let agent = Agent::new(writer, *environment);
                let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
                agents.retain(|agent| agent.strong_count() > 0);
                agents.push(Arc::downgrade(&agent));
                drop(agents);
                agent.run(reader);
                drop(session);
            }
        }
        Ok(())
    }

    fn greet(self: &Arc<Self>, socket: TcpStream, tls: Box<Tls>) -> io::Result<Met> {
        let (local_address, peer_address) = agent::addresses(&socket);
        let (mut reader, out) = tls_duplex::split(socket, tls)?;
        let end = out.end();
        let writer = MuxWriter::new(Box::new(out), Box::new(move || end.end()));
        let environment = Environment {
            place: Place::Beneath(self.root.now()),
            read_only: self.read_only,
            own: None,
            token: self.token,
            busy: self.controls.load(Ordering::Relaxed) >= limits::SESSIONS,
            data: DataPort::Shared(Arc::clone(&self.sessions)),
            local_address,
            peer_address,
            tuning: Arc::default(),
        };
        agent::greet(&mut reader, &writer, &environment)
            .map_err(|refusal| io::Error::new(io::ErrorKind::PermissionDenied, refusal.message))?;
        // Who has not shown a token is no session, and takes nobody's place.
        let session = Session::begin(self);
        Ok(Met::Control(reader, writer, Box::new(environment), session))
    }
}

enum Met {
    Data(Box<Connection>, [u8; 16]),
    Control(tls_duplex::DuplexReader, MuxWriter, Box<Environment>, Session),
}

/// A control session, counted while it exists.
struct Session {
    node: Arc<Node>,
}

impl Session {
    fn begin(node: &Arc<Node>) -> Self {
        node.controls.fetch_add(1, Ordering::Relaxed);
        Self { node: Arc::clone(node) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.node.controls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// "Everywhere" on a host that has no IPv6.
fn without_ipv6(listen: SocketAddr) -> Option<SocketAddr> {
    (listen.ip() == Ipv6Addr::UNSPECIFIED).then(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, listen.port())))
}

/// The node's key: read from its file, or made and kept there.
fn load_key(path: &Path) -> io::Result<Key> {
    match std::fs::read(path) {
        Ok(_) if std::fs::metadata(path)?.permissions().mode() & 0o077 != 0 => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can read it: make a new one, or chmod 600 it"))
        }
        Ok(pkcs8) => Key::from_pkcs8(&pkcs8),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = Key::generate()?;
            write_private(path, key.pkcs8())?;
            Ok(key)
        }
        Err(error) => Err(error),
    }
}

fn load_token(access: Access) -> Result<(Option<blake3::Hash>, Option<PathBuf>), Failure> {
    let path = match access {
        Access::Anonymous => return Ok((None, None)),
        Access::TokenFile(path) => path,
        Access::Generated(path) => {
            if !path.exists() {
                let mut random = [0; 32];
                let made = carrack_sys::host::random_bytes(&mut random)
                    .and_then(|()| write_private(&path, format!("{}\n", HEXLOWER.encode(&random)).as_bytes()));
                made.map_err(|error| io_failure(Side::Command, format!("token {}", path.display()), &error))?;
            }
            path
        }
    };
    let token = read_token(&path)?;
    if token.reveal().len() < 16 {
        let message = format!(
            "token file {}: a token of {} characters can be guessed; take 32 random ones",
            path.display(),
            token.reveal().len()
        );
        return Err(failure(ErrorCode::Usage, Side::Command, message));
    }
    Ok((Some(blake3::hash(token.reveal().as_bytes())), Some(path)))
}

/// Writes a new file that nobody else can read.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
