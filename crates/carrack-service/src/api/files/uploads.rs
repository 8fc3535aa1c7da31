//! Routes of uploads: a file comes in blocks, each with its digest, and is copied to its endpoint once all are there.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, body};
use carrack_core::failure::ErrorCode;
use carrack_core::limits;
use hyper::body::Body as _;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{audit, lease, path};
use crate::api::caller::Known;
use crate::api::extract::{Body, PathOf, QueryOf};
use crate::api::problem::{ApiError, Done};
use crate::api::{Api, bodies};
use crate::files::{Conversation, FilesError, FoundUpload, Lease, Publishing, Refused};
use crate::identity::{Caller, Object, ScopePath};
use crate::model::{FileEntry, FileFailure, NewUpload, Problem, ProblemCode, TokenUse, Upload, UploadState, Verb};
use crate::worker::files::Ask;
use crate::worker::files::spool::{SpoolEnd, SpoolRequest};

/// How long an answer waits for a state.
const WAIT: Duration = Duration::from_secs(10);

/// Begins an upload, or goes on with one: the same file for the same path has the same id, whatever ended meanwhile.
/// The endpoint must take uploads.
#[utoipa::path(
    post, path = "/endpoints/{name}/uploads", tag = "files",
    params(("name" = String, Path, description = "The endpoint.")), request_body = NewUpload,
    responses(
        (status = 201, description = "The upload, new.", body = Upload),
        (status = 200, description = "The upload, which was there already.", body = Upload),
        (status = 507, description = "The service has no room for it.", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn upload(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    Body(mut new): Body<NewUpload>,
) -> Done<Response> {
    new.check().map_err(ApiError::malformed)?;
    let at = path("path", &new.path)?;
    if at == ScopePath::root() {
        return Err(ApiError::malformed("path: the root is no file"));
    }
    new.path = at.to_string();
    let request = SpoolRequest { user: known.caller.user.clone(), endpoint: name, upload: new };
    let (caller, asked) = (Arc::clone(&known.caller), request.clone());
    let (lease, found) = api
        .run(move |api| {
            let lease = writer(api, &caller, &asked)?;
            Ok((lease, api.uploads.find(&caller.user, &asked.id())))
        })
        .await?;
    let is_new = match found {
        Some(found) => !is_kept(&api, &lease, &found).await?,
        None => true,
    };
    let (caller, endpoint) = (Arc::clone(&known.caller), request.endpoint.clone());
    let begun = api.run(move |api| {
        let (user, id) = (request.user.clone(), request.id());
        if is_new {
            api.count_use(&caller, TokenUse::of(1, request.upload.size))?;
            api.uploads.begin(request).map_err(refused)?;
            audit(&caller, &endpoint, "upload", &at, Ok(()));
        } else {
            api.uploads.go_on(request).map_err(system)?;
        }
        document(&api.uploads.find(&user, &id).ok_or_else(ApiError::not_found)?)
    });
    let begun = begun.await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(begun)).into_response())
}

/// Whether what is kept of an upload is of use: a file that was published and is not there any more has to come again.
async fn is_kept(api: &Arc<Api>, lease: &Lease, found: &FoundUpload) -> Done<bool> {
    let spool = found.spool.clone();
    let end = api.run(move |_| spool.end().map_err(system)).await?;
    let Some(SpoolEnd { failure: None, size, modified }) = end else { return Ok(true) };
    match lease.ask(Ask::Properties { path: found.request.upload.path.clone() }, b"")?.answer().await {
        Ok(told) => {
            let entry: FileEntry = serde_json::from_slice(&told).map_err(ApiError::internal)?;
            Ok(entry.size == size && entry.modified == modified)
        }
        // What cannot be looked at comes again.
        Err(FilesError::Failed(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Lets pass who may upload this. `puts`: the request brings something, so the endpoint must take uploads.
fn check(api: &Api, caller: &Caller, request: &SpoolRequest, puts: bool) -> Done<()> {
    let at = path("path", &request.upload.path)?;
    // First what does not depend on the endpoint: whether there is one must not show in the answer.
    api.check(caller, Verb::Write, Object::Nothing)?;
    let endpoint = api.ledger.endpoint(&request.endpoint)?.endpoint;
    api.check(caller, Verb::Write, Object::Endpoint { endpoint: &endpoint, path: Some(&at) })?;
    if puts && !endpoint.uploads {
        let rule = "endpoint-uploads-off";
        return Err(api.refused(caller, Verb::Write, rule, ApiError::forbidden(rule)));
    }
    Ok(())
}

/// The worker of a caller who may upload this.
fn writer(api: &Api, caller: &Caller, request: &SpoolRequest) -> Done<Lease> {
    check(api, caller, request, true)?;
    lease(api, caller, &request.endpoint, &[(Verb::Write, &path("path", &request.upload.path)?)])
}

/// An upload of the caller, who may still write there.
fn own(api: &Api, known: &Known, id: &str, puts: bool) -> Done<FoundUpload> {
    // First what does not depend on the upload: whether there is one must not show in the answer.
    api.check(&known.caller, Verb::Write, Object::Nothing)?;
    let found = api.uploads.find(&known.caller.user, id).ok_or_else(ApiError::not_found)?;
    check(api, &known.caller, &found.request, puts)?;
    Ok(found)
}

fn document(found: &FoundUpload) -> Done<Upload> {
    match found.document() {
        // It was removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ApiError::not_found()),
        other => other.map_err(system),
    }
}

fn full(detail: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, ProblemCode::StorageFull, detail)
}

fn refused(error: Refused) -> ApiError {
    match error {
        Refused::Full(why) => full(why).hint("end or remove your other uploads; `carrack copy` has no such bound"),
        Refused::System(error) => system(error),
    }
}

fn system(error: io::Error) -> ApiError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            full("the disk of the service's state directory is full").hint("an operator has to make room there")
        }
        _ => ApiError::internal(format!("an upload's spool: {error}")),
    }
}

