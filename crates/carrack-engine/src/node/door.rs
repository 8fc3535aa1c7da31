//! Doors: other protocols on a node's port.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::server::Accepted;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::net::opening::{OpenedConnection, ProtocolOpening};
use crate::net::socket::Socket;
use crate::net::{deadlines, unproved};
use crate::sync::lock;

/// A protocol that a node's port serves beside the node's own. Clients say first which one they want, by TLS' ALPN or
/// by the first bytes; each door has its own TLS configuration, so its own certificate.
///
/// A client at a door is a stranger like any other client of the port: until [`Visitor::admit`] it counts among the
/// connections that have proved nothing, of which a network has a limited number, and it is cut off 10 s after it
/// connected, whatever it has said by then.
pub struct Door {
    pub(super) opening: ProtocolOpening,
    /// Not the node's own: its connections end with the node, and nothing else ends them.
    pub(super) serves_guests: bool,
    /// It keeps the thread for as long as the client stays.
    pub(super) blocks: bool,
    pub(super) serve: Box<dyn Fn(Arrival) -> io::Result<()> + Send + Sync>,
}

impl Door {
    /// A door for TLS clients that name one of `config.alpn_protocols`. rustls decides by `config` alone about
    /// versions and certificates. A client that names several protocols gets the door that comes first; the node's
    /// own come before all others. No two doors of a node may name the same protocol.
    ///
    /// `serve` gets each client once the TLS handshake is done, in a thread of its own, and the connection lasts until
    /// it returns. How many admitted clients there may be at once, and for how long, is its own to bound.
    pub fn tls(config: Arc<ServerConfig>, serve: impl Fn(&mut Visitor) + Send + Sync + 'static) -> Self {
        Self::new(ProtocolOpening::Tls(config), serve)
    }

    /// A door for clients that begin with these bytes in the clear. No other door's bytes may begin with them, nor they
    /// with another's or as TLS does. `serve` gets each, as with
    /// [`Door::tls`], once these bytes have been read.
    pub fn clear(first: &'static [u8], serve: impl Fn(&mut Visitor) + Send + Sync + 'static) -> Self {
        Self::new(ProtocolOpening::Clear(first), serve)
    }

    /// As [`Door::tls`], for a door that does not block: it gets the connection itself, before the handshake of TLS.
    /// `serve` returns at once; the connection lasts for as long as its [`Guest`] does.
    pub fn tls_unshaken(config: Arc<ServerConfig>, serve: impl Fn(HandedOver) + Send + Sync + 'static) -> Self {
        Self::handing(ProtocolOpening::Unshaken(config), serve)
    }

    /// As [`Door::clear`], for a door that does not block; see [`Door::tls_unshaken`].
    pub fn clear_handed_over(first: &'static [u8], serve: impl Fn(HandedOver) + Send + Sync + 'static) -> Self {
        Self::handing(ProtocolOpening::Clear(first), serve)
    }

    fn handing(opening: ProtocolOpening, serve: impl Fn(HandedOver) + Send + Sync + 'static) -> Self {
        let serve = move |arrival: Arrival| {
            serve(HandedOver::new(arrival)?);
            Ok(())
        };
        Self { opening, serves_guests: true, blocks: false, serve: Box::new(serve) }
    }

    /// One of the node's own. It looks at [`Arrival::is_spare`].
    pub(super) fn own(
        opening: ProtocolOpening,
        serve: impl Fn(Arrival) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { opening, serves_guests: false, blocks: false, serve: Box::new(serve) }
    }

    fn new(opening: ProtocolOpening, serve: impl Fn(&mut Visitor) + Send + Sync + 'static) -> Self {
        let serve = move |arrival: Arrival| {
            let mut visitor = Visitor::new(arrival)?;
            serve(&mut visitor);
            visitor.close();
            Ok(())
        };
        Self { opening, serves_guests: true, blocks: true, serve: Box::new(serve) }
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("opening", &self.opening).finish_non_exhaustive()
    }
}

/// A connection that is open for a door's protocol, from a client that has proved nothing.
pub(super) struct Arrival {
    pub socket: Arc<Socket>,
    pub opened: OpenedConnection,
    /// The opening that the client has chosen.
    pub opening: ProtocolOpening,
    pub peer: SocketAddr,
    pub stranger: Stranger,
    /// By the thread that all clients share for whom there is none: it is to be free again at once.
    pub is_spare: bool,
}

/// While it exists, its connection counts among those that have proved nothing, and is cut off at its deadline.
pub(super) struct Stranger {
    pub _deadline: deadlines::Ticket,
    pub _slot: unproved::Slot,
}

