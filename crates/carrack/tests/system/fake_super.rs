//! Backups by who may not set owners: what items are is written down beside them, in rsync's form, and comes back.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use crate::faults::{NOBODY, open_to_all, under};
use crate::fidelity::{Unmounted, judged};
use crate::support::node::Node;
use crate::support::running::Running;
use crate::support::{Sandbox, is_root, tree};

/// A tree of many owners, with programs, devices and FIFOs.
fn scene() -> Option<Sandbox> {
    if !is_root() {
        return None;
    }
    let sandbox = Sandbox::new();
    for (number, name) in ["own", "d/program", "d/group", "d/closed"].iter().enumerate() {
        sandbox.write(format!("in/{name}"), tree::bytes(2000 + number, number as u64));
    }
    sandbox.write("in/large", tree::bytes(3 << 20, 9));
    sandbox.write("in/empty", "");
    let at = |name: &str| sandbox.path("in").join(name);
    for (name, words) in [("null", &["c", "1", "3"][..]), ("disk", &["b", "8", "1"]), ("fifo", &["p"])] {
        assert!(Command::new("mknod").arg(at(name)).args(words).status().unwrap().success());
    }
    symlink("own", at("link")).unwrap();
    // Whoever writes the backup has it: beside a link nothing can be written down.
    lchown(at("link"), Some(65534), Some(65534)).unwrap();
    for (name, owner, group, mode) in [
        ("own", 65534, 65534, 0o644),
        ("d/program", 1234, 2345, 0o6755),
        ("d/group", 0, 2345, 0o2750),
        ("d/closed", 1234, 0, 0o004),
        ("large", 4321, 2345, 0o640),
        ("empty", 4321, 2345, 0o600),
        ("null", 7, 8, 0o666),
        ("disk", 7, 8, 0o660),
        ("fifo", 7, 8, 0o620),
        ("d", 1234, 2345, 0o3775),
        ("", 1234, 2345, 0o2755),
    ] {
        chown(at(name), Some(owner), Some(group)).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    }
    open_to_all(&sandbox);
    fs::create_dir(sandbox.path("backup")).unwrap();
    chown(sandbox.path("backup"), Some(65534), Some(65534)).unwrap();
    Some(sandbox)
}

/// What rsync would still do to the second, taking what is written down there for what it is.
fn left_to_rsync(from: &Path, to: &Path) -> String {
    let directory = |path: &Path| format!("{}/", path.display());
    let ran = Command::new("rsync")
        .args(["-rlptgoD", "--numeric-ids", "--dry-run", "--itemize-changes", "--delete", "--fake-super"])
        .args([directory(from), directory(to)])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    // There it makes files of links.
    let told = String::from_utf8(ran.stdout).unwrap();
    told.lines().filter(|line| !line.ends_with("link -> own")).collect()
}

/// The backup of a user who may set nothing: rsync finds nothing left to do, and from it all comes back, by this
/// program and by rsync.
#[test]
fn backup_without_root_has_all_that_root_had_and_gives_it_back() {
    let Some(sandbox) = scene() else { return };
    let node = Node::start(&sandbox, "in", &[]);
    chown(&node.token_file, Some(65534), None).unwrap();
    let run = |words: &[&str]| {
        let ran = under(&sandbox, &NOBODY, &[words, &[&node.token()]].concat());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
        ran
    };
    let from = node.at("");
    let words = ["sync", "-a", "--fake-super", &from, "backup/day"];
    let ran = run(&words);
    // Nothing can be written down beside a link.
    assert!(!ran.stderr.contains("not kept") || ran.stderr.contains("first link"), "{}", ran.stderr);
    let day = sandbox.path("backup/day");
    for name in ["own", "d/program", "null", "fifo", "d"] {
        let stat = fs::metadata(day.join(name)).unwrap();
        assert_eq!((stat.uid(), stat.mode() & 0o7000), (65534, 0), "{name}");
        assert!(stat.is_file() || name == "d", "{name}");
    }
    assert_eq!(left_to_rsync(&sandbox.path("in"), &day), "");
    // Nothing is sent or set again.
    assert_eq!(run(&[&words[..], &["-n", "-i"]].concat()).stdout, "");
    assert_eq!(run(&[&words[..], &["-i"]].concat()).stdout, "");
    // A change of what is only written down is a change.
    chown(sandbox.path("in/d/group"), Some(99), Some(2345)).unwrap();
    fs::set_permissions(sandbox.path("in/d/program"), Permissions::from_mode(0o755)).unwrap();
    let changed = run(&[&words[..], &["-i"]].concat()).stdout;
    assert_eq!(changed.lines().count(), 2, "{changed}");
    assert_eq!(left_to_rsync(&sandbox.path("in"), &day), "");
    // The next day shares what is the same.
    let linked = run(&["sync", "-a", "--fake-super", "--strict", "--link-dest=../day", &from, "backup/next"]);
    assert!(!linked.stderr.contains("not kept"), "{}", linked.stderr);
    for name in ["large", "own", "d/program", "d/closed"] {
        assert_eq!(fs::metadata(day.join(name)).unwrap().nlink(), 2, "{name}");
    }
    assert_eq!(left_to_rsync(&sandbox.path("in"), &sandbox.path("backup/next")), "");
    // Back: by this program, and by rsync.
    let back = ["sync", "-a", "--from-fake-super", "backup/day/", "back"];
    sandbox.ok(back);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("back"), ""), "");
    assert_eq!(sandbox.ok([&back[..], &["-n", "-i"]].concat()).stdout, "");
    let restored = Command::new("rsync")
        .args(["-a", "--numeric-ids", "-M--fake-super", "-e", "sh -c 'shift; exec \"$@\"' --"])
        .arg(format!("localhost:{}/", day.display()))
        .arg(sandbox.path("restored"))
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("restored"), "time"), "");
    // Without being asked, it is a tree of plain files.
    sandbox.ok(["sync", "-a", "backup/day/", "plain"]);
    assert!(fs::metadata(sandbox.path("plain/null")).unwrap().is_file());
    assert_eq!(fs::metadata(sandbox.path("plain/d/program")).unwrap().uid(), 65534);
}

