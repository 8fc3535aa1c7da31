//! The table of routes, and what stands before all of them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, http::Method};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Known;
use super::documents::TASK_BYTES;
use super::extract::AnswerWithin;
use super::host::OwnNames;
use super::leftover::Leftover;
use super::problem::ApiError;
use super::{
    Api, acts, admit, audit, bench, bodies, endpoints, events, faults, files, grants, health, host, items, login,
    metrics, nodes, openapi, options, overview, page, paths, query, receipts, sessions, tasks, timers, tokens, users,
};
use crate::model::ProblemCode;

/// The routes below `/api/v1` that the description tells of.
pub(super) fn documented() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(openapi::frame())
        .routes(routes!(tasks::list, tasks::submit))
        .routes(routes!(tasks::cancel_all))
        .routes(routes!(acts::acts))
        .routes(routes!(tasks::show, tasks::update))
        .routes(routes!(tasks::in_flight))
        .routes(routes!(tasks::pause))
        .routes(routes!(tasks::resume))
        .routes(routes!(tasks::retry))
        .routes(routes!(tasks::cancel))
        .routes(routes!(tasks::clone))
        .routes(routes!(options::of_tasks))
        .routes(routes!(items::list))
        .routes(routes!(receipts::show))
        .routes(routes!(receipts::key))
        .routes(routes!(files::leftovers, files::remove_leftovers))
        .routes(routes!(events::list_of_task))
        .routes(routes!(events::list))
        .routes(routes!(endpoints::list, endpoints::add))
        .routes(routes!(endpoints::show, endpoints::update, endpoints::remove))
        .routes(routes!(endpoints::test))
        .routes(routes!(grants::add))
        .routes(routes!(files::make_directory))
        .routes(routes!(files::rename))
        .routes(routes!(files::properties))
        .routes(routes!(files::usage))
        .routes(routes!(files::sum))
        .routes(routes!(files::add))
        .routes(routes!(files::show, files::remove))
        .routes(routes!(files::names))
        .routes(routes!(files::content))
        .routes(routes!(files::archive))
        .routes(routes!(files::upload))
        .routes(routes!(files::show_upload, files::remove_upload))
        .routes(routes!(files::put_block))
        .routes(routes!(files::publish))
        .routes(routes!(timers::list, timers::add))
        .routes(routes!(timers::show, timers::update, timers::remove))
        .routes(routes!(timers::pause))
        .routes(routes!(timers::resume))
        .routes(routes!(timers::run))
        .routes(routes!(users::list, users::add))
        .routes(routes!(users::show, users::update))
        .routes(routes!(tokens::list, tokens::add))
        .routes(routes!(tokens::remove))
        .routes(routes!(login::login))
        .routes(routes!(login::logout))
        .routes(routes!(login::whoami))
        .routes(routes!(sessions::change_password))
        .routes(routes!(sessions::add_link))
        .routes(routes!(sessions::end))
        .routes(routes!(overview::show))
        .routes(routes!(faults::show))
        .routes(routes!(nodes::list))
        .routes(routes!(bench::show, bench::start))
        .routes(routes!(paths::show, paths::start))
        .routes(routes!(audit::list))
}

/// The description of the API, as it is served and committed.
pub fn openapi_json() -> String {
    let (_, description) = documented().split_for_parts();
    let text = serde_json::to_string_pretty(&description).unwrap_or_default();
    // The registry of formats has no dash there.
    let mut text = text.replace("\"u-int", "\"uint");
    text.push('\n');
    text
}

/// Serves it.
async fn show_openapi(_: Known) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}

/// All routes. A connection puts its [`super::Peer`] into each request's extensions. A request gets `patience` from its
/// head to the head of its answer: a body that trickles is cut off. `names` are those of the host.
pub fn router(api: &Arc<Api>, patience: Duration, names: &[String]) -> Router {
    let (documented, description) = documented().split_for_parts();
    let parameters = query::Parameters::of(&description, "/api/v1");
    Router::new()
        .nest("/api/v1", documented.route("/openapi.json", get(show_openapi)))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::show))
        .route_layer(middleware::from_fn_with_state(parameters, query::check))
        .fallback(async || ApiError::not_found())
        .method_not_allowed_fallback(async || {
            let detail = "this route does not take this method";
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, ProblemCode::MethodNotAllowed, detail)
        })
        // Each document has a limit of its own.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(bodies::keep))
        .layer(middleware::from_fn_with_state(Arc::clone(api), audit::keep))
        .layer(middleware::from_fn_with_state(Arc::clone(api), admit::admit))
        .layer(middleware::from_fn_with_state(Arc::clone(api), metrics::count))
        .layer(middleware::from_fn_with_state(patience, bounded))
        .merge(page::routes())
        .layer(middleware::from_fn_with_state(OwnNames::of(names), host::check))
        .with_state(Arc::clone(api))
}

/// How long the body is to be, as its sender says.
fn declared(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Bounds the time of a request, and says to browsers what an answer is not.
async fn bounded(State(patience): State<Duration>, request: Request, next: Next) -> Response {
    let mut response = if request.method() == Method::CONNECT || request.method() == Method::TRACE {
        let detail = "this route does not take this method";
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, ProblemCode::MethodNotAllowed, detail).into_response()
    } else if declared(&request).is_some_and(|length| length > TASK_BYTES as u64) {
        let detail = "the request's body is larger than the service takes";
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ProblemCode::TooLarge, detail).into_response()
    } else {
        let (mut request, leftover) = Leftover::of(request);
        request.extensions_mut().insert(AnswerWithin(patience / 4 * 3));
        match tokio::time::timeout(patience, next.run(request)).await {
            Ok(response) => {
                leftover.take_in(TASK_BYTES).await;
                response
            }
            Err(_) => {
                let detail = "the request took too long to arrive, or to be answered";
                let mut response =
                    ApiError::new(StatusCode::REQUEST_TIMEOUT, ProblemCode::TooSlow, detail).into_response();
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                response
            }
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
