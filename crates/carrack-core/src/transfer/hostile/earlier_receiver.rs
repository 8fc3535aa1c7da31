//! Senders that say of an earlier attempt what cannot be, or honest ones; and what a receiver does with a marker.
#![cfg(test)]

use super::receiver::{actions, recovering};
use super::*;
use crate::ids::{BundleId, ItemId, StreamId};
use crate::limits;
use crate::request::Verify;
use crate::transfer::machine::Machine;
use crate::transfer::orders::offer;
use crate::transfer::receiver::ArrivedBlock;
use crate::transfer::receiver::{BlockStart, Opened, Receiver, ReceiverAction, ReceiverConfig};
use crate::tuning::Tuning;
use crate::wire::frame::Trailer;
use crate::wire::patch::TakenBlock;

const SIZE: u64 = 5000;

fn digest(of: u8) -> BlockDigest {
    BlockDigest { main: [of; 32], ..BlockDigest::default() }
}

fn confirm(first: u64, count: u64) -> PeerMessage {
    PeerMessage::Confirm { item: ItemId(1), first, count }
}

/// Item 1 is open, with these blocks from an earlier attempt.
fn resumed(verify: Verify, blocks: &[u64]) -> Receiver {
    let mut receiver = recovering(verify);
    receiver.handle_message(start(), offer(ItemId(1), Some(SIZE))).unwrap();
    let blocks = blocks.iter().map(|&index| (index, digest(index as u8))).collect();
    receiver.handle_opened(start(), ItemId(1), Opened::Resumed { left: blocks, taken_over: Vec::new() });
    receiver
}

fn deliver(receiver: &mut Receiver, index: u64, digest: BlockDigest) {
    let offset = index * u64::from(BLOCK);
    let length = (SIZE - offset).min(u64::from(BLOCK)) as u32;
    assert_eq!(
        receiver.begin_block(StreamId(0), ItemId(1), offset, length, false),
        Ok(BlockStart::Write),
        "block {index}"
    );
    receiver.handle_block(
        start(),
        StreamId(0),
        ArrivedBlock { item: ItemId(1), offset, length },
        digest,
        &Trailer { whole: true, digest },
    );
}

/// Tells what the file must be, by what the blocks would make it.
fn complete(receiver: &mut Receiver) {
    let mut tree = crate::digest::FileTree::new(BLOCK, crate::transfer::orders::options(BLOCK).digests);
    for index in 0..5 {
        tree.insert(index, (SIZE - index * 1024).min(1024), digest(index as u8));
    }
    let blake3 = tree.finish(SIZE).unwrap().blake3;
    receiver
        .handle_message(start(), PeerMessage::Complete { item: ItemId(1), size: SIZE, digest: blake3, modified: None })
        .unwrap();
}

fn publishes(actions: &[ReceiverAction]) -> bool {
    actions.iter().any(|action| matches!(action, ReceiverAction::Publish { item: ItemId(1), .. }))
}

fn checkpoint(actions: &[ReceiverAction]) -> Option<Vec<u64>> {
    actions.iter().find_map(|action| match action {
        ReceiverAction::Checkpoint { item: ItemId(1), blocks } => {
            Some(blocks.iter().map(|(index, _)| *index).collect())
        }
        _ => None,
    })
}

#[test]
fn held_blocks_are_told_before_the_answer() {
    // Of what cannot be part of the file nothing is said.
    let told = actions(&mut resumed(Verify::Wire, &[0, 1, 3, 5, 99, u64::MAX]));
    let held = |first: u64, count| PeerMessage::Held {
        item: ItemId(1),
        first,
        digests: (first..first + count).map(|index| digest(index as u8)).collect(),
        taken_over: false,
        chunks: Vec::new(),
    };
    let accept = PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept };
    assert_eq!(told[1..], [held(0, 2), held(3, 1), accept].map(ReceiverAction::Send));
}

#[test]
fn held_blocks_alone_are_confirmed() {
    let mut receiver = resumed(Verify::Wire, &[0, 1, 3]);
    for (first, count) in [(0, 3), (2, 1), (3, 2), (0, u64::MAX), (u64::MAX, 1), (4, 1)] {
        is_violation(receiver.handle_message(start(), confirm(first, count)));
    }
    is_violation(receiver.handle_message(start(), PeerMessage::Confirm { item: ItemId(2), first: 0, count: 1 }));
    receiver.handle_message(start(), confirm(0, 2)).unwrap();
    is_violation(receiver.handle_message(start(), confirm(0, 1)));
    // It landed so: what comes of it is dropped.
    assert_eq!(receiver.begin_block(StreamId(0), ItemId(1), 0, BLOCK, false), Ok(BlockStart::Discard));
    // What is sent all the same is not held any more.
    deliver(&mut receiver, 3, digest(9));
    is_violation(receiver.handle_message(start(), confirm(3, 1)));
    let mut opening = recovering(Verify::Wire);
    opening.handle_message(start(), offer(ItemId(1), Some(SIZE))).unwrap();
    is_violation(opening.handle_message(start(), confirm(0, 1)));
    // What has ended may still be named.
    opening.handle_opened(start(), ItemId(1), Opened::Keep);
    opening.handle_message(start(), confirm(0, 1)).unwrap();
}

