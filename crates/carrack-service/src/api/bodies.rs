//! Bodies of requests in memory: all of them together have a budget, and so has each caller. A body gets its part
//! before it is read, and gives it back when its request is answered.

use carrack_engine::sync::lock;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{Extensions, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::Body as _;

use super::Api;
use super::caller::{Known, unauthenticated};
use super::documents::{DOCUMENT_FACTOR, Document, SMALL_BYTES};
use super::problem::{ApiError, Done};
use super::shares::{Holder, Share, Shares};
use crate::model::ProblemCode;

/// What a document may say: its commas and colons. Small ones are those that take most memory for their text.
const VALUES_MAX: usize = 400_000;
/// How long a request waits for memory.
const PATIENCE: Duration = Duration::from_secs(5);

/// The shares of one request, until it is answered.
#[derive(Clone, Debug, Default)]
struct Held(Arc<Mutex<Vec<Share>>>);

/// Keeps what a request's body holds until the request is answered.
pub(super) async fn keep(mut request: Request, next: Next) -> Response {
    let held = Held::default();
    request.extensions_mut().insert(held.clone());
    let response = next.run(request).await;
    drop(held);
    response
}

/// Waits until the caller may hold so many bytes more; they are held until the request is answered.
pub(super) async fn reserve(shares: &Arc<Shares>, extensions: &Extensions, bytes: usize) -> Done<()> {
    let share = shares.wait_for(&Holder::of(extensions), bytes, PATIENCE).await;
    let share = share.ok_or_else(|| {
        let detail = "the service has no memory left for this body: too much is sent to it at once";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, ProblemCode::TooMany, detail).retry_after(2)
    })?;
    // Without a place to keep it, it would be given back while the body is there.
    let held = extensions.get::<Held>().ok_or_else(|| ApiError::internal("a body is read that nobody counts"))?;
    lock(&held.0).push(share);
    Ok(())
}

/// Reads a document, as far as the caller may send it.
pub(super) async fn document<T: Document>(api: &Arc<Api>, request: Request) -> Done<T> {
    let (parts, body) = request.into_parts();
    let declared = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if declared.is_some_and(|length| length > T::BYTES) {
        return Err(too_large());
    }
    if let (Some(action), true) = (T::ACTION, declared.is_none_or(|length| length > SMALL_BYTES)) {
        let known = parts.extensions.get::<Known>().ok_or_else(unauthenticated)?;
        api.check_anywhere(&known.caller, &action)?;
    }
    reserve(&api.bodies, &parts.extensions, DOCUMENT_FACTOR * declared.unwrap_or(T::BYTES)).await?;
    let bytes = to_bytes(body, T::BYTES).await.map_err(|error| unread(&error))?;
    if bytes.iter().filter(|byte| matches!(byte, b',' | b':')).count() > VALUES_MAX {
        return Err(too_large());
    }
    parse(parts, bytes).await
}

async fn parse<T: Document>(parts: axum::http::request::Parts, bytes: Bytes) -> Done<T> {
    let request = Request::from_parts(parts, Body::from(bytes));
    match Json::from_request(request, &()).await {
        Ok(Json(document)) => Ok(document),
        Err(rejection) => Err(of_json(&rejection)),
    }
}

/// Why a body did not come.
fn unread(error: &axum::Error) -> ApiError {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = cause {
        if one.is::<http_body_util::LengthLimitError>() {
            return too_large();
        }
        cause = one.source();
    }
    ApiError::malformed("the request's body did not come whole")
}

fn too_large() -> ApiError {
    let detail = "the request's body is larger than the service takes";
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ProblemCode::TooLarge, detail)
}

fn of_json(rejection: &JsonRejection) -> ApiError {
    match rejection.status() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::documents::{BODIES_BUDGET, TASK_BYTES};

    #[test]
    fn body_that_is_refused_is_told_by_its_field_and_a_sentence() {
        let wrapped = "Failed to deserialize the JSON body into the target type: options.verify: \"yes\": use wire \
                       at line 1 column 98";
        assert_eq!(sentence(wrapped), "options.verify: \"yes\": use wire");
        // A value of the user's is not cut.
        assert_eq!(sentence("label: \"x at line 1 column 2\" is long"), "label: \"x at line 1 column 2\" is long");
        assert_eq!(sentence("a at line one column 2"), "a at line one column 2");
    }

    #[test]
    fn budget_has_room_for_the_longest_task_and_leaves_as_much_for_others() {
        let shares = Shares::new(BODIES_BUDGET);
        let (one, other) = (Holder::User("one".to_owned()), Holder::User("other".to_owned()));
        let large = shares.take(&one, DOCUMENT_FACTOR * TASK_BYTES);
        assert!(large.is_some() && shares.take(&one, DOCUMENT_FACTOR * TASK_BYTES).is_none());
        assert!(shares.take(&other, DOCUMENT_FACTOR * SMALL_BYTES).is_some());
    }
}
