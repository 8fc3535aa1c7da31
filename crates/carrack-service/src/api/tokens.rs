//! Routes of tokens and sessions. Revoking one ends what was submitted with it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::caller::Known;
use super::extract::{Body, PathOf, QueryOf};
use super::problem::{ApiError, Done};
use super::{Api, LOCAL_USER};
use crate::clock::Moment;
use crate::identity::{Action, Caller, NewSecret, Object, ScopePath, Verdict, is_within, may};
use crate::ledger::LedgerError;
use crate::model::{KnownBy, Listed, MadeToken, NewToken, Problem, Role, Scope, Task, TokenRow, Verb};

const LABEL_MAX: usize = 256;
/// Tokens of one user. Sessions do not count: they end by themselves.
const TOKENS_MAX: usize = 1000;

/// Whose tokens are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Of this user; oneself where it is left out.
    user: Option<String>,
}

/// Lists tokens and sessions of the caller, or of any user for admins: never the secrets.
#[utoipa::path(
    get, path = "/tokens", tag = "tokens", params(ListQuery),
    responses(
        (status = 200, description = "All of them, the latest first.", body = Listed<TokenRow>),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(query): QueryOf<ListQuery>,
) -> Done<Json<Listed<TokenRow>>> {
    let listed = api.run(move |api| {
        let user = query.user.unwrap_or_else(|| known.caller.user.clone());
        api.check(&known.caller, Verb::Admin, Object::Tokens { user: &user })?;
        Ok(Listed { items: api.ledger.tokens(&user)?, next: None })
    });
    listed.await.map(Json)
}

/// Makes a token. This answer is the only one that shows it.
#[utoipa::path(
    post, path = "/tokens", tag = "tokens", request_body = NewToken,
    responses(
        (status = 201, description = "The token.", body = MadeToken),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add(State(api): State<Arc<Api>>, known: Known, Body(new): Body<NewToken>) -> Done<Response> {
    let made = api.run(move |api| {
        let caller = &*known.caller;
        let user = new.user.unwrap_or_else(|| caller.user.clone());
        api.check(caller, Verb::Admin, Object::Tokens { user: &user })?;
        if new.label.chars().count() > LABEL_MAX || new.label.contains(char::is_control) {
            return Err(ApiError::malformed("label: at most 256 printable characters"));
        }
        let now = api.now();
        if new.expires.is_some_and(|expires| expires <= now) {
            return Err(ApiError::malformed("expires: that is over already"));
        }
        if let Some(scope) = &new.scope {
            check_scope(api, &user, scope)?;
        }
        if api.ledger.tokens(&user)?.iter().filter(|row| !row.is_session).count() >= TOKENS_MAX {
            return Err(ApiError::conflict(format!("a user has at most {TOKENS_MAX} tokens: revoke some")));
        }
        let expires = new.expires.or(caller.expires.filter(|_| caller.via == KnownBy::Token));
        if !is_no_wider(caller, &user, new.scope.as_ref(), expires) {
            return Err(api.refused(caller, Verb::Admin, "scope-wider", ApiError::forbidden("scope-wider")));
        }
        let row = TokenRow {
            id: String::new(),
            user,
            label: new.label,
            scope: new.scope,
            made: now,
            expires,
            used: None,
            is_session: false,
        };
        let made = keep(api, row)?;
        known.noted.about(&made.row.id);
        tracing::info!(target: "carrack::audit", by = %caller.user, user = %made.row.user, token = %made.row.id, "token made");
        Ok(made)
    });
    Ok((StatusCode::CREATED, Json(made.await?)).into_response())
}

/// Whether a new token allows no more, and lasts no longer, than the token that it is made with.
fn is_no_wider(caller: &Caller, user: &str, scope: Option<&Scope>, expires: Option<Moment>) -> bool {
    if caller.via != KnownBy::Token {
        return true;
    }
    let ends_before = caller.expires.is_none_or(|end| expires.is_some_and(|expires| expires <= end));
    let is_within = match (&caller.scope, scope) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(own), Some(scope)) => user == caller.user && is_within(scope, own),
    };
    // What another token does would count anew.
    ends_before && is_within && !caller.ceilings().are_counted()
}

/// Makes the secret of a token or a session, and keeps what is kept of it.
pub(super) fn keep(api: &Api, row: TokenRow) -> Done<MadeToken> {
    let secret = NewSecret::make().map_err(ApiError::internal)?;
    let row = TokenRow { id: secret.id, ..row };
    api.ledger.add_token(&row, &secret.digest)?;
    Ok(MadeToken { token: secret.token, row })
}

/// Endpoints that one token names.
const SCOPE_ENDPOINTS_MAX: usize = 100;

