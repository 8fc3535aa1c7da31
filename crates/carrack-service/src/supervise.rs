//! Workers from the service's side: started, found again after a restart, followed by their journals, and ended. No
//! byte of a transfer comes by here, and no thread waits for a worker: whoever calls [`Supervisor::poll`] does so a few
//! times a second.
//!
//! A worker is born with its task's lock, handed over as its standard output: at no moment does nobody hold it. The
//! service may be killed at any time. The next one asks [`Supervisor::adopt`] about each task that should be at work.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use carrack_engine::threads;
use rustix::process::Signal;

use crate::clock::{Clock, Moment};
use crate::journal::{JournalError, Reader, Record};
use crate::model::Fence;
use crate::worker::Order;
use crate::worker::limit;
use crate::worker::lock::{Lock, holder, is_held};

/// Records of one task that are told by one call.
const RECORDS_AT_ONCE: usize = 4096;
/// A worker's standard error, for messages of panics.
const LOG: &str = "log";
/// A log that is longer is begun anew.
const LOG_BYTES: u64 = 1 << 20;

/// A pipe takes so many bytes before anybody reads.
const PIPE_BYTES: usize = 4096;

/// How workers are started and how long they are waited for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program and the arguments that make it a worker.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment that a worker keeps; all others are taken away.
    pub environment: Vec<String>,
    /// The directory with a directory for each task.
    pub tasks: PathBuf,
    /// From asking a worker to end to ending it.
    pub stop_grace: Duration,
    /// A worker that tells nothing for so long is ended.
    pub silence: Duration,
}

/// Variables of the environment that workers of all kinds keep: what ssh and the search for programs need. Tokens that
/// a user has in the environment are none of a task's.
pub fn kept_environment() -> Vec<String> {
    let names = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SSH_AUTH_SOCK", "TMPDIR", "TZ", "USER"];
    names.into_iter().chain(["XDG_CONFIG_HOME", "XDG_STATE_HOME"]).map(Into::into).collect()
}

impl Settings {
    /// Those of the service.
    pub fn new(program: PathBuf, tasks: PathBuf) -> Self {
        Self {
            program,
            arguments: vec!["worker".into()],
            environment: kept_environment(),
            tasks,
            stop_grace: Duration::from_secs(20),
            silence: Duration::from_secs(60),
        }
    }
}

/// What a worker has told, or what became of it.
#[derive(Debug)]
pub struct Told {
    /// The task.
    pub task: String,
    /// The attempt.
    pub fence: Fence,
    /// What.
    pub what: What,
}

/// What became known of a worker.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made, told and dropped: no more of them are kept than a call tells")]
pub enum What {
    /// It has told something by its journal. Items are left out: the service counts by samples.
    Record(Record),
    /// It has ended, and all that it told has been told. Whether a record of its end was among it: else it was killed.
    Gone {
        /// The record was there.
        told_its_end: bool,
        /// In words, where the worker could not go on or its journal cannot be read.
        why: Option<String>,
    },
}

