//! Hostile receivers.
#![cfg(test)]

use std::time::{Duration, Instant};

use super::*;
use crate::attributes::{Attributes, Time};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::limits;
use crate::report::Outcome;
use crate::transfer::machine::Machine;
use crate::transfer::orders::{offer, options};
use crate::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig, SentItem};
use crate::transfer::{BLOCKS_AHEAD, ScannedItem};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;

pub(super) const LARGE: u64 = 2 << 20;

pub(super) fn file(name: &str, size: Option<u64>) -> ScannedItem {
    let path = name.as_bytes().to_vec();
    ScannedItem {
        size,
        attributes: Attributes::new(0o600, Time::default()),
        ..ScannedItem::new(0, path, ItemKind::File)
    }
}

/// A sender with a large file (number 1), a bundle of two small ones (number 2) and two streams.
fn sender(now: Instant, size: Option<u64>) -> Sender {
    sender_with(options(BLOCK), now, size)
}

pub(super) fn sender_with(options: TransferOptions, now: Instant, size: Option<u64>) -> Sender {
    let mut sender =
        Sender::new(SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT });
    sender.handle_stream(Instant::now(), StreamId(0));
    sender.handle_stream(Instant::now(), StreamId(1));
    sender.handle_item(now, file("large", size));
    sender.handle_item(now, file("a", Some(3)));
    sender.handle_item(now, file("b", Some(4)));
    sender.handle_scan_complete(Instant::now());
    sender
}

/// Between two that can go on from an earlier attempt; small items are asked about.
pub(super) fn recovering(now: Instant, size: Option<u64>) -> Sender {
    let mut sender = Sender::new(SenderConfig {
        options: options(BLOCK),
        targets: vec![Vec::new()],
        known: true,
        tuning: Tuning::DEFAULT,
    });
    sender.handle_stream(Instant::now(), StreamId(0));
    sender.handle_stream(Instant::now(), StreamId(1));
    let fingerprint = Some([1; 16]);
    sender.handle_item(now, ScannedItem { fingerprint, ..file("large", size) });
    sender.handle_item(now, ScannedItem { fingerprint, ..file("a", Some(3)) });
    sender.handle_item(now, ScannedItem { fingerprint, ..file("b", Some(4)) });
    sender.handle_scan_complete(Instant::now());
    sender
}

pub(super) fn accept(sender: &mut Sender, now: Instant) {
    sender.handle_message(now, PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept }).unwrap();
}

pub(super) fn done(result: ItemResult) -> PeerMessage {
    PeerMessage::Done { item: ItemId(1), result }
}

pub(super) fn landed(blocks: Vec<(u64, u64)>, bundles: Vec<u64>) -> PeerMessage {
    let blocks = blocks.into_iter().map(|(item, offset)| (ItemId(item), offset)).collect();
    let bundles = bundles.into_iter().map(BundleId).collect();
    PeerMessage::Landed { blocks, bundles }
}

pub(super) fn bundle_done(bundle: BundleId, exceptions: Vec<(u32, ItemResult)>) -> PeerMessage {
    PeerMessage::BundleDone { bundle, exceptions }
}

pub(super) fn sent() -> Vec<SentItem> {
    vec![SentItem { size: 1, taken_over: 0, digest: BlockDigest::default(), failure: None }; 2]
}

pub(super) fn next_block(sender: &mut Sender, now: Instant, stream: StreamId) -> u64 {
    match sender.next_job(now, stream) {
        Next::Job(Job::Block(block)) => block.offset,
        other => panic!("{other:?} instead of a block"),
    }
}

pub(super) fn reports(sender: &mut Sender) -> Vec<(Vec<u8>, Outcome)> {
    let actions = std::iter::from_fn(|| sender.poll_action());
    actions
        .filter_map(
            |action| {
                if let SenderAction::Report(report) = action { Some((report.path, report.outcome)) } else { None }
            },
        )
        .collect()
}

