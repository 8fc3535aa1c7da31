//! Both sides compared before anything is sent: what each machine makes of it, and of a peer that answers otherwise.
#![cfg(test)]

use std::time::{Duration, Instant};

use super::sender::{LARGE, file};
use super::*;
use crate::attributes::OtherAttributes;
use crate::ids::StreamId;
use crate::judgment::{ItemDifference, Judgment, LeftBecause};
use crate::limits;
use crate::report::Outcome;
use crate::request::{Compare, Renames};
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::orders::options;
use crate::transfer::receiver::{Receiver, ReceiverConfig};
use crate::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig, SentItem};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;
use crate::wire::peer::{AskedIndex, AskedItem, Question};

const STREAM: StreamId = StreamId(0);

fn comparing(compare: Compare, tells_names: bool) -> Sender {
    let options = TransferOptions { compare, tells_names, ..options(BLOCK) };
    let mut sender =
        Sender::new(SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT });
    sender.handle_stream(start(), STREAM);
    sender
}

/// What the sender has said, and how its items ended.
fn told(sender: &mut Sender) -> (Vec<PeerMessage>, Vec<(Vec<u8>, Outcome)>) {
    let (mut said, mut ended) = (Vec::new(), Vec::new());
    while let Some(action) = sender.poll_action() {
        match action {
            SenderAction::Send(message) => said.push(message),
            SenderAction::Report(report) => ended.push((report.path, report.outcome)),
            _ => {}
        }
    }
    (said, ended)
}

fn questions(said: &[PeerMessage]) -> Vec<(BundleId, Question)> {
    let question = |message: &PeerMessage| match message {
        PeerMessage::Compare { number, question } => Some((*number, question.clone())),
        _ => None,
    };
    said.iter().filter_map(question).collect()
}

fn answer(sender: &mut Sender, number: BundleId, judgments: Vec<Judgment>) -> Result<(), ProtocolError> {
    sender.handle_message(start(), PeerMessage::Compared { number, judgments })
}

/// Nothing is made in a dry run, and the destination itself gets no attributes.
#[test]
fn dry_run_asks_about_links_and_directories_where_changes_are_told() {
    for item_changes in [true, false] {
        let options = TransferOptions { plan_only: true, item_changes, ..options(BLOCK) };
        let config = SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT };
        let mut sender = Sender::new(config);
        for name in ["", "d"] {
            sender.handle_item(start(), ScannedItem { kind: ItemKind::Directory, ..file(name, None) });
        }
        let link = ScannedItem { kind: ItemKind::Symlink, leads_to: b"to".to_vec(), ..file("d/l", None) };
        sender.handle_item(start(), link);
        sender.handle_scan_complete(start());
        let (said, _) = told(&mut sender);
        let [(number, question)] = &questions(&said)[..] else { panic!("{said:?}") };
        let paths: Vec<&[u8]> = question.items.iter().map(|item| &item.path[..]).collect();
        assert_eq!(paths, if item_changes { vec![&b""[..], b"d", b"d/l"] } else { vec![&b"d/l"[..]] });
        assert_eq!(question.items.last().unwrap().leads_to, b"to");
        let judgments = [Judgment::New, Judgment::Same, Judgment::New];
        let judgments = judgments[judgments.len() - paths.len()..].to_vec();
        answer(&mut sender, *number, judgments).unwrap();
        let (said, _) = told(&mut sender);
        assert_eq!(said, [PeerMessage::Finish]);
        let counts = sender.totals().counts;
        assert_eq!((counts.directories, counts.symlinks, counts.files_same), (2, 1, 0));
    }
}

