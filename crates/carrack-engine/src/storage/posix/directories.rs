//! The directories of a destination: made and opened one below the other, no link followed on the way, and a bounded
//! number of them kept open.
//!
//! What is remembered of each, for as long as the session lives: device and inode, so that nothing is done to
//! another directory that has come to bear its name; and, of one that its owner could not write to, the
//! permissions that it had.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use carrack_core::attributes::Attributes;
use carrack_core::path::{display_bytes, split_name};
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_sys::dir::{Dir, Kind, Links, Stat};
use carrack_sys::errno::{EROFS, ESTALE};
use carrack_sys::host;

use super::descriptors::{open_directories_max, patiently};
use super::extended::Holder;
use super::giving::{Born, Getting};
use super::identity::Ground;
use super::names::FileSystemTraits;
use super::own_directories::{Had, OWNERS, let_owner_write};
use super::syncs::Syncs;
use super::times::system_time;
use super::unkept::{Keeps, ToKeep, UnkeptTally, if_it_can};
use crate::error::{failure, io_failure};
use crate::storage::giving::Giving;
use crate::storage::write::NewDirectory;
use crate::sync::lock;

/// Device and inode.
pub type Identity = (u64, u64);

/// By device and inode, the name that something of this session was given.
pub type Names = HashMap<Identity, Vec<u8>>;

/// Finds out what there is to know of the file system of a directory; `None` where this directory cannot tell.
pub type AskShown = Box<dyn Fn(&Dir) -> Option<FileSystemTraits> + Send + Sync>;

/// Removes what earlier sessions have left in a directory.
pub type Clean = Box<dyn Fn(&Dir) + Send + Sync>;

/// Asks in one directory at a time: two threads that ask in the same one would take each other's file away.
struct Asks {
    shown: AskShown,
    alone: Mutex<()>,
}

/// A file system that something is written to.
pub struct DestinationFileSystem {
    /// By which its files are known.
    pub device: u64,
    /// What the identities of its files are made of.
    pub ground: Ground,
    /// What a directory has told of it: among others which names are one, wherever a directory does not say
    /// that it is an exception.
    shown: OnceLock<FileSystemTraits>,
    /// The file system does not say of a directory whether names are one there.
    is_silent: AtomicBool,
    /// What it is known to keep of what is set.
    pub keeps: Keeps,
    /// See [`Dir::keeps_inodes`].
    keeps_inodes: bool,
    /// A directory by which all of it is synced at once; none where names have to be synced one by one.
    top: Option<Dir>,
    /// It takes no writes, and took none when it was met.
    is_read_only: bool,
}

impl DestinationFileSystem {
    fn look(dir: &Dir, device: u64, may_keep: bool) -> io::Result<Self> {
        let top = (may_keep && dir.syncs_as_one()).then(|| dir.try_clone()).transpose()?;
        let (shown, is_silent) = (OnceLock::new(), AtomicBool::new(false));
        let is_read_only = dir.is_read_only().unwrap_or_default();
        let (ground, keeps_inodes) = (Ground::new(device, dir), dir.keeps_inodes());
        let keeps = Keeps::new(&ground);
        Ok(Self { device, ground, shown, is_silent, keeps, keeps_inodes, top, is_read_only })
    }

    /// Syncs all of it, by a directory that is on it. One that has met an error and given up says that all is well when
    /// it is asked a second time; that it takes no more writes it goes on saying.
    fn sync(&self, dir: &Dir) -> io::Result<()> {
        dir.sync_filesystem()?;
        // Where nobody tells (FUSE without statfs), the sync alone counts.
        if !self.is_read_only && dir.is_read_only().unwrap_or_default() {
            return Err(io::Error::from_raw_os_error(EROFS));
        }
        Ok(())
    }

