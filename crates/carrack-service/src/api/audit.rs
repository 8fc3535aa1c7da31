//! The audit: who changed what, from where, and what the service answered; logins, and what was refused. Each line is
//! in the log, too, with what only the handler knows; here it can be searched.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::admit::{Known, Peer};
use super::extract::{QueryOf, limit, paged};
use super::noted::Noted;
use super::problem::{ApiError, Done};
use crate::clock::Moment;
use crate::identity::{Object, network};
use crate::ledger::audit::{AuditFilter, NewAuditLine};
use crate::model::{AuditLine, Listed, Problem, Verb};

/// Lines that wait to be written. Beyond, they are only counted: whoever floods the service does not fill its memory.
const WAITING_MOST: usize = 10_000;

/// Refusals of strangers of one network, for one name, are one line and a number within this time.
const WINDOW: Duration = Duration::from_secs(60);
/// Names of one network, and networks with their names, that are told apart within that time.
const NAMES_MOST: usize = 8;
const STRANGERS_MOST: usize = 256;
/// Those beyond.
const FURTHER: &str = "further networks";

/// Lines on their way to the ledger.
#[derive(Debug, Default)]
pub(super) struct Audit(Mutex<Waiting>);

/// Refusals of strangers, by their networks and the names that they tried.
#[derive(Debug, Default)]
struct Strangers(HashMap<(String, String), Refusals>);

/// Those of one network and name since one of them had a line of its own.
#[derive(Debug)]
struct Refusals {
    line: NewAuditLine,
    since: Duration,
    more: u64,
}

impl Strangers {
    /// The lines to be kept for a refusal, at this time of a steady clock.
    fn refused(&mut self, network: Option<IpAddr>, line: NewAuditLine, now: Duration) -> Vec<NewAuditLine> {
        let mut lines = self.over(now);
        let network = network.map_or_else(|| "this host".to_owned(), |network| network.to_string());
        let (mut key, mut line) = ((network, line.user.clone()), line);
        if !self.0.contains_key(&key) && self.0.keys().filter(|known| known.0 == key.0).count() >= NAMES_MOST {
            key.1.clear();
        }
        if !self.0.contains_key(&key) && self.0.len() >= STRANGERS_MOST {
            key = (FURTHER.to_owned(), String::new());
            line.from = Some(FURTHER.to_owned());
        }
        match self.0.get_mut(&key) {
            Some(refusals) => refusals.more += 1,
            None => {
                lines.push(line.clone());
                let line = NewAuditLine { user: key.1.clone(), ..line };
                self.0.insert(key, Refusals { line, since: now, more: 0 });
            }
        }
        lines
    }

    /// What was counted and is over: how many there were beside the one that has its line.
    fn over(&mut self, now: Duration) -> Vec<NewAuditLine> {
        let ended = self.0.extract_if(|_, refusals| now.saturating_sub(refusals.since) >= WINDOW);
        let counted = ended.filter(|(_, refusals)| refusals.more > 0);
        let told = |(_, Refusals { line, more, .. }): (_, Refusals)| NewAuditLine {
            object: Some(format!("{more} more within {} s", WINDOW.as_secs())),
            ..line
        };
        counted.map(told).collect()
    }
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<NewAuditLine>,
    is_writing: bool,
    lost: u64,
    strangers: Strangers,
}

impl Audit {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    fn refusals_of_strangers_are_a_line_and_a_number_for_each_network() {
        let mut strangers = Strangers::default();
        let line = || NewAuditLine {
            time: Moment(0),
            user: "ann".to_owned(),
            via: String::new(),
            token: None,
            from: Some("192.0.2.1".to_owned()),
            action: "POST /login".to_owned(),
            object: None,
            status: 401,
        };
        let network = |number: u32| Some(IpAddr::from(number.to_be_bytes()));
        let mut kept = 0;
        for number in 0..100_000 {
            kept += strangers.refused(network(number % 1000), line(), Duration::from_secs(1)).len();
        }
        assert_eq!(kept, STRANGERS_MOST + 1);
        let told = strangers.refused(network(7), line(), Duration::from_secs(61));
        let number = |line: &NewAuditLine| line.object.as_ref()?.split(' ').next()?.parse::<u64>().ok();
        let counted: u64 = told.iter().filter_map(number).sum();
        assert_eq!((told.len(), counted + kept as u64), (STRANGERS_MOST + 2, 100_000));
        assert!(told.iter().any(|line| line.from.as_deref() == Some(FURTHER)));
        // Names that one network makes up leave the others their lines.
        let of_names = |strangers: &mut Strangers, name: u32| {
            let line = NewAuditLine { user: format!("name {name}"), ..line() };
            strangers.refused(network(1), line, Duration::from_secs(200)).len()
        };
        let kept: usize = (0..10_000).map(|name| of_names(&mut strangers, name)).sum();
        assert!(kept <= NAMES_MOST + 3, "{kept}");
        assert_eq!(strangers.refused(network(2), line(), Duration::from_secs(201)).len(), 1);
    }

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
