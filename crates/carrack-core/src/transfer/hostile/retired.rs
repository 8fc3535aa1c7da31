//! Streams that are asked to end, and receivers and networks that do not make that easy.
#![cfg(test)]

use std::time::{Duration, Instant};

use super::sender::{LARGE, accept, file, landed, next_block};
use super::*;
use crate::ids::{ItemId, StreamId};
use crate::transfer::machine::Machine;
use crate::transfer::orders::options;
use crate::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig};
use crate::tuning::Tuning;

/// A sender with two streams and nothing but a large file, which the receiver takes; both streams carry a block of it.
fn both_carry(now: Instant) -> (Sender, [u64; 2]) {
    both_carry_by(now, Tuning { parked: Duration::ZERO, ..Tuning::DEFAULT })
}

fn both_carry_by(now: Instant, tuning: Tuning) -> (Sender, [u64; 2]) {
    let config = SenderConfig { options: options(BLOCK), targets: vec![Vec::new()], known: false, tuning };
    let mut sender = Sender::new(config);
    (0..2).for_each(|stream| sender.handle_stream(Instant::now(), StreamId(stream)));
    sender.handle_item(now, file("large", Some(LARGE)));
    sender.handle_scan_complete(Instant::now());
    accept(&mut sender, now);
    let carried = [0, 1].map(|stream| next_block(&mut sender, now, StreamId(stream)));
    (sender, carried)
}

fn sent(sender: &mut Sender, stream: StreamId, offset: u64) {
    sender.handle_block_sent(Instant::now(), stream, ItemId(1), offset, Ok((BLOCK, BlockDigest::default())));
}

fn lost_streams(sender: &mut Sender) -> Vec<StreamId> {
    let actions = std::iter::from_fn(|| sender.poll_action());
    let lost = actions.filter_map(|action| match action {
        SenderAction::Send(PeerMessage::StreamLost { stream }) => Some(stream),
        _ => None,
    });
    lost.collect()
}

#[test]
fn retired_stream_ends_when_what_it_carried_was_sent_and_has_landed_and_not_before() {
    let now = Instant::now();
    let (mut sender, [_, offset]) = both_carry(now);
    assert_eq!(sender.retire(1), 1);
    assert!(sender.is_retiring(StreamId(1)) && !sender.is_retiring(StreamId(0)), "the newest goes");
    assert_eq!(sender.next_job(now, StreamId(1)), Next::Wait(None));
    sent(&mut sender, StreamId(1), offset);
    assert_eq!(sender.next_job(now, StreamId(1)), Next::Wait(None));
    // The block of another says nothing of this one's.
    sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
    assert_eq!(sender.next_job(now, StreamId(1)), Next::Wait(None));
    sender.handle_message(now, landed(vec![(1, offset)], Vec::new())).unwrap();
    assert_eq!(sender.next_job(now, StreamId(1)), Next::End);
    assert_eq!(sender.next_job(now, StreamId(1)), Next::End);
    assert!(matches!(sender.next_job(now, StreamId(0)), Next::Job(Job::Block(_))));
    // That its connection then ends is no loss.
    sender.handle_stream_lost(Instant::now(), StreamId(1));
    assert_eq!(lost_streams(&mut sender), []);
    assert_eq!(sender.totals().faults.streams_lost, 0);
}

#[test]
fn retired_stream_is_not_ended_early_by_a_word_before_the_data() {
    let now = Instant::now();
    let (mut sender, [_, offset]) = both_carry(now);
    sender.retire(1);
    sender.handle_message(now, landed(vec![(1, offset)], Vec::new())).unwrap();
    assert_eq!(sender.next_job(now, StreamId(1)), Next::Wait(None), "it is still being sent");
    sent(&mut sender, StreamId(1), offset);
    assert_eq!(sender.next_job(now, StreamId(1)), Next::End);
}

#[test]
fn retired_stream_that_is_lost_leaves_its_blocks_to_another() {
    let now = Instant::now();
    let (mut sender, [_, offset]) = both_carry(now);
    sender.retire(1);
    sent(&mut sender, StreamId(1), offset);
    sender.handle_stream_lost(Instant::now(), StreamId(1));
    assert_eq!(lost_streams(&mut sender), [StreamId(1)]);
    assert_eq!(sender.totals().faults.resent_after_loss, 1);
    assert_eq!(next_block(&mut sender, now, StreamId(0)), offset);
    assert_eq!(sender.next_job(now, StreamId(1)), Next::End);
}

#[test]
fn retired_stream_does_not_wait_for_a_block_that_is_asked_for_again() {
    let now = Instant::now();
    let (mut sender, [_, offset]) = both_carry(now);
    sender.retire(1);
    sent(&mut sender, StreamId(1), offset);
    sender.handle_message(now, PeerMessage::SendAgain { item: ItemId(1), offset }).unwrap();
    assert_eq!(sender.next_job(now, StreamId(1)), Next::End);
    assert_eq!(next_block(&mut sender, now, StreamId(0)), offset);
}

#[test]
fn retired_streams_are_idle_ones_first_and_never_the_last() {
    let now = Instant::now();
    let (mut sender, _) = both_carry(now);
    sender.handle_stream(Instant::now(), StreamId(2));
    sender.handle_stream(Instant::now(), StreamId(3));
    next_block(&mut sender, now, StreamId(3));
    assert_eq!(sender.retire(1), 1);
    assert!(sender.is_retiring(StreamId(2)));
    assert_eq!(sender.next_job(now, StreamId(2)), Next::End);
    assert_eq!((sender.retire(usize::MAX), sender.retire(1)), (2, 0));
    assert!(!sender.is_retiring(StreamId(0)) && sender.is_retiring(StreamId(1)) && sender.is_retiring(StreamId(3)));
    // Another comes in the place of the last: then that may go.
    sender.handle_stream(Instant::now(), StreamId(4));
    assert_eq!((sender.retire(9), sender.retire(9)), (1, 0));
    sender.fail(failure());
    sender.handle_stream(Instant::now(), StreamId(5));
    assert_eq!(sender.retire(9), 0);
}

