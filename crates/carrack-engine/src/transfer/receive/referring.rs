//! Files of the source that a reference directory at the destination has: they get their names as hard links, or are
//! copied here, and nothing of them is sent.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use carrack_core::attributes::{Attributes, CopyFacts, Lacks};
use carrack_core::ids::BundleId;
use carrack_core::judgment::{Judgment, LeftBecause};
use carrack_core::path::split_name;
use carrack_core::plan::compare::{CompareRules, State};
use carrack_core::reference::ReferenceUse;
use carrack_core::report::{DestinationCounts, Failure, ItemChange, ItemKind};
use carrack_core::request::Existing;
use carrack_core::timeline::Work;
use carrack_core::transfer::machine::Machine;
use carrack_core::wire::peer::{AskedIndex, AskedItem};
use carrack_sys::host;

use super::ReceiveRun;
use super::renaming::TakenName;
use crate::storage::posix::references::{FoundReference, References};
use crate::storage::properties::Properties;
use crate::storage::write::{Entry, Referred, StandingItem, Stored};
use crate::sync::lock;

/// Threads that make what reference directories have.
const MAKERS: usize = 2;

/// Reference directories, what waits to be made of them, and what has been.
pub(super) struct Referring {
    pub references: References,
    waiting: Mutex<VecDeque<ReferredItems>>,
    made: Mutex<VecDeque<MadeItems>>,
    linked: MadeTally,
    copied: MadeTally,
}

#[derive(Default)]
struct MadeTally {
    files: AtomicU64,
    bytes: AtomicU64,
}

/// A file of the source that a reference directory has.
pub(super) struct ReferredItem {
    /// Its place in what was asked.
    pub index: u32,
    pub item: AskedItem,
    pub found: FoundReference,
    /// It gets a hard link; else it is copied.
    pub as_link: bool,
    /// What is found is this one of the destination, which it takes the name from.
    pub renamed: Option<TakenName>,
}

/// What is answered when files have been made.
pub(super) enum PendingAnswer {
    /// To a question: what becomes of each file, where none of them can be made.
    Question(BundleId, Vec<Judgment>),
    /// To what the source has told of one file's content.
    Content(AskedIndex),
}

/// Files that are to be made, and the answer that waits for them.
struct ReferredItems {
    items: Vec<ReferredItem>,
    answer: PendingAnswer,
}

/// Files that wait for their names, and the answer that waits for them.
pub(super) struct MadeItems {
    items: Vec<MadeItem>,
    answer: PendingAnswer,
}

struct MadeItem {
    index: u32,
    /// `None`: what stands there is to be kept.
    entry: Option<Box<dyn Entry>>,
    size: u64,
    is_linked: bool,
    change: Option<ItemChange>,
    renamed: Option<TakenName>,
}

/// How a file is referred to.
pub(super) enum ReferredAs {
    /// Nothing is made of it.
    Left,
    /// It is made so.
    Made(FoundReference, bool),
    /// These are of its size: only the content tells.
    Undecided(Vec<FoundReference>),
}

/// An item of the source, as it is compared.
pub(super) fn state_of(item: &AskedItem) -> State {
    State { kind: item.kind, size: item.size, mtime: item.mtime }
}

impl Referring {
    pub fn new(references: References) -> Self {
        let (linked, copied) = (MadeTally::default(), MadeTally::default());
        Self { references, waiting: Mutex::default(), made: Mutex::default(), linked, copied }
    }

    fn count(&self, is_linked: bool, size: u64) {
        let tally = if is_linked { &self.linked } else { &self.copied };
        tally.files.fetch_add(1, Ordering::Relaxed);
        tally.bytes.fetch_add(size, Ordering::Relaxed);
    }

    /// With what has been made.
    pub fn counted(&self, counts: DestinationCounts) -> DestinationCounts {
        let of = |tally: &MadeTally| (tally.files.load(Ordering::Relaxed), tally.bytes.load(Ordering::Relaxed));
        let ((files_linked, bytes_linked), (files_copied_there, bytes_copied_there)) =
            (of(&self.linked), of(&self.copied));
        DestinationCounts { files_linked, bytes_linked, files_copied_there, bytes_copied_there, ..counts }
    }
}

impl MadeItems {
    /// Whether something of it has to be synced first.
    pub fn await_sync(&self) -> bool {
        self.items.iter().flat_map(|made| &made.entry).any(|entry| entry.awaits_sync())
    }

    /// Removes what will get no names.
    pub fn remove(self) {
        self.items.iter().flat_map(|made| &made.entry).for_each(|entry| entry.remove());
    }
}

