//! What travels on a data stream, from the sender to the receiver only.
//!
//! A stream is a row of frames, each a [`Header`] of 24 bytes and what it announces:
//! - a **block**: `length` bytes of the item `id` from `offset` on, then a [`Trailer`]. With [`FLAG_HOLE`]
//!   no bytes: all are zero.
//! - a **patched block**: `length` bytes of a [patch](super::patch) that makes the block from what the receiver holds
//!   of it, then a trailer, which is that of the block.
//! - a **bundle**: `length` entries; each an [`EntryHeader`] of 24 bytes, with [`FLAG_FINGERPRINT`] its source's
//!   fingerprint of 16 bytes, with [`FLAG_ATTRIBUTES`] a block of attributes, its path, for a symbolic
//!   link its target; for a file its content and a trailer. With [`FLAG_PATCH`] a [patch](super::patch) is in the
//!   place of the content.
//! - the **end**: nothing more on this stream.
//!
//! Integers are big-endian. On a stream without TLS a MAC of 16 bytes ([`MAC_BYTES`]) follows each header, each entry's
//! header with its fingerprint, attributes, path and target, and each trailer: keyed BLAKE3 over a count of MACs so far
//! and the bytes. The trailer's digest covers the content. A header is acted upon only after its MAC has been checked,
//! so nobody on the path can inject, alter, repeat or reorder anything.

use super::ProtocolError;
use crate::attributes::Time;
use crate::digest::{BlockDigest, is_main_of};
use crate::fingerprint::Fingerprint;
use crate::ids::{BundleId, ItemId};
use crate::request::Digests;
use crate::special::SpecialFile;
use crate::{limits, path};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 24;
/// Bytes of a bundle entry's header.
pub const ENTRY_HEADER_BYTES: usize = 24;
/// Bytes of a trailer.
pub const TRAILER_BYTES: usize = 48;
/// Bytes of a MAC, where there is one.
pub const MAC_BYTES: usize = 16;

/// The block is all zeros and its bytes do not follow.
pub const FLAG_HOLE: u8 = 1;
/// The block is the whole file: its digest is finished as BLAKE3 finishes a root.
pub const FLAG_WHOLE: u8 = 2;
/// A bundle's entry: its source's fingerprint precedes the path.
pub const FLAG_FINGERPRINT: u8 = 1;
/// A bundle's entry: a block of attributes precedes the path.
pub const FLAG_ATTRIBUTES: u8 = 2;
/// A bundle's entry, a file: its content is made of what stands there, by a patch. The trailer is that of the content.
pub const FLAG_PATCH: u8 = 4;
/// Bytes of a fingerprint.
pub const FINGERPRINT_BYTES: usize = size_of::<Fingerprint>();

/// Announces what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A block of an offered item.
    Block {
        /// The item's number, from its offer.
        item: ItemId,
        /// Where the block starts in the file, in bytes; a multiple of the transfer's block size.
        offset: u64,
        /// Bytes of it, at most the block size.
        length: u32,
        /// All zeros, and no bytes follow.
        hole: bool,
        /// The block is the whole file.
        whole: bool,
    },
    /// A block of an offered item of which the receiver has told the chunks.
    PatchedBlock {
        /// As of a block.
        item: ItemId,
        /// As of a block.
        offset: u64,
        /// Bytes of the patch, fewer than the block's.
        length: u32,
        /// As of a block.
        whole: bool,
    },
    /// Small items together.
    Bundle {
        /// The bundle's number.
        bundle: BundleId,
        /// Entries that follow.
        entries: u32,
    },
    /// Nothing more on this stream.
    End,
}

