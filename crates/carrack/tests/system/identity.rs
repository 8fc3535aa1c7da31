//! What an earlier attempt left is used only if both the source and what was left are what they were. Whatever has been
//! exchanged, altered, mounted or moved meanwhile: what a name gets is what its source has.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use carrack_faults::fuse::{FaultFs, Features};
use carrack_faults::image::{Image, Kind, Overlay};
use carrack_faults::proxy::Proxy;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
use crate::support::{PORTABLE, Sandbox, is_root, ran, same_tree, tool, tree, wait_until};

const MIB: usize = 1 << 20;
/// Slow enough to be stopped in its midst. Where blocks may be shared, offers are answered in any order, and so sent.
const SLOW: [&str; 4] = ["--bwlimit=12M", "--streams=2", "--retries=0", "--reflink=never"];
const BLOCK: &str = "--block=256K";

/// Waits until a file's change time is so old that a session that begins now takes it for settled.
fn wait_until_settled(path: &Path) {
    let changed = fs::metadata(path).unwrap().ctime();
    wait_until("the change time is old", || carrack_sys::host::clock_seconds() > changed + 3);
}

/// Starts a copy, and stops it by a signal as soon as something is so.
fn interrupt(command: &mut Command, how: &str, what: &str, so: impl FnMut() -> bool) {
    let running = Running::start(command.args(SLOW));
    wait_until(what, so);
    signal(running.id(), how);
    assert_ne!(running.end().code, 0, "it was done before it was to be stopped");
}

/// What is still on its way when the rest has come.
fn tail(sandbox: &Sandbox, tree: &str) {
    sandbox.write(format!("{tree}/b/tail"), tree::bytes(40 * MIB, 3));
}

/// A small and a large file, and another directory with other content of the same sizes and times.
fn twins(sandbox: &Sandbox, one: &str, other: &str) {
    for (name, size) in [("small", 3000), ("large", 3 * MIB)] {
        let first = sandbox.write(format!("{one}/{name}"), tree::bytes(size, 1));
        let second = sandbox.write(format!("{other}/{name}"), tree::bytes(size, 2));
        let time = fs::metadata(first).unwrap().modified().unwrap();
        File::options().write(true).open(second).unwrap().set_modified(time).unwrap();
    }
}

fn holds_data_at(path: &Path, offset: u64) -> bool {
    let mut found = [0; 4096];
    File::open(path).is_ok_and(|file| file.read_exact_at(&mut found, offset).is_ok()) && found != [0; 4096]
}

/// Whether the part file in a directory has come so far.
fn has_come(sandbox: &Sandbox, below: &str, offset: usize) -> bool {
    sandbox.parts(below).iter().any(|part| holds_data_at(part, offset as u64))
}

/// Both files of [`twins`] have their names, and some of what follows them has come.
fn are_there<'a>(sandbox: &'a Sandbox, to: &'a str) -> impl FnMut() -> bool + 'a {
    let named = move |name: &str| sandbox.path(to).join("a").join(name).exists();
    move || named("small") && named("large") && has_come(sandbox, to, 3 * MIB)
}

#[test]
fn directories_exchanged_between_two_attempts_are_noticed() {
    for digest in ["--digest=blake3", "--digest=xxh128"] {
        let sandbox = Sandbox::new();
        tail(&sandbox, "tree");
        twins(&sandbox, "tree/a", "spare");
        wait_until_settled(&sandbox.path("spare/large"));
        let command = ["--json", BLOCK, digest, "tree/a", "tree/b", "to/"];
        interrupt(sandbox.carrack().args(command), "TERM", "a is there", are_there(&sandbox, "to"));
        fs::rename(sandbox.path("tree/a"), sandbox.path("gone")).unwrap();
        fs::rename(sandbox.path("spare"), sandbox.path("tree/a")).unwrap();
        let summary = sandbox.ok(command).summary();
        same_tree(&sandbox.path("tree"), &sandbox.path("to"));
        assert_eq!(summary["files_resumed"], 0, "{summary}");
        assert!(summary["bytes_resumed"].as_u64() > Some(0), "{summary}");
    }
}

