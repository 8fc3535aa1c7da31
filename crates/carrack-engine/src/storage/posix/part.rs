//! What is being written and has not got its name yet: [`PartFile`] grows block by block and may outlive its session,
//! [`PartEntry`] is a small file or link that is whole.

mod entry;
mod holes;
mod over;
mod reading;
mod room;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use carrack_core::attributes::{KeptAttributes, OtherAttributes, Time};
use carrack_core::backup::Backup;
use carrack_core::digest::BlockDigest;
use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, Side};
use carrack_core::request::{Digests, Durability};
use carrack_core::transfer::Fingerprint;
use carrack_core::transfer::marker::TAKEN_BACK;
use carrack_core::tuning::{SLICE_BYTES, Tuning};
use carrack_sys::bulk::Pipe;
use carrack_sys::{dir, file};

pub use self::entry::PartEntry;
pub(super) use self::entry::{EntrySource, check_twin, may_replace, stat_entry};
use self::over::WritingOver;
pub(super) use self::over::{OverTally, WrittenOver};
pub(super) use self::room::check_space;
use super::directories::{Directories, Names};
use super::extended::Holder;
use super::giving::{Beginning, Getting, GivenAttributes};
use super::identity::Ground;
use super::marker::SharedJournal;
use super::names::PartNames;
use super::past_cache::WriteBehind;
use super::replaced::Replaced;
use super::times::times_to_set;
use super::turns::Turns;
use super::unkept::{UnkeptTally, if_it_can};
use super::watch::Watch;

use crate::data::hasher::BlockHasher;
use crate::error::{failure, io_failure};
use crate::storage::giving::Giving;
use crate::storage::write::{Closing, TIME_OF_MIXTURE};
use crate::sync::lock;

/// What a part file that is left bears: long ago, so that whoever writes to it gives it another, and even, for file
/// systems that keep no odd seconds.
const SEALED: dir::FileTime = dir::FileTime { seconds: 1_000_000_000, nanos: 0 };

/// [`TIME_OF_MIXTURE`] as the system takes it.
pub(super) const MIXTURE: dir::FileTime =
    dir::FileTime { seconds: TIME_OF_MIXTURE.seconds, nanos: TIME_OF_MIXTURE.nanos };

/// What everything of one session that is being written shares.
pub(super) struct Shared {
    pub directories: Directories,
    pub journal: SharedJournal,
    pub durability: Durability,
    /// Whether syncing everything at once takes too long here.
    pub sync_each: AtomicBool,
    pub tuning: Arc<Tuning>,
    pub watch: Watch,
    pub unkept: UnkeptTally,
    /// Where two names may be one: files of this session by device and inode, and the names that they got.
    pub published: Mutex<Names>,
    /// Files that have got their names, or kept them, where nothing can be read back past the cache.
    pub in_memory: AtomicU64,
    pub replaced: Replaced,
    /// Modification times that differ by no more, in nanoseconds, are one time.
    pub window_ns: AtomicU64,
    /// What is replaced or deleted is kept.
    pub backup: OnceLock<Backup>,
    pub names: Arc<PartNames>,
    /// What items get of the attributes of their sources beside permissions and times; nothing, unless that is set.
    pub giving: OnceLock<Giving>,
    /// Files that are to take the place of one of the same size and time.
    pub replaced_same: AtomicU64,
    pub in_place: OverTally,
    pub closing: Closing,
}

impl Shared {
    /// What items get of the attributes of their sources beside permissions and times.
    pub fn giving(&self) -> &Giving {
        self.giving.get_or_init(|| Giving::new(KeptAttributes::default(), false))
    }

