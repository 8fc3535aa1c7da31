//! Windows of long lists, figures over time, and the audit, by their routes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rig::{Rig, add_endpoint, copy, endpoint, submit};
use crate::client::{Call, Client, ClientError};
use crate::ledger::{NewEvent, TaskChange, TaskGuard};
use crate::model::{
    AuditLine, DryRun, EndVisit, Endpoint, EndpointLocation, EndpointTest, Event, EventKind, FaultStatistics,
    HealthState, InFlight, ItemState, Listed, LoginRequest, NewEndpoint, NewUser, NodeStatus, Overview, Progress,
    Rates, Role, Scope, Secret, StateCount, Task, TaskItem, TaskState, Verb, Windowed,
};

fn status(client: &Client, call: &Call) -> u16 {
    match client.call(call) {
        Ok(answer) => answer.status,
        Err(ClientError::Problem(problem)) => problem.status,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn tasks_are_shown_from_any_place_of_a_sorted_list() {
    let rig = Rig::start();
    let (ann, bob) = (rig.user("ann", Role::User), rig.user("bob", Role::User));
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    add_endpoint(&bob, &endpoint("boblab", &[])).unwrap();
    for number in 0..30 {
        submit(&ann, &copy(&format!("@lab:/run-{number}"), "@lab:/to")).unwrap();
        submit(&bob, &copy("@boblab:/run-7", "@boblab:/to")).unwrap();
    }
    let window = |query: &str| ann.get::<Windowed<Task>>(&format!("/tasks?{query}")).unwrap();
    let sources = |windowed: &Windowed<Task>| {
        windowed.items.iter().map(|task| task.request.pairs[0].source.clone()).collect::<Vec<_>>()
    };
    let middle = window("offset=10&limit=2&sort=created");
    assert_eq!((middle.total, middle.offset, middle.complete), (30, 10, true));
    assert_eq!(sources(&middle), ["@lab:/run-10", "@lab:/run-11"]);
    assert_eq!(sources(&window("offset=0&limit=1")), ["@lab:/run-29"]);
    let found = window("offset=0&q=RUN-7");
    assert_eq!((found.total, sources(&found)), (1, vec!["@lab:/run-7".to_owned()]));
    assert_eq!(window("offset=0&owner=bob").total, 0);
    assert_eq!(rig.local().get::<Windowed<Task>>("/tasks?offset=0&q=run-7").unwrap().total, 31);
    // The list by pages takes the same search.
    assert_eq!(ann.get::<Listed<Task>>("/tasks?q=run-7").unwrap().items.len(), 1);
    for query in ["sort=bytes", "offset=0&sort=size", "offset=0&cursor=x", "offset=-1"] {
        assert_eq!(status(&ann, &Call::get(format!("/tasks?{query}"))), 400, "{query}");
    }
    let verbs = vec![Verb::View];
    let scope =
        Scope { verbs, endpoints: vec!["lab".into()], path: Some("/run-7".into()), ceilings: Default::default() };
    let scoped = rig.with_token(&rig.token("ann", Some(scope)).token);
    assert_eq!(
        status(&scoped, &Call::get("/tasks?offset=0")),
        403,
        "how many others there are is none of its business"
    );
}

#[test]
fn items_are_shown_from_any_place_of_the_list() {
    let rig = Rig::start();
    let local = rig.local();
    let task = submit(&local, &copy("/a", "/b")).unwrap();
    let item = |number: u64| TaskItem {
        pair: 0,
        path: format!("{number}"),
        kind: "file".into(),
        state: if number.is_multiple_of(10) { ItemState::Failed } else { ItemState::Done },
        size: number,
        digest: None,
        failure: None,
        differs: Vec::new(),
    };
    *rig.backend.items.lock().unwrap() = (0..500).map(item).collect();
    let path = format!("/tasks/{}/items", task.id);
    let window: Windowed<TaskItem> = local.get(&format!("{path}?offset=20&limit=3&state=failed")).unwrap();
    assert_eq!((window.total, window.offset), (50, 20));
    assert_eq!(window.items, [item(200), item(210), item(220)]);
    for query in ["filter=x", "offset=0&cursor=x", "offset=0&limit=1001"] {
        assert_eq!(status(&local, &Call::get(format!("{path}?{query}"))), 400, "{query}");
    }
    let bob = rig.user("bob", Role::User);
    assert_eq!(status(&bob, &Call::get(format!("{path}?offset=0"))), 404);
}

#[test]
fn overview_is_of_ones_own_tasks_and_of_all_for_admins_and_in_part_for_viewers() {
    let rig = Rig::start();
    let (ann, bob, eve) = (rig.user("ann", Role::User), rig.user("bob", Role::User), rig.user("eve", Role::Viewer));
    add_endpoint(&ann, &endpoint("annlab", &[])).unwrap();
    let task = submit(&ann, &copy("@annlab:/a", "@annlab:/b")).unwrap();
    let (any, now) = (TaskGuard::default(), rig.ledger.task(&task.id).unwrap().submitted);
    let rates = Rates { all: 1e6, ..Rates::default() };
    let progress = Some(Progress { bytes_moved: 5 << 20, rates, ..Progress::default() });
    let change = TaskChange { progress, state: Some(TaskState::Succeeded), ..TaskChange::default() };
    rig.ledger.change_task(&task.id, &any, &change, &[], now).unwrap();
    let overview = |client: &Client| client.get::<Overview>("/overview?steps=24").unwrap();
    let moved = |overview: &Overview| overview.moved.iter().sum::<u64>();
    let (all, own, none, part) = (overview(&rig.local()), overview(&ann), overview(&bob), overview(&eve));
    for told in [&all, &own, &part] {
        assert_eq!(told.ended[0], StateCount { state: TaskState::Succeeded, tasks: 1 });
    }
    assert_eq!(none.ended[0].tasks, 0);
    for full in [&all, &own] {
        assert_eq!((moved(full), full.pairs.len(), full.slowest.len()), (5 << 20, 1, 1), "{full:?}");
        assert_eq!(full.pairs[0].source, "@annlab");
        assert!(full.moved.len() <= 24 && full.moved.len() == full.waiting.len(), "{full:?}");
        let succeeded = full.states.iter().find(|count| count.state == TaskState::Succeeded).unwrap();
        assert_eq!(succeeded.tasks, 1);
    }
    assert_eq!((moved(&none), none.pairs.len(), none.slowest.len()), (0, 0, 0));
    assert_eq!((moved(&part), part.pairs.len(), part.slowest.len()), (5 << 20, 0, 0));
    assert!(!serde_json::to_string(&part).unwrap().contains("annlab"));
    for query in ["steps=0", "steps=501", "from=2030-01-01T00:00:00Z", "from=1999-01-01T00:00:00Z", "to=yesterday"] {
        assert_eq!(status(&ann, &Call::get(format!("/overview?{query}"))), 400, "{query}");
    }
}

/// Lines come soon after the answer.
fn lines(client: &Client, query: &str, enough: usize) -> Vec<AuditLine> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let listed: Listed<AuditLine> = client.get(&format!("/audit?{query}")).unwrap();
        if listed.items.len() >= enough {
            return listed.items;
        }
        assert!(Instant::now() < until, "{query}: {:?}", listed.items);
        std::thread::yield_now();
    }
}

