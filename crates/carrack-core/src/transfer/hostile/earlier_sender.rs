//! Receivers that say of an earlier attempt what cannot be, or honest ones; and items that come again.
#![cfg(test)]

use std::time::Instant;

use super::sender::{
    LARGE, accept, bundle_done, done, file, landed, next_block, recovering, reports, sender_with, sent,
};
use super::*;
use crate::digest::from_xxh128;
use crate::ids::{BundleId, ItemId, StreamId};
use crate::limits;
use crate::report::Outcome;
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::orders::options;
use crate::transfer::sender::{Job, Next, Sender, SenderAction};
use crate::wire::control::TransferOptions;

fn digest(of: u8) -> BlockDigest {
    BlockDigest { main: [of; 32], ..BlockDigest::default() }
}

fn held(first: u64, digests: Vec<BlockDigest>) -> PeerMessage {
    PeerMessage::Held { item: ItemId(1), first, digests, taken_over: false, chunks: Vec::new() }
}

fn check(sender: &mut Sender, now: Instant, stream: StreamId) -> u64 {
    match sender.next_job(now, stream) {
        Next::Job(Job::Check(block)) => block.offset,
        other => panic!("{other:?} instead of a held block"),
    }
}

fn said(sender: &mut Sender) -> Vec<PeerMessage> {
    let actions = std::iter::from_fn(|| sender.poll_action());
    actions.filter_map(|action| if let SenderAction::Send(message) = action { Some(message) } else { None }).collect()
}

/// Looks again at whatever is to be, and finds the same.
fn rescan(sender: &mut Sender, now: Instant) -> usize {
    let actions: Vec<_> = std::iter::from_fn(|| sender.poll_action()).collect();
    let mut times = 0;
    for action in actions {
        if let SenderAction::Rescan { scanned, attempt } = action {
            times += 1;
            sender.handle_rescanned(now, &scanned, attempt, Ok(scanned.clone()));
        }
    }
    times
}

#[test]
fn blocks_are_held_only_where_they_can_be() {
    let now = Instant::now();
    let blocks = LARGE / u64::from(BLOCK);
    let mut pipe = sender_with(options(BLOCK), now, None);
    is_violation(pipe.handle_message(now, held(0, vec![digest(1)])));
    let mut sender = recovering(now, Some(LARGE));
    for item in [0, 2, 99] {
        is_violation(sender.handle_message(
            now,
            PeerMessage::Held {
                item: ItemId(item),
                first: 0,
                digests: vec![digest(1)],
                taken_over: false,
                chunks: Vec::new(),
            },
        ));
    }
    is_violation(sender.handle_message(now, held(blocks, vec![digest(1)])));
    is_violation(sender.handle_message(now, held(blocks - 1, vec![digest(1); 2])));
    is_violation(sender.handle_message(now, held(u64::MAX, vec![digest(1); 2])));
    sender.handle_message(now, held(5, vec![digest(1); 2])).unwrap();
    is_violation(sender.handle_message(now, held(6, vec![digest(1)])));
    is_violation(sender.handle_message(now, held(0, vec![digest(1)])));
    accept(&mut sender, now);
    is_violation(sender.handle_message(now, held(9, vec![digest(1)])));
    // Until it has been compared, a held block has not landed, whatever the receiver says.
    let offset = 5 * u64::from(BLOCK);
    for _ in 0..2 {
        is_violation(sender.handle_message(now, landed(vec![(1, offset)], Vec::new())));
        is_violation(sender.handle_message(now, PeerMessage::SendAgain { item: ItemId(1), offset }));
        check(&mut sender, now, StreamId(1));
    }
}