    /// A file, or a link, has got its name on this file system, or keeps it.
    pub fn count_in_memory(&self, kind: ItemKind, ground: &Ground) {
        if kind == ItemKind::File && ground.is_in_memory() {
            self.in_memory.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The sync of a file has failed. Where nothing is said to be durable it was only to be read back.
    pub fn sync_of_file_failed(&self, why: &Failure) {
        if self.durability != Durability::None {
            self.directories.syncs.file_failed(why);
        }
    }

    /// Whether a small file is synced by itself.
    pub fn syncs_now(&self, device: u64, read_back: bool) -> bool {
        match self.durability {
            Durability::Each => true,
            // Only what is on storage can be read back from there.
            Durability::None => read_back,
            // Syncing the root's file system would not reach another one that is mounted below it.
            Durability::Group => {
                self.sync_each.load(Ordering::Relaxed) || device != self.directories.root.file_system.device
            }
        }
    }
}

/// A hidden file that grows, and will get its name.
pub struct PartFile {
    pub(super) file: File,
    pub(super) entry: PartEntry,
    /// Its number in the marker; none where it is not told of there.
    pub(super) number: Option<u64>,
    pub(super) mode: u32,
    pub(super) path: Arc<[u8]>,
    pub(super) block_bytes: u32,
    /// Its size was known from the beginning.
    pub(super) has_size: bool,
    /// It has holes worth keeping.
    pub(super) keeps_holes: bool,
    pub(super) wanted: Digests,
    pub(super) claims: PartClaims,
    /// A sync has failed: what was written may be gone, whatever a later sync says.
    pub(super) void: AtomicBool,
    pub(super) cache: WriteBehind,
    pub(super) touched: Touched,
    pub(super) turns: Turns,
    /// What stands at the name, where something of it is to be taken over.
    pub(super) standing: Mutex<Option<Arc<File>>>,
    /// Its modification time, where that is another than was offered.
    pub(super) modified: OnceLock<Time>,
    /// It is written over where it stands.
    pub(super) over: Option<WrittenOver>,
}

/// What the marker claims of a part file.
#[derive(Default)]
pub(super) struct PartClaims {
    /// Blocks that it claims, or may.
    pub blocks: AtomicU64,
    /// Those that it claims and nobody has read again since the file was found to be another, or shorter, than it was
    /// left: while there are any, it is not said to be what its claims were made of.
    pub unproven: Mutex<HashSet<u64>>,
}

/// Which blocks of a part file may hold something else than zeros.
pub(super) enum Touched {
    /// Any: what an earlier session, or somebody else, wrote there is not known.
    Any,
    /// The file was made by this session: only what it has written to since. By the number of the 64th part
    /// of the block: a bit each.
    Some(Mutex<BTreeMap<u64, u64>>),
}

impl Touched {
    /// Of a file that has just been made.
    pub fn none() -> Self {
        Self::Some(Mutex::default())
    }

    fn note(&self, index: u64) {
        if let Self::Some(blocks) = self {
            *lock(blocks).entry(index / 64).or_default() |= 1 << (index % 64);
        }
    }

    fn has(&self, index: u64) -> bool {
        let Self::Some(blocks) = self else { return true };
        let blocks = lock(blocks);
        blocks.get(&(index / 64)).is_some_and(|bits| bits >> (index % 64) & 1 == 1)
    }
}

impl PartFile {
    fn fail(what: &'static str) -> impl Fn(io::Error) -> Failure {
        move |error| io_failure(Side::Destination, what, &error)
    }

    /// Writes bytes of one block, all of them.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let _entered = self.entry.shared.watch.enter("write", &self.path);
        let _writing = self.writing().map_err(Self::write_failure(offset))?;
        let block = offset / u64::from(self.block_bytes);
        let was_touched = self.touched.has(block);
        self.touched.note(block);
        let end = offset.saturating_add(bytes.len() as u64);
        let write = || {
            if !self.keeps_holes {
                return self.cache.write(&self.file, bytes, offset);
            }
            holes::pieces(bytes, offset).try_for_each(|(range, is_zeros)| {
                let (at, length) = (offset + range.start as u64, range.len() as u64);
                match (is_zeros, was_touched) {
                    (false, _) => self.cache.write(&self.file, &bytes[range], at),
                    (true, true) => file::zero(&self.file, at, length),
                    (true, false) => Ok(()),
                }
            })
        };
        self.turns.write(&self.file, end, write).map_err(Self::write_failure(offset))
    }

    /// Writes what a pipe holds of one block, all of it.
    ///
    /// # Errors
    /// Those of the system; the pipe then still holds what was not written.
    pub fn write_from(&self, offset: u64, pipe: &mut Pipe) -> Result<(), Failure> {
        let _entered = self.entry.shared.watch.enter("write", &self.path);
        let _writing = self.writing().map_err(Self::write_failure(offset))?;
        self.touched.note(offset / u64::from(self.block_bytes));
        self.cache.bypassed();
        let end = offset.saturating_add(pipe.holds() as u64);
        self.turns.write(&self.file, end, || pipe.put(&self.file, offset)).map_err(Self::write_failure(offset))
    }

    /// Makes a block, or its end, read as zeros: where nothing has been written since this session made the file it
    /// does already, and whatever else may be there is not taken for granted.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write_hole(&self, offset: u64, length: u64) -> Result<(), Failure> {
        if !self.touched.has(offset / u64::from(self.block_bytes)) {
            return Ok(());
        }
        let _entered = self.entry.shared.watch.enter("write", &self.path);
        let _writing = self.writing().map_err(Self::write_failure(offset))?;
        file::zero(&self.file, offset, length).map_err(Self::write_failure(offset))
    }

