//! Logging in and out. A session is a token that a login has made: a row, which ends at once when it is removed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::caller::{COOKIE, Known, Peer};
use super::extract::Body;
use super::noted::Noted;
use super::problem::{ApiError, Done};
use super::shares::Holder;
use super::{Api, device, tokens};
use crate::identity::{ShownToken, network, verify_password};
use crate::ledger::LedgerError;
use crate::model::{Login, LoginRequest, Problem, ProblemCode, Secret, TokenRow, User, Whoami};

/// Of a session in a browser.
const COOKIE_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Of a session that the command line keeps.
const TOKEN_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A login that waits longer for its turn is refused: somebody floods the service.
const TURN: Duration = Duration::from_secs(5);
/// What nobody can be called, for the table of failures: all names that cannot be a user's share it.
const NOBODY: &str = "";

fn wrong_login() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, ProblemCode::WrongLogin, "name and password do not fit")
}

fn wrong_link() -> ApiError {
    let detail = "the login link is used up, or older than ten minutes";
    ApiError::new(StatusCode::UNAUTHORIZED, ProblemCode::WrongLogin, detail)
        .hint("ask an admin of the service for another, or log in with your password")
}

/// Logs in: with a name and a password, or with a link that the service has printed.
#[utoipa::path(
    post, path = "/login", tag = "login", request_body = LoginRequest, security(()),
    responses(
        (status = 200, description = "A session begins.", body = Login),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn login(
    State(api): State<Arc<Api>>,
    peer: Option<Extension<Peer>>,
    Extension(noted): Extension<Noted>,
    headers: HeaderMap,
    Body(request): Body<LoginRequest>,
) -> Done<Response> {
    let address = peer.and_then(|Extension(peer)| peer.address());
    let is_cookie = request.cookie;
    let user = match (request.user, request.password, request.link) {
        (Some(name), Some(password), None) => {
            noted.by(&name);
            let named = if crate::identity::name_fault(&name, "-_.@").is_some() { NOBODY } else { &name };
            let Some(user) = proved(&api, named, name.clone(), password, address).await? else {
                return Err(wrong_login());
            };
            user
        }
        (None, None, Some(link)) => {
            let by_link = api.run(move |api| match api.links.take(&link, api.clock.elapsed()) {
                Some(name) => Ok(Some(api.ledger.user(&name)?.user).filter(|user| user.enabled)),
                None => Ok(None),
            });
            by_link.await?.ok_or_else(wrong_link)?
        }
        _ => return Err(ApiError::malformed("a login takes a user with a password, or a link")),
    };
    noted.by(&user.name);
    let answer = begin(&api, user, is_cookie, address, agent_of(&headers)).await?;
    api.metrics.login("let in");
    Ok(answer)
}

/// Begins a session: its token in the answer, or in a cookie.
/// `agent` is what the client says of itself.
pub(super) async fn begin(
    api: &Arc<Api>,
    user: User,
    is_cookie: bool,
    address: Option<IpAddr>,
    agent: Option<String>,
) -> Done<Response> {
    let made = api.run(move |api| {
        // Sessions that are over go now.
        let now = api.now();
        for row in api.ledger.tokens(&user.name)? {
            if row.is_session && row.expires.is_some_and(|expires| expires <= now) {
                match api.ledger.remove_token(&row.id) {
                    Ok(()) | Err(LedgerError::Missing) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let row = TokenRow {
            id: String::new(),
            user: user.name.clone(),
            label: device::label(is_cookie, agent.as_deref(), address),
            scope: None,
            made: now,
            expires: Some(now.after(if is_cookie { COOKIE_LIFETIME } else { TOKEN_LIFETIME })),
            used: Some(now),
            is_session: true,
        };
        let made = tokens::keep(api, row)?;
        tracing::info!(target: "carrack::audit", user = %user.name, from = ?address, session = %made.row.id, "login");
        Ok((made, user))
    });
    let (made, user) = made.await?;
    let expires = made.row.expires.unwrap_or_default();
    let mut login = Login { user: user.name, role: user.role, expires, token: None, csrf: None };
    if !is_cookie {
        login.token = Some(made.token);
        return Ok(Json(login).into_response());
    }
    login.csrf = ShownToken::parse(made.token.reveal()).map(|token| token.csrf().to_owned());
    let cookie = cookie(made.token.reveal(), COOKIE_LIFETIME)?;
    Ok(([(header::SET_COOKIE, cookie)], Json(login)).into_response())
}

/// What a client says of itself.
pub(super) fn agent_of(headers: &HeaderMap) -> Option<String> {
    headers.get(header::USER_AGENT)?.to_str().ok().map(str::to_owned)
}

fn cookie(value: &str, lifetime: Duration) -> Done<HeaderValue> {
    let age = lifetime.as_secs();
    let text = format!("{COOKIE}={value}; Path=/; Max-Age={age}; HttpOnly; Secure; SameSite=Strict");
    let mut value = HeaderValue::from_str(&text).map_err(ApiError::internal)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The user with this password, unless too many wrong ones came from there. `named` is what failures are noted for.
pub(super) async fn proved(
    api: &Arc<Api>,
    named: &str,
    name: String,
    password: Secret,
    address: Option<IpAddr>,
) -> Done<Option<User>> {
    let now = api.clock.elapsed();
    if let Some(wait) = api.slow.wait(named, address, now) {
        api.metrics.login("slowed");
        let detail = format!("too many wrong passwords: try again in {} s", wait.as_secs() + 1);
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, ProblemCode::TooMany, detail);
        return Err(error.retry_after(wait.as_secs() + 1));
    }
    let user = by_password(api, name.clone(), password, address).await?;
    if user.is_some() {
        api.slow.succeeded(named, address, now);
    } else {
        api.slow.failed(named, address, now);
        api.metrics.login("wrong");
        tracing::warn!(target: "carrack::audit", user = ?name, from = ?address, "login refused");
    }
    Ok(user)
}

/// The user with this password; the time it takes does not tell whether there is such a user.
async fn by_password(api: &Arc<Api>, name: String, password: Secret, address: Option<IpAddr>) -> Done<Option<User>> {
    // Whoever floods the service waits behind their own logins.
    let holder = address.map_or(Holder::Stranger, |address| Holder::Network(network(address)));
    let flooded = || {
        api.metrics.login("flooded");
        let detail = "too many logins at once";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, ProblemCode::TooMany, detail).retry_after(5)
    };
    let _place = api.logins.take(&holder, 1).ok_or_else(flooded)?;
    let turn = tokio::time::timeout(TURN, api.passwords.acquire()).await.map_err(|_| flooded())?;
    let _turn = turn.map_err(ApiError::internal)?;
    let looked_at = api.run(move |api| {
        let row = match api.ledger.user(&name) {
            Ok(row) => Some(row),
            Err(LedgerError::Missing) => None,
            Err(error) => return Err(error.into()),
        };
        let kept = row.as_ref().and_then(|row| row.password.as_deref());
        let fits = verify_password(password.reveal(), kept).map_err(ApiError::internal)?;
        Ok(row.map(|row| row.user).filter(|user| fits && user.enabled))
    });
    looked_at.await
}

/// Ends the caller's session, or revokes the token that they show.
#[utoipa::path(
    post, path = "/logout", tag = "login",
    responses(
        (status = 204, description = "It opens nothing any more."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn logout(State(api): State<Arc<Api>>, known: Known) -> Done<Response> {
    let out = api.run(move |api| {
        let Some(id) = &known.caller.token else {
            return Err(ApiError::conflict("the local socket needs no login, so there is none to end"));
        };
        let (row, _, _) = api.ledger.token(id)?;
        if !row.is_session {
            return Err(ApiError::conflict("that is a token, not a login: revoke it, if it is to end"));
        }
        tokens::revoke(api, &known.caller, &row)
    });
    out.await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie("", Duration::ZERO)?)]).into_response())
}

/// Tells who the caller is.
#[utoipa::path(
    get, path = "/whoami", tag = "login",
    responses(
        (status = 200, description = "The caller.", body = Whoami),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn whoami(known: Known) -> Json<Whoami> {
    let caller = &known.caller;
    Json(Whoami {
        user: caller.user.clone(),
        role: caller.role,
        via: caller.via,
        scope: caller.scope.clone(),
        token: caller.token.clone(),
        expires: caller.expires,
        csrf: known.csrf.clone(),
        service: env!("CARGO_PKG_VERSION").to_owned(),
    })
}
