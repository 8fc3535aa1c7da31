//! Hosts that have few threads left: for the command, an agent, a node and a service, at every limit.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use carrack_faults::threads::ThreadLimit;

use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{Ran, Sandbox, program, ran, same_tree, tree};

/// From a shell that has hardly begun, to more than a small copy takes.
const LIMITS: std::ops::RangeInclusive<u32> = 3..=40;

fn source(sandbox: &Sandbox) {
    tree::many(&sandbox.path("tree"), 30, 10);
    sandbox.write("tree/big", vec![7; 3 << 20]);
}

/// Holds a copy against what is promised at any limit; whether it has come to its end.
#[track_caller]
fn is_whole(copied: &Ran, to: &Path, from: &Path, limit: u32) -> bool {
    let said = format!("{} of {limit}: {}{}", copied.code, copied.stdout, copied.stderr);
    assert!(!said.contains("panic") && !said.contains("an error in Carrack"), "{said}");
    if copied.code == 0 {
        same_tree(from, to);
        return true;
    }
    assert_eq!(copied.code, 11, "{said}");
    assert!(said.contains(r#""code":"resource-limit""#) && said.contains("cannot start"), "{said}");
    false
}

/// Whether the copy was begun anew at least once.
fn is_retried(copied: &Ran) -> bool {
    copied.stdout.lines().any(|line| line.contains(r#""type":"session-lost""#))
}

#[test]
fn threads_too_few_for_a_command_are_a_limit_that_may_pass() {
    let Some(few) = ThreadLimit::new() else { return };
    let sandbox = Sandbox::in_memory();
    source(&sandbox);
    let mut whole = Vec::new();
    for limit in LIMITS {
        few.set(limit);
        let to = format!("there-{limit}");
        let mut command = sandbox.carrack();
        command.args(["tree", &to, "--json", "--retries=1", "--durable=none"]);
        let copied = ran(few.limited(&command).output_in_time().unwrap());
        let is_whole = is_whole(&copied, &sandbox.path(&to).join("tree"), &sandbox.path("tree"), limit);
        assert!(is_whole || is_retried(&copied), "{limit}: {}{}", copied.stdout, copied.stderr);
        whole.push(is_whole);
    }
    assert!(!whole[0] && whole[whole.len() - 1], "{whole:?}");
}

#[test]
fn threads_too_few_for_an_agent_are_a_limit_that_may_pass() {
    let Some(few) = ThreadLimit::new() else { return };
    let sandbox = Sandbox::in_memory();
    source(&sandbox);
    // In place of ssh: the far side is a process of its own, in the group.
    let join = few.prefix()[3].clone();
    let far = sandbox.write("far", format!("#!/bin/sh\necho $$ > {join}\nexec sh -c \"$2\"\n"));
    std::fs::set_permissions(&far, PermissionsExt::from_mode(0o755)).unwrap();
    let (far, program) = (format!("--rsh={}", far.display()), format!("--remote-path={}", program().display()));
    let mut whole = Vec::new();
    for limit in LIMITS {
        for is_source in [true, false] {
            few.set(limit);
            let to = format!("there-{limit}-{is_source}");
            let (from, into) = (sandbox.path("tree"), sandbox.path(&to));
            let at_far = |path: &Path| format!("far:{}", path.display());
            let (from_told, to_told) = match is_source {
                true => (at_far(&from), to.clone()),
                false => ("tree".to_owned(), at_far(&into)),
            };
            let words = [&far[..], &program, "--json", "--retries=1", "--durable=none", &from_told, &to_told];
            let copied = sandbox.run(words);
            whole.push(is_whole(&copied, &into.join("tree"), &from, limit));
            assert!(whole[whole.len() - 1] || is_retried(&copied), "{limit}: {}{}", copied.stdout, copied.stderr);
        }
    }
    assert!(!whole[0] && whole[whole.len() - 1], "{whole:?}");
}

#[test]
fn node_with_too_few_threads_says_so_and_goes_on_serving() {
    let Some(few) = ThreadLimit::new() else { return };
    let sandbox = Sandbox::in_memory();
    source(&sandbox);
    let node = Node::limited(&few, &sandbox, "root");
    let base = few.count();
    let mut whole = Vec::new();
    for more in 0..=*LIMITS.end() {
        for is_source in [false, true] {
            let (to, from) = (format!("there-{more}"), sandbox.path("tree"));
            let place = if is_source { sandbox.path(&to) } else { sandbox.path("root").join(&to) };
            let (from_told, to_told) = match is_source {
                // What was sent there a moment ago.
                true => {
                    few.lift();
                    sandbox.ok(["tree/", &node.at(&format!("own-{more}")), &node.token(), "--durable=none"]);
                    (node.at(&format!("own-{more}/")), to.clone())
                }
                false => ("tree/".to_owned(), node.at(&to)),
            };
            few.set(base + more);
            let words = [&from_told[..], &to_told, &node.token(), "--json", "--retries=1", "--durable=none"];
            let copied = sandbox.run(words);
            whole.push(is_whole(&copied, &place, &from, more));
            assert!(whole[whole.len() - 1] || is_retried(&copied), "{more}: {}{}", copied.stdout, copied.stderr);
        }
    }
    assert!(!whole[0] && whole[whole.len() - 1], "{whole:?}");
    few.lift();
    sandbox.ok(["tree/", &node.at("last"), &node.token()]);
    assert!(!node.log().contains("panicked"), "{}", node.log());
}

#[cfg(feature = "service")]
#[test]
fn service_with_too_few_threads_answers_retries_and_goes_on_serving() {
    use crate::support::service::{Service, object};

    let Some(few) = ThreadLimit::new() else { return };
    let sandbox = Sandbox::new();
    source(&sandbox);
    let mut command = sandbox.carrack();
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let service = Service::run(&sandbox, few.limited(&command).stdin(std::process::Stdio::null()));
    sandbox.ok(["endpoint", "add", "here", sandbox.path("").to_str().unwrap()]);
    let base = few.count();
    // A worker is a process of the group, too. Some limits let it begin, and then its threads are too few.
    for more in [0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 40] {
        few.set(base + more);
        sandbox.ok(["task", "list"]);
        let task = sandbox.ok(["task", "submit", "@here:/tree/", &format!("@here:/there-{more}")]);
        let task = task.stdout.trim().to_owned();
        let told = || object(&sandbox, &["task", "show", &task]).to_string();
        // It runs, or it waits for better times and says what for.
        crate::support::wait_until("the task succeeds, or tells what it lacks", || {
            let told = told();
            assert!(!told.contains("FAILED") && !told.contains("an error in Carrack"), "{more}: {told}");
            told.contains("Resource temporarily unavailable") || told.contains("SUCCEEDED")
        });
        few.lift();
        sandbox.ok(["task", "wait", &task]);
        same_tree(&sandbox.path("tree"), &sandbox.path(format!("there-{more}")));
    }
    let log = service.log();
    assert!(!log.contains("panicked"), "{log}");
}
