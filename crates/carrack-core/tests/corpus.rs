//! Every input that the fuzzer's corpus holds, through the same bodies. See `fuzz/`.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // No product.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../../../fuzz/src/bodies.rs"]
mod bodies;

use std::path::PathBuf;
use std::time::Duration;

use carrack_core::attributes::{Attributes, Time};
use carrack_core::digest::{BlockDigest, FileDigests};
use carrack_core::ids::{BundleId, ItemId, StreamId};
use carrack_core::limits;
use carrack_core::report::{Counts, ErrorCode, Failure, ItemInFlight, ItemKind, ItemReport, Outcome, Side};
use carrack_core::request::{Digests, Encrypt, Verify};
use carrack_core::wire::Version;
use carrack_core::wire::control::*;
use carrack_core::wire::frame::{EntryHeader, EntryKind, Header, Trailer};
use carrack_core::wire::mux::{Channel, encode_header};
use carrack_core::wire::peer::{Answer, DirectoryAttributes, ItemResult, Offer, PeerMessage, QueryItem};
use carrack_core::wire::piece::PieceHeader;

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(corpus(target)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: PathBuf| (file.clone(), std::fs::read(&file).unwrap());
    files.into_iter().map(read).collect()
}

#[test]
fn corpus_passes() {
    for (target, body) in bodies::TARGETS {
        let inputs = inputs(target);
        assert!(inputs.len() >= 3, "{target} has no corpus");
        for (file, data) in inputs {
            let passed = std::panic::catch_unwind(|| body(&data));
            assert!(passed.is_ok(), "{}", file.display());
        }
    }
}

/// Cut, doubled and changed inputs, the same at every run: what a fuzzer does in its first second, in every test run.
#[test]
fn corpus_with_changes_passes() {
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below.max(1)
    };
    for (target, body) in bodies::TARGETS {
        let seeds = inputs(target);
        for round in 0..3000 {
            let mut data = seeds[round % seeds.len()].1.clone();
            for _ in 0..=random(4) {
                let place = random(data.len());
                match random(4) {
                    0 if !data.is_empty() => data[place] = random(256) as u8,
                    1 if !data.is_empty() => data[place] ^= 1 << random(8),
                    2 => data.truncate(place),
                    _ => data.extend_from_slice(&seeds[random(seeds.len())].1),
                }
            }
            body(&data);
        }
    }
}

/// A seed is what today's encoding makes of it: one of an earlier encoding is refused at its first field, and leads a
/// fuzzer nowhere. `CARRACK_GOLDEN=write` writes it.
fn keep(target: &str, name: &str, bytes: &[u8]) {
    let file = corpus(target).join(name);
    if std::env::var_os("CARRACK_GOLDEN").is_some_and(|asked| asked == "write") {
        std::fs::create_dir_all(corpus(target)).unwrap();
        std::fs::write(&file, bytes).unwrap();
    }
    let kept = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(kept == bytes, "{} is not what is encoded now: CARRACK_GOLDEN=write writes it", file.display());
}

/// Pieces of a conversation, each with its length before it.
fn conversation(pieces: &[Vec<u8>]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| [vec![piece.len() as u8], piece.clone()].concat()).collect()
}

fn failure() -> Failure {
    Failure::new(ErrorCode::NoSpace, Side::Destination, "a/b: write: no space")
}

