//! Grants: a caller's right to an endpoint becomes a token for its node, and no more than that.

use std::sync::Arc;

use carrack_core::credential::Token;
use carrack_core::grant::{Claims, GrantKey, Right, Rights};

use serde_json::json;

use super::rig::{Rig, add_endpoint, endpoint};
use crate::client::{Call, Called, Client, ClientError};
use crate::ledger::Ledger;
use crate::ledger::memory::MemoryLedger;
use crate::model::{
    Ceilings, EndpointLocation, Login, MadeGrant, NewEndpoint, NewGrant, Role, Scope, Secret, Verb, Whoami,
};

const OWN: &str = "0123456789abcdef0123456789abcdef";

/// A node at which everything of the endpoint is below `/data/lab 1`.
fn lab(users: &[&str]) -> NewEndpoint {
    let mut new = endpoint("lab", users);
    if let EndpointLocation::Node { path, .. } = &mut new.location {
        *path = "/data/lab%201/".into();
    }
    NewEndpoint { token: Some(Secret::new(OWN)), ..new }
}

fn wanted(verbs: &[Verb], path: &str) -> NewGrant {
    NewGrant { verbs: verbs.to_vec(), path: path.into(), seconds: Some(60) }
}

fn grant(client: &Client, name: &str, wanted: &NewGrant) -> Called<MadeGrant> {
    client.call(&Call::post(format!("/endpoints/{name}/grants")).body(wanted)?)?.json()
}

fn opened(made: &MadeGrant) -> Claims {
    let key = GrantKey::of(&Token::new(OWN.as_bytes()).unwrap());
    let expires = u64::try_from(made.expires.0 / 1_000_000).unwrap();
    let claims = key.open(shown(made), expires - 1).unwrap();
    assert_eq!(claims.expires, expires);
    claims
}

fn shown(made: &MadeGrant) -> &str {
    made.token.as_ref().expect("a token").reveal()
}

fn status(called: Called<MadeGrant>) -> u16 {
    match called {
        Err(ClientError::Problem(problem)) => problem.status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn grant_opens_the_endpoints_path_at_its_node() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &lab(&[])).unwrap();
    let made = grant(&ann, "lab", &wanted(&[Verb::Read, Verb::Delete], "/run%2042/")).unwrap();
    let pin = "ab".repeat(32);
    assert_eq!(made.location, format!("carrack://192.0.2.1:7420/data/lab%201/run%2042/#sha256:{pin}"));
    let claims = opened(&made);
    assert_eq!(claims.prefix, b"data/lab 1");
    assert_eq!(claims.rights, Rights::of(&[Right::Read, Right::Delete]));
    assert_eq!(claims.ceilings, carrack_core::grant::Ceilings::default());
    assert!(!format!("{made:?}").contains(shown(&made)) && !made.at_service);
}

#[test]
fn grant_is_as_narrow_as_the_token_that_asks_for_it() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &lab(&[])).unwrap();
    let scope = Scope {
        verbs: vec![Verb::Read],
        endpoints: vec!["lab".into()],
        path: Some("/run".into()),
        ceilings: Ceilings { bytes: Some(1000), run_seconds: Some(5), ..Ceilings::default() },
    };
    let narrow = rig.with_token(&rig.token("ann", Some(scope)).token);
    let claims = opened(&grant(&narrow, "lab", &wanted(&[Verb::Read], "/run/a")).unwrap());
    assert_eq!(claims.prefix, b"data/lab 1/run");
    assert_eq!((claims.ceilings.bytes, claims.ceilings.run_seconds), (Some(1000), Some(5)));
    // The node counts all of them together: many are no more than one.
    let again = opened(&grant(&narrow, "lab", &wanted(&[Verb::Read], "/run/b")).unwrap());
    assert_eq!(again.id, claims.id);
    for (verbs, path, expected) in [
        (&[Verb::Write][..], "/run/a", 403),
        (&[Verb::Read, Verb::Delete], "/run/a", 403),
        (&[Verb::Read], "/running", 403),
        (&[Verb::Read], "/", 403),
        (&[Verb::Read], "/run/../else", 400),
        (&[Verb::Read], "/run/%2e%2e/else", 400),
        (&[Verb::Read], "run", 400),
        (&[Verb::Admin], "/run/a", 400),
        (&[], "/run/a", 400),
    ] {
        assert_eq!(status(grant(&narrow, "lab", &wanted(verbs, path))), expected, "{verbs:?} {path}");
    }
    for seconds in [0, 601, u64::MAX] {
        let wanted = NewGrant { seconds: Some(seconds), ..wanted(&[Verb::Read], "/run/a") };
        assert_eq!(status(grant(&narrow, "lab", &wanted)), 400, "{seconds}");
    }
}

