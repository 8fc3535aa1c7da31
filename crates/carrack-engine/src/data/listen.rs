//! Accepting data connections for an agent: a socket of its own, each connection under one deadline until it has proved
//! which session it belongs to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carrack_core::wire::control::SessionKey;
use carrack_sys::threads;

use super::hello;
use super::stream::Connection;
use crate::net::bind::bind;
use crate::net::connect::tune;
use crate::net::deadlines::Deadlines;
use crate::net::socket::Socket;
use crate::net::tls::Key;
use crate::net::unproved::Unproved;

/// An agent's own data port, open while its session lasts.
pub struct DataListener {
    /// The port that it listens on.
    pub port: u16,
    /// Pin of the key that it shows.
    pub pin: [u8; 32],
    stop: Arc<AtomicBool>,
    address: SocketAddr,
}

impl DataListener {
    /// Opens a port for one session, on the address `local` alone if one is given; authenticated connections are handed
    /// to `arrived`. One that has not proved to belong here in time is cut off.
    ///
    /// # Errors
    /// When no port can be had, no key made, or the system gives no thread.
    pub fn open(
        local: Option<IpAddr>,
        ports: Option<(u16, u16)>,
        session: SessionKey,
        authenticate_timeout: Duration,
        arrived: impl Fn(Connection) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = bind(local, ports)?;
        // So that whoever examines the path can see what was altered on the way; without it that stays unknown.
        let _ = carrack_sys::socket::keep_syn(&listener);
        let address = listener.local_addr()?;
        let key = Key::generate()?;
        let pin = key.pin;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let deadlines = Deadlines::start()?;
        threads::start("accepting data connections", move || {
            accept_loop(&listener, &key, &session, (authenticate_timeout, &deadlines), &stopped, &Arc::new(arrived))
        })?;
        Ok(Self { port: address.port(), pin, stop, address })
    }
}

impl Drop for DataListener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The accepting thread waits in accept: a connection wakes it, and it sees the flag and closes the port.
        let listens = match self.address.ip() {
            IpAddr::V6(every) if every.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V4(every) if every.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            one => one,
        };
        let listens = SocketAddr::new(listens, self.port);
        let _ = std::net::TcpStream::connect_timeout(&listens, Duration::from_secs(1));
    }
}

fn accept_loop<F: Fn(Connection) + Send + Sync + 'static>(
    listener: &TcpListener,
    key: &Key,
    session: &SessionKey,
    (authenticate_timeout, deadlines): (Duration, &Arc<Deadlines>),
    stopped: &AtomicBool,
    arrived: &Arc<F>,
) {
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
        let slot = unproved.admit(peer.ip(), &socket);
        tune(&socket);
        let (key, session, arrived, deadlines) =
            (key.clone(), session.clone(), Arc::clone(arrived), Arc::clone(deadlines));
        // Where no more threads are to be had the connection is closed, and the others go on.
        let _ = threads::start("greeting a data connection", move || {
            let wanted = session.id;
            let find = move |id: &[u8; 16]| (*id == wanted).then(|| session.clone());
            let greeted =
                deadlines.guard(&socket, authenticate_timeout, || hello::accept(Arc::clone(&socket), &key, &find));
            drop(slot);
            // Whoever does not prove to belong here learns nothing more than that the connection closes.
            if let Ok((connection, _)) = greeted {
                arrived(connection);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::request::Encrypt;
    use std::net::TcpStream;
    use std::time::Instant;

    /// Whichever address it listens on, its accepting thread is woken and closes the port.
    #[test]
    fn listener_closes_its_port_when_dropped() {
        for local in [None, Some(IpAddr::from([127, 0, 0, 2]))] {
            let session = SessionKey { id: [1; 16], secret: [2; 32], encrypt: Encrypt::Tls };
            let listener = DataListener::open(local, None, session, Duration::from_secs(10), |_| {}).unwrap();
            let listens = SocketAddr::new(local.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), listener.port);
            drop(TcpStream::connect(listens).unwrap());
            drop(listener);
            let deadline = Instant::now() + Duration::from_secs(60);
            while TcpStream::connect(listens).is_ok() {
                assert!(Instant::now() < deadline, "{listens} is still open");
                std::thread::yield_now();
            }
        }
    }
}
