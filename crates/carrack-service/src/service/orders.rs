//! From a task as somebody submitted it to what a worker is told: endpoints looked up, tokens opened, defaults and
//! limits applied. Made anew for each attempt, so what changed meanwhile counts.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use carrack_core::credential::Token;
use carrack_core::failure::{ErrorCode, Side};
use carrack_core::grant::{Ceilings, Claims, GrantKey, Right, Rights, claims_to_be_grant};
use carrack_core::location::{Location, NodeAddress};
use carrack_core::options::{RateBound, Streams};

use crate::clock::{Clock, Moment};
use crate::identity::{self, RequestFault, ScopePath, Seal, check_rights};
use crate::ledger::{EndpointRow, Ledger, LedgerError};
use crate::model::{
    self, Fence, KnownBy, NewTask, Pair, Progress, Role, Scope, Task, TaskFailure, TaskKind, TaskOptions, Verb,
};
use crate::schedule::{Link, Size};
use crate::worker::{EndOrder, EndpointRoot, Order, PairOrder, Secret};

/// Opens the tokens of endpoints.
pub trait Unseal: Send + Sync {
    /// The token of an endpoint.
    ///
    /// # Errors
    /// In words, without any part of the token.
    fn open(&self, endpoint: &str, sealed: &[u8]) -> Result<Secret, String>;
}

impl Unseal for Seal {
    fn open(&self, endpoint: &str, sealed: &[u8]) -> Result<Secret, String> {
        self.unseal(endpoint, sealed).map_err(|error| error.to_string())
    }
}

/// For a service without endpoints that need a token.
#[derive(Debug)]
pub struct NoSeal;

impl Unseal for NoSeal {
    fn open(&self, _endpoint: &str, _sealed: &[u8]) -> Result<Secret, String> {
        Err("this service has no key for tokens of endpoints".to_owned())
    }
}

/// The links that a request uses, each once.
pub fn links_of(request: &NewTask) -> Vec<Link> {
    let links: BTreeSet<Link> = request.pairs.iter().map(link_of).collect();
    links.into_iter().collect()
}

/// What a task has moved, in equal parts of its links.
pub(super) fn moved(progress: &Progress, links: u32) -> Size {
    let share = |number: u64| number / u64::from(links.max(1));
    Size { bytes: share(progress.bytes_moved), items: share(progress.items_done) }
}

fn link_of(pair: &Pair) -> Link {
    let source = end_of(&pair.source);
    let destination = pair.destination.as_deref().map_or_else(|| source.clone(), end_of);
    Link { source, destination }
}

fn end_of(location: &str) -> String {
    match Location::parse_document(location) {
        Ok(location) => location.node().map_or_else(|| location.place_name(), NodeAddress::known_as),
        Err(_) => "nowhere".to_owned(),
    }
}

/// Why there is no order.
#[derive(Debug)]
pub(super) enum NoOrder {
    /// The ledger did not answer: try again.
    Ledger(LedgerError),
    /// The task fails.
    Failure(Box<TaskFailure>),
}

impl From<LedgerError> for NoOrder {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

/// What can be in the way of a request when it is looked at again.
enum Lookup {
    Ledger(LedgerError),
    Fault(RequestFault),
}

impl From<RequestFault> for Lookup {
    fn from(fault: RequestFault) -> Self {
        Self::Fault(fault)
    }
}

/// Makes orders.
pub(super) struct Orders {
    pub ledger: Arc<dyn Ledger>,
    pub seal: Arc<dyn Unseal>,
    pub clock: Arc<dyn Clock>,
    pub tasks: PathBuf,
    /// Signs receipts.
    pub receipt_key: Secret,
    /// The user who needs no row: whoever runs the service.
    pub service_owner: String,
}

/// Who submitted a task, as far as their rights matter here.
struct Caller {
    name: String,
    is_admin: bool,
}

/// What a task does at one of its ends.
struct Use<'a> {
    task: &'a str,
    side: Side,
    rights: Rights,
    now: Moment,
    /// What the task's token is for: nothing else below the endpoint's root is reached, by no link either.
    within: Option<&'a ScopePath>,
}

impl Use<'_> {
    fn changes(&self) -> bool {
        self.rights.allow(Right::Write) || self.rights.allow(Right::Delete)
    }
}

/// How long a worker's grant holds. An attempt that lasts longer ends, and the next one has another.
const GRANTED_SECONDS: u64 = 366 * 86_400;

