//! Writing: hidden part files in the target's own directory, renamed when whole.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use carrack_core::limits;
use carrack_core::path::split_name;
use carrack_core::report::{ErrorCode, Failure, FileDigests, Side};
use carrack_core::request::{Digests, Existing};
use carrack_core::transfer::receiver::Opened;
use carrack_core::tuning::{SLICE_BYTES, SYNC_ALL_PATIENCE};
use carrack_core::wire::peer::{DirectoryAttributes, Offer};
use carrack_sys::dir::{Dir, Kind, Links, Time};
use carrack_sys::{dir, file};

use super::descriptors::patiently;
use super::directories::{Directories, OpenDir};
use crate::data::hasher::BlockHasher;
use crate::error::{failure, io_failure};

/// Where a transfer writes to.
pub enum Destination {
    /// Files below a directory.
    Tree(Tree),
    /// Nothing is kept.
    Null,
    /// One stream of bytes, in order: standard output, a device, a FIFO.
    Sequential(Mutex<Sequential>),
}

/// What a file that is read back is compared by.
const VERIFIED_BY: Digests = Digests { blake3: true, adler32: false, crc32c: false };

/// A stream of bytes in order.
pub struct Sequential {
    out: Box<dyn Write + Send>,
    position: u64,
}

impl Destination {
    /// Writes to a stream.
    pub fn sequential(out: Box<dyn Write + Send>) -> Self {
        Self::Sequential(Mutex::new(Sequential { out, position: 0 }))
    }

    /// Makes the place where an offered file grows, or says why not.
    pub fn open_part(&self, offer: &Offer, existing: Existing) -> (Opened, Option<Part>) {
        match self {
            Self::Tree(tree) => match tree.open_part(offer, existing) {
                Ok(Some(part)) => (Opened::Ready, Some(Part::File(part))),
                Ok(None) => (Opened::Keep, None),
                Err(failure) => (Opened::Refused(failure), None),
            },
            Self::Null => (Opened::Ready, Some(Part::Null)),
            Self::Sequential(_) => (Opened::Ready, Some(Part::Sequential)),
        }
    }

