//! A TLS connection that is read and written at the same time: a node's control connection.
//!
//! TLS state cannot be split in two, and a thread that waits in `read` must not keep another from writing. So one
//! thread owns the socket, never waits in it, and the two halves meet it at buffers of bounded size.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::report::Side;
use carrack_sys::socket::{Waker, set_user_timeout, wait_two};
use carrack_sys::threads;

use super::tls::{ReadState, Tls};
use crate::panics::contain;
use crate::sync::{lock, wait};

/// Bytes that wait in either direction before the other side has to wait.
const BUFFER_BYTES: usize = 1 << 20;

struct DuplexShared {
    state: Mutex<DuplexState>,
    changed: Condvar,
    waker: Waker,
}

struct DuplexState {
    tls: Box<Tls>,
    outgoing: Vec<u8>,
    incoming: VecDeque<u8>,
    /// Nothing can be sent any more, and why. What the peer sent before may still be there to be read.
    unsendable: Option<io::ErrorKind>,
    /// The connection has ended, and why.
    ended: Option<io::ErrorKind>,
    /// Since when nobody writes any more.
    finished: Option<Instant>,
}

/// What is still to be sent when the connection is ended has this long to leave, and the peer as long to end it, too:
/// one that does neither is not waited for.
const LINGER: Duration = Duration::from_secs(2);

/// Ends the connection from outside.
#[derive(Clone)]
pub struct DuplexEnd(Arc<DuplexShared>);

/// The reading half.
pub struct DuplexReader(Arc<DuplexShared>);

/// The writing half.
pub struct DuplexWriter(Arc<DuplexShared>);

/// Splits a connection whose handshake is done.
///
/// # Errors
/// Those of the system calls.
pub fn split(socket: TcpStream, tls: Box<Tls>) -> io::Result<(DuplexReader, DuplexWriter)> {
    DuplexThread::start()?.split(socket, tls)
}

/// The thread of a connection that is about to be split. Whoever has it first still has the connection where there is
/// no such thread, and can say so to the peer.
pub struct DuplexThread(SyncSender<(Arc<DuplexShared>, TcpStream)>);

impl DuplexThread {
    /// Starts it. It ends with this value, or with the connection that it is given.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> io::Result<Self> {
        let (give, given) = mpsc::sync_channel::<(Arc<DuplexShared>, TcpStream)>(1);
        threads::start("a control connection", move || {
            let Ok((worker, socket)) = given.recv() else { return };
            let ended = contain(Side::Link, "a control connection", || worker.run(&socket));
            let ended = ended.unwrap_or_else(|why| Err(io::Error::other(why.message())));
            let mut state = worker.lock();
            state.ended = Some(ended.map_or_else(|error| error.kind(), |()| io::ErrorKind::UnexpectedEof));
            worker.changed.notify_all();
            let _ = socket.shutdown(Shutdown::Both);
        })?;
        Ok(Self(give))
    }

    /// See [`split`].
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn split(self, socket: TcpStream, tls: Box<Tls>) -> io::Result<(DuplexReader, DuplexWriter)> {
        let shared = shared(&socket, tls)?;
        self.0.send((Arc::clone(&shared), socket)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok((DuplexReader(Arc::clone(&shared)), DuplexWriter(shared)))
    }
}

fn shared(socket: &TcpStream, tls: Box<Tls>) -> io::Result<Arc<DuplexShared>> {
    socket.set_nonblocking(true)?;
    // A peer may take nothing for as long as whoever reads its output takes, and TCP's limit counts that as silence
    // even while the peer answers every question. Heartbeats (`mux`) end the connection when nothing is heard any more.
    // Where this cannot be set, patience ends earlier than it should.
    let _ = set_user_timeout(socket, Duration::ZERO);
    let (outgoing, incoming) = (Vec::new(), VecDeque::new());
    let state = DuplexState { tls, outgoing, incoming, unsendable: None, ended: None, finished: None };
    let shared = Arc::new(DuplexShared { state: Mutex::new(state), changed: Condvar::new(), waker: Waker::new()? });
    // What came together with the end of the handshake.
    take_records(&mut shared.lock())?;
    Ok(shared)
}

fn take_records(state: &mut DuplexState) -> io::Result<ReadState> {
    let incoming = &mut state.incoming;
    state.tls.open(&mut |piece| incoming.extend(piece))
}