#[test]
fn held_and_sent_blocks_make_the_file() {
    let mut receiver = resumed(Verify::Wire, &[0, 1, 4]);
    [2, 3].into_iter().for_each(|index| deliver(&mut receiver, index, digest(index as u8)));
    complete(&mut receiver);
    receiver.handle_message(start(), confirm(4, 1)).unwrap();
    assert!(!publishes(&actions(&mut receiver)));
    receiver.handle_message(start(), confirm(0, 2)).unwrap();
    assert!(publishes(&actions(&mut receiver)));
}

#[test]
fn file_that_is_not_what_it_must_be_comes_again() {
    let mut receiver = resumed(Verify::Wire, &[0, 1, 2, 3, 4]);
    let wrong = PeerMessage::Complete { item: ItemId(1), size: SIZE, digest: Some([1; 32]), modified: None };
    receiver.handle_message(start(), wrong).unwrap();
    receiver.handle_message(start(), confirm(0, 5)).unwrap();
    let ended = actions(&mut receiver);
    assert!(ended.contains(&ReceiverAction::Discard(ItemId(1))));
    let again = |action: &ReceiverAction| {
        matches!(action, ReceiverAction::Send(PeerMessage::Done { item: ItemId(1), result: ItemResult::Again(_) }))
    };
    assert!(ended.iter().any(again), "{ended:?}");
    assert_eq!(receiver.progress(), (0, 0));
}

#[test]
fn questions_are_bounded() {
    let ask = |bundle, items| PeerMessage::Query { bundle, items };
    let mut receiver = recovering(Verify::Wire);
    let many = (0..=limits::BUNDLE_ITEMS).map(question).collect();
    for items in [Vec::new(), vec![question(1), question(1)], vec![question(limits::BUNDLE_ITEMS)], many] {
        is_violation(receiver.handle_message(start(), ask(BundleId(1), items)));
    }
    for bundle in 1..=limits::QUERIES as u64 {
        receiver.handle_message(start(), ask(BundleId(bundle), vec![question(0)])).unwrap();
    }
    for bundle in [1, 99] {
        is_violation(receiver.handle_message(start(), ask(BundleId(bundle), vec![question(0)])));
    }
    is_violation(receiver.handle_message(start(), PeerMessage::Finish));
    // Of what is there without the digests agreed, and of what was not asked about, nothing is said.
    let all = digest(7).as_file(Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 });
    receiver.handle_looked(start(), BundleId(1), vec![(0, all), (1, all)]);
    receiver.handle_looked(start(), BundleId(2), vec![(0, FileDigests::default())]);
    receiver.handle_looked(start(), BundleId(2), vec![(0, all)]);
    let told: Vec<_> = actions(&mut receiver)
        .into_iter()
        .filter_map(|action| match action {
            ReceiverAction::Send(PeerMessage::Known { bundle, items }) => Some((bundle, items.len())),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(BundleId(1), 1), (BundleId(2), 0)]);
}

#[test]
fn landed_blocks_are_checkpointed_now_and_then() {
    let now = start();
    let mut receiver = resumed(Verify::Wire, &[]);
    receiver.handle_time(now);
    assert_eq!(receiver.next_deadline(), None);
    deliver(&mut receiver, 0, digest(0));
    deliver(&mut receiver, 2, digest(2));
    let due = now + Tuning::DEFAULT.marker_interval;
    assert_eq!(receiver.next_deadline(), Some(due));
    assert_eq!(checkpoint(&actions(&mut receiver)), None);
    receiver.handle_time(due);
    assert_eq!(checkpoint(&actions(&mut receiver)), Some(vec![0, 2]));
    // One at a time; what lands meanwhile waits for the next.
    deliver(&mut receiver, 1, digest(1));
    receiver.handle_time(due + 2 * Tuning::DEFAULT.marker_interval);
    assert_eq!(checkpoint(&actions(&mut receiver)), None);
    assert_eq!(receiver.unsaved(), [(ItemId(1), vec![(1, digest(1))])]);
    receiver.handle_checkpointed(start(), ItemId(1), Ok(Vec::new()));
    receiver.handle_time(due + 4 * Tuning::DEFAULT.marker_interval);
    assert_eq!(checkpoint(&actions(&mut receiver)), Some(vec![1]));
    receiver.handle_checkpointed(start(), ItemId(1), Ok(Vec::new()));
    assert_eq!((receiver.next_deadline(), receiver.unsaved()), (None, Vec::new()));
}