impl Header {
    /// Encodes it as it travels.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let (kind, flags, length, id, offset) = match *self {
            Self::Block { item, offset, length, hole, whole } => {
                (1, flag(hole, FLAG_HOLE) | flag(whole, FLAG_WHOLE), length, item.0, offset)
            }
            Self::Bundle { bundle, entries } => (2, 0, entries, bundle.0, 0),
            Self::End => (3, 0, 0, 0, 0),
            Self::PatchedBlock { item, offset, length, whole } => (4, flag(whole, FLAG_WHOLE), length, item.0, offset),
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = kind;
        bytes[1] = flags;
        bytes[4..8].copy_from_slice(&u32::to_be_bytes(length));
        bytes[8..16].copy_from_slice(&u64::to_be_bytes(id));
        bytes[16..].copy_from_slice(&u64::to_be_bytes(offset));
        bytes
    }

    /// From bytes; `block_bytes` is the transfer's block size.
    ///
    /// # Errors
    /// On an unknown kind or flag, and on lengths and offsets beyond any bound.
    pub fn decode(bytes: &[u8; HEADER_BYTES], block_bytes: u32) -> Result<Self, ProtocolError> {
        let length = be_u32(&bytes[4..8]);
        let id = be_u64(&bytes[8..16]);
        let offset = be_u64(&bytes[16..24]);
        let known = match bytes[0] {
            1 => FLAG_HOLE | FLAG_WHOLE,
            4 => FLAG_WHOLE,
            _ => 0,
        };
        if bytes[2..4] != [0, 0] || bytes[1] & !known != 0 {
            return Err(ProtocolError::violation(format!(
                "the peer sent a frame with unknown flags {:02x?}",
                &bytes[1..4]
            )));
        }
        match bytes[0] {
            kind @ (1 | 4) => {
                let end = offset.checked_add(u64::from(length));
                let whole = bytes[1] & FLAG_WHOLE != 0;
                if length > block_bytes
                    || !offset.is_multiple_of(u64::from(block_bytes))
                    || (whole && offset != 0)
                    || end.is_none_or(|end| end > limits::FILE_BYTES)
                {
                    return Err(ProtocolError::violation(format!(
                        "the peer sent a block of {length} bytes at offset {offset}"
                    )));
                }
                let (item, hole) = (ItemId(id), bytes[1] & FLAG_HOLE != 0);
                if kind == 4 {
                    return Ok(Self::PatchedBlock { item, offset, length, whole });
                }
                Ok(Self::Block { item, offset, length, hole, whole })
            }
            2 if length == 0 || length > limits::BUNDLE_ITEMS => {
                Err(ProtocolError::violation(format!("the peer sent a bundle of {length} items")))
            }
            2 => Ok(Self::Bundle { bundle: BundleId(id), entries: length }),
            3 => Ok(Self::End),
            kind => Err(ProtocolError::violation(format!("the peer sent a frame of unknown kind {kind}"))),
        }
    }
}

/// What a bundle's entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file, content and trailer following.
    File,
    /// A directory; its permissions and times come at the end of the transfer.
    Directory,
    /// A symbolic link, its target following the path.
    Symlink,
    /// A further name of a file that is there: [`super::linked::LinkedNames`] follow the path.
    HardLink,
    /// A FIFO, a socket or a device: what it is follows the path ([`SpecialFile::encode`]).
    Special,
}

impl EntryKind {
    /// Whether all that it has follows its path.
    pub fn is_told_whole(self) -> bool {
        matches!(self, Self::Symlink | Self::HardLink | Self::Special)
    }
}

/// Announces one entry of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// What the entry is.
    pub kind: EntryKind,
    /// The source's fingerprint follows, before the path. Never for a directory.
    pub fingerprinted: bool,
    /// A patch comes in the place of the content. Only of a file.
    pub patched: bool,
    /// Bytes of the block of attributes ([`super::attributes`]) that follows, before the path. Never
    /// for a directory, whose attributes come at the end of the transfer.
    pub attribute_bytes: u16,
    /// Bytes of the path that follows.
    pub path_bytes: u16,
    /// Permission bits (07777).
    pub mode: u32,
    /// Bytes of content, of the patch, or of what follows the path.
    pub size: u32,
    /// When the content was last modified.
    pub mtime: Time,
}

