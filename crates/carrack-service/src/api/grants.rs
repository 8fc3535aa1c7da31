//! The route that hands out grants: who has a right to an endpoint works at its node by themselves, for a while, and
//! never sees the node's own token.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use carrack_core::credential::Token;
use carrack_core::grant::{self, Claims, GrantId, GrantKey, Right, Rights, claims_to_be_grant};
use carrack_core::pin::format_pin;

use super::Api;
use super::caller::Known;
use super::extract::{Body, PathOf};
use super::problem::{ApiError, Done};
use crate::clock::Moment;
use crate::identity::{Caller, Object, ScopePath, ScopePathError};
use crate::ledger::{EndpointRow, LedgerError};
use crate::model::{Endpoint, EndpointLocation, MadeGrant, NewGrant, Problem, Secret, Verb, percent};

/// How long a grant holds at most: another node cannot be told that a right has ended.
const SECONDS_MAX: u64 = 600;

/// Makes a token for one path of an endpoint's node. It allows what was asked for and what the caller may do, and ends
/// by itself. For a directory of the service's host, the node beside the service takes it. For a host behind ssh only
/// the place is told: what may be done there is up to the caller's own ssh.
#[utoipa::path(
    post, path = "/endpoints/{name}/grants", tag = "endpoints",
    params(("name" = String, Path, description = "The endpoint.")), request_body = NewGrant,
    responses(
        (status = 201, description = "The token, and the place that it is for.", body = MadeGrant),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    Body(new): Body<NewGrant>,
) -> Done<Response> {
    let made = api.run(move |api| {
        let caller = &*known.caller;
        let path = ScopePath::parse(&new.path).map_err(|error| ApiError::malformed(format!("path: {error}")))?;
        let rights = rights(&new.verbs)?;
        let seconds = new.seconds.unwrap_or(SECONDS_MAX);
        if !(1..=SECONDS_MAX).contains(&seconds) {
            let hint = "ask again before it ends: sessions with the earlier one go on";
            return Err(ApiError::malformed(format!("seconds: 1 to {SECONDS_MAX}")).hint(hint));
        }
        // First what does not depend on the endpoint: whether there is one must not show in the answer.
        for verb in &new.verbs {
            api.check(caller, *verb, Object::Nothing)?;
        }
        let row = api.ledger.endpoint(&name)?;
        for verb in &new.verbs {
            api.check(caller, *verb, Object::Endpoint { endpoint: &row.endpoint, path: Some(&path) })?;
        }
        api.check_open(&row.endpoint)?;
        let expires = api.now().after(Duration::from_secs(seconds));
        let expires = caller.expires.map_or(expires, |ends| ends.min(expires));
        let ceilings = ceilings(caller);
        make(api, &row, &Wanted { caller, endpoint: &row.endpoint, path, rights, expires, ceilings })
    });
    Ok((StatusCode::CREATED, Json(made.await?)).into_response())
}

fn rights(verbs: &[Verb]) -> Done<Rights> {
    let right = |verb: &Verb| match verb {
        Verb::Read => Ok(Right::Read),
        Verb::Write => Ok(Right::Write),
        Verb::Delete => Ok(Right::Delete),
        Verb::Ownership => Ok(Right::Ownership),
        Verb::Tasks | Verb::View | Verb::Metrics | Verb::Admin => {
            Err(ApiError::malformed("verbs: a node knows read, write, delete and ownership"))
        }
    };
    let rights = verbs.iter().map(right).collect::<Done<Vec<_>>>()?;
    if rights.is_empty() {
        return Err(ApiError::malformed("verbs: at least one"));
    }
    Ok(Rights::of(&rights))
}

/// What a grant is made for.
struct Wanted<'a> {
    caller: &'a Caller,
    endpoint: &'a Endpoint,
    path: ScopePath,
    rights: Rights,
    expires: Moment,
    /// How much the caller's token allows, as far as the node is to count it.
    ceilings: grant::Ceilings,
}