/// Odd streams compare, even ones send, and what turns out to be the same is confirmed in one message.
#[test]
fn held_blocks_are_compared_and_the_others_sent() {
    let now = Instant::now();
    let block = u64::from(BLOCK);
    let mut sender = recovering(now, Some(LARGE));
    sender.handle_message(now, held(0, vec![digest(1), digest(2), digest(3)])).unwrap();
    accept(&mut sender, now);
    assert_eq!(next_block(&mut sender, now, StreamId(0)), 3 * block);
    for index in 0..3 {
        assert_eq!(check(&mut sender, now, StreamId(1)), index * block);
    }
    said(&mut sender);
    sender.handle_block_checked(Instant::now(), StreamId(1), ItemId(1), 0, Ok(digest(1)));
    sender.handle_block_checked(Instant::now(), StreamId(1), ItemId(1), block, Ok(digest(2)));
    sender.handle_block_checked(Instant::now(), StreamId(1), ItemId(1), 2 * block, Ok(digest(9)));
    assert_eq!(said(&mut sender), [PeerMessage::Confirm { item: ItemId(1), first: 0, count: 2 }]);
    assert_eq!((sender.progress().bytes_done, sender.totals().counts.bytes_resumed), (2 * block, 2 * block));
    // What is not the same is sent, before what comes after.
    assert_eq!(next_block(&mut sender, now, StreamId(0)), 2 * block);
    assert_eq!(next_block(&mut sender, now, StreamId(1)), 4 * block);
    // Said twice, or of what was never to be compared: nothing.
    sender.handle_block_checked(Instant::now(), StreamId(1), ItemId(1), 0, Ok(digest(1)));
    sender.handle_block_checked(Instant::now(), StreamId(1), ItemId(7), 0, Ok(digest(1)));
    assert_eq!(said(&mut sender), []);
}

#[test]
fn lost_stream_leaves_its_held_block_to_another() {
    let now = Instant::now();
    let mut sender = recovering(now, Some(LARGE));
    sender.handle_message(now, held(0, vec![digest(1)])).unwrap();
    accept(&mut sender, now);
    assert_eq!(check(&mut sender, now, StreamId(1)), 0);
    sender.handle_stream_lost(Instant::now(), StreamId(1));
    assert_eq!(sender.totals().faults.resent_after_loss, 0);
    sender.handle_stream(Instant::now(), StreamId(3));
    assert_eq!(check(&mut sender, now, StreamId(3)), 0);
    // The first reads on, and is quicker: its word counts, once.
    sender.handle_block_checked(Instant::now(), StreamId(1), ItemId(1), 0, Ok(digest(1)));
    sender.handle_block_checked(Instant::now(), StreamId(3), ItemId(1), 0, Ok(digest(1)));
    let confirmed = said(&mut sender).into_iter().filter(|message| matches!(message, PeerMessage::Confirm { .. }));
    assert_eq!(confirmed.count(), 1);
}

#[test]
fn held_blocks_have_digests_of_the_kind_agreed() {
    let now = Instant::now();
    let xxh128 = TransferOptions { digests: Digests::XXH128, ..options(BLOCK) };
    let short = BlockDigest { main: from_xxh128([1; 16]), ..BlockDigest::default() };
    is_violation(sender_with(xxh128, now, Some(LARGE)).handle_message(now, held(0, vec![short, digest(1)])));
    sender_with(xxh128, now, Some(LARGE)).handle_message(now, held(0, vec![short])).unwrap();
    let none = TransferOptions { digests: Digests::NONE, ..options(BLOCK) };
    is_violation(sender_with(none, now, Some(LARGE)).handle_message(now, held(0, vec![short])));
}

/// What the receiver had of a file saves nothing where no file comes of it.
#[test]
fn nothing_was_saved_of_a_file_that_failed() {
    let now = Instant::now();
    for result in [ItemResult::Failed(failure()), ItemResult::Kept] {
        let mut sender = recovering(now, Some(LARGE));
        let taken_over = PeerMessage::Held {
            item: ItemId(1),
            first: 1,
            digests: vec![digest(2)],
            taken_over: true,
            chunks: Vec::new(),
        };
        sender.handle_message(now, held(0, vec![digest(1)])).unwrap();
        sender.handle_message(now, taken_over).unwrap();
        accept(&mut sender, now);
        for (index, of) in [(0, 1), (1, 2)] {
            let offset = check(&mut sender, now, StreamId(1));
            assert_eq!(offset, index * u64::from(BLOCK));
            sender.handle_block_checked(now, StreamId(1), ItemId(1), offset, Ok(digest(of)));
        }
        let saved = |sender: &Sender| {
            let counts = sender.totals().counts;
            (counts.bytes_resumed, counts.bytes_taken_over)
        };
        assert_eq!(saved(&sender), (u64::from(BLOCK), u64::from(BLOCK)));
        sender.handle_message(now, PeerMessage::Done { item: ItemId(1), result }).unwrap();
        assert_eq!(saved(&sender), (0, 0));
    }
}

