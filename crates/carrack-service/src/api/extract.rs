//! What handlers take out of a request; whatever is wrong with it becomes a problem document.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;

use super::documents::Document;
use super::problem::{ApiError, Done};
use super::{Api, bodies};

/// A handler that waits for others tells what it knows by then: in time, before the request is given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerWithin(pub Duration);

/// A body of JSON.
pub(super) struct Body<T>(pub T);

impl<T: Document> FromRequest<Arc<Api>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        bodies::document(api, request).await.map(Self)
    }
}

/// A body of JSON that may be left out.
pub(super) struct MaybeBody<T>(pub T);

impl<T: Document + Default> FromRequest<Arc<Api>> for MaybeBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        use axum::body::HttpBody;
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        Body::from_request(request, api).await.map(|Body(document)| Self(document))
    }
}

/// The query.
pub(super) struct QueryOf<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query: Result<Query<T>, QueryRejection> = Query::from_request_parts(parts, state).await;
        query.map(|Query(query)| Self(query)).map_err(|rejection| ApiError::malformed(rejection.body_text()))
    }
}

/// What stands in the path.
pub(super) struct PathOf<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path: Result<Path<T>, PathRejection> = Path::from_request_parts(parts, state).await;
        // A path that holds no name is nobody's.
        path.map(|Path(path)| Self(path)).map_err(|_| ApiError::not_found())
    }
}

/// The version that `If-Match` asks for; none: any.
pub(super) fn if_match(headers: &HeaderMap) -> Done<Option<u64>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let version = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).and_then(|text| text.parse().ok());
    version.map(Some).ok_or_else(|| ApiError::malformed("If-Match is the entity tag of one answer, like \"7\", or *"))
}

/// An entity tag.
pub(super) fn etag(version: u64) -> [(header::HeaderName, String); 1] {
    [(header::ETAG, format!("\"{version}\""))]
}

/// How many rows of a page are wanted, and behind which; see [`paged`].
pub(super) const LIMIT_DEFAULT: usize = 100;
pub(super) const LIMIT_MAX: usize = 1000;

/// The number of rows of a page.
pub(super) fn limit(wanted: Option<usize>) -> Done<usize> {
    match wanted {
        None => Ok(LIMIT_DEFAULT),
        Some(limit @ 1..=LIMIT_MAX) => Ok(limit),
        Some(_) => Err(ApiError::malformed(format!("limit: 1 to {LIMIT_MAX}"))),
    }
}

/// Makes a page of `limit` rows out of one row more, if there is one.
pub(super) fn paged<T>(mut rows: Vec<T>, limit: usize, id: impl Fn(&T) -> String) -> crate::model::Listed<T> {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(id);
    crate::model::Listed { items: rows, next }
}