fn frame_seeds() {
    let digest = BlockDigest { main: [9; 32], adler32: 1, crc32c: 2 };
    let block = Header::Block { item: ItemId(1), offset: 1 << 20, length: 1 << 16, hole: true, whole: false };
    let whole = Header::Block { item: ItemId(2), offset: 0, length: 5, hole: false, whole: true };
    let bundle = Header::Bundle { bundle: BundleId(3), entries: 2 };
    let patched = Header::PatchedBlock { item: ItemId(2), offset: 1 << 20, length: 5000, whole: false };
    let headers = [("block", block), ("whole", whole), ("bundle", bundle), ("patched", patched), ("end", Header::End)];
    for (name, header) in headers {
        keep("frame", name, &[&[0], &header.encode()[..], &header.encode()[..]].concat());
    }
    for (name, kind, size) in
        [("file", EntryKind::File, 5), ("link", EntryKind::Symlink, 6), ("directory", EntryKind::Directory, 0)]
    {
        let mtime = Time::new(-5, 7);
        let (fingerprinted, patched) = (kind == EntryKind::Symlink, kind == EntryKind::File);
        let entry =
            EntryHeader { kind, fingerprinted, patched, attribute_bytes: 0, path_bytes: 3, mode: 0o644, size, mtime };
        keep("frame", name, &[&[4], &entry.encode()[..], b"a/b"].concat());
    }
    let pieces = [(5, None), (256 << 10, Some(1000))].map(|(plain, packed)| PieceHeader { plain, packed }.encode());
    keep("frame", "pieces", &[&[10], &pieces[0][..], &pieces[1][..]].concat());
    keep("frame", "trailer", &[&[10], &Trailer { whole: true, digest }.encode()[..]].concat());
}

fn attributes_seeds() {
    let attribute =
        |kind: u16, value: &[u8]| [&kind.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat();
    keep("attributes", "one", &attribute(3, b"value"));
    keep("attributes", "three", &[attribute(1, b"a"), attribute(2, b""), attribute(u16::MAX, &[0xff; 20])].concat());
    keep("attributes", "twice", &[attribute(7, b"a"), attribute(7, b"a")].concat());
    keep("attributes", "short", &attribute(7, b"abc")[..6]);
    let most: Vec<u8> = (1..=limits::ATTRIBUTES as u16 + 1).flat_map(|kind| attribute(kind, b"")).collect();
    keep("attributes", "many", &most);
}

fn control_seeds() {
    let session = SessionKey { id: [1; 16], secret: [2; 32], encrypt: Encrypt::Tls };
    let options = TransferOptions::of(&Default::default(), Verify::Wire, 4 << 20, Version::NEWEST);
    let source = SourceSpec { target: b"run".to_vec(), ..SourceSpec::at(b"/data/run") };
    let receive = ReceiveRole {
        sink: Sink::Files,
        directory: b"/in".to_vec(),
        targets: vec![b"run".to_vec()],
        marker: None,
        anew: false,
        partial: false,
        lacks_top: false,
        delete: None,
        backup: None,
    };
    let begin = |role| Ask::Begin(Begin { options, role });
    let dial = Dial {
        session: session.clone(),
        addresses: vec!["[::1]:4000".to_owned()],
        pin: [3; 32],
        first: StreamId(0),
        count: 2,
        timeout: Duration::from_millis(1),
        segment: 0,
        tell_connected: false,
    };
    let hello = Hello { oldest: 1, newest: 1, program: "0.1.0".into(), token: "secret".into(), ..Hello::default() };
    let ports = Some(Ports { low: 1, high: 9 });
    let read = ReadFile { path: b"a/f".to_vec(), offset: u64::MAX, length: 1 << 40, identity: None };
    let asks = [
        ("hello", Ask::Hello(hello)),
        ("inspect", Ask::Inspect(vec![b"a".to_vec(), Vec::new()])),
        ("listen", Ask::Listen(Listen { session: session.clone(), ports })),
        ("dial", Ask::Dial(dial)),
        ("tunnel", Ask::Tunnel(Tunnel { session, channel: Channel(2), dials: true })),
        ("send", begin(Role::Send(SendRole { sources: vec![source], known: false }))),
        ("receive", begin(Role::Receive(receive))),
        ("rename", Ask::Rename(Rename { from: b"a".to_vec(), to: b"b".to_vec(), no_replace: false })),
        ("read", Ask::Read(read.clone())),
        ("read-known", Ask::Read(ReadFile { identity: Some([5; 16]), ..read })),
    ];
    for (name, ask) in asks {
        keep("control", name, &ask.encode(7));
    }
    let kind = Some(ItemKind::Symlink);
    let entry = Entry { path: b"f".to_vec(), kind, link_target: b"g".to_vec(), ..Entry::default() };
    let (digests, outcome) = (FileDigests::default(), Outcome::Failed(failure()));
    let item = ItemReport { path: b"f".to_vec(), kind: ItemKind::File, size: 0, digests, judgment: None, outcome };
    let ended =
        Ended { counts: Counts { files: 1, ..Counts::default() }, failure: Some(failure()), ..Ended::default() };
    let in_flight = ItemInFlight { path: b"a/f".to_vec(), size: Some(1 << 30), bytes: 9 };
    let tells = [
        ("welcome", Tell::Welcome(Welcome { host_id: "h".into(), ..Welcome::default() })),
        ("failed", Tell::Failed(failure())),
        ("page", Tell::Page(vec![entry; 2])),
        ("items", Tell::Items(vec![item])),
        ("ended", Tell::Ended(Box::new(ended))),
        ("in-flight", Tell::InFlight(vec![in_flight; 2])),
    ];
    for (name, tell) in tells {
        keep("control", name, &tell.encode(0));
    }
}

fn offer(item: u64, size: Option<u64>) -> PeerMessage {
    named_offer(item, b"a/f", size)
}

fn named_offer(item: u64, path: &[u8], size: Option<u64>) -> PeerMessage {
    let (path, fingerprint) = (path.to_vec(), Some([8; 16]));
    let attributes = Attributes::new(0o640, Time::new(-5, 9));
    PeerMessage::Offer(Offer { item: ItemId(item), path, size, attributes, sparse: true, fingerprint })
}

/// What the bodies take for something that happens on a stream or a disk.
fn happens(what: u8, a: u8, b: u8) -> Vec<u8> {
    vec![0xe0 | what, a, b]
}

fn all_digests() -> carrack_core::report::FileDigests {
    BlockDigest::default().as_file(Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 })
}

