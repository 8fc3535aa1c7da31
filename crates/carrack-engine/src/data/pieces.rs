//! The pieces that a data stream is cut into where it may be compressed: packed at one end, unpacked at the other.
//!
//! Each piece is compressed by itself. So a piece may travel as it is at any moment, and an end keeps nothing between
//! two of them but its tables.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::pace::packing::{Effort, Packing, SentPiece};
use carrack_core::timeline::Work;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::piece::{PIECE_HEADER_BYTES, PieceHeader};
use zstd_safe::{CCtx, CParameter, DCtx};

use super::stages::Stages;

/// Bytes of the largest piece.
pub const PIECE_BYTES: usize = limits::PIECE_BYTES as usize;
/// A piece of no more is copied behind its header, in bytes: a write of its own would cost more.
const COPIED_BYTES: usize = 16 << 10;

/// What all streams of an end have packed, in bytes.
#[derive(Debug, Default)]
pub struct PackedBytes {
    /// What travelled compressed, as it was before,
    pub plain: AtomicU64,
    /// and as it travelled.
    pub packed: AtomicU64,
    /// What was to be compressed and did not shrink.
    pub not_shrunk: AtomicU64,
}

/// Makes pieces of what one stream sends.
pub struct PiecePacker {
    packing: Packing,
    counts: Arc<PackedBytes>,
    /// The tables of zstd, as long as anything is compressed.
    context: Option<(CCtx<'static>, Effort)>,
    /// Pieces that have not been sent, as they travel.
    ready: Vec<u8>,
    sent: SentPiece,
    began: Instant,
}

impl PiecePacker {
    /// Counts what it packs in `counts`.
    pub fn new(counts: Arc<PackedBytes>) -> Self {
        let (packing, sent, ready) = (Packing::new(), SentPiece::default(), Vec::new());
        Self { packing, counts, context: None, ready, sent, began: Instant::now() }
    }

    /// Something is about to be sent. What the thread did until now is the same whether or not it is compressed.
    pub fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// Another content begins: whether it shrinks is not known.
    pub fn begin_content(&mut self) {
        self.packing.begin_content();
    }

    /// Adds a piece of at most [`PIECE_BYTES`] to what is ready. False where only its header is: then the bytes have to
    /// be sent right behind.
    pub fn add(&mut self, plain: &[u8], stages: &Stages) -> bool {
        self.sent.plain += plain.len() as u64;
        if let Some(packed) = self.pack(plain, stages) {
            self.sent.travelled += packed as u64;
            return true;
        }
        self.sent.travelled += plain.len() as u64;
        self.ready.extend_from_slice(&PieceHeader { plain: plain.len() as u32, packed: None }.encode());
        let is_copied = plain.len() <= COPIED_BYTES;
        if is_copied {
            self.ready.extend_from_slice(plain);
        }
        is_copied
    }

    /// Packs a piece, if that is worth it. Says how many bytes it has become.
    fn pack(&mut self, plain: &[u8], stages: &Stages) -> Option<usize> {
        if !self.packing.tries(plain.len()) {
            if self.packing.packs() {
                self.count_not_shrunk(plain.len());
            } else {
                self.context = None;
            }
            return None;
        }
        let began = Instant::now();
        let packed = stages.work(Work::Compress, plain.len(), || self.compress(plain));
        *self.sent.compressing.get_or_insert_default() += began.elapsed();
        match packed {
            Some(packed) => {
                self.counts.plain.fetch_add(plain.len() as u64, Ordering::Relaxed);
                self.counts.packed.fetch_add(packed as u64, Ordering::Relaxed);
            }
            None => self.count_not_shrunk(plain.len()),
        }
        packed
    }