fn make(api: &Api, row: &EndpointRow, wanted: &Wanted<'_>) -> Done<MadeGrant> {
    let name = &row.endpoint.name;
    match &row.endpoint.location {
        EndpointLocation::Node { host, port, fingerprint, path } => {
            let root = ScopePath::parse(path).map_err(|error| wrong_path(name, &error))?;
            let own = own_token(api, row)?;
            let token = seal(wanted, &GrantKey::of(&own), &root)?;
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            let pin = fingerprint.as_ref().map(|pin| format!("#sha256:{pin}")).unwrap_or_default();
            let location = format!("carrack://{host}:{port}{}{pin}", wanted.path.below(&root));
            Ok(MadeGrant { location, token: Some(token), expires: wanted.expires, at_service: false })
        }
        EndpointLocation::Local { root } => on_this_host(api, root, wanted),
        EndpointLocation::Ssh { user, host, path } => {
            // What may be done there is up to the account that ssh comes to: nothing of the service opens it.
            let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            // As `Location::document` tells a login directory from a path that begins with a tilde.
            let base = match &path[..] {
                "~" => "/~".to_owned(),
                tilde if tilde.starts_with("~/") => format!("/{tilde}"),
                absolute if absolute == "/~" || absolute.starts_with("/~/") => absolute.replacen('~', "%7E", 1),
                absolute if absolute.starts_with('/') => absolute.to_owned(),
                below => format!("/~/{below}"),
            };
            let location = format!("ssh://{user}{host}{}{}", base.trim_end_matches('/'), wanted.path);
            Ok(MadeGrant { location, token: None, expires: wanted.expires, at_service: false })
        }
    }
}

/// The token of an endpoint's node, with which grants can be made.
fn own_token(api: &Api, row: &EndpointRow) -> Done<Token> {
    let name = &row.endpoint.name;
    let hint = "give the endpoint the node's token";
    let Some(sealed) = &row.sealed_token else {
        let error = ApiError::conflict(format!("the service has no token of the node of @{name}"));
        return Err(error.hint(hint));
    };
    let own = api.seal.unseal(name, sealed).map_err(|error| ApiError::conflict(error.to_string()))?;
    if claims_to_be_grant(own.reveal()) {
        let why = format!("what the service has for the node of @{name} is a grant, and no grant is made of a grant");
        return Err(ApiError::conflict(why).hint(hint));
    }
    Token::new(own.reveal().as_bytes()).map_err(ApiError::internal)
}

/// What a file worker of this caller shows the node of an endpoint: a grant below the endpoint's root and the caller's
/// scope, with these rights. What the endpoint has is shown itself where it is a grant.
pub(super) fn of_worker(
    api: &Api,
    caller: &Caller,
    row: &EndpointRow,
    root: &str,
    verbs: &[Verb],
    expires: Moment,
) -> Done<Secret> {
    let name = &row.endpoint.name;
    if let Some(sealed) = &row.sealed_token {
        let own = api.seal.unseal(name, sealed).map_err(|error| ApiError::conflict(error.to_string()))?;
        if claims_to_be_grant(own.reveal()) {
            // No grant is made of a grant: within it a link could lead out of the path that the caller's token is for.
            if caller.scope.as_ref().is_some_and(|scope| scope.path.is_some()) {
                let why = format!(
                    "what the service has for the node of @{name} is a grant, and a token for a path needs one of its own"
                );
                return Err(ApiError::conflict(why).hint("give the endpoint the node's token"));
            }
            return Ok(own);
        }
    }
    let root = ScopePath::parse(root).map_err(|error| wrong_path(name, &error))?;
    let (endpoint, path, rights) = (&row.endpoint, ScopePath::root(), rights(verbs)?);
    // The service itself ends a request that takes too long; a node would count the time of all of them together.
    let ceilings = grant::Ceilings { run_seconds: None, ..ceilings(caller) };
    let wanted = Wanted { caller, endpoint, path, rights, expires, ceilings };
    seal(&wanted, &GrantKey::of(&own_token(api, row)?), &root)
}

/// A grant for a directory of the service's host: the node beside the service takes it.
fn on_this_host(api: &Api, root: &str, wanted: &Wanted<'_>) -> Done<MadeGrant> {
    let name = &wanted.endpoint.name;
    let Some(node) = api.node.get() else {
        let error = ApiError::conflict(format!(
            "@{name} is a directory of the service's host, and no node beside the service asks for a token"
        ));
        return Err(error.hint("submit a task, which the service carries out"));
    };
    let root = ScopePath::parse(root).map_err(|error| wrong_path(name, &error))?;
    // A grant's path leads through no link: where the administrator's links lead is looked up here.
    let path = Path::new("/").join(OsString::from_vec(root.bytes()));
    let path = path.canonicalize().map_err(|error| {
        ApiError::conflict(format!("the root of @{name}: {error}")).hint("carrack endpoint test tells more")
    })?;
    let components = path.as_os_str().as_bytes().split(|byte| *byte == b'/').map(percent).collect::<Vec<_>>();
    let root = ScopePath::parse(&components.join("/")).map_err(|error| wrong_path(name, &error))?;
    let token = seal(wanted, &api.host_key, &root)?;
    let host = match node.address.ip() {
        ip if ip.is_unspecified() => "localhost".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        IpAddr::V4(ip) => ip.to_string(),
    };
    let pin = format_pin(&node.fingerprint);
    let location = format!("carrack://{host}:{}{}#{pin}", node.address.port(), wanted.path.below(&root));
    Ok(MadeGrant { location, token: Some(token), expires: wanted.expires, at_service: true })
}

