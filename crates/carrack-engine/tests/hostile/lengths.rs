//! 0xff in every field of every header. What is announced is not allocated, and the peer hears what it did.

use carrack_core::attributes::Time;
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::report::{ErrorCode, Failure};
use carrack_core::wire::frame::{EntryHeader, EntryKind, Header, Trailer};
use carrack_core::wire::mux::Channel;
use carrack_core::wire::peer::{Answer, PeerMessage};

use crate::sandbox::Sandbox;
use crate::session::{BLOCK, Session, refused};
use crate::watch::Watch;
use crate::wire::{offer, trailer_of};

fn assert_violation(failure: &Failure, what: &str) {
    assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{what}: {failure:?}");
    assert!(failure.message().contains(what), "{what}: {failure:?}");
}

/// Sends these metadata bytes as a stream's first.
fn first_bytes(sandbox: &Sandbox, bytes: &[&[u8]]) -> Failure {
    refused(sandbox, |session| {
        let mut stream = session.stream(0);
        for piece in bytes {
            let _ = stream.meta(&[piece]);
        }
        let _ = stream.flush();
    })
}

#[test]
fn frame_lengths() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let block = Header::Block { item: ItemId(1), offset: 0, length: 1, hole: false, whole: false }.encode();
    let bundle = Header::Bundle { bundle: BundleId(1), entries: 1 }.encode();
    let cases: [(&[u8; 24], std::ops::Range<usize>, &str); 7] = [
        (&block, 0..1, "a frame of unknown kind 255"),
        (&block, 1..2, "a frame with unknown flags"),
        (&block, 2..4, "a frame with unknown flags"),
        (&block, 4..8, "a block of 4294967295 bytes"),
        (&block, 8..16, "item 18446744073709551615, which it has not offered"),
        (&block, 16..24, "a block of 1 bytes at offset 18446744073709551615"),
        (&bundle, 4..8, "a bundle of 4294967295 items"),
    ];
    for (good, field, what) in cases {
        let mut bytes = *good;
        bytes[field].fill(0xff);
        assert_violation(&first_bytes(&sandbox, &[&bytes]), what);
    }
    assert_violation(&first_bytes(&sandbox, &[&[0xff; 24]]), "the peer sent a frame");
}

#[test]
fn entry_and_trailer_lengths() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let bundle = Header::Bundle { bundle: BundleId(1), entries: 1 }.encode();
    let entry = |kind| {
        EntryHeader {
            patched: false,
            kind,
            fingerprinted: false,
            attribute_bytes: 0,
            path_bytes: 1,
            mode: 0,
            size: 0,
            mtime: Time::default(),
        }
        .encode()
    };
    for kind in [EntryKind::File, EntryKind::Directory, EntryKind::Symlink] {
        for (field, what) in [
            (0..1, "a bundle entry of unknown kind 255"),
            (1..2, "a bundle entry of 0 bytes"),
            (8..12, "a bundle entry of 4294967295 bytes"),
            (20..24, "with time 4294967295 ns"),
        ] {
            let mut bytes = entry(kind);
            bytes[field].fill(0xff);
            assert_violation(&first_bytes(&sandbox, &[&bundle, &bytes]), what);
        }
    }
    let empty = trailer_of(b"").encode();
    for field in [0..1, 1..8] {
        let mut bytes = empty;
        bytes[field].fill(0xff);
        let mut named = entry(EntryKind::File).to_vec();
        named.push(b'f');
        assert_violation(&first_bytes(&sandbox, &[&bundle, &named, &bytes]), "a trailer with unknown status");
    }
}

