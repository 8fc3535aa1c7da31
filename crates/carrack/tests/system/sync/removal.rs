//! `--remove-source-files`: what has been copied, verified and synced is deleted at its source, and nothing else.

use std::fs::{self, hard_link};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use super::numbers;
use crate::faults::{NOBODY, open_to_all, under};
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, is_root, wait_until};

const LARGE: usize = 3 << 20;

/// Small and large files, an empty one, a link, and two names of one file.
fn made(sandbox: &Sandbox) {
    for (name, content) in [("src/a", "one"), ("src/d/b", "two"), ("src/d/empty", "")] {
        sandbox.write(name, content);
    }
    sandbox.write("src/d/large", vec![7; LARGE]);
    hard_link(sandbox.path("src/a"), sandbox.path("src/d/a")).unwrap();
    symlink("a", sandbox.path("src/link")).unwrap();
}

/// What of a source is left.
fn left(top: &Path) -> Vec<String> {
    let all = crate::support::tree::walk(top).into_iter().filter(|path| !path.is_dir() || path.is_symlink());
    let mut left: Vec<_> = all.map(|path| path.strip_prefix(top).unwrap().display().to_string()).collect();
    left.sort();
    left
}

fn removed(ran: &Ran) -> Vec<u64> {
    numbers(ran, &["files", "symlinks", "sources_removed", "files_failed"])
}

/// Here, from a node and to one; directories stay.
#[test]
fn what_was_copied_is_deleted_at_its_source() {
    let sandbox = Sandbox::new();
    let (one, two) = (Node::start(&sandbox, "one", &[]), Node::start(&sandbox, "two", &[]));
    let ways = [
        ("src/".to_owned(), "dst-VERB".to_owned(), vec![]),
        ("src/".to_owned(), one.at("pushed-VERB"), vec![one.token()]),
        (one.at("src/"), "pulled-VERB".to_owned(), vec![one.token()]),
        (one.at("src/"), two.at("third-VERB"), vec![one.token_as("source"), two.token_as("destination")]),
    ];
    for (source, destination, tokens) in ways {
        for verb in ["copy", "sync"] {
            let top = sandbox.path(if source == "src/" { "src" } else { "one/src" });
            let _ = (fs::remove_dir_all(sandbox.path("src")), fs::remove_dir_all(sandbox.path("one/src")));
            made(&sandbox);
            if source != "src/" {
                fs::rename(sandbox.path("src"), &top).unwrap();
            }
            let to = destination.replace("VERB", verb);
            let run = |more: &[&str]| {
                let words = [&[verb, "--json", "--remove-source-files", &source, &to], more].concat();
                sandbox.ok(words.into_iter().chain(tokens.iter().map(String::as_str)))
            };
            let before = left(&top);
            // Two of the five are names of one file, which a sync keeps so.
            let files = if verb == "sync" { 4 } else { 5 };
            assert_eq!(removed(&run(&["-n"])), [files, 1, 0, 0], "{verb} {source} {to}");
            assert_eq!(left(&top), before);
            assert_eq!(removed(&run(&[])), [files, 1, 6, 0], "{verb} {source} {to}");
            assert!(left(&top).is_empty() && top.join("d").is_dir(), "{:?}", left(&top));
            let there = ["dst", "one/pushed", "pulled", "two/third"].map(|name| sandbox.path(format!("{name}-{verb}")));
            let there = there.iter().find(|there| there.exists()).unwrap();
            assert_eq!(left(there), before);
            assert_eq!(fs::read(there.join("d/large")).unwrap(), vec![7; LARGE]);
            fs::remove_dir_all(there).unwrap();
        }
    }
    // A source that is a file, and a list.
    made(&sandbox);
    assert_eq!(removed(&sandbox.ok(["--json", "--remove-source-files", "src/a", "single"])), [1, 0, 1, 0]);
    sandbox.write("list", "d/b\n");
    let ran = sandbox.ok(["copy", "--json", "--remove-source-files", "--files-from", "list", "src", "some"]);
    assert_eq!(removed(&ran), [1, 0, 1, 0]);
    assert_eq!(left(&sandbox.path("src")), ["d/a", "d/empty", "d/large", "link"]);
    let shown = sandbox.ok(["copy", "--remove-source-files", "src/", "rest"]).stderr;
    assert!(shown.contains("deleted at the source: 4 items"), "{shown}");
}

