//! What the API needs of the rest of the service.

use std::fs::File;

use carrack_receipt::PublicKey;

use crate::clock::Moment;
use crate::journal::ItemQuery;
use crate::model::{
    Endpoint, EndpointTest, Estimate, InFlight, ItemState, Listed, NewTask, Secret, Task, TaskItem, Timer,
    TimerSchedule, Windowed,
};
use crate::worker::markers::PairMarker;

/// What a task would move, as whoever submits it has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskSize {
    /// Bytes of files' contents.
    pub bytes: u64,
    /// Files, links and directories.
    pub items: u64,
}

/// The loop that does the work, and the journals of tasks. Methods may block on files, never on the network, but
/// [`Backend::test_endpoint`].
pub trait Backend: Send + Sync + 'static {
    /// Has the loop look at the ledger: something was written.
    fn wake(&self);

    /// Puts on a task what is in memory only: its place in the queue, when it is expected to begin, why it waits.
    fn complete(&self, task: &mut Task);

    /// The files in flight of a task, where a worker copies.
    fn in_flight(&self, task: &Task) -> Vec<InFlight>;

    /// What is expected of a task that is submitted now. The request was checked. `size`: where somebody has counted.
    fn estimate(&self, request: &NewTask, size: Option<TaskSize>, now: Moment) -> Estimate;

    /// The first run of a timer that is made now.
    ///
    /// # Errors
    /// What is wrong with the schedule, in words.
    fn first_run(&self, schedule: &TimerSchedule, now: Moment) -> Result<Moment, String>;

    /// The next run of a timer that goes on now; none: no more come.
    ///
    /// # Errors
    /// What is wrong with its schedule, in words.
    fn next_run(&self, timer: &Timer, now: Moment) -> Result<Option<Moment>, String>;

    /// Items of a task, failed ones first. `cursor` is what an earlier page gave; none: from the beginning.
    ///
    /// # Errors
    /// Why they cannot be read, in words; `None` for a cursor that no page gave.
    fn items(
        &self,
        task: &str,
        states: &[ItemState],
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Listed<TaskItem>, Option<String>>;

    /// Items of a task by their place in the list, and how many there are: failed ones first.
    ///
    /// # Errors
    /// Why they cannot be read, in words.
    fn item_window(
        &self,
        task: &str,
        query: &ItemQuery,
        offset: u64,
        limit: usize,
    ) -> Result<Windowed<TaskItem>, String>;

    /// The receipt of a pair of a task, where there is one.
    ///
    /// # Errors
    /// Why it cannot be read, in words.
    fn receipt(&self, task: &str, pair: u32) -> Result<Option<File>, String>;

    /// The key that signs receipts.
    fn receipt_key(&self) -> PublicKey;

    /// Has the next attempt of a task compare the digests of what counts as done.
    ///
    /// # Errors
    /// Why that cannot be kept, in words.
    fn recheck(&self, task: &str) -> Result<(), String>;

    /// Has the next attempts of a task, which a guard has paused, do what its plan shows, and no more.
    ///
    /// # Errors
    /// Why that cannot be kept, in words.
    fn confirm(&self, task: &Task) -> Result<(), String>;

    /// By which keys a task has marked what it left at the destinations of its pairs.
    ///
    /// # Errors
    /// Why they cannot be read, in words.
    fn markers(&self, task: &str) -> Result<Vec<PairMarker>, String>;

    /// Tries an endpoint: reaches it, shows its token, makes and removes a file, looks at its clock and its storage.
    /// `far_only`: nothing of this host is connected to.
    fn test_endpoint(&self, endpoint: &Endpoint, token: Option<&Secret>, far_only: bool) -> EndpointTest;

    /// Why the service cannot take on work at present.
    ///
    /// # Errors
    /// In words.
    fn health(&self) -> Result<(), String>;
}