/// The first attempt may have been asked for others.
#[test]
fn published_file_gets_the_permissions_that_the_next_attempt_is_asked_for() {
    let sandbox = Sandbox::new();
    tail(&sandbox, "tree");
    twins(&sandbox, "tree/a", "spare");
    wait_until_settled(&sandbox.path("spare/large"));
    for verify in ["wire", "disk"] {
        let (flag, to) = (format!("--verify={verify}"), format!("to-{verify}"));
        let command = |mode| ["--json", BLOCK, &flag, "--chmod", mode, "tree/a", "tree/b", &to];
        interrupt(sandbox.carrack().args(command("F600")), "TERM", "a is there", are_there(&sandbox, &to));
        let summary = sandbox.ok(command("F640")).summary();
        assert_eq!(summary["files_resumed"], 2, "{verify}: {summary}");
        for name in ["a/small", "a/large", "b/tail"] {
            let mode = fs::metadata(sandbox.path(&to).join(name)).unwrap().mode();
            assert_eq!(mode & 0o7777, 0o640, "{verify} {name}");
        }
    }
}

#[test]
fn published_file_that_is_the_same_is_not_sent_again() {
    let sandbox = Sandbox::new();
    tail(&sandbox, "tree");
    twins(&sandbox, "tree/a", "spare");
    std::os::unix::fs::symlink("small", sandbox.path("tree/a/link")).unwrap();
    wait_until_settled(&sandbox.path("spare/large"));
    for verify in ["wire", "disk", "none"] {
        let (flag, to) = (format!("--verify={verify}"), format!("to-{verify}"));
        let command = ["--json", BLOCK, &flag, "tree/a", "tree/b", &to];
        interrupt(sandbox.carrack().args(command), "TERM", "a is there", are_there(&sandbox, &to));
        let summary = sandbox.ok(command).summary();
        same_tree(&sandbox.path("tree"), &sandbox.path(&to));
        let known = summary["files_resumed"].as_u64().unwrap();
        // What was verified by nothing cannot be compared with anything.
        assert!(if verify == "none" { known == 0 } else { known == 3 }, "{verify}: {summary}");
        assert_eq!((&summary["files_not_read_back"], &summary["parts_reread"]), (&0.into(), &0.into()), "{verify}");
    }
}

#[test]
fn file_system_mounted_in_place_of_another_is_noticed() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    twins(&sandbox, "one", "two");
    tail(&sandbox, "tree");
    fs::create_dir(sandbox.path("tree/a")).unwrap();
    wait_until_settled(&sandbox.path("tree/b/tail"));
    // In a mount namespace that goes with the command.
    let with = |what: &str, command: &Command| {
        let mut mounted = Command::new("unshare");
        mounted.current_dir(sandbox.path(".")).env_clear();
        mounted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        mounted.args(["-m", "sh", "-c", "mount --bind \"$0\" tree/a && exec \"$@\"", what]);
        mounted.arg(command.get_program()).args(command.get_args());
        mounted
    };
    let mut command = sandbox.carrack();
    command.args(["--json", BLOCK, "tree/a", "tree/b", "to/"]);
    interrupt(&mut with("one", &command), "TERM", "a is there", are_there(&sandbox, "to"));
    let done = ran(with("two", &command).output_in_time().unwrap());
    assert_eq!((done.code, &done.summary()["files_resumed"]), (0, &0.into()), "{}", done.stderr);
    same_tree(&sandbox.path("two"), &sandbox.path("to/a"));
    // Another namespace, the same copy: it goes on.
    assert!(done.summary()["bytes_resumed"].as_u64() > Some(0), "{}", done.stdout);
}

