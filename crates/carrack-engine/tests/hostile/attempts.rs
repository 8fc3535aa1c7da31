//! What is said of earlier attempts, and what they have left: keys, questions and confirmations that are none, and
//! traps where a marker or a part file would stand.

use std::os::unix::fs::symlink;

use carrack_core::attributes::Time;
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::limits::{BUNDLE_ITEMS, MARKER_KEY_BYTES};
use carrack_core::report::{ErrorCode, Failure, ItemKind};
use carrack_core::wire::control::raw::*;
use carrack_core::wire::peer::{Answer, ItemResult, PeerMessage, QueryItem};

use crate::sandbox::{CANARY, LEFTOVER, Sandbox, hostile_paths};
use crate::session::{BLOCK, Session, options};
use crate::watch::Watch;
use crate::wire::{Entry, block, bundle, offer};

const KEY: [u8; MARKER_KEY_BYTES] = [0xab; MARKER_KEY_BYTES];

/// To receive into the root, with a marker that is found by this key.
fn begin_with(key: &[u8]) -> Ask {
    let role = ReceiveRole { marker: key.to_vec(), ..ReceiveRole::default() };
    Ask::Begin(Begin { options: Some(options()), role: Some(Role::Receive(role)) })
}

/// Begins such a transfer, lets the sender do something, and tells how the receiver ended it.
fn refused(sandbox: &Sandbox, act: impl FnOnce(&mut Session)) -> Failure {
    let mut session = Session::start(&sandbox.root());
    session.request(begin_with(&KEY)).unwrap();
    act(&mut session);
    let failure = session.ended().expect_err("the receiver took it");
    session.assert_alive();
    session.leave().unwrap();
    sandbox.assert_untouched();
    failure
}

fn assert_violation(failure: &Failure, what: &str) {
    assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{what}: {failure:?}");
    assert!(failure.message().contains(what), "{what}: {failure:?}");
}

fn question(index: u32, path: &[u8]) -> QueryItem {
    let (kind, size, mtime, fingerprint) = (ItemKind::File, 5, Time::new(1, 0), Some([1; 16]));
    QueryItem { index, path: path.to_vec(), kind, size, mode: 0o644, mtime, others: Default::default(), fingerprint }
}

#[test]
fn keys_of_a_wrong_length() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    for length in [1, MARKER_KEY_BYTES - 1, MARKER_KEY_BYTES + 1, 4096] {
        let failure = session.request(begin_with(&vec![b'/'; length])).expect_err("not a key");
        assert_violation(&failure, &format!("a marker's key of {length} bytes"));
    }
    session.assert_alive();
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// Nothing is held: there is nothing to confirm.
#[test]
fn confirmations_of_what_is_not_held() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let confirm = |item, first, count| PeerMessage::Confirm { item, first, count };
    for message in [confirm(ItemId(1), 0, 1), confirm(ItemId(u64::MAX), 0, 1), confirm(ItemId(7), 1 << 40, 1)] {
        let failure = refused(&sandbox, |session| session.say(&message));
        assert_violation(&failure, "which are not held");
    }
    for (first, count) in [(0, 1), (1, 1), (0, 2), (1 << 40, 1 << 20)] {
        let failure = refused(&sandbox, |session| {
            session.say(&offer(1, b"f", Some(2 * u64::from(BLOCK))));
            assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
            session.say(&confirm(ItemId(1), first, count));
        });
        assert_violation(&failure, "which are not held");
    }
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

#[test]
fn questions_that_make_no_sense() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let query = |items| PeerMessage::Query { bundle: BundleId(1), items };
    for items in [vec![question(BUNDLE_ITEMS, b"f")], vec![question(u32::MAX, b"f")], vec![question(3, b"f"); 2]] {
        let failure = refused(&sandbox, |session| session.say(&query(items)));
        assert_violation(&failure, "about too many items or none");
    }
    for (path, why) in hostile_paths() {
        let failure = refused(&sandbox, |session| session.say(&query(vec![question(0, &path)])));
        assert!(failure.code == ErrorCode::BadPath && failure.message().contains(why), "{failure:?}");
    }
    // Of what stands there and was not brought by an earlier attempt nothing is told.
    std::fs::write(sandbox.root().join("mine"), b"mine!").unwrap();
    let mut session = Session::start(&sandbox.root());
    session.request(begin_with(&KEY)).unwrap();
    session.say(&query(vec![question(0, b"mine"), question(1, b"absent")]));
    assert_eq!(session.heard(), PeerMessage::Known { bundle: BundleId(1), items: Vec::new() });
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), ["mine"]);
}