    fn write_failure(offset: u64) -> impl Fn(io::Error) -> Failure {
        move |error| io_failure(Side::Destination, "write", &error).at_offset(offset)
    }

    /// Held by whoever writes to a file in place.
    fn writing(&self) -> io::Result<Option<WritingOver<'_>>> {
        self.over.as_ref().map(|over| over.enter(&self.file)).transpose()
    }

    /// Gives it its size before anything is written.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn lengthen(&self, size: u64) -> Result<(), Failure> {
        let set = || self.file.set_len(size).and_then(|()| self.writing().map(drop));
        set().map_err(Self::fail("set the size"))
    }

    /// A range has been written whole. A file that is written in place bears no time of its own until it is whole, and
    /// each write gives it another.
    pub fn written(&self, offset: u64, length: u64) {
        self.cache.written(&self.file, offset, length);
        if let Ok(Some(_writing)) = self.writing() {
            let _ = file::set_times(&self.file, MIXTURE);
        }
    }

    /// Waits until what has been written is on stable storage. After an error it never asks again: the system would say
    /// that all is well, and it is not.
    fn sync(&self) -> Result<(), Failure> {
        let _entered = self.entry.shared.watch.enter("sync", &self.path);
        if self.void.load(Ordering::Acquire) {
            let message = "sync: the storage has lost what was written of the file before";
            return Err(failure(ErrorCode::InputOutput, Side::Destination, message));
        }
        file::sync_data(&self.file).map_err(|error| {
            self.void.store(true, Ordering::Release);
            self.over.iter().for_each(|over| over.is_lost(&self.entry.shared.in_place));
            let why = io_failure(Side::Destination, "sync", &error);
            self.entry.shared.sync_of_file_failed(&why);
            why
        })
    }

    /// Makes these blocks, which have been written whole, durable and has the marker claim them. With `read_back`
    /// they are first read from storage, past the cache, and the indexes of those that came back otherwise are
    /// told; those are not claimed.
    ///
    /// With [`Durability::None`] nothing is synced, unless it is to be read back.
    ///
    /// # Errors
    /// When syncing or reading back fails: nothing of this part file may be relied on any more. It is to be removed,
    /// and the item sent again to a new one.
    pub fn checkpoint(&self, blocks: &[(u64, BlockDigest)], read_back: bool) -> Result<Vec<u64>, Failure> {
        if self.entry.shared.durability != Durability::None || read_back {
            self.sync()?;
            for (index, _) in blocks {
                let start = index * u64::from(self.block_bytes);
                self.cache.synced(&self.file, start, self.block_bytes.into());
            }
        }
        let mut rotten = Vec::new();
        if read_back {
            for (index, digest) in blocks {
                if !self.is_stored(*index, *digest)? {
                    rotten.push(*index);
                }
            }
        }
        // What an earlier session claimed of them is not so any more, whatever happens before they have come again.
        rotten.iter().for_each(|&index| self.unclaim(index));
        let good: Vec<_> = blocks.iter().filter(|block| !rotten.contains(&block.0)).copied().collect();
        self.claim(&good);
        Ok(rotten)
    }

    fn claim(&self, blocks: &[(u64, BlockDigest)]) {
        // Digests of nothing prove nothing later.
        if let (Some(journal), Some(number), true) =
            (&self.entry.shared.journal, self.number, self.wanted.main.is_some())
            && !blocks.is_empty()
            && journal.claim(number, blocks)
        {
            self.claims.blocks.fetch_add(blocks.len() as u64, Ordering::Relaxed);
            let mut unproven = lock(&self.claims.unproven);
            for (index, _) in blocks {
                unproven.remove(index);
            }
        }
    }

    /// A block that the marker claims is about to be written again: from now on it claims nothing of it. Not
    /// synced: what another boot finds claimed is read again anyway.
    pub fn unclaim(&self, index: u64) {
        self.claim(&[(index, BlockDigest { main: TAKEN_BACK, ..BlockDigest::default() })]);
    }

    /// Stays for the next session, if that can use anything of it; else it is removed. Nobody may write to it any more.
    pub fn leave(&self) {
        match &self.entry.shared.journal {
            Some(journal) if self.claims.blocks.load(Ordering::Relaxed) > 0 && !self.void.load(Ordering::Acquire) => {
                let is_proven = lock(&self.claims.unproven).is_empty();
                if let (true, Some(number)) = (is_proven, self.number)
                    && let Some(identity) = self.seal()
                {
                    journal.left(number, identity);
                }
                journal.keep();
            }
            _ => self.remove(),
        }
        if self.over.is_none() {
            // Whoever takes it up needs the lock, and this may stay open for a moment longer.
            let _ = file::unlock(&self.file);
        }
    }

    /// Gives it a modification time that no write leaves as it is, however coarse the clock, and says what it is then;
    /// `None` where that would not show what happens to it.
    fn seal(&self) -> Option<Fingerprint> {
        file::set_times(&self.file, SEALED).ok()?;
        let stat = dir::stat_file(&self.file).ok()?;
        let directory = self.entry.shared.directories.find(&self.entry.parent)?;
        directory
            .file_system
            .ground
            .identity(&stat)
            .filter(|_| stat.mtime == SEALED && directory.file_system.ground.proves_content(&stat))
    }

    /// Removes the part file. What is written in place stays: as it was, or marked where something of it was written.
    pub fn remove(&self) {
        if let Some(over) = &self.over {
            let is_untouched = over.end(&self.file, &self.entry.shared.in_place);
            if let (Some(journal), Some(number), true) = (&self.entry.shared.journal, over.number, is_untouched) {
                journal.untouched(&self.path, number);
            }
            return;
        }
        self.entry.remove();
        self.dropped();
    }

    fn dropped(&self) {
        if let (Some(journal), Some(number)) = (&self.entry.shared.journal, self.number) {
            journal.dropped(number);
        }
    }

    /// It has another modification time than was offered.
    pub fn set_modified(&self, at: Time) {
        let _ = self.modified.set(at);
    }

    /// Cuts it to its size and sets its attributes; then everything written is on stable storage, or with
    /// [`Durability::None`] with the system.
    ///
    /// # Errors
    /// Those of the system: nothing of this part file may be relied on any more.
    pub fn finish(&self, size: u64) -> Result<(), Failure> {
        let fail = Self::fail("set the size, permissions and times");
        let _writing = self.writing().map_err(&fail)?;
        if dir::stat_file(&self.file).map_err(&fail)?.size != size {
            self.file.set_len(size).map_err(&fail)?;
        }
        let mtime = self.modified.get().copied().or(self.entry.source.mtime);
        let (giving, others) = (self.entry.shared.giving(), &self.entry.source.others);
        // What an earlier session left may have been given something.
        let is_new = !self.entry.in_place && matches!(self.touched, Touched::Some(_));
        let beginning = if is_new { Beginning::New } else { Beginning::Standing };
        finish_attributes(giving, &self.file, (self.mode, mtime), others, beginning).map_err(&fail)?;
        if self.entry.shared.durability != Durability::None {
            self.sync()?;
            self.cache.synced(&self.file, 0, 0);
        }
        // Where room is only found when a file is closed, its lack is told only then.
        file::flush(&self.file).map_err(Self::fail("close"))?;
        let holder = Holder::File(&self.file);
        let stat = giving.shown(dir::stat_file(&self.file).map_err(&fail)?, holder);
        self.entry.look(stat, giving.listed_of(holder, others));
        Ok(())
    }

    /// Reads back what storage holds, past the cache, and compares.
    ///
    /// # Errors
    /// With [`ErrorCode::DigestMismatch`] when storage gives back something else.
    pub fn verify(&self, size: u64, expected: FileDigests) -> Result<(), Failure> {
        if self.entry.shared.durability == Durability::None {
            self.sync()?;
        }
        verify_stored(&self.file, size, expected)
    }

    /// Gives it its name; `false` when what has come to stand there is to be kept. `digests` are what
    /// it has been found to be.
    ///
    /// # Errors
    /// As [`PartEntry::publish`].
    pub fn publish(&self, digests: FileDigests) -> Result<bool, Failure> {
        let published = self.entry.publish_as(digests);
        self.dropped();
        published
    }
}

