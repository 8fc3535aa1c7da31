//! The caller of a request, as handlers take it, and the connection it came by. [`super::admit`] finds out who it is.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};

use super::noted::Noted;
use super::problem::ApiError;
use crate::identity::{Caller, ShownToken};
use crate::model::ProblemCode;

/// The cookie of a session. Browsers keep the prefix's promise: set by this host alone, over TLS, for every path.
pub(super) const COOKIE: &str = "__Host-carrack";
/// The header that a change needs beside the cookie.
pub(super) const CSRF: &str = "x-carrack-csrf";
/// Where a connection comes from.
#[derive(Clone)]
pub enum Peer {
    /// A process of this host, of this account.
    Account(u32),
    /// Another host, or this one over TCP.
    Address {
        /// Its address, or that which a listed proxy has told.
        address: IpAddr,
        /// Called once the client has proved who it is: it is a stranger no more.
        admit: Arc<dyn Fn() + Send + Sync>,
        /// It came by a listed proxy.
        by_proxy: bool,
    },
}

impl Peer {
    /// The address, where there is one.
    pub fn address(&self) -> Option<IpAddr> {
        if let Self::Address { address, .. } = self { Some(*address) } else { None }
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Account(account) => write!(f, "account {account}"),
            Self::Address { address, .. } => write!(f, "{address}"),
        }
    }
}

/// By what the caller is known, for handlers that say it or end it.
#[derive(Clone)]
pub(super) struct Known {
    pub caller: Arc<Caller>,
    /// The second proof of the session, where it came by a cookie.
    pub csrf: Option<String>,
    /// What the handler tells for the audit.
    pub noted: Noted,
}

/// The caller, in a handler.
impl<S: Send + Sync> FromRequestParts<S> for Known {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // Without it a route would be open that is not in the list.
        let mut known = parts.extensions.get::<Self>().cloned().ok_or_else(unauthenticated)?;
        known.noted = parts.extensions.get().cloned().unwrap_or_default();
        Ok(known)
    }
}

/// Nobody is known by what the request shows.
pub(super) fn unauthenticated() -> ApiError {
    let detail = "nobody is known by what the request shows";
    ApiError::new(StatusCode::UNAUTHORIZED, ProblemCode::Unauthenticated, detail)
        .hint("show a token: Authorization: Bearer carrack_…; `carrack login` gets one")
}

/// `Authorization: Bearer TOKEN`; none for anything else, and for two of them.
pub(super) fn bearer(headers: &HeaderMap) -> Option<ShownToken> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (value, more) = (all.next()?, all.next());
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    if more.is_some() || !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    ShownToken::parse(token.trim())
}
