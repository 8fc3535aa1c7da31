//! One command on many hosts, by the user's own ssh: so many at a time, each within its time, and what each said.
//!
//! The command goes to the far shell over standard input, so that no login shell takes it apart. As long as the session
//! lasts, standard input stays open: its end tells the far side to end the command and all that it has started
//! ([`shell`]).

pub mod host;
pub mod shell;
pub mod shown;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use carrack_core::location::SshHost;
use carrack_engine::{Stop, threads};

use self::host::run_at;

/// What to run, and where.
#[derive(Clone, Debug)]
pub struct FanRequest {
    /// Hosts, in the order in which they begin.
    pub hosts: Vec<SshHost>,
    /// The command, as the far login shell reads it.
    pub command: Vec<u8>,
    /// The ssh command and its arguments.
    pub rsh: Vec<String>,
    /// Hosts at a time.
    pub at_once: usize,
    /// From a command's start to its end.
    pub timeout: Option<Duration>,
    /// From starting ssh to the far shell's first word.
    pub connect_timeout: Duration,
}

/// Where a command wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// To standard output.
    Out,
    /// To standard error; ssh's own messages, too.
    Err,
}

/// How it ended at one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FanEnded {
    /// By itself, with this code; 128 and a signal's number where a signal ended it.
    Code(i32),
    /// ssh could not run it there: why.
    Unreachable(String),
    /// The connection was lost while it ran: why.
    Lost(String),
    /// Its time was over.
    TimedOut,
    /// The user wanted all to end while it ran.
    Stopped,
    /// The same before it began.
    NotStarted,
}

impl FanEnded {
    /// Whether there is nothing to say of it.
    pub fn is_good(&self) -> bool {
        *self == Self::Code(0)
    }

    /// The word for it in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Code(_) => "exited",
            Self::Unreachable(_) => "unreachable",
            Self::Lost(_) => "lost",
            Self::TimedOut => "timed-out",
            Self::Stopped => "stopped",
            Self::NotStarted => "not-started",
        }
    }

    /// The same for people, with why.
    pub fn told(&self) -> String {
        let with = |why: &str| if why.is_empty() { String::new() } else { format!(": {why}") };
        match self {
            Self::Code(code) => format!("exit {code}"),
            Self::Unreachable(why) => format!("unreachable{}", with(why)),
            Self::Lost(why) => format!("connection lost{}", with(why)),
            Self::TimedOut => "timed out".to_owned(),
            Self::Stopped => "stopped".to_owned(),
            Self::NotStarted => "not started".to_owned(),
        }
    }
}

/// What became of one host.
#[derive(Clone, Debug)]
pub struct HostEnd {
    /// The host.
    pub host: SshHost,
    /// How it ended there.
    pub ended: FanEnded,
    /// From starting ssh to the end.
    pub elapsed: Duration,
}

/// Takes what is said and what becomes of hosts, from several threads.
pub trait FanListener: Sync {
    /// A command has written these bytes.
    fn said(&self, host: &SshHost, said: Said, bytes: &[u8]);
    /// It has ended at a host.
    fn ended(&self, end: &HostEnd);
}

/// Runs the command everywhere, and tells how it ended at each host, in their order.
pub fn run(request: &FanRequest, stop: &Stop, listen: &dyn FanListener) -> Vec<HostEnd> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut ends = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(host) = request.hosts.get(at) else { return ends };
            let end = run_at(request, host, stop, listen);
            listen.ended(&end);
            ends.push((at, end));
        }
    };
    let mut ends: Vec<(usize, HostEnd)> = std::thread::scope(|scope| {
        let at_once = request.at_once.clamp(1, request.hosts.len().max(1));
        // As many as the system gives; this thread, where it gives none.
        let workers: Vec<_> = (0..at_once).map_while(|_| threads::start_scoped(scope, "a host", work).ok()).collect();
        let own = if workers.is_empty() { work() } else { Vec::new() };
        let theirs = workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default());
        own.into_iter().chain(theirs).collect()
    });
    ends.sort_by_key(|(at, _)| *at);
    ends.into_iter().map(|(_, end)| end).collect()
}
