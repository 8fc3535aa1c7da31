//! Measuring the path between two endpoints by the API: who may, between what, and what is told.

use std::time::{Duration, Instant};

use carrack_core::credential::Token;
use carrack_core::grant::{Ceilings, Claims, GrantKey, Right, Rights};
use serde_json::{Value, json};

use super::rig::{Rig, add_endpoint, endpoint};
use crate::client::{Call, Client, ClientError};
use crate::model::{
    BenchState, EndpointLimits, EndpointLocation, NewEndpoint, PathStatus, Problem, RateWindow, Role, Scope, Secret,
    Verb,
};

const PATH: &str = "/endpoints/lab/paths/archive";

/// An endpoint at a host of documentation's network.
fn at(name: &str, host: &str, users: &[&str]) -> NewEndpoint {
    let location = EndpointLocation::Node {
        host: host.into(),
        port: 7420,
        fingerprint: Some("ab".repeat(32)),
        path: "/data".into(),
    };
    NewEndpoint { location, token: Some(Secret::new("a-token-for-tests")), ..endpoint(name, users) }
}

/// A rig with two endpoints of the service's own; ann and vi may use them.
fn rig() -> Rig {
    let rig = Rig::start();
    for (name, host) in [("lab", "192.0.2.1"), ("archive", "192.0.2.2")] {
        add_endpoint(&rig.local(), &at(name, host, &["ann", "vi"])).unwrap();
    }
    rig
}

fn problem(client: &Client, call: &Call) -> Problem {
    match client.call(call) {
        Err(ClientError::Problem(problem)) => *problem,
        other => panic!("{other:?}"),
    }
}

fn refused(client: &Client, path: &str) -> (u16, String) {
    let problem = problem(client, &Call::post(path));
    (problem.status, problem.detail)
}

fn shown(client: &Client) -> PathStatus {
    client.get(PATH).unwrap()
}

