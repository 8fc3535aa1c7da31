//! Routes of endpoints.

use carrack_core::location::check_endpoint_name;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::caller::Known;
use super::extract::{Body, PathOf, QueryOf, etag, if_match, limit, paged};
use super::problem::{ApiError, Done};
use super::shares::NameFault;
use crate::identity::{Action, Caller, Object, ScopePath, Verdict, may, name_fault};
use crate::ledger::{EndpointRow, LedgerError, NewEvent, Page};
use crate::model::{
    Endpoint, EndpointLimits, EndpointLocation, EndpointTest, EndpointUpdate, EventKind, Listed, NewEndpoint, Problem,
    ProblemCode, Secret, Verb, is_of_this_host,
};

const TEXT_MAX: usize = 4096;
const USERS_MAX: usize = 1000;

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// Rows of a page, 1 to 1000; 100 where it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// Lists the endpoints that the caller may use, by name.
#[utoipa::path(
    get, path = "/endpoints", tag = "endpoints", params(PageQuery),
    responses(
        (status = 200, description = "One page.", body = Listed<Endpoint>),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(query): QueryOf<PageQuery>,
) -> Done<Json<Listed<Endpoint>>> {
    let limit = limit(query.limit)?;
    let listed = api.run(move |api| {
        api.check(&known.caller, Verb::View, Object::Nothing)?;
        let mut seen = Vec::new();
        let mut after = query.cursor;
        // Endpoints of others are passed over, so that a page is full as long as there is more.
        loop {
            let rows = api.ledger.endpoints(&Page { after: after.clone(), limit: limit + 1 })?;
            let is_last = rows.len() <= limit;
            after = rows.last().map(|endpoint| endpoint.name.clone());
            seen.extend(rows.into_iter().filter(|endpoint| {
                let object = Object::Endpoint { endpoint, path: None };
                may(&known.caller, &Action { verb: Verb::View, object }).verdict == Verdict::Allowed
            }));
            if is_last || seen.len() > limit {
                let mut page = paged(seen, limit, |endpoint| endpoint.name.clone());
                api.tell_health(&known.caller, None, &mut page.items)?;
                return Ok(page);
            }
        }
    });
    listed.await.map(Json)
}

/// Adds an endpoint. Only admins, and the account that runs the service, add one on the service's host or behind its
/// ssh.
#[utoipa::path(
    post, path = "/endpoints", tag = "endpoints", request_body = NewEndpoint,
    responses(
        (status = 201, description = "The endpoint.", body = Endpoint),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add(State(api): State<Arc<Api>>, known: Known, Body(new): Body<NewEndpoint>) -> Done<Response> {
    let added = api.run(move |api| {
        let caller = &*known.caller;
        api.check(caller, Verb::Admin, Object::EndpointSettings(None))?;
        if let Err(fault) = check_endpoint_name(new.name.as_bytes()) {
            return Err(ApiError::malformed(format!("name: {fault}")));
        }
        check_location(api, caller, &new.location)?;
        if new.ownership {
            check_ownership(api, caller, &new.location)?;
        }
        check_rest(&new.limits, &new.description, &new.users)?;
        check_token(&new.location, new.token.as_ref())?;
        let sealed_token = new.token.as_ref().map(|token| api.seal.seal(&new.name, token)).transpose();
        let sealed_token = sealed_token.map_err(ApiError::internal)?;
        let endpoint = Endpoint {
            name: new.name,
            owner: caller.user.clone(),
            location: new.location,
            read_only: new.read_only,
            uploads: new.uploads,
            ownership: new.ownership,
            limits: new.limits,
            defaults: new.defaults,
            description: new.description,
            users: new.users,
            has_token: sealed_token.is_some(),
            added: api.now(),
            version: 1,
            health: None,
        };
        let event = event(caller, &endpoint, "an endpoint was added");
        let name = endpoint.name.clone();
        known.noted.about(&name);
        api.ledger.add_endpoint(&EndpointRow { endpoint, sealed_token }, &event)?;
        api.wrote();
        api.with_health(caller, api.ledger.endpoint(&name)?.endpoint)
    });
    let endpoint = added.await?;
    Ok((StatusCode::CREATED, etag(endpoint.version), Json(endpoint)).into_response())
}

/// What is told of an endpoint to those who may see it, and to the audit.
pub(super) fn event(caller: &Caller, endpoint: &Endpoint, text: &str) -> NewEvent {
    tracing::info!(target: "carrack::audit", user = %caller.user, endpoint = %endpoint.name, "{text}");
    NewEvent {
        kind: EventKind::EndpointChanged,
        owner: endpoint.owner.clone(),
        task: None,
        subject: Some(endpoint.name.clone()),
        text: text.to_owned(),
        detail: serde_json::json!({ "by": caller.user }),
    }
}

/// Ends file workers that stand on what was changed: all of them, or those of users who may not use the endpoint any
/// more.
fn end_workers(api: &Api, before: &EndpointRow, after: &EndpointRow) {
    fn stands_on(row: &EndpointRow) -> impl PartialEq + '_ {
        let Endpoint { location, read_only, uploads, ownership, owner, .. } = &row.endpoint;
        (location, read_only, uploads, ownership, owner, &row.sealed_token)
    }
    let all = stands_on(before) != stands_on(after);
    let is_open_to = |user: &str| {
        let Endpoint { owner, users, .. } = &after.endpoint;
        // The worker of somebody who cannot be looked up ends: it can be had again.
        owner == user || users.iter().any(|one| one == "*" || one == user) || api.is_admin(user).unwrap_or(false)
    };
    api.files.end_where("the endpoint was changed", |key| {
        key.endpoint == after.endpoint.name && (all || !is_open_to(&key.user))
    });
}

