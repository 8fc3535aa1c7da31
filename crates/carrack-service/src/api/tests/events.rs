//! Events: the stream and the list say the same, and the stream ends with the right to read it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::rig::{Rig, add_endpoint, copy, endpoint, submit};
use crate::client::{Call, ClientError};
use crate::identity::Caller;
use crate::model::{Event, KnownBy, Listed, Role};

const PATIENCE: Duration = Duration::from_secs(60);

/// An account of the host whose user has another role by now sees what that role may, and asks anew.
#[test]
fn reader_by_the_socket_is_let_in_as_long_as_their_role_is_the_same() {
    let rig = Rig::start();
    rig.user("ann", Role::Admin);
    let reader = |role| {
        Arc::new(Caller {
            user: "ann".to_owned(),
            role,
            scope: None,
            via: KnownBy::Socket,
            token: None,
            expires: None,
            runs_service: false,
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let is_known = |role| runtime.block_on(rig.api().is_still_known(&reader(role)));
    assert!(is_known(Role::Admin) && !is_known(Role::User));
    let change = |body: serde_json::Value| rig.local().call(&Call::patch("/users/ann").body(&body).unwrap()).unwrap();
    change(serde_json::json!({ "role": "user" }));
    assert!(!is_known(Role::Admin) && is_known(Role::User));
    change(serde_json::json!({ "enabled": false }));
    assert!(!is_known(Role::User));
}

#[test]
fn stream_and_list_of_events_are_the_same() {
    let rig = Rig::start();
    let (ann, bob) = (rig.user("ann", Role::User), rig.user("bob", Role::User));
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    add_endpoint(&bob, &endpoint("boblab", &[])).unwrap();
    let mut stream = ann.events(0, None);
    let mut seen: Vec<Event> = Vec::new();
    for number in 0..5 {
        submit(&ann, &copy(&format!("@lab:/{number}"), "@lab:/b")).unwrap();
        submit(&bob, &copy("@boblab:/canary", "@boblab:/b")).unwrap();
        // Each comes while the stream stands, not only at its beginning.
        while seen.len() < number + 2 {
            seen.push(stream.next_within(PATIENCE).unwrap().unwrap());
        }
    }
    let listed: Vec<Event> = ann.rows("/events?limit=2").map(Result::unwrap).collect();
    assert_eq!(listed, seen);
    assert!(seen.iter().all(|event| event.owner == "ann"));
    // Going on in the middle.
    let middle = seen[2].id;
    let replayed: Vec<Event> = ann.events(middle, None).take(3).map(Result::unwrap).collect();
    assert_eq!(replayed, seen[3..6]);
    let polled: Listed<Event> = ann.get(&format!("/events?since={middle}")).unwrap();
    assert_eq!(polled.items, seen[3..]);
    let by_header = ann.call(&Call::get("/events?since=0").header("last-event-id", middle.to_string())).unwrap();
    assert_eq!(by_header.json::<Listed<Event>>().unwrap().items, seen[3..]);
    let task = seen[1].task.clone().unwrap();
    let of_task: Vec<Event> = ann.events(0, Some(&task)).take(1).map(Result::unwrap).collect();
    assert_eq!(of_task, seen[1..2]);
    let whole: Listed<Event> = rig.local().get("/events?limit=1000").unwrap();
    assert_eq!(whole.items.len(), 12);
}

#[test]
fn stream_from_the_latest_event_on_has_what_comes_and_nothing_before() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    submit(&ann, &copy("@lab:/before", "@lab:/b")).unwrap();
    let mut stream = ann.events_to_come(None);
    stream.begin().unwrap();
    let polled: Listed<Event> = ann.get("/events?since=latest").unwrap();
    assert_eq!(polled.items, []);
    let task = submit(&ann, &copy("@lab:/after", "@lab:/b")).unwrap();
    let event = stream.next_within(PATIENCE).unwrap().unwrap();
    assert_eq!((event.task.as_deref(), stream.connections()), (Some(task.id.as_str()), 1));
    // Whoever asks again and again goes on behind what was told.
    let next: Listed<Event> = ann.get(&format!("/events?since={}", polled.next.unwrap())).unwrap();
    assert_eq!(next.items, [event]);
    let wrong = ann.get::<Listed<Event>>("/events?since=earliest").unwrap_err();
    assert!(matches!(wrong, ClientError::Problem(problem) if problem.status == 400));
}

#[test]
fn stream_of_events_ends_when_its_token_is_revoked() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let made = rig.token("ann", None);
    let client = rig.with_token(&made.token);
    let mut stream = client.events(0, None);
    stream.next_within(PATIENCE).unwrap().unwrap();
    ann.call(&Call::delete(format!("/tokens/{}", made.row.id))).unwrap();
    let (began, error) = (Instant::now(), stream.next().unwrap().unwrap_err());
    assert!(matches!(error, ClientError::Problem(problem) if problem.status == 401));
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn stream_of_events_ends_with_the_service() {
    let mut rig = Rig::start();
    let local = rig.local();
    let mut stream = local.events(0, None);
    assert!(stream.next_within(Duration::from_millis(200)).unwrap().is_none());
    let (handle, began) = (rig.handle.take().unwrap(), Instant::now());
    handle.stop();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}: it waited for the stream", began.elapsed());
}