#[test]
fn another_node_at_the_same_address_is_another_source() {
    let sandbox = Sandbox::new();
    ["one/tree", "two/tree"].iter().for_each(|tree| tail(&sandbox, tree));
    twins(&sandbox, "one/tree/a", "two/tree/a");
    wait_until_settled(&sandbox.path("two/tree/a/large"));
    let nodes = ["one", "two"].map(|root| Node::start(&sandbox, root, &[]));
    let proxy = Proxy::start(nodes[0].address.parse().unwrap());
    let command = |node: &Node| {
        let mut command = sandbox.carrack();
        let at = |path| format!("carrack://{}/{path}", proxy.address());
        command.args(["--json", BLOCK, &node.token(), &at("tree/a"), &at("tree/b"), "to/"]);
        command
    };
    interrupt(&mut command(&nodes[0]), "TERM", "a is there", are_there(&sandbox, "to"));
    proxy.retarget(nodes[1].address.parse().unwrap());
    // Its user has been told, and takes the new key.
    fs::remove_dir_all(sandbox.path("home")).unwrap();
    fs::create_dir(sandbox.path("home")).unwrap();
    let done = ran(command(&nodes[1]).output_in_time().unwrap());
    assert_eq!((done.code, &done.summary()["files_resumed"]), (0, &0.into()), "{}", done.stderr);
    same_tree(&sandbox.path("two/tree/a"), &sandbox.path("to/a"));
}

#[test]
fn part_file_altered_between_two_attempts_is_read_again() {
    let sandbox = Sandbox::new();
    sandbox.write("f", tree::bytes(96 * MIB, 1));
    for way in ["TERM", "KILL"] {
        let command = ["--json", BLOCK, "f", &format!("{way}/")];
        // More than the bytes that are asserted below, and the block that is altered.
        let are_claimed = || {
            let claims: Vec<_> = sandbox.marked(way).into_iter().flat_map(|marker| marker.parts).collect();
            claims.iter().any(|(_, left)| left.claims().len() > 8 && left.claims()[0].index == 0)
        };
        interrupt(sandbox.carrack().args(command), way, "some of it is claimed", are_claimed);
        let part = sandbox.parts(way).remove(0);
        let file = File::options().read(true).write(true).open(part).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 100).unwrap();
        file.write_all_at(&[!byte[0]], 100).unwrap();
        let summary = sandbox.ok(command).summary();
        assert_eq!(summary["parts_reread"], 1, "{summary}");
        assert!(summary["bytes_reread"].as_u64() > Some(MIB as u64), "{summary}");
        assert!(summary["bytes_resumed"].as_u64() > Some(MIB as u64), "{summary}");
        assert!(fs::read(sandbox.path("f")).unwrap() == fs::read(sandbox.path(format!("{way}/f"))).unwrap(), "{way}");
    }
}

#[test]
fn part_of_an_older_source_costs_what_has_changed() {
    let sandbox = Sandbox::new();
    let source = sandbox.write("f", tree::bytes(32 * MIB, 1));
    let command = ["--json", BLOCK, "f", "to/"];
    interrupt(sandbox.carrack().args(command), "TERM", "some of it is there", || has_come(&sandbox, "to", 14 * MIB));
    File::options().write(true).open(&source).unwrap().write_all_at(b"changed", MIB as u64).unwrap();
    let summary = sandbox.ok(command).summary();
    assert!(summary["bytes_resumed"].as_u64() > Some(4 * MIB as u64), "{summary}");
    assert!(fs::read(source).unwrap() == fs::read(sandbox.path("to/f")).unwrap());
}

/// Another program copies the destination while it is being written, and the copy is gone on with.
#[test]
fn destination_that_was_copied_meanwhile_is_not_believed() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/f", tree::bytes(40 * MIB, 1));
    fs::create_dir(sandbox.path("other")).unwrap();
    let markers = || sandbox.markers("to");
    let copy = |from: &Path| {
        tool(Command::new("cp").arg("-a").arg(from).arg(sandbox.path("other/")));
    };
    let mut length = 0;
    interrupt(sandbox.carrack().args([BLOCK, "tree/", "to"]), "TERM", "more is claimed than was copied", || {
        let now = markers().first().and_then(|marker| fs::metadata(marker).ok()).map_or(0, |marker| marker.len());
        if length == 0 && has_come(&sandbox, "to", 4 * MIB) {
            copy(&sandbox.parts("to")[0]);
            length = now;
        }
        length > 0 && now > length + 400
    });
    copy(&markers()[0]);
    let summary = sandbox.ok(["--json", BLOCK, "tree/", "other"]).summary();
    assert_eq!(summary["parts_reread"], 1, "{summary}");
    same_tree(&sandbox.path("tree"), &sandbox.path("other"));
}

