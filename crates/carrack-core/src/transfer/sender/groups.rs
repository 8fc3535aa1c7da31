//! Names of one file: the first that is found is sent, the others become hard links to it once it is there.
//!
//! Of a file that has further names what is kept is its first name, until all names have been found; of a name that
//! waits, all that the scan has found. Names wait only for what is on its way, and the scan goes on once there are few.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;
use std::time::Instant;

use super::Sender;
use crate::attributes::{Attribute, AttributeKind, OtherAttributes, Time};
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
    /// What it was when the name was found that is being sent, or is there.
    state: FoundState,
    /// Names that are there, of which links are made.
    there: Option<Arc<OtherNames>>,
    /// One is being sent or compared.
    is_under_way: bool,
    /// Links that are being made.
    linking: u64,
    /// Those that wait for the one that is under way.
    waiting: Vec<ScannedItem>,
}

/// What tells that two names are of one content: the number of a file that is deleted is given to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FoundState {
    size: Option<u64>,
    mtime: Option<Time>,
    changed: Option<Time>,
}

impl FoundState {
    fn of(item: &ScannedItem) -> Self {
        Self { size: item.size, mtime: item.attributes.mtime, changed: item.changed }
    }
}

impl NamedFile {
    /// Nothing of it is needed any more.
    fn is_over(&self) -> bool {
        self.unseen == 0 && !self.is_under_way && self.waiting.is_empty() && self.linking == 0
    }

    /// The name becomes a link to those that are there; where there is none of the same content, it is sent.
    fn place(&mut self, item: ScannedItem) -> ScannedItem {
        let state = FoundState::of(&item);
        let there = self.there.take_if(|_| self.state != state).map_or_else(|| self.there.clone(), |_| None);
        (self.state, self.is_under_way) = (state, there.is_none());
        self.linking += u64::from(there.is_some());
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

    /// Whether further names of a file can be found by it: there is a bound for all of them.
    fn may_remember(&self, file: (u64, u64)) -> bool {
        self.files.len() < limits::LINKED_FILES || self.files.contains_key(&file)
    }

    /// Takes what the scan has found; gives it back if it is to be sent, or to become a link now.
    fn take(&mut self, item: ScannedItem) -> Option<ScannedItem> {
        let Some(file) = item.file else { return Some(item) };
        let all = item.names;
        let group = self.files.entry(file).or_insert_with(|| NamedFile { unseen: all, ..NamedFile::default() });
        group.unseen = group.unseen.saturating_sub(1);
        if group.is_under_way {
            group.waiting.push(item);
            self.waiting += 1;
            return None;
        }
        Some(group.place(item))
    }

    /// No link could be made of the names that this one was given.
    fn try_others(&mut self, item: ScannedItem) {
        let (Some(file), Some(tried)) = (item.file, item.other_names.clone()) else { return };
        let group = self.files.entry(file).or_default();
        group.linking = group.linking.saturating_sub(1);
        let item = ScannedItem { other_names: None, ..item };
        if group.is_under_way {
            group.waiting.push(item);
            self.waiting += 1;
            return;
        }
        let is_new = group.there.as_ref().is_some_and(|there| there.paths != tried.paths);
        let placed = if is_new {
            group.place(item)
        } else {
            // None of them serves this one: it is sent, for itself and for those that follow.
            (group.state, group.is_under_way) = (FoundState::of(&item), true);
            item
        };
        self.released.push_back(placed);
    }

    /// A link has been made, or has ended otherwise.
    fn has_ended(&mut self, file: (u64, u64)) {
        if let Some(group) = self.files.get_mut(&file) {
            group.linking = group.linking.saturating_sub(1);
            if group.is_over() {
                self.files.remove(&file);
            }
        }
    }

    /// The name that was sent for its file is there by now: the others become links to it.
    fn is_there(&mut self, file: (u64, u64), mut names: OtherNames) {
        let Some(group) = self.files.get_mut(&file) else { return };
        if let Some(earlier) = &group.there {
            let room = limits::NAMES_OF_ONE.saturating_sub(names.paths.len());
            names.paths.extend(earlier.paths.iter().take(room).cloned());
            // It holds for all of them or for none.
            names.is_proven &= earlier.is_proven;
            names.fingerprint = names.fingerprint.filter(|known| earlier.fingerprint == Some(*known));
            if names.digests != earlier.digests {
                names.digests = FileDigests::default();
            }
        }
        (group.there, group.is_under_way) = (Some(Arc::new(names)), false);
        self.release(file);
    }

    /// The name that was to be sent for its file is not there: the next one is sent.
    fn is_not_there(&mut self, file: (u64, u64)) {
        if let Some(group) = self.files.get_mut(&file) {
            group.is_under_way = false;
            self.release(file);
        }
    }

    /// Names wait no more, up to the first that is to be sent itself.
    fn release(&mut self, file: (u64, u64)) {
        let Entry::Occupied(mut entry) = self.files.entry(file) else { return };
        let group = entry.get_mut();
        let mut waiting = std::mem::take(&mut group.waiting).into_iter();
        while !group.is_under_way
            && let Some(item) = waiting.next()
        {
            self.waiting -= 1;
            let placed = group.place(item);
            self.released.push_back(placed);
        }
        group.waiting = waiting.collect();
        if group.is_over() {
            entry.remove();
        }
    }
}

impl Sender {
    /// What the scan has found is sent, or waits for another name of its file.
    pub(super) fn find(&mut self, now: Instant, item: ScannedItem) {
        // A file that grows is not what other names of it were when they were found.
        let is_alone = item.followed || item.file.is_none_or(|file| !self.groups.may_remember(file));
        match item.is_one_of_many() {
            true if is_alone => self.begin(now, not_linked(item)),
            true => {
                let compared = self.is_compared(&item).then(|| item.path.clone()).map(|path| (item.root, path));
                match self.groups.take(item) {
                    Some(item) if item.other_names.is_none() => self.begin(now, item),
                    // It may be long before it is compared, and its directory is told to be listed before.
                    linked => {
                        if let Some((root, path)) = compared {
                            self.tell_path(now, self.place(root, &path));
                        }
                        linked.into_iter().for_each(|item| self.begin(now, item));
                    }
                }
            }
            false => self.begin(now, item),
        }
        self.begin_released(now);
    }

