//! Runs of timers that delete: what holds them, and what somebody does about it. And previews of tasks.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use serde_json::Value;

use crate::support::service::{Service, object};
use crate::support::{Sandbox, wait_until};

/// A sandbox with a service and two endpoints, `lab` and `archive`.
fn served() -> (Sandbox, Service) {
    let sandbox = Sandbox::new();
    let service = Service::start(&sandbox, &[]);
    for name in ["lab", "archive"] {
        fs::create_dir(sandbox.path(name)).unwrap();
        sandbox.ok(["endpoint", "add", name, sandbox.path(name).to_str().unwrap()]);
    }
    (sandbox, service)
}

/// The task of a timer's last run, once it is in one of these states.
fn last_run(sandbox: &Sandbox, timer: &str, number: u64, states: &[&str]) -> Value {
    let mut last = Value::Null;
    wait_until(&format!("run {number} is one of {states:?}"), || {
        let timer = object(sandbox, &["timer", "show", timer]);
        if timer["runs"].as_u64() < Some(number) {
            return false;
        }
        last = object(sandbox, &["task", "show", timer["last_task"].as_str().unwrap()]);
        states.contains(&last["state"].as_str().unwrap())
    });
    last
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn timer_that_would_delete_more_than_half_waits_until_somebody_has_looked() {
    let (sandbox, _service) = served();
    sandbox.write("lab/here", "here");
    for name in ["a", "b", "c"] {
        sandbox.write(format!("archive/{name}"), "old");
    }
    let made = sandbox.ok(["timer", "create", "--delete", "@lab:/", "@archive:/"]);
    let timer = made.stdout.trim();
    let task = last_run(&sandbox, timer, 1, &["PAUSED", "SUCCEEDED", "PARTIAL", "FAILED"]);
    assert_eq!((&task["state"], &task["blocked"]["cause"]), (&"PAUSED".into(), &"guard".into()), "{task}");
    assert_eq!(task["request"]["options"]["max_delete"], "50%", "{task}");
    assert_eq!(task["progress"]["plan"]["to_delete"]["items"], 3, "{task}");
    let id = task["id"].as_str().unwrap();
    assert_eq!(names(&sandbox.path("archive")), ["a", "b", "c", "here"]);
    // Who looks sees why, and what.
    let shown = sandbox.ok(["task", "show", id]).stdout;
    for words in ["3 of 3 items", "at most 50 %", "to delete: 3 items", "task resume"] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let listed = sandbox.ok(["task", "items", id, "--state", "to-delete"]).stdout;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let held = sandbox.ok(["task", "list", "--cause", "guard"]).stdout;
    assert!(held.contains(id), "{held}");
    // Whoever resumes all of them has not looked at this one.
    let all = sandbox.run(["task", "resume", "--state", "PAUSED"]);
    assert!(all.code != 0 && all.stdout.contains("looked at its plan"), "{} {}", all.stdout, all.stderr);
    // Another timer goes on meanwhile.
    let other = sandbox.ok(["timer", "create", "@lab:/here", "@archive:/other"]);
    last_run(&sandbox, other.stdout.trim(), 1, &["SUCCEEDED"]);
    fs::remove_file(sandbox.path("archive/other")).unwrap();
    sandbox.ok(["task", "resume", id]);
    sandbox.ok(["task", "wait", id, "--timeout=60s"]);
    assert_eq!(names(&sandbox.path("archive")), ["here"]);
    let task = object(&sandbox, &["task", "show", id]);
    assert_eq!((&task["state"], &task["progress"]["items_deleted"]), (&"SUCCEEDED".into(), &3.into()), "{task}");
    // All may go where that is said, and nobody is asked.
    sandbox.write("archive/again", "old");
    sandbox.write("archive/and again", "old");
    let made = sandbox.ok(["timer", "create", "--delete", "--max-delete", "100%", "@lab:/", "@archive:/"]);
    last_run(&sandbox, made.stdout.trim(), 1, &["SUCCEEDED"]);
    assert_eq!(names(&sandbox.path("archive")), ["here"]);
}

/// A disk that is not mounted: what stands at its place is on another file system.
#[test]
fn timer_whose_source_stands_on_another_file_system_waits_until_somebody_has_looked() {
    let (sandbox, _service) = served();
    let Ok(disk) = tempfile::tempdir_in("/dev/shm") else { return };
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(disk.path()) == device(&sandbox.path("")) {
        return;
    }
    for name in ["a", "b", "c"] {
        fs::write(disk.path().join(name), name).unwrap();
    }
    let place = sandbox.path("disk");
    symlink(disk.path(), &place).unwrap();
    let source = format!("{}/", place.display());
    let made = sandbox.ok(["timer", "create", "--every", "10s", "--delete", &source, "@archive:/"]);
    let timer = made.stdout.trim();
    last_run(&sandbox, timer, 1, &["SUCCEEDED"]);
    assert_eq!(names(&sandbox.path("archive")), ["a", "b", "c"]);
    // Of the three names two are here, too: no share would hold it.
    fs::remove_file(&place).unwrap();
    for name in ["a", "b"] {
        sandbox.write(format!("disk/{name}"), "another");
    }
    let task = last_run(&sandbox, timer, 2, &["PAUSED", "SUCCEEDED", "PARTIAL", "FAILED"]);
    assert_eq!((&task["state"], &task["blocked"]["cause"]), (&"PAUSED".into(), &"guard".into()), "{task}");
    let plan = &task["progress"]["plan"];
    assert_eq!((&plan["changed"]["items"], &plan["to_delete"]["items"]), (&2.into(), &1.into()), "{task}");
    assert_eq!(fs::read(sandbox.path("archive/a")).unwrap(), b"a", "nothing was copied");
    let id = task["id"].as_str().unwrap();
    sandbox.ok(["task", "resume", id]);
    sandbox.ok(["task", "wait", id, "--timeout=60s"]);
    assert_eq!(names(&sandbox.path("archive")), ["a", "b"]);
    assert_eq!(fs::read(sandbox.path("archive/a")).unwrap(), b"another");
    // What was confirmed is what the next run finds.
    last_run(&sandbox, timer, 3, &["SUCCEEDED"]);
}

#[test]
fn preview_outlives_the_service_and_becomes_the_task() {
    let (sandbox, mut service) = served();
    sandbox.write("lab/new", "new");
    sandbox.write("lab/changed", "changed");
    for name in ["changed", "only"] {
        sandbox.write(format!("archive/{name}"), "old");
    }
    let told = sandbox.ok(["task", "preview", "--delete", "--max-delete", "0", "@lab:/", "@archive:/"]);
    let lines: Vec<&str> = told.stdout.lines().collect();
    let [id, rest @ ..] = &lines[..] else { panic!("{}", told.stdout) };
    assert_eq!(
        rest[..4],
        ["new: 1 file, 3 bytes", "changed: 1 file, 7 bytes", "same: 0 files, 0 bytes", "to delete: 1 item, 3 bytes"]
    );
    assert!(rest[4].starts_with("would keep it from deleting: ") && rest[4].contains("1 items"), "{rest:?}");
    assert_eq!(names(&sandbox.path("archive")), ["changed", "only"]);
    assert_eq!(fs::read(sandbox.path("archive/changed")).unwrap(), b"old");
    // What it has found is there when the service is another one.
    service.kill();
    let _service = Service::start(&sandbox, &[]);
    let task = object(&sandbox, &["task", "show", id]);
    assert_eq!((&task["state"], &task["request"]["preview"]), (&"SUCCEEDED".into(), &true.into()), "{task}");
    assert_eq!(sandbox.ok(["task", "items", id, "--state", "planned"]).stdout.lines().count(), 2);
    for kind in ["move", "delete"] {
        let words: &[&str] = if kind == "move" { &["@lab:/new", "@archive:/"] } else { &["@lab:/new"] };
        let refused = sandbox.run(["task", "preview", "--kind", kind].iter().chain(words));
        assert!(refused.code != 0 && refused.stderr.contains("only a copy is planned"), "{}", refused.stderr);
    }
    // A file of pairs, and the task itself.
    sandbox.write("pairs", "@lab:/new @archive:/x\n@lab:/changed @archive:/changed\n");
    let told = sandbox.ok(["task", "preview", "--batch", sandbox.path("pairs").to_str().unwrap(), "--json"]);
    let task: Value = serde_json::from_str(told.stdout.lines().next().unwrap()).unwrap();
    let plan = &task["progress"]["plan"];
    assert_eq!((&plan["new"]["items"], &plan["changed"]["items"]), (&1.into(), &1.into()), "{task}");
    let made = sandbox.ok(["task", "clone", "--run", task["id"].as_str().unwrap()]);
    sandbox.ok(["task", "wait", made.stdout.trim(), "--timeout=60s"]);
    assert_eq!(names(&sandbox.path("archive")), ["changed", "only", "x"]);
    assert_eq!(fs::read(sandbox.path("archive/changed")).unwrap(), b"changed");
}
