//! A peer that breaks the protocol: each machine says so, never panics, and keeps its bounds.
#![cfg(test)]

mod attributes;
mod comparing;
mod directories;
mod earlier_receiver;
mod earlier_sender;
mod following;
mod further_names;
mod in_flight;
mod last_word;
mod read_twice;
mod receiver;
mod retired;
mod sender;

use std::sync::LazyLock;
use std::time::Instant;

use super::simulation::plan::Rng;
use crate::attributes::{Attributes, OtherAttributes, Time};
use crate::digest::{BlockDigest, FileDigests};
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::{BundleId, ItemId};
use crate::judgment::Judgment;
use crate::report::ItemKind;
use crate::request::{Digests, MainDigest};
use crate::wire::ProtocolError;
use crate::wire::peer::{
    Answer, AskedIndex, AskedItem, DirectoryAttributes, ItemResult, PeerMessage, QueryItem, Question,
};

const BLOCK: u32 = 1024;

/// The moment at which a test begins, as long as it does not say that time passes.
fn start() -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    *START
}

fn failure() -> Failure {
    Failure::new(ErrorCode::Other, Side::Link, "hostile")
}

fn is_violation<T: std::fmt::Debug>(result: Result<T, ProtocolError>) {
    let error = result.expect_err("no honest peer does this");
    assert_eq!(error.code, ErrorCode::ProtocolViolation);
}

fn result(rng: &mut Rng) -> ItemResult {
    match rng.below(6) {
        0 => ItemResult::Published,
        1 => ItemResult::Kept,
        2 => ItemResult::Mismatch,
        3 => ItemResult::Failed(failure()),
        4 => ItemResult::Again(failure()),
        _ => ItemResult::Dropped,
    }
}

fn digests(rng: &mut Rng) -> FileDigests {
    let digest = BlockDigest { main: [7; 32], ..BlockDigest::default() };
    let wanted = Digests { main: (!rng.chance(100)).then_some(MainDigest::Blake3), adler32: true, crc32c: true };
    digest.as_file(wanted)
}

fn question(index: u32) -> QueryItem {
    let path = format!("small{index}").into_bytes();
    QueryItem {
        index,
        path,
        kind: ItemKind::File,
        size: 5,
        mode: 0o644,
        mtime: Time::default(),
        others: OtherAttributes::default(),
        fingerprint: Some([1; 16]),
    }
}

/// Any message, with numbers small enough to hit what there is.
fn any_message(rng: &mut Rng) -> PeerMessage {
    let item = rng.below(12);
    let offset = rng.below(6) * u64::from(BLOCK) + u64::from(rng.chance(100));
    match rng.below(20) {
        0 => super::orders::offer(ItemId(rng.below(400)), (!rng.chance(300)).then(|| rng.below(8000))),
        1 => {
            let answer = match rng.below(5) {
                4 => Answer::Shared,
                3 => Answer::Present(digests(rng)),
                0 => Answer::Keep,
                1 => Answer::Refuse(failure()),
                _ => Answer::Accept,
            };
            PeerMessage::Answer { item: ItemId(item), answer }
        }
        2 => PeerMessage::Landed { blocks: vec![(ItemId(item), offset)], bundles: vec![BundleId(rng.below(12))] },
        3 => PeerMessage::SendAgain { item: ItemId(item), offset },
        4 => PeerMessage::Complete {
            item: ItemId(item),
            size: rng.below(8000),
            digest: (!rng.chance(100)).then_some([7; 32]),
            modified: None,
        },
        5 => PeerMessage::Abandon { item: ItemId(item) },
        6 => PeerMessage::Done { item: ItemId(item), result: result(rng) },
        7 => {
            let exceptions = (0..rng.below(3)).map(|_| (rng.below(4) as u32, result(rng))).collect();
            PeerMessage::BundleDone { bundle: BundleId(item), exceptions }
        }
        8 => PeerMessage::Directories(vec![DirectoryAttributes {
            path: b"d".to_vec(),
            attributes: Attributes::default(),
        }]),
        9 if rng.chance(50) => PeerMessage::Finish,
        9 if rng.chance(50) => {
            PeerMessage::FinishContents(DirectoryAttributes { path: Vec::new(), attributes: Attributes::default() })
        }
        9 => PeerMessage::FinishOncePublished { ended_otherwise: rng.below(3) },
        10 if rng.chance(50) => PeerMessage::Finished { durable: true },
        10 => PeerMessage::DirectoriesFailed(vec![(b"d".to_vec(), failure())]),
        11 if rng.chance(20) => PeerMessage::Fail(failure()),
        12 => PeerMessage::Held {
            item: ItemId(item),
            first: rng.below(9),
            digests: vec![BlockDigest::default(); rng.below(4) as usize],
            taken_over: rng.chance(50),
            chunks: Vec::new(),
        },
        13 => PeerMessage::Confirm {
            item: ItemId(item),
            first: rng.below(9),
            count: [1, 2, 5, u64::MAX][rng.below(4) as usize],
        },
        14 => {
            let items = (0..rng.below(4)).map(|_| question(rng.below(5) as u32)).collect();
            PeerMessage::Query { bundle: BundleId(item), items }
        }
        15 => {
            let items = (0..rng.below(3)).map(|_| (rng.below(4) as u32, digests(rng))).collect();
            PeerMessage::Known { bundle: BundleId(item), items }
        }
        16.. => any_comparison(rng, BundleId(item)),
        _ => PeerMessage::Landed {
            blocks: vec![(ItemId(u64::MAX - item), u64::MAX - offset)],
            bundles: vec![BundleId(u64::MAX)],
        },
    }
}

/// Of what compares both sides.
fn any_comparison(rng: &mut Rng, number: BundleId) -> PeerMessage {
    match rng.below(6) {
        0 => {
            let mtime = Some(Time::default());
            let of = |index| AskedItem {
                path: question(index).path,
                kind: ItemKind::File,
                size: 5,
                mtime,
                mode: 0o600,
                others: OtherAttributes::default(),
                leads_to: Vec::new(),
                hard_link: None,
            };
            let items = (0..rng.below(3) as u32).map(of).collect();
            PeerMessage::Compare { number, question: Question { items, ..Question::default() } }
        }
        1 => {
            let judgments = (0..rng.below(3)).filter_map(|_| Judgment::from_number(rng.below(6) as u8)).collect();
            PeerMessage::Compared { number, judgments }
        }
        2 => {
            let asked = AskedIndex { number, index: rng.below(3) as u32 };
            PeerMessage::Content { asked, digest: (!rng.chance(300)).then_some([7; 32]) }
        }
        4 => {
            let paths = (0..rng.below(3) as u32).map(|index| question(index).path).collect();
            PeerMessage::AskStillThere { number, paths }
        }
        5 => PeerMessage::StillThere { number, there: vec![rng.chance(500); rng.below(3) as usize] },
        3 if rng.chance(100) => PeerMessage::Delete { failed: rng.below(2) },
        _ => {
            let asked = AskedIndex { number, index: rng.below(3) as u32 };
            let same = rng.chance(500);
            PeerMessage::ContentCompared { asked, same, chunks: vec![7; rng.below(2) as usize] }
        }
    }
}
