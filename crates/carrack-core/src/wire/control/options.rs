//! What both ends of a transfer must agree on, in types that cannot be wrong: its options, and the key
//! of its data connections.

use super::raw;
use crate::limits;
use crate::request::{CongestionControl, CopyOptions, Digests, Durability, Encrypt, Existing, MainDigest, Verify};
use crate::wire::{ProtocolError, Version};

/// Options of a transfer, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferOptions {
    /// A power of two within bounds.
    pub block_bytes: u32,
    /// The digests that both ends compute.
    pub digests: Digests,
    /// How files are proved.
    pub verify: Verify,
    /// What happens to names that exist.
    pub existing: Existing,
    /// Bytes a second.
    pub rate_limit: Option<u64>,
    /// The sender's congestion control.
    pub congestion: Option<CongestionControl>,
    /// Tell of every item.
    pub item_events: bool,
    /// The protocol version that both ends speak.
    pub version: Version,
    /// What has reached stable storage, and when.
    pub durability: Durability,
    /// A source may grow while it is copied.
    pub allow_growing: bool,
}

impl TransferOptions {
    /// What both ends must agree on for a copy that is asked for so. `verify` is what the receiver does.
    pub fn of(options: &CopyOptions, verify: Verify, block_bytes: u32, version: Version) -> Self {
        Self {
            block_bytes,
            digests: options.digest,
            verify,
            existing: options.existing,
            rate_limit: options.rate_limit,
            congestion: options.congestion,
            item_events: options.item_events,
            version,
            durability: options.durability,
            allow_growing: options.allow_growing,
        }
    }
}

impl From<TransferOptions> for raw::Options {
    fn from(options: TransferOptions) -> Self {
        Self {
            block_bytes: options.block_bytes,
            blake3: options.digests.main == Some(MainDigest::Blake3),
            adler32: options.digests.adler32,
            crc32c: options.digests.crc32c,
            verify: options.verify.number(),
            existing: options.existing.number(),
            rate_limit: options.rate_limit.unwrap_or(0),
            item_events: options.item_events,
            streams: 1,
            version: options.version.number(),
            durability: options.durability.number(),
            allow_growing: options.allow_growing,
            congestion: options.congestion.map(|congestion| congestion.name().to_string()).unwrap_or_default(),
            xxh128: options.digests.main == Some(MainDigest::Xxh128),
        }
    }
}

/// Every value is checked.
impl TryFrom<raw::Options> for TransferOptions {
    type Error = ProtocolError;

    fn try_from(options: raw::Options) -> Result<Self, ProtocolError> {
        let block = options.block_bytes;
        if !block.is_power_of_two() || !(limits::BLOCK_BYTES_MIN..=limits::BLOCK_BYTES_MAX).contains(&block) {
            return Err(ProtocolError::violation(format!("the peer asked for blocks of {block} bytes")));
        }
        if !(1..=u32::from(limits::STREAMS)).contains(&options.streams) {
            return Err(ProtocolError::violation(format!("the peer asked for {} streams", options.streams)));
        }
        let unknown = |what, value| ProtocolError::violation(format!("the peer asked for unknown {what} {value}"));
        let version = Version::from_number(options.version).ok_or_else(|| unknown("version", options.version))?;
        Ok(Self {
            block_bytes: block,
            digests: digests(options.blake3, options.xxh128, options.adler32, options.crc32c)?,
            verify: Verify::from_number(options.verify).ok_or_else(|| unknown("verification", options.verify))?,
            existing: Existing::from_number(options.existing)
                .ok_or_else(|| unknown("treatment of existing files", options.existing))?,
            rate_limit: (options.rate_limit > 0).then_some(options.rate_limit),
            congestion: match options.congestion.as_str() {
                "" => None,
                name => Some(CongestionControl::new(name).ok_or_else(|| {
                    ProtocolError::violation("the peer asked for a congestion control that no kernel can have")
                })?),
            },
            item_events: options.item_events,
            version,
            durability: Durability::from_number(options.durability)
                .ok_or_else(|| unknown("durability", options.durability))?,
            allow_growing: options.allow_growing,
        })
    }
}

