//! What a client may do that has shown a grant instead of the node's token: which rights, where, how much, and until
//! when. A grant that expires, is revoked, or has reached a ceiling ends its sessions.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use carrack_core::credential::Token;
use carrack_core::grant::{Ceiling, Claims, GrantError, GrantId, GrantKey, Right, claims_to_be_grant};
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::wire::control::{Ask, Collect, Role};
use carrack_sys::dir::Dir;
use carrack_sys::host::clock_seconds;
use carrack_sys::threads;

use super::Agent;
use crate::error::failure;
use crate::storage::over::{Act, Call, Hook, over_destination, over_source};
use crate::storage::place::Place;
use crate::storage::read::Source;
use crate::storage::write::Destination;
use crate::sync::{Latch, lock};

/// How often a session with a grant looks whether it may go on.
const LOOK: Duration = Duration::from_secs(1);

/// Grants that are no longer valid, although they have not expired. Clones are one: whoever runs a node keeps one, and
/// the sessions of a grant that is put there end within seconds. Nothing of it outlives the process.
#[derive(Clone, Default)]
pub struct RevokedGrants(Arc<Mutex<HashMap<GrantId, u64>>>);

impl RevokedGrants {
    /// Revokes a grant that expires at this second since 1970. By then it is forgotten here.
    pub fn revoke(&self, id: GrantId, expires: u64) {
        let mut revoked = lock(&self.0);
        let now = now();
        revoked.retain(|_, expires| *expires > now);
        let until = revoked.entry(id).or_default();
        *until = expires.max(*until);
    }

    /// Takes a revocation back: grants with this number are valid again until they expire.
    pub fn restore(&self, id: &GrantId) {
        lock(&self.0).remove(id);
    }

    /// Whether a grant has been revoked.
    pub fn contains(&self, id: &GrantId) -> bool {
        lock(&self.0).contains_key(id)
    }
}

impl fmt::Debug for RevokedGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevokedGrants").field("count", &lock(&self.0).len()).finish()
    }
}

/// Seconds since 1970; a clock that stands before that lets no grant expire too late.
fn now() -> u64 {
    u64::try_from(clock_seconds()).unwrap_or(u64::MAX)
}

/// What a node takes for proof: its own token, and grants that were made with it.
#[derive(Debug)]
pub struct NodeToken {
    /// BLAKE3 of the token.
    hash: blake3::Hash,
    key: GrantKey,
    /// What opens grants of the whole host, and the directory that their paths begin at.
    host: Option<(GrantKey, Arc<Dir>)>,
    revoked: RevokedGrants,
    /// What is used up of grants that have ceilings, and when each expires.
    used: Mutex<HashMap<GrantId, (u64, Arc<Used>)>>,
    /// When the grants of sessions under way expire, by what they say beside that.
    ends: Mutex<HashMap<Vec<u8>, Weak<AtomicU64>>>,
}

/// What all sessions with one grant have come to.
#[derive(Debug)]
struct Used {
    began: Instant,
    entries: AtomicU64,
    bytes: AtomicU64,
    deletions: AtomicU64,
}

impl Default for Used {
    fn default() -> Self {
        Self { began: Instant::now(), entries: 0.into(), bytes: 0.into(), deletions: 0.into() }
    }
}

impl NodeToken {
    /// A node's token, and the grants that have been revoked.
    pub fn new(token: &Token, revoked: RevokedGrants) -> Self {
        let hash = blake3::hash(token.reveal().as_bytes());
        let key = GrantKey::of(token);
        Self { hash, key, host: None, revoked, used: Mutex::default(), ends: Mutex::default() }
    }

    /// Takes grants that this key has sealed, too. Their paths begin at `top`, and not at the node's root: whoever has
    /// the key decides what of the host may be reached.
    #[must_use]
    pub fn with_host(self, key: GrantKey, top: Arc<Dir>) -> Self {
        Self { host: Some((key, top)), ..self }
    }

