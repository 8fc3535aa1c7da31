//! `--link-dest`, `--copy-dest`, `--compare-dest`: what another directory at the destination has already.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::{numbers, set_mtime};
use crate::support::node::Node;
use crate::support::running::InTime;
#[cfg(feature = "service")]
use crate::support::service::{Service, add_endpoints};
use crate::support::{Ran, Sandbox, mode, same_tree, tool, tree};

const MADE: [&str; 6] =
    ["files", "files_same", "files_linked", "bytes_linked", "files_copied_there", "bytes_copied_there"];

/// A source, and `monday`, which is a copy of it.
fn scene(sandbox: &Sandbox) {
    for (name, content) in [("src/a", "one"), ("src/d/b", "two"), ("src/d/e/c", "three")] {
        set_mtime(&sandbox.write(name, content), 1_600_000_000);
    }
    sandbox.write("src/large", tree::bytes((2 << 20) + 17, 1));
    symlink("a", sandbox.path("src/link")).unwrap();
    fs::create_dir(sandbox.path("src/empty")).unwrap();
    sandbox.ok(["sync", "src/", "backup/monday"]);
}

/// By path, each file's inode, permissions and time.
fn files(top: &Path) -> BTreeMap<String, (u64, u32, i64, i64)> {
    let of = |path: &Path| {
        let found = fs::symlink_metadata(path).unwrap();
        let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
        (name, (found.ino(), found.mode(), found.mtime(), found.mtime_nsec()))
    };
    tree::walk(top).iter().filter(|path| path.is_file() && !path.is_symlink()).map(|path| of(path)).collect()
}

/// Names below `one` that are the same files as those below `other`.
fn linked(one: &Path, other: &Path) -> Vec<String> {
    let there = files(other);
    let is_linked = |(name, (inode, ..)): &(&String, &(u64, u32, i64, i64))| {
        there.get(*name).is_some_and(|(other, ..)| other == inode)
    };
    files(one).iter().filter(is_linked).map(|(name, _)| name.clone()).collect()
}

fn made(ran: &Ran) -> Vec<u64> {
    numbers(ran, &MADE)
}

#[test]
fn snapshots_share_what_is_the_same_as_those_of_rsync() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    sandbox.write("src/a", "another");
    sandbox.write("src/new", "new");
    fs::set_permissions(sandbox.path("src/d/b"), Permissions::from_mode(0o600)).unwrap();
    let before = files(&sandbox.path("backup/monday"));
    let planned = sandbox.ok(["sync", "-n", "--json", "--link-dest", "../monday", "src/", "backup/tuesday"]);
    assert!(!sandbox.path("backup/tuesday").exists());
    let ran = sandbox.ok(["sync", "--json", "--link-dest", "../monday", "src/", "backup/tuesday"]);
    assert_eq!(made(&ran), [2, 3, 2, 5 + (2 << 20) + 17, 1, 3]);
    assert_eq!(made(&planned), made(&ran));
    same_tree(&sandbox.path("src"), &sandbox.path("backup/tuesday"));
    assert_eq!(linked(&sandbox.path("backup/tuesday"), &sandbox.path("backup/monday")), ["d/e/c", "large"]);
    assert_eq!(mode(&sandbox.path("backup/tuesday/d/b")), 0o600);
    assert_eq!(files(&sandbox.path("backup/monday")), before);
    // Once more: everything is there.
    let again = sandbox.ok(["sync", "--json", "--delete", "--link-dest", "../monday", "src/", "backup/tuesday"]);
    assert_eq!(made(&again), [0, 6, 0, 0, 0, 0]);
    if Command::new("rsync").arg("--version").output_in_time().is_err() {
        return;
    }
    let rsync = |flag: &str, to: &str| {
        let mut rsync = Command::new("rsync");
        tool(rsync.args(["-a", flag, "src/", to]).current_dir(sandbox.path("")));
    };
    rsync("--link-dest=../monday", "backup/theirs");
    let monday = sandbox.path("backup/monday");
    assert_eq!(linked(&sandbox.path("backup/theirs"), &monday), linked(&sandbox.path("backup/tuesday"), &monday));
    // What is made of the other two kinds is the same, too.
    for kind in ["--copy-dest", "--compare-dest"] {
        let (ours, theirs) = (format!("backup/ours{kind}"), format!("backup/theirs{kind}"));
        sandbox.ok(["sync", kind, "../monday", "src/", &ours]);
        rsync(&format!("{kind}=../monday"), &theirs);
        let alike = |at: &str| files(&sandbox.path(at)).into_iter().map(|(name, (_, mode, ..))| (name, mode));
        assert!(alike(&ours).eq(alike(&theirs)), "{kind}");
        assert_eq!(linked(&sandbox.path(&ours), &monday), Vec::<String>::new());
    }
}

