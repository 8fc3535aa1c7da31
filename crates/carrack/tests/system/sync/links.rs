//! Symbolic links of a source: copied, followed or left out as rsync does it, and never followed out of what a node or
//! an endpoint serves.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::numbers;
use super::oracle::shown;
use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{Ran, Sandbox, ran, same_tree};

const CANARY: &str = "nobody may read this";

/// `src` with a link of each kind, and what some of them lead to beside it.
fn grown(sandbox: &Sandbox, below: &str) {
    let at = |path: &str| sandbox.path(below).join(path);
    for (path, content) in [("src/f", "file"), ("src/d/g", "deep"), ("src/d/e/h", "deeper"), ("out/secret", CANARY)] {
        sandbox.write(at(path), content);
    }
    for (name, leads_to) in [
        ("to-file", "f"),
        ("to-directory", "d"),
        ("chain", "to-directory"),
        ("dangling", "none"),
        ("circle", "circle"),
        ("out", "../out/secret"),
        ("out-directory", "../out"),
        ("d/inside", "../f"),
        ("d/e/up", "../../d/g"),
        ("d/e/far", "../../../out/secret"),
    ] {
        symlink(leads_to, at("src").join(name)).unwrap();
    }
    symlink(at("out/secret"), at("src/absolute")).unwrap();
}

fn has_rsync() -> bool {
    let version = Command::new("rsync").arg("--version").output();
    let is_there = version.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("version 3.5."));
    if !is_there {
        println!("skipped: there is no rsync 3.5 to compare with");
    }
    is_there
}

fn rsync(sandbox: &Sandbox, words: &[&str]) -> Ran {
    ran(Command::new("rsync").arg("-rlpt").args(words).current_dir(sandbox.path("")).output_in_time().unwrap())
}

#[test]
fn links_are_copied_followed_and_left_out_as_by_rsync() {
    if !has_rsync() {
        return;
    }
    let sandbox = Sandbox::new();
    grown(&sandbox, "");
    let cases: [&[&str]; 9] = [
        &[],
        &["--links"],
        &["-L"],
        &["-k"],
        &["--copy-unsafe-links"],
        &["--safe-links"],
        &["-L", "--exclude=dangling", "--exclude=circle"],
        &["--copy-links", "--exclude=to-dir*/", "--exclude=/chain"],
        &["--copy-dirlinks", "--exclude=to-dir*/", "--max-size=4"],
    ];
    for flags in cases {
        for source in ["src/", "src"] {
            for to in ["rsync", "carrack"] {
                let _ = fs::remove_dir_all(sandbox.path(to));
            }
            let theirs = rsync(&sandbox, &[flags, &[source, "rsync"]].concat());
            let ours = sandbox.run([&["sync"], flags, &[source, "carrack"]].concat());
            assert_eq!(ours.code, theirs.code, "{flags:?} {source}: {}{}", ours.stderr, theirs.stderr);
            assert_eq!(shown(&sandbox.path("carrack")), shown(&sandbox.path("rsync")), "{flags:?} {source}");
            // Nothing differs any more, and a dry run says the same.
            let again = sandbox.run([&["sync", "-n", "--json"], flags, &[source, "carrack"]].concat());
            assert_eq!(numbers(&again, &["files"]), [0], "{flags:?} {source}");
        }
    }
}

/// What a link led to is not taken for something that only the destination has, nor is a link that is left out.
#[test]
fn names_of_links_are_not_deleted() {
    if !has_rsync() {
        return;
    }
    let sandbox = Sandbox::new();
    grown(&sandbox, "");
    for name in ["src/dangling", "src/circle"] {
        fs::remove_file(sandbox.path(name)).unwrap();
    }
    for flags in [&["-L"][..], &["-k"], &["--copy-unsafe-links"], &["--safe-links"]] {
        for to in ["rsync", "carrack"] {
            let _ = fs::remove_dir_all(sandbox.path(to));
            rsync(&sandbox, &[flags, &["src/", to]].concat());
            sandbox.write(format!("{to}/only"), "x");
            sandbox.write(format!("{to}/d/only/x"), "x");
            if !sandbox.path(to).join("absolute").exists() {
                sandbox.write(format!("{to}/absolute"), "of the destination");
            }
        }
        let theirs = rsync(&sandbox, &[flags, &["--delete-after", "src/", "rsync"]].concat());
        assert_eq!(theirs.code, 0, "{}", theirs.stderr);
        let ours = sandbox.ok([&["sync", "--delete", "--json"], flags, &["src/", "carrack"]].concat());
        assert_eq!(numbers(&ours, &["items_deleted"]), [3], "{flags:?}");
        assert_eq!(shown(&sandbox.path("carrack")), shown(&sandbox.path("rsync")), "{flags:?}");
    }
    // With a link that leads nowhere nothing is deleted: its name may be what the destination still has.
    symlink("none", sandbox.path("src/only")).unwrap();
    sandbox.write("carrack/only", "x");
    sandbox.run(["sync", "--delete", "-L", "src/", "carrack"]).failed_with(23, &["only: is a symbolic link to none"]);
    sandbox.run(["sync", "--delete", "--ignore-errors", "-L", "src/", "carrack"]).failed_with(23, &["none"]);
    assert!(sandbox.path("carrack/only").exists());
}