/// What a worker shows an endpoint's node: a grant for what is below the endpoint's root and no more, so that no link
/// below leads elsewhere at the node. What is a grant itself is as narrow as it is.
fn confined(own: &Secret, base: &str, wanted: &Use<'_>) -> Result<Secret, String> {
    if claims_to_be_grant(own.reveal()) {
        return match wanted.within {
            None => Ok(own.clone()),
            Some(_) => Err("it is a grant, of which none is made for the path that the task's token is for".to_owned()),
        };
    }
    let token = Token::new(own.reveal().as_bytes())?;
    let root = ScopePath::parse(base).map_err(|error| format!("the endpoint's root: {error}"))?;
    let prefix = wanted.within.unwrap_or(&ScopePath::root()).below(&root).bytes();
    let id = *blake3::hash(wanted.task.as_bytes()).as_bytes();
    let claims = Claims {
        id: std::array::from_fn(|index| id[index]),
        rights: wanted.rights,
        prefix,
        expires: u64::try_from(wanted.now.0 / 1_000_000).unwrap_or(0).saturating_add(GRANTED_SECONDS),
        ceilings: Ceilings::default(),
    };
    let grant = GrantKey::of(&token).seal(&claims).map_err(|error| error.to_string())?;
    Ok(Secret::new(grant.reveal()))
}

impl Orders {
    /// The order of a task's next attempt. `rate` is what an endpoint's timetable allows at this hour.
    pub fn make(&self, task: &Task, fence: Fence, rate: &dyn Fn(&str) -> Option<u64>) -> Result<Order, NoOrder> {
        let caller = self.caller(&task.owner)?;
        let scope = self.scope(&task.request)?;
        let within = scope.as_ref().and_then(|scope| scope.path.as_deref()).map(ScopePath::parse).transpose();
        let within =
            within.map_err(|why| failed(ErrorCode::Usage, Side::Command, why.to_string(), "make the token anew"))?;
        let mut options = task.request.options.clone();
        let mut pairs = Vec::with_capacity(task.request.pairs.len());
        for pair in &task.request.pairs {
            let rights = match task.request.kind {
                TaskKind::Copy | TaskKind::Check => Rights::of(&[Right::Read]),
                TaskKind::Move | TaskKind::Delete => Rights::of(&[Right::Read, Right::Delete]),
            };
            let use_of =
                |side, rights| Use { task: &task.id, side, rights, now: self.clock.now(), within: within.as_ref() };
            let (source, source_endpoint) =
                self.end(&caller, &pair.source, &use_of(Side::Source, rights), rate, &mut options)?;
            let destination = match &pair.destination {
                Some(text) if task.request.kind == TaskKind::Check => {
                    let rights = Rights::of(&[Right::Read]);
                    Some(self.end(&caller, text, &use_of(Side::Destination, rights), rate, &mut options)?)
                }
                Some(text) if task.request.kind != TaskKind::Delete => {
                    // What was copied there before is compared, and a move looks what it has made.
                    let mut rights = vec![Right::Read, Right::Write];
                    rights.extend(task.request.options.deletes().then_some(Right::Delete));
                    // What the token does not allow is not kept, and counted.
                    let may = scope.as_ref().is_none_or(|scope| scope.verbs.contains(&Verb::Ownership));
                    rights.extend(may.then_some(Right::Ownership));
                    let rights = Rights::of(&rights);
                    Some(self.end(&caller, text, &use_of(Side::Destination, rights), rate, &mut options)?)
                }
                _ => None,
            };
            let (destination, destination_endpoint) = destination.unzip();
            let destination_endpoint = destination_endpoint.flatten();
            pairs.push(PairOrder { source, destination, source_endpoint, destination_endpoint });
        }
        self.check_again(task, &caller, scope)?;
        Ok(Order {
            task: task.id.clone(),
            fence,
            directory: self.tasks.join(&task.id),
            kind: task.request.kind,
            pairs,
            options,
            submitted: task.submitted,
            deadline: task.request.deadline,
            skip_source_errors: task.request.skip_source_errors,
            fail_on_quota_errors: task.request.fail_on_quota_errors,
            expect_digests: task.request.expect_digests.clone(),
            ceilings: self.ceilings_left(task)?,
            preview: task.request.preview,
            guard: task.request.guard.clone().filter(|_| task.request.deletes_at_destination()),
            receipt: task.request.receipt.then(|| self.receipt_key.clone()),
            nice: 0,
        })
    }

    /// What the token that a task came by still allows it: what it has done itself counts again.
    fn ceilings_left(&self, task: &Task) -> Result<model::Ceilings, LedgerError> {
        let ceilings = task.request.ceilings;
        let Some(token) = task.counted_token() else { return Ok(ceilings) };
        Ok(ceilings.after(&self.ledger.token_use(token)?.beyond(&task.used())))
    }

