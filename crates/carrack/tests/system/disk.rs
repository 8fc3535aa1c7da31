//! Disks that are full, fail, lie, rot and hang: nothing wrong ever bears a final name, and nothing that is
//! not there is said to be.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use carrack_faults::fuse::{Call, Errno, Fault, FaultFs, Features, When};
use carrack_faults::image::{Image, Kind, Scarce};
use carrack_faults::race::Racer;
use carrack_faults::strace::Inject;
use carrack_faults::watch::{self, Allowed, Watcher};

use crate::support::node::Node;
use crate::support::running::{InTime, Running};
use crate::support::{PORTABLE, Ran, Sandbox, race_time, ran, same_tree, tool, tree, wait_until};

const MIB: usize = 1 << 20;

/// Runs the program under strace, which does what it was told to its calls.
fn under(sandbox: &Sandbox, inject: &Inject, arguments: &[&str]) -> Ran {
    ran(inject.around(sandbox.carrack().args(arguments)).output_in_time().unwrap())
}

/// A file system that can be got to fail, below `NAME` of the sandbox; `None`, and why is printed, without root.
pub fn faulty(sandbox: &Sandbox, name: &str, features: Features) -> Option<FaultFs> {
    if !carrack_faults::can_mount("a FUSE file system") {
        return None;
    }
    let backing = sandbox.path(format!("{name}.backing"));
    fs::create_dir_all(&backing).unwrap();
    fs::create_dir_all(sandbox.path(name)).unwrap();
    Some(FaultFs::mount(&backing, &sandbox.path(name), features).unwrap())
}

/// One large file and some that travel in a bundle.
fn sources(sandbox: &Sandbox) -> PathBuf {
    sandbox.write("tree/big", tree::bytes(12 * MIB, 1));
    for index in 0..5 {
        sandbox.write(format!("tree/small{index}"), tree::bytes(10_000, 10 + index));
    }
    sandbox.path("tree")
}

/// Every name at the destination holds what the source has under it, or `old`.
#[track_caller]
fn assert_right_or_old(from: &Path, to: &Path, old: &[u8]) {
    for path in watch::files(to) {
        let name = path.strip_prefix(to).unwrap();
        let content = fs::read(&path).unwrap();
        let right = fs::read(from.join(name)).is_ok_and(|expected| expected == content);
        assert!(right || content == old, "{name:?} holds {} bytes that nobody sent", content.len());
    }
}

#[track_caller]
fn assert_no_parts(directory: &Path) {
    let left: Vec<PathBuf> = tree::walk(directory).into_iter().filter(|path| watch::is_hidden(path)).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn disk_that_is_too_small_says_how_much_is_missing() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let directory = sandbox.path("disks");
    fs::create_dir(&directory).unwrap();
    let Some(image) = Image::new(&directory, "small", Kind::Ext4, 16) else { return };
    fs::write(image.path().join("big"), "old").unwrap();
    fs::write(image.path().join("filler"), tree::bytes(4 * MIB, 9)).unwrap();
    let to = image.path().join("to");
    fs::create_dir(&to).unwrap();
    fs::rename(image.path().join("big"), to.join("big")).unwrap();
    let ran = sandbox.run(["tree/", to.to_str().unwrap()]);
    ran.failed_with(23, &["big", &(12 * MIB).to_string(), "too few", "free some"]);
    assert_eq!(fs::read(to.join("big")).unwrap(), b"old");
    assert_eq!(watch::files(&to).len(), 6);
    assert_right_or_old(&from, &to, b"old");
    assert_no_parts(&to);
}