/// A transfer of days sees streams come and go by the thousand.
#[test]
fn retired_streams_that_have_ended_are_forgotten() {
    let now = Instant::now();
    let (mut sender, [_, offset]) = both_carry(now);
    sender.retire(1);
    // Not while something may still be asked about it.
    sender.forget_stream(StreamId(1));
    assert!(sender.is_retiring(StreamId(1)));
    sent(&mut sender, StreamId(1), offset);
    sender.handle_message(now, landed(vec![(1, offset)], Vec::new())).unwrap();
    assert_eq!(sender.next_job(now, StreamId(1)), Next::End);
    sender.forget_stream(StreamId(1));
    assert!(!sender.is_retiring(StreamId(1)));
    assert_eq!(sender.next_job(now, StreamId(1)), Next::End);
    sender.handle_stream_lost(Instant::now(), StreamId(0));
    sender.forget_stream(StreamId(0));
    assert_eq!(sender.outcome(), None, "another may come");
    sender.handle_stream(Instant::now(), StreamId(2));
    assert!(matches!(sender.next_job(now, StreamId(2)), Next::Job(Job::Block(_))));
}

/// All that stay are lost while one still ends: the transfer waits for another, and gives the one that ends nothing.
#[test]
fn retired_stream_is_no_refuge() {
    let now = Instant::now();
    let (mut sender, [offset, _]) = both_carry(now);
    sender.retire(1);
    sender.handle_stream_lost(Instant::now(), StreamId(0));
    assert_eq!(sender.next_job(now, StreamId(1)), Next::Wait(None));
    assert_eq!(sender.outcome(), None);
    sender.handle_stream(Instant::now(), StreamId(2));
    assert_eq!(next_block(&mut sender, now, StreamId(2)), offset);
}

/// A sender that parks streams, and what its second stream carried, which has landed after it was asked to end.
fn parked(now: Instant) -> Sender {
    let (mut sender, [_, offset]) = both_carry_by(now, Tuning::DEFAULT);
    sender.retire(1);
    sent(&mut sender, StreamId(1), offset);
    sender.handle_message(now, landed(vec![(1, offset)], Vec::new())).unwrap();
    sender
}

#[test]
fn retired_stream_is_parked_for_a_minute_and_then_ends() {
    let now = Instant::now();
    let mut sender = parked(now);
    let until = now + Tuning::DEFAULT.parked;
    assert_eq!(sender.next_job(now, StreamId(1)), Next::Wait(Some(until)));
    assert_eq!(sender.next_job(until - Duration::from_millis(1), StreamId(1)), Next::Wait(Some(until)));
    assert_eq!(sender.next_job(until, StreamId(1)), Next::End);
    assert_eq!(sender.wake(9), 0, "it has ended");
    assert!(sender.is_retiring(StreamId(1)));
}

#[test]
fn parked_stream_goes_on_and_may_be_parked_again() {
    let now = Instant::now();
    let mut sender = parked(now);
    assert!(matches!(sender.next_job(now, StreamId(1)), Next::Wait(Some(_))));
    assert_eq!((sender.wake(9), sender.wake(9)), (1, 0));
    assert!(!sender.is_retiring(StreamId(1)));
    let later = now + 2 * Tuning::DEFAULT.parked;
    let offset = next_block(&mut sender, later, StreamId(1));
    assert_eq!(sender.retire(1), 1);
    sent(&mut sender, StreamId(1), offset);
    sender.handle_message(later, landed(vec![(1, offset)], Vec::new())).unwrap();
    let again = later + Tuning::DEFAULT.parked;
    assert_eq!(sender.next_job(later, StreamId(1)), Next::Wait(Some(again)), "a new minute");
}

/// One that has not sent or landed everything yet goes on as well, and nothing of it is lost or sent twice.
#[test]
fn retiring_stream_that_is_woken_keeps_what_it_carries() {
    let now = Instant::now();
    let (mut sender, [_, offset]) = both_carry_by(now, Tuning::DEFAULT);
    sender.retire(1);
    assert_eq!(sender.next_job(now, StreamId(1)), Next::Wait(None));
    assert_eq!(sender.wake(1), 1);
    assert_ne!(next_block(&mut sender, now, StreamId(1)), offset);
    sent(&mut sender, StreamId(1), offset);
    sender.handle_message(now, landed(vec![(1, offset)], Vec::new())).unwrap();
    assert_eq!((lost_streams(&mut sender), sender.totals().faults.resent_after_loss), (Vec::new(), 0));
}

#[test]
fn parked_stream_ends_with_the_transfer_and_may_be_lost_before() {
    let now = Instant::now();
    let mut sender = parked(now);
    assert!(matches!(sender.next_job(now, StreamId(1)), Next::Wait(Some(_))));
    sender.fail(failure());
    assert_eq!((sender.next_job(now, StreamId(1)), sender.wake(1)), (Next::End, 0));
    let mut sender = parked(now);
    sender.handle_stream_lost(now, StreamId(1));
    assert_eq!((sender.wake(1), sender.totals().faults.resent_after_loss), (0, 0));
    assert!(matches!(sender.next_job(now, StreamId(0)), Next::Job(_)));
}
