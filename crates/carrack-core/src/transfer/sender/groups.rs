//! Names of one file: the first that is found is sent, the others become hard links to it once it is there.
//!
//! Of a file that has further names what is kept is its first name, until all names have been found; of a name that
//! waits, all that the scan has found. Names wait only for what is on its way, and the scan goes on once there are few.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;
use std::time::Instant;

use super::Sender;
use crate::digest::FileDigests;
use crate::limits;
use crate::report::{ItemKind, Outcome};
use crate::transfer::{OtherNames, ScannedItem};

/// Files that have further names.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// By device and inode.
    files: BTreeMap<(u64, u64), NamedFile>,
    /// Names that wait for the first of theirs.
    waiting: usize,
    /// Names that wait no more.
    released: VecDeque<ScannedItem>,
}

#[derive(Debug, Default)]
struct NamedFile {
    /// Names that the scan has not found.
    unseen: u64,
    /// Names that are there, of which links are made.
    there: Arc<OtherNames>,
    /// One is being sent or compared.
    is_under_way: bool,
    /// Those that wait for it.
    waiting: Vec<ScannedItem>,
}

impl NamedFile {
    /// Nothing of it is needed any more.
    fn is_over(&self) -> bool {
        self.unseen == 0 && !self.is_under_way && self.waiting.is_empty()
    }

    /// The name becomes a link to those that are there; where none is, it is the one that is sent.
    fn place(&mut self, item: ScannedItem) -> ScannedItem {
        self.is_under_way = self.there.paths.is_empty();
        let there = (!self.is_under_way).then(|| Arc::clone(&self.there));
        ScannedItem { other_names: there, ..item }
    }
}

impl Groups {
    /// Names of one file that wait, of all files: beyond, the scan does.
    const WAITING: usize = 65_536;

    /// Whether the scan may find more.
    pub fn has_room(&self) -> bool {
        self.waiting < Self::WAITING
    }

    /// No name waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0 && self.released.is_empty()
    }

    /// Takes what the scan has found; gives it back if it is to be sent, or to become a link now.
    fn take(&mut self, item: ScannedItem) -> Option<ScannedItem> {
        let Some(file) = item.file.filter(|_| item.is_one_of_many()) else { return Some(item) };
        let all = item.names;
        let group = self.files.entry(file).or_insert_with(|| NamedFile { unseen: all, ..NamedFile::default() });
        group.unseen = group.unseen.saturating_sub(1);
        if group.is_under_way {
            group.waiting.push(item);
            self.waiting += 1;
            return None;
        }
        let placed = group.place(item);
        if group.is_over() {
            self.files.remove(&file);
        }
        Some(placed)
    }

    /// No link could be made of the names that this one was given.
    fn try_others(&mut self, item: ScannedItem) {
        let (Some(file), Some(tried)) = (item.file, &item.other_names) else { return };
        let group = self.files.entry(file).or_default();
        let item = match group.there.paths == tried.paths || group.there.paths.is_empty() {
            // None of them serves this one: it is sent.
            true => {
                let sent = ScannedItem { other_names: None, judgment: None, ..item };
                if !group.is_under_way {
                    group.is_under_way = true;
                    return self.released.push_back(sent);
                }
                sent
            }
            false => ScannedItem { other_names: None, ..item },
        };
        if group.is_under_way {
            group.waiting.push(item);
            self.waiting += 1;
        } else {
            let placed = group.place(item);
            self.released.push_back(placed);
        }
    }

    /// The name that was sent for its file is there by now: the others become links to it.
    fn is_there(&mut self, file: (u64, u64), mut names: OtherNames) {
        let Some(group) = self.files.get_mut(&file) else { return };
        let room = limits::NAMES_OF_ONE.saturating_sub(names.paths.len());
        names.paths.extend(group.there.paths.iter().take(room).cloned());
        (group.there, group.is_under_way) = (Arc::new(names), false);
        self.release(file);
    }

    /// The name that was to be sent for its file is not there: the next one is sent.
    fn is_not_there(&mut self, file: (u64, u64)) {
        if let Some(group) = self.files.get_mut(&file) {
            group.is_under_way = false;
            self.release(file);
        }
    }

    /// Names wait no more, as far as one is there; else the first of them is sent.
    fn release(&mut self, file: (u64, u64)) {
        let Entry::Occupied(mut entry) = self.files.entry(file) else { return };
        let group = entry.get_mut();
        let released = if group.there.paths.is_empty() { group.waiting.len().min(1) } else { group.waiting.len() };
        self.waiting -= released;
        let items: Vec<_> = group.waiting.drain(..released).collect();
        for item in items {
            let placed = group.place(item);
            self.released.push_back(placed);
        }
        // Where none is there nobody needs to know that one has been tried.
        if group.is_over() || (group.there.paths.is_empty() && !group.is_under_way) {
            entry.remove();
        }
    }
}

