//! What a pass over a pair of a task counts.

use std::collections::BTreeMap;

use carrack_core::report::{ItemKind, Report};

use crate::journal::Item;
use crate::model::{CheckTally, ItemState, Progress, TaskFailure, TaskPlan};

/// What a pass over a pair has done so far.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// What earlier passes over the pair have done; their failed items are tried again, but for those of a pass that
    /// only deletes sources.
    pub before: Progress,
    /// What identifies where the pair leads from and to.
    pub place: Vec<u8>,
    pub of_sources: bool,
    /// Items and bytes found.
    pub found: (u64, u64),
    /// Whether all are found.
    pub scan_complete: bool,
    /// Bytes at the destination.
    pub bytes_moved: u64,
    done: u64,
    skipped: u64,
    failed: u64,
    bytes_verified: u64,
    bytes_skipped: u64,
    /// Why the first of its items failed.
    pub first_failure: Option<TaskFailure>,
    /// Whether another attempt can help any of them.
    pub any_can_pass: bool,
    /// Of a check, what was found.
    pub check: Option<CheckTally>,
}

impl Pass {
    /// Over a pair that leads from and to this place, behind what earlier passes have done.
    pub fn new(place: Vec<u8>, before: Progress) -> Self {
        Self { before, place, ..Self::default() }
    }

    /// The same once more: all of its items are told anew.
    pub fn anew(&self) -> Self {
        Self { of_sources: self.of_sources, ..Self::new(self.place.clone(), self.before.clone()) }
    }

    /// One that deletes sources.
    pub fn of_sources(before: Progress) -> Self {
        Self { before, of_sources: true, scan_complete: true, ..Self::default() }
    }

    /// Counts an item.
    pub fn count(&mut self, item: &Item, verified: bool) {
        match item.state {
            ItemState::Done => {
                self.done += 1;
                self.bytes_verified += if verified { item.size } else { 0 };
            }
            ItemState::Skipped => {
                self.skipped += 1;
                self.bytes_skipped += item.size;
            }
            ItemState::Deleted | ItemState::Planned | ItemState::ToDelete => {}
            // A check says at each item how many there are of all.
            ItemState::Different | ItemState::OnlySource | ItemState::OnlyDestination => {}
            ItemState::Failed => {
                self.failed += 1;
                if self.of_sources {
                    // It was copied, and is where it was, too.
                    self.before.items_done = self.before.items_done.saturating_sub(1);
                }
            }
        }
    }

    /// So much of a check is done.
    pub fn checked(&mut self, tally: CheckTally, failed: u64) {
        (self.done, self.failed) = (tally.compared(), failed);
        self.check = Some(tally);
    }

    /// Adds items that are told by their number alone.
    pub fn count_done(&mut self, count: u64) {
        self.done += count;
    }

    /// What all passes over the pair have done.
    pub fn progress(&self) -> Progress {
        let before = &self.before;
        let ended = self.done + self.skipped + self.failed;
        let failed_before = if self.of_sources { before.items_failed } else { 0 };
        Progress {
            items_total: before.items_done + before.items_skipped + failed_before + self.found.0.max(ended),
            items_done: before.items_done + self.done,
            items_skipped: before.items_skipped + self.skipped,
            items_failed: failed_before + self.failed,
            scan_complete: self.scan_complete,
            bytes_total: before.bytes_moved + before.bytes_skipped + self.found.1.max(self.bytes_moved),
            bytes_moved: before.bytes_moved + self.bytes_moved,
            bytes_verified: before.bytes_verified + self.bytes_verified,
            bytes_skipped: before.bytes_skipped + self.bytes_skipped,
            check: self.check,
            ..Progress::default()
        }
    }
}

/// What several pairs have done.
pub fn sum_of<'a>(pairs: impl Iterator<Item = &'a Progress>) -> Progress {
    let mut sum = Progress::default();
    pairs.for_each(|pair| add(&mut sum, pair));
    sum
}

