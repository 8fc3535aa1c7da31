//! Frames and messages that are well formed, and that no honest sender sends now: unknown,
//! unasked, doubled, out of place.

use carrack_core::attributes::Time;
use carrack_core::chance::Chance;
use carrack_core::digest::BlockDigest;
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::limits::HELD_BLOCKS;
use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, Side};
use carrack_core::wire::mux::Channel;
use carrack_core::wire::peer::{Answer, ItemResult, PeerMessage, QueryItem};

use crate::sandbox::Sandbox;
use crate::session::{BLOCK, Session, refused};
use crate::watch::Watch;
use crate::wire::{Entry, block, bundle, offer};

fn assert_violation(failure: &Failure, what: &str) {
    assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{what}: {failure:?}");
    assert!(failure.message().contains(what), "{what}: {failure:?}");
}

/// The other end may speak before the transfer has begun here: it is heard, in order, once it has. As much as waits is
/// bounded.
#[test]
fn words_before_the_beginning_wait_for_it() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    for item in 1..=3 {
        session.say(&offer(item, format!("f{item}").as_bytes(), Some(5)));
    }
    session.say(&PeerMessage::Abandon { item: ItemId(2) });
    session.begin();
    let mut answers: Vec<PeerMessage> = (0..3).map(|_| session.heard()).collect();
    answers.sort_by_key(|answer| match answer {
        PeerMessage::Answer { item, .. } | PeerMessage::Done { item, .. } => *item,
        other => panic!("{other:?}"),
    });
    let accepted = |item| PeerMessage::Answer { item: ItemId(item), answer: Answer::Accept };
    let dropped = PeerMessage::Done { item: ItemId(2), result: ItemResult::Dropped };
    assert_eq!(answers, [accepted(1), dropped, accepted(3)]);
    session.leave().unwrap();
    let mut flooded = Session::start(&sandbox.root());
    for item in 1..=1000 {
        flooded.say(&offer(item, b"f", Some(5)));
    }
    assert_violation(&flooded.last_words(), "said more than may wait");
    flooded.leave().unwrap();
    sandbox.assert_untouched();
}

#[test]
fn unknown_types() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    // Field 99, of no known message.
    let unknown = [0x9a, 0x06, 0x01, 0x00];
    let failure = refused(&sandbox, |session| session.payload(Channel::PEER, &unknown));
    assert_violation(&failure, "a message of unknown type");
    let mut session = Session::start(&sandbox.root());
    session.payload(Channel::CONTROL, &unknown);
    assert_violation(&session.last_words(), "a request of unknown type");
    session.leave().unwrap();
    // What only the other role says.
    let wrong_role = [
        PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept },
        PeerMessage::Landed { blocks: vec![(ItemId(1), 0)], bundles: vec![BundleId(1)] },
        PeerMessage::SendAgain { item: ItemId(1), offset: 0 },
        PeerMessage::Done { item: ItemId(1), result: ItemResult::Published },
        PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() },
        PeerMessage::Finished { durable: true },
    ];
    for message in wrong_role {
        let failure = refused(&sandbox, |session| session.say(&message));
        assert_violation(&failure, "what only a receiver sends");
    }
}

fn question(index: u32, path: &[u8]) -> QueryItem {
    let (kind, size, mtime, fingerprint) = (ItemKind::File, 5, Time::new(1, 0), Some([1; 16]));
    QueryItem { index, path: path.to_vec(), kind, size, mode: 0o644, mtime, others: Default::default(), fingerprint }
}

