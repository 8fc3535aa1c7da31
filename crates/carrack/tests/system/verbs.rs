//! `ls`, `stat`, `mkdir`, `mv`, `rm`, `sum` and `gc`: the same here and at a node.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::fidelity;
use crate::support::node::Node;
use crate::support::{Sandbox, b3sum, is_root, tool, tree};

/// Runs a test in both places: words become locations by the function given.
fn everywhere(test: impl Fn(&Sandbox, &dyn Fn(&str) -> String, &str)) {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("root")).unwrap();
    test(&sandbox, &|path| format!("root/{path}"), "-q");
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    test(&sandbox, &|path| node.at(path), &node.token());
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn listing() {
    everywhere(|sandbox, at, token| {
        sandbox.write("root/b/c/deep", "12345");
        let file = sandbox.write("root/a", "123");
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 7);
        File::open(&file).unwrap().set_modified(time).unwrap();
        symlink("nowhere", sandbox.path("root/link")).unwrap();
        symlink("b", sandbox.path("root/to-b")).unwrap();
        assert_eq!(sorted(&sandbox.ok(["ls", &at(""), token]).stdout), ["a", "b", "link", "to-b"]);
        let all = ["a", "b", "b/c", "b/c/deep", "link", "to-b"];
        assert_eq!(sorted(&sandbox.ok(["ls", "-R", &at(""), token]).stdout), all);
        assert_eq!(sandbox.ok(["ls", &at("a"), token]).stdout, "a\n");
        assert_eq!(sandbox.ok(["ls", &at("b/c/"), token]).stdout, "deep\n");
        assert_eq!(sandbox.ok(["ls", &at("to-b"), token]).stdout, "c\n");
        assert_eq!(sandbox.ok(["ls", &at("link"), token]).stdout, "link\n");
        let long = sandbox.ok(["ls", "-l", &at(""), token]).stdout;
        for (begin, end) in [("drwx", " b"), ("lrwx", " link -> nowhere"), ("lrwx", " to-b -> b")] {
            assert!(long.lines().any(|line| line.starts_with(begin) && line.ends_with(end)), "{end}: {long}");
        }
        let is_file = |line: &str| line.starts_with("-rw-r-----   1 ") && line.ends_with(" 3 2023-11-14T22:13:20Z a");
        assert!(long.lines().any(is_file), "{long}");
        let found = objects(&sandbox.ok(["ls", "-R", "--json", &at(""), token]).stdout);
        let (summary, entries) = found.split_last().unwrap();
        assert_eq!(
            (&summary["type"], &summary["done"], &summary["exit_code"]),
            (&"summary".into(), &6.into(), &0.into())
        );
        let a = entries.iter().find(|entry| entry["path"] == "a").unwrap();
        assert_eq!((&a["kind"], &a["size"], &a["mode"]), (&"file".into(), &3.into(), &"0640".into()));
        assert_eq!(a["mtime"], "2023-11-14T22:13:20.000000007Z");
        let link = entries.iter().find(|entry| entry["path"] == "link").unwrap();
        assert_eq!((&link["kind"], &link["link_target"]), (&"symlink".into(), &"nowhere".into()));
        sandbox.run(["ls", &at("absent"), token]).failed_with(11, &["absent", "No such file"]);
    });
}

#[test]
fn describing() {
    everywhere(|sandbox, at, token| {
        let file = sandbox.write("root/d/a", "123");
        fs::set_permissions(&file, Permissions::from_mode(0o4711)).unwrap();
        symlink("a", sandbox.path("root/d/link")).unwrap();
        let told = sandbox.ok(["stat", &at("d/a"), &at("d/link"), &at("d"), token]).stdout;
        for line in
            ["kind: file", "size: 3 bytes", "mode: 4711 (-rws--x--x)", "kind: symlink", "target: a", "kind: directory"]
        {
            assert!(told.contains(line), "{line}: {told}");
        }
        let found = objects(&sandbox.ok(["stat", "--json", &at("d/a"), token]).stdout);
        assert_eq!((&found[0]["type"], &found[0]["size"]), (&"entry".into(), &3.into()));
        assert_eq!(found.len(), 2);
        let some = sandbox.run(["stat", &at("d/a"), &at("absent"), token]);
        some.failed_with(23, &["absent"]);
        sandbox.run(["stat", &at("absent"), token]).failed_with(11, &["absent"]);
        sandbox.run(["stat", &at("d/a/b"), token]).failed_with(11, &["Not a directory"]);
    });
}

