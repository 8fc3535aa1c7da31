//! Files that are followed: which blocks are sent when, what others wait for, and receivers that say what cannot be.
#![cfg(test)]

use super::sender::{file, next_block};
use super::*;
use crate::growing::GrowingSources;
use crate::ids::StreamId;
use crate::limits;
use crate::report::Outcome;
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::orders::options;
use crate::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;
use crate::wire::peer::Offer;

const STREAM: StreamId = StreamId(0);

fn followed(name: &str, size: u64) -> ScannedItem {
    ScannedItem { followed: true, ..file(name, Some(size)) }
}

fn sender(items: impl IntoIterator<Item = ScannedItem>) -> Sender {
    let options = TransferOptions { growing: GrowingSources::Follow, ..options(BLOCK) };
    let config = SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT };
    let mut sender = Sender::new(config);
    sender.handle_stream(start(), STREAM);
    items.into_iter().for_each(|item| sender.handle_item(start(), item));
    sender.handle_scan_complete(start());
    sender
}

fn offers(sender: &mut Sender) -> Vec<Offer> {
    let actions = std::iter::from_fn(|| sender.poll_action());
    let offers = actions.filter_map(|action| match action {
        SenderAction::Send(PeerMessage::Offer(offer)) => Some(offer),
        _ => None,
    });
    offers.collect()
}

fn accept(sender: &mut Sender, item: u64) {
    let answer = PeerMessage::Answer { item: ItemId(item), answer: Answer::Accept };
    sender.handle_message(start(), answer).unwrap();
}

fn job(sender: &mut Sender) -> Option<(u64, u32, bool)> {
    match sender.next_job(start(), STREAM) {
        Next::Job(Job::Block(block)) => Some((block.offset, block.length, block.whole)),
        Next::Wait(_) => None,
        other => panic!("{other:?} instead of a block"),
    }
}

#[test]
fn followed_file_is_sent_as_far_as_there_is_something_behind() {
    let (now, block) = (start(), u64::from(BLOCK));
    let mut sender = sender([followed("log", 10)]);
    let [offer] = &offers(&mut sender)[..] else { panic!("one is offered") };
    assert_eq!((offer.size, offer.fingerprint), (None, None));
    accept(&mut sender, 1);
    assert!(
        std::iter::from_fn(|| sender.poll_action()).any(|action| matches!(action, SenderAction::Follow(ItemId(1))))
    );
    // Whether the block is the whole file is not known.
    for size in [0, 10, block] {
        sender.handle_grown(now, ItemId(1), size);
        assert_eq!(job(&mut sender), None, "{size}");
    }
    sender.handle_grown(now, ItemId(1), 2 * block + 1);
    assert_eq!(job(&mut sender), Some((0, BLOCK, false)));
    assert_eq!(job(&mut sender), Some((block, BLOCK, false)));
    assert_eq!(job(&mut sender), None);
    // What is less than before is no news: whoever looks tells that the file was truncated.
    sender.handle_grown(now, ItemId(1), 5);
    assert_eq!(sender.progress().bytes_found, 2 * block + 1);
    sender.handle_followed(now, ItemId(1), 2 * block + 7, Some(Time::new(3, 4)));
    assert!(!sender.is_followed(ItemId(1)));
    assert_eq!(job(&mut sender), Some((2 * block, 7, false)));
    assert_eq!((job(&mut sender), sender.progress().bytes_found), (None, 2 * block + 7));
    for (offset, length) in [(0, BLOCK), (block, BLOCK), (2 * block, 7)] {
        sender.handle_block_sent(now, STREAM, ItemId(1), offset, Ok((length, BlockDigest::default())));
    }
    let checked = std::iter::from_fn(|| sender.poll_action());
    assert!(checked.into_iter().any(|action| matches!(action, SenderAction::CheckSource(ItemId(1)))));
    sender.handle_source_checked(now, ItemId(1), Ok(None));
    let told = std::iter::from_fn(|| sender.poll_action()).find_map(|action| match action {
        SenderAction::Send(PeerMessage::Complete { size, modified, .. }) => Some((size, modified)),
        _ => None,
    });
    assert_eq!(told, Some((2 * block + 7, Some(Time::new(3, 4)))));
    sender.handle_message(now, PeerMessage::Done { item: ItemId(1), result: ItemResult::Published }).unwrap();
    assert_eq!(sender.totals().counts.files_followed, 1);
}