impl DuplexShared {
    fn lock(&self) -> MutexGuard<'_, DuplexState> {
        lock(&self.state)
    }

    fn run(&self, socket: &TcpStream) -> io::Result<()> {
        loop {
            let (want_read, want_write) = {
                let state = self.lock();
                if let Some(since) = state.finished {
                    drop(state);
                    // Whoever has ended the connection does not ask how it went.
                    let _ = self.part(socket, since);
                    return Ok(());
                }
                (state.incoming.len() < BUFFER_BYTES, !state.outgoing.is_empty())
            };
            let ready = wait_two(socket.as_fd(), want_read, want_write, &self.waker, None)?;
            if ready.woken {
                self.waker.drain();
            }
            if ready.read && self.read_some(socket)? == ReadState::Closed {
                return self.lock().unsendable.map_or(Ok(()), |kind| Err(kind.into()));
            }
            if ready.write {
                self.write_some(socket);
            }
        }
    }

    /// Sends what is still to be sent, tells the peer that no more comes, and drops what it still sends until it ends
    /// the connection, too. Whoever closes a connection in which something unread stands resets it, and a reset may
    /// overtake what was sent last: the reason for the end.
    fn part(&self, socket: &TcpStream, since: Instant) -> io::Result<()> {
        let (mut dropped, mut is_told, mut has_peer_ended) = (0, false, false);
        loop {
            let is_sent = self.lock().outgoing.is_empty();
            if is_sent && !is_told {
                socket.shutdown(Shutdown::Write)?;
                is_told = true;
            }
            let left = LINGER.saturating_sub(since.elapsed());
            if left.is_zero() || dropped > limits::PARTING_BYTES || (is_sent && has_peer_ended) {
                return Ok(());
            }
            let ready = wait_two(socket.as_fd(), !has_peer_ended, !is_sent, &self.waker, Some(left))?;
            if ready.woken {
                self.waker.drain();
            }
            if ready.read {
                let read = drop_some(socket)?;
                has_peer_ended = read == Some(0);
                dropped += read.unwrap_or(0);
            }
            if ready.write {
                self.write_some(socket);
            }
        }
    }

    fn read_some(&self, mut socket: &TcpStream) -> io::Result<ReadState> {
        let mut state = self.lock();
        let read = match socket.read(state.tls.space()) {
            Ok(0) => return Ok(ReadState::Closed),
            Ok(read) => read,
            Err(error) if is_passing(&error) => return Ok(ReadState::More),
            Err(error) => return Err(error),
        };
        state.tls.filled(read);
        let opened = take_records(&mut state)?;
        self.changed.notify_all();
        Ok(opened)
    }

    /// A connection that takes nothing more may still have something to read: why its peer has ended it. Reading it
    /// comes to the same end.
    fn write_some(&self, mut socket: &TcpStream) {
        let mut state = self.lock();
        match socket.write(&state.outgoing) {
            Ok(written) => drop(state.outgoing.drain(..written)),
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                state.unsendable = Some(error.kind());
                state.outgoing.clear();
            }
        }
        self.changed.notify_all();
    }
}

/// Reads what nobody wants any more; `None` where nothing has come.
fn drop_some(mut socket: &TcpStream) -> io::Result<Option<usize>> {
    match socket.read(&mut [0; 16 << 10]) {
        Ok(read) => Ok(Some(read)),
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Read for DuplexReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        loop {
            if !state.incoming.is_empty() {
                let was_full = state.incoming.len() >= BUFFER_BYTES;
                let read = state.incoming.read(buffer)?;
                if was_full {
                    self.0.waker.wake();
                }
                return Ok(read);
            }
            match state.ended {
                Some(io::ErrorKind::UnexpectedEof) => return Ok(0),
                Some(kind) => return Err(kind.into()),
                // This side has ended it: what still comes is for nobody.
                None if state.finished.is_some() => return Ok(0),
                None => state = wait(&self.0.changed, state),
            }
        }
    }
}

impl Write for DuplexWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut guard = self.0.lock();
        loop {
            if guard.ended.or(guard.unsendable).is_some() || guard.finished.is_some() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if guard.outgoing.len() < BUFFER_BYTES {
                break;
            }
            guard = wait(&self.0.changed, guard);
        }
        let state = &mut *guard;
        state.tls.seal(bytes, &mut state.outgoing)?;
        self.0.waker.wake();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DuplexWriter {
    /// For whoever ends the connection.
    pub fn end(&self) -> DuplexEnd {
        DuplexEnd(Arc::clone(&self.0))
    }
}

impl DuplexEnd {
    /// Ends the connection once what was written has left, or could not: whoever reads or writes wakes up at once.
    pub fn end(&self) {
        let mut guard = self.0.lock();
        let state = &mut *guard;
        if state.finished.is_none() {
            // The peer can tell this end from a connection that was cut.
            let _ = state.tls.seal_close(&mut state.outgoing);
            state.finished = Some(Instant::now());
        }
        self.0.changed.notify_all();
        self.0.waker.wake();
    }

    /// Waits until the connection that was ended is gone: no longer than its last words and its peer may take.
    pub fn wait_gone(&self) {
        let mut state = self.0.lock();
        while state.ended.is_none() {
            state = wait(&self.0.changed, state);
        }
    }
}

