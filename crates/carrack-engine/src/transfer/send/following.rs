//! Looking at sources that are followed, until they have rested for long enough.
//!
//! One thread looks at all of them. Each look asks the open file for its size, and the source what stands at the name:
//! a file that is shorter than it was, whose name is gone or another file's, or whose last bytes are others, fails.
//! What is written over elsewhere, and not appended, is seen only by reading the source twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_core::attributes::Time;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::ids::ItemId;
use carrack_core::report::ItemKind;
use carrack_core::transfer::ScannedItem;
use carrack_core::transfer::machine::Machine;
use carrack_core::tuning::{FOLLOW_LOOK_MAX, FOLLOW_LOOK_MIN};
use carrack_sys::host;

use super::SendRun;
use crate::error::{failure, io_failure};
use crate::storage::read::{GrownState, Reader};
use crate::sync::lock;

/// Bytes that are read again after a file has grown, at its beginning and at what was its end.
const PROBE_BYTES: u64 = 4096;

/// The files that a sender follows.
#[derive(Default)]
pub(super) struct FollowedSources {
    /// Those that nobody has looked at yet.
    pub begun: Mutex<VecDeque<ItemId>>,
    /// Those that are whole and have not been checked for the last time.
    ended: Mutex<HashMap<ItemId, SeenBytes>>,
}

/// What has been seen of a file: its size, and some of its bytes.
struct SeenBytes {
    size: u64,
    /// Pieces, each with its offset.
    probes: Vec<(u64, Vec<u8>)>,
}

impl SeenBytes {
    /// Reads the beginning of a file of this size, and its end.
    fn of(reader: &dyn Reader, size: u64) -> Result<Self, Failure> {
        let probe = |offset: u64| {
            let mut bytes = vec![0; PROBE_BYTES.min(size - offset) as usize];
            reader.read_at(offset, &mut bytes).map(|()| (offset, bytes))
        };
        let (first, last) = (0, size.saturating_sub(PROBE_BYTES));
        let offsets = if last == first { vec![first] } else { vec![first, last] };
        Ok(Self { size, probes: offsets.into_iter().map(probe).collect::<Result<_, _>>()? })
    }

    /// Whether the file still has all that was seen of it.
    fn check(&self, reader: &dyn Reader, now: GrownState) -> Result<(), Failure> {
        if now.size < self.size {
            let why = format!("was truncated while it was followed, from {} to {} bytes", self.size, now.size);
            return Err(changed(why));
        }
        for (offset, seen) in &self.probes {
            let mut bytes = vec![0; seen.len()];
            reader.read_at(*offset, &mut bytes)?;
            if bytes != *seen {
                return Err(changed(format!("was written over at {offset} while it was followed")));
            }
        }
        Ok(())
    }
}

/// A file that is being followed.
struct FollowedSource {
    item: ItemId,
    scanned: ScannedItem,
    reader: Arc<dyn Reader>,
    seen: SeenBytes,
    modified: Time,
    /// It was written to, and has not grown since.
    is_touched: bool,
    /// Its lock file was there at the last look.
    is_locked: bool,
    quiet_since: Instant,
    look_at: Instant,
}

impl SendRun {
    /// What was found, and whether it is followed: what has just changed may go on growing.
    pub(super) fn followed_if_recent(&self, item: ScannedItem) -> ScannedItem {
        let options = &self.driver.options;
        // What cannot be told is told when it is opened.
        let grows = |item: &ScannedItem| {
            item.has_just_changed(clock(), self.follow_idle())
                || item.kind == ItemKind::File && self.is_locked(item).unwrap_or(true)
        };
        let followed = options.follows() && grows(&item);
        // Where it will end is not known, so nothing is left out of it.
        let sparse = item.sparse && !followed;
        ScannedItem { followed, sparse, ..item }
    }

    fn follow_idle(&self) -> Duration {
        Duration::from_millis(self.driver.options.growing_idle_ms)
    }

    /// Whether the lock file of a source is there.
    fn is_locked(&self, scanned: &ScannedItem) -> Result<bool, Failure> {
        let Some(lock) = self.driver.options.growing_lock else { return Ok(false) };
        let is_there = self.root(scanned)?.source.is_locked(scanned, lock);
        is_there.map_err(|error| io_failure(Side::Source, "look for its lock file", &error))
    }

    /// Looks at followed sources until the transfer has ended.
    pub(super) fn follow_sources(&self) {
        let interval = (self.follow_idle() / 4).clamp(FOLLOW_LOOK_MIN, FOLLOW_LOOK_MAX);
        let mut followed: Vec<FollowedSource> = Vec::new();
        while let Some(begun) = self.next_begun(&followed) {
            for item in begun {
                match self.begin_following(item) {
                    Ok(begun) => followed.extend(begun),
                    Err(why) => self.driver.tell(|machine| machine.handle_follow_failed(Instant::now(), item, why)),
                }
            }
            followed.retain_mut(|one| Instant::now() < one.look_at || self.look_at_followed(one, interval));
        }
    }

    /// Waits until one of the followed files is to be looked at; those that have come. `None` when the transfer has
    /// ended.
    fn next_begun(&self, followed: &[FollowedSource]) -> Option<Vec<ItemId>> {
        let due = followed.iter().map(|one| one.look_at).min();
        let mut machine = self.driver.lock();
        while machine.outcome().is_none() {
            let begun: Vec<_> = lock(&self.followed.begun).drain(..).collect();
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            if !begun.is_empty() || left.is_some_and(|left| left.is_zero()) {
                return Some(begun);
            }
            machine = match left {
                Some(left) => self.driver.wait_timeout(machine, left),
                None => self.driver.wait(machine),
            };
        }
        None
    }