#[test]
fn followed_file_of_one_block_is_known_to_be_whole() {
    for size in [0, 1, BLOCK] {
        let mut sender = sender([followed("log", size.into())]);
        accept(&mut sender, 1);
        sender.handle_grown(start(), ItemId(1), size.into());
        assert_eq!(job(&mut sender), None);
        sender.handle_followed(start(), ItemId(1), size.into(), None);
        assert_eq!((job(&mut sender), job(&mut sender)), (Some((0, size, true)), None));
    }
}

/// A lost connection costs nothing that cannot be read again.
#[test]
fn followed_file_goes_on_after_a_stream_is_lost() {
    let mut sender = sender([followed("log", 10)]);
    accept(&mut sender, 1);
    sender.handle_grown(start(), ItemId(1), 9 * u64::from(BLOCK));
    assert_eq!(next_block(&mut sender, start(), STREAM), 0);
    sender.handle_stream_lost(start(), STREAM);
    sender.handle_stream(start(), StreamId(2));
    assert_eq!(next_block(&mut sender, start(), StreamId(2)), 0);
}

/// What was followed and cannot be any more has been asked for to its last byte: it is not sent anew.
#[test]
fn followed_file_that_changes_otherwise_is_not_sent_again() {
    let changed = || Failure::new(ErrorCode::SourceChanged, Side::Source, "was truncated");
    let end = |sender: &mut Sender| {
        let dropped = PeerMessage::Done { item: ItemId(1), result: ItemResult::Dropped };
        sender.handle_message(start(), dropped).unwrap();
        std::iter::from_fn(|| sender.poll_action()).find_map(|action| match action {
            SenderAction::Report(report) => Some(Ok(report.outcome)),
            SenderAction::Rescan { scanned, attempt } => Some(Err((scanned, attempt))),
            _ => None,
        })
    };
    let mut failing = sender([followed("log", 10)]);
    accept(&mut failing, 1);
    failing.handle_follow_failed(start(), ItemId(1), changed());
    assert_eq!(end(&mut failing), Some(Ok(Outcome::Failed(changed()))));
    // Another file that changes while it is read goes again, and is followed from then on, however small it is.
    let mut growing = sender([file("log", Some(2 << 20))]);
    accept(&mut growing, 1);
    next_block(&mut growing, start(), STREAM);
    growing.handle_block_sent(start(), STREAM, ItemId(1), 0, Err(changed()));
    let Some(Err((scanned, attempt))) = end(&mut growing) else { panic!("it is looked at again") };
    assert!(!scanned.followed);
    growing.handle_rescanned(start(), &scanned, attempt, Ok(file("log", Some(30))));
    assert_eq!(offers(&mut growing).iter().map(|offer| offer.size).collect::<Vec<_>>(), [None]);
}

/// However many are followed, other files are offered, and the scan goes on as long as there is room.
#[test]
fn followed_files_leave_room_for_others() {
    let logs = (0..100).map(|number| followed(&format!("log{number}"), 10));
    let others = (0..50).map(|number| file(&format!("large{number}"), Some(2 << 20)));
    let mut sender = sender(logs.chain(others));
    let offered = offers(&mut sender);
    let of_logs = |offered: &[Offer]| offered.iter().filter(|offer| offer.size.is_none()).count();
    assert_eq!((of_logs(&offered), offered.len()), (limits::FOLLOWED_ITEMS, limits::FOLLOWED_ITEMS + 50));
    assert!(sender.wants_items());
    // One that ends makes room for the next.
    let kept = PeerMessage::Answer { item: offered[0].item, answer: Answer::Keep };
    sender.handle_message(start(), kept).unwrap();
    assert_eq!(of_logs(&offers(&mut sender)), 1);
}

#[test]
fn receiver_that_holds_blocks_of_a_followed_file_is_refused() {
    let mut sender = sender([followed("log", 5000)]);
    let held = PeerMessage::Held {
        item: ItemId(1),
        first: 0,
        digests: vec![BlockDigest::default()],
        taken_over: false,
        chunks: Vec::new(),
    };
    is_violation(sender.handle_message(start(), held));
    for answer in [Answer::Present(FileDigests { blake3: Some([7; 32]), ..FileDigests::default() }), Answer::Shared] {
        is_violation(sender.handle_message(start(), PeerMessage::Answer { item: ItemId(1), answer }));
    }
    accept(&mut sender, 1);
    // Nothing of it has been sent.
    let landed = PeerMessage::Landed { blocks: vec![(ItemId(1), 0)], bundles: Vec::new() };
    is_violation(sender.handle_message(start(), landed));
}
