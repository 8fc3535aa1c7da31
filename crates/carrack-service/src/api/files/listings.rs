//! Routes of listings: a directory is read once, and looked at in windows.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{lease, path, stream};
use crate::api::Api;
use crate::api::caller::Known;
use crate::api::extract::{Body, PathOf, QueryOf};
use crate::api::problem::{ApiError, Done};
use crate::files::{Found, Lease};
use crate::identity::{Caller, Object};
use crate::model::{FileListing, FileWindow, ListingStatus, NewListing, Problem, SortField, Verb, text_of};
use crate::worker::files::{Ask, WindowAsk};

const LIMIT: usize = 200;
const LIMIT_MAX: usize = 1000;
/// Of a filter, and of a name.
const TEXT_MAX: usize = 4096;

/// Begins to list a directory. The listing is the caller's own, and is dropped when nobody has asked for it for five
/// minutes, or when its caller has more than eight.
#[utoipa::path(
    post, path = "/listings", tag = "files", request_body = NewListing,
    responses(
        (status = 201, description = "The listing, and how far it is.", body = FileListing),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn add(
    State(api): State<Arc<Api>>,
    known: Known,
    Body(new): Body<NewListing>,
) -> Done<Response> {
    let at = path("path", &new.path)?;
    let (caller, endpoint, wanted) = (Arc::clone(&known.caller), new.endpoint.clone(), at.clone());
    let lease = api.run(move |api| lease(api, &caller, &endpoint, &[(Verb::Read, &wanted)])).await?;
    let id = api.listings.add(&lease, &at);
    let ask = Ask::OpenListing { listing: id.clone(), path: at.to_string() };
    let told = async { lease.ask(ask, b"")?.answer().await }.await;
    let told = told.inspect_err(|_| _ = api.listings.remove(&known.caller, &id))?;
    let status: ListingStatus = serde_json::from_slice(&told).map_err(ApiError::internal)?;
    let listing = FileListing { id, endpoint: new.endpoint, path: format!("/{}", text_of(&at.bytes())), status };
    Ok((StatusCode::CREATED, Json(listing)).into_response())
}

/// Which entries are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct WindowQuery {
    /// The first one, of those that the filter takes; 0 where it is left out.
    #[serde(default)]
    offset: usize,
    /// How many, 0 to 1000; 200 where it is left out.
    #[param(minimum = 0, maximum = 1000)]
    limit: Option<usize>,
    /// `name`, `size`, `modified` or `kind`, with `-` before it the other way round; `name` where it is left out.
    sort: Option<String>,
    /// Names that have this in them, whatever their case; with `*` or `?` a pattern of whole names.
    #[serde(default)]
    filter: String,
    /// Also names that begin with a point.
    #[serde(default)]
    hidden: bool,
    /// The window stands around this name, or around the first that begins with it, in the place of `offset`.
    around: Option<String>,
}

/// Shows some entries of a listing, sorted and filtered. While the directory is read they are those that are there: ask
/// again.
#[utoipa::path(
    get, path = "/listings/{id}", tag = "files", params(("id" = String, Path, description = "The listing."), WindowQuery),
    responses(
        (status = 200, description = "The entries.", body = FileWindow),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn show(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<WindowQuery>,
) -> Done<Response> {
    let window = window(query)?;
    let lease = found(&api, &known, id.clone()).await?;
    let told = lease.ask(Ask::Window { listing: id, window }, b"")?.answer().await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], told).into_response())
}

fn window(query: WindowQuery) -> Done<WindowAsk> {
    let limit = query.limit.unwrap_or(LIMIT);
    if limit > LIMIT_MAX {
        return Err(ApiError::malformed(format!("limit: 0 to {LIMIT_MAX}")));
    }
    let sort = query.sort.as_deref().unwrap_or("name");
    let (descending, field) = sort.strip_prefix('-').map_or((false, sort), |field| (true, field));
    let field = SortField::parse(field).map_err(|why| ApiError::malformed(format!("sort: {why}")))?;
    check_text("filter", &query.filter)?;
    check_text("around", query.around.as_deref().unwrap_or_default())?;
    let (offset, filter, hidden, around) = (query.offset, query.filter, query.hidden, query.around);
    Ok(WindowAsk { offset, limit, field, descending, filter, hidden, around })
}

fn check_text(name: &str, text: &str) -> Done<()> {
    if text.len() > TEXT_MAX { Err(ApiError::malformed(format!("{name}: at most {TEXT_MAX} bytes"))) } else { Ok(()) }
}

/// The worker with a listing of the caller, who may still read there.
async fn found(api: &Arc<Api>, known: &Known, id: String) -> Done<Lease> {
    let caller = Arc::clone(&known.caller);
    api.run(move |api| look_up(api, &caller, &id)).await
}

fn look_up(api: &Api, caller: &Caller, id: &str) -> Done<Lease> {
    api.check(caller, Verb::Read, Object::Nothing)?;
    let Found { lease, endpoint, path } = api.listings.find(caller, id).ok_or_else(gone)?;
    let row = api.ledger.endpoint(&endpoint)?;
    api.check(caller, Verb::Read, Object::Endpoint { endpoint: &row.endpoint, path: Some(&path) })?;
    Ok(lease)
}

fn gone() -> ApiError {
    ApiError::not_found().hint("a listing that nobody asks for is dropped: make another")
}

/// Which names are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct NamesQuery {
    /// As in a window.
    #[serde(default)]
    filter: String,
    /// As in a window.
    #[serde(default)]
    hidden: bool,
}

/// Shows all names of a listing by name, a string of JSON in each line; those of directories end with `/`. It waits
/// until the directory is read.
#[utoipa::path(
    get, path = "/listings/{id}/names", tag = "files",
    params(("id" = String, Path, description = "The listing."), NamesQuery),
    responses(
        (status = 200, description = "The names.", content((String = "application/x-ndjson"))),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn names(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<NamesQuery>,
) -> Done<Response> {
    check_text("filter", &query.filter)?;
    let lease = found(&api, &known, id.clone()).await?;
    let NamesQuery { filter, hidden } = query;
    let ask = move |offset| Ask::Names { listing: id.clone(), filter: filter.clone(), hidden, offset };
    // What is wrong from the start is a problem, and no answer that is cut.
    let first = lease.ask(ask(0), b"")?.answer().await?;
    stream::lines(api, known, |pieces| async move {
        let (mut text, mut offset) = (first, 0);
        while !text.is_empty() {
            offset += text.iter().filter(|byte| **byte == b'\n').count();
            if !pieces.send(text).await {
                return Ok(());
            }
            text = lease.ask(ask(offset), b"")?.answer().await?;
        }
        Ok(())
    })
}

/// Drops a listing.
#[utoipa::path(
    delete, path = "/listings/{id}", tag = "files", params(("id" = String, Path, description = "The listing.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn remove(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
) -> Done<StatusCode> {
    let caller = Arc::clone(&known.caller);
    api.run(move |api| api.check(&caller, Verb::Read, Object::Nothing)).await?;
    if api.listings.remove(&known.caller, &id) { Ok(StatusCode::NO_CONTENT) } else { Err(gone()) }
}
