//! What all handlers share: the ledger, the loop behind it, keys, counters and budgets; and the checks that they make
//! of whoever calls.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use axum::http::StatusCode;
use carrack_core::credential::Token;
use carrack_core::grant::GrantKey;
use carrack_engine::node::RevokedGrants;
use tokio::sync::{Semaphore, watch};

use super::backend::Backend;
use super::caller::Known;
use super::counters::{FaultsKnown, Metrics};
use super::documents::BODIES_BUDGET;
use super::hands::{Hands, Undone};
use super::place_counters::PlaceMetrics;
use super::problem::{ApiError, Done};
use super::shares::{Holder, Names, Share, Shares};
use super::space::Found;
use super::strangers::Audit;
use crate::bench::Benches;
use crate::clock::{Clock, Moment};
use crate::files::{Listings, Pool, Uploads};
use crate::identity::digest::random;
use crate::identity::{
    Action, Caller, Decision, LINK_LIFETIME, LoginLinks, Object, SCOPE_LACKS_VERB, Seal, Slow, Verdict, may,
    may_anywhere,
};
use crate::ledger::{Ledger, LedgerError, UseTaken};
use crate::model::{Endpoint, KnownBy, LoginLink, ProblemCode, Role, Secret, TokenUse, User, Verb};

/// The user who is the account that runs the service.
pub const LOCAL_USER: &str = "local";
/// Passwords that are looked at, at once: each takes 19 MiB and a processor for tens of milliseconds.
const PASSWORDS_AT_ONCE: usize = 2;
/// Logins that wait for that: few enough to be looked at within the patience of whoever logs in.
const LOGINS_WAITING: usize = 48;
/// Streams of events and items, at once.
pub(super) const STREAMS_AT_ONCE: usize = 512;
/// A stream of a file's content, or of a directory's, counts as so many: it keeps more in memory.
pub(super) const STREAMS_OF_A_DOWNLOAD: usize = 8;
/// Tests of endpoints at once: each holds a thread for as long as a host keeps silent.
const TESTS_AT_ONCE: usize = 4;

/// What the API stands on.
pub struct Parts {
    /// What the service must never lose.
    pub ledger: Arc<dyn Ledger>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Seals the secrets of endpoints.
    pub seal: Arc<Seal>,
    /// The loop that does the work, and what it knows.
    pub backend: Arc<dyn Backend>,
    /// Workers that serve files.
    pub files: Arc<Pool>,
    /// What is measured of this host.
    pub benches: Arc<Benches>,
    /// Where uploads wait until they are published.
    pub uploads: PathBuf,
}

/// The node beside the service.
#[derive(Clone, Copy, Debug)]
pub struct OwnNode {
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of its public key.
    pub fingerprint: [u8; 32],
}

/// The API's state, shared by all connections.
pub struct Api {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) seal: Arc<Seal>,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) files: Arc<Pool>,
    pub(super) benches: Arc<Benches>,
    pub(super) listings: Arc<Listings>,
    pub(super) uploads: Arc<Uploads>,
    /// The node on whose port the API is, once it listens: if it asks for a token.
    pub(super) node: OnceLock<OwnNode>,
    /// Seals grants for directories of this host. It lives as long as the process, and so do they.
    pub(super) host_key: GrantKey,
    /// Grants that the node beside the service takes no more.
    pub(super) revoked: RevokedGrants,
    /// The account that runs the service.
    pub(super) account: u32,
    pub(super) slow: Slow,
    pub(super) links: LoginLinks,
    /// Where others reach the service, with its key, as [`crate::client::Target`] reads it; for login links.
    pub(super) address: OnceLock<String>,
    pub(super) metrics: Metrics,
    pub(super) faults_known: FaultsKnown,
    pub(super) places: PlaceMetrics,
    pub(super) audit: Audit,
    /// Threads for what blocks.
    pub(super) hands: Hands,
    pub(super) found: Found,
    pub(super) passwords: Semaphore,
    /// Logins that wait for their turn, by the network that they come from.
    pub(super) logins: Arc<Shares>,
    /// Answers that last, by who reads them.
    pub(super) streams: Arc<Shares>,
    /// Bytes of bodies that are in memory, by who has sent them.
    pub(super) bodies: Arc<Shares>,
    /// Endpoints that are tested.
    pub(super) tests: Arc<Names>,
    /// Grows when there may be new events.
    pub(super) changed: watch::Sender<u64>,
    /// Becomes true when the service ends: streams end with it.
    pub(super) stopping: watch::Sender<bool>,
}

