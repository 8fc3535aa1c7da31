//! What the documents say of the API is what the API does: docs/api.md has a line for each route and each code of a
//! problem, docs/operations.md one for each metric. `CARRACK_GOLDEN=write` writes these tables anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::bounds::exchange;
use super::rig::{Rig, add_endpoint, copy, endpoint, submit};
use crate::api::openapi_json;
use crate::client::Call;
use crate::ledger::{NewEvent, TaskChange, TaskGuard};
use crate::model::{EndVisit, EventKind, ProblemCode, Role, TaskState};

/// Compares what stands between two marks of a page with what belongs there, or writes it.
#[track_caller]
fn compare(name: &str, what: &str, text: &str) {
    let (begin, end) = (format!("<!-- {what}: written by a test -->"), format!("<!-- end of the {what} -->"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let page = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(&begin).unwrap();
    let (found, after) = rest.split_once(&end).unwrap();
    if std::env::var_os("CARRACK_GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(&file, format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim())).unwrap();
        return;
    }
    assert_eq!(found.trim(), text.trim(), "{name}: CARRACK_GOLDEN=write writes it");
}

/// What an operation answers with: the names of the documents, or the kind of its body.
fn answer(response: &serde_json::Value) -> String {
    let Some(content) = response["content"].as_object() else { return "nothing".to_owned() };
    let kinds = content.iter().map(|(kind, body)| {
        let name = body["schema"]["$ref"].as_str().and_then(|name| name.rsplit('/').next());
        match (name, kind.as_str()) {
            (Some(name), "application/json") => format!("`{}`", name.replace('_', " of ")),
            _ => format!("`{kind}`"),
        }
    });
    kinds.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

#[test]
fn api_page_has_a_line_for_every_route() {
    let description: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
    let mut text = "| route | what it does | takes | answers |\n|---|---|---|---|\n".to_owned();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let summary = operation["summary"].as_str().unwrap().replace('\n', " ").replace('|', "\\|");
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let given =
                parameters.filter(|one| one["in"] != "path").map(|one| format!("`{}`", one["name"].as_str().unwrap()));
            let body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
            let body = body.and_then(|name| name.rsplit('/').next()).map(|name| format!("a `{name}`"));
            let takes: Vec<String> = body.into_iter().chain(given).collect();
            let answers = operation["responses"].as_object().unwrap().iter().filter(|(status, _)| *status != "default");
            let answers = answers.map(|(status, response)| format!("{status}: {}", answer(response)));
            let answers: Vec<String> = answers.collect();
            text += &format!(
                "| `{} {path}` | {summary} | {} | {} |\n",
                method.to_uppercase(),
                takes.join(", "),
                answers.join("; ")
            );
        }
    }
    assert!(text.contains("`POST /tasks`") && text.contains("`DELETE /tokens/{id}`"), "{text}");
    compare("api.md", "routes", &text);
}

#[test]
fn api_page_has_a_line_for_every_code_of_a_problem() {
    let rows = ProblemCode::ALL.iter().map(|code| format!("| `{}` | {} |\n", code.name(), code.meaning()));
    compare("api.md", "codes", &format!("| code | means |\n|---|---|\n{}", rows.collect::<String>()));
}

#[test]
fn operations_page_has_a_line_for_every_metric() {
    let rig = Rig::start();
    let token = rig.token("local", None).token;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n", token.reveal());
    let scrape = || exchange(rig.port(), format!("{request}Connection: close\r\n\r\n").as_bytes());
    // Bursts are reckoned for the first, and kept a while: a task with a fault.
    let local = rig.local();
    let task = submit(&local, &copy("/a", "/b")).unwrap();
    let visit = EndVisit { host: "h".into(), faults: vec!["connection-lost".into()], ..EndVisit::default() };
    let change = TaskChange { visits: vec![visit], ..TaskChange::default() };
    rig.ledger.change_task(&task.id, &TaskGuard::default(), &change, &[], task.submitted).unwrap();
    // What happens after this one counts.
    scrape();
    // So that every metric has a value: a task that fails, an endpoint, a timer, a refusal, a login that fails.
    let task = submit(&local, &copy("/a", "/b")).unwrap();
    let failure = serde_json::json!({ "failure": { "code": "no-space", "side": "destination" } });
    let (owner, kind) = (task.owner.clone(), EventKind::Ended);
    let ended =
        NewEvent { kind, owner, task: Some(task.id.clone()), subject: None, text: "it failed".into(), detail: failure };
    let change = TaskChange { state: Some(TaskState::Failed), ..TaskChange::default() };
    rig.ledger.change_task(&task.id, &TaskGuard::default(), &change, &[ended], task.submitted).unwrap();
    submit(&local, &copy("/a", "/b")).unwrap();
    add_endpoint(&local, &endpoint("lab", &[])).unwrap();
    let timer = serde_json::json!({ "schedule": { "every_seconds": 3600 }, "task": copy("/a", "/b") });
    local.call(&Call::post("/timers").body(&timer).unwrap()).unwrap();
    let viewer = rig.user("vi", Role::Viewer);
    assert!(submit(&viewer, &copy("/a", "/b")).is_err());
    let login = serde_json::json!({ "user": "nobody", "password": "wrong" });
    assert!(rig.local().call(&Call::post("/login").body(&login).unwrap()).is_err());
    let shown = scrape();
    let (_, shown) = shown.split_once("\r\n\r\n").unwrap();
    let (mut help, mut kinds, mut labels) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::<&str, BTreeSet<&str>>::new());
    for line in shown.lines() {
        if let Some((name, text)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help.insert(name, text);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            kinds.insert(name, kind);
        } else {
            let series = line.rsplit_once(' ').unwrap().0;
            let (name, all) = series.split_once('{').unwrap_or((series, ""));
            let stem = ["_bucket", "_sum", "_count"].into_iter().find_map(|end| name.strip_suffix(end));
            let name = stem.filter(|stem| kinds.get(stem) == Some(&"histogram")).unwrap_or(name);
            let named =
                all.trim_end_matches('}').split("\",").filter_map(|pair| pair.split_once('=')).map(|pair| pair.0);
            labels.entry(name).or_default().extend(named);
        }
    }
    assert_eq!(help.keys().collect::<Vec<_>>(), labels.keys().collect::<Vec<_>>(), "one has no value: {shown}");
    let mut text = "| metric | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for (name, help) in help {
        let labels = labels[name].iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        text += &format!("| `{name}` | {} | {labels} | {help} |\n", kinds[name]);
    }
    compare("operations.md", "metrics", &text);
}
