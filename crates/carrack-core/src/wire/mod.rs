//! Bytes to types and back, nowhere else.
//!
//! Three things travel. *Control messages* ([`control`]): the command and each end, over ssh or a node's TLS connection.
//! *Peer messages* ([`peer`]): the sender and the receiver of one transfer, carried between them by the command. *Frames*
//! ([`frame`]): metadata and payload, over the data streams. The first two are tagged fields (protobuf), so that a newer
//! peer may say more than an older one understands; frames are fixed headers, changed only with [`PROTOCOL_VERSION`].
//!
//! # Versions
//! 1. The first.
//! 2. Resume (`Held`, `Confirm`, `Query`, `Known`, `Present`), results that ask for an item again (`Again`), blocks asked for again after
//!    they had landed; streams made anew while a transfer runs. What an end of version 1 does not understand is not said to it.
//! 3. XXH3-128 in the place of BLAKE3 (`Options`, `Sum`, digests of items; trailers, `Held` and `Complete` carry its 16 bytes and zeros);
//!    how far a dial goes, before its answer (`Connected`); streams that end in good order while a transfer runs (`Retire`), and what
//!    streams carry (in `Stages`).
//! 4. A dialer in the clear masks its first words. Fingerprints of sources, in `Offer`, `Query` and the entries of bundles. Optional fields are
//!    marked (4) where they are defined and in docs/protocol.md: what an end of a version before does not say is absent, and means what
//!    it meant then.

pub mod bounds;
pub mod control;
mod earlier;
pub mod fields;
pub mod frame;
pub mod mux;
mod options;
pub mod peer;
mod status;
mod verbs;

use std::fmt;

use crate::failure::ErrorCode;

/// The version of everything in this module. Both ends say which they speak, and the lower is used.
pub const PROTOCOL_VERSION: u32 = 4;
/// From this version on a transfer can be taken up again, and survives the loss of its streams.
pub const VERSION_RESUME: u32 = 2;
/// From this version on blocks can be verified by XXH3-128.
pub const VERSION_XXH128: u32 = 3;
/// From this version on a sender ends streams in good order when it is asked to, and tells what its streams carry.
pub const VERSION_RETIRE: u32 = 3;
/// From this version on a sender reads its sources once more when it is asked to.
pub const VERSION_VERIFY_SOURCE: u32 = 4;
/// From this version on a sender looks whether two of its sources have the same names.
pub const VERSION_OVERLAPS: u32 = 4;
/// From this version on a receiver tells of directories whose attributes failed in messages of their own, however many there are.
pub const VERSION_DIRECTORIES_FAILED: u32 = 4;
/// From this version on a dialer in the clear masks its first words, which an older listener does not understand.
pub const VERSION_MASKED_HELLO: u32 = 4;
/// From this version on a source's fingerprint travels with each file and link of a bundle.
pub const VERSION_FINGERPRINT: u32 = 4;
/// The oldest version still spoken.
pub const PROTOCOL_VERSION_MIN: u32 = 1;

/// The peer broke the protocol. The session ends; nothing of what it sent is acted upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    /// [`ErrorCode::ProtocolViolation`] mostly.
    pub code: ErrorCode,
    /// What the peer did.
    pub what: String,
}

impl ProtocolError {
    /// A violation, in words: "the peer …".
    pub fn violation(what: impl Into<String>) -> Self {
        Self { code: ErrorCode::ProtocolViolation, what: what.into() }
    }

    /// A path that may not be used.
    pub fn path(path: &[u8], error: crate::path::PathError) -> Self {
        let shown = crate::path::display_bytes(&path[..path.len().min(200)]);
        Self { code: ErrorCode::BadPath, what: format!("the peer sent the path \"{shown}\": {error}") }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ProtocolError {}

/// Decodes one protobuf message of at most [`crate::limits::MESSAGE_BYTES`], and of at most so many fields.
fn decode<M: prost::Message + Default>(bytes: &[u8], what: &str, fields: fields::Most) -> Result<M, ProtocolError> {
    if bytes.len() > crate::limits::MESSAGE_BYTES {
        return Err(ProtocolError::violation(format!("the peer sent {what} of {} bytes", bytes.len())));
    }
    fields::check(bytes, what, fields)?;
    M::decode(bytes)
        .map_err(|error| ProtocolError::violation(format!("the peer sent {what} that cannot be read: {error}")))
}

/// Error text from a peer: bounded, printable. Of text that is both already it changes nothing.
pub fn peer_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(crate::limits::ERROR_TEXT_BYTES));
    for character in text.chars() {
        // Backslashes were doubled where the text was made; only what could drive a terminal is taken out here.
        let safe = if crate::path::drives_terminal(character) { '\u{fffd}' } else { character };
        if shown.len() + safe.len_utf8() > crate::limits::ERROR_TEXT_BYTES {
            break;
        }
        shown.push(safe);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::peer_text;
    use crate::limits::ERROR_TEXT_BYTES;

    #[test]
    fn text_of_a_peer_stays_bounded_and_cannot_drive_a_terminal() {
        assert_eq!(peer_text("a\\b\x1b]0;x\u{9b}\u{202e}é"), "a\\b\u{fffd}]0;x\u{fffd}\u{fffd}é");
        for text in ["\n".repeat(ERROR_TEXT_BYTES), "é".repeat(ERROR_TEXT_BYTES), "x".repeat(ERROR_TEXT_BYTES)] {
            let once = peer_text(&text);
            assert!(once.len() <= ERROR_TEXT_BYTES && once.len() > ERROR_TEXT_BYTES - 4);
            assert_eq!(peer_text(&once), once);
        }
    }
}
