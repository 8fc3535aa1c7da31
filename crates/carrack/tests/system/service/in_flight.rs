//! The files in flight of a task, as its document tells them while a worker copies between two nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_service::client::{Call, Client, Target};
use serde_json::{Value, json};

use crate::support::node::Node;
use crate::support::service::Service;
use crate::support::{Sandbox, wait_until};

/// Three seconds of the rate: a file is told once a second.
const LARGE: usize = 16 << 20;

fn files(task: &Value) -> Vec<(String, u64)> {
    let of = |file: &Value| {
        assert_eq!((&file["pair"], &file["size"]), (&json!(0), &json!(LARGE)), "{file}");
        (file["path"].as_str().unwrap().to_owned(), file["bytes"].as_u64().unwrap())
    };
    task["in_flight"].as_array().map_or_else(Vec::new, |list| list.iter().map(of).collect())
}

/// Whether the worker's own note of what is in flight lies beside the journal.
fn is_noted(state: &Path, id: &str) -> bool {
    state.join("tasks").join(id).join("in-flight").exists()
}

#[test]
fn in_flight_of_a_task_is_there_while_it_copies_and_at_no_other_time() {
    let sandbox = Sandbox::new();
    let service = Service::start(&sandbox, &[]);
    let state = sandbox.path("home/.local/state/carrack/service");
    let nodes = ["near", "far"].map(|name| (name, Node::start(&sandbox, name, &["--dial-to=127.0.0.0/8"])));
    for (name, node) in &nodes {
        sandbox.ok(["endpoint", "add", name, &node.at(""), &node.token()]);
    }
    let names = [&b"a\\b"[..], b"line\nfeed", b"\xff"];
    let shown: BTreeSet<String> = ["run/a\\\\b", "run/line\nfeed", "run/\\xff"].map(Into::into).into();
    for name in names {
        let path = [b"near/run/", name].concat();
        sandbox.write(OsStr::from_bytes(&path), vec![7; LARGE]);
    }
    (0..300).for_each(|number| drop(sandbox.write(format!("near/run/small/{number}"), "small")));
    let client = Client::new(Target::Socket(state.join("service.sock")), None).unwrap();
    let request = json!({
        "pairs": [{ "source": "@near:/run", "destination": "@far:/" }], "options": { "rate_limit": 5_000_000 },
    });
    let made: Value = client.call(&Call::post("/tasks").body(&request).unwrap()).unwrap().json().unwrap();
    let id = made["id"].as_str().unwrap().to_owned();
    let task = || client.get::<Value>(&format!("/tasks/{id}")).unwrap();
    let act = |verb: &str| {
        let call = Call::post(format!("/tasks/{id}/{verb}")).body(&json!({})).unwrap();
        client.call(&call).unwrap().json::<Value>().unwrap()
    };
    let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut look = || {
        let task = task();
        for (path, bytes) in files(&task) {
            seen.entry(path).or_default().push(bytes);
        }
        let listed: Value = client.get("/tasks").unwrap();
        assert!(listed["items"][0].get("in_flight").is_none(), "{listed}");
        task
    };
    wait_until("a file is in flight", || files(&look()).iter().any(|(_, bytes)| *bytes > 1 << 20));
    act("pause");
    wait_until("the task is paused", || look()["state"] == "PAUSED");
    let paused = task();
    assert!(paused.get("in_flight").is_none() && !is_noted(&state, &id), "{paused}");
    act("resume");
    wait_until("the task has ended", || look()["state"] == "SUCCEEDED");
    let ended = task();
    assert!(ended.get("in_flight").is_none() && !is_noted(&state, &id), "{ended}");
    assert_eq!(ended["progress"]["items_done"], 303, "{ended}");
    assert!(seen.keys().all(|path| shown.contains(path)) && seen.len() > 1, "{:?}", seen.keys());
    assert!(seen.values().flatten().all(|&bytes| bytes <= LARGE as u64));
    assert!(seen.values().any(|bytes| bytes.iter().any(|&bytes| bytes > 0 && bytes < LARGE as u64)), "{seen:?}");
    assert_eq!(fs::metadata(sandbox.path("far/run/a\\b")).unwrap().len(), LARGE as u64);
    drop(service);
}
