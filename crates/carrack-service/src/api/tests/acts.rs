//! One act on many tasks, and what changes about a task by it.

use serde_json::{Value, json};

use super::rig::{Rig, add_endpoint, copy, endpoint, submit};
use crate::client::{Call, Called, Client, ClientError};
use crate::ledger::{TaskChange, TaskGuard};
use crate::model::{Blocked, BlockedCause, Endpoint, NewTask, Problem, Role, Task, TaskActed, TaskFailure, TaskState};

fn acts(client: &Client, body: &Value) -> Called<TaskActed> {
    client.call(&Call::post("/tasks/acts").body(body)?)?.json()
}

fn refused<T: std::fmt::Debug>(called: Called<T>) -> Problem {
    match called {
        Err(ClientError::Problem(problem)) => *problem,
        other => panic!("{other:?}"),
    }
}

fn labelled(client: &Client, label: &str) -> String {
    let request = NewTask { label: Some(label.into()), ..copy("/a", "/b") };
    submit(client, &request).unwrap().id
}

/// Ends a task as the loop would.
fn end(rig: &Rig, id: &str, state: TaskState, code: &str) {
    let failure = TaskFailure {
        code: code.into(),
        side: "destination".into(),
        endpoint: None,
        why: "no".into(),
        retryable: false,
        hints: Vec::new(),
    };
    let change = TaskChange { state: Some(state), failure: Some(Some(failure)), ..TaskChange::default() };
    let api = rig.api();
    api.ledger.change_task(id, &TaskGuard::default(), &change, &[], api.now()).unwrap();
}

fn states(acted: &TaskActed) -> Vec<(&str, TaskState)> {
    acted.items.iter().map(|task| (task.label.as_deref().unwrap_or_default(), task.state)).collect()
}

#[test]
fn acts_are_for_the_tasks_that_a_filter_names_and_tell_what_became_of_each() {
    let rig = Rig::start();
    let local = rig.local();
    let ids: Vec<String> = ["run 1", "run 2", "other"].map(|label| labelled(&local, label)).into();
    let tried = acts(&local, &json!({"act": "pause", "filter": {"label": "RUN"}, "dry_run": true})).unwrap();
    assert_eq!((tried.tasks, tried.done), (2, 0));
    assert_eq!(states(&tried), [("run 2", TaskState::Queued), ("run 1", TaskState::Queued)]);
    let task: Task = local.get(&format!("/tasks/{}", ids[0])).unwrap();
    assert!(!task.pause_wanted, "tried, not done");
    let paused = acts(&local, &json!({"act": "pause", "filter": {"label": "RUN"}})).unwrap();
    assert_eq!((paused.tasks, paused.done), (2, 2));
    let task: Task = local.get(&format!("/tasks/{}", ids[2])).unwrap();
    assert!(!task.pause_wanted);
    // Where states are named, what cannot be done is told of each, and the others are done.
    end(&rig, &ids[0], TaskState::Failed, "no-space");
    end(&rig, &ids[1], TaskState::Partial, "not-found");
    let cancelled = acts(&local, &json!({"act": "cancel", "filter": {"state": ["FAILED", "QUEUED"]}})).unwrap();
    assert_eq!((cancelled.tasks, cancelled.done), (2, 1));
    assert_eq!(states(&cancelled), [("other", TaskState::Cancelled), ("run 1", TaskState::Failed)]);
    assert_eq!(cancelled.items[1].why.as_ref().unwrap().status, 409);
    // Those that were ended by somebody are tried again only where that is asked for.
    let why = acts(&local, &json!({"act": "retry", "filter": {"cause": "no-space"}, "dry_run": true})).unwrap();
    assert_eq!(states(&why), [("run 1", TaskState::Failed)]);
    let again = acts(&local, &json!({"act": "retry", "filter": {"all": true}})).unwrap();
    assert_eq!(states(&again), [("run 2", TaskState::Queued), ("run 1", TaskState::Queued)]);
    let again = acts(&local, &json!({"act": "retry", "filter": {"state": ["CANCELLED"]}})).unwrap();
    assert_eq!(states(&again), [("other", TaskState::Queued)]);
}

