//! Names of one file: each ends once, becomes a link to what is there and to nothing else, and nothing is sent twice
//! that could be linked. Any of them may fail, stay as it was, or be another file by the time it is read.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use super::sender::file;
use super::*;
use crate::attributes::{AttributeKind, KeptAttributes};
use crate::ids::StreamId;
use crate::judgment::{ItemDifference, LeftBecause};
use crate::report::Outcome;
use crate::request::Compare;
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::orders::options;
use crate::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig, SentItem};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;

/// What the receiver does with what comes, by chance, and what stands there by that.
struct Model {
    rng: Rng,
    /// Of a thousand items, so many do not get through at once.
    faults: u64,
    sender: Sender,
    /// What has a name at the destination: a file, and its time.
    standing: BTreeMap<Vec<u8>, Content>,
    /// How often each file was sent whole to each of the two file systems of the destination.
    sent: BTreeMap<(Content, u8), u32>,
    linked: u64,
    ended: BTreeMap<Vec<u8>, Outcome>,
    last_inode: u64,
}

/// A file as it was when it had this time.
type Content = ((u64, u64), Option<Time>);

fn content(item: &ScannedItem) -> Content {
    (item.file.unwrap(), item.attributes.mtime)
}

/// The file system that a name is on.
fn file_system(path: &[u8]) -> u8 {
    path[0]
}

fn kept_links(compare: Compare) -> TransferOptions {
    let kept = KeptAttributes { hard_links: true, ..KeptAttributes::NONE };
    TransferOptions { kept, compare, item_events: true, ..options(BLOCK) }
}

impl Model {
    fn new(seed: u64, faults: u64, compare: Compare) -> Self {
        let config = SenderConfig {
            options: kept_links(compare),
            targets: vec![Vec::new()],
            known: false,
            tuning: Tuning::DEFAULT,
        };
        let mut sender = Sender::new(config);
        sender.handle_stream(start(), StreamId(0));
        Self {
            rng: Rng::new(seed),
            faults,
            sender,
            standing: BTreeMap::new(),
            sent: BTreeMap::new(),
            linked: 0,
            ended: BTreeMap::new(),
            last_inode: 1000,
        }
    }

    /// Names of so many files in any order, on one file system or two; all that were made.
    fn scan(&mut self, files: u64, systems: &[u8]) -> Vec<ScannedItem> {
        let mut items = Vec::new();
        for inode in 0..files {
            let names = 1 + self.rng.below(6);
            let size = if self.rng.chance(100) { 3 << 20 } else { 5 };
            for number in 0..names {
                let system = char::from(systems[self.rng.below(systems.len() as u64) as usize]);
                let item = file(&format!("{system}{inode}-{number}"), Some(size));
                // Some of its names are nowhere that is copied.
                let names = names + u64::from(self.rng.chance(300));
                items.push(ScannedItem { names, file: Some((1, inode)), ..item });
            }
        }
        for at in (1..items.len()).rev() {
            items.swap(at, self.rng.below(at as u64 + 1) as usize);
        }
        items
    }

    fn is_faulty(&mut self) -> bool {
        self.rng.chance(self.faults)
    }

    /// What becomes of an item that came whole.
    fn written(&mut self, item: &ScannedItem) -> ItemResult {
        if self.is_faulty() {
            let results = [ItemResult::Kept, ItemResult::Failed(failure()), ItemResult::Again(failure())];
            return results[self.rng.below(3) as usize].clone();
        }
        let (file, system) = (content(item), file_system(&item.path));
        let result = match &item.other_names {
            None => {
                *self.sent.entry((file, system)).or_default() += 1;
                ItemResult::Published
            }
            Some(names) => {
                let stands = |path: &&Vec<u8>| self.standing.get(*path) == Some(&file);
                assert!(names.paths.iter().all(|path| stands(&path)), "{item:?}: a link to what is not its file");
                match names.paths.iter().any(|path| file_system(path) == system) {
                    true => {
                        self.linked += 1;
                        ItemResult::Published
                    }
                    false => ItemResult::Again(Failure::new(ErrorCode::Unsupported, Side::Destination, "no link")),
                }
            }
        };
        if result == ItemResult::Published {
            self.standing.insert(item.path.clone(), file);
        }
        result
    }

