//! What is left out by its size, by its age, and by the file system that it is on: the destination keeps what it has of
//! it. And what is replaced or deleted, and kept.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::numbers;
use crate::faults::Mounted;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Sandbox, is_root, wait_until};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Files of 1, 10 and 100 bytes that were changed 1, 10 and 100 days ago.
fn grown(sandbox: &Sandbox) {
    for many in [1, 10, 100] {
        let path = sandbox.write(format!("src/d/{many}"), vec![b'x'; many]);
        let changed = SystemTime::now() - DAY * many as u32;
        fs::File::options().write(true).open(path).unwrap().set_modified(changed).unwrap();
    }
    std::os::unix::fs::symlink("1", sandbox.path("src/link")).unwrap();
}

#[test]
fn files_are_chosen_by_size_and_age() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    grown(&sandbox);
    let cases: [(&[&str], &[&str]); 9] = [
        (&["--min-size", "10"], &["10", "100"]),
        (&["--max-size", "10"], &["1", "10"]),
        (&["--min-size=2", "--max-size=99B"], &["10"]),
        (&["--max-size", "0"], &[]),
        (&["--min-age", "9d"], &["10", "100"]),
        (&["--max-age", "1w4d"], &["1", "10"]),
        (&["--min-age=36h", "--max-age=99d"], &["10"]),
        (&["--min-age=9d", "--max-size=10", "--exclude=100"], &["10"]),
        (&["--max-age", "5s"], &[]),
    ];
    for (number, (flags, names)) in cases.into_iter().enumerate() {
        // Copied elsewhere and over there, planned and counted, all the same.
        for (verb, to) in [("copy", format!("to{number}")), ("sync", node.at(&format!("to{number}")))] {
            let token = node.token();
            let ran = |more: &[&str]| {
                let there = to.starts_with("carrack").then_some(token.as_str());
                sandbox.ok([&[verb, "src/", &to, "--json"], flags, more].concat().into_iter().chain(there))
            };
            let planned = numbers(&ran(&["-n"]), &["files"]);
            let copied = numbers(&ran(&[]), &["files"]);
            assert_eq!((planned, copied), (vec![names.len() as u64], vec![names.len() as u64]), "{verb} {flags:?}");
            let there = if verb == "copy" { sandbox.path(&to) } else { sandbox.path(format!("root/to{number}")) };
            let mut found: Vec<String> = fs::read_dir(there.join("d"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            assert_eq!(found, names, "{verb} {flags:?}");
            assert!(there.join("link").is_symlink(), "a link has no size and no age that anybody asks for");
        }
    }
    // A source that is a file is chosen like others.
    sandbox.ok(["copy", "--min-size", "11", "src/d/10", "src/d/100", "single/"]);
    assert!(!sandbox.path("single/10").exists() && sandbox.path("single/100").exists());
    for (flag, value) in [("--min-size", "-1"), ("--max-size", "many"), ("--min-age", "soon"), ("--max-age", "1M")] {
        sandbox.run(["copy", &format!("{flag}={value}"), "src/", "never"]).failed_with(2, &[flag]);
    }
    assert!(!sandbox.path("never").exists());
}

/// The source has them. What a rule leaves out as well goes where that is asked for.
#[test]
fn files_left_out_by_size_and_age_are_not_deleted() {
    let sandbox = Sandbox::new();
    grown(&sandbox);
    sandbox.ok(["sync", "src/", "dst"]);
    sandbox.write("dst/d/only", "x");
    sandbox.write("dst/d/100", "older");
    let flags = ["--max-size=10", "--min-age=2d", "--delete-excluded", "--json"];
    let ran = sandbox.ok(["sync", "src/", "dst"].into_iter().chain(flags));
    assert_eq!(numbers(&ran, &["files", "items_deleted"]), [0, 1]);
    assert!(sandbox.path("dst/d/1").exists() && !sandbox.path("dst/d/only").exists());
    assert_eq!(fs::read(sandbox.path("dst/d/100")).unwrap(), b"older");
    // A source of which every file is left out is not an empty one.
    sandbox.write("dst/d/only", "x");
    sandbox.ok(["sync", "src/", "dst", "--max-size=0", "--delete"]);
    assert!(sandbox.path("dst/d/1").exists() && !sandbox.path("dst/d/only").exists());
}

/// A directory where a file system is mounted is there and empty; nobody deletes what the destination has in it.
#[test]
fn other_file_systems_of_the_source_are_left_out() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("src/a", "a");
    let disk = Mounted::new(sandbox.path("src/disk"), "1m");
    fs::write(disk.0.join("f"), "mounted").unwrap();
    sandbox.ok(["sync", "src/", "all"]);
    assert!(sandbox.path("all/disk/f").exists());
    let ran = sandbox.ok(["sync", "-x", "src/", "dst", "--json"]);
    assert_eq!(numbers(&ran, &["files", "directories"]), [1, 2]);
    assert!(sandbox.path("dst/disk").is_dir() && !sandbox.path("dst/disk/f").exists());
    sandbox.write("dst/disk/own", "x");
    sandbox.write("dst/only", "x");
    let ran = sandbox.ok(["sync", "--one-file-system", "--delete", "src/", "dst", "--json"]);
    assert_eq!(numbers(&ran, &["items_deleted", "items_only_there"]), [1, 0]);
    assert!(sandbox.path("dst/disk/own").exists() && !sandbox.path("dst/only").exists());
    // The file system that the source itself is on is the one.
    sandbox.ok(["copy", "-x", "src/disk/", "disk"]);
    assert!(sandbox.path("disk/f").exists());
}

