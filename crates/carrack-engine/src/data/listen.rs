//! Accepting data connections for an agent: a socket of its own, each connection under one deadline until it has proved which
//! session it belongs to.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use carrack_core::tuning;
use carrack_core::wire::control::SessionKey;
use socket2::{Domain, Socket as RawSocket, Type};

use super::hello;
use crate::data::stream::Connection;
use crate::net::socket::Socket;
use crate::net::tls::Key;
use crate::net::unproved::Unproved;

/// Binds the first free port of a range (or any), on IPv6 and IPv4 together where the host has both.
///
/// # Errors
/// That of the last port tried.
pub fn bind(ports: Option<(u16, u16)>) -> io::Result<TcpListener> {
    let (low, high) = ports.unwrap_or((0, 0));
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for port in low..=high {
        match bind_port(port) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_port(port: u16) -> io::Result<TcpListener> {
    bind_address(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
        .or_else(|_| bind_address(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))))
}

/// Binds one address; an unspecified IPv6 one takes IPv4 too.
///
/// # Errors
/// Those of the system calls.
pub fn bind_address(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // As many as may come at once after a pause of ours; the kernel caps it at its own maximum.
    socket.listen(4096)?;
    Ok(socket.into())
}

/// Cuts off connections that take too long to say who they are: one thread, one deadline for each from accept on, whatever
/// the peer trickles.
pub struct Deadlines {
    pending: Mutex<HashMap<u64, (Instant, Arc<Socket>)>>,
    next: AtomicUsize,
    stopped: AtomicBool,
}

impl Deadlines {
    /// Starts watching.
    pub fn start() -> Arc<Self> {
        let watch = Arc::new(Self {
            pending: Mutex::new(HashMap::new()),
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let watched = Arc::downgrade(&watch);
        std::thread::spawn(move || {
            while let Some(watch) = watched.upgrade().filter(|watch| !watch.stopped.load(Ordering::Relaxed)) {
                let now = Instant::now();
                for (deadline, socket) in watch.lock().values() {
                    if now >= *deadline {
                        socket.abort();
                    }
                }
                drop(watch);
                std::thread::park_timeout(Duration::from_millis(250));
            }
        });
        watch
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Instant, Arc<Socket>)>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a socket that is cut off at the deadline.
    pub fn guard<T>(&self, socket: &Arc<Socket>, limit: Duration, work: impl FnOnce() -> T) -> T {
        let ticket = Ticket { deadlines: self, number: self.next.fetch_add(1, Ordering::Relaxed) as u64 };
        self.lock().insert(ticket.number, (Instant::now() + limit, Arc::clone(socket)));
        work()
    }
}

/// A socket's place among those that are watched; given back by a panic, too, or the socket would stay open.
struct Ticket<'a> {
    deadlines: &'a Deadlines,
    number: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.deadlines.lock().remove(&self.number);
    }
}

/// An agent's own data port, open while its session lasts.
pub struct DataListener {
    /// Its port.
    pub port: u16,
    /// Pin of the key that it shows.
    pub pin: [u8; 32],
    stop: Arc<AtomicBool>,
    address: SocketAddr,
}

impl DataListener {
    /// Opens a port for one session; authenticated connections are handed to `arrived`.
    ///
    /// # Errors
    /// When no port can be had, or no key made.
    pub fn open(
        ports: Option<(u16, u16)>,
        session: SessionKey,
        arrived: impl Fn(Connection) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = bind(ports)?;
        let address = listener.local_addr()?;
        let key = Key::generate()?;
        let pin = key.pin;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::spawn(move || accept_loop(&listener, &key, &session, &stopped, &Arc::new(arrived)));
        Ok(Self { port: address.port(), pin, stop, address })
    }
}

impl Drop for DataListener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The accepting thread waits in accept: a connection wakes it, and it sees the flag and closes the port.
        let loopback = if self.address.is_ipv6() {
            SocketAddr::from((Ipv6Addr::LOCALHOST, self.port))
        } else {
            SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
        };
        let _ = std::net::TcpStream::connect_timeout(&loopback, Duration::from_secs(1));
    }
}

fn accept_loop<F: Fn(Connection) + Send + Sync + 'static>(
    listener: &TcpListener,
    key: &Key,
    session: &SessionKey,
    stopped: &AtomicBool,
    arrived: &Arc<F>,
) {
    let deadlines = Deadlines::start();
    let unproved = Arc::<Unproved>::default();
    loop {
        let accepted = listener.accept();
        if stopped.load(Ordering::Relaxed) {
            return;
        }
        let Ok((socket, peer)) = accepted else {
            // Out of descriptors, or a connection gone already: let others finish.
            std::thread::park_timeout(Duration::from_millis(20));
            continue;
        };
        let socket = Arc::new(Socket::Tcp(socket));
        let place = unproved.admit(peer.ip(), &socket);
        super::dial::tune(&socket);
        let (key, session, arrived, deadlines) =
            (key.clone(), session.clone(), Arc::clone(arrived), Arc::clone(&deadlines));
        // Where no more threads are to be had the connection is closed, and the others go on.
        let _ = std::thread::Builder::new().spawn(move || {
            let wanted = session.id;
            let find = move |id: &[u8; 16]| (*id == wanted).then(|| session.clone());
            let greeted = deadlines
                .guard(&socket, tuning::AUTHENTICATE_TIMEOUT, || hello::accept(Arc::clone(&socket), &key, &find));
            drop(place);
            // Whoever does not prove to belong here learns nothing more than that the connection closes.
            if let Ok((connection, _)) = greeted {
                arrived(connection);
            }
        });
    }
}
