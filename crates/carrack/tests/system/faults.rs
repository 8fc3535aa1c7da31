//! What goes wrong with files: each fault costs its own item only, is told, and never ends in exit code 0.

mod changing;
mod listing;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::running::{InTime, errors_of};
use crate::support::{Ran, Sandbox, is_root, ran, same_tree, tool, tree, wait_until};

const MIB: usize = 1 << 20;

/// The program, run by another one: as another user, under a tracer.
pub fn under(sandbox: &Sandbox, wrapper: &[&str], arguments: &[&str]) -> Ran {
    let carrack = sandbox.carrack();
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(carrack.get_program()).args(arguments).current_dir(sandbox.path("."));
    command.env_clear().envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
    ran(command.output_in_time().unwrap())
}

pub const NOBODY: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];

/// Opens the sandbox to a user without rights.
pub fn open_to_all(sandbox: &Sandbox) {
    fs::set_permissions(sandbox.path("."), Permissions::from_mode(0o755)).unwrap();
}

/// Everything below a directory and what it holds, to compare before and after.
pub fn content(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut all: Vec<_> = tree::walk(directory)
        .into_iter()
        .map(|path| {
            let link = fs::read_link(&path).ok().map(|target| target.into_os_string().into_encoded_bytes());
            // What is no file may have nothing to read for ever.
            let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
            let read = link.or_else(|| is_file.then(|| fs::read(&path).ok()).flatten());
            (path, read)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn loop_of_links_is_copied_as_links() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    fs::create_dir_all(sandbox.path("tree/a")).unwrap();
    for (target, name) in [(".", "self"), ("..", "a/up"), ("b", "c"), ("c", "b"), ("loop", "loop")] {
        symlink(target, sandbox.path("tree").join(name)).unwrap();
    }
    sandbox.ok(["tree", &node.at(""), &node.token()]);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/tree"));
    assert_eq!(sandbox.ok(["ls", "-R", &node.at("tree"), &node.token()]).stdout.lines().count(), 6);
}

#[test]
fn special_files_are_passed_over_and_told() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("tree/file", "kept");
    tool(Command::new("mkfifo").arg(sandbox.path("tree/fifo")));
    let _socket = UnixListener::bind(sandbox.path("tree/socket")).unwrap();
    let mut specials = vec!["fifo", "socket"];
    if is_root() {
        tool(Command::new("mknod").arg(sandbox.path("tree/device")).args(["c", "1", "3"]));
        specials.push("device");
    }
    let ran = sandbox.run(["tree", &node.at(""), &node.token(), "--json"]);
    ran.failed_with(23, &specials);
    let summary: serde_json::Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(summary["specials_skipped"], specials.len());
    assert_eq!(summary["files"], 1);
    assert_eq!(fs::read(sandbox.path("root/tree/file")).unwrap(), b"kept");
    for special in specials {
        assert!(fs::symlink_metadata(sandbox.path("root/tree").join(special)).is_err(), "{special}");
    }
    // Named itself it is an error of the command, and nothing waits for a writer.
    sandbox.run(["tree/fifo", "there"]).failed_with(11, &["fifo"]);
    // Nor is one replaced.
    sandbox.write("plain/fifo", "x");
    sandbox.run(["plain/", "tree"]).failed_with(23, &["fifo"]);
    assert!(!fs::symlink_metadata(sandbox.path("tree/fifo")).unwrap().is_file());
}

#[test]
fn unreadable_files_are_told_and_the_rest_copied() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    for name in ["readable", "secret", "closed/inner", "large-secret"] {
        let size = if name.starts_with("large") { MIB + 1 } else { 10 };
        sandbox.write(format!("tree/{name}"), tree::bytes(size, 1));
    }
    for name in ["secret", "closed", "large-secret"] {
        fs::set_permissions(sandbox.path("tree").join(name), Permissions::from_mode(0o000)).unwrap();
    }
    fs::create_dir(sandbox.path("out")).unwrap();
    fs::set_permissions(sandbox.path("out"), Permissions::from_mode(0o777)).unwrap();
    let ran = under(&sandbox, &NOBODY, &["tree/", "out"]);
    ran.failed_with(23, &["secret", "closed", "large-secret", "ermission denied"]);
    same_tree(&sandbox.path("tree/readable"), &sandbox.path("out/readable"));
    assert!(!sandbox.path("out/secret").exists() && !sandbox.path("out/large-secret").exists());
    assert!(sandbox.parts("out").is_empty());
}

