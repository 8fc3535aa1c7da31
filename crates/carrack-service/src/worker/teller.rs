//! What a worker tells: items and events as they come, samples once a second, all into the task's journal. A thread
//! writes, samples and syncs meanwhile, so that a worker that waits for its hosts still shows that it lives.

mod telling;

use carrack_engine::sync::{lock, unpoisoned};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use carrack_core::failure::Side;
use carrack_core::pace::limit::Limit;
use carrack_core::report::ItemKind;
use carrack_engine::{Stop, threads};

use self::telling::{FIVE_MINUTES, Telling};
use super::history::{CheckSoFar, History, PairHistory, Told};
use super::limit::{Limit as TimeLimit, Over};
use super::pass::{Counted, Pass, failed_item, sum_of};
use crate::clock::Moment;
use crate::journal::{AttemptEnd, EndCounts, EndKind, Item, JournalError, PairEnd, Record, Withdrawn, Writer};
use crate::model::{EventKind, ItemState, Progress, TaskFailure};

/// How often what waits is written.
const WRITE: Duration = Duration::from_millis(250);
/// Between two samples of a young attempt. Of an older one more, so that a week of them stays small.
const SAMPLE: Duration = Duration::from_secs(1);
const SAMPLE_MAX: Duration = Duration::from_secs(10);
/// An attempt of this age is sampled half as often.
const SAMPLE_AGE: Duration = Duration::from_secs(600);

/// Tells.
pub struct Teller {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<Telling>,
    end: Condvar,
    /// Ends the work where nothing can be told any more.
    stop: Stop,
    sync: File,
}

/// The time of the wall clock.
pub fn now() -> Moment {
    SystemTime::now().into()
}