#[test]
fn reference_directories_never_change() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    sandbox.ok(["sync", "--link-dest", "../monday", "src/", "backup/tuesday"]);
    let before = files(&sandbox.path("backup/monday"));
    // What both directories share gets other permissions, another time, another content.
    fs::set_permissions(sandbox.path("src/d/b"), Permissions::from_mode(0o600)).unwrap();
    set_mtime(&sandbox.path("src/d/e/c"), 1_000_000_000);
    sandbox.write("src/a", "another");
    for flags in [&["-n"][..], &["--size-only"], &["-c"], &[]] {
        let words = ["sync", "--json", "--link-dest", "../monday", "src/", "backup/tuesday"];
        let ran = sandbox.ok(words.iter().chain(flags));
        assert_eq!(numbers(&ran, &["attributes_set", "files_failed"]), [0, 0], "{flags:?}");
        assert_eq!(files(&sandbox.path("backup/monday")), before, "{flags:?}");
    }
    same_tree(&sandbox.path("src"), &sandbox.path("backup/tuesday"));
    assert_eq!(linked(&sandbox.path("backup/tuesday"), &sandbox.path("backup/monday")), ["large"]);
    assert_eq!(mode(&sandbox.path("backup/tuesday/d/b")), 0o600);
    // Nor by the other kinds, of a directory that has links.
    fs::set_permissions(sandbox.path("src/large"), Permissions::from_mode(0o604)).unwrap();
    for kind in ["--copy-dest", "--compare-dest"] {
        fs::remove_file(sandbox.path("backup/tuesday/large")).unwrap();
        fs::hard_link(sandbox.path("backup/monday/large"), sandbox.path("backup/tuesday/large")).unwrap();
        sandbox.ok(["sync", "--json", kind, "../monday", "src/", "backup/tuesday"]);
        assert_eq!(files(&sandbox.path("backup/monday")), before, "{kind}");
        assert_eq!(mode(&sandbox.path("backup/tuesday/large")), 0o604, "{kind}");
    }
    // Nor where the directory has another name by now.
    fs::set_permissions(sandbox.path("src/large"), Permissions::from_mode(0o640)).unwrap();
    fs::remove_file(sandbox.path("backup/tuesday/large")).unwrap();
    fs::hard_link(sandbox.path("backup/monday/large"), sandbox.path("backup/tuesday/large")).unwrap();
    let ran = sandbox.ok(["sync", "--json", "--link-dest", "../none", "src/", "backup/tuesday"]);
    assert_eq!(numbers(&ran, &["files", "attributes_set", "files_failed"]), [1, 0, 0]);
    assert_eq!(files(&sandbox.path("backup/monday")), before);
    // Where nothing is shared, attributes are set in place.
    fs::set_permissions(sandbox.path("src/a"), Permissions::from_mode(0o640)).unwrap();
    let inode = fs::metadata(sandbox.path("backup/tuesday/a")).unwrap().ino();
    let ran = sandbox.ok(["sync", "--json", "--link-dest", "../monday", "src/", "backup/tuesday"]);
    assert_eq!(numbers(&ran, &["attributes_set"]), [1]);
    assert_eq!(fs::metadata(sandbox.path("backup/tuesday/a")).unwrap().ino(), inode);
}