/// Why a worker was not started.
#[derive(Debug)]
pub enum StartError {
    /// The worker of an earlier attempt is still there. It has been told to end at once: try again.
    StillHeld,
    /// The directory of the task cannot be made or written to.
    Directory(PathBuf, io::Error),
    /// The program cannot be started.
    Program(PathBuf, io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StillHeld => f.write_str("the worker of an earlier attempt has not ended yet"),
            Self::Directory(path, error) | Self::Program(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for StartError {}

/// A worker that is followed.
struct Followed {
    directory: PathBuf,
    fence: Fence,
    reader: Reader,
    /// Of a worker that this service has started.
    child: Option<Child>,
    /// Its records are those behind the one that begins its attempt.
    began: bool,
    ended: bool,
    /// When it told something last, or was started.
    heard: Duration,
    /// When it was told to end.
    stopping: Option<Duration>,
    /// Why it was ended, or cannot be followed.
    why: Option<String>,
}

/// Starts, follows and ends workers.
pub struct Supervisor {
    settings: Settings,
    clock: Arc<dyn Clock>,
    followed: BTreeMap<String, Followed>,
}

impl Supervisor {
    /// Follows nobody yet.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self { settings, clock, followed: BTreeMap::new() }
    }

    /// The directory of a task.
    pub fn directory(&self, task: &str) -> PathBuf {
        self.settings.tasks.join(task)
    }

    /// Starts a worker. It outlives this process.
    ///
    /// # Errors
    /// [`StartError::StillHeld`] while a worker of an earlier attempt is there; it is killed.
    pub fn start(&mut self, order: &Order) -> Result<(), StartError> {
        let directory = &order.directory;
        let made = |error| StartError::Directory(directory.clone(), error);
        make_private(directory).map_err(made)?;
        let Some(lock) = Lock::take(directory).map_err(made)? else {
            // Also one that is stopped, and would go on later.
            if let Some(holder) = holder(directory) {
                holder.signal(Signal::KILL);
            }
            return Err(StartError::StillHeld);
        };
        if let Some(mut earlier) = self.followed.remove(&order.task).and_then(|earlier| earlier.child) {
            // The lock is free, so it has ended: it only has to be taken note of.
            let _ = earlier.wait();
        }
        // What was said to an earlier worker is not said to this one.
        limit::tell_deadline(directory, order.deadline).map_err(made)?;
        let started = |error| StartError::Program(self.settings.program.clone(), error);
        let mut child = self.command(directory, &lock).map_err(made)?.spawn().map_err(started)?;
        // Signed here, too: a worker that hangs before it has done so can be ended.
        let signed = lock.sign(child.id(), order.fence);
        if let Err(error) = signed.and_then(|()| hand_over(&mut child, order)) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(started(error));
        }
        let followed = Followed {
            directory: directory.clone(),
            fence: order.fence,
            reader: Reader::open(directory).without_items(),
            child: Some(child),
            began: false,
            ended: false,
            heard: self.clock.elapsed(),
            stopping: None,
            why: None,
        };
        self.followed.insert(order.task.clone(), followed);
        Ok(())
    }

    fn command(&self, directory: &Path, lock: &Lock) -> io::Result<Command> {
        let path = directory.join(LOG);
        let anew = std::fs::metadata(&path).is_ok_and(|facts| facts.len() > LOG_BYTES);
        let mut open = File::options();
        let log = open.create(true).mode(0o600).write(true).truncate(anew).append(!anew).open(path)?;
        let mut command = Command::new(&self.settings.program);
        command.args(&self.settings.arguments).env_clear().current_dir("/");
        for name in &self.settings.environment {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::from(lock.handle()?)).stderr(Stdio::from(log));
        Ok(command)
    }

    /// Follows the worker of a task that was at work when an earlier service ended: from its journal's beginning, so
    /// that nothing is missed. Where there is no worker any more, the next [`Self::poll`] says so.
    pub fn adopt(&mut self, task: &str, fence: Fence) {
        let directory = self.directory(task);
        let followed = Followed {
            reader: Reader::open(&directory).without_items(),
            directory,
            fence,
            child: None,
            began: false,
            ended: false,
            heard: self.clock.elapsed(),
            stopping: None,
            why: None,
        };
        self.followed.insert(task.to_owned(), followed);
    }

    /// Tasks whose workers are followed, with their attempts.
    pub fn alive(&self) -> impl Iterator<Item = (&str, Fence)> {
        self.followed.iter().map(|(task, followed)| (&**task, followed.fence))
    }

    /// Tells a worker to end in good order. One that does not is killed after a grace. Without effect where nobody
    /// carries out the task.
    pub fn stop(&mut self, task: &str) {
        let now = self.clock.elapsed();
        let Some(followed) = self.followed.get_mut(task).filter(|followed| followed.stopping.is_none()) else { return };
        followed.stopping = Some(now);
        followed.signal(Signal::TERM);
    }

    /// Says when a task fails from now on, to the worker that carries it out.
    ///
    /// # Errors
    /// Those of the file by which it is said.
    pub fn tell_deadline(&self, task: &str, deadline: Option<Moment>) -> io::Result<()> {
        limit::tell_deadline(&self.directory(task), deadline)
    }

    /// What has become known since the last call.
    pub fn poll(&mut self) -> Vec<Told> {
        let mut told = Vec::new();
        let (now, settings) = (self.clock.elapsed(), &self.settings);
        self.followed.retain(|task, followed| {
            let fence = followed.fence;
            let mut tell = |what| told.push(Told { task: task.clone(), fence, what });
            // Looked at first: what a worker has told before it ended is then all there to be read.
            let alive = followed.is_alive();
            let more = followed.follow(now, &mut tell);
            if alive {
                followed.keep_watch(now, settings);
                return true;
            }
            if more {
                return true;
            }
            let why = followed.why.take().filter(|_| !followed.ended);
            tell(What::Gone { told_its_end: followed.ended, why });
            false
        });
        told
    }
}

fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Writes the order and closes the pipe. A worker that does not read it all ends by itself, and gets no part of it.
fn hand_over(child: &mut Child, order: &Order) -> io::Result<()> {
    let text = serde_json::to_vec(order)?;
    let Some(mut input) = child.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    if text.len() <= PIPE_BYTES {
        return input.write_all(&text);
    }
    // It waits for a worker that reads; nobody else is to.
    threads::start("handing an order over", move || input.write_all(&text)).map(drop)
}

impl Followed {
    fn is_alive(&mut self) -> bool {
        match &mut self.child {
            Some(child) => match child.try_wait() {
                Ok(None) => true,
                Ok(Some(status)) => {
                    if !status.success() {
                        self.why.get_or_insert_with(|| format!("the worker ended: {status}"));
                    }
                    false
                }
                Err(_) => is_held(&self.directory).unwrap_or(true),
            },
            // Where nothing can be found out, a worker may be there.
            None => is_held(&self.directory).unwrap_or(true),
        }
    }