    fn count_not_shrunk(&self, bytes: usize) {
        if bytes >= Packing::LEAST_BYTES {
            self.counts.not_shrunk.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    fn compress(&mut self, plain: &[u8]) -> Option<usize> {
        let effort = self.packing.effort();
        if self.context.as_ref().is_none_or(|(_, of)| *of != effort) {
            let mut context = CCtx::try_create()?;
            let level = match effort {
                Effort::Quick => 1,
                Effort::Thorough => 3,
            };
            context.set_parameter(CParameter::CompressionLevel(level)).ok()?;
            self.context = Some((context, effort));
        }
        let (context, _) = self.context.as_mut()?;
        let start = self.ready.len();
        // What does not fit has not shrunk.
        self.ready.resize(start + PIECE_HEADER_BYTES + plain.len(), 0);
        let packed = context.compress2(&mut self.ready[start + PIECE_HEADER_BYTES..], plain).ok();
        let Some(packed) = packed.filter(|packed| Packing::has_shrunk(plain.len(), *packed)) else {
            self.ready.truncate(start);
            return None;
        };
        let header = PieceHeader { plain: plain.len() as u32, packed: Some(packed as u32) };
        self.ready[start..start + PIECE_HEADER_BYTES].copy_from_slice(&header.encode());
        self.ready.truncate(start + PIECE_HEADER_BYTES + packed);
        Some(packed)
    }

    /// Pieces that are ready to be sent.
    pub fn ready(&self) -> &[u8] {
        &self.ready
    }

    /// What was ready has been sent; the connection was waited for so long.
    pub fn clear(&mut self, waited: Duration) {
        self.ready.clear();
        self.waited(waited);
    }

    /// The connection was waited for.
    pub fn waited(&mut self, time: Duration) {
        self.sent.waited += time;
    }

    /// A rate limit was waited for, after something had been sent.
    pub fn paced(&mut self, time: Duration) {
        self.sent.waited += time;
        self.sent.elapsed += time;
    }

    /// All that was added has been sent. Says how many bytes have travelled.
    pub fn sent(&mut self) -> usize {
        let mut sent = std::mem::take(&mut self.sent);
        sent.elapsed += self.began.elapsed();
        self.packing.handle_sent(&sent);
        sent.travelled as usize
    }
}

/// The piece that a stream is receiving.
#[derive(Default)]
pub struct PieceUnpacker {
    context: Option<DCtx<'static>>,
    /// Bytes of the piece that have not been handed out: if it came compressed, of `plain` from `at` on.
    plain: Vec<u8>,
    at: usize,
    /// If it travels as it is, so many.
    left: usize,
}

impl PieceUnpacker {
    /// Bytes of the piece that are here and have not been handed out.
    pub fn unpacked(&self) -> &[u8] {
        &self.plain[self.at..]
    }

    /// Bytes of the piece that come as they are.
    pub fn coming(&self) -> usize {
        self.left
    }

    /// So many bytes come as they are.
    pub fn expect(&mut self, plain: u32) {
        self.left = plain as usize;
    }

    /// So many bytes have been handed out. With `keeps`, buffers stay for the next piece.
    pub fn hand_out(&mut self, bytes: usize, keeps: bool) {
        if self.left > 0 {
            self.left -= bytes;
            return;
        }
        self.at += bytes;
        if self.at == self.plain.len() {
            self.at = 0;
            self.plain.clear();
            if !keeps {
                *self = Self::default();
            }
        }
    }

    /// Unpacks a piece that has come: it has `plain` bytes, or the peer has broken the protocol. There is memory for no
    /// more than those.
    ///
    /// # Errors
    /// What the peer did.
    pub fn unpack(&mut self, packed: &[u8], plain: u32, stages: &Stages) -> Result<(), ProtocolError> {
        let mut context = self.context.take().unwrap_or_else(DCtx::create);
        self.plain.resize(plain as usize, 0);
        let buffer = &mut self.plain[..];
        let unpacked = stages.work(Work::Unpack, buffer.len(), || context.decompress(buffer, packed));
        self.context = Some(context);
        if unpacked == Ok(plain as usize) {
            return Ok(());
        }
        self.plain.clear();
        let what = format!("the peer sent a compressed piece of {} bytes that is not {plain} bytes", packed.len());
        Err(ProtocolError::violation(what))
    }
}

/// A violation as an error of the connection, for a stream that says whose fault it can be.
pub fn as_io(error: ProtocolError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(packed: &[u8], plain: u32) -> Result<Vec<u8>, ProtocolError> {
        let mut unpacker = PieceUnpacker::default();
        unpacker.unpack(packed, plain, &Stages::default())?;
        Ok(unpacker.unpacked().to_vec())
    }

    fn packed(plain: &[u8]) -> Vec<u8> {
        let counts = Arc::new(PackedBytes::default());
        let mut packer = PiecePacker::new(Arc::clone(&counts));
        assert!(packer.add(plain, &Stages::default()));
        assert_eq!(packer.sent(), packer.ready().len() - PIECE_HEADER_BYTES, "what travels");
        assert_eq!(counts.plain.load(Ordering::Relaxed), plain.len() as u64);
        let header = packer.ready()[..PIECE_HEADER_BYTES].try_into().unwrap();
        let header = PieceHeader::decode(header).unwrap();
        assert_eq!(header.plain as usize, plain.len());
        assert_eq!(header.packed.unwrap() as usize, packer.ready().len() - PIECE_HEADER_BYTES);
        packer.ready()[PIECE_HEADER_BYTES..].to_vec()
    }

    #[test]
    fn pieces_come_back() {
        for length in [Packing::LEAST_BYTES, 5000, PIECE_BYTES] {
            let plain: Vec<u8> = (0..length).map(|at| (at / 7 % 251) as u8).collect();
            let packed = packed(&plain);
            assert!(packed.len() < plain.len() / 2);
            assert!(unpack(&packed, length as u32).unwrap() == plain);
        }
    }

    /// A peer's piece is unpacked into as many bytes as it says, whatever it holds.
    #[test]
    fn piece_that_is_not_what_it_says_is_refused() {
        let plain = vec![5; PIECE_BYTES];
        let good = packed(&plain);
        assert!(good.len() < 100, "{}", good.len());
        for length in [1, PIECE_BYTES as u32 - 1] {
            assert!(unpack(&good, length).is_err(), "it unpacks to more than {length} bytes");
        }
        let short = packed(&plain[..1000]);
        assert!(unpack(&short, 1001).is_err(), "it unpacks to less");
        assert!(unpack(&good[..good.len() - 1], PIECE_BYTES as u32).is_err());
        assert!(unpack(b"no frame of zstd at all", 100).is_err());
        assert!(unpack(&[], 100).is_err());
    }

    #[test]
    fn what_does_not_shrink_is_sent_as_it_is() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let noise: Vec<u8> = (0..PIECE_BYTES).map(|_| next()).collect();
        let counts = Arc::new(PackedBytes::default());
        let mut packer = PiecePacker::new(Arc::clone(&counts));
        assert!(!packer.add(&noise, &Stages::default()));
        assert_eq!(packer.ready().len(), PIECE_HEADER_BYTES);
        assert_eq!(packer.sent(), noise.len());
        assert_eq!(counts.not_shrunk.load(Ordering::Relaxed), noise.len() as u64);
        assert_eq!(counts.plain.load(Ordering::Relaxed), 0);
        // A short one goes behind its header.
        assert!(packer.add(&noise[..100], &Stages::default()));
        assert_eq!(counts.not_shrunk.load(Ordering::Relaxed), noise.len() as u64, "nobody tried");
    }
}
