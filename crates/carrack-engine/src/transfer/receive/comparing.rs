//! What the sender says that it has, compared with what is there; and what only the destination has.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Instant;

use carrack_core::attributes::{AttributeKind, Attributes, KeptAttributes, Lacks};
use carrack_core::ids::BundleId;
use carrack_core::judgment::{ItemDifference, Judgment};
use carrack_core::plan::compare::CompareRules;
use carrack_core::report::{Failure, ItemKind};
use carrack_core::request::{DeletionExtent, Existing};
use carrack_core::timeline::Work;
use carrack_core::transfer::machine::Machine;
use carrack_core::wire::control::Tell;
use carrack_core::wire::peer::{AskedIndex, AskedItem, Question};

use super::ReceiveRun;
use super::referring::{PendingAnswer, ReferredAs, ReferredItem, state_of};
use super::renaming::{NextOld, OldName, TakenName};
use super::sweep::SourceNow;
use crate::storage::posix::references::FoundReference;
use crate::storage::write::{StandingItem, TIME_OF_MIXTURE};
use crate::sync::lock;
use crate::transfer::content_readers;

/// What the user is asked.
#[derive(Default)]
pub(super) enum UserAnswer {
    #[default]
    NotAsked,
    Open,
    Given(bool),
}

/// A question of the sender.
pub(super) struct ReceivedQuestion {
    pub number: BundleId,
    pub question: Question,
}

/// Files whose content is being compared: what waits to be read, and of each file what is known.
#[derive(Default)]
pub(super) struct Contents {
    waiting: Mutex<VecDeque<ReadNext>>,
    known: Mutex<HashMap<AskedIndex, ComparedContent>>,
    /// Path and size of those of which chunks are told.
    pub(super) chunked: Mutex<HashMap<AskedIndex, (Vec<u8>, u64)>>,
    /// Digests of the paths of those of which they were told: patches of no other come.
    pub(super) told: Mutex<HashSet<u64>>,
}

/// A file, and what it holds at either side, as soon as that is known.
struct ComparedContent {
    item: AskedItem,
    there: Option<StandingItem>,
    with: ComparedWith,
    /// What it is compared with after that.
    further: VecDeque<FoundReference>,
    source: Option<Option<[u8; 32]>>,
    /// That of the source is of samples.
    by_samples: bool,
    own: Option<Option<[u8; 32]>>,
}

/// What the content of a file is compared with.
#[derive(Clone, Copy)]
enum ComparedWith {
    /// What stands at its name.
    Own,
    /// What a reference directory has.
    Reference(FoundReference),
    /// What the destination has under other names.
    OldNames,
}

/// What a thread reads next.
#[derive(Clone, Copy)]
pub(super) enum ReadNext {
    /// What a file is compared with.
    Of(AskedIndex),
    /// A file that may have been renamed, before it is known whether any is.
    Ahead(OldName),
    /// What stands at the name of a small file that has changed.
    Chunks(AskedIndex),
}

impl ReceiveRun {
    pub(super) fn compare(&self, asked: ReceivedQuestion) {
        let ReceivedQuestion { number, mut question } = asked;
        question.items.iter_mut().for_each(|item| self.localize(item));
        let mut referred = Vec::new();
        let judgments = match self.driver.options.rules() {
            Some(rules) => self.judge(&rules, number, &question.items, &mut referred),
            None => Vec::new(),
        };
        if let Some(sweep) = &self.sweep {
            // Of what is not compared nobody knows whether this run has brought it.
            let is_new = |index: u32| match judgments.get(index as usize) {
                Some(judgment) if judgment.is_open() => self.is_absent(AskedIndex { number, index }),
                judged => judged.is_none_or(|judgment| *judgment == Judgment::New),
            };
            let items = (0..).zip(&question.items).map(|(index, item)| (&item.path[..], is_new(index)));
            // Where they come first, nothing has been brought yet.
            let may_be_new = !self.driver.options.names_first();
            let names: Vec<&[u8]> = question.names.iter().map(Vec::as_slice).collect();
            let is_asked = may_be_new && sweep.counts_names() && !names.is_empty();
            let look = || self.destination.standing(&names, Some(&self.comparing));
            let standing = if is_asked { self.driver.stages.aside(Work::Begin, look) } else { Vec::new() };
            let stands = |at: usize| matches!(standing.get(at), Some(Ok(Some(_))));
            let names = names.iter().enumerate().map(|(at, name)| (*name, may_be_new && !stands(at)));
            // The destination itself is no name.
            sweep.has(&*self.destination, items.chain(names).filter(|(path, _)| !path.is_empty()));
            sweep.listed(&*self.destination, &question.listed, Some(&self.comparing));
        }
        if !referred.is_empty() {
            return self.make_later(referred, PendingAnswer::Question(number, judgments));
        }
        self.answer(number, judgments);
    }

