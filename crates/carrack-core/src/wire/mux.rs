//! Several conversations over one control connection.
//!
//! Each frame: length of the payload (u32, big-endian), channel (u16), payload. An empty frame on
//! [`Channel::CONTROL`] is a heartbeat. Channels from [`Channel::FIRST_TUNNEL`] on carry data streams when no direct
//! connection could be made.

use super::ProtocolError;
use crate::limits;

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 6;

/// Which conversation a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel(pub u16);

impl Channel {
    /// The command and this end.
    pub const CONTROL: Self = Self(0);
    /// The sender and the receiver of the transfer.
    pub const PEER: Self = Self(1);
    /// The first data stream carried inside.
    pub const FIRST_TUNNEL: Self = Self(2);
}

/// Writes a frame's header.
///
/// # Panics
/// When the payload is longer than [`limits::MUX_FRAME_BYTES`]; writers cut before.
pub fn encode_header(channel: Channel, payload_bytes: usize) -> [u8; HEADER_BYTES] {
    assert!(payload_bytes <= limits::MUX_FRAME_BYTES, "frames are cut before they are framed");
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(payload_bytes as u32).to_be_bytes());
    header[4..].copy_from_slice(&channel.0.to_be_bytes());
    header
}

/// Reads a frame's header.
///
/// # Errors
/// When the length is above [`limits::MUX_FRAME_BYTES`]: nothing is allocated for it.
pub fn decode_header(header: [u8; HEADER_BYTES]) -> Result<(Channel, usize), ProtocolError> {
    let [a, b, c, d, e, f] = header;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > limits::MUX_FRAME_BYTES {
        return Err(ProtocolError::violation(format!("the peer announced a control frame of {length} bytes")));
    }
    Ok((Channel(u16::from_be_bytes([e, f])), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mux_frames_come_back_and_bombs_are_refused() {
        assert_eq!(decode_header(encode_header(Channel(7), 1234)), Ok((Channel(7), 1234)));
        assert!(decode_header([0xff; 6]).is_err());
    }
}
