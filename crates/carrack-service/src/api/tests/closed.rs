//! Nobody learns anything without a token, and nobody anything of others: the table of routes is walked.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rig::{Rig, add_endpoint, copy, endpoint, submit};
use crate::api::openapi_json;
use crate::client::{Call, Client, ClientError};
use crate::model::{NewEndpoint, NewTimer, Role, Timer, TimerSchedule};

/// Every method and path that the description tells of.
fn routes() -> Vec<(String, String)> {
    let description: Value = serde_json::from_str(&openapi_json()).unwrap();
    let paths: BTreeMap<String, Value> = serde_json::from_value(description["paths"].clone()).unwrap();
    let methods = |(path, item): (String, Value)| {
        let methods: Vec<String> = item.as_object().unwrap().keys().cloned().collect();
        methods
            .into_iter()
            .filter(|method| ["get", "post", "patch", "put", "delete"].contains(&method.as_str()))
            .map(move |method| (method, path.clone()))
    };
    paths.into_iter().flat_map(methods).collect()
}

fn call(method: &str, path: &str) -> Call {
    // What is malformed is refused before anything is looked up.
    match method {
        "get" if ["/properties", "/content", "/archive"].iter().any(|end| path.ends_with(end)) => {
            Call::get(format!("{path}?path=/a"))
        }
        "get" => Call::get(path),
        "post" if path.ends_with("/uploads") => Call::post(path).body(&upload()).unwrap(),
        "put" => Call::put(path).bytes(b"block".to_vec()),
        "post" if path.ends_with("/du") => Call::post(path).body(&json!({ "paths": ["/a"] })).unwrap(),
        "post" if path.ends_with("/sum") => Call::post(path).body(&json!({ "path": "/a" })).unwrap(),
        "post" if path.ends_with("/mkdir") => Call::post(path).body(&json!({ "path": "/a" })).unwrap(),
        "post" if path.ends_with("/rename") => Call::post(path).body(&json!({ "from": "/a", "to": "/b" })).unwrap(),
        "post" if path.ends_with("/grants") => {
            Call::post(path).body(&json!({ "verbs": ["read"], "path": "/" })).unwrap()
        }
        "post" => Call::post(path).body(&json!({})).unwrap(),
        "patch" => Call::patch(path).body(&json!({})).unwrap(),
        "delete" => Call::delete(path),
        other => panic!("{other}"),
    }
}

fn upload() -> Value {
    json!({ "path": "/a", "size": 5, "block_bytes": 4 << 20, "blocks": ["ab".repeat(32)] })
}

