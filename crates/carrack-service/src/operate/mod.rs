//! The whole service, put together: state directory, ledger, dispatcher, API; and what an operator sees of it.
//! The program starts it ([`Operation::start`]), puts its doors on a node's port, and ends it ([`Operation::stop`]):
//! workers run on.

mod backend;
mod endpoint_test;
mod item;
pub mod log;
pub mod notify;
mod older;
pub mod systemd;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use carrack_core::grant::GrantKey;
use carrack_core::request::Reach;
use carrack_engine::Context;
use carrack_engine::node::{Door, RevokedGrants};
use carrack_engine::secrets::{Unread, read_secret, write_whole};
use carrack_receipt::{PublicKey, ReceiptKey};

use self::backend::{Indexes, Whole};
pub use self::endpoint_test::ExamineEndpoint;
use self::notify::{Notifier, NotifyConfig};
pub use crate::api::OwnNode;
use crate::api::{Api, ApiHandle, Certificate, CertificateFiles, LOCAL_USER, Parts as ApiParts, Patience, ServeConfig};
use crate::bench::{Benches, Programs as BenchPrograms};
use crate::clock::{Clock, SystemClock};
use crate::files::{Pool, Programs};
use crate::identity::Seal;
use crate::ledger::Ledger;
use crate::ledger::sqlite::SqliteLedger;
use crate::model::{LoginLink, Secret, keep_out_of_cores, new_id};
use crate::service::{Directory, DirectoryError, Handle, Parts, Service, Settings};
use crate::supervise::{Settings as WorkerSettings, Supervisor, kept_environment};

/// A turn of the dispatcher lasts milliseconds: one that lasts longer than this hangs.
const TURN_MOST: Duration = Duration::from_secs(120);
/// The dispatcher ends at once; workers that were told to end get this long.
const DRAIN_MOST: Duration = Duration::from_secs(60);

/// What an operator chooses.
pub struct Config {
    /// The state directory; made if it is not there.
    pub directory: PathBuf,
    /// The Unix socket, where it is not in the state directory.
    pub socket: Option<PathBuf>,
    /// The same, opened already by whoever started the program.
    pub listener: Option<UnixListener>,
    /// The certificate of the API's TLS; none: one that the service signs itself.
    pub certificate: Option<CertificateFiles>,
    /// Names and addresses of this host, for the service's own certificate, and for what browsers may ask for.
    pub names: Vec<String>,
    /// Proxies whose word for a client's address is taken.
    pub proxies: Vec<IpAddr>,
    /// The program that workers are: this one.
    pub program: PathBuf,
    /// How much at once, and what is kept for how long.
    pub settings: Settings,
    /// Who is told what has ended.
    pub notify: NotifyConfig,
    /// What tests of endpoints may use.
    pub context: Context,
    /// How they reach hosts.
    pub reach: Reach,
    /// How they examine hosts.
    pub examine: ExamineEndpoint,
}

/// Why the service did not start.
#[derive(Debug)]
pub enum StartError {
    /// Another service holds the state directory.
    InUse(PathBuf),
    /// In words, with the path concerned.
    Failed {
        /// Why.
        why: String,
        /// What to try.
        hint: Option<String>,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(f, "another service uses the state directory {}", path.display()),
            Self::Failed { why, .. } => f.write_str(why),
        }
    }
}

impl std::error::Error for StartError {}

fn failed(why: impl fmt::Display) -> StartError {
    StartError::Failed { why: why.to_string(), hint: None }
}

/// A service at work.
pub struct Operation {
    api: ApiHandle,
    dispatcher: Handle,
    ledger: Arc<dyn Ledger>,
    directory: Directory,
    grants: Arc<Api>,
    notifier: Option<Notifier>,
}

