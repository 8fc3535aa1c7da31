//! What the dispatcher needs of workers, and the real ones.

use crate::clock::Moment;
use crate::model::Fence;
use crate::supervise::{StartError, Supervisor, Told};
use crate::worker::Order;

/// Why a worker was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartFault {
    /// The worker of an earlier attempt is still there and has been told to end: try again soon.
    StillHeld,
    /// In words; it may pass.
    Failed(String),
}

/// Starts, follows and ends workers. Calls do not wait.
pub trait Workers: Send {
    /// Starts a worker, which outlives this process.
    ///
    /// # Errors
    /// Where none was started.
    fn start(&mut self, order: &Order) -> Result<(), StartFault>;

    /// Follows the worker of an attempt that an earlier service has begun, and tells its records from its first. Where
    /// there is none, it is told as gone.
    fn adopt(&mut self, task: &str, fence: Fence);

    /// Tells a worker to end in good order, and ends it by force after a while.
    fn stop(&mut self, task: &str);

    /// Says when a task fails from now on, to the worker that carries it out.
    ///
    /// # Errors
    /// In words, where that cannot be said.
    fn tell_deadline(&mut self, task: &str, deadline: Option<Moment>) -> Result<(), String>;

    /// What has become known since the last call. A worker is told as gone once, when its lock is free and all that it
    /// told has been told.
    fn poll(&mut self) -> Vec<Told>;

    /// Removes what is kept of a task that the ledger has forgotten. Whether nothing of it is left.
    fn forget(&mut self, task: &str) -> bool;
}

impl Workers for Supervisor {
    fn start(&mut self, order: &Order) -> Result<(), StartFault> {
        Supervisor::start(self, order).map_err(|error| match error {
            StartError::StillHeld => StartFault::StillHeld,
            error => StartFault::Failed(error.to_string()),
        })
    }

    fn adopt(&mut self, task: &str, fence: Fence) {
        Supervisor::adopt(self, task, fence);
    }

    fn stop(&mut self, task: &str) {
        Supervisor::stop(self, task);
    }

    fn tell_deadline(&mut self, task: &str, deadline: Option<Moment>) -> Result<(), String> {
        Supervisor::tell_deadline(self, task, deadline).map_err(|error| error.to_string())
    }

    fn poll(&mut self) -> Vec<Told> {
        Supervisor::poll(self)
    }

    fn forget(&mut self, task: &str) -> bool {
        let directory = self.directory(task);
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(path = %directory.display(), %error, "the journal of a forgotten task cannot be removed");
                false
            }
            _ => true,
        }
    }
}