/// A client's connection, for a door that does not block.
pub struct HandedOver {
    /// The connection. It does not block.
    pub socket: TcpStream,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// What has been read of it.
    pub said: FirstSaid,
    /// To be kept for as long as the connection is served.
    pub guest: Guest,
}

/// What a client at a door has said so far.
pub enum FirstSaid {
    /// The hello of TLS. The handshake is the door's to go on with.
    Hello(Box<Accepted>),
    /// The bytes of its opening, in the clear.
    Clear(&'static [u8]),
}

/// A client's place at the port: while it exists, the connection ends with the node, and until [`Guest::admit`] it
/// counts among the strangers, and is cut off when their time is over.
pub struct Guest {
    stranger: Mutex<Option<Stranger>>,
    /// By this the node ends the connection.
    _socket: Arc<Socket>,
}

impl Guest {
    /// It has proved who it is: see [`Visitor::admit`].
    pub fn admit(&self) {
        *lock(&self.stranger) = None;
    }
}

impl HandedOver {
    fn new(arrival: Arrival) -> io::Result<Self> {
        let said = match (arrival.opened, &arrival.opening) {
            (OpenedConnection::Unshaken(accepted), _) => FirstSaid::Hello(accepted),
            (OpenedConnection::Clear, ProtocolOpening::Clear(first)) => FirstSaid::Clear(first),
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let Socket::Tcp(socket) = arrival.socket.try_clone()? else { return Err(io::ErrorKind::InvalidInput.into()) };
        // What the node's own connections wait with is of no use to whoever does not block.
        arrival.socket.set_timeout(None)?;
        socket.set_nonblocking(true)?;
        let guest = Guest { stranger: Mutex::new(Some(arrival.stranger)), _socket: arrival.socket };
        Ok(Self { socket, peer: arrival.peer, said, guest })
    }
}

impl fmt::Debug for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandedOver").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").finish_non_exhaustive()
    }
}

impl fmt::Debug for FirstSaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello(_) => f.write_str("Hello(..)"),
            Self::Clear(first) => f.debug_tuple("Clear").field(first).finish(),
        }
    }
}

/// A client at a door: what it says is read from it, and what it is told is written to it. Reads and writes block.
pub struct Visitor {
    stream: VisitorStream,
    peer: SocketAddr,
    stranger: Option<Stranger>,
}

enum VisitorStream {
    Clear(SharedSocket),
    Tls(Box<StreamOwned<ServerConnection, SharedSocket>>),
}

/// What the node ends when it stops.
struct SharedSocket(Arc<Socket>);

impl Visitor {
    fn new(arrival: Arrival) -> io::Result<Self> {
        let socket = SharedSocket(arrival.socket);
        let stream = match arrival.opened {
            OpenedConnection::Clear => VisitorStream::Clear(socket),
            OpenedConnection::Tls(connection) => VisitorStream::Tls(Box::new(StreamOwned::new(*connection, socket))),
            OpenedConnection::Unshaken(_) | OpenedConnection::Records(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        };
        Ok(Self { stream, peer: arrival.peer, stranger: Some(arrival.stranger) })
    }

    /// Where it comes from.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The ALPN protocol that was agreed on; none in the clear.
    pub fn alpn(&self) -> Option<&[u8]> {
        match &self.stream {
            VisitorStream::Clear(_) => None,
            VisitorStream::Tls(stream) => stream.conn.alpn_protocol(),
        }
    }

    /// It has proved who it is: it counts no more among the strangers, and may stay for as long as the door serves it.
    pub fn admit(&mut self) {
        self.stranger = None;
    }

    /// Bounds how long one read or write may wait; `None` for ever.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket().0.set_timeout(timeout)
    }

    fn socket(&self) -> &SharedSocket {
        match &self.stream {
            VisitorStream::Clear(socket) => socket,
            VisitorStream::Tls(stream) => &stream.sock,
        }
    }

    /// Tells the client that nothing more comes, so that it can tell this end from a connection that was cut.
    fn close(&mut self) {
        if let VisitorStream::Tls(stream) = &mut self.stream {
            stream.conn.send_close_notify();
        }
        // A client that has gone needs no goodbye.
        let _ = self.flush();
    }
}

impl fmt::Debug for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Read for Visitor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            VisitorStream::Clear(socket) => socket.read(buffer),
            VisitorStream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Visitor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            VisitorStream::Clear(socket) => socket.write(bytes),
            VisitorStream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.stream {
            VisitorStream::Clear(socket) => socket.flush(),
            VisitorStream::Tls(stream) => stream.flush(),
        }
    }
}

impl Read for SharedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for SharedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
