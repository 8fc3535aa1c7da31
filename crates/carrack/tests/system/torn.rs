//! Content that is put together from two: of two states of a source, of two sources, of a copy and what was left of
//! another. Never under a name with exit code 0.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carrack_faults::fuse::{Call, Fault, FaultFs, Features, When};
use carrack_faults::image::Image;

use crate::faults::under;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, same_tree, tool, tree, wait_until};

const MIB: usize = 1 << 20;

/// Waits until a file's change time is so old that a session that begins now takes it for settled.
fn wait_until_settled(path: &Path) {
    let changed = fs::metadata(path).unwrap().ctime();
    wait_until("the change time is old", || carrack_sys::host::clock_seconds() > changed + 3);
}

/// Waits until a second has just begun: what is done at once then falls into one.
fn wait_for_a_second() {
    wait_until("a second begins", || carrack_sys::host::clock().nanos < 100_000_000);
}

fn holds_data_at(path: &Path, offset: u64) -> bool {
    let mut found = [0; 4096];
    File::open(path).is_ok_and(|file| file.read_exact_at(&mut found, offset).is_ok()) && found != [0; 4096]
}

/// Half of one file has come; it goes on with another of the same name, size and times, which is a hole there.
#[test]
fn hole_that_comes_for_a_resumed_file_is_written() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let content = tree::bytes(24 * MIB, 1);
    let ways = [&["local"][..], &["local", "--digest=xxh128"], &["local", "--verify=disk"], &["node"]];
    let mut last = None;
    for way in 0..ways.len() {
        let dense = sandbox.write(format!("{way}/src/f"), &content);
        let time = fs::metadata(&dense).unwrap().modified().unwrap();
        let sparse = sandbox.write(format!("{way}/other/f"), "");
        let file = File::options().write(true).open(&sparse).unwrap();
        file.set_len(content.len() as u64).unwrap();
        file.write_all_at(&content[16 * MIB..], 16 * MIB as u64).unwrap();
        file.set_modified(time).unwrap();
        last = Some(sparse);
    }
    wait_until_settled(&last.unwrap());
    for (way, flags) in ways.iter().enumerate() {
        let (there, below) = match flags[0] {
            "node" => (node.at(&format!("{way}/")), format!("root/{way}")),
            _ => (format!("dst/{way}/"), format!("dst/{way}")),
        };
        let (source, token) = (format!("{way}/src/f"), node.token());
        let arguments = [&[&source, &there, &token, "--block=256K", "--streams=2"], &flags[1..]].concat();
        let running = Running::start(sandbox.carrack().args(&arguments).args(["--bwlimit=8M", "--retries=0"]));
        wait_until("some of it has come", || {
            sandbox.parts(&below).iter().any(|part| holds_data_at(part, 6 * MIB as u64))
        });
        signal(running.id(), "TERM");
        assert_ne!(running.end().code, 0);
        fs::rename(sandbox.path(format!("{way}/src")), sandbox.path(format!("{way}/old"))).unwrap();
        fs::rename(sandbox.path(format!("{way}/other")), sandbox.path(format!("{way}/src"))).unwrap();
        sandbox.ok(&arguments);
        same_tree(&sandbox.path(&source), &sandbox.path(format!("{below}/f")));
    }
}

/// `a/` and `b/` with `x`, `big` and `d/f` in both.
fn two_sources(sandbox: &Sandbox) {
    for (index, place) in ["a", "b"].into_iter().enumerate() {
        let seed = 10 * (index as u64 + 1);
        sandbox.write(format!("{place}/x"), tree::bytes(5000, seed));
        sandbox.write(format!("{place}/big"), tree::bytes(3 * MIB, seed + 1));
        sandbox.write(format!("{place}/d/f"), tree::bytes(100, seed + 2));
        sandbox.write(format!("{place}/d/only-{place}"), tree::bytes(100, seed + 3));
    }
}