#[test]
fn answers_and_ends_come_once_and_in_turn() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    for item in [0, 2, 3, u64::MAX] {
        is_violation(sender.handle_message(now, PeerMessage::Answer { item: ItemId(item), answer: Answer::Accept }));
        is_violation(sender.handle_message(now, PeerMessage::Done { item: ItemId(item), result: ItemResult::Kept }));
    }
    is_violation(sender.handle_message(now, done(ItemResult::Kept)));
    is_violation(sender.handle_message(now, done(ItemResult::Published)));
    accept(&mut sender, now);
    is_violation(sender.handle_message(now, PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept }));
    is_violation(sender.handle_message(now, done(ItemResult::Published)));
    is_violation(sender.handle_message(now, PeerMessage::Finished { durable: true }));
    sender.handle_message(now, done(ItemResult::Failed(failure()))).unwrap();
    is_violation(sender.handle_message(now, done(ItemResult::Failed(failure()))));
    assert_eq!(reports(&mut sender), [(b"large".to_vec(), Outcome::Failed(failure()))]);
}

#[test]
fn blocks_land_only_after_they_were_sent() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    accept(&mut sender, now);
    let offset = next_block(&mut sender, now, StreamId(0));
    assert_eq!(offset, 0);
    for (item, offset) in [(1, 1024), (1, 1), (1, u64::MAX), (7, 0), (0, 0)] {
        is_violation(sender.handle_message(now, landed(vec![(item, offset)], Vec::new())));
        is_violation(sender.handle_message(now, PeerMessage::SendAgain { item: ItemId(item), offset }));
    }
    is_violation(sender.handle_message(now, landed(Vec::new(), vec![99])));
    sender.handle_message(now, landed(vec![(1, 0), (1, 0)], Vec::new())).unwrap();
    assert_eq!(sender.progress().bytes_done, u64::from(BLOCK));
}

#[test]
fn block_is_not_sent_for_ever() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    accept(&mut sender, now);
    for _ in 0..limits::SENDS_PER_BLOCK {
        assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
        sender.handle_block_sent(Instant::now(), StreamId(0), ItemId(1), 0, Ok((BLOCK, BlockDigest::default())));
        sender.handle_message(now, PeerMessage::SendAgain { item: ItemId(1), offset: 0 }).unwrap();
    }
    assert_eq!(sender.totals().faults.digest_mismatches, u64::from(limits::SENDS_PER_BLOCK));
    let told = std::iter::from_fn(|| sender.poll_action())
        .any(|action| matches!(action, SenderAction::Send(PeerMessage::Abandon { item: ItemId(1) })));
    assert!(told);
}

/// The limit is for each block: a long transfer meets many errors, each in another place.
#[test]
fn blocks_may_go_twice_and_be_many() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    accept(&mut sender, now);
    for index in 0..100 {
        let offset = index * u64::from(BLOCK);
        assert_eq!(next_block(&mut sender, now, StreamId(0)), offset);
        sender.handle_message(now, PeerMessage::SendAgain { item: ItemId(1), offset }).unwrap();
        assert_eq!(next_block(&mut sender, now, StreamId(0)), offset);
        sender.handle_message(now, landed(vec![(1, offset)], Vec::new())).unwrap();
    }
}

#[test]
fn blocks_under_way_are_bounded() {
    let now = Instant::now();
    let mut sender = sender(now, Some(u64::MAX >> 2));
    accept(&mut sender, now);
    (0..BLOCKS_AHEAD).for_each(|index| assert_eq!(next_block(&mut sender, now, StreamId(0)), index * u64::from(BLOCK)));
    let next = sender.next_job(now, StreamId(0));
    assert!(matches!(next, Next::Job(Job::Bundle(_))), "{next:?}");
    sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
    assert_eq!(next_block(&mut sender, now, StreamId(0)), BLOCKS_AHEAD * u64::from(BLOCK));
}

#[test]
fn bundles_end_once_with_items_that_they_have() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    is_violation(sender.handle_message(now, bundle_done(BundleId(2), Vec::new())));
    assert!(
        matches!(sender.next_job(now, StreamId(0)), Next::Job(Job::Bundle(bundle)) if bundle.id == BundleId(2) && bundle.items.len() == 2)
    );
    for exceptions in [
        vec![(2, ItemResult::Kept)],
        vec![(u32::MAX, ItemResult::Kept)],
        vec![(0, ItemResult::Kept), (0, ItemResult::Dropped)],
    ] {
        is_violation(sender.handle_message(now, bundle_done(BundleId(2), exceptions)));
    }
    is_violation(sender.handle_message(now, bundle_done(BundleId(1), Vec::new())));
    // Before all of it was sent: odd, but an honest receiver may have it from a stream that was lost.
    sender.handle_message(now, bundle_done(BundleId(2), vec![(1, ItemResult::Kept)])).unwrap();
    is_violation(sender.handle_message(now, bundle_done(BundleId(2), Vec::new())));
    assert_eq!(reports(&mut sender), []);
    sender.handle_bundle_sent(Instant::now(), BundleId(2), sent());
    assert_eq!(reports(&mut sender), [(b"a".to_vec(), Outcome::Published), (b"b".to_vec(), Outcome::Kept)]);
    is_violation(sender.handle_message(now, bundle_done(BundleId(2), Vec::new())));
}