#[test]
fn what_else_an_item_has_is_shown() {
    if !is_root() {
        return;
    }
    everywhere(|sandbox, at, token| {
        let file = sandbox.write("root/d/a", "123");
        sandbox.write("root/d/plain", "123");
        fs::hard_link(&file, sandbox.path("root/d/b")).unwrap();
        std::os::unix::fs::chown(&file, Some(1), Some(54321)).unwrap();
        fidelity::set(&file, fidelity::ACCESS, &fidelity::list([6, 4, 0, 6, 0], 54321));
        fidelity::set(&file, "user.note", b"value");
        fidelity::set(&sandbox.path("root/d"), fidelity::DEFAULT, &fidelity::list([7, 5, 0, 5, 0], 1));
        let told = sandbox.ok(["stat", &at("d/a"), &at("d"), token]).stdout;
        for line in [
            "owner: daemon (1)",
            "group: 54321",
            "names: 2",
            "acl: user::rw- user:54321:r-- group::--- mask::rw- other::---",
            "default: user::rwx user:daemon:r-x group::--- mask::r-x other::---",
            "xattrs: user.note",
        ] {
            assert!(told.contains(line), "{line}: {told}");
        }
        let long = sandbox.ok(["ls", "-l", &at("d"), token]).stdout;
        let line = |name: &str| long.lines().find(|line| line.ends_with(name)).unwrap().to_owned();
        assert!(line(" a").starts_with("-rw-rw----+  2 daemon   54321 "), "{long}");
        assert!(line(" plain").starts_with("-rw-r--r--   1 root     root "), "{long}");
        let found = objects(&sandbox.ok(["stat", "--json", &at("d/a"), token]).stdout);
        assert_eq!(found[0]["owner"], serde_json::json!({ "id": 1, "name": "daemon" }));
        assert_eq!((&found[0]["names"], &found[0]["extended_attributes"][0]), (&2.into(), &"user.note".into()));
    });
}

#[test]
fn making_and_moving_and_removing() {
    everywhere(|sandbox, at, token| {
        let there = |path: &str| fs::symlink_metadata(sandbox.path("root").join(path)).is_ok();
        sandbox.run(["mkdir", &at("a/b/c"), token]).failed_with(11, &["a/b/c", "No such file"]);
        sandbox.ok(["mkdir", &at("x"), token]);
        sandbox.run(["mkdir", &at("x"), token]).failed_with(11, &["x", "File exists"]);
        sandbox.ok(["mkdir", "-p", &at("a/b/c"), &at("x"), token]);
        assert!(there("a/b/c"));
        sandbox.write("root/file", "1");
        sandbox.run(["mkdir", "-p", &at("file/d"), token]).failed_with(11, &["file/d"]);
        sandbox.ok(["mv", &at("file"), &at("renamed"), token]);
        assert!(!there("file") && there("renamed"));
        sandbox.ok(["mv", &at("renamed"), &at("x"), token]);
        assert!(there("x/renamed"));
        sandbox.ok(["mv", &at("a/b"), &at("x/"), token]);
        assert!(there("x/b/c") && !there("a/b"));
        sandbox.write("root/other", "2");
        sandbox.ok(["mv", &at("other"), &at("x/renamed"), token]);
        assert_eq!(fs::read(sandbox.path("root/x/renamed")).unwrap(), b"2");
        sandbox.run(["mv", &at("absent"), &at("y"), token]).failed_with(11, &["absent"]);
        sandbox.run(["mv", &at("x"), &at("x/b"), token]).failed_with(2, &["into itself"]);
        sandbox.run(["mv", &at("x/renamed"), "null:", token]).failed_with(2, &[]);
        sandbox.run(["rm", &at("x"), token]).failed_with(11, &["is a directory", "-r"]);
        sandbox.write("root/x/b/c/-rf", "3");
        sandbox.write("outside/kept", "kept");
        symlink(sandbox.path("outside"), sandbox.path("root/x/b/link")).unwrap();
        symlink(sandbox.path("outside"), sandbox.path("root/link")).unwrap();
        sandbox.ok(["rm", "-r", &at("x"), &at("link"), token]);
        assert!(!there("x") && !there("link") && sandbox.path("outside/kept").exists());
        sandbox.run(["rm", &at("x"), token]).failed_with(11, &["x"]);
        sandbox.ok(["rm", "-f", &at("x"), token]);
        sandbox.run(["rm", "-r", &at("a/.."), token]).failed_with(2, &["does not remove"]);
        sandbox.run(["rm", "-r", &at(""), token]).failed_with(if at("").ends_with("root/") { 0 } else { 2 }, &[]);
    });
}