/// Of an earlier attempt a sender may speak only where both sides know of such things; and of its
/// answers only a receiver.
#[test]
fn earlier_attempts_that_there_are_not() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let failure = refused(&sandbox, |session| {
        session.say(&PeerMessage::Confirm { item: ItemId(1), first: 0, count: 1 });
    });
    assert_violation(&failure, "which are not held");
    for message in [
        PeerMessage::Held {
            item: ItemId(1),
            first: 0,
            digests: vec![BlockDigest::default()],
            taken_over: false,
            chunks: Vec::new(),
        },
        PeerMessage::Known { bundle: BundleId(1), items: Vec::new() },
        PeerMessage::Answer { item: ItemId(1), answer: Answer::Present(FileDigests::default()) },
    ] {
        let failure = refused(&sandbox, |session| session.say(&message));
        assert_violation(&failure, "what only a receiver sends");
    }
    // Numbers that no file has, and digests that are none: refused where they are decoded.
    let past = u64::MAX / 2;
    for message in [
        PeerMessage::Confirm { item: ItemId(1), first: past, count: past },
        PeerMessage::Confirm { item: ItemId(1), first: u64::MAX, count: u64::MAX },
        PeerMessage::Confirm { item: ItemId(1), first: 0, count: 0 },
        PeerMessage::Held {
            item: ItemId(1),
            first: u64::MAX,
            digests: vec![BlockDigest::default()],
            taken_over: false,
            chunks: Vec::new(),
        },
        PeerMessage::Held {
            item: ItemId(1),
            first: 0,
            digests: vec![BlockDigest::default(); HELD_BLOCKS + 1],
            taken_over: false,
            chunks: Vec::new(),
        },
        PeerMessage::Held { item: ItemId(1), first: 0, digests: Vec::new(), taken_over: false, chunks: Vec::new() },
        PeerMessage::Query { bundle: BundleId(1), items: vec![question(0, b"../outside/canary")] },
    ] {
        let failure = refused(&sandbox, |session| session.say(&message));
        assert!(failure.message().starts_with("the peer "), "{message:?}: {failure:?}");
    }
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// A block of what was never offered, not yet accepted, or not there in the file.
#[test]
fn blocks_out_of_place() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let content = vec![7; BLOCK as usize];
    let failure = refused(&sandbox, |session| block(&mut session.stream(0), 7, 0, &content, false));
    assert_violation(&failure, "a block of item 7, which it has not offered");
    let accepted = |session: &mut Session| {
        session.say(&offer(1, b"f", Some(2 * u64::from(BLOCK))));
        assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
        session.stream(0)
    };
    let beyond = [(2 * u64::from(BLOCK), BLOCK), (1 << 40, BLOCK), (0, 5), (u64::from(BLOCK), 0)];
    for (offset, length) in beyond {
        let failure = refused(&sandbox, |session| {
            let mut stream = accepted(session);
            block(&mut stream, 1, offset, &content[..length as usize], false);
        });
        assert_violation(&failure, &format!("the block at {offset} of item 1 with a length or place"));
    }
    let failure = refused(&sandbox, |session| {
        session.say(&offer(1, b"endless", None));
        assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
        let mut stream = session.stream(0);
        block(&mut stream, 1, 4096 * u64::from(BLOCK), &content, false);
    });
    assert_violation(&failure, "far ahead of its turn");
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// What comes twice is dropped the second time, whatever it then holds.
#[test]
fn doubles_change_nothing() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.begin();
    let mut stream = session.stream(0);
    let content = vec![7; BLOCK as usize];
    session.say(&offer(1, b"f", Some(u64::from(BLOCK))));
    assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
    block(&mut stream, 1, 0, &content, true);
    block(&mut stream, 1, 0, &vec![8; BLOCK as usize], true);
    bundle(&mut stream, 2, &[Entry::File(b"small", b"first")]);
    assert_eq!(session.heard(), PeerMessage::BundleDone { bundle: BundleId(2), exceptions: Vec::new() });
    bundle(&mut stream, 2, &[Entry::File(b"small", b"second"), Entry::File(b"other", b"new")]);
    let blake3 = Some(*blake3::hash(&content).as_bytes());
    session.say(&PeerMessage::Complete { item: ItemId(1), size: u64::from(BLOCK), digest: blake3, modified: None });
    assert_eq!(session.heard(), PeerMessage::Done { item: ItemId(1), result: ItemResult::Published });
    bundle(&mut stream, 3, &[Entry::File(b"last", b"")]);
    assert_eq!(session.heard(), PeerMessage::BundleDone { bundle: BundleId(3), exceptions: Vec::new() });
    session.say(&PeerMessage::Finish);
    session.ended().unwrap();
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), ["f", "last", "small"]);
    assert_eq!(std::fs::read(sandbox.root().join("f")).unwrap(), content);
    assert_eq!(std::fs::read(sandbox.root().join("small")).unwrap(), b"first");
}

