//! The route that hands out grants: who has a right to an endpoint works at its node by themselves, for a while, and
//! never sees the node's own token.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use carrack_core::credential::Token;
use carrack_core::grant::{self, Claims, GrantId, GrantKey, Right, Rights};

use super::Api;
use super::admit::Known;
use super::extract::{Body, PathOf};
use super::problem::{ApiError, Done};
use crate::identity::digest::random;
use crate::identity::{Caller, Object, ScopePath, ScopePathError};
use crate::ledger::EndpointRow;
use crate::model::{EndpointLocation, MadeGrant, NewGrant, Problem, Scope, Secret, Verb};

const SECONDS: u64 = 3600;
const SECONDS_MAX: u64 = 86_400;

/// Makes a token for one path of an endpoint's node. It allows what was asked for and what the caller may do, and ends
/// by itself.
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
        let seconds = new.seconds.unwrap_or(SECONDS);
        if !(1..=SECONDS_MAX).contains(&seconds) {
            return Err(ApiError::malformed(format!("seconds: 1 to {SECONDS_MAX}")));
        }
        // First what does not depend on the endpoint: whether there is one must not show in the answer.
        for verb in &new.verbs {
            api.check(caller, *verb, Object::Nothing)?;
        }
        let row = api.ledger.endpoint(&name)?;
        for verb in &new.verbs {
            api.check(caller, *verb, Object::Endpoint { endpoint: &row.endpoint, path: Some(&path) })?;
        }
        make(api, caller, &row, &path, rights, seconds)
    });
    Ok((StatusCode::CREATED, Json(made.await?)).into_response())
}

fn rights(verbs: &[Verb]) -> Done<Rights> {
    let right = |verb: &Verb| match verb {
        Verb::Read => Ok(Right::Read),
        Verb::Write => Ok(Right::Write),
        Verb::Delete => Ok(Right::Delete),
        Verb::Tasks | Verb::View | Verb::Metrics | Verb::Admin => {
            Err(ApiError::malformed("verbs: a node knows read, write and delete"))
        }
    };
    let rights = verbs.iter().map(right).collect::<Done<Vec<_>>>()?;
    if rights.is_empty() {
        return Err(ApiError::malformed("verbs: at least one"));
    }
    Ok(Rights::of(&rights))
}

fn make(
    api: &Api,
    caller: &Caller,
    row: &EndpointRow,
    path: &ScopePath,
    rights: Rights,
    seconds: u64,
) -> Done<MadeGrant> {
    let name = &row.endpoint.name;
    let EndpointLocation::Node { host, port, fingerprint, path: root } = &row.endpoint.location else {
        let error = ApiError::conflict(format!("@{name} is no node: only nodes take grants"));
        return Err(error.hint("submit a task, which the service carries out"));
    };
    let Some(sealed) = &row.sealed_token else {
        let error = ApiError::conflict(format!("the service has no token of the node of @{name}"));
        return Err(error.hint("give the endpoint the node's token"));
    };
    let own = api.seal.unseal(name, sealed).map_err(|error| ApiError::conflict(error.to_string()))?;
    let own = Token::new(own.reveal().as_bytes()).map_err(ApiError::internal)?;
    let wrong = |error: ScopePathError| ApiError::internal(format!("@{name}: its path: {error}"));
    let root = ScopePath::parse(root).map_err(wrong)?;
    let scope = caller.scope.as_ref();
    // What an administrator has chosen, and not what was asked for: nobody can have put a link in its way.
    let allowed = scope.and_then(|scope| scope.path.as_deref()).map(ScopePath::parse).transpose().map_err(wrong)?;
    let prefix = allowed.unwrap_or(ScopePath::root()).below(&root);
    let expires = api.now().after(Duration::from_secs(seconds));
    let expires = caller.expires.map_or(expires, |ends| ends.min(expires));
    let claims = Claims {
        id: id(caller)?,
        rights,
        prefix: prefix.bytes(),
        expires: u64::try_from(expires.0 / 1_000_000).unwrap_or(0),
        ceilings: scope.map_or_else(grant::Ceilings::default, ceilings),
    };
    let token = GrantKey::of(&own).seal(&claims).map_err(|error| ApiError::conflict(error.to_string()))?;
    tracing::info!(
        target: "carrack::audit",
        user = %caller.user, endpoint = %name, path = %path, rights = ?rights, expires = claims.expires,
        id = data_encoding::HEXLOWER.encode(&claims.id), "a grant was made"
    );
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let pin = fingerprint.as_ref().map(|pin| format!("#sha256:{pin}")).unwrap_or_default();
    let location = format!("carrack://{host}:{port}{}{pin}", path.below(&root));
    Ok(MadeGrant { location, token: Secret::new(token.reveal()), expires })
}

/// All grants by one token of the service have one number: the node counts them together, so that many are no more than
/// one.
fn id(caller: &Caller) -> Done<GrantId> {
    let Some(token) = &caller.token else { return random().map_err(ApiError::internal) };
    let hash = blake3::hash(token.as_bytes());
    Ok(std::array::from_fn(|index| hash.as_bytes()[index]))
}

fn ceilings(scope: &Scope) -> grant::Ceilings {
    let of = scope.ceilings;
    grant::Ceilings { entries: of.entries, bytes: of.bytes, deletions: of.deletions, run_seconds: of.run_seconds }
}
