//! Routes that read all of something, and tell how far they are: what paths take, and the digest of a file.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::{lease, path, stream};
use crate::api::Api;
use crate::api::caller::Known;
use crate::api::extract::{Body, PathOf};
use crate::api::problem::{ApiError, Done};
use crate::files::FilesError;
use crate::identity::ScopePath;
use crate::model::{FileEntry, FileKind, Problem, SumRequest, TokenUse, UsageRequest, Verb};
use crate::worker::files::Ask;

/// Paths of one request.
const PATHS_MAX: usize = 1000;
/// How often a line says that a digest is still being made.
const ALIVE: Duration = Duration::from_secs(5);

/// Counts what paths and everything below them take: lines of progress, at most two a second, the last with `done`.
#[utoipa::path(
    post, path = "/endpoints/{name}/files/du", tag = "files",
    params(("name" = String, Path, description = "The endpoint.")), request_body = UsageRequest,
    responses(
        (status = 200, description = "Lines, each a `DiskUsage`.", content((String = "application/x-ndjson"))),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn usage(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    Body(request): Body<UsageRequest>,
) -> Done<Response> {
    if request.paths.is_empty() || request.paths.len() > PATHS_MAX {
        return Err(ApiError::malformed(format!("paths: 1 to {PATHS_MAX}")));
    }
    let paths = request.paths.iter().map(|text| path("paths", text)).collect::<Done<Vec<ScopePath>>>()?;
    let asked = paths.iter().map(ToString::to_string).collect();
    let caller = Arc::clone(&known.caller);
    let lease = api.run(move |api| {
        let wanted: Vec<_> = paths.iter().map(|path| (Verb::Read, path)).collect();
        lease(api, &caller, &name, &wanted)
    });
    let mut counted = lease.await?.ask(Ask::Usage { paths: asked }, b"")?;
    stream::lines(api, known, |pieces| async move {
        while let Some(part) = counted.next().await? {
            let mut line = part.body;
            line.push(b'\n');
            if !pieces.send(line).await {
                break;
            }
        }
        Ok(())
    })
}

/// Digests a file at its endpoint: lines that say that it goes on, the last with `done` and the digest, or the failure.
#[utoipa::path(
    post, path = "/endpoints/{name}/files/sum", tag = "files",
    params(("name" = String, Path, description = "The endpoint.")), request_body = SumRequest,
    responses(
        (status = 200, description = "Lines; the last has `done`, and a `FileDigest` or `failure`.",
            content((String = "application/x-ndjson"))),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn sum(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    Body(request): Body<SumRequest>,
) -> Done<Response> {
    if request.digest.as_ref().is_some_and(|digest| digest != "blake3") {
        return Err(ApiError::malformed("digest: blake3"));
    }
    let at = path("path", &request.path)?;
    let (caller, wanted) = (Arc::clone(&known.caller), at.clone());
    let lease = api.run(move |api| lease(api, &caller, &name, &[(Verb::Read, &wanted)])).await?;
    if known.caller.ceilings().bytes.is_some() {
        let told = super::operations::one(lease.ask(Ask::Properties { path: at.to_string() }, b"")).await?;
        let FileEntry { kind, size, .. } = serde_json::from_slice(&told).map_err(ApiError::internal)?;
        if kind != FileKind::File {
            // Nobody knows before how much is behind it.
            return Err(ApiError::forbidden("scope-ceiling").hint("the token counts bytes: name a file itself"));
        }
        let caller = Arc::clone(&known.caller);
        api.run(move |api| api.count_use(&caller, TokenUse::of(0, size))).await?;
    }
    let mut summed = lease.ask(Ask::Sum { path: at.to_string() }, b"")?;
    stream::lines(api, known, |pieces| async move {
        let told = loop {
            match tokio::time::timeout(ALIVE, summed.next()).await {
                Ok(told) => break told,
                Err(_) => {
                    if !pieces.send("{\"done\":false}\n").await {
                        return Ok(());
                    }
                }
            }
        };
        let line = match told {
            Ok(part) => {
                let body = part.map(|part| part.body).unwrap_or_default();
                let mut document = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
                document["done"] = json!(true);
                document
            }
            Err(FilesError::Failed(failure)) => json!({ "done": true, "failure": failure }),
            Err(error) => return Err(error),
        };
        pieces.send(format!("{line}\n")).await;
        Ok(())
    })
}
