//! Tasks, endpoints and timers by their routes.

use std::io::{BufRead, BufReader};
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::rig::{Rig, add_endpoint, copy, endpoint, submit};
use crate::api::Patience;
use crate::client::{Call, Client, ClientError};
use crate::model::{
    DryRun, Endpoint, EndpointLocation, EndpointTest, Listed, NewEndpoint, NewTask, ProblemCode, Role, Scope, Secret,
    Task, TaskItem, TaskLeftovers, TaskState, Verb,
};

fn problem<T: std::fmt::Debug>(called: Result<T, ClientError>) -> crate::model::Problem {
    match called {
        Err(ClientError::Problem(problem)) => *problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn submission_again_is_the_same_task_and_another_request_a_conflict() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let request = copy("@lab:/a", "@lab:/b");
    let call = |request: &NewTask| Call::post("/tasks").body(request).unwrap().header("idempotency-key", "run-42");
    let woken = rig.backend.woken.load(Ordering::Relaxed);
    let first = ann.call(&call(&request)).unwrap();
    assert_eq!((first.status, first.is_replay), (201, false));
    assert!(rig.backend.woken.load(Ordering::Relaxed) > woken);
    let task: Task = first.json().unwrap();
    assert_eq!((task.owner.as_str(), task.state), ("ann", TaskState::Queued));
    assert_eq!(first.etag.as_deref(), Some(format!("\"{}\"", task.version).as_str()));
    for _ in 0..10 {
        let again = ann.call(&call(&request)).unwrap();
        assert_eq!((again.status, again.is_replay, again.json::<Task>().unwrap().id), (200, true, task.id.clone()));
    }
    let by_query = ann.call(&Call::post("/tasks?submission_id=run-42").body(&request).unwrap()).unwrap();
    assert!(by_query.is_replay);
    let other = problem(ann.call(&call(&copy("@lab:/a", "@lab:/c"))));
    assert_eq!((other.status, other.code), (409, ProblemCode::SubmissionDiffers));
    // Another user's id is another id.
    let bob = rig.user("bob", Role::User);
    add_endpoint(&bob, &endpoint("boblab", &[])).unwrap();
    let his = bob.call(&call(&copy("@boblab:/a", "@boblab:/b"))).unwrap();
    assert_eq!(his.status, 201);
    assert_eq!(ann.get::<Listed<Task>>("/tasks").unwrap().items.len(), 1);
}

#[test]
fn request_that_can_be_no_task_is_refused_with_its_reason() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let mut read_only = endpoint("ro", &[]);
    read_only.read_only = true;
    add_endpoint(&ann, &read_only).unwrap();
    for (body, status, part) in [
        (json!({}), 400, "pairs"),
        (json!({"pairs": []}), 400, "pairs"),
        (json!({"pairs": [{"source": "@lab:/a"}]}), 400, "destination"),
        (json!({"kind": "delete", "pairs": [{"source": "@lab:/a", "destination": "@lab:/b"}]}), 400, "no destination"),
        (json!({"kind": "teleport", "pairs": []}), 400, "copy, move, delete or check"),
        (json!({"pears": []}), 400, "pears"),
        (json!({"pairs": [{"source": "@lab:/a/../b", "destination": "@lab:/b"}]}), 400, "no . and no .."),
        (json!({"pairs": [{"source": "@lab:/%2e%2e/b", "destination": "@lab:/b"}]}), 400, "no . and no .."),
        (json!({"pairs": [{"source": "lab:/a", "destination": "@lab:/b"}]}), 400, "@NAME:/path"),
        (json!({"pairs": [{"source": "/etc/passwd", "destination": "@lab:/b"}]}), 403, "raw-location"),
        (json!({"pairs": [{"source": "carrack://n/a", "destination": "@lab:/b"}]}), 403, "raw-location"),
        (json!({"pairs": [{"source": "ssh://h/a", "destination": "@lab:/b"}]}), 403, "raw-location"),
        (json!({"pairs": [{"source": "@lab:/a", "destination": "null:"}]}), 403, "raw-location"),
        (json!({"pairs": [{"source": "@lab:/a", "destination": "@ro:/b"}]}), 403, "endpoint-read-only"),
        (json!({"kind": "move", "pairs": [{"source": "@ro:/a", "destination": "@lab:/b"}]}), 403, "endpoint-read-only"),
        (json!({"pairs": [{"source": "@lab:/a", "destination": "@lab:/b"}], "priority": 10}), 400, "priority"),
        (json!({"pairs": [{"source": "@lab:/a", "destination": "@lab:/b"}], "timer": "x"}), 400, "set by the service"),
        (json!({"pairs": [{"source": "@lab:/a", "destination": "@lab:/b"}], "token": "x"}), 400, "set by the service"),
        (
            json!({"pairs": [{"source": "@lab:/a", "destination": "@lab:/b"}], "deadline": "2001-01-01T00:00:00Z"}),
            400,
            "over",
        ),
        (
            json!({"pairs": [{"source": "@lab:/a", "destination": "@lab:/b"}], "options": {"verify": "maybe"}}),
            400,
            "verify",
        ),
        (
            json!({"pairs": [{"source": "@lab:/a", "destination": "@lab:/b"}], "expect_digests": {"a": ""}}),
            400,
            "digest",
        ),
    ] {
        let refused = problem(ann.call(&Call::post("/tasks").body(&body).unwrap()));
        assert_eq!(refused.status, status, "{body}: {refused:?}");
        assert!(refused.detail.contains(part), "{body}: {refused:?}");
    }
    assert!(ann.get::<Listed<Task>>("/tasks").unwrap().items.is_empty());
    // The account that runs the service names what it likes.
    submit(&rig.local(), &copy("/data/a", "carrack://n/b")).unwrap();
    let tried: DryRun = ann
        .call(&Call::post("/tasks?dry_run=true").body(&copy("@lab:/a", "@lab:/b")).unwrap())
        .unwrap()
        .json()
        .unwrap();
    assert!(tried.valid && tried.why.contains("nothing is known"));
    assert!(ann.get::<Listed<Task>>("/tasks").unwrap().items.is_empty(), "tried, not kept");
}