impl Teller {
    /// Begins to tell.
    ///
    /// # Errors
    /// If no thread can be started, or no more storage is left for a journal.
    pub fn start(
        (journal, failed): (Writer, Writer),
        history: &History,
        pairs: usize,
        limit: TimeLimit,
        stop: Stop,
        began: &Record,
    ) -> Result<Self, String> {
        let ended =
            |pair: u32| history.pairs.get(&pair).filter(|pair| pair.passes > 0).map(|pair| pair.progress.clone());
        let sync = journal.handle().map_err(|error| error.to_string())?;
        let state = Telling {
            journal,
            failed,
            pairs: (0..pairs as u32).map(ended).collect(),
            current: None,
            before: history.progress.clone(),
            floor: Progress { items_remembered: 0, ..history.progress.clone() },
            remembered: vec![0; pairs],
            limit,
            over: None,
            lost_pair: false,
            in_all: Counted::of(&history.progress),
            streams: 0,
            source: None,
            destination: None,
            limited_by: None,
            rates: VecDeque::new(),
            active_before: history.active,
            began: Instant::now(),
            first_failure: None,
            any_can_pass: false,
            broken: None,
            ended: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), end: Condvar::new(), stop, sync });
        let telling = Arc::clone(&shared);
        let thread = threads::start_named("telling", move || telling.run());
        let thread = thread.map_err(|error| shared.lock().end_at_once(began, &error))?;
        let teller = Self { shared, thread: Some(thread) };
        teller.record(began);
        Ok(teller)
    }

    fn lock(&self) -> MutexGuard<'_, Telling> {
        self.shared.lock()
    }

    /// Tells something at once.
    pub fn record(&self, record: &Record) {
        let mut state = self.lock();
        state.append(&self.shared.stop, record);
        state.write(&self.shared.stop);
    }

    /// Tells what happened.
    pub fn event(&self, kind: EventKind, text: impl Into<String>, detail: serde_json::Value) {
        let event = Record::Event { time: now(), kind, text: text.into(), detail: detail.to_string() };
        self.lock().append(&self.shared.stop, &event);
    }

    /// A pass over a pair begins that goes on behind what earlier ones have done.
    pub fn begin_pass(&self, pair: u32, place: &[u8], before: Progress) {
        let mut state = self.lock();
        state.pairs[pair as usize] = None;
        let place = place.to_vec();
        state.append(&self.shared.stop, &Record::PassBegan { pair, place: place.clone() });
        state.current = Some((pair, Pass::new(place, before)));
    }

    /// Goes on with a check of a pair that was broken off; what could not be read until then is told once more among
    /// what failed.
    pub fn continue_check(&self, pair: u32, place: &[u8], so_far: &CheckSoFar) {
        let mut state = self.lock();
        state.pairs[pair as usize] = None;
        let mut pass = Pass::new(place.to_vec(), Progress::default());
        pass.checked(so_far.mark.tally, so_far.mark.failed);
        state.current = Some((pair, pass));
        drop(state);
        let behind = so_far.told.values().filter(|item| item.state == ItemState::Failed);
        self.failed_before(so_far.failed.iter().chain(behind));
    }

    /// What an earlier attempt could not do, and this one does not try again, is told once more among what failed.
    pub fn failed_before<'a>(&self, items: impl Iterator<Item = &'a Item>) {
        let mut state = self.lock();
        for item in items {
            if let Some(failure) = &item.failure {
                state.note_failure(failure);
            }
            let written = state.failed.append(&Record::Item(item.clone()));
            state.notice(&self.shared.stop, written);
        }
        let written = state.failed.flush();
        state.notice(&self.shared.stop, written);
    }

    /// What was told of a check of a pair counts no more: both sides are compared anew.
    ///
    /// # Errors
    /// If that cannot be kept.
    pub fn forget_check(&self, directory: &Path, pair: u32) -> Result<(), String> {
        let mut state = self.lock();
        state.write(&self.shared.stop);
        withdraw(directory, pair, state.journal.end())?;
        state.pairs[pair as usize] = None;
        state.floor = state.sum();
        state.sample_now(&self.shared.stop)
    }

    /// What was told of a pair was done at another place, and counts no more; `is_only_open`: nor does what passes that
    /// were broken off have done, all of which were over this pair.
    ///
    /// # Errors
    /// If that cannot be kept.
    pub fn begin_anew(&self, directory: &Path, pair: u32, is_only_open: bool) -> Result<(), String> {
        let mut state = self.lock();
        state.write(&self.shared.stop);
        withdraw(directory, pair, state.journal.end())?;
        let shown = state.progress();
        let ended = state.pairs[pair as usize].take().unwrap_or_default();
        let kept = state.sum();
        state.floor = if is_only_open { kept } else { without(&shown, &ended) };
        let items = shown.items_done.saturating_sub(state.floor.items_done);
        let bytes = shown.bytes_moved.saturating_sub(state.floor.bytes_moved);
        state.in_all.add(Counted::lost(items, bytes));
        state.sample_now(&self.shared.stop)
    }

    /// Tells what is left of what was done of a pair, as a pass of its own: `lost` are not there any more, as they
    /// were, and where their records begin; records that begin where
    /// `replaced` says count no more. What the pair has done by now.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn tell_lost(
        &self,
        directory: &Path,
        pair: u32,
        history: &PairHistory,
        lost: &[(u64, Item)],
        replaced: &[u64],
    ) -> Result<Progress, String> {
        let mut progress = history.progress.clone();
        let mut state = self.lock();
        let place = history.place.clone();
        state.append(&self.shared.stop, &Record::PassBegan { pair, place });
        for path in &history.failed {
            state.append(&self.shared.stop, &Record::Item(failed_item(pair, path.clone(), ItemKind::File, 0)));
        }
        for (_, item) in lost {
            let verified = if progress.bytes_verified == progress.bytes_moved { item.size } else { 0 };
            match item.state {
                ItemState::Skipped => {
                    progress.items_skipped = progress.items_skipped.saturating_sub(1);
                    progress.bytes_skipped = progress.bytes_skipped.saturating_sub(item.size);
                }
                _ => {
                    take_back(&mut progress, item.size, verified);
                    take_back(&mut state.floor, item.size, verified);
                    state.in_all.add(Counted::lost(1, item.size));
                }
            }
            progress.items_failed += 1;
            let gone = failed_item(pair, item.path.clone(), item.kind, item.size);
            state.append(&self.shared.stop, &Record::Item(gone));
        }
        let end = PairEnd { pair, of_sources: false, of_look: true, time: now(), progress: progress.clone() };
        state.append(&self.shared.stop, &Record::PairEnded(end));
        if let Some(told) = &mut state.pairs[pair as usize] {
            told.clone_from(&progress);
        }
        // What is done and what is lost are told together.
        state.sample_now(&self.shared.stop)?;
        let withdraw = || {
            let mut withdrawn = Withdrawn::load(directory)?;
            lost.iter().map(|(offset, _)| offset).chain(replaced).for_each(|offset| withdrawn.item(*offset));
            withdrawn.save(directory)
        };
        withdraw().map_err(|error: JournalError| error.to_string())?;
        Ok(progress)
    }

    /// Says how many items of a pair count as done and could not be compared.
    pub fn remember(&self, pair: u32, items: u64) {
        self.lock().remembered[pair as usize] = items;
    }

    /// Says that hosts have been reached.
    pub fn reached(&self) {
        self.record(&Record::Reached);
    }

    /// What has ended the attempt because its time was over.
    pub fn over(&self) -> Option<Over> {
        let mut state = self.lock();
        state.check_limit(&self.shared.stop);
        state.over
    }

    /// All items of the pass under way are told anew from here on. What has been told as done is handed out.
    ///
    /// # Errors
    /// If a journal cannot be read or written.
    pub fn start_over(&self, directory: &Path) -> Result<Told, String> {
        let mut state = self.lock();
        let Some((pair, pass)) = &mut state.current else { return Ok(Told::default()) };
        let pair = *pair;
        let anew = pass.anew();
        let place = pass.place.clone();
        state.raise_floor();
        state.current = Some((pair, anew));
        state.append(&self.shared.stop, &Record::PassBegan { pair, place });
        state.write(&self.shared.stop);
        let told = Told::read(directory, pair).and_then(|told| {
            state.failed = Writer::keep_failed(directory, pair)?;
            Ok(told)
        });
        told.map_err(|error| error.to_string())
    }

    /// A pass over a pair begins that only deletes sources. `copied`: this attempt has copied them.
    pub fn begin_sources(&self, pair: u32, copied: bool) {
        let mut state = self.lock();
        let mut before = state.pairs[pair as usize].take().unwrap_or_default();
        if !copied {
            // What failed was to be deleted, by an attempt before, and is tried again.
            before.items_done += std::mem::take(&mut before.items_failed);
        }
        state.current = Some((pair, Pass::of_sources(before)));
    }

    /// Counts what a copy tells beside its items.
    pub fn counted_in_all(&self, more: Counted) {
        self.lock().in_all.add(more);
    }

    /// Changes what the pass under way counts.
    pub fn update(&self, change: impl FnOnce(&mut Pass)) {
        if let Some((_, pass)) = &mut self.lock().current {
            change(pass);
        }
    }

    /// What the pairs but this one have done so far, and what of the whole task was done and is lost.
    pub fn of_others(&self, pair: u32) -> Progress {
        let state = self.lock();
        let others = state.pairs.iter().enumerate().filter(|(number, _)| *number != pair as usize);
        let mut others = sum_of(others.filter_map(|(_, pair)| pair.as_ref()));
        state.in_all.tell(&mut others);
        others
    }

    /// So many items are about to be deleted: until it is told how many were, all of them may have been. Returns once
    /// a disk has it.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn begin_deleting(&self, items: u64) -> Result<(), String> {
        let mut state = self.lock();
        state.in_all.add(Counted::lost(items, 0));
        state.sample_now(&self.shared.stop)?;
        drop(state);
        self.shared.sync();
        self.lock().check_written()
    }

    /// Of `begun` items so many have been deleted, the one that was named among them.
    pub fn end_deleting(&self, begun: u64, deleted: u64, named: Item) {
        let mut state = self.lock();
        state.in_all.items_lost = state.in_all.items_lost.saturating_sub(begun);
        if let Some((_, pass)) = &mut state.current {
            pass.count_done(deleted.saturating_sub(1));
            pass.count(&named, false);
        }
        state.append(&self.shared.stop, &Record::Item(named));
    }

    /// Says how many data connections are at work.
    pub fn streams(&self, streams: u32) {
        self.lock().streams = streams;
    }

    /// Says what an end has counted.
    pub fn counted(&self, side: Side, counts: EndCounts) {
        let mut state = self.lock();
        match side {
            Side::Source => state.source = Some(counts),
            Side::Destination => state.destination = Some(counts),
            _ => {}
        }
    }

    /// Says what holds the data back, where that is known.
    pub fn limited(&self, by: Option<Limit>) {
        if let Some(limit) = by {
            self.lock().limited_by = Some(limit.words());
        }
    }

    /// Counts an item, and tells it unless the same was told before.
    pub fn item(&self, item: Item, verified: bool, was_told: bool) {
        let mut state = self.lock();
        if let Some((_, pass)) = &mut state.current {
            pass.count(&item, verified);
        }
        if was_told {
            return;
        }
        let failed = item.state == ItemState::Failed;
        if let (true, Some(failure)) = (failed, &item.failure) {
            state.note_failure(failure);
        }
        let record = Record::Item(item);
        state.append(&self.shared.stop, &record);
        if failed {
            let written = state.failed.append(&record).and_then(|()| state.failed.flush());
            state.notice(&self.shared.stop, written);
        }
    }

    /// The pass under way has told all of its items.
    pub fn end_pass(&self, of_sources: bool) {
        let mut state = self.lock();
        let Some((pair, pass)) = state.take_current() else { return };
        let progress = Progress { scan_complete: true, ..pass.progress() };
        state.append(
            &self.shared.stop,
            &Record::PairEnded(PairEnd { pair, of_sources, of_look: false, time: now(), progress: progress.clone() }),
        );
        state.pairs[pair as usize] = Some(progress);
        state.write(&self.shared.stop);
    }

    /// The pass under way is left as it is: a later attempt goes on with it.
    pub fn leave_pass(&self) {
        let mut state = self.lock();
        state.raise_floor();
        let Some((pair, pass)) = state.take_current() else { return };
        // Counted, but not complete.
        state.pairs[pair as usize] = Some(Progress { scan_complete: false, ..pass.progress() });
    }

    /// The pair is given up: what earlier attempts have told of it stays.
    pub fn lose_pair(&self) {
        let mut state = self.lock();
        state.raise_floor();
        state.lost_pair = true;
        drop(state);
        self.end_pass(false);
    }

    /// The first failed item's reason, and whether another attempt can help any.
    pub fn failures(&self) -> (Option<TaskFailure>, bool) {
        let state = self.lock();
        (state.first_failure.clone(), state.any_can_pass)
    }

    /// Why nothing can be told any more.
    pub fn broken(&self) -> Option<(String, bool)> {
        self.lock().broken.as_ref().map(|error| (error.to_string(), error.is_full()))
    }

    /// Tells how the attempt ended, and returns once it is on stable storage.
    ///
    /// # Errors
    /// If it cannot be told.
    pub fn end(mut self, kind: EndKind, failure: Option<TaskFailure>, late: bool) -> Result<(), JournalError> {
        let mut state = self.lock();
        let mut progress = state.progress();
        if kind == EndKind::Done && !state.lost_pair {
            // All is found anew by now: what was told before may be less true.
            progress = Progress { rates: progress.rates, scan_complete: true, ..state.sum() };
        }
        progress.eta_seconds = None;
        let got_somewhere =
            progress.items_done > state.before.items_done || progress.bytes_moved > state.before.bytes_moved;
        let end = AttemptEnd { time: now(), kind, progress, failure, got_somewhere, late };
        // A batch that could not be written is tried once more: what was kept free behind it is for this.
        let told = state.journal.append(&Record::Ended(end)).and_then(|()| state.journal.finish());
        // The journal has the same items.
        let told = told.and(state.failed.finish());
        state.ended = true;
        drop(state);
        self.shared.end.notify_all();
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
        told
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.lock().ended = true;
        self.shared.end.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Telling> {
        // What another thread was about when it panicked is at worst a batch that is written again.
        lock(&self.state)
    }

    fn run(&self) {
        let (mut sampled, mut last) = (Instant::now(), Progress::default());
        let mut state = self.lock();
        loop {
            state = unpoisoned(self.end.wait_timeout(state, WRITE)).0;
            if state.ended {
                return;
            }
            state.check_limit(&self.stop);
            let age = state.began.elapsed();
            let every = SAMPLE.mul_f64((age.as_secs_f64() / SAMPLE_AGE.as_secs_f64()).max(1.0)).min(SAMPLE_MAX);
            let due = sampled.elapsed() >= every;
            if due {
                let progress = state.progress();
                let bytes = progress.bytes_moved;
                state.rates.push_back((Instant::now(), bytes));
                while state.rates.front().is_some_and(|(at, _)| at.elapsed() > FIVE_MINUTES + SAMPLE_MAX) {
                    state.rates.pop_front();
                }
                // One that changes nothing still says that the worker lives.
                let changed = Progress { rates: last.rates, eta_seconds: last.eta_seconds, ..progress.clone() } != last;
                if changed || sampled.elapsed() >= SAMPLE_MAX {
                    sampled = Instant::now();
                    last.clone_from(&progress);
                    state.sample(&self.stop, progress);
                }
            }
            state.write(&self.stop);
            if due {
                // More is told meanwhile.
                drop(state);
                self.sync();
                state = self.lock();
            }
        }
    }

    /// Brings what was written to stable storage.
    fn sync(&self) {
        if let Err(source) = self.sync.sync_data().or_else(ignore_unsupported) {
            let error = JournalError::Call { call: "sync", path: "journal".into(), source };
            self.lock().notice(&self.stop, Err(error));
        }
    }
}

