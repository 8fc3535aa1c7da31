//! What the service or a node says no to.

use std::fs;

use super::Scene;
use crate::support::{Sandbox, process};

#[test]
fn endpoint_paths_mean_one_place_in_every_spelling() {
    let scene = Scene::new();
    scene.sandbox.write("one/data/foo/a", "in");
    scene.sandbox.write("one/data/foobar/b", "beside");
    scene.sandbox.write("one/outside", "out");
    for path in ["/..", "/foo/..", "/foo/../../outside", "/./x"] {
        scene.fails(["ls", &format!("@one:{path}")], 2, &["holds no . and no .."]);
    }
    // Here a path is what it is: this is the name of a file, and no other place.
    scene.fails(["ls", "@one:/%2e%2e/outside"], 11, &["o such file"]);
    // A scope ends at a component.
    scene.sandbox.ok(["endpoint", "edit", "one", "--users", "ann"]);
    let ann = scene.log_in("ann", &["--verbs", "read", "--endpoint", "one", "--path", "/foo"]);
    assert_eq!(ann.ok(&["ls", "@one:/foo"]).stdout, "a\n");
    for path in ["/foobar", "/foobar/b", "/", "/fo"] {
        ann.run(&["ls", &format!("@one:{path}")]).failed_with(77, &["@one:"]);
    }
    for verb in ["mkdir", "rm"] {
        ann.run(&[verb, "@one:/foo/a"]).failed_with(77, &["@one:/foo/a"]);
    }
    ann.run(&["copy", "@one:/foo/a", "@two:/a"]).failed_with(77, &["@two:/a"]);
    // A link that leads out of what the scope covers is followed by no one.
    std::os::unix::fs::symlink("../foobar/b", scene.sandbox.path("one/data/foo/link")).unwrap();
    let out = ann.run(&["copy", "@one:/foo/link", "stolen"]);
    assert!(out.code != 0, "{}{}", out.stdout, out.stderr);
    assert!(!scene.sandbox.path("stolen").exists());
}

#[test]
fn endpoint_of_another_user_is_not_found_and_one_for_reading_is_not_changed() {
    let scene = Scene::new();
    scene.sandbox.write("two/a", "12345");
    let eve = scene.log_in("eve", &[]);
    let hidden = eve.run(&["ls", "@two:/"]);
    let absent = eve.run(&["ls", "@none:/"]);
    hidden.failed_with(11, &["carrack endpoint list"]);
    assert_eq!(hidden.stderr.replace("@two", "@none"), absent.stderr);
    scene.sandbox.ok(["endpoint", "edit", "two", "--users", "eve", "--read-only"]);
    assert_eq!(eve.ok(&["ls", "@two:/"]).stdout, "a\n");
    for words in
        [&["rm", "@two:/a"][..], &["mkdir", "@two:/d"], &["mv", "@two:/a", "@two:/b"], &["one.token", "@two:/"]]
    {
        eve.run(words).failed_with(77, &["@two:"]);
    }
    assert_eq!(fs::read_dir(scene.sandbox.path("two")).unwrap().count(), 1);
}

#[test]
fn endpoint_without_a_service_or_a_token_says_what_to_try() {
    let sandbox = Sandbox::new();
    sandbox.run(["ls", "@lab:/"]).failed_with(10, &["carrack serve", "--service"]);
    sandbox.run(["@lab:/", "here", "--service=https://127.0.0.1:1"]).failed_with(10, &["127.0.0.1:1"]);
    let scene = Scene::new();
    scene.sandbox.ok(["endpoint", "add", "bare", &scene.one.at("")]);
    scene.fails(["ls", "@bare:/"], 2, &["no token", "give the endpoint the node's token"]);
    scene.fails(["ls", "@one:/", "--service=https://127.0.0.1:1"], 10, &["127.0.0.1:1"]);
}

#[test]
fn endpoint_token_is_in_no_argument_and_no_environment() {
    let scene = Scene::new();
    let content = crate::support::tree::bytes(16 << 20, 3);
    scene.sandbox.write("one/data/large", content);
    let mut command = scene.sandbox.carrack();
    command.args(["@one:/large", "@two:/", "--bwlimit=4MB"]);
    let running = crate::support::running::Running::start(&mut command);
    crate::support::wait_until("it is under way", || !scene.sandbox.parts("two").is_empty());
    let mine = process::at_home_in(&scene.sandbox.path(""));
    assert!(mine.len() >= 4, "{mine:?}");
    for pid in mine {
        for file in ["cmdline", "environ"] {
            let about = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let about = String::from_utf8_lossy(&about).into_owned();
            assert!(!about.contains("carrack1.") && !about.contains(crate::support::node::Node::TOKEN), "{about}");
        }
    }
    drop(running);
    let log = scene.service.log();
    assert!(log.contains("a grant was made") && !log.contains("carrack1."), "{log}");
}
