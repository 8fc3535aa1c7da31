//! Names of one file are names of one file at the destination, too, and the file is sent once: with filters, failures,
//! several sources, several file systems, and whatever stood there.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use carrack_faults::image::{Image, Kind};
use carrack_faults::strace::Inject;

use crate::faults::{NOBODY, open_to_all, under};
use crate::fidelity::judged;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
use crate::support::{Ran, Sandbox, b3sum, is_root, ran, same_tree, tree, wait_until};

fn link(sandbox: &Sandbox, of: &str, name: &str) {
    fs::create_dir_all(sandbox.path(name).parent().unwrap()).unwrap();
    fs::hard_link(sandbox.path(of), sandbox.path(name)).unwrap();
}

fn names(sandbox: &Sandbox, path: &str) -> u64 {
    sandbox.path(path).symlink_metadata().unwrap().nlink()
}

#[track_caller]
fn is_one(sandbox: &Sandbox, paths: &[&str]) {
    let inodes: Vec<u64> = paths.iter().map(|path| sandbox.inode(path)).collect();
    assert!(inodes.iter().all(|inode| *inode == inodes[0]), "{paths:?}: {inodes:?}");
}

fn counts(ran: &Ran, what: &[&str]) -> Vec<u64> {
    let summary = ran.summary();
    what.iter().map(|name| summary[name].as_u64().unwrap()).collect()
}

/// A small file with three names, a large one with two, one alone; a link with two names.
fn grouped(sandbox: &Sandbox) {
    sandbox.write("in/a", "small");
    link(sandbox, "in/a", "in/d/a2");
    link(sandbox, "in/a", "in/z/e/a3");
    sandbox.write("in/d/large", tree::bytes(3 << 20, 1));
    link(sandbox, "in/d/large", "in/large2");
    sandbox.write("in/alone", "alone");
    symlink("a", sandbox.path("in/l")).unwrap();
    link(sandbox, "in/l", "in/d/l2");
}

const SMALL: [&str; 3] = ["a", "d/a2", "z/e/a3"];

/// A sync keeps them by itself, a copy where that is asked for; both say so, and the second sync has nothing to do.
#[test]
fn names_of_one_file_are_one_at_the_destination_and_sent_once() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    let first = sandbox.ok(["sync", "--json", "in/", "synced"]);
    let of = ["files", "hard_links", "symlinks", "bytes"];
    assert_eq!(counts(&first, &of), [3, 4, 1, 5 + 5 + (3 << 20)]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("synced"), ""), "");
    let again = sandbox.ok(["sync", "--json", "in/", "synced"]);
    assert_eq!(counts(&again, &["files", "hard_links", "files_same"]), [0, 0, 8]);
    let copied = sandbox.ok(["copy", "-H", "in/", "copied"]);
    assert!(copied.stderr.contains("3 files, 1 symbolic link, 4 directories, 4 hard links, "), "{}", copied.stderr);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("copied"), ""), "");
    for (verb, flag, to) in [("copy", "--no-progress", "plain"), ("sync", "--no-hard-links", "apart")] {
        let apart = sandbox.ok([verb, flag, "in/", to]);
        assert!(apart.stderr.contains("hard link"), "{}", apart.stderr);
        assert_eq!(names(&sandbox, &format!("{to}/a")), 1);
        same_tree(&sandbox.path("in"), &sandbox.path(to));
    }
    // What is itemized is what rsync would say, and a dry run says the same.
    let told = |words: &[&str], to: &str| {
        let ran = sandbox.ok(["sync", "-i", "in/", to].iter().chain(words).copied());
        let mut lines: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let dry = told(&["-n"], "itemized");
    assert_eq!(dry, told(&[], "itemized"));
    let links: Vec<_> = dry.iter().filter(|line| line.starts_with('h')).collect();
    assert_eq!(links.len(), 4);
    assert!(
        links.iter().filter(|line| line.starts_with("hf+++++++++ ") && line.contains(" => ")).count() == 3,
        "{dry:?}"
    );
}