fn status(client: &Client, call: &Call) -> u16 {
    match client.call(call) {
        Ok(answer) => answer.status,
        Err(ClientError::Problem(problem)) => problem.status,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_route_is_closed_but_health_and_login() {
    let rig = Rig::start();
    let stranger = rig.stranger();
    let routes = routes();
    assert!(routes.len() >= 30, "{routes:?}");
    for (method, path) in &routes {
        let path = path.strip_prefix("/api/v1").unwrap_or(path).replace(['{', '}'], "");
        // A login of nothing is malformed: it was looked at.
        let expected = if path == "/login" { 400 } else { 401 };
        assert_eq!(status(&stranger, &call(method, &path)), expected, "{method} {path}");
    }
    for path in ["/openapi.json", "/nothing", "/tasks/../tasks", "/../../metrics", "/..%2f..%2fmetrics", "/login/x"] {
        assert_eq!(status(&stranger, &Call::get(path)), 401, "{path}");
    }
    // Other spellings and methods of what is open are not open.
    for path in ["/login/", "//login", "/Login", "/%6cogin"] {
        assert_eq!(status(&stranger, &Call::post(path)), 401, "{path}");
    }
    assert_eq!(status(&stranger, &Call::get("/login")), 401);
    for token in ["", "x", "carrack_a_b", &format!("carrack_{}_{}", "a".repeat(16), "b".repeat(52))] {
        let call = Call::get("/tasks").header("authorization", format!("Bearer {token}"));
        assert_eq!(status(&stranger, &call), 401, "{token}");
    }
}

/// The id of what a request makes.
fn made(client: &Client, path: &str, body: &Value) -> String {
    let made: Value = client.call(&Call::post(path).body(body).unwrap()).unwrap().json().unwrap();
    made["id"].as_str().unwrap().to_owned()
}

/// Two users. Whatever is one's, the other gets the same answer for it as for what there is not.
#[test]
fn rows_of_others_are_not_found_on_any_route() {
    let rig = Rig::start();
    let (ann, bob) = (rig.user("ann", Role::User), rig.user("bob", Role::User));
    let eve = rig.user("eve", Role::Viewer);
    add_endpoint(&ann, &NewEndpoint { uploads: true, ..endpoint("annlab", &[]) }).unwrap();
    let task = submit(&ann, &copy("@annlab:/canary-source", "@annlab:/b")).unwrap();
    let timer = NewTimer {
        label: Some("canary-timer".into()),
        schedule: TimerSchedule { every_seconds: Some(3600), ..TimerSchedule::default() },
        task: copy("@annlab:/a", "@annlab:/b"),
    };
    let timer: Timer = ann.call(&Call::post("/timers").body(&timer).unwrap()).unwrap().json().unwrap();
    let (token, mut walked) = (rig.token("ann", None).row.id, 0);
    let listing = made(&ann, "/listings", &json!({ "endpoint": "annlab", "path": "/" }));
    let upload = made(&ann, "/endpoints/annlab/uploads", &upload());
    for (method, path) in routes() {
        let path = path.strip_prefix("/api/v1").unwrap_or(&path).replace("{n}", "0").replace("{other}", "annlab");
        let (name, own, none) = match path.split('/').nth(1) {
            Some("tasks") => ("{id}", task.id.as_str(), "0190-no-such-task"),
            Some("timers") => ("{id}", timer.id.as_str(), "0190-no-such-timer"),
            Some("tokens") => ("{id}", token.as_str(), "aaaaaaaaaaaaaaaa"),
            Some("endpoints") => ("{name}", "annlab", "nolab"),
            Some("uploads") => ("{id}", upload.as_str(), "0190-no-such-upload"),
            Some("listings") => ("{id}", listing.as_str(), "0190-no-such-listing"),
            Some("users") => ("{name}", "ann", "nobody"),
            _ => continue,
        };
        if !path.contains(name) {
            continue;
        }
        walked += 1;
        let (there, not_there) = (path.replace(name, own), path.replace(name, none));
        for client in [&bob, &eve] {
            let answers = [&there, &not_there].map(|path| match client.call(&call(&method, path)) {
                Err(ClientError::Problem(problem)) => problem,
                other => panic!("{method} {path}: {other:?}"),
            });
            assert_eq!(answers[0], answers[1], "{method} {path}");
            // A role that may not change anything, nor read files, is told so, whatever it names.
            assert!([404, 403].contains(&answers[0].status), "{method} {path}: {answers:?}");
            let is_change =
                method != "get" || ["/files/", "/listings/", "/uploads/"].iter().any(|part| path.contains(part));
            assert!(answers[0].status == 404 || is_change, "{method} {path}: {answers:?}");
        }
        assert_ne!(
            status(
                &ann,
                &call("get", &there.split("/files/").next().unwrap().replace("/test", "").replace("/names", ""))
            ),
            404,
            "{there}"
        );
    }
    assert!(walked >= 20, "{walked}");
    // Lists and events of others are empty, also where the owner is named.
    for path in
        ["/tasks", "/tasks?owner=ann", "/timers?owner=ann", "/timers", "/endpoints", "/events", "/events?since=0"]
    {
        let listed: Value = bob.get(path).unwrap();
        assert_eq!(listed["items"], json!([]), "{path}: {listed}");
    }
    assert_eq!(status(&bob, &Call::get(format!("/events?task={}", task.id))), 404);
    assert_eq!(status(&bob, &Call::get("/tokens?user=ann")), 404);
    assert_eq!(status(&bob, &Call::get("/users")), 403);
    // A task at another's endpoint, by any of its ends.
    add_endpoint(&bob, &endpoint("boblab", &[])).unwrap();
    for (source, destination) in
        [("@annlab:/a", "@boblab:/a"), ("@boblab:/a", "@annlab:/a"), ("@nolab:/a", "@boblab:/a")]
    {
        let request = copy(source, destination);
        assert_eq!(status(&bob, &Call::post("/tasks").body(&request).unwrap()), 404, "{source} {destination}");
    }
    assert_eq!(status(&rig.local(), &Call::get(format!("/tasks/{}", task.id))), 200);
    // Nothing of it all has changed anything.
    assert_eq!(ann.get::<Value>(&format!("/tasks/{}", task.id)).unwrap()["version"], json!(task.version));
}

#[test]
fn cursor_of_anothers_row_is_like_one_of_no_row() {
    let rig = Rig::start();
    let (ann, bob) = (rig.user("ann", Role::User), rig.user("bob", Role::User));
    add_endpoint(&ann, &endpoint("annlab", &[])).unwrap();
    let task = submit(&ann, &copy("@annlab:/a", "@annlab:/b")).unwrap();
    let timer = NewTimer {
        label: None,
        schedule: TimerSchedule { every_seconds: Some(3600), ..TimerSchedule::default() },
        task: copy("@annlab:/a", "@annlab:/b"),
    };
    let timer: Timer = ann.call(&Call::post("/timers").body(&timer).unwrap()).unwrap().json().unwrap();
    for (list, id) in [("tasks", &task.id), ("timers", &timer.id)] {
        let path = format!("/{list}?cursor={id}");
        assert_eq!([&ann, &bob].map(|client| status(client, &Call::get(path.clone()))), [200, 404], "{path}");
        assert_eq!(status(&bob, &Call::get(format!("/{list}?cursor=none"))), 404);
    }
}

#[test]
fn unknown_parameters_are_refused_by_every_route() {
    let rig = Rig::start();
    let local = rig.local();
    let mut routes = routes();
    routes.push(("get".to_owned(), "/openapi.json".to_owned()));
    for (method, path) in &routes {
        let path = path.strip_prefix("/api/v1").unwrap_or(path).replace(['{', '}'], "");
        let path = path.replace("/blocks/number", "/blocks/1");
        let asked = format!("{path}?nonsense=1");
        let call = match method.as_str() {
            "get" => Call::get(asked),
            "post" => Call::post(asked).body(&json!({})).unwrap(),
            "put" => Call::put(asked).bytes(b"block".to_vec()),
            "patch" => Call::patch(asked).body(&json!({})).unwrap(),
            _ => Call::delete(asked),
        };
        let Err(ClientError::Problem(problem)) = local.call(&call) else { panic!("{method} {path} was taken") };
        assert!(problem.status == 400 && problem.detail.contains("nonsense"), "{method} {path}: {problem:?}");
    }
    // What a route takes is not refused.
    assert_eq!(status(&local, &Call::get("/tasks?limit=1")), 200);
}
