//! Receipts of tasks: the service signs what its workers did.

use std::fs;

use serde_json::Value;

use super::add_node;
use crate::support::node::Node;
use crate::support::process::{signal, workers};
use crate::support::service::{Service, add_endpoints, object};
use crate::support::{Sandbox, tree, wait_until};

/// The receipt of a task, kept in a file, and its statement.
pub fn receipt(sandbox: &Sandbox, id: &str, more: &[&str]) -> Value {
    let text = sandbox.ok(["task", "receipt", id].iter().chain(more)).stdout;
    sandbox.write("r", &text);
    let statement = text.lines().take_while(|line| !line.starts_with("-----")).last().unwrap();
    serde_json::from_str(statement).unwrap()
}

#[test]
fn receipt_of_a_task_whose_worker_was_killed_is_of_all_its_items() {
    let sandbox = Sandbox::new();
    let (one, two) = (Node::start(&sandbox, "one", &[]), Node::start(&sandbox, "two", &["--dial-to=127.0.0.0/8"]));
    tree::mixed(&sandbox.path("one/run42"));
    tree::many(&sandbox.path("one/run42/many"), 400, 1000);
    sandbox.write("one/run42/large", vec![5; 48 << 20]);
    let _service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "one", &one);
    add_node(&sandbox, "two", &two);
    let words = ["task", "submit", "@one:/run42/", "@two:/run42", "--receipt", "--bwlimit", "16M"];
    let id = sandbox.ok(words).stdout.trim().to_owned();
    wait_until("most is there", || sandbox.path("two/run42/many").is_dir() && !sandbox.parts("two").is_empty());
    workers(&sandbox.path("home")).into_iter().for_each(|pid| signal(pid, "KILL"));
    sandbox.ok(["task", "wait", &id, "--timeout", "120s"]);
    let statement = receipt(&sandbox, &id, &[]);
    assert_eq!((&statement["id"], &statement["ending"]), (&id.as_str().into(), &"complete".into()), "{statement:#}");
    assert_eq!((&statement["sources"][0], &statement["destination"]), (&"@one:/run42/".into(), &"@two:/run42".into()));
    let items = tree::walk(&sandbox.path("one/run42")).into_iter().filter(|path| path.is_symlink() || !path.is_dir());
    let of = |count: &Value| count.as_u64().unwrap() as usize;
    let there = of(&statement["outcomes"]["there"]);
    assert_eq!((of(&statement["items"]) - there, there > 0), (items.count(), true), "{statement:#}");
    assert_eq!(statement["bytes"], statement_bytes(&sandbox), "{statement:#}");
    // Where endpoints are, and what they are shown, is not told.
    let text = fs::read_to_string(sandbox.path("r")).unwrap();
    assert!(!text.contains(sandbox.path("").to_str().unwrap()) && !text.contains(Node::TOKEN), "{statement:#}");

    // Nobody knows the service's key, until somebody believes it.
    sandbox.run(["verify", "r"]).failed_with(77, &["a key that you do not know"]);
    sandbox.ok(["receipt", "trust", "lab", "--of-service"]);
    sandbox.ok(["verify", "--signed-by", "lab", "r", "two/run42"]);
    sandbox.ok(["verify", "r", "@two:/run42"]);
    sandbox.write("two/run42/large", vec![6; 48 << 20]);
    sandbox.run(["verify", "r", "@two:/run42"]).failed_with(27, &["1 changed"]);
}

/// Bytes of all files of the source.
fn statement_bytes(sandbox: &Sandbox) -> u64 {
    let files = tree::walk(&sandbox.path("one/run42"));
    let facts = files.iter().map(|path| fs::symlink_metadata(path).unwrap());
    facts.filter(fs::Metadata::is_file).map(|facts| facts.len()).sum()
}

#[test]
fn each_pair_has_its_receipt_and_a_task_without_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("lab/a/one", "1");
    sandbox.write("lab/b/two", "22");
    fs::create_dir(sandbox.path("archive")).unwrap();
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "lab"), ("archive", "archive")]);
    sandbox.write("pairs", "@lab:/a/ @archive:/a\n@lab:/b/ @archive:/b\n");
    let words = ["task", "submit", "--batch", "pairs", "--receipt", "--wait", "--timeout", "60s"];
    let id = sandbox.ok(words).stdout.trim().to_owned();
    sandbox.ok(["receipt", "trust", "lab", "--of-service"]);
    for (pair, name, bytes) in [("0", "a", 1), ("1", "b", 2)] {
        let statement = receipt(&sandbox, &id, &["--pair", pair]);
        assert_eq!(
            (&statement["destination"], &statement["bytes"]),
            (&format!("@archive:/{name}").into(), &bytes.into())
        );
        sandbox.ok(["verify", "r", &format!("archive/{name}")]);
    }
    sandbox.run(["task", "receipt", &id, "--pair", "2"]).failed_with(11, &["no receipt of pair 2"]);
    let words = ["task", "submit", "@lab:/a/", "@archive:/c", "--wait", "--timeout", "60s"];
    let plain = sandbox.ok(words).stdout.trim().to_owned();
    sandbox.run(["task", "receipt", &plain]).failed_with(11, &["submit it with receipt"]);
    // A move that is done names what it has moved.
    let words =
        ["task", "submit", "--kind", "move", "@lab:/b/", "@archive:/d", "--receipt", "--wait", "--timeout", "60s"];
    let moved = sandbox.ok(words).stdout.trim().to_owned();
    let statement = receipt(&sandbox, &moved, &[]);
    assert_eq!(statement["outcomes"]["copied"].as_u64().map(|count| count >= 1), Some(true), "{statement:#}");
    sandbox.ok(["verify", "r", "archive/d"]);
    assert_eq!(object(&sandbox, &["task", "show", &moved])["request"]["receipt"], true);
}
