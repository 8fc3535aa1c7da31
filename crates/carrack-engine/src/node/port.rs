//! A node's port: takes connections, finds the door of each, and bounds what strangers cost. A connection has one
//! deadline from accept to having proved who it is, whatever it trickles ([`Deadlines`]), and there is a bound on how
//! many may be unproved at once ([`Unproved`]).

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::door::{Arrival, Door, Stranger};
use crate::net::connect::tune;
use crate::net::deadlines::Deadlines;
use crate::net::opening::{self, ProtocolOpening};
use crate::net::socket::Socket;
use crate::net::unproved::Unproved;
use crate::stop::Stop;
use crate::sync::lock;

pub(super) struct Port {
    doors: Vec<Door>,
    deadlines: Arc<Deadlines>,
    unproved: Arc<Unproved>,
    /// Guests' connections, to be ended with the node; none once it has ended.
    guests: Mutex<Option<Vec<Weak<Socket>>>>,
    authenticate_timeout: Duration,
}

impl Port {
    /// With these doors, the first that fits a client before all others. A client that has not proved who
    /// it is in time is cut off.
    pub fn new(doors: Vec<Door>, authenticate_timeout: Duration) -> Arc<Self> {
        let guests = Mutex::new(Some(Vec::new()));
        Arc::new(Self { doors, deadlines: Deadlines::start(), unproved: Arc::default(), guests, authenticate_timeout })
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
        let port = Arc::clone(self);
        // Where no more threads are to be had the connection is closed, and the node goes on.
        let _ = std::thread::Builder::new().spawn(move || {
            tune(&socket);
            let deadline = port.deadlines.watch(&socket, port.authenticate_timeout);
            // Whoever does not prove to belong here learns nothing but that the connection ends.
            let _ = port.meet(socket, peer, Stranger { _deadline: deadline, _slot: slot });
        });
    }

    fn meet(&self, socket: Arc<Socket>, peer: SocketAddr, stranger: Stranger) -> io::Result<()> {
        let openings: Vec<&ProtocolOpening> = self.doors.iter().map(|door| &door.opening).collect();
        let (index, opened) = opening::open(&socket, &openings)?;
        let door = &self.doors[index];
        if door.serves_guests {
            self.remember(&socket)?;
        }
        (door.serve)(Arrival { socket, opened, opening: door.opening.clone(), peer, stranger })
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
