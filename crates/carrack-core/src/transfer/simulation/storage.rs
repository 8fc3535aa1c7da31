//! What the receiver's driver does on the modelled disk, as the engine does it, with the moments between at
//! which it may be stopped.

use std::collections::BTreeSet;
use std::time::Duration;

use super::disk::{DiskPart, Entry};
use super::plan::Mutant;
use super::source::digest_of;
use super::store::{Record, Standing};
use super::world::{Event, World, failure};
use crate::digest::{BlockDigest, FileDigests, block_count};
use crate::failure::ErrorCode;
use crate::ids::{BundleId, ItemId};
use crate::judgment::{ItemDifference, Judgment};
use crate::plan::compare::State;
use crate::report::ItemKind;
use crate::request::{Durability, Verify};
use crate::transfer::Fingerprint;
use crate::transfer::machine::Machine;
use crate::transfer::receiver::Opened;
use crate::wire::patch::TakenBlock;
use crate::wire::peer::{AskedIndex, AskedItem, DirectoryAttributes, ItemResult, Offer, QueryItem, Question};

impl World {
    pub fn durable(&self) -> bool {
        self.plan.options.durability != Durability::None
    }

    pub fn open(&mut self, offer: Offer) {
        self.disk.opening.remove(&offer.item);
        let number = offer.item;
        let opened = match () {
            () if self.rng.chance(self.plan.refusal) => Opened::Refused(failure(ErrorCode::PermissionDenied)),
            () if self.rng.chance(self.plan.keep) => Opened::Keep,
            () => self.open_part(offer),
        };
        self.receiver.handle_opened(self.now(), number, opened);
    }

    fn open_part(&mut self, offer: Offer) -> Opened {
        if let Some(digests) = self.present(&offer.path, ItemKind::File, offer.fingerprint) {
            self.verdict.present += 1;
            self.known.insert(offer.path);
            return Opened::Present(digests);
        }
        if let Some(part) = self.found.parts.remove(&offer.path) {
            // Whatever has become of the source: each block is compared.
            if offer.size == Some(part.size) {
                let blocks: Vec<_> = part.blocks.iter().map(|(&index, &(digest, _))| (index, digest)).collect();
                self.note_right(&offer.path, &blocks);
                self.verdict.resumed += 1;
                self.claim_again(part.file, &blocks);
                let taken_over = self.take_over(part.file, &offer, |index| !part.blocks.contains_key(&index));
                self.disk.parts.insert(offer.item, DiskPart::new(part.file, &offer, false));
                return Opened::Resumed { left: blocks, taken_over };
            }
            self.verdict.started_over += 1;
            self.store.remove(part.file);
        }
        let file = self.store.create();
        let size = offer.size.unwrap_or(0);
        self.store.append(Record::Part { file, path: offer.path.clone(), size }, self.durable());
        if self.share(file, &offer) {
            self.disk.parts.insert(offer.item, DiskPart::new(file, &offer, false));
            return Opened::Shared;
        }
        let taken_over = self.take_over(file, &offer, |_| true);
        self.disk.parts.insert(offer.item, DiskPart::new(file, &offer, taken_over.is_empty()));
        if taken_over.is_empty() { Opened::Ready } else { Opened::Resumed { left: Vec::new(), taken_over } }
    }

    /// Makes a part file of the source's blocks, where that still is what was listed; whether it was.
    fn share(&mut self, file: u64, offer: &Offer) -> bool {
        let Some(size) = offer.size.filter(|_| self.plan.options.shares && self.rng.chance(self.plan.sharing)) else {
            return false;
        };
        let (item, _) = self.opened_as[&offer.item];
        if self.source.items[item].gone || !self.open_source(offer.item) {
            return false;
        }
        for index in 0..block_count(size, self.plan.options.block_bytes) {
            let content = self.source.block(item, index);
            self.store.write(file, index, content);
        }
        self.verdict.shared += 1;
        true
    }

    /// Copies blocks from what stands at the name: some are what the source has now, others something else.
    fn take_over(&mut self, file: u64, offer: &Offer, missing: impl Fn(u64) -> bool) -> Vec<TakenBlock> {
        let comparable = self.plan.options.digests.main.is_some();
        let Some(size) = offer.size.filter(|_| comparable && self.rng.chance(self.plan.taking_over)) else {
            return Vec::new();
        };
        let item = self.source.find(&offer.path);
        let mut taken = Vec::new();
        for index in (0..block_count(size, self.plan.options.block_bytes)).filter(|&index| missing(index)) {
            if self.rng.chance(600) {
                let content = self.source.block(item, index);
                let content = if self.rng.chance(700) { content } else { content ^ 1 };
                self.store.write(file, index, content);
                taken.push((index, digest_of(content)));
            }
        }
        self.verdict.taken_over += taken.len() as u64;
        self.note_right(&offer.path, &taken);
        let taken = taken.into_iter();
        taken.map(|(index, digest)| TakenBlock { index, digest, chunks: Vec::new() }).collect()
    }

