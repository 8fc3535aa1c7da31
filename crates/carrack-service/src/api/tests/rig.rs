//! A service without a loop: a ledger in memory, a backend that tells what it is told to, the API on a Unix socket and
//! on a node's port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use carrack_core::tuning::Tuning;
use carrack_engine::Stop;
use carrack_engine::node::{Access, Measure, Node, NodeConfig, NodeHandle, NodeLog, NodeRoot};
use tempfile::TempDir;

use crate::api::{self, Api, ApiHandle, Backend, Certificate, Parts, Patience, ServeConfig, TaskSize};
use crate::bench::Benches;
use crate::bench::tests::measures_nothing;
use crate::client::{Call, Called, Client, Target};
use crate::clock::{Clock, Moment, SystemClock};
use crate::files::Pool;
use crate::files::tests::Threads;
use crate::identity::Seal;
use crate::journal::ItemQuery;
use crate::ledger::Ledger;
use crate::ledger::memory::MemoryLedger;
use crate::model::{
    Endpoint, EndpointCheck, EndpointLocation, EndpointTest, Estimate, InFlight, ItemState, Listed, MadeToken,
    NewEndpoint, NewTask, NewToken, NewUser, Pair, Role, Scope, Secret, Task, TaskItem, TaskState, Timer,
    TimerSchedule, Windowed,
};
use crate::worker::markers::PairMarker;

/// What stands for the loop.
#[derive(Default)]
pub struct FakeBackend {
    pub woken: AtomicU64,
    pub items: Mutex<Vec<TaskItem>>,
    /// Tasks whose plan somebody has confirmed.
    pub confirmed: Mutex<Vec<String>>,
    pub trouble: Mutex<Option<String>>,
    /// The files in flight of any task that runs.
    pub in_flight: Mutex<Vec<InFlight>>,
    /// What any task has marked.
    pub markers: Mutex<Vec<PairMarker>>,
    /// The endpoints that were tested, with the secrets that were shown.
    pub tested: Mutex<Vec<(String, Option<Secret>)>>,
    /// Whoever holds it keeps tests from their end.
    pub testing: Mutex<()>,
}

impl Backend for FakeBackend {
    fn wake(&self) {
        self.woken.fetch_add(1, Ordering::Relaxed);
    }

    fn complete(&self, _: &mut Task) {}

    fn in_flight(&self, task: &Task) -> Vec<InFlight> {
        let is_active = task.state == TaskState::Active;
        if is_active { self.in_flight.lock().unwrap().clone() } else { Vec::new() }
    }

