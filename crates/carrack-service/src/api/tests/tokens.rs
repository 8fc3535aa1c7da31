//! Tokens: what their scope allows, and that they end at once.

use serde_json::{Value, json};

use super::rig::{Rig, add_endpoint, copy, endpoint, submit};
use crate::client::{Call, ClientError};
use crate::clock::Moment;
use crate::ledger::{NewEvent, TaskChange, TaskGuard};
use crate::model::{
    Ceilings, EndpointLocation, EventKind, Listed, MadeToken, NewEndpoint, NewToken, Role, Scope, Task, TaskState,
    TokenRow, Verb, Whoami,
};

fn status<T: std::fmt::Debug>(called: Result<T, ClientError>) -> u16 {
    match called {
        Err(ClientError::Problem(problem)) => problem.status,
        other => panic!("{other:?}"),
    }
}

fn scope(verbs: &[Verb], path: Option<&str>) -> Scope {
    Scope {
        verbs: verbs.to_vec(),
        endpoints: path.map(|_| "lab".into()).into_iter().collect(),
        path: path.map(str::to_owned),
        ceilings: Ceilings { bytes: Some(1000), ..Ceilings::default() },
    }
}

#[test]
fn token_allows_what_its_scope_names_and_no_more() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    add_endpoint(&ann, &endpoint("other", &[])).unwrap();
    let elsewhere = submit(&ann, &copy("@lab:/else", "@other:/x")).unwrap();
    let scope = scope(&[Verb::Read, Verb::Write, Verb::Tasks, Verb::View], Some("/run"));
    let narrow = rig.with_token(&rig.token("ann", Some(scope)).token);
    let task = submit(&narrow, &copy("@lab:/run/a", "@lab:/run/b")).unwrap();
    assert_eq!(task.request.ceilings.bytes, Some(1000));
    for (source, destination, expected) in [
        ("@lab:/run/a", "@lab:/running", 403),
        ("@lab:/else", "@lab:/run/b", 403),
        ("@lab:/run/../else", "@lab:/run/b", 400),
        ("@lab:/run/a", "@other:/run/b", 404),
        ("@lab:/run/a", "/run/b", 403),
    ] {
        assert_eq!(status(submit(&narrow, &copy(source, destination))), expected, "{source} {destination}");
    }
    let mut moves = copy("@lab:/run/a", "@lab:/run/b");
    moves.kind = crate::model::TaskKind::Move;
    assert_eq!(status(submit(&narrow, &moves)), 403, "it may not delete");
    // It sees the tasks of its place.
    let seen: Vec<String> = narrow.rows::<Task>("/tasks").map(|task| task.unwrap().id).collect();
    assert_eq!(seen, std::slice::from_ref(&task.id));
    assert_eq!(status(narrow.get::<Task>(&format!("/tasks/{}", elsewhere.id))), 404);
    assert_eq!(status(narrow.get::<Value>("/events")), 403);
    assert!(narrow.get::<Value>(&format!("/events?task={}", task.id)).unwrap()["items"][0].is_object());
    assert_eq!(narrow.get::<Listed<Value>>("/endpoints").unwrap().items.len(), 1);
    // It makes no other tokens, and changes no endpoint.
    assert_eq!(status(narrow.call(&Call::post("/tokens").body(&json!({})).unwrap())), 403);
    assert_eq!(status(narrow.call(&Call::delete("/endpoints/lab"))), 403);
    let who: Whoami = narrow.get("/whoami").unwrap();
    assert_eq!((who.user.as_str(), who.scope.is_some()), ("ann", true));
}