#[test]
fn only_what_differs_is_sent() {
    let mut sender = comparing(Compare::SizeAndTime, false);
    for (name, size) in [("same", 3), ("left", 4), ("new", 5), ("changed", 6), ("large", LARGE)] {
        sender.handle_item(start(), file(name, Some(size)));
    }
    // Neither a link nor what has no size can be compared.
    sender.handle_item(start(), ScannedItem { kind: ItemKind::Symlink, ..file("link", None) });
    sender.handle_item(start(), file("pipe", None));
    sender.handle_scan_complete(start());
    let (said, _) = told(&mut sender);
    let [(number, question)] = &questions(&said)[..] else { panic!("{said:?}") };
    assert_eq!(question.items.len(), 5);
    assert!(question.names.is_empty() && question.listed.is_empty(), "nobody wants to know");
    let offered = |said: &[PeerMessage]| {
        said.iter()
            .filter_map(|one| if let PeerMessage::Offer(offer) = one { Some(offer.path.clone()) } else { None })
            .collect::<Vec<_>>()
    };
    assert_eq!(offered(&said), [b"pipe".to_vec()], "what is asked about waits for its answer");
    let differs = Judgment::Differs(ItemDifference { size: true, ..ItemDifference::default() });
    let judgments = vec![Judgment::Same, Judgment::Left(LeftBecause::Newer), Judgment::New, differs, differs];
    answer(&mut sender, *number, judgments).unwrap();
    let (said, ended) = told(&mut sender);
    assert_eq!(offered(&said), [b"large".to_vec()]);
    assert_eq!(ended, [(b"same".to_vec(), Outcome::Same), (b"left".to_vec(), Outcome::Kept)]);
    let mut sent = Vec::new();
    while let Next::Job(Job::Bundle(bundle)) = sender.next_job(start(), STREAM) {
        sent.extend(bundle.items.iter().map(|item| item.path.clone()));
    }
    sent.sort();
    assert_eq!(sent, [b"changed".to_vec(), b"link".to_vec(), b"new".to_vec()]);
    let counts = sender.totals().counts;
    assert_eq!((counts.files_same, counts.bytes_same, counts.files_kept), (1, 3, 1));
}

/// Names are told before their directory is said to be listed, and the word to delete comes before directories get
/// their times: with how many items failed, of which FIFOs are none.
#[test]
fn names_are_told_and_deletion_comes_before_directories() {
    let mut sender = comparing(Compare::SizeAndTime, true);
    sender.handle_item(start(), file("f", Some(3)));
    sender.handle_item(start(), ScannedItem { kind: ItemKind::Special, ..file("fifo", None) });
    sender.handle_scan_failure(start(), &file("unread", None), failure());
    sender.handle_listed(start(), 0, b"", true);
    sender.handle_scan_complete(start());
    let (said, _) = told(&mut sender);
    let [(number, question)] = &questions(&said)[..] else { panic!("{said:?}") };
    assert_eq!(question.items[0].path, b"f");
    assert_eq!(question.names, [b"fifo".to_vec(), b"unread".to_vec()]);
    assert_eq!(question.listed, [(Vec::new(), true)]);
    assert!(!said.iter().any(|message| matches!(message, PeerMessage::Delete { .. })));
    answer(&mut sender, *number, vec![Judgment::Same]).unwrap();
    assert_eq!(told(&mut sender).0, [PeerMessage::Delete { failed: 1 }, PeerMessage::Finish]);
}

#[test]
fn slow_scan_keeps_no_question_back() {
    let mut sender = comparing(Compare::Size, false);
    assert_eq!(sender.next_deadline(), None);
    sender.handle_item(start(), file("f", Some(3)));
    assert_eq!(questions(&told(&mut sender).0).len(), 0);
    let due = sender.next_deadline().unwrap();
    assert!(due > start() && due < start() + Duration::from_millis(50));
    sender.handle_time(due);
    assert_eq!(questions(&told(&mut sender).0).len(), 1);
    assert_eq!(sender.next_deadline(), None);
}

/// Of a file whose chunks are told nothing is read to compare, and nothing sent before they are known. One that could
/// not be made of them goes again whole.
#[test]
fn small_file_waits_for_its_chunks_and_goes_again_without_them() {
    let mut sender = comparing(Compare::Size, false);
    sender.handle_item(start(), file("f", Some(20_000)));
    sender.handle_scan_complete(start());
    let number = questions(&told(&mut sender).0)[0].0;
    let difference = ItemDifference { size: true, ..ItemDifference::default() };
    answer(&mut sender, number, vec![Judgment::Chunked(difference)]).unwrap();
    assert!(sender.poll_action().is_none());
    assert_eq!(sender.next_job(start(), STREAM), Next::Wait(None));
    let asked = AskedIndex { number, index: 0 };
    let chunked = PeerMessage::ContentCompared { asked, same: false, chunks: vec![1, 2] };
    sender.handle_message(start(), chunked.clone()).unwrap();
    let mut sent = |chunks: Option<&[u32]>| {
        let Next::Job(Job::Bundle(bundle)) = sender.next_job(start(), STREAM) else { panic!("nothing is sent") };
        assert_eq!(bundle.items[0].chunks.as_deref(), chunks);
        assert_eq!(bundle.items[0].judgment, Some(Judgment::Differs(difference)));
        let item = SentItem { size: 20_000, taken_over: 7, digest: BlockDigest::default(), failure: None };
        sender.handle_bundle_sent(start(), bundle.id, vec![item]);
        let exceptions = if chunks.is_some() { vec![(0, ItemResult::Dropped)] } else { vec![] };
        sender.handle_message(start(), PeerMessage::BundleDone { bundle: bundle.id, exceptions }).unwrap();
    };
    sent(Some(&[1, 2]));
    sent(None);
    let ended: Vec<Outcome> = told(&mut sender).1.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(ended, [Outcome::Published]);
    is_violation(sender.handle_message(start(), chunked));
}

