//! Reading: an item's bytes, and proof that they did not change while they were read.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrack_core::attributes::{Attributes, OtherAttributes, Time};
use carrack_core::limits::LINK_TARGET_BYTES;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::transfer::{Fingerprint, ScannedItem};
use carrack_core::tuning::Tuning;
use carrack_sys::dir::{Dir, FileTime, Kind, Links, PassedWays, Stat};
use carrack_sys::{dir, file, host};

use super::descriptors::patiently;
use super::extended::Holder;
use super::identity::{Ground, Grounds};
use super::links::Following;
use super::past_cache::ReadAhead;
use super::place::Place;
use super::settle::{SourceClocks, settle};
use super::telling::Telling;
use super::times::time_of;
use crate::error::{failure, io_failure, system_failure};
use crate::storage::read::{GrownState, Reader, grew_to};

/// A source on a file system, opened.
pub struct PosixSource {
    /// Whether it is a directory or one entry, and how it is opened.
    pub kind: RootKind,
    /// The file systems that have been met below it.
    pub grounds: Grounds,
    /// What is known of their clocks.
    pub clocks: Arc<SourceClocks>,
    /// Says what items have beside content, permissions and times.
    pub telling: Arc<Telling>,
    /// Where files were opened, for the next ones.
    pub ways: PassedWays,
    /// Files with several names, of which one has been deleted after it was copied.
    pub names_deleted: Mutex<HashSet<(u64, u64)>>,
    /// What becomes of its links.
    pub links: Following,
    /// A file whose neighbours are nobody's business: it alone was granted.
    pub is_alone: bool,
}

/// What a source is.
pub enum RootKind {
    /// A directory and all below it.
    Directory(Arc<Dir>),
    /// One file, relative to a directory.
    Entry(Arc<Dir>, Vec<u8>, Links),
}

impl From<RootKind> for PosixSource {
    fn from(kind: RootKind) -> Self {
        Self {
            kind,
            grounds: Grounds::default(),
            clocks: Arc::default(),
            telling: Arc::default(),
            ways: PassedWays::default(),
            names_deleted: Mutex::default(),
            links: Following::default(),
            is_alone: false,
        }
    }
}

impl PosixSource {
    /// Opens what a path leads to; links named on the command line are followed.
    ///
    /// # Errors
    /// When it is not there or not readable.
    pub fn open(place: &Place, path: &[u8]) -> Result<Self, Failure> {
        let named = |error: io::Error| system_failure(Side::Source, &error).at_path(path);
        let stat = place.stat(path).map_err(named)?;
        if stat.kind != Kind::Dir {
            let entry = Self::from(Self::entry(place, path).map_err(named)?);
            return Ok(Self { is_alone: place.is_granted_alone(path), ..entry });
        }
        let kind = RootKind::Directory(Arc::new(place.dir(path).map_err(named)?));
        let links = place.link_bounds(path).map_err(named)?.into();
        Ok(Self { links, ..Self::from(kind) })
    }

