//! A node of the version before, as source and as destination: it is understood, and hears no word that it does not
//! know. And nodes that do not serve at first.

use std::sync::Arc;

use carrack_core::ids::BundleId;
use carrack_core::report::{ErrorCode, ItemKind, Reason, Side};
use carrack_core::request::{CopyOptions, Digests, Durability, EndOptions, Verify};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::raw::*;
use carrack_core::wire::frame::{
    ENTRY_HEADER_BYTES, EntryHeader, EntryKind, HEADER_BYTES, Header, TRAILER_BYTES, Trailer,
};
use carrack_core::wire::peer::PeerMessage;
use carrack_engine::files::Files;
use carrack_engine::testing::data::stream::InStream;
use carrack_engine::testing::error::failure;
use carrack_engine::{Context, Copy};

use crate::fake_node::{Conversation, FakeNode, Play, pull, pull_with, push};
use crate::sandbox::Sandbox;
use crate::watch::Watch;
use crate::wire::{Entry, bundle};

/// Sends the file that was asked for, as any sender does.
pub fn send_file(node: &mut Conversation) {
    let mut stream = node.begin();
    bundle(&mut stream, 1, &[Entry::File(b"f", b"bytes")]);
    assert_eq!(node.heard(), Some(PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() }));
    node.say(&PeerMessage::Finish);
    assert!(matches!(node.heard(), Some(PeerMessage::Finished { .. })));
    node.tell(0, Tell::Ended(Ended { files: 1, bytes: 5, ..Ended::default() }));
}

/// Receives one small file, and tells its name and content.
fn receive_file(node: &mut Conversation) -> (Vec<u8>, Vec<u8>) {
    let mut stream = InStream::new(node.begun(), Arc::default());
    let mut header = [0; HEADER_BYTES];
    stream.meta(&mut header).unwrap();
    let Ok(Header::Bundle { bundle, entries: 1 }) = Header::decode(&header, Tuning::DEFAULT.block_bytes) else {
        panic!("{header:?}")
    };
    let mut entry = [0; ENTRY_HEADER_BYTES];
    stream.peek(&mut entry).unwrap();
    let described = EntryHeader::decode(&entry).unwrap();
    assert_eq!(described.kind, EntryKind::File);
    let mut path = vec![0; described.path_bytes.into()];
    stream.meta_after(&entry, &mut path).unwrap();
    let mut content = Vec::new();
    stream
        .payload(described.size.into(), &mut |slice| {
            content.extend_from_slice(slice);
            Ok::<(), std::io::Error>(())
        })
        .unwrap();
    let mut trailer = [0; TRAILER_BYTES];
    stream.meta(&mut trailer).unwrap();
    assert!(Trailer::decode(&trailer, Digests::BLAKE3).unwrap().whole);
    node.say(&PeerMessage::Landed { blocks: Vec::new(), bundles: vec![bundle] });
    node.say(&PeerMessage::BundleDone { bundle, exceptions: Vec::new() });
    assert_eq!(node.heard(), Some(PeerMessage::Finish));
    node.say(&PeerMessage::Finished { durable: true, failures: Vec::new() });
    node.tell(0, Tell::Ended(Ended { durable: true, ..Ended::default() }));
    (path, content)
}

/// What version 1 has no word for.
fn panic_if_unknown(ask: &Ask) {
    match ask {
        Ask::Select(_)
        | Ask::Expect(_)
        | Ask::Collect(_)
        | Ask::Retire(_)
        | Ask::Clock(_)
        | Ask::Trace(_)
        | Ask::Evidence(_) => {
            panic!("{ask:?}")
        }
        Ask::Dial(dial) => assert_eq!(dial.segment, 0),
        Ask::Begin(begin) => {
            let options = begin.options.as_ref().unwrap();
            assert_eq!((options.version, options.durability, options.allow_growing), (0, 0, false));
            match begin.role.as_ref().unwrap() {
                Role::Send(send) => assert!(!send.known),
                Role::Receive(receive) => {
                    assert_eq!((receive.marker.len(), receive.anew, receive.source_clock), (0, false, 0));
                }
            }
        }
        _ => {}
    }
}

#[test]
fn version_before_is_still_spoken_to_a_source() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let node = FakeNode::start(|node| {
        node.version = 1;
        send_file(node);
        node.seen.iter().for_each(panic_if_unknown);
    });
    let options = CopyOptions { durability: Durability::None, resume: false, ..CopyOptions::default() };
    let report = pull_with(&node, "/f", &sandbox, options);
    node.join();
    assert_eq!((report.error, report.counts.files), (None, 1));
    assert_eq!(std::fs::read(sandbox.root().join("f")).unwrap(), b"bytes");
}

#[test]
fn version_before_is_still_spoken_to_a_destination() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let file = sandbox.root().join("f");
    std::fs::write(&file, b"content").unwrap();
    let node = FakeNode::start(|node| {
        (node.version, node.kind) = (1, None);
        let (path, content) = receive_file(node);
        assert_eq!((&path[..], &content[..]), (&b"copy"[..], &b"content"[..]));
        node.seen.iter().for_each(panic_if_unknown);
    });
    let options = CopyOptions { durability: Durability::None, ..CopyOptions::default() };
    let report = push(&file, &node, "/copy", options);
    node.join();
    assert_eq!((report.error, report.counts.files, report.durable), (None, 1, Some(true)));
}