fn ends_early(offset: u64) -> Failure {
    let message = format!("read back: the file ends at {offset}");
    failure(ErrorCode::InputOutput, Side::Destination, message)
}

/// Reads a file back past the cache and compares the digest that it is verified by. What is to be read must have been
/// synced: only then can the cache let go of it.
fn verify_stored(stored: &File, size: u64, expected: FileDigests) -> Result<(), Failure> {
    let fail = |error: io::Error| io_failure(Side::Destination, "read back", &error);
    file::drop_cache(stored, 0, 0).map_err(fail)?;
    let wanted = Digests { main: expected.kinds().main, ..Digests::NONE };
    let mut hasher = BlockHasher::new(wanted, 0);
    let mut slice = vec![0; SLICE_BYTES.min(size as usize)];
    let mut offset = 0;
    while offset < size {
        let want = (size - offset).min(SLICE_BYTES as u64) as usize;
        let read = file::read_full_at(stored, &mut slice[..want], offset).map_err(fail)?;
        if read < want {
            return Err(ends_early(offset + read as u64));
        }
        hasher.update(&slice[..want]);
        offset += want as u64;
    }
    if Some(hasher.finish(true).main) == expected.main() {
        return Ok(());
    }
    let message = "storage gives back other bytes than were written; the file was not given its name";
    Err(failure(ErrorCode::DigestMismatch, Side::Destination, message))
}

/// Owner, permissions, times and what else is given, set last.
pub(super) fn finish_attributes(
    giving: &Giving,
    part: &File,
    (mode, mtime): (u32, Option<Time>),
    others: &OtherAttributes,
    beginning: Beginning<'_>,
) -> io::Result<GivenAttributes> {
    // Always: a part file is made 0600, but for what the umask takes away.
    let given = giving.give_new(Getting::File(part), mode, others, beginning)?;
    if others.access_time().is_some() {
        // It is read back later.
        file::keep_access_time(part);
    }
    let times = times_to_set(mtime, others);
    let has_time = times.map_or(Ok(true), |times| if_it_can(file::set_times(part, times)))?;
    Ok(GivenAttributes { mode_and_time: given.mode_and_time && has_time, ..given })
}
