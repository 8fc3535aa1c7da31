//! Tasks that compare two places: what differs is kept as items, and a check goes on whatever is killed.

use std::fs::{self, File};

use serde_json::{Value, json};

use super::add_node;
use super::receipts::receipt;
use crate::support::node::Node;
use crate::support::process::{signal, workers};
use crate::support::service::{Service, add_endpoints, object};
use crate::support::{Sandbox, tree, wait_until};

/// Items of a task by path, with their states and in what they differ.
fn findings(sandbox: &Sandbox, id: &str) -> Vec<(String, String, Value)> {
    let lines = sandbox.ok(["task", "items", id, "--json"]).stdout;
    let told = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut found: Vec<_> = told
        .map(|item| {
            let text = |key: &str| item[key].as_str().unwrap().to_owned();
            (text("path"), text("state"), item["differs"].clone())
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[test]
fn check_that_finds_differences_is_partial_names_them_and_is_done_again_by_a_retry() {
    let sandbox = Sandbox::new();
    for side in ["lab", "archive"] {
        tree::mixed(&sandbox.path(side));
    }
    sandbox.write("lab/dir/only-here", "x");
    sandbox.write("archive/only-there", "y");
    for (side, content) in [("lab", "one"), ("archive", "two")] {
        sandbox.write(format!("{side}/changed\n"), content);
    }
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "lab"), ("archive", "archive")]);
    sandbox.ok(["endpoint", "edit", "archive", "--read-only"]);
    let words = ["task", "submit", "--kind", "check", "--compare", "checksum", "@lab:/", "@archive:/", "--wait"];
    let checked = sandbox.run(words);
    assert_eq!(checked.code, 27, "{}", checked.stderr);
    assert!(
        checked.stderr.contains("1 different, 2 only at the source, 1 only at the destination"),
        "{}",
        checked.stderr
    );
    let id = checked.stdout.trim();
    let task = object(&sandbox, &["task", "show", id]);
    assert_eq!((&task["state"], &task["failure"]["code"]), (&"PARTIAL".into(), &"differences".into()), "{task:#}");
    let check = &task["progress"]["check"];
    let counts = ["different", "only_source", "only_destination"].map(|key| check[key].as_u64().unwrap());
    assert_eq!((counts, &task["progress"]["items_failed"]), ([1, 2, 1], &Value::from(0)), "{task:#}");
    assert!(check["same"].as_u64().unwrap() > 5, "{task:#}");
    let of = |path: &str, state: &str, differs: Value| (path.to_owned(), state.to_owned(), differs);
    let expected = [
        of("changed\n", "different", json!(["content"])),
        of("dir", "only-source", Value::Null),
        of("dir/only-here", "only-source", Value::Null),
        of("only-there", "only-destination", Value::Null),
    ];
    assert_eq!(findings(&sandbox, id), expected);
    let csv = sandbox.ok(["task", "items", id, "--state", "different", "--csv"]).stdout;
    assert!(csv.trim_end().ends_with(",\"changed\n\",,,content"), "{csv}");
    let shown = sandbox.ok(["task", "show", id]).stdout;
    assert!(shown.contains("check: @lab:/ and @archive:/") && shown.contains("found: 1 different, 2 only"), "{shown}");
    sandbox.run(["task", "wait", id]).failed_with(27, &["1 different"]);
    sandbox.run(["task", "receipt", id]).failed_with(11, &["submit it with receipt"]);
    // Nothing was changed.
    assert!(!sandbox.path("archive/dir").exists() && sandbox.path("archive/only-there").exists());

    fs::remove_dir_all(sandbox.path("lab/dir")).unwrap();
    fs::remove_file(sandbox.path("archive/only-there")).unwrap();
    sandbox.write("archive/changed\n", "one");
    sandbox.ok(["task", "retry", id]);
    sandbox.ok(["task", "wait", id, "--timeout", "60s"]);
    let task = object(&sandbox, &["task", "show", id]);
    assert_eq!((&task["state"], &task["progress"]["check"]["different"]), (&"SUCCEEDED".into(), &0.into()), "{task:#}");
    assert!(findings(&sandbox, id).is_empty());
}

#[test]
fn check_refuses_what_means_nothing_to_it() {
    let sandbox = Sandbox::new();
    sandbox.write("a/x", "x");
    fs::create_dir(sandbox.path("b")).unwrap();
    let _service = Service::start(&sandbox, &[]);
    let check = ["task", "submit", "--kind", "check"];
    for (more, words) in [
        (&["a/", "b/", "--delete"][..], "only a task that copies"),
        (&["a/", "b/", "--compare", "none"], "compares something"),
        (&["a/", "b/", "--skip-source-errors"], "not compared"),
        (&["a/", "null:"], "two places"),
        (&["random:1M", "b/x"], "copied only"),
    ] {
        let refused = sandbox.run(check.iter().chain(more));
        assert!(refused.code == 2 && refused.stderr.contains(words), "{more:?}: {} {}", refused.code, refused.stderr);
    }
    // What cannot be looked at is a failure, and no difference.
    let absent = sandbox.path("absent").display().to_string();
    let missing = sandbox.run(check.iter().chain(&[&*absent, "b/", "--wait", "--timeout", "60s"]));
    assert_eq!(missing.code, 1, "{}", missing.stderr);
}

