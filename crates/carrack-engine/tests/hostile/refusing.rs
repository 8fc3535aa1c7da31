//! Nodes that do not serve at first, or never.

use std::time::Duration;

use carrack_core::ids::BundleId;
use carrack_core::reference::{ReferenceDirectories, ReferenceUse};
use carrack_core::report::{Counts, ErrorCode, Side};
use carrack_core::request::{Compare, CopyOptions, LinkKind, LinkSet};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::raw::*;
use carrack_core::wire::peer::PeerMessage;
use carrack_engine::testing::error::failure;

use crate::fake_node::{Conversation, FakeNode, IMPATIENT, Play, pull, pull_with, push, push_tuned};
use crate::sandbox::Sandbox;
use crate::session::ended;
use crate::watch::Watch;
use crate::wire::{Entry, bundle};

/// Sends the file that was asked for, as any sender does.
pub fn send_file(node: &mut Conversation) {
    let mut stream = node.begin();
    bundle(&mut stream, 1, &[Entry::File(b"f", b"bytes")]);
    assert_eq!(node.heard(), Some(PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() }));
    node.say(&PeerMessage::Finish);
    assert!(matches!(node.heard(), Some(PeerMessage::Finished { .. })));
    node.tell(0, Tell::Ended(ended(Counts { files: 1, bytes: 5, ..Counts::default() })));
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

/// The sender begins before the receiver has answered. That it refuses is the reason, and not that no data connection
/// was made to it.
#[test]
fn refused_beginning_is_the_reason_also_where_no_connection_is_made() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let file = sandbox.outside().join("large");
    std::fs::write(&file, vec![7; 3 << 20]).unwrap();
    let node = FakeNode::start(|node| {
        node.kind = None;
        while let Some((request, ask)) = node.next() {
            let refusal = || failure(ErrorCode::NodeReadOnly, Side::Destination, "for reading only");
            let answer = match ask {
                Ask::Begin(_) => Some(Tell::Failed(refusal().into())),
                _ => node.honest(&ask),
            };
            let Some(answer) = answer else { return };
            node.tell(request, answer);
            if matches!(ask, Ask::Cancel(_)) {
                return;
            }
        }
    });
    let options = CopyOptions { retries: 0, links: LinkSet::only(LinkKind::Direct), ..CopyOptions::default() };
    let brief = Duration::from_millis(300);
    let hasty = Tuning { link_timeout: brief, link_stagger: brief, ..IMPATIENT };
    let report = push_tuned(&file, &node, "/there", options, hasty);
    node.join();
    assert_eq!(report.error.map(|error| error.code), Some(ErrorCode::NodeReadOnly));
}

/// An end that does not know what reference directories are would send all of it again every night, and say nothing.
#[test]
fn end_that_is_too_old_to_refer_to_directories_is_told_as_such() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let file = sandbox.root().join("small");
    std::fs::write(&file, "small").unwrap();
    let node = FakeNode::start(|node| {
        node.kind = None;
        while let Some((request, ask)) = node.next() {
            let unknown = || failure(ErrorCode::ProtocolViolation, Side::Link, "a request of unknown type");
            assert!(!matches!(ask, Ask::Begin(_)), "it began without them");
            match node.honest(&ask) {
                Some(answer) => node.tell(request, answer),
                None if matches!(ask, Ask::Refer(_)) => node.tell(request, Tell::Failed(unknown().into())),
                None => return,
            }
        }
    });
    let references = ReferenceDirectories::new(ReferenceUse::Link, vec![b"../monday".to_vec()]).ok();
    let compare = Compare::SizeAndTime;
    let report = push(&file, &node, "/in/f", CopyOptions { references, compare, retries: 0, ..CopyOptions::default() });
    node.join();
    let error = report.error.expect("it is too old");
    assert_eq!((error.code, report.faults.sessions_lost), (ErrorCode::Unsupported, 0), "{error:?}");
    assert!(error.to_string().contains("older"), "{error}");
}
