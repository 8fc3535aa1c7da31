//! A node's port: takes connections, finds the door of each, and bounds what strangers cost. A connection has one
//! deadline from accept to having proved who it is, whatever it trickles ([`Deadlines`]), and there is a bound on how
//! many may be unproved at once ([`Unproved`]).

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use carrack_core::report::Side;
use carrack_sys::threads;

use super::door::{Arrival, Door, Stranger};
use crate::net::connect::tune;
use crate::net::deadlines::Deadlines;
use crate::net::opening::{self, ProtocolOpening};
use crate::net::socket::Socket;
use crate::net::unproved::{Slot, Unproved};
use crate::panics::contain;
use crate::stop::Stop;
use crate::sync::lock;

/// Connections that may wait for the spare thread.
const SPARE_WAITING: usize = 64;
/// How long the spare thread attends to one connection.
const SPARE_PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Port {
    doors: Vec<Door>,
    deadlines: Arc<Deadlines>,
    unproved: Arc<Unproved>,
    /// Guests' connections, to be ended with the node; none once it has ended.
    guests: Mutex<Option<Vec<Weak<Socket>>>>,
    authenticate_timeout: Duration,
    /// Where those go for whom there is no thread: one in reserve tells them so.
    spare: SyncSender<WaitingClient>,
}

/// A client for whom the system gives no thread.
struct WaitingClient {
    socket: Arc<Socket>,
    peer: SocketAddr,
    slot: Slot,
}

impl Port {
    /// With these doors, the first that fits a client before all others. A client that has not proved who
    /// it is in time is cut off.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(doors: Vec<Door>, authenticate_timeout: Duration) -> io::Result<Arc<Self>> {
        let guests = Mutex::new(Some(Vec::new()));
        let (spare, waiting) = mpsc::sync_channel(SPARE_WAITING);
        let (deadlines, unproved) = (Deadlines::start()?, Arc::default());
        let port = Arc::new(Self { doors, deadlines, unproved, guests, authenticate_timeout, spare });
        let served = Arc::downgrade(&port);
        threads::start("clients that get no thread", move || Self::serve_spare(&served, &waiting))?;
        Ok(port)
    }

    /// Takes connections until told to stop.
    pub fn serve(self: &Arc<Self>, listener: &TcpListener, stop: &Stop) {
        while stop.requested().is_none() {
            // Waits shorter than a person notices, so that a signal ends it.
            let _ = carrack_sys::socket::wait(listener, true, false, Some(Duration::from_millis(200)));
            self.accept_all(listener);
        }
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let (socket, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Out of descriptors, or gone already: whoever is served now gives some back.
                Err(_) => return std::thread::park_timeout(Duration::from_millis(20)),
            };
            self.take(socket, peer);
        }
    }

    fn take(self: &Arc<Self>, socket: TcpStream, peer: SocketAddr) {
        if socket.set_nonblocking(false).is_err() {
            return;
        }
        let socket = Arc::new(Socket::Tcp(socket));
        let slot = self.unproved.admit(peer.ip(), &socket);
        // Handed over once the thread is there: without one, the client is still at hand.
        let (give, given) = mpsc::sync_channel::<WaitingClient>(1);
        let port = Arc::clone(self);
        let attend = move || {
            let Ok(client) = given.recv() else { return };
            port.attend(client, None);
        };
        let client = WaitingClient { socket, peer, slot };
        let place = threads::start("a client", attend).map(|_| &give);
        // Where too many wait, the connection is closed, and the node goes on.
        let _ = place.unwrap_or(&self.spare).try_send(client);
    }

    /// Attends to clients one after the other, for a short time each: says that there is no thread for them.
    fn serve_spare(port: &Weak<Self>, waiting: &Receiver<WaitingClient>) {
        for client in waiting {
            let Some(port) = port.upgrade() else { return };
            port.attend(client, Some(SPARE_PATIENCE));
        }
    }

    /// `short`: of time and of threads.
    fn attend(&self, client: WaitingClient, short: Option<Duration>) {
        let WaitingClient { socket, peer, slot } = client;
        tune(&socket);
        let deadline = self.deadlines.watch(&socket, short.unwrap_or(self.authenticate_timeout));
        let stranger = Stranger { _deadline: deadline, _slot: slot };
        // Whoever does not prove to belong here learns nothing but that the connection ends. A panic is told by its own
        // message, and those who come next are attended to all the same.
        let _ = contain(Side::Link, "a client", || self.meet(socket, peer, stranger, short.is_some()));
    }

    fn meet(&self, socket: Arc<Socket>, peer: SocketAddr, stranger: Stranger, is_spare: bool) -> io::Result<()> {
        let openings: Vec<&ProtocolOpening> = self.doors.iter().map(|door| &door.opening).collect();
        let (index, opened) = opening::open(&socket, &openings)?;
        let door = &self.doors[index];
        if is_spare && door.blocks {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        if door.serves_guests {
            self.remember(&socket)?;
        }
        (door.serve)(Arrival { socket, opened, opening: door.opening.clone(), peer, stranger, is_spare })
    }

    fn remember(&self, socket: &Arc<Socket>) -> io::Result<()> {
        let mut guests = lock(&self.guests);
        let guests = guests.as_mut().ok_or(io::ErrorKind::ConnectionAborted)?;
        guests.retain(|socket| socket.strong_count() > 0);
        guests.push(Arc::downgrade(socket));
        Ok(())
    }

    /// Ends the guests' connections, and takes no more. Sessions end by themselves.
    pub fn close(&self) {
        let guests = lock(&self.guests).take();
        guests.iter().flatten().filter_map(Weak::upgrade).for_each(|socket| socket.abort());
    }
}