/// What rsync has written down is taken for what it is, and its backups go on.
#[test]
fn backups_that_rsync_began_go_on() {
    let Some(sandbox) = scene() else { return };
    let ran = Command::new("rsync")
        .args(["-a", "--numeric-ids", "--fake-super"])
        .arg(format!("{}/", sandbox.path("in").display()))
        .arg(sandbox.path("day"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    // It does not write all nanoseconds.
    let words = ["sync", "-a", "--numeric-ids", "--fake-super", "--modify-window=1", "-n", "-i", "in/", "day"];
    let changed = sandbox.ok(words).stdout;
    assert_eq!(changed.lines().filter(|line| !line.contains("link -> own")).collect::<String>(), "");
    // What it has made of links and devices comes back as these.
    sandbox.ok(["sync", "-a", "--from-fake-super", "day/", "back"]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("back"), "time"), "");
    sandbox.ok(["copy", "-a", "--from-fake-super", "day/null", "alone"]);
    assert!(fs::symlink_metadata(sandbox.path("alone")).unwrap().file_type().is_char_device());
}

/// What is written down counts where a copy is moved, followed, taken up, and given nothing but permissions.
#[test]
fn what_is_written_down_counts_wherever_items_are_looked_at() {
    let Some(sandbox) = scene() else { return };
    // Nothing is kept but permissions: what the source closes is closed.
    sandbox.write("plain/f", "content");
    for mode in [0o400, 0o444, 0o400] {
        fs::set_permissions(sandbox.path("plain/f"), Permissions::from_mode(mode)).unwrap();
        let ran = sandbox.ok(["sync", "--fake-super", "plain/", "backup/plain"]);
        assert_eq!(fs::metadata(sandbox.path("backup/plain/f")).unwrap().mode() & 0o077, mode & 0o077);
        assert!(!ran.stderr.contains("not kept"), "{}", ran.stderr);
    }
    // Killed, and taken up.
    crate::support::wait_until("the files have settled", || {
        let changed = fs::metadata(sandbox.path("in/own")).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        now > changed.ctime() as u64 + 3
    });
    sandbox.write("in/z/last", tree::bytes(8 << 20, 2));
    let words = ["-a", "--fake-super", "--bwlimit=2M", "--block=64K", "in/", "day"];
    let running = Running::start(sandbox.carrack().args(words));
    let are_marked = || sandbox.marked("day").is_some_and(|marker| marker.known_count() >= 4);
    crate::support::wait_until("what is small is there, and marked", are_marked);
    crate::support::process::signal(running.id(), "KILL");
    running.end();
    let again = sandbox.ok(["-a", "--fake-super", "in/", "day"]);
    // Whoever writes it owns the link.
    assert!(
        !again.stderr.contains("not kept") || again.stderr.contains("not kept: 1 owner, 1 group; first link"),
        "{}",
        again.stderr
    );
    assert_eq!(left_to_rsync(&sandbox.path("in"), &sandbox.path("day")), "");
    // A link that is followed leads to what its file stands for.
    fs::create_dir(sandbox.path("links")).unwrap();
    symlink("../day/own", sandbox.path("links/own")).unwrap();
    let followed = ["sync", "-a", "-L", "--from-fake-super", "links/", "followed"];
    sandbox.ok(followed);
    assert_eq!(fs::metadata(sandbox.path("followed/own")).unwrap().uid(), 65534);
    assert_eq!(sandbox.ok([&followed[..], &["-n", "-i"]].concat()).stdout, "");
    // Moved, all of it goes.
    sandbox.ok(["-a", "--from-fake-super", "--remove-source-files", "day/", "moved"]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("moved"), "owner,group"), "");
    assert!(tree::walk(&sandbox.path("day")).iter().all(|path| path.is_dir()));
}

/// Where nothing can be written down, it is counted, and a device is left out.
#[test]
fn what_cannot_be_written_down_is_counted() {
    let Some(sandbox) = scene() else { return };
    let disk = sandbox.path("disk");
    fs::create_dir(&disk).unwrap();
    assert!(Command::new("mount").args(["-t", "ramfs", "none"]).arg(&disk).status().unwrap().success());
    let _unmounted = Unmounted(&disk);
    let ran = sandbox.run(["sync", "-a", "--fake-super", "in/", &disk.join("out").display().to_string()]);
    assert!(ran.stderr.contains("owners"), "{}", ran.stderr);
    assert!(ran.stderr.contains("in which what it is would be written down"), "{}", ran.stderr);
    assert!(!disk.join("out/null").exists() && disk.join("out/own").exists(), "{}", ran.stderr);
}