    /// An item as it is when it is looked at again.
    fn rescanned(&mut self, scanned: &ScannedItem) -> Result<ScannedItem, Failure> {
        match self.rng.below(5) {
            0 => Err(failure()),
            1 => {
                self.last_inode += 1;
                Ok(ScannedItem { file: Some((1, self.last_inode)), names: 1 + self.rng.below(2), ..scanned.clone() })
            }
            2 => Ok(ScannedItem { names: 1, ..scanned.clone() }),
            3 => Ok(at_time(scanned.clone(), 7)),
            _ => Ok(scanned.clone()),
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.sender.poll_action() {
            match action {
                SenderAction::Report(report) => {
                    let earlier = self.ended.insert(report.path.clone(), report.outcome.clone());
                    assert_eq!(earlier, None, "{report:?} ended twice");
                }
                SenderAction::Rescan { scanned, attempt } => {
                    let found = self.rescanned(&scanned);
                    self.sender.handle_rescanned(start(), &scanned, attempt, found);
                }
                SenderAction::Send(PeerMessage::Offer(offer)) => {
                    let scanned = self.sender.scanned(offer.item).unwrap().clone();
                    // As if an earlier session had brought it.
                    let answer = match self.written(&scanned) {
                        ItemResult::Published => Answer::Present(digests_of()),
                        ItemResult::Kept => Answer::Keep,
                        _ => Answer::Refuse(failure()),
                    };
                    let answered = PeerMessage::Answer { item: offer.item, answer };
                    self.sender.handle_message(start(), answered).unwrap();
                }
                SenderAction::Send(PeerMessage::Compare { number, question }) => {
                    let judge = |model: &mut Self, item: &AskedItem| {
                        assert_eq!(item.hard_link, None, "links are compared where they are made");
                        match model.rng.below(8) {
                            0 => Judgment::Left(LeftBecause::Exists),
                            1 | 2 => Judgment::Differs(ItemDifference::default()),
                            3 if model.standing.contains_key(&item.path) => Judgment::Same,
                            _ => Judgment::New,
                        }
                    };
                    let judgments = question.items.iter().map(|item| judge(self, item)).collect();
                    let compared = PeerMessage::Compared { number, judgments };
                    self.sender.handle_message(start(), compared).unwrap();
                }
                SenderAction::Send(PeerMessage::Finish | PeerMessage::FinishOncePublished { .. }) => {
                    self.sender.handle_message(start(), PeerMessage::Finished { durable: true }).unwrap();
                }
                _ => {}
            }
        }
    }

    /// Sends a bundle; false when there is none.
    fn send(&mut self) -> bool {
        // What is being filled waits a little for more.
        let later = start() + std::time::Duration::from_secs(1);
        let Next::Job(Job::Bundle(bundle)) = self.sender.next_job(later, StreamId(0)) else { return false };
        let mut exceptions = Vec::new();
        let mut sent = Vec::new();
        for (index, item) in (0..).zip(&bundle.items) {
            let changed = item.other_names.is_none() && self.is_faulty();
            let failed = changed.then(|| Failure::new(ErrorCode::SourceChanged, Side::Source, "another"));
            let result = if changed { ItemResult::Dropped } else { self.written(item) };
            if result != ItemResult::Published {
                exceptions.push((index, result));
            }
            sent.push(SentItem { size: 5, taken_over: 0, digest: BlockDigest::default(), failure: failed });
        }
        self.sender.handle_bundle_sent(start(), bundle.id, sent);
        let done = PeerMessage::BundleDone { bundle: bundle.id, exceptions };
        self.sender.handle_message(start(), done).unwrap();
        true
    }

    fn run(&mut self, items: &[ScannedItem]) {
        for item in items {
            self.sender.handle_item(start(), item.clone());
            while self.rng.chance(200) && self.send() {
                self.act();
            }
        }
        self.sender.handle_scan_complete(start());
        let mut idle = 0;
        while idle < 4 {
            self.act();
            self.sender.handle_time(start() + std::time::Duration::from_secs(1));
            self.act();
            if self.sender.outcome().is_some() {
                return;
            }
            idle = if self.send() { 0 } else { idle + 1 };
        }
        panic!("names wait for ever: {:?}", self.sender);
    }
}

/// The same name of a file that has been changed, or of another that has its number by now.
fn at_time(mut item: ScannedItem, seconds: i64) -> ScannedItem {
    item.attributes.mtime = Some(Time::new(seconds, 0));
    item
}

fn digests_of() -> FileDigests {
    let digest = BlockDigest { main: [7; 32], ..BlockDigest::default() };
    digest.as_file(options(BLOCK).digests)
}

fn run(seed: u64, faults: u64, systems: &[u8], compare: Compare) -> (Model, Vec<ScannedItem>) {
    run_changing(seed, faults, systems, compare, 0)
}

/// Of a thousand names so many are found when their file has been changed, or is another.
fn run_changing(seed: u64, faults: u64, systems: &[u8], compare: Compare, changes: u64) -> (Model, Vec<ScannedItem>) {
    let mut model = Model::new(seed, faults, compare);
    let mut items = model.scan(1 + seed % 40, systems);
    for item in &mut items {
        if model.rng.chance(changes) {
            *item = at_time(item.clone(), 1 + model.rng.below(2) as i64);
        }
    }
    model.run(&items);
    assert_eq!(model.sender.outcome(), Some(Ok(())));
    let named: BTreeSet<_> = items.iter().map(|item| item.path.clone()).collect();
    assert_eq!(model.ended.keys().cloned().collect::<BTreeSet<_>>(), named, "every name ends");
    let counts = model.sender.totals().counts;
    let sent: u64 = model.sent.values().map(|times| u64::from(*times)).sum();
    if compare == Compare::Nothing {
        let published = model.ended.values().filter(|outcome| **outcome == Outcome::Published).count() as u64;
        assert_eq!((counts.files, counts.hard_links), (sent, model.linked));
        assert_eq!(counts.files + counts.hard_links, published);
    }
    (model, items)
}

#[test]
fn each_file_is_sent_once_and_its_other_names_are_links() {
    for seed in 0..200 {
        let (model, items) = run(seed, 0, b"a", Compare::Nothing);
        let files: BTreeSet<_> = items.iter().map(|item| item.file).collect();
        assert!(model.sent.values().all(|times| *times == 1), "seed {seed}: {:?}", model.sent);
        assert_eq!(model.sent.len(), files.len());
        assert_eq!(model.linked as usize, items.len() - files.len());
    }
}

/// Where the destination is two file systems, each file is sent once to each.
#[test]
fn files_of_two_file_systems_are_sent_once_to_each() {
    for seed in 0..300 {
        let (model, items) = run(seed, 0, b"ab", Compare::Nothing);
        let places: BTreeSet<_> = items.iter().map(|item| (content(item), file_system(&item.path))).collect();
        assert!(model.sent.values().all(|times| *times == 1), "seed {seed}: {:?}", model.sent);
        assert_eq!(model.sent.len(), places.len());
    }
}

#[test]
fn names_end_once_whatever_becomes_of_the_others() {
    for seed in 0..2000 {
        let compare = if seed % 2 == 0 { Compare::Nothing } else { Compare::SizeAndTime };
        let changes = [0, 300, 0, 700][seed as usize / 4 % 4];
        let faults = [50, 200, 500, 900][seed as usize % 4];
        let (model, items) = run_changing(seed, faults, b"ab", compare, changes);
        for item in &items {
            let stands = model.standing.contains_key(&item.path);
            let ended = &model.ended[&item.path];
            assert!(stands || *ended != Outcome::Published, "seed {seed}: {item:?}");
        }
    }
}

/// A name that is found later, of a file with the same number, is no name of what was sent before.
#[test]
fn names_of_what_has_changed_are_not_linked_to_what_was_sent() {
    for seed in 0..300 {
        let (model, items) = run_changing(seed, 0, b"a", Compare::Nothing, 300);
        assert!(items.iter().all(|item| model.standing[&item.path] == content(item)), "seed {seed}");
    }
}

/// A file that grows while it is copied is not what its other names were; that it had some is counted where it arrives.
#[test]
fn names_of_a_file_that_is_followed_are_files_of_their_own() {
    let mut model = Model::new(1, 0, Compare::Nothing);
    let item = ScannedItem { names: 2, file: Some((1, 1)), followed: true, ..file("a", Some(5)) };
    model.sender.handle_item(start(), item);
    let offered = std::iter::from_fn(|| model.sender.poll_action()).find_map(|action| match action {
        SenderAction::Send(PeerMessage::Offer(offer)) => Some(offer),
        _ => None,
    });
    let kinds: Vec<_> = offered.unwrap().attributes.others.kinds().collect();
    assert_eq!(kinds, [AttributeKind::HARD_LINK]);
}

/// Nothing is linked where that was not asked for.
#[test]
fn names_of_one_file_are_sent_each_where_hard_links_are_not_kept() {
    let config = SenderConfig {
        options: TransferOptions { item_events: true, ..options(BLOCK) },
        targets: vec![Vec::new()],
        known: false,
        tuning: Tuning::DEFAULT,
    };
    let mut model = Model { sender: Sender::new(config), ..Model::new(1, 0, Compare::Nothing) };
    model.sender.handle_stream(start(), StreamId(0));
    let items = model.scan(20, b"a");
    model.run(&items);
    assert_eq!((model.linked, model.sender.totals().counts.files), (0, items.len() as u64));
}

/// The scan waits while many names wait for the first of theirs, and goes on when that is there.
#[test]
fn scan_waits_while_many_names_wait() {
    let mut model = Model::new(1, 0, Compare::Nothing);
    let item = |number: u64| ScannedItem { names: 100_000, file: Some((1, 1)), ..file(&format!("a{number}"), Some(5)) };
    let mut found = 0;
    while model.sender.wants_items() {
        model.sender.handle_item(start(), item(found));
        found += 1;
        assert!(found < 100_000, "the scan waits for nothing");
    }
    assert!(found > 60_000);
    assert!(model.send());
    model.act();
    let mut sent = 0;
    while !model.sender.wants_items() && model.send() {
        model.act();
        sent += 1;
    }
    assert!(model.sender.wants_items() && sent > 0);
}
