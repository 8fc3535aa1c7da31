//! What a data stream is cut into where its content may be compressed: a row of pieces, each a [`PieceHeader`] of 8
//! bytes and the bytes that it announces. Frames ([`super::frame`]), with their MACs where there are any, are what the
//! pieces hold, and do not know of them: a piece may end in the midst of a frame.

use super::ProtocolError;
use crate::limits;

/// Bytes of a piece's header.
pub const PIECE_HEADER_BYTES: usize = 8;

/// Announces a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceHeader {
    /// Bytes of it, 1 to [`limits::PIECE_BYTES`].
    pub plain: u32,
    /// So many bytes follow, fewer than those: one frame of zstd that unpacks to them. `None`: they follow as they are.
    pub packed: Option<u32>,
}

impl PieceHeader {
    /// Encodes it as it travels.
    pub fn encode(&self) -> [u8; PIECE_HEADER_BYTES] {
        let mut bytes = [0; PIECE_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.plain.to_be_bytes());
        bytes[4..].copy_from_slice(&self.packed.unwrap_or(0).to_be_bytes());
        bytes
    }

    /// Decodes from bytes.
    ///
    /// # Errors
    /// On a piece of nothing or of more than [`limits::PIECE_BYTES`], and on one that has not shrunk.
    pub fn decode(bytes: &[u8; PIECE_HEADER_BYTES]) -> Result<Self, ProtocolError> {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |value, &byte| (value << 8) | u32::from(byte));
        let (plain, packed) = (number(&bytes[..4]), number(&bytes[4..]));
        if !(1..=limits::PIECE_BYTES).contains(&plain) || packed >= plain {
            let what = format!("the peer sent a piece of {plain} bytes, compressed to {packed}");
            return Err(ProtocolError::violation(what));
        }
        Ok(Self { plain, packed: Some(packed).filter(|&packed| packed > 0) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn piece_that_decodes_encodes_to_the_same(bytes in any::<[u8; PIECE_HEADER_BYTES]>(), plain in 1..=limits::PIECE_BYTES, packed: u32) {
            if let Ok(piece) = PieceHeader::decode(&bytes) {
                prop_assert_eq!(piece.encode(), bytes);
            }
            let piece = PieceHeader { plain, packed: Some(packed % plain).filter(|&packed| packed > 0) };
            prop_assert_eq!(PieceHeader::decode(&piece.encode()), Ok(piece));
        }
    }

    #[test]
    fn piece_that_no_sender_sends_is_refused() {
        let most = limits::PIECE_BYTES;
        for (plain, packed) in [(0, 0), (most + 1, 0), (u32::MAX, 5), (100, 100), (100, 101), (1, u32::MAX), (0, 1)] {
            let bytes = PieceHeader { plain, packed: Some(packed) }.encode();
            assert!(PieceHeader::decode(&bytes).is_err(), "{plain} {packed}");
        }
        assert!(PieceHeader::decode(&PieceHeader { plain: most, packed: Some(most - 1) }.encode()).is_ok());
    }
}
