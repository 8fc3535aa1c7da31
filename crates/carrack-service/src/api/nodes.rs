//! The node beside the service, as far as the service knows it: what its tasks move, the storage of the endpoints that
//! are its directories, and what the last test of each endpoint has found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;

use super::Api;
use super::admit::Known;
use super::problem::Done;
use crate::clock::Moment;
use crate::identity::{Action, Object, Verdict, may};
use crate::ledger::Page;
use crate::model::{
    Endpoint, EndpointLocation, EndpointTest, KeptTest, Listed, NodeStatus, Problem, StorageStatus, TaskState, Verb,
};

/// A file system that does not answer by then is told so; others do not wait for it.
const STORAGE_PATIENCE: Duration = Duration::from_secs(2);
/// Endpoints that are looked at.
const ENDPOINTS_MOST: usize = 1000;

/// What was found out before.
#[derive(Debug, Default)]
pub(super) struct Found {
    tests: Mutex<BTreeMap<String, (Moment, EndpointTest)>>,
    /// Roots whose file systems have not answered yet: they are not asked again until they do.
    asked: Arc<Mutex<BTreeSet<String>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Found {
    /// Keeps what a test has found, in place of what the one before has.
    pub fn keep(&self, endpoint: &str, now: Moment, test: &EndpointTest) {
        lock(&self.tests).insert(endpoint.to_owned(), (now, test.clone()));
    }

    /// Forgets an endpoint that is gone, or is somewhere else.
    pub fn forget(&self, endpoint: &str) {
        lock(&self.tests).remove(endpoint);
    }

    fn of(&self, endpoints: &[Endpoint]) -> Vec<KeptTest> {
        let tests = lock(&self.tests);
        let kept = endpoints.iter().filter_map(|endpoint| {
            let (time, test) = tests.get(&endpoint.name)?.clone();
            Some(KeptTest { endpoint: endpoint.name.clone(), time, test })
        });
        kept.collect()
    }

    /// How much the file system of each root holds, all asked at once.
    fn storage(&self, roots: Vec<(String, String)>) -> Vec<StorageStatus> {
        let (answers, answered) = mpsc::channel();
        for (_, asked_root) in &roots {
            let root = asked_root;
            if !lock(&self.asked).insert(root.clone()) {
                continue;
            }
            let (root, of_root, answers, asked) =
                (PathBuf::from(root), root.clone(), answers.clone(), Arc::clone(&self.asked));
            let ask = move || {
                let told = rustix::fs::statvfs(&root).map_err(|error| std::io::Error::from(error).to_string());
                lock(&asked).remove(&of_root);
                // Nobody waits any more.
                let _ = answers.send((of_root, told));
            };
            if std::thread::Builder::new().name("storage".to_owned()).spawn(ask).is_err() {
                lock(&self.asked).remove(asked_root);
            }
        }
        drop(answers);
        let until = Instant::now() + STORAGE_PATIENCE;
        let mut found = BTreeMap::new();
        while let Ok((root, told)) = answered.recv_timeout(until.saturating_duration_since(Instant::now())) {
            found.insert(root, told);
        }
        let silent = || Err("its file system does not answer".to_owned());
        let status = |(endpoint, root): (String, String)| {
            let told = found.get(&root).map_or_else(silent, |told| told.as_ref().map_err(Clone::clone));
            let of = |blocks: u64, unit: u64| Some(blocks.saturating_mul(unit));
            match told {
                Ok(told) => StorageStatus {
                    bytes_total: of(told.f_blocks, told.f_frsize),
                    bytes_free: of(told.f_bavail, told.f_frsize),
                    files_total: Some(told.f_files),
                    files_free: Some(told.f_favail),
                    failure: None,
                    endpoint,
                    root,
                },
                Err(why) => StorageStatus { failure: Some(why), ..StorageStatus::of(endpoint, root) },
            }
        };
        roots.into_iter().map(status).collect()
    }
}

/// Lists nodes: the one beside the service, with what the caller's tasks move there (of all, for admins), the storage
/// of the endpoints on the service's host, and what the last test of each endpoint has found since the service started.
/// `POST /endpoints/{name}/test` makes another.
#[utoipa::path(
    get, path = "/nodes", tag = "service",
    responses(
        (status = 200, description = "All of them.", body = Listed<NodeStatus>),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(State(api): State<Arc<Api>>, known: Known) -> Done<Json<Listed<NodeStatus>>> {
    let listed = api.run(move |api| {
        let caller = &*known.caller;
        api.check(caller, Verb::View, Object::Figures { of_all: false })?;
        let sees = |endpoint: &Endpoint| {
            let object = Object::Endpoint { endpoint, path: None };
            may(caller, &Action { verb: Verb::View, object }).verdict == Verdict::Allowed
        };
        let mut endpoints = api.ledger.endpoints(&Page { after: None, limit: ENDPOINTS_MOST })?;
        endpoints.retain(sees);
        let (mut running, mut rate) = (0, 0.0);
        for (task, _) in api.ledger.open_tasks()? {
            if task.state == TaskState::Active && (caller.is_admin() || task.owner == caller.user) {
                running += 1;
                rate += task.progress.rates.now;
            }
        }
        let local = |endpoint: &Endpoint| match &endpoint.location {
            EndpointLocation::Local { root } => Some((endpoint.name.clone(), root.clone())),
            EndpointLocation::Node { .. } | EndpointLocation::Ssh { .. } => None,
        };
        let node = api.node.get();
        let status = NodeStatus {
            name: "this host".to_owned(),
            address: node.map(|node| node.address.to_string()),
            fingerprint: node.map(|node| data_encoding::HEXLOWER.encode(&node.fingerprint)),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            running,
            rate,
            storage: api.found.storage(endpoints.iter().filter_map(local).collect()),
            tests: api.found.of(&endpoints),
        };
        Ok(Listed { items: vec![status], next: None })
    });
    listed.await.map(Json)
}