#[test]
fn disk_that_fills_up_in_the_midst_of_a_file_keeps_the_old_one() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let Some(disk) = faulty(&sandbox, "disk", Features { no_allocate: true, ..Features::default() }) else { return };
    // By our own writes, and by those that the kernel makes of what nobody digests.
    let unseen = ["--encrypt=none", "--digest=none", "--verify=none"];
    let ways = [&[][..], &unseen];
    for (error, way) in
        [Errno::NOSPC, Errno::DQUOT, Errno::IO].into_iter().flat_map(|error| ways.map(|way| (error, way)))
    {
        fs::write(disk.path().join("big"), "old").unwrap();
        disk.clear();
        disk.fault_on("big", Call::Write, When::Offset(7 * MIB as u64), Fault::Fail(error));
        let ran = sandbox.run(["tree/", "disk"].iter().chain(way));
        assert!(disk.hits() > 0);
        ran.failed_with(23, &["big"]);
        assert_eq!(fs::read(disk.path().join("big")).unwrap(), b"old", "{error:?}");
        assert_right_or_old(&from, disk.path(), b"old");
        assert_no_parts(disk.path());
    }
    disk.clear();
    sandbox.ok(["tree/", "disk"]);
    same_tree(&from, disk.path());
}

#[test]
fn late_error_is_never_success() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let Some(disk) = faulty(&sandbox, "disk", Features::default()) else { return };
    for (call, error) in
        [(Call::Sync, Errno::NOSPC), (Call::Sync, Errno::DQUOT), (Call::Sync, Errno::IO), (Call::Rename, Errno::IO)]
    {
        fs::write(disk.path().join("big"), "old").unwrap();
        disk.clear();
        disk.fault_on("big", call, When::Always, Fault::Fail(error));
        let ran = sandbox.run(["tree/", "disk"]);
        assert!(disk.hits() > 0, "{call:?}");
        assert_ne!(ran.code, 0, "{call:?} {error:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("big"), "{}", ran.stderr);
        assert_eq!(fs::read(disk.path().join("big")).unwrap(), b"old", "{call:?} {error:?}");
        assert_right_or_old(&from, disk.path(), b"old");
        assert_no_parts(disk.path());
    }
}

#[test]
fn error_that_is_told_only_at_close_is_never_success() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let Some(disk) = faulty(&sandbox, "disk", Features::default()) else { return };
    for (name, error) in [("big", Errno::NOSPC), ("small3", Errno::DQUOT)] {
        fs::write(disk.path().join(name), "old").unwrap();
        disk.clear();
        disk.fault_on(name, Call::Flush, When::Always, Fault::Fail(error));
        let ran = sandbox.run(["tree/", "disk"]);
        assert!(disk.hits() > 0, "{name}");
        assert_ne!(ran.code, 0, "{name}: {}", ran.stdout);
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
        disk.clear();
        assert_eq!(fs::read(disk.path().join(name)).unwrap(), b"old", "{name}");
        assert_right_or_old(&from, disk.path(), b"old");
        assert_no_parts(disk.path());
    }
}

#[test]
fn names_that_run_out_cost_only_the_files_that_got_none() {
    let sandbox = Sandbox::new();
    tree::many(&sandbox.path("tree"), 60, 1000);
    let Some(scarce) = Scarce::new(&sandbox.path("scarce"), 8 << 20, 40) else { return };
    let ran = sandbox.run(["--json", "tree/", "scarce"]);
    assert_eq!(ran.code, 23, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("No space left") || ran.stderr.contains("No space left"), "{}", ran.stderr);
    let summary = ran.summary();
    let (files, failed) = (summary["files"].as_u64().unwrap(), summary["files_failed"].as_u64().unwrap());
    assert_eq!((files + failed, watch::files(scarce.path()).len() as u64), (60, files));
    assert_right_or_old(&sandbox.path("tree"), scarce.path(), b"");
    assert_no_parts(scarce.path());
}