/// What stood there: names apart, names of other files, of each other, other kinds, older contents.
#[test]
fn whatever_stood_there_becomes_names_of_one_file() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    let standing: [(&str, &dyn Fn()); 8] = [
        ("apart and the same", &|| drop(sandbox.ok(["sync", "--no-hard-links", "in/", "out"]))),
        ("apart, one of them another", &|| {
            sandbox.ok(["sync", "--no-hard-links", "in/", "out"]);
            sandbox.write("out/d/a2", "another");
        }),
        ("one, with other content", &|| {
            sandbox.write("out/a", "other content");
            link(&sandbox, "out/a", "out/d/a2");
            link(&sandbox, "out/a", "out/z/e/a3");
        }),
        ("one with names that are another file's", &|| {
            sandbox.write("out/alone", "alone");
            link(&sandbox, "out/alone", "out/d/a2");
            link(&sandbox, "out/alone", "out/d/large");
        }),
        ("one with a name that is not copied", &|| {
            sandbox.ok(["sync", "in/", "out"]);
            link(&sandbox, "out/a", "elsewhere");
            fs::set_permissions(sandbox.path("out/a"), Permissions::from_mode(0o600)).unwrap();
        }),
        ("links and directories", &|| {
            fs::create_dir_all(sandbox.path("out/d")).unwrap();
            symlink("nowhere", sandbox.path("out/d/a2")).unwrap();
            symlink("nowhere", sandbox.path("out/a")).unwrap();
        }),
        ("two of three", &|| {
            sandbox.ok(["sync", "in/", "out"]);
            fs::remove_file(sandbox.path("out/d/a2")).unwrap();
        }),
        ("the first is gone", &|| {
            sandbox.ok(["sync", "in/", "out"]);
            fs::remove_file(sandbox.path("out/a")).unwrap();
        }),
    ];
    for (what, prepare) in standing {
        prepare();
        let kept = sandbox.path("elsewhere").exists().then(|| fs::read(sandbox.path("elsewhere")).unwrap());
        let dry = sandbox.ok(["sync", "-n", "-i", "in/", "out"]);
        let ran = sandbox.ok(["sync", "-i", "--json", "in/", "out"]);
        assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "", "{what}: {}", ran.stdout);
        let changed = ran.stdout.lines().filter(|line| line.contains("\"event\":\"item\"")).count();
        assert!(
            !dry.stdout.is_empty() && changed <= dry.stdout.lines().count() + 1,
            "{what}: {}{}",
            dry.stdout,
            ran.stdout
        );
        let again = sandbox.ok(["sync", "-n", "-i", "in/", "out"]);
        assert_eq!(again.stdout, "", "{what}");
        if let Some(kept) = kept {
            let mode = fs::metadata(sandbox.path("elsewhere")).unwrap().mode() & 0o777;
            assert_eq!((fs::read(sandbox.path("elsewhere")).unwrap(), mode), (kept, 0o600), "{what}");
            fs::remove_file(sandbox.path("elsewhere")).unwrap();
        }
        fs::remove_dir_all(sandbox.path("out")).unwrap();
    }
}

/// A name that has become another file's, and names that are no longer one.
#[test]
fn names_that_change_at_the_source_change_at_the_destination() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    sandbox.ok(["sync", "--delete", "in/", "out"]);
    let alone = sandbox.inode("out/alone");
    let steps: [&dyn Fn(); 4] = [
        &|| {
            fs::remove_file(sandbox.path("in/d/a2")).unwrap();
            link(&sandbox, "in/alone", "in/d/a2");
        },
        &|| {
            fs::remove_file(sandbox.path("in/a")).unwrap();
            sandbox.write("in/a", "of its own");
        },
        &|| fs::remove_file(sandbox.path("in/large2")).unwrap(),
        &|| {
            fs::rename(sandbox.path("in/d"), sandbox.path("in/renamed")).unwrap();
            sandbox.write("in/alone", "changed for both");
        },
    ];
    for (number, step) in steps.iter().enumerate() {
        step();
        sandbox.ok(["sync", "--delete", "in/", "out"]);
        assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "", "step {number}");
        assert_eq!(sandbox.ok(["sync", "--delete", "-n", "-i", "in/", "out"]).stdout, "", "step {number}");
        if number == 0 {
            assert_eq!(sandbox.inode("out/d/a2"), alone, "nothing was sent for it");
        }
    }
}