#[test]
fn grant_takes_a_right_to_the_endpoint() {
    let rig = Rig::start();
    let (ann, bob, eve) = (rig.user("ann", Role::User), rig.user("bob", Role::User), rig.user("eve", Role::Viewer));
    add_endpoint(&ann, &NewEndpoint { read_only: true, ..lab(&["bob", "eve"]) }).unwrap();
    add_endpoint(&ann, &endpoint("bare", &[])).unwrap();
    let mut hidden = lab(&[]);
    hidden.name = "hidden".into();
    add_endpoint(&ann, &hidden).unwrap();
    let read = wanted(&[Verb::Read], "/");
    assert!(grant(&bob, "lab", &read).is_ok());
    assert_eq!(status(grant(&bob, "lab", &wanted(&[Verb::Write], "/"))), 403, "the endpoint is read-only");
    assert_eq!(status(grant(&bob, "hidden", &read)), 404);
    assert_eq!(status(grant(&bob, "nowhere", &read)), 404);
    assert_eq!(status(grant(&eve, "lab", &read)), 403, "a viewer reads nothing");
    assert_eq!(status(grant(&rig.stranger(), "lab", &read)), 401);
    assert_eq!(status(grant(&ann, "bare", &read)), 409, "the service has no token of its node");
    let narrow = GrantKey::of(&Token::new(OWN.as_bytes()).unwrap()).seal(&claims_of_all()).unwrap();
    let granted = NewEndpoint { token: Some(Secret::new(narrow.reveal())), ..lab(&[]) };
    add_endpoint(&ann, &NewEndpoint { name: "granted".into(), ..granted }).unwrap();
    assert_eq!(status(grant(&ann, "granted", &read)), 409, "no grant is made of a grant");
}

fn claims_of_all() -> Claims {
    Claims {
        id: [7; 16],
        rights: Rights::all(),
        prefix: Vec::new(),
        expires: u64::MAX,
        ceilings: carrack_core::grant::Ceilings::default(),
    }
}