#[test]
fn messages_of_senders_are_refused_by_senders() {
    let now = Instant::now();
    let mut sender = sender(now, None);
    let messages = [
        offer(ItemId(9), None),
        PeerMessage::Complete { item: ItemId(1), size: 1, digest: None, modified: None },
        PeerMessage::Abandon { item: ItemId(1) },
        PeerMessage::Directories(Vec::new()),
        PeerMessage::Finish,
    ];
    messages.into_iter().for_each(|message| is_violation(sender.handle_message(now, message)));
}

/// Within one process a stream that is late waits for a processor, or for `--bwlimit`: what would be cut off
/// could not be made again.
#[test]
fn stream_within_one_process_is_never_cut_off() {
    let now = Instant::now();
    for within_process in [false, true] {
        let mut sender = sender(now, Some(LARGE));
        if within_process {
            sender.handle_within_process(Instant::now());
        }
        accept(&mut sender, now);
        assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
        sender.handle_block_sent(Instant::now(), StreamId(0), ItemId(1), 0, Ok((BLOCK, BlockDigest::default())));
        sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
        assert_eq!(next_block(&mut sender, now, StreamId(0)), u64::from(BLOCK));
        let later = now + Duration::from_secs(3600);
        while matches!(sender.next_job(later, StreamId(1)), Next::Job(_)) {}
        assert_eq!(sender.totals().faults.stragglers > 0, !within_process);
    }
}

/// A late stream is cut off only when the scan has ended. An idle one that was told to ask again before would ask for
/// ever, at the price of a processor.
#[test]
fn idle_stream_waits_for_the_scan_before_it_cuts_off_a_straggler() {
    let now = Instant::now();
    let options = options(BLOCK);
    let mut sender =
        Sender::new(SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT });
    (0..2).for_each(|stream| sender.handle_stream(Instant::now(), StreamId(stream)));
    sender.handle_item(now, file("large", Some(LARGE)));
    accept(&mut sender, now);
    assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
    sender.handle_block_sent(Instant::now(), StreamId(0), ItemId(1), 0, Ok((BLOCK, BlockDigest::default())));
    sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
    let later = now + Duration::from_secs(3600);
    let mut taken = 0;
    while let Next::Job(_) = sender.next_job(later, StreamId(0)) {
        taken += 1;
    }
    assert!(taken > 0, "stream 0 carries something");
    let much_later = later + Duration::from_secs(3600);
    assert_eq!(sender.next_job(much_later, StreamId(1)), Next::Wait(None), "while the scan goes on");
    sender.handle_scan_complete(Instant::now());
    assert!(
        matches!(sender.next_job(much_later, StreamId(1)), Next::Job(_)),
        "stream 1 takes what stream 0 held too long"
    );
    assert!(sender.totals().faults.stragglers > 0);
}

/// What landed first may have been small, or within the allowance that had been saved up: what comes then takes
/// as long as the limit says.
#[test]
fn stream_that_waits_for_the_rate_limit_is_not_cut_off() {
    let now = Instant::now();
    for (limit, cut) in [(None, true), (Some(u64::from(BLOCK) / 10), false)] {
        let mut sender = sender_with(TransferOptions { rate_limit: limit, ..options(BLOCK) }, now, Some(LARGE));
        accept(&mut sender, now);
        assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
        sender.handle_block_sent(Instant::now(), StreamId(0), ItemId(1), 0, Ok((BLOCK, BlockDigest::default())));
        sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
        assert_eq!(next_block(&mut sender, now, StreamId(0)), u64::from(BLOCK));
        // Two streams share the limit, so a block may take 20 s.
        let in_time = now + Duration::from_secs(20);
        while matches!(sender.next_job(in_time, StreamId(1)), Next::Job(_)) {}
        assert_eq!(sender.totals().faults.stragglers > 0, cut, "{limit:?}");
        let late = now + Duration::from_secs(3600);
        while matches!(sender.next_job(late, StreamId(1)), Next::Job(_)) {}
        assert!(sender.totals().faults.stragglers > 0, "{limit:?}: it is never cut off");
    }
}