    /// Whether a directory says that names are one in it. A directory that does not say so is like the others of
    /// its file system. One after the other is asked about those until one can tell: a directory that nothing
    /// can be written to cannot.
    fn is_exception(&self, dir: &Dir, ask: &Asks) -> bool {
        if !self.is_silent.load(Ordering::Relaxed) {
            match dir.folds_names() {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    self.is_silent.store(true, Ordering::Relaxed);
                }
                // Not known of this one: what is done where names are one harms nowhere.
                Err(_) => return true,
            }
        }
        if self.shown.get().is_none() {
            let _alone = lock(&ask.alone);
            if self.shown.get().is_none()
                && let Some(found) = (ask.shown)(dir)
            {
                self.shown.get_or_init(|| found);
            }
        }
        false
    }

    /// Whether a directory that has been forgotten by the system has its inode's number all the same.
    fn keeps_forgotten(&self) -> bool {
        self.keeps_inodes && !self.shown.get().is_some_and(|shown| shown.is_split)
    }

    /// Whether names have to be synced one by one, because nobody syncs all of them.
    pub fn syncs_alone(&self) -> bool {
        self.top.is_none()
    }
}

/// A directory, kept open.
pub struct OpenDir {
    /// The open directory.
    pub dir: Dir,
    /// The file system that it is on.
    pub file_system: Arc<DestinationFileSystem>,
    /// Made by this transfer: nothing can stand in the way there.
    pub fresh: bool,
    /// What new files here have to begin with, where this process has made the directory and nobody else may change it.
    pub born: Option<Arc<Born>>,
    /// Names are one here, whatever they are elsewhere on the file system.
    is_exception: bool,
}

impl OpenDir {
    fn new(dir: Dir, file_system: Arc<DestinationFileSystem>, fresh: bool, ask: &Asks) -> Self {
        let is_exception = file_system.is_exception(&dir, ask);
        Self { dir, file_system, fresh, born: None, is_exception }
    }

    /// Whether two different names can be one here. Where that is not known they can: a conflict is what
    /// turns out to be one file.
    pub fn folds(&self) -> bool {
        self.is_exception || self.file_system.shown.get().is_none_or(|shown| shown.names.any())
    }

    /// Whether upper and lower case are surely one here.
    pub fn folds_case(&self) -> bool {
        let says_so = || self.dir.folds_names().is_ok_and(|folds| folds);
        self.file_system.shown.get().is_some_and(|shown| shown.names.case) || (self.is_exception && says_so())
    }
}

/// Where a directory is entered: by one thread, while others that need the same one wait for it.
#[derive(Default)]
struct Entrance {
    found: OnceLock<Arc<OpenDir>>,
    entering: Mutex<()>,
}

/// A directory and those below it. Whoever needs one asks for it by its path each time: held by what waits to be
/// published, open directories would have no bound.
pub struct Directories {
    /// The directory at the top of the destination.
    pub root: Arc<OpenDir>,
    /// Nothing is asked of the file system while this is locked: where each call takes long, directories beside each
    /// other are made at the same time.
    open: Mutex<HashMap<Vec<u8>, Arc<Entrance>>>,
    open_max: usize,
    /// The name of a directory is synced before anything gets a name in it.
    sync_names: bool,
    /// Done in each directory before this session puts anything into it.
    clean: Option<Clean>,
    ask: Asks,
    /// By device, the file systems that have been met.
    file_systems: Mutex<HashMap<u64, Arc<DestinationFileSystem>>>,
    /// By the digest of its path, what each directory of this session is.
    known: Mutex<HashMap<[u8; 16], Identity>>,
    /// Where two names may be one: the directories of this session, and the names that they were made or found by.
    twins: Mutex<Names>,
    /// Permissions of directories before their owner was let in.
    opened_up: Mutex<HashMap<Vec<u8>, Had>>,
    /// What syncs have said.
    pub syncs: Syncs,
}

fn identity(stat: &Stat) -> Identity {
    (stat.device, stat.inode)
}

