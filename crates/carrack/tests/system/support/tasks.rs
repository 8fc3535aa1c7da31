//! Tasks carried out by workers, followed as the service does it, without a service.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::location::Location;
use carrack_service::clock::{Moment, SystemClock};
use carrack_service::journal::{AttemptEnd, EndKind, Item, ItemFilter, JournalError, Reader, Record, each_item};
use carrack_service::model::{Ceilings, ItemState, TaskKind, TaskOptions};
use carrack_service::supervise::{Settings, StartError, Supervisor, What};
use carrack_service::worker::{EndOrder, Order, PairOrder, Secret};

use super::node::Node;
use super::{Sandbox, program};

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A sandbox with tasks, and whoever starts their workers.
pub struct Tasks {
    pub sandbox: Sandbox,
    pub supervisor: Supervisor,
}

/// How an attempt ended, and what it told until then.
pub struct Attempt {
    pub records: Vec<Record>,
    /// `None` where it was killed.
    pub end: Option<AttemptEnd>,
    pub why: Option<String>,
}

impl Tasks {
    pub fn new() -> Self {
        Self::of(Sandbox::new())
    }

    pub fn of(sandbox: Sandbox) -> Self {
        let supervisor = supervisor(&sandbox, |_| {});
        Self { sandbox, supervisor }
    }

    /// Another service after the first was killed.
    pub fn another_service(&mut self, change: impl FnOnce(&mut Settings)) {
        self.supervisor = supervisor(&self.sandbox, change);
    }

    pub fn directory(&self, task: &str) -> PathBuf {
        self.sandbox.path("tasks").join(task)
    }

    pub fn journal(&self, task: &str) -> PathBuf {
        self.directory(task).join("journal")
    }

    /// The first attempt of a task.
    pub fn order(&self, task: &str, kind: TaskKind, pairs: Vec<PairOrder>) -> Order {
        Order {
            task: task.into(),
            fence: 1,
            directory: self.directory(task),
            kind,
            pairs,
            options: TaskOptions::default(),
            submitted: Moment::from(std::time::SystemTime::now()),
            deadline: None,
            skip_source_errors: false,
            fail_on_quota_errors: false,
            receipt: None,
            expect_digests: BTreeMap::new(),
            ceilings: Ceilings::default(),
            preview: false,
            guard: None,
            nice: 0,
        }
    }

    /// An end on this host, below a directory of the sandbox.
    pub fn local(&self, root: &str, path: &str) -> EndOrder {
        let root = self.sandbox.path(root);
        std::fs::create_dir_all(&root).unwrap();
        let root = Location::Local(root.to_str().unwrap().into());
        EndOrder::at_endpoint(root, format!("/{}", path.trim_start_matches('/')).as_bytes(), false, None)
    }