#[test]
fn audit_tells_admins_who_changed_what_and_what_was_refused() {
    let rig = Rig::start();
    let local = rig.local();
    let ann = rig.user("ann", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let task = submit(&ann, &copy("@lab:/a", "@lab:/b")).unwrap();
    ann.call(&Call::post(format!("/tasks/{}/cancel", task.id))).unwrap();
    assert_eq!(status(&ann, &Call::get("/audit")), 403);
    let password = Secret::new("correct horse battery");
    let new = NewUser { name: "ben".into(), role: Role::User, account: None, password: Some(password.clone()) };
    local.call(&Call::post("/users").body(&new).unwrap()).unwrap();
    let stranger = rig.stranger();
    let login = |password: &Secret| {
        let user = Some("ben".to_owned());
        let request = LoginRequest { user, password: Some(password.clone()), link: None, cookie: false };
        status(&stranger, &Call::post("/login").body(&request).unwrap())
    };
    assert_eq!([login(&Secret::new("a canary password")), login(&password)], [401, 200]);
    let of_task = lines(&local, &format!("q={}", task.id), 2);
    let told: Vec<_> = of_task.iter().map(|line| (line.action.as_str(), line.user.as_str(), line.status)).collect();
    assert_eq!(told, [("POST /tasks/{id}/cancel", "ann", 200), ("POST /tasks", "ann", 201)]);
    assert!(of_task.iter().all(|line| line.via == "token" && line.token.is_some() && line.from.is_none()));
    let refused = lines(&local, "q=%2Faudit", 1);
    assert_eq!((refused[0].action.as_str(), refused[0].user.as_str(), refused[0].status), ("GET /audit", "ann", 403));
    let logins: Vec<_> =
        lines(&local, "q=%2Flogin", 2).into_iter().map(|line| (line.user, line.status, line.from)).collect();
    let from = Some("127.0.0.1".to_owned());
    assert_eq!(logins, [("ben".to_owned(), 200, from.clone()), ("ben".to_owned(), 401, from)]);
    assert_eq!(lines(&local, "q=ben", 3).last().unwrap().object.as_deref(), Some("ben"));
    let all = serde_json::to_string(&lines(&local, "limit=1000", 6)).unwrap();
    assert!(!all.contains("canary") && !all.contains("horse"), "{all}");
    // What only reads is not noted.
    assert!(!all.contains("GET /tasks"), "{all}");
    let page: Listed<AuditLine> = local.get("/audit?limit=2").unwrap();
    let next: Listed<AuditLine> = local.get(&format!("/audit?limit=2&cursor={}", page.next.unwrap())).unwrap();
    assert!(next.items[0].id < page.items[1].id);
    assert_eq!(local.get::<Value>("/audit?to=2001-01-01T00:00:00Z").unwrap()["items"], json!([]));
}

#[test]
fn nodes_tell_storage_and_the_last_tests_of_what_the_caller_sees() {
    let rig = Rig::start();
    let (local, ann, bob) = (rig.local(), rig.user("ann", Role::User), rig.user("bob", Role::User));
    let root = rig.directory.path().display().to_string();
    let mut here = endpoint("here", &["ann"]);
    here.location = EndpointLocation::Local { root: root.clone() };
    add_endpoint(&local, &here).unwrap();
    here.name = "gone".into();
    here.location = EndpointLocation::Local { root: format!("{root}/not-there") };
    add_endpoint(&local, &here).unwrap();
    local.call(&Call::post("/endpoints/here/test")).unwrap();
    let node = |client: &Client| client.get::<Listed<NodeStatus>>("/nodes").unwrap().items.remove(0);
    for client in [&local, &ann] {
        let node = node(client);
        let [gone, here] = &node.storage[..] else { panic!("{node:?}") };
        assert!(gone.failure.as_ref().is_some_and(|why| why.contains("o such file")), "{gone:?}");
        assert!(here.failure.is_none() && here.bytes_total > here.bytes_free.min(Some(0)), "{here:?}");
        assert_eq!(node.tests.iter().map(|kept| kept.endpoint.as_str()).collect::<Vec<_>>(), ["here"]);
    }
    let hidden = node(&bob);
    assert_eq!((hidden.storage, hidden.tests), (vec![], vec![]));
    local.call(&Call::delete("/endpoints/here")).unwrap();
    add_endpoint(&local, &NewEndpoint { name: "here".into(), ..here }).unwrap();
    assert_eq!(node(&local).tests, [], "another endpoint of that name was never tested");
}

#[test]
fn endpoints_tell_how_they_do_and_of_whose_tasks_only_to_who_may_see_them() {
    let rig = Rig::start();
    let (local, ann, bob) = (rig.local(), rig.user("ann", Role::User), rig.user("bob", Role::User));
    add_endpoint(&ann, &endpoint("lab", &["bob"])).unwrap();
    let health = |client: &Client| {
        let shown = client.get::<Endpoint>("/endpoints/lab").unwrap().health.unwrap();
        let listed: Listed<Endpoint> = client.get("/endpoints").unwrap();
        assert_eq!(listed.items[0].health.as_ref(), Some(&shown));
        shown
    };
    let new = health(&ann);
    assert_eq!((new.state, new.last_contact, new.last_fault, new.open_tasks), (HealthState::Idle, None, None, 0));
    let task = submit(&bob, &copy("@lab:/secret", "@lab:/b")).unwrap();
    let failure = json!({
        "code": "connect-failed", "side": "link", "endpoint": "lab", "why": "no way to /secret", "retryable": "yes",
    });
    let detail = json!({ "failure": failure });
    let fault = NewEvent {
        kind: EventKind::Fault,
        owner: "bob".into(),
        task: Some(task.id.clone()),
        subject: None,
        text: "it failed".into(),
        detail,
    };
    let now = rig.ledger.task(&task.id).unwrap().submitted;
    rig.ledger.change_task(&task.id, &TaskGuard::default(), &TaskChange::default(), &[fault], now).unwrap();
    for (client, open, why) in
        [(&local, 1, Some("no way to /secret")), (&bob, 1, Some("no way to /secret")), (&ann, 0, None)]
    {
        let told = health(client);
        assert_eq!((told.state, told.open_tasks), (HealthState::Down, open));
        let fault = told.last_fault.unwrap();
        assert_eq!((fault.code.as_str(), fault.unreached, fault.why.as_deref()), ("connect-failed", true, why));
        assert_eq!(fault.task.is_some(), why.is_some());
    }
    // Its test says the contrary, and is kept by the ledger.
    ann.call(&Call::post("/endpoints/lab/test")).unwrap();
    let tested = health(&ann);
    assert_eq!((tested.state, tested.last_test.map(|test| test.ok)), (HealthState::Ok, Some(true)));
    let kept = rig.ledger.health(Some("lab"), None).unwrap();
    assert!(kept["lab"].test.is_some() && kept["lab"].success >= Some(now), "{kept:?}");
}

#[test]
fn viewers_are_told_the_rate_of_all_tasks() {
    let rig = Rig::start();
    let (ann, bob, eve) = (rig.user("ann", Role::User), rig.user("bob", Role::User), rig.user("eve", Role::Viewer));
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let task = submit(&ann, &copy("@lab:/a", "@lab:/b")).unwrap();
    let now = rig.ledger.task(&task.id).unwrap().submitted;
    let note = |kind| NewEvent {
        kind,
        owner: "ann".into(),
        task: Some(task.id.clone()),
        subject: None,
        text: "it begins".into(),
        detail: json!({}),
    };
    rig.ledger.claim(&task.id, now, &note(EventKind::Started)).unwrap();
    let progress = Some(Progress { rates: Rates { now: 5e6, ..Rates::default() }, ..Progress::default() });
    let change = TaskChange { progress, ..TaskChange::default() };
    rig.ledger.change_task(&task.id, &TaskGuard::default(), &change, &[], now).unwrap();
    let rates = |client: &Client| {
        let overview: Overview = client.get("/overview").unwrap();
        let node = client.get::<Listed<NodeStatus>>("/nodes").unwrap().items.remove(0);
        (overview.rate, node.rate, node.running)
    };
    for client in [&ann, &eve, &rig.local()] {
        assert_eq!(rates(client), (5e6, 5e6, 1));
    }
    assert_eq!(rates(&bob), (0.0, 0.0, 0));
}

#[test]
fn dry_run_tells_a_time_for_a_size_alone() {
    let rig = Rig::start();
    let tried = |query: &str| -> DryRun {
        let call = Call::post(format!("/tasks?dry_run=true{query}")).body(&copy("/a", "/b")).unwrap();
        rig.local().call(&call).unwrap().json().unwrap()
    };
    let span = |tried: DryRun| (tried.expected_seconds_least, tried.expected_seconds_most);
    assert_eq!(span(tried("")), (None, None));
    assert_eq!(span(tried("&bytes=60")), (Some(60), Some(61)));
    assert_eq!(span(tried("&bytes=60&items=40")), (Some(60), Some(100)));
}

#[test]
fn submission_keeps_what_was_told_of_a_size_that_was_counted() {
    let rig = Rig::start();
    let submitted = |query: &str| -> Task {
        let call = Call::post(format!("/tasks?{query}")).body(&copy("/a", "/b")).unwrap();
        rig.local().call(&call).unwrap().json().unwrap()
    };
    let uncounted = submitted("").estimate.unwrap();
    assert_eq!((uncounted.bytes, uncounted.seconds()), (None, None));
    let counted = submitted("bytes=60&items=40");
    let estimate = counted.estimate.clone().unwrap();
    assert_eq!((estimate.bytes, estimate.items, estimate.seconds()), (Some(60), Some(40), Some((60, 100))));
    let shown: Task = rig.local().get(&format!("/tasks/{}", counted.id)).unwrap();
    assert_eq!(shown.estimate, counted.estimate);
    let events: Listed<Event> = rig.local().get(&format!("/tasks/{}/events", counted.id)).unwrap();
    assert_eq!(events.items[0].detail["estimate"]["seconds_most"], 100, "{events:?}");
}

#[test]
fn overview_of_a_day_has_steps_of_an_hour_and_ends_now() {
    let rig = Rig::start();
    let now = jiff::Timestamp::now();
    let from = now - Duration::from_secs(24 * 3600);
    let told: Overview = rig.local().get(&format!("/overview?steps=24&from={from}")).unwrap();
    assert_eq!((told.step_seconds, told.moved.len()), (3600, 24));
    assert!(told.to.0 <= jiff::Timestamp::now().as_microsecond(), "{told:?}");
}

#[test]
fn faults_are_of_ones_own_tasks_by_endpoint_and_of_all_tasks_by_host_for_admins() {
    let rig = Rig::start();
    let (ann, bob) = (rig.user("ann", Role::User), rig.user("bob", Role::User));
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    add_endpoint(&bob, &endpoint("boblab", &[])).unwrap();
    let ends = |client: &Client, name: &str, directory: &str, is_faulty: bool| {
        let task = submit(client, &copy(&format!("@{name}:/{directory}"), &format!("@{name}:/to"))).unwrap();
        let mut visit = EndVisit {
            host: "10.0.0.1".into(),
            endpoint: Some(name.into()),
            root: b"/data".to_vec(),
            directory: format!("/data/{directory}").into_bytes(),
            ..EndVisit::default()
        };
        visit.tried(b"", is_faulty.then_some("input-output"));
        let change = TaskChange { visits: vec![visit], state: Some(TaskState::Succeeded), ..TaskChange::default() };
        rig.ledger.change_task(&task.id, &TaskGuard::default(), &change, &[], task.submitted).unwrap();
    };
    for _ in 0..12 {
        ends(&ann, "lab", "bad", true);
        ends(&ann, "lab", "good", false);
        ends(&bob, "boblab", "good", false);
    }
    let faults = |client: &Client, query: &str| client.get::<FaultStatistics>(&format!("/faults{query}")).unwrap();
    let (all, own, none) = (faults(&rig.local(), ""), faults(&ann, ""), faults(&bob, ""));
    assert_eq!([&all, &own, &none].map(|found| (found.tasks, found.faulty)), [(36, 12), (24, 12), (12, 0)]);
    let named = |found: &FaultStatistics| {
        let places = found.bursts.iter().map(|burst| (burst.place.host.clone(), burst.place.path.clone().unwrap()));
        places.collect::<Vec<_>>()
    };
    assert_eq!(named(&all), [("10.0.0.1".to_owned(), "/data/bad".to_owned())]);
    assert_eq!(named(&own), [("@lab".to_owned(), "/bad".to_owned())]);
    assert!(!serde_json::to_string(&own).unwrap().contains("10.0.0.1"));
    assert!(none.bursts.is_empty() && none.places.is_empty());
    assert!(faults(&ann, "?endpoint=other").bursts.is_empty());
    for query in ["from=2030-01-01T00:00:00Z", "from=1999-01-01T00:00:00Z", "since=1d"] {
        assert_eq!(status(&ann, &Call::get(format!("/faults?{query}"))), 400, "{query}");
    }
    // The test of the endpoint tells it, by the path below its root, to whoever may test it, and passes all the same.
    let test: EndpointTest =
        serde_json::from_slice(ann.call(&Call::post("/endpoints/lab/test")).unwrap().body()).unwrap();
    let check = test.checks.iter().find(|check| check.name == "faults").unwrap();
    assert!(check.told.starts_with("12 of 12 tasks had a fault ") && check.fix.is_some(), "{check:?}");
    assert!(test.ok && check.ok.is_none(), "{test:?}");
    let test: EndpointTest =
        serde_json::from_slice(bob.call(&Call::post("/endpoints/boblab/test")).unwrap().body()).unwrap();
    assert!(test.checks.iter().any(|check| check.name == "faults" && check.ok == Some(true)), "{test:?}");
}

#[test]
fn files_in_flight_stand_in_the_document_of_a_task_that_runs_and_in_no_list() {
    let rig = Rig::start();
    let (ann, bob) = (rig.user("ann", Role::User), rig.user("bob", Role::User));
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let task = submit(&ann, &copy("@lab:/a", "@lab:/b")).unwrap();
    let file = |path: &str, size| InFlight { pair: 0, path: path.into(), size, bytes: 5 };
    *rig.backend.in_flight.lock().unwrap() = vec![file("a/large", Some(7)), file("a/log", None)];
    let path = format!("/tasks/{}", task.id);
    let shown = || ann.get::<serde_json::Value>(&path).unwrap()["in_flight"].clone();
    assert_eq!(shown(), json!(null), "it waits");
    let note = |kind| NewEvent {
        kind,
        owner: "ann".into(),
        task: Some(task.id.clone()),
        subject: None,
        text: "it begins".into(),
        detail: json!({}),
    };
    rig.ledger.claim(&task.id, task.submitted, &note(EventKind::Started)).unwrap();
    let list = json!([
        { "pair": 0, "path": "a/large", "size": 7, "bytes": 5 },
        { "pair": 0, "path": "a/log", "size": null, "bytes": 5 },
    ]);
    assert_eq!(shown(), list);
    assert!(bob.get::<serde_json::Value>(&path).is_err(), "it is another user's");
    for of_all in ["/tasks", "/tasks?offset=0"] {
        let listed: serde_json::Value = ann.get(of_all).unwrap();
        assert_eq!(listed["items"][0]["in_flight"], json!(null), "{of_all}");
    }
}