#[test]
fn sync_that_fails_is_never_success_and_what_was_written_is_not_relied_on() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    for (call, when) in [("fdatasync", "1"), ("fdatasync", "1+"), ("syncfs", "1"), ("syncfs", "2"), ("syncfs", "1+")] {
        let _ = fs::remove_dir_all(sandbox.path("to"));
        sandbox.write("to/big", "old");
        let ran = under(&sandbox, &Inject::new().error(call, "EIO", when), &["--json", "tree/", "to"]);
        let to = sandbox.path("to");
        assert_right_or_old(&from, &to, b"old");
        let summary = ran.summary();
        // Also if all that was lost has come again: what else the storage has lost nobody says a second time.
        assert_eq!((ran.code, &summary["durable"]), (11, &false.into()), "{call} {when}: {}", ran.stdout);
        assert!(ran.stdout.contains("nput/output error"), "{call} {when}: {}", ran.stdout);
        if call == "fdatasync" && when == "1" {
            same_tree(&from, &to);
        }
        // What has its name, and no sync that was good came after it, is named.
        let items = ran.stdout.lines().filter(|line| line.contains(r#""type":"item""#));
        let named = items.filter(|line| line.contains("had got its name when a sync failed")).count();
        let there = watch::files(&to).len();
        // A whole file system whose first sync fails has no names yet.
        let may_be_none = call == "syncfs" && when.starts_with('1');
        assert!((named > 0 || may_be_none) && named <= there, "{call} {when}: {named} of {there}: {}", ran.stdout);
        assert!(summary["files_failed"].as_u64().unwrap() >= named as u64, "{call} {when}: {summary}");
        if call == "fdatasync" && when == "1+" {
            assert_eq!(fs::read(to.join("big")).unwrap(), b"old");
        }
        // The next run ends well. After a failed sync of a whole file system it believes no name that was there before.
        let next = sandbox.ok(["--json", "tree/", "to"]).summary();
        assert!(call == "fdatasync" || next["files_resumed"] == 0, "{call} {when}: {next}");
        assert_eq!(next["durable"], true, "{call} {when}");
        same_tree(&from, &to);
    }
}

#[test]
fn writes_that_take_less_than_was_given_are_gone_on_with() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let Some(disk) = faulty(&sandbox, "disk", Features { uncached: true, ..Features::default() }) else { return };
    disk.fault(Call::Write, When::From(3), Fault::Short(30_000));
    sandbox.ok(["tree/", "disk"]);
    assert!(disk.hits() > 100);
    same_tree(&from, disk.path());
}

#[test]
fn write_that_was_never_made_is_found_by_reading_back() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let features = Features { uncached: true, no_allocate: true, ..Features::default() };
    let Some(disk) = faulty(&sandbox, "disk", features) else { return };
    let big = [When::Nth(2), When::Nth(1), When::Always].map(|when| ("big", when));
    for (name, times) in big.into_iter().chain([("small2", When::Nth(1)), ("small2", When::Always)]) {
        let _ = fs::remove_file(disk.path().join(name));
        disk.clear();
        disk.fault_on(name, Call::Write, times, Fault::Lie);
        let ran = sandbox.run(["--verify=disk", "tree/", "disk"]);
        assert!(disk.hits() > 0);
        disk.clear();
        assert_right_or_old(&from, disk.path(), b"");
        match ran.code {
            0 => same_tree(&from, disk.path()),
            _ => assert!(ran.stderr.contains(name) && !disk.path().join(name).exists(), "{name}: {}", ran.stderr),
        }
        assert!(times != When::Always || ran.code != 0, "{name} was never written");
        assert_no_parts(disk.path());
    }
}

#[test]
fn rot_after_writing_is_found_by_reading_back() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let Some(disk) = faulty(&sandbox, "disk", Features { uncached: true, ..Features::default() }) else { return };
    for (name, offset) in [("big", 5 * MIB as u64 + 3), ("big", 12 * MIB as u64 - 1), ("small1", 9_999)] {
        let _ = fs::remove_file(disk.path().join(name));
        disk.clear();
        disk.fault_on(name, Call::Read, When::Offset(offset), Fault::Rot);
        let ran = sandbox.run(["--verify=disk", "tree/", "disk"]);
        assert!(disk.hits() > 0 && ran.code != 0, "{name}: {}", ran.stdout);
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
        disk.clear();
        assert!(!disk.path().join(name).exists());
        assert_right_or_old(&from, disk.path(), b"");
        assert_no_parts(disk.path());
        // Once only, as of a bad read: whether it is found fault with or read again, the name holds what is right.
        disk.fault_on(name, Call::Read, When::Nth(1), Fault::Rot);
        let ran = sandbox.run(["--verify=disk", "tree/", "disk"]);
        disk.clear();
        assert!(ran.code == 0 || !disk.path().join(name).exists(), "{name}: {}", ran.stderr);
        assert_right_or_old(&from, disk.path(), b"");
    }
    sandbox.ok(["--verify=disk", "tree/", "disk"]);
    same_tree(&from, disk.path());
}