    /// Whether a task that runs over these links may go on. The next attempt says more of why it may not.
    pub fn check_going_on(&self, task: &Task, links: &[Link]) -> Result<(), NoOrder> {
        let (caller, kind) = (self.caller(&task.owner)?, task.request.kind);
        self.scope(&task.request)?;
        for Link { source, destination } in links {
            let ends = [
                (source, Side::Source, matches!(kind, TaskKind::Move | TaskKind::Delete)),
                (destination, Side::Destination, matches!(kind, TaskKind::Copy | TaskKind::Move)),
            ];
            for (end, side, changes) in ends {
                match end.strip_prefix('@') {
                    Some(name) => drop(self.usable(&caller, name, side, changes)?),
                    None => may_use_raw(&caller, end, side)?,
                }
            }
        }
        Ok(())
    }

    fn caller(&self, owner: &str) -> Result<Caller, NoOrder> {
        match self.ledger.user(owner) {
            Ok(row) if row.user.enabled && row.user.role == Role::Viewer => Err(failed(
                ErrorCode::PermissionDenied,
                Side::Command,
                format!("user {owner} is a viewer, who may not run tasks"),
                "an admin can give them another role",
            )),
            Ok(row) if row.user.enabled => {
                Ok(Caller { name: owner.to_owned(), is_admin: row.user.role == Role::Admin })
            }
            Ok(_) => Err(failed(
                ErrorCode::PermissionDenied,
                Side::Command,
                format!("user {owner} is disabled"),
                "an admin can enable them",
            )),
            Err(LedgerError::Missing) if owner == self.service_owner => {
                Ok(Caller { name: owner.to_owned(), is_admin: true })
            }
            Err(LedgerError::Missing) => Err(failed(
                ErrorCode::PermissionDenied,
                Side::Command,
                format!("there is no user {owner} any more"),
                "clone the task as another user",
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// What the token that a request came by allows; none: it came by none that narrows it. What was accepted before a
    /// token expired is carried to its end.
    fn scope(&self, request: &NewTask) -> Result<Option<Scope>, NoOrder> {
        let Some(id) = &request.token else { return Ok(None) };
        match self.ledger.token(id) {
            Ok((row, _, _)) => Ok(row.scope),
            Err(LedgerError::Missing) => {
                let why = "the token that the task was submitted with was revoked".to_owned();
                let hint = "clone the task with another token, or logged in";
                Err(failed(ErrorCode::PermissionDenied, Side::Command, why, hint))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether whoever submitted a task may still submit it: by the rules that were looked at then.
    fn check_again(&self, task: &Task, caller: &Caller, scope: Option<Scope>) -> Result<(), NoOrder> {
        let caller = identity::Caller {
            user: caller.name.clone(),
            role: if caller.is_admin { Role::Admin } else { Role::User },
            scope,
            via: KnownBy::Token,
            token: task.request.token.clone(),
            expires: None,
            runs_service: caller.name == self.service_owner,
        };
        let look_up = |name: &str| match self.ledger.endpoint(name) {
            Ok(row) => Ok(Some(row.endpoint)),
            Err(LedgerError::Missing) => Ok(None),
            Err(error) => Err(Lookup::Ledger(error)),
        };
        match check_rights(&caller, &task.request, look_up) {
            Ok(_) => Ok(()),
            Err(Lookup::Ledger(error)) => Err(error.into()),
            Err(Lookup::Fault(fault)) => {
                let why = format!("{} may not run this task any more: {fault}", caller.user);
                Err(failed(ErrorCode::PermissionDenied, Side::Command, why, "clone the task as somebody who may"))
            }
        }
    }

    fn end(
        &self,
        caller: &Caller,
        text: &str,
        wanted: &Use<'_>,
        rate: &dyn Fn(&str) -> Option<u64>,
        options: &mut TaskOptions,
    ) -> Result<(EndOrder, Option<EndpointRoot>), NoOrder> {
        let side = wanted.side;
        let location = Location::parse_document(text)
            .map_err(|why| failed(ErrorCode::Usage, side, why, "clone the task with another location"))?;
        if let Location::Endpoint { name, path } = &location {
            let (end, root) = self.endpoint(caller, name, path, wanted, rate, options)?;
            return Ok((end, Some(root)));
        }
        may_use_raw(caller, text, side)?;
        let ownership = wanted.rights.allow(Right::Ownership);
        Ok((EndOrder { ownership, ..EndOrder::at_location(location) }, None))
    }

    /// An endpoint that a caller may use so, and whether it is an admin's.
    fn usable(&self, caller: &Caller, name: &str, side: Side, changes: bool) -> Result<(EndpointRow, bool), NoOrder> {
        let missing = || {
            let why = format!("there is no endpoint {name}");
            failed(ErrorCode::NotFound, side, why, "add the endpoint, or clone the task with another one")
        };
        let row = match self.ledger.endpoint(name) {
            Err(LedgerError::Missing) => return Err(missing()),
            answer => answer?,
        };
        let endpoint = &row.endpoint;
        let may_use =
            endpoint.owner == caller.name || endpoint.users.iter().any(|user| user == "*" || *user == caller.name);
        if !may_use && !caller.is_admin {
            // As if it were not there: who has no right to it does not learn that it exists.
            return Err(missing());
        }
        if endpoint.read_only && changes {
            let why = format!("endpoint {name} is read-only");
            return Err(failed(ErrorCode::NodeReadOnly, side, why, "whoever owns the endpoint can allow changes"));
        }
        // Whoever added it was let in by an admin's right, or only to other hosts.
        let is_admins = match self.caller(&endpoint.owner) {
            Ok(owner) => owner.is_admin,
            Err(NoOrder::Failure(_)) => false,
            Err(error) => return Err(error),
        };
        if !is_admins && endpoint.location.is_of_service() {
            let hint = "an admin can take it over: carrack endpoint edit";
            return Err(failed(ErrorCode::PermissionDenied, side, endpoint.why_closed(), hint));
        }
        Ok((row, is_admins))
    }

    fn endpoint(
        &self,
        caller: &Caller,
        name: &str,
        path: &[u8],
        wanted: &Use<'_>,
        rate: &dyn Fn(&str) -> Option<u64>,
        options: &mut TaskOptions,
    ) -> Result<(EndOrder, EndpointRoot), NoOrder> {
        let side = wanted.side;
        let (row, is_admins) = self.usable(caller, name, side, wanted.changes())?;
        let EndpointRow { endpoint, sealed_token } = row;
        let ownership = endpoint.ownership && wanted.rights.allow(Right::Ownership);
        let rights = if ownership { wanted.rights } else { wanted.rights.without(Right::Ownership) };
        let wanted = &Use { rights, ..*wanted };
        if climbs(path) {
            let why = format!("a path at endpoint {name} may have no component ..");
            return Err(failed(ErrorCode::OutsideRoot, side, why, "write the path without .."));
        }
        let streams = least(options.streams.and_then(Streams::fixed), endpoint.limits.streams);
        options.streams = streams.map(Streams::Fixed).or(options.streams);
        let bytes = options.rate_limit.and_then(RateBound::bytes);
        let bytes = least(bytes, rate(name).filter(|&rate| rate > 0));
        options.rate_limit = bytes.map(RateBound::new).or(options.rate_limit);
        options.verify = options.verify.or(endpoint.defaults.verify);
        options.encrypt = options.encrypt.or(endpoint.defaults.encrypt);
        // What needs no token is not kept from anybody by one that cannot be opened.
        let token = endpoint.location.node_path().zip(sealed_token).map(|(base, sealed)| {
            self.seal.open(name, &sealed).and_then(|own| confined(&own, base, wanted)).map_err(|why| {
                let why = format!("the token of endpoint {name} cannot be used: {why}");
                failed(ErrorCode::AuthenticationFailed, side, why, "set the endpoint's token again")
            })
        });
        let token = token.transpose()?;
        let root = endpoint.location.location().map_err(|why| {
            let why = format!("endpoint {name} is nowhere: {why}");
            failed(ErrorCode::Usage, side, why, "say where it is: carrack endpoint edit")
        })?;
        let called = EndpointRoot::of(name, &root);
        let end = EndOrder::at_endpoint(root, path, endpoint.read_only, token);
        let within = wanted.within.map(ScopePath::bytes);
        Ok((EndOrder { within, ownership, far_only: !is_admins, ..end }, called))
    }
}

fn may_use_raw(caller: &Caller, location: &str, side: Side) -> Result<(), NoOrder> {
    if caller.is_admin {
        return Ok(());
    }
    let why = format!("only an admin may use a location that names no endpoint: {location}");
    Err(failed(ErrorCode::PermissionDenied, side, why, "add an endpoint, and write @NAME:/path"))
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Whether a component is `..`, also written with `%2e`.
fn climbs(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|component| component == b"..")
}

fn failed(code: ErrorCode, side: Side, why: String, hint: &str) -> NoOrder {
    let (code, side) = (code.name().to_owned(), side.name().to_owned());
    let hints = vec![hint.to_owned()];
    NoOrder::Failure(Box::new(TaskFailure { code, side, endpoint: None, why, retryable: false, hints }))
}

#[cfg(test)]
#[path = "orders_tests.rs"]
mod tests;
