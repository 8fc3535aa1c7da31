//! Sources that change while they are copied: each file is sent again, cut to its listed length, or told.

use super::*;

type Change = fn(&Path);

const CHANGES: [(&str, Change); 4] = [
    ("truncated", |path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(100_000).unwrap()),
    ("overwritten", |path| fs::write(path, vec![7; 2 * MIB]).unwrap()),
    ("appended", |path| {
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, b"more").unwrap();
    }),
    ("in place", |path| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"xx", 2 * MIB as u64 - 2).unwrap();
    }),
];

/// Nobody knows how much of it was read before, and how much after: it is sent again.
#[test]
fn source_that_changes_once_is_sent_again() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    for (how, change) in CHANGES {
        let source = sandbox.write("src/file", tree::bytes(2 * MIB, 1));
        sandbox.write("src/other", "other");
        sandbox.write("root/dst/file", "old");
        let running = slow_copy(&sandbox, &source, &["src/", &node.at("dst"), &node.token(), "--json"]);
        change(&source);
        let ran = running.end();
        assert_eq!(ran.code, 0, "{how}: {}{}", ran.stdout, ran.stderr);
        same_tree(&sandbox.path("src"), &sandbox.path("root/dst"));
        assert!(ran.summary()["faults"]["items_again"].as_u64().unwrap() >= 1, "{how}: {}", ran.stdout);
        assert!(sandbox.parts("root").is_empty());
    }
}

#[test]
fn source_that_never_rests_gets_no_name() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    // Of one that is short for a moment a moment's copy would be right.
    for (how, change) in &CHANGES[2..] {
        let source = sandbox.write("src/file", tree::bytes(2 * MIB, 1));
        sandbox.write("src/other", "other");
        sandbox.write("root/dst/file", "old");
        let running = slow_copy(&sandbox, &source, &["src/", &node.at("dst"), &node.token()]);
        let ended = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    change(&source);
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let ran = running.end();
            ended.store(true, Ordering::Relaxed);
            ran
        });
        ran.failed_with(23, &["file", "; run the same command again"]);
        assert_eq!(fs::read(sandbox.path("root/dst/file")).unwrap(), b"old", "{how}");
        assert_eq!(fs::read(sandbox.path("root/dst/other")).unwrap(), b"other");
        assert!(sandbox.parts("root").is_empty());
        fs::remove_dir_all(sandbox.path("root/dst")).unwrap();
    }
}

/// A log that is written to all the while: with leave, what it had when it was listed.
#[test]
fn growing_file_is_copied_as_a_prefix() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    for size in [1000, 2 * MIB] {
        let source = sandbox.write("src/log", tree::bytes(size, 1));
        let other = sandbox.write("other", tree::bytes(2 * MIB, 2));
        let ended = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut log = fs::OpenOptions::new().append(true).open(&source).unwrap();
                while !ended.load(Ordering::Relaxed) {
                    std::io::Write::write_all(&mut log, b"one more line\n").unwrap();
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            let arguments =
                ["src/log", "other", &node.at("dst/"), &node.token(), "--growing=snapshot", "--json", "--bwlimit=4M"];
            let ran = sandbox.run(arguments);
            ended.store(true, Ordering::Relaxed);
            ran
        });
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let (copy, whole) = (fs::read(sandbox.path("root/dst/log")).unwrap(), fs::read(&source).unwrap());
        assert!(copy.len() >= size && copy.len() < whole.len() && whole.starts_with(&copy), "{}", copy.len());
        same_tree(&other, &sandbox.path("root/dst/other"));
        // What is reported is what was copied.
        let told = |line: &str| -> serde_json::Value { serde_json::from_str(line).unwrap() };
        let item = ran.stdout.lines().map(told).find(|event| event["path"] == "log").unwrap();
        assert_eq!(item["size"], copy.len());
        assert_eq!(item["blake3"], crate::support::b3sum(&sandbox.path("root/dst/log")));
    }
}

#[test]
fn source_that_vanishes_meanwhile_is_told_apart() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    // In the order in which they are named: the second is opened when the first has been sent.
    let first = sandbox.write("first", tree::bytes(6 * MIB, 1));
    sandbox.write("second", tree::bytes(2 * MIB, 2));
    let running = slow_copy(&sandbox, &first, &["first", "second", &node.at("dst/"), &node.token()]);
    fs::remove_file(sandbox.path("second")).unwrap();
    running.end().failed_with(24, &["second", "vanished"]);
    same_tree(&sandbox.path("first"), &sandbox.path("root/dst/first"));
    assert!(!sandbox.path("root/dst/second").exists() && sandbox.parts("root").is_empty());
}

/// Sources are renamed over and removed all the while. Whatever gets a name is one of a file's versions, whole;
/// whatever does not is told.
#[test]
fn files_that_come_and_go_meanwhile_cost_only_themselves() {
    const FILES: usize = 1000;
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    // One in twenty travels in blocks.
    let size = |index: usize| if index.is_multiple_of(20) { MIB + 1 + index } else { 100 + index };
    let content = |index: usize, version: usize| vec![b'a' + version as u8; size(index)];
    for index in 0..FILES {
        sandbox.write(format!("tree/{index:04}"), content(index, 0));
    }
    let ended = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        // Every third file is left alone, every third replaced, every third removed and made again,
        // until the copy has ended.
        scope.spawn(|| {
            for round in 1.. {
                for index in (0..FILES).filter(|index| index % 3 != 0) {
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let path = sandbox.path(format!("tree/{index:04}"));
                    if index % 3 == 2 {
                        fs::remove_file(&path).unwrap();
                    }
                    let new = sandbox.write(format!("new-{index}"), content(index, round % 20));
                    fs::rename(new, path).unwrap();
                }
            }
        });
        let ran = sandbox.run(["tree/", &node.at("there"), &node.token(), "--bwlimit=40M", "--json"]);
        ended.store(true, Ordering::Relaxed);
        ran
    });
    assert!([0, 23, 24].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let events: Vec<serde_json::Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed: Vec<&str> = events
        .iter()
        .filter(|event| event["outcome"] == "failed")
        .map(|event| {
            let code = event["error"]["code"].as_str().unwrap();
            assert!(["source-changed", "source-vanished"].contains(&code), "{event}");
            event["path"].as_str().unwrap()
        })
        .collect();
    for index in 0..FILES {
        let name = format!("{index:04}");
        let there = fs::read(sandbox.path("root/there").join(&name)).ok();
        let is_failed = failed.contains(&name.as_str());
        assert!(!is_failed || (index % 3 != 0 && there.is_none()), "{name}");
        let Some(there) = there else {
            // What was not there while its directory was listed is no part of the tree.
            assert!(is_failed || index % 3 == 2, "{name} is missing and nobody says so");
            continue;
        };
        assert!(there.len() == size(index) && there.iter().all(|&byte| byte == there[0]), "{name} is torn");
    }
    assert!(sandbox.parts("root").is_empty());
}