/// A first name that is left out, cannot be read, stays as it was, or comes from another source.
#[test]
fn names_find_each_other_whatever_becomes_of_the_first() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    sandbox.ok(["sync", "--exclude=/a", "in/", "without"]);
    is_one(&sandbox, &["without/d/a2", "without/z/e/a3"]);
    assert!(!sandbox.path("without/a").exists());
    // A group of two sources, of which one is a single file.
    sandbox.ok(["copy", "-H", "in/d", "in/a", "in/z", "several/"]);
    is_one(&sandbox, &["several/d/a2", "several/a", "several/z/e/a3"]);
    // What stays as it was is nothing that others become links to.
    sandbox.write("kept/a", "older");
    let kept = sandbox.run(["copy", "-H", "--no-clobber", "in/", "kept"]);
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    assert_eq!(fs::read_to_string(sandbox.path("kept/a")).unwrap(), "older");
    is_one(&sandbox, &["kept/d/a2", "kept/z/e/a3"]);
    assert_eq!(fs::read_to_string(sandbox.path("kept/d/a2")).unwrap(), "small");
    // Of those that exist alone.
    sandbox.write("only/d/a2", "old");
    sandbox.write("only/z/e/a3", "old");
    sandbox.ok(["sync", "--existing", "in/", "only"]);
    is_one(&sandbox, &["only/d/a2", "only/z/e/a3"]);
    assert!(!sandbox.path("only/a").exists());
    // A directory stands in the way of the first.
    fs::create_dir_all(sandbox.path("way/a/full")).unwrap();
    let way = sandbox.run(["sync", "in/", "way"]);
    assert_eq!(way.code, 23, "{}", way.stderr);
    is_one(&sandbox, &["way/d/a2", "way/z/e/a3"]);
}

/// Who is not root copies the names that they may read of a file that they may not: none.
#[test]
fn file_that_cannot_be_read_fails_by_every_name() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    fs::set_permissions(sandbox.path("in/a"), Permissions::from_mode(0o000)).unwrap();
    open_to_all(&sandbox);
    fs::create_dir(sandbox.path("theirs")).unwrap();
    std::os::unix::fs::chown(sandbox.path("theirs"), Some(65534), Some(65534)).unwrap();
    let ran = under(&sandbox, &NOBODY, &["sync", "in/", "theirs/out"]);
    assert_eq!(ran.code, 23, "{}", ran.stderr);
    assert!(ran.stderr.contains("3 items failed"), "{}", ran.stderr);
    is_one(&sandbox, &["theirs/out/d/large", "theirs/out/large2"]);
}

/// The destination is two file systems: what is on each is one file there.
#[test]
fn names_on_two_file_systems_are_one_on_each() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(other) = Image::new(&sandbox.path(""), "out/other", Kind::Ext4, 64) else { return };
    sandbox.write("in/a", "small");
    for name in ["in/b", "in/other/c", "in/other/d", "in/other/e/f", "in/z"] {
        link(&sandbox, "in/a", name);
    }
    sandbox.write("in/large", tree::bytes(2 << 20, 2));
    for name in ["in/other/large", "in/other/large2"] {
        link(&sandbox, "in/large", name);
    }
    let ran = sandbox.ok(["sync", "--json", "in/", "out"]);
    assert_eq!(counts(&ran, &["files", "hard_links"]), [4, 5], "{}", ran.stdout);
    is_one(&sandbox, &["out/a", "out/b", "out/z"]);
    is_one(&sandbox, &["out/other/c", "out/other/d", "out/other/e/f"]);
    is_one(&sandbox, &["out/other/large", "out/other/large2"]);
    let again = sandbox.ok(["sync", "--json", "in/", "out"]);
    assert_eq!(counts(&again, &["files", "hard_links", "bytes"]), [0, 0, 0], "{}", again.stdout);
    drop(other);
}

