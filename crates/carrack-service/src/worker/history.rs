//! What earlier attempts of a task have told by its journal: where this one goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::clock::Moment;
use crate::journal::{CheckMark, EndKind, Item, JournalError, PairEnd, Reader, Record, Recovered, Withdrawn, recover};
use crate::model::{Fence, ItemState, Progress};

/// What is known of a task from its journal.
#[derive(Debug, Default)]
pub struct History {
    /// The last attempt; 0 before the first.
    pub fence: Fence,
    /// By pair; those that no attempt has come to are missing.
    pub pairs: BTreeMap<u32, PairHistory>,
    /// What was told last of the whole task.
    pub progress: Progress,
    /// Time in which workers were there.
    pub active: Duration,
    /// When the attempt under way began, and told something last.
    began: Option<(Moment, Moment)>,
    /// Paths with a digest of their own that were done.
    pub expected_seen: BTreeSet<Vec<u8>>,
    /// Hosts have been reached by some attempt.
    pub reached: bool,
    /// The last attempt has come to its end: this one was asked for.
    pub is_done: bool,
}

/// What an attempt has to do of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// All of it. What a pass that was broken off has left at the destination is found there again.
    Whole,
    /// All of it: what was told was done at another place.
    Anew,
    /// What failed, and what is not there any more of that which was done.
    Failed,
    /// What is not there any more: all of it was done.
    Look,
}

/// What is known of one pair.
#[derive(Debug, Default)]
pub struct PairHistory {
    /// What identifies where the last pass led from and to; empty where that is not known.
    pub place: Vec<u8>,
    /// Passes that came to their end.
    pub passes: u32,
    /// What they have done.
    pub progress: Progress,
    /// Paths that failed in the last of them; nothing else is left to be done.
    pub failed: Vec<Vec<u8>>,
    /// Whether the reason of any of them can pass.
    pub any_can_pass: bool,
    /// Of a task that moves: all sources that were copied have been deleted.
    pub sources_deleted: bool,
    /// A pass has not come to its end.
    pub is_open: bool,
    /// A pass has not come to its end, and another has begun after it.
    left_open: bool,
    /// Some attempt has told what would be done.
    pub has_plan: bool,
    /// Of that pass.
    open_failed: Vec<Vec<u8>>,
    open_can_pass: bool,
    /// Which items were told as done by the pass that has not come to its end.
    pub told: Told,
    /// The task was asked for once more since the last pass over it has begun.
    pub is_asked_again: bool,
    /// How far a check has come in the pass that has not come to its end.
    pub check: Option<CheckSoFar>,
}

/// A check that was broken off.
#[derive(Debug)]
pub struct CheckSoFar {
    /// How far it has come.
    pub mark: CheckMark,
    /// What could not be read until then.
    pub failed: Vec<Item>,
    /// What was told behind it: it is found once more.
    pub told: BTreeMap<Vec<u8>, Item>,
}

impl CheckSoFar {
    fn go_on(&mut self, mark: CheckMark) {
        self.mark = mark;
        let told = std::mem::take(&mut self.told);
        self.failed.extend(told.into_values().filter(|item| item.state == ItemState::Failed));
    }
}

/// More failed paths than this are not kept: the next pass is then over the whole pair.
const FAILED_MOST: usize = 1_000_000;

/// Items that were told, each by 16 bytes: of ten million items, 160 MB.
#[derive(Debug, Default)]
pub struct Told {
    /// Sorted once all are there.
    marks: Vec<u128>,
}

