//! Pieces of a data stream that are not what they say, and peers that know nothing of pieces.

use carrack_core::ids::ItemId;
use carrack_core::limits::PIECE_BYTES;
use carrack_core::pace::packing::Compressible;
use carrack_core::report::{ErrorCode, Failure, ItemKind};
use carrack_core::request::CopyOptions;
use carrack_core::wire::control::raw::{Ask, Begin, RawOptions, ReceiveRole, Role};
use carrack_core::wire::peer::{Answer, PeerMessage};
use carrack_core::wire::piece::PieceHeader;

use crate::attributes::{receive_file, send_unknown};
use crate::fake_node::{FakeNode, pull_with, push};
use crate::sandbox::Sandbox;
use crate::session::{Session, options};
use crate::watch::Watch;
use crate::wire::offer;

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; zstd_safe::compress_bound(plain.len())];
    let length = zstd_safe::compress(&mut packed[..], plain, 1).unwrap();
    packed.truncate(length);
    packed
}

fn piece(plain: u32, packed: &[u8]) -> Vec<u8> {
    [&PieceHeader { plain, packed: Some(packed.len() as u32) }.encode()[..], packed].concat()
}

/// The agent takes a stream that is cut into pieces, and gets these bytes.
fn refused(sandbox: &Sandbox, bytes: &[u8]) -> Failure {
    let failure = sandbox.around(|root| {
        let mut session = Session::start(root);
        let begin = Begin {
            options: Some(RawOptions { compress: true, ..options() }),
            role: Some(Role::Receive(ReceiveRole::default())),
        };
        session.request(Ask::Begin(begin)).unwrap();
        session.say(&offer(1, b"large", Some(5)));
        assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
        let mut stream = session.stream(0);
        let _ = stream.payload(bytes).and_then(|()| stream.flush());
        let failure = session.ended().expect_err("the receiver took it");
        session.assert_alive();
        session.leave().unwrap();
        failure
    });
    sandbox.assert_untouched();
    failure
}

/// A few hundred bytes of zstd may be a gigabyte: there is memory for what the header says, and that has a bound.
#[test]
fn pieces_that_unpack_to_something_else_end_the_transfer() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let bomb = packed(&vec![0; 64 << 20]);
    assert!(bomb.len() < PIECE_BYTES as usize / 2);
    let many = bomb.repeat(10);
    let good = packed(&[7; 1000]);
    let cases = [
        (piece(PIECE_BYTES, &bomb), "a compressed piece of"),
        (piece(PIECE_BYTES, &many), "a compressed piece of"),
        (piece(999, &good), "a compressed piece of"),
        (piece(1001, &good), "a compressed piece of"),
        (piece(1000, &good[..good.len() - 1]), "a compressed piece of"),
        (piece(1000, b"(\xb5/\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "a compressed piece of"),
        (vec![0xff; 8], "a piece of 4294967295 bytes"),
        (piece(PIECE_BYTES + 1, &good), "a piece of 262145 bytes"),
        (piece(0, &[]), "a piece of 0 bytes"),
        (piece(1000, &[0; 1000]), "a piece of 1000 bytes, compressed to 1000"),
    ];
    for (bytes, what) in cases {
        let failure = refused(&sandbox, &bytes);
        assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{what}: {failure:?}");
        assert!(failure.message().contains(what), "{what}: {failure:?}");
    }
}

/// What comes out of a piece is looked at as if it had come as it is.
#[test]
fn frames_within_pieces_are_checked_as_ever() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let failure = refused(&sandbox, &piece(4800, &packed(&[9; 4800])));
    assert!(failure.message().contains("the peer sent a frame"), "{failure:?}");
}

/// A node from before there were pieces neither sends nor gets any, and the copy comes out as ever.
#[test]
fn older_peers_are_not_sent_pieces() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let options = || CopyOptions { compress: true, retries: 0, ..CopyOptions::default() };
    let node = FakeNode::start(|node| {
        node.kind = Some(ItemKind::Directory);
        send_unknown(node);
    });
    let report = pull_with(&node, "/in/", &sandbox, options());
    node.join();
    assert_eq!((&report.error, report.counts.files), (&None, 3));
    assert_eq!((report.compress, report.counts.bytes_compressed), (Some(Compressible::OldSource), 0));
    let file = sandbox.outside().join("canary");
    let content = std::fs::read(&file).unwrap();
    let node = FakeNode::start(move |node| {
        node.kind = None;
        assert_eq!(receive_file(node).2, content);
    });
    let report = push(&file, &node, "/copy", options());
    node.join();
    assert_eq!((&report.error, report.counts.files), (&None, 1));
    assert_eq!((report.compress, report.counts.bytes_compressed), (Some(Compressible::OldDestination), 0));
}