/// Where no hard links can be made each name is a file of its own, which is counted; and is sent once.
#[test]
fn file_system_without_hard_links_gets_files_and_says_so() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    for (error, to) in [("EPERM", "eperm"), ("EOPNOTSUPP", "unsupported"), ("EMLINK", "many")] {
        let mut command = sandbox.carrack();
        command.args(["sync", "--json", "in/", to]);
        let inject = Inject::new().error("linkat", error, "1+");
        let first = ran(inject.around(&command).output_in_time().unwrap());
        assert_eq!(first.code, 0, "{}", first.stderr);
        assert_eq!(counts(&first, &["files", "hard_links"]), [6, 0], "{}", first.stdout);
        assert_eq!(judged(&sandbox.path("in"), &sandbox.path(to), "hard-links"), "");
        assert!(first.stdout.contains("\"hard-link\""), "{}", first.stdout);
        command.arg("--strict");
        let again = ran(inject.around(&command).output_in_time().unwrap());
        assert_eq!(counts(&again, &["files", "bytes"]), [0, 0], "{}", again.stdout);
        assert_eq!((again.code, again.summary()["exit_code"].as_u64()), (23, Some(23)), "{}", again.stderr);
    }
    sandbox.ok(["sync", "--strict", "in/", "eperm"]);
}

/// What was moved is gone by every name, and only what was proved to be there.
#[test]
fn names_that_are_moved_go_at_the_source() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    let expected = b3sum(&sandbox.path("in/d/large"));
    sandbox.ok(["copy", "-H", "--remove-source-files", "in/", "out"]);
    is_one(&sandbox, &["out/d/large", "out/large2"]);
    assert_eq!(b3sum(&sandbox.path("out/large2")), expected);
    for name in ["in/a", "in/d/a2", "in/z/e/a3", "in/d/large", "in/large2", "in/l"] {
        assert!(sandbox.path(name).symlink_metadata().is_err(), "{name}");
    }
    // What was only found to have the same size and time is not proved, and neither is a new name of it.
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    sandbox.ok(["sync", "in/", "out"]);
    fs::remove_file(sandbox.path("out/d/a2")).unwrap();
    sandbox.ok(["sync", "--remove-source-files", "in/", "out"]);
    assert!(SMALL.iter().all(|name| sandbox.path("in").join(name).exists()));
    is_one(&sandbox, &["out/a", "out/d/a2"]);
}

/// A manifest names each name with the digest of its file.
#[test]
fn manifest_has_every_name() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    sandbox.ok(["copy", "-H", "--manifest=list", "in/", "out"]);
    let manifest = fs::read_to_string(sandbox.path("list")).unwrap();
    let digest = b3sum(&sandbox.path("in/a"));
    assert_eq!(manifest.lines().filter(|line| line.starts_with(&digest)).count(), 3, "{manifest}");
    assert_eq!(manifest.lines().count(), 6, "{manifest}");
}