#[test]
fn first_directory_that_has_a_file_counts_and_one_that_is_missing_is_told() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    sandbox.ok(["sync", "src/", "backup/sunday"]);
    fs::remove_file(sandbox.path("backup/sunday/a")).unwrap();
    fs::set_permissions(sandbox.path("backup/sunday/d/b"), Permissions::from_mode(0o600)).unwrap();
    let absolute = sandbox.path("backup/monday");
    let ran = sandbox.ok([
        "sync",
        "--link-dest",
        "../none",
        "--link-dest",
        "../sunday",
        "--link-dest",
        absolute.to_str().unwrap(),
        "src/",
        "backup/tuesday",
    ]);
    assert!(ran.stderr.contains("there is no directory ../none"), "{}", ran.stderr);
    assert!(ran.stderr.contains("linked: 4 files"), "{}", ran.stderr);
    let tuesday = sandbox.path("backup/tuesday");
    assert_eq!(linked(&tuesday, &sandbox.path("backup/sunday")), ["d/e/c", "large"]);
    // One that has it with its attributes counts before one that has not.
    assert_eq!(linked(&tuesday, &absolute), ["a", "d/b"]);
    let alone = sandbox.ok(["sync", "--json", "--copy-dest", "../none", "src/", "backup/alone"]);
    assert_eq!(made(&alone), [4, 0, 0, 0, 0, 0]);
}

#[test]
fn content_is_what_counts_with_checksum() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    // The same time and size, and another content; the same content at another time.
    set_mtime(&sandbox.write("backup/monday/a", "ONE"), 1_600_000_000);
    set_mtime(&sandbox.path("backup/monday/d/b"), 1_500_000_000);
    for to in ["backup/tuesday", "backup/wednesday"] {
        let kind = if to.ends_with("tuesday") { "--link-dest" } else { "--copy-dest" };
        let planned = sandbox.ok(["sync", "-n", "--json", "-c", kind, "../monday", "src/", to]);
        let ran = sandbox.ok(["sync", "--json", "-c", kind, "../monday", "src/", to]);
        let linked = if kind == "--link-dest" { [2, 1] } else { [0, 3] };
        assert_eq!(numbers(&ran, &["files", "files_linked", "files_copied_there"])[1..], linked);
        assert_eq!(made(&planned)[1..], made(&ran)[1..], "{kind}");
        same_tree(&sandbox.path("src"), &sandbox.path(to));
    }
    // What stands at the destination already, and is not the same, gives way.
    fs::remove_file(sandbox.path("backup/tuesday/d/e/c")).unwrap();
    sandbox.write("backup/tuesday/d/e/c", "THREE");
    let ran = sandbox.ok(["sync", "--json", "-c", "--link-dest", "../monday", "src/", "backup/tuesday"]);
    assert_eq!(made(&ran), [0, 5, 1, 5, 0, 0]);
    same_tree(&sandbox.path("src"), &sandbox.path("backup/tuesday"));
}

