//! A TLS connection that is read and written at the same time: a node's control connection.
//!
//! TLS state cannot be split in two, and a thread that waits in `read` must not keep another from writing. So one
//! thread owns the socket, never waits in it, and the two halves meet it at buffers of bounded size.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use carrack_core::report::Side;
use carrack_sys::socket::{Waker, set_user_timeout, wait_two};

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
    /// The connection has ended, and why.
    ended: Option<io::ErrorKind>,
    /// Since when nobody writes any more.
    finished: Option<Instant>,
}

/// What is still to be sent when the connection is ended has this long to leave: a peer that does not
/// read it is not waited for.
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
    socket.set_nonblocking(true)?;
    // A peer may take nothing for as long as whoever reads its output takes, and TCP's limit counts that as silence
    // even while the peer answers every question. Heartbeats (`mux`) end the connection when nothing is heard any more.
    // Where this cannot be set, patience ends earlier than it should.
    let _ = set_user_timeout(&socket, Duration::ZERO);
    let state = DuplexState { tls, outgoing: Vec::new(), incoming: VecDeque::new(), ended: None, finished: None };
    let shared = Arc::new(DuplexShared { state: Mutex::new(state), changed: Condvar::new(), waker: Waker::new()? });
    // What came together with the end of the handshake.
    take_records(&mut shared.lock())?;
    let worker = Arc::clone(&shared);
    std::thread::spawn(move || {
        let ended = contain(Side::Link, "a control connection", || worker.run(&socket));
        let ended = ended.unwrap_or_else(|why| Err(io::Error::other(why.message())));
        let mut state = worker.lock();
        state.ended = Some(ended.map_or_else(|error| error.kind(), |()| io::ErrorKind::UnexpectedEof));
        worker.changed.notify_all();
        let _ = socket.shutdown(std::net::Shutdown::Both);
    });
    Ok((DuplexReader(Arc::clone(&shared)), DuplexWriter(shared)))
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
            let (want_read, want_write, left) = {
                let state = self.lock();
                let left = state.finished.map(|since| LINGER.saturating_sub(since.elapsed()));
                if left.is_some_and(|left| state.outgoing.is_empty() || left.is_zero()) {
                    return Ok(());
                }
                (state.incoming.len() < BUFFER_BYTES, !state.outgoing.is_empty(), left)
            };
            let ready = wait_two(socket.as_fd(), want_read, want_write, &self.waker, left)?;
            if ready.woken {
                self.waker.drain();
            }
            if ready.read && self.read_some(socket)? == 0 {
                return Ok(());
            }
            if ready.write {
                self.write_some(socket)?;
            }
        }
    }

    fn read_some(&self, mut socket: &TcpStream) -> io::Result<usize> {
        let mut state = self.lock();
        let read = match socket.read(state.tls.space()) {
            Ok(read) => read,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(1);
            }
            Err(error) => return Err(error),
        };
        state.tls.filled(read);
        let opened = take_records(&mut state)?;
        self.changed.notify_all();
        Ok(if opened == ReadState::Closed { 0 } else { read })
    }

    fn write_some(&self, mut socket: &TcpStream) -> io::Result<()> {
        let mut state = self.lock();
        match socket.write(&state.outgoing) {
            Ok(written) => {
                state.outgoing.drain(..written);
                self.changed.notify_all();
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(error),
        }
    }
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
                None => state = wait(&self.0.changed, state),
            }
        }
    }
}

impl Write for DuplexWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut guard = self.0.lock();
        loop {
            if guard.ended.is_some() || guard.finished.is_some() {
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
    /// Ends the connection once what was written has left, or could not: whoever reads or writes wakes up.
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
}

impl Drop for DuplexWriter {
    fn drop(&mut self) {
        self.end().end();
    }
}