    /// Answers a question; of files that are sent as patches, chunks are read then.
    pub(super) fn answer(&self, number: BundleId, judgments: Vec<Judgment>) {
        let is_chunked = |judgment: &Judgment| matches!(judgment, Judgment::Chunked(_));
        let chunked = (0..).zip(&judgments).filter(|(_, judgment)| is_chunked(judgment));
        let chunked: Vec<_> = chunked.map(|(index, _)| ReadNext::Chunks(AskedIndex { number, index })).collect();
        self.driver.tell(|machine| {
            machine.handle_compared(Instant::now(), number, judgments);
            lock(&self.contents.waiting).extend(chunked);
        });
    }

    /// Whether nothing stands at the name of a file whose content is being compared.
    fn is_absent(&self, asked: AskedIndex) -> bool {
        lock(&self.contents.known).get(&asked).is_some_and(|content| content.there.is_none())
    }

    /// What becomes of each, where what reference directories have of them is not made.
    fn judge(
        &self,
        rules: &CompareRules,
        number: BundleId,
        items: &[AskedItem],
        referred: &mut Vec<ReferredItem>,
    ) -> Vec<Judgment> {
        let paths: Vec<&[u8]> = items.iter().map(|item| &item.path[..]).collect();
        let standing =
            self.driver.stages.aside(Work::Begin, || self.destination.standing(&paths, Some(&self.comparing)));
        let standing = self.with_what_they_lack(items, standing);
        let judged = (0..).zip(items).zip(standing).map(|((index, item), there)| {
            let asked = AskedIndex { number, index };
            self.judge_one(rules, asked, item, there, referred)
        });
        judged.collect()
    }

    /// With what each lacks of what only extended attributes show, where that is given.
    fn with_what_they_lack(
        &self,
        items: &[AskedItem],
        standing: Vec<Result<Option<StandingItem>, Failure>>,
    ) -> Vec<Result<Option<StandingItem>, Failure>> {
        if !self.giving.kept().are_listed() {
            return standing;
        }
        let both: Vec<_> = items.iter().zip(standing).collect();
        let with = |(item, there): &(&AskedItem, Result<Option<StandingItem>, Failure>)| {
            let lacks = |there: StandingItem| {
                let is_one = there.state.kind == item.kind && item.kind != ItemKind::Symlink;
                let lacks = if is_one { self.destination.lacks(&item.path, &item.others) } else { Lacks::default() };
                StandingItem { lacks, ..there }
            };
            there.clone().map(|there| there.map(lacks))
        };
        self.driver.stages.aside(Work::Begin, || self.comparing.look(&both, with))
    }

