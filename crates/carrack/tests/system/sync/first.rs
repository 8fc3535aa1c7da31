//! `--delete-before`: what only the destination has goes before anything is sent, where there is no room for both.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::numbers;
use crate::faults::{Mounted, NOBODY, open_to_all, under};
use crate::support::node::Node;
use crate::support::{Sandbox, is_root};

const LARGE: usize = 3 << 20;

/// A file system of 4 MiB has one large file or the other. Deleting last, the run says what would help.
#[test]
fn room_is_made_before_anything_is_sent() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("src/new", vec![7; LARGE]);
    sandbox.write("src/d/small", "x");
    let disk = Mounted::new(sandbox.path("dst"), "4m");
    fs::write(disk.0.join("old"), vec![8; LARGE]).unwrap();
    let ran = sandbox.run(["sync", "--delete", "src/", "dst"]);
    ran.failed_with(23, &["nothing was deleted", "3.0 MiB", "--delete-before"]);
    assert!(disk.0.join("old").exists() && !disk.0.join("new").exists());
    for verb in ["-n", "-q"] {
        let ran = sandbox.ok(["sync", verb, "--delete-before", "--json", "src/", "dst"]);
        let told = ["files", "items_deleted", "items_only_there", "files_failed"];
        let expected = if verb == "-n" { [1, 0, 1, 0] } else { [1, 1, 0, 0] };
        assert_eq!(numbers(&ran, &told), expected);
    }
    assert!(!disk.0.join("old").exists());
    assert_eq!(fs::read(disk.0.join("new")).unwrap(), vec![7; LARGE]);
    // rsync's other words for it, at a node, and by both ends' filters.
    let node = Node::start(&sandbox, "root", &[]);
    for (number, flag) in ["--delete-during", "--del", "--delete-before"].into_iter().enumerate() {
        for name in ["only/a", "only/b", "kept.tmp", "d/only"] {
            sandbox.write(format!("root/to{number}/{name}"), "old");
        }
        let to = node.at(&format!("to{number}"));
        let ran = sandbox.ok(["sync", "--json", flag, "--exclude", "*.tmp", "src/", &to, &node.token()]);
        assert_eq!(numbers(&ran, &["files", "items_deleted", "items_only_there"]), [2, 4, 0], "{flag}");
        assert!(sandbox.path(format!("root/to{number}/kept.tmp")).exists());
    }
}

/// More than the source is asked about at once.
#[test]
fn many_items_are_deleted_before_anything_is_sent() {
    let sandbox = Sandbox::new();
    sandbox.write("src/new", "x");
    for number in 0..2500 {
        sandbox.write(format!("dst/d{}/only{number}", number % 7), "x");
    }
    let ran = sandbox.ok(["sync", "--delete-before", "--json", "src/", "dst"]);
    assert_eq!(numbers(&ran, &["files", "items_deleted"]), [1, 2507]);
}

/// An error of listing, a number that is exceeded, and an empty source keep all of it, as ever; what cannot be sent
/// does not.
#[test]
fn what_speaks_against_a_deletion_is_known_before_it() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("src/a", "x");
    sandbox.write("src/shut/b", "x");
    sandbox.write("dst/only", "x");
    sandbox.write("dst/more", "x");
    open_to_all(&sandbox);
    fs::set_permissions(sandbox.path("dst"), Permissions::from_mode(0o777)).unwrap();
    let sync = |more: &[&str]| {
        let words = [&["sync", "--json", "--delete-before", "src/", "dst"], more].concat();
        under(&sandbox, &NOBODY, &words)
    };
    let shut = |name: &str, shut: bool| {
        let mode = if shut { 0o000 } else { 0o777 };
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(mode)).unwrap();
    };
    shut("src/shut", true);
    let ran = sync(&[]);
    assert_eq!((ran.code, sandbox.path("dst/only").exists()), (23, true), "{}", ran.stderr);
    shut("src/shut", false);
    assert_eq!(sync(&["--max-delete", "1"]).code, 25);
    assert!(sandbox.path("dst/only").exists() && sandbox.path("dst/more").exists());
    sandbox.write("src/a", "changed");
    shut("src/a", true);
    let ran = sync(&[]);
    assert_eq!((ran.code, sandbox.path("dst/only").exists()), (23, false), "{}", ran.stderr);
    assert_eq!(numbers(&ran, &["files_failed", "items_deleted"]), [1, 2]);
    fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.run(["sync", "--delete-before", "empty/", "dst"]).failed_with(23, &["source is empty"]);
}

/// A directory that only the destination has, and that cannot be read, is told, also where nothing else is to go.
#[test]
fn directory_that_cannot_be_looked_at_is_told_where_nothing_else_is_deleted() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("src/a", "x");
    sandbox.write("dst/shut/only", "x");
    open_to_all(&sandbox);
    fs::set_permissions(sandbox.path("dst"), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(sandbox.path("dst/shut"), Permissions::from_mode(0o000)).unwrap();
    for order in ["--delete", "--delete-before"] {
        let ran = under(&sandbox, &NOBODY, &["sync", order, "src/", "dst"]);
        ran.failed_with(23, &["shut: list", "nothing was deleted"]);
        assert!(sandbox.path("dst/shut/only").exists());
    }
}