/// Which state is waited for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct UploadQuery {
    /// The answer waits up to 10 s for this state, or for the end of publishing.
    wait: Option<UploadState>,
}

/// Shows an upload of the caller, and which blocks are missing.
#[utoipa::path(
    get, path = "/uploads/{id}", tag = "files", params(("id" = String, Path, description = "The upload."), UploadQuery),
    responses(
        (status = 200, description = "The upload.", body = Upload),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn show_upload(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<UploadQuery>,
) -> Done<Json<Upload>> {
    let (mut changed, mut stopping) = (api.uploads.watch(), api.stopping.subscribe());
    let until = tokio::time::Instant::now() + WAIT;
    loop {
        changed.borrow_and_update();
        let (known, id) = (known.clone(), id.clone());
        let now = api.run(move |api| document(&own(api, &known, &id, false)?)).await?;
        let has_ended = matches!(now.state, UploadState::Published | UploadState::Failed);
        if query.wait.is_none_or(|wanted| wanted == now.state) || has_ended {
            return Ok(Json(now));
        }
        let is_over = tokio::select! {
            told = changed.changed() => told.is_err(),
            () = tokio::time::sleep_until(until) => true,
            _ = stopping.wait_for(|is_stopping| *is_stopping) => true,
        };
        if is_over {
            return Ok(Json(now));
        }
    }
}

/// Takes a block of an upload. It is kept, on stable storage, once it is the block whose digest was given.
#[utoipa::path(
    put, path = "/uploads/{id}/blocks/{n}", tag = "files",
    params(("id" = String, Path, description = "The upload."), ("n" = u32, Path, description = "Which block, from 0.")),
    request_body(content = String, content_type = "application/octet-stream", description = "The block."),
    responses(
        (status = 204, description = "It is kept."),
        (status = 409, description = "It is another block than its digest says: nothing is kept.", body = Problem,
            content_type = "application/problem+json"),
        (status = 507, description = "The service has no room for it.", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn put_block(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf((id, block)): PathOf<(String, u32)>,
    request: Request,
) -> Done<StatusCode> {
    let (found, now, lease) = api
        .run(move |api| {
            let found = own(api, &known, &id, true)?;
            let now = document(&found)?;
            let lease = writer(api, &known.caller, &found.request)?;
            Ok((found, now, lease))
        })
        .await?;
    let upload = &found.request.upload;
    let place = usize::try_from(block).unwrap_or(usize::MAX);
    let (Some(length), Some(digest)) = (upload.block_length(block), upload.blocks.get(place)) else {
        return Err(ApiError::not_found());
    };
    if matches!(now.state, UploadState::Publishing | UploadState::Published) {
        return Err(ApiError::conflict("the upload takes no blocks any more: all are there"));
    }
    // The block, and as much again on its way to the worker.
    let most = limits::UPLOAD_BLOCK_BYTES as usize;
    let declared = request.body().size_hint().exact().and_then(|length| usize::try_from(length).ok());
    bodies::reserve(&api.bodies, request.extensions(), 2 * declared.unwrap_or(most).min(most)).await?;
    let bytes = body::to_bytes(request.into_body(), most).await;
    let bytes = bytes.map_err(|_| ApiError::malformed("the block did not come whole, or is longer than a block is"))?;
    if bytes.len() != length {
        return Err(differs(format!("block {block} has {length} bytes, and {} came", bytes.len())));
    }
    let (spool, offset) = (found.spool.directory().to_owned(), upload.block_offset(block));
    let ask = Ask::PutBlock { spool, block, offset, digest: digest.clone() };
    match lease.ask(ask, &bytes)?.answer().await {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(FilesError::Failed(failure)) => Err(of_block(failure)),
        Err(error) => Err(error.into()),
    }
}

fn differs(detail: String) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, ProblemCode::DigestMismatch, detail)
        .hint("the file has changed since it was hashed, or the block was damaged: begin the upload again")
}

fn of_block(failure: FileFailure) -> ApiError {
    let is = |code: ErrorCode| failure.code == code.name();
    if is(ErrorCode::DigestMismatch) {
        differs(failure.message)
    } else if is(ErrorCode::NoSpace) || is(ErrorCode::QuotaExceeded) {
        full(failure.message).hint("an operator has to make room in the service's state directory")
    } else if is(ErrorCode::NotFound) {
        // The upload was removed meanwhile.
        ApiError::not_found()
    } else {
        FilesError::Failed(failure).into()
    }
}

/// Publishes an upload whose blocks are all there: the file is copied to its endpoint, and gets its name there once it
/// is whole and verified. This goes on after the answer; the upload tells how it ends.
#[utoipa::path(
    post, path = "/uploads/{id}/publish", tag = "files", params(("id" = String, Path, description = "The upload.")),
    responses(
        (status = 202, description = "The upload.", body = Upload),
        (status = 409, description = "Blocks are missing.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn publish(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
) -> Done<Response> {
    let asker = known.clone();
    let begun = api.run(move |api| {
        let found = own(api, &asker, &id, true)?;
        let now = document(&found)?;
        if !now.missing.is_empty() {
            return Err(ApiError::conflict("blocks are missing").hint("the upload's document says which"));
        }
        let lease = writer(api, &asker.caller, &found.request)?;
        let publishing = if now.state == UploadState::Published { None } else { api.uploads.publish(&found.id) };
        if publishing.is_some() {
            found.spool.forget_end().map_err(system)?;
        }
        Ok((found, lease, publishing))
    });
    let (found, lease, publishing) = begun.await?;
    if let Some(publishing) = publishing {
        let copied = lease.ask(Ask::Publish { spool: found.spool.directory().to_owned() }, b"")?;
        tokio::spawn(follow(Arc::clone(&api), Arc::clone(&known.caller), publishing, found.clone(), copied));
    }
    let now = api.run(move |api| {
        let (user, id) = (&found.request.user, &found.id);
        document(&api.uploads.find(user, id).ok_or_else(ApiError::not_found)?)
    });
    Ok((StatusCode::ACCEPTED, Json(now.await?)).into_response())
}

/// Waits for the end of publishing, and keeps it.
async fn follow(api: Arc<Api>, caller: Arc<Caller>, publishing: Publishing, found: FoundUpload, copied: Conversation) {
    let told = copied.answer().await;
    if let Ok(at) = path("path", &found.request.upload.path) {
        audit(&caller, &found.request.endpoint, "publish", &at, told.as_ref().map(drop));
    }
    let failure = told.err().map(|error| match error {
        // The same word as a problem has.
        FilesError::Failed(failure) if failure.code == ErrorCode::AlreadyExists.name() => {
            FileFailure { code: ProblemCode::Exists.name().to_owned(), ..failure }
        }
        FilesError::Failed(failure) => failure,
        other => FileFailure {
            code: ProblemCode::WorkerLost.name().to_owned(),
            message: other.to_string(),
            hints: vec!["publish it again: all of it is at the service".to_owned()],
        },
    });
    // What is written nobody waits for.
    let _ = api
        .run(move |_| {
            publishing.end(failure);
            Ok(())
        })
        .await;
}

/// Removes an upload of the caller, with all blocks. A file that is published stays.
#[utoipa::path(
    delete, path = "/uploads/{id}", tag = "files", params(("id" = String, Path, description = "The upload.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn remove_upload(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
) -> Done<StatusCode> {
    let caller = Arc::clone(&known.caller);
    let removed = api.run(move |api| {
        let found = own(api, &known, &id, false)?;
        Ok(api.uploads.remove(&found.id).map_err(system)?.then_some(found))
    });
    let Some(found) = removed.await? else {
        return Err(ApiError::conflict("the upload is being published").hint("wait until it has ended"));
    };
    if let Ok(at) = path("path", &found.request.upload.path) {
        audit(&caller, &found.request.endpoint, "remove-upload", &at, Ok(()));
    }
    Ok(StatusCode::NO_CONTENT)
}