#[test]
fn task_options_are_refused_with_the_sentence_of_the_command_line() {
    let rig = Rig::start();
    let local = rig.local();
    let of = |kind: &str, options: &str| {
        let pair = r#"{"source": "/a", "destination": "/b"}"#;
        let body: Value =
            serde_json::from_str(&format!(r#"{{"kind": "{kind}", "pairs": [{pair}], "options": {options}}}"#)).unwrap();
        local.call(&Call::post("/tasks").body(&body).unwrap())
    };
    let digests = "use blake3, xxh128, adler32, crc32c, or none alone";
    for (kind, options, detail) in [
        (
            "copy",
            r#"{"digest": "blake3,xxh128"}"#,
            "options.digest: blake3 and xxh128 are not computed together: name one of them",
        ),
        ("copy", r#"{"digest": "blake3,none"}"#, &format!(r#"options.digest: "none" is not a digest: {digests}"#)),
        ("copy", r#"{"digest": ""}"#, &format!(r#"options.digest: "" is not a digest: {digests}"#)),
        ("copy", r#"{"digest": "md5"}"#, &format!(r#"options.digest: "md5" is not a digest: {digests}"#)),
        ("copy", r#"{"digest": "none"}"#, "options: digest none leaves nothing to verify by"),
        ("copy", r#"{"digest": "none", "verify": "disk"}"#, "options: digest none leaves nothing to verify by"),
        ("move", r#"{"verify": "none"}"#, "options: a move deletes its sources: what arrived must be verified first"),
        ("copy", r#"{"verify": "Wire"}"#, r#"options.verify: "Wire": use wire, disk, source or none"#),
        (
            "copy",
            r#"{"congestion": "b r"}"#,
            r#"options.congestion: "b r" is no name of a congestion control: try cubic or bbr"#,
        ),
        ("copy", r#"{"streams": 0}"#, r#"options.streams: "0" is not a number of streams: use 1 to 256, or auto"#),
        ("copy", r#"{"streams": -4}"#, r#"options.streams: "-4" is not a number of streams: use 1 to 256, or auto"#),
        ("copy", r#"{"streams": "4"}"#, r#"options.streams: "4" is a text: write a number, without quotes"#),
        (
            "copy",
            r#"{"block_bytes": 5242880}"#,
            r#"options.block_bytes: "5242880" is not a block size: a power of two from 64K to 64M"#,
        ),
        (
            "copy",
            r#"{"rate_limit": 1.5}"#,
            r#"options.rate_limit: "1.5" is not a size: there is no fraction of a byte"#,
        ),
        ("copy", r#"{"verify": true}"#, "options.verify: invalid type: boolean `true`, expected a text"),
    ] {
        let refused = problem(of(kind, options));
        assert_eq!((refused.status, &refused.detail[..]), (400, detail), "{options}");
    }
    for options in [r#"{"digest": "none", "verify": "none"}"#, r#"{"streams": "auto"}"#, r#"{"rate_limit": 0}"#] {
        let kept: Task = of("copy", options).unwrap().json().unwrap();
        let kept = serde_json::to_value(&kept.request.options).unwrap();
        assert_eq!(kept, serde_json::from_str::<Value>(options).unwrap());
    }
}

#[test]
fn task_is_changed_only_in_the_version_that_was_read() {
    let rig = Rig::start();
    let local = rig.local();
    let task = submit(&local, &copy("/a", "/b")).unwrap();
    let path = format!("/tasks/{}", task.id);
    let change = |version: u64, body: Value| {
        local.call(&Call::patch(&path).body(&body).unwrap().header("if-match", format!("\"{version}\"")))
    };
    let changed: Task = change(task.version, json!({"label": "one", "priority": 7})).unwrap().json().unwrap();
    assert_eq!((changed.request.label.as_deref(), changed.request.priority), (Some("one"), Some(7)));
    assert!(changed.version > task.version);
    let stale = problem(change(task.version, json!({"label": "two"})));
    assert_eq!((stale.status, stale.code), (412, ProblemCode::VersionDiffers));
    let cleared: Task = change(changed.version, json!({"label": null})).unwrap().json().unwrap();
    assert_eq!((cleared.request.label, cleared.request.priority), (None, Some(7)));
    let bad = local.call(&Call::patch(&path).body(&json!({})).unwrap().header("if-match", "7"));
    assert_eq!(problem(bad).status, 400);
    let cancelled: Task = local.call(&Call::post(format!("{path}/cancel"))).unwrap().json().unwrap();
    assert_eq!((cancelled.state, cancelled.cancel_wanted), (TaskState::Cancelled, true));
    assert_eq!(problem(local.call(&Call::patch(&path).body(&json!({"priority": 1})).unwrap())).status, 409);
    assert_eq!(problem(local.call(&Call::post(format!("{path}/pause")))).status, 409);
    let again: Task = local.call(&Call::post(format!("{path}/retry"))).unwrap().json().unwrap();
    assert_eq!(again.state, TaskState::Queued);
    let twin: Task = local.call(&Call::post(format!("{path}/clone"))).unwrap().json().unwrap();
    assert_ne!(twin.id, task.id);
    let count: Value = local.call(&Call::post("/tasks/cancel")).unwrap().json().unwrap();
    assert_eq!(count, json!({"tasks": 2}));
}

#[test]
fn tasks_are_listed_by_pages_and_filters() {
    let rig = Rig::start();
    let local = rig.local();
    let mut submitted: Vec<String> = (0..25)
        .map(|number| {
            let mut request = copy("/a", "/b");
            request.label = Some(format!("run {number}"));
            submit(&local, &request).unwrap().id
        })
        .collect();
    submitted.reverse();
    let listed: Vec<Task> = local.rows("/tasks?limit=10").map(Result::unwrap).collect();
    assert_eq!(listed.iter().map(|task| task.id.clone()).collect::<Vec<_>>(), submitted);
    let page: Listed<Task> = local.get("/tasks?limit=25").unwrap();
    assert_eq!((page.items.len(), page.next), (25, None));
    assert_eq!(local.rows::<Task>("/tasks?label=RUN%202&limit=3").count(), 6);
    assert_eq!(local.rows::<Task>("/tasks?state=queued,active").count(), 25);
    assert_eq!(local.rows::<Task>("/tasks?state=FAILED").count(), 0);
    for query in ["state=nothing", "limit=0", "limit=1001", "limit=x", "since=yesterday", "stat=queued"] {
        assert_eq!(problem(local.get::<Value>(&format!("/tasks?{query}"))).status, 400, "{query}");
    }
}

#[test]
fn items_come_by_page_by_line_and_as_csv() {
    let rig = Rig::start();
    let local = rig.local();
    let task = submit(&local, &copy("/a", "/b")).unwrap();
    let item = |number: usize| TaskItem {
        pair: 0,
        path: format!("dir/file \"{number}\""),
        kind: "file".into(),
        state: if number.is_multiple_of(10) { crate::model::ItemState::Failed } else { crate::model::ItemState::Done },
        size: number as u64,
        digest: Some("ab".repeat(32)),
        failure: None,
        differs: Vec::new(),
    };
    let all: Vec<TaskItem> = (0..2500).map(item).collect();
    *rig.backend.items.lock().unwrap() = all.clone();
    let path = format!("/tasks/{}/items", task.id);
    assert_eq!(local.rows::<TaskItem>(&format!("{path}?limit=7")).map(Result::unwrap).collect::<Vec<_>>(), all);
    let lines = BufReader::new(local.stream(&path, "application/x-ndjson").unwrap()).lines();
    assert_eq!(lines.map(|line| serde_json::from_str::<TaskItem>(&line.unwrap()).unwrap()).collect::<Vec<_>>(), all);
    let csv = BufReader::new(local.stream(&format!("{path}?state=failed"), "text/csv").unwrap()).lines();
    let csv: Vec<String> = csv.map(Result::unwrap).collect();
    assert_eq!(csv.len(), 251);
    assert_eq!(csv[2].trim_end(), format!("0,failed,file,10,{},\"dir/file \"\"10\"\"\",,,", "ab".repeat(32)));
    assert_eq!(problem(local.get::<Value>(&format!("{path}?cursor=nonsense"))).status, 400);
    assert_eq!(problem(local.get::<Value>(&format!("{path}?state=gone"))).status, 400);
}

#[test]
fn endpoint_keeps_its_token_sealed_and_forgets_it_with_its_place() {
    let rig = Rig::start();
    let local = rig.local();
    let mut new = endpoint("lab", &["bob"]);
    new.token = Some(Secret::new("canary-3c1d9e"));
    let added = add_endpoint(&local, &new).unwrap();
    assert!(added.has_token && added.owner == "local");
    let row = rig.ledger.endpoint("lab").unwrap();
    let sealed = row.sealed_token.unwrap();
    assert!(!String::from_utf8_lossy(&sealed).contains("canary"));
    local.call(&Call::post("/endpoints/lab/test")).unwrap();
    assert_eq!(*rig.backend.tested.lock().unwrap(), [("lab".to_owned(), Some(Secret::new("canary-3c1d9e")))]);
    // Who may use it does not change it, and sees no token.
    let bob = rig.user("bob", Role::User);
    assert!(bob.get::<Endpoint>("/endpoints/lab").unwrap().has_token);
    let refused = problem(bob.call(&Call::patch("/endpoints/lab").body(&json!({"read_only": true})).unwrap()));
    assert_eq!((refused.status, refused.code), (403, ProblemCode::Forbidden));
    assert_eq!(problem(bob.call(&Call::delete("/endpoints/lab"))).status, 403);
    // Another place does not get the token of the one before.
    let location = EndpointLocation::Node { host: "192.0.2.9".into(), port: 7420, fingerprint: None, path: "/".into() };
    let moved = local.call(&Call::patch("/endpoints/lab").body(&json!({ "location": location })).unwrap());
    assert!(!moved.unwrap().json::<Endpoint>().unwrap().has_token);
    let stale = Call::patch("/endpoints/lab").body(&json!({"read_only": true})).unwrap().header("if-match", "\"1\"");
    assert_eq!(problem(local.call(&stale)).status, 412);
    assert_eq!(problem(local.call(&Call::post("/endpoints").body(&endpoint("lab", &[])).unwrap())).status, 409);
    let task = submit(&local, &copy("@lab:/a", "@lab:/b")).unwrap();
    assert_eq!(problem(local.call(&Call::delete("/endpoints/lab"))).status, 409, "a task uses it");
    local.call(&Call::post(format!("/tasks/{}/cancel", task.id))).unwrap();
    assert_eq!(local.call(&Call::delete("/endpoints/lab")).unwrap().status, 204);
}

/// Users have the service connect to the network, not to its own host, and not with the account of the service.
#[test]
fn pause_of_a_task_that_has_ended_is_a_conflict() {
    use crate::ledger::{TaskChange, TaskGuard};
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let task = submit(&ann, &copy("@lab:/a", "@lab:/b")).unwrap();
    let pause = Call::post(format!("/tasks/{}/pause", task.id));
    ann.call(&pause).unwrap();
    let cancelled = TaskChange { state: Some(TaskState::Cancelled), ..TaskChange::default() };
    rig.ledger.change_task(&task.id, &TaskGuard::default(), &cancelled, &[], rig.api().now()).unwrap();
    assert_eq!(problem(ann.call(&pause)).status, 409);
}

#[test]
fn leftovers_are_removed_of_a_task_that_has_ended_by_whoever_may_end_it() {
    // A node that takes a connection, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let rig = Rig::patient(Patience { request: Duration::from_secs(4), ..Patience::default() });
    let ann = rig.user("ann", Role::User);
    let location = EndpointLocation::Node {
        host: "127.0.0.1".into(),
        port: silent.local_addr().unwrap().port(),
        fingerprint: Some("ab".repeat(32)),
        path: "/".into(),
    };
    add_endpoint(&rig.local(), &NewEndpoint { location, ..endpoint("lab", &["ann"]) }).unwrap();
    *rig.backend.markers.lock().unwrap() = vec![(0, [7; 8]), (9, [8; 8])];
    let task = submit(&ann, &copy("@lab:/a", "@lab:/b")).unwrap();
    let path = format!("/tasks/{}/leftovers", task.id);
    let remove = |client: &Client| client.call(&Call::delete(&path));
    let refused = problem(remove(&ann));
    assert_eq!((refused.status, refused.code), (409, ProblemCode::Conflict), "{refused:?}");
    assert!(refused.detail.contains("is QUEUED") && refused.hints[0].contains("task cancel"), "{refused:?}");
    assert_eq!(problem(remove(&rig.user("bob", Role::User))).status, 404);
    ann.call(&Call::post(format!("/tasks/{}/cancel", task.id))).unwrap();
    let looks = Scope { verbs: vec![Verb::View], ..Scope::default() };
    let looks = rig.with_token(&rig.token("ann", Some(looks)).token);
    assert_eq!(problem(remove(&looks)).status, 403);
    // Nobody answers there: whoever asks is told so, before the request is given up.
    for told in [remove(&ann), ann.call(&Call::get(&path))] {
        let left: TaskLeftovers = told.unwrap().json().unwrap();
        assert_eq!((left.files, left.unknown.len()), (0, 1), "{left:?}");
        assert_eq!(left.unknown[0].destination, "@lab:/b");
        assert!(left.unknown[0].why.starts_with("endpoint lab has not answered within 3 s"), "{left:?}");
    }
    // A token that may not write at the endpoint learns nothing of it.
    let left: TaskLeftovers = looks.get(&path).unwrap();
    assert!(left.files == 0 && left.unknown[0].why.contains("its scope lacks write"), "{left:?}");
}

#[test]
fn ledger_that_another_program_holds_makes_the_service_unready_and_says_when_to_come_again() {
    use std::io::{Read, Write};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let ledger = crate::ledger::sqlite::SqliteLedger::open(&path, crate::clock::Moment(0)).unwrap();
    let rig = Rig::over(std::sync::Arc::new(ledger));
    let ask = |line: &str, body: &str| {
        let mut socket = std::os::unix::net::UnixStream::connect(rig.socket()).unwrap();
        let head = "Host: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length:";
        write!(socket, "{line} HTTP/1.1\r\n{head} {}\r\n\r\n{body}", body.len()).unwrap();
        let mut told = String::new();
        socket.read_to_string(&mut told).unwrap();
        told.to_ascii_lowercase()
    };
    assert!(ask("GET /readyz", "").starts_with("http/1.1 200"));
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // What a probe found is kept for a second.
    let mut told = ask("GET /readyz", "");
    while told.starts_with("http/1.1 200") {
        told = ask("GET /readyz", "");
    }
    for told in [told, ask("POST /api/v1/users", r#"{"name": "eve", "role": "user"}"#)] {
        assert!(told.starts_with("http/1.1 503") && told.contains("ledger-held"), "{told}");
        assert!(told.contains("retry-after: 2"), "{told}");
    }
    other.execute_batch("ROLLBACK").unwrap();
    assert!(ask("GET /readyz", "").starts_with("http/1.1 200"));
}

#[test]
fn test_of_an_endpoint_leaves_a_file_there_only_by_a_right_to_write_and_to_delete() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let verbs = [Verb::Read, Verb::Write, Verb::Delete];
    for (may, writes) in [(&verbs[..], true), (&verbs[..1], false), (&verbs[..2], false)] {
        let scope = Scope { verbs: may.to_vec(), ..Scope::default() };
        let client = rig.with_token(&rig.token("ann", Some(scope)).token);
        let test: EndpointTest = client.call(&Call::post("/endpoints/lab/test")).unwrap().json().unwrap();
        assert_eq!(test.checks.iter().any(|check| check.name == "write"), writes, "{may:?}: {test:?}");
    }
}

#[test]
fn tests_of_endpoints_are_one_of_each_and_four_in_all_at_once() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    let names = ["e0", "e1", "e2", "e3", "e4"];
    names.iter().for_each(|name| drop(add_endpoint(&ann, &endpoint(name, &[])).unwrap()));
    let test = |name: &str| ann.call(&Call::post(format!("/endpoints/{name}/test"))).map(drop);
    std::thread::scope(|scope| {
        let holds = rig.backend.testing.lock().unwrap();
        let tests: Vec<_> = names[..4].iter().map(|name| scope.spawn(|| test(name))).collect();
        while rig.backend.tested.lock().unwrap().len() < 4 {
            std::thread::yield_now();
        }
        for (name, why) in [("e0", "@e0 is tested at present"), ("e4", "as many endpoints are tested")] {
            let refused = problem(test(name));
            assert_eq!((refused.status, refused.code), (429, ProblemCode::TooMany), "{name}");
            assert!(refused.detail.contains(why), "{refused:?}");
        }
        // Whoever may not see it learns nothing of it.
        let bob = rig.user("bob", Role::User);
        assert_eq!(problem(bob.call(&Call::post("/endpoints/e0/test")).map(drop)).status, 404);
        drop(holds);
        tests.into_iter().for_each(|test| test.join().unwrap().unwrap());
    });
    test("e4").unwrap();
    test("e0").unwrap();
}

#[test]
fn endpoint_of_a_user_is_not_the_services_own_host() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    let at = |host: &str| {
        let location = EndpointLocation::Node { host: host.into(), port: 80, fingerprint: None, path: "/".into() };
        crate::model::NewEndpoint { location, ..endpoint("x", &[]) }
    };
    for host in ["127.0.0.1", "localhost", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0.0.0.0", "fe80::1"] {
        assert_eq!(problem(add_endpoint(&ann, &at(host))).status, 403, "{host}");
    }
    for location in [
        EndpointLocation::Local { root: "/".into() },
        EndpointLocation::Ssh { user: None, host: "far".into(), path: "/".into() },
    ] {
        let new = crate::model::NewEndpoint { location, ..endpoint("x", &[]) };
        assert_eq!(problem(add_endpoint(&ann, &new)).status, 403);
    }
    for host in ["", "-oProxyCommand=x", "a b", "h/x", "a@b", "$(id)"] {
        assert_eq!(problem(add_endpoint(&rig.local(), &at(host))).status, 400, "{host}");
    }
    add_endpoint(&ann, &at("192.0.2.7")).unwrap();
    let moved =
        json!({"location": {"kind": "node", "host": "127.0.0.1", "port": 80, "fingerprint": null, "path": "/"}});
    assert_eq!(problem(ann.call(&Call::patch("/endpoints/x").body(&moved).unwrap())).status, 403);
    add_endpoint(&rig.local(), &crate::model::NewEndpoint { name: "own".into(), ..at("127.0.0.1") }).unwrap();
}

#[test]
fn timer_is_made_paused_resumed_and_removed() {
    let rig = Rig::start();
    let local = rig.local();
    let body = json!({"label": "nightly", "schedule": {"every_seconds": 3600},
        "task": {"pairs": [{"source": "/a", "destination": "/b"}]}});
    let made: Value = local.call(&Call::post("/timers").body(&body).unwrap()).unwrap().json().unwrap();
    let path = format!("/timers/{}", made["id"].as_str().unwrap());
    assert_eq!((&made["state"], &made["owner"]), (&json!("waiting"), &json!("local")));
    let paused: Value = local.call(&Call::post(format!("{path}/pause"))).unwrap().json().unwrap();
    assert_eq!((&paused["state"], &paused["next_run"]), (&json!("paused"), &Value::Null));
    let resumed: Value = local.call(&Call::post(format!("{path}/resume"))).unwrap().json().unwrap();
    assert_eq!(resumed["state"], json!("waiting"));
    let mut bad = body.clone();
    bad["schedule"] = json!({"cron": "never"});
    assert!(problem(local.call(&Call::post("/timers").body(&bad).unwrap())).detail.contains("cron"));
    assert_eq!(local.call(&Call::delete(&path)).unwrap().status, 204);
    assert_eq!(problem(local.get::<Value>(&path)).status, 404);
}

#[test]
fn timer_is_changed_in_part_and_judged_as_a_new_one() {
    let rig = Rig::start();
    let (local, ann) = (rig.local(), rig.user("ann", Role::User));
    let body = json!({"label": "nightly", "schedule": {"every_seconds": 3600, "runs": 9},
        "task": {"pairs": [{"source": "/a", "destination": "/b"}]}});
    let made: Value = local.call(&Call::post("/timers").body(&body).unwrap()).unwrap().json().unwrap();
    let path = format!("/timers/{}", made["id"].as_str().unwrap());
    let patch = |body: &Value| local.call(&Call::patch(&path).body(body).unwrap());
    let changed: Value = patch(&json!({"label": null, "schedule": {"every_seconds": 60}})).unwrap().json().unwrap();
    assert_eq!((&changed["label"], &changed["schedule"]["every_seconds"]), (&Value::Null, &json!(60)));
    assert_eq!((&changed["task"]["pairs"], &changed["version"]), (&made["task"]["pairs"], &json!(2)));
    // Left as it was where anything of it is refused.
    for (body, words) in [
        (json!({"label": "x", "schedule": {"cron": "never"}}), "cron"),
        (json!({"label": "x\ny"}), "label"),
        (json!({"label": "x", "task": {"pairs": []}}), "pairs"),
        (
            json!({"task": {"pairs": [{"source": "/a", "destination": "/b"}], "deadline": "2126-01-01T00:00:00Z"}}),
            "deadline",
        ),
    ] {
        let refused = problem(patch(&body));
        assert!(refused.status == 400 && refused.detail.contains(words), "{body}: {refused:?}");
    }
    let stays: Value = local.get(&path).unwrap();
    assert_eq!(stays, changed);
    assert_eq!(problem(ann.call(&Call::patch(&path).body(&json!({"label": "mine"})).unwrap())).status, 404);
    // A paused one stays paused.
    local.call(&Call::post(format!("{path}/pause"))).unwrap();
    let paused: Value = patch(&json!({"schedule": {"every_seconds": 120}})).unwrap().json().unwrap();
    assert_eq!((&paused["state"], &paused["next_run"]), (&json!("paused"), &Value::Null));
}