#[test]
fn checkpoint_comes_at_once_after_many_bytes() {
    let block = 64 << 20;
    let mut receiver = Receiver::new(crate::transfer::receiver::ReceiverConfig {
        options: crate::transfer::orders::options(block),
        checkpoints: true,
        tuning: Tuning::DEFAULT,
    });
    receiver.handle_stream(start(), StreamId(0));
    receiver.handle_message(start(), offer(ItemId(1), Some(1 << 40))).unwrap();
    receiver.handle_opened(start(), ItemId(1), Opened::Ready);
    for index in 0..4 {
        assert_eq!(checkpoint(&actions(&mut receiver)), None);
        assert_eq!(
            receiver.begin_block(StreamId(0), ItemId(1), index * u64::from(block), block, false),
            Ok(BlockStart::Write)
        );
        receiver.handle_block(
            start(),
            StreamId(0),
            ArrivedBlock { item: ItemId(1), offset: index * u64::from(block), length: block },
            digest(1),
            &Trailer { whole: true, digest: digest(1) },
        );
    }
    assert_eq!(checkpoint(&actions(&mut receiver)), Some(vec![0, 1, 2, 3]));
}

/// What is read back past the cache is read before the file has its name, held blocks too.
#[test]
fn verify_disk_checkpoints_every_block_first() {
    let mut receiver = resumed(Verify::Disk, &[0, 1, 2]);
    receiver.handle_message(start(), confirm(0, 3)).unwrap();
    [3, 4].into_iter().for_each(|index| deliver(&mut receiver, index, digest(index as u8)));
    complete(&mut receiver);
    let told = actions(&mut receiver);
    assert_eq!((publishes(&told), checkpoint(&told)), (false, Some(vec![0, 1, 2, 3, 4])));
    // Landed is said before the block is asked for again: else the sender would take the one for the end of the other.
    receiver.handle_checkpointed(start(), ItemId(1), Ok(vec![3]));
    let told = actions(&mut receiver);
    assert!(!publishes(&told));
    assert_eq!(told, [ReceiverAction::Send(PeerMessage::SendAgain { item: ItemId(1), offset: 3 * u64::from(BLOCK) })]);
    assert_eq!(receiver.blocks_rotten(), 1);
    deliver(&mut receiver, 3, digest(3));
    assert_eq!(checkpoint(&actions(&mut receiver)), Some(vec![3]));
    receiver.handle_checkpointed(start(), ItemId(1), Ok(Vec::new()));
    assert!(publishes(&actions(&mut receiver)));
}

#[test]
fn landed_block_is_told_before_it_is_taken_back() {
    let now = start();
    let mut receiver = resumed(Verify::Disk, &[]);
    receiver.handle_time(now);
    actions(&mut receiver);
    deliver(&mut receiver, 0, digest(0));
    receiver.handle_time(now + Tuning::DEFAULT.marker_interval);
    assert!(matches!(receiver.poll_action(), Some(ReceiverAction::Checkpoint { .. })));
    deliver(&mut receiver, 1, digest(1));
    receiver.handle_checkpointed(start(), ItemId(1), Ok(vec![0]));
    let landed =
        PeerMessage::Landed { blocks: vec![(ItemId(1), 0), (ItemId(1), u64::from(BLOCK))], bundles: Vec::new() };
    let again = PeerMessage::SendAgain { item: ItemId(1), offset: 0 };
    assert_eq!(actions(&mut receiver), [landed, again].map(ReceiverAction::Send));
    // Another content in its place is another file.
    deliver(&mut receiver, 0, digest(8));
    assert!(actions(&mut receiver).contains(&ReceiverAction::Discard(ItemId(1))));
}

/// The system tells once that a sync has failed. Whoever published meanwhile, with a sync of their
/// own, would not hear of it.
#[test]
fn publishing_waits_for_a_sync_under_way() {
    let now = start();
    let mut receiver = resumed(Verify::Wire, &[1, 2, 3, 4]);
    receiver.handle_time(now);
    receiver.handle_message(start(), confirm(1, 4)).unwrap();
    deliver(&mut receiver, 0, digest(0));
    receiver.handle_time(now + Tuning::DEFAULT.marker_interval);
    assert_eq!(checkpoint(&actions(&mut receiver)), Some(vec![0]));
    complete(&mut receiver);
    assert!(!publishes(&actions(&mut receiver)));
    receiver.handle_checkpointed(start(), ItemId(1), Err(failure()));
    let done = PeerMessage::Done { item: ItemId(1), result: ItemResult::Again(failure()) };
    assert_eq!(actions(&mut receiver), [ReceiverAction::Discard(ItemId(1)), ReceiverAction::Send(done)]);
    // A word that comes late is about nothing.
    receiver.handle_checkpointed(start(), ItemId(1), Ok(vec![0]));
    assert_eq!(actions(&mut receiver), []);
}

