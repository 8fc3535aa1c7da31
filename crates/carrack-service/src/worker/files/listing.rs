//! Listings: directories that are read by a thread of their own, while windows of what is there already are answered.

use carrack_engine::sync::{lock, unpoisoned};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::report::ItemKind;
use carrack_engine::files::ListEntry;
use carrack_engine::{Stop, StopReason, threads};

use super::WindowAsk;
use super::end::End;
use super::gate::Gate;
use super::rows::{BYTES_MAX, Rows};
use super::told;
use super::view::{Sorted, View};
use crate::model::{FileFailure, FileWindow, ListingState, ListingStatus, SortField, Verb, text_of};
use carrack_core::location::decode_path;

/// How long the answer to an opened listing waits for the directory to be read, or to fail: most are that quick.
const OPEN_PATIENCE: Duration = Duration::from_millis(100);
/// How long names are waited for until the directory is read.
const NAMES_PATIENCE: Duration = Duration::from_secs(20);
/// Names of one answer.
const NAMES_AT_ONCE: usize = 10_000;
/// Entries that are read before they are shown, but not for longer than [`SHOWN_AFTER`].
const BATCH: usize = 512;
const SHOWN_AFTER: Duration = Duration::from_millis(50);
/// Entries that wait for somebody to finish a view; then the reader waits.
const BATCH_MAX: usize = 16_384;
/// Directories that are read at once: each has a conversation of its own, with what that has under way. Others wait for
/// their turn.
const READ_AT_ONCE: usize = 3;
/// How long it may take until what was dropped is free.
const FREED_IN: Duration = Duration::from_secs(2);
/// Sorted orders and views that are kept of each listing.
const SORTED_KEPT: usize = 2;
const VIEWS_KEPT: usize = 3;
/// While a directory is read, views are made anew no more often than every so many times what one takes.
const REST: u32 = 4;

/// The listings of a worker, by their numbers.
pub struct Listings {
    all: Mutex<HashMap<String, Arc<Listing>>>,
    uses: AtomicU64,
    /// What their entries take, of those too that were dropped and are still read.
    bytes: Arc<AtomicUsize>,
    reading: Gate,
}

impl Default for Listings {
    fn default() -> Self {
        Self { all: Mutex::default(), uses: AtomicU64::new(0), bytes: Arc::default(), reading: Gate::new(READ_AT_ONCE) }
    }
}

struct Listing {
    rows: RwLock<Rows>,
    status: Mutex<Status>,
    changed: Condvar,
    views: Mutex<Views>,
    stop: Stop,
    /// When it was last asked for, by count.
    used: AtomicU64,
}

/// How much of a directory was read.
enum Read {
    Whole,
    /// As much as there is room for.
    Full,
}

struct Status {
    state: ListingState,
    failure: Option<FileFailure>,
}

#[derive(Default)]
struct Views {
    sorted: Vec<Arc<Sorted>>,
    views: Vec<Arc<View>>,
    /// What the last one took, and when it was made.
    took: Duration,
    made: Option<Instant>,
}

impl Listings {
    fn get(&self, listing: &str) -> Result<Arc<Listing>, Failure> {
        let found = lock(&self.all).get(listing).cloned();
        let found = found.ok_or_else(|| {
            Failure::new(ErrorCode::NotFound, Side::Command, "the listing was dropped to make room: make another")
        })?;
        found.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Ok(found)
    }

    /// Begins to read a directory, and tells how far that is after a moment.
    pub fn open(
        self: &Arc<Self>,
        end: &Arc<End>,
        whole: &Stop,
        id: &str,
        path: &str,
    ) -> Result<ListingStatus, Failure> {
        let at = end.path(path, Verb::Read)?;
        let listing = Arc::new(Listing {
            rows: RwLock::new(Rows::counted(&self.bytes)),
            status: Mutex::new(Status { state: ListingState::Reading, failure: None }),
            changed: Condvar::new(),
            views: Mutex::default(),
            stop: whole.child(),
            used: AtomicU64::new(self.uses.fetch_add(1, Ordering::Relaxed)),
        });
        lock(&self.all).insert(id.to_owned(), Arc::clone(&listing));
        let (reader, end, listings) = (Arc::clone(&listing), Arc::clone(end), Arc::clone(self));
        let read = move || {
            let outcome = listings.reading.enter(&reader.stop);
            let outcome = outcome.and_then(|_turn| reader.read(&end, &at, &|| listings.make_room(&reader)));
            let outcome = outcome.map_err(|failure| end.named(failure));
            reader.finish(outcome);
        };
        let started = threads::start_named("listing", read);
        started.map_err(|error| {
            lock(&self.all).remove(id);
            carrack_engine::system_failure(Side::Command, &error)
        })?;
        listing.wait(OPEN_PATIENCE);
        Ok(listing.status())
    }

    /// Drops a listing.
    pub fn close(&self, listing: &str) {
        if let Some(listing) = lock(&self.all).remove(listing) {
            listing.stop.request(StopReason::Cancel);
        }
    }

