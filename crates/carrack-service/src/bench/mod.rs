//! What a host can do, measured for an endpoint that is a directory of the service's host, and what the path between
//! two endpoints carries (`paths`): by processes of their own (`worker/bench`, `worker/paths`), one at a time,
//! bounded in time and in what they print. The last result of each kind and of each path is kept in a file, so that it
//! outlasts the service; how far a run is, and why it failed, is kept in memory.

mod kept;
mod paths;
mod run;

use carrack_engine::sync::lock;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use carrack_engine::threads;
use serde::Serialize;

use crate::clock::{Clock, Moment};
use crate::model::{BenchFailure, BenchKind, BenchState, BenchStatus};
use crate::worker::bench::BenchOrder;
use kept::Kept;
use paths::{EndedPath, PathNames};
use run::Unmeasured;

/// How processes that measure are started.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program.
    pub program: PathBuf,
    /// The arguments that make it measure this host.
    pub arguments: Vec<String>,
    /// The arguments that make it measure a path.
    pub path_arguments: Vec<String>,
    /// Variables of its environment that it keeps; all others are taken away.
    pub environment: Vec<String>,
    /// How long one kind, or a path, may take.
    pub patience: Duration,
}

impl Programs {
    /// The service's own program.
    pub fn new(program: PathBuf, environment: Vec<String>) -> Self {
        let arguments = |what: &str| vec!["worker".to_owned(), what.to_owned()];
        let (arguments, path_arguments) = (arguments("--bench"), arguments("--path"));
        Self { program, arguments, path_arguments, environment, patience: Duration::from_secs(120) }
    }
}

/// Why nothing is measured.
#[derive(Debug)]
pub enum Refused {
    /// Something is measured at present.
    Busy {
        /// An endpoint, or a path, in words.
        of: String,
        /// The endpoints that these words name: not everybody may hear of them.
        endpoints: Vec<String>,
    },
    /// The service ends.
    Stopping,
    /// The system.
    System(io::Error),
}

/// Everything that is measured, and was.
pub struct Benches {
    programs: Programs,
    clock: Arc<dyn Clock>,
    kept: Kept,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_stopping: bool,
    running: Option<Running>,
    /// The last run of each endpoint that was measured since the service started.
    ended: BTreeMap<String, Ended>,
    /// The same of each path.
    ended_paths: BTreeMap<PathNames, EndedPath>,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// The storage of an endpoint, and the processors of its host.
    Host(String),
    /// The path between two endpoints.
    Path(PathNames),
}

impl Subject {
    fn is_about(&self, endpoint: &str) -> bool {
        match self {
            Self::Host(name) => name == endpoint,
            Self::Path(names) => names.has(endpoint),
        }
    }