impl Sender {
    /// What the scan has found is sent, or waits for another name of its file.
    pub(super) fn find(&mut self, now: Instant, item: ScannedItem) {
        let item = match item.is_one_of_many() {
            true => {
                // It may be long before it is compared, and its directory is told to be listed before.
                self.tell_name(now, &item);
                self.groups.take(item)
            }
            false => Some(item),
        };
        item.into_iter().for_each(|item| self.begin(now, item));
        self.begin_released(now);
    }

    /// Begins with names that have waited, and wait no more.
    pub(super) fn begin_released(&mut self, now: Instant) {
        while let Some(item) = self.groups.released.pop_front() {
            self.begin(now, item);
        }
    }

    fn begin(&mut self, now: Instant, item: ScannedItem) {
        let is_link = item.other_names.is_some();
        self.progress.bytes_found += if is_link { 0 } else { item.size.unwrap_or(0) };
        if self.is_compared(&item) {
            return self.compare_later(now, item);
        }
        match self.config.options.plan_only {
            true => {
                let size = item.size.unwrap_or(0);
                self.end_item(&item, size, FileDigests::default(), Outcome::Planned);
            }
            false => self.admit(now, item),
        }
    }

    /// An item has ended that was sent for all names of its file.
    pub(super) fn end_first_name(&mut self, item: &ScannedItem, digests: FileDigests, outcome: &Outcome) {
        let Some(file) = item.file.filter(|_| item.is_one_of_many()) else { return };
        let is_there = matches!(outcome, Outcome::Published | Outcome::Same | Outcome::Planned);
        if !is_there {
            return self.groups.is_not_there(file);
        }
        let is_proven = self.removes(item, outcome);
        let anew = *outcome == Outcome::Planned;
        self.groups.is_there(file, OtherNames { paths: vec![self.target(item)], anew, digests, is_proven });
    }

    /// The receiver could not make a link.
    pub(super) fn send_unlinked(&mut self, item: ScannedItem) {
        self.groups.try_others(item);
    }

    /// A source that is looked at once more is another file by now: other names of what it was are not names of it.
    /// Gives it back unless it waits for a name of its own.
    pub(super) fn regroup(&mut self, before: &ScannedItem, mut found: ScannedItem) -> Option<ScannedItem> {
        let (Some(file), true) = (before.file, before.is_one_of_many()) else {
            // A name of its own, whatever else it has come to be.
            return Some(ScannedItem { names: 1, ..found });
        };
        if found.file == Some(file) {
            found.names = before.names;
            return Some(found);
        }
        self.groups.is_not_there(file);
        Some(ScannedItem { names: 1, ..found })
    }
}

impl ScannedItem {
    /// Whether it is sent for all names of its file.
    pub(super) fn is_one_of_many(&self) -> bool {
        self.names > 1 && self.kind != ItemKind::Directory && self.other_names.is_none()
    }
}