    /// Drops listings that were not asked for the longest, but this one, as long as all together take too much memory,
    /// and waits until that is free. False: there is none, or this one was dropped itself.
    fn make_room(&self, but: &Arc<Listing>) -> bool {
        let began = Instant::now();
        while self.bytes.load(Ordering::Relaxed) >= BYTES_MAX {
            let mut all = lock(&self.all);
            if but.stop.requested().is_some() {
                return false;
            }
            let others = all.iter().filter(|(_, listing)| !Arc::ptr_eq(listing, but) && listing.rows().len() > 0);
            let oldest = others.min_by_key(|(_, listing)| listing.used.load(Ordering::Relaxed));
            let dropped = oldest.map(|(id, _)| id.clone()).and_then(|id| all.remove(&id));
            drop(all);
            let is_free = dropped.as_ref().is_some_and(|dropped| {
                dropped.stop.request(StopReason::Cancel);
                // Nobody reads it, and nobody looks at it.
                Arc::strong_count(dropped) == 1
            });
            if dropped.is_none() && (began.elapsed() > FREED_IN || but.rows().bytes() >= BYTES_MAX) {
                return false;
            }
            if !is_free {
                // What was dropped is about to end.
                drop(dropped);
                self.reading.wait();
            }
        }
        true
    }

    /// A part of a listing, as it is wanted.
    pub fn window(&self, id: &str, ask: &WindowAsk) -> Result<FileWindow, Failure> {
        self.get(id)?.window(ask)
    }

    /// Names behind the first `offset`, each a line of JSON; nothing behind the last. It waits until the directory is
    /// read.
    pub fn names(&self, id: &str, filter: &str, hidden: bool, offset: usize) -> Result<Vec<u8>, Failure> {
        self.get(id)?.names(filter, hidden, offset)
    }
}

