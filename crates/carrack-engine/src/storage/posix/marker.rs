//! The marker of a run, as a file in the destination directory: found, locked, replayed, appended to, removed. Its
//! bytes are [`carrack_core::transfer::marker`]'s.
//!
//! The lock is held for as long as the session lives, and owns the tag in the names of part files. A marker that cannot
//! be written costs resume, never the transfer: what is not written down is sent again.

mod found;
mod mixtures;

pub use found::{Abandoned, Looked, hold, left_of, look};

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use carrack_core::digest::BlockDigest;
use carrack_core::limits;
use carrack_core::path::split_name;
use carrack_core::report::{FileDigests, Unfinished};
use carrack_core::request::{Digests, Durability};
use carrack_core::transfer::Fingerprint;
use carrack_core::transfer::marker::{
    Chain, HEADER_BYTES, Left, PartRecord, Published, Record, Replay, Replayed, SessionRecord, Tag, may_be_marker,
};
use carrack_core::tuning::Tuning;
use carrack_sys::dir::{Dir, Kind, Links, Stat, stat_file};
use carrack_sys::{file, host};

use self::found::{forget, is_in_place};
use super::names::{PartKind, marker_name, new_tag, part_kind, tag_of};
use super::own_directories::remove_unseen;
use crate::storage::properties::MarkerRequest;
use crate::sync::lock;

/// Markers of one key: so many runs of one and the same copy may go at once and be resumed.
const MARKERS: u32 = 9;
/// Between two attempts to take a marker's lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const READ_BYTES: usize = 2 << 20;
/// Attempts to open a marker that somebody else makes and removes.
const TAKES: u32 = 10;
/// Published items that wait to be written down: with a crash now they would be sent again.
const PENDING_MAX: usize = 512;

/// The marker of a session.
pub struct Journal {
    root: Dir,
    key: [u8; limits::MARKER_KEY_BYTES],
    name: Vec<u8>,
    tag: Tag,
    durability: Durability,
    /// How often what was written down is made durable.
    sync_interval: Duration,
    file: File,
    found: Option<Replayed>,
    /// Tags of markers that were removed because the run was to begin anew.
    forgotten: Vec<Tag>,
    /// Unfinished files that the session does not ask for stay: see [`MarkerRequest::partial`].
    partial: bool,
    state: Mutex<JournalState>,
}

struct JournalState {
    chain: Chain,
    end: u64,
    last_part: u64,
    left: HashMap<Vec<u8>, Vec<Left>>,
    /// Files that are written in place: their paths, and the numbers of their records.
    mixtures: HashMap<Vec<u8>, Vec<u64>>,
    /// See [`Journal::retaken`]: by the new number, the old one and what is to be written with the first claim.
    retaken: HashMap<u64, (u64, PartRecord)>,
    pending: Vec<Published>,
    /// Items have been published that a later session need not send.
    claims: bool,
    /// Part files that stay, with blocks in them.
    kept: bool,
    synced: Instant,
    /// What was written of it may be lost: nothing more is.
    broken: bool,
    /// A sync has failed: no published item is believed, nor written down.
    doubted: bool,
}

enum Taken {
    Ours(File, Stat),
    Held,
    Unusable,
}

/// Opens a marker, or makes it, and takes its lock.
fn take(root: &Dir, name: &[u8], create: bool) -> io::Result<Taken> {
    // Somebody may remove or make it in between, but not for ever.
    for _ in 0..TAKES {
        let (opened, made) = match root.open_existing(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && create => match root.create_new(name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => (made?, true),
            },
            other => (other?, false),
        };
        let taken = take_opened(root, name, opened);
        // No empty file is left behind where there can be no marker.
        if made && !matches!(taken, Ok(Some(Taken::Ours(..) | Taken::Held))) {
            let _ = root.unlink(name);
        }
        if let Some(taken) = taken? {
            return Ok(taken);
        }
    }
    Ok(Taken::Unusable)
}