    fn judge_one(
        &self,
        rules: &CompareRules,
        asked: AskedIndex,
        item: &AskedItem,
        there: Result<Option<StandingItem>, Failure>,
        referred: &mut Vec<ReferredItem>,
    ) -> Judgment {
        // What cannot be looked at is sent, and writing it tells why it cannot be written.
        let Ok(there) = there else { return Judgment::New };
        let is_renamed = self.renaming.as_ref().is_some_and(|renaming| renaming.is_told(&item.path));
        let there = there.filter(|_| !is_renamed);
        let judged = match item.kind {
            ItemKind::Directory => return self.judge_directory(item, there.as_ref()),
            _ if item.hard_link.is_some() => return self.judge_further_name(rules, item, there.as_ref()),
            ItemKind::Symlink | ItemKind::Special => self.judge_link(rules, item, there.as_ref()),
            ItemKind::File => match (rules.judge(&state_of(item), there.as_ref().map(|there| &there.state)), &there) {
                (Judgment::Same, Some(there)) if self.shares_attributes(rules, item, there) => {
                    Judgment::Differs(ItemDifference::default())
                }
                // Whatever is compared, and whatever may stay.
                (judged, Some(there)) if there.is_mixture || self.has_time_of_mixture(judged, item, there) => {
                    Judgment::Differs(ItemDifference { time: true, ..ItemDifference::default() })
                }
                (judged, _) => judged,
            },
        };
        if matches!(judged, Judgment::New | Judgment::Differs(_)) {
            match self.refer(rules, item, there.as_ref()) {
                Some(ReferredAs::Left) => return Judgment::Same,
                Some(ReferredAs::Made(found, as_link)) => {
                    let one = ReferredItem { index: asked.index, item: item.clone(), found, as_link, renamed: None };
                    if self.driver.options.plan_only {
                        self.plan_referred(&one);
                        return Judgment::Same;
                    }
                    referred.push(one);
                    return judged;
                }
                Some(ReferredAs::Undecided(found)) => return self.compare_content(asked, item, there, found.into()),
                None if judged == Judgment::New && self.may_be_renamed(item) => {
                    return self.compare_with_old_names(asked, item);
                }
                None => self.plan_to_write(item, there.as_ref()),
            }
        }
        match (judged, there) {
            // What another name of the source is, this one is not: writing it tells so.
            (Judgment::Same, Some(there)) if !self.is_own_name(&item.path, &there) => Judgment::New,
            // What fails here fails again when it is written, and is told then.
            (Judgment::Same, Some(there)) if !self.give_attributes(rules, item, &there) => Judgment::New,
            (Judgment::Undecided, Some(there)) => {
                let further = match self.refer(rules, item, Some(&there)) {
                    Some(ReferredAs::Undecided(found)) => found.into(),
                    _ => VecDeque::new(),
                };
                self.compare_content(asked, item, Some(there), further)
            }
            (Judgment::Differs(difference), Some(there)) if self.may_be_patched(item, &there) => {
                self.chunk_later(asked, item);
                Judgment::Chunked(difference)
            }
            (judgment, _) => judgment,
        }
    }

    /// Has the content of a file compared with what stands at its name, if something of its size does, and with what
    /// reference directories have.
    fn compare_content(
        &self,
        asked: AskedIndex,
        item: &AskedItem,
        there: Option<StandingItem>,
        mut further: VecDeque<FoundReference>,
    ) -> Judgment {
        let is_alike = there.is_some_and(|there| there.state.kind == item.kind && there.state.size == item.size);
        let with = match further.front().filter(|_| !is_alike) {
            Some(&found) => {
                further.pop_front();
                ComparedWith::Reference(found)
            }
            None => ComparedWith::Own,
        };
        let (source, by_samples, own) = (None, false, None);
        let content = ComparedContent { item: item.clone(), there, with, further, source, by_samples, own };
        lock(&self.contents.known).insert(asked, content);
        self.driver.queue(&self.contents.waiting, ReadNext::Of(asked));
        Judgment::Undecided
    }

    /// Whether a file has the time that one has while it is written in place, and its source has another: the marker
    /// that names it may be gone, or be another run's. What is left because it exists is left all the same.
    fn has_time_of_mixture(&self, judged: Judgment, item: &AskedItem, there: &StandingItem) -> bool {
        let is_mixture = !matches!(judged, Judgment::Left(_))
            && there.state.kind == ItemKind::File
            && there.state.mtime == Some(TIME_OF_MIXTURE);
        is_mixture && self.properties.times.is_some() && item.mtime.is_some_and(|mtime| mtime > TIME_OF_MIXTURE)
    }

    /// Whether only the destination may have a file, under another name.
    fn may_be_renamed(&self, item: &AskedItem) -> bool {
        let renaming = self.renaming.as_ref().filter(|_| item.kind == ItemKind::File);
        renaming.is_some_and(|renaming| renaming.may_be(item))
    }