/// A pipe that pauses is not a slow stream.
#[test]
fn stream_that_reads_a_pipe_is_never_cut_off() {
    let now = Instant::now();
    let mut sender = sender(now, None);
    accept(&mut sender, now);
    assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
    sender.handle_read(Instant::now(), ItemId(1), 0, BLOCK, false);
    sender.handle_block_sent(Instant::now(), StreamId(0), ItemId(1), 0, Ok((BLOCK, BlockDigest::default())));
    sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
    assert_eq!(next_block(&mut sender, now, StreamId(0)), u64::from(BLOCK));
    assert!(matches!(sender.next_job(now, StreamId(1)), Next::Job(Job::Bundle(_))));
    let later = now + Duration::from_secs(3600);
    assert_eq!(sender.next_job(later, StreamId(1)), Next::Wait(None));
    assert_eq!(sender.totals().faults.stragglers, 0);
}

/// The receiver may have had a bundle whole from a stream that was lost, and say so before it is sent again.
#[test]
fn bundle_that_ended_is_not_sent_again() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    assert!(matches!(sender.next_job(now, StreamId(0)), Next::Job(Job::Bundle(_))));
    sender.handle_bundle_sent(Instant::now(), BundleId(2), sent());
    sender.handle_stream_lost(Instant::now(), StreamId(0));
    sender.handle_message(now, bundle_done(BundleId(2), Vec::new())).unwrap();
    assert_eq!(reports(&mut sender).len(), 2);
    assert_eq!(sender.next_job(now, StreamId(1)), Next::Wait(None));
}

/// While a second copy is being sent it is not known which the receiver took; where they differ,
/// the item goes once more.
#[test]
fn copies_that_differ_are_sent_again() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    assert!(matches!(sender.next_job(now, StreamId(0)), Next::Job(Job::Bundle(_))));
    sender.handle_bundle_sent(Instant::now(), BundleId(2), sent());
    sender.handle_stream_lost(Instant::now(), StreamId(0));
    assert!(matches!(sender.next_job(now, StreamId(1)), Next::Job(Job::Bundle(bundle)) if bundle.id == BundleId(2)));
    sender.handle_message(now, bundle_done(BundleId(2), Vec::new())).unwrap();
    assert_eq!(reports(&mut sender), []);
    let mut second = sent();
    second[1].size = 99;
    sender.handle_bundle_sent(Instant::now(), BundleId(2), second);
    assert_eq!(reports(&mut sender), [(b"a".to_vec(), Outcome::Published)]);
    let Next::Job(Job::Bundle(again)) = sender.next_job(now, StreamId(1)) else { panic!("nothing is sent again") };
    assert_eq!((again.items.len(), &again.items[0].path[..], again.attempt), (1, &b"b"[..], 1));
    assert_ne!(again.id, BundleId(2));
}

/// A stream that is lost before it said that it had read a block which landed: the block is read again, for its digest.
/// Large files and small ones go at the same time: one kind does not wait for the end of the other.
#[test]
fn streams_of_even_number_take_blocks_first_and_odd_ones_bundles() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    accept(&mut sender, now);
    sender.handle_scan_complete(Instant::now());
    assert!(matches!(sender.next_job(now, StreamId(1)), Next::Job(Job::Bundle(_))));
    assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
    assert_eq!(next_block(&mut sender, now, StreamId(1)), u64::from(BLOCK));
}

#[test]
fn block_that_landed_unread_is_read_again() {
    let now = Instant::now();
    let mut sender = sender(now, Some(LARGE));
    accept(&mut sender, now);
    assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
    sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
    sender.handle_stream(Instant::now(), StreamId(2));
    sender.handle_stream_lost(Instant::now(), StreamId(0));
    assert_eq!(next_block(&mut sender, now, StreamId(2)), 0);
    assert_eq!(next_block(&mut sender, now, StreamId(2)), u64::from(BLOCK));
}