fn wrong_path(name: &str, error: &ScopePathError) -> ApiError {
    ApiError::internal(format!("@{name}: its path: {error}"))
}

/// The token, for what is below this root of a node.
fn seal(wanted: &Wanted<'_>, key: &GrantKey, root: &ScopePath) -> Done<Secret> {
    let (caller, name) = (wanted.caller, &wanted.endpoint.name);
    let scope = caller.scope.as_ref();
    // What an administrator has chosen, and not what was asked for: nobody can have put a link in its way.
    let allowed = scope.and_then(|scope| scope.path.as_deref()).map(ScopePath::parse).transpose();
    let allowed = allowed.map_err(|error| wrong_path(name, &error))?;
    let claims = Claims {
        id: caller.token.as_ref().map_or_else(|| id_of_user(&caller.user), |token| id_of_token(token)),
        rights: wanted.rights,
        prefix: allowed.unwrap_or(ScopePath::root()).below(root).bytes(),
        expires: seconds_of(wanted.expires),
        ceilings: wanted.ceilings,
    };
    let token = key.seal(&claims).map_err(|error| ApiError::conflict(error.to_string()))?;
    tracing::info!(
        target: "carrack::audit",
        user = %caller.user, endpoint = %name, path = %wanted.path, rights = ?wanted.rights, expires = claims.expires,
        id = data_encoding::HEXLOWER.encode(&claims.id), "a grant was made"
    );
    Ok(Secret::new(token.reveal()))
}

fn seconds_of(moment: Moment) -> u64 {
    u64::try_from(moment.0 / 1_000_000).unwrap_or(0)
}

/// All grants by one token of the service have one number: the node counts them together, so that many are no more than
/// one, and they are revoked together.
fn id_of_token(token: &str) -> GrantId {
    let hash = blake3::hash(token.as_bytes());
    std::array::from_fn(|index| hash.as_bytes()[index])
}

/// Those of a user who shows no token, as by the socket. A token's identifier holds no space.
fn id_of_user(user: &str) -> GrantId {
    id_of_token(&format!("user {user}"))
}

impl Api {
    /// Has the node beside the service end what a token's grants have begun, and take none of them any more.
    pub(super) fn revoke_grants_of_token(&self, token: &str) -> Result<(), LedgerError> {
        self.revoke(id_of_token(token))
    }

    /// The same of sessions that have ended.
    pub(super) fn revoke_grants_of_sessions(&self, ended: &[String]) -> Result<(), LedgerError> {
        ended.iter().try_for_each(|session| self.revoke_grants_of_token(session))
    }

    /// The same of all grants of a user, or takes it back.
    pub(super) fn set_grants_of_user(&self, user: &str, may: bool) -> Result<(), LedgerError> {
        let tokens = self.ledger.tokens(user)?.into_iter().map(|row| id_of_token(&row.id));
        for id in tokens.chain([id_of_user(user)]) {
            if may {
                self.ledger.restore_grants(&id)?;
                self.revoked.restore(&id);
            } else {
                self.revoke(id)?;
            }
        }
        Ok(())
    }

    /// The node is told first: what the ledger does not take is still refused as long as the service runs.
    fn revoke(&self, id: GrantId) -> Result<(), LedgerError> {
        let now = self.now();
        let until = now.after(Duration::from_secs(SECONDS_MAX + 1));
        self.revoked.revoke(id, seconds_of(until));
        self.ledger.revoke_grants(&id, until, now)
    }

    /// Has the node know what was revoked before the service was started.
    pub(super) fn recall_revoked_grants(&self) -> Result<(), LedgerError> {
        for (id, until) in self.ledger.revoked_grants(self.now())? {
            self.revoked.revoke(id, seconds_of(until));
        }
        Ok(())
    }
}

fn ceilings(caller: &Caller) -> grant::Ceilings {
    let of = caller.ceilings();
    grant::Ceilings { entries: of.entries, bytes: of.bytes, deletions: of.deletions, run_seconds: of.run_seconds }
}
