//! The directory at the top of a destination: one that was there before keeps what says who may do what in it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use crate::fidelity::{ACCESS, list, set};
use crate::support::node::Node;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, is_root, tree};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn with_mode(sandbox: &Sandbox, name: &str, mode: u32) {
    fs::create_dir_all(sandbox.path(name)).unwrap();
    fs::set_permissions(sandbox.path(name), Permissions::from_mode(mode)).unwrap();
}

fn scene() -> Sandbox {
    let sandbox = Sandbox::new();
    for number in 0..20 {
        sandbox.write(format!("in/d/{number}"), tree::bytes(3000 + number, number as u64));
    }
    fs::set_permissions(sandbox.path("in"), Permissions::from_mode(0o750)).unwrap();
    sandbox
}

/// A dry run says what the copy does, and there is nothing left afterwards.
fn alike(sandbox: &Sandbox, words: &[&str], expected: &str) -> Ran {
    let told = sandbox.ok([words, &["-n", "-i"]].concat()).stdout;
    let of_top = told.lines().find(|line| line.ends_with(" ./")).unwrap_or_default();
    assert!(of_top.starts_with(expected), "{words:?}: {told}");
    assert!(!expected.is_empty() || !of_top.contains(['p', 'o', 'g', 'a']), "{words:?}: {told}");
    let ran = sandbox.ok(words.iter().copied());
    assert_eq!(sandbox.ok([words, &["-n", "-i"]].concat()).stdout, "", "{words:?}: nothing is left");
    ran
}

#[test]
fn destination_that_was_there_keeps_its_permissions_unless_others_are_asked_for() {
    let sandbox = scene();
    // A home that nobody else may see, and a directory that all may write to.
    for (verb, name, had) in [
        ("sync", "home", 0o700),
        ("copy", "shared", 0o1777),
        ("sync", "group", 0o2775),
        ("copy", "closed", 0o500),
        ("copy", "sticky", 0o1700),
    ] {
        with_mode(&sandbox, name, had);
        let ran = sandbox.ok([verb, "in/", name]);
        assert_eq!(mode(&sandbox.path(name)), had, "{name}: {}", ran.stderr);
        assert_eq!(mode(&sandbox.path(name).join("d")) & 0o777, 0o755);
        assert!(!ran.stderr.contains("not kept"), "{}", ran.stderr);
    }
    alike(&sandbox, &["sync", "in/", "home"], "");
    alike(&sandbox, &["sync", "--top-attributes", "in/", "home"], ".d...p....");
    assert_eq!(mode(&sandbox.path("home")), 0o750);
    // One that the copy makes is as its source, at once and from then on: its parents are as the umask has them.
    alike(&sandbox, &["sync", "in/", "new/er/est"], "cd+++++++");
    assert_eq!((mode(&sandbox.path("new/er/est")), mode(&sandbox.path("new/er"))), (0o750, 0o755));
    // Where a part is asked for, no source is like it.
    sandbox.write("list", "d/3\n");
    sandbox.ok(["--files-from=list", "in/", "part"]);
    assert_eq!(mode(&sandbox.path("part")), 0o755);
    // Also where the source is a private sticky directory itself.
    with_mode(&sandbox, "odd", 0o1700);
    sandbox.write("odd/f", "content");
    alike(&sandbox, &["sync", "-a", "odd/", "odd-copy"], "cd+++++++");
    assert_eq!(mode(&sandbox.path("odd-copy")), 0o1700);
    // Several sources have no top in common.
    sandbox.ok(["in/d", "list", "several/"]);
    assert_eq!(mode(&sandbox.path("several")), 0o755);
    with_mode(&sandbox, "group/of", 0o2770);
    sandbox.ok(["--files-from=list", "in/", "group/of/part"]);
    assert_eq!(mode(&sandbox.path("group/of/part")), 0o2755);
    // A directory above a file is none of the copy's.
    with_mode(&sandbox, "private", 0o1700);
    sandbox.ok(["copy", "list", "private/file"]);
    assert_eq!(mode(&sandbox.path("private")), 0o1700);
    // At a node, too.
    let node = Node::start(&sandbox, "served", &[]);
    with_mode(&sandbox, "served/there", 0o711);
    for (name, expected) in [("there", 0o711), ("made", 0o750)] {
        sandbox.ok(["sync", "in/", &node.at(name), &node.token()]);
        assert_eq!(mode(&sandbox.path("served").join(name)), expected);
    }
}

/// Nobody else comes in before the directory has the permissions of its source, and one that a killed copy has made
/// gets them from the next.
#[test]
fn destination_that_a_killed_copy_made_is_its_copy_all_the_same() {
    let sandbox = scene();
    let running = Running::start(sandbox.carrack().args(["sync", "--bwlimit=20k", "in/", "out"]));
    crate::support::wait_until("the directory is there", || sandbox.path("out/d").exists());
    assert_eq!(mode(&sandbox.path("out")) & 0o777, 0o700);
    crate::support::process::signal(running.id(), "KILL");
    running.end();
    sandbox.ok(["sync", "in/", "out"]);
    assert_eq!(mode(&sandbox.path("out")), 0o750);
    // Changed by hand it stays so.
    fs::set_permissions(sandbox.path("out"), Permissions::from_mode(0o705)).unwrap();
    sandbox.ok(["sync", "in/", "out"]);
    assert_eq!(mode(&sandbox.path("out")), 0o705);
}

#[test]
fn destination_that_was_there_keeps_its_owner_and_list() {
    if !is_root() {
        return;
    }
    let sandbox = scene();
    chown(sandbox.path("in"), Some(1234), Some(2345)).unwrap();
    set(&sandbox.path("in"), ACCESS, &list([7, 5, 5, 5, 0], 4321));
    with_mode(&sandbox, "out", 0o2770);
    chown(sandbox.path("out"), Some(77), Some(88)).unwrap();
    set(&sandbox.path("out"), ACCESS, &list([7, 7, 7, 7, 0], 99));
    let state = |name: &str| {
        let stat = fs::metadata(sandbox.path(name)).unwrap();
        let code = "import os,sys; sys.stdout.write(os.getxattr(sys.argv[1], sys.argv[2]).hex())";
        let read = Command::new("python3").args(["-c", code]).arg(sandbox.path(name)).arg(ACCESS).output().unwrap();
        (stat.uid(), stat.gid(), stat.mode() & 0o7777, String::from_utf8(read.stdout).unwrap())
    };
    let before = state("out");
    alike(&sandbox, &["sync", "-aX", "in/", "out"], "");
    assert_eq!(state("out"), before);
    alike(&sandbox, &["sync", "-aX", "--top-attributes", "in/", "out"], ".d...pog");
    assert_eq!(state("out"), state("in"));
}