/// Sources, flags, what fails of them, files that are copied.
type Way<'a> = (&'a [&'a str], &'a [&'a str], Vec<&'a str>, u64);

/// The first source's stays, and the second's is a failed item, whatever else was asked for.
#[test]
fn sources_with_the_same_names_are_told() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    two_sources(&sandbox);
    let (third, token) = (sandbox.write("third/x", "x"), node.token());
    let list = sandbox.write("list", "d\nx\n");
    let files_from = format!("--files-from={}", list.display());
    let far = |path: &str| node.at(path);
    let (ab, failing) = (["a/", "b/"], vec!["big", "d/f", "x"]);
    let ways: [Way; 7] = [
        (&ab, &[], failing.clone(), 5),
        (&ab, &["--no-clobber"], failing.clone(), 5),
        (&ab, &["--verify=disk", "--durable=each"], failing.clone(), 5),
        (&ab, &["--encrypt=none", "--digest=none", "--verify=none"], failing, 5),
        (&ab, &[&files_from], vec!["d/f", "x"], 4),
        (&["a/", "third/x"], &[], vec!["x"], 4),
        (&["third/x", "a/"], &[], vec!["x"], 4),
    ];
    for (number, (sources, flags, failing, files)) in ways.iter().enumerate() {
        for (destination, below) in [(format!("dst/{number}"), "dst"), (far(&number.to_string()), "root")] {
            let there = sandbox.path(format!("{below}/{number}"));
            for dry_run in [&["--dry-run"][..], &[]] {
                let arguments = [sources, *flags, dry_run, &[&destination, &token, "--json"]].concat();
                let ran = sandbox.run(&arguments);
                assert_eq!(ran.code, 23, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
                let summary = ran.summary();
                let told = summary["failures"].as_array().unwrap();
                let mut paths: Vec<&str> = told.iter().map(|one| one["path"].as_str().unwrap()).collect();
                paths.sort_unstable();
                assert_eq!(&paths, failing, "{arguments:?}");
                assert_eq!(told[0]["code"], "already-exists");
                assert_eq!(summary["files"], *files, "{arguments:?}");
                if !dry_run.is_empty() {
                    assert!(!there.exists(), "{arguments:?}");
                }
            }
            let first = if sources[0] == "a/" { sandbox.path("a/x") } else { third.clone() };
            same_tree(&first, &there.join("x"));
            same_tree(&sandbox.path("a/d/f"), &there.join("d/f"));
            assert_eq!(there.join("d/only-b").exists(), sources[1] == "b/");
            assert!(there.join("d/only-a").exists() && sandbox.parts(below).is_empty());
        }
    }
    let ran = sandbox.run(["a/", "b/", "words"]);
    ran.failed_with(23, &["b/x and a/x would both become x", "b/d/f and a/d/f", "b/big and a/big"]);
    sandbox.run(["a/", "b/../a/", "twice"]).failed_with(2, &["named twice"]);
    assert!(!sandbox.path("twice").exists());
}

/// A file of the first source that is not selected is in nobody's way. A dry run says the same.
#[test]
fn sources_conflict_only_in_what_is_selected() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    for name in ["a/d", "a/x", "b/d/f", "b/d/g", "b/x"] {
        sandbox.write(name, name);
    }
    sandbox.write("some", "d/f\n");
    sandbox.write("all", "d\nx\n");
    let token = node.token();
    for (number, to) in ["dst".to_string(), node.at("dst")].iter().enumerate() {
        for dry_run in [&["--dry-run"][..], &[]] {
            let arguments = [&["a/", "b/", "--json", "--files-from=some", to, &token][..], dry_run].concat();
            let ran = sandbox.run(&arguments);
            assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(ran.summary()["files"], 1, "{arguments:?}");
        }
        let there = sandbox.path(["dst", "root/dst"][number]);
        assert_eq!(std::fs::read(there.join("d/f")).unwrap(), b"b/d/f");
        assert!(!there.join("d/g").exists() && !there.join("x").exists());
        std::fs::remove_dir_all(&there).unwrap();
        for dry_run in [&["--dry-run"][..], &[]] {
            let ran = sandbox.run([&["a/", "b/", "--json", "--files-from=all", to, &token][..], dry_run].concat());
            ran.failed_with(23, &["b/x and a/x would both become x", "b/d and a/d"]);
            assert_eq!(ran.summary()["files"], 2);
        }
        assert_eq!(std::fs::read(there.join("x")).unwrap(), b"a/x");
    }
}

