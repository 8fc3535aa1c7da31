//! Hostile senders.
#![cfg(test)]

use super::*;
use crate::digest::from_xxh128;
use crate::ids::{BundleId, ItemId, StreamId};
use crate::judgment::Judgment;
use crate::limits;
use crate::request::Verify;
use crate::transfer::BLOCKS_AHEAD;
use crate::transfer::machine::Machine;
use crate::transfer::orders::{offer, options};
use crate::transfer::receiver::ArrivedBlock;
use crate::transfer::receiver::{BlockStart, Opened, Receiver, ReceiverAction, ReceiverConfig};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;
use crate::wire::frame::Trailer;

fn receiver() -> Receiver {
    let mut receiver =
        Receiver::new(ReceiverConfig { options: options(BLOCK), checkpoints: false, tuning: Tuning::DEFAULT });
    (0..3).for_each(|stream| receiver.handle_stream(start(), StreamId(stream)));
    receiver
}

/// A receiver that has accepted item 1.
fn open(size: Option<u64>) -> Receiver {
    let mut receiver = receiver();
    receiver.handle_message(start(), offer(ItemId(1), size)).unwrap();
    receiver.handle_opened(start(), ItemId(1), Opened::Ready);
    while receiver.poll_action().is_some() {}
    receiver
}

/// A receiver that checkpoints, between two that can go on from an earlier attempt.
pub(super) fn recovering(verify: Verify) -> Receiver {
    let options = TransferOptions { verify, ..options(BLOCK) };
    let mut receiver = Receiver::new(ReceiverConfig { options, checkpoints: true, tuning: Tuning::DEFAULT });
    (0..3).for_each(|stream| receiver.handle_stream(start(), StreamId(stream)));
    receiver
}

fn complete(size: u64) -> PeerMessage {
    PeerMessage::Complete { item: ItemId(1), size, digest: Some([0; 32]), modified: None }
}

fn deliver(receiver: &mut Receiver, offset: u64, length: u32, whole: bool) {
    assert_eq!(receiver.begin_block(StreamId(0), ItemId(1), offset, length, whole), Ok(BlockStart::Write));
    let digest = BlockDigest::default();
    receiver.handle_block(
        start(),
        StreamId(0),
        ArrivedBlock { item: ItemId(1), offset, length },
        digest,
        &Trailer { whole: true, digest },
    );
}

pub(super) fn actions(receiver: &mut Receiver) -> Vec<ReceiverAction> {
    std::iter::from_fn(|| receiver.poll_action()).collect()
}

/// Not a hostile one: a fast one must not be answered block by block.
#[test]
fn blocks_that_land_in_a_short_while_are_told_together() {
    let now = start();
    let mut receiver = open(Some(8 * u64::from(BLOCK)));
    let landed = |offsets: &[u64]| {
        let blocks = offsets.iter().map(|block| (ItemId(1), block * u64::from(BLOCK))).collect();
        vec![ReceiverAction::Send(PeerMessage::Landed { blocks, bundles: Vec::new() })]
    };
    receiver.handle_time(now);
    deliver(&mut receiver, 0, BLOCK, false);
    assert_eq!((actions(&mut receiver), receiver.next_deadline()), (landed(&[0]), None));
    for block in 1..5 {
        deliver(&mut receiver, block * u64::from(BLOCK), BLOCK, false);
        assert_eq!(actions(&mut receiver), []);
    }
    let due = now + Tuning::DEFAULT.landed_interval;
    assert_eq!(receiver.next_deadline(), Some(due));
    receiver.handle_time(due);
    assert_eq!((actions(&mut receiver), receiver.next_deadline()), (landed(&[1, 2, 3, 4]), None));
    // The last word of an item does not come before what it is about.
    deliver(&mut receiver, 5 * u64::from(BLOCK), BLOCK, false);
    receiver.handle_message(start(), PeerMessage::Abandon { item: ItemId(1) }).unwrap();
    let told = actions(&mut receiver);
    let place = |wanted: &dyn Fn(&ReceiverAction) -> bool| told.iter().position(wanted).unwrap();
    let is_done = |action: &ReceiverAction| matches!(action, ReceiverAction::Send(PeerMessage::Done { .. }));
    assert!(place(&|action| *action == landed(&[5])[0]) < place(&is_done), "{told:?}");
}