#[test]
fn grant_of_a_host_behind_ssh_is_a_place_and_no_token() {
    let rig = Rig::start();
    let location =
        EndpointLocation::Ssh { user: Some("me".into()), host: "cluster".into(), path: "/scratch/a%20b/".into() };
    let mut far = endpoint("far", &[]);
    (far.location, far.token) = (location, None);
    let local = rig.local();
    add_endpoint(&local, &far).unwrap();
    let made = grant(&local, "far", &wanted(&[Verb::Read], "/run%2042/")).unwrap();
    assert!(made.token.is_none());
    assert_eq!(made.location, "ssh://me@cluster/scratch/a%20b/run%2042/");
    // A login directory is one, and a path that begins with a tilde is none.
    for (number, (path, there)) in [
        ("data", "/~/data"),
        ("~", "/~"),
        ("~/d/", "/~/d"),
        ("~bob/d", "/~/~bob/d"),
        ("/~bob/d", "/~bob/d"),
        ("/~/d", "/%7E/d"),
        ("/", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("far{number}");
        let mut far = endpoint(&name, &[]);
        let location = EndpointLocation::Ssh { user: None, host: "cluster".into(), path: path.into() };
        (far.location, far.token) = (location.clone(), None);
        add_endpoint(&local, &far).unwrap();
        let made = grant(&local, &name, &wanted(&[Verb::Read], "/x")).unwrap();
        assert_eq!(made.location, format!("ssh://cluster{there}/x"), "{path}");
        let base = location.text();
        assert_eq!(format!("{}/x", base.trim_end_matches('/')), made.location, "tasks go elsewhere");
    }
}

#[test]
fn grant_of_this_host_waits_for_a_node_that_asks_for_tokens() {
    let rig = Rig::start();
    let mut here = endpoint("here", &[]);
    (here.location, here.token) = (EndpointLocation::Local { root: "/".into() }, None);
    let local = rig.local();
    add_endpoint(&local, &here).unwrap();
    assert_eq!(status(grant(&local, "here", &wanted(&[Verb::Read], "/"))), 409);
}

#[test]
fn grant_of_a_user_without_a_token_has_one_number() {
    let rig = Rig::start();
    let local = rig.local();
    add_endpoint(&local, &lab(&[])).unwrap();
    let ids = [0; 2].map(|_| opened(&grant(&local, "lab", &wanted(&[Verb::Read], "/")).unwrap()).id);
    let ann = rig.user("ann", Role::Admin);
    let other = opened(&grant(&ann, "lab", &wanted(&[Verb::Read], "/")).unwrap()).id;
    assert!(ids[0] == ids[1] && ids[0] != other);
}

#[test]
fn grants_revoked_before_a_restart_are_refused_after_it() {
    let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new());
    let of = |token: &str| -> [u8; 16] { *blake3::hash(token.as_bytes()).as_bytes().first_chunk().unwrap() };
    let first = Rig::over(Arc::clone(&ledger));
    let _ann = first.user("ann", Role::User);
    let (revoked, kept) = (first.token("ann", None).row.id, first.token("ann", None).row.id);
    first.local().call(&Call::delete(format!("/tokens/{revoked}"))).unwrap();
    drop(first);
    let second = Rig::over(Arc::clone(&ledger));
    assert_eq!([&revoked, &kept].map(|token| second.api().revoked().contains(&of(token))), [true, false]);
    // So it is with a user who is disabled, until they are let in again.
    let set = |rig: &Rig, enabled: bool| {
        rig.local().call(&Call::patch("/users/ann").body(&json!({ "enabled": enabled })).unwrap()).unwrap();
    };
    set(&second, false);
    drop(second);
    let third = Rig::over(Arc::clone(&ledger));
    assert!([&kept, "user ann"].iter().all(|name| third.api().revoked().contains(&of(name))));
    set(&third, true);
    drop(third);
    let fourth = Rig::over(ledger);
    assert!(![&kept, "user ann"].iter().any(|name| fourth.api().revoked().contains(&of(name))));
}

#[test]
fn grants_of_a_session_end_with_it() {
    let rig = Rig::start();
    let local = rig.local();
    let new = json!({ "name": "ann", "role": "user", "password": "correct horse battery" });
    local.call(&Call::post("/users").body(&new).unwrap()).unwrap();
    let token = rig.token("ann", None).row.id;
    let revoked = |token: &str| {
        let id: [u8; 16] = *blake3::hash(token.as_bytes()).as_bytes().first_chunk().unwrap();
        rig.api().revoked().contains(&id)
    };
    let (first, second) = ("correct horse battery", "another password");
    let to = |call: Call, body: &serde_json::Value| call.body(body).unwrap();
    let patch = |body: serde_json::Value| to(Call::patch("/users/ann"), &body);
    let change = to(Call::post("/password"), &json!({ "old": first, "new": second }));
    // Whoever ends it, and the password until then.
    for (what, ends, by_ann, password) in [
        ("all sessions", Call::delete("/users/ann/sessions"), true, first),
        ("her password", change, true, first),
        ("a password", patch(json!({ "password": first })), false, second),
        ("a role", patch(json!({ "role": "admin" })), false, first),
        ("disabled", patch(json!({ "enabled": false })), false, first),
    ] {
        let login = to(Call::post("/login"), &json!({ "user": "ann", "password": password }));
        let begun: Login = rig.stranger().call(&login).unwrap().json().unwrap();
        let ann = rig.with_token(&begun.token.unwrap());
        let session = ann.get::<Whoami>("/whoami").unwrap().token.unwrap();
        assert!(!revoked(&session), "{what}");
        (if by_ann { &ann } else { &local }).call(&ends).unwrap();
        assert!(revoked(&session) && ann.get::<Whoami>("/whoami").is_err(), "{what}");
        // Of somebody who is let in, tokens go on.
        assert_eq!(revoked(&token), what == "disabled", "{what}");
    }
}