impl Api {
    /// The API over these parts. The user [`LOCAL_USER`] is made if there is none.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(super) fn over(parts: Parts) -> Result<Arc<Self>, LedgerError> {
        let host_key = random::<32>().and_then(|bytes| {
            let token = Token::new(data_encoding::HEXLOWER.encode(&bytes).as_bytes());
            token.map(|token| GrantKey::of(&token)).map_err(std::io::Error::other)
        });
        let host_key = host_key.map_err(|error| LedgerError::Broken(error.to_string()))?;
        let api = Arc::new(Self {
            ledger: parts.ledger,
            clock: parts.clock,
            seal: parts.seal,
            backend: parts.backend,
            files: parts.files,
            benches: parts.benches,
            listings: Arc::default(),
            uploads: Uploads::open(parts.uploads),
            node: OnceLock::new(),
            host_key,
            revoked: RevokedGrants::default(),
            account: rustix::process::geteuid().as_raw(),
            slow: Slow::default(),
            links: LoginLinks::default(),
            address: OnceLock::new(),
            metrics: Metrics::default(),
            faults_known: FaultsKnown::default(),
            places: PlaceMetrics::default(),
            audit: Audit::default(),
            hands: Hands::default(),
            found: Found::default(),
            passwords: Semaphore::new(PASSWORDS_AT_ONCE),
            logins: Shares::new(LOGINS_WAITING),
            streams: Shares::new(STREAMS_AT_ONCE),
            bodies: Shares::new(BODIES_BUDGET),
            tests: Names::new(TESTS_AT_ONCE),
            changed: watch::Sender::new(0),
            stopping: watch::Sender::new(false),
        });
        api.add_local_user()?;
        api.recall_revoked_grants()?;
        Ok(api)
    }

    /// Whoever runs the service is one of its users from the start: the first one.
    fn add_local_user(&self) -> Result<(), LedgerError> {
        let user = |account| User {
            name: LOCAL_USER.to_owned(),
            role: Role::Admin,
            account,
            enabled: true,
            added: self.clock.now(),
        };
        let add = |account| self.ledger.add_user(&crate::ledger::UserRow { user: user(account), password: None });
        match self.ledger.user(LOCAL_USER) {
            Ok(_) => Ok(()),
            // The account may be another user's already.
            Err(LedgerError::Missing) => match add(Some(self.account)) {
                Err(LedgerError::Taken) => add(None),
                other => other,
            },
            Err(error) => Err(error),
        }
    }

    /// Where others reach the service: `https://HOST:PORT#sha256:…`. A second call changes nothing.
    pub fn set_address(&self, address: String) {
        // The first one holds.
        let _ = self.address.set(address);
    }

    /// A link that logs this user in once, within a few minutes: for the terminal of whoever starts the service.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn login_link(&self, user: &str) -> std::io::Result<LoginLink> {
        let secret = self.links.make(user, self.clock.elapsed())?;
        let address = self.address.get().map_or("", String::as_str);
        let sign = if address.contains('#') { '&' } else { '#' };
        let link = Secret::new(format!("{address}{sign}login={}", secret.reveal()));
        Ok(LoginLink { user: user.to_owned(), link, expires: self.clock.now().after(LINK_LIFETIME) })
    }

    /// What the node beside the service opens grants of this host's directories by.
    pub fn host_key(&self) -> GrantKey {
        self.host_key.clone()
    }

    /// Grants that the node beside the service must take no more.
    pub fn revoked(&self) -> RevokedGrants {
        self.revoked.clone()
    }

    /// Tells of the node beside the service, once it listens; one that lets anybody in is not told of.
    pub fn set_node(&self, node: OwnNode) {
        // There is one in the life of a service.
        let _ = self.node.set(node);
    }

    /// Tells followers of events that there may be new ones. The loop calls it after each turn that wrote some.
    pub fn changed(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Ends all streams, all file workers and what is being measured: the service ends.
    pub fn stop(&self) {
        self.files.stop();
        self.benches.stop();
        self.stopping.send_replace(true);
    }

    /// Wakes the loop after something was written, and tells followers.
    pub(super) fn wrote(&self) {
        self.backend.wake();
        self.changed();
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// A place for an answer that lasts, which counts as so many streams.
    pub(super) fn stream(&self, known: &Known, count: usize) -> Done<Share> {
        self.streams.take(&Holder::of_user(known), count).ok_or_else(|| {
            let detail = "the service sends as many streams as it may, to you or in all";
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, ProblemCode::TooMany, detail).retry_after(5)
        })
    }

    /// Runs something that blocks: the ledger, a digest, a name's look-up.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> Done<T> + Send + 'static,
    ) -> Done<T> {
        let api = Arc::clone(self);
        match self.hands.run(move || work(&api)).await {
            Ok(done) => done,
            Err(Undone::Panicked) => Err(ApiError::internal("a request's work ended by a panic")),
            Err(Undone::NoThread(error)) => Err(ApiError::short_of_threads(&error)),
        }
    }

    /// Lets pass what the caller may do. A refusal is logged with its rule.
    pub(super) fn check(&self, caller: &Caller, verb: Verb, object: Object<'_>) -> Done<()> {
        self.decided(caller, verb, may(caller, &Action { verb, object }))
    }

    /// Lets pass what the caller may do to something, whatever that is.
    pub(super) fn check_anywhere(&self, caller: &Caller, action: &Action<'_>) -> Done<()> {
        self.decided(caller, action.verb, may_anywhere(caller, action))
    }

    fn decided(&self, caller: &Caller, verb: Verb, decision: Decision) -> Done<()> {
        match decision.verdict {
            Verdict::Allowed => Ok(()),
            Verdict::Forbidden => {
                let error = match decision.rule {
                    SCOPE_LACKS_VERB => ApiError::lacks(&[verb]),
                    rule => ApiError::forbidden(rule),
                };
                Err(self.refused(caller, verb, decision.rule, error))
            }
            Verdict::Hidden => Err(self.refused(caller, verb, decision.rule, ApiError::not_found())),
        }
    }

    /// Lets pass who may change logins: what lets somebody in allows all that its user may do, and for longer than a
    /// token whose scope is narrower, or that ends.
    pub(super) fn check_logins(&self, caller: &Caller) -> Done<()> {
        if !caller.is_scoped() && (caller.via != KnownBy::Token || caller.expires.is_none()) {
            return Ok(());
        }
        let rule = "scope-no-logins";
        Err(self.refused(caller, Verb::Admin, rule, ApiError::forbidden(rule)))
    }

    /// Lets pass what may lead to this host, or by the service's own ssh: its owner is still somebody who may add it.
    pub(super) fn check_open(&self, endpoint: &Endpoint) -> Done<()> {
        if !endpoint.location.is_of_service() || self.is_admin(&endpoint.owner)? {
            return Ok(());
        }
        let rule = "endpoint-owner-no-admin";
        self.metrics.refused(rule);
        let detail = endpoint.why_closed();
        let error = ApiError::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, format!("{detail} ({rule})"));
        Err(error.hint(format!("an admin can take it over: carrack endpoint edit {} --owner NAME", endpoint.name)))
    }

    /// Counts what a caller is about to do at an endpoint, where their token says how much that may be. A task of the
    /// token that runs has all that is left.
    pub(super) fn count_use(&self, caller: &Caller, more: TokenUse) -> Done<()> {
        let ceilings = caller.ceilings();
        let Some(token) = caller.token.as_ref().filter(|_| ceilings.are_counted()) else { return Ok(()) };
        match self.ledger.count_use(&caller.user, token, &more, &ceilings)? {
            UseTaken::Taken => Ok(()),
            UseTaken::Running(task) => {
                let detail = format!("task {task} of this token runs, and what it will have used is not known yet");
                Err(ApiError::conflict(detail).hint("ask again once the task has ended, or by another token"))
            }
            UseTaken::Over(most) => {
                let rule = "scope-ceiling";
                self.metrics.refused(rule);
                let detail = format!("the token allows {most} in all, and less is left than this takes ({rule})");
                let error = ApiError::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, detail);
                Err(error.hint("make another token: what a token has used is not given back"))
            }
        }
    }

    /// Whether a user is an admin, and let in.
    pub(super) fn is_admin(&self, user: &str) -> Done<bool> {
        match self.ledger.user(user) {
            Ok(row) => Ok(row.user.enabled && row.user.role == Role::Admin),
            Err(LedgerError::Missing) => Ok(user == LOCAL_USER),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a caller who was known a while ago is still let in: their token was not revoked, and has not expired.
    /// For answers that last.
    pub(super) async fn is_still_known(self: &Arc<Self>, caller: &Arc<Caller>) -> bool {
        let caller = Arc::clone(caller);
        let known = self.run(move |api| {
            let Some(token) = &caller.token else {
                let is_same = |user: &User| user.enabled && user.role == caller.role;
                return Ok(caller.runs_service || is_same(&api.ledger.user(&caller.user)?.user));
            };
            let (row, _, user) = api.ledger.token(token)?;
            let now = api.now();
            Ok(user.enabled && user.role == caller.role && row.expires.is_none_or(|expires| expires > now))
        });
        known.await.unwrap_or(false)
    }

    /// Logs a refusal.
    pub(super) fn refused(&self, caller: &Caller, verb: Verb, rule: &'static str, error: ApiError) -> ApiError {
        self.metrics.refused(rule);
        tracing::warn!(
            target: "carrack::audit",
            user = %caller.user, via = caller.via.name(), token = caller.token.as_deref().unwrap_or("-"),
            verb = verb.name(), rule, "refused"
        );
        error
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}
