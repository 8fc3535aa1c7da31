//! Whether the service lives, and whether it can take on work.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::Api;
use super::problem::{ApiError, Done};
use crate::model::ProblemCode;

/// The process answers.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The ledger takes writes, and the loop runs. Why not stands in the log: anybody may ask this.
pub(super) async fn readyz(State(api): State<Arc<Api>>) -> Done<&'static str> {
    if *api.stopping.borrow() {
        return Err(ApiError::stopping());
    }
    let ready = api.run(|api| {
        api.ledger.probe()?;
        api.backend.health().map_err(|why| {
            tracing::warn!(target: "carrack::api", "not ready: {why}");
            let detail = "the service takes on no work at present";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::Internal, detail).retry_after(10)
        })?;
        Ok("ready\n")
    });
    ready.await
}