/// Reference directories, old files that are kept, and names that are deleted.
#[test]
fn names_of_one_file_go_with_references_backups_and_deletion() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    sandbox.ok(["sync", "in/", "full"]);
    for (flag, files) in [("--link-dest=../full", 0), ("--copy-dest=../full", 0), ("--compare-dest=../full", 0)] {
        let to = flag.split('=').next().unwrap().trim_start_matches('-');
        let ran = sandbox.ok(["sync", "--json", flag, "in/", to]);
        assert_eq!(counts(&ran, &["files"]), [files], "{flag}: {}", ran.stdout);
        assert!(!ran.stdout.contains("\"hard-link\""), "{flag}: {}", ran.stdout);
        if flag.starts_with("--compare") {
            assert!(!sandbox.path(to).join("a").exists());
        } else {
            assert_eq!(judged(&sandbox.path("in"), &sandbox.path(to), "hard-links"), "", "{flag}");
            is_one(&sandbox, &SMALL.map(|name| format!("{to}/{name}")).each_ref().map(|path| &path[..]));
        }
    }
    is_one(&sandbox, &["full/a", "link-dest/a", "link-dest/z/e/a3"]);
    sandbox.write("in/a", "another");
    fs::remove_file(sandbox.path("in/large2")).unwrap();
    sandbox.ok(["sync", "--delete", "--backup", "--backup-dir=.old", "in/", "copy-dest"]);
    is_one(&sandbox, &["copy-dest/a", "copy-dest/d/a2", "copy-dest/z/e/a3"]);
    assert_eq!(fs::read_to_string(sandbox.path("copy-dest/a")).unwrap(), "another");
    for name in SMALL {
        assert_eq!(fs::read_to_string(sandbox.path("copy-dest/.old").join(name)).unwrap(), "small", "{name}");
    }
    assert!(!sandbox.path("copy-dest/large2").exists() && sandbox.path("copy-dest/.old/large2").exists());
    assert_eq!(fs::read_to_string(sandbox.path("full/a")).unwrap(), "small");
    // A tree that was renamed: names find what only the destination has.
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    sandbox.ok(["sync", "in/", "out"]);
    fs::rename(sandbox.path("in/d"), sandbox.path("in/renamed")).unwrap();
    let ran = sandbox.ok(["sync", "--json", "--delete", "--detect-renames", "in/", "out"]);
    assert_eq!(counts(&ran, &["bytes"]), [0], "{}", ran.stdout);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
}

/// A copy that was killed goes on: what has its name is not sent again though it has got others since.
#[test]
fn names_that_a_killed_copy_left_are_known() {
    let sandbox = Sandbox::new();
    for number in 0..40 {
        sandbox.write(format!("in/f{number:02}"), tree::bytes(20_000, number));
        link(&sandbox, &format!("in/f{number:02}"), &format!("in/second/f{number:02}"));
        link(&sandbox, &format!("in/f{number:02}"), &format!("in/third/f{number:02}"));
    }
    wait_until("the files have settled", || {
        let changed = fs::metadata(sandbox.path("in/f00")).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        now > changed.ctime() as u64 + 3
    });
    sandbox.write("in/z/last", tree::bytes(8 << 20, 2));
    let words = ["copy", "-H", "in/", "out", "--bwlimit=2M", "--block=64K"];
    let running = Running::start(sandbox.carrack().args(words));
    // Of all files, and once more of each for each further name that it has got.
    wait_until("the marker tells of them", || sandbox.marked("out").is_some_and(|marker| marker.known_count() >= 120));
    signal(running.id(), "KILL");
    running.end();
    fs::remove_file(sandbox.path("out/third/f07")).unwrap();
    let again = sandbox.ok(["copy", "-H", "--json", "in/", "out"]);
    // One has lost a name since, and is another for all that is known.
    assert_eq!(counts(&again, &["files_resumed", "hard_links", "files_same"]), [39, 2, 78], "{}", again.stdout);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
    assert_eq!(sandbox.parts("out"), Vec::<std::path::PathBuf>::new());
}