#[test]
fn content_of_one_size_is_read_at_both_sides() {
    for (same, read, outcome) in [
        (true, Ok([5; 32]), Some(Outcome::Same)),
        (false, Ok([5; 32]), None),
        (false, Err(failure()), Some(Outcome::Failed(failure()))),
    ] {
        let mut sender = comparing(Compare::Content, false);
        sender.handle_item(start(), file("f", Some(3)));
        sender.handle_scan_complete(start());
        let number = questions(&told(&mut sender).0)[0].0;
        answer(&mut sender, number, vec![Judgment::Undecided]).unwrap();
        let asked = AskedIndex { number, index: 0 };
        assert!(matches!(sender.poll_action(), Some(SenderAction::ReadContent { asked: of, .. }) if of == asked));
        assert_eq!(sender.next_job(start(), STREAM), Next::Wait(None), "nothing is sent before it is known");
        let digest = read.clone().ok();
        sender.handle_content_read(start(), asked, read);
        assert_eq!(told(&mut sender).0, [PeerMessage::Content { asked, digest }]);
        sender.handle_message(start(), PeerMessage::ContentCompared { asked, same, chunks: vec![] }).unwrap();
        let ended: Vec<Outcome> = told(&mut sender).1.into_iter().map(|(_, outcome)| outcome).collect();
        assert_eq!(ended, outcome.clone().into_iter().collect::<Vec<_>>());
        let sends = matches!(sender.next_job(start(), STREAM), Next::Job(Job::Bundle(_)));
        assert_eq!(sends, outcome.is_none());
        is_violation(sender.handle_message(start(), PeerMessage::ContentCompared { asked, same, chunks: vec![] }));
    }
}

/// Of what has changed since it was listed nothing is the same: it is sent, and listed anew where reading it fails.
#[test]
fn source_that_changes_before_it_is_compared_is_sent() {
    let changed = || Failure::new(ErrorCode::SourceChanged, Side::Source, "changed after it was listed");
    for (plan_only, same) in [(false, false), (false, true), (true, false)] {
        let options = TransferOptions { compare: Compare::Content, plan_only, ..options(BLOCK) };
        let config = SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT };
        let mut sender = Sender::new(config);
        sender.handle_stream(start(), STREAM);
        sender.handle_item(start(), file("f", Some(3)));
        sender.handle_scan_complete(start());
        let number = questions(&told(&mut sender).0)[0].0;
        answer(&mut sender, number, vec![Judgment::Undecided]).unwrap();
        let asked = AskedIndex { number, index: 0 };
        sender.handle_content_read(start(), asked, Err(changed()));
        assert_eq!(told(&mut sender).0, [PeerMessage::Content { asked, digest: None }]);
        sender.handle_message(start(), PeerMessage::ContentCompared { asked, same, chunks: vec![] }).unwrap();
        let ended: Vec<Outcome> = told(&mut sender).1.into_iter().map(|(_, outcome)| outcome).collect();
        if plan_only {
            assert_eq!(ended, [Outcome::Planned]);
            continue;
        }
        assert!(ended.is_empty(), "{ended:?}");
        let Next::Job(Job::Bundle(bundle)) = sender.next_job(start(), STREAM) else { panic!("nothing is sent") };
        let item = SentItem { size: 0, taken_over: 0, digest: BlockDigest::default(), failure: Some(changed()) };
        sender.handle_bundle_sent(start(), bundle.id, vec![item]);
        let exceptions = vec![(0, ItemResult::Dropped)];
        sender.handle_message(start(), PeerMessage::BundleDone { bundle: bundle.id, exceptions }).unwrap();
        let looks = std::iter::from_fn(|| sender.poll_action());
        let looks = looks.filter(|action| matches!(action, SenderAction::Rescan { .. })).count();
        assert_eq!((looks, sender.totals().counts.files_failed), (1, 0));
    }
}

