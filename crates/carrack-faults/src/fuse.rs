//! A file system that passes everything on to a directory, except what it was told to get wrong.
//!
//! Mounted by the kernel through `/dev/fuse`, without any helper program: needs root. The kernel keeps nothing
//! back unless it was told to: names and attributes are asked for each time, and a write has reached this file
//! system when the call returns.
//!
//! Left out: extended attributes but lists of NFS version 4, locks, devices.

mod lists;
mod operations;
mod tree;

use carrack_sys::sync::{lock, unpoisoned};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use fuser::{BackgroundSession, Config, MountOption, Session};

pub use rustix::io::Errno;

/// Requests that can be answered at once; a hang holds one of these each.
const THREADS: usize = 8;
/// The same with [`Features::many_at_once`].
const MANY_THREADS: usize = 96;

/// What a file system is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Opening a file that is there.
    Open,
    /// Making and opening a file.
    Create,
    /// Reading from a file.
    Read,
    /// Writing to a file.
    Write,
    /// `fsync` and `fdatasync`.
    Sync,
    /// What each `close` of a descriptor asks for.
    Flush,
    /// Reserving space for a file.
    Allocate,
    /// Renaming a file or directory.
    Rename,
    /// Removing a name.
    Unlink,
    /// Listing a directory.
    List,
    /// Attributes, by name or number.
    Look,
    /// Changing attributes, size included.
    Change,
    /// Making a directory.
    MakeDirectory,
}

/// When a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every call fails.
    Always,
    /// The n-th time, from 1, counted from when the rule was made.
    Nth(u64),
    /// From the n-th time on.
    From(u64),
    /// When a read or write touches this position of the file.
    Offset(u64),
}

/// What is got wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails.
    Fail(Errno),
    /// A write takes at most so many bytes and says so.
    Short(usize),
    /// A write takes nothing and says that it took all.
    Lie,
    /// A read gives another byte than was written at the rule's offset; without one, at its first.
    Rot,
}

/// Ways in which whole file systems differ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    /// A name is never replaced by a rename: `EEXIST`.
    pub rename_refuses: bool,
    /// A rename has no flags, as on NFS: `EINVAL`.
    pub no_rename_flags: bool,
    /// `a` and `A` are one name.
    pub folds_case: bool,
    /// `a` and `A` are one name in directories of this name and all below them, and only there. `FS_IOC_GETFLAGS` says
    /// of each directory which it is, as after `chattr +F` on ext4.
    pub folds_case_in: Option<&'static str>,
    /// Names are stored decomposed, as on some file systems of macOS; Latin letters only.
    pub decomposes: bool,
    /// The time of change shows that of modification in its place, as where no such time is kept.
    pub no_change_times: bool,
    /// Times of modification and change are cut to whole seconds.
    pub whole_seconds: bool,
    /// `O_DIRECT` is refused.
    pub no_direct: bool,
    /// Space cannot be reserved.
    pub no_allocate: bool,
    /// Nothing stays in the kernel's cache: every read comes here.
    pub uncached: bool,
    /// The kernel keeps names and attributes for an hour, as clients of network file systems do for seconds: a change
    /// of the backing directory is seen only by those who ask past the cache. Mounted read-only: where reading moves a
    /// time, the kernel asks again after each.
    pub keeps_attributes: bool,
    /// Items have access control lists of NFS version 4, and no other extended attributes.
    pub nfs4_lists: bool,
    /// A read comes in pieces of 64 KiB.
    pub small_reads: bool,
    /// So many requests are answered at once as there may be; and names are looked up in a directory several at once,
    /// as network file systems do.
    pub many_at_once: bool,
}

/// A server of metadata that many wait for: an answer takes `each` while no more than `knee` calls are under way, and
/// beyond it so much longer as they are more.
#[derive(Clone, Debug)]
pub struct Load {
    /// Calls that go to the server.
    pub calls: Vec<Call>,
    /// What each of them takes.
    pub each: Duration,
    /// So many at once are answered as fast as one.
    pub knee: u32,
}

