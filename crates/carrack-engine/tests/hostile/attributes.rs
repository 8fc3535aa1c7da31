//! Attributes beside permissions and times. A newer peer sends kinds that nobody here knows: they cost nothing, and
//! the report tells that they are not kept. A hostile one sends blocks that are none.

use std::sync::Arc;

use carrack_core::attributes::{Attribute, AttributeKind, OtherAttributes, Time};
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::location::Location;
use carrack_core::report::{Counts, ErrorCode, ItemKind};
use carrack_core::request::{CopyOptions, CopyRequest, Digests};
use carrack_core::tuning::Tuning;
use carrack_core::wire::attributes::encode;
use carrack_core::wire::control::raw::{Ended, Tell};
use carrack_core::wire::frame::{
    ENTRY_HEADER_BYTES, EntryHeader, EntryKind, FINGERPRINT_BYTES, FLAG_ATTRIBUTES, HEADER_BYTES, Header,
    TRAILER_BYTES, Trailer,
};
use carrack_core::wire::mux::Channel;
use carrack_core::wire::peer::{Answer, DirectoryAttributes, ItemResult, PeerMessage};
use carrack_engine::testing::data::stream::{InStream, OutStream};
use carrack_engine::{Context, Copy, Stores};
use carrack_faults::stores::memory::Memory;

use crate::fake_node::{Conversation, FakeNode, pull, push_from_store};
use crate::sandbox::Sandbox;
use crate::session::ended;
use crate::session::{Session, refused};
use crate::watch::Watch;
use crate::wire::{Entry, block, bundle, directories, offer, trailer_of};

const CONTENT: &[u8] = b"bytes";

fn others(kinds: &[u16]) -> OtherAttributes {
    let of = |&kind: &u16| Attribute { kind: AttributeKind(kind), value: Box::from(&b"value"[..]) };
    OtherAttributes::new(kinds.iter().map(of).collect()).unwrap()
}

fn header(kind: EntryKind, path: &[u8], size: usize, block: &[u8]) -> EntryHeader {
    let (path_bytes, attribute_bytes) = (path.len() as u16, block.len() as u16);
    EntryHeader {
        patched: false,
        kind,
        fingerprinted: false,
        attribute_bytes,
        path_bytes,
        mode: 0o640,
        size: size as u32,
        mtime: Time::new(1, 0),
    }
}

/// A bundle of one file with this block of attributes, and a link with another.
fn send_bundle(stream: &mut OutStream, number: u64, file: &[u8], link: &[u8]) {
    let _ = stream.meta(&[&Header::Bundle { bundle: BundleId(number), entries: 2 }.encode()]);
    let entry = header(EntryKind::File, b"d/small", CONTENT.len(), file);
    let _ = stream.meta(&[&entry.encode(), file, b"d/small"]);
    let _ = stream.payload(CONTENT);
    let _ = stream.meta(&[&trailer_of(CONTENT).encode()]);
    let entry = header(EntryKind::Symlink, b"d/link", 6, link);
    let _ = stream.meta(&[&entry.encode(), link, b"d/link", b"target"]);
    let _ = stream.flush();
}

/// As [`offer`], with attributes.
fn offer_with(number: u64, path: &[u8], attributes: &OtherAttributes) -> PeerMessage {
    let mut message = offer(number, path, Some(CONTENT.len() as u64));
    if let PeerMessage::Offer(offer) = &mut message {
        offer.attributes.others = attributes.clone();
    }
    message
}

/// A newer sender: a small file, a link, a large file and a directory with attributes of kinds that nobody
/// knows, and some without any.
pub fn send_unknown(node: &mut Conversation) {
    let mut stream = node.begin();
    bundle(&mut stream, 1, &[Entry::Directory(b"d"), Entry::File(b"d/plain", CONTENT)]);
    assert_eq!(node.heard(), Some(PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() }));
    send_bundle(&mut stream, 2, &encode(&others(&[700])), &encode(&others(&[700, 701])));
    assert_eq!(node.heard(), Some(PeerMessage::BundleDone { bundle: BundleId(2), exceptions: Vec::new() }));
    node.say(&offer_with(3, b"d/large", &others(&[702])));
    assert_eq!(node.heard(), Some(PeerMessage::Answer { item: ItemId(3), answer: Answer::Accept }));
    block(&mut stream, 3, 0, CONTENT, true);
    let digest = Some(*blake3::hash(CONTENT).as_bytes());
    node.say(&PeerMessage::Complete { item: ItemId(3), size: CONTENT.len() as u64, digest, modified: None });
    assert_eq!(node.heard(), Some(PeerMessage::Done { item: ItemId(3), result: ItemResult::Published }));
    let PeerMessage::Directories(mut list) = directories(&[b"d"]) else { unreachable!() };
    list[0].attributes.others = others(&[u16::MAX]);
    let contents = DirectoryAttributes { path: Vec::new(), ..list[0].clone() };
    node.say(&PeerMessage::Directories(list));
    node.say(&PeerMessage::FinishContents(contents));
    assert!(matches!(node.heard(), Some(PeerMessage::Finished { durable: true, .. })));
    node.tell(
        0,
        Tell::Ended(Ended {
            durable: true,
            ..ended(Counts { files: 3, symlinks: 1, directories: 2, ..Counts::default() })
        }),
    );
}

