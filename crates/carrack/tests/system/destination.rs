//! What happens to a destination while a copy writes there, and what it makes of the attributes that it is given.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use carrack_faults::fuse::{Call, FaultFs, Features};
use carrack_faults::image::{Image, Kind};
use carrack_faults::strace::Inject;

use crate::faults::{NOBODY, open_to_all, slow_copy, under};
use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{Sandbox, is_root, mode, ran, same_tree, tree};

const MIB: usize = 1 << 20;

/// With each way of treating what exists: a name that was free when the copy of its file began.
#[test]
fn file_that_appears_while_its_copy_runs_is_treated_as_was_asked() {
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

/// A power cut right after the end: what was written to another file system than the destination's own
/// is there, under its name.
#[test]
fn mount_below_the_destination_is_durable_at_the_end() {
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
fn names_that_are_one_on_a_file_system_below_are_told() {
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
pub fn give(sandbox: &Sandbox, name: &str) {
    let owner = "65534:65534";
    crate::support::tool(std::process::Command::new("chown").args(["-R", owner]).arg(sandbox.path(name)));
}

#[test]
fn tree_with_read_only_directories_is_copied_again_and_again_by_a_user_without_rights() {
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
fn name_of_a_new_destination_is_synced_where_names_are_synced_one_by_one() {
    let sandbox = Sandbox::new();
    sandbox.write("in/f", "content");
    let log = sandbox.path("calls");
    let inject = Inject::new().watch(&["fsync", "mkdir", "mkdirat"]).log(&log);
    let mut command = inject.around(sandbox.carrack().args(["in/", "new/out/at", "--durable=each"]));
    let ran = ran(command.output_in_time().unwrap());
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
fn destination_that_is_renamed_away_meanwhile_is_an_error() {
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
fn directories_whose_attributes_fail_are_all_counted_and_listed() {
    const DIRECTORIES: usize = 300;
    let sandbox = Sandbox::new();
    for number in 0..DIRECTORIES {
        fs::create_dir_all(sandbox.path(format!("in/d{number}"))).unwrap();
    }
    let inject = Inject::new().error("utimensat", "EIO", "1+");
    let arguments = ["in/", "out", "--json", "--failed-list=list"];
    let ran = ran(inject.around(sandbox.carrack().args(arguments)).output_in_time().unwrap());
    assert_eq!(ran.code, 23, "{}", ran.stderr);
    let listed = fs::read_to_string(sandbox.path("list")).unwrap();
    let failed = ran.summary()["files_failed"].as_u64().unwrap();
    assert!(failed >= DIRECTORIES as u64, "{failed}");
    assert!(listed.lines().count() >= DIRECTORIES, "{}", listed.lines().count());
}

/// Of a year that ext4 cannot hold: the file, the directory and the link are there, and nobody is told
/// that their times are right.
#[test]
fn times_that_the_file_system_does_not_keep_are_told() {
    let (memory, disk) = (Sandbox::in_memory(), Sandbox::new());
    let far = "2500-01-01 00:00:00 UTC";
    for name in ["small", "large", "d/inner"] {
        memory.write(format!("in/{name}"), tree::bytes(if name == "large" { 2 * MIB } else { 10 }, 1));
    }
    std::os::unix::fs::symlink("small", memory.path("in/link")).unwrap();
    for name in ["small", "large", "link", "d"] {
        let mut touch = std::process::Command::new("touch");
        crate::support::tool(touch.args(["-h", "-d", far]).arg(memory.path("in").join(name)));
    }
    let there = |name: &str| fs::symlink_metadata(memory.path("in").join(name)).unwrap().modified().unwrap();
    let source = memory.path("in/").display().to_string() + "/";
    let ran = disk.ok([&source, "out", "--json"]);
    let kept =
        |name: &&str| fs::symlink_metadata(disk.path("out").join(name)).unwrap().modified().unwrap() == there(name);
    let clamped = ["small", "large", "link", "d"].iter().filter(|name| !kept(name)).count();
    let told = &ran.summary()["unkept"];
    assert_eq!(told["times"]["count"].as_u64().unwrap_or(0), clamped as u64, "{told}");
    assert!(told["permissions"].is_null(), "{told}");
    if clamped > 0 {
        assert!(told["times"]["wanted"].as_str().unwrap().starts_with("2500-01-01T00:00:00"), "{told}");
        let again = disk.ok([&source, "out2"]);
        assert!(again.stderr.contains("not kept by the destination: times of 4 items (first "), "{}", again.stderr);
    }
    // Where all is kept nothing is said.
    disk.write("plain/f", "x");
    let plain = disk.ok(["plain/", "out3", "--json"]);
    assert!(plain.summary()["unkept"]["times"].is_null() && !plain.stderr.contains("not kept"), "{}", plain.stdout);
}

/// FAT and SMB: files and directories come without them, and that is told.
#[test]
fn permissions_that_the_file_system_refuses_are_told_and_cost_no_file() {
    for error in ["EPERM", "EOPNOTSUPP"] {
        let sandbox = Sandbox::new();
        sandbox.write("in/d/small", "content");
        sandbox.write("in/large", tree::bytes(2 * MIB, 1));
        for name in ["in/d/small", "in/large", "in/d"] {
            fs::set_permissions(sandbox.path(name), Permissions::from_mode(0o751)).unwrap();
        }
        fs::create_dir(sandbox.path("out")).unwrap();
        let inject = Inject::new().error("fchmod", error, "1+").error("fchmodat", error, "1+");
        let ran = ran(inject.around(sandbox.carrack().args(["in/", "out", "--json"])).output_in_time().unwrap());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        same_tree(&sandbox.path("in"), &sandbox.path("out"));
        let told = &ran.summary()["unkept"]["permissions"];
        assert_eq!((told["count"].as_u64(), told["wanted"].as_str()), (Some(3), Some("0751")), "{told}");
    }
}

#[test]
fn contents_of_a_directory_bring_its_permissions_and_time_as_with_rsync() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("src/f", "content");
    sandbox.write("other/g", "content");
    fs::set_permissions(sandbox.path("src"), Permissions::from_mode(0o750)).unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for name in ["src", "other"] {
        fs::File::open(sandbox.path(name)).unwrap().set_modified(old).unwrap();
    }
    let attributes =
        |name: &str| (mode(&sandbox.path(name)), fs::metadata(sandbox.path(name)).unwrap().modified().unwrap());
    for (destination, place) in [("here".to_string(), "here"), (node.at("there"), "root/there")] {
        // Of a destination that is new, of one that stands and is to have them, and of several sources the first.
        for sources in
            [&["src/"][..], &["--top-attributes", "src/"], &["--top-attributes", "src/", "other/"], &["src/"]]
        {
            let keeps = sources == ["src/"] && sandbox.path(place).exists();
            let arguments = sources.iter().map(ToString::to_string).chain([destination.clone(), node.token()]);
            sandbox.ok(arguments);
            let expected = if keeps { 0o700 } else { 0o750 };
            assert_eq!(attributes(place), (expected, old), "{sources:?} {destination}");
            assert!(tree::walk(&sandbox.path(place)).iter().all(|path| !path.to_string_lossy().contains(".carrack-")));
            fs::set_permissions(sandbox.path(place), Permissions::from_mode(0o700)).unwrap();
        }
        // What the source is put into is not the source.
        sandbox.ok(["src", &destination, &node.token()]);
        assert_eq!(mode(&sandbox.path(place)), 0o700);
        assert_eq!(attributes(&format!("{place}/src")), (0o750, old));
    }
    crate::support::tool(
        std::process::Command::new("rsync").args(["-a"]).arg(sandbox.path("src/")).arg(sandbox.path("rsync")),
    );
    sandbox.ok(["src/", "mine"]);
    assert_eq!(attributes("mine"), attributes("rsync"));
}

/// One that is read-only becomes a destination that is, again and again.
#[test]
fn contents_of_a_read_only_directory_are_copied_again_and_again_by_a_user_without_rights() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    sandbox.write("src/f", "content");
    fs::create_dir(sandbox.path("out")).unwrap();
    fs::set_permissions(sandbox.path("src"), Permissions::from_mode(0o555)).unwrap();
    give(&sandbox, "src");
    give(&sandbox, "out");
    for round in 0..3 {
        let ran = under(&sandbox, &NOBODY, &["--top-attributes", "src/", "out"]);
        assert_eq!(ran.code, 0, "round {round}: {}", ran.stderr);
        same_tree(&sandbox.path("src"), &sandbox.path("out"));
        assert_eq!(mode(&sandbox.path("out")), 0o555);
        sandbox.write("src/f", format!("content {round}"));
    }
}

/// As in /tmp: others' names stay theirs, and the system says no more than that it is not permitted.
#[test]
fn sticky_directory_is_told_as_the_cause() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    sandbox.write("f", "new");
    sandbox.write("out/f", "old");
    sandbox.write("out/own", "own");
    give(&sandbox, "f");
    give(&sandbox, "out/own");
    fs::set_permissions(sandbox.path("out"), Permissions::from_mode(0o1777)).unwrap();
    let cause = "the directory is sticky (chmod +t), and what has the name belongs to another user";
    for (arguments, code) in [
        (&["f", "out"][..], 23),
        (&["rm", "out/f"], 11),
        (&["mv", "out/f", "out/g"], 11),
        (&["mv", "out/own", "out/f"], 11),
    ] {
        let ran = under(&sandbox, &NOBODY, arguments);
        ran.failed_with(code, &[cause]);
        assert!(!ran.stderr.contains("not permitted"), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(fs::read(sandbox.path("out/f")).unwrap(), b"old");
    assert_eq!(under(&sandbox, &NOBODY, &["mv", "out/own", "out/g"]).code, 0);
}

/// Whatever the user's umask takes away, what is copied has the source's permissions.
#[test]
fn umask_of_everything_changes_nothing() {
    copies_under_a_umask_of_everything();
}

/// Linux before 6.6 changes the mode of an entry that may not be read by no call of its own.
#[test]
fn umask_of_everything_changes_nothing_where_no_call_changes_modes_by_name() {
    use carrack_faults::refused::{CALLS, within};
    let by_name: Vec<_> = CALLS.iter().copied().filter(|newer| newer.name == "fchmodat2").collect();
    assert_eq!(by_name.len(), 1);
    within(&by_name, 38, copies_under_a_umask_of_everything);
}

fn copies_under_a_umask_of_everything() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    for (name, size, mode) in [("small", 10, 0o600), ("d/large", 2 * MIB, 0o600), ("d/open", 10, 0o644)] {
        sandbox.write(format!("src/{name}"), tree::bytes(size, 1));
        fs::set_permissions(sandbox.path("src").join(name), Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(sandbox.path("out")).unwrap();
    give(&sandbox, "src");
    give(&sandbox, "out");
    let carrack = sandbox.carrack();
    let line = format!("umask 0777; exec {} src out", carrack.get_program().display());
    for (user, wrapper) in [("nobody", &NOBODY[..]), ("root", &["env"][..])] {
        let mut command = std::process::Command::new(wrapper[0]);
        command.args(&wrapper[1..]).args(["sh", "-c", &line]).current_dir(sandbox.path("."));
        command.env_clear().envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = ran(command.output_in_time().unwrap());
        assert_eq!(ran.code, 0, "{user}: {}", ran.stderr);
        for (name, expected) in [("small", 0o600), ("d/large", 0o600), ("d/open", 0o644), ("d", 0o755)] {
            assert_eq!(mode(&sandbox.path("out/src").join(name)), expected, "{user}: {name}");
        }
        fs::remove_dir_all(sandbox.path("out/src")).unwrap();
    }
}

/// What could not be listed is copied from the list of what failed, once it can be.
#[test]
fn directory_that_could_not_be_listed_is_copied_by_the_failed_list_later() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    sandbox.write("src/closed/inner/f", "content");
    fs::set_permissions(sandbox.path("src/closed"), Permissions::from_mode(0o000)).unwrap();
    for name in ["out", "lists"] {
        fs::create_dir(sandbox.path(name)).unwrap();
        give(&sandbox, name);
    }
    give(&sandbox, "src");
    let ran = under(&sandbox, &NOBODY, &["src", "out", "--failed-list=lists/failed"]);
    ran.failed_with(23, &["src/closed", "ermission denied"]);
    assert_eq!(mode(&sandbox.path("out/src/closed")) & 0o700, 0o700, "its owner may look and go on");
    fs::set_permissions(sandbox.path("src/closed"), Permissions::from_mode(0o555)).unwrap();
    // Also where an earlier program has left it shut.
    for before in [0o700, 0o000] {
        fs::set_permissions(sandbox.path("out/src/closed"), Permissions::from_mode(before)).unwrap();
        let ran = under(&sandbox, &NOBODY, &["src", "out", "--files-from=lists/failed"]);
        assert_eq!(ran.code, 0, "{before:o}: {}", ran.stderr);
        same_tree(&sandbox.path("src"), &sandbox.path("out/src"));
        assert_eq!(mode(&sandbox.path("out/src/closed")), 0o555);
    }
}

/// Everything below fails for one reason: a person is told once, a program of each item.
#[test]
fn file_in_the_place_of_a_directory_is_told_once_with_how_many_items_it_cost() {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "e/c", "e/g"] {
        sandbox.write(format!("in/d/{name}"), "content");
    }
    sandbox.write("out/d", "a file");
    let ran = sandbox.run(["in/", "out"]);
    ran.failed_with(23, &["; 6 items failed", "failed: destination: d: ", " (5 items below it failed as well)"]);
    assert_eq!(ran.stderr.matches("failed: ").count(), 1, "{}", ran.stderr);
    let summary = sandbox.run(["in/", "out", "--json"]).summary();
    let paths = summary["failures"].as_array().unwrap().iter().map(|failure| failure["path"].as_str().unwrap());
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_unstable();
    assert_eq!(paths, ["d", "d/a", "d/b", "d/e", "d/e/c", "d/e/g"]);
}

/// Directories that somebody else owns: a user without rights may write there, and not change their permissions.
#[test]
fn directories_whose_permissions_were_refused_are_counted_and_named() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    let names: Vec<String> = (0..300).map(|number| format!("d{number:03}")).collect();
    for name in &names {
        sandbox.write(format!("src/{name}/f"), "content");
    }
    give(&sandbox, "src");
    fs::create_dir(sandbox.path("out")).unwrap();
    give(&sandbox, "out");
    for name in &names {
        fs::create_dir(sandbox.path("out").join(name)).unwrap();
        fs::set_permissions(sandbox.path("out").join(name), Permissions::from_mode(0o777)).unwrap();
    }
    let ran = under(&sandbox, &NOBODY, &["src/", "out", "-v"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = "permissions of 300 items, 300 directories of them (first d";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let mut named: Vec<&str> =
        ran.stderr.lines().filter_map(|line| line.strip_prefix("permissions not kept: ")).collect();
    named.sort_unstable();
    assert_eq!(named, names);
    let told = under(&sandbox, &NOBODY, &["src/", "out", "--json"]).summary()["unkept"]["directories"].clone();
    let mut paths: Vec<&str> =
        told["paths"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!((told["count"].as_u64(), paths), (Some(300), names.iter().map(String::as_str).collect()));
    // Without -v they are counted alone.
    let ran = under(&sandbox, &NOBODY, &["src/", "out"]);
    assert!(!ran.stderr.contains("permissions not kept: "), "{}", ran.stderr);
}