#[test]
fn destination_that_may_not_be_written_is_told_and_left() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    for size in [10, MIB + 1] {
        sandbox.write(format!("tree/f{size}"), tree::bytes(size, 1));
        sandbox.write(format!("tree/open/f{size}"), tree::bytes(size, 2));
        sandbox.write(format!("out/f{size}"), "old");
    }
    fs::create_dir(sandbox.path("out/open")).unwrap();
    fs::set_permissions(sandbox.path("out/open"), Permissions::from_mode(0o777)).unwrap();
    let before = fs::read(sandbox.path(format!("out/f{}", MIB + 1))).unwrap();
    let ran = under(&sandbox, &NOBODY, &["tree/", "out"]);
    ran.failed_with(23, &["f10", "ermission denied"]);
    assert_eq!(fs::read(sandbox.path(format!("out/f{}", MIB + 1))).unwrap(), before);
    same_tree(&sandbox.path("tree/open"), &sandbox.path("out/open"));
    under(&sandbox, &NOBODY, &["tree/", "new"]).failed_with(11, &["new", "ermission denied"]);
    assert!(!sandbox.path("new").exists() && sandbox.parts("out").is_empty());
}

#[test]
fn file_where_a_directory_is_needed_and_the_reverse() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    for size in [10, MIB + 1] {
        sandbox.write(format!("tree/d/f{size}"), tree::bytes(size, 1));
        sandbox.write(format!("tree/f{size}"), tree::bytes(size, 2));
        sandbox.write(format!("tree/fine{size}"), tree::bytes(size, 3));
        sandbox.write(format!("root/f{size}/inside"), "a directory");
        sandbox.write(format!("top-{size}"), tree::bytes(size, 4));
        sandbox.write(format!("root/dir/top-{size}/inside"), "a directory");
    }
    sandbox.write("root/d", "a file");
    let ran = sandbox.run(["tree/", &node.at(""), &node.token()]);
    ran.failed_with(23, &["destination: d: ", "2 items below it", "a directory stands there"]);
    assert_eq!(fs::read(sandbox.path("root/d")).unwrap(), b"a file");
    for size in [10, MIB + 1] {
        assert_eq!(fs::read(sandbox.path(format!("root/f{size}/inside"))).unwrap(), b"a directory");
        same_tree(&sandbox.path(format!("tree/fine{size}")), &sandbox.path(format!("root/fine{size}")));
        let into = sandbox.run([&format!("top-{size}"), &node.at("dir"), &node.token()]);
        into.failed_with(23, &["a directory stands there"]);
        assert_eq!(fs::read(sandbox.path(format!("root/dir/top-{size}/inside"))).unwrap(), b"a directory");
    }
    // At the top nothing can be copied at all.
    sandbox.run(["tree", &node.at("d"), &node.token()]).failed_with(11, &["is a file"]);
    sandbox.run(["tree/", &node.at("d/"), &node.token()]).failed_with(11, &["is a file"]);
    sandbox.run(["top-10", &node.at("d/"), &node.token()]).failed_with(11, &["is a file"]);
    sandbox.run(["top-10", &node.at("d/below"), &node.token()]).failed_with(11, &["d"]);
    assert_eq!(fs::read(sandbox.path("root/d")).unwrap(), b"a file");
    assert!(sandbox.parts("root").is_empty());
}

#[test]
fn copy_onto_or_into_itself_is_refused_whichever_way_it_leads_there() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("root/d/sub/file", "inner");
    sandbox.write("root/f", "outer");
    symlink("root/d", sandbox.path("link")).unwrap();
    symlink("f", sandbox.path("root/flink")).unwrap();
    fs::hard_link(sandbox.path("root/f"), sandbox.path("root/hard")).unwrap();
    let before = content(&sandbox.path("root"));
    let root = sandbox.path("root").display().to_string();
    let at = |path: &str| node.at(path);
    for (source, destination) in [
        ("root/d".to_string(), "root/d".to_string()),
        ("root/d".into(), "root".into()),
        ("root/d/".into(), "root/d/sub/deeper".into()),
        ("root/d/".into(), "root/d".into()),
        ("root/d".into(), "root/./d/../d/sub".into()),
        ("root/d".into(), "link/sub/new".into()),
        ("link/".into(), "root/d/new".into()),
        ("root/f".into(), "root/f".into()),
        ("root/f".into(), "root".into()),
        ("root/f".into(), "root/flink".into()),
        ("root/f".into(), "root/hard".into()),
        ("root/d".into(), at("d/sub")),
        ("root/d/".into(), at("d")),
        (at("d"), "root/d/new".into()),
        (at("d"), at("d/sub/new")),
        (at("d"), at("")),
        (at("f"), at("f")),
        (at("f"), format!("{root}/f")),
        (format!("{root}/d"), at("/")),
    ] {
        let ran = sandbox.run([&source, &destination, &node.token()]);
        assert_eq!(ran.code, 2, "{source} {destination}: {}", ran.stderr);
        assert!(ran.stderr.contains("the source"), "{}", ran.stderr);
        assert_eq!(content(&sandbox.path("root")), before, "{source} {destination}");
    }
}

