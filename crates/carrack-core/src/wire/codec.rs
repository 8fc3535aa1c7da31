//! One message from bytes, and text from a peer.

use super::{ProtocolError, fields};
use crate::{limits, path};

/// Decodes one protobuf message of at most [`limits::MESSAGE_BYTES`], and of at most so many fields.
pub(super) fn decode<M: prost::Message + Default>(
    bytes: &[u8],
    what: &str,
    fields: fields::Most,
) -> Result<M, ProtocolError> {
    if bytes.len() > limits::MESSAGE_BYTES {
        return Err(ProtocolError::violation(format!("the peer sent {what} of {} bytes", bytes.len())));
    }
    fields::check(bytes, what, fields)?;
    M::decode(bytes)
        .map_err(|error| ProtocolError::violation(format!("the peer sent {what} that cannot be read: {error}")))
}

/// Error text from a peer: bounded, printable. Of text that is both already it changes nothing.
pub fn peer_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(limits::ERROR_TEXT_BYTES));
    for character in text.chars() {
        // Backslashes were doubled where the text was made; only what could drive a terminal is taken out here.
        let safe = if path::drives_terminal(character) { '\u{fffd}' } else { character };
        if shown.len() + safe.len_utf8() > limits::ERROR_TEXT_BYTES {
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