#[test]
fn block_that_storage_lost_is_taken_back() {
    let now = Instant::now();
    let again = PeerMessage::SendAgain { item: ItemId(1), offset: 0 };
    let mut sender = recovering(now, Some(LARGE));
    accept(&mut sender, now);
    for times in 1..=u64::from(limits::SENDS_PER_BLOCK) {
        assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
        sender.handle_block_sent(Instant::now(), StreamId(0), ItemId(1), 0, Ok((BLOCK, digest(1))));
        sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
        assert_eq!(sender.progress().bytes_done, u64::from(BLOCK));
        sender.handle_message(now, again.clone()).unwrap();
        assert_eq!(sender.progress().bytes_done, 0);
        assert_eq!(sender.totals().faults.blocks_rotten, times);
    }
    assert!(said(&mut sender).contains(&PeerMessage::Abandon { item: ItemId(1) }), "not for ever");
}

/// What an earlier attempt has published ends at once; a receiver that has it without having been
/// able to breaks the protocol.
#[test]
fn items_that_are_there_already_are_not_sent() {
    let now = Instant::now();
    let present = |wanted| PeerMessage::Answer { item: ItemId(1), answer: Answer::Present(digest(7).as_file(wanted)) };
    let blake3 = Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 };
    let none = Digests::NONE;
    is_violation(recovering(now, None).handle_message(now, present(blake3)));
    is_violation(recovering(now, Some(LARGE)).handle_message(now, present(none)));
    let mut sender = recovering(now, Some(LARGE));
    sender.handle_message(now, held(0, vec![digest(1)])).unwrap();
    is_violation(sender.handle_message(now, present(blake3)));
    let mut sender = recovering(now, Some(LARGE));
    sender.handle_message(now, present(blake3)).unwrap();
    let totals = sender.totals();
    assert_eq!((totals.counts.files, totals.counts.files_resumed, totals.counts.bytes_resumed), (1, 1, LARGE));
    assert_eq!(reports(&mut sender), [(b"large".to_vec(), Outcome::Published)]);
    assert_eq!(sender.progress().bytes_done, LARGE);
}

/// The question about the two small files has number 2.
#[test]
fn questions_are_answered_once_and_as_they_were_asked() {
    let now = Instant::now();
    let known = |bundle, items| PeerMessage::Known { bundle, items };
    let all = digest(7).as_file(Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 });
    let mut sender = recovering(now, Some(LARGE));
    let asked = said(&mut sender);
    assert!(
        asked
            .iter()
            .any(|message| matches!(message, PeerMessage::Query { bundle: BundleId(2), items } if items.len() == 2)),
        "{asked:?}"
    );
    assert_eq!(sender.next_job(now, StreamId(0)), Next::Wait(None), "nothing goes before the answer");
    for bundle in [0, 1, 3, u64::MAX] {
        is_violation(sender.handle_message(now, known(BundleId(bundle), Vec::new())));
    }
    for items in [vec![(2, all)], vec![(0, all), (0, all)], vec![(0, FileDigests::default())]] {
        is_violation(recovering(now, Some(LARGE)).handle_message(now, known(BundleId(2), items)));
    }
    sender.handle_message(now, known(BundleId(2), vec![(1, all)])).unwrap();
    assert_eq!(reports(&mut sender), [(b"b".to_vec(), Outcome::Published)]);
    assert_eq!((sender.totals().counts.files_resumed, sender.totals().counts.bytes_resumed), (1, 4));
    is_violation(sender.handle_message(now, known(BundleId(2), Vec::new())));
    let Next::Job(Job::Bundle(rest)) = sender.next_job(now, StreamId(0)) else { panic!("the rest is not sent") };
    assert_eq!((rest.items.len(), &rest.items[0].path[..]), (1, &b"a"[..]));
}