    /// Writes bytes of a part.
    ///
    /// # Errors
    /// Those of the file system; out of order on a stream.
    pub fn write(&self, part: &Part, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        match (part, self) {
            (Part::File(part), _) => file::write_all_at(&part.file, bytes, offset)
                .map_err(|error| io_failure(Side::Destination, format!("write at {offset}"), &error)),
            (Part::Sequential, Self::Sequential(stream)) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                if offset != stream.position {
                    let message =
                        "a block had to be sent again, and what has been written to a stream cannot be taken back";
                    return Err(failure(ErrorCode::Unsupported, Side::Destination, message));
                }
                stream.out.write_all(bytes).map_err(|error| io_failure(Side::Destination, "write", &error))?;
                stream.position += bytes.len() as u64;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Where an offered file grows.
pub enum Part {
    /// A part file.
    File(PartFile),
    /// Nowhere.
    Null,
    /// At the end of a stream.
    Sequential,
}

/// A hidden file that will get its name.
pub struct PartFile {
    file: File,
    entry: PartEntry,
    mode: u32,
    mtime: Option<(i64, u32)>,
}

/// The name that something written will get.
pub struct PartEntry {
    directories: Arc<Directories>,
    parent: Vec<u8>,
    part_name: Vec<u8>,
    name: Vec<u8>,
    /// Size and BLAKE3 of a small file, where it is to be read back.
    written: Option<(u64, [u8; 32])>,
}

/// Files below a directory.
pub struct Tree {
    directories: Arc<Directories>,
    /// Tells this transfer's part files from others'.
    tag: String,
    next_part: AtomicU64,
    /// Whether syncing everything at once is worth it here.
    sync_each: AtomicBool,
}

/// What a bundled file is, beside its bytes.
pub struct SmallFile<'a> {
    /// Relative to the destination.
    pub path: &'a [u8],
    /// Permission bits.
    pub mode: u32,
    /// Modification time.
    pub mtime: (i64, u32),
    /// Its BLAKE3, where it is to be read back before it gets its name.
    pub read_back: Option<[u8; 32]>,
}

impl Tree {
    /// Set-user-id, set-group-id and sticky bits are not a peer's to give.
    const MODE_MASK: u32 = 0o777;

    /// Below this directory.
    ///
    /// # Errors
    /// When the directory cannot be looked at.
    pub fn new(root: Dir) -> io::Result<Self> {
        let mut tag = [0; 4];
        carrack_sys::host::random_bytes(&mut tag)?;
        Ok(Self {
            directories: Arc::new(Directories::new(root)?),
            tag: tag.iter().map(|byte| format!("{byte:02x}")).collect(),
            next_part: AtomicU64::new(1),
            sync_each: AtomicBool::new(false),
        })
    }

    fn part_name(&self, name: &[u8]) -> Vec<u8> {
        let number = self.next_part.fetch_add(1, Ordering::Relaxed);
        let suffix = format!(".carrack-{}{number:x}.part", self.tag);
        // A long name gives way to the suffix: the number keeps it unique.
        let room = limits::NAME_BYTES - 1 - suffix.len();
        let mut part = Vec::with_capacity(limits::NAME_BYTES);
        part.push(b'.');
        part.extend_from_slice(&name[..name.len().min(room)]);
        part.extend_from_slice(suffix.as_bytes());
        part
    }

    /// Where an item goes: `None` when what is there is to be kept.
    fn place(
        &self,
        path: &[u8],
        mtime: Option<(i64, u32)>,
        existing: Existing,
    ) -> Result<Option<(Arc<OpenDir>, PartEntry)>, Failure> {
        let (parent, name) = split_name(path);
        let directory = self.directories.get(parent)?;
        let there = if directory.fresh { None } else { stat_entry(&directory.dir, name)? };
        match there.map(|stat| stat.kind) {
            Some(Kind::Dir) => {
                return Err(failure(
                    ErrorCode::IsADirectory,
                    Side::Destination,
                    "a directory stands there: remove it first, or copy to another name",
                ));
            }
            Some(Kind::File | Kind::Symlink) | None => {}
            Some(_) => {
                return Err(failure(
                    ErrorCode::SpecialFile,
                    Side::Destination,
                    "a FIFO, socket or device stands there, and is not replaced",
                ));
            }
        }
        let keep = match (existing, there) {
            (Existing::Keep, Some(_)) | (Existing::Only, None) => true,
            (Existing::Older, Some(stat)) => {
                mtime.is_some_and(|(seconds, nanos)| (Time { seconds, nanos }) <= stat.mtime)
            }
            _ => false,
        };
        if keep {
            return Ok(None);
        }
        let part_name = self.part_name(name);
        let directories = Arc::clone(&self.directories);
        let entry = PartEntry { directories, parent: parent.to_vec(), part_name, name: name.to_vec(), written: None };
        Ok(Some((directory, entry)))
    }

    fn open_part(&self, offer: &Offer, existing: Existing) -> Result<Option<PartFile>, Failure> {
        let Some((directory, entry)) = self.place(&offer.path, offer.mtime, existing)? else {
            return Ok(None);
        };
        let size = offer.size.unwrap_or(0);
        if !offer.sparse {
            check_space(&directory.dir, size)?;
        }
        let create = || directory.dir.create_new(&entry.part_name);
        let part = create().map_err(|error| io_failure(Side::Destination, "create the part file", &error))?;
        let prepared = (|| {
            if !offer.sparse && size > 0 && file::preallocate(&part, size)? {
                return Ok(());
            }
            part.set_len(size)
        })();
        if let Err(error) = prepared {
            entry.remove();
            return Err(io_failure(Side::Destination, format!("reserve {size} bytes"), &error));
        }
        Ok(Some(PartFile { file: part, entry, mode: offer.mode & Self::MODE_MASK, mtime: offer.mtime }))
    }

    /// Writes a small file under a hidden name; `None` when what is there is to be kept.
    ///
    /// # Errors
    /// Those of the file system; nothing is left behind.
    pub fn write_small(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        content: &[u8],
    ) -> Result<Option<PartEntry>, Failure> {
        let Some((directory, entry)) = self.place(small.path, Some(small.mtime), existing)? else {
            return Ok(None);
        };
        let part = patiently(|| directory.dir.create_new(&entry.part_name))
            .map_err(|error| io_failure(Side::Destination, "create the part file", &error))?;
        let written = (|| {
            if !content.is_empty() {
                file::write_all_at(&part, content, 0)?;
            }
            finish_attributes(&part, small.mode & Self::MODE_MASK, Some(small.mtime))?;
            // Syncing the root's file system would not reach another one that is mounted below it.
            if self.sync_each.load(Ordering::Relaxed) || directory.device != self.directories.root.device {
                file::sync_data(&part)?;
            }
            Ok(())
        })();
        match written {
            Ok(()) => Ok(Some(entry)),
            Err(error) => {
                entry.remove();
                Err(io_failure(Side::Destination, "write", &error))
            }
        }
    }

    /// Makes a symbolic link under a hidden name; `None` when what is there is to be kept.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_link(
        &self,
        small: &SmallFile<'_>,
        existing: Existing,
        target: &[u8],
    ) -> Result<Option<PartEntry>, Failure> {
        let Some((directory, entry)) = self.place(small.path, Some(small.mtime), existing)? else {
            return Ok(None);
        };
        let dir = &directory.dir;
        dir.symlink(target, &entry.part_name)
            .map_err(|error| io_failure(Side::Destination, "make the link", &error))?;
        // A link's own time is a nicety that some file systems do not have.
        let _ = dir.set_times(&entry.part_name, time(small.mtime));
        Ok(Some(entry))
    }

    /// Makes a directory, or finds it.
    ///
    /// # Errors
    /// When something else stands there.
    pub fn make_directory(&self, path: &[u8]) -> Result<(), Failure> {
        self.directories.get(path).map(|_| ())
    }

    /// Brings what has been written to stable storage, before it gets its names.
    ///
    /// # Errors
    /// The system's: then nothing that was written may be relied on.
    pub fn sync_all(&self) -> Result<(), Failure> {
        let start = Instant::now();
        let root = &self.directories.root;
        root.dir.sync_filesystem().map_err(|error| io_failure(Side::Destination, "sync the file system", &error))?;
        if start.elapsed() > SYNC_ALL_PATIENCE {
            self.sync_each.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether small files are synced one by one, because syncing everything takes too long here.
    pub fn syncs_each(&self) -> bool {
        self.sync_each.load(Ordering::Relaxed)
    }

    /// Sets permissions and times, in this order, and tells what failed.
    pub fn apply_directories(&self, list: &[DirectoryAttributes]) -> Vec<(Vec<u8>, Failure)> {
        let mut failures = Vec::new();
        for attributes in list {
            let (parent, name) = split_name(&attributes.path);
            let result = self.directories.get(parent).and_then(|directory| {
                let dir = &directory.dir;
                let applied = dir
                    .set_mode(name, attributes.mode & Self::MODE_MASK)
                    .and_then(|()| dir.set_times(name, time(attributes.mtime)));
                applied.map_err(|error| io_failure(Side::Destination, "set permissions and times", &error))
            });
            if let Err(failure) = result {
                failures.push((attributes.path.clone(), failure));
            }
        }
        failures
    }
}

fn stat_entry(dir: &Dir, name: &[u8]) -> Result<Option<dir::Stat>, Failure> {
    match dir.stat_at(name) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_failure(Side::Destination, "stat", &error)),
    }
}

fn check_space(dir: &Dir, size: u64) -> Result<(), Failure> {
    // A file system that cannot say how much is free gets the benefit of the doubt: writing will tell.
    let Ok(space) = dir.free_space() else {
        return Ok(());
    };
    if space.bytes_available >= size {
        return Ok(());
    }
    let message = format!(
        "the file needs {size} bytes and the file system has {} left: {} too few; free some and run the same command again",
        space.bytes_available,
        size - space.bytes_available
    );
    Err(failure(ErrorCode::NoSpace, Side::Destination, message))
}

/// Reads a file back past the cache and compares its BLAKE3. What is to be read must have been synced: only then can the cache let
/// go of it.
fn verify_stored(stored: &File, size: u64, expected: Option<[u8; 32]>) -> Result<(), Failure> {
    let fail = |error: io::Error| io_failure(Side::Destination, "read back", &error);
    file::drop_cache(stored, 0, 0).map_err(fail)?;
    let mut hasher = BlockHasher::new(VERIFIED_BY, 0);
    let mut slice = vec![0; SLICE_BYTES.min(size as usize)];
    let mut offset = 0;
    while offset < size {
        let want = (size - offset).min(SLICE_BYTES as u64) as usize;
        let read = file::read_full_at(stored, &mut slice[..want], offset).map_err(fail)?;
        if read < want {
            let message = format!("read back: the file ends at {}", offset + read as u64);
            return Err(failure(ErrorCode::InputOutput, Side::Destination, message));
        }
        hasher.update(&slice[..want]);
        offset += want as u64;
    }
    if Some(hasher.finish(true).blake3) == expected {
        return Ok(());
    }
    let message = "storage gives back other bytes than were written; the file was not given its name";
    Err(failure(ErrorCode::DigestMismatch, Side::Destination, message))
}

fn finish_attributes(part: &File, mode: u32, mtime: Option<(i64, u32)>) -> io::Result<()> {
    // A part file is made 0600; most have to be opened up, a private one is right already.
    if mode != 0o600 {
        file::set_mode(part, mode)?;
    }
    if let Some(mtime) = mtime {
        file::set_times(part, time(mtime))?;
    }
    Ok(())
}

fn time(mtime: (i64, u32)) -> Time {
    Time { seconds: mtime.0, nanos: mtime.1 }
}

impl PartEntry {
    /// Reads back what storage holds of a small file, past the cache, and compares. A link holds nothing to compare.
    ///
    /// # Errors
    /// With [`ErrorCode::DigestMismatch`] when storage gives back something else.
    pub fn verify(&self) -> Result<(), Failure> {
        let Some((size, expected)) = self.written else { return Ok(()) };
        let directory = self.directories.get(&self.parent)?;
        let stored = patiently(|| directory.dir.open_read(&self.part_name, Links::Refuse));
        let stored = stored.map_err(|error| io_failure(Side::Destination, "open to read back", &error))?;
        verify_stored(&stored, size, Some(expected))
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// Those of the system; the part is then removed.
    pub fn publish(&self) -> Result<(), Failure> {
        let directory = self.directories.get(&self.parent)?;
        directory.dir.rename(&self.part_name, &directory.dir, &self.name).map_err(|error| {
            self.remove();
            io_failure(Side::Destination, "rename to its name", &error)
        })
    }

    /// Removes what was written.
    pub fn remove(&self) {
        // It may be gone already; there is nothing else to do about it.
        let _ = self.directories.get(&self.parent).map(|directory| directory.dir.unlink(&self.part_name));
    }
}

impl PartFile {
    /// Removes it.
    pub fn remove(&self) {
        self.entry.remove();
    }

    /// Cuts it to its size and sets its attributes; then everything written is on stable storage.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish(&self, size: u64) -> Result<(), Failure> {
        let finished = (|| {
            if dir::stat_file(&self.file)?.size != size {
                self.file.set_len(size)?;
            }
            finish_attributes(&self.file, self.mode, self.mtime)?;
            file::sync_data(&self.file)
        })();
        finished.map_err(|error| io_failure(Side::Destination, "sync", &error))
    }

    /// Reads back what storage holds, past the cache, and compares.
    ///
    /// # Errors
    /// With [`ErrorCode::DigestMismatch`] when storage gives back something else.
    pub fn verify(&self, size: u64, expected: FileDigests) -> Result<(), Failure> {
        verify_stored(&self.file, size, expected.blake3)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// Those of the system; the part is then removed.
    pub fn publish(&self) -> Result<(), Failure> {
        self.entry.publish()
    }
}
