//! Routes that measure what this host can do, and show what was measured.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use carrack_core::words::shell_word;

use super::Api;
use super::caller::Known;
use super::endpoints::{changeable, event, visible};
use super::extract::PathOf;
use super::problem::{ApiError, Done};
use crate::bench::Refused;
use crate::identity::{Caller, Object, ScopePath};
use crate::model::{BenchStatus, Problem, Verb};
use carrack_core::location::decode_path;

/// Shows how far measuring is with an endpoint, and the last result of each kind: storage, processors, copies.
#[utoipa::path(
    get, path = "/endpoints/{name}/bench", tag = "endpoints",
    params(("name" = String, Path, description = "The endpoint.")),
    responses(
        (status = 200, description = "How far it is, and what is kept.", body = BenchStatus),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
) -> Done<Json<BenchStatus>> {
    let status = api.run(move |api| {
        visible(api, &known.caller, &name)?;
        api.benches.status(&name).map_err(|error| ApiError::internal(format!("bench: {error}")))
    });
    status.await.map(Json)
}

/// Measures the storage of an endpoint that is a directory of the service's host, and the host's processors: files of
/// 64 MiB, for a minute or less. Its owner and admins may, one at a time.
#[utoipa::path(
    post, path = "/endpoints/{name}/bench", tag = "endpoints",
    params(("name" = String, Path, description = "The endpoint.")),
    responses(
        (status = 202, description = "It has begun.", body = BenchStatus),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn start(State(api): State<Arc<Api>>, known: Known, PathOf(name): PathOf<String>) -> Done<Response> {
    let status = api.run(move |api| {
        let caller = &*known.caller;
        let endpoint = changeable(api, caller, &name)?.endpoint;
        let path = ScopePath::root();
        api.check(caller, Verb::Write, Object::Endpoint { endpoint: &endpoint, path: Some(&path) })?;
        api.check_open(&endpoint)?;
        let location = &endpoint.location;
        let Some(root) = location.local_root() else {
            let host = location.host().unwrap_or("another place");
            let detail = format!("@{name} is at {host}: the service measures only directories of its own host");
            let hint = format!("on {host}: carrack bench disk {}", shell_word(location.directory()));
            return Err(ApiError::conflict(detail).hint(hint));
        };
        let root = decode_path(root.as_bytes()).map_err(ApiError::malformed)?;
        api.benches.start(&name, root).map_err(|why| not_begun(api, caller, why))?;
        // Pages that show the endpoint look again.
        if let Err(error) = api.ledger.record(&[event(caller, &endpoint, "measuring began")], api.now()) {
            tracing::warn!(endpoint = %name, "the event of a measurement is not kept: {error}");
        }
        api.wrote();
        api.benches.status(&name).map_err(|error| ApiError::internal(format!("bench: {error}")))
    });
    Ok((StatusCode::ACCEPTED, Json(status.await?)).into_response())
}

/// Why nothing is measured, to whoever has asked for it.
pub(super) fn not_begun(api: &Api, caller: &Caller, refused: Refused) -> ApiError {
    match refused {
        // Of an endpoint that the caller may not see nothing is told.
        Refused::Busy { of, endpoints } => {
            let hears = endpoints.iter().all(|name| visible(api, caller, name).is_ok());
            let what = if hears { of } else { "something else".to_owned() };
            ApiError::conflict(format!("{what} is measured at present, one at a time"))
                .hint("begin when it has ended: two at once would measure each other")
        }
        Refused::Stopping => ApiError::stopping(),
        Refused::System(error) => ApiError::internal(format!("bench: {error}")),
    }
}