/// A wrong digest never gets a name: of a block, of a bundled file, of the whole.
#[test]
fn wrong_digests_get_no_name() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.begin();
    let mut stream = session.stream(0);
    session.say(&offer(1, b"f", Some(5)));
    assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
    use carrack_core::wire::frame::{EntryHeader, EntryKind, Header};
    let header = Header::Block { item: ItemId(1), offset: 0, length: 5, hole: false, whole: true };
    stream.meta(&[&header.encode()]).unwrap();
    stream.payload(b"bytes").unwrap();
    stream.meta(&[&crate::wire::trailer_of(b"other").encode()]).unwrap();
    stream.flush().unwrap();
    assert_eq!(session.heard(), PeerMessage::SendAgain { item: ItemId(1), offset: 0 });
    block(&mut stream, 1, 0, b"bytes", true);
    session.say(&PeerMessage::Complete { item: ItemId(1), size: 5, digest: Some([9; 32]), modified: None });
    let PeerMessage::Done { item: ItemId(1), result: ItemResult::Again(why) } = session.heard() else { panic!() };
    assert_eq!(why.code, ErrorCode::DigestMismatch);
    stream.meta(&[&Header::Bundle { bundle: BundleId(2), entries: 1 }.encode()]).unwrap();
    let (kind, path_bytes) = (EntryKind::File, 1);
    let entry = EntryHeader {
        patched: false,
        kind,
        fingerprinted: false,
        attribute_bytes: 0,
        path_bytes,
        mode: 0o600,
        size: 5,
        mtime: Time::default(),
    };
    stream.meta(&[&entry.encode(), b"s"]).unwrap();
    stream.payload(b"bytes").unwrap();
    stream.meta(&[&crate::wire::trailer_of(b"other").encode()]).unwrap();
    stream.flush().unwrap();
    let exceptions = vec![(0, ItemResult::Mismatch)];
    assert_eq!(session.heard(), PeerMessage::BundleDone { bundle: BundleId(2), exceptions });
    session.say(&PeerMessage::Finish);
    session.ended().unwrap();
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

#[test]
fn offers_without_end() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let failure = refused(&sandbox, |session| {
        (1..=10_000).for_each(|item| session.say(&offer(item, format!("f{item}").as_bytes(), Some(1 << 20))));
    });
    assert_violation(&failure, "more files than the protocol allows at once");
    let failure = refused(&sandbox, |session| {
        session.say(&offer(2, b"a", Some(5)));
        session.say(&offer(1, b"b", Some(5)));
    });
    assert_violation(&failure, "the sender offered item 1 out of order");
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

#[test]
fn stream_numbered_twice() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let failure = refused(&sandbox, |session| {
        let _both = (session.stream(3), session.stream(3));
    });
    assert_violation(&failure, "data connection 3 twice");
}

/// Random bytes where frames, messages and greetings should be.
#[test]
fn noise() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let mut chance = Chance::new(0);
    let mut noise =
        |length: usize| -> Vec<u8> { std::iter::repeat_with(|| chance.number() as u8).take(length).collect() };
    for round in 1..=40 {
        let session = Session::strange(&sandbox.root());
        session.raw(&noise(round * 7));
        let _ = session.socket.shutdown(std::net::Shutdown::Write);
        let _ = session.leave();
        let session = Session::start(&sandbox.root());
        session.raw(&noise(round * 100));
        let _ = session.socket.shutdown(std::net::Shutdown::Write);
        session.leave().unwrap();
        let bytes = noise(round * 13);
        let mut session = Session::start(&sandbox.root());
        session.begin();
        session.payload(Channel::PEER, &bytes);
        let mut stream = session.stream(0);
        let _ = stream.meta(&[&noise(24 + round * 100)]);
        let _ = stream.flush();
        let failure = session.ended().expect_err("noise is nothing to act upon");
        assert_eq!((failure.code, failure.side), (ErrorCode::ProtocolViolation, Side::Source), "{failure:?}");
        session.assert_alive();
        session.leave().unwrap();
    }
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), Vec::<String>::new());
}
