//! Values that control messages and peer messages share: failures and digests of files.

use crate::digest::FileDigests;
use crate::failure::{ErrorCode, Failure, Side};

use super::peer_text;

/// Why something failed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawFailure {
    /// Its code's number.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// Its side's number.
    #[prost(uint32, tag = "2")]
    pub side: u32,
    /// In words.
    #[prost(string, tag = "3")]
    pub message: String,
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
    /// 16 bytes, or none (version 3).
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

impl From<Failure> for RawFailure {
    fn from(failure: Failure) -> Self {
        Self { code: failure.code.number(), side: failure.side.number(), message: peer_text(&failure.message) }
    }
}

impl From<RawFailure> for Failure {
    fn from(failure: RawFailure) -> Self {
        Self {
            code: ErrorCode::from_number(failure.code),
            // A side that this version does not know is none of the two ends.
            side: Side::from_number(failure.side).unwrap_or(Side::Link),
            message: peer_text(&failure.message),
        }
    }
}
