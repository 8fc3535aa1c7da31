//! What sender and receiver say of earlier attempts: blocks that are held and confirmed, small items that
//! are asked about and known. Part of [`super::PeerMessage`]: how they become bytes, and what is checked of them.

use super::PeerMessage;
use super::raw::{Confirm, Held, Known, KnownItem, Query, RawQueryItem};
use super::{others_from_raw, others_to_raw};
use crate::attributes::{OtherAttributes, Time};
use crate::digest::{BlockDigest, FileDigests};
use crate::fingerprint::Fingerprint;
use crate::ids::{BundleId, ItemId};
use crate::report::ItemKind;
use crate::wire::{ProtocolError, patch};
use crate::{limits, path};

/// A small item that may be at the receiver already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryItem {
    /// Its index within the bundle.
    pub index: u32,
    /// Relative to the destination.
    pub path: Vec<u8>,
    /// File or link.
    pub kind: ItemKind,
    /// Bytes of a file; 0 of a link.
    pub size: u64,
    /// Permission bits; those of a link mean nothing.
    pub mode: u32,
    /// When the content was last modified.
    pub mtime: Time,
    /// What it is to have beside permissions and time.
    pub others: OtherAttributes,
    /// What the source is known by; `None` where nothing tells that it is still the same.
    pub fingerprint: Option<Fingerprint>,
}

/// Blocks that are there, as a message.
pub(super) fn held(item: ItemId, first: u64, digests: &[BlockDigest], taken_over: bool, chunks: Vec<u32>) -> Held {
    let chunks = patch::chunks_to_bytes(&chunks);
    Held { item: item.0, first, digests: digests_to_bytes(digests), taken_over, chunks }
}

/// A question, as a message.
pub(super) fn query(bundle: BundleId, items: Vec<QueryItem>) -> Query {
    Query { bundle: bundle.0, items: items.into_iter().map(item_to_raw).collect() }
}

/// Its answer, as a message.
pub(super) fn known(bundle: BundleId, items: Vec<(u32, FileDigests)>) -> Known {
    let known = |(index, digests): (u32, FileDigests)| KnownItem { index, digests: Some(digests.into()) };
    Known { bundle: bundle.0, items: items.into_iter().map(known).collect() }
}

/// Blocks that are there.
pub(super) fn held_from_raw(held: &Held) -> Result<PeerMessage, ProtocolError> {
    let digests = digests_from_bytes(&held.digests)?;
    check_blocks(held.first, digests.len() as u64)?;
    let chunks = patch::chunks_from_bytes(&held.chunks)?;
    Ok(PeerMessage::Held { item: ItemId(held.item), first: held.first, digests, taken_over: held.taken_over, chunks })
}

/// Whether a file can have the blocks that are confirmed.
pub(super) fn check_confirm(confirm: &Confirm) -> Result<(), ProtocolError> {
    check_blocks(confirm.first, confirm.count)
}

/// The items of a question.
pub(super) fn asked_items(query: Query) -> Result<Vec<QueryItem>, ProtocolError> {
    query.items.into_iter().map(item_from_raw).collect()
}

/// The items of its answer.
pub(super) fn known_items(known: Known) -> Vec<(u32, FileDigests)> {
    known.items.into_iter().map(|item| (item.index, item.digests.unwrap_or_default().into())).collect()
}

fn digests_to_bytes(digests: &[BlockDigest]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(digests.len() * BlockDigest::BYTES);
    for digest in digests {
        bytes.extend_from_slice(&digest.main);
        bytes.extend_from_slice(&digest.adler32.to_be_bytes());
        bytes.extend_from_slice(&digest.crc32c.to_be_bytes());
    }
    bytes
}

fn digests_from_bytes(bytes: &[u8]) -> Result<Vec<BlockDigest>, ProtocolError> {
    let (whole, rest) = bytes.as_chunks::<{ BlockDigest::BYTES }>();
    if !rest.is_empty() || whole.is_empty() || whole.len() > limits::HELD_BLOCKS {
        return Err(ProtocolError::violation(format!("the peer sent {} bytes of held blocks' digests", bytes.len())));
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| (number << 8) | u32::from(byte));
    let digest = |bytes: &[u8; BlockDigest::BYTES]| {
        let mut main = [0; 32];
        main.copy_from_slice(&bytes[..32]);
        BlockDigest { main, adler32: number(&bytes[32..36]), crc32c: number(&bytes[36..]) }
    };
    Ok(whole.iter().map(digest).collect())
}

/// Blocks that a file may have: the smallest are [`limits::BLOCK_BYTES_MIN`] long.
fn check_blocks(first: u64, count: u64) -> Result<(), ProtocolError> {
    let most = limits::FILE_BYTES / u64::from(limits::BLOCK_BYTES_MIN) + 1;
    let fits = count > 0 && first.checked_add(count).is_some_and(|end| end <= most);
    fits.then_some(()).ok_or_else(|| ProtocolError::violation(format!("the peer named {count} blocks from {first} on")))
}

fn item_to_raw(item: QueryItem) -> RawQueryItem {
    RawQueryItem {
        index: item.index,
        path: item.path,
        kind: item.kind.number(),
        size: item.size,
        mtime_seconds: item.mtime.seconds,
        mtime_nanos: item.mtime.nanos,
        fingerprint: item.fingerprint.map(|fingerprint| fingerprint.to_vec()),
        attributes: others_to_raw(&item.others),
        mode: item.mode,
    }
}

/// A fingerprint from a message.
pub(super) fn fingerprint(bytes: Option<Vec<u8>>) -> Result<Option<Fingerprint>, ProtocolError> {
    let wrong =
        |bytes: Vec<u8>| ProtocolError::violation(format!("the peer sent a fingerprint of {} bytes", bytes.len()));
    bytes.map(|bytes| bytes.try_into().map_err(wrong)).transpose()
}

fn item_from_raw(item: RawQueryItem) -> Result<QueryItem, ProtocolError> {
    path::check_relative(&item.path).map_err(|error| ProtocolError::path(&item.path, error))?;
    let kind = ItemKind::from_number(item.kind).filter(|kind| matches!(kind, ItemKind::File | ItemKind::Symlink));
    let kind =
        kind.ok_or_else(|| ProtocolError::violation("the peer asked about something that is no file or link"))?;
    let mtime = Time::new(item.mtime_seconds, item.mtime_nanos);
    if !mtime.is_valid() {
        return Err(ProtocolError::violation("the peer asked about an item with an impossible time"));
    }
    Ok(QueryItem {
        index: item.index,
        path: item.path,
        kind,
        size: item.size,
        mode: item.mode & 0o7777,
        mtime,
        others: others_from_raw(item.attributes)?,
        fingerprint: fingerprint(item.fingerprint)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_has_its_length() {
        assert_eq!(fingerprint(None), Ok(None));
        assert_eq!(fingerprint(Some(vec![5; 16])), Ok(Some([5; 16])));
        for length in [0, 1, 15, 17, 1000] {
            assert!(fingerprint(Some(vec![5; length])).is_err(), "{length}");
        }
    }
}
