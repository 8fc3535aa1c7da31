//! The files in flight, as a sender tells of them: none too early, none too late, and never many; whatever a receiver
//! says has landed.
#![cfg(test)]

use std::time::{Duration, Instant};

use super::sender::{LARGE, accept, done, file, landed, next_block, sender_with};
use super::*;
use crate::ids::StreamId;
use crate::limits;
use crate::report::ItemInFlight;
use crate::transfer::machine::Machine;
use crate::transfer::orders::options;
use crate::transfer::sender::{InFlight, Job, Next, Sender, SenderConfig};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;

fn told_options() -> TransferOptions {
    TransferOptions { items_in_flight: true, ..options(BLOCK) }
}

/// So many seconds after the start: files in flight are told once in a second.
fn second(number: u64) -> Instant {
    start() + Duration::from_secs(number)
}

fn item(path: &str, size: u64, bytes: u64) -> ItemInFlight {
    ItemInFlight { path: path.into(), size: Some(size), bytes }
}

#[test]
fn file_in_flight_is_told_from_its_first_block_to_its_end() {
    let mut sender = sender_with(told_options(), start(), Some(LARGE));
    let mut in_flight = InFlight::default();
    assert_eq!(in_flight.look(second(1), &sender), None, "not offered yet");
    accept(&mut sender, start());
    assert_eq!(in_flight.look(second(2), &sender), None, "nothing of it is on its way");
    let block = u64::from(BLOCK);
    (0..3).for_each(|index| assert_eq!(next_block(&mut sender, start(), StreamId(0)), index * block));
    assert_eq!(in_flight.look(second(3), &sender), Some(vec![item("large", LARGE, 0)]));
    sender.handle_message(start(), landed(vec![(1, 0), (1, 2 * block)], Vec::new())).unwrap();
    assert_eq!(in_flight.look(second(3), &sender), None, "within the same second");
    assert_eq!(in_flight.look(second(4), &sender), Some(vec![item("large", LARGE, 2 * block)]));
    // What has landed once does not land again.
    sender.handle_message(start(), landed(vec![(1, 0), (1, 0)], Vec::new())).unwrap();
    assert_eq!(in_flight.look(second(5), &sender), None, "nothing has changed");
    sender.handle_message(start(), PeerMessage::SendAgain { item: ItemId(1), offset: 0 }).unwrap();
    assert_eq!(in_flight.look(second(6), &sender), Some(vec![item("large", LARGE, block)]), "a block is lost");
    sender.handle_message(start(), done(ItemResult::Failed(failure()))).unwrap();
    assert_eq!(in_flight.look(second(7), &sender), Some(Vec::new()));
    assert_eq!(in_flight.look(second(8), &sender), None);
}

#[test]
fn files_in_flight_are_not_told_unasked_nor_after_a_failure() {
    for asked in [false, true] {
        let mut sender =
            sender_with(TransferOptions { items_in_flight: asked, ..told_options() }, start(), Some(LARGE));
        accept(&mut sender, start());
        next_block(&mut sender, start(), StreamId(0));
        let mut in_flight = InFlight::default();
        assert_eq!(in_flight.look(second(1), &sender).is_some(), asked);
        sender.fail(failure());
        let expected = asked.then(Vec::new);
        assert_eq!(in_flight.look(second(2), &sender), expected);
    }
}

#[test]
fn file_in_flight_that_is_given_up_is_told_no_more() {
    let mut sender = sender_with(told_options(), start(), Some(LARGE));
    accept(&mut sender, start());
    next_block(&mut sender, start(), StreamId(0));
    let mut in_flight = InFlight::default();
    assert!(in_flight.look(second(1), &sender).is_some());
    sender.abandon(ItemId(1), failure());
    assert_eq!(in_flight.look(second(2), &sender), Some(Vec::new()));
}