#[test]
fn destination_without_permission_to_write_is_told_and_left() {
    let sandbox = Sandbox::new();
    sources(&sandbox);
    let directory = sandbox.path("disks");
    fs::create_dir(&directory).unwrap();
    let Some(image) = Image::new(&directory, "disk", Kind::Ext4, 32) else { return };
    let to = image.path().join("to");
    fs::create_dir(&to).unwrap();
    fs::write(to.join("big"), "old").unwrap();
    let attribute = |change: &str| tool(Command::new("chattr").arg(change).arg(&to));
    let fails = |words: &[&str]| {
        let ran = sandbox.run(["tree/", to.to_str().unwrap()]);
        assert!([11, 23].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
        assert!(words.iter().any(|word| ran.stderr.contains(word)), "{}", ran.stderr);
        assert_eq!(fs::read(to.join("big")).unwrap(), b"old");
        assert_eq!(tree::walk(&to).len(), 1);
    };
    attribute("+i");
    fails(&["the directory is immutable (chattr +i)"]);
    attribute("-i");
    image.remount("ro");
    fails(&["ead-only file system"]);
    image.remount("rw");
    sandbox.ok(["tree/", to.to_str().unwrap()]);
    same_tree(&sandbox.path("tree"), &to);
}

/// The system has the same words for all of them; a copy, `mv` and `rm` tell them apart.
#[test]
fn names_that_cannot_be_changed_are_told_with_the_cause() {
    let sandbox = Sandbox::new();
    sandbox.write("f", "new");
    fs::create_dir(sandbox.path("disks")).unwrap();
    let Some(image) = Image::new(&sandbox.path("disks"), "disk", Kind::Ext4, 32) else { return };
    let (to, old) = (image.path().to_str().unwrap().to_owned(), image.path().join("f"));
    fs::write(&old, "old").unwrap();
    let other = image.path().join("other");
    fs::write(&other, "other").unwrap();
    let (name, other) = (old.to_str().unwrap(), other.to_str().unwrap());
    for (attribute, cause) in [("i", "what has the name is immutable (chattr +i)"), ("a", "can only be appended to")] {
        let set = |sign: &str| tool(Command::new("chattr").arg(format!("{sign}{attribute}")).arg(&old));
        set("+");
        let copied = sandbox.run(["f", &to]);
        copied.failed_with(23, &[cause]);
        let (removed, moved, replaced) = (
            sandbox.run(["rm", name]),
            sandbox.run(["mv", name, &format!("{to}/g")]),
            sandbox.run(["mv", other, name]),
        );
        for ran in [&removed, &moved, &replaced] {
            ran.failed_with(11, &[cause]);
        }
        for ran in [&copied, &removed, &moved, &replaced] {
            assert!(!ran.stderr.contains("not permitted"), "{}", ran.stderr);
        }
        assert_eq!(fs::read(&old).unwrap(), b"old");
        set("-");
    }
    sandbox.ok(["f", &to]);
    assert_eq!(fs::read(&old).unwrap(), b"new");
}

/// What is seen there may be only in memory, after an error of the storage: nothing says so.
#[test]
fn destination_that_takes_no_writes_is_never_durable() {
    let sandbox = Sandbox::new();
    sources(&sandbox);
    fs::create_dir(sandbox.path("disks")).unwrap();
    let Some(image) = Image::new(&sandbox.path("disks"), "disk", Kind::Ext4, 64) else { return };
    let to = image.path().join("to");
    let copy = || sandbox.run(["tree/", to.to_str().unwrap(), "--no-clobber", "--json"]).summary();
    assert_eq!(copy()["durable"], true);
    image.remount("ro");
    assert_eq!(copy()["durable"], false);
    image.remount("rw");
    assert_eq!(copy()["durable"], true);
}

/// Names can be made there, and neither changed nor taken away: nothing is written, and nothing stays.
#[test]
fn destination_that_takes_names_and_lets_none_be_changed_is_told_and_left() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    sandbox.write("tree/sub/f", "f");
    fs::create_dir(sandbox.path("disks")).unwrap();
    let Some(image) = Image::new(&sandbox.path("disks"), "disk", Kind::Ext4, 32) else { return };
    let node = Node::start(&sandbox, "disks/disk", &[]);
    let to = image.path().join("to");
    fs::create_dir_all(to.join("sub")).unwrap();
    fs::write(to.join("big"), "old").unwrap();
    let attribute = |change: &str, of: &Path| tool(Command::new("chattr").arg(change).arg(of));
    let (here, there, token) = (to.to_str().unwrap(), node.at("to"), node.token());
    attribute("+a", &to);
    let before = tree::walk(&to);
    for arguments in [&["tree/", here][..], &["tree/big", here], &["tree/", &there, &token], &["tree", here, "-q"]] {
        sandbox.run(arguments).failed_with(11, &["takes new names and lets none be changed"]);
        assert_eq!(tree::walk(&to), before, "{arguments:?}");
        assert_eq!(fs::read(to.join("big")).unwrap(), b"old");
    }
    attribute("-a", &to);
    // Of a directory below only what goes there fails.
    attribute("+a", &to.join("sub"));
    let ran = sandbox.run(["tree/", here]);
    ran.failed_with(23, &["sub", "takes new names and lets none be changed"]);
    assert_eq!(fs::read_dir(to.join("sub")).unwrap().count(), 0);
    assert_eq!(fs::read(to.join("big")).unwrap(), fs::read(from.join("big")).unwrap());
    attribute("-a", &to.join("sub"));
    sandbox.ok(["tree/", here]);
    same_tree(&from, &to);
}