    /// Has the content of a file compared with what only the destination has: the source tells first.
    fn compare_with_old_names(&self, asked: AskedIndex, item: &AskedItem) -> Judgment {
        let Some(renaming) = &self.renaming else { return Judgment::New };
        let by_samples = renaming.by_samples();
        let (with, further) = (ComparedWith::OldNames, VecDeque::new());
        let content =
            ComparedContent { item: item.clone(), there: None, with, further, source: None, by_samples, own: None };
        lock(&self.contents.known).insert(asked, content);
        if !by_samples && let Some(old) = renaming.ahead(item) {
            self.driver.queue(&self.contents.waiting, ReadNext::Ahead(old));
        }
        if by_samples { Judgment::Sampled } else { Judgment::Undecided }
    }

    /// Whether what stands at a path is no other name's of this copy. A dry run, which cannot find out which names are
    /// one, remembers none of them: there may be millions.
    fn is_own_name(&self, path: &[u8], there: &StandingItem) -> bool {
        let file = there.file.filter(|_| !self.driver.options.plan_only);
        file.filter(|_| there.folds).is_none_or(|file| self.destination.claim(path, file))
    }

    /// Whether nothing stands at a path, and nothing is to be made where nothing is.
    pub(super) fn leaves_absent(&self, path: &[u8]) -> bool {
        let is_only = self.driver.options.existing == Existing::Only;
        is_only && matches!(self.destination.standing(&[path], None).pop(), Some(Ok(None)))
    }

    /// Reads files whose content is to be compared, until the transfer has ended.
    pub(super) fn read_contents(&self) {
        let over = || self.driver.is_over();
        while let Some(next) = self.driver.next_of(&self.contents.waiting) {
            let asked = match next {
                ReadNext::Of(asked) => asked,
                ReadNext::Ahead(old) => {
                    if self.renaming.as_ref().is_some_and(|renaming| renaming.begins(old)) {
                        self.read_old(old, false);
                    }
                    continue;
                }
                ReadNext::Chunks(asked) => {
                    self.read_chunks(asked);
                    continue;
                }
            };
            let what = lock(&self.contents.known).get(&asked).map(|one| (one.item.path.clone(), one.with));
            let Some((path, with)) = what else { continue };
            let own = match (with, &self.referring) {
                (ComparedWith::OldNames, _) => {
                    self.find_old_name(asked);
                    continue;
                }
                (ComparedWith::Reference(found), Some(referring)) => {
                    referring.references.content(&found, &path, content_readers(), &over)
                }
                _ => self.destination.content(&path, content_readers(), &over),
            };
            // What cannot be read is sent, and writing it tells why.
            let own = own.unwrap_or_default();
            self.content_known(asked, |content| content.own = Some(own));
        }
    }

    /// Reads what only the destination has.
    fn read_old(&self, old: OldName, by_samples: bool) {
        let (Some(renaming), Some(referring)) = (&self.renaming, &self.referring) else { return };
        let path = renaming.path(old);
        let read = referring.references.find_own(&path).and_then(|found| {
            let over = || self.driver.is_over();
            let digest = match by_samples {
                true => referring.references.samples(&found, &path).map(Some),
                false => referring.references.content(&found, &path, content_readers(), &over),
            };
            Some((found, digest.ok().flatten()?))
        });
        renaming.has_read(old, read);
    }

    /// Decides about a file that only the destination may have, under another name; the source has told what it holds.
    fn find_old_name(&self, asked: AskedIndex) {
        let Some(ComparedContent { item, source, by_samples, .. }) = lock(&self.contents.known).remove(&asked) else {
            return;
        };
        let (Some(renaming), Some(rules)) = (&self.renaming, self.driver.options.rules()) else { return };
        let is_over = || self.driver.is_over();
        let taken = source.flatten().and_then(|digest| {
            loop {
                match renaming.next(&item, digest, &is_over) {
                    NextOld::Is(old) => return Some(old),
                    NextOld::Read(old) => self.read_old(old, by_samples),
                    NextOld::None => return None,
                }
            }
        });
        let taken = taken.and_then(|old| Some((old, renaming.found(old)?, renaming.path(old))));
        // It may have been written to between the listing and the reading. And of what nobody has read whole no program
        // is made that runs with the rights of others.
        let is_believed = |found: &FoundReference, path: &[u8]| {
            let has_time = found.item().state.mtime == item.mtime;
            !by_samples || (has_time && !self.makes_anew(&item, &self.found_item(&item, (found, path)), false))
        };
        let (taken, left) = match taken {
            Some((old, found, path)) if !is_believed(&found, &path) => (None, Some(old)),
            taken => (taken, None),
        };
        left.into_iter().for_each(|old| renaming.stays(old));
        if let Some((old, found, path)) = taken {
            let as_link = self.may_be_linked(&item, &found) && self.is_as_wanted(&rules, &item, (&found, &path));
            let renamed = Some(TakenName { old, by_samples });
            let one = ReferredItem { index: asked.index, item, found, as_link, renamed };
            if !self.driver.options.plan_only {
                return self.make_later(vec![one], PendingAnswer::Content(asked));
            }
            self.plan_referred(&one);
            return self
                .driver
                .tell(|machine| machine.handle_content_compared(Instant::now(), asked, true, Vec::new()));
        }
        // Of what samples do not tell apart the source tells none.
        if by_samples || source.flatten().is_some() {
            self.plan_to_write(&item, None);
        }
        self.driver.tell(|machine| machine.handle_content_compared(Instant::now(), asked, false, Vec::new()));
    }