fn held(item: u64, first: u64, count: usize) -> PeerMessage {
    PeerMessage::Held {
        item: ItemId(item),
        first,
        digests: vec![BlockDigest::default(); count],
        taken_over: false,
        chunks: Vec::new(),
    }
}

fn query(bundle: u64, path: &[u8]) -> PeerMessage {
    let (mtime, fingerprint) = (Time::new(1, 2), Some([3; 16]));
    let item = QueryItem {
        index: 0,
        path: path.to_vec(),
        kind: ItemKind::File,
        size: 9,
        mode: 0o644,
        mtime,
        others: Default::default(),
        fingerprint,
    };
    PeerMessage::Query { bundle: BundleId(bundle), items: vec![item] }
}

fn known(bundle: u64, index: u32) -> PeerMessage {
    PeerMessage::Known { bundle: BundleId(bundle), items: vec![(index, all_digests())] }
}

/// An earlier attempt is gone on from, at the receiver and at the sender.
fn resumed_seeds() {
    let block = 1u64 << 16;
    let confirm = |first, count| PeerMessage::Confirm { item: ItemId(1), first, count }.encode();
    let received = [
        // Two characters: some of its blocks are there.
        named_offer(1, b"ab", Some(5 * block)).encode(),
        query(2, b"ab").encode(),
        confirm(0, 3),
        happens(9, 0, 0),
        happens(7, 0, 200),
        happens(0, 0x10, 4),
        happens(3, 0, 0),
        happens(8, 0, 0),
        happens(0, 0x10, 0),
        happens(3, 0, 0),
        confirm(3, 1),
        PeerMessage::Complete { item: ItemId(1), size: 5 * block, digest: Some([0; 32]), modified: None }.encode(),
        happens(10, 0, 0),
        happens(7, 0, 200),
        named_offer(3, b"abcd", Some(block)).encode(),
        PeerMessage::Finish.encode(),
    ];
    keep("peer", "resumed", &conversation(&received));
    // The large file is number 1, the pipe 2, and 3 the question about what is small.
    let mut sent = vec![happens(7, 0, 0xff), held(1, 0, 4).encode(), held(1, 6, 5).encode()];
    sent.extend((1..3).map(|item| PeerMessage::Answer { item: ItemId(item), answer: Answer::Accept }.encode()));
    sent.push(known(3, 3).encode());
    for round in 0..40u8 {
        sent.push(happens(5, round % 3, (round % 5) << 1));
        sent.push(
            PeerMessage::Landed { blocks: vec![(ItemId(1), u64::from(round) * block)], bundles: vec![BundleId(4)] }
                .encode(),
        );
        sent.push(PeerMessage::SendAgain { item: ItemId(1), offset: u64::from(round / 2) * block }.encode());
    }
    sent.push(happens(6, 1, 0));
    for number in 1..8 {
        sent.push(PeerMessage::Done { item: ItemId(number), result: ItemResult::Again(failure()) }.encode());
        sent.push(
            PeerMessage::BundleDone { bundle: BundleId(number), exceptions: vec![(0, ItemResult::Again(failure()))] }
                .encode(),
        );
        sent.push(PeerMessage::Answer { item: ItemId(number), answer: Answer::Present(all_digests()) }.encode());
    }
    keep("peer", "compared", &conversation(&sent));
}