/// Samples do not tell which of two files of one size and time the receiver has, and it may ask about one of them long
/// before the other is found: by then all names have been told. Names of one file are not two.
#[test]
fn samples_are_not_told_of_files_of_one_size_and_time() {
    let options = TransferOptions { renames: Renames::Quick, tells_names: true, ..options(BLOCK) };
    let config = SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT };
    let mut sender = Sender::new(config);
    sender.handle_stream(start(), STREAM);
    let found = |name: &str, inode, nanos| ScannedItem {
        attributes: Attributes::new(0o600, Time::new(1, nanos)),
        file: Some((1, inode)),
        ..file(name, Some(3))
    };
    let items = [("one", 1, 1), ("name", 2, 2), ("other name", 2, 2), ("whole second", 3, 0), ("two", 4, 1)];
    let items = items.map(|(name, inode, nanos)| found(name, inode, nanos));
    items.iter().for_each(|item| sender.handle_named(start(), item));
    sender.handle_names_complete(start());
    let number = questions(&told(&mut sender).0)[0].0;
    answer(&mut sender, number, Vec::new()).unwrap();
    assert!(sender.is_past_names());
    let [one, others @ ..] = items;
    let mut sampled = |items: Vec<ScannedItem>| {
        let judgments = vec![Judgment::Sampled; items.len()];
        items.into_iter().for_each(|item| sender.handle_item(start(), item));
        let due = sender.next_deadline().unwrap();
        sender.handle_time(due);
        let number = questions(&told(&mut sender).0)[0].0;
        answer(&mut sender, number, judgments).unwrap();
        let (mut read, mut untold) = (Vec::new(), Vec::new());
        while let Some(action) = sender.poll_action() {
            match action {
                SenderAction::ReadContent { asked, samples: true, .. } => read.push(asked.index),
                SenderAction::Send(PeerMessage::Content { asked, digest: None }) => untold.push(asked.index),
                other => panic!("{other:?}"),
            }
        }
        for index in 0..read.len() + untold.len() {
            let asked = AskedIndex { number, index: index as u32 };
            let compared = PeerMessage::ContentCompared { asked, same: read.contains(&asked.index), chunks: vec![] };
            sender.handle_message(start(), compared).unwrap();
        }
        (read, untold)
    };
    assert_eq!(sampled(vec![one]), (vec![], vec![0]));
    assert_eq!(sampled(others.to_vec()), (vec![0, 1], vec![2, 3]));
    sender.handle_scan_complete(start());
    let mut sent = Vec::new();
    while let Next::Job(Job::Bundle(bundle)) = sender.next_job(start(), STREAM) {
        sent.extend(bundle.items.iter().map(|item| item.path.clone()));
    }
    sent.sort();
    assert_eq!(sent, [&b"one"[..], b"two", b"whole second"]);
}

#[test]
fn answers_that_nobody_asked_for() {
    let asked = || {
        let mut sender = comparing(Compare::SizeAndTime, false);
        sender.handle_item(start(), file("f", Some(3)));
        sender.handle_scan_complete(start());
        let number = questions(&told(&mut sender).0)[0].0;
        (sender, number)
    };
    let (mut sender, number) = asked();
    is_violation(answer(&mut sender, BundleId(number.0 + 1), vec![Judgment::Same]));
    for judgments in [Vec::new(), vec![Judgment::Same; 2]] {
        let (mut sender, number) = asked();
        is_violation(answer(&mut sender, number, judgments));
    }
    let (mut sender, number) = asked();
    answer(&mut sender, number, vec![Judgment::Same]).unwrap();
    let again = sender.handle_message(start(), PeerMessage::Compared { number, judgments: vec![Judgment::Same] });
    // It has finished by then, or it is refused.
    assert!(again.is_err(), "{again:?}");
    for message in [
        PeerMessage::Compare { number, question: Question::default() },
        PeerMessage::Delete { failed: 0 },
        PeerMessage::Content { asked: AskedIndex { number, index: 0 }, digest: None },
        PeerMessage::StillThere { number, there: Vec::new() },
        PeerMessage::AskStillThere { number, paths: Vec::new() },
    ] {
        let (mut sender, _) = asked();
        is_violation(sender.handle_message(Instant::now(), message));
    }
}

