//! What a host can do, measured for an endpoint that is a directory of the service's host: by processes of their own
//! (`worker/bench`), one at a time, bounded in time and in what they print. The last result of each kind is kept in a
//! file, so that it outlasts the service; how far a run is, and why it failed, is kept in memory.

mod kept;
mod run;

use carrack_engine::sync::lock;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ChildStdin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use carrack_engine::threads;

use crate::clock::{Clock, Moment};
use crate::model::{BenchFailure, BenchKind, BenchState, BenchStatus};
use crate::worker::bench::BenchOrder;
use kept::Kept;

/// How processes that measure are started.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program.
    pub program: PathBuf,
    /// The arguments that make it measure.
    pub arguments: Vec<String>,
    /// Variables of its environment that it keeps; all others are taken away.
    pub environment: Vec<String>,
    /// How long one kind may take.
    pub patience: Duration,
}

impl Programs {
    /// The service's own program.
    pub fn new(program: PathBuf, environment: Vec<String>) -> Self {
        let arguments = vec!["worker".into(), "--bench".into()];
        Self { program, arguments, environment, patience: Duration::from_secs(120) }
    }
}

/// Why nothing is measured.
#[derive(Debug)]
pub enum Refused {
    /// This endpoint is measured at present.
    Busy(String),
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
}

struct Running {
    endpoint: String,
    started: Moment,
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
        let mut state = self.state();
        if state.is_stopping {
            return Err(Refused::Stopping);
        }
        if let Some(running) = &state.running {
            return Err(Refused::Busy(running.endpoint.clone()));
        }
        let (benches, name) = (Arc::clone(self), endpoint.to_owned());
        let work = move || benches.measure_all(&name, &root);
        threads::start_named("bench", work).map_err(Refused::System)?;
        // The thread waits for the lock.
        state.running = Some(Running {
            endpoint: endpoint.to_owned(),
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
            let measured = self.begin(&order).and_then(|child| match child {
                Some(child) => run::follow(child, &order, &self.programs, &|| self.end_process()).map(Some),
                None => Ok(None),
            });
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

    /// Starts a process, unless nobody wants it any more.
    fn begin(&self, order: &BenchOrder) -> Result<Option<run::Process>, BenchFailure> {
        let mut state = self.state();
        let Some(running) = state.running.as_mut().filter(|running| !running.is_cancelled) else { return Ok(None) };
        running.kind = order.kind;
        let (process, input) = run::start(&self.programs, order)?;
        running.input = Some(input);
        Ok(Some(process))
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
        let running = state.running.as_ref().filter(|running| running.endpoint == endpoint && !running.is_cancelled);
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

    /// Forgets an endpoint that is gone, or is somewhere else: its results, and what is being measured there.
    pub fn forget(&self, endpoint: &str) {
        let mut state = self.state();
        if let Some(running) = state.running.as_mut().filter(|running| running.endpoint == endpoint) {
            running.is_cancelled = true;
            running.input = None;
        }
        state.ended.remove(endpoint);
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
#[path = "tests.rs"]
pub(crate) mod tests;