/// What an earlier attempt has brought is there once it has been compared, whatever the receiver says.
#[test]
fn file_in_flight_has_the_blocks_that_were_compared() {
    let mut sender = sender_with(told_options(), start(), Some(LARGE));
    let (block, digest) = (u64::from(BLOCK), BlockDigest { main: [1; 32], ..BlockDigest::default() });
    let held = PeerMessage::Held {
        item: ItemId(1),
        first: 0,
        digests: vec![digest; 3],
        taken_over: false,
        chunks: Vec::new(),
    };
    sender.handle_message(start(), held).unwrap();
    accept(&mut sender, start());
    let mut in_flight = InFlight::default();
    for index in 0..3 {
        let job = sender.next_job(start(), StreamId(1));
        assert!(matches!(job, Next::Job(Job::Check(job)) if job.offset == index * block), "{job:?}");
    }
    sender.handle_block_checked(start(), StreamId(1), ItemId(1), 0, Ok(digest));
    sender.handle_block_checked(start(), StreamId(1), ItemId(1), block, Ok(BlockDigest::default()));
    assert_eq!(in_flight.look(second(1), &sender), Some(vec![item("large", LARGE, block)]));
}

#[test]
fn file_in_flight_that_shares_its_blocks_is_all_there() {
    let options = TransferOptions { shares: true, ..told_options() };
    let mut sender = sender_with(options, start(), Some(LARGE));
    sender.handle_message(start(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Shared }).unwrap();
    assert_eq!(InFlight::default().look(second(1), &sender), Some(vec![item("large", LARGE, LARGE)]));
}

/// A sender of files of 1, 2, 3 … blocks, all of whose blocks are under way.
fn sender_of(names: impl IntoIterator<Item = String>) -> Sender {
    let tuning = Tuning { bundled_file_bytes_max: 0, ..Tuning::DEFAULT };
    let config = SenderConfig { options: told_options(), targets: vec![Vec::new()], known: false, tuning };
    let mut sender = Sender::new(config);
    sender.handle_stream(start(), StreamId(0));
    let mut count = 0;
    for name in names {
        count += 1;
        sender.handle_item(start(), file(&name, Some(count * u64::from(BLOCK))));
    }
    sender.handle_scan_complete(start());
    for number in 1..=count {
        let answer = PeerMessage::Answer { item: ItemId(number), answer: Answer::Accept };
        sender.handle_message(start(), answer).unwrap();
    }
    while let Next::Job(Job::Block(_)) = sender.next_job(start(), StreamId(0)) {}
    sender
}

fn sizes(list: Option<Vec<ItemInFlight>>) -> Vec<u64> {
    let blocks = |item: ItemInFlight| item.size.unwrap() / u64::from(BLOCK);
    list.expect("told").into_iter().map(blocks).collect()
}

#[test]
fn files_in_flight_are_those_that_miss_most_and_keep_their_places() {
    let mut sender = sender_of((1..=20).map(|number| format!("f{number}")));
    let mut in_flight = InFlight::default();
    let first: Vec<u64> = (13..=20).rev().collect();
    assert_eq!(first.len(), limits::IN_FLIGHT);
    assert_eq!(sizes(in_flight.look(second(1), &sender)), first);
    // It misses less than others by now, and stays where it is.
    let block = u64::from(BLOCK);
    let blocks = (0..19).map(|index| (20, index * block)).collect();
    sender.handle_message(start(), landed(blocks, Vec::new())).unwrap();
    assert_eq!(sizes(in_flight.look(second(2), &sender)), first);
    // Behind those that stay comes the one that misses most of all others.
    let ended = PeerMessage::Done { item: ItemId(18), result: ItemResult::Failed(failure()) };
    sender.handle_message(start(), ended).unwrap();
    assert_eq!(sizes(in_flight.look(second(3), &sender)), [20, 19, 17, 16, 15, 14, 13, 12]);
}

#[test]
fn files_in_flight_have_paths_that_are_short_together() {
    let long = limits::IN_FLIGHT_PATHS_BYTES / 3;
    let name = |number: usize| if number == 1 { "short".to_owned() } else { format!("{number:0>long$}") };
    let sender = sender_of((1..=6).map(name));
    let list = InFlight::default().look(second(1), &sender).expect("told");
    assert_eq!(list.iter().map(|item| item.path.len()).collect::<Vec<_>>(), [long, long, long]);
    let paths: usize = list.iter().map(|item| item.path.len()).sum();
    assert!(paths <= limits::IN_FLIGHT_PATHS_BYTES && paths + "short".len() > limits::IN_FLIGHT_PATHS_BYTES);
}