/// While nobody could speak more has landed than one message may tell: it must still be told, and before
/// the last word of the item.
#[test]
fn blocks_that_land_while_nobody_can_speak_take_several_messages() {
    let count = 2 * limits::LANDED_TOLD as u64 + 5;
    for abandoned in [false, true] {
        let mut receiver = open(Some(count * u64::from(BLOCK)));
        (0..count).for_each(|block| deliver(&mut receiver, block * u64::from(BLOCK), BLOCK, false));
        if abandoned {
            receiver.handle_message(start(), PeerMessage::Abandon { item: ItemId(1) }).unwrap();
        }
        let told = actions(&mut receiver).into_iter().filter_map(|action| match action {
            ReceiverAction::Send(PeerMessage::Landed { blocks, .. }) => Some(blocks.len()),
            ReceiverAction::Send(PeerMessage::Done { .. }) => Some(0),
            _ => None,
        });
        let last = abandoned.then_some(0);
        let expected: Vec<_> = [limits::LANDED_TOLD, limits::LANDED_TOLD, 5].into_iter().chain(last).collect();
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn offers_are_bounded_and_in_order() {
    let mut receiver = receiver();
    for item in 1..=limits::OFFERED_ITEMS as u64 {
        receiver.handle_message(start(), offer(ItemId(item), Some(1))).unwrap();
    }
    let next = limits::OFFERED_ITEMS as u64 + 1;
    (0..5000).for_each(|more| is_violation(receiver.handle_message(start(), offer(ItemId(next + more), Some(1)))));
    let opens = actions(&mut receiver).len();
    assert_eq!(opens, limits::OPEN_ITEMS);
    let mut receiver = open(Some(5000));
    for item in [0, 1] {
        is_violation(receiver.handle_message(start(), offer(ItemId(item), Some(1))));
    }
}

#[test]
fn opening_that_is_given_up_makes_no_room() {
    let mut receiver = receiver();
    for item in 1..=limits::OPEN_ITEMS as u64 * 3 {
        receiver.handle_message(start(), offer(ItemId(item), None)).unwrap();
        receiver.handle_message(start(), PeerMessage::Abandon { item: ItemId(item) }).unwrap();
        receiver.handle_message(start(), PeerMessage::Abandon { item: ItemId(item) }).unwrap();
    }
    let opens = actions(&mut receiver).into_iter().filter(|action| matches!(action, ReceiverAction::Open(_)));
    assert_eq!(opens.count(), limits::OPEN_ITEMS);
    is_violation(receiver.handle_message(start(), PeerMessage::Abandon { item: ItemId(1000) }));
    receiver.handle_opened(start(), ItemId(1), Opened::Ready);
    let done = ReceiverAction::Send(PeerMessage::Done { item: ItemId(1), result: ItemResult::Dropped });
    assert_eq!(actions(&mut receiver), [ReceiverAction::Discard(ItemId(1)), done]);
}

#[test]
fn blocks_come_only_where_they_belong() {
    let mut opening = receiver();
    opening.handle_message(start(), offer(ItemId(1), Some(5000))).unwrap();
    is_violation(opening.begin_block(StreamId(0), ItemId(1), 0, BLOCK, false));
    let mut waiting = receiver();
    let last = limits::OPEN_ITEMS as u64 + 1;
    (1..=last).for_each(|item| waiting.handle_message(start(), offer(ItemId(item), Some(5000))).unwrap());
    is_violation(waiting.begin_block(StreamId(0), ItemId(last), 0, BLOCK, false));
    is_violation(waiting.handle_message(
        start(),
        PeerMessage::Complete { item: ItemId(last), size: 5000, digest: Some([0; 32]), modified: None },
    ));

    let mut receiver = open(Some(5000));
    let wrong = [
        (2, 0, BLOCK, false),
        (u64::MAX, 0, BLOCK, false),
        (1, 0, BLOCK - 1, false),
        (1, 0, BLOCK, true),
        (1, 1, BLOCK, false),
        (1, 4096, BLOCK, false),
        (1, 5120, 0, false),
        (1, u64::MAX - u64::MAX % 1024, BLOCK, false),
    ];
    for (item, offset, length, whole) in wrong {
        is_violation(receiver.begin_block(StreamId(0), ItemId(item), offset, length, whole));
    }
    assert_eq!(receiver.begin_block(StreamId(0), ItemId(1), 4096, 904, false), Ok(BlockStart::Write));
}

#[test]
fn blocks_far_ahead_are_refused() {
    for size in [None, Some(u64::MAX >> 2)] {
        let mut receiver = open(size);
        let end = BLOCKS_AHEAD * u64::from(BLOCK);
        is_violation(receiver.begin_block(StreamId(0), ItemId(1), end, BLOCK, false));
        // Every other block: the gaps are as many as there may be, and no more.
        for offset in (u64::from(BLOCK)..end).step_by(2 * BLOCK as usize) {
            deliver(&mut receiver, offset, BLOCK, false);
        }
        let landed = BLOCKS_AHEAD / 2;
        is_violation(receiver.begin_block(StreamId(0), ItemId(1), end + landed * u64::from(BLOCK), BLOCK, false));
        assert_eq!(receiver.outcome(), None);
    }
}

#[test]
fn source_without_a_size_cannot_take_its_blocks_back() {
    // A whole file of one block, and then more.
    let mut receiver = open(None);
    is_violation(receiver.begin_block(StreamId(0), ItemId(1), 0, 0, false));
    is_violation(receiver.begin_block(StreamId(0), ItemId(1), 0, BLOCK + 1, false));
    deliver(&mut receiver, 0, BLOCK, true);
    is_violation(receiver.begin_block(StreamId(0), ItemId(1), 1024, BLOCK, false));
    is_violation(receiver.handle_message(start(), complete(2048)));
    // Complete with fewer bytes than came, or with a block still being written that lies beyond.
    let mut receiver = open(None);
    deliver(&mut receiver, 0, BLOCK, false);
    assert_eq!(receiver.begin_block(StreamId(1), ItemId(1), 2048, BLOCK, false), Ok(BlockStart::Write));
    is_violation(receiver.handle_message(start(), complete(2048)));
    receiver.handle_message(start(), complete(3072)).unwrap();
    is_violation(receiver.begin_block(StreamId(0), ItemId(1), 3072, BLOCK, false));
    is_violation(receiver.handle_message(start(), complete(3072)));
}

#[test]
fn xxh128_is_as_short_as_it_is() {
    let options = TransferOptions { digests: Digests::XXH128, ..options(BLOCK) };
    let mut receiver = Receiver::new(ReceiverConfig { options, checkpoints: false, tuning: Tuning::DEFAULT });
    receiver.handle_stream(start(), StreamId(0));
    receiver.handle_message(start(), offer(ItemId(1), Some(1500))).unwrap();
    receiver.handle_opened(start(), ItemId(1), Opened::Ready);
    let short = |of| BlockDigest { main: from_xxh128([of; 16]), ..BlockDigest::default() };
    let is_asked_again = |actions: Vec<ReceiverAction>| {
        actions.contains(&ReceiverAction::Send(PeerMessage::SendAgain { item: ItemId(1), offset: 0 }))
    };
    let mut deliver = |offset, length, ours, theirs| {
        assert_eq!(receiver.begin_block(StreamId(0), ItemId(1), offset, length, false), Ok(BlockStart::Write));
        let trailer = Trailer { whole: true, digest: theirs };
        receiver.handle_block(start(), StreamId(0), ArrivedBlock { item: ItemId(1), offset, length }, ours, &trailer);
        is_asked_again(actions(&mut receiver))
    };
    assert!(deliver(0, BLOCK, short(2), short(1)), "a block that arrived altered");
    assert!(!deliver(0, BLOCK, short(1), short(1)));
    deliver(1024, 476, short(3), short(3));
    let complete = |digest| PeerMessage::Complete { item: ItemId(1), size: 1500, digest, modified: None };
    is_violation(receiver.handle_message(start(), complete(Some([4; 32]))));
    is_violation(receiver.handle_message(start(), complete(None)));
    receiver.handle_message(start(), complete(Some(short(4).main))).unwrap();
    let published = actions(&mut receiver).into_iter().find_map(|action| match action {
        ReceiverAction::Publish { digests, .. } => Some(digests),
        _ => None,
    });
    assert_eq!(published, Some(short(4).as_file(Digests::XXH128)));
}

#[test]
fn completion_comes_once_and_as_agreed() {
    let mut receiver = open(Some(5000));
    is_violation(receiver.handle_message(start(), complete(5001)));
    is_violation(
        receiver.handle_message(
            start(),
            PeerMessage::Complete { item: ItemId(1), size: 5000, digest: None, modified: None },
        ),
    );
    is_violation(receiver.handle_message(
        start(),
        PeerMessage::Complete { item: ItemId(2), size: 5000, digest: Some([0; 32]), modified: None },
    ));
    receiver.handle_message(start(), complete(5000)).unwrap();
    is_violation(receiver.handle_message(start(), complete(5000)));
    for index in 0..5 {
        deliver(&mut receiver, index * 1024, if index == 4 { 904 } else { BLOCK }, false);
    }
    // The digest is not what came: it has to come again, and what is late about it is no offence.
    let is_again = |action: &ReceiverAction| {
        matches!(action, ReceiverAction::Send(PeerMessage::Done { item: ItemId(1), result: ItemResult::Again(_) }))
    };
    assert!(actions(&mut receiver).iter().any(is_again));
    receiver.handle_message(start(), complete(5000)).unwrap();
    assert_eq!(receiver.begin_block(StreamId(0), ItemId(1), 0, BLOCK, false), Ok(BlockStart::Discard));
}

#[test]
fn last_word_is_the_last() {
    let mut receiver = open(Some(5000));
    is_violation(receiver.handle_message(start(), PeerMessage::Finish));
    receiver.handle_message(start(), PeerMessage::Abandon { item: ItemId(1) }).unwrap();
    receiver.handle_message(start(), PeerMessage::Finish).unwrap();
    let late = [
        PeerMessage::Finish,
        offer(ItemId(2), Some(1)),
        PeerMessage::Directories(Vec::new()),
        PeerMessage::Abandon { item: ItemId(1) },
    ];
    late.into_iter().for_each(|message| is_violation(receiver.handle_message(start(), message)));
    assert_eq!(receiver.begin_bundle(StreamId(0), BundleId(9)), BlockStart::Discard);
    assert!(!receiver.handle_bundle(start(), StreamId(0), BundleId(9), 1));
    receiver.fail(failure());
    receiver.handle_synced(start(), true);
    assert_eq!(receiver.outcome(), Some(Err(failure())));
}

#[test]
fn finishing_with_a_bundle_uncommitted_is_refused() {
    let mut receiver = receiver();
    assert_eq!(receiver.begin_bundle(StreamId(0), BundleId(1)), BlockStart::Write);
    assert!(receiver.handle_bundle(start(), StreamId(0), BundleId(1), 10));
    is_violation(receiver.handle_message(start(), PeerMessage::Finish));
    receiver.handle_committed(start(), BundleId(1), Vec::new());
    receiver.handle_message(start(), PeerMessage::Finish).unwrap();
}

#[test]
fn bundles_are_bounded() {
    let mut receiver = receiver();
    let taken = (0..5000).filter(|&bundle| {
        receiver.begin_bundle(StreamId(0), BundleId(bundle)) == BlockStart::Write
            && receiver.handle_bundle(start(), StreamId(0), BundleId(bundle), 1)
    });
    assert_eq!(taken.count(), limits::UNACKNOWLEDGED_BUNDLES);
    assert!(matches!(receiver.outcome(), Some(Err(failure)) if failure.code == ErrorCode::ProtocolViolation));
}

/// Names the file that failed by a path as long as it may be: together they are more than a message holds.
#[test]
fn failures_of_a_whole_bundle_fit_into_one_message() {
    let long = "\u{7f}é".repeat(limits::ERROR_TEXT_BYTES);
    for texts in [[&*long, &*long], ["short", &*long]] {
        let mut receiver = receiver();
        assert_eq!(receiver.begin_bundle(StreamId(0), BundleId(1)), BlockStart::Write);
        assert!(receiver.handle_bundle(start(), StreamId(0), BundleId(1), 10));
        let fail = |index: u32| {
            let message = texts[usize::from(index > limits::BUNDLE_ITEMS / 2)].to_owned();
            let failure = Failure::new(ErrorCode::NoSpace, Side::Destination, message);
            (index, if index.is_multiple_of(2) { ItemResult::Failed(failure) } else { ItemResult::Again(failure) })
        };
        receiver.handle_committed(start(), BundleId(1), (0..limits::BUNDLE_ITEMS).map(fail).collect());
        let said = actions(&mut receiver).into_iter().find_map(|action| match action {
            ReceiverAction::Send(done @ PeerMessage::BundleDone { .. }) => Some(done.encode()),
            _ => None,
        });
        let said = said.unwrap();
        assert!(said.len() <= limits::MESSAGE_BYTES, "{} bytes", said.len());
        let Ok(PeerMessage::BundleDone { exceptions, .. }) = PeerMessage::decode(&said) else { panic!() };
        assert_eq!(exceptions.len(), limits::BUNDLE_ITEMS as usize);
        for (index, result) in exceptions {
            let (ItemResult::Failed(failure) | ItemResult::Again(failure)) = result else { panic!("{result:?}") };
            let text = texts[usize::from(index > limits::BUNDLE_ITEMS / 2)];
            let cut = failure.message().strip_suffix('…').is_some_and(|start| start.len() > 100);
            assert!(failure.message() == text || (text == long && cut), "{}", failure.message());
        }
    }
}

#[test]
fn messages_of_receivers_are_refused_by_receivers() {
    let mut receiver = open(None);
    let messages = [
        PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept },
        PeerMessage::Landed { blocks: vec![(ItemId(1), 0)], bundles: Vec::new() },
        PeerMessage::SendAgain { item: ItemId(1), offset: 0 },
        PeerMessage::Done { item: ItemId(1), result: ItemResult::Published },
        PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() },
        PeerMessage::Finished { durable: true },
    ];
    messages.into_iter().for_each(|message| is_violation(receiver.handle_message(start(), message)));
}

