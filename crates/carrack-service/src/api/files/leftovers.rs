//! Routes of what a task has left at its destinations: unfinished files are named, or removed.

use carrack_core::location::{Location, encode_path};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use data_encoding::HEXLOWER;
use tokio::time::Instant;

use super::{audit, lease, order};
use crate::api::Api;
use crate::api::caller::Known;
use crate::api::extract::{AnswerWithin, PathOf};
use crate::api::problem::{ApiError, Done};
use crate::files::Lease;
use crate::identity::{Caller, ScopePath};
use crate::model::{Pair, Problem, ProblemCode, Task, TaskLeftovers, UnknownLeftovers, Verb};
use crate::worker::EndOrder;
use crate::worker::files::{Ask, LeftAt};
use crate::worker::markers::PairMarker;

/// How long endpoints may take to say what is left there: whoever looks at a task does not wait for a host that is
/// down.
const PATIENCE: Duration = Duration::from_secs(10);

/// Names the unfinished files that a task has left at its destinations. A retry goes on from them.
#[utoipa::path(
    get, path = "/tasks/{id}/leftovers", tag = "tasks", params(("id" = String, Path, description = "The task.")),
    responses(
        (status = 200, description = "What is left.", body = TaskLeftovers),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn leftovers(
    State(api): State<Arc<Api>>,
    known: Known,
    Extension(AnswerWithin(most)): Extension<AnswerWithin>,
    PathOf(id): PathOf<String>,
) -> Done<Json<TaskLeftovers>> {
    look(api, known, id, false, PATIENCE.min(most)).await.map(Json)
}

/// Removes the unfinished files that a task has left at its destinations, with what it keeps there to go on from. Only
/// of a task that has ended; a retry then begins those files anew.
#[utoipa::path(
    delete, path = "/tasks/{id}/leftovers", tag = "tasks", params(("id" = String, Path, description = "The task.")),
    responses(
        (status = 200, description = "What was removed.", body = TaskLeftovers),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn remove_leftovers(
    State(api): State<Arc<Api>>,
    known: Known,
    Extension(AnswerWithin(most)): Extension<AnswerWithin>,
    PathOf(id): PathOf<String>,
) -> Done<Json<TaskLeftovers>> {
    look(api, known, id, true, most).await.map(Json)
}

fn no_answer(endpoint: &str, patience: Duration, remove: bool) -> ApiError {
    let rest = if remove { "; what it has removed stays removed: ask again for the rest" } else { "" };
    let why = format!("endpoint {endpoint} has not answered within {} s{rest}", patience.as_secs());
    ApiError::new(StatusCode::BAD_GATEWAY, ProblemCode::Unreachable, why)
}

/// What one file worker is asked for, if there is one.
struct Asked {
    endpoint: String,
    places: Vec<LeftAt>,
    lease: Done<Lease>,
}

async fn look(api: Arc<Api>, known: Known, id: String, remove: bool, patience: Duration) -> Done<TaskLeftovers> {
    let caller = Arc::clone(&known.caller);
    let asked = api.run(move |api| {
        let task = api.task_of(&caller, &id, if remove { Verb::Tasks } else { Verb::View })?;
        if remove && !task.state.has_ended() {
            let why = format!("task {id} is {}: it may still go on from what it has left", task.state.name());
            return Err(ApiError::conflict(why).hint(format!("end it first: carrack task cancel {id}")));
        }
        let markers = api.backend.markers(&id).map_err(ApiError::internal)?;
        Ok(asked(api, &caller, &task, &markers))
    });
    let until = Instant::now() + patience;
    // All are asked before one is waited for: those that are up answer meanwhile.
    let ask = |Asked { endpoint, places, lease }| {
        let ask = Ask::Leftovers { places: places.clone(), remove };
        (endpoint, places, lease.and_then(|lease| Ok(lease.ask(ask, b"")?)))
    };
    let asked: Vec<_> = asked.await?.into_iter().map(ask).collect();
    let mut found = TaskLeftovers::default();
    for (endpoint, places, conversation) in asked {
        let told = match conversation {
            Ok(conversation) => match tokio::time::timeout_at(until, conversation.answer()).await {
                Ok(told) => told.map_err(ApiError::from),
                Err(_) => Err(no_answer(&endpoint, patience, remove)),
            },
            Err(error) => Err(error),
        };
        match told.and_then(|told| serde_json::from_slice(&told).map_err(ApiError::internal)) {
            Ok(more) => {
                if remove {
                    places.iter().filter_map(|place| ScopePath::parse(&place.path).ok()).for_each(|path| {
                        audit(&known.caller, &endpoint, "remove-leftovers", &path, Ok(()));
                    });
                }
                found.append(more);
            }
            // What is known of the others is told all the same.
            Err(error) => {
                let why = error.problem().detail;
                let unknown = places.into_iter().map(|LeftAt { destination, .. }| destination);
                found.unknown.extend(unknown.map(|destination| UnknownLeftovers { destination, why: why.clone() }));
            }
        }
    }
    Ok(found)
}

/// Destinations by the worker that looks at them: of an endpoint there is one.
fn asked(api: &Api, caller: &Caller, task: &Task, markers: &[PairMarker]) -> Vec<Asked> {
    let mut at_endpoints: BTreeMap<String, Vec<LeftAt>> = BTreeMap::new();
    let mut asked = Vec::new();
    let mut of_pairs: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    markers.iter().for_each(|(pair, key)| of_pairs.entry(*pair).or_default().push(HEXLOWER.encode(key)));
    for (number, markers) in of_pairs {
        let pair = task.request.pairs.get(number as usize);
        let Some(Pair { destination: Some(destination), .. }) = pair else { continue };
        match Location::parse_document(destination) {
            Ok(Location::Endpoint { name, path }) => {
                let place = LeftAt { destination: destination.clone(), path: encode_path(&path), markers };
                at_endpoints.entry(name).or_default().push(place);
            }
            // Nothing is kept there.
            Ok(location) if location.is_synthetic() => {}
            Err(_) => {}
            Ok(location) => {
                let place = LeftAt { destination: destination.clone(), path: "/".to_owned(), markers };
                let key = order::key_of_location(caller, destination);
                let lease = match caller.is_admin() && !caller.is_scoped() {
                    true => {
                        api.files.lease(&key, || Ok(order::at_location(EndOrder::at_location(location.clone()), &key)))
                    }
                    false => Err(ApiError::forbidden("raw-location")),
                };
                asked.push(Asked { endpoint: "-".to_owned(), places: vec![place], lease });
            }
        }
    }
    asked.extend(at_endpoints.into_iter().map(|(endpoint, places)| {
        let paths: Result<Vec<_>, _> = places.iter().map(|place| super::path("destination", &place.path)).collect();
        let lease = paths.and_then(|paths| {
            let wanted: Vec<_> = paths.iter().map(|path| (Verb::Write, path)).collect();
            lease(api, caller, &endpoint, &wanted)
        });
        Asked { endpoint, places, lease }
    }));
    asked
}
