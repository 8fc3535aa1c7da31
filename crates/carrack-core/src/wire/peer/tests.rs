//! Messages come back, and what no peer may say is refused.

use super::*;
use crate::attributes::{Attribute, AttributeKind};
use crate::report::ItemKind;
use crate::request::Digests;

fn others() -> OtherAttributes {
    let of = |kind, value: &[u8]| Attribute { kind: AttributeKind(kind), value: value.into() };
    OtherAttributes::new(vec![of(3, b"value"), of(u16::MAX, b"")]).unwrap()
}

fn directory(path: &[u8], mode: u32, mtime: Time) -> DirectoryAttributes {
    DirectoryAttributes {
        path: path.to_vec(),
        attributes: Attributes { others: others(), ..Attributes::new(mode, mtime) },
    }
}

#[test]
fn messages_come_back() {
    let failure = Failure::new(ErrorCode::NoSpace, Side::Destination, "a/b: write: no space");
    let digest = BlockDigest { main: [5; 32], adler32: 0x0102_0304, crc32c: u32::MAX };
    let all = Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 };
    let messages = [
        PeerMessage::Offer(Offer {
            item: ItemId(7),
            path: b"a/\xff".to_vec(),
            size: Some(0),
            attributes: Attributes { others: others(), ..Attributes::new(0o640, Time::new(-5, 999_999_999)) },
            sparse: true,
            fingerprint: Some([7; 16]),
        }),
        PeerMessage::Answer { item: ItemId(7), answer: Answer::Refuse(failure.clone()) },
        PeerMessage::Answer { item: ItemId(7), answer: Answer::Accept },
        PeerMessage::Landed {
            blocks: vec![(ItemId(7), 0), (ItemId(7), 4096)],
            bundles: vec![BundleId(1), BundleId(2)],
        },
        PeerMessage::SendAgain { item: ItemId(7), offset: 4096 },
        PeerMessage::Complete { item: ItemId(7), size: 5000, digest: Some([9; 32]), modified: None },
        PeerMessage::Complete { item: ItemId(7), size: 0, digest: None, modified: Some(Time::new(-1, 2)) },
        PeerMessage::Abandon { item: ItemId(7) },
        PeerMessage::Done { item: ItemId(u64::MAX), result: ItemResult::Mismatch },
        PeerMessage::BundleDone {
            bundle: BundleId(3),
            exceptions: vec![
                (4, ItemResult::Failed(failure.clone())),
                (5, ItemResult::Kept),
                (6, ItemResult::Again(failure.clone())),
            ],
        },
        PeerMessage::Directories(vec![directory(b"d", 0o755, Time::new(1, 2))]),
        PeerMessage::Finish,
        PeerMessage::FinishContents(directory(b"", 0o2755, Time::new(-1, 2))),
        PeerMessage::FinishOncePublished { ended_otherwise: 0 },
        PeerMessage::FinishOncePublished { ended_otherwise: u64::MAX },
        PeerMessage::Finished { durable: true },
        PeerMessage::DirectoriesFailed(vec![(b"d/e".to_vec(), failure.clone()), (Vec::new(), failure.clone())]),
        PeerMessage::Fail(failure),
        PeerMessage::StreamLost { stream: StreamId(7) },
        PeerMessage::Held {
            item: ItemId(7),
            first: 3,
            digests: vec![digest, BlockDigest::default()],
            taken_over: true,
            chunks: vec![1, u32::MAX],
        },
        PeerMessage::Confirm { item: ItemId(7), first: 3, count: 2 },
        PeerMessage::Query {
            bundle: BundleId(9),
            items: vec![QueryItem {
                index: 4,
                path: b"a".to_vec(),
                kind: ItemKind::Symlink,
                size: 0,
                mode: 0o777,
                mtime: Time::new(-1, 2),
                others: others(),
                fingerprint: Some([1; 16]),
            }],
        },
        PeerMessage::Known { bundle: BundleId(9), items: vec![(4, digest.as_file(all))] },
        PeerMessage::Answer { item: ItemId(7), answer: Answer::Present(digest.as_file(all)) },
        PeerMessage::Answer { item: ItemId(8), answer: Answer::Shared },
    ];
    for message in messages {
        assert_eq!(PeerMessage::decode(&message.encode()), Ok(message));
    }
}

#[test]
fn hostile_paths_and_sizes_are_refused_at_the_door() {
    let offer = |path: &[u8], size| {
        let offer = Offer {
            item: ItemId(1),
            path: path.to_vec(),
            size: Some(size),
            attributes: Attributes::default(),
            sparse: false,
            fingerprint: None,
        };
        PeerMessage::decode(&PeerMessage::Offer(offer).encode())
    };
    assert!(offer(b"fine", 1).is_ok());
    for path in [&b""[..], b"/x", b"../x", b"a/../../x", b"a//b", b"a\0"] {
        assert!(offer(path, 1).is_err(), "{path:?}");
    }
    assert!(offer(b"fine", u64::MAX).is_err());
    let directory = directory(b"../..", 0o777, Time::default());
    assert!(PeerMessage::decode(&PeerMessage::Directories(vec![directory]).encode()).is_err());
    let failed = vec![(b"../..".to_vec(), unexplained())];
    assert!(PeerMessage::decode(&PeerMessage::DirectoriesFailed(failed).encode()).is_err());
    assert!(PeerMessage::decode(&[0xff; 100]).is_err());
    assert!(PeerMessage::decode(&[]).is_err());
}
