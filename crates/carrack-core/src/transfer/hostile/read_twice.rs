//! Sources that are read a second time before they get their names, and change between any two
//! readings without a trace.
#![cfg(test)]

use std::time::Instant;

use super::sender::{accept, file, next_block};
use super::*;
use crate::digest::FileTree;
use crate::ids::{ItemId, StreamId};
use crate::request::Verify;
use crate::transfer::machine::Machine;
use crate::transfer::orders::{self, offer};
use crate::transfer::receiver::ArrivedBlock;
use crate::transfer::receiver::{BlockStart, Opened, Receiver, ReceiverAction, ReceiverConfig};
use crate::transfer::sender::{Sender, SenderAction, SenderConfig};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;
use crate::wire::frame::Trailer;

/// Four blocks, more than a bundle may hold.
const SIZE: u64 = 4 << 19;
const BLOCK_BYTES: u32 = 1 << 19;

fn read_twice() -> TransferOptions {
    TransferOptions { verify: Verify::Source, ..orders::options(BLOCK_BYTES) }
}

fn block(content: u8) -> BlockDigest {
    BlockDigest { main: [content; 32], ..BlockDigest::default() }
}

fn digests(contents: [u8; 4]) -> FileDigests {
    let mut tree = FileTree::new(BLOCK_BYTES, read_twice().digests);
    for (index, content) in (0..).zip(contents) {
        tree.insert(index, BLOCK_BYTES.into(), block(content));
    }
    tree.finish(SIZE).unwrap()
}

/// A sender that has sent these four blocks down the first of two streams, and what it did after that.
fn sent(contents: [u8; 4]) -> (Sender, Vec<SenderAction>) {
    let now = Instant::now();
    let mut sender = Sender::new(SenderConfig {
        options: read_twice(),
        targets: vec![Vec::new()],
        known: false,
        tuning: Tuning::DEFAULT,
    });
    (0..2).for_each(|stream| sender.handle_stream(Instant::now(), StreamId(stream)));
    sender.handle_item(now, file("large", Some(SIZE)));
    sender.handle_scan_complete(Instant::now());
    accept(&mut sender, now);
    for content in contents {
        let offset = next_block(&mut sender, now, StreamId(0));
        sender.handle_block_sent(Instant::now(), StreamId(0), ItemId(1), offset, Ok((BLOCK_BYTES, block(content))));
    }
    let actions = actions(&mut sender);
    (sender, actions)
}

fn actions(sender: &mut Sender) -> Vec<SenderAction> {
    std::iter::from_fn(|| sender.poll_action()).collect()
}

/// A receiver with the file's part.
fn receiver() -> Receiver {
    let mut receiver =
        Receiver::new(ReceiverConfig { options: read_twice(), checkpoints: true, tuning: Tuning::DEFAULT });
    (0..2).for_each(|stream| receiver.handle_stream(Instant::now(), StreamId(stream)));
    receiver.handle_message(Instant::now(), offer(ItemId(1), Some(SIZE))).unwrap();
    receiver.handle_opened(Instant::now(), ItemId(1), Opened::Ready);
    receiver
}

fn receive(receiver: &mut Receiver, stream: StreamId, index: u64, content: u8) {
    let offset = index * u64::from(BLOCK_BYTES);
    assert_eq!(receiver.begin_block(stream, ItemId(1), offset, BLOCK_BYTES, false), Ok(BlockStart::Write));
    let trailer = Trailer { whole: true, digest: block(content) };
    receiver.handle_block(
        Instant::now(),
        stream,
        ArrivedBlock { item: ItemId(1), offset, length: BLOCK_BYTES },
        block(content),
        &trailer,
    );
}

fn complete(sender: &mut Sender) -> PeerMessage {
    let told = actions(sender).into_iter().find_map(|action| match action {
        SenderAction::Send(message @ PeerMessage::Complete { .. }) => Some(message),
        _ => None,
    });
    told.expect("both readings were the same")
}

#[test]
fn second_reading_that_differs_completes_nothing() {
    let (mut sender, asked) = sent([1, 2, 3, 4]);
    assert!(asked.iter().any(|action| matches!(action, SenderAction::CheckSource(ItemId(1)))), "{asked:?}");
    sender.handle_source_checked(Instant::now(), ItemId(1), Ok(Some(digests([1, 2, 3, 9]))));
    let told = actions(&mut sender);
    let abandons =
        |action: &SenderAction| matches!(action, SenderAction::Send(PeerMessage::Abandon { item: ItemId(1) }));
    assert!(told.iter().any(abandons), "{told:?}");
    assert!(!told.iter().any(|action| matches!(action, SenderAction::Send(PeerMessage::Complete { .. }))), "{told:?}");
}

/// A stream is lost with a block that had been read. The block is read again for the other stream, while the second
/// reading goes on or after it, and is then something else: what lands is not what the second reading saw.
#[test]
fn block_read_again_after_the_second_reading_gets_no_name_unless_it_is_the_same() {
    for (again, is_published) in [(4, true), (9, false)] {
        let now = Instant::now();
        let (mut sender, _) = sent([1, 2, 3, 4]);
        let mut receiver = receiver();
        (0..).zip([1, 2, 3]).for_each(|(index, content)| receive(&mut receiver, StreamId(0), index, content));
        let landed = (0..3).map(|index| (1, index * u64::from(BLOCK_BYTES))).collect();
        sender.handle_message(now, super::sender::landed(landed, Vec::new())).unwrap();
        sender.handle_stream_lost(Instant::now(), StreamId(0));
        sender.handle_source_checked(Instant::now(), ItemId(1), Ok(Some(digests([1, 2, 3, 4]))));
        assert_eq!(next_block(&mut sender, now, StreamId(1)), 3 * u64::from(BLOCK_BYTES));
        sender.handle_block_sent(
            Instant::now(),
            StreamId(1),
            ItemId(1),
            3 * u64::from(BLOCK_BYTES),
            Ok((BLOCK_BYTES, block(again))),
        );
        receive(&mut receiver, StreamId(1), 3, again);
        receiver.handle_message(Instant::now(), complete(&mut sender)).unwrap();
        let done: Vec<ReceiverAction> = std::iter::from_fn(|| receiver.poll_action()).collect();
        let publishes = |action: &ReceiverAction| matches!(action, ReceiverAction::Publish { .. });
        assert_eq!(done.iter().any(publishes), is_published, "{done:?}");
        let goes_again = |action: &ReceiverAction| {
            matches!(action, ReceiverAction::Send(PeerMessage::Done { item: ItemId(1), result: ItemResult::Again(_) }))
        };
        assert_eq!(done.iter().any(goes_again), !is_published, "{done:?}");
    }
}
