//! The source's side of a simulation: the thread that lists it, and what becomes of it meanwhile.

use std::time::Duration;

use super::{Event, World, failure};
use crate::attributes::Time;
use crate::digest::{BlockDigest, FileDigests, FileTree, block_count, block_length};
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::ItemId;
use crate::report::ItemKind;
use crate::request::Verify;
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::simulation::plan::Mutant;
use crate::transfer::simulation::source::{GRAIN, digest_of};

impl World {
    pub(super) fn change_source(&mut self, item: usize) {
        let second = self.second();
        // What is open stays what it is, whatever becomes of the name.
        let is_open = self.opened.values().any(|&(open, _)| open == item);
        let unseen = self.plan.options.verify == Verify::Source && self.rng.chance(700);
        match !is_open && self.rng.chance(200) {
            _ if unseen => self.source.change_content(item),
            true => self.source.exchange(item, &mut self.rng),
            false => self.source.change(item, second, &mut self.rng),
        }
        self.held_right.retain(|&(other, _)| other != item);
        self.source.items[item].gone = self.rng.chance(200);
        self.verdict.changes += 1;
    }

    pub(super) fn scan(&mut self) {
        if self.sender.outcome().is_some() {
            return;
        }
        if self.plan.options.names_first() && !self.sender.is_past_names() {
            return self.tell_names();
        }
        if std::mem::take(&mut self.named) {
            self.scanned = 0;
        }
        let batch = 1 + self.rng.below(40);
        for _ in 0..batch {
            if !self.sender.wants_items() {
                self.scan_waits = true;
                self.verdict.scan_waits += 1;
                return;
            }
            let now = self.now();
            let Some(item) = self.source.items.get(self.scanned) else {
                return self.sender.handle_scan_complete(self.now());
            };
            self.scanned += 1;
            if item.twin && self.plan.mutant != Some(Mutant::TwinsSent) {
                self.sender.handle_scan_failure(self.now(), &item.scanned, failure(ErrorCode::AlreadyExists));
                continue;
            }
            if item.gone && item.scanned.kind != ItemKind::Directory {
                self.unseen.insert(self.scanned - 1);
                continue;
            }
            if self.rng.chance(self.plan.read_failure) && item.scanned.kind != ItemKind::Special {
                let vanished = Failure::new(ErrorCode::SourceVanished, Side::Source, "gone");
                self.sender.handle_scan_failure(self.now(), &item.scanned, vanished);
            } else {
                let found = self.source.scanned(self.scanned - 1, self.second());
                // Every second file has just been written to, where any is followed.
                let is_followed = self.plan.options.follows() && self.scanned.is_multiple_of(2);
                let followed = is_followed && found.kind == ItemKind::File && found.size.is_some();
                self.sender.handle_item(now, ScannedItem { followed, ..found });
            }
        }
        let most = if self.rng.chance(50) { 30 } else { 1 };
        let delay = self.rng.up_to(Duration::from_millis(most));
        self.after(delay, Event::Scan);
    }

    /// Tells names before anything is sent; the scan goes on when the receiver has deleted.
    fn tell_names(&mut self) {
        while let Some(item) = self.source.items.get(self.scanned) {
            if !self.sender.wants_items() {
                self.scan_waits = true;
                return;
            }
            self.scanned += 1;
            let (now, unlisted) = (self.now(), self.rng.chance(self.plan.read_failure));
            let item = &item.scanned;
            if unlisted { self.sender.handle_unlisted(now, item) } else { self.sender.handle_left_out(now, item) }
        }
        if !std::mem::replace(&mut self.named, true) {
            self.sender.handle_names_complete(self.now());
        }
        self.after(Duration::from_millis(1), Event::Scan);
    }

    pub(super) fn rescan(&mut self, before: &ScannedItem, attempt: u32) {
        let number = self.source.number(before);
        let item = &self.source.items[number];
        let vanished = Failure::new(ErrorCode::SourceVanished, Side::Source, "gone");
        let found = if item.gone { Err(vanished) } else { Ok(self.source.scanned(number, self.second())) };
        let now = self.now();
        self.sender.handle_rescanned(now, before, attempt, found);
    }

    /// A followed source is looked at after a while, `looks` looks after the first.
    pub(super) fn look_at_followed(&mut self, number: ItemId, looks: u64) {
        let delay = self.disk_delay();
        self.after(delay, Event::Followed(number, looks));
    }

