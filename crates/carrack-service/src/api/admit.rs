//! Who calls: the account behind the Unix socket, or whoever a token or a session belongs to. Everything that this
//! layer does not know as open is closed until somebody is known.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::caller::{COOKIE, CSRF, Known, Peer, bearer, unauthenticated};
use super::noted::Noted;
use super::problem::{ApiError, Done};
use super::{Api, LOCAL_USER};
use crate::identity::{Caller, ShownToken};
use crate::ledger::LedgerError;
use crate::model::{KnownBy, ProblemCode, Role};

/// A token's last use is noted to the minute.
const USED_AGAIN: i64 = 60_000_000;

/// The paths that anybody may ask for: method and path, nothing below them.
const OPEN: [(Method, &str); 5] = [
    (Method::GET, "/healthz"),
    (Method::GET, "/readyz"),
    (Method::POST, "/api/v1/login"),
    (Method::HEAD, "/healthz"),
    (Method::HEAD, "/readyz"),
];

/// Whether a route answers whoever asks.
pub(super) fn is_open(method: &Method, path: &str) -> bool {
    OPEN.iter().any(|(open, at)| open == method && *at == path)
}

/// Stands before every route.
pub(super) async fn admit(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    if is_open(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    match who(&api, &parts).await {
        Ok(known) => {
            if let Some(Peer::Address { admit, .. }) = parts.extensions.get::<Peer>() {
                admit();
            }
            parts.extensions.insert(known);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(error) => error.into_response(),
    }
}

async fn who(api: &Arc<Api>, request: &Parts) -> Done<Known> {
    let headers = &request.headers;
    if headers.contains_key(header::AUTHORIZATION) {
        let token = bearer(headers).ok_or_else(unauthenticated)?;
        let caller = by_token(api, token).await?;
        return Ok(Known { caller: Arc::new(caller), csrf: None, noted: Noted::default() });
    }
    if let Some(Peer::Account(account)) = request.extensions.get::<Peer>() {
        let account = *account;
        let caller = api.run(move |api| by_account(api, account)).await?;
        return Ok(Known { caller: Arc::new(caller), csrf: None, noted: Noted::default() });
    }
    let token = cookie(headers).and_then(ShownToken::parse).ok_or_else(unauthenticated)?;
    let csrf = token.csrf().to_owned();
    let caller = by_token(api, token).await?;
    let is_change = !matches!(request.method, Method::GET | Method::HEAD);
    let proved =
        headers.get(CSRF).is_some_and(|shown| crate::identity::digest::is_same(shown.as_bytes(), csrf.as_bytes()));
    if is_change && !proved {
        let detail = "a change by a session's cookie needs its second proof, the header X-Carrack-Csrf";
        return Err(ApiError::new(StatusCode::FORBIDDEN, ProblemCode::CsrfMissing, detail));
    }
    Ok(Known { caller: Arc::new(caller), csrf: Some(csrf), noted: Noted::default() })
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
    let mut ours = all
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == COOKIE);
    // Two of them: one was planted.
    ours.next().filter(|_| ours.next().is_none()).map(|(_, value)| value)
}

async fn by_token(api: &Arc<Api>, shown: ShownToken) -> Done<Caller> {
    api.run(move |api| {
        let (row, digest, user) = match api.ledger.token(&shown.id) {
            Ok(found) => found,
            Err(LedgerError::Missing) => return Err(unauthenticated()),
            Err(error) => return Err(error.into()),
        };
        let now = api.now();
        if !shown.is(&digest) || !user.enabled || row.expires.is_some_and(|expires| expires <= now) {
            return Err(unauthenticated());
        }
        if row.used.is_none_or(|used| now.0.saturating_sub(used.0) >= USED_AGAIN) {
            // A note, no more: where it cannot be written the request goes on.
            let _ = api.ledger.token_used(&row.id, now);
        }
        Ok(Caller {
            user: user.name,
            role: user.role,
            scope: row.scope,
            via: if row.is_session { KnownBy::Session } else { KnownBy::Token },
            token: Some(row.id),
            expires: row.expires,
            runs_service: false,
        })
    })
    .await
}

/// The user that an account of this host is.
fn by_account(api: &Api, account: u32) -> Done<Caller> {
    let caller = |user: String, role, runs_service| Caller {
        user,
        role,
        scope: None,
        via: KnownBy::Socket,
        token: None,
        expires: None,
        runs_service,
    };
    let runs_service = account == api.account || account == 0;
    let found = api.ledger.user_of_account(account)?;
    match found {
        Some(row) if row.user.enabled => {
            let role = if runs_service { Role::Admin } else { row.user.role };
            Ok(caller(row.user.name, role, runs_service))
        }
        _ if runs_service => Ok(caller(LOCAL_USER.to_owned(), Role::Admin, true)),
        _ => {
            let detail = format!("the account {account} of this host is no user of the service");
            let hint = format!("an admin can make it one: carrack service user add NAME --account {account}");
            Err(ApiError::new(StatusCode::UNAUTHORIZED, ProblemCode::Unauthenticated, detail).hint(hint))
        }
    }
}