    /// What was digested anew is claimed anew: else the marker would go on claiming what was there before.
    fn claim_again(&mut self, file: u64, blocks: &[(u64, BlockDigest)]) {
        if self.durable() {
            self.store.sync(file);
        }
        let blocks = blocks.iter().map(|&(index, digest)| (index, Some(digest))).collect();
        self.store.append(Record::Blocks { file, blocks }, self.durable());
    }

    /// Which of the held blocks are what the source has: they must not come again.
    fn note_right(&mut self, path: &[u8], blocks: &[(u64, BlockDigest)]) {
        let item = self.source.find(path);
        for &(index, digest) in blocks {
            if digest == digest_of(self.source.block(item, index)) {
                self.held_right.insert((item, index));
                self.verdict.held += 1;
            } else {
                self.verdict.held_wrong += 1;
            }
        }
    }

    /// What is written of an item is void: all of it comes again.
    pub fn forget_right(&mut self, number: ItemId) {
        if let Some(part) = self.disk.parts.get(&number) {
            let item = self.source.find(&part.path);
            self.held_right.retain(|&(other, _)| other != item);
        }
    }

    /// What an earlier session has published, if it may be used and is still there.
    fn present(&self, path: &[u8], kind: ItemKind, fingerprint: Option<Fingerprint>) -> Option<FileDigests> {
        let found = self.found.published.get(path)?;
        let believed = self.plan.mutant == Some(Mutant::NameBelieved);
        let there = self.store.standing(path)?.inode == found.inode || believed;
        let same = found.kind == kind && fingerprint == Some(found.source);
        (same && there).then_some(found.digests)
    }

    pub fn look(&mut self, bundle: BundleId, items: Vec<QueryItem>) {
        let mut known = Vec::new();
        for item in items {
            if let Some(digests) = self.present(&item.path, item.kind, item.fingerprint) {
                known.push((item.index, digests));
                self.known.insert(item.path);
                self.verdict.known += 1;
            }
        }
        self.receiver.handle_looked(self.now(), bundle, known);
    }

    /// What stands there is never the same: each item is sent all the same.
    pub fn compare(&mut self, number: BundleId, question: Question) {
        let rules = self.plan.options.rules();
        let judgment = |item: &AskedItem| {
            let standing = self.store.standing(&item.path);
            let there = standing.map(|name| State { kind: item.kind, size: name.size, mtime: name.mtime });
            let source = State { kind: item.kind, size: item.size, mtime: item.mtime };
            let rules = rules.expect("nothing is asked where nothing is compared");
            match rules.judge(&source, there.as_ref()) {
                // Somebody has put times back, on either side: by size and time nobody can tell.
                Judgment::Same if !self.holds_what_is_now(&item.path) => Judgment::Differs(ItemDifference::default()),
                judgment => judgment,
            }
        };
        let mut judgments: Vec<_> = question.items.iter().map(judgment).collect();
        let mut chunked = Vec::new();
        for ((index, item), judgment) in (0..).zip(&question.items).zip(&mut judgments) {
            let asked = AskedIndex { number, index };
            match *judgment {
                Judgment::Undecided => {
                    self.undecided.insert(asked, item.path.clone());
                }
                Judgment::Differs(difference) if item.kind == ItemKind::File && self.rng.chance(500) => {
                    *judgment = Judgment::Chunked(difference);
                    chunked.push(asked);
                }
                _ => {}
            }
        }
        self.receiver.handle_compared(self.now(), number, judgments);
        for asked in chunked {
            let delay = self.rng.up_to(Duration::from_millis(50));
            self.after(delay, Event::Chunked(asked));
        }
    }

    pub fn checkpoint(&mut self, number: ItemId, blocks: Vec<(u64, BlockDigest)>) {
        let Some(part) = self.disk.parts.get_mut(&number) else {
            return self.receiver.handle_checkpointed(self.now(), number, Ok(Vec::new()));
        };
        part.checkpointing = false;
        let file = part.file;
        let item = self.source.find(&part.path);
        self.verdict.checkpoints += 1;
        let claims = |rotten: &BTreeSet<u64>| {
            let right = blocks.iter().filter(|(index, _)| !rotten.contains(index));
            Record::Blocks { file, blocks: right.map(|&(index, digest)| (index, Some(digest))).collect() }
        };
        if self.plan.mutant == Some(Mutant::ClaimBeforeSync) {
            self.store.append(claims(&BTreeSet::new()), self.durable());
        }
        if self.durable() && self.rng.chance(self.plan.sync_failure) {
            self.verdict.sync_failures += 1;
            self.store.sync_in_vain(file, &mut self.rng);
            if self.plan.mutant != Some(Mutant::SyncAgain) {
                return self.receiver.handle_checkpointed(self.now(), number, Err(failure(ErrorCode::InputOutput)));
            }
        }
        if self.durable() {
            self.store.sync(file);
        }
        if self.step() {
            return;
        }
        let rotten = self.read_back(file, &blocks);
        self.store.append(claims(&rotten), self.durable());
        if self.step() {
            return;
        }
        if self.durable() {
            self.store.sync_marker();
        }
        for &index in &rotten {
            let offset = index * u64::from(self.plan.options.block_bytes);
            self.disk.take_back(number, offset);
            self.held_right.remove(&(item, index));
            self.verdict.rotten += 1;
        }
        self.receiver.handle_checkpointed(self.now(), number, Ok(rotten.into_iter().collect()));
    }

