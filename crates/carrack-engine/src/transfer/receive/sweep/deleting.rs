//! Deleting what is on the list.

use carrack_core::report::{FileDigests, ItemKind, ItemReport, Outcome};

use super::{SourceNow, Sweep, SweepEnd};
use crate::storage::write::Destination;

/// Items told to the command at once.
const TOLD_AT_ONCE: usize = 256;
/// Paths that the source is asked about at once, and their bytes: far from the bounds of a message.
const ASKED_AT_ONCE: usize = 1024;
const ASKED_BYTES: usize = 128 << 10;

/// An item that only the destination has.
pub(super) struct OldItem {
    path: Vec<u8>,
    kind: ItemKind,
    size: u64,
    /// It has another name by now, and was this file: device and inode.
    renamed: Option<(u64, u64)>,
}

/// Deletes what is on the list, so many at once as the source is asked about.
pub(super) struct Deleting<'a> {
    pub sweep: &'a Sweep,
    pub destination: &'a dyn Destination,
    pub source: &'a dyn SourceNow,
    /// The source is asked: something may be deleted.
    pub asks: bool,
    /// So many items are deleted.
    pub most: u64,
    /// So many would be, in a dry run.
    pub would: u64,
    pub ended: SweepEnd,
    pub next: Vec<OldItem>,
    pub plan_only: bool,
    /// Of the paths in `next`.
    pub bytes: usize,
    pub told: Vec<ItemReport>,
}

impl Deleting<'_> {
    /// The next of the list; `false` when the transfer has ended.
    pub fn take(&mut self, path: &[u8], kind: ItemKind, size: u64) -> bool {
        let renamed = self.sweep.renaming.as_ref().and_then(|renaming| renaming.renamed_at(path));
        if renamed.is_some() && self.plan_only {
            return true;
        }
        self.next.push(OldItem { path: path.to_vec(), kind, size, renamed });
        self.bytes += path.len();
        let is_full = self.next.len() >= ASKED_AT_ONCE || self.bytes >= ASKED_BYTES;
        !is_full || self.go_on()
    }

    /// Deletes those that were taken; `false` when the transfer has ended.
    pub fn go_on(&mut self) -> bool {
        self.bytes = 0;
        let next = std::mem::take(&mut self.next);
        if next.is_empty() {
            return true;
        }
        let asks = self.asks;
        let is_asked = |item: &&OldItem| asks || item.renamed.is_some();
        let paths: Vec<_> = next.iter().filter(is_asked).map(|item| item.path.clone()).collect();
        let there = if paths.is_empty() { Some(Vec::new()) } else { self.source.still_there(paths) };
        let Some(mut there) = there.map(Vec::into_iter) else { return false };
        for item in next {
            let is_there = is_asked(&&item) && there.next().unwrap_or(true);
            if self.source.is_over() {
                return false;
            }
            match (is_there, item.renamed) {
                (true, _) => self.ended.appeared += 1,
                (false, Some(file)) => self.forget(&item.path, file),
                (false, None) => self.one(item.path, item.kind, item.size),
            }
        }
        true
    }

    /// Takes away the old name of what was renamed. Whoever has put something else there keeps it.
    fn forget(&mut self, path: &[u8], file: (u64, u64)) {
        if let Err(why) = self.destination.forget_name(path, file) {
            self.ended.why.get_or_insert(why);
        }
    }

    fn one(&mut self, path: Vec<u8>, kind: ItemKind, size: u64) {
        let may = self.ended.deleted.items < self.most;
        let outcome = match may.then(|| self.destination.delete(&path, kind)) {
            Some(Ok(())) => Outcome::Deleted,
            // What came to stand in a directory since keeps it.
            Some(Err(why)) => {
                self.ended.why.get_or_insert(why);
                Outcome::ToDelete
            }
            None => Outcome::ToDelete,
        };
        let is_deleted = outcome == Outcome::Deleted;
        let would_be = self.ended.stays.items < self.would;
        if let Some(changes) = self.sweep.changes.as_ref().filter(|_| is_deleted || would_be) {
            changes.deleted(&path, kind, size);
        }
        (if is_deleted { &mut self.ended.deleted } else { &mut self.ended.stays }).add(size);
        if self.sweep.tell.is_some() {
            let digests = FileDigests::default();
            self.told.push(ItemReport { path, kind, size, digests, judgment: None, outcome });
            if self.told.len() >= TOLD_AT_ONCE {
                self.sweep.tell_items(&mut self.told);
            }
        }
    }
}