#[test]
fn questions_are_few_and_only_what_is_asked_about_waits() {
    let now = Instant::now();
    let mut sender = recovering(now, Some(LARGE));
    said(&mut sender);
    let mut asked = 1;
    let fingerprint = Some([1; 16]);
    for number in 0..80 * 256 {
        assert!(sender.wants_items() || asked == limits::QUERIES);
        sender.handle_item(now, ScannedItem { fingerprint, ..file(&format!("f{number}"), Some(0)) });
        asked += said(&mut sender).iter().filter(|message| matches!(message, PeerMessage::Query { .. })).count();
    }
    assert_eq!(asked, limits::QUERIES);
    assert!(!sender.wants_items(), "the scan waits, but for the answers");
    sender.handle_message(now, PeerMessage::Known { bundle: BundleId(2), items: Vec::new() }).unwrap();
    assert!(said(&mut sender).iter().any(|message| matches!(message, PeerMessage::Query { .. })));
    assert!(matches!(sender.next_job(now, StreamId(0)), Next::Job(Job::Bundle(_))));
}

#[test]
fn item_comes_again_a_few_times_only() {
    let now = Instant::now();
    let mut sender = sender_with(options(BLOCK), now, Some(LARGE));
    said(&mut sender);
    let mut number = ItemId(1);
    for _ in 0..limits::ITEM_ATTEMPTS {
        sender.handle_message(now, PeerMessage::Answer { item: number, answer: Answer::Accept }).unwrap();
        let lost = PeerMessage::Done { item: number, result: ItemResult::Again(failure()) };
        sender.handle_message(now, lost).unwrap();
        assert_eq!(rescan(&mut sender, now), 1);
        let offered = said(&mut sender);
        let [PeerMessage::Offer(offer)] = &offered[..] else { panic!("{offered:?} instead of an offer") };
        assert!(offer.item > number);
        number = offer.item;
    }
    sender.handle_message(now, PeerMessage::Answer { item: number, answer: Answer::Accept }).unwrap();
    sender.handle_message(now, PeerMessage::Done { item: number, result: ItemResult::Again(failure()) }).unwrap();
    assert_eq!(reports(&mut sender), [(b"large".to_vec(), Outcome::Failed(failure()))]);
    assert_eq!(sender.totals().faults.items_again, u64::from(limits::ITEM_ATTEMPTS));
}

#[test]
fn bundled_item_comes_again_a_few_times_only() {
    let now = Instant::now();
    let mut sender = sender_with(options(BLOCK), now, Some(LARGE));
    let mut bundle = BundleId(2);
    for round in 0..=limits::ITEM_ATTEMPTS {
        let Next::Job(Job::Bundle(job)) = sender.next_job(now, StreamId(0)) else {
            panic!("no bundle in round {round}")
        };
        assert_eq!(job.id >= bundle, round > 0 || job.id == bundle);
        bundle = job.id;
        sender.handle_bundle_sent(Instant::now(), bundle, sent()[..job.items.len()].to_vec());
        let lost = vec![(job.items.len() as u32 - 1, ItemResult::Again(failure()))];
        sender.handle_message(now, bundle_done(bundle, lost)).unwrap();
        let ended = if round == 0 { 1 } else { 0 };
        let last = usize::from(round == limits::ITEM_ATTEMPTS);
        let renewed: Vec<_> = std::iter::from_fn(|| sender.poll_action()).collect();
        let told = renewed.iter().filter(|action| matches!(action, SenderAction::Report(_))).count();
        assert_eq!(told, ended + last, "round {round}");
        for action in renewed {
            if let SenderAction::Rescan { scanned, attempt } = action {
                sender.handle_rescanned(now, &scanned, attempt, Ok(scanned.clone()));
            }
        }
    }
    assert_eq!(sender.totals().counts.files_failed, 1);
}