#[test]
fn attributes_of_kinds_that_nobody_knows_are_told_as_not_kept() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let node = FakeNode::start(|node| {
        node.kind = Some(ItemKind::Directory);
        send_unknown(node);
    });
    let report = pull(&node, "/in/", &sandbox);
    node.join();
    assert_eq!((&report.error, report.counts.files, report.counts.files_failed), (&None, 3, 0));
    for name in ["d/plain", "d/small", "d/large"] {
        assert_eq!(std::fs::read(sandbox.root().join(name)).unwrap(), CONTENT, "{name}");
    }
    let unkept = report.unkept_attributes.expect("they are not kept");
    // The small file, the link, the large file, the directory and the destination itself.
    assert_eq!((unkept.count, &unkept.path[..]), (5, &b"d/small"[..]));
    let kinds: Vec<(u16, u64)> = unkept.kinds.iter().map(|(kind, items)| (kind.0, *items)).collect();
    assert_eq!(kinds, [(700, 2), (701, 1), (702, 1), (u16::MAX, 2)]);
    assert_eq!((report.unkept_permissions, report.unkept_times), (None, None));
}

/// A receiver of any version: takes one small file, and tells its header, its block of attributes and its content.
pub fn receive_file(node: &mut Conversation) -> (EntryHeader, Vec<u8>, Vec<u8>) {
    let mut stream = InStream::new(node.begun(), Arc::default());
    let mut header = [0; HEADER_BYTES];
    stream.meta(&mut header).unwrap();
    let Ok(Header::Bundle { bundle, entries: 1 }) = Header::decode(&header, Tuning::DEFAULT.block_bytes) else {
        panic!("{header:?}")
    };
    let mut bytes = [0; ENTRY_HEADER_BYTES];
    stream.peek(&mut bytes).unwrap();
    let entry = EntryHeader::decode(&bytes).unwrap();
    let fingerprint_bytes = if entry.fingerprinted { FINGERPRINT_BYTES } else { 0 };
    let attributes_end = fingerprint_bytes + usize::from(entry.attribute_bytes);
    let mut named = vec![0; attributes_end + usize::from(entry.path_bytes)];
    stream.meta_after(&bytes, &mut named).unwrap();
    let mut content = Vec::new();
    let mut take = |slice: &[u8]| {
        content.extend_from_slice(slice);
        Ok::<(), std::io::Error>(())
    };
    stream.payload(entry.size.into(), &mut take).unwrap();
    let mut trailer = [0; TRAILER_BYTES];
    stream.meta(&mut trailer).unwrap();
    assert!(Trailer::decode(&trailer, Digests::BLAKE3).unwrap().whole);
    node.say(&PeerMessage::Landed { blocks: Vec::new(), bundles: vec![bundle] });
    node.say(&PeerMessage::BundleDone { bundle, exceptions: Vec::new() });
    assert_eq!(node.heard(), Some(PeerMessage::Finish));
    node.say(&PeerMessage::Finished { durable: true });
    node.tell(0, Tell::Ended(Ended { durable: true, ..Ended::default() }));
    (entry, named[fingerprint_bytes..attributes_end].to_vec(), content)
}

/// A store that has attributes of kinds which only it knows: a sender passes them on.
#[test]
fn attributes_of_a_source_are_passed_on_whatever_they_are() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let file = sandbox.outside().join("canary");
    let content = std::fs::read(&file).unwrap();
    let store = Memory::default();
    let to = Location::Store { scheme: "store".into(), path: b"d/".to_vec() };
    let sources = vec![Location::Local(file.into_os_string().into_encoded_bytes())];
    let context = Context { stores: Stores::default().with("store", Arc::new(store.clone())), ..Context::default() };
    let report =
        Copy::start(CopyRequest { sources, destination: to, options: CopyOptions::default() }, &context).wait();
    assert_eq!((&report.error, report.counts.files), (&None, 1));
    assert!(store.set_other_attributes(b"d/canary", others(&[700, 701])));
    let node = FakeNode::start(move |node| {
        node.kind = None;
        let (entry, block, told) = receive_file(node);
        assert_eq!((block, told), (encode(&others(&[700, 701])), content), "{entry:?}");
    });
    let report = push_from_store(Arc::new(store.clone()), b"d/canary", &node, "/copy");
    node.join();
    assert_eq!((&report.error, report.counts.files, report.counts.files_failed), (&None, 1, 0));
    // A receiver that was told of them reports by itself what it has not kept: this one says nothing.
    assert_eq!(report.unkept_attributes, None);
}

