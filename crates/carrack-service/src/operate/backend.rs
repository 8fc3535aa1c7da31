//! What the API gets from the rest of the service.

use carrack_engine::sync::lock;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrack_core::request::Reach;
use carrack_engine::Context;
use carrack_receipt::PublicKey;

use super::endpoint_test::{self, ExamineEndpoint, Means};
use super::item::{self, document};
use crate::api::{Backend, TaskSize};
use crate::clock::Moment;
use crate::journal::{Cursor, Item, ItemFilter, ItemIndex, ItemQuery, items, receipt_path};
use crate::ledger::Ledger;
use crate::model::{
    Endpoint, EndpointTest, Estimate, InFlight, ItemState, Listed, NewTask, Secret, Task, TaskItem, TaskState, Timer,
    TimerSchedule, Windowed,
};
use crate::schedule::{Outlook, Size, timer};
use crate::service::{Waker, links_of};
use crate::worker::confirmed::Confirmed;
use crate::worker::in_flight;
use crate::worker::look;
use crate::worker::markers::{self, PairMarker};

/// An index that is not whole after this time is told as it is, and goes on with the next request.
const INDEX_PATIENCE: Duration = Duration::from_secs(2);
/// The same once the items are found, and only the number of all is missing.
const INDEX_ENOUGH: Duration = Duration::from_millis(100);
/// So many indexes are kept: those that were asked for last. Each takes some 70 KB for a million items.
const INDEXES_KEPT: usize = 32;

/// Indexes of items, by what was asked for; the last one was asked for last.
#[derive(Default)]
pub struct Indexes(Mutex<Vec<KeptIndex>>);

type KeptIndex = (String, ItemQuery, Arc<Mutex<ItemIndex>>);

impl Indexes {
    fn of(&self, tasks: &Path, task: &str, query: &ItemQuery) -> Arc<Mutex<ItemIndex>> {
        let mut kept = lock(&self.0);
        let found = kept.iter().position(|(of, wanted, _)| of == task && wanted == query);
        let entry = match found {
            Some(place) => kept.remove(place),
            None => {
                let index = ItemIndex::new(&tasks.join(task), query.clone());
                (task.to_owned(), query.clone(), Arc::new(Mutex::new(index)))
            }
        };
        if kept.len() >= INDEXES_KEPT {
            kept.remove(0);
        }
        let index = Arc::clone(&entry.2);
        kept.push(entry);
        index
    }
}

/// The parts that answer the API.
pub struct Whole {
    pub waker: Waker,
    pub outlook: Arc<Outlook>,
    pub ledger: Arc<dyn Ledger>,
    pub tasks: PathBuf,
    pub context: Context,
    pub reach: Reach,
    pub examine: ExamineEndpoint,
    pub indexes: Indexes,
    pub receipt_key: PublicKey,
}

impl Whole {
    fn documents(&self, task: &str, items: &[Item]) -> Vec<TaskItem> {
        let is_named = items.iter().all(|item| !item.path.is_empty());
        let request = if is_named { None } else { self.ledger.task(task).ok().map(|task| task.request) };
        items.iter().map(|item| document(item, request.as_ref())).collect()
    }
}

impl Backend for Whole {
    fn wake(&self) {
        self.waker.wake();
    }

    fn complete(&self, task: &mut Task) {
        self.outlook.apply(task);
    }

    fn in_flight(&self, task: &Task) -> Vec<InFlight> {
        if !matches!(task.state, TaskState::Active | TaskState::Cancelling) {
            return Vec::new();
        }
        let (pair, files) = in_flight::of(&self.tasks.join(&task.id), task.fence).unwrap_or_default();
        files.iter().map(|file| item::in_flight(pair, file)).collect()
    }

    fn estimate(&self, request: &NewTask, size: Option<TaskSize>, now: Moment) -> Estimate {
        let size = size.map(|TaskSize { bytes, items }| Size { bytes, items });
        self.outlook.promise(&links_of(request), size, now).estimate(size, now)
    }

    fn first_run(&self, schedule: &TimerSchedule, now: Moment) -> Result<Moment, String> {
        timer::check(schedule, now).map_err(|error| error.to_string())
    }

    fn next_run(&self, timer: &Timer, now: Moment) -> Result<Option<Moment>, String> {
        timer::run_after(timer, now).map_err(|error| error.to_string())
    }

    fn items(
        &self,
        task: &str,
        states: &[ItemState],
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Listed<TaskItem>, Option<String>> {
        let after = match cursor {
            Some(text) => Some(Cursor::parse(text).ok_or(None)?),
            None => None,
        };
        let filter = ItemFilter { states: states.to_vec(), pair: None };
        let page = items(&self.tasks.join(task), &filter, after, limit).map_err(|error| Some(error.to_string()))?;
        Ok(Listed { items: self.documents(task, &page.items), next: page.next.map(|cursor| cursor.to_string()) })
    }

    fn item_window(
        &self,
        task: &str,
        query: &ItemQuery,
        offset: u64,
        limit: usize,
    ) -> Result<Windowed<TaskItem>, String> {
        let index = self.indexes.of(&self.tasks, task, query);
        let mut index = lock(&index);
        let window = index.window(offset, limit, [INDEX_PATIENCE, INDEX_ENOUGH]).map_err(|error| error.to_string())?;
        let items = self.documents(task, &window.items);
        Ok(Windowed { items, offset, total: window.total, complete: window.is_complete })
    }

    fn receipt(&self, task: &str, pair: u32) -> Result<Option<File>, String> {
        match File::open(receipt_path(&self.tasks.join(task), pair)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|error| error.to_string()),
        }
    }

    fn receipt_key(&self) -> PublicKey {
        self.receipt_key
    }

    fn recheck(&self, task: &str) -> Result<(), String> {
        let directory = self.tasks.join(task);
        look::ask_for_digests(&directory).map_err(|error| format!("{}: {error}", directory.display()))
    }

    fn confirm(&self, task: &Task) -> Result<(), String> {
        let directory = self.tasks.join(&task.id);
        // So many in all attempts together.
        let open = task.progress.plan.as_ref().map_or(0, |plan| plan.to_delete.items);
        let deletions = open.saturating_add(task.progress.items_deleted);
        let confirmed = Confirmed { deletions, file_system: task.progress.source_file_system.clone() };
        confirmed.keep(&directory).map_err(|error| format!("{}: {error}", directory.display()))
    }

    fn markers(&self, task: &str) -> Result<Vec<PairMarker>, String> {
        markers::all(&self.tasks.join(task))
    }

    fn test_endpoint(&self, endpoint: &Endpoint, token: Option<&Secret>, far_only: bool) -> EndpointTest {
        let means = Means { context: &self.context, reach: &self.reach, examine: &self.examine, far_only };
        endpoint_test::test(endpoint, token, &means)
    }

    fn health(&self) -> Result<(), String> {
        self.ledger.probe().map_err(|error| error.to_string())
    }
}
