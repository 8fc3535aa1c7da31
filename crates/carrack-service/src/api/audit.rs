//! The audit: who changed what, from where, and what the service answered; logins, and what was refused. Each line is
//! in the log, too, with what only the handler knows; here it can be searched.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::caller::{Known, Peer};
use super::extract::{QueryOf, limit, paged};
use super::noted::Noted;
use super::problem::{ApiError, Done};
use super::strangers::WAITING_MOST;
use crate::clock::Moment;
use crate::identity::{Object, network};
use crate::ledger::audit::{AuditFilter, NewAuditLine};
use crate::model::{AuditLine, Listed, Problem, Verb};

impl Api {
    /// Keeps that a stranger was refused, with its network's others.
    fn keep_refusal(self: &Arc<Self>, network: Option<IpAddr>, line: NewAuditLine) {
        let lines = self.audit.lock().strangers.refused(network, line, self.clock.elapsed());
        lines.into_iter().for_each(|line| self.keep_line(line));
    }

    /// Keeps a line soon: what comes while the ledger is busy is written together.
    fn keep_line(self: &Arc<Self>, line: NewAuditLine) {
        let mut waiting = self.audit.lock();
        if waiting.lines.len() >= WAITING_MOST {
            waiting.lost += 1;
            return;
        }
        waiting.lines.push(line);
        let begins = !std::mem::replace(&mut waiting.is_writing, true);
        drop(waiting);
        if begins {
            let api = Arc::clone(self);
            // Without any thread, the line waits for the next.
            if self.hands.give(move || api.write_lines()).is_err() {
                self.audit.lock().is_writing = false;
            }
        }
    }

    fn write_lines(&self) {
        loop {
            let (lines, lost) = {
                let mut waiting = self.audit.lock();
                if waiting.lines.is_empty() {
                    waiting.is_writing = false;
                    return;
                }
                (std::mem::take(&mut waiting.lines), std::mem::take(&mut waiting.lost))
            };
            if lost > 0 {
                tracing::error!(target: "carrack::api", lost, "lines of the audit were not kept: too many came at once");
            }
            if let Err(error) = self.ledger.note(&lines) {
                tracing::error!(target: "carrack::api", lines = lines.len(), %error, "lines of the audit were not kept");
            }
        }
    }
}

/// Whether a request changes something by itself. Listings, sums and parts of an upload do not, whatever their method.
fn is_change(method: &Method, route: &str) -> bool {
    let is_read = ["/du", "/sum", "/blocks/{n}"].iter().any(|end| route.ends_with(end)) || route.contains("/listings");
    !is_read && !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Notes each request that changes something, and each that was refused, once it is answered. It stands behind what
/// asks who calls: of those whom nobody knows, only logins are noted.
pub(super) async fn keep(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    let noted = Noted::default();
    request.extensions_mut().insert(noted.clone());
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let is_change = is_change(request.method(), route.as_deref().unwrap_or_default());
    let named = route.as_deref().and_then(|route| named(route, request.uri().path()));
    let action = format!("{} {}", request.method(), route.as_deref().unwrap_or("none").trim_start_matches("/api/v1"));
    let caller = request.extensions().get::<Known>().map(|known| Arc::clone(&known.caller));
    let from = request.extensions().get::<Peer>().and_then(Peer::address);
    let response = next.run(request).await;
    if is_change || response.status() == StatusCode::FORBIDDEN {
        let user = match (&caller, noted.user()) {
            (Some(caller), _) => caller.user.clone(),
            (None, tried) => tried.unwrap_or_default().to_owned(),
        };
        let line = NewAuditLine {
            time: api.now(),
            user,
            via: caller.as_ref().map_or_else(String::new, |caller| caller.via.name().to_owned()),
            token: caller.as_ref().and_then(|caller| caller.token.clone()),
            from: from.map(|address| address.to_string()),
            action,
            object: noted.object().map(str::to_owned).or(named),
            status: response.status().as_u16(),
        };
        match caller {
            None if line.status >= 400 => api.keep_refusal(from.map(network), line),
            _ => api.keep_line(line),
        }
    }
    response
}

/// What stands in a path where its route has the first name in braces.
fn named(route: &str, path: &str) -> Option<String> {
    let mut both = route.split('/').zip(path.split('/'));
    both.find(|(part, _)| part.starts_with('{')).map(|(_, value)| value.chars().take(256).collect())
}

/// Which lines are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// In whose user, action, object, address or token this stands, in any case.
    q: Option<String>,
    /// At this moment or later.
    from: Option<Moment>,
    /// Before this moment.
    to: Option<Moment>,
    /// Rows of a page, 1 to 1000; 100 where it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<u64>,
}

/// Lists who changed what, from where, and with what answer; logins and refusals; for admins, the latest first.
#[utoipa::path(
    get, path = "/audit", tag = "service", params(AuditQuery),
    responses(
        (status = 200, description = "One page.", body = Listed<AuditLine>),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(query): QueryOf<AuditQuery>,
) -> Done<Json<Listed<AuditLine>>> {
    let limit = limit(query.limit)?;
    if query.from.zip(query.to).is_some_and(|(from, to)| from > to) {
        return Err(ApiError::malformed("from: it is later than to"));
    }
    let AuditQuery { q: text, from, to, cursor: before, .. } = query;
    let listed = api.run(move |api| {
        api.check(&known.caller, Verb::Admin, Object::Service)?;
        let text = text.filter(|text| !text.is_empty());
        let counted = api.audit.lock().strangers.over(api.clock.elapsed());
        counted.into_iter().for_each(|line| api.keep_line(line));
        let lines = api.ledger.audit(&AuditFilter { text, from, to, before }, limit + 1)?;
        Ok(paged(lines, limit, |line| line.id.to_string()))
    });
    listed.await.map(Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_leaves_out_what_only_reads() {
        for (method, route, changes) in [
            (Method::POST, "/api/v1/tasks", true),
            (Method::GET, "/api/v1/tasks", false),
            (Method::POST, "/api/v1/listings", false),
            (Method::DELETE, "/api/v1/listings/{id}", false),
            (Method::POST, "/api/v1/endpoints/{name}/files/du", false),
            (Method::POST, "/api/v1/endpoints/{name}/files/rename", true),
            (Method::PUT, "/api/v1/uploads/{id}/blocks/{n}", false),
        ] {
            assert_eq!(is_change(&method, route), changes, "{method} {route}");
        }
    }

    #[test]
    fn audit_takes_the_object_from_the_path() {
        for (route, path, object) in [
            ("/api/v1/tasks/{id}/cancel", "/api/v1/tasks/01-a/cancel", Some("01-a")),
            ("/api/v1/tasks/{id}", "/api/v1/tasks/01-a", Some("01-a")),
            ("/api/v1/tasks", "/api/v1/tasks", None),
        ] {
            assert_eq!(named(route, path).as_deref(), object);
        }
    }
}