#[test]
fn link_in_the_destination_is_not_followed() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("canary/untouched", "old");
    for size in [10, MIB + 1] {
        sandbox.write(format!("tree/sub/f{size}"), tree::bytes(size, 1));
        sandbox.write(format!("tree/file{size}"), tree::bytes(size, 2));
    }
    sandbox.write("tree/sub/untouched", "new");
    sandbox.write("tree/sub/deeper/f", "new");
    let canary = content(&sandbox.path("canary"));
    for place in ["here", "root"] {
        fs::create_dir_all(sandbox.path(place)).unwrap();
        symlink(sandbox.path("canary"), sandbox.path(place).join("sub")).unwrap();
        // One that bears a file's name is replaced itself.
        symlink(sandbox.path("canary/untouched"), sandbox.path(place).join("file10")).unwrap();
    }
    for destination in ["here".to_string(), node.at("")] {
        let ran = sandbox.run(["tree/", &destination, &node.token()]);
        ran.failed_with(23, &["destination: sub: ", "5 items below it", "not followed"]);
        assert_eq!(content(&sandbox.path("canary")), canary);
    }
    for place in ["here", "root"] {
        for size in [10, MIB + 1] {
            let file = sandbox.path(place).join(format!("file{size}"));
            assert!(fs::symlink_metadata(&file).unwrap().is_file());
            same_tree(&sandbox.path(format!("tree/file{size}")), &file);
        }
        assert!(fs::symlink_metadata(sandbox.path(place).join("sub")).unwrap().is_symlink());
    }
}

/// A small file system, gone with the value.
pub struct Mounted(pub PathBuf);

impl Mounted {
    pub fn new(path: PathBuf, size: &str) -> Self {
        fs::create_dir_all(&path).unwrap();
        tool(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "carrack-test"]).arg(&path));
        Self(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn full_file_system_keeps_the_old_file_and_no_parts() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let small = Mounted::new(sandbox.path("root/small"), "8m");
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("root/small/big", "old");
    sandbox.write("tree/big", tree::bytes(12 * MIB, 1));
    sandbox.write("tree/fits", "fits");
    for destination in [node.at("small"), "root/small".to_string()] {
        let ran = sandbox.run(["tree/", &destination, &node.token()]);
        let needed = (12 * MIB).to_string();
        ran.failed_with(23, &["big", &needed, "free some"]);
        assert_eq!(fs::read(small.0.join("big")).unwrap(), b"old");
        assert_eq!(fs::read(small.0.join("fits")).unwrap(), b"fits");
        assert_eq!(fs::read_dir(&small.0).unwrap().count(), 2);
    }
    // What needs no more than is left at its start, with others that take it; and what does not say how much it needs.
    for index in 0..12 {
        sandbox.write(format!("several/f{index:02}"), tree::bytes(MIB - 100, index + 1));
    }
    sandbox.run(["several/", &node.at("small"), &node.token()]).failed_with(23, &["No space left"]);
    assert!(sandbox.parts("root").is_empty());
    for index in 0..12 {
        let published = small.0.join(format!("f{index:02}"));
        if published.exists() {
            same_tree(&sandbox.path(format!("several/f{index:02}")), &published);
            fs::remove_file(published).unwrap();
        }
    }
    let mut piped = sandbox.carrack();
    piped.args(["-", &node.at("small/piped"), &node.token()]);
    piped.stdin(fs::File::open(sandbox.path("tree/big")).unwrap());
    ran(piped.output_in_time().unwrap()).failed_with(23, &["No space left"]);
    assert!(!small.0.join("piped").exists() && sandbox.parts("root").is_empty());
}