/// Writes to the log that the ledger is older than the directories of tasks beside it.
fn tell_whether_older(ledger: &dyn Ledger, directory: &Directory) {
    match older::news(ledger, &directory.tasks()) {
        Ok(None) => {}
        Ok(Some(news)) => tracing::error!(
            target: "carrack::service",
            "the ledger is older than the tasks beside it: {news}; put the newer ledger back, or give its backup to \
             `carrack service restore`"
        ),
        Err(error) => tracing::error!(target: "carrack::service", "the tasks beside the ledger: {error}"),
    }
}

impl Operation {
    /// Opens what there is, or makes it; finds the workers of an earlier service; begins.
    ///
    /// # Errors
    /// When another service holds the state directory, or something in it cannot be used.
    pub fn start(config: Config) -> Result<Self, StartError> {
        // Before there is a secret.
        keep_out_of_cores().map_err(|error| failed(format!("secrets cannot be kept out of core dumps: {error}")))?;
        let directory = Directory::open(&config.directory).map_err(|error| match error {
            DirectoryError::InUse(path) => StartError::InUse(path),
            error @ DirectoryError::System(..) => failed(error),
        })?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let ledger = SqliteLedger::open(&directory.ledger(), clock.now())
            .map_err(|error| StartError::Failed { why: error.to_string(), hint: Some(error.kind.hint().to_owned()) })?;
        let ledger: Arc<dyn Ledger> = Arc::new(ledger);
        tell_whether_older(&*ledger, &directory);
        let seal = Arc::new(Seal::open(&directory.seal_key()).map_err(failed)?);
        let receipt_key = receipt_key(&directory.receipt_key())?;
        let certificate = match config.certificate {
            Some(files) => Certificate::load(files),
            None => Certificate::own(directory.path(), &config.names),
        };
        let certificate = certificate.map_err(failed)?;
        let programs = Programs::new(config.program.clone(), kept_environment());
        let files = Pool::new(Box::new(programs), Arc::clone(&clock));
        let measuring = BenchPrograms::new(config.program.clone(), kept_environment());
        let benches = Benches::new(directory.bench(), measuring, Arc::clone(&clock));
        let workers = Supervisor::new(WorkerSettings::new(config.program, directory.tasks()), Arc::clone(&clock));
        // The dispatcher tells the API of news, and the API asks the dispatcher: one of them is there first.
        let told: Arc<OnceLock<Arc<Api>>> = Arc::default();
        let tell = Arc::clone(&told);
        let parts = Parts {
            ledger: Arc::clone(&ledger),
            workers: Box::new(workers),
            clock: Arc::clone(&clock),
            seal: Arc::<Seal>::clone(&seal),
            receipt_key: receipt_key.1.clone(),
            tasks: directory.tasks(),
            ids: Box::new(new_id),
            changed: Arc::new(move || tell.get().into_iter().for_each(|api| api.changed())),
        };
        let dispatcher = Service::start(parts, config.settings).map_err(failed)?;
        let backend = Whole {
            waker: dispatcher.waker(),
            outlook: dispatcher.outlook(),
            ledger: Arc::clone(&ledger),
            tasks: directory.tasks(),
            context: config.context,
            reach: config.reach,
            examine: config.examine,
            indexes: Indexes::default(),
            receipt_key: receipt_key.0,
        };
        let uploads = directory.uploads();
        let (ledger, backend) = (Arc::clone(&ledger), Arc::new(backend));
        let parts = ApiParts { ledger: Arc::clone(&ledger), clock, seal, backend, files, benches, uploads };
        let api = crate::api::open(parts).map_err(failed)?;
        let _ = told.set(Arc::clone(&api));
        let serving = ServeConfig {
            socket: Some(config.socket.unwrap_or_else(|| directory.socket())),
            listener: config.listener,
            certificate: Some(certificate),
            names: config.names,
            proxies: config.proxies,
            patience: Patience::default(),
        };
        let at = serving.socket.clone().unwrap_or_default();
        let grants = Arc::clone(&api);
        let has_listener = serving.listener.is_some();
        let api = crate::api::start(api, serving).map_err(|error| failed(format!("{}: {error}", at.display())))?;
        if !has_listener {
            let linked = directory.link_socket(&at);
            linked.map_err(|error| failed(format!("{}: {error}", directory.socket().display())))?;
        }
        let notifier = Notifier::start(config.notify, Arc::clone(&ledger), directory.notified()).map_err(failed)?;
        Ok(Self { api, dispatcher, ledger, directory, grants, notifier })
    }