#[test]
fn renaming_one_hard_link_to_another_leaves_one() {
    everywhere(|sandbox, at, token| {
        sandbox.write("root/a", "1");
        fs::create_dir(sandbox.path("root/d")).unwrap();
        let link = |to: &str| fs::hard_link(sandbox.path("root/a"), sandbox.path(to)).unwrap();
        for (to, typed) in [("root/b", "b"), ("root/d/b", "d/b"), ("root/d/a", "d")] {
            link(to);
            link("root/kept");
            sandbox.ok(["mv", &at("a"), &at(typed), token]);
            assert!(!sandbox.path("root/a").exists() && sandbox.path(to).exists(), "{to}");
            fs::rename(sandbox.path("root/kept"), sandbox.path("root/a")).unwrap();
        }
        for typed in ["a", "./a", ""] {
            sandbox.run(["mv", &at("a"), &at(typed), token]).failed_with(2, &["the same file"]);
        }
        assert_eq!(fs::read(sandbox.path("root/a")).unwrap(), b"1");
    });
}

#[test]
fn renaming_across_file_systems_is_refused_in_its_own_words() {
    let (sandbox, memory) = (Sandbox::new(), Sandbox::in_memory());
    let device = |sandbox: &Sandbox| std::os::unix::fs::MetadataExt::dev(&fs::metadata(sandbox.path(".")).unwrap());
    if device(&sandbox) == device(&memory) {
        return;
    }
    sandbox.write("file", "1");
    let ran = sandbox.run(["mv", "file", memory.path("file").to_str().unwrap()]);
    ran.failed_with(11, &["they are on different file systems", "copy, then remove"]);
    assert!(!ran.stderr.contains("directory that is served"), "{}", ran.stderr);
    assert!(sandbox.path("file").exists());
}

/// Something that cannot be removed; what holds it there goes when dropped.
struct Stuck(std::path::PathBuf);

impl Stuck {
    fn new(path: std::path::PathBuf) -> Self {
        fs::create_dir_all(&path).unwrap();
        match is_root() {
            true => drop(tool(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&path))),
            false => {
                fs::write(path.join("held"), "").unwrap();
                fs::set_permissions(&path, Permissions::from_mode(0o500)).unwrap();
            }
        }
        Self(path)
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        match is_root() {
            true => drop(tool(Command::new("umount").arg(&self.0))),
            false => fs::set_permissions(&self.0, Permissions::from_mode(0o700)).unwrap(),
        }
    }
}

#[test]
fn rm_goes_on_after_what_cannot_be_removed() {
    everywhere(|sandbox, at, token| {
        for number in 0..20 {
            sandbox.write(format!("root/x/{number}/deep/file"), "1");
        }
        let stuck = ["3/deep/one", "7/two", "zero"].map(|path| Stuck::new(sandbox.path("root/x").join(path)));
        let ran = sandbox.run(["rm", "-r", "--json", &at("x"), token]);
        ran.failed_with(23, &["x/3/deep/one", "x/7/two", "x/zero"]);
        let left: Vec<_> = tree::walk(&sandbox.path("root/x"));
        let kept = |path: &std::path::Path| stuck.iter().any(|one| one.0.starts_with(path) || path.starts_with(&one.0));
        assert!(left.iter().all(|path| kept(path)), "{left:?}");
        let summary = ran.summary();
        assert_eq!((&summary["failed"], &summary["done"]), (&3.into(), &57.into()), "{}", ran.stdout);
        drop(stuck);
        sandbox.ok(["rm", "-r", &at("x"), token]);
        assert!(!sandbox.path("root/x").exists());
    });
}

#[test]
fn sum_tells_no_digest_of_a_file_that_changes_meanwhile() {
    const SIZE: u64 = 512 << 20;
    everywhere(|sandbox, at, token| {
        let path = sandbox.write("root/d/changes", "");
        File::options().write(true).open(&path).unwrap().set_len(SIZE).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Seldom enough to be opened in a moment of rest, and more often than it can be read.
                let file = File::options().write(true).open(&path).unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::os::unix::fs::FileExt::write_all_at(&file, b"x", SIZE - 1).unwrap();
                    std::thread::sleep(Duration::from_millis(40));
                }
            });
            let ran = ["d/changes", "d"].map(|typed| sandbox.run(["sum", &at(typed), token]));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            for ran in ran {
                ran.failed_with(11, &["run the same command again"]);
                assert_eq!(ran.stdout, "");
            }
        });
        sandbox.ok(["sum", &at("d/changes"), token]);
    });
}