    /// Reads what is new. Whether more is there already.
    fn follow(&mut self, now: Duration, tell: &mut dyn FnMut(What)) -> bool {
        for _ in 0..RECORDS_AT_ONCE {
            match self.reader.next_record() {
                Ok(Some(record)) => {
                    self.heard = now;
                    if let Record::Began { fence, .. } = record {
                        self.began = fence == self.fence;
                    }
                    if !self.began {
                        continue;
                    }
                    self.ended |= matches!(record, Record::Ended(_));
                    tell(What::Record(record));
                }
                Ok(None) => return false,
                // A worker that has not begun yet is about to cut off what is damaged.
                Err(JournalError::Damaged { .. }) if self.child.is_some() && !self.began => return false,
                Err(error) => {
                    self.lose(&error);
                    return false;
                }
            }
        }
        true
    }

    /// Nothing more can be read of it. It is not left alone: nobody would know what it does.
    fn lose(&mut self, error: &JournalError) {
        if self.why.is_none() {
            self.why = Some(error.to_string());
            self.signal(Signal::KILL);
        }
    }

    /// Ends a worker that does not end, or is silent: one that hangs, or that somebody has stopped.
    fn keep_watch(&mut self, now: Duration, settings: &Settings) {
        let overdue = self.stopping.is_some_and(|since| now.saturating_sub(since) > settings.stop_grace);
        let silent = now.saturating_sub(self.heard) > settings.silence;
        if overdue || silent {
            let why = if overdue { "the worker did not end when it was told to" } else { "the worker fell silent" };
            self.why.get_or_insert_with(|| why.to_owned());
            self.signal(Signal::KILL);
        }
    }

    fn signal(&mut self, signal: Signal) {
        let own = self.child.as_ref().map(Child::id);
        let Some(holder) = holder(&self.directory) else { return };
        // Of another attempt than the one that is followed nothing is known: it ends by its own service, or when the
        // next attempt starts.
        if own.is_none_or(|own| own == holder.process) && holder.fence == self.fence {
            holder.signal(signal);
        }
    }
}
