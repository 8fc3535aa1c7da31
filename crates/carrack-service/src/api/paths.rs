//! Routes that measure the path between two endpoints, and show what was measured.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use carrack_core::grant::claims_to_be_grant;

use super::Api;
use super::bench::not_begun;
use super::caller::Known;
use super::endpoints::{changeable, check_address, event, visible};
use super::extract::PathOf;
use super::problem::{ApiError, Done};
use crate::identity::{Caller, Object, ScopePath};
use crate::ledger::EndpointRow;
use crate::model::{Endpoint, EndpointLocation, PathStatus, Problem, Verb};
use crate::schedule::rate_now;
use crate::worker::paths::PathOrder;
use crate::worker::{EndOrder, EndpointRoot, PairOrder};

/// Shows how far measuring is with the path between two endpoints, and the last result: rate both ways, round trip,
/// what was sent again, largest packet, steps of the way.
#[utoipa::path(
    get, path = "/endpoints/{name}/paths/{other}", tag = "endpoints",
    params(
        ("name" = String, Path, description = "The endpoint where bytes that go there come from."),
        ("other" = String, Path, description = "The other endpoint."),
    ),
    responses(
        (status = 200, description = "How far it is, and what is kept.", body = PathStatus),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf((name, other)): PathOf<(String, String)>,
) -> Done<Json<PathStatus>> {
    let status = api.run(move |api| {
        for endpoint in [&name, &other] {
            visible(api, &known.caller, endpoint)?;
        }
        status(api, &name, &other)
    });
    status.await.map(Json)
}

