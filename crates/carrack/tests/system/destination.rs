//! What happens to a destination while a copy writes there, and what it makes of the attributes that it is given.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use carrack_faults::fuse::{Call, FaultFs, Features};
use carrack_faults::image::{Image, Kind};
use carrack_faults::strace::Inject;

use crate::faults::{NOBODY, open_to_all, slow_copy, under};
use crate::support::node::Node;
use crate::support::{Sandbox, is_root, mode, ran, same_tree, tree};

const MIB: usize = 1 << 20;

/// With each way of treating what exists: a name that was free when the copy of its file began.
#[test]
fn a_file_that_appears_while_its_copy_runs_is_treated_as_was_asked() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let source = sandbox.write("src/file", tree::bytes(3 * MIB, 1));
    for (flag, replaces) in [("--no-clobber", false), ("--update", false), ("--verify=wire", true)] {
        let running = slow_copy(&sandbox, &source, &["src/", &node.at("dst"), &node.token(), "--json", flag]);
        let appeared = sandbox.write("root/dst/file", "appeared");
        let ran = running.end();
        assert_eq!(ran.code, 0, "{flag}: {}{}", ran.stdout, ran.stderr);
        if replaces {
            same_tree(&source, &appeared);
        } else {
            assert_eq!(fs::read(&appeared).unwrap(), b"appeared", "{flag}");
        }
        let summary = ran.summary();
        assert_eq!(
            (summary["files"].as_u64(), summary["files_kept"].as_u64()),
            match replaces {
                true => (Some(1), Some(0)),
                false => (Some(0), Some(1)),
            }
        );
        assert!(sandbox.parts("root").is_empty());
        fs::remove_dir_all(sandbox.path("root/dst")).unwrap();
    }
}

/// A power cut right after the end: what was written to another file system than the destination's own is there, under its name.
#[test]
fn what_is_on_a_file_system_mounted_below_the_destination_is_durable_at_the_end() {
    let sandbox = Sandbox::new();
    sandbox.write("in/disk/small", tree::bytes(5000, 1));
    sandbox.write("in/disk/below/large", tree::bytes(3 * MIB, 2));
    sandbox.write("in/beside", "on the destination's own");
    fs::set_permissions(sandbox.path("in/disk/below"), Permissions::from_mode(0o750)).unwrap();
    for durable in ["group", "each"] {
        fs::create_dir_all(sandbox.path(durable)).unwrap();
        let Some(image) = Image::new(&sandbox.path(durable), "disk", Kind::Ext4, 32) else { return };
        let ran = sandbox.ok(["in/", durable, &format!("--durable={durable}"), "--json"]);
        let snapshot = image.snapshot(&sandbox.path(format!("{durable}.cut")));
        assert_eq!(ran.summary()["durable"], true);
        let after = snapshot.open(&sandbox.path(format!("{durable}.after")));
        for name in ["small", "below/large"] {
            same_tree(&sandbox.path("in/disk").join(name), &after.path().join(name));
        }
        assert_eq!(mode(&after.path().join("below")), 0o750, "{durable}");
    }
}

/// FUSE lets nobody sync all of it at once.
#[test]
fn names_on_a_file_system_that_does_not_sync_as_one_are_synced_one_by_one_below_the_destination() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    const FILES: u64 = 12;
    let sandbox = Sandbox::new();
    for number in 0..FILES {
        sandbox.write(format!("in/disk/d{number}/f"), "content");
    }
    for directory in ["backing", "to/disk"] {
        fs::create_dir_all(sandbox.path(directory)).unwrap();
    }
    let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("to/disk"), Features::default()).unwrap();
    let ran = sandbox.ok(["in/", "to", "--json"]);
    assert_eq!(ran.summary()["durable"], true);
    // Each file, the directory that it has its name in, that one's own name, and its attributes.
    let syncs = disk.count(Call::Sync);
    assert!(syncs >= 4 * FILES, "{syncs} syncs");
}

