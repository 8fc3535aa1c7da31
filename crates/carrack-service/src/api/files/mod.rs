//! Routes of files: what a caller sees and changes at an endpoint. A right is looked at here, before a file worker
//! hears of the request; the worker's own order lets it do no more than the caller may.

mod content;
mod leftovers;
mod listings;
mod operations;
mod order;
mod range;
mod relay;
mod stream;
mod totals;
mod uploads;

pub(super) use content::{__path_archive, __path_content, archive, content};
pub(super) use leftovers::{__path_leftovers, __path_remove_leftovers, leftovers, remove_leftovers};
pub(super) use listings::{__path_add, __path_names, __path_remove, __path_show, add, names, remove, show};
pub(super) use operations::{
    __path_make_directory, __path_properties, __path_rename, make_directory, properties, rename,
};

pub(super) use totals::{__path_sum, __path_usage, sum, usage};
pub(super) use uploads::{
    __path_publish, __path_put_block, __path_remove_upload, __path_show_upload, __path_upload, publish, put_block,
    remove_upload, show_upload, upload,
};

use axum::http::StatusCode;
use carrack_core::failure::{Blame, ErrorCode};

use super::Api;
use super::problem::{ApiError, Done};
use crate::files::{FilesError, Lease};
use crate::identity::{Caller, Object, ScopePath};
use crate::model::{FileFailure, ProblemCode, Verb};

/// A path of a request.
fn path(name: &str, text: &str) -> Done<ScopePath> {
    ScopePath::parse(text).map_err(|error| ApiError::malformed(format!("{name}: {error}")))
}

/// The worker of a caller at an endpoint, where they may do all of this there. It blocks: on the ledger, and while a
/// process starts.
fn lease(api: &Api, caller: &Caller, endpoint: &str, wanted: &[(Verb, &ScopePath)]) -> Done<Lease> {
    // First what does not depend on the endpoint: whether there is one must not show in the answer.
    for (verb, _) in wanted {
        api.check(caller, *verb, Object::Nothing)?;
    }
    let row = api.ledger.endpoint(endpoint)?;
    for (verb, path) in wanted {
        api.check(caller, *verb, Object::Endpoint { endpoint: &row.endpoint, path: Some(path) })?;
    }
    let key = order::key(caller, &row.endpoint);
    api.files.lease(&key, || order::make(api, caller, &row, &key))
}

impl Api {
    /// Ends the file workers of a user's sessions, and of their tokens, which get others.
    pub(super) fn end_file_workers_of_logins(&self, user: &str) {
        self.files.end_where("the user's sessions have ended", |key| key.user == user && key.token.is_some());
    }
}

/// Tells the log of something that changes files.
fn audit(caller: &Caller, endpoint: &str, verb: &str, path: &ScopePath, outcome: Result<(), &FilesError>) {
    let outcome = outcome.map_or_else(ToString::to_string, |()| "done".to_owned());
    let token = caller.token.as_deref().unwrap_or("-");
    tracing::info!(target: "carrack::audit", user = %caller.user, token, endpoint, verb, %path, outcome, "files");
}

impl From<FilesError> for ApiError {
    fn from(error: FilesError) -> Self {
        let detail = error.to_string();
        match error {
            FilesError::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, ProblemCode::TooMany, detail).retry_after(2),
            FilesError::Stopping => Self::stopping(),
            FilesError::Lost(_) => {
                Self::new(StatusCode::BAD_GATEWAY, ProblemCode::WorkerLost, detail).hint("try again")
            }
            FilesError::OverTime => Self::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, detail),
            FilesError::Failed(failure) => of_failure(failure),
        }
    }
}

/// What the endpoint has said, as a problem.
fn of_failure(failure: FileFailure) -> ApiError {
    let FileFailure { code: name, message, hints } = failure;
    let code = ErrorCode::ALL.iter().copied().find(|code| code.name() == name).unwrap_or(ErrorCode::Other);
    let (status, kind) = match code {
        ErrorCode::NotFound | ErrorCode::SourceVanished => (StatusCode::NOT_FOUND, ProblemCode::NotFound),
        ErrorCode::AlreadyExists => (StatusCode::CONFLICT, ProblemCode::Exists),
        ErrorCode::PermissionDenied | ErrorCode::NodeReadOnly | ErrorCode::OutsideRoot => {
            (StatusCode::FORBIDDEN, ProblemCode::Denied)
        }
        ErrorCode::Busy => (StatusCode::TOO_MANY_REQUESTS, ProblemCode::TooMany),
        // What a task would wait for, the caller may try again.
        _ => match code.blame() {
            Blame::Network | Blame::Authorization | Blame::Peer => (StatusCode::BAD_GATEWAY, ProblemCode::Unreachable),
            Blame::Carrack => (StatusCode::BAD_GATEWAY, ProblemCode::FilesFailed),
            Blame::File | Blame::User => (StatusCode::CONFLICT, ProblemCode::FilesFailed),
        },
    };
    hints.into_iter().fold(ApiError::new(status, kind, message), ApiError::hint)
}