/// Whatever is in a block, a receiver reads no further than its header said, keeps nothing of the bundle,
/// and says what the peer did.
#[test]
fn blocks_that_are_no_attributes_end_the_transfer() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let one = encode(&others(&[7]));
    let many: Vec<u8> = (1..100_u16).flat_map(|kind| [&kind.to_be_bytes()[..], &[0, 0]].concat()).collect();
    for (block, what) in [
        (one[..one.len() - 1].to_vec(), "an attribute that is cut short"),
        (vec![0, 7, 0xff, 0xff, 1], "an attribute that is cut short"),
        (vec![0], "an attribute that is cut short"),
        ([&one[..], &one[..]].concat(), "attributes of one item twice or out of order"),
        ([encode(&others(&[8])), one.clone()].concat(), "attributes of one item twice or out of order"),
        (vec![0, 0, 0, 0], "attributes of one item twice or out of order"),
        (many, "more attributes of one item than the protocol allows"),
        (vec![0xff; usize::from(u16::MAX)], "an attribute that is cut short"),
    ] {
        let failure = refused(&sandbox, |session| send_bundle(&mut session.stream(0), 1, &block, b""));
        assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{failure:?}");
        assert!(failure.message().contains(what), "{what}: {failure:?}");
        assert_eq!(sandbox.names().iter().filter(|name| *name != "d").collect::<Vec<_>>(), Vec::<&String>::new());
    }
}

#[test]
fn flag_without_attributes_and_attributes_of_a_directory_end_the_transfer() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    for (kind, what) in
        [(EntryKind::File, "a block of no attributes"), (EntryKind::Directory, "a bundle entry of 0 bytes")]
    {
        let mut bytes = header(kind, b"f", 0, b"").encode();
        bytes[1] |= FLAG_ATTRIBUTES;
        let failure = refused(&sandbox, |session| {
            let mut stream = session.stream(0);
            let _ = stream.meta(&[&Header::Bundle { bundle: BundleId(1), entries: 1 }.encode()]);
            let _ = stream.meta(&[&bytes, b"f"]);
            let _ = stream.flush();
        });
        assert!(failure.message().contains(what), "{what}: {failure:?}");
    }
}

/// The same block in a message.
#[test]
fn messages_with_attributes_that_are_none_end_the_transfer() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let good = encode(&others(&[7, 8]));
    let bad = encode(&others(&[7])).repeat(2);
    let PeerMessage::Directories(mut list) = directories(&[b"d"]) else { unreachable!() };
    list[0].attributes.others = others(&[7, 8]);
    for message in [offer_with(1, b"f", &others(&[7, 8])), PeerMessage::Directories(list)] {
        let mut bytes = message.encode();
        let place = bytes.windows(good.len()).position(|window| window == good).expect("the block as it is");
        bytes[place..place + good.len()].copy_from_slice(&bad);
        let failure = refused(&sandbox, |session| session.payload(Channel::PEER, &bytes));
        assert!(failure.message().contains("attributes of one item twice or out of order"), "{failure:?}");
    }
}

/// Blocks of one bundle are bounded together, as its content is.
#[test]
fn attributes_of_a_bundle_are_bounded_in_all() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let value = vec![7; usize::from(u16::MAX) - OtherAttributes::HEAD_BYTES];
    let block = encode(&OtherAttributes::new(vec![Attribute { kind: AttributeKind(1), value: value.into() }]).unwrap());
    let failure = refused(&sandbox, |session: &mut Session| {
        let mut stream = session.stream(0);
        let _ = stream.meta(&[&Header::Bundle { bundle: BundleId(1), entries: 300 }.encode()]);
        for number in 0..300 {
            let path = format!("f{number}").into_bytes();
            let sent = stream
                .meta(&[&header(EntryKind::File, &path, 0, &block).encode(), &block, &path])
                .and_then(|()| stream.meta(&[&trailer_of(b"").encode()]));
            if sent.is_err() {
                return;
            }
        }
        let _ = stream.flush();
    });
    assert!(failure.message().contains("a bundle of more bytes than the protocol allows"), "{failure:?}");
}