#[test]
fn part_file_with_blocks_outlives_a_transfer_that_failed() {
    let mut receiver = recovering(Verify::Wire);
    receiver.handle_message(start(), offer(ItemId(1), Some(SIZE))).unwrap();
    receiver.handle_message(start(), offer(ItemId(2), Some(SIZE))).unwrap();
    receiver.fail(failure());
    actions(&mut receiver);
    receiver.handle_opened(start(), ItemId(1), Opened::Resumed { left: vec![(0, digest(0))], taken_over: Vec::new() });
    receiver.handle_opened(start(), ItemId(2), Opened::Ready);
    assert_eq!(actions(&mut receiver), [ReceiverAction::Discard(ItemId(2))]);
}

/// What a failed sync has voided is not made good by a later one, which would succeed.
#[test]
fn sync_that_fails_after_the_end_leaves_nothing_to_take_up() {
    let now = start();
    let mut receiver = resumed(Verify::Wire, &[]);
    receiver.handle_time(now);
    deliver(&mut receiver, 0, digest(0));
    receiver.handle_time(now + Tuning::DEFAULT.marker_interval);
    assert_eq!(checkpoint(&actions(&mut receiver)), Some(vec![0]));
    deliver(&mut receiver, 1, digest(1));
    receiver.fail(failure());
    actions(&mut receiver);
    assert_eq!(receiver.unsaved(), [(ItemId(1), vec![(1, digest(1))])]);
    receiver.handle_checkpointed(start(), ItemId(1), Err(failure()));
    assert_eq!((receiver.unsaved(), actions(&mut receiver)), (Vec::new(), vec![ReceiverAction::Discard(ItemId(1))]));
}

/// What is taken over is told with its chunks, and only a block whose chunks were told may come as a patch.
#[test]
fn chunks_are_told_of_what_is_taken_over() {
    let taken = |index: u64, chunks: usize| TakenBlock { index, digest: digest(2), chunks: vec![index as u32; chunks] };
    let mut receiver = recovering(Verify::Wire);
    receiver.handle_message(start(), offer(ItemId(1), Some(SIZE))).unwrap();
    let taken_over = vec![taken(1, 4), taken(2, 4), taken(3, 0)];
    receiver.handle_opened(start(), ItemId(1), Opened::Resumed { left: vec![(0, digest(1))], taken_over });
    let held = |first: u64, digests: Vec<BlockDigest>, chunks: Vec<u32>| {
        let taken_over = first > 0;
        ReceiverAction::Send(PeerMessage::Held { item: ItemId(1), first, digests, taken_over, chunks })
    };
    let told = actions(&mut receiver);
    let accept = ReceiverAction::Send(PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
    let both = held(1, vec![digest(2); 2], [[1; 4], [2; 4]].concat());
    let wanted = [held(0, vec![digest(1)], Vec::new()), both, held(3, vec![digest(2)], Vec::new()), accept];
    // A store need not tell the chunks of each block.
    assert_eq!(told[1..], wanted);
    for (index, may) in [(0, false), (1, true), (2, true), (3, false), (4, false)] {
        let checked = receiver.check_patch(ItemId(1), index * u64::from(BLOCK));
        assert_eq!(checked.is_ok(), may, "block {index}");
    }
    // What has ended may still be under way.
    receiver.check_patch(ItemId(7), 0).unwrap();
}

/// Of blocks with many chunks one message tells of few: it stays within what a message may have.
#[test]
fn message_about_chunks_is_short() {
    let (size, block) = (1_u64 << 36, 64_u32 << 20);
    let options = crate::transfer::orders::options(block);
    let config = ReceiverConfig { options, checkpoints: true, tuning: Tuning::DEFAULT };
    let mut receiver = Receiver::new(config);
    receiver.handle_message(start(), offer(ItemId(1), Some(size))).unwrap();
    let taken = |index| TakenBlock { index, digest: digest(2), chunks: vec![5; 256] };
    let taken_over = (0..1024).map(taken).collect();
    receiver.handle_opened(start(), ItemId(1), Opened::Resumed { left: Vec::new(), taken_over });
    let (mut blocks, mut messages) = (0, 0);
    for action in actions(&mut receiver) {
        if let ReceiverAction::Send(message @ PeerMessage::Held { .. }) = action {
            assert!(message.encode().len() < limits::MESSAGE_BYTES);
            let PeerMessage::Held { digests, chunks, .. } = message else { unreachable!() };
            assert_eq!(chunks.len(), digests.len() * 256);
            (blocks, messages) = (blocks + digests.len(), messages + 1);
        }
    }
    assert_eq!((blocks, messages), (1024, 2));
}