impl Listing {
    fn rows(&self) -> RwLockReadGuard<'_, Rows> {
        unpoisoned(self.rows.read())
    }

    fn rows_mut(&self) -> RwLockWriteGuard<'_, Rows> {
        unpoisoned(self.rows.write())
    }

    fn status(&self) -> ListingStatus {
        let count = self.rows().len() as u64;
        let status = lock(&self.status);
        ListingStatus { state: status.state, count, failure: status.failure.clone() }
    }

    fn is_read(&self) -> bool {
        lock(&self.status).state != ListingState::Reading
    }

    /// Waits until the directory is read, or for so long.
    fn wait(&self, patience: Duration) {
        let status = lock(&self.status);
        let waiting = |status: &mut Status| status.state == ListingState::Reading;
        drop(self.changed.wait_timeout_while(status, patience, waiting));
    }

    /// Reads the directory. `room` makes room for more, where it can.
    fn read(&self, end: &End, path: &[u8], room: &dyn Fn() -> bool) -> Result<Read, Failure> {
        end.with_files(&self.stop, |files| {
            let itself = files.stat(path)?;
            let no_directory =
                || Failure::new(ErrorCode::NotADirectory, Side::Source, "it is no directory").at_path(path);
            if !matches!(itself.kind, ItemKind::Directory | ItemKind::Symlink) {
                return Err(no_directory());
            }
            let mut batch =
                Batch { listing: self, entries: Vec::with_capacity(BATCH), began: Instant::now(), room, full: false };
            files.list(path, false, &mut |entry| batch.push(entry)).or_else(|failure| {
                // Where it has ended for want of room, that is what is told.
                if batch.full { Ok(()) } else { Err(failure) }
            })?;
            batch.flush(true);
            if batch.full {
                return Ok(Read::Full);
            }
            // Of a link that leads to no directory the listing is the link itself.
            let rows = self.rows();
            let is_itself = itself.kind == ItemKind::Symlink
                && rows.len() == 1
                && rows.kind(0) == ItemKind::Symlink
                && path.rsplit(|byte| *byte == b'/').next() == Some(rows.name(0));
            drop(rows);
            if is_itself {
                let mut rows = self.rows_mut();
                *rows = rows.emptied();
                return Err(no_directory());
            }
            Ok(Read::Whole)
        })
    }

    fn finish(&self, outcome: Result<Read, Failure>) {
        let failure = match outcome {
            Ok(Read::Whole) => None,
            Ok(Read::Full) => Some(too_many(self.rows().len())),
            Err(failure) => Some(told::failure(&failure)),
        };
        let mut status = lock(&self.status);
        status.state = if failure.is_some() { ListingState::Failed } else { ListingState::Complete };
        status.failure = failure;
        drop(status);
        self.changed.notify_all();
    }

    /// The view that is wanted, made where it is not kept.
    fn view(&self, field: SortField, filter: &str, hidden: bool) -> Arc<View> {
        let mut kept = lock(&self.views);
        let rows = self.rows();
        let count = rows.len();
        let rests = kept.made.is_some_and(|made| made.elapsed() < kept.took * REST) && !self.is_read();
        let is_fresh = |covered: usize| covered == count || (rests && covered > 0);
        let found = kept.views.iter().position(|view| {
            view.field == field && view.hidden == hidden && view.filter == filter && is_fresh(view.covered)
        });
        if let Some(place) = found {
            let view = kept.views.remove(place);
            kept.views.push(Arc::clone(&view));
            return view;
        }
        let began = Instant::now();
        let sorted = kept.sorted.iter().position(|sorted| sorted.field == field && is_fresh(sorted.covered));
        let sorted = match sorted {
            Some(place) => kept.sorted.remove(place),
            None => {
                kept.sorted.retain(|sorted| sorted.field != field);
                Arc::new(Sorted::of(&rows, field))
            }
        };
        let view = Arc::new(View::of(&rows, &sorted, filter, hidden));
        drop(rows);
        keep(&mut kept.sorted, sorted, SORTED_KEPT);
        kept.views.retain(|old| old.field != field || old.hidden != hidden || old.filter != filter);
        keep(&mut kept.views, Arc::clone(&view), VIEWS_KEPT);
        (kept.took, kept.made) = (began.elapsed(), Some(Instant::now()));
        view
    }

    fn window(&self, ask: &WindowAsk) -> Result<FileWindow, Failure> {
        let ListingStatus { state, count, failure } = self.status();
        let view = self.view(ask.field, &ask.filter, ask.hidden);
        let rows = self.rows();
        let found = ask.around.as_ref().map(|name| {
            // What is no escaped text means itself.
            let bytes = decode_path(name.as_bytes()).unwrap_or_else(|_| name.clone().into_bytes());
            view.find(&rows, &bytes, name, ask.descending)
        });
        let limit = ask.limit;
        let last = view.len().saturating_sub(limit);
        let offset = match found {
            Some(Some(found)) => found.saturating_sub(limit / 3).min(last),
            _ => ask.offset.min(view.len()),
        };
        let places = (offset..offset.saturating_add(limit)).map_while(|index| view.place(index, ask.descending));
        Ok(FileWindow {
            state,
            count,
            total: view.len() as u64,
            bytes: view.bytes,
            offset: offset as u64,
            entries: places.map(|place| rows.entry(place)).collect(),
            found: found.map(|found| found.map(|found| found as u64)),
            failure,
        })
    }

    fn names(&self, filter: &str, hidden: bool, offset: usize) -> Result<Vec<u8>, Failure> {
        self.wait(NAMES_PATIENCE);
        self.stop.check()?;
        if !self.is_read() {
            let why = "the directory is still being read";
            return Err(Failure::new(ErrorCode::Busy, Side::Source, why));
        }
        let view = self.view(SortField::Name, filter, hidden);
        let rows = self.rows();
        let mut text = Vec::new();
        for place in (offset..offset.saturating_add(NAMES_AT_ONCE)).map_while(|index| view.place(index, false)) {
            let mut name = text_of(rows.name(place));
            if rows.kind(place) == ItemKind::Directory {
                name.push('/');
            }
            // A text becomes JSON, and a vector takes it.
            let _ = serde_json::to_writer(&mut text, &name);
            text.push(b'\n');
        }
        Ok(text)
    }
}

fn too_many(entries: usize) -> FileFailure {
    FileFailure {
        code: "too-many".to_owned(),
        message: format!("the directory has more entries than can be listed: these are the first {entries}"),
        hints: vec!["carrack ls lists all of them".to_owned()],
    }
}

/// Keeps the latest ones.
fn keep<T>(kept: &mut Vec<T>, new: T, most: usize) {
    kept.push(new);
    let surplus = kept.len().saturating_sub(most);
    kept.drain(..surplus);
}

/// Entries on their way from the reader to where windows see them.
struct Batch<'a> {
    listing: &'a Listing,
    entries: Vec<ListEntry>,
    began: Instant,
    room: &'a dyn Fn() -> bool,
    full: bool,
}

impl Batch<'_> {
    fn push(&mut self, entry: ListEntry) {
        if self.full {
            return;
        }
        self.entries.push(entry);
        if self.entries.len() >= BATCH || self.began.elapsed() >= SHOWN_AFTER {
            self.flush(self.entries.len() >= BATCH_MAX);
        }
    }

    /// Shows what was read. Whoever makes a view is not held up, unless `wait`.
    fn flush(&mut self, wait: bool) {
        if !self.full && !(self.room)() {
            self.end();
        }
        let rows = match wait {
            true => Some(self.listing.rows_mut()),
            false => self.listing.rows.try_write().ok(),
        };
        let Some(mut rows) = rows else { return };
        let is_full = !self.entries.drain(..).all(|entry| rows.push(&entry));
        drop(rows);
        self.began = Instant::now();
        if is_full {
            self.end();
        }
    }

    /// Nothing more is read.
    fn end(&mut self) {
        self.full = true;
        self.listing.stop.request(StopReason::Cancel);
    }
}