/// What another copy into the source has under way there is none of the source's.
#[test]
fn markers_and_part_files_are_left_out_and_counted() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let own = [".carrack-0123456789abcdef.marker", ".carrack-0123456789abcdef-2.marker", ".f.carrack-01234567.part"];
    for name in own.into_iter().chain(["f", ".foo.part", ".carrack-notes.marker", "x.carrack-01234567.part"]) {
        sandbox.write(format!("tree/sub/{name}"), name);
    }
    std::os::unix::fs::symlink("f", sandbox.path("tree/sub/.l.carrack-01234567-7.part")).unwrap();
    sandbox.write("tree/.d.carrack-01234567.part/f", "a directory of this name is nobody's part file");
    let token = node.token();
    for (destination, there) in [("dst".to_string(), "dst"), (node.at(""), "root")] {
        for dry_run in [&["--dry-run"][..], &[]] {
            let summary = sandbox.ok([&["tree/", &destination, &token, "--json"], dry_run].concat()).summary();
            assert_eq!((&summary["leftovers_skipped"], &summary["files"]), (&4.into(), &5.into()), "{summary}");
        }
        let ran = sandbox.ok(["tree/", &destination, &token, "-v"]);
        assert!(ran.stderr.contains("left out: 4 markers and part files of other copies"), "{}", ran.stderr);
        let there = sandbox.path(there);
        assert!(own.iter().all(|name| !there.join("sub").join(name).exists()));
        for name in ["sub/f", "sub/.foo.part", "sub/.carrack-notes.marker", "sub/x.carrack-01234567.part"] {
            same_tree(&sandbox.path("tree").join(name), &there.join(name));
        }
        assert!(there.join(".d.carrack-01234567.part/f").exists());
    }
    // Named itself it is wanted: a part file as it is called, a marker by another name, because one would be believed.
    sandbox.ok([&format!("tree/sub/{}", own[2]), "named/"]);
    assert!(sandbox.path("named").join(own[2]).exists());
    let marker = format!("tree/sub/{}", own[0]);
    assert_eq!(sandbox.run([&marker[..], "named/"]).code, 23);
    sandbox.ok([&marker, "named/marker"]);
    assert!(!sandbox.path("named").join(own[0]).exists() && sandbox.path("named/marker").exists());
}

/// Whether a file holds one byte only, and how many of it.
fn is_uniform(path: &Path) -> bool {
    let content = fs::read(path).unwrap();
    content.iter().all(|byte| *byte == content[0])
}

fn overwrite(path: &Path, byte: u8, size: usize) {
    File::options().write(true).open(path).unwrap().write_all_at(&vec![byte; size], 0).unwrap();
}

/// Written over, whole, from the beginning, in the second in which it is read, where a second is all
/// that the file system tells.
#[test]
fn source_that_changes_within_the_unit_of_its_clock_is_no_mixture() {
    let sandbox = Sandbox::new();
    let Some(image) = Image::of_whole_seconds(&sandbox.path("."), "coarse", 64) else { return };
    let source = image.path().join("f");
    for round in 0..3 {
        wait_for_a_second();
        fs::write(&source, vec![b'a'; 3 * MIB]).unwrap();
        let there = format!("dst/{round}/");
        let arguments = [source.to_str().unwrap(), &there, "--block=64K", "--streams=1", "--bwlimit=6M"];
        let running = Running::start(sandbox.carrack().args(arguments));
        wait_until("some of it has come", || {
            sandbox.parts(&there).iter().any(|part| holds_data_at(part, MIB as u64))
                || sandbox.path(&there).join("f").exists()
        });
        overwrite(&source, b'b', 3 * MIB);
        let ran = running.end();
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(is_uniform(&sandbox.path(&there).join("f")), "round {round}: {}", ran.stderr);
    }
}