#[test]
fn version_before_is_not_asked_for_what_it_cannot_do() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let cases = [
        (CopyOptions { only: Some(vec![b"f".to_vec()]), ..CopyOptions::default() }, Reason::TooOldToSelect),
        (CopyOptions { allow_growing: true, ..CopyOptions::default() }, Reason::TooOldForGrowing),
        (CopyOptions { verify: Verify::Source, ..CopyOptions::default() }, Reason::TooOldForSource),
    ];
    for (options, reason) in cases {
        let node = FakeNode::start(|node| {
            node.version = 1;
            while let Some((request, ask)) = node.next() {
                panic_if_unknown(&ask);
                let Some(answer) = node.honest(&ask) else { return };
                node.tell(request, answer);
            }
        });
        let error = pull_with(&node, "/f", &sandbox, options).error.expect("it cannot do that");
        node.join();
        assert_eq!((error.code, error.side), (ErrorCode::VersionMismatch, Side::Source), "{error:?}");
        assert!(error.reason == Some(reason) && error.message().contains("is too old"), "{error:?}");
    }
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// It would not see that two of its sources have the same names.
#[test]
fn sources_that_may_have_the_same_names_are_not_asked_of_the_version_before() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    for version in [1, 3] {
        let node = FakeNode::start(move |node| {
            (node.version, node.kind) = (version, Some(ItemKind::Directory));
            while let Some((request, ask)) = node.next() {
                let Some(answer) = node.honest(&ask) else { return };
                node.tell(request, answer);
            }
        });
        let destination = carrack_core::location::Location::Local(
            [sandbox.root().as_os_str().as_encoded_bytes(), b"/there"].concat(),
        );
        let sources = vec![node.at("/a/"), node.at("/b")];
        let options = CopyOptions::default();
        let request = carrack_core::request::CopyRequest { sources, destination, options };
        let error = Copy::start(request, &Context::default()).wait().error.expect("it cannot do that");
        node.join();
        assert_eq!((error.code, error.side), (ErrorCode::VersionMismatch, Side::Source), "{error:?}");
        assert!(error.message().contains("the same names"), "{error:?}");
    }
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// An end that would not know the word for it would verify nothing.
#[test]
fn xxh128_is_asked_only_of_those_who_know_it() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let file = sandbox.root().join("f");
    std::fs::write(&file, b"content").unwrap();
    let options = CopyOptions { digest: Digests::XXH128, ..CopyOptions::default() };
    for (version, pushes) in [(1, false), (2, false), (1, true), (2, true)] {
        let node = FakeNode::start(move |node| {
            (node.version, node.kind) = (version, (!pushes).then_some(ItemKind::File));
            while let Some((request, ask)) = node.next() {
                assert!(!matches!(ask, Ask::Begin(_)), "{ask:?}");
                let Some(answer) = node.honest(&ask) else { return };
                node.tell(request, answer);
            }
        });
        let report = match pushes {
            true => push(&file, &node, "/copy", options.clone()),
            false => pull_with(&node, "/f", &sandbox, options.clone()),
        };
        node.join();
        let error = report.error.expect("it cannot do that");
        let side = if pushes { Side::Destination } else { Side::Source };
        assert_eq!((error.code, error.side), (ErrorCode::VersionMismatch, side), "{error:?}");
        assert!(error.reason == Some(Reason::TooOldForXxh128) && error.message().contains("is too old"), "{error:?}");
    }
    // Nor for sums.
    let node = FakeNode::start(|node| {
        node.version = 2;
        while let Some((request, ask)) = node.next() {
            assert!(!matches!(ask, Ask::Sum(_)), "{ask:?}");
            let Some(answer) = node.honest(&ask) else { return };
            node.tell(request, answer);
        }
    });
    let mut files = Files::open(&node.at("/f"), &EndOptions::default(), &Context::default(), &|_| {}).unwrap();
    let refused = files.sum(b"/f", Digests::XXH128, &mut |_| panic!("nothing was asked")).unwrap_err();
    drop(files);
    node.join();
    assert_eq!(refused.code, ErrorCode::VersionMismatch);
    assert_eq!(refused.reason, Some(Reason::TooOldForXxh128), "{refused:?}");
}

#[test]
fn node_that_is_busy_at_first_is_asked_again() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let busy = || -> Play {
        Box::new(|node| {
            let (request, _) = node.next().expect("a greeting");
            node.tell(request, Tell::Failed(failure(ErrorCode::Busy, Side::Link, "as many as it takes").into()));
        })
    };
    let node = FakeNode::serve(vec![busy(), busy(), Box::new(send_file)]);
    let report = pull_with(&node, "/f", &sandbox, CopyOptions::default());
    node.join();
    assert_eq!((report.error, report.counts.files, report.faults.sessions_lost), (None, 1, 2));
    // And once only, when that is asked for.
    let node = FakeNode::serve(vec![busy()]);
    let error = pull(&node, "/f", &sandbox).error.expect("one attempt");
    node.join();
    assert_eq!(error.code, ErrorCode::Busy, "{error:?}");
}

#[test]
fn node_that_refuses_who_asks_is_not_asked_again() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    for code in [ErrorCode::AuthenticationFailed, ErrorCode::VersionMismatch] {
        let node = FakeNode::start(move |node| {
            let (request, _) = node.next().expect("a greeting");
            node.tell(request, Tell::Failed(failure(code, Side::Link, "no").into()));
        });
        let report = pull_with(&node, "/f", &sandbox, CopyOptions::default());
        node.join();
        assert_eq!(report.faults.sessions_lost, 0);
        assert_eq!(report.error.expect("refused").code, code);
    }
}
