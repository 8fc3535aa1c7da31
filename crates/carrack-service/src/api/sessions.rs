//! Routes of what lets a user in: their own password, login links, and an end to all their sessions.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::caller::{Known, Peer};
use super::extract::{Body, PathOf};
use super::problem::{ApiError, Done};
use super::{Api, login};
use crate::identity::Object;
use crate::ledger::{LedgerError, UserChange};
use crate::model::{KnownBy, Login, LoginLink, PasswordChange, Problem, ProblemCode, Verb};

/// Changes the caller's own password. All their sessions and links end; whoever is in a session gets a new one.
#[utoipa::path(
    post, path = "/password", tag = "login", request_body = PasswordChange,
    responses(
        (status = 200, description = "The session that takes the place of the caller's.", body = Login),
        (status = 204, description = "It is changed; the caller is in no session."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn change_password(
    State(api): State<Arc<Api>>,
    known: Known,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Body(change): Body<PasswordChange>,
) -> Done<Response> {
    let address = peer.and_then(|Extension(peer)| peer.address());
    let caller = Arc::clone(&known.caller);
    let before = api.run(move |api| {
        api.check(&caller, Verb::Admin, Object::Tokens { user: &caller.user })?;
        api.check_logins(&caller)?;
        match api.ledger.user(&caller.user) {
            Ok(row) => Ok(row.password),
            Err(LedgerError::Missing) => Err(ApiError::conflict("the account is no user of the service")),
            Err(error) => Err(error.into()),
        }
    });
    let (name, before) = (known.caller.user.clone(), before.await?);
    // Whoever finds a session open does not take it over for good.
    if before.is_some() && known.caller.via != KnownBy::Socket {
        let old = change.old.ok_or_else(|| ApiError::malformed("old: the password until now is needed"))?;
        if login::proved(&api, &name, name.clone(), old, address).await?.is_none() {
            let detail = "the password until now is another one";
            return Err(ApiError::new(StatusCode::FORBIDDEN, ProblemCode::WrongLogin, detail));
        }
    }
    let password = api.hash(Some(change.new)).await?;
    let changed = api.run(move |api| {
        // An admin may have given them another one meanwhile, to shut out whoever knows the old one.
        let change = UserChange { password: Some(password), password_was: Some(before), ..UserChange::default() };
        api.links.forget(&name);
        // A session ends with its password; tokens, which a user has made on purpose, stay.
        let (row, ended) = api.ledger.change_user(&name, &change)?;
        api.revoke_grants_of_sessions(&ended)?;
        api.end_file_workers_of_logins(&name);
        tracing::info!(target: "carrack::audit", user = %name, from = ?address, "password changed");
        Ok(row.user)
    });
    let user = changed.await?;
    if known.caller.via != KnownBy::Session || !user.enabled {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    login::begin(&api, user, known.csrf.is_some(), address, login::agent_of(&headers)).await
}

/// Makes a link that logs a user in once, within ten minutes: oneself, or anybody for admins.
#[utoipa::path(
    post, path = "/users/{name}/links", tag = "users", params(("name" = String, Path, description = "The user.")),
    responses(
        (status = 201, description = "The link. This answer is the only one that shows it.", body = LoginLink),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add_link(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
) -> Done<Response> {
    let made = api.run(move |api| {
        api.check(&known.caller, Verb::Admin, Object::Tokens { user: &name })?;
        api.check_logins(&known.caller)?;
        if !api.ledger.user(&name)?.user.enabled {
            return Err(ApiError::conflict("the user is disabled: no link would let them in"));
        }
        let link = api.login_link(&name).map_err(ApiError::internal)?;
        tracing::info!(target: "carrack::audit", by = %known.caller.user, user = %name, "login link made");
        Ok(link)
    });
    Ok((StatusCode::CREATED, Json(made.await?)).into_response())
}

/// Ends all sessions and links of a user: one's own, or anybody's for admins. Tokens stay.
#[utoipa::path(
    delete, path = "/users/{name}/sessions", tag = "users", params(("name" = String, Path, description = "The user.")),
    responses(
        (status = 204, description = "None of them opens anything any more."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn end(State(api): State<Arc<Api>>, known: Known, PathOf(name): PathOf<String>) -> Done<StatusCode> {
    let ended = api.run(move |api| {
        api.check(&known.caller, Verb::Admin, Object::Tokens { user: &name })?;
        api.ledger.user(&name)?;
        api.links.forget(&name);
        let ended = api.ledger.remove_sessions(&name)?;
        api.revoke_grants_of_sessions(&ended)?;
        api.end_file_workers_of_logins(&name);
        let count = ended.len();
        tracing::info!(target: "carrack::audit", by = %known.caller.user, user = %name, count, "sessions ended");
        Ok(StatusCode::NO_CONTENT)
    });
    ended.await
}