    /// Lets a client in that shows this; `None` for one that has the whole token. What is compared are digests: the
    /// time that it takes tells nothing of how much of a token was right.
    ///
    /// # Errors
    /// When it proves nothing.
    pub(super) fn admit(&self, shown: &str) -> Result<Option<Arc<GrantInForce>>, Failure> {
        if blake3::hash(shown.as_bytes()) == self.hash {
            return Ok(None);
        }
        let refused = |why: &str, reason| Err(denied(why).for_reason(reason));
        // Told apart because the user does something else about each.
        if shown.is_empty() {
            return refused("no token was shown", Reason::TokenMissing);
        }
        if !claims_to_be_grant(shown) {
            return refused("the token is not this node's", Reason::TokenWrong);
        }
        let (claims, top) = match (self.key.open(shown, now()), &self.host) {
            (Err(GrantError::Forged), Some((key, top))) => (key.open(shown, now()), Some(Arc::clone(top))),
            (opened, _) => (opened, None),
        };
        let claims = match claims {
            Ok(claims) => claims,
            Err(why @ GrantError::Expired) => return refused(&why.to_string(), Reason::GrantExpired),
            Err(why) => return refused(&why.to_string(), Reason::TokenWrong),
        };
        let used = self.used(&claims)?;
        let grant = GrantInForce {
            expires: self.end_of(&claims, top.is_some()),
            claims,
            top,
            used,
            revoked: self.revoked.clone(),
            ended: Mutex::default(),
            is_over: Latch::default(),
            agent: OnceLock::new(),
        };
        grant.check_in_force().map(|()| Some(Arc::new(grant)))
    }

    /// What sessions with the grant have used up before.
    fn used(&self, claims: &Claims) -> Result<Arc<Used>, Failure> {
        if !Ceiling::ALL.iter().any(|ceiling| claims.ceilings.of(*ceiling).is_some()) {
            return Ok(Arc::default());
        }
        let mut known = lock(&self.used);
        if known.len() >= limits::GRANTS_COUNTED && !known.contains_key(&claims.id) {
            let now = now();
            known.retain(|_, (expires, _)| *expires > now);
        }
        if known.len() >= limits::GRANTS_COUNTED && !known.contains_key(&claims.id) {
            let why = format!("counts {} grants already, which is as many as it does", limits::GRANTS_COUNTED);
            return Err(failure(ErrorCode::Busy, Side::Link, why));
        }
        // Two grants of one number are one: the later end is kept, so that neither begins anew.
        let (expires, used) = known.entry(claims.id).or_default();
        *expires = claims.expires.max(*expires);
        Ok(Arc::clone(used))
    }
}

impl NodeToken {
    /// When a grant expires, shared with sessions that have shown one that says the same but for that: whoever comes
    /// back with a later one keeps theirs going.
    fn end_of(&self, claims: &Claims, of_host: bool) -> Arc<AtomicU64> {
        // Claims that were opened can be encoded again.
        let mut said = Claims { expires: 0, ..claims.clone() }.encode().unwrap_or_default();
        said.push(u8::from(of_host));
        let mut ends = lock(&self.ends);
        ends.retain(|_, end| end.strong_count() > 0);
        let known = ends.get(&said).and_then(Weak::upgrade);
        let end = known.unwrap_or_default();
        end.fetch_max(claims.expires, Ordering::Relaxed);
        ends.insert(said, Arc::downgrade(&end));
        end
    }
}

fn denied(why: impl Into<String>) -> Failure {
    failure(ErrorCode::AuthenticationFailed, Side::Link, why)
}

/// The grant of one session.
#[derive(Debug)]
pub struct GrantInForce {
    claims: Claims,
    /// The first second since 1970 in which it is no longer valid; a later grant that says the same moves it.
    expires: Arc<AtomicU64>,
    /// Where its paths begin, if that is not the node's root.
    top: Option<Arc<Dir>>,
    used: Arc<Used>,
    revoked: RevokedGrants,
    /// Why the session may not go on: a ceiling.
    ended: Mutex<Option<Failure>>,
    /// The same, for who waits for it.
    is_over: Latch,
    /// Whose session it is.
    agent: OnceLock<Weak<Agent>>,
}