/// An endpoint that the caller may see, with the sealed token.
pub(super) fn visible(api: &Api, caller: &Caller, name: &str) -> Done<EndpointRow> {
    // First what does not depend on the endpoint: whether there is one must not show in the answer.
    api.check(caller, Verb::View, Object::Nothing)?;
    let row = api.ledger.endpoint(name)?;
    api.check(caller, Verb::View, Object::Endpoint { endpoint: &row.endpoint, path: None })?;
    Ok(row)
}

/// An endpoint whose settings the caller may change.
pub(super) fn changeable(api: &Api, caller: &Caller, name: &str) -> Done<EndpointRow> {
    api.check(caller, Verb::Admin, Object::EndpointSettings(None))?;
    let row = api.ledger.endpoint(name)?;
    api.check(caller, Verb::Admin, Object::EndpointSettings(Some(&row.endpoint)))?;
    Ok(row)
}

/// Shows an endpoint.
#[utoipa::path(
    get, path = "/endpoints/{name}", tag = "endpoints", params(("name" = String, Path, description = "The endpoint.")),
    responses(
        (status = 200, description = "The endpoint; `ETag` is its version.", body = Endpoint),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(State(api): State<Arc<Api>>, known: Known, PathOf(name): PathOf<String>) -> Done<Response> {
    let shown = api.run(move |api| {
        let endpoint = visible(api, &known.caller, &name)?.endpoint;
        api.with_health(&known.caller, endpoint)
    });
    let endpoint = shown.await?;
    Ok((etag(endpoint.version), Json(endpoint)).into_response())
}

/// Changes an endpoint.
#[utoipa::path(
    patch, path = "/endpoints/{name}", tag = "endpoints", params(("name" = String, Path, description = "The endpoint."),
        ("If-Match" = Option<String>, Header, description = "Change only this version.")),
    request_body = EndpointUpdate,
    responses(
        (status = 200, description = "The endpoint as it is now.", body = Endpoint),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn update(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    headers: HeaderMap,
    Body(update): Body<EndpointUpdate>,
) -> Done<Response> {
    let version = if_match(&headers)?;
    let changed = api.run(move |api| {
        let caller = &*known.caller;
        let mut row = changeable(api, caller, &name)?;
        let now = row.endpoint.version;
        if version.is_some_and(|version| version != now) {
            return Err(ApiError::version_differs(now));
        }
        let before = row.clone();
        apply(api, caller, &mut row, update)?;
        let event = event(caller, &row.endpoint, "an endpoint was changed");
        match api.ledger.change_endpoint(&row, &event, api.now()) {
            Ok(endpoint) => {
                end_workers(api, &before, &row);
                if endpoint.location != before.endpoint.location {
                    api.benches.forget(&name);
                }
                api.wrote();
                api.with_health(caller, endpoint)
            }
            Err(LedgerError::Conflict(why)) => match api.ledger.endpoint(&name)?.endpoint.version {
                later if later != now && version.is_some() => Err(ApiError::version_differs(later)),
                later if later != now => Err(ApiError::conflict(why)),
                _ => Err(ApiError::conflict(why).hint(format!(
                    "let its tasks end, or end them and have them go on afterwards: carrack task cancel --endpoint \
                     {name}; carrack endpoint edit {name} …; carrack task retry --endpoint {name} --state CANCELLED"
                ))),
            },
            Err(error) => Err(error.into()),
        }
    });
    let endpoint = changed.await?;
    Ok((etag(endpoint.version), Json(endpoint)).into_response())
}

/// Whether a caller may have an endpoint set owners.
fn check_ownership(api: &Api, caller: &Caller, location: &EndpointLocation) -> Done<()> {
    if matches!(location, EndpointLocation::Ssh { .. }) {
        let hint = "let a node serve the directory, with --allow-ownership";
        return Err(ApiError::malformed("ownership: an endpoint behind ssh sets no owners").hint(hint));
    }
    let refused = |error: ApiError| error.hint("ownership: only an admin has an endpoint set owners and special bits");
    api.check(caller, Verb::Admin, Object::Service).map_err(refused)
}

fn apply(api: &Api, caller: &Caller, row: &mut EndpointRow, update: EndpointUpdate) -> Done<()> {
    let endpoint = &mut row.endpoint;
    if let Some(owner) = update.owner {
        api.check(caller, Verb::Admin, Object::Service)?;
        if matches!(api.ledger.user(&owner), Err(LedgerError::Missing)) {
            return Err(ApiError::malformed(format!("owner: there is no user {owner:?}")));
        }
        endpoint.owner = owner;
    }
    if let Some(location) = update.location {
        check_location(api, caller, &location)?;
        if location != endpoint.location {
            // The token was for the place before: whoever may change the place must not learn it by another one.
            row.sealed_token = None;
            endpoint.location = location;
            // So was what an admin has allowed.
            endpoint.ownership = false;
        }
    }
    endpoint.read_only = update.read_only.unwrap_or(endpoint.read_only);
    endpoint.uploads = update.uploads.unwrap_or(endpoint.uploads);
    if let Some(ownership) = update.ownership {
        if ownership && !endpoint.ownership {
            check_ownership(api, caller, &endpoint.location)?;
        }
        endpoint.ownership = ownership;
    }
    endpoint.limits = update.limits.unwrap_or_else(|| endpoint.limits.clone());
    endpoint.defaults = update.defaults.unwrap_or_else(|| endpoint.defaults.clone());
    endpoint.description = update.description.unwrap_or_else(|| endpoint.description.clone());
    endpoint.users = update.users.unwrap_or_else(|| endpoint.users.clone());
    check_rest(&endpoint.limits, &endpoint.description, &endpoint.users)?;
    match &update.token {
        None => {}
        Some(None) => row.sealed_token = None,
        Some(Some(token)) => {
            check_token(&endpoint.location, Some(token))?;
            row.sealed_token = Some(api.seal.seal(&endpoint.name, token).map_err(ApiError::internal)?);
        }
    }
    endpoint.has_token = row.sealed_token.is_some();
    Ok(())
}

/// Removes an endpoint that no open task and no timer uses.
#[utoipa::path(
    delete, path = "/endpoints/{name}", tag = "endpoints",
    params(("name" = String, Path, description = "The endpoint.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn remove(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
) -> Done<StatusCode> {
    let removed = api.run(move |api| {
        let row = changeable(api, &known.caller, &name)?;
        let event = event(&known.caller, &row.endpoint, "an endpoint was removed");
        api.ledger.remove_endpoint(&name, &event, api.now())?;
        api.files.end_where("the endpoint was removed", |key| key.endpoint == name);
        api.benches.forget(&name);
        api.wrote();
        Ok(StatusCode::NO_CONTENT)
    });
    removed.await
}

/// Tries an endpoint: reaches it, shows its token, looks at its clock and its storage. A caller who may write and
/// delete there has it make a file, read it back and remove it, too. One test of an endpoint at a time, four in all.
#[utoipa::path(
    post, path = "/endpoints/{name}/test", tag = "endpoints",
    params(("name" = String, Path, description = "The endpoint.")),
    responses(
        (status = 200, description = "What was found.", body = EndpointTest),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn test(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
) -> Done<Json<EndpointTest>> {
    let tested = api.run(move |api| {
        api.check(&known.caller, Verb::Read, Object::Nothing)?;
        let mut row = api.ledger.endpoint(&name)?;
        let path = ScopePath::root();
        let object = Object::Endpoint { endpoint: &row.endpoint, path: Some(&path) };
        api.check(&known.caller, Verb::Read, object)?;
        // The file that a test leaves for a moment is written and removed by the right of whoever asks for it.
        let may_leave = |verb| may(&known.caller, &Action { verb, object }).verdict == Verdict::Allowed;
        row.endpoint.read_only = ![Verb::Write, Verb::Delete].into_iter().all(may_leave);
        check_address(api, &known.caller, &row.endpoint.location)?;
        api.check_open(&row.endpoint)?;
        let token = row.sealed_token.as_ref().map(|sealed| api.seal.unseal(&name, sealed)).transpose();
        let token = token.map_err(|error| ApiError::conflict(error.to_string()))?;
        let _under_way = api.tests.take(&name).map_err(|fault| busy_with_tests(&name, fault))?;
        // Whoever added it was let in by an admin's right, or only to other hosts.
        let far_only = !api.is_admin(&row.endpoint.owner)?;
        let mut test = api.backend.test_endpoint(&row.endpoint, token.as_ref(), far_only);
        api.judge_faults(&row.endpoint, &mut test)?;
        // What was found is told, also where it cannot be kept.
        if let Err(error) = api.ledger.note_test(&name, &test, api.now()) {
            tracing::warn!(endpoint = %name, "what a test has found is not kept: {error}");
        }
        Ok(test)
    });
    tested.await.map(Json)
}

/// A test can last as long as a host keeps silent, and holds a thread of the API.
fn busy_with_tests(name: &str, fault: NameFault) -> ApiError {
    let detail = match fault {
        NameFault::Held => format!("@{name} is tested at present: that test tells what it finds"),
        NameFault::Full => "as many endpoints are tested as may be at once".to_owned(),
    };
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, ProblemCode::TooMany, detail).retry_after(5)
}

/// Whether a location can be an endpoint's, and this caller's: what has it parsed as a task's has it checked as one.
fn check_location(api: &Api, caller: &Caller, location: &EndpointLocation) -> Done<()> {
    let wrong = |why: String| ApiError::malformed(format!("location: {why}"));
    let below = |path: &str| ScopePath::parse(path).map_err(|error| wrong(error.to_string()));
    location.location().map_err(wrong)?;
    if let Some(path) = location.local_root().or(location.node_path()) {
        below(path)?;
    }
    if location.is_of_service() {
        api.check(caller, Verb::Write, Object::RawLocation)?;
    }
    check_address(api, caller, location)
}

/// Users have the service connect to hosts of the network, not to this host itself, nor to what only this host reaches.
pub(super) fn check_address(api: &Api, caller: &Caller, location: &EndpointLocation) -> Done<()> {
    // What is the service's own, its ssh too, is an admin's to offer.
    let Some(host) = location.host().filter(|_| !location.is_of_service()) else { return Ok(()) };
    if caller.is_admin() || caller.runs_service {
        return Ok(());
    }
    let addresses: Vec<IpAddr> = match host.parse() {
        Ok(address) => vec![address],
        // A name that cannot be looked up now leads nowhere now; the test of an endpoint looks again.
        Err(_) => (host, 0).to_socket_addrs().map(|all| all.map(|socket| socket.ip()).collect()).unwrap_or_default(),
    };
    if addresses.iter().any(|address| is_of_this_host(*address)) {
        let rule = "endpoint-at-this-host";
        let detail = "only an admin can add an endpoint at an address of the service's own host";
        return Err(api.refused(caller, Verb::Admin, rule, ApiError::forbidden(rule).hint(detail)));
    }
    Ok(())
}

fn check_token(location: &EndpointLocation, token: Option<&Secret>) -> Done<()> {
    let Some(token) = token else { return Ok(()) };
    if location.node_path().is_none() {
        return Err(ApiError::malformed("token: only a node takes one"));
    }
    let text = token.reveal();
    if text.is_empty() || text.len() > 4096 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ApiError::malformed("token: 1 to 4096 printable characters without spaces"));
    }
    Ok(())
}

fn check_rest(limits: &EndpointLimits, description: &str, users: &[String]) -> Done<()> {
    if limits.transfers == Some(0) || limits.streams == Some(0) || limits.rate == Some(0) {
        return Err(ApiError::malformed("limits: what is limited is limited to at least 1"));
    }
    let is_time = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() == 5
            && bytes[2] == b':'
            && text[..2].parse::<u8>().is_ok_and(|hour| hour < 24)
            && text[3..].parse::<u8>().is_ok_and(|minute| minute < 60)
    };
    if limits.timetable.len() > 100
        || limits.timetable.iter().any(|window| {
            !window.from.is_ascii() || !window.until.is_ascii() || !is_time(&window.from) || !is_time(&window.until)
        })
    {
        return Err(ApiError::malformed("limits: timetable: at most 100 hours as HH:MM"));
    }
    if limits
        .drained
        .as_ref()
        .is_some_and(|why| why.trim().is_empty() || why.len() > TEXT_MAX || why.contains(char::is_control))
    {
        return Err(ApiError::malformed(format!("limits: drained: the reason, in a line of at most {TEXT_MAX} bytes")));
    }
    if description.len() > TEXT_MAX {
        return Err(ApiError::malformed(format!("description: at most {TEXT_MAX} bytes")));
    }
    if users.len() > USERS_MAX || users.iter().any(|user| user != "*" && name_fault(user, "-_.@").is_some()) {
        return Err(ApiError::malformed("users: names of users, or *"));
    }
    Ok(())
}