    /// The API's doors, for the port of a node.
    ///
    /// # Errors
    /// When the certificate cannot be used.
    pub fn doors(&self) -> Result<Vec<Door>, StartError> {
        self.api.doors().map_err(failed)
    }

    /// What the node beside the service has to know of grants: which are revoked, and what opens those of directories
    /// of this host.
    pub fn grants(&self) -> (RevokedGrants, GrantKey) {
        (self.grants.revoked(), self.grants.host_key())
    }

    /// Tells of the node beside the service, which asks for a token: grants for directories of this host name it.
    pub fn set_node(&self, node: OwnNode) {
        self.grants.set_node(node);
    }

    /// SHA-256 of the public key that the API shows: what clients pin.
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        self.api.fingerprint()
    }

    /// A link that logs whoever runs the service in once. It is for a terminal, never for a log.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn login_link(&self) -> io::Result<LoginLink> {
        self.api.api().login_link(LOCAL_USER)
    }

    /// Tells at which address others reach the service: login links name it.
    pub fn set_address(&self, address: String) {
        self.api.api().set_address(address);
    }

    /// Where the Unix socket is.
    pub fn socket(&self) -> Option<&Path> {
        self.api.socket()
    }

    /// The state directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Looks at the certificate's files again, and takes over other settings.
    pub fn reload(&self, settings: Settings) {
        self.api.reload();
        self.dispatcher.set_settings(settings);
    }

    /// Whether the service does what it should.
    ///
    /// # Errors
    /// What it does not do, in words.
    pub fn health(&self) -> Result<(), String> {
        let health = self.dispatcher.health();
        if !health.alive {
            return Err("the dispatcher has ended".to_owned());
        }
        if health.last_turn > TURN_MOST {
            return Err(format!("the dispatcher has not moved for {} s", health.last_turn.as_secs()));
        }
        Ok(())
    }

    /// Tasks that have not ended, and those of them with a worker.
    pub fn counts(&self) -> (usize, usize) {
        let health = self.dispatcher.health();
        (health.open, health.running)
    }

    /// What the ledger says of itself.
    ///
    /// # Errors
    /// Why nothing can be written, in words.
    pub fn probe(&self) -> Result<(), String> {
        self.ledger.probe().map_err(|error| error.to_string())
    }

    /// Ends the service in good order. Its workers run on; the next service finds them.
    ///
    /// # Errors
    /// When the dispatcher has panicked.
    pub fn stop(self) -> Result<(), &'static str> {
        self.api.stop();
        self.notifier.into_iter().for_each(Notifier::stop);
        self.dispatcher.drain(false, DRAIN_MOST)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("directory", &self.directory.path()).finish_non_exhaustive()
    }
}
/// The key that signs receipts: its public half, and what keeps it. It is made where there is none.
fn receipt_key(path: &Path) -> Result<(PublicKey, Secret), StartError> {
    const KEY_BYTES: usize = 4 << 10;
    let unfit = |why: String| failed(format!("the key for receipts, {}: {why}", path.display()));
    let text = match read_secret(path, KEY_BYTES, |_| None) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| unfit("it is no text".into()))?,
        Err(Unread::Foreign(why) | Unread::Unfit(why)) => return Err(unfit(why)),
        Err(Unread::Absent) => {
            let (_, text) = ReceiptKey::generate().map_err(|error| unfit(error.to_string()))?;
            write_whole(path, text.as_bytes()).map_err(|error| unfit(error.to_string()))?;
            text
        }
    };
    let key = ReceiptKey::parse(text.as_bytes()).map_err(|error| unfit(error.to_string()))?;
    Ok((key.public(), Secret::new(text)))
}