/// Checks what a token of this user is to allow.
fn check_scope(api: &Api, user: &str, scope: &Scope) -> Done<()> {
    let wrong = |why: String| Err(ApiError::malformed(format!("scope: {why}")));
    if scope.verbs.is_empty() {
        return wrong("a token that allows no verb is of no use".into());
    }
    if scope.endpoints.len() > SCOPE_ENDPOINTS_MAX {
        return wrong(format!("a token names at most {SCOPE_ENDPOINTS_MAX} endpoints"));
    }
    for name in &scope.endpoints {
        check_endpoint(api, user, name)?;
    }
    match (&scope.endpoints[..], &scope.path) {
        ([_], Some(path)) => ScopePath::parse(path).map(drop).or_else(|error| wrong(format!("path: {error}"))),
        (_, Some(_)) => wrong("a path is one of one endpoint".into()),
        _ => Ok(()),
    }
}

/// Refuses an endpoint that is not there, or that the token's user has no right to: from outside these are the same.
fn check_endpoint(api: &Api, user: &str, name: &str) -> Done<()> {
    let unknown = || {
        let why = format!("scope: there is no endpoint {name:?}, or {user} has no right to it");
        ApiError::malformed(why).hint("carrack endpoint list shows those that there are")
    };
    let row = match api.ledger.endpoint(name) {
        Err(LedgerError::Missing) => return Err(unknown()),
        row => row?,
    };
    let role = match api.ledger.user(user) {
        Ok(row) => row.user.role,
        // The account that runs the service has no row.
        Err(LedgerError::Missing) if user == LOCAL_USER => Role::Admin,
        Err(error) => return Err(error.into()),
    };
    let owner = Caller {
        user: user.to_owned(),
        role,
        scope: None,
        via: KnownBy::Token,
        token: None,
        expires: None,
        runs_service: false,
    };
    let object = Object::Endpoint { endpoint: &row.endpoint, path: None };
    match may(&owner, &Action { verb: Verb::View, object }).verdict {
        Verdict::Allowed => Ok(()),
        Verdict::Forbidden | Verdict::Hidden => Err(unknown()),
    }
}

/// Revokes a token, or ends a session, at once. Tasks that were submitted with the token are cancelled.
#[utoipa::path(
    delete, path = "/tokens/{id}", tag = "tokens", params(("id" = String, Path, description = "The token.")),
    responses(
        (status = 204, description = "It opens nothing any more."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn remove(State(api): State<Arc<Api>>, known: Known, PathOf(id): PathOf<String>) -> Done<StatusCode> {
    let removed = api.run(move |api| {
        // First what does not depend on the token: whether there is one must not show in the answer.
        api.check(&known.caller, Verb::Admin, Object::Tokens { user: &known.caller.user })?;
        let (row, _, _) = api.ledger.token(&id)?;
        api.check(&known.caller, Verb::Admin, Object::Tokens { user: &row.user })?;
        revoke(api, &known.caller, &row)?;
        Ok(StatusCode::NO_CONTENT)
    });
    removed.await
}

/// Removes a token, ends what its grants do at the node beside the service, and cancels what was submitted with it.
pub(super) fn revoke(api: &Api, caller: &Caller, row: &TokenRow) -> Done<()> {
    api.ledger.remove_token(&row.id)?;
    api.files.end_where("the caller's token was revoked", |key| key.token.as_ref() == Some(&row.id));
    api.revoke_grants_of_token(&row.id)?;
    tracing::info!(target: "carrack::audit", by = %caller.user, user = %row.user, token = %row.id, "token revoked");
    if !row.is_session {
        let is_of = |task: &Task| task.request.token.as_ref() == Some(&row.id);
        cancel_where(api, caller, "the token that it was submitted with was revoked", is_of)?;
    }
    Ok(())
}

/// Cancels open tasks.
pub(super) fn cancel_where(
    api: &Api,
    caller: &Caller,
    why: &str,
    which: impl Fn(&Task) -> bool,
) -> Result<(), LedgerError> {
    let mut any = false;
    for (task, _) in api.ledger.open_tasks()? {
        if !task.cancel_wanted && which(&task) {
            match api.cancel_task(caller, &task, why) {
                // It has ended meanwhile.
                Ok(_) | Err(LedgerError::Conflict(_) | LedgerError::Missing) => any = true,
                Err(error) => return Err(error),
            }
        }
    }
    if any {
        api.wrote();
    }
    Ok(())
}

/// Cancels what a revocation has left running because the service ended between the two.
pub(super) fn cancel_orphans(api: &Api) -> Result<(), LedgerError> {
    let caller = Caller {
        user: LOCAL_USER.to_owned(),
        role: Role::Admin,
        scope: None,
        via: KnownBy::Socket,
        token: None,
        expires: None,
        runs_service: true,
    };
    let mut standing: HashMap<String, bool> = HashMap::new();
    for (task, _) in api.ledger.open_tasks()? {
        if let Some(token) = task.request.token
            && !standing.contains_key(&token)
        {
            let is_there = match api.ledger.token(&token) {
                Ok((_, _, user)) => user.enabled,
                Err(LedgerError::Missing) => false,
                Err(error) => return Err(error),
            };
            standing.insert(token, is_there);
        }
    }
    let is_orphan = |task: &Task| task.request.token.as_ref().is_some_and(|token| standing.get(token) == Some(&false));
    cancel_where(api, &caller, "the token that it was submitted with was revoked", is_orphan)
}
