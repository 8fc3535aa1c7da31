//! The end of a transfer: said beforehand where nothing can come any more, and taken back where something goes wrong.
#![cfg(test)]

use std::time::Instant;

use super::sender::{file, next_block};
use super::*;
use crate::ids::{ItemId, StreamId};
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::orders::{self, offer};
use crate::transfer::receiver::{ArrivedBlock, BlockStart, Opened, Receiver, ReceiverAction, ReceiverConfig};
use crate::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig, SentItem};
use crate::tuning::Tuning;
use crate::wire::frame::Trailer;

/// One block, more than a bundle may hold.
const SIZE: u32 = 2 << 20;

fn block() -> BlockDigest {
    BlockDigest { main: [7; 32], ..BlockDigest::default() }
}

/// What a sender says.
fn said(sender: &mut Sender) -> Vec<PeerMessage> {
    let said = |action| if let SenderAction::Send(message) = action { Some(message) } else { None };
    std::iter::from_fn(|| sender.poll_action()).filter_map(said).collect()
}

/// A sender of so many files, and of a directory.
fn sender_of(files: u64, directory: bool) -> Sender {
    let now = Instant::now();
    let config = SenderConfig {
        options: orders::options(SIZE),
        targets: vec![b"t".to_vec()],
        known: false,
        tuning: Tuning::DEFAULT,
    };
    let mut sender = Sender::new(config);
    sender.handle_stream(now, StreamId(0));
    if directory {
        sender.handle_item(now, ScannedItem { kind: ItemKind::Directory, size: None, ..file("d", None) });
    }
    (0..files).for_each(|number| sender.handle_item(now, file(&format!("f{number}"), Some(SIZE.into()))));
    sender.handle_scan_complete(now);
    sender
}

fn send(sender: &mut Sender, item: u64) {
    let now = Instant::now();
    let id = ItemId(item);
    sender.handle_message(now, PeerMessage::Answer { item: id, answer: Answer::Accept }).unwrap();
    assert_eq!(next_block(sender, now, StreamId(0)), 0);
    sender.handle_block_sent(now, StreamId(0), id, 0, Ok((SIZE, block())));
    sender.handle_message(now, PeerMessage::Landed { blocks: vec![(id, 0)], bundles: Vec::new() }).unwrap();
    sender.handle_source_checked(now, id, Ok(None));
}

fn done(item: u64, result: ItemResult) -> PeerMessage {
    PeerMessage::Done { item: ItemId(item), result }
}

fn again() -> ItemResult {
    ItemResult::Again(Failure::new(ErrorCode::InputOutput, Side::Destination, "lost".to_owned()))
}

fn ahead(ended_otherwise: u64) -> PeerMessage {
    PeerMessage::FinishOncePublished { ended_otherwise }
}

#[test]
fn last_word_is_said_beforehand_when_all_has_been_sent_and_then_not_again() {
    let now = Instant::now();
    let mut sender = sender_of(2, false);
    send(&mut sender, 1);
    assert!(!said(&mut sender).contains(&ahead(0)), "the second has not been sent");
    send(&mut sender, 2);
    assert_eq!(said(&mut sender).last(), Some(&ahead(0)));
    sender.handle_message(now, done(2, ItemResult::Published)).unwrap();
    sender.handle_message(now, done(1, ItemResult::Published)).unwrap();
    assert_eq!(said(&mut sender), []);
    sender.handle_message(now, PeerMessage::Finished { durable: true }).unwrap();
    assert_eq!(sender.outcome(), Some(Ok(())));
}

#[test]
fn last_word_that_was_said_beforehand_does_not_count_after_a_failure() {
    let now = Instant::now();
    let mut sender = sender_of(1, false);
    send(&mut sender, 1);
    assert_eq!(said(&mut sender).last(), Some(&ahead(0)));
    sender.handle_message(now, done(1, again())).unwrap();
    // It goes again, under another number.
    let mut looked = None;
    while let Some(action) = sender.poll_action() {
        match action {
            SenderAction::Rescan { scanned, attempt } => looked = Some((scanned, attempt)),
            SenderAction::Send(message) => assert!(!matches!(message, PeerMessage::Finish), "{message:?}"),
            _ => {}
        }
    }
    let (item, attempt) = looked.unwrap();
    let found = item.clone();
    sender.handle_rescanned(now, &item, attempt, Ok(found));
    send(&mut sender, 2);
    // Who has not heard of the first end does not take this for the last word.
    assert_eq!(said(&mut sender).last(), Some(&ahead(1)));
    sender.handle_message(now, done(2, ItemResult::Published)).unwrap();
    sender.handle_message(now, PeerMessage::Finished { durable: true }).unwrap();
    assert_eq!(sender.outcome(), Some(Ok(())));
}