fn peer_seeds() {
    let directory = DirectoryAttributes { path: b"d".to_vec(), attributes: Attributes::new(0o755, Time::new(1, 2)) };
    let blake3 = Some([0; 32]);
    let exceptions = vec![(0, ItemResult::Failed(failure()))];
    let messages = [
        ("offer", offer(1, Some(5))),
        ("accept", PeerMessage::Answer { item: ItemId(2), answer: Answer::Accept }),
        ("refuse", PeerMessage::Answer { item: ItemId(2), answer: Answer::Refuse(failure()) }),
        (
            "landed",
            PeerMessage::Landed { blocks: vec![(ItemId(2), 0), (ItemId(2), 65536)], bundles: vec![BundleId(1)] },
        ),
        ("again", PeerMessage::SendAgain { item: ItemId(2), offset: 65536 }),
        ("complete", PeerMessage::Complete { item: ItemId(1), size: 5, digest: blake3, modified: None }),
        ("done", PeerMessage::Done { item: ItemId(2), result: ItemResult::Published }),
        ("bundle", PeerMessage::BundleDone { bundle: BundleId(1), exceptions }),
        ("directories", PeerMessage::Directories(vec![directory])),
        ("finished", PeerMessage::Finished { durable: true }),
        ("lost", PeerMessage::StreamLost { stream: StreamId(1) }),
        ("fail", PeerMessage::Fail(failure())),
        ("held", held(1, 3, 2)),
        ("confirm", PeerMessage::Confirm { item: ItemId(1), first: 3, count: 2 }),
        ("query", query(1, b"a/f")),
        ("known", known(1, 0)),
        ("present", PeerMessage::Answer { item: ItemId(2), answer: Answer::Present(all_digests()) }),
        ("anew", PeerMessage::Done { item: ItemId(2), result: ItemResult::Again(failure()) }),
    ];
    for (name, message) in messages {
        keep("peer", name, &message.encode());
    }
    // A file of one block comes and is published, a bundle too, and the last word.
    let received = [
        offer(1, Some(5)).encode(),
        happens(1, 0x10, 1),
        happens(3, 0, 0),
        PeerMessage::Complete { item: ItemId(1), size: 5, digest: blake3, modified: None }.encode(),
        happens(2, 1, 9),
        happens(3, 1, 0),
        PeerMessage::Finish.encode(),
    ];
    keep("peer", "received", &conversation(&received));
    resumed_seeds();
    // Offers are accepted, blocks go, a stream is lost, all is settled.
    let mut sent = vec![happens(7, 0, 0xff)];
    sent.extend((1..4).map(|item| PeerMessage::Answer { item: ItemId(item), answer: Answer::Accept }.encode()));
    for round in 0..60 {
        sent.push(happens(5, round % 3, 0));
        let blocks = vec![(ItemId(1), u64::from(round) * 32768)];
        sent.push(PeerMessage::Landed { blocks, bundles: vec![BundleId(3)] }.encode());
    }
    sent.push(happens(6, 1, 0));
    for number in 1..4 {
        sent.push(PeerMessage::Done { item: ItemId(number), result: ItemResult::Published }.encode());
        sent.push(PeerMessage::BundleDone { bundle: BundleId(number), exceptions: Vec::new() }.encode());
    }
    sent.push(PeerMessage::Finished { durable: true }.encode());
    keep("peer", "sent", &conversation(&sent));
}