#[test]
fn token_for_two_endpoints_copies_between_them_and_nowhere_else() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    for name in ["one", "two", "three"] {
        add_endpoint(&ann, &endpoint(name, &[])).unwrap();
    }
    let scope = Scope {
        verbs: vec![Verb::Tasks, Verb::Read, Verb::Write, Verb::View],
        endpoints: vec!["one".into(), "two".into()],
        ..Scope::default()
    };
    let narrow = rig.with_token(&rig.token("ann", Some(scope)).token);
    let task = submit(&narrow, &copy("@one:/a", "@two:/b")).unwrap();
    submit(&narrow, &copy("@two:/a", "@one:/b")).unwrap();
    let elsewhere = submit(&ann, &copy("@one:/a", "@three:/b")).unwrap();
    assert_eq!(status(submit(&narrow, &copy("@one:/a", "@three:/b"))), 404);
    assert_eq!(status(submit(&narrow, &copy("@three:/a", "@one:/b"))), 404);
    // It sees the tasks that lie within, by whatever list.
    for path in ["/tasks", "/tasks?endpoint=one", "/tasks?endpoint=two"] {
        let seen: Vec<String> = narrow.rows::<Task>(path).map(|task| task.unwrap().id).collect();
        assert!(seen.len() == 2 && seen.contains(&task.id) && !seen.contains(&elsewhere.id), "{path}: {seen:?}");
    }
    assert_eq!(narrow.rows::<Task>("/tasks?endpoint=three").count(), 0);
    assert_eq!(status(narrow.get::<Task>(&format!("/tasks/{}", elsewhere.id))), 404);
    assert_eq!(narrow.get::<Listed<Value>>("/endpoints").unwrap().items.len(), 2);
    assert_eq!(status(narrow.get::<Value>("/events")), 403);
}

#[test]
fn token_names_endpoints_that_its_user_may_use() {
    let rig = Rig::start();
    let (ann, bob) = (rig.user("ann", Role::User), rig.user("bob", Role::User));
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let body = |scope: Value| json!({ "scope": scope });
    let made = |client: &crate::client::Client, body: Value| client.call(&Call::post("/tokens").body(&body).unwrap());
    let mut told = Vec::new();
    for (client, name) in [(&ann, "lap"), (&bob, "lab"), (&bob, "lap")] {
        let Err(ClientError::Problem(problem)) = made(client, body(json!({ "verbs": ["read"], "endpoints": [name] })))
        else {
            panic!("{name}")
        };
        assert_eq!(problem.status, 400);
        told.push(problem.detail.replace(name, "NAME"));
    }
    assert!(told[0].contains("no endpoint"), "{told:?}");
    assert_eq!(told[1], told[2], "whether there is one must not show");
    for (scope, part) in [
        (json!({ "verbs": ["read"], "endpoints": ["lab", "lab2"], "path": "/x" }), "no endpoint"),
        (json!({ "verbs": ["read"], "endpoints": ["lab", "lab"], "path": "/x" }), "one endpoint"),
        (json!({ "verbs": ["read"], "path": "/x" }), "one endpoint"),
        (json!({ "endpoints": ["lab"] }), "no verb"),
        (json!({ "verbs": ["read"], "endpoints": vec!["lab"; 101] }), "at most 100"),
    ] {
        let Err(ClientError::Problem(problem)) = made(&ann, body(scope.clone())) else { panic!("{scope}") };
        assert!(problem.status == 400 && problem.detail.contains(part), "{scope}: {problem:?}");
    }
    // As an earlier version named it.
    let one: MadeToken = made(&ann, body(json!({ "verbs": ["read"], "endpoint": "lab" }))).unwrap().json().unwrap();
    assert_eq!(one.row.scope.unwrap().endpoints, ["lab"]);
    // An administrator makes one for another user: the right is that user's.
    let of_bob = json!({ "user": "bob", "scope": { "verbs": ["read"], "endpoints": ["lab"] } });
    assert_eq!(status(made(&rig.local(), of_bob)), 400);
}

#[test]
fn refusal_names_the_verbs_that_a_token_lacks() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let with = |verbs: &[Verb]| {
        rig.with_token(&rig.token("ann", Some(Scope { verbs: verbs.to_vec(), ..Scope::default() })).token)
    };
    let mut moves = copy("@lab:/a", "@lab:/b");
    moves.kind = crate::model::TaskKind::Move;
    for (verbs, task, lacks) in [
        (&[Verb::Tasks, Verb::View][..], copy("@lab:/a", "@lab:/b"), "read,write"),
        (&[Verb::Read], copy("@lab:/a", "@lab:/b"), "tasks,write"),
        (&[Verb::Tasks, Verb::Read, Verb::Write], moves, "delete"),
    ] {
        let Err(ClientError::Problem(problem)) = submit(&with(verbs), &task) else { panic!("{verbs:?}") };
        assert_eq!(problem.status, 403);
        assert!(problem.detail.contains(&format!("lacks {lacks} (")), "{verbs:?}: {problem:?}");
        assert!(problem.hints.iter().any(|hint| hint.contains(lacks)), "{problem:?}");
    }
    let Err(ClientError::Problem(problem)) = with(&[Verb::Read]).get::<Value>("/tasks") else {
        panic!("it may not see")
    };
    assert!(problem.status == 403 && problem.detail.contains("lacks view ("), "{problem:?}");
}

