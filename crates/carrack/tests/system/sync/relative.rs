//! `--relative`: the paths of sources are made at the destination, as rsync makes them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use super::oracle::shown;
use super::{numbers, set_mtime};
use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{Sandbox, ran};

/// Directories of odd permissions and times, and files in them.
fn grown(sandbox: &Sandbox, below: &str) {
    for name in ["a/b/c", "a/b/d/e", "a/x", "f", "g/h"] {
        sandbox.write(format!("{below}{name}"), name);
    }
    for (name, mode) in [("a", 0o711), ("a/b", 0o750), ("g", 0o700)] {
        let path = sandbox.path(format!("{below}{name}"));
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        fs::File::open(&path).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    set_mtime(&sandbox.path(format!("{below}f")), 1_000_000_000);
}

#[test]
fn paths_of_sources_are_made_as_by_rsync() {
    let version = Command::new("rsync").arg("--version").output();
    if !version.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("version 3.5.")) {
        return println!("skipped: there is no rsync 3.5 to compare with");
    }
    let sandbox = Sandbox::new();
    grown(&sandbox, "src/");
    let marked = format!("{}/./a/b/c", sandbox.path("src").display());
    let cases: [&[&str]; 9] = [
        &["a/b/c"],
        &["a/b"],
        &["a/b/"],
        &["a/b/.", "f"],
        &["./a/b/c", "g/h"],
        &["a/./b/c"],
        &["a/./b", "a/./x"],
        &["../src/./a/b/d"],
        &[&marked],
    ];
    for sources in cases {
        let run = |program: &mut Command, to: &str| {
            let _ = fs::remove_dir_all(sandbox.path("src").join(to));
            let words = sources.iter().copied().chain([to]);
            ran(program.args(words).current_dir(sandbox.path("src")).output_in_time().unwrap())
        };
        let theirs = run(Command::new("rsync").args(["-rlptR"]), "rsync");
        // Below the directory that it is copied from, which is not copied into itself.
        let ours = run(sandbox.carrack().args(["sync", "-R"]), "carrack");
        assert_eq!((ours.code, theirs.code), (0, 0), "{sources:?}: {}{}", ours.stderr, theirs.stderr);
        let (ours, theirs) = (sandbox.path("src/carrack"), sandbox.path("src/rsync"));
        assert_eq!(shown(&ours), shown(&theirs), "{sources:?}");
        for directory in shown(&ours).into_iter().filter(|(_, what)| what == "directory").map(|(path, _)| path) {
            let of = |top: &std::path::Path| {
                let meta = fs::metadata(top.join(&directory)).unwrap();
                (meta.mode(), meta.mtime())
            };
            assert_eq!(of(&ours), of(&theirs), "{sources:?} {directory}");
        }
        for top in [&ours, &theirs] {
            fs::remove_dir_all(top).unwrap();
        }
    }
}

#[test]
fn paths_at_a_node_begin_at_its_root_or_at_the_mark() {
    let sandbox = Sandbox::new();
    grown(&sandbox, "root/");
    let node = Node::start(&sandbox, "root", &[]);
    let run = |words: &[&str]| sandbox.run(words.iter().copied().chain([&node.token()[..], "--json"]));
    let whole = run(&["-R", &node.at("a/b/c"), &node.at("g"), "whole"]);
    assert_eq!((whole.code, numbers(&whole, &["files", "directories"])), (0, vec![2, 3]), "{}", whole.stderr);
    assert!(sandbox.path("whole/a/b/c").exists() && sandbox.path("whole/g/h").exists());
    assert!(!sandbox.path("whole/a/x").exists() && !sandbox.path("whole/f").exists());
    let marked = run(&["-R", &node.at("a/./b"), "marked"]);
    assert_eq!((marked.code, numbers(&marked, &["files"])), (0, vec![2]), "{}", marked.stderr);
    assert!(sandbox.path("marked/b/d/e").exists() && !sandbox.path("marked/x").exists());
    // And to a node: a dry run says what a copy does.
    grown(&sandbox, "from/");
    let words = ["-R", "from/./a/b", "from/./f", &node.at("to")];
    let planned = run(&[&["-n"], &words[..]].concat());
    assert_eq!(numbers(&planned, &["files"]), [3]);
    assert!(!sandbox.path("root/to").exists());
    assert_eq!(numbers(&run(&words), &["files"]), [3]);
    assert!(sandbox.path("root/to/a/b/d/e").exists() && !sandbox.path("root/to/a/x").exists());
}

#[test]
fn paths_that_are_not_there_fail_and_those_that_cannot_be_are_refused() {
    let sandbox = Sandbox::new();
    grown(&sandbox, "");
    symlink("a", sandbox.path("link")).unwrap();
    let ran = sandbox.run(["-R", "nowhere/x", "a/b/c", "dst"]);
    ran.failed_with(23, &["nowhere/x", "is not there"]);
    assert!(sandbox.path("dst/a/b/c").exists());
    // A link on the way is followed where links to directories are.
    sandbox.run(["-R", "link/b/c", "linked"]).failed_with(23, &["link/b/c", "followed with -k"]);
    sandbox.ok(["-R", "-k", "link/b/c", "linked"]);
    assert!(sandbox.path("linked/link/b/c").exists() && !sandbox.path("linked/link").is_symlink());
    for (words, why) in [
        (&["-R", "a/../f", "never"][..], ".."),
        (&["-R", "a", "/etc/hosts", "never"], "two directories"),
        (&["sync", "-R", "--delete", "a/b", "never"], "--relative"),
        (&["-R", "zero:1M", "never"], "no path"),
        (&["-R", "a/b", "a/b/into"], "lies inside"),
        (&["--no-implied-dirs", "a", "never"], "permissions"),
    ] {
        let ran = sandbox.run(words);
        assert!(matches!(ran.code, 2 | 11), "{words:?}: {}", ran.code);
        assert!(ran.stderr.contains(why), "{words:?}: {}", ran.stderr);
    }
    assert!(!sandbox.path("never").exists() && !sandbox.path("a/b/into").exists());
}

/// A list of rsync's says it already; one of failures narrows what the sources name.
#[test]
fn lists_and_relative_paths_go_together() {
    let sandbox = Sandbox::new();
    grown(&sandbox, "src/");
    sandbox.write("list", "b/c\n");
    sandbox.ok(["-R", "--files-from=list", "src/a", "listed"]);
    assert!(sandbox.path("listed/b/c").exists() && !sandbox.path("listed/b/d").exists());
    let pipe = sandbox.path("src/a/b/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    sandbox.run(["-R", "--failed-list=failed", "src/./a/b", "dst"]).failed_with(23, &["FIFO"]);
    fs::remove_file(&pipe).unwrap();
    fs::write(&pipe, "a file now").unwrap();
    let ran = sandbox.ok(["-R", "--json", "--files-from=failed", "src/./a/b", "dst"]);
    assert_eq!(numbers(&ran, &["files"]), [1]);
    assert_eq!(fs::read(sandbox.path("dst/a/b/pipe")).unwrap(), b"a file now");
    sandbox.write("other", "# carrack failed-list\ng/h\n");
    let ran = sandbox.run(["-R", "--files-from=other", "src/./a/b", "dst"]);
    ran.failed_with(2, &["g/h", "not among what would be copied"]);
}
