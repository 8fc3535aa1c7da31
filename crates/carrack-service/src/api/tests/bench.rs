//! Measuring by the API: who may, where, and what is told.

use std::time::{Duration, Instant};

use serde_json::json;

use super::rig::{Rig, add_endpoint, endpoint};
use crate::client::{Call, Client, ClientError};
use crate::model::{BenchState, BenchStatus, EndpointLocation, NewEndpoint, Problem, Role};

/// A rig with an endpoint that is a directory of this host; ann may use it.
fn rig() -> Rig {
    let rig = Rig::start();
    let root = rig.directory.path().join("data");
    std::fs::create_dir(&root).unwrap();
    let location = EndpointLocation::Local { root: root.display().to_string() };
    add_endpoint(&rig.local(), &NewEndpoint { location, ..endpoint("lab", &["ann", "vi"]) }).unwrap();
    rig
}

fn problem(client: &Client, call: &Call) -> Problem {
    match client.call(call) {
        Err(ClientError::Problem(problem)) => *problem,
        other => panic!("{other:?}"),
    }
}

fn bench(name: &str) -> Call {
    Call::post(format!("/endpoints/{name}/bench"))
}

fn shown(client: &Client) -> BenchStatus {
    client.get("/endpoints/lab/bench").unwrap()
}

fn until(client: &Client, state: BenchState) -> BenchStatus {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let status = shown(client);
        if status.state == state {
            return status;
        }
        assert!(Instant::now() < until, "{status:?}");
        std::thread::yield_now();
    }
}

#[test]
fn bench_is_begun_by_owner_and_admins_and_seen_by_whoever_sees_the_endpoint() {
    let mut rig = rig();
    let (ann, bob, vi) = (rig.user("ann", Role::User), rig.user("bob", Role::User), rig.user("vi", Role::Viewer));
    assert_eq!([&ann, &bob, &vi].map(|client| problem(client, &bench("lab")).status), [403, 404, 403]);
    assert_eq!(problem(&bob, &Call::get("/endpoints/lab/bench")).status, 404);
    assert_eq!(shown(&vi).state, BenchState::Idle);
    let begun = rig.local().call(&bench("lab")).unwrap();
    assert_eq!((begun.status, begun.json::<BenchStatus>().unwrap().endpoint.as_str()), (202, "lab"));
    let ended = until(&vi, BenchState::Finished);
    assert_eq!(ended.results.len(), 3);
    rig.restart();
    assert_eq!((shown(&vi).state, shown(&vi).results), (BenchState::Idle, ended.results));
    // Another place has other storage, and another endpoint of that name has none.
    let described = Call::patch("/endpoints/lab").body(&json!({ "description": "other" })).unwrap();
    rig.local().call(&described).unwrap();
    assert_eq!(shown(&vi).results.len(), 3);
    let moved = json!({ "location": { "kind": "local", "root": "/elsewhere" } });
    rig.local().call(&Call::patch("/endpoints/lab").body(&moved).unwrap()).unwrap();
    assert_eq!(shown(&vi).results, []);
}

#[test]
fn bench_is_refused_where_nothing_may_be_written_and_at_other_hosts() {
    let rig = rig();
    let local = rig.local();
    add_endpoint(&local, &endpoint("far", &[])).unwrap();
    let far = problem(&local, &bench("far"));
    assert_eq!(
        (far.status, far.detail.as_str()),
        (409, "@far is at 192.0.2.1: the service measures only directories of its own host")
    );
    assert_eq!(far.hints, ["on 192.0.2.1: carrack bench disk /"]);
    local.call(&Call::patch("/endpoints/lab").body(&json!({ "read_only": true })).unwrap()).unwrap();
    let read_only = problem(&local, &bench("lab"));
    assert_eq!(
        (read_only.status, read_only.hints),
        (403, vec!["the endpoint is read-only: its owner can change that".to_owned()])
    );
    assert_eq!(shown(&local).state, BenchState::Idle);
    assert_eq!(problem(&local, &bench("none")).status, 404);
}

#[test]
fn bench_runs_once_at_a_time_and_goes_with_its_endpoint() {
    let rig = rig();
    let local = rig.local();
    std::fs::write(rig.directory.path().join("disk.sh"), "cat > /dev/null").unwrap();
    local.call(&bench("lab")).unwrap();
    let busy = problem(&local, &bench("lab"));
    assert_eq!((busy.status, busy.detail.as_str()), (409, "@lab is measured at present, one at a time"));
    local.call(&Call::delete("/endpoints/lab")).unwrap();
    assert_eq!(problem(&local, &Call::get("/endpoints/lab/bench")).status, 404);
}