#[test]
fn token_that_is_revoked_or_over_opens_nothing_and_its_tasks_end() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let (made, other) = (rig.token("ann", None), rig.token("ann", None));
    let (client, other) = (rig.with_token(&made.token), rig.with_token(&other.token));
    let (mine, others) = (copy("@lab:/a", "@lab:/b"), copy("@lab:/c", "@lab:/d"));
    let (waits, stays) = (submit(&client, &mine).unwrap(), submit(&other, &others).unwrap());
    let runs = submit(&client, &mine).unwrap();
    let event = crate::ledger::NewEvent {
        kind: crate::model::EventKind::Started,
        owner: "ann".into(),
        task: Some(runs.id.clone()),
        subject: None,
        text: "began".into(),
        detail: Value::Null,
    };
    rig.ledger.claim(&runs.id, Moment(1), &event).unwrap();
    assert_eq!(status(rig.user("bob", Role::User).call(&Call::delete(format!("/tokens/{}", made.row.id)))), 404);
    ann.call(&Call::delete(format!("/tokens/{}", made.row.id))).unwrap();
    assert_eq!(status(client.get::<Whoami>("/whoami")), 401);
    let task = |id: &str| rig.ledger.task(id).unwrap();
    assert_eq!(task(&waits.id).state, TaskState::Cancelled);
    assert_eq!((task(&runs.id).state, task(&runs.id).cancel_wanted), (TaskState::Active, true));
    assert_eq!((task(&stays.id).state, task(&stays.id).cancel_wanted), (TaskState::Queued, false));
    // One that ends by itself.
    let soon = Moment::from(std::time::SystemTime::now()).after(std::time::Duration::from_millis(300));
    let new = NewToken { expires: Some(soon), ..NewToken::default() };
    let brief: MadeToken = ann.call(&Call::post("/tokens").body(&new).unwrap()).unwrap().json().unwrap();
    let brief = rig.with_token(&brief.token);
    brief.get::<Whoami>("/whoami").unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while brief.get::<Whoami>("/whoami").is_ok() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert!(Moment::from(std::time::SystemTime::now()) >= soon);
    let rows: Listed<TokenRow> = ann.get("/tokens").unwrap();
    assert!(rows.items.iter().any(|row| row.used.is_some()));
}

/// The service ended between the revocation and the end of the tasks.
#[test]
fn tasks_of_a_revoked_token_end_when_the_service_starts() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let made = rig.token("ann", None);
    let task = submit(&rig.with_token(&made.token), &copy("@lab:/a", "@lab:/b")).unwrap();
    let other = submit(&ann, &copy("@lab:/c", "@lab:/d")).unwrap();
    rig.ledger.remove_token(&made.row.id).unwrap();
    let again = Rig::over(std::sync::Arc::clone(&rig.ledger));
    assert_eq!(again.ledger.task(&task.id).unwrap().state, TaskState::Cancelled);
    assert_eq!(again.ledger.task(&other.id).unwrap().state, TaskState::Queued);
}

#[test]
fn user_who_is_disabled_is_out_at_once() {
    let rig = Rig::start();
    let (ann, local) = (rig.user("ann", Role::User), rig.local());
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let task = submit(&ann, &copy("@lab:/a", "@lab:/b")).unwrap();
    local.call(&Call::patch("/users/ann").body(&json!({"enabled": false})).unwrap()).unwrap();
    assert_eq!(status(ann.get::<Whoami>("/whoami")), 401);
    assert_eq!(rig.ledger.task(&task.id).unwrap().state, TaskState::Cancelled);
    for body in [json!({"enabled": false}), json!({"role": "viewer"})] {
        assert_eq!(status(local.call(&Call::patch("/users/local").body(&body).unwrap())), 409);
    }
}