/// Everything that is replaced is whole at every moment, is kept where that was asked for, and what only the
/// destination has goes.
#[test]
fn links_replace_what_differs_and_keep_what_was_to_be_kept() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    sandbox.write("backup/tuesday/a", "old and longer");
    sandbox.write("backup/tuesday/only", "x");
    symlink("elsewhere", sandbox.path("backup/tuesday/large")).unwrap();
    let words = ["sync", "--json", "--delete", "--backup-dir", ".old", "--link-dest", "../monday", "src/"];
    let ran = sandbox.ok(words.iter().chain(&["backup/tuesday"]));
    assert_eq!(numbers(&ran, &["files_linked", "items_deleted"]), [4, 1]);
    let read = |name: &str| fs::read_to_string(sandbox.path(name)).unwrap();
    assert_eq!(read("backup/tuesday/.old/a"), "old and longer");
    assert_eq!(read("backup/tuesday/.old/only"), "x");
    assert_eq!(linked(&sandbox.path("backup/tuesday"), &sandbox.path("backup/monday")).len(), 4);
    // Rules and lists choose what is linked, as what is copied.
    sandbox.write("list", "d\n");
    let to = ["--files-from", "list", "--exclude", "e/", "--durable=each", "--verify=disk", "src/", "backup/part"];
    let ran = sandbox.ok(["sync", "--json", "--link-dest", "../monday"].iter().chain(&to));
    assert_eq!(made(&ran), [0, 1, 1, 3, 0, 0]);
    assert_eq!(linked(&sandbox.path("backup/part"), &sandbox.path("backup/monday")), ["d/b"]);
    // Of a copy, size and time are compared.
    let ran = sandbox.ok(["copy", "--json", "--link-dest", "../monday", "src/", "backup/copied"]);
    assert_eq!(made(&ran)[..3], [0, 4, 4]);
    for verify in ["wire", "disk", "source", "none"] {
        for durable in ["group", "each", "none"] {
            let to = format!("backup/{verify}-{durable}");
            let flags = [format!("--verify={verify}"), format!("--durable={durable}")];
            let words = ["sync", "--json", &flags[0], &flags[1], "--copy-dest", "../monday", "src/", &to];
            assert_eq!(made(&sandbox.ok(words))[4..], [4, 11 + (2 << 20) + 17], "{flags:?}");
            same_tree(&sandbox.path("src"), &sandbox.path(&to));
        }
    }
}

#[test]
fn what_stands_in_a_reference_directory_is_linked_only_if_it_is_a_file() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    let monday = sandbox.path("backup/monday");
    // A link, a FIFO and a directory in the places of files, a link in the place of a directory.
    sandbox.write("outside/a", "one");
    sandbox.write("outside/b", "two");
    set_mtime(&sandbox.path("outside/a"), 1_600_000_000);
    set_mtime(&sandbox.path("outside/b"), 1_600_000_000);
    fs::remove_file(monday.join("a")).unwrap();
    symlink(sandbox.path("outside/a"), monday.join("a")).unwrap();
    fs::remove_file(monday.join("large")).unwrap();
    tool(Command::new("mkfifo").arg(monday.join("large")));
    fs::remove_dir_all(monday.join("d")).unwrap();
    symlink(sandbox.path("outside"), monday.join("d")).unwrap();
    for kind in ["--link-dest", "--copy-dest", "--compare-dest"] {
        let to = format!("backup/to{kind}");
        let ran = sandbox.ok(["sync", "--json", kind, "../monday", "src/", &to]);
        assert_eq!(made(&ran), [4, 0, 0, 0, 0, 0], "{kind}");
        same_tree(&sandbox.path("src"), &sandbox.path(&to));
    }
    assert_eq!(fs::metadata(sandbox.path("outside/a")).unwrap().nlink(), 1);
    // A set-id bit is never given: such a file is copied without it.
    fs::remove_file(monday.join("a")).unwrap();
    set_mtime(&sandbox.write("backup/monday/a", "one"), 1_600_000_000);
    let with_bit = fs::metadata(sandbox.path("src/a")).unwrap().mode() & 0o777 | 0o4000;
    fs::set_permissions(monday.join("a"), Permissions::from_mode(with_bit)).unwrap();
    let ran = sandbox.ok(["sync", "--json", "--link-dest", "../monday", "src/", "backup/bits"]);
    assert_eq!(made(&ran)[2..], [0, 0, 1, 3]);
    assert_eq!(fs::metadata(sandbox.path("backup/bits/a")).unwrap().mode() & 0o7000, 0);
}