impl Directories {
    /// Below this one.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn new(root: Dir, sync_names: bool, (ask, clean): (AskShown, Option<Clean>), syncs: Syncs) -> io::Result<Self> {
        let ask = Asks { shown: ask, alone: Mutex::default() };
        clean.iter().for_each(|clean| clean(&root));
        let stat = root.stat_self()?;
        let file_system = Arc::new(DestinationFileSystem::look(&root, stat.device, true)?);
        let file_systems = HashMap::from([(stat.device, Arc::clone(&file_system))]);
        Ok(Self {
            root: Arc::new(OpenDir::new(root, file_system, false, &ask)),
            open: Mutex::default(),
            open_max: open_directories_max(),
            sync_names,
            clean,
            ask,
            file_systems: Mutex::new(file_systems),
            known: Mutex::new(HashMap::from([(key(b""), identity(&stat))])),
            twins: Mutex::default(),
            opened_up: Mutex::default(),
            syncs,
        })
    }

    /// Does something in a directory; once more, with the directory opened anew, when the server of the file system
    /// has forgotten the handle.
    ///
    /// # Errors
    /// As [`Directories::get`]; those of what is done, named by `what`.
    pub fn within<T>(
        &self,
        path: &[u8],
        what: &'static str,
        mut work: impl FnMut(&OpenDir) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let directory = self.get(path)?;
        let done = match work(&directory) {
            Err(error) if is_stale(&error) && !path.is_empty() => {
                self.forget_open();
                work(&*self.get(path)?)
            }
            other => other,
        };
        done.map_err(|error| io_failure(Side::Destination, what, &error))
    }

    /// A directory below the root, if it is there.
    pub fn find(&self, path: &[u8]) -> Option<Arc<OpenDir>> {
        if path.is_empty() {
            return Some(Arc::clone(&self.root));
        }
        if let Some(found) = self.open_at(path) {
            return Some(found);
        }
        let dir = patiently(|| self.root.dir.open_dir(path, Links::Refuse)).ok()?;
        let found = self.opened(dir, false).ok()?;
        self.is_known(path, &found, false).ok().filter(|&known| known)?;
        Some(Arc::new(found))
    }

    /// A directory below the root, made if it is not there.
    ///
    /// # Errors
    /// When something else stands there, and those of the file system.
    pub fn get(&self, path: &[u8]) -> Result<Arc<OpenDir>, Failure> {
        if path.is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        // From the nearest directory that is open already, downwards.
        let mut known = path;
        let mut current = loop {
            if let Some(found) = self.open_at(known) {
                break found;
            }
            known = split_name(known).0;
            if known.is_empty() {
                break Arc::clone(&self.root);
            }
        };
        let mut done = known.len();
        while done < path.len() {
            let start = if done == 0 { 0 } else { done + 1 };
            let end = path[start..].iter().position(|&byte| byte == b'/').map_or(path.len(), |index| start + index);
            current = self.enter_once(&current, &path[..end])?;
            done = end;
        }
        Ok(current)
    }

    fn open_at(&self, path: &[u8]) -> Option<Arc<OpenDir>> {
        lock(&self.open).get(path)?.found.get().cloned()
    }

    /// Closes what is open. What is being entered stays: nobody else may enter it meanwhile.
    pub fn forget_open(&self) {
        lock(&self.open).retain(|_, entrance| entrance.found.get().is_none());
    }

    fn enter_once(&self, parent: &OpenDir, path: &[u8]) -> Result<Arc<OpenDir>, Failure> {
        let entrance = {
            let mut open = lock(&self.open);
            if open.len() >= self.open_max && !open.contains_key(path) {
                open.retain(|_, entrance| entrance.found.get().is_none());
            }
            Arc::clone(open.entry(path.to_vec()).or_default())
        };
        let entering = lock(&entrance.entering);
        if let Some(found) = entrance.found.get() {
            return Ok(Arc::clone(found));
        }
        let entered = self.enter_below(parent, path).map(Arc::new);
        if let Ok(found) = &entered {
            entrance.found.get_or_init(|| Arc::clone(found));
        }
        drop(entering);
        let mut open = lock(&self.open);
        // Whoever waits here tries it in turn; the last one leaves nothing behind.
        if entered.is_err() && Arc::strong_count(&entrance) == 2 {
            open.remove(path);
        }
        entered
    }

    fn enter_below(&self, parent: &OpenDir, path: &[u8]) -> Result<OpenDir, Failure> {
        let fail = |error: io::Error| io_failure(Side::Destination, "enter the directory", &error).at_path(path);
        let next = patiently(|| self.enter(&parent.dir, path)).map_err(fail)?;
        if !next.fresh && next.dir.is_append_only() {
            let why = "the directory takes new names and lets none be changed (chattr +a): nothing was written there";
            return Err(failure(ErrorCode::PermissionDenied, Side::Destination, why).at_path(path));
        }
        let is_first = !lock(&self.known).contains_key(&key(path));
        // Not only of one that has just been made: whoever made it may have been cut off before its name was synced.
        if self.sync_names || parent.file_system.syncs_alone() {
            self.sync_names(&parent.dir).map_err(|why| why.at_path(path))?;
        }
        if !self.is_known(path, &next, true).map_err(fail)? {
            return Err(exchanged(path));
        }
        self.check_twin(&next, path)?;
        if let Some(clean) = self.clean.as_ref().filter(|_| is_first && !next.fresh) {
            clean(&next.dir);
        }
        Ok(next)
    }

    /// Opens an entry as a directory, or makes it one.
    fn enter(&self, parent: &Dir, path: &[u8]) -> io::Result<OpenDir> {
        let name = split_name(path).1;
        let fresh = match parent.make_dir(name, OWNERS) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        let dir = match parent.open_dir(name, Links::Refuse) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.let_in(parent, path, fresh, error)?,
            other => other?,
        };
        self.let_owner_write(&dir, path, fresh)?;
        self.opened(dir, fresh)
    }

    /// Opens a directory of this user's that may not be read: `denied` says so. What it is set to gives nobody else
    /// anything, whatever has come to bear the name.
    fn let_in(&self, parent: &Dir, path: &[u8], fresh: bool, denied: io::Error) -> io::Result<Dir> {
        let name = split_name(path).1;
        let before = parent.stat_at(name)?;
        if before.kind != Kind::Dir || before.uid != host::user_id() {
            return Err(denied);
        }
        parent.set_mode(name, OWNERS)?;
        let dir = parent.open_dir(name, Links::Refuse)?;
        // One that was just made has its permissions from the umask alone.
        if !fresh && identity(&dir.stat_self()?) == identity(&before) {
            lock(&self.opened_up).entry(path.to_vec()).or_insert((before.mode, identity(&before)));
        }
        Ok(dir)
    }

    /// A directory of this user's that is read-only gets its permissions back when its
    /// attributes are set, or at the end.
    fn let_owner_write(&self, dir: &Dir, path: &[u8], fresh: bool) -> io::Result<()> {
        if let Some(had) = let_owner_write(dir)?.filter(|_| !fresh) {
            lock(&self.opened_up).entry(path.to_vec()).or_insert(had);
        }
        Ok(())
    }

    /// What [`let_owner_write`] said of the topmost one.
    pub fn root_had(&self, had: Option<Had>) {
        lock(&self.opened_up).extend(had.map(|had| (Vec::new(), had)));
    }

    fn opened(&self, dir: Dir, fresh: bool) -> io::Result<OpenDir> {
        let stat = dir.stat_self()?;
        let file_system = self.file_system(&dir, stat.device)?;
        // Whoever may write where it is made may exchange it for another, but for none of this user's own making.
        let born = (fresh && stat.uid == host::user_id()).then(Arc::default);
        Ok(OpenDir { born, ..OpenDir::new(dir, file_system, fresh, &self.ask) })
    }

    fn file_system(&self, dir: &Dir, device: u64) -> io::Result<Arc<DestinationFileSystem>> {
        let mut met = lock(&self.file_systems);
        if let Some(met) = met.get(&device) {
            return Ok(Arc::clone(met));
        }
        // Each keeps a descriptor. Beyond, names are synced one by one.
        let may_keep = met.len() < self.open_max;
        let found = Arc::new(DestinationFileSystem::look(dir, device, may_keep)?);
        if may_keep {
            met.insert(device, Arc::clone(&found));
        }
        Ok(found)
    }

    /// Whether a directory is the one that was first made or found by its name in this session; if it is the
    /// first, it is written down.
    fn is_known(&self, path: &[u8], found: &OpenDir, write_down: bool) -> io::Result<bool> {
        let now = identity(&found.dir.stat_self()?);
        let mut known = lock(&self.known);
        let first = match known.get(&key(path)) {
            Some(first) => *first,
            None if write_down => *known.entry(key(path)).or_insert(now),
            None => now,
        };
        Ok(first == now || !found.file_system.keeps_forgotten())
    }

    /// Two directories of one copy must not become one.
    fn check_twin(&self, found: &OpenDir, path: &[u8]) -> Result<(), Failure> {
        if !found.folds() {
            return Ok(());
        }
        let stat =
            found.dir.stat_self().map_err(|error| io_failure(Side::Destination, "stat the directory", &error))?;
        let mut twins = lock(&self.twins);
        let first = twins.entry(identity(&stat)).or_insert_with(|| path.to_vec());
        if first == path { Ok(()) } else { Err(twin(path, first)) }
    }

    /// Sets a directory's permissions and time, of the one that this session has written to and no other; what it does
    /// not keep of them is counted.
    ///
    /// # Errors
    /// When another one bears its name, and those of the file system.
    pub fn set_attributes(&self, wanted: &NewDirectory, giving: &Giving, unkept: &UnkeptTally) -> Result<(), Failure> {
        let path = &wanted.path[..];
        let fail = |error: io::Error| io_failure(Side::Destination, "set permissions and times", &error);
        if !lock(&self.known).contains_key(&key(path)) {
            return Err(failure(
                ErrorCode::NotFound,
                Side::Destination,
                "it is no directory that this copy has made or found",
            ));
        }
        // By its name, not by a descriptor from before: what is set must be what is found there afterwards.
        let (parent, name) = split_name(path);
        let open = |parent: &OpenDir| patiently(|| parent.dir.open_dir(name, Links::Refuse));
        let dir = self.within(parent, "set permissions and times", open)?;
        let found = self.opened(dir, false).map_err(fail)?;
        if !self.is_known(path, &found, false).map_err(fail)? {
            return Err(exchanged(path));
        }
        let shown = |stat| giving.shown(stat, Holder::Directory(&found.dir));
        let before = shown(found.dir.stat_self().map_err(fail)?);
        let had = lock(&self.opened_up).get(path).map_or(before.mode, |had| had.0);
        let Attributes { mode, mtime, others } = &wanted.attributes;
        giving.give(Getting::Directory(&found.dir), *mode, others, had & 0o7777).map_err(fail)?;
        let mtime = *mtime;
        mtime.map_or(Ok(true), |mtime| if_it_can(found.dir.set_own_times(system_time(mtime)))).map_err(fail)?;
        let now = shown(found.dir.stat_self().map_err(fail)?);
        let listed = giving.listed_of(Holder::Directory(&found.dir), others);
        unkept.look(|| path.to_vec(), &ToKeep { mode: Some(*mode), mtime, others }, &now, &listed);
        lock(&self.opened_up).remove(path);
        if self.sync_names || found.file_system.syncs_alone() {
            self.sync_names(&found.dir)?;
        }
        Ok(())
    }

    /// Gives back their permissions to directories whose owner was let in, and whose attributes have not come.
    pub fn close_up(&self) {
        let mut all: Vec<_> = lock(&self.opened_up).drain().collect();
        // Those below first: what is above them may not let anybody in afterwards.
        all.sort_unstable_by(|one, other| other.0.cmp(&one.0));
        for (path, (mode, before)) in all {
            let dir = self.root.dir.open_dir(&path, Links::Refuse);
            if let Ok(dir) = dir
                && dir.stat_self().is_ok_and(|now| identity(&now) == before)
            {
                // Nothing can be done about one that is refused; the next run sets it again.
                let _ = dir.set_own_mode(mode);
            }
        }
    }

    /// Whether what its path leads to now is the topmost directory, as far as that can be told.
    pub fn is_root(&self, found: &io::Result<Stat>) -> bool {
        let same = |found: &Stat| lock(&self.known).get(&key(b"")) == Some(&identity(found));
        !self.root.file_system.keeps_inodes || found.as_ref().is_ok_and(same)
    }

    /// Syncs the names in a directory.
    ///
    /// # Errors
    /// The system's, which are remembered.
    pub fn sync_names(&self, dir: &Dir) -> Result<(), Failure> {
        let failed = |error: io::Error| io_failure(Side::Destination, "sync the directory", &error);
        dir.sync().map_err(failed).inspect_err(|why| self.syncs.failed(why))
    }

    /// Syncs the file system of the topmost directory, and what is on it.
    ///
    /// # Errors
    /// The system's, which are remembered.
    pub fn sync_root(&self) -> Result<(), Failure> {
        let root = &self.root.file_system;
        self.syncs.sync(Some(root.device), || root.sync(&self.root.dir).map_err(sync_failure))
    }

    /// Syncs every file system that something has been written to. `false` where one of them takes no writes: its syncs
    /// say that all is well, also if it has met an error and what is seen there is only in memory.
    ///
    /// # Errors
    /// The system's, which are remembered, and what it has said before.
    pub fn sync_file_systems(&self) -> Result<bool, Failure> {
        let met: Vec<_> = lock(&self.file_systems).values().cloned().collect();
        // Where names were synced one by one all has been. The root's is asked in any case.
        let others = met.iter().filter(|met| met.device != self.root.file_system.device);
        let tops = others.filter_map(|met| Some((met, met.top.as_ref()?)));
        let root = (&self.root.file_system, &self.root.dir);
        let sync = || tops.chain([root]).try_for_each(|(met, top)| met.sync(top)).map_err(sync_failure);
        // What was said before is said again by [`Syncs::check`], with what may be gone.
        let _ = self.syncs.sync(None, sync);
        self.syncs.check()?;
        Ok(!self.root.file_system.is_read_only && met.iter().all(|met| !met.is_read_only))
    }
}

fn sync_failure(error: io::Error) -> Failure {
    io_failure(Side::Destination, "sync the file system", &error)
}

/// Of a path, for a table that need not hold it.
pub fn key(path: &[u8]) -> [u8; 16] {
    *blake3::hash(path).as_bytes().first_chunk().expect("it is longer")
}

/// A directory is no longer the one that it was.
pub fn exchanged(path: &[u8]) -> Failure {
    let why = "another directory bears the name of the one that this copy has made or found: it was renamed or exchanged meanwhile";
    failure(ErrorCode::NotFound, Side::Destination, why).at_path(path)
}

/// Two names of one copy are one name at the destination.
pub fn twin(path: &[u8], first: &[u8]) -> Failure {
    let message =
        format!("is at the destination the same name as {}, which this copy has put there", display_bytes(first));
    failure(ErrorCode::AlreadyExists, Side::Destination, message).at_path(path).for_reason(Reason::TwinNames)
}

/// A handle that the server of a network file system no longer knows.
pub fn is_stale(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ESTALE)
}