/// Somebody who may write there has put something where the marker would be: it is neither followed nor waited for, and
/// costs the marker at most.
#[test]
fn traps_in_place_of_the_marker() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let marker = sandbox.root().join(format!(".carrack-{}.marker", "ab".repeat(MARKER_KEY_BYTES)));
    let traps: [(&str, &dyn Fn()); 5] = [
        ("a link out", &|| symlink(sandbox.outside().join("canary"), &marker).unwrap()),
        ("a link to nothing", &|| symlink("../outside/planted", &marker).unwrap()),
        ("a FIFO", &|| {
            assert!(std::process::Command::new("mkfifo").arg(&marker).status().unwrap().success());
        }),
        ("a directory", &|| std::fs::create_dir(&marker).unwrap()),
        ("a file of another kind", &|| std::fs::write(&marker, [0xff; 100_000]).unwrap()),
    ];
    for (kind, lay) in traps {
        lay();
        let mut session = Session::start(&sandbox.root());
        session.request(begin_with(&KEY)).unwrap_or_else(|failure| panic!("{kind}: {failure:?}"));
        let mut stream = session.stream(0);
        session.say(&offer(1, b"large", Some(5)));
        assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept }, "{kind}");
        block(&mut stream, 1, 0, b"bytes", true);
        bundle(&mut stream, 2, &[Entry::File(b"small", b"bytes")]);
        let blake3 = Some(*blake3::hash(b"bytes").as_bytes());
        session.say(&PeerMessage::Complete { item: ItemId(1), size: 5, digest: blake3, modified: None });
        let mut ends = [session.heard(), session.heard()];
        ends.sort_by_key(|end| matches!(end, PeerMessage::BundleDone { .. }));
        let bundled = PeerMessage::BundleDone { bundle: BundleId(2), exceptions: Vec::new() };
        assert_eq!(ends, [PeerMessage::Done { item: ItemId(1), result: ItemResult::Published }, bundled], "{kind}");
        session.say(&PeerMessage::Finish);
        session.ended().unwrap();
        session.leave().unwrap();
        sandbox.assert_untouched();
        assert_eq!(std::fs::read(sandbox.outside().join("canary")).unwrap(), CANARY);
        for name in ["large", "small"] {
            std::fs::remove_file(sandbox.root().join(name)).unwrap();
        }
        let _ = std::fs::remove_file(&marker).or_else(|_| std::fs::remove_dir(&marker));
    }
}

/// `gc` and the selection of a copy, asked by somebody who means harm.
#[test]
fn collecting_and_selecting_outside() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    symlink(sandbox.outside(), sandbox.root().join("absolute")).unwrap();
    symlink("../outside", sandbox.root().join("relative")).unwrap();
    // Empty, as a marker whose session ended at once: what holds anything else is nobody's marker.
    std::fs::write(sandbox.root().join(LEFTOVER), b"").unwrap();
    let mut session = Session::start(&sandbox.root());
    let collect =
        |path: &str| Ask::Collect(Collect { path: path.into(), older_seconds: 0, dry_run: false, marker: Vec::new() });
    for path in ["..", "../outside", "/../outside", "a/../../outside", "absolute/..", "relative/private", "absolute"] {
        let failure = sandbox.around(|_| session.request(collect(path))).expect_err(path);
        assert!(!failure.message().is_empty(), "{path}");
    }
    for (path, why) in hostile_paths() {
        let failure = session.request(Ask::Select(Paths { paths: vec![path] })).expect_err(why);
        assert!(failure.code == ErrorCode::BadPath && failure.message().contains(why), "{failure:?}");
    }
    // What is below the root may be collected, and links are not followed on the way.
    assert!(sandbox.around(|_| session.request(collect(""))).is_ok());
    session.assert_alive();
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), ["absolute", "relative"]);
}