/// Nothing there can be read past the cache: nobody is told that storage gave it back.
#[test]
fn page_cache_is_not_called_read_back_from_storage() {
    let sandbox = Sandbox::in_memory();
    if !sandbox.path(".").starts_with("/dev/shm") {
        return;
    }
    sandbox.write("tree/small", "small");
    sandbox.write("tree/large", tree::bytes(2 * MIB, 1));
    let done = sandbox.ok(["--verify=disk", "tree/", "to"]);
    assert!(done.stderr.contains("storage gave it back but for 2 files"), "{}", done.stderr);
    let summary = sandbox.ok(["--json", "--verify=disk", "tree/", "again"]).summary();
    assert_eq!(summary["files_not_read_back"], 2, "{summary}");
    let summary = sandbox.ok(["--json", "tree/", "wire"]).summary();
    assert_eq!(summary["files_not_read_back"], 0, "{summary}");
}

/// A source whose attributes this system keeps, as those of NFS and SMB, and its backing directory, where
/// another client changes files.
fn remembered(sandbox: &Sandbox) -> Option<FaultFs> {
    if !carrack_faults::can_mount("a FUSE file system") {
        return None;
    }
    fs::create_dir_all(sandbox.path("disk")).unwrap();
    let features = Features { keeps_attributes: true, uncached: true, ..Features::default() };
    Some(FaultFs::mount(&sandbox.path("stored"), &sandbox.path("disk"), features).unwrap())
}

/// Gives a file other content of the same size, and the modification time that it had, without the knowledge
/// of whoever has it mounted.
fn change_behind(sandbox: &Sandbox, name: &str) {
    let (stored, seen) = (sandbox.path("stored").join(name), sandbox.path("disk").join(name));
    let before = fs::metadata(&stored).unwrap();
    let changed: Vec<u8> = fs::read(&stored).unwrap().iter().map(|byte| byte ^ 0x55).collect();
    // In place: it is never shorter, not even for a moment.
    let file = File::options().write(true).open(&stored).unwrap();
    file.write_all_at(&changed, 0).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    let ctime = |path: &Path| fs::metadata(path).map(|meta| (meta.ctime(), meta.ctime_nsec())).unwrap();
    let was = (before.ctime(), before.ctime_nsec());
    assert!(ctime(&stored) != was && ctime(&seen) == was, "{name}: the change must not be seen yet");
}

#[test]
fn source_that_another_client_changes_while_it_is_read_is_noticed() {
    // Nothing but `statx` asks past what this system remembers.
    if PORTABLE {
        return;
    }
    let sandbox = Sandbox::new();
    let stored = sandbox.write("stored/file", tree::bytes(16 * MIB, 1));
    wait_until_settled(&stored);
    let Some(_disk) = remembered(&sandbox) else { return };
    let running = Running::start(sandbox.carrack().args(["--json", BLOCK, "disk/", "to/"]).args(SLOW));
    wait_until("some has come", || has_come(&sandbox, "to", MIB));
    change_behind(&sandbox, "file");
    let ran = running.end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    same_tree(&sandbox.path("stored"), &sandbox.path("to"));
    assert_eq!(ran.summary()["faults"]["items_again"], 1, "{}", ran.stdout);
}