    /// A file named on the command line: its links lead anywhere the user may go, or anywhere below a node's root.
    fn entry(place: &Place, path: &[u8]) -> io::Result<RootKind> {
        match place {
            Place::Anywhere { .. } => {
                let (parent, name) = Place::Anywhere { home: None }.parent(&place.resolved(path))?;
                Ok(RootKind::Entry(Arc::new(parent), name, Links::Refuse))
            }
            Place::Beneath(_) | Place::Granted(..) => {
                let (top, path, links) = place.below(path)?;
                Ok(RootKind::Entry(top, path, links))
            }
            Place::Stored(..) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Opens an item for reading.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceVanished`] when it was there for the scan and is no more.
    pub fn open_item(&self, item: &ScannedItem, tuning: &Tuning) -> Result<OpenSource, Failure> {
        let opened = match &self.kind {
            RootKind::Directory(root) if self.links.follows() => self.links.open_read(root, &item.path),
            RootKind::Directory(root) => patiently(|| self.ways.open_read(root, &item.path, Links::Refuse)),
            RootKind::Entry(parent, name, links) => patiently(|| parent.open_read(name, *links)),
        };
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failure(ErrorCode::SourceVanished, Side::Source, "vanished after it was listed"),
            _ => io_failure(Side::Source, "open", &error),
        })?;
        if self.telling.keeps_access_times() {
            file::keep_access_time(&file);
        }
        let now = host::clock();
        let stat = dir::stat_file(&file).map_err(|error| io_failure(Side::Source, "stat", &error))?;
        let ground = self.grounds.of(stat.device, &file);
        if stat.kind != Kind::File {
            let replaced = failure(ErrorCode::SourceChanged, Side::Source, "is no longer a regular file");
            return Err(replaced.for_reason(Reason::SourceReplaced));
        }
        // It was opened so that a FIFO in its place could not hang us; it is a file, and files are read waiting.
        if !ground.is_plain() {
            file::clear_nonblock(&file).map_err(|error| io_failure(Side::Source, "open", &error))?;
        }
        // In memory there is nothing to read ahead, nor to let go of.
        let ahead = if ground.is_in_memory() { ReadAhead::NONE } else { ReadAhead::new(tuning, &file, stat.size) };
        let telling = Arc::clone(&self.telling);
        Ok(OpenSource { file, stat, ground, opened: now, prefix: None, ahead, telling })
    }
}

impl PosixSource {
    /// What a source counts as that is one item; its name may be a path through links.
    pub fn shown_alone(&self, parent: &Dir, name: &[u8], links: Links, stat: Stat) -> Stat {
        if !self.telling.is_faked() || stat.kind != Kind::File {
            return stat;
        }
        parent.open_read(name, links).map_or(stat, |file| self.telling.shown(stat, Holder::File(&file)))
    }

    /// What else it has.
    pub fn others_alone(&self, parent: &Dir, name: &[u8], links: Links, stat: &Stat) -> OtherAttributes {
        if stat.kind != Kind::File {
            return self.telling.of_stat(stat);
        }
        match parent.open_read(name, links) {
            Ok(file) => self.telling.of(stat, Holder::File(&file)),
            Err(_) => self.telling.of_unreadable(stat),
        }
    }

    /// Where a link leads that a file stands for.
    ///
    /// # Errors
    /// Those of the system; where the file stands for none.
    pub fn faked_target(&self, directory: &Dir, name: &[u8], stat: &Stat) -> io::Result<Vec<u8>> {
        let file = directory.open_read(name, Links::Refuse)?;
        if self.telling.shown(*stat, Holder::File(&file)).kind != Kind::Symlink {
            return Err(io::Error::other("it is no symbolic link any more"));
        }
        let mut target = Vec::new();
        file.take(LINK_TARGET_BYTES as u64 + 1).read_to_end(&mut target)?;
        Ok(target)
    }
}

/// A file, opened for reading. Several streams may read different blocks at once.
pub struct OpenSource {
    file: File,
    /// What it was when it was opened, or when it had settled.
    stat: Stat,
    /// The file system that it is on.
    ground: Ground,
    /// What the host's clock showed when it was opened, before it was looked at.
    opened: FileTime,
    /// It may grow: so many bytes of it are copied, as many as it had when it was listed.
    prefix: Option<u64>,
    ahead: ReadAhead,
    telling: Arc<Telling>,
}

impl OpenSource {
    /// What it is, past the caches of NFS, SMB and FUSE, which may still hold what was said when it was opened.
    fn now(&self) -> Result<dir::Stat, Failure> {
        dir::stat_file_uncached(&self.file).map_err(|error| io_failure(Side::Source, "stat", &error))
    }

    /// Looks at it until a change that comes while it is read cannot go unseen. `rest` lets so much time pass,
    /// and says whether to go on.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when it changes all the time, and those of the system.
    pub fn settled(mut self, clocks: &SourceClocks, rest: &mut dyn FnMut(Duration) -> bool) -> Result<Self, Failure> {
        let found = settle(clocks, &self.file, (self.stat, self.opened), rest)
            .map_err(|error| io_failure(Side::Source, "stat", &error))?;
        self.stat = found.ok_or_else(|| {
            let why = "a program has it open for writing, and changes it again and again";
            failure(ErrorCode::SourceChanged, Side::Source, why).for_reason(Reason::SourceBusy)
        })?;
        Ok(self)
    }

    /// It may grow from now on, and may have grown since it was listed: what was there then is what is copied.
    pub fn may_grow_from(mut self, listed: Option<u64>) -> Self {
        self.prefix = listed;
        self
    }

    /// Why there is less to read than was said.
    fn ends_early(&self, end: u64) -> Failure {
        let said = self.stat.size;
        if dir::stat_file(&self.file).is_ok_and(|now| now.size == said) {
            let message = format!("ends at {end} and says that it has {said} bytes: it does not know its own size");
            return failure(ErrorCode::InputOutput, Side::Source, message).for_reason(Reason::SizeUnknown);
        }
        let message = format!("ends at {end}, earlier than when it was opened: it was truncated while it was read");
        failure(ErrorCode::SourceChanged, Side::Source, message)
    }

    /// Why there is more to read than was said.
    fn has_more(&self, read: u64) -> Failure {
        let said = self.stat.size;
        match dir::stat_file(&self.file) {
            Ok(now) if now.size == said => {
                let message =
                    format!("says that it has {said} bytes and has {read} and more: it does not know its own size");
                failure(ErrorCode::Unsupported, Side::Source, message).for_reason(Reason::SizeUnknown)
            }
            Ok(now) => changed("while it was read", said, now.size),
            Err(error) => io_failure(Side::Source, "stat", &error),
        }
    }
}

impl Reader for OpenSource {
    fn size(&self) -> Option<u64> {
        Some(self.stat.size)
    }

    /// Of what may have grown the time is that of the listing: whoever compares times later sees that there is more.
    fn attributes(&self, item: &ScannedItem) -> Attributes {
        let mtime = if self.prefix.is_some() { item.attributes.mtime } else { Some(time_of(self.stat.mtime)) };
        let holder = Holder::File(&self.file);
        let shown = self.telling.shown(self.stat, holder);
        Attributes { mode: shown.mode, mtime, others: self.telling.of(&shown, holder) }
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        self.ground.fingerprint(&self.stat, self.opened.seconds)
    }

    fn state(&self) -> Option<Fingerprint> {
        self.ground.identity(&self.stat).filter(|_| self.ground.shows_changes(&self.stat))
    }

    fn check_listed(&self, item: &ScannedItem) -> Result<(), Failure> {
        let (stat, Some(size)) = (&self.stat, item.size) else { return Ok(()) };
        let same_time = |listed: Option<Time>, now| listed.is_none_or(|at| at == time_of(now));
        // Another file may have the same times, where a clock is coarse.
        let same_file = item.fingerprint.zip(self.fingerprint()).is_none_or(|(listed, now)| listed == now);
        let is_same = if self.prefix.is_some() {
            // The same file, and not another that has taken its name.
            stat.size >= size && item.file.is_none_or(|file| file == (stat.device, stat.inode))
        } else {
            // The change time as well: whoever puts another file in its place may give it the same modification time.
            stat.size == size
                && same_time(item.attributes.mtime, stat.mtime)
                && same_time(item.changed, stat.ctime)
                && same_file
                // Other names of what was listed become links to what is sent.
                && (item.names == 1 || item.file.is_none_or(|file| file == (stat.device, stat.inode)))
        };
        if is_same { Ok(()) } else { Err(changed("after it was listed", size, stat.size)) }
    }

    fn check_unchanged(&self) -> Result<(), Failure> {
        let before = &self.stat;
        // What was looked at before may come from a cache: were it too old, this would differ from it.
        let now = self.now()?;
        let is_same = match self.prefix {
            Some(size) => now.size >= size,
            // The change time shows what a modification time that was set back hides.
            None => (now.size, now.mtime, now.ctime) == (before.size, before.mtime, before.ctime),
        };
        if is_same { Ok(()) } else { Err(changed("while it was read", before.size, now.size)) }
    }

    fn look(&self) -> Result<GrownState, Failure> {
        let now = self.now()?;
        Ok(GrownState { size: now.size, modified: time_of(now.mtime) })
    }

    /// What the file says of its end while the kernel sends it is all that is known of it.
    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }

    fn is_hole(&self, offset: u64, length: u64) -> bool {
        match file::next_data(&self.file, offset) {
            Ok(None) => true,
            Ok(Some(data)) => data >= offset + length,
            Err(_) => false,
        }
    }

    fn will_read(&self, offset: u64, length: u64) -> bool {
        self.ahead.begin(&self.file, offset, length)
    }

    /// The cache lets go of it.
    fn was_read(&self, offset: u64, length: u64) {
        self.ahead.end(&self.file, offset, length);
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        let read = file::read_full_at(&self.file, out, offset)
            .map_err(|error| io_failure(Side::Source, "read", &error).at_offset(offset))?;
        if read < out.len() { Err(self.ends_early(offset + read as u64)) } else { Ok(()) }
    }

    /// Reads a small file to its end, whatever its size was said to be (a file of `/proc` says 0), and returns what
    /// there was; of one that may grow, what was listed.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when there is more than `most`, or other than the size said.
    fn read_whole(&self, out: &mut Vec<u8>, most: usize) -> Result<usize, Failure> {
        let start = out.len();
        let said = self.stat.size as usize;
        if let Some(listed) = self.prefix.filter(|_| said > 0) {
            // No more than what travels in a bundle, by which it was chosen.
            let size = (listed as usize).min(most);
            out.resize(start + size, 0);
            self.read_at(0, &mut out[start..])?;
            return Ok(size);
        }
        if said > most {
            return Err(grew_to(said as u64));
        }
        // A file that says 0 is empty or virtual; one that says more is read in one call.
        let mut room = if said == 0 { 4096 } else { said + 1 };
        let mut read = 0;
        loop {
            out.resize(start + read + room, 0);
            let got = file::read_at(&self.file, &mut out[start + read..], read as u64)
                .map_err(|error| io_failure(Side::Source, "read", &error).at_offset(read as u64))?;
            read += got;
            // A short read of a regular file is its end when what was said is there.
            if got == 0 || (said > 0 && read == said) {
                break;
            }
            if read > most || (said > 0 && read > said) {
                return Err(self.has_more(read as u64));
            }
            room = if said == 0 { most + 1 - read } else { (said + 1).saturating_sub(read).max(1) };
        }
        if said > 0 && read < said {
            return Err(self.ends_early(read as u64));
        }
        let was_empty = said == 0 && self.prefix.is_some() && dir::stat_file(&self.file).is_ok_and(|now| now.size > 0);
        let read = if was_empty { 0 } else { read };
        out.truncate(start + read);
        Ok(read)
    }

    fn read_next(&self, offset: u64, out: &mut [u8], _is_over: &dyn Fn() -> bool) -> Result<(usize, bool), Failure> {
        let fail = |error: io::Error| io_failure(Side::Source, "read", &error).at_offset(offset);
        let filled = file::read_full_at(&self.file, out, offset).map_err(fail)?;
        let more =
            filled == out.len() && file::read_at(&self.file, &mut [0], offset + filled as u64).map_err(fail)? == 1;
        Ok((filled, !more))
    }
}

/// A source that is not what it was.
fn changed(when: &str, before: u64, now: u64) -> Failure {
    let changed = |why| failure(ErrorCode::SourceChanged, Side::Source, why);
    match before.cmp(&now) {
        Ordering::Less => changed(format!("grew {when}, from {before} to {now} bytes")).for_reason(Reason::SourceGrew),
        Ordering::Equal => changed(format!("changed {when}")),
        Ordering::Greater => changed(format!("was truncated {when}, from {before} to {now} bytes")),
    }
}

/// Why an item could not be looked at.
pub(super) fn stat_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => {
            failure(ErrorCode::SourceVanished, Side::Source, "vanished while its directory was listed")
        }
        _ => io_failure(Side::Source, "stat", error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use carrack_sys::dir::stat_path;

    use super::*;
    use crate::storage::read::{Found, Source, Walk};

    const MOST: usize = Tuning::DEFAULT.bundled_file_bytes_max as usize;

    /// A directory as a source, and what a walk finds of its file `name`.
    fn listed(place: &Path, name: &str) -> (PosixSource, ScannedItem) {
        let kind = RootKind::Directory(Arc::new(Dir::open_ambient(place).unwrap()));
        let root = PosixSource::from(kind);
        let mut found = None;
        let walk = Walk::plain(0);
        root.walk(&walk, &mut |one| {
            if let Found::Item(item) = one
                && item.path == name.as_bytes()
            {
                found = Some(item);
            }
            true
        });
        (root, found.unwrap())
    }

    fn grow(path: &Path, more: usize) {
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&vec![b'+'; more]).unwrap();
    }

    /// File systems keep time in ticks: waits for one after a file's last.
    fn next_tick(of: &Path) {
        let ctime = |path: &Path| stat_path(path, true).unwrap().ctime;
        let (last, probe) = (ctime(of), of.with_extension("probe"));
        while {
            std::fs::write(&probe, b"").unwrap();
            ctime(&probe) <= last
        } {}
        std::fs::remove_file(probe).unwrap();
    }

    fn code<T: std::fmt::Debug>(result: Result<T, Failure>) -> ErrorCode {
        result.unwrap_err().code
    }

    #[test]
    fn growing_file_is_read_as_long_as_it_was_listed() {
        let place = tempfile::tempdir().unwrap();
        for before in [0, 10, MOST] {
            let path = place.path().join("log");
            std::fs::write(&path, vec![b'.'; before]).unwrap();
            let (root, item) = listed(place.path(), "log");
            grow(&path, 5);
            // From the moment it was opened on, without leave to grow.
            let source = root.open_item(&item, &Tuning::DEFAULT).unwrap();
            assert_eq!(code(source.check_listed(&item)), ErrorCode::SourceChanged);
            grow(&path, 1);
            assert_eq!(code(source.check_unchanged()), ErrorCode::SourceChanged);
            if before < MOST {
                assert_eq!(code(source.read_whole(&mut Vec::new(), MOST)), ErrorCode::SourceChanged);
            }
            // With leave: before it was opened, and while it is read.
            let source = root.open_item(&item, &Tuning::DEFAULT).unwrap().may_grow_from(item.size);
            source.check_listed(&item).unwrap();
            grow(&path, 2 * MOST);
            let mut content = b"kept".to_vec();
            assert_eq!(source.read_whole(&mut content, MOST).unwrap(), before);
            assert!(content[..4] == *b"kept" && content[4..].iter().all(|&byte| byte == b'.'));
            assert_eq!(content.len(), 4 + before);
            source.check_unchanged().unwrap();
            assert_eq!(source.attributes(&item).mtime, item.attributes.mtime);
            // Another file is another, however long it is.
            let other = place.path().join("other");
            std::fs::write(&other, vec![b'.'; 4 * MOST]).unwrap();
            std::fs::rename(&path, place.path().join("kept")).unwrap();
            std::fs::rename(&other, &path).unwrap();
            let replaced = root.open_item(&item, &Tuning::DEFAULT).unwrap().may_grow_from(item.size);
            assert_eq!(code(replaced.check_listed(&item)), ErrorCode::SourceChanged);
            std::fs::rename(place.path().join("kept"), &path).unwrap();
            // What loses something is no file that grows.
            if before > 0 {
                std::fs::File::options().write(true).open(&path).unwrap().set_len(before as u64 - 1).unwrap();
                assert_eq!(code(source.check_unchanged()), ErrorCode::SourceChanged);
                assert_eq!(code(source.read_whole(&mut Vec::new(), MOST)), ErrorCode::SourceChanged);
            }
        }
    }

    #[test]
    fn small_file_that_has_become_large_is_not_read_into_memory() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        std::fs::write(&path, b"small").unwrap();
        let (root, item) = listed(place.path(), "f");
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let source = root.open_item(&item, &Tuning::DEFAULT).unwrap();
        assert_eq!(code(source.read_whole(&mut Vec::new(), MOST)), ErrorCode::SourceChanged);
        assert_eq!(root.look_again(&item).unwrap().size, Some(1 << 40));
    }

    /// Same size, same modification time: the change time, which nobody can set, is another.
    #[test]
    fn source_exchanged_for_another_file_is_noticed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        std::fs::write(&path, b"first").unwrap();
        let (root, item) = listed(place.path(), "f");
        let held = root.open_item(&item, &Tuning::DEFAULT).unwrap();
        held.check_listed(&item).unwrap();
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        next_tick(&path);
        let other = place.path().join("other");
        std::fs::write(&other, b"other").unwrap();
        std::fs::File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let source = root.open_item(&item, &Tuning::DEFAULT).unwrap();
        assert_eq!(code(source.check_listed(&item)), ErrorCode::SourceChanged);
        let again = root.look_again(&item).unwrap();
        assert_eq!((again.size, again.attributes.mtime), (item.size, item.attributes.mtime));
        source.check_listed(&again).unwrap();
        next_tick(&path);
        // Written over in place, its time set back.
        std::fs::write(&path, b"third").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(code(source.check_unchanged()), ErrorCode::SourceChanged);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(code(root.open_item(&item, &Tuning::DEFAULT).map(drop)), ErrorCode::SourceVanished);
        assert_eq!(code(root.look_again(&item)), ErrorCode::SourceVanished);
    }

    #[test]
    fn source_that_is_no_file_any_more_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        std::fs::write(&path, b"file").unwrap();
        let (root, item) = listed(place.path(), "f");
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(code(root.open_item(&item, &Tuning::DEFAULT).map(drop)), ErrorCode::SourceChanged);
        assert_eq!(code(root.look_again(&item)), ErrorCode::SourceChanged);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(code(root.open_item(&item, &Tuning::DEFAULT).map(drop)), ErrorCode::SymlinkRefused);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(code(root.open_item(&item, &Tuning::DEFAULT).map(drop)), ErrorCode::SourceChanged);
    }

    /// `/proc` says 0 and has more; `/sys` says a page and has less. The first is read to its end, the second is
    /// not taken for truncated.
    #[test]
    #[cfg(target_os = "linux")]
    fn source_sizes_that_are_not_true() {
        let read = |path: &str| {
            let (place, name) = path.rsplit_once('/').unwrap();
            let parent = Arc::new(Dir::open_ambient(Path::new(place)).unwrap());
            let kind = RootKind::Entry(parent, name.into(), Links::Refuse);
            let root = PosixSource::from(kind);
            let mut item = None;
            let walk = Walk::plain(0);
            root.walk(&walk, &mut |found| {
                if let Found::Item(found) = found {
                    item = Some(found);
                }
                true
            });
            let item = item.unwrap();
            let source = root.open_item(&item, &Tuning::DEFAULT).unwrap();
            let mut content = Vec::new();
            source.read_whole(&mut content, MOST).map(|_| (item.size, content))
        };
        let version = std::fs::read("/proc/version").unwrap();
        assert_eq!(read("/proc/version").unwrap(), (Some(0), version));
        let shorter = "/sys/kernel/mm/transparent_hugepage/enabled";
        if Path::new(shorter).exists() {
            let failure = read(shorter).unwrap_err();
            assert_eq!(failure.code, ErrorCode::InputOutput, "{failure:?}");
            assert!(failure.message().contains("says that it has 4096 bytes"), "{failure:?}");
        }
    }
}
