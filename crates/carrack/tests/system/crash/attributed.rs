//! A sync that keeps owners, lists, values and names of one file, killed at every system call that gives something.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use carrack_faults::strace::Inject;
use carrack_faults::watch::Watcher;

use super::{allowed, assert_complete, places, points, small_tree, spread};
use crate::fidelity::{ACCESS, DEFAULT, judged, list, set};
use crate::support::running::InTime;
use crate::support::{Sandbox, is_root, ran};

const CALLS: [&str; 10] = [
    "fsetxattr",
    "fremovexattr",
    "fchown",
    "fchmod",
    "utimensat",
    "linkat",
    "renameat",
    "renameat2",
    "fdatasync",
    "syncfs",
];

fn command(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.carrack();
    command.args(["sync", "-aX", "--top-attributes", "--block=1M", "--streams=2", "tree/", "root/to"]);
    command
}

/// Each kind of attribute, of small files, large ones and directories.
fn give(sandbox: &Sandbox) {
    let at = |name: &str| sandbox.path("tree").join(name);
    for (name, mode) in [("d0/small0", 0o4755), ("d1/larger", 0o640), ("d1", 0o2750), ("d0/small2", 0o400)] {
        chown(at(name), Some(1234), Some(2345)).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    }
    for name in ["large", "d0/small4", "d0"] {
        set(&at(name), ACCESS, &list([7, 0, 4, 7, 4], 1000));
        set(&at(name), "user.x", b"value");
    }
    set(&at("d0"), DEFAULT, &list([7, 6, 4, 7, 0], 1000));
    set(&at("d1/small1"), "security.capability", &[&[1, 0, 0, 2, 1][..], &[0; 15]].concat());
    for (first, name) in [("large", "d0/large2"), ("d0/small0", "d1/small0-too"), ("d0/small0", "d1/small0-three")] {
        fs::hard_link(at(first), at(name)).unwrap();
    }
}

/// What stands there: some of it the same but for its attributes, which it has others of.
fn prepare(sandbox: &Sandbox) -> Watcher {
    let _ = fs::remove_dir_all(sandbox.path("root"));
    fs::create_dir(sandbox.path("root")).unwrap();
    sandbox.ok(["sync", "tree/d0", "tree/d1", "root/to"]);
    sandbox.write("root/to/large", "old");
    for name in ["d0/small4", "d0/small6", "d1/small3", "d1"] {
        set(&sandbox.path("root/to").join(name), ACCESS, &list([7, 7, 7, 7, 7], 99));
        set(&sandbox.path("root/to").join(name), "user.y", b"other");
    }
    set(&sandbox.path("root/to"), DEFAULT, &list([7, 7, 7, 7, 7], 99));
    Watcher::start(&sandbox.path("root/to"), allowed(&sandbox.path("tree"), &[("large", b"old")]))
}

#[test]
fn kill_sweep_of_a_sync_that_keeps_attributes() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    small_tree(&sandbox);
    give(&sandbox);
    prepare(&sandbox).end();
    let all = places(&sandbox, &command(&sandbox), &CALLS);
    for call in ["fsetxattr", "fremovexattr", "fchown", "linkat"] {
        assert!(all.iter().any(|(found, _)| found == call), "{call}: {all:?}");
    }
    for place in spread(all.len() as u64, points(12)) {
        let (call, nth) = &all[place as usize - 1];
        let what = format!("killed at {call} {nth}");
        let watcher = prepare(&sandbox);
        let killed = ran(Inject::new().kill(call, *nth).around(&command(&sandbox)).output_in_time().unwrap());
        let again = ran(command(&sandbox).output_in_time().unwrap());
        assert_eq!(again.code, 0, "{what} ({}): {}", killed.code, again.stderr);
        assert_eq!(watcher.end().violations, Vec::<String>::new(), "{what}");
        assert_complete(&sandbox.path("tree"), &sandbox.path("root/to"));
        assert_eq!(judged(&sandbox.path("tree"), &sandbox.path("root/to"), ""), "", "{what}");
    }
}

/// What stands there changes hands: between two calls nobody may do what the old permissions gave to somebody else.
#[test]
fn sync_that_is_killed_gives_no_old_permissions_to_a_new_owner_or_group() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::in_memory();
    let at = |top: &str, name: &str| sandbox.path(top).join(name);
    let make = |top: &str, (owner, group): (u32, u32), modes: [u32; 2]| {
        let _ = fs::remove_dir_all(sandbox.path(top));
        fs::create_dir_all(at(top, "d")).unwrap();
        fs::write(at(top, "f"), "content").unwrap();
        for (name, mode) in ["f", "d"].iter().zip(modes) {
            chown(at(top, name), Some(owner), Some(group)).unwrap();
            fs::set_permissions(at(top, name), Permissions::from_mode(mode)).unwrap();
        }
        let time = fs::File::options().write(true).open(at(top, "f")).unwrap();
        time.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(7)).unwrap();
    };
    let command = || {
        let mut command = sandbox.carrack();
        command.args(["sync", "-a", "tree/", "to"]);
        command
    };
    for (had, old, has, new) in [
        ((1234, 99), [0o660, 0o2770], (1234, 2345), [0o600, 0o700]),
        ((99, 2345), [0o640, 0o750], (1234, 2345), [0o440, 0o550]),
    ] {
        make("tree", has, new);
        let prepare = || {
            make("to", had, old);
            set(&at("to", "f"), ACCESS, &list([6, 6, 4, 6, 0], 77));
        };
        prepare();
        let all = places(&sandbox, &command(), &["fsetxattr", "fremovexattr", "fchown", "fchmod"]);
        assert!(all.iter().any(|(found, _)| found == "fchown"), "{all:?}");
        for (call, nth) in &all {
            prepare();
            ran(Inject::new().kill(call, *nth).around(&command()).output_in_time().unwrap());
            for (name, new) in ["f", "d"].iter().zip(new) {
                let now = fs::metadata(at("to", name)).unwrap();
                let (is_new, mode) = ((now.uid(), now.gid()) == has && has != had, now.mode() & 0o777);
                assert!(
                    !is_new || mode & !new == 0,
                    "killed at {call} {nth}: {name} has {mode:o}, and is to have {new:o}"
                );
            }
            assert_eq!(ran(command().output_in_time().unwrap()).code, 0);
            assert_eq!(judged(&sandbox.path("tree"), &sandbox.path("to"), ""), "", "{call} {nth}");
        }
    }
}
