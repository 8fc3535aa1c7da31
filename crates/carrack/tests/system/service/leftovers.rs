//! What a task that was cancelled has left at its destination: named, and removed, and nothing else with it.

use std::path::Path;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::service::{Service, object};
use crate::support::{Sandbox, tree, wait_until};

/// Names below a directory that Carrack has made for itself.
fn own_names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = tree::walk(directory)
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| name.contains(".carrack-"))
        .collect();
    names.sort();
    names
}

/// Submits a copy that takes long, and waits until some of it is there.
fn begun(sandbox: &Sandbox, source: &str, destination: &str) -> String {
    let submitted = sandbox.ok(["task", "submit", source, destination, "--bwlimit=4MB"]);
    submitted.stdout.trim().to_owned()
}

fn moved(sandbox: &Sandbox, id: &str) -> u64 {
    object(sandbox, &["task", "show", id])["progress"]["bytes_moved"].as_u64().unwrap_or(0)
}

#[test]
fn cancelled_task_names_what_it_has_left_and_clean_removes_that_alone() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "node", &[]);
    let _service = Service::start(&sandbox, &[]);
    super::add_node(&sandbox, "node", &node);
    for directory in ["near", "bare"] {
        std::fs::create_dir(sandbox.path(directory)).unwrap();
    }
    let near = sandbox.path("near").display().to_string();
    sandbox.ok(["endpoint", "add", "near", &near]);
    sandbox.write("from/run/sub/large", tree::bytes(64 << 20, 7));
    sandbox.write("from/run/small", "small");
    let bare = sandbox.path("bare").display().to_string();
    for (destination, there, shown) in [
        ("@node:/", sandbox.path("node"), "/run/sub/large"),
        ("@near:/", sandbox.path("near"), "/run/sub/large"),
        // A single file is marked in the directory of its name.
        ("@near:/renamed", sandbox.path("near"), "/renamed"),
        (&bare, sandbox.path("bare"), "/run/sub/large"),
    ] {
        let source = if shown == "/renamed" { "from/run/sub/large" } else { "from/run" };
        // Another's, who will go on from there.
        let other = begun(&sandbox, source, destination);
        let id = begun(&sandbox, source, destination);
        wait_until("both have unfinished files", || {
            moved(&sandbox, &id) > 5 << 20 && moved(&sandbox, &other) > 5 << 20
        });
        sandbox.ok(["task", "pause", &other]);
        sandbox.ok(["task", "cancel", &id]);
        assert_eq!(sandbox.run(["task", "wait", &id, "--timeout=60s"]).code, 20);
        wait_until("the other one waits", || object(&sandbox, &["task", "show", &other])["state"] == "PAUSED");
        let told = sandbox.ok(["task", "show", &id]).stdout;
        assert!(told.contains(&format!("unfinished: {shown} of {destination}")), "{told}");
        assert!(told.contains("unfinished: 1 file, ") && told.contains("task cancel --clean"), "{told}");
        let before = own_names(&there);
        let cleaned = sandbox.ok(["task", "cancel", "--clean", &id]).stderr;
        assert!(cleaned.contains(&format!("{id}: removed 1 file, ")), "{cleaned}");
        let after = own_names(&there);
        assert_eq!(before.len(), after.len() + 2, "{before:?} {after:?}");
        assert!(after.iter().any(|name| name.ends_with(".part")) && after.iter().any(|name| name.ends_with(".marker")));
        let told = sandbox.ok(["task", "show", &id]).stdout;
        assert!(!told.contains("unfinished"), "{told}");
        // What the other one had is still there, and it goes on from it.
        sandbox.ok(["task", "resume", &other]);
        sandbox.ok(["task", "cancel", "--clean", &other]);
        assert_eq!(own_names(&there), Vec::<String>::new());
    }
}

#[test]
fn clean_removes_small_parts_of_a_killed_worker_and_says_where_it_cannot() {
    let sandbox = Sandbox::new();
    let mut node = Node::start(&sandbox, "node", &[]);
    let _service = Service::start(&sandbox, &[]);
    super::add_node(&sandbox, "node", &node);
    sandbox.write("from/large", tree::bytes(64 << 20, 7));
    let id = begun(&sandbox, "from/", "@node:/");
    wait_until("there is an unfinished file", || moved(&sandbox, &id) > 5 << 20);
    sandbox.ok(["task", "cancel", &id]);
    assert_eq!(sandbox.run(["task", "wait", &id, "--timeout=60s"]).code, 20);
    // As one leaves it that is killed while it writes: its tag alone tells whose it is.
    let part = own_names(&sandbox.path("node")).into_iter().find(|name| name.ends_with(".part")).unwrap();
    let small = part.replace(".large.", ".small.").replace("-1.part", ".part");
    assert_ne!(part, small);
    sandbox.write(format!("node/sub/{small}"), "half");
    sandbox.write("node/sub/.other.carrack-0123456789ab.part", "another's");
    signal(node.child.id(), "STOP");
    let told = sandbox.run(["task", "show", &id]);
    assert!(
        told.code == 0 && told.stdout.contains("unfinished: not known at @node:/"),
        "{} {}",
        told.stdout,
        told.stderr
    );
    signal(node.child.id(), "CONT");
    let cleaned = sandbox.ok(["task", "cancel", "--clean", &id]).stderr;
    assert!(cleaned.contains("removed 2 files"), "{cleaned}");
    assert_eq!(own_names(&sandbox.path("node")), [".other.carrack-0123456789ab.part"]);
    node.kill();
    let failed = sandbox.run(["task", "cancel", "--clean", &id]);
    assert!(failed.code == 23 && failed.stderr.contains("not removed at @node:/"), "{}", failed.stderr);
}