#[test]
fn digests_where_the_files_are() {
    everywhere(|sandbox, at, token| {
        tree::mixed(&sandbox.path("root/tree"));
        fs::remove_file(sandbox.path("root/tree/not-utf8-").with_file_name(OsStr::from_bytes(b"not-utf8-\xff\xfe")))
            .unwrap();
        let files = tree::walk(&sandbox.path("root/tree"));
        let files: Vec<_> =
            files.iter().filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_file())).collect();
        let found =
            objects(&sandbox.ok(["sum", "--json", "--digest=blake3,adler32,crc32c", &at("tree"), token]).stdout);
        assert_eq!(found.len(), files.len() + 1);
        for path in files {
            let name = path.strip_prefix(sandbox.path("root")).unwrap().to_str().unwrap();
            let sum = found.iter().find(|sum| {
                sum["path"].as_str().is_some_and(|path| path.trim_start_matches("root").trim_start_matches('/') == name)
            });
            let sum = sum.unwrap_or_else(|| panic!("{name:?} is not in {found:?}"));
            assert_eq!(sum["blake3"].as_str(), Some(b3sum(path).as_str()), "{name:?}");
            assert_eq!(sum["size"], path.metadata().unwrap().len());
        }
        let one = sandbox.ok(["sum", &at("tree/link"), token]).stdout;
        assert_eq!(one.split("  ").next().unwrap(), b3sum(&sandbox.path("root/tree/one")));
        let checks = sandbox.write("root/check", "123456789");
        let both = sandbox.ok(["sum", "--digest=adler32,crc32c", &at("check"), token]).stdout;
        assert!(both.contains("= 091e01de\n") && both.contains("= e3069283\n"), "{both} {checks:?}");
        sandbox.run(["sum", &at("absent"), token]).failed_with(11, &["absent"]);
    });
}

/// Runs words on a terminal of their own and returns what that showed.
pub fn on_terminal(sandbox: &Sandbox, words: &[&str]) -> String {
    let carrack = sandbox.carrack();
    let quoted: Vec<String> = std::iter::once(carrack.get_program().to_str().unwrap())
        .chain(words.iter().copied())
        .map(|word| format!("'{word}'"))
        .collect();
    let mut command = Command::new("script");
    command.args(["-qec", &quoted.join(" "), "/dev/null"]).current_dir(sandbox.path(".")).stdin(Stdio::null());
    command.env_clear().envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
    tool(&mut command)
}

#[test]
fn name_cannot_command_the_terminal() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    for name in
        [&b"\x1b[2J\x1b]0;owned\x07"[..], b"line\nbreak", b"\xff\x9b31m", b"\x08\x7f", "\u{9b}x\u{202e}".as_bytes()]
    {
        fs::write(sandbox.path("root").join(OsStr::from_bytes(name)), "x").unwrap();
    }
    symlink(OsStr::from_bytes(b"\x1b[31m"), sandbox.path("root/link")).unwrap();
    let (place, token) = (node.at(""), node.token());
    for words in [
        vec!["ls", &place, &token],
        vec!["ls", "-lR", &place, &token],
        vec!["sum", &place, &token],
        vec!["-v", "--no-progress", &place, "copied", &token],
        vec!["-n", "-v", &place, "copied", &token],
    ] {
        let shown = on_terminal(&sandbox, &words);
        assert!(shown.contains("\\x1b") || words[0] == "-n", "{words:?}: {shown:?}");
        let harmless =
            |character: char| matches!(character, '\r' | '\n') || !character.is_control() && character != '\u{202e}';
        assert!(shown.chars().all(harmless), "{words:?}: {shown:?}");
    }
    // Into a pipe `ls` is as careful: one line is one entry.
    assert_eq!(sandbox.ok(["ls", &place, &token]).stdout.lines().count(), 6);
}

#[test]
fn large_directory_is_listed_as_it_is_read() {
    const ENTRIES: usize = 100_000;
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    fs::create_dir(sandbox.path("root/many")).unwrap();
    for index in 0..ENTRIES {
        File::create(sandbox.path(format!("root/many/{index:06}"))).unwrap();
    }
    // A reader that stops after the first line ends the listing without a word: it was not gathered whole before.
    let mut command = sandbox.carrack();
    command.args(["ls", &node.at("many"), &node.token()]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap().len(), 6);
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(141));
    let all = sandbox.ok(["ls", &node.at("many"), &node.token()]).stdout;
    let mut names = sorted(&all);
    names.dedup();
    assert_eq!(names.len(), ENTRIES);
    let peak = crate::support::running::peak_resident(node.child.id()).unwrap();
    assert!(peak < 64 << 20, "the node took {peak} bytes");
}