/// The mounted file system; released and unmounted when dropped.
pub struct FaultFs {
    shared: Arc<Shared>,
    at: PathBuf,
    session: Option<BackgroundSession>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    released: Condvar,
    pub(crate) features: Features,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    counts: BTreeMap<Call, u64>,
    /// Bytes written to files, by the directory that these were in.
    written: BTreeMap<PathBuf, u64>,
    hangs: bool,
    hung: u64,
    /// What is held: files whose name contains this.
    hold: Option<(String, Call)>,
    /// Calls that are held, in the order in which they came.
    held: VecDeque<u64>,
    /// Calls that have been held so far.
    holds: u64,
    slow: Duration,
    /// Calls that take longer still.
    slow_calls: BTreeMap<Call, Duration>,
    load: Option<Load>,
    /// Calls that the server is answering.
    at_server: u32,
    /// The most at once.
    at_server_most: u32,
}

struct Rule {
    call: Call,
    when: When,
    fault: Fault,
    /// Only files whose name contains this.
    name: String,
    seen: u64,
    hits: u64,
}

impl FaultFs {
    /// Mounts a file system over `backing` at the directory `at`, both of which must exist.
    pub fn mount(backing: &Path, at: &Path, features: Features) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), released: Condvar::new(), features });
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("carrack-faults".into()), MountOption::DefaultPermissions];
        if features.keeps_attributes {
            config.mount_options.push(MountOption::RO);
        }
        if features.small_reads {
            config.mount_options.push(MountOption::CUSTOM("max_read=65536".into()));
        }
        config.acl = fuser::SessionACL::All;
        config.n_threads = Some(if features.many_at_once { MANY_THREADS } else { THREADS });
        let operations = operations::Operations::new(backing, Arc::clone(&shared));
        let session = Session::new(operations, at, &config)?.spawn()?;
        Ok(Self { shared, at: at.into(), session: Some(session) })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// From now on this goes wrong, on every file.
    pub fn fault(&self, call: Call, when: When, fault: Fault) {
        self.fault_on("", call, when, fault);
    }

    /// The same, on files whose name contains a word.
    pub fn fault_on(&self, name: &str, call: Call, when: When, fault: Fault) {
        let rule = Rule { call, when, fault, name: name.into(), seen: 0, hits: 0 };
        self.shared.lock().rules.push(rule);
    }

    /// The next call of this kind is answered with `ESTALE`. Opening and looking are tried a second
    /// time by the kernel itself.
    pub fn stale_once(&self, call: Call) {
        self.fault(call, When::Nth(1), Fault::Fail(Errno::STALE));
    }

    /// Nothing goes wrong any more.
    pub fn clear(&self) {
        self.shared.lock().rules.clear();
    }

    /// How often a rule has struck, all of them together.
    pub fn hits(&self) -> u64 {
        self.shared.lock().rules.iter().map(|rule| rule.hits).sum()
    }

    /// How often each call was made.
    pub fn count(&self, call: Call) -> u64 {
        self.shared.lock().counts.get(&call).copied().unwrap_or(0)
    }

    /// Bytes written to files, by the directory in which these stood; of directories in which a file was made,
    /// too, if it stayed empty.
    pub fn written(&self) -> BTreeMap<PathBuf, u64> {
        self.shared.lock().written.clone()
    }

    /// Answers nothing more until it is released.
    pub fn hang(&self) {
        self.shared.lock().hangs = true;
    }

    /// Requests that are waiting for an answer because of [`FaultFs::hang`].
    pub fn hung(&self) -> u64 {
        self.shared.lock().hung
    }

    /// Answers again, what has waited first.
    pub fn release(&self) {
        let mut state = self.shared.lock();
        state.hangs = false;
        state.hold = None;
        state.held.clear();
        drop(state);
        self.shared.released.notify_all();
    }

    /// Does not answer calls of this kind on files whose name contains a word, until each is
    /// let go or all are released.
    pub fn hold(&self, name: &str, call: Call) {
        self.shared.lock().hold = Some((name.into(), call));
    }

    /// Calls that are waiting because of [`FaultFs::hold`].
    pub fn held(&self) -> usize {
        self.shared.lock().held.len()
    }

    /// Answers the call that has been held for the longest.
    pub fn let_one_go(&self) {
        self.shared.lock().held.pop_front();
        self.shared.released.notify_all();
    }

    /// Every answer takes this much longer.
    pub fn slow(&self, by: Duration) {
        self.shared.lock().slow = by;
    }

    /// From now on some calls go to a server that many wait for.
    pub fn load(&self, load: Load) {
        let mut state = self.shared.lock();
        (state.load, state.at_server_most) = (Some(load), 0);
    }

    /// The most calls that the server has answered at once.
    pub fn loaded_most(&self) -> u32 {
        self.shared.lock().at_server_most
    }

    /// Every answer to this call takes this much longer.
    pub fn slow_call(&self, call: Call, by: Duration) {
        self.shared.lock().slow_calls.insert(call, by);
    }
}