#[test]
fn acts_come_page_by_page_and_need_a_filter() {
    let rig = Rig::start();
    let local = rig.local();
    (0..5).for_each(|number| drop(labelled(&local, &format!("{number}"))));
    for wrong in [
        json!({"act": "cancel", "filter": {}}),
        json!({"act": "cancel", "filter": {"all": true}, "recheck": true}),
        json!({"act": "cancel", "filter": {"all": true}, "deadline": null}),
        json!({"act": "cancel", "filter": {"all": true}, "limit": 0}),
        json!({"act": "remove", "filter": {"all": true}}),
        json!({"act": "cancel", "filter": {"all": true, "lable": "x"}}),
        json!({"act": "cancel"}),
    ] {
        assert_eq!(refused(acts(&local, &wrong)).status, 400, "{wrong}");
    }
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let body = json!({"act": "cancel", "filter": {"all": true}, "limit": 2, "cursor": cursor});
        let acted = acts(&local, &body).unwrap();
        assert_eq!(acted.done, acted.tasks);
        seen.extend(acted.items.into_iter().map(|task| task.label.unwrap()));
        match acted.next {
            Some(next) => cursor = next.into(),
            None => break,
        }
    }
    assert_eq!(seen, ["4", "3", "2", "1", "0"]);
}

#[test]
fn acts_reach_no_task_of_others() {
    let rig = Rig::start();
    let (local, ann, bob) = (rig.local(), rig.user("ann", Role::User), rig.user("bob", Role::User));
    add_endpoint(&local, &endpoint("lab", &["*"])).unwrap();
    let place = copy("@lab:/a", "@lab:/b");
    let of_ann = submit(&ann, &place).unwrap();
    submit(&bob, &place).unwrap();
    for owner in ["*", "bob"] {
        let acted = acts(&bob, &json!({"act": "pause", "filter": {"owner": owner}})).unwrap();
        assert_eq!((acted.tasks, acted.items[0].owner.as_str()), (1, "bob"));
    }
    assert_eq!(acts(&bob, &json!({"act": "pause", "filter": {"owner": "ann"}})).unwrap().tasks, 0);
    let viewer = rig.user("vic", Role::Viewer);
    assert_eq!(refused(acts(&viewer, &json!({"act": "pause", "filter": {"all": true}}))).status, 403);
    // An admin means their own, too, where they name nobody.
    assert_eq!(acts(&local, &json!({"act": "cancel", "filter": {"all": true}})).unwrap().tasks, 0);
    assert_eq!(acts(&local, &json!({"act": "cancel", "filter": {"owner": "*", "endpoint": "lab"}})).unwrap().done, 2);
    let ended: Task = ann.get(&format!("/tasks/{}", of_ann.id)).unwrap();
    assert_eq!(ended.state, TaskState::Cancelled);
}

#[test]
fn retry_and_clone_take_a_deadline_and_refuse_one_that_has_passed() {
    let rig = Rig::start();
    let local = rig.local();
    let now = rig.api().now();
    let hour = std::time::Duration::from_secs(3600);
    let soon = now.after(hour);
    let id = submit(&local, &NewTask { deadline: Some(soon), ..copy("/a", "/b") }).unwrap().id;
    let call = |action: &str, body: &Value| -> Called<Task> {
        local.call(&Call::post(format!("/tasks/{id}/{action}")).body(body)?)?.json()
    };
    // A deadline that is still to come stays.
    let twin: Task = local.call(&Call::post(format!("/tasks/{id}/clone"))).unwrap().json().unwrap();
    assert_eq!(twin.request.deadline, Some(soon));
    let passed = TaskChange { deadline: Some(Some(now)), ..TaskChange::default() };
    rig.api().ledger.change_task(&id, &TaskGuard::default(), &passed, &[], now).unwrap();
    end(&rig, &id, TaskState::Failed, "deadline-passed");
    for action in ["retry", "clone"] {
        let problem = refused(call(action, &json!({})));
        assert_eq!(problem.status, 409, "{problem:?}");
        assert!(problem.hints[0].contains(&format!("carrack task {action} {id} --deadline")), "{problem:?}");
        let bare: Called<Task> = local.call(&Call::post(format!("/tasks/{id}/{action}"))).and_then(|a| a.json());
        assert_eq!(refused(bare).status, 409);
        assert_eq!(refused(call(action, &json!({"deadline": now}))).status, 400);
        assert_eq!(refused(call(action, &json!({"dead": null}))).status, 400);
    }
    let later = now.after(hour * 2);
    assert_eq!(call("clone", &json!({"deadline": later})).unwrap().request.deadline, Some(later));
    assert_eq!(call("clone", &json!({"deadline": null})).unwrap().request.deadline, None);
    let again = call("retry", &json!({"deadline": later, "recheck": true})).unwrap();
    assert_eq!((again.state, again.request.deadline), (TaskState::Queued, Some(later)));
}