    /// A followed source has grown some more, and in the end it has rested: then it has the size that it was found to
    /// have.
    pub(super) fn follow(&mut self, number: ItemId, looks: u64) {
        const LOOKS: u64 = 4;
        let size = self.sender.scanned(number).and_then(|scanned| scanned.size);
        let Some(size) = size.filter(|_| self.sender.is_followed(number)) else { return };
        let now = self.now();
        if looks == LOOKS {
            self.verdict.followed += 1;
            return self.sender.handle_followed(now, number, size, Some(Time::new(1, 2)));
        }
        self.sender.handle_grown(now, number, size / LOOKS * looks);
        self.look_at_followed(number, looks + 1);
    }

    /// One block more of a second reading; at the end its digests are handed over, as the engine does.
    pub(super) fn read_again(&mut self, number: ItemId, mut read: Vec<BlockDigest>) {
        let (Some((size, _)), true) = (self.sender.was_read(number), self.opened.contains_key(&number)) else {
            return self.check_source(number, None);
        };
        let (item, wanted) = (self.opened_as[&number].0, self.plan.options.digests);
        read.push(digest_of(self.source.block(item, read.len() as u64)));
        let block_bytes = self.plan.options.block_bytes;
        if (read.len() as u64) < block_count(size, block_bytes) {
            let delay = self.disk_delay();
            return self.after(delay, Event::ReadAgain(number, read));
        }
        let mut tree = FileTree::new(block_bytes, wanted);
        for (index, digest) in (0..).zip(read) {
            tree.insert(index, block_length(index, size, block_bytes), digest);
        }
        let digests = tree.finish(size).expect("all of it has been read");
        self.read_twice.insert(number, digests);
        self.verdict.read_twice += 1;
        let skipped = self.plan.mutant == Some(Mutant::SecondReadingSkipped);
        self.check_source(number, (!skipped).then_some(digests));
    }

    pub(super) fn check_source(&mut self, number: ItemId, second: Option<FileDigests>) {
        let (item, version) = self.opened_as[&number];
        let now = &self.source.items[item];
        // Where times tell, they alone do.
        let opened = self.opened.remove(&number);
        let changed = opened.map_or(now.version != version, |(_, stat)| now.stat() != stat);
        let failure = Failure::new(ErrorCode::SourceChanged, Side::Source, "changed");
        self.sender.handle_source_checked(self.now(), number, if changed { Err(failure) } else { Ok(second) });
    }

    /// The source of an offered item is opened with the first of its blocks; false when it is not what was
    /// listed, or is being changed.
    pub fn open_source(&mut self, number: ItemId) -> bool {
        let Some(scanned) = self.sender.scanned(number).filter(|scanned| scanned.size.is_some()) else {
            return true;
        };
        if self.opened.contains_key(&number) {
            return true;
        }
        let (item, second) = (self.source.number(scanned), self.second());
        let now = self.source.items[item].stat();
        let listed = (scanned.size, scanned.attributes.mtime) == (now.0, now.1)
            && scanned.fingerprint.is_none_or(|listed| self.source.fingerprint(item, second) == Some(listed));
        let settled = self.source.is_settled(item, second) || self.plan.mutant == Some(Mutant::NotSettled);
        let opens = settled && (listed || self.plan.mutant == Some(Mutant::ListingBelieved));
        if opens {
            self.opened.insert(number, (item, now));
        }
        opens
    }

    /// How long a stream lets a source rest before it opens it: until a change would show.
    pub fn rest(&mut self, number: ItemId) -> Duration {
        let Some(scanned) = self.sender.scanned(number).filter(|scanned| scanned.size.is_some()) else {
            return Duration::ZERO;
        };
        let changed = self.source.items[self.source.number(scanned)].scanned.changed;
        let skipped = self.opened.contains_key(&number) || self.plan.mutant == Some(Mutant::NotSettled);
        let Some(changed) = changed.filter(|_| !skipped) else { return Duration::ZERO };
        let settled = u64::try_from(changed.seconds + GRAIN + 1 - self.clock_base).unwrap_or(0);
        let rest = Duration::from_secs(settled).saturating_sub(self.clock);
        self.verdict.rests += u64::from(!rest.is_zero());
        rest
    }
}