    /// The sender has told what its file holds.
    pub(super) fn content_told(&self, asked: AskedIndex, digest: Option<[u8; 32]>) {
        let waits = {
            let mut known = lock(&self.contents.known);
            let content = known.get_mut(&asked).filter(|one| matches!(one.with, ComparedWith::OldNames));
            content.map(|content| content.source = Some(digest)).is_some()
        };
        if waits {
            return self.driver.queue(&self.contents.waiting, ReadNext::Of(asked));
        }
        self.content_known(asked, |content| content.source = Some(digest));
    }

    /// Decides about a file once both are known.
    fn content_known(&self, asked: AskedIndex, note: impl FnOnce(&mut ComparedContent)) {
        let decided = {
            let mut known = lock(&self.contents.known);
            known.get_mut(&asked).map(note);
            let is_decided = known.get(&asked).is_some_and(|one| one.source.is_some() && one.own.is_some());
            if is_decided { known.remove(&asked) } else { None }
        };
        let (Some(content), Some(rules)) = (decided, self.driver.options.rules()) else { return };
        let is_alike = content.source == content.own && content.own.flatten().is_some();
        let ComparedContent { item, there, with, .. } = &content;
        let same = match (is_alike, with) {
            (false, _) => false,
            (true, ComparedWith::Own) => there.as_ref().is_some_and(|there| {
                let may_stay = !self.shares_attributes(&rules, item, there) && self.is_own_name(&item.path, there);
                may_stay && self.give_attributes(&rules, item, there)
            }),
            (true, ComparedWith::Reference(found)) => match self.referred_as(&rules, item, *found) {
                ReferredAs::Made(found, as_link) => {
                    let one = ReferredItem { index: asked.index, item: item.clone(), found, as_link, renamed: None };
                    if !self.driver.options.plan_only {
                        return self.make_later(vec![one], PendingAnswer::Content(asked));
                    }
                    self.plan_referred(&one);
                    true
                }
                _ => true,
            },
            // Decided where it is found.
            (true, ComparedWith::OldNames) => false,
        };
        // One that the source cannot read fails.
        if !same && content.source.flatten().is_some() {
            let mut content = content;
            if let Some(next) = content.further.pop_front() {
                (content.with, content.own) = (ComparedWith::Reference(next), None);
                lock(&self.contents.known).insert(asked, content);
                return self.driver.queue(&self.contents.waiting, ReadNext::Of(asked));
            }
            if content.there.is_none() && self.may_be_renamed(&content.item) {
                content.with = ComparedWith::OldNames;
                lock(&self.contents.known).insert(asked, content);
                return self.driver.queue(&self.contents.waiting, ReadNext::Of(asked));
            }
            self.plan_to_write(&content.item, content.there.as_ref());
            if content.there.is_some_and(|there| self.may_be_patched(&content.item, &there)) {
                self.chunk_later(asked, &content.item);
                return self.driver.queue(&self.contents.waiting, ReadNext::Chunks(asked));
            }
        }
        self.driver.tell(|machine| machine.handle_content_compared(Instant::now(), asked, same, Vec::new()));
    }