#[test]
fn endpoint_keeps_its_location_while_open_tasks_use_it() {
    let rig = Rig::start();
    let local = rig.local();
    add_endpoint(&local, &endpoint("lab", &[])).unwrap();
    let task = submit(&local, &copy("@lab:/a", "/b")).unwrap();
    let moved = json!({"location": {"kind": "local", "root": "/srv"}});
    let edit = |body: &Value, version: Option<&str>| -> Called<Endpoint> {
        let call = Call::patch("/endpoints/lab").body(body)?;
        local.call(&version.map_or(call.clone(), |version| call.header("if-match", version)))?.json()
    };
    for version in [None, Some("\"1\"")] {
        let problem = refused(edit(&moved, version));
        assert!(problem.status == 409 && problem.detail.contains(&task.id), "{problem:?}");
        assert!(problem.hints[0].contains("carrack task cancel --endpoint lab"), "{problem:?}");
    }
    assert_eq!(edit(&json!({"description": "x"}), Some("\"1\"")).unwrap().version, 2);
    assert_eq!(refused(edit(&moved, Some("\"1\""))).status, 412);
    local.call(&Call::post(format!("/tasks/{}/cancel", task.id))).unwrap();
    assert_eq!(edit(&moved, None).unwrap().version, 3);
}

/// Whoever resumes one that a guard has paused has looked at its plan; whoever resumes all has not.
#[test]
fn task_that_a_guard_has_paused_is_confirmed_by_name_or_cause_alone() {
    let rig = Rig::start();
    let local = rig.local();
    let pause = |id: &str| {
        let api = rig.api();
        let (cause, why, since) = (BlockedCause::Guard, "too many".to_owned(), api.now());
        let blocked = Some(Some(Blocked { cause, why, since, next_try: None, hint: None }));
        let (state, pause_wanted) = (Some(TaskState::Paused), Some(true));
        let change = TaskChange { state, pause_wanted, blocked, ..TaskChange::default() };
        api.ledger.change_task(id, &TaskGuard::default(), &change, &[], api.now()).unwrap();
    };
    let ids: Vec<String> = ["one", "two"].map(|label| labelled(&local, label)).into();
    ids.iter().for_each(|id| pause(id));
    let all = acts(&local, &json!({"act": "resume", "filter": {"all": true}})).unwrap();
    assert_eq!((all.tasks, all.done), (2, 0));
    assert!(all.items[0].why.as_ref().is_some_and(|why| why.detail.contains("looked at its plan")), "{all:?}");
    assert_eq!(*rig.backend.confirmed.lock().unwrap(), [""; 0]);
    let one: Task = local.call(&Call::post(format!("/tasks/{}/resume", ids[0]))).unwrap().json().unwrap();
    assert!(!one.pause_wanted);
    let rest = acts(&local, &json!({"act": "resume", "filter": {"cause": "guard", "label": "two"}})).unwrap();
    assert_eq!((rest.tasks, rest.done), (1, 1));
    assert_eq!(*rig.backend.confirmed.lock().unwrap(), ids);
}
