//! What handlers take out of a request; whatever is wrong with it becomes a problem document.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

use super::problem::{ApiError, Done};
use crate::model::ProblemCode;

/// A body of JSON.
pub(super) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match Json::from_request(request, state).await {
            Ok(Json(document)) => Ok(Self(document)),
            Err(rejection) => Err(of_json(&rejection)),
        }
    }
}

/// A body of JSON that may be left out.
pub(super) struct MaybeBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for MaybeBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        use axum::body::HttpBody;
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        Body::from_request(request, state).await.map(|Body(document)| Self(document))
    }
}

fn of_json(rejection: &JsonRejection) -> ApiError {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let detail = "the request's body is larger than the service takes";
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ProblemCode::TooLarge, detail)
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            let detail = "the request's body has to be application/json";
            ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ProblemCode::Malformed, detail)
        }
        _ => ApiError::malformed(sentence(&rejection.body_text())),
    }
}

/// What is wrong with a document, without the words of the libraries that read it.
fn sentence(told: &str) -> &str {
    let told = told.strip_prefix("Failed to deserialize the JSON body into the target type: ").unwrap_or(told);
    let is_place = |rest: &str| {
        let numbers = rest.split_once(" column ");
        numbers.is_some_and(|(line, column)| [line, column].iter().all(|text| text.parse::<u64>().is_ok()))
    };
    match told.rsplit_once(" at line ") {
        Some((sentence, place)) if is_place(place) => sentence,
        _ => told,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_that_is_refused_is_told_by_its_field_and_a_sentence() {
        let wrapped = "Failed to deserialize the JSON body into the target type: options.verify: \"yes\": use wire \
                       at line 1 column 98";
        assert_eq!(sentence(wrapped), "options.verify: \"yes\": use wire");
        // A value of the user's is not cut.
        assert_eq!(sentence("label: \"x at line 1 column 2\" is long"), "label: \"x at line 1 column 2\" is long");
        assert_eq!(sentence("a at line one column 2"), "a at line one column 2");
    }
}