impl Told {
    fn mark(item: &Item) -> u128 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&item.size.to_le_bytes()).update(&[u8::from(item.digest.is_some())]);
        hasher.update(&item.digest.unwrap_or_default()).update(&item.path);
        let digest = hasher.finalize();
        digest.as_bytes().first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
    }

    /// What a journal tells of the pass over a pair that is under way.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(directory: &Path, pair: u32) -> Result<Self, JournalError> {
        Self::read_from(directory, pair, true)
    }

    /// What a journal tells of all passes over a pair.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_all(directory: &Path, pair: u32) -> Result<Self, JournalError> {
        Self::read_from(directory, pair, false)
    }

    fn read_from(directory: &Path, pair: u32, under_way: bool) -> Result<Self, JournalError> {
        let (mut told, mut reader) = (Self::default(), Reader::open(directory).without(Withdrawn::load(directory)?));
        while let Some(record) = reader.next_record()? {
            match record {
                Record::Item(item) if item.pair == pair && item.state.is_settled() => told.add(&item),
                Record::PairEnded(end) if end.pair == pair && under_way => told.marks.clear(),
                _ => {}
            }
        }
        told.settle();
        Ok(told)
    }

    fn add(&mut self, item: &Item) {
        self.marks.push(Self::mark(item));
    }

    fn settle(&mut self) {
        self.marks.sort_unstable();
        self.marks.dedup();
    }

    /// Whether the same was told of an item.
    pub fn has(&self, item: &Item) -> bool {
        !self.marks.is_empty() && self.marks.binary_search(&Self::mark(item)).is_ok()
    }
}

impl PairHistory {
    /// What the decisions that follow a pass need to know of it: where it led, and what was done before.
    pub fn remnant(&self) -> Self {
        Self { passes: self.passes, place: self.place.clone(), progress: self.progress.clone(), ..Self::default() }
    }

    /// Whether the next pass is over paths that failed. An item without a path of its own stands for the whole pair.
    pub fn is_by_paths(&self) -> bool {
        self.passes > 0 && !self.failed.is_empty() && self.failed.iter().all(|path| !path.is_empty())
    }

    /// Whether a pass has begun to do something. One that only tells why the pair was given up has not: it ends as soon
    /// as it has begun, with nothing done.
    pub fn was_begun(&self) -> bool {
        self.is_open || self.left_open || self.progress.items_done > 0
    }

    /// Whether what was told of the pair was done at this place. Journals of earlier versions do not say where: what
    /// they have told is compared with what is there.
    fn was_at(&self, place: &[u8]) -> bool {
        self.place.is_empty() || place.is_empty() || self.place == place
    }
}

