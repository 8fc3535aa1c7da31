//! Errors of the API, as problem documents. What is the service's own fault is logged, and answered without detail.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::identity::RequestFault;
use crate::ledger::LedgerError;
use crate::model::{Problem, ProblemCode, Verb};

/// Why a request is not answered with what it asked for.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    code: ProblemCode,
    detail: String,
    hints: Vec<String>,
    /// Seconds until another try makes sense.
    retry_after: Option<u64>,
}

/// What a handler gives.
pub(super) type Done<T> = Result<T, ApiError>;

impl ApiError {
    pub fn new(status: StatusCode, code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), hints: Vec::new(), retry_after: None }
    }

    /// The same with what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ProblemCode::Malformed, detail)
    }

    /// There is no such thing, or it is another's: nobody can tell which.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, ProblemCode::NotFound, "it does not exist, or belongs to somebody else")
    }

    pub fn forbidden(rule: &'static str) -> Self {
        let error = Self::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, format!("you may not do this ({rule})"));
        match rule {
            "scope-other-path" | "scope-one-endpoint" | "scope-path-of-several" => {
                error.hint("use a token whose scope allows it, or log in")
            }
            "scope-wider" => {
                error.hint("a token makes no token that allows more, or lasts longer, than itself: log in")
            }
            "scope-no-logins" => error.hint("a token with a scope changes nobody's logins: log in, or use one without"),
            "raw-location" => error.hint("name an endpoint: @NAME:/path; an admin can add one"),
            "endpoint-read-only" => error.hint("the endpoint is read-only: its owner can change that"),
            "endpoint-uploads-off" => error.hint("its owner turns uploads on: carrack endpoint edit NAME --uploads"),
            "role-lacks-verb" => error.hint("an admin can give you another role"),
            _ => error,
        }
    }

    /// A token without verbs that are needed.
    pub fn lacks(missing: &[Verb]) -> Self {
        let names = missing.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(",");
        let detail = format!("the token may not do this: its scope lacks {names} (scope-lacks-verb)");
        let hint = format!("make a token with {names} among its --verbs: carrack service token create; or log in");
        Self::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, detail).hint(hint)
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ProblemCode::Conflict, detail)
    }

    /// Somebody has changed it since the caller read it.
    pub fn version_differs(now: u64) -> Self {
        let detail = format!("it has changed meanwhile: its version is {now}");
        Self::new(StatusCode::PRECONDITION_FAILED, ProblemCode::VersionDiffers, detail)
            .hint("read it again, and send what is still to be changed with its new version")
    }

    /// The service's own fault: the detail is for its log.
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        tracing::error!(target: "carrack::api", "{detail}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ProblemCode::Internal,
            "the service has a fault; its log says what happened",
        )
    }

    pub fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::Stopping, "the service ends").retry_after(5)
    }

    /// Whether it is the service's own fault, and would be met by every other call, too.
    pub fn is_of_service(&self) -> bool {
        self.status.is_server_error()
    }

    /// The host gives the service no thread to do it with.
    pub fn short_of_threads(why: &std::io::Error) -> Self {
        let detail = format!("the service's host has reached a limit: {why}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::TooMany, detail).retry_after(5)
    }

    /// The document, for those who answer by themselves.
    pub fn problem(&self) -> Problem {
        Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            code: self.code,
            hints: self.hints.clone(),
        }
    }
}

impl From<LedgerError> for ApiError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Missing => Self::not_found(),
            LedgerError::Conflict(why) => Self::conflict(why),
            LedgerError::Taken => Self::new(StatusCode::CONFLICT, ProblemCode::NameTaken, "the name is taken"),
            LedgerError::Fenced => Self::conflict("a later attempt has taken over"),
            LedgerError::Full(why) => {
                tracing::error!(target: "carrack::api", "storage: {why}");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::StorageFull, "the service's storage is full")
                    .hint("tasks under way go on; an operator has to make room in the state directory")
                    .retry_after(60)
            }
            LedgerError::Held(why) => {
                tracing::warn!(target: "carrack::api", "storage: {why}");
                let detail = "another program holds the service's ledger at present";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::LedgerHeld, detail)
                    .hint("ask again a little later; an operator finds the program by lsof on ledger.db")
                    .retry_after(2)
            }
            LedgerError::Broken(why) => Self::internal(why),
        }
    }
}

impl From<RequestFault> for ApiError {
    fn from(fault: RequestFault) -> Self {
        match &fault {
            RequestFault::Wrong(why) => Self::malformed(why),
            RequestFault::NoEndpoint { .. } => {
                Self::new(StatusCode::NOT_FOUND, ProblemCode::NotFound, fault.to_string())
                    .hint("`carrack endpoint list` names those that you may use")
            }
            RequestFault::Lacks { kind, verbs } => {
                let mut error = Self::lacks(verbs);
                error.detail = format!("a {} task: {}", kind.name(), error.detail);
                error
            }
            RequestFault::Forbidden { location, rule } => {
                let mut error = Self::forbidden(rule);
                error.detail = format!("{location}: {}", error.detail);
                error
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.problem()).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"carrack\""));
        }
        response
    }
}