impl EntryHeader {
    /// Encodes it as it travels.
    pub fn encode(&self) -> [u8; ENTRY_HEADER_BYTES] {
        let mut bytes = [0; ENTRY_HEADER_BYTES];
        bytes[0] = match self.kind {
            EntryKind::File => 1,
            EntryKind::Directory => 2,
            EntryKind::Symlink => 3,
            EntryKind::HardLink => 4,
            EntryKind::Special => 5,
        };
        bytes[1] = flag(self.fingerprinted, FLAG_FINGERPRINT)
            | flag(self.attribute_bytes > 0, FLAG_ATTRIBUTES)
            | flag(self.patched, FLAG_PATCH);
        bytes[2..4].copy_from_slice(&self.path_bytes.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.attribute_bytes.to_be_bytes());
        bytes[6..8].copy_from_slice(&((self.mode & 0o7777) as u16).to_be_bytes());
        bytes[8..12].copy_from_slice(&self.size.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.mtime.seconds.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.mtime.nanos.to_be_bytes());
        bytes
    }

    /// Decodes from bytes.
    ///
    /// # Errors
    /// On an unknown kind or flag and on sizes beyond their bound. The path itself is checked by [`check_entry_path`].
    pub fn decode(bytes: &[u8; ENTRY_HEADER_BYTES]) -> Result<Self, ProtocolError> {
        let size = be_u32(&bytes[8..12]);
        let (kind, most) = match bytes[0] {
            1 if bytes[1] & FLAG_PATCH != 0 => (EntryKind::File, limits::PATCHED_BYTES),
            1 => (EntryKind::File, limits::BUNDLE_BYTES),
            2 => (EntryKind::Directory, 0),
            3 => (EntryKind::Symlink, limits::LINK_TARGET_BYTES as u64),
            4 => (EntryKind::HardLink, limits::LINKED_NAMES_BYTES),
            5 => (EntryKind::Special, SpecialFile::BYTES as u64),
            kind => {
                return Err(ProtocolError::violation(format!("the peer sent a bundle entry of unknown kind {kind}")));
            }
        };
        let mtime = Time::new(be_u64(&bytes[12..20]) as i64, be_u32(&bytes[20..24]));
        let flags = match kind {
            EntryKind::File => FLAG_FINGERPRINT | FLAG_ATTRIBUTES | FLAG_PATCH,
            EntryKind::Symlink | EntryKind::Special => FLAG_FINGERPRINT | FLAG_ATTRIBUTES,
            EntryKind::HardLink => FLAG_FINGERPRINT,
            EntryKind::Directory => 0,
        };
        // Without the flag nobody looks at these bytes.
        let announced = bytes[1] & FLAG_ATTRIBUTES != 0;
        let attribute_bytes = if announced { u16::from_be_bytes([bytes[4], bytes[5]]) } else { 0 };
        if u64::from(size) > most || !mtime.is_valid() || bytes[1] & !flags != 0 {
            return Err(ProtocolError::violation(format!(
                "the peer sent a bundle entry of {size} bytes with time {} ns",
                mtime.nanos
            )));
        }
        if announced && attribute_bytes == 0 {
            return Err(ProtocolError::violation("the peer sent a bundle entry with a block of no attributes"));
        }
        Ok(Self {
            kind,
            fingerprinted: bytes[1] & FLAG_FINGERPRINT != 0,
            patched: bytes[1] & FLAG_PATCH != 0,
            attribute_bytes,
            path_bytes: u16::from_be_bytes([bytes[2], bytes[3]]),
            mode: be_u32(&bytes[6..8]) & 0o7777,
            size,
            mtime,
        })
    }
}

/// Checks the path of an entry.
///
/// # Errors
/// When it could name anything but something below the destination.
pub fn check_entry_path(bytes: &[u8]) -> Result<(), ProtocolError> {
    path::check_relative(bytes).map_err(|error| ProtocolError::path(bytes, error))
}

