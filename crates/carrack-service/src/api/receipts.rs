//! Receipts of tasks, and the key that signs them.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::caller::Known;
use super::extract::{PathOf, QueryOf};
use super::problem::{ApiError, Done};
use super::stream::channel;
use crate::model::{Problem, ProblemCode, ReceiptSigner, Verb};

/// Bytes that are read and sent at once.
const PIECE_BYTES: usize = 256 << 10;

/// Which receipt is meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReceiptQuery {
    /// Of which pair of the task, from 0.
    #[serde(default)]
    pair: u32,
}

/// The signed receipt of a pair of a task: lines of JSON, then an SSH signature.
#[utoipa::path(
    get, path = "/tasks/{id}/receipt", tag = "tasks",
    params(("id" = String, Path, description = "The task."), ReceiptQuery),
    responses(
        (status = 200, description = "The receipt.", body = String, content_type = "application/x-ndjson"),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<ReceiptQuery>,
) -> Done<Response> {
    let (caller, task) = (Arc::clone(&known.caller), id.clone());
    let opened = api.run(move |api| {
        let found = api.task_of(&caller, &task, Verb::View)?;
        let opened = api.backend.receipt(&task, query.pair);
        let opened = opened.map_err(|why| ApiError::internal(format!("the receipt of task {task}: {why}")))?;
        opened.ok_or_else(|| {
            let why = match found.request.receipt {
                false => "the task was not to leave one: submit it with receipt",
                true => "none was made: the pair has not come to its end, or the task's events say why",
            };
            ApiError::new(
                StatusCode::NOT_FOUND,
                ProblemCode::NotFound,
                format!("no receipt of pair {} is there: {why}", query.pair),
            )
        })
    });
    let mut file: Option<File> = Some(opened.await?);
    let place = api.stream(&known, 1)?;
    let (pieces, body) = channel();
    tokio::spawn(async move {
        let _place = place;
        while let Some(mut reading) = file.take() {
            let read = api.run(move |_| {
                let mut piece = vec![0; PIECE_BYTES];
                let count = reading.read(&mut piece).map_err(|error| ApiError::internal(error.to_string()))?;
                piece.truncate(count);
                Ok((reading, piece))
            });
            match read.await {
                Ok((reading, piece)) if !piece.is_empty() => {
                    if !pieces.send(piece).await {
                        return;
                    }
                    file = Some(reading);
                }
                // A receipt that is cut has no signature: its reader sees that.
                _ => return,
            }
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// The key with which this service signs receipts: to be kept by whoever verifies them.
#[utoipa::path(
    get, path = "/receipts/key", tag = "tasks",
    responses(
        (status = 200, description = "The public key.", body = ReceiptSigner),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn key(State(api): State<Arc<Api>>, _: Known) -> Json<ReceiptSigner> {
    let key = api.backend.receipt_key();
    Json(ReceiptSigner { key: key.to_string(), fingerprint: key.fingerprint() })
}