/// The same of one that travels in a bundle, while it is read from storage that takes its time.
#[test]
fn small_source_that_changes_within_the_unit_of_its_clock_is_no_mixture() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    let sandbox = Sandbox::new();
    ["backing", "src"].iter().for_each(|name| fs::create_dir(sandbox.path(name)).unwrap());
    let features = Features { uncached: true, small_reads: true, whole_seconds: true, ..Features::default() };
    let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("src"), features).unwrap();
    for round in 0..3 {
        wait_for_a_second();
        fs::write(sandbox.path("backing/f"), vec![b'a'; MIB - 100]).unwrap();
        let before = disk.count(Call::Read);
        disk.slow(Duration::from_millis(30));
        let there = format!("dst-{round}");
        let running = Running::start(sandbox.carrack().args(["src/f", &there]));
        wait_until("some of it has been read", || disk.count(Call::Read) >= before + 3);
        overwrite(&sandbox.path("backing/f"), b'b', MIB - 100);
        disk.slow(Duration::ZERO);
        let ran = running.end();
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(is_uniform(&sandbox.path(&there)), "round {round}: {}", ran.stderr);
    }
}

/// One that never rests gets no name.
#[test]
fn small_source_that_is_written_all_the_time_is_told() {
    let sandbox = Sandbox::new();
    let source = sandbox.write("f", vec![b'a'; 1000]);
    let ended = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Whoever is not let run for two ticks lets it rest: so it is more than one.
            for byte in (b'a'..=b'z').cycle().take_while(|_| !ended.load(Ordering::Relaxed)) {
                overwrite(&source, byte, 1000);
            }
        });
        let runs: Vec<Ran> = (0..5).map(|round| sandbox.run(["f", &format!("dst-{round}")])).collect();
        ended.store(true, Ordering::Relaxed);
        runs
    });
    for (round, ran) in ran.iter().enumerate() {
        let there = sandbox.path(format!("dst-{round}"));
        match ran.code {
            0 => assert!(is_uniform(&there)),
            _ => ran.failed_with(23, &["f", "; run the same command again"]),
        }
        assert_eq!(there.exists(), ran.code == 0);
    }
    sandbox.ok(["f", "rested"]);
    same_tree(&source, &sandbox.path("rested"));
}

/// A source that gives other bytes the first time, and whose times tell nothing, as one that is
/// written to through a mapping.
#[test]
fn change_that_no_time_tells_is_found_by_reading_the_source_twice() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let right = [("small", 50_000), ("big", 3 * MIB + 5)].map(|(name, size)| (name, tree::bytes(size, size as u64)));
    for (name, content) in &right {
        sandbox.write(format!("backing/{name}"), content);
    }
    fs::create_dir(sandbox.path("src")).unwrap();
    let features = Features { uncached: true, ..Features::default() };
    let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("src"), features).unwrap();
    let token = node.token();
    let ways = [&[][..], &["--digest=xxh128"], &["--digest=blake3,adler32", "--growing=snapshot"], &["--encrypt=none"]];
    for (number, flags) in ways.into_iter().enumerate() {
        for (name, content) in &right {
            disk.clear();
            disk.fault_on(name, Call::Read, When::Nth(1), Fault::Rot);
            let source = format!("src/{name}");
            let (there, copy) = (node.at(&format!("{number}/")), sandbox.path(format!("root/{number}/{name}")));
            let arguments = [&[&source, &there, &token, "--verify=source", "--json", "--block=256K"], flags].concat();
            let summary = sandbox.ok(&arguments).summary();
            assert!(disk.hits() > 0 && fs::read(&copy).unwrap() == *content, "{arguments:?}");
            assert_eq!((&summary["verify"], &summary["faults"]["items_again"]), (&"source".into(), &1.into()));
        }
    }
    // Where every second reading is another it gets no name.
    for (name, _) in &right {
        disk.clear();
        (0..40).for_each(|nth| disk.fault_on(name, Call::Read, When::Nth(1 + 2 * nth), Fault::Rot));
        let ran = sandbox.run([&format!("src/{name}"), "never/", "--verify=source", "--block=4M", "--streams=1"]);
        ran.failed_with(23, &[name, "its times do not show it"]);
        assert!(!sandbox.path("never").join(name).exists() && sandbox.parts("never").is_empty());
    }
    disk.clear();
    let ran = sandbox.ok(["src/small", "said/", "--verify=source"]);
    assert!(ran.stderr.contains("and of the source read once more, before each name appeared"), "{}", ran.stderr);
}