#[test]
fn links_that_are_left_out_are_counted_and_those_that_lead_nowhere_fail() {
    let sandbox = Sandbox::new();
    grown(&sandbox, "");
    let safe = sandbox.ok(["--safe-links", "src/", "safe", "--json"]);
    assert_eq!(numbers(&safe, &["links_skipped", "symlinks", "files_failed"]), [4, 7, 0]);
    let said = sandbox.ok(["--safe-links", "src/", "again"]).stderr;
    assert!(said.contains("left out: 4 symbolic links"), "{said}");
    let planned = sandbox.ok(["-n", "--safe-links", "src/", "never", "--json"]);
    assert_eq!(numbers(&planned, &["links_skipped"]), [4]);
    let followed = sandbox.run(["-L", "src/", "followed", "--json"]);
    followed.failed_with(23, &[]);
    assert_eq!(numbers(&followed, &["links_skipped", "symlinks", "files_failed"]), [0, 0, 2]);
    sandbox.run(["-L", "src/", "followed"]).failed_with(23, &["dangling: is a symbolic link to none", "in a circle"]);
    for flags in [["-L", "-k"], ["-L", "--safe-links"], ["-k", "--copy-unsafe-links"]] {
        sandbox.run(flags.iter().chain(&["src/", "never"])).failed_with(2, &["cannot be used with"]);
    }
    sandbox.run(["-K", "src/", "never"]).failed_with(2, &["no link below a destination is followed"]);
    assert!(!sandbox.path("never").exists());
}

/// A directory that stands in itself by a link ends, and everything else is copied.
#[test]
fn links_that_lead_round_end() {
    let sandbox = Sandbox::new();
    sandbox.write("src/d/f", "file");
    symlink(".", sandbox.path("src/here")).unwrap();
    symlink("../d", sandbox.path("src/d/round")).unwrap();
    symlink("../../src", sandbox.path("src/d/up")).unwrap();
    // Each leads to the other.
    for (from, to) in [("one", "two"), ("two", "one")] {
        fs::create_dir_all(sandbox.path(from)).unwrap();
        symlink(sandbox.path(to), sandbox.path(from).join("link")).unwrap();
    }
    symlink("../one", sandbox.path("src/between")).unwrap();
    let ran = sandbox.run(["-L", "--json", "src/", "dst"]);
    ran.failed_with(23, &[]);
    assert_eq!(numbers(&ran, &["files", "files_failed"]), [1, 4]);
    for name in ["here", "d/round", "d/up", "between/link/link"] {
        assert!(fs::symlink_metadata(sandbox.path("dst").join(name)).is_err(), "{name}");
    }
    assert!(sandbox.path("dst/between/link").is_dir());
    assert_eq!(fs::read_to_string(sandbox.path("dst/d/f")).unwrap(), "file");
}

/// Two names of one file are two files, and what was interrupted goes on.
#[test]
fn files_behind_links_are_known_again() {
    let sandbox = Sandbox::new();
    sandbox.write("src/d/large", vec![b'x'; 3 << 20]);
    symlink("d", sandbox.path("src/link")).unwrap();
    symlink("d/large", sandbox.path("src/other")).unwrap();
    let ran = sandbox.ok(["-L", "--json", "src/", "dst"]);
    assert_eq!(numbers(&ran, &["files", "bytes"]), [3, 9 << 20]);
    let again = sandbox.ok(["sync", "-L", "-c", "--json", "src/", "dst"]);
    assert_eq!(numbers(&again, &["files", "files_same"]), [0, 3]);
    // Another file behind the link is another content, whatever the time says.
    sandbox.write("src/d/small", "small");
    fs::remove_file(sandbox.path("src/other")).unwrap();
    symlink("d/small", sandbox.path("src/other")).unwrap();
    sandbox.ok(["sync", "-L", "src/", "dst"]);
    assert_eq!(fs::read(sandbox.path("dst/other")).unwrap(), b"small");
    assert!(fs::symlink_metadata(sandbox.path("dst/link")).unwrap().is_dir());
    same_tree(&sandbox.path("src/d"), &sandbox.path("dst/link"));
}

/// Below a node's root links lead anywhere; out of it none is followed, by whichever flag and in whichever direction.
#[test]
fn links_lead_nowhere_outside_a_node() {
    let sandbox = Sandbox::new();
    grown(&sandbox, "root");
    sandbox.write("outside/secret", CANARY);
    sandbox.write("root/beside/b", "beside");
    for (name, leads_to) in [("away", "../../outside/secret"), ("away-directory", "../../outside"), ("b", "../beside")]
    {
        symlink(leads_to, sandbox.path("root/src").join(name)).unwrap();
    }
    symlink(sandbox.path("outside"), sandbox.path("root/src/d/absolute")).unwrap();
    let node = Node::start(&sandbox, "root", &[]);
    fs::remove_dir_all(sandbox.path("root/out")).unwrap();
    for (flag, followed) in [("-L", true), ("-k", true), ("--copy-unsafe-links", true), ("--safe-links", false)] {
        let to = format!("got{flag}");
        let ran = sandbox.run([flag, &node.at("src/"), &to, &node.token(), "--json"]);
        assert_eq!(ran.code, if followed { 23 } else { 0 }, "{flag}: {}", ran.stderr);
        assert_eq!(sandbox.path(&to).join("b/b").exists(), followed, "{flag}");
        for (path, what) in shown(&sandbox.path(&to)) {
            assert!(!what.contains(CANARY) && !path.starts_with("away-directory/"), "{flag}: {path}");
        }
        let summary = ran.summary();
        let away = summary["failures"].as_array().unwrap().iter().filter(|one| one["code"] == "outside-root");
        let away: Vec<&str> = away.filter_map(|one| one["path"].as_str()).collect();
        assert_eq!(away.contains(&"away-directory"), followed, "{flag}: {away:?}");
        assert_eq!(away.contains(&"d/absolute"), followed, "{flag}: {away:?}");
    }
    let ran = sandbox.run(["-L", &node.at("src/"), "words", &node.token()]);
    ran.failed_with(23, &["away: is a symbolic link to ../../outside/secret, which leads outside what is served"]);
}