fn until(client: &Client, state: BenchState) -> PathStatus {
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

fn change(rig: &Rig, name: &str, body: &Value) {
    rig.local().call(&Call::patch(format!("/endpoints/{name}")).body(body).unwrap()).unwrap();
}

/// What the process was told.
fn ordered(rig: &Rig) -> Value {
    serde_json::from_str(&std::fs::read_to_string(rig.directory.path().join("ordered")).unwrap()).unwrap()
}

#[test]
fn path_is_measured_for_whoever_owns_both_endpoints_and_seen_by_whoever_sees_both() {
    let mut rig = rig();
    let (ann, bob, vi) = (rig.user("ann", Role::User), rig.user("bob", Role::User), rig.user("vi", Role::Viewer));
    assert_eq!([&ann, &bob, &vi].map(|client| refused(client, PATH).0), [403, 404, 403]);
    assert_eq!(problem(&bob, &Call::get(PATH)).status, 404);
    assert_eq!((shown(&vi).state, shown(&vi).result), (BenchState::Idle, None));
    // One of her own is not enough, from whichever end; nor is one that somebody else sees.
    add_endpoint(&ann, &at("anns", "192.0.2.3", &[])).unwrap();
    for path in ["/endpoints/anns/paths/lab", "/endpoints/lab/paths/anns"] {
        assert_eq!(refused(&ann, path).0, 403, "{path}");
        assert_eq!([problem(&vi, &Call::get(path)).status, problem(&bob, &Call::get(path)).status], [404, 404]);
    }
    let begun = rig.local().call(&Call::post(PATH)).unwrap();
    let status: PathStatus = begun.json().unwrap();
    assert_eq!((begun.status, status.from.as_str(), status.to.as_str()), (202, "lab", "archive"));
    let ended = until(&vi, BenchState::Finished);
    let result = ended.result.unwrap();
    assert_eq!((result.there.bytes_per_second, result.back.bytes_per_second), (Some(1e8), Some(9e7)));
    rig.restart();
    assert_eq!((shown(&vi).state, shown(&vi).result), (BenchState::Idle, Some(result.clone())));
    let other: PathStatus = vi.get("/endpoints/archive/paths/lab").unwrap();
    assert_eq!(other.result, Some(result.clone().turned()));
    // Another place is at the end of another path.
    change(&rig, "archive", &json!({ "description": "other" }));
    assert_eq!(shown(&vi).result, Some(result));
    change(&rig, "archive", &json!({ "location": { "kind": "node", "host": "192.0.2.9", "port": 1, "path": "/" } }));
    assert_eq!(shown(&vi).result, None);
}

#[test]
fn path_is_measured_by_a_token_of_the_owner_only_where_its_scope_reaches_both_endpoints() {
    let rig = rig();
    let scoped = |verbs: &[Verb], endpoints: &[&str]| {
        let endpoints = endpoints.iter().map(|&name| name.to_owned()).collect();
        let scope = Scope { verbs: verbs.to_vec(), endpoints, ..Scope::default() };
        rig.with_token(&rig.token("local", Some(scope)).token)
    };
    for (verbs, endpoints) in [
        (&[Verb::View, Verb::Read, Verb::Write][..], &[][..]),
        (&[Verb::View, Verb::Admin], &[]),
        (&[Verb::View, Verb::Read, Verb::Admin], &["lab", "archive"]),
    ] {
        assert_eq!(refused(&scoped(verbs, endpoints), PATH).0, 403, "{verbs:?} {endpoints:?}");
    }
    assert_eq!(shown(&rig.local()).state, BenchState::Idle);
    assert_eq!(scoped(&[Verb::Read, Verb::Admin], &[]).call(&Call::post(PATH)).unwrap().status, 202);
}

#[test]
fn path_is_measured_within_the_limits_of_both_endpoints_with_the_nodes_own_tokens() {
    let rig = rig();
    let limits = |rate, streams| EndpointLimits { rate, streams, ..EndpointLimits::default() };
    change(&rig, "lab", &json!({ "limits": limits(Some(9_000_000), Some(2)), "read_only": true }));
    change(&rig, "archive", &json!({ "limits": limits(Some(8_000_000), None) }));
    rig.local().call(&Call::post(PATH)).unwrap();
    assert_eq!(until(&rig.local(), BenchState::Finished).result.unwrap().rate_limit, Some(8_000_000));
    let order = ordered(&rig);
    assert_eq!((&order["streams"], &order["rate_limit"]), (&json!(2), &json!(8_000_000)), "{order}");
    for (end, name, host) in [("source", "lab", "192.0.2.1"), ("destination", "archive", "192.0.2.2")] {
        let told = &order["pair"][end];
        assert_eq!(told["credentials"]["token"], "a-token-for-tests", "{order}");
        assert!(told["location"].as_str().unwrap().contains(host) && told["far_only"] == false, "{order}");
        assert_eq!(order["pair"][format!("{end}_endpoint")]["name"], name);
    }
    // What a user offers never leads to the service's own host, whatever its name is by then.
    let bob = rig.user("bob", Role::User);
    for (name, host) in [("bobs", "192.0.2.3"), ("bobs-other", "192.0.2.4")] {
        add_endpoint(&bob, &at(name, host, &[])).unwrap();
    }
    bob.call(&Call::post("/endpoints/bobs/paths/bobs-other")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let state = || bob.get::<PathStatus>("/endpoints/bobs/paths/bobs-other").unwrap().state;
    while state() != BenchState::Finished {
        assert!(Instant::now() < deadline, "{:?}", state());
        std::thread::yield_now();
    }
    let order = ordered(&rig);
    assert_eq!(["source", "destination"].map(|end| &order["pair"][end]["far_only"]), [&json!(true); 2], "{order}");
    let window = RateWindow { from: "00:00".into(), until: "00:00".into(), rate: 0 };
    change(&rig, "lab", &json!({ "limits": EndpointLimits { timetable: vec![window], ..EndpointLimits::default() } }));
    let (status, why) = refused(&rig.local(), PATH);
    assert_eq!((status, why.as_str()), (409, "the timetable of @lab lets no transfer begin at this hour"));
}

#[test]
fn path_of_one_host_by_a_grant_or_to_this_host_by_a_user_is_refused() {
    let rig = rig();
    let (local, bob) = (rig.local(), rig.user("bob", Role::User));
    add_endpoint(&local, &at("twin", "192.0.2.1", &[])).unwrap();
    for path in ["/endpoints/lab/paths/twin", "/endpoints/lab/paths/lab"] {
        let refused = problem(&local, &Call::post(path));
        assert_eq!(refused.status, 409);
        assert!(refused.detail.ends_with("are at the same host: there is no path between them"), "{refused:?}");
        assert_eq!(refused.hints, ["choose an endpoint at another host"]);
    }
    let claims = Claims {
        id: [7; 16],
        rights: Rights::of(&[Right::Read]),
        prefix: Vec::new(),
        expires: 1 << 40,
        ceilings: Ceilings::default(),
    };
    let grant = GrantKey::of(&Token::new(b"the-nodes-own").unwrap()).seal(&claims).unwrap();
    change(&rig, "archive", &json!({ "token": grant.reveal() }));
    let (status, why) = refused(&local, PATH);
    assert!(status == 409 && why.contains("the node of @archive is a grant"), "{why}");
    // An endpoint that leads to this host now, though its owner may add none that does.
    add_endpoint(&bob, &at("far", "192.0.2.3", &[])).unwrap();
    let mut near = at("near", "127.0.0.1", &[]);
    near.description = "handed over".into();
    add_endpoint(&local, &near).unwrap();
    change(&rig, "near", &json!({ "owner": "bob" }));
    let (status, why) = refused(&bob, "/endpoints/far/paths/near");
    assert!(status == 403 && why.contains("endpoint-at-this-host"), "{status} {why}");
    assert!(!rig.directory.path().join("ordered").exists(), "something was measured");
}

#[test]
fn path_is_measured_one_at_a_time_and_never_beside_an_endpoint() {
    let rig = rig();
    let local = rig.local();
    let root = rig.directory.path().join("data");
    std::fs::create_dir(&root).unwrap();
    let location = EndpointLocation::Local { root: root.display().to_string() };
    add_endpoint(&local, &NewEndpoint { location, ..endpoint("here", &[]) }).unwrap();
    std::fs::write(rig.directory.path().join("path.sh"), "cat > /dev/null").unwrap();
    local.call(&Call::post(PATH)).unwrap();
    assert_eq!(shown(&local).state, BenchState::Running);
    for path in [PATH, "/endpoints/archive/paths/lab", "/endpoints/here/paths/lab", "/endpoints/here/bench"] {
        let (status, why) = refused(&local, path);
        assert_eq!(
            (status, why.as_str()),
            (409, "the path between @archive and @lab is measured at present, one at a time"),
            "{path}"
        );
    }
    // Who may not see them hears that something is measured, and no more.
    let bob = rig.user("bob", Role::User);
    for (name, host) in [("bobs", "192.0.2.3"), ("bobs-other", "192.0.2.4")] {
        add_endpoint(&bob, &at(name, host, &[])).unwrap();
    }
    let (status, why) = refused(&bob, "/endpoints/bobs/paths/bobs-other");
    assert_eq!((status, why.as_str()), (409, "something else is measured at present, one at a time"));
    local.call(&Call::delete("/endpoints/archive")).unwrap();
    assert_eq!(problem(&local, &Call::get(PATH)).status, 404);
}