/// Directories get their attributes when everything in them has its name.
#[test]
fn last_word_waits_for_the_items_where_directories_follow() {
    let now = Instant::now();
    let mut sender = sender_of(1, true);
    let Next::Job(Job::Bundle(bundle)) = sender.next_job(now, StreamId(0)) else { panic!() };
    let sent = bundle
        .items
        .iter()
        .map(|_| SentItem { size: 0, taken_over: 0, digest: BlockDigest::default(), failure: None })
        .collect();
    sender.handle_bundle_sent(now, bundle.id, sent);
    let bundle_done = PeerMessage::BundleDone { bundle: bundle.id, exceptions: Vec::new() };
    sender.handle_message(now, bundle_done).unwrap();
    send(&mut sender, 1);
    assert!(!said(&mut sender).iter().any(|message| matches!(message, PeerMessage::FinishOncePublished { .. })));
    sender.handle_message(now, done(1, ItemResult::Published)).unwrap();
    assert_eq!(said(&mut sender).last(), Some(&PeerMessage::Finish));
}

/// A receiver of two files, the first of which is whole and being published.
fn receiver() -> Receiver {
    let now = Instant::now();
    let config = ReceiverConfig { options: orders::options(SIZE), checkpoints: false, tuning: Tuning::DEFAULT };
    let mut receiver = Receiver::new(config);
    receiver.handle_stream(now, StreamId(0));
    for item in [1, 2].map(ItemId) {
        receiver.handle_message(now, offer(item, Some(SIZE.into()))).unwrap();
        receiver.handle_opened(now, item, Opened::Ready);
        assert_eq!(receiver.begin_block(StreamId(0), item, 0, SIZE, true), Ok(BlockStart::Write));
        let arrived = ArrivedBlock { item, offset: 0, length: SIZE };
        receiver.handle_block(now, StreamId(0), arrived, block(), &Trailer { whole: true, digest: block() });
        let size = SIZE.into();
        receiver
            .handle_message(now, PeerMessage::Complete { item, size, digest: Some(block().main), modified: None })
            .unwrap();
    }
    receiver
}

fn syncs(receiver: &mut Receiver) -> bool {
    std::iter::from_fn(|| receiver.poll_action()).any(|action| action == ReceiverAction::Sync)
}

#[test]
fn receiver_ends_by_itself_when_all_that_was_open_is_published() {
    let now = Instant::now();
    let mut receiver = receiver();
    receiver.handle_message(now, ahead(0)).unwrap();
    receiver.handle_published(now, ItemId(1), ItemResult::Published);
    assert!(!syncs(&mut receiver), "the second is open");
    receiver.handle_published(now, ItemId(2), ItemResult::Published);
    assert!(syncs(&mut receiver));
    // What the sender says of what is published, before it hears of that.
    receiver.handle_message(now, PeerMessage::StreamLost { stream: StreamId(0) }).unwrap();
    receiver.handle_message(now, PeerMessage::Abandon { item: ItemId(2) }).unwrap();
    assert!(receiver.handle_message(now, offer(ItemId(3), Some(1))).is_err());
    receiver.handle_synced(now, true);
    let ends = ReceiverAction::Send(PeerMessage::Finished { durable: true });
    assert!(std::iter::from_fn(|| receiver.poll_action()).any(|action| action == ends));
}

#[test]
fn receiver_that_could_not_publish_waits_for_another_word() {
    let now = Instant::now();
    // It fails before the word comes, which does not know of it; or after it.
    for is_before in [true, false] {
        let mut receiver = receiver();
        if is_before {
            receiver.handle_published(now, ItemId(1), again());
            receiver.handle_message(now, ahead(0)).unwrap();
        } else {
            receiver.handle_message(now, ahead(0)).unwrap();
            receiver.handle_published(now, ItemId(1), again());
        }
        receiver.handle_published(now, ItemId(2), ItemResult::Published);
        assert!(!syncs(&mut receiver), "{is_before}");
        receiver.handle_message(now, offer(ItemId(3), Some(SIZE.into()))).unwrap();
        receiver.handle_message(now, PeerMessage::Abandon { item: ItemId(3) }).unwrap();
        receiver.handle_opened(now, ItemId(3), Opened::Ready);
        assert!(!syncs(&mut receiver), "{is_before}");
        receiver.handle_message(now, PeerMessage::Finish).unwrap();
        assert!(syncs(&mut receiver), "{is_before}");
    }
}
