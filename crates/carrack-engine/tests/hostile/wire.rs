//! Frames as a hostile sender writes them: any path, any length, right digests where it wants to be believed.

use carrack_core::attributes::{Attributes, Time};
use carrack_core::digest::BlockDigest;
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::wire::frame::{EntryHeader, EntryKind, Header, Trailer};
use carrack_core::wire::peer::{DirectoryAttributes, Offer, PeerMessage};
use carrack_engine::testing::data::stream::OutStream;

/// One entry of a hostile bundle.
pub enum Entry<'a> {
    File(&'a [u8], &'a [u8]),
    /// Its path, a patch, and the content that is said to come of it.
    Patch(&'a [u8], &'a [u8], &'a [u8]),
    Directory(&'a [u8]),
    Link(&'a [u8], &'a [u8]),
}

fn header(kind: EntryKind, path: &[u8], size: usize, mtime: Time) -> EntryHeader {
    let path_bytes = u16::try_from(path.len()).unwrap();
    // All the bits that give rights, too.
    let fingerprinted = false;
    EntryHeader {
        kind,
        fingerprinted,
        patched: false,
        attribute_bytes: 0,
        path_bytes,
        mode: 0o7777,
        size: size as u32,
        mtime,
    }
}

pub fn trailer_of(content: &[u8]) -> Trailer {
    let digest = BlockDigest { main: *blake3::hash(content).as_bytes(), ..BlockDigest::default() };
    Trailer { whole: true, digest }
}

/// Sends a bundle. The receiver may cut the stream in the middle: that is its answer, and no error here.
pub fn bundle(stream: &mut OutStream, number: u64, entries: &[Entry<'_>]) {
    bundle_at(stream, number, entries, Time::new(1, 0));
}

/// The same, with a modification time.
pub fn bundle_at(stream: &mut OutStream, number: u64, entries: &[Entry<'_>], mtime: Time) {
    let _ = try_bundle(stream, number, entries, mtime);
}

fn try_bundle(stream: &mut OutStream, number: u64, entries: &[Entry<'_>], mtime: Time) -> std::io::Result<()> {
    stream.meta(&[&Header::Bundle { bundle: BundleId(number), entries: entries.len() as u32 }.encode()])?;
    for entry in entries {
        match *entry {
            Entry::File(path, content) => {
                stream.meta(&[&header(EntryKind::File, path, content.len(), mtime).encode(), path])?;
                stream.payload(content)?;
                stream.meta(&[&trailer_of(content).encode()])?;
            }
            Entry::Patch(path, patch, content) => {
                let header = EntryHeader { patched: true, ..header(EntryKind::File, path, patch.len(), mtime) };
                stream.meta(&[&header.encode(), path])?;
                stream.payload(patch)?;
                stream.meta(&[&trailer_of(content).encode()])?;
            }
            Entry::Directory(path) => stream.meta(&[&header(EntryKind::Directory, path, 0, mtime).encode(), path])?,
            Entry::Link(path, target) => {
                stream.meta(&[&header(EntryKind::Symlink, path, target.len(), mtime).encode(), path, target])?;
            }
        }
    }
    stream.flush()
}

/// Sends a block with its right digest.
pub fn block(stream: &mut OutStream, item: u64, offset: u64, content: &[u8], whole: bool) {
    let header = Header::Block { item: ItemId(item), offset, length: content.len() as u32, hole: false, whole };
    let _ = stream.meta(&[&header.encode()]);
    let _ = stream.payload(content);
    let _ = stream.meta(&[&trailer_of(content).encode()]);
    let _ = stream.flush();
}

/// Sends a patch of a block, of which it says that it makes `content`.
pub fn patched_block(stream: &mut OutStream, item: u64, offset: u64, patch: &[u8], content: &[u8]) {
    let header = Header::PatchedBlock { item: ItemId(item), offset, length: patch.len() as u32, whole: false };
    let _ = stream.meta(&[&header.encode()]);
    let _ = stream.payload(patch);
    let _ = stream.meta(&[&trailer_of(content).encode()]);
    let _ = stream.flush();
}

pub fn offer(item: u64, path: &[u8], size: Option<u64>) -> PeerMessage {
    PeerMessage::Offer(Offer {
        item: ItemId(item),
        path: path.to_vec(),
        size,
        attributes: Attributes::new(0o777, Time::new(1, 0)),
        sparse: false,
        fingerprint: None,
    })
}

pub fn directories(paths: &[&[u8]]) -> PeerMessage {
    let attributes = Attributes::new(0o777, Time::new(1, 0));
    let list = paths.iter().map(|path| DirectoryAttributes { path: path.to_vec(), attributes: attributes.clone() });
    PeerMessage::Directories(list.collect())
}
