//! Values that control messages and peer messages share: failures and digests of files.

use std::borrow::Cow;

use prost::Message;

use crate::digest::FileDigests;
use crate::failure::{At, ErrorCode, Failure, Reason, Side};
use crate::fingerprint::Fingerprint;
use crate::limits;

use super::{ProtocolError, peer_text};

/// Why something failed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawFailure {
    /// Its code's number.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// Its side's number.
    #[prost(uint32, tag = "2")]
    pub side: u32,
    /// The whole text: all that is left where its parts cannot be read.
    #[prost(string, tag = "3")]
    pub message: String,
    /// A [`RawParts`]. Decoded only when the failure is: bytes cost no
    /// more memory than they are long, however many failures a message has.
    #[prost(bytes = "vec", tag = "4")]
    pub parts: Vec<u8>,
}

/// What a failure's text is made of.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawParts {
    /// 0 for none, or one that is not known here. Always said, so that this is never empty.
    #[prost(uint32, optional, tag = "1")]
    pub reason: Option<u32>,
    /// The end, as the user named it.
    #[prost(string, optional, tag = "2")]
    pub end: Option<String>,
    /// The path there.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub path: Option<Vec<u8>>,
    /// Bytes from the beginning of the file.
    #[prost(uint64, optional, tag = "4")]
    pub offset: Option<u64>,
    /// What was being done.
    #[prost(string, optional, tag = "5")]
    pub call: Option<String>,
    /// What went wrong; absent where the whole text is that.
    #[prost(string, optional, tag = "6")]
    pub why: Option<String>,
    /// A [`RawFailure`] that led to this one.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub source: Option<Vec<u8>>,
}

/// Digests of a file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawDigests {
    /// 32 bytes, or none.
    #[prost(bytes = "vec", tag = "1")]
    pub blake3: Vec<u8>,
    /// Adler-32.
    #[prost(uint32, optional, tag = "2")]
    pub adler32: Option<u32>,
    /// CRC-32C.
    #[prost(uint32, optional, tag = "3")]
    pub crc32c: Option<u32>,
    /// 16 bytes, or none.
    #[prost(bytes = "vec", tag = "4")]
    pub xxh128: Vec<u8>,
}

impl From<FileDigests> for RawDigests {
    fn from(digests: FileDigests) -> Self {
        Self {
            blake3: digests.blake3.map(|digest| digest.to_vec()).unwrap_or_default(),
            xxh128: digests.xxh128.map(|digest| digest.to_vec()).unwrap_or_default(),
            adler32: digests.adler32,
            crc32c: digests.crc32c,
        }
    }
}

impl From<RawDigests> for FileDigests {
    fn from(digests: RawDigests) -> Self {
        Self {
            blake3: digests.blake3.as_slice().try_into().ok(),
            xxh128: digests.xxh128.as_slice().try_into().ok(),
            adler32: digests.adler32,
            crc32c: digests.crc32c,
        }
    }
}

impl RawFailure {
    /// How long it is when it is encoded, in bytes.
    pub fn bytes(&self) -> usize {
        self.encoded_len()
    }

    fn encode_at(failure: &Failure, depth: usize) -> Self {
        let (message, why) = (peer_text(&failure.message()), peer_text(&failure.why));
        let (code, side) = (failure.code.number(), failure.side.number());
        let at = failure.at.as_deref();
        let source = failure.source.as_deref().filter(|_| depth < limits::FAILURE_SOURCES);
        let parts = RawParts {
            reason: Some(failure.reason.map_or(0, Reason::number)),
            end: at.and_then(|at| at.end.as_deref()).map(peer_text),
            path: at.and_then(|at| at.path.clone()).filter(|path| path.len() <= limits::PATH_BYTES),
            offset: at.and_then(|at| at.offset),
            call: failure.call.as_deref().map(peer_text),
            why: (why != message).then_some(why),
            source: source.map(|source| Self::encode_at(source, depth + 1).encode_to_vec()),
        };
        Self { code, side, message, parts: parts.encode_to_vec() }
    }

    fn decode_at(&self, depth: usize) -> Failure {
        // A side that this version does not know is none of the two ends.
        let side = Side::from_number(self.side).unwrap_or(Side::Link);
        let mut failure = Failure::new(ErrorCode::from_number(self.code), side, peer_text(&self.message));
        let is_sized = (1..=limits::FAILURE_PARTS_BYTES).contains(&self.parts.len());
        let Some(parts) = RawParts::decode(&self.parts[..]).ok().filter(|_| is_sized) else {
            return failure;
        };
        failure.reason = parts.reason.and_then(Reason::from_number);
        let at = At {
            end: parts.end.as_deref().map(peer_text),
            path: parts.path.filter(|path| path.len() <= limits::PATH_BYTES),
            offset: parts.offset,
        };
        failure.at = Some(at).filter(|at| *at != At::default()).map(Box::new);
        failure.call = parts.call.as_deref().map(peer_text).map(Cow::Owned);
        failure.why = parts.why.as_deref().map_or(failure.why, peer_text);
        let source = parts.source.filter(|_| depth < limits::FAILURE_SOURCES);
        let source = source.and_then(|bytes| Self::decode(&bytes[..]).ok());
        failure.source = source.map(|source| Box::new(source.decode_at(depth + 1)));
        failure
    }
}

