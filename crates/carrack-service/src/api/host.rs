//! Which host a request was meant for. A page of somebody else's may have its name lead to this host (DNS rebinding):
//! its requests then come from a browser of this network, and name that host.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::admit::is_open;
use super::caller::{Peer, bearer};
use super::problem::ApiError;
use crate::model::ProblemCode;

/// The names of this host and of the service. Addresses are always its own: no name was looked up for them.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnNames(Arc<BTreeSet<String>>);

impl OwnNames {
    /// These, beside `localhost`.
    pub fn of(names: &[String]) -> Self {
        let names = names.iter().map(|name| plain(name)).chain(["localhost".to_owned()]);
        Self(Arc::new(names.collect()))
    }

    /// Whether the value of a header `Host` means this host.
    fn mean(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        name.parse::<IpAddr>().is_ok() || self.0.contains(&plain(name))
    }
}

fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// What a page of somebody else's cannot send: it knows no token, and a browser names a page's origin with each change.
/// A token counts where somebody has to be known.
fn is_of_no_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let is_change = !matches!(*method, Method::GET | Method::HEAD);
    let has_token = !is_open(method, path) && bearer(headers).is_some();
    has_token || is_change && !headers.contains_key(header::ORIGIN)
}

/// Refuses requests that were meant for another host. The socket, listed proxies (which know what they serve) and
/// health checks are none of them.
pub(super) async fn check(State(names): State<OwnNames>, request: Request, next: Next) -> Response {
    let is_from_network = matches!(request.extensions().get(), Some(Peer::Address { by_proxy: false, .. }));
    let is_health = matches!(request.uri().path(), "/healthz" | "/readyz");
    if is_from_network && !is_health && !is_of_no_page(request.method(), request.uri().path(), request.headers()) {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        // RFC 9112 §3.2.2: what the target of a request names goes before the header.
        let target = request.uri().authority().map(|authority| authority.as_str());
        if !names.mean(target.unwrap_or(host)) {
            let detail = "the request was meant for another host: its name is none of this service's";
            let error = ApiError::new(StatusCode::MISDIRECTED_REQUEST, ProblemCode::WrongHost, detail).hint(
                "use the host's address; or have whoever runs the service add the name: carrack serve --name NAME",
            );
            return error.into_response();
        }
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_are_known_in_any_spelling_and_no_others() {
        let names = OwnNames::of(&["Box.Example.org".to_owned()]);
        for host in [
            "box.example.org",
            "BOX.example.ORG:7420",
            "box.example.org.:7420",
            "localhost:99",
            "127.0.0.1",
            "192.0.2.7:7420",
            "[::1]:7420",
            "[2001:db8::7]",
        ] {
            assert!(names.mean(host), "{host}");
        }
        for host in [
            "",
            "box",
            "evil.example",
            "box.example.org.evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "[x]",
        ] {
            assert!(!names.mean(host), "{host}");
        }
    }
}