/// Follows the content of a block or of a bundled file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// False when the source could not be read to the end: the content is filler and to be dropped.
    pub whole: bool,
    /// The sender's digests of the content.
    pub digest: BlockDigest,
}

impl Trailer {
    /// Encodes it as it travels.
    pub fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[0] = u8::from(!self.whole);
        bytes[8..40].copy_from_slice(&self.digest.main);
        bytes[40..44].copy_from_slice(&self.digest.adler32.to_be_bytes());
        bytes[44..48].copy_from_slice(&self.digest.crc32c.to_be_bytes());
        bytes
    }

    /// From bytes; `wanted` are the transfer's digests.
    ///
    /// # Errors
    /// On an unknown status, and on bytes behind an XXH3-128 where zeros should be.
    pub fn decode(bytes: &[u8; TRAILER_BYTES], wanted: Digests) -> Result<Self, ProtocolError> {
        if bytes[0] > 1 || bytes[1..8] != [0; 7] {
            return Err(ProtocolError::violation(format!(
                "the peer sent a trailer with unknown status {:02x?}",
                &bytes[..8]
            )));
        }
        let mut main = [0; 32];
        main.copy_from_slice(&bytes[8..40]);
        if !is_main_of(&main, wanted) {
            return Err(ProtocolError::violation("the peer sent a trailer with something behind its XXH3-128"));
        }
        let digest = BlockDigest { main, adler32: be_u32(&bytes[40..44]), crc32c: be_u32(&bytes[44..48]) };
        Ok(Self { whole: bytes[0] == 0, digest })
    }
}

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

fn be_u32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, &byte| (value << 8) | u32::from(byte))
}

