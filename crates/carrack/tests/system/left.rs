//! Unfinished files of an interrupted copy, and a later copy with another selection: what it leaves out stays, and the
//! report says what to do with it.

use std::path::PathBuf;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, same_tree, tree, wait_until};

const BIG: usize = 12 << 20;

fn source(sandbox: &Sandbox) {
    tree::many(&sandbox.path("tree"), 20, 10);
    let content: Vec<u8> = (0..BIG).map(|at| (at / 7 % 251) as u8).collect();
    sandbox.write("tree/big file", content);
}

/// Copies until blocks of the large file are claimed by a marker, and is told to end.
fn interrupt(sandbox: &Sandbox, words: &[&str], place: &str) {
    let mut command = sandbox.carrack();
    command.args(words).args(["--bwlimit=3MB", "--streams=1"]);
    let copy = Running::start(&mut command);
    wait_until("blocks are claimed", || {
        let markers = markers(sandbox, place);
        markers.iter().any(|marker| std::fs::metadata(marker).is_ok_and(|facts| facts.len() > 4 << 10))
    });
    signal(copy.id(), "TERM");
    assert_eq!(copy.end().code, 75);
    assert_eq!(sandbox.parts(place).len(), 1);
}

fn markers(sandbox: &Sandbox, place: &str) -> Vec<PathBuf> {
    let is_marker = |path: &PathBuf| path.to_string_lossy().ends_with(".marker");
    tree::walk(&sandbox.path(place)).into_iter().filter(is_marker).collect()
}

/// The bytes that a copy went on from, and the report's line of what it left.
fn resumed(ran: &Ran) -> u64 {
    ran.summary()["bytes_resumed"].as_u64().unwrap()
}

#[test]
fn unfinished_file_outside_a_selection_stays_and_is_named_with_what_to_do() {
    let sandbox = Sandbox::new();
    source(&sandbox);
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("list", "d000/f000000\n");
    for (to, place, token) in
        [("there/".to_owned(), "there", None), (node.at("here/"), "root/here", Some(node.token()))]
    {
        std::fs::create_dir_all(sandbox.path(place)).unwrap();
        let copy: Vec<&str> = ["tree/", &to, "--block=64K"].into_iter().chain(token.as_deref()).collect();
        let run = |more: &[&str]| sandbox.ok(copy.iter().chain(more).copied());
        let is_left = |ran: &Ran| {
            let left = &ran.summary()["unfinished"];
            assert_eq!((&left["count"], &left["paths"][0]["path"]), (&1.into(), &"big file".into()), "{left}");
            assert_eq!((sandbox.parts(place).len(), markers(&sandbox, place).len()), (1, 1));
        };
        interrupt(&sandbox, &copy, place);
        // Each leaves the large file out, in its own way.
        is_left(&run(&["--files-from=list", "--json"]));
        is_left(&run(&["--existing", "--json"]));
        sandbox.write(format!("{place}/big file"), "an older one");
        is_left(&run(&["--no-clobber", "--json"]));
        let said = run(&["--files-from=list"]).stderr;
        let removes = said.split_once("`carrack gc --older-than 0s ").unwrap_or_else(|| panic!("{said}")).1;
        assert!(said.contains("left: 1 unfinished file") && said.contains("(big file)"), "{said}");
        // The command that goes on with it,
        assert!(resumed(&run(&["--json"])) >= 1 << 20, "{place}");
        same_tree(&sandbox.path("tree"), &sandbox.path(place));
        // and the one that removes it, as it was told.
        std::fs::remove_file(sandbox.path(place).join("big file")).unwrap();
        interrupt(&sandbox, &copy, place);
        let location = removes.split('`').next().unwrap().trim_matches('\'');
        sandbox.ok(["gc", "--older-than", "0s", location].into_iter().chain(token.as_deref()));
        assert!(sandbox.parts(place).is_empty() && markers(&sandbox, place).is_empty(), "{place}");
    }
}

#[test]
fn unfinished_file_of_a_selection_goes_on_and_what_the_source_has_no_more_goes() {
    let sandbox = Sandbox::new();
    source(&sandbox);
    std::fs::create_dir(sandbox.path("there")).unwrap();
    interrupt(&sandbox, &["tree/", "there/", "--block=64K"], "there");
    sandbox.write("list", "big file\n");
    let ran = sandbox.ok(["tree/", "there/", "--block=64K", "--files-from=list", "--json"]);
    assert!(resumed(&ran) >= 1 << 20);
    assert_eq!(ran.summary()["unfinished"]["count"], 0);
    assert!(sandbox.parts("there").is_empty() && markers(&sandbox, "there").is_empty());
    // All of a copy without a selection: what nobody asks for is of no use.
    std::fs::remove_dir_all(sandbox.path("there")).unwrap();
    std::fs::create_dir(sandbox.path("there")).unwrap();
    interrupt(&sandbox, &["tree/", "there/", "--block=64K"], "there");
    std::fs::remove_file(sandbox.path("tree/big file")).unwrap();
    sandbox.ok(["tree/", "there/"]);
    assert!(sandbox.parts("there").is_empty() && markers(&sandbox, "there").is_empty());
}