/// Before the receiver deletes, it may ask what the source has by now: when all has ended, and one question after the
/// other.
#[test]
fn what_is_to_be_deleted_is_asked_about_one_question_after_the_other() {
    let mut sender = comparing(Compare::SizeAndTime, true);
    sender.handle_listed(start(), 0, b"", true);
    let ask =
        |number| PeerMessage::AskStillThere { number: BundleId(number), paths: vec![b"a".to_vec(), b"b".to_vec()] };
    is_violation(sender.handle_message(start(), ask(1)));
    let mut sender = comparing(Compare::SizeAndTime, true);
    sender.handle_scan_complete(start());
    assert_eq!(told(&mut sender).0, [PeerMessage::Delete { failed: 0 }, PeerMessage::Finish]);
    for number in 1..=2 {
        sender.handle_message(start(), ask(number)).unwrap();
        let Some(SenderAction::LookUp { number: asked, paths }) = sender.poll_action() else { panic!("it looks up") };
        assert_eq!((asked, paths.len()), (BundleId(number), 2));
        sender.handle_looked_up(start(), asked, vec![true, false]);
        let there = vec![true, false];
        assert_eq!(told(&mut sender).0, [PeerMessage::StillThere { number: asked, there }]);
    }
    sender.handle_message(start(), ask(3)).unwrap();
    is_violation(sender.handle_message(start(), ask(4)));
}

/// Names alone are told; then the receiver deletes, and says so once; then items are sent, and no name is told again.
#[test]
fn deletion_comes_first_where_that_is_asked_for() {
    let options = TransferOptions { deletes_first: true, tells_names: true, ..options(BLOCK) };
    let new =
        || Sender::new(SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT });
    is_violation(new().handle_message(start(), PeerMessage::Deleted));
    let mut sender = new();
    let one = file("f", Some(3));
    sender.handle_left_out(start(), &one);
    sender.handle_unlisted(start(), &file("d", None));
    sender.handle_listed(start(), 0, b"", true);
    sender.handle_names_complete(start());
    let said = told(&mut sender).0;
    let [PeerMessage::Compare { number, question }] = &said[..] else { panic!("{said:?}") };
    assert_eq!((question.names.len(), question.items.len(), question.listed.len()), (2, 0, 1));
    is_violation(new().handle_message(start(), PeerMessage::Deleted));
    sender.handle_message(start(), PeerMessage::Compared { number: *number, judgments: Vec::new() }).unwrap();
    assert_eq!(told(&mut sender).0, [PeerMessage::Delete { failed: 1 }]);
    assert!(!sender.is_past_names());
    let ask = |number| PeerMessage::AskStillThere { number: BundleId(number), paths: vec![b"only".to_vec()] };
    sender.handle_message(start(), ask(1)).unwrap();
    is_violation(sender.handle_message(start(), PeerMessage::Deleted));
    let [SenderAction::LookUp { number, .. }] = &std::iter::from_fn(|| sender.poll_action()).collect::<Vec<_>>()[..]
    else {
        panic!("it looks up")
    };
    sender.handle_looked_up(start(), *number, vec![false]);
    sender.handle_message(start(), PeerMessage::Deleted).unwrap();
    is_violation(sender.handle_message(start(), ask(2)));
    assert!(sender.is_past_names());
    is_violation(sender.handle_message(start(), PeerMessage::Deleted));
    sender.handle_item(start(), one);
    sender.handle_listed(start(), 0, b"", true);
    let said = told(&mut sender).0;
    assert!(!said.iter().any(|message| matches!(message, PeerMessage::Compare { .. } | PeerMessage::Delete { .. })));
}

/// Only what was synced is gone from the source, and only once.
#[test]
fn sources_are_deleted_when_all_is_durable() {
    let options = TransferOptions { removes_sources: true, plan_only: false, ..options(BLOCK) };
    let finished = |durable| {
        let config = SenderConfig { options, targets: vec![Vec::new()], known: false, tuning: Tuning::DEFAULT };
        let mut sender = Sender::new(config);
        sender.handle_scan_complete(start());
        sender.handle_message(start(), PeerMessage::Finished { durable }).unwrap();
        let removes =
            std::iter::from_fn(|| sender.poll_action()).any(|action| matches!(action, SenderAction::RemoveSources));
        (sender, removes)
    };
    let (sender, removes) = finished(false);
    assert!(!removes && sender.outcome() == Some(Ok(())));
    let (mut sender, removes) = finished(true);
    assert!(removes && sender.outcome().is_none());
    sender.handle_source_kept(&file("f", Some(3)), failure());
    sender.handle_sources_removed(2);
    assert_eq!(sender.outcome(), Some(Ok(())));
    assert_eq!((sender.totals().counts.sources_removed, sender.totals().counts.files_failed), (2, 1));
    // The user may stop it meanwhile.
    let (mut sender, _) = finished(true);
    sender.fail(failure());
    sender.handle_sources_removed(2);
    assert!(sender.outcome().is_some_and(|outcome| outcome.is_err()) && sender.totals().counts.sources_removed == 0);
}