#[test]
fn source_that_another_client_changed_between_two_attempts_is_noticed() {
    // Nothing but `statx` asks past what this system remembers.
    if PORTABLE {
        return;
    }
    let sandbox = Sandbox::new();
    twins(&sandbox, "stored/a", "spare");
    tail(&sandbox, "stored");
    for name in ["small", "large"] {
        // That a file system of this kind has a change time shows only where it differs from the modification time.
        let file = File::options().write(true).open(sandbox.path("stored/a").join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).unwrap();
    }
    wait_until_settled(&sandbox.path("stored/a/large"));
    let Some(_disk) = remembered(&sandbox) else { return };
    for (to, known) in [("same", 2), ("changed", 0)] {
        let command = ["--json", BLOCK, "disk/a", "disk/b", to];
        interrupt(sandbox.carrack().args(command), "TERM", "a is there", are_there(&sandbox, to));
        if to == "changed" {
            change_behind(&sandbox, "a/small");
            change_behind(&sandbox, "a/large");
        }
        let summary = sandbox.ok(command).summary();
        same_tree(&sandbox.path("stored"), &sandbox.path(to));
        assert_eq!(summary["files_resumed"], known, "{summary}");
    }
}

/// A layer that keeps no times of change, below an overlay whose own file system does.
#[test]
fn layer_of_an_overlay_that_does_not_show_changes_is_not_believed() {
    let sandbox = Sandbox::new();
    let Some(disk) = Image::new(&sandbox.path("."), "disk", Kind::Ext4, 32) else { return };
    twins(&sandbox, "stored/a", "spare");
    tail(&sandbox, "stored");
    wait_until_settled(&sandbox.path("stored/b/tail"));
    fs::create_dir(sandbox.path("lower")).unwrap();
    let features = Features { no_change_times: true, ..Features::default() };
    let lower = FaultFs::mount(&sandbox.path("stored"), &sandbox.path("lower"), features).unwrap();
    let overlay = || Overlay::new(lower.path(), disk.path(), &sandbox.path("tree"));
    let command = ["--json", BLOCK, "tree/a", "tree/b", "to/"];
    let Some(before) = overlay() else { return };
    interrupt(sandbox.carrack().args(command), "TERM", "a is there", are_there(&sandbox, "to"));
    drop(before);
    for name in ["small", "large"] {
        let (stored, spare) = (sandbox.path("stored/a").join(name), sandbox.path("spare").join(name));
        let time = fs::metadata(&stored).unwrap().modified().unwrap();
        fs::write(&stored, fs::read(spare).unwrap()).unwrap();
        File::options().write(true).open(&stored).unwrap().set_modified(time).unwrap();
    }
    let _after = overlay().unwrap();
    let summary = sandbox.ok(command).summary();
    same_tree(&sandbox.path("stored"), &sandbox.path("to"));
    assert_eq!(summary["files_resumed"], 0, "{summary}");
}

/// As in a container: what its image brought, and what was written in it.
#[test]
fn files_of_an_overlay_on_a_disk_are_known_again() {
    // A file of an overlay is known again by when it was made, which only `statx` tells.
    if PORTABLE {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(disk) = Image::new(&sandbox.path("."), "disk", Kind::Ext4, 160) else { return };
    twins(&sandbox, "disk/lower/a", "spare");
    tail(&sandbox, "disk/lower");
    let Some(_overlay) = Overlay::new(&disk.path().join("lower"), &disk.path().join("upper"), &sandbox.path("tree"))
    else {
        return;
    };
    wait_until_settled(&sandbox.write("tree/a/new", "written in the container"));
    for to in ["to", "tree/to"] {
        let command = ["--json", BLOCK, "tree/a", "tree/b", to];
        let mut are_there = are_there(&sandbox, to);
        interrupt(sandbox.carrack().args(command), "TERM", "a is there", || {
            are_there() && sandbox.path(to).join("a/new").exists()
        });
        let summary = sandbox.ok(command).summary();
        same_tree(&sandbox.path("tree/a"), &sandbox.path(to).join("a"));
        same_tree(&sandbox.path("tree/b"), &sandbox.path(to).join("b"));
        assert_eq!((&summary["files_resumed"], &summary["parts_reread"]), (&3.into(), &0.into()), "{summary}");
    }
}