/// By size and time nobody knows that the destination has the content.
#[test]
fn what_was_there_is_deleted_only_if_its_content_was_compared() {
    let sandbox = Sandbox::new();
    made(&sandbox);
    sandbox.ok(["sync", "src/", "dst"]);
    let ran = sandbox.ok(["sync", "--json", "--remove-source-files", "src/", "dst"]);
    // A link that says the same has been compared.
    assert_eq!(removed(&ran), [0, 0, 1, 0]);
    assert_eq!(left(&sandbox.path("src")).len(), 5);
    let altered = sandbox.path("dst/d/b");
    let times = fs::metadata(&altered).unwrap().modified().unwrap();
    fs::write(&altered, "TWO").unwrap();
    fs::File::options().write(true).open(&altered).unwrap().set_modified(times).unwrap();
    let ran = sandbox.ok(["sync", "--json", "-c", "--remove-source-files", "src/", "dst"]);
    assert_eq!(removed(&ran), [1, 0, 5, 0]);
    assert!(left(&sandbox.path("src")).is_empty());
    assert_eq!(fs::read_to_string(altered).unwrap(), "two");
}

/// What is changed, replaced or made while the rest is copied stays, and is told.
#[test]
fn what_changes_after_it_was_copied_stays() {
    let sandbox = Sandbox::new();
    for name in ["same", "written", "replaced", "gone"] {
        sandbox.write(Path::new("src").join(name), "old");
    }
    sandbox.write("src/z/large", vec![7; 4 << 20]);
    let words = ["copy", "--json", "--remove-source-files", "--bwlimit", "2M", "src/", "dst"];
    let copying = Running::start(sandbox.carrack().args(words));
    let is_there = |name: &str| sandbox.path("dst").join(name).exists();
    wait_until("small files are there", || ["same", "written", "replaced", "gone"].iter().all(|name| is_there(name)));
    sandbox.write("src/written", "new");
    sandbox.write("other", "old");
    fs::rename(sandbox.path("other"), sandbox.path("src/replaced")).unwrap();
    fs::remove_file(sandbox.path("src/gone")).unwrap();
    sandbox.write("src/made", "new");
    let ran = copying.end();
    assert_eq!(ran.code, 23, "{}", ran.stderr);
    assert_eq!(removed(&ran), [5, 0, 3, 2]);
    assert_eq!(left(&sandbox.path("src")), ["made", "replaced", "written"]);
    let failures = ran.summary()["failures"].to_string();
    assert!(failures.contains("has changed since it was copied") && failures.contains("source-changed"), "{failures}");
    assert_eq!(fs::read_to_string(sandbox.path("dst/written")).unwrap(), "old");
    // The next run takes them.
    let ran = sandbox.ok(["copy", "--json", "--remove-source-files", "src/", "dst"]);
    assert_eq!(removed(&ran), [3, 0, 3, 0]);
    assert_eq!(fs::read_to_string(sandbox.path("dst/written")).unwrap(), "new");
}

/// What an earlier run had copied is deleted by the one that brings the rest; until then all of it is there.
#[test]
fn copy_that_was_cut_short_deletes_nothing_and_the_next_all() {
    let sandbox = Sandbox::new();
    made(&sandbox);
    let before = left(&sandbox.path("src"));
    let words = ["copy", "--json", "--remove-source-files", "src/", "dst"];
    let copying = Running::start(sandbox.carrack().args(words).args(["--bwlimit", "1M"]));
    wait_until("something is there", || sandbox.path("dst/d/b").exists());
    signal(copying.id(), "KILL");
    copying.end();
    assert_eq!(left(&sandbox.path("src")), before);
    let ran = sandbox.ok(words);
    assert_eq!(removed(&ran), [5, 1, 6, 0]);
    assert!(left(&sandbox.path("src")).is_empty());
    assert_eq!(left(&sandbox.path("dst")), before);
}