/// Whatever a sender says and sends, a driver that keeps its contract sees no panic, and no
/// publication but of what was agreed.
#[test]
fn receiver_survives_whatever_a_sender_says_or_sends() {
    for seed in 0..2400 {
        let mut rng = Rng::new(seed);
        let mut receiver = if seed % 2 == 0 { receiver() } else { recovering(Verify::Disk) };
        let mut writing = [None; 3];
        for _ in 0..150 {
            let stream = rng.below(3) as usize;
            match writing[stream].take() {
                Some((item, offset, length)) => {
                    finish(&mut receiver, &mut rng, StreamId(stream as u16), item, offset, length)
                }
                None if rng.chance(500) => {
                    let item = ItemId(rng.below(12));
                    let (offset, length) =
                        (rng.below(8) * 1024, [BLOCK, rng.below(1500) as u32][rng.below(2) as usize]);
                    let begin = receiver.begin_block(StreamId(stream as u16), item, offset, length, rng.chance(200));
                    writing[stream] = (begin == Ok(BlockStart::Write)).then_some((item, offset, length));
                }
                None if rng.chance(200) => {
                    let bundle = BundleId(rng.below(6));
                    if receiver.begin_bundle(StreamId(stream as u16), bundle) == BlockStart::Write
                        && receiver.handle_bundle(start(), StreamId(stream as u16), bundle, 5)
                    {
                        receiver.handle_committed(start(), bundle, Vec::new());
                    }
                }
                None => _ = receiver.handle_message(start(), any_message(&mut rng)),
            }
            drive(&mut receiver, &mut rng, &mut writing);
        }
    }
}