/// A source that changed while it was read is looked at again, and offered as it is then.
#[test]
fn changed_source_is_looked_at_again() {
    let now = Instant::now();
    let changed = Failure::new(ErrorCode::SourceChanged, Side::Source, "changed");
    let mut sender = sender_with(options(BLOCK), now, Some(LARGE));
    accept(&mut sender, now);
    assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
    sender.handle_block_sent(Instant::now(), StreamId(0), ItemId(1), 0, Ok((BLOCK, digest(1))));
    sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
    sender.abandon(ItemId(1), changed);
    let found = sender.progress().bytes_found;
    sender.handle_message(now, done(ItemResult::Dropped)).unwrap();
    assert_eq!(sender.progress().bytes_done, 0);
    let actions: Vec<_> = std::iter::from_fn(|| sender.poll_action()).collect();
    let before = actions.into_iter().find_map(|action| {
        if let SenderAction::Rescan { scanned, attempt } = action { Some((scanned, attempt)) } else { None }
    });
    let (before, attempt) = before.expect("it is looked at");
    let grown = ScannedItem { size: Some(LARGE + 5), ..before.clone() };
    sender.handle_rescanned(now, &before, attempt, Ok(grown));
    assert_eq!(sender.progress().bytes_found, found + 5);
    let offered = said(&mut sender);
    assert!(matches!(&offered[..], [PeerMessage::Offer(offer)] if offer.size == Some(LARGE + 5)), "{offered:?}");
    // Gone, or something else by now: that is how it ends.
    let kind = ItemKind::Directory;
    sender.handle_rescanned(now, &before, attempt, Ok(ScannedItem { kind, ..before.clone() }));
    assert_eq!(reports(&mut sender).len(), 1);
}

#[test]
fn sender_without_streams_waits_for_others() {
    let now = Instant::now();
    let mut sender = recovering(now, Some(LARGE));
    accept(&mut sender, now);
    assert_eq!(next_block(&mut sender, now, StreamId(0)), 0);
    sender.handle_stream_lost(Instant::now(), StreamId(0));
    sender.handle_stream_lost(Instant::now(), StreamId(1));
    assert_eq!(sender.outcome(), None);
    sender.handle_stream(Instant::now(), StreamId(2));
    assert_eq!(next_block(&mut sender, now, StreamId(2)), 0);
}

/// Blocks of 16 KiB have four chunks each; the last one, of 68, is a short one.
const CHUNKED: u64 = (1 << 20) + 3 * (16 << 10) + 848;

fn told(first: u64, digests: Vec<BlockDigest>, chunks: usize) -> PeerMessage {
    PeerMessage::Held { item: ItemId(1), first, digests, taken_over: true, chunks: vec![7; chunks] }
}

fn patched(sender: &mut Sender, now: Instant) -> (u64, bool) {
    match sender.next_job(now, StreamId(0)) {
        Next::Job(Job::Block(block)) => (block.offset, block.patched),
        other => panic!("{other:?} instead of a block"),
    }
}

#[test]
fn chunks_are_those_of_the_blocks() {
    let now = Instant::now();
    for (blocks, chunks) in [(1, 3), (1, 5), (4, 12), (4, 14), (4, 16)] {
        let mut sender = sender_with(options(16 << 10), now, Some(CHUNKED));
        is_violation(sender.handle_message(now, told(64, vec![digest(1); blocks], chunks)));
    }
    sender_with(options(16 << 10), now, Some(CHUNKED)).handle_message(now, told(64, vec![digest(1); 4], 13)).unwrap();
    // Blocks that are too small, or of a file that is too large, have none.
    is_violation(recovering(now, Some(LARGE)).handle_message(now, told(0, vec![digest(1)], 1)));
}

