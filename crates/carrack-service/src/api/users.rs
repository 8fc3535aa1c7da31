//! Routes of users. Only admins manage them; everybody sees themselves.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::caller::Known;
use super::extract::{Body, PathOf};
use super::problem::{ApiError, Done};
use super::{Api, LOCAL_USER};
use crate::identity::{Object, hash_password, name_fault};
use crate::ledger::{UserChange, UserRow};
use crate::model::{Listed, NewUser, Problem, ProblemCode, Role, Secret, User, UserUpdate, Verb};

const PASSWORD_MIN: usize = 10;
const PASSWORD_MAX: usize = 1024;

fn check_password(password: &Secret) -> Done<()> {
    let length = password.reveal().chars().count();
    if !(PASSWORD_MIN..=PASSWORD_MAX).contains(&length) {
        return Err(ApiError::malformed(format!("a password has {PASSWORD_MIN} to {PASSWORD_MAX} characters")));
    }
    Ok(())
}

/// Lists all users, by name.
#[utoipa::path(
    get, path = "/users", tag = "users",
    responses(
        (status = 200, description = "All users.", body = Listed<User>),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(State(api): State<Arc<Api>>, known: Known) -> Done<Json<Listed<User>>> {
    let listed = api.run(move |api| {
        api.check(&known.caller, Verb::Admin, Object::Service)?;
        Ok(Listed { items: api.ledger.users()?, next: None })
    });
    listed.await.map(Json)
}

/// Adds a user.
#[utoipa::path(
    post, path = "/users", tag = "users", request_body = NewUser,
    responses(
        (status = 201, description = "The user.", body = User),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add(State(api): State<Arc<Api>>, known: Known, Body(new): Body<NewUser>) -> Done<Response> {
    let caller = Arc::clone(&known.caller);
    let may = api.run(move |api| {
        api.check(&caller, Verb::Admin, Object::Service)?;
        api.check_logins(&caller)
    });
    may.await?;
    if let Some(fault) = name_fault(&new.name, "-_.@") {
        return Err(ApiError::malformed(format!("name: {fault}")));
    }
    let password = api.hash(new.password).await?;
    let added = api.run(move |api| {
        let user = User { name: new.name, role: new.role, account: new.account, enabled: true, added: api.now() };
        known.noted.about(&user.name);
        api.ledger.add_user(&UserRow { user: user.clone(), password })?;
        tracing::info!(target: "carrack::audit", by = %known.caller.user, user = %user.name, role = user.role.name(), "user added");
        Ok(user)
    });
    let user = added.await?;
    Ok((StatusCode::CREATED, Json(user)).into_response())
}

impl Api {
    /// A password's hash, with as many at work at once as there may be.
    pub(super) async fn hash(self: &Arc<Self>, password: Option<Secret>) -> Done<Option<String>> {
        let Some(password) = password else { return Ok(None) };
        check_password(&password)?;
        let _place = self.passwords.acquire().await.map_err(ApiError::internal)?;
        self.run(move |_| hash_password(password.reveal()).map(Some).map_err(ApiError::internal)).await
    }
}

/// Shows a user: oneself, or anybody for admins.
#[utoipa::path(
    get, path = "/users/{name}", tag = "users", params(("name" = String, Path, description = "The user.")),
    responses(
        (status = 200, description = "The user.", body = User),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(State(api): State<Arc<Api>>, known: Known, PathOf(name): PathOf<String>) -> Done<Json<User>> {
    let shown = api.run(move |api| {
        api.check(&known.caller, Verb::View, Object::Nothing)?;
        api.check(&known.caller, Verb::View, Object::Row { owner: &name, places: &[] })?;
        Ok(api.ledger.user(&name)?.user)
    });
    shown.await.map(Json)
}

/// Changes a user. Whoever is disabled loses sessions, tokens stop working, and their tasks are cancelled.
#[utoipa::path(
    patch, path = "/users/{name}", tag = "users", params(("name" = String, Path, description = "The user.")),
    request_body = UserUpdate,
    responses(
        (status = 200, description = "The user as it is now.", body = User),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn update(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    Body(update): Body<UserUpdate>,
) -> Done<Json<User>> {
    let caller = Arc::clone(&known.caller);
    // Whoever may do less than an admin can shut somebody out, and no more.
    let only_shuts_out =
        matches!(update, UserUpdate { role: None, account: None, enabled: None | Some(false), password: None });
    let may = api.run(move |api| {
        api.check(&caller, Verb::Admin, Object::Service)?;
        if only_shuts_out { Ok(()) } else { api.check_logins(&caller) }
    });
    may.await?;
    let password = match update.password {
        None => None,
        Some(password) => Some(api.hash(password).await?),
    };
    let changed = api.run(move |api| {
        let is_shut_out = update.enabled == Some(false) || update.role.is_some_and(|role| role != Role::Admin);
        if name == LOCAL_USER && is_shut_out {
            let detail = "the account that runs the service stays an admin of it";
            return Err(ApiError::new(StatusCode::CONFLICT, ProblemCode::Conflict, detail));
        }
        if password.is_some() {
            api.links.forget(&name);
        }
        let (role, account, enabled) = (update.role, update.account, update.enabled);
        let change = UserChange { role, account, enabled, password, password_was: None };
        let (row, ended) = api.ledger.change_user(&name, &change)?;
        api.revoke_grants_of_sessions(&ended)?;
        tracing::info!(
            target: "carrack::audit",
            by = %known.caller.user, user = %name, role = row.user.role.name(), enabled = row.user.enabled, "user changed"
        );
        // What they may do, and where their endpoints may lead, is looked at anew.
        api.files.end_where("the user was changed", |key| key.user == name || key.owner == name);
        api.set_grants_of_user(&name, row.user.enabled && row.user.role != Role::Viewer)?;
        if !row.user.enabled {
            api.links.forget(&name);
            super::tokens::cancel_where(api, &known.caller, "its owner may not come in any more", |task| task.owner == name)?;
        }
        Ok(row.user)
    });
    changed.await.map(Json)
}