/// Measures the path between two endpoints, from memory to memory, for some seconds each way, encrypted and verified as
/// a copy is. No file is read or written. Whoever owns both may, and admins, one measurement at a time. A node decides
/// by `--measure` whether it takes part.
#[utoipa::path(
    post, path = "/endpoints/{name}/paths/{other}", tag = "endpoints",
    params(
        ("name" = String, Path, description = "The endpoint where bytes that go there come from."),
        ("other" = String, Path, description = "The other endpoint."),
    ),
    responses(
        (status = 202, description = "It has begun.", body = PathStatus),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn start(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf((name, other)): PathOf<(String, String)>,
) -> Done<Response> {
    let status = api.run(move |api| {
        let caller = &*known.caller;
        let (from, to) = (measurable(api, caller, &name)?, measurable(api, caller, &other)?);
        if is_same_host(&from.endpoint.location, &to.endpoint.location) {
            let detail = format!("@{name} and @{other} are at the same host: there is no path between them");
            return Err(ApiError::conflict(detail).hint("choose an endpoint at another host"));
        }
        api.benches.start_path(&name, &other, order(api, &from, &to)?).map_err(|why| not_begun(api, caller, why))?;
        // Pages that show one of them look again. Who owns one may not be told of the other.
        let is_one_owners = from.endpoint.owner == to.endpoint.owner;
        let began = [(&from, &other), (&to, &name)].map(|(row, end)| {
            let to = if is_one_owners { format!("@{end}") } else { "another endpoint".to_owned() };
            event(caller, &row.endpoint, &format!("measuring the path to {to} began"))
        });
        if let Err(error) = api.ledger.record(&began, api.now()) {
            tracing::warn!(endpoint = %name, "the event of a measurement is not kept: {error}");
        }
        api.wrote();
        status(api, &name, &other)
    });
    Ok((StatusCode::ACCEPTED, Json(status.await?)).into_response())
}

fn status(api: &Api, from: &str, to: &str) -> Done<PathStatus> {
    api.benches.path_status(from, to).map_err(|error| ApiError::internal(format!("bench: {error}")))
}

/// An endpoint whose path the caller may have measured: the service shows its node the node's own token for that.
fn measurable(api: &Api, caller: &Caller, name: &str) -> Done<EndpointRow> {
    let row = changeable(api, caller, name)?;
    let path = ScopePath::root();
    api.check(caller, Verb::Read, Object::Endpoint { endpoint: &row.endpoint, path: Some(&path) })?;
    check_address(api, caller, &row.endpoint.location)?;
    api.check_open(&row.endpoint)?;
    Ok(row)
}

/// Whether two places are at one host, as far as their addresses say.
fn is_same_host(one: &EndpointLocation, other: &EndpointLocation) -> bool {
    let is_loopback = |host: &str| {
        let literal: Option<IpAddr> = host.parse().ok();
        literal.map_or(host.eq_ignore_ascii_case("localhost"), |address| address.to_canonical().is_loopback())
    };
    match (one.host(), other.host()) {
        (None, None) => true,
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (None, Some(host)) | (Some(host), None) => is_loopback(host),
    }
}

/// What the process that measures is told. The limits of both endpoints hold for it as for a copy.
fn order(api: &Api, from: &EndpointRow, to: &EndpointRow) -> Done<PathOrder> {
    let ((source, source_endpoint), (destination, destination_endpoint)) = (end(api, from)?, end(api, to)?);
    let rates = [rate(api, &from.endpoint)?, rate(api, &to.endpoint)?];
    let streams = [from.endpoint.limits.streams, to.endpoint.limits.streams];
    let (source_endpoint, destination_endpoint) = (Some(source_endpoint), Some(destination_endpoint));
    let pair = PairOrder { source_endpoint, destination_endpoint, ..PairOrder::new(source, Some(destination)) };
    Ok(PathOrder { pair, streams: streams.into_iter().flatten().min(), rate_limit: rates.into_iter().flatten().min() })
}

/// The rate that an endpoint allows a transfer at this hour.
fn rate(api: &Api, endpoint: &Endpoint) -> Done<Option<u64>> {
    let now = rate_now(&endpoint.limits, api.now().second_of_day());
    // A timetable that cannot be read limits nothing, as for tasks.
    let rate = now.ok().and_then(|now| now.rate);
    if rate == Some(0) {
        let detail = format!("the timetable of @{} lets no transfer begin at this hour", endpoint.name);
        return Err(ApiError::conflict(detail).hint("measure at another hour, or change the endpoint's timetable"));
    }
    Ok(rate)
}

/// An end, and what it is called. No root is opened there: no file is read or written.
fn end(api: &Api, row: &EndpointRow) -> Done<(EndOrder, EndpointRoot)> {
    let endpoint = &row.endpoint;
    let name = &endpoint.name;
    let at = endpoint.location.location().map_err(|why| ApiError::conflict(format!("location: {why}")))?;
    let root = EndpointRoot::of(name, &at);
    let sealed = row.sealed_token.as_ref().filter(|_| endpoint.location.node_path().is_some());
    let token = sealed.map(|sealed| api.seal.unseal(name, sealed)).transpose();
    let token = token.map_err(|error| ApiError::conflict(error.to_string()))?;
    if token.as_ref().is_some_and(|token| claims_to_be_grant(token.reveal())) {
        let why = format!("what the service has for the node of @{name} is a grant, and a grant allows no measuring");
        return Err(ApiError::conflict(why).hint("give the endpoint the node's own token"));
    }
    let mut end = EndOrder::at_location(at);
    end.credentials.token = token;
    // Whoever added it was let in by an admin's right, or only to other hosts.
    end.far_only = !api.is_admin(&endpoint.owner)?;
    Ok((end, root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_the_same_by_name_and_where_one_is_the_services_own() {
        let node = |host: &str, port| EndpointLocation::Node {
            host: host.to_owned(),
            port,
            fingerprint: None,
            path: "/".to_owned(),
        };
        let ssh = |host: &str| EndpointLocation::Ssh { user: None, host: host.to_owned(), path: "/".to_owned() };
        let here = |root: &str| EndpointLocation::Local { root: root.to_owned() };
        let same = [
            (here("/a"), here("/b")),
            (here("/a"), node("127.0.0.2", 1)),
            (node("::1", 1), here("/a")),
            (here("/a"), ssh("localhost")),
            (node("far.example", 1), node("Far.Example", 2)),
            (ssh("far"), node("far", 1)),
        ];
        for (one, other) in same {
            assert!(is_same_host(&one, &other), "{one:?} {other:?}");
        }
        for (one, other) in [(here("/a"), node("far", 1)), (node("far", 1), node("near", 1)), (ssh("a"), ssh("b"))] {
            assert!(!is_same_host(&one, &other), "{one:?} {other:?}");
        }
    }
}