    /// Some blocks rot, and are found when they are read back.
    fn read_back(&mut self, file: u64, blocks: &[(u64, BlockDigest)]) -> BTreeSet<u64> {
        if self.plan.options.verify != Verify::Disk {
            return BTreeSet::new();
        }
        for &(index, _) in blocks {
            if self.rng.chance(self.plan.rot) {
                self.store.rot(file, index);
            }
        }
        let read = |index| self.store.read(file, index).map(digest_of);
        let bad = blocks.iter().filter(|(index, digest)| read(*index) != Some(*digest));
        let rotten: BTreeSet<u64> = bad.map(|&(index, _)| index).collect();
        rotten.iter().for_each(|&index| self.store.withdraw(file, index));
        rotten
    }

    pub fn publish(&mut self, number: ItemId, digests: FileDigests, size: u64) {
        let block_bytes = self.plan.options.block_bytes;
        let file = self.disk.parts[&number].file;
        let unchecked = self.plan.mutant == Some(Mutant::PublishUnchecked);
        if unchecked && self.rng.chance(self.plan.rot) {
            self.store.rot(file, 0);
        }
        let read = self.disk.read_back(&self.store, number, size, block_bytes);
        let on_disk = read.expect("only what is whole is published");
        let result = match () {
            () if self.rng.chance(self.plan.publish_failure) => ItemResult::Failed(failure(ErrorCode::QuotaExceeded)),
            () if self.rng.chance(self.plan.keep) => ItemResult::Kept,
            () if self.durable() && self.rng.chance(self.plan.sync_failure) => {
                self.verdict.sync_failures += 1;
                self.store.sync_in_vain(file, &mut self.rng);
                ItemResult::Again(failure(ErrorCode::InputOutput))
            }
            () => ItemResult::Published,
        };
        let part = self.disk.parts.remove(&number).expect("what is published was opened");
        if result != ItemResult::Published {
            self.held_right.retain(|&(other, _)| other != self.source.find(&part.path));
            self.store.remove(file);
            return self.receiver.handle_published(self.now(), number, result);
        }
        if self.durable() {
            self.store.sync(file);
            assert!(self.store.is_synced(file), "item {number} gets its name and is not on the disk");
        }
        if self.step() {
            return;
        }
        self.check_content(&part.path, size, on_disk);
        if let Some(second) = self.read_twice.get(&number).filter(|_| self.plan.mutant.is_none()) {
            assert_eq!(digests, *second, "item {number} gets its name and is not what the second reading saw");
        }
        let wanted = self.plan.options.digests;
        let wanted =
            if digests == FileDigests::default() && self.plan.options.shares { digests.kinds() } else { wanted };
        assert_eq!(digests.kinds(), wanted);
        assert!(digests.blake3.is_none_or(|digest| digest == on_disk));
        let mtime = part.mtime;
        self.rename(
            part.path.clone(),
            Standing { blake3: on_disk, size, mtime, inode: 0, synced: self.durable(), torn: false },
        );
        self.store.consume(file);
        if self.step() {
            return;
        }
        self.write_down(part.path, ItemKind::File, part.fingerprint, digests);
        self.receiver.handle_published(self.now(), number, result);
    }

    fn rename(&mut self, path: Vec<u8>, standing: Standing) {
        *self.disk.published.entry(path.clone()).or_default() += 1;
        self.store.rename(&path, standing);
        if self.plan.options.durability == Durability::Each {
            self.store.sync_names();
        }
    }

    fn write_down(&mut self, path: Vec<u8>, kind: ItemKind, source: Option<Fingerprint>, digests: FileDigests) {
        // What was not digested is not known later.
        let is_known = kind != ItemKind::File || digests.main().is_some();
        if let Some(source) = source.filter(|_| is_known) {
            // A rename that a power cut undoes leaves another file there, which may be of the same size and time.
            let standing = self.store.standing(&path).expect("it has been published");
            let had = self.source.had(self.source.find(&path), source, standing.size, standing.blake3);
            assert!(had, "{} is written down as what it was not", String::from_utf8_lossy(&path));
            let inode = standing.inode;
            self.store.append(Record::Published { path, kind, source, inode, digests }, self.durable());
        }
    }