impl History {
    /// Reads a task's journal.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(directory: &Path, is_expected: &dyn Fn(&[u8]) -> bool) -> Result<(Self, Recovered), JournalError> {
        let mut history = Self::default();
        let recovered = recover(directory, &mut |record| history.handle(record, is_expected))?;
        history.end_attempt();
        for pair in history.pairs.values_mut() {
            pair.told.settle();
            // A pass that was broken off tries them again.
            pair.open_failed = Vec::new();
        }
        Ok((history, recovered))
    }

    /// What the records of a journal say, one after the other.
    #[cfg(test)]
    pub fn of(records: impl IntoIterator<Item = Record>) -> Self {
        let mut history = Self::default();
        records.into_iter().for_each(|record| history.handle(record, &|_| false));
        history
    }

    /// What is left to be done of a pair that leads from and to this place.
    pub fn rest(&self, pair: u32, place: &[u8]) -> Rest {
        match self.pairs.get(&pair) {
            None => Rest::Whole,
            Some(pair) if !pair.was_at(place) => Rest::Anew,
            Some(pair) if pair.passes == 0 => Rest::Whole,
            Some(pair) if pair.failed.is_empty() => Rest::Look,
            Some(_) => Rest::Failed,
        }
    }

    fn handle(&mut self, record: Record, is_expected: &dyn Fn(&[u8]) -> bool) {
        match record {
            Record::Began { fence, time, .. } => {
                self.end_attempt();
                let was_done = std::mem::take(&mut self.is_done);
                self.pairs.values_mut().for_each(|pair| pair.is_asked_again |= was_done);
                (self.fence, self.began) = (self.fence.max(fence), Some((time, time)));
                self.pairs.values_mut().for_each(|pair| (pair.open_failed, pair.open_can_pass) = (Vec::new(), false));
            }
            Record::Item(item) => self.handle_item(item, is_expected),
            Record::Reached => self.reached = true,
            Record::Checked(mark) => {
                let pair = self.pairs.entry(mark.pair).or_default();
                match &mut pair.check {
                    Some(check) => check.go_on(mark),
                    None => pair.check = Some(CheckSoFar { mark, failed: Vec::new(), told: BTreeMap::new() }),
                }
            }
            Record::PassBegan { pair, place } => {
                let pair = self.pairs.entry(pair).or_default();
                if !pair.was_at(&place) {
                    // What was done elsewhere counts no more.
                    *pair = PairHistory::default();
                }
                pair.place = if place.is_empty() { std::mem::take(&mut pair.place) } else { place };
                pair.left_open |= pair.is_open;
                (pair.is_open, pair.open_failed, pair.open_can_pass) = (true, Vec::new(), false);
                (pair.check, pair.is_asked_again) = (None, false);
            }
            Record::PairEnded(PairEnd { pair, progress, time, of_sources, of_look }) => {
                self.at(time);
                let pair = self.pairs.entry(pair).or_default();
                (pair.is_open, pair.told, pair.check) = (false, Told::default(), None);
                if of_sources {
                    pair.sources_deleted = pair.open_failed.is_empty();
                    (pair.progress, pair.open_failed) = (progress, Vec::new());
                    return;
                }
                (pair.passes, pair.sources_deleted) = (pair.passes + u32::from(!of_look), false);
                (pair.progress, pair.any_can_pass) = (progress, pair.open_can_pass);
                pair.failed = std::mem::take(&mut pair.open_failed);
            }
            Record::Sample(sample) => {
                self.at(sample.time);
                self.tell(sample.progress);
            }
            Record::Ended(end) => {
                self.at(end.time);
                self.is_done = end.kind == EndKind::Done;
                self.tell(end.progress);
            }
            Record::Event { time, .. } => self.at(time),
            Record::Visited(_) => {}
        }
    }

    fn handle_item(&mut self, item: Item, is_expected: &dyn Fn(&[u8]) -> bool) {
        self.reached |= item.state == ItemState::Done;
        let pair = self.pairs.entry(item.pair).or_default();
        if let Some(check) = &mut pair.check {
            check.told.insert(item.path.clone(), item);
            return;
        }
        match item.state {
            ItemState::Deleted | ItemState::Different | ItemState::OnlySource | ItemState::OnlyDestination => {}
            ItemState::Planned | ItemState::ToDelete => pair.has_plan = true,
            ItemState::Failed => {
                pair.open_can_pass |= item.failure.as_ref().is_some_and(|failure| failure.retryable);
                match pair.open_failed.len() {
                    0..FAILED_MOST => pair.open_failed.push(item.path),
                    // Stands for the whole pair.
                    FAILED_MOST => pair.open_failed.push(Vec::new()),
                    _ => {}
                }
            }
            ItemState::Done | ItemState::Skipped => {
                pair.told.add(&item);
                if is_expected(&item.path) {
                    self.expected_seen.insert(item.path);
                }
            }
        }
    }

    fn tell(&mut self, progress: Progress) {
        self.reached |= progress.items_done > 0 || progress.bytes_moved > 0;
        self.progress = progress;
    }

    fn at(&mut self, time: Moment) {
        self.began.iter_mut().for_each(|(_, last)| *last = time);
    }

    fn end_attempt(&mut self) {
        if let Some((began, last)) = self.began.take() {
            self.active += last.since(began);
        }
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::report::ItemKind;

    use super::*;
    use crate::journal::AttemptEnd;
    use crate::model::CheckTally;

    fn item(path: &[u8], state: ItemState) -> Record {
        let (kind, path) = (ItemKind::File, path.to_vec());
        Record::Item(Item { pair: 0, path, kind, state, size: 0, digest: None, failure: None })
    }

    fn mark(after: &[u8], same: u64, failed: u64) -> Record {
        let tally = CheckTally { same, ..CheckTally::default() };
        Record::Checked(CheckMark { pair: 0, after: after.to_vec(), tally, failed })
    }

    fn names<'a>(items: impl Iterator<Item = &'a [u8]>) -> Vec<&'a str> {
        items.map(|path| std::str::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn check_that_was_broken_off_is_known_by_its_last_mark_and_what_came_behind_it() {
        let began = |fence| Record::Began { fence, time: Moment(0), process: 1, program: String::new() };
        let mut records = vec![
            began(1),
            Record::PassBegan { pair: 0, place: vec![1] },
            mark(b"", 0, 0),
            item(b"a", ItemState::Failed),
            item(b"b", ItemState::Different),
            mark(b"c", 1, 1),
            item(b"d", ItemState::OnlySource),
            item(b"e", ItemState::Failed),
        ];
        let history = History::of(records.iter().cloned());
        let check = history.pairs[&0].check.as_ref().unwrap();
        assert_eq!((&check.mark.after[..], check.mark.tally.same), (&b"c"[..], 1));
        assert_eq!(names(check.failed.iter().map(|item| &item.path[..])), ["a"]);
        assert_eq!(names(check.told.keys().map(|path| &path[..])), ["d", "e"]);
        assert!(history.pairs[&0].is_open && !history.is_done);
        // The next attempt goes on with the same pass.
        records.extend([began(2), mark(b"f", 2, 2)]);
        let history = History::of(records.iter().cloned());
        let check = history.pairs[&0].check.as_ref().unwrap();
        assert_eq!(names(check.failed.iter().map(|item| &item.path[..])), ["a", "e"]);
        assert!(check.told.is_empty());
        let (time, progress) = (Moment(0), Progress::default());
        let end = PairEnd { pair: 0, of_sources: false, of_look: false, time, progress };
        records.push(Record::PairEnded(end));
        let history = History::of(records);
        assert!(history.pairs[&0].check.is_none() && history.pairs[&0].passes == 1);
    }

    #[test]
    fn pair_that_is_asked_for_again_stays_so_until_a_pass_over_it_begins() {
        let (time, progress) = (Moment(0), Progress::default());
        let began = |fence| Record::Began { fence, time, process: 1, program: String::new() };
        let pass = |pair| Record::PassBegan { pair, place: vec![1] };
        let over = |pair| {
            let progress = progress.clone();
            Record::PairEnded(PairEnd { pair, of_sources: false, of_look: false, time, progress })
        };
        let ended = progress.clone();
        let end =
            AttemptEnd { time, kind: EndKind::Done, progress: ended, failure: None, got_somewhere: true, late: false };
        let mut records = vec![began(1), pass(0), over(0), pass(1), over(1)];
        let again = |records: &[Record]| {
            let history = History::of(records.iter().cloned());
            [0, 1].map(|pair| history.pairs[&pair].is_asked_again)
        };
        // An attempt that was broken off goes on.
        records.push(began(2));
        assert_eq!(again(&records), [false, false]);
        records.extend([Record::Ended(end), began(3)]);
        assert_eq!(again(&records), [true, true]);
        // It is stopped in the midst of its first pair: the second is still to be compared.
        records.extend([pass(0), began(4)]);
        assert_eq!(again(&records), [false, true]);
        records.extend([over(0), pass(1), began(5)]);
        assert_eq!(again(&records), [false, false]);
    }

    #[test]
    fn pair_was_begun_where_something_was_done_or_a_pass_was_left_open() {
        let (time, place) = (Moment(0), vec![1]);
        let pass = || Record::PassBegan { pair: 0, place: place.clone() };
        let over = |items_done| {
            let progress = Progress { items_done, ..Progress::default() };
            Record::PairEnded(PairEnd { pair: 0, of_sources: false, of_look: false, time, progress })
        };
        let given_up = || [pass(), item(b"", ItemState::Failed), over(0)];
        let was_begun = |records: Vec<Record>| History::of(records).pairs[&0].was_begun();
        assert!(!was_begun(given_up().to_vec()));
        assert!(!was_begun([given_up(), given_up()].concat()));
        assert!(was_begun(vec![pass()]));
        assert!(was_begun(vec![pass(), item(b"x", ItemState::Failed), over(1)]));
        // It was given up after it had begun.
        assert!(was_begun([vec![pass()], given_up().to_vec()].concat()));
        let elsewhere = Record::PassBegan { pair: 0, place: vec![2] };
        assert!(!was_begun([vec![pass(), elsewhere], given_up()[1..].to_vec()].concat()));
    }
}
