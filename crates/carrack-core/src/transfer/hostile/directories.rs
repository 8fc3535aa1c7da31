//! Directories whose attributes fail: however many there are, each is told once, and counted once.
#![cfg(test)]

use std::time::Instant;

use super::sender::finish;
use super::*;
use crate::attributes::{Attributes, Time};
use crate::ids::StreamId;
use crate::limits;
use crate::report::Outcome;
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::orders::options;
use crate::transfer::receiver::{Receiver, ReceiverAction, ReceiverConfig};
use crate::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig};
use crate::tuning::Tuning;

/// What a receiver says of so many directories, each of which fails for a reason of as many bytes as there may be.
fn said(count: usize) -> Vec<PeerMessage> {
    let mut receiver =
        Receiver::new(ReceiverConfig { options: options(BLOCK), checkpoints: false, tuning: Tuning::DEFAULT });
    receiver.handle_message(Instant::now(), PeerMessage::Directories(Vec::new())).unwrap();
    receiver.handle_message(Instant::now(), PeerMessage::Finish).unwrap();
    let message = "w".repeat(limits::ERROR_TEXT_BYTES);
    let failed = |number: usize| (format!("d/{number}").into_bytes(), Failure { why: message.clone(), ..failure() });
    receiver.handle_directories_applied(Instant::now(), (0..count).map(failed).collect());
    receiver.handle_synced(Instant::now(), true);
    let actions = std::iter::from_fn(|| receiver.poll_action());
    actions.filter_map(|action| if let ReceiverAction::Send(message) = action { Some(message) } else { None }).collect()
}

/// A sender that has told of so many directories.
fn told(count: usize) -> Sender {
    let now = Instant::now();
    let config =
        SenderConfig { options: options(BLOCK), targets: vec![b"d".to_vec()], known: false, tuning: Tuning::DEFAULT };
    let mut sender = Sender::new(config);
    sender.handle_stream(Instant::now(), StreamId(0));
    let work = |sender: &mut Sender| {
        while let Next::Job(job) = sender.next_job(now, StreamId(0)) {
            finish(sender, StreamId(0), &job);
            let Job::Bundle(bundle) = job else { panic!("{job:?}") };
            let done = PeerMessage::BundleDone { bundle: bundle.id, exceptions: Vec::new() };
            sender.handle_message(now, done).unwrap();
        }
    };
    for number in 0..count {
        let (path, kind) = (number.to_string().into_bytes(), ItemKind::Directory);
        let item =
            ScannedItem { attributes: Attributes::new(0o755, Time::default()), ..ScannedItem::new(0, path, kind) };
        sender.handle_item(now, item);
        work(&mut sender);
    }
    sender.handle_scan_complete(Instant::now());
    work(&mut sender);
    while sender.poll_action().is_some() {}
    sender
}

#[test]
fn directories_that_fail_are_told_and_counted_once() {
    const COUNT: usize = 3000;
    let messages = said(COUNT);
    let mut sender = told(COUNT);
    for message in messages {
        let bytes = message.encode();
        assert!(bytes.len() <= limits::MESSAGE_BYTES, "{}", bytes.len());
        sender.handle_message(Instant::now(), PeerMessage::decode(&bytes).unwrap()).unwrap();
    }
    assert_eq!(sender.outcome(), Some(Ok(())));
    assert_eq!(sender.totals().counts.files_failed, COUNT as u64);
    let mut reported: Vec<Vec<u8>> = std::iter::from_fn(|| sender.poll_action())
        .filter_map(|action| if let SenderAction::Report(report) = action { Some(*report) } else { None })
        .filter(|report| matches!(report.outcome, Outcome::Failed(_)))
        .map(|report| report.path)
        .collect();
    reported.sort();
    reported.dedup();
    assert_eq!(reported.len(), COUNT);
}

#[test]
fn directories_that_fail_are_no_more_than_were_told() {
    let now = Instant::now();
    let failed = |count: usize| PeerMessage::DirectoriesFailed(vec![(b"d/0".to_vec(), failure()); count]);
    let mut sender = told(2);
    sender.handle_message(now, failed(2)).unwrap();
    is_violation(sender.handle_message(now, failed(1)));
    let mut early = Sender::new(SenderConfig {
        options: options(BLOCK),
        targets: vec![Vec::new()],
        known: false,
        tuning: Tuning::DEFAULT,
    });
    is_violation(early.handle_message(now, failed(1)));
}