fn be_u64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| (value << 8) | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::digest::from_xxh128;

    const BLOCK: u32 = 1 << 20;

    proptest! {
        #[test]
        fn frame_that_decodes_encodes_to_the_same(bytes in any::<[u8; HEADER_BYTES]>()) {
            if let Ok(header) = Header::decode(&bytes, BLOCK) {
                let again = Header::decode(&header.encode(), BLOCK);
                prop_assert_eq!(again, Ok(header));
            }
        }

        #[test]
        fn entries_come_back(kind in 1u8..4, fingerprinted: bool, patched: bool, attribute_bytes: u16, path_bytes: u16, mode in 0u32..0o10000, size in 0u32..4096, mtime_seconds: i64, mtime_nanos in 0u32..1_000_000_000) {
            let kind = [EntryKind::File, EntryKind::Directory, EntryKind::Symlink][usize::from(kind) - 1];
            let size = if kind == EntryKind::Directory { 0 } else { size };
            let fingerprinted = fingerprinted && kind != EntryKind::Directory;
            let attribute_bytes = if kind == EntryKind::Directory { 0 } else { attribute_bytes };
            let patched = patched && kind == EntryKind::File;
            let header = EntryHeader { kind, fingerprinted, patched, attribute_bytes, path_bytes, mode, size, mtime: Time::new(mtime_seconds, mtime_nanos) };
            prop_assert_eq!(EntryHeader::decode(&header.encode()), Ok(header));
        }

        #[test]
        fn trailers_come_back(whole: bool, main: [u8; 32], adler32: u32, crc32c: u32) {
            let trailer = Trailer { whole, digest: BlockDigest { main, adler32, crc32c } };
            prop_assert_eq!(Trailer::decode(&trailer.encode(), Digests::BLAKE3), Ok(trailer));
            let is_short = main[16..] == [0; 16];
            prop_assert_eq!(Trailer::decode(&trailer.encode(), Digests::XXH128).is_ok(), is_short);
        }

        #[test]
        fn trailers_of_xxh128_come_back_and_nothing_may_be_behind(short: [u8; 16], place in 16usize..32, noise in 1u8..) {
            let mut trailer = Trailer { whole: true, digest: BlockDigest { main: from_xxh128(short), ..BlockDigest::default() } };
            prop_assert_eq!(Trailer::decode(&trailer.encode(), Digests::XXH128), Ok(trailer));
            trailer.digest.main[place] = noise;
            prop_assert!(Trailer::decode(&trailer.encode(), Digests::XXH128).is_err());
            prop_assert!(Trailer::decode(&trailer.encode(), Digests::NONE).is_ok(), "what nobody asked for is not looked at");
        }
    }

    #[test]
    fn frame_that_no_sender_sends_is_refused() {
        let good =
            Header::Block { item: ItemId(1), offset: u64::from(BLOCK), length: BLOCK, hole: false, whole: false };
        let patch = Header::PatchedBlock { item: ItemId(1), offset: u64::from(BLOCK), length: 9, whole: false };
        assert_eq!([good, patch].map(|header| Header::decode(&header.encode(), BLOCK)), [Ok(good), Ok(patch)]);
        let mut hole = patch.encode();
        hole[1] |= FLAG_HOLE;
        assert!(Header::decode(&hole, BLOCK).is_err(), "a hole needs no patch");
        let bad = [
            Header::PatchedBlock { item: ItemId(1), offset: 0, length: BLOCK + 1, whole: false },
            Header::PatchedBlock { item: ItemId(1), offset: u64::from(BLOCK), length: 9, whole: true },
            Header::Block { item: ItemId(1), offset: 0, length: BLOCK + 1, hole: false, whole: false },
            Header::Block { item: ItemId(1), offset: 0, length: u32::MAX, hole: true, whole: false },
            Header::Block { item: ItemId(1), offset: 5, length: 1, hole: false, whole: false },
            Header::Block {
                item: ItemId(1),
                offset: u64::MAX - u64::from(BLOCK) + 1,
                length: BLOCK,
                hole: false,
                whole: false,
            },
            Header::Bundle { bundle: BundleId(1), entries: 0 },
            Header::Bundle { bundle: BundleId(1), entries: u32::MAX },
        ];
        for header in bad {
            assert!(Header::decode(&header.encode(), BLOCK).is_err(), "{header:?}");
        }
        assert!(Header::decode(&[9; HEADER_BYTES], BLOCK).is_err());
        assert!(EntryHeader::decode(&[0xff; ENTRY_HEADER_BYTES]).is_err());
        // Flags that there are not, those of no directory, and a block of attributes without any.
        for (kind, flags) in [(1, 8), (2, 1), (2, 2), (2, 4), (3, 0x81), (3, 4), (1, 2)] {
            let mut entry = [0; ENTRY_HEADER_BYTES];
            (entry[0], entry[1]) = (kind, flags);
            assert!(EntryHeader::decode(&entry).is_err(), "{kind} {flags}");
        }
        assert!(Trailer::decode(&[0xff; TRAILER_BYTES], Digests::NONE).is_err());
    }

    #[test]
    fn attributes_are_announced_by_a_flag_and_a_length() {
        let header = EntryHeader {
            kind: EntryKind::File,
            fingerprinted: true,
            patched: false,
            attribute_bytes: 0x1234,
            path_bytes: 3,
            mode: 0o4755,
            size: 5,
            mtime: Time::new(-1, 2),
        };
        let mut bytes = header.encode();
        assert_eq!((bytes[1], &bytes[4..8]), (FLAG_FINGERPRINT | FLAG_ATTRIBUTES, &[0x12, 0x34, 0x09, 0xed][..]));
        assert_eq!(EntryHeader::decode(&bytes), Ok(header));
        // Without the flag what stands there says nothing.
        bytes[1] = FLAG_FINGERPRINT;
        assert_eq!(EntryHeader::decode(&bytes), Ok(EntryHeader { attribute_bytes: 0, ..header }));
    }
}