/// Which digests, from the flags of a message: what is verified, is verified by one.
///
/// # Errors
/// When there are two.
pub(super) fn digests(blake3: bool, xxh128: bool, adler32: bool, crc32c: bool) -> Result<Digests, ProtocolError> {
    let main = match (blake3, xxh128) {
        (true, true) => return Err(ProtocolError::violation("the peer asked for BLAKE3 and XXH3-128 at once")),
        (true, false) => Some(MainDigest::Blake3),
        (false, true) => Some(MainDigest::Xxh128),
        (false, false) => None,
    };
    Ok(Digests { main, adler32, crc32c })
}

/// What a session's data connections need, checked.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    /// The number that tells the session from all others.
    pub id: [u8; 16],
    /// Proves that a connection belongs to it.
    pub secret: [u8; 32],
    /// TLS, or clear with MACs.
    pub encrypt: Encrypt,
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionKey").field("encrypt", &self.encrypt).finish_non_exhaustive()
    }
}

impl From<SessionKey> for raw::Session {
    fn from(key: SessionKey) -> Self {
        Self { id: key.id.to_vec(), secret: key.secret.to_vec(), encrypt: key.encrypt == Encrypt::Tls }
    }
}

impl TryFrom<Option<raw::Session>> for SessionKey {
    type Error = ProtocolError;

    fn try_from(session: Option<raw::Session>) -> Result<Self, ProtocolError> {
        let wrong = || ProtocolError::violation("the peer sent a session without a whole identifier and secret");
        let session = session.ok_or_else(wrong)?;
        Ok(Self {
            id: session.id.try_into().map_err(|_| wrong())?,
            secret: session.secret.try_into().map_err(|_| wrong())?,
            encrypt: if session.encrypt { Encrypt::Tls } else { Encrypt::None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_bounds_are_refused() {
        let good = TransferOptions {
            block_bytes: 4 << 20,
            digests: Digests { crc32c: true, ..Digests::BLAKE3 },
            verify: Verify::Disk,
            existing: Existing::Older,
            rate_limit: Some(5),
            congestion: CongestionControl::new("bbr"),
            item_events: true,
            version: Version::NEWEST,
            durability: Durability::Each,
            allow_growing: true,
        };
        let message = raw::Options::from(good);
        assert_eq!(TransferOptions::try_from(message.clone()), Ok(good));
        for block_bytes in [0, 1, 4095, 1 << 30, u32::MAX] {
            assert!(TransferOptions::try_from(raw::Options { block_bytes, ..message.clone() }).is_err());
        }
        for streams in [0, 10_000, u32::MAX] {
            assert!(TransferOptions::try_from(raw::Options { streams, ..message.clone() }).is_err());
        }
        assert!(TransferOptions::try_from(raw::Options { verify: 4, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(raw::Options { durability: 3, ..message.clone() }).is_err());
        for congestion in ["sixteen_letters_", "a b", "\0", "../x"] {
            let congestion = congestion.to_string();
            assert!(TransferOptions::try_from(raw::Options { congestion, ..message.clone() }).is_err());
        }
        for version in [0, 2, 99] {
            assert!(TransferOptions::try_from(raw::Options { version, ..message.clone() }).is_err());
        }
        assert!(TransferOptions::try_from(raw::Options { existing: 4, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(raw::Options { xxh128: true, ..message }).is_err(), "two to verify by");
    }

    #[test]
    fn secret_does_not_print() {
        let key = SessionKey { id: [0xaa; 16], secret: [0xbb; 32], encrypt: Encrypt::Tls };
        assert!(!format!("{key:?}").contains("187"));
        assert_eq!(SessionKey::try_from(Some(key.clone().into())), Ok(key));
        assert!(SessionKey::try_from(Some(raw::Session::default())).is_err());
    }
}