impl ReceiveRun {
    /// Starts those who make what reference directories have.
    pub(super) fn start_referring(self: &std::sync::Arc<Self>) {
        if self.referring.is_some() && !self.driver.options.plan_only {
            (0..MAKERS).for_each(|_| self.spawn("making what reference directories have", Self::make_referred));
        }
    }

    /// Whether a file may not get the attributes of its source where it stands, and is sent: it shares them with other
    /// names, or would come to run as somebody.
    pub(super) fn shares_attributes(&self, rules: &CompareRules, item: &AskedItem, there: &StandingItem) -> bool {
        let refers = self.referring.as_ref().is_some_and(|referring| referring.references.are_named());
        let is_shared = refers && there.is_shared && !self.has_attributes(rules, item, there);
        // Other names would get another time with it.
        let is_linked = there.is_shared && self.giving.kept().hard_links;
        let changes_time = is_linked && self.other_attributes(rules, item, there).1;
        is_shared || changes_time || self.makes_anew(item, there, there.is_shared)
    }

    /// Whether nothing is made of what a reference directory has.
    pub(super) fn leaves_what_is_elsewhere(&self) -> bool {
        self.referring.as_ref().is_some_and(|referring| referring.references.used() == Some(ReferenceUse::Compare))
    }

    /// Whether a file may not be given what it lacks of an item.
    pub(super) fn makes_anew(&self, item: &AskedItem, there: &StandingItem, is_shared: bool) -> bool {
        let mode = self.giving.mode_without(item.mode, &item.others, there.lacks);
        let wanted = self.giving.wanted(mode, &item.others, &there.facts, false);
        self.giving.makes_anew((&wanted, &item.others), &there.facts, there.lacks, is_shared)
    }

    /// Whether a file has the attributes of its source, as far as any are set.
    pub(super) fn has_attributes(&self, rules: &CompareRules, item: &AskedItem, there: &StandingItem) -> bool {
        let (is_other, is_other_time) = self.other_attributes(rules, item, there);
        !is_other && !is_other_time
    }

    /// What reference directories have of a file that is not there so: the first that has it with its attributes
    /// counts, or the first that has it.
    pub(super) fn refer(
        &self,
        rules: &CompareRules,
        item: &AskedItem,
        there: Option<&StandingItem>,
    ) -> Option<ReferredAs> {
        let referring = self.referring.as_ref().filter(|_| item.kind == ItemKind::File)?;
        let used = referring.references.used;
        let is_free = match there.map(|there| there.state.kind) {
            None => true,
            // To have nothing made there, what stands there would have to go.
            Some(ItemKind::File | ItemKind::Symlink) => used != ReferenceUse::Compare,
            Some(_) => false,
        };
        if !is_free {
            return None;
        }
        let rules = CompareRules { existing: Existing::Replace, ..*rules };
        let (mut same, mut undecided) = (Vec::new(), Vec::new());
        for found in referring.references.find(&item.path) {
            match rules.judge(&state_of(item), Some(&found.item().state)) {
                // Of what nobody has read no program is made that runs with the rights of others.
                Judgment::Same if self.makes_anew(item, &self.found_item(item, (&found, &item.path)), false) => {}
                Judgment::Same => same.push(found),
                Judgment::Undecided => undecided.push(found),
                _ => {}
            }
        }
        let is_as_wanted = |found: &FoundReference| self.is_as_wanted(&rules, item, (found, &item.path));
        if !undecided.is_empty() {
            undecided.sort_by_key(|found| !is_as_wanted(found));
            return Some(ReferredAs::Undecided(undecided));
        }
        let found = *same.iter().find(|found| is_as_wanted(found)).or(same.first())?;
        Some(self.referred_as(&rules, item, found))
    }

    /// How a file is referred to that a reference directory has.
    pub(super) fn referred_as(&self, rules: &CompareRules, item: &AskedItem, found: FoundReference) -> ReferredAs {
        let is_as_wanted = self.is_as_wanted(rules, item, (&found, &item.path));
        match self.referring.as_ref().map(|referring| referring.references.used) {
            Some(ReferenceUse::Link) => ReferredAs::Made(found, is_as_wanted),
            Some(ReferenceUse::Compare) if is_as_wanted => ReferredAs::Left,
            _ => ReferredAs::Made(found, false),
        }
    }

    /// A file that was found at a path, with what it lacks of an item.
    pub(super) fn found_item(&self, item: &AskedItem, (found, path): (&FoundReference, &[u8])) -> StandingItem {
        let lacks = self
            .referring
            .as_ref()
            .map_or(Lacks::default(), |referring| referring.references.lacks(found, path, &item.others, &self.giving));
        StandingItem { lacks, ..found.item() }
    }