/// Names that are one on a file system that is mounted below, and two at the destination itself.
#[test]
fn two_names_that_are_one_on_a_file_system_below_are_told() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    for (size, name) in [(10, "f"), (MIB + 1, "f"), (10, "d/f")] {
        let sandbox = Sandbox::new();
        let other = name.to_uppercase();
        sandbox.write(format!("in/disk/{name}"), tree::bytes(size, 1));
        sandbox.write(format!("in/disk/{other}"), tree::bytes(size, 2));
        for directory in ["backing", "to/disk"] {
            fs::create_dir_all(sandbox.path(directory)).unwrap();
        }
        let features = Features { folds_case: true, ..Features::default() };
        let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("to/disk"), features).unwrap();
        let ran = sandbox.run(["in/", "to"]);
        ran.failed_with(23, &["failed: destination: ", "the same name as"]);
        let kept = fs::read(disk.path().join(name)).unwrap();
        assert!([name, &other].iter().any(|name| fs::read(sandbox.path("in/disk").join(name)).unwrap() == kept));
        assert!(sandbox.parts("backing").is_empty());
    }
}

/// A tree whose directories are read-only: the modes, path by path, of those below a directory.
fn read_only_tree(sandbox: &Sandbox) -> [(&'static str, u32); 3] {
    let modes = [("tree/a/b", 0o555), ("tree/a", 0o555), ("tree/closed", 0o500)];
    for name in ["tree/a/small", "tree/a/b/small", "tree/closed/small"] {
        sandbox.write(name, name);
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(0o644)).unwrap();
    }
    sandbox.write("tree/a/b/large", tree::bytes(2 * MIB, 1));
    for (name, mode) in modes {
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(mode)).unwrap();
    }
    modes
}

fn assert_modes(below: &Path, modes: &[(&str, u32)]) {
    for (name, expected) in modes {
        assert_eq!(mode(&below.join(name)), *expected, "{name}");
    }
}

/// A directory of the sandbox, and all below it, given to the user without rights.
fn give(sandbox: &Sandbox, name: &str) {
    let owner = "65534:65534";
    crate::support::tool(std::process::Command::new("chown").args(["-R", owner]).arg(sandbox.path(name)));
}

#[test]
fn a_tree_with_read_only_directories_is_copied_again_and_again_by_a_user_without_rights() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    let modes = read_only_tree(&sandbox);
    fs::create_dir(sandbox.path("out")).unwrap();
    give(&sandbox, "tree");
    give(&sandbox, "out");
    for round in 0..3 {
        let ran = under(&sandbox, &NOBODY, &["tree", "out", "--no-resume"]);
        assert_eq!(ran.code, 0, "round {round}: {}", ran.stderr);
        same_tree(&sandbox.path("tree"), &sandbox.path("out/tree"));
        assert_modes(&sandbox.path("out"), &modes);
        // Something to bring each time.
        sandbox.write("tree/a/b/large", tree::bytes(2 * MIB, 2 + round));
        assert!(sandbox.parts("out").is_empty());
    }
}