    /// What gets a name is what the source was at one moment.
    fn check_content(&self, path: &[u8], size: u64, blake3: [u8; 32]) {
        let item = self.source.find(path);
        let name = String::from_utf8_lossy(path);
        assert!(self.source.is_version(item, size, blake3), "{name} is not what its source ever was");
    }

    pub fn commit(&mut self, bundle: BundleId) {
        let entries = self.disk.bundles.remove(&bundle).expect("it was to be committed");
        let mut exceptions = Vec::new();
        let fails = self.durable() && self.rng.chance(self.plan.sync_failure);
        self.verdict.sync_failures += u64::from(fails);
        let mut published = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let kind = self.source.items[entry.item].scanned.kind;
            let result = match self.entry_result(&entry) {
                ItemResult::Published if fails && kind != ItemKind::Directory => {
                    ItemResult::Again(failure(ErrorCode::InputOutput))
                }
                result => result,
            };
            if result != ItemResult::Published {
                exceptions.push((index as u32, result));
                continue;
            }
            if self.step() {
                return;
            }
            self.publish_entry(entry, kind, &mut published);
        }
        for (path, kind, source, digests) in published {
            if self.step() {
                return;
            }
            self.write_down(path, kind, source, digests);
        }
        self.receiver.handle_committed(self.now(), bundle, exceptions);
    }

    fn publish_entry(
        &mut self,
        entry: Entry,
        kind: ItemKind,
        published: &mut Vec<(Vec<u8>, ItemKind, Option<Fingerprint>, FileDigests)>,
    ) {
        let digest = digest_of(entry.content.expect("what was dropped is not published"));
        if kind == ItemKind::Directory {
            self.disk.directories.insert(entry.path.clone());
            *self.disk.published.entry(entry.path).or_default() += 1;
            return;
        }
        self.check_content(&entry.path, entry.size, digest.main);
        let (size, mtime) = (entry.size, entry.mtime);
        let standing = Standing { blake3: digest.main, size, mtime, inode: 0, synced: self.durable(), torn: false };
        self.rename(entry.path.clone(), standing);
        let digests = match kind {
            ItemKind::File => digest.as_file(self.plan.options.digests),
            _ => FileDigests::default(),
        };
        published.push((entry.path, kind, entry.fingerprint, digests));
    }

    pub fn apply_directories(&mut self, list: Vec<DirectoryAttributes>) {
        assert!(
            self.disk.bundles.is_empty() && self.disk.parts.is_empty(),
            "a directory's time is set before all is in it"
        );
        let mut failures = Vec::new();
        for directory in list {
            assert!(self.disk.directories.remove(&directory.path), "attributes of a directory that was not made");
            let inside = [&directory.path[..], b"/"].concat();
            let child = self.disk.directories.range(inside.clone()..).next();
            assert!(
                child.is_none_or(|child| !child.starts_with(&inside)),
                "a directory's attributes are set before its child's"
            );
            if self.rng.chance(self.plan.directory_failure) {
                failures.push((directory.path, failure(ErrorCode::PermissionDenied)));
            }
        }
        self.receiver.handle_directories_applied(self.now(), failures);
    }

    pub fn sync_all(&mut self) {
        if self.durable() {
            self.store.sync_names();
        }
        self.receiver.handle_synced(self.now(), self.durable());
    }

    /// The receiver's end has ended, and not by a crash: what is durable stays, the rest goes.
    pub fn leave(&mut self) {
        let succeeded = self.receiver.outcome() == Some(Ok(()));
        for (number, blocks) in if succeeded { Vec::new() } else { self.receiver.unsaved() } {
            let Some(part) = self.disk.parts.get(&number) else { continue };
            let file = part.file;
            if self.durable() {
                self.store.sync(file);
            }
            let rotten = self.read_back(file, &blocks);
            let right = blocks.into_iter().filter(|(index, _)| !rotten.contains(index));
            let blocks: Vec<_> = right.map(|(index, digest)| (index, Some(digest))).collect();
            self.verdict.last_checkpoints += 1;
            self.store.append(Record::Blocks { file, blocks }, self.durable());
        }
        // Of a part file that nobody has opened there is nothing to tell: it may have been altered before.
        for part in self.disk.parts.values() {
            self.store.left(part.file);
        }
        self.store.sync_marker();
        let files: Vec<u64> = self.store.files.keys().copied().collect();
        for file in files {
            if succeeded || !self.store.has_claims(file) {
                self.store.remove(file);
            }
        }
        if succeeded {
            self.store.remove_marker();
        }
    }
}