impl Drop for DuplexWriter {
    fn drop(&mut self) {
        self.end().end();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use carrack_sys::socket::tcp_facts;

    use super::*;
    use crate::net::socket::Socket;
    use crate::net::tls::{ALPN_CONTROL, Key, server_config};

    /// More than all buffers on the way hold.
    const MANY: usize = 24 << 20;
    const WHY: &[u8] = b"a reason";

    /// Two ends of one connection, the handshake done: of the dialer, and of the listener.
    fn pair() -> [(TcpStream, Box<Tls>); 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let key = Key::generate().unwrap();
        let pin = key.pin;
        let server = std::thread::spawn(move || {
            let socket = listener.accept().unwrap().0;
            let mut tls = Tls::server(server_config(&key, &[ALPN_CONTROL]).unwrap()).unwrap();
            tls.handshake(&Socket::Tcp(socket.try_clone().unwrap())).unwrap();
            (socket, Box::new(tls))
        });
        let socket = TcpStream::connect(address).unwrap();
        let mut tls = Tls::client(Some(pin), &[ALPN_CONTROL]).unwrap();
        tls.handshake(&Socket::Tcp(socket.try_clone().unwrap())).unwrap();
        [(socket, Box::new(tls)), server.join().unwrap()]
    }

    fn sealed(tls: &mut Tls, plain: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        tls.seal(plain, &mut sealed).unwrap();
        sealed
    }

    /// What was under way when the connection was ended is taken, so that nothing resets it and the last words arrive.
    #[test]
    fn last_words_arrive_though_much_stands_unread() {
        let [(mut client, mut tls), (socket, server_tls)] = pair();
        let (reader, mut writer) = split(socket, server_tls).unwrap();
        let many = sealed(&mut tls, &vec![7; MANY]);
        let mut speaking = client.try_clone().unwrap();
        let speaker = std::thread::spawn(move || speaking.write_all(&many));
        // Nobody reads, and no more fits.
        while reader.0.lock().incoming.len() < BUFFER_BYTES {
            std::thread::yield_now();
        }
        writer.write_all(WHY).unwrap();
        writer.end().end();
        let mut heard = Vec::new();
        while tls.open(&mut |piece| heard.extend_from_slice(piece)).unwrap() == ReadState::More {
            let read = client.read(tls.space()).unwrap();
            assert!(read > 0, "the connection was cut off");
            tls.filled(read);
        }
        assert_eq!(heard, WHY);
        speaker.join().unwrap().expect("all that was under way is taken");
        client.shutdown(Shutdown::Both).unwrap();
        writer.end().wait_gone();
    }

    #[test]
    fn reader_and_writer_wake_as_soon_as_their_connection_is_ended() {
        let [(_client, _tls), (socket, server_tls)] = pair();
        let (mut reader, mut writer) = split(socket, server_tls).unwrap();
        let waiting = std::thread::spawn(move || (reader.read(&mut [0; 10]).unwrap(), reader));
        writer.end().end();
        let (read, reader) = waiting.join().unwrap();
        assert_eq!(read, 0);
        assert!(writer.write(b"more").is_err());
        // The peer has not ended it, and is given the time to.
        assert!(reader.0.lock().ended.is_none());
        writer.end().wait_gone();
    }

    /// A peer that does not end the connection, or sends for ever, is not waited for.
    #[test]
    fn connection_that_was_ended_goes_whatever_its_peer_does() {
        let [(client, mut tls), (socket, server_tls)] = pair();
        let (_reader, writer) = split(socket, server_tls).unwrap();
        let noise = sealed(&mut tls, &vec![7; 1 << 20]);
        let speaker = std::thread::spawn(move || while (&client).write_all(&noise).is_ok() {});
        writer.end().end();
        writer.end().wait_gone();
        speaker.join().unwrap();
    }

    /// The peer has said why, and is gone: that nothing can be sent to it any more takes none of its words away.
    #[test]
    fn words_of_a_peer_that_takes_nothing_more_are_read_to_the_end() {
        let [(client, client_tls), (mut server, mut tls)] = pair();
        let (mut reader, mut writer) = split(client, client_tls).unwrap();
        // More than the server takes, which reads nothing: its end resets the connection.
        let speaker = std::thread::spawn(move || {
            while writer.write_all(&[7; 64 << 10]).is_ok() {}
            writer
        });
        let mut said = sealed(&mut tls, &vec![1; BUFFER_BYTES]);
        said.extend(sealed(&mut tls, WHY));
        server.write_all(&said).unwrap();
        while tcp_facts(&server).unwrap().unacknowledged > 0 || tcp_facts(&server).unwrap().unsent_bytes > 0 {
            std::thread::yield_now();
        }
        // The buffer of what nobody has read is full, so the reason stands in the kernel's.
        while reader.0.lock().incoming.len() < BUFFER_BYTES {
            std::thread::yield_now();
        }
        drop(server);
        let _writer = speaker.join().unwrap();
        let mut heard = vec![0; BUFFER_BYTES + WHY.len()];
        reader.read_exact(&mut heard).unwrap();
        assert!(heard.ends_with(WHY));
        assert!(reader.read(&mut [0]).is_err(), "it was reset");
    }
}
