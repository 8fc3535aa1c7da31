//! The path between two endpoints: measured both ways by a process of its own, and kept as one, from whichever end it
//! is looked at.

use std::fmt;
use std::sync::Arc;

use carrack_core::failure::{ErrorCode, Side};

use super::run::{Unmeasured, ended_early};
use super::{Benches, Refused, Subject};
use crate::clock::Moment;
use crate::model::{BenchState, PathResult, PathStatus, TaskFailure};
use crate::worker::paths::{PathOrder, PathTold};

/// The names of two endpoints, in order: the path from one to the other is that from the other to the one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathNames([String; 2]);

impl PathNames {
    /// Those of the path between two endpoints.
    pub fn of(one: &str, other: &str) -> Self {
        let mut names = [one.to_owned(), other.to_owned()];
        names.sort();
        Self(names)
    }

    /// The two, in order: as results are kept.
    pub fn in_order(&self) -> [&str; 2] {
        [&self.0[0], &self.0[1]]
    }

    /// Whether an endpoint is one of them.
    pub fn has(&self, endpoint: &str) -> bool {
        self.0.iter().any(|name| name == endpoint)
    }

    /// Turns a result from here to what is kept, and back.
    fn turn(&self, from: &str, result: PathResult) -> PathResult {
        if self.0[0] == from { result } else { result.turned() }
    }
}

impl fmt::Display for PathNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the path between @{} and @{}", self.0[0], self.0[1])
    }
}

/// The last run of a path.
pub(super) struct EndedPath {
    started: Moment,
    failure: Option<TaskFailure>,
}

impl Benches {
    /// Begins to measure the path between two endpoints.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn start_path(self: &Arc<Self>, from: &str, to: &str, order: PathOrder) -> Result<(), Refused> {
        let (benches, names, from) = (Arc::clone(self), PathNames::of(from, to), from.to_owned());
        self.begin(Subject::Path(names.clone()), move || benches.measure_path(&names, &from, &order))
    }

    fn measure_path(&self, names: &PathNames, from: &str, order: &PathOrder) {
        let began = self.clock.elapsed();
        let told = match self.run(&self.programs.path_arguments, order, None) {
            Ok(None) => None,
            Ok(Some((text, status))) => Some(serde_json::from_slice(&text).map_err(|_| ended_early(status))),
            Err(unmeasured) => Some(Err(unmeasured)),
        };
        let mut state = self.state();
        let Some(running) = state.running.take() else { return };
        let Some(told) = told.filter(|_| !running.is_cancelled) else { return };
        let failure = match told {
            Ok(told) => {
                let result = |told: PathTold| PathResult {
                    time: self.clock.now(),
                    program: env!("CARGO_PKG_VERSION").to_owned(),
                    elapsed_seconds: self.clock.elapsed().saturating_sub(began).as_secs_f64(),
                    rate_limit: order.rate_limit,
                    there: told.there,
                    back: told.back,
                    notes: told.notes,
                };
                self.keep_path(names, from, told, result)
            }
            Err(unmeasured) => Some(of_path(&unmeasured)),
        };
        if let Some(failure) = &failure {
            tracing::warn!(target: "carrack::bench", path = %names, why = failure.why, "not measured");
        }
        state.ended_paths.insert(names.clone(), EndedPath { started: running.started, failure });
    }

    /// Keeps what was measured, if it has any number; what is missing, and why.
    fn keep_path(
        &self,
        names: &PathNames,
        from: &str,
        told: PathTold,
        result: impl FnOnce(PathTold) -> PathResult,
    ) -> Option<TaskFailure> {
        let failure = told.failure.clone().map(hinted);
        let has_numbers = [&told.there, &told.back].iter().any(|way| way.bytes_per_second.is_some());
        if !has_numbers {
            return Some(failure.unwrap_or_else(|| failed("nothing came".to_owned(), None)));
        }
        let written = self.kept.write_path(names, &names.turn(from, result(told)));
        let unkept = written.err().map(|error| failed(format!("the result cannot be kept: {error}"), None));
        unkept.or(failure)
    }

    /// How far it is with the path between two endpoints, and what is kept of it.
    ///
    /// # Errors
    /// A kept result that cannot be read.
    pub fn path_status(&self, from: &str, to: &str) -> std::io::Result<PathStatus> {
        let state = self.state();
        let names = PathNames::of(from, to);
        let subject = Subject::Path(names.clone());
        let running = state.running.as_ref().filter(|running| running.of == subject && !running.is_cancelled);
        let ended = state.ended_paths.get(&names).filter(|_| running.is_none());
        let failure = ended.and_then(|ended| ended.failure.clone());
        let result = self.kept.read_path(&names)?.map(|result| names.turn(from, result));
        Ok(PathStatus {
            from: from.to_owned(),
            to: to.to_owned(),
            state: match (running, ended) {
                (Some(_), _) => BenchState::Running,
                (None, Some(_)) if failure.is_none() => BenchState::Finished,
                (None, Some(_)) => BenchState::Failed,
                (None, None) => BenchState::Idle,
            },
            started: running.map(|running| running.started).or(ended.map(|ended| ended.started)),
            failure,
            result,
        })
    }
}

/// A failure of the service's own.
fn failed(why: String, hint: Option<&str>) -> TaskFailure {
    let (code, side) = (ErrorCode::Other.name().to_owned(), Side::Command.name().to_owned());
    let hints = hint.into_iter().map(str::to_owned).collect();
    TaskFailure { code, side, endpoint: None, why, retryable: false, hints }
}

fn of_path(unmeasured: &Unmeasured) -> TaskFailure {
    let hint = match unmeasured {
        Unmeasured::Failed(_) => None,
        Unmeasured::Late(_) => Some("a host keeps silent, or is busy: test both endpoints, and measure again"),
        Unmeasured::Hangs => Some("look at the service's host: a process there cannot be ended"),
    };
    failed(unmeasured.to_string(), hint)
}

/// With what to try, in the words of the service.
fn hinted(mut failure: TaskFailure) -> TaskFailure {
    let is = |code: ErrorCode| failure.code == code.name();
    let hint = if is(ErrorCode::PermissionDenied) {
        "let the node take measurements (carrack serve --measure token), and give the endpoint the node's own token"
    } else if is(ErrorCode::AuthenticationFailed) {
        "give the endpoint the node's present token: carrack endpoint edit NAME --token-file FILE"
    } else if is(ErrorCode::Busy) {
        "measure again later: a node takes one measurement at a time"
    } else if is(ErrorCode::ConnectFailed) || is(ErrorCode::Silence) || is(ErrorCode::HostUnknown) {
        "test both endpoints: the test names what is in the way"
    } else {
        return failure;
    };
    failure.hints.push(hint.to_owned());
    failure
}