    /// Whether a file that was found at a path has what the item is to have, and nothing that is never given.
    pub(super) fn is_as_wanted(
        &self,
        rules: &CompareRules,
        item: &AskedItem,
        (found, path): (&FoundReference, &[u8]),
    ) -> bool {
        let keeps_bits = self.giving.gives_special_bits() || found.facts.mode & 0o7000 == 0;
        keeps_bits && self.has_attributes(rules, item, &self.found_item(item, (found, path)))
    }

    /// Whether a file of the destination may get a further name, and not only be copied: whoever owns it can alter it
    /// at any time. Owners that are given are compared.
    pub(super) fn may_be_linked(&self, item: &AskedItem, found: &FoundReference) -> bool {
        let gives_owner = !self.giving.fakes() && self.giving.owners(&item.others).0.is_some();
        gives_owner || found.stat.uid == host::user_id()
    }

    /// In a dry run nothing is made, and all of it told.
    pub(super) fn plan_referred(&self, one: &ReferredItem) {
        let ReferredItem { item, found, as_link, renamed, .. } = one;
        let Some(referring) = &self.referring else { return };
        let is_counted = renamed.is_some_and(|taken| self.end_renaming(taken, true, *as_link));
        let old_path = renamed.zip(self.renaming.as_ref()).map(|(taken, renaming)| renaming.path(taken.old));
        let old_name = old_path.as_deref().filter(|_| *as_link);
        if !is_counted {
            referring.count(*as_link, item.size);
        }
        let change = |changes: &super::Changes| changes.referred(item, &found.item(), *as_link, old_name);
        self.changes.iter().for_each(|changes| changes.push(change(changes)));
    }

    /// Has files made; the answer waits for them.
    pub(super) fn make_later(&self, items: Vec<ReferredItem>, answer: PendingAnswer) {
        if let Some(referring) = &self.referring {
            self.driver.queue(&referring.waiting, ReferredItems { items, answer });
        }
    }

    /// Makes files under hidden names, until the transfer has ended.
    fn make_referred(&self) {
        let Some(referring) = &self.referring else { return };
        let _caller = self.creating.enter();
        while let Some(ReferredItems { items, answer }) = self.driver.next_of(&referring.waiting) {
            let make = |one: &ReferredItem| self.creating.call(|_| self.make_one(referring, one));
            let made: Vec<Option<MadeItem>> = self.driver.stages.aside(Work::Create, || {
                if self.creating.are_several() {
                    self.creating.each(&items, make)
                } else {
                    items.iter().map(make).collect()
                }
            });
            let made = MadeItems { items: made.into_iter().flatten().collect(), answer };
            let left = self.driver.tell(|machine| {
                if machine.outcome().is_some() {
                    return Some(made);
                }
                lock(&referring.made).push_back(made);
                None
            });
            left.into_iter().for_each(MadeItems::remove);
        }
    }

    /// What cannot be linked is copied; what cannot be copied is sent.
    fn make_one(&self, referring: &Referring, one: &ReferredItem) -> Option<MadeItem> {
        let made = self.try_to_make(referring, one);
        if let (None, Some(TakenName { old, .. }), Some(renaming)) = (&made, one.renamed, &self.renaming) {
            renaming.stays(old);
        }
        made
    }

    fn try_to_make(&self, referring: &Referring, one: &ReferredItem) -> Option<MadeItem> {
        let ReferredItem { index, item, found, as_link, renamed } = one;
        let over = || self.driver.is_over();
        let old_path = renamed.zip(self.renaming.as_ref()).map(|(taken, renaming)| renaming.path(taken.old));
        let found_at = old_path.as_deref().unwrap_or(&item.path);
        let directory = referring.references.directory_of(found, found_at).ok()?;
        self.changes.iter().for_each(|changes| changes.note_directory(&*self.destination, split_name(&item.path).0));
        let (mtime, others) = (self.time_to_set(item.mtime), item.others.clone());
        let attributes = Attributes { mode: item.mode, mtime, others };
        let write = |as_link| {
            let attributes = attributes.clone();
            let (path, directory, found) = (&item.path[..], &*directory, &found.stat);
            let referred = Referred { path, attributes, found_at, directory, found, as_link };
            self.destination.write_referred(&referred, &self.writing, &over)
        };
        let linked = if *as_link { write(true).ok() } else { None };
        let is_linked = linked.is_some();
        let stored = linked.map_or_else(|| write(false).ok(), Some)?;
        let old_name = old_path.as_deref().filter(|_| is_linked);
        let change = |changes: &super::Changes| changes.referred(item, &found.item(), is_linked, old_name);
        let entry = match stored {
            Stored::Hidden(entry) => Some(entry),
            _ => None,
        };
        let change = self.changes.as_deref().map(change);
        Some(MadeItem { index: *index, entry, size: item.size, is_linked, change, renamed: *renamed })
    }