/// Within a bundle the files may be large one by one, and not together.
#[test]
fn bundle_length_in_all() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let content = vec![7; 6 << 20];
    let failure = refused(&sandbox, |session| {
        let mut stream = session.stream(0);
        let entries = [&b"a"[..], b"b", b"c"].map(|path| crate::wire::Entry::File(path, &content));
        crate::wire::bundle(&mut stream, 1, &entries);
    });
    assert_violation(&failure, "a bundle of more bytes than the protocol allows");
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// A path of 65,535 bytes is announced, and the stream ends: nothing hangs, and the transfer goes on without it.
#[test]
fn path_length_without_its_path() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.begin();
    let mut stream = session.stream(0);
    stream.meta(&[&Header::Bundle { bundle: BundleId(1), entries: 1 }.encode()]).unwrap();
    let (kind, path_bytes) = (EntryKind::Symlink, u16::MAX);
    let entry = EntryHeader {
        patched: false,
        kind,
        fingerprinted: false,
        attribute_bytes: 0,
        path_bytes,
        mode: u32::MAX,
        size: 4096,
        mtime: Time::new(-1, 0),
    };
    stream.meta(&[&entry.encode()]).unwrap();
    stream.flush().unwrap();
    stream.socket().abort();
    session.say(&PeerMessage::Finish);
    session.ended().unwrap();
    session.leave().unwrap();
    sandbox.assert_untouched();
}

#[test]
fn file_lengths() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let failure = refused(&sandbox, |session| session.say(&offer(1, b"f", Some(u64::MAX))));
    assert_violation(&failure, "the peer offered a file of Some(18446744073709551615) bytes");
    let failure = refused(&sandbox, |session| {
        session.say(&PeerMessage::Complete { item: ItemId(1), size: u64::MAX, digest: None, modified: None });
    });
    assert_violation(&failure, "the peer sent a file of 18446744073709551615 bytes");
    // The largest that could be: there is no room for it, and that is said at once.
    let mut session = Session::start(&sandbox.root());
    session.begin();
    session.say(&offer(1, b"f", Some(i64::MAX as u64)));
    let PeerMessage::Answer { answer: Answer::Refuse(failure), .. } = session.heard() else { panic!() };
    assert_eq!(failure.code, ErrorCode::NoSpace);
    session.leave().unwrap();
    sandbox.assert_untouched();
}

/// Lengths within protobuf, of each field that has one, on both conversations.
#[test]
fn message_lengths() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    for length in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]] {
        for field in 1..=15u8 {
            // Wire type 2: a length follows.
            let bomb = [&[(field << 3) | 2], length, b"tail"].concat();
            let mut session = Session::start(&sandbox.root());
            session.payload(Channel::CONTROL, &bomb);
            assert_violation(&session.last_words(), "the peer sent a request");
            session.leave().unwrap();
            assert_violation(&refused(&sandbox, |session| session.payload(Channel::PEER, &bomb)), "the peer sent a");
        }
    }
    sandbox.assert_untouched();
}

#[test]
fn control_frame_lengths() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.raw(&[0xff; 6]);
    assert_violation(&session.last_words(), "the peer announced a control frame of 4294967295 bytes");
    session.leave().unwrap();
    // As long as a frame may be, but no message: read, and refused.
    let mut session = Session::start(&sandbox.root());
    session.payload(Channel::CONTROL, &vec![0xff; carrack_core::limits::MESSAGE_BYTES + 1]);
    assert_violation(&session.last_words(), "the peer sent a request of 1048577 bytes");
    session.leave().unwrap();
}

/// Before a peer is known it may not even send a megabyte, and is told nothing.
#[test]
fn greeting_lengths() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    for first in [&[0xff; 6][..], &[0, 0x10, 0, 0, 0, 0], &[0, 0, 0, 1, 0, 9], &[0, 0, 0, 2, 0, 0, 0xff, 0xff]] {
        let session = Session::strange(&sandbox.root());
        session.raw(first);
        let _ = session.socket.shutdown(std::net::Shutdown::Write);
        let refusal = session.leave().expect_err("not a greeting");
        assert_eq!(refusal.code, ErrorCode::ProtocolViolation, "{refusal:?}");
        assert!(refusal.message().contains("the peer"), "{refusal:?}");
    }
}

/// Blocks are as long as was agreed, holes too.
#[test]
fn block_lengths_beyond_the_agreed() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    for (offset, length, hole) in [(0, BLOCK + 1, false), (0, BLOCK + 1, true), (1, 1, false), (1 << 63, BLOCK, true)] {
        let header = Header::Block { item: ItemId(1), offset, length, hole, whole: false };
        let failure = first_bytes(&sandbox, &[&header.encode(), &Trailer::encode(&trailer_of(b""))]);
        assert_violation(&failure, &format!("a block of {length} bytes at offset {offset}"));
    }
}
