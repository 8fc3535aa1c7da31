//! A data stream: frames in one direction over one connection, encrypted by TLS or with MACs on their metadata.

mod outgoing;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use carrack_core::ids::StreamId;
use carrack_core::limits;
use carrack_core::timeline::Work;
use carrack_core::tuning::SLICE_BYTES;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::frame::MAC_BYTES;
use carrack_core::wire::piece::{PIECE_HEADER_BYTES, PieceHeader};
use carrack_sys::bulk::{self, Pipe};

use super::mac::Mac;
use super::pieces::{PieceUnpacker, as_io};
use super::stages::Stages;
use crate::net::socket::Socket;
use crate::net::tls::{RECORD_BYTES_MAX, ReadState, Tls};
pub use outgoing::OutStream;

/// How a stream's bytes are protected.
pub enum Protection {
    /// TLS 1.3.
    Tls(Box<Tls>),
    /// MACs on metadata; the payload is clear and covered by its digest in the trailer.
    Mac(Mac),
    /// Nothing: the bytes never leave the process.
    Memory,
}

/// An authenticated connection, not yet given a direction.
pub struct Connection {
    /// The connected socket.
    pub socket: Arc<Socket>,
    /// What protects it.
    pub protection: Protection,
    /// Decrypted bytes that came with the handshake.
    pub early: Vec<u8>,
    /// The stream's number in its session.
    pub number: StreamId,
}

/// Buffers for whole slices that streams of this process have, in bytes.
static LARGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A stream's part of [`limits::LARGE_BUFFER_BYTES`], given back when it is dropped.
struct LargeBuffers;

impl LargeBuffers {
    /// Decrypted, encrypted, and the content of a small file.
    const BYTES: usize = InStream::BUFFER_BYTES + 2 * SLICE_BYTES;

    /// `None` where as many streams have them as may.
    fn take() -> Option<Self> {
        let add = |taken: usize| Some(taken + Self::BYTES).filter(|&taken| taken <= limits::LARGE_BUFFER_BYTES);
        LARGE_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(|_| Self)
    }
}

impl Drop for LargeBuffers {
    fn drop(&mut self) {
        LARGE_BYTES.fetch_sub(Self::BYTES, Ordering::Relaxed);
    }
}

/// The receiving end of a data stream.
pub struct InStream {
    socket: Arc<Socket>,
    protection: Protection,
    /// Decrypted bytes, `start..end` of which have not been taken.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether it handles whole slices at a time, or small ones.
    large: Option<LargeBuffers>,
    stages: Arc<Stages>,
    /// Where it is cut into pieces: the one that is being taken.
    piece: Option<PieceUnpacker>,
}

impl InStream {
    /// Decrypted bytes held at most: a slice, and what came with its end. More would leave the core's cache.
    const BUFFER_BYTES: usize = SLICE_BYTES + (64 << 10);
    /// A slice, where so many streams have large buffers that this one may not, in bytes: the payload of a TLS record.
    const SMALL_SLICE_BYTES: usize = 16 << 10;
    /// As long as nothing has come: the first header has room. A connection that carries nothing costs little.
    const IDLE_BUFFER_BYTES: usize = 4 << 10;

    /// Receives over this connection from now on, and counts the time that it waits.
    pub fn new(connection: Connection, stages: Arc<Stages>) -> Self {
        let mut buffer = connection.early;
        let end = buffer.len();
        buffer.resize(Self::IDLE_BUFFER_BYTES.max(end), 0);
        let Connection { socket, protection, .. } = connection;
        Self { socket, protection, buffer, start: 0, end, large: None, stages, piece: None }
    }

    /// From now on it is cut into pieces.
    pub fn cut_into_pieces(&mut self) {
        self.piece = Some(PieceUnpacker::default());
    }

    /// Cuts the connection from outside.
    #[cfg(feature = "testing")]
    pub fn socket(&self) -> Arc<Socket> {
        Arc::clone(&self.socket)
    }

    /// Metadata of exactly this length, its MAC checked where there is one.
    ///
    /// # Errors
    /// Those of the connection; `UnexpectedEof` when it ends first; `InvalidData` when the MAC is wrong.
    pub fn meta(&mut self, out: &mut [u8]) -> io::Result<()> {
        self.meta_after(&[], out)
    }