#[test]
fn reader_never_sees_a_mixture_of_the_old_and_the_new() {
    let sandbox = Sandbox::new();
    let versions: Vec<Vec<u8>> = (1..=2).map(|seed| tree::bytes(3 * MIB + 7, seed)).collect();
    for (index, version) in versions.iter().enumerate() {
        sandbox.write(format!("v{index}/file"), version);
    }
    sandbox.write("to/file", &versions[0]);
    let contents = versions.iter().map(|version| watch::content(version)).collect();
    let watcher = Watcher::start(&sandbox.path("to"), Allowed::from([(PathBuf::from("file"), contents)]));
    for round in 0..12 {
        sandbox.ok([format!("v{}/file", (round + 1) % 2), "to/file".to_string()]);
    }
    let seen = watcher.end();
    assert_eq!(seen.violations, Vec::<String>::new());
    assert!(seen.looks > 1, "{seen:?}");
}

#[test]
fn file_system_that_hangs_holds_only_those_who_use_it() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let Some(hung) = faulty(&sandbox, "root/hung", Features::default()) else { return };
    let node = Node::start(&sandbox, "root", &[]);
    hung.hang();
    let mut waiting = Running::start(sandbox.carrack().args(["tree/", &node.at("hung"), &node.token()]));
    wait_until("a transfer hangs", || hung.hung() > 0 || !waiting.is_running());
    assert!(waiting.is_running(), "{}", waiting.end().stderr);
    for round in 0..3 {
        sandbox.ok(["tree/", &node.at(&format!("fine{round}")), &node.token()]);
        same_tree(&from, &sandbox.path(format!("root/fine{round}")));
    }
    assert!(waiting.is_running());
    hung.release();
    let ran = waiting.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    same_tree(&from, hung.path());
}