/// Starts a copy so slow that something can be done beside it, and waits until it has opened a source to read it.
pub fn slow_copy(sandbox: &Sandbox, source: &Path, arguments: &[&str]) -> Running {
    let running =
        Running::start(sandbox.carrack().args(arguments).args(["--bwlimit=4M", "--block=64K", "--streams=1"]));
    let descriptors = format!("/proc/{}/fd", running.id());
    let is_open = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == source))
    };
    wait_until("the source is open", || fs::read_dir(&descriptors).is_ok_and(|mut all| all.any(is_open)));
    assert!(!sandbox.parts("root").is_empty());
    running
}

#[test]
fn destination_entry_is_replaced_or_told_by_its_kind() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("tree/small", tree::bytes(10, 1));
    sandbox.write("tree/large", tree::bytes(MIB + 1, 2));
    sandbox.write("tree/directory/inner", "inner");
    symlink("somewhere", sandbox.path("tree/link")).unwrap();
    sandbox.write("canary/kept", "kept");
    let canary = sandbox.path("canary");
    type Make<'a> = &'a dyn Fn(&Path);
    let stands: [(&str, Make<'_>); 7] = [
        ("file", &|path| fs::write(path, "old").unwrap()),
        ("directory", &|path| fs::create_dir(path).unwrap()),
        ("link to a file", &|path| symlink(canary.join("kept"), path).unwrap()),
        ("link to a directory", &|path| symlink(&canary, path).unwrap()),
        ("link to nothing", &|path| symlink("absent", path).unwrap()),
        ("fifo", &|path| drop(tool(Command::new("mkfifo").arg(path)))),
        ("socket", &|path| drop(UnixListener::bind(path).unwrap())),
    ];
    for (index, (kind, make)) in stands.into_iter().enumerate() {
        let place = sandbox.path("root").join(index.to_string());
        fs::create_dir(&place).unwrap();
        for name in ["small", "large", "directory", "link"] {
            make(&place.join(name));
        }
        let before = content(&place);
        let ran = sandbox.run(["tree/", &node.at(&index.to_string()), &node.token()]);
        assert_eq!(ran.code, 23, "{kind}: {}", ran.stderr);
        for name in ["small", "large", "link"] {
            let is_told = ran.stderr.contains(&format!("failed: destination: {name}: "));
            let replaces = kind == "file" || kind.starts_with("link");
            assert_eq!(is_told, !replaces, "{name} over {kind}: {}", ran.stderr);
            if replaces {
                same_tree(&sandbox.path("tree").join(name), &place.join(name));
            }
        }
        let merged = kind == "directory";
        assert_eq!(fs::read(place.join("directory/inner")).is_ok(), merged, "into {kind}");
        let is_told = ran.stderr.contains("failed: destination: directory: ") && ran.stderr.contains("1 item below it");
        assert_eq!(is_told, !merged, "{kind}: {}", ran.stderr);
        for (path, held) in before {
            let kept = fs::symlink_metadata(&path).is_ok();
            let replaced = ["small", "large", "link"].iter().any(|name| path.ends_with(name)) && held.is_some();
            assert!(kept && (replaced || content(&place).contains(&(path.clone(), held))), "{}", path.display());
        }
        assert_eq!(content(&canary), [(canary.join("kept"), Some(b"kept".to_vec()))], "{kind}");
    }
    assert!(sandbox.parts("root").is_empty());
}

#[test]
fn device_stays_a_device() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("tree/null", "content");
    sandbox.write("many/null/inner", "content");
    let device = sandbox.path("there/null");
    fs::create_dir(sandbox.path("there")).unwrap();
    tool(Command::new("mknod").arg(&device).args(["c", "1", "3"]));
    // Below a directory it is in the way; named itself it takes the bytes.
    sandbox.run(["tree/", "there"]).failed_with(23, &["null", "is not replaced"]);
    sandbox.run(["many/", "there"]).failed_with(23, &["null"]);
    sandbox.ok(["tree/null", "there/null"]);
    sandbox.run(["tree", "there/null"]).failed_with(2, &["takes the bytes of one file"]);
    assert_eq!(fs::symlink_metadata(&device).unwrap().rdev(), 0x103);
    // A full one is no success, whatever the last bytes are.
    for content in ["no line", "a line\n", "a line\nand a half"] {
        let source = sandbox.write("text", content);
        for arguments in [["text", "-"], ["-", "-"], ["text", "/dev/full"]] {
            let mut command = sandbox.carrack();
            command.args(arguments).stdin(fs::File::open(&source).unwrap());
            command.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
            // Of standard output the exit code is that of the one file.
            let code = if arguments[1] == "-" { 11 } else { 23 };
            ran(errors_of(&mut command).unwrap()).failed_with(code, &["No space left"]);
        }
    }
}