/// FIFOs, sockets and devices are made where that is asked for, and only there.
#[test]
fn special_files_are_made_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("in")).unwrap();
    let made = Command::new("mkfifo").arg(sandbox.path("in/fifo")).status().unwrap();
    assert!(made.success());
    let socket = std::os::unix::net::UnixListener::bind(sandbox.path("in/socket")).unwrap();
    link(&sandbox, "in/fifo", "in/fifo2");
    let plain = sandbox.run(["sync", "in/", "plain"]);
    assert_eq!(plain.code, 23, "{}", plain.stderr);
    assert!(plain.stderr.contains("--specials"), "{}", plain.stderr);
    assert!(!sandbox.path("plain/fifo").exists());
    sandbox.ok(["sync", "--specials", "in/", "out"]);
    let kind = |path: &str| sandbox.path(path).symlink_metadata().unwrap().file_type();
    assert!(kind("out/fifo").is_fifo() && kind("out/socket").is_socket());
    is_one(&sandbox, &["out/fifo", "out/fifo2"]);
    assert_eq!(sandbox.ok(["sync", "--specials", "-n", "-i", "in/", "out"]).stdout, "");
    // What stands in the place of another kind is replaced, both ways; and goes where the source has it no longer.
    fs::remove_file(sandbox.path("in/fifo")).unwrap();
    sandbox.write("in/fifo", "a file");
    drop(socket);
    fs::remove_file(sandbox.path("in/socket")).unwrap();
    assert!(Command::new("mkfifo").arg(sandbox.path("in/socket")).status().unwrap().success());
    fs::set_permissions(sandbox.path("in/fifo2"), Permissions::from_mode(0o604)).unwrap();
    fs::remove_file(sandbox.path("in/fifo2")).unwrap();
    sandbox.ok(["sync", "-D", "--delete", "in/", "out"]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
    assert!(kind("out/fifo").is_file() && kind("out/socket").is_fifo());
    if !is_root() {
        return;
    }
    let device = |path: &Path, kind: &str, numbers: [&str; 2]| {
        assert!(Command::new("mknod").arg(path).arg(kind).args(numbers).status().unwrap().success());
    };
    device(&sandbox.path("in/null"), "c", ["1", "3"]);
    device(&sandbox.path("in/loop"), "b", ["7", "99"]);
    fs::set_permissions(sandbox.path("in/null"), Permissions::from_mode(0o622)).unwrap();
    sandbox.ok(["sync", "-aX", "in/", "out"]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
    fs::remove_file(sandbox.path("in/null")).unwrap();
    device(&sandbox.path("in/null"), "c", ["1", "5"]);
    let told = sandbox.ok(["sync", "-aX", "-i", "in/", "out"]);
    assert!(told.stdout.contains(" null"), "{}", told.stdout);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
    // Who may make no device goes without, and is told so; all else is there, and what is to be deleted is.
    open_to_all(&sandbox);
    fs::create_dir(sandbox.path("theirs")).unwrap();
    std::os::unix::fs::chown(sandbox.path("theirs"), Some(65534), Some(65534)).unwrap();
    let theirs = under(&sandbox, &NOBODY, &["sync", "-D", "in/", "theirs/out"]);
    assert_eq!(theirs.code, 0, "{}", theirs.stderr);
    assert!(theirs.stderr.contains("2 devices, FIFOs and sockets"), "{}", theirs.stderr);
    assert!(kind("theirs/out/socket").is_fifo() && !sandbox.path("theirs/out/null").exists());
    let node = Node::start(&sandbox, "served", &[]);
    sandbox.ok(["sync", "-D", "in/", &node.at("to/"), &node.token()]);
    sandbox.write("served/to/only-there", "x");
    let ran = sandbox.ok(["sync", "-D", "--delete", "in/", &node.at("to/"), &node.token()]);
    assert!(!sandbox.path("served/to/only-there").exists(), "{}", ran.stderr);
    assert!(kind("served/to/socket").is_fifo() && !sandbox.path("served/to/null").exists());
    // The list of one counts.
    let list = crate::fidelity::list([6, 6, 0, 6, 0], 1000);
    crate::fidelity::set(&sandbox.path("in/socket"), crate::fidelity::ACCESS, &list);
    sandbox.ok(["sync", "-aX", "in/", "out"]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
    let plain = sandbox.ok(["sync", "-D", "in/", "bits"]);
    assert!(plain.stderr.contains("1 ACL"), "{}", plain.stderr);
    // One that a killed copy left under its hidden name is no item.
    let left = sandbox.path("in/.x.carrack-0a1b2c3d.part");
    assert!(Command::new("mkfifo").arg(&left).status().unwrap().success());
    sandbox.ok(["sync", "-D", "in/", "without"]);
    assert!(!sandbox.path("without/.x.carrack-0a1b2c3d.part").exists() && kind("without/socket").is_fifo());
}

/// What a peer names of which a link is to be made has to be below what was asked for, and still be what was sent.
#[test]
fn names_of_a_file_that_is_another_by_now_are_sent() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    // The first name is another file's at the destination when the others become links to it.
    let mut command = sandbox.carrack();
    command.args(["copy", "-H", "--json", "in/", "out"]);
    let slow = Inject::new().delay("linkat", 1_500_000, "1+");
    let mut running = Running::start(&mut slow.around(&command));
    wait_until("the first name is there", || sandbox.path("out/a").exists() && sandbox.path("out/d/large").exists());
    sandbox.write("out/a-new", "another file");
    fs::rename(sandbox.path("out/a-new"), sandbox.path("out/a")).unwrap();
    assert!(running.is_running());
    let ran = running.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for name in ["out/d/a2", "out/z/e/a3"] {
        assert_eq!(fs::read_to_string(sandbox.path(name)).unwrap(), "small", "{name}");
    }
}

/// Written over where it stands is only what has one name: of a file with several, all come anew.
#[test]
fn files_with_several_names_are_not_written_in_place() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    sandbox.ok(["sync", "--inplace", "in/", "out"]);
    link(&sandbox, "out/large2", "elsewhere");
    let before = b3sum(&sandbox.path("elsewhere"));
    sandbox.write("in/d/large", tree::bytes(3 << 20, 5));
    sandbox.ok(["sync", "--inplace", "in/", "out"]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
    assert_eq!(b3sum(&sandbox.path("elsewhere")), before);
    // Nor is another time given to all of them.
    let later = SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::open(sandbox.path("in/a")).unwrap().set_modified(later).unwrap();
    link(&sandbox, "out/a", "elsewhere2");
    let time = sandbox.modified("elsewhere2");
    sandbox.ok(["sync", "-c", "in/", "out"]);
    assert_eq!(sandbox.modified("elsewhere2"), time);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
}

/// Where a share of what both sides have may be deleted, names of one file count like all others.
#[test]
fn names_of_one_file_count_where_a_share_may_be_deleted() {
    let sandbox = Sandbox::new();
    for number in 0..20 {
        sandbox.write(format!("in/f{number}"), "x");
        link(&sandbox, &format!("in/f{number}"), &format!("in/second/f{number}"));
    }
    sandbox.ok(["sync", "in/", "out"]);
    sandbox.write("out/only-there", "x");
    sandbox.ok(["sync", "--delete", "--max-delete=10%", "in/", "out"]);
    assert!(!sandbox.path("out/only-there").exists());
}

/// A dry run tells what the copy does, also of what a reference directory has, and without a comparison.
#[test]
fn dry_runs_tell_of_names_as_the_copy_does() {
    let sandbox = Sandbox::new();
    grouped(&sandbox);
    sandbox.ok(["sync", "in/", "full"]);
    sandbox.write("in/new", "new");
    link(&sandbox, "in/new", "in/d/new2");
    for flags in [&["sync", "--link-dest=../full"][..], &["sync", "--compare-dest=../full"], &["copy", "-H"]] {
        let told = |more: &[&str]| {
            let ran = sandbox.ok(flags.iter().chain(&["-i", "in/", "out"]).chain(more).copied());
            let mut lines: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let dry = told(&["-n"]);
        assert_eq!(dry, told(&[]), "{flags:?}");
        assert!(dry.iter().any(|line| line.starts_with("hf")), "{dry:?}");
        fs::remove_dir_all(sandbox.path("out")).unwrap();
    }
}