#[test]
fn token_that_makes_no_sense_is_not_made() {
    let rig = Rig::start();
    for body in [
        json!({"scope": {"verbs": []}}),
        json!({"scope": {"verbs": ["read"], "path": "/a"}}),
        json!({"scope": {"verbs": ["read"], "endpoint": "lab", "path": "/a/../b"}}),
        json!({"scope": {"verbs": ["fly"]}}),
        json!({"expires": "2001-01-01T00:00:00Z"}),
        json!({"label": "a\nb"}),
        json!({"label": 7}),
    ] {
        assert_eq!(status(rig.local().call(&Call::post("/tokens").body(&body).unwrap())), 400, "{body}");
    }
    assert_eq!(status(rig.local().call(&Call::post("/tokens").body(&json!({"user": "nobody"})).unwrap())), 404);
}

#[test]
fn metrics_are_for_admins_tokens_with_their_verb_and_name_no_user_and_no_path() {
    let rig = Rig::start();
    let canary = rig.user("canary-user", Role::User);
    add_endpoint(&canary, &endpoint("canary-lab", &[])).unwrap();
    submit(&canary, &copy("@canary-lab:/canary-path", "@canary-lab:/b")).unwrap();
    let token = rig.token("local", Some(scope(&[Verb::Metrics], None))).token;
    let get = |token: &str| {
        super::bounds::exchange(
            rig.port(),
            format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
    };
    let answer = get(token.reveal());
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for name in [
        "carrack_build_info{version=",
        "carrack_tasks{state=\"QUEUED\"} 1",
        "carrack_http_requests_total{method=\"POST\",route=\"/api/v1/tasks\",status=\"201\"} 1",
    ] {
        assert!(answer.contains(name), "{name}: {answer}");
    }
    assert!(answer.contains("carrack_endpoint_up{endpoint=\"canary-lab\"} 1"), "{answer}");
    assert!(!answer.contains("canary-user") && !answer.contains("canary-path"), "{answer}");
    let denied = get(rig.token("canary-user", None).token.reveal());
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    assert_eq!(status(rig.with_token(&token).get::<Listed<Task>>("/tasks")), 403);
}

#[test]
fn token_makes_nothing_that_allows_more_or_lasts_longer_than_itself() {
    let rig = Rig::start();
    rig.user("bob", Role::User);
    let local = rig.local();
    let make = |client: &crate::client::Client, new: &Value| -> Result<MadeToken, ClientError> {
        client.call(&Call::post("/tokens").body(new)?)?.json()
    };
    let soon = Moment::from(std::time::SystemTime::now()).after(std::time::Duration::from_secs(3600));
    let later = soon.after(std::time::Duration::from_secs(1));
    let verbs = json!(["admin", "view", "read"]);
    let scope = json!({"verbs": verbs, "ceilings": {"run_seconds": 10}});
    let narrow = make(&local, &json!({"label": "narrow", "scope": scope, "expires": soon})).unwrap();
    let narrow = rig.with_token(&narrow.token);
    let least = |verbs: &[&str]| json!({"verbs": verbs, "ceilings": {"run_seconds": 10}});
    for (new, what) in [
        (json!({"label": "x", "expires": soon}), "no scope"),
        (json!({"label": "x", "expires": soon, "scope": least(&["read", "write"])}), "another verb"),
        (json!({"label": "x", "expires": later, "scope": least(&["read"])}), "longer"),
        (
            json!({"label": "x", "expires": soon, "scope": {"verbs": ["read"], "ceilings": {"run_seconds": 11}}}),
            "more time",
        ),
        (json!({"label": "x", "expires": soon, "scope": least(&["read"]), "user": "bob"}), "another user"),
    ] {
        assert_eq!(status(make(&narrow, &new)), 403, "{what}");
    }
    let made = make(&narrow, &json!({"label": "x", "scope": least(&["read", "view"])})).unwrap();
    assert_eq!(made.row.expires, Some(soon), "it ends with the token that made it");
    // What is counted would be counted anew.
    let counts = json!({"verbs": verbs, "ceilings": {"bytes": 10}});
    let counted = make(&local, &json!({"label": "counted", "scope": counts})).unwrap();
    let again = json!({"label": "x", "scope": {"verbs": ["read"], "ceilings": {"bytes": 1}}});
    assert_eq!(status(make(&rig.with_token(&counted.token), &again)), 403);
    // Nothing lets anybody in by another way.
    for call in [
        Call::post("/users/local/links"),
        Call::post("/users/bob/links"),
        Call::post("/password").body(&json!({"old": "x", "new": "a long enough one"})).unwrap(),
        Call::post("/users").body(&json!({"name": "eve", "role": "admin", "password": "a long enough one"})).unwrap(),
        Call::patch("/users/bob").body(&json!({"role": "admin"})).unwrap(),
        Call::patch("/users/bob").body(&json!({"password": "a long enough one"})).unwrap(),
        Call::patch("/users/bob").body(&json!({"account": 1234})).unwrap(),
        Call::patch("/users/bob").body(&json!({"enabled": true})).unwrap(),
    ] {
        assert_eq!(status(narrow.call(&call)), 403, "{call:?}");
    }
    narrow.call(&Call::patch("/users/bob").body(&json!({"enabled": false})).unwrap()).unwrap();
}

#[test]
fn endpoint_of_this_host_is_closed_while_its_owner_is_no_admin() {
    let rig = Rig::start();
    let eve = rig.user("eve", Role::Admin);
    let bob = rig.user("bob", Role::User);
    let mut here = endpoint("here", &["*"]);
    here.location = crate::model::EndpointLocation::Local { root: "/".into() };
    add_endpoint(&eve, &here).unwrap();
    let look = Call::post("/listings").body(&json!({"endpoint": "here", "path": "/"})).unwrap();
    let is_closed = |called: Result<_, ClientError>| {
        let Err(ClientError::Problem(problem)) = called else { return false };
        problem.status == 403 && problem.detail.contains("endpoint-owner-no-admin")
    };
    let role = |role: &str| Call::patch("/users/eve").body(&json!({"role": role})).unwrap();
    rig.local().call(&role("user")).unwrap();
    for client in [&eve, &bob] {
        for call in [&look, &Call::post("/endpoints/here/test")] {
            assert!(is_closed(client.call(call).map(drop)), "{call:?}");
        }
    }
    // An admin takes it over; its former owner cannot take it back.
    let owner = |name: &str| Call::patch("/endpoints/here").body(&json!({"owner": name})).unwrap();
    assert_eq!(status(eve.call(&owner("eve"))), 403);
    assert_eq!(status(rig.local().call(&owner("nobody"))), 400);
    rig.local().call(&owner("local")).unwrap();
    assert!(!is_closed(bob.call(&look).map(drop)));
}

#[test]
fn token_for_a_path_opens_no_node_by_a_grant_that_allows_more() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    let mut lab = endpoint("lab", &[]);
    lab.token = Some(crate::model::Secret::new("carrack1.claims.mac"));
    add_endpoint(&ann, &lab).unwrap();
    let look = Call::post("/listings").body(&json!({"endpoint": "lab", "path": "/sub"})).unwrap();
    let verbs = [Verb::Read, Verb::View];
    let of_path = rig.with_token(&rig.token("ann", Some(scope(&verbs, Some("/sub")))).token);
    let Err(ClientError::Problem(problem)) = of_path.call(&look) else { panic!("it was opened") };
    assert_eq!(problem.status, 409);
    assert!(problem.detail.contains("is a grant") && !problem.hints.is_empty(), "{problem:?}");
    let of_all = rig.with_token(&rig.token("ann", Some(scope(&verbs, None))).token);
    let other = of_all.call(&look);
    assert!(!matches!(other, Err(ClientError::Problem(problem)) if problem.detail.contains("is a grant")));
}