/// Adds what one pair has done.
pub fn add(sum: &mut Progress, more: &Progress) {
    sum.items_total += more.items_total;
    sum.items_done += more.items_done;
    sum.items_skipped += more.items_skipped;
    sum.items_failed += more.items_failed;
    sum.bytes_total += more.bytes_total;
    sum.bytes_moved += more.bytes_moved;
    sum.bytes_verified += more.bytes_verified;
    sum.bytes_skipped += more.bytes_skipped;
    if let Some(check) = &more.check {
        sum.check.get_or_insert_default().add(check);
    }
}

/// What all attempts of a task have counted beside their items.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Faults that were recovered.
    pub faults: u64,
    /// Bytes that had landed and were sent again.
    pub bytes_resent: u64,
    /// Items that were done, or may have been, and count as done no more,
    pub items_lost: u64,
    /// and their bytes.
    pub bytes_lost: u64,
    /// Items that were deleted at the destination, which alone had them,
    pub items_deleted: u64,
    /// and their bytes.
    pub bytes_deleted: u64,
    /// Items that did not keep something, by what it is.
    pub unkept: BTreeMap<String, u64>,
    /// What would be done and was not, in this attempt alone.
    pub plan: Option<TaskPlan>,
    /// The file system that the source stands on.
    pub source_file_system: Option<String>,
}

impl Counted {
    /// What was done counts as done no more.
    pub fn lost(items: u64, bytes: u64) -> Self {
        Self { items_lost: items, bytes_lost: bytes, ..Self::default() }
    }

    /// As earlier attempts told it.
    pub fn of(progress: &Progress) -> Self {
        let Progress { faults, bytes_resent, items_lost, bytes_lost, items_deleted, bytes_deleted, .. } = *progress;
        let unkept = progress.unkept.clone();
        Self { faults, bytes_resent, items_lost, bytes_lost, items_deleted, bytes_deleted, unkept, ..Self::default() }
    }

    /// Adds what a copy has counted.
    pub fn add(&mut self, more: Self) {
        self.faults += more.faults;
        self.bytes_resent += more.bytes_resent;
        self.items_lost = self.items_lost.saturating_add(more.items_lost);
        self.bytes_lost = self.bytes_lost.saturating_add(more.bytes_lost);
        self.items_deleted = self.items_deleted.saturating_add(more.items_deleted);
        self.bytes_deleted = self.bytes_deleted.saturating_add(more.bytes_deleted);
        for (what, items) in more.unkept {
            let sum = self.unkept.entry(what).or_default();
            *sum = sum.saturating_add(items);
        }
        if let Some(plan) = more.plan {
            self.plan.get_or_insert_default().add(plan);
        }
        self.source_file_system = more.source_file_system.or(self.source_file_system.take());
    }

    /// Tells it.
    pub fn tell(&self, progress: &mut Progress) {
        (progress.faults, progress.bytes_resent) = (self.faults, self.bytes_resent);
        (progress.items_lost, progress.bytes_lost) = (self.items_lost, self.bytes_lost);
        (progress.items_deleted, progress.bytes_deleted) = (self.items_deleted, self.bytes_deleted);
        progress.unkept.clone_from(&self.unkept);
        progress.plan.clone_from(&self.plan);
        progress.source_file_system.clone_from(&self.source_file_system);
    }
}

/// What a copy did not keep, by what it is. Of a copy that failed nothing is told: the next one finds its items again.
pub fn unkept(report: &Report) -> BTreeMap<String, u64> {
    let mut unkept = BTreeMap::new();
    if report.error.is_some() {
        return unkept;
    }
    let mut note = |what: String, items: u64| (items > 0).then(|| unkept.insert(what, items));
    note("permissions".to_owned(), report.unkept_permissions.as_ref().map_or(0, |unkept| unkept.count));
    note("times".to_owned(), report.unkept_times.as_ref().map_or(0, |unkept| unkept.count));
    for (kind, items) in report.unkept_attributes.iter().flat_map(|unkept| &unkept.kinds) {
        note(kind.name().map_or_else(|| kind.0.to_string(), ToOwned::to_owned), *items);
    }
    unkept
}

/// An item that was done and is not there any more, or that had failed before, for the pass that follows.
pub fn failed_item(pair: u32, path: Vec<u8>, kind: ItemKind, size: u64) -> Item {
    Item { pair, path, kind, state: ItemState::Failed, size, digest: None, failure: None }
}