impl Drop for FaultFs {
    fn drop(&mut self) {
        self.release();
        // A program that is still there must not keep the test from ending: the name goes, and
        // the rest when it is closed.
        let _ = rustix::mount::unmount(&self.at, rustix::mount::UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// What is to be done about a call; waits for as long as the file system hangs.
    pub(crate) fn enter(&self, call: Call, name: &Path, range: Option<(u64, usize)>) -> Option<(Fault, u64)> {
        let mut state = self.lock();
        while state.hangs {
            state.hung += 1;
            state = unpoisoned(self.released.wait(state));
            state.hung -= 1;
        }
        let word = state.hold.as_ref().filter(|(_, held)| *held == call).map(|(word, _)| word);
        if word.is_some_and(|word| name.file_name().unwrap_or_default().to_string_lossy().contains(word)) {
            let number = state.holds;
            state.holds += 1;
            state.held.push_back(number);
            while state.held.contains(&number) {
                state = unpoisoned(self.released.wait(state));
            }
        }
        *state.counts.entry(call).or_default() += 1;
        if matches!(call, Call::Create | Call::Write) {
            let directory = name.parent().unwrap_or(name).to_path_buf();
            *state.written.entry(directory).or_default() += range.map_or(0, |(_, length)| length as u64);
        }
        let slow = state.slow + state.slow_calls.get(&call).copied().unwrap_or_default();
        let mut found = None;
        for rule in state.rules.iter_mut().filter(|rule| rule.call == call) {
            if !name.file_name().unwrap_or_default().to_string_lossy().contains(&rule.name) {
                continue;
            }
            rule.seen += 1;
            let inside = |at: u64| range.is_some_and(|(from, length)| (from..from + length as u64).contains(&at));
            let (strikes, at) = match rule.when {
                When::Always => (true, range.map_or(0, |(from, _)| from)),
                When::Nth(n) => (rule.seen == n, range.map_or(0, |(from, _)| from)),
                When::From(n) => (rule.seen >= n, range.map_or(0, |(from, _)| from)),
                When::Offset(at) => (inside(at), at),
            };
            if strikes && found.is_none() {
                rule.hits += 1;
                found = Some((rule.fault, at));
            }
        }
        let loaded = state.load.as_ref().filter(|load| load.calls.contains(&call)).map(|load| (load.each, load.knee));
        let served = loaded.map(|(each, knee)| {
            state.at_server += 1;
            state.at_server_most = state.at_server_most.max(state.at_server);
            each.mul_f64((f64::from(state.at_server) / f64::from(knee)).max(1.0))
        });
        drop(state);
        let time = slow + served.unwrap_or_default();
        if !time.is_zero() {
            std::thread::sleep(time);
        }
        if served.is_some() {
            self.lock().at_server -= 1;
        }
        found
    }
}

#[cfg(test)]
mod tests;