impl GrantInForce {
    /// Where its paths lead, of a node with this root.
    pub fn place(&self, root: Arc<Dir>) -> Place {
        let root = self.top.clone().unwrap_or(root);
        match &self.claims.prefix[..] {
            b"" => Place::Beneath(root),
            prefix => Place::Granted(root, prefix.to_vec()),
        }
    }

    /// Looks at a request before it is carried out. Its paths are [`Place::Granted`]'s to check.
    ///
    /// # Errors
    /// When it does not allow it.
    pub(super) fn check_ask(&self, ask: &Ask) -> Result<(), Failure> {
        match ask {
            // What stands there may come to stand elsewhere.
            Ask::List(_) | Ask::Sum(_) | Ask::Read(_) | Ask::Refer(_) => self.check_right(Right::Read),
            Ask::MakeDirectory(_) | Ask::Rename(_) => self.check_right(Right::Write),
            Ask::Remove(_) => self.check_right(Right::Delete),
            Ask::Begin(begin) => match &begin.role {
                Role::Send(_) => self.check_right(Right::Read),
                Role::Receive(role) => self.check_right(Right::Write).and_then(|()| match role.delete {
                    Some(_) => self.check_right(Right::Delete),
                    None => Ok(()),
                }),
            },
            // Whoever may copy with that key may have its leftovers removed.
            Ask::Collect(Collect { marker: Some(_), .. }) => self.check_right(Right::Write),
            Ask::Collect(_) => Err(self.refuse("collect leftovers")),
            Ask::Evidence(_) => Err(self.refuse("ask what the host is made of")),
            // Of a path that is covered every grant may know whether something is there: each use of it begins so.
            Ask::Inspect(_) => Ok(()),
            // They say how a copy goes that has been allowed, and nothing of files.
            Ask::Hello(_)
            | Ask::Listen(_)
            | Ask::Dial(_)
            | Ask::Tunnel(_)
            | Ask::Cancel
            | Ask::Bye
            | Ask::Select(_)
            | Ask::Expect(_)
            | Ask::Filter(_)
            | Ask::Retire(_)
            | Ask::Wake(_)
            | Ask::Clock
            | Ask::Trace
            | Ask::MayDelete(_)
            | Ask::Accounts(_) => Ok(()),
        }
    }

    /// # Errors
    /// When it does not allow this.
    pub(super) fn check_right(&self, right: Right) -> Result<(), Failure> {
        if self.claims.rights.allow(right) {
            return Ok(());
        }
        let why = format!("the grant does not allow to {}", right.name());
        Err(failure(ErrorCode::PermissionDenied, Side::Link, why).for_reason(Reason::GrantRight))
    }

    /// Whether there is a ceiling of bytes.
    pub(super) fn counts_bytes(&self) -> bool {
        self.claims.ceilings.of(Ceiling::Bytes).is_some()
    }

    /// Why something is refused that only the node's own token allows.
    pub(super) fn refuse(&self, what: &str) -> Failure {
        let why = format!("a grant does not allow to {what}: that takes the node's own token");
        failure(ErrorCode::PermissionDenied, Side::Link, why).for_reason(Reason::GrantRight)
    }