    /// What is the same gets the permissions and the time of its source, as far as it has others; `false` if it cannot.
    fn give_attributes(&self, rules: &CompareRules, item: &AskedItem, there: &StandingItem) -> bool {
        let (is_other, is_other_time) = self.other_attributes(rules, item, there);
        let tell = || self.changes.iter().for_each(|changes| changes.attributes_set(item, there));
        let mtime = if is_other_time { item.mtime } else { there.state.mtime };
        let attributes = || Attributes { mode: item.mode, mtime, others: item.others.clone() };
        if (!is_other && !is_other_time) || self.driver.options.plan_only {
            // What cannot be given is told each time.
            if !self.driver.options.plan_only && is_short_of(self.driver.options.kept, item, there) {
                self.destination.note_unkept(&item.path, &attributes());
            }
            tell();
            return true;
        }
        let set = self.destination.set_attributes(&item.path, &attributes(), there.file);
        // What was refused is as it was.
        let has_changed = set == Ok(true);
        self.attributes_set.fetch_add(u64::from(has_changed), Ordering::Relaxed);
        if has_changed {
            tell();
        }
        set.is_ok()
    }

    /// Deletes what only the destination has, if nothing speaks against it.
    pub(super) fn delete(&self, failed: u64) {
        let Some(sweep) = &self.sweep else { return };
        if let Some(renaming) = self.renaming.as_ref().filter(|renaming| renaming.left_out() > 0) {
            let why = "only the destination has them, and it has too many for all to be compared";
            let by_samples = if renaming.by_samples() { ", so samples were not believed" } else { "" };
            let told = format!("{} files were not taken for renamed: {why}{by_samples}", renaming.left_out());
            (self.driver.voice.command)(Tell::Note(told));
        }
        let plan_only = self.driver.options.plan_only;
        let question = sweep.question(failed, plan_only);
        let Some(may) = question.map_or(Some(true), |extent| self.ask(extent)) else { return };
        let delete = || sweep.delete(&*self.destination, (failed, may), plan_only, self);
        self.driver.stages.aside(Work::Publish, delete);
        let appeared = sweep.ended().appeared;
        if appeared > 0 {
            let many = format!("{appeared} items were to be deleted and stay: the source has them by now");
            let one = "an item was to be deleted and stays: the source has it by now";
            (self.driver.voice.command)(Tell::Note(if appeared == 1 { one.to_owned() } else { many }));
        }
    }
}

/// Whether what stands there has another owner or group than was asked for, or not all special bits.
fn is_short_of(kept: KeptAttributes, item: &AskedItem, there: &StandingItem) -> bool {
    let is_other = |kind, now| item.others.number(kind).is_some_and(|wanted| wanted != now);
    kept.owner && is_other(AttributeKind::OWNER, there.facts.owner)
        || kept.group && is_other(AttributeKind::GROUP, there.facts.group)
        || kept.special_bits && item.others.special_bits() & !there.facts.mode != 0
}

impl ReceiveRun {
    /// Asks the user, by the command; `None` when the transfer has ended.
    fn ask(&self, extent: DeletionExtent) -> Option<bool> {
        *lock(&self.asked) = UserAnswer::Open;
        (self.driver.voice.command)(Tell::Deletion(extent));
        let mut machine = self.driver.lock();
        while machine.outcome().is_none() {
            if let UserAnswer::Given(may) = *lock(&self.asked) {
                return Some(may);
            }
            machine = self.driver.wait(machine);
        }
        None
    }

    /// See [`crate::transfer::Running::may_delete`].
    pub fn may_delete(&self, may: bool) -> u64 {
        self.driver.tell(|_| {
            let asked = &mut *lock(&self.asked);
            let is_open = matches!(asked, UserAnswer::Open);
            if is_open {
                *asked = UserAnswer::Given(may);
            }
            is_open.into()
        })
    }
}

impl SourceNow for ReceiveRun {
    fn still_there(&self, paths: Vec<Vec<u8>>) -> Option<Vec<bool>> {
        self.driver.tell(|machine| machine.ask_still_there(paths));
        let mut machine = self.driver.lock();
        while machine.outcome().is_none() {
            if let Some(answer) = machine.take_still_there() {
                return Some(answer);
            }
            machine = self.driver.wait(machine);
        }
        None
    }

    fn is_over(&self) -> bool {
        self.driver.is_over()
    }
}