/// Ended in good order they are read-only again; killed they are after the next run.
#[test]
fn directories_made_writable_for_the_time_are_set_back_after_an_end_of_any_kind() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    let modes = read_only_tree(&sandbox);
    fs::create_dir(sandbox.path("out")).unwrap();
    give(&sandbox, "tree");
    give(&sandbox, "out");
    assert_eq!(under(&sandbox, &NOBODY, &["tree", "out"]).code, 0);
    sandbox.write("tree/a/b/large", tree::bytes(2 * MIB, 9));
    for signal in ["TERM", "KILL"] {
        let mut command = std::process::Command::new(NOBODY[0]);
        let carrack = sandbox.carrack();
        command.args(&NOBODY[1..]).arg(carrack.get_program()).args(["tree", "out", "--bwlimit=200K", "--block=64K"]);
        command.current_dir(sandbox.path(".")).env_clear();
        command.envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let running = crate::support::running::Running::start(&mut command);
        crate::support::wait_until("the part file is there", || !sandbox.parts("out").is_empty());
        crate::support::process::signal(running.id(), signal);
        running.end();
        if signal == "TERM" {
            assert_modes(&sandbox.path("out"), &modes);
        }
    }
    let ran = under(&sandbox, &NOBODY, &["tree", "out"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    same_tree(&sandbox.path("tree"), &sandbox.path("out/tree"));
    assert_modes(&sandbox.path("out"), &modes);
    assert!(sandbox.parts("out").is_empty());
}

/// A new destination's own name, and those of the directories above that were made for it.
#[test]
fn the_name_of_a_new_destination_is_synced_where_names_are_synced_one_by_one() {
    let sandbox = Sandbox::new();
    sandbox.write("in/f", "content");
    let log = sandbox.path("calls");
    let inject = Inject::new().watch(&["fsync", "mkdir", "mkdirat"]).log(&log);
    let mut command = inject.around(sandbox.carrack().args(["in/", "new/out/at", "--durable=each"]));
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let calls = carrack_faults::strace::calls(&log);
    let made = calls.iter().filter(|call| call.name().starts_with("mkdir") && call.result() == Some(0));
    for made in made {
        let synced = calls.iter().any(|call| call.name() == "fsync" && call.began > made.ended);
        assert!(synced, "{} was made and its name not synced", made.text);
    }
    let syncs = calls.iter().filter(|call| call.name() == "fsync").count();
    // Of the three that hold a new name, and of the one that the file has its name in.
    assert!(syncs >= 4, "{syncs} syncs of directories");
}

/// Somebody puts an empty directory in the place of the one that is being written to, or makes a link lead elsewhere.
#[test]
fn a_destination_that_is_renamed_away_meanwhile_is_an_error() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let source = sandbox.write("src/file", tree::bytes(2 * MIB, 1));
    for (destination, replaced) in
        [("root/dst".to_string(), true), ("root/dst".into(), false), (node.at("dst"), true), ("root/link".into(), true)]
    {
        for name in ["root/dst", "root/other"] {
            fs::create_dir_all(sandbox.path(name)).unwrap();
        }
        let link = sandbox.path("root/link");
        std::os::unix::fs::symlink("dst", &link).unwrap();
        let running = slow_copy(&sandbox, &source, &["src/", &destination, &node.token()]);
        if destination.ends_with("link") {
            std::os::unix::fs::symlink("other", sandbox.path("root/new")).unwrap();
            fs::rename(sandbox.path("root/new"), &link).unwrap();
        } else {
            fs::rename(sandbox.path("root/dst"), sandbox.path("root/moved")).unwrap();
            if replaced {
                fs::create_dir(sandbox.path("root/dst")).unwrap();
            }
        }
        running.end().failed_with(11, &["no longer leads to the directory that was written to"]);
        for entry in fs::read_dir(sandbox.path("root")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() { fs::remove_file(path).unwrap() } else { fs::remove_dir_all(path).unwrap() }
        }
    }
}

#[test]
fn every_directory_whose_attributes_fail_is_counted_and_listed() {
    const DIRECTORIES: usize = 300;
    let sandbox = Sandbox::new();
    for number in 0..DIRECTORIES {
        fs::create_dir_all(sandbox.path(format!("in/d{number}"))).unwrap();
    }
    let inject = Inject::new().error("utimensat", "EIO", "1+");
    let arguments = ["in/", "out", "--json", "--failed-list=list"];
    let ran = ran(inject.around(sandbox.carrack().args(arguments)).output().unwrap());
    assert_eq!(ran.code, 23, "{}", ran.stderr);
    let listed = fs::read_to_string(sandbox.path("list")).unwrap();
    let failed = ran.summary()["files_failed"].as_u64().unwrap();
    assert!(failed >= DIRECTORIES as u64, "{failed}");
    assert!(listed.lines().count() >= DIRECTORIES, "{}", listed.lines().count());
}