    fn recheck(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn confirm(&self, task: &Task) -> Result<(), String> {
        self.confirmed.lock().unwrap().push(task.id.clone());
        Ok(())
    }

    fn estimate(&self, _: &NewTask, size: Option<TaskSize>, now: Moment) -> Estimate {
        Estimate {
            made: now,
            bytes: size.map(|size| size.bytes),
            items: size.map(|size| size.items),
            seconds_least: size.map(|size| size.bytes),
            seconds_most: size.map(|size| size.bytes + size.items),
            why: "nothing is known of this pair".into(),
            ..Estimate::default()
        }
    }

    fn first_run(&self, schedule: &TimerSchedule, now: Moment) -> Result<Moment, String> {
        match &schedule.cron {
            Some(_) => Err("cron: no".into()),
            None => Ok(schedule.start.unwrap_or(now)),
        }
    }

    fn next_run(&self, _: &Timer, now: Moment) -> Result<Option<Moment>, String> {
        Ok(Some(now))
    }

    fn items(
        &self,
        _: &str,
        states: &[ItemState],
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Listed<TaskItem>, Option<String>> {
        let from: usize = cursor.map_or(Ok(0), str::parse).map_err(|_| None)?;
        let items = self.items.lock().unwrap();
        let wanted =
            items.iter().enumerate().skip(from).filter(|(_, item)| states.is_empty() || states.contains(&item.state));
        let page: Vec<(usize, TaskItem)> = wanted.take(limit).map(|(place, item)| (place, item.clone())).collect();
        let next = (page.len() == limit).then(|| (page[limit - 1].0 + 1).to_string());
        Ok(Listed { items: page.into_iter().map(|(_, item)| item).collect(), next })
    }

    fn item_window(&self, _: &str, query: &ItemQuery, offset: u64, limit: usize) -> Result<Windowed<TaskItem>, String> {
        let items = self.items.lock().unwrap();
        let passes = |item: &&TaskItem| query.states.is_empty() || query.states.contains(&item.state);
        let wanted: Vec<&TaskItem> = items.iter().filter(passes).collect();
        let from = usize::try_from(offset).unwrap();
        let items = wanted.iter().skip(from).take(limit).map(|item| (*item).clone()).collect();
        Ok(Windowed { items, offset, total: wanted.len() as u64, complete: true })
    }

    fn receipt(&self, _: &str, _: u32) -> Result<Option<std::fs::File>, String> {
        tempfile::tempfile().map(Some).map_err(|error| error.to_string())
    }

    fn receipt_key(&self) -> carrack_receipt::PublicKey {
        carrack_receipt::ReceiptKey::generate().unwrap().0.public()
    }

    fn markers(&self, _: &str) -> Result<Vec<PairMarker>, String> {
        Ok(self.markers.lock().unwrap().clone())
    }

    fn test_endpoint(&self, endpoint: &Endpoint, token: Option<&Secret>, _: bool) -> EndpointTest {
        self.tested.lock().unwrap().push((endpoint.name.clone(), token.cloned()));
        drop(self.testing.lock());
        let check = |name: &str| EndpointCheck { name: name.into(), ok: Some(true), told: "good".into(), fix: None };
        let names = if endpoint.read_only { &["root"][..] } else { &["root", "write"] };
        EndpointTest { ok: true, checks: names.iter().map(|name| check(name)).collect() }
    }

    fn health(&self) -> Result<(), String> {
        self.trouble.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

/// A service for one test.
pub struct Rig {
    pub directory: TempDir,
    pub backend: Arc<FakeBackend>,
    pub ledger: Arc<dyn Ledger>,
    pub handle: Option<ApiHandle>,
    node: Mutex<Option<NodeHandle>>,
}

impl Rig {
    pub fn start() -> Self {
        Self::over(Arc::new(MemoryLedger::new()))
    }

    pub fn over(ledger: Arc<dyn Ledger>) -> Self {
        Self::with(ledger, Patience::default())
    }

    /// One with little patience for clients.
    pub fn patient(patience: Patience) -> Self {
        Self::with(Arc::new(MemoryLedger::new()), patience)
    }

    fn with(ledger: Arc<dyn Ledger>, patience: Patience) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let backend = Arc::<FakeBackend>::default();
        let handle = Some(serve(directory.path(), &ledger, &backend, patience));
        Self { directory, backend, ledger, handle, node: Mutex::new(None) }
    }

    /// Ends the service, and starts another over the same directory and ledger.
    pub fn restart(&mut self) {
        drop(self.handle.take());
        self.handle = Some(serve(self.directory.path(), &self.ledger, &self.backend, Patience::default()));
    }

    pub fn api(&self) -> &Arc<Api> {
        self.handle.as_ref().unwrap().api()
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("service.sock")
    }

    /// The port of a node that has the API's doors.
    pub fn port(&self) -> SocketAddr {
        self.port_with(Tuning::DEFAULT)
    }

    pub fn port_with(&self, tuning: Tuning) -> SocketAddr {
        let mut node = self.node.lock().unwrap();
        let started = node.get_or_insert_with(|| {
            let root = self.directory.path().join("root");
            std::fs::create_dir_all(&root).unwrap();
            let config = NodeConfig {
                root: NodeRoot::Directory(root),
                listen: "127.0.0.1:0".parse().unwrap(),
                listener: None,
                access: Access::Anonymous,
                read_only: true,
                allows_ownership: false,
                measure: Measure::Nobody,
                dial_to: Vec::new(),
                key_file: self.directory.path().join("node.key"),
                stop: Stop::default(),
                revoked: Default::default(),
                host_grants: None,
                doors: self.handle.as_ref().unwrap().doors().unwrap(),
                log: NodeLog::none(),
                tuning,
            };
            Node::start(config).unwrap()
        });
        started.address()
    }

    /// Whoever runs the service.
    pub fn local(&self) -> Client {
        Client::new(Target::Socket(self.socket()), None).unwrap()
    }

    /// Somebody with a token.
    pub fn with_token(&self, token: &Secret) -> Client {
        Client::new(Target::Socket(self.socket()), Some(token.clone())).unwrap()
    }

    /// A new user, by a token without a scope.
    pub fn user(&self, name: &str, role: Role) -> Client {
        let new = NewUser { name: name.into(), role, account: None, password: None };
        self.local().call(&Call::post("/users").body(&new).unwrap()).unwrap();
        self.with_token(&self.token(name, None).token)
    }

    /// A token of a user.
    pub fn token(&self, user: &str, scope: Option<Scope>) -> MadeToken {
        let new = NewToken { user: Some(user.into()), label: "test".into(), scope, expires: None };
        self.local().call(&Call::post("/tokens").body(&new).unwrap()).unwrap().json().unwrap()
    }

    /// A call by a client that shows nothing, over the node's port.
    pub fn stranger(&self) -> Client {
        let address = self.port();
        Client::new(Target::Loopback { address: address.ip(), port: address.port() }, None).unwrap()
    }
}

fn serve(directory: &Path, ledger: &Arc<dyn Ledger>, backend: &Arc<FakeBackend>, patience: Patience) -> ApiHandle {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let api = api::open(Parts {
        ledger: Arc::clone(ledger),
        files: Pool::new(Box::new(Threads), Arc::clone(&clock)),
        benches: Benches::new(directory.join("bench"), measures_nothing(directory), Arc::clone(&clock)),
        clock,
        seal: Arc::new(Seal::open(&directory.join("seal.key")).unwrap()),
        backend: Arc::<FakeBackend>::clone(backend),
        uploads: directory.join("uploads"),
    });
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = Certificate::own(directory, &names).unwrap();
    let config = ServeConfig {
        socket: Some(directory.join("service.sock")),
        certificate: Some(certificate),
        patience,
        ..ServeConfig::default()
    };
    api::start(api.unwrap(), config).unwrap()
}

/// An endpoint at a node of documentation's network.
pub fn endpoint(name: &str, users: &[&str]) -> NewEndpoint {
    NewEndpoint {
        name: name.into(),
        location: EndpointLocation::Node {
            host: "192.0.2.1".into(),
            port: 7420,
            fingerprint: Some("ab".repeat(32)),
            path: "/".into(),
        },
        read_only: false,
        uploads: false,
        ownership: false,
        limits: Default::default(),
        defaults: Default::default(),
        description: String::new(),
        users: users.iter().map(|&user| user.to_owned()).collect(),
        token: None,
    }
}

pub fn add_endpoint(client: &Client, new: &NewEndpoint) -> Called<Endpoint> {
    client.call(&Call::post("/endpoints").body(new)?)?.json()
}

/// A copy from one place to another.
pub fn copy(source: &str, destination: &str) -> NewTask {
    let pair = Pair { source: source.into(), destination: Some(destination.into()) };
    NewTask { pairs: vec![pair], ..NewTask::default() }
}

pub fn submit(client: &Client, request: &NewTask) -> Called<Task> {
    client.call(&Call::post("/tasks").body(request)?)?.json()
}
