//! The sending end of a data stream.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::timeline::Work;
use carrack_core::tuning::{SLICE_BYTES, Tuning};
use carrack_sys::bulk;
use carrack_sys::file::read_full_at;

use super::{Connection, Protection};
use crate::data::pieces::{PIECE_BYTES, PiecePacker};
use crate::data::stages::Stages;
use crate::net::socket::Socket;

/// The sending end of a data stream.
pub struct OutStream {
    socket: Arc<Socket>,
    protection: Protection,
    /// Metadata and small payload that wait to go together.
    staged: Vec<u8>,
    sealed: Vec<u8>,
    stages: Arc<Stages>,
    /// For so many slices that the kernel sends by itself it is asked whether storage has to be waited for.
    watched: u32,
    /// Where it is cut into pieces.
    packer: Option<PiecePacker>,
    /// Content that has travelled since somebody asked, in bytes.
    travelled: usize,
}

/// A slice that the kernel sends sooner waits for nothing that is worth asking about.
const QUICK_SEND: Duration = Duration::from_micros(500);
/// Slices after a slow one that are asked about: more than the system reads ahead, so that the next slow one is among
/// them. Asking costs some microseconds a slice.
const WATCHED: u32 = 64;

impl OutStream {
    /// Sends over this connection from now on, and counts the time that it waits.
    pub fn new(connection: Connection, stages: Arc<Stages>, tuning: &Tuning) -> Self {
        connection.socket.make_sending(tuning);
        Self {
            socket: connection.socket,
            protection: connection.protection,
            staged: Vec::with_capacity(2 * SLICE_BYTES),
            sealed: Vec::new(),
            stages,
            watched: WATCHED,
            packer: None,
            travelled: 0,
        }
    }

    /// From now on it is cut into pieces, which are compressed where that makes it quicker.
    pub fn cut_into_pieces(&mut self, packer: PiecePacker) {
        self.packer = Some(packer);
    }

    /// Whether it is cut into pieces.
    pub fn is_cut(&self) -> bool {
        self.packer.is_some()
    }

    /// Another content begins: whether it shrinks is not known.
    pub fn begin_content(&mut self) {
        self.packer.iter_mut().for_each(PiecePacker::begin_content);
    }

    /// Bytes that have travelled in pieces since this was asked last.
    pub fn take_travelled(&mut self) -> usize {
        std::mem::take(&mut self.travelled)
    }

    /// A rate limit was waited for.
    pub fn paced(&mut self, time: Duration) {
        self.packer.iter_mut().for_each(|packer| packer.paced(time));
    }

    /// Cuts the connection from outside.
    pub fn socket(&self) -> Arc<Socket> {
        Arc::clone(&self.socket)
    }

    /// Metadata: headers, paths, trailers. Each call is covered by one MAC.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn meta(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        for piece in pieces {
            self.staged.extend_from_slice(piece);
        }
        if let Protection::Mac(mac) = &mut self.protection {
            let mac = mac.next(pieces);
            self.staged.extend_from_slice(&mac);
        }
        if self.staged.len() >= SLICE_BYTES { self.flush() } else { Ok(()) }
    }

    /// Payload: content of files.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn payload(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stages.carried(bytes.len());
        if bytes.len() < SLICE_BYTES / 4 {
            self.staged.extend_from_slice(bytes);
            return if self.staged.len() >= SLICE_BYTES { self.flush() } else { Ok(()) };
        }
        if self.packer.is_some() {
            return self.send_pieces(bytes);
        }
        // Metadata goes into records of its own, so that large payload keeps its alignment in the receiver's records.
        self.flush()?;
        self.send(bytes).map(|_| ())
    }

    /// Payload that nobody here looks at: bytes of a file, inside the kernel where that is possible. Says how many
    /// went, which may be none; the rest is the caller's to read.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn file(&mut self, file: &File, offset: u64, length: usize) -> io::Result<usize> {
        if matches!(self.protection, Protection::Tls(_)) || self.packer.is_some() {
            return Ok(0);
        }
        self.flush()?;
        if self.watched > 0 && !self.wait_for_storage(file, offset, length) {
            self.watched -= 1;
            return Ok(0);
        }
        let start = Instant::now();
        let sent = self.stages.wait(Work::Send, || self.socket.send_file(file, offset, length))?;
        self.watched = if start.elapsed() > QUICK_SEND { WATCHED } else { self.watched.saturating_sub(1) };
        self.stages.carried(sent);
        Ok(sent)
    }

    /// Waits here for what is not in the page cache: a wait within `sendfile` would be counted as one for the network.
    /// Whoever sends the bytes meets the same errors. False where the file system does not say what is in its cache, or
    /// has none: then the bytes have to be read to know how long that takes.
    fn wait_for_storage(&self, file: &File, offset: u64, length: usize) -> bool {
        let Some(last) = (length as u64).checked_sub(1).and_then(|more| offset.checked_add(more)) else { return true };
        // Storage fills the cache in the order that it is asked in: once the last byte is there, so is the rest. A file
        // system without a page cache would read that byte for nothing.
        let _ = bulk::fetch(file, offset, length as u64);
        let says = bulk::read_if_cached(file, &mut [0], last).is_ok();
        if says {
            let _ = self.stages.wait(Work::Read, || read_full_at(file, &mut [0], last));
        }
        says
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        if self.packer.is_some() {
            return self.send_pieces(&[]);
        }
        let staged = std::mem::take(&mut self.staged);
        let result = self.send(&staged);
        self.staged = staged;
        self.staged.clear();
        result.map(|_| ())
    }

    /// Sends what waits and, behind it, these bytes, in pieces. Nothing else may be sent while the packer is away.
    fn send_pieces(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(mut packer) = self.packer.take() else { return Ok(()) };
        packer.begin();
        let staged = std::mem::take(&mut self.staged);
        let pieces = staged.chunks(PIECE_BYTES).chain(bytes.chunks(PIECE_BYTES));
        let result = self.send_each(&mut packer, pieces);
        self.staged = staged;
        self.staged.clear();
        self.travelled += packer.sent();
        self.packer = Some(packer);
        result
    }

    fn send_each<'p>(&mut self, packer: &mut PiecePacker, pieces: impl Iterator<Item = &'p [u8]>) -> io::Result<()> {
        let stages = Arc::clone(&self.stages);
        for piece in pieces {
            let is_whole = packer.add(piece, &stages);
            if !is_whole || packer.ready().len() >= PIECE_BYTES {
                let waited = self.send(packer.ready())?;
                packer.clear(waited);
            }
            if !is_whole {
                packer.waited(self.send(piece)?);
            }
        }
        if !packer.ready().is_empty() {
            let waited = self.send(packer.ready())?;
            packer.clear(waited);
        }
        Ok(())
    }

    /// Sends what waits, and says that nothing more comes.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        let Protection::Tls(tls) = &mut self.protection else { return Ok(()) };
        let mut closing = Vec::new();
        tls.seal_close(&mut closing)?;
        self.socket.send(&closing)
    }

    /// Sends these bytes. Says how long the connection was waited for.
    fn send(&mut self, bytes: &[u8]) -> io::Result<Duration> {
        let bytes = match &mut self.protection {
            Protection::Tls(tls) => {
                let sealed = self.stages.work(Work::Seal, bytes.len(), || tls.seal_to(bytes, &mut self.sealed))?;
                &self.sealed[..sealed]
            }
            Protection::Mac(_) | Protection::Memory => bytes,
        };
        let (sent, waited) = self.stages.wait_told(Work::Send, || self.socket.send(bytes));
        sent.map(|()| waited)
    }
}
