//! Routes that do one thing at an endpoint: make a directory, rename, describe.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use tokio::sync::oneshot;
use utoipa::IntoParams;

use super::{audit, lease, path};
use crate::api::Api;
use crate::api::caller::Known;
use crate::api::extract::{Body, PathOf, QueryOf};
use crate::api::problem::{ApiError, Done};
use crate::files::{Answer, Conversation, FilesError};
use crate::model::{FileEntry, FileProperties, FileRename, NewDirectory, Problem, TokenUse, Verb, text_of};
use crate::worker::files::Ask;

/// Makes a directory at an endpoint.
#[utoipa::path(
    post, path = "/endpoints/{name}/files/mkdir", tag = "files",
    params(("name" = String, Path, description = "The endpoint.")), request_body = NewDirectory,
    responses(
        (status = 204, description = "It is made."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn make_directory(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    Body(new): Body<NewDirectory>,
) -> Done<StatusCode> {
    let at = path("path", &new.path)?;
    let (caller, endpoint, wanted) = (Arc::clone(&known.caller), name.clone(), at.clone());
    let lease = api.run(move |api| {
        let lease = lease(api, &caller, &endpoint, &[(Verb::Write, &wanted)])?;
        api.count_use(&caller, TokenUse::of(1, 0)).map(|()| lease)
    });
    let lease = lease.await?;
    let ask = Ask::MakeDirectory { path: at.to_string(), parents: new.parents };
    let made = carry_out(lease.ask(ask, b""), move |made| audit(&known.caller, &name, "mkdir", &at, made));
    made.await.map(|()| StatusCode::NO_CONTENT)
}

/// Renames something at an endpoint. What has the new path already is replaced only where that is asked for, and
/// never where it is a directory.
#[utoipa::path(
    post, path = "/endpoints/{name}/files/rename", tag = "files",
    params(("name" = String, Path, description = "The endpoint.")), request_body = FileRename,
    responses(
        (status = 204, description = "It has the new path."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn rename(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    Body(wanted): Body<FileRename>,
) -> Done<StatusCode> {
    let (from, to) = (path("from", &wanted.from)?, path("to", &wanted.to)?);
    let (caller, endpoint, replace) = (Arc::clone(&known.caller), name.clone(), wanted.replace);
    let ends = (from.clone(), to.clone());
    let lease = api.run(move |api| {
        let mut rights = vec![(Verb::Write, &ends.0), (Verb::Write, &ends.1)];
        if replace {
            rights.push((Verb::Delete, &ends.1));
        }
        let lease = lease(api, &caller, &endpoint, &rights)?;
        let more = TokenUse { deletions: u64::from(replace), ..TokenUse::of(1, 0) };
        api.count_use(&caller, more).map(|()| lease)
    });
    let ask = Ask::Rename { from: from.to_string(), to: to.to_string(), replace };
    let renamed = carry_out(lease.await?.ask(ask, b""), move |renamed| {
        audit(&known.caller, &name, "rename", &from, renamed);
        audit(&known.caller, &name, "rename-to", &to, renamed);
    });
    renamed.await.map(|()| StatusCode::NO_CONTENT)
}

/// What is described.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct PropertiesQuery {
    /// The path, below the endpoint's root; begins with `/`.
    path: String,
}

/// Describes what a path of an endpoint is. A symbolic link is not followed.
#[utoipa::path(
    get, path = "/endpoints/{name}/files/properties", tag = "files",
    params(("name" = String, Path, description = "The endpoint."), PropertiesQuery),
    responses(
        (status = 200, description = "What it is.", body = FileProperties),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn properties(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<PropertiesQuery>,
) -> Done<Json<FileProperties>> {
    let at = path("path", &query.path)?;
    let wanted = at.clone();
    let lease = api.run(move |api| lease(api, &known.caller, &name, &[(Verb::Read, &wanted)])).await?;
    let told = one(lease.ask(Ask::Properties { path: at.to_string() }, b"")).await?;
    let entry: FileEntry = serde_json::from_slice(&told).map_err(ApiError::internal)?;
    Ok(Json(FileProperties { path: format!("/{}", text_of(&at.bytes())), entry }))
}

/// Sees a request that changes something through to its end, and has that noted. When the client goes away the worker
/// is told to give the request up, and what became of it is noted all the same.
async fn carry_out(
    asked: Result<Conversation, FilesError>,
    note: impl FnOnce(Result<(), &FilesError>) + Send + 'static,
) -> Done<()> {
    // Dropped with this future, which is dropped when the client goes away.
    let (_here, left) = oneshot::channel::<()>();
    let seen_through = tokio::spawn(async move {
        let left = async { drop(left.await) };
        let told = match asked {
            Ok(asked) => asked.answer_unless(left).await.map(drop),
            Err(error) => Err(error),
        };
        note(told.as_ref().copied());
        told
    });
    seen_through.await.map_err(ApiError::internal)?.map_err(Into::into)
}

/// The answer of a request that has one part.
pub(super) async fn one(asked: Result<Conversation, FilesError>) -> Result<Answer, FilesError> {
    asked?.answer().await
}