/// Once everything has landed, streams are not needed: a long sync must not fail a transfer.
#[test]
fn streams_may_go_when_there_is_nothing_left_to_send() {
    let now = Instant::now();
    let mut sender = Sender::new(SenderConfig {
        options: options(BLOCK),
        targets: vec![Vec::new()],
        known: false,
        tuning: Tuning::DEFAULT,
    });
    sender.handle_stream(Instant::now(), StreamId(0));
    sender.handle_scan_complete(Instant::now());
    sender.handle_stream_lost(Instant::now(), StreamId(0));
    assert_eq!(sender.outcome(), None);
    sender.handle_message(now, PeerMessage::Finished { durable: true }).unwrap();
    assert_eq!(sender.outcome(), Some(Ok(())));
    sender.handle_message(now, PeerMessage::Fail(failure())).unwrap();
    assert_eq!(sender.outcome(), Some(Ok(())));
}

#[test]
fn sender_survives_whatever_a_receiver_says() {
    let base = Instant::now();
    for seed in 0..2400 {
        let mut rng = Rng::new(seed);
        let size = (seed % 2 == 0).then_some(LARGE);
        let mut sender = if seed % 4 < 2 { sender(base, size) } else { recovering(base, size) };
        let mut jobs = Vec::new();
        for step in 0..150 {
            let now = base + Duration::from_millis(step * 20);
            match rng.below(4) {
                0 => {
                    let stream = rng.below(2) as u16;
                    if let Next::Job(job) = sender.next_job(now, StreamId(stream)) {
                        jobs.push((stream, job));
                    }
                }
                1 if !jobs.is_empty() => {
                    let (stream, job) = jobs.swap_remove(rng.below(jobs.len() as u64) as usize);
                    finish(&mut sender, StreamId(stream), &job);
                }
                _ => _ = sender.handle_message(now, any_message(&mut rng)),
            }
            while let Some(action) = sender.poll_action() {
                match action {
                    SenderAction::CheckSource(item) => sender.handle_source_checked(Instant::now(), item, Ok(None)),
                    SenderAction::Rescan { scanned, attempt } => {
                        sender.handle_rescanned(now, &scanned, attempt, Ok(scanned.clone()));
                    }
                    _ => {}
                }
            }
        }
    }
}

pub(super) fn finish(sender: &mut Sender, stream: StreamId, job: &Job) {
    match job {
        Job::Check(block) => {
            sender.handle_block_checked(Instant::now(), stream, block.item, block.offset, Ok(BlockDigest::default()));
        }
        Job::Bundle(bundle) => {
            let sent = SentItem { size: 1, taken_over: 0, digest: BlockDigest::default(), failure: None };
            sender.handle_bundle_sent(Instant::now(), bundle.id, vec![sent; bundle.items.len()]);
        }
        Job::Block(block) => {
            let end = block.offset >= 3 * u64::from(BLOCK);
            if block.unsized_source {
                sender.handle_read(Instant::now(), block.item, block.offset, BLOCK, end);
            }
            sender.handle_block_sent(
                Instant::now(),
                stream,
                block.item,
                block.offset,
                Ok((block.length, BlockDigest::default())),
            );
        }
    }
}

/// Whoever is told of items may read slowly, or not at all. What has been found is sent meanwhile;
/// nothing more is looked for.
#[test]
fn scan_waits_until_what_was_told_is_taken() {
    let now = Instant::now();
    let mut sender = sender_with(options(BLOCK), now, Some(LARGE));
    assert!(sender.wants_items());
    let path_bytes = 1000;
    let mut found = 0;
    while sender.wants_items() {
        let failure = Failure::new(ErrorCode::NotFound, Side::Source, "gone");
        sender.handle_scan_failure(Instant::now(), &file(&format!("{found:0>path_bytes$}"), None), failure);
        found += 1;
        assert!(found * path_bytes <= limits::REPORT_BYTES_WAITING, "the scan goes on");
    }
    let mut taken = 0;
    while let Some(action) = sender.poll_action() {
        taken += usize::from(matches!(action, SenderAction::Report(_)));
    }
    assert_eq!(taken, found);
    assert!(sender.wants_items());
}