/// Before the first byte: at a node for reading only, and where nothing says that the copy is one.
#[test]
fn deletion_at_the_source_is_refused_beforehand() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &["--read-only"]);
    sandbox.write("root/src/a", "one");
    let from = node.at("src/");
    let words = ["copy", "--remove-source-files", &from, "dst", &node.token()];
    sandbox.run(words).failed_with(77, &["source", "reading only"]);
    sandbox.write("src/a", "one");
    for (more, word) in [(["--verify", "none"], "verified"), (["--durable", "none"], "stable storage")] {
        let words = ["copy", "--remove-source-files", "src/", "dst"];
        sandbox.run(words.into_iter().chain(more)).failed_with(2, &["--remove-source-files", word]);
    }
    let both = ["sync", "--delete", "--remove-source-files", "src/", "dst"];
    sandbox.run(both).failed_with(2, &["--remove-source-files", "only deletion"]);
    symlink("src/a", sandbox.path("named")).unwrap();
    sandbox.run(["copy", "--remove-source-files", "named", "dst/"]).failed_with(11, &["named", "symbolic link"]);
    for to in ["null:", "-"] {
        sandbox.run(["copy", "--remove-source-files", "src/a", to]).failed_with(2, &["--remove-source-files"]);
    }
    assert!(left(&sandbox.path("dst")).is_empty(), "nothing was copied");
    assert!(sandbox.path("src/a").exists() && sandbox.path("root/src/a").exists());
}

/// A directory that its owner has made read-only keeps nothing that the source no longer has, and stays read-only.
#[test]
fn read_only_directories_of_ones_own_lose_what_the_source_has_not() {
    if !is_root() {
        return;
    }
    let read_only = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for flags in [&[][..], &["--delete-before"], &["--backup-dir=kept"], &["--detect-renames"]] {
        let sandbox = Sandbox::new();
        open_to_all(&sandbox);
        for name in ["src/both/new", "dst/both/f", "dst/both/g", "dst/gone/d/f", "dst/left/f"] {
            sandbox.write(name, name.rsplit('/').next().unwrap());
        }
        sandbox.write("src/both/h", "g");
        // What another copy has left keeps its directory, which nobody gives permissions.
        sandbox.write("dst/left/.x.carrack-01234567.part", "x");
        for path in crate::support::tree::walk(&sandbox.path(".")).into_iter().chain([sandbox.path("dst")]) {
            chown(&path, Some(65534), Some(65534)).unwrap();
        }
        for path in ["src/both", "dst/both", "dst/gone/d", "dst/gone", "dst/left"] {
            read_only(&sandbox.path(path), 0o555);
        }
        let ran = under(&sandbox, &NOBODY, &[&["sync", "--delete", "--yes", "src/", "dst"], flags].concat());
        assert_eq!(ran.code, 0, "{flags:?}: {}{}", ran.stdout, ran.stderr);
        let kept = |path: &String| !path.starts_with("kept/");
        let names: Vec<_> = left(&sandbox.path("dst")).into_iter().filter(kept).collect();
        assert_eq!(names, ["both/h", "both/new", "left/.x.carrack-01234567.part"], "{flags:?}");
        assert!(!sandbox.path("dst/gone").exists());
        for path in ["dst/both", "dst/left"] {
            let mode = fs::metadata(sandbox.path(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o555, "{path} {flags:?}");
        }
    }
}

/// Directories get their attributes behind a deletion that asks the source again and again: that many wait keeps no
/// question from being sent.
#[test]
fn deletion_ends_where_many_directories_wait_for_their_attributes() {
    let sandbox = Sandbox::in_memory();
    let long = vec!["x".repeat(250); 14].join("/");
    for number in 0..10_500 {
        fs::create_dir_all(sandbox.path(format!("src/{long}/{number:06}"))).unwrap();
    }
    sandbox.ok(["sync", "src/", "dst"]);
    (0..1_100).for_each(|number| drop(sandbox.write(format!("dst/extra/{number}"), "x")));
    let ran = sandbox.ok(["sync", "--json", "--delete", "--yes", "src/", "dst"]);
    assert_eq!(numbers(&ran, &["items_deleted"]), [1_101]);
}