#[test]
fn limit_of_file_size_is_an_error_of_the_file() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    sandbox.write("to/big", "old");
    let limited = |arguments: &[&str], input: Option<File>| {
        let carrack = sandbox.carrack();
        let mut command = Command::new("prlimit");
        command.arg("--fsize=1000000").arg(carrack.get_program()).args(arguments).current_dir(sandbox.path("."));
        command.env_clear().envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(input.map_or_else(std::process::Stdio::null, Into::into));
        ran(command.output_in_time().unwrap())
    };
    limited(&["tree/", "to"], None).failed_with(23, &["big", "File too large"]);
    limited(&["-", "to/piped"], Some(File::open(from.join("big")).unwrap())).failed_with(23, &["File too large"]);
    assert_eq!(fs::read(sandbox.path("to/big")).unwrap(), b"old");
    assert!(!sandbox.path("to/piped").exists());
    assert_eq!(watch::files(&sandbox.path("to")).len(), 6);
    assert_right_or_old(&from, &sandbox.path("to"), b"old");
    assert_no_parts(&sandbox.path("to"));
}

#[test]
fn source_that_cannot_be_read_at_one_place_costs_that_file() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    let Some(disk) = faulty(&sandbox, "disk", Features { uncached: true, ..Features::default() }) else { return };
    sandbox.ok(["tree/", "disk"]);
    for (name, offset) in [("big", 5 * MIB as u64), ("small2", 9_000)] {
        disk.clear();
        disk.fault_on(name, Call::Read, When::Offset(offset), Fault::Fail(Errno::IO));
        let to = sandbox.path(format!("to-{name}"));
        let ran = sandbox.run(["disk/", to.to_str().unwrap()]);
        assert!(disk.hits() > 0);
        ran.failed_with(23, &[name, "nput/output error", "source"]);
        assert!(!to.join(name).exists());
        assert_eq!(watch::files(&to).len(), 5);
        assert_right_or_old(&from, &to, b"");
        assert_no_parts(&to);
    }
}

#[test]
fn directory_that_cannot_be_listed_is_not_an_empty_one() {
    let sandbox = Sandbox::new();
    sources(&sandbox);
    let node = Node::start(&sandbox, "root", &[]);
    let Some(disk) = faulty(&sandbox, "root/disk", Features::default()) else { return };
    sandbox.ok(["tree", "root/disk/"]);
    for (arguments, codes) in [
        (vec!["disk/tree", "to"], [11, 23]),
        (vec!["ls", "disk/tree"], [11, 23]),
        (vec!["sum", "disk/tree"], [11, 23]),
        (vec!["rm", "-r", "disk/tree"], [11, 23]),
    ] {
        disk.clear();
        disk.fault_on("tree", Call::List, When::Always, Fault::Fail(Errno::IO));
        let located: Vec<String> = arguments
            .iter()
            .map(|word| if word.starts_with("disk") { node.at(word) } else { word.to_string() })
            .collect();
        let ran = sandbox.run(located.iter().map(String::as_str).chain([node.token().as_str()]));
        assert!(codes.contains(&ran.code), "{arguments:?}: {} {}", ran.code, ran.stderr);
        assert!(ran.stderr.contains("nput/output error"), "{arguments:?}: {}", ran.stderr);
        disk.clear();
        same_tree(&sandbox.path("tree"), &disk.path().join("tree"));
    }
}

