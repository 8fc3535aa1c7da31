//! The multiplexed control connection: one writer shared by all, one thread that reads,
//! heartbeats, and an end to silence.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::tuning::Tuning;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::mux::{Channel, HEADER_BYTES, decode_header, encode_header};
use carrack_sys::threads;

use crate::sync::{Latch, lock};

/// The writing half; clones share it.
#[derive(Clone)]
pub struct MuxWriter {
    shared: Arc<WriterShared>,
}

struct WriterShared {
    out: Mutex<Box<dyn Write + Send>>,
    closed: Latch,
    started: Instant,
    /// Milliseconds after `started` at which the peer was last heard.
    heard_ms: AtomicU64,
    /// What was heard is being handed on, which may take as long as whoever takes it likes: that
    /// is not the peer's silence.
    handing_on: AtomicBool,
    /// Wakes whoever reads or writes, when the peer has been silent for too long.
    abort: Box<dyn Fn() + Send + Sync>,
    silent: AtomicBool,
    /// A heartbeat could not be sent: there is nobody at the other end.
    broken: AtomicBool,
}

/// Why a control connection is read no further.
#[derive(Debug)]
pub enum ReadError {
    /// It is gone, or what came through it had been altered.
    Connection(io::Error),
    /// The peer broke the protocol.
    Protocol(ProtocolError),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl From<io::ErrorKind> for ReadError {
    fn from(kind: io::ErrorKind) -> Self {
        Self::Connection(kind.into())
    }
}

impl From<ProtocolError> for ReadError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl MuxWriter {
    /// Over this connection; `abort` must make a waiting read or write return.
    pub fn new(out: Box<dyn Write + Send>, abort: Box<dyn Fn() + Send + Sync>) -> Self {
        let shared = WriterShared {
            out: Mutex::new(out),
            closed: Latch::default(),
            started: Instant::now(),
            heard_ms: AtomicU64::new(0),
            handing_on: AtomicBool::new(false),
            abort,
            silent: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sends one frame. Waits while the connection is full; never call it from the thread that reads a connection.
    ///
    /// # Errors
    /// Those of the connection; `InvalidInput` for a payload that does not fit into a frame: nothing is sent of it.
    pub fn send(&self, channel: Channel, payload: &[u8]) -> io::Result<()> {
        if payload.len() > limits::MUX_FRAME_BYTES {
            let what = format!("a message of {} bytes is longer than one may be", payload.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut out = lock(&self.shared.out);
        write_frame(&mut *out, channel, payload)
    }

    /// Starts heartbeats and the watch for silence; both end with [`MuxWriter::close`].
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn keep_alive(&self, tuning: &Tuning) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let (heartbeat, silence) = (tuning.heartbeat, tuning.silence);
        let beat = move || {
            let mut last_beat = Instant::now();
            // Silence is noticed a little later than it begins: nobody waits for the very moment.
            while !shared.closed.wait(heartbeat / 10) {
                if shared.is_silent(silence) {
                    shared.silent.store(true, Ordering::Relaxed);
                    (shared.abort)();
                    return;
                }
                if last_beat.elapsed() < heartbeat {
                    continue;
                }
                last_beat = Instant::now();
                // A writer that is busy is sign of life enough.
                match shared.out.try_lock() {
                    Ok(mut out) => {
                        let beat = write_frame(&mut *out, Channel::CONTROL, &[]);
                        shared.broken.fetch_or(beat.is_err(), Ordering::Relaxed);
                    }
                    Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => {}
                }
            }
        };
        threads::start("heartbeats", beat).map(drop)
    }

    /// Whether the connection was given up because the peer was silent.
    pub fn went_silent(&self) -> bool {
        self.shared.silent.load(Ordering::Relaxed)
    }

    /// Whether nothing can be sent any more: also who does not read just now can know that.
    pub fn is_broken(&self) -> bool {
        self.shared.broken.load(Ordering::Relaxed)
    }

    /// Ends heartbeats and the connection.
    pub fn close(&self) {
        if !self.shared.closed.set() {
            (self.shared.abort)();
        }
    }

    /// Reads frames until the connection ends and hands them to `each`; heartbeats are taken out.
    ///
    /// # Errors
    /// Those of the connection, a frame beyond any bound, and what `each` returns.
    pub fn read_all(
        &self,
        input: impl Read,
        each: &mut dyn FnMut(Channel, Vec<u8>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut input = io::BufReader::with_capacity(64 << 10, input);
        loop {
            let mut header = [0; HEADER_BYTES];
            match input.read_exact(&mut header) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            let (channel, length) = decode_header(header)?;
            let mut payload = vec![0; length];
            input.read_exact(&mut payload)?;
            self.shared.hear();
            if length > 0 || channel != Channel::CONTROL {
                self.shared.handing_on.store(true, Ordering::Release);
                let handed_on = each(channel, payload);
                self.shared.hear();
                self.shared.handing_on.store(false, Ordering::Release);
                handed_on?;
            }
        }
    }
}

impl WriterShared {
    fn hear(&self) {
        let heard = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard_ms.store(heard, Ordering::Relaxed);
    }

    /// Whether the peer has not been heard for longer than this.
    fn is_silent(&self, silence: Duration) -> bool {
        // Looked at first: the moment of hearing is set before and after.
        let handing_on = self.handing_on.load(Ordering::Acquire);
        let heard = self.started + Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        !handing_on && heard.elapsed() > silence
    }
}

/// Writes one frame, and all of it at once.
///
/// # Errors
/// Those of the connection.
pub fn write_frame(out: &mut dyn Write, channel: Channel, payload: &[u8]) -> io::Result<()> {
    // One write, so that a small message is one packet and nobody else's bytes come between.
    let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
    frame.extend_from_slice(&encode_header(channel, payload.len()));
    frame.extend_from_slice(payload);
    out.write_all(&frame)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const SILENCE: Duration = Tuning::DEFAULT.silence;

    #[test]
    fn frames_pass_and_heartbeats_do_not() {
        let (near, far) = UnixStream::pair().unwrap();
        let writer = MuxWriter::new(Box::new(near), Box::new(|| {}));
        writer.send(Channel(0), b"one").unwrap();
        writer.send(Channel(0), b"").unwrap();
        writer.send(Channel(7), b"").unwrap();
        drop(writer);
        let reader = MuxWriter::new(Box::new(io::sink()), Box::new(|| {}));
        let mut seen = Vec::new();
        let collect = &mut |channel: Channel, payload: Vec<u8>| {
            seen.push((channel.0, payload));
            Ok(())
        };
        reader.read_all(far, collect).unwrap();
        assert_eq!(seen, [(0, b"one".to_vec()), (7, Vec::new())]);
    }

    #[test]
    fn message_that_is_too_long_is_not_sent_and_the_next_one_is() {
        let (near, far) = UnixStream::pair().unwrap();
        let writer = MuxWriter::new(Box::new(near), Box::new(|| {}));
        let error = writer.send(Channel(0), &vec![0; limits::MUX_FRAME_BYTES + 1]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        writer.send(Channel(0), b"next").unwrap();
        drop(writer);
        let reader = MuxWriter::new(Box::new(io::sink()), Box::new(|| {}));
        let mut seen = Vec::new();
        let collect = &mut |_, payload| {
            seen.push(payload);
            Ok(())
        };
        reader.read_all(far, collect).unwrap();
        assert_eq!(seen, [b"next"]);
    }

    /// What was heard may wait for as long as somebody reads slowly: meanwhile nobody listens, and nobody is silent.
    #[test]
    fn peer_is_not_silent_while_what_it_said_is_handed_on() {
        let (near, far) = UnixStream::pair().unwrap();
        MuxWriter::new(Box::new(near), Box::new(|| {})).send(Channel(0), b"one").unwrap();
        let mut reader = MuxWriter::new(Box::new(io::sink()), Box::new(|| {}));
        let shared = Arc::get_mut(&mut reader.shared).unwrap();
        shared.started = shared.started.checked_sub(2 * SILENCE).unwrap();
        assert!(reader.shared.is_silent(SILENCE));
        let each = &mut |_, _| {
            // As if it had taken long.
            reader.shared.heard_ms.store(0, Ordering::Relaxed);
            assert!(!reader.shared.is_silent(SILENCE));
            Ok(())
        };
        reader.read_all(far, each).unwrap();
        assert!(!reader.shared.is_silent(SILENCE));
        reader.shared.heard_ms.store(0, Ordering::Relaxed);
        assert!(reader.shared.is_silent(SILENCE));
    }

    #[test]
    fn keep_alive_gives_up_a_silent_peer() {
        let (told, hear) = std::sync::mpsc::channel();
        let writer = MuxWriter::new(Box::new(io::sink()), Box::new(move || told.send(()).unwrap()));
        assert!(!writer.went_silent());
        let beating =
            Tuning { heartbeat: Duration::from_millis(10), silence: Duration::from_millis(50), ..Tuning::DEFAULT };
        writer.keep_alive(&beating).unwrap();
        hear.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(writer.went_silent());
    }

    #[test]
    fn length_bomb_ends_the_connection() {
        let reader = MuxWriter::new(Box::new(io::sink()), Box::new(|| {}));
        let error = reader.read_all(&[0xff; 100][..], &mut |_, _| Ok(())).unwrap_err();
        assert!(matches!(error, ReadError::Protocol(_)), "{error:?}");
    }
}