    /// With what was made of reference directories.
    pub(super) fn counted_as_referred(&self, counts: DestinationCounts) -> DestinationCounts {
        let counts = self.referring.as_ref().map_or(counts, |referring| referring.counted(counts));
        self.renaming.as_ref().map_or(counts, |renaming| renaming.counted(counts))
    }

    /// What waits for its names.
    pub(super) fn take_made(&self) -> Vec<MadeItems> {
        self.referring.as_ref().map(|referring| lock(&referring.made).drain(..).collect()).unwrap_or_default()
    }

    /// Gives files that were made their names, and answers. What gets none is sent.
    pub(super) fn commit_made(&self, made: MadeItems, synced: &Result<(), Failure>) {
        let Some(referring) = &self.referring else { return made.remove() };
        let MadeItems { items, mut answer } = made;
        let publish = |entry: &dyn Entry| self.publishing.call(|job| job.measure(|_| entry.publish()));
        let publish = |entry: &dyn Entry| self.driver.stages.aside_briefly(Work::Publish, || publish(entry));
        let mut is_same = false;
        for MadeItem { index, entry, size, is_linked, change, renamed } in items {
            let named = entry.map(|entry| {
                let checked = synced.clone().and_then(|()| entry.verify()).inspect_err(|_| entry.remove());
                let named = checked.and_then(|()| publish(&*entry));
                if is_linked {
                    // Of two names of one file a rename takes none away.
                    entry.remove();
                }
                named
            });
            let has_name = matches!(named, Some(Ok(true)));
            let is_counted = renamed.is_some_and(|taken| self.end_renaming(taken, has_name, is_linked));
            let judged = match named {
                Some(Err(_)) => continue,
                None | Some(Ok(false)) => Judgment::Left(LeftBecause::Exists),
                Some(Ok(true)) => {
                    if !is_counted {
                        referring.count(is_linked, size);
                    }
                    self.count_published();
                    change.into_iter().for_each(|change| self.changes.iter().for_each(|all| all.push(change.clone())));
                    is_same = true;
                    Judgment::Same
                }
            };
            if let PendingAnswer::Question(_, judgments) = &mut answer
                && let Some(one) = judgments.get_mut(index as usize)
            {
                *one = judged;
            }
        }
        match answer {
            PendingAnswer::Question(number, judgments) => self.answer(number, judgments),
            PendingAnswer::Content(asked) => {
                self.driver.tell(|machine| machine.handle_content_compared(Instant::now(), asked, is_same, Vec::new()))
            }
        }
    }

    /// The new name is there or not, as a further name of a file of the destination or as a copy of it. Whether it
    /// counts as renamed: what only samples were read of does so as a copy, too, because nobody has verified it.
    fn end_renaming(&self, taken: TakenName, has_name: bool, is_linked: bool) -> bool {
        let Some(renaming) = &self.renaming else { return false };
        match (has_name, is_linked) {
            (true, true) => renaming.has_new_name(taken),
            (true, false) => renaming.is_copied(taken),
            (false, _) => renaming.stays(taken.old),
        }
        has_name && (is_linked || taken.by_samples)
    }

    /// Whether permissions, owner or group, and the time, are others than those to be set.
    pub(super) fn other_attributes(
        &self,
        rules: &CompareRules,
        item: &AskedItem,
        there: &StandingItem,
    ) -> (bool, bool) {
        // In a dry run nothing may be there that could be asked.
        let properties = if self.properties.keeps { self.properties } else { Properties::FILES };
        // Those of a link mean nothing, and it is compared elsewhere.
        let is_directory = item.kind == ItemKind::Directory;
        let mode = self.giving.mode_without(item.mode, &item.others, there.lacks);
        let wanted = self.giving.wanted(mode, &item.others, &there.facts, is_directory);
        let now = CopyFacts { mode: there.facts.mode & 0o7777, ..there.facts };
        let is_other = properties.permissions && (wanted != now || there.lacks.any());
        let sets_time = properties.times.is_some() && !self.driver.options.no_times;
        (is_other, sets_time && !rules.is_one_time(item.mtime, there.state.mtime))
    }
}