#[test]
fn answer_about_what_is_to_be_deleted_is_of_the_open_question() {
    let asking = || {
        let options = TransferOptions { tells_names: true, ..options(BLOCK) };
        let mut receiver = Receiver::new(ReceiverConfig { options, checkpoints: false, tuning: Tuning::DEFAULT });
        receiver.handle_message(start(), PeerMessage::Delete { failed: 0 }).unwrap();
        receiver.handle_message(start(), PeerMessage::Finish).unwrap();
        receiver
    };
    let answer = |number, there: &[bool]| PeerMessage::StillThere { number: BundleId(number), there: there.to_vec() };
    is_violation(asking().handle_message(start(), answer(1, &[])));
    for wrong in [answer(2, &[true]), answer(0, &[true]), answer(1, &[]), answer(1, &[true, true])] {
        let mut receiver = asking();
        receiver.ask_still_there(vec![b"a".to_vec()]);
        is_violation(receiver.handle_message(start(), wrong));
    }
    let mut receiver = asking();
    receiver.ask_still_there(vec![b"a".to_vec()]);
    assert_eq!(receiver.take_still_there(), None);
    receiver.handle_message(start(), answer(1, &[true])).unwrap();
    assert_eq!(receiver.take_still_there(), Some(vec![true]));
    is_violation(receiver.handle_message(start(), answer(1, &[true])));
}

/// Where something is written, only files are compared before: what is told of others is told when it is done.
#[test]
fn links_and_directories_are_asked_about_in_dry_runs_alone() {
    let refused = |kind, (plan_only, item_changes)| {
        let options = TransferOptions { compare: Compare::Size, plan_only, item_changes, ..options(BLOCK) };
        let mut receiver = Receiver::new(ReceiverConfig { options, checkpoints: false, tuning: Tuning::DEFAULT });
        let (path, leads_to) = (b"a".to_vec(), Vec::new());
        let others = OtherAttributes::default();
        let items =
            vec![AskedItem { path, kind, size: 0, mtime: None, mode: 0o755, others, leads_to, hard_link: None }];
        let question = Question { items, ..Question::default() };
        receiver.handle_message(start(), PeerMessage::Compare { number: BundleId(1), question }).is_err()
    };
    let modes = [(false, false), (false, true), (true, false), (true, true)];
    assert_eq!(modes.map(|mode| refused(ItemKind::File, mode)), [false; 4]);
    assert_eq!(modes.map(|mode| refused(ItemKind::Symlink, mode)), [true, true, false, false]);
    assert_eq!(modes.map(|mode| refused(ItemKind::Directory, mode)), [true, true, true, false]);
    assert_eq!(modes.map(|mode| refused(ItemKind::Special, mode)), [true, true, false, false]);
}

/// A sender that has everything compared and never tells what its files hold is not remembered without bound.
#[test]
fn files_that_wait_for_what_their_source_holds_are_bounded() {
    let options = TransferOptions { compare: Compare::Content, ..options(BLOCK) };
    let mut receiver = Receiver::new(ReceiverConfig { options, checkpoints: false, tuning: Tuning::DEFAULT });
    let (leads_to, others, kind) = (Vec::new(), OtherAttributes::default(), ItemKind::File);
    let item =
        AskedItem { path: b"a".to_vec(), kind, size: 1, mtime: None, mode: 0, others, leads_to, hard_link: None };
    let items = vec![item; limits::ASKED_ITEMS as usize];
    let judgments = vec![Judgment::Undecided; items.len()];
    for number in (1..).map(BundleId).take(limits::COMPARED_ITEMS / items.len()) {
        let question = Question { items: items.clone(), ..Question::default() };
        receiver.handle_message(start(), PeerMessage::Compare { number, question }).unwrap();
        receiver.handle_compared(start(), number, judgments.clone());
    }
    let question = Question { items: items[..1].to_vec(), ..Question::default() };
    is_violation(receiver.handle_message(start(), PeerMessage::Compare { number: BundleId(0), question }));
}