/// `None` when the file is no longer the one of that name.
fn take_opened(root: &Dir, name: &[u8], opened: File) -> io::Result<Option<Taken>> {
    let (stat, directory) = (stat_file(&opened)?, root.stat_self()?);
    if stat.links == 0 {
        return Ok(None);
    }
    // Whoever may write into the directory can put another's file in the way: only one of this user, or of whoever the
    // directory belongs to, is believed; and none that may be written by more people than the directory.
    let ours = stat.uid == host::user_id() || stat.uid == directory.uid;
    if stat.kind != Kind::File || stat.links > 1 || !ours || stat.mode & 0o022 & !directory.mode != 0 {
        return Ok(Some(Taken::Unusable));
    }
    if !file::try_lock(&opened)? {
        return Ok(Some(Taken::Held));
    }
    // A name alone makes no marker: what a person has called so is neither written over nor removed.
    let mut start = [0; HEADER_BYTES];
    let read = file::read_full_at(&opened, &mut start, 0)?;
    if !may_be_marker(&start[..read]) {
        return Ok(Some(Taken::Unusable));
    }
    // The one who had the lock may have removed the file.
    match root.stat_at(name) {
        Ok(now) if (now.device, now.inode) == (stat.device, stat.inode) => Ok(Some(Taken::Ours(opened, stat))),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads what a marker says; `None` when it says nothing that is understood.
fn replay(marker: &File) -> io::Result<Option<Replayed>> {
    let mut replay = Replay::new(host::boot_id());
    let (mut buffer, mut held, mut offset) = (vec![0; READ_BYTES], 0, 0);
    loop {
        let read = file::read_full_at(marker, &mut buffer[held..], offset)?;
        offset += read as u64;
        let there = held + read;
        let used = replay.read(&buffer[..there]);
        held = there - used.unwrap_or(0);
        if read == 0 || used.is_none() {
            return Ok(replay.finish(held));
        }
        buffer.copy_within(there - held..there, 0);
    }
}

/// Whether the copy of a key has made the directory, as far as its marker says, which nobody takes for that.
pub fn made_top(root: &Dir, request: &MarkerRequest) -> bool {
    let marker = root.open_read(&marker_name(request.key, 1), Links::Refuse);
    let replayed = marker.and_then(|marker| replay(&marker)).ok().flatten();
    !request.anew && replayed.is_some_and(|replayed| replayed.made_top)
}

/// Removes the part files that a marker tells of.
fn remove_parts<'a>(root: &Dir, tag: Tag, parts: impl Iterator<Item = &'a PartRecord>) -> u64 {
    let removed = parts.filter(|part| {
        // A marker is only bytes: it does not get any other file removed.
        tag_of(&part.part_name) == Some(tag)
            && root
                .open_dir(split_name(&part.path).0, Links::Refuse)
                .is_ok_and(|parent| remove_unseen(&parent, &part.part_name).is_ok())
    });
    removed.count() as u64
}

impl Journal {
    /// Finds the marker of a key and takes it, or makes one. `None` when there can be none: the directory cannot be
    /// written, knows no locks, or as many runs as may go at once are under way.
    pub fn open(root: &Dir, request: &MarkerRequest, durability: Durability, tuning: &Tuning) -> Option<Self> {
        let deadline = Instant::now() + tuning.marker_lock_patience;
        let numbers = (1..=MARKERS).filter(|_| request.anew);
        let (mut forgotten, mut mixtures): (Vec<Tag>, _) = (Vec::new(), Vec::new());
        for number in numbers {
            forgotten.extend(forget(root, &marker_name(request.key, number), Some(&mut mixtures)));
        }
        (1..=MARKERS).find_map(|number| {
            let name = marker_name(request.key, number);
            loop {
                match take(root, &name, true) {
                    Ok(Taken::Ours(file, stat)) => {
                        let begun =
                            Self::begin(root, name.clone(), request, (durability, tuning.marker_interval), file);
                        return begun
                            .map(|journal| Self { forgotten: forgotten.clone(), ..journal })
                            .inspect(|journal| journal.name_earlier(&mixtures))
                            .inspect_err(|_| {
                                if stat.size == 0 {
                                    drop(root.unlink(&name))
                                }
                            })
                            .ok();
                    }
                    Ok(Taken::Held) if number == 1 && Instant::now() < deadline => std::thread::sleep(LOCK_PAUSE),
                    Ok(Taken::Held | Taken::Unusable) | Err(_) => return None,
                }
            }
        })
    }

    fn begin(
        root: &Dir,
        name: Vec<u8>,
        request: &MarkerRequest,
        (durability, sync_interval): (Durability, Duration),
        file: File,
    ) -> io::Result<Self> {
        let mut found = replay(&file)?;
        let (tag, mut bytes, mut chain, end) = match &found {
            Some(found) => (found.tag, Vec::new(), found.chain, found.bytes),
            None => {
                let tag = new_tag()?;
                let (header, chain) = Chain::begin(tag);
                (tag, header, chain, 0)
            }
        };
        let session = SessionRecord { boot: host::boot_id(), durability };
        chain.append(&Record::Session(session), &mut bytes);
        if request.made_top {
            chain.append(&Record::MadeTop, &mut bytes);
        }
        // What is behind the last good record would make all that is written now count for nothing.
        file.set_len(end)?;
        file::write_all_at(&file, &bytes, end)?;
        // Before there is any part file: one that outlived a marker without its tag would be nobody's, and stay.
        if durability != Durability::None && found.is_none() {
            file::sync_data(&file)?;
        }
        let mut left: HashMap<Vec<u8>, Vec<Left>> = HashMap::new();
        let mut mixtures: HashMap<Vec<u8>, Vec<u64>> = HashMap::new();
        for (number, one) in found.as_mut().map(|found| std::mem::take(&mut found.parts)).unwrap_or_default() {
            if is_in_place(&one.part) {
                mixtures.entry(one.part.path).or_default().push(number);
                continue;
            }
            left.entry(one.part.path.clone()).or_default().push(one);
        }
        let claims = found.as_ref().is_some_and(|found| found.known_count() > 0);
        let last_part = found.as_ref().map_or(0, |found| found.last_part);
        let end = end + bytes.len() as u64;
        let (pending, synced) = (Vec::new(), Instant::now());
        let retaken = HashMap::new();
        let state = JournalState {
            chain,
            end,
            last_part,
            left,
            mixtures,
            retaken,
            pending,
            claims,
            kept: false,
            synced,
            broken: false,
            doubted: false,
        };
        let root = root.try_clone()?;
        let (key, state) = (request.key, Mutex::new(state));
        let (forgotten, partial) = (Vec::new(), request.partial);
        Ok(Self { root, key, name, tag, durability, sync_interval, file, found, forgotten, partial, state })
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        lock(&self.state)
    }

    /// Whether an earlier session of the copy has made the directory.
    pub fn made_top(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.made_top)
    }

    /// The tag that its part files have in their names.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// The directory that the marker is in.
    pub fn root(&self) -> &Dir {
        &self.root
    }

    /// Whether an earlier session has had this marker, and so its tag.
    pub fn is_resumed(&self) -> bool {
        self.found.is_some()
    }

    /// Whether an earlier session of this run may have been at work here: it has left the marker, or still holds it, as
    /// one does whose connection is lost at the other end alone.
    pub fn may_go_on(&self) -> bool {
        self.is_resumed() || self.is_beside_another()
    }

    /// Whether another session of this copy had the first marker when this one began.
    pub fn is_beside_another(&self) -> bool {
        self.name != marker_name(self.key, 1)
    }

    /// Tags that nobody has any more.
    pub fn forgotten(&self) -> &[Tag] {
        &self.forgotten
    }

    /// The numbers in the names of part files that earlier sessions have left, as far as the marker tells. A part file
    /// that was taken up with another digest has kept its name and got another number.
    pub fn left_numbers(&self) -> HashSet<u64> {
        let numbers = |left: &Left| match part_kind(&left.part.part_name) {
            Some((_, PartKind::Numbered(number))) => Some(number),
            _ => None,
        };
        self.lock().left.values().flatten().filter_map(numbers).collect()
    }

    /// The other markers of the same copy that nobody holds, and their tags.
    pub fn others(&self) -> Vec<(Vec<u8>, Tag)> {
        let names = (1..=MARKERS).map(|number| marker_name(self.key, number)).filter(|name| *name != self.name);
        let tagged = names.filter_map(|name| {
            let held = hold(&self.root, &name)?;
            let tag = replay(&held).ok()?.map(|found| found.tag);
            let _ = file::unlock(&held);
            Some((name, tag?))
        });
        tagged.collect()
    }

    /// Whether the end of it was lost: part files may hold more than is claimed.
    pub fn damaged(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.damaged)
    }

    /// Items that earlier sessions published.
    pub fn known_count(&self) -> u64 {
        self.found.as_ref().map_or(0, Replayed::known_count)
    }

    /// See [`Replayed::known`].
    pub fn known(&self, key: &[u8; 16], wanted: Digests) -> Option<FileDigests> {
        if self.lock().doubted {
            return None;
        }
        self.found.as_ref()?.known(key, wanted)
    }

    /// The part file that earlier sessions left of an item; it is the caller's then. Of several the others are removed.
    pub fn take_left(&self, path: &[u8]) -> Option<Left> {
        let mut left = self.lock().left.remove(path)?;
        let newest = left.pop();
        for older in left {
            self.remove_left(&older);
        }
        newest
    }

    /// Removes a part file that is of no use.
    pub fn remove_left(&self, left: &Left) {
        remove_parts(&self.root, self.tag, std::iter::once(&left.part));
        self.dropped(left.part.number);
    }

    /// A number for a new part file.
    pub fn next_part(&self) -> u64 {
        let mut state = self.lock();
        state.last_part += 1;
        state.last_part
    }

    fn append(&self, state: &mut JournalState, records: &[Record]) -> bool {
        if state.broken {
            return false;
        }
        let (mut bytes, mut chain) = (Vec::new(), state.chain);
        records.iter().for_each(|record| chain.append(record, &mut bytes));
        // What did not get written whole is written over by what comes next.
        let written = file::write_all_at(&self.file, &bytes, state.end).is_ok();
        if written {
            state.chain = chain;
            state.end += bytes.len() as u64;
        }
        written
    }

    /// Writes down a part file that has been made. If it cannot be, nothing may be claimed of it.
    pub fn part(&self, part: PartRecord) -> bool {
        self.append(&mut self.lock(), &[Record::Part(part)])
    }

    /// A part file that was another one's until now, of which blocks were digested otherwise: one part has claims of
    /// one kind only. Those of the other kind stay until there are some of the new.
    pub fn retaken(&self, before: u64, part: PartRecord) {
        self.lock().retaken.insert(part.number, (before, part));
    }

    /// Writes down that a part file is no more.
    pub fn dropped(&self, part: u64) {
        let mut state = self.lock();
        let part = state.retaken.remove(&part).map_or(part, |(before, _)| before);
        self.append(&mut state, &[Record::Dropped { part }]);
    }

    /// Writes down what a part file is that stays for the next session: what it claims of it is believed for as
    /// long as it is just that.
    pub fn left(&self, part: u64, identity: Fingerprint) {
        let mut state = self.lock();
        // No claims of the new number have been written: those of the old one are what stays.
        let part = state.retaken.get(&part).map_or(part, |(before, _)| *before);
        self.append(&mut state, &[Record::Left { part, identity }]);
    }

    /// Writes down blocks that have reached stable storage, and waits until that has too. Tells whether they now count.
    pub fn claim(&self, part: u64, blocks: &[(u64, BlockDigest)]) -> bool {
        let mut sorted = blocks.to_vec();
        sorted.sort_by_key(|block| block.0);
        let mut records: Vec<Record> = Vec::new();
        for (index, digest) in sorted {
            match records.last_mut() {
                Some(Record::Blocks { first, digests, .. }) if *first + digests.len() as u64 == index => {
                    digests.push(digest);
                }
                _ => records.push(Record::Blocks { part, first: index, digests: vec![digest] }),
            }
        }
        let written = {
            let mut state = self.lock();
            self.write_pending(&mut state);
            if let Some((before, part)) = state.retaken.remove(&part) {
                records.splice(0..0, [Record::Dropped { part: before }, Record::Part(part)]);
            }
            self.append(&mut state, &records)
        };
        written && self.sync()
    }

    /// An item has got its name.
    pub fn published(&self, item: Published) {
        let mut state = self.lock();
        if state.doubted {
            return;
        }
        state.pending.push(item);
        if state.pending.len() >= PENDING_MAX {
            self.write_pending(&mut state);
        }
    }

    /// A sync of names, or of a whole file system, has failed. Later sessions send every item anew that has got its
    /// name: the system tells of a lost page or name only once, so no later sync proves that they are there.
    pub fn doubt(&self) {
        {
            let mut state = self.lock();
            if std::mem::replace(&mut state.doubted, true) {
                return;
            }
            state.pending.clear();
            if !self.append(&mut state, &[Record::Doubted]) {
                state.broken = true;
                // A marker that cannot take it back must not be believed.
                let _ = remove_unseen(&self.root, &self.name);
            }
        }
        self.sync();
    }

    fn write_pending(&self, state: &mut JournalState) {
        let pending = std::mem::take(&mut state.pending);
        if !pending.is_empty() && self.append(state, &[Record::Published(pending)]) {
            state.claims = true;
        }
    }

    /// Writes down what has been published, after each group of names; and makes it durable as
    /// often as a checkpoint would.
    pub fn written_down(&self) {
        let due = {
            let mut state = self.lock();
            self.write_pending(&mut state);
            state.synced.elapsed() >= self.sync_interval
        };
        if due {
            self.sync();
        }
    }

    fn sync(&self) -> bool {
        if self.durability != Durability::None && file::sync_data(&self.file).is_err() {
            // What was written may be gone, and what would be written behind it would not count.
            self.lock().broken = true;
            return false;
        }
        let mut state = self.lock();
        state.synced = Instant::now();
        !state.broken
    }

    /// A part file stays for the next session, or something that it must not take for its own.
    pub fn keep(&self) {
        self.lock().kept = true;
    }

    /// Files of earlier sessions that have blocks and that nobody has asked for: in a session for a part of them they
    /// stay for the next.
    pub fn unfinished(&self) -> Unfinished {
        let state = self.lock();
        if !self.partial {
            return Unfinished::default();
        }
        let with_claims = state.left.iter().filter(|(_, left)| left.iter().any(Left::has_claims));
        let mut paths: Vec<Vec<u8>> = with_claims.map(|(path, _)| path.clone()).collect();
        paths.sort_unstable();
        let count = paths.len() as u64;
        paths.truncate(limits::UNFINISHED_PATHS);
        Unfinished { count, paths }
    }

    /// The end of the session. When all is done the marker goes, with what earlier sessions left and nobody asked for,
    /// unless the session was for a part of them; else it stays if it is of any use, and its lock is free. Every thread
    /// that touches part files must have ended by then, unless all is done: small ones have the same names in the next
    /// session that takes the lock.
    pub fn finish(&self, whole: bool) {
        let whole = whole && self.unfinished().count == 0;
        let mut state = self.lock();
        self.write_pending(&mut state);
        // What is gone by now needs nobody to name it.
        state.mixtures.retain(|path, _| self.root.stat(path, Links::Refuse).is_ok());
        let whole = whole && state.mixtures.is_empty();
        let claimed = state.claims
            || state.kept
            || !state.mixtures.is_empty()
            || state.left.values().flatten().any(Left::has_claims);
        // One that was killed may have left small part files, which are known by the marker's tag alone.
        let of_use = claimed || self.found.is_some();
        if of_use && !whole {
            drop(state);
            self.sync();
            self.lock().broken = true;
            // Whoever still holds this would keep the lock for a moment longer, and has nothing to write down any more.
            let _ = file::unlock(&self.file);
            return;
        }
        remove_parts(&self.root, self.tag, state.left.values().flatten().map(|left| &left.part));
        state.left.clear();
        state.broken = true;
        // It may be gone already; there is nothing else to do about it.
        let _ = remove_unseen(&self.root, &self.name);
        if whole && !self.partial {
            // Of other runs of the same copy, which crashed; those under way hold theirs.
            let others = (1..=MARKERS).map(|number| marker_name(self.key, number)).filter(|name| *name != self.name);
            others.for_each(|name| _ = forget(&self.root, &name, None));
        }
    }
}

/// Shared by all that is written in a session.
pub type SharedJournal = Option<Arc<Journal>>;