    /// Opens a source that is to be followed; `None` when that has been given up meanwhile.
    fn begin_following(&self, item: ItemId) -> Result<Option<FollowedSource>, Failure> {
        let scanned = {
            let machine = self.driver.lock();
            machine.scanned(item).filter(|_| machine.is_followed(item)).cloned()
        };
        let Some(scanned) = scanned else { return Ok(None) };
        let opened = self.open_and(&scanned, &mut |time| !self.driver.over.wait(time))?;
        opened.check_listed(&scanned)?;
        // The streams read the same open file.
        let reader = Arc::clone(lock(&self.sources).entry(item).or_insert_with(|| Arc::from(opened)));
        let now = reader.look()?;
        let seen = SeenBytes::of(&*reader, now.size)?;
        // What was written to a while ago has rested since. A time that is ahead of the host's clock says nothing.
        let rested = rested_since(now.modified).min(self.follow_idle());
        let begun = Instant::now();
        let quiet_since = begun.checked_sub(rested).unwrap_or(begun);
        self.driver.tell(|machine| machine.handle_grown(begun, item, now.size));
        let (modified, is_touched, is_locked, look_at) = (now.modified, false, false, begun);
        Ok(Some(FollowedSource { item, scanned, reader, seen, modified, is_touched, is_locked, quiet_since, look_at }))
    }

    /// Looks at a followed source, and tells what there is; whether it is to be looked at again.
    fn look_at_followed(&self, one: &mut FollowedSource, interval: Duration) -> bool {
        if !self.driver.lock().is_followed(one.item) {
            return false;
        }
        let item = one.item;
        // Before the file: what was written when the lock file went is there then.
        let locked = self.is_locked(&one.scanned);
        let looked = locked.and_then(|locked| self.look(one).map(|()| locked));
        let now = Instant::now();
        match looked {
            Err(why) => self.driver.tell(|machine| machine.handle_follow_failed(now, item, why)),
            Ok(false) if one.is_locked || one.quiet_since.elapsed() >= self.follow_idle() => self.end_following(one),
            Ok(locked) => {
                one.is_locked = locked;
                one.look_at = now + interval;
                self.driver.tell(|machine| machine.handle_grown(now, item, one.seen.size));
                return true;
            }
        }
        false
    }

    fn look(&self, one: &mut FollowedSource) -> Result<(), Failure> {
        let now = one.reader.look()?;
        self.check_name(&one.scanned)?;
        let is_same = (now.size, now.modified) == (one.seen.size, one.modified);
        if !is_same {
            one.seen.check(&*one.reader, now)?;
            // A call to write moves the time first, and the size when its bytes are there.
            one.is_touched = now.size == one.seen.size;
            one.quiet_since = Instant::now();
            one.modified = now.modified;
            one.seen = SeenBytes::of(&*one.reader, now.size)?;
        }
        Ok(())
    }

    /// The name still leads to the file that is followed.
    fn check_name(&self, scanned: &ScannedItem) -> Result<(), Failure> {
        match self.root(scanned)?.source.look_again(scanned) {
            Ok(found) if found.file == scanned.file => Ok(()),
            Ok(_) => Err(changed("another file took its name while it was followed, as when a log is rotated")),
            Err(why) if why.code == ErrorCode::SourceVanished => {
                Err(changed("was renamed or deleted while it was followed, as when a log is rotated"))
            }
            Err(why) => Err(why),
        }
    }

    /// It has rested for long enough: this is all of it.
    fn end_following(&self, one: &mut FollowedSource) {
        let (item, size, modified) = (one.item, one.seen.size, one.modified);
        if one.is_touched {
            let why = changed("was written to while it was followed, and did not grow: it was written over");
            return self.driver.tell(|machine| machine.handle_follow_failed(Instant::now(), item, why));
        }
        let seen = SeenBytes { size, probes: std::mem::take(&mut one.seen.probes) };
        // Before it is told: its check may come at once.
        lock(&self.followed.ended).insert(item, seen);
        self.driver.tell(|machine| machine.handle_followed(Instant::now(), item, size, Some(modified)));
    }

    /// All of a source has been read. Whether one that was followed still has what it had when that ended.
    pub(super) fn check_followed(&self, item: ItemId) -> Result<(), Failure> {
        let Some(seen) = lock(&self.followed.ended).remove(&item) else { return Ok(()) };
        let source = lock(&self.sources).get(&item).cloned();
        source.map_or(Ok(()), |source| seen.check(&*source, source.look()?))
    }

    /// Nobody asks for it any more.
    pub(super) fn forget_followed(&self, item: ItemId) {
        lock(&self.followed.ended).remove(&item);
    }
}

fn changed(why: impl Into<String>) -> Failure {
    failure(ErrorCode::SourceChanged, Side::Source, why.into())
}

fn clock() -> Time {
    let now = host::clock();
    Time::new(now.seconds, now.nanos)
}

/// How long ago that was by the host's clock; nothing where it is yet to come.
fn rested_since(time: Time) -> Duration {
    let nanos = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    Duration::from_nanos(u64::try_from(nanos(clock()) - nanos(time)).unwrap_or(0))
}