    /// As [`InStream::meta`], for metadata whose first part, `before`, was taken by [`InStream::peek`].
    ///
    /// # Errors
    /// As [`InStream::meta`].
    pub fn meta_after(&mut self, before: &[u8], out: &mut [u8]) -> io::Result<()> {
        self.take(out)?;
        let mut theirs = [0; MAC_BYTES];
        if matches!(self.protection, Protection::Mac(_)) {
            self.take(&mut theirs)?;
        }
        if let Protection::Mac(mac) = &mut self.protection
            && !mac.check(&[before, out], &theirs)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a frame was altered or injected on the way: its MAC is wrong",
            ));
        }
        Ok(())
    }

    /// The first part of metadata whose MAC covers more: only its lengths may be used before [`InStream::meta_after`].
    ///
    /// # Errors
    /// Those of the connection.
    pub fn peek(&mut self, out: &mut [u8]) -> io::Result<()> {
        self.take(out)
    }

    /// Bytes that [`InStream::payload`] hands out at once, at most.
    pub fn slice_bytes(&self) -> usize {
        if self.large.is_some() { SLICE_BYTES } else { Self::SMALL_SLICE_BYTES }
    }

    /// Hands out `length` bytes of payload, in slices of at most [`InStream::slice_bytes`]: all but the last are of
    /// that size, and stay in cache between being decrypted, hashed and written.
    ///
    /// # Errors
    /// Those of the connection, and those of the sink.
    pub fn payload<E: From<io::Error>>(
        &mut self,
        length: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut left = length;
        if left > Self::SMALL_SLICE_BYTES as u64 {
            self.grow();
        }
        while left > 0 {
            let slice = left.min(self.slice_bytes() as u64) as usize;
            let slice = self.here_of_piece(slice)?;
            self.stages.carried(slice);
            match &self.piece {
                Some(piece) if !piece.unpacked().is_empty() => sink(&piece.unpacked()[..slice])?,
                _ => {
                    self.fill(slice)?;
                    sink(&self.buffer[self.start..self.start + slice])?;
                    self.start += slice;
                }
            }
            self.hand_out(slice);
            left -= slice as u64;
        }
        Ok(())
    }

    /// How many of the bytes that are wanted the piece has, of the next piece where this one has been handed out.
    fn here_of_piece(&mut self, wanted: usize) -> io::Result<usize> {
        if self.piece.as_ref().is_some_and(|piece| piece.unpacked().is_empty() && piece.coming() == 0) {
            self.next_piece()?;
        }
        Ok(match &self.piece {
            Some(piece) => wanted.min(piece.unpacked().len().max(piece.coming())),
            None => wanted,
        })
    }

    fn next_piece(&mut self) -> io::Result<()> {
        let mut header = [0; PIECE_HEADER_BYTES];
        self.take_raw(&mut header)?;
        let PieceHeader { plain, packed } = PieceHeader::decode(&header).map_err(|error| self.altered(error))?;
        let mut piece = self.piece.take().unwrap_or_default();
        let result = match packed {
            None => {
                piece.expect(plain);
                Ok(())
            }
            Some(bytes) => {
                let mut packed = vec![0; bytes as usize];
                self.take_raw(&mut packed)?;
                piece.unpack(&packed, plain, &self.stages)
            }
        };
        self.piece = Some(piece);
        result.map_err(|error| self.altered(error))
    }

    fn hand_out(&mut self, bytes: usize) {
        let keeps = self.large.is_some();
        self.piece.iter_mut().for_each(|piece| piece.hand_out(bytes, keeps));
    }

    /// What nobody on the path can alter, the peer has sent. In the clear that is not known: the stream ends as one
    /// whose metadata has another MAC.
    fn altered(&self, error: ProtocolError) -> io::Error {
        match self.protection {
            Protection::Mac(_) => io::Error::new(
                io::ErrorKind::InvalidData,
                "a compressed piece was altered on the way: it does not unpack",
            ),
            Protection::Tls(_) | Protection::Memory => as_io(error),
        }
    }

    /// Payload that nobody here looks at, taken from the socket into `pipe` inside the kernel: at most `most`
    /// bytes. None are taken while some are here already, and where that cannot be done;
    /// [`InStream::payload`] then hands them out.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn splice(&mut self, pipe: &mut Pipe, most: usize) -> io::Result<usize> {
        self.unseen(|socket| pipe.take(socket, most))
    }

    /// Payload that nobody wants, thrown away inside the kernel: at most `most` bytes, none as
    /// for [`InStream::splice`].
    ///
    /// # Errors
    /// Those of the connection.
    pub fn discard(&mut self, most: usize) -> io::Result<usize> {
        if self.start < self.end || self.buffer.len() < Self::BUFFER_BYTES {
            return Ok(0);
        }
        let mut scratch = std::mem::take(&mut self.buffer);
        let room = most.min(scratch.len());
        let discarded = self.unseen(|socket| bulk::discard(socket, &mut scratch[..room]));
        self.buffer = scratch;
        discarded
    }

    fn unseen(&self, mut call: impl FnMut(&Socket) -> io::Result<usize>) -> io::Result<usize> {
        if self.start < self.end || !self.is_clear() {
            return Ok(0);
        }
        loop {
            match self.stages.wait(Work::Receive, || call(&self.socket)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(0),
                other => return other.inspect(|bytes| self.stages.carried(*bytes)),
            }
        }
    }

    /// Whether its payload travels as it is.
    pub fn is_clear(&self) -> bool {
        !matches!(self.protection, Protection::Tls(_)) && self.piece.is_none()
    }

    /// Bytes that have been received and not handed out.
    pub fn received(&self) -> usize {
        self.end - self.start
    }

    fn take(&mut self, out: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < out.len() {
            let here = self.here_of_piece(out.len() - done)?;
            let part = &mut out[done..done + here];
            match &self.piece {
                Some(piece) if !piece.unpacked().is_empty() => part.copy_from_slice(&piece.unpacked()[..here]),
                _ => self.take_raw(part)?,
            }
            self.hand_out(here);
            done += here;
        }
        Ok(())
    }

    /// Bytes as they travel.
    fn take_raw(&mut self, out: &mut [u8]) -> io::Result<()> {
        for part in out.chunks_mut(Self::SMALL_SLICE_BYTES) {
            self.fill(part.len())?;
            part.copy_from_slice(&self.buffer[self.start..self.start + part.len()]);
            self.start += part.len();
        }
        Ok(())
    }

    /// Gets large buffers, unless it has them or too many others do.
    fn grow(&mut self) {
        if self.large.is_some() {
            return;
        }
        self.large = LargeBuffers::take();
        if self.large.is_some() {
            self.buffer.resize(Self::BUFFER_BYTES, 0);
            if let Protection::Tls(tls) = &mut self.protection {
                tls.reserve(SLICE_BYTES);
            }
        }
    }

    /// Makes sure that `wanted` bytes (at most a slice) are there.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.end - self.start >= wanted {
            return Ok(());
        }
        if self.end > 0 || wanted > self.buffer.len() {
            self.grow();
            let least = self.slice_bytes() + RECORD_BYTES_MAX;
            if self.buffer.len() < least {
                self.buffer.resize(least, 0);
            }
        }
        if self.start == self.end || self.start + wanted > self.buffer.len() {
            self.compact();
        }
        while self.end - self.start < wanted {
            match &self.protection {
                Protection::Tls(tls) if tls.holds_record() => self.open_record()?,
                Protection::Tls(_) => self.read_records()?,
                Protection::Mac(_) | Protection::Memory => self.read_clear(wanted)?,
            }
        }
        Ok(())
    }

    fn compact(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
    }

    /// Only as many records are opened as are wanted now: what they hold is hashed and written
    /// while it is in the cache.
    fn open_record(&mut self) -> io::Result<()> {
        if self.buffer.len() - self.end < RECORD_BYTES_MAX {
            self.compact();
            let room = self.end + RECORD_BYTES_MAX;
            if self.buffer.len() < room {
                self.buffer.resize(room, 0);
            }
        }
        let Protection::Tls(tls) = &mut self.protection else { return Ok(()) };
        let room = &mut self.buffer[self.end..];
        let (payload, opened) = self.stages.work(Work::Open, RECORD_BYTES_MAX, || tls.open_to(room))?;
        self.end += payload;
        if opened == ReadState::Closed { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn read_records(&mut self) -> io::Result<()> {
        let Protection::Tls(tls) = &mut self.protection else { return Ok(()) };
        let read = self.stages.wait(Work::Receive, || read_retrying(&self.socket, tls.space()))?;
        tls.filled(read);
        Ok(())
    }

    fn read_clear(&mut self, wanted: usize) -> io::Result<()> {
        // Of large payload no more than is wanted: what lies ahead would have to be moved.
        let most = if wanted >= SLICE_BYTES / 4 { self.start + wanted } else { self.buffer.len() };
        let room = &mut self.buffer[self.end..most];
        self.end += self.stages.wait(Work::Receive, || read_retrying(&self.socket, room))?;
        Ok(())
    }
}

/// One read; the end of the connection is an error here, because a stream ends with a frame that says so.
fn read_retrying(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    let mut socket = socket;
    loop {
        match socket.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use carrack_core::tuning::Tuning;

    use super::*;

    fn stream() -> (UnixStream, InStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let connection = Connection {
            socket: Arc::new(Socket::Unix(far)),
            protection: Protection::Memory,
            early: Vec::new(),
            number: StreamId(0),
        };
        (near, InStream::new(connection, Arc::default()))
    }

    /// The kernel sends a file by itself; what it has to wait for on storage is counted as reading, not as sending.
    #[cfg(not(carrack_portable))]
    #[test]
    fn storage_that_sendfile_would_wait_for_is_counted_as_reading() {
        let length = 4 * SLICE_BYTES;
        let content: Vec<u8> = (0..length as u32).map(|n| (n ^ (n >> 8)) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        file.sync_all().unwrap();
        carrack_sys::file::drop_cache(&file, 0, 0).unwrap();
        let has_cache = bulk::read_if_cached(&file, &mut [0], 0).is_ok();
        let (mut near, far) = UnixStream::pair().unwrap();
        let (socket, protection) = (Arc::new(Socket::Unix(far)), Protection::Memory);
        let connection = Connection { socket, protection, early: Vec::new(), number: StreamId(0) };
        let stages: Arc<Stages> = Arc::default();
        let mut out = OutStream::new(connection, Arc::clone(&stages), &Tuning::DEFAULT);
        let sender = std::thread::spawn(move || out.file(&file, 0, length).unwrap());
        let mut received = vec![0; length];
        near.read_exact(&mut received[..]).unwrap();
        assert_eq!(sender.join().unwrap(), length);
        assert!(received == content);
        let mut sample = carrack_core::timeline::Sample::default();
        stages.fill(&mut sample);
        assert_eq!(sample.stages.of(Work::Read).calls, u64::from(has_cache));
        assert_eq!(sample.stages.of(Work::Send).calls, 1);
    }

    /// As at a node with a thousand streams: each still gets its bytes, in smaller pieces, from little memory.
    #[test]
    fn large_buffers_are_bounded_over_all_streams() {
        let content: Vec<u8> = (0..2 * SLICE_BYTES as u32 + 5).map(|n| (n ^ (n >> 8)) as u8).collect();
        let most = limits::LARGE_BUFFER_BYTES / LargeBuffers::BYTES + 10;
        let mut streams: Vec<_> = (0..most).map(|_| stream()).collect();
        let mut large = 0;
        for (near, input) in &mut streams {
            let (sent, mut near) = (content.clone(), near.try_clone().unwrap());
            let writer = std::thread::spawn(move || near.write_all(&sent).unwrap());
            let mut received = Vec::new();
            let sink = &mut |slice: &[u8]| {
                received.extend_from_slice(slice);
                Ok::<(), io::Error>(())
            };
            input.payload(content.len() as u64, sink).unwrap();
            writer.join().unwrap();
            assert!(received == content);
            let is_large = input.slice_bytes() == SLICE_BYTES;
            assert!(is_large || input.buffer.len() < 3 * InStream::SMALL_SLICE_BYTES, "{}", input.buffer.len());
            large += usize::from(is_large);
        }
        assert!(large * LargeBuffers::BYTES <= limits::LARGE_BUFFER_BYTES, "{large} streams have large buffers");
        assert!(large < most);
    }
}