/// A marker as it is written, and its records' kinds, lengths and payloads as the body takes them to seal them anew.
fn grant_seeds() {
    use carrack_core::credential::Token;
    use carrack_core::grant::{Ceilings, Claims, GrantKey, Rights};
    let ceilings = Ceilings { entries: Some(1), bytes: Some(1 << 40), deletions: Some(0), run_seconds: Some(60) };
    let claims = Claims { id: [7; 16], rights: Rights::all(), prefix: b"a/b".to_vec(), expires: 1 << 31, ceilings };
    let whole = Claims { prefix: Vec::new(), ceilings: Ceilings::default(), ..claims.clone() };
    keep("grant", "limited", &claims.encode().unwrap());
    keep("grant", "whole", &whole.encode().unwrap());
    let sealed = GrantKey::of(&Token::new(b"fedcba9876543210").unwrap()).seal(&claims).unwrap();
    keep("grant", "sealed", sealed.reveal().as_bytes());
}

fn marker_seeds() {
    use carrack_core::digest::BlockDigest;
    use carrack_core::request::{Digests, Durability};
    use carrack_core::transfer::marker::{Chain, PartRecord, Published, Record, SessionRecord};
    let digests = Digests { crc32c: true, ..Digests::BLAKE3 };
    let digest = BlockDigest { main: [9; 32], adler32: 1, crc32c: 5 };
    let (path, part_name) = (b"d/f".to_vec(), b".f.carrack-01234567-1.part".to_vec());
    let part = PartRecord { number: 1, path, part_name, size: 300_000, block_bytes: 1 << 16, digests };
    let session = |boot| Record::Session(SessionRecord { boot, durability: Durability::Group });
    let records = [
        session([7; 16]),
        Record::Part(part),
        Record::Blocks { part: 1, first: 1, digests: vec![digest; 3] },
        Record::Published(vec![Published { key: [3; 16], digests: digest.as_file(digests) }]),
        session([8; 16]),
        Record::Blocks { part: 1, first: 3, digests: vec![digest; 2] },
        Record::Left { part: 1, identity: [6; 16] },
        Record::Dropped { part: 1 },
    ];
    let prefixes = [("session", 1), ("blocks", 3), ("published", 4), ("sessions", 6), ("left", 7), ("dropped", 8)];
    for (name, count) in prefixes {
        let (mut bytes, mut chain) = Chain::begin(*b"01234567");
        let mut sealed_anew = Vec::new();
        for record in &records[..count] {
            let start = bytes.len();
            chain.append(record, &mut bytes);
            // Kind, length, payload, checksum: the last is left out, and of the length the upper half.
            sealed_anew.extend_from_slice(&bytes[start..start + 3]);
            sealed_anew.extend_from_slice(&bytes[start + 5..bytes.len() - 4]);
        }
        keep("marker", name, &bytes);
        keep("marker", &format!("records-{name}"), &sealed_anew);
    }
}

#[test]
fn seeds_are_of_the_encoding_of_today() {
    frame_seeds();
    attributes_seeds();
    control_seeds();
    peer_seeds();
    marker_seeds();
    grant_seeds();
    let paths: [(&str, &[u8]); 6] = [
        ("plain", b"a/b/c"),
        ("up", b"a/../b"),
        ("absolute", b"/etc/passwd"),
        ("nul", b"a\0b"),
        ("escape", b"a\x1b]0;x\x07\n\xc2\x9b\xff\\\xe2\x80\xae"),
        ("long", &[b'n'; 256]),
    ];
    paths.iter().for_each(|(name, path)| keep("path", name, path));
    let headers = [encode_header(Channel::CONTROL, 5), encode_header(Channel(9), 1 << 18), [0xff; 6]];
    ["control", "tunnel", "bomb"].iter().zip(headers).for_each(|(name, header)| keep("mux", name, &header));
}