    fn endpoints(&self) -> Vec<String> {
        match self {
            Self::Host(name) => vec![name.clone()],
            Self::Path(names) => names.in_order().map(str::to_owned).to_vec(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(name) => write!(f, "@{name}"),
            Self::Path(names) => names.fmt(f),
        }
    }
}

struct Running {
    of: Subject,
    started: Moment,
    /// Of a host: what is measured now.
    kind: BenchKind,
    failures: Vec<BenchFailure>,
    /// Its end has the process end.
    input: Option<ChildStdin>,
    /// Nobody wants the result any more.
    is_cancelled: bool,
}

struct Ended {
    started: Moment,
    failures: Vec<BenchFailure>,
}

impl Benches {
    /// Keeps results in this directory, which is made with the first of them.
    pub fn new(directory: PathBuf, programs: Programs, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { programs, clock, kept: Kept::new(directory), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Begins to measure the storage of a directory, and this host's processors.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn start(self: &Arc<Self>, endpoint: &str, root: Vec<u8>) -> Result<(), Refused> {
        let (benches, name) = (Arc::clone(self), endpoint.to_owned());
        self.begin(Subject::Host(endpoint.to_owned()), move || benches.measure_all(&name, &root))
    }

    /// Begins to measure something by a thread of its own, where nothing else is measured.
    fn begin(&self, of: Subject, work: impl FnOnce() + Send + 'static) -> Result<(), Refused> {
        let mut state = self.state();
        if state.is_stopping {
            return Err(Refused::Stopping);
        }
        if let Some(running) = &state.running {
            let (of, endpoints) = (running.of.to_string(), running.of.endpoints());
            return Err(Refused::Busy { of, endpoints });
        }
        threads::start_named("bench", work).map_err(Refused::System)?;
        // The thread waits for the lock.
        state.running = Some(Running {
            of,
            started: self.clock.now(),
            kind: BenchKind::Disk,
            failures: Vec::new(),
            input: None,
            is_cancelled: false,
        });
        Ok(())
    }

    fn measure_all(&self, endpoint: &str, root: &[u8]) {
        for &kind in BenchKind::ALL {
            let order = BenchOrder { kind, root: root.to_vec() };
            let measured = match self.run(&self.programs.arguments, &order, Some(kind)) {
                Ok(None) => Ok(None),
                Ok(Some((text, status))) => run::read(&order, &text, status).map(Some),
                Err(unmeasured) => Err(unmeasured.of_host(kind)),
            };
            let mut state = self.state();
            let Some(running) = state.running.as_mut().filter(|running| !running.is_cancelled) else { break };
            running.input = None;
            let written = match measured {
                Ok(None) => Ok(()),
                Ok(Some(measured)) => {
                    let unkept = |error| run::failure(kind, format!("the result cannot be kept: {error}"));
                    self.kept.write(endpoint, &measured.at(self.clock.now())).map_err(unkept)
                }
                Err(failure) => Err(failure),
            };
            if let Err(failure) = written {
                tracing::warn!(target: "carrack::bench", endpoint, kind = kind.name(), why = failure.why, "not measured");
                running.failures.push(failure);
            }
        }
        let mut state = self.state();
        if let Some(Running { started, failures, is_cancelled: false, .. }) = state.running.take() {
            state.ended.insert(endpoint.to_owned(), Ended { started, failures });
        }
    }

    /// Has a process measure to its end; none: nobody wants it any more.
    fn run(
        &self,
        arguments: &[String],
        order: &impl Serialize,
        kind: Option<BenchKind>,
    ) -> Result<Option<(Vec<u8>, ExitStatus)>, Unmeasured> {
        let process = {
            let mut state = self.state();
            let Some(running) = state.running.as_mut().filter(|running| !running.is_cancelled) else { return Ok(None) };
            running.kind = kind.unwrap_or(running.kind);
            let (process, input) = run::start(&self.programs, arguments, order)?;
            running.input = Some(input);
            process
        };
        run::follow(process, self.programs.patience, &|| self.end_process()).map(Some)
    }

    fn end_process(&self) {
        if let Some(running) = &mut self.state().running {
            running.input = None;
        }
    }

    /// How far it is with an endpoint, and what is kept of it.
    ///
    /// # Errors
    /// A kept result that cannot be read.
    pub fn status(&self, endpoint: &str) -> io::Result<BenchStatus> {
        let state = self.state();
        let host = Subject::Host(endpoint.to_owned());
        let running = state.running.as_ref().filter(|running| running.of == host && !running.is_cancelled);
        let ended = state.ended.get(endpoint);
        let (started, failures) = match (running, ended) {
            (Some(running), _) => (Some(running.started), running.failures.clone()),
            (None, Some(ended)) => (Some(ended.started), ended.failures.clone()),
            (None, None) => (None, Vec::new()),
        };
        let is_whole = failures.is_empty();
        Ok(BenchStatus {
            endpoint: endpoint.to_owned(),
            state: match (running, ended) {
                (Some(_), _) => BenchState::Running,
                (None, Some(_)) if is_whole => BenchState::Finished,
                (None, Some(_)) => BenchState::Failed,
                (None, None) => BenchState::Idle,
            },
            measuring: running.map(|running| running.kind),
            started,
            failures,
            results: self.kept.read(endpoint)?,
        })
    }

    /// Forgets an endpoint that is gone, or is somewhere else: its results, those of its paths, and what is being
    /// measured there.
    pub fn forget(&self, endpoint: &str) {
        let mut state = self.state();
        if let Some(running) = state.running.as_mut().filter(|running| running.of.is_about(endpoint)) {
            running.is_cancelled = true;
            running.input = None;
        }
        state.ended.remove(endpoint);
        state.ended_paths.retain(|names, _| !names.has(endpoint));
        if let Err(error) = self.kept.remove(endpoint) {
            tracing::warn!(target: "carrack::bench", endpoint, "its results cannot be removed: {error}");
        }
    }

    /// Ends what is being measured: the service ends.
    pub fn stop(&self) {
        let mut state = self.state();
        state.is_stopping = true;
        if let Some(running) = &mut state.running {
            running.is_cancelled = true;
            running.input = None;
        }
    }
}

#[cfg(test)]
mod path_tests;
#[cfg(test)]
#[path = "tests.rs"]
pub(crate) mod tests;