/// What every file below a directory holds, by its path.
fn held(sandbox: &Sandbox, below: &str) -> Vec<(String, String)> {
    let top = sandbox.path(below);
    let files = crate::support::tree::walk(&top).into_iter().filter(|path| path.is_file() || path.is_symlink());
    let mut held: Vec<(String, String)> = files
        .map(|path| {
            let name = path.strip_prefix(&top).unwrap().display().to_string();
            let link = fs::read_link(&path).map(|target| format!("-> {}", target.display()));
            (name, link.unwrap_or_else(|_| fs::read_to_string(&path).unwrap()))
        })
        .collect();
    held.sort();
    held
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

/// Beside its place or in a directory, here and at a node; what was kept before gives way to what is kept now.
#[test]
fn what_is_replaced_or_deleted_is_kept() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let large = "large".repeat(300_000);
    for (name, content) in [("a", "new a"), ("d/b", "new b"), ("d/large", &large)] {
        sandbox.write(Path::new("src").join(name), content);
    }
    std::os::unix::fs::symlink("new", sandbox.path("src/link")).unwrap();
    for (place, to) in [("dst", "dst".to_owned()), ("root/dst", node.at("dst"))] {
        let prepare = || {
            let _ = fs::remove_dir_all(sandbox.path(place));
            for name in ["a", "a~", "d/b", "d/large", "only", "e/only"] {
                sandbox.write(Path::new(place).join(name), "old");
            }
            std::os::unix::fs::symlink("old", sandbox.path(place).join("link")).unwrap();
        };
        let token = node.token();
        let sync = |flags: &[&str]| {
            let words = [&["sync", "--json", "--delete", "src/", &to][..], flags].concat();
            numbers(&sandbox.ok(words.into_iter().chain((place != "dst").then_some(&token[..]))), &["items_deleted"])
        };
        prepare();
        assert_eq!(sync(&["-b"]), [2], "{to}");
        let now = [("a", "new a"), ("d/b", "new b"), ("d/large", &large), ("link", "-> new")];
        let beside = [
            ("a~", "old"),
            ("d/b~", "old"),
            ("d/large~", "old"),
            ("e/only~", "old"),
            ("link~", "-> old"),
            ("only~", "old"),
        ];
        let both = |kept: &[(&str, &str)]| {
            let mut both = pairs(&[&now[..], kept].concat());
            both.sort();
            both
        };
        assert_eq!(held(&sandbox, place), both(&beside), "{to}");
        // Nothing differs any more, and what is kept stays.
        assert_eq!(sync(&["--backup"]), [0]);
        assert_eq!(held(&sandbox, place), both(&beside), "{to}");
        prepare();
        assert_eq!(sync(&["--backup-dir=was/x", "--suffix=.1"]), [4], "with the directory");
        let apart = ["a", "a~", "d/b", "d/large", "e/only", "only"].map(|name| (format!("was/x/{name}.1"), "old"));
        let mut apart: Vec<(&str, &str)> = apart.iter().map(|(name, content)| (&name[..], *content)).collect();
        apart.push(("was/x/link.1", "-> old"));
        assert_eq!(held(&sandbox, place), both(&apart), "{to}");
        assert_eq!(sync(&["--backup-dir=was/x", "--suffix=.1"]), [0]);
        assert_eq!(held(&sandbox, place), both(&apart), "{to}");
    }
    for flags in [["--backup-dir=/abs", "-b"], ["--backup-dir=../up", "-b"], ["-b", "--suffix=a/b"]] {
        sandbox.run(["sync", "src/", "dst"].iter().chain(&flags)).failed_with(2, &["--"]);
    }
}