/// Two trees whose comparison takes a while: many small files, of which some differ, then a large one.
fn slow_trees(sandbox: &Sandbox) {
    for side in ["one", "two"] {
        for number in 0..6_000 {
            let content = if side == "two" && number % 1_000 == 500 { "other" } else { "same_" };
            sandbox.write(format!("{side}/t/a{number:04}"), content);
        }
        for number in 0..2 {
            let large = File::create(sandbox.path(format!("{side}/t/b{number}"))).unwrap();
            large.set_len(1 << 30).unwrap();
        }
        sandbox.write(format!("{side}/t/z"), side);
    }
}

#[test]
fn check_goes_on_behind_the_last_path_after_kills_of_worker_service_and_node() {
    let sandbox = Sandbox::new();
    let (one, mut two) = (Node::start(&sandbox, "one", &[]), Node::start(&sandbox, "two", &[]));
    slow_trees(&sandbox);
    let mut service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "one", &one);
    add_node(&sandbox, "two", &two);
    let words = ["task", "submit", "--kind", "check", "--compare", "checksum", "--receipt", "@one:/t/", "@two:/t/"];
    let id = sandbox.ok(words).stdout.trim().to_owned();
    let compared = || {
        let check = &object(&sandbox, &["task", "show", &id])["progress"]["check"];
        let count = |key: &str| check[key].as_u64().unwrap_or(0);
        count("same") + count("different")
    };
    wait_until("some of it is compared", || compared() > 1_000);
    workers(&sandbox.path("home")).into_iter().for_each(|pid| signal(pid, "KILL"));
    let attempts = || object(&sandbox, &["task", "show", &id])["fence"].as_u64().unwrap();
    wait_until("another worker goes on", || attempts() == 2);
    service.kill();
    two.kill();
    two.restart(&sandbox);
    let _service = Service::start(&sandbox, &[]);
    sandbox.run(["task", "wait", &id, "--timeout", "120s"]).failed_with(27, &["7 different"]);
    let task = object(&sandbox, &["task", "show", &id]);
    let check = &task["progress"]["check"];
    // Each item is counted once, with the top.
    assert_eq!((&check["same"], &check["different"]), (&Value::from(6_000 - 6 + 2 + 1), &Value::from(7)), "{task:#}");
    let expected: Vec<String> = (0..6).map(|number| format!("a{number}500")).chain(["z".to_owned()]).collect();
    let found: Vec<String> = findings(&sandbox, &id).into_iter().map(|(path, ..)| path).collect();
    assert_eq!(found, expected);
    let events = sandbox.ok(["task", "events", &id]).stdout;
    assert!(events.contains("goes on behind the last path"), "{events}");

    // What was found before the kills stands in the receipt, too.
    let statement = receipt(&sandbox, &id, &[]);
    let outcomes = json!({ "same": 6_000 - 6 + 2, "differs": 7 });
    assert_eq!((&statement["of"], &statement["outcomes"]), (&"check".into(), &outcomes), "{statement:#}");
    assert_eq!((&statement["id"], &statement["ending"]), (&id.as_str().into(), &"partial".into()));
    sandbox.ok(["receipt", "trust", "lab", "--of-service"]);
    sandbox.ok(["verify", "--signed-by", "lab", "r", "@two:/t/"]);
    sandbox.write("two/t/a0001", "Same_");
    sandbox.run(["verify", "r", "@two:/t/"]).failed_with(27, &["1 changed"]);
    let kept = sandbox.path("home/.local/state/carrack/service/tasks").join(&id);
    assert!(kept.join("receipt-0.jsonl").exists() && !kept.join("receipt-0.items").exists());
}

#[test]
fn check_of_one_file_leaves_a_receipt_that_names_it() {
    let sandbox = Sandbox::new();
    for side in ["lab", "archive"] {
        sandbox.write(format!("{side}/deep/file"), "content");
    }
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "lab"), ("archive", "archive")]);
    let words = ["task", "submit", "--kind", "check", "--compare", "checksum", "--receipt", "--wait", "--timeout"];
    let places = ["60s", "@lab:/deep/file", "@archive:/deep/file"];
    let id = sandbox.ok(words.iter().chain(&places)).stdout.lines().next().unwrap().to_owned();
    let statement = receipt(&sandbox, &id, &[]);
    assert_eq!((&statement["items"], &statement["outcomes"]), (&1.into(), &json!({ "same": 1 })), "{statement:#}");
    let said = fs::read_to_string(sandbox.path("r")).unwrap();
    assert!(said.contains(r#"{"path":"file","kind":"file","outcome":"same","size":7,"blake3":""#), "{said}");
    sandbox.ok(["receipt", "trust", "lab", "--of-service"]);
    sandbox.ok(["verify", "r", "@archive:/deep/file"]);
    sandbox.write("archive/deep/file", "changed");
    sandbox.run(["verify", "r", "@archive:/deep/file"]).failed_with(27, &["1 changed"]);
}

#[test]
fn timer_checks_each_time_it_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("lab/x", "x");
    fs::create_dir(sandbox.path("archive")).unwrap();
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "lab"), ("archive", "archive")]);
    let words = ["timer", "create", "--every", "1d", "--label", "nightly", "--kind", "check"];
    sandbox.ok(words.into_iter().chain(["@lab:/", "@archive:/"]));
    let ended = || {
        let list = sandbox.ok(["task", "list", "--state", "PARTIAL", "--json"]).stdout;
        list.lines().next().map(|line| serde_json::from_str::<Value>(line).unwrap())
    };
    wait_until("its run has ended", || ended().is_some());
    let task = ended().unwrap();
    assert_eq!((&task["request"]["kind"], &task["failure"]["why"]), (&"check".into(), &"1 only at the source".into()));
}