#[test]
fn ceilings_of_a_token_hold_for_files_over_all_requests() {
    let rig = Rig::start();
    let root = rig.directory.path().join("tree");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("file"), vec![b'x'; 60]).unwrap();
    let location = EndpointLocation::Local { root: root.to_str().unwrap().to_owned() };
    add_endpoint(&rig.local(), &NewEndpoint { location, uploads: true, ..endpoint("here", &["ann"]) }).unwrap();
    rig.user("ann", Role::User);
    let ceilings = Ceilings { entries: Some(2), bytes: Some(100), deletions: Some(0), ..Ceilings::default() };
    let verbs = vec![Verb::Read, Verb::Write, Verb::Delete, Verb::Tasks];
    let client = rig.with_token(&rig.token("ann", Some(Scope { verbs, ceilings, ..Scope::default() })).token);
    let post = |what: &str, body: serde_json::Value| match client
        .call(&Call::post(format!("/endpoints/here/{what}")).body(&body).unwrap())
    {
        Ok(answer) => (answer.status, String::new()),
        Err(ClientError::Problem(problem)) => (problem.status, problem.detail),
        Err(error) => panic!("{error}"),
    };
    let refused = |told: (u16, String), most: &str| {
        assert!(told.0 == 403 && told.1.contains(most) && told.1.contains("scope-ceiling"), "{most}: {told:?}");
    };
    let read = || match client.call(&Call::get("/endpoints/here/files/content?path=/file")) {
        Ok(answer) => (answer.status, String::new()),
        Err(ClientError::Problem(problem)) => (problem.status, problem.detail),
        Err(error) => panic!("{error}"),
    };
    let upload =
        |size: u64| json!({ "path": "/up", "size": size, "block_bytes": 4 << 20, "blocks": ["ab".repeat(32)] });
    // A task of the token that runs may take all that is left.
    let task = submit(&client, &copy("@here:/file", "@here:/copy")).unwrap();
    let note = |kind| NewEvent {
        kind,
        owner: "ann".into(),
        task: Some(task.id.clone()),
        subject: None,
        text: String::new(),
        detail: json!({}),
    };
    rig.ledger.claim(&task.id, rig.api().now(), &note(EventKind::Started)).unwrap();
    for told in [read(), post("files/mkdir", json!({ "path": "/one" })), post("uploads", upload(40))] {
        assert!(told.0 == 409 && told.1.contains(&format!("task {} of this token runs", task.id)), "{told:?}");
    }
    let ended = TaskChange { state: Some(TaskState::Cancelled), ..TaskChange::default() };
    let ended_note = note(EventKind::Ended);
    rig.ledger.change_task(&task.id, &TaskGuard::default(), &ended, &[ended_note], rig.api().now()).unwrap();
    refused(post("files/rename", json!({ "from": "/file", "to": "/b", "replace": true })), "0 deletions");
    assert_eq!(post("files/mkdir", json!({ "path": "/one" })).0, 204);
    assert_eq!(read().0, 200);
    refused(read(), "100 bytes");
    refused(post("files/sum", json!({ "path": "/file" })), "100 bytes");
    std::os::unix::fs::symlink("file", root.join("link")).unwrap();
    assert_eq!(post("files/sum", json!({ "path": "/link" })).0, 403);
    refused(post("uploads", upload(41)), "100 bytes");
    assert_eq!(post("uploads", upload(40)).0, 201);
    refused(post("files/mkdir", json!({ "path": "/two" })), "2 items");
    assert!(!root.join("two").exists() && root.join("file").exists());
    let archive = client.call(&Call::get("/endpoints/here/files/archive?path=/one"));
    assert!(matches!(archive, Err(ClientError::Problem(problem)) if problem.status == 403));
}

#[test]
fn sessions_do_not_count_among_the_tokens_that_a_user_may_have() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    let add = |number: u32, is_session: bool| {
        let (id, made) = (format!("{is_session} {number}"), Moment(0));
        let row = TokenRow {
            id,
            user: "ann".into(),
            label: String::new(),
            scope: None,
            made,
            expires: None,
            used: None,
            is_session,
        };
        rig.ledger.add_token(&row, &[0; 32]).unwrap();
    };
    let make = || ann.call(&Call::post("/tokens").body(&json!({ "label": "one more" })).unwrap());
    (0..1000).for_each(|number| add(number, true));
    make().unwrap();
    (0..998).for_each(|number| add(number, false));
    assert_eq!(status(make()), 409);
}