fn finish(receiver: &mut Receiver, rng: &mut Rng, stream: StreamId, item: ItemId, offset: u64, length: u32) {
    if rng.chance(30) {
        return receiver.handle_write_failed(start(), stream, item, failure());
    }
    let digest = BlockDigest { main: [7; 32], ..BlockDigest::default() };
    let theirs = if rng.chance(100) { BlockDigest { main: [9; 32], ..digest } } else { digest };
    receiver.handle_block(
        start(),
        stream,
        ArrivedBlock { item, offset, length },
        digest,
        &Trailer { whole: !rng.chance(100), digest: theirs },
    );
}

fn drive(receiver: &mut Receiver, rng: &mut Rng, writing: &mut [Option<(ItemId, u64, u32)>; 3]) {
    while let Some(action) = receiver.poll_action() {
        match action {
            ReceiverAction::Open(offer) if rng.chance(100) => {
                receiver.handle_opened(start(), offer.item, Opened::Refused(failure()))
            }
            ReceiverAction::Open(offer) if rng.chance(300) => {
                let blocks =
                    (0..rng.below(9)).map(|index| (index, BlockDigest { main: [7; 32], ..Default::default() }));
                receiver.handle_opened(
                    start(),
                    offer.item,
                    Opened::Resumed { left: blocks.collect(), taken_over: Vec::new() },
                );
            }
            ReceiverAction::Open(offer) => receiver.handle_opened(start(), offer.item, Opened::Ready),
            ReceiverAction::CloseStream(stream) => {
                writing[usize::from(stream.0)] = None;
                receiver.handle_stream_closed(start(), stream);
                receiver.handle_stream(start(), stream);
            }
            ReceiverAction::Publish { item, digests, .. } => {
                assert_eq!(digests.blake3, Some([7; 32]), "not what was said that it must be");
                receiver.handle_published(start(), item, ItemResult::Published);
            }
            ReceiverAction::Compare { number, question } => {
                let judgments = question.items.iter().map(|_| Judgment::New).collect();
                receiver.handle_compared(start(), number, judgments);
            }
            ReceiverAction::CompareContent { asked, .. } => {
                receiver.handle_content_compared(start(), asked, false, Vec::new());
            }
            ReceiverAction::Delete { .. } => receiver.ask_still_there(vec![b"only".to_vec()]),
            ReceiverAction::ApplyDirectories(_) => receiver.handle_directories_applied(start(), Vec::new()),
            ReceiverAction::Sync => receiver.handle_synced(start(), true),
            ReceiverAction::Checkpoint { item, .. } if rng.chance(100) => {
                receiver.handle_checkpointed(start(), item, Err(failure()));
            }
            ReceiverAction::Checkpoint { item, blocks } => {
                let rotten = blocks.into_iter().filter(|_| rng.chance(100)).map(|(index, _)| index).collect();
                receiver.handle_checkpointed(start(), item, Ok(rotten));
            }
            ReceiverAction::Look { bundle, .. } => receiver.handle_looked(start(), bundle, Vec::new()),
            ReceiverAction::Send(_) | ReceiverAction::Discard(_) | ReceiverAction::Commit(_) => {}
        }
    }
}