/// Nothing waits for ever for a reader: a signal ends it, and so does the end of the command for the node's part of it.
#[test]
fn fifo_gets_the_bytes_when_it_has_a_reader() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    for place in ["here", "root/there"] {
        tool(Command::new("mkfifo").arg(sandbox.path(place)));
    }
    for size in [0, 10, 3 * MIB] {
        let source = sandbox.write("file", tree::bytes(size, 1));
        for (destination, fifo) in [("here".to_string(), "here"), (node.at("there"), "root/there")] {
            for arguments in [["file", &destination], ["-", &destination]] {
                let mut command = sandbox.carrack();
                command.args(arguments).arg(node.token()).stdin(fs::File::open(&source).unwrap());
                let running = Running::start(&mut command);
                let read = fs::read(sandbox.path(fifo)).unwrap();
                assert_eq!(running.end().code, 0);
                assert!(read == fs::read(&source).unwrap(), "{size} to {destination}");
            }
        }
    }
    sandbox.write("file", tree::bytes(3 * MIB, 1));
    let threads = || fs::read_dir(format!("/proc/{}/task", node.child.id())).unwrap().count();
    let before = threads();
    for (destination, fifo) in [("here".to_string(), "here"), (node.at("there"), "root/there")] {
        for has_reader in [false, true] {
            let mut command = sandbox.carrack();
            let mut running = Running::start(command.args(["file", &destination, &node.token()]));
            // It has begun: a reader would find a writer, or is one already and reads nothing.
            let reader = has_reader.then(|| fs::File::open(sandbox.path(fifo)).unwrap());
            let tasks = format!("/proc/{}/task", running.id());
            wait_until("both ends are at work", || fs::read_dir(&tasks).unwrap().count() > 5);
            assert!(running.is_running());
            signal(running.id(), "INT");
            assert_eq!(running.end().code, 20, "{destination} {has_reader}");
            drop(reader);
        }
    }
    wait_until("the node waits for no reader any more", || threads() <= before);
    sandbox.ok(["ls", &node.at(""), &node.token()]);
    assert!(!fs::symlink_metadata(sandbox.path("here")).unwrap().is_file());
}

#[test]
fn file_too_large_for_a_limit_is_an_error_of_the_file() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/small", "fits");
    sandbox.write("tree/bundled", tree::bytes(300_000, 1));
    sandbox.write("tree/large", tree::bytes(3 * MIB, 2));
    sandbox.write("out/large", "old");
    // SIGXFSZ would end the process.
    let ran = under(&sandbox, &["prlimit", "--fsize=200000", "--"], &["tree/", "out"]);
    ran.failed_with(23, &["bundled", "large", "File too large"]);
    assert_eq!(fs::read(sandbox.path("out/small")).unwrap(), b"fits");
    assert_eq!(fs::read(sandbox.path("out/large")).unwrap(), b"old");
    assert!(!sandbox.path("out/bundled").exists() && sandbox.parts("out").is_empty());
}

#[test]
fn part_file_is_its_owners_alone() {
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    let node = Node::start(&sandbox, "root", &[]);
    let source = sandbox.write("file", tree::bytes(4 * MIB, 1));
    fs::set_permissions(&source, Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(sandbox.path("root"), Permissions::from_mode(0o755)).unwrap();
    let running = slow_copy(&sandbox, &source, &["file", &node.at("there"), &node.token()]);
    let parts = sandbox.parts("root");
    assert_eq!(crate::support::mode(&parts[0]), 0o600);
    if is_root() {
        let mut read = Command::new(NOBODY[0]);
        let read = read.args(&NOBODY[1..]).arg("cat").arg(&parts[0]).output_in_time().unwrap();
        assert!(!read.status.success() && read.stdout.is_empty());
        assert!(String::from_utf8_lossy(&read.stderr).contains("ermission denied"));
    }
    assert_eq!(running.end().code, 0);
    assert_eq!(crate::support::mode(&sandbox.path("root/there")), 0o666);
}
