//! Frames between the service and a file worker: the length of a head, the length of a body (both 32 bits, little
//! endian), the head as JSON, the body as bytes.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of the two lengths.
pub const LENGTHS_BYTES: usize = 8;
/// The longest head: many paths fit.
pub const HEAD_BYTES_MAX: usize = 1 << 20;
/// The longest body: a window of entries with long names fits, or a block of a file.
pub const BODY_BYTES_MAX: usize = 8 << 20;

/// How long the parts of a frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Bytes of the head.
    pub head: usize,
    /// Bytes of the body.
    pub body: usize,
}

impl Lengths {
    /// Reads the lengths of a frame.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if one is above its maximum.
    pub fn decode(bytes: [u8; LENGTHS_BYTES]) -> io::Result<Self> {
        let [a, b, c, d, e, f, g, h] = bytes;
        let length = |bytes| usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX);
        let lengths = Self { head: length([a, b, c, d]), body: length([e, f, g, h]) };
        lengths.check().map(|()| lengths)
    }

    fn check(&self) -> io::Result<()> {
        if self.head <= HEAD_BYTES_MAX && self.body <= BODY_BYTES_MAX {
            return Ok(());
        }
        let why = format!("a frame of {} and {} bytes is longer than any is", self.head, self.body);
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }

    fn encode(self) -> [u8; LENGTHS_BYTES] {
        let mut bytes = [0; LENGTHS_BYTES];
        // Checked before: both fit.
        bytes[..4].copy_from_slice(&u32::try_from(self.head).unwrap_or(u32::MAX).to_le_bytes());
        bytes[4..].copy_from_slice(&u32::try_from(self.body).unwrap_or(u32::MAX).to_le_bytes());
        bytes
    }
}

/// The lengths and the head of a frame as bytes; the body goes behind them.
///
/// # Errors
/// If the frame would be longer than any is.
pub fn encode_head(head: &impl Serialize, body_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; LENGTHS_BYTES];
    serde_json::to_writer(&mut bytes, head)?;
    let lengths = Lengths { head: bytes.len() - LENGTHS_BYTES, body: body_bytes };
    lengths.check()?;
    bytes[..LENGTHS_BYTES].copy_from_slice(&lengths.encode());
    Ok(bytes)
}

/// Reads a head. What is wrong with it is told without its text, which may have secrets.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`].
pub fn decode_head<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let why = format!("the head of a frame cannot be read: line {}, column {}", error.line(), error.column());
        io::Error::new(io::ErrorKind::InvalidData, why)
    })
}

/// Writes a frame.
///
/// # Errors
/// Those of the output, and if the frame would be longer than any is.
pub fn write(output: &mut impl Write, head: &impl Serialize, body: &[u8]) -> io::Result<()> {
    output.write_all(&encode_head(head, body.len())?)?;
    output.write_all(body)?;
    output.flush()
}

/// Reads a frame; `None` where the input ends between two.
///
/// # Errors
/// Those of the input; [`io::ErrorKind::UnexpectedEof`] where it ends within a frame; [`io::ErrorKind::InvalidData`].
pub fn read<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; LENGTHS_BYTES];
    let first = loop {
        match input.read(&mut lengths) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    input.read_exact(&mut lengths[first..])?;
    let lengths = Lengths::decode(lengths)?;
    let mut head = vec![0; lengths.head];
    input.read_exact(&mut head)?;
    let head = decode_head(&head)?;
    let mut body = vec![0; lengths.body];
    input.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Ask, ToWorker};
    use super::*;

    #[test]
    fn frame_that_is_too_long_is_neither_written_nor_read() {
        let body = vec![0; BODY_BYTES_MAX + 1];
        assert_eq!(write(&mut Vec::new(), &1, &body).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let head = "x".repeat(HEAD_BYTES_MAX);
        assert_eq!(write(&mut Vec::new(), &head, &[]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        // No memory is taken for what a length only claims.
        let claims = [0xff; LENGTHS_BYTES];
        assert_eq!(read::<u8>(&mut &claims[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn frame_with_a_wrong_head_is_refused_without_its_text() {
        let mut bytes = Vec::new();
        write(&mut bytes, &serde_json::json!({ "id": 1, "ask": { "ask": "canary" } }), b"").unwrap();
        let error = read::<ToWorker>(&mut &bytes[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(!error.to_string().contains("canary"), "{error}");
    }

    proptest! {
        #[test]
        fn frames_come_back_as_they_were_written(
            frames in proptest::collection::vec((any::<u64>(), ".{0,40}", proptest::collection::vec(any::<u8>(), 0..200)), 0..5)
        ) {
            let mut bytes = Vec::new();
            for (id, path, body) in &frames {
                let ask = Ask::MakeDirectory { path: path.clone(), parents: true };
                write(&mut bytes, &ToWorker { id: *id, ask }, body).unwrap();
            }
            let mut input = &bytes[..];
            for (id, path, body) in &frames {
                let (head, read_body) = read::<ToWorker>(&mut input).unwrap().unwrap();
                prop_assert_eq!((head.id, &read_body), (*id, body));
                let same = matches!(&head.ask, Ask::MakeDirectory { path: read, .. } if read == path);
                prop_assert!(same);
            }
            prop_assert!(read::<ToWorker>(&mut input).unwrap().is_none());
        }

        #[test]
        fn frame_of_any_bytes_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), head in 0u8..40) {
            // With a length that is there, too, so that heads and bodies are reached.
            let mut framed = vec![head, 0, 0, 0, 1, 0, 0, 0];
            framed.extend_from_slice(&bytes);
            for bytes in [&bytes, &framed] {
                let mut input = &bytes[..];
                while let Ok(Some((_, body))) = read::<ToWorker>(&mut input) {
                    prop_assert!(body.len() <= bytes.len());
                }
            }
        }

        #[test]
        fn frame_that_is_cut_short_is_refused(cut in 1usize..60) {
            let mut bytes = Vec::new();
            write(&mut bytes, &ToWorker { id: 7, ask: Ask::Cancel }, b"body").unwrap();
            let cut = cut.min(bytes.len() - 1);
            let error = read::<ToWorker>(&mut &bytes[..cut]).unwrap_err();
            prop_assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