/// Keeps that what stands of a pair before this place of the journal counts no more.
fn withdraw(directory: &Path, pair: u32, before: u64) -> Result<(), String> {
    let keep = || {
        let mut withdrawn = Withdrawn::load(directory)?;
        withdrawn.pair(pair, before);
        withdrawn.save(directory)
    };
    keep().map_err(|error: JournalError| error.to_string())
}

/// What is shown without what a pair had done.
fn without(shown: &Progress, pair: &Progress) -> Progress {
    Progress {
        items_total: shown.items_total.saturating_sub(pair.items_total),
        items_done: shown.items_done.saturating_sub(pair.items_done),
        items_skipped: shown.items_skipped.saturating_sub(pair.items_skipped),
        bytes_total: shown.bytes_total.saturating_sub(pair.bytes_total),
        bytes_moved: shown.bytes_moved.saturating_sub(pair.bytes_moved),
        bytes_verified: shown.bytes_verified.saturating_sub(pair.bytes_verified),
        ..shown.clone()
    }
}

/// An item that was done counts no more.
fn take_back(progress: &mut Progress, size: u64, verified: u64) {
    progress.items_done = progress.items_done.saturating_sub(1);
    progress.bytes_moved = progress.bytes_moved.saturating_sub(size);
    progress.bytes_verified = progress.bytes_verified.saturating_sub(verified);
}

/// Some file systems sync nothing.
fn ignore_unsupported(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    }
}
