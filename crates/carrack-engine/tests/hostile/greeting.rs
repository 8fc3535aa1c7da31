//! Peers of other versions: one of a later version that also speaks this one, and says more than is known here; one
//! that does not; and a build from before version 1, whose numbers meant other things.

use carrack_core::ids::BundleId;
use carrack_core::report::{ErrorCode, Failure};
use carrack_core::wire::control::raw::*;
use carrack_core::wire::mux::Channel;
use carrack_core::wire::peer::PeerMessage;

use crate::sandbox::Sandbox;
use crate::session::Session;
use crate::watch::Watch;
use crate::wire::{Entry, bundle};

/// A field that nobody has: number 1000, some bytes.
const UNKNOWN_FIELD: &[u8] = b"\xc2\x3e\x03new";

/// A request with a greeting of these fields; each is a number and a value, all small.
fn greeting(fields: &[(u8, u8)]) -> Vec<u8> {
    let hello: Vec<u8> = fields.iter().flat_map(|&(number, value)| [number << 3, value]).collect();
    let hello = [&hello[..], UNKNOWN_FIELD].concat();
    [&[1 << 3, 1, 2 << 3 | 2, hello.len() as u8], &hello[..]].concat()
}

fn answer(fields: &[(u8, u8)]) -> Tell {
    let sandbox = Sandbox::new();
    let mut session = Session::strange(&sandbox.root());
    session.payload(Channel::CONTROL, &greeting(fields));
    let answer = session.wait(|request, _| request == 1).expect("an answer");
    // One that was refused is hung up on.
    assert_eq!(session.leave().is_ok(), matches!(answer, Tell::Welcome(_)));
    answer
}

#[test]
fn later_command_and_one_from_before_version_1_are_answered() {
    let _watch = Watch::start();
    for (oldest, newest) in [(1, 1), (1, 9)] {
        let answer = answer(&[(7, oldest), (8, newest)]);
        assert!(matches!(answer, Tell::Welcome(Welcome { version: 1, .. })), "{answer:?}");
    }
    // Its versions stood in fields 1 and 2.
    for (fields, why) in [
        (&[(7, 2), (8, 9)], "speaks protocol 2 to 9, this side"),
        (&[(1, 1), (2, 7)], "is a build from before protocol version 1"),
    ] {
        let Tell::Failed(refused) = answer(fields) else { panic!("{fields:?} is taken") };
        let refused = Failure::from(refused);
        assert_eq!(refused.code, ErrorCode::VersionMismatch, "{refused:?}");
        assert!(refused.message().contains(why), "{refused:?}");
    }
}

/// Fields that are not known are skipped, in requests and in the peer conversation.
#[test]
fn later_peer_may_say_more_than_is_known() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    let inspect = ToAgent { request: 77, ask: Some(Ask::Inspect(Paths { paths: vec![b"".to_vec()] })) };
    session.payload(Channel::CONTROL, &[&inspect.to_bytes(), UNKNOWN_FIELD].concat());
    let answer = session.wait(|request, _| request == 77);
    assert!(matches!(answer, Some(Tell::Inspected(_))), "{answer:?}");
    session.begin();
    let mut stream = session.stream(0);
    bundle(&mut stream, 1, &[Entry::File(b"f", b"bytes")]);
    assert_eq!(session.heard(), PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() });
    session.payload(Channel::PEER, &[&PeerMessage::Finish.encode(), UNKNOWN_FIELD].concat());
    assert!(matches!(session.heard(), PeerMessage::Finished { .. }));
    session.ended().unwrap();
    session.assert_alive();
    session.leave().unwrap();
}

/// A request or a message that is not known as a whole is not what was agreed on.
#[test]
fn message_of_a_kind_that_is_not_known_breaks_the_protocol() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.payload(Channel::CONTROL, &[&[1 << 3, 7], UNKNOWN_FIELD].concat());
    let failure = session.last_words();
    assert!(failure.message().contains("a request of unknown type"), "{failure:?}");
    assert!(session.leave().is_ok());

    let mut session = Session::start(&sandbox.root());
    session.begin();
    session.payload(Channel::PEER, UNKNOWN_FIELD);
    let failure = session.ended().expect_err("it is taken");
    assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{failure:?}");
    assert!(failure.message().contains("a message of unknown type"), "{failure:?}");
    session.leave().unwrap();
}