    /// Starts an attempt, as often as it takes until an earlier one's worker has gone.
    #[track_caller]
    pub fn start(&mut self, order: &Order) {
        let until = Instant::now() + PATIENCE;
        while let Err(error) = self.supervisor.start(order) {
            assert!(matches!(error, StartError::StillHeld) && Instant::now() < until, "{error}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts an attempt and follows it to its end.
    #[track_caller]
    pub fn run(&mut self, order: &Order) -> Attempt {
        self.start(order);
        self.follow(&order.task, |_| false)
    }

    /// Follows a task's worker until it has gone, or `enough` has been told.
    #[track_caller]
    pub fn follow(&mut self, task: &str, mut enough: impl FnMut(&Record) -> bool) -> Attempt {
        let until = Instant::now() + PATIENCE;
        let mut attempt = Attempt { records: Vec::new(), end: None, why: None };
        loop {
            assert!(Instant::now() < until, "the worker of {task} goes on: {:?}", attempt.records.last());
            for told in self.supervisor.poll() {
                if told.task != task {
                    continue;
                }
                match told.what {
                    What::Record(record) => {
                        if let Record::Ended(end) = &record {
                            attempt.end = Some(end.clone());
                        }
                        let is_enough = enough(&record);
                        attempt.records.push(record);
                        if is_enough {
                            return attempt;
                        }
                    }
                    What::Gone { told_its_end, why } => {
                        assert_eq!(told_its_end, attempt.end.is_some());
                        attempt.why = why;
                        return attempt;
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Until at least so many bytes are at the destination.
    #[track_caller]
    pub fn follow_until_moved(&mut self, task: &str, bytes: u64) {
        let moved = |record: &Record| matches!(record, Record::Sample(sample) if sample.progress.bytes_moved >= bytes);
        let attempt = self.follow(task, moved);
        assert!(attempt.end.is_none(), "it has ended: {:?}", attempt.end);
    }

    /// Until something is so, while a task's worker goes on.
    #[track_caller]
    pub fn follow_until(&mut self, task: &str, what: &str, mut is_so: impl FnMut() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < until, "waited for nothing: {what}; {:?}", self.records(task).last());
            for told in self.supervisor.poll().into_iter().filter(|told| told.task == task) {
                if let What::Gone { why, .. } = told.what {
                    panic!("the worker of {task} has gone before {what}: {why:?} {:?}", self.records(task).last());
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The process of the attempt that began last.
    pub fn process(&self, task: &str) -> u32 {
        let mut process = None;
        for record in self.records(task) {
            if let Record::Began { process: began, .. } = record {
                process = Some(began);
            }
        }
        process.expect("an attempt has begun")
    }

    /// All that is in a task's journal.
    pub fn records(&self, task: &str) -> Vec<Record> {
        let mut reader = Reader::open(&self.directory(task));
        std::iter::from_fn(|| reader.next_record().unwrap()).collect()
    }

    /// Items as they are listed.
    pub fn items(&self, task: &str) -> Vec<Item> {
        let mut items = Vec::new();
        each_item::<JournalError>(&self.directory(task), &ItemFilter::default(), |item| {
            items.push(item);
            Ok(())
        })
        .unwrap();
        items
    }

    /// Paths of the items in a state, sorted.
    pub fn paths(&self, task: &str, state: ItemState) -> Vec<String> {
        let items = self.items(task).into_iter().filter(|item| item.state == state);
        let mut paths: Vec<String> = items.map(|item| String::from_utf8_lossy(&item.path).into_owned()).collect();
        paths.sort();
        paths
    }
}

fn supervisor(sandbox: &Sandbox, change: impl FnOnce(&mut Settings)) -> Supervisor {
    // A home of its own, by a program that becomes the worker.
    let mut settings = Settings::new("/usr/bin/env".into(), sandbox.path("tasks"));
    let home = format!("HOME={}", sandbox.path("home").display());
    settings.arguments = vec![home, program().to_str().unwrap().into(), "worker".into()];
    change(&mut settings);
    Supervisor::new(settings, Arc::new(SystemClock::new()))
}

impl Attempt {
    /// How it ended, of its own accord.
    #[track_caller]
    pub fn ended(&self) -> &AttemptEnd {
        self.end.as_ref().unwrap_or_else(|| panic!("it was killed: {:?} {:?}", self.why, self.records.last()))
    }

    /// It has ended, and nothing failed.
    #[track_caller]
    pub fn done(&self) -> &AttemptEnd {
        let end = self.ended();
        assert_eq!((end.kind, &end.failure, end.progress.items_failed), (EndKind::Done, &None, 0));
        end
    }
}

impl Node {
    /// As an end of a task.
    pub fn end(&self, path: &str) -> EndOrder {
        let text = format!("carrack://{}{}", self.address, self.fingerprint);
        let root = Location::parse_document(&text).unwrap();
        EndOrder::at_endpoint(root, path.as_bytes(), false, Some(Secret::new(Self::TOKEN)))
    }
}

/// From one end to another.
pub fn pair(source: EndOrder, destination: EndOrder) -> PairOrder {
    PairOrder::new(source, Some(destination))
}