/// How many bytes a failure takes in a message.
pub fn failure_bytes(failure: &Failure) -> usize {
    RawFailure::encode_at(failure, 0).bytes()
}

impl From<Failure> for RawFailure {
    fn from(failure: Failure) -> Self {
        Self::encode_at(&failure, 0)
    }
}

impl From<RawFailure> for Failure {
    fn from(failure: RawFailure) -> Self {
        failure.decode_at(0)
    }
}

/// What a state of a file is known by, as a message has it: empty for none.
///
/// # Errors
/// When it has another length.
pub fn checked_identity(bytes: Vec<u8>) -> Result<Option<Fingerprint>, ProtocolError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let wrong = |bytes: Vec<u8>| ProtocolError::violation(format!("an identity of {} bytes", bytes.len()));
    bytes.try_into().map(Some).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(why: &str) -> Failure {
        Failure::new(ErrorCode::NoSpace, Side::Destination, why)
    }

    fn whole() -> Failure {
        let inner = failure("inner").during("sync").at_path(b"\xff".to_vec());
        failure("outer")
            .for_reason(Reason::SourceBusy)
            .at_end("h:d")
            .at_path(b"a/b".to_vec())
            .at_offset(9)
            .caused_by(inner)
    }

    #[test]
    fn failures_come_back_with_all_parts() {
        for said in [failure("why"), whole(), failure("").during("open"), failure("x").at_end("h")] {
            let raw = RawFailure::from(said.clone());
            assert_eq!(raw.message, said.message());
            assert_eq!(raw.bytes(), failure_bytes(&said));
            assert_eq!(Failure::from(raw), said);
        }
    }

    #[test]
    fn failure_parts_that_cannot_be_read_leave_the_text() {
        for parts in [vec![0xff; 3], vec![0; limits::FAILURE_PARTS_BYTES + 1]] {
            let raw = RawFailure { parts, ..failure("x").at_path(b"p".to_vec()).into() };
            assert_eq!(Failure::from(raw).why, "p: x");
        }
        let unknown = RawParts { reason: Some(99_999), ..RawParts::default() }.encode_to_vec();
        assert_eq!(Failure::from(RawFailure { parts: unknown, ..failure("x").into() }), failure("x"));
    }

    /// A peer may nest as many as a message holds: each would cost a frame of the stack.
    #[test]
    fn failures_that_led_to_one_another_are_bounded_when_they_are_decoded() {
        let mut raw = RawFailure::default();
        for _ in 0..1000 {
            let source = Some(raw.encode_to_vec());
            raw.parts = RawParts { reason: Some(0), source, ..RawParts::default() }.encode_to_vec();
        }
        assert!(raw.parts.len() <= limits::FAILURE_PARTS_BYTES);
        let decoded = Failure::from(raw);
        let sources = std::iter::successors(Some(&decoded), |failure| failure.source.as_deref()).count() - 1;
        assert_eq!(sources, limits::FAILURE_SOURCES);
    }

    #[test]
    fn failure_parts_are_bounded_and_printable() {
        let long = "\u{1b}".repeat(3 * limits::ERROR_TEXT_BYTES);
        let mut deep = failure("last");
        for _ in 0..20 {
            deep = failure(&long).during(long.clone()).at_end(long.clone()).at_path(vec![b'p'; 70_000]).caused_by(deep);
        }
        let raw = RawFailure::from(deep);
        assert!(raw.parts.len() <= limits::FAILURE_PARTS_BYTES);
        let mut failure = Failure::from(raw);
        let mut sources = 0;
        loop {
            let call = failure.call.as_deref().unwrap_or_default();
            for text in [call, &failure.why, failure.end().unwrap_or_default()] {
                assert!(text.len() <= limits::ERROR_TEXT_BYTES && !text.contains('\u{1b}'));
            }
            assert_eq!(failure.path(), None, "too long for one");
            let Some(source) = failure.source else { break };
            (failure, sources) = (*source, sources + 1);
        }
        assert_eq!(sources, limits::FAILURE_SOURCES);
    }
}