/// What a block that differs is sent by, and what of it counts as taken over, whatever becomes of it.
#[test]
fn changed_blocks_are_sent_as_patches_once() {
    let now = Instant::now();
    let block = 16_u64 << 10;
    let mut sender = sender_with(options(16 << 10), now, Some(CHUNKED));
    sender.handle_message(now, told(0, vec![digest(1), digest(2)], 8)).unwrap();
    accept(&mut sender, now);
    let checked = |sender: &mut Sender| check(sender, now, StreamId(1));
    assert_eq!((checked(&mut sender), checked(&mut sender)), (0, block));
    sender.handle_block_checked(now, StreamId(1), ItemId(1), 0, Ok(digest(1)));
    sender.handle_block_checked(now, StreamId(1), ItemId(1), block, Ok(digest(9)));
    assert_eq!(sender.totals().counts.bytes_taken_over, block);
    // The first is the same: nothing of it is kept.
    assert!(sender.chunks_of(ItemId(1), 0).is_none());
    assert_eq!(sender.chunks_of(ItemId(1), block), Some((4096, [7; 4].into())));
    assert_eq!(patched(&mut sender, now), (block, true));
    sender.handle_patched(ItemId(1), block, 12_000);
    sender.handle_block_sent(now, StreamId(0), ItemId(1), block, Ok((16 << 10, digest(9))));
    // It came to be something else there: it goes whole, and nothing was saved.
    sender.handle_message(now, PeerMessage::SendAgain { item: ItemId(1), offset: block }).unwrap();
    assert_eq!(patched(&mut sender, now), (block, false));
    sender.handle_block_sent(now, StreamId(0), ItemId(1), block, Ok((16 << 10, digest(9))));
    sender.handle_message(now, landed(vec![(1, block)], Vec::new())).unwrap();
    assert_eq!((sender.totals().counts.bytes_taken_over, sender.progress().bytes_done), (block, 2 * block));
}

#[test]
fn what_a_patch_saved_is_counted_once_it_has_landed() {
    let now = Instant::now();
    let block = 16_u64 << 10;
    let mut sender = sender_with(options(16 << 10), now, Some(CHUNKED));
    sender.handle_message(now, told(0, vec![digest(1)], 4)).unwrap();
    accept(&mut sender, now);
    check(&mut sender, now, StreamId(1));
    sender.handle_block_checked(now, StreamId(1), ItemId(1), 0, Ok(digest(9)));
    assert_eq!(patched(&mut sender, now), (0, true));
    sender.handle_patched(ItemId(1), 0, 12_000);
    // A stream that is lost leaves it to another, as a patch again.
    sender.handle_stream_lost(now, StreamId(0));
    sender.handle_stream(now, StreamId(2));
    let again = match sender.next_job(now, StreamId(2)) {
        Next::Job(Job::Block(block)) => (block.offset, block.patched),
        other => panic!("{other:?} instead of a block"),
    };
    assert_eq!(again, (0, true));
    sender.handle_patched(ItemId(1), 0, 12_000);
    sender.handle_block_sent(now, StreamId(2), ItemId(1), 0, Ok((16 << 10, digest(9))));
    assert_eq!(sender.totals().counts.bytes_taken_over, 0);
    sender.handle_message(now, landed(vec![(1, 0)], Vec::new())).unwrap();
    assert_eq!((sender.totals().counts.bytes_taken_over, sender.progress().bytes_done), (12_000, block));
    // Storage has lost it: nothing was saved.
    sender.handle_message(now, PeerMessage::SendAgain { item: ItemId(1), offset: 0 }).unwrap();
    assert_eq!((sender.totals().counts.bytes_taken_over, sender.progress().bytes_done), (0, 0));
    // What failed saved nothing either.
    sender.handle_message(now, done(ItemResult::Failed(failure()))).unwrap();
    assert_eq!(sender.totals().counts.bytes_taken_over, 0);
}

/// A receiver that tells of more chunks than are kept breaks no rule: blocks beyond are sent whole.
#[test]
fn few_chunks_are_kept() {
    let now = Instant::now();
    let (block, each) = (64_u64 << 20, 8);
    let mut sender = sender_with(options(64 << 20), now, Some(1 << 46));
    let blocks = limits::HELD_BLOCKS;
    let most = limits::HELD_CHUNKS / (blocks * each);
    for number in 0..=most {
        let first = (number * blocks) as u64;
        sender.handle_message(now, told(first, vec![digest(1); blocks], blocks * each)).unwrap();
    }
    let kept = |number: usize| sender.chunks_of(ItemId(1), (number * blocks) as u64 * block).is_some();
    assert!(kept(0) && kept(most - 1) && !kept(most));
}
