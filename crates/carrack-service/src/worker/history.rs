//! What earlier attempts of a task have told by its journal: where this one goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::clock::Moment;
use crate::journal::{Item, JournalError, PairEnd, Reader, Record, Recovered, recover};
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
}

/// What is known of one pair.
#[derive(Debug, Default)]
pub struct PairHistory {
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
    /// Of the pass that has not come to its end.
    open_failed: Vec<Vec<u8>>,
    open_can_pass: bool,
    /// Which items were told as done by the pass that has not come to its end.
    pub told: Told,
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
        let (mut told, mut reader) = (Self::default(), Reader::open(directory));
        while let Some(record) = reader.next_record()? {
            match record {
                Record::Item(item) if item.pair == pair && item.state != ItemState::Failed => told.add(&item),
                Record::PairEnded(end) if end.pair == pair => told.marks.clear(),
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
    /// Of a pair with so many passes, of which no more needs to be known.
    pub fn after(passes: u32) -> Self {
        Self { passes, ..Self::default() }
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

    /// Whether every item of a pair has been copied, or deleted where that is all.
    pub fn is_done(&self, pair: u32) -> bool {
        self.pairs.get(&pair).is_some_and(|pair| pair.passes > 0 && pair.failed.is_empty())
    }

    fn handle(&mut self, record: Record, is_expected: &dyn Fn(&[u8]) -> bool) {
        match record {
            Record::Began { fence, time, .. } => {
                self.end_attempt();
                (self.fence, self.began) = (self.fence.max(fence), Some((time, time)));
                self.pairs.values_mut().for_each(|pair| (pair.open_failed, pair.open_can_pass) = (Vec::new(), false));
            }
            Record::Item(item) => {
                let pair = self.pairs.entry(item.pair).or_default();
                match item.state {
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
            Record::PassBegan { pair } => {
                let pair = self.pairs.entry(pair).or_default();
                (pair.open_failed, pair.open_can_pass) = (Vec::new(), false);
            }
            Record::PairEnded(PairEnd { pair, progress, time, of_sources }) => {
                self.at(time);
                let pair = self.pairs.entry(pair).or_default();
                pair.told = Told::default();
                if of_sources {
                    pair.sources_deleted = pair.open_failed.is_empty();
                    (pair.progress, pair.open_failed) = (progress, Vec::new());
                    return;
                }
                (pair.passes, pair.sources_deleted) = (pair.passes + 1, false);
                (pair.progress, pair.any_can_pass) = (progress, pair.open_can_pass);
                pair.failed = std::mem::take(&mut pair.open_failed);
            }
            Record::Sample(sample) => {
                self.at(sample.time);
                self.progress = sample.progress;
            }
            Record::Ended(end) => {
                self.at(end.time);
                self.progress = end.progress;
            }
            Record::Event { time, .. } => self.at(time),
        }
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
