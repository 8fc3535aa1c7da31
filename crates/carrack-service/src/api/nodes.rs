//! The node beside the service, as far as the service knows it: what its tasks move, the storage of the endpoints that
//! are its directories, and what the last test of each endpoint has found.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::Api;
use super::caller::Known;
use super::problem::Done;
use crate::identity::{Action, Object, Verdict, may};
use crate::ledger::Page;
use crate::model::{Endpoint, KeptTest, Listed, NodeStatus, Problem, TaskState, Verb};

/// Endpoints that are looked at.
const ENDPOINTS_MOST: usize = 1000;

/// What the service's host calls itself.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "this host".to_owned() } else { name.to_owned() }
}

/// Lists nodes: the one beside the service, with what the caller's tasks move there (of all, for admins and viewers),
/// the storage of the endpoints on the service's host, and what the last test of each endpoint has found.
/// `POST /endpoints/{name}/test` makes another.
#[utoipa::path(
    get, path = "/nodes", tag = "service",
    responses(
        (status = 200, description = "All of them.", body = Listed<NodeStatus>),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(State(api): State<Arc<Api>>, known: Known) -> Done<Json<Listed<NodeStatus>>> {
    let listed = api.run(move |api| {
        let caller = &*known.caller;
        api.check(caller, Verb::View, Object::Figures { of_all: false })?;
        let sees = |endpoint: &Endpoint| {
            let object = Object::Endpoint { endpoint, path: None };
            may(caller, &Action { verb: Verb::View, object }).verdict == Verdict::Allowed
        };
        let mut endpoints = api.ledger.endpoints(&Page { after: None, limit: ENDPOINTS_MOST })?;
        endpoints.retain(sees);
        let of_all = Action { verb: Verb::View, object: Object::Figures { of_all: true } };
        let sees_all = may(caller, &of_all).verdict == Verdict::Allowed;
        let (mut running, mut rate) = (0, 0.0);
        for (task, _) in api.ledger.open_tasks()? {
            if task.state == TaskState::Active && (sees_all || task.owner == caller.user) {
                running += 1;
                rate += task.progress.rates.now;
            }
        }
        let local = |endpoint: &Endpoint| Some((endpoint.name.clone(), endpoint.location.local_root()?.to_owned()));
        let mut health = api.ledger.health(None, Some(&caller.user))?;
        let kept = endpoints.iter().filter_map(|endpoint| {
            let (time, test) = health.remove(&endpoint.name)?.test?;
            Some(KeptTest { endpoint: endpoint.name.clone(), time, test })
        });
        let tests = kept.collect();
        let node = api.node.get();
        let status = NodeStatus {
            name: host_name(),
            address: node.map(|node| node.address.to_string()),
            fingerprint: node.map(|node| data_encoding::HEXLOWER.encode(&node.fingerprint)),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            running,
            rate,
            storage: api.found.storage(endpoints.iter().filter_map(local).collect()),
            tests,
        };
        Ok(Listed { items: vec![status], next: None })
    });
    listed.await.map(Json)
}