#[test]
fn file_systems_that_differ_lose_nothing() {
    let sandbox = Sandbox::new();
    let from = sources(&sandbox);
    sandbox.write("tree/caf\u{e9}", "accent");
    sandbox.write("tree/Upper", "case");
    let features = Features {
        folds_case: true,
        decomposes: true,
        whole_seconds: true,
        no_direct: true,
        no_allocate: true,
        ..Features::default()
    };
    let Some(disk) = faulty(&sandbox, "disk", features) else { return };
    for verify in ["wire", "disk"] {
        sandbox.ok([&format!("--verify={verify}"), "tree/", "disk"]);
        for path in watch::files(&from) {
            let name = path.strip_prefix(&from).unwrap();
            assert!(fs::read(disk.path().join(name)).unwrap() == fs::read(&path).unwrap(), "{name:?}");
        }
    }
    if PORTABLE {
        return;
    }
    // One that never replaces by renaming: the two are exchanged instead.
    let Some(strict) = faulty(&sandbox, "strict", Features { rename_refuses: true, ..Features::default() }) else {
        return;
    };
    fs::write(strict.path().join("big"), "old").unwrap();
    sandbox.ok(["tree/", "strict"]);
    assert_eq!(fs::read(strict.path().join("big")).unwrap(), fs::read(from.join("big")).unwrap());
    assert_right_or_old(&from, strict.path(), b"old");
    assert_no_parts(strict.path());
}

#[test]
fn directory_swapped_for_a_link_never_leads_outside() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    tree::many(&sandbox.path("tree/sub/deep"), 20, 2000);
    sandbox.write("tree/sub/big", tree::bytes(MIB + 5, 3));
    let token = node.token();
    let at = |path: &str| node.at(path);
    let operations: [(&str, Vec<String>); 8] = [
        ("copy to", vec!["tree/".into(), at("")]),
        ("copy from", vec![at("sub"), "back/".into()]),
        ("mkdir", vec!["mkdir".into(), "-p".into(), at("sub/new/er")]),
        ("mv", vec!["mv".into(), at("sub/deep/d000/f000001"), at("sub/moved")]),
        ("rm", vec!["rm".into(), "-r".into(), at("sub/deep")]),
        ("ls", vec!["ls".into(), "-R".into(), at("sub")]),
        ("sum", vec!["sum".into(), at("sub/deep")]),
        ("stat", vec!["stat".into(), at("sub/big")]),
    ];
    for (what, arguments) in operations {
        // Outside there is everything that the operation could want, and a mark that must never come in.
        let _ = fs::remove_dir_all(sandbox.path("outside"));
        tool(Command::new("cp").arg("-r").arg(sandbox.path("tree/sub")).arg(sandbox.path("outside")));
        sandbox.write("outside/deep/SECRET", "secret");
        let mut before: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let content = |all: &mut Vec<(PathBuf, Vec<u8>)>| {
            all.extend(watch::files(&sandbox.path("outside")).into_iter().map(|path| {
                let bytes = fs::read(&path).unwrap();
                (path, bytes)
            }));
            all.sort();
        };
        content(&mut before);
        let prepare = || {
            let _ = fs::remove_dir_all(sandbox.path("root/sub"));
            tool(Command::new("cp").arg("-r").arg(sandbox.path("tree/sub")).arg(sandbox.path("root/")));
        };
        let _ = fs::remove_file(sandbox.path("root/sub"));
        prepare();
        let end = Instant::now() + race_time();
        let mut rounds = 0;
        while Instant::now() < end || rounds == 0 {
            let _ = fs::remove_file(sandbox.path("root/bait"));
            let _ = fs::remove_dir_all(sandbox.path("root/bait"));
            symlink(sandbox.path("outside"), sandbox.path("root/bait")).unwrap();
            let racer = Racer::start(&sandbox.path("root/sub"), &sandbox.path("root/bait"));
            let ran = sandbox.run(arguments.iter().map(String::as_str).chain([token.as_str()]));
            drop(racer);
            rounds += 1;
            assert!(!ran.stdout.contains("SECRET"), "{what}: {}", ran.stdout);
            if fs::symlink_metadata(sandbox.path("root/sub")).is_ok_and(|meta| meta.is_symlink()) {
                let _ = fs::remove_file(sandbox.path("root/sub"));
            }
            prepare();
        }
        let mut after = Vec::new();
        content(&mut after);
        assert!(before == after, "{what} changed what is outside, in {rounds} rounds");
        assert!(!tree::walk(&sandbox.path("back")).iter().any(|path| path.ends_with("SECRET")), "{what}");
    }
}