#[test]
fn directories_that_cannot_be_referred_to_are_refused() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    sandbox.ok(["sync", "src/", "backup/tuesday"]);
    sandbox.write("backup/tuesday/old/a", "one");
    let sync = |words: &[&str]| sandbox.run([&["sync"], words, &["src/", "backup/tuesday"]].concat());
    sync(&["--link-dest", "."]).failed_with(2, &["is the destination itself"]);
    sync(&["--link-dest", "../tuesday/"]).failed_with(2, &["is the destination itself"]);
    sync(&["--delete", "--link-dest", "old"]).failed_with(2, &["old", "would be deleted"]);
    assert!(sandbox.path("backup/tuesday/old/a").exists());
    sync(&["--link-dest=../monday", "--copy-dest=../monday"]).failed_with(2, &["--link-dest", "--copy-dest"]);
    sync(&["--link-dest=a\nb"]).failed_with(2, &["no directory of a plain name"]);
    let many = vec!["--link-dest=../monday"; 21];
    sync(&many).failed_with(2, &["1 to 20"]);
    sync(&["--remove-source-files", "-c", "--link-dest=../monday"]).failed_with(2, &["--link-dest"]);
    sandbox.run(["sync", "--link-dest=../monday", "src/a", "null:"]).failed_with(11, &["only a file system"]);
    // The source itself may be one: its files get further names.
    let ran = sandbox.ok(["sync", "--json", "--link-dest", "../src", "src/", "twin"]);
    assert_eq!(made(&ran)[2], 4);
    same_tree(&sandbox.path("src"), &sandbox.path("twin"));
}

#[test]
fn node_refers_to_nothing_outside_its_root() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    sandbox.ok(["sync", "src/", "root/monday"]);
    symlink("../backup/monday", sandbox.path("root/out")).unwrap();
    symlink("monday", sandbox.path("root/in")).unwrap();
    let node = Node::start(&sandbox, "root", &[]);
    let to = node.at("tuesday");
    let sync = |directory: &str| sandbox.run(["sync", "--json", "--link-dest", directory, "src/", &to, &node.token()]);
    for out in ["../../backup/monday", "../out", "/../backup/monday"] {
        let ran = sync(out);
        assert!(ran.code != 0 && ran.stderr.contains(out), "{out}: {}", ran.stderr);
    }
    assert!(!sandbox.path("root/tuesday/a").exists());
    for (number, within) in ["../monday", "/monday", "../in"].iter().enumerate() {
        let to = node.at(&format!("to{number}"));
        let ran = sandbox.ok(["sync", "--json", "--link-dest", within, "src/", &to, &node.token()]);
        assert_eq!(made(&ran)[..3], [0, 4, 4], "{within}");
    }
    let reads = Node::start(&sandbox, "root", &["--read-only"]);
    let to = reads.at("tuesday");
    let ran = sandbox.run(["sync", "--link-dest", "../monday", "src/", &to, &reads.token()]);
    assert!(ran.stderr.contains("for reading only"), "{}", ran.stderr);
}

#[test]
fn changes_are_told_in_letters() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    fs::set_permissions(sandbox.path("src/d/b"), Permissions::from_mode(0o600)).unwrap();
    for flags in ["-ni", "-i"] {
        let ran = sandbox.ok(["sync", flags, "--link-dest", "../monday", "src/", "backup/tuesday"]);
        for line in ["hf          a\n", "hf          large\n", "cf...p..... d/b\n", "cL+++++++++ link -> a\n"] {
            assert!(ran.stdout.contains(line), "{flags}: {line}{}", ran.stdout);
        }
    }
}

/// Seven timers keep a week: each links to the day before.
#[cfg(feature = "service")]
#[test]
fn tasks_make_snapshots_within_an_endpoint() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "src"), ("archive", "backup")]);
    let submit = |directory: &str, to: &str| {
        let words = ["task", "submit", "--wait", "--timeout=120s", "--delete", "--link-dest", directory, "@lab:/", to];
        sandbox.run(words)
    };
    let monday = sandbox.path("backup/monday");
    let before = files(&monday);
    let ran = submit("../monday", "@archive:/tuesday");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(linked(&sandbox.path("backup/tuesday"), &monday).len(), 4);
    fs::set_permissions(sandbox.path("src/a"), Permissions::from_mode(0o600)).unwrap();
    let ran = submit("../monday", "@archive:/tuesday");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    same_tree(&sandbox.path("src"), &sandbox.path("backup/tuesday"));
    assert_eq!((linked(&sandbox.path("backup/tuesday"), &monday).len(), files(&monday)), (3, before));
    submit("../../src", "@archive:/wednesday").failed_with(2, &["leads out of the endpoint archive"]);
    assert!(!sandbox.path("backup/wednesday").exists());
}