/// Nothing of the source goes where an old file is kept, and no old file takes the place of what the source has.
#[test]
fn source_has_no_item_where_old_files_are_kept() {
    let sandbox = Sandbox::new();
    for name in ["src/notes~", "src/a", "src/a~", "src/d~/f", "dst/notes", "dst/a"] {
        sandbox.write(name, name);
    }
    let ran = sandbox.run(["sync", "--delete", "-b", "src/", "dst"]);
    ran.failed_with(23, &["notes~", "a~", "old files are kept under such names"]);
    let now = [("a", "src/a"), ("a~", "dst/a"), ("d~/f", "src/d~/f"), ("notes", "dst/notes")];
    assert_eq!(held(&sandbox, "dst"), pairs(&now), "a directory is never kept, so that it may be called so");
    let ran = sandbox.run(["sync", "--backup-dir=a~", "src/", "fresh"]);
    ran.failed_with(23, &["a~"]);
    assert!(!sandbox.path("fresh/a~").exists() && sandbox.path("fresh/notes~").exists());
}

/// The second run keeps what the first has made, and what was kept before goes; each day may have its directory.
#[test]
fn what_was_kept_gives_way_to_what_is_kept_now() {
    let sandbox = Sandbox::new();
    for (content, day) in [("one", "mon"), ("two", "tue"), ("three", "wed"), ("four", "mon")] {
        sandbox.write("src/a", content);
        sandbox.ok(["sync", "--delete", "-b", "src/", "beside"]);
        sandbox.ok(["sync", "--delete", &format!("--backup-dir=old/{day}"), "src/", "apart"]);
    }
    assert_eq!(held(&sandbox, "beside"), pairs(&[("a", "four"), ("a~", "three")]));
    assert_eq!(
        held(&sandbox, "apart"),
        pairs(&[("a", "four"), ("old/mon/a", "three"), ("old/tue/a", "one"), ("old/wed/a", "two")])
    );
    // Whoever sends everything again keeps the same once more, as often as he likes.
    for _ in 0..12 {
        sandbox.ok(["copy", "-b", "src/", "beside"]);
    }
    assert_eq!(held(&sandbox, "beside"), pairs(&[("a", "four"), ("a~", "four")]));
    assert!(sandbox.parts("beside").is_empty() && sandbox.parts("apart").is_empty());
}

/// An earlier session of the same copy may have kept the old file already: both stay.
#[test]
fn old_file_that_an_interrupted_run_has_kept_stays() {
    let sandbox = Sandbox::new();
    sandbox.write("src/a", "new");
    sandbox.write("src/large", vec![7; 8 << 20]);
    sandbox.write("dst/a", "old");
    let mut command = sandbox.carrack();
    command.args(["copy", "-b", "--durable=each", "--bwlimit=2MB", "src/", "dst"]);
    let running = Running::start(&mut command);
    wait_until("the small file has its name", || fs::read(sandbox.path("dst/a")).is_ok_and(|held| held == b"new"));
    wait_until("a marker is there", || !sandbox.markers("dst").is_empty());
    signal(running.id(), "KILL");
    running.end();
    sandbox.write("src/a", "newer");
    sandbox.ok(["copy", "-b", "--durable=each", "src/", "dst"]);
    let kept: Vec<_> = held(&sandbox, "dst").into_iter().filter(|(name, _)| name.starts_with('a')).collect();
    assert_eq!(kept, pairs(&[("a", "newer"), ("a~", "old"), ("a~~", "new")]));
}

/// What cannot be kept is not replaced and not deleted.
#[test]
fn what_cannot_be_kept_stays() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("src/a", "new a");
    sandbox.write("dst/a", "old");
    sandbox.write("dst/only", "old");
    let _disk = Mounted::new(sandbox.path("dst/was"), "1m");
    let ran = sandbox.run(["sync", "--delete", "--ignore-errors", "--backup-dir=was", "src/", "dst"]);
    ran.failed_with(23, &["on another file system"]);
    assert_eq!(fs::read(sandbox.path("dst/a")).unwrap(), b"old");
    assert!(sandbox.path("dst/only").exists());
    // A directory in the place of the old file.
    fs::create_dir(sandbox.path("dst/a~")).unwrap();
    sandbox
        .run(["copy", "-b", "src/", "dst"])
        .failed_with(23, &["a directory stands where the old file is to be kept"]);
    assert_eq!(fs::read(sandbox.path("dst/a")).unwrap(), b"old");
}
