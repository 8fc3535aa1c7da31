//! `carrack sync`: what is sent, what is skipped, what is deleted, and what never is.

mod asked;
mod chosen;
mod clashing;
mod first;
mod itemized;
mod kept_dest;
mod links;
mod listed;
mod mounted;
mod oracle;
mod places;
#[cfg(feature = "service")]
mod races;
mod relative;
mod removal;
mod renames;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use carrack_faults::fuse::Features;

use crate::disk::faulty;
use crate::faults::{Mounted, NOBODY, content, open_to_all, under};
use crate::support::node::Node;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, is_root, mode, same_tree, tree, wait_until};

/// Two directories with three files, a link and a directory; the second is a copy of the first.
fn synced(sandbox: &Sandbox) {
    for (name, content) in [("src/a", "one"), ("src/d/b", "two"), ("src/d/e/c", "three")] {
        sandbox.write(name, content);
    }
    symlink("a", sandbox.path("src/link")).unwrap();
    sandbox.ok(["sync", "src/", "dst"]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
}

pub fn numbers(ran: &Ran, names: &[&str]) -> Vec<u64> {
    let summary = ran.summary();
    names.iter().map(|name| summary[name].as_u64().unwrap_or_else(|| panic!("{name}: {summary}"))).collect()
}

fn set_mtime(path: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[test]
fn second_sync_sends_nothing_and_a_third_what_differs() {
    let sandbox = Sandbox::new();
    synced(&sandbox);
    let again = sandbox.ok(["sync", "src/", "dst", "--json"]);
    assert_eq!(numbers(&again, &["files", "bytes", "files_same", "bytes_same", "files_failed"]), [0, 0, 4, 11, 0]);
    // Another size, another time, other permissions, and something new.
    sandbox.write("src/a", "other");
    set_mtime(&sandbox.path("src/d/b"), 1_000_000_000);
    fs::set_permissions(sandbox.path("src/d/e/c"), Permissions::from_mode(0o600)).unwrap();
    sandbox.write("src/d/new", "new");
    let third = sandbox.ok(["sync", "src/", "dst", "--json"]);
    assert_eq!(numbers(&third, &["files", "files_same", "attributes_set"]), [3, 2, 1]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    assert_eq!(mode(&sandbox.path("dst/d/e/c")), 0o600);
}

/// An older time is another time: a file restored from a backup is sent.
#[test]
fn older_file_is_sent_and_with_update_is_not() {
    let sandbox = Sandbox::new();
    let (from, to) = (sandbox.write("src/f", "from backup"), sandbox.write("dst/f", "written later"));
    set_mtime(&from, 1_000_000_000);
    set_mtime(&to, 1_500_000_000);
    for verb in ["sync", "copy"] {
        let kept = sandbox.ok([verb, "src/", "dst", "-u", "--json"]);
        assert_eq!(numbers(&kept, &["files", "files_kept"]), [0, 1], "{verb}");
        assert_eq!(fs::read(&to).unwrap(), b"written later");
    }
    sandbox.ok(["sync", "src/", "dst"]);
    assert_eq!(fs::read(&to).unwrap(), b"from backup");
    // Of one time and another size it is replaced, by copy too; of one size it is the same.
    fs::write(&to, "longer than what the source has").unwrap();
    set_mtime(&to, 1_000_000_000);
    sandbox.ok(["copy", "src/", "dst", "-u"]);
    assert_eq!(fs::read(&to).unwrap(), b"from backup");
    let same = sandbox.ok(["copy", "src/", "dst", "-u", "--json"]);
    assert_eq!(numbers(&same, &["files", "files_same"]), [0, 1]);
}

#[test]
fn levels_say_what_is_the_same() {
    let sandbox = Sandbox::new();
    // Of one size, one content and another time; of one size and another content and time.
    for (name, there) in [("x", "same"), ("y", "diff")] {
        sandbox.write(format!("src/{name}"), "same");
        set_mtime(&sandbox.write(format!("dst/{name}"), there), 1_000_000_000);
    }
    let sent = |level: &[&str]| {
        let with = |more: &[&str]| {
            let ran = sandbox.ok([&["sync", "-n", "src/", "dst", "--json"], level, more].concat());
            numbers(&ran, &["files", "files_same"])
        };
        let plain = with(&[]);
        assert_eq!(with(&["--delete"]), plain, "{level:?}");
        plain
    };
    assert_eq!(sent(&["--compare", "size,mtime"]), [2, 0]);
    assert_eq!(sent(&["--size-only"]), [0, 2]);
    assert_eq!(sent(&["-I"]), [2, 0]);
    assert_eq!(sent(&["-c"]), [1, 1]);
    assert_eq!(sent(&["-c", "-u"]), [1, 1]);
    assert_eq!(sent(&["--no-clobber"]), [0, 0]);
    assert_eq!(sent(&["--modify-window", "86400"]), [2, 0], "it is years that they are apart");
    sandbox.run(["sync", "src/", "dst", "-c", "-I"]).failed_with(2, &["--checksum", "--ignore-times"]);
}

/// A dry run makes nothing, not even the destination, and says what would be done.
#[test]
fn plan_writes_nothing() {
    let sandbox = Sandbox::new();
    synced(&sandbox);
    sandbox.write("src/new", "new");
    fs::remove_file(sandbox.path("src/a")).unwrap();
    let before = content(&sandbox.path("dst"));
    let planned = sandbox.ok(["sync", "-n", "-v", "--delete", "src/", "dst"]);
    for line in ["new: new", "only there: a", "would copy 1 file", "would delete: 1 item, 3 bytes"] {
        assert!(planned.stderr.contains(line), "{line}: {}", planned.stderr);
    }
    assert_eq!(content(&sandbox.path("dst")), before);
    let fresh = sandbox.ok(["sync", "-n", "--delete", "-b", "--json", "src/", "fresh"]);
    assert_eq!(numbers(&fresh, &["files", "files_same"]), [3, 0]);
    assert!(!sandbox.path("fresh").exists());
    let counted = sandbox.ok(["sync", "--json", "--delete", "src/", "dst"]);
    assert_eq!(numbers(&counted, &["files", "items_deleted", "bytes_deleted"]), [1, 1, 3]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
}

#[test]
fn without_delete_nothing_goes_and_with_it_all_that_only_the_destination_has() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    synced(&sandbox);
    sandbox.ok(["sync", "src/", &node.at("dst"), &node.token()]);
    for to in ["dst", &node.at("dst")] {
        let place = if to == "dst" { sandbox.path("dst") } else { sandbox.path("root/dst") };
        let only = place.join("only/deep/file");
        fs::create_dir_all(only.parent().unwrap()).unwrap();
        fs::write(&only, "only there").unwrap();
        fs::write(place.join("d/only"), "x").unwrap();
        symlink("/etc/passwd", place.join("only/out")).unwrap();
        let token = node.token();
        let with = |more: &[&str]| {
            let token = (to != "dst").then_some(token.as_str());
            [&["sync", "src/", to, "--json"], more]
                .concat()
                .into_iter()
                .chain(token)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        sandbox.ok(with(&[]));
        assert!(only.exists());
        let deleted = sandbox.ok(with(&["--delete"]));
        assert_eq!(numbers(&deleted, &["items_deleted", "items_only_there"]), [5, 0]);
        same_tree(&sandbox.path("src"), &place);
    }
}

/// The listing of the source may miss what is replaced or made meanwhile. What a rule leaves out does not count.
#[test]
fn what_comes_to_the_source_meanwhile_is_not_deleted() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("src/.rules", "- out\n");
    for (to, place) in [("dst".to_owned(), "dst"), (node.at("dst"), "root/dst")] {
        sandbox.write("src/large", vec![7; 4 << 20]);
        let there = ["later", "out", "only"].map(|name| sandbox.write(Path::new(place).join(name), "x"));
        let mut command = sandbox.carrack();
        command.args([
            "sync",
            "--delete-excluded",
            "--filter=dir-merge .rules",
            "--bwlimit=4MB",
            "--json",
            "src/",
            &to,
        ]);
        let running = Running::start(command.arg(node.token()));
        wait_until("the large file is on its way", || !sandbox.parts(place).is_empty());
        let here = ["later", "out"].map(|name| sandbox.write(Path::new("src").join(name), "x"));
        let ran = running.end();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(numbers(&ran, &["items_deleted", "items_only_there"]), [2, 0]);
        assert_eq!(there.map(|path| path.exists()), [true, false, false], "{to}");
        here.iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}

/// Whatever failed at the source may be what the destination has.
#[test]
fn nothing_is_deleted_after_an_error() {
    let sandbox = Sandbox::new();
    if !is_root() {
        return;
    }
    synced(&sandbox);
    sandbox.write("dst/only", "x");
    open_to_all(&sandbox);
    for path in tree::walk(&sandbox.path(".")).into_iter().chain([sandbox.path("src"), sandbox.path("dst")]) {
        lchown(path, Some(65534), Some(65534)).unwrap();
    }
    for (path, mode) in [("src/d/e", 0o000), ("src/a", 0o000)] {
        let path = sandbox.path(path);
        let before = fs::metadata(&path).unwrap().permissions();
        // Of another size, so that it has to be read.
        if path.is_file() {
            fs::write(&path, "to be read").unwrap();
        }
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let ran = under(&sandbox, &NOBODY, &["sync", "--delete", "--json", "src/", "dst"]);
        assert_eq!(ran.code, 23, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(numbers(&ran, &["items_deleted", "items_only_there"])[0], 0);
        assert!(ran.summary()["undeleted"]["message"].as_str().unwrap().contains("nothing was deleted"));
        assert!(sandbox.path("dst/only").exists() && sandbox.path("dst/d/e/c").exists());
        fs::set_permissions(&path, before).unwrap();
    }
    // In directories that could be listed it may, where that was asked for.
    fs::set_permissions(sandbox.path("src/d/e"), Permissions::from_mode(0o000)).unwrap();
    let only = sandbox.write("dst/d/e/only", "x");
    lchown(&only, Some(65534), Some(65534)).unwrap();
    let ran = under(&sandbox, &NOBODY, &["sync", "--delete", "--ignore-errors", "src/", "dst"]);
    fs::set_permissions(sandbox.path("src/d/e"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(ran.code, 23);
    assert!(!sandbox.path("dst/only").exists() && sandbox.path("dst/d/e/only").exists());
}

#[test]
fn guards_keep_an_empty_source_and_too_many_deletions_from_doing_harm() {
    let sandbox = Sandbox::new();
    synced(&sandbox);
    fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.run(["sync", "--delete", "empty/", "dst"]).failed_with(23, &["the source is empty", "--allow-empty"]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    // That it is there is nothing that it holds.
    sandbox.write("named/empty/a", "kept");
    for flags in [&["--delete"][..], &["--delete-before"], &["--delete", "--detect-renames"]] {
        let refused = sandbox.run([&["sync", "--yes", "empty", "named"], flags].concat());
        refused.failed_with(23, &["the source is empty", "--allow-empty"]);
        assert!(sandbox.path("named/empty/a").exists(), "{flags:?}");
    }
    for name in ["x", "y", "z"] {
        sandbox.write(format!("dst/{name}"), name);
    }
    let refused = sandbox.run(["sync", "--delete", "--max-delete", "2", "src/", "dst"]);
    refused.failed_with(25, &["3 items would be deleted, and at most 2 may be"]);
    assert!(["x", "y", "z"].iter().all(|name| sandbox.path("dst").join(name).exists()));
    sandbox.run(["sync", "--delete", "--max-delete", "2,partial", "src/", "dst"]).failed_with(25, &["at most 2"]);
    assert_eq!(["x", "y", "z"].iter().filter(|name| sandbox.path("dst").join(name).exists()).count(), 1);
    sandbox.ok(["sync", "--delete", "--max-delete", "1", "src/", "dst"]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    sandbox.ok(["sync", "--delete", "--allow-empty", "empty/", "dst"]);
    assert_eq!(fs::read_dir(sandbox.path("dst")).unwrap().count(), 0);
}

/// The source would be what only the destination has.
#[test]
fn source_inside_the_destination_is_not_deleted() {
    let sandbox = Sandbox::new();
    synced(&sandbox);
    for more in [&["--delete"][..], &["--delete-excluded", "-n"]] {
        let ran = sandbox.run([&["sync", "src/", "."], more].concat());
        assert!(ran.code != 0 && ran.stderr.contains("lies inside the target"), "{}{}", ran.stdout, ran.stderr);
    }
    assert!(sandbox.path("src/a").exists() && sandbox.path("dst/a").exists());
}

#[test]
fn deletion_needs_one_directory_as_its_source() {
    let sandbox = Sandbox::new();
    synced(&sandbox);
    sandbox.write("other/f", "x");
    sandbox.write("list", "d\n");
    sandbox.run(["sync", "--delete", "src/a", "src/d", "dst"]).failed_with(2, &["--delete needs one source"]);
    sandbox.run(["sync", "--delete", "--files-from", "list", "src/", "dst"]).failed_with(2, &["--files-from"]);
    sandbox.run(["copy", "--delete", "src/", "dst"]).failed_with(2, &["carrack sync --delete"]);
    // A source that is a file, and one that keeps its name: what is beside it stays.
    sandbox.write("dst/only", "x");
    sandbox.ok(["sync", "--delete", "src/a", "dst"]);
    sandbox.ok(["sync", "--delete", "src/d", "dst"]);
    assert!(sandbox.path("dst/only").exists() && sandbox.path("dst/link").is_symlink());
    sandbox.write("dst/d/only", "x");
    sandbox.ok(["sync", "--delete", "src/d", "dst"]);
    assert!(sandbox.path("dst/only").exists() && !sandbox.path("dst/d/only").exists());
}

/// What is left out is not deleted, unless that is asked for; what is protected never is; and Carrack's own stay.
#[test]
fn filters_keep_what_they_name() {
    let sandbox = Sandbox::new();
    synced(&sandbox);
    let left = ".x.carrack-01234567.part";
    for name in ["src/x.o", "dst/y.o", "dst/keep/own", "dst/only", "dst/gone/file", "dst/gone/empty/f"] {
        sandbox.write(name, "x");
    }
    for directory in ["dst", "dst/gone"] {
        sandbox.write(Path::new(directory).join(left), "x");
    }
    sandbox.ok(["sync", "--delete", "--exclude", "*.o", "--filter", "protect keep/", "src/", "dst"]);
    assert!(!sandbox.path("dst/x.o").exists() && !sandbox.path("dst/only").exists());
    for name in ["y.o", "keep/own", left] {
        assert!(sandbox.path("dst").join(name).exists(), "{name}");
    }
    // Only what another copy has left keeps its directory.
    let in_gone: Vec<_> =
        fs::read_dir(sandbox.path("dst/gone")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(in_gone, [left]);
    sandbox.ok(["sync", "--delete-excluded", "--exclude", "*.o", "--filter", "P keep/", "src/", "dst"]);
    assert!(!sandbox.path("dst/y.o").exists() && sandbox.path("dst/keep/own").exists());
    // A rule that nobody can read leaves its directory alone.
    sandbox.write("src/d/.rules", "no such rule\n");
    sandbox.write("dst/d/only", "x");
    let ran = sandbox.run(["sync", "--delete", "--filter", "dir-merge .rules", "src/", "dst"]);
    ran.failed_with(23, &["line 1 of .rules in it is no rule"]);
    assert!(!ran.stderr.contains("no such rule") && sandbox.path("dst/d/only").exists());
    for rule in ["- ", "x", "-/ abs", ": a/b"] {
        sandbox.run(["sync", "--filter", rule, "src/", "dst"]).failed_with(2, &["--filter: "]);
    }
    sandbox.write("patterns", "# comment\n\n*.o\n+ x\n");
    sandbox.ok(["sync", "--exclude-from", "patterns", "src/", "fresh"]);
    assert!(!sandbox.path("fresh/x.o").exists() && sandbox.path("fresh/a").exists());
    sandbox.run(["sync", "--exclude-from", "absent", "src/", "dst"]).failed_with(11, &["absent"]);
}

#[test]
fn link_is_the_same_by_what_it_says() {
    let sandbox = Sandbox::new();
    synced(&sandbox);
    let linked = fs::symlink_metadata(sandbox.path("dst/link")).unwrap();
    sandbox.ok(["sync", "src/", "dst"]);
    let after = fs::symlink_metadata(sandbox.path("dst/link")).unwrap();
    assert_eq!(linked.ino(), after.ino());
    fs::remove_file(sandbox.path("src/link")).unwrap();
    symlink("d", sandbox.path("src/link")).unwrap();
    sandbox.ok(["sync", "src/", "dst"]);
    assert_eq!(fs::read_link(sandbox.path("dst/link")).unwrap(), Path::new("d"));
}

/// What is mounted below the destination is somebody else's, and so is the directory that it is mounted in.
#[test]
fn other_file_systems_below_the_destination_stay() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    synced(&sandbox);
    sandbox.write("dst/only/file", "x");
    let disks = [sandbox.path("dst/disk"), sandbox.path("dst/only/disk")].map(|path| Mounted::new(path, "1m"));
    disks.iter().for_each(|disk| fs::write(disk.0.join("kept"), "x").unwrap());
    let ran = sandbox.ok(["sync", "--delete", "--json", "src/", "dst"]);
    assert_eq!(numbers(&ran, &["items_deleted", "items_only_there"]), [1, 0]);
    assert!(!sandbox.path("dst/only/file").exists());
    assert!(disks.iter().all(|disk| disk.0.join("kept").exists()));
}

/// Where names are kept in another form, upper case or decomposed, what is a name of the source stays.
#[test]
fn names_kept_in_another_form_stay() {
    let sandbox = Sandbox::new();
    sandbox.write("src/Upper", "case");
    sandbox.write("src/caf\u{e9}", "accent");
    let features = Features { folds_case: true, decomposes: true, whole_seconds: true, ..Features::default() };
    let Some(disk) = faulty(&sandbox, "disk", features) else { return };
    sandbox.write("disk/dst/UPPER", "old");
    sandbox.write("disk/dst/only", "x");
    let of = |ran: &Ran| numbers(ran, &["files", "files_same", "items_deleted", "items_only_there"]);
    assert_eq!(of(&sandbox.ok(["sync", "--delete", "--json", "src/", "disk/dst"])), [2, 0, 1, 0]);
    assert_eq!(of(&sandbox.ok(["sync", "--delete", "--json", "src/", "disk/dst"])), [0, 2, 0, 0]);
    for (name, content) in [("Upper", "case"), ("caf\u{e9}", "accent")] {
        assert_eq!(fs::read_to_string(disk.path().join("dst").join(name)).unwrap(), content);
    }
}