/// A directory that is mounted in a second place; gone with the value.
struct Bound(PathBuf);

impl Bound {
    fn new(directory: &Path, at: PathBuf) -> Self {
        fs::create_dir_all(&at).unwrap();
        tool(Command::new("mount").arg("--bind").arg(directory).arg(&at));
        Self(at)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn copy_onto_itself_through_a_bind_mount_is_refused() {
    if !carrack_faults::can_mount("a directory a second time") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("top/src/f", "f");
    sandbox.write("top/src/d/g", "g");
    sandbox.write("top/beside/h", "h");
    let _bound = Bound::new(&sandbox.path("top"), sandbox.path("mnt"));
    let _inside = Bound::new(&sandbox.path("top/src"), sandbox.path("there/src"));
    let _deeper = Bound::new(&sandbox.path("top/src/d"), sandbox.path("inner"));
    fs::create_dir(sandbox.path("top/src/d/e")).unwrap();
    let _held = Bound::new(&sandbox.path("top/beside"), sandbox.path("holder/held"));
    let node = Node::start(&sandbox, "mnt", &[]);
    let deep = Node::start(&sandbox, "inner", &[]);
    let whole = node.at("");
    let before = tree::walk(&sandbox.path("top"));
    let token = node.token();
    for (source, destination) in [
        ("top/src/", "mnt/src".to_string()),
        ("top/src", "mnt".into()),
        ("top/src", "mnt/src/d".into()),
        ("top/src/", "mnt/src/d/new/deeper".into()),
        ("mnt/src/", "top/src/d".into()),
        ("top/src", "there".into()),
        ("top/src/", "there/src/new".into()),
        ("top/src/f", "mnt/src".into()),
        ("top/src/f", "mnt/src/f".into()),
        // What is mounted elsewhere lies in the source, however deep.
        ("top/", "inner".into()),
        ("top/", "inner/new".into()),
        ("top", "inner/e".into()),
        ("mnt/", "inner/".into()),
        ("top/src/", "inner/".into()),
        ("top/", deep.at("new")),
        (&whole, "inner/e".into()),
        // What is mounted in the source is a part of it.
        ("holder/", "top/beside/new".into()),
        ("top/src/", node.at("src/new")),
        ("top/src", node.at("")),
    ] {
        for dry_run in [&["--dry-run"][..], &[]] {
            let ran = sandbox.run([&[source, &destination, &token], dry_run].concat());
            assert_eq!(ran.code, 2, "{source} {destination}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.stderr.contains("the source"), "{}", ran.stderr);
            assert_eq!(tree::walk(&sandbox.path("top")), before, "{source} {destination}");
        }
    }
    // A command, or a node, that sees mounts of its own has the same directories all the same.
    for destination in [node.at("src/new"), deep.at("new")] {
        let ran = under(&sandbox, &["unshare", "-m"], &["top/src/", &destination, &token]);
        assert_eq!(ran.code, 2, "{destination}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(tree::walk(&sandbox.path("top")), before, "{destination}");
    }
    sandbox.ok(["top/src", "mnt/beside/"]);
    same_tree(&sandbox.path("top/src"), &sandbox.path("top/beside/src"));
    sandbox.ok(["top/beside/", &node.at("src/from"), &token]);
    same_tree(&sandbox.path("top/beside/h"), &sandbox.path("top/src/from/h"));
}