/// A marker with this tag, as a session leaves it.
pub fn marker(sandbox: &Sandbox, path: &str, tag: [u8; 8]) -> File {
    use carrack_core::request::Durability;
    use carrack_core::transfer::marker::{Chain, Record, SessionRecord};
    let (mut bytes, mut chain) = Chain::begin(tag);
    let session = SessionRecord { boot: [1; 16], durability: Durability::Group };
    chain.append(&Record::Session(session), &mut bytes);
    let path = sandbox.write(path, bytes);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    File::open(path).unwrap()
}

#[test]
fn collecting_leftovers() {
    everywhere(|sandbox, at, token| {
        marker(sandbox, "root/in/.carrack-00112233aabbccdd.marker", *b"0badcafe");
        let live = marker(sandbox, "root/live/.carrack-00112233aabbccdd.marker", *b"11111111");
        assert!(carrack_sys::file::try_lock(&live).unwrap());
        for file in ["in/.f.carrack-0badcafe-1.part", "in/d/.g.carrack-0badcafe.part", "in/.h.carrack-0badcafe-x2.part"]
        {
            sandbox.write(format!("root/{file}"), "left");
        }
        for file in ["in/f", "in/.f.part", "live/.f.carrack-11111111-1.part", "live/d/.f.carrack-11111111.part"] {
            sandbox.write(format!("root/{file}"), "stays");
        }
        let before = tree::walk(&sandbox.path("root")).len();
        let young = sandbox.ok(["gc", "--older-than", "1h", &at(""), token]);
        assert_eq!(young.stdout, "");
        let told = sandbox.ok(["gc", "-n", "--json", "--older-than", "0s", &at(""), token]);
        assert_eq!(told.summary()["done"], 4, "{}", told.stdout);
        assert_eq!(tree::walk(&sandbox.path("root")).len(), before);
        let gone = objects(&sandbox.ok(["gc", "--json", "--older-than", "0s", &at(""), token]).stdout);
        let (summary, gone) = gone.split_last().unwrap();
        assert_eq!((&summary["verb"], &summary["done"]), (&"gc".into(), &4.into()));
        assert!(gone.iter().all(|one| one["type"] == "leftover" && one["dry_run"] == false), "{gone:?}");
        assert_eq!(tree::walk(&sandbox.path("root")).len(), before - 4);
        assert!(!sandbox.path("root/in/.carrack-00112233aabbccdd.marker").exists());
        drop(live);
        sandbox.ok(["gc", "--older-than", "0s", &at("live"), token]);
        assert_eq!(fs::read_dir(sandbox.path("root/live")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(sandbox.path("root/live/d")).unwrap().count(), 0);
        assert_eq!(fs::read(sandbox.path("root/in/f")).unwrap(), b"stays");
        sandbox.run(["gc", &at("absent"), token]).failed_with(11, &["absent"]);
        sandbox.run(["gc", "--older-than", "soon", &at(""), token]).failed_with(2, &["--older-than", "soon"]);
    });
}

#[test]
fn collecting_spares_what_is_only_named_like_a_marker_and_what_a_live_marker_keeps() {
    everywhere(|sandbox, at, token| {
        let notes = sandbox.write("root/.carrack-00112233aabbccdd.marker", "somebody's notes");
        fs::set_permissions(&notes, Permissions::from_mode(0o600)).unwrap();
        let live = marker(sandbox, "root/live/.carrack-00112233aabbccdd.marker", *b"11111111");
        assert!(carrack_sys::file::try_lock(&live).unwrap());
        let part = sandbox.write("root/live/d/.f.carrack-11111111-1.part", "being written");
        drop(marker(sandbox, "root/live/d/.carrack-ffffffffffffffff.marker", *b"11111111"));
        let gone = objects(&sandbox.ok(["gc", "--json", "--older-than", "0s", &at(""), token]).stdout);
        assert_eq!(gone.len(), 2, "{gone:?}");
        assert!(gone[0]["path"].as_str().unwrap().ends_with("live/d/.carrack-ffffffffffffffff.marker"), "{gone:?}");
        assert!(notes.exists() && part.exists());
    });
}

#[test]
fn node_collects_below_its_root_only() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("root")).unwrap();
    drop(marker(&sandbox, "outside/.carrack-00112233aabbccdd.marker", *b"0badcafe"));
    symlink(sandbox.path("outside"), sandbox.path("root/link")).unwrap();
    symlink("../outside", sandbox.path("root/up")).unwrap();
    let node = Node::start(&sandbox, "root", &[]);
    for path in ["../outside", "link", "up", ""] {
        sandbox.run(["gc", "--older-than", "0s", &node.at(path), &node.token()]);
        assert!(sandbox.path("outside/.carrack-00112233aabbccdd.marker").exists(), "{path}");
    }
}