    /// Counts what is about to be done. What does not fit any more is not counted, and ends the session.
    ///
    /// # Errors
    /// When it may not be done.
    pub(super) fn take(&self, ceiling: Ceiling, count: u64) -> Result<(), Failure> {
        if let Some(why) = &*lock(&self.ended) {
            return Err(why.clone());
        }
        let Some(most) = self.claims.ceilings.of(ceiling) else { return Ok(()) };
        let used = match ceiling {
            Ceiling::Entries => &self.used.entries,
            Ceiling::Bytes => &self.used.bytes,
            Ceiling::Deletions => &self.used.deletions,
            // Nobody counts time: it passes.
            Ceiling::RunSeconds => return Ok(()),
        };
        let fits = |used: u64| used.checked_add(count).filter(|sum| *sum <= most);
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.end(ceiling, most)),
        }
    }

    fn end(&self, ceiling: Ceiling, most: u64) -> Failure {
        let why = format!("the grant's ceiling of {most} {} is reached", ceiling.name());
        let why = failure(ErrorCode::PermissionDenied, Side::Link, why).for_reason(Reason::GrantCeiling);
        let why = lock(&self.ended).get_or_insert(why).clone();
        self.is_over.set();
        // At once: a copy that goes on with what it has could end before the session does, and would not say why.
        if let Some(agent) = self.agent.get().and_then(Weak::upgrade) {
            let running = agent.lock().running.clone();
            running.iter().for_each(|running| running.cancel(why.clone()));
        }
        why
    }

    /// # Errors
    /// Why nothing may be done with it any more.
    pub(super) fn check_in_force(&self) -> Result<(), Failure> {
        if let Some(why) = &*lock(&self.ended) {
            return Err(why.clone());
        }
        if self.revoked.contains(&self.claims.id) {
            return Err(denied("the grant has been revoked").for_reason(Reason::GrantRevoked));
        }
        if now() >= self.expires.load(Ordering::Relaxed) {
            return Err(denied(GrantError::Expired.to_string()).for_reason(Reason::GrantExpired));
        }
        match self.claims.ceilings.run_seconds {
            Some(most) if self.used.began.elapsed() >= Duration::from_secs(most) => {
                Err(self.end(Ceiling::RunSeconds, most))
            }
            _ => Ok(()),
        }
    }

    /// Has a thread end the agent's session as soon as the grant is not in force any more. It ends with the session.
    ///
    /// # Errors
    /// When there can be no such thread: a session that nobody watches may not begin.
    pub(super) fn watch(self: &Arc<Self>, agent: &Arc<Agent>) -> std::io::Result<()> {
        let (grant, agent) = (Arc::clone(self), Arc::downgrade(agent));
        let _ = self.agent.set(Weak::clone(&agent));
        let watch = move || {
            while Weak::upgrade(&agent).is_some_and(|agent| !agent.left.is_set()) {
                if let (Err(why), Some(agent)) = (grant.check_in_force(), Weak::upgrade(&agent)) {
                    return agent.end_session(why);
                }
                grant.is_over.wait(LOOK);
            }
        };
        threads::start("the watch over a grant", watch).map(drop)
    }

    /// The source of a copy, counted.
    pub(super) fn count_source(self: &Arc<Self>, source: Box<dyn Source>) -> Box<dyn Source> {
        if self.counts_content() { over_source(source, &(Arc::clone(self) as _)) } else { source }
    }

    /// The destination of a copy, counted.
    pub(super) fn count_destination(self: &Arc<Self>, destination: Box<dyn Destination>) -> Box<dyn Destination> {
        if self.counts_content() { over_destination(destination, &(Arc::clone(self) as _)) } else { destination }
    }

    /// Counted content takes the way through this process, where the kernel might have moved it alone.
    fn counts_content(&self) -> bool {
        let ceilings = &self.claims.ceilings;
        ceilings.entries.is_some() || ceilings.bytes.is_some() || ceilings.deletions.is_some()
    }
}

/// Counts what a copy does.
impl Hook for GrantInForce {
    fn before(&self, call: Call, bytes: u64) -> Act {
        let makes_entry = matches!(
            call,
            Call::Begin | Call::WriteSmall | Call::FinishGrowing | Call::WriteLink | Call::MakeDirectory
        );
        if matches!(call, Call::Delete | Call::RemoveSource) {
            return self.take(Ceiling::Deletions, 1).map_or_else(Act::Fail, |()| Act::Go);
        }
        // What is told or taken back needs no grant.
        if !makes_entry && bytes == 0 {
            return Act::Go;
        }
        let taken = self.take(Ceiling::Entries, u64::from(makes_entry)).and_then(|()| self.take(Ceiling::Bytes, bytes));
        taken.map_or_else(Act::Fail, |()| Act::Go)
    }

    fn found(&self) -> Result<(), Failure> {
        self.take(Ceiling::Entries, 1)
    }
}