    /// Begins with names that have waited, and wait no more.
    pub(super) fn begin_released(&mut self, now: Instant) {
        while let Some(item) = self.groups.released.pop_front() {
            self.begin(now, item);
        }
    }

    fn begin(&mut self, now: Instant, mut item: ScannedItem) {
        if let (Some(names), Some(file)) = (&item.other_names, item.file)
            && self.expected.check(|| self.target(&item), names.digests.blake3).is_err()
        {
            // What it must hold is looked at when it is read.
            self.groups.has_ended(file);
            item = ScannedItem { other_names: None, names: 1, ..item };
        }
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

    /// A name has ended: of a file that has others, those may go on.
    pub(super) fn end_name(&mut self, item: &ScannedItem, digests: FileDigests, outcome: &Outcome) {
        let Some(file) = item.file else { return };
        if item.other_names.is_some() {
            return self.groups.has_ended(file);
        }
        if !item.is_one_of_many() {
            return;
        }
        if !matches!(outcome, Outcome::Published | Outcome::Same | Outcome::Planned) {
            return self.groups.is_not_there(file);
        }
        let is_proven = self.removes(item, outcome);
        let (anew, fingerprint) = (*outcome == Outcome::Planned, self.fingerprint(item));
        let paths = vec![self.target(item)];
        self.groups.is_there(file, OtherNames { paths, size: item.size, anew, digests, fingerprint, is_proven });
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
            if let Some(group) = self.groups.files.get_mut(&file) {
                group.state = FoundState::of(&found);
            }
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

/// A file whose further names are files of their own: that is counted where it arrives.
fn not_linked(mut item: ScannedItem) -> ScannedItem {
    item.names = 1;
    let others = item.attributes.others.iter().filter(|attribute| attribute.kind != AttributeKind::HARD_LINK);
    let mut list: Vec<_> = others.cloned().chain([Attribute::present(AttributeKind::HARD_LINK)]).collect();
    list.sort_by_key(|attribute| attribute.kind);
    if let Ok(others) = OtherAttributes::new(list) {
        item.attributes.others = others;
    }
    item
}
